"""Chunking cuts a note exactly as OpenClaw 2026.9 does.

Curated files are cut entry by entry. Characters weigh 1 to 16 (chunking version 5): a chunk weighs at most 1600, of
which 320 are repeated in the next. The sizes are fixed. Annotations are taken out first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memory_tui import jsstring
from memory_tui.workspace.annotations import NOTHING_SAID, Annotations, read_annotations, without_markers
from memory_tui.workspace.chunking import (
    AT_HEADINGS,
    CURATED,
    MAX_INPUT_BYTES,
    Check,
    Chunk,
    cap_bytes,
    chunk_sections,
    chunk_text,
    pieces,
    sealed,
)

VERSION = "2026.9"
"""What an index that is cut by these rules is marked with."""
WEIGHT = 1600
OVERLAP = 320
_HEADING = re.compile(r"#{1,6}(?:\s|$)")

# (first, last code point, weight); anything else below U+10000 weighs 1, above it 2.
_RANGES = (
    (0xB7, 0xB7, 4),
    (0x2C7, 0x2C7, 8),
    (0x2C9, 0x2CB, 8),
    (0x2D9, 0x2D9, 8),
    (0x2EA, 0x2EB, 8),
    (0x305, 0x305, 8),
    (0x323, 0x323, 8),
    (0x1100, 0x11FF, 12),
    (0x2E80, 0x2FFF, 12),
    (0x3000, 0x319F, 4),
    (0x31A0, 0x4DFF, 12),
    (0x4E00, 0x9FA5, 4),
    (0x9FA6, 0x9FFF, 12),
    (0xA000, 0xA4FF, 12),
    (0xA700, 0xA707, 12),
    (0xA960, 0xA97F, 12),
    (0xAC00, 0xD7AF, 4),
    (0xD7B0, 0xD7FF, 12),
    (0xF900, 0xFAFF, 12),
    (0xFE10, 0xFE4F, 8),
    (0xFF01, 0xFF60, 4),
    (0xFF61, 0xFFDC, 8),
    (0xFFE0, 0xFFE6, 8),
    (0x16FE0, 0x16FFF, 16),
    (0x1AFF0, 0x1AFFF, 16),
    (0x1B000, 0x1B16F, 16),
    (0x1D360, 0x1D371, 12),
    (0x1F200, 0x1F2FF, 16),
    (0x20000, 0x2FA1F, 16),
    (0x30000, 0x3347F, 16),
)
_STARTS = [first for first, _, _ in _RANGES]


class AnnotatedChunk(NamedTuple):
    """A chunk, and what the annotations of its entry say."""

    chunk: Chunk
    annotations: Annotations


class _Segment(NamedTuple):
    """A line, or a piece of a long one, with the number of its line and what it takes of a chunk."""

    text: str
    line: int
    size: int


def chunk_note(
    text: str, path: str, *, limit: int = MAX_INPUT_BYTES, plain: bool = False, check: Check = str
) -> list[AnnotatedChunk]:
    """Return the chunks of the note `path`, none of them blank, longer ones than `limit` bytes of UTF-8 cut on.

    `check` is called before each and may raise. Of chunks that are equal to the letter on the same lines there is one.
    A `plain` text has no annotations.
    """
    text = jsstring.well_formed(text)
    clean = text if plain else without_markers(text)
    raw = text.replace("\r\n", "\n").split("\n")
    by_chunk: dict[Chunk, Annotations] = {}
    for block in blocks(clean.split("\n"), by_entries=path in CURATED):
        of_entry = read_annotations(raw[block.first - 1 : block.last], path) if block.entry else None
        of_entry = NOTHING_SAID if plain else of_entry
        for start, end, piece in _packed(block):
            check()
            annotations = read_annotations(raw[start - 1 : end], path) if of_entry is None else of_entry
            for part in pieces(piece, limit):
                by_chunk.setdefault(sealed(start, end, part), annotations)
    return [AnnotatedChunk(chunk, annotations) for chunk, annotations in by_chunk.items()]


def chunks_of(
    text: str,
    path: str,
    chunking: str,
    sizes: tuple[int, int],
    limit: int = MAX_INPUT_BYTES,
    *,
    plain: bool = False,
    check: Check = str,
) -> list[AnnotatedChunk]:
    """Return the chunks of a note by the rules of `chunking`; `sizes` are tokens of a chunk and of its overlap."""
    if chunking == VERSION:
        return chunk_note(text, path, limit=limit, plain=plain, check=check)
    pieces = chunk_text(text, *sizes, check) if chunking != AT_HEADINGS else chunk_sections(text, path, *sizes, check)
    return [AnnotatedChunk(piece, NOTHING_SAID) for piece in cap_bytes(pieces, limit)]


def weight(text: str) -> int:
    """Return what `text` takes of a chunk."""
    return len(text) if text.isascii() else sum(map(_weight_of, text))


@cache
def _weight_of(character: str) -> int:
    code = ord(character)
    at = bisect_right(_STARTS, code) - 1
    if at >= 0 and code <= _RANGES[at][1]:
        return _RANGES[at][2]
    return 2 if code > 0xFFFF else 1


class NoteBlock(NamedTuple):
    """Lines `first` to `last` that are packed by themselves; in an `entry` they share their annotations."""

    lines: Sequence[str]
    first: int
    last: int
    entry: bool


def blocks(lines: Sequence[str], *, by_entries: bool) -> Iterator[NoteBlock]:
    """Yield all lines as one block; of curated files each entry and each section."""
    if not by_entries:
        yield NoteBlock(lines, 1, len(lines), False)
        return
    opened = [i for i, line in enumerate(lines) if i == 0 or line.startswith("- ") or _HEADING.match(line)]
    for start, end in zip(opened, [*opened[1:], len(lines)], strict=True):
        yield NoteBlock(lines[start:end], start + 1, end, lines[start].startswith("- "))


def _segments(block: NoteBlock) -> Iterator[_Segment]:
    for number, line in enumerate(block.lines, block.first):
        if len(line) <= WEIGHT and line.isascii():
            yield _Segment(line, number, len(line) + 1)
            continue
        rest = line
        while rest:
            prefix = jsstring.utf16_head(rest, WEIGHT)
            rest = rest[len(prefix) :]
            for part in _parts(prefix):
                yield _Segment(part, number, weight(part) + 1)
        if not line:
            yield _Segment("", number, 1)


def _parts(prefix: str) -> Iterator[str]:
    """Yield `prefix` in pieces that each weigh at most what a chunk may."""
    if weight(prefix) <= WEIGHT:
        yield prefix
        return
    start, heavy = 0, 0
    for at, character in enumerate(prefix):
        cost = _weight_of(character)
        if heavy + cost > WEIGHT:
            yield prefix[start:at]
            start, heavy = at, 0
        heavy += cost
    yield prefix[start:]


def _packed(block: NoteBlock) -> Iterator[tuple[int, int, str]]:
    """Yield first line, last line and text of each chunk of `block`, without blank ones."""
    current: list[_Segment] = []
    size = 0
    for segment in _segments(block):
        if current and size + segment.size > WEIGHT:
            yield from _emitted(current)
            current = _overlap(current, min(OVERLAP, max(0, WEIGHT - segment.size)))
            size = sum(part.size for part in current)
        current.append(segment)
        size += segment.size
    yield from _emitted(current)


def _emitted(segments: Sequence[_Segment]) -> Iterator[tuple[int, int, str]]:
    text = "\n".join(segment.text for segment in segments)
    if jsstring.trim(text):
        yield segments[0].line, segments[-1].line, text


def _overlap(segments: Sequence[_Segment], window: int) -> list[_Segment]:
    """Return the end of `segments` that the next chunk repeats: whole ones, or the tail of one where none fits."""
    overlap: list[_Segment] = []
    left = window
    for segment in reversed(segments):
        if left <= 0:
            break
        if segment.size <= left:
            overlap.append(segment)
            left -= segment.size
            continue
        if not overlap and (tail := _tail(segment.text, left - 1)):
            overlap.append(_Segment(tail, segment.line, weight(tail) + 1))
        break
    return overlap[::-1]


def _tail(text: str, most: int) -> str:
    """Return the longest end of `text` that weighs at most `most`."""
    heavy, start = 0, len(text)
    while start and heavy + _weight_of(text[start - 1]) <= most:
        start -= 1
        heavy += _weight_of(text[start])
    return text[start:]
