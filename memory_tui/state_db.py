"""The state database: small facts that several processes change, one SQLite file in the user's state folder.

Each owner declares its `Table` and keeps values of JSON in it, by scope and key. A change is one transaction, so that
no process loses what another one wrote. Reading makes no file. A file of an earlier release is read once, when its
scope is first written, and stays where it is. A database that makes no sense is set aside under another name, and a
new one is begun: nothing waits for a person.

A connection is opened for each call: calls are rare, and no thread has to be named. The file is 0600 in a folder 0700.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui import durable
from memory_tui.core.errors import IndexUnavailable, StateUnavailable

if TYPE_CHECKING:
    import apsw

Old = Callable[[], Mapping[str, Any]]
"""Reads what an earlier release kept in a file. May raise OSError, ValueError."""
Notice = Callable[[str], None]
_BUSY_MILLISECONDS = 5000


def default_path() -> Path:
    """The database of this user."""
    import platformdirs

    return platformdirs.user_state_path("memory-tui", appauthor=False) / "state.sqlite"


def warn(text: str) -> None:
    """Say on standard error what was set aside."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"memory-tui: {text}\n")


def nothing_old() -> Mapping[str, Any]:
    """There was no earlier release that kept this."""
    return {}


class Table(Struct, frozen=True):
    """One owner's table; beyond `most` values of one scope the oldest go (0: none does)."""

    name: str
    most: int = 0

    def of(
        self, scope: str, old: Old = nothing_old, *, path: Path | None = None, notice: Notice = warn
    ) -> ScopedRecords:
        """The values of one scope."""
        return ScopedRecords(self, scope, old, path or default_path(), notice)


class ScopedRecords(Struct, frozen=True):
    """The values of one scope of a table, by key. Every method raises StateUnavailable where the file allows none."""

    table: Table
    scope: str
    old: Old
    path: Path
    notice: Notice

    def read(self) -> dict[str, Any]:
        """All values, the one written first in front."""
        if not self.path.exists():
            return dict(self._old())
        found: dict[str, Any] = self._healed(self._read)
        return found

    def put(self, key: str, value: object) -> None:
        """Keep `value` (JSON) under `key`."""
        self.change(key, lambda _: value)

    def remove(self, key: str) -> bool:
        """Forget what is kept under `key`; False when that is nothing."""
        return self.change(key, lambda _: None) is not None

    def change(self, key: str, how: Callable[[Any], object]) -> Any:  # noqa: ANN401 - any JSON
        """Put what `how` makes of the value under `key` (None: none) in its place; returns the value before.

        Nobody else writes between the two.
        """

        def run(connection: apsw.Connection) -> Any:  # noqa: ANN401
            with _writing(connection):
                self._take_over(connection)
                before = self._read(connection).get(key)
                value = how(before)
                connection.execute(f"DELETE FROM {self.table.name} WHERE scope = ? AND key = ?", (self.scope, key))
                if value is not None:
                    self._insert(connection, key, value)
                self._bound(connection)
            return before

        return self._healed(run, make=True)

    # --- inside a transaction ---

    def _read(self, connection: apsw.Connection) -> dict[str, Any]:
        if not _has(connection, self.table.name):
            return dict(self._old())
        rows = connection.execute(
            f"SELECT key, value FROM {self.table.name} WHERE scope = ? ORDER BY id", (self.scope,)
        )
        found = {str(key): json.loads(str(value)) for key, value in rows}
        return found if self._taken_over(connection) else {**self._old(), **found}

    def _take_over(self, connection: apsw.Connection) -> None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self.table.name} (id INTEGER PRIMARY KEY, scope TEXT NOT NULL, "
            "key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (scope, key)) STRICT"
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS taken_over (name TEXT NOT NULL, scope TEXT NOT NULL, "
            "PRIMARY KEY (name, scope)) STRICT"
        )
        if not self._taken_over(connection):
            for key, value in self._old().items():
                self._insert(connection, key, value)
            connection.execute("INSERT INTO taken_over VALUES (?, ?)", (self.table.name, self.scope))

    def _taken_over(self, connection: apsw.Connection) -> bool:
        found = connection.execute(
            "SELECT 1 FROM taken_over WHERE name = ? AND scope = ?", (self.table.name, self.scope)
        )
        return found.fetchone() is not None

    def _insert(self, connection: apsw.Connection, key: str, value: object) -> None:
        statement = f"INSERT INTO {self.table.name} (scope, key, value) VALUES (?, ?, ?)"
        connection.execute(statement, (self.scope, key, json.dumps(value)))

    def _bound(self, connection: apsw.Connection) -> None:
        if self.table.most:
            connection.execute(
                f"DELETE FROM {self.table.name} WHERE scope = ?1 AND id NOT IN "
                f"(SELECT id FROM {self.table.name} WHERE scope = ?1 ORDER BY id DESC LIMIT ?2)",
                (self.scope, self.table.most),
            )

    def _old(self) -> Mapping[str, Any]:
        try:
            return self.old()
        except (OSError, ValueError) as error:
            self.notice(f"A file of an earlier release cannot be read and is left alone: {error}.")
            return {}

    # --- the file ---

    def _healed(self, run: Callable[[apsw.Connection], Any], *, make: bool = False) -> Any:  # noqa: ANN401
        """What `run` gives; a database that makes no sense is set aside first."""
        import apsw

        for attempt in (1, 2):
            if not make and not self.path.exists():
                return dict(self._old())
            seen = _identity(self.path)
            try:
                with _opened(self.path, make=make) as connection:
                    return run(connection)
            except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, ValueError) as error:
                # A table of another shape, or a value that is no JSON, is as broken as a torn page.
                if attempt == 2:
                    raise self._unavailable(error) from error
                self._set_aside(seen, error)
            except (apsw.Error, OSError) as error:
                raise self._unavailable(error) from error
        raise AssertionError("the second attempt returns or raises")

    def _set_aside(self, seen: tuple[int, int] | None, error: Exception) -> None:
        """Give the broken file another name, unless another process did so meanwhile."""
        from memory_tui import locks

        aside = self.path.with_name(f"{self.path.stem}-broken-{time.time_ns()}{self.path.suffix}")
        try:
            # Under the lock nobody takes the new database for the broken one.
            with locks.wait_for(self.path):
                if seen is None or _identity(self.path) != seen:
                    return
                for end in ("-wal", "-shm", ""):
                    part = self.path.with_name(self.path.name + end)
                    if part.exists():
                        durable.calls.replace(part, aside.with_name(aside.name + end))
        except IndexUnavailable as problem:
            raise StateUnavailable(f"{self.path} makes no sense ({error}): {problem.message}") from problem
        except OSError as problem:
            raise self._unavailable(problem) from problem
        self.notice(f"{self.path} makes no sense ({error}). It is now {aside.name}, and a new one was begun.")

    def _unavailable(self, error: Exception) -> StateUnavailable:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return StateUnavailable(f"{self.path} cannot be used: {reason}.", "Check permissions and free space.")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has(connection: apsw.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


@contextmanager
def _opened(path: Path, *, make: bool) -> Iterator[apsw.Connection]:
    import apsw

    if make and not path.exists():
        durable.make_folder(path.parent)
        with suppress(FileExistsError):
            durable.create_file(path, b"")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        if make:
            # Where another process does so at this moment, it is done.
            with suppress(apsw.BusyError):
                connection.execute("PRAGMA journal_mode = WAL")
        yield connection
    finally:
        connection.close()


@contextmanager
def _writing(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that keeps other writers out from its first statement."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(Exception):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
