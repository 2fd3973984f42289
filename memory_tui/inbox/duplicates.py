"""Duplicates are lines that the notes hold twice: equal or nearly equal."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from operator import itemgetter

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


def _rank(entry: NoteItem) -> tuple[bool, int, str, int]:
    """Sort key: the twin in a lasting note stays, else the newest, else the first."""
    day = entry.note.day
    return day is not None, -day.toordinal() if day else 0, entry.note.path, entry.first
