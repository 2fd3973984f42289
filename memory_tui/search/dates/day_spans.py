"""Spans of days, counted from today."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange

Days = tuple[dt.date, dt.date]
"""The first and the last day of a span."""
_EARLY = frozenset({"early", "beginning", "start", "anfang", "初"})
_MIDDLE = frozenset({"mid", "middle", "mitte", "中"})


def day_at(now: float, zone: dt.tzinfo | None) -> dt.date:
    """The day at `now` (epoch seconds) in `zone`, None for this machine's."""
    return dt.datetime.fromtimestamp(now, dt.UTC).astimezone(zone).date()


def days_ago(today: dt.date, days: int) -> Days:
    """The day so many days before today; after it for a negative number."""
    day = today - dt.timedelta(days=days)
    return day, day


def week(today: dt.date, back: int) -> Days:
    """The week, Monday to Sunday, `back` weeks before this one."""
    monday = today - dt.timedelta(days=today.weekday() + 7 * back)
    return monday, monday + dt.timedelta(days=6)


def weekend(today: dt.date, back: int) -> Days:
    """Saturday and Sunday of the week `back` weeks before this one."""
    saturday = week(today, back)[0] + dt.timedelta(days=5)
    return saturday, saturday + dt.timedelta(days=1)


def latest_weekend(today: dt.date) -> Days:
    """The latest weekend that has begun."""
    return weekend(today, 0 if today.weekday() >= 5 else 1)


def whole_month(year: int, month: int) -> Days:
    """All days of a month."""
    return dt.date(year, month, 1), dt.date(year, month, monthrange(year, month)[1])


def months_back(today: dt.date, back: int) -> Days:
    """The month `back` months before this one."""
    at = today.year * 12 + today.month - 1 - back
    return whole_month(at // 12, at % 12 + 1)


def around_months_back(today: dt.date, back: int) -> Days:
    """The days around the same day of the month `back` months ago: who counts in months is not exact."""
    first, last = months_back(today, back)
    day = first.replace(day=min(today.day, last.day))
    return day - dt.timedelta(days=7), day + dt.timedelta(days=7)


def around(today: dt.date, days: int, slack: int) -> Days:
    """The day so many days before today, and `slack` days on both sides."""
    day = today - dt.timedelta(days=days)
    return day - dt.timedelta(days=slack), day + dt.timedelta(days=slack)


def latest_month(today: dt.date, month: int) -> Days:
    """The latest `month` that has begun."""
    return whole_month(today.year - (month > today.month), month)


def latest_weekday(today: dt.date, weekday: int) -> Days:
    """The latest such day before today."""
    return days_ago(today, (today.weekday() - weekday - 1) % 7 + 1)


def weekday_in(today: dt.date, weekday: int, back: int) -> Days:
    """That day of the week `back` weeks before this one."""
    day = week(today, back)[0] + dt.timedelta(days=weekday)
    return day, day


def part_of_month(span: Days, which: str) -> Days:
    """The beginning, middle or end of a month."""
    first, last = span
    if which in _EARLY:
        return first, first.replace(day=10)
    if which in _MIDDLE:
        return first.replace(day=11), first.replace(day=20)
    return first.replace(day=21), last


def whole_year(year: int) -> Days:
    """All days of a year."""
    return dt.date(year, 1, 1), dt.date(year, 12, 31)


def quarter(year: int, quarter: int) -> Days:
    """All days of a quarter, from 1 to 4."""
    return dt.date(year, 3 * quarter - 2, 1), whole_month(year, 3 * quarter)[1]


def season(today: dt.date, name: str, year: str | None, *, over: bool = False) -> Days:
    """The latest such season that has begun, or is `over`, or that of `year`, where a winter begins."""
    month = {"spring": 3, "frühling": 3, "frühjahr": 3, "summer": 6, "sommer": 6, "autumn": 9, "fall": 9, "herbst": 9}
    month |= {"春": 3, "夏": 6, "秋": 9}
    begins = month.get(name.lower(), 12)
    own = int(year) if year else today.year - (dt.date(today.year, begins, 1) > today)
    last = own * 12 + begins + 1
    span = dt.date(own, begins, 1), whole_month(last // 12, last % 12 + 1)[1]
    return season(today, name, str(own - 1)) if over and not year and span[1] >= today else span


def past_days(today: dt.date, days: int) -> Days:
    """So many days up to today."""
    return today - dt.timedelta(days=days), today


_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woch": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}


def days_of_unit(word: str) -> int:
    """How many days a unit of time has, by its English or German word."""
    return next(days for stem, days in _UNIT_DAYS.items() if word.lower().startswith(stem))


def units_ago(today: dt.date, count: int, word: str) -> Days:
    """So many days, weeks, months or years ago; the coarser the unit, the wider the span around that day."""
    days = days_of_unit(word)
    if days == 1:
        return days_ago(today, count)
    if days == 7:
        return around(today, 7 * count, 3)
    if days == 30:
        return around_months_back(today, count)
    return around(today, 365 * count, 45)


def dated(today: dt.date, year: str | None, month: int, day: int) -> Days:
    """A day with its year, or the latest such day that is not in the future."""
    if year:
        own = int(year) + (2000 if len(year) == 2 else 0)
        found = dt.date(own, month, day)
    else:
        # A leap day may lie up to eight years back.
        years = (today.year - back for back in range(9))
        found = next(one for own in years if (one := existing(own, month, day)) and one <= today)
    return found, found


def existing(year: int, month: int, day: int) -> dt.date | None:
    """That day; None where there is none."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def between(first: Days, last: Days) -> Days:
    """From the first day of one span to the last of another."""
    begin, end = first[0], last[1]
    if begin > end:
        # The years were not named: what begins later in the year began a year earlier.
        begin = begin.replace(year=begin.year - 1)
    return begin, end


def week_of_month(today: dt.date, nth: str, month: int, year: str | None) -> Days:
    """The first to fourth seven days of a month, or its last seven."""
    first, last = whole_month(int(year), month) if year else latest_month(today, month)
    if nth.lower() == "last":
        return last - dt.timedelta(days=6), last
    begin = first + dt.timedelta(days=7 * ("first", "second", "third", "fourth").index(nth.lower()))
    return begin, begin + dt.timedelta(days=6)


def part_of(span: Days, which: str) -> Days:
    """The beginning, middle or end of a month, or that third of a longer span."""
    first, last = span
    if last - first < dt.timedelta(days=31):
        return part_of_month(span, which)
    third = (last - first) // 3
    if which in _EARLY:
        return first, first + third
    return (first + third, last - third) if which in _MIDDLE else (last - third, last)


def few(today: dt.date, word: str) -> Days:
    """A few days, weeks or months ago."""
    unit = days_of_unit(word)
    return today - dt.timedelta(days=5 * unit if unit > 1 else 10), today - dt.timedelta(days=2 * unit)


def weekdays_between(today: dt.date, first: int, last: int) -> Days:
    """From one weekday to another, the latest that are over."""
    end = latest_weekday(today, last)[1]
    return end - dt.timedelta(days=(last - first) % 7), end


def months_between(today: dt.date, first: int, last: int, year: str | None) -> Days:
    """From one month to another, of `year` or the latest of which the last has begun."""
    end = whole_month(int(year), last) if year else latest_month(today, last)
    return whole_month(end[0].year - (first > last), first)[0], end[1]


def last_quarter(today: dt.date) -> Days:
    """The quarter before this one."""
    before = (today.month - 1) // 3
    return quarter(today.year, before) if before else quarter(today.year - 1, 4)
