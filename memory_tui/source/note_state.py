"""The state of a note: how the file on disk differs from what was indexed.

A transcript is written with every message; each time all of it would have to be cut anew. What was asked for by name,
and the first index, wait for nothing.
"""

from __future__ import annotations

from typing import Literal, Self

from msgspec import Struct

from memory_tui.core.errors import Unreadable
from memory_tui.core.files import unmoved
from memory_tui.core.settings import Settings
from memory_tui.source.rows import CHANGED, IndexedNote
from memory_tui.workspace import roots, transcripts
from memory_tui.workspace.scan import Found


class Thresholds(Struct, frozen=True):
    """How many bytes or messages more make a transcript due; 0 or less means any."""

    bytes: int = 100_000
    messages: int = 50

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The thresholds in force."""
        return cls(settings.whole("sync.sessions.deltaBytes"), settings.whole("sync.sessions.deltaMessages"))


class Growth(Struct, frozen=True):
    """What came to a transcript since it was indexed; `messages` counts lines, 0 where bytes alone make it due."""

    bytes: int
    messages: int


def due(growth: Growth, thresholds: Thresholds) -> bool:
    """Whether either threshold is reached (OpenClaw 2026.3.13: at least that many, or any where it is not above 0)."""
    return growth.bytes >= max(1, thresholds.bytes) or growth.messages >= max(1, thresholds.messages)


def growth(found: Found, row: IndexedNote | None, thresholds: Thresholds) -> Growth:
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


def waits(found: Found, row: IndexedNote | None, thresholds: Thresholds) -> str:
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


def difference(found: Found, row: IndexedNote | None) -> Difference:
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


def touched(found: Found, row: IndexedNote) -> bool:
    """Whether anything about the file changed after it was read, its times set back perhaps."""
    return found.ctime_ns > round(row.indexed_at * 1e9)


def state_of(
    note: Found, row: IndexedNote | None, differs: Difference, thresholds: Thresholds | None
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


def _reread(note: Found, row: IndexedNote) -> Difference:
    try:
        return "" if roots.read(note).hash == row.hash else "changed"
    except Unreadable:
        return "changed"
