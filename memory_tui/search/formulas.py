"""The formulas of scoring: one pure function each, with its source."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DEFAULT_WEIGHTS = (0.7, 0.3)
K1, B = 1.2, 0.75
"""The constants of bm25, as FTS5 has them."""
MOST_CANDIDATES = 200


def candidate_limit(max_results: int, multiplier: int, fewest: int) -> int:
    """Return candidates per side: min(200, max(1, results x multiplier)) (OpenClaw manager), but at least `fewest`."""
    return min(MOST_CANDIDATES, max(1, max_results * multiplier, fewest))


def normalised_weights(vector: float, text: float) -> tuple[float, float]:
    """Both weights clamped to 0..1 and divided by their sum; 0/0 falls back to 0.7/0.3 (OpenClaw hybrid merge)."""
    vector, text = min(1.0, max(0.0, vector)), min(1.0, max(0.0, text))
    total = vector + text
    return (vector / total, text / total) if total > 0 else DEFAULT_WEIGHTS


def clamped(rank: Floats) -> Floats:
    """Return 1/(1+max(0, rank)): OpenClaw up to 2026.3.2; always 1, because FTS5 ranks are negative."""
    return np.asarray(1.0 / (1.0 + np.maximum(0.0, rank)), dtype=np.float64)


def saturated(rank: Floats) -> Floats:
    """Return r/(1+r) with r = -rank, and 1/(1+rank) for ranks that are not negative (OpenClaw from 2026.3.7)."""
    relevance = np.abs(rank)
    return np.where(rank < 0, relevance / (1.0 + relevance), 1.0 / (1.0 + relevance))


def share(values: Floats, best: float) -> Floats:
    """Each value divided by the query's best, negative ones as 0: max-norm, so that lists of any scale can be added."""
    return np.maximum(values, 0.0) / best if best > 0 else np.zeros_like(values)


def lifted(cosines: Floats, floor: float) -> Floats:
    """Return each cosine as if one of 0 were `floor`; what is exactly 0 has no vector, or one of zeros, and stays 0."""
    return np.where(cosines != 0, floor + (1 - floor) * cosines, 0.0) if floor else cosines


def cosine(vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> Floats:
    """1 - distance as sqlite-vec 0.1 computes it: single precision, summed in order; float64 (n,), 0 for zero vectors.

    Bit for bit the original's, so that a score that lies exactly on a threshold falls on the same side of it.
    """
    # numpy adds rows in their order, and the numbers of one row by halves: so each vector is a column, beside that of
    # the query, because a column alone would be a row to it.
    columns = np.concatenate([vectors, query[None]]).T.copy()
    squared, dot = (np.add.reduce(columns * by, axis=0).astype(np.float64) for by in (columns, query[:, None]))
    lengths = np.sqrt(squared[:-1]) * np.sqrt(squared[-1])
    dot = dot[:-1]
    distance = (1.0 - np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)).astype(np.float32)
    return np.where(lengths > 0, 1.0 - distance.astype(np.float64), 0.0)


def decay_factor(age_days: Floats, half_life_days: float | Floats) -> Floats:
    """Return exp(-ln 2 / half-life x max(0, age)); 1 where the age is not known (OpenClaw temporal decay)."""
    factor = np.exp(-math.log(2) / half_life_days * np.maximum(0.0, age_days))
    return np.where(np.isnan(age_days), 1.0, factor)


def fts5_idf(holding: int, chunks: int) -> float:
    """ln((N - n + 0.5) / (n + 0.5)), and 0.000001 for a word of half the chunks or more (bm25 of SQLite's FTS5)."""
    result = math.log((max(0, chunks - holding) + 0.5) / (holding + 0.5))
    return result if result > 0 else 1e-6


def lucene_idf(holding: int, chunks: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)): above 0 for every word, unlike that of FTS5 (Lucene BM25Similarity)."""
    return math.log1p((max(0, chunks - holding) + 0.5) / (holding + 0.5))


def okapi_bm25(counts: Floats, idf: Floats, lengths: Floats, mean_length: float) -> Floats:
    """Return Okapi bm25: idf x tf (k1 + 1) / (tf + k1 (1 - b + b x length / mean length)).

    `counts` is (terms, passages), `idf` (terms,), `lengths` (passages,); returns (passages,), 0 where no term stands
    (Robertson and Zaragoza 2009).
    """
    norm = K1 * (1 - B + B * lengths / mean_length)
    return np.asarray((idf[:, None] * counts * (K1 + 1) / (counts + norm)).sum(axis=0), dtype=np.float64)
