"""Files as reading and SQLite must know them: whether one is regular, the kind of file system that holds it.

Side files are small files of ours beside another file, opened without following a link or waiting for a pipe.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "fuse.",
    "fakeowner",
    "drvfs",
    "prl_fs",
    "gpfs",
    "orangefs",
    "virtiofs",
    "vboxsf",
    "davfs",
    "ncpfs",
    "gfs2",
    "ocfs2",
    "beegfs",
)
"""Kinds that another machine can write to: there memory cannot be shared, which a write-ahead log needs.

overlay is none of them: one kernel serves both layers. A file of the lower layer that is written is another file from
then on, which `Database.moved` sees.
"""


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for a pipe or a device: its data may never come."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, also for a pipe or a device."""
    with open_regular(path) as file:
        return file.read()


def kind(path: Path) -> str:
    """The type of the file system that `path` lies on, empty where the system does not tell."""
    try:
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    best, found = -1, ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = parts[4].replace("\\040", " ")
        # Of two mounts at one place the later one lies on top.
        if len(point) >= best and (path == Path(point) or Path(point) in path.parents):
            best, found = len(point), rest.split(" ")[0]
    return found


def shared(path: Path) -> str:
    """The type of the file system, where other machines can write to it; empty where not."""
    name = kind(path)
    return name if name == "fuse" or name.startswith(_SHARED) else ""


def room(path: Path) -> int | None:
    """Bytes that can still be written where `path` lies; None when that cannot be told."""
    try:
        state = os.statvfs(path if path.is_dir() else path.parent)
    except (OSError, AttributeError):
        return None
    return state.f_bavail * state.f_frsize


def full(path: Path) -> str:
    """How full the file system of `path` is, as the end of a sentence; empty when it cannot be told."""
    try:
        state = os.statvfs(path.parent)
    except (OSError, AttributeError):
        return ""
    return (
        f" (the file system that holds {path.parent} has {state.f_bavail * state.f_frsize / 1e6:,.0f} of "
        f"{state.f_blocks * state.f_frsize / 1e6:,.0f} MB left)"
    )


TICK_NS = 20_000_000
"""Longest step of a file system's clock: a note saved twice within it can have one modification time for both."""
SKEW_NS = 2_000_000_000
"""A time further ahead than this was set by somebody, it is not the tick of a save."""


def unmoved(mtime_ns: int, read_ns: int) -> bool:
    """Whether a note saved at `mtime_ns` and read at `read_ns` would have another time, had it been saved since."""
    return not -TICK_NS < mtime_ns - read_ns < SKEW_NS


LONGEST = 1 << 12
"""Bytes of the longest lock file or clean-shutdown marker; what is longer is not ours."""


def open_beside(path: Path, flags: int, is_ours: Callable[[bytes], bool]) -> int:
    """Open a side file as `flags` say, and return its descriptor; the file must not be a database.

    Raises OSError, FileExistsError with the reason for a link, a pipe, and a file whose bytes are not ours.
    """
    descriptor = _opened(path, (flags & ~(os.O_WRONLY | os.O_RDWR)) | os.O_RDWR)
    try:
        data = os.read(descriptor, LONGEST + 1)
        if data and (len(data) > LONGEST or not is_ours(data)):
            raise FileExistsError(errno.EEXIST, "another program's file has this name", str(path))
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_beside(path: Path, most: int = LONGEST, *, whole: bool = True) -> bytes:
    """Read a side file, at most `most` bytes; without `whole` its beginning is enough.

    Raises OSError, also for what is no file.
    """
    descriptor = _opened(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, most + whole)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise FileExistsError(errno.EEXIST, "another program's file has this name", str(path))
    return data


def _opened(path: Path, flags: int) -> int:
    """Open a regular file that has one name, and return its descriptor."""
    extra = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    wrong = FileExistsError(errno.EEXIST, "it is a link, a pipe or a device, not a file", str(path))
    # To open a device can already do something.
    if _is_no_file(path):
        raise wrong
    try:
        descriptor = os.open(path, flags | extra, 0o600)
    except OSError as error:
        raise wrong if error.errno in (errno.ELOOP, errno.ENXIO) else error from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise wrong
    return descriptor


def _is_no_file(path: Path) -> bool:
    """Whether something other than a regular file lies at `path`; nothing at all is fine."""
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
