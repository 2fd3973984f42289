"""Rounded vectors take one byte a number.

They tell between which bounds each product lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui.providers.provider_protocol import Vectors

dot: Callable[..., Any] | None
try:
    from simsimd import dot
except ImportError:
    # It has no wheel for this machine: then every product is one of whole vectors.
    dot = None

LEAST = 8_000
"""Rows from which rounded vectors are compared first: whole ones of fewer take a third of a millisecond."""
_TOGETHER = 4
"""Numbers of a vector that BLAS adds up alike in every row; those that are left over, as the rows beside it have it."""
_MOST = 127
_AT_ONCE = 1 << 15
"""Rows whose bounds are worked out together, so that they stay in the cache of a processor."""
_HAIR = 1e-6
"""More than single precision loses where a vector is rounded."""


def serve(count: int, dims: int) -> bool:
    """Whether `count` vectors are compared by rounded ones first."""
    return count >= LEAST and dims > 0 and dims % _TOGETHER == 0 and dot is not None


class Rounded(Struct):
    """Vectors by slot, less their `mean`, as `rows` of whole numbers.

    `numbers` is (3, slots): what a 1 in a row stands for, the length of what rounding left out, and that of what it
    kept. So no product is farther off than what was left out of either side, times the length of the other.
    """

    mean: Vectors
    rows: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, mean: Vectors, room: int) -> Rounded:
        """Room for vectors that are to be rounded."""
        return cls(mean, np.zeros((room, len(mean)), np.int8), np.zeros((3, room), np.float32))

    @classmethod
    def of(cls, vectors: Vectors, mean: Vectors, room: int | None = None) -> Rounded:
        """Round all of `vectors`."""
        found = cls.empty(mean, len(vectors) if room is None else room)
        for first in range(0, len(vectors), _AT_ONCE // 32):
            few = slice(first, min(first + _AT_ONCE // 32, len(vectors)))
            found.put(few, vectors[few])
        return found

    def put(self, slots: slice | npt.NDArray[np.int64], vectors: Vectors) -> None:
        """Round `vectors` into `slots`; of one that is not finite nothing is known."""
        apart = vectors - self.mean
        steps = np.abs(apart).max(axis=1, initial=0.0) / np.float32(_MOST)
        finite = np.isfinite(steps)
        apart[~finite], steps[~finite] = 0.0, 0.0
        whole = np.rint(apart / np.where(steps > 0, steps, np.float32(1))[:, None])
        kept = whole * steps[:, None]
        self.rows[slots] = whole
        left = np.where(finite, _lengths(apart - kept) + np.float32(_HAIR), np.float32(np.inf))
        self.numbers[:, slots] = steps, left, _lengths(kept)

    def packed(self, slots: npt.NDArray[np.int64], room: int) -> Rounded:
        """A copy of the rows in `slots` with `room` for more."""
        other = Rounded.empty(self.mean, room)
        other.rows[: len(slots)] = self.rows[slots]
        other.numbers[:, : len(slots)] = self.numbers[:, slots]
        return other

    def bounds(self, used: int, query: Vectors) -> tuple[Vectors, Vectors] | None:
        """Between what the product of `query` with each of the first `used` vectors lies; None where none is known."""
        step = float(np.abs(query).max()) / _MOST
        if dot is None or not 0 < step < np.inf:
            return None
        whole = np.rint(query / np.float32(step)).astype(np.int8)
        left = float(np.linalg.norm(query - whole * np.float32(step))) + _HAIR
        length, about = float(np.linalg.norm(query)), float(self.mean @ query)
        low, high = np.empty(used, np.float32), np.empty(used, np.float32)
        for first in range(0, used, _AT_ONCE):
            few = slice(first, min(first + _AT_ONCE, used))
            steps, lost, kept = self.numbers[:, few]
            middle = np.asarray(dot(self.rows[few], whole[None])).reshape(-1).astype(np.float32)
            middle *= steps * np.float32(step)
            middle += np.float32(about)
            margin = lost * np.float32(length) + kept * np.float32(left)
            np.subtract(middle, margin, out=low[few])
            np.add(middle, margin, out=high[few])
        return low, high


def _lengths(vectors: Vectors) -> Vectors:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), np.float32)
