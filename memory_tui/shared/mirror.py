"""A mirror keeps the notes of a scope of a shared index in an ordinary index on this machine.

Every note comes with the generation that wrote it, so what is new is all that is fetched. A workspace is brought up to
date in one transaction, which ends with its position: the incarnation and the generation that the mirror has of it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import platformdirs
from msgspec.structs import replace
from psycopg.rows import class_row

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import IndexUnavailable, MemoryTuiError, SettingError
from memory_tui.index import database, index_write
from memory_tui.index.database import Recipe
from memory_tui.index.index_write import NewChunk, NewFile
from memory_tui.index.store import IndexedNote, Store, holds, unit_rows
from memory_tui.shared import MirrorFilling, Record, Scope, Standing, standing
from memory_tui.shared.connection import Access, Connection, SharedUnavailable, explaining, joined
from memory_tui.shared.connection import failure as failed
from memory_tui.workspace.chunking import Chunk
from memory_tui.workspace.notes import NOTHING_SAID, Annotations

_NOTES = 400
"""Notes that are fetched and written together."""
_SPARE = 10_000
"""Vectors of texts that are gone which a mirror keeps."""
_LOOK_SECONDS = 0.05
"""How often who waits for a mirror looks whether it need not wait any more."""
_YOUNG_SECONDS = 1.0
"""What was fetched so lately is not asked for again."""
_FORGOTTEN_SECONDS = 30 * 86_400.0
"""A mirror that nobody asked for so long is deleted: a right to read that was lost since is not known of it."""
_POSITION = "position of "
"""With the name of a workspace the key in `meta` of what the mirror has of it."""


# --- what the shared index holds -------------------------------------------------------------------------------------


class _Workspace(NamedTuple):
    """A workspace that may be read, as the shared index has it; `silence` are seconds since its publisher was heard."""

    name: str
    ws: int
    recipe: str
    incarnation: str
    generation: int
    changes_from: int
    """The oldest generation from which on it is remembered what came and went."""
    silence: float

    @property
    def position(self) -> str:
        """Return what the mirror keeps once it has all of this generation."""
        return f"{self.incarnation} {self.generation}"


class _File(NamedTuple):
    """A note of a workspace, as the shared index has it; `first_seq` is its place in the order of the notes."""

    path: str
    source: str
    hash: str
    mtime: int
    size: int
    state: str
    detail: str
    indexed_at: float
    title: bytes
    dated: str
    first_seq: int


class _Chunk(NamedTuple):
    """A passage of a note, as the shared index has it."""

    path: str
    seq: int
    chunk_id: str
    occurrence: int
    start_line: int
    end_line: int
    hash: str
    annotations: str
    prefix: bytes
    text: bytes

    def cut(self) -> NewChunk:
        """Return the chunk to store. Raises ValueError for what no index of ours holds."""
        notes_of = Annotations(*msgspec.json.decode(self.annotations)) if self.annotations else NOTHING_SAID
        piece = Chunk(self.start_line, self.end_line, self.text.decode(), self.hash)
        if not 1 <= self.start_line <= self.end_line or not holds(piece.text, piece.hash):
            raise ValueError("a chunk that is none")
        return NewChunk.of(self.chunk_id, self.occurrence, piece, self.prefix.decode(), notes_of)


class _Vector(NamedTuple):
    """A vector of the passage with the number `seq`, and the hash of the text that it is of."""

    seq: int
    place: int
    """0 for the vector of a whole passage, from 1 on for those of its windows."""
    hash: str
    vec: bytes


def _selects(row: type[NamedTuple], function: str) -> str:
    """Return the query for the columns of `row`, by the names of its fields, from a function of the shared schema."""
    return f"select {', '.join(row._fields)} from memory_tui.{function}"


_WORKSPACES = _selects(_Workspace, "workspaces(%s, %s, %s, %s)")
_FILES = _selects(_File, "files(%s, %s, %s) order by first_seq, path")
_CHUNKS = _selects(_Chunk, "chunks(%s, %s, %s) order by path, seq")
_VECTORS = _selects(_Vector, "vectors(%s, %s, %s) order by seq, place")
_LAG = """
select case when pg_is_in_recovery() and (pg_last_wal_receive_lsn() is distinct from pg_last_wal_replay_lsn()
        or not exists (select from pg_stat_wal_receiver)) then extract(epoch from clock_timestamp()
    - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8 else 0 end
"""
"""How long ago it was, in seconds, what a replica has of its primary; 0 where it has all, and for no replica."""


# --- the mirror ------------------------------------------------------------------------------------------------------


def folder(access: Access) -> Path:
    """Return where the mirrors of a shared index are, as `access` may read it."""
    key = repr((access.where, access.login, access.tenant, access.name, database.SCHEMA_VERSION))
    cache = platformdirs.user_cache_path("memory-tui", appauthor=False)
    return cache / "shared" / hashlib.sha256(key.encode()).hexdigest()[:16]


def complete(place: Path) -> dict[Path, Record]:
    """Return the mirrors in a folder that were filled, the newest first."""
    records = {path: Record.read(path.with_suffix(".json")) for path in place.glob("*.sqlite")}
    newest_first = sorted(records, key=lambda path: records[path].as_of, reverse=True)
    return {path: records[path] for path in newest_first if records[path].as_of}


class Mirror:
    """The mirror of `scope`, an index at `path` of at most `most` chunks.

    It takes the notes of workspaces that cut and embed them by the same `recipe`.
    """

    def __init__(self, access: Access, scope: Scope, recipe: Recipe, most: int) -> None:
        self._access, self._scope, self._most = access, scope, most
        self._recipe = _comparable(recipe)
        key = str(scope).encode() + msgspec.json.encode(self._recipe)
        self.path = folder(access) / f"{hashlib.sha256(key).hexdigest()[:16]}.sqlite"
        self._beside = self.path.with_suffix(".json")
        """The record of what it holds, and since when."""
        self._lock = threading.Lock()
        self._thread = threading.Thread()
        """Fetches what is new; at first one that never ran."""
        self._failure: MemoryTuiError | None = None
        """Why the last fetching failed; None where it did not."""
        self._told = 0.0
        """When all that is new was fetched last, as `time.monotonic` tells it."""
        self.stop = Stop()
        """Ends the fetching that goes on behind; what is whole of it stays."""

    def within(self, seconds: float, patience: Stop) -> Standing:
        """Wait at most `seconds`, or until `patience` ends, while what is new is fetched; return how the mirror stands.

        A fetch that is not done by then goes on behind.
        Raises SharedUnavailable, MirrorFilling while there is nothing to answer from, SettingError, Cancelled.
        """
        until = time.monotonic() + seconds
        with self._lock:
            if not self._thread.is_alive() and time.monotonic() - self._told > _YOUNG_SECONDS:
                self.stop.clear()
                self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
                self._thread.start()
        while self._thread.is_alive() and time.monotonic() < until and not patience.is_set():
            self._thread.join(min(_LOOK_SECONDS, seconds))
        record = Record.read(self._beside)
        busy = self._thread.is_alive()
        failure = None if busy else self._failure
        # A record without workspaces is of a mirror that has nothing to answer from.
        if failure is not None and (not record.workspaces or isinstance(failure, SettingError)):
            raise failure
        if busy and not record.workspaces:
            step = f"Ask again in a moment, or wait for it: memory-tui shared mirror {self._scope}."
            raise MirrorFilling(f"The mirror of {self._scope} is being filled for the first time.", step)
        state = standing(str(self._scope), record, failure, answered=not busy and failure is None)
        if not record.workspaces:
            raise failed(self._access, "nothing", f"{self._scope}: {state.trouble or 'nothing is published'}.")
        return state

    def _run(self) -> None:
        """Fetch what is new, on the thread that goes on behind."""
        # `refresh` keeps the failure for whoever waits.
        with suppress(MemoryTuiError):
            self.refresh()

    def refresh(self) -> None:
        """Fetch what is new. Raises SharedUnavailable, IndexUnavailable, SettingError, Cancelled."""
        before = Record.read(self._beside)
        try:
            with joined(self._access) as connection, explaining(self._access), connection.transaction():
                connection.execute("set transaction isolation level repeatable read, read only")
                record = self._fetched(connection)
            record.write(self._beside)
        except OSError as error:
            self._failure = IndexUnavailable(f"The mirror {self.path} cannot be written: {error.strerror}.")
            raise self._failure from error
        except MemoryTuiError as error:
            self._failure = error
            if isinstance(error, SharedUnavailable) and before.as_of:
                lost = replace(before, lost_since=before.lost_since or time.time(), newer=error.fault == "new_schema")
                # Where it cannot be noted, it is told all the same.
                with suppress(OSError):
                    lost.write(self._beside)
            raise
        self._failure, self._told = None, time.monotonic()
        # What one mirror lost the right to, no other one serves while the database is away.
        dropped = {*before.workspaces} - {*record.workspaces}
        for path, other in complete(self.path.parent).items():
            stale = path != self.path and dropped.intersection(other.workspaces)
            if stale or other.as_of < time.time() - _FORGOTTEN_SECONDS:
                # The database, its log, and the record.
                for file in path.parent.glob(f"{path.stem}.*"):
                    # A file that cannot be deleted is tried again with the next search.
                    with suppress(OSError):
                        durable.remove_file(file)

    def _fetched(self, connection: Connection) -> Record:
        """Bring every workspace of the scope up to date, and drop those that may not be read any more.

        Return the record of it, which the caller writes once the transaction is over.
        """
        scope = self._scope
        meant = self._access.tenant, scope.every, list(scope.names), list(scope.groups)
        with connection.cursor(row_factory=class_row(_Workspace)) as cursor:
            rows = cursor.execute(_WORKSPACES, meant).fetchall()
        lag = connection.execute(_LAG).fetchone()
        # Vectors that another recipe made cannot be compared with ours.
        fitting = [row for row in rows if _fits(row.recipe, self._recipe)]
        names = [row.name for row in fitting]
        # Whatever lies there was a mirror, so what is no index is damage, and made anew.
        with closing(Store.open(self.path, expected=lambda: True)) as store:
            if store.recipe() is None:
                with store.writing():
                    index_write.reset(store, self._recipe)
                    index_write.remember(store, database.NO_FOLDER, "1")
            index_write.prepare_tables(store, self._recipe)
            for name in store.noted(_POSITION):
                if name not in names:
                    with store.writing():
                        index_write.remove_files(store, [*store.copies_of(self._label(name)).values()])
                        index_write.remember(store, _POSITION + name, "")
            new = [row for row in fitting if store.meta(_POSITION + row.name) != row.position]
            if new:
                self._require_room(connection, [row.ws for row in fitting])
            unsound = [row.name for row in new if not self._bring_up_to_date(store, connection, row)]
            if new:
                index_write.prune(store, _SPARE)
        missing = [name for name in scope.names if name not in {row.name for row in rows}]
        return Record(
            scope=str(scope),
            as_of=time.time(),
            lag=lag[0] if lag else 0.0,
            silent={row.name: row.silence for row in fitting if row.silence > self._access.silent_seconds},
            missing=tuple(missing or ([] if rows else [str(scope)])),
            elsewise=tuple(row.name for row in rows if row.recipe and row not in fitting),
            unsound=tuple(unsound),
            workspaces=tuple(names),
        )

    def _label(self, name: str) -> str:
        """Return what stands before the paths of a workspace in the mirror: its name, and nothing for one's own."""
        return "" if name == self._access.name else name

    def _require_room(self, connection: Connection, numbers: list[int]) -> None:
        """Raise SettingError where the workspaces of these numbers hold more passages than a mirror may."""
        row = connection.execute("select memory_tui.passages(%s, %s)", (self._access.tenant, numbers)).fetchone()
        if row is not None and row[0] > self._most:
            step = "Name fewer workspaces, or raise shared.mirror.maxChunks."
            raise SettingError(f"{self._scope} holds {row[0]:,} passages, and a mirror at most {self._most:,}.", step)

    def _bring_up_to_date(self, store: Store, connection: Connection, row: _Workspace) -> bool:
        """Write what is new of a workspace; False, with nothing written, where memory-tui cannot have published it."""
        try:
            self._write(store, connection, row)
        except (ValueError, TypeError, LookupError, msgspec.MsgspecError):
            return False
        return True

    def _write(self, store: Store, connection: Connection, row: _Workspace) -> None:
        """Write what is new of a workspace, with its position, in one transaction."""
        label = self._label(row.name)
        key = self._access.tenant, row.ws
        with store.writing():
            incarnation, _, generation = str(store.meta(_POSITION + row.name) or "").partition(" ")
            since = int(generation or 0) if incarnation == row.incarnation else 0
            # Of a restored backup the generation is lower than the one that is known, and what went before
            # `changes_from` is no longer remembered there: then all of it is read again.
            since = since if row.changes_from <= since <= row.generation else 0
            with connection.cursor(binary=True, row_factory=class_row(_File)) as cursor:
                files = cursor.execute(_FILES, (*key, since)).fetchall()
            present = [file for file in files if file.state != "gone"]
            paths = {file.path for file in present}
            gone = {file.path for file in files} - paths
            # From the beginning, what is not told of is gone too.
            copies = store.copies_of(label).values()
            index_write.remove_files(
                store, [note for note in copies if note.path in gone or (not since and note.path not in paths)]
            )
            for first in range(0, len(present), _NOTES):
                self.stop.check()
                _put(store, connection, key, present[first : first + _NOTES], label)
            index_write.remember(store, _POSITION + row.name, row.position)


def _comparable(recipe: Recipe) -> Recipe:
    """Return `recipe` without what says which notes there are, and not how they are cut and embedded."""
    return replace(recipe, sources=(), scope_hash="")


def _fits(text: str, recipe: Recipe) -> bool:
    """Say whether the recipe of a workspace, as JSON, cuts and embeds notes as the comparable `recipe` does."""
    try:
        return _comparable(msgspec.json.decode(text, type=Recipe)) == recipe
    except msgspec.MsgspecError:
        # It is of another program, or nothing was published yet.
        return False


def _put(store: Store, connection: Connection, key: tuple[str, int], files: Sequence[_File], label: str) -> None:
    """Write `files` in their order, which decides between equal scores.

    Of a file whose chunks the mirror has already, only its facts and the vectors that came since are written. `key` is
    the tenant and the number of the workspace, `label` what stands before its paths in the mirror.
    """
    has = store.copies_of(label)
    with connection.cursor(binary=True, row_factory=class_row(_Chunk)) as cursor:
        rows = cursor.execute(_CHUNKS, (*key, [file.path for file in files])).fetchall()
    chunks = {path: list(group) for path, group in groupby(rows, key=attrgetter("path"))}
    with connection.cursor(binary=True, row_factory=class_row(_Vector)) as cursor:
        # By their numbers: a join of tables that nobody has analyzed yet takes seconds.
        vectors = cursor.execute(_VECTORS, (*key, [row.seq for row in rows])).fetchall()
    recipe = store.recipe()
    assert recipe is not None
    # Also raises ValueError for vectors of another length, so that none of them is stored.
    units, _ = unit_rows([row.vec for row in vectors], recipe.identity.dims)
    by_hash = {row.hash: unit for row, unit in zip(vectors, units, strict=True) if row.hash}
    ids = index_write.add_embeddings(store, recipe.identity, by_hash)
    same = [file for file in files if _has_chunks(store, has.get(file.path), file, chunks.get(file.path, []))]
    new = [_new(file, chunks.get(file.path, []), label) for file in files if file not in same]
    index_write.replace_files(store, new, recipe.identity.model, ids)
    touched = [
        has[file.path]._replace(
            mtime_ns=file.mtime, size=file.size, state=file.state, detail=file.detail, indexed_at=file.indexed_at
        )
        for file in same
    ]
    index_write.touch_files(store, touched)
    # A provider that failed at the first sync may have made the vectors since.
    lacking = [chunk for file in same for chunk in store.chunks_of(file.path, label) if not chunk.embedded]
    index_write.attach(store, {row.rowid: ids[row.hash] for row in lacking if not row.occurrence and row.hash in ids})
    hash_of = {row.seq: row.hash for row in rows}
    # All but the vectors of whole passages, at place 0.
    windows = groupby((row for row in vectors if row.place), key=attrgetter("seq"))
    # A window without a hash is the whole text, which is too short for windows of its own.
    hashes = {hash_of[seq]: [row.hash or hash_of[seq] for row in group] for seq, group in windows}
    index_write.attach_windows(store, {text: [ids[digest] for digest in group] for text, group in hashes.items()})


def _has_chunks(store: Store, note: IndexedNote | None, file: _File, chunks: Sequence[_Chunk]) -> bool:
    """Say whether the mirror has the chunks of `file` already, in the same place of the order."""
    if note is None or note.first_seq != file.first_seq:
        return False
    rows = store.chunks_of(note.path, note.workspace)
    return [(row.chunk_id, row.occurrence) for row in rows] == [(chunk.chunk_id, chunk.occurrence) for chunk in chunks]


def _new(file: _File, chunks: Sequence[_Chunk], label: str) -> NewFile:
    """Return the note to store. Raises ValueError for what no index of ours holds."""
    read = file.hash, file.mtime, file.size, file.detail, file.indexed_at
    cut = [chunk.cut() for chunk in chunks]
    return NewFile(file.path, file.source, *read, file.title.decode(), file.dated, cut, label, file.first_seq)


def await_news(access: Access, seconds: float, stop: Stop) -> None:
    """Wait until a publisher tells that something is new, until `stop`, or for `seconds`. Raises SharedUnavailable.

    Through a pool of connections no such notice arrives, so that the caller looks after `seconds` anyway.
    """
    until = time.monotonic() + seconds
    with joined(access) as connection:
        connection.execute("listen memory_tui")
        while not stop.is_set() and time.monotonic() < until:
            if next(connection.notifies(timeout=_YOUNG_SECONDS, stop_after=1), None) is not None:
                break
    # Until then a mirror counts what it has as fetched just now, and would not look.
    stop.wait(_YOUNG_SECONDS)
