"""The store reads the rows of an index.

For a look without news only a few numbers of each row are wanted, and they have to be there at once: a process that
starts would spend as long on making whole rows as on asking the disk for the status of every note.

Every SQL statement is here (reading), in index_write.py (writing) or in schema.py (tables).
"""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
from msgspec import Struct

from memory_tui.durable import unmoved
from memory_tui.index.abilities import Vec0
from memory_tui.index.database import Database, Rows
from memory_tui.index.full_text import FullText
from memory_tui.index.rows import (
    ChunkPage,
    ChunkRow,
    CosineRank,
    Delta,
    IndexedNote,
    NoteColumns,
    Rejected,
    RowIds,
    Withheld,
    unit_rows,
)
from memory_tui.index.schema import RECIPE, Recipe
from memory_tui.jsstring import sha256_hex
from memory_tui.providers.base import Identity, Vectors
from memory_tui.tokens import tokens
from memory_tui.workspace.media import path_in
from memory_tui.workspace.scan import NoteFile, Settled

FILE = "SELECT id, path, source, hash, mtime, size, state, detail, indexed_at, chunks FROM files"
"""Reads what a IndexedNote holds."""
_BRIEF = "SELECT id, path, size, mtime, indexed_at, state = 'ok' AND hash <> '' FROM files"
_FEW = 64
"""So many rows are read one by one; who asks for more gets all of them read at once."""


class Notes(Mapping[str, IndexedNote]):
    """Every file row by path. How many there are and what is `settled` is always there, the rest is read when asked."""

    def __init__(self, database: Database) -> None:
        self.generation = -1
        """Of the index, as it is known here."""
        self.settled: Settled = {}
        """What the disk has to say of a note for its row to hold without another look."""
        self._database = database
        self._notes: dict[str, dict[str, tuple[int, int, int]]] = {}
        self._paths: dict[int, str] = {}
        self._rows: dict[str, IndexedNote] | None = None
        self._lookups = 0

    def load(self, generation: int) -> None:
        """Learn everything anew."""
        self.generation, self._lookups, self._rows = generation, 0, None
        self._paths, self._notes = {}, {}
        self.settled = self._notes
        self._learn(self._database.query(_BRIEF))

    def follow(self, generation: int, ids: Sequence[int]) -> None:
        """Learn what became of the rows with these `ids`, which are all that changed."""
        self.generation, self._lookups = generation, 0
        for number in ids:
            self._forget(self._paths.pop(number, ""))
        which, values = "WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        self._learn(self._database.query(f"{_BRIEF} {which}", values))
        if self._rows is not None:
            self._rows |= {row[1]: IndexedNote._make(row) for row in self._database.query(f"{FILE} {which}", values)}

    def _learn(self, rows: Rows) -> None:
        paths, notes = self._paths, self._notes
        last, names = None, {}
        for number, path, size, mtime, at, whole in rows:
            paths[number] = path
            read = round(at * 1e9)
            if whole and unmoved(mtime, read):
                cut = path.rfind("/") + 1
                folder = path[:cut]
                # Rows of one folder mostly follow each other.
                if folder != last:
                    last, names = folder, notes.setdefault(folder, {})
                names[path[cut:]] = size, mtime, read

    def _forget(self, path: str) -> None:
        folder, slash, name = path.rpartition("/")
        names = self._notes.get(folder + slash, {})
        if names.pop(name, None) and not names:
            del self._notes[folder + slash]
        if self._rows is not None:
            self._rows.pop(path, None)

    def holding(self, notes: Mapping[str, NoteFile]) -> frozenset[str]:
        """Which of the notes `found`, by path, are settled here as they are there."""
        return frozenset(
            path
            for path, note in notes.items()
            if (row := self._note(path)) is not None and row[:2] == (note.size, note.mtime_ns)
        )

    def _note(self, path: str) -> tuple[int, int, int] | None:
        folder, slash, name = path.rpartition("/")
        return self._notes.get(folder + slash, {}).get(name)

    def _all(self) -> dict[str, IndexedNote]:
        if self._rows is None:
            self._rows = {row[1]: IndexedNote._make(row) for row in self._database.query(FILE)} if self._paths else {}
        return self._rows

    def __getitem__(self, path: str) -> IndexedNote:
        if self._rows is None and self._paths and self._lookups < _FEW:
            self._lookups += 1
            rows = self._database.query(f"{FILE} WHERE path = ?", (path,))
            if not rows:
                raise KeyError(path)
            return IndexedNote._make(rows[0])
        return self._all()[path]

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def items(self) -> ItemsView[str, IndexedNote]:
        """Path and row of each note."""
        return self._all().items()

    def values(self) -> ValuesView[IndexedNote]:
        """The row of each note."""
        return self._all().values()


