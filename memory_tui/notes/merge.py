"""Three-way merge of a note by lines; a conflict remains where both sides changed the same lines.

Bytes in, bytes out: no line end, invalid byte or missing last line end is changed by a merge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Side = Literal["same", "mine", "theirs", "both", "appended", "conflict"]


class Hunk(Struct, frozen=True):
    """A run of lines of all three texts. `side` is who changed it; both alike is "both".

    "appended" is the end of a note to which one only added lines, while the other added or changed some. Where both
    only added, theirs come first, or with `mine_first` mine.
    """

    side: Side
    base: tuple[bytes, ...]
    mine: tuple[bytes, ...]
    other: tuple[bytes, ...]
    mine_first: bool = False

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Return the merged lines; mine for a conflict."""
        if self.side == "appended":
            count = len(self.base)
            mine_adds, other_adds = (text[:count] == self.base for text in (self.mine, self.other))
            # What only adds goes behind the other text.
            if mine_adds and not (other_adds and self.mine_first):
                return self.other + self.mine[count:]
            return self.mine + self.other[count:]
        return self.other if self.side == "theirs" else self.mine


class Merge(Struct, frozen=True):
    """All hunks in order, and the merged text, None where some are conflicts."""

    hunks: tuple[Hunk, ...]
    merged: bytes | None

    @property
    def conflicts(self) -> tuple[Hunk, ...]:
        """Return the hunks that a person must decide."""
        return tuple(hunk for hunk in self.hunks if hunk.side == "conflict")

    @property
    def united(self) -> bytes:
        """Return the merged text with the lines of both, theirs first, where there is a conflict."""
        parts = ((*hunk.other, *hunk.mine) if hunk.side == "conflict" else hunk.lines for hunk in self.hunks)
        return b"".join(line for part in parts for line in part)


def merge(base: bytes | None, mine: bytes | None, other: bytes | None, *, mine_first: bool = False) -> Merge:
    """Merge two changes of `base`; None is a note that is not there, which merges only with what left it alone.

    Where both added lines at the end, theirs come first, because they were on disk first; or mine with `mine_first`.
    """
    texts = base, mine, other
    if mine == other:
        return _whole("both", texts, mine)
    if other == base:
        return _whole("mine", texts, mine)
    if mine == base:
        return _whole("theirs", texts, other)
    if base is None or mine is None or other is None:
        return _whole("conflict", texts, None)
    # A last line without a line end is compared as if it had one; whether it has one is merged by itself.
    # The last lines tell which line end the note has.
    end = b"\r\n" if b"\r\n" in base[-4096:] else b"\n"
    closed = [_closed(text, end) for text in (base, mine, other)]
    hunks = tuple(replace(hunk, mine_first=mine_first) for hunk in _hunks(*map(_lines, closed)))
    if any(hunk.side == "conflict" for hunk in hunks):
        return Merge(hunks, None)
    merged = b"".join(line for hunk in hunks for line in hunk.lines)
    base_ends, mine_ends, other_ends = (text == before for text, before in zip(closed, texts, strict=True))
    # Whoever changed whether there is a last line end is followed.
    is_ended = mine_ends if mine_ends != base_ends else other_ends
    return Merge(hunks, merged if is_ended else merged.removesuffix(end))


