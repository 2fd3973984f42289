"""The journal keeps every change of notes with its inverse, and drafts that were not written, in the state database.

A change is written down before the first note is touched (`intent`) and again when all are (`done`, or `refused` when
nothing was changed). What is an intent alone was cut off by an error of the disk or by a crash: it counts as made when
every note has it, else it is taken back. Files that a writer had kept open are looked after then, too.

It is the part of the record that this program writes about itself. The journal of 0.2, a file of lines beside a folder
of texts, is read once and stays.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable, state_db
from memory_tui.errors import EditFailed, EditRefused, IndexUnavailable, MemoryTuiError, StateUnavailable
from memory_tui.locks import Holder, WriterLock, is_alive, process_start
from memory_tui.notes.changes import Busy, Change, FileChange, ThreeWay
from memory_tui.notes.merge import merge
from memory_tui.notes.record import EDITOR, KEEP_DAYS, Author, Record, Sight, T, storable, unusable, value
from memory_tui.notes.write import NEW, OLD, Folder, SameLinesChanged, contents, current, parent, quiet, tag, write
from memory_tui.secrets.finder import masked
from memory_tui.workspace.roots import Roots

_LOCK_SECONDS = 10.0
State = Literal["intent", "done", "refused", "draft"]
_ENTRIES = """
SELECT json_object(
  'id', id, 'at', at, 'state', state, 'kind', kind, 'title', title, 'undoes', undoes, 'redoes', redoes,
  'reason', reason, 'more', json(more), 'files', json((
    SELECT json_group_array(json_object(
      'path', p.path, 'before', before, 'after', after, 'mode', mode, 'mtime_ns', e.mtime_ns
    ) ORDER BY place) FROM note_edit AS e JOIN note_path AS p ON p.id = e.path
    WHERE e.scope = (SELECT id FROM note_scope WHERE name = c.scope) AND e.id = c.id
  ))
) FROM note_change AS c WHERE scope = ? AND id > ? ORDER BY id
"""


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


class Journal(Record):
    """What this program changed in the workspace that `folder` names. Every method may raise EditRefused.

    `folder` holds the lock, and what an earlier release kept there; it is made when the first change is written.
    """

    _checked = False
    """Whether the journal of 0.2 was read, where there is one."""

    # --- reading -----------------------------------------------------------------------------------------------------

    def entries(self, since: int = 0) -> tuple[JournalEntry, ...]:
        """Return all changes of this program after a number, oldest first."""
        values = self._scope, since
        return self._read(lambda connection: tuple(map(_entry, connection.execute(_ENTRIES, values))), ())

    def has_unsettled(self) -> bool:
        """Return whether a change was cut off, or left hidden files that a writer still had open."""
        return any(entry.state == "intent" or entry.left for entry in self.entries())

    def change_of(self, entry: JournalEntry) -> Change:
        """Return the recorded change with its texts."""
        files = (
            FileChange(note.path, self.text(note.before), self.text(note.after), note.mode, note.mtime_ns)
            for note in entry.files
        )
        return Change(entry.kind, entry.title, tuple(files))

    # --- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
        """Keep others from changing notes, and from settling a change that is on its way. Raises Busy, EditRefused."""
        until = time.monotonic() + seconds
        try:
            durable.make_folder(self.folder)
            while (lock := WriterLock.acquire(self._old)) is None:
                if time.monotonic() > until:
                    raise Busy("Another memory-tui is changing notes of this workspace.", "Try again in a moment.")
                time.sleep(0.01)
        except OSError as error:
            raise unusable(f"{self.folder}: {error.strerror or error}") from None
        except IndexUnavailable as error:
            raise EditFailed(error.message, "Check the folder of the journal.") from None
        with lock:
            yield

    def begin(self, change: Change) -> JournalEntry:
        """Write down what is about to be done; its files have mode and time of the notes. Only while `locked`."""
        undoes, redoes = (change.of, 0) if change.kind == "undo" else (0, change.of)
        entry = JournalEntry(0, self.clock(), "intent", change.kind, change.title, (), undoes, redoes)

        def begin(connection: apsw.Connection) -> JournalEntry:
            # What somebody else made of the notes before comes first.
            scope = self._scope_id(connection)
            for file in change.files if self._began(connection, scope) is not None else ():
                at = min(entry.at, file.mtime_ns / 1e9 or entry.at)
                self._observe(connection, scope, Sight(file.path, file.before, at, -1))
            return self._put(connection, entry, change.files)

        return self._write(begin)

    def record(self, change: Change, reason: str, since: int = 0) -> JournalEntry:
        """Write down a change that was made while the person's editor had a note. Only while `locked`.

        What was seen of it since the number `since` is told by this one.
        """
        entry = JournalEntry(0, self.clock(), "done", change.kind, change.title, reason=reason)

        def record(connection: apsw.Connection) -> JournalEntry:
            made = self._put(connection, entry, change.files, settled=True)
            self._set_aside(connection, made, since)
            return made

        return self._write(record)

    def settle(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write down how it ended; `files` are what the notes really held before and hold after."""
        end = replace(entry, at=self.clock())
        return self._write(lambda connection: self._put(connection, end, files, settled=end.state == "done"))

    def draft(self, view: ThreeWay, title: str, number: int = 0) -> JournalEntry:
        """Keep a text that could not be written, in the place of draft `number` unless 0. Only while `locked`."""
        files = (FileChange(view.path, view.base, view.mine), FileChange(view.path, view.base, view.other))
        return self.put(JournalEntry(number, self.clock(), "draft", "draft", title), files)

    def put(self, entry: JournalEntry, files: Sequence[FileChange] | None = None) -> JournalEntry:
        """Write an entry down, with the texts of `files` unless it has them already; 0 gets the next number."""
        return self._write(lambda connection: self._put(connection, entry, files))

    # --- the tables --------------------------------------------------------------------------------------------------

    def _put(
        self,
        connection: apsw.Connection,
        entry: JournalEntry,
        files: Sequence[FileChange] | None = None,
        *,
        settled: bool = False,
    ) -> JournalEntry:
        """Write an entry; the notes of one that is `settled` are now what it left."""
        scope = self._scope_id(connection)
        numbered = replace(entry, id=entry.id or self._next(connection, scope))
        if files is not None:
            recorded = tuple(self._recorded(connection, scope, file) for file in files)
            numbered = replace(numbered, files=recorded)
        more = json.dumps({"left": entry.left})
        fields = numbered.id, entry.at, entry.state, entry.kind, entry.title, entry.undoes, entry.redoes, entry.reason
        connection.execute(
            f"INSERT OR REPLACE INTO note_change VALUES ({'?, ' * 9}?)", (self._scope, *map(storable, fields), more)
        )
        connection.execute("DELETE FROM note_edit WHERE scope = ? AND id = ?", (scope, numbered.id))
        for place, note in enumerate(numbered.files):
            path = self._path_id(connection, scope, note.path)
            key = scope, numbered.id, place
            self._insert(connection, key, path, entry.at, note.before, note.after, None, note.mode, note.mtime_ns)
            if settled and self._began(connection, scope) is not None:
                # Who looks next reads it, whatever its size and time are.
                sql = "UPDATE note_path SET blob = ?, size = -1, mtime_ns = 0, ctime_ns = 0, device = 0 WHERE id = ?"
                connection.execute(sql, (note.after, path))
        return numbered

    def _recorded(self, connection: apsw.Connection, scope: int, file: FileChange) -> RecordedNote:
        """Keep the texts of a note."""
        path = self._path_id(connection, scope, file.path)
        last = "SELECT after FROM note_edit WHERE path = p.id AND after NOT NULL ORDER BY id DESC LIMIT 1"
        sql = f"SELECT coalesce(p.blob, ({last})) FROM note_path AS p WHERE p.id = ?"
        before = self._keep(connection, file.before, value(connection, sql, path) or None)
        return RecordedNote(file.path, before, self._keep(connection, file.after, before), file.mode, file.mtime_ns)

    def _set_aside(self, connection: apsw.Connection, made: JournalEntry, since: int) -> None:
        """Name the editor for what was seen of the note meanwhile; what tells the same as this change goes."""
        scope, note = self._scope_id(connection), made.files[0]
        these = """WHERE scope = ?1 AND path = (SELECT id FROM note_path WHERE scope = ?1 AND path = ?2) AND id > ?3
            AND id < ?4 AND author IS NULL AND id NOT IN (SELECT id FROM note_change WHERE scope = ?5)"""
        values = scope, storable(note.path), since, made.id, self._scope
        same = "AND before IS ?6 AND after IS ?7"
        connection.execute(f"DELETE FROM note_edit {these} {same}", (*values, note.before, note.after))
        editor = self._author_id(connection, EDITOR)
        connection.execute(f"UPDATE note_edit SET author = ?6 {these}", (*values, editor))

    # --- the journal of 0.2 ------------------------------------------------------------------------------------------

    @property
    def _old(self) -> Path:
        return self.folder / "journal.jsonl"

    def _read(self, how: Callable[[apsw.Connection], T], nothing: T) -> T:
        if self._checked or not self._old.exists():
            return super()._read(how, nothing)
        self._checked = True
        return self._write(how)

    def _prepare(self, connection: apsw.Connection) -> None:
        """Read the lines of a file once; what is cut off, or lacks one of its texts, is left out."""
        super()._prepare(connection)
        if not self._old.exists() or state_db.was_taken_over(connection, "note_change", self._scope):
            return
        state_db.mark_taken_over(connection, "note_change", self._scope)
        scope = self._scope_id(connection)
        for line in self._old.read_bytes().split(b"\n"):
            with suppress(msgspec.MsgspecError, OSError, zlib.error):
                fields = msgspec.json.decode(line, type=dict[str, Any])
                texts = [(note.pop("before"), note.pop("after"), note) for note in fields.pop("files", ())]
                files = [FileChange(before=self._old_text(b), after=self._old_text(a), **rest) for b, a, rest in texts]
                entry = msgspec.convert(fields, JournalEntry)
                # Of two lines about one change the later one counts; titles of the oldest ones are as they were.
                self._put(connection, replace(entry, title=masked(entry.title)), files)
                connection.execute("UPDATE note_scope SET last = max(last, ?) WHERE id = ?", (entry.id, scope))

    def _old_text(self, name: str | None) -> bytes | None:
        return None if name is None else zlib.decompress((self.folder / "texts" / f"{name}.z").read_bytes())


