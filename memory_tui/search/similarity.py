"""How much of their words candidates share, worked out for those that are asked about, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from memory_tui.search.evidence import Rows
from memory_tui.search.scoring import Floats


class Similarity:
    """Jaccard similarity between token sets: shared tokens over all tokens; two empty sets are the same.

    `tokens` makes the sets when the first of them is asked for. May be used by several threads at once.
    """

    def __init__(self, tokens: Callable[[], Sequence[frozenset[str]]]) -> None:
        self._make = tokens
        self._known: dict[int, Floats] = {}

    @cached_property
    def _sets(self) -> _Sets:
        return _Sets(self._make())

    def row(self, i: int) -> Floats:
        """The similarity of set `i` to every set; not to be changed."""
        found = self._known.get(i)
        if found is None:
            found = self._known[i] = self._sets.with_each(i)
        return found

    def rows(self, which: Rows) -> Floats:
        """The similarity of each of `which` to each set."""
        return np.stack([self.row(i) for i in which.tolist()])


class _Sets:
    def __init__(self, tokens: Sequence[frozenset[str]]) -> None:
        vocabulary: dict[str, int] = {}
        self._columns = [
            np.array([vocabulary.setdefault(token, len(vocabulary)) for token in items], dtype=np.int64)
            for items in tokens
        ]
        # A row a token, so that the tokens of one set are whole rows to add up.
        self._holds = np.zeros((len(vocabulary), len(tokens)), dtype=np.float32)
        for at, columns in enumerate(self._columns):
            self._holds[columns, at] = 1.0
        self._sizes = np.array([len(items) for items in tokens], dtype=np.float64)

    def with_each(self, i: int) -> Floats:
        shared = self._holds[self._columns[i]].sum(axis=0, dtype=np.float32).astype(np.float64)
        union = self._sizes + self._sizes[i] - shared
        return np.where(union > 0, shared / np.maximum(union, 1.0), 1.0)
