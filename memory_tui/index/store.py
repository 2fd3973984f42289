"""The store reads the rows of an index.

Every SQL statement is here (reading), in index_write.py (writing) or in database.py (tables).
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import apsw
import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui.durable import unmoved
from memory_tui.errors import IndexDamaged, IndexUnavailable, QueryError
from memory_tui.index.database import NO_FOLDER, RECIPE, TOKENIZERS, Database, Recipe, Rows, Vec0, explained
from memory_tui.jsstring import sha256_hex
from memory_tui.providers import Identity, Vectors
from memory_tui.tokens import and_query, or_query, tokens
from memory_tui.workspace.notes import path_in
from memory_tui.workspace.scan import Settled, settled_of

# --- rows ------------------------------------------------------------------------------------------------------------

RowIds = npt.NDArray[np.int64]
"""Numbers of chunks in one store, from 1; a later chunk has a greater one, and none is used again."""
Bm25 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_UNIT = 0.02
"""How far the square of a vector's length may be from 1."""


class IndexedNote(NamedTuple):
    """A note as it was indexed: `mtime_ns` and `size` of the file that was read, `indexed_at` in seconds.

    `state` is ok, failed or CHANGED; `detail` says why it failed, or what is odd about the text. `hash` is empty when
    the note has to be read again whatever the disk says. `dated` is its date as in ISO 8601: a day, week or month.
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
    title: str
    dated: str
    chunks: int
    workspace: str = ""
    """owner/name of somebody else's workspace that it is copied from; empty for a note of one's own."""
    first_seq: int = 0
    """The place of its first chunk there."""

    @property
    def shown(self) -> str:
        """Return the path as people see it, which is that of one note alone: with the workspace before it."""
        return f"{self.workspace}:{self.path}" if self.workspace else self.path


CHANGED = "changed"
"""State of a note that was being written to each time it was read."""


class ChunkRow(NamedTuple):
    """A chunk of a note; equal chunks on the same lines share `chunk_id` and differ in `occurrence`."""

    rowid: int
    chunk_id: str
    occurrence: int
    start_line: int
    end_line: int
    hash: str
    model: str
    embedded: bool
    source: str


class Passage(NamedTuple):
    """A chunk with all that makes it, for who keeps it elsewhere; the vector as float32 bytes, None without one.

    `above` are the words that stemmed full-text search sees above the text. `windows` are the vectors of its windows,
    one behind the other.
    """

    rowid: int
    chunk_id: str
    occurrence: int
    start_line: int
    end_line: int
    hash: str
    text: str
    above: str
    importance: int
    triggers: str
    project: str
    vector: bytes | None
    windows: bytes


class ChunkPage(Struct, frozen=True):
    """Chunks without their repeats, in the order of their ids, one column a field.

    `notes` are the ids of their notes; `lines` has shape (2, n): first and last, from 1. `passages` are numbers, equal
    for chunks of the same words, 0 without any. `embedded` tells which chunks have a vector, `has_vector` which of
    those can be compared: a text without any token has a vector of zeros. `vectors` is float32 (n, dims), unit rows,
    zeros elsewhere; where vectors were not asked for `dims` is 0, and `has_vector` is what the store tells, or
    `embedded`.
    """

    rowids: RowIds
    notes: RowIds
    lines: npt.NDArray[np.int32]
    passages: RowIds
    chunk_ids: Sequence[str]
    embedded: Flags
    has_vector: Flags
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.rowids)

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]], dims: int) -> ChunkPage:
        """Make a page of rows: rowid, note id, first, last line, passage, chunk id, embedded, vector as float32 bytes.

        A vector may be None; without `dims` it is whether the chunk has one to compare, None for not known.
        Raises ValueError, TypeError, OverflowError for rows that make no sense.
        """
        # Eight empty columns where there is no row.
        rowids, notes, first, last, passages, chunk_ids, embedded, blobs = zip(*rows, strict=True) if rows else [()] * 8
        if not all(1 <= start <= end for start, end in zip(first, last, strict=True)):
            raise ValueError("lines that cannot be")
        has_embedding = np.array(embedded, np.bool_)
        if dims:
            vectors, has_direction = unit_rows(blobs, dims)
        else:
            vectors = np.empty((len(rows), 0), np.float32)
            # Without vectors this column tells whether there is one to compare, and None counts as yes.
            has_direction = np.array([blob is None or bool(blob) for blob in blobs], np.bool_)
        return cls(
            rowids=np.array(rowids, np.int64),
            notes=np.array(notes, np.int64),
            lines=np.array([first, last], np.int32),
            passages=np.array(passages, np.int64),
            chunk_ids=chunk_ids,
            embedded=has_embedding,
            has_vector=has_embedding & has_direction,
            vectors=vectors,
        )


def unit_rows(blobs: Sequence[bytes | None], dims: int) -> tuple[Vectors, Flags]:
    """Return vectors from float32 bytes as an array (n, dims), zeros for None, and which of them are not all zeros.

    Raises ValueError for a vector of another length than `dims`, or that is neither a unit vector nor zeros.
    """
    if not dims or not blobs:
        return np.zeros((len(blobs), dims), np.float32), np.zeros(len(blobs), np.bool_)
    missing = bytes(4 * dims)
    joined = b"".join([missing if blob is None else blob for blob in blobs])
    vectors = np.frombuffer(joined, np.float32).reshape(len(blobs), dims)
    return vectors, check_units(vectors) > 0


def check_units(vectors: Vectors) -> npt.NDArray[np.float32]:
    """Return the squared length of each vector. Raises ValueError for one that is neither a unit vector nor zeros."""
    with np.errstate(all="ignore"):
        square: npt.NDArray[np.float32] = np.einsum("ij,ij->i", vectors, vectors)
    if not np.all((square == 0) | (np.abs(square - 1) < _UNIT)):
        raise ValueError("a vector that is none")
    return square


class Matches(NamedTuple):
    """Chunks that hold words, in the order of their `rowids`, and their `bm25`: negative, the smallest is the best."""

    rowids: RowIds
    bm25: Bm25


class WithoutVector(Struct, frozen=True):
    """A chunk that has no vector, and where it stands; as text it is why."""

    rowid: int
    path: str
    start_line: int
    end_line: int


class Rejected(WithoutVector, frozen=True):
    """A chunk that the provider made no vector of, why in its words, and when (epoch seconds)."""

    reason: str
    at: float

    def __str__(self) -> str:
        return f"refused by the provider: {self.reason}"


class Withheld(WithoutVector, frozen=True):
    """A chunk that is not sent to the provider, because it looks like a secret of that `kind`."""

    kind: str

    def __str__(self) -> str:
        return f"withheld: {'' if self.kind.startswith('commands') else 'looks like a secret '}({self.kind})"


# --- words -----------------------------------------------------------------------------------------------------------

_MOST_TOKENS = 10_000
"""How many words are remembered with their tokens."""
_MOST_LIKE = 12_000
"""Characters of a pattern: SQLite takes 50,000 bytes, and a character takes up to four."""
_MOST_TRIGRAMS = 1_000
"""Trigrams by which a word is found: FTS5 takes 20 KB for each."""
_TOKENS = """
CREATE VIRTUAL TABLE temp.texts USING fts5vocab(main, 'chunks_fts', 'row');
CREATE VIRTUAL TABLE temp.stems USING fts5vocab(main, 'chunks_words', 'row');
CREATE VIRTUAL TABLE temp.stem_places USING fts5vocab(main, 'chunks_words', 'instance');
"""
"""Makes the tables that list the tokens of each form, and each place of a stem, for one connection."""


class FullText:
    """The word index.

    A word is matched by what the analysis of its form makes of it: one token, or several that have to follow each
    other; none never match. The form `plain` is a chunk's text as OpenClaw's full-text table has it, repeats included,
    cut by FTS5's unicode61 or into trigrams. `stemmed` are porter stems of the day in the name of its note in words,
    the headings above it and its text, without repeats; there a lone CJK character is the beginning of a token.
    """

    def __init__(self, index: Database) -> None:
        self._index = index
        self._counted: int | None = None
        """The generation of the index that `_counts` are of."""
        self._counts: dict[str, int] = {}
        index.connection.register_fts5_function("places", _places)
        index.query(_TOKENS)

    def cut(self) -> str:
        """Say how OpenClaw's full-text table cuts words: unicode61 or trigram."""
        cut = self._index.meta("full_text")
        if cut not in TOKENIZERS:
            raise self._index.damaged("the tokenizer of its full-text search makes no sense")
        return str(cut)

    def match(self, words: Sequence[str]) -> Matches:
        """Return the chunks that hold all of `words`, in the form `plain`. Raises QueryError, Cancelled."""
        if self.cut() == "trigram":
            words = [word[:_MOST_TRIGRAMS] for word in words]
        expression = and_query(words)
        if "\0" in expression:
            raise QueryError("A query cannot hold NUL characters.")
        sql = "SELECT rowid, bm25(chunks_fts) FROM chunks_fts WHERE chunks_fts MATCH ?"
        try:
            pairs = self._index.connection.execute(sql, (expression,)).fetchall()
        except apsw.Error as error:
            failure = explained(error, self._index.path)
            if isinstance(error, apsw.SQLError) and not isinstance(failure, IndexDamaged):
                failure = QueryError(f"Full-text search cannot read the query: {error}.", "Ask in fewer words.")
            raise failure from None
        # Pairs of rowid and bm25 as one flat row of floats, and that as two columns.
        rowids, bm25 = np.fromiter(itertools.chain.from_iterable(pairs), np.float64, 2 * len(pairs)).reshape(-1, 2).T
        return Matches(rowids.astype(np.int64), bm25.copy())

    def places(self, word: str) -> RowIds:
        """Return the chunk of each place where `word` stands, in the form `stemmed`; these rise. Raises Cancelled."""
        token = _token(word)
        if token is None:
            sql = "SELECT rowid, places(chunks_words) FROM chunks_words WHERE chunks_words MATCH ?"
            rows = np.array(self._index.query(sql, (or_query([word]),)), np.int64).reshape(-1, 2)
            return np.repeat(rows[:, 0], rows[:, 1])
        # As one text of numbers, because a row for each place takes four times as long.
        sql = "SELECT group_concat(doc) FROM temp.stem_places WHERE term = ?"
        return np.fromstring(self._index.value(sql, (token,)) or "", np.int64, sep=",")

    def lengths(self, rowids: RowIds) -> npt.NDArray[np.float64]:
        """Read how many places each chunk of the form `stemmed` has; `rowids` are all of them. Raises IndexDamaged."""
        rows = self._index.query("SELECT id, sz FROM chunks_words_docsize ORDER BY id")
        with self._index.making_sense():
            if not np.array_equal([rowid for rowid, _ in rows], rowids):
                raise ValueError("words of chunks too many or too few")
            packed = np.array([int.from_bytes(size) for _, size in rows], np.int64)
        # FTS5 stores a number with seven bits in each byte, the highest first; more than three bytes no chunk needs.
        return np.asarray((packed & 127) + (packed >> 8 & 127) * 128.0 + (packed >> 16 & 127) * 16384.0, np.float64)

    def frequency(self, words: Sequence[str]) -> list[int]:
        """Return in how many chunks of the form `stemmed` each word stands."""
        if (generation := self._index.meta("generation")) != self._counted:
            self._counted, self._counts = generation, {}
        counts = self._counts
        for word in words:
            if word not in counts and (token := _token(word)) is not None:
                # FTS5 knows the count of a single token.
                counts[word] = self._index.value("SELECT doc FROM temp.stems WHERE term = ?", (token,)) or 0
            elif word not in counts:
                counts[word] = len({*self.places(word).tolist()})
        return [counts[word] for word in words]

    def vocabulary(self) -> dict[str, int]:
        """Read every token of the form `plain`, and how many chunks hold it; nothing where those are no words."""
        return dict(self._index.query("SELECT term, doc FROM temp.texts")) if self.cut() == "unicode61" else {}

    def containing(self, term: str) -> RowIds:
        """Return the chunks whose text holds `term` anywhere, of a very long one its beginning, which LIKE takes.

        OpenClaw 2026.4.15 looks so for very short terms.
        """
        escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in term[:_MOST_LIKE])
        rows = self._index.query(r"SELECT id FROM chunks WHERE text LIKE ? ESCAPE '\' ORDER BY id", (f"%{escaped}%",))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64, len(rows))

    def originals(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """Return the chunk that each of `rowids` repeats, by rowid; those that repeat none are missing."""
        sql = (
            "SELECT r.id, f.id FROM chunks r CROSS JOIN chunks f ON f.file_id = r.file_id AND f.chunk_id = r.chunk_id "
            "AND f.occurrence = 0 WHERE r.occurrence > 0 AND r.id IN (SELECT value FROM json_each(?))"
        )
        return dict(self._index.query(sql, (json.dumps([int(rowid) for rowid in rowids]),)))


def _places(chunk: apsw.FTS5ExtensionApi, /, *_: apsw.SQLiteValue) -> int:
    """Return in how many places of a chunk a query stands."""
    return chunk.inst_count


@functools.lru_cache(maxsize=_MOST_TOKENS)
def _token(word: str) -> str | None:
    """Return the one stem that `word` is matched by; None where it is several, none, or the beginning of one."""
    if or_query([word]).endswith("*"):
        return None
    pieces = tokens(word, stemmed=True)
    # A NUL would end the text that SQLite compares with a term.
    return pieces[0] if len(pieces) == 1 and "\0" not in word else None


# --- the store -------------------------------------------------------------------------------------------------------

DEVICES = "devices"
"""Key in `meta` of the devices of the roots."""
FILE = (
    "SELECT id, path, source, hash, mtime, size, state, detail, indexed_at, title, dated, chunks, workspace, "
    "first_seq FROM files"
)
"""Reads what a IndexedNote holds."""
MAX_NEIGHBOURS = 4096
"""vec0 refuses to find more in one query."""
_TIE = 1e-6
"""Cosines that differ by less are equal."""


class Counts(Struct, frozen=True):
    """How much is in an index; `by_source` maps a source to its files and chunks."""

    files: int
    chunks: int
    embedded: int
    """Chunks with a vector."""
    cached: int
    """Vectors of any text, also of such as are gone."""
    cached_bytes: int
    by_source: Mapping[str, tuple[int, int]]


_LIVE = "SELECT c.id, c.file_id, c.start_line, c.end_line, c.passage, c.chunk_id, c.embedding_id IS NOT NULL"
_LIVE_ALONE = f"{_LIVE}, NULL FROM chunks c WHERE c.occurrence = 0"
_BY_HASH = "LEFT JOIN embedding_cache e ON e.id = c.embedding_id"
_BY_VEC0 = "LEFT JOIN chunks_vec e ON e.rowid = c.id"
_LIVE_IN_VEC0 = f"{_LIVE}, c.id IN (SELECT rowid FROM chunks_vec_rowids) FROM chunks c WHERE c.occurrence = 0"
"""Reads which vectors can be compared in the place of the vectors: vec0 holds none that is all zeros."""
MOST_WITH_WINDOWS = 10_000
"""Chunks of the largest index whose windows get vectors: about 42,000, which take 65 MB at 384 dimensions."""
_WITHOUT_VECTOR = (
    "SELECT c.id, f.path, c.start_line, c.end_line, {columns} FROM chunks c JOIN {table} r ON r.hash = c.hash "
    "JOIN files f ON f.id = c.file_id WHERE c.embedding_id IS NULL AND c.occurrence = 0 {more} "
    "ORDER BY f.path, c.start_line"
)
_WITHOUT_WINDOWS = (
    "FROM chunks c WHERE c.embedding_id > 0 AND c.occurrence = 0 AND c.id > ? "
    "AND NOT EXISTS (SELECT 1 FROM windows w WHERE w.hash = c.hash)"
)
UNCLAIMED = (
    "NOT EXISTS (SELECT 1 FROM batch_texts t JOIN batch_jobs j ON j.id = t.job WHERE t.hash = chunks.hash "
    "AND j.file_id <> '' AND j.provider = ? AND j.model = ? AND j.provider_key = ?)"
)
"""That a chunk waits for no batch job; takes provider, model and key."""
OPEN_JOB = "FROM batch_jobs WHERE provider = ? AND model = ? AND provider_key = ? AND file_id <> '' ORDER BY id LIMIT 1"
"""The job of a space, the oldest where an earlier version left several; takes provider, model and key."""


_LOST = "embedding_id NOT IN (SELECT id FROM embedding_cache)"
_CHUNKS = "(SELECT count(*) FROM chunks WHERE occurrence = 0)"
_SUM = "(SELECT coalesce(sum(chunks), 0) FROM files)"
_WRONG = (
    ("{} chunks of no file", "SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)"),
    ("{} chunks more or less than its files say", f"SELECT abs({_CHUNKS} - {_SUM})"),
    ("{} chunks whose vector is lost", f"SELECT count(*) FROM chunks WHERE embedding_id > 0 AND {_LOST}"),
    ("{} windows whose vector is lost", f"SELECT count(*) FROM windows WHERE {_LOST}"),
    ("{} chunks whose text is not what was indexed", "SELECT count(*) FROM chunks WHERE NOT holds(text, hash)"),
    ("{} vectors that are none", "SELECT count(*) FROM embedding_cache WHERE NOT is_unit(embedding, dims)"),
    ("words of {} chunks too many or too few", f"SELECT abs({_CHUNKS} - (SELECT count(*) FROM chunks_words_docsize))"),
)
"""What rows that do not fit each other are, and bits that flipped inside sound pages, each with its count."""
_WRONG_VEC0 = (
    "{} vectors are others in the table of sqlite-vec",
    "SELECT count(*) FROM chunks c JOIN embedding_cache e ON e.id = c.embedding_id LEFT JOIN chunks_vec v "
    "ON v.rowid = c.id WHERE c.occurrence = 0 AND coalesce(v.embedding, zeroblob(4 * e.dims)) <> e.embedding",
)


class NoteRows(dict[str, IndexedNote]):
    """The rows of all notes of one generation by path, which every connection that reads it shares."""

    settled: Settled | None = None
    """What `Store.settled` made of them."""


_ROWS: WeakValueDictionary[tuple[str, int, int], NoteRows] = WeakValueDictionary()
"""Those that a connection has, by the index and its generation; what is half written is of its connection alone."""


class Store(Database):
    """An index file through one connection."""

    def __init__(self, connection: apsw.Connection, path: Path, read_only: bool, vec0_state: Vec0) -> None:
        super().__init__(connection, path, read_only, vec0_state)
        self._rows = NoteRows()
        self._sound = set[int]()
        """Chunks whose text was compared with its hash."""
        self.words = FullText(self)

    # --- the whole -------------------------------------------------------------------------------------------------

    def uuid(self) -> str:
        """Return the name of the index: another one is another index, whatever its path."""
        name = self.meta("uuid")
        if not isinstance(name, str) or not name:
            raise self.damaged("it has no uuid")
        return name

    @property
    def has_folder(self) -> bool:
        """Return whether its notes are files on this machine, which it can be compared with."""
        return self.meta(NO_FOLDER) is None

    def devices(self) -> dict[str, int]:
        """Return the device that each root was on, by its stored path; none where what is kept makes no sense."""
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(str(self.meta(DEVICES) or "{}"), type=dict[str, int])
        return {}

    def generation(self) -> int:
        """Return the number of write transactions so far; grows whenever anything changes."""
        number = self.meta("generation")
        if not isinstance(number, int) or number < 0:
            raise self.damaged("generation is no number")
        return number

    def recipe(self) -> Recipe | None:
        """Return what the index was made with; None when nothing was indexed yet."""
        text = self.meta(RECIPE)
        with self.making_sense():
            return msgspec.json.decode(text, type=Recipe) if text else None

    def identity(self) -> Identity | None:
        """Return the space of the vectors in the index; None when it has none."""
        return recipe.identity if (recipe := self.recipe()) and recipe.identity.dims else None

    def counts(self) -> Counts:
        """Return sizes for status; chunks of the same lines and text count once, as documented."""
        rows = self.query("SELECT source, count(*), sum(chunks) FROM files GROUP BY source ORDER BY source")
        by_source = {source: (files, chunks) for source, files, chunks in rows}
        chunks = sum(chunks for _, chunks in by_source.values())
        # By the covering index alone: vectors of one model are equally long.
        models = self.query("SELECT provider, model, provider_key, count(*) FROM embedding_cache GROUP BY 1, 2, 3")
        dims = "SELECT dims FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? LIMIT 1"
        cached = [(count, int(self.value(dims, model))) for *model, count in models]
        return Counts(
            files=sum(files for files, _ in by_source.values()),
            chunks=chunks,
            embedded=chunks - self.lacking(),
            cached=sum(count for count, _ in cached),
            cached_bytes=sum(4 * count * length for count, length in cached),
            by_source=by_source,
        )

    def problems(self) -> list[str]:
        """Return what is wrong with an index, in words; empty when it is whole. Costs a pass over the file."""
        self.connection.create_scalar_function("holds", lambda *row: holds(str(row[0]), str(row[1])), 2)
        self.connection.create_scalar_function("is_unit", lambda *row: is_unit(row[0], row[1]), 2)
        try:
            lines = [str(line) for (line,) in self.query("PRAGMA integrity_check(5)")]
            if lines != ["ok"]:
                return lines
            for sentence, sql in [*_WRONG, _WRONG_VEC0] if self.finds_nearest() else _WRONG:
                if count := self.value(sql):
                    return [sentence.format(count)]
        except IndexUnavailable as error:
            return [error.message]
        return []

    # --- files and chunks ------------------------------------------------------------------------------------------

    def indexed(self) -> NoteRows:
        """Return the row of every note by path; read anew after each change."""
        with self.snapshot(), self.making_sense():
            # Rows of an unfinished write are of this connection alone, so that its id stands in their key.
            key = self.uuid(), self.generation(), id(self) if self._writing else 0
            if (rows := _ROWS.get(key)) is None:
                rows = NoteRows((note.shown, note) for note in map(IndexedNote._make, self.query(FILE)))
            self._rows = _ROWS[key] = rows
            return rows

    def settled(self) -> Settled:
        """Return the size and time by which a note is known to be as indexed without being read, by folder and name."""
        rows = self.indexed()
        with self.making_sense():
            if rows.settled is None:
                # Path, size, time of change, and when it was indexed, both in nanoseconds.
                sound = (row for row in rows.values() if row.state == "ok" and row.hash)
                seen = ((row.shown, row.size, row.mtime_ns, round(row.indexed_at * 1e9)) for row in sound)
                # A file that was changed about when it was indexed may have changed once more since.
                rows.settled = settled_of(note for note in seen if unmoved(*note[2:]))
            return rows.settled

    def remarked(self) -> list[tuple[str, str]]:
        """Return the notes that were indexed although something in them cannot be, and what."""
        return self.query("SELECT path, detail FROM files WHERE state = 'ok' AND detail != '' ORDER BY path")

    def file(self, path: str, workspace: str = "") -> IndexedNote | None:
        """Return the row of one note."""
        rows = self.query(f"{FILE} WHERE path = ? AND workspace = ?", (path, workspace))
        return IndexedNote._make(rows[0]) if rows else None

    def note(self, shown: str) -> IndexedNote | None:
        """Return the row of a note by its path as people see it."""
        return self.file(shown) if self.has_folder else self.indexed().get(shown)

    def copies_of(self, workspace: str) -> dict[str, IndexedNote]:
        """Return the notes that are copied from a workspace, by path."""
        rows = map(IndexedNote._make, self.query(f"{FILE} WHERE workspace = ?", (workspace,)))
        return {row.path: row for row in rows}

    def noted(self, prefix: str) -> list[str]:
        """Return what follows `prefix` in those keys of `meta` that begin with it."""
        rows = self.query("SELECT substr(key, 1 + length(?1)) FROM meta WHERE key GLOB ?1 || '*'", (prefix,))
        return [key for (key,) in rows]

    def paths_holding(self, phrases: Sequence[str]) -> frozenset[str] | None:
        """List the notes in which the words of any of `phrases` follow each other; None where it cannot be told.

        Raises QueryError.
        """
        # A phrase without a token finds nothing, although a text may hold it.
        if self.words.cut() != "unicode61" or not all(tokens(phrase, stemmed=False) for phrase in phrases):
            return None
        with self.snapshot():
            matches = [self.words.match([phrase]).rowids.tolist() for phrase in phrases]
            rows = self.query(
                "SELECT iif(workspace = '', path, workspace || ':' || path) FROM files WHERE id IN "
                "(SELECT file_id FROM chunks WHERE id IN (SELECT value FROM json_each(?)))",
                (json.dumps(sorted({rowid for rowids in matches for rowid in rowids})),),
            )
        return frozenset(path for (path,) in rows)

    def chunks_of(self, path: str, workspace: str = "") -> list[ChunkRow]:
        """Return the chunks of a note in their order, repeats included."""
        rows = self.query(
            "SELECT c.id, c.chunk_id, c.occurrence, c.start_line, c.end_line, c.hash, c.model, "
            "c.embedding_id IS NOT NULL, f.source FROM files f JOIN chunks c ON c.file_id = f.id WHERE f.path = ? "
            "AND f.workspace = ? ORDER BY c.ordinal",
            (path, workspace),
        )
        return [ChunkRow._make((*facts, bool(embedded), source)) for *facts, embedded, source in rows]

    def firsts(self) -> dict[str, tuple[int, int]]:
        """Return by path the rowid of a note's first chunk, 0 without any, and its number of vectors, windows included.

        The notes come in the order of those rowids, which breaks ties.
        """
        rows = self.query(
            "SELECT path, (SELECT coalesce(min(id), 0) FROM chunks WHERE file_id = f.id) AS first, "
            "(SELECT count(embedding_id) FROM chunks WHERE file_id = f.id) + (SELECT count(w.hash) FROM chunks c "
            "CROSS JOIN windows w ON w.hash = c.hash WHERE c.file_id = f.id) FROM files f "
            "WHERE workspace = '' ORDER BY first, path"
        )
        return {path: (first, vectors) for path, first, vectors in rows}

    def passages(self, file: IndexedNote) -> list[Passage]:
        """Return the chunks of a note in the order of their rowids, repeats included. Raises IndexDamaged."""
        windows: dict[str, bytes] = {}
        for digest, vector in self.query(
            "SELECT w.hash, e.embedding FROM windows w JOIN embedding_cache e ON e.id = w.embedding_id "
            "WHERE w.hash IN (SELECT hash FROM chunks WHERE file_id = ?) ORDER BY w.hash, w.place",
            (file.id,),
        ):
            windows[digest] = windows.get(digest, b"") + vector
        rows = self.query(
            "SELECT c.id, c.chunk_id, c.occurrence, c.start_line, c.end_line, c.hash, c.text, c.above, "
            "coalesce(a.importance, 0), coalesce(a.triggers, ''), coalesce(a.project, ''), e.embedding "
            f"FROM chunks c {_BY_HASH} LEFT JOIN annotations a ON a.chunk = c.id WHERE c.file_id = ? ORDER BY c.id",
            (file.id,),
        )
        with self.making_sense():
            # Number 5 of a row is the hash of the text.
            passages = [Passage._make((*row, windows.get(row[5], b""))) for row in rows]
            if not all(holds(passage.text, passage.hash) for passage in passages):
                raise ValueError("a text is not what was indexed")
        return passages

    def last_text(self, note: IndexedNote) -> str:
        """Return a note as its chunks have it, the lines that are in none of them empty. Raises IndexDamaged."""
        lines: dict[int, str] = {}
        for passage in self.passages(note):
            for number, line in enumerate(passage.text.split("\n"), passage.start_line):
                # A line that is longer than a chunk stands in several, piece by piece; other chunks may repeat a line.
                lines[number] = before if line in (before := lines.get(number, "")) else before + line
        return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))

    def texts(self, rowids: Sequence[int] | RowIds) -> dict[int, str]:
        """Return texts of chunks by rowid; those that are gone are missing. Raises IndexDamaged where one changed."""
        sql = "SELECT id, text, hash FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        rows = self.query(sql, (f"[{','.join(map(str, rowids))}]",))
        # A question reads a hundred texts, and that of a chunk never changes: so a connection compares each once.
        fresh = [row for row in rows if row[0] not in self._sound]
        with self.making_sense():
            if not all(holds(text, digest) for _, text, digest in fresh):
                raise ValueError("a text is not what was indexed")
        self._sound.update(rowid for rowid, *_ in fresh)
        return {rowid: text for rowid, text, _ in rows}

    def annotations(self) -> dict[int, tuple[int, str, str]]:
        """Return importance, triggers and project of each chunk that has annotations, by rowid."""
        rows = self.query("SELECT chunk, importance, triggers, project FROM annotations")
        return {chunk: (importance, triggers, project) for chunk, importance, triggers, project in rows}

    def chunking(self) -> str:
        """Return the release of OpenClaw by whose rules notes are cut; empty where nothing was indexed yet."""
        return recipe.chunking if (recipe := self.recipe()) else ""

    # --- vectors ---------------------------------------------------------------------------------------------------

    def vec0_dims(self) -> int:
        """Return dimensions of the vec0 table, 0 when there is none that mirrors the chunks."""
        dims = self.meta("vec0_dims") or 0
        if not isinstance(dims, int) or dims < 0:
            raise self.damaged("vec0_dims is no number")
        return dims

    def vectors(self, rowids: Sequence[int] | RowIds) -> Vectors:
        """Read the vectors of chunks as float32 (len(rowids), dims), zeros without a vector."""
        numbers = [int(rowid) for rowid in rowids]
        identity = self.identity()
        some = "c.occurrence = 0 AND c.id IN (SELECT value FROM json_each(?))"
        sql = f"SELECT c.id, e.embedding FROM chunks c {self._vector_join()} WHERE {some}"
        blobs: dict[int, bytes] = dict(self.query(sql, (json.dumps(numbers),)))
        with self.making_sense():
            return unit_rows([blobs.get(rowid) for rowid in numbers], identity.dims if identity else 0)[0]

    def finds_nearest(self) -> bool:
        """Return whether vec0 holds the vectors."""
        return self.vec0.ready and self.vec0_dims() > 0

    def _vector_join(self) -> str:
        """Return what joins a chunk with its vector: vec0's table, which holds none of zeros, or else the cache."""
        return _BY_VEC0 if self.finds_nearest() else _BY_HASH

    def nearest(self, query: Vectors, count: int) -> RowIds | None:
        """Return the `count` nearest chunks by vec0, or None where it cannot tell them.

        That is where the next one is as near as the last of them, and where there are more than it finds at once.
        """
        rows = self.query(
            "SELECT rowid, distance FROM chunks_vec WHERE embedding MATCH ? AND k = ?",
            (query.astype(np.float32).tobytes(), min(count + 1, MAX_NEIGHBOURS)),
        )
        if count >= MAX_NEIGHBOURS and len(rows) >= MAX_NEIGHBOURS:
            return None
        distances = [distance for _, distance in rows]
        # Which of equals are the nearest is decided by their order in the index, which vec0 does not keep.
        if len(rows) > count > 0 and distances[count] - distances[count - 1] < _TIE:
            return None
        return np.array([rowid for rowid, _ in rows[:count]], np.int64)

    def rejected(self) -> list[Rejected]:
        """List the chunks without a vector that were refused in the space of the index, by path and line."""
        identity = self.identity()
        if identity is None or not self.value("SELECT EXISTS (SELECT 1 FROM refused)"):
            return []
        space = "AND r.provider = ? AND r.model = ? AND r.provider_key = ?"
        sql = _WITHOUT_VECTOR.format(columns="r.reason, r.at", table="refused", more=space)
        return [Rejected(*row) for row in self.query(sql, identity.space)]

    def withheld(self) -> list[Withheld]:
        """List the chunks that have no vector because they look like secrets, by path and line."""
        rows = self.query(_WITHOUT_VECTOR.format(columns="r.kind", table="withheld", more=""))
        return [Withheld(*row) for row in rows]

    def page(self, after: int, count: int, *, vectors: bool = True) -> ChunkPage:
        """Read the next `count` chunks, repeats left out, with a rowid above `after`."""
        identity = self.identity() if vectors else None
        live = _LIVE_IN_VEC0 if self.finds_nearest() else _LIVE_ALONE
        if vectors:
            live = f"{_LIVE}, e.embedding FROM chunks c {self._vector_join()} WHERE c.occurrence = 0"
        rows = self.query(f"{live} AND c.id > ? ORDER BY c.id LIMIT ?", (after, count))
        with self.making_sense():
            return ChunkPage.of(rows, identity.dims if identity else 0)

    def without_vector(self, after: int, count: int, unclaimed: Identity | None = None) -> Rows:
        """Return the next `count` chunks that lack a vector, with a rowid above `after`: rowid, hash, text.

        `unclaimed` is a space of vectors: chunks that wait for a batch job of that space are left out. With None those
        are returned too.
        """
        condition = f"AND {UNCLAIMED}" if unclaimed else ""
        space = unclaimed.space if unclaimed else ()
        return self.query(
            "SELECT id, hash, text FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 AND id > ? "
            f"{condition} ORDER BY id LIMIT ?",
            (after, *space, count),
        )

    def lacking(self, after: int = 0) -> int:
        """Return how many chunks with a rowid above `after` have no vector."""
        rows = "FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 AND id > ?"
        return int(self.value(f"SELECT count(*) {rows}", (after,)))

    def waiting(self, space: Identity) -> set[str]:
        """Return the hashes of texts that wait for a batch job for vectors of that space."""
        rows = self.query(f"SELECT hash FROM batch_texts WHERE job = (SELECT id {OPEN_JOB})", space.space)
        return {digest for (digest,) in rows}

    def without_windows(self, after: int, count: int) -> Rows:
        """Return the next `count` chunks with a vector whose windows have none, with a rowid above `after`."""
        return self.query(f"SELECT c.id, c.hash, c.text {_WITHOUT_WINDOWS} ORDER BY c.id LIMIT ?", (after, count))

    def lacking_windows(self, after: int = 0) -> int:
        """Return how many chunks with a rowid above `after` have a vector, and windows without; 0 in a large index."""
        if self.value("SELECT count(*) FROM chunks") > MOST_WITH_WINDOWS:
            return 0
        return int(self.value(f"SELECT count(*) {_WITHOUT_WINDOWS}", (after,)))

    def windows(self) -> tuple[RowIds, Vectors]:
        """Read the vectors of all windows, float32 (windows, dims), and the rowid of the chunk of each; these rise."""
        identity = self.identity()
        rows = self.query(
            "SELECT c.id, e.embedding FROM chunks c CROSS JOIN windows w ON w.hash = c.hash "
            "JOIN embedding_cache e ON e.id = w.embedding_id WHERE c.embedding_id > 0 AND c.occurrence = 0 "
            "ORDER BY c.id"
        )
        with self.making_sense():
            vectors, _ = unit_rows([blob for _, blob in rows], identity.dims if identity else 0)
        return np.array([rowid for rowid, _ in rows], np.int64), vectors

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, int]:
        """Return the embedding ids of those `hashes` that have a vector in the space of `identity`.

        Where that has no dimensions yet, vectors of any length count.
        """
        sql = (
            "SELECT hash, id FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? "
            "AND hash IN (SELECT value FROM json_each(?)) AND ? IN (dims, 0)"
        )
        return dict(self.query(sql, (*identity.space, json.dumps(list(hashes)), identity.dims)))


StoreReader = Callable[[], AbstractContextManager[Store]]
"""Opens an index to read it, or an empty one while there is none."""


def holds(text: str, digest: str) -> bool:
    """Return whether a chunk's text is what was hashed; the hash of a media file is of more than its label."""
    return sha256_hex(text) == digest or bool(path_in(text, digest))


def is_unit(vector: object, dims: object) -> bool:
    """Return whether float32 bytes are a vector of `dims` numbers that is 1 long, or all zeros.

    A text without any token has one of zeros.
    """
    if not isinstance(vector, bytes) or not isinstance(dims, int) or len(vector) != 4 * dims:
        return False
    # It raises for any other vector; the length of the one that was given comes back else.
    with suppress(ValueError):
        return len(check_units(np.frombuffer(vector, np.float32).reshape(1, -1))) == 1
    return False
