"""An index as an SQLite database: its connection, with what it can load.

A connection belongs to one thread; only `interrupt` may be called from another.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import apsw
from msgspec import MsgspecError

from memory_tui import durable
from memory_tui.errors import (
    Cancelled,
    IndexBusy,
    IndexDamaged,
    IndexEmpty,
    IndexOutdated,
    IndexUnavailable,
    MemoryTuiError,
)
from memory_tui.index import abilities, schema
from memory_tui.index.abilities import INSTALLED, UNUSED, Vec0, Vec0Use
from memory_tui.index.index_file import check, choose_path, create, file_at, kind, quarantine, refused, resolved
from memory_tui.notices import Notice, notice

Rows = list[tuple[Any, ...]]
Frozen = tuple[int, ...]

_NO_ROOM = 1 << 17
"""With fewer free bytes SQLite's own small files may not fit."""
_TRIES, _PAUSE_SECONDS = 250, 0.02
_SPOILED_SCHEMA = re.compile(
    r"no such (fts5 )?(table|column)|has no column|already exists|malformed|vtable constructor failed|"
    r"(fts5|unsupported) file format"
)
"""What SQLite says of statements of ours when tables are not what `schema` has made."""
_OPENCLAW_TABLES = {"meta", "files", "chunks", "embedding_cache"}


class _Unusable(Exception):
    """Why a file cannot be our index: a sentence's end."""


