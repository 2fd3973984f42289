"""The state database: small facts that several processes change, one SQLite file in the user's state folder.

Each owner declares its `Table` and keeps values of JSON in it, by scope and key. A change is one transaction, so that
no process loses what another one wrote. Reading makes no file. A file of an earlier release is read once, when its
scope is first written, and stays where it is. A database that makes no sense is set aside under another name, and a
new one is begun: nothing waits for a person.

A connection is opened for each call, or for several in a row of one thread (`kept`), and no thread has to be named. The
file is 0600 in a folder 0700.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
import platformdirs
from msgspec import Struct

from memory_tui import durable, locks
from memory_tui.errors import IndexUnavailable, StateUnavailable

Old = Callable[[], Mapping[str, Any]]
"""Reads what an earlier release kept in a file. May raise OSError, ValueError."""
Tell = Callable[[str], None]
T = TypeVar("T")
# A table of another shape, or a value that is no JSON, is as broken as a torn page.
_SENSELESS = apsw.NotADBError, apsw.CorruptError, apsw.SQLError, json.JSONDecodeError, UnicodeDecodeError


def default_path() -> Path:
    """Return the path of this user's database."""
    return platformdirs.user_state_path("memory-tui", appauthor=False) / "state.sqlite"


def warn(text: str) -> None:
    """Say on standard error what was set aside."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"memory-tui: {text}\n")


class Table(Struct, frozen=True):
    """One owner's table; beyond `most` values of one scope the oldest go (0: none does)."""

    name: str
    most: int = 0

    def of(self, scope: str, old: Old = dict, *, path: Path | None = None, tell: Tell = warn) -> ScopedRecords:
        """Return the values of one scope, which may be the path of a folder with any bytes in its name."""
        scope = os.fsencode(scope).decode("utf-8", "backslashreplace")
        return ScopedRecords(self, scope, old, path or default_path(), tell)


class ScopedRecords(Struct, frozen=True):
    """The values of one scope of a table, by key. Every method raises StateUnavailable where the file allows none."""

    table: Table
    scope: str
    old: Old
    path: Path
    tell: Tell

    def read(self) -> dict[str, Any]:
        """Return all values, the one written first in front."""
        if not self.path.exists():
            return dict(self._old())
        return self._run(self._read)

    def put(self, key: str, value: object) -> None:
        """Keep `value` (JSON) under `key`."""
        self.change(key, lambda _: value)

    def remove(self, key: str) -> bool:
        """Forget what is kept under `key`; False when that is nothing."""
        return self.change(key, lambda _: None) is not None

    def change(self, key: str, how: Callable[[Any], object]) -> Any:  # noqa: ANN401 - any JSON
        """Put what `how` makes of the value under `key` in its place; return the value before.

        None stands for no value, on both sides. Nobody else writes between reading and writing.
        """
        name, scope = self.table.name, self.scope

        def change(connection: apsw.Connection) -> object:
            """Do all of it in one transaction, and return the value before."""
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {name} (id INTEGER PRIMARY KEY, scope TEXT NOT NULL, "
                "key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (scope, key)) STRICT"
            )
            if not was_taken_over(connection, name, scope):
                for old, text in self._old().items():
                    self._insert(connection, old, text)
                mark_taken_over(connection, name, scope)
            before = self._read(connection).get(key)
            value = how(before)
            connection.execute(f"DELETE FROM {name} WHERE scope = ? AND key = ?", (scope, key))
            if value is not None:
                self._insert(connection, key, value)
            # Without a bound -1, which SQLite takes for no limit.
            newest = f"(SELECT id FROM {name} WHERE scope = ?1 ORDER BY id DESC LIMIT ?2)"
            values = scope, self.table.most or -1
            connection.execute(f"DELETE FROM {name} WHERE scope = ?1 AND id NOT IN {newest}", values)
            return before

        return self._run(change, write=True)

    def _run(self, how: Callable[[apsw.Connection], T], *, write: bool = False) -> T:
        """Return what `how` makes of the database; once more of a new one where that had to be set aside."""
        # With None, the second time, a database that makes no sense is not set aside but raised, so that the loop ends
        # with a value or an error.
        for tell in (self.tell, None):
            with suppress(SetAside), transaction(self.path, write=write, tell=tell) as connection:
                value = how(connection)
                break
        return value

    # --- inside a transaction ---

    def _read(self, connection: apsw.Connection) -> dict[str, Any]:
        """Return all values, those of an earlier release too until these are taken over."""
        values = {} if was_taken_over(connection, self.table.name, self.scope) else dict(self._old())
        if connection.table_exists(None, self.table.name):
            sql = f"SELECT key, value FROM {self.table.name} WHERE scope = ? ORDER BY id"
            values |= {str(key): json.loads(str(value)) for key, value in connection.execute(sql, (self.scope,))}
        return values

    def _insert(self, connection: apsw.Connection, key: str, value: object) -> None:
        """Write a value behind the others."""
        sql = f"INSERT INTO {self.table.name} (scope, key, value) VALUES (?, ?, ?)"
        connection.execute(sql, (self.scope, key, json.dumps(value)))

    def _old(self) -> Mapping[str, Any]:
        """Return what an earlier release kept in a file; nothing, which is told, where that cannot be read."""
        try:
            return self.old()
        except (OSError, ValueError) as error:
            self.tell(f"A file of an earlier release cannot be read and is left alone: {error}.")
            return {}


