"""The lab works out reports that take time, with a stop key. They are the noise floor and the knob search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from textual.widget import Widget

from memory_tui.core.errors import Cancelled, MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.core.settings import BY_KEY
from memory_tui.explain import noise, wording
from memory_tui.explain.wording import turn
from memory_tui.render.hit_text import TEXT
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.judging import JobProgress, Noise, measure_noise, search_knobs
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.tuning import stepped
from memory_tui.tui.views.view import KnobHistory, Part, View
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.explain.noise import NoiseFloor
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


FLOOR = BY_KEY["query.minScore"]
FEWEST = 8
"""Judged questions without which lines out of the notes tell better what is right."""
NONSENSE = "░"
"""The bar of unrelated questions."""


class NoiseView(View):
    """A row for each twentieth of the score; minScore is a line across it, moved with h and l."""

    PLACE = "noise"
    MORE_PLACES = ("noise", "report")

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self.search = below
        self.report = Report(self, self, "Noise floor")
        self.parts = (KnobHistory(self), self.report)
        self.noise: Noise | None = None

    def work(self) -> Callable[[PostPart], object] | None:
        """Ask once, measure for every turn."""
        engine, tuning = self.home.engine, self.home.tuning
        if engine is None or tuning is None:
            return None
        evaluation = self.search.judge.evaluation
        cases = [evaluation.cases[query.text] for query in evaluation.judged if query.text in evaluation.cases]
        enough = cases if len(cases) >= FEWEST else ()
        return measure_noise(engine, tuning.settings, enough, self.noise.probes if self.noise else None)

    def arrived(self, value: Noise) -> None:
        """The measured floor."""
        self.noise = value

    def summary(self) -> str:
        """What the right chunks were told by."""
        if self.noise is None:
            return ""
        return "right chunks by your judgments" if self.noise.floor.labelled else "right chunks by lines from the notes"

    # --- lines ---------------------------------------------------------------------------------------------------

    def report_lines(self, width: int) -> Sequence[Line]:
        """Verdicts first, then the axis."""
        if self.noise is None:
            return text("Asking unrelated questions to see what they score ...", width, "muted")
        floor = self.noise.floor
        found = [*text(f"now        {noise.sentence(floor.now)}", width, "strong")]
        if floor.suggested is not None:
            found += text(f"suggested  {noise.sentence(floor.suggested)}  enter sets it", width, "good")
        else:
            found += text(f"suggested  {noise.sentence(floor.suggestion)}", width, "warn")
        if floor.levels is not None:
            found += text(noise.sentence(floor.levels), width)
        for doubt in floor.doubts:
            found += text(f"! {wording.doubt(doubt)}", width, "warn")
        found += text(
            f"Unrelated: median {floor.percentile(0.5):.3f}, 95 % below {floor.percentile(0.95):.3f}; "
            f"cosines {_span(floor.cosines)}",
            width,
            "muted",
        )
        return [*found, ([], None), *self._axis(floor, width)]

    def _axis(self, floor: NoiseFloor, width: int) -> list[Line]:
        room = max(8, (width - 34) // 2)
        counts = [_histogram(scores) for scores in (floor.nonsense, floor.related)]
        most = max(max(part) for part in counts) or 1
        hits = self._hits()
        head: list[Piece] = [
            (fit(" score", 7), "muted"),
            (fit("unrelated" if room < 16 else f"{len(floor.nonsense)} unrelated", room), "bad"),
            (fit("right" if room < 16 else f"{len(floor.related)} right chunks", room), "good"),
            (fit("passing", 12), "muted"),
            ("hits here", "muted"),
        ]
        rows: list[Line] = [(head, None)]
        gate = noise.bucket(floor.now.min_score)
        top = max([gate, *hits, *(at for part in counts for at in range(noise.BUCKETS) if part[at])])
        for at in reversed(range(top + 1)):
            passing = floor.curve[min(len(floor.curve) - 1, round(at / noise.BUCKETS * (len(floor.curve) - 1)))]
            rows.append(
                (
                    [
                        (f" {at / noise.BUCKETS:4.2f}  ", "muted"),
                        (_bar(NONSENSE, counts[0][at], most, room), "bad"),
                        (_bar(TEXT, counts[1][at], most, room), "good"),
                        (f"{passing.nonsense:4.0%} {passing.related:4.0%}   ", "muted"),
                        (hits.get(at, ""), "strong"),
                    ],
                    None,
                )
            )
            if at == gate:
                label = f"── minScore {floor.now.min_score:.2f} "
                rows.append(([(label, "mark"), ("─" * max(0, width - len(label)), "rule")], None))
        return rows

    def _hits(self) -> dict[int, str]:
        """The places of the hits on screen, by bucket."""
        trace = self.search.trace
        found: dict[int, list[str]] = {}
        for place, hit in enumerate(trace.recalled if trace is not None else (), 1):
            found.setdefault(noise.bucket(hit.score), []).append(str(place))
        return {at: " ".join(places[:4]) + (" …" if len(places) > 4 else "") for at, places in found.items()}

    # --- actions -------------------------------------------------------------------------------------------------

    def _set(self, value: float) -> None:
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.set(FLOOR.key, value))

    def _step(self, direction: int) -> None:
        if self.home.tuning is not None:
            self._set(float(stepped(FLOOR, self.home.tuning.settings.values[FLOOR.key].value, direction, fine=True)))

    def do_less(self) -> None:
        """A lower minScore."""
        self._step(-1)

    def do_more(self) -> None:
        """A higher minScore."""
        self._step(1)

    def do_apply(self) -> None:
        """Set the suggested minScore."""
        if self.noise is None:
            return
        suggested = self.noise.floor.suggestion
        if isinstance(suggested, noise.NoSuggestion):
            self.show_message(f"minScore to suggest: {noise.sentence(suggested)}.")
        else:
            self._set(suggested.min_score)
            self.show_message(f"Set: minScore {suggested.min_score:.2f}. {key_of('undo')} undoes it.")


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "none"


def _histogram(scores: Sequence[float]) -> list[int]:
    found = [0] * noise.BUCKETS
    for score in scores:
        found[noise.bucket(score)] += 1
    return found


def _bar(glyph: str, count: int, most: int, room: int) -> str:
    """A bar with its count behind it; never empty where something is."""
    if not count:
        return " " * room
    length = max(1, round(count / most * (room - 5)))
    return f"{glyph * length} {count}".ljust(room)


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
            said = "One half of the saved queries is searched for better knobs; the other half tests them."
            return text(said, width, "muted")
        from memory_tui.render import evaluation
        from memory_tui.tune.knob_search import Better

        found = self.outcome
        better = isinstance(found, Better)
        rows = [*text("", width), *text(evaluation.verdict(found), width, "good" if better else "strong"), ([], None)]
        for key, value in found.changes.items():
            if key != PAIRED:
                said = turn(key, value) if better else f"not: {turn(key, value)}"
                rows += text(said, width, "strong" if better else "muted", 3)
        if better:
            rows += text(f"enter applies this as one step; {key_of('undo')} undoes it.", width, "muted", 3)
        if not found.changes and not better:
            rows += text(f"Mark more hits as correct ({key_of('judge')}).", width, "muted")
        # The table of the command line, without its verdict and its options.
        table = [line for line in evaluation.outcome_lines(found) if "--set" not in line][1:]
        return [
            *rows,
            ([], None),
            *((([(f"  {one_line(line) if not line.startswith(' ') else line}", "")]), None) for line in table),
        ]

    def do_apply(self) -> None:
        """Turn the knobs as the outcome says."""
        from memory_tui.tune.knob_search import Better

        tuning, found = self.home.tuning, self.outcome
        if not isinstance(found, Better) or tuning is None:
            self.show_message("No evidence for other settings, so there is nothing to apply.")
            return
        self.home.turn(tuning.to(found.settings))
        self.show_message(f"The settings found are applied. {key_of('undo')} undoes it.")
