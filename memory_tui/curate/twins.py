"""What the notes say twice: word for word, in nearly the same words, and perhaps in other words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from memory_tui.curate.entries import Entry
from memory_tui.text.words import segmented

SHORTEST = 20
"""Characters of what is compared; shorter entries repeat by chance."""
NEAR = 88.0
"""Least `rapidfuzz.fuzz.ratio` of two entries that say nearly the same."""
_RARE = 40
"""A word in more entries than this tells nothing about which two of them are alike."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CLOSE = 0.9
"""Least cosine of chunks that may say the same; vectors made of words alone are close for any two notes."""
_BLOCK = 1024


def same(found: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs (to keep, to remove) of entries that are word for word the same."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in found:
        if len(entry.plain) >= SHORTEST and not entry.fenced:
            groups[entry.plain].append(entry)
    for group in groups.values():
        if len(group) > 1:
            keep = min(group, key=_rank)
            yield from ((keep, entry) for entry in group if entry is not keep)


def nearly_same(found: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs (to keep, to remove) that differ in little; those that differ in numbers alone are measurements."""
    candidates = [entry for entry in found if len(entry.plain) >= SHORTEST and not entry.fenced]
    words = [frozenset(segmented(entry.plain).split()) for entry in candidates]
    telling = {token for token, count in Counter(chain.from_iterable(words)).items() if 1 < count <= _RARE}
    where: dict[str, list[int]] = defaultdict(list)
    taken: set[int] = set()
    for at, entry in enumerate(candidates):
        own = words[at] & telling
        shared = Counter(chain.from_iterable(where[token] for token in own))
        for token in own:
            where[token].append(at)
        for other, count in shared.most_common(8):
            if count < max(2, min(len(words[at]), len(words[other])) // 4) or other in taken:
                continue
            if _alike(candidates[other].plain, entry.plain):
                keep, drop = sorted((candidates[other], entry), key=_rank)
                taken.add(at if drop is entry else other)
                yield keep, drop
                break


def _alike(a: str, b: str) -> bool:
    if a == b or fuzz.ratio(a, b, score_cutoff=NEAR) == 0:
        return False
    return _NUMBER.sub("0", a) != _NUMBER.sub("0", b)


def close(vectors: npt.NDArray[np.float32], group: npt.NDArray[np.int32], least: float = _CLOSE
          ) -> list[tuple[int, int, float]]:
    """Pairs of rows of different groups that are each other's nearest, with their cosine, the closest first.

    `vectors` are unit rows (n, dims) or zeros; a pair has to stand out from what any two of them are like.
    """
    count = len(vectors)
    if count < 2:
        return []
    best, value = np.zeros(count, np.int64), np.full(count, -1.0, np.float32)
    total = squares = pairs = 0.0
    for start in range(0, count, _BLOCK):
        block = vectors[start:start + _BLOCK] @ vectors.T
        block[group[start:start + _BLOCK, None] == group[None, :]] = np.nan
        known = ~np.isnan(block)
        total += float(np.nansum(block, dtype=np.float64))
        squares += float(np.nansum(np.square(block), dtype=np.float64))
        pairs += int(known.sum())
        block[~known] = -1.0
        best[start:start + _BLOCK] = block.argmax(axis=1)
        value[start:start + _BLOCK] = block.max(axis=1)
    if not pairs:
        return []
    mean = total / pairs
    unusual = mean + 4.0 * max(0.0, squares / pairs - mean * mean) ** 0.5
    found = [(at, int(best[at]), float(value[at])) for at in range(count)
             if best[best[at]] == at and at < best[at] and value[at] >= max(least, min(unusual, 0.985))]
    return sorted(found, key=lambda pair: -pair[2])


def _rank(entry: Entry) -> tuple[bool, int, str, int]:
    """Which of two twins stays: one of a lasting note, else the newest, else the first."""
    day = entry.note.day
    return day is not None, -day.toordinal() if day else 0, entry.note.path, entry.first
