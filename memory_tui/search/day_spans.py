"""Spans of days, counted from today."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange

Days = tuple[dt.date, dt.date]
"""The first and the last day of a span."""
_UNIT_DAYS = {"h": 0, "d": 1, "w": 7, "e": 7, "m": 30, "q": 91, "y": 365}


def day_at(now: float, zone: dt.tzinfo | None) -> dt.date:
    """Return the day at `now` (epoch seconds) in `zone`, None for this machine's."""
    return dt.datetime.fromtimestamp(now, dt.UTC).astimezone(zone).date()


def days_ago(today: dt.date, days: int) -> Days:
    """Return the day so many days before today; after it for a negative number."""
    day = today - dt.timedelta(days=days)
    return day, day


def week(today: dt.date, back: int) -> Days:
    """Return the week, Monday to Sunday, `back` weeks before this one."""
    monday = today - dt.timedelta(days=today.weekday() + 7 * back)
    return monday, monday + dt.timedelta(days=6)


def weekend(today: dt.date, back: int) -> Days:
    """Return Saturday and Sunday `back` weekends ago: 0 is the latest that has begun, -1 the next."""
    begun = today.weekday() >= 5
    saturday = week(today, back + (back == 0 and not begun) + (back < 0 and not begun))[0] + dt.timedelta(days=5)
    return saturday, saturday + dt.timedelta(days=1)


def whole_month(year: int, month: int) -> Days:
    """Return all days of a month."""
    return dt.date(year, month, 1), dt.date(year, month, monthrange(year, month)[1])