class Database:
    """A connection, the `path` it really uses, and the state of `vec0` in it.

    `identified` is the device and inode that were opened, None for an index in memory.
    """

    def __init__(self, connection: apsw.Connection, path: Path, read_only: bool, vec0_state: Vec0) -> None:
        self.connection = connection
        self.path = path
        self.read_only = read_only
        self.vec0 = vec0_state
        self.identified = file_at(path) if connection.filename else None
        self.frozen: Frozen | None = None
        """What the files were when they were opened without locks, or copied; None for a connection with locks."""
        self._meta: dict[str, Any] | None = None
        """All of `meta` in a snapshot, once any of it was asked for; None outside, where it can change."""

    @classmethod
    def nothing(cls, path: Path) -> Self:
        """What there is to say of an index that does not exist: nothing."""
        connection = apsw.Connection(":memory:")
        _migrate(connection)
        return cls(connection, path, True, abilities.vec0(UNUSED))

    @property
    def moved(self) -> bool:
        """Whether the file was deleted, or replaced by another one, since it was opened."""
        return self.identified is not None and file_at(self.path) != self.identified

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        vec0: Vec0Use = INSTALLED,
        notices: list[Notice] | None = None,
        expected: Callable[[], bool] = lambda: False,
    ) -> Self:
        """The index at `path`, made if it is not there (unless `read_only`).

        A damaged index is moved aside, and a folder that cannot be written is replaced by a temporary one; `notices`
        gets one for each. What is not ours stays where it is: by its header, or where that is gone unless an
        index of ours is `expected` there. Raises IndexUnavailable, IndexRefused.
        """
        reports: list[Notice] = [] if notices is None else notices
        where = resolved(path)
        check(where)
        content = kind(where, _header)
        if content in ("zeros", "other") and not expected():
            raise refused(where, "is not an index of memory-tui")
        if content == "database":
            raise _stranger(where)
        if not read_only:
            requested, where = where, choose_path(path, reports)
            if where != requested and content == "ours" and not where.stat().st_size:
                _seed(requested, where, reports)
        seen = _frozen(where)
        try:
            connection = _connect_read_only(where) if read_only else _connect(where)
        except (_Unusable, apsw.Error) as error:
            if isinstance(error, apsw.Error) and not isinstance(failure := explained(error, where), IndexDamaged):
                raise failure from None
            if read_only:
                raise damaged(where, _why(error)) from None
            reports.append(quarantine(where, f"The index {where} {_why(error)}."))
            with _explaining(where):
                connection = _connect(create(where))
        opened = cls(connection, where, read_only, abilities.vec0(vec0, connection))
        if read_only and _is_frozen(connection):
            opened.frozen = seen
        return opened

    @property
    def changed(self) -> bool:
        """Whether the files were written since they were opened without locks: then what was read may make no sense."""
        return self.frozen is not None and _frozen(self.path) != self.frozen

    def close(self) -> None:
        """Close the connection; the last one to close folds the write-ahead log into the file.

        Of a file that is not at its path any more nothing is folded: log and shared memory are found by their names,
        and belong to the file that took its place.
        """
        try:
            if self.moved:
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except apsw.ConnectionClosedError:
            return
        self.connection.close()

    def damaged(self, what: str) -> IndexDamaged:
        """Make the error that says that `what` makes no sense in this index."""
        return damaged(self.path, what)

    @contextmanager
    def making_sense(self) -> Iterator[None]:
        """Take what trips up code that does nothing but take rows apart for damage."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, MsgspecError) as error:
            raise self.damaged(f"a row makes no sense: {type(error).__name__}") from error

    def interrupt(self) -> None:
        """Stop the statement that runs now, which then raises Cancelled; safe from any thread."""
        self.connection.interrupt()

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """All rows of one statement. Raises Cancelled and IndexUnavailable."""
        with self._explaining():
            return self.connection.execute(sql, values).fetchall()

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - whatever the column holds
        """The first column of the first row, or None without a row."""
        rows = self.query(sql, values)
        return rows[0][0] if rows else None

    def meta(self, key: str) -> Any:  # noqa: ANN401 - text or a number
        """The value of `key` in `meta`, None without one."""
        if self._meta is None:
            return self.value("SELECT value FROM meta WHERE key = ?", (key,))
        if not self._meta:
            self._meta.update(self.query("SELECT key, value FROM meta"))
        return self._meta.get(key)

    def many(self, sql: str, sequence: Sequence[Sequence[Any]]) -> Rows:
        """All rows of a statement that is run once for each of `sequence`."""
        with self._explaining():
            return self.connection.executemany(sql, sequence).fetchall()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise explained(error, self.path) from None
        except UnicodeDecodeError:
            raise self.damaged("a text is not UTF-8") from None

    @contextmanager
    def writing(self) -> Iterator[int]:
        """A write transaction, and the number of the generation it makes; everything or nothing of it is kept.

        BEGIN IMMEDIATE is explicit because apsw's `with connection` holds the GIL while it waits for the lock.
        """
        self.query("BEGIN IMMEDIATE")
        try:
            yield self.value("UPDATE meta SET value = value + 1 WHERE key = 'generation' RETURNING value")
            self.query("COMMIT")
        except BaseException:
            if not self.connection.get_autocommit():
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one generation, whoever writes meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        self.query("BEGIN")
        self._meta = {}
        try:
            yield
        finally:
            self._meta = None
            if not self.connection.get_autocommit():
                self.connection.execute("ROLLBACK")


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(5000)
        version = _version(connection)
        if version == 0:
            connection.pragma("page_size", schema.PAGE_SIZE)
            connection.pragma("application_id", schema.APPLICATION_ID)
        if durable.shared(path):
            connection.pragma("journal_mode", "delete")
        else:
            _log_ahead(connection)
        connection.pragma("synchronous", "normal")
        _tune(connection)
        if version < schema.SCHEMA_VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_ahead(connection: apsw.Connection) -> None:
    """Switch to a write-ahead log; for this SQLite does not wait until others have done the same."""
    for tries_left in reversed(range(_TRIES)):
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if not tries_left:
                raise
            time.sleep(_PAUSE_SECONDS)


def _connect_read_only(path: Path) -> apsw.Connection:
    if not path.exists():
        raise IndexUnavailable(f"There is no index {path}.", "Run memory-tui index, without --read-only.")
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5000)
        version = _version(connection)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError):
        # Where nothing can be written SQLite cannot share a write-ahead log; without one there is no need to.
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            connection = _copied(path)
        else:
            connection = apsw.Connection(_immutable(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        version = _version(connection)
    if version < schema.SCHEMA_VERSION:
        connection.close()
        if version == 0:
            raise IndexEmpty(f"There is nothing in the index {path} yet.", "Wait, or run memory-tui index.")
        raise IndexOutdated(f"The index {path} is of an older version of memory-tui.", "Run memory-tui index.")
    _tune(connection)
    return connection


def _copied(path: Path) -> apsw.Connection:
    """A copy in memory of an index and its log, which is put together in a temporary folder; for one that cannot be
    read where it lies.
    """
    connection = apsw.Connection(":memory:")
    try:
        with tempfile.TemporaryDirectory(prefix="memory-tui-") as folder:
            for side in ("", "-wal"):
                shutil.copyfile(path.with_name(path.name + side), Path(folder, f"index{side}"))
            _copy(apsw.Connection(str(Path(folder, "index"))), connection)
    except OSError as error:
        raise IndexUnavailable(
            f"The index {path} cannot be read where it lies, nor copied to {tempfile.gettempdir()}: {error.strerror}.",
            "Free some space, or make its folder writable.",
        ) from None
    return connection


def _copy(source: apsw.Connection, target: apsw.Connection) -> None:
    """All pages of `source`, which is closed, over those of `target`."""
    try:
        with target.backup("main", source, "main") as backup:
            backup.step()
    finally:
        source.close()


def _seed(index: Path, where: Path, notices: list[Notice]) -> None:
    """Begin the index at `where` as a copy of one that cannot be written: nothing has to be embedded again."""
    try:
        target = apsw.Connection(str(where), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _copy(_connect_read_only(index), target)
        finally:
            target.close()
    except (_Unusable, apsw.Error, IndexUnavailable) as error:
        notices.append(notice("not_copied", path=str(index), place=str(where), why=str(error)))


def _is_frozen(connection: apsw.Connection) -> bool:
    """Whether it was opened without locks, or is a copy in memory."""
    return not connection.filename or bool(connection.open_flags & apsw.SQLITE_OPEN_URI)


def _frozen(path: Path) -> Frozen:
    """Size and time of the index and of its log."""
    numbers: list[int] = []
    for side in ("", "-wal"):
        try:
            status = path.with_name(path.name + side).stat()
        except FileNotFoundError:
            continue
        numbers += [status.st_size, status.st_mtime_ns]
    return tuple(numbers)


def _tune(connection: apsw.Connection) -> None:
    """Set how much is kept in memory; the file is not mapped, or all of it would count as this process's memory."""
    connection.pragma("cache_size", -2000)
    connection.pragma("temp_store", "memory")
    connection.pragma("journal_size_limit", 64 << 20)


