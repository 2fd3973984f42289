"""Where an index file lies: private to its user, in a folder that can be written, and never in the place of another."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from memory_tui.errors import IndexUnavailable
from memory_tui.index import filesystem

_SIDES = ("", "-wal", "-shm")


def place(path: str | os.PathLike[str], notices: list[str]) -> Path:
    """Where the index of `path` can be written: there, or in this user's temporary folder, with a notice.

    Makes the folder (0700) and an empty file (0600). Raises IndexUnavailable.
    """
    where = Path(path).resolve()
    if where.is_dir() or where.suffix.lower() == ".md":
        what = "is a folder" if where.is_dir() else "is named like a note"
        raise IndexUnavailable(f"{where} {what}, so it cannot be the index.", "Name another file with --index.")
    if links(where) > 1:
        raise IndexUnavailable(
            f"{where} has another name as well (a hard link), so two programs could write it without knowing.",
            "Name another file with --index, or delete this one; it is made again from the notes.",
        )
    if name := filesystem.shared(where):
        notices.append(
            f"The index {where} lies on a file system that other machines can write to ({name}): it is kept "
            "without a write-ahead log, so searches can wait for a moment while it is written. "
            "Name a file on a local disk with --index to avoid that."
        )
    try:
        return create(where)
    except OSError as error:
        reason = error.strerror or str(error)
    try:
        other = create(_temporary_folder() / _temporary_name(where))
    except OSError as error:
        raise IndexUnavailable(
            f"No index can be written, neither at {where} ({reason}) nor in {tempfile.gettempdir()} "
            f"({error.strerror}).",
            "Name a file in a folder that can be written with --index.",
        ) from None
    notices.append(f"The index {where} cannot be written ({reason}); it is kept in {other} for now.")
    return other


def find(path: str | os.PathLike[str]) -> Path:
    """Where the index of `path` is to be read: there, or where `place` has put it for want of a writable folder."""
    where = Path(path).resolve()
    if os.access(where if where.exists() else where.parent, os.W_OK) or not hasattr(os, "geteuid"):
        return where
    other = Path(tempfile.gettempdir()) / f"memory-tui-{os.geteuid()}" / _temporary_name(where)
    return other if other.exists() else where


def links(path: Path) -> int:
    """How many names the file at `path` has; 0 when there is none."""
    try:
        return path.stat().st_nlink
    except OSError:
        return 0


def _temporary_name(where: Path) -> str:
    return f"{sha256(os.fsencode(where)).hexdigest()[:16]}.sqlite"


def create(path: Path) -> Path:
    """Make sure that `path` can be written by us and read by nobody else.

    An existing file is not opened for that: closing it would drop the locks that SQLite holds on it in this process.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Log and shared memory of a file that was deleted would be taken for those of the new one. What was not there
    # before the new file was is of another process that makes it, too.
    orphans = [part for side in _SIDES[1:] if (part := path.with_name(path.name + side)).exists()]
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for part in orphans:
            part.unlink(missing_ok=True)
    except FileExistsError:
        for needed in (path, path.parent):
            if not os.access(needed, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(13, f"{needed} may not be written") from None
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
    return path


def _temporary_folder() -> Path:
    """The same folder at each start, unless somebody else has made it."""
    if not hasattr(os, "geteuid"):
        return Path(tempfile.gettempdir()) / "memory-tui"
    folder = Path(tempfile.gettempdir()) / f"memory-tui-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            return Path(tempfile.mkdtemp(prefix="memory-tui-"))
    return folder


def move_aside(path: Path) -> Path:
    """Rename the file and its write-ahead log; returns the new name."""
    target = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{target.name.partition('~')[0]}~{number}")
    try:
        for side in _SIDES:
            old = path.with_name(path.name + side)
            if old.exists():
                old.rename(target.with_name(target.name + side))
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be moved aside: {error.strerror}.", "Move it away yourself.") from None
    return target
