"""The words that name times, by language, as `time_words.txt` has them.

A row there is a kind with its value, and the words of that kind. `_` stands for what separates words, `stem|a|b` for
the stem with each ending. Several kinds before the `:` are what one word says at once: 先週 is "last" and "week".

| Kind | Words | Value |
|---|---|---|
| D W M Y S Q | day, weekday, month, year, season, quarter | days ago, 0 to 6, 1 to 12, year, first month, 1 to 4 |
| d w e m q y h | units: day, week, weekend, month, quarter, year, hour | 1 where the word says several |
| C c O n F H | figures, number, ordinal in figures and in words, few, half | |
| R r s | last, this, next: before their noun, on either side, after it | units back |
| Z V | past, mondays | |
| A a | "ago" after its span, before it | |
| B b X | early, middle, late before their span, after it; first or second half | 0 to 2; 1, 2 |
| g v u | since, before, until; "vor" is also "ago" | |
| p N | since, before, where they follow | |
| f t & | from, to, and | |
| i o j | in, the, of; `t` in other languages is "in" where no time is before it | |
| T K E | time of day; week by its number; what makes the next no time: every, version | |
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

Kinds = tuple[tuple[str, float], ...]
"""What one word says: kinds with their values."""
WEEK_STEMS = ("周", "週", "星期", "礼拜", "禮拜")


@cache
def _languages() -> list[dict[str, Kinds]]:
    languages: list[dict[str, Kinds]] = []
    for row in Path(__file__).with_name("time_words.txt").read_text("utf-8").splitlines():
        kinds, _, words = row.partition(": ")
        if row.startswith("#"):
            languages.append({})
            continue
        says = tuple((kind[0], float(kind[1:] or 0)) for kind in kinds.split())
        for word in words.split():
            stem, *endings = word.split("|")
            languages[-1] |= {stem + ending: says for ending in endings or [""]}
    return languages


@cache
def lexicons() -> tuple[dict[str, Kinds], ...]:
    """What each word says, in each language that separates words; English first."""
    english, german, *others = _languages()[:-1]
    times = ["morgen", "früh", "vormittag", "mittag", "nachmittag", "abend", "nacht", "ochtend", "middag", "avond"]
    german |= {day + time: kinds for day, kinds in german.items() if kinds[0][0] == "W" for time in times}
    return english, german, *others


@cache
def east_asian() -> dict[str, Kinds]:
    """What each word says in Chinese, Japanese and Korean."""
    lexicon = _languages()[-1]
    days = ("一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日日일", "天日일")
    for at, names in enumerate(days):
        words = [stem + names[0] for stem in WEEK_STEMS] + [names[1] + "曜日", names[1] + "曜", names[2] + "요일"]
        lexicon |= dict.fromkeys(words, (("W", min(at, 6)),))
    return lexicon
