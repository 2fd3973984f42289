"""The last text is what a store holds of a note, put together from its chunks.

Chunks lack blank ends, and those of 2026.9 the annotations; where the hash of the note agrees, the text is exact.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import shown_day

if TYPE_CHECKING:
    from memory_tui.source.protocol import ChunkSource


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


def last_text(source: ChunkSource, path: str) -> LastText | None:
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
            known = lines.get(number, "")
            # What overlaps is the end of a line that stands whole in the chunk before.
            lines[number] = known if known.endswith(part) else part if part.endswith(known) else known + part
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    for tried in (text, f"{text}\n"):
        if hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest() == row.hash:
            return LastText(path, tried, row.indexed_at, True)
    return LastText(path, text if text.endswith("\n") else f"{text}\n", row.indexed_at, False)


def lost_lines(before: str, after: str) -> list[str]:
    """List the lines of `before` that `after` lacks; blanks at their ends, blank lines and annotations do not count."""
    left = Counter(_lines(after))
    gone = []
    for line in _lines(before):
        if left[line]:
            left[line] -= 1
        else:
            gone.append(line)
    return gone


def shrank(before: str, after: str) -> bool:
    """Whether a note lost lines: it has fewer than before, or more than half of them are other ones."""
    gone, old = len(lost_lines(before, after)), len(_lines(before))
    return gone > 0 and (len(_lines(after)) < old or 2 * gone > old)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in without_markers(text).split("\n") if line.strip()]
