"""How old a note is and what that does to its score, for lists; searches work it out on their own."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.workspace.document import note_date

if TYPE_CHECKING:
    from memory_tui.overview import FileRow


@dataclass(frozen=True, slots=True)
class Aging:
    """The rule in force: `rule` is multiply or add (see profiles), `half_life` in days; `now` in epoch seconds.

    `bonus` is the most that being recent adds, where the rule adds.
    """

    rule: str
    on: bool
    half_life: float
    now: float
    bonus: float = 0.0

    def days(self, row: FileRow) -> float | None:
        """The age that a search counts; None for notes that do not age."""
        if self.rule == "multiply":
            if row.source == "sessions":
                return None
            dated = note_date(row.path)
            day = dated.day
            if dated.basis == "evergreen":
                return None
        else:
            day = row.day
            if day is None and row.source != "sessions":
                return None
        since = row.mtime if day is None else dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()
        return max(0.0, (self.now - since) / 86_400)

    def factor(self, row: FileRow) -> float | None:
        """exp(-ln 2 / half-life x age), 1 for what does not age; None while decay is off."""
        if not self.on:
            return None
        days = self.days(row)
        return 1.0 if days is None else math.exp(-math.log(2) / self.half_life * days)


def age_word(days: float | None) -> str:
    """An age in four characters at most: `ever`, `0d`, `170d`, `3y`."""
    if days is None:
        return "ever"
    if days < 1000:
        return f"{int(days)}d"
    return f"{int(days / 365.25)}y"


def effect_word(aging: Aging, factor: float | None) -> str:
    """What age does to a score, in four characters: `×.89` of it is left, `+.02` is added; empty while decay is off."""
    if factor is None:
        return ""
    sign, value = ("×", factor) if aging.rule == "multiply" else ("+", factor * aging.bonus)
    return f"{sign}1" if value >= 0.995 else f"{sign}.{round(value * 100):02}"


def size_word(size: int) -> str:
    """Bytes in four characters: `870`, `1.2k`, `34k`, `1.2M`."""
    if size < 1000:
        return str(size)
    value, unit = (size / 1000, "k") if size < 999_500 else (size / 1_000_000, "M")
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
