"""The days that a query names."""

from __future__ import annotations

import datetime as dt
import re

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH = "(" + "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else "may" for name in _MONTHS) + r")\.?"
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}})\b)?", re.IGNORECASE)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b(?:,?\s+(\d{{4}})\b)?", re.IGNORECASE)
_CHINESE = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(\d{1,2})[日号號]")
_RELATIVE = (
    ("day before yesterday", 2),
    ("yesterday", 1),
    ("today", 0),
    ("前天", 2),
    ("昨天", 1),
    ("昨日", 1),
    ("今天", 0),
)


def _day(year: int | str, month: int | str, day: int | str) -> dt.date | None:
    try:
        return dt.date(int(year), int(month), int(day))
    except ValueError:
        return None


def spelled(day: dt.date) -> str:
    """`day` in figures and words, the same whatever the locale: `2026-05-02 May Saturday`."""
    return f"{day.isoformat()} {_MONTHS[day.month - 1].capitalize()} {_WEEKDAYS[day.weekday()]}"


def named_day(query: str, today: dt.date) -> str:
    """The day that `query` names, as `YYYY-MM-DD`, or `-MM-DD` when it names no year; empty when it names none."""
    if found := _ISO.search(query):
        day = _day(*found.groups())
        return day.isoformat() if day else ""
    parts: tuple[str | None, str | int, str] | None = None
    if found := _MONTH_DAY.search(query):
        parts = (found[3], _number(found[1]), found[2])
    elif found := _DAY_MONTH.search(query):
        parts = (found[3], _number(found[2]), found[1])
    elif found := _CHINESE.search(query):
        parts = (found[1], found[2], found[3])
    if parts:
        # Any leap year will do to tell whether month and day exist.
        day = _day(parts[0] or 2024, parts[1], parts[2])
        return "" if day is None else day.isoformat() if parts[0] else day.isoformat()[4:]
    lower = query.lower()
    for word, back in _RELATIVE:
        if re.search(rf"\b{word}\b" if word.isascii() else word, lower):
            return (today - dt.timedelta(days=back)).isoformat()
    return ""


def _number(month: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(month.lower()[:3]))
