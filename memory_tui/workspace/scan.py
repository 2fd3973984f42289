"""A full scan finds the notes below the roots, with a reason for everything left out.

One `os.scandir` walk with one `stat` a note: no real path is computed for a file. A folder met twice is known by its
inode, a single file by its folder's inode and its own, so notes are deduplicated as if by real path.
"""

# ruff: noqa: PTH116
# No path objects in the loop over files.

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal, NamedTuple

MAX_BYTES = 32 * 1024 * 1024
"""Larger files are never read."""
MOST_ENTRIES = 200_000
"""Files and folders below one of extraPaths; where there are more, none of its notes are read."""
LIMIT_VARIABLE = "MEMORY_TUI_EXTRA_ENTRIES"
"""Environment variable with another number for MOST_ENTRIES."""
_SYSTEM = frozenset({"/proc", "/sys", "/dev"})
"""Folders of the system's own making, in which there are no notes and reading may have effects."""
_too_large: dict[tuple[str, int], bool] = {}
"""Whether a folder holds more than a limit, which is counted once in the life of the process."""

_OfFile = Literal["symlink", "not markdown", "not a transcript", "duplicate", "not a file", "unreadable", "too big"]
_OfPlace = Literal["missing root", "outside", "pattern", "too many", "repaired", "excluded"]
Rule = Literal[_OfFile, _OfPlace]
"""Why a file or folder is left out: by what it is, or by where it lies."""
Inode = tuple[int, int]
Kind = Literal["note", "folder", "extra"]
"""What a root is: a note at the top of the workspace, the folder memory/, or one of extraPaths."""


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
    def of(cls, path: str, absolute: str, status: os.stat_result, root: str, source: str = "memory") -> NoteFile:
        """Return the note with that `status`, below `root`."""
        inode = status.st_dev, status.st_ino
        return cls(path, absolute, status.st_size, status.st_mtime_ns, inode, root, source, status.st_ctime_ns)


class LeftOut(NamedTuple):
    """A file or folder that is not indexed: the rule that excludes it, and a sentence for a person."""

    path: str
    rule: Rule
    detail: str

    @property
    def reason(self) -> str:
        """Return rule and sentence: `symlink: It is a symbolic link.`"""
        return f"{self.rule}: {self.detail}"

    @property
    def expected(self) -> bool:
        """Return whether nobody takes it for a note: what a pattern leaves out, and files that hold no text."""
        is_hidden = any(name.startswith(".") for name in self.path.split("/") if name not in ("..", "."))
        is_text = self.path.lower().endswith(_TEXTS)
        return self.rule == "excluded" or (self.rule == "not markdown" and (is_hidden or not is_text))


class Scan(NamedTuple):
    """What is on disk now, both lists sorted by path; `quiet` notes more are just as they were said to be `settled`.

    `devices` are those on which the roots lay before the first of them was read.
    """

    notes: tuple[NoteFile, ...]
    left_out: tuple[LeftOut, ...]
    quiet: int = 0
    devices: Mapping[str, int] = MappingProxyType({})

    @property
    def total(self) -> int:
        """Return how many notes are on disk."""
        return len(self.notes) + self.quiet


Settled = Mapping[str, Mapping[str, tuple[int, int, int]]]
"""Size and modification time of notes, and the latest `ctime_ns` that is no news; by stored folder, then by name.

A stored folder ends with "/", and that of the workspace is empty.
"""


def settled_of(notes: Iterable[tuple[str, int, int, int]]) -> Settled:
    """Return as Settled what `notes` say: stored path, size, modification time, and the latest `ctime_ns` of each."""
    folders: dict[str, dict[str, tuple[int, int, int]]] = {}
    for path, size, mtime_ns, latest in notes:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(folder + slash, {})[name] = size, mtime_ns, latest
    return folders


