"""Integrity finds the damage of an index file. It marks a clean shutdown, and quarantines a bad file.

A marker lies beside the index and holds size, modification time and checksum of the closed file. It is taken away as
soon as the index is written again. A killed process leaves none, and what others, or a failing disk, did to the file
does not fit it.

Only what is an index of ours by its name, its owner and the mark in its first page is removed. A file of another
program that once lay in the place of the index, or one whose first page is gone, stays until somebody moves it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import numpy as np

from memory_tui import durable
from memory_tui.core.errors import IndexUnavailable
from memory_tui.core.jsstring import sha256_hex
from memory_tui.durable import read_beside
from memory_tui.index import abilities
from memory_tui.index.abilities import INSTALLED, Vec0Use, switched_off
from memory_tui.index.database import Rows
from memory_tui.index.index_file import SIDES
from memory_tui.index.schema import APPLICATION_ID
from memory_tui.index.store import Store
from memory_tui.workspace.media import path_in

_PAGE = 2000
_UNIT = 0.01
"""How far the length of a vector may be from 1; a flipped bit that matters takes it much further."""


def problems(store: Store) -> list[str]:
    """What is wrong with an index, in words; empty when it is whole. Costs a pass over the file."""
    try:
        found = [str(row[0]) for row in store.query("PRAGMA integrity_check(5)") if row[0] != "ok"]
        return found or _counts(store) or _contents(store) or _table(store)
    except IndexUnavailable as error:
        return [error.message]


def _counts(store: Store) -> list[str]:
    """Rows that do not fit each other."""
    found = []
    chunks, said = (
        store.value("SELECT count(*) FROM chunks WHERE occurrence = 0"),
        store.value("SELECT coalesce(sum(chunks), 0) FROM files"),
    )
    if chunks != said:
        found.append(f"{chunks} chunks, and files say {said}")
    orphans = store.value("SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)")
    if orphans:
        found.append(f"{orphans} chunks of no file")
    lost = store.value(
        "SELECT count(*) FROM chunks WHERE embedding_id IS NOT NULL "
        "AND embedding_id NOT IN (SELECT id FROM embedding_cache)"
    )
    if lost:
        found.append(f"{lost} chunks whose vector is lost")
    if store.words.cut():
        words = store.value("SELECT count(*) FROM chunks_words_docsize")
        if words != chunks:
            found.append(f"{chunks} chunks, and words of {words}")
    return found


def _contents(store: Store) -> list[str]:
    """Texts that are not what was hashed, and vectors that are none: flipped bits inside sound pages."""
    texts = sum(
        sha256_hex(text) != digest and not path_in(text, digest)
        for page in _pages(store, "SELECT id, text, hash FROM chunks WHERE id > ? ORDER BY id LIMIT ?")
        for _, text, digest in page
    )
    vectors = sum(
        map(_spoiled, _pages(store, "SELECT id, embedding, dims FROM embedding_cache WHERE id > ? ORDER BY id LIMIT ?"))
    )
    found = [f"{texts} chunks whose text is not what was indexed"] if texts else []
    return [*found, f"{vectors} vectors that are none"] if vectors else found


def _table(store: Store) -> list[str]:
    """Vectors that sqlite-vec's table lacks, or has although no chunk does."""
    if not store.vec0_dims():
        return []
    mirrored = store.value("SELECT count(*) FROM chunks_vec_rowids")
    vectors = store.value(
        "SELECT count(*) FROM chunks c JOIN embedding_cache e ON e.id = c.embedding_id "
        "WHERE c.occurrence = 0 AND e.embedding <> zeroblob(length(e.embedding))"
    )
    return [] if mirrored == vectors else [f"{vectors} chunks with a vector, and {mirrored} in sqlite-vec's table"]


def _pages(store: Store, statement: str) -> Iterator[Rows]:
    after = 0
    while page := store.query(statement, (after, _PAGE)):
        yield page
        after = page[-1][0]


def _spoiled(page: Rows) -> int:
    """How many of these vectors have another length than they should, or numbers that are none."""
    spoiled = 0
    for dims in {row[2] for row in page}:
        blobs = [row[1] for row in page if row[2] == dims]
        whole = [blob for blob in blobs if len(blob) == 4 * dims]
        spoiled += len(blobs) - len(whole)
        vectors = np.frombuffer(b"".join(whole), np.float32).reshape(len(whole), dims).astype(np.float64)
        with np.errstate(all="ignore"):
            length = np.sqrt(np.square(vectors).sum(axis=1))
        # A text without any token has a vector of zeros.
        spoiled += int(np.count_nonzero(~((np.abs(length - 1) < _UNIT) | (length == 0))))
    return spoiled


