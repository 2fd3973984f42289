"""The part of the search view that says why: the pane of the hit under the cursor, flips, and lines not in the list."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from textual import on

from memory_tui.search.trace import Recalled
from memory_tui.text.display import safe
from memory_tui.tui.messages import Worked
from memory_tui.tui.screens.judging import Judging
from memory_tui.tui.subject import Subject
from memory_tui.tui.tasks import find_flips, find_questions
from memory_tui.tui.widgets.results import Results
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.why_pane import WhyPane

if TYPE_CHECKING:
    from memory_tui.explain.rephrase import Rephrased

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
        self.home.bridge.drop("questions")
        shown, engine, tuning = self._answer, self.home.engine, self.home.tuning
        pane, hit = self.query_one(WhyPane), self.query_one(Results).hit
        if shown is None or hit is None or engine is None or tuning is None:
            self.home.bridge.drop("flips")
            pane.show(None)
        else:
            pane.show(Subject(shown.evidence, shown.trace, hit, working=LOOKING, grade=self.grade))
            self._flips_request = self.home.bridge.follow(
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
        from memory_tui.explain.flips import Flips

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
        outsider = self.query_one(Results).outsider
        if outsider is not None and self._answer is not None:
            from memory_tui.tui.screens.whynot import WhyNotView

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
        self.home.bridge.follow(
            "questions", find_questions(engine, shown.dated, tuning.days, tuning.settings, hit, text)
        )

    def _show_questions(self, event: Worked) -> None:
        pane = self.query_one(WhyPane)
        if event.error is not None:
            self.tell_error(event.error)
        elif event.done and pane.subject is not None and pane.subject.key == self._questions_for:
            pane.show(replace(pane.subject, questions=cast("tuple[Rephrased, ...]", event.value)))

    def do_sides(self) -> None:
        """Two profiles side by side on this question."""
        if self._answer is not None:
            from memory_tui.tui.screens.sides import SidesView

            self.app.push_screen(SidesView(self._answer.evidence))

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
        from memory_tui.explain.place import parse
        from memory_tui.tui.screens.prompt import Prompt, near

        facts = self.home.facts
        # The box shows names made safe, so what was chosen there is looked up.
        paths = {safe(row.path): row.path for row in facts.rows} if facts is not None else {}
        hit = self.query_one(Results).hit

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
        from memory_tui.tui.screens.whynot import WhyNotView

        if self._answer is not None:
            self.app.push_screen(WhyNotView(self._answer.evidence, path, line))
