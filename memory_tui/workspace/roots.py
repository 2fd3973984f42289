"""Roots are where notes may live: MEMORY.md, memory/, extraPaths; a path is checked against them.

The workspace itself may be a symbolic link; nothing below a root is followed through one.
"""

# ruff: noqa: PTH100, PTH111, PTH114, PTH116, PTH118, PTH120, PTH206
# Paths are strings: names may hold undecodable bytes, and links must not be resolved.

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import jsstring
from memory_tui.config.places import ExtraPath
from memory_tui.errors import PathRefused, WorkspaceError
from memory_tui.workspace import notes, transcripts
from memory_tui.workspace.notes import Document, MediaRules
from memory_tui.workspace.scan import NoteFile, Scan, Settled, Walk, most_entries, storable

Shape = Literal["workspace", "facts", "vault"]
HIDDEN = (".*", "node_modules")
"""Folders that hold no notes of a folder that is memory as a whole: settings, rubbish, programs."""
_POINTER = re.compile(r"^\s*[-*+]\s+\[[^\]\n]+\]\(<?(?:\./)?(?P<file>[^)>/\s#]+\.md)>?\)", re.MULTILINE)
_AGENT = ("AGENTS.md", "SOUL.md", "memory")
"""What OpenClaw keeps beside MEMORY.md, of which it reads memory/ alone."""


def shape_of(folder: Path) -> Shape:
    """Return what kind of memory a folder is.

    "workspace" is OpenClaw's, "facts" a MEMORY.md that lists other notes of its folder, "vault" any other notes.
    """
    index = next((path for name in ("MEMORY.md", "memory.md") if (path := folder / name).is_file()), None)
    if index is None:
        return "workspace" if (folder / "memory").exists() else "vault"
    if any((folder / name).exists() for name in _AGENT):
        return "workspace"
    try:
        listed = _POINTER.findall(index.read_text("utf-8", "replace"))
    except OSError:
        # That it cannot be read is told by the scan.
        return "workspace"
    return "facts" if any((folder / name).is_file() for name in listed) else "workspace"


def notes_below(folder: Path) -> Iterator[str]:
    """Yield the paths of the Markdown files below a folder, in it and its folders, as far as a scan would look."""
    # How many more files and folders are looked at.
    room = most_entries()
    for parent, folders, files in os.walk(folder):
        # `walk` enters what is left in the list.
        folders[:] = [name for name in folders if not name.startswith(".") and name not in HIDDEN]
        room -= len(folders) + len(files)
        if room < 0:
            return
        yield from (os.path.join(parent, name) for name in files if name.endswith(".md"))


def entries(base: str, written: Iterable[str | ExtraPath]) -> tuple[ExtraPath, ...]:
    """Return what was `written` with absolute paths: `~` is home, relative ones start in `base`; no repeats."""
    extra = (item if isinstance(item, ExtraPath) else ExtraPath(item) for item in written)
    return tuple(
        dict.fromkeys(
            ExtraPath(os.path.normpath(os.path.join(base, os.path.expanduser(path))), item.pattern)
            for item in extra
            if (path := jsstring.trim(item.path))
        )
    )


_NAMED_LINES = re.compile(r"(?P<path>.+?)(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?\Z", re.DOTALL)


def named_lines(typed: str) -> tuple[str, int | None, int | None]:
    """Split `path:12`, `path:12-24`, `path#L12-L24` into path, first and last line; None where none is named."""
    if (match := _NAMED_LINES.match(typed)) is None:
        return typed, None, None
    return match["path"], int(match["first"]), int(match["last"]) if match["last"] else None


def fits_pattern(path: str, pattern: str | list[str]) -> bool:
    """Return whether a path with "/" between names fits a pattern as minimatch has it, or one of several.

    `*` and `?` stay within a name and find no leading dot, `**` goes through folders.
    """
    # Late, because its parser takes long to load and few name patterns.
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.EXTGLOB | glob.FORCEUNIX | glob.CASE
    return glob.globmatch(path, pattern, flags=flags)


