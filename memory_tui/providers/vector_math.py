"""Vectors of length one, from whatever a provider answered."""

from __future__ import annotations

import numpy as np

from memory_tui.providers.answer_rows import Malformed
from memory_tui.providers.provider_protocol import Vectors


class NoDirection(Malformed):
    """Vectors of the right length that point nowhere; `every` one of the answer, or some of them."""

    def __init__(self, message: str, every: bool) -> None:
        super().__init__(message)
        self.every = every


def unit_vectors(rows: list[object], count: int, dims: int | None) -> Vectors:
    """Float32 array (count, dims) of unit vectors from rows of numbers. Raises Malformed, NoDirection."""
    if len(rows) != count:
        raise Malformed(f"{len(rows)} vectors for {count} texts")
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise Malformed("rows that are not vectors of one length")
    if dims is not None and lengths != {dims}:
        raise Malformed(f"vectors of {lengths.pop()} numbers where {dims} were expected")
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed("vectors that are not made of numbers") from error
    largest = np.abs(values).max(axis=1, keepdims=True)
    finite = np.isfinite(largest)
    if not (finite & (largest > 0)).all():
        raise NoDirection(
            "vectors that hold NaN or infinity" if not finite.all() else "a vector of zeros only",
            every=not (finite & (largest > 0)).any(),
        )
    values /= largest
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)
