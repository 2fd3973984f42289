"""What reports have in common: work on a worker thread that shows how far it is, results as they come, esc to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.messages import Worked
from memory_tui.tui.screens.base import View
from memory_tui.tui.tasks import Progress
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Line, Rows, text

if TYPE_CHECKING:
    from memory_tui.tui.screens.judging import Judging


class Report(View):
    """A list over the search view; subclasses say what to work out, and write the lines."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("report"))
    PLACE = "report"
    AUTO_FOCUS = "#report"
    KIND = ""
    """The kind of its work, for the bridge."""
    TITLE = ""
    ABOUT_NOTES = False
    """Whether the cursor stands on places in notes."""

    def __init__(self, search: Judging) -> None:
        super().__init__()
        self.search = search
        self._request = 0
        self._progress = ""
        self._error: MemoryTuiError | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="report")

    def on_mount(self) -> None:
        """Begin."""
        super().on_mount()
        self.tuned()

    def tuned(self, *, keep: bool = True) -> None:
        """Work it out for the knobs as they are now."""
        del keep
        run = self.work()
        if run is not None:
            self._error = None
            self._request = self.home.bridge.follow(self.KIND, run)
        self.show()

    def work(self) -> Callable[[Tell], object] | None:
        """What a worker thread does; None when there is nothing to work out."""
        raise NotImplementedError

    def came(self, value: object) -> None:
        """A result, or part of it."""
        raise NotImplementedError

    def lines(self, width: int) -> Sequence[Line]:
        """The report, as far as it is known."""
        raise NotImplementedError

    def subtitle(self) -> str:
        """What stands in the lower edge of the frame when nothing is under way."""
        return ""

    def worked(self, event: Worked) -> None:
        """Progress, parts, the result, or why there is none."""
        if event.kind != self.KIND or event.number != self._request:
            return
        if isinstance(event.value, Progress):
            self._progress = event.value.words
        elif event.error is not None:
            self._error = event.error
        elif event.value is not None:
            self.came(event.value)
        if event.done:
            self._progress = ""
        self.show()

    def show(self) -> None:
        """Bring the list up to date."""
        self.query_one(Rows).show(
            self._written, self.TITLE, f"{self._progress} ...  esc stops" if self._progress else self.subtitle()
        )
        self.update_hints()

    def _written(self, width: int) -> Sequence[Line]:
        if self._error is not None:
            return [
                *text("", width),
                *text(one_line(self._error.message), width, "strong"),
                *text(one_line(self._error.next_step), width, "muted"),
            ]
        return self.lines(width)

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        """Another row is under the cursor."""
        event.stop()
        self.update_hints()

    def do_undo(self) -> None:
        """Undo the last step."""
        self.take_back()

    def more_places(self) -> tuple[str, ...]:
        """A report's own keys, those of a note where rows are about notes, then those of all reports."""
        return (self.PLACE, "notes", "report") if self.ABOUT_NOTES else (self.PLACE, "report")

    def more_context(self) -> dict[str, bool]:
        """Whether there is something to undo."""
        return {"undo": bool(self.home.tuning and self.home.tuning.past)}

    def back(self) -> bool:
        """Stop what is under way, and back to the search."""
        self.home.bridge.drop(self.KIND)
        self.app.pop_screen()
        return True
