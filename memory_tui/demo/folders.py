"""The temporary folder of a demo: it goes when the demo ends, or when the next one starts after that one was killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_tui.core import atomic
from memory_tui.errors import IndexUnavailable
from memory_tui.index import lock

PREFIX = "memory-tui-demo-"
MARK = "demo"
"""The lock of this name in the folder says whose it is: process id and start, held until that process is gone."""


@contextmanager
def own() -> Iterator[Path]:
    """A new folder for a demo, after those of dead ones are swept away; it is removed at the end."""
    sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        held = lock.WriterLock.acquire(Path(name) / MARK)
        try:
            yield Path(name)
        finally:
            if held is not None:
                held.release()


def sweep(parent: Path) -> list[Path]:
    """Remove the demo folders in `parent` whose process is gone, and return them; everything else stays.

    A folder counts as a demo's when it is this user's, is no link, and holds the lock of a process that is recorded
    there, runs no more, and holds it no more. What cannot be looked at or removed stays too.
    """
    removed = []
    with suppress(OSError):
        for folder in sorted(parent.glob(f"{PREFIX}*")):
            with suppress(OSError, IndexUnavailable):
                if _is_dead(folder) and _remove(folder):
                    removed.append(folder)
    return removed


def _is_dead(folder: Path) -> bool:
    """Whether `folder` is that of a demo whose process is gone."""
    mark = folder / f"{MARK}.lock"
    if not (_is_own(folder, stat.S_ISDIR) and _is_own(mark, stat.S_ISREG)):
        return False
    who = lock.holder(folder / MARK)
    return who is not None and not lock.is_alive(who)


def _is_own(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether `path` itself, not what it leads to, is of `kind` (a test of `stat`) and belongs to this user."""
    found = path.lstat()
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return mine and kind(found.st_mode)


def _remove(folder: Path) -> bool:
    """Remove `folder`, unless its lock is still held, as by a process of another container."""
    mark = folder / f"{MARK}.lock"
    said = mark.read_bytes()
    held = lock.WriterLock.acquire(folder / MARK)
    if held is None:
        return False
    try:
        for entry in folder.iterdir():
            if entry == mark:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                atomic.remove_file(entry)
    except OSError:
        held.release()
        # What is left is swept the next time, because it still says whose it was.
        atomic.replace_file(mark, said)
        raise
    held.release()
    shutil.rmtree(folder)
    return True