MAX_NEIGHBOURS = 4096
"""vec0 refuses to find more in one query."""
_TIE = 1e-6
"""Cosines that differ by less are equal."""
_PAGE = 2048
"""Vectors compared at a time."""


class Counts(Struct, frozen=True):
    """How much is in an index; `by_source` maps a source to its files and chunks, `bytes` is the size of the file."""

    files: int
    chunks: int
    embedded: int
    cached: int
    cached_bytes: int
    failed: int
    by_source: Mapping[str, tuple[int, int]]
    bytes: int


_LIVE = "SELECT c.id, c.file_id, c.start_line, c.end_line, c.chunk_id, c.embedding_id IS NOT NULL"
_LIVE_ALONE = f"{_LIVE}, NULL FROM chunks c WHERE c.occurrence = 0"
_BY_HASH = "LEFT JOIN embedding_cache e ON e.id = c.embedding_id"
_BY_ROWID = "LEFT JOIN chunks_vec e ON e.rowid = c.id"
_LIVE_IN_VEC0 = f"{_LIVE}, c.id IN (SELECT rowid FROM chunks_vec_rowids) FROM chunks c WHERE c.occurrence = 0"
"""Reads which vectors can be compared in the place of the vectors: vec0 holds none that is all zeros."""
UNCLAIMED = (
    "NOT EXISTS (SELECT 1 FROM batch_texts t JOIN batch_jobs j ON j.id = t.job WHERE t.hash = chunks.hash "
    "AND j.provider = ? AND j.model = ? AND j.provider_key = ?)"
)
"""That a chunk waits for no batch job; takes provider, model and key."""


