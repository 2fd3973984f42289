"""Why one line is, or is not, recalled: verdict, arithmetic, what would change it, and which word to add."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from memory_tui.text.display import one_line, safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.messages import Worked
from memory_tui.tui.screens.base import View
from memory_tui.tui.subject import Subject
from memory_tui.tui.tasks import Inquiry, inquire
from memory_tui.tui.widgets.why_pane import WhyPane

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence


class WhyNotView(View):
    """One line of a note under a question (or its evidence, where it was asked already); answers come as found."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("whynot"))
    PLACE = "whynot"
    AUTO_FOCUS = "#why"

    def __init__(self, asked: Evidence | str, path: str, line: int | None) -> None:
        super().__init__()
        self._asked, self._path, self._line = asked, path, line
        self._request = 0
        self._found: Inquiry | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The pane alone."""
        yield WhyPane()

    def on_mount(self) -> None:
        """Begin to look."""
        super().on_mount()
        question = self._asked if isinstance(self._asked, str) else self._asked.query
        pane = self.query_one(WhyPane)
        pane.show(None, f"Looking for {one_line(self._path)} ...")
        pane.border_subtitle = f"for: {safe(one_line(question, 60))}"
        self.tuned()

    def tuned(self, *, keep: bool = True) -> None:
        """Look again under the knobs as they are now."""
        del keep
        engine, tuning = self.home.engine, self.home.tuning
        if engine is not None and tuning is not None:
            self._request = self.home.bridge.follow(
                "line", inquire(engine, self._asked, tuning.days, tuning.settings, self._path, self._line)
            )

    def worked(self, event: Worked) -> None:
        """Show what is known by now."""
        if event.kind != "line" or event.number != self._request:
            return
        pane = self.query_one(WhyPane)
        if isinstance(event.value, Inquiry):
            self._found = event.value
            if isinstance(self._asked, str):
                self._asked = event.value.answer.evidence if not self._days else self._asked
            pane.show(self._subject(event.value))
            pane.stand()
            if event.value.problem:
                self.say(event.value.problem)
        elif event.error is not None:
            pane.show(None, one_line(f"{event.error.message} {event.error.next_step}"))
        self.update_hints()

    @property
    def _days(self) -> int:
        return self.home.tuning.days if self.home.tuning is not None else 0

    def _subject(self, found: Inquiry) -> Subject:
        answer = found.answer
        candidate = answer.best.candidate if answer.best is not None else None
        return Subject(answer.evidence, answer.trace, candidate, answer, found.changes, found.questions, found.working)

    @on(WhyPane.Applied)
    def _applied(self, event: WhyPane.Applied) -> None:
        event.stop()
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.to(event.settings))
            self.say(f"Set: {event.words}. u takes it back.")

    def do_undo(self) -> None:
        """Undo the last step."""
        self.take_back()

    def do_apply(self) -> None:
        """Apply the change under the cursor."""
        self.query_one(WhyPane).do_apply()

    def more_context(self) -> dict[str, bool]:
        """What can be applied and undone."""
        tuning, pane = self.home.tuning, self.query_one(WhyPane)
        return {
            "undo": bool(tuning and tuning.past),
            "answer": True,
            "flips": bool(pane.subject and pane.subject.flips),
        }

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The chunk that speaks."""
        best = self._found.answer.best if self._found is not None else None
        return (best.chunk.path, best.chunk.start_line, best.chunk.end_line) if best is not None else None

    def line_in_note(self) -> int:
        """The line that was asked about."""
        return self._line or 1

    def text_in_note(self) -> str:
        """The text of the chunk that speaks."""
        best = self._found.answer.best if self._found is not None else None
        return safe(best.text, keep_newlines=True) if best is not None else ""

    def back(self) -> bool:
        """A depth back, then to the view below."""
        if not self.query_one(WhyPane).shallower():
            self.home.bridge.drop("line")
            self.app.pop_screen()
        return True
