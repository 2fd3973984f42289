"""The store reads the rows of an index.

For a look without news only a few numbers of each row are wanted, and they have to be there at once: a process that
starts would spend as long on making whole rows as on asking the disk for the status of every note.

Every SQL statement is here (reading), in index_write.py (writing) or in schema.py (tables).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from memory_tui.core.errors import IndexDamaged, QueryError
from memory_tui.core.files import unmoved
from memory_tui.core.jsstring import sha256_hex
from memory_tui.core.tokens import or_query
from memory_tui.index import database
from memory_tui.index.database import Database, Rows, Vec0, damaged, explained, making_sense
from memory_tui.index.schema import RECIPE, TOKENIZERS, Recipe
from memory_tui.providers.protocol import Identity, Vectors
from memory_tui.workspace.scan import Settled

CHANGED = "changed"
"""State of a note that was being written to each time it was read."""
FILE = "SELECT id, path, source, hash, mtime, size, state, detail, indexed_at, chunks FROM files"
"""Reads what a FileRow holds."""
_BRIEF = "SELECT id, path, size, mtime, indexed_at, state = 'ok' AND hash <> '' FROM files"
_FEW = 64
"""So many rows are read one by one; who asks for more gets all of them read at once."""


class FileRow(NamedTuple):
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


class Known(Mapping[str, FileRow]):
    """Every file row by path. How many there are and what is `settled` is always there, the rest is read when asked."""

    def __init__(self, database: Database) -> None:
        self.generation = -1
        """Of the index, as it is known here."""
        self.settled: Settled = {}
        """What the disk has to say of a note for its row to hold without another look."""
        self.unsettled: set[str] = set()
        """The paths of all other rows."""
        self._database = database
        self._notes: dict[str, dict[str, tuple[int, int, int]]] = {}
        self._paths: dict[int, str] = {}
        self._rows: dict[str, FileRow] | None = None
        self._asked = 0

    def load(self, generation: int) -> None:
        """Learn everything anew."""
        self.generation, self._asked, self._rows = generation, 0, None
        self._paths, self._notes = {}, {}
        self.settled, self.unsettled = self._notes, set()
        self._learn(self._database.query(_BRIEF))

    def follow(self, generation: int, ids: Sequence[int]) -> None:
        """Learn what became of the rows with these `ids`, which are all that changed."""
        self.generation, self._asked = generation, 0
        for number in ids:
            self._forget(self._paths.pop(number, ""))
        which, wanted = "WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        self._learn(self._database.query(f"{_BRIEF} {which}", wanted))
        if self._rows is not None:
            self._rows |= {row[1]: FileRow._make(row) for row in self._database.query(f"{FILE} {which}", wanted)}

    def _learn(self, rows: Rows) -> None:
        paths, notes = self._paths, self._notes
        last, names = None, {}
        for number, path, size, mtime, at, whole in rows:
            paths[number] = path
            read = round(at * 1e9)
            if whole and unmoved(mtime, read):
                folder, slash, name = path.rpartition("/")
                # Rows of one folder mostly follow each other.
                if folder != last:
                    last, names = folder, notes.setdefault(folder + slash, {})
                names[name] = size, mtime, read
            else:
                self.unsettled.add(path)

    def _forget(self, path: str) -> None:
        folder, slash, name = path.rpartition("/")
        names = self._notes.get(folder + slash, {})
        if names.pop(name, None) and not names:
            del self._notes[folder + slash]
        self.unsettled.discard(path)
        if self._rows is not None:
            self._rows.pop(path, None)

    def _all(self) -> dict[str, FileRow]:
        if self._rows is None:
            self._rows = {row[1]: FileRow._make(row) for row in self._database.query(FILE)} if self._paths else {}
        return self._rows

    def __getitem__(self, path: str) -> FileRow:
        if self._rows is None and self._paths and self._asked < _FEW:
            self._asked += 1
            rows = self._database.query(f"{FILE} WHERE path = ?", (path,))
            if not rows:
                raise KeyError(path)
            return FileRow._make(rows[0])
        return self._all()[path]

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def items(self) -> ItemsView[str, FileRow]:
        """Path and row of each note."""
        return self._all().items()

    def values(self) -> ValuesView[FileRow]:
        """The row of each note."""
        return self._all().values()


RowIds = npt.NDArray[np.int64]
Bm25 = npt.NDArray[np.float64]
Table = Literal["chunks_fts", "chunks_words"]

MAX_NEIGHBOURS = 4096
"""vec0 refuses to find more in one query."""


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


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is in an index; `by_source` maps a source to its files and chunks, `bytes` is the size of the file."""

    files: int
    chunks: int
    embedded: int
    cached: int
    failed: int
    by_source: Mapping[str, tuple[int, int]]
    bytes: int