def admitted(extra: Iterable[ExtraPath]) -> Callable[[str], bool]:
    """Return what tells whether any entry of `extra` reads the file at an absolute path; all of them are looked at.

    A pattern is matched against the path from its entry as OpenClaw does from 2026.8 on.
    """
    # A folder ends with one separator, and a pattern has "/" between names.
    places = [(item.path.rstrip(os.sep) + os.sep, item.pattern.replace("\\", "/")) for item in extra]

    def admits(absolute: str) -> bool:
        """Tell whether an entry reads the file at this path."""
        return any(
            absolute.startswith(folder)
            and (not pattern or fits_pattern(absolute[len(folder) :].replace(os.sep, "/"), pattern))
            for folder, pattern in places
        )

    return admits


ROOT_NOTES = ("MEMORY.md", "memory.md")
ROOT_NOTES_2026_9 = ("MEMORY.md", "USER.md")
REPAIRED = ".openclaw-repair"
FOLDER = "memory"
WORKSPACE = "."
"""How the workspace itself is stored."""
MEMORY = "memory"
"""Source of notes."""


class NoteMissing(PathRefused):
    """A path that could be a note's, but nothing is there."""

    code = "missing"


class Roots(Struct, frozen=True):
    """An absolute workspace folder and absolute extra paths (notes or folders, wherever they are).

    `patterns` has an item for each entry of extraPaths when one of them names a pattern, which then chooses among the
    notes below a folder. `sources` are memory (the notes), sessions (the transcripts in the folder `sessions`), or
    both; `archives` adds the transcripts of sessions that were reset or deleted.
    """

    workspace: Path
    extra: tuple[str, ...] = ()
    patterns: tuple[ExtraPath, ...] = ()
    sources: tuple[str, ...] = (MEMORY,)
    sessions: str = ""
    archives: bool = False
    root_notes: tuple[str, ...] = ROOT_NOTES
    """The notes at the top of the workspace; 2026.9 reads MEMORY.md, and the user's USER.md."""
    media: MediaRules | None = None
    """Which images and sounds below the extra paths are read; None for none."""
    never: str = ""
    """A name of folders that are not entered: 2026.9 keeps there what it repaired."""
    exclude: tuple[str, ...] = ()
    """Patterns of stored paths that are left out; of a folder with all that is below it."""

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str],
        extra_paths: Iterable[str | ExtraPath] = (),
        *,
        sources: Iterable[str] = (MEMORY,),
        sessions: str | os.PathLike[str] = "",
        archives: bool = False,
        chunking: str = "2026.3",
        media: MediaRules | None = None,
        exclude: str = "",
    ) -> Roots:
        """Return roots as a configuration writes them: `~` stands for home, extra paths are relative to the workspace.

        An extra path with a pattern is an ExtraPath. `sessions` is the absolute folder of transcripts; it counts where
        `sources` names it, and with nothing left notes do. `chunking` is the release by whose rules notes are read.
        `exclude` holds patterns apart by commas; one without a folder counts in every folder.
        """
        base = os.path.abspath(os.path.expanduser(os.fspath(workspace)))
        extra = entries(base, extra_paths)
        folder = os.path.abspath(os.path.expanduser(os.fspath(sessions))) if os.fspath(sessions) else ""
        known = (MEMORY, transcripts.SOURCE) if folder else (MEMORY,)
        read = tuple(name for name in known if name in set(sources)) or (MEMORY,)
        is_2026_9 = chunking == "2026.9"
        patterns = filter(None, (jsstring.trim(pattern).rstrip("/") for pattern in exclude.split(",")))
        return cls(
            workspace=Path(base),
            extra=tuple(dict.fromkeys(entry.path for entry in extra)),
            patterns=extra if any(entry.pattern for entry in extra) else (),
            sources=read,
            sessions=folder if transcripts.SOURCE in read else "",
            archives=archives,
            media=media,
            root_notes=ROOT_NOTES_2026_9 if is_2026_9 else ROOT_NOTES,
            never=REPAIRED if is_2026_9 else "",
            exclude=tuple(pattern.lstrip("/") if "/" in pattern else f"**/{pattern}" for pattern in patterns),
        )

    def excludes(self, stored: str) -> bool:
        """Return whether the setting `exclude` leaves out what is stored as `stored`, by its own path."""
        return bool(self.exclude) and fits_pattern(stored, list(self.exclude))

    def stored(self, absolute: str) -> str:
        """Return the path under which `absolute` is stored: relative to the workspace, "/" between names."""
        try:
            return storable(os.path.relpath(absolute, self.workspace))
        except ValueError:
            # Another drive letter: there is no relative path.
            return storable(absolute)


