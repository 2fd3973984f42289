"""The part of the search view that explains a hit or a missing line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from memory_tui.core.sanitize import one_line, safe
from memory_tui.search.trace import Recalled
from memory_tui.tui.judging import Inquiry, find_flips, find_questions, inquire
from memory_tui.tui.keymap import bindings
from memory_tui.tui.views.search.search_judge import Judging
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.widgets.why_rows import Subject
from memory_tui.tui.workers import Worked

if TYPE_CHECKING:
    from memory_tui.explain.counterfactuals import Rephrased
    from memory_tui.search.evidence import Evidence

LOOKING = "looking for what would change it"


class Explaining(Judging):
    """Why pane, `w`, and applying what would change a verdict."""

    def __init__(self) -> None:
        super().__init__()
        self._flips_request = 0
        self._questions_for = ""

    @on(RowList.Moved, "#results")
    def explain(self) -> None:
        """Explain the hit under the cursor; what would change it follows."""
        self.home.jobs.drop("questions")
        shown, engine, tuning = self._answer, self.home.engine, self.home.tuning
        pane, hit = self.query_one(WhyPane), self.query_one(HitList).hit
        if shown is None or hit is None or engine is None or tuning is None:
            self.home.jobs.drop("flips")
            pane.show(None)
        else:
            pane.show(Subject(shown.evidence, shown.trace, hit, working=LOOKING, grade=self.grade))
            self._flips_request = self.home.jobs.follow(
                "flips", find_flips(engine, shown.dated, tuning.settings, hit.chunk.rowid)
            )
        self.update_hints()

    def worked(self, event: Worked) -> None:
        """Flips of the hit under the cursor, and what else was worked out."""
        if event.kind == "flips" and event.number == self._flips_request:
            self._show_flips(event)
        elif event.kind == "questions":
            self._show_questions(event)
        super().worked(event)

    def _show_flips(self, event: Worked) -> None:
        from memory_tui.explain.counterfactuals import Flips

        pane = self.query_one(WhyPane)
        subject, found = pane.subject, event.value
        if subject is None or subject.candidate is None:
            return
        if isinstance(found, Flips) and found.chunk.rowid == subject.candidate.chunk.rowid:
            pane.show(replace(subject, changes=found, working="" if event.done else LOOKING))
            if pane.has_focus:
                pane.stand()

    @on(WhyPane.Applied)
    def _applied(self, event: WhyPane.Applied) -> None:
        event.stop()
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.to(event.settings))
            self.say(f"Set: {event.words}. u takes it back.")

    def do_why(self) -> None:
        """Go to the arithmetic, and to what would change it; of a chunk that nobody proposed, say why not."""
        outsider = self.query_one(HitList).outsider
        if outsider is not None and self._answer is not None:
            # Chunks overlap at their ends, so the line in the middle is its own.
            middle = (outsider.start_line + outsider.end_line) // 2
            self.app.push_screen(WhyNotView(self._answer.evidence, outsider.path, middle))
            return
        pane = self.query_one(WhyPane)
        pane.focus()
        if pane.subject is not None and pane.subject.questions is None:
            self._look_for_questions(pane.subject)

    def _look_for_questions(self, subject: Subject) -> None:
        """Which word to add to the question, for a hit that lost; each is found by really asking."""
        engine, tuning, shown, hit = self.home.engine, self.home.tuning, self._answer, subject.candidate
        if engine is None or tuning is None or shown is None or hit is None or isinstance(hit.verdict, Recalled):
            return
        text = shown.evidence.texts.get(hit.chunk.rowid, hit.snippet)
        self._questions_for = subject.key
        self.home.jobs.follow("questions", find_questions(engine, shown.dated, tuning.days, tuning.settings, hit, text))

    def _show_questions(self, event: Worked) -> None:
        pane = self.query_one(WhyPane)
        if event.error is not None:
            self.tell_error(event.error)
        elif event.done and pane.subject is not None and pane.subject.key == self._questions_for:
            pane.show(replace(pane.subject, questions=cast("tuple[Rephrased, ...]", event.value)))

    def do_apply(self) -> None:
        """Apply the change under the why pane's cursor, the nearest one without a cursor."""
        pane = self.query_one(WhyPane)
        if pane.subject is None or not pane.subject.flips:
            working = pane.subject is not None and pane.subject.working
            self.say(
                "It is still being looked for what would change this."
                if working
                else "No single knob changes this; w shows what comes nearest."
            )
            return
        pane.do_apply()

    def do_line(self) -> None:
        """Ask about a line that is not in the list."""
        from memory_tui.explain.why_not import parse
        from memory_tui.tui.views.dialogs import Prompt, near

        facts = self.home.facts
        # The box shows names made safe, so what was chosen there is looked up.
        paths = {safe(row.path): row.path for row in facts.rows} if facts is not None else {}
        hit = self.query_one(HitList).hit

        def take(place: str | None) -> None:
            if place:
                path, line = parse(place)
                self.ask_line(paths.get(path, path), line)

        ordered = sorted(paths, key=lambda path: hit is None or paths[path] != hit.chunk.path)
        self.app.push_screen(
            Prompt("Why not this line?", "PATH:LINE of a note, or part of its name", "", near(ordered)), take
        )

    def ask_line(self, path: str, line: int | None) -> None:
        """Say why a line is or is not recalled."""

        if self._answer is not None:
            self.app.push_screen(WhyNotView(self._answer.evidence, path, line))


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
            self._request = self.home.jobs.follow(
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
            self.home.jobs.drop("line")
            self.app.pop_screen()
        return True
