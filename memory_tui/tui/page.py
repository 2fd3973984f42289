"""A note made ready for the reader: safe lines, what each line is, and where its chunks begin and end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memory_tui.text.display import safe

if TYPE_CHECKING:
    from memory_tui.search.trace import ChunkRef
    from memory_tui.workspace.document import Document

LONGEST_LINE = 20_000
"""Characters of one line that are shown; the rest is counted."""

Kind = Literal["", "head", "code", "quote"]

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_HEAD = re.compile(r"\s{0,3}#{1,6}\s")
_QUOTE = re.compile(r"\s{0,3}>")


@dataclass(frozen=True, slots=True)
class Page:
    """One note: `lines` are safe to show, `chunks` are (first, last) lines, 1-based and sorted."""

    path: str
    lines: tuple[str, ...]
    kinds: tuple[Kind, ...]
    chunks: tuple[tuple[int, int], ...]
    notice: str = ""

    def covering(self, line: int) -> Iterator[int]:
        """The numbers (from 0) of the chunks that cover 1-based `line`; the last three where more share a long line."""
        at = bisect_right(self.chunks, (line, len(self.lines) + 1))
        for i in range(max(0, at - 3), at):
            if self.chunks[i][0] <= line <= self.chunks[i][1]:
                yield i

    def chunk_at(self, line: int) -> int:
        """The number (from 0) of the last chunk that covers 1-based `line`; -1 without one."""
        return max(self.covering(line), default=-1)

    def citation(self, first: int, last: int) -> str:
        """`path#Lfirst-Llast`."""
        return f"{self.path}#L{first}-L{last}"


def make_page(document: Document, chunks: Sequence[ChunkRef]) -> Page:
    """`document` with its indexed `chunks`, for the reader."""
    lines = tuple(_short(line) for line in safe(document.text, keep_newlines=True).split("\n"))
    spans = tuple(sorted((chunk.start_line, chunk.end_line) for chunk in chunks))
    return Page(document.path, lines, tuple(_kinds(lines)), spans, _notice(document))


def _short(line: str) -> str:
    more = len(line) - LONGEST_LINE
    return line if more <= 0 else f"{line[:LONGEST_LINE]} … {more:,} more characters in this line"


def _kinds(lines: Sequence[str]) -> Iterator[Kind]:
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            yield "code"
        elif fenced:
            yield "code"
        elif _HEAD.match(line):
            yield "head"
        else:
            yield "quote" if _QUOTE.match(line) else ""


def _notice(document: Document) -> str:
    parts = []
    if document.replaced:
        parts.append(f"{document.replaced:,} bytes are not UTF-8 and show as \ufffd")
    if document.nul:
        parts.append("it holds NUL characters")
    return "; ".join(parts)