def storable(path: str) -> str:
    """Return `path` as it is stored and shown: "/" between names, undecodable bytes written as `\\xff`."""
    if os.sep != "/":
        path = path.replace(os.sep, "/")
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class Walk:
    """Collects notes root by root; the first root that reaches a note wins.

    Below extraPaths `admits` chooses notes by their absolute path, and `media` allows a file of some name so many
    bytes where it is an image or a sound. Folders called `never` are not entered, and what is `excluded` by its stored
    path is left out.
    """

    def __init__(
        self,
        base: str,
        settled: Settled | None = None,
        never: str = "",
        admits: Callable[[str], bool] | None = None,
        media: Callable[[str], int] | None = None,
        excluded: Callable[[str], bool] | None = None,
    ) -> None:
        self.notes: list[NoteFile] = []
        self.left_out: list[LeftOut] = []
        self._quiet = 0
        """How many notes are as `settled` has them, so that they are not listed."""
        self._base, self._never, self._settled = base, never, settled or {}
        self._admits, self._media, self._excluded = admits, media, excluded
        self._folders: dict[Inode | str, str] = {}
        """The stored path of each folder that was read, by its key."""
        self._singles: dict[tuple[Inode | str, Inode | str], str] = {}
        """The stored path of each note that is named by itself, by the keys of its folder and of the file."""
        self._extra = False
        """Whether the root that is read is one of extraPaths."""
        self._room: float = math.inf
        """How many more entries are looked at below one of extraPaths."""

    def result(self) -> Scan:
        """Return what was collected so far; of two names that are stored alike, the second is left out."""
        unique: dict[str, NoteFile] = {}
        for note in sorted(self.notes):
            if unique.setdefault(note.path, note) is not note:
                self.skip(note.path, "duplicate", "Another file's name is stored in the same letters.")
        return Scan(tuple(unique.values()), tuple(sorted(self.left_out)), self._quiet)

    def skip(self, path: str, rule: Rule, detail: str) -> None:
        """Leave out what is stored as `path`."""
        self.left_out.append(LeftOut(path, rule, detail))

    def root(self, absolute: str, stored: str, kind: Kind) -> None:
        """Add a root: the note that it is, or every note below the folder that it is."""
        self._extra = kind == "extra"
        try:
            status = os.lstat(absolute)
        except (FileNotFoundError, NotADirectoryError):
            if kind != "note":
                self.skip(stored, "missing root", "There is nothing at this place.")
            return
        except OSError as error:
            self.skip(stored, "unreadable", f"It cannot be looked at: {error.strerror}.")
            return
        if not stat.S_ISDIR(status.st_mode):
            if kind != "folder":
                self._single(absolute, stored, status)
            elif stat.S_ISLNK(status.st_mode):
                self.skip(stored, "symlink", "A symbolic link instead of a folder is not followed.")
            else:
                self.skip(stored, "not a file", "It is not a folder, so there is nothing below it.")
        elif kind == "note":
            self.skip(stored, "not a file", "It is a folder; the root note has to be a file.")
        elif kind == "folder":
            self._descend(absolute, stored, self._base)
        elif _too_large.get((absolute, most_entries())):
            self._skip_too_large(stored)
        else:
            self._bounded(absolute, stored)

    def _bounded(self, absolute: str, stored: str) -> None:
        """Add every note below a folder, or none of them and the reason where there is too much to look through."""
        # What there was before, to which too large a folder goes back.
        notes, left_out, quiet, folders = len(self.notes), len(self.left_out), self._quiet, dict(self._folders)
        self._room = most_entries()
        try:
            self._descend(absolute, stored, absolute)
        except _TooManyError:
            del self.notes[notes:], self.left_out[left_out:]
            self._quiet, self._folders = quiet, folders
            _too_large[absolute, most_entries()] = True
            self._skip_too_large(stored)
        finally:
            self._room = math.inf

    def _skip_too_large(self, stored: str) -> None:
        """Leave out an extra path because there is too much below it."""
        self.skip(
            stored,
            "too many",
            f"More than {most_entries():,} files and folders lie below it, so none of its notes are read. "
            f"Name a folder of notes in extraPaths, or set {LIMIT_VARIABLE} to a higher number.",
        )

    def _single(self, absolute: str, stored: str, status: os.stat_result) -> None:
        """Keep a note that is named by itself (a root note, an entry of extraPaths), or the reason why not."""
        root, name = os.path.split(absolute)
        if self._excluded is not None and self._excluded(stored):
            self.skip(stored, "excluded", _EXCLUDED)
        elif not stat.S_ISREG(status.st_mode):
            self.skip(stored, *_odd(status.st_mode))
        elif not self._limit(name):
            self.skip(stored, "not markdown", _NOT_MARKDOWN)
        else:
            try:
                parent = _folder_key(root)
            except OSError as error:
                self.skip(stored, "unreadable", f"Its folder cannot be looked at: {error.strerror}.")
                return
            place = parent, _key(status, name)
            if parent in self._folders or place in self._singles:
                self.skip(stored, "duplicate", _DUPLICATE)
            else:
                self._singles[place] = stored
                self._keep(stored, absolute, status, root)

    def _limit(self, name: str) -> int:
        """Return how many bytes a file called `name` may have; 0 for one that is not read."""
        if name.endswith(".md"):
            return MAX_BYTES
        return min(MAX_BYTES, self._media(name)) if self._extra and self._media is not None else 0

    def _keep(self, stored: str, absolute: str, status: os.stat_result, root: str) -> None:
        """Add a note, unless it is too large."""
        most = self._limit(absolute)
        if status.st_size > most:
            self.skip(stored, "too big", f"It has {status.st_size:,} bytes; at most {most:,} are read.")
        else:
            self.notes.append(NoteFile.of(stored, absolute, status, root))

    def _descend(self, absolute: str, stored: str, root: str) -> None:
        """Look through a folder and all below it."""
        # A stack instead of recursion: folders may be nested deeper than Python's call stack.
        todo = [(absolute, stored)]
        while todo:
            folder, prefix = todo.pop()
            if self._never and folder.endswith(os.sep + self._never):
                self.skip(prefix, "repaired", "OpenClaw keeps there what it repaired, and does not read it.")
            elif folder in _SYSTEM:
                self.skip(prefix, "not a file", "It is a folder of the system, not of notes.")
            else:
                try:
                    todo += self._list(folder, prefix, root)
                except FileNotFoundError:
                    # Removed since its parent was listed: nothing is there to report.
                    continue
                except OSError as error:
                    self.skip(prefix, "unreadable", f"This folder cannot be listed: {error.strerror}.")

    def _list(self, folder: str, prefix: str, root: str) -> list[tuple[str, str]]:
        """Add the notes in `folder`, and return the folders in it with their stored paths."""
        start = "" if prefix == "." else prefix + "/"
        below = folder if folder.endswith(os.sep) else folder + os.sep
        todo: list[tuple[str, str]] = []
        with _opened(folder) as place, os.scandir(place) as entries:
            key = _folder_key(place)
            # setdefault returns this very `prefix` only where the folder was not read before.
            if (first := self._folders.setdefault(key, prefix)) is not prefix:
                self.skip(prefix, "duplicate", f"The same folder is read as {first}.")
                return []
            # Notes of this folder that were kept already, because they are named by themselves: key -> stored path.
            singles = {file: path for (parent, file), path in self._singles.items() if parent == key}
            # A note that is named by itself is kept once, so that files beside it are compared and none is passed over.
            settled = {} if singles else self._settled.get(start, {})
            for entry in entries:
                name, stored = entry.name, start + storable(entry.name)
                if self._excluded is not None and self._excluded(stored):
                    self.skip(stored, "excluded", _EXCLUDED)
                    continue
                try:
                    # Of a note that is as it was no more is done than the stat that tells so. No folder, link or other
                    # file has its size and times.
                    if name in settled:
                        status = entry.stat(follow_symlinks=False)
                        size, mtime_ns, latest = settled[name]
                        if (status.st_size, status.st_mtime_ns) == (size, mtime_ns) and status.st_ctime_ns <= latest:
                            self._quiet += 1
                            continue
                    self._room -= 1
                    if self._room < 0:
                        raise _TooManyError
                    if entry.is_dir(follow_symlinks=False):
                        if (self._base + os.sep).startswith(below + name + os.sep):
                            # A folder above the workspace, below an extra path: its shortest path has fewer "..".
                            stored = storable(os.path.relpath(below + name, self._base))
                        todo.append((below + name, stored))
                    else:
                        self._sort(entry, below + name, stored, root, singles)
                except FileNotFoundError:
                    # Removed since the folder was listed: nothing is there to report.
                    continue
                except OSError as error:
                    self.skip(stored, "unreadable", f"It cannot be looked at: {error.strerror}.")
        return todo

    def _sort(
        self, entry: os.DirEntry[str], absolute: str, stored: str, root: str, singles: Mapping[Inode | str, str]
    ) -> None:
        """Keep `entry` if it is a note, or tell why it is none.

        `singles` has the notes of its folder that are kept already: the key of the file -> its stored path.
        """
        name = entry.name
        if entry.is_symlink():
            self.skip(stored, *_odd(stat.S_IFLNK))
        elif not self._limit(name):
            self.skip(stored, "not markdown", _SMALL_LETTERS if name.lower().endswith(".md") else _NOT_MARKDOWN)
        elif not entry.is_file(follow_symlinks=False):
            self.skip(stored, *_odd(entry.stat(follow_symlinks=False).st_mode))
        elif self._extra and self._admits is not None and not self._admits(absolute):
            self.skip(stored, "pattern", "It does not match the pattern of its entry in extraPaths.")
        else:
            status = entry.stat(follow_symlinks=False)
            first = singles.get(_key(status, name)) if singles else None
            if first is None:
                self._keep(stored, absolute, status, root)
            # A note named by itself is kept already; where this is its own path there is nothing to tell.
            elif first != stored:
                self.skip(stored, "duplicate", _DUPLICATE)