def common_head(first: bytes, second: bytes) -> bytes | None:
    """Return the lines with which both begin, None when there are none."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(_lines(first), _lines(second), strict=False))
    return b"".join(line for line, _ in pairs) or None


def _whole(side: Side, texts: tuple[bytes | None, bytes | None, bytes | None], merged: bytes | None) -> Merge:
    """Return a merge of one hunk; `texts` are base, mine and other."""
    base, mine, other = (tuple(_lines(text or b"")) for text in texts)
    return Merge((Hunk(side, base, mine, other),), merged)


def _closed(text: bytes, end: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + end


def _lines(text: bytes) -> list[bytes]:
    """Return lines with their ends; only a line feed ends a line."""
    *ended, last = text.split(b"\n")
    lines = [line + b"\n" for line in ended]
    return [*lines, last] if last else lines


def _hunks(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[Hunk]:
    """Yield the texts cut where all three agree, and between; diff3 as Khanna, Kunal and Pierce describe it (2007)."""
    # Where the last run that all share ended, in base, mine and other.
    ends: tuple[int, ...] = (0, 0, 0)
    for *starts, count in _agreed(base, mine, other):
        texts = zip((base, mine, other), ends, starts, strict=True)
        old, my, their = (tuple(text[end:start]) for text, end, start in texts)
        if old or my or their:
            yield Hunk(_side(old, my, their, is_last=starts[0] == len(base)), old, my, their)
        if count:
            same = tuple(base[starts[0] : starts[0] + count])
            yield Hunk("same", same, same, same)
        ends = tuple(start + count for start in starts)


def _side(base: tuple[bytes, ...], mine: tuple[bytes, ...], other: tuple[bytes, ...], *, is_last: bool) -> Side:
    """Return who changed lines; of the last lines of a note that both changed, one may have added only."""
    if mine == other:
        return "both"
    if other == base:
        return "mine"
    if mine == base:
        return "theirs"
    one_adds = mine[: len(base)] == base or other[: len(base)] == base
    return "appended" if is_last and one_adds else "conflict"


def _agreed(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of lines that all three share: start in each, and length; at last the ends, with length 0."""
    # A run is where it starts in base, where in the other text, and its length.
    with_mine, with_other = deque(matching(base, mine)), deque(matching(base, other))
    while with_mine and with_other:
        first, mine_first, mine_count = with_mine[0]
        second, other_first, other_count = with_other[0]
        start, end = max(first, second), min(first + mine_count, second + other_count)
        if start < end:
            yield start, mine_first + start - first, other_first + start - second, end - start
        # The run that ends first shares nothing more.
        is_mine_over = first + mine_count < second + other_count
        (with_mine if is_mine_over else with_other).popleft()
    yield len(base), len(mine), len(other), 0


_SMALL, _LARGE = 1 << 12, 1 << 29
"""Up to so many pairs of lines the longest run comes first, as a person would see it; a table of more takes 64 MB."""
Run = tuple[int, int, int]
"""A run of equal items: start in the one, start in the other, length."""


def matching(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Run]:
    """Return the runs that two sequences share, in order."""
    # What both begin and end with is quickly seen, and only what is between is compared.
    most = min(len(before), len(after))
    head = next((count for count in range(most) if before[count] != after[count]), most)
    tail = next((count for count in range(most - head) if before[-1 - count] != after[-1 - count]), most - head)
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    pairs = len(left) * len(right)
    runs: list[Run] = [(0, 0, head)]
    if _SMALL < pairs <= _LARGE:
        # 7 ms that the first frame and most commands do not wait for.
        from rapidfuzz.distance import LCSseq

        runs += [(head + run.a, head + run.b, run.size) for run in LCSseq.editops(left, right).as_matching_blocks()]
    else:
        # autojunk is quick and rough: only what is too large for the table is compared so.
        blocks = SequenceMatcher(None, left, right, autojunk=pairs > _SMALL).get_matching_blocks()
        runs += [(head + run.a, head + run.b, run.size) for run in blocks]
    runs.append((len(before) - tail, len(after) - tail, tail))
    return [(start, new_start, count) for start, new_start, count in runs if count]


def changed_spans(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where two sequences of lines differ, as start, end, new start, new end: before[a:b] became after[c:d]."""
    runs = [(0, 0, 0), *matching(before, after), (len(before), len(after), 0)]
    for (run_start, new_run_start, count), (end, new_end, _) in pairwise(runs):
        start, new_start = run_start + count, new_run_start + count
        if start < end or new_start < new_end:
            yield start, end, new_start, new_end
