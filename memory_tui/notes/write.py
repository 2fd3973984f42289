"""One write of a note: the new text beside it, flushed, compared, exchanged, and a second look at the old file.

The new text is written beside the note and flushed. Then nobody may have the note open to write (lease.py); what it
holds now is compared, and merged where others changed it; both files change names at once. A writer who was on the way
into the note gets the old file, so its last content is looked at afterwards: what was added to it is merged into the
new one. Nobody else changes a person's note.

Where the system allows it the folder is opened component by component below its root, and every name is used relative
to it. Names beside the note, hidden and not Markdown: `.part` while the new text is written, `.new` when it is whole,
and after the change of names `.new` (or `.old` where names cannot be exchanged) is the old file. A second round has one
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
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable
from memory_tui.errors import EditFailed, EditRefused, PathRefused, Unreadable
from memory_tui.notes import lease
from memory_tui.notes.changes import Busy, FileChange, ReadOnly, ThreeWay
from memory_tui.notes.lease import WriterState
from memory_tui.notes.merge import common_head, merge
from memory_tui.workspace.roots import Roots, destination
from memory_tui.workspace.scan import MAX_BYTES

_RELATIVE = os.open in os.supports_dir_fd
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
_STAY_SECONDS = 0.01
"""How long the lease on a replaced file is kept, for a writer who had found it and not opened it yet."""
_ATTEMPTS = 6


class SameLinesChanged(Exception):
    """Somebody else changed the same lines; `view` shows all three texts."""

    def __init__(self, view: ThreeWay) -> None:
        super().__init__(view.path)
        self.view = view


class WrittenNote(Struct, frozen=True):
    """What a note held before and holds after, others' additions included.

    `final` unless somebody keeps the replaced file open to write; then it stays beside the note under a hidden name.
    """

    path: str
    before: bytes | None
    after: bytes | None
    final: bool = True


class _Replaced(Exception):
    """Another file has taken the note's place."""


# --- the folder of a note --------------------------------------------------------------------------------------------


class Folder(Struct, frozen=True):
    """An open folder. `absolute` names it for people; `descriptor` is -1 where the system has no such thing."""

    absolute: str
    descriptor: int

    def _at(self, name: str) -> tuple[str, int | None]:
        return (name, self.descriptor) if self.descriptor >= 0 else (os.path.join(self.absolute, name), None)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return a descriptor of `name`, never through a link. Raises OSError."""
        path, at = self._at(name)
        return durable.calls.open(path, flags | _NO_FOLLOW, mode, at)

    def status(self, name: str) -> os.stat_result | None:
        """Return what `name` is, without following it; None when nothing is there."""
        path, at = self._at(name)
        try:
            return os.stat(path, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def rename(self, old: str, new: str) -> None:
        """Give `old` the name `new`, in the place of whatever has it."""
        (source, at), (target, _) = self._at(old), self._at(new)
        durable.calls.replace(source, target, at)

    def exchange(self, first_name: str, second_name: str) -> bool:
        """Let two files change names in one step; False where system or file system cannot."""
        (first, at), (second, _) = self._at(first_name), self._at(second_name)
        return durable.calls.exchange(first, second, at)

    def link(self, old: str, new: str) -> None:
        """Give `old` the second name `new`; where the file system has none, a copy. Raises FileExistsError, OSError."""
        (source, at), (target, _) = self._at(old), self._at(new)
        try:
            durable.calls.link(source, target, at)
        except FileExistsError:
            raise
        except OSError:
            data, like = self.read(old) or b"", self.status(old)
            _write_new(self, new, data, like)

    def remove(self, name: str) -> None:
        """Remove `name` if it is there."""
        path, at = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            durable.calls.unlink(path, at)

    def names(self, start: str) -> list[str]:
        """Return the hidden names in it that begin with `start`, which may end with a number."""
        with os.scandir(self.descriptor if self.descriptor >= 0 else self.absolute) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(start)]
        return sorted(name for name in names if not name[len(start) :][:1].isdigit())

    def sync(self) -> None:
        """Have the names themselves written to the disk, where a folder can be."""
        if self.descriptor >= 0:
            durable.sync_folder(self.descriptor)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None when nothing is there. Raises PathRefused for any other than a file."""
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

    def clear(self, hidden: str) -> None:
        """Remove the hidden files whose names begin with `hidden`. Raises OSError."""
        for name in self.names(hidden):
            self.remove(name)


