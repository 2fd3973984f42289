"""The lab works out a report that takes time, with a stop key: the knob search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from textual.widget import Widget

from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.explain.wording import turn
from memory_tui.sanitize import one_line
from memory_tui.tui.judging import JobProgress, search_knobs
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.view import KnobHistory, Part, View
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.tui.views.search.search_view import SearchView
    from memory_tui.tune.knob_search import Outcome


class ReportSource(Protocol):
    """What a report shows."""

    def work(self) -> Callable[[PostPart], object] | None:
        """What to work out on a worker thread; None for nothing."""

    def arrived(self, value: Any, /) -> None:  # noqa: ANN401 - each report knows what it works out
        """Keep a part of what was worked out."""

    def report_lines(self, width: int, /) -> Sequence[Line]:
        """Write what arrived."""

    def summary(self) -> str:
        """What stands in the lower edge of the frame when nothing is under way."""


class Report(Part):
    """A list over the search view of what `source` works out."""

    def __init__(self, view: View, source: ReportSource, title: str) -> None:
        super().__init__(view)
        self._source, self._title = source, title
        self.progress = ""
        self.rows = Rows(id="report")
        self._error: MemoryTuiError | None = None

    def compose(self) -> Iterable[Widget]:
        """The list alone."""
        yield self.rows

    def mounted(self) -> None:
        """Begin."""
        self.tuned()

    def moved(self, _rows: RowList, /) -> None:
        """Another row is under the cursor."""
        self.view.update_hints()

    def tuned(self, *, keep: bool = True) -> None:
        """Work it out for the knobs as they are now."""
        del keep
        run = self._source.work()
        if run is not None:
            self._error = None
            self._follow(run)
        self.show()

    @task("report")
    async def _follow(self, run: Callable[[PostPart], object]) -> None:
        """Show progress, parts, the result, or why there is none."""
        try:
            async for part in self.home.jobs.parts(run):
                if isinstance(part, JobProgress):
                    self.progress = part.words
                elif part is not None:
                    self._source.arrived(part)
                self.show()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            self._error = error
        self.progress = ""
        self.show()

    def show(self) -> None:
        """Bring the list up to date."""
        self.rows.show(
            self._write, self._title, f"{self.progress} ...  esc stops" if self.progress else self._source.summary()
        )
        self.view.update_hints()

    def _write(self, width: int) -> Sequence[Line]:
        if self._error is not None:
            return [
                *text("", width),
                *text(one_line(self._error.message), width, "strong"),
                *text(one_line(self._error.next_step), width, "muted"),
            ]
        return self._source.report_lines(width)


METRIC = "ndcg@10"
PAIRED = "query.hybrid.textWeight"
"""Named with its partner, so not by itself."""


class KnobSearchView(View):
    """What the search of the knobs found; enter applies it as one step."""

    PLACE = "knob_search"
    MORE_PLACES = ("knob_search", "report")

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self.search = below
        self.report = Report(self, self, "Better knobs by your judgments")
        self.parts = (KnobHistory(self), self.report)
        self.outcome: Outcome | None = None

    def work(self) -> Callable[[PostPart], object] | None:
        """Search from the knobs as they are when the report is opened."""
        engine, tuning, evaluation = self.home.engine, self.home.tuning, self.search.judge.evaluation
        if engine is None or tuning is None or self.outcome is not None or self.report.progress:
            return None
        return search_knobs(engine, tuning.settings, evaluation.judged, tuple(evaluation.cases.values()), METRIC)

    def arrived(self, value: Outcome) -> None:
        """The outcome."""
        self.outcome = value

    def summary(self) -> str:
        """What is raised."""
        return f"raising {METRIC}; half of the queries are held out"

    def report_lines(self, width: int) -> Sequence[Line]:
        """The verdict, the knobs to turn, before and after, and what minScore and results trade."""
        if self.outcome is None:
            words = "One half of the saved queries is searched for better knobs; the other half tests them."
            return text(words, width, "muted")
        from memory_tui.render import evaluation
        from memory_tui.tune.knob_search import Better

        reply = self.outcome
        better = isinstance(reply, Better)
        rows = [*text("", width), *text(evaluation.verdict(reply), width, "good" if better else "strong"), ([], None)]
        for key, value in reply.changes.items():
            if key != PAIRED:
                words = turn(key, value) if better else f"not: {turn(key, value)}"
                rows += text(words, width, "strong" if better else "muted", 3)
        if better:
            rows += text(f"enter applies this as one step; {key_of('undo')} undoes it.", width, "muted", 3)
        if not reply.changes and not better:
            rows += text(f"Mark more hits as correct ({key_of('judge')}).", width, "muted")
        # The table of the command line, without its verdict and its options.
        table = [line for line in evaluation.outcome_lines(reply) if "--set" not in line][1:]
        return [
            *rows,
            ([], None),
            *((([(f"  {one_line(line) if not line.startswith(' ') else line}", "")]), None) for line in table),
        ]

    def do_apply(self) -> None:
        """Turn the knobs as the outcome says."""
        from memory_tui.tune.knob_search import Better

        tuning, reply = self.home.tuning, self.outcome
        if not isinstance(reply, Better) or tuning is None:
            self.show_message("No evidence for other settings, so there is nothing to apply.")
            return
        self.home.turn(tuning.to(reply.settings))
        self.show_message(f"The settings found are applied. {key_of('undo')} undoes it.")
