"""The words and figures of a question as kinds, one letter each: "last week" is `R` and `w`.

What a word says stands in `time_words.txt`. A row there is a kind with its value, and the words of that
kind. `_` stands for what separates words, `stem|a|b` for the stem with each ending. Several kinds before the `:` are
what one word says at once: 先週 is "last" and "week".

| Kind | Words | Value |
|---|---|---|
| D W M Y | day, weekday, month, year | days ago, 0 to 6, 1 to 12, year |
| d w e m y | units: day, week, weekend, month, year | 1 where the word says several |
| C c O n F H | figures, number, ordinal in figures and in words, few, half | |
| R r s | last, this, next: before their noun, on either side, after it | units back |
| Z | past | |
| A a | "ago" after its span, before it | |
| g v u | since, before, until; "vor" is also "ago" | |
| p N | since, before, where they follow | |
| f t & | from, to, and | |
| i o j | in, the, of; `t` in other languages is "in" where no time is before it | |
| T E | time of day; what makes the next no time: every, version | |
"""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
    """Return what each word says, in each language that separates words; English first."""
    english, german, *others = _languages()[:-1]
    times = ["morgen", "früh", "vormittag", "mittag", "nachmittag", "abend", "nacht", "ochtend", "middag", "avond"]
    # Another one, because of two first questions at the same time each makes its own, and reads what both share.
    german = german | {day + time: kinds for day, kinds in german.items() if kinds[0][0] == "W" for time in times}
    return english, german, *others


@cache
def east_asian() -> dict[str, Kinds]:
    """What each word says in Chinese, Japanese and Korean."""
    lexicon = dict(_languages()[-1])
    days = ("一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日日일", "天日일")
    for at, names in enumerate(days):
        words = [stem + names[0] for stem in WEEK_STEMS] + [names[1] + "曜日", names[1] + "曜", names[2] + "요일"]
        lexicon |= dict.fromkeys(words, (("W", min(at, 6)),))
    return lexicon


Figures = tuple[int | None, int, int | None]
"""Year, month and day of a date in figures; without its year, or a month."""


class Token(NamedTuple):
    """One kind, and where its word stands in the question; nowhere for an "in" that needs no word."""

    kind: str
    value: float = 0
    start: int = 0
    end: int = 0
    date: Figures = (None, 0, None)
    """What figures of kind `P` say."""


