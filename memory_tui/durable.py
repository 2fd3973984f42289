"""Durable writes: a file holds its old bytes or its new ones, never a part.

Every byte that this program keeps outside SQLite is written here. A whole file is written beside its place, flushed
and renamed (`replace_file`, `create_file`); a line goes behind others, and is cut off again when the disk refuses a
part of it (`append_line`). `calls` are the system calls beneath; tests let each of them fail.
"""

# ruff: noqa: PTH102
# Paths are relative to an open folder where `at` names one, which path objects cannot say.

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

PRIVATE = 0o600
"""The mode of a file that only its user may read."""
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_END = ".part"
"""How the name of a file ends that is still being written."""
_WAIT_SECONDS, _PAUSE_SECONDS = 5.0, 0.002
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS."""
_HERE = -100
"""AT_FDCWD of Linux, for a path that is relative to no open folder."""
_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class Calls:
    """The system calls that change files. Each raises OSError. Paths are relative to the open folder `at`, if any."""

    def open(self, path: str | Path, flags: int, mode: int = PRIVATE, at: int | None = None) -> int:
        """Open or make a file."""
        return os.open(path, flags, mode, dir_fd=at)

    def mkdir(self, path: str | Path, mode: int = 0o777) -> None:
        """Make one folder."""
        os.mkdir(path, mode)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write some of `data`; returns how many bytes."""
        return os.write(descriptor, data)

    def truncate(self, descriptor: int, size: int) -> None:
        """Let a file end at `size`."""
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        """Wait until the file, or the names in the folder, are on the disk."""
        os.fsync(descriptor)

    def chmod(self, descriptor: int, mode: int) -> None:
        """Set who may read and write, where the system has that."""
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)

    def replace(self, old: str | Path, new: str | Path, at: int | None = None) -> None:
        """Give `old` the name `new`, in the place of whatever has it."""
        os.replace(old, new, src_dir_fd=at, dst_dir_fd=at)

    def exchange(self, first: str | Path, second: str | Path, at: int | None = None) -> bool:
        """Let two files change names in one step; False where the system or the file system cannot."""
        call = _exchange_call()
        where = _HERE if at is None else at
        if call is None:
            return False
        if call(where, os.fsencode(first), where, os.fsencode(second), _EXCHANGE) == 0:
            return True
        number = ctypes.get_errno()
        if number in _NO_SUCH_CALL:
            return False
        raise OSError(number, os.strerror(number), str(first))

    def link(self, old: str | Path, new: str | Path, at: int | None = None) -> None:
        """Give `old` the second name `new`, which must be free."""
        os.link(old, new, src_dir_fd=at, dst_dir_fd=at)

    def unlink(self, path: str | Path, at: int | None = None) -> None:
        """Take a name away."""
        os.unlink(path, dir_fd=at)


calls = Calls()
"""What this process changes files by; a test puts one here that fails."""


@functools.cache
def _exchange_call() -> Callable[..., int] | None:
    """Return the C function that exchanges two names; None where there is none."""
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    return getattr(ctypes.CDLL(None, use_errno=True), name, None) if name is not None else None


# --- whole files -----------------------------------------------------------------------------------------------------