class PathVerdict(Struct, frozen=True):
    """Whether a note is read, and why: `rule` is "included", "missing", "folder" or the rule that leaves it out.

    `path` is the path under which it is, or would be, stored; `detail` is a sentence for a person, and `index` one
    about what the index has of it.
    """

    path: str
    included: bool
    rule: str
    detail: str
    index: str = ""


def scan(roots: Roots, settled: Settled | None = None, *, partly: bool = False) -> Scan:
    """Return every note on disk with size and modification time, and a reason for whatever else is there.

    Notes below a folder that are as `settled` has them are counted and not listed. Costs a listing of each
    folder and one stat a note. Raises WorkspaceError when the workspace has gone away, which is not the same as a
    workspace whose notes were deleted; `partly` returns the other roots' notes then, and `.` as left out.
    """
    base = str(roots.workspace)
    devices = devices_of(roots)
    admits = admitted(roots.patterns) if roots.patterns else None
    media = roots.media.limit if roots.media else None
    excluded = roots.excludes if roots.exclude else None
    walk = Walk(base, settled, never=roots.never, admits=admits, media=media, excluded=excluded)
    try:
        check_folder(base)
        if MEMORY in roots.sources:
            for name in roots.root_notes:
                walk.root(os.path.join(base, name), name, "note")
            # Where the workspace is an extra path itself, memory/ is read with it.
            if base not in roots.extra:
                walk.root(os.path.join(base, FOLDER), FOLDER, "folder")
    except WorkspaceError as error:
        if not partly:
            raise
        walk.skip(WORKSPACE, "unreadable" if os.path.lexists(base) else "missing root", error.message)
    if MEMORY in roots.sources:
        for absolute in roots.extra:
            walk.root(absolute, roots.stored(absolute), "extra")
    if roots.sessions:
        listed = transcripts.listing(roots.sessions, roots.archives)
        walk.notes += listed.notes
        walk.left_out += listed.left_out
    return walk.result()._replace(devices=devices)


def missing(roots: Roots, seen: Scan, known: Collection[str]) -> list[str]:
    """Return those of the `known` paths that are not on disk.

    `seen` is a scan that listed every note, or one that counted (`quiet`) those that are as known and listed the rest.
    """
    listed = {note.path for note in seen.notes}
    # A known note that is there is either counted or listed, so that none is missing where these are as many as known.
    if seen.quiet + sum(path in known for path in listed) == len(known):
        return []
    if seen.quiet:
        # Which notes were only counted is not known, so everything is listed to find out who is missing.
        listed = {note.path for note in scan(roots, partly=True).notes}
    return [path for path in known if path not in listed]


def beside(roots: Roots) -> list[str]:
    """Return where in the workspace Markdown files are that no root reaches, those at its top first."""
    found = (roots.stored(path) for path in notes_below(roots.workspace) if _root_of(roots, path) is None)
    return sorted(found, key=lambda path: (path.count("/"), path))


