"""Spans of days, counted from today."""

from __future__ import annotations

import datetime as dt

Days = tuple[dt.date, dt.date]
"""The first and the last day of a span."""
DAY = dt.timedelta(days=1)
_UNIT_DAYS = {"h": 0, "d": 1, "w": 7, "e": 7, "m": 30, "q": 91, "y": 365}


def day_at(now: float, zone: dt.tzinfo | None) -> dt.date:
    """Return the day at `now` (epoch seconds) in `zone`, None for this machine's."""
    return dt.datetime.fromtimestamp(now, dt.UTC).astimezone(zone).date()


def days_ago(today: dt.date, days: int) -> Days:
    """Return the day so many days before today; after it for a negative number."""
    return today - days * DAY, today - days * DAY


def months(year: int, month: int, count: int = 1) -> Days:
    """Return `count` months from that one on, which may be numbered from another year's: 0 is December before."""
    first, after = (dt.date(at // 12, at % 12 + 1, 1) for at in (12 * year + month - 1, 12 * year + month - 1 + count))
    return first, after - DAY


def calendar(today: dt.date, unit: str, back: int) -> Days:
    """Return the week, weekend, month, quarter or year so many of them before this one.

    Weeks begin on Monday. Of weekends 0 is the latest that has begun, -1 the next.
    """
    if unit == "e":
        saturday = calendar(today, "w", back + (back <= 0 and today.weekday() < 5))[1] - DAY
        return saturday, saturday + DAY
    if unit == "w":
        monday = today - (today.weekday() + 7 * back) * DAY
        return monday, monday + 6 * DAY
    if unit == "y":
        return months(today.year - back, 1, 12)
    if unit not in "mq":
        raise ValueError(unit)
    begins = today.month - (today.month - 1) % 3 - 3 * back if unit == "q" else today.month - back
    return months(today.year, begins, 3 if unit == "q" else 1)


def quarter(today: dt.date, number: int, year: int | None) -> Days:
    """Return a quarter, from 1 to 4, of `year`, or the latest that has begun."""
    begins = 3 * number - 2
    first = dt.date(year or today.year - (begins > today.month), begins, 1)
    return months(first.year, first.month, 3)


def season(today: dt.date, begins: int, year: int | None, back: int | None) -> Days:
    """The latest season of three months that has begun, or for `back` 1 is over; or that of `year`, where it begins."""
    start = year or today.year - (begins > today.month) - min(0, back or 0)
    span = months(start, begins, 3)
    return months(start - 1, begins, 3) if not year and back == 1 and span[1] >= today else span


def weekday(today: dt.date, weekday: int, back: int) -> Days:
    """Return the latest such day before today; 0 is that of this week, -1 the next, 2 the one before the latest."""
    if back == 0:
        return days_ago(today, today.weekday() - weekday)
    past = back > 0
    return days_ago(today, (today.weekday() - weekday - past) % 7 + past + 7 * (back - past))


def rolling(today: dt.date, count: float, unit: str) -> Days:
    """Return so many hours, days, weeks, months or years up to today; from today for a negative number."""
    days = round(count * _UNIT_DAYS[unit]) if unit != "h" else int(-(-count // 24) if count > 1 else 0)
    return min(today - days * DAY, today), max(today - days * DAY, today)


def some(today: dt.date, unit: str) -> Days:
    """Return the last few days, weeks, months or years."""
    return rolling(today, 4 * _UNIT_DAYS[unit] + 3, "d")


def ago(today: dt.date, count: float, unit: str) -> Days:
    """Return so many units ago; the coarser the unit, the wider the span around that day."""
    if unit == "y" and count % 1:
        unit, count = "m", count * 12
    slack = {"h": 0, "d": 0, "w": 3, "m": 7, "q": 15, "y": 45}[unit] * DAY
    day = today - round(count * _UNIT_DAYS[unit]) * DAY
    if unit == "m" and not count % 1:
        first, last = calendar(today, "m", round(count))
        day = first.replace(day=min(today.day, last.day))
    return day - slack, day + slack


def few(today: dt.date, unit: str) -> Days:
    """Return a few hours, days, weeks or months ago."""
    days = _UNIT_DAYS[unit]
    return today - (5 if days > 1 else 10) * days * DAY, today - 2 * days * DAY


def dated(today: dt.date, year: int | None, month: int, day: int) -> Days:
    """Return a day with its year, or the latest such day that is not in the future."""
    first = dt.date(year or today.year, month, day if year else 1)
    if year:
        return first, first
    # A leap day may lie up to eight years back.
    return _latest(today, [(today.year - back, month) for back in range(9)], day)


def day_of_month(today: dt.date, day: int) -> Days:
    """The latest such day of a month that is not in the future."""
    firsts = [calendar(today, "m", back)[0] for back in range(3)]
    return _latest(today, [(first.year, first.month) for first in firsts], day)


def _latest(today: dt.date, tried: list[tuple[int, int]], day: int) -> Days:
    """Return the first of the months `tried` whose `day` exists and has come. Raises StopIteration."""
    there = (months(year, month) for year, month in tried)
    days = (first.replace(day=day) for first, last in there if 1 <= day <= last.day)
    return days_ago(next(each for each in days if each <= today), 0)


def nth(month: Days, number: int, weekday: int | None, days: int) -> Days:
    """Return the first, second or last (0) such weekday of a month, or its first, second or last so many `days`."""
    first, last = month
    if weekday is not None:
        first += (weekday - first.weekday()) % 7 * DAY
        last -= (last.weekday() - weekday) % 7 * DAY
        day = first + 7 * (number - 1) * DAY if number else last
        return day, day
    begin = first + days * (number - 1) * DAY if number else last - (days - 1) * DAY
    return begin, begin + (days - 1) * DAY


def beside(span: Days, count: int, unit: str, *, after: bool) -> Days:
    """Return the day or the days of a unit so many units before or after `span`."""
    days = _UNIT_DAYS[unit]
    if after:
        return span[1] + (days * (count - 1) + 1) * DAY, span[1] + days * count * DAY
    return span[0] - days * count * DAY, span[0] - (days * (count - 1) + 1) * DAY


def part_of(span: Days, part: int) -> Days:
    """Return the beginning (0), middle or end (2) of a span: ten days of a month, a third of another one."""
    first, last = span
    days = (last - first).days
    if 28 <= days + 1 <= 31:
        return first.replace(day=10 * part + 1), last if part == 2 else first.replace(day=10 * part + 10)
    third = (last - first) // 3
    return ((first, first + third), (first + third, last - third), (last - third, last))[part]


def half_of(span: Days, half: int) -> Days:
    """Return the first or second half: six months of a year, fifteen days of a month."""
    first, last = span
    whole_year = first.month == 1 and (last + DAY).year == first.year + 1
    middle = first.replace(month=7) if whole_year else first + (last - first + DAY) // 2
    return (first, middle - DAY) if half == 1 else (middle, last)
