"""The only module that changes a person's note. It replaces, creates, removes and appends bytes in a folder that stays
open.

Where the system allows it the folder is opened component by component below its root, and every name is used
relative to it.

The new text is written beside the note and flushed; nobody may have the note open to write (lease.py); its content is
compared; then both files change names at once. A writer who was on the way into the note gets the old file, so the
old file's last content is looked at afterwards: what was added to it is merged into the new one.

Names beside the note, hidden and not Markdown: `.part` while the new text is written, `.new` when it is whole, and
after the change of names `.new` (or `.old` where names cannot be exchanged) is the old file. A second round has one
`+` more in its names.
"""

# ruff: noqa: PTH118, PTH206
# Names are relative to an open folder, which path objects cannot say.

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from memory_tui import durable
from memory_tui.core.errors import EditFailed, PathRefused, Unreadable
from memory_tui.notes import lease
from memory_tui.notes.changes import Busy, ReadOnly
from memory_tui.notes.lease import WriterState
from memory_tui.workspace.roots import Roots, destination
from memory_tui.workspace.scan import MAX_BYTES

_RELATIVE = os.open in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER = (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


class Folder(Struct, frozen=True):
    """An open folder. `absolute` names it for people; `descriptor` is -1 where the system has no such thing."""

    absolute: str
    descriptor: int

    def _at(self, name: str) -> tuple[str, int | None]:
        return (name, self.descriptor) if self.descriptor >= 0 else (os.path.join(self.absolute, name), None)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of `name`, never through a link. Raises OSError."""
        path, at = self._at(name)
        return durable.calls.open(path, flags | _NO_FOLLOW, mode, at)

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
        durable.calls.replace(source, target, at)

    def link(self, old: str, new: str) -> None:
        """Give `old` the second name `new`. Raises FileExistsError, and OSError where there are no hard links."""
        (source, at), (target, _) = self._at(old), self._at(new)
        durable.calls.link(source, target, at)

    def exchange(self, one: str, other: str) -> bool:
        """Let two files change names in one step; False where system or file system cannot."""
        (first, at), (second, _) = self._at(one), self._at(other)
        return durable.calls.exchange(first, second, at)

    def remove(self, name: str) -> None:
        """Remove `name` if it is there."""
        path, at = self._at(name)
        try:
            durable.calls.unlink(path, at)
        except FileNotFoundError:
            return

    def names(self, start: str) -> list[str]:
        """The names in it that begin with `start`."""
        with os.scandir(self.descriptor if self.descriptor >= 0 else self.absolute) as entries:
            return sorted(entry.name for entry in entries if entry.name.startswith(start))

    def sync(self) -> None:
        """Have the names themselves written to the disk, where a folder can be."""
        if self.descriptor >= 0:
            durable.sync_folder(self.descriptor)

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
            raise EditFailed(
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
            durable.calls.mkdir(at)
        except FileExistsError:
            continue
        durable.sync_folder(Path(at).parent)


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


PART, NEW, OLD = ".part", ".new", ".old"
WAIT_SECONDS = 1.0
"""How long a note that somebody has open to write is waited for."""
_LATE_SECONDS = 3.0
HALF_SECONDS = 0.3
"""How long a note that ends in the middle of a line is waited for after it was written: the rest may be on its way."""
_PAUSE_SECONDS = 0.002
_STAY_SECONDS = 0.01
"""How long the lease on a replaced file is kept, for a writer who had found it and not opened it yet."""


class NoteChanged(Exception):
    """The note is not what was read: `theirs` is there now."""

    def __init__(self, theirs: bytes | None) -> None:
        super().__init__("the note changed")
        self.theirs = theirs


class TornWrite(OSError):
    """A part of a text came into the note, because of `why`, and could not be taken out again, because of `stays`."""

    def __init__(self, why: OSError, stays: OSError) -> None:
        super().__init__(why.errno, why.strerror)
        self.stays = stays


class SwapResult(Struct, frozen=True):
    """What a change of names brought to light: the last content of the old file, and whether it is surely the last."""

    displaced: bytes | None
    final: bool = True


def tag(change: int, number: int) -> str:
    """The start of the hidden names for file `number` of a change."""
    return f".memory-tui-{change}-{number}"


def write_beside(
    folder: Folder, hidden: str, data: bytes, like: os.stat_result | None, mode: int = 0, mtime_ns: int = 0
) -> None:
    """Write `data` whole and flushed as `hidden`.new, with mode and owner of `like`. Raises OSError.

    `mode` and `mtime_ns` are for a note that is like none, 0 for the usual.
    """
    folder.remove(hidden + PART)
    descriptor = folder.open(hidden + PART, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if like or mode else 0o666)
    try:
        durable.write_all(descriptor, data)
        _dress(descriptor, like, mode)
        if mtime_ns and os.utime in os.supports_fd:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        durable.calls.fsync(descriptor)
        folder.rename(hidden + PART, hidden + NEW)
    except OSError:
        _sweep(folder, hidden + PART)
        raise
    finally:
        os.close(descriptor)


def copy_attributes(folder: Folder, name: str, hidden: str) -> None:
    """Give `hidden`.new the extended attributes of the note, access lists among them, as far as this user may."""
    if not hasattr(os, "listxattr"):
        return
    try:
        old = folder.open(name, os.O_RDONLY)
    except FileNotFoundError:
        # The exchange finds that out as well, and says so.
        return
    new = folder.open(hidden + NEW, os.O_RDONLY)
    try:
        for attribute in os.listxattr(old):
            os.setxattr(new, attribute, os.getxattr(old, attribute))
    except OSError as error:
        # Some attributes are the system's own, and some file systems have none; the text matters more.
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
            raise
    finally:
        os.close(old)
        os.close(new)


def replace(folder: Folder, name: str, hidden: str, before: bytes, remake: Callable[[bytes, bool], bool]) -> SwapResult:
    """Let `hidden`.new be the note `name`, if that still holds `before`. Raises NoteChanged, Busy, OSError.

    When it holds something else, `remake` is told what, and whether that is sure to stay so for now; it may write
    another `hidden`.new and answer that the exchange can be made. Afterwards the old file has a hidden name until
    `clear`.
    """
    with _OpenNote(folder, name, hidden) as held:
        now = held.now()
        if now != before and not remake(now, held.leased):
            raise NoteChanged(now)
        if not folder.exchange(hidden + NEW, name):
            _link_or_copy(folder, name, hidden + OLD, before)
            folder.rename(hidden + NEW, name)
        folder.sync()
        return held.last(_displaced(folder, hidden))


def create(folder: Folder, name: str, hidden: str) -> None:
    """Let `hidden`.new be the note `name`, where nothing may be. Raises NoteChanged, OSError."""
    try:
        _link_or_copy(folder, hidden + NEW, name, None)
    except FileExistsError:
        raise NoteChanged(folder.read(name)) from None
    folder.sync()
    folder.remove(hidden + NEW)


def remove(folder: Folder, name: str, hidden: str, before: bytes) -> SwapResult:
    """Take the note `name` away, if it still holds `before`. Raises NoteChanged, Busy, OSError."""
    with _OpenNote(folder, name, hidden) as held:
        if (now := held.now()) != before:
            raise NoteChanged(now)
        folder.rename(name, hidden + OLD)
        folder.sync()
        return held.last(_displaced(folder, hidden))


def append(folder: Folder, name: str, before: bytes, added: bytes) -> tuple[bytes, bytes]:
    """Add `added` at the end of the note that began as `before`, in one write; returns its content before and after.

    What others add meanwhile stays where it is. Raises NoteChanged, TornWrite, and OSError: then the note has nothing
    of `added`.
    """
    descriptor, alone = _to_append(folder, name)
    try:
        try:
            seen = contents(descriptor, name)
            if not seen.startswith(before) or (seen and not seen.endswith(b"\n")):
                raise NoteChanged(seen)
            if not same_file(os.fstat(descriptor), folder.status(name)):
                raise NoteChanged(folder.read(name))
            try:
                start = durable.append(descriptor, added)
            except durable.Partial as partial:
                _take_out(descriptor, partial, alone=alone)
                raise
            end = start + len(added)
            now = contents(descriptor, name)
        finally:
            if alone:
                lease.give_back(descriptor)
        if not same_file(os.fstat(descriptor), folder.status(name)) or now[start:end] != added:
            # Somebody put another file in its place, or wrote it anew.
            theirs = folder.read(name)
            if theirs is None or not theirs.startswith(now[:end]):
                raise NoteChanged(theirs)
        return now[:start], now[:end]
    finally:
        os.close(descriptor)


def take_out(folder: Folder, name: str, start: int, piece: bytes) -> None:
    """Take `piece`, which a change that was cut off has left at `start` of the note, out. Raises TornWrite."""
    descriptor = folder.open(name, os.O_RDWR | os.O_APPEND)
    try:
        _take_out(descriptor, durable.Partial(OSError(errno.EINTR, "it was cut off"), [(start, piece)]))
    finally:
        os.close(descriptor)


def _to_append(folder: Folder, name: str) -> tuple[int, bool]:
    """The note open to append to, and whether nobody else can open it while the lease lasts. Raises NoteChanged."""
    try:
        descriptor = folder.open(name, os.O_RDWR | os.O_APPEND)
        # Where nobody else has it open, nobody can come in between what is read and what is written.
        if lease.alone(descriptor, WAIT_SECONDS / 4):
            return descriptor, True
        os.close(descriptor)
        _wait_for_writers(folder, name)
        return folder.open(name, os.O_RDWR | os.O_APPEND), False
    except FileNotFoundError:
        raise NoteChanged(None) from None


def _wait_for_writers(folder: Folder, name: str) -> None:
    """Let somebody who is in the middle of writing the note come to an end, for a moment."""
    reading = folder.open(name, os.O_RDONLY)
    try:
        if lease.quiet(reading, WAIT_SECONDS) is WriterState.HELD:
            lease.give_back(reading)
    finally:
        os.close(reading)


def _take_out(descriptor: int, partial: durable.Partial, *, alone: bool = False) -> None:
    """Take the part of a text that came into the note out again. Raises TornWrite where that cannot be.

    `alone` tells that the lease is held already.
    """
    held = alone or lease.alone(descriptor, WAIT_SECONDS)
    try:
        start, piece = partial.pieces[-1]
        last = len(partial.pieces) == 1 and start + len(piece) == os.fstat(descriptor).st_size
        if not held and not last:
            raise OSError(errno.EBUSY, "another program has the note open")
        durable.cut(descriptor, partial.pieces)
    except OSError as error:
        raise TornWrite(partial, error) from None
    finally:
        if held and not alone:
            lease.give_back(descriptor)


def clear(folder: Folder, hidden: str) -> None:
    """Remove the hidden files of a change that is recorded. Raises OSError."""
    for name in folder.names(hidden):
        folder.remove(name)


def same_file(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether both are the same file, not two with the same content."""
    return one is not None and other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def refuse_unwritable(folder: Folder, name: str, path: str) -> None:
    """Raises ReadOnly when the note or its folder may not be written, whatever the user's powers."""
    status = folder.status(name)
    if status is not None and not stat.S_IMODE(status.st_mode) & 0o222:
        raise ReadOnly(f"{path} is read-only (mode {stat.S_IMODE(status.st_mode):o}).", "Allow it to be written.")
    if _is_mounted_read_only(folder.absolute):
        raise ReadOnly(
            f"The file system that holds {path} is mounted read-only.", "Mount it so that it can be written."
        )
    if status is not None and not _may_write(os.path.join(folder.absolute, name)):
        raise ReadOnly(f"{path} may not be written by you.", "Check its owner and its permissions.")
    if not _may_write(folder.absolute):
        raise ReadOnly(
            f"The folder of {path} may not be written, so nothing in it can be changed in one step.",
            "Check the permissions of the folder.",
        )


def _is_mounted_read_only(folder: str) -> bool:
    try:
        return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _may_write(path: str) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


class _OpenNote:
    """The note, open for reading and at rest, from the comparison to the last look at the old file."""

    def __init__(self, folder: Folder, name: str, hidden: str) -> None:
        self._folder, self._name, self._hidden = folder, name, hidden
        self._descriptor = -1
        self.leased = False
        """Whether nobody can write it for now."""

    def __enter__(self) -> _OpenNote:
        try:
            self._descriptor = self._folder.open(self._name, os.O_RDONLY)
        except FileNotFoundError:
            raise NoteChanged(None) from None
        quiet = self._wait(WAIT_SECONDS)
        while quiet and half(self._descriptor):
            # Whoever writes the rest must find the first part where it left it.
            self._release()
            time.sleep(_PAUSE_SECONDS)
            quiet = self._wait(WAIT_SECONDS)
        if not quiet and _leases_work(self._folder, self._hidden):
            os.close(self._descriptor)
            raise Busy(f"Another program has {self._name} open for writing.", "Try again when it is done.")
        return self

    def __exit__(self, *exc: object) -> None:
        self._release()
        os.close(self._descriptor)

    def now(self) -> bytes:
        """What the note holds. Raises NoteChanged when another file has taken its place."""
        if not same_file(os.fstat(self._descriptor), self._folder.status(self._name)):
            raise NoteChanged(self._folder.read(self._name))
        return contents(self._descriptor, self._name)

    def last(self, displaced: tuple[os.stat_result | None, bytes | None]) -> SwapResult:
        """The last content of the old file, after those who were about to write it have done so."""
        status, found = displaced
        if not same_file(os.fstat(self._descriptor), status):
            # An editor put its own file there after the comparison: that is what was displaced.
            return SwapResult(found)
        while True:
            self._release()
            final = self._wait(_LATE_SECONDS)
            now = contents(self._descriptor, self._name)
            if not self.leased:
                return SwapResult(now, final)
            _stay()
            if lease.unbroken(self._descriptor):
                return SwapResult(now)

    def _wait(self, seconds: float) -> bool:
        found = lease.quiet(self._descriptor, seconds)
        self.leased = found is WriterState.HELD
        return found is not WriterState.WRITER

    def _release(self) -> None:
        if self.leased:
            lease.give_back(self._descriptor)
            self.leased = False


def half(descriptor: int) -> bool:
    """Whether an open note ends in the middle of a line that somebody wrote a moment ago."""
    status = os.fstat(descriptor)
    if not status.st_size or not 0 <= time.time() - status.st_mtime < HALF_SECONDS:
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"


def _stay() -> None:
    time.sleep(_STAY_SECONDS)


def _leases_work(folder: Folder, hidden: str) -> bool:
    """Whether the file system gives a lease on a file that surely nobody writes."""
    try:
        sample = folder.open(hidden + NEW, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        found = lease.quiet(sample, 0)
        if found is WriterState.HELD:
            lease.give_back(sample)
        return found is WriterState.HELD
    finally:
        os.close(sample)


def _displaced(folder: Folder, hidden: str) -> tuple[os.stat_result | None, bytes | None]:
    name = hidden + (OLD if folder.status(hidden + OLD) is not None else NEW)
    return folder.status(name), folder.read(name)


def _link_or_copy(folder: Folder, old: str, new: str, data: bytes | None) -> None:
    """A second name for `old`, or where the file system has none, a copy of it. Raises FileExistsError, OSError."""
    try:
        folder.link(old, new)
    except FileExistsError:
        raise
    except OSError:
        content = folder.read(old) if data is None else data
        descriptor = folder.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            durable.write_all(descriptor, content or b"")
            _dress(descriptor, folder.status(old))
            durable.calls.fsync(descriptor)
        except OSError:
            _sweep(folder, new)
            raise
        finally:
            os.close(descriptor)


def _sweep(folder: Folder, name: str) -> None:
    """Remove a file that could not be written whole; what cannot be removed goes with the next change."""
    with contextlib.suppress(OSError):
        folder.remove(name)


def _dress(descriptor: int, like: os.stat_result | None, mode: int = 0) -> None:
    """Give an open file mode and owner of `like`, else the `mode`."""
    if not hasattr(os, "fchmod"):
        return
    if like is None:
        if mode:
            durable.calls.chmod(descriptor, mode)
        return
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        _give(descriptor, like)
    durable.calls.chmod(descriptor, stat.S_IMODE(like.st_mode))


def _give(descriptor: int, like: os.stat_result) -> None:
    """Owner and group as far as this user may give a file away."""
    for owner, group in ((like.st_uid, like.st_gid), (-1, like.st_gid)):
        try:
            os.fchown(descriptor, owner, group)
        except PermissionError:
            continue
        return
