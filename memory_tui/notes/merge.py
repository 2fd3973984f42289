"""Three-way merge of a note by lines; a conflict remains where both sides changed the same lines.

Bytes in, bytes out: no line end, invalid byte or missing last line end is changed by a merge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
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
    left, right = matching(base, mine), matching(base, theirs)
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


_SMALL = 4_096
"""Up to so many pairs of lines are compared by SequenceMatcher, whose time grows with their square or worse."""
_EDITS = 64
"""So many edits ahead is looked for the shortest way from one text to the other where no line tells the place."""
_DEPTH = 8
_NOWHERE = -(1 << 60)
Run = tuple[int, int, int]
"""A run of equal items: start in the one, start in the other, length."""


def matching(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[Run]:
    """The runs that two sequences share, in order. The time grows with their length, however alike their items are."""
    # Numbers are compared faster than lines.
    numbers: dict[Hashable, int] = {}
    left, right = ([numbers.setdefault(item, len(numbers)) for item in text] for text in (one, other))
    return _joined(_matching(left, right, 0, 0, _DEPTH))


def _matching(one: list[int], other: list[int], a: int, b: int, depth: int) -> Iterator[Run]:
    """The runs of two texts that begin at `a` and `b`; equal heads and tails are cut off first."""
    most = min(len(one), len(other))
    head = next((at for at in range(most) if one[at] != other[at]), most)
    tail = next((at for at in range(most - head) if one[-1 - at] != other[-1 - at]), most - head)
    left, right = one[head : len(one) - tail], other[head : len(other) - tail]
    yield a, b, head
    for x, y, count in _between(left, right, depth) if left and right else ():
        yield a + head + x, b + head + y, count
    yield a + len(one) - tail, b + len(other) - tail, tail


def _between(one: list[int], other: list[int], depth: int) -> Iterator[Run]:
    """The runs of two texts that begin and end differently."""
    if len(one) * len(other) <= _SMALL:
        yield from SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
        return
    places = _landmarks(one, other) if depth else []
    if not places:
        yield from _shortest(one, other)
        return
    for (a, b), (c, d) in pairwise([(-1, -1), *places, (len(one), len(other))]):
        yield from _matching(one[a + 1 : c], other[b + 1 : d], a + 1, b + 1, depth - 1)
        if c < len(one):
            yield c, d, 1


def _landmarks(one: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Lines that stand once in each text, the most of them that keep their order: patience sorting, as Bram Cohen's."""
    counts, others = Counter(one), Counter(other)
    places = {item: at for at, item in enumerate(other) if others[item] == 1}
    pairs = [(at, places[item]) for at, item in enumerate(one) if counts[item] == 1 and item in places]
    ends: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, b) in enumerate(pairs):
        pile = bisect_left(ends, b)
        before.append(piles[pile - 1] if pile else -1)
        ends[pile : pile + 1], piles[pile : pile + 1] = [b], [number]
    found = []
    at = piles[-1] if piles else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _shortest(one: list[int], other: list[int]) -> Iterator[Run]:
    """The runs along the shortest way from one text to the other, as Myers finds it (1986), a stretch at a time."""
    x = y = 0
    while x < len(one) and y < len(other):
        way = _stretch(one, other, x, y)
        yield from way
        x, y = way[-1][0] + way[-1][2], way[-1][1] + way[-1][2]


def _stretch(one: list[int], other: list[int], x0: int, y0: int) -> list[Run]:
    """The way from (x0, y0) that leads furthest with at most _EDITS edits; its last run may be empty."""
    wide, high = len(one), len(other)
    reached = {1: x0}
    steps: list[dict[int, int]] = []
    best = (x0, y0)
    for edits in range(_EDITS + 1):
        now: dict[int, int] = {}
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached.get(k - 1, _NOWHERE) < reached.get(k + 1, _NOWHERE))
            x = reached.get(k + 1, _NOWHERE) if down else reached.get(k - 1, _NOWHERE) + 1
            y = x - x0 - k + y0
            if x < x0 or y < y0 or x > wide or y > high:
                continue
            while x < wide and y < high and one[x] == other[y]:
                x, y = x + 1, y + 1
            now[k] = x
            best = max(best, (x, y), key=sum)
            if x >= wide and y >= high:
                return _way_back([*steps, now], x0, y0, (x, y))
        steps.append(now)
        reached = now
        if not now:
            break
    return _way_back(steps, x0, y0, best)


def _way_back(steps: list[dict[int, int]], x0: int, y0: int, end: tuple[int, int]) -> list[Run]:
    x, y = end
    k = x - x0 - (y - y0)
    edits = next(at for at, now in enumerate(steps) if now.get(k) == x)
    found: list[Run] = [(x, y, 0)]
    while edits:
        before = steps[edits - 1]
        down = k == -edits or (k != edits and before.get(k - 1, _NOWHERE) < before.get(k + 1, _NOWHERE))
        k = k + 1 if down else k - 1
        start = before[k] if down else before[k] + 1
        found.append((start, start - x0 - (k - 1 if down else k + 1) + y0, x - start))
        x, edits = before[k], edits - 1
    found.append((x0, y0, x - x0))
    return found[::-1]


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Runs without the empty ones, neighbours in one."""
    found: list[Run] = []
    for a, b, count in runs:
        if found and count and (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]) == (a, b):
            a, b, count = found[-1][0], found[-1][1], found[-1][2] + count
            found.pop()
        if count:
            found.append((a, b, count))
    return found


def changed_spans(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterator[tuple[int, int, int, int]]:
    """Where two sequences of lines differ, as ranges (a, b, c, d): before[a:b] became after[c:d]."""
    runs = [(0, 0, 0), *matching(before, after), (len(before), len(after), 0)]
    for (a, b, n), (c, d, _) in pairwise(runs):
        if a + n < c or b + n < d:
            yield a + n, c, b + n, d
