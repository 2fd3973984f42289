"""The landscape: chunks as points on a plane by their vectors, in groups that are named by their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui.core import tokens
from memory_tui.source.rows import RowIds

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]

SAMPLED = 4_000
"""Chunks that the axes are worked out from; of more, evenly spaced ones."""
MOST_GROUPS = 8
READ = 60
"""Texts of a group that its name is made of."""
ROUNDS = 20
INNER = 0.92
"""The share of the chunks that the plane is stretched for; those farther out stand at its edge."""
_AXES = 2
_SPACE = 8
"""Axes in which groups are looked for: more tell chunks apart better than the two that are drawn."""


class Landscape(Struct, frozen=True):
    """Chunks on a plane: `points` (n, 2) from -1 to 1, `rowids`, unit `vectors`, `groups` (n,) and their `names`.

    `places` are path, first and last line of each. `share` is how much of the spread of the vectors the plane keeps,
    0 to 1; `asked` is the query's own point.
    """

    rowids: RowIds
    vectors: Vectors
    points: Floats
    groups: npt.NDArray[np.int64]
    names: tuple[str, ...]
    share: float
    asked: tuple[float, float] | None = None
    places: Sequence[tuple[str, int, int]] = ()

    def nearest(self, at: int, count: int) -> list[tuple[int, float]]:
        """The `count` chunks most similar to the one at row `at`, with their cosines."""
        cosines = self.vectors @ self.vectors[at]
        order = [row for row in np.argsort(-cosines, kind="stable")[: count + 1].tolist() if row != at]
        return [(row, float(cosines[row])) for row in order[:count]]


def landscape(rowids: RowIds, vectors: Vectors, query: Vectors | None = None) -> Landscape:
    """The plane of greatest spread (PCA) through unit `vectors` (n, dims); the same vectors give the same plane.

    An axis points where its greatest weight is positive, so that it keeps its sign. Groups have no names yet.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    step = max(1, len(vectors) // SAMPLED)
    sample = vectors[::step].astype(np.float64) - mean
    values, axes = np.linalg.eigh(sample.T @ sample)
    order = np.argsort(-values, kind="stable")[:_SPACE]
    base = axes[:, order]
    base *= np.sign(base[np.abs(base).argmax(axis=0), np.arange(base.shape[1])])
    space = (vectors - mean) @ base
    points = space[:, :_AXES] if space.shape[1] >= _AXES else np.column_stack([space, np.zeros(len(space))])
    scale = np.quantile(np.abs(points), INNER, axis=0)
    scale[scale == 0] = 1.0
    asked = None
    if query is not None:
        x, y = np.clip(((query - mean) @ base)[:_AXES] / scale, -1, 1).tolist()
        asked = (x, y)
    total = float(values.clip(0).sum())
    share = float(values[order[:_AXES]].clip(0).sum()) / total if total > 0 else 0.0
    return Landscape(rowids, vectors, np.clip(points / scale, -1, 1), _groups(space), (), share, asked)


def _groups(space: Floats) -> npt.NDArray[np.int64]:
    """The group of each point: k-means of directions from directions far apart, the same each time."""
    length = np.sqrt(np.einsum("ij,ij->i", space, space))[:, None]
    space = space / np.where(length > 0, length, 1.0)
    wanted = min(MOST_GROUPS, max(1, round(math.sqrt(len(space) / 2))))
    far = [int(np.argmax(length))]
    least = np.full(len(space), np.inf)
    while len(far) < wanted:
        away = space - space[far[-1]]
        least = np.minimum(least, np.einsum("ij,ij->i", away, away))
        far.append(int(np.argmax(least)))
    centres = space[far].copy()
    found = np.zeros(len(space), np.int64)
    for _ in range(ROUNDS):
        distance = np.einsum("ij,ij->i", centres, centres)[None, :] - 2 * space @ centres.T
        after = distance.argmin(axis=1)
        if (after == found).all() and _:
            break
        found = after
        for group in range(len(centres)):
            if (found == group).any():
                centres[group] = space[found == group].mean(axis=0)
    return found


def sampled(groups: npt.NDArray[np.int64], count: int) -> dict[int, list[int]]:
    """Up to READ evenly spaced rows of each of `count` groups, by group."""
    rows = {group: np.flatnonzero(groups == group) for group in range(count)}
    return {group: own[:: max(1, math.ceil(len(own) / READ))].tolist() for group, own in rows.items() if len(own)}


def names(texts: Sequence[Sequence[str]], most: int = 3) -> tuple[str, ...]:
    """A name for each group of `texts`: the words that many of its texts hold, and few of the others."""
    held = [[_words(text) for text in group] for group in texts]
    every = Counter(word for group in held for words in group for word in words)
    count = sum(map(len, held)) or 1
    found = []
    for group in held:
        own = Counter(word for words in group for word in words)
        least = 2 if len(group) > 3 else 1
        weight = {
            word: times / len(group) * math.log(1 + count / every[word])
            for word, times in own.items()
            if times >= least
        }
        best = sorted(weight, key=lambda word: (-weight[word], word))[:most]
        found.append(" ".join(best))
    return tuple(found)


_SHORTEST, _LONGEST = 3, 18


def _words(text: str) -> set[str]:
    """The words of a text that can name a group: no function words, no figures; Chinese in pairs."""
    stops = tokens.function_words() | tokens.stop_words("en")
    latin = {
        word
        for word in tokens.words_of(tokens.CJK_RUN.sub(" ", text))
        if _SHORTEST <= len(word) <= _LONGEST and word.isalpha() and word not in stops
    }
    pairs = {run[at : at + 2] for run in tokens.CJK_RUN.findall(text) for at in range(len(run) - 1)}
    return latin | pairs
