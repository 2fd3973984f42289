"""Freshness compares the index with the files on disk; notes that vanished are forgotten only when certainly gone.

A folder that may not be listed, a root that has vanished or is an empty mount point, a synchronising program that was
logged out: none of them is a thousand deletions. What is doubtful stays in the index until a person agrees.
"""

# ruff: noqa: PTH116
# Paths are strings, as in `workspace.roots`.

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from memory_tui import profiles
from memory_tui.index import abilities, schema
from memory_tui.index.note_state import FileState, State, Thresholds, difference, state_of
from memory_tui.index.rows import IndexedNote
from memory_tui.index.schema import Recipe
from memory_tui.providers.base import Identity, Provider
from memory_tui.settings import Settings
from memory_tui.workspace import transcripts
from memory_tui.workspace.chunking import MAX_INPUT_BYTES
from memory_tui.workspace.roots import FOLDER, MEMORY, WORKSPACE, Roots, reachable, root_places
from memory_tui.workspace.scan import LeftOut, Scan

PATIENT = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "resume"})
"""Reasons of syncs that nobody asked for by name."""
MANY = 5
"""Fewer notes that vanish at once are believed, because a person deletes a few at a time; not so a root with all."""
DEVICES = "devices"
"""Where an index keeps the devices of its roots in `meta`."""
Devices = Mapping[str, int]
"""The device (`st_dev`) that each root was on, by its stored path."""


class Shrink(Struct, frozen=True):
    """`missing` of `known` notes vanished at once: why that is doubted, and a few of their paths."""

    missing: int
    known: int
    reason: str
    examples: tuple[str, ...] = ()


class Freshness(Struct, frozen=True):
    """How many of `total` notes on disk are `fresh`, those that are not by path, and what is no note.

    `rebuild` says what the index was made with that is otherwise now; then no note is fresh. `shrink` is what a
    person has to agree to before it is forgotten. `moved` are the stored paths of roots on another device than before,
    where notes are missing.
    """

    total: int
    fresh: int
    stale: Mapping[str, FileState]
    left_out: tuple[LeftOut, ...]
    rebuild: tuple[str, ...] = ()
    shrink: Shrink | None = None
    moved: frozenset[str] = frozenset()

    def of(self, *states: State) -> tuple[FileState, ...]:
        """The notes in one of `states`."""
        return tuple(note for note in self.stale.values() if note.state in states)

    @property
    def pending(self) -> tuple[FileState, ...]:
        """Notes that the next sync will index or forget."""
        return self.of("pending")

    @property
    def failed(self) -> tuple[FileState, ...]:
        """Notes that could not be indexed."""
        return self.of("failed")

    @property
    def unsettled(self) -> tuple[FileState, ...]:
        """Notes that were being written each time they were read."""
        return self.of("changed while read")

    @property
    def missing(self) -> tuple[FileState, ...]:
        """Notes whose folder has vanished; what was indexed of them stays."""
        return self.of("missing root")

    def differs(self, other: Freshness) -> bool:
        """Whether what a person sees of it is otherwise."""
        return (self.fresh, self.stale, self.left_out) != (other.fresh, other.stale, other.left_out)

    def as_dict(self) -> dict[str, Any]:
        """As `status --json` prints it: the numbers, and a path with its reason for each note that is not fresh."""

        def listed(*states: State) -> list[dict[str, str]]:
            return [{"path": note.path, "detail": note.detail} for note in self.of(*states)]

        return {
            "total": self.total,
            "fresh": self.fresh,
            "pending": listed("pending"),
            "failed": listed("failed"),
            "leftOut": [{"path": left.path, "detail": left.reason} for left in self.left_out],
            "unsettled": listed("changed while read"),
            "missing": listed("missing root"),
            "rebuild": list(self.rebuild),
            "shrink": self.shrink,
        }


