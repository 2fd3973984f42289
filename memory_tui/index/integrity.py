"""Whether an index was closed by whoever wrote it last, and left alone since: only then it need not be checked.

A seal lies beside the index and holds size, modification time and checksum of the closed file. It is taken away as
soon as the index is written again. Who was killed leaves none, and what others, or a failing disk, did to the file does
not fit it.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from pathlib import Path
from typing import NamedTuple

from memory_tui.core import atomic
from memory_tui.index.place import read_beside

UNCLOSED = "it was not closed"
"""What `take` says without a seal."""
DAMAGED = "its checksum is wrong"
"""What `take` says of a file with the size and time of its closing, and other bytes: nobody writes like that."""
MOST_BYTES = 1 << 29
"""The checksum of a larger file would take longer than half a second, so it has none."""
_PIECE = 1 << 20


class Seal(NamedTuple):
    """Size in bytes, modification time in nanoseconds and checksum (CRC-32; None for none) of an index file."""

    size: int
    time: int
    checksum: int | None


def path_of(index: Path) -> Path:
    """Where the seal of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def put(index: Path, known: Seal | None = None) -> None:
    """Seal a closed index; nothing happens where that cannot be written, or where somebody still has it open.

    `known` is the seal that `take` found to fit: of a file that was not written since, its checksum still counts.
    """
    seen = _seen(index)
    if seen is None:
        return
    if known is not None and known[:2] == seen[:2]:
        _write(index, known)
        return
    # Whoever is in a hurry may leave before the file is read: a seal without a checksum is better than none.
    _write(index, seen)
    _write(index, seen._replace(checksum=_checksum(index)))


def take(index: Path) -> tuple[str, Seal | None]:
    """Break the seal, because the index is about to be written.

    Returns what is wrong with it, empty when it fits, and then the seal itself.
    """
    path = path_of(index)
    try:
        text = read_beside(path)
        found = _parsed(text)
        if found is not None or not text:
            atomic.remove_file(path)
    except FileNotFoundError:
        return UNCLOSED, None
    except OSError as error:
        return f"its seal cannot be read: {error.strerror}", None
    seen = _seen(index)
    if found is None or seen is None or found.size != seen.size:
        return "it was changed by something else", None
    if found.checksum is not None and found.checksum != _checksum(index):
        return (DAMAGED if found.time == seen.time else "it was changed by something else"), None
    if found.time != seen.time and found.checksum is None:
        return "it was changed by something else", None
    return "", found._replace(time=seen.time)


def is_beside(index: Path) -> bool:
    """Whether a seal lies beside `index`: then the file is, or was, an index of ours."""
    try:
        return _parsed(read_beside(path_of(index))) is not None
    except OSError:
        return False


def _write(index: Path, seal: Seal) -> None:
    """Put `seal` beside `index`, unless another program's file is there. Without one it is checked at the start."""
    path = path_of(index)
    try:
        found = read_beside(path)
    except FileNotFoundError:
        found = b""
    except OSError:
        return
    if not found or _parsed(found) is not None:
        with contextlib.suppress(OSError):
            atomic.replace_file(path, json.dumps(seal).encode("ascii"))


def _parsed(data: bytes) -> Seal | None:
    """The seal that `_write` wrote; one of an older version has no checksum."""
    try:
        value = json.loads(data)
        size, time, checksum = [*value, None][:3]
    except (ValueError, TypeError):
        return None
    if isinstance(size, int) and isinstance(time, int) and isinstance(checksum, int | None):
        return Seal(size, time, checksum)
    return None


def _seen(index: Path) -> Seal | None:
    """Size and time of the file, None while there is a write-ahead log beside it."""
    log = index.with_name(f"{index.name}-wal")
    try:
        if log.exists() and log.stat().st_size:
            return None
        status = index.stat()
    except OSError:
        return None
    return Seal(status.st_size, status.st_mtime_ns, None)


def _checksum(index: Path) -> int | None:
    """The CRC-32 of the whole file; None for a large one, and one that cannot be read.

    SQLite reads it: another descriptor of the file would drop SQLite's locks in this process when it is closed.
    """
    import apsw

    try:
        left = index.stat().st_size
        if left > MOST_BYTES:
            return None
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            checksum = at = 0
            while left:
                piece = connection.read("main", 0, at, min(_PIECE, left))[1]
                checksum, at, left = zlib.crc32(piece, checksum), at + len(piece), left - len(piece)
        finally:
            connection.close()
    except (OSError, apsw.Error):
        return None
    return checksum
