"""Chunking cuts a note into overlapping chunks exactly as OpenClaw up to 2026.3.13 does, or as its headings do.

The text is a row of segments: its lines, long lines sliced. A chunk is a run of whole segments, so it is found by
searching the running sum of segment lengths instead of looking at every line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from memory_tui import jsstring, tokens
from memory_tui.errors import Unreadable
from memory_tui.workspace.notes import headings, together

AT_HEADINGS = "headings"
"""What an index is marked with whose chunks end at headings."""
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
"""Is called before each chunk of a note, which may have 30 MB, and raises where that is not wanted any more."""


class Chunk(NamedTuple):
    """A run of lines (1-based, inclusive); `hash` is the SHA-256 of `text`, which has no lone surrogates."""

    start_line: int
    end_line: int
    text: str
    hash: str


def chunk_text(text: str, tokens: int = 400, overlap: int = 80, check: Check = str) -> list[Chunk]:
    """Return the chunks of `text`, of about `tokens` x 4 UTF-16 units, `overlap` x 4 of them repeated; no blank ones.

    The overlap is made of whole segments, and a chunk takes one new segment whatever its length: a chunk can reach
    twice the size, and a line of nearly full size is repeated in a chunk for each short line that follows it.
    Raises Unreadable when those repeats pass MAX_CHUNKED_UNITS, and what `check` raises before each chunk.
    """
    size = max(32, tokens * 4)
    segments, numbers, sums = _segments(jsstring.well_formed(text), size)
    return _joined(segments, numbers, sums, _runs(sums, size, max(0, overlap * 4)), check)


def chunk_sections(text: str, path: str, tokens: int = 400, overlap: int = 80, check: Check = str) -> list[Chunk]:
    """Return the chunks of the note `path`, which end before headings; longer sections are cut as `chunk_text` does.

    No chunk begins inside a fence, a comment or a table that is no longer than a chunk. Raises Unreadable as it does.
    """
    size, text = max(32, tokens * 4), jsstring.well_formed(text)
    segments, numbers, sums = _segments(text, size)
    inside: set[int] = set()
    for first, last in together(text):
        start, end = (bisect_left(numbers, line) for line in (first, last + 1))
        inside.update(range(start + 1, end) if sums[end] - sums[start] <= size else ())
    least, runs, start = min(LEAST_CURATED if path in CURATED else LEAST, size), list[tuple[int, int]](), 0
    written = text.rstrip().count("\n")
    heads = (
        item.line
        for item in headings(text)
        if item.level <= DEEPEST and item.line <= written and not _TIME.search(item.title)
    )
    ends = [*(bisect_left(numbers, line) for line in heads), len(segments)]
    for end, following in zip(ends, [*ends[1:], len(segments)], strict=True):
        length, longer = sums[end] - sums[start], sums[following] - sums[start]
        if end < len(segments) and length < least and (longer <= size or length < ALONE):
            continue
        places = [*(at for at in range(start, end) if at not in inside), end]
        of_section = _runs([sums[at] - sums[start] for at in places], size, max(0, overlap * 4))
        runs += [(places[first], places[last]) for first, last in of_section]
        start = end
    return _joined(segments, numbers, sums, runs, check)


def _joined(
    segments: Sequence[str], numbers: Sequence[int], sums: Sequence[int], runs: Sequence[tuple[int, int]], check: Check
) -> list[Chunk]:
    """Return the chunks of `runs` of segments. Raises Unreadable where these repeat too much."""
    if sum(sums[end] - sums[start] for start, end in runs) > MAX_CHUNKED_UNITS:
        raise Unreadable(
            f"Its long lines are repeated in {len(runs):,} overlapping chunks, too many to keep.",
            "Break its longest lines, or make chunking.overlap smaller.",
        )
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
    if 4 * len(text) <= limit or len(data := text.encode()) <= limit:
        yield text
        return
    at = 0
    while at < len(data):
        end = at + limit
        while at < end < len(data) and _continues(data[end]):
            end -= 1
        if end == at:
            end += 1
            while end < len(data) and _continues(data[end]):
                end += 1
        yield data[at:end].decode()
        at = end


def windows(text: str) -> list[str]:
    """Return the parts of a chunk that a model compares with a question: whole lines, a longer line cut at a blank.

    One that is no longer than a part stays what it is, whose vector there is.
    """
    # Of the characters a third: in each of these languages Latin words stand among the others.
    dense = 3 * sum(map(len, tokens.CJK_RUN.findall(text))) > len(text)
    most = WINDOW_CJK if dense else WINDOW
    parts, part = list[str](), ""
    for line in filter(str.strip, text.split("\n")):
        while len(line) > most:
            at = line.rfind(" ", most // 2, most) + 1 or most
            parts, part = [*parts, *([part] if part else []), line[:at]], ""
            line = line[at:]
        if part and len(part) + len(line) >= most:
            parts, part = [*parts, part], ""
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
    """Return segments, their line numbers, and `sums`: the length of all before each segment, one added for each."""
    lines = text.split("\n")
    lengths = list(map(jsstring.utf16_len if jsstring.has_astral(text) else len, lines))
    numbers: Sequence[int] = range(1, len(lines) + 1)
    if max(lengths) > size:
        cut = [
            (jsstring.well_formed(segment), number)
            for number, line in enumerate(lines, 1)
            for segment in (jsstring.utf16_slices(line, size) or [""])
        ]
        lines, numbers = [segment for segment, _ in cut], [number for _, number in cut]
        lengths = list(map(jsstring.utf16_len, lines))
    return lines, numbers, list(accumulate([length + 1 for length in lengths], initial=0))


def _runs(sums: list[int], size: int, overlap: int) -> list[tuple[int, int]]:
    """Return the (start, end) of each chunk in segments, end exclusive."""
    last = len(sums) - 1
    start, end = 0, max(1, bisect_right(sums, size) - 1)
    runs = [(start, end)]
    while end < last:
        # The carried overlap: back from the end until it holds enough, but never before the chunk it comes from.
        start = max(start, bisect_right(sums, sums[end] - overlap, start, end + 1) - 1) if overlap else end
        end = max(end + 1, bisect_right(sums, sums[start] + size, end) - 1)
        runs.append((start, end))
    return runs


def _continues(byte: int) -> bool:
    """Return whether `byte` is inside a UTF-8 sequence."""
    return byte & 0xC0 == 0x80
