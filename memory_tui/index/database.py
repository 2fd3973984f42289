"""An index as an SQLite database: its tables, the recipe that it was made with, its file, and a connection to it.

`meta`, `files`, `chunks`, `embedding_cache`, `chunks_fts` and `chunks_vec` keep the names and the meaning of
OpenClaw 2026.3.13; inside, rows are tied by integers and vectors are float32 BLOBs. An index file is disposable:
everything in it can be made again from the notes.

A connection belongs to one thread; only `interrupt` may be called from another.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.util
import json
import operator
import os
import re
import shutil
import stat
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

import apsw
import platformdirs
from msgspec import MsgspecError, Struct

from memory_tui import durable, errors
from memory_tui.config.places import ExtraPath
from memory_tui.durable import read_beside
from memory_tui.providers import Identity, fingerprint
from memory_tui.sentences import Notice, notice
from memory_tui.tokens import STEM_TOKENIZER
from memory_tui.workspace.notes import MediaRules

# --- its tables ------------------------------------------------------------------------------------------------------

APPLICATION_ID = 0x6D747569
"""Marks an SQLite file as ours: "mtui"."""
PAGE_SIZE = 16384
WORDS_VERSION = 4
"""Raised when `tokens.indexed_form` changes, because that text is not kept and has to be made again."""
RECIPE = "memory_index_meta_v1"
"""Key of the recipe in `meta`, as documented."""
NO_FOLDER = "no_folder"
"""Key in `meta` of an index that no folder has: it is copied, so nobody compares it with a disk or syncs it."""
KEYWORDS_ONLY = Identity("none", "fts-only", fingerprint(provider="none", model="fts-only"), 0)
"""The identity of an index without vectors, as documented."""

SCHEMA_VERSION = 13
"""Raised when a table changes; an older index is made anew, with the vectors it has."""
# `chunks_vec` is made in `index_write.py`: its columns are as long as the vectors of the model.
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    hash TEXT NOT NULL, mtime INTEGER NOT NULL, size INTEGER NOT NULL,
    state TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '', indexed_at REAL NOT NULL, title TEXT NOT NULL DEFAULT '',
    dated TEXT NOT NULL DEFAULT '', chunks INTEGER NOT NULL DEFAULT 0,
    -- owner/name of the workspace that the note is copied from, and its place in the order there; empty for one's own.
    workspace TEXT NOT NULL DEFAULT '', first_seq INTEGER NOT NULL DEFAULT 0, UNIQUE(path, workspace));
-- Texts come last, so that the columns before them are read without walking over them. `above` are the words that
-- stemmed full-text search sees besides those of the text: the day of the note, and the headings above the chunk.
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY AUTOINCREMENT, file_id INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    occurrence INTEGER NOT NULL DEFAULT 0, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    passage INTEGER NOT NULL, embedding_id INTEGER, updated_at REAL NOT NULL, chunk_id TEXT NOT NULL,
    hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, above TEXT NOT NULL);
CREATE INDEX chunks_by_file ON chunks(file_id, ordinal);
CREATE INDEX chunks_without_vector ON chunks(id) WHERE embedding_id IS NULL AND occurrence = 0;
CREATE TABLE IF NOT EXISTS embedding_cache(
    id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    hash TEXT NOT NULL, dims INTEGER NOT NULL, updated_at REAL NOT NULL, embedding BLOB NOT NULL,
    UNIQUE(provider, model, provider_key, hash));
-- What the annotations of a chunk say, of those chunks that have any.
CREATE TABLE annotations(
    chunk INTEGER PRIMARY KEY, importance INTEGER NOT NULL, triggers TEXT NOT NULL, project TEXT NOT NULL);
-- The vectors of the windows of a chunk, by the hash of its text; a window that got none has that of the chunk.
CREATE TABLE IF NOT EXISTS windows(
    hash TEXT NOT NULL, place INTEGER NOT NULL, embedding_id INTEGER NOT NULL, PRIMARY KEY(hash, place)) WITHOUT ROWID;
-- Texts whose vectors a provider's batch service was asked for, by job; one without `remote_id` is not submitted yet.
CREATE TABLE IF NOT EXISTS batch_jobs(
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    dims INTEGER NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, claimed_at REAL NOT NULL,
    file_id TEXT NOT NULL DEFAULT '', remote_id TEXT NOT NULL DEFAULT '', submitted_at REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS batch_texts(hash TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY(hash, job)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batch_texts_by_job ON batch_texts(job);
-- Hashes of texts that are not sent to the provider, and what secret each looks like. No text is here.
CREATE TABLE IF NOT EXISTS withheld(hash TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
-- Hashes of texts that a provider refused, why in its words, and when. No text is here.
CREATE TABLE IF NOT EXISTS refused(
    provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL, hash TEXT NOT NULL, reason TEXT NOT NULL,
    at REAL NOT NULL, PRIMARY KEY(hash, provider, model, provider_key)) WITHOUT ROWID;
INSERT INTO meta VALUES('generation', 0), ('uuid', lower(hex(randomblob(16))));
"""
REMADE = frozenset({"meta", "files", "chunks", "changes", "annotations", "word_counts"})
"""Tables that an index of an older schema loses; every version had the others as they are."""

