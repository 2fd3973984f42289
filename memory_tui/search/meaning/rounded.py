"""Rounded vectors take one byte a number.

They tell between which bounds each product lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
"""Rows of one step of the bounds: as many as stay in a processor's cache."""
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
        asked = _Asked.of(query, 1)
        if asked is None:
            return None
        low, high = np.empty(used, np.float32), np.empty(used, np.float32)
        for first in range(0, used, _AT_ONCE):
            few = slice(first, min(first + _AT_ONCE, used))
            low[few], high[few] = self._between(asked, self.rows[few], self.numbers[:, few])
        return low, high

    def most(self, slots: npt.NDArray[np.int64], query: Vectors) -> Vectors | None:
        """What the product of `query` with each of some vectors is at most, nearer than by `bounds`."""
        asked = _Asked.of(query, 2)
        return None if asked is None else self._between(asked, self.rows[slots], self.numbers[:, slots])[1]

    def _between(
        self, asked: _Asked, rows: npt.NDArray[np.int8], numbers: npt.NDArray[np.float32]
    ) -> tuple[Vectors, Vectors]:
        assert dot is not None
        steps, lost, kept = numbers
        middle = np.zeros(len(rows), np.float32)
        for step, part in asked.parts if len(rows) else ():
            middle += np.asarray(dot(rows, part[None])).reshape(-1).astype(np.float32) * np.float32(step)
        middle *= steps
        middle += np.float32(self.mean @ asked.query)
        margin = lost * np.float32(asked.length) + kept * np.float32(asked.left)
        return middle - margin, middle + margin


class _Asked(NamedTuple):
    """A query as `parts` of whole numbers, each with what a 1 stands for; the length of what is `left`, and of all."""

    query: Vectors
    parts: list[tuple[float, npt.NDArray[np.int8]]]
    left: float
    length: float

    @classmethod
    def of(cls, query: Vectors, times: int) -> _Asked | None:
        """Round `query`, and what that leaves out, as many `times`; None where no product is known."""
        parts, left = [], query
        for _ in range(times):
            step = float(np.abs(left).max()) / _MOST
            if dot is None or not 0 < step < np.inf:
                break
            whole = np.rint(left / np.float32(step))
            parts.append((step, whole.astype(np.int8)))
            left = left - whole * np.float32(step)
        if not parts:
            return None
        return cls(query, parts, float(np.linalg.norm(left)) + _HAIR, float(np.linalg.norm(query)))


def _lengths(vectors: Vectors) -> Vectors:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), np.float32)
