"""Side files: small files of ours beside another file, opened without following a link or waiting for a pipe."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

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
