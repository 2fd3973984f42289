"""One write of a note: the new text beside it, flushed, compared, exchanged, and a second look at the old file.

The new text is written beside the note and flushed. Then nobody may have the note open to write; what it holds now is
compared, and merged where others changed it; both files change names at once. A writer who was on the way into the note
gets the old file, so its last content is looked at afterwards: what was added to it is merged into the new one by
another round. Nobody else changes a person's note.

That nobody writes is proven by a read lease: while it lasts, whoever opens the file to write waits. Where the system
has no leases the file is watched for a moment instead. Where it allows so, the folder is opened component by component
below its root, and every name is relative to it. Names beside the note are hidden and not Markdown: `.part` while the
new text is written, `.new` when it is whole, and after the change of names `.new` (or `.old` where names cannot be
exchanged) is the old file. Each further round has one `+` more in its names.
"""

# ruff: noqa: PTH112, PTH118
# Names are relative to an open folder, which path objects cannot say.

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable
from memory_tui.errors import EditFailed, EditRefused, PathRefused, Unreadable
from memory_tui.notes.changes import Busy, FileChange, ReadOnly, ThreeWay, common_head, merge, moves
from memory_tui.workspace.notes import descend
from memory_tui.workspace.roots import Roots, destination

if sys.platform == "linux":
    import fcntl

_RELATIVE, _EFFECTIVE = os.open in os.supports_dir_fd, os.access in os.supports_effective_ids
"""Whether names can be relative to an open folder, and access be told for the user by whom a program runs."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER = (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
PART, NEW, OLD = ".part", ".new", ".old"
DEADLINE_SECONDS = 4.0
"""How long a change is tried again when the notes change under our hands, all of its attempts together."""
WAIT_SECONDS = 1.0
"""How long a note that somebody has open to write is waited for."""
LATE_SECONDS = 3.0
"""How long a replaced file that somebody has open to write is waited for; then it stays beside the note."""
HALF_SECONDS = 0.3
"""How long a note that ends in the middle of a line is waited for after it was written: the rest may be on its way."""
_PAUSE_SECONDS = 0.002
"""Between two questions whether somebody still has a file open."""
_STAY_SECONDS = 0.01
"""How long the lease on a replaced file is kept, for a writer who had found it and not opened it yet."""
_SETTLED_SECONDS = 0.05
"""Where there are no leases, a file that did not change for so long is taken to be at rest."""
_ATTEMPTS = 6
"""So many attempts are made even when the time for them is over."""
MOST_BYTES = 64 * 1024 * 1024
"""Larger files are never read; a note that grew too large to be indexed can still be brought back."""


class SameLinesChanged(Exception):
    """Somebody else changed the same lines; `view` shows all three texts."""

    def __init__(self, view: ThreeWay) -> None:
        super().__init__(view.path)
        self.view = view


class _Replaced(Exception):
    """Another file has taken the note's place."""


# --- the folder of a note --------------------------------------------------------------------------------------------


