"""The corpus is a store in memory. It has chunks and their vectors.

A `Corpus` never changes: `refresh` returns another one, so any number of threads can read one while one thread makes
the next. They share one growing block of rows, and only rows that no corpus looks at yet are written, under a lock.
"""

from __future__ import annotations

import itertools
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from io import FileIO
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from memory_tui.core.errors import IndexBusy
from memory_tui.providers.provider_protocol import MOST_DIMS, Identity, Vectors
from memory_tui.search.meaning import rounded
from memory_tui.search.meaning.rounded import Rounded
from memory_tui.source.protocol import ChunkSource, making_sense
from memory_tui.source.rows import ChunkPage, Delta, IndexedNote, NoteColumns, RowIds

Indices = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_PAGE = 2048
"""Chunks fetched at a time, so that the thread of the screen gets its turn."""
_ROOM = 1.25
"""How much more than its rows a block has room for, and how much of it dead rows may fill."""
_SPARE = 256
"""Rows of room that even a small block has."""


_MOST_CHUNKS = 100_000_000
"""More than this no index has: a number above is damage."""
_FEW = 2000
"""Chunks whose vectors are read faster than a store searches them."""


_MANY = 1000
"""Rowids from which a table of all is made, so that none is searched for; rows that are counted, not put in order."""
_SPARSE = 4
"""Rowids for each chunk, above which such a table would be mostly empty."""


def is_cut_short(array: npt.NDArray[Any]) -> bool:
    """Whether another program cut off the end of the file that `array` is mapped from: to read there ends the process.

    Asked before each question; who cuts it during one still ends the process.
    """
    under = _mapping(array)
    return under is not None and under.size() < len(under)


