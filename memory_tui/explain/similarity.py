"""How much of their words candidates share, worked out for those that are asked about, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from memory_tui.search.evidence import Rows
from memory_tui.search.scoring import Floats, Jaccard


class Similarity:
    """Jaccard similarity between token sets; `tokens` makes these when the first row is asked for."""

    def __init__(self, tokens: Callable[[], Sequence[frozenset[str]]]) -> None:
        self._make = tokens
        self._known: dict[int, Floats] = {}

    @cached_property
    def _jaccard(self) -> Jaccard:
        return Jaccard(self._make())

    def rows(self, which: Rows) -> Floats:
        """The similarity of each of `which` to each set."""
        distinct, inverse = np.unique(which, return_inverse=True)
        for i in distinct.tolist():
            if i not in self._known:
                self._known[i] = self._jaccard.with_each(i)
        return np.stack([self._known[i] for i in distinct.tolist()])[inverse]
