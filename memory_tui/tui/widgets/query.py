"""The query box, with the funnel that counts the chunks left after each stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from memory_tui.sanitize import safe
from memory_tui.search.trace import BelowMinScore, BeyondLimit, DisplacedByMmr, LoweredByDecay, Trace, Verdict
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import ChunkRef

REST = 0.12
"""Seconds without a key press after which the question is asked."""
TO_BEGIN = (
    f"{key_of('next pane')}, then {key_of('remember')} writes the first line of today's log.",
    "MEMORY.md or memory/YYYY-MM-DD.md written elsewhere is found, too.",
)
"""How to begin where there are no notes."""
ASKED_BEFORE = f"What agents asked before: {key_of('next pane')}, then {key_of('go recalls')}."


class Box(Input):
    """A text box of one line without frame, whose cursor does not blink."""

    def __init__(self, value: str = "", *, placeholder: str, id: str) -> None:
        super().__init__(value, placeholder=placeholder, id=id, compact=True, select_on_focus=False, highlighter=None)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """What is pasted may hold control characters; they are shown, not obeyed."""
        return safe(value)


class FilterInput(Box):
    """Part of a file name; hidden until it is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("filter"))
    PLACES: ClassVar[tuple[str, ...]] = ("filter",)

    def __init__(self) -> None:
        super().__init__(placeholder="part of a file name", id="filter")
        self.display = False


class FindInput(Box):
    """What is looked for in a note; hidden until it is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("find"))
    PLACES: ClassVar[tuple[str, ...]] = ("find",)

    def __init__(self) -> None:
        super().__init__(placeholder="text to look for in this note", id="find")
        self.display = False


class FindText(Box):
    """The text that is looked for in the editor; hidden until it is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("finding"))
    PLACES: ClassVar[tuple[str, ...]] = ("finding",)

    def __init__(self) -> None:
        super().__init__(placeholder="text to find in this note", id="find-text")
        self.display = False


class QueryInput(Box):
    """The question; up brings back earlier ones, enter and down lead to the hits."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("query"))
    PLACES: ClassVar[tuple[str, ...]] = ("query",)

    def __init__(self, *, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self.earlier: list[str] = []
        self._back = 0

    async def _on_key(self, event: events.Key) -> None:
        # A slash where a question begins is the key that asks, pressed again: no question begins with it.
        if event.character == "/" and self.value in ("", self.selected_text):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def do_earlier(self) -> None:
        """Put the question before this one into the box."""
        # The newest is what stands in the box already, where that was asked.
        if self._back == 0 and self.earlier[-1:] == [self.value.strip()]:
            self._back = 1
        if self._back < len(self.earlier):
            self._back += 1
            self.value = self.earlier[-self._back]
            self.cursor_position = len(self.value)

    def remember(self) -> None:
        """Keep the question, once, for later."""
        self._back = 0
        query = self.value.strip()
        if query and self.earlier[-1:] != [query]:
            self.earlier.append(query)


class QueryBox(Horizontal):
    """The box with a prompt to the left and the outcome to the right."""

    class Asked(Message):
        """The question rested for a moment, or enter was pressed."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query_text = query

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._outcome = ""
        self._answered = self._level = ""
        self._shown = "", ""

    def compose(self) -> ComposeResult:
        """Prompt, box, what this question was answered by, outcome."""
        yield Static(" / ", id="prompt", markup=False)
        yield QueryInput(placeholder="ask as the agent would: words, a question, a day", id="query")
        yield Static("", id="answered", markup=False)
        yield Static("", id="outcome", markup=False)

    @property
    def input(self) -> QueryInput:
        """The text box itself."""
        return self.query_one(QueryInput)

    def outcome(self, text: str) -> None:
        """Say in a few words what came out; the box gives way only when there is something new to say."""
        self._outcome = text
        self._fit()

    def answered_by(self, text: str, level: str = "") -> None:
        """Say what this question was answered by, which can be less than what searches go by, and how surely."""
        self._answered, self._level = text, level
        self._fit()

    def _fit(self) -> None:
        """Say what it was answered by and how many hits there are, as far as the question leaves room.

        How surely stands before how many, and that before by what; it stays where the question has to scroll for it.
        """
        outcome, level = self.query_one("#outcome", Static), self._level
        words = self._outcome if outcome.display else ""
        whole = "  ".join(filter(None, (self._answered, level)))
        # The box has a cell for the cursor, each of the others one on either side. After a resize, its own size is old.
        room = self.screen.size.width - len(" / ") - cell_len(self.input.value) - 1
        ways = [(whole, words), (level, words), (level, "") if level else ("", words)]
        drawn = next((way for way in ways if sum(cell_len(text) + 2 for text in way if text) <= room), ways[-1])
        if drawn != self._shown:
            self._shown = drawn
            for part, text in zip((self.query_one("#answered", Static), outcome), drawn, strict=True):
                part.update(Content(f" {text} " if text else ""))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Ask when the typing rests."""
        event.stop()
        self._fit()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(REST, self._ask)

    def _ask(self) -> None:
        self._timer = None
        self.post_message(self.Asked(self.input.value))

    def ask_now(self) -> None:
        """Do not wait for the typing to rest."""
        if self._timer is not None:
            self._timer.stop()
            self._ask()

    @property
    def resting(self) -> bool:
        """Whether what is in the box has been asked."""
        return self._timer is None


Cut = Literal["pool", "age", "minScore", "mmr", "limit", "disk"]
"""Where a chunk can be lost."""

_VERDICTS: dict[Cut, type[Verdict]] = {
    "age": LoweredByDecay,
    "minScore": BelowMinScore,
    "mmr": DisplacedByMmr,
    "limit": BeyondLimit,
}

WORDS: dict[Cut, str] = {
    "pool": "Not a candidate by meaning or words",
    "age": "Under minScore because of age",
    "minScore": "Under minScore",
    "mmr": "Displaced by mmr",
    "limit": "Over the limit",
    "disk": "Not searchable as they are on disk",
}
SEPARATOR = " > "


def milliseconds(value: float) -> str:
    """A stage's time in a few characters; the only place where times become text, so that tests can pin it."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