# --- transactions ----------------------------------------------------------------------------------------------------


_kept = threading.local()
"""By path the connections that wait for the next transaction of this thread, each by the file that it is to."""


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """Let the transactions of this thread on `path` share one connection, which the outermost `kept` closes."""
    # What this thread keeps are attributes of `_kept`, called like the paths.
    if is_outer := str(path) not in vars(_kept):
        vars(_kept)[str(path)] = {}
    try:
        yield
    finally:
        for connection in vars(_kept).pop(str(path)).values() if is_outer else ():
            connection.close()


class SetAside(Exception):
    """The database made no sense and has another name now; nothing was done, and a new one can be begun."""


@contextmanager
def transaction(path: Path, *, write: bool = False, tell: Tell | None = warn) -> Iterator[apsw.Connection]:
    """Yield a transaction on the database `path`; with `write` nobody else writes meanwhile, and it is made if missing.

    A database that makes no sense is set aside, and `tell` hears of it. Raises SetAside then, after which the
    transaction can be begun once more without `tell`: that makes a new database, and sets none aside. Raises
    StateUnavailable.
    """
    # The file before anything is read: only this one may be set aside, and not what took its place since. `idle` are
    # the connections that this thread keeps, by their file; None where it keeps none (`kept`).
    file, idle = durable.file_at(path), vars(_kept).get(str(path))
    try:
        # A connection that waits is taken, if it is to the same file; else one is opened.
        connection: apsw.Connection = (idle or {}).pop(file, None) or _opened(path, make=write or tell is None)
        try:
            # Where another process sets the mode at this moment, nothing is left to do. Who reads executes nothing.
            with suppress(apsw.BusyError):
                connection.execute("PRAGMA journal_mode = WAL" if write else "")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # What was not committed is rolled back.
            connection.close()
            raise
        if idle is None:
            connection.close()
        else:
            idle[file] = connection
    except (*_SENSELESS, apsw.Error, OSError) as error:
        if tell is None or not isinstance(error, _SENSELESS):
            raise _unavailable(path, error) from error
        _set_aside(path, file, error, tell)
        raise SetAside from error


def was_taken_over(connection: apsw.Connection, name: str, scope: str) -> bool:
    """Return whether the file of an earlier release that held `scope` of the table `name` was read already."""
    sql = "SELECT 1 FROM taken_over WHERE name = ? AND scope = ?"
    return connection.table_exists(None, "taken_over") and bool(connection.execute(sql, (name, scope)).fetchone())


def mark_taken_over(connection: apsw.Connection, name: str, scope: str) -> None:
    """Write down that the file of an earlier release was read."""
    connection.execute("CREATE TABLE IF NOT EXISTS taken_over (name TEXT, scope TEXT, PRIMARY KEY(name, scope)) STRICT")
    connection.execute("INSERT INTO taken_over VALUES (?, ?)", (name, scope))


def _set_aside(path: Path, seen: tuple[int, int] | None, error: Exception, tell: Tell) -> None:
    """Give the broken file another name, unless another process did so meanwhile.

    `seen` is the device and inode of the file that made no sense, None where there was none.
    """
    aside = path.with_name(f"{path.stem}-broken-{time.time_ns()}{path.suffix}")
    try:
        # Under the lock nobody takes the new database for the broken one.
        with locks.wait_for(path):
            if seen is None or durable.file_at(path) != seen:
                return
            # The log first: beside a new database it would be taken for its own.
            for end in ("-wal", "-shm", ""):
                part = path.with_name(path.name + end)
                if part.exists():
                    durable.calls.replace(part, aside.with_name(aside.name + end))
    except IndexUnavailable as problem:
        raise StateUnavailable(f"{path} makes no sense ({error}): {problem.message}") from problem
    except OSError as problem:
        raise _unavailable(path, problem) from problem
    tell(f"{path} makes no sense ({error}). It is now {aside.name}, and a new one was begun.")


def _unavailable(path: Path, error: Exception) -> StateUnavailable:
    """Return what a person can make of an error of SQLite or of the disk."""
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    # SQLite tells of a full disk in several ways: with less than 64 KiB left every failure is taken for one.
    # Where the room is not known (None) it is no number of that range.
    if durable.room(path) in range(1 << 16):
        reason = "No space left on device"
    return StateUnavailable(f"{path} cannot be used: {reason}.", "Check permissions and free space.")


def _opened(path: Path, *, make: bool) -> apsw.Connection:
    """Open the database; `make` it where it is not there."""
    if make and not path.exists():
        durable.make_folder(path.parent)
        with suppress(FileExistsError):
            os.close(durable.calls.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
            durable.sync_folder(path.parent)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    # Milliseconds that it waits for another process.
    connection.set_busy_timeout(5000)
    return connection
