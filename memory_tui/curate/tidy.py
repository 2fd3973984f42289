"""Changes that make room: delete lines, keep one of several duplicates, archive old logs, rename, move to the trash.

Archived logs go to memory/archive/memory/. They stay readable and searchable, and they go on ageing: OpenClaw 2026.3
ages a note by the day in its name only directly below a folder called memory, so that in memory/archive/ alone an old
log would count as evergreen and rank above newer ones.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory_tui.curate.emptied import said, without
from memory_tui.curate.promote import Spot
from memory_tui.curate.record import Change, FileChange
from memory_tui.errors import EditRefused
from memory_tui.workspace.document import shown_day

ARCHIVE = "memory/archive/memory"


@dataclass(frozen=True, slots=True)
class Stored:
    """A note as a whole: its bytes, mode and time."""

    data: bytes
    mode: int = 0
    mtime_ns: int = 0


def delete_lines(spots: Iterable[Spot], *, kind: str = "delete", title: str = "", keep: Spot | None = None) -> Change:
    """Delete lines of one or several notes; a line that two spots name is deleted once.

    Headings that have nothing left below them go too, but none that is a line of `keep`.
    """
    by_path: dict[str, list[Spot]] = defaultdict(list)
    for spot in spots:
        by_path[spot.path].append(spot)
    if not by_path:
        raise EditRefused("No lines are chosen.", "Choose at least one.")
    files: list[FileChange] = []
    notes: list[str] = []
    for path, found in by_path.items():
        left, emptied = _without(found, keep)
        files.append(FileChange(path, found[0].data, left))
        notes += said(emptied)
    what = ", ".join(str(spot) for found in by_path.values() for spot in found[:3])
    return Change(kind, title or f"Delete {what}", tuple(files), tuple(notes))


def merge_duplicates(keep: Spot, others: Sequence[Spot]) -> Change:
    """Keep the lines of one spot and delete the others. Raises EditRefused when one of them is the kept one."""
    if any(spot.path == keep.path and spot.first <= keep.last and keep.first <= spot.last for spot in others):
        raise EditRefused(f"{keep} is to be kept and deleted at once.", "Choose which of them stays.")
    keep.lines()
    return delete_lines(others, kind="merge", title=f"Keep {keep}, delete {len(others)} of the same", keep=keep)


def trash_lines(spot: Spot) -> Change:
    """Move lines to the trash: they are deleted, and the journal can bring them back."""
    return delete_lines([spot], kind="trash", title=f"Move {spot} to the trash")


def trash(path: str, note: Stored) -> Change:
    """Move a note to the trash: it is deleted, and the journal can bring it back."""
    return Change("trash", f"Move {path} to the trash", (FileChange(path, note.data, None, note.mode, note.mtime_ns),))


def rename(path: str, new: str, note: Stored) -> Change:
    """Give a note another path, with the same bytes, mode and time. Raises EditRefused for the same path."""
    if path == new:
        raise EditRefused(f"The note is called {path} already.", "Give another name.")
    return Change("rename", f"Rename {path} to {new}", _moved(path, new, note))


def moves(change: Change) -> dict[str, str]:
    """Which notes a change moves, and where to: each is a note that comes, followed by one that goes."""
    return {
        gone.path: new.path
        for new, gone in pairwise(change.files)
        if new.before is None and gone.after is None and new.after == gone.before
    }


def archive(notes: Mapping[str, Stored], taken: Iterable[str], today: dt.date, days: int) -> Change:
    """Move daily logs older than `days` to the archive; `taken` are the paths that exist.

    Only logs directly below memory/ with a day in their name are moved. Raises EditRefused when there are none.
    """
    old = [
        path
        for path in sorted(notes)
        if path.count("/") == 1
        and path.startswith("memory/")
        and (day := shown_day(path)) is not None
        and (today - day).days > days
    ]
    exists = set(taken)
    targets = {path: f"{ARCHIVE}/{path.rpartition('/')[2]}" for path in old}
    notes_on = tuple(
        f"{target} is there already, so {path} stays." for path, target in targets.items() if target in exists
    )
    moved = [path for path in old if targets[path] not in exists]
    if not moved:
        raise EditRefused(f"No daily log is older than {days} days.", " ".join(notes_on) or "Nothing was moved.")
    files = tuple(file for path in moved for file in _moved(path, targets[path], notes[path]))
    many = f"{len(moved)} logs" if len(moved) > 1 else moved[0]
    return Change("archive", f"Archive {many} older than {days} days to {ARCHIVE}/", files, notes_on)


def _moved(path: str, new: str, note: Stored) -> tuple[FileChange, FileChange]:
    return (FileChange(new, None, note.data, note.mode, note.mtime_ns), FileChange(path, note.data, None))


def _without(spots: Sequence[Spot], keep: Spot | None) -> tuple[bytes, tuple[str, ...]]:
    """What is left of the note of `spots`, and the titles of the headings that go with them."""
    gone = {number for spot in spots if spot.lines() for number in range(spot.first, spot.last + 1)}
    kept = range(keep.first, keep.last + 1) if keep is not None and keep.path == spots[0].path else ()
    left, titles = without(spots[0].lines(), gone, kept)
    return left.data, titles