def _mapping(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """What `array` is mapped by; None where it is in memory of its own."""
    under: object = array
    while isinstance(under, np.ndarray):
        under = under.base
    return under if isinstance(under, mmap.mmap) else None


class ChunkIds:
    """Chunk ids by slot: those that were `saved`, as an array of bytes, and more."""

    def __init__(self, saved: npt.NDArray[np.bytes_] | None = None) -> None:
        self._saved = np.empty(0, "|S1") if saved is None else saved
        self._more: list[str] = []

    def __getitem__(self, slot: int) -> str:
        at = slot - len(self._saved)
        return self._more[at] if at >= 0 else bytes(self._saved[slot]).decode()

    def extend(self, ids: Iterable[str]) -> None:
        """Add the ids of the next slots."""
        self._more.extend(ids)


_FEW_OF_ALL = 16
"""One vector of so many is read from the file, more where it is mapped."""
_AT_ONCE = 4
"""Rows that BLAS multiplies at once; it takes two or one of the last rows where no more are left."""


class VectorsOfFile:
    """The first vectors of a block, as they stand in the file behind `descriptor` from byte `at` on.

    Few are read from there rather than where the file is mapped: the system maps 64 KB around each that is touched, so
    that after some questions all of them were resident.
    """

    def __init__(self, descriptor: int, at: int, count: int, dims: int) -> None:
        self._descriptor, self._at, self.count, self._dims = descriptor, at, count, dims
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def of(cls, file: FileIO, at: int, count: int, dims: int) -> VectorsOfFile | None:
        """Those of an open `file`; None where the system reads no place of a file by itself."""
        return cls(os.dup(file.fileno()), at, count, dims) if hasattr(os, "pread") else None

    def read(self, slots: Indices) -> Vectors:
        """Float32 array (len(slots), dims). Raises IndexBusy where another program cut the file short, or it fails."""
        each, descriptor, pread = 4 * self._dims, self._descriptor, os.pread
        try:
            found = b"".join([pread(descriptor, each, at) for at in (self._at + slots * each).tolist()])
        except OSError as error:
            raise IndexBusy(f"A file beside the index cannot be read: {error.strerror}.", "Ask again.") from error
        if len(found) < each * len(slots):
            raise IndexBusy("Another program cut off a file beside the index.", "Ask again: the index is read instead.")
        return np.frombuffer(found, "<f4").reshape(-1, self._dims)


class Block(Struct):
    """Rows in the order of their rowids, some of them dead; append-only, the first `used` ones are in use."""

    used: int
    rowids: RowIds
    file_of: Integers
    lines: Integers
    matrix: Vectors
    ids: ChunkIds
    mapped: bool = False
    """Whether it lies in a file."""
    in_file: VectorsOfFile | None = None
    rounded: Rounded | None = None
    """The same vectors to be compared first, where they are many."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def empty(cls, dims: int, rows: int) -> Block:
        """A block with room for more than `rows`."""
        room = int(rows * _ROOM) + _SPARE
        return cls(
            0,
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty((2, room), np.int32),
            np.zeros((room, dims), np.float32),
            ChunkIds(),
        )

    def append(self, page: ChunkPage, file_index: Mapping[int, int]) -> Flags:
        """Add the chunks of `page`; returns `Corpus.flags` for them."""
        start, end = self.used, self.used + len(page)
        self.rowids[start:end] = page.rowids
        self.file_of[start:end] = [file_index[number] for number in page.notes.tolist()]
        self.lines[:, start:end] = page.lines
        self.ids.extend(page.chunk_ids)
        self.used = end
        return self.put_vectors(slice(start, end), page)

    def put_vectors(self, slots: slice | Indices, page: ChunkPage) -> Flags:
        """Write the vectors of `page` into `slots`; returns `Corpus.flags` for them."""
        self.matrix[slots] = page.vectors
        if self.rounded is not None:
            self.rounded.put(slots, page.vectors)
        return np.array([page.embedded, page.has_vector])

    def packed(self, slots: Indices, rows: int) -> Block:
        """A copy of the rows in `slots` with room for more than `rows`."""
        other = Block.empty(self.matrix.shape[1], rows)
        count = other.used = len(slots)
        other.rowids[:count] = self.rowids[slots]
        other.file_of[:count] = self.file_of[slots]
        other.lines[:, :count] = self.lines[:, slots]
        other.matrix[:count] = self.matrix[slots]
        if self.rounded is not None:
            other.rounded = self.rounded.packed(slots, len(other.rowids))
        other.ids.extend(self.ids[slot] for slot in slots.tolist())
        return other

    def vectors(self, slots: Indices) -> Vectors:
        """The vectors of some slots."""
        few = len(slots) * _FEW_OF_ALL < self.used
        # Without rounded ones each question touches all of them.
        if self.in_file is None or self.rounded is None or not few:
            return self.matrix[slots]
        there = slots < self.in_file.count
        if there.all():
            return self.in_file.read(slots)
        found = np.empty((len(slots), self.matrix.shape[1]), np.float32)
        found[there], found[~there] = self.in_file.read(slots[there]), self.matrix[slots[~there]]
        return found

    def let_go(self) -> None:
        """Keep no page of the whole vectors of the file resident, where questions read few of them.

        Those that were written for chunks that came later have no other place: they stay.
        """
        under = _mapping(self.matrix)
        if under is None or self.in_file is None or self.rounded is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        size = 4 * self.matrix.shape[1] * self.in_file.count // mmap.PAGESIZE * mmap.PAGESIZE
        if size:
            under.madvise(mmap.MADV_DONTNEED, 0, size)

    def add_rounded(self) -> None:
        """Round the vectors, where that serves."""
        if rounded.serve(self.used, self.matrix.shape[1]):
            vectors = self.matrix[: self.used]
            self.rounded = Rounded.of(vectors, mean_of(vectors), len(self.rowids))


class Files(Struct, frozen=True):
    """The notes of a corpus by file index: stored `paths`, `sources`, and modification times in nanoseconds.

    A note that was removed keeps its place until the corpus is loaded anew; no chunk points there.
    """

    paths: tuple[str, ...]
    sources: tuple[str, ...]
    mtimes_ns: npt.NDArray[np.int64]
    index: Mapping[int, int]
    """File index by the id of the row in `files`."""

    @property
    def mtimes(self) -> npt.NDArray[np.float64]:
        """Modification times in seconds."""
        return self.mtimes_ns / 1e9

    @property
    def mtimes_ms(self) -> npt.NDArray[np.int64]:
        """Modification times in whole milliseconds, as OpenClaw 2026.9 cuts them."""
        return self.mtimes_ns // 1_000_000

    @classmethod
    def of(cls, notes: NoteColumns) -> Files:
        """The `notes`, in their order."""
        return cls(
            notes.paths,
            # There are few sources: what a store reads is a string of its own for each note.
            tuple(map(sys.intern, notes.sources)),
            np.array(notes.mtimes, np.int64),
            dict(zip(notes.ids, range(len(notes.ids)), strict=True)),
        )

    def patched(self, rows: Sequence[IndexedNote]) -> Files:
        """These notes with new modification times, and new notes at the end."""
        new = Files.of(
            NoteColumns.of(
                [(row.id, row.path, row.source, row.mtime_ns, row.chunks) for row in rows if row.id not in self.index]
            )
        )
        mtimes = self.mtimes_ns.copy()
        for row in rows:
            if row.id in self.index:
                mtimes[self.index[row.id]] = row.mtime_ns
        if not new.paths:
            return Files(self.paths, self.sources, mtimes, self.index)
        index = {**self.index, **{number: len(self.paths) + i for number, i in new.index.items()}}
        return Files(self.paths + new.paths, self.sources + new.sources, np.concatenate([mtimes, new.mtimes_ns]), index)


class Corpus:
    """All chunks of an index at one `generation`, in the order of their rowids; a position in it is a row.

    `identity` is the space of the vectors, None without any. `embedded` tells which rows were embedded,
    `has_vector` which of them can be compared: a text without any token has a vector of zeros.
    """

    def __init__(
        self,
        generation: int,
        uuid: str,
        identity: Identity | None,
        files: Files,
        block: Block,
        slots: Indices,
        flags: Flags,
    ) -> None:
        self.generation = generation
        self.uuid = uuid
        self.identity = identity
        self.files = files
        self._block = block
        self._used = block.used
        self._slots = slots
        self._flags = flags
        self.embedded: Flags = flags[0]
        self.has_vector: Flags = flags[1]
        self.rowids: RowIds = self._pick(block.rowids)
        self.file_of: Integers = self._pick(block.file_of)
        self.start_lines: Integers = self._pick(block.lines[0])
        self.end_lines: Integers = self._pick(block.lines[1])

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def mapped(self) -> bool:
        """Whether its vectors lie in a corpus file."""
        return self._block.mapped

    @property
    def dims(self) -> int:
        """Dimensions of the vectors in memory, 0 without any."""
        return int(self._block.matrix.shape[1])

    @property
    def matrix(self) -> Vectors:
        """Float32 array (chunks, dims) of unit rows, zeros where there is no vector; a copy once rows were dropped."""
        return self._pick(self._block.matrix)

    def vectors(self, rows: Indices | Sequence[int]) -> Vectors:
        """Float32 array (len(rows), dims) of some rows, for instance to compare chunks with each other."""
        return self._block.vectors(self._slots[np.asarray(rows, np.int64)])

    def bounds(self, query: Vectors) -> tuple[Vectors, Vectors] | None:
        """Between what the product of `query` with each row lies; None where only whole vectors are here."""
        found = self._block.rounded.bounds(self._used, query) if self._block.rounded is not None else None
        if found is None:
            return None
        low, high = (self._pick(one) for one in found)
        if not self.has_vector.all():
            low[~self.has_vector] = high[~self.has_vector] = 0.0
        return low, high

    def most(self, rows: Indices, query: Vectors) -> Vectors:
        """What the product of `query` with each of `rows` is at most, nearer than by `bounds`, which are known."""
        found = self._block.rounded.most(self._slots[rows], query) if self._block.rounded is not None else None
        return np.full(len(rows), np.inf, np.float32) if found is None else np.where(self.has_vector[rows], found, 0)

    def chunk_id(self, row: int) -> str:
        """The documented id of a row's chunk."""
        return self._block.ids[int(self._slots[row])]

    def path(self, row: int) -> str:
        """The path of the note that a row's chunk is of."""
        return self.files.paths[int(self.file_of[row])]

    def rows_of(self, rowids: RowIds | Sequence[int]) -> Indices:
        """The row of each rowid, -1 for a rowid that is not here (gone, later, or a repeat)."""
        wanted = np.asarray(rowids, np.int64)
        if not len(self):
            return np.full(len(wanted), -1, np.int64)
        if len(wanted) >= _MANY and (known := self._row_of) is not None:
            # Several times as quick as a search for each.
            at = wanted - self.rowids[0]
            if at.min() >= 0 and at.max() < len(known):
                return np.asarray(known.take(at), np.int64)
            inside = (at >= 0) & (at < len(known))
            return np.where(inside, known[np.where(inside, at, 0)], -1).astype(np.int64)
        at = np.minimum(np.searchsorted(self.rowids, wanted), len(self) - 1)
        return np.where(self.rowids[at] == wanted, at, -1)

    @cached_property
    def _row_of(self) -> Integers | None:
        """The row of each rowid from the first one on, -1 for one that is not here; None where that would be large."""
        span = int(self.rowids[-1] - self.rowids[0]) + 1
        if span > _SPARSE * len(self):
            return None
        rows = np.full(span, -1, np.int32)
        rows[self.rowids - self.rowids[0]] = np.arange(len(self), dtype=np.int32)
        return rows

    @classmethod
    def load(cls, store: ChunkSource, *, vectors: bool = True, often: bool = False) -> Corpus:
        """Everything in the store, read in pages. Without `vectors` only `cosines_of_nearest` can compare.

        What is asked `often` has rounded vectors too.

        Raises IndexUnavailable, Cancelled.
        """
        with store.snapshot(), making_sense(store.damaged):
            identity = store.identity()
            notes = store.notes()
            files, count = Files.of(notes), sum(notes.chunks)
            if count > _MOST_CHUNKS or (identity and identity.dims > MOST_DIMS):
                raise ValueError("numbers that cannot be")
            block = Block.empty(identity.dims if identity and vectors else 0, count)
            flags = [np.empty((2, 0), np.bool_)]
            after = 0
            while len(page := store.page(after, _PAGE, vectors=vectors)):
                flags.append(block.append(page, files.index))
                after = int(page.rowids[-1])
            if often:
                block.add_rounded()
            return cls(
                store.generation(),
                store.uuid(),
                identity,
                files,
                block,
                np.arange(block.used),
                np.concatenate(flags, axis=1),
            )

    @classmethod
    def load_once(cls, store: ChunkSource) -> Corpus:
        """For a command that asks once: no vectors in memory where they are many and the store finds the nearest."""
        by_store = store.finds_nearest() and sum(store.notes().chunks) > _FEW
        return cls.load(store, vectors=not by_store)

    @classmethod
    def load_light(cls, store: ChunkSource) -> Corpus:
        """Without vectors in memory, however few they are, where the store finds the nearest."""
        return cls.load(store, vectors=not store.finds_nearest())

    def refresh(self, store: ChunkSource) -> Corpus:
        """The corpus as it is now: this one if nothing changed, else another whose making costs what changed.

        It is loaded anew after a rebuild, when more happened than the store remembers, and when its file was cut short.
        """
        vectors = self.dims > 0 or self.identity is None
        with store.snapshot():
            same = store.uuid() == self.uuid and not (self.mapped and is_cut_short(self._block.matrix))
            if same and store.generation() == self.generation:
                return self
            same = same and store.identity() == self.identity
            delta = store.delta(self.generation, len(self) + _PAGE, vectors=vectors) if same else None
            if delta is None:
                return Corpus.load(store, vectors=vectors, often=True)
        with self._block.lock, making_sense(store.damaged):
            return self._patched(delta)

    def _patched(self, delta: Delta) -> Corpus:
        """This corpus with what changed."""
        files, page = self.files.patched(delta.notes), delta.chunks
        gone = self.rows_of(delta.gone)
        stay = np.ones(len(self), np.bool_)
        stay[gone[gone >= 0]] = False
        rows = self.rows_of(page.rowids)
        known = rows >= 0
        changed, new = page.of_those(known), page.of_those(~known)
        block, slots = self._writable(stay, len(new))
        flags = self._flags[:, stay]
        if len(changed):
            if block is self._block:
                # Older corpora look at the rows of this block, and theirs must stay as they are.
                block, slots = block.packed(slots, len(slots) + len(new)), np.arange(len(slots))
            at = np.cumsum(stay)[rows[known]] - 1
            flags[:, at] = block.put_vectors(slots[at], changed)
        if len(new):
            flags = np.concatenate([flags, block.append(new, files.index)], axis=1)
            slots = np.concatenate([slots, np.arange(block.used - len(new), block.used)])
        return Corpus(delta.generation, self.uuid, self.identity, files, block, slots, flags)

    def _writable(self, stay: Flags, more: int) -> tuple[Block, Indices]:
        """The block to append `more` rows to, and the slots in it of the rows that stay.

        That is another block where this one is full or holds too many dead rows.
        """
        slots = self._slots[stay]
        total = len(slots) + more
        if self._block.used + more <= min(len(self._block.rowids), int(total * _ROOM) + _SPARE):
            return self._block, slots
        return self._block.packed(slots, total), np.arange(len(slots))

    def _pick(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array[: self._used] if len(self._slots) == self._used else array[self._slots]

    def _scores(self, query: Vectors) -> Vectors:
        return self._pick(self._products(query[None])[0])

    def _products(self, queries: Vectors) -> Vectors:
        found = products_of_each(self._block.matrix[: self._used], queries)
        self._block.let_go()
        return found


def products(rows: Vectors, vector: Vectors) -> Vectors:
    """Float32 array (rows,): each of `rows` times `vector`, to the last digit whatever stands beside it.

    BLAS takes rows by fours, and sums those that are left over in another order: they get empty rows beside them. So
    two processes agree, although one of them read the rows anew and the other added them one by one.
    """
    return np.asarray(products_of_each(rows, vector[None])[0])


_ROWS_AT_ONCE = 1024
"""Rows that stay in the cache of a processor while vectors are compared with them; whole times _AT_ONCE."""


def products_of_each(rows: Vectors, vectors: Vectors) -> Vectors:
    """Float32 array (vectors, rows): `products` of each of `vectors`.

    Each few rows are compared with all of them, so that they come from memory once.
    """
    found = np.empty((len(vectors), len(rows)), np.float32)
    whole = len(rows) // _AT_ONCE * _AT_ONCE
    for first, end in itertools.pairwise([*range(0, whole, _ROWS_AT_ONCE), whole, len(rows)]):
        few = rows[first:end]
        if rest := -len(few) % _AT_ONCE:
            few = np.concatenate([few, np.zeros((rest, few.shape[1]), np.float32)])
        for own, vector in zip(found[:, first:end], vectors, strict=True):
            own[:] = (few @ vector)[: len(own)]
    return found


def mean_of(vectors: Vectors) -> Vectors:
    """The mean of `vectors`."""
    return np.asarray(vectors.mean(axis=0, dtype=np.float64), np.float32)


def distinct(rows: npt.NDArray[np.signedinteger[Any]]) -> Indices:
    """Each of `rows` (from 0) once, in order: numpy's own `unique` imports masked arrays first, for 30 ms."""
    if len(rows) > _MANY:
        return np.flatnonzero(np.bincount(rows))
    ordered = np.sort(rows)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]], np.int64)