_TELLING = frozenset("DWMTdwemy")
_CJK = "々〇\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PIECE = (
    r"(?P<figures>\d(?:[\d.:/–-]*\d)?)(?P<nth>(?:st|nd|rd|th|er|º)(?!\w)|\.(?!\d))?"
    rf"|(?P<own>['’]s\b)|(?P<word>[^\W\d_{_CJK}]+)|(?P<mark>[^\s'’])"
)
_QUOTED = r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』|《[^》]*》|`[^`]*`"
_DIGITS_HAN = {**{digit: at for at, digit in enumerate("〇一二三四五六七八九")}, "零": 0, "两": 2, "兩": 2}
_AFTER_HAN = (
    "的了我你您他她它们在去做发發说說和跟与與到至從从之以是都有谁誰什哪怎几幾见見买買开開看来來决決讨討提写寫订訂定安預预计計完会會"
    "议議项項账帳报報旅行里裡中上下份想要能可把给給对對就也还還为為记記聊谈談收付用出住学學读讀应應早晚午初底末前後后"
    "にのはがをもでとかへや에의은는이가를을도까부초중말엔"
)
"""What stands after a month or a weekday of a question, where "三月兔" and "星期五餐厅" are names."""
_SHORT = re.compile("may|march|mars?|jan|feb|apr|ju[nl]|aug|sept?|oct|nov|dec|mon|tues?|wed|thu(rs)?|fri|sat|sun")
"""Words that are seldom a month or a weekday where nothing beside them says so."""
_GIVEN_NAMES = frozenset({"april", "may", "june", "jan", "august", "mai", "mei"})
_BEFORE_DATE = re.compile("on|am|vom|zum|bis|seit|ab|de[mnr]|[ei]l|le|del|até|до|от|с|по")
_FRENCH = re.compile(r"\b(que?|qui|quoi|ai|avons|avez|est|été|les?|du|nous|je|elle|où|soir|matin|c)\b", re.IGNORECASE)
_LEADS = frozenset("igvufRrOnZ")
"""Kinds before a month or a weekday that say that it is one."""
_MOST_CHARACTERS = 2_000


def lines_of(question: str, today: dt.date) -> list[list[Token]]:
    """Return the kinds of `question` in each language of which it holds a word that may name a time."""
    rest = re.sub(_QUOTED, lambda quote: "\0" * len(quote[0]), question[:_MOST_CHARACTERS])
    text = rest if re.search(r"\w", rest) else question[:_MOST_CHARACTERS]
    words = {*re.findall(r"[^\W\d_]+|\d", text.lower())}
    figures = any(word.isdigit() for word in words)
    languages = [lexicon for lexicon, telling in zip(lexicons(), _telling(), strict=True) if figures or words & telling]
    lines = [_latin(text, lexicon, today) for lexicon in languages]
    return [*lines, _asian(text)] if max(text, default="") > "\u2fff" else lines


@cache
def _telling() -> tuple[frozenset[str], ...]:
    """Return the words of each language without one of which, or a figure, a question names no time."""
    return tuple(
        frozenset(word.rpartition("_")[2] for word, kinds in lexicon.items() if _TELLING & {kind for kind, _ in kinds})
        for lexicon in lexicons()
    )


# --- languages that separate words ----------------------------------------------------------------------------------


def _latin(question: str, lexicon: dict[str, Kinds], today: dt.date) -> list[Token]:
    """Return the kinds of words, figures and marks, each as its neighbours have it; `i` where a time needs no "in"."""
    tokens: list[Token] = []
    pieces = list(re.finditer(_PIECE, question))
    after = 0
    for at, piece in enumerate(pieces):
        start, end = piece.span()
        if start < after:
            continue
        if piece["figures"]:
            tokens += _figures(question, piece, tokens, today)
        elif piece["word"]:
            kinds, end = _longest(question, pieces[at : at + 4], lexicon)
            tokens += [Token(kind, value, start, end) for kind, value in kinds]
        else:
            tokens.append(Token("'" if piece["own"] else "-" if piece[0] in "–~" else piece[0], 0, start, end))
        after = end
    settled: list[Token] = []
    for at, token in enumerate(tokens):
        role = _role(question, settled, token, [*tokens[at + 1 : at + 3], Token("?", 0, len(question), len(question))])
        settled += [token._replace(kind="i", end=token.start)] if len(role) > 1 else []
        settled.append(token._replace(kind=role[-1]))
    return settled


def _longest(question: str, pieces: list[re.Match[str]], lexicon: dict[str, Kinds]) -> tuple[Kinds, int]:
    """Return what the longest known words at the first of `pieces` say, and where they end; `x` inside an address."""
    start = pieces[0].start()
    for last in reversed(pieces):
        kinds = lexicon.get(re.sub(r"[\s'’-]", "_", question[start : last.end()].lower()))
        left = re.search(r"[^\W\d][.:/\\]$|[@#_$\\=]$", question[max(0, start - 2) : start])
        if kinds and not (left or re.match(r"[@_\\=(]|[.:/][^\W\d]", question[last.end() :][:2])):
            return kinds, last.end()
    return (("x", 0),), pieces[0].end()


def _role(question: str, before: list[Token], token: Token, behind: list[Token]) -> str:
    """Return the kind of a word beside its neighbours; `x` in a name, `E` after "every"."""
    text, kind, last = question[token.start : token.end], token.kind, before[-1] if before else Token(".")
    led = _led(before)
    shouts = question.isupper()
    title = text[:1].isupper() and last.kind not in ".?!:" and not shouts and not question.istitle()
    if led == "E" and kind not in "ojxi,":
        return "E"
    if kind == "-":
        return "t"
    if text.lower() in ("morgen", "mañana", "amanhã") and (led in tuple("DWRriE") or (text == "Morgen" and title)):
        return "T"
    if kind == "t" and led not in tuple("MWCOYDPR") and text not in ("to", "through"):
        return "i"
    named = (
        (len(text) > 1 and text.isupper() and not shouts)
        or (text.lower() == "hier" and not _FRENCH.search(question))
        or (kind == "D" and (title or re.match(r"-[^\W\d]", question[token.end :])))
        or (title and kind in "dwmy" and last.kind == "R" and question[last.start].isupper())
    )
    return "x" if named else _month_or_day(question, before, token, behind) if kind in "MW" else kind


def _month_or_day(question: str, before: list[Token], token: Token, behind: list[Token]) -> str:
    """Return whether a month or a weekday is one: "may", "sun", "April's" and "Black Friday's" seldom are."""
    text, kind, last = question[token.start : token.end], token.kind, before[-1] if before else Token("")
    led, follower, capital = _led(before), behind[0].kind, text[0].isupper()
    if _SHORT.fullmatch(text.lower()):
        leads = (led in _LEADS or last.kind == "j") and (kind == "M" or capital or led == "R")
        date = follower in "YO" or (follower in "t-Rr" and capital)
        date = date or (follower == "C" and (capital or led in _LEADS or behind[1].kind in "?,."))
        counted = led in tuple("COn") and (capital or (len(before) > 1 and before[-2].kind in {*_LEADS, *"toj"}))
        if not leads and not (kind == "M" and (date or counted)):
            return "x"
    before_word = question[last.start : last.end] if last.kind == "x" else ""
    if follower == "'":
        named = before_word.isupper() if len(before) == 1 else before_word[:1].isupper()
        if text.lower() in _GIVEN_NAMES or (named and len(before_word) > 1):
            return "x"
        return kind if led in _LEADS else "i" + kind
    closes = kind == "W" and capital and before_word.islower() and not re.search(r"\w", question[token.end :])
    return "i" + kind if closes else kind


def _led(before: list[Token]) -> str:
    """Return the kind before a word, articles apart."""
    return next((token.kind for token in reversed(before) if token.kind not in "oj"), "")


# --- figures --------------------------------------------------------------------------------------------------------


def _figures(question: str, piece: re.Match[str], before: list[Token], today: dt.date) -> list[Token]:
    """Return what figures say: a date, an ordinal, a number, a year, two of them; `x` where they are part of a name."""
    text, (start, end) = piece["figures"], piece.span()
    left, right = question[start - 1 : start] if start else "", question[end : end + 1]
    word = question[before[-1].start : before[-1].end].lower() if before else ""
    apart = left == "-" and not (len(before) > 1 and before[-2].kind in "MDYCO")
    counts = len(text) == 4 and re.match(r" (?!was|does|has|this)[a-z]{3,}s\b", question[end:])
    if apart or counts or re.match(rf"[^\W{_CJK}]|[.$€£#@+=\\:&]", left) or re.match(rf"[^\W{_CJK}.]|[%°€$@]", right):
        return [Token("x", 0, start, end)]
    led = question.strip() == text or max(left, right) > "\u2fff" or bool(_BEFORE_DATE.fullmatch(word))
    numbered = lexicons()[0].get(word, (("", 0),))[0][0] == "E"
    if not numbered and (date := _date(text, led=led, dot=piece["nth"] == ".")):
        return [Token("P", 0, start, end, date)]
    numbers = re.fullmatch(r"(\d{1,4})(?:[-–](\d{1,4}))?", text)
    if not numbers:
        return [Token("x", 0, start, end)]
    if not numbers[2]:
        return [_number(text, start, end, piece["nth"], today)]
    dash = start + numbers.end(1)
    last = _number(numbers[2], dash + 1, end, piece["nth"], today)
    return [_number(numbers[1], start, dash, None, today), Token("-", 0, dash, dash + 1), last]


def _number(text: str, start: int, end: int, nth: str | None, today: dt.date) -> Token:
    year = "Y" if 1900 <= int(text) <= today.year + 5 and nth in (None, ".") else "x"
    return Token(year if len(text) == 4 else "O" if nth else "C", int(text), start, end)


def _date(text: str, *, led: bool, dot: bool) -> Figures | None:
    """Return a date in figures; without `led`, what may as well be a version or an address is none."""
    if match := re.fullmatch(r"((?:19|20)\d\d)([-/.])(\d{1,2})\2(\d{1,2})", text):
        return (int(match[1]), int(match[3]), int(match[4])) if match[2] != "." or led else None
    if match := re.fullmatch(r"((?:19|20)\d\d)-(0\d|1[0-2])|(\d{1,2})/((?:19|20)\d\d)", text):
        return int(match[1] or match[4]), int(match[2] or match[3]), None
    match = re.fullmatch(r"(\d{1,2})([./])(\d{1,2})(?:\2((?:19|20)?\d\d))?", text)
    if not match:
        return None
    first, mark, second, year = match.groups()
    sure = year and (len(year) == 4 or mark == "/")
    if not sure and not (led and (year or dot or mark == "/")):
        return None
    day, month = (first, second) if mark == "." or int(first) > 12 else (second, first)
    return (int(year) + 2000 * (len(year) == 2) if year else None), int(month), int(day)


# --- languages that separate none -----------------------------------------------------------------------------------


@cache
def _asian_piece() -> re.Pattern[str]:
    """Return the pattern of numbers with what they count, and of the longest known words."""
    number = r"(?:(?<!\d)\d{1,3}(?!\d)|[〇一二两兩三四五六七八九十]+)"
    words = sorted(map(re.escape, east_asian()), key=len, reverse=True)
    numeral = [word for word in words if len(word) > 1 and word[0] in "一二三四五六七八九十"]
    return re.compile(
        rf"(?P<known>{'|'.join(numeral)})|(?P<Y>(?:19|20)\d\d|[一二][九〇零][〇零一二三四五六七八九]{{2}})[年년]"
        rf"|(?P<M>{number})[月월](?![間间])|(?P<O>第{number})|(?P<day>{number})[日号號일](?!\s?[前間间전])"
        rf"|(?P<C>{number})|(?P<word>{'|'.join(words)})|(?P<x>\S)"
    )


def _asian(question: str) -> list[Token]:
    """Return the kinds of Chinese, Japanese and Korean words."""
    tokens: list[Token] = []
    for piece in _asian_piece().finditer(question):
        name, (start, end) = piece.lastgroup or "x", piece.span()
        led, follower = _led(tokens), question[end : end + 1]
        goes_on = "\u3040" <= follower <= "\ud7af" and follower not in _AFTER_HAN
        if name in ("known", "word"):
            kinds = east_asian()[piece[0]]
        else:
            kinds = (("O" if name == "day" else name, 0 if name == "x" else _han(piece[name].removeprefix("第"))),)
        kind = kinds[0][0]
        part = len(piece[0]) == 1 and kind == "w" and follower >= "가"
        if led == "E" and kind not in "xoj":
            kinds = (("E", 0),)
        elif goes_on and (part or (kind == "C" and led == "M")):
            kinds = (("x", 0),)
        elif kind == "W" and led == "R" and piece[0].startswith(WEEK_STEMS):
            kinds = (("w", 0), *kinds)
        elif kind == "Y" or (kind in "MW" and not goes_on):
            tokens.append(Token("i", 0, start, start))
        tokens += [Token(kind, value, start, end) for kind, value in kinds]
    return tokens


def _han(text: str) -> int:
    """Return a number up to 99 in Chinese figures, a year digit by digit, or any number in Arabic figures."""
    tens, ten, ones = text.rpartition("十")
    if ten:
        return _DIGITS_HAN.get(tens, 1) * 10 + _DIGITS_HAN.get(ones, 0)
    return int("".join(str(_DIGITS_HAN.get(digit, digit)) for digit in text))