def contents(descriptor: int, name: str) -> bytes:
    """Return all bytes of an open regular file, from its start. Raises PathRefused, Unreadable."""
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
    """Open the folder that holds the note `path`: folder and the note's name in it; None when it is not there.

    With `make` missing folders below the root are made. Raises PathRefused, ReadOnly, EditFailed.
    """
    root, absolute, stored = destination(roots, path)
    *folders, name = absolute[len(root.rstrip(os.sep)) + 1 :].split(os.sep)
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
        what = f"The folder of {stored} cannot be used: {error.strerror}."
        if error.errno not in _NO_FOLDER:
            raise EditFailed(what, "Check the disk and the space on it.") from None
        raise PathRefused(what, "Only folders that are reached without symbolic links are used.") from None
    try:
        yield Folder(os.path.dirname(absolute), descriptor), name  # noqa: PTH120
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


def current(roots: Roots, path: str) -> bytes | None:
    """Return the bytes of the note `path` now, None when it is not there. Raises PathRefused, Unreadable."""
    with parent(roots, path) as (folder, name):
        return None if folder is None else folder.read(name)


def standing(roots: Roots, path: str) -> tuple[int, int]:
    """Return mode and time (ns) of the note `path`, zeros when it is not there. Raises PathRefused."""
    with parent(roots, path) as (folder, name):
        status = folder.status(name) if folder is not None else None
    return (status.st_mode & 0o7777, status.st_mtime_ns) if status else (0, 0)


def refuse_unwritable(roots: Roots, path: str) -> None:
    """Raise ReadOnly when the note or its folder may not be written, whatever the user's powers."""
    with parent(roots, path) as (folder, name):
        if folder is None:
            return
        status = folder.status(name)
        if status is not None and not status.st_mode & 0o222:
            raise ReadOnly(f"{path} is read-only (mode {stat.S_IMODE(status.st_mode):o}).", "Allow it to be written.")
        with contextlib.suppress(OSError, AttributeError):
            if os.statvfs(folder.absolute).f_flag & os.ST_RDONLY:
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


def _may_write(path: str) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


# --- against what others wrote ---------------------------------------------------------------------------------------


def planned(roots: Roots, change: FileChange, *, merging: bool = True, begins: bool = False) -> FileChange:
    """Return `change` against what is on disk now: as it is, or merged with it. Raises SameLinesChanged.

    With `begins` a note that somebody else began meanwhile with the same lines is added to.
    """
    theirs = current(roots, change.path)
    if theirs == change.before:
        return change
    if begins and change.before is None and change.after is not None and theirs is not None:
        # Two have begun the same note: what both began with is what both started from.
        change = replace(change, before=common_head(change.after, theirs))
    if theirs == change.after:
        return replace(change, before=theirs)
    if not merging:
        both = merge(change.before, change.after, theirs)
        raise SameLinesChanged(ThreeWay(change.path, change.before, change.after, theirs, both))
    return _upon(change, theirs)


