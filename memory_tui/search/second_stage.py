"""The second stage looks into the best candidates: at their windows, their lines and their letters.

A chunk of 400 tokens is a coarse unit: one line that answers is drowned by twenty that do not. So the first candidates
of a ranking are measured again by their best window of 100 tokens, by their best line, and by the character trigrams
they share with the question, which find compounds, inflections and misspellings. Each measure is divided by the best
among the candidates (max-norm), weighted, and added up.

Passage retrieval follows Callan (1994), bm25 Robertson and Zaragoza (2009) with Lucene's idf.
"""

from __future__ import annotations

import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory_tui.core import tokens
from memory_tui.search.formulas import Floats, bm25, lucene_idf, share

CANDIDATES = 30
"""How many of the best candidates are looked into; all of them give no better answers."""
WINDOW = 100
"""Tokens of a window, which holds whole lines."""
REMEMBERED = 4_000
"""Chunks whose passages are remembered, about 4 KB each."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measure:
    """One way of looking into a chunk: its name in a trace, and its weight among the measures."""

    name: str
    weight: float
    needs_meaning: bool = False


MEASURES = (
    Measure("window words", 0.20),
    Measure("line words", 0.10),
    Measure("window meaning", 0.15, needs_meaning=True),
    Measure("line meaning", 0.10, needs_meaning=True),
    Measure("letters", 0.15),
)


class TokenTable(Protocol):
    """A static table of token vectors, as the built-in provider has: what a text means is the sum of its tokens."""

    def ids(self, text: str) -> Sequence[int]:
        """The token ids of `text`."""

    def rows(self, ids: Ids) -> npt.NDArray[np.float32]:
        """The vectors of `ids`, float32 (n, dimensions)."""


@dataclass(frozen=True, slots=True)
class Passages:
    """A chunk cut into lines and windows of whole lines.

    `lines` holds the chunk's own 0-based number of each line that is not blank. Line i has the stems
    `stems[stem_from[i]:stem_from[i + 1]]` and the tokens `ids[id_from[i]:id_from[i + 1]]`; window j is made of the
    lines from `window_from[j]` to the one before `window_from[j + 1]`. `line_norm` and `window_norm` are the lengths of
    their summed token vectors, 0 without meaning.
    """

    lines: Ids
    window_from: Ids
    stems: tuple[str, ...]
    stem_from: Ids
    ids: Ids
    id_from: Ids
    line_norm: Floats
    window_norm: Floats
    letters: str
    """The text in lower case, every run of other characters than letters and figures one space."""


_APART = re.compile(r"[\W_]+")


def letters_of(text: str) -> str:
    """`text` as trigrams see it: lower case, words one space apart, a space at both ends."""
    return f" {_APART.sub(' ', text.lower()).strip()} "


def trigrams(word: str) -> tuple[str, ...]:
    """The different character trigrams of a query word, with a space for each end of a word that has ends."""
    spelled = word if tokens.is_cjk(word) else letters_of(word)
    return tuple(dict.fromkeys(spelled[i : i + 3] for i in range(len(spelled) - 2))) or (spelled,)


def cut(text: str, table: TokenTable | None, window: int = WINDOW) -> Passages:
    """The passages of a chunk's `text`; without a `table` they have no meaning. A blank text is one empty line."""
    numbered = [(at, line) for at, line in enumerate(text.split("\n")) if line.strip()] or [(0, "")]
    stems: list[str] = []
    stem_from, window_from, filled = [0], [0], 0
    for at, (_, line) in enumerate(numbered):
        own = tokens.tokens(tokens.segmented(line), stemmed=True)
        if filled and filled + len(own) > window:
            window_from.append(at)
            filled = 0
        filled += len(own)
        stems += own
        stem_from.append(len(stems))
    window_from.append(len(numbered))
    ids: list[int] = []
    id_from = [0]
    sums = np.zeros((len(numbered), 0), dtype=np.float32)
    if table is not None:
        for _, line in numbered:
            ids += table.ids(line)
            id_from.append(len(ids))
        sums = _sums(table.rows(np.array(ids, dtype=np.int64)), id_from)
    else:
        id_from += [0] * len(numbered)
    windows = np.add.reduceat(sums, window_from[:-1], axis=0) if sums.size else sums[: len(window_from) - 1]
    return Passages(
        np.array([at for at, _ in numbered], dtype=np.int64),
        np.array(window_from, dtype=np.int64),
        tuple(stems),
        np.array(stem_from, dtype=np.int64),
        np.array(ids, dtype=np.int64),
        np.array(id_from, dtype=np.int64),
        _lengths(sums, len(numbered)),
        _lengths(windows, len(window_from) - 1),
        letters_of(text),
    )