TOKENIZERS = {"unicode61": "unicode61", "trigram": "trigram case_sensitive 0"}
"""How OpenClaw's full-text table can cut words: the documented name, and FTS5's arguments."""


def full_text_tables(tokenizer: str) -> str:
    """Return what makes both full-text tables: OpenClaw's with `tokenizer` and filled from the chunks, ours empty."""
    return f"""
DROP TABLE IF EXISTS chunks_fts;
DROP TABLE IF EXISTS chunks_words;
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    text, content='chunks', content_rowid='id', tokenize='{TOKENIZERS[tokenizer]}');
CREATE VIRTUAL TABLE chunks_words USING fts5(
    body, content='', contentless_delete=1, tokenize='{" ".join(STEM_TOKENIZER)}');
INSERT INTO chunks_fts(chunks_fts) VALUES('rebuild');
INSERT OR REPLACE INTO meta VALUES('full_text', '{tokenizer}');
"""


class Recipe(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an index is made with; when any of it changes, every note is cut and written again.

    As JSON it is the documented record, in the documented order, and after that what only memory-tui has. `vector_dims`
    are 0 when there is no provider.
    """

    model: str
    provider: str
    provider_key: str
    sources: tuple[str, ...]
    scope_hash: str
    chunk_tokens: int
    chunk_overlap: int
    vector_dims: int
    fts_tokenizer: str = "unicode61"
    chunk_bytes: int
    words_version: int = WORDS_VERSION
    chunking: str = "2026.3"
    """The release by whose rules notes are cut, or `headings` where chunks end at them."""

    @property
    def identity(self) -> Identity:
        """The space of the vectors."""
        return Identity(self.provider, self.model, self.provider_key, self.vector_dims)


def differences(has: Recipe, wish: Recipe) -> tuple[str, ...]:
    """Return what an index made after `has` lacks to be one made after `wish`, in words; empty when nothing."""
    old, new = has.identity, wish.identity
    space: tuple[tuple[str, object, object], ...] = (
        ("provider", old.provider, new.provider),
        ("model", old.model, new.model),
        ("endpoint", old.key[:8], new.key[:8]),
        ("dimensions", old.dims, new.dims),
    )
    if old == KEYWORDS_ONLY and new != KEYWORDS_ONLY:
        # An index of words alone was made by no provider, and somebody may answer beside it.
        space = (("vectors in the index", "none", f"{new.provider} {new.model}"),)
    # What it is called, what the index has, what is wished; of hashes eight figures do to tell them apart.
    values = (
        *space,
        ("way of cutting", has.chunking, wish.chunking),
        ("chunk tokens", has.chunk_tokens, wish.chunk_tokens),
        ("overlap", has.chunk_overlap, wish.chunk_overlap),
        ("chunk bytes", has.chunk_bytes, wish.chunk_bytes),
        ("sources", " and ".join(has.sources), " and ".join(wish.sources)),
        ("extra paths", has.scope_hash[:8], wish.scope_hash[:8]),
        ("tokenizer", has.fts_tokenizer, wish.fts_tokenizer),
        ("form of words", has.words_version, wish.words_version),
    )
    changed = {name: f"{name}: {was} is now {now}" for name, was, now in values if was != now}
    if "provider" in changed or "model" in changed:
        # A fingerprint says nothing to a person where a name has changed as well.
        changed.pop("endpoint", None)
    return tuple(changed.values())


def scope_hash(extra_paths: Sequence[str], patterns: Sequence[ExtraPath] = (), media: MediaRules | None = None) -> str:
    """Return a hash of what is in scope, as documented: SHA-256 of the extra paths, and of which media are read there.

    With `patterns` an entry that has one is an object, and entries are in the order of their JSON (OpenClaw 2026.8).
    """
    paths: Sequence[object] = sorted(path.replace("\\", "/") for path in extra_paths)
    if patterns:
        pairs = ((item.path.replace("\\", "/"), item.pattern) for item in patterns)
        entries = [{"path": path, "pattern": pattern} if pattern else path for path, pattern in pairs]
        paths = sorted(entries, key=lambda entry: json.dumps(entry, ensure_ascii=False))
    scope = {
        "extraPaths": paths,
        "multimodal": {
            "enabled": media is not None,
            "modalities": sorted(media.modalities) if media else [],
            "maxFileBytes": media.most_bytes if media else MediaRules().most_bytes,
        },
    }
    text = json.dumps(scope, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# --- sqlite-vec -------------------------------------------------------------------------------------------------------


class Vec0(Struct, frozen=True):
    """Whether sqlite-vec works; `detail` is its version, or why it does not."""

    ready: bool
    detail: str


def load_vec0(connection: apsw.Connection) -> Vec0:
    """Load sqlite-vec into `connection`, and say whether that works.

    Importing the package instead would load a second SQLite (0.3 s, and two libraries that share vec0 crash).
    """
    path = _library()
    if path is None:
        return Vec0(False, "sqlite-vec is not installed")
    try:
        connection.enable_load_extension(True)
        # Its entry point is named, because SQLite guesses it from the name of the file.
        connection.load_extension(path, "sqlite3_vec_init")
        connection.enable_load_extension(False)
        return Vec0(True, str(connection.execute("SELECT vec_version()").get))
    except apsw.NoMemError as error:
        # Lack of memory says nothing of sqlite-vec.
        raise MemoryError(str(error)) from error
    except (apsw.Error, AttributeError) as error:
        return Vec0(False, f"load: {error}")


@functools.cache
def vec0() -> Vec0:
    """Return whether sqlite-vec works, tried once a process."""
    with closing(apsw.Connection(":memory:")) as connection:
        return load_vec0(connection)


@functools.cache
def _library() -> str | None:
    """Return the path of sqlite-vec's file without its suffix, which SQLite adds; None where it is not installed."""
    spec = importlib.util.find_spec("sqlite_vec")
    folders = (spec.submodule_search_locations if spec else None) or ()
    files = [file for folder in folders for file in Path(folder).glob("vec0.*")]
    return str(files[0].with_suffix("")) if files else None


# --- its file --------------------------------------------------------------------------------------------------------

SIDES = ("", "-wal", "-shm", "-journal")
"""What SQLite can leave of one database, the database itself first."""
_MAGIC = b"SQLite format 3\0"
_MARK = APPLICATION_ID.to_bytes(4, "big")
_HEADER = 100
"""Bytes of the header of a database, https://www.sqlite.org/fileformat.html#the_database_header"""
_MARK_AT = 68
"""Where in the header `_MARK` stands."""
_SPOILED = 2
"""So many bytes of magic and mark may differ in a header that was ours."""
_LEAST = 1 << 18
"""Bytes that have to be free for a new index to be begun."""
_ANOTHER = "Name another file with --index."

Kind = Literal["nothing", "empty", "ours", "database", "zeros", "other", "no file"]
"""What lies somewhere: `ours` by its header, the `database` of another program, a header of `zeros`, `other` bytes."""


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` leads to. Raises IndexRefused for a name that leads nowhere."""
    try:
        where = Path(path).resolve()
        where.stat()
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", "") or str(error)
        raise errors.IndexRefused(f"{os.fspath(path)!r} cannot be the index: {reason}.", _ANOTHER) from None
    return where


def kind(path: Path, header: Callable[[Path], bytes] | None = None) -> Kind:
    """Return what lies at `path`; "nothing" where nobody can look.

    `header` reads the first bytes of a file that SQLite may have open in this process: to close it otherwise would drop
    SQLite's locks.
    """
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return "nothing"
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    if not status.st_size:
        return "empty"
    try:
        start = (header or (lambda file: read_beside(file, _HEADER, whole=False)))(path)
    except OSError:
        return "other"
    # A few bytes may have flipped in a header that was ours.
    signs = start[: len(_MAGIC)] + start[_MARK_AT : _MARK_AT + len(_MARK)]
    ours = _MAGIC + _MARK
    if len(signs) == len(ours) and sum(map(operator.ne, signs, ours)) <= _SPOILED:
        return "ours"
    if start.startswith(_MAGIC):
        return "database"
    return "other" if any(start) else "zeros"


def is_private(path: Path) -> bool:
    """Return whether `path` is in the cache folder of memory-tui, where nobody else puts files."""
    with suppress(OSError, RuntimeError):
        return path.is_relative_to(platformdirs.user_cache_path("memory-tui", appauthor=False).resolve())
    return False


def refused(path: Path, what: str) -> errors.IndexRefused:
    """Return the error that `path` is left alone; `what` says why, as the predicate of a sentence."""
    step = f"{_ANOTHER} If this was an index of memory-tui, delete it: it is made again from the notes."
    return errors.IndexRefused(f"{path} {what}, so memory-tui leaves it alone.", step)


def check(index: Path) -> None:
    """Raise IndexRefused for what can be no index, and for links and pipes beside it that SQLite would use."""
    if index.is_dir() or index.suffix.lower() == ".md":
        what = "is a folder" if index.is_dir() else "is named like a note"
        raise errors.IndexRefused(f"{index} {what}, so it cannot be the index.", _ANOTHER)
    for side in SIDES:
        part = index.with_name(index.name + side)
        # Only the kind of the file is asked for, so no header is read.
        if kind(part, lambda _: b"") == "no file":
            raise refused(part, "is a folder" if part.is_dir() and not part.is_symlink() else "is a link or a pipe")


def make_writable(where: Path, notices: list[Notice]) -> None:
    """Make the folder of an index (0700), and an empty file (0600) where there is room. Raises IndexUnavailable.

    An index on a shared file system is reported in `notices`.
    """
    # A file that is not there yet has no second name.
    with suppress(OSError):
        if where.stat().st_nlink > 1:
            message = f"{where} has another name as well (a hard link), so two programs could write it without knowing."
            step = "Name another file with --index, or delete this one; it is made again from the notes."
            raise errors.IndexRefused(message, step)
    if name := durable.shared(where):
        notices.append(notice("on_shared_files", path=str(where), system=name))
    try:
        is_new = create(where).stat().st_size == 0
        room = durable.room(where)
        if is_new and room is not None and room < _LEAST:
            where.unlink()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(where))
    except OSError as error:
        is_full = error.errno == errno.ENOSPC
        full = durable.full(where) if is_full else ""
        message = f"The index {where} cannot be written: {error.strerror or error}{full}."
        name = "Free some space, or name" if is_full else "Name"
        raise errors.IndexUnavailable(message, f"{name} a file in a folder that can be written with --index.") from None


def rebuild_of(index: Path) -> Path:
    """Return where the index that will take the place of `index` is made."""
    return index.with_name(f"{index.name}.next")


def create(path: Path) -> Path:
    """Make sure that `path` can be written by us and read by nobody else.

    An existing file is not opened for that: closing it would drop the locks that SQLite holds on it in this process.
    """
    durable.make_folder(path.parent)
    # Log and shared memory of a deleted file would be taken for those of the new one. They are listed before it is
    # made: what comes later belongs to another process that makes the same index.
    orphans = [part for side in SIDES[1:] if (part := path.with_name(path.name + side)).exists()]
    try:
        os.close(durable.calls.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for part in orphans:
            durable.remove_file(part)
    except FileExistsError:
        for needed in (path, path.parent):
            if not os.access(needed, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(13, f"{needed} may not be written") from None
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
    return path


def quarantine(path: Path, why: str) -> Notice:
    """Rename the file and what SQLite left beside it, and return a notice of that, with the sentence `why`.

    Raises IndexUnavailable.
    """
    # Several in one second are told apart by a number at the end.
    target = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{target.name.partition('~')[0]}~{number}")
    try:
        for side in SIDES:
            old = path.with_name(path.name + side)
            if old.exists():
                durable.move_file(old, target.with_name(target.name + side))
    except OSError as error:
        message = f"{path} cannot be moved aside: {error.strerror}."
        raise errors.IndexUnavailable(message, "Move it away yourself.") from None
    return notice("moved_aside", path=str(path), why=why, kept=str(target))


# --- what it takes ---------------------------------------------------------------------------------------------------


def on_disk(index: Path) -> int:
    """Return bytes of the index and its write-ahead log."""
    return sum(size for size, _ in _sizes(index))


Rows = list[tuple[Any, ...]]
FileSizes = list[tuple[int, int]]
"""Bytes and modification time (ns) of the files of an index."""

_NO_ROOM = 1 << 17
"""With fewer free bytes SQLite's own small files may not fit."""
_TRIES, _PAUSE_SECONDS = 250, 0.02
_SPOILED_SCHEMA = re.compile(
    r"no such (fts5 )?(table|column)|has no column|already exists|malformed|vtable constructor failed|"
    r"(fts5|unsupported) file format|Could not fetch vector|vectors blob"
)
"""What SQLite says of statements of ours when tables are not what `TABLES` has made."""


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
        self.identified = durable.file_at(path) if connection.filename else None
        self.frozen: FileSizes | None = None
        """What the files were when they were opened without locks, or copied; None for a connection with locks."""
        self._writing = False
        self._meta: dict[str, Any] | None = None
        """The whole table `meta` while a snapshot lasts, so that what is asked again and again is read once."""

    @classmethod
    def nothing(cls, path: Path) -> Self:
        """Return an empty index in memory, which answers for one at `path` that does not exist."""
        connection = apsw.Connection(":memory:")
        _migrate(connection)
        return cls(connection, path, True, Vec0(False, "not loaded"))

    @property
    def absent(self) -> bool:
        """Return whether it stands for an index that does not exist."""
        return self.identified is None and self.frozen is None

    @property
    def moved(self) -> bool:
        """Return whether the file was deleted, or replaced by another one, since it was opened."""
        return self.identified is not None and durable.file_at(self.path) != self.identified

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        notices: list[Notice] | None = None,
        expected: Callable[[], bool] = lambda: False,
    ) -> Self:
        """Return the index at `path`, made if it is not there (unless `read_only`).

        A damaged index is moved aside, and `notices` gets a notice of it. A file that is not ours is refused, and stays
        where it is. Its header tells whose it is; where that is gone, it is ours if an index is `expected` there.
        Raises IndexUnavailable, IndexRefused.
        """
        reports: list[Notice] = [] if notices is None else notices
        where = resolved(path)
        check(where)
        content = kind(where, _header)
        if content == "database" or (content in ("zeros", "other") and not expected()):
            what = "is a database of another program" if content == "database" else "is not an index of memory-tui"
            raise refused(where, what)
        if not read_only:
            make_writable(where, reports)
        # Taken before the file is read, so that a write meanwhile shows.
        sizes = _sizes(where)
        locked = True
        try:
            if read_only:
                connection, locked = _connect_read_only(where)
            else:
                connection = _connect(where)
        except (_Unusable, apsw.Error) as error:
            # A damaged file is dealt with below; any other failure of SQLite is raised.
            if isinstance(error, apsw.Error):
                failure = explained(error, where)
                if not isinstance(failure, errors.IndexDamaged):
                    raise failure from None
            why = str(error) if isinstance(error, _Unusable) else "is damaged"
            if read_only:
                raise damaged(where, why) from None
            reports.append(quarantine(where, f"The index {where} {why}."))
            try:
                connection = _connect(create(where))
            except apsw.Error as failed:
                raise explained(failed, where) from None
        opened = cls(connection, where, read_only, load_vec0(connection))
        opened.frozen = None if locked else sizes
        return opened

    @property
    def changed(self) -> bool:
        """Return whether files opened without locks were written since: then what was read may make no sense."""
        return self.frozen is not None and _sizes(self.path) != self.frozen

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

    def damaged(self, what: str) -> errors.IndexDamaged:
        """Return the error that `what` makes no sense in this index."""
        return damaged(self.path, what)

    @contextmanager
    def making_sense(self) -> Iterator[None]:
        """Raise IndexDamaged where the code inside, which only takes rows apart, trips over one that makes no sense."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, MsgspecError) as error:
            raise self.damaged(f"a row makes no sense: {type(error).__name__}") from error

    def interrupt(self) -> None:
        """Stop the statement that runs now, which then raises Cancelled; safe from any thread."""
        with suppress(apsw.ConnectionClosedError):
            self.connection.interrupt()

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return all rows of one statement. Raises Cancelled and IndexUnavailable."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise explained(error, self.path) from None

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - whatever the column holds
        """Return the first column of the first row, or None without a row."""
        rows = self.query(sql, values)
        return rows[0][0] if rows else None

    def meta(self, key: str) -> Any:  # noqa: ANN401 - text or a number
        """Return the value of `key` in `meta`, None without one."""
        if self._meta is not None:
            return self._meta.get(key)
        return self.value("SELECT value FROM meta WHERE key = ?", (key,))

    def many(self, sql: str, sequence: Sequence[Sequence[Any]]) -> Rows:
        """Return all rows of a statement that is run once for each of `sequence`."""
        try:
            return self.connection.executemany(sql, sequence).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise explained(error, self.path) from None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep all that is written inside, or nothing of it, as one generation; one inside another is part of that.

        BEGIN IMMEDIATE is explicit because apsw's `with connection` holds the GIL while it waits for the lock.
        """
        if self._writing:
            yield
            return
        self.query("BEGIN IMMEDIATE")
        self._writing = True
        try:
            self.query("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
            yield
            self.query("COMMIT")
        except BaseException:
            if not self.connection.get_autocommit():
                self.connection.execute("ROLLBACK")
            raise
        finally:
            self._writing = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let everything that is read inside be of one generation, whoever writes meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        self.query("BEGIN")
        try:
            self._meta = dict(self.query("SELECT key, value FROM meta"))
            yield
        finally:
            self._meta = None
            if not self.connection.get_autocommit():
                self.connection.execute("COMMIT")


def _connect(path: Path) -> apsw.Connection:
    """Return a connection that writes, with the tables of this version. Raises apsw.Error."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(5000)
        version = _version(connection)
        # Of a file without tables the size of pages can still be chosen.
        if version == 0:
            connection.pragma("page_size", PAGE_SIZE)
            connection.pragma("application_id", APPLICATION_ID)
        if durable.shared(path):
            connection.pragma("journal_mode", "delete")
        else:
            _log_ahead(connection)
        connection.pragma("synchronous", "normal")
        _tune(connection)
        if version < SCHEMA_VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_ahead(connection: apsw.Connection) -> None:
    """Switch to a write-ahead log, again and again while it is busy: SQLite itself does not wait for that."""
    for _ in range(_TRIES):
        with suppress(apsw.BusyError):
            connection.pragma("journal_mode", "wal")
            return
        time.sleep(_PAUSE_SECONDS)
    connection.pragma("journal_mode", "wal")


def _connect_read_only(path: Path) -> tuple[apsw.Connection, bool]:
    """Open an index to read it, and say whether that is done under locks.

    Where nothing can be written SQLite cannot share a write-ahead log: without a log the file is read as one that never
    changes, with one a copy in memory is read, which is put together in a temporary folder.
    """
    if not path.exists():
        raise errors.IndexUnavailable(f"There is no index {path}.", "Run memory-tui index, without --read-only.")
    locked = True
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5000)
        version = _version(connection)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError):
        locked = False
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            connection = _copied(path)
        else:
            address = f"file:{urllib.parse.quote(str(path))}?immutable=1"
            connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        version = _version(connection)
    if version < SCHEMA_VERSION:
        connection.close()
        if version == 0:
            raise errors.IndexEmpty(f"There is nothing in the index {path} yet.", "Wait, or run memory-tui index.")
        raise errors.IndexOutdated(f"The index {path} is of an older version of memory-tui.", "Run memory-tui index.")
    _tune(connection)
    return connection, locked


def _copied(path: Path) -> apsw.Connection:
    """Return a copy in memory of an index, with its log, that cannot be read where it lies.

    Raises IndexUnavailable.
    """
    connection = apsw.Connection(":memory:")
    try:
        with tempfile.TemporaryDirectory(prefix="memory-tui-") as folder:
            for side in ("", "-wal"):
                shutil.copyfile(path.with_name(path.name + side), Path(folder, f"index{side}"))
            with (
                closing(apsw.Connection(str(Path(folder, "index")))) as source,
                connection.backup("main", source, "main") as backup,
            ):
                backup.step()
    except OSError as error:
        where = f"where it lies, nor copied to {tempfile.gettempdir()}"
        message = f"The index {path} cannot be read {where}: {error.strerror}."
        raise errors.IndexUnavailable(message, "Free some space, or make its folder writable.") from None
    return connection


def _sizes(path: Path) -> FileSizes:
    """Return size and modification time (ns) of the index and of its log, of each where it is there."""
    sizes: FileSizes = []
    for file in (path, path.with_name(path.name + "-wal")):
        # A log goes away while it is looked at, when its writer closes.
        with suppress(OSError):
            status = file.stat()
            sizes.append((status.st_size, status.st_mtime_ns))
    return sizes


def _tune(connection: apsw.Connection) -> None:
    """Set how much is kept in memory; the file is not mapped, or all of it would count as this process's memory."""
    # A negative size counts KiB, a positive one pages.
    connection.pragma("cache_size", -2000)
    connection.pragma("temp_store", "memory")
    connection.pragma("journal_size_limit", 64 << 20)


def _header(path: Path) -> bytes:
    """Return the first bytes of a file, as SQLite reads them."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return connection.read("main", 0, 0, 100)[1]
    except apsw.Error as error:
        raise OSError(0, str(error)) from None


def _version(connection: apsw.Connection) -> int:
    """Return the schema version, 0 for an empty file. Raises _Unusable for what is not ours."""
    # In one transaction: another process may be making the tables right now, and half of them would look like damage.
    connection.execute("BEGIN")
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").get
        application, version = connection.pragma("application_id"), connection.pragma("user_version")
        pages = connection.pragma("page_count")
    finally:
        if not connection.get_autocommit():
            connection.execute("ROLLBACK")
    # An empty file, or one of ours whose tables were not made yet.
    if not tables and (application == APPLICATION_ID or not pages):
        return 0
    if application != APPLICATION_ID:
        raise _Unusable("is a database of another program")
    if not 0 < version <= SCHEMA_VERSION:
        raise _Unusable(f"has schema version {version}, and this memory-tui knows {SCHEMA_VERSION}")
    return int(version)


def _migrate(connection: apsw.Connection) -> None:
    """Make the tables; of an index of an older schema what a provider made stays, and the rest is made anew."""
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have done it meanwhile.
    if (version := connection.pragma("user_version")) < SCHEMA_VERSION:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT NULL").fetchall()
        # A version of 0 is that of an empty file.
        for (name,) in tables if version else ():
            if name in REMADE:
                connection.execute(f"DROP TABLE {name}")
        connection.execute(TABLES)
        connection.pragma("user_version", SCHEMA_VERSION)
        connection.execute(full_text_tables("unicode61"))
    connection.execute("COMMIT")


def damaged(path: Path, what: str = "") -> errors.IndexDamaged:
    """Return what is to be said of damage in the index at `path`; `what` makes no sense in it."""
    message = f"The index {path} is damaged{f' ({what})' if what else ''}."
    return errors.IndexDamaged(message, "memory-tui index moves it aside, and makes it again from the notes.")


def explained(error: apsw.Error | UnicodeDecodeError, path: Path) -> errors.MemoryTuiError:
    """Return what a person can make of SQLite's `error` on the index at `path`."""
    step = "Free some space; what is indexed stays usable."
    match error:
        case UnicodeDecodeError():
            return damaged(path, "a text is not UTF-8")
        case apsw.InterruptError():
            return errors.Cancelled()
        case apsw.FullError():
            message = f"The disk is full: {path} cannot grow{durable.full(path)}."
        case apsw.BusyError() | apsw.LockedError():
            return errors.IndexBusy(f"Another program is writing {path} for long.", "Try again when it has finished.")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.TooBigError() | apsw.MismatchError():
            return damaged(path)
        case apsw.SQLError() if _SPOILED_SCHEMA.search(str(error)):
            return damaged(path, str(error))
        # The room may be None, where nobody can tell it: that is no number of bytes below the bound.
        case apsw.IOError() | apsw.CantOpenError() if durable.room(path) in range(_NO_ROOM):
            message = f"The disk is full: {path} cannot be opened to be written{durable.full(path)}."
        case apsw.CantOpenError() | apsw.IOError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            message = f"The index {path} cannot be read or written: {error}."
            step = "Check the file, folder and disk."
        case _:
            message = f"SQLite refused a statement on the index {path}: {error}."
            step = "memory-tui doctor reads the file from end to end, and says whether it is damaged."
    return errors.IndexUnavailable(message, step)