class Folder(Struct, frozen=True):
    """An open folder. `absolute` names it for people; `at` is its descriptor, None where the system has no such thing.

    Every method may raise OSError.
    """

    absolute: str
    at: int | None

    def path(self, name: str) -> str:
        """Return `name` as the system calls take it beside `at`."""
        return name if self.at is not None else os.path.join(self.absolute, name)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = durable.PRIVATE) -> int:
        """Return a descriptor of `name`, never through a link."""
        return durable.calls.open(self.path(name), flags | _NO_FOLLOW, mode, self.at)

    def status(self, name: str) -> os.stat_result | None:
        """Return what `name` is, without following it; None when nothing is there."""
        try:
            return os.stat(self.path(name), dir_fd=self.at, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def rename(self, old: str, new: str) -> None:
        """Give `old` the name `new`, in the place of whatever has it."""
        durable.calls.replace(self.path(old), self.path(new), self.at)

    def exchange(self, first: str, second: str) -> bool:
        """Let two files change names in one step; False where system or file system cannot."""
        return durable.calls.exchange(self.path(first), self.path(second), self.at)

    def link(self, old: str, new: str) -> None:
        """Give `old` the second name `new`; where the file system has none, a copy. Raises FileExistsError too."""
        try:
            durable.calls.link(self.path(old), self.path(new), self.at)
        except FileExistsError:
            raise
        except OSError:
            # A file system without second names.
            source = self.open(old)
            try:
                _write_new(self, new, contents(source, old), source)
            finally:
                os.close(source)

    def remove(self, name: str) -> None:
        """Remove `name` if it is there."""
        with suppress(FileNotFoundError):
            durable.calls.unlink(self.path(name), self.at)

    def names(self, start: str) -> list[str]:
        """Return the names in it that begin with `start`; where that ends with 1, none that goes on to 12."""
        names = os.listdir(self.absolute if self.at is None else self.at)
        return sorted(name for name in names if name.startswith(start) and not name[len(start) :][:1].isdigit())

    def clear(self, hidden: str, but: Collection[str] = ()) -> None:
        """Remove the hidden files whose names begin with `hidden`, all `but` some."""
        for name in self.names(hidden):
            if name not in but:
                self.remove(name)

    def sync(self) -> None:
        """Have the names themselves written to the disk, where a folder can be."""
        durable.sync_folder(self.at if self.at is not None else Path(self.absolute))

    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None when nothing is there. Raises PathRefused, Unreadable."""
        try:
            descriptor = self.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            what = f"{os.path.join(self.absolute, name)} cannot be read: {error.strerror}."
            raise Unreadable(what, "Allow your user to read the file.") from None
        try:
            return contents(descriptor, name)
        finally:
            os.close(descriptor)


def contents(descriptor: int, name: str) -> bytes:
    """Return all bytes of an open regular file, from its start. Raises PathRefused, Unreadable."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{name} is not a regular file.", "Only regular files are changed.")
    if status.st_size > MOST_BYTES:
        what = f"{name} has {status.st_size:,} bytes; at most {MOST_BYTES:,} are read."
        raise Unreadable(what, "Split it into days or topics.")
    os.lseek(descriptor, 0, os.SEEK_SET)
    return b"".join(iter(lambda: os.read(descriptor, 1 << 20), b""))


@contextmanager
def parent(roots: Roots, path: str, *, make: bool = False) -> Iterator[tuple[Folder | None, str]]:
    """Open the folder that holds the note `path`: folder and the note's name in it; None when it is not there.

    With `make` missing folders below the root are made. Raises PathRefused, ReadOnly, EditFailed.
    """
    root, absolute, stored = destination(roots, path)
    folder, name = os.path.split(absolute)
    try:
        if make and os.path.isdir(root):
            durable.make_folder(Path(folder), 0o777)
        descriptor = descend(root, folder, _FOLDER) if _RELATIVE else None
        # Raises the errors below where the system cannot open folders one by one.
        os.stat(folder)  # noqa: PTH116
    except FileNotFoundError:
        yield None, name
        return
    except PermissionError:
        raise ReadOnly(f"The folder of {stored} may not be entered or made.", "Check its permissions.") from None
    except OSError as error:
        what = f"The folder of {stored} cannot be used: {error.strerror}."
        if error.errno not in _NO_FOLDER:
            raise EditFailed(what, "Check the disk and the space on it.") from None
        raise PathRefused(what, "Only folders that are reached without symbolic links are used.") from None
    try:
        yield Folder(folder, descriptor), name
    finally:
        if descriptor is not None:
            os.close(descriptor)


def current(roots: Roots, path: str) -> bytes | None:
    """Return the bytes of the note `path` now, None when it is not there. Raises PathRefused, Unreadable."""
    with parent(roots, path) as (folder, name):
        return None if folder is None else folder.read(name)


