"""The record keeps what every note was: each text once, and each change of a note with its author and its time.

Seven tables of the state database. A row of `note_edit` is one note in one change, whoever made it (`note_author`);
`note_change` has title, kind and state of those that this program made, which undo reads. A text (`note_blob`) is kept
as what differs from the version before it, some of them whole. `note_path` has what each note was when it was last
looked at, so that whoever looks next sees what became of it, and `note_scope` the numbers of a workspace: neither
is told twice. `note_start` has since when every change is known.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw
from msgspec import Struct

from memory_tui import state_db
from memory_tui.errors import EditFailed, StateUnavailable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KEEP_DAYS = 90
"""So long a change can be looked at and taken back."""
KEEP_BYTES = 256 * 1024 * 1024
"""So much room, compressed, the texts of all changes may take; the oldest make way."""
_DEEPEST, _DEEPEST_LARGE, _STEPPED_BYTES = 1024, 16, 1 << 26
"""On how many others a version may rest, fewer the larger it is, for a person waits until all are unpacked."""
_REST, _MOST_RESTS, _LARGEST_REST = 32, 64, 1 << 18
"""Every so many versions a text stays in memory, some of them in all, so that its neighbours are unpacked from it."""
_SHORTEST_PREFIX = 8
_MAGIC = b"\x28\xb5\x2f\xfd"
"""How each packed text begins, which is not kept."""
_LARGE, _LARGEST_WINDOW = 1 << 20, 27
_MOST_COUNTED = 1 << 24
"""Bytes of two texts of which lines are compared."""
_DAY_SECONDS = 86_400.0
T = TypeVar("T")
_P, _C = zstd.CompressionParameter, zstd.DecompressionParameter

_TABLES = """
CREATE TABLE IF NOT EXISTS note_change (
  scope TEXT NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
  title TEXT NOT NULL, undoes INTEGER NOT NULL, redoes INTEGER NOT NULL, reason TEXT NOT NULL, more TEXT NOT NULL,
  PRIMARY KEY (scope, id)
) STRICT;
CREATE INDEX IF NOT EXISTS note_change_begun ON note_change (scope) WHERE state = 'intent';
CREATE TABLE IF NOT EXISTS note_scope (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL DEFAULT 0, began INTEGER, viewed INTEGER,
  pruned REAL
) STRICT;
CREATE TABLE IF NOT EXISTS note_path (
  id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, path TEXT NOT NULL, blob INTEGER,
  size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, device INTEGER, UNIQUE (scope, path)
) STRICT;
CREATE TABLE IF NOT EXISTS note_edit (
  scope INTEGER NOT NULL, id INTEGER NOT NULL, place INTEGER NOT NULL, path INTEGER NOT NULL, at REAL NOT NULL,
  before INTEGER, after INTEGER, plus INTEGER NOT NULL, minus INTEGER NOT NULL,
  mode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, author INTEGER,
  PRIMARY KEY (scope, id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note_start (scope INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS note_author (
  id INTEGER PRIMARY KEY, host TEXT NOT NULL, session TEXT NOT NULL, rule TEXT NOT NULL, UNIQUE (host, session, rule)
) STRICT;
CREATE TABLE IF NOT EXISTS note_blob (
  id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, base INTEGER, data BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS note_blob_hash ON note_blob (hash);
"""
_EDITS = """
SELECT e.id, e.place, e.at, p.path, e.before, e.after, e.plus, e.minus, coalesce(c.kind, ''), coalesce(c.title, ''),
  a.host, a.session, a.rule
FROM note_scope AS s CROSS JOIN note_edit AS e ON e.scope = s.id JOIN note_path AS p ON p.id = e.path
LEFT JOIN note_change AS c ON c.scope = s.name AND c.id = e.id LEFT JOIN note_author AS a ON a.id = e.author
WHERE s.name = ?1 AND coalesce(c.state, 'done') = 'done' AND e.id > ?2 AND e.id < ?3 {more}
ORDER BY e.id {order}, e.place LIMIT ?4
"""
_CHAIN = """
WITH RECURSIVE chain (id, step) AS (
  SELECT ?, 0 UNION ALL SELECT base, step + 1 FROM chain JOIN note_blob USING (id) WHERE base NOT NULL
)"""
"""A text, and those below it down to the whole one that it rests on."""
_DROP_BLOBS = """
WITH RECURSIVE needed (id) AS (
  SELECT before FROM note_edit UNION SELECT after FROM note_edit UNION SELECT blob FROM note_path
  UNION SELECT base FROM needed JOIN note_blob USING (id)
)
DELETE FROM note_blob WHERE id NOT IN (SELECT id FROM needed WHERE id NOT NULL)
"""
_TOO_MUCH = """
SELECT coalesce(max(id), 0) FROM (
  SELECT id, sum(sum(size)) OVER (ORDER BY id DESC) AS total, max(id) OVER () AS last FROM (
    SELECT max(e.id) AS id, length(data) AS size FROM note_edit AS e JOIN note_blob AS b ON b.id IN (before, after)
    WHERE e.scope = ?1 AND b.id NOT IN (SELECT blob FROM note_path WHERE scope = ?1 AND blob NOT NULL) GROUP BY b.id
  ) GROUP BY id
) WHERE total > ?2 AND id < last
"""
"""The newest change that is over a size, counted from the newest one; each text counts once, and no note's last one."""


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
    note was not there. `plus` and `minus` count lines. `kind` and `title` are those of a change that this program made,
    empty for one of somebody else.
    """

    id: int
    place: int
    at: float
    path: str
    before: int | None
    after: int | None
    plus: int
    minus: int
    kind: str = ""
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
    """What a note was when it was last seen: its text, None where it was gone, and its size, times and device."""

    blob: int | None
    size: int
    mtime_ns: int
    ctime_ns: int
    device: int


class Record:
    """The record of the workspace that `folder` names. Every method may raise EditRefused.

    What a writing method returned from is whole and flushed; what it raised from is not there.
    """

    def __init__(self, folder: Path, database: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.database = database or state_db.default_path()
        self.clock = clock
        self.most_days: float = KEEP_DAYS
        self.most_bytes = KEEP_BYTES
        self._scope = folder.name

    # --- reading -----------------------------------------------------------------------------------------------------

    def edits(self, path: str | None = None, *, since: int = 0, until: int = 0, most: int = -1) -> tuple[Edit, ...]:
        """Return the changes that were made, newest first: of one note with `path`, between two numbers, at most so
        many.
        """
        more = "AND e.path = (SELECT id FROM note_path WHERE scope = s.id AND path = ?5)" if path is not None else ""
        values = (self._scope, since, until or sys.maxsize, most, *([path] if path is not None else []))
        return self._edits(_EDITS.format(more=more, order="DESC"), values)

    def without_author(self) -> tuple[Edit, ...]:
        """Return the changes of others of whom nobody asked yet who made them, oldest first."""
        sql = _EDITS.format(more="AND c.id IS NULL AND e.author IS NULL", order="ASC")
        return self._edits(sql, (self._scope, 0, sys.maxsize, 1000))

    def text(self, blob: int | None) -> bytes | None:
        """Return the text that is kept as `blob`. Raises EditRefused when it is gone or damaged."""
        if blob is None:
            return None
        data = self._read(lambda connection: _text(connection, blob), None)
        if data is None:
            raise EditFailed(
                "A text of the journal is gone or damaged.",
                f"It would be in {self.database}; the notes are as they are.",
            )
        return data

    def blob_of(self, data: bytes | None) -> int | None:
        """Return the text that these bytes are kept as, None where they are not."""
        if data is None:
            return None
        return self._read(lambda connection: self._blob_of(connection, data), None)

    def heads(self) -> tuple[dict[str, Head], int | None]:
        """Return what each note was when it was last seen, and when all were looked at (ns), None for never."""

        def heads(connection: apsw.Connection) -> tuple[dict[str, Head], int | None]:
            sql = """SELECT path, blob, size, mtime_ns, ctime_ns, device FROM note_path
                WHERE scope = (SELECT id FROM note_scope WHERE name = ?) AND size NOT NULL"""
            known = {path: Head(*row) for path, *row in rows(connection, sql, self._scope)}
            return known, value(connection, "SELECT began FROM note_scope WHERE name = ?", self._scope)

        nothing: tuple[dict[str, Head], int | None] = {}, None
        return self._read(heads, nothing)

    def unviewed(self) -> tuple[Edit, ...]:
        """Return what others changed since a person last looked, newest first; nothing before the first look."""
        since = self._of_scope("viewed")
        return () if since is None else tuple(edit for edit in self.edits(since=since) if not edit.kind)

    def start(self) -> float | None:
        """Return since when (epoch seconds) every change is known that was made; None before the first look."""
        sql = "SELECT at FROM note_start WHERE scope = (SELECT id FROM note_scope WHERE name = ?)"
        has = state_db.has_table
        return self._read(lambda c: value(c, sql, self._scope) if has(c, "note_start") else None, None)

    # --- writing -----------------------------------------------------------------------------------------------------

    def view(self) -> None:
        """Write down that a person has looked at every change until now."""
        sql = "UPDATE note_scope SET viewed = last WHERE id = ?"
        self._write(lambda connection: connection.execute(sql, (self._scope_id(connection),)))

    def set_authors(self, authors: Iterable[tuple[int, int, Author]]) -> None:
        """Write down who made changes, each by its number and place."""

        def write(connection: apsw.Connection) -> None:
            scope = self._scope_id(connection)
            connection.executemany(
                "UPDATE note_edit SET author = ? WHERE scope = ? AND id = ? AND place = ?",
                [(self._author_id(connection, who), scope, number, place) for number, place, who in authors],
            )

        self._write(write)

    def observe(self, sights: Sequence[Sight], began: int | None = None) -> tuple[Edit, ...]:
        """Write down how notes differ from what they were; returns what became of them. Only while locked.

        With `began` (ns) every note was looked at, from then on.
        """

        def write(connection: apsw.Connection) -> tuple[Edit, ...]:
            scope = self._scope_id(connection)
            begun = self._begun(connection, scope)
            edits = [self._observe(connection, scope, sight) for sight in sights if sight.path not in begun]
            if began is not None:
                sql = "UPDATE note_scope SET began = ?, viewed = coalesce(viewed, last) WHERE id = ?"
                connection.execute(sql, (began, scope))
                connection.execute("INSERT OR IGNORE INTO note_start VALUES (?, ?)", (scope, began / 1e9))
            return tuple(edit for edit in edits if edit is not None)

        return self._write(write)

    def tidy(self) -> None:
        """Forget what is too old or over a size, at most once a day. Only while the journal is locked."""
        pruned = self._of_scope("pruned")
        if pruned is None or abs(self.clock() - pruned) > _DAY_SECONDS:
            self.prune()

    def prune(self) -> int:
        """Forget what is too old or over a size, and texts that nothing names; returns how many changes.

        Only while the journal is locked.
        """
        return self._write(self._forgotten)

    def clear(self, *, others: bool = False) -> None:
        """Forget every change of this workspace, or those of `others` alone, and what each note was."""
        if not self.database.exists():
            return

        def write(connection: apsw.Connection) -> None:
            scope = self._scope_id(connection)
            ours = "SELECT id FROM note_change WHERE scope = ?2" if others else "SELECT 0"
            if not others:
                connection.execute("DELETE FROM note_change WHERE scope = ?", (self._scope,))
            sql = f"DELETE FROM note_edit WHERE scope = ?1 AND id NOT IN ({ours})"
            connection.execute(sql, (scope, self._scope) if others else (scope,))
            sql = "UPDATE note_path SET blob = NULL, size = NULL WHERE scope = ?"
            connection.execute(sql, (scope,))
            connection.execute("UPDATE note_scope SET began = NULL, viewed = NULL WHERE id = ?", (scope,))
            connection.execute("DELETE FROM note_start WHERE scope = ?", (scope,))
            self._tidy(connection, scope)

        self._write(write)

    # --- the tables --------------------------------------------------------------------------------------------------

    def _scope_id(self, connection: apsw.Connection) -> int:
        connection.execute("INSERT OR IGNORE INTO note_scope (name) VALUES (?)", (self._scope,))
        return int(value(connection, "SELECT id FROM note_scope WHERE name = ?", self._scope))

    def _began(self, connection: apsw.Connection, scope: int) -> int | None:
        """Return from when on every note is known; None while changes of others are not written down."""
        began: int | None = value(connection, "SELECT began FROM note_scope WHERE id = ?", scope)
        return began

    def _next(self, connection: apsw.Connection, scope: int) -> int:
        return int(value(connection, "UPDATE note_scope SET last = last + 1 WHERE id = ? RETURNING last", scope))

    def _path_id(self, connection: apsw.Connection, scope: int, path: str) -> int:
        values = (scope, storable(path))
        connection.execute("INSERT OR IGNORE INTO note_path (scope, path) VALUES (?, ?)", values)
        return int(value(connection, "SELECT id FROM note_path WHERE scope = ? AND path = ?", *values))

    def _author_id(self, connection: apsw.Connection, author: Author) -> int:
        values = tuple(map(storable, (author.host, author.session, author.rule)))
        connection.execute("INSERT OR IGNORE INTO note_author (host, session, rule) VALUES (?, ?, ?)", values)
        sql = "SELECT id FROM note_author WHERE host = ? AND session = ? AND rule = ?"
        return int(value(connection, sql, *values))

    def _observe(self, connection: apsw.Connection, scope: int, sight: Sight) -> Edit | None:
        """Write down what became of one note since it was last seen."""
        path = self._path_id(connection, scope, sight.path)
        [(head, size)] = rows(connection, "SELECT blob, size FROM note_path WHERE id = ?", path)
        if sight.data is None and size is None:
            return None
        before = _text(connection, head)
        blob, edit = self._keep(connection, sight.data, head, before), None
        known = size is not None or (sight.fresh and self._began(connection, scope) is not None)
        if blob != head and known:
            number = self._next(connection, scope)
            lines = counted(before, sight.data)
            self._insert(connection, (scope, number, 0), path, sight.at, head, blob, lines)
            edit = Edit(number, 0, sight.at, sight.path, head, blob, *lines)
        connection.execute(
            "UPDATE note_path SET blob = ?, size = ?, mtime_ns = ?, ctime_ns = ?, device = ? WHERE id = ?",
            (blob, sight.size, sight.mtime_ns, sight.ctime_ns, sight.device, path),
        )
        return edit

    def _begun(self, connection: apsw.Connection, scope: int) -> set[str]:
        """Return the notes into which a change of this program is on its way: who settles it says what they were."""
        sql = """SELECT p.path FROM note_change AS c JOIN note_edit AS e ON e.scope = ?1 AND e.id = c.id
            JOIN note_path AS p ON p.id = e.path WHERE c.scope = ?2 AND c.state = 'intent'"""
        return {str(path) for (path,) in connection.execute(sql, (scope, self._scope))}

    def _insert(
        self,
        connection: apsw.Connection,
        key: tuple[int, int, int],
        path: int,
        at: float,
        before: int | None,
        after: int | None,
        lines: tuple[int, int] | None = None,
        mode: int = 0,
        mtime_ns: int = 0,
    ) -> None:
        """Write one note of a change, with the `lines` that came and went."""
        if lines is None:
            lines = (0, 0) if before == after else counted(_text(connection, before), _text(connection, after))
        connection.execute(
            f"INSERT OR REPLACE INTO note_edit VALUES ({'?, ' * 11}?)",
            (*key, path, at, before, after, *lines, mode, mtime_ns, None),
        )

    def _blob_of(self, connection: apsw.Connection, data: bytes) -> int | None:
        sql = "SELECT id FROM note_blob WHERE hash = ?"
        # Two texts may have one hash, as it is short.
        return next(
            (blob for (blob,) in rows(connection, sql, blob_hash(data)) if _text(connection, blob) == data), None
        )

    def _keep(
        self, connection: apsw.Connection, data: bytes | None, base: int | None, prefix: bytes | None = None
    ) -> int | None:
        """Keep a text, as what differs from that of `base`, which may be given as `prefix`; returns its number."""
        if data is None or (prefix is not None and data == prefix):
            return None if data is None else base
        if (blob := self._blob_of(connection, data)) is not None:
            return blob
        depth = 0 if base is None else value(connection, f"{_CHAIN} SELECT count(*) FROM chain", base)
        is_short = depth < min(_DEEPEST, _DEEPEST_LARGE + _STEPPED_BYTES // (len(data) + 1))
        prefix = (prefix or _text(connection, base)) if is_short else None
        if prefix is None or len(prefix) < _SHORTEST_PREFIX:
            base, prefix = None, None
        sql = "INSERT INTO note_blob (hash, base, data) VALUES (?, ?, ?)"
        connection.execute(sql, (blob_hash(data), base, _packed(data, prefix)))
        return connection.last_insert_rowid()

    def _forgotten(self, connection: apsw.Connection) -> int:
        scope, limit = self._scope_id(connection), self.clock() - self.most_days * _DAY_SECONDS
        last = value(connection, _TOO_MUCH, scope, self.most_bytes)
        connection.execute(
            "DELETE FROM note_change WHERE scope = ? AND (at < ? AND state <> 'intent' OR id <= ?)",
            (self._scope, limit, last),
        )
        count = connection.changes()
        these = """FROM note_edit WHERE scope = ?1 AND (at < ?2 OR id <= ?3)
            AND id NOT IN (SELECT id FROM note_change WHERE scope = ?4)"""
        values = scope, limit, last, self._scope
        sql = f"UPDATE note_start SET at = max(at, coalesce((SELECT max(at) {these}), 0)) WHERE scope = ?1"
        connection.execute(sql, values)
        connection.execute(f"DELETE {these}", values)
        connection.execute("UPDATE note_scope SET pruned = ? WHERE id = ?", (self.clock(), scope))
        self._tidy(connection, scope)
        return count

    def _tidy(self, connection: apsw.Connection, scope: int) -> None:
        connection.execute(_DROP_BLOBS)
        connection.execute(
            "DELETE FROM note_path WHERE scope = ? AND blob IS NULL AND id NOT IN (SELECT path FROM note_edit)",
            (scope,),
        )

    def _of_scope(self, name: str) -> Any:  # noqa: ANN401 - as SQLite
        sql = f"SELECT {name} FROM note_scope WHERE name = ?"
        return self._read(lambda connection: value(connection, sql, self._scope), None)

    def _edits(self, sql: str, values: tuple[object, ...]) -> tuple[Edit, ...]:
        def edits(connection: apsw.Connection) -> tuple[Edit, ...]:
            return tuple(
                Edit(*(*row[:10], None if row[12] is None else Author(*row[10:])))
                for row in rows(connection, sql, *map(storable, values))
            )

        return self._read(edits, ())

    def _read(self, how: Callable[[apsw.Connection], T], nothing: T) -> T:
        if not self.database.exists():
            return nothing
        return self._run(lambda c: how(c) if state_db.has_table(c, "note_blob") else nothing, write=False)

    def _write(self, how: Callable[[apsw.Connection], T]) -> T:
        def write(connection: apsw.Connection) -> T:
            self._prepare(connection)
            return how(connection)

        return self._run(write, write=True)

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.execute(_TABLES)

    def _run(self, how: Callable[[apsw.Connection], T], *, write: bool) -> T:
        try:
            for transaction in state_db.transactions(self.database, write=write):
                with transaction as connection:
                    return how(connection)
        except StateUnavailable as error:
            raise unusable(error.message.removesuffix(".").replace(" cannot be used", "")) from None
        raise AssertionError("the second transaction returns or raises")


# --- texts -----------------------------------------------------------------------------------------------------------


def blob_hash(data: bytes) -> int:
    """Return what tells a text from others mostly: the beginning of its SHA-256."""
    return int.from_bytes(hashlib.sha256(data).digest()[:4], signed=True)


def counted(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Count the lines that came and went; one that only moved is neither. Of huge texts line ends are counted."""
    old, new = before or b"", after or b""
    if len(old) + len(new) > _MOST_COUNTED:
        return max(0, new.count(b"\n") - old.count(b"\n")), max(0, old.count(b"\n") - new.count(b"\n"))
    lines, lost = Counter(new.splitlines(keepends=True)), Counter(old.splitlines(keepends=True))
    return (lines - lost).total(), (lost - lines).total()


def _packed(data: bytes, prefix: bytes | None) -> bytes:
    size = len(data) + len(prefix or b"")
    options: dict[int, int] = {_P.compression_level: 9}
    if size > _LARGE:
        window = min(_LARGEST_WINDOW, size.bit_length())
        options = {_P.compression_level: 3, _P.window_log: window, _P.enable_long_distance_matching: 1}
    known = None if prefix is None else zstd.ZstdDict(prefix, is_raw=True).as_prefix
    return zstd.compress(data, options=options, zstd_dict=known).removeprefix(_MAGIC)


def _text(connection: apsw.Connection, blob: int | None) -> bytes | None:
    """Return a text from the whole one that it rests on; None where one of them is gone or damaged."""
    sql = f"{_CHAIN} SELECT id, hash, data FROM chain JOIN note_blob USING (id) ORDER BY step DESC"
    chain = rows(connection, sql, blob)
    seen = ((at, rest) for at in reversed(range(len(chain))) if (rest := _rests.get(chain[at][:2])) is not None)
    last, text = next(seen, (-1, None))
    for at, (number, digest, packed) in enumerate(chain[last + 1 :], last + 1):
        known = None if text is None else zstd.ZstdDict(text, is_raw=True).as_prefix
        try:
            text = zstd.decompress(_MAGIC + packed, known, {_C.window_log_max: _LARGEST_WINDOW})
        except (zstd.ZstdError, ValueError):
            return None
        if at and not at % _REST and len(text) < _LARGEST_REST and blob_hash(text) == digest:
            _rests[number, digest] = text
            for key in [*_rests][:-_MOST_RESTS]:
                _rests.pop(key, None)
    return text if text is not None and blob_hash(text) == chain[-1][1] else None


_rests: dict[tuple[int, int], bytes] = {}


# --- helpers ---------------------------------------------------------------------------------------------------------


def rows(connection: apsw.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - as SQLite
    """Return all rows that a statement gives."""
    return connection.execute(sql, values).fetchall()


def value(connection: apsw.Connection, sql: str, *values: Any) -> Any:  # noqa: ANN401 - as SQLite
    """Return the value that a statement gives, None where it gives none."""
    return next((row[0] for row in rows(connection, sql, *values)), None)


def storable(value: Any) -> Any:  # noqa: ANN401 - what SQLite takes
    """Return a text without what UTF-8 cannot hold, anything else as it is."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def unusable(what: str) -> EditFailed:
    """Return the error of a journal that cannot be used."""
    return EditFailed(f"The journal cannot be used: {what}.", "Check the folder and the space on its disk.")
