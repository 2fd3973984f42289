"""A lock lets one process write a file; the lock file names that process.

The system frees the lock when its holder dies, however it dies, so a stale file stops nobody. What is written in the
file is for people: process id, when that process started, and since when it writes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct, to_builtins

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.durable import LONGEST, foreign, open_beside, read_beside
from memory_tui.errors import Cancelled, IndexBusy, IndexRefused, IndexUnavailable
from memory_tui.events import Event, KeeperChanged

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_PAUSE_SECONDS = 0.01
_NEVER = Stop()
"""What nobody sets."""
_BEGINNING = b'{"pid"'
"""How the text begins."""
_HOLDER_BYTES = 256
"""The room that the text has. It is never given back, so that a lock can be had on a full disk too."""
_START_FIELD = 19
"""Where in /proc/PID/stat, behind the name, the start of the process stands."""
_LOCKED_BYTE = 1 << 20
"""Where Windows locks, behind the text, because others may not read what is locked there."""


Role = Literal["lock", "keeper"]
"""`lock`: writes now. `keeper`: brings the index up to date by itself, for as long as it runs."""


class Holder(Struct, frozen=True):
    """Who writes an index: process id, start of that process (as its system counts it) and `since` in seconds."""

    pid: int
    started: str
    since: float

    @property
    def here(self) -> bool:
        """Whether it is this process."""
        return self.pid == os.getpid() and self.started == process_start(self.pid)

    def as_dict(self) -> dict[str, object]:
        """Return it as the status tells it."""
        return {"pid": self.pid, "since": self.since, "ours": self.here}


class WriterLock(contextlib.AbstractContextManager["WriterLock"]):
    """The right to write an index, until `release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, index: str | os.PathLike[str], role: Role = "lock") -> WriterLock | None:
        """Return the lock of the file `index` for `role`; None when another has it, in this process or in another.

        Raises IndexUnavailable when the lock file cannot be written.
        """
        path = lock_path(index, role)
        try:
            # Closing the file, whatever goes wrong until it is returned, lets go of the lock too.
            with contextlib.ExitStack() as closing:
                descriptor = open_beside(path, os.O_RDWR | os.O_CREAT)
                closing.callback(os.close, descriptor)
                data = os.read(descriptor, LONGEST + 1)
                # The text of a holder or, after a power failure, its beginning, blanks or NULs: else it is not ours.
                text = data.strip(b" ")
                ours = text.startswith(_BEGINNING) or _BEGINNING.startswith(text) or not any(text)
                if len(data) > LONGEST or not ours:
                    raise foreign(path)
                if not _lock(descriptor):
                    return None
                holder = Holder(os.getpid(), process_start(os.getpid()), time.time())
                _write(descriptor, json.dumps(to_builtins(holder)))
                # The lock is had: from now on `release` closes the file.
                closing.pop_all()
                return cls(path, descriptor)
        except OSError as error:
            what = f"The lock file {path} cannot be written: {error.strerror}"
            if isinstance(error, FileExistsError):
                raise IndexRefused(f"{what}.", "Name another file with --index; this one stays as it is.") from None
            full = durable.full(path) if error.errno == errno.ENOSPC else ""
            raise IndexUnavailable(f"{what}{full}.", "Check its folder.") from None

    @property
    def lost(self) -> bool:
        """Whether the lock file was deleted or replaced, so that another process may have a lock of the same name."""
        try:
            return not os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return True

    def release(self, *_: object) -> None:
        """Let others write. The file stays, blank: removing it would let two processes lock two files of one name."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                # Where it cannot be written this process stays named there, which stops nobody: the lock counts.
                with contextlib.suppress(OSError):
                    _write(descriptor, "")
            finally:
                os.close(descriptor)

    __exit__ = release


def _write(descriptor: int, text: str) -> None:
    """Write `text` over what is there: as long as always, so that it needs no room on a full disk."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    durable.write_all(descriptor, text.encode().ljust(_HOLDER_BYTES))


def wait_for(index: str | os.PathLike[str], stop: Stop = _NEVER, *, seconds: float = 5.0) -> WriterLock:
    """Return the lock of `index`, waited for so long while another writer has it, or until `stop` is set.

    Raises IndexBusy, and Cancelled when stopped.
    """
    until = time.monotonic() + seconds
    while (lock := WriterLock.acquire(index)) is None and time.monotonic() < until:
        if stop.wait(_PAUSE_SECONDS):
            raise Cancelled
    if lock is not None:
        return lock
    other = holder(index)
    step = "Searches work meanwhile, and find what it has indexed so far."
    raise IndexBusy(f"Process {other.pid if other else 'unknown'} is indexing this workspace.", step)


def lock_path(index: str | os.PathLike[str], role: Role = "lock") -> Path:
    """Return the lock file of an index: beside the file that a link leads to."""
    real = Path(os.path.realpath(index))
    return real.with_name(f"{real.name}.{role}")


def living(index: str | os.PathLike[str], role: Role = "lock") -> Holder | None:
    """Return who has the lock now; None when nobody has, or when whoever had it is dead."""
    who = holder(index, role)
    return who if who is not None and is_alive(who) else None


def holder(index: str | os.PathLike[str], role: Role = "lock") -> Holder | None:
    """Return who wrote the lock file last and has not released it: who has the lock, or one that was killed."""
    try:
        fields = json.loads(read_beside(lock_path(index, role)))
        return Holder(int(fields["pid"]), str(fields["started"]), float(fields["since"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def is_alive(who: Holder) -> bool:
    """Return whether the process that `who` names still runs, and is not another one with its number."""
    if Path("/proc/self/stat").exists():
        return process_start(who.pid) == who.started
    # Signal 0 only asks whether the process is there; that of another user refuses it, and is there.
    try:
        os.kill(who.pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def process_start(pid: int) -> str:
    """Return when process `pid` started, in clock ticks since boot; empty when it is gone or that is not told."""
    with contextlib.suppress(OSError):
        # The fields are counted behind the last bracket, as the name of the program may hold spaces and brackets.
        _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return fields.split()[_START_FIELD]
    return ""


def _lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False when another has it."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class Keeper:
    """The part of one engine in keeping the index at `path`; `tell` hears who keeps it when that changes."""

    def __init__(self, path: Callable[[], Path], tell: Callable[[Event], None]) -> None:
        self._path = path
        self._tell = tell
        self._guard = threading.Lock()
        self._lock: WriterLock | None = None
        self._closed = False
        self.refused = False
        """Whether another process keeps the index, as last seen."""

    def keeps(self) -> bool:
        """Return whether this engine keeps the index; it begins to when nobody does. Raises IndexUnavailable."""
        with self._guard:
            if self._lock is not None and self._lock.lost:
                # Its file was deleted, so another process may have made one and keep the index, too.
                self._lock.release()
                self._lock = None
            if self._lock is None and not self._closed:
                self._lock = WriterLock.acquire(self._path(), "keeper")
                # Told when it changes whether another process has it. `refused` is False at first: so nothing is told
                # where this process keeps the index from the beginning.
                if self.refused != (self._lock is None):
                    self.refused = self._lock is None
                    who = holder(self._path(), "keeper")
                    self._tell(KeeperChanged(time.time(), who.pid if who else 0, not self.refused))
            return self._lock is not None

    def close(self) -> None:
        """Leave it to others, for good."""
        with self._guard:
            self._closed = True
            if self._lock is not None:
                self._lock.release()
                self._lock = None