def standing(roots: Roots, path: str) -> tuple[int, int]:
    """Return mode and time (ns) of the note `path`, zeros when it is not there. Raises PathRefused."""
    with parent(roots, path) as (folder, name):
        status = folder.status(name) if folder is not None else None
    return (status.st_mode & 0o7777, status.st_mtime_ns) if status else (0, 0)


def _refuse_unwritable(roots: Roots, path: str) -> None:
    """Raise ReadOnly when the note may not be written.

    It is asked for because a new file takes the place of the note, which the folder alone would allow.
    """
    with parent(roots, path) as (folder, name):
        status = folder.status(name) if folder is not None else None
        if folder is None or status is None:
            return
        absolute = os.path.join(folder.absolute, name)
        if not status.st_mode & 0o222 or not os.access(absolute, os.W_OK, effective_ids=_EFFECTIVE):
            what = f"{path} is read-only for you (mode {stat.S_IMODE(status.st_mode):o})."
            raise ReadOnly(what, "Allow it to be written, or check its owner and file system.")


# --- against what others wrote ---------------------------------------------------------------------------------------


def planned(roots: Roots, files: tuple[FileChange, ...], *, merging: bool) -> tuple[FileChange, ...]:
    """Return those of `files` that differ, against what is on disk now: as they are, or with `merging` merged with it.

    What others wrote meanwhile to a note that moves goes along to its new path. Raises SameLinesChanged, ReadOnly.
    """
    by_path = {file.path: file for file in files}
    # The old path now loses what others made of it, and the new path gets that with the text that was planned.
    for old, new in moves(files).items() if merging else ():
        source, target = by_path[old], by_path[new]
        theirs = current(roots, old)
        merged = merge(source.before, target.after, theirs).merged if theirs is not None else None
        if merged is not None:
            by_path[old], by_path[new] = replace(source, before=theirs), replace(target, after=merged)
    rebased = [_rebased(by_path[file.path], current(roots, file.path), merging=merging) for file in files]
    changed = tuple(file for file in rebased if file.before != file.after)
    for file in changed:
        _refuse_unwritable(roots, file.path)
    return changed


def _rebased(change: FileChange, other: bytes | None, *, merging: bool) -> FileChange:
    """Return `change` as one of a note that holds `other` now, None for no note. Raises SameLinesChanged.

    Without `merging` that is so whenever the note is neither as it was before the change nor as it is after it.
    """
    if change.before is None and change.after is not None and other is not None:
        # Two have begun the same note: what both began with is what both started from.
        change = replace(change, before=common_head(change.after, other))
    # Either nobody changed the note, or it is already as it should become: then nothing is left to do.
    if other in (change.before, change.after):
        return replace(change, before=other)
    if not merging:
        both = merge(change.before, change.after, other)
        raise SameLinesChanged(ThreeWay(change.path, change.before, change.after, other, both))
    return _merged_into(change, other)


def _merged_into(change: FileChange, other: bytes | None, *, late: bool = False) -> FileChange:
    """Return `change` merged into a note that holds `other`. Raises SameLinesChanged.

    What is written `late` is older than what others add, and goes in front of it; so does what somebody added while
    another one seems to be in the middle of a line at the end.
    """
    base, mine = change.before, change.after
    if other == base:
        return change
    added = other[len(base) :] if base is not None and other is not None and other.startswith(base) else None
    if late and added is not None and base is not None and mine is not None and mine.startswith(base):
        # One program added to the old file and then to the new one: it may be parts of one line.
        return replace(change, before=other, after=mine + added)
    # The note ended with a whole line before, and ends in the middle of one now.
    is_half_line = bool(other) and not (other or b"").endswith(b"\n") and (base or b"\n").endswith(b"\n")
    both = merge(base, mine, other, mine_first=late or is_half_line)
    # None is a merge that clashes, unless both sides removed the note.
    if both.merged is None and (mine is not None or other is not None):
        raise SameLinesChanged(ThreeWay(change.path, base, mine, other, both))
    return replace(change, before=other, after=both.merged)


