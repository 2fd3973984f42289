"""The state of a root: there, gone, unreadable or stalled."""

# ruff: noqa: PTH116, PTH118
# Paths are strings, as in `roots`.

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.workspace import transcripts
from memory_tui.workspace.roots import FOLDER, WORKSPACE, Roots

Standing = Literal["there", "gone", "unreadable", "another device", "watcher stalled"]


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
        """Whether the notes below it can be read."""
        return self.state in ("there", "watcher stalled")

    @property
    def main(self) -> bool:
        """Whether it is the workspace, or its folder of notes."""
        return self.path in (WORKSPACE, FOLDER)


Identity = tuple[int, int]
"""Device and inode of a folder; of a single note the device alone, because saving often puts another file there."""


class Probe(NamedTuple):
    """What one examination of a root came to; `identity` tells it from whatever is at its path another time."""

    root: RootState
    identity: Identity | None


def probe(
    roots: Roots, expected: Collection[str] = (), begin: Callable[[RootState], None] | None = None
) -> list[Probe]:
    """Examine every root; `begin` hears of each before, because a file system that hangs never comes back.

    The folder of notes and that of transcripts need not exist: they count where they do, or where `expected` names
    them, because notes were read there before.
    """
    found: list[Probe] = []
    for root in _roots(roots):
        if begin is not None:
            begin(root)
        one = _examined(root, expected)
        if root.path in (FOLDER, transcripts.SOURCE) and one.root.state == "gone" and root.path not in expected:
            continue
        found.append(one)
        if root.path == FOLDER and not found[0].root.readable:
            # What is to be said of it is said of the workspace.
            found.pop()
    return found


def lost(states: Iterable[RootState]) -> tuple[RootState, ...]:
    """Those of `states` that are not there; what cannot be read comes first, and the workspace before others."""
    return tuple(sorted((s for s in states if s.state != "there"), key=lambda root: (root.readable, not root.main)))


def next_step(root: RootState) -> str:
    """What a person can do about a root that is not there, and what happens then."""
    if root.state == "watcher stalled":
        return "A look every minute, and each search, still finds what changed; r looks at once."
    others = "" if root.main else ", or take it out of the configuration"
    return f"The index keeps what it held of it. Bring it back{others}; it is indexed again as soon as it is there."


def root_of(path: str, states: Iterable[RootState]) -> RootState | None:
    """The root that the note stored as `path` lies below: the nearest of `states`."""
    return max((root for root in states if _covers(root.path, path)), key=lambda root: len(root.path), default=None)


def stalled(states: Iterable[RootState], reason: str) -> tuple[RootState, ...]:
    """`states` when nobody notices saved files any more, for this `reason`."""
    detail = f"Saved files are not noticed: {reason}."
    return tuple(replace(s, state="watcher stalled", detail=detail) if s.state == "there" else s for s in states)


def silent(root: RootState) -> RootState:
    """The state of a root whose file system does not answer."""
    return replace(root, state="unreadable", detail=f"{root.absolute} cannot be read: its file system does not answer.")


def elsewhere(root: RootState) -> RootState:
    """The state of a root that lies on another device than it did."""
    detail = f"{root.absolute} is on another device than before: was something mounted or unmounted?"
    return replace(root, state="another device", detail=detail)


def _roots(roots: Roots) -> list[RootState]:
    base = str(roots.workspace)
    found = [RootState(WORKSPACE, base), RootState(FOLDER, os.path.join(base, FOLDER))]
    found += [RootState(roots.stored(extra), extra) for extra in roots.extra]
    if roots.sessions:
        found.append(RootState(transcripts.SOURCE, roots.sessions))
    return list({root.path: root for root in reversed(found)}.values())[::-1]


def _examined(root: RootState, expected: Collection[str]) -> Probe:
    path = root.absolute
    try:
        # The workspace may be a link; below it none is followed.
        status = os.stat(path) if root.path == WORKSPACE else os.lstat(path)
        if stat.S_ISLNK(status.st_mode) and root.path in expected:
            return Probe(_unreadable(root, "a symbolic link took its place, which is not followed"), None)
        if stat.S_ISDIR(status.st_mode):
            # Its entries are not read: of a thousand notes even the first one takes half a millisecond.
            os.scandir(path).close()
        elif root.path == WORKSPACE:
            return Probe(_unreadable(root, "it is a file, not a folder"), None)
        elif stat.S_ISREG(status.st_mode):
            os.close(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)))
            return Probe(root, (status.st_dev, 0))
    except (FileNotFoundError, NotADirectoryError):
        gone = f"{path} is not there: it was deleted, renamed or unmounted."
        return Probe(replace(root, state="gone", detail=gone), None)
    except (OSError, ValueError) as error:
        return Probe(_unreadable(root, (isinstance(error, OSError) and error.strerror) or str(error)), None)
    return Probe(root, (status.st_dev, status.st_ino))


def _unreadable(root: RootState, cause: str) -> RootState:
    return replace(root, state="unreadable", detail=f"{root.absolute} cannot be read: {cause}.")


def _covers(root: str, path: str) -> bool:
    if root == WORKSPACE:
        return not path.startswith(("../", "/")) and ":" not in path[:3]
    return path == root or path.startswith(f"{root}/")
