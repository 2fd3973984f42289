"""Where the index file lies: private to its user, never in the place of another file."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Literal

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable
from memory_tui.durable import read_beside
from memory_tui.errors import IndexRefused, IndexUnavailable
from memory_tui.index.schema import APPLICATION_ID
from memory_tui.notices import Notice, notice

SIDES = ("", "-wal", "-shm", "-journal")
"""What SQLite can leave of one database, the database itself first."""
_MAGIC = b"SQLite format 3\0"
_MARK = APPLICATION_ID.to_bytes(4, "big")
_HEADER = 100
"""Bytes of the header of a database, https://www.sqlite.org/fileformat.html#the_database_header"""
_SPOILED = 2
"""So many bytes of magic and mark may differ in a header that was ours."""
_LEAST = 1 << 18
"""Bytes that have to be free for a new index to be begun."""
_MEMORY = (Path("/dev/shm"),)
"""File systems in memory."""
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
        raise IndexRefused(f"{os.fspath(path)!r} cannot be the index: {reason}.", _ANOTHER) from None
    return where


def kind(path: Path, header: Callable[[Path], bytes] | None = None) -> Kind:
    """Return what lies at `path`.

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
    pairs = zip(_MAGIC + _MARK, start[:16] + start[68:72], strict=False)
    if len(start) >= 72 and sum(left != other for left, other in pairs) <= _SPOILED:
        return "ours"
    if start.startswith(_MAGIC):
        return "database"
    return "zeros" if not any(start) else "other"


def is_private(path: Path) -> bool:
    """Say whether `path` is in the cache folder of memory-tui, where nobody else puts files."""
    with contextlib.suppress(OSError, RuntimeError):
        return path.is_relative_to(platformdirs.user_cache_path("memory-tui", appauthor=False).resolve())
    return False


def refused(path: Path, what: str) -> IndexRefused:
    """Say that `path`, which `what` says more of, is left alone."""
    return IndexRefused(
        f"{path} {what}, so memory-tui leaves it alone.",
        f"{_ANOTHER} If this was an index of memory-tui, delete it: it is made again from the notes.",
    )


def check(index: Path) -> None:
    """Raise IndexRefused for what can be no index, and for links and pipes beside it that SQLite would use."""
    if index.is_dir() or index.suffix.lower() == ".md":
        what = "is a folder" if index.is_dir() else "is named like a note"
        raise IndexRefused(f"{index} {what}, so it cannot be the index.", _ANOTHER)
    for side in SIDES:
        part = index.with_name(index.name + side)
        if kind(part, lambda _: b"") == "no file":
            raise refused(part, "is a folder" if part.is_dir() and not part.is_symlink() else "is a link or a pipe")


def choose_path(path: str | os.PathLike[str], notices: list[Notice]) -> Path:
    """Return where the index of `path` can be written: there, or in this user's temporary folder, with a notice.

    Makes the folder (0700) and an empty file (0600). Raises IndexUnavailable.
    """
    where = resolved(path)
    with contextlib.suppress(OSError):
        if where.stat().st_nlink > 1:
            raise IndexRefused(
                f"{where} has another name as well (a hard link), so two programs could write it without knowing.",
                "Name another file with --index, or delete this one; it is made again from the notes.",
            )
    if name := durable.shared(where):
        notices.append(notice("on_shared_files", path=str(where), system=name))
    reasons: list[str] = []
    for place in (where, *_temporary_places(where)):
        try:
            if place != where:
                _make_own(place.parent)
            _with_room(place)
        except OSError as error:
            full = durable.full(place) if error.errno == errno.ENOSPC else ""
            reasons.append(f"{error.strerror or error}{full}")
        else:
            if reasons:
                notices.append(notice("kept_elsewhere", path=str(where), why=reasons[0], place=str(place)))
            return place
    tried = zip((where, *_temporary_places(where)), reasons, strict=True)
    raise IndexUnavailable(
        f"No index can be written: {'; '.join(f'{place}: {why}' for place, why in tried)}.",
        "Free some space, or name a file in a folder that can be written with --index.",
    )


def rebuild_of(index: Path) -> Path:
    """Return where the index that will take the place of `index` is made."""
    return index.with_name(f"{index.name}.next")


def find(path: str | os.PathLike[str]) -> Path:
    """Return where the index of `path` is to be read: there, or where `choose_path` has put it for want of a folder."""
    where = resolved(path)
    return where if where.exists() and os.access(where, os.W_OK) else next(iter(displaced(where)), where)


def temporary_folders() -> list[Path]:
    """List where `choose_path` puts indexes of this user for want of a place of their own; they need not be there."""
    name = f"memory-tui-{os.geteuid()}" if hasattr(os, "geteuid") else "memory-tui"
    return [Path(tempfile.gettempdir(), name), *(folder / name for folder in _MEMORY if folder.is_dir())]


def _temporary_places(where: Path) -> list[Path]:
    name = f"{sha256(os.fsencode(where)).hexdigest()[:16]}.sqlite"
    return [folder / name for folder in temporary_folders()]


def _make_own(folder: Path) -> None:
    """Make a temporary folder that only this user can enter. Raises OSError where somebody else has made it."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not _is_own(folder):
        raise PermissionError(errno.EACCES, "it is the folder of somebody else", str(folder))


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    private = not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077)
    return stat.S_ISDIR(status.st_mode) and private