# --- the write -------------------------------------------------------------------------------------------------------


Written = tuple[FileChange, tuple[str, ...]]
"""A change as it came out, others' additions included; hidden names of what was replaced that somebody has open."""


def tag(change: int, number: int) -> str:
    """Return the start of the hidden names beside the note that is file `number` (from 0) of the journal's `change`."""
    return f".memory-tui-{change}-{number}"


def deadline() -> float:
    """Return when a change that begins now is given up, as `time.monotonic` tells it."""
    return time.monotonic() + DEADLINE_SECONDS


def write(roots: Roots, change: FileChange, hidden: str, until: float = 0.0) -> Written:
    """Make `change` on disk. Raises SameLinesChanged, Busy, ReadOnly, EditRefused; then the note is as others left it.

    It is tried again until `until` (as `time.monotonic` tells it; 0: DEADLINE_SECONDS from now). The folder is not
    flushed: the caller does so before the journal says that the change is made.
    """
    with parent(roots, change.path, make=change.after is not None) as (folder, name):
        if folder is None:
            raise EditRefused(f"The folder of {change.path} is gone.", "Look at the list of files.")
        try:
            return _written(folder, name, change, hidden, until or deadline())
        except OSError as error:
            raise _refused(error, change.path) from None


def _written(folder: Folder, name: str, goal: FileChange, hidden: str, until: float) -> Written:
    """Make `goal` in as many rounds as it takes until nobody added to a file that was replaced."""
    # The first time that somebody changed the same lines: it is raised at the end, when the note is as others left it.
    clash: SameLinesChanged | None = None
    # Of the first round in which somebody wrote: the text with both changes, and theirs alone.
    joined: tuple[bytes | None, bytes | None] | None = None
    # `final`: nobody writes the replaced files any more. `late`: the round merges what came when our text was in place.
    start, final, late = hidden, True, False
    while True:
        try:
            result, displaced, closed = _round(folder, name, goal, hidden, until, late=late)
        except SameLinesChanged as news:
            view = news.view
            if clash is None or view.other is None or view.mine is None or time.monotonic() > until:
                raise clash or news from None
            # They went on while their text was put back. Lines twice are better than lines lost.
            goal = replace(goal, before=view.other, after=view.merge.united)
            continue
        final = final and closed
        if displaced == result.before:
            break
        # Somebody wrote between the comparison and the exchange. Their file stays until both are in place.
        try:
            after = _merged_into(result, displaced, late=late).after
        except SameLinesChanged as news:
            clash, after = clash or news, displaced
        joined = joined or (after, displaced)
        if after == result.after:
            break
        goal = replace(result, before=result.after, after=after)
        late = True
        hidden += "+"
    if clash is not None:
        raise clash
    left = () if final else tuple(folder.names(start))
    if joined is None:
        return result, left
    # The record has the last text, and what it would be without ours: the change from our text with theirs (`joined`)
    # to theirs alone, made to the last one. Taking the change back then leaves what others wrote.
    without = merge(*joined, result.after).merged
    after, before = joined if without is None else (result.after, without)
    return replace(result, before=before, after=after), left


def _round(
    folder: Folder, name: str, goal: FileChange, hidden: str, until: float, *, late: bool
) -> tuple[FileChange, bytes | None, bool]:
    """Make `goal`; return it as it came to be, the last content of what it displaced, and whether nobody writes that
    any more.

    Raises SameLinesChanged, Busy, EditRefused, OSError.
    """
    for attempt in count():
        if attempt > _ATTEMPTS and time.monotonic() > until:
            break
        folder.clear(hidden)
        try:
            note = folder.open(name)
        except FileNotFoundError:
            note = None
        try:
            if goal.after is not None:
                _write_new(folder, hidden + PART, goal.after, note, goal, rename=hidden + NEW)
            if note is not None:
                return _exchanged(folder, name, note, goal, hidden, late=late)
            # There is no note: its name is given to the new file, which fails where somebody makes one meanwhile.
            result = _merged_into(goal, None, late=late)
            if result.after is not None and result.before is None:
                folder.link(hidden + NEW, name)
                folder.remove(hidden + NEW)
            return result, result.before, True
        except (_Replaced, FileNotFoundError, FileExistsError):
            continue
        finally:
            if note is not None:
                # With the descriptor goes the lease.
                os.close(note)
    raise EditRefused(f"{goal.path} changes too fast to be edited.", "Try again when nothing writes to it.")