_LIVE = "SELECT c.id, c.file_id, c.start_line, c.end_line, c.chunk_id, c.embedding_id IS NOT NULL"
_LIVE_ALONE = f"{_LIVE}, NULL FROM chunks c WHERE c.occurrence = 0"
_LIVE_WITH_VECTOR = (
    f"{_LIVE}, e.embedding FROM chunks c LEFT JOIN embedding_cache e ON e.id = c.embedding_id WHERE c.occurrence = 0"
)
UNCLAIMED = (
    "NOT EXISTS (SELECT 1 FROM batch_texts t JOIN batch_jobs j ON j.id = t.job WHERE t.hash = chunks.hash "
    "AND j.provider = ? AND j.model = ? AND j.provider_key = ?)"
)
"""That a chunk waits for no batch job; takes provider, model and key."""


class Store(Database):
    """An index file through one connection."""

    def __init__(self, connection: apsw.Connection, path: Path, read_only: bool, vec0_state: Vec0) -> None:
        super().__init__(connection, path, read_only, vec0_state)
        self._known = Known(self)
        self._frequencies: tuple[int, dict[tuple[str, str], int]] = (-1, {})

    # --- the whole -------------------------------------------------------------------------------------------------

    def meta(self, key: str) -> Any:  # noqa: ANN401 - text or a number
        """The value of `key` in `meta`, None without one."""
        return self.value("SELECT value FROM meta WHERE key = ?", (key,))

    def uuid(self) -> str:
        """The name of the index: another one is another index, whatever its path."""
        found = self.meta("uuid")
        if not isinstance(found, str) or not found:
            raise damaged(self.path, "it has no uuid")
        return found

    def _number(self, key: str, without: int | None = None) -> int:
        """The number that stands under `key` in `meta`; `without` one where there is none. Raises IndexDamaged."""
        found = self.meta(key)
        if found is None and without is not None:
            return without
        if not isinstance(found, int) or found < 0:
            raise damaged(self.path, f"{key} is no number")
        return found

    def generation(self) -> int:
        """The number of write transactions so far; grows whenever anything changes."""
        return self._number("generation")

    def recipe(self) -> Recipe | None:
        """What the index was made with; None when nothing was indexed yet."""
        text = self.meta(RECIPE)
        with making_sense(self.path):
            return Recipe.from_json(text) if text else None

    def identity(self) -> Identity | None:
        """The space of the vectors in the index; None when it has none."""
        recipe = self.recipe()
        return recipe.identity if recipe and recipe.identity.dims else None

    def counts(self) -> Counts:
        """Sizes for status; chunks of the same lines and text count once, as documented."""
        sources = self.query(
            "SELECT source, count(*), sum(chunks), sum(state <> 'ok') FROM files GROUP BY source ORDER BY source"
        )
        lacking = self.value("SELECT count(*) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0")
        chunks = sum(row[2] for row in sources)
        return Counts(
            files=sum(row[1] for row in sources),
            chunks=chunks,
            embedded=chunks - lacking,
            cached=self.value("SELECT count(*) FROM embedding_cache"),
            failed=sum(row[3] for row in sources),
            by_source={source: (files, count) for source, files, count, _ in sources},
            bytes=self.value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
        )

    # --- files and chunks ------------------------------------------------------------------------------------------

    def known(self) -> Known:
        """Every file row by path, kept and brought up to date; the next call changes what this one returned."""
        with self.snapshot():
            generation = self.generation()
            at = self._known.generation
            changes = self.changes_since(at) if 0 <= at < generation else None
            with making_sense(self.path):
                if changes is not None:
                    self._known.follow(generation, [number for op, number in changes if op == "file"])
                elif generation != at:
                    self._known.load(generation)
            return self._known

    def settled(self) -> Settled:
        """What the disk has to say of a note for its row to hold without another look; the next call changes it."""
        return self.known().settled

    def file(self, path: str) -> FileRow | None:
        """The row of one note."""
        rows = self.query(f"{FILE} WHERE path = ?", (path,))
        return FileRow._make(rows[0]) if rows else None

    def files_by_id(self, ids: Sequence[int]) -> list[FileRow]:
        """The rows of `ids` that exist."""
        rows = self.query(f"{FILE} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        return [FileRow._make(row) for row in rows]

    def chunks_of(self, path: str) -> list[ChunkRow]:
        """The chunks of a note in their order, repeats included."""
        rows = self.query(
            "SELECT c.id, c.chunk_id, c.ordinal, c.occurrence, c.start_line, c.end_line, c.hash, c.model, "
            "c.embedding_id IS NOT NULL, f.source FROM files f JOIN chunks c ON c.file_id = f.id WHERE f.path = ? "
            "ORDER BY c.ordinal",
            (path,),
        )
        return [ChunkRow._make((*row[:-2], bool(row[-2]), row[-1])) for row in rows]

    def texts(self, rowids: Sequence[int] | RowIds) -> dict[int, str]:
        """The texts of chunks by rowid; those that are gone are missing. Raises IndexDamaged for one that changed."""
        wanted = json.dumps([int(rowid) for rowid in rowids])
        rows = self.query("SELECT id, text, hash FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
        if any(not isinstance(text, str) or sha256_hex(text) != digest for _, text, digest in rows):
            raise damaged(self.path, "a text is not what was indexed")
        return {rowid: text for rowid, text, _ in rows}

    def annotations(self) -> dict[int, tuple[int, str, str]]:
        """Importance, triggers and project of each chunk that has annotations, by rowid."""
        rows = self.query("SELECT chunk, importance, triggers, project FROM annotations")
        return {chunk: (importance, triggers, project) for chunk, importance, triggers, project in rows}

    def first_occurrences(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """For rowids of repeats: the rowid of the chunk that they repeat."""
        wanted = json.dumps([int(rowid) for rowid in rowids])
        repeats = self.query(
            "SELECT id, file_id, chunk_id FROM chunks WHERE occurrence > 0 AND id IN (SELECT value FROM json_each(?))",
            (wanted,),
        )
        # Joined here: SQL would go through all chunks of a note for each repeat in it.
        files = json.dumps(sorted({file for _, file, _ in repeats}))
        firsts = {
            (file, chunk): rowid
            for rowid, file, chunk in self.query(
                "SELECT id, file_id, chunk_id FROM chunks "
                "WHERE occurrence = 0 AND file_id IN (SELECT value FROM json_each(?))",
                (files,),
            )
        }
        return {rowid: firsts[file, chunk] for rowid, file, chunk in repeats if (file, chunk) in firsts}

    # --- full-text search ------------------------------------------------------------------------------------------

    def full_text(self) -> str:
        """How OpenClaw's full-text table cuts words: unicode61 or trigram; empty where there is no full-text search."""
        if database.fts5():
            return ""
        cut = self.meta("full_text") or ""
        if cut and cut not in TOKENIZERS:
            raise damaged(self.path, "the tokenizer of its full-text search makes no sense")
        return str(cut)

    def containing(self, term: str) -> RowIds:
        """The chunks, repeats included, whose text holds `term` anywhere, in the order of their rowids.

        ASCII letters match in either case (LIKE, as OpenClaw 2026.4.15 looks for terms too short for trigrams).
        """
        pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in term) + "%"
        rows = self.query(r"SELECT id FROM chunks WHERE text LIKE ? ESCAPE '\' ORDER BY id", (pattern,))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64, len(rows))

    def match_raw(self, fts_query: str, limit: int | None = None) -> tuple[RowIds, Bm25]:
        """Chunks that match in OpenClaw's table: rowids and bm25, best (smallest) first, then by rowid.

        A chunk that stands twice in a note is there twice, with a rowid for each. Raises QueryError, Cancelled.
        """
        return self._match("chunks_fts", fts_query, limit)

    def match_words(self, fts_query: str, limit: int | None = None) -> tuple[RowIds, Bm25]:
        """Chunks that match in the table of stemmed words, days and headings; like `match_raw`, without repeats."""
        return self._match("chunks_words", fts_query, limit)

    def document_frequency(self, words: Sequence[str], table: Table) -> list[int]:
        """In how many rows of `table` each word stands, a lone CJK character as part of any bigram."""
        generation = self.generation()
        if self._frequencies[0] != generation:
            self._frequencies = generation, {}
        known = self._frequencies[1]
        for word in words:
            if (table, word) not in known:
                sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
                known[table, word] = self.value(sql, (or_query([word.replace("\0", " ")]),))
        return [known[table, word] for word in words]

    def _match(self, table: Table, fts_query: str, limit: int | None) -> tuple[RowIds, Bm25]:
        if "\0" in fts_query:
            raise QueryError("A query cannot hold NUL characters.")
        try:
            pairs = self.connection.execute(
                f"SELECT rowid, bm25({table}) FROM {table} WHERE {table} MATCH ?", (fts_query,)
            ).fetchall()
        except apsw.SQLError as error:
            # "No such column" is about a word with a colon in the query.
            if isinstance(found := explained(error, self.path), IndexDamaged) and "column" not in str(error):
                raise found from None
            raise QueryError(f"Full-text search cannot read the query: {error}.", "Ask in fewer words.") from None
        except apsw.Error as error:
            raise explained(error, self.path) from None
        # Sorting here is cheaper than SQLite's sorter, which cannot stop early either.
        both = np.fromiter(itertools.chain.from_iterable(pairs), np.float64, 2 * len(pairs)).reshape(-1, 2)
        rowids, bm25 = both[:, 0].astype(np.int64), both[:, 1]
        order = np.lexsort((rowids, bm25))[:limit]
        return rowids[order], bm25[order]

    # --- vectors ---------------------------------------------------------------------------------------------------

    def at_least(self, count: int) -> bool:
        """Whether there are so many chunks; mostly told by their numbers alone."""
        if count <= 0:
            return True
        most = self.value("SELECT (SELECT max(id) FROM chunks) - (SELECT min(id) FROM chunks) + 1") or 0
        return bool(most >= count and self.value("SELECT count(*) FROM chunks") >= count)

    def vec0_dims(self) -> int:
        """Dimensions of the vec0 table, 0 when there is none that mirrors the chunks."""
        return self._number("vec0_dims", 0)

    def nearest(self, query: Vectors, count: int) -> Rows:
        """(rowid, cosine distance) of the `count` nearest chunks by vec0, nearest first; at most MAX_NEIGHBOURS."""
        return self.query(
            "SELECT rowid, distance FROM chunks_vec WHERE embedding MATCH ? AND k = ?",
            (query.astype(np.float32).tobytes(), min(count, MAX_NEIGHBOURS)),
        )

    def chunk_page(self, after: int, count: int, *, vectors: bool = True) -> Rows:
        """The next `count` live chunks with a rowid above `after`.

        Each is rowid, file id, first line, last line, chunk id, whether it was embedded, and the vector as float32
        bytes or None.
        """
        live = _LIVE_WITH_VECTOR if vectors else _LIVE_ALONE
        return self.query(f"{live} AND c.id > ? ORDER BY c.id LIMIT ?", (after, count))

    def chunks_by_id(self, rowids: Sequence[int] | RowIds, *, vectors: bool = True) -> Rows:
        """Like `chunk_page`, of the given rowids that exist, by rowid."""
        live = _LIVE_WITH_VECTOR if vectors else _LIVE_ALONE
        wanted = json.dumps([int(rowid) for rowid in rowids])
        return self.query(f"{live} AND c.id IN (SELECT value FROM json_each(?)) ORDER BY c.id", (wanted,))

    def changes_since(self, generation: int) -> Rows | None:
        """(op, id) of everything after `generation`, oldest first; None when that is no longer known."""
        if generation < self._number("changes_from"):
            return None
        return self.query("SELECT op, id FROM changes WHERE generation > ? ORDER BY generation", (generation,))

    def without_vector(self, after: int, count: int, unclaimed: Identity | None = None) -> Rows:
        """The next `count` chunks that lack a vector, with a rowid above `after`: rowid, hash, text.

        With `unclaimed` only those that wait for no batch job for vectors of that space.
        """
        free, space = (
            ("true", ()) if unclaimed is None else (UNCLAIMED, (unclaimed.provider, unclaimed.model, unclaimed.key))
        )
        return self.query(
            "SELECT id, hash, text FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 AND id > ? "
            f"AND {free} ORDER BY id LIMIT ?",
            (after, *space, count),
        )

    def lacking(self, after: int = 0) -> int:
        """How many chunks with a rowid above `after` have no vector."""
        return int(
            self.value("SELECT count(*) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 AND id > ?", (after,))
        )

    def reusable(self, identity: Identity) -> int:
        """How many chunks hold a text that has a vector in the space of `identity`, whatever its length."""
        space = (identity.provider, identity.model, identity.key)
        return int(
            self.value(
                "SELECT count(*) FROM chunks WHERE occurrence = 0 AND hash IN (SELECT hash FROM embedding_cache "
                "WHERE provider = ? AND model = ? AND provider_key = ?)",
                space,
            )
        )

    def known_hashes(self, provider: str, model: str, key: str, hashes: Sequence[str]) -> set[str]:
        """Which of `hashes` have a vector in that space, whatever its length."""
        return {
            row[0]
            for row in self.query(
                "SELECT hash FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? "
                "AND hash IN (SELECT value FROM json_each(?))",
                (provider, model, key, json.dumps(list(hashes))),
            )
        }

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, int]:
        """The embedding ids of those `hashes` whose text was embedded before, in the space of `identity`."""
        return dict(
            self.query(
                "SELECT hash, id FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? "
                "AND hash IN (SELECT value FROM json_each(?)) AND dims = ?",
                (identity.provider, identity.model, identity.key, json.dumps(list(hashes)), identity.dims),
            )
        )
