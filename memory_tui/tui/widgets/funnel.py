"""One line: how many chunks were left after each stage of the search, and how long the stages took."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from memory_tui.search.trace import Trace


def milliseconds(value: float) -> str:
    """A stage's time in a few characters; the only place where times become text, so that tests can pin it."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def stages(trace: Trace) -> str:
    """`412 chunks > vec 24, text 18 > 31 together > 2 lost to age > 5 over 0.35 > top 6 = 5 recalled`."""
    funnel = trace.funnel
    parts = [f"{funnel.chunks:,} chunks", f"vec {funnel.vector_pool}, text {funnel.text_pool}",
             f"{funnel.candidates} together"]
    if funnel.removed_by_decay:
        parts.append(f"{funnel.removed_by_decay} lost to age")
    if trace.floor > 0:
        parts.append(f"{funnel.over_gate} over {trace.floor:.2f}")
    if funnel.displaced:
        parts.append(f"{funnel.displaced} displaced by mmr")
    parts.append(f"top {trace.settings.whole('query.maxResults')} = {funnel.recalled} recalled")
    return " > ".join(parts)


class Funnel(Widget):
    """The stages of the last search."""

    def __init__(self) -> None:
        super().__init__()
        self._trace: Trace | None = None

    def show(self, trace: Trace | None) -> None:
        """Show the stages of `trace`."""
        if trace is not self._trace:
            self._trace = trace
            self.refresh()

    def render(self) -> Content:
        """Stages to the left, times to the right when there is room."""
        if self._trace is None:
            return Content("")
        left = " " + stages(self._trace)
        timings = self._trace.timings
        for times in ("  ".join(f"{stage} {milliseconds(ms)}" for stage, ms in timings.items()),
                      milliseconds(sum(timings.values()))):
            gap = self.size.width - len(left) - len(times) - 4
            if gap >= 2:
                return Content.assemble((left, "$quiet"), " " * gap, (f"{times} ms ", "$faint"))
        return Content.styled(left, "$quiet").truncate(self.size.width, ellipsis=True)
