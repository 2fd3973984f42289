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

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui.core import tokens
from memory_tui.core.errors import ProviderError
from memory_tui.providers.wires.builtin import StaticTable, static_table
from memory_tui.search.answer_level import AnswerSignals, is_cjk
from memory_tui.search.formulas import Floats, lucene_idf, okapi_bm25
from memory_tui.search.passages import (
    PassageMemory,
    Passages,
    TokenTable,
    gram_counts,
    grams_of,
    is_german,
    stem_keys,
    stems_of,
    sums,
)
from memory_tui.search.trace import ChunkRef

CANDIDATES = 30
"""How many of the first candidates are looked into; more give no better answers."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Measure(Struct, frozen=True):
    """One way of looking into a chunk: its name, its weight among the measures, and what it goes by."""

    name: str
    weight: float
    by: Literal["words", "meaning"]


MEASURES = (
    Measure("window words", 0.10, "words"),
    Measure("line words", 0.10, "words"),
    Measure("window meaning", 0.15, "meaning"),
    Measure("line meaning", 0.10, "meaning"),
    Measure("letters", 0.15, "words"),
    Measure("like words", 0.20, "words"),
)


class PassageQuery(Struct, frozen=True, dict=True):
    """What passages are measured by: `idf` of its stems and trigrams by their keys, and its direction.

    The idf of stems is by the chunks of the index, that of trigrams by the reference. `vector` is the unit vector of
    the question in the space of the table, None where meaning is not measured. The mean lengths are of the reference.
    `word_of` gives the word of each stem, in the order of `stems`. Meaning is by `table`; how rare words are in the
    language by the `vocabulary`, also where words alone are compared.
    """

    stems: Mapping[int, float]
    grams: Mapping[int, float]
    vector: npt.NDArray[np.float32] | None
    window_length: float
    line_length: float
    letters_length: float
    word_of: Mapping[str, str]
    table: TokenTable | None = None
    vocabulary: TokenTable | None = None

    @cached_property
    def directions(self) -> npt.NDArray[np.float32] | None:
        """The unit vector of the word of each stem, in the order of their keys; zeros for what the table does not know.

        The table knows Chinese characters by hardly more than that they are some: pairs of them have no direction.
        """
        if (table := self.table) is None:
            return None
        rows = [
            np.zeros(0, dtype=np.int64) if tokens.is_cjk(word) else np.array(table.line_ids(word), dtype=np.int64)
            for word in self.word_of.values()
        ]
        bounds = np.cumsum([0, *map(len, rows)])
        summed = sums(table.rows(np.concatenate([*rows, np.zeros(0, dtype=np.int64)])), bounds)
        return _unit(summed)[np.argsort(list(self.stems))]

    @cached_property
    def rarity(self) -> Floats:
        """How rare the word of each stem is in the language, in the order of their keys.

        In few notes most words are rare; the table's vocabulary, in order of frequency, tells "kohlrabi" from "talk".
        A word that it knows only in pieces is rarer than each that it knows. A pair of characters has its idf alone,
        and without a vocabulary every word.
        """
        table = self.vocabulary

        def of(word: str, idf: float) -> float:
            if table is None or tokens.is_cjk(word):
                return idf
            ids = table.line_ids(word)
            rank = ids[0] - _COMMONEST if len(ids) == 1 else 0
            return min(_RAREST, _ZIPF + math.log(rank)) ** 2 / _RAREST if rank > 0 else _RAREST

        found = [of(word, idf) for word, idf in zip(self.word_of.values(), self.stems.values(), strict=True)]
        return np.array(found, dtype=np.float64)[np.argsort(list(self.stems))]


class Best(Struct, frozen=True):
    """What was measured in one chunk: `values` in the order of MEASURES; its best line and window, from line 0.

    `coverage` is the share of the question's words that the chunk holds, weighed by idf. `rarest` is how rare its
    rarest word of the question is, from 0 to 1.
    """

    values: tuple[float, ...]
    line: int
    window: tuple[int, int]
    coverage: float
    rarest: float


def query_of(
    words: Sequence[str],
    frequency: Mapping[str, int],
    chunks: int,
    vector: npt.NDArray[np.float32] | None,
    reference: Sequence[Passages],
    grams: Floats,
    table: TokenTable | None = None,
    vocabulary: TokenTable | None = None,
) -> PassageQuery:
    """How the `words` of a question are measured in an index of `chunks`, given in how many of them each stands.

    `grams` counts each of their trigrams in each of `reference`: (trigrams, reference).
    """
    word_of = {stem: word for word in words for stem in stems_of(word)}
    stems = {stem: lucene_idf(frequency.get(word, 0), chunks) for word in words for stem in stems_of(word)}
    holding = (grams > 0).sum(axis=1).tolist()
    held = sum(len(one.stems) for one in reference)
    windows, lines = sum(len(one.window_norm) for one in reference), sum(len(one.lines) for one in reference)
    return PassageQuery(
        dict(zip(stem_keys(list(stems)).tolist(), stems.values(), strict=True)),
        dict(zip(grams_of(words).tolist(), (lucene_idf(n, len(reference)) for n in holding), strict=True)),
        vector,
        held / max(1, windows) or 1.0,
        held / max(1, lines) or 1.0,
        sum(len(one.letters) for one in reference) / max(1, len(reference)) or 1.0,
        word_of,
        table,
        vocabulary,
    )


_COMMONEST = 995
"""Before it the vocabulary of BERT holds single characters; behind it words, the most frequent first."""
_ZIPF, _RAREST = 2.3, 12.5
"""-ln of the share of the most frequent word, and of a word that the vocabulary does not hold."""


def _unit(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=np.float32)


class MeasuredChunks:
    """Chunks measured by a question: all of them at once, because numpy takes its time for each call.

    `grams` counts each trigram of the question in each of them: (trigrams, chunks). Most rankings go by the `values`
    alone, so the rest is worked out when somebody asks for it.
    """

    def __init__(
        self, asked: PassageQuery, chunks: Sequence[Passages], grams: Floats, table: TokenTable | None
    ) -> None:
        lines = np.cumsum([0, *(len(one.lines) for one in chunks)])
        windows = np.cumsum([0, *(len(one.window_norm) for one in chunks)])
        window_from = np.concatenate(
            [one.window_from[:-1] + at for one, at in zip(chunks, lines.tolist(), strict=False)]
        )
        by_words = _words(asked, chunks, window_from)
        by_meaning = _meaning(asked, chunks, window_from, table)
        of_windows = [np.maximum.reduceat(own, windows[:-1]) for own in (by_words[1], by_meaning.windows)]
        of_lines = [np.maximum.reduceat(own, lines[:-1]) for own in (by_words[0], by_meaning.lines)]
        alike = np.maximum.reduceat(_closeness(asked, by_words[2], by_meaning.like()), windows[:-1])
        best = (of_windows[0], of_lines[0], of_windows[1], of_lines[1], _letters(asked, chunks, grams), alike)
        self.values: list[tuple[float, ...]] = list(zip(*(own.tolist() for own in best), strict=True))
        places = np.concatenate([one.lines for one in chunks]), lines, windows, window_from
        self._rest: Callable[[], list[Best]] | None = partial(_rest, asked, self.values, by_words, by_meaning, places)
        self._best: list[Best] = []

    @property
    def best(self) -> list[Best]:
        """All that was measured in each of the chunks."""
        if (rest := self._rest) is not None:
            # In this order, because another thread may ask meanwhile.
            self._best = rest()
            self._rest = None
        return self._best


def _closeness(asked: PassageQuery, held: Floats, like: Floats) -> Floats:
    """The share of the question's words that each window holds, by how rare they are in the language.

    One that a window does not hold counts as much as the nearest token there is like it.
    """
    rarity = asked.rarity
    return np.asarray(rarity @ np.maximum(held, like) / (float(rarity.sum()) or 1.0), dtype=np.float64)


def _rest(
    asked: PassageQuery,
    values: Sequence[tuple[float, ...]],
    by_words: tuple[Floats, Floats, Floats],
    by_meaning: _Meaning,
    places: tuple[Rows, Rows, Rows, Rows],
) -> list[Best]:
    """What is known of chunks beside their `values`; `places` are numbers of lines, and where passages begin."""
    line_words, window_words, held = by_words
    number, lines, windows, window_from = places
    idf = np.array([asked.stems[key] for key in sorted(asked.stems)])
    mass = float(idf.sum()) or 1.0
    by_chunk = np.maximum.reduceat(held, windows[:-1], axis=1)
    coverage = idf @ by_chunk / mass
    rarest = (asked.rarity[:, None] * by_chunk).max(axis=0, initial=0.0) / _RAREST
    top = np.array([own[:2] for own in values], dtype=np.float64)
    # Of all lines and of all windows, numbered through.
    window_ends = np.append(window_from[1:], lines[-1])
    window = best_of_each(window_words, by_meaning.windows, windows, top[:, 0])
    return list(
        map(
            Best,
            values,
            number[best_of_each(line_words, by_meaning.lines, lines, top[:, 1])].tolist(),
            zip(number[window_from[window]].tolist(), number[window_ends[window] - 1].tolist(), strict=True),
            coverage.tolist(),
            rarest.tolist(),
        )
    )


class Window(Struct, frozen=True):
    """A window of a chunk: its `first` and `last` line and the `line` of it that answers best, counted from 0.

    `share` is what its measures give beside those of the other windows, from 0 to 1.
    """

    first: int
    last: int
    line: int
    share: float


def windows_of(
    asked: PassageQuery, chunks: Sequence[Passages], table: TokenTable | None, weights: Floats
) -> list[list[Window]]:
    """Every window of each of `chunks`, weighed as MEASURES are, without letters."""
    if not chunks:
        return []
    lines = np.cumsum([0, *(len(one.lines) for one in chunks)])
    starts = np.concatenate([one.window_from[:-1] + at for one, at in zip(chunks, lines.tolist(), strict=False)])
    line_words, window_words, _ = _words(asked, chunks, starts)
    meaning = _meaning(asked, chunks, starts, table)
    line_meaning, window_meaning = meaning.lines, meaning.windows
    by_line = [np.maximum.reduceat(values, starts) for values in (line_words, line_meaning)]
    values = np.stack([window_words, by_line[0], window_meaning, by_line[1]])
    best = values.max(axis=1, keepdims=True)
    weighed = weights[: len(values)] @ np.divide(values, best, out=np.zeros_like(values), where=best > 0)
    share, number = (
        weighed / (float(weights[: len(values)].sum()) or 1.0),
        np.concatenate([one.lines for one in chunks]),
    )
    bounds, at, found = np.append(starts, len(number)), 0, []
    answers = number[best_of_each(line_words, line_meaning, bounds, by_line[0])].tolist()
    for one in chunks:
        own = []
        for _ in range(len(one.window_norm)):
            first, last = int(bounds[at]), int(bounds[at + 1]) - 1
            own.append(Window(int(number[first]), int(number[last]), answers[at], float(share[at])))
            at += 1
        found.append(own)
    return found


def best_of_each(words: Floats, meaning: Floats, bounds: Rows, top: Floats) -> Rows:
    """Which passage answers best of those from each of `bounds` to the next: by words over the best of them there,
    which are `top`, and by cosine; of equal ones the first.
    """
    counts = np.diff(bounds)
    some = np.repeat(top > 0, counts)
    over = np.divide(words, np.repeat(top, counts), out=np.zeros_like(words), where=some) + meaning
    best = np.flatnonzero(over == np.repeat(np.maximum.reduceat(over, bounds[:-1]), counts))
    return np.asarray(best[np.searchsorted(best, bounds[:-1])], dtype=np.int64)


def _words(asked: PassageQuery, chunks: Sequence[Passages], window_from: Rows) -> tuple[Floats, Floats, Floats]:
    """bm25 of every line and of every window, and which windows hold each stem: (stems, windows), 1 or 0."""
    lengths = np.concatenate([one.stem_counts for one in chunks])
    keys = np.array(sorted(asked.stems), dtype=np.int64)
    counts = np.zeros((len(keys), len(lengths)))
    if len(keys):
        stems = np.concatenate([one.stems for one in chunks])
        at = np.minimum(np.searchsorted(keys, stems), len(keys) - 1)
        hit = np.flatnonzero(keys[at] == stems)
        np.add.at(counts, (at[hit], np.searchsorted(np.cumsum(lengths), hit, side="right")), 1.0)
    idf = np.array([asked.stems[key] for key in keys.tolist()], dtype=np.float64)
    of_windows = np.add.reduceat(counts, window_from, axis=1)
    window_lengths = np.add.reduceat(lengths, window_from)
    return (
        okapi_bm25(counts, idf, lengths.astype(np.float64), asked.line_length),
        okapi_bm25(of_windows, idf, window_lengths.astype(np.float64), asked.window_length),
        (of_windows > 0).astype(np.float64),
    )


class _Meaning(Struct, frozen=True):
    """The cosine of every one of the `lines` and `windows` with the question, 0 for negative ones and without meaning.

    `like` gives the greatest cosine of any token of a window with each word of the question: (stems, windows).
    """

    lines: Floats
    windows: Floats
    like: Callable[[], Floats]


def _meaning(asked: PassageQuery, chunks: Sequence[Passages], window_from: Rows, table: TokenTable | None) -> _Meaning:
    line_norm = np.concatenate([one.line_norm for one in chunks])
    window_norm = np.concatenate([one.window_norm for one in chunks])
    nothing = np.zeros((len(asked.stems), len(window_norm)))
    ids = np.concatenate([one.ids for one in chunks])
    if asked.vector is None or table is None or not len(ids):
        return _Meaning(np.zeros(len(line_norm)), np.zeros(len(window_norm)), lambda: nothing)
    # A token stands in many chunks: each is compared once.
    used = np.flatnonzero(np.bincount(ids))
    rows, place = table.rows(used), np.zeros(int(used[-1]) + 1, dtype=np.int64)
    place[used] = np.arange(len(used))
    at = place[ids]
    bounds = np.cumsum(np.concatenate([[0], *(one.id_counts for one in chunks)]))
    dots = sums((rows @ asked.vector)[at], bounds).astype(np.float64)
    windows = np.add.reduceat(dots, window_from)
    directions = asked.directions

    def like() -> Floats:
        if directions is None or not len(asked.stems):
            return nothing
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        near = (directions @ rows.T) / np.where(lengths > 0, lengths, 1.0)
        # A window without a token ends where it begins: what stands there is another one's.
        first = bounds[window_from]
        found = np.stack([np.maximum.reduceat(np.append(one[at], 0.0), first) for one in near]).astype(np.float64)
        found[:, first == np.append(first[1:], len(ids))] = 0.0
        return np.maximum(found, 0.0)

    return _Meaning(_cosines(dots, line_norm), _cosines(windows, window_norm), like)


def _cosines(dots: Floats, norms: Floats) -> Floats:
    found = np.zeros(len(dots))
    np.divide(dots, norms, out=found, where=norms > 0)
    return np.maximum(found, 0.0)


def _letters(asked: PassageQuery, chunks: Sequence[Passages], grams: Floats) -> Floats:
    """bm25 of the trigrams of every chunk."""
    idf = np.array([asked.grams[key] for key in sorted(asked.grams)], dtype=np.float64)
    return okapi_bm25(grams, idf, np.array([float(len(one.letters)) for one in chunks]), asked.letters_length)


COMPOUNDS = 4.0
"""How much more letters count in German notes, where a word of the question is a part of a longer one."""


def weights(*, words: bool, meaning: float, german: bool = False) -> Floats:
    """The weight of each measure, together 1; those that nothing was measured by count nothing.

    `meaning` is how much of the question the table knows.
    """
    raw = np.array([one.weight * {"words": float(words), "meaning": meaning}[one.by] for one in MEASURES])
    raw[[one.name == "letters" for one in MEASURES]] *= COMPOUNDS if german else 1.0
    return np.asarray(raw / raw.sum(), dtype=np.float64) if raw.any() else raw


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
        self._vector, self._vocabulary = vector, table
        self._meaning = meaning if vector is not None else 0.0
        self._grams = grams_of(words)

    @cached_property
    def _first(self) -> tuple[PassageQuery, Floats, dict[int, tuple[Passages, Floats]]]:
        """How passages are measured, the weights of the measures, and the reference as it was cut for both."""
        first = _memory.of(self._texts(self.reference), self._table)
        grams = self._counted(first)
        asked = query_of(
            self._words, self._frequency, self._chunks, self._vector, first, grams, self._table, self._vocabulary
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
        window, line, cosine, closeness = (max((one.values[at] for one in found), default=0.0) for at in (0, 1, 2, 5))
        coverage, rarest = (max((getattr(one, name) for one in found), default=0.0) for name in ("coverage", "rarest"))
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


def cut_references(stages: Sequence[SecondStage]) -> None:
    """Have the references of `stages` cut, all of them at once, where nobody asked for them yet."""
    for table in {stage._table for stage in stages}:
        own = [stage for stage in stages if stage._table is table]
        _memory.of([text for stage in own for text in stage._texts(stage.reference)], table)


class SecondScores(Struct, frozen=True):
    """What the second stage gives candidates: arrays of (rules, candidates), `best` of (parts, rules, measures).

    `inside` are the first candidates, which alone were looked into; `score` runs from 0 to 1, of which `weight` (rules,
    1) counts, and `part` the number of the part of the question that gives it, -1 outside them. `beside` is the
    better candidate for whose sake one loses `lost` points, -1 where it loses none.
    """

    inside: Flags
    score: Floats
    weight: Floats
    part: Rows
    best: Floats
    lost: Floats
    beside: Rows


def first_of(scores: Floats) -> Rows:
    """The first CANDIDATES of each row of `scores` (rules, candidates), best first, equal ones in their order."""
    columns: Rows = np.arange(scores.shape[1])
    if len(scores) > 1 and len(columns) > CANDIDATES:
        # Of many rankings at once only those are sorted that are among the first of any of them.
        last = np.partition(scores, -CANDIDATES, axis=1)[:, -CANDIDATES, None]
        columns = np.flatnonzero((scores >= last).any(axis=0))
    return np.asarray(columns[np.argsort(-scores[:, columns], axis=1, kind="stable")[:, :CANDIDATES]])


def shares(values: Floats, inside: Flags) -> tuple[Floats, Floats]:
    """`values` (candidates, measures) over the best of those `inside` by each rule, and the best: (rules, measures).

    Returns (rules, candidates, measures), 0 for those that are not inside.
    """
    within = np.where(inside[:, :, None], values[None, :, :], 0.0)
    best = within.max(axis=1, initial=0.0)
    over = np.zeros_like(within)
    np.divide(within, best[:, None, :], out=over, where=best[:, None, :] > 0)
    return over, best


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


def neighbours(refs: Sequence[ChunkRef]) -> Flags:
    """Which chunks are of one note and touch or overlap: (chunks, chunks)."""
    places: dict[str, int] = {}
    note = np.array([places.setdefault(ref.path, len(places)) for ref in refs])
    first, last = np.array([ref.start_line for ref in refs]), np.array([ref.end_line for ref in refs])
    touch = (first[:, None] <= last[None, :] + 1) & (first[None, :] <= last[:, None] + 1)
    return np.asarray(touch & (note[:, None] == note[None, :]), dtype=np.bool_)
