"""The second stage looks into the first candidates. It looks at their lines, their windows and their letters.

A chunk of 400 tokens is a coarse unit: one line that answers is drowned by twenty that do not. So the first candidates
of a ranking are measured again: by the words of their best line, by the meaning of their best window, by the trigrams
they share with the question, which find compounds, inflections, misspellings, and by how much of the question a window
holds, where a word that is missing counts as much as the nearest one is like it. Each measure is divided by the best
among those candidates (max-norm), weighted, added up. A candidate beside a better one of the same note answers with
nearly the same text, and loses a little.

Passages follow Callan (1994), bm25 Robertson and Zaragoza (2009) with Lucene's idf, trigrams McNamee and Mayfield
(2004), variety Carbonell and Goldstein (1998).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui import tokens
from memory_tui.errors import ProviderError
from memory_tui.providers.builtin import StaticTable, static_table
from memory_tui.search.corpus import one_blas_thread
from memory_tui.search.formulas import Floats, lucene_idf, okapi_bm25
from memory_tui.search.level import AnswerSignals, is_cjk
from memory_tui.search.passages import (
    Ids,
    Joined,
    Passages,
    gram_counts,
    grams_of,
    joined,
    passages_of,
    stem_counts,
    stems_of,
)
from memory_tui.search.spelling import ENGLISH, GERMAN

CANDIDATES = 20
"""How many of the first candidates are looked into; more give no better answers."""

Flags = npt.NDArray[np.bool_]
Vectors = npt.NDArray[np.float32]


class Measure(NamedTuple):
    """One way of looking into a chunk: its name, its weight among the measures, and what it goes by."""

    name: str
    weight: float
    by: Literal["words", "meaning"]


MEASURES = (
    Measure("line words", 0.10, "words"),
    Measure("window meaning", 0.15, "meaning"),
    Measure("letters", 0.15, "words"),
    Measure("like words", 0.20, "words"),
)
_LETTERS = 2
COMPOUNDS = 4.0
"""How much more letters count in German notes, where a word of the question is a part of a longer one."""
LEFT_OUT = 0.5
"""How much a word that the search leaves out counts in a line, beside one that is searched. "She" in a line tells who
is spoken of, although no note is found by it."""
_COMMONEST = 995
"""Before it the vocabulary of BERT holds single characters; behind it words, the most frequent first."""
_ZIPF, _RAREST = 2.3, 12.5
"""-ln of the share of the most frequent word, and of a word that the vocabulary does not hold."""


class Measured(NamedTuple):
    """What a question finds in some texts, a row for each: (texts, measures).

    Of the best line there is the number, from 0, of the best window its first and last line.
    """

    values: Floats
    line: Ids
    window: Ids


class _Inside(NamedTuple):
    """What a question finds in every line and every window of some texts.

    `lines`, `searched` (without the words that were left out) and `windows` are bm25, `exact` tells which windows hold
    each word: (words, windows), `close` is the share of the question that a window holds or is like.
    """

    lines: Floats
    searched: Floats
    line_cosine: Floats
    windows: Floats
    window_cosine: Floats
    exact: Floats
    close: Floats


class Window(Struct, frozen=True):
    """A window of a chunk: its `first` and `last` line and the `line` of it that answers best, counted from 0.

    `share` is what its measures give beside those of the other windows, from 0 to 1.
    """

    first: int
    last: int
    line: int
    share: float


def passage_table() -> StaticTable:
    """Return the built-in table, whatever provider the index is made with: it compares lines in microseconds."""
    return static_table()


class SecondStage:
    """How one question, or a part of it, measures chunks.

    `words` are searched, `left_out` are not and count in lines alone; `frequency` tells in how many of `chunks` each
    stands. Of the `reference`, the texts that a ranking without knobs has first, are the idf of trigrams and the mean
    lengths. `meaning` is how much of the question the table knows: at 0 words alone count, as they do where there is a
    `problem` with the table.
    """

    def __init__(
        self,
        words: Sequence[str],
        left_out: Sequence[str],
        frequency: Mapping[str, int],
        chunks: int,
        query: str,
        reference: Sequence[str],
        *,
        meaning: float,
    ) -> None:
        self.query, self.problem, self._vocabulary = query, "", None
        try:
            self._vocabulary = passage_table()
        except ProviderError as error:
            self.problem = error.message if meaning else ""
        self._vector: Vectors | None = None
        if self._vocabulary is not None and meaning and (vector := _summed(self._vocabulary, query)).any():
            self._vector = vector / np.float32(np.sqrt(vector @ vector))
        by_key = {hash(stem): word for word in words for stem in stems_of(word)}
        self._keys = np.array(sorted(by_key), np.int64)
        self._words = [by_key[key] for key in self._keys.tolist()]
        self._idf = np.array([lucene_idf(frequency.get(word, 0), chunks) for word in self._words])
        self._rarity = np.array(list(map(self._rarity_of, self._words, self._idf.tolist())))
        self._directions = self._directions_of(self._words)
        first = joined(passages_of(reference, self._vocabulary))
        passages, lines = first.passages, len(first.passages.lines)
        inside = set(tokens.WORD.findall(query.lower()))
        others = {
            hash(stem) for word in left_out if word in inside and not tokens.is_cjk(word) for stem in stems_of(word)
        }
        self._others = np.array(sorted(others - set(by_key)), np.int64)
        holding = (stem_counts(self._others, passages) > 0).sum(axis=1).tolist()
        self._others_idf = np.array([LEFT_OUT * lucene_idf(count, lines) for count in holding])
        self._grams = grams_of(words)
        holding = (gram_counts(self._grams, first) > 0).sum(axis=1).tolist()
        self._grams_idf = np.array([lucene_idf(count, len(reference)) for count in holding])
        self._line_length = len(passages.stems) / max(1, lines) or 1.0
        self._window_length = len(passages.stems) / max(1, len(passages.window_norm)) or 1.0
        self._letters_length = len(passages.letters) / max(1, len(reference)) or 1.0
        by = {"words": float(bool(words)), "meaning": meaning if self._vector is not None else 0.0}
        raw = np.array([item.weight * by[item.by] for item in MEASURES])
        raw[_LETTERS] *= COMPOUNDS if _is_german(passages) else 1.0
        self.weights: Floats = np.asarray(raw / raw.sum() if raw.any() else raw, dtype=np.float64)
        self._remembered: dict[int, tuple[Measured, int]] = {}
        self.signals = self._signals(first)

    def _rarity_of(self, word: str, idf: float) -> float:
        """Return how rare a word is in the language.

        In few notes most words are rare; the table's vocabulary, in order of frequency, tells "kohlrabi" from "talk".
        A word that it knows only in pieces is rarer than each that it knows. A pair of characters has its idf alone,
        and without a vocabulary every word.
        """
        if self._vocabulary is None or tokens.is_cjk(word):
            return idf
        ids = self._vocabulary.line_ids(word)
        rank = ids[0] - _COMMONEST if len(ids) == 1 else 0
        return min(_RAREST, _ZIPF + math.log(rank)) ** 2 / _RAREST if rank > 0 else _RAREST

    def _directions_of(self, words: Sequence[str]) -> Vectors | None:
        """Return the unit vector of each of `words`; zeros for what the table does not know.

        The table knows Chinese characters by hardly more than that they are some: pairs of them have no direction.
        """
        if self._vector is None or self._vocabulary is None or not words:
            return None
        vectors = np.stack([_summed(self._vocabulary, "" if tokens.is_cjk(word) else word) for word in words])
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=np.float32)

    def _signals(self, reference: Joined) -> AnswerSignals:
        """Return the best that any text of the reference has by each signal of an answer."""
        inside, mass = self._inside(reference.passages), float(self._idf.sum()) or 1.0
        in_text = np.maximum.reduceat(inside.exact, reference.windows_from[:-1], axis=1)
        return AnswerSignals(
            float((self._idf @ in_text / mass).max(initial=0.0)),
            float(inside.searched.max(initial=0.0)) / mass,
            float(inside.windows.max(initial=0.0)) / mass,
            float(inside.close.max(initial=0.0)),
            None if self._vector is None else float(inside.window_cosine.max(initial=0.0)),
            float((self._rarity[:, None] * inside.exact).max(initial=0.0)) / _RAREST,
            is_cjk(self.query),
        )

    def measure(self, rows: Sequence[int], texts: Sequence[str]) -> Floats:
        """Measure the `texts` of `rows`, each once: (rows, measures)."""
        new = [(row, text) for row, text in zip(rows, texts, strict=True) if row not in self._remembered]
        if new:
            measured = self._measured(joined(passages_of([text for _, text in new], self._vocabulary)))
            self._remembered.update((row, (measured, at)) for at, (row, _) in enumerate(new))
        values = [measured.values[at] for measured, at in map(self._remembered.__getitem__, rows)]
        return np.array(values, dtype=np.float64).reshape(len(rows), len(MEASURES))

    def places(self, row: int) -> tuple[int, tuple[int, int]]:
        """Return the best line of `row`, which was measured, and the first and last line of its best window."""
        measured, at = self._remembered[row]
        first, last = measured.window[at].tolist()
        return int(measured.line[at]), (first, last)

    def windows(self, texts: Sequence[str]) -> list[list[Window]]:
        """Return every window of each of `texts`, weighed as MEASURES are, without letters."""
        if not texts:
            return []
        every = joined(passages_of(texts, self._vocabulary))
        inside, numbers, starts = self._inside(every.passages), every.passages.lines, every.passages.window_from
        top = np.maximum.reduceat(inside.lines, starts)
        values, weights = np.stack([top, inside.window_cosine, inside.close]), np.delete(self.weights, _LETTERS)
        best = values.max(axis=1, keepdims=True)
        over = np.divide(values, best, out=np.zeros_like(values), where=best > 0)
        share = weights @ over / (float(weights.sum()) or 1.0)
        bounds = np.append(starts, len(numbers))
        line = best_of_each(inside.lines, inside.line_cosine, bounds, top)
        columns = (numbers[starts], numbers[bounds[1:] - 1], numbers[line], share)
        result = list(map(Window, *(column.tolist() for column in columns)))
        return [result[a:b] for a, b in pairwise(every.windows_from.tolist())]

    def _inside(self, passages: Passages) -> _Inside:
        starts = passages.window_from
        counts, lengths = stem_counts(self._keys, passages), passages.stem_counts.astype(np.float64)
        searched = okapi_bm25(counts, self._idf, lengths, self._line_length)
        others = okapi_bm25(stem_counts(self._others, passages), self._others_idf, lengths, self._line_length)
        in_windows = np.add.reduceat(counts, starts, axis=1)
        windows = okapi_bm25(in_windows, self._idf, np.add.reduceat(lengths, starts), self._window_length)
        exact = (in_windows > 0).astype(np.float64)
        with one_blas_thread():
            line_cosine, window_cosine, like = self._meaning(passages)
        close = self._rarity @ np.maximum(exact, like) / (float(self._rarity.sum()) or 1.0)
        return _Inside(searched + others, searched, line_cosine, windows, window_cosine, exact, close)

    def _meaning(self, passages: Passages) -> tuple[Floats, Floats, Floats]:
        """Return the cosine of every line and window with the question, 0 for negative ones and without meaning, and
        the greatest cosine of any token of a window with each word of the question: (words, windows).
        """
        like = np.zeros((len(self._keys), len(passages.window_norm)))
        ids, starts = passages.ids, passages.window_from
        if self._vector is None or self._vocabulary is None or not len(ids):
            return np.zeros(len(passages.line_norm)), np.zeros(len(passages.window_norm)), like
        # A token stands in many chunks: each is compared once.
        used = np.flatnonzero(np.bincount(ids))
        rows, place = self._vocabulary.rows(used), np.zeros(int(used[-1]) + 1, dtype=np.int64)
        place[used] = np.arange(len(used))
        at, bounds = place[ids], np.concatenate([[0], np.cumsum(passages.id_counts)])
        # Where a line or a window has no token, reduceat gives what stands there, which is another one's.
        dots = np.add.reduceat(np.append((rows @ self._vector)[at], np.float32(0)), bounds[:-1]).astype(np.float64)
        dots[passages.id_counts == 0] = 0.0
        if self._directions is not None:
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            near = (self._directions @ rows.T) / np.where(lengths > 0, lengths, 1.0)
            first = bounds[starts]
            for row, values in zip(like, near, strict=True):
                row[:] = np.maximum.reduceat(np.append(values[at], np.float32(0)), first)
            like[:, np.add.reduceat(passages.id_counts, starts) == 0] = 0.0
        windows = np.add.reduceat(dots, starts)
        return _cosines(dots, passages.line_norm), _cosines(windows, passages.window_norm), np.maximum(like, 0.0)

    def _measured(self, texts: Joined) -> Measured:
        passages, starts = texts.passages, texts.passages.window_from
        inside, by_line, by_window = self._inside(passages), texts.lines_from[:-1], texts.windows_from[:-1]
        sizes = np.diff(texts.letter_ends, prepend=0).astype(np.float64)
        best_line = np.maximum.reduceat(inside.lines, by_line)
        values = [
            best_line,
            np.maximum.reduceat(inside.window_cosine, by_window),
            okapi_bm25(gram_counts(self._grams, texts), self._grams_idf, sizes, self._letters_length),
            np.maximum.reduceat(inside.close, by_window),
        ]
        best_window = np.maximum.reduceat(inside.windows, by_window)
        line = best_of_each(inside.lines, inside.line_cosine, texts.lines_from, best_line)
        window = best_of_each(inside.windows, inside.window_cosine, texts.windows_from, best_window)
        ends = np.append(starts[1:], len(passages.lines)) - 1
        bounds = passages.lines[np.stack([starts[window], ends[window]], axis=1)]
        return Measured(np.stack(values, axis=1), passages.lines[line], bounds)


@cache
def _function_words() -> tuple[Ids, Ids]:
    """Return the stems of function words that German alone has, and those that English alone has."""
    german, english = ({hash(stem) for word in words for stem in stems_of(word)} for words in (GERMAN, ENGLISH))
    return np.array(sorted(german - english)), np.array(sorted(english - german))


def _is_german(passages: Passages) -> bool:
    """Return whether a text holds more German function words than English ones."""
    german, english = (int(np.isin(passages.stems, words).sum()) for words in _function_words())
    return german > english


def _cosines(dots: Floats, norms: Floats) -> Floats:
    return np.maximum(np.divide(dots, norms, out=np.zeros(len(dots)), where=norms > 0), 0.0)


def _summed(table: StaticTable, text: str) -> Vectors:
    """Return the sum of the vectors of the tokens of `text`."""
    return np.asarray(table.rows(np.array(table.ids(text), np.int64)).sum(axis=0), dtype=np.float32)


def best_of_each(words: Floats, meaning: Floats, bounds: Ids, top: Floats) -> Ids:
    """Return the passage that answers best among those from each of `bounds` to the next; of equal ones the first.

    Its words count over `top`, the best of them there, and its cosine is added.
    """
    counts = np.diff(bounds)
    over = np.divide(words, np.repeat(top, counts), out=np.zeros_like(words), where=np.repeat(top > 0, counts))
    over += meaning
    best = np.flatnonzero(over == np.repeat(np.maximum.reduceat(over, bounds[:-1]), counts))
    return np.asarray(best[np.searchsorted(best, bounds[:-1])], dtype=np.int64)


def first_of(scores: Floats) -> Ids:
    """Return the first CANDIDATES of each row of `scores` (rules, candidates), best first, equal ones as they stand."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :CANDIDATES]


