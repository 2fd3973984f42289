"""The time that a question speaks of: a day, a week, a month or any span.

English, German and Chinese are read. Each expression is one row: a pattern, and a function from its parts and today to
the first and last day. The longest match wins, of equally long ones the first. A general date parser would understand
other languages too; `dateparser` takes half a second to import, a quarter of one to read a question, and reads "may"
as a month.
"""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Days = tuple[dt.date, dt.date]
"""The first and the last day of a span."""
Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Time:
    """The days from `first` to `last`, as the words of the question from `start` to `end` name them.

    With `any_year` the question names a month and a day, and the day counts in every year.
    """

    first: dt.date
    last: dt.date
    start: int
    end: int
    any_year: bool = False

    def holds(self, day: dt.date) -> bool:
        """Whether `day` lies in the span."""
        if self.any_year:
            return (day.month, day.day) == (self.first.month, self.first.day)
        return self.first <= day <= self.last

    @property
    def spelled(self) -> str:
        """The span as figures: `2026-03-04`, `2026-03-02 to 2026-03-08`, `03-04 of any year`."""
        if self.any_year:
            return f"{self.first:%m-%d} of any year"
        if self.first == self.last:
            return self.first.isoformat()
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


def _table(text: str) -> dict[str, int]:
    """Words by number: a line a number, counted from 1, its spellings with `|` between them."""
    return {word: at for at, line in enumerate(text.split(), 1) for word in line.split("|")}


_MONTHS = _table(
    "january|jan|januar|jänner february|feb|februar march|mar|märz|maerz april|apr may|mai june|jun|juni july|jul|juli "
    "august|aug september|sep|sept october|oct|oktober|okt november|nov december|dec|dezember|dez"
)
_WEEKDAYS = _table(
    "monday|mon|montag tuesday|tue|tues|dienstag wednesday|wed|mittwoch thursday|thu|thurs|donnerstag "
    "friday|fri|freitag saturday|sat|samstag|sonnabend sunday|sun|sonntag"
)
_NUMBERS = {
    **_table(
        "a|an|one|ein|eine|einem|einen|einer two|couple|zwei three|drei four|vier five|fünf|fuenf six|sechs "
        "seven|sieben eight|acht nine|neun ten|zehn eleven|elf twelve|zwölf|zwoelf"
    ),
}
_CHINESE_DIGITS = {**_table("一 二|两|兩 三 四 五 六 七 八 九"), "日": 7, "天": 7, "末": 6}

MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
WEEKDAY = "(?:" + "|".join(sorted(_WEEKDAYS, key=len, reverse=True)) + ")"
COUNT = r"(?:\d{1,3}|a couple|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")(?:\s+of)?"
_HAN = "(?:[0-9]{1,3}|[一二两兩三四五六七八九十]{1,3})"
_WEEK_HAN = "(?:周|週|星期|礼拜|禮拜)"


def _count(text: str) -> int:
    word = text.lower().removesuffix("of").strip()
    return int(word) if word.isdigit() else _NUMBERS[word.removeprefix("a ")]


