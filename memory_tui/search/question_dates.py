"""The time that a question speaks of: a day, a week, a month or any span.

The words of a question become a line of kinds, one letter each: "in the second quarter of last year" is `ionqjRy`. A
rule is a short pattern of letters with a function from its parts to the first and last day. What stands before a span
or behind it, such as "since", "the end of" or "a week before", changes whatever span that is, and "to" joins two.
The longest reading wins, of equally long ones the first.

A general date parser would understand more languages. `dateparser` 1.5 takes 0.14 s of CPU to import and 2 s for the
first question, and knows days and no spans: "en mars" is one day, "3月" is December, "letzte Woche" is nothing. It
reads "may", "April", "on the sat nav" and the version 2026.3.13 as dates.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from memory_tui.search.time_words import Token, lines_of

Days = tuple[dt.date, dt.date]
"""The first and the last day of a span."""


DAY = dt.timedelta(days=1)
FADING, DAYS_AFTER = 0.8, 3
"""What the days after a span count at most, and how many count (chats, MemoryBank); days before gained on neither."""


class Time(Struct, frozen=True):
    """The days from `first` to `last`, as the words of the question from `start` to `end` name them.

    With `any_year` the question names a month and a day, and the day counts in every year; where it asks for the
    `newest`, a day counts less the earlier it is.
    """

    first: dt.date
    last: dt.date
    start: int
    end: int
    any_year: bool = False
    newest: bool = False

    def holds(self, day: dt.date) -> bool:
        """Return whether `day` lies in the span."""
        if self.any_year:
            return (day.month, day.day) == (self.first.month, self.first.day)
        return self.first <= day <= self.last

    def nearness(self, day: dt.date) -> float:
        """Return what a note of `day` counts: 1 in the span, less on each day after it, when people tell of it."""
        if self.holds(day):
            return 1.0 - 0.5 * (self.last - day) / (self.last - self.first) if self.newest else 1.0
        days = (day - self.last).days
        if self.any_year:
            days = next((back for back in range(1, DAYS_AFTER + 1) if self.holds(day - back * DAY)), 0)
        return FADING * (1 - days / (DAYS_AFTER + 1)) if 0 < days <= DAYS_AFTER else 0.0

    @property
    def spelled(self) -> str:
        """Return the span as figures: `2026-03-04`, `2026-03-02 to 2026-03-08`, `03-04 of any year`."""
        if self.any_year:
            return f"{self.first:%m-%d} of any year"
        if self.first == self.last:
            return self.first.isoformat()
        if self.first == dt.date.min:
            return f"until {self.last.isoformat()}"
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


def time_in(question: str, today: dt.date) -> Time | None:
    """The time that `question` speaks of, counted from `today`; None when it names none, or a day that does not exist.

    Of several expressions the longest counts, of equally long ones the first. "Since" and "before" leave one end open.
    """
    best: Time | None = None
    for tokens in lines_of(question, today):
        for at, token in enumerate(tokens):
            reading = _read(tokens[at : at + _MOST_TOKENS], today) if token.kind != "x" else None
            end = tokens[at + reading.length - 1].end if reading else 0
            if reading and (best is None or end - token.start > best.end - best.start):
                best = Time(*reading.days, token.start, end, reading.any_year)
    return best


def without(question: str, time: Time | None) -> str:
    """Return `question` without the words that name its time; the whole of it when nothing else is left."""
    if time is None:
        return question
    rest = re.sub(r"\s+", " ", f"{question[: time.start]} {question[time.end :]}").strip()
    return rest if re.search(r"\w", rest) else question


# --- spans of days ---------------------------------------------------------------------------------------------------

_UNIT_DAYS = {"d": 1, "w": 7, "e": 7, "m": 30, "y": 365}


def day_at(now: float, zone: dt.tzinfo | None) -> dt.date:
    """Return the day at `now` (epoch seconds) in `zone`, None for this machine's."""
    return dt.datetime.fromtimestamp(now, dt.UTC).astimezone(zone).date()


def _days_ago(today: dt.date, days: int) -> Days:
    """Return the day so many days before today; after it for a negative number."""
    return today - days * DAY, today - days * DAY