def compare(
    scan: Scan,
    rows: Mapping[str, IndexedNote],
    roots: Roots,
    settings: Settings | None = None,
    *,
    rebuild: tuple[str, ...] = (),
    devices: Devices | None = None,
) -> Freshness:
    """The freshness of every note of `scan`, given the `rows` of the index by path.

    With `settings` a changed transcript says what it waits for; `rebuild` is what `schema.differences` says of the
    index's recipe; `devices` is for `sort_out`.
    """
    thresholds = Thresholds.of(settings) if settings else None
    stale: dict[str, FileState] = {}
    for note in scan.notes:
        row = rows.get(note.path)
        if (differs := difference(note, row)) and (state := state_of(note, row, differs, thresholds)) is not None:
            stale[note.path] = state
    if rebuild:
        stale = {note.path: stale.get(note.path) or FileState(note.path, "pending", "rebuild") for note in scan.notes}
    fresh = scan.total - len(stale)
    vanished = sort_out(scan, rows, roots, devices)
    stale.update((row.path, FileState(row.path, "pending", "deleted")) for row in vanished.deleted)
    stale.update((note.path, FileState(*note)) for note in vanished.retained)
    return Freshness(scan.total, fresh, stale, scan.left_out, rebuild, vanished.shrink, frozenset(vanished.moved))


def recipe_for(roots: Roots, provider: Provider | None, settings: Settings, identity: Identity | None = None) -> Recipe:
    """What an index of `roots` is made with under these settings; `identity` is the space of vectors during an outage.

    Raises ProviderError when the provider has to be asked and does not answer.
    """
    identity = identity or (provider.identity if provider else schema.keywords_only())
    return recipe_of(roots, settings, identity, provider.max_input_bytes if provider else MAX_INPUT_BYTES)


def recipe_of(roots: Roots, settings: Settings, identity: Identity, max_input_bytes: int) -> Recipe:
    """What an index of `roots` is made with, when a provider of that kind makes its vectors."""
    return Recipe(
        model=identity.model,
        provider=identity.provider,
        provider_key=identity.key,
        vector_dims=identity.dims,
        sources=tuple(sorted(roots.sources)),
        scope_hash=schema.scope_hash(roots.extra, roots.patterns, roots.media),
        chunk_tokens=settings.whole("chunking.tokens"),
        chunk_overlap=settings.whole("chunking.overlap"),
        chunk_bytes=min(max_input_bytes, MAX_INPUT_BYTES),
        fts_tokenizer=abilities.tokenizer(settings.word("store.fts.tokenizer")),
        chunking=profiles.get(settings.word("profile")).chunking,
    )


# --- notes that vanished -------------------------------------------------------------------------------------------


class RetainedNote(NamedTuple):
    """A note that is not on disk and stays in the index all the same: the state to show, and why."""

    path: str
    state: Literal["failed", "missing root", "pending"]
    detail: str


class VanishedNotes(Struct):
    """What `sort_out` returns: rows that are `deleted`, notes that are `retained`, and what a person is asked first.

    `moved` are the stored paths of roots on another device than before, where notes are missing.
    """

    deleted: list[IndexedNote] = field(default_factory=list)
    retained: list[RetainedNote] = field(default_factory=list)
    shrink: Shrink | None = None
    moved: set[str] = field(default_factory=set)


def sort_out(
    scan: Scan,
    rows: Mapping[str, IndexedNote],
    roots: Roots,
    devices: Devices | None = None,
    accepted: bool = False,
) -> VanishedNotes:
    """Sort the `rows` whose notes `scan` lacks; `accepted` says that a person agreed to forget them.

    A root that lies on another device than in `devices` was mounted or unmounted.
    """
    vanished = VanishedNotes()
    missing = _missing(scan, rows, roots)
    if not missing:
        return vanished
    moved = {} if accepted else _moved(roots, devices or {})
    doubts = moved | _unreachable(scan, roots, accepted)
    for row in missing:
        place = next((path for path in _upwards(row.path) if path in doubts), None)
        if place is None:
            vanished.deleted.append(row)
            continue
        vanished.retained.append(doubts[place]._replace(path=row.path))
        if doubts[place] is moved.get(place):
            vanished.moved.add(place)
    if not accepted:
        _doubt(vanished, rows, roots, {left.path for left in scan.left_out if left.rule == "missing root"})
    return vanished


