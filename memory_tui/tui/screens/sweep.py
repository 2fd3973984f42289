"""Better knobs by the saved questions: found on one half, judged on the other, or "no evidence"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from memory_tui.explain.wording import turn
from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.measuring import search_knobs
from memory_tui.tui.screens.report import Report
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.tui.screens.judging import Judging
    from memory_tui.tune.sweep import Outcome

METRIC = "ndcg@10"
PAIRED = "query.hybrid.textWeight"
"""Named with its partner, so not by itself."""


class SweepView(Report):
    """What the search of the knobs found; a applies it as one step."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("sweep"))
    PLACE = "sweep"
    KIND = "sweep"
    TITLE = "Better knobs by your labels"

    def __init__(self, search: Judging) -> None:
        super().__init__(search)
        self.outcome: Outcome | None = None
        self._applied = False

    def work(self) -> Callable[[Tell], object] | None:
        """Search from the knobs as they are when the report is opened."""
        engine, tuning, desk = self.home.engine, self.home.tuning, self.search.desk
        if engine is None or tuning is None or self.outcome is not None or self._progress:
            return None
        return search_knobs(engine, tuning.settings, desk.judged, tuple(desk.cases.values()), METRIC)

    def came(self, value: object) -> None:
        """The outcome."""
        self.outcome = cast("Outcome", value)

    def subtitle(self) -> str:
        """What is raised."""
        return f"raising {METRIC}; half of the questions are held out"

    def lines(self, width: int) -> Sequence[Line]:
        """The verdict, the knobs to turn, before and after, and what minScore and results trade."""
        if self.outcome is None:
            return text("Knobs are tried on one half of the saved questions; the other half judges.", width, "muted")
        from memory_tui.tune import outline
        from memory_tui.tune.sweep import Better

        found = self.outcome
        better = isinstance(found, Better)
        rows = [*text("", width), *text(outline.verdict(found), width, "good" if better else "strong"), ([], None)]
        for key, value in found.changes.items():
            if key != PAIRED:
                said = turn(key, value) if better else f"not: {turn(key, value)}"
                rows += text(said, width, "strong" if better else "muted", 3)
        if better:
            rows += text("a applies this as one step; u takes it back.", width, "muted", 3)
        if not found.changes and not better:
            rows += text("Judge more hits with v: questions with a right line are what is needed.", width, "muted")
        # The table of the command line, without its verdict and its options.
        table = [line for line in outline.outcome(found) if "--set" not in line][1:]
        return [
            *rows,
            ([], None),
            *((([(f"  {one_line(line) if not line.startswith(' ') else line}", "")]), None) for line in table),
        ]

    def do_apply(self) -> None:
        """Turn the knobs as the outcome says."""
        from memory_tui.tune.sweep import Better

        tuning, found = self.home.tuning, self.outcome
        if not isinstance(found, Better) or tuning is None:
            self.say("There is no evidence for other knobs, so there is nothing to apply.")
            return
        self.home.turn(tuning.to(found.settings))
        self.say("The knobs are set as found. u takes it back.")