def _header(path: Path) -> bytes:
    """The first bytes of a file, as SQLite reads them."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return connection.read("main", 0, 0, 100)[1]
        finally:
            connection.close()
    except apsw.Error as error:
        raise OSError(0, str(error)) from None


def _stranger(path: Path) -> IndexUnavailable:
    """Whose database lies at `path`; it is looked at without a trace."""
    what = "is a database of another program"
    try:
        connection = apsw.Connection(_immutable(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            _version(connection)
        finally:
            connection.close()
    except IndexUnavailable as error:
        return error
    except apsw.Error:
        what = "is not an index of memory-tui"
    except _Unusable as error:
        what = str(error)
    return refused(path, what)


def _immutable(path: Path) -> str:
    return f"file:{urllib.parse.quote(str(path))}?immutable=1"


def _version(connection: apsw.Connection) -> int:
    """The schema version, 0 for an empty file.

    Raises _Unusable for what is not ours, and IndexUnavailable for what is OpenClaw's.
    """
    # In one transaction: another process may be making the tables right now, and half of them would look like damage.
    connection.execute("BEGIN")
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        application, version = connection.pragma("application_id"), connection.pragma("user_version")
        pages = connection.pragma("page_count")
    finally:
        if not connection.get_autocommit():
            connection.execute("ROLLBACK")
    if not tables and (application == schema.APPLICATION_ID or not pages):
        return 0
    if "memory_index_meta" in tables or (tables >= _OPENCLAW_TABLES and application == 0):
        raise IndexUnavailable(
            f"{connection.filename} is OpenClaw's own index, which memory-tui never touches.",
            "Name another file with --index.",
        )
    if application != schema.APPLICATION_ID:
        raise _Unusable("is a database of another program")
    if not 0 < version <= schema.SCHEMA_VERSION:
        raise _Unusable(f"has schema version {version}, and this memory-tui knows {schema.SCHEMA_VERSION}")
    return int(version)


def _migrate(connection: apsw.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    version = connection.pragma("user_version")
    for number, statements in enumerate(schema.VERSIONS[version:], version + 1):
        connection.execute(statements)
        connection.pragma("user_version", number)
    if version == 0 and not abilities.fts5():
        connection.execute(schema.full_text_tables("unicode61"))
    connection.execute("COMMIT")


def _why(error: Exception) -> str:
    match error:
        case _Unusable():
            return str(error)
        case apsw.NotADBError():
            return "is not a database"
        case _:
            return "is damaged"


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise explained(error, path) from None


def damaged(path: Path, what: str = "") -> IndexDamaged:
    """What is to be said of damage in the index at `path`; `what` makes no sense in it."""
    message = f"The index {path} is damaged{f' ({what})' if what else ''}."
    return IndexDamaged(message, "memory-tui index moves it aside, and makes it again from the notes.")


def explained(error: apsw.Error, path: Path) -> MemoryTuiError:
    """What a person can make of SQLite's `error` on the index at `path`."""
    match error:
        case apsw.InterruptError():
            return Cancelled()
        case apsw.FullError():
            message = f"The disk is full: {path} cannot grow{durable.full(path)}."
            step = "Free some space; what is indexed stays usable."
        case apsw.BusyError() | apsw.LockedError():
            return IndexBusy(f"Another program is writing {path} for long.", "Try again when it has finished.")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.TooBigError() | apsw.MismatchError():
            return damaged(path)
        case apsw.SQLError() if _SPOILED_SCHEMA.search(str(error)):
            return damaged(path, str(error))
        case apsw.IOError() | apsw.CantOpenError() if durable.room(path) in range(_NO_ROOM):
            message = f"The disk is full: {path} cannot be opened to be written{durable.full(path)}."
            step = "Free some space; what is indexed stays usable."
        case apsw.CantOpenError() | apsw.IOError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            message, step = f"The index {path} cannot be read or written: {error}.", "Check the file, folder and disk."
        case _:
            message = f"SQLite refused a statement on the index {path}: {error}."
            step = "memory-tui doctor reads the file from end to end, and says whether it is damaged."
    return IndexUnavailable(message, step)
