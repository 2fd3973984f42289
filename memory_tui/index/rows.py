"""Rows: the plain values that a store hands to a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui.providers.base import Vectors

RowIds = npt.NDArray[np.int64]
"""Numbers of chunks in one store, from 1; a later chunk has a greater one, and none is used again."""
Bm25 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_UNIT = 0.02
"""How far the square of a vector's length may be from 1."""


class IndexedNote(NamedTuple):
    """A note as it was indexed: `mtime_ns` and `size` of the file that was read, `indexed_at` in seconds.

    `state` is ok, failed or CHANGED; `detail` says why it failed, or what is odd about the text. `hash` is empty when
    the note has to be read again whatever the disk says.
    """

    id: int
    path: str
    source: str
    hash: str
    mtime_ns: int
    size: int
    state: str
    detail: str
    indexed_at: float
    chunks: int


CHANGED = "changed"
"""State of a note that was being written to each time it was read."""


class ChunkRow(NamedTuple):
    """A chunk of a note; equal chunks on the same lines share `chunk_id` and differ in `occurrence`."""

    rowid: int
    chunk_id: str
    ordinal: int
    occurrence: int
    start_line: int
    end_line: int
    hash: str
    model: str
    embedded: bool
    source: str


class NoteColumns(NamedTuple):
    """All notes, one column a field: id, stored path, source, modification time in nanoseconds, number of chunks."""

    ids: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    mtimes: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> NoteColumns:
        """Turn rows of these fields into columns."""
        return cls(*zip(*rows, strict=True)) if rows else cls()


class ChunkPage(Struct, frozen=True):
    """Chunks without their repeats, in the order of their ids, one column a field.

    `notes` are the ids of their notes; `lines` has shape (2, n): first and last, from 1. `embedded` tells which of them
    have a vector, `has_vector` which of those can be compared: a text without any token has a vector of zeros.
    `vectors` is float32 (n, dims), unit rows, zeros elsewhere; where vectors were not asked for `dims` is 0, and
    `has_vector` is what the store tells, or `embedded`.
    """

    rowids: RowIds
    notes: RowIds
    lines: npt.NDArray[np.int32]
    chunk_ids: Sequence[str]
    embedded: Flags
    has_vector: Flags
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.rowids)

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]], dims: int) -> ChunkPage:
        """Make a page of rows: rowid, note id, first line, last line, chunk id, embedded, vector as float32 bytes.

        A vector may be None; without `dims` it is whether the chunk has one to compare, None for not known.
        Raises ValueError, TypeError, OverflowError for rows that make no sense.
        """
        if not rows:
            return cls.empty(dims)
        rowids, notes, first, last, chunk_ids, embedded, blobs = zip(*rows, strict=True)
        if not all(1 <= start <= other for start, other in zip(first, last, strict=True)):
            raise ValueError("lines that cannot be")
        marks = np.array(embedded, np.bool_)
        if dims:
            vectors, pointing = unit_rows(blobs, dims)
        else:
            vectors = np.empty((len(rows), 0), np.float32)
            pointing = np.array([blob is None or bool(blob) for blob in blobs], np.bool_)
        return cls(
            np.array(rowids, np.int64),
            np.array(notes, np.int64),
            np.array([first, last], np.int32),
            chunk_ids,
            marks,
            marks & pointing,
            vectors,
        )

    def of_those(self, which: Flags) -> ChunkPage:
        """Keep the chunks that `which` marks."""
        chunk_ids = [chunk_id for chunk_id, keep in zip(self.chunk_ids, which.tolist(), strict=True) if keep]
        return ChunkPage(
            self.rowids[which],
            self.notes[which],
            self.lines[:, which],
            chunk_ids,
            self.embedded[which],
            self.has_vector[which],
            self.vectors[which],
        )

    @classmethod
    def empty(cls, dims: int) -> ChunkPage:
        """Make a page of nothing."""
        none, marks = np.empty(0, np.int64), np.empty(0, np.bool_)
        return cls(none, none, np.empty((2, 0), np.int32), (), marks, marks, np.empty((0, dims), np.float32))


def unit_rows(blobs: Sequence[bytes | None], dims: int) -> tuple[Vectors, Flags]:
    """Join vectors as float32 bytes into an array (n, dims), zeros for None; and tell which are not all zeros.

    Raises ValueError for a vector of another length than `dims`, or that is neither a unit vector nor zeros.
    """
    if not dims or not blobs:
        return np.zeros((len(blobs), dims), np.float32), np.zeros(len(blobs), np.bool_)
    missing = bytes(4 * dims)
    joined = b"".join([missing if blob is None else blob for blob in blobs])
    vectors = np.frombuffer(joined, np.float32).reshape(len(blobs), dims)
    return vectors, check_units(vectors) > 0


def check_units(vectors: Vectors) -> npt.NDArray[np.float32]:
    """The squared length of each vector. Raises ValueError for one that is neither a unit vector nor zeros."""
    with np.errstate(all="ignore"):
        square: npt.NDArray[np.float32] = np.einsum("ij,ij->i", vectors, vectors)
    if not np.all((square == 0) | (np.abs(square - 1) < _UNIT)):
        raise ValueError("a vector that is none")
    return square


class Delta(Struct, frozen=True):
    """What changed in a store since an earlier generation: `notes` and `chunks` as they are, rowids that are `gone`.

    A chunk is here when it is new, or when its vector came.
    """

    generation: int
    notes: Sequence[IndexedNote]
    chunks: ChunkPage
    gone: Sequence[int]


class Matches(NamedTuple):
    """Chunks that hold words, in the order of their `rowids`, and their `bm25`: negative, the smallest is the best."""

    rowids: RowIds
    bm25: Bm25


class CosineRank(NamedTuple):
    """The exact place of a chunk by cosine: `rank` from 1 among the `of` chunks that have a vector."""

    cosine: float
    rank: int
    of: int


Form = Literal["plain", "stemmed"]
"""`plain`: a chunk's text as OpenClaw's full-text table has it, repeats included. `stemmed`: the day in the name of its
note in words, the headings above it and its text, as stems, without repeats."""


class Rejected(Struct, frozen=True):
    """A chunk that the provider made no vector of, why in its words, and when (epoch seconds)."""

    rowid: int
    path: str
    start_line: int
    end_line: int
    reason: str
    at: float

    def __str__(self) -> str:
        return f"refused by the provider: {self.reason}"


class Withheld(Struct, frozen=True):
    """A chunk that is not sent to the provider, because it looks like a secret of that `kind`."""

    rowid: int
    path: str
    start_line: int
    end_line: int
    kind: str

    def __str__(self) -> str:
        return f"withheld: looks like a secret ({self.kind})"


class TableSize(Struct, frozen=True):
    """A kind of table of a store: its `rows`, and the `bytes` of its pages with those of its indexes."""

    name: str
    rows: int
    bytes: int
    about: str
