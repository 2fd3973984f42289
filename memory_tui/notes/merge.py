"""Three-way merge of a note by lines; a conflict remains where both sides changed the same lines.

Bytes in, bytes out: no line end, invalid byte or missing last line end is changed by a merge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Side = Literal["same", "mine", "theirs", "both", "appended", "conflict"]


class Hunk(Struct, frozen=True):
    """A run of lines of all three texts. `side` is who changed it; both alike is "both".

    "appended" is the end of a note to which one only added lines, while the other added or changed some.
    """

    side: Side
    base: tuple[bytes, ...]
    mine: tuple[bytes, ...]
    other: tuple[bytes, ...]
    mine_first: bool = False

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The merged lines; mine for a conflict."""
        if self.side == "appended":
            count = len(self.base)
            added = [text[:count] == self.base for text in (self.mine, self.other)]
            last_is_mine = added[0] and not (self.mine_first and added[1])
            return self.other + self.mine[count:] if last_is_mine else self.mine + self.other[count:]
        return self.other if self.side == "theirs" else self.mine


class Merge(Struct, frozen=True):
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
            for line in ((*hunk.other, *hunk.mine) if hunk.side == "conflict" else hunk.lines)
        )


def merge(base: bytes | None, mine: bytes | None, other: bytes | None, *, mine_first: bool = False) -> Merge:
    """Merge two changes of `base`; None is a note that is not there, which merges only with what left it alone.

    Where both added lines at the end, theirs come first, because they were on disk first; or mine with `mine_first`.
    """
    if mine == other or other == base:
        return _whole("both" if mine == other else "mine", base, mine, other, mine)
    if mine == base:
        return _whole("theirs", base, mine, other, other)
    if base is None or mine is None or other is None:
        return _whole("conflict", base, mine, other, None)
    # A last line without a line end is compared as if it had one; whether it has one is merged by itself.
    end = b"\r\n" if b"\r\n" in base[-4096:] else b"\n"
    closed = [_closed(text, end) for text in (base, mine, other)]
    hunks = tuple(replace(hunk, mine_first=mine_first) for hunk in _hunks(*map(_lines, closed)))
    if any(hunk.side == "conflict" for hunk in hunks):
        return Merge(hunks, None)
    merged = b"".join(line for hunk in hunks for line in hunk.lines)
    was_ended, mine_is, other_is = (text == before for text, before in zip(closed, (base, mine, other), strict=True))
    is_ended = mine_is if mine_is != was_ended else other_is
    return Merge(hunks, merged if is_ended else merged.removesuffix(end))


def common_head(first: bytes, second: bytes) -> bytes | None:
    """The lines with which both begin, None when there are none."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(_lines(first), _lines(second), strict=False))
    return b"".join(line for line, _ in pairs) or None


def _whole(side: Side, base: bytes | None, mine: bytes | None, other: bytes | None, merged: bytes | None) -> Merge:
    parts = [tuple(_lines(text or b"")) for text in (base, mine, other)]
    return Merge((Hunk(side, parts[0], parts[1], parts[2]),), merged)


def _closed(text: bytes, end: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + end


def _lines(text: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends a line."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _hunks(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[Hunk]:
    """The texts cut where all three agree, and between; diff3 as Khanna, Kunal and Pierce describe it (2007)."""
    at = (0, 0, 0)
    for start, mine_start, theirs_start, count in _agreed(base, mine, other):
        here = (start, mine_start, theirs_start)
        if here != at:
            parts = [tuple(text[a:b]) for text, a, b in zip((base, mine, other), at, here, strict=True)]
            yield Hunk(_side(*parts, end=start == len(base)), parts[0], parts[1], parts[2])
        if count:
            same = tuple(base[start : start + count])
            yield Hunk("same", same, same, same)
        at = (start + count, mine_start + count, theirs_start + count)


def _side(base: tuple[bytes, ...], mine: tuple[bytes, ...], other: tuple[bytes, ...], *, end: bool) -> Side:
    if mine == other:
        return "both"
    if other == base:
        return "mine"
    if mine == base:
        return "theirs"
    return "appended" if end and base in (mine[: len(base)], other[: len(base)]) else "conflict"


def _agreed(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Runs of lines that all three share: start in each, and length; at last the ends, with length 0."""
    left, right = matching(base, mine), matching(base, other)
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
    yield len(base), len(mine), len(other), 0


_SMALL, _LARGE = 1 << 12, 1 << 29
"""Up to so many pairs of lines the longest run comes first, as a person would see it; a table of more takes 64 MB."""
Run = tuple[int, int, int]
"""A run of equal items: start in the one, start in the other, length."""


def matching(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Run]:
    """Return the runs that two sequences share, in order."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    pairs = len(left) * len(right)
    runs: list[Run] = [(0, 0, head)]
    if _SMALL < pairs <= _LARGE:
        # 7 ms that the first frame and most commands do not wait for.
        from rapidfuzz.distance import LCSseq

        runs += [(head + run.a, head + run.b, run.size) for run in LCSseq.editops(left, right).as_matching_blocks()]
    else:
        blocks = SequenceMatcher(None, left, right, autojunk=pairs > _SMALL).get_matching_blocks()
        runs += [(head + a, head + b, count) for a, b, count in blocks]
    return [run for run in (*runs, (len(before) - tail, len(after) - tail, tail)) if run[2]]


def changed_spans(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterator[tuple[int, int, int, int]]:
    """Tell where two sequences of lines differ, as ranges (a, b, c, d): before[a:b] became after[c:d]."""
    runs = [(0, 0, 0), *matching(before, after), (len(before), len(after), 0)]
    for (a, b, n), (c, d, _) in pairwise(runs):
        if a + n < c or b + n < d:
            yield a + n, c, b + n, d