UNCLOSED = "it was not closed"
"""What `take` says without a marker."""
DAMAGED = "its checksum is wrong"
"""What `take` says of a file with the size and time of its closing, and other bytes: nobody writes like that."""
MOST_BYTES = 1 << 30
"""The checksum of a larger file would take longer than half a second, so it has none."""
_PIECE = 1 << 16
"""Bytes that are read at once: of more each piece would get fresh pages of the system."""


class ShutdownMarker(NamedTuple):
    """Size in bytes, modification time in nanoseconds and checksum (CRC-32; None for none) of an index file."""

    size: int
    time: int
    checksum: int | None


def path_of(index: Path) -> Path:
    """Where the marker of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def put(index: Path, known: ShutdownMarker | None = None) -> None:
    """Write the clean-shutdown marker of a closed index, unless it cannot be written or somebody still has it open.

    `known` is the marker that `take` found to fit: of a file that was not written since, its checksum still counts.
    """
    seen = _seen(index)
    if seen is None:
        return
    if known is not None and known[:2] == seen[:2]:
        _write(index, known)
        return
    # Whoever is in a hurry may leave before the file is read: a marker without a checksum is better than none.
    _write(index, seen)
    _write(index, seen._replace(checksum=_checksum(index)))


def take(index: Path, *, later: bool = False) -> tuple[str, ShutdownMarker | None]:
    """Take the marker away, because the index is about to be written.

    Returns what is wrong with it, empty when it fits, and then the marker itself. With `later` a file of the size and
    time of its closing is read by nobody: its checksum is left to `is_damaged`.
    """
    path = path_of(index)
    try:
        text = read_beside(path)
        found = _parsed(text)
        if found is not None or not text:
            durable.remove_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return UNCLOSED, None
    except OSError as error:
        return f"its marker cannot be read: {error.strerror}", None
    return _compared(index, found, later=later)


def is_damaged(index: Path, marker: ShutdownMarker) -> bool:
    """Whether `index`, of the size and time of `marker`, has another checksum; False once it was written since.

    A marker of somebody in a hurry has none. What stands in the write-ahead log is no part of the file yet.
    """
    if marker.checksum is None or _file(index) != marker._replace(checksum=None):
        return False
    checksum = _checksum(index)
    # It may have been written while it was read.
    return checksum != marker.checksum and _file(index) == marker._replace(checksum=None)


def fits(index: Path) -> bool:
    """Whether the marker beside `index` fits it: it was closed, and is as it was then."""
    try:
        return not _compared(index, _parsed(read_beside(path_of(index))))[0]
    except OSError:
        return False


def _compared(index: Path, found: ShutdownMarker | None, *, later: bool = False) -> tuple[str, ShutdownMarker | None]:
    """What is wrong with the marker `found`, empty when it fits `index`, and then the marker with its time of today."""
    seen = _seen(index)
    if found is None or seen is None or found.size != seen.size:
        return "it was changed by something else", None
    if later and found.time == seen.time:
        return "", found
    if found.checksum is not None and found.checksum != _checksum(index):
        return (DAMAGED if found.time == seen.time else "it was changed by something else"), None
    if found.time != seen.time and found.checksum is None:
        return "it was changed by something else", None
    return "", found._replace(time=seen.time)


def is_beside(index: Path) -> bool:
    """Whether a marker lies beside `index`: then the file is, or was, an index of ours."""
    try:
        return _parsed(read_beside(path_of(index))) is not None
    except OSError:
        return False


def _write(index: Path, marker: ShutdownMarker) -> None:
    """Put `marker` beside `index`, unless another program's file is there. Without one it is checked at the start."""
    path = path_of(index)
    try:
        found = read_beside(path)
    except FileNotFoundError:
        found = b""
    except OSError:
        return
    if not found or _parsed(found) is not None:
        with contextlib.suppress(OSError):
            durable.replace_file(path, json.dumps(marker).encode())


def _parsed(data: bytes) -> ShutdownMarker | None:
    """The marker that `_write` wrote; None for anything else."""
    try:
        size, time, checksum = [*json.loads(data), None][:3]
    except (ValueError, TypeError):
        return None
    if isinstance(size, int) and isinstance(time, int) and isinstance(checksum, int | None):
        return ShutdownMarker(size, time, checksum)
    return None


def _seen(index: Path) -> ShutdownMarker | None:
    """Size and time of the file, None while there is a write-ahead log beside it."""
    log = index.with_name(f"{index.name}-wal")
    try:
        if log.exists() and log.stat().st_size:
            return None
    except OSError:
        return None
    return _file(index)


