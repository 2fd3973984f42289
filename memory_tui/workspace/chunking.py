"""Chunking cuts a note: as its headings do, or exactly as OpenClaw up to 2026.3.13, or from 2026.9 on, does.

For the first two the text is a row of segments: its lines, long lines sliced. A chunk is a run of whole segments, so it
is found by searching the running sum of segment lengths instead of looking at every line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from memory_tui import jsstring, tokens
from memory_tui.errors import Unreadable
from memory_tui.workspace.notes import NOTHING_SAID, Annotations, headings, read_annotations, together, without_markers

AT_HEADINGS, AT_ENTRIES = "headings", "2026.9"
"""What an index is marked with whose chunks end at headings, or are those of OpenClaw 2026.9."""
LEAST, LEAST_CURATED = 1_000, 300
"""Characters up to which sections are joined (FAQs, Japanese, Chinese), those of a curated note (FAQs, planted pairs).

Japanese and Chinese lose .01 with each section by itself: a short one holds too few pairs of what is asked. So do
curated notes of which each entry of a list is a chunk: .25 on the FAQs.
"""
ALONE = 600
"""Characters from which a section is not joined with one that would be cut then (Russian, German XQuAD; FAQs)."""
CURATED = ("MEMORY.md", "USER.md")
DEEPEST = 3
"""The level of headings down to which a thought ends before one."""
_TIME = re.compile(r"\d:\d\d(?::\d\d)?(?: ?(?:UTC|[ap]\.?m\.?))?$", re.IGNORECASE)
"""The end of a heading that tells when somebody spoke: what follows goes on with the thought (chats)."""
MAX_INPUT_BYTES = 8000
"""No chunk is longer than this in UTF-8, whatever the provider would take."""

WINDOW, WINDOW_CJK = 420, 200
"""Characters of a window, about a hundred tokens; Chinese, Japanese and Korean say as much in half of them."""
MAX_CHUNKED_UNITS = 1 << 28
"""UTF-16 units all chunks of one note may hold; the repeats after long lines could otherwise fill the memory."""

Check = Callable[[], object]
"""Is called before each chunk of a note, which may have 30 MB, and raises where that is not wanted any more.

