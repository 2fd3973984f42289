"""The part of the search view that explains a hit or a missing line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.sanitize import one_line
from memory_tui.search.trace import Recalled
from memory_tui.tui.views.search.explaining import find_flips, find_questions
from memory_tui.tui.views.search.knobs import ShownAnswer
from memory_tui.tui.views.search.line_question import LineQuestion
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.widgets.why_rows import Subject
from memory_tui.tui.workers import PostPart, stop, task

if TYPE_CHECKING:
    from memory_tui.backends.qmd import QmdAnswer, QmdHit
    from memory_tui.explain.counterfactuals import Flips, Rephrasings
    from memory_tui.search.trace import Trace
    from memory_tui.tui.widgets.rowlist import RowList

LOOKING = "looking for what would change it"

REST = 0.6
"""Seconds that letters, cursor and knobs rest before it is worked out what would change the verdict."""


def of_qmd(hit: QmdHit, answer: QmdAnswer, trace: Trace | None) -> str:
    """What is known of a hit of QMD: its rank, its number, and where the built-in index has the same lines."""
    twin = next(
        (
            place
            for place, other in enumerate(trace.recalled if trace is not None else (), 1)
            if other.chunk.path == hit.path
            and other.chunk.start_line <= hit.end_line
            and hit.start_line <= other.chunk.end_line
        ),
        0,
    )
    here = f"The built-in index has these lines at rank {twin}." if twin else "The built-in index does not recall them."
    return (
        f"QMD's rank {hit.rank} by {answer.mode}, from the collection {one_line(hit.collection)}. "
        f"QMD's own score, not comparable: {hit.score:g}. {here}"
    )


class Explainer(Part):
    """Explains the hit under the cursor, and applies what would change its verdict."""

    def __init__(self, view: View, shown: ShownAnswer) -> None:
        super().__init__(view)
        self._shown = shown
        self.line = LineQuestion(view, self.ask_line, lambda: shown.answer.trace if shown.answer is not None else None)

    @property
    def _pane(self) -> WhyPane:
        return self.view.query_one(WhyPane)

    @property
    def _hits(self) -> HitList:
        return self.view.query_one(HitList)

    def context(self) -> dict[str, bool]:
        """Whether a hit is explained."""
        return {"flips": self._pane.subject is not None}

    def moved(self, rows: RowList, /) -> None:
        """Another hit is under the cursor."""
        if rows.id == "results":
            self.explain()

    def explain(self) -> None:
        """Explain the hit under the cursor; what would change it follows when keys rest."""
        stop(self, "questions")
        answer, engine, tuning = self._shown.answer, self.home.engine, self.home.tuning
        hit = self._hits.hit
        if answer is None or hit is None or engine is None or tuning is None:
            stop(self, "flips")
            others = self._hits.qmd_hit
            if others is None or self._shown.qmd is None:
                self._pane.show(None)
            else:
                self._pane.show(None, of_qmd(others, self._shown.qmd, answer.trace if answer is not None else None))
        else:
            self._pane.show(Subject(answer.evidence, answer.trace, hit, working=LOOKING, grade=self._shown.grade))
            self._find_flips(find_flips(engine, answer.dated, tuning.settings, hit.chunk.rowid, self._shown.cases()))
        self.view.update_hints()

    @task("flips")
    async def _find_flips(self, search: Callable[[PostPart], Flips | None]) -> None:
        """Find what would change the verdict, and show all of it at once."""
        await self.home.jobs.rest(REST)
        flips: Flips | None = None
        async for reply in self.home.jobs.parts(search):
            flips = reply
        pane = self._pane
        if pane.subject is not None:
            pane.show(replace(pane.subject, changes=flips, working=""))
            if pane.has_focus:
                pane.stand()

    def do_why(self) -> None:
        """Go to the arithmetic, and to what would change it; of a chunk that nobody proposed, say why not."""
        outsider = self._hits.outsider
        if outsider is not None and self._shown.answer is not None:
            # Chunks overlap at their ends, so the line in the middle is its own.
            middle = (outsider.start_line + outsider.end_line) // 2
            self.ask_line(outsider.path, middle)
            return
        pane = self._pane
        pane.focus()
        if pane.subject is not None:
            self.home.step_done("why")
        if pane.subject is not None and pane.subject.questions is None:
            self._look_for_questions(pane.subject)

    def _look_for_questions(self, subject: Subject) -> None:
        """Which word to add to the question, for a hit that lost; each is found by really asking."""
        engine, tuning, answer, hit = self.home.engine, self.home.tuning, self._shown.answer, subject.candidate
        if engine is None or tuning is None or answer is None or hit is None or isinstance(hit.verdict, Recalled):
            return
        text = answer.evidence.texts.get(hit.chunk.rowid, hit.snippet)
        self._find_questions(subject.key, find_questions(engine, answer.dated, tuning.days, tuning.settings, hit, text))

    @task("questions")
    async def _find_questions(self, key: str, search: Callable[[PostPart], Rephrasings]) -> None:
        async for questions in self.home.jobs.parts(search):
            pane = self._pane
            if pane.subject is not None and pane.subject.key == key:
                pane.show(replace(pane.subject, questions=questions))

    def do_line(self) -> None:
        """Say of a hit that lost why it did; of one that is recalled, ask which other line is meant."""
        hit = self._hits.hit
        if hit is not None and not isinstance(hit.verdict, Recalled) and self.view.focused is self._hits:
            self.ask_line(hit.chunk.path, max(1, hit.snippet_line))
            return
        self.line.ask((hit.chunk.path, max(1, hit.snippet_line)) if hit is not None else None)

    def ask_line(self, path: str, line: int | None) -> None:
        """Say why a line is or is not recalled."""

        if self._shown.answer is not None:
            query = self._shown.answer.evidence
            self.view.app.push_screen(WhyNotView(query, path, line, self._shown.cases()))
