"""Looking for text: in the lines of a note, and for a note by a few letters of its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

Match = tuple[int, int, int]
"""A place that was looked for: row (from 0), first and last character, the last not included."""

MOST = 10_000
"""Matches that are marked in one note."""


def find_in(lines: Sequence[str], text: str) -> list[Match]:
    """Where `text` stands in `lines`, the first MOST; capitals matter only when `text` has one."""
    if not text:
        return []
    pattern = re.compile(re.escape(text), 0 if any(map(str.isupper, text)) else re.IGNORECASE)

    def every() -> Iterator[Match]:
        for row, line in enumerate(lines):
            for found in pattern.finditer(line):
                yield row, *found.span()

    return list(islice(every(), MOST))


def closest(names: Sequence[str], letters: str, limit: int = 200) -> list[int]:
    """The places in `names` of those that resemble `letters`, best first; all in their order without letters.

    Names that hold the letters in their order come before those that are merely alike.
    """
    from rapidfuzz import fuzz, process

    wanted = letters.casefold().replace(" ", "")
    if not wanted:
        return list(range(min(limit, len(names))))
    folded = [name.casefold() for name in names]
    scores = process.cdist([letters.casefold()], folded, scorer=fuzz.partial_ratio)[0]
    ranked = sorted(
        (not _holds(name, wanted), -float(score), len(name), at)
        for at, (name, score) in enumerate(zip(folded, scores, strict=True))
    )
    return [at for misses, score, _, at in ranked if not misses or score <= -70][:limit]


def _holds(name: str, letters: str) -> bool:
    """Whether `name` has all `letters` in this order, with anything between."""
    rest = iter(name)
    return all(letter in rest for letter in letters)
