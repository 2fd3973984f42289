"""One line: how many chunks were left after each stage of the search, how long it took, and a way to what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from memory_tui.search.trace import BelowMinScore, BeyondLimit, DisplacedByMmr, LoweredByDecay, Trace, Verdict

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import ChunkRef

Cut = Literal["pool", "age", "minScore", "mmr", "limit", "disk"]
"""Where a chunk can be lost."""

_VERDICTS: dict[Cut, type[Verdict]] = {
    "age": LoweredByDecay,
    "minScore": BelowMinScore,
    "mmr": DisplacedByMmr,
    "limit": BeyondLimit,
}

WORDS: dict[Cut, str] = {
    "pool": "Not proposed by either side",
    "age": "Under minScore only by age",
    "minScore": "Under minScore",
    "mmr": "Displaced by mmr",
    "limit": "Over the limit",
    "disk": "Not searchable as they are on disk",
}
SEPARATOR = " > "


def milliseconds(value: float) -> str:
    """A stage's time in a few characters; the only place where times become text, so that tests can pin it."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


@dataclass(frozen=True, slots=True)
class Stage:
    """A piece of the line; what was lost there, if it can be listed."""

    text: str
    cut: Cut | None = None


def stages(trace: Trace, *, short: bool = False) -> list[Stage]:
    """`412 chunks > vec 24, text 18 > 31 together > 2 lost to age > 5 over 0.35 > top 6 = 5 recalled`."""
    funnel = trace.funnel

    def word(text: str) -> str:
        return "" if short else f" {text}"

    parts = [
        Stage(f"{funnel.chunks:,} chunks", "disk" if trace.unsearchable else None),
        Stage(f"vec {funnel.vector_pool}, text {funnel.text_pool}"),
        Stage(f"{funnel.candidates}{word('together')}", "pool"),
    ]
    if funnel.removed_by_decay:
        parts.append(Stage(f"{funnel.removed_by_decay} {'aged' if short else 'lost to age'}", "age"))
    if trace.floor > 0:
        parts.append(Stage(f"{funnel.over_gate} over {trace.floor:.2f}", "minScore"))
    if funnel.displaced:
        parts.append(Stage(f"{funnel.displaced} {'mmr' if short else 'displaced by mmr'}", "mmr"))
    top = trace.settings.whole("query.maxResults")
    return [*parts, Stage(f"top {top} = {funnel.recalled}{word('recalled')}", "limit")]


def lost_at(trace: Trace, cut: Cut) -> list[int]:
    """The losers (positions in `trace.lost`) that were lost at `cut`."""
    kind = _VERDICTS.get(cut)
    return [i for i, loser in enumerate(trace.lost) if kind is not None and isinstance(loser.verdict, kind)]


def outside(trace: Trace, evidence: Evidence) -> list[tuple[ChunkRef, float]]:
    """Chunks that neither side proposed, with their cosine, nearest first; those that any profile could propose."""
    inside = {candidate.chunk.rowid for part in (trace.recalled, trace.lost) for candidate in part}
    cosine = evidence.cosine
    found = [
        (ref, float(cosine[row]) if cosine is not None else 0.0)
        for row, ref in evidence.refs.items()
        if ref.rowid not in inside
    ]
    return sorted(found, key=lambda pair: -pair[1])


def cuts(trace: Trace) -> list[Cut]:
    """The cuts at which something was lost, in the order of the stages."""
    funnel = trace.funnel
    counts: dict[Cut, int] = {"disk": len(trace.unsearchable), "pool": funnel.chunks - funnel.candidates}
    for cut in _VERDICTS:
        counts[cut] = len(lost_at(trace, cut))
    return [cut for cut, count in counts.items() if count > 0]


class Funnel(Widget):
    """The stages of the last search; a click lists what was lost there."""

    class Chosen(Message):
        """What was lost at a stage is to be listed."""

        def __init__(self, cut: Cut) -> None:
            super().__init__()
            self.cut: Cut = cut

    def __init__(self) -> None:
        super().__init__()
        self._trace: Trace | None = None
        self._cut: Cut | None = None

    def show(self, trace: Trace | None, cut: Cut | None = None) -> None:
        """Show the stages of `trace`; what was lost at `cut` is listed now."""
        if trace is not self._trace or cut != self._cut:
            self._trace, self._cut = trace, cut
            self.refresh()

    def render(self) -> Content:
        """Stages to the left, times to the right; both in fewer words where there is little room."""
        if self._trace is None:
            return Content("")
        parts, times = self._fitted(self._trace)
        pieces: list[Content | tuple[str, str]] = [(" ", "")]
        for number, part in enumerate(parts):
            style = "bold reverse" if part.cut is not None and part.cut == self._cut else "$quiet"
            pieces += [(SEPARATOR if number else "", "$faint"), (part.text, style)]
        left = Content.assemble(*pieces)
        gap = self.size.width - cell_len(left.plain) - cell_len(times) - 1
        if gap < 2:
            return left.truncate(self.size.width, ellipsis=True)
        return Content.assemble(left, " " * gap, (f"{times} ", "$faint"))

    def _fitted(self, trace: Trace) -> tuple[list[Stage], str]:
        every = "  ".join(f"{stage} {milliseconds(ms)}" for stage, ms in trace.timings.items()) + " ms"
        most = " ".join(f"{stage} {milliseconds(ms)}" for stage, ms in trace.timings.items() if stage != "read") + " ms"
        total = f"{milliseconds(sum(trace.timings.values()))} ms"
        for short, times in ((False, every), (False, most), (True, every), (True, most), (False, total), (True, total)):
            parts = stages(trace, short=short)
            if _length(parts) + len(times) + 4 <= self.size.width:
                return parts, times
        return stages(trace, short=True), ""

    def on_click(self, event: events.Click) -> None:
        """List what was lost at the stage under the mouse."""
        if self._trace is None:
            return
        left = 1
        for part in self._fitted(self._trace)[0]:
            if left <= event.x < left + cell_len(part.text):
                if part.cut is not None:
                    self.post_message(self.Chosen(part.cut))
                return
            left += cell_len(part.text) + len(SEPARATOR)


def _length(parts: Sequence[Stage]) -> int:
    return sum(cell_len(part.text) for part in parts) + len(SEPARATOR) * (len(parts) - 1)
