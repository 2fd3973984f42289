"""Integrity finds the damage of an index file. It marks a clean shutdown, and quarantines a bad file.

A marker lies beside the index and holds size, modification time and checksum of the closed file. It is taken away as
soon as the index is written again. A killed process leaves none, and what others, or a failing disk, did to the file
does not fit it.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec
import numpy as np

from memory_tui import durable
from memory_tui.durable import read_beside
from memory_tui.errors import IndexUnavailable
from memory_tui.index.store import Store, holds

_UNIT = 0.01
"""How far the length of a vector may be from 1; a flipped bit that matters takes it much further."""
_WRONG = (
    ("{} chunks of no file", "SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)"),
    (
        "{} chunks more or less than its files say",
        "SELECT abs((SELECT count(*) FROM chunks WHERE occurrence = 0) - (SELECT coalesce(sum(chunks), 0) FROM files))",
    ),
    (
        "{} chunks whose vector is lost",
        "SELECT count(*) FROM chunks WHERE embedding_id > 0 AND embedding_id NOT IN (SELECT id FROM embedding_cache)",
    ),
    (
        "{} windows whose vector is lost",
        "SELECT count(*) FROM windows WHERE embedding_id NOT IN (SELECT id FROM embedding_cache)",
    ),
    ("{} chunks whose text is not what was indexed", "SELECT count(*) FROM chunks WHERE NOT holds(text, hash)"),
    ("{} vectors that are none", "SELECT count(*) FROM embedding_cache WHERE NOT is_unit(embedding, dims)"),
)
"""What rows that do not fit each other are, and bits that flipped inside sound pages, each with its count."""
_WRONG_WORDS = (
    "words of {} chunks too many or too few",
    "SELECT abs((SELECT count(*) FROM chunks WHERE occurrence = 0) - (SELECT count(*) FROM chunks_words_docsize))",
)
_WRONG_VEC0 = (
    "{} vectors too many or too few in the table of sqlite-vec",
    "SELECT abs((SELECT count(*) FROM chunks_vec_rowids) - (SELECT count(*) FROM chunks c JOIN embedding_cache e "
    "ON e.id = c.embedding_id WHERE c.occurrence = 0 AND e.embedding <> zeroblob(length(e.embedding))))",
)


def problems(store: Store) -> list[str]:
    """Return what is wrong with an index, in words; empty when it is whole. Costs a pass over the file."""
    store.connection.create_scalar_function("holds", lambda *row: holds(str(row[0]), str(row[1])), 2)
    store.connection.create_scalar_function("is_unit", _is_unit, 2)
    try:
        if lines := [str(row[0]) for row in store.query("PRAGMA integrity_check(5)") if row[0] != "ok"]:
            return lines
        checks = [*_WRONG]
        checks += [_WRONG_WORDS] if store.words.cut() else []
        checks += [_WRONG_VEC0] if store.vec0_dims() else []
        return next(([sentence.format(count)] for sentence, sql in checks if (count := store.value(sql))), [])
    except IndexUnavailable as error:
        return [error.message]


def _is_unit(*row: object) -> bool:
    """Say whether a vector has its length and is 1 long, or all zeros as that of a text without any token."""
    vector, dims = row
    if not isinstance(vector, bytes) or not isinstance(dims, int) or len(vector) != 4 * dims:
        return False
    length = float(np.linalg.norm(np.frombuffer(vector, np.float32)))
    return abs(length - 1) < _UNIT or length == 0


UNCLOSED = "it was not closed"
"""What `take` says without a marker."""
DAMAGED = "its checksum is wrong"
"""What `take` says of a file with the size and time of its closing, and other bytes: nobody writes like that."""
_CHANGED = "it was changed by something else"
MOST_BYTES = 1 << 30
"""The checksum of a larger file would take longer than half a second, so it has none."""
_PIECE = 1 << 16
"""Bytes that are read at once: of more each piece would get fresh pages of the system."""


class ShutdownMarker(NamedTuple):
    """Size in bytes, modification time in nanoseconds and checksum (CRC-32; None for none) of an index file."""

    size: int
    time: int
    checksum: int | None = None


def path_of(index: Path) -> Path:
    """Return where the marker of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def put(index: Path, before: ShutdownMarker | None = None) -> None:
    """Write the clean-shutdown marker of a closed index, unless it cannot be written or somebody still has it open.

    `before` is the marker that `take` found to fit: of a file that was not written since, its checksum still counts.
    """
    now = _closed(index)
    if now is None:
        return
    if before is not None and before[:2] == now[:2]:
        _write(index, before)
        return
    # Whoever is in a hurry may leave before the file is read: a marker without a checksum is better than none.
    _write(index, now)
    _write(index, now._replace(checksum=_checksum(index)))