def undo_stack(entries: tuple[JournalEntry, ...], kind: str) -> tuple[JournalEntry, ...]:
    """Return what can be undone or redone, the next one first; a new change ends what can be redone."""
    by_id = {entry.id: entry for entry in entries}
    undo: list[JournalEntry] = []
    redo: list[JournalEntry] = []
    for entry in entries:
        if entry.state != "done" or entry.kind == "trust":
            # Changes of trust wrote OpenClaw's ledger, which is only read now.
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


def why_not(entries: tuple[JournalEntry, ...], number: int, kind: str) -> str:
    """Return why change `number` is not among those that can be undone or redone, as a sentence."""
    entry = next((entry for entry in entries if entry.id == number), None)
    if entry is None:
        return f"There is no change {number}."
    if of := entry.undoes or entry.redoes:
        return f"Change {number} is {'an undo' if entry.undoes else 'a redo'} of change {of}: name that one."
    if entry.state != "done" or entry.kind == "trust":
        return f"Change {number} wrote no note."
    return f"Change {number} is {'undone already' if kind == 'undo' else 'not undone, or others came after it'}."


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    fields = json.loads(row[0])
    return msgspec.convert(fields | fields.pop("more"), JournalEntry)


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
    """The `text` in an editor of the process `owner` at `at` (epoch seconds), begun on `before` of the note `path`."""

    path: str
    at: float
    before: bytes | None
    text: str
    key: str = ""
    owner: Holder | None = None

    @property
    def is_left(self) -> bool:
        """Whether no other process that runs has it in its editor."""
        return self.owner is None or self.owner.here or not is_alive(self.owner)