def _missing(scan: Scan, rows: Mapping[str, IndexedNote], roots: Roots) -> list[IndexedNote]:
    """The rows whose notes are not on disk."""
    paths = {note.path for note in scan.notes}
    if scan.quiet + sum(path in rows for path in paths) == len(rows):
        return []
    if scan.quiet:
        # Which are quiet is not listed; to find out who is missing, everything is.
        paths = {note.path for note in reachable(roots).notes}
    return [row for path, row in rows.items() if path not in paths]


def in_scope(roots: Roots, path: str) -> bool:
    """Whether a note at the stored `path` would be read, as the roots are now."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.SOURCE in roots.sources
    places = (FOLDER, *(roots.stored(extra) for extra in roots.extra))
    inside = path in roots.root_notes or any(path == place or path.startswith(place + "/") for place in places)
    return inside and MEMORY in roots.sources


def devices_of(roots: Roots) -> dict[str, int]:
    """The device of each root that is there; that of the workspace as `.`, wherever a link in its place leads."""
    devices = {}
    for path, absolute in root_places(roots).items():
        try:
            status = os.stat(absolute) if path == WORKSPACE else os.lstat(absolute)
        except (OSError, ValueError):
            continue
        if not stat.S_ISLNK(status.st_mode):
            devices[path] = status.st_dev
    return devices


def devices_from(text: object) -> dict[str, int]:
    """The devices that an index keeps as `text` (JSON); none where that makes no sense."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return {str(k): v for k, v in value.items() if isinstance(v, int)} if isinstance(value, dict) else {}


def _doubt(vanished: VanishedNotes, rows: Mapping[str, IndexedNote], roots: Roots, absent: set[str]) -> None:
    """Retain what was to be deleted, where that is more than half of what should be there, or a whole root."""
    here = [row for row in vanished.deleted if in_scope(roots, row.path)]
    should = sum(in_scope(roots, path) for path in rows) if len(here) >= MANY or absent else 0
    if len(here) < MANY or 2 * len(here) <= should:
        here = [row for row in here if not absent.isdisjoint(_upwards(row.path))]
    if not here:
        return
    reason = f"{len(here):,} of {should:,} notes vanished at once"
    vanished.shrink = Shrink(len(here), should, reason, tuple(sorted(row.path for row in here)[:MANY]))
    doubtful = {row.id for row in here}
    vanished.deleted = [row for row in vanished.deleted if row.id not in doubtful]
    vanished.retained += [RetainedNote(row.path, "pending", f"deleted? {reason}") for row in here]


def _unreachable(scan: Scan, roots: Roots, accepted: bool) -> dict[str, RetainedNote]:
    """Places whose notes can come back; a root inside the workspace that is missing was mostly deleted.

    A link in place of a folder whose notes were read is nobody's wish to forget them.
    """
    folders = {FOLDER, *map(roots.stored, roots.extra)}

    def doubtful(left: LeftOut) -> bool:
        match left.rule:
            case "unreadable":
                return True
            case "symlink":
                return not accepted and left.path in folders
            case "missing root":
                return not accepted and (left.path == WORKSPACE or _outside(left.path))
        return False

    return {
        left.path: RetainedNote(
            left.path, "failed" if left.rule == "unreadable" else "missing root", f"{left.path}: {left.detail}"
        )
        for left in filter(doubtful, scan.left_out)
    }


def _moved(roots: Roots, before: Devices) -> dict[str, RetainedNote]:
    """Roots that are on another device than they were."""
    now = devices_of(roots)
    why = "is on another device than before: was something mounted or unmounted?"
    return {
        path: RetainedNote(path, "missing root", f"{path} {why}")
        for path, device in before.items()
        if now.get(path, device) != device
    }


def _outside(path: str) -> bool:
    return path.startswith(("../", "/")) or ":" in path[:3]


def _upwards(path: str) -> Iterator[str]:
    """`path` and each folder above it, the workspace last where it is below that."""
    first = path
    while path:
        yield path
        path = path.rpartition("/")[0]
    if not _outside(first):
        yield WORKSPACE