def shares(values: Floats, inside: Flags) -> Floats:
    """Return `values` (candidates, measures) over the best of those `inside` by each rule, 0 for others.

    That is (rules, candidates, measures).
    """
    within = np.where(inside[:, :, None], values[None, :, :], 0.0)
    best = within.max(axis=1, initial=0.0)[:, None, :]
    return np.asarray(np.divide(within, best, out=np.zeros_like(within), where=best > 0), dtype=np.float64)


def spread(scores: Floats, order: Ids, beside: Flags, penalty: Floats) -> tuple[Floats, Ids]:
    """Return what neighbours of better candidates lose, and the better one of each (-1 for none).

    Both are (rules, candidates). `order` (rules, k) are the candidates that are looked at, those `beside` (candidates,
    candidates) each other are neighbours, `penalty` is (rules, 1). From the best down, each takes it off its
    neighbours, once; no score falls below 0. Of equal ones the earlier in `order` is first.
    """
    lost, twin = np.zeros_like(scores), np.full(scores.shape, -1, dtype=np.int64)
    others = beside & ~np.eye(len(beside), dtype=np.bool_)
    near = others[order[:, :, None], order[:, None, :]]
    if not near.any():
        return lost, twin
    rules, raw = np.arange(len(scores)), np.take_along_axis(scores, order, axis=1)
    value, of = raw.copy(), np.full(order.shape, -1, dtype=np.int64)
    left = np.asarray(near.any(axis=2))
    most = np.minimum(penalty, np.maximum(raw, 0.0))
    while left.any():
        pick = np.argmax(np.where(left, value, -np.inf), axis=1)
        left[rules, pick] = False
        hit = near[rules, pick] & left & (of < 0)
        of = np.where(hit, order[rules, pick][:, None], of)
        value = np.where(hit, raw - most, value)
    np.put_along_axis(lost, order, np.where(of >= 0, most, 0.0), axis=1)
    np.put_along_axis(twin, order, of, axis=1)
    return lost, twin
