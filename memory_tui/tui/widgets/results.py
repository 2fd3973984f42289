"""The results list hits, gates, misses with their reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content

from memory_tui.core import profiles
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain import wording
from memory_tui.search.trace import BeyondLimit, Candidate, ChunkRef, DisplacedByMmr, Trace, Unsearchable
from memory_tui.tui import draw
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.keymap import bindings
from memory_tui.tui.tuning import Answer, PlaceChange, changes
from memory_tui.tui.widgets.query import Cut, lost_at, outside
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.why_rows import Grade, no_grade
from memory_tui.workspace.notes import shown_day

DECAY = "query.hybrid.temporalDecay.enabled"
ONE_LINE_FROM = 78
"""Cells from which a hit and its snippet share a line."""

LEGEND: tuple[Piece, ...] = (
    (draw.VECTOR, "vector"),
    (" vector  ", "muted"),
    (draw.TEXT, "text"),
    (" text  ", "muted"),
    (draw.ADDED, "added"),
    (" added  ", "muted"),
    (draw.LOST, "lost"),
    (" lost to age ", "muted"),
)
"""What the parts of a bar mean."""


GRADES = {2: ("✓", "good"), 1: ("½", "good"), 0: ("✗", "bad")}
"""How a judged hit is marked: it answers, helps, or is wrong."""


@dataclass(frozen=True, slots=True)
class HitRow:
    """Number `place` of all candidates: the one at `index` among those recalled, or among the losers."""

    index: int
    place: int
    recalled: bool


@dataclass(frozen=True, slots=True)
class GateRow:
    """What stops the rows below it."""

    label: str


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A file that no search can find as it is on disk."""

    item: Unsearchable


