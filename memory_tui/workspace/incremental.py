"""An incremental scan visits only paths that changed since the last full scan.

It takes everything else to be unchanged, so a full scan has to follow now and then. A change that may concern more
than the named files (a folder that came or went, a link in its place, a name stored in other letters) needs a full
scan, too.
"""

# ruff: noqa: PTH112, PTH114, PTH118
# Paths are strings: names may hold undecodable bytes, and links must not be resolved.

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from memory_tui.workspace.roots import Roots, full_scan
from memory_tui.workspace.scan import Rule, Scan, ScannedFolders, Settled, Walk, storable

_OF_MORE: frozenset[Rule] = frozenset({"unreadable", "duplicate", "missing root"})
"""Rules by which a folder may have been left out, with everything below it."""


class FullScan(Struct, frozen=True):
    """What a full scan found, and which folders it visited."""

    scan: Scan
    folders: ScannedFolders

    @classmethod
    def of(cls, roots: Roots, settled: Settled | None = None) -> FullScan:
        """Scan all roots. Raises WorkspaceError."""
        return cls(*full_scan(roots, settled))

    def updated(
        self, roots: Roots, named: Iterable[str], unsettled: Iterable[str], settled: Settled
    ) -> FullScan | None:
        """The scan as of now, if nothing but the absolute paths `named` changed; None where that cannot be told.

        `unsettled` are the stored paths of indexed notes that are not `settled`: each scan visits them. Every other
        indexed note was there in this scan. Costs a few stats for each path. Raises
        WorkspaceError.
        """
        if not self.folders:
            return None
        try:
            return _IncrementalScan(roots, self, settled).run({*named, *self._absolute(roots, unsettled)})
        except (_Elsewhere, OSError):
            # A full scan finds out what it is.
            return None

    def _absolute(self, roots: Roots, stored: Iterable[str]) -> Iterator[str]:
        """Where the notes stored as `stored` are, but for those that each scan visits anyway."""
        folders = {listed.start: folder for folder, listed in self.folders.items()}
        always = {*roots.root_notes, *map(roots.stored, roots.extra)}
        for path in stored:
            above, slash, name = path.rpartition("/")
            if above + slash in folders:
                yield os.path.join(folders[above + slash], name)
            elif path not in always:
                raise _Elsewhere


class _Elsewhere(Exception):
    """Something could have changed beside what was named."""


class _IncrementalScan:
    def __init__(self, roots: Roots, before: FullScan, settled: Settled) -> None:
        self._roots = roots
        self._before = before
        self._settled = settled
        self._walk = Walk(str(roots.workspace), folders=before.folders)
        self._visited: set[str] = set()
        self._left = {left.path: left for left in before.scan.left_out}

    def run(self, named: Collection[str]) -> FullScan:
        base = str(self._roots.workspace)
        os.lstat(base)
        self._visited.update(self._roots.root_notes)
        for name in self._roots.root_notes:
            self._walk.root_note(os.path.join(base, name), name)
        singles = {os.path.join(base, name) for name in self._roots.root_notes}
        singles.update(path for path in self._roots.extra if self._single(path))
        for path in named:
            if path not in singles:
                self._path(path)
        return FullScan(self._result(), self._before.folders)

    def _single(self, extra: str) -> bool:
        """Visit one of extraPaths; whether it is no folder, and was none."""
        stored = self._roots.stored(extra)
        if extra in self._before.folders:
            if not self._same_folder(extra):
                raise _Elsewhere
            return False
        if os.path.isdir(extra) and not os.path.islink(extra):
            raise _Elsewhere
        self._visited.add(stored)
        self._walk.extra(extra, stored)
        return True

    def _same_folder(self, folder: str) -> bool:
        listed, status = self._before.folders[folder], os.lstat(folder)
        return stat.S_ISDIR(status.st_mode) and listed.key == (status.st_dev, status.st_ino)

    def _path(self, path: str) -> None:
        folder, name = os.path.split(path)
        listed = self._before.folders.get(folder)
        if listed is None or path in self._before.folders or storable(name) != name or "\\" in name:
            raise _Elsewhere
        stored = listed.start + name
        left = self._left.get(stored)
        if (left and left.rule in _OF_MORE) or not self._same_folder(folder):
            raise _Elsewhere
        self._visited.add(stored)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(status.st_mode):
            raise _Elsewhere
        self._walk.named(path, stored, status, listed.root)

    def _result(self) -> Scan:
        settled, visited = self._settled, self._visited
        quiet = sum(map(len, settled.values())) - sum(_entry(settled, path) is not None for path in visited)
        found, walked = [], self._walk.result()
        for note in walked.found:
            was = _entry(settled, note.path)
            if was and was[:2] == (note.size, note.mtime_ns) and was[2] >= note.ctime_ns:
                quiet += 1
            else:
                found.append(note)
        there: set[str] = {note.path for note in walked.found}
        left = [left for path, left in self._left.items() if path not in visited]
        return Scan(
            tuple(found),
            tuple(sorted([*left, *walked.left_out])),
            quiet,
            tuple(sorted(path for path in visited if path not in there)),
        )


def _entry(settled: Settled, path: str) -> tuple[int, int, int] | None:
    folder, slash, name = path.rpartition("/")
    return settled.get(folder + slash, {}).get(name)
