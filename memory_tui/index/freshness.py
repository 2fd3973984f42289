"""Freshness compares the index with the files on disk; notes that vanished are forgotten only when certainly gone.

A folder that may not be listed, a root that has vanished or is an empty mount point, a synchronising program that was
logged out: none of them is a thousand deletions. What is doubtful stays in the index until a person agrees.

A transcript is written with every message; each time all of it would have to be cut anew. What was asked for by name,
and the first index, wait for nothing.
"""

# ruff: noqa: PTH116
# Paths are strings, as in `workspace.roots`.

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, Self

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.durable import unmoved
from memory_tui.errors import Unreadable
from memory_tui.index import schema
from memory_tui.index.schema import Recipe
from memory_tui.index.store import CHANGED, IndexedNote
from memory_tui.providers.base import Identity, Provider
from memory_tui.settings import Settings
from memory_tui.workspace import roots as note_roots
from memory_tui.workspace import transcripts
from memory_tui.workspace.chunking import MAX_INPUT_BYTES
from memory_tui.workspace.roots import FOLDER, MEMORY, WORKSPACE, Roots, reachable, root_places
from memory_tui.workspace.scan import LeftOut, NoteFile, Scan

PATIENT = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "resume"})
"""Reasons of syncs that nobody asked for by name."""
MANY = 5
"""Fewer notes that vanish at once are believed, because a person deletes a few at a time; not so a root with all."""
DEVICES = "devices"
"""Where an index keeps the devices of its roots in `meta`."""
Devices = Mapping[str, int]
"""The device (`st_dev`) that each root was on, by its stored path."""


# --- one note -------------------------------------------------------------------------------------------------------


class Thresholds(Struct, frozen=True):
    """How many bytes or messages more make a transcript due; 0 or less means any."""

    bytes: int = 100_000
    messages: int = 50

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the thresholds in force."""
        return cls(settings.whole("sync.sessions.deltaBytes"), settings.whole("sync.sessions.deltaMessages"))


def waits(file: NoteFile, row: IndexedNote | None, thresholds: Thresholds) -> str:
    """Return what a changed transcript waits for, in words; empty when it is due, or is not a transcript.

    It is due with at least that many bytes or lines more (OpenClaw 2026.3.13); one that shrank, or was never indexed,
    counts whole.
    """
    changed = row is None or (row.state == "ok" and row.hash and row.size != file.size)
    if file.source != transcripts.SOURCE or not changed:
        return ""
    start = row.size if row and file.size >= row.size else 0
    size, lines = file.size - start, 0
    if thresholds.messages > 0 and not 0 < thresholds.bytes <= size:
        # The sync that reads it tells why it cannot be read.
        with suppress(OSError):
            lines = transcripts.newlines(file, start)
    if size >= max(1, thresholds.bytes) or lines >= max(1, thresholds.messages):
        return ""
    return (
        f"{'grew by' if row else 'new, with'} {size:,} bytes and {lines:,} line{'' if lines == 1 else 's'}; "
        f"it is indexed by itself after {thresholds.bytes:,} bytes or {thresholds.messages:,} lines, "
        "or now by memory-tui index"
    )


Difference = Literal["", "new", "changed", "rebuild", "unsure", "failed"]

State = Literal["pending", "failed", "changed while read", "missing root"]


class FileState(Struct, frozen=True):
    """A note that is not searchable as it is on disk, and why.

    pending: the next sync indexes or forgets it (`detail` says new, changed, deleted, rebuild, ...). failed: it could
    not be read or cut. changed while read: somebody was writing it each time. missing root: its folder has vanished,
    and what was indexed of it stays. One that is `patient` has not grown enough to be indexed by itself.
    """

    path: str
    state: State
    detail: str
    patient: bool = False


def difference(file: NoteFile, row: IndexedNote | None) -> Difference:
    """Return how a note on disk differs from its row by size and time; unsure when only its text can tell."""
    if row is None:
        return "new"
    if row.state != "ok":
        return "failed"
    if not row.hash:
        return "rebuild"
    if file.mtime_ns != row.mtime_ns or file.size != row.size:
        return "changed"
    if not unmoved(file.mtime_ns, round(row.indexed_at * 1e9)) or touched(file, row):
        return "unsure"
    return ""


def touched(file: NoteFile, row: IndexedNote) -> bool:
    """Say whether anything about the file changed after it was read, its times set back perhaps."""
    return file.ctime_ns > round(row.indexed_at * 1e9)


def state_of(
    note: NoteFile, row: IndexedNote | None, differs: Difference, thresholds: Thresholds | None
) -> FileState | None:
    """Say how a note differs from its row, which `differs` by size and time; None when only its times do."""
    if row is not None and differs == "unsure":
        differs = _reread(note, row)
    if row is not None and differs == "failed":
        return FileState(note.path, "changed while read" if row.state == CHANGED else "failed", row.detail)
    if not differs:
        return None
    patience = waits(note, row, thresholds) if thresholds else ""
    return FileState(note.path, "pending", patience or differs, bool(patience))


def _reread(note: NoteFile, row: IndexedNote) -> Difference:
    try:
        return "" if note_roots.read(note).hash == row.hash else "changed"
    except Unreadable:
        return "changed"


# --- all notes ------------------------------------------------------------------------------------------------------


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
        """Return the notes in one of `states`."""
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
        """Say whether what a person sees of it is otherwise."""
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
    """Return the freshness of every note of `scan`, given the `rows` of the index by path.

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
    stale.update((note.path, note) for note in vanished.retained)
    return Freshness(scan.total, fresh, stale, scan.left_out, rebuild, vanished.shrink, frozenset(vanished.moved))