def why_path(roots: Roots, path: str, seen: Scan | None = None) -> PathVerdict:
    """Return why the file a person names is or is not a note, by the scan `seen` or a new one.

    `path` is absolute, or relative to the workspace; it need not exist.
    """
    seen = scan(roots) if seen is None else seen
    absolute = _absolute(roots, os.path.expanduser(path))
    stored = roots.stored(absolute)
    try:
        status = os.lstat(absolute)
    except (FileNotFoundError, NotADirectoryError):
        status = None
    except (OSError, ValueError) as error:
        return PathVerdict(stored, False, "unreadable", f"It cannot be looked at: {_cause(error)}.")
    # The note may be read under another path: the same inode tells. Where nothing is there, None equals no note's.
    inode = (status.st_dev, status.st_ino) if status is not None and status.st_ino else None
    for note in seen.notes:
        if note.path == stored or note.inode == inode:
            return PathVerdict(note.path, True, "included", _included(note, stored))
    # Every stored path begins with the empty text, so that all notes are below the workspace.
    start = "" if stored == "." else stored + "/"
    if below := sum(note.path.startswith(start) for note in seen.notes):
        return PathVerdict(stored, False, "folder", f"It is a folder; {below} of the notes are below it.")
    left_out = {file.path: file for file in seen.left_out}
    for path_above in upwards(stored):
        if reason := left_out.get(path_above):
            where = "" if path_above == stored else f"It lies below {path_above}. "
            return PathVerdict(stored, False, reason.rule, where + reason.detail)
    if status is None:
        return PathVerdict(stored, False, "missing", "There is no such file.")
    if stat.S_ISDIR(status.st_mode):
        return PathVerdict(stored, False, "folder", "It is a folder, and no note is below it.")
    if _root_of(roots, absolute) is not None:
        return PathVerdict(stored, False, "missing", "It was not there when the workspace was last scanned.")
    return PathVerdict(
        stored,
        False,
        "outside",
        "Only MEMORY.md, memory.md, the folder memory and the extraPaths of the configuration are read; "
        "memory-tui --whole yes reads every note of this folder.",
    )


def locate(roots: Roots, path: str, media: MediaRules | None = None) -> NoteFile:
    """Return the note `path` as it is on disk now; the path is stored (relative to the workspace) or absolute.

    Raises PathRefused for anything that is not a regular .md file, or one of `media`, inside the roots reached without
    a link, and its subclass NoteMissing when nothing is at an allowed path.
    """
    root, absolute, stored = destination(roots, path, media)
    try:
        status = os.lstat(absolute)
    except (FileNotFoundError, NotADirectoryError):
        raise NoteMissing(f"There is no note {stored}.", "Look for its path in the list of files.") from None
    except (OSError, ValueError) as error:
        raise PathRefused(f"{stored} cannot be looked at: {_cause(error)}.", _PLACES) from None
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{stored} is not a regular file.", _PLACES)
    return NoteFile.of(stored, absolute, status, root)


def located(roots: Roots, path: str) -> NoteFile:
    """Return the note, media file or transcript `path` as it is on disk now. Raises PathRefused."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.locate(roots.sessions, roots.archives, path)
    return locate(roots, path, roots.media)


def destination(roots: Roots, path: str, media: MediaRules | None = None) -> tuple[str, str, str]:
    """Return where the note `path` is or would be: the root that reaches it, its absolute and its stored path.

    Nothing need be there. Raises PathRefused for what is no path of a note, or of `media`, or lies behind a link.
    """
    name = jsstring.trim(path)
    if not name or "\0" in path:
        raise PathRefused("This is not a path of a note.", _PLACES)
    absolute = _absolute(roots, name)
    stored = roots.stored(absolute)
    if not stored.endswith(".md") and not (media is not None and media.limit(stored)):
        raise PathRefused(f"{name} is not a note.", f"Name one that ends in .md, such as memory/{Path(name).stem}.md.")
    root = _root_of(roots, absolute)
    try:
        if root is None:
            # Of what lies outside, or behind a link, nothing is told.
            base = str(roots.workspace)
            is_inside = _below(base, absolute) and not _link_below(base, absolute)
            if is_inside and not os.path.lexists(absolute):
                raise PathRefused(f"There is no note {stored}.", f"None can be there. {_PLACES}")
            raise PathRefused(f"{name} is outside the places where notes are read.", _PLACES)
        if roots.exclude and any(map(roots.excludes, upwards(stored))):
            raise PathRefused(f"The setting exclude leaves {stored} out.", "memory-tui config tells where it is set.")
        if link := _link_below(root, absolute):
            raise PathRefused(f"{roots.stored(link)} is a symbolic link, which is not followed.", _PLACES)
    except (OSError, ValueError) as error:
        raise PathRefused(f"{stored} cannot be looked at: {_cause(error)}.", _PLACES) from None
    return root, absolute, stored


_PLACES = "Name MEMORY.md, memory.md, a .md file below memory/, or one below the configured extraPaths."


def _cause(error: OSError | ValueError) -> str:
    """Return what the system says of an error, without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def check_folder(base: str) -> None:
    """Raise WorkspaceError where a workspace is no folder that can be listed."""
    try:
        with os.scandir(base):
            return
    except FileNotFoundError:
        message, step = f"There is no folder {base}.", "Give the folder that holds MEMORY.md and memory/."
    except NotADirectoryError:
        message, step = f"{base} is a file, not a folder.", "Give the folder that holds MEMORY.md and memory/."
    except PermissionError:
        message, step = f"The folder {base} may not be listed.", "Allow your user to read and enter it."
    except (OSError, ValueError) as error:
        message, step = f"The folder {base!r} cannot be listed: {_cause(error)}.", "Check the path and its file system."
    raise WorkspaceError(message, step)


