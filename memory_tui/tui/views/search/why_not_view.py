"""The view of one line under a question says why it is or is not recalled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from textual.widget import Widget

from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.search.explaining import Inquiry, inquire
from memory_tui.tui.views.search.line_question import LineQuestion
from memory_tui.tui.views.view import KnobHistory, View
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.widgets.why_rows import Subject
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence
    from memory_tui.tune.evaluate import Case


class WhyNotView(View):
    """One line of a note under a question (or its evidence, where it was asked already); answers come as found."""

    PLACE = "whynot"
    MORE_PLACES = ("notes",)
    AUTO_FOCUS = "#why"

    def __init__(self, asked: Evidence | str, path: str, line: int | None, cases: Sequence[Case] = ()) -> None:
        super().__init__()
        self._knobs = KnobHistory(self)
        self._asked, self._path, self._line, self._cases = asked, path, line, cases
        self._found: Inquiry | None = None
        self._other = LineQuestion(self, self._ask_about, lambda: self._found.answer.trace if self._found else None)

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
            place = self._path, self._line
            self._inquire(inquire(engine, self._asked, tuning.days, tuning.settings, place, self._cases))

    @task("line")
    async def _inquire(self, search: Callable[[PostPart], Inquiry]) -> None:
        """Show what is known by now."""
        pane = self.query_one(WhyPane)
        try:
            async for reply in self.home.jobs.parts(search):
                self._found = reply
                if isinstance(self._asked, str):
                    self._asked = reply.answer.evidence if not self._days else self._asked
                pane.show(self._subject(reply))
                pane.stand()
                if reply.problem:
                    self.show_message(reply.problem)
                self.update_hints()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            pane.show(None, one_line(f"{error.message} {error.next_step}"))

    @property
    def _days(self) -> int:
        return self.home.tuning.days if self.home.tuning is not None else 0

    def _subject(self, found: Inquiry) -> Subject:
        answer = found.answer
        candidate = answer.best.candidate if answer.best is not None else None
        return Subject(
            answer.evidence,
            answer.trace,
            candidate,
            answer,
            found.changes,
            found.questions,
            found.working,
        )

    def do_why(self) -> None:
        """Say that this page is the answer to that key."""
        self.show_message(
            f"This page is why. {key_of('show record')} shows the full record, {key_of('why line')} asks about "
            "another line."
        )

    def do_line(self) -> None:
        """Ask about another line, and explain that one here."""
        self._other.ask((self._path, self._line or 1))

    def _ask_about(self, path: str, line: int | None) -> None:
        self._path, self._line = path, line
        self.query_one(WhyPane).show(None, f"Looking for {one_line(path)} ...")
        self.tuned()

    def more_context(self) -> dict[str, bool]:
        """What can be applied and undone."""
        subject = self.query_one(WhyPane).subject
        return {"answer": True, "undo": self._knobs.context()["undo"], "flips": bool(subject and subject.flips)}

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
            self.app.pop_screen()
        return True