class FunnelPiece(Struct, frozen=True):
    """A piece of the line; what was lost there, if it can be listed."""

    text: str
    cut: Cut | None = None


def stages(trace: Trace, *, short: bool = False) -> list[FunnelPiece]:
    """`412 chunks > vec 24, text 18 > 31 together > 2 lost to age > 5 over 0.35 > top 6 = 5 recalled`."""
    funnel = trace.funnel

    def word(text: str) -> str:
        return "" if short else f" {text}"

    parts = [
        FunnelPiece(f"{funnel.chunks:,} chunks", "disk" if trace.unsearchable else None),
        FunnelPiece(f"vec {funnel.vector_pool}, text {funnel.text_pool}"),
        FunnelPiece(f"{funnel.candidates}{word('together')}", "pool"),
    ]
    if funnel.removed_by_decay:
        parts.append(FunnelPiece(f"{funnel.removed_by_decay} {'aged' if short else 'lost to age'}", "age"))
    if trace.floor > 0:
        parts.append(FunnelPiece(f"{funnel.over_gate} over {trace.floor:.2f}", "minScore"))
    if funnel.displaced:
        parts.append(FunnelPiece(f"{funnel.displaced} {'mmr' if short else 'displaced by mmr'}", "mmr"))
    top = trace.settings.whole("query.maxResults")
    return [*parts, FunnelPiece(f"top {top} = {funnel.recalled}{word('recalled')}", "limit")]


def lost_at(trace: Trace, cut: Cut) -> list[int]:
    """The losers (positions in `trace.lost`) that were lost at `cut`."""
    kind = _VERDICTS.get(cut)
    return [i for i, loser in enumerate(trace.lost) if kind is not None and isinstance(loser.verdict, kind)]


def outside(trace: Trace, evidence: Evidence) -> list[tuple[ChunkRef, float]]:
    """Chunks that neither side proposed, with their cosine, nearest first; those that any profile could propose."""
    inside = {candidate.chunk.rowid for part in (trace.recalled, trace.lost) for candidate in part}
    reply = {row: ref for row in evidence.pool.tolist() if (ref := evidence.refs[row]).rowid not in inside}
    cosines = [0.0] * len(reply) if evidence.cosine is None else evidence.cosine[[*reply]].tolist()
    return sorted(zip(reply.values(), cosines, strict=True), key=lambda pair: -pair[1])


def cuts(trace: Trace) -> list[Cut]:
    """The cuts at which something was lost, in the order of the stages."""
    funnel = trace.funnel
    counts: dict[Cut, int] = {"disk": len(trace.unsearchable), "pool": funnel.chunks - funnel.candidates}
    for cut in _VERDICTS:
        counts[cut] = len(lost_at(trace, cut))
    return [cut for cut, count in counts.items() if count > 0]


class FunnelLine(Widget):
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

    def _fitted(self, trace: Trace) -> tuple[list[FunnelPiece], str]:
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


def _length(parts: Sequence[FunnelPiece]) -> int:
    return sum(cell_len(part.text) for part in parts) + len(SEPARATOR) * (len(parts) - 1)
