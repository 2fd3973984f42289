"""How a count, a score, the name of a field is written."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `12,345 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """A score or weight with three digits after the point."""
    return f"{value:.3f}"


def camel(name: str) -> str:
    """`start_line` as `startLine`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
