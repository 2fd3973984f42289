"""The time that a question speaks of: a day, a week, a month or any span.

English, German and Chinese are read. Each expression is one row: a pattern, and a function from its parts and today to
the first and last day. The longest match wins, of equally long ones the first. "Since" and "before" open one end.

A general date parser would understand other languages too. `dateparser` takes 0.45 s to import and 0.2 s for the first
question; of 17 French, Spanish and Japanese expressions it read 9 right, for it knows days and no spans ("en mars" is
one day, "3月" is July), and of 6 English questions that name no time it read one in 4 ("may", "April", "the 3rd").
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.patterns import compiled_later
from memory_tui.search.dates.day_spans import (
    Days,
    around,
    around_months_back,
    between,
    dated,
    days_ago,
    days_of_unit,
    existing,
    few,
    last_quarter,
    latest_month,
    latest_weekday,
    latest_weekend,
    months_back,
    months_between,
    part_of,
    part_of_month,
    past_days,
    quarter,
    season,
    units_ago,
    week,
    week_of_month,
    weekday_in,
    weekdays_between,
    weekend,
    whole_month,
    whole_year,
)

Match = re.Match[str]


class Time(Struct, frozen=True):
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
        if self.first == dt.date.min:
            return f"until {self.last.isoformat()}"
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
    **dict.fromkeys(("twenty", "zwanzig"), 20),
    **dict.fromkeys(("thirty", "dreißig"), 30),
    **dict.fromkeys(("ninety", "neunzig"), 90),
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


def _year_han(text: str, today: dt.date) -> str:
    return text if text.isdigit() else str(today.year - "今去前".index(text))


def _weekday_of(text: str) -> int:
    return _WEEKDAYS[text.lower()] - 1


# --- expressions ---------------------------------------------------------------------------------------------------


def _chinese_month(found: Match, today: dt.date) -> Days:
    month = _han(found["month"])
    match found["year"]:
        case None:
            span = latest_month(today, month)
        case "去":
            span = whole_month(today.year - 1, month)
        case "今":
            span = whole_month(today.year, month)
        case year:
            span = whole_month(int(year), month)
    return part_of_month(span, found["part"]) if found["part"] else span


Reader = Callable[[Match, dt.date], Days]


class Expression(Struct, frozen=True, dict=True):
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
_NEXT = r"(?:next|the coming|nächste[nrsm]?|kommende[nrsm]?)"
_FEW = "(?:a few|several|some|ein paar|einigen|mehreren)"
_PAST = r"(?:in|over|during|within|for|from)?\s*(?:the\s+|den\s+|der\s+)?(?:last|past|previous|letzten|vergangenen)"
_PARTS = r"(?:early|mid|late|(?:the\s+)?(?:beginning|start|middle|end)\s+of|anfang|mitte|ende)"
_DAYTIMES = "morning|afternoon|evening|night|morgen|früh|vormittag|mittag|nachmittag|abend|nacht"
_GLUED = rf"(?:{_DAYTIMES}|\s+(?:{_DAYTIMES}))?"
_DAYTIME = rf"(?:\s+(?:{_DAYTIMES}))?"


def _day_of_month(today: dt.date, day: int) -> Days:
    """The latest such day of a month that is not in the future."""
    months = (months_back(today, back)[0] for back in range(3))
    return next((own, own) for first in months if (own := existing(first.year, first.month, day)) and own <= today)


def _unit_of(found: Match, today: dt.date) -> Days:
    back = 0 if found["when"].lower().startswith(("this", "diese")) else 1
    return months_back(today, back) if found["unit"].lower().startswith("mo") else whole_year(today.year - back)


def _which(text: str) -> str:
    return text.lower().removeprefix("the ").split()[0].rstrip("-")


def _span_of_months_days(found: Match, today: dt.date, year: str | None, months: tuple[str, str]) -> Days:
    first = dated(today, year, _month_of(months[0]), int(found["from"]))
    return between(first, dated(today, year, _month_of(months[1]), int(found["to"])))


_ROWS: tuple[Expression, ...] = (
    # Figures.
    _row(
        r"(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        lambda m, t: dated(t, m["year"], int(m["month"]), int(m["day"])),
    ),
    _row(r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)", lambda m, _: whole_month(int(m["year"]), int(m["month"]))),
    _row(
        _ON + r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?P<year>(?:19|20)?\d\d)?",
        lambda m, t: dated(t, m["year"], int(m["month"]), int(m["day"])),
        any_year=True,
    ),
    _row(
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>(?:19|20)?\d\d)",
        lambda m, t: dated(t, m["year"], int(m["month"]), int(m["day"])),
    ),
    # A day of a month, and spans of them.
    _row(
        _ON + _MD,
        lambda m, t: dated(t, m["year"], _month_of(m["month"]), int(m["day"])),
        any_year=True,
    ),
    _row(
        _ON + _DM,
        lambda m, t: dated(t, m["year"], _month_of(m["month"]), int(m["day"])),
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
    _row(r"today|heute|this (?:morning|afternoon|evening)|tonight" + _DAYTIME, lambda _, t: days_ago(t, 0)),
    _row(rf"(?:yesterday|gestern){_DAYTIME}|last night", lambda _, t: days_ago(t, 1)),
    _row(r"(?:the )?day before yesterday|vorgestern" + _DAYTIME, lambda _, t: days_ago(t, 2)),
    _row(
        r"(?:(?:on|by|at|am)\s+)?(?:the\s+)?(?<=\s)(?P<day>\d{1,2})(?:st|nd|rd|th)(?=\s*(?:[?.,;!]|$))",
        lambda m, t: _day_of_month(t, int(m["day"])),
    ),
    _row(
        rf"tomorrow{_DAYTIME}|(?<!jeden )(?<!am )(?<!guten )(?<!diesen )(?<!vom )morgen{_DAYTIME}",
        lambda _, t: days_ago(t, -1),
    ),
    _row(rf"(?:the )?day after tomorrow|übermorgen{_DAYTIME}", lambda _, t: days_ago(t, -2)),
    _row(
        rf"(?P<count>{COUNT})\s+(?:hours?|minutes?)\s+(?:ago|back)|vor\s+(?P<anzahl>{COUNT})\s+(?:stunden?|minuten?)",
        lambda _, t: days_ago(t, 0),
    ),
    _row(
        rf"{_PAST}\s+(?:(?P<count>{COUNT})\s+)?(?:hours?|stunden?)",
        lambda m, t: past_days(t, -(-(_count(m["count"]) if m["count"] else 1) // 24) if m["count"] else 0),
    ),
    _row(
        rf"(?P<count>{COUNT})\s+(?P<unit>days?|weeks?|months?|years?)\s+(?:ago|back|earlier)",
        lambda m, t: units_ago(t, _count(m["count"]), m["unit"]),
    ),
    _row(r"(?:a )?fortnight ago", lambda _, t: around(t, 14, 3)),
    _row(
        rf"vor\s+(?P<count>{COUNT})\s+(?P<unit>tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?)",
        lambda m, t: units_ago(t, _count(m["count"]), m["unit"]),
    ),
    _row(
        rf"{_FEW}\s+(?P<unit>days|weeks|months|years)\s+(?:ago|back)|"
        rf"vor\s+{_FEW}\s+(?P<einheit>tagen|wochen|monaten|jahren)",
        lambda m, t: few(t, m["unit"] or m["einheit"]),
    ),
    _row(
        rf"{_PAST}\s+(?:(?:few|couple\s+of)\s+)?(?P<unit>days|weeks|months|years|tagen?|wochen|monaten?|jahren?)",
        lambda m, t: past_days(t, 4 * days_of_unit(m["unit"]) + 3),
    ),
    _row(
        rf"{_PAST}\s+(?P<count>{COUNT})\s+(?P<unit>days?|weeks?|months?|years?|tagen?|wochen|monaten?|jahren?)",
        lambda m, t: past_days(t, _count(m["count"]) * days_of_unit(m["unit"])),
    ),
    # Weeks, weekends and weekdays.
    _row(rf"{_LAST}\s+(?:week|woche)(?!\s+(?:of|de[rsmn]|in|im)\b)", lambda _, t: week(t, 1)),
    _row(rf"{_NEXT}\s+(?:week|woche)", lambda _, t: week(t, -1)),
    _row(rf"{_NEXT}\s+(?:weekend|wochenende)", lambda _, t: weekend(t, 0 if t.weekday() < 5 else -1)),
    _row(rf"{_NEXT}\s+(?:month|monat)s?", lambda _, t: months_back(t, -1)),
    _row(rf"{_NEXT}\s+(?:year|jahr)(?:es)?", lambda _, t: whole_year(t.year + 1)),
    _row(
        rf"{_NEXT}\s+(?P<weekday>{WEEKDAY}){_GLUED}",
        lambda m, t: days_ago(t, (t.weekday() - _weekday_of(m["weekday"])) % 7 - 7),
    ),
    _row(
        rf"(?:(?:on|the|am)\s+)*(?P<weekday>{WEEKDAY})\s+before\s+last|vorletzte[nrsm]?\s+(?P<tag>{WEEKDAY})",
        lambda m, t: days_ago(latest_weekday(t, _weekday_of(m["weekday"] or m["tag"]))[0], 7),
    ),
    _row(
        rf"(?P<count>{COUNT})\s+(?P<weekday>{WEEKDAY})s\s+ago",
        lambda m, t: days_ago(latest_weekday(t, _weekday_of(m["weekday"]))[0], 7 * (_count(m["count"]) - 1)),
    ),
    _row(
        rf"(?:between|from|zwischen|von)\s+(?P<from>{WEEKDAY})\s*(?:-|–|to|and|until|through|und|bis)\s*"
        rf"(?P<to>{WEEKDAY})",
        lambda m, t: weekdays_between(t, _weekday_of(m["from"]), _weekday_of(m["to"])),
    ),
    _row(r"(?:the )?week before last|vorletzte[rn]? woche", lambda _, t: week(t, 2)),
    _row(rf"(?:earlier )?{_THIS}\s+(?:week|woche)", lambda _, t: week(t, 0)),
    _row(r"(?:in |over |during )?(?:the |this )?past week", lambda _, t: past_days(t, 7)),
    _row(rf"(?:{_LAST}|this past)\s+(?:weekend|wochenende)", lambda _, t: weekend(t, 1)),
    _row(
        rf"(?:on |over |at |during |am )?(?:(?:the|{_THIS})\s+)?(?:weekend|wochenende)",
        lambda _, t: latest_weekend(t),
    ),
    _row(
        # A weekday alone is a habit as often as a day; it is searched, and every such day holds it.
        rf"(?:{_LAST}|this past|on|am)\s+(?P<weekday>{WEEKDAY}){_GLUED}",
        lambda m, t: latest_weekday(t, _weekday_of(m["weekday"])),
    ),
    _row(rf"{_THIS}\s+(?P<weekday>{WEEKDAY}){_GLUED}", lambda m, t: weekday_in(t, _weekday_of(m["weekday"]), 0)),
    _row(
        rf"(?P<weekday>{WEEKDAY})\s+(?:of\s+)?(?:last week|letzter woche|letzte woche)",
        lambda m, t: weekday_in(t, _weekday_of(m["weekday"]), 1),
    ),
    _row(
        rf"(?:the )?week (?:of|starting|beginning)\s+(?:the\s+)?(?:{_MD})",
        lambda m, t: week(dated(t, m["year"], _month_of(m["month"]), int(m["day"]))[0], 0),
    ),
    _row(
        r"(?:calendar week|week|kw|kalenderwoche)\s+(?P<week>\d{1,2})(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        lambda m, t: week(dt.date.fromisocalendar(int(m["year"] or t.year), int(m["week"]), 1), 0),
    ),
    # Months, seasons, quarters and years.
    _row(rf"{_LAST}\s+(?:month|monats?)", lambda _, t: months_back(t, 1)),
    _row(rf"(?:earlier )?{_THIS}\s+(?:month|monats?)", lambda _, t: months_back(t, 0)),
    _row(r"(?:in |over |during )?(?:the |this )?past month", lambda _, t: past_days(t, 30)),
    _row(r"(?:in |over |during )?(?:the |this )?past year", lambda _, t: past_days(t, 365)),
    _row(
        rf"(?:in |at |during |am )?(?P<part>{_PARTS})\s+(?P<when>{_LAST}|{_THIS})\s+"
        r"(?P<unit>month|monats?|year|jahres)",
        lambda m, t: part_of(_unit_of(m, t), _which(m["part"])),
    ),
    _row(
        rf"(?:between|from|zwischen|von)\s+(?P<from>{MONTH})\s*(?:-|–|to|and|until|through|und|bis)\s*"
        rf"(?P<to>{MONTH}){_YEAR}",
        lambda m, t: months_between(t, _month_of(m["from"]), _month_of(m["to"]), m["year"]),
    ),
    _row(
        rf"(?:(?P<last>{_LAST})|in|im|during|back in)\s+(?P<month>{MONTH})(?!['’]s)",
        lambda m, t: latest_month(months_back(t, 1)[0] if m["last"] else t, _month_of(m["month"])),
    ),
    _row(
        rf"{_IN}(?P<month>{MONTH})(?:\s+of)?,?\s+(?P<year>(?:19|20)\d\d)",
        lambda m, _: whole_month(int(m["year"]), _month_of(m["month"])),
    ),
    _row(
        rf"{_IN}(?P<month>{MONTH})\s+(?:of\s+)?(?:last year|letzten jahres|letztes jahr)",
        lambda m, t: whole_month(t.year - 1, _month_of(m["month"])),
    ),
    _row(
        rf"(?:in |at |during )?(?P<part>{_PARTS})[\s-]+(?P<month>{MONTH}){_YEAR}",
        lambda m, t: part_of_month(
            whole_month(int(m["year"]), _month_of(m["month"])) if m["year"] else latest_month(t, _month_of(m["month"])),
            _which(m["part"]),
        ),
    ),
    _row(
        rf"(?:in |at |during )?(?:the\s+)?(?P<nth>first|second|third|fourth|last)\s+week\s+of\s+"
        rf"(?P<month>{MONTH}){_YEAR}",
        lambda m, t: week_of_month(t, m["nth"], _month_of(m["month"]), m["year"]),
    ),
    _row(rf"(?:in |during )?(?:{_LAST}\s+(?:year|jahr(?:es)?))", lambda _, t: whole_year(t.year - 1)),
    _row(rf"(?:in |during |earlier )?{_THIS}\s+(?:year|jahr)", lambda _, t: whole_year(t.year)),
    _row(r"(?:in|during|im jahr|of)\s+(?P<year>(?:19|20)\d\d)", lambda m, _: whole_year(int(m["year"]))),
    _row(
        rf"(?:in |during |im |(?P<last>{_LAST})\s+)(?:the\s+)?"
        r"(?P<season>spring|summer|autumn|fall|winter|frühling|frühjahr|sommer|herbst)"
        r"(?:\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
        lambda m, t: season(t, m["season"], m["year"], over=bool(m["last"])),
    ),
    _row(
        r"(?:in )?q(?P<quarter>[1-4])(?:\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
        lambda m, t: quarter(int(m["year"] or t.year), int(m["quarter"])),
    ),
    _row(rf"{_LAST}\s+(?:quarter|quartal)", lambda _, t: last_quarter(t)),
    # Chinese.
    _row("今天|今日|今早|今晚|今晨", lambda _, t: days_ago(t, 0), words=False),
    _row("昨天|昨日|昨晚|昨夜", lambda _, t: days_ago(t, 1), words=False),
    _row("前天|前日", lambda _, t: days_ago(t, 2), words=False),
    _row("大前天", lambda _, t: days_ago(t, 3), words=False),
    _row("明天|明日", lambda _, t: days_ago(t, -1), words=False),
    _row(f"(?P<count>{_HAN})天(?:之)?前", lambda m, t: days_ago(t, _han(m["count"])), words=False),
    _row(
        f"(?P<count>{_HAN})(?:个|個)?{_WEEK_HAN}(?:之)?前",
        lambda m, t: around(t, 7 * _han(m["count"]), 3),
        words=False,
    ),
    _row(
        f"(?P<count>{_HAN})(?:个|個)月(?:之)?前",
        lambda m, t: around_months_back(t, _han(m["count"])),
        words=False,
    ),
    _row("[几幾]天(?:之)?前|前[几幾些]天", lambda _, t: few(t, "days"), words=False),
    _row("[几幾]周(?:之)?前|[几幾]个(?:星期|礼拜)(?:之)?前", lambda _, t: few(t, "weeks"), words=False),
    _row("[几幾](?:个|個)月(?:之)?前", lambda _, t: few(t, "months"), words=False),
    _row("(?:最近|这|這|近)[几幾]天", lambda _, t: past_days(t, 7), words=False),
    _row("[几幾半一两]个?(?:小时|分钟)(?:之)?前|刚才|剛才", lambda _, t: days_ago(t, 0), words=False),
    _row("后天|後天", lambda _, t: days_ago(t, -2), words=False),
    _row(f"下(?:个|個)?{_WEEK_HAN}", lambda _, t: week(t, -1), words=False),
    _row(
        f"下(?:个|個)?{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: weekday_in(t, _CHINESE_DIGITS[m["weekday"]] - 1, -1),
        words=False,
    ),
    _row(
        f"(?:从|從)?{_WEEK_HAN}(?P<from>[一二三四五六日天])(?:到|至){_WEEK_HAN}?(?P<to>[一二三四五六日天])",
        lambda m, t: weekdays_between(t, _CHINESE_DIGITS[m["from"]] - 1, _CHINESE_DIGITS[m["to"]] - 1),
        words=False,
    ),
    _row("下(?:个|個)月", lambda _, t: months_back(t, -1), words=False),
    _row("明年", lambda _, t: whole_year(t.year + 1), words=False),
    _row("上(?:个|個)?季度", lambda _, t: last_quarter(t), words=False),
    _row(
        "(?:(?P<year>(?:19|20)\\d\\d|前|去|今)年)(?P<season>[春夏秋冬])(?:天|季)?",
        lambda m, t: season(t, m["season"], _year_han(m["year"], t)),
        words=False,
    ),
    _row("半年(?:之)?前", lambda _, t: around_months_back(t, 6), words=False),
    _row(f"(?P<count>{_HAN})年(?:之)?前", lambda m, t: around(t, 365 * _han(m["count"]), 45), words=False),
    _row(
        f"(?:最近|过去|過去|这|這|近)(?P<count>{_HAN})天(?:内|內|里|裡|来|來)?",
        lambda m, t: past_days(t, _han(m["count"])),
        words=False,
    ),
    _row(
        f"(?:最近|过去|過去|近)(?P<count>{_HAN})(?:个|個)?{_WEEK_HAN}",
        lambda m, t: past_days(t, 7 * _han(m["count"])),
        words=False,
    ),
    _row(
        f"(?:最近|过去|過去|近)(?P<count>{_HAN})(?:个|個)月",
        lambda m, t: past_days(t, 30 * _han(m["count"])),
        words=False,
    ),
    _row(f"上(?:个|個)?{_WEEK_HAN}", lambda _, t: week(t, 1), words=False),
    _row(f"上上(?:个|個)?{_WEEK_HAN}", lambda _, t: week(t, 2), words=False),
    _row(f"(?:这|這|本)(?:个|個)?{_WEEK_HAN}", lambda _, t: week(t, 0), words=False),
    _row(f"上(?:个|個)?{_WEEK_HAN}末", lambda _, t: weekend(t, 1), words=False),
    _row("(?:这个|這個|这|這)?(?:周末|週末)", lambda _, t: latest_weekend(t), words=False),
    _row(
        f"上(?:个|個)?{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: weekday_in(t, _CHINESE_DIGITS[m["weekday"]] - 1, 1),
        words=False,
    ),
    _row(
        f"(?:这|這|本)(?:个|個)?{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: weekday_in(t, _CHINESE_DIGITS[m["weekday"]] - 1, 0),
        words=False,
    ),
    _row(
        f"{_WEEK_HAN}(?P<weekday>[一二三四五六日天])",
        lambda m, t: latest_weekday(t, _CHINESE_DIGITS[m["weekday"]] - 1),
        words=False,
    ),
    _row("上(?:个|個)月", lambda _, t: months_back(t, 1), words=False),
    _row("(?:这个|這個|这|這|本)月", lambda _, t: months_back(t, 0), words=False),
    _row("月初", lambda _, t: part_of_month(months_back(t, 0), "初"), words=False),
    _row("上(?:个|個)?月底", lambda _, t: part_of_month(months_back(t, 1), "底"), words=False),
    _row("去年", lambda _, t: whole_year(t.year - 1), words=False),
    _row("前年", lambda _, t: whole_year(t.year - 2), words=False),
    _row("今年", lambda _, t: whole_year(t.year), words=False),
    _row("(?P<year>(?:19|20)\\d\\d)年", lambda m, _: whole_year(int(m["year"])), words=False),
    _row(
        f"(?:(?P<year>(?:19|20)\\d\\d|去|今)年)?(?P<month>{_HAN})月(?P<part>[初中底])?(?:份)?(?![天河])",
        _chinese_month,
        words=False,
    ),
    _row(
        f"(?:(?P<year>(?:19|20)\\d\\d)年)?(?P<month>{_HAN})月(?P<day>{_HAN})[日号號]?",
        lambda m, t: dated(t, m["year"], _han(m["month"]), _han(m["day"])),
        words=False,
        any_year=True,
    ),
    _row(
        f"(?:从|從)?(?:(?P<year>(?:19|20)\\d\\d)年)?(?P<month>{_HAN})月(?P<from>{_HAN})[日号號]?(?:到|至|-|–|~)"
        f"(?:(?P<other>{_HAN})月)?(?P<to>{_HAN})[日号號]?",
        lambda m, t: between(
            dated(t, m["year"], _han(m["month"]), _han(m["from"])),
            dated(t, m["year"], _han(m["other"] or m["month"]), _han(m["to"])),
        ),
        words=False,
    ),
)


_SINCE, _UNTIL = "since|after|ever since|seit|nach|ab", "before|until|till|up to|bis|vor"
_BOUND = compiled_later(rf"(?<!\w)(?:(?P<since>{_SINCE})|(?:{_UNTIL}))\s+(?:de[mnr]\s+|the\s+)?", re.IGNORECASE)
_SINCE_HAN, _UNTIL_HAN = compiled_later("以来|以來|以后|以後|之后|之後"), compiled_later("以前|之前")
_MOST_BOUNDS = 16
"""More than anyone says in one question; each is read on its own."""
_LONGEST = 80
"""Characters of an expression, at most."""
_LEADS = ("", "on ", "in ", "am ", "im ")
"""What a time has before it where nothing bounds it: "since March" is since what "in March" is."""


_HINT = compiled_later(
    rf"[0-9]|[^\x00-\x7f]|\b(?:{MONTH}|{WEEKDAY})|day|night|week|month|year|hour|minute|stunde|quart|tag|woche|monat|jahr"
    r"|heute|gestern|morgen|this |tomorrow|spring|summer|autumn|fall|winter|sommer|herbst",
    re.IGNORECASE,
)
"""What every expression of a time holds some of. Without any of it no expression is compiled, which takes 15 ms."""


def time_in(question: str, today: dt.date) -> Time | None:
    """The time that `question` speaks of, counted from `today`; None when it names none, or a day that does not exist.

    Of several expressions the longest counts, of equally long ones the first. "Since" and "before" leave one end open.
    """
    if not _HINT.search(question):
        return None
    closed = _longest(question, today)
    bounds = itertools.islice(_BOUND.finditer(question), _MOST_BOUNDS)
    opened = [found for bound in bounds if (found := _bounded(question, bound, today))]
    best = max((one for one in (*opened, closed) if one), key=lambda one: one.end - one.start, default=None)
    if best is not closed or best is None:
        return best
    if after := _SINCE_HAN.match(question, best.end):
        return replace(best, last=max(today, best.first), end=after.end(), any_year=False)
    if before := _UNTIL_HAN.match(question, best.end):
        return replace(best, first=dt.date.min, last=best.first - _DAY, end=before.end(), any_year=False)
    return best


def _bounded(question: str, bound: Match, today: dt.date) -> Time | None:
    """The time that `bound` opens: from its first day to today, or up to the day before it."""
    inner = None
    for lead in _LEADS:
        found = _longest(lead + question[bound.end() : bound.end() + _LONGEST], today, at_start=True)
        if found and (inner is None or found.end - len(lead) > inner.end):
            inner = replace(found, start=0, end=found.end - len(lead))
    if inner is None or inner.first == dt.date.min:
        return None
    start, end = bound.start(), bound.end() + inner.end
    if bound["since"]:
        return Time(inner.first, max(today, inner.first), start, end)
    return Time(dt.date.min, inner.first - _DAY, start, end)


_DAY = dt.timedelta(days=1)


def _longest(question: str, today: dt.date, *, at_start: bool = False) -> Time | None:
    best: tuple[int, int, Expression, Match] | None = None
    for row in _ROWS:
        for found in filter(None, [row.pattern.match(question)]) if at_start else row.pattern.finditer(question):
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