class _TooManyError(Exception):
    """There is more below an extra path than is looked through."""


def most_entries() -> int:
    """Return how many files and folders may lie below one of extraPaths."""
    number = os.environ.get(LIMIT_VARIABLE, "")
    return int(number) if number.isascii() and number.isdigit() and int(number) else MOST_ENTRIES


def too_large(absolute: str) -> bool:
    """Return whether more lies below `absolute`, one of extraPaths, than is looked through."""
    key = absolute, most_entries()
    if key not in _too_large:
        # A walk puts a folder that has too much below it into `_too_large`; its notes are not wanted.
        Walk(absolute).root(absolute, absolute, "extra")
    return _too_large.setdefault(key, False)


_TEXTS = (".md", ".markdown", ".mdown", ".mdx", ".txt", ".org", ".rst")
_DUPLICATE = "The same file is read under another path already."
_EXCLUDED = "A pattern of the setting exclude leaves it out, or it is hidden in a folder that is memory as a whole."
_NOT_MARKDOWN = "Only names that end in .md are notes."
_SMALL_LETTERS = "Only names that end in .md in small letters are notes."


@contextmanager
def _opened(folder: str) -> Iterator[str | int]:
    """Yield what lists `folder`: a descriptor where the system takes one, so that no link in its place is followed."""
    if os.scandir not in os.supports_fd:
        yield folder
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _folder_key(folder: str | int) -> Inode | str:
    """Return what tells a folder from all others, by whatever path it is reached: its inode, else its real path.

    An int is an open folder, which has no path to fall back on.
    """
    status = os.stat(folder)
    return (status.st_dev, status.st_ino) if status.st_ino or isinstance(folder, int) else os.path.realpath(folder)


def _key(status: os.stat_result, name: str) -> Inode | str:
    """Return what tells a file from others in its folder: the inode, or the name of one that has several.

    A file with one link that is met under two names is the same file, where letter case does not count.
    """
    return (status.st_dev, status.st_ino) if status.st_nlink == 1 and status.st_ino else name


def _odd(mode: int) -> tuple[Rule, str]:
    """Return why a file of this mode, which is no regular one, is left out: the rule and the sentence."""
    if stat.S_ISLNK(mode):
        return "symlink", "Symbolic links are not followed; OpenClaw ignores them too."
    return "not a file", "It is not a regular file (a pipe, socket or device), so it is never opened."
