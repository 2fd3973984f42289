"""The journal keeps every change with its inverse. It keeps unsaved drafts, too, and lies outside the workspace.

A change is written down before the first note is touched (`intent`) and again when all are (`done`, or `refused` when
nothing was changed). What is found as an intent alone was cut off; recover.py finishes it or takes it back.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from memory_tui import durable
from memory_tui.config.places import private_name
from memory_tui.core.errors import EditFailed, EditRefused, IndexUnavailable
from memory_tui.core.secret_finder import masked
from memory_tui.locks import WriterLock
from memory_tui.notes.changes import Busy, Change, FileChange, ThreeWay

if TYPE_CHECKING:
    from memory_tui.openclaw.trust import Trust

KEEP_DAYS = 90
"""So long a change can be looked at and taken back."""
KEEP_BYTES = 256 * 1024 * 1024
"""So much room, compressed, the texts of all changes may take; the oldest make way."""
LOST = "lost"
"""The kind of an entry about lines that another program took out of a note; undo passes it over."""
_LOCK_SECONDS = 10.0
State = Literal["intent", "done", "refused", "draft"]


class RecordedNote(Struct, frozen=True):
    """One note of a recorded change: names of its texts before and after, and mode and time it had before."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0
    mtime_ns: int = 0


class JournalEntry(Struct, frozen=True):
    """One line of the journal; a later line with the same `id` is in its place. `at` is in epoch seconds.

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
    ledger: tuple[str, str] | tuple[()] = ()
    """The row of its note in OpenClaw's ledger, before and after, where it changed that alone."""

    def __post_init__(self) -> None:
        # Journals of earlier versions hold titles as they were.
        force_setattr(self, "title", masked(self.title))

    @property
    def paths(self) -> tuple[str, ...]:
        """The notes it is about."""
        return tuple(file.path for file in self.files)

    def ledger_notes(self, kind: str) -> tuple[str, ...]:
        """What to "undo" or "redo" it does to trust, where it changed OpenClaw's ledger alone."""
        becomes = "untrusted" if kind == "undo" else "agent"
        return tuple(
            f"Trust: {path} becomes {becomes} in OpenClaw's ledger again." for path in self.paths if self.ledger
        )


def journal_folder(workspace: Path) -> Path:
    """The folder of the journal of `workspace`, in the user's state folder; two names of one folder share it."""
    import platformdirs

    folder = platformdirs.user_state_path("memory-tui", appauthor=False)
    return folder / "journal" / private_name(workspace)