def _sums(rows: npt.NDArray[np.float32], starts: Sequence[int]) -> npt.NDArray[np.float32]:
    """The sum of `rows` between each of `starts` and the next, zeros for none: (len(starts) - 1, dimensions)."""
    total = np.vstack([np.zeros((1, rows.shape[1]), dtype=np.float64), np.cumsum(rows, axis=0, dtype=np.float64)])
    return np.asarray(np.diff(total[np.asarray(starts)], axis=0), dtype=np.float32)


def _lengths(sums: npt.NDArray[np.float32], count: int) -> Floats:
    if not sums.size:
        return np.zeros(count)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", sums, sums, dtype=np.float64)), dtype=np.float64)


class PassageMemory:
    """Passages by text, the least recently used forgotten first. May be used by several threads at once."""

    def __init__(self, table: TokenTable | None, most: int = REMEMBERED) -> None:
        self.table = table
        self._most = most
        self._known: OrderedDict[str, Passages] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, text: str) -> Passages:
        """The passages of `text`."""
        with self._lock:
            found = self._known.get(text)
            if found is not None:
                self._known.move_to_end(text)
                return found
        made = cut(text, self.table)
        with self._lock:
            self._known[text] = made
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True)
class Query:
    """What passages are measured by: stems and trigrams with their idf, and the question's direction."""

    stems: Mapping[str, float]
    """Lucene idf of each stem, by the chunks of the index that hold it."""
    trigrams: Mapping[str, float]
    """Lucene idf of each trigram, by the candidates that hold it."""
    vector: Floats | None
    """The question's unit vector in the space of the table; None without meaning."""
    window_length: float
    line_length: float
    letters_length: float
    """The mean lengths among the candidates: tokens of a window, tokens of a line, characters of a chunk."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in one chunk: a value a measure in the order of MEASURES, and where the best stand.

    `line` is the 0-based line of the chunk nearest to the question, `window` the first and last line of the best
    window.
    """

    values: tuple[float, ...]
    line: int
    window: tuple[int, int]


def query(
    words: Sequence[str],
    frequency: Mapping[str, int],
    chunks: int,
    vector: Floats | None,
    reference: Sequence[Passages],
) -> Query:
    """The measures of a question's `words`: idf of words over `chunks`, of trigrams and lengths over `reference`.

    `frequency` is in how many chunks each word stands, `reference` the candidates that the first stage put first.
    """
    stems: dict[str, float] = {}
    for word in words:
        for stem in tokens.tokens(tokens.segmented(word), stemmed=True):
            stems[stem] = lucene_idf(frequency.get(word, 0), chunks)
    asked = dict.fromkeys(gram for word in words for gram in trigrams(word.lower()))
    held = {gram: sum(gram in one.letters for one in reference) for gram in asked}
    windows = sum(len(one.window_from) - 1 for one in reference)
    lines, stems_held = sum(len(one.lines) for one in reference), sum(len(one.stems) for one in reference)
    return Query(
        stems,
        {gram: lucene_idf(count, len(reference)) for gram, count in held.items()},
        vector,
        stems_held / max(1, windows) or 1.0,
        stems_held / max(1, lines) or 1.0,
        sum(len(one.letters) for one in reference) / max(1, len(reference)) or 1.0,
    )


