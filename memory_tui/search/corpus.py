"""The corpus is an index in memory: its chunks, where they stand, and their vectors.

A `Corpus` never changes: `refresh` returns another one, so any number of threads can read one while another is made.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import math
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from importlib import import_module
from posixpath import splitext
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.index.store import MOST_WITH_WINDOWS, ChunkPage, RowIds, Store
from memory_tui.providers import MOST_DIMS, Identity, Vectors, registry
from memory_tui.search.trace import Basis, ChunkRef, Flags, Floats, Integers, NearestBy, Rows
from memory_tui.tokens import letters_of
from memory_tui.workspace import transcripts
from memory_tui.workspace.notes import NoteDate, date_of, span

_PAGE = 2048
"""Chunks fetched at a time, so that the thread of the screen gets its turn."""
_MOST_CHUNKS = 100_000_000
"""More than this no index has: a number above is damage."""
_MANY = 1000
"""Rows that are counted, not put in order."""
DAY_SECONDS = 86_400.0
_EPOCH = dt.date(1970, 1, 1).toordinal()
Answer = TypeVar("Answer")
_NOTES = (
    "SELECT id, path, source, mtime, dated, chunks, "
    "CASE workspace WHEN '' THEN path ELSE workspace || ':' || path END, title FROM files"
)


class Files(Struct, frozen=True):
    """The notes of a corpus by file index: stored `paths`, `sources`, modification times in nanoseconds, and dates.

    `shown` are the paths as people see them, with the workspace before those of somebody else. A date is a day, week or
    month as in ISO 8601, empty where a note has none; so is a title.
    """

    paths: tuple[str, ...]
    sources: tuple[str, ...]
    mtimes_ns: Rows
    dates: tuple[str, ...]
    shown: tuple[str, ...]
    titles: tuple[str, ...]

    def written(self, file: int) -> int:
        """Return the first day of a file's date, or when the file was changed, in nanoseconds since 1970."""
        dated = self.dates[file]
        if not dated:
            return int(self.mtimes_ns[file])
        return (span(dated)[0].toordinal() - _EPOCH) * int(DAY_SECONDS) * 10**9


@lru_cache(100_000)
def by_own_rule(path: str, dated: str) -> NoteDate:
    """Return what our own profile ages a note by: the first day of its date, with where that date stands.

    A note without a date has no day: it is evergreen.
    """
    if not dated:
        return NoteDate(None, "evergreen")
    return NoteDate(span(dated)[0], "name" if date_of(path) == dated else "front matter")


class Ages(Struct, frozen=True):
    """How old notes are at `now` (epoch seconds), by the day in a name, else by when the file was changed.

    `rule` tells the day of a note from its path and its date. Days begin in `zone`, in UTC where it is None.
    Transcripts have the basis `of_transcripts`. Times of change are cut to whole units of `unit_ns` nanoseconds.
    """

    files: Files
    now: float
    zone: dt.tzinfo | None
    rule: Callable[[str, str], NoteDate]
    of_transcripts: Basis = "mtime"
    unit_ns: int = 1

    def date(self, file: int) -> NoteDate:
        """Return what a file is aged by, and its day, None where it is aged by its time of change or not at all."""
        if self.files.sources[file] == transcripts.SOURCE:
            return NoteDate(None, self.of_transcripts)
        return self.rule(self.files.paths[file], self.files.dates[file])

    def days(self, files: Integers) -> Floats:
        """Return the age of each of `files` in days, NaN for evergreen ones."""
        # None without a zone: days begin in UTC.
        offset = dt.datetime.fromtimestamp(self.now, self.zone).utcoffset()
        zone_days = offset.total_seconds() / DAY_SECONDS if offset else 0.0
        dates = [self.date(file) for file in files.tolist()]
        # Midnight in UTC; where the zone is ahead of UTC the day began earlier, so the note is older.
        days = np.array([math.nan if date.day is None else date.day.toordinal() - _EPOCH for date in dates])
        by_day = (self.now - days * DAY_SECONDS) / DAY_SECONDS + zone_days
        # Cut to whole units, and those as seconds.
        changed = self.files.mtimes_ns[files] // self.unit_ns / (1e9 / self.unit_ns)
        is_undated = np.array([date.basis == "mtime" for date in dates], np.bool_)
        return np.where(is_undated, (self.now - changed) / DAY_SECONDS, by_day)


