"""A plain reference of the second stage: the first candidates are measured again by windows, lines, letters, words.

Written to be read, not to be quick; `memory_tui.search.second_stage` must give the same.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memory_tui import tokens
from memory_tui.providers.builtin import Builtin, static_table
from memory_tui.search.level import pair_weight
from memory_tui.search.trace import ChunkRef

WEIGHTS = {
    "line words": 0.10,
    "window meaning": 0.15,
    "letters": 0.15,
    "like words": 0.20,
}
WINDOW = 100
"""Words of a window, which holds whole lines."""
_table = Builtin()

Floats = npt.NDArray[np.float64]


def idf(holding: int, chunks: int) -> float:
    """Lucene's idf: above 0 for every word."""
    return math.log(1 + (max(0, chunks - holding) + 0.5) / (holding + 0.5))


def stems(text: str) -> list[str]:
    """The stems that full-text search sees."""
    return tokens.tokens(tokens.segmented(text), stemmed=True)


def bm25(counts: Mapping[str, int], length: int, mean: float, weights: Mapping[str, float]) -> float:
    """Okapi bm25 with k1 = 1.2 and b = 0.75."""
    norm = 1.2 * (0.25 + 0.75 * length / mean)
    return sum(
        weight * counts[term] * 2.2 / (counts[term] + norm) for term, weight in weights.items() if counts.get(term)
    )


def windows(lines: Sequence[str]) -> list[str]:
    """Whole lines, together about WINDOW words."""
    found: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        words = len(stems(line))
        if filled and filled + words > WINDOW:
            found.append([])
            filled = 0
        found[-1].append(line)
        filled += words
    return ["\n".join(part) for part in found]


def letters(text: str) -> str:
    """`text` in lower case, words one space apart, a space at both ends."""
    words = " ".join(re.findall(r"[^\W_]+", text.lower()))
    return f" {words} "


def grams(word: str) -> list[str]:
    """Character trigrams, with a space at the ends of a word that has ends."""
    cut = word if tokens.is_cjk(word) else letters(word)
    return [cut[i : i + 3] for i in range(len(cut) - 2)] or [cut]


def count(gram: str, text: str) -> int:
    """How often `gram` stands in `text`, overlapping itself or not."""
    return sum(text.startswith(gram, at) for at in range(len(text)))


def _rows(ids: Sequence[int]) -> Floats:
    at = np.array(ids, np.int64)
    return np.asarray(static_table().rows(at) * static_table().scale[at][:, None], np.float64)


@lru_cache(20_000)
def _vector(text: str) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = _table.embed([text], "document")[0]
    return found


def _best_words(
    parts: Sequence[Sequence[str]], weights: Mapping[str, float], reference: Sequence[Sequence[str]]
) -> list[float]:
    mean = float(np.mean([len(stems(piece)) for pieces in reference for piece in pieces])) or 1.0
    return [max(bm25(Counter(stems(piece)), len(stems(piece)), mean, weights) for piece in pieces) for pieces in parts]


def rarity(word: str) -> float:
    """How rare a word is in the language, by its place in the vocabulary; 0 for what is no word there."""
    ids = static_table().ids(word) if word.isascii() else []
    rank = ids[0] - 995 if len(ids) == 1 else 0
    return min(12.5, 2.3 + math.log(rank)) ** 2 / 12.5 if rank > 0 else 0.0


def alike(word: str, text: str) -> float:
    """Dice's coefficient of the trigrams of a word and those of the most similar one of `text`, 0 below a half."""
    if tokens.is_cjk(word):
        return 0.0
    own, best = set(grams(word)), 0.0
    for other in letters(text).split():
        shared = sum(gram in own for gram in grams(other))
        best = max(best, min(1.0, 2 * shared / (len(own) + len(other))))
    return best if best >= 0.5 else 0.0


def likeness(word: str, text: str) -> float:
    """The greatest cosine of a word with a token of `text`; pairs of Chinese characters are like nothing."""
    ids = [] if tokens.is_cjk(word) else static_table().ids(word)
    direction = _rows(ids).sum(axis=0)
    rows = _rows(static_table().ids(text))
    if not len(rows) or not direction.any():
        return 0.0
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(direction)
    return max(0.0, float(np.max(np.divide(rows @ direction, lengths, out=np.zeros(len(rows)), where=lengths > 0))))