@dataclass(frozen=True, slots=True)
class OutsideRow:
    """A chunk that neither side proposed, with its cosine and text."""

    chunk: ChunkRef
    cosine: float
    text: str


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A sentence in place of hits, or what to do next."""

    text: str
    style: str


def legend() -> Content:
    """What the parts of a bar mean, for a frame."""
    colours = {"vector": "$vector", "text": "$words", "added": "$added", "lost": "$quiet", "muted": "$quiet"}
    return Content.assemble(*((text, colours[name]) for text, name in LEGEND))


Row = HitRow | GateRow | MissingRow | OutsideRow | SentenceRow


def guide(sentence: str, *next_steps: str) -> list[Row]:
    """Rows that say why there is nothing to list, and what to do."""
    return [
        SentenceRow("", ""),
        SentenceRow(sentence, "strong"),
        *(SentenceRow(step, "muted") for step in next_steps if step),
        SentenceRow("", ""),
    ]


def rows_of(trace: Trace) -> Iterator[Row]:
    """The rows of the list, top to bottom. Losers are named, not looked at: most are never scrolled to."""
    if trace.empty is not None:
        yield from guide(*wording.empty(trace.empty, trace.profile))
    kept = len(trace.recalled)
    for i in range(kept):
        yield HitRow(i, i + 1, True)
    beyond = _over_the_gate(trace)
    if beyond:
        yield GateRow(_limit_label(trace))
    for i in range(len(trace.lost)):
        if i == beyond:
            yield GateRow(_floor_label(trace))
        yield HitRow(i, kept + i + 1, False)
    if trace.unsearchable:
        yield GateRow("not searchable as they are on disk")
        for item in trace.unsearchable:
            yield MissingRow(item)


def rows_at(answer: Answer, cut: Cut) -> list[Row]:
    """What was lost at `cut` alone."""
    trace = answer.trace
    if cut == "disk":
        return [MissingRow(item) for item in trace.unsearchable]
    if cut == "pool":
        found = [
            OutsideRow(ref, cosine, answer.evidence.texts.get(ref.rowid, ""))
            for ref, cosine in outside(trace, answer.evidence)
        ]
        more = trace.funnel.chunks - trace.funnel.candidates - len(found)
        return [*found, *([GateRow(f"and {plural(more, 'chunk')} farther away")] if more > 0 else [])]
    return [HitRow(i, len(trace.recalled) + i + 1, False) for i in lost_at(trace, cut)]


def _over_the_gate(trace: Trace) -> int:
    """How many losers, which come by falling score, passed minScore all the same."""
    if trace.floor >= trace.settings.number("query.minScore"):
        return trace.funnel.over_gate - len(trace.recalled)
    # Under the relaxed floor a hit by meaning alone can lose with a higher score than one that passed.
    return max(
        (i + 1 for i, loser in enumerate(trace.lost) if isinstance(loser.verdict, BeyondLimit | DisplacedByMmr)),
        default=0,
    )


def _limit_label(trace: Trace) -> str:
    return f"not recalled: over the limit of {plural(trace.settings.whole('query.maxResults'), 'result')}"


def _floor_label(trace: Trace) -> str:
    least = trace.settings.number("query.minScore")
    if trace.floor < least:
        return f"not recalled: under minScore {least:.2f}, relaxed to {trace.floor:.2f} for keyword hits"
    return f"not recalled: under minScore {trace.floor:.2f}"


def perfect(trace: Trace) -> float:
    """The score of a perfect hit, which fills a bar: both weights, and all that can be added."""
    sides = sum(part.weight for part in (trace.recalled[0].vector, trace.recalled[0].text)) if trace.recalled else 1.0
    if profiles.get(trace.profile).age == "multiply":
        return max(1.0, sides)
    recency = trace.settings.number("recency.weight") if trace.settings.on(DECAY) else 0.0
    return max(1.0, sides + recency + (trace.settings.number("dateBoost") if trace.plan.time else 0.0))


def score_bar(candidate: Candidate, scale: float, width: int) -> list[Piece]:
    """What the score is made of: vector, text and added points, and as dots what age took away.

    Of the second stage, what words and letters give is text, and what meaning gives is vector.
    """
    factor = candidate.age.factor * candidate.first_share
    second = {"words": 0.0, "meaning": 0.0}
    if candidate.second is not None:
        for one in candidate.second.measures:
            second["meaning" if "meaning" in one.name else "words"] += one.points * candidate.second.weight
    lost = candidate.second.lost if candidate.second else 0.0
    parts = (
        (draw.VECTOR, candidate.vector.points * factor + second["meaning"]),
        (draw.TEXT, candidate.text.points * factor + second["words"] - lost),
        (draw.ADDED, candidate.age.points + candidate.date_points),
        (draw.LOST, candidate.hybrid * (1 - candidate.age.factor) + lost),
    )
    drawn = draw.bar(parts, scale, width)
    names = {draw.VECTOR: "vector", draw.TEXT: "text", draw.ADDED: "added", draw.LOST: "lost", " ": ""}
    pieces: list[Piece] = []
    for glyph, name in names.items():
        if count := drawn.count(glyph):
            pieces.append((glyph * count, name))
    return pieces


class HitList(RowList):
    """Hits; `open` reads the note at the cited lines."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("results"))
    PLACES: ClassVar[tuple[str, ...]] = ("results", "list")

    def __init__(self) -> None:
        super().__init__(id="results")
        self.rows: list[Row] = []
        self._trace: Trace | None = None
        self._marks: dict[int, PlaceChange] = {}
        self._grade: Grade = no_grade
        self._scale, self._now = 1.0, 0.0

    def show(self, answer: Answer, *, compare: bool, keep: bool, cut: Cut | None = None) -> None:
        """List `answer`, or what was lost at `cut`; with `keep` the cursor stays on its chunk, else at the top."""
        key = self.key if keep else None
        self._trace, self._now, self._scale = answer.trace, answer.trace.now, perfect(answer.trace)
        self._marks = changes(answer.trace, answer.baseline) if compare else {}
        self.rows = rows_at(answer, cut) if cut is not None else list(rows_of(answer.trace))
        self.rows_changed(key)

    def marked(self, grade: Grade) -> None:
        """Labels are what `grade` says from now on."""
        self._grade = grade
        self.refresh()

    def show_sentences(self, sentence: str, *next_steps: str) -> None:
        """List nothing but a sentence and what to do next."""
        self.rows = guide(sentence, *next_steps)
        self.rows_changed()

    @property
    def hit(self) -> Candidate | None:
        """The candidate under the cursor."""
        row = self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None
        return self._candidate(row) if isinstance(row, HitRow) else None

    @property
    def outsider(self) -> ChunkRef | None:
        """The chunk under the cursor, where neither side proposed it."""
        row = self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None
        return row.chunk if isinstance(row, OutsideRow) else None

    def _candidate(self, hit: HitRow) -> Candidate | None:
        if self._trace is None:
            return None
        return (self._trace.recalled if hit.recalled else self._trace.lost)[hit.index]

    def count(self) -> int:
        """Hits, gates and files that cannot be found."""
        return len(self.rows)

    def height_of(self, row: int, width: int, /) -> int:
        """Hits take two lines where the list is narrow; sentences as many as they need."""
        item = self.rows[row]
        if isinstance(item, SentenceRow):
            return len(draw.wrapped(item.text, width - 4))
        return 2 if width < ONE_LINE_FROM and isinstance(item, HitRow) else 1

    def key_of(self, row: int, /) -> Hashable:
        """The chunk; gates and missing files are skipped."""
        item = self.rows[row]
        if isinstance(item, OutsideRow):
            return item.chunk.id
        candidate = self._candidate(item) if isinstance(item, HitRow) else None
        return candidate.chunk.id if candidate else None

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """One line of one row."""
        item = self.rows[row]
        match item:
            case GateRow():
                return _gate(item, width)
            case OutsideRow():
                return _outside(item, width)
            case MissingRow():
                return _missing(item.item, width)
            case SentenceRow():
                return [(f"  {draw.wrapped(item.text, width - 4)[line]}", item.style)]
            case HitRow():
                candidate = self._candidate(item)
                if candidate is None:
                    return []
                if width >= ONE_LINE_FROM:
                    return self._wide(item, candidate, width)
                return (
                    self._first(item, candidate, width)
                    if line == 0
                    else [(" " * 13, ""), *self._tail(item, candidate, width - 13)]
                )

    def _wide(self, hit: HitRow, candidate: Candidate, width: int) -> list[Piece]:
        room, bar = (22, 10) if width < 100 else (32, 16)
        place = fit(_place(candidate, room, short=True), room)
        return [
            *self._head(hit, candidate, bar),
            (f" {place}  ", "" if hit.recalled else "muted"),
            *self._tail(hit, candidate, width - room - bar - 22),
        ]

    def _first(self, hit: HitRow, candidate: Candidate, width: int) -> list[Piece]:
        return [*self._head(hit, candidate, 14), (f" {_place(candidate, width - 35)}", "" if hit.recalled else "muted")]

    def _head(self, hit: HitRow, candidate: Candidate, bar: int) -> list[Piece]:
        """place, change, score, bar, age"""
        change = self._marks.get(candidate.chunk.rowid)
        mark = change.mark if change else ""
        colour = {"out": "bad", "new": "good", "=": "muted"}.get(mark) or ("good" if mark.startswith("+") else "warn")
        style = "strong" if hit.recalled else "muted"
        grade = self._grade(candidate.chunk)
        judged = GRADES[min(2, grade)] if grade is not None else (" ", "")
        return [
            (f"{hit.place:>3}", style),
            judged,
            (f"{mark:>3}", colour),
            (f" {candidate.score:5.3f} ", style),
            *score_bar(candidate, self._scale, bar),
            (f" {_age(candidate, self._now):>5}", "muted"),
        ]

    def _tail(self, hit: HitRow, candidate: Candidate, room: int) -> list[Piece]:
        snippet = one_line(candidate.snippet[:600])
        if hit.recalled:
            return [(fit(snippet, room), "")]
        reason = wording.reason(candidate.verdict)
        change = self._marks.get(candidate.chunk.rowid)
        if change is not None and change.was is not None:
            reason += f"; was {wording.ordinal(change.was)}"
        return [(reason, "warn"), (fit(f"  {snippet}", room - cell_len(reason)), "muted")]


