"""An incremental scan visits only paths that changed since the last full scan.

What is not named is taken to be as it was: a look at everything has to follow now and then. What could concern more
than the named files themselves (a folder that came or went, a link in its place, a name stored in other letters) is
left to a look at everything, too.
"""

# ruff: noqa: PTH112, PTH114, PTH118
# Paths are strings: names may hold undecodable bytes, and links must not be resolved.

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from memory_tui.workspace.roots import Roots, survey
from memory_tui.workspace.scan import Places, Rule, Scan, Settled, Walk, storable

_OF_MORE: frozenset[Rule] = frozenset({"unreadable", "duplicate", "missing root"})
"""Rules by which a folder may have been left out, with everything below it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a look at everything saw, and which folders it went through."""

    scan: Scan
    places: Places

    @classmethod
    def taken(cls, roots: Roots, settled: Settled | None = None) -> Picture:
        """A look at everything. Raises WorkspaceError."""
        return cls(*survey(roots, settled))

    def again(self, roots: Roots, named: Iterable[str], unsettled: Iterable[str], settled: Settled) -> Picture | None:
        """The picture as it is now, if nothing but the absolute paths `named` changed; None where that cannot be told.

        `unsettled` are the stored paths of indexed notes that are not `settled`, and have to be looked at each time.
        Every other indexed note was there when this picture was taken. Costs a few stats for each path. Raises
        WorkspaceError.
        """
        if not self.places:
            return None
        try:
            return _Again(roots, self, settled).look({*named, *self._absolute(roots, unsettled)})
        except (_Elsewhere, OSError):
            # What it is will be said by a look at everything.
            return None

    def _absolute(self, roots: Roots, stored: Iterable[str]) -> Iterator[str]:
        """Where the notes stored as `stored` are, but for those that are looked at each time anyway."""
        folders = {place.start: folder for folder, place in self.places.items()}
        always = {*roots.root_notes, *map(roots.stored, roots.extra)}
        for path in stored:
            above, slash, name = path.rpartition("/")
            if above + slash in folders:
                yield os.path.join(folders[above + slash], name)
            elif path not in always:
                raise _Elsewhere


class _Elsewhere(Exception):
    """Something could have changed beside what was named."""


class _Again:
    def __init__(self, roots: Roots, before: Picture, settled: Settled) -> None:
        self._roots = roots
        self._before = before
        self._settled = settled
        self._walk = Walk(str(roots.workspace), places=before.places)
        self._looked: set[str] = set()
        self._left = {left.path: left for left in before.scan.left_out}

    def look(self, named: Collection[str]) -> Picture:
        base = str(self._roots.workspace)
        os.lstat(base)
        self._looked.update(self._roots.root_notes)
        for name in self._roots.root_notes:
            self._walk.root_note(os.path.join(base, name), name)
        singles = {os.path.join(base, name) for name in self._roots.root_notes}
        singles.update(path for path in self._roots.extra if self._single(path))
        for path in named:
            if path not in singles:
                self._path(path)
        return Picture(self._result(), self._before.places)

    def _single(self, extra: str) -> bool:
        """Look at one of extraPaths; whether it is no folder, and was none."""
        stored = self._roots.stored(extra)
        if extra in self._before.places:
            if not self._same_folder(extra):
                raise _Elsewhere
            return False
        if os.path.isdir(extra) and not os.path.islink(extra):
            raise _Elsewhere
        self._looked.add(stored)
        self._walk.extra(extra, stored)
        return True

    def _same_folder(self, folder: str) -> bool:
        place, status = self._before.places[folder], os.lstat(folder)
        return stat.S_ISDIR(status.st_mode) and place.key == (status.st_dev, status.st_ino)

    def _path(self, path: str) -> None:
        folder, name = os.path.split(path)
        place = self._before.places.get(folder)
        if place is None or path in self._before.places or storable(name) != name or "\\" in name:
            raise _Elsewhere
        stored = place.start + name
        left = self._left.get(stored)
        if (left and left.rule in _OF_MORE) or not self._same_folder(folder):
            raise _Elsewhere
        self._looked.add(stored)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(status.st_mode):
            raise _Elsewhere
        self._walk.named(path, stored, status, place.root)

    def _result(self) -> Scan:
        settled, looked = self._settled, self._looked
        quiet = sum(map(len, settled.values())) - sum(_entry(settled, path) is not None for path in looked)
        found, walked = [], self._walk.result()
        for note in walked.found:
            was = _entry(settled, note.path)
            if was and was[:2] == (note.size, note.mtime_ns) and was[2] >= note.ctime_ns:
                quiet += 1
            else:
                found.append(note)
        there: set[str] = {note.path for note in walked.found}
        left = [left for path, left in self._left.items() if path not in looked]
        return Scan(
            tuple(found),
            tuple(sorted([*left, *walked.left_out])),
            quiet,
            tuple(sorted(path for path in looked if path not in there)),
        )


def _entry(settled: Settled, path: str) -> tuple[int, int, int] | None:
    folder, slash, name = path.rpartition("/")
    return settled.get(folder + slash, {}).get(name)