def held(words: Mapping[str, str], weights: Mapping[str, float], chunks: int, piece: str, *, meaning: bool) -> float:
    """The share of the question that a window holds, or a word of it is like; `words` gives the word of each stem.

    A word that the table knows whole weighs by its rarity in the language and is like another in meaning, any other
    weighs by its rarity in the notes; either is like what is spelled alike.
    """
    there, mass, total = stems(piece), 0.0, 0.0
    for stem, word in words.items():
        weight = rarity(word) or 12.5 * weights[stem] / idf(0, chunks) * pair_weight(word)
        near = likeness(word, piece) if meaning and rarity(word) else 0.0
        total += weight
        mass += weight * (1.0 if stem in there else max(near, alike(word, piece)))
    return mass / (total or 1.0)


def measures(
    query: str,
    words: Sequence[str],
    left_out: Sequence[str],
    frequency: Mapping[str, int],
    chunks: int,
    texts: Sequence[str],
    reference: Sequence[str],
    *,
    meaning: bool = True,
) -> dict[str, list[float]]:
    """Each measure of each of `texts`, raw; mean lengths and the idf of trigrams are those of `reference`."""
    own = {word: [word] if tokens.is_cjk(word) else stems(word) for word in words}
    weighted = {stem: idf(frequency.get(word, 0), chunks) for word in words for stem in own[word]}
    word_of = {stem: word for word in words for stem in own[word]}

    def lines(text: str) -> list[str]:
        return [line for line in text.split("\n") if line.strip()] or [""]

    asked = _vector(query)
    every = dict.fromkeys(gram for word in words for gram in grams(word.lower()))
    weights = {gram: idf(sum(gram in letters(text) for text in reference), len(reference)) for gram in every}
    mean = float(np.mean([len(letters(text)) for text in reference]))
    of_lines, of_windows = [lines(text) for text in texts], [windows(lines(text)) for text in texts]
    ref_lines = [lines(text) for text in reference]
    every_line = [set(stems(line)) for own in ref_lines for line in own]
    others = {stem for word in left_out if not tokens.is_cjk(word) for stem in stems(word) if stem not in weighted}
    in_lines = {stem: idf(sum(stem in line for line in every_line), len(every_line)) / 2 for stem in others}
    return {
        "line words": _best_words(of_lines, weighted | in_lines, ref_lines),
        "window meaning": [max(0.0, *(float(_vector(piece) @ asked) for piece in pieces)) for pieces in of_windows],
        "letters": [
            bm25({gram: count(gram, letters(text)) for gram in every}, len(letters(text)), mean, weights)
            for text in texts
        ],
        "like words": [
            max(held(word_of, weighted, chunks, piece, meaning=meaning and bool(asked.any())) for piece in pieces)
            for pieces in of_windows
        ],
    }


def second(found: Mapping[str, Sequence[float]], *, words: bool, meaning: bool) -> list[float]:
    """The score of each text: every measure over its best, weighted by those that there are."""
    total = sum(weight for name, weight in WEIGHTS.items() if (meaning if "meaning" in name else words))
    scores = [0.0] * len(next(iter(found.values())))
    for name, values in found.items():
        best = max(values)
        for i, value in enumerate(values):
            if best > 0 and (meaning if "meaning" in name else words):
                scores[i] += WEIGHTS[name] / total * value / best
    return scores


def beside(one: ChunkRef, other: ChunkRef) -> bool:
    """Whether two chunks of one note touch or overlap."""
    return one.path == other.path and one.start_line <= other.end_line + 1 and other.start_line <= one.end_line + 1


def lost(scores: Sequence[float], refs: Sequence[ChunkRef], penalty: float) -> tuple[list[float], list[int]]:
    """What each loses as a neighbour of a better one, and of which (-1: none); best first, each once, never below 0."""
    off, of = [0.0] * len(scores), [-1] * len(scores)
    left = list(range(len(scores)))
    while left:
        best = max(left, key=lambda at: (scores[at] - off[at], -at))
        left.remove(best)
        for at in left:
            if of[at] < 0 and beside(refs[best], refs[at]):
                off[at], of[at] = min(penalty, max(0.0, scores[at])), best
    return off, of
