"""What times of files can tell, and what they cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_tui.workspace.walk import Settled

if TYPE_CHECKING:
    from memory_tui.index.store import FileRow

TICK_NS = 20_000_000
"""Longest step of a file system's clock: a note saved twice within it can have one modification time for both."""
SKEW_NS = 2_000_000_000
"""A time further ahead than this was set by somebody, it is not the tick of a save."""


def settle(rows: Iterable[FileRow]) -> Settled:
    """What the disk has to say of notes for their rows to hold without another look."""
    folders: dict[str, dict[str, tuple[int, int, int]]] = {}
    for row in rows:
        read = round(row.indexed_at * 1e9)
        if row.state == "ok" and row.hash and not -TICK_NS < row.mtime_ns - read < SKEW_NS:
            folder, slash, name = row.path.rpartition("/")
            folders.setdefault(folder + slash, {})[name] = row.size, row.mtime_ns, read
    return folders