def make_folder(path: Path, mode: int = 0o700) -> None:
    """Make the folder `path` with those above it that are missing, each one flushed. Raises OSError."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent, mode)
    try:
        calls.mkdir(path, mode)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, mode: int | None = PRIVATE) -> None:
    """Let the file `path` hold `data` in one step, whatever it held. Raises OSError; then it is as it was.

    Only where its folder cannot be flushed may it hold `data` then. `mode` None stands for what the user's umask
    leaves. A link in its place is replaced, not followed.
    """
    kind = _kind(path)
    if kind is not None and not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    with _beside(path, data, mode) as part:
        calls.replace(part, path)
        sync_folder(path.parent)


def create_file(path: Path, data: bytes, mode: int | None = PRIVATE) -> None:
    """Make the file `path` of `data` where nothing may be. Raises FileExistsError, OSError; then nothing is made."""
    with _beside(path, data, mode) as part:
        try:
            calls.link(part, path)
        except OSError as error:
            if error.errno not in (*_NO_SUCH_CALL, errno.EPERM, errno.EMLINK, errno.EXDEV):
                raise
            # The file system has no second names. A file that somebody makes between the look and the rename is lost.
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            calls.replace(part, path)
        sync_folder(path.parent)


def remove_file(path: Path) -> bool:
    """Remove the file `path` for good; False when there was none. Raises OSError."""
    if stat.S_ISDIR(_kind(path) or 0):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        calls.unlink(path)
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def remove_empty_folder(path: Path) -> bool:
    """Remove the folder `path` for good where it is one and empty. Raises OSError."""
    if not path.is_dir() or any(path.iterdir()):
        return False
    path.rmdir()
    sync_folder(path.parent)
    return True


def move_file(old: Path, new: Path) -> None:
    """Give `old` the name `new`, in the place of whatever has it. Raises OSError."""
    calls.replace(old, new)
    sync_folder(new.parent)
    if old.parent != new.parent:
        sync_folder(old.parent)


def sync_folder(folder: Path | int) -> None:
    """Wait until the names in `folder` are on the disk, where a folder can be flushed. Raises OSError."""
    if not isinstance(folder, int) and not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = folder if isinstance(folder, int) else os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        calls.fsync(descriptor)
    except OSError as error:
        # Some file systems have nothing to do here and say so in this way.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        if not isinstance(folder, int):
            os.close(descriptor)


@contextmanager
def _beside(path: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """Yield a flushed file of `data` beside `path`, which is gone at the end unless it was renamed.

    It is locked while it is written. One without a lock was left by a killed process, and is removed first.
    """
    part = path.with_name(f".{path.name[:200]}{_END}")
    until = time.monotonic() + _WAIT_SECONDS
    while (descriptor := _new(part, PRIVATE if mode is not None else 0o666)) is None:
        if time.monotonic() > until:
            raise OSError(errno.EAGAIN, "Another process is writing it", str(path))
        time.sleep(_PAUSE_SECONDS)
    try:
        write_all(descriptor, data)
        if mode is not None:
            calls.chmod(descriptor, mode)
        calls.fsync(descriptor)
        yield part
    finally:
        # Not after a rename, when another process may have a file of this name.
        if _is_at(descriptor, part):
            with suppress(OSError):
                calls.unlink(part)
        os.close(descriptor)


def _new(part: Path, mode: int) -> int | None:
    """Return the locked descriptor of a new file; None while another process writes one of this name."""
    try:
        descriptor = calls.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
    except FileExistsError:
        _sweep(part)
        return None
    # Before the lock was had, another process may have taken the file for one that was left, and removed it.
    if _hold(descriptor) and _is_at(descriptor, part):
        return descriptor
    os.close(descriptor)
    return None


def _sweep(part: Path) -> None:
    """Remove the file `part` where no process has it locked: a killed one left it."""
    with suppress(OSError):
        descriptor = os.open(part, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _PLAIN)
        try:
            if _hold(descriptor) and _is_at(descriptor, part):
                calls.unlink(part)
        finally:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file has the name `path` still."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _hold(descriptor: int) -> bool:
    """Lock a file until it is closed; False when another process has it. Where there are no locks all have it."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _kind(path: Path) -> int | None:
    """Return the mode of what is at `path`, a link itself; None where nothing is."""
    with suppress(FileNotFoundError):
        return os.lstat(path).st_mode
    return None


# --- open files ------------------------------------------------------------------------------------------------------


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, in as many calls as it takes. Raises OSError, with a part of it written."""
    view = memoryview(data)
    while view:
        if not (count := calls.write(descriptor, view)):
            raise OSError(errno.EIO, "The disk takes nothing")
        view = view[count:]


def append_line(path: Path, line: bytes, *, flush: bool = True) -> None:
    """Write `line`, which ends with a line feed, behind the others of the private file `path`, or nothing of it.

    One process at a time. A line that a killed process left without its end is ended first, so that it does not
    swallow this one. Raises OSError.
    """
    is_new = not path.exists()
    descriptor = calls.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, PRIVATE)
    try:
        until = time.monotonic() + _WAIT_SECONDS
        while not _hold(descriptor):
            if time.monotonic() > until:
                raise OSError(errno.EAGAIN, "Another process keeps it locked")
            time.sleep(_PAUSE_SECONDS)
        if os.fstat(descriptor).st_mode & 0o077:
            calls.chmod(descriptor, PRIVATE)
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            # Reading leaves the place at the end again.
            line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
        try:
            write_all(descriptor, line)
            if flush:
                calls.fsync(descriptor)
        except OSError:
            # Nothing of the line is to stay.
            calls.truncate(descriptor, size)
            raise
        if flush and is_new:
            sync_folder(path.parent)
    finally:
        os.close(descriptor)


# --- reading ---------------------------------------------------------------------------------------------------------


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for a pipe or a device: its data may never come."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file. Raises OSError, also for a pipe or a device."""
    with open_regular(path) as file:
        return file.read()


