"""The notes in groups: what an agent reads first, then by day, and what never fades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from memory_tui.workspace.transcripts import SOURCE

if TYPE_CHECKING:
    from memory_tui.overview import FileRow

ROOTS = ("MEMORY.md", "memory.md")
"""Names of the curated memory, in the order in which an agent looks for them."""

ABSENT = "absent"
"""State of a note that an agent looks for at the start of a session and does not find."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files that belong together; `key` survives a refresh."""

    key: str
    title: str
    files: tuple[FileRow, ...]


def groups(rows: Sequence[FileRow], today: date) -> list[Group]:
    """What a session starts with, then days, newest first, then evergreen notes, those from elsewhere and sessions.

    Every note is in one group.
    """
    if not rows:
        return []
    first = tuple(_first_read(rows, today))
    taken = {row.path for row in first}
    found: dict[tuple[int, str, str], list[FileRow]] = {}
    for row in rows:
        if row.path not in taken:
            found.setdefault(_group_of(row, today), []).append(row)
    ordered = sorted(found.items(), key=lambda item: (item[0][0], _descending(item[0][1])))
    return [
        Group("start", "Read at session start", first),
        *(Group(key, title, tuple(sorted(files, key=by_day))) for (_, key, title), files in ordered),
    ]


def _first_read(rows: Sequence[FileRow], today: date) -> Iterator[FileRow]:
    """MEMORY.md and the logs of today and yesterday; a log that is not there is told as absent."""
    known = {row.path: row for row in rows}
    yield from [known[name] for name in ROOTS if name in known][:1]
    for day in (today, today - timedelta(days=1)):
        path = f"memory/{day.isoformat()}.md"
        yield known.get(path) or replace(
            rows[0],
            path=path,
            source="memory",
            state=ABSENT,
            detail="no log of that day",
            chunks=0,
            size=0,
            mtime=0.0,
            day=day,
        )


def _group_of(row: FileRow, today: date) -> tuple[int, str, str]:
    if row.source == SOURCE:
        return 6, "sessions", "Sessions"
    if row.path.startswith("../") or row.path.startswith("/"):
        return 5, "elsewhere", "Extra paths"
    if row.day is None:
        return 4, "evergreen", "Evergreen"
    if row.day > today:
        return 0, "later", "Dated later than today"
    if row.day == today:
        return 1, "today", "Today"
    if row.day == today - timedelta(days=1):
        return 2, "yesterday", "Yesterday"
    if row.day > today - timedelta(days=7):
        return 3, "9999-week", "Last seven days"
    return 3, row.day.strftime("%Y-%m"), row.day.strftime("%B %Y")


def _descending(key: str) -> tuple[int, ...]:
    return tuple(-ord(character) for character in key)


def by_day(row: FileRow) -> tuple[int, str]:
    """Newest first, then by path; notes without a day come last."""
    return (-row.day.toordinal() if row.day else 0, row.path)


def beside(rows: Sequence[FileRow], at: FileRow | None, today: date, direction: int) -> FileRow | None:
    """The dated note one older (+1) or newer (-1) than `at`; where `at` has no day, the newest whose day has come."""
    dated = sorted((row for row in rows if row.day is not None and row.source != SOURCE), key=by_day)
    if at is None or at.day is None:
        return next((row for row in dated if row.day is not None and row.day <= today), None)
    place = by_day(at)
    if direction > 0:
        return next((row for row in dated if by_day(row) > place), None)
    return next((row for row in reversed(dated) if by_day(row) < place), None)
