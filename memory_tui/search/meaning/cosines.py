"""Cosines of a query with the chunks of an index, of most of them only where somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np

from memory_tui.providers.provider_protocol import Vectors
from memory_tui.search.corpus import Corpus, Flags, Indices, cosines, distinct, products, vectors_of
from memory_tui.search.formulas import Floats, among_greatest
from memory_tui.source.protocol import ChunkSource

_ROUNDING = 4e-6
"""More than what single precision loses in a product, in its bounds, and between equal ones."""


_LEAST = float(np.finfo(np.float32).min)


class Cosines:
    """The cosine of each of `count` rows, NaN without a vector: those of `rows` are known, `rest` works out others.

    The nearest are among `rows`. `rest` gets the rows that are asked for, None for all. May be used by several threads
    at once: each works out the same.
    """

    def __init__(self, count: int, rows: Indices, values: Floats, rest: Callable[[Indices | None], Floats]) -> None:
        self._count, self._rows, self._values, self._rest = count, rows, values, rest
        self._every: Floats | None = None

    @classmethod
    def known(cls, every: Sequence[float] | Floats) -> Cosines:
        """Those of all rows, where they are known."""
        values = np.asarray(every, np.float64)
        rows = np.arange(len(values))
        found = cls(len(values), rows, values, lambda wanted: values if wanted is None else values[wanted])
        found._every = values
        return found

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, rows: int | np.integer) -> float: ...
    @overload
    def __getitem__(self, rows: Indices) -> Floats: ...
    def __getitem__(self, rows: int | np.integer | Indices) -> float | Floats:
        if not isinstance(rows, np.ndarray):
            return float(self[np.array([rows])][0])
        if self._every is not None:
            return self._every[rows]
        known = _among(rows, self._rows)
        found = np.empty(len(rows))
        found[known] = self._values[np.searchsorted(self._rows, rows[known])]
        if not known.all():
            found[~known] = self._rest(rows[~known])
        return found

    def of(self, rows: Sequence[int]) -> list[float]:
        """Those of `rows`, worked out together."""
        found: list[float] = self[np.array(rows, np.int64)].tolist()
        return found

    def every(self) -> Floats:
        """The cosine of every row."""
        if self._every is None:
            found = self._rest(None)
            found[self._rows] = self._values
            self._every = found
        return self._every

    def nearest(self) -> tuple[Indices, Floats]:
        """Rows in order, among which the nearest are, with their cosines."""
        return self._rows, self._values

    def only(self, rows: Indices) -> Cosines:
        """Those of `rows` alone, in their order."""
        return Cosines.known(self[rows])

    def put(self, rows: Indices, values: Floats) -> Cosines:
        """The same with the cosines of `rows`, which are in order, as they are in `values`."""
        if self._every is not None:
            every = self._every.copy()
            every[rows] = values
            return Cosines.known(every)
        other = ~_among(self._rows, rows)
        together = np.concatenate([self._rows[other], rows])
        order = np.argsort(together, kind="stable")
        return Cosines(self._count, together[order], np.concatenate([self._values[other], values])[order], self._rest)


def _among(rows: Indices, others: Indices) -> Flags:
    """Which of `rows` are among `others`, which are in order."""
    if not len(others):
        return np.zeros(len(rows), np.bool_)
    return np.asarray(others[np.minimum(np.searchsorted(others, rows), len(others) - 1)] == rows)


class ReadOnce:
    """The vectors of rows of `corpus`, where it has them or else from `store`; each is read once until it is `over`."""

    def __init__(self, store: ChunkSource, corpus: Corpus) -> None:
        self._store: ChunkSource | None = store
        self._corpus = corpus
        self._dims = corpus.identity.dims if corpus.identity else 0
        self._parts: list[tuple[Indices, Vectors]] = []

    def __call__(self, rows: Indices) -> Vectors:
        """Float32 array (len(rows), dims) of `rows`, which are in order, each once."""
        if self._store is None:
            return self._corpus.vectors(rows)
        new, known = np.ones(len(rows), np.bool_), []
        for own, vectors in self._parts:
            there = _among(rows, own)
            if there.any():
                new &= ~there
                known.append((there, vectors[np.searchsorted(own, rows[there])]))
        if new.any():
            self._parts.append((rows[new], vectors_of(self._store, self._corpus, rows[new])))
            known.append((new, self._parts[-1][1]))
        if len(known) == 1:
            return known[0][1]
        found = np.empty((len(rows), self._dims), np.float32)
        for there, vectors in known:
            found[there] = vectors
        return found

    def over(self) -> None:
        """Remember nothing from now on: the query is answered, and the store may be closed."""
        self._store = None
        self._parts = []


def of_nearest(
    corpus: Corpus, query: Vectors, shown: Flags, count: int, also: Sequence[int], read: ReadOnce
) -> Cosines | None:
    """The cosines of the `count` nearest rows of those that are `shown`, of all that rounding may put among them, and
    of the rows `also`.

    By the rounded vectors most rows are too far, so that only the others are multiplied: to the last digit as `cosines`
    does. None without rounded vectors, or where a product lies outside its bounds, which no right one does.
    """
    bounds = corpus.bounds(query)
    if bounds is None:
        return None

    def exact(rows: Indices) -> Floats:
        found = np.where(corpus.has_vector[rows], products(read(rows), query), np.float32(0)).astype(np.float64)
        found[~shown[rows]] = np.nan
        return found

    def rest(rows: Indices | None) -> Floats:
        if rows is not None:
            return exact(rows)
        return np.where(shown, cosines(corpus, query).astype(np.float64), np.nan)

    low, high = bounds
    if not shown.all():
        low[~shown] = high[~shown] = -np.inf
    first = among_greatest(low, count)
    if len(first) > count:
        first = np.sort(first[np.argpartition(low[first], -count)[-count:]])
    first = first[shown[first]]
    rows = distinct(np.concatenate([first, np.array(also, np.int64)]))
    some = Cosines(len(corpus), rows, exact(rows), rest)
    finite = some[first][~np.isnan(some[first])]
    edge = float(finite.min()) if len(finite) == count else -np.inf
    open_rows = np.flatnonzero(high >= max(edge - _ROUNDING, _LEAST))
    others = open_rows[~_among(open_rows, rows)]
    others = others[corpus.most(others, query) >= edge - _ROUNDING]
    found = some.put(others, exact(others))
    rows, values = found.nearest()
    known = values[~np.isnan(values)]
    own_low, own_high = (one[rows[~np.isnan(values)]] for one in bounds)
    fits = (known >= own_low - _ROUNDING) & (known <= own_high + _ROUNDING)
    return found if fits.all() else None
