"""The SQLite file of another program is read without a write, a side file or a long lock.

Which way in leaves no trace depends on what lies beside the file:

- `-shm`: somebody may be at work. Read under SQLite's locks, with `readonly_shm` so that the `-shm` stays as it is.
- a filled `-wal` without `-shm`: left behind by a crash. SQLite would make a `-shm`, so a private copy is read, unless
  that would be of a huge file.
- WAL mode without either: SQLite would make both even with mode=ro. Read as immutable, without any lock.
- otherwise: read with mode=ro under SQLite's locks; when a crash left a journal to roll back, in a private copy.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import apsw

T = TypeVar("T")
Reader = Callable[[apsw.Connection], T]
Failure = Literal["missing", "locked", "damaged", "unreadable"]
_Way = Literal["locks", "immutable", "copy"]
Traces = tuple[tuple[int, int, int] | None, ...]

_BUSY_MS = 300
_FREE_TRIES = 3
_HELD_SECONDS = 1.0
"""How long the last try may keep writers out of a file that changed during each try before."""
_MOST_COPIED = 1 << 29
"""Bytes of a file, with its logs, that are copied to be read."""

_SIDES = ("", "-wal", "-journal")
"""What the names of the database and its logs end in."""
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
# Two looks at one file in this process: POSIX drops all its locks when the copy of one closes the file.
_one_at_a_time = threading.Lock()


class NotSeen(Exception):
    """Why a file could not be looked into: one of a few states, a sentence, and the next step."""

    def __init__(self, state: Failure, detail: str, next_step: str) -> None:
        super().__init__(detail)
        self.state, self.detail, self.next_step = state, detail, next_step


def read_foreign(path: Path, read: Reader[T]) -> T:
    """Return what `read` gives of the database at `path`, as `read_or_copy` does."""
    return read_or_copy(path, read)[0]


def read_or_copy(path: Path, read: Reader[T]) -> tuple[T, bool]:
    """Return what `read` gives of the database at `path`, and whether a copy was read because a write was cut off.

    `read` should run many short statements: when somebody writes in between it is called again, and at last inside
    one transaction, for a second at most. Raises NotSeen.
    """
    path = _real(path)
    with _one_at_a_time:
        # Only the last try keeps writers out.
        for exclusive in [False] * _FREE_TRIES + [True]:
            before = traces(path)
            try:
                value, steady, way = _try(path, read, exclusive)
            except (apsw.Error, UnicodeDecodeError, OSError) as error:
                # What fails while somebody writes may go well the next time.
                if exclusive or traces(path) == before:
                    raise _explained(error, path) from None
                continue
            # Under locks SQLite itself tells whether somebody wrote; else the files do.
            is_unchanged = steady if way == "locks" else traces(path) == before
            if is_unchanged:
                return value, way == "copy"
    raise NotSeen("locked", f"Another program was writing {path} each time it was read.", _AGAIN)


def _try(path: Path, read: Reader[T], exclusive: bool) -> tuple[T, bool, _Way]:
    """Return what `read` gives, whether nothing was committed meanwhile, and the way in.

    The second value says something under locks alone. Raises NotSeen for a file that is too large to be copied.
    """
    way = _way(path)
    if way != "copy":
        try:
            mode = "immutable=1" if way == "immutable" else "mode=ro&readonly_shm=1"
            value, steady = _read(f"file:{urllib.parse.quote(os.fsencode(path))}?{mode}", read, exclusive)
            return value, steady, way
        except apsw.ReadOnlyError:
            # A write was cut off and has to be rolled back first: not in their file.
            way = "copy"
    if (size := sum(_size(path, side) for side in _SIDES)) > _MOST_COPIED:
        why = f"A program ended without finishing to write {path}, which has {size / 1e9:.1f} GB: too much to copy."
        raise NotSeen("unreadable", why, "Start OpenClaw once, which finishes it; nothing was changed.")
    with tempfile.TemporaryDirectory(prefix="memory-tui-copy-") as folder:
        copy = f"{folder}/copy.sqlite"
        for side in _SIDES:
            if _size(path, side):
                shutil.copyfile(f"{path}{side}", f"{copy}{side}")
        value, steady = _read(copy, read, exclusive, apsw.SQLITE_OPEN_READWRITE)
        return value, steady, way


def _read(name: str, read: Reader[T], exclusive: bool, flags: int = _READ_ONLY) -> tuple[T, bool]:
    """Return what `read` gives, and whether nobody committed meanwhile; with `exclusive` nobody can."""
    with closing(apsw.Connection(name, flags=flags)) as connection:
        connection.set_busy_timeout(_BUSY_MS)
        # What stands in its schema is data to us, not code.
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if exclusive:
            # One view of the file. A true answer of the handler, which is asked every 1,000 steps, ends what runs with
            # an InterruptError.
            end = time.monotonic() + _HELD_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > end, 1000)
            connection.execute("BEGIN")
            return read(connection), True
        # A number that changes when another connection commits.
        before = connection.pragma("data_version")
        value = read(connection)
        return value, connection.pragma("data_version") == before


def _way(path: Path) -> _Way:
    """Return the way in that leaves no trace, as the text above says."""
    if os.path.lexists(f"{path}-shm"):
        return "locks"
    if _size(path, "-wal"):
        return "copy"
    return "immutable" if _in_wal_mode(path) else "locks"


def _in_wal_mode(path: Path) -> bool:
    """Tell what the header says, read through SQLite so that closing the file drops no lock of this process."""
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        # The header has 100 bytes; number 19 is the version of the format that is read: 2 is WAL.
        return file.xFileSize() >= 100 and file.xRead(100, 0)[19] == 2
    finally:
        file.xClose()


def _real(path: Path) -> Path:
    """Return where the file and its logs really lie: SQLite follows links."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise _explained(error, path) from None


