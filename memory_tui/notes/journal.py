"""The journal keeps what every note was: each text once, and each change of a note with its author and its time.

Seven tables of the state database, which journal.sql beside this module makes. A row of `note_edit` is one note in one
change, whoever made it (`note_author`); `note_change` has title, kind and state of those that this program made, which
undo reads. A text (`note_blob`) is kept as what differs from the version before it, some of them whole. `note_path` has
what each note was when it was last looked at, so that whoever looks next sees what became of it, and `note_scope` the
numbers of a workspace: neither is told twice. `note_start` has since when every change is known.

A change of this program is written down before the first note is touched (`intent`) and again when all are (`done`, or
`refused` when nothing was changed). What is an intent alone was cut off by an error of the disk or by a crash: it
counts as made when every note has it, else it is taken back. Files that a writer had kept open are looked after then,
too. The journal of 0.2, a file of lines beside a folder of texts, is read once and stays.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from memory_tui import durable, state_db
from memory_tui.errors import EditFailed, EditRefused, IndexBusy, IndexUnavailable, MemoryTuiError, StateUnavailable
from memory_tui.locks import Holder, is_alive, process_start, wait_for
from memory_tui.notes.changes import Busy, Change, FileChange, ThreeWay, merge
from memory_tui.notes.write import NEW, OLD, Folder, SameLinesChanged, contents, current, parent, quiet, tag, write
from memory_tui.secrets.finder import masked
from memory_tui.workspace.roots import Roots

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KEEP_DAYS = 90
"""So long a change can be looked at and taken back."""
KEEP_BYTES = 256 * 1024 * 1024
"""So much room, compressed, the texts of all changes may take; the oldest make way."""
_DEEPEST, _DEEPEST_LARGE, _STEPPED_BYTES = 1024, 16, 1 << 26
"""How many differences a version may rest on: at most, of a text of any size, and how many bytes they may unpack to.

A person waits until all are unpacked, so the chain of a large text is shorter.
"""
_REST, _MOST_RESTS, _LARGEST_REST = 32, 64, 1 << 18
"""The last text that was read, and every so many below it, stay in memory: their neighbours are unpacked from them."""
_SHORTEST_PREFIX = 8
_MAGIC = b"\x28\xb5\x2f\xfd"
"""How each packed text begins, which is not kept."""
_PATCH, _NEAR = b"\x93", 1 << 15
"""How a text begins that is kept as what came between the bytes of before, as zstd never does; how far deflate sees."""
_LARGE, _LARGEST_WINDOW = 1 << 20, 27
"""Bytes from which a text is packed quickly, in a window as large as it is; the largest window, as a power of two."""
_MOST_COUNTED = 1 << 24
"""Bytes of two texts of which lines are compared."""
_DAY_SECONDS = 86_400.0
OTHERS = "others"
"""The kind of a change that somebody else made."""
T = TypeVar("T")
_P, _C = zstd.CompressionParameter, zstd.DecompressionParameter

_BEGAN = "SELECT began FROM note_scope WHERE id = ?"
"""From when on every note is known; NULL while changes of others are not written down."""
_NEXT = "UPDATE note_scope SET last = last + 1 WHERE id = ? RETURNING last"
_NEW_EDIT = f"INSERT INTO note_edit VALUES ({'?, ' * 11}NULL)"
_LOCK_SECONDS = 10.0
State = Literal["intent", "done", "refused", "draft"]
_UNSETTLED = """AND (state = 'intent' OR more <> '{"left": []}')"""
"""What selects the entries that were cut off, or have hidden files left."""


class Author(Struct, frozen=True):
    """Who made a change: the host and its session, and the rule that names them; without a host nobody knows."""

    host: str
    session: str
    rule: str


EDITOR = Author("", "", "editor")
"""Somebody, while a note was open in the person's own editor; the change that this program wrote down tells of it."""


class Edit(Struct, frozen=True):
    """One note in one change. `at` (epoch seconds) is when the file changed, at the latest when that was seen.

    `id` numbers the changes of a workspace, `place` the notes of one; `before` and `after` name texts, None where the
    note was not there. `plus` and `minus` count lines. `title` is that of a change that this program made.
    """

    id: int
    place: int
    at: float
    path: str
    before: int | None
    after: int | None
    plus: int
    minus: int
    kind: str = OTHERS
    title: str = ""
    author: Author | None = None


class Sight(Struct, frozen=True):
    """A note as it was seen: its bytes, None where it is gone, when they became so, and its size, times and device.

    One that is `fresh` was not there before; of any other that was never seen nothing is known to have changed.
    """

    path: str
    data: bytes | None
    at: float
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    device: int = 0
    fresh: bool = True


class Head(NamedTuple):
    """What a note was when it was last seen: its text, size, times and device."""

    blob: int
    size: int
    mtime_ns: int
    ctime_ns: int
    device: int


class ScopeNumbers(NamedTuple):
    """What is known of all notes of a workspace; None where nothing is.

    `start` is since when (epoch seconds) every change that was made is known, `began` when all notes were looked at
    last (ns), `viewed` the last change that a person looked at, `pruned` when the old was forgotten (epoch seconds).
    """

    start: float | None = None
    began: int | None = None
    viewed: int | None = None
    pruned: float | None = None


class RecordedNote(Struct, frozen=True):
    """One note of a recorded change: its texts before and after, and mode and time it had before."""

    path: str
    before: int | None
    after: int | None
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
    author: Author | None = None
    """Who made it, where this program did not."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The notes it is about."""
        return tuple(file.path for file in self.files)