def _exchanged(
    folder: Folder, name: str, note: int, goal: FileChange, hidden: str, *, late: bool
) -> tuple[FileChange, bytes | None, bool]:
    """Put `goal` in the place of the open file `note`. Raises _Replaced where another file has its name by now.

    Returns the change as it came out, the last bytes of what it displaced, and whether nobody writes those any more.
    """
    _wait_for_rest(folder, name, note, hidden + NEW)
    if not _is_same_file(os.fstat(note), folder.status(name)):
        raise _Replaced
    result = _merged_into(goal, contents(note, name), late=late)
    if result.after == result.before:
        return result, result.before, True
    old = hidden + OLD
    if result.after is None:
        folder.rename(name, old)
    else:
        # It was merged with what others wrote, so that the file beside the note is not the text to be put there.
        if result is not goal:
            _write_new(folder, hidden + PART, result.after, note, rename=hidden + NEW)
        if folder.exchange(hidden + NEW, name):
            old = hidden + NEW
        else:
            # Where names cannot be exchanged, the old file gets a second name before its first one is taken.
            folder.link(name, old)
            folder.rename(hidden + NEW, name)
    return result, *_last_content(folder, note, old)


def _last_content(folder: Folder, note: int, old: str) -> tuple[bytes | None, bool]:
    """Return what the replaced file `old` holds when all who had it open have written, and whether that is sure.

    It is not where somebody has it open still after LATE_SECONDS.
    """
    if not _is_same_file(os.fstat(note), folder.status(old)):
        # An editor put its own file there after the comparison: that is what was displaced.
        return folder.read(old), True
    while True:
        # Who waits for the lease of before may write now; then a new one tells that all are done.
        give_back(note)
        lease = quiet(note, LATE_SECONDS)
        now = contents(note, old)
        # Without leases it was at rest, which is taken for sure.
        if not lease:
            return now, lease is None
        time.sleep(_STAY_SECONDS)
        if sys.platform == "linux" and fcntl.fcntl(note, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
            # The lease is held, and nobody waits for it.
            return now, True


def _write_new(
    folder: Folder, name: str, data: bytes, like: int | None, goal: FileChange | None = None, *, rename: str = ""
) -> None:
    """Write `data` whole and flushed as `name`, then give it the name `rename`. Raises OSError.

    It gets owner, mode and attributes of the open file `like`. Where that is None, it gets mode and time of `goal`, of
    which 0 stands for the usual one.
    """
    mode, mtime_ns = (goal.mode, goal.mtime_ns) if goal is not None and like is None else (0, 0)
    # A file that gets its mode later is nobody else's to read until then.
    usual = 0o666 if like is None and not mode else durable.PRIVATE
    descriptor = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, usual)
    try:
        durable.write_all(descriptor, data)
        if like is not None:
            _copy_attributes(descriptor, like)
        elif mode:
            durable.calls.chmod(descriptor, stat.S_IMODE(mode))
        if mtime_ns and os.utime in os.supports_fd:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        durable.calls.fsync(descriptor)
        if rename:
            folder.rename(name, rename)
    except OSError:
        # What cannot be removed goes with the next change.
        with suppress(OSError):
            folder.remove(name)
        raise
    finally:
        os.close(descriptor)


