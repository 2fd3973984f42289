"""What of the notes on disk the index knows; computed from a scan each time, so that nothing stored can lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memory_tui.errors import Unreadable
from memory_tui.index.deltas import Thresholds, waits
from memory_tui.index.store import FileRow
from memory_tui.settings import Settings
from memory_tui.workspace import sources
from memory_tui.workspace.roots import Found, LeftOut, Scan

Difference = Literal["", "new", "changed", "rebuild", "unsure", "failed"]

_TICK_NS = 20_000_000
"""Longest step of a file system's clock: a note saved twice within it can have one modification time for both."""
_SKEW_NS = 2_000_000_000
"""A time further ahead than this was set by somebody, it is not the tick of a save."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A note that is not searchable as it is on disk: pending (`detail` says new, changed, ...) or failed (why)."""

    path: str
    state: Literal["pending", "failed"]
    detail: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """How many notes are `fresh`, those that are not by path, and what is no note."""

    fresh: int
    stale: Mapping[str, FileState]
    left_out: tuple[LeftOut, ...]

    @property
    def pending(self) -> tuple[FileState, ...]:
        """Notes that the next sync will index or forget."""
        return tuple(state for state in self.stale.values() if state.state == "pending")

    @property
    def failed(self) -> tuple[FileState, ...]:
        """Notes that could not be indexed."""
        return tuple(state for state in self.stale.values() if state.state == "failed")


def difference(found: Found, row: FileRow | None) -> Difference:
    """How a note on disk differs from its row by size and time; unsure when only its text can tell."""
    if row is None:
        return "new"
    if row.state != "ok":
        return "failed"
    if not row.hash:
        return "rebuild"
    if found.mtime_ns != row.mtime_ns or found.size != row.size:
        return "changed"
    if -_TICK_NS < found.mtime_ns - row.indexed_at * 1e9 < _SKEW_NS:
        return "unsure"
    return ""


def gone(scan: Scan, known: Mapping[str, FileRow]) -> tuple[list[FileRow], list[FileState]]:
    """Rows whose note is not on disk: those that were deleted, and those whose place cannot be looked at now.

    A folder that may not be listed, or an extra path that has vanished, can come back: its notes were not deleted.
    """
    found = {note.path for note in scan.found}
    missing = [row for path, row in known.items() if path not in found]
    out_of_reach = {left.path: left for left in scan.left_out if _can_come_back(left)} if missing else {}
    deleted: list[FileRow] = []
    held: list[FileState] = []
    for row in missing:
        place = next((out_of_reach[path] for path in _upwards(row.path) if path in out_of_reach), None)
        if place is None:
            deleted.append(row)
        else:
            held.append(FileState(row.path, "failed", f"{place.path}: {place.detail}"))
    return deleted, held


def compare(scan: Scan, known: Mapping[str, FileRow], settings: Settings | None = None) -> Freshness:
    """The freshness of every note of `scan`, given the rows of the index by path.

    With `settings` a changed transcript says what it waits for.
    """
    thresholds = Thresholds.of(settings) if settings else None
    stale: dict[str, FileState] = {}
    for note in scan.found:
        row = known.get(note.path)
        differs = difference(note, row)
        if differs == "unsure" and row is not None:
            differs = _reread(note, row)
        if differs == "failed" and row is not None:
            stale[note.path] = FileState(note.path, "failed", row.detail)
        elif differs:
            stale[note.path] = FileState(note.path, "pending", (thresholds and waits(note, row, thresholds)) or differs)
    fresh = len(scan.found) - len(stale)
    deleted, held = gone(scan, known)
    stale.update((row.path, FileState(row.path, "pending", "deleted")) for row in deleted)
    stale.update((state.path, state) for state in held)
    return Freshness(fresh, stale, scan.left_out)


def _reread(note: Found, row: FileRow) -> Difference:
    try:
        return "" if sources.read(note).hash == row.hash else "changed"
    except Unreadable:
        return "changed"


def _can_come_back(left: LeftOut) -> bool:
    outside = left.path.startswith(("../", "/")) or ":" in left.path[:3]
    return left.rule == "unreadable" or (left.rule == "missing root" and outside)


def _upwards(path: str) -> list[str]:
    """`path` and each folder above it."""
    paths = [path]
    while path := path.rpartition("/")[0]:
        paths.append(path)
    return paths
