"""The journal keeps every change of notes with its inverse, and drafts that were not written, in the state database.

A change is written down before the first note is touched (`intent`) and again when all are (`done`, or `refused` when
nothing was changed). What is an intent alone was cut off by an error of the disk or by a crash: it counts as made when
every note has it, else it is taken back. Files that a writer had kept open are looked after then, too.

Three tables: a row of `note_change` for each change, of `note_version` for each note in it, and of `note_text` for each
text by its SHA-256. A journal of an earlier release, a file of lines beside a folder of texts, is read once and stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw
import msgspec
import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable, state_db
from memory_tui.config.places import private_name
from memory_tui.errors import EditFailed, EditRefused, IndexUnavailable, MemoryTuiError, StateUnavailable
from memory_tui.locks import WriterLock
from memory_tui.notes.changes import Busy, Change, FileChange, ThreeWay
from memory_tui.notes.merge import merge
from memory_tui.notes.write import NEW, OLD, Folder, SameLinesChanged, contents, current, parent, quiet, tag, write
from memory_tui.secrets.finder import masked
from memory_tui.workspace.roots import Roots

KEEP_DAYS = 90
"""So long a change can be looked at and taken back."""
KEEP_BYTES = 256 * 1024 * 1024
"""So much room, compressed, the texts of all changes may take; the oldest make way."""
LOST = "lost"
"""The kind of an entry about lines that another program took out of a note; undo passes it over."""
_LOCK_SECONDS = 10.0
State = Literal["intent", "done", "refused", "draft"]
T = TypeVar("T")

_TABLES = """
CREATE TABLE IF NOT EXISTS note_change (
  scope TEXT NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
  title TEXT NOT NULL, undoes INTEGER NOT NULL, redoes INTEGER NOT NULL, reason TEXT NOT NULL, more TEXT NOT NULL,
  PRIMARY KEY (scope, id)
) STRICT;
CREATE TABLE IF NOT EXISTS note_version (
  scope TEXT NOT NULL, change INTEGER NOT NULL, place INTEGER NOT NULL, path TEXT NOT NULL, before TEXT, after TEXT,
  mode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  PRIMARY KEY (scope, change, place)
) STRICT;
CREATE INDEX IF NOT EXISTS note_version_path ON note_version (scope, path);
CREATE TABLE IF NOT EXISTS note_text (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;
"""
_ENTRIES = """
SELECT json_object(
  'id', id, 'at', at, 'state', state, 'kind', kind, 'title', title, 'undoes', undoes, 'redoes', redoes,
  'reason', reason, 'more', json(more), 'files', json((
    SELECT json_group_array(json_object(
      'path', path, 'before', before, 'after', after, 'mode', mode, 'mtime_ns', mtime_ns
    ) ORDER BY place) FROM note_version AS v WHERE v.scope = c.scope AND v.change = c.id
  ))
) FROM note_change AS c WHERE scope = ? ORDER BY id
"""
_DROP_TEXTS = """
DELETE FROM note_text WHERE name NOT IN (
  SELECT before FROM note_version WHERE before NOT NULL UNION SELECT after FROM note_version WHERE after NOT NULL
)
"""
_OLD = """
DELETE FROM note_change WHERE scope = ?1 AND (at < ?2 AND state <> 'intent' OR id <= (
  SELECT coalesce(max(id), 0) FROM (
    SELECT id, sum(sum(size)) OVER (ORDER BY id DESC) AS total, max(id) OVER () AS last FROM (
      SELECT max(change) AS id, length(data) AS size FROM note_version
      JOIN note_text ON name IN (before, after) WHERE scope = ?1 GROUP BY name
    ) GROUP BY id
  ) WHERE total > ?3 AND id < last
))
"""
"""Forgets what is too old, and what is over a size, counted from the newest; each text counts once."""


class RecordedNote(Struct, frozen=True):
    """One note of a recorded change: names of its texts before and after, and mode and time it had before."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0
    mtime_ns: int = 0


class JournalEntry(Struct, frozen=True):
    """A change as the journal has it. `at` is in epoch seconds.

    `undoes` or `redoes` is the change that it takes back or makes again. `left` are hidden files that a writer still
    had open. A draft keeps, as its first file, what both started from and mine, as its second, theirs.
    """

    id: int
    at: float
    state: State
    kind: str
    title: str
    files: tuple[RecordedNote, ...] = ()
    undoes: int = 0
    redoes: int = 0
    left: tuple[str, ...] = ()
    reason: str = ""
    trust: tuple[str, ...] = ()
    """Notes whose hash in OpenClaw's ledger moved along."""
    ledger: tuple[str, ...] = ()
    """The row of its note in OpenClaw's ledger, before and after, where it changed that alone."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The notes it is about."""
        return tuple(file.path for file in self.files)


def journal_folder(workspace: Path) -> Path:
    """Return the folder that names the journal of `workspace`; two names of one workspace share it."""
    folder = platformdirs.user_state_path("memory-tui", appauthor=False)
    return folder / "journal" / private_name(workspace)


class Journal:
    """The changes of the workspace that `folder` names. Every method may raise EditRefused.

    What a writing method returned from is whole and flushed; what it raised from is not there. `folder` holds the lock,
    and what an earlier release kept there; it is made when the first change is written.
    """

    def __init__(self, folder: Path, database: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database or state_db.default_path()
        self.clock = clock
        self._scope = folder.name
        self._old = folder / "journal.jsonl"

    # --- reading -----------------------------------------------------------------------------------------------------

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return all changes, oldest first."""
        return self._read(lambda connection: tuple(map(_entry, connection.execute(_ENTRIES, (self._scope,)))), ())

    def has_unsettled(self) -> bool:
        """Return whether a change was cut off, or left hidden files that a writer still had open."""
        return any(entry.state == "intent" or entry.left for entry in self.entries())

    def text(self, name: str | None) -> bytes | None:
        """Return the text that is kept under `name`. Raises EditRefused when it is gone or damaged."""
        if name is None:
            return None
        row = self._read(lambda c: c.execute("SELECT data FROM note_text WHERE name = ?", (name,)).fetchone(), None)
        with suppress(zlib.error):
            if row is not None and text_name(data := zlib.decompress(row[0])) == name:
                return data
        raise EditFailed(
            "A text of the journal is gone or damaged.",
            f"It would be in {self.database}; the notes are as they are.",
        )

    def change_of(self, entry: JournalEntry) -> Change:
        """Return the recorded change with its texts."""
        files = (
            FileChange(note.path, self.text(note.before), self.text(note.after), note.mode, note.mtime_ns)
            for note in entry.files
        )
        return Change(entry.kind, entry.title, tuple(files))

    # --- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from changing notes, and from settling a change that is on its way. Raises Busy, EditRefused."""
        until = time.monotonic() + _LOCK_SECONDS
        try:
            durable.make_folder(self.folder)
            while (lock := WriterLock.acquire(self._old)) is None:
                if time.monotonic() > until:
                    raise Busy("Another memory-tui is changing notes of this workspace.", "Try again in a moment.")
                time.sleep(0.01)
        except OSError as error:
            raise _broken(f"{self.folder}: {error.strerror or error}") from None
        except IndexUnavailable as error:
            raise EditFailed(error.message, "Check the folder of the journal.") from None
        with lock:
            yield

    def begin(self, change: Change, *, undoes: int = 0, redoes: int = 0) -> JournalEntry:
        """Write down what is about to be done; its files have mode and time of the notes. Only while `locked`."""
        entry = JournalEntry(0, self.clock(), "intent", change.kind, change.title, (), undoes, redoes)
        return self.put(entry, change.files)

    def record(self, change: Change, reason: str) -> JournalEntry:
        """Write down a change that another program has made already. Only while `locked`."""
        return self.put(JournalEntry(0, self.clock(), "done", change.kind, change.title, reason=reason), change.files)

    def settle(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write down how it ended; `files` are what the notes really held before and hold after."""
        return self.put(replace(entry, at=self.clock()), files)

    def draft(self, view: ThreeWay, title: str, number: int = 0) -> JournalEntry:
        """Keep a text that could not be written, in the place of draft `number` unless 0. Only while `locked`."""
        files = (FileChange(view.path, view.base, view.mine), FileChange(view.path, view.base, view.other))
        return self.put(JournalEntry(number, self.clock(), "draft", "draft", title), files)

    def put(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write an entry down, with the texts of `files` unless it has them already; 0 gets the next number."""

        def put(connection: apsw.Connection) -> JournalEntry:
            last = connection.execute("SELECT max(id) FROM note_change WHERE scope = ?", (self._scope,)).fetchone()
            numbered = replace(entry, id=entry.id or ((last[0] if last else 0) or 0) + 1)
            if files is not None:
                numbered = replace(numbered, files=tuple(_recorded(connection, file) for file in files))
            self._insert(connection, numbered)
            return numbered

        return self._write(put)

    def prune(self, days: float = KEEP_DAYS, most: int = KEEP_BYTES) -> int:
        """Forget what is older than `days` or over `most` bytes, and texts that nothing names; returns how many.

        Only while `locked`.
        """
        return self._write(lambda connection: self._forgotten(connection, self.clock() - days * 86_400, most))

    def clear(self) -> None:
        """Forget every change of this workspace."""
        if self.database.exists():
            self._write(lambda connection: self._forgotten(connection, float("inf"), -1))

    # --- the tables --------------------------------------------------------------------------------------------------

    def _forgotten(self, connection: apsw.Connection, limit: float, most: int) -> int:
        connection.execute(_OLD, (self._scope, limit, most))
        count = connection.changes()
        connection.execute(
            "DELETE FROM note_version WHERE scope = ?1 AND change NOT IN (SELECT id FROM note_change WHERE scope = ?1)",
            (self._scope,),
        )
        connection.execute(_DROP_TEXTS)
        return count

    def _insert(self, connection: apsw.Connection, entry: JournalEntry) -> None:
        more = json.dumps({"left": entry.left, "trust": entry.trust, "ledger": entry.ledger})
        values = entry.id, entry.at, entry.state, entry.kind, entry.title, entry.undoes, entry.redoes, entry.reason
        connection.execute(
            f"INSERT OR REPLACE INTO note_change VALUES ({'?, ' * 9}?)", (self._scope, *map(_storable, values), more)
        )
        connection.execute("DELETE FROM note_version WHERE scope = ? AND change = ?", (self._scope, entry.id))
        connection.executemany(
            f"INSERT INTO note_version VALUES ({'?, ' * 7}?)",
            [
                (self._scope, entry.id, place, note.path, note.before, note.after, note.mode, note.mtime_ns)
                for place, note in enumerate(entry.files)
            ],
        )

    def _read(self, how: Callable[[apsw.Connection], T], nothing: T) -> T:
        if self._old.exists():
            return self._write(how)
        if not self.database.exists():
            return nothing
        return self._run(lambda c: how(c) if state_db.has_table(c, "note_text") else nothing, write=False)

    def _write(self, how: Callable[[apsw.Connection], T]) -> T:
        def prepared(connection: apsw.Connection) -> T:
            connection.execute(_TABLES)
            if self._old.exists() and not state_db.was_taken_over(connection, "note_change", self._scope):
                self._take_over(connection)
                state_db.mark_taken_over(connection, "note_change", self._scope)
            return how(connection)

        return self._run(prepared, write=True)

    def _take_over(self, connection: apsw.Connection) -> None:
        """Read the journal of an earlier release; of two lines about one change the later one counts."""
        for line in self._old.read_bytes().split(b"\n"):
            # A line that was cut off counts for nothing.
            with suppress(msgspec.MsgspecError):
                entry = msgspec.json.decode(line, type=JournalEntry)
                # Titles of the oldest ones are as they were.
                self._insert(connection, replace(entry, title=masked(entry.title)))
        for name, *_ in connection.execute("SELECT before FROM note_version UNION SELECT after FROM note_version"):
            # Whoever needs a text that is gone is told.
            with suppress(OSError):
                data = (self.folder / "texts" / f"{name}.z").read_bytes()
                connection.execute("INSERT OR IGNORE INTO note_text VALUES (?, ?)", (name, data))

    def _run(self, how: Callable[[apsw.Connection], T], *, write: bool) -> T:
        try:
            return state_db.run(self.database, how, write=write)
        except StateUnavailable as error:
            raise _broken(error.message.removesuffix(".")) from None


def undo_stack(entries: tuple[JournalEntry, ...], kind: str) -> tuple[JournalEntry, ...]:
    """Return what can be undone or redone, the next one first; a new change ends what can be redone."""
    by_id = {entry.id: entry for entry in entries}
    undo: list[JournalEntry] = []
    redo: list[JournalEntry] = []
    for entry in entries:
        if entry.state != "done" or entry.kind == LOST:
            continue
        target = by_id.get(entry.undoes or entry.redoes)
        if entry.undoes and target in undo:
            undo.remove(target)
            redo.append(target)
        elif entry.redoes and target in redo:
            redo.remove(target)
            undo.append(target)
        elif not entry.undoes and not entry.redoes:
            undo.append(entry)
            redo.clear()
    return tuple(reversed(undo if kind == "undo" else redo))


def text_name(data: bytes) -> str:
    """Name a text as it is kept: its SHA-256."""
    return hashlib.sha256(data).hexdigest()


def _recorded(connection: apsw.Connection, file: FileChange) -> RecordedNote:
    """Keep the texts of a note; one that was damaged since is mended."""

    def named(data: bytes | None) -> str | None:
        if data is None:
            return None
        name = text_name(data)
        connection.execute("INSERT OR REPLACE INTO note_text VALUES (?, ?)", (name, zlib.compress(data, 1)))
        return name

    return RecordedNote(file.path, named(file.before), named(file.after), file.mode, file.mtime_ns)


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    fields = json.loads(row[0])
    return msgspec.convert(fields | fields.pop("more"), JournalEntry)


def _storable(value: object) -> Any:  # noqa: ANN401 - what SQLite takes
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _broken(what: str) -> EditFailed:
    return EditFailed(f"The journal cannot be used: {what}.", "Check the folder and the space on its disk.")


# --- what did not come to its end ------------------------------------------------------------------------------------

CUT_OFF = "cut off before a note was written"
FINISHED = "cut off and finished at the next start"
TAKEN_BACK = "cut off and taken back at the next start"
WAITS = "cut off, and not settled yet"
HALF = "cut off, and other changes since then leave it half done"


def recover(roots: Roots, journal: Journal) -> tuple[JournalEntry, ...]:
    """Settle every change that was cut off. Only while the journal is locked.

    Returns what was settled, each with its reason; what the disk does not allow to be settled stays an intent.
    """
    settled = []
    for entry in journal.entries():
        try:
            if entry.state == "intent":
                settled.append(settle(roots, journal, entry))
            elif entry.left:
                # Beside notes that were brought back lies what was never written.
                left = _late(roots, journal, entry) if entry.state == "done" else ()
                journal.put(replace(entry, left=clear(roots, entry, left)))
        except (OSError, EditRefused) as error:
            reason = error.message.rstrip(".") if isinstance(error, EditRefused) else error.strerror
            settled.append(replace(entry, reason=f"{WAITS}: {reason}"))
    return tuple(settled)


def settle(roots: Roots, journal: Journal, entry: JournalEntry, reason: str = "") -> JournalEntry:
    """Bring the notes of an intent to one of its ends; `reason` is why it may be taken back.

    Raises EditRefused, OSError.
    """
    try:
        files = journal.change_of(entry).files
        left = _late(roots, journal, entry)
        ends = [is_made(file, current(roots, file.path)) for file in files]
        if not any(ends):
            end = replace(entry, state="refused", reason=reason or CUT_OFF)
        elif all(ends):
            end = replace(entry, state="done", reason="" if reason else FINISHED)
        else:
            end = _taken_back(roots, entry, [(at, files[at]) for at, is_there in enumerate(ends) if is_there])
            end = replace(end, reason=reason) if reason and end.state == "refused" else end
        end = replace(end, left=clear(roots, entry, left))
        return journal.settle(end, [_as_it_is(roots, file) for file in files] if end.state == "done" else None)
    except EditRefused:
        raise
    except MemoryTuiError as error:
        return journal.settle(replace(entry, state="refused", reason=f"{HALF}: {error.message}"))


def is_made(change: FileChange, now: bytes | None) -> bool:
    """Return whether a note that holds `now` has had `change` made to it, whatever others did before or after."""
    before, after = change.before, change.after
    if now in (before, after):
        return now == after
    if before is None:
        return now is not None and after is not None and now.startswith(after)
    if after is not None and now is not None and after.startswith(before):
        # Lines that were only added are there or not; a merge would add them a second time.
        return now.startswith(before) and after[len(before) :].strip(b"\r\n") in now[len(before) :]
    there = merge(before, after, now).merged
    return there == now if there is not None else merge(after, before, now).merged is not None


def clear(roots: Roots, entry: JournalEntry, left: Collection[str] = ()) -> tuple[str, ...]:
    """Remove the hidden files of a change but those that a writer has open, and flush its folders; returns those.

    Only then may the journal say that it is done. Raises EditFailed.
    """
    for number, file in enumerate(entry.files):
        with parent(roots, file.path) as (folder, _):
            try:
                for name in folder.names(tag(entry.id, number)) if folder is not None else ():
                    if folder is not None and name not in left:
                        folder.remove(name)
                if folder is not None:
                    folder.sync()
            except OSError as error:
                raise EditFailed(
                    f"The folder of {file.path} cannot be written: {error.strerror}.", "Check the disk."
                ) from None
    return tuple(left)


def _taken_back(roots: Roots, entry: JournalEntry, files: list[tuple[int, FileChange]]) -> JournalEntry:
    """Take back those `files` that are made, by their numbers, each one where others have not changed it since."""
    end = replace(entry, state="refused", reason=TAKEN_BACK)
    for number, file in reversed(files):
        try:
            write(roots, file.reverse(), tag(entry.id, number) + "b")
        except SameLinesChanged:
            end = replace(entry, state="done", reason=HALF)
    return end


def _late(roots: Roots, journal: Journal, entry: JournalEntry) -> tuple[str, ...]:
    """Merge what others wrote to replaced files, which still lie beside the notes, into the notes.

    Returns the names of those that a writer has open.
    """
    left: list[str] = []
    for number, file in enumerate(journal.change_of(entry).files):
        hidden = tag(entry.id, number)
        with parent(roots, file.path) as (folder, name):
            for beside in folder.names(hidden) if folder is not None else ():
                if folder is None or not beside.endswith((NEW, OLD)):
                    continue
                text, closed = _closed(folder, beside)
                if not closed:
                    left.append(beside)
                elif text not in (file.before, file.after):
                    late = replace(file, after=text)
                    _merge_late(roots, journal, entry, late, folder.read(name), hidden + "l")
    return tuple(left)


def _merge_late(
    roots: Roots, journal: Journal, entry: JournalEntry, late: FileChange, now: bytes | None, hidden: str
) -> None:
    both = merge(late.before, now, late.after)
    if now is None:
        # The note was on its way out when somebody wrote to it: it comes back.
        write(roots, replace(late, before=None), hidden)
    elif both.merged is None:
        journal.draft(ThreeWay(late.path, late.before, late.after, now, both), f"Late lines of: {entry.title}")
    elif both.merged != now:
        write(roots, FileChange(late.path, now, both.merged), hidden)


def _as_it_is(roots: Roots, file: FileChange) -> FileChange:
    """Return the change as it came out: what the note holds now, and what it would hold without the change."""
    now = current(roots, file.path)
    without = merge(file.after, file.before, now).merged
    return replace(file, before=without if without is not None else file.before, after=now)


def _closed(folder: Folder, hidden: str) -> tuple[bytes, bool]:
    """Return the content of a hidden file, and whether nobody has it open to write any more."""
    descriptor = folder.open(hidden)
    try:
        closed = quiet(descriptor, 0) is not False
        return contents(descriptor, hidden), closed
    finally:
        os.close(descriptor)


# --- what is typed ---------------------------------------------------------------------------------------------------

_UNSAVED = state_db.Table("unsaved_text")


class Unsaved(Struct, frozen=True):
    """The `text` in an editor at `at` (epoch seconds), begun on the bytes `before` of the note `path`."""

    path: str
    at: float
    before: bytes | None
    text: str
    key: str = ""


class Typing:
    """Keeps what one editor holds of the note `path`, beside `journal`, instead of what it `began` with.

    Methods may be called from any thread; each names its `turn`, and one that comes after a later turn does nothing,
    so that a slow writing never brings back what was saved meanwhile.
    """

    def __init__(self, journal: Journal, path: str, began: Unsaved | None = None) -> None:
        self._records, self._path = _unsaved(journal), path
        self._keys = [f"{os.getpid()} {path}", *([began.key] if began is not None else [])]
        self._lock = threading.Lock()
        self._turn = 0

    def keep(self, turn: int, text: str, before: bytes | None) -> None:
        """Keep `text`, in the place of what was kept last. Raises EditRefused when the disk does not take it."""
        value = msgspec.to_builtins(Unsaved(self._path, time.time(), before, text))
        try:
            self._put(turn, self._keys[:1], value)
        except StateUnavailable as error:
            what = f"Your typing is not protected against a crash: {error.message}"
            raise EditFailed(what, "Press ctrl+s to save the note.") from None

    def drop(self, turn: int) -> None:
        """Forget what was typed: it is in the note, or nobody wants it. Raises EditRefused when it stays."""
        try:
            self._put(turn, [key for key in self._keys if key in self._records.read()], None)
        except StateUnavailable as error:
            raise EditFailed(f"Your unsaved text is still stored: {error.message}", error.next_step) from None

    def _put(self, turn: int, keys: Sequence[str], value: object) -> None:
        with self._lock:
            if turn >= self._turn:
                self._turn = turn
                for key in keys:
                    self._records.change(key, lambda _: value)


def left(journal: Journal, path: str | None = None) -> tuple[Unsaved, ...]:
    """Return what editors left unsaved of `path`, or of every note, newest first. Raises EditRefused."""
    records = _unsaved(journal)
    try:
        texts = [replace(msgspec.convert(value, Unsaved), key=key) for key, value in records.read().items()]
        for text in texts:
            if text.at < time.time() - KEEP_DAYS * 86_400:
                records.remove(text.key)
    except StateUnavailable as error:
        raise _broken(error.message.removesuffix(".")) from None
    young = [text for text in texts if text.at >= time.time() - KEEP_DAYS * 86_400 and path in (None, text.path)]
    return tuple(sorted(young, key=lambda text: -text.at))


def _unsaved(journal: Journal) -> state_db.ScopedRecords:
    def old() -> dict[str, Any]:
        files = (journal.folder / "unsaved").glob("*.json")
        return {file.stem: json.loads(file.read_bytes()) for file in files}

    return _UNSAVED.of(journal.folder.name, old, path=journal.database)
