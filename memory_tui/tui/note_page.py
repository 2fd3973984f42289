"""A note made ready for the reader: safe lines, how wide each is, and where its chunks begin and end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.text.display import safe

if TYPE_CHECKING:
    from memory_tui.search.trace import ChunkRef
    from memory_tui.workspace.document import Document

LONGEST_LINE = 20_000
"""Characters of one line that are shown; the rest is counted."""

HEAD = 100_000
"""Characters of a long note that are shown before the rest is ready."""

_PIECE = 1 << 18
_WIDE_LEADS = bytes(range(0xE0, 0xF8))
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Page:
    """One note: `lines` are safe to show, `chunks` are (first, last) lines, 1-based and sorted.

    `widths` are upper bounds of terminal cells, exact for ASCII. `fences` are the rows (from 0) that open or close a
    block of code. `whole` is False while only the head of a long note is there.
    """

    path: str
    lines: Sequence[str]
    widths: Sequence[int]
    fences: Sequence[int]
    chunks: tuple[tuple[int, int], ...]
    notice: str = ""
    hash: str = ""
    size: int = 0
    whole: bool = True

    def covering(self, line: int) -> Iterator[int]:
        """The numbers (from 0) of the chunks that cover 1-based `line`; the last three where more share a long line."""
        at = bisect_right(self.chunks, (line, len(self.lines) + 1))
        for i in range(max(0, at - 3), at):
            if self.chunks[i][0] <= line <= self.chunks[i][1]:
                yield i

    def chunk_at(self, line: int) -> int:
        """The number (from 0) of the last chunk that covers 1-based `line`; -1 without one."""
        return max(self.covering(line), default=-1)

    def in_code(self, row: int) -> bool:
        """Whether the line `row` (from 0) belongs to a block of code, its fences included."""
        before = bisect_right(self.fences, row)
        return before % 2 == 1 or (before > 0 and self.fences[before - 1] == row)

    def citation(self, first: int, last: int) -> str:
        """`path#Lfirst-Llast`."""
        return f"{self.path}#L{first}-L{last}"


def make_page(document: Document, chunks: Sequence[ChunkRef]) -> Page:
    """`document` with its indexed `chunks`, for the reader."""
    return _page(document, document.text, chunks)


def head_of(document: Document) -> Page | None:
    """The beginning of a long note, to show while the rest and its chunks are made ready; None for a short one."""
    if len(document.text) < 4 * HEAD:
        return None
    end = document.text.rfind("\n", 0, HEAD)
    return _page(document, document.text[: end if end > 0 else HEAD], (), whole=False)


def _page(document: Document, text: str, chunks: Sequence[ChunkRef], *, whole: bool = True) -> Page:
    lines: list[str] = []
    widths: list[int] = []
    fences: list[int] = []
    for piece in _pieces(text):
        first = len(lines)
        lines += [_short(line) for line in safe(piece, keep_newlines=True).split("\n")]
        widths += [_width(line) for line in lines[first:]]
        if "```" in piece or "~~~" in piece:
            fences += [row for row in range(first, len(lines)) if _FENCE.match(lines[row])]
    spans = tuple(sorted((chunk.start_line, chunk.end_line) for chunk in chunks))
    return Page(document.path, lines, widths, fences, spans, _notice(document), document.hash, document.size, whole)


def _pieces(text: str) -> Iterator[str]:
    """`text` in pieces that end where lines do, small enough that no other thread waits long for one."""
    at = 0
    while True:
        end = text.find("\n", at + _PIECE)
        if end < 0:
            yield text[at:]
            return
        yield text[at:end]
        at = end + 1


def _short(line: str) -> str:
    more = len(line) - LONGEST_LINE
    return line if more <= 0 else f"{line[:LONGEST_LINE]} … {more:,} more characters in this line"


def _width(line: str) -> int:
    """Cells that `line` takes at most: characters of three or four bytes in UTF-8 may be wide, shorter ones are not."""
    if line.isascii():
        return len(line)
    data = line.encode("utf-8", "replace")
    return len(line) + len(data) - len(data.translate(None, _WIDE_LEADS))


def _notice(document: Document) -> str:
    parts = []
    if document.replaced:
        parts.append(f"{document.replaced:,} bytes are not UTF-8 and show as \ufffd")
    if document.nul:
        parts.append("it holds NUL characters")
    return "; ".join(parts)