def _absolute(roots: Roots, path: str) -> str:
    """Return the absolute form of a typed or stored path; of one with `\\xff` in it, the file that it stands for."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        # Where the locale names files in ASCII a stored path stands for its bytes.
        path = os.fsdecode(jsstring.well_formed(path).encode())
    absolute = os.path.normpath(os.path.join(str(roots.workspace), path))
    # Bytes of a name that are not UTF-8 are written `\xff`; a file whose name has these four signs in it comes first.
    if "\\x" in absolute and "\0" not in absolute and not os.path.lexists(absolute):
        raw = re.sub(rb"\\x([89a-f][0-9a-f])", lambda m: bytes.fromhex(m[1].decode()), os.fsencode(absolute))
        return os.fsdecode(raw) if os.path.lexists(raw) else absolute
    return absolute


def _below(folder: str, absolute: str) -> bool:
    """Tell whether a path lies below a folder, by its letters alone."""
    return absolute.startswith(folder.rstrip(os.sep) + os.sep)


def _root_of(roots: Roots, absolute: str) -> str | None:
    """Return the folder below which no link is followed on the way to `absolute`; None where no root holds it.

    It is the workspace for its own notes, the extra path, or the folder of an extra path that is a note.
    """
    base = str(roots.workspace)
    if _below(os.path.join(base, FOLDER), absolute) or absolute in {os.path.join(base, n) for n in roots.root_notes}:
        return base
    for extra in roots.extra:
        if absolute == extra:
            return os.path.dirname(extra)
        if _below(extra, absolute) and not os.path.islink(extra):
            return extra
    return None


def _link_below(root: str, absolute: str) -> str:
    """Return the first symbolic link on the way from `root` (excluded) to `absolute`, empty where there is none.

    `absolute` lies below `root`.
    """
    path = root.rstrip(os.sep)
    for name in absolute[len(path) + 1 :].split(os.sep):
        path = path + os.sep + name
        if os.path.islink(path):
            return path
    return ""


def upwards(stored: str) -> Iterator[str]:
    """Yield `stored`, then each folder above it."""
    while stored:
        yield stored
        stored = stored.rpartition("/")[0]


def _included(note: NoteFile, stored: str) -> str:
    """Return why a note is read, and as what where it was asked for by another path than its own."""
    if note.source == transcripts.SOURCE:
        why = "It is the transcript of a session."
    elif note.path in (*ROOT_NOTES, *ROOT_NOTES_2026_9):
        why = "It is a root note of the workspace."
    elif note.path.startswith(FOLDER + "/"):
        why = "It is a note below memory/."
    else:
        why = "It is a note below extraPaths, or of a folder that is memory as a whole."
    return why if note.path == stored else f"{why} It is read as {note.path}."


def read(note: NoteFile) -> Document:
    """Return `note` as it is indexed. Raises Unreadable."""
    if note.source == transcripts.SOURCE:
        return transcripts.read(note)
    return notes.read(note) if note.path.endswith(".md") else notes.read_media(note)


def document(roots: Roots, path: str) -> Document:
    """Return what a person reads at the stored `path`, a transcript with its lines where the file has them.

    Raises PathRefused, Unreadable.
    """
    note = located(roots, path)
    return transcripts.document(note) if note.source == transcripts.SOURCE else read(note)


def note(roots: Roots, path: str) -> Document:
    """Return the note `path`; never a transcript, because memory_get gives none. Raises PathRefused, Unreadable."""
    return notes.read(locate(roots, path))


# --- the states of roots -------------------------------------------------------------------------------------------

Standing = Literal["there", "gone", "unreadable", "another device", "watcher stalled"]
Identity = tuple[int, int]
"""Device and inode of a folder; of a single note the device alone, because saving often puts another file there."""


class RootState(Struct, frozen=True):
    """One root: its stored path (`.` is the workspace), where it is, its state, and a sentence where that is not there.

    gone: nothing is at its path. unreadable: it may not be listed, or its file system does not answer. another device:
    something else was mounted there, or what was mounted is not, and notes are missing since. watcher stalled: the
    notes can be read, but nobody notices when they are saved.
    """

    path: str
    absolute: str
    state: Standing = "there"
    detail: str = ""

    @property
    def readable(self) -> bool:
        """Return whether the notes below it can be read."""
        return self.state in ("there", "watcher stalled")

    @property
    def main(self) -> bool:
        """Return whether it is the workspace, or its folder of notes."""
        return self.path in (WORKSPACE, FOLDER)

    @property
    def next_step(self) -> str:
        """Return what a person can do about a root that is not there, and what happens then."""
        if self.state == "watcher stalled":
            return "A look every minute, and each search, still finds what changed; r looks at once."
        others = "" if self.main else ", or take it out of the configuration"
        return f"The index keeps what it held of it. Bring it back{others}; it is indexed again as soon as it is there."

    def unreadable(self, cause: str) -> RootState:
        """Return the state of the same root where it cannot be read."""
        return replace(self, state="unreadable", detail=f"{self.absolute} cannot be read: {cause}.")


Probe = tuple[RootState, Identity | None]
"""What one examination of a root came to, and what tells it from whatever is at its path another time."""


def probe(path: str, absolute: str, *, expected: bool) -> Probe | None:
    """Examine a root: the folder of notes and that of transcripts need not exist.

    None where one does not, unless it is `expected`, because notes were read there before.
    """
    root = RootState(path, absolute)
    try:
        return root, _identity(root, expected)
    except (FileNotFoundError, NotADirectoryError):
        if path in (FOLDER, transcripts.SOURCE) and not expected:
            return None
        what = f"{absolute} is not there: it was deleted, renamed or unmounted."
        return replace(root, state="gone", detail=what), None
    except (OSError, ValueError) as error:
        return root.unreadable(_cause(error)), None


def _identity(root: RootState, expected: bool) -> Identity:
    """Return what tells what is at a root from whatever was, or will be, at its path.

    Raises OSError where it cannot be read, and ValueError where something else is at its path: a file as the workspace,
    or a link where a root was `expected`, because notes were read there before.
    """
    # The workspace may be a link; below it none is followed.
    status = os.stat(root.absolute) if root.path == WORKSPACE else os.lstat(root.absolute)
    if stat.S_ISLNK(status.st_mode) and expected:
        raise ValueError("a symbolic link took its place, which is not followed")
    if stat.S_ISDIR(status.st_mode):
        # It is opened to see whether it may be listed. Its entries are not read: of a thousand notes
        # even the first one takes half a millisecond.
        os.scandir(root.absolute).close()
    elif root.path == WORKSPACE:
        raise ValueError("it is a file, not a folder")
    elif stat.S_ISREG(status.st_mode):
        # Whether it may be read; O_NONBLOCK: a pipe put in its place must not stop us.
        os.close(os.open(root.absolute, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)))
        return status.st_dev, 0
    return status.st_dev, status.st_ino


def root_places(roots: Roots) -> dict[str, str]:
    """Return the absolute path of each root by its stored path, the workspace first."""
    base = str(roots.workspace)
    places = {WORKSPACE: base, FOLDER: os.path.join(base, FOLDER)}
    for extra in roots.extra:
        places.setdefault(roots.stored(extra), extra)
    return places | ({transcripts.SOURCE: roots.sessions} if roots.sessions else {})


def devices_of(roots: Roots) -> dict[str, int]:
    """Map each root that is there to its device; the workspace is `.`, wherever a link in its place leads."""
    devices = {}
    for path, absolute in root_places(roots).items():
        with suppress(OSError, ValueError):
            status = os.stat(absolute) if path == WORKSPACE else os.lstat(absolute)
            if not stat.S_ISLNK(status.st_mode):
                devices[path] = status.st_dev
    return devices
