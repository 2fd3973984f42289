"""The corpus is a store in memory. It has chunks and their vectors.

A `Corpus` never changes: `refresh` returns another one, so any number of threads can read one while one thread makes
the next. They share one growing block of rows, and only rows that no corpus looks at yet are written, under a lock.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from memory_tui.index.full_text import FullText
from memory_tui.index.rows import ChunkPage, Delta, IndexedNote, NoteColumns, RowIds
from memory_tui.index.store import Store
from memory_tui.providers.base import MOST_DIMS, Identity, Vectors
from memory_tui.search.spelling import Vocabulary
from memory_tui.search.trace import Basis, Chunks
from memory_tui.workspace import transcripts
from memory_tui.workspace.notes import NoteDate, note_date, note_date_2026_9, shown_day

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
_MANY = 1000
"""Rows that are counted, not put in order."""


class Block(Struct):
    """Rows in the order of their rowids, some of them dead; append-only, the first `used` ones are in use."""

    used: int
    rowids: RowIds
    file_of: Integers
    lines: Integers
    matrix: Vectors
    ids: list[str]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def empty(cls, dims: int, rows: int) -> Block:
        """Return a block with room for more than `rows`."""
        room = int(rows * _ROOM) + _SPARE
        return cls(
            0,
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty((2, room), np.int32),
            np.zeros((room, dims), np.float32),
            [],
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
        return np.array([page.embedded, page.has_vector])

    def packed(self, slots: Indices, rows: int) -> Block:
        """Return a copy of the rows in `slots` with room for more than `rows`."""
        other = Block.empty(self.matrix.shape[1], rows)
        count = other.used = len(slots)
        other.rowids[:count] = self.rowids[slots]
        other.file_of[:count] = self.file_of[slots]
        other.lines[:, :count] = self.lines[:, slots]
        other.matrix[:count] = self.matrix[slots]
        other.ids.extend(self.ids[slot] for slot in slots.tolist())
        return other


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
        """Return modification times in seconds."""
        return self.mtimes_ns / 1e9

    @property
    def mtimes_ms(self) -> npt.NDArray[np.int64]:
        """Return modification times in whole milliseconds, as OpenClaw 2026.9 cuts them."""
        return self.mtimes_ns // 1_000_000

    @classmethod
    def of(cls, notes: NoteColumns) -> Files:
        """Return the `notes`, in their order."""
        return cls(
            notes.paths,
            # There are few sources: what a store reads is a string of its own for each note.
            tuple(map(sys.intern, notes.sources)),
            np.array(notes.mtimes, np.int64),
            dict(zip(notes.ids, range(len(notes.ids)), strict=True)),
        )

    def patched(self, rows: Sequence[IndexedNote]) -> Files:
        """Return these notes with new modification times, and new notes at the end."""
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


class NoteDates(Struct, frozen=True):
    """What notes are aged from by one rule: the day in a name, else when the file was changed (`mtimes`, seconds)."""

    files: Files
    rule: Callable[[str], NoteDate]
    """What a path says of its date."""
    of_transcripts: Basis
    mtimes: npt.NDArray[np.float64]

    def of(self, file: int) -> NoteDate:
        """Return the date of one file; that of a transcript is the same for each."""
        if self.files.sources[file] == transcripts.SOURCE:
            return NoteDate(None, self.of_transcripts)
        return self.rule(self.files.paths[file])

    def seconds(self, files: Integers) -> npt.NDArray[np.float64]:
        """Return what each of `files` is aged from in epoch seconds, NaN for evergreen ones."""
        return np.array(list(map(self._seconds, files.tolist())), dtype=np.float64)

    def _seconds(self, file: int) -> float:
        date = self.of(file)
        if date.day is not None:
            return (date.day.toordinal() - _EPOCH) * DAY_SECONDS
        return float(self.mtimes[file]) if date.basis == "mtime" else math.nan

    def basis(self, file: int) -> Basis:
        """Return what a file is aged by."""
        return self.of(file).basis


_EPOCH = dt.date(1970, 1, 1).toordinal()
DAY_SECONDS = 86_400.0


@lru_cache(100_000)
def _date_on_screen(path: str) -> NoteDate:
    day = shown_day(path)
    return NoteDate(day, "name" if day else "evergreen")


_by_2026_3, _by_2026_9 = lru_cache(100_000)(note_date), lru_cache(100_000)(note_date_2026_9)


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
        self._vocabulary: Vocabulary | None = None
        self.embedded: Flags = flags[0]
        self.has_vector: Flags = flags[1]
        self.rowids: RowIds = self._pick(block.rowids)
        self.file_of: Integers = self._pick(block.file_of)
        self.start_lines: Integers = self._pick(block.lines[0])
        self.end_lines: Integers = self._pick(block.lines[1])

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def dims(self) -> int:
        """Return dimensions of the vectors in memory, 0 without any."""
        return int(self._block.matrix.shape[1])

    @property
    def matrix(self) -> Vectors:
        """Float32 array (chunks, dims) of unit rows, zeros where there is no vector; a copy once rows were dropped."""
        return self._pick(self._block.matrix)

    def vectors(self, rows: Indices | Sequence[int]) -> Vectors:
        """Return a float32 array (len(rows), dims) of some rows, for instance to compare chunks with each other."""
        return self._block.matrix[self._slots[np.asarray(rows, np.int64)]]

    def chunk_id(self, row: int) -> str:
        """Return the documented id of a row's chunk."""
        return self._block.ids[int(self._slots[row])]

    def path(self, row: int) -> str:
        """Return the path of the note that a row's chunk is of."""
        return self.files.paths[int(self.file_of[row])]

    @cached_property
    def refs(self) -> Chunks:
        """Return where each row stands."""
        files = self.files
        return Chunks(
            self.rowids,
            self.file_of,
            self.start_lines,
            self.end_lines,
            self._slots,
            self._block.ids,
            files.paths,
            files.sources,
        )

    def rows_of(self, rowids: RowIds | Sequence[int]) -> Indices:
        """Return the row of each rowid, -1 for a rowid that is not here (gone, later, or a repeat)."""
        needed = np.asarray(rowids, np.int64)
        if not len(self):
            return np.full(len(needed), -1, np.int64)
        at = np.minimum(np.searchsorted(self.rowids, needed), len(self) - 1)
        return np.where(self.rowids[at] == needed, at, -1)

    @cached_property
    def files_with_chunks(self) -> int:
        """Return how many files have a chunk."""
        return len(distinct(self.file_of))

    @property
    def dates(self) -> NoteDates:
        """Return what notes are aged from by our own rule."""
        return NoteDates(self.files, _date_on_screen, "mtime", self.files.mtimes)

    @property
    def dates_2026_3(self) -> NoteDates:
        """By that of OpenClaw 2026.3, which looks for a transcript in the workspace, where none is."""
        return NoteDates(self.files, _by_2026_3, "evergreen", self.files.mtimes)

    @property
    def dates_2026_9(self) -> NoteDates:
        """By that of OpenClaw 2026.9, by which transcripts age too."""
        return NoteDates(self.files, _by_2026_9, "mtime", self.files.mtimes_ms / 1e3)

    def named(self) -> Iterator[tuple[int, dt.date]]:
        """Yield the files that carry a day in their name, with it."""
        for file, path in enumerate(self.files.paths):
            if day := _date_on_screen(path).day:
                yield file, day

    def vocabulary(self, words: FullText) -> Vocabulary:
        """Return the words of the index, read when a query first needs them."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(words.vocabulary())
        return self._vocabulary

    @classmethod
    def opened(cls, store: Store, *, once: bool) -> Corpus:
        """Read it all; for who asks `once`, the vectors only where the store does not find the nearest itself."""
        return cls.load(store, vectors=not (once and store.finds_nearest()))

    @classmethod
    def load(cls, store: Store, *, vectors: bool = True) -> Corpus:
        """Return everything in the store, read in pages. Without `vectors` only `cosines_of_nearest` can compare.

        Raises IndexUnavailable, Cancelled.
        """
        with store.snapshot(), store.making_sense():
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
            return cls(
                store.generation(),
                store.uuid(),
                identity,
                files,
                block,
                np.arange(block.used),
                np.concatenate(flags, axis=1),
            )

    def refresh(self, store: Store) -> Corpus:
        """Return the corpus as it is now: this one if nothing changed, else another whose making costs what changed.

        It is loaded anew after a rebuild, and when more happened than the store remembers.
        """
        vectors = self.dims > 0 or self.identity is None
        with store.snapshot():
            same = store.uuid() == self.uuid
            if same and store.generation() == self.generation:
                return self
            same = same and store.identity() == self.identity
            delta = store.delta(self.generation, len(self) + _PAGE, vectors=vectors) if same else None
            if delta is None:
                return Corpus.load(store, vectors=vectors)
        with self._block.lock, store.making_sense():
            return self._patched(delta)

    def _patched(self, delta: Delta) -> Corpus:
        """Return this corpus with what changed."""
        files, page = self.files.patched(delta.notes), delta.chunks
        removed = self.rows_of(delta.gone)
        stay = np.ones(len(self), np.bool_)
        stay[removed[removed >= 0]] = False
        rows = self.rows_of(page.rowids)
        existing = rows >= 0
        changed, new = page.of_those(existing), page.of_those(~existing)
        block, slots = self._writable(stay, len(new))
        flags = self._flags[:, stay]
        if len(changed):
            if block is self._block:
                # Older corpora look at the rows of this block, and theirs must stay as they are.
                block, slots = block.packed(slots, len(slots) + len(new)), np.arange(len(slots))
            at = np.cumsum(stay)[rows[existing]] - 1
            flags[:, at] = block.put_vectors(slots[at], changed)
        if len(new):
            flags = np.concatenate([flags, block.append(new, files.index)], axis=1)
            slots = np.concatenate([slots, np.arange(block.used - len(new), block.used)])
        return Corpus(delta.generation, self.uuid, self.identity, files, block, slots, flags)

    def _writable(self, stay: Flags, more: int) -> tuple[Block, Indices]:
        """Return the block to append `more` rows to, and the slots in it of the rows that stay.

        That is another block where this one is full or holds too many dead rows.
        """
        slots = self._slots[stay]
        total = len(slots) + more
        if self._block.used + more <= min(len(self._block.rowids), int(total * _ROOM) + _SPARE):
            return self._block, slots
        return self._block.packed(slots, total), np.arange(len(slots))

    def _pick(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array[: self._used] if len(self._slots) == self._used else array[self._slots]


_one_at_a_time = threading.Lock()


@cache
def _openblas() -> ctypes.CDLL | None:
    """Return the OpenBLAS that numpy brings; None where it multiplies by another library."""
    result = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    return result if hasattr(result, "scipy_openblas_set_num_threads64_") else None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Multiply by one thread while inside: where a program imported numpy first, OPENBLAS_NUM_THREADS came too late."""
    library = _openblas()
    if library is None:
        yield
        return
    with _one_at_a_time:
        threads = library.scipy_openblas_get_num_threads64_()
        library.scipy_openblas_set_num_threads64_(1)
        try:
            yield
        finally:
            library.scipy_openblas_set_num_threads64_(threads)


