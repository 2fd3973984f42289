"""Every change with its inverse, outside the workspace: an append-only file of JSON lines, and the texts beside it.

A change is written down before the first note is touched (`intent`) and again when all are (`done`, or `refused` when
nothing was changed). What is found as an intent alone was cut off; recover.py finishes it or takes it back.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from memory_tui.core import atomic
from memory_tui.curate.record import Busy, Change, FileChange, ThreeWay
from memory_tui.errors import EditRefused, IndexUnavailable
from memory_tui.index.lock import WriterLock
from memory_tui.text.secrets import masked

KEEP_DAYS = 90
"""So long a change can be looked at and taken back."""
KEEP_BYTES = 256 * 1024 * 1024
"""So much room, compressed, the texts of all changes may take; the oldest make way."""
_LOCK_SECONDS = 10.0
State = Literal["intent", "done", "refused", "draft"]


@dataclass(frozen=True, slots=True)
class Kept:
    """One note of a recorded change: names of its texts before and after, and mode and time it had before."""

    path: str
    before: str | None
    after: str | None
    mode: int = 0
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal; a later line with the same `id` is in its place. `at` is in epoch seconds.

    `undoes` or `redoes` is the change that it takes back or makes again. `left` are hidden files that a writer still
    had open. A draft keeps, as its first file, what both started from and mine, as its second, theirs.
    """

    id: int
    at: float
    state: State
    kind: str
    title: str
    files: tuple[Kept, ...] = ()
    undoes: int = 0
    redoes: int = 0
    left: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        # Journals of earlier versions hold titles as they were.
        object.__setattr__(self, "title", masked(self.title))

    @property
    def paths(self) -> tuple[str, ...]:
        """The notes it is about."""
        return tuple(file.path for file in self.files)


def place(workspace: Path) -> Path:
    """The folder of the journal of `workspace`, in the user's state folder; two names of one folder share it."""
    import platformdirs

    real = os.path.realpath(workspace)
    key = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    folder = platformdirs.user_state_path("memory-tui", appauthor=False)
    return folder / "journal" / f"{Path(real).name[:40] or 'root'}-{key}"


class Journal:
    """The journal in `folder`, made when the first change is written. Every method may raise EditRefused.

    What a writing method returned from is whole and flushed; what it raised from is not there.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._file = folder / "journal.jsonl"

    # --- reading ---------------------------------------------------------------------------------------------------

    def entries(self) -> tuple[Entry, ...]:
        """All changes, oldest first, each as its last line says; a line that was cut off is left out."""
        try:
            lines = self._file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _broken(self._file, error) from None
        found: dict[int, Entry] = {}
        for line in lines:
            if (entry := _parsed(line)) is not None:
                found[entry.id] = entry
        return tuple(entry for _, entry in sorted(found.items()))

    def text(self, name: str | None) -> bytes | None:
        """The text that was kept under `name`. Raises EditRefused when it is gone or damaged."""
        if name is None:
            return None
        try:
            data = zlib.decompress(self._blob(name).read_bytes())
        except (OSError, zlib.error):
            data = b""
        if _name(data) != name:
            raise EditRefused(
                "A text that the journal kept is gone or damaged.",
                f"It would be in {self._blob(name)}; the notes are as they are.",
            )
        return data

    def change_of(self, entry: Entry) -> Change:
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
            raise EditRefused(error.message, "Check the folder of the journal.") from None
        return lock

    def begin(self, change: Change, was: Sequence[tuple[int, int]], *, undoes: int = 0, redoes: int = 0) -> Entry:
        """Write down what is about to be done; `was` is mode and time of each note. Only while `locked`."""
        files = tuple(self._kept(file, *status) for file, status in zip(change.files, was, strict=True))
        return self.put(Entry(self._next(), self._clock(), "intent", change.kind, change.title, files, undoes, redoes))

    def record(self, change: Change, was: Sequence[tuple[int, int]], reason: str) -> Entry:
        """Write down a change that another program has made already; `was` and when as for `begin`."""
        files = tuple(self._kept(file, *status) for file, status in zip(change.files, was, strict=True))
        return self.put(Entry(self._next(), self._clock(), "done", change.kind, change.title, files, reason=reason))

    def settle(
        self,
        entry: Entry,
        state: State,
        files: Sequence[FileChange] | None = None,
        *,
        left: tuple[str, ...] = (),
        reason: str = "",
    ) -> Entry:
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

    def forget(self, entry: Entry) -> None:
        """Do without a draft from now on."""
        self.put(replace(entry, state="refused", reason="the draft was thrown away"))

    def draft(self, view: ThreeWay, title: str, number: int = 0) -> Entry:
        """Keep a text that could not be written, in the place of draft `number` unless 0. Only while `locked`."""
        files = (
            self._kept(FileChange(view.path, view.base, view.mine)),
            self._kept(FileChange(view.path, view.base, view.theirs)),
        )
        return self.put(Entry(number or self._next(), self._clock(), "draft", "draft", title, files))

    def put(self, entry: Entry) -> Entry:
        """Append one line and have it written to the disk."""
        self._append(_line(entry))
        return entry

    def prune(self, days: float = KEEP_DAYS, most: int = KEEP_BYTES) -> int:
        """Forget what is older than `days` or over `most` bytes, and texts that nothing names; returns how many.

        Only while `locked`.
        """
        atomic.sweep(self.folder / "texts")
        entries = self.entries()
        limit = self._clock() - days * 86_400
        young = [entry for entry in entries if entry.at >= limit or entry.state == "intent"]
        kept = self._within(young, most)
        if len(kept) == len(entries):
            return 0
        try:
            atomic.replace_file(self._file, b"".join(map(_line, kept)))
            self._sweep({name for entry in kept for name in _texts(entry)})
        except OSError as error:
            raise _broken(self._file, error) from None
        return len(entries) - len(kept)

    def _within(self, entries: list[Entry], most: int) -> list[Entry]:
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
                atomic.calls.unlink(blob)

    def _next(self) -> int:
        entries = self.entries()
        return entries[-1].id + 1 if entries else 1

    def _make(self) -> None:
        try:
            atomic.make_folder(self.folder / "texts")
            self.folder.chmod(0o700)
        except OSError as error:
            raise _broken(self.folder, error) from None

    def _blob(self, name: str) -> Path:
        return self.folder / "texts" / f"{name}.z"

    def _kept(self, file: FileChange, mode: int = 0, mtime_ns: int = 0) -> Kept:
        return Kept(file.path, self._keep(file.before), self._keep(file.after), mode, mtime_ns)

    def _keep(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        name = _name(data)
        blob = self._blob(name)
        if not self._holds(blob, data):
            try:
                atomic.replace_file(blob, zlib.compress(data, 1))
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
            atomic.append_line(self._file, line)
        except OSError as error:
            raise _broken(self._file, error) from None


def _texts(entry: Entry) -> set[str]:
    return {name for file in entry.files for name in (file.before, file.after) if name}


def _line(entry: Entry) -> bytes:
    fields = {key: value for key, value in asdict(entry).items() if value}
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _parsed(line: bytes) -> Entry | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        files = tuple(
            Kept(str(f["path"]), f.get("before"), f.get("after"), f.get("mode", 0), f.get("mtime_ns", 0))
            for f in fields.get("files", ())
        )
        return Entry(
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
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _broken(path: Path, error: OSError) -> EditRefused:
    return EditRefused(
        f"The journal cannot be used: {path}: {error.strerror or error}.", "Check the folder and the space on its disk."
    )
