"""Why a hit has its score: arithmetic that adds up line by line, the gate, the words, and the text itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.content import Content

from memory_tui.explain import wording
from memory_tui.explain.why import Line, count_terms, explain, terms_line
from memory_tui.search.trace import Candidate, Recalled, Trace
from memory_tui.text.display import one_line, safe
from memory_tui.tui.paint import Piece, fit_path, wrap
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence

LABEL, VALUE = 8, 7
QUOTED = 40
"""Lines of the chunk that are shown."""

EMPTY = "The arithmetic of the hit under the cursor, line by line."

Row = list[Piece]


def _value(line: Line) -> str:
    return f"{line.operation or ' '} {line.value:.3f}" if line.value is not None else ""


def _detail(line: Line) -> str:
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


def sum_rows(lines: Iterable[Line], width: int) -> Iterator[Row]:
    """One step of arithmetic after the other, values in a column at the right edge, a rule above each result."""
    for line in lines:
        value = _value(line)
        if line.operation == "=":
            yield [(" " * (width - VALUE) + "─" * VALUE, "rule")]
        label = line.label
        *first, last = _folded(_detail(line), max(12, width - LABEL - (VALUE + 2 if value else 0)))
        for part in first:
            yield [(f"{label:<{LABEL}}", "muted"), (part, "")]
            label = ""
        space = " " * max(0, width - LABEL - cell_len(last) - len(value))
        yield [(f"{label:<{LABEL}}", "muted"), (last + space, ""), (value, "strong" if line.operation == "=" else "")]


def packed_rows(lines: Iterable[Line], width: int) -> Iterator[Row]:
    """The same arithmetic for a pane of few lines: steps side by side, as many as fit a line."""
    row: Row = []
    used = 0
    for line in lines:
        detail = _detail(line).replace("  ", " ")
        pieces: Row = [(line.label, "muted"), (f" {detail}" if detail else "", ""),
                       (f" {_value(line)}" if line.value is not None else "", "strong")]
        length = sum(cell_len(text) for text, _ in pieces)
        if row and used + 3 + length > width:
            yield row
            row, used = [], 0
        row += [("   ", ""), *pieces] if row else pieces
        used += length + (3 if used else 0)
    yield row


def rows_of(candidate: Candidate, trace: Trace, evidence: Evidence, width: int, *, packed: bool) -> list[Row]:
    """The whole pane for one candidate."""
    text = evidence.texts.get(candidate.chunk.rowid, candidate.snippet)
    steps = explain(candidate, trace)
    facts = [terms_line(count_terms(trace.plan, text, trace.profile)),
             *(Line("notice", f"{notice.message} {notice.next_step}") for notice in trace.notices)]
    if packed:
        return [*packed_rows(steps, width), *packed_rows(facts, width), *_quote(candidate, width)]
    place = f"{candidate.chunk.path}:{candidate.chunk.start_line}-{candidate.chunk.end_line}"
    return [[(fit_path(safe(place), width), "strong")], *_verdict(candidate, width), [], *sum_rows(steps, width), [],
            *sum_rows(facts, width), [], *_quote(candidate, width)]


def _verdict(candidate: Candidate, width: int) -> Iterator[Row]:
    sentence = one_line(wording.sentence(candidate.verdict))
    style = "good" if isinstance(candidate.verdict, Recalled) else "warn"
    for start, end in wrap(sentence, width):
        yield [(sentence[start:end], style)]


def _quote(candidate: Candidate, width: int) -> Iterator[Row]:
    yield [(f"What the agent reads, from line {candidate.snippet_line}:", "muted")]
    for line in safe(candidate.snippet, keep_newlines=True).strip("\n").split("\n")[:QUOTED]:
        for start, end in wrap(line, width - 2):
            yield [("│ ", "rule"), (line[start:end], "")]


class WhyPane(RowList):
    """The arithmetic of the hit under the list's cursor; it scrolls and has no cursor of its own."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="why")
        self._shown: tuple[Candidate, Trace, Evidence] | None = None
        self._rows: Sequence[Row] = ()

    def show(self, candidate: Candidate | None, trace: Trace | None, evidence: Evidence | None) -> None:
        """Explain `candidate`; nothing without one."""
        before = self._shown[0].chunk.id if self._shown else ""
        if candidate is None or trace is None or evidence is None:
            self._shown = None
        else:
            self._shown = (candidate, trace, evidence)
        self.rows_changed()
        if candidate is None or candidate.chunk.id != before:
            self.scroll_home(animate=False, immediate=True, force=True)

    def lay_out(self, width: int) -> None:
        """Write the rows for this width."""
        packed = self.size.height < 10
        if self._shown is None:
            self._rows = [[(EMPTY[start:end], "muted")] for start, end in wrap(EMPTY, width)]
            title = "Why"
        else:
            candidate = self._shown[0]
            self._rows = rows_of(*self._shown, max(20, width), packed=packed)
            chunk = candidate.chunk
            place = f"{fit_path(safe(chunk.path), 40)}:{chunk.start_line}-{chunk.end_line}  " if packed else ""
            title = f"Why  {place}{wording.label(candidate.verdict)}"
        self.name_frame(Content(title))
        super().lay_out(width)

    def count(self) -> int:
        """Lines of the pane."""
        return len(self._rows)

    def key_of(self, _row: int, /) -> Hashable:
        """Nothing to stand on."""
        return None

    def draw(self, row: int, _line: int, _width: int, /) -> Iterable[Piece]:
        """One line."""
        return self._rows[row]
