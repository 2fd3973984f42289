"""A full scan finds the notes below the roots, with a reason for everything left out.

One `os.scandir` recursion with one `stat` a note: no real path is computed for a file. A folder met twice is known by
its inode, a single file by its folder's inode and its name, so notes are deduplicated as if by real path.
"""

# ruff: noqa: PTH116
# No path objects in the loop over files.

from __future__ import annotations

import errno
import math
import operator
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    Entries = os._ScandirIterator[str]

MAX_BYTES = 32 * 1024 * 1024
"""Larger files are never read."""
MOST_ENTRIES = 200_000
"""Files and folders below one of extraPaths; where there are more, none of its notes are read."""
LIMIT_VARIABLE = "MEMORY_TUI_EXTRA_ENTRIES"
"""Environment variable with another number for MOST_ENTRIES."""
_REMEMBERED_SECONDS = 600.0
"""How long a folder that was too large is not counted again."""
_SYSTEM = frozenset({"/proc", "/sys", "/dev"})
"""Folders of the system's own making, in which there are no notes and reading may have effects."""
_too_large: dict[tuple[str, int], float] = {}

Rule = Literal[
    "symlink",
    "not markdown",
    "duplicate",
    "not a file",
    "unreadable",
    "too big",
    "missing root",
    "outside",
    "not a transcript",
    "pattern",
    "too many",
    "repaired",
]
Inode = tuple[int, int]
MediaLimit = Callable[[str], int]
"""How many bytes a file of some name may have where it is an image or a sound; 0 where it is none."""


class NoteFile(NamedTuple):
    """A note as the last scan found it.

    `path` is relative to the workspace with "/" (and may start with "../"); bytes of a name that are not UTF-8 stand
    there as `\\xff`. `absolute` opens it; no link is followed below `root`. `inode` is (device, inode), zeros where
    the system has none. `source` is memory or sessions.
    """

    path: str
    absolute: str
    size: int
    mtime_ns: int
    inode: Inode
    root: str
    source: str = "memory"
    ctime_ns: int = 0
    """When anything about the file changed last, which nobody can set back; 0 where that is not known."""

    @classmethod
    def of(cls, path: str, absolute: str, status: os.stat_result, root: str) -> NoteFile:
        """Return the note with that `status`, below `root`."""
        inode = status.st_dev, status.st_ino
        return cls(path, absolute, status.st_size, status.st_mtime_ns, inode, root, "memory", status.st_ctime_ns)


class LeftOut(NamedTuple):
    """A file or folder that is not indexed: the rule that excludes it, and a sentence for a person."""

    path: str
    rule: Rule
    detail: str

    @property
    def reason(self) -> str:
        """Return rule and sentence: `symlink: It is a symbolic link.`"""
        return f"{self.rule}: {self.detail}"


class Scan(NamedTuple):
    """What is on disk now, both lists sorted by path; `quiet` notes more are just as they were said to be `settled`."""

    notes: tuple[NoteFile, ...]
    left_out: tuple[LeftOut, ...]
    quiet: int = 0

    @property
    def total(self) -> int:
        """Return how many notes are on disk."""
        return len(self.notes) + self.quiet


Settled = Mapping[str, Mapping[str, tuple[int, int, int]]]
"""Size and modification time of notes, and the latest `ctime_ns` that is no news; by stored folder, then by name."""


