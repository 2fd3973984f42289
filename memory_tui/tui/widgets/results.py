"""The results of a search as a list. It has hits, gates, and misses with their reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content

from memory_tui import notices
from memory_tui.explain import wording
from memory_tui.explain.words import MatchedWords
from memory_tui.formatting import age_words, plural, short_age
from memory_tui.render.hit_text import ADDED, FADED, TEXT, VECTOR, HitText, age_of, hit_text, perfect, score_bar
from memory_tui.sanitize import one_line, safe
from memory_tui.search.trace import BeyondLimit, Candidate, ChunkRef, DisplacedByMmr, Trace, Unsearchable
from memory_tui.tui import draw
from memory_tui.tui.draw import Piece, fit, fit_path, marked
from memory_tui.tui.keymap import bindings
from memory_tui.tui.tuning import Answer, PlaceChange, changes
from memory_tui.tui.widgets.query import Cut, lost_at, outside
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.why_rows import Grade, no_grade

if TYPE_CHECKING:
    from memory_tui.backends.qmd import QmdAnswer, QmdHit

ONE_LINE_FROM = 78
"""Cells from which a hit and its text share a line."""
TWO_LINES_FROM = 28
"""Lines of the list from which a recalled hit has two lines of text of its own."""
SLIM = 60
"""Cells below which ages are short."""
INDENT, AGE, LEAST_TITLE = 5, 11, 6

LEGEND: tuple[Piece, ...] = (
    (VECTOR, "vector"),
    (" vector  ", "muted"),
    (TEXT, "text"),
    (" text  ", "muted"),
    (ADDED, "added"),
    (" added  ", "muted"),
    (FADED, "lost"),
    (" taken off ", "muted"),
)
"""What the parts of a bar mean."""


GRADES = {2: ("✓", "good"), 1: ("½", "good"), 0: ("✗", "bad")}
"""How a judged hit is marked: it answers, helps, or is wrong."""


class HitRow(Struct, frozen=True):
    """Number `place` of all candidates: the one at `index` among those recalled, or among the losers."""

    index: int
    place: int
    recalled: bool


class GateRow(Struct, frozen=True):
    """What stops the rows below it."""

    label: str


class MissingRow(Struct, frozen=True):
    """A file that no search can find as it is on disk."""

    item: Unsearchable


class OutsideRow(Struct, frozen=True):
    """A chunk that neither side proposed, with its cosine and text."""

    chunk: ChunkRef
    cosine: float
    text: str


class QmdRow(Struct, frozen=True):
    """A hit of QMD, which the agent gets in the place of those of the index."""

    hit: QmdHit


class SentenceRow(Struct, frozen=True):
    """A sentence in place of hits, or what to do next."""

    text: str
    style: str


def legend() -> Content:
    """What the parts of a bar mean, for a frame."""
    colours = {"vector": "$vector", "text": "$words", "added": "$added", "lost": "$quiet", "muted": "$quiet"}
    return Content.assemble(*((text, colours[name]) for text, name in LEGEND))


Row = HitRow | GateRow | MissingRow | OutsideRow | QmdRow | SentenceRow
COMPARED = "for comparison: the built-in index"


def rows_of_qmd(answer: QmdAnswer) -> Iterator[Row]:
    """QMD's hits, and what a person should know of them."""
    yield from (QmdRow(hit) for hit in answer.hits)
    sentences = [one_line(claim.sentence) for claim in answer.claims]
    if not answer.hits and sentences:
        yield from guide(*sentences)
    else:
        yield from (SentenceRow(sentence, "warn") for sentence in sentences)
    yield GateRow(COMPARED)


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
    rest = len(trace.recalled)
    for i in range(rest):
        yield HitRow(i, i + 1, True)
    beyond = _over_the_gate(trace)
    if beyond:
        yield GateRow(_limit_label(trace))
    for i in range(len(trace.lost)):
        if i == beyond:
            yield GateRow(_floor_label(trace))
        yield HitRow(i, rest + i + 1, False)
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
        reply = [
            OutsideRow(ref, cosine, answer.evidence.texts.get(ref.rowid, ""))
            for ref, cosine in outside(trace, answer.evidence)
        ]
        more = trace.funnel.chunks - trace.funnel.candidates - len(reply)
        return [*reply, *([GateRow(f"and {plural(more, 'chunk')} farther away")] if more > 0 else [])]
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


