"""How a question measures passages: by their words, by their meaning, by their letters.

bm25 follows Robertson and Zaragoza (2009) with Lucene's idf, trigrams McNamee and Mayfield (2004).
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
from memory_tui.search.formulas import Floats, lucene_idf, okapi_bm25
from memory_tui.search.passages import Passages, TokenTable, stem_keys, stems_of, sums

Rows = npt.NDArray[np.int64]


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
    """What passages are measured by: the idf of its stems and trigrams by their keys, and its direction.

    The idf of stems is by the chunks of the index, that of trigrams by the reference. `left_out` are the stems of words
    that the search leaves out, which count in lines alone, with their idf by the lines of the reference. `vector` is
    the unit vector of the question in the space of the table, None where meaning is not measured. The mean lengths are
    of the reference. `word_of` gives the word of each stem, in the order of `stems`. Meaning is by `table`; how rare
    words are in the language by the `vocabulary`, also where words alone are compared.
    """

    stems: Mapping[int, float]
    left_out: Mapping[int, float]
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
    rarest word of the question is, from 0 to 1. `line_words` is the bm25 of its best line by the words that were
    searched, without those that were left out.
    """

    values: tuple[float, ...]
    line: int
    window: tuple[int, int]
    coverage: float
    rarest: float
    line_words: float


def query_of(
    words: Sequence[str],
    left_out: Sequence[str],
    frequency: Mapping[str, int],
    chunks: int,
    grams: Mapping[int, float],
    reference: Sequence[Passages],
    vector: npt.NDArray[np.float32] | None,
    table: TokenTable | None = None,
    vocabulary: TokenTable | None = None,
) -> PassageQuery:
    """How the `words` of a question are measured in an index of `chunks`, given in how many of them each stands.

    `left_out` are its words that were not searched, `grams` the idf of its trigrams by their keys.
    """
    word_of = {stem: word for word in words for stem in stems_of(word)}
    stems = {stem: lucene_idf(frequency.get(word, 0), chunks) for word in words for stem in stems_of(word)}
    others = dict.fromkeys(stem for word in left_out if not tokens.is_cjk(word) for stem in stems_of(word))
    held = sum(len(one.stems) for one in reference)
    windows, lines = sum(len(one.window_norm) for one in reference), sum(len(one.lines) for one in reference)
    return PassageQuery(
        dict(zip(stem_keys(list(stems)).tolist(), stems.values(), strict=True)),
        _idf_in_lines(stem_keys([stem for stem in others if stem not in stems]), reference),
        grams,
        vector,
        held / max(1, windows) or 1.0,
        held / max(1, lines) or 1.0,
        sum(len(one.letters) for one in reference) / max(1, len(reference)) or 1.0,
        word_of,
        table,
        vocabulary,
    )


LEFT_OUT = 0.5
"""How much a word that the search leaves out counts in a line, beside one that is searched. "She" in a line tells who
is spoken of, although no note is found by it."""


