"""The rows of a why pane at each depth."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from rich.cells import cell_len

from memory_tui import notices
from memory_tui.explain import wording
from memory_tui.explain.wording import ScoreLine, explain, file_line, in_a_line, terms_line
from memory_tui.explain.words import MatchedWords
from memory_tui.sanitize import one_line, safe
from memory_tui.search.trace import Candidate, ChunkRef, Recalled, Trace
from memory_tui.tui.draw import Piece, fit_path, marked, wrap

if TYPE_CHECKING:
    from memory_tui.explain.counterfactuals import Change, Flips, Rephrasings
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.search.evidence import Evidence


Row = list[Piece]
MOST = 40
"""Lines that are quoted."""
AROUND = 12
"""Lines that are quoted before a line that was asked about."""
SIDES = {True: ("▌ ", "mark"), False: ("│ ", "rule")}
"""The sign before a line that was asked about, and before others."""


def quote_rows(
    text: str, first: int, width: int, words: MatchedWords, asked: int | None = None
) -> Iterator[list[Piece]]:
    """`text`, whose lines begin with number `first` in the note, in rows of `width` cells, around line `asked`."""
    lines = safe(text, keep_newlines=True).split("\n")
    start = 0 if asked is None else max(0, asked - first - AROUND)
    for number, line in enumerate(lines[start : start + MOST], first + start):
        spans = words.spans(line)
        for begin, end in wrap(line, width - 2):
            new = [(max(begin, a) - begin, min(end, b) - begin) for a, b in spans if a < end and b > begin]
            yield [SIDES[number == asked], *marked(line[begin:end], new, "strong" if number == asked else "")]


Grade = Callable[[ChunkRef], int | None]


def no_grade(chunk: ChunkRef) -> int | None:
    """Nothing is marked."""
    del chunk
    return None


class Subject(Struct, frozen=True):
    """A chunk under one answer. `candidate` is None for a line that no chunk holds; `answer` is there for a line.

    `changes` are the flips found so far, `working` tells that more are being looked for; `questions` are the words to
    add, None before they were looked for. `grade` says what labels make of a chunk.
    """

    evidence: Evidence
    trace: Trace
    candidate: Candidate | None
    answer: WhyNot | None = None
    changes: Flips | None = None
    questions: Rephrasings | None = None
    working: str = ""
    grade: Grade = no_grade
    written: dict[int, tuple[list[Keyed], list[Keyed]]] = field(default_factory=dict)
    """By width the rows around what would change it, which are other ones for another chunk or answer alone: what is
    found meanwhile leaves them as they are.
    """

    @property
    def key(self) -> str:
        """What the subject is about, so that a pane knows whether it is another one."""
        if self.answer is not None:
            return f"{self.answer.place.path}:{self.answer.place.line}"
        return self.candidate.chunk.id if self.candidate is not None else ""

    @property
    def recalled(self) -> bool:
        """Whether it is among the hits."""
        fate = self.answer.fate if self.answer is not None else self.candidate.verdict if self.candidate else None
        return isinstance(fate, Recalled)

    @property
    def flips(self) -> tuple[Change, ...]:
        """The changes that turn the verdict, least harm first; those of several knobs last."""
        return (*self.changes.singles, *self.changes.sets) if self.changes is not None else ()


LABEL, VALUE = 8, 7
NAMED = 3
"""Chunks that are named of those that a change brings in or pushes out."""

Keyed = tuple[Row, Hashable]
"""A row, and what the cursor stands on there; None where it does not stand."""


def _detail(line: ScoreLine) -> str:
    """What the step is made of, safe and on one line; double blanks, which part its groups, stay."""
    return "  ".join(one_line(group) for group in line.detail.split("  "))


def _folded(detail: str, width: int) -> Iterator[str]:
    """`detail` in lines of at most `width` cells, broken between its groups if possible."""
    line = ""
    for group in detail.split("  "):
        joined = f"{line}  {group}" if line else group
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            yield line
        *whole, (start, end) = wrap(group, width)
        yield from (group[a:b].rstrip() for a, b in whole)
        line = group[start:end]
    yield line


def sum_rows(lines: Iterable[ScoreLine], width: int) -> Iterator[Row]:
    """One step of arithmetic after the other, values in a column at the right edge, a rule above each result."""
    for line in lines:
        value = line.figure
        if line.operation == "=":
            yield [(" " * (width - VALUE) + "─" * VALUE, "rule")]
        label = line.label
        *first, last = _folded(_detail(line), max(12, width - LABEL - (len(value) + 2 if value else 0)))
        for part in first:
            yield [(f"{label:<{LABEL}}", "muted"), (part, "")]
            label = ""
        space = " " * max(0, width - LABEL - cell_len(last) - len(value))
        yield [(f"{label:<{LABEL}}", "muted"), (last + space, ""), (value, "strong" if line.operation == "=" else "")]


def packed_rows(lines: Iterable[ScoreLine], width: int) -> Iterator[Row]:
    """Facts for a pane of few lines: side by side, as many as fit a line; longer ones on lines of their own."""
    row: Row = []
    used = 0
    for line in lines:
        detail = _detail(line).replace("  ", " ")
        pieces: Row = [
            (line.label, "muted"),
            (f" {detail}" if detail else "", ""),
            (f" {line.figure}" if line.value is not None else "", "strong"),
        ]
        length = sum(cell_len(text) for text, _ in pieces)
        if row and used + 3 + length > width:
            yield row
            row, used = [], 0
        if length > width:
            yield from _in_lines(pieces, width)
            continue
        row += [("   ", ""), *pieces] if row else pieces
        used += length + (3 if used else 0)
    if row:
        yield row


def _in_lines(pieces: Row, width: int) -> Iterator[Row]:
    """A fact that is longer than a line: its label, then all of it, set in."""
    (label, style), *rest = pieces
    words = "".join(text for text, _ in rest).strip()
    for number, (start, end) in enumerate(wrap(words, width - len(label) - 1)):
        yield [(" " * len(label) if number else label, style), (f" {words[start:end].rstrip()}", "")]


def folded(text: str, width: int, style: str = "", indent: int = 0) -> Iterator[Row]:
    """`text` in lines of `width` cells, those after the first set in by `indent`."""
    for number, (start, end) in enumerate(wrap(text, width - indent)):
        yield [(" " * (indent if number else 0), ""), (text[start:end], style)]


def rows_of(subject: Subject, depth: int, width: int, *, packed: bool) -> list[Keyed]:
    """The whole pane: at `depth` 0 the sum and what would change it, at 1 the full record, at 2 the raw JSON."""
    if depth == 2:
        return [(row, None) for row in _json_rows(subject, width)]
    if depth == 1 and subject.candidate is not None:
        return [(row, None) for row in _record_rows(subject, width)]
    return list(_packed(subject, width) if packed else _pane(subject, width))


def _pane(subject: Subject, width: int) -> Iterator[Keyed]:
    if width not in subject.written:
        subject.written[width] = _around_changes(subject, width)
    above, below = subject.written[width]
    yield from above
    yield from _changes(subject, width)
    yield from below


def _around_changes(subject: Subject, width: int) -> tuple[list[Keyed], list[Keyed]]:
    """What stands above and below what would change a hit."""
    above: list[Row] = [*_heading(subject, width)]
    if subject.candidate is not None:
        # The whole sum at once; its steps below may need more lines than there are.
        above += folded(in_a_line(subject.candidate, subject.trace), width, "strong", 2)
    above.append([])
    lines, facts = _steps(subject), _facts(subject)
    after = next((at for at, line in enumerate(lines, 1) if line.label == "text"), None)
    if after is not None:
        # Which words matched belongs to the points that they made.
        lines[after:after] = [line for line in facts if line.label == "terms"]
        facts = [line for line in facts if line.label != "terms"]
    if lines:
        above += [*sum_rows(lines, width), []]
    below = (*sum_rows(facts, width), [], *_quote(subject, width))
    return [(row, None) for row in above], [(row, None) for row in below]


def _packed(subject: Subject, width: int) -> Iterator[Keyed]:
    if subject.candidate is not None:
        # Half a number would be another one, so the sum goes on below.
        yield from ((row, None) for row in folded(in_a_line(subject.candidate, subject.trace), width, "strong", 2))
    else:
        yield from ((row, None) for row in _heading(subject, width))
    facts = _facts(subject)
    # Which words matched is what most people want to know, so it stands where it is always in sight.
    yield from ((row, None) for row in packed_rows([line for line in facts if line.label == "terms"], width))
    steps = [(row, None) for row in packed_rows([item for item in _steps(subject) if item.label in _PACKED], width)]
    changes = list(_changes(subject, width, packed=True))
    # A hit is there by its sum; what is not there wants to be recalled.
    yield from [*steps, *changes] if subject.recalled else [*changes, *steps]
    yield from ((row, None) for row in packed_rows([line for line in facts if line.label != "terms"], width))
    yield from ((row, None) for row in _quote(subject, width))


_PACKED = frozenset({"vector", "text", "hybrid", "rerank", "decay", "recency", "mmr"})
"""The steps of a sum that a pane of few lines shows."""


def _heading(subject: Subject, width: int) -> Iterator[Row]:
    """Where it is, and what became of it."""
    answer, candidate = subject.answer, subject.candidate
    place = candidate.chunk if candidate is not None else None
    name = f"{place.path}:{place.start_line}-{place.end_line}" if place else answer.place.path if answer else ""
    query = f"  line {answer.place.line}" if answer is not None and place and answer.place.line else ""
    yield [(fit_path(safe(name), width - len(query)), "strong"), (query, "muted")]
    fate = answer.fate if answer is not None else candidate.verdict if candidate is not None else None
    if fate is not None:
        style = "good" if isinstance(fate, Recalled) and not fate.kept_back else "warn"
        text = wording.sentence(answer.fate) if answer is not None else wording.sentence(fate)
        yield from folded(one_line(text), width, style)
    if answer is not None and answer.place.remark:
        yield from folded(one_line(answer.place.remark), width, "warn")


def _steps(subject: Subject) -> list[ScoreLine]:
    answer = subject.answer
    if answer is not None:
        from memory_tui.render.hit_text import steps

        return steps(answer.best, subject.trace)[:-1] if answer.best is not None else []
    return explain(subject.candidate, subject.trace) if subject.candidate is not None else []


def _facts(subject: Subject) -> list[ScoreLine]:
    facts = [ScoreLine("notice", f"{notice.message} {notice.next_step}") for notice in subject.trace.notices]
    if subject.candidate is None:
        return facts
    chunk = subject.candidate.chunk
    text = subject.evidence.texts.get(chunk.rowid, subject.candidate.snippet)
    if subject.answer is not None and subject.answer.best is not None:
        text = subject.answer.best.text
    terms = terms_line(text, subject.trace, chunk=chunk)
    others = [
        ScoreLine("also", f"{other.chunk.citation}  {wording.label(other.fate).lower()}")
        for other in (subject.answer.others[:NAMED] if subject.answer else ())
    ]
    return [terms, file_line(chunk.path, subject.trace), *others, *facts]


# --- what would change it ------------------------------------------------------------------------------------------


def _changes(subject: Subject, width: int, *, packed: bool = False) -> Iterator[Keyed]:
    """The flips, each a row to stand on, then what no knob does alone, and the words to add."""
    changes = subject.changes
    if changes is None and not subject.working:
        return
    recalled = changes is not None and changes.recalled
    label = f"{'to drop' if recalled else 'recall':<{LABEL}}" if subject.flips else " " * LABEL
    for number, reply in enumerate(subject.flips):
        for row in _flip(reply, label, subject, width, packed=packed):
            yield row, f"flip {number}"
            label = " " * LABEL
    if changes is not None and not changes.singles and not subject.working:
        yield [(label, "muted"), (notices.no_flip(recalled=recalled), "")], None
        label = " " * LABEL
        if changes.no_pair is not None:
            yield [(label, "muted"), (notices.NO_PAIR, "")], None
    alone = wording.none_alone(changes.not_alone) if changes is not None else ""
    words = [(alone, "muted")] if alone else []
    query = subject.questions
    if query is not None and query.rephrased:
        words.append((f"query: {'  or '.join(one_line(wording.rephrased(q)) for q in query.rephrased)}", "good"))
    elif query is not None and query.none is not None and changes is not None and not recalled:
        words.append((one_line(query.none.message), "muted"))
    if subject.working:
        words.append((f"{subject.working} ...", "muted"))
    for text, style in words:
        for part in _folded(text.replace("   ", "  "), width - LABEL):
            yield [(label, "muted"), (part, style)], None
            label = " " * LABEL
    if not packed:
        yield [], None


def _flip(found: Change, label: str, subject: Subject, width: int, *, packed: bool) -> Iterator[Row]:
    effects = [
        (wording.effects(verb, refs, subject.grade), refs)
        for verb, refs in (("brings in", found.comes_in), ("pushes out", found.drops_out))
    ]
    turn = wording.change(found) if found.place else wording.turned(found)
    short = "  ".join(words for words, refs in effects if refs)
    beside = f"   {short}" if short and packed and LABEL + cell_len(turn) + 3 + cell_len(short) <= width else ""
    for number, row in enumerate(folded(turn, width - LABEL, "strong")):
        yield [(label if not number else " " * LABEL, "muted"), *row, (beside, "muted")]
    if packed:
        for row in folded(short, width - LABEL - 2, "muted") if short and not beside else ():
            yield [(" " * (LABEL + 2), ""), *row]
        return
    for words in filter(None, (wording.accepted(found), wording.saved(found.saved))):
        for start, end in wrap(words, width - LABEL - 2):
            yield [(" " * (LABEL + 2), ""), (words[start:end], "muted")]
    for words, refs in effects:
        if refs:
            for start, end in wrap(text := f"{words}: {_named(refs)}", width - LABEL - 2):
                yield [(" " * (LABEL + 2), ""), (text[start:end], "muted")]


def _named(refs: Sequence[ChunkRef]) -> str:
    more = f" and {len(refs) - NAMED} more" if len(refs) > NAMED else ""
    places = (f"{ref.path.removeprefix('memory/')}:{ref.start_line}-{ref.end_line}" for ref in refs[:NAMED])
    return f"{', '.join(map(one_line, places))}{more}"


# --- the text, the record, the raw data ----------------------------------------------------------------------------


def _quote(subject: Subject, width: int) -> Iterator[Row]:
    """What the agent reads of a hit; of a line that was asked about, its chunk around it."""
    answer, candidate = subject.answer, subject.candidate
    words = MatchedWords.of(subject.trace)
    if answer is not None and answer.best is not None and (query := answer.place.line) is not None:
        best = answer.best
        chunk = best.chunk
        yield [(f"The chunk of line {query}, lines {chunk.start_line} to {chunk.end_line}:", "muted")]
        yield from quote_rows(best.text, chunk.start_line, width, words, query)
    elif candidate is not None:
        yield [(f"What the agent reads, from line {candidate.snippet_line}:", "muted")]
        first = candidate.snippet_line
        yield from quote_rows(candidate.snippet.strip("\n"), first, width, words)


def _record_rows(subject: Subject, width: int) -> Iterator[Row]:
    if subject.candidate is None:
        return
    yield from [*_heading(subject, width), [], *sum_rows(_steps(subject), width)]


def _json_rows(subject: Subject, width: int) -> Iterator[Row]:
    from memory_tui.explain import trace_json

    answer, candidate = subject.answer, subject.candidate
    if answer is not None:
        data = trace_json.why(answer, subject.changes, subject.questions)
    elif candidate is not None:
        data = trace_json.candidate(candidate)
        changes = subject.changes
        data["flips"] = [trace_json.flip(reply) for reply in changes.singles] if changes else []
        data["sets"] = [trace_json.change_set(reply) for reply in changes.sets] if changes else []
    else:
        data = {}
    for line in json.dumps(data, indent=2, ensure_ascii=False).split("\n"):
        inner = len(line) - len(line.lstrip())
        yield from folded(safe(line), width, "", min(inner + 2, width // 2))