def measure(asked: Query, passages: Passages, table: TokenTable | None) -> Measured:
    """Measure one chunk."""
    line_words, window_words = _word_scores(asked, passages)
    line_meaning, window_meaning = _meaning_scores(asked, passages, table)
    letters = bm25(
        np.array([[passages.letters.count(gram)] for gram in asked.trigrams], dtype=np.float64).reshape(-1, 1),
        np.array(list(asked.trigrams.values()), dtype=np.float64),
        np.array([float(len(passages.letters))]),
        asked.letters_length,
    )
    best_line = int(np.argmax(share(line_words, float(line_words.max())) + np.maximum(line_meaning, 0.0)))
    best_window = int(np.argmax(share(window_words, float(window_words.max())) + np.maximum(window_meaning, 0.0)))
    first, last = passages.window_from[best_window], passages.window_from[best_window + 1] - 1
    return Measured(
        (
            float(window_words.max()),
            float(line_words.max()),
            max(0.0, float(window_meaning.max())),
            max(0.0, float(line_meaning.max())),
            float(letters[0]),
        ),
        int(passages.lines[best_line]),
        (int(passages.lines[first]), int(passages.lines[last])),
    )


def _word_scores(asked: Query, passages: Passages) -> tuple[Floats, Floats]:
    """bm25 of every line and of every window."""
    counts = np.zeros((len(asked.stems), len(passages.lines)))
    place = {stem: at for at, stem in enumerate(asked.stems)}
    at = [(place[stem], i) for i, stem in enumerate(passages.stems) if stem in place]
    if at:
        found = np.array(at, dtype=np.int64)
        lines = np.searchsorted(passages.stem_from, found[:, 1], side="right") - 1
        np.add.at(counts, (found[:, 0], lines), 1.0)
    idf = np.array(list(asked.stems.values()), dtype=np.float64)
    lengths = np.diff(passages.stem_from).astype(np.float64)
    starts = passages.window_from[:-1]
    windows, window_lengths = np.add.reduceat(counts, starts, axis=1), np.add.reduceat(lengths, starts)
    return bm25(counts, idf, lengths, asked.line_length), bm25(windows, idf, window_lengths, asked.window_length)


def _meaning_scores(asked: Query, passages: Passages, table: TokenTable | None) -> tuple[Floats, Floats]:
    """The cosine of every line and of every window with the question; zeros without meaning."""
    lines, windows = np.zeros(len(passages.lines)), np.zeros(len(passages.window_from) - 1)
    if asked.vector is None or table is None or not len(passages.ids):
        return lines, windows
    total = np.concatenate([[0.0], np.cumsum(table.rows(passages.ids) @ asked.vector, dtype=np.float64)])
    dots = np.diff(total[passages.id_from])
    window_dots = np.add.reduceat(dots, passages.window_from[:-1])
    np.divide(dots, passages.line_norm, out=lines, where=passages.line_norm > 0)
    np.divide(window_dots, passages.window_norm, out=windows, where=passages.window_norm > 0)
    return lines, windows


def weights(meaning: bool) -> Floats:
    """The weight of each measure, together 1; those that need meaning count nothing without it."""
    raw = np.array([0.0 if one.needs_meaning and not meaning else one.weight for one in MEASURES])
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def combined(values: Floats, meaning: bool) -> tuple[Floats, Floats]:
    """The second-stage score of each candidate, and what each measure adds to it.

    `values` is (candidates, measures); each measure is divided by its best among the candidates, so that scores run
    from 0 to 1. Returns float64 (candidates,) and (candidates, measures).
    """
    shares = np.stack([share(column, float(column.max(initial=0.0))) for column in values.T], axis=1)
    points = shares * weights(meaning)
    return points.sum(axis=1), points


def spread(scores: Floats, beside: Callable[[int, int], bool], penalty: float) -> tuple[Ids, Floats]:
    """An order in which a neighbour of a chunk that stands before it loses `penalty`, once.

    Neighbours are chunks of one file whose lines touch or overlap: they answer with nearly the same text. Returns the
    order of all items and the penalty of each, by item.
    """
    lost = np.zeros(len(scores))
    left = list(range(len(scores)))
    order: list[int] = []
    while left:
        best = max(left, key=lambda item: (scores[item] - lost[item], -item))
        left.remove(best)
        order.append(best)
        for item in left:
            if not lost[item] and beside(best, item):
                lost[item] = penalty
    return np.array(order, dtype=np.int64), lost


def lucene_mass(stems: Mapping[str, float]) -> float:
    """The summed idf of a question: what a passage that held all of its words once could reach at most."""
    return math.fsum(stems.values())
