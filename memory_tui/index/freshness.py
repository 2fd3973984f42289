"""Freshness compares the index with the files on disk.

A transcript is written with every message; each time all of it would have to be cut anew. What was asked for by name,
and the first index, wait for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from memory_tui.core.errors import Unreadable
from memory_tui.core.files import unmoved
from memory_tui.core.settings import Settings
from memory_tui.index.mass_deletion import Devices, Shrink, sort_out
from memory_tui.index.store import CHANGED, FileRow
from memory_tui.workspace import roots, transcripts
from memory_tui.workspace.roots import Roots
from memory_tui.workspace.scan import Found, LeftOut, Scan

PATIENT = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "resume"})
"""Reasons of syncs that nobody asked for by name."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How many bytes or messages more make a transcript due; 0 or less means any."""

    bytes: int = 100_000
    messages: int = 50

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The thresholds in force."""
        return cls(settings.whole("sync.sessions.deltaBytes"), settings.whole("sync.sessions.deltaMessages"))


@dataclass(frozen=True, slots=True)
class Growth:
    """What came to a transcript since it was indexed; `messages` counts lines, 0 where bytes alone make it due."""

    bytes: int
    messages: int


def due(growth: Growth, thresholds: Thresholds) -> bool:
    """Whether either threshold is reached (OpenClaw 2026.3.13: at least that many, or any where it is not above 0)."""
    return growth.bytes >= max(1, thresholds.bytes) or growth.messages >= max(1, thresholds.messages)


def growth(found: Found, row: FileRow | None, thresholds: Thresholds) -> Growth:
    """What came to `found` since `row`; a file that shrank, or was never indexed, counts whole."""
    indexed = row.size if row else 0
    start = indexed if found.size >= indexed else 0
    size = found.size - start
    if thresholds.messages <= 0 or 0 < thresholds.bytes <= size:
        return Growth(size, 0)
    try:
        return Growth(size, transcripts.newlines(found, start))
    except OSError:
        # The sync that reads it tells why it cannot be read.
        return Growth(size, 0)


def waits(found: Found, row: FileRow | None, thresholds: Thresholds) -> str:
    """What a changed transcript waits for, in words; empty when it is due, or is not a transcript."""
    changed = row is None or (row.state == "ok" and row.hash and row.size != found.size)
    if found.source != transcripts.SOURCE or not changed:
        return ""
    grown = growth(found, row, thresholds)
    if due(grown, thresholds):
        return ""
    lines = f"{grown.messages:,} line{'' if grown.messages == 1 else 's'}"
    came = "grew by" if row else "new, with"
    return (
        f"{came} {grown.bytes:,} bytes and {lines}; it is indexed by itself after "
        f"{thresholds.bytes:,} bytes or {thresholds.messages:,} lines, or now by memory-tui index"
    )


Difference = Literal["", "new", "changed", "rebuild", "unsure", "failed"]

State = Literal["pending", "failed", "changed while read", "missing root"]


@dataclass(frozen=True, slots=True)
class FileState:
    """A note that is not searchable as it is on disk, and why.

    pending: the next sync indexes or forgets it (`detail` says new, changed, deleted, rebuild, ...). failed: it could
    not be read or cut. changed while read: somebody was writing it each time. missing root: its folder has vanished,
    and what was indexed of it stays. One that is `patient` has not grown enough to be indexed by itself.
    """

    path: str
    state: State
    detail: str
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
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

    def as_dict(self) -> dict[str, Any]:
        """As `status --json` prints it: the numbers, and a path with its reason for each note that is not fresh."""

        def listed(notes: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
            return [{"path": path, "detail": detail} for path, detail in notes]

        return {
            "total": self.total,
            "fresh": self.fresh,
            "pending": listed((note.path, note.detail) for note in self.pending),
            "failed": listed((note.path, note.detail) for note in self.failed),
            "leftOut": listed((left.path, left.reason) for left in self.left_out),
            "unsettled": listed((note.path, note.detail) for note in self.unsettled),
            "missing": listed((note.path, note.detail) for note in self.missing),
            "rebuild": list(self.rebuild),
            "shrink": self.shrink,
        }


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
    if not unmoved(found.mtime_ns, round(row.indexed_at * 1e9)) or touched(found, row):
        return "unsure"
    return ""


def touched(found: Found, row: FileRow) -> bool:
    """Whether anything about the file changed after it was read, its times set back perhaps."""
    return found.ctime_ns > round(row.indexed_at * 1e9)


def compare(
    scan: Scan,
    known: Mapping[str, FileRow],
    settings: Settings | None = None,
    *,
    rebuild: tuple[str, ...] = (),
    roots: Roots | None = None,
    devices: Devices | None = None,
) -> Freshness:
    """The freshness of every note of `scan`, given the rows of the index by path.

    With `settings` a changed transcript says what it waits for; `rebuild` is what `schema.differences` says of the
    index's recipe; `roots` and `devices` are for `shrink.sort_out`.
    """
    thresholds = Thresholds.of(settings) if settings else None
    stale: dict[str, FileState] = {}
    for note in scan.found:
        row = known.get(note.path)
        if differs := difference(note, row):
            state = _state(note, row, differs, thresholds)
            if state is not None:
                stale[note.path] = state
    if rebuild:
        stale = {note.path: stale.get(note.path) or FileState(note.path, "pending", "rebuild") for note in scan.found}
    fresh = scan.total - len(stale)
    gone = sort_out(scan, known, roots, devices)
    stale.update((row.path, FileState(row.path, "pending", "deleted")) for row in gone.deleted)
    stale.update((held.path, FileState(*held)) for held in gone.held)
    return Freshness(scan.total, fresh, stale, scan.left_out, rebuild, gone.shrink, frozenset(gone.moved))


def _state(note: Found, row: FileRow | None, differs: Difference, thresholds: Thresholds | None) -> FileState | None:
    """What is to be said of a note that differs from its row; None when only its times do."""
    if row is not None and differs == "unsure":
        differs = _reread(note, row)
    if row is not None and differs == "failed":
        return FileState(note.path, "changed while read" if row.state == CHANGED else "failed", row.detail)
    if not differs:
        return None
    patience = waits(note, row, thresholds) if thresholds else ""
    return FileState(note.path, "pending", patience or differs, bool(patience))


def _reread(note: Found, row: FileRow) -> Difference:
    try:
        return "" if roots.read(note).hash == row.hash else "changed"
    except Unreadable:
        return "changed"