The default `str` does nothing when it is called.
"""


class Chunk(NamedTuple):
    """A run of lines (1-based, inclusive); `hash` is the SHA-256 of `text`, which has no lone surrogates."""

    start_line: int
    end_line: int
    text: str
    hash: str


class AnnotatedChunk(NamedTuple):
    """A chunk, and what the annotations of its entry say."""

    chunk: Chunk
    annotations: Annotations


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
    """Return the chunks of a note by the rules of `chunking`; `sizes` are tokens of a chunk and of its overlap.

    None has more than `limit` bytes. A `plain` text has no annotations.
    """
    if chunking == AT_ENTRIES:
        return chunk_note(text, path, limit=limit, plain=plain, check=check)
    pieces = chunk_text(text, *sizes, check) if chunking != AT_HEADINGS else chunk_sections(text, path, *sizes, check)
    return [AnnotatedChunk(piece, NOTHING_SAID) for piece in cap_bytes(pieces, limit)]


def chunk_text(text: str, tokens: int = 400, overlap: int = 80, check: Check = str) -> list[Chunk]:
    """Return the chunks of `text`, of about `tokens` x 4 UTF-16 units, `overlap` x 4 of them repeated; no blank ones.

    The overlap is made of whole segments, and a chunk takes one new segment whatever its length: a chunk can reach
    twice the size, and a line of nearly full size is repeated in a chunk for each short line that follows it.
    Raises Unreadable when those repeats pass MAX_CHUNKED_UNITS, and what `check` raises before each chunk.
    """
    # OpenClaw counts a token as four UTF-16 units.
    size = max(32, tokens * 4)
    segments, numbers, sums = _segments(jsstring.well_formed(text), size)
    return _joined(segments, numbers, sums, _runs(sums, size, max(0, overlap * 4)), check)


def chunk_sections(text: str, path: str, tokens: int = 400, overlap: int = 80, check: Check = str) -> list[Chunk]:
    """Return the chunks of the note `path`, which end before headings; longer sections are cut as `chunk_text` does.

    No chunk begins inside a fence, a comment or a table that is no longer than a chunk. Raises Unreadable as it does.
    """
    size = max(32, tokens * 4)
    text = jsstring.well_formed(text)
    segments, numbers, sums = _segments(text, size)
    inside: set[int] = set()
    """Segments, by index, at which no chunk begins, because the one before is of the same fence, comment or table."""
    for first_line, last_line in together(text):
        start, end = (bisect_left(numbers, line) for line in (first_line, last_line + 1))
        inside.update(range(start + 1, end) if sums[end] - sums[start] <= size else ())
    check()
    least = min(LEAST_CURATED if path in CURATED else LEAST, size)
    runs: list[tuple[int, int]] = []
    start = 0
    # The last line with text: a heading behind it, or on it (lines of headings count from 1), has nothing below it.
    last_line = text.rstrip().count("\n")
    heads = [item for item in headings(text) if item.level <= DEEPEST and item.line <= last_line]
    lines = (item.line for item in heads if not _TIME.search(item.title))
    # The segments at which a section ends: the first one of each heading's line, and behind the last of all.
    ends = [*(bisect_left(numbers, line) for line in lines), len(segments)]
    for end, next_end in zip(ends, [*ends[1:], len(segments)], strict=True):
        length, with_next = sums[end] - sums[start], sums[next_end] - sums[start]
        if end < len(segments) and length < least and (with_next <= size or length < ALONE):
            # The section goes on: it is joined with the next one.
            continue
        # The segments at which a chunk may begin or end; between two of them nothing is cut.
        places = [*(index for index in range(start, end) if index not in inside), end]
        # `_runs` is given the places as its segments, so that it answers with indexes of places.
        of_section = _runs([sums[index] - sums[start] for index in places], size, max(0, overlap * 4))
        runs += [(places[first], places[last]) for first, last in of_section]
        start = end
    return _joined(segments, numbers, sums, runs, check)


def _joined(
    segments: Sequence[str], numbers: Sequence[int], sums: Sequence[int], runs: Sequence[tuple[int, int]], check: Check
) -> list[Chunk]:
    """Return the chunks of `runs`, each the start and the end (exclusive) of segments, without blank ones.

    `numbers` has the line of each segment, `sums` is as `_segments` returns it. Raises Unreadable where runs repeat too
    much.
    """
    if sum(sums[end] - sums[start] for start, end in runs) > MAX_CHUNKED_UNITS:
        step = "Break its longest lines, or make chunking.overlap smaller."
        raise Unreadable(f"Its long lines are repeated in {len(runs):,} overlapping chunks, too many to keep.", step)
    chunks = []
    for start, end in runs:
        check()
        piece = "\n".join(segments[start:end])
        if jsstring.trim(piece):
            chunks.append(sealed(numbers[start], numbers[end - 1], piece))
    return chunks


def cap_bytes(chunks: Iterable[Chunk], limit: int) -> list[Chunk]:
    """Return `chunks`, each one above min(`limit`, 8000) bytes of UTF-8 replaced by pieces on the same lines.

    A piece holds at least one character, even where that alone passes the limit.
    """
    capped: list[Chunk] = []
    for chunk in chunks:
        parts = list(pieces(chunk.text, limit))
        capped += [chunk] if len(parts) == 1 else (sealed(chunk.start_line, chunk.end_line, part) for part in parts)
    return capped


def pieces(text: str, limit: int) -> Iterator[str]:
    """Yield `text` in pieces of at most min(`limit`, 8000) bytes of UTF-8, none of them halving a character."""
    limit = max(1, min(limit, MAX_INPUT_BYTES))
    # A character has 4 bytes at most, so most texts need not be encoded.
    if 4 * len(text) <= limit or len(data := text.encode()) <= limit:
        yield text
        return
    start = 0
    while start < len(data):
        # Back to where a character begins; where that is the start of the piece, on to the end of its first character.
        end = start + limit
        while start < end < len(data) and _continues(data[end]):
            end -= 1
        if end == start:
            end += 1
            while end < len(data) and _continues(data[end]):
                end += 1
        yield data[start:end].decode()
        start = end


def windows(text: str) -> list[str]:
    """Return the parts of a chunk that a model compares with a question: whole lines, a too long line cut at a blank.

    A chunk that makes one part alone is returned unchanged, because it has a vector already.
    """
    # A third of the characters tells Chinese, Japanese and Korean, because Latin words stand among theirs.
    is_dense = 3 * sum(map(len, tokens.CJK_RUN.findall(text))) > len(text)
    most = WINDOW_CJK if is_dense else WINDOW
    parts, part = list[str](), ""
    for line in filter(str.strip, text.split("\n")):
        while len(line) > most:
            # Behind the last blank of its second half; anywhere where there is none.
            end = line.rfind(" ", most // 2, most) + 1 or most
            parts += filter(None, [part, line[:end]])
            part = ""
            line = line[end:]
        if part and len(part) + len(line) >= most:
            parts.append(part)
            part = ""
        part = f"{part}\n{line}" if part else line
    parts += [part] if part.strip() else []
    return parts if len(parts) > 1 else [text]


def chunk_id(source: str, path: str, chunk: Chunk, model: str) -> str:
    """Return the documented id: SHA-256 of source, path, lines, hash and model; equal chunks of a note share it."""
    return jsstring.sha256_hex(f"{source}:{path}:{chunk.start_line}:{chunk.end_line}:{chunk.hash}:{model}")


def sealed(start_line: int, end_line: int, text: str) -> Chunk:
    """Return the chunk of these lines, with the hash of its `text`."""
    return Chunk(start_line, end_line, text, jsstring.sha256_hex(text))


def _segments(text: str, size: int) -> tuple[list[str], Sequence[int], list[int]]:
    """Return the segments, their line numbers, and `sums`.

    An item of `sums` is the length of all segments before one, each with 1 for its line end; the last is that of all.
    """
    lines = text.split("\n")
    lengths = list(map(jsstring.utf16_len if jsstring.has_astral(text) else len, lines))
    numbers: Sequence[int] = range(1, len(lines) + 1)
    if max(lengths) > size:
        # Each piece of a line keeps its number; an empty line, of which no slice comes, is a segment, too.
        cut = [
            (jsstring.well_formed(segment), number)
            for number, line in enumerate(lines, 1)
            for segment in (jsstring.utf16_slices(line, size) or [""])
        ]
        lines, numbers = [segment for segment, _ in cut], [number for _, number in cut]
        lengths = list(map(jsstring.utf16_len, lines))
    return lines, numbers, list(accumulate([length + 1 for length in lengths], initial=0))


def _runs(sums: list[int], size: int, overlap: int) -> list[tuple[int, int]]:
    """Return the (start, end) of each chunk in segments, end exclusive, one or more.

    Item i of `sums` is the size of all segments before segment i: the first is 0, the last the size of all.
    """
    last = len(sums) - 1
    # As many segments as the size allows, and at least one: bisect finds the first sum above it, one behind the end.
    start, end = 0, max(1, bisect_right(sums, size) - 1)
    runs = [(start, end)]
    while end < last:
        # The carried overlap: back from the end until it holds enough, but never before the chunk it comes from.
        start = max(start, bisect_right(sums, sums[end] - overlap, start, end + 1) - 1) if overlap else end
        end = max(end + 1, bisect_right(sums, sums[start] + size, end) - 1)
        runs.append((start, end))
    return runs


def _continues(byte: int) -> bool:
    """Return whether `byte` is inside a UTF-8 sequence, and not its first: those begin with the bits 10."""
    return byte & 0xC0 == 0x80


# --- as OpenClaw 2026.9 ----------------------------------------------------------------------------------------------

# Curated files are cut entry by entry. Characters weigh 1 to 16 (chunking version 5): a chunk weighs at most WEIGHT, of
# which OVERLAP are repeated in the next. The sizes are fixed. Annotations are taken out first.
WEIGHT = 1600
OVERLAP = 320
_HEADING = re.compile(r"#{1,6}(?:\s|$)")

# Code points by what each weighs; any other below U+10000 weighs 1, above it 2.
_WEIGHTS = {
    1: "0-7f",
    4: "b7 3000-319f 4e00-9fa5 ac00-d7af ff01-ff60",
    8: "2c7 2c9-2cb 2d9 2ea-2eb 305 323 fe10-fe4f ff61-ffdc ffe0-ffe6",
    12: "1100-11ff 2e80-2fff 31a0-4dff 9fa6-9fff a000-a4ff a700-a707 a960-a97f d7b0-d7ff f900-faff 1d360-1d371",
    16: "16fe0-16fff 1aff0-1afff 1b000-1b16f 1f200-1f2ff 20000-2fa1f 30000-3347f",
}
_RANGES = sorted(
    (int(first, 16), int(last or first, 16), weight)
    for weight, ranges in _WEIGHTS.items()
    for first, _, last in (item.partition("-") for item in ranges.split())
)
_STARTS = [first for first, _, _ in _RANGES]


class _Segment(NamedTuple):
    """A line, or a piece of a long one, with the number of its line and its weight, 1 for the line end included."""

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
    for first, lines, is_entry in _blocks(clean.split("\n"), by_entries=path in CURATED):
        last = first + len(lines) - 1
        for start, end, piece in _packed(first, lines):
            check()
            # The chunks of an entry share its annotations; of any other block each has its own.
            annotated = raw[first - 1 : last] if is_entry else raw[start - 1 : end]
            annotations = NOTHING_SAID if plain else read_annotations(annotated, path)
            for part in pieces(piece, limit):
                by_chunk.setdefault(sealed(start, end, part), annotations)
    return [AnnotatedChunk(chunk, annotations) for chunk, annotations in by_chunk.items()]


def weight(text: str) -> int:
    """Return how much of the WEIGHT of a chunk `text` takes: the sum over its characters, each ASCII one weighs 1."""
    return len(text) if text.isascii() else sum(map(_weight_of, text))


@cache
def _weight_of(character: str) -> int:
    """Return the weight of the range that holds a character; outside all of them 1, or 2 above U+FFFF."""
    code = ord(character)
    # The last range that begins at the character or below it; the first one begins at 0.
    _first, last, weight = _RANGES[bisect_right(_STARTS, code) - 1]
    if code <= last:
        return weight
    return 2 if code > 0xFFFF else 1


def _blocks(lines: Sequence[str], *, by_entries: bool) -> Iterator[tuple[int, Sequence[str], bool]]:
    """Yield what is packed by itself, with its first line (from 1): all lines, or each entry and section of a curated
    file; and whether it is an entry, whose chunks share its annotations.
    """
    if not by_entries:
        yield 1, lines, False
        return
    # The first line begins a block, too, whatever it is.
    starts = [index for index, line in enumerate(lines) if not index or line.startswith("- ") or _HEADING.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield start + 1, lines[start:end], lines[start].startswith("- ")


def _weighed(first: int, lines: Sequence[str]) -> Iterator[_Segment]:
    """Yield the segments of a block: its lines, and the pieces of those that weigh more than a chunk may."""
    for number, line in enumerate(lines, first):
        if len(line) <= WEIGHT and line.isascii():
            yield _Segment(line, number, len(line) + 1)
            continue
        rest = line
        while rest:
            # First by length, so that what is weighed character by character is short.
            prefix = jsstring.utf16_head(rest, WEIGHT)
            rest = rest[len(prefix) :]
            for part in _parts(prefix):
                yield _Segment(part, number, weight(part) + 1)
        # An empty line is a segment, too.
        if not line:
            yield _Segment("", number, 1)


def _parts(prefix: str) -> Iterator[str]:
    """Yield `prefix` in pieces that each weigh at most what a chunk may."""
    if weight(prefix) <= WEIGHT:
        yield prefix
        return
    start = total = 0
    for index, character in enumerate(prefix):
        cost = _weight_of(character)
        if total + cost > WEIGHT:
            yield prefix[start:index]
            start, total = index, 0
        total += cost
    yield prefix[start:]


def _packed(first: int, lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield first line, last line and text of each chunk of a block, without blank ones."""
    current: list[_Segment] = []
    size = 0
    for segment in _weighed(first, lines):
        if current and size + segment.size > WEIGHT:
            yield from _emitted(current)
            # What is repeated has to leave room for the segment.
            current = _overlap(current, min(OVERLAP, max(0, WEIGHT - segment.size)))
            size = sum(part.size for part in current)
        current.append(segment)
        size += segment.size
    yield from _emitted(current)


def _emitted(segments: Sequence[_Segment]) -> Iterator[tuple[int, int, str]]:
    """Yield the chunk of these segments, first line, last line and text, unless it is blank."""
    text = "\n".join(segment.text for segment in segments)
    if jsstring.trim(text):
        yield segments[0].line, segments[-1].line, text


def _overlap(segments: Sequence[_Segment], window: int) -> list[_Segment]:
    """Return the end of `segments` that the next chunk repeats: whole ones, or the tail of the last where none fits.

    It weighs at most `window`.
    """
    overlap: list[_Segment] = []
    room = window
    for segment in reversed(segments):
        if room <= 0 or segment.size > room:
            break
        overlap.insert(0, segment)
        room -= segment.size
    if not overlap and segments:
        last = segments[-1]
        # 1 is for the line end.
        tail = _tail(last.text, room - 1)
        overlap = [_Segment(tail, last.line, weight(tail) + 1)] if tail else []
    return overlap


def _tail(text: str, most: int) -> str:
    """Return the longest end of `text` that weighs at most `most`."""
    start, total = len(text), 0
    while start and total + _weight_of(text[start - 1]) <= most:
        start -= 1
        total += _weight_of(text[start])
    return text[start:]