def _age(candidate: Candidate, now: float) -> str:
    """The age as the score counts it; while it does not count, the age of the day in the note's name."""
    days = candidate.age.age_days
    if candidate.age.basis == "off" and (day := shown_day(candidate.chunk.path)) is not None:
        days = (datetime.fromtimestamp(now).date() - day).days
    return "none" if days is None else wording.age(days)


def _place(candidate: Candidate, room: int, *, short: bool = False) -> str:
    chunk = candidate.chunk
    lines = f":{chunk.start_line}-{chunk.end_line}"
    path = chunk.path.removeprefix("memory/") if short else chunk.path
    return fit_path(safe(path), max(1, room - len(lines))) + lines


def _gate(gate: GateRow, width: int) -> list[Piece]:
    head = f"── {gate.label} "
    room = width - len(head)
    return [(head, "mark"), ("─" * room, "rule")]


def _outside(item: OutsideRow, width: int) -> list[Piece]:
    room = max(24, width // 3)
    chunk = item.chunk
    lines = f":{chunk.start_line}-{chunk.end_line}"
    place = fit(fit_path(safe(chunk.path), room - len(lines)) + lines, room)
    return [
        (f"  -     cosine {item.cosine:.3f} ", "muted"),
        (place, ""),
        (fit(f"  {one_line(item.text[:600])}", width - room - 22), "muted"),
    ]


def _missing(item: Unsearchable, width: int) -> list[Piece]:
    room = max(12, width // 3)
    path = fit(fit_path(safe(item.path), room), room)
    return [("  -     ----- ", "muted"), (path, "muted"), (f"  {item.state}: {one_line(item.detail)}", "warn")]
