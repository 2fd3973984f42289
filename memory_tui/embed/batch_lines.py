"""Result files line by line: in any order, with lines missing, twice, broken, or telling errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from memory_tui.embed.answers import Malformed
from memory_tui.embed.batch import Line
from memory_tui.embed.provider import Vectors
from memory_tui.embed.units import unit_vectors

_PIECE = 256
_LONGEST = 4 << 20
"""A longer line is no vector."""


@dataclass(slots=True)
class Results:
    """Some lines of a result file: unit vectors and errors by the text's id; `broken` lines say nothing at all."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    broken: int = 0

    def __len__(self) -> int:
        return len(self.vectors) + len(self.errors) + self.broken


def results(files: Iterable[BinaryIO], read: Callable[[Mapping[str, object]], Line], dims: int) -> Iterator[Results]:
    """What `files` say, a few hundred lines at a time. Of two lines about one text the first good one counts."""
    good: set[str] = set()
    for file in files:
        piece = Results()
        for raw in _lines(file):
            _take(raw, read, dims, piece, good)
            if len(piece) >= _PIECE:
                yield piece
                piece = Results()
        if len(piece):
            yield piece


def _take(raw: bytes, read: Callable[[Mapping[str, object]], Line], dims: int, piece: Results, good: set[str]) -> None:
    try:
        line = read(_object(raw))
        if not line.id:
            raise Malformed("no id")
    except (ValueError, RecursionError):
        piece.broken += 1
        return
    if line.id in good:
        return
    if not line.error:
        try:
            piece.vectors[line.id] = unit_vectors([line.vector], 1, dims)[0]
        except Malformed as error:
            line = Line(line.id, None, str(error))
    if line.error:
        piece.errors[line.id] = line.error
    else:
        good.add(line.id)
        piece.errors.pop(line.id, None)


def _object(raw: bytes) -> Mapping[str, object]:
    tree = json.loads(raw.decode("utf-8", "replace"))
    if not isinstance(tree, dict):
        raise Malformed("no object")
    return tree


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines that hold something; one that is far too long comes in pieces, none of which makes sense."""
    while raw := file.readline(_LONGEST):
        if raw.strip():
            yield raw
