"""Files as reading and SQLite must know them: whether one is regular, the kind of file system that holds it."""

from __future__ import annotations

import errno
import os
import stat
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
