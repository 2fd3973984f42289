"""A mass deletion is held back until the notes are certainly gone.

A folder that may not be listed, a root that has vanished or is an empty mount point, a synchronising program that was
logged out: none of them is a thousand deletions. What is doubtful stays in the index until a person agrees.
"""

# ruff: noqa: PTH116
# Paths are strings, as in `workspace.roots`.

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from memory_tui.index.rows import IndexedNote
from memory_tui.workspace import transcripts
from memory_tui.workspace.roots import FOLDER, MEMORY, WORKSPACE, Roots, reachable
from memory_tui.workspace.scan import Scan

MANY = 5
"""Fewer notes that vanish at once are believed, because a person deletes a few at a time; not so a root with all."""
_NAMED = 5

KEY = "devices"
"""Where an index keeps the devices in `meta`."""

Devices = Mapping[str, int]
"""The device (`st_dev`) that each root was on, by its stored path."""


class Shrink(Struct, frozen=True):
    """`missing` of `known` notes vanished at once: why that is doubted, and a few of their paths."""

    missing: int
    known: int
    reason: str
    examples: tuple[str, ...] = ()


class RetainedNote(NamedTuple):
    """A note that is not on disk and stays in the index all the same: the state to show, and why."""

    path: str
    state: Literal["failed", "missing root", "pending"]
    detail: str


class VanishedNotes(Struct):
    """What `sort_out` found: rows that are `deleted`, notes that are `retained`, and what a person is asked first.

    `moved` are the stored paths of roots on another device than before, where notes are missing.
    """

    deleted: list[IndexedNote] = field(default_factory=list)
    retained: list[RetainedNote] = field(default_factory=list)
    shrink: Shrink | None = None
    moved: set[str] = field(default_factory=set)


def sort_out(
    scan: Scan,
    known: Mapping[str, IndexedNote],
    roots: Roots | None = None,
    devices: Devices | None = None,
    accepted: bool = False,
) -> VanishedNotes:
    """Sort the rows of `known` that `scan` has not found; `accepted` says that a person agreed to forget them.

    Without `roots` only what is out of reach is held. A root that lies on another device than in `devices` was mounted
    or unmounted.
    """
    missing = _missing(scan, known, roots)
    if not missing:
        return VanishedNotes()
    gone = VanishedNotes()
    moved = _moved(roots, devices or {}) if roots and not accepted else {}
    doubts = moved | _unreachable(scan, roots, accepted)
    for row in missing:
        place = next((path for path in _upwards(row.path) if path in doubts), None)
        if place is None:
            gone.deleted.append(row)
            continue
        gone.retained.append(doubts[place]._replace(path=row.path))
        if doubts[place] is moved.get(place):
            gone.moved.add(place)
    if roots is not None and not accepted:
        _doubt(gone, known, roots, {left.path for left in scan.left_out if left.rule == "missing root"})
    return gone


def _missing(scan: Scan, known: Mapping[str, IndexedNote], roots: Roots | None) -> list[IndexedNote]:
    """The rows whose notes are not on disk."""
    found = {note.path for note in scan.found}
    here = scan.quiet + sum(path in known for path in found)
    if here == len(known):
        return []
    named = [known[path] for path in scan.missing if path in known]
    if named and here + len(named) == len(known):
        return named
    if scan.quiet and roots is not None:
        # Some are missing: which ones only a list of all of them can tell.
        found = {note.path for note in reachable(roots).found}
    return [row for path, row in known.items() if path not in found]


def in_scope(roots: Roots, path: str) -> bool:
    """Whether a note at the stored `path` would be read, as the roots are now."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.SOURCE in roots.sources
    places = (FOLDER, *(roots.stored(extra) for extra in roots.extra))
    inside = path in roots.root_notes or any(path == place or path.startswith(place + "/") for place in places)
    return inside and MEMORY in roots.sources


def devices(roots: Roots) -> dict[str, int]:
    """The device of each root that is there; that of the workspace as `.`, wherever a link in its place leads."""
    places = {FOLDER: str(roots.workspace / FOLDER)} | {roots.stored(extra): extra for extra in roots.extra}
    if roots.sessions:
        places[transcripts.SOURCE] = roots.sessions
    found = {}
    for stored, absolute in [(WORKSPACE, str(roots.workspace)), *places.items()]:
        try:
            status = os.stat(absolute) if stored == WORKSPACE else os.lstat(absolute)
        except (OSError, ValueError):
            continue
        if not stat.S_ISLNK(status.st_mode):
            found[stored] = status.st_dev
    return found


def to_text(found: Devices) -> str:
    """`found` as it is kept in an index."""
    return json.dumps(found, sort_keys=True)


def from_text(text: object) -> dict[str, int]:
    """What `to_text` wrote; nothing of anything else."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return {str(k): v for k, v in value.items() if isinstance(v, int)} if isinstance(value, dict) else {}


def _doubt(gone: VanishedNotes, known: Mapping[str, IndexedNote], roots: Roots, vanished: set[str]) -> None:
    """Hold what was to be deleted, where that is more than half of what should be there, or a whole root."""
    here = [row for row in gone.deleted if in_scope(roots, row.path)]
    should = sum(in_scope(roots, path) for path in known) if len(here) >= MANY or vanished else 0
    if len(here) < MANY or 2 * len(here) <= should:
        here = [row for row in here if not vanished.isdisjoint(_upwards(row.path))]
    if not here:
        return
    reason = f"{len(here):,} of {should:,} notes vanished at once"
    gone.shrink = Shrink(len(here), should, reason, tuple(sorted(row.path for row in here)[:_NAMED]))
    doubtful = {row.id for row in here}
    gone.deleted = [row for row in gone.deleted if row.id not in doubtful]
    gone.retained += [RetainedNote(row.path, "pending", f"deleted? {reason}") for row in here]


def _unreachable(scan: Scan, roots: Roots | None, accepted: bool) -> dict[str, RetainedNote]:
    """Places whose notes can come back; a root inside the workspace that is missing was mostly deleted.

    A link in place of a folder whose notes were read is nobody's wish to forget them.
    """
    folders = {FOLDER, *map(roots.stored, roots.extra)} if roots else set()
    return {
        left.path: RetainedNote(
            left.path, "failed" if left.rule == "unreadable" else "missing root", f"{left.path}: {left.detail}"
        )
        for left in scan.left_out
        if left.rule == "unreadable"
        or (left.rule == "symlink" and not accepted and left.path in folders)
        or (left.rule == "missing root" and not accepted and (left.path == WORKSPACE or _outside(left.path)))
    }


def _moved(roots: Roots, before: Devices) -> dict[str, RetainedNote]:
    """Roots that are on another device than they were."""
    now = devices(roots)
    return {
        stored: RetainedNote(
            stored, "missing root", f"{stored} is on another device than before: was something mounted or unmounted?"
        )
        for stored, device in before.items()
        if stored in now and now[stored] != device
    }


def _outside(path: str) -> bool:
    return path.startswith(("../", "/")) or ":" in path[:3]


def _upwards(path: str) -> list[str]:
    """`path` and each folder above it, the workspace last where it is below that."""
    paths = [path]
    while path := path.rpartition("/")[0]:
        paths.append(path)
    return paths if _outside(paths[0]) else [*paths, WORKSPACE]
