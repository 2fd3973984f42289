"""The vectors of an answer: its rows in the order of the texts, at length one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_tui.providers.provider_protocol import MOST_DIMS

if TYPE_CHECKING:
    from memory_tui.providers.provider_protocol import Vectors


class Malformed(ValueError):
    """An answer that must not be stored; its text completes the sentence "answered with ..."."""


class NoDirection(Malformed):
    """Vectors of the right length that point nowhere; `every` one of the answer, or some of them."""

    def __init__(self, message: str, every: bool) -> None:
        super().__init__(message)
        self.every = every


def field(tree: object, name: str) -> list[object]:
    """The list called `name` in the object `tree`. Raises Malformed."""
    found = tree.get(name) if isinstance(tree, dict) else None
    if not isinstance(found, list):
        raise Malformed(f"JSON that has no list {name!r}")
    return found


def in_order(rows: list[object]) -> list[object]:
    """`rows` sorted by their `index` where they have one. Raises Malformed when the indexes are not 0, 1, 2, ..."""
    indexes = [row.get("index") if isinstance(row, dict) else None for row in rows]
    if all(index is None for index in indexes):
        return rows
    places = {index: row for index, row in zip(indexes, rows, strict=True) if isinstance(index, int)}
    if sorted(places) != list(range(len(rows))):
        raise Malformed("rows whose indexes are not 0, 1, 2, ...")
    return [places[at] for at in range(len(rows))]


def unit_vectors(rows: list[object], count: int, dims: int | None) -> Vectors:
    """Float32 array (count, dims) of unit vectors from rows of numbers. Raises Malformed, NoDirection."""
    # Late, because the rows of providers import this module, and numpy is not needed to read them.
    import numpy as np

    if len(rows) != count:
        raise Malformed(f"{len(rows)} vectors for {count} texts")
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise Malformed("rows that are not vectors of one length")
    if max(lengths) > MOST_DIMS:
        raise Malformed(f"vectors of {max(lengths):,} numbers, where an index holds at most {MOST_DIMS:,}")
    if dims is not None and lengths != {dims}:
        raise Malformed(f"vectors of {lengths.pop()} numbers where {dims} were expected")
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed("vectors that are not made of numbers") from error
    largest = np.abs(values).max(axis=1, keepdims=True)
    points = (largest > 0) & (largest < np.inf)
    if not points.all():
        raise NoDirection(
            "a vector of zeros only" if np.isfinite(largest).all() else "vectors that hold NaN or infinity",
            every=not points.any(),
        )
    values /= largest
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)