def _han(text: str) -> int:
    """A number up to 99 in Chinese or Arabic figures."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return _CHINESE_DIGITS[text]
    return (_CHINESE_DIGITS[tens] if tens else 1) * 10 + (_CHINESE_DIGITS[ones] if ones else 0)


def _month_of(text: str) -> int:
    return _MONTHS[text.lower().rstrip(".")]


def _weekday_of(text: str) -> int:
    return _WEEKDAYS[text.lower()] - 1


# --- spans ---------------------------------------------------------------------------------------------------------


def _ago(today: dt.date, days: int) -> Days:
    day = today - dt.timedelta(days=days)
    return day, day


def _week(today: dt.date, back: int) -> Days:
    """The week, Monday to Sunday, `back` weeks before this one."""
    monday = today - dt.timedelta(days=today.weekday() + 7 * back)
    return monday, monday + dt.timedelta(days=6)


def _weekend(today: dt.date, back: int) -> Days:
    saturday = _week(today, back)[0] + dt.timedelta(days=5)
    return saturday, saturday + dt.timedelta(days=1)


def _latest_weekend(today: dt.date) -> Days:
    return _weekend(today, 0 if today.weekday() >= 5 else 1)


def _whole_month(year: int, month: int) -> Days:
    return dt.date(year, month, 1), dt.date(year, month, monthrange(year, month)[1])


def _months_back(today: dt.date, back: int) -> Days:
    at = today.year * 12 + today.month - 1 - back
    return _whole_month(at // 12, at % 12 + 1)


def _same_day_months_back(today: dt.date, back: int) -> Days:
    """The days around the same day of the month `back` months ago: who counts in months is not exact."""
    first, last = _months_back(today, back)
    day = first.replace(day=min(today.day, last.day))
    return day - dt.timedelta(days=7), day + dt.timedelta(days=7)


def _around(today: dt.date, days: int, slack: int) -> Days:
    day = today - dt.timedelta(days=days)
    return day - dt.timedelta(days=slack), day + dt.timedelta(days=slack)


def _latest_month(today: dt.date, month: int) -> Days:
    """The latest `month` that has begun."""
    return _whole_month(today.year - (month > today.month), month)


def _weekday(today: dt.date, weekday: int) -> Days:
    """The latest such day before today."""
    return _ago(today, (today.weekday() - weekday - 1) % 7 + 1)


def _weekday_in(today: dt.date, weekday: int, back: int) -> Days:
    """That day of the week `back` weeks before this one."""
    day = _week(today, back)[0] + dt.timedelta(days=weekday)
    return day, day


def _part(span: Days, which: str) -> Days:
    """The beginning, middle or end of a month."""
    first, last = span
    if which in ("early", "beginning", "start", "anfang", "初"):
        return first, first.replace(day=10)
    if which in ("mid", "middle", "mitte", "中"):
        return first.replace(day=11), first.replace(day=20)
    return first.replace(day=21), last


def _year(year: int) -> Days:
    return dt.date(year, 1, 1), dt.date(year, 12, 31)


def _quarter(year: int, quarter: int) -> Days:
    return dt.date(year, 3 * quarter - 2, 1), _whole_month(year, 3 * quarter)[1]


def _season(today: dt.date, name: str, year: str | None) -> Days:
    month = {"spring": 3, "frühling": 3, "frühjahr": 3, "summer": 6, "sommer": 6, "autumn": 9, "fall": 9, "herbst": 9}
    begins = month.get(name.lower(), 12)
    own = int(year) if year else today.year - (dt.date(today.year, begins, 1) > today)
    last = own * 12 + begins + 1
    return dt.date(own, begins, 1), _whole_month(last // 12, last % 12 + 1)[1]


def _past(today: dt.date, days: int) -> Days:
    return today - dt.timedelta(days=days), today


_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woch": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}


def _unit(word: str) -> int:
    return next(days for stem, days in _UNIT_DAYS.items() if word.lower().startswith(stem))


def _units_ago(today: dt.date, count: int, word: str) -> Days:
    """So many days, weeks, months or years ago; the coarser the unit, the wider the span around that day."""
    days = _unit(word)
    if days == 1:
        return _ago(today, count)
    if days == 7:
        return _around(today, 7 * count, 3)
    if days == 30:
        return _same_day_months_back(today, count)
    return _around(today, 365 * count, 45)


def _dated(today: dt.date, year: str | None, month: int, day: int) -> Days:
    """A day with its year, or the latest such day that is not in the future."""
    if year:
        own = int(year) + (2000 if len(year) == 2 else 0)
        found = dt.date(own, month, day)
    else:
        # A leap day may lie up to eight years back.
        years = (today.year - back for back in range(9))
        found = next(one for own in years if (one := _existing(own, month, day)) and one <= today)
    return found, found


def _existing(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _between(first: Days, last: Days) -> Days:
    begin, end = first[0], last[1]
    if begin > end:
        # The years were not named: what begins later in the year began a year earlier.
        begin = begin.replace(year=begin.year - 1)
    return begin, end


def _chinese_month(found: Match, today: dt.date) -> Days:
    month = _han(found["month"])
    match found["year"]:
        case None:
            span = _latest_month(today, month)
        case "去":
            span = _whole_month(today.year - 1, month)
        case "今":
            span = _whole_month(today.year, month)
        case year:
            span = _whole_month(int(year), month)
    return _part(span, found["part"]) if found["part"] else span


def _week_of_month(today: dt.date, nth: str, month: int, year: str | None) -> Days:
    first, last = _whole_month(int(year), month) if year else _latest_month(today, month)
    if nth.lower() == "last":
        return last - dt.timedelta(days=6), last
    begin = first + dt.timedelta(days=7 * ("first", "second", "third", "fourth").index(nth.lower()))
    return begin, begin + dt.timedelta(days=6)


def _last_quarter(today: dt.date) -> Days:
    quarter = (today.month - 1) // 3
    return _quarter(today.year, quarter) if quarter else _quarter(today.year - 1, 4)


# --- expressions ---------------------------------------------------------------------------------------------------

Reader = Callable[[Match, dt.date], Days]


@dataclass(frozen=True)
class Expression:
    """A way of naming a time; with `any_year` the match of a group called `year` decides whether the year is known."""

    spelled: str
    read: Reader
    any_year: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """`spelled`, compiled when a question is first looked through."""
        return re.compile(self.spelled, re.IGNORECASE)


def _row(pattern: str, read: Reader, *, words: bool = True, any_year: bool = False) -> Expression:
    return Expression(rf"(?<!\w)(?:{pattern})(?!\w)" if words else pattern, read, any_year)


_ORDINAL = r"(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:,?\s+(?P<year>(?:19|20)\d\d))?"
_MD = rf"(?P<month>{MONTH})\s+(?P<day>\d{{1,2}}){_ORDINAL}{_YEAR}"
_DM = rf"(?P<day>\d{{1,2}}){_ORDINAL}\s+(?:of\s+)?(?P<month>{MONTH}){_YEAR}"
_ON = r"(?:(?:on|at|am|der|den|dem|vom|the)\s+)?"
_IN = r"(?:(?:in|im|during|of|während)\s+)?"
_LAST = r"(?:last|previous|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?)"
_THIS = r"(?:this|diese[nrsm]?)"
_PAST = r"(?:in|over|during|within|for|from)?\s*(?:the\s+|den\s+|der\s+)?(?:last|past|previous|letzten|vergangenen)"
_PARTS = r"(?:early|mid|late|(?:the\s+)?(?:beginning|start|middle|end)\s+of|anfang|mitte|ende)"
_DAYTIME = r"(?:\s+(?:morning|afternoon|evening|night|morgen|früh|vormittag|mittag|nachmittag|abend|nacht))?"


def _which(text: str) -> str:
    return text.lower().removeprefix("the ").split()[0].rstrip("-")


def _span_of_months_days(found: Match, today: dt.date, year: str | None, months: tuple[str, str]) -> Days:
    first = _dated(today, year, _month_of(months[0]), int(found["from"]))
    return _between(first, _dated(today, year, _month_of(months[1]), int(found["to"])))


_ROWS: tuple[Expression, ...] = (
    # Figures.
    _row(
        r"(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        lambda m, t: _dated(t, m["year"], int(m["month"]), int(m["day"])),
    ),
    _row(r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)", lambda m, _: _whole_month(int(m["year"]), int(m["month"]))),
    _row(
        _ON + r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?P<year>(?:19|20)?\d\d)?",
        lambda m, t: _dated(t, m["year"], int(m["month"]), int(m["day"])),
        any_year=True,
    ),
    _row(
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>(?:19|20)?\d\d)",
        lambda m, t: _dated(t, m["year"], int(m["month"]), int(m["day"])),
    ),
    # A day of a month, and spans of them.
    _row(
        _ON + _MD,
        lambda m, t: _dated(t, m["year"], _month_of(m["month"]), int(m["day"])),
        any_year=True,
    ),
    _row(
        _ON + _DM,
        lambda m, t: _dated(t, m["year"], _month_of(m["month"]), int(m["day"])),
        any_year=True,
    ),
    _row(
        rf"(?:between|from)?\s*(?P<month>{MONTH})\s+(?P<from>\d{{1,2}}){_ORDINAL}\s*(?:-|–|to|and|until|through)\s*"
        rf"(?:(?P<other>{MONTH})\s+)?(?P<to>\d{{1,2}}){_ORDINAL}{_YEAR}",
        lambda m, t: _span_of_months_days(m, t, m["year"], (m["month"], m["other"] or m["month"])),
    ),
    _row(
        rf"(?:between|from|zwischen|vom|von)?\s*(?:dem\s+)?(?P<from>\d{{1,2}}){_ORDINAL}\s*(?:(?P<other>{MONTH})\s+)?"
        rf"(?:-|–|to|and|until|through|und|bis)\s*(?:dem\s+|zum\s+)?(?P<to>\d{{1,2}}){_ORDINAL}\s+(?:of\s+)?"
        rf"(?P<month>{MONTH}){_YEAR}",
        lambda m, t: _span_of_months_days(m, t, m["year"], (m["other"] or m["month"], m["month"])),
    ),
    # Days counted from today.
    _row(r"today|heute|this (?:morning|afternoon|evening)|tonight" + _DAYTIME, lambda _, t: _ago(t, 0)),
    _row(rf"(?:yesterday|gestern){_DAYTIME}|last night", lambda _, t: _ago(t, 1)),
    _row(r"(?:the )?day before yesterday|vorgestern" + _DAYTIME, lambda _, t: _ago(t, 2)),
    _row(r"tomorrow" + _DAYTIME, lambda _, t: _ago(t, -1)),
    _row(
        rf"(?P<count>{COUNT})\s+(?P<unit>days?|weeks?|months?|years?)\s+(?:ago|back|earlier)",
        lambda m, t: _units_ago(t, _count(m["count"]), m["unit"]),
    ),
    _row(r"(?:a )?fortnight ago", lambda _, t: _around(t, 14, 3)),
    _row(
        rf"vor\s+(?P<count>{COUNT})\s+(?P<unit>tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?)",
        lambda m, t: _units_ago(t, _count(m["count"]), m["unit"]),
    ),
    _row(
        r"(?:a )?few days (?:ago|back)|vor (?:ein paar|einigen) tagen",
        lambda _, t: (t - dt.timedelta(days=10), t - dt.timedelta(days=2)),
    ),
    _row(
        rf"{_PAST}\s+(?P<count>{COUNT})\s+(?P<unit>days?|weeks?|months?|years?|tagen?|wochen|monaten?|jahren?)",
        lambda m, t: _past(t, _count(m["count"]) * _unit(m["unit"])),
    ),
    # Weeks, weekends and weekdays.
    _row(rf"{_LAST}\s+(?:week|woche)", lambda _, t: _week(t, 1)),
    _row(r"(?:the )?week before last|vorletzte[rn]? woche", lambda _, t: _week(t, 2)),
    _row(rf"(?:earlier )?{_THIS}\s+(?:week|woche)", lambda _, t: _week(t, 0)),
    _row(r"(?:in |over |during )?(?:the |this )?past week", lambda _, t: _past(t, 7)),
    _row(rf"(?:{_LAST}|this past)\s+(?:weekend|wochenende)", lambda _, t: _weekend(t, 1)),
    _row(
        rf"(?:on |over |at |during |am )?(?:(?:the|{_THIS})\s+)?(?:weekend|wochenende)",
        lambda _, t: _latest_weekend(t),
    ),
    _row(
        # A weekday alone is a habit as often as a day; it is searched, and every such day holds it.
        rf"(?:{_LAST}|this past|on|am)\s+(?P<weekday>{WEEKDAY}){_DAYTIME}",
        lambda m, t: _weekday(t, _weekday_of(m["weekday"])),
    ),
    _row(rf"{_THIS}\s+(?P<weekday>{WEEKDAY})", lambda m, t: _weekday_in(t, _weekday_of(m["weekday"]), 0)),
    _row(
        rf"(?P<weekday>{WEEKDAY})\s+(?:of\s+)?(?:last week|letzter woche|letzte woche)",
        lambda m, t: _weekday_in(t, _weekday_of(m["weekday"]), 1),
    ),
    _row(
        rf"(?:the )?week (?:of|starting|beginning)\s+(?:the\s+)?(?:{_MD})",
        lambda m, t: _week(_dated(t, m["year"], _month_of(m["month"]), int(m["day"]))[0], 0),
    ),
    _row(
        r"(?:calendar week|week|kw|kalenderwoche)\s+(?P<week>\d{1,2})(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        lambda m, t: _week(dt.date.fromisocalendar(int(m["year"] or t.year), int(m["week"]), 1), 0),
    ),
    # Months, seasons, quarters and years.
    _row(rf"{_LAST}\s+(?:month|monat)", lambda _, t: _months_back(t, 1)),
    _row(rf"(?:earlier )?{_THIS}\s+(?:month|monat)", lambda _, t: _months_back(t, 0)),
    _row(r"(?:in |over |during )?(?:the |this )?past month", lambda _, t: _past(t, 30)),
    _row(r"(?:in |over |during )?(?:the |this )?past year", lambda _, t: _past(t, 365)),
    _row(
        rf"(?:in|im|during|{_LAST}|back in)\s+(?P<month>{MONTH})",
        lambda m, t: _latest_month(t, _month_of(m["month"])),
    ),
    _row(
        rf"{_IN}(?P<month>{MONTH})(?:\s+of)?,?\s+(?P<year>(?:19|20)\d\d)",
        lambda m, _: _whole_month(int(m["year"]), _month_of(m["month"])),
    ),
    _row(
        rf"{_IN}(?P<month>{MONTH})\s+(?:of\s+)?(?:last year|letzten jahres|letztes jahr)",
        lambda m, t: _whole_month(t.year - 1, _month_of(m["month"])),
    ),
    _row(
        rf"(?:in |at |during )?(?P<part>{_PARTS})[\s-]+(?P<month>{MONTH}){_YEAR}",
        lambda m, t: _part(
            _whole_month(int(m["year"]), _month_of(m["month"]))
            if m["year"]
            else _latest_month(t, _month_of(m["month"])),
            _which(m["part"]),
        ),
    ),
    _row(
        rf"(?:in |at |during )?(?:the\s+)?(?P<nth>first|second|third|fourth|last)\s+week\s+of\s+"
        rf"(?P<month>{MONTH}){_YEAR}",
        lambda m, t: _week_of_month(t, m["nth"], _month_of(m["month"]), m["year"]),
    ),
    _row(rf"(?:in |during )?(?:{_LAST}\s+(?:year|jahr)|letzten jahres)", lambda _, t: _year(t.year - 1)),
    _row(rf"(?:in |during |earlier )?{_THIS}\s+(?:year|jahr)", lambda _, t: _year(t.year)),
    _row(r"(?:in|during|im jahr|of)\s+(?P<year>(?:19|20)\d\d)", lambda m, _: _year(int(m["year"]))),
    _row(
        rf"(?:in |during |im |{_LAST}\s+)(?:the\s+)?"
        r"(?P<season>spring|summer|autumn|fall|winter|frühling|frühjahr|sommer|herbst)"
        r"(?:\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
        lambda m, t: _season(t, m["season"], m["year"]),
    ),
    _row(
        r"(?:in )?q(?P<quarter>[1-4])(?:\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
        lambda m, t: _quarter(int(m["year"] or t.year), int(m["quarter"])),
    ),
    _row(rf"{_LAST}\s+(?:quarter|quartal)", lambda _, t: _last_quarter(t)),
    _row(
        rf"(?:since|after)\s+{_MD}",
        lambda m, t: (_dated(t, m["year"], _month_of(m["month"]), int(m["day"]))[0], t),
    ),
    _row(
        rf"(?:since|after|seit|nach)\s+(?:dem\s+)?{_DM}",
        lambda m, t: (_dated(t, m["year"], _month_of(m["month"]), int(m["day"]))[0], t),
    ),
    _row(rf"(?:since|seit)\s+(?P<weekday>{WEEKDAY})", lambda m, t: (_weekday(t, _weekday_of(m["weekday"]))[0], t)),
    _row(rf"(?:since|seit)\s+(?P<month>{MONTH})", lambda m, t: (_latest_month(t, _month_of(m["month"]))[0], t)),
    _row(r"(?:since|seit)\s+(?:last week|letzter woche)", lambda _, t: (_week(t, 1)[0], t)),
    _row(r"(?:since|seit)\s+(?:last month|letztem monat)", lambda _, t: (_months_back(t, 1)[0], t)),
    # Chinese.
    _row("今天|今日|今早|今晚|今晨", lambda _, t: _ago(t, 0), words=False),
    _row("昨天|昨日|昨晚|昨夜", lambda _, t: _ago(t, 1), words=False),
    _row("前天|前日", lambda _, t: _ago(t, 2), words=False),
    _row("大前天", lambda _, t: _ago(t, 3), words=False),
    _row("明天|明日", lambda _, t: _ago(t, -1), words=False),
    _row(f"(?P<count>{_HAN})天(?:之)?前", lambda m, t: _ago(t, _han(m["count"])), words=False),
    _row(
        f"(?P<count>{_HAN})(?:个|個)?{_WEEK_HAN}(?:之)?前",
        lambda m, t: _around(t, 7 * _han(m["count"]), 3),
        words=False,
    ),
    _row(
        f"(?P<count>{_HAN})(?:个|個)月(?:之)?前",
        lambda m, t: _same_day_months_back(t, _han(m["count"])),
        words=False,
    ),
    _row("[几幾]天(?:之)?前", lambda _, t: (t - dt.timedelta(days=10), t - dt.timedelta(days=2)), words=False),
    _row("半年(?:之)?前", lambda _, t: _same_day_months_back(t, 6), words=False),
    _row(f"(?P<count>{_HAN})年(?:之)?前", lambda m, t: _around(t, 365 * _han(m["count"]), 45), words=False),
    _row(
        f"(?:最近|过去|過去|这|這|近)(?P<count>{_HAN})天(?:内|內|里|裡|来|來)?",
        lambda m, t: _past(t, _han(m["count"])),
        words=False,
    ),
    _row(
        f"(?:最近|过去|過去|近)(?P<count>{_HAN})(?:个|個)?{_WEEK_HAN}",
        lambda m, t: _past(t, 7 * _han(m["count"])),
        words=False,
    ),
    _row(
        f"(?:最近|过去|過去|近)(?P<count>{_HAN})(?:个|個)月",
        lambda m, t: _past(t, 30 * _han(m["count"])),
        words=False,
    ),
    _row(f"上(?:个|個)?{_WEEK_HAN}", lambda _, t: _week(t, 1), words=False),
    _row(f"上上(?:个|個)?{_WEEK_HAN}", lambda _, t: _week(t, 2), words=False),
    _row(f"(?:这|這|本)(?:个|個)?{_WEEK_HAN}", lambda _, t: _week(t, 0), words=False),
    _row(f"上(?:个|個)?{_WEEK_HAN}末", lambda _, t: _weekend(t, 1), words=False),
    _row("(?:这个|這個|这|這)?(?:周末|週末)", lambda _, t: _latest_weekend(t), words=False),
    _row(
        f"上(?:个|個)?{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: _weekday_in(t, _CHINESE_DIGITS[m["weekday"]] - 1, 1),
        words=False,
    ),
    _row(
        f"(?:这|這|本)(?:个|個)?{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: _weekday_in(t, _CHINESE_DIGITS[m["weekday"]] - 1, 0),
        words=False,
    ),
    _row(
        f"{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: _weekday(t, _CHINESE_DIGITS[m["weekday"]] - 1),
        words=False,
    ),
    _row("上(?:个|個)月", lambda _, t: _months_back(t, 1), words=False),
    _row("(?:这个|這個|这|這|本)月", lambda _, t: _months_back(t, 0), words=False),
    _row("月初", lambda _, t: _part(_months_back(t, 0), "初"), words=False),
    _row("上(?:个|個)?月底", lambda _, t: _part(_months_back(t, 1), "底"), words=False),
    _row("去年", lambda _, t: _year(t.year - 1), words=False),
    _row("前年", lambda _, t: _year(t.year - 2), words=False),
    _row("今年", lambda _, t: _year(t.year), words=False),
    _row("(?P<year>(?:19|20)\\d\\d)年", lambda m, _: _year(int(m["year"])), words=False),
    _row(
        f"(?:(?P<year>(?:19|20)\\d\\d|去|今)年)?(?P<month>{_HAN})月(?P<part>[初中底])?(?:份)?",
        _chinese_month,
        words=False,
    ),
    _row(
        f"(?:(?P<year>(?:19|20)\\d\\d)年)?(?P<month>{_HAN})月(?P<day>{_HAN})[日号號]?",
        lambda m, t: _dated(t, m["year"], _han(m["month"]), _han(m["day"])),
        words=False,
        any_year=True,
    ),
    _row(
        f"(?:从|從)?(?:(?P<year>(?:19|20)\\d\\d)年)?(?P<month>{_HAN})月(?P<from>{_HAN})[日号號]?(?:到|至|-|–|~)"
        f"(?:(?P<other>{_HAN})月)?(?P<to>{_HAN})[日号號]?",
        lambda m, t: _between(
            _dated(t, m["year"], _han(m["month"]), _han(m["from"])),
            _dated(t, m["year"], _han(m["other"] or m["month"]), _han(m["to"])),
        ),
        words=False,
    ),
)


_HINT = re.compile(
    rf"[0-9]|[^\x00-\x7f]|\b(?:{MONTH}|{WEEKDAY})|day|night|week|month|year|quart|tag|woche|monat|jahr|heute|gestern"
    r"|this |tomorrow|spring|summer|autumn|fall|winter|sommer|herbst",
    re.IGNORECASE,
)
"""What every expression of a time holds some of. Without any of it no expression is compiled, which takes 15 ms."""


def time_in(question: str, today: dt.date) -> Time | None:
    """The time that `question` speaks of, counted from `today`; None when it names none, or a day that does not exist.

    Of several expressions the longest counts, of equally long ones the first.
    """
    if not _HINT.search(question):
        return None
    best: tuple[int, int, Any, Match] | None = None
    for row in _ROWS:
        for found in row.pattern.finditer(question):
            length = len(found.group().strip())
            if best is None or (length, -found.start()) > best[:2]:
                best = length, -found.start(), row, found
    if best is None:
        return None
    _, _, row, found = best
    try:
        first, last = row.read(found, today)
    except (ValueError, KeyError, OverflowError, StopIteration):
        return None
    lead = len(found.group()) - len(found.group().lstrip())
    any_year = row.any_year and not found["year"]
    return Time(first, last, found.start() + lead, found.end(), any_year)


def without(question: str, time: Time | None) -> str:
    """`question` without the words that name its time; the whole of it when nothing else is left."""
    if time is None:
        return question
    rest = re.sub(r"\s+", " ", f"{question[: time.start]} {question[time.end :]}").strip()
    return rest if re.search(r"\w", rest) else question
