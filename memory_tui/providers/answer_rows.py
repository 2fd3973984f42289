"""The rows of an answer, put into the order of the texts."""

from __future__ import annotations


class Malformed(ValueError):
    """An answer that must not be stored; its text completes the sentence "answered with ..."."""


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