def _file(index: Path) -> ShutdownMarker | None:
    """Size and time of the file, None where it cannot be asked for them."""
    try:
        status = index.stat()
    except OSError:
        return None
    return ShutdownMarker(status.st_size, status.st_mtime_ns, None)


def _checksum(index: Path) -> int | None:
    """The checksum of the whole file; None for a large one, and one that cannot be read.

    SQLite reads it: another descriptor of the file would drop SQLite's locks in this process when it is closed.
    """
    import apsw

    try:
        left = index.stat().st_size
        if left > MOST_BYTES:
            return None
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            at, checksum = 0, 0
            while left:
                piece = connection.read("main", 0, at, min(_PIECE, left))[1]
                checksum = zlib.crc32(piece, checksum)
                at, left = at + len(piece), left - len(piece)
        finally:
            connection.close()
    except (OSError, apsw.Error):
        return None
    return checksum


KEPT = 3
"""So many stay, however old they are."""
KEPT_DAYS = 30
"""So long each stays, however many there are."""
_NAME = re.compile(r"\.damaged-(\d{8}-\d{6})(~\d+)?")
_HEADER = 72
_MAGIC, _MARK = b"SQLite format 3\0", slice(68, 72)
"""Of the header of a database file, https://www.sqlite.org/fileformat.html#the_database_header"""


def sweep(index: Path, now: float) -> list[str]:
    """Remove what was moved aside from the place of `index` long before `now` (epoch seconds), but the newest of it.

    Returns a sentence for each file, removed or not; mostly nothing is to be done.
    """
    told = []
    for path, at in _ours(index)[KEPT:]:
        if now - at < KEPT_DAYS * 86_400:
            continue
        try:
            for side in reversed(SIDES):
                durable.remove_file(path.with_name(path.name + side))
        except OSError as error:
            told.append(f"{path}, a damaged index that was moved aside, cannot be removed: {error.strerror}.")
        else:
            told.append(
                f"{path} was removed: a damaged index, moved aside more than {KEPT_DAYS} days ago; the newest "
                f"{KEPT} stay."
            )
    return told


def _ours(index: Path) -> list[tuple[Path, float]]:
    """Damaged indexes of ours that were moved aside from the place of `index`, and when; the newest first."""
    found = []
    try:
        names = os.listdir(index.parent)
    except OSError:
        return []
    for name in names:
        match = _NAME.fullmatch(name.removeprefix(index.name)) if name.startswith(index.name) else None
        path = index.with_name(name)
        if match and (at := _moved_at(match[1])) is not None and _is_ours(path):
            found.append((path, at))
    return sorted(found, key=lambda item: (item[1], item[0].name), reverse=True)


def _moved_at(text: str) -> float | None:
    try:
        return time.mktime(time.strptime(text, "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return None


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != getattr(os, "geteuid", lambda: status.st_uid)():
            return False
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    return header.startswith(_MAGIC) and header[_MARK] == APPLICATION_ID.to_bytes(4, "big")


def sqlite() -> tuple[str, bool]:
    """The SQLite in use, and whether it is new enough for every table here (3.43, contentless_delete)."""
    version = apsw.sqlite_lib_version()
    return version, tuple(map(int, version.split(".")[:2])) >= (3, 43)


def nearest(use: Vec0Use = INSTALLED) -> str:
    """Make a vec0 table, put three vectors in and ask for the nearest; empty when that works, else why it does not."""
    if switched_off("vec0"):
        return "it is switched off by MEMORY_TUI_DISABLE"
    connection = apsw.Connection(":memory:")
    try:
        state = abilities.load(connection, use)
        if not state.ready:
            return state.detail
        connection.execute("CREATE VIRTUAL TABLE probe USING vec0(embedding float[4] distance_metric=cosine)")
        for at in range(3):
            vector = struct.pack("4f", *(1.0 if i == at else 0.1 for i in range(4)))
            connection.execute("INSERT INTO probe(rowid, embedding) VALUES (?, ?)", (at + 1, vector))
        found = connection.execute(
            "SELECT rowid FROM probe WHERE embedding MATCH ? ORDER BY distance LIMIT 1",
            (struct.pack("4f", 0.0, 1.0, 0.0, 0.0),),
        ).fetchall()
    except apsw.Error as error:
        return str(error)
    finally:
        connection.close()
    return "" if found == [(2,)] else f"the nearest of three vectors should be the second, and it answered {found}"
