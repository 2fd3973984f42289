"""The second stage looks into the first candidates. It looks at their windows, their lines and their letters.

A chunk of 400 tokens is a coarse unit: one line that answers is drowned by twenty that do not. So the first candidates
of a ranking are measured again by their best window, by their best line, by the trigrams they share with the
question, which find compounds, inflections, misspellings, and by how much of the question a window holds, where a word
that is missing counts as much as the nearest one is like it. Each measure is divided by the best among those candidates
(max-norm), weighted, added up. A candidate beside a better one of the same note answers with nearly the same text, and
loses a little.

Passages follow Callan (1994), bm25 Robertson and Zaragoza (2009) with Lucene's idf, trigrams McNamee and Mayfield
(2004), variety Carbonell and Goldstein (1998).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memory_tui.core import tokens
from memory_tui.core.errors import ProviderError
from memory_tui.providers.builtin import StaticTable, static_table
from memory_tui.search.answer_level import AnswerSignals, is_cjk
from memory_tui.search.corpus import one_blas_thread
from memory_tui.search.formulas import Floats, lucene_idf
from memory_tui.search.passage_measures import (
    MEASURES,
    Best,
    MeasuredChunks,
    PassageQuery,
    Window,
    query_of,
    weights,
    windows_of,
)
from memory_tui.search.passages import PassageMemory, Passages, gram_counts, grams_of, is_german, pairs_beside

CANDIDATES = 30
"""How many of the first candidates are looked into; more give no better answers."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_memory = PassageMemory()


def passage_table() -> StaticTable:
    """The built-in table, whatever provider the index is made with: it compares lines in microseconds."""
    return static_table()


class SecondStage:
    """What a question finds inside chunks; each is measured when a ranking puts it among its first candidates.

    `reference` are the rows that idf of trigrams and mean lengths are of, which no knob changes. `texts` gives those
    of rows. Meaning counts by how much of the question the table knows: at 0 words alone count, as they do where there
    is a `problem` with the table. May be used by several threads at once.
    """

    def __init__(
        self,
        words: Sequence[str],
        left_out: Sequence[str],
        frequency: Mapping[str, int],
        chunks: int,
        query: str,
        reference: Sequence[int],
        texts: Callable[[Sequence[int]], Sequence[str]],
        *,
        meaning: float,
    ) -> None:
        table, vector, self.problem = None, None, ""
        try:
            table = passage_table()
        except ProviderError as error:
            self.problem = error.message if meaning else ""
        if table is not None and meaning:
            summed = table.rows(np.array(table.ids(query), dtype=np.int64)).sum(axis=0)
            length = float(np.sqrt(summed @ summed))
            vector = summed / np.float32(length) if length > 0 else None
        self.query, self.reference = query, tuple(reference)
        self._table = table if vector is not None else None
        self._texts = texts
        self._pairs = is_cjk(query)
        self._known: dict[int, tuple[MeasuredChunks, int]] = {}
        self._words, self._frequency, self._chunks = words, frequency, chunks
        # Those of a part of the question alone.
        asked = set(tokens.WORD.findall(query.lower()))
        self._left_out = [word for word in left_out if word in asked]
        self._vector, self._vocabulary = vector, table
        self._meaning = meaning if vector is not None else 0.0
        self._grams = grams_of([*words, *pairs_beside(query, words)])

    @cached_property
    def _first(self) -> tuple[PassageQuery, Floats, dict[int, tuple[Passages, Floats]]]:
        """How passages are measured, the weights of the measures, and the reference as it was cut for both."""
        first = _memory.of(self._texts(self.reference), self._table)
        grams = self._counted(first)
        holding = (grams > 0).sum(axis=1).tolist()
        asked = query_of(
            self._words,
            self._left_out,
            self._frequency,
            self._chunks,
            dict(zip(self._grams.tolist(), (lucene_idf(n, len(first)) for n in holding), strict=True)),
            first,
            self._vector,
            self._table,
            self._vocabulary,
        )
        weighed = weights(words=bool(self._words), meaning=self._meaning, german=is_german(first))
        return asked, weighed, dict(zip(self.reference, zip(first, grams.T, strict=True), strict=True))

    @property
    def asked(self) -> PassageQuery:
        """How passages are measured."""
        return self._first[0]

    @property
    def weights(self) -> Floats:
        """The weight of each measure."""
        return self._first[1]

    def _counted(self, passages: Sequence[Passages]) -> Floats:
        return gram_counts(self._grams, [one.letters for one in passages])

    def _measure(self, rows: Sequence[int]) -> None:
        """Measure those of `rows` that nobody asked for yet."""
        new = [row for row in rows if row not in self._known]
        if not new:
            return
        asked, _, cut = self._first
        if others := [row for row in new if row not in cut]:
            passages = _memory.of(self._texts(others), self._table)
            cut = cut | dict(zip(others, zip(passages, self._counted(passages).T, strict=True), strict=True))
        with one_blas_thread():
            found = MeasuredChunks(
                asked, [cut[row][0] for row in new], np.stack([cut[row][1] for row in new], 1), self._table
            )
        self._known.update((row, (found, at)) for at, row in enumerate(new))

    @cached_property
    def signals(self) -> AnswerSignals:
        """The best of the reference by each signal of an answer."""
        self._measure(self.reference)
        found = [self.best(row) for row in self.reference]
        mass = sum(self.asked.stems.values()) or 1.0
        window, cosine, closeness = (max((one.values[at] for one in found), default=0.0) for at in (0, 2, 5))
        coverage, rarest, line = (
            max((getattr(one, name) for one in found), default=0.0) for name in ("coverage", "rarest", "line_words")
        )
        meaning = None if self.asked.vector is None else cosine
        return AnswerSignals(coverage, line / mass, window / mass, closeness, meaning, rarest, self._pairs)

    def windows(self, rows: Sequence[int]) -> list[list[Window]]:
        """Every window of each of `rows`."""
        passages = _memory.of(self._texts(rows), self._table)
        return windows_of(self.asked, passages, self._table, self.weights)

    def best(self, row: int) -> Best:
        """What was measured at `row`."""
        self._measure([row])
        found, at = self._known[row]
        return found.best[at]

    def measured(self, rows: Sequence[int]) -> Floats:
        """The measures of each of `rows`: (rows, measures)."""
        self._measure(rows)
        values = [found.values[at] for found, at in map(self._known.__getitem__, rows)]
        return np.array(values, dtype=np.float64).reshape(len(rows), len(MEASURES))