def moved_on(roots: Roots, files: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Return `files` with what others wrote meanwhile to a note that moves taken along to its new path."""
    by_path = {file.path: file for file in files}
    for old, target in _movements(files).items():
        source, new = by_path[old], by_path[target]
        theirs = current(roots, old)
        taken = merge(source.before, new.after, theirs).merged if theirs is not None else None
        if taken is not None:
            by_path[old], by_path[target] = replace(source, before=theirs), replace(new, after=taken)
    return tuple(by_path[file.path] for file in files)


def _movements(files: tuple[FileChange, ...]) -> dict[str, str]:
    """Return the new path of each note that goes while one of the same name comes, or while one comes and one goes."""
    new = [file.path for file in files if file.before is None and file.after is not None]
    old = [file.path for file in files if file.before is not None and file.after is None]
    if len(new) == len(old) == 1:
        return {old[0]: new[0]}
    by_name = {path.rpartition("/")[2]: path for path in new}
    return {path: by_name[name] for path in old if (name := path.rpartition("/")[2]) in by_name}


def _upon(change: FileChange, theirs: bytes | None, *, late: bool = False) -> FileChange:
    """Return `change` upon a note that holds `theirs`. Raises SameLinesChanged.

    What is written `late` is older than what others add, and goes in front of it; so does what somebody added while
    another one seems to be in the middle of a line at the end.
    """
    base, mine = change.before, change.after
    if theirs == base:
        return change
    texts = None not in (base, mine, theirs)
    if late and texts and (mine or b"").startswith(base or b"") and (theirs or b"").startswith(base or b""):
        # One program added to the old file and then to the new one: it may be parts of one line.
        return replace(change, before=theirs, after=(mine or b"") + (theirs or b"")[len(base or b"") :])
    half = bool(theirs) and not (theirs or b"").endswith(b"\n") and (base or b"\n").endswith(b"\n")
    both = merge(base, mine, theirs, mine_first=late or half)
    # A note that both agree to remove is merged, and None like one that cannot be.
    if both.merged is None and (mine is not None or theirs is not None):
        raise SameLinesChanged(ThreeWay(change.path, base, mine, theirs, both))
    return replace(change, before=theirs, after=both.merged)


# --- the write -------------------------------------------------------------------------------------------------------


def tag(change: int, number: int) -> str:
    """Return the start of the hidden names for file `number` of a change."""
    return f".memory-tui-{change}-{number}"


def deadline() -> float:
    """Return when a change that begins now is given up, as `time.monotonic` tells it."""
    return time.monotonic() + DEADLINE_SECONDS


def write(roots: Roots, change: FileChange, hidden: str, until: float = 0.0) -> WrittenNote:
    """Make `change` on disk. Raises SameLinesChanged, Busy, ReadOnly, EditRefused; then the note is as others left it.

    It is tried again until `until` (as `time.monotonic` tells it; 0: DEADLINE_SECONDS from now).
    """
    with parent(roots, change.path, make=change.after is not None) as (folder, name):
        if folder is None:
            raise EditRefused(f"The folder of {change.path} is gone.", "Look at the list of files.")
        try:
            return _rounds(folder, name, change, hidden, until or deadline())
        except OSError as error:
            raise _refused(error, change.path) from None


def _rounds(
    folder: Folder, name: str, change: FileChange, hidden: str, until: float, *, late: bool = False
) -> WrittenNote:
    """Try until the change is made; `late` as for `_upon`."""
    for attempt in count():
        if attempt > _ATTEMPTS and time.monotonic() > until:
            break
        try:
            result, displaced, final = _once(folder, name, change, hidden, late=late)
        except (_Replaced, FileNotFoundError):
            continue
        if displaced == result.before:
            return WrittenNote(change.path, result.before, result.after, final)
        return _joined(folder, name, result, hidden, displaced, final, until, late=late)
    raise EditRefused(f"{change.path} changes too fast to be edited.", "Try again when nothing writes to it.")


def _once(
    folder: Folder, name: str, change: FileChange, hidden: str, *, late: bool
) -> tuple[FileChange, bytes | None, bool]:
    """Make the change; return it as it came to be, and the file that it displaced as `_OpenNote.last` does.

    Raises _Replaced, SameLinesChanged, Busy, OSError.
    """
    folder.clear(hidden)
    like = folder.status(name)
    if change.after is not None:
        _write_new(folder, hidden + PART, change.after, like, change.mode, change.mtime_ns, hidden + NEW)
    try:
        note = _OpenNote(folder, name, hidden)
    except FileNotFoundError:
        result = _upon(change, None, late=late)
        if result.after is not None and result.before is None:
            _create(folder, name, hidden)
        return result, result.before, True
    with note:
        result = _upon(change, note.now(), late=late)
        if result.after == result.before:
            return result, result.before, True
        if result is not change and result.after is not None:
            _write_new(folder, hidden + PART, result.after, like, rename=hidden + NEW)
        if result.after is None:
            folder.rename(name, hidden + OLD)
        else:
            _copy_attributes(folder, name, hidden + NEW)
            if not folder.exchange(hidden + NEW, name):
                folder.link(name, hidden + OLD)
                folder.rename(hidden + NEW, name)
        folder.sync()
        old = hidden + (OLD if folder.status(hidden + OLD) is not None else NEW)
        return result, *note.last(old)


def _joined(
    folder: Folder,
    name: str,
    result: FileChange,
    hidden: str,
    theirs: bytes | None,
    final: bool,
    until: float,
    *,
    late: bool,
) -> WrittenNote:
    """Put what others wrote between the comparison and the exchange, and what was written here, into one text."""
    # The file that was replaced stays under its hidden name until the next one is in place.
    again = hidden + "+"
    try:
        both = _upon(result, theirs, late=late)
    except SameLinesChanged:
        _give_back(folder, name, replace(result, before=result.after, after=theirs), again, until)
        raise
    if both.after == result.after:
        return WrittenNote(result.path, theirs, result.after, final)
    last = _rounds(folder, name, replace(result, before=result.after, after=both.after), again, until, late=True)
    # Taking the change back must not take back what others wrote.
    without = merge(both.after, theirs, last.after).merged
    before, after = (theirs, both.after) if without is None else (without, last.after)
    return WrittenNote(result.path, before, after, final and last.final)


def _give_back(folder: Folder, name: str, change: FileChange, hidden: str, until: float) -> None:
    """Put what others wrote back in the place of mine."""
    try:
        _rounds(folder, name, change, hidden, until)
    except SameLinesChanged as news:
        # They went on in what was written here, or began the note anew. Lines twice are better than lines lost.
        view = news.view
        if view.theirs is not None and change.after is not None:
            _rounds(folder, name, replace(change, before=view.theirs, after=view.merge.united), hidden, until)


def _create(folder: Folder, name: str, hidden: str) -> None:
    try:
        folder.link(hidden + NEW, name)
    except FileExistsError:
        raise _Replaced from None
    folder.sync()
    folder.remove(hidden + NEW)


def _write_new(
    folder: Folder,
    name: str,
    data: bytes,
    like: os.stat_result | None,
    mode: int = 0,
    mtime_ns: int = 0,
    rename: str = "",
) -> None:
    """Write `data` whole and flushed as `name`, then as `rename`, with mode and owner of `like`. Raises OSError.

    `mode` and `mtime_ns` are for a note that is like none, 0 for the usual.
    """
    usual = 0o600 if like or mode else 0o666
    descriptor = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, usual)
    try:
        durable.write_all(descriptor, data)
        _dress(descriptor, like, mode)
        if mtime_ns and os.utime in os.supports_fd:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        durable.calls.fsync(descriptor)
        if rename:
            folder.rename(name, rename)
    except OSError:
        # What cannot be removed goes with the next change.
        with contextlib.suppress(OSError):
            folder.remove(name)
        raise
    finally:
        os.close(descriptor)


def _dress(descriptor: int, like: os.stat_result | None, mode: int) -> None:
    """Give an open file mode and owner of `like`, as far as this user may give a file away, else the `mode`."""
    if not hasattr(os, "fchmod"):
        return
    status = os.fstat(descriptor)
    if like is not None and (status.st_uid, status.st_gid) != (like.st_uid, like.st_gid):
        for owner in (like.st_uid, -1):
            try:
                os.fchown(descriptor, owner, like.st_gid)
            except PermissionError:
                continue
            break
    if like is not None or mode:
        durable.calls.chmod(descriptor, stat.S_IMODE(like.st_mode) if like is not None else mode)


def _copy_attributes(folder: Folder, name: str, new: str) -> None:
    """Give `new` the extended attributes of the note, access lists among them, as far as this user may."""
    if not hasattr(os, "listxattr"):
        return
    source = folder.open(name, os.O_RDONLY)
    target = folder.open(new, os.O_RDONLY)
    try:
        for attribute in os.listxattr(source):
            os.setxattr(target, attribute, os.getxattr(source, attribute))
    except OSError as error:
        # Some attributes are the system's own, and some file systems have none; the text matters more.
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
            raise
    finally:
        os.close(source)
        os.close(target)


class _OpenNote:
    """The note, open for reading and at rest, from the comparison to the last look at the old file.

    Raises FileNotFoundError, OSError, Busy.
    """

    def __init__(self, folder: Folder, name: str, hidden: str) -> None:
        self._folder, self._name = folder, name
        self._leased = False
        self._descriptor = folder.open(name, os.O_RDONLY)
        try:
            quiet = self._wait(WAIT_SECONDS)
            while quiet and _half(self._descriptor):
                # Whoever writes the rest must find the first part where it left it.
                self._release()
                time.sleep(_PAUSE_SECONDS)
                quiet = self._wait(WAIT_SECONDS)
            if not quiet and _leases_work(folder, hidden + NEW):
                raise Busy(f"Another program has {name} open for writing.", "Try again when it is done.")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> _OpenNote:
        return self

    def __exit__(self, *exc: object) -> None:
        self._release()
        os.close(self._descriptor)

    def now(self) -> bytes:
        """Return what the note holds. Raises _Replaced when another file has taken its place."""
        if not _same(os.fstat(self._descriptor), self._folder.status(self._name)):
            raise _Replaced
        return contents(self._descriptor, self._name)

    def last(self, old: str) -> tuple[bytes | None, bool]:
        """Return the last content of the file `old`, written by those who were about to, and whether that is sure."""
        if not _same(os.fstat(self._descriptor), self._folder.status(old)):
            # An editor put its own file there after the comparison: that is what was displaced.
            return self._folder.read(old), True
        while True:
            self._release()
            final = self._wait(LATE_SECONDS)
            now = contents(self._descriptor, self._name)
            if not self._leased:
                return now, final
            time.sleep(_STAY_SECONDS)
            if lease.unbroken(self._descriptor):
                return now, True

    def _wait(self, seconds: float) -> bool:
        state = lease.quiet(self._descriptor, seconds)
        self._leased = state is WriterState.HELD
        return state is not WriterState.WRITER

    def _release(self) -> None:
        if self._leased:
            lease.give_back(self._descriptor)
            self._leased = False


def _same(first: os.stat_result, second: os.stat_result | None) -> bool:
    """Return whether both are the same file, not two with the same content."""
    return second is not None and (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _half(descriptor: int) -> bool:
    """Return whether an open note ends in the middle of a line that somebody wrote a moment ago."""
    status = os.fstat(descriptor)
    if not status.st_size or not 0 <= time.time() - status.st_mtime < HALF_SECONDS:
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"


def _leases_work(folder: Folder, sample: str) -> bool:
    """Return whether the file system gives a lease on a file that surely nobody writes."""
    try:
        descriptor = folder.open(sample, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        return lease.quiet(descriptor, 0) is WriterState.HELD
    finally:
        os.close(descriptor)


def _refused(error: OSError, path: str) -> EditRefused:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(f"{path} cannot be written: {error.strerror}.", "Check its file system and its permissions.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EditFailed(f"The disk that holds {path} is full.", "The note is as it was: make room and try again.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
        return EditRefused(f"{path} was replaced by a link or a folder.", "Only regular files are changed.")
    return EditFailed(f"{path} cannot be written: {error.strerror or error}.", "Check the disk.")
