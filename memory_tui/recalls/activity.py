"""Activity: how often each note was recalled, day by day, as far as the records of recalls go back."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memory_tui.recalls import recall_log, recalled_lines

WEEK = 7


@dataclass(frozen=True, slots=True)
class Activity:
    """On which days, and how often, each note was recalled; `since` is the first day that the records know of.

    `lines` are the lines (first and last, as they were counted then) that recalls gave of it, with how many did.
    """

    days: Mapping[str, Mapping[dt.date, int]] = field(default_factory=dict)
    since: dt.date | None = None
    lines: Mapping[str, Mapping[tuple[int, int], int]] = field(default_factory=dict)

    def count(self, path: str, after: dt.date | None = None) -> int:
        """How often a note was recalled, on the days after `after` where that is given."""
        found = self.days.get(path, {})
        return sum(times for day, times in found.items() if after is None or day > after)

    def weeks(self, path: str, today: dt.date, count: int) -> list[int]:
        """Recalls of a note in each of the last `count` weeks, the week that ends `today` last."""
        found = [0] * count
        for day, times in self.days.get(path, {}).items():
            back = (today - day).days // WEEK
            if 0 <= back < count:
                found[count - 1 - back] += times
        return found

    def last(self, path: str) -> dt.date | None:
        """The day on which a note was recalled last; None where it never was."""
        return max(self.days.get(path, {}), default=None)


def read(workspace: Path) -> Activity:
    """What a person's questions and agents recalled in `workspace`; empty where nothing was recorded.

    Raises IndexUnavailable when a record cannot be read.
    """
    here, _ = recalled_lines.answers(recalled_lines.marks_path(workspace))
    log = recall_log.read(recall_log.recall_log_path(workspace))
    recalled = [
        (at, {(path, span.start, span.stop - 1) for path, spans in notes.items() for span in spans})
        for at, notes in here
    ]
    recalled += [(entry.at, {(hit.path, hit.start_line, hit.end_line) for hit in entry.hits}) for entry in log.entries]
    days: defaultdict[str, Counter[dt.date]] = defaultdict(Counter)
    lines: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for at, places in recalled:
        for path in {path for path, _, _ in places}:
            days[path][dt.datetime.fromtimestamp(at).date()] += 1
        for path, first, last in places:
            lines[path][first, last] += 1
    since = min((day for found in days.values() for day in found), default=None)
    return Activity(
        {path: dict(found) for path, found in days.items()}, since, {path: dict(own) for path, own in lines.items()}
    )
