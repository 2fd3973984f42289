"""A day in figures and words, the same whatever the locale."""

from __future__ import annotations

import datetime as dt

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


def spelled(day: dt.date) -> str:
    """`day` in figures and words, the same whatever the locale: `2026-05-02 May Saturday`."""
    return f"{day.isoformat()} {_MONTHS[day.month - 1].capitalize()} {_WEEKDAYS[day.weekday()]}"