class Typing:
    """Keeps what one editor holds of the note `path`, beside `journal`, instead of what it `began` with.

    Methods may be called from any thread; each names its `turn`, and one that comes after a later turn does nothing,
    so that a slow writing never brings back what was saved meanwhile.
    """

    def __init__(self, journal: Journal, path: str, began: Unsaved | None = None) -> None:
        self._records, self._path = _unsaved(journal), path
        self._keys = [f"{os.getpid()} {path}", *([began.key] if began is not None else [])]
        self._owner = Holder(os.getpid(), process_start(os.getpid()), time.time())
        self._lock = threading.Lock()
        self._turn = 0

    def keep(self, turn: int, text: str, before: bytes | None) -> None:
        """Keep `text`, in the place of what was kept last. Raises EditRefused when the disk does not take it."""
        value = msgspec.to_builtins(Unsaved(self._path, time.time(), before, text, owner=self._owner))
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
    """Return what editors that are gone left unsaved of `path`, or of every note, newest first. Raises EditRefused."""
    records = _unsaved(journal)
    try:
        every = (replace(msgspec.convert(value, Unsaved), key=key) for key, value in records.read().items())
        texts = sorted((text for text in every if text.is_left), key=lambda text: -text.at)
        while texts and texts[-1].at < time.time() - KEEP_DAYS * 86_400:
            records.remove(texts.pop().key)
    except StateUnavailable as error:
        raise unusable(error.message.removesuffix(".")) from None
    return tuple(text for text in texts if path in (None, text.path))


def _unsaved(journal: Journal) -> state_db.ScopedRecords:
    def old() -> dict[str, Any]:
        files = (journal.folder / "unsaved").glob("*.json")
        return {file.stem: json.loads(file.read_bytes()) for file in files}

    return _UNSAVED.of(journal.folder.name, old, path=journal.database)