def _size(path: Path, side: str) -> int:
    """Return the bytes of the database, or of its log that ends in `side`; 0 where that is not there."""
    try:
        return os.stat(f"{path}{side}").st_size  # noqa: PTH116 - a name with a suffix of SQLite's
    except FileNotFoundError:
        return 0


def traces(path: Path) -> Traces:
    """Return what changes when somebody writes: file, size and time of the database and its logs. Raises NotSeen."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotSeen("unreadable", f"{path} is not a regular file.", _NAME)
        return tuple(_trace(f"{path}{side}") for side in _SIDES)
    except (OSError, ValueError) as error:
        raise _explained(error, path) from None


def _trace(name: str) -> tuple[int, int, int] | None:
    """Return inode, size and time of the file `name`; None for a log that is not there. Raises OSError."""
    try:
        status = os.stat(name)  # noqa: PTH116
    except FileNotFoundError:
        # A log may be missing, the database may not.
        if name.endswith(_SIDES[1:]):
            return None
        raise
    return status.st_ino, status.st_size, status.st_mtime_ns


_AGAIN = "Try again when it has finished; nothing was changed."
_NAME = "Name OpenClaw's own database."


def _explained(error: Exception, path: Path) -> NotSeen:
    """Return `error` as one of the states, with a sentence for a person and the next step."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.InterruptError():
            return NotSeen("locked", f"Another program is writing {path}.", _AGAIN)
        case apsw.NotADBError():
            return NotSeen("damaged", f"{path} is not an SQLite database, or is encrypted.", _NAME)
        case apsw.CorruptError() | UnicodeDecodeError():
            step = "It was left as it is; let OpenClaw index again."
            return NotSeen("damaged", f"{path} is damaged or only half written.", step)
        case OSError(errno=errno.ENOENT | errno.ENOTDIR):
            return NotSeen("missing", f"There is no file {path}.", _NAME)
        case OSError():
            cause = error.strerror or str(error)
        case apsw.CantOpenError() if not os.access(path, os.R_OK):
            cause = "it may not be read"
        case _:
            cause = str(error)
    return NotSeen("unreadable", f"{path} cannot be read: {cause}.", "Check the file, its folder and the disk.")
