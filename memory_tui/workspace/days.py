"""The day, week or month that a note stands for, by its path or its front matter."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from memory_tui.workspace.markdown import front_matter


class NoteDate(Struct, frozen=True):
    """A note's age by date, by the file's modification time, or never (evergreen); `day` is set for dates only."""

    day: date | None
    basis: Literal["name", "front matter", "mtime", "evergreen"]


def note_date(path: str) -> NoteDate:
    """Return which date ages the note stored as `path` in OpenClaw 2026.3: only memory/YYYY-MM-DD.md goes by its name.

    Other notes below memory/ and the root notes are evergreen; impossible days and extra paths go by mtime.
    """
    normal = path.replace("\\", "/").removeprefix("./")
    return _date_by(_DATED.search(normal), normal, ("MEMORY.md", "memory.md"))


def note_date_2026_9(path: str) -> NoteDate:
    """Which date ages the note stored as `path` in OpenClaw 2026.9: a day in its name in any folder below memory/.

    `2026-01-02.md` and `2026-01-02-router.md` count; an impossible day and extra paths go by mtime, the rest below
    memory/ and the root notes are evergreen (section 7.1 of the profile's specification).
    """
    return _date_by(_DATED_BELOW.search(path), path, ("MEMORY.md", "USER.md"))


def _date_by(match: re.Match[str] | None, path: str, root_notes: tuple[str, ...]) -> NoteDate:
    if match:
        # Years below 100 are refused as in the original, where the calendar takes them for 19xx.
        day = None if match[1] < "0100" else _day("-".join(match.groups()))
        return NoteDate(day, "name" if day else "mtime")
    if path in root_notes or path.startswith("memory/"):
        return NoteDate(None, "evergreen")
    return NoteDate(None, "mtime")


_DATED = re.compile(r"(?:^|/)memory/([0-9]{4})-([0-9]{2})-([0-9]{2})\.md\Z")
_DATED_BELOW = re.compile(r"(?:^|/)memory/(?:[^/]+/)*([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md\Z")


def _day(iso: str) -> date | None:
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None


# --- our own rule ----------------------------------------------------------------------------------------------------

_YEAR = r"(?<![0-9A-Za-z])((?:19|20|21)[0-9]{2})"
_DAY = re.compile(
    rf"{_YEAR}(?:[-_./]([0-9]{{2}})[-_./]([0-9]{{2}})|([0-9]{{2}})([0-9]{{2}})(?:[T_-]?[0-9]{{4}}(?:[0-9]{{2}})?)?)"
    r"(?![0-9])"
)
_WEEK = re.compile(rf"{_YEAR}[-_/ ]?(?:W|KW|week)[-_ ]?([0-9]{{1,2}})(?![0-9])", re.IGNORECASE)
_MONTH = re.compile(rf"{_YEAR}[-_/](0[1-9]|1[0-2])(?![-_./]?[0-9])")
FRONT_DATES = ("date", "created")
"""Fields of front matter that date a note."""


@lru_cache(100_000)
def date_in(words: str) -> str:
    """Return the last day in a path, or else week or month, as ISO 8601 has it: 2026-03-07, 2026-W10, 2026-03."""
    for match in reversed(list(_DAY.finditer(words))):
        year, *numbers = filter(None, match.groups())
        if _day(iso := "-".join((year, *numbers))):
            return iso
    for match in reversed(list(_WEEK.finditer(words))):
        if _day(iso := f"{match[1]}-W{match[2]:0>2}"):
            return iso
    months = _MONTH.findall(words)
    return "-".join(months[-1]) if months else ""


def date_of(path: str, text: str = "") -> str:
    """Return the date of the note `path` as `date_in` has it: the day in its path, its front matter, or its path."""
    named = date_in(path.removesuffix(".md")) if path.endswith(".md") else ""
    if len(named) == _WHOLE or not text:
        return named
    front = front_matter(text)
    return next((written for field in FRONT_DATES if (written := date_in(front.get(field, "")))), named)


_WHOLE = len("2026-03-07")


def span(written: str) -> tuple[date, date]:
    """Return the first and the last day of a date as `date_in` has it."""
    if "W" in written:
        first = date.fromisoformat(written)
        return first, first + timedelta(days=6)
    if len(written) == _WHOLE:
        return date.fromisoformat(written), date.fromisoformat(written)
    first = date.fromisoformat(f"{written}-01")
    return first, first.replace(day=monthrange(first.year, first.month)[1])


def shown_day(path: str) -> date | None:
    """Return the day that the path of a note names: `2026-01-02.md`, `2026/01/02.md`, `audit-20260102.md`."""
    written = date_of(path)
    return date.fromisoformat(written) if len(written) == _WHOLE else None


def is_daily(path: str) -> bool:
    """Return whether a note is one that an agent appends to day by day."""
    aside = not path.startswith("memory/") or path.startswith("memory/dreaming/")
    return not aside and shown_day(path) is not None
