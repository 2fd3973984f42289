"""A note as rows of the index: its chunks under their headings, with what a person should know of it; and back.

The last text is what a store holds of a note, put together from its chunks. They lack blank ends, and those of 2026.9
the annotations; where the hash of the note agrees, the text is exact.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from typing import NamedTuple

from memory_tui.index.index_write import NewChunk, NewFile
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store
from memory_tui.tokens import indexed_form
from memory_tui.workspace import chunking_2026_9, transcripts
from memory_tui.workspace.annotations import NOTHING_SAID, without_markers
from memory_tui.workspace.chunking import Chunk, cap_bytes, chunk_id, chunk_text
from memory_tui.workspace.chunking_2026_9 import AnnotatedChunk, chunk_note
from memory_tui.workspace.days import date_of, shown_day
from memory_tui.workspace.markdown import headings
from memory_tui.workspace.notes import Document, MediaDocument, utf16_of
from memory_tui.workspace.titles import title_of
from memory_tui.workspace.transcripts import Transcript

LONGEST = 200
"""Characters of a heading that count; a whole file in one `#` line would otherwise be repeated in every chunk."""


class Headings:
    """Where the headings of a note are."""

    def __init__(self, text: str) -> None:
        self._lines: list[int] = []
        self._trails: list[tuple[str, ...]] = []
        levels: dict[int, str] = {}
        for line, level, title in headings(text):
            if title:
                levels = {above: name for above, name in levels.items() if above < level} | {level: title[:LONGEST]}
                self._lines.append(line)
                self._trails.append(tuple(levels.values()))

    def above(self, line: int) -> tuple[str, ...]:
        """Return the nearest heading of each level above `line` (1-based), outermost first."""
        at = bisect_left(self._lines, line)
        return self._trails[at - 1] if at else ()


def cut(read: Document, source: str, recipe: Recipe, started: float) -> NewFile:
    """Return the rows of `read`, whose reading began at `started`; those of a transcript with lines of its file.

    Raises Unreadable for absurdly long lines.
    """
    noted = _cut(read, source, recipe)
    above = Headings("" if isinstance(read, Transcript) else read.text).above
    pieces = on_lines_of_file(read, [each.chunk for each in noted])
    seen: dict[str, int] = {}
    chunks = []
    for piece, (_, notes_of) in zip(pieces, noted, strict=True):
        identifier = chunk_id(source, read.path, piece, recipe.identity.model)
        occurrence = seen[identifier] = seen.get(identifier, -1) + 1
        body = "" if occurrence else indexed_form(read.path, above(piece.start_line), piece.text)
        chunks.append(
            NewChunk(identifier, occurrence, piece.start_line, piece.end_line, piece.hash, piece.text, body, notes_of)
        )
    title, dated = title_of(read.path, read.text), date_of(read.path, read.text)
    return NewFile(read.path, source, read.hash, read.mtime_ns, read.size, remarks(read), started, title, dated, chunks)


def _cut(read: Document, source: str, recipe: Recipe) -> list[AnnotatedChunk]:
    """Cut `read` by the rules of the release that `recipe` names, each chunk with what its annotations say."""
    if isinstance(read, MediaDocument):
        return [AnnotatedChunk(Chunk(1, 1, read.text, read.hash), NOTHING_SAID)]
    if recipe.chunking == chunking_2026_9.VERSION:
        # Only notes have annotations and entries, and those of a transcript would be somebody's words.
        return chunk_note(read.text, read.path, limit=recipe.chunk_bytes, plain=source == transcripts.SOURCE)
    pieces = cap_bytes(chunk_text(read.text, recipe.chunk_tokens, recipe.chunk_overlap), recipe.chunk_bytes)
    return [AnnotatedChunk(piece, NOTHING_SAID) for piece in pieces]


def on_lines_of_file(read: Document, pieces: list[Chunk]) -> list[Chunk]:
    """Return `pieces` of the text of `read` with the lines of its file, which for a transcript are others."""
    if not isinstance(read, Transcript):
        return pieces
    return [
        piece._replace(start_line=read.lines[piece.start_line - 1], end_line=read.lines[piece.end_line - 1])
        for piece in pieces
    ]


def remarks(read: Document) -> str:
    """Return what of a note matches no question although it was indexed; empty for none of it."""
    if read.nul and utf16_of(read.text.encode("latin-1", "replace")):
        return "it looks like UTF-16, so its words match no question; save it as UTF-8"
    remarks = []
    if read.replaced:
        pieces = "1 byte sequence is" if read.replaced == 1 else f"{read.replaced:,} byte sequences are"
        remarks.append(f"{pieces} not UTF-8, so words with them match no question")
    if isinstance(read, Transcript) and read.skipped:
        remarks.append(
            "1 line is not JSON and was skipped"
            if read.skipped == 1
            else f"{read.skipped:,} lines are not JSON and were skipped"
        )
    if read.nul:
        remarks.append("it holds NUL characters, which part words")
    return "; ".join(remarks)


# --- and back -------------------------------------------------------------------------------------------------------


class LastText(NamedTuple):
    """The text of the note `path` as it was indexed at `at` (epoch seconds); `exact` where it is so to the letter."""

    path: str
    text: str
    at: float
    exact: bool


_DAILY = re.compile(r"memory/(?:[^/]+/)*[^/]+\Z")


def is_daily(path: str) -> bool:
    """Say whether a note is one that an agent appends to day by day."""
    return bool(_DAILY.match(path)) and not path.startswith("memory/dreaming/") and shown_day(path) is not None


def last_text(source: Store, path: str) -> LastText | None:
    """Put the note `path` together as `source` holds it; None where it holds nothing of it.

    Raises IndexUnavailable, Cancelled.
    """
    row = source.file(path)
    chunks = source.chunks_of(path) if row is not None else []
    if row is None or not chunks:
        return None
    texts = source.texts([chunk.rowid for chunk in chunks])
    lines: dict[int, str] = {}
    for chunk in chunks:
        parts = texts.get(chunk.rowid, "").split("\n")
        if len(parts) != chunk.end_line - chunk.start_line + 1:
            # A line that is longer than a chunk: its pieces stand in one line, or are chunks of their own.
            parts = ["".join(parts)]
        for number, part in enumerate(parts, chunk.start_line):
            line = lines.get(number, "")
            # What overlaps is the end of a line that stands whole in the chunk before.
            lines[number] = line if line.endswith(part) else part if part.endswith(line) else line + part
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    for tried in (text, f"{text}\n"):
        if hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest() == row.hash:
            return LastText(path, tried, row.indexed_at, True)
    return LastText(path, text if text.endswith("\n") else f"{text}\n", row.indexed_at, False)


def lost_lines(before: str, after: str) -> list[str]:
    """List the lines of `before` that `after` lacks; blanks at their ends, blank lines and annotations do not count."""
    left = Counter(_lines(after))
    lost = []
    for line in _lines(before):
        if left[line]:
            left[line] -= 1
        else:
            lost.append(line)
    return lost


def shrank(before: str, after: str) -> bool:
    """Say whether a note lost lines: it has fewer than before, or more than half of them are other ones."""
    lost, old = len(lost_lines(before, after)), len(_lines(before))
    return lost > 0 and (len(_lines(after)) < old or 2 * lost > old)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in without_markers(text).split("\n") if line.strip()]
