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
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

PRIVATE = 0o600
"""The mode of a file that only its user may read."""
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _PLAIN
_END = ".part"
"""How the name of a file ends that is still being written."""
_TRIES = 5
_WAIT_SECONDS, _PAUSE_SECONDS = 5.0, 0.002
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS."""
_HERE = -100
"""AT_FDCWD of Linux, for a path that is relative to no open folder."""
_NO_SUCH_CALL = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_numbers = itertools.count()


class Calls:
    """The system calls that change files. Each raises OSError. Paths are relative to the open folder `at`, if any."""

    def open(self, path: str | Path, flags: int, mode: int = PRIVATE, at: int | None = None) -> int:
        """Open or make a file."""
        return os.open(path, flags, mode, dir_fd=at)

    def mkdir(self, path: str | Path, mode: int = 0o777) -> None:
        """Make one folder."""
        os.mkdir(path, mode)

    def rmdir(self, path: str | Path) -> None:
        """Remove one folder, which must be empty."""
        os.rmdir(path)  # noqa: PTH106 - as the other calls

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

    def exchange(self, one: str | Path, other: str | Path, at: int | None = None) -> bool:
        """Let two files change names in one step; False where the system or the file system cannot."""
        call = _exchange_call()
        if call is None:
            return False

        where = _HERE if at is None else at
        if call(where, os.fsencode(one), where, os.fsencode(other), _EXCHANGE) == 0:
            return True
        number = ctypes.get_errno()
        if number in _NO_SUCH_CALL:
            return False
        raise OSError(number, os.strerror(number), str(one))

    def link(self, old: str | Path, new: str | Path, at: int | None = None) -> None:
        """Give `old` the second name `new`, which must be free."""
        os.link(old, new, src_dir_fd=at, dst_dir_fd=at)

    def symlink(self, target: str | Path, path: str | Path) -> None:
        """Make `path` a link to `target`; the name must be free."""
        os.symlink(target, path)  # noqa: PTH211 - as the other calls

    def unlink(self, path: str | Path, at: int | None = None) -> None:
        """Take a name away."""
        os.unlink(path, dir_fd=at)


calls = Calls()
"""What this process changes files by; a test puts one here that fails."""


# --- whole files ----------------------------------------------------------------------------------------------------


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

    `mode` None stands for what the user's umask leaves. A link in its place is replaced, not followed.
    """
    old = _kind(path)
    if old is not None and not (stat.S_ISREG(old) or stat.S_ISLNK(old)):
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
    part, descriptor = _beside(path, data, mode)
    try:
        # Where both names can be exchanged the old file is still there when the folder cannot be flushed.
        exchanged = old is not None and _exchanged(part, path)
        if not exchanged:
            calls.replace(part, path)
        try:
            sync_folder(path.parent)
        except OSError:
            if exchanged:
                calls.exchange(part, path)
            elif old is None:
                calls.unlink(path)
            raise
    finally:
        os.close(descriptor)
        _discard(part)


def create_file(path: Path, data: bytes, mode: int | None = PRIVATE) -> None:
    """Make the file `path` of `data` where nothing may be. Raises FileExistsError, OSError; then nothing is made."""
    part, descriptor = _beside(path, data, mode)
    try:
        try:
            calls.link(part, path)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (*_NO_SUCH_CALL, errno.EPERM, errno.EMLINK, errno.EXDEV):
                raise
            # A file system without second names. Who looks in between sees a part of the file.
            _create_in_place(path, data, mode)
        try:
            sync_folder(path.parent)
        except OSError:
            calls.unlink(path)
            raise
    finally:
        os.close(descriptor)
        _discard(part)


@contextmanager
def growing(path: Path, size: int) -> Iterator[Callable[[bytes], None]]:
    """Write the private file `path` piece by piece behind its first `size` bytes; flushed at the end. Raises OSError.

    For what is fetched: an error leaves what came so far, for the next time. Give it its name with `publish_file`.
    """
    descriptor = calls.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, PRIVATE)
    try:
        calls.truncate(descriptor, size)
        os.lseek(descriptor, size, os.SEEK_SET)
        yield lambda piece: write_all(descriptor, piece)
        calls.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish_file(part: Path, path: Path) -> None:
    """Give the flushed file `part` the name `path`, unless another has it by now; `part` is gone. Raises OSError."""
    if path.exists():
        calls.unlink(part)
    else:
        move_file(part, path)


def remove_file(path: Path) -> bool:
    """Remove the file `path` for good; False when there was none. Raises OSError; then it is there as before."""
    if stat.S_ISDIR(_kind(path) or 0):
        # It could be renamed, and then not be removed.
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    part = _part_of(path)
    try:
        calls.replace(path, part)
    except FileNotFoundError:
        return False
    try:
        sync_folder(path.parent)
    except OSError:
        calls.replace(part, path)
        raise
    _discard(part)
    return True


def remove_empty_folder(path: Path) -> bool:
    """Remove the folder `path` for good where it is one and empty. Raises OSError."""
    if not path.is_dir() or any(path.iterdir()):
        return False
    calls.rmdir(path)
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
    if isinstance(folder, int):
        _sync_names(folder)
        return
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync_names(descriptor)
    finally:
        os.close(descriptor)


def _sync_names(descriptor: int) -> None:
    try:
        calls.fsync(descriptor)
    except OSError as error:
        # Some file systems have nothing to do here and say so in this way.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise


