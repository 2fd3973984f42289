"""Integrity finds the damage of an index file. It marks a clean shutdown, and quarantines a bad file.

A marker lies beside the index and holds size and modification time of the closed file. It is taken away as soon as the
index is written again. A killed process leaves none, and it fits no file that somebody else wrote.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import msgspec
import numpy as np

from memory_tui import durable
from memory_tui.durable import read_beside
from memory_tui.errors import IndexUnavailable
from memory_tui.index.store import Store, check_units, holds

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
    (
        "words of {} chunks too many or too few",
        "SELECT abs((SELECT count(*) FROM chunks WHERE occurrence = 0) - (SELECT count(*) FROM chunks_words_docsize))",
    ),
)
"""What rows that do not fit each other are, and bits that flipped inside sound pages, each with its count."""
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
        checks = [*_WRONG, _WRONG_VEC0] if store.vec0_dims() else _WRONG
        return next(([sentence.format(count)] for sentence, sql in checks if (count := store.value(sql))), [])
    except IndexUnavailable as error:
        return [error.message]


def _is_unit(*row: object) -> bool:
    """Say whether a vector has its length and is 1 long, or all zeros as that of a text without any token."""
    vector, dims = row
    if not isinstance(vector, bytes) or not isinstance(dims, int) or len(vector) != 4 * dims:
        return False
    with contextlib.suppress(ValueError):
        return len(check_units(np.frombuffer(vector, np.float32).reshape(1, -1))) == 1
    return False


UNCLOSED = "it was not closed"
"""What `take` says without a marker."""
_CHANGED = "it was changed by something else"

Marker = list[int]
"""Size in bytes and modification time in nanoseconds of an index file."""


def path_of(index: Path) -> Path:
    """Return where the marker of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def put(index: Path) -> None:
    """Mark a closed index, unless that cannot be written, somebody has it open, or another program's file is there.

    Without a marker the index is checked at the next start.
    """
    path, now = path_of(index), _closed(index)
    with contextlib.suppress(OSError):
        if now is not None and (not path.exists() or is_beside(index) or not path.stat().st_size):
            durable.replace_file(path, json.dumps(now).encode())


def take(index: Path) -> str:
    """Take the marker away, because the index is about to be written; return what is wrong with it, if anything."""
    path, fitting = path_of(index), fits(index)
    try:
        text = read_beside(path)
        if _parsed(text) is not None or not text:
            durable.remove_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return UNCLOSED
    except OSError as error:
        return f"its marker cannot be read: {error.strerror}"
    return "" if fitting else _CHANGED


def fits(index: Path) -> bool:
    """Say whether the marker beside `index` fits it: it was closed, and was not written since."""
    return (marker := _beside(index)) is not None and marker == _closed(index)


def is_beside(index: Path) -> bool:
    """Say whether a marker lies beside `index`: then the file is, or was, an index of ours."""
    return _beside(index) is not None


def _beside(index: Path) -> Marker | None:
    try:
        return _parsed(read_beside(path_of(index)))
    except OSError:
        return None


def _parsed(data: bytes) -> Marker | None:
    """Read the marker that `put` wrote; None for anything else."""
    try:
        return msgspec.json.decode(data, type=Marker)
    except msgspec.DecodeError:
        return None


def _closed(index: Path) -> Marker | None:
    """Return size and time of the file, None without one, or while there is a write-ahead log beside it."""
    with contextlib.suppress(OSError):
        if index.with_name(f"{index.name}-wal").stat().st_size:
            return None
    with contextlib.suppress(OSError):
        status = index.stat()
        return [status.st_size, status.st_mtime_ns]
    return None