LONGEST = 1 << 12
"""Bytes of the longest lock file or clean-shutdown marker; what is longer is not ours."""


def read_beside(path: Path, most: int = LONGEST, *, whole: bool = True) -> bytes:
    """Read a side file, at most `most` bytes; without `whole` its beginning is enough.

    Raises OSError, also for what is no file.
    """
    descriptor = open_beside(path, os.O_RDONLY)
    try:
        # One more than it may have shows that it is too long.
        data = os.read(descriptor, most + 1 if whole else most)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise foreign(path)
    return data


def foreign(path: Path) -> FileExistsError:
    """Return the error for a side file whose bytes are not ours."""
    return FileExistsError(errno.EEXIST, "another program's file has this name", str(path))


def open_beside(path: Path, flags: int) -> int:
    """Open a side file, which is regular and has one name, and return its descriptor; it must not be a database.

    Raises OSError, FileExistsError with the reason for a link or a pipe.
    """
    # Raised where a look, the opening (which follows no link) or the open file tells it.
    wrong = FileExistsError(errno.EEXIST, "it is a link, a pipe or a device, not a file", str(path))
    # Looked at first, because to open a device can already do something. What is not there counts as a file, so that
    # the opening may make it, or tells that it is missing.
    if not stat.S_ISREG(_kind(path) or stat.S_IFREG):
        raise wrong
    try:
        descriptor = os.open(path, flags | _PLAIN | getattr(os, "O_NONBLOCK", 0), PRIVATE)
    except OSError as error:
        raise wrong if error.errno in (errno.ELOOP, errno.ENXIO) else error from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise wrong
    return descriptor


def file_at(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at `path`; None when there is none."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


# --- the file system -------------------------------------------------------------------------------------------------

_MOUNTS, _POINT_FIELD = Path("/proc/self/mountinfo"), 4
"""Where the system tells of what is mounted, and the field of a line that says at which folder."""
_SHARED = (
    "nfs cifs smb 9p afs ceph glusterfs lustre fuse. fakeowner drvfs prl_fs gpfs orangefs virtiofs vboxsf davfs ncpfs "
    "gfs2 ocfs2 beegfs"
)
"""Kinds that another machine can write to: there memory cannot be shared, which a write-ahead log needs.

overlay is none of them: one kernel serves both layers. A file of the lower layer that is written is another file from
then on, which `Database.moved` sees.
"""
TICK_NS = 20_000_000
"""Longest step of a file system's clock: a note saved twice within it can have one modification time for both."""
SKEW_NS = 2_000_000_000
"""A time further ahead than this was set by somebody, it is not the tick of a save."""


def shared(path: Path) -> str:
    """Return the type of the file system that `path` lies on, where other machines can write to it; else empty."""
    try:
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    longest, name = "", ""
    for line in lines:
        # For instance: 36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if source and len(fields) > _POINT_FIELD:
            # A space is written as its octal number.
            point = fields[_POINT_FIELD].replace("\\040", " ")
            # Of two mounts at one place the later one lies on top.
            if path.is_relative_to(point) and len(point) >= len(longest):
                longest, name = point, source.split(" ")[0]
    return name if name == "fuse" or name.startswith(tuple(_SHARED.split())) else ""


def room(path: Path) -> int | None:
    """Return the bytes that can still be written where `path` lies; None when that cannot be told."""
    try:
        state = os.statvfs(path if path.is_dir() else path.parent)
    except (OSError, AttributeError):
        return None
    return state.f_bavail * state.f_frsize


def full(path: Path) -> str:
    """Return how full the file system of `path` is, as the end of a sentence; empty when it cannot be told."""
    free = room(path.parent)
    return "" if free is None else f" (the file system that holds {path.parent} has {free / 1e6:,.0f} MB left)"


def unmoved(mtime_ns: int, read_ns: int) -> bool:
    """Return whether a note saved at `mtime_ns` and read at `read_ns` would have another time, had it been saved since.

    A time within a tick before the reading, or a little after it, may be that of a later save as well.
    """
    return not -TICK_NS < mtime_ns - read_ns < SKEW_NS