class Store(Database):
    """An index file through one connection."""

    def __init__(self, connection: apsw.Connection, path: Path, read_only: bool, vec0_state: Vec0) -> None:
        super().__init__(connection, path, read_only, vec0_state)
        self._notes_by_path = Notes(self)
        self.words = FullText(self, self.generation)

    # --- the whole -------------------------------------------------------------------------------------------------

    def uuid(self) -> str:
        """The name of the index: another one is another index, whatever its path."""
        name = self.meta("uuid")
        if not isinstance(name, str) or not name:
            raise self.damaged("it has no uuid")
        return name

    def _number(self, key: str, without: int | None = None) -> int:
        """The number that stands under `key` in `meta`; `without` one where there is none. Raises IndexDamaged."""
        number = self.meta(key)
        if number is None and without is not None:
            return without
        if not isinstance(number, int) or number < 0:
            raise self.damaged(f"{key} is no number")
        return number

    def generation(self) -> int:
        """The number of write transactions so far; grows whenever anything changes."""
        return self._number("generation")

    def recipe(self) -> Recipe | None:
        """What the index was made with; None when nothing was indexed yet."""
        text = self.meta(RECIPE)
        with self.making_sense():
            return msgspec.json.decode(text, type=Recipe) if text else None

    def identity(self) -> Identity | None:
        """The space of the vectors in the index; None when it has none."""
        recipe = self.recipe()
        return recipe.identity if recipe and recipe.identity.dims else None

    def has_jobs(self) -> bool:
        """Whether a batch service was ever asked for vectors of this index, and the job is still known."""
        return bool(self.query("SELECT 1 FROM batch_jobs LIMIT 1"))

    def counts(self) -> Counts:
        """Sizes for status; chunks of the same lines and text count once, as documented."""
        sources = self.query(
            "SELECT source, count(*), sum(chunks), sum(state <> 'ok') FROM files GROUP BY source ORDER BY source"
        )
        lacking = self.value("SELECT count(*) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0")
        chunks = sum(row[2] for row in sources)
        # By the covering index alone: vectors of one model are equally long.
        models = self.query("SELECT provider, model, provider_key, count(*) FROM embedding_cache GROUP BY 1, 2, 3")
        dims = "SELECT dims FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? LIMIT 1"
        cached = [(count, int(self.value(dims, model))) for *model, count in models]
        return Counts(
            files=sum(row[1] for row in sources),
            chunks=chunks,
            embedded=chunks - lacking,
            cached=sum(count for count, _ in cached),
            cached_bytes=sum(4 * count * length for count, length in cached),
            failed=sum(row[3] for row in sources),
            by_source={source: (files, count) for source, files, count, _ in sources},
            bytes=self.value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
        )

    # --- files and chunks ------------------------------------------------------------------------------------------

    def known(self) -> Notes:
        """Every file row by path, kept and brought up to date; the next call changes what this one returned."""
        with self.snapshot():
            generation = self.generation()
            at = self._notes_by_path.generation
            changes = self.changes_since(at) if 0 <= at < generation else None
            with self.making_sense():
                if changes is not None:
                    self._notes_by_path.follow(generation, [number for op, number in changes if op == "file"])
                elif generation != at:
                    self._notes_by_path.load(generation)
            return self._notes_by_path

    def remarked(self) -> list[tuple[str, str]]:
        """The notes that were indexed although something in them cannot be, and what."""
        return self.query("SELECT path, detail FROM files WHERE state = 'ok' AND detail != '' ORDER BY path")

    def notes(self) -> NoteColumns:
        """The notes in columns: a row for each would take four times as long."""
        return NoteColumns.of(self.query("SELECT id, path, source, mtime, chunks FROM files"))

    def file(self, path: str) -> IndexedNote | None:
        """The row of one note."""
        rows = self.query(f"{FILE} WHERE path = ?", (path,))
        return IndexedNote._make(rows[0]) if rows else None

    def paths(self) -> frozenset[str]:
        """The paths of all notes."""
        # One row with everything, because making a row of each takes longer than finding it.
        return frozenset(json.loads(self.value("SELECT json_group_array(path) FROM files")))

    def paths_holding(self, phrases: Sequence[str]) -> frozenset[str] | None:
        """The paths of the notes in which the words of any of `phrases` follow each other; None: it cannot be told.

        Raises QueryError.
        """
        # A phrase without a token finds nothing, although a text may hold it.
        if self.words.cut() != "unicode61" or not all(tokens(phrase, stemmed=False) for phrase in phrases):
            return None
        with self.snapshot():
            matches = [self.words.match([phrase], "plain", "all").rowids.tolist() for phrase in phrases]
            rows = self.query(
                "SELECT path FROM files WHERE id IN "
                "(SELECT file_id FROM chunks WHERE id IN (SELECT value FROM json_each(?)))",
                (json.dumps(sorted({rowid for rowids in matches for rowid in rowids})),),
            )
        return frozenset(path for (path,) in rows)

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
        sql = "SELECT id, text, hash FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        rows = self.query(sql, (_json(rowids),))
        if not all(isinstance(text, str) and _holds(text, digest) for _, text, digest in rows):
            raise self.damaged("a text is not what was indexed")
        return {rowid: text for rowid, text, _ in rows}

    def annotations(self) -> dict[int, tuple[int, str, str]]:
        """Importance, triggers and project of each chunk that has annotations, by rowid."""
        rows = self.query("SELECT chunk, importance, triggers, project FROM annotations")
        return {chunk: (importance, triggers, project) for chunk, importance, triggers, project in rows}

    def chunking(self) -> str:
        """The release of OpenClaw by whose rules notes are cut; empty where nothing was indexed yet."""
        recipe = self.recipe()
        return recipe.chunking if recipe else ""

    # --- vectors ---------------------------------------------------------------------------------------------------

    def vec0_dims(self) -> int:
        """Dimensions of the vec0 table, 0 when there is none that mirrors the chunks."""
        return self._number("vec0_dims", 0)

    def vectors(self, rowids: Sequence[int] | RowIds) -> Vectors:
        """Read the vectors of chunks as float32 (len(rowids), dims), zeros without a vector."""
        numbers = [int(rowid) for rowid in rowids]
        identity = self.identity()
        blobs: dict[int, bytes] = dict(
            self.query(
                f"SELECT c.id, e.embedding FROM chunks c {self._vector_join()} "
                "WHERE c.occurrence = 0 AND c.id IN (SELECT value FROM json_each(?))",
                (json.dumps(numbers),),
            )
        )
        with self.making_sense():
            return unit_rows([blobs.get(rowid) for rowid in numbers], identity.dims if identity else 0)[0]

    def _vector_join(self) -> str:
        """Return what reads the vectors of chunks: from vec0 where it holds them, else from the cache."""
        return _BY_ROWID if self.finds_nearest() else _BY_HASH

    def finds_nearest(self) -> bool:
        """Whether vec0 holds the vectors."""
        return self.vec0.ready and self.vec0_dims() > 0

    def nearest(self, query: Vectors, count: int) -> RowIds | None:
        """Find the `count` nearest chunks by vec0; None for equals at the edge, and for more than it finds at once."""
        rows = self.query(
            "SELECT rowid, distance FROM chunks_vec WHERE embedding MATCH ? AND k = ?",
            (query.astype(np.float32).tobytes(), min(count + 1, MAX_NEIGHBOURS)),
        )
        if count >= MAX_NEIGHBOURS <= len(rows):
            return None
        # Which of equals are the nearest is decided by their order in the index, which vec0 does not keep.
        if len(rows) > count > 0 and rows[count][1] - rows[count - 1][1] < _TIE:
            return None
        return np.array([rowid for rowid, _ in rows[:count]], np.int64)

    def standings(self, query: Vectors, rowids: Sequence[int] | RowIds) -> dict[int, CosineRank]:
        """Compute the exact place of chunks by their cosine, from every vector."""
        with self.snapshot():
            targets = self._page("c.id IN (SELECT value FROM json_each(?))", (_json(rowids),), vectors=True)
            targets = targets.of_those(targets.embedded)
            cosines = targets.vectors.astype(np.float64) @ query
            before, of, after = np.zeros(len(targets), np.int64), 0, 0
            while len(targets) and len(page := self.page(after, _PAGE)):
                after = int(page.rowids[-1])
                others = (page.vectors.astype(np.float64) @ query)[page.embedded]
                numbers = page.rowids[page.embedded]
                of += len(others)
                for at, cosine in enumerate(cosines.tolist()):
                    first = (others > cosine + _TIE) | ((numbers < targets.rowids[at]) & (others >= cosine - _TIE))
                    before[at] += np.count_nonzero(first)
        places = zip(targets.rowids.tolist(), cosines.tolist(), before.tolist(), strict=True)
        return {rowid: CosineRank(cosine, ahead + 1, of) for rowid, cosine, ahead in places}

    def rejected(self) -> list[Rejected]:
        """List the chunks without a vector that were refused in the space of the index, by path and line."""
        identity = self.identity()
        if identity is None or not self.value("SELECT EXISTS (SELECT 1 FROM refused)"):
            return []
        rows = self.query(
            "SELECT c.id, f.path, c.start_line, c.end_line, r.reason, r.at FROM chunks c JOIN refused r ON "
            "r.hash = c.hash JOIN files f ON f.id = c.file_id WHERE c.embedding_id IS NULL AND c.occurrence = 0 "
            "AND r.provider = ? AND r.model = ? AND r.provider_key = ? ORDER BY f.path, c.start_line",
            (identity.provider, identity.model, identity.key),
        )
        return [Rejected(*row) for row in rows]

    def withheld(self) -> list[Withheld]:
        """List the chunks that have no vector because they look like secrets, by path and line."""
        rows = self.query(
            "SELECT c.id, f.path, c.start_line, c.end_line, w.kind FROM chunks c JOIN withheld w ON w.hash = c.hash "
            "JOIN files f ON f.id = c.file_id WHERE c.embedding_id IS NULL AND c.occurrence = 0 "
            "ORDER BY f.path, c.start_line"
        )
        return [Withheld(*row) for row in rows]

    def page(self, after: int, count: int, *, vectors: bool = True) -> ChunkPage:
        """Read the next `count` chunks, repeats left out, with a rowid above `after`."""
        return self._page("c.id > ? ORDER BY c.id LIMIT ?", (after, count), vectors=vectors)

    def _page(self, which: str, values: Sequence[Any], *, vectors: bool) -> ChunkPage:
        identity = self.identity() if vectors else None
        live = _LIVE_IN_VEC0 if self.finds_nearest() else _LIVE_ALONE
        if vectors:
            live = f"{_LIVE}, e.embedding FROM chunks c {self._vector_join()} WHERE c.occurrence = 0"
        rows = self.query(f"{live} AND {which}", values)
        with self.making_sense():
            return ChunkPage.of(rows, identity.dims if identity else 0)

    def delta(self, generation: int, most: int, *, vectors: bool = True) -> Delta | None:
        """Tell what changed since `generation`; None when the change log forgot it, or holds more than `most`."""
        with self.snapshot():
            now = self.generation()
            changes = self.changes_since(generation) if generation <= now else None
            if changes is None or len(changes) > most:
                return None
            rowids = sorted({number for op, number in changes if op != "file"})
            which = "c.id IN (SELECT value FROM json_each(?)) ORDER BY c.id"
            chunks = self._page(which, (json.dumps(rowids),), vectors=vectors)
            there, touched = set(chunks.rowids.tolist()), {number for op, number in changes if op == "file"}
            ids = json.dumps(sorted(touched.union(chunks.notes.tolist())))
            notes = self.query(f"{FILE} WHERE id IN (SELECT value FROM json_each(?))", (ids,))
            dropped = [rowid for rowid in rowids if rowid not in there]
            return Delta(now, [IndexedNote._make(row) for row in notes], chunks, dropped)

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


def _holds(text: str, digest: str) -> bool:
    """Whether a chunk's text is what was hashed; the hash of a media file is of more than its label."""
    return sha256_hex(text) == digest or bool(path_in(text, digest))


def _json(rowids: Sequence[int] | RowIds) -> str:
    """Write rowids as JSON, for json_each."""
    return f"[{','.join(map(str, rowids))}]"
