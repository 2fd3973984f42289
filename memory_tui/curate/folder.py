"""A folder of notes held open while something in it is written, so that no link can take its place on the way.

Where the system allows it the folder is opened component by component below its root, and every name is used
relative to it.
"""

# Names are relative to an open folder, which path objects cannot say.
# ruff: noqa: PTH118, PTH206
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_tui.core import atomic
from memory_tui.curate.record import ReadOnly
from memory_tui.errors import EditRefused, PathRefused, Unreadable
from memory_tui.workspace.roots import MAX_BYTES, Roots, destination

_RELATIVE = os.open in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER = (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. `absolute` names it for people; `descriptor` is -1 where the system has no such thing."""

    absolute: str
    descriptor: int

    def _at(self, name: str) -> tuple[str, int | None]:
        return (name, self.descriptor) if self.descriptor >= 0 else (os.path.join(self.absolute, name), None)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of `name`, never through a link. Raises OSError."""
        path, at = self._at(name)
        return atomic.calls.open(path, flags | _NO_FOLLOW, mode, at)

    def status(self, name: str) -> os.stat_result | None:
        """What `name` is, without following it; None when nothing is there."""
        path, at = self._at(name)
        try:
            return os.lstat(path) if at is None else os.stat(path, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def rename(self, old: str, new: str) -> None:
        """Give `old` the name `new`, in the place of whatever has it."""
        (source, at), (target, _) = self._at(old), self._at(new)
        atomic.calls.replace(source, target, at)

    def link(self, old: str, new: str) -> None:
        """Give `old` the second name `new`. Raises FileExistsError, and OSError where there are no hard links."""
        (source, at), (target, _) = self._at(old), self._at(new)
        atomic.calls.link(source, target, at)

    def exchange(self, one: str, other: str) -> bool:
        """Let two files change names in one step; False where system or file system cannot."""
        (first, at), (second, _) = self._at(one), self._at(other)
        return atomic.calls.exchange(first, second, at)

    def remove(self, name: str) -> None:
        """Remove `name` if it is there."""
        path, at = self._at(name)
        try:
            atomic.calls.unlink(path, at)
        except FileNotFoundError:
            return

    def names(self, start: str) -> list[str]:
        """The names in it that begin with `start`."""
        with os.scandir(self.descriptor if self.descriptor >= 0 else self.absolute) as entries:
            return sorted(entry.name for entry in entries if entry.name.startswith(start))

    def sync(self) -> None:
        """Have the names themselves written to the disk, where a folder can be."""
        if self.descriptor >= 0:
            atomic.sync_folder(self.descriptor)

    def read(self, name: str) -> bytes | None:
        """The bytes of `name`, None when nothing is there. Raises PathRefused for anything but a regular file."""
        try:
            descriptor = self.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(
                f"{os.path.join(self.absolute, name)} cannot be read: {error.strerror}.",
                "Allow your user to read the file.",
            ) from None
        try:
            return contents(descriptor, name)
        finally:
            os.close(descriptor)


def contents(descriptor: int, name: str) -> bytes:
    """All bytes of an open regular file, from its start."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{name} is not a regular file.", "Only regular files are changed.")
    if status.st_size > MAX_BYTES:
        raise Unreadable(
            f"{name} has {status.st_size:,} bytes; at most {MAX_BYTES:,} are read.", "Split it into days or topics."
        )
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while data := os.read(descriptor, 1 << 20):
        parts.append(data)
    return b"".join(parts)


@contextmanager
def parent(roots: Roots, path: str, *, make: bool = False) -> Iterator[tuple[Folder | None, str]]:
    """The folder that holds the note `path`, and the note's name in it; None when the folder is not there.

    With `make` missing folders below the root are made. Raises PathRefused, ReadOnly.
    """
    root, absolute, stored = destination(roots, path)
    *folders, name = absolute[len(root.rstrip(os.sep)) + 1 :].split(os.sep)
    where = os.path.dirname(absolute)  # noqa: PTH120
    try:
        if make:
            _make(root, folders)
        descriptor = _descend(root, folders)
    except FileNotFoundError:
        yield None, name
        return
    except PermissionError:
        raise ReadOnly(f"The folder of {stored} may not be entered or made.", "Check its permissions.") from None
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise EditRefused(
                f"The folder of {stored} cannot be used: {error.strerror}.", "Check the disk and the space on it."
            ) from None
        raise PathRefused(
            f"The folder of {stored} cannot be used: {error.strerror}.",
            "Only folders that are reached without symbolic links are used.",
        ) from None
    try:
        yield Folder(where, descriptor), name
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _make(root: str, folders: list[str]) -> None:
    at = root
    for folder in folders:
        at = os.path.join(at, folder)
        try:
            atomic.calls.mkdir(at)
        except FileExistsError:
            continue
        atomic.sync_folder(Path(at).parent)


def _descend(root: str, folders: list[str]) -> int:
    if not _RELATIVE:
        os.stat(os.path.join(root, *folders))  # noqa: PTH116
        return -1
    at = os.open(root, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER | _NO_FOLLOW, dir_fd=at)
            os.close(at)
            at = below
    except OSError:
        os.close(at)
        raise
    return at