class Chunks(Struct, frozen=True):
    """Where chunks stand, in columns by row; `paths` and `sources` are by file, and `file_of` is the file of a row."""

    rowids: npt.NDArray[np.int64]
    file_of: npt.NDArray[np.int32]
    first_lines: npt.NDArray[np.int32]
    last_lines: npt.NDArray[np.int32]
    ids: npt.NDArray[np.object_]
    paths: Sequence[str]
    sources: Sequence[str]

    def __len__(self) -> int:
        return len(self.rowids)

    def __getitem__(self, row: int) -> ChunkRef:
        file = int(self.file_of[row])
        lines = int(self.first_lines[row]), int(self.last_lines[row])
        return ChunkRef(int(self.rowids[row]), self.ids[row], self.paths[file], self.sources[file], *lines)


class Corpus(Struct, frozen=True, eq=False, dict=True):
    """All chunks of an index at one `generation`, in the order of their rowids; a position in it is a row.

    `identity` is the space of the vectors, None without any; `chunking` the release by whose rules notes are cut, empty
    where that is not known. `embedded` tells which rows were embedded, `has_vector` which of them can be compared: a
    text without any token has a vector of zeros. `matrix` is float32 (chunks, dims) of unit rows, zeros where there is
    no vector; of no dimension where the store finds the nearest itself. `passages` has the same number for all rows
    that hold the same words, 0 for a row without any.
    """

    generation: int
    uuid: str
    identity: Identity | None
    chunking: str
    files: Files
    refs: Chunks
    embedded: Flags
    has_vector: Flags
    matrix: Vectors
    passages: Rows
    _once: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.refs)

    @cached_property
    def dims(self) -> int:
        """Return dimensions of the vectors in memory, 0 without any."""
        return int(self.matrix.shape[1])

    @cached_property
    def has_windows(self) -> bool:
        """Return whether a language model made its vectors, and all are in memory: then windows are compared."""
        return self.dims > 0 and self.identity is not None and registry.is_model(self.identity.provider)

    @cached_property
    def is_whole(self) -> bool:
        """Return whether all vectors are in memory."""
        return self.dims > 0 or self.identity is None

    def rows_of(self, rowids: RowIds | Sequence[int]) -> Rows:
        """Return the row of each rowid, -1 for a rowid that is not here (gone, later, or a repeat)."""
        needed = np.asarray(rowids, np.int64)
        if not len(self):
            return np.full(len(needed), -1, np.int64)
        rows = np.minimum(np.searchsorted(self.refs.rowids, needed), len(self) - 1)
        return np.where(self.refs.rowids[rows] == needed, rows, -1)

    def once(self, key: str, make: Callable[[], Answer]) -> Answer:
        """Return what `make` makes: it is called by the first question, and kept under `key` for all others."""
        if key not in self._once:
            self._once[key] = make()
        return cast("Answer", self._once[key])

    @cached_property
    def copied(self) -> Rows:
        """Return the rows whose passage stands in several places, those of one passage side by side."""
        order = np.argsort(self.passages, kind="stable")
        numbers = self.passages[order]
        # A copy has an equal number before or behind it; 0 is of no passage, and stands beyond the two ends too.
        before, after = np.append(0, numbers)[:-1], np.append(numbers, 0)[1:]
        return np.asarray(order[(numbers != 0) & ((numbers == before) | (numbers == after))], np.int64)

    @cached_property
    def by_title(self) -> Mapping[str, Sequence[int]]:
        """Return the first row of each note by its title, file name and path, spelled as `letters_of` does."""
        files, rows = np.unique(self.refs.file_of, return_index=True)
        result: defaultdict[str, list[int]] = defaultdict(list)
        for file, row in zip(files.tolist(), rows.tolist(), strict=True):
            path = self.files.paths[file]
            name = path.rpartition("/")[2]
            titles = {self.files.titles[file], splitext(name)[0], name, path}
            for title in filter(str.strip, set(map(letters_of, titles))):
                result[title].append(row)
        return result

    def windows(self, store: Store) -> tuple[Rows, Vectors]:
        """Read the vectors of the windows of all chunks, and the row of each, rising; none in a large index."""
        if len(self) > MOST_WITH_WINDOWS:
            return np.zeros(0, np.int64), np.zeros((0, self.dims), np.float32)
        rowids, vectors = store.windows()
        rows = self.rows_of(rowids)
        return rows[rows >= 0], vectors[rows >= 0]

    @classmethod
    def opened(cls, store: Store, *, once: bool) -> Corpus:
        """Return the corpus of `store`.

        For a single question (`once`) the vectors stay in a store that finds the nearest itself.
        """
        identity = store.identity()
        # Cosines of a model count by what they are above their median, which needs all vectors.
        all_at_once = identity is not None and registry.is_model(identity.provider)
        return cls.load(store, vectors=all_at_once or not (once and store.finds_nearest()))

    @classmethod
    def load(cls, store: Store, *, vectors: bool = True, last: Corpus | None = None) -> Corpus:
        """Return everything in the store, read in pages; vectors that `last` has are taken from there.

        Without `vectors` only the nearest rows are compared. Raises IndexUnavailable, Cancelled.
        """
        with store.snapshot(), store.making_sense():
            identity, notes = store.identity(), store.query(_NOTES)
            ids, paths, sources, mtimes, dates, counts, shown, titles = zip(*notes, strict=True) if notes else ((),) * 8
            dims = identity.dims if identity and vectors else 0
            if sum(counts) > _MOST_CHUNKS or dims > MOST_DIMS:
                raise ValueError("numbers that cannot be")
            # A store reads a new string for each note; interned, the few different sources exist once.
            files = Files(paths, tuple(map(sys.intern, sources)), np.array(mtimes, np.int64), dates, shown, titles)
            matrix = np.zeros((sum(counts) if last is None else 0, dims), np.float32)
            # The empty page gives an index without chunks columns to join.
            pages = [ChunkPage.of((), 0)]
            last_rowid = filled = 0
            while len(page := store.page(last_rowid, _PAGE, vectors=vectors and last is None)):
                last_rowid = int(page.rowids[-1])
                if last is None:
                    matrix[filled : filled + len(page)] = page.vectors
                    filled += len(page)
                # The matrix holds the vectors: kept in the pages they would take their memory twice.
                pages.append(replace(page, vectors=matrix[:0]))
            # By the last axis, because `lines` has a row of first and one of last lines.
            rowids, note_ids, embedded, has_vector, lines, passages = (
                np.concatenate([getattr(page, name) for page in pages], axis=-1)
                for name in ("rowids", "notes", "embedded", "has_vector", "lines", "passages")
            )
            chunk_ids = np.array([chunk_id for page in pages for chunk_id in page.chunk_ids], object)
            file_by_id = {note_id: file for file, note_id in enumerate(ids)}
            file_of = np.array([file_by_id[note_id] for note_id in note_ids.tolist()], np.int32)
            refs = Chunks(rowids, file_of, lines[0], lines[1], chunk_ids, files.shown, files.sources)
            if last is not None:
                matrix, has_vector = _carried(store, last, rowids, embedded, has_vector)
            state = store.generation(), store.uuid(), identity, store.chunking()
            return cls(*state, files, refs, embedded, has_vector, matrix[: len(refs)], passages)

    def refresh(self, store: Store) -> Corpus:
        """Return the corpus as it is now: this one if nothing changed, else another that reads new vectors alone.

        After a rebuild everything is read anew.
        """
        with store.snapshot():
            is_same_index = store.uuid() == self.uuid
            if is_same_index and store.generation() == self.generation:
                return self
            has_same_space = is_same_index and store.identity() == self.identity
            return Corpus.load(store, vectors=self.is_whole, last=self if has_same_space and self.dims else None)


