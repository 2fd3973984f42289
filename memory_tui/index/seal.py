"""Whether an index was closed by whoever wrote it last, and left alone since: only then it need not be checked.

A seal lies beside the index and holds size and modification time of the closed file. It is taken away as soon as the
index is written again. Who was killed leaves none, and what others did to the file does not fit it.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from memory_tui.core import atomic

UNCLOSED = "it was not closed"
"""What `take` says without a seal."""


def path_of(index: Path) -> Path:
    """Where the seal of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def put(index: Path) -> None:
    """Seal a closed index; nothing happens where that cannot be written, or where somebody still has it open."""
    seen = _seen(index)
    if seen is None:
        return
    with contextlib.suppress(OSError):
        # Without a seal the index is checked when it is opened next.
        atomic.replace_file(path_of(index), json.dumps(seen).encode("ascii"))


def take(index: Path) -> str:
    """Break the seal, because the index is about to be written; says what is wrong with it, empty when it fits."""
    path = path_of(index)
    try:
        text = path.read_text()
        atomic.remove_file(path)
    except FileNotFoundError:
        return UNCLOSED
    except OSError as error:
        return f"its seal cannot be read: {error.strerror}"
    try:
        fits = json.loads(text) == _seen(index)
    except ValueError:
        fits = False
    return "" if fits else "it was changed by something else"


def _seen(index: Path) -> list[int] | None:
    """Size and time of the file, None while there is a write-ahead log beside it."""
    log = index.with_name(f"{index.name}-wal")
    try:
        if log.exists() and log.stat().st_size:
            return None
        status = index.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