def is_temporary(path: Path) -> bool:
    """Say whether the index at `path` lies in one of the temporary folders."""
    return path.parent in temporary_folders()


def displaced(path: str | os.PathLike[str]) -> list[Path]:
    """List the temporary indexes that stand for the one of `path`."""
    return [other for other in _temporary_places(resolved(path)) if _is_own(other.parent) and other.exists()]


def remove_temporary(path: Path) -> None:
    """Remove a temporary index, everything beside it, and its folder when that is empty. Raises OSError."""
    for part in sorted(path.parent.glob(f"{path.name}*"), reverse=True):
        durable.remove_file(part)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def file_at(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at `path`; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def create(path: Path) -> Path:
    """Make sure that `path` can be written by us and read by nobody else.

    An existing file is not opened for that: closing it would drop the locks that SQLite holds on it in this process.
    """
    durable.make_folder(path.parent)
    # Log and shared memory of a file that was deleted would be taken for those of the new one. What was not there
    # before the new file was is of another process that makes it, too.
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


def _with_room(path: Path) -> None:
    """Make the index at `path`, where there is room for a new one. Raises OSError."""
    new = create(path).stat().st_size == 0
    room = durable.room(path)
    if new and room is not None and room < _LEAST:
        path.unlink()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def quarantine(path: Path, why: str) -> Notice:
    """Rename the file and its write-ahead log; returns what says so, with the sentence `why`.

    Raises IndexUnavailable.
    """

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
        raise IndexUnavailable(f"{path} cannot be moved aside: {error.strerror}.", "Move it away yourself.") from None
    return notice("moved_aside", path=str(path), why=why, kept=str(target))


# --- what it takes ---------------------------------------------------------------------------------------------------


class FileSize(Struct, frozen=True):
    """A file that belongs to an index: `what` is index, log, beside, lock or aside.

    Of another release's index of the same notes it is always "other release's".
    """

    path: str
    what: str
    bytes: int


def files(index: Path, sibling: Path | None = None) -> tuple[FileSize, ...]:
    """Return every file of an index, what is being made beside it and what was moved aside included; biggest first.

    Those of the `sibling`, the other release's index of the same notes, come last.
    """
    others = files(sibling) if sibling is not None else ()
    kinds = {index.name: "index", rebuild_of(index).name: "beside"}
    sizes = []
    for path in (*index.parent.glob(f"{index.name}*"), *index.parent.glob(f".{index.name}.*.part")):
        try:
            size = path.stat().st_size
        except OSError:
            continue
        sizes.append(FileSize(str(path), kinds.get(path.name) or _kind(path.name), size))
    ordered = sorted(sizes, key=lambda file: -file.bytes)
    return (*ordered, *(replace(file, what="other release's") for file in others if file not in ordered))


def on_disk(index: Path) -> int:
    """Return bytes of the index and its write-ahead log."""
    return sum(file.bytes for file in files(index) if file.path in (str(index), f"{index}-wal"))


def _kind(name: str) -> str:
    if ".damaged-" in name:
        return "aside"
    return "log" if name.endswith(("-wal", "-shm")) else "lock"
