"""Two rankings of the same evidence side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on
from textual.widget import Widget

from memory_tui import notices, profiles
from memory_tui.errors import MemoryTuiError
from memory_tui.explain import wording
from memory_tui.render.hit_text import perfect, score_bar
from memory_tui.sanitize import one_line, safe
from memory_tui.search.rank import can_rank
from memory_tui.search.trace import Candidate, Trace
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.tuning import dated
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.cancel import Stop
    from memory_tui.engine.engine import Engine
    from memory_tui.search.evidence import Evidence
    from memory_tui.settings import Settings
    from memory_tui.tui.views.search.search_view import SearchView


_MAKE = "make"
"""Key of the row that offers to make the other index."""


class NamedRanking(Struct, frozen=True):
    """One ranking of some evidence under a name."""

    name: str
    evidence: Evidence
    settings: Settings
    days: int = 0


class Pair(Struct, frozen=True):
    """One chunk and what each side made of it; None where it was no candidate."""

    left: Candidate | None
    right: Candidate | None

    @property
    def candidate(self) -> Candidate:
        """Either of the two."""
        reply = self.left or self.right
        assert reply is not None
        return reply


def place_of(candidate: Candidate | None) -> int:
    """The place among the recalled hits; 0 for one that is not."""
    return getattr(candidate.verdict, "place", 0) if candidate is not None and recalled(candidate) else 0


def recalled(candidate: Candidate | None) -> bool:
    """Whether the agent is given it."""
    return candidate is not None and wording.gate(candidate.verdict) == ""


def pairs(left: Trace, right: Trace, *, same_index: bool = True) -> list[Pair]:
    """The chunks that either side recalls, aligned; by the better of both places.

    Chunks of two indexes are aligned where they share lines of a note.
    """
    if same_index:
        sides = [{c.chunk.rowid: c for c in (*trace.recalled, *trace.lost)} for trace in (left, right)]
        target = dict.fromkeys(c.chunk.rowid for c in (*left.recalled, *right.recalled))
        reply = [Pair(sides[0].get(rowid), sides[1].get(rowid)) for rowid in target]
    else:
        reply = [Pair(hit, _sharing_lines(hit, right)) for hit in left.recalled]
        seen = {pair.right.chunk.rowid for pair in reply if pair.right is not None}
        reply += [Pair(_sharing_lines(hit, left), hit) for hit in right.recalled if hit.chunk.rowid not in seen]
    return sorted(
        reply,
        key=lambda pair: (
            min(p for p in (place_of(pair.left), place_of(pair.right)) if p),
            place_of(pair.left) or 1000,
        ),
    )


def _sharing_lines(hit: Candidate, other: Trace) -> Candidate | None:
    """The candidate of another index that shares most lines with `hit`, a recalled one before others."""
    new, reply, most = hit.chunk, None, (False, 0)
    for candidate in (*other.recalled, *other.lost):
        chunk = candidate.chunk
        shared = min(new.end_line, chunk.end_line) - max(new.start_line, chunk.start_line) + 1
        if chunk.path == new.path and shared > 0 and (recalled(candidate), shared) > most:
            reply, most = candidate, (recalled(candidate), shared)
    return reply


class SideBySideView(View):
    """Aligned rows of two sides; each side can be any profile, the knobs as they are, or the baseline."""

    PLACE = "side_by_side"
    MORE_PLACES = ("notes",)
    AUTO_FOCUS = "#sides"

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        answer = below.shown.answer
        assert answer is not None
        self._evidence = answer.evidence
        self._others: dict[str, Evidence] = {}
        self._waiting = ""
        self._at = [0, 1]
        self._pairs: list[Pair] = []
        self._traces: tuple[Trace, Trace] | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="sides")

    def on_mount(self) -> None:
        """The recommended profile against the newest of OpenClaw's."""
        super().on_mount()
        self.tuned()
        plan = self.home.engine.plan if self.home.engine is not None else None
        if plan is not None and plan.sibling is not None and self._elsewhere and plan.sibling.exists():
            self._ask_beside()

    @property
    def _elsewhere(self) -> list[str]:
        """The profiles that go by other chunks than those of this index, and of which nothing is known yet."""
        every = (name for name in profiles.PROFILES if not can_rank(self._evidence, name))
        return [name for name in every if name not in self._others]

    @task("beside")
    async def _ask_beside(self) -> None:
        """Ask the index that the newest release's rules cut, which is made first where it is not there."""
        from memory_tui.engine.openclaw_answer import by_newest

        def ask(engine: Engine, stop: Stop) -> Evidence:
            with by_newest(engine, stop) as other:
                return other.search.gather(query, stop, source)

        query, source = self._evidence.query, self._evidence.source
        self._waiting = "its own index is asked ..."
        self.tuned()
        reply = await self.home.jobs.stoppable(ask)
        if isinstance(reply, MemoryTuiError):
            self._waiting = sentence_of(reply)
        else:
            left = self.sides[self._at[0] % len(self.sides)].name
            self._others[profiles.NEWEST] = reply
            names = [side.name for side in self.sides]
            self._at = [names.index(left), names.index(profiles.NEWEST)]
        self.tuned()

    @property
    def sides(self) -> list[NamedRanking]:
        """What can stand on a side."""
        engine, tuning = self.home.engine, self.home.tuning
        if engine is None or tuning is None:
            return []
        # A profile that goes by other chunks would rank these by half of its rules.
        usable = {name: self._evidence for name in profiles.PROFILES if can_rank(self._evidence, name)} | self._others
        reply = [
            NamedRanking(name, usable[name], engine.plan.with_profile(name), tuning.days)
            for name in profiles.PROFILES
            if name in usable
        ]
        if tuning.tuned:
            reply.append(NamedRanking("as tuned", self._evidence, tuning.settings, tuning.days))
        base = tuning.baseline
        return [*reply, NamedRanking(f"baseline {base.name}", self._evidence, base.settings, base.days)]

    def tuned(self, *, keep: bool = True) -> None:
        """Rank both sides."""
        del keep
        engine, sides = self.home.engine, self.sides
        if engine is None or not sides:
            return
        left, right = (sides[at % len(sides)] for at in self._at)
        traces = [engine.search.rank(dated(side.evidence, side.days), side.settings) for side in (left, right)]
        self._traces = traces[0], traces[1]
        self._pairs = pairs(*self._traces, same_index=left.evidence is right.evidence)
        both = sum(recalled(pair.left) and recalled(pair.right) for pair in self._pairs)
        only = [sum(recalled(getattr(pair, side)) for pair in self._pairs) - both for side in ("left", "right")]
        self.query_one(Rows).show(
            self._lines,
            f"{left.name} | {right.name}",
            f"both recall {both}, only {left.name} {only[0]}, only {right.name} {only[1]}",
        )
        self.update_hints()

    # --- rows ----------------------------------------------------------------------------------------------------

    def _lines(self, width: int) -> list[Line]:
        if self._traces is None:
            return []
        cell = 31 if width >= 100 else 24
        sides = self.sides
        names = [sides[at % len(sides)].name for at in self._at]
        query = text(f"for: {one_line(self._evidence.query, 200)}", width, "muted")
        for trace in self._traces:
            for row in trace.notices:
                query += text(row.message, width, "warn") if row.kind == "other_vectors" else []
        for name in self._elsewhere:
            query += self._beside(name, width)
        head: list[Piece] = [*((fit(f" {name}", cell), "head") for name in names), ("place", "muted")]
        rows = [self._row(number, pair, cell, width) for number, pair in enumerate(self._pairs)]
        return [*query, (head, None), *(rows or text("Neither side recalls anything.", width, "strong"))]

    def _beside(self, name: str, width: int) -> list[Line]:
        """What can be done about a profile that needs other chunks."""
        engine = self.home.engine
        if self._waiting:
            return text(f"{name}: {self._waiting}", width, "muted")
        if engine is None or engine.plan.sibling is None:
            return text(
                f"{name} cuts notes into other chunks: memory-tui --profile {name} makes its index", width, "muted"
            )
        row = text(f"{name} cuts notes into other chunks: enter here makes its index", width, "strong")
        return [(pieces, _MAKE) for pieces, _ in row]

    def _row(self, number: int, pair: Pair, cell: int, width: int) -> Line:
        assert self._traces is not None
        pieces: list[Piece] = []
        for candidate, trace in zip((pair.left, pair.right), self._traces, strict=True):
            pieces += _cell(candidate, trace, cell)
        chunk = pair.candidate.chunk
        lines = f":{chunk.start_line}-{chunk.end_line}"
        room = min(width - 2 * cell - 1, 32)
        place = fit(fit_path(safe(chunk.path), room - len(lines)) + lines, room)
        rest = width - 2 * cell - room - 2
        snippet = fit(f"  {one_line(pair.candidate.snippet[:300])}", rest) if rest > 8 else ""
        once = recalled(pair.left) != recalled(pair.right)
        return [*pieces, (place, "strong" if once else ""), (snippet, "muted")], number

    @property
    def pair(self) -> Pair | None:
        """The chunk under the cursor."""
        key = self.query_one(Rows).key
        return self._pairs[key] if isinstance(key, int) and key < len(self._pairs) else None

    # --- actions -------------------------------------------------------------------------------------------------

    def _turn(self, side: int) -> None:
        self._at[side] = (self._at[side] + 1) % len(self.sides)
        self.tuned()

    def do_left_side(self) -> None:
        """Put the next ranking on the left."""
        self._turn(0)

    def do_right_side(self) -> None:
        """Put the next ranking on the right."""
        self._turn(1)

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.update_hints()

    @on(RowList.Chosen)
    def _read(self) -> None:
        place = self.place_in_note()
        if place is not None:
            self.read_note(place[0], place[1:])
        elif self.query_one(Rows).key == _MAKE:
            self._ask_beside()
        else:
            self.show_message("There is no note under the cursor.")

    def do_open(self) -> None:
        """Read the note at the cited lines, or make the other index on its row."""
        self._read()

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The chunk under the cursor."""
        pair = self.pair
        chunk = pair.candidate.chunk if pair is not None else None
        return (chunk.path, chunk.start_line, chunk.end_line) if chunk is not None else None

    def line_in_note(self) -> int:
        """Its first line."""
        place = self.place_in_note()
        return place[1] if place else 1

    def text_in_note(self) -> str:
        """Its text."""
        pair = self.pair
        if pair is None:
            return ""
        candidate = pair.candidate
        at = self._at[0 if pair.left is candidate else 1]
        texts = self.sides[at % len(self.sides)].evidence.texts
        return safe(texts.get(candidate.chunk.rowid, candidate.snippet), keep_newlines=True)


def _cell(candidate: Candidate | None, trace: Trace, width: int) -> Iterator[Piece]:
    """Place, score and bar; of one that is not recalled the reason."""
    if candidate is None:
        yield fit("   -       no candidate", width), "muted"
    elif recalled(candidate):
        bar = list(score_bar(candidate, perfect(trace), width - 13))
        used = sum(len(part) for part, _ in bar)
        yield f"{place_of(candidate):>4} {candidate.score:.3f} ", "strong"
        yield from bar
        yield " " * (width - 11 - used), ""
    else:
        yield fit(f"   - {candidate.score:.3f} {one_line(notices.short_reason(candidate.verdict))}", width), "warn"
