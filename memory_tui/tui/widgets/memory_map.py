"""The memory map counts day by day. It counts what was written, recalled and found."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memory_tui.formatting import plural
from memory_tui.recalls import recalled_lines
from memory_tui.recalls.recalled_lines import Activity
from memory_tui.tui.draw import Piece

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileRow

WEEKS = 53
FORGOTTEN_DAYS = 90
"""Days without a recall after which a daily log of that age is a candidate for the archive."""
OFTEN = 3
"""Recalls from which a daily log is a candidate for MEMORY.md."""
SHADES = " ░▒▓█"
_SOURCE = re.compile(r"\(from ([^()\n]+\.md)\)")
"""What a line of MEMORY.md names as its source."""

LAYERS: Mapping[str, str] = {
    "recalled": "how often the notes of each day were recalled",
    "written": "how much was written on each day",
    "never recalled": "days whose notes were never recalled",
    "findings": "what the inbox found in the notes of each day",
}
LEGENDS: Mapping[str, str] = {
    "recalled": "· no note   ░ 0-1   ▒ 2-3   ▓ 4-6   █ 7+ recalls",
    "written": "· no note   ░ to 1 KB   ▒ to 2 KB   ▓ to 4 KB   █ more",
    "never recalled": "· no note   ░ recalled   █ never recalled",
    "findings": "· no note   ░ none   ▒ 1   ▓ 2-3   █ 4+ findings",
}
_STEPS: Mapping[str, tuple[float, float, float]] = {
    "recalled": (2, 4, 7),
    "written": (1000, 2000, 4000),
    "never recalled": (1, 1, 1),
    "findings": (1, 2, 4),
}


class MemoryMap(Struct, frozen=True):
    """The notes of a memory by day, with how often each was recalled; `findings` are counted by path, None unknown.

    `promoted` are the logs that lines of MEMORY.md name as their source.
    """

    today: dt.date
    notes: Sequence[FileRow]
    activity: Activity
    findings: Mapping[str, int] | None = None
    days: Mapping[dt.date, Sequence[FileRow]] = field(default_factory=dict)
    promoted: frozenset[str] = frozenset()

    def value(self, layer: str, day: dt.date) -> float | None:
        """What `layer` counts on a day; None without a note."""
        notes = self.days.get(day)
        if not notes:
            return None
        match layer:
            case "recalled":
                return sum(self.activity.count(note.path) for note in notes)
            case "written":
                return sum(note.size for note in notes)
            case "findings":
                return sum((self.findings or {}).get(note.path, 0) for note in notes)
            case _:
                return float(not any(self.activity.count(note.path) for note in notes))

    def most(self, layer: str) -> list[dt.date]:
        """The days of which `layer` counts something, the most first; of equal ones the latest."""
        amounts = {day: self.value(layer, day) or 0 for day in self.days if day <= self.today}
        return sorted(filter(amounts.get, amounts), key=lambda day: (-amounts[day], -day.toordinal()))

    def shade(self, layer: str, day: dt.date) -> str:
        """The sign of a day: a dot without a note, else darker the more there is."""
        value = self.value(layer, day)
        return "·" if value is None else SHADES[1 + sum(value >= step for step in _STEPS[layer])]

    @property
    def forgotten(self) -> list[FileRow]:
        """Daily logs of the memory folder, older than 90 days, that nothing recalled for as long; the oldest first."""
        edge = self.today - dt.timedelta(FORGOTTEN_DAYS)
        old = [
            note
            for note in self.notes
            if note.day is not None and note.day < edge and note.path.count("/") == 1 and note.source == "memory"
        ]
        return sorted((note for note in old if not self.activity.count(note.path, edge)), key=lambda note: note.path)

    @property
    def unrecalled(self) -> str:
        """What the records tell of the forgotten logs: they may reach back less far than those are old."""
        since = self.activity.since
        if since is None:
            return "No recall recorded"
        return f"Never recalled in {plural(max(1, min(FORGOTTEN_DAYS, (self.today - since).days)), 'day')}"

    @property
    def often(self) -> list[FileRow]:
        """Daily logs that are recalled often, and that MEMORY.md has nothing of; the most often first."""
        logs = [note for note in self.notes if note.day is not None and note.path not in self.promoted]
        reply = [note for note in logs if self.activity.count(note.path) >= OFTEN]
        return sorted(reply, key=lambda note: (-self.activity.count(note.path), note.path))

    def recalled_often(self, path: str) -> list[tuple[str, int, int]]:
        """The lines of a log that were recalled often, else all that ever were, else (to its end, 0) the whole log."""
        lines = self.activity.lines.get(path, {})
        often = [span for span, count in lines.items() if count >= OFTEN]
        return [(path, first, last) for first, last in sorted(often or lines)] or [(path, 1, 0)]


def gathered(notes: Sequence[FileRow], today: dt.date) -> Callable[[Engine], MemoryMap]:
    """Reads the records of recalls; for worker threads. Raises IndexUnavailable."""

    def work(engine: Engine) -> MemoryMap:
        days: dict[dt.date, list[FileRow]] = {}
        for note in notes:
            if note.day is not None:
                days.setdefault(note.day, []).append(note)
        curator = engine.notes.curator
        curated = (curator.read(curator.plan.memory()) or b"").decode("utf-8", "replace")
        promoted = frozenset(_SOURCE.findall(curated))
        return MemoryMap(today, notes, recalled_lines.activity(engine.plan.roots.workspace), None, days, promoted)

    return work


BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(counts: Sequence[int], top: int) -> str:
    """`counts` as blocks of a height up to `top`; a blank where there is none."""
    return "".join(
        BLOCKS[min(len(BLOCKS) - 1, (len(BLOCKS) * count - 1) // max(1, top))] if count else " " for count in counts
    )


def calendar_rows(found: MemoryMap, layer: str, last: dt.date, chosen: dt.date | None, width: int) -> list[list[Piece]]:
    """Months, then a row a weekday; the week of `last` stands right. `chosen` is drawn reversed."""
    weeks, cell = weeks_in(width)
    monday = last - dt.timedelta(last.weekday())
    starts = [monday - dt.timedelta(7 * back) for back in range(weeks - 1, -1, -1)]
    months = [" "] * (weeks * cell + 4)
    for at, start in enumerate(starts):
        first = start + dt.timedelta(6)
        if first.day <= 7 and "".join(months[at * cell - 1 if at else 0 : at * cell + 3]).isspace():
            months[at * cell : at * cell + 3] = f"{first:%b}"
    rows: list[list[Piece]] = [[(f"{'':6}{''.join(months).rstrip()}", "muted")]]
    for weekday in range(7):
        label = (monday + dt.timedelta(weekday)).strftime("%a") if weekday % 2 == 0 else ""
        row: list[Piece] = [(f" {label:<5}", "muted")]
        for start in starts:
            day = start + dt.timedelta(weekday)
            sign = " " if day > last else found.shade(layer, day)
            style = "day" if day == chosen else "lost" if sign == "·" else "vector"
            row.append((sign, style))
            if cell > 1:
                row.append((" ", ""))
        rows.append(row)
    return rows


def weeks_in(width: int) -> tuple[int, int]:
    """How many weeks fit `width` cells, and how many cells a day has."""
    cell = 2 if width >= WEEKS * 2 + 8 else 1
    return min(WEEKS, (width - 8) // cell), cell