_AT_ONCE = 4
"""Rows that BLAS multiplies at once; it takes two or one of the last rows where no more are left."""


def products(rows: Vectors, vector: Vectors) -> Vectors:
    """Return a float32 array (rows,): each of `rows` times `vector`, to the last digit whatever stands beside it.

    BLAS takes rows by fours, and sums those that are left over in another order: they get empty rows beside them. So
    two processes agree, although one of them read the rows anew and the other added them one by one.
    """
    result = np.empty(len(rows), np.float32)
    whole = len(rows) // _AT_ONCE * _AT_ONCE
    with one_blas_thread():
        np.matmul(rows[:whole], vector, out=result[:whole])
        if rest := len(rows) - whole:
            few = np.zeros((_AT_ONCE, rows.shape[1]), np.float32)
            few[:rest] = rows[whole:]
            result[whole:] = (few @ vector)[:rest]
    return result


def distinct(rows: npt.NDArray[np.signedinteger[Any]]) -> Indices:
    """Return each of `rows` (from 0) once, in order: numpy's own `unique` imports masked arrays first, for 30 ms."""
    if len(rows) > _MANY:
        return np.flatnonzero(np.bincount(rows))
    ordered = np.sort(rows)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]], np.int64)


def cosines(corpus: Corpus, query: Vectors) -> Vectors:
    """Float32 array (chunks,): the cosine of each row with the unit vector `query`, 0 for a row without a vector."""
    if not corpus.dims:
        return np.zeros(len(corpus), np.float32)
    result = corpus._pick(products(corpus._block.matrix[: corpus._used], query))
    return np.where(corpus.has_vector, result, np.float32(0))


def cosines_of_nearest(
    store: Store,
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
    result = store.nearest(query, count) if store.finds_nearest() else None
    if result is None:
        rows = np.arange(len(corpus))
    else:
        near = corpus.rows_of(result)
        rows = distinct(np.concatenate([near[near >= 0], np.asarray(also, np.int64)]))
    scores[rows] = vectors_of(store, corpus, rows) @ query
    return scores, result is not None


def vectors_of(store: Store, corpus: Corpus, rows: Indices) -> Vectors:
    """Float32 array (len(rows), dims) of unit rows, zeros without a vector: from memory, or else from the store."""
    if corpus.dims or corpus.identity is None:
        return corpus.vectors(rows)
    return store.vectors(corpus.rowids[rows])
