"""Three-way merge of notes by lines: what both changed from a common text, in one text where the changes do not touch.

Bytes in, bytes out: no line end, invalid byte or missing last line end is changed by a merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Literal

Side = Literal["same", "mine", "theirs", "both", "appended", "conflict"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of lines of all three texts. `side` is who changed it; both alike is "both".

    "appended" is the end of a note to which one only added lines, while the other added or changed some.
    """

    side: Side
    base: tuple[bytes, ...]
    mine: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    mine_first: bool = False

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The merged lines; mine for a conflict."""
        if self.side == "appended":
            count = len(self.base)
            added = [text[:count] == self.base for text in (self.mine, self.theirs)]
            last_is_mine = added[0] and not (self.mine_first and added[1])
            return self.theirs + self.mine[count:] if last_is_mine else self.mine + self.theirs[count:]
        return self.theirs if self.side == "theirs" else self.mine


@dataclass(frozen=True, slots=True)
class Merge:
    """All hunks in order, and the merged text, None where some are conflicts."""

    hunks: tuple[Hunk, ...]
    merged: bytes | None

    @property
    def conflicts(self) -> tuple[Hunk, ...]:
        """The hunks that a person must decide."""
        return tuple(hunk for hunk in self.hunks if hunk.side == "conflict")

    @property
    def united(self) -> bytes:
        """The merged text with the lines of both, theirs first, where there is a conflict."""
        return b"".join(
            line
            for hunk in self.hunks
            for line in ((*hunk.theirs, *hunk.mine) if hunk.side == "conflict" else hunk.lines)
        )


def merge(base: bytes | None, mine: bytes | None, theirs: bytes | None, *, mine_first: bool = False) -> Merge:
    """Merge two changes of `base`; None is a note that is not there, which merges only with what left it alone.

    Where both added lines at the end, theirs come first, because they were on disk first; or mine with `mine_first`.
    """
    if mine == theirs or theirs == base:
        return _whole("both" if mine == theirs else "mine", base, mine, theirs, mine)
    if mine == base:
        return _whole("theirs", base, mine, theirs, theirs)
    if base is None or mine is None or theirs is None:
        return _whole("conflict", base, mine, theirs, None)
    # A last line without a line end is compared as if it had one; whether it has one is merged by itself.
    end = b"\r\n" if b"\r\n" in base[-4096:] else b"\n"
    closed = [_closed(text, end) for text in (base, mine, theirs)]
    hunks = tuple(replace(hunk, mine_first=mine_first) for hunk in _hunks(*map(_lines, closed)))
    if any(hunk.side == "conflict" for hunk in hunks):
        return Merge(hunks, None)
    merged = b"".join(line for hunk in hunks for line in hunk.lines)
    open_ends = [text == before for text, before in zip(closed, (base, mine, theirs), strict=True)]
    ended = open_ends[1] if open_ends[1] != open_ends[0] else open_ends[2]
    return Merge(hunks, merged if ended else merged.removesuffix(end))


def common_head(one: bytes, other: bytes) -> bytes | None:
    """The lines with which both begin, None when there are none."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(_lines(one), _lines(other), strict=False))
    return b"".join(line for line, _ in pairs) or None


def _whole(side: Side, base: bytes | None, mine: bytes | None, theirs: bytes | None, merged: bytes | None) -> Merge:
    parts = [tuple(_lines(text or b"")) for text in (base, mine, theirs)]
    return Merge((Hunk(side, parts[0], parts[1], parts[2]),), merged)


def _closed(text: bytes, end: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + end


def _lines(text: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends a line."""
    found = [line + b"\n" for line in text.split(b"\n")]
    last = found.pop()[:-1]
    return [*found, last] if last else found


def _hunks(base: list[bytes], mine: list[bytes], theirs: list[bytes]) -> Iterator[Hunk]:
    """The texts cut where all three agree, and between; diff3 as Khanna, Kunal and Pierce describe it (2007)."""
    at = (0, 0, 0)
    for start, mine_start, theirs_start, count in _agreed(base, mine, theirs):
        here = (start, mine_start, theirs_start)
        if here != at:
            parts = [tuple(text[a:b]) for text, a, b in zip((base, mine, theirs), at, here, strict=True)]
            yield Hunk(_side(*parts, end=start == len(base)), parts[0], parts[1], parts[2])
        if count:
            same = tuple(base[start : start + count])
            yield Hunk("same", same, same, same)
        at = (start + count, mine_start + count, theirs_start + count)


def _side(base: tuple[bytes, ...], mine: tuple[bytes, ...], theirs: tuple[bytes, ...], *, end: bool) -> Side:
    if mine == theirs:
        return "both"
    if theirs == base:
        return "mine"
    if mine == base:
        return "theirs"
    return "appended" if end and base in (mine[: len(base)], theirs[: len(base)]) else "conflict"


def _agreed(base: list[bytes], mine: list[bytes], theirs: list[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Runs of lines that all three share: start in each, and length; at last the ends, with length 0."""
    left, right = _blocks(base, mine), _blocks(base, theirs)
    i = j = 0
    while i < len(left) and j < len(right):
        (a, a_mine, a_count), (b, b_theirs, b_count) = left[i], right[j]
        start, stop = max(a, b), min(a + a_count, b + b_count)
        if start < stop:
            yield start, a_mine + start - a, b_theirs + start - b, stop - start
        if a + a_count < b + b_count:
            i += 1
        else:
            j += 1
    yield len(base), len(mine), len(theirs), 0


def _blocks(base: list[bytes], other: list[bytes]) -> list[tuple[int, int, int]]:
    """Matching runs of two texts; equal heads and tails are cut off first, because only the middle costs time."""
    most = min(len(base), len(other))
    head = next((at for at in range(most) if base[at] != other[at]), most)
    tail = next((at for at in range(most - head) if base[-1 - at] != other[-1 - at]), most - head)
    middle = SequenceMatcher(None, base[head : len(base) - tail], other[head : len(other) - tail], autojunk=False)
    blocks = [
        (0, 0, head),
        *((head + a, head + b, n) for a, b, n in middle.get_matching_blocks()),
        (len(base) - tail, len(other) - tail, tail),
    ]
    return [block for block in blocks if block[2]]


def changed_spans(before: Sequence[object], after: Sequence[object]) -> Iterator[tuple[int, int, int, int]]:
    """Where two sequences of lines differ, as ranges (a, b, c, d): before[a:b] became after[c:d]."""
    blocks = [(0, 0, 0), *_blocks(list(before), list(after)), (len(before), len(after), 0)]  # type: ignore[arg-type]
    for (a, b, n), (c, d, _) in pairwise(blocks):
        if a + n < c or b + n < d:
            yield a + n, c, b + n, d
