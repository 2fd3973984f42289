"""A view over another one: a list of lines that a worker gathers; esc goes back to the view below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.widget import Widget

from memory_tui.text.display import one_line
from memory_tui.tui.messages import Done
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.rows import Line, Rows, text

if TYPE_CHECKING:
    from memory_tui.engine import Engine


class ListingView(View):
    """Subclasses say what is gathered (`gather`, on a worker thread) and how it is written (`lines`)."""

    TITLE_WORDS: ClassVar[str] = ""
    WAITING: ClassVar[str] = "Looking ..."
    AUTO_FOCUS = "#listing"

    def __init__(self) -> None:
        super().__init__()
        self._problem = ""
        self._found: object = None

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="listing")

    def more_places(self) -> tuple[str, ...]:
        """No note is under the cursor."""
        return ()

    @staticmethod
    def gather(engine: Engine) -> object:
        """What is to be shown; runs on a worker thread. Raises MemoryTuiError."""
        raise NotImplementedError

    def lines(self, found: object, width: int) -> list[Line]:
        """What was gathered, as lines of `width` cells."""
        raise NotImplementedError

    def subtitle(self, _found: object, /) -> str:
        """What is said below the list."""
        return ""

    def on_mount(self) -> None:
        """Begin to look."""
        super().on_mount()
        self.look()

    def look(self) -> None:
        """Look, or look again; what was there stays until then."""
        self.show()
        self.home.bridge.work(self.PLACE, self.gather)

    def work_done(self, done: Done, /) -> None:
        """Show what was found, or why nothing was."""
        if done.kind != self.PLACE:
            return
        self._problem = f"{done.error.message} {done.error.next_step}".strip() if done.error is not None else ""
        self._found = done.value if done.error is None else self._found
        self.show()

    def show(self) -> None:
        """Draw what is known by now."""
        said = "" if self._found is None else self.subtitle(self._found)
        self.query_one(Rows).show(self._write, self.TITLE_WORDS, said)
        self.update_hints()

    def _write(self, width: int) -> list[Line]:
        if self._problem:
            return [*text("", width), *text(one_line(self._problem), width, "bad")]
        return text(self.WAITING, width, "muted") if self._found is None else self.lines(self._found, width)

    def back(self) -> bool:
        """Back to the view below."""
        self.app.pop_screen()
        return True
