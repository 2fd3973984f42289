"""The title of a note, which stands beside its day or its path and says neither again."""

from __future__ import annotations

import re

from memory_tui.workspace import markdown
from memory_tui.workspace.days import date_of

LONGEST = 200
_DATE = (
    r"(?:\d{4}[-/._]\d{1,2}[-/._]\d{1,2}|\d{4}-?W\d\d|\d{4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|[^\W\d]{3,12}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{1,2}(?:st|nd|rd|th|\.)? (?:de )?[^\W\d]{3,12}\.?,? (?:de )?"
    r"\d{4})(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?"
)
_AT_ENDS = re.compile(rf"\A\W*{_DATE}(?: ?\(\w+\))?[\s\W]*|[\s\W]*{_DATE}(?: ?\(\w+\))?\W*\Z")
_LINK = re.compile(r"!?\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|!?\[([^\]]*)\]\([^)]*\)")
_SIGNS = re.compile(r"\ufeff|\*+|`+|~~|(?<!\w)_+|_+(?!\w)")
_ITEM = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?|>\s?|\|)*")
_RECORD = re.compile(r"\W*(?:session|source|date|time|created|updated|status|author|tags|type|id)\b[\w ]*\W*:", re.I)
_SAYS_NOTHING = """
daily day today date time utc week log logs note notes journal diary memory memories entry entries session summary
conversation untitled title for of the vom der
monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
montag dienstag mittwoch donnerstag freitag samstag sonntag mo di mi do fr sa so
januar februar märz mai juni juli oktober dezember
tag woche kw tagebuch tageslog tagesnotizen notizen notiz protokoll tagesprotokoll eintrag
diario notas nota registro journal semaine semana jour día quotidien carnet
дневник журнал заметки заметка лог день неделя 日記 日志 日记 日報 笔记 メモ ログ 年 月 日
"""
_EMPTY = frozenset(_SAYS_NOTHING.split())


def title_of(path: str, text: str, at: int | None = None) -> str:
    """Return the title of the note `path`, or with `at` of what stands at the line `at` (from 0) of this part of it.

    It is that of the front matter, else the first heading, or the nearest above `at`; then the words in the name of
    a dated note, and its first words. Nothing that only repeats the day or the name is a title.
    """
    front, headings, name = markdown.front_matter(text), markdown.headings(text), name_beside(path, text)
    candidates = [front.get("title", ""), front.get("name", "")]
    if at is not None:
        candidates[:0] = [heading.title for heading in reversed(headings) if heading.line <= at + 1]
    else:
        lines = (line for line in markdown.prose(text).split("\n") if not _RECORD.match(line))
        words = (_ITEM.sub("", line, count=1) for line in lines if markdown.heading_on(line) is None)
        slug = "" if name else re.sub(rf"{_DATE}|[\d\W_]", " ", _stem(path))
        tops = [heading.title for heading in headings if heading.level == 1]
        # Where the name is the heading, the heading of a part says less than the first words.
        parts = [] if _letters(name) in map(_letters, tops) else [heading.title for heading in headings]
        candidates += [*tops, slug, *parts, *words]
    return next((title for words in candidates if (title := telling(words, name))), "")


def name_beside(path: str, text: str = "") -> str:
    """Return the name that stands beside the title of a note: none where its date does."""
    return "" if date_of(path, text) else _stem(path)


def telling(words: str, name: str) -> str:
    """Return what `words` say beside a date, or beside the `name` of a note, as plain text; empty for nothing."""
    plain = _SIGNS.sub("", _LINK.sub(lambda link: link[1] or link[2] or "", words[:LONGEST])).strip()
    rest = re.findall(r"[^\W\d_]+", re.sub(_DATE, " ", plain).casefold())
    if _EMPTY.issuperset(rest) or _letters(plain) == _letters(name):
        return ""
    return plain if name else _AT_ENDS.sub("", plain)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _letters(words: str) -> str:
    return re.sub(r"[\W_]+", "", words.removesuffix(".md")).casefold()