class Journal:
    """What became of the notes of the workspace that `folder` names. Every method may raise EditRefused.

    What a writing method returned from is whole and flushed; what it raised from is not there. `folder` holds the lock,
    and what an earlier release kept there; it is made when the first change is written.
    """

    def __init__(self, folder: Path, database: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database or state_db.default_path()
        self.kept = partial(state_db.kept, self.database)
        """Lets what this thread reads and writes meanwhile share one connection."""
        self.clock = clock
        self.most_days: float = KEEP_DAYS
        self.most_bytes = KEEP_BYTES
        self._scope = folder.name
        self._old, self._checked = folder / "journal.jsonl", False
        """The journal of 0.2, and whether it was read, where there is one."""

    # --- reading ------------------------------------------------------------------------------------------------------

    def edits(
        self, path: str | None = None, *, since: int = 0, until: int = 0, before: float = 0, most: int = -1
    ) -> tuple[Edit, ...]:
        """Return the changes that were made, newest first.

        With `path` those of one note. Their numbers are above `since` and below `until`, their times earlier than
        `before` (epoch seconds); 0 sets no bound. At most `most` are returned, all of them for -1.
        """
        more = "AND e.at < ?5"
        values: tuple[object, ...] = (self._scope, since, until or sys.maxsize, most, before or math.inf)
        if path is not None:
            more += " AND e.path = (SELECT id FROM note_path WHERE scope = s.id AND path = ?6)"
            values = *values, path
        return self._edits(_sql("edits").format(more=more, order="DESC"), values)

    def without_author(self) -> tuple[Edit, ...]:
        """Return the 1,000 oldest changes of others of whom nobody asked yet who made them, oldest first."""
        # No change of this program, `c`, has them, and no author is written down.
        sql = _sql("edits").format(more="AND c.id IS NULL AND e.author IS NULL", order="ASC")
        return self._edits(sql, (self._scope, 0, sys.maxsize, 1000))

    def text(self, blob: int | None) -> bytes | None:
        """Return the text that is kept as `blob`. Raises EditRefused when it is gone or damaged."""
        if blob is None:
            return None
        if (data := self._read(lambda connection: _text(connection, blob), None)) is None:
            step = f"It would be in {self.database}; the notes are as they are."
            raise EditFailed("A text of the journal is gone or damaged.", step)
        return data

    def blob_of(self, data: bytes | None) -> int | None:
        """Return the text that these bytes are kept as, None where they are not."""
        return None if data is None else self._read(lambda connection: self._blob_of(connection, data), None)

    def heads(self, path: str | None = None) -> dict[str, Head]:
        """Return what each note was that was there when last seen: all, the note `path`, or those below that folder."""
        sql = """SELECT path, blob, size, mtime_ns, ctime_ns, device FROM note_path
            WHERE scope = (SELECT id FROM note_scope WHERE name = ?) AND blob NOT NULL"""
        values = [self._scope]
        if path is not None:
            # The letter behind the slash is 0: between the two is what lies below a folder.
            sql += " AND (path = ? OR path >= ? AND path < ?)"
            values += map(storable, (path, f"{path}/", f"{path}0"))
        return {path: Head(*columns) for path, *columns in self._rows(sql, values)}

    def numbers(self) -> ScopeNumbers:
        """Return what is known of all notes of the workspace."""
        sql = "SELECT at, began, viewed, pruned FROM note_scope LEFT JOIN note_start ON scope = id WHERE name = ?"
        rows = self._rows(sql, (self._scope,))
        return ScopeNumbers(*rows[0]) if rows else ScopeNumbers()

    def unviewed(self) -> tuple[Edit, ...]:
        """Return what others changed since a person last looked, newest first; nothing before the first look."""
        viewed = self.numbers().viewed
        return () if viewed is None else tuple(edit for edit in self.edits(since=viewed) if edit.kind == OTHERS)

    def entries(self, since: int = 0, more: str = "") -> tuple[JournalEntry, ...]:
        """Return all changes of this program after a number, oldest first; `more` is a further condition in SQL."""
        rows = self._rows(_sql("entries").format(more=more), (self._scope, since))
        return tuple(_entry(change, notes) for change, notes in groupby(rows, lambda row: row[:_CHANGE_COLUMNS]))

    def unsettled(self) -> tuple[JournalEntry, ...]:
        """Return the changes that were cut off, or left hidden files that a writer still had open, oldest first."""
        return self.entries(more=_UNSETTLED)

    def change_of(self, entry: JournalEntry) -> Change:
        """Return the recorded change with its texts."""
        files = (
            FileChange(note.path, self.text(note.before), self.text(note.after), note.mode, note.mtime_ns)
            for note in entry.files
        )
        return Change(entry.kind, entry.title, tuple(files))

    # --- writing ------------------------------------------------------------------------------------------------------

    def view(self) -> None:
        """Write down that a person has looked at every change until now."""
        sql = "UPDATE note_scope SET viewed = last WHERE id = ?"
        self._run(lambda connection, scope: connection.execute(sql, (scope,)))

    def set_authors(self, authors: Iterable[tuple[int, int, Author]]) -> None:
        """Write down who made changes, each by its number and place."""

        def write(connection: apsw.Connection, scope: int) -> None:
            """Name the author of each note of a change; `place` is which one of the change it is."""
            sql = "UPDATE note_edit SET author = ? WHERE scope = ? AND id = ? AND place = ?"
            for number, place, author in authors:
                connection.execute(sql, (row_id(connection, "note_author", **asdict(author)), scope, number, place))

        self._run(write)

    def observe(self, sights: Sequence[Sight], began: int | None = None) -> tuple[Edit, ...]:
        """Write down how notes differ from what they were; returns what became of them. Only while locked.

        With `began` (ns) every note was looked at, from then on.
        """

        def write(connection: apsw.Connection, scope: int) -> tuple[Edit, ...]:
            """Write down what each note holds; return what changed since it was looked at last."""
            # Notes that an unsettled change of this program is for are left out: who settles it writes down what they
            # were.
            sql = """SELECT p.path FROM note_change AS c JOIN note_edit AS e ON e.scope = ?1 AND e.id = c.id
                JOIN note_path AS p ON p.id = e.path WHERE c.scope = ?2 AND c.state = 'intent'"""
            changing = {path for (path,) in connection.execute(sql, (scope, self._scope))}
            edits = [self._observe(connection, scope, sight) for sight in sights if sight.path not in changing]
            # From the first look at all notes on every change is known, and is new to a person.
            if began is not None:
                sql = "UPDATE note_scope SET began = ?, viewed = coalesce(viewed, last) WHERE id = ?"
                connection.execute(sql, (began, scope))
                connection.execute("INSERT OR IGNORE INTO note_start VALUES (?, ?)", (scope, began / 1e9))
            return tuple(edit for edit in edits if edit is not None)

        return self._run(write)

    def tidy(self) -> None:
        """Forget what is too old or over a size, at most once a day. Only while the journal is locked."""
        pruned = self.numbers().pruned
        if pruned is None or abs(self.clock() - pruned) > _DAY_SECONDS:
            self.prune()

    def prune(self) -> int:
        """Forget what is too old or over a size, and texts that nothing names; returns how many changes.

        Only while the journal is locked.
        """
        return self._run(self._forget_old)

    def clear(self, *, others: bool = False) -> None:
        """Forget every change of this workspace, or those of `others` alone, and what each note was."""

        def clear(connection: apsw.Connection, scope: int) -> None:
            """Forget it; `scope` is the number of this workspace in the tables, where they do not have its name."""
            if not others:
                connection.execute("DELETE FROM note_change WHERE scope = ?", (self._scope,))
            ours = "SELECT id FROM note_change WHERE scope = ?2"
            connection.execute(f"DELETE FROM note_edit WHERE scope = ?1 AND id NOT IN ({ours})", (scope, self._scope))
            connection.execute("UPDATE note_path SET blob = NULL, size = NULL WHERE scope = ?", (scope,))
            connection.execute("UPDATE note_scope SET began = NULL, viewed = NULL WHERE id = ?", (scope,))
            connection.execute("DELETE FROM note_start WHERE scope = ?", (scope,))
            self._tidy(connection, scope)

        if self.database.exists():
            self._run(clear)

    @contextmanager
    def locked(self, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
        """Keep others from changing notes, and from settling a change that is on its way. Raises Busy, EditRefused."""
        try:
            durable.make_folder(self.folder)
            lock = wait_for(self._old, seconds=seconds)
        except OSError as error:
            raise unusable(f"{self.folder}: {error.strerror or error}") from None
        except IndexBusy:
            raise Busy("Another memory-tui is changing notes of this workspace.", "Try again in a moment.") from None
        except IndexUnavailable as error:
            raise EditFailed(error.message, "Check the folder of the journal.") from None
        with lock, self.kept():
            yield

    def begin(self, change: Change) -> JournalEntry:
        """Write down what is about to be done; its files have mode and time of the notes. Only while `locked`."""
        undoes, redoes = (change.of, 0) if change.kind == "undo" else (0, change.of)
        entry = JournalEntry(0, self.clock(), "intent", change.kind, change.title, undoes=undoes, redoes=redoes)

        def begin(connection: apsw.Connection, scope: int) -> JournalEntry:
            """Write the change down as an intent, behind what others made of its notes until now."""
            is_recording = connection.execute(_BEGAN, (scope,)).get is not None
            # What others made of the notes until now is written down first. No file has the size -1, so that whoever
            # looks next reads the note again.
            for file in change.files if is_recording else ():
                # A file may have a time that is still to come.
                at = min(entry.at, file.mtime_ns / 1e9) if file.mtime_ns else entry.at
                self._observe(connection, scope, Sight(file.path, file.before, at, size=-1))
            return self._put(connection, scope, entry, change.files)

        return self._run(begin)

    def record(self, change: Change, reason: str, since: int = 0) -> JournalEntry:
        """Write down a change that was made while the person's editor had a note. Only while `locked`.

        Changes of the note that were seen after the change `since` are a part of it, and are named so.
        """
        entry = JournalEntry(0, self.clock(), "done", change.kind, change.title, reason=reason)

        def record(connection: apsw.Connection, scope: int) -> JournalEntry:
            """Write the change down as done, with the editor that made it."""
            made = self._put(connection, scope, entry, change.files, settled=True)
            self._name_editor(connection, scope, made, since)
            return made

        return self._run(record)

    def settle(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write down how it ended; `files` are what the notes really held before and hold after."""
        end = replace(entry, at=self.clock())
        return self._run(lambda c, scope: self._put(c, scope, end, files, settled=end.state == "done"))

    def draft(self, view: ThreeWay, title: str, number: int = 0) -> JournalEntry:
        """Keep a text that could not be written, in the place of draft `number` unless 0. Only while `locked`."""
        files = (FileChange(view.path, view.base, view.mine), FileChange(view.path, view.base, view.other))
        return self.put(JournalEntry(number, self.clock(), "draft", "draft", title), files)

    def put(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write an entry down, with the texts of `files` unless it has them already; 0 gets the next number."""
        return self._run(lambda connection, scope: self._put(connection, scope, entry, files))

    # --- the tables ---------------------------------------------------------------------------------------------------

    def _put(
        self,
        connection: apsw.Connection,
        scope: int,
        entry: JournalEntry,
        files: Sequence[FileChange] | None = None,
        *,
        settled: bool = False,
    ) -> JournalEntry:
        """Write an entry, which gets the next number where it has 0, and return it with number and recorded notes.

        Where `files` is None the notes stay as they were recorded. The notes of an entry that is `settled` are now what
        it left.
        """
        entry = replace(entry, id=entry.id or connection.execute(_NEXT, (scope,)).get)
        fields = entry.id, entry.at, entry.state, entry.kind, entry.title, entry.undoes, entry.redoes, entry.reason
        values = self._scope, *map(storable, fields), json.dumps({"left": entry.left})
        connection.execute(f"INSERT OR REPLACE INTO note_change VALUES ({'?, ' * 9}?)", values)
        if files is None:
            connection.execute("UPDATE note_edit SET at = ? WHERE scope = ? AND id = ?", (entry.at, scope, entry.id))
        else:
            connection.execute("DELETE FROM note_edit WHERE scope = ? AND id = ?", (scope, entry.id))
            notes = [self._recorded(connection, scope, entry, place, file) for place, file in enumerate(files)]
            entry = replace(entry, files=tuple(notes))
        is_recording = connection.execute(_BEGAN, (scope,)).get is not None
        for note in entry.files if settled and is_recording else ():
            # No file has the size -1, so that whoever looks next reads the note.
            sql = """UPDATE note_path SET blob = ?, size = -1, mtime_ns = 0, ctime_ns = 0, device = 0
                WHERE scope = ? AND path = ?"""
            connection.execute(sql, (note.after, scope, storable(note.path)))
        return entry

    def _recorded(
        self, connection: apsw.Connection, scope: int, entry: JournalEntry, place: int, file: FileChange
    ) -> RecordedNote:
        """Write down the `place`th note of an entry with its texts.

        They are kept as what differs from the text that the note had when it was last seen, or after its last change.
        """
        path_id = row_id(connection, "note_path", scope=scope, path=file.path)
        last = "SELECT after FROM note_edit WHERE path = p.id AND after NOT NULL ORDER BY id DESC LIMIT 1"
        sql = f"SELECT coalesce(p.blob, ({last})) FROM note_path AS p WHERE p.id = ?"
        before = self._keep(connection, file.before, connection.execute(sql, (path_id,)).get)
        after = self._keep(connection, file.after, before)
        texts = before, after, *counted(file.before, file.after)
        connection.execute(_NEW_EDIT, (scope, entry.id, place, path_id, entry.at, *texts, file.mode, file.mtime_ns))
        return RecordedNote(file.path, before, after, file.mode, file.mtime_ns)

    def _name_editor(self, connection: apsw.Connection, scope: int, made: JournalEntry, since: int) -> None:
        """Name the editor for what the recorder saw of the note while it was open; what tells the same as `made` goes.

        `made` is the change that the editor made of one note, `since` the last one from before it was opened.
        """
        note = made.files[0]
        # Edits of that note between the two that no program of ours made and no author is known for.
        these = """WHERE scope = ?1 AND path = (SELECT id FROM note_path WHERE scope = ?1 AND path = ?2) AND id > ?3
            AND id < ?4 AND author IS NULL AND id NOT IN (SELECT id FROM note_change WHERE scope = ?5)"""
        values = scope, storable(note.path), since, made.id, self._scope
        same = "AND before IS ?6 AND after IS ?7"
        connection.execute(f"DELETE FROM note_edit {these} {same}", (*values, note.before, note.after))
        author_id = row_id(connection, "note_author", **asdict(EDITOR))
        connection.execute(f"UPDATE note_edit SET author = ?6 {these}", (*values, author_id))

    def _observe(self, connection: apsw.Connection, scope: int, sight: Sight) -> Edit | None:
        """Write down what became of one note since it was last seen; return that as an edit, None for nothing."""
        path_id = row_id(connection, "note_path", scope=scope, path=sight.path)
        last_blob, last_size = next(connection.execute("SELECT blob, size FROM note_path WHERE id = ?", (path_id,)))
        # A note without a size was never seen. Its first text is a change only if it is new and all notes were known.
        was_seen = last_size is not None
        if sight.data is None and not was_seen:
            return None
        last_data = _text(connection, last_blob)
        blob = self._keep(connection, sight.data, last_blob, last_data)
        edit = None
        is_known = was_seen or (sight.fresh and connection.execute(_BEGAN, (scope,)).get is not None)
        if blob != last_blob and is_known:
            number = connection.execute(_NEXT, (scope,)).get
            plus, minus = counted(last_data, sight.data)
            connection.execute(_NEW_EDIT, (scope, number, 0, path_id, sight.at, last_blob, blob, plus, minus, 0, 0))
            edit = Edit(number, 0, sight.at, sight.path, before=last_blob, after=blob, plus=plus, minus=minus)
        sql = "UPDATE note_path SET blob = ?, size = ?, mtime_ns = ?, ctime_ns = ?, device = ? WHERE id = ?"
        connection.execute(sql, (blob, sight.size, sight.mtime_ns, sight.ctime_ns, sight.device, path_id))
        return edit

    def _blob_of(self, connection: apsw.Connection, data: bytes) -> int | None:
        """Return the number of the kept text that `data` is; None where it is not kept."""
        sql = "SELECT id FROM note_blob WHERE hash = ?"
        # Two texts may have one hash, as it is short.
        blobs: list[tuple[Any, ...]] = connection.execute(sql, (blob_hash(data),)).fetchall()
        return next((blob for (blob,) in blobs if _text(connection, blob) == data), None)

    def _keep(
        self, connection: apsw.Connection, data: bytes | None, base: int | None, prefix: bytes | None = None
    ) -> int | None:
        """Keep a text as what differs from the text `base`; return its number, None for no text.

        `prefix` is the text of `base` where the caller has it. A text is kept whole where the chain of differences is
        as long as it may be, or the text of `base` too short.
        """
        if data is None:
            return None
        if data == prefix:
            return base
        if (blob := self._blob_of(connection, data)) is not None:
            return blob
        # Who reads a version waits until the whole chain is unpacked, so that of a large text is shorter.
        depth = 0 if base is None else connection.execute(_sql("depth"), (base,)).get
        # + 1, because a text may be empty.
        may_rest = depth < min(_DEEPEST, _DEEPEST_LARGE + _STEPPED_BYTES // (len(data) + 1))
        prefix = (prefix or _text(connection, base)) if may_rest else None
        if prefix is None or len(prefix) < _SHORTEST_PREFIX:
            base = prefix = None
        sql = "INSERT INTO note_blob (hash, base, data) VALUES (?, ?, ?)"
        connection.execute(sql, (blob_hash(data), base, _packed(data, prefix)))
        return connection.last_insert_rowid()

    def _forget_old(self, connection: apsw.Connection, scope: int) -> int:
        """Delete changes of this program that are too old, or too many for the room, with all edits of their time.

        Returns how many changes; one that is not settled yet is kept, however old it is.
        """
        oldest = self.clock() - self.most_days * _DAY_SECONDS
        last = connection.execute(_sql("too_much"), (scope, self.most_bytes)).get
        sql = "DELETE FROM note_change WHERE scope = ? AND (at < ? AND state <> 'intent' OR id <= ?)"
        connection.execute(sql, (self._scope, oldest, last))
        count = connection.changes()
        old_edits = """FROM note_edit WHERE scope = ?1 AND (at < ?2 OR id <= ?3)
            AND id NOT IN (SELECT id FROM note_change WHERE scope = ?4)"""
        values = scope, oldest, last, self._scope
        # From before the newest change that goes not everything is known any more.
        sql = f"UPDATE note_start SET at = max(at, coalesce((SELECT max(at) {old_edits}), 0)) WHERE scope = ?1"
        connection.execute(sql, values)
        connection.execute(f"DELETE {old_edits}", values)
        connection.execute("UPDATE note_scope SET pruned = ? WHERE id = ?", (self.clock(), scope))
        self._tidy(connection, scope)
        return count

    def _tidy(self, connection: apsw.Connection, scope: int) -> None:
        """Delete the texts, and the notes of a workspace, that nothing names."""
        connection.execute(_sql("unused_texts"))
        # A note without a text is gone; it is kept while an edit names it.
        sql = "DELETE FROM note_path WHERE scope = ? AND blob IS NULL AND id NOT IN (SELECT path FROM note_edit)"
        connection.execute(sql, (scope,))

    def _edits(self, sql: str, values: tuple[object, ...]) -> tuple[Edit, ...]:
        """Return the changes that a query of the form "edits" selects."""
        # Of a change of which nobody asked yet who made it host, session and rule are NULL.
        return tuple(
            Edit(*[*fields, None if rule is None else Author(host, session, rule)])
            for *fields, host, session, rule in self._rows(sql, tuple(map(storable, values)))
        )

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none where there are no tables yet."""
        return self._read(lambda connection: list(connection.execute(sql, values)), list[tuple[Any, ...]]())

    def _read(self, how: Callable[[apsw.Connection], T], nothing: T) -> T:
        """Return what `how` reads from the tables; `nothing` where there are none yet."""
        if not self._checked and self._old.exists():
            # To take over what 0.2 kept is a write.
            self._checked = True
            return self._run(lambda connection, _: how(connection))
        if not self.database.exists():
            return nothing
        return self._run(lambda c, _: how(c) if c.table_exists(None, "note_start") else nothing, write=False)

    def _run(self, how: Callable[[apsw.Connection, int], T], *, write: bool = True) -> T:
        """Return what `how` makes of the connection and the number of the workspace, in one transaction.

        To read only, without `write`, no table is made, and the number is 0.
        """
        try:
            # A broken database is set aside with a warning; the second attempt makes a new one.
            for tell in (state_db.warn, None):
                with suppress(state_db.SetAside), state_db.transaction(self.database, write=write, tell=tell) as c:
                    scope = 0
                    if write:
                        c.execute(_sql("tables"))
                        scope = row_id(c, "note_scope", name=self._scope)
                        if self._old.exists():
                            self._take_over(c, scope)
                    outcome = how(c, scope)
                    break
        except StateUnavailable as error:
            raise unusable(error.message.removesuffix(".").replace(" cannot be used", "")) from None
        return outcome

    # --- the journal of 0.2 -------------------------------------------------------------------------------------------

    def _take_over(self, connection: apsw.Connection, scope: int) -> None:
        """Read the journal of 0.2 once, a change a line; one that is cut off, or lacks a text of its, is left out."""
        if state_db.was_taken_over(connection, "note_change", self._scope):
            return
        state_db.mark_taken_over(connection, "note_change", self._scope)
        for line in self._old.read_bytes().split(b"\n"):
            with suppress(msgspec.MsgspecError, OSError, zlib.error):
                fields = msgspec.json.decode(line, type=dict[str, Any])
                files = [self._old_file(**note) for note in fields.pop("files", ())]
                entry = msgspec.convert(fields, JournalEntry)
                # Of two lines about one change the later one counts; titles of the oldest may hold secrets.
                self._put(connection, scope, replace(entry, title=masked(entry.title)), files)
                connection.execute("UPDATE note_scope SET last = max(last, ?) WHERE id = ?", (entry.id, scope))

    def _old_file(self, before: str | None, after: str | None, **fields: Any) -> FileChange:  # noqa: ANN401 - of JSON
        """Return a note of a change; `before` and `after` name files with its texts. Raises OSError, zlib.error."""
        paths = (self.folder / "texts" / f"{name}.z" if name is not None else None for name in (before, after))
        old, new = (zlib.decompress(path.read_bytes()) if path is not None else None for path in paths)
        return FileChange(before=old, after=new, **fields)


@cache
def _sql(name: str) -> str:
    """Return the statements of journal.sql below the comment that has this name."""
    text = Path(__file__).with_name("journal.sql").read_text("utf-8")
    return text.partition(f"-- {name}: ")[2].partition("\n")[2].partition("\n\n-- ")[0]


# --- texts -----------------------------------------------------------------------------------------------------------


def blob_hash(data: bytes) -> int:
    """Return what tells a text from others mostly: the beginning of its SHA-256."""
    return int.from_bytes(hashlib.sha256(data).digest()[:4], signed=True)


def counted(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Count the lines that came and went; one that only moved is neither. Of huge texts line ends are counted."""
    old, new = before or b"", after or b""
    if len(old) + len(new) > _MOST_COUNTED:
        more = new.count(b"\n") - old.count(b"\n")
        return max(0, more), max(0, -more)
    old_lines, new_lines = Counter(old.splitlines(keepends=True)), Counter(new.splitlines(keepends=True))
    return (new_lines - old_lines).total(), (old_lines - new_lines).total()


def _packed(data: bytes, prefix: bytes | None) -> bytes:
    """Compress a text: where it is near `prefix` as what differs, else whole, with `prefix` as dictionary."""
    size = len(data) + len(prefix or b"")
    if prefix is not None and size < _LARGE:
        head = _common_start(data, prefix)
        tail = _common_start(data[head:][::-1], prefix[head:][::-1])
        # What stands between the beginning and the end that both texts share.
        middle = data[head : len(data) - tail]
        if len(middle) < _NEAR:
            # -15: no head and no check sum; the hash of the text checks it.
            coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, prefix)
            # MessagePack begins three values with the byte _PATCH, by which `_unpacked` knows them.
            return msgspec.msgpack.encode((head, tail, coder.compress(middle) + coder.flush()))
    # A large text is packed more quickly, in a window that reaches back to its beginning and over its prefix.
    options: dict[int, int] = {_P.compression_level: 3 if size > _LARGE else 9}
    if size > _LARGE:
        options |= {_P.window_log: min(_LARGEST_WINDOW, size.bit_length()), _P.enable_long_distance_matching: 1}
    dictionary = None if prefix is None else zstd.ZstdDict(prefix, is_raw=True).as_prefix
    return zstd.compress(data, options=options, zstd_dict=dictionary).removeprefix(_MAGIC)


def _common_start(first: bytes, second: bytes) -> int:
    """Count the bytes with which both begin."""
    most = min(len(first), len(second))
    # As two large numbers: bits that differ, from the first such byte on. A loop over bytes takes fifty times as long.
    different = int.from_bytes(first[:most]) ^ int.from_bytes(second[:most])
    return most - (different.bit_length() + 7) // 8


def _text(connection: apsw.Connection, blob: int | None) -> bytes | None:
    """Unpack a text, from the nearest text in memory that it rests on, or else from the whole one that it rests on.

    None where one of them is gone or damaged.
    """
    steps: list[tuple[int, int, bytes]] = []
    """Number, hash and packed text of what is unpacked, the last one first."""
    text = digest = None
    base = blob
    while base is not None and text is None:
        row = connection.execute("SELECT hash, base, data FROM note_blob WHERE id = ?", (base,)).fetchone()
        if row is None:
            return None
        number = base
        digest, base, packed = row
        text = _rests.get((number, digest))
        if text is None:
            steps.append((number, digest, packed))
    for steps_left, (number, digest, packed) in reversed(list(enumerate(steps))):
        try:
            text = _unpacked(packed, text)
        except (zstd.ZstdError, zlib.error, msgspec.MsgspecError, ValueError, TypeError):
            return None
        # The text itself, at 0 steps, and every so many below it stay in memory; the oldest make way.
        if not steps_left % _REST and len(text) < _LARGEST_REST and blob_hash(text) == digest:
            _rests[number, digest] = text
            for key in [*_rests][:-_MOST_RESTS]:
                _rests.pop(key, None)
    # `digest` is the one of `blob`, as that is unpacked last.
    return text if text is not None and blob_hash(text) == digest else None


_rests: dict[tuple[int, int], bytes] = {}
"""Number and hash of a text -> the text, the one that was unpacked first in front."""


def _unpacked(packed: bytes, prefix: bytes | None) -> bytes:
    """Return the text that `_packed` packed. Raises ZstdError, zlib.error, MsgspecError, ValueError, TypeError."""
    if prefix is not None and packed[:1] == _PATCH:
        head, tail, middle = msgspec.msgpack.decode(packed)
        return prefix[:head] + zlib.decompressobj(-15, prefix).decompress(middle) + prefix[len(prefix) - tail :]
    dictionary = None if prefix is None else zstd.ZstdDict(prefix, is_raw=True).as_prefix
    return zstd.decompress(_MAGIC + packed, dictionary, {_C.window_log_max: _LARGEST_WINDOW})


# --- helpers ---------------------------------------------------------------------------------------------------------

_CHANGE_COLUMNS = 9
"""So many columns of "entries" tell of a change, the others of one of its notes: NULL where it has none."""


def _entry(change: tuple[Any, ...], rows: Iterable[tuple[Any, ...]]) -> JournalEntry:
    """Return a change: `change` are its own columns; each of `rows` has them again, and those of one of its notes."""
    number, at, state, kind, title, undoes, redoes, more, reason = change
    notes = (row[_CHANGE_COLUMNS:] for row in rows)
    files = tuple(RecordedNote(path, *fields) for path, *fields in notes if path is not None)
    left = tuple(json.loads(more)["left"])
    return JournalEntry(number, at, state, kind, title, files, undoes=undoes, redoes=redoes, left=left, reason=reason)


def row_id(connection: apsw.Connection, table: str, **columns: str | int) -> int:
    """Return the `id` of the row of `table` with these values, which is made where there is none."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    values = tuple(map(storable, columns.values()))
    connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", values)
    return int(connection.execute(f"SELECT id FROM {table} WHERE ({names}) = ({marks})", values).get)


def storable(value: Any) -> Any:  # noqa: ANN401 - what SQLite takes
    """Return a text without what UTF-8 cannot hold, anything else as it is."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def unusable(what: str) -> EditFailed:
    """Return the error of a journal that cannot be used."""
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
    for entry in journal.unsettled():
        try:
            if entry.state == "intent":
                settled.append(settle(roots, journal, entry))
            else:
                # The change itself is settled, only its hidden files are left. What others wrote to them is merged
                # into the notes; where the change was taken back, they hold only what was never written.
                left = _merge_hidden_files(roots, journal, entry) if entry.state == "done" else ()
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
        left = _merge_hidden_files(roots, journal, entry)
        # Which notes hold what the change was to make. Without a `reason` it was cut off, and this is the next start.
        made = [is_made(file, current(roots, file.path)) for file in files]
        if not any(made):
            end = replace(entry, state="refused", reason=reason or CUT_OFF)
        elif all(made):
            end = replace(entry, state="done", reason="" if reason else FINISHED)
        else:
            end = _take_back(roots, entry, [(at, files[at]) for at, was_made in enumerate(made) if was_made])
            end = replace(end, reason=reason) if reason and end.state == "refused" else end
        end = replace(end, left=clear(roots, entry, left))
        return journal.settle(end, [_outcome(roots, file) for file in files] if end.state == "done" else None)
    except EditRefused:
        raise
    except MemoryTuiError as error:
        return journal.settle(replace(entry, state="refused", reason=f"{HALF}: {error.message}"))


def is_made(change: FileChange, now: bytes | None) -> bool:
    """Return whether a note that holds `now` has had `change` made to it, whatever others did before or after."""
    before, after = change.before, change.after
    if now in (before, after):
        return now == after
    # A note that was made and then added to still begins with what it was made with.
    if before is None:
        return now is not None and after is not None and now.startswith(after)
    if after is not None and now is not None and after.startswith(before):
        # Lines that were only added are there or not; a merge would add them a second time.
        return now.startswith(before) and after[len(before) :].strip(b"\r\n") in now[len(before) :]
    # It is made where a merge adds nothing to the note, or where it clashes and can be merged out of the note.
    there = merge(before, after, now).merged
    return there == now if there is not None else merge(after, before, now).merged is not None


def clear(roots: Roots, entry: JournalEntry, left: Collection[str] = ()) -> tuple[str, ...]:
    """Remove the hidden files of a change but those that a writer has open, and flush its folders; returns those.

    Only then may the journal say that it is done. Raises EditFailed.
    """
    for number, file in enumerate(entry.files):
        with parent(roots, file.path) as (folder, _):
            if folder is None:
                continue
            try:
                folder.clear(tag(entry.id, number), left)
                folder.sync()
            except OSError as error:
                what = f"The folder of {file.path} cannot be written: {error.strerror}."
                raise EditFailed(what, "Check the disk.") from None
    return tuple(left)


def _take_back(roots: Roots, entry: JournalEntry, files: list[tuple[int, FileChange]]) -> JournalEntry:
    """Take back the `files` that were made, by their numbers in the entry; return the entry as it ended.

    It is "refused" when all are taken back, "done" by half where others have changed one of them since.
    """
    end = replace(entry, state="refused", reason=TAKEN_BACK)
    for number, file in reversed(files):
        try:
            # "b", for back: the hidden files of the change itself may still lie there.
            write(roots, file.reverse(), tag(entry.id, number) + "b")
        except SameLinesChanged:
            end = replace(entry, state="done", reason=HALF)
    return end


def _merge_hidden_files(roots: Roots, journal: Journal, entry: JournalEntry) -> tuple[str, ...]:
    """Merge into the notes what others wrote to the files that were replaced, which lie beside them as hidden files.

    Returns the names of those that a writer has open.
    """
    left: list[str] = []
    for number, file in enumerate(journal.change_of(entry).files):
        hidden = tag(entry.id, number)
        with parent(roots, file.path) as (folder, name):
            for beside in folder.names(hidden) if folder is not None else ():
                if folder is None or not beside.endswith((NEW, OLD)):
                    continue
                text, closed = _read_hidden_file(folder, beside)
                if not closed:
                    left.append(beside)
                elif text not in (file.before, file.after):
                    # What somebody wrote late into the old file, as a change of what the note held before ours. With
                    # "l" its hidden files have names of their own.
                    _merge_late(roots, journal, entry, replace(file, after=text), folder.read(name), hidden + "l")
    return tuple(left)


def _merge_late(
    roots: Roots, journal: Journal, entry: JournalEntry, late: FileChange, now: bytes | None, hidden: str
) -> None:
    """Write what came `late` to a replaced file into the note, which holds `now`; where they touch it is a draft."""
    both = merge(late.before, now, late.after)
    if now is None:
        # The note was on its way out when somebody wrote to it: it comes back.
        write(roots, replace(late, before=None), hidden)
    elif both.merged is None:
        journal.draft(ThreeWay(late.path, late.before, late.after, now, both), f"Late lines of: {entry.title}")
    elif both.merged != now:
        write(roots, FileChange(late.path, now, both.merged), hidden)


def _outcome(roots: Roots, file: FileChange) -> FileChange:
    """Return the change as it came out: what the note holds now, and what it would hold without the change."""
    now = current(roots, file.path)
    without = merge(file.after, file.before, now).merged
    return replace(file, before=without if without is not None else file.before, after=now)


def _read_hidden_file(folder: Folder, hidden: str) -> tuple[bytes, bool]:
    """Return the content of a hidden file, and whether nobody has it open to write any more."""
    descriptor = folder.open(hidden)
    try:
        # Asked once, without waiting; where it cannot be known (None), it counts as closed.
        closed = quiet(descriptor, 0) is not False
        return contents(descriptor, hidden), closed
    finally:
        os.close(descriptor)


# --- what is typed ---------------------------------------------------------------------------------------------------

_UNSAVED = state_db.Table("unsaved_text")


class Unsaved(Struct, frozen=True):
    """The `text` in an editor of the process `owner` at `at` (epoch seconds), begun on `before` of the note `path`."""

    path: str
    at: float
    before: bytes | None
    text: str
    key: str = ""
    owner: Holder | None = None


class Typing:
    """Keeps what one editor holds of the note `path`, beside `journal`, in the place of what it `began` with.

    Methods may be called from any thread; each names its `turn`, and one that comes after a later turn does nothing,
    so that a slow writing never brings back what was saved meanwhile.
    """

    def __init__(self, journal: Journal, path: str, began: Unsaved | None = None) -> None:
        self._records, self._path = _unsaved(journal), path
        # One record, so that a kill leaves one text: an older one would come back after the newer was saved.
        self._key = began.key if began is not None else f"{os.getpid()} {path}"
        self._owner = Holder(os.getpid(), process_start(os.getpid()), time.time())
        self._lock = threading.Lock()
        self._turn = 0

    def keep(self, turn: int, text: str, before: bytes | None) -> None:
        """Keep `text`, in the place of what was kept last. Raises EditRefused when the disk does not take it."""
        value = msgspec.to_builtins(Unsaved(self._path, time.time(), before, text, owner=self._owner))
        try:
            self._put(turn, value)
        except StateUnavailable as error:
            what = f"Your typing is not protected against a crash: {error.message}"
            raise EditFailed(what, "Press ctrl+s to save the note.") from None

    def drop(self, turn: int) -> None:
        """Forget what was typed: it is in the note, or nobody wants it. Raises EditRefused when it stays."""
        try:
            self._put(turn, None)
        except StateUnavailable as error:
            raise EditFailed(f"Your unsaved text is still stored: {error.message}", error.next_step) from None

    def _put(self, turn: int, value: object) -> None:
        """Store `value`, or remove what is stored for None, unless a later turn was first."""
        with self._lock:
            if turn >= self._turn:
                self._turn = turn
                if value is not None or self._key in self._records.read():
                    self._records.put(self._key, value)


def left(journal: Journal, path: str | None = None) -> tuple[Unsaved, ...]:
    """Return what editors that are gone left unsaved of `path`, or of every note, newest first. Raises EditRefused."""
    records = _unsaved(journal)
    try:
        every = (replace(msgspec.convert(value, Unsaved), key=key) for key, value in records.read().items())
        # What another process that still runs has in its editor is not left; what an editor of this one kept is.
        gone = (text for text in every if text.owner is None or text.owner.here or not is_alive(text.owner))
        texts = sorted(gone, key=lambda text: -text.at)
        while texts and texts[-1].at < time.time() - KEEP_DAYS * 86_400:
            records.remove(texts.pop().key)
    except StateUnavailable as error:
        raise unusable(error.message.removesuffix(".")) from None
    return tuple(text for text in texts if path in (None, text.path))


def _unsaved(journal: Journal) -> state_db.ScopedRecords:
    """Return the texts of the workspace that were typed and not saved, by their keys; files of 0.2 are read once."""

    def old() -> dict[str, Any]:
        """Return what 0.2 kept, each text in a file of its own."""
        return {file.stem: json.loads(file.read_bytes()) for file in (journal.folder / "unsaved").glob("*.json")}

    return _UNSAVED.of(journal.folder.name, old, path=journal.database)
