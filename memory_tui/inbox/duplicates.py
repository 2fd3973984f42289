"""Duplicates are lines that the notes hold twice: equal, nearly equal, or close in meaning."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, pairwise
from operator import itemgetter

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from memory_tui.errors import Cancelled
from memory_tui.inbox.entries import NoteItem
from memory_tui.tokens import segmented

SHORTEST = 20
"""Fewest characters of a compared item; shorter ones repeat by chance."""
NEAR = 88.0
"""Lowest `rapidfuzz.fuzz.ratio` (0 to 100) of near duplicates."""
_RARE = 40
"""Most items that share a telling word; a commoner word marks no pair as alike."""
_SHARED = 2
"""Fewest telling words that two items share before they are compared."""
_OFTEN = 256
"""Items between two checks for a stop; other threads run in between."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CLOSE = 0.9
"""Least cosine of chunks that may say the same; vectors made of words alone are close for any two notes."""
_BLOCK = 1024


def same(items: Sequence[NoteItem]) -> Iterator[tuple[NoteItem, NoteItem]]:
    """Yield pairs (to keep, to remove) of items with equal words."""
    groups: dict[str, list[NoteItem]] = defaultdict(list)
    for entry in items:
        if len(entry.plain) >= SHORTEST and not entry.fenced:
            groups[entry.plain].append(entry)
    for group in groups.values():
        if len(group) > 1:
            keep = min(group, key=_rank)
            yield from ((keep, entry) for entry in group if entry is not keep)


def nearly_same(
    items: Sequence[NoteItem], stopped: Callable[[], bool] = lambda: False
) -> Iterator[tuple[NoteItem, NoteItem, float]]:
    """Yield pairs (to keep, to remove) of near duplicates, with their likeness in 100; items that differ in numbers
    alone are measurements.

    Raises Cancelled when `stopped` says so.
    """
    candidates = [entry for entry in items if len(entry.plain) >= SHORTEST and not entry.fenced]
    words = [frozenset(segmented(entry.plain).split()) for entry in candidates]
    sizes = [len(item_words) for item_words in words]
    counts: Counter[str] = Counter()
    for start in range(0, len(words), _OFTEN):
        # All at once would keep every other thread waiting for as long as it takes.
        counts.update(chain.from_iterable(words[start : start + _OFTEN]))
    telling = {token for token, count in counts.items() if 1 < count <= _RARE}
    where: dict[str, list[int]] = defaultdict(list)
    taken: set[int] = set()
    for at, entry in enumerate(candidates):
        if at % _OFTEN == 0 and stopped():
            raise Cancelled
        shared_words = words[at] & telling
        # Let go one by one: a hundred thousand sets at once would keep other threads waiting, too.
        words[at] = frozenset()
        if len(shared_words) < _SHARED:
            continue
        shared = Counter(chain.from_iterable(where[token] for token in shared_words))
        for token in shared_words:
            where[token].append(at)
        enough = [(other, count) for other, count in shared.items() if count >= _SHARED]
        for other, count in nlargest(8, enough, key=itemgetter(1)) if enough else ():
            if count < min(sizes[at], sizes[other]) // 4 or other in taken:
                continue
            if alike := _alike(candidates[other].plain, entry.plain):
                keep, drop = sorted((candidates[other], entry), key=_rank)
                taken.add(at if drop is entry else other)
                yield keep, drop, alike
                break


def _alike(a: str, b: str) -> float:
    """How like each other two texts are, in 100; 0 where they are equal, not like enough, or differ in numbers."""
    likeness = 0.0 if a == b else fuzz.ratio(a, b, score_cutoff=NEAR)
    return likeness if likeness and _NUMBER.sub("0", a) != _NUMBER.sub("0", b) else 0.0


def close(
    vectors: npt.NDArray[np.float32],
    group: npt.NDArray[np.int32],
    least: float = _CLOSE,
    stopped: Callable[[], bool] = lambda: False,
) -> list[tuple[int, int, float]]:
    """Return pairs of rows of different groups that are each other's nearest, with their cosine, the closest first.

    `vectors` are unit rows (n, dims) or zeros; a pair has to stand out from what any two of them are like. Raises
    Cancelled when `stopped` says so.
    """
    count = len(vectors)
    order = np.argsort(group, kind="stable")
    rows, starts = vectors[order], np.flatnonzero(np.diff(group[order], prepend=group[order[:1]] - 1))
    bounds = list(pairwise([*starts.tolist(), count]))
    if len(bounds) < 2:
        return []
    best, value = np.zeros(count, np.int64), np.zeros(count, np.float32)
    for start in range(0, count, _BLOCK):
        if stopped():
            raise Cancelled
        block = rows[start : start + _BLOCK] @ rows.T
        for first, last in bounds:
            if first < start + _BLOCK and last > start:
                block[max(0, first - start) : last - start, first:last] = -1.0
        nearest = block.argmax(axis=1)
        best[order[start : start + _BLOCK]] = order[nearest]
        value[order[start : start + _BLOCK]] = block[np.arange(len(block)), nearest]
    mean, deviation = _spread(rows, bounds)
    unusual = mean + 4.0 * deviation
    result = [
        (at, int(best[at]), float(value[at]))
        for at in range(count)
        if best[best[at]] == at and at < best[at] and value[at] >= max(least, min(unusual, 0.985))
    ]
    return sorted(result, key=lambda pair: -pair[2])


def _spread(rows: npt.NDArray[np.float32], bounds: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return mean and standard deviation of the products of rows of different groups, without making them all.

    The products of all rows of a matrix V sum to |sum of V's rows|^2, and their squares to |V^T V|^2 (Frobenius).
    """

    def sums(part: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        gram = part.T @ part if len(part) > part.shape[1] else part @ part.T
        return np.array([np.square(part.sum(axis=0)).sum(), np.square(gram).sum(), float(len(part)) ** 2])

    exact = rows.astype(np.float64)
    total, squares, pairs = sums(exact) - sum(sums(exact[first:last]) for first, last in bounds)
    mean = total / pairs
    return float(mean), float(max(0.0, squares / pairs - mean * mean) ** 0.5)


def _rank(entry: NoteItem) -> tuple[bool, int, str, int]:
    """Sort key: the twin in a lasting note stays, else the newest, else the first."""
    day = entry.note.day
    return day is not None, -day.toordinal() if day else 0, entry.note.path, entry.first
