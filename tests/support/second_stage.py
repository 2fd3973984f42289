"""A plain reference of a second stage: the first candidates are measured again by their windows, lines and letters.

A chunk of 400 tokens is a coarse unit: one line that answers is drowned by twenty that do not. Each measure is divided
by its best among the candidates, weighted, and added up; a chunk beside one that stands before it loses 0.1. Passages
after Callan (1994), bm25 after Robertson and Zaragoza (2009) with Lucene's idf. Written to be read, not to be quick.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memory_tui.core import tokens
from memory_tui.providers.wires.builtin import Builtin
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import Candidate

WEIGHTS = {"window words": 0.20, "line words": 0.10, "window meaning": 0.15, "line meaning": 0.10, "letters": 0.15}
WINDOW = 100
"""Words of a window, which holds whole lines."""
NEIGHBOUR = 0.1
_APART = re.compile(r"\W+")
_table = Builtin()

Floats = npt.NDArray[np.float64]


def idf(holding: int, chunks: int) -> float:
    """Lucene's idf: above 0 for every word."""
    return math.log1p((max(0, chunks - holding) + 0.5) / (holding + 0.5))


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
    """Whole lines, together about WINDOW words (or CJK characters)."""
    found: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        words = len(line.split()) + sum(character > "\u2e80" for character in line)
        if found[-1] and filled + words > WINDOW:
            found.append([])
            filled = 0
        found[-1].append(line)
        filled += words
    return ["\n".join(part) for part in found]


def trigrams(word: str) -> list[str]:
    """Character trigrams, with a space at the ends of a word that has ends."""
    spelled = word if tokens.is_cjk(word) else f" {word} "
    return [spelled[i : i + 3] for i in range(len(spelled) - 2)] or [spelled]


@lru_cache(20_000)
def _vector(text: str) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = _table.embed([text], "document")[0]
    return found


@lru_cache(20_000)
def _counted(text: str) -> tuple[Counter[str], int]:
    found = stems(text)
    return Counter(found), len(found)


def _best_words(parts: Sequence[Sequence[str]], weights: Mapping[str, float]) -> list[float]:
    mean = float(np.mean([_counted(piece)[1] for pieces in parts for piece in pieces])) or 1.0
    return [max(bm25(*_counted(piece), mean, weights) for piece in pieces) for pieces in parts]


def measures(evidence: Evidence, texts: Sequence[str]) -> dict[str, list[float]]:
    """Each measure of each text, raw."""
    side = evidence.recommended
    words = [*side.plan.words, *side.plan.common]
    weighted = {stem: idf(side.frequency.get(word, 0), evidence.chunks) for word in words for stem in stems(word)}
    lines = [[line for line in text.split("\n") if line.strip()] or [text] for text in texts]
    cut = [windows(each) for each in lines]
    asked = _vector(evidence.query)
    spelled = [f" {_APART.sub(' ', text.lower())} " for text in texts]
    grams = dict.fromkeys(gram for word in words for gram in trigrams(word.lower()))
    held = {gram: sum(gram in text for text in spelled) for gram in grams}
    weights = {gram: idf(count, len(texts)) for gram, count in held.items()}
    mean = float(np.mean([len(text) for text in spelled]))
    return {
        "window words": _best_words(cut, weighted),
        "line words": _best_words(lines, weighted),
        "window meaning": [max(float(_vector(piece) @ asked) for piece in pieces) for pieces in cut],
        "line meaning": [max(float(_vector(piece) @ asked) for piece in pieces) for pieces in lines],
        "letters": [bm25({gram: text.count(gram) for gram in grams}, len(text), mean, weights) for text in spelled],
    }


def _share(values: Sequence[float]) -> Floats:
    found = np.maximum(np.array(values, dtype=np.float64), 0.0)
    best = float(found.max(initial=0.0))
    return found / best if best > 0 else found


def beside(one: Candidate, other: Candidate) -> bool:
    """Whether two chunks of one note touch or overlap."""
    first, second = one.chunk, other.chunk
    return (
        first.path == second.path
        and first.start_line <= second.end_line + 1
        and second.start_line <= first.end_line + 1
    )


def reranked(hits: Sequence[Candidate], evidence: Evidence, weight: float) -> list[Candidate]:
    """`hits` by (1 - weight) x their first score + weight x the second, neighbours of better ones behind."""
    if not hits:
        return []
    found = measures(evidence, [evidence.texts[hit.chunk.rowid] for hit in hits])
    total = sum(WEIGHTS.values())
    second = sum((WEIGHTS[name] / total * _share(values) for name, values in found.items()), np.zeros(len(hits)))
    added = np.array([hit.age.points + hit.date_points for hit in hits])
    scores = (1 - weight) * np.array([hit.hybrid for hit in hits]) + weight * second + added
    order: list[int] = []
    left = list(range(len(hits)))
    lost = np.zeros(len(hits))
    while left:
        best = max(left, key=lambda at: (scores[at] - lost[at], -at))
        left.remove(best)
        order.append(best)
        for at in left:
            if not lost[at] and beside(hits[best], hits[at]):
                lost[at] = NEIGHBOUR
    return [hits[at] for at in order]
