"""The journal of entries keeps every change with its inverse, because these entries exist nowhere else.

A change is written down before the table is touched (`intent`), and again afterwards (`done`, or `refused` where
nothing was changed). An intent alone was cut off: whoever changes the table next sees by the rows which it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import durable
from memory_tui.core.errors import IndexUnavailable
from memory_tui.core.secret_finder import masked
from memory_tui.locks import Holder, WriterLock, holder
from memory_tui.ltm.lance import MemoriesUnavailable
from memory_tui.ltm.location import TableLocation

KEEP_DAYS = 90
"""So long a change can be undone."""
_LOCK_SECONDS = 60.0
_PAUSE_SECONDS = 0.005
ChangeKind = Literal["store", "edit", "forget", "import", "undo"]
ChangeState = Literal["intent", "done", "refused"]


class EntryChange(Struct, frozen=True):
    """One change; a later line with the same `id` is in its place. `at` is in epoch seconds.

    `before` are whole rows as they were, packed; `after` names each id that it left with the fingerprint of its row.
    `ids` are all that it touched. `undoes` is the change that it takes back.
    """

    id: int
    at: float
    state: ChangeState
    kind: ChangeKind
    title: str
    ids: tuple[str, ...]
    before: str = ""
    after: Mapping[str, str] = field(default_factory=dict)
    undoes: int = 0

    @property
    def shown(self) -> dict[str, object]:
        """The change without its rows, for a list."""
        return {
            "id": self.id,
            "at": self.at,
            "state": self.state,
            "kind": self.kind,
            "title": self.title,
            "entries": len(self.ids),
            "undoes": self.undoes or None,
        }


class EntryJournal:
    """The journal of one table, in the user's state folder. Every method may raise MemoriesUnavailable."""

    def __init__(self, location: TableLocation, folder: Path | None = None) -> None:
        self._location, self._folder = location, folder

    @property
    def file(self) -> Path:
        """The file, one change a line; it need not exist."""
        if self._folder is None:
            import platformdirs

            self._folder = platformdirs.user_state_path("memory-tui", appauthor=False) / "ltm"
        return self._folder / self._location.key / "journal.jsonl"

    def changes(self) -> tuple[EntryChange, ...]:
        """All changes, oldest first; a line that was cut off is left out."""
        try:
            lines = self.file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._broken(error) from error
        found = {}
        for line in lines:
            if (change := _parsed(line)) is not None:
                found[change.id] = change
        return tuple(change for _, change in sorted(found.items()))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of this user from changing the table. Raises MemoriesUnavailable."""
        try:
            durable.make_folder(self.file.parent)
        except OSError as error:
            raise self._broken(error) from error
        until = time.monotonic() + _LOCK_SECONDS
        try:
            while (lock := WriterLock.acquire(self.file)) is None:
                if time.monotonic() > until:
                    raise MemoriesUnavailable("Another memory-tui is changing the memories.", "Try again in a moment.")
                time.sleep(_PAUSE_SECONDS)
        except IndexUnavailable as error:
            raise MemoriesUnavailable(error.message, "Check the folder of the journal.") from error
        with lock:
            yield

    def writer(self) -> Holder | None:
        """The process that has the memories locked now; None where there is none."""
        if not self.file.exists():
            return None
        try:
            lock = WriterLock.acquire(self.file)
        except IndexUnavailable as error:
            raise MemoriesUnavailable(error.message, "Check the folder of the journal.") from error
        if lock is None:
            return holder(self.file)
        lock.release()
        return None

    def begin(self, change: EntryChange) -> EntryChange:
        """Write down what is about to be done, with the next number. Only while `locked`."""
        known = self.changes()
        oldest = time.time() - KEEP_DAYS * 86_400
        young = [one for one in known if one.at >= oldest or one.state == "intent"]
        if len(young) < len(known):
            self._write(lambda: durable.replace_file(self.file, b"".join(map(durable.record_line, young))))
        return self._put(replace(change, id=known[-1].id + 1 if known else 1, at=time.time(), state="intent"))

    def settle(self, change: EntryChange, state: ChangeState) -> EntryChange:
        """Write down how it ended. Only while `locked`."""
        return self._put(replace(change, state=state, at=time.time()))

    def _put(self, change: EntryChange) -> EntryChange:
        self._write(lambda: durable.append_line(self.file, durable.record_line(change)))
        return change

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            raise self._broken(error) from error

    def _broken(self, error: OSError) -> MemoriesUnavailable:
        return MemoriesUnavailable(
            f"The journal {self.file} cannot be used: {error.strerror}; no memory is changed without it.",
            "Check rights and free room.",
        )


def change(
    kind: ChangeKind, title: str, ids: tuple[str, ...], before: str, after: Mapping[str, str], undoes: int = 0
) -> EntryChange:
    """A change that is not written down yet; what looks like a secret is masked in its title."""
    return EntryChange(0, 0.0, "intent", kind, masked(title), ids, before, after, undoes)


def _parsed(line: bytes) -> EntryChange | None:
    try:
        fields = json.loads(line)
        return EntryChange(
            int(fields["id"]),
            float(fields["at"]),
            fields["state"],
            fields["kind"],
            str(fields["title"]),
            tuple(map(str, fields["ids"])),
            str(fields.get("before", "")),
            dict(fields.get("after", {})),
            int(fields.get("undoes", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