def _copy_attributes(descriptor: int, like: int) -> None:
    """Give an open file owner, mode and extended attributes (access lists) of `like`, as far as this user may."""
    status = os.fstat(like)
    if hasattr(os, "fchown"):
        # Who may not give a file to the owner may still set its group; -1 leaves the owner as it is.
        for owner in (status.st_uid, -1):
            with suppress(PermissionError):
                os.fchown(descriptor, owner, status.st_gid)
                break
    # Of `durable.calls`, which know a system without modes, and of which tests let each fail.
    durable.calls.chmod(descriptor, stat.S_IMODE(status.st_mode))
    if not hasattr(os, "listxattr"):
        return
    try:
        for attribute in os.listxattr(like):
            os.setxattr(descriptor, attribute, os.getxattr(like, attribute))
    except OSError as error:
        # Some attributes are the system's own, and some file systems have none; the text matters more.
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
            raise


def _is_same_file(first: os.stat_result, second: os.stat_result | None) -> bool:
    """Return whether both are the same file, not two with the same content."""
    return second is not None and os.path.samestat(first, second)


def _refused(error: OSError, path: str) -> EditRefused:
    """Return what an error of the system means for the note `path`, with the next step."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(f"{path} cannot be written: {error.strerror}.", "Check its file system and its permissions.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EditFailed(f"The disk that holds {path} is full.", "The note is as it was: make room and try again.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
        return EditRefused(f"{path} was replaced by a link or a folder.", "Only regular files are changed.")
    return EditFailed(f"{path} cannot be written: {error.strerror or error}.", "Check the disk.")


# --- who else writes -------------------------------------------------------------------------------------------------


def _lease(descriptor: int) -> bool | None:
    """Take a read lease on a file that is open for reading only; False when somebody has it open to write.

    None where the system does not tell: on a file of somebody else, or on a file system without leases.
    """
    if sys.platform != "linux":
        return None
    try:
        # The signal that tells of a waiting writer would end the process; this one is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def give_back(descriptor: int) -> None:
    """Let those who wait for the lease, if it was taken, open the file."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def quiet(descriptor: int, seconds: float) -> bool | None:
    """Wait up to `seconds` until nobody has the file open to write; True: the lease is ours until `give_back`.

    False when somebody has it open still. None where that cannot be known, after the file was at rest for a moment.
    """
    until = time.monotonic() + seconds
    lease = _lease(descriptor)
    while lease is False and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
        lease = _lease(descriptor)
    # Without leases: two looks in a row that see the same size and time are rest.
    before, now = None, _state(descriptor)
    while lease is None and before != now and time.monotonic() < until:
        time.sleep(_SETTLED_SECONDS)
        before, now = now, _state(descriptor)
    return lease


def _state(descriptor: int) -> tuple[int, int]:
    """Return size and time of an open file, by which it is known whether it changed."""
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def _wait_for_rest(folder: Folder, name: str, note: int, sample: str) -> None:
    """Wait until nobody writes the open note, nor is in the middle of a line. Raises Busy.

    `sample` is a file of ours beside it, on which it is tried whether the file system has leases at all.
    """
    lease = quiet(note, WAIT_SECONDS)
    while lease is not False and _ends_in_half_line(note):
        # Whoever writes the rest must find the first part where it left it.
        give_back(note)
        time.sleep(_PAUSE_SECONDS)
        lease = quiet(note, WAIT_SECONDS)
    if lease is False and _leases_work(folder, sample):
        raise Busy(f"Another program has {name} open for writing.", "Try again when it is done.")


def _ends_in_half_line(descriptor: int) -> bool:
    """Return whether an open note ends in the middle of a line that somebody wrote a moment ago."""
    status = os.fstat(descriptor)
    if not status.st_size or not 0 <= time.time() - status.st_mtime < HALF_SECONDS:
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"


def _leases_work(folder: Folder, sample: str) -> bool:
    """Return whether the file system gives a lease on a file that surely nobody writes; overlays give none."""
    # Without a file to try it on nothing speaks against leases.
    if folder.status(sample) is None:
        return True
    with os.fdopen(folder.open(sample), "rb") as file:
        return _lease(file.fileno()) is True