def _idf_in_lines(keys: Rows, reference: Sequence[Passages]) -> dict[int, float]:
    """The idf of each of `keys` by the lines of `reference` that hold it, times LEFT_OUT."""
    if not len(keys) or not reference:
        return {}
    counts = _counts(np.sort(keys), reference)
    holding = (counts > 0).sum(axis=1).tolist()
    weighed = (LEFT_OUT * lucene_idf(count, counts.shape[1]) for count in holding)
    return dict(zip(np.sort(keys).tolist(), weighed, strict=True))


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
        of_windows = [np.maximum.reduceat(own, windows[:-1]) for own in (by_words.windows, by_meaning.windows)]
        of_lines = [np.maximum.reduceat(own, lines[:-1]) for own in (by_words.lines, by_meaning.lines)]
        alike = np.maximum.reduceat(_closeness(asked, by_words.held, by_meaning.like()), windows[:-1])
        best = (of_windows[0], of_lines[0], of_windows[1], of_lines[1], _letters(asked, chunks, grams), alike)
        self.values: list[tuple[float, ...]] = list(zip(*(own.tolist() for own in best), strict=True))
        places = np.concatenate([one.lines for one in chunks]), lines, windows, window_from
        # Without `like`, which holds the vectors of all tokens: a megabyte for a few dozen chunks.
        cosines = by_meaning.lines, by_meaning.windows
        self._rest: Callable[[], list[Best]] | None = partial(_rest, asked, self.values, by_words, cosines, places)
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
    by_words: _ByWords,
    cosines: tuple[Floats, Floats],
    places: tuple[Rows, Rows, Rows, Rows],
) -> list[Best]:
    """Everything that is known of chunks beside their `values`.

    `cosines` are those of lines and of windows, `places` holds the numbers of lines, and where lines and windows begin.
    """
    number, lines, windows, window_from = places
    idf = np.array([asked.stems[key] for key in sorted(asked.stems)])
    mass = float(idf.sum()) or 1.0
    by_chunk = np.maximum.reduceat(by_words.held, windows[:-1], axis=1)
    coverage = idf @ by_chunk / mass
    rarest = (asked.rarity[:, None] * by_chunk).max(axis=0, initial=0.0) / _RAREST
    top = np.array([own[:2] for own in values], dtype=np.float64)
    # Of all lines and of all windows, numbered through.
    window_ends = np.append(window_from[1:], lines[-1])
    window = best_of_each(by_words.windows, cosines[1], windows, top[:, 0])
    return list(
        map(
            Best,
            values,
            number[best_of_each(by_words.lines, cosines[0], lines, top[:, 1])].tolist(),
            zip(number[window_from[window]].tolist(), number[window_ends[window] - 1].tolist(), strict=True),
            coverage.tolist(),
            rarest.tolist(),
            np.maximum.reduceat(by_words.searched(), lines[:-1]).tolist(),
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
    by_words = _words(asked, chunks, starts)
    line_words, window_words = by_words.lines, by_words.windows
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
    """The passage that answers best among those from each of `bounds` to the next; of equal ones the first.

    Its words count over `top`, the best of them there, and its cosine is added.
    """
    counts = np.diff(bounds)
    some = np.repeat(top > 0, counts)
    over = np.divide(words, np.repeat(top, counts), out=np.zeros_like(words), where=some) + meaning
    best = np.flatnonzero(over == np.repeat(np.maximum.reduceat(over, bounds[:-1]), counts))
    return np.asarray(best[np.searchsorted(best, bounds[:-1])], dtype=np.int64)


class _ByWords(Struct, frozen=True):
    """bm25 of every line and of every window, and which windows `held` each stem: (stems, windows), 1 or 0.

    `searched` gives the bm25 of every line by the words that were searched alone.
    """

    lines: Floats
    windows: Floats
    held: Floats
    searched: Callable[[], Floats]


def _counts(keys: Rows, chunks: Sequence[Passages]) -> Floats:
    """How often each of the stems with `keys`, which rise, stands in each line: (stems, lines)."""
    lengths = np.concatenate([one.stem_counts for one in chunks])
    counts = np.zeros((len(keys), len(lengths)))
    if len(keys):
        stems = np.concatenate([one.stems for one in chunks])
        at = np.minimum(np.searchsorted(keys, stems), len(keys) - 1)
        hit = np.flatnonzero(keys[at] == stems)
        np.add.at(counts, (at[hit], np.searchsorted(np.cumsum(lengths), hit, side="right")), 1.0)
    return counts


def _words(asked: PassageQuery, chunks: Sequence[Passages], window_from: Rows) -> _ByWords:
    every = {**asked.stems, **asked.left_out}
    keys = np.array(sorted(every), dtype=np.int64)
    searched = np.array([key in asked.stems for key in keys.tolist()], dtype=np.bool_)
    idf = np.array([every[key] for key in keys.tolist()], dtype=np.float64)
    counts = _counts(keys, chunks)
    lengths = np.concatenate([one.stem_counts for one in chunks])
    of_lines = lengths.astype(np.float64)
    of_windows = np.add.reduceat(counts[searched], window_from, axis=1)
    window_lengths = np.add.reduceat(lengths, window_from).astype(np.float64)
    return _ByWords(
        okapi_bm25(counts, idf, of_lines, asked.line_length),
        okapi_bm25(of_windows, idf[searched], window_lengths, asked.window_length),
        (of_windows > 0).astype(np.float64),
        lambda: okapi_bm25(counts[searched], idf[searched], of_lines, asked.line_length),
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