def months_back(today: dt.date, back: int, months: int = 1) -> Days:
    """Return so many `months`, of which the first is `back` months before this one."""
    first = today.year * 12 + today.month - 1 - back
    last = first + months - 1
    return dt.date(first // 12, first % 12 + 1, 1), whole_month(last // 12, last % 12 + 1)[1]


def calendar(today: dt.date, unit: str, back: int) -> Days:
    """Return the week, weekend, month, quarter or year so many of them before this one."""
    if unit == "w":
        return week(today, back)
    if unit == "e":
        return weekend(today, back)
    if unit == "q":
        return months_back(today, (today.month - 1) % 3 + 3 * back, 3)
    if unit == "m":
        return months_back(today, back)
    if unit == "y":
        return dt.date(today.year - back, 1, 1), dt.date(today.year - back, 12, 31)
    raise ValueError(unit)


def quarter(today: dt.date, number: int, year: int | None) -> Days:
    """Return a quarter, from 1 to 4, of `year`, or the latest that has begun."""
    return months_back(dt.date(year or today.year - (3 * number - 2 > today.month), 3 * number - 2, 1), 0, 3)


def season(today: dt.date, begins: int, year: int | None, back: int | None) -> Days:
    """The latest season of three months that has begun, or for `back` 1 is over; or that of `year`, where it begins."""
    start_year = year or today.year - (begins > today.month) - min(0, back or 0)
    span = months_back(dt.date(start_year, begins, 1), 0, 3)
    return season(today, begins, start_year - 1, None) if not year and back == 1 and span[1] >= today else span


def weekday(today: dt.date, weekday: int, back: int) -> Days:
    """Return the latest such day before today; 0 is that of this week, -1 the next, 2 the one before the latest."""
    if back == 0:
        return days_ago(today, today.weekday() - weekday)
    return days_ago(today, (today.weekday() - weekday - (back > 0)) % 7 + (back > 0) + 7 * (back - (back > 0)))


def rolling(today: dt.date, count: float, unit: str) -> Days:
    """Return so many hours, days, weeks, months or years up to today; from today for a negative number."""
    days = round(count * _UNIT_DAYS[unit]) if unit != "h" else int(-(-count // 24) if count > 1 else 0)
    other = today - dt.timedelta(days=days)
    return min(other, today), max(other, today)


def some(today: dt.date, unit: str) -> Days:
    """Return the last few days, weeks, months or years."""
    return rolling(today, 4 * _UNIT_DAYS[unit] + 3, "d")


def ago(today: dt.date, count: float, unit: str) -> Days:
    """Return so many units ago; the coarser the unit, the wider the span around that day."""
    if unit == "y" and count % 1:
        unit, count = "m", count * 12
    if unit in "hd":
        return days_ago(today, round(count) if unit == "d" else 0)
    slack = {"w": 3, "m": 7, "q": 15, "y": 45}[unit]
    if unit == "m" and not count % 1:
        first, last = months_back(today, round(count))
        day = first.replace(day=min(today.day, last.day))
    else:
        day = today - dt.timedelta(days=round(count * _UNIT_DAYS[unit]))
    return day - dt.timedelta(days=slack), day + dt.timedelta(days=slack)


def few(today: dt.date, unit: str) -> Days:
    """Return a few hours, days, weeks or months ago."""
    days = _UNIT_DAYS[unit]
    return today - dt.timedelta(days=5 * days if days > 1 else 10 * days), today - dt.timedelta(days=2 * days)


def dated(today: dt.date, year: int | None, month: int, day: int) -> Days:
    """Return a day with its year, or the latest such day that is not in the future."""
    if year:
        return days_ago(dt.date(year, month, day), 0)
    # A leap day may lie up to eight years back.
    years = (today.year - back for back in range(9))
    return next((day_, day_) for candidate in years if (day_ := existing(candidate, month, day)) and day_ <= today)


def existing(year: int, month: int, day: int) -> dt.date | None:
    """Return that day; None where there is none."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def day_of_month(today: dt.date, day: int) -> Days:
    """The latest such day of a month that is not in the future."""
    months = (months_back(today, back)[0] for back in range(3))
    return next((own, own) for first in months if (own := existing(first.year, first.month, day)) and own <= today)


def nth(month: Days, number: int, weekday: int | None, days: int) -> Days:
    """Return the first, second or last (0) such weekday of a month, or its first, second or last so many `days`."""
    first, last = month
    if weekday is not None:
        days = 7
        first += dt.timedelta(days=(weekday - first.weekday()) % 7)
        last -= dt.timedelta(days=(last.weekday() - weekday) % 7)
        day = first + dt.timedelta(days=7 * (number - 1)) if number else last
        return day, day
    begin = first + dt.timedelta(days=days * (number - 1)) if number else last - dt.timedelta(days=days - 1)
    return begin, begin + dt.timedelta(days=days - 1)


def beside(span: Days, count: int, unit: str, *, after: bool) -> Days:
    """Return the day or the days of a unit so many units before or after `span`."""
    days = _UNIT_DAYS[unit]
    if after:
        return span[1] + dt.timedelta(days=days * (count - 1) + 1), span[1] + dt.timedelta(days=days * count)
    return span[0] - dt.timedelta(days=days * count), span[0] - dt.timedelta(days=days * (count - 1) + 1)


def part_of(span: Days, part: int) -> Days:
    """Return the beginning (0), middle or end (2) of a span: ten days of a month, a third of another one."""
    first, last = span
    if 28 <= (last - first).days + 1 <= 31:
        return (
            (first, first.replace(day=10)),
            (first.replace(day=11), first.replace(day=20)),
            (first.replace(day=21), last),
        )[part]
    third = (last - first) // 3
    return ((first, first + third), (first + third, last - third), (last - third, last))[part]


def half_of(span: Days, half: int) -> Days:
    """Return the first or second half: six months of a year, fifteen days of a month."""
    first, last = span
    middle = (
        first.replace(month=7) if first.year + 1 == (last + dt.timedelta(days=1)).year and first.month == 1 else None
    )
    middle = middle or first + ((last - first) + dt.timedelta(days=1)) // 2
    return (first, middle - dt.timedelta(days=1)) if half == 1 else (middle, last)