def cosines(corpus: Corpus, query: Vectors) -> Vectors:
    """Float32 array (chunks,): the cosine of each row with the unit vector `query`, 0 for a row without a vector."""
    if not corpus.dims:
        return np.zeros(len(corpus), np.float32)
    return np.where(corpus.has_vector, corpus._scores(query), np.float32(0))


def cosines_of_each(corpus: Corpus, queries: Sequence[Vectors]) -> Vectors:
    """Float32 array (queries, chunks): `cosines` of each of `queries`, to the last digit."""
    if not corpus.dims or not queries:
        return np.zeros((len(queries), len(corpus)), np.float32)
    found = corpus._pick(corpus._products(np.stack(queries)).T).T
    return np.where(corpus.has_vector, found, np.float32(0))


def cosines_of_nearest(
    store: ChunkSource,
    corpus: Corpus,
    query: Vectors,
    count: int,
    also: Indices | Sequence[int] = (),
) -> tuple[Vectors, bool]:
    """Like `cosines`, but only of the `count` nearest rows and of those in `also`; minus infinity elsewhere.

    It reads few vectors. The scores are those of `cosines` to 1e-6. Also whether the store told which are the nearest;
    where it could not, every row is compared.
    """
    scores = np.full(len(corpus), -np.inf, np.float32)
    found = store.nearest(query, count) if store.finds_nearest() else None
    if found is None:
        rows = np.arange(len(corpus))
    else:
        near = corpus.rows_of(found)
        rows = distinct(np.concatenate([near[near >= 0], np.asarray(also, np.int64)]))
    scores[rows] = vectors_of(store, corpus, rows) @ query
    return scores, found is not None


def vectors_of(store: ChunkSource, corpus: Corpus, rows: Indices) -> Vectors:
    """Float32 array (len(rows), dims) of unit rows, zeros without a vector: from memory, or else from the store."""
    if corpus.dims or corpus.identity is None:
        return corpus.vectors(rows)
    return store.vectors(corpus.rowids[rows])