def _months(year: int, month: int, count: int = 1) -> Days:
    """Return `count` months from that one on, which may be numbered from another year's: 0 is December before."""
    first, after = (dt.date(at // 12, at % 12 + 1, 1) for at in (12 * year + month - 1, 12 * year + month - 1 + count))
    return first, after - DAY


def _calendar(today: dt.date, unit: str, back: int) -> Days:
    """Return the week, weekend, month or year so many of them before this one.

    Weeks begin on Monday. Of weekends 0 is the latest that has begun, -1 the next.
    """
    if unit == "e":
        saturday = _calendar(today, "w", back + (back <= 0 and today.weekday() < 5))[1] - DAY
        return saturday, saturday + DAY
    if unit == "w":
        monday = today - (today.weekday() + 7 * back) * DAY
        return monday, monday + 6 * DAY
    if unit == "y":
        return _months(today.year - back, 1, 12)
    if unit != "m":
        raise ValueError(unit)
    return _months(today.year, today.month - back)


def _weekday(today: dt.date, weekday: int, back: int) -> Days:
    """Return the latest such day before today; 0 is that of this week, -1 the next, 2 the one before the latest."""
    if back == 0:
        return _days_ago(today, today.weekday() - weekday)
    past = back > 0
    return _days_ago(today, (today.weekday() - weekday - past) % 7 + past + 7 * (back - past))


def _rolling(today: dt.date, count: float, unit: str) -> Days:
    """Return so many days, weeks, months or years up to today; from today for a negative number."""
    days = round(count * _UNIT_DAYS[unit])
    return min(today - days * DAY, today), max(today - days * DAY, today)


def _some(today: dt.date, unit: str) -> Days:
    """Return the last few days, weeks, months or years."""
    return _rolling(today, 4 * _UNIT_DAYS[unit] + 3, "d")


def _ago(today: dt.date, count: float, unit: str) -> Days:
    """Return so many units ago; the coarser the unit, the wider the span around that day."""
    if unit == "y" and count % 1:
        unit, count = "m", count * 12
    slack = {"d": 0, "w": 3, "m": 7, "y": 45}[unit] * DAY
    day = today - round(count * _UNIT_DAYS[unit]) * DAY
    if unit == "m" and not count % 1:
        first, last = _calendar(today, "m", round(count))
        day = first.replace(day=min(today.day, last.day))
    return day - slack, day + slack


def _few(today: dt.date, unit: str) -> Days:
    """Return a few days, weeks, months or years ago."""
    days = _UNIT_DAYS[unit]
    return today - (5 if days > 1 else 10) * days * DAY, today - 2 * days * DAY


def _dated(today: dt.date, year: int | None, month: int, day: int) -> Days:
    """Return a day with its year, or the latest such day that is not in the future."""
    first = dt.date(year or today.year, month, day if year else 1)
    if year:
        return first, first
    # A leap day may lie up to eight years back.
    return _latest(today, [(today.year - back, month) for back in range(9)], day)


def _day_of_month(today: dt.date, day: int) -> Days:
    """The latest such day of a month that is not in the future."""
    firsts = [_calendar(today, "m", back)[0] for back in range(3)]
    return _latest(today, [(first.year, first.month) for first in firsts], day)


def _latest(today: dt.date, tried: list[tuple[int, int]], day: int) -> Days:
    """Return the first of the months `tried` whose `day` exists and has come. Raises StopIteration."""
    there = (_months(year, month) for year, month in tried)
    days = (first.replace(day=day) for first, last in there if 1 <= day <= last.day)
    return _days_ago(next(each for each in days if each <= today), 0)


# --- rules ---------------------------------------------------------------------------------------------------------


class _Parts(Struct, frozen=True):
    """What a rule matched; `p["day"]` is the value of the part of that name, 0 where there is none."""

    match: re.Match[str]
    tokens: list[Token]
    today: dt.date

    def __getitem__(self, part: str) -> int:
        return int(self.value(part))

    def value(self, part: str, other: float = 0) -> float:
        """Return the value of a part, or `other`."""
        at = self.match.start(part) if part in self.match.re.groupindex else -1
        return self.tokens[at].value if at >= 0 else other

    def get(self, part: str) -> str | None:
        """Return the kinds of a part; None where it does not stand there."""
        return self.match.groupdict().get(part)

    @property
    def unit(self) -> str:
        """Return the letter of a unit of time."""
        return self.match["unit"]

    @property
    def count(self) -> float:
        """Return how many units: "half a", "two", "one and a half"."""
        return 0.5 if self.get("half") else self.value("count", 1) + 0.5 * bool(self.get("plus") or self.get("more"))

    @property
    def back(self) -> int | None:
        """Return how many units back: 1 last, 0 this, -1 next, 2 before last."""
        used = [token.value for token in self.tokens[: self.match.end()] if token.kind in "RrsZ"]
        return 2 if used and re.search("v[oj]*R", self.match[0]) else int(used[0]) if used else None

    @property
    def year(self) -> int | None:
        """Return the year that is named, by its number or as "last year"."""
        named = self.tokens[self.match.start("year") : self.match.end("year")] if self.get("year") else []
        years = (t.value if t.kind == "Y" else self.today.year - t.value for t in named if t.kind in "YRrs")
        return next(map(int, years), None)

    @property
    def month(self) -> Days:
        """Return the month that is named: of its year, last, this, next, or the latest that has begun."""
        year, back = self.year or self.today.year, None if self.year else self.back
        if back is None or back > 0:
            today = _calendar(self.today, "m", 1)[0] if back else self.today
            year = self.year or today.year - (self["month"] > today.month)
        elif back < 0:
            year += self["month"] <= self.today.month
        return _calendar(dt.date(year, self["month"], 1), "m", 0)

    @property
    def span(self) -> Days:
        """Return the unit that is named as last, this or next; several of it where it is a plural."""
        if self.value("unit") == 1 and self.unit != "e":
            return _some(self.today, self.unit)
        return _calendar(self.today, self.unit, self.back or 0)


def _units(p: _Parts) -> Days:
    return _rolling(p.today, p.count if (p.back or 0) >= 0 else -p.count, p.unit)


def _day(p: _Parts) -> Days:
    return _dated(p.today, p.year, p["month"], p["day"])


def _figures(p: _Parts) -> Days:
    year, month, day = p.tokens[p.match.end() - 1].date
    return _dated(p.today, year, month, day) if day else _calendar(dt.date(year or 0, month, 1), "m", 0)


def _days_of_month(p: _Parts) -> Days:
    first, last = (_dated(p.today, p.year, p["month"], p[day])[0] for day in ("from", "to"))
    return first.replace(year=last.year), last


def _year(p: _Parts) -> Days:
    return _months(p.year or 0, 1, 12)


Rules = tuple[tuple[Callable[..., Days], str], ...]
_RULES: Rules = (
    # Counted from today.
    (lambda p: _days_ago(p.today, p["day"]), "<day D>(?: i* T)?"),
    (lambda p: _days_ago(p.today, p.back), "[Rr] T(?! j)  T r"),
    (
        lambda p: _ago(p.today, p.count, p.unit),
        "COUNT <unit [dwmy]>MORE [AN]  [av] COUNT <unit [dwmy]>MORE  <unit [dwmy]> A",
    ),
    (lambda p: _few(p.today, p.unit), "F <unit [dwmy]> [AN]  [av] F <unit [dwmy]>  N F <unit d>"),
    (_units, "[RrZ] <count [Cc]> <unit [dwmy]>(?! j)  <count [Cc]> [rZ] <unit [dwmy]>"),
    (lambda p: _some(p.today, p.unit), "[RrZ] F <unit [dwmy]>  F [rZ] <unit [dwmy]>"),
    (lambda p: p.span if p["unit"] == 1 else _units(p), "Z <unit [dwmy]>"),
    (lambda p: p.span, "[Rr] <unit [dwmy]>(?! j)  [RrZ] i? <unit e>  <unit [wmye]> POST"),
    (lambda p: p.span, "[io] <unit e>"),
    # Weekdays.
    (lambda p: _weekday(p.today, p["day"], 1), "i <day W>(?: T)?  <day W>(?= [tu] W)  f <day W>(?= & W)"),
    (lambda p: _weekday(p.today, p["day"], p.back), "[RrZ] i? <day W>(?: T)?  <day W> POST(?: T)?"),
    (
        lambda p: _days_ago(_calendar(p.today, "w", p.back or 0)[0], -p["day"]),
        "<day W>(?: T)? ,? i? (?:[Rr] w|w POST)  (?:[Rr] w|w POST) ,? i* <day W>(?: T)?",
    ),
    # Days of months.
    (_figures, "P"),
    (lambda p: _day_of_month(p.today, p["day"]), "i o <day O>(?=[.,?!;]|$)  i <day O>(?=[?!;]|$)"),
    (
        lambda p: _days_ago(_calendar(p.today, "m", p.back or 0)[0], 1 - p["day"]),
        "[Rr] m i? <day #>  <day #> (?:[Rr] m|m POST)",
    ),
    (_day, "ON <month M> <day (?:[On]|C(?! [hdwmy]))>(?: ,? YEAR)?  ON <day #> <month M>(?: ,? YEAR)?"),
    (_day, "YEAR ,? i? <month M> <day #>"),
    (
        _days_of_month,
        "<from #> [tu&] i* <to #> <month M>(?: ,? YEAR)?  <month M> <from #> [tu&] i* <to #>(?! M)(?: ,? YEAR)?",
    ),
    # Months and years.
    (lambda p: p.month, "i <month M>  [Rr] i? <month M>  <month M> POST  i m <month M>(?: ,? i? YEAR)?"),
    (lambda p: p.month, "<month M> ,? i? YEAR  YEAR ,? i? <month M>  <month M>(?= [tu] i* M)  f <month M>(?= & M)"),
    (_year, "[ij] <year (?:y )?Y(?: y)?>  <year Y>(?= [tu] Y)  f <year Y>(?= & Y)"),
)


def _since(p: _Parts, span: Days) -> Days:
    return span[0], max(p.today, span[0])


def _before(_: _Parts, span: Days) -> Days:
    return dt.date.min, span[0] - DAY


_LEADING: Rules = ((_since, "g"), (_before, "[uv]"))
_FOLLOWING: Rules = ((_since, "p"), (_before, "N"))
_MACROS = {
    "YEAR": "<year (?:y )?Y(?: y(?! [rsA]))?|[Rr] y|y POST>",
    "COUNT": "(?:c? <half H> c?|<count [Cc]>(?: (?:& [Cc]? )?<plus H>)?)",
    "MORE": "(?: & [Cc]? <more H>)?",
    "ON": "(?:W(?: T)? ,? )?",
    "POST": "(?:r|s|v R(?! [wmyedWMC]))",
    "#": "[COn]",
}
_MOST_TOKENS = 24
"""More than any expression has."""


class _Reading(NamedTuple):
    length: int
    """How many tokens it takes."""
    days: Days
    any_year: bool = False
    joined: bool = False
    """Whether it goes from one span to another."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of kinds, compiled when a question first holds what may be a time; articles may stand at each space."""
    for name, macro in _MACROS.items():
        pattern = pattern.replace(name, macro)
    pattern = re.sub(r"<(\w+) ([^<>]*)>", r"(?P<\1>\2)", pattern)
    return re.compile(f"{pattern.replace('(?! ', '(?![oj]*').replace(' ', '[oj]*')}'?")


def _matches(rules: Rules, tokens: list[Token], today: dt.date) -> list[tuple[Callable[..., Days], _Parts]]:
    """Return the rules that match at the first of `tokens`, an "in" or an article before them."""
    line = "".join(token.kind for token in tokens)
    return [
        (read, _Parts(match, tokens, today))
        for read, patterns in rules
        for pattern in patterns.split("  ")
        if (match := _compiled(f"[ifoj]*(?:{pattern})").match(line))
    ]


def _read(tokens: list[Token], today: dt.date, *, ends: bool = True) -> _Reading | None:
    """The longest reading of what begins with the first of `tokens`; with `ends` a "since" that follows is read too."""
    readings = []
    for read, p in _matches(_RULES, tokens, today):
        if days := _days(read, p):
            any_year = not p.year and (read is _day or (read is _figures and not tokens[p.match.end() - 1].date[0]))
            readings.append(_Reading(p.match.end(), days, any_year, read is _days_of_month))
    for read, p in _matches(_LEADING, tokens, today):
        inner = _read([Token("i"), *tokens[p.match.end() :]], today)
        if inner and (days := inner.days if inner.joined and read is _since else _days(read, p, inner.days)):
            readings.append(_Reading(p.match.end() + inner.length - 1, days))
    best = max(readings, key=lambda reading: reading.length, default=None)
    return best and _continued(best, tokens, today, ends=ends)


def _continued(left: _Reading, tokens: list[Token], today: dt.date, *, ends: bool) -> _Reading:
    """Return `left` with what follows it: "to" another span, or what changes a span from behind."""
    line = "".join(token.kind for token in tokens)
    between = _compiled("[tup&] i*").match(line, left.length)
    right = _read([Token("i"), *tokens[between.end() :]], today, ends=False) if between else None
    if between and right:
        if line[between.end() : between.end() + right.length - 1] == "W" and right.days[0] - left.days[0] > 7 * DAY:
            # "Monday of last week to Wednesday" is that week's.
            right = _read([Token("i"), *tokens[between.end() :]], left.days[0] + 7 * DAY, ends=False) or right
        first: _Reading | None = left
        if left.days[0] > right.days[0]:
            # The years may not be named: what begins after its end began before it.
            first = _read([Token("i"), *tokens[: left.length]], right.days[1])
        adjacent = line[0] == "f" or "&" not in between[0] or right.days[0] - left.days[1] == DAY
        if first and adjacent and first.days[0] <= right.days[1]:
            length = between.end() + right.length - 1
            length += line[length : length + 1] == "N"
            left = _Reading(length, (first.days[0], right.days[1]), joined=True)
    for read, pattern in _FOLLOWING if ends else ():
        match = _compiled(pattern).match(line, left.length)
        if match and (days := _days(read, _Parts(match, tokens, today), left.days)):
            left = _Reading(match.end(), days)
    return left


def _days(read: Callable[..., Days], *parts: _Parts | Days) -> Days | None:
    """Return what a rule reads; None for a day that does not exist."""
    try:
        first, last = read(*parts)
    except (ValueError, OverflowError, StopIteration):
        return None
    return (first, last) if first <= last else None