class Journal:
    """The journal in `folder`, made when the first change is written. Every method may raise EditRefused.

    What a writing method returned from is whole and flushed; what it raised from is not there.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._file = folder / "journal.jsonl"

    # --- reading ---------------------------------------------------------------------------------------------------

    def entries(self) -> tuple[JournalEntry, ...]:
        """All changes, oldest first, each as its last line says; a line that was cut off is left out."""
        try:
            lines = self._file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _broken(self._file, error) from None
        found: dict[int, JournalEntry] = {}
        for line in lines:
            if (entry := _parsed(line)) is not None:
                found[entry.id] = entry
        return tuple(entry for _, entry in sorted(found.items()))

    def has_unsettled(self) -> bool:
        """Whether a change was cut off, or left hidden files that a writer still had open."""
        return any(entry.state == "intent" or entry.left for entry in self.entries())

    def text(self, name: str | None) -> bytes | None:
        """The text that was kept under `name`. Raises EditRefused when it is gone or damaged."""
        if name is None:
            return None
        try:
            data = zlib.decompress(self._blob(name).read_bytes())
        except (OSError, zlib.error):
            data = b""
        if text_name(data) != name:
            raise EditRefused(
                "A text that the journal kept is gone or damaged.",
                f"It would be in {self._blob(name)}; the notes are as they are.",
            )
        return data

    def change_of(self, entry: JournalEntry) -> Change:
        """The recorded change with its texts."""
        return Change(
            entry.kind,
            entry.title,
            tuple(
                FileChange(kept.path, self.text(kept.before), self.text(kept.after), kept.mode, kept.mtime_ns)
                for kept in entry.files
            ),
        )

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from changing notes. Raises Busy, EditRefused."""
        self._make()
        with self._lock():
            yield

    def _lock(self) -> WriterLock:
        until = time.monotonic() + _LOCK_SECONDS
        try:
            while (lock := WriterLock.acquire(self._file)) is None:
                if time.monotonic() > until:
                    raise Busy("Another memory-tui is changing notes of this workspace.", "Try again in a moment.")
                time.sleep(0.01)
        except IndexUnavailable as error:
            raise EditFailed(error.message, "Check the folder of the journal.") from None
        return lock

    def begin(
        self, change: Change, was: Sequence[tuple[int, int]], *, undoes: int = 0, redoes: int = 0
    ) -> JournalEntry:
        """Write down what is about to be done; `was` is mode and time of each note. Only while `locked`."""
        files = tuple(self._kept(file, *status) for file, status in zip(change.files, was, strict=True))
        return self.put(
            JournalEntry(self._next(), self._clock(), "intent", change.kind, change.title, files, undoes, redoes)
        )

    def record(self, change: Change, was: Sequence[tuple[int, int]], reason: str) -> JournalEntry:
        """Write down a change that another program has made already; `was` and when as for `begin`."""
        files = tuple(self._kept(file, *status) for file, status in zip(change.files, was, strict=True))
        return self.put(
            JournalEntry(self._next(), self._clock(), "done", change.kind, change.title, files, reason=reason)
        )

    def settle(
        self,
        entry: JournalEntry,
        state: State,
        files: Sequence[FileChange] | None = None,
        *,
        left: tuple[str, ...] = (),
        reason: str = "",
    ) -> JournalEntry:
        """Write down how it ended; `files` are what the notes really held before and hold after."""
        kept = (
            entry.files
            if files is None
            else tuple(
                replace(self._kept(file), mode=old.mode, mtime_ns=old.mtime_ns)
                for file, old in zip(files, entry.files, strict=True)
            )
        )
        return self.put(replace(entry, at=self._clock(), state=state, files=kept, left=left, reason=reason))

    def forget(self, entry: JournalEntry) -> None:
        """Do without a draft from now on."""
        self.put(replace(entry, state="refused", reason="the draft was thrown away"))

    def draft(self, view: ThreeWay, title: str, number: int = 0) -> JournalEntry:
        """Keep a text that could not be written, in the place of draft `number` unless 0. Only while `locked`."""
        files = (
            self._kept(FileChange(view.path, view.base, view.mine)),
            self._kept(FileChange(view.path, view.base, view.theirs)),
        )
        return self.put(JournalEntry(number or self._next(), self._clock(), "draft", "draft", title, files))

    def put(self, entry: JournalEntry) -> JournalEntry:
        """Append one line and have it written to the disk."""
        self._append(durable.record_line(entry))
        return entry

    def prune(self, days: float = KEEP_DAYS, most: int = KEEP_BYTES) -> int:
        """Forget what is older than `days` or over `most` bytes, and texts that nothing names; returns how many.

        Only while `locked`.
        """
        durable.sweep(self.folder / "texts")
        entries = self.entries()
        limit = self._clock() - days * 86_400
        young = [entry for entry in entries if entry.at >= limit or entry.state == "intent"]
        kept = self._within(young, most)
        try:
            if len(kept) < len(entries):
                durable.replace_file(self._file, b"".join(map(durable.record_line, kept)))
            self._sweep({name for entry in kept for name in _texts(entry)})
        except OSError as error:
            raise _broken(self._file, error) from None
        return len(entries) - len(kept)

    def _within(self, entries: list[JournalEntry], most: int) -> list[JournalEntry]:
        """The newest of `entries` whose texts together take no more than `most` bytes."""
        seen: set[str] = set()
        size = 0
        for number, entry in enumerate(reversed(entries)):
            for name in _texts(entry) - seen:
                seen.add(name)
                size += self._blob(name).stat().st_size if self._blob(name).exists() else 0
            if size > most and number:
                return entries[len(entries) - number :]
        return entries

    def _sweep(self, named: set[str]) -> None:
        for blob in (self.folder / "texts").iterdir():
            if blob.stem not in named:
                durable.calls.unlink(blob)

    def _next(self) -> int:
        entries = self.entries()
        return entries[-1].id + 1 if entries else 1

    def _make(self) -> None:
        try:
            durable.make_folder(self.folder / "texts")
            self.folder.chmod(0o700)
        except OSError as error:
            raise _broken(self.folder, error) from None

    def _blob(self, name: str) -> Path:
        return self.folder / "texts" / f"{name}.z"

    def _kept(self, file: FileChange, mode: int = 0, mtime_ns: int = 0) -> RecordedNote:
        return RecordedNote(file.path, self._keep(file.before), self._keep(file.after), mode, mtime_ns)

    def _keep(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        name = text_name(data)
        blob = self._blob(name)
        if not self._holds(blob, data):
            try:
                durable.replace_file(blob, zlib.compress(data, 1))
            except OSError as error:
                raise _broken(blob, error) from None
        return name

    def _holds(self, blob: Path, data: bytes) -> bool:
        """Whether the text is kept already, and not damaged since."""
        try:
            return zlib.decompress(blob.read_bytes()) == data
        except (OSError, zlib.error):
            return False

    def _append(self, line: bytes) -> None:
        try:
            durable.append_line(self._file, line)
        except OSError as error:
            raise _broken(self._file, error) from None


def _texts(entry: JournalEntry) -> set[str]:
    return {name for file in entry.files for name in (file.before, file.after) if name}


def _parsed(line: bytes) -> JournalEntry | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        files = tuple(
            RecordedNote(str(f["path"]), f.get("before"), f.get("after"), f.get("mode", 0), f.get("mtime_ns", 0))
            for f in fields.get("files", ())
        )
        return JournalEntry(
            int(fields["id"]),
            float(fields["at"]),
            fields["state"],
            fields["kind"],
            fields["title"],
            files,
            fields.get("undoes", 0),
            fields.get("redoes", 0),
            tuple(fields.get("left", ())),
            fields.get("reason", ""),
            tuple(fields.get("trust", ())),
            (str(ledger[0]), str(ledger[1])) if (ledger := fields.get("ledger", ())) else (),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def text_name(data: bytes) -> str:
    """Name a text as it is kept: its SHA-256."""
    return hashlib.sha256(data).hexdigest()


def _broken(path: Path, error: OSError) -> EditFailed:
    return EditFailed(
        f"The journal cannot be used: {path}: {error.strerror or error}.", "Check the folder and the space on its disk."
    )


# --- OpenClaw's ledger ---------------------------------------------------------------------------------------------

_REPAIRED = "the class in OpenClaw's ledger became agent after the whole text was shown; the note stayed as it is"


def repair_ledger(journal: Journal, trust: Trust, path: str, seen: bytes) -> JournalEntry:
    """Write the class agent back for the note `path`, whose whole text a person has `seen`; undo takes it back.

    Raises EditRefused when the file has another text now, has no row, or the ledger cannot be written.
    """
    change = Change("trust", f"Trust {path} again", (FileChange(path, seen, seen),))
    with journal.locked():
        was, becomes = trust.repaired_row(path, seen)
        entry = journal.begin(change, [(0, 0)])
        entry = journal.put(replace(entry, ledger=(was, becomes), reason=_REPAIRED))
        return _exchanged(journal, trust, entry, was, becomes, seen)


def step_ledger(journal: Journal, trust: Trust, target: JournalEntry, kind: str) -> JournalEntry:
    """Take the ledger's row of `target` back ("undo"), or write it again. Raises EditRefused when it is another one."""
    if not target.ledger:
        raise EditRefused(f"Change {target.id} is none of the ledger.", "Nothing was changed.")
    was, becomes = target.ledger if kind == "redo" else (target.ledger[1], target.ledger[0])
    change = replace(journal.change_of(target), kind=kind, title=f"{kind.capitalize()}: {target.title}")
    undoes, redoes = (target.id, 0) if kind == "undo" else (0, target.id)
    with journal.locked():
        entry = journal.begin(change, [(0, 0)], undoes=undoes, redoes=redoes)
        return _exchanged(journal, trust, entry, was, becomes)


def _exchanged(
    journal: Journal, trust: Trust, entry: JournalEntry, was: str, becomes: str, seen: bytes | None = None
) -> JournalEntry:
    try:
        trust.exchange(entry.files[0].path, was, becomes, seen)
    except EditRefused as error:
        journal.settle(entry, "refused", reason=error.message)
        raise
    return journal.settle(entry, "done", reason=entry.reason)


class Unsaved(Struct, frozen=True):
    """The `text` in an editor at `at` (epoch seconds), begun on the bytes `before` of the note `path`; in `file`."""

    path: str
    at: float
    before: bytes | None
    text: str
    file: Path


class Typing:
    """Keeps what one editor holds of the note `path`, in `folder` (the journal's), instead of what it `began` with.

    Methods may be called from any thread; each names its `turn`, and one that comes after a later turn does nothing,
    so that a slow writing never brings back what was saved meanwhile.
    """

    def __init__(self, folder: Path, path: str, began: Unsaved | None = None) -> None:
        self._folder, self._path = folder / "unsaved", path
        self._file = self._folder / f"{_stem(path)}-{os.getpid()}.json"
        self._files = {self._file, began.file} if began is not None else {self._file}
        self._lock = threading.Lock()
        self._turn = 0

    def keep(self, turn: int, text: str, before: bytes | None) -> None:
        """Keep `text`, in the place of what was kept last. Raises EditRefused when the disk does not take it."""
        line = {
            "path": self._path,
            "at": time.time(),
            "text": text,
            "before": None if before is None else base64.b64encode(before).decode("ascii"),
        }
        with self._lock:
            if self._late(turn):
                return
            try:
                durable.make_folder(self._folder)
                durable.replace_file(self._file, json.dumps(line).encode("ascii"))
            except OSError as error:
                raise EditFailed(
                    f"Your typing is not protected against a crash: {error.strerror or error}.",
                    "Press ctrl+s to save the note.",
                ) from None

    def drop(self, turn: int) -> None:
        """It is in the note, or nobody wants it. Raises EditRefused when it cannot be removed."""
        with self._lock:
            if self._late(turn):
                return
            try:
                for file in self._files:
                    durable.remove_file(file)
            except OSError as error:
                raise EditFailed(
                    f"Your unsaved text is still stored: {error.strerror or error}.", f"Remove it from {self._folder}."
                ) from None

    def _late(self, turn: int) -> bool:
        late = turn < self._turn
        self._turn = max(turn, self._turn)
        return late


def left(folder: Path, path: str | None = None) -> tuple[Unsaved, ...]:
    """What editors left in `folder` (the journal's), of `path` or of every note, newest first; damaged files not."""
    files = (folder / "unsaved").glob("*.json" if path is None else f"{_stem(path)}-*.json")
    found = [one for file in files if (one := _read(file)) is not None and path in (None, one.path)]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


def _stem(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(file: Path) -> Unsaved | None:
    try:
        fields = json.loads(file.read_bytes())
        before = fields["before"]
        one = Unsaved(
            str(fields["path"]),
            float(fields["at"]),
            None if before is None else base64.b64decode(before),
            str(fields["text"]),
            file,
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if one.at < time.time() - KEEP_DAYS * 86_400:
        with contextlib.suppress(OSError):
            durable.remove_file(file)
        return None
    return one