class HitList(RowList):
    """Hits; `open` reads the note at the cited lines."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("results"))
    PLACES: ClassVar[tuple[str, ...]] = ("results", "list")

    def __init__(self) -> None:
        super().__init__(id="results")
        self.rows: list[Row] = []
        self._trace: Trace | None = None
        self._moves: dict[int, PlaceChange] = {}
        self._grade: Grade = no_grade
        self._scale, self._now = 1.0, 0.0
        self._words = MatchedWords.of(None)
        self._chunks: Mapping[int, str] = {}
        self._texts: dict[tuple[int, int | None, str], HitText] = {}
        """What rows say, by chunk, best line and text: turned knobs change scores, and seldom these."""
        self._has_room = False
        """Whether there is room for more than one line of text a hit."""

    def show(
        self,
        answer: Answer,
        grade: Grade,
        *,
        compare: bool,
        keep: bool,
        cut: Cut | None = None,
        qmd: QmdAnswer | None = None,
    ) -> None:
        """List `answer`, or what was lost at `cut`; with `keep` the cursor stays on its chunk, else at the top."""
        self._grade = grade
        key = self.key if keep else None
        if self._trace is None or (self._trace.query, self._trace.profile) != (
            answer.trace.query,
            answer.trace.profile,
        ):
            self._words = MatchedWords.of(answer.trace)
            self._texts = {}
        if self._chunks is not answer.evidence.texts or self._now != answer.trace.now:
            self._texts = {}
        self._chunks = answer.evidence.texts
        self._trace, self._now, self._scale = answer.trace, answer.trace.now, perfect(answer.trace)
        before, self._moves = self._moves, changes(answer.trace, answer.baseline) if compare else {}
        new = rows_at(answer, cut) if cut is not None else list(rows_of(answer.trace))
        self.rows = [*rows_of_qmd(qmd), *new] if qmd is not None and cut is None else new
        if self.marks:
            self.marks.keep(row.chunk.id for row in (*answer.trace.recalled, *answer.trace.lost))
        self.rows_changed(key)
        if self._moves != before:
            self._show_dropped()

    def _show_dropped(self) -> None:
        """Scroll to the first hit that a turned knob dropped, as little as needed, where the cursor stays in sight."""
        dropped = (
            row
            for row, item in enumerate(self.rows)
            if isinstance(item, HitRow)
            and (hit := self._candidate(item)) is not None
            and (change := self._moves.get(hit.chunk.rowid)) is not None
            and change.mark == "out"
        )
        row = next(dropped, None)
        if row is not None and self._lines_between(self.cursor, row) <= self.size.height:
            self._show_row(row)

    def judged(self, grade: Grade) -> None:
        """Labels are what `grade` says from now on."""
        self._grade = grade
        self.redraw()

    def kind_of(self, row: int, /) -> Hashable:
        """What became of a hit: recalled, or the gate that stopped it."""
        item = self.rows[row]
        candidate = self._candidate(item) if isinstance(item, HitRow) else None
        return type(candidate.verdict).__name__ if candidate is not None else None

    @property
    def chosen(self) -> list[Candidate]:
        """The candidates that are marked, in the order of their places, else the one under the cursor."""
        trace = self._trace
        every = (*trace.recalled, *trace.lost) if trace is not None else ()
        marked = [row for row in every if row.chunk.id in self.marks] if self.marks else []
        return marked or [row for row in (self.hit,) if row is not None]

    def show_sentences(self, sentence: str, *next_steps: str) -> None:
        """List nothing but a sentence and what to do next."""
        self.rows = guide(sentence, *next_steps)
        self.marks.drop()
        self.rows_changed()

    @property
    def hit(self) -> Candidate | None:
        """The candidate under the cursor."""
        row = self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None
        return self._candidate(row) if isinstance(row, HitRow) else None

    @property
    def qmd_hit(self) -> QmdHit | None:
        """The hit of QMD under the cursor."""
        row = self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None
        return row.hit if isinstance(row, QmdRow) else None

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
        """Hits take two lines where the list is narrow, or high and broad; sentences as many as they need."""
        item = self.rows[row]
        if isinstance(item, SentenceRow):
            return len(draw.wrapped(item.text, width - 4))
        return self.height_of_hit(item, width) if isinstance(item, HitRow) else 1

    def lay_out(self, width: int) -> None:
        """Ask once how much room there is, and not for each row."""
        self._has_room = self.size.height >= TWO_LINES_FROM and self.size.width >= ONE_LINE_FROM
        super().lay_out(width)

    def key_of(self, row: int, /) -> Hashable:
        """The chunk; gates and missing files are skipped."""
        item = self.rows[row]
        if isinstance(item, OutsideRow):
            return item.chunk.id
        if isinstance(item, QmdRow):
            return f"qmd {item.hit.path}#L{item.hit.start_line}-L{item.hit.end_line}"
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
            case QmdRow():
                return _of_qmd(item.hit, width)
            case MissingRow():
                return _missing(item.item, width)
            case SentenceRow():
                return [(f"  {draw.wrapped(item.text, width - 4)[line]}", item.style)]
            case HitRow():
                candidate = self._candidate(item)
                return [] if candidate is None else self._hit(item, candidate, line, width)

    def _hit(self, hit: HitRow, candidate: Candidate, line: int, width: int) -> list[Piece]:
        """A line of a hit: its score with name and title, and its text, on the same line where there is no other."""
        text = self._text_of(candidate)
        alone = self.height_of_hit(hit, width) == 1
        if line == 0:
            bar = 6 if width < 60 else 9 if width < 100 else 14
            head = self._head(hit, candidate, bar)
            room = width - sum(cell_len(words) for words, _ in head)
            pieces = [*head, *self._named(hit, text, 10 if alone else 6, room)]
            if not alone:
                return pieces
            used = sum(cell_len(words) for words, _ in pieces)
            drawn, left = (0, len(text.body)), max(1, width - used - 2)
            return [*pieces, ("  ", ""), *self._body(hit, candidate, text, drawn, left)]
        room = width - INDENT
        lines = list(draw.wrap(text.body, room))
        start, end = lines[min(line, len(lines)) - 1] if line <= len(lines) else (len(text.body), len(text.body))
        last = line == self.height_of_hit(hit, width) - 1 and line < len(lines)
        drawn = (start, len(text.body)) if last else (start, end)
        return [(" " * INDENT, ""), *self._body(hit, candidate, text, drawn, room)]

    def height_of_hit(self, hit: HitRow, width: int) -> int:
        """Lines of one hit."""
        if width >= ONE_LINE_FROM and not self._has_room:
            return 1
        return 3 if self._has_room and hit.recalled else 2

    def _text_of(self, candidate: Candidate) -> HitText:
        text = self._chunks.get(candidate.chunk.rowid, candidate.snippet)
        seen = candidate.chunk.rowid, candidate.second.line if candidate.second is not None else None, text
        if seen not in self._texts:
            self._texts[seen] = hit_text(candidate, text, self._words, self._now)
        return self._texts[seen]

    def _named(self, hit: HitRow, text: HitText, least: int, room: int) -> list[Piece]:
        """Name and title in at most `room` cells."""
        style = "" if hit.recalled else "muted"
        short = fit_path(text.name, 24)
        name = f" {fit(short, max(least, cell_len(short)))}"
        left = room - cell_len(name) - 2
        if not text.title or left < LEAST_TITLE:
            return [(name, style)]
        title = fit(text.title, left).rstrip()
        # What stands in place of what was cut is no word.
        most = len(title) - (title != text.title)
        spans = [(first, min(last, most)) for first, last in text.title_marks]
        return [(name, style), ("  ", ""), *marked(title, spans, "strong" if hit.recalled else "muted")]

    def _body(
        self, hit: HitRow, candidate: Candidate, text: HitText, shown: tuple[int, int], room: int = 0
    ) -> list[Piece]:
        """The text from `shown`, after the reason why the chunk lost."""
        start, end = shown
        change = self._moves.get(candidate.chunk.rowid)
        reasons = [] if hit.recalled or start or isinstance(candidate.verdict, BeyondLimit) else [candidate.verdict]
        reason = "".join(map(notices.short_reason, reasons))
        if not hit.recalled and not start and change is not None and change.was is not None:
            reason += f"{reason and '; '}was {notices.ordinal(change.was)}"
        lead: list[Piece] = [(f"{reason}  ", "warn")] if reason else []
        room = (room or end) - sum(cell_len(words) for words, _ in lead)
        words = fit(text.body[start:], room).rstrip() if end == len(text.body) or not room else text.body[start:end]
        # What stands in place of what was cut is no word.
        most = len(words) - 1 if words.endswith("…") else len(words)
        moved = [(first - start, min(last - start, most)) for first, last in text.body_marks]
        return [*lead, *marked(words, moved, "" if hit.recalled else "muted")]

    def _head(self, hit: HitRow, candidate: Candidate, bar: int) -> list[Piece]:
        """place, judgment, change, score, bar, age; the change only while there is a baseline to compare with"""
        change = self._moves.get(candidate.chunk.rowid)
        mark = change.mark if change else ""
        colour = {"out": "bad", "new": "good", "=": "muted"}.get(mark) or ("good" if mark.startswith("+") else "warn")
        style = "strong" if hit.recalled else "muted"
        grade = self._grade(candidate.chunk)
        judged = GRADES[min(2, grade)] if grade is not None else (" ", "")
        days = age_of(candidate, self._now)
        age = f"{age_words(days):<{AGE}}" if self.size.width >= SLIM else f"{short_age(days):>6}"
        return [
            (f"{hit.place:>3}", style),
            judged,
            *([(f"{mark:>3}", colour)] if self._moves else []),
            ("■" if candidate.chunk.id in self.marks else " ", "mark"),
            (f"{candidate.score:5.3f} ", style),
            *score_bar(candidate, self._scale, bar),
            (f" {age}", "muted"),
        ]


def _gate(gate: GateRow, width: int) -> list[Piece]:
    head = f"── {gate.label} "
    room = width - len(head)
    return [(head, "mark"), ("─" * room, "rule")]


def _of_qmd(hit: QmdHit, width: int) -> list[Piece]:
    """Rank and place; QMD's number is no score of ours, and stands in the why pane."""
    room = max(24, width // 3)
    return [
        (f"{hit.rank:>3} QMD ", "strong"),
        (_place_cell(hit.path, hit.start_line, hit.end_line, room), ""),
        (fit(f"  {one_line(hit.snippet[:600])}", width - room - 8), ""),
    ]


def _place_cell(path: str, first: int, last: int, room: int) -> str:
    """A place in `room` cells."""
    lines = f":{first}-{last}"
    return fit(fit_path(safe(path), room - len(lines)) + lines, room)


def _outside(item: OutsideRow, width: int) -> list[Piece]:
    chunk, room = item.chunk, max(24, width // 3)
    return [
        (f"  -     cosine {item.cosine:.3f} ", "muted"),
        (_place_cell(chunk.path, chunk.start_line, chunk.end_line, room), ""),
        (fit(f"  {one_line(item.text[:600])}", width - room - 22), "muted"),
    ]


def _missing(item: Unsearchable, width: int) -> list[Piece]:
    room = max(12, width // 3)
    path = fit(fit_path(safe(item.path), room), room)
    return [("  -     ----- ", "muted"), (path, "muted"), (f"  {item.state}: {one_line(item.detail)}", "warn")]