def recipe_for(roots: Roots, provider: Provider | None, settings: Settings, identity: Identity | None = None) -> Recipe:
    """Return what an index of `roots` is made with; `identity` is the space of vectors during an outage.

    Raises ProviderError when the provider has to be asked and does not answer.
    """
    identity = identity or (provider.identity if provider else schema.keywords_only())
    return recipe_of(roots, settings, identity, provider.max_input_bytes if provider else MAX_INPUT_BYTES)


def recipe_of(roots: Roots, settings: Settings, identity: Identity, max_input_bytes: int) -> Recipe:
    """Return what an index of `roots` is made with, when a provider of that kind makes its vectors."""
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
        fts_tokenizer=schema.tokenizer(settings.word("store.fts.tokenizer")),
        chunking=profiles.get(settings.word("profile")).chunking,
    )


# --- notes that vanished -------------------------------------------------------------------------------------------


class VanishedNotes(Struct):
    """What `sort_out` returns: rows that are `deleted`, notes that are `retained`, and what a person is asked first.

    `moved` are the stored paths of roots on another device than before, where notes are missing.
    """

    deleted: list[IndexedNote] = field(default_factory=list)
    retained: list[FileState] = field(default_factory=list)
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
    now = devices_of(roots)
    moved = {path for path, device in (devices or {}).items() if now.get(path, device) != device and not accepted}
    why = "is on another device than before: was something mounted or unmounted?"
    doubts = {path: FileState(path, "missing root", f"{path} {why}") for path in moved} | _unreachable(
        scan, roots, accepted
    )
    for row in missing:
        place = next((path for path in _upwards(row.path) if path in doubts), None)
        if place is None:
            vanished.deleted.append(row)
            continue
        vanished.retained.append(replace(doubts[place], path=row.path))
        if place in moved and doubts[place].detail.endswith(why):
            vanished.moved.add(place)
    if not accepted:
        _doubt(vanished, rows, roots, {left.path for left in scan.left_out if left.rule == "missing root"})
    return vanished


def _missing(scan: Scan, rows: Mapping[str, IndexedNote], roots: Roots) -> list[IndexedNote]:
    """Return the rows whose notes are not on disk."""
    paths = {note.path for note in scan.notes}
    if scan.quiet + sum(path in rows for path in paths) == len(rows):
        return []
    if scan.quiet:
        # Which are quiet is not listed; to find out who is missing, everything is.
        paths = {note.path for note in reachable(roots).notes}
    return [row for path, row in rows.items() if path not in paths]


def in_scope(roots: Roots, path: str) -> bool:
    """Say whether a note at the stored `path` would be read, as the roots are now."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.SOURCE in roots.sources
    places = (FOLDER, *(roots.stored(extra) for extra in roots.extra))
    inside = path in roots.root_notes or any(place in _upwards(path) for place in places)
    return inside and MEMORY in roots.sources and not any(map(roots.excludes, _upwards(path)))


def devices_of(roots: Roots) -> dict[str, int]:
    """Map each root that is there to its device; the workspace is `.`, wherever a link in its place leads."""
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
    """Return the devices that an index keeps as `text` (JSON); none where that makes no sense."""
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
    vanished.retained += [FileState(row.path, "pending", f"deleted? {reason}") for row in here]


def _unreachable(scan: Scan, roots: Roots, accepted: bool) -> dict[str, FileState]:
    """Map places whose notes can come back to why; a root inside the workspace that is missing was mostly deleted.

    A link in place of a folder whose notes were read is nobody's wish to forget them.
    """
    folders = {FOLDER, *map(roots.stored, roots.extra)}
    places = {}
    for left in scan.left_out:
        unreadable = left.rule == "unreadable"
        link = left.rule == "symlink" and left.path in folders
        away = left.rule == "missing root" and (left.path == WORKSPACE or _outside(left.path))
        if unreadable or (not accepted and (link or away)):
            state: State = "failed" if unreadable else "missing root"
            places[left.path] = FileState(left.path, state, f"{left.path}: {left.detail}")
    return places


def _outside(path: str) -> bool:
    return path.startswith(("../", "/")) or ":" in path[:3]


def _upwards(path: str) -> Iterator[str]:
    """Return `path` and each folder above it, the workspace last where it is below that."""
    first = path
    while path:
        yield path
        path = path.rpartition("/")[0]
    if not _outside(first):
        yield WORKSPACE
