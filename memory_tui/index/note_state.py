"""The state of a note: how the file on disk differs from what was indexed.

A transcript is written with every message; each time all of it would have to be cut anew. What was asked for by name,
and the first index, wait for nothing.

The last text is what a store holds of a note, put together from its chunks. They lack blank ends, and those of 2026.9
the annotations; where the hash of the note agrees, the text is exact.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Literal, NamedTuple, Self

from msgspec import Struct

from memory_tui.durable import unmoved
from memory_tui.errors import Unreadable
from memory_tui.index.rows import CHANGED, IndexedNote
from memory_tui.index.store import Store
from memory_tui.settings import Settings
from memory_tui.workspace import roots, transcripts
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import shown_day
from memory_tui.workspace.scan import NoteFile


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


def growth(file: NoteFile, row: IndexedNote | None, thresholds: Thresholds) -> Growth:
    """What came to `found` since `row`; a file that shrank, or was never indexed, counts whole."""
    indexed = row.size if row else 0
    start = indexed if file.size >= indexed else 0
    size = file.size - start
    if thresholds.messages <= 0 or 0 < thresholds.bytes <= size:
        return Growth(size, 0)
    try:
        return Growth(size, transcripts.newlines(file, start))
    except OSError:
        # The sync that reads it tells why it cannot be read.
        return Growth(size, 0)


def waits(file: NoteFile, row: IndexedNote | None, thresholds: Thresholds) -> str:
    """What a changed transcript waits for, in words; empty when it is due, or is not a transcript."""
    changed = row is None or (row.state == "ok" and row.hash and row.size != file.size)
    if file.source != transcripts.SOURCE or not changed:
        return ""
    grown = growth(file, row, thresholds)
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


def difference(file: NoteFile, row: IndexedNote | None) -> Difference:
    """How a note on disk differs from its row by size and time; unsure when only its text can tell."""
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
    """Whether anything about the file changed after it was read, its times set back perhaps."""
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
        return "" if roots.read(note).hash == row.hash else "changed"
    except Unreadable:
        return "changed"


class LastText(NamedTuple):
    """The text of the note `path` as it was indexed at `at` (epoch seconds); `exact` where it is so to the letter."""

    path: str
    text: str
    at: float
    exact: bool


_DAILY = re.compile(r"memory/(?:[^/]+/)*[^/]+\Z")


def is_daily(path: str) -> bool:
    """Whether a note is one that an agent appends to day by day."""
    return bool(_DAILY.match(path)) and not path.startswith("memory/dreaming/") and shown_day(path) is not None


def last_text(source: Store, path: str) -> LastText | None:
    """Put the note `path` together as `source` holds it; None where it holds nothing of it.

    Raises IndexUnavailable, Cancelled.
    """
    row = source.file(path)
    chunks = source.chunks_of(path) if row is not None else []
    if row is None or not chunks:
        return None
    texts = source.texts([chunk.rowid for chunk in chunks])
    lines: dict[int, str] = {}
    for chunk in chunks:
        parts = texts.get(chunk.rowid, "").split("\n")
        if len(parts) != chunk.end_line - chunk.start_line + 1:
            # A line that is longer than a chunk: its pieces stand in one line, or are chunks of their own.
            parts = ["".join(parts)]
        for number, part in enumerate(parts, chunk.start_line):
            line = lines.get(number, "")
            # What overlaps is the end of a line that stands whole in the chunk before.
            lines[number] = line if line.endswith(part) else part if part.endswith(line) else line + part
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    for tried in (text, f"{text}\n"):
        if hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest() == row.hash:
            return LastText(path, tried, row.indexed_at, True)
    return LastText(path, text if text.endswith("\n") else f"{text}\n", row.indexed_at, False)


def lost_lines(before: str, after: str) -> list[str]:
    """List the lines of `before` that `after` lacks; blanks at their ends, blank lines and annotations do not count."""
    left = Counter(_lines(after))
    lost = []
    for line in _lines(before):
        if left[line]:
            left[line] -= 1
        else:
            lost.append(line)
    return lost


def shrank(before: str, after: str) -> bool:
    """Whether a note lost lines: it has fewer than before, or more than half of them are other ones."""
    lost, old = len(lost_lines(before, after)), len(_lines(before))
    return lost > 0 and (len(_lines(after)) < old or 2 * lost > old)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in without_markers(text).split("\n") if line.strip()]