def storable(path: str) -> str:
    """Return `path` as it is stored and shown: "/" between names, undecodable bytes written as `\\xff`."""
    if os.sep != "/":
        path = path.replace(os.sep, "/")
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class Walk:
    """Collects notes root by root; the first root that reaches a note wins."""

    def __init__(self, base: str, settled: Settled | None = None, never: str = "") -> None:
        self._base = base
        self._never = never
        self.quiet = 0
        self._settled: Settled = settled or {}
        self.notes: list[NoteFile] = []
        self.left_out: list[LeftOut] = []
        self._folders: dict[Inode | str, str] = {}
        self._singles: dict[Inode | str, set[Inode | str]] = {}
        self._admits: Callable[[str], bool] | None = None
        self._media: MediaLimit | None = None
        self._room: float = math.inf

    def result(self) -> Scan:
        """Return what was collected so far; of two names that are stored alike, the second is left out."""
        self.notes.sort(key=_by_path)
        if len({note.path for note in self.notes}) < len(self.notes):
            unique: dict[str, NoteFile] = {}
            for note in sorted(self.notes):
                if unique.setdefault(note.path, note) is not note:
                    self._skip(note.path, "duplicate", "Another file's name is stored in the same letters.")
            self.notes = list(unique.values())
        return Scan(tuple(self.notes), tuple(sorted(self.left_out)), self.quiet)

    def root_note(self, absolute: str, stored: str) -> None:
        """Add MEMORY.md or memory.md if it is there."""
        status = self._lstat(absolute, stored, optional=True)
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            self._skip(stored, "not a file", "It is a folder; the root note has to be a file.")
        else:
            self._single(absolute, stored, status)

    def folder(self, absolute: str, stored: str, root: str) -> None:
        """Add every note below the folder memory/ of the workspace `root`."""
        status = self._lstat(absolute, stored)
        if status is None:
            return
        if stat.S_ISLNK(status.st_mode):
            self._skip(stored, "symlink", "A symbolic link instead of a folder is not followed.")
        elif stat.S_ISDIR(status.st_mode):
            self._descend(absolute, stored, root)
        else:
            self._skip(stored, "not a file", "It is not a folder, so there is nothing below it.")

    def extra(
        self,
        absolute: str,
        stored: str,
        admits: Callable[[str], bool] | None = None,
        media: MediaLimit | None = None,
    ) -> None:
        """Add one of extraPaths: a note, or every note below a folder whose absolute path is admitted.

        With `media` also what that allows bytes to.
        """
        self._media = media
        try:
            self._extra(absolute, stored, admits)
        finally:
            self._media = None

    def _extra(self, absolute: str, stored: str, admits: Callable[[str], bool] | None) -> None:
        status = self._lstat(absolute, stored)
        if status is None:
            return
        if not stat.S_ISDIR(status.st_mode):
            self._single(absolute, stored, status)
        elif known_too_large(absolute):
            self._skip(stored, "too many", _too_many(most_entries()))
        else:
            self._bounded(absolute, stored, admits)

    def _bounded(self, absolute: str, stored: str, admits: Callable[[str], bool] | None) -> None:
        """Add every note below a folder, or none of them and the reason where there is too much to look through."""
        before = len(self.notes), len(self.left_out), self.quiet, dict(self._folders)
        self._admits, self._room = admits, most_entries()
        try:
            self._descend(absolute, stored, absolute)
        except _TooMany:
            notes, left_out, self.quiet, self._folders = before
            del self.notes[notes:], self.left_out[left_out:]
            limit = most_entries()
            _too_large[absolute, limit] = time.monotonic()
            self._skip(stored, "too many", _too_many(limit))
        finally:
            self._admits, self._room = None, math.inf

    def _skip(self, path: str, rule: Rule, detail: str) -> None:
        self.left_out.append(LeftOut(path, rule, detail))

    def _lstat(self, absolute: str, stored: str, *, optional: bool = False) -> os.stat_result | None:
        try:
            return os.lstat(absolute)
        except (FileNotFoundError, NotADirectoryError):
            if not optional:
                self._skip(stored, "missing root", "There is nothing at this place.")
        except OSError as error:
            self._skip(stored, "unreadable", f"It cannot be looked at: {error.strerror}.")
        return None

    def _single(self, absolute: str, stored: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self._skip(stored, *_odd(status.st_mode))
        elif not absolute.endswith(".md") and not self._limit(absolute):
            self._skip(stored, "not markdown", _NOT_MARKDOWN)
        else:
            root, name = os.path.split(absolute)
            try:
                parent = _folder_key(root)
            except OSError as error:
                self._skip(stored, "unreadable", f"Its folder cannot be looked at: {error.strerror}.")
                return
            key = _key(status, name)
            if parent in self._folders or key in self._singles.get(parent, ()):
                self._skip(stored, "duplicate", _DUPLICATE)
            else:
                self._singles.setdefault(parent, set()).add(key)
                self._keep(stored, absolute, status, root)

    def _limit(self, name: str) -> int:
        """Return how many bytes a file that is no note may have; 0 for one that is not read."""
        return self._media(name) if self._media is not None else 0

    def _keep(self, stored: str, absolute: str, status: os.stat_result, root: str) -> None:
        most = MAX_BYTES if absolute.endswith(".md") else min(MAX_BYTES, self._limit(absolute))
        if status.st_size > most:
            self._skip(stored, "too big", f"It has {status.st_size:,} bytes; at most {most:,} are read.")
        else:
            self.notes.append(NoteFile.of(stored, absolute, status, root))

    def _descend(self, absolute: str, stored: str, root: str) -> None:
        # A stack instead of recursion: folders may be nested deeper than Python's call stack.
        todo = [(absolute, stored)]
        while todo:
            folder, prefix = todo.pop()
            if self._never and folder.endswith(os.sep + self._never):
                self._skip(prefix, "repaired", "OpenClaw keeps there what it repaired, and does not read it.")
                continue
            if folder in _SYSTEM:
                self._skip(prefix, "not a file", "It is a folder of the system, not of notes.")
                continue
            try:
                with _listed(folder) as (key, entries):
                    first = self._folders.setdefault(key, prefix)
                    if first is prefix:
                        self._read(entries, folder, prefix, root, self._singles.get(key, ()), todo)
                    else:
                        self._skip(prefix, "duplicate", f"The same folder is read as {first}.")
            except FileNotFoundError:
                # Removed since its parent was listed: nothing is there to report.
                continue
            except OSError as error:
                self._skip(prefix, "unreadable", f"This folder cannot be listed: {error.strerror}.")

    def _read(
        self,
        entries: Iterable[os.DirEntry[str]],
        folder: str,
        prefix: str,
        root: str,
        singles: Iterable[Inode | str],
        todo: list[tuple[str, str]],
    ) -> None:
        start = "" if prefix == "." else prefix + "/"
        below = folder if folder.endswith(os.sep) else folder + os.sep
        settled = _NOTHING.get if singles else self._settled.get(start, _NOTHING).get
        quiet = 0
        for entry in entries:
            name = entry.name
            try:
                # For what is as it was, no more is done than the stat that tells it: nothing else could have its times.
                if (was := settled(name)) is not None:
                    size, mtime, latest = was
                    status = entry.stat(follow_symlinks=False)
                    if mtime == status.st_mtime_ns and size == status.st_size and latest >= status.st_ctime_ns:
                        quiet += 1
                        continue
                self._sort(
                    entry, below + name, start + (name if name.isascii() else storable(name)), root, singles, todo
                )
            except FileNotFoundError:
                # Removed since the folder was listed: nothing is there to report.
                continue
            except OSError as error:
                self._skip(start + storable(name), "unreadable", f"It cannot be looked at: {error.strerror}.")
        self.quiet += quiet

    def _sort(
        self,
        entry: os.DirEntry[str],
        absolute: str,
        stored: str,
        root: str,
        singles: Iterable[Inode | str],
        todo: list[tuple[str, str]],
    ) -> None:
        """Keep `entry` if it is a note, go into it later if it is a folder, or tell why it is neither."""
        self._room -= 1
        if self._room < 0:
            raise _TooMany
        name = entry.name
        if (name.endswith(".md") or self._limit(name)) and entry.is_file(follow_symlinks=False):
            if self._admits is not None and not self._admits(absolute):
                self._skip(stored, "pattern", "It does not match the pattern of its entry in extraPaths.")
                return
            status = entry.stat(follow_symlinks=False)
            if singles and _key(status, name) in singles:
                self._skip(stored, "duplicate", _DUPLICATE)
            else:
                self._keep(stored, absolute, status, root)
        elif entry.is_dir(follow_symlinks=False):
            todo.append((absolute, self._nearer(absolute, stored)))
        elif not name.endswith(".md"):
            self._skip(stored, *_not_note(name, link=entry.is_symlink()))
        else:
            self._skip(stored, *_odd(entry.stat(follow_symlinks=False).st_mode))

    def _nearer(self, folder: str, stored: str) -> str:
        """How the path of `folder` is stored: on the way from an extra path down to the workspace, with fewer ".."."""
        above = self._base.startswith(folder) and self._base[len(folder) : len(folder) + 1] in ("", os.sep)
        return storable(os.path.relpath(folder, self._base)) if above else stored


class _TooMany(Exception):
    """There is more below an extra path than is looked through."""


def most_entries() -> int:
    """Return how many files and folders may lie below one of extraPaths."""
    number = os.environ.get(LIMIT_VARIABLE, "")
    return int(number) if number.isascii() and number.isdigit() and int(number) else MOST_ENTRIES


def known_too_large(absolute: str) -> bool:
    """Return whether `absolute`, one of extraPaths, was found too large a moment ago."""
    at = _too_large.get((absolute, most_entries()))
    return at is not None and time.monotonic() - at < _REMEMBERED_SECONDS


def too_large(absolute: str) -> bool:
    """Whether more lies below `absolute`, one of extraPaths, than is looked through; it is counted where not known."""
    if known_too_large(absolute):
        return True
    walk = Walk(absolute)
    walk.extra(absolute, absolute)
    return known_too_large(absolute)


def _too_many(limit: int) -> str:
    return (
        f"More than {limit:,} files and folders lie below it, so none of its notes are read. "
        f"Name a folder of notes in extraPaths, or set {LIMIT_VARIABLE} to a higher number."
    )


_NOTHING: Mapping[str, tuple[int, int, int]] = {}
_BY_DESCRIPTOR = os.scandir in os.supports_fd and hasattr(os, "O_DIRECTORY")
_by_path = operator.itemgetter(0)
_DUPLICATE = "The same file is read under another path already."
_NOT_MARKDOWN = "Only names that end in .md are notes."


@contextmanager
def _listed(folder: str) -> Iterator[tuple[Inode | str, Iterable[os.DirEntry[str]]]]:
    """What tells `folder` from all others, and what is in it; by a descriptor of the folder where the system has such.

    Then its files are asked for their status without finding the way there anew for each (a sixth of the time), and a
    link that took its place meanwhile is not followed.
    """
    place, entries = _opened(folder) if _BY_DESCRIPTOR else (folder, os.scandir(folder))
    try:
        with entries:
            yield _folder_key(place), entries
    finally:
        if isinstance(place, int):
            os.close(place)


def _opened(folder: str) -> tuple[int | str, Entries]:
    """A descriptor of `folder`, or its path where the process has handles for one thing only; and its entries."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return descriptor, os.scandir(descriptor)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        return folder, os.scandir(folder)


def _folder_key(folder: str | int) -> Inode | str:
    """Return what tells a folder from all others, by whatever path it is reached."""
    status = os.stat(folder)
    return (status.st_dev, status.st_ino) if status.st_ino or isinstance(folder, int) else os.path.realpath(folder)


def _key(status: os.stat_result, name: str) -> Inode | str:
    """What tells a file from the others in its folder; one link with two names means letter case does not count."""
    return (status.st_dev, status.st_ino) if status.st_nlink == 1 and status.st_ino else name


def _not_note(name: str, *, link: bool) -> tuple[Rule, str]:
    if link:
        return _odd(stat.S_IFLNK)
    if name.lower().endswith(".md"):
        return "not markdown", "Only names that end in .md in small letters are notes."
    return "not markdown", _NOT_MARKDOWN


def _odd(mode: int) -> tuple[Rule, str]:
    if stat.S_ISLNK(mode):
        return "symlink", "Symbolic links are not followed; OpenClaw ignores them too."
    return "not a file", "It is not a regular file (a pipe, socket or device), so it is never opened."