def _carried(store: Store, last: Corpus, rowids: RowIds, embedded: Flags, has_vector: Flags) -> tuple[Vectors, Flags]:
    """Return the vectors of `rowids` and which of them can be compared: no vector of a rowid ever changes.

    Those that `last` has are taken over, all others of the `embedded` ones are read. A vector of zeros has no direction
    and cannot be compared.
    """
    last_rows = last.rows_of(rowids)
    carried = embedded & (last_rows >= 0)
    # Of the rows that `last` had, only those that had their vector there.
    carried[carried] = last.embedded[last_rows[carried]]
    fresh = embedded & ~carried
    matrix = np.zeros((len(rowids), last.dims), np.float32)
    matrix[carried] = last.matrix[last_rows[carried]]
    has_vector = has_vector.copy()
    has_vector[carried] = last.has_vector[last_rows[carried]]
    if fresh.any():
        matrix[fresh] = store.vectors(rowids[fresh])
        has_vector[fresh] = matrix[fresh].any(axis=1)
    return matrix, has_vector


_one_at_a_time = threading.Lock()
"""Held while the number of threads, which is one of the whole process, is changed."""


@cache
def _openblas() -> ctypes.CDLL | None:
    """Return the OpenBLAS that numpy brings; None where it multiplies by another library."""
    result = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    return result if hasattr(result, "scipy_openblas_set_num_threads64_") else None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy multiply by one thread inside.

    OPENBLAS_NUM_THREADS would do that too, but numpy reads it once, and a program may import numpy before us.
    """
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

    BLAS takes rows by fours, and sums those that are left over in another order: they get empty rows beside them.
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


def distinct(rows: npt.NDArray[np.signedinteger[Any]]) -> Rows:
    """Return each of `rows`, which are 0 or more, once and rising.

    numpy's own `unique` imports masked arrays first, which takes 30 ms.
    """
    # Of many the numbers that occur are faster found by counting.
    if len(rows) > _MANY:
        return np.flatnonzero(np.bincount(rows))
    return np.array(sorted({*rows.tolist()}), np.int64)


def places_in(keys: Rows, values: Rows) -> tuple[Rows, Rows]:
    """Return where in the rising `keys`, and where in `values`, each value stands that is a key: two arrays as long.

    A value that is no key is left out.
    """
    # The last key that is not greater; -1, where all are greater, leads to the last key, which is not equal.
    places = np.searchsorted(keys, values, side="right") - 1
    there = np.flatnonzero(keys[places] == values) if len(keys) else places[:0]
    return places[there], there


def cosines(store: Store, corpus: Corpus, query: Vectors, count: int, also: Sequence[int]) -> tuple[Floats, NearestBy]:
    """Return the cosine of each row with the unit vector `query`, and who told which are the nearest.

    It is 0 for a row without a vector, NaN for one that was not compared. Without vectors in memory those of the
    `count` nearest and of `also` are read, or of all where the store cannot choose; the cosines are the same to 1e-6.
    """
    if corpus.dims:
        return np.where(corpus.has_vector, products(corpus.matrix, query), np.float32(0)).astype(np.float64), "numpy"
    rowids = store.nearest(query, count) if store.finds_nearest() else None
    rows = np.arange(len(corpus))
    if rowids is not None:
        nearest = corpus.rows_of(rowids)
        rows = distinct(np.concatenate([nearest[nearest >= 0], np.asarray(also, np.int64)]))
    scores = np.full(len(corpus), np.nan)
    scores[rows] = vectors_of(store, corpus, rows) @ query
    return scores, "numpy" if rowids is None else "sqlite-vec"


def exact_cosines(vectors: Vectors, query: Vectors) -> Floats:
    """Return 1 - distance as sqlite-vec 0.1 computes it: float64 (n,), 0 for vectors of zeros.

    It sums in single precision and in order: bit for bit the original's, so that a score that lies exactly on a
    threshold falls on the same side of it.
    """
    # numpy adds rows in their order, and the numbers of one row by halves: so each vector is a column, beside that of
    # the query, because a column alone would be a row to it.
    columns = np.concatenate([vectors, query[None]]).T.copy()
    squared = np.add.reduce(columns * columns, axis=0).astype(np.float64)
    dots = np.add.reduce(columns * query[:, None], axis=0).astype(np.float64)[:-1]
    lengths = np.sqrt(squared[:-1]) * np.sqrt(squared[-1])
    distance = (1.0 - np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)).astype(np.float32)
    return np.where(lengths > 0, 1.0 - distance.astype(np.float64), 0.0)


def vectors_of(store: Store, corpus: Corpus, rows: Rows) -> Vectors:
    """Return a float32 array (rows, dims) of unit rows, zeros without a vector: from memory, else from the store."""
    if corpus.dims or corpus.identity is None:
        return corpus.matrix[np.asarray(rows, np.int64)]
    return store.vectors(corpus.refs.rowids[rows])
