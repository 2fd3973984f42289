"""When a conversation has grown enough to be indexed again by itself (OpenClaw `sync.sessions`).

A transcript is written with every message; each time all of it would have to be cut anew. What was asked for by name,
and the first index, wait for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from memory_tui.index.known import FileRow
from memory_tui.settings import Settings
from memory_tui.workspace import transcripts
from memory_tui.workspace.walk import Found

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