def first_of(scores: Floats) -> Rows:
    """The first CANDIDATES of each row of `scores` (rules, candidates), best first, equal ones in their order."""
    columns: Rows = np.arange(scores.shape[1])
    if len(scores) > 1 and len(columns) > CANDIDATES:
        # Of many rankings at once only those are sorted that are among the first of any of them.
        last = np.partition(scores, -CANDIDATES, axis=1)[:, -CANDIDATES, None]
        columns = np.flatnonzero((scores >= last).any(axis=0))
    return np.asarray(columns[np.argsort(-scores[:, columns], axis=1, kind="stable")[:, :CANDIDATES]])


def shares(values: Floats, inside: Flags) -> Floats:
    """Return `values` (candidates, measures) over the best of those `inside` by each rule, 0 for others.

    That is (rules, candidates, measures).
    """
    within = np.where(inside[:, :, None], values[None, :, :], 0.0)
    best = within.max(axis=1, initial=0.0)[:, None, :]
    return np.asarray(np.divide(within, best, out=np.zeros_like(within), where=best > 0), dtype=np.float64)


def spread(scores: Floats, order: Rows, beside: Flags, penalty: Floats) -> tuple[Floats, Rows]:
    """What neighbours of better candidates lose, and the better one of each (-1 for none): (rules, candidates).

    `order` (rules, k) are the candidates that are looked at, those `beside` (candidates, candidates) each other are
    neighbours, `penalty` is (rules, 1). From the best down, each takes it off its neighbours, once; no score falls
    below 0. Of equal ones the earlier in `order` is first.
    """
    lost, twin = np.zeros_like(scores), np.full(scores.shape, -1, dtype=np.int64)
    rules = np.arange(len(scores))
    others = beside & ~np.eye(len(beside), dtype=np.bool_)
    alone = np.asarray(~np.any(others, axis=1))[order]
    # Those without any neighbour lose nothing and take nothing: only the others are gone through, in their order.
    width = int(order.shape[1] - alone.sum(axis=1).min(initial=order.shape[1]))
    order = np.take_along_axis(order, np.argsort(alone, axis=1, kind="stable")[:, :width], axis=1)
    near = others[order[:, :, None], order[:, None, :]]
    if not near.any():
        return lost, twin
    raw = np.take_along_axis(scores, order, axis=1)
    value, off, of = raw.copy(), np.zeros_like(raw), np.full(order.shape, -1, dtype=np.int64)
    left = np.ones(order.shape, dtype=np.bool_)
    most = np.minimum(penalty, np.maximum(raw, 0.0))
    for _ in range(width):
        pick = np.argmax(np.where(left, value, -np.inf), axis=1)
        left[rules, pick] = False
        hit = near[rules, pick] & left & (of < 0)
        off = np.where(hit, most, off)
        of = np.where(hit, order[rules, pick][:, None], of)
        value = np.where(hit, raw - most, value)
    np.put_along_axis(lost, order, off, axis=1)
    np.put_along_axis(twin, order, of, axis=1)
    return lost, twin