def take(index: Path, *, later: bool = False) -> tuple[str, ShutdownMarker | None]:
    """Take the marker away, because the index is about to be written.

    Returns what is wrong with it, empty when it fits, and then the marker itself. With `later` a file of the size and
    time of its closing is read by nobody: its checksum is left to `is_damaged`.
    """
    path = path_of(index)
    try:
        text = read_beside(path)
        marker = _parsed(text)
        if marker is not None or not text:
            durable.remove_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return UNCLOSED, None
    except OSError as error:
        return f"its marker cannot be read: {error.strerror}", None
    return _compared(index, marker, later=later)


def is_damaged(index: Path, marker: ShutdownMarker) -> bool:
    """Say whether `index`, of the size and time of `marker`, has another checksum; False once it was written since.

    A marker of somebody in a hurry has none. What stands in the write-ahead log is no part of the file yet.
    """
    closed = marker._replace(checksum=None)
    # It may be written while it is read.
    return marker != closed == _file(index) and _checksum(index) != marker.checksum and _file(index) == closed


def fits(index: Path) -> bool:
    """Say whether the marker beside `index` fits it: it was closed, and is as it was then."""
    return not _compared(index, _beside(index))[0]


def is_beside(index: Path) -> bool:
    """Say whether a marker lies beside `index`: then the file is, or was, an index of ours."""
    return _beside(index) is not None


def _beside(index: Path) -> ShutdownMarker | None:
    try:
        return _parsed(read_beside(path_of(index)))
    except OSError:
        return None


def _compared(index: Path, marker: ShutdownMarker | None, *, later: bool = False) -> tuple[str, ShutdownMarker | None]:
    """Say what is wrong with `marker`, empty when it fits `index`, and then the marker with its time of today."""
    now = _closed(index)
    if marker is None or now is None or marker.size != now.size:
        return _CHANGED, None
    same_time = marker.time == now.time
    if later and same_time:
        return "", marker
    if marker.checksum is None and not same_time:
        return _CHANGED, None
    if marker.checksum is not None and marker.checksum != _checksum(index):
        return DAMAGED if same_time else _CHANGED, None
    return "", marker._replace(time=now.time)


def _write(index: Path, marker: ShutdownMarker) -> None:
    """Put `marker` beside `index`, unless another program's file is there. Without one it is checked at the start."""
    path = path_of(index)
    with contextlib.suppress(OSError):
        if not path.exists() or _beside(index) is not None or not path.stat().st_size:
            durable.replace_file(path, json.dumps(marker).encode())


def _parsed(data: bytes) -> ShutdownMarker | None:
    """Read the marker that `_write` wrote; None for anything else."""
    try:
        return msgspec.json.decode(data, type=ShutdownMarker)
    except msgspec.DecodeError:
        return None


def _closed(index: Path) -> ShutdownMarker | None:
    """Return size and time of the file, None while there is a write-ahead log beside it."""
    log = _file(index.with_name(f"{index.name}-wal"))
    return None if log is not None and log.size else _file(index)


def _file(index: Path) -> ShutdownMarker | None:
    """Return size and time of the file, None where it cannot be asked for them."""
    try:
        status = index.stat()
    except OSError:
        return None
    return ShutdownMarker(status.st_size, status.st_mtime_ns)


def _checksum(index: Path) -> int | None:
    """Return the checksum of the whole file; None for a large one, and one that cannot be read.

    SQLite reads it: another descriptor of the file would drop SQLite's locks in this process when it is closed.
    """
    try:
        size = index.stat().st_size
        if size > MOST_BYTES:
            return None
        with contextlib.closing(apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            checksum = 0
            for at in range(0, size, _PIECE):
                checksum = zlib.crc32(connection.read("main", 0, at, min(_PIECE, size - at))[1], checksum)
            return checksum
    except (OSError, apsw.Error):
        return None