# --- open files -----------------------------------------------------------------------------------------------------


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, in as many calls as it takes. Raises OSError, with a part of it written."""
    view = memoryview(data)
    while view:
        view = view[_write(descriptor, view) :]


def set_contents(descriptor: int, data: bytes) -> None:
    """Let an open file hold `data` and nothing else; not flushed, for what only living processes read. Raises OSError.

    It is written over what is there, so that data of the same length needs no room on a full disk. After an error the
    file is empty, or cannot be changed at all.
    """
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        write_all(descriptor, data)
        if os.fstat(descriptor).st_size > len(data):
            calls.truncate(descriptor, len(data))
    except OSError:
        calls.truncate(descriptor, 0)
        raise


def append_line(path: Path, line: bytes, *, flush: bool = True) -> None:
    """Write `line`, which ends with a line feed, behind the others of the private file `path`, or nothing of it.

    One process at a time. A line that a killed process left without its end is ended first, so that it does not
    swallow this one. Raises OSError.
    """
    is_new = not path.exists()
    descriptor = calls.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, PRIVATE)
    try:
        _wait_for(descriptor)
        if os.fstat(descriptor).st_mode & 0o077:
            calls.chmod(descriptor, PRIVATE)
        size = os.fstat(descriptor).st_size
        data = b"\n" + line if size and _read_at(descriptor, size - 1, 1) != b"\n" else line
        os.lseek(descriptor, size, os.SEEK_SET)
        try:
            write_all(descriptor, data)
            if flush:
                calls.fsync(descriptor)
            if _read_at(descriptor, size, len(data)) != data:
                raise OSError(errno.EIO, "What was written is not in the file")
        except OSError:
            calls.truncate(descriptor, size)
            raise
        if flush and is_new:
            sync_folder(path.parent)
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int) -> None:
    """Have the lock of an open file, until it is closed. Raises OSError when another process keeps it."""
    until = time.monotonic() + _WAIT_SECONDS
    while not _hold(descriptor, unknown=True):
        if time.monotonic() > until:
            raise OSError(errno.EAGAIN, "Another process keeps it locked")
        time.sleep(_PAUSE_SECONDS)


def _write(descriptor: int, view: memoryview) -> int:
    for _ in range(_TRIES):
        try:
            written = calls.write(descriptor, view)
        except InterruptedError:
            continue
        if written:
            return written
    raise OSError(errno.EIO, "The disk takes nothing")


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    parts = []
    while size > 0 and (data := os.read(descriptor, size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


# --- the file beside -------------------------------------------------------------------------------------------------


def _beside(path: Path, data: bytes, mode: int | None) -> tuple[Path, int]:
    """A flushed file of `data` beside `path`, and its descriptor, which keeps others from sweeping it away."""
    sweep(path.parent, f".{path.name[:200]}.")
    part, descriptor = _new_beside(path, PRIVATE if mode is not None else 0o666)
    try:
        write_all(descriptor, data)
        if mode is not None:
            calls.chmod(descriptor, mode)
        calls.fsync(descriptor)
        if _read_at(descriptor, 0, len(data) + 1) != data:
            raise OSError(errno.EIO, "What was written is not in the file", str(part))
    except BaseException:
        # Ctrl-C among them.
        os.close(descriptor)
        _discard(part)
        raise
    return part, descriptor


def _new_beside(path: Path, mode: int) -> tuple[Path, int]:
    """An empty file beside `path` that is this process's alone, and its descriptor."""
    for _ in range(_TRIES):
        part = _part_of(path)
        try:
            descriptor = calls.open(part, _NEW, mode)
        except FileExistsError:
            continue
        try:
            if _hold(descriptor, unknown=True) and os.fstat(descriptor).st_nlink:
                return part, descriptor
        except BaseException:
            os.close(descriptor)
            _discard(part)
            raise
        os.close(descriptor)
    raise OSError(errno.EEXIST, "No name for a temporary file is free", str(path))


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name[:200]}.{os.getpid()}-{next(_numbers)}{_END}")


def _create_in_place(path: Path, data: bytes, mode: int | None) -> None:
    descriptor = calls.open(path, _NEW, PRIVATE if mode is None else mode)
    try:
        write_all(descriptor, data)
        calls.fsync(descriptor)
    except OSError:
        calls.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _exchanged(part: Path, path: Path) -> bool:
    try:
        return calls.exchange(part, path)
    except FileNotFoundError:
        # Somebody has removed the old file meanwhile.
        return False


def _discard(part: Path) -> None:
    """Remove the file beside, if it is there still; the next writer sweeps what stays."""
    if os.path.lexists(part):
        try:
            calls.unlink(part)
        except OSError:
            return


if sys.platform == "win32":

    def sweep(folder: Path, start: str = ".") -> None:
        """Remove what killed processes left in a folder of ours: files that nobody holds locked."""
        del folder, start

    def _hold(descriptor: int, *, unknown: bool) -> bool:
        del descriptor
        return unknown
else:

    def sweep(folder: Path, start: str = ".") -> None:
        """Remove what killed processes left in a folder of ours: files that nobody holds locked."""
        try:
            names = [name for name in os.listdir(folder) if name.startswith(start) and name.endswith(_END)]
        except OSError:
            return
        for name in names:
            part = folder / name
            try:
                descriptor = os.open(part, os.O_RDONLY | os.O_NONBLOCK | _PLAIN)
            except OSError:
                continue
            if _hold(descriptor, unknown=False):
                _discard(part)
            os.close(descriptor)

    def _hold(descriptor: int, *, unknown: bool) -> bool:
        """Keep a file from being swept until it is closed; False when another process has it.

        `unknown` is the answer where the file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return unknown
        return True


def _kind(path: Path) -> int | None:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


@functools.cache
def _c_function(name: str) -> Callable[..., int] | None:

    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _exchange_call() -> Callable[..., int] | None:
    """The C function that exchanges two names; None where there is none."""
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    return _c_function(name) if name is not None else None


# --- reading --------------------------------------------------------------------------------------------------------

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
