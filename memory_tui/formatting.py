"""One way to write values for a person. Counts, scores, ages and names of fields have theirs here."""

from __future__ import annotations

import datetime as dt
import re


def install_extra(name: str) -> str:
    """How an extra of this package is installed, as a sentence without its end."""
    return f"In a clone of memory-tui: uv tool install '.[{name}]'"


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `12,345 queries`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{count:,} {noun}s"


def signed(value: float, digits: int = 3) -> str:
    """A gain or loss with its sign: `+0.021`, `-0.004`; what rounds to nothing has none: `0.000`."""
    text = f"{value:+z.{digits}f}"
    return text if float(text) else text[1:]


def minute(at: float) -> str:
    """The moment `at` (epoch seconds) to the minute, by the clock of this machine: `2026-01-12 09:30`."""
    return dt.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def second(at: float) -> str:
    """The moment `at` (epoch seconds) to the second, in the same way: `2026-01-12 09:30:05`."""
    return dt.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")


def camel(name: str) -> str:
    """`start_line` as `startLine`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


NEVER = "never fades"
"""The age of a note that does not age."""


def age_words(days: float | None) -> str:
    """An age as a person says it: `today`, `14 days`, `10 months`, `3 years`, `in 2 days`; None never fades."""
    if days is None:
        return NEVER
    if days < 0:
        return f"in {plural(round(-days), 'day')}" if days <= -0.5 else "today"
    whole = int(days)
    if whole < 1:
        return "today"
    if whole < 100:
        return plural(whole, "day")
    return plural(round(days / 30.44), "month") if whole < 730 else plural(int(days / 365.25), "year")
