"""A question as it is asked: of what time, how things are now, for what value, and how many things at once.

"router ip" asks for an address, and not for a line about `ip route`. Of lines that say the same the newest comes first
where a question asks for now.

A time is a day, a week, a month or any span. For it the words of a question become a line of kinds, one letter each:
"in the March of last year" is `ioMjRy`. A rule is a short pattern of letters with a function from its parts to the
first and last day. "Since" and "before" change whatever span stands beside them, and "to" joins two. The longest
reading wins, of equally long ones the first.

A general date parser would understand more languages. `dateparser` 1.5 takes 0.14 s of CPU to import and 2 s for the
first question, and knows days and no spans: "en mars" is one day, "3月" is December, "letzte Woche" is nothing. It
reads "may", "April", "on the sat nav" and the version 2026.3.13 as dates.

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
| P | a date in figures, which its token holds | |
| x | nothing of a time: any other word, and figures that are part of a name | |

A mark is a token too, whose kind is the mark itself; `'` is also the ending of a genitive, and `?` stands at the end.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from memory_tui.search.trace import Correction, Floats, QueryPlan, QuestionPart
from memory_tui.tokens import WORD, either, is_cjk, is_listed, segmented, spans, word_stems, words_by_use

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
        """Return what a note of `day` counts: less on each day after the span, when people tell of it.

        In the span it is 1; where the question asks for the newest, it rises from .5 on the first day to 1 on the last.
        """
        if self.holds(day):
            return 1.0 - 0.5 * (self.last - day) / (self.last - self.first) if self.newest else 1.0
        # How many days after the span it is: the fewest days back that lead into it.
        since = next((days for days in range(1, DAYS_AFTER + 1) if self.holds(day - days * DAY)), None)
        return FADING * (1 - since / (DAYS_AFTER + 1)) if since else 0.0

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


class ParsedQuery(Struct, frozen=True):
    """What the `text` of a query says by itself, before any note is looked at.

    `time` is the time that it names, `rest` the text without the words for it, all of it where it asks for the time
    alone, and `parts` what it asks one by one. The `plan` has those words, and what asks for now or for a value.
    """

    text: str
    rest: str
    time: Time | None = None
    parts: tuple[str, ...] = ()
    plan: QueryPlan = QueryPlan()


def parse(text: str, today: dt.date, *, reads_time: bool = True, in_parts: bool = True) -> ParsedQuery:
    """Read a query on the day `today`; no time where not `reads_time`, neither parts nor a value where not `in_parts`.

    What names a time does not ask for now, and what does either does not ask for a value.
    """
    time = (time_in(text, today) or lately_in(text, today)) if reads_time else None
    rest = without(text, time) if time else text
    parts = parts_of(rest) if in_parts else ()
    if time:
        plan = QueryPlan(time=time.spelled, time_words=text[time.start : time.end], time_alone=rest == text)
        return ParsedQuery(text, rest, time, parts, plan)
    for_now = _first_words([_NOW], text) if reads_time else ""
    value = _first_words([called for called, _ in _CALLED], text) if in_parts and not for_now else ""
    return ParsedQuery(text, rest, None, parts, QueryPlan(for_now=for_now, value=value))


def _first_words(patterns: Iterable[re.Pattern[str]], text: str) -> str:
    """Return what one of `patterns` matches in `text`, tried in their order; empty where none does."""
    matches = (pattern.search(text) for pattern in patterns)
    return next((match[0].strip() for match in matches if match), "")


def time_in(question: str, today: dt.date) -> Time | None:
    """Return the time that `question` speaks of, counted from `today`; None without one, or where no such day exists.

    Of several expressions the longest counts, of equally long ones the first. "Since" and "before" leave one end open.
    """
    best: Time | None = None
    # One line of tokens for each language that it may be asked in.
    for tokens in lines_of(question, today):
        for at, token in enumerate(tokens):
            reading = None if token.kind == "x" else _read(tokens[at : at + _MOST_TOKENS], today)
            if reading is None:
                continue
            end = tokens[at + reading.length - 1].end
            if best is None or end - token.start > best.end - best.start:
                best = Time(*reading.days, token.start, end, reading.any_year)
    return best


def without(question: str, time: Time) -> str:
    """Return `question` without the words that name its time; the whole of it when nothing else is left."""
    rest = re.sub(r"\s+", " ", f"{question[: time.start]} {question[time.end :]}").strip()
    return rest if re.search(r"\w", rest) else question


# --- how things are now, and what is new ------------------------------------------------------------------------------

LATELY = dt.timedelta(days=30)
"""How far back a question goes that asks for what is new and nothing else."""
_NOW, _LATELY = (re.compile(either(use), re.IGNORECASE) for use in ("now", "lately"))


def lately_in(question: str, today: dt.date) -> Time | None:
    """Return the last days where `question` asks for what is new, and for nothing else; None in all other cases.

    Who asks of a trip "recently" means one trip, and not the last.
    """
    words = _LATELY.search(question)
    if words is None:
        return None
    rest = re.sub(either("happens"), " ", f"{question[: words.start()]} {question[words.end() :]}".lower())
    if not all(map(is_listed, WORD.findall(rest))):
        return None
    return Time(today - LATELY, today, *words.span(), newest=True)


# --- values ---------------------------------------------------------------------------------------------------------

_KINDS = (
    (r"ip|ips|ipv[46]", r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[\da-f]{1,4}(?:::?[\da-f]{1,4}){2,7}\b"),
    (r"mac", r"\b[\da-f]{2}(?:[:-][\da-f]{2}){5}\b"),
    (r"e-?mail|mail|correo|почта|メール|邮箱", r"[\w.+-]+@[\w-]+\.\w+"),
    (r"phone|t[eé]l[eé]phone|tel[eé]fon(?:o|nummer)?|handynummer|телефон|電話番号|电话", r"\+?\d(?:[ ()/.-]?\d){5,}"),
    (r"port", r":\d{2,5}\b|\b\d{2,5}\b"),
    (r"url|link|website", r"\w+://\S+|\bwww\.\S+"),
)
"""What a value is called, and what it looks like."""
_CALLED = [(re.compile(rf"\b(?:{called})\b", re.I), form) for called, form in _KINDS]


def holds_value(texts: Sequence[str], value: str, words: Sequence[str]) -> Floats:
    """Return 1 for each of `texts` with a line that holds such a `value` and all other `words` of the question, else 0.

    `value` is what the question calls it, as "ip": one of _CALLED matches it. The words may also stand in the nearest
    heading above the line.
    """
    called, form = next((called, form) for called, form in _CALLED if called.fullmatch(value))
    needed = [frozenset(word_stems(word)) for word in words if not called.fullmatch(word)]
    return np.array([1.0 if needed and _has_line_with(form, needed, text) else 0.0 for text in texts])


def _has_line_with(form: str, needed: Sequence[frozenset[str]], text: str) -> bool:
    """Return whether a line of `text` has a value of this form, and with its heading a stem of each word.

    `needed` has the stems of each word.
    """
    heading = ""
    for line in text.split("\n"):
        heading = line if line.startswith("#") else heading
        if re.search(form, line, re.IGNORECASE):
            stems = {stem for _, _, stem in spans(segmented(f"{heading} {line}"))}
            if not any(stems.isdisjoint(of_word) for of_word in needed):
                return True
    return False


# --- several questions at once ---------------------------------------------------------------------------------------

_MOST_PARTS = 4
"""With more parts than these a question is asked as one."""
_ASKS = words_by_use()["asks"]
_ENDS = r"(?<=[?？；;])\s*|(?<=[.!。！])\s+|(?:[，,]\s*|以及|还有)(?=(?-i:[\u3400-\u9fff]))|" + "|".join(
    rf"\s*,?\s+(?:{words})\s+(?:also\s+|auch\s+)?(?=(?:{_ASKS[language]})\b)"
    for language, words in words_by_use()["joins"].items()
)
"""Where a part may end: behind a mark; at a Chinese comma or "and"; at "and" in other languages, before a word that
asks."""
# "was" asks in German alone, and is a verb in English.
_QUESTION = either("asks").replace("|was|", "|") + r"|¿|か[?？]|^\W*was\b"
_VERB = rf"\W*{either('begins')}"


def parts_of(question: str) -> tuple[str, ...]:
    """Return what `question` asks one by one, in its order; the whole of it where that is one thing.

    A part begins after the end of a sentence, or after "and" before a word that asks. It has a word that asks, or
    begins with a verb: what follows "Dr." has neither. What asks nothing belongs to the part before, where that has not
    ended by "?", else to the part that follows, or to the last one.
    """
    length, parts = len(question), list[tuple[int, int]]()
    # A part may take several pieces: `start` is where the part begins, `piece_start` where its last piece does.
    start = piece_start = 0
    ends = [match.span() for match in re.finditer(_ENDS, question, re.IGNORECASE)]
    if not any(question[end:].strip() for _, end in ends):
        return (question,)
    for piece_end, next_start in [*ends, (length, length)]:
        piece = question[piece_start:piece_end]
        # Before it stands nothing, or the end of a question: only there a verb asks.
        begins = question[:piece_start].rstrip()[-1:] in ("", *"?？；;")
        if re.search(_QUESTION, piece, re.IGNORECASE) or (begins and re.match(_VERB, piece, re.IGNORECASE)):
            parts.append((start, piece_end))
            start = next_start
        # It asks nothing: it goes with the part right before it, unless that one ended by "?".
        elif parts and start == piece_start and question[parts[-1][1] - 1] in ".!":
            parts[-1] = parts[-1][0], piece_end
            start = next_start
        piece_start = next_start
    if not 1 < len(parts) <= _MOST_PARTS:
        return (question,)
    # What asks nothing at the end goes with the last part.
    if question[start:].strip():
        parts[-1] = parts[-1][0], length
    return tuple(question[first:end].strip() for first, end in parts)


def question_parts(
    parts: Sequence[str], words: Sequence[str], corrected: Sequence[Correction]
) -> tuple[QuestionPart, ...]:
    """Return each of the `parts` of a question with those of its searched `words` that stand in it.

    A correction stands where the word does that it corrects. Returns no part where fewer than two have any such word.
    """
    result = []
    for part in parts:
        stems = {stem for _, _, stem in spans(part)}
        # The words that stand in this part: corrections, pairs of characters, and all others by their stems.
        there = {word for item in corrected if item.asked.lower() in part.lower() for word in item.searched}
        there |= {word for word in words if word in part and is_cjk(word)}
        there |= {word for word in words if not is_cjk(word) and not stems.isdisjoint(word_stems(word))}
        if part_words := tuple(word for word in words if word in there):
            result.append(QuestionPart(part, part_words))
    return tuple(result) if len(result) > 1 else ()


# --- the words of a question as kinds --------------------------------------------------------------------------------

Kinds = tuple[tuple[str, float], ...]
"""What one word says: kinds with their values."""
_NO_KIND: Kinds = (("x", 0),)
WEEK_STEMS = ("周", "週", "星期", "礼拜", "禮拜")


@cache
def lexicons() -> tuple[dict[str, Kinds], ...]:
    """Return what each word says, as one dictionary for each language that separates words, English first.

    The last dictionary is that of Chinese, Japanese and Korean together, which separate none.
    """
    languages: list[dict[str, Kinds]] = []
    for row in Path(__file__).with_name("time_words.txt").read_text("utf-8").splitlines():
        kinds, _, words = row.partition(": ")
        if row.startswith("#"):
            # It names the language whose words follow.
            languages.append({})
            continue
        # "W3" is kind W with the value 3.
        says = tuple((kind[0], float(kind[1:] or 0)) for kind in kinds.split())
        for word in words.split():
            stem, *endings = word.split("|")
            languages[-1] |= {stem + ending: says for ending in endings or [""]}
    return tuple(languages)


Figures = tuple[int | None, int, int | None]
"""Year, month and day of a date in figures. The year is None where it is not written, the day where a month is meant;
month 0 is no date."""


class Token(NamedTuple):
    """One kind with its value, both as the table above says, and where its word stands in the question.

    An "in" that is not written has no length.
    """

    kind: str
    value: float = 0
    start: int = 0
    end: int = 0
    date: Figures = (None, 0, None)
    """What figures of kind `P` say."""


_TELLING = frozenset("DWMTdwemy")
"""Kinds of which a question names one, or has figures, where it names a time."""
_TELLING_FIGURES = r"\d(?:\d{3}|[./–-]\d|\.|º|st|nd|rd|th|er)"
"""A year, a date or an ordinal; other figures are of a time beside a word that tells one."""
_CJK = "々〇\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# Figures with what makes them an ordinal; a word; the ending of a genitive; any other mark.
_PIECE = (
    r"(?P<figures>\d(?:[\d.:/–-]*\d)?)(?P<nth>(?:st|nd|rd|th|er|º)(?!\w)|\.(?!\d))?"
    rf"|(?P<word>[^\W\d_{_CJK}]+)|['’]s\b|[^\s'’]"
)
_MARKS = {"–": "-", "~": "-", "'s": "'", "’s": "'"}
"""The kinds of marks, and of the ending of a genitive; every other mark is its own kind."""
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
    """Return the tokens of `question`, each with what it can be in a time, as read in each language.

    Languages are left out of which it holds no word that may name a time, unless figures may name one. The last list
    is that of Chinese, Japanese and Korean, where it holds such characters.
    """
    # What is quoted names no time, unless all is quoted. Its place is filled, so that all else keeps its own.
    rest = re.sub(_QUOTED, lambda quote: "\0" * len(quote[0]), question[:_MOST_CHARACTERS])
    text = rest if re.search(r"\w", rest) else question[:_MOST_CHARACTERS]
    words = {*re.findall(r"[^\W\d_]+", text.lower())}
    has_figures = re.search(_TELLING_FIGURES, text) is not None
    languages = zip(lexicons()[:-1], _telling(), strict=True)
    lines = [_latin(text, lexicon, today) for lexicon, telling in languages if has_figures or words & telling]
    # From U+3000 on stand the characters of languages that separate no words.
    return [*lines, _asian(text)] if max(text, default="") > "\u2fff" else lines


@cache
def _telling() -> tuple[frozenset[str], ...]:
    """Return the words of each language without one of which, or a figure, a question names no time.

    Of an expression of several words it is the last.
    """
    return tuple(
        frozenset(word.rpartition("_")[2] for word, kinds in lexicon.items() if _TELLING & {kind for kind, _ in kinds})
        for lexicon in lexicons()[:-1]
    )


# --- languages that separate words ----------------------------------------------------------------------------------


def _latin(question: str, lexicon: dict[str, Kinds], today: dt.date) -> list[Token]:
    """Return the tokens of words, figures and marks, each of the kind that it has beside its neighbours.

    Where a time needs no "in", a token of kind `i` and no length stands before it.
    """
    tokens: list[Token] = []
    pieces = list(re.finditer(_PIECE, question))
    end = 0
    for at, piece in enumerate(pieces):
        if piece.start() < end:
            # It is the rest of an expression that the piece before began.
            continue
        start, end = piece.span()
        if piece["figures"]:
            tokens += _figures(question, piece, tokens, today)
        elif piece["word"]:
            kinds, end = _longest(question, pieces[at : at + 4], lexicon)
            tokens += [Token(kind, value, start, end) for kind, value in kinds]
        else:
            tokens.append(Token(_MARKS.get(piece[0], piece[0]), 0, start, end))
    settled: list[Token] = []
    # It stands behind all tokens, so that each has one that follows.
    last = Token("?", 0, len(question), len(question))
    for at, token in enumerate(tokens):
        # One letter, or two of which the first is an `i` that is put before.
        *added, kind = list(_role(question, settled, token, [*tokens[at + 1 : at + 3], last]))
        settled += [token._replace(kind=other, end=token.start) for other in added]
        settled.append(token._replace(kind=kind))
    return settled


def _longest(question: str, pieces: list[re.Match[str]], lexicon: dict[str, Kinds]) -> tuple[Kinds, int]:
    """Return what the longest known expression that begins with the first of `pieces` says, and where it ends.

    A piece that is unknown, or that stands inside an address or a name of a program, says `x`.
    """
    start = pieces[0].start()
    within = re.search(r"[^\W\d][.:/\\]$|[@#_$\\=]$", question[max(0, start - 2) : start])
    ends = [] if within else [piece.end() for piece in reversed(pieces)]
    for end in ends:
        kinds = lexicon.get(re.sub(r"[\s'’-]", "_", question[start:end].lower()))
        goes_on = re.match(r"[@_\\=(]|[.:/][^\W\d]", question[end : end + 2])
        if kinds and not goes_on:
            return kinds, end
    return _NO_KIND, pieces[0].end()


def _role(question: str, before: list[Token], token: Token, behind: list[Token]) -> str:
    """Return the kind of a word beside the tokens `before` and `behind` it, after an `i` where a time needs no "in".

    It is `x` in a name, `E` after "every" or "version", since neither "every Monday" nor "version 2024" is a time.
    """
    text, kind = question[token.start : token.end], token.kind
    last = before[-1] if before else Token(".")
    led = _led(before)
    # Where all is in capitals, or begins with them, a capital tells no name.
    shouts = question.isupper()
    is_title = text[:1].isupper() and last.kind not in ".?!:" and not shouts and not question.istitle()
    # Behind "every" a time is none, and leads to none in its turn, until a word comes that is nothing of a time.
    if led == "E" and kind not in "ojxi,":
        return "E"
    # A dash between two times is a "to".
    if kind == "-":
        return "t"
    # "Tomorrow", or after a day, as a German noun, or behind "every": the morning. `led` may be empty, and would be in
    # any string: so it is looked for in a tuple.
    if text.lower() in ("morgen", "mañana", "amanhã") and (led in tuple("DWRriE") or (text == "Morgen" and is_title)):
        return "T"
    # "To" where a time comes before it; in other languages than English the same word is "in" elsewhere.
    if kind == "t" and led not in tuple("MWCOYDPR") and text not in ("to", "through"):
        return "i"
    # A word in capitals; "hier" outside French; a day in a title or in a compound; a unit behind "Last" in a title.
    is_name = (
        (len(text) > 1 and text.isupper() and not shouts)
        or (text.lower() == "hier" and not _FRENCH.search(question))
        or (kind == "D" and (is_title or re.match(r"-[^\W\d]", question[token.end :])))
        or (is_title and kind in "dwmy" and last.kind == "R" and question[last.start].isupper())
    )
    if is_name:
        return "x"
    return _month_or_day(question, before, token, behind) if kind in "MW" else kind


def _month_or_day(question: str, before: list[Token], token: Token, behind: list[Token]) -> str:
    """Return the kind of a month or a weekday as `_role` does: "may", "sun", "April's" and "Black Friday's" are `x`."""
    text, kind, follower = question[token.start : token.end], token.kind, behind[0].kind
    last = before[-1] if before else Token("")
    led = _led(before)
    has_capital = text[0].isupper()
    if _SHORT.fullmatch(text.lower()):
        # What counts for a short word: an "in", "last" or number that leads to it, a day or a year that follows, or a
        # number behind it or before it.
        is_led = (led in _LEADS or last.kind == "j") and (kind == "M" or has_capital or led == "R")
        has_day = follower in "YO" or (follower in "t-Rr" and has_capital)
        has_number = follower == "C" and (has_capital or led in _LEADS or behind[1].kind in "?,.")
        is_date = len(before) > 1 and before[-2].kind in {*_LEADS, *"toj"}
        follows_number = led in tuple("COn") and (has_capital or is_date)
        if not is_led and not (kind == "M" and (has_day or has_number or follows_number)):
            return "x"
    # The word before, where it says nothing of a time: "Black" in "Black Friday's".
    name = question[last.start : last.end] if last.kind == "x" else ""
    if follower == "'":
        # The first word of a question has a capital anyway.
        is_name = name.isupper() if len(before) == 1 else name[:1].isupper()
        if text.lower() in _GIVEN_NAMES or (is_name and len(name) > 1):
            return "x"
        return kind if led in _LEADS else "i" + kind
    # "What did we eat Monday?" needs no "in".
    is_last = not re.search(r"\w", question[token.end :])
    return "i" + kind if kind == "W" and has_capital and name.islower() and is_last else kind


def _led(before: list[Token]) -> str:
    """Return the kind of the last token that is no article or "of"; empty without one."""
    return next((token.kind for token in reversed(before) if token.kind not in "oj"), "")


# --- figures --------------------------------------------------------------------------------------------------------


def _figures(question: str, piece: re.Match[str], before: list[Token], today: dt.date) -> list[Token]:
    """Return what figures say: a date, an ordinal, a number or a year, or two of these with the dash between them.

    It is `x` where they are part of a name, or of anything else that is no time. `before` are the tokens before them.
    """
    text, nth = piece["figures"], piece["nth"]
    start, end = piece.span()
    left, right = question[start - 1 : start] if start else "", question[end : end + 1]
    # A number after a dash, four figures before a plural, or figures that touch letters, a sign or a unit are no time.
    # The last token before is the dash, and what may be a date stands before that.
    follows_dash = left == "-" and not (len(before) > 1 and before[-2].kind in "MDYCO")
    counts_things = len(text) == 4 and re.match(r" (?!was|does|has|this)[a-z]{3,}s\b", question[end:])
    is_joined = re.match(rf"[^\W{_CJK}]|[.$€£#@+=\\:&]", left) or re.match(rf"[^\W{_CJK}.]|[%°€$@]", right)
    if follows_dash or counts_things or is_joined:
        return [Token("x", 0, start, end)]
    # Alone, between characters, or behind a word as "on", what may be a version is a date.
    word = question[before[-1].start : before[-1].end].lower() if before else ""
    led = question.strip() == text or max(left, right) > "\u2fff" or bool(_BEFORE_DATE.fullmatch(word))
    is_version = ("E", 0.0) in lexicons()[0].get(word, ())
    date = None if is_version else _date(text, led=led, dot=nth == ".")
    if date:
        return [Token("P", 0, start, end, date)]
    numbers = re.fullmatch(r"(\d{1,4})(?:[-–](\d{1,4}))?", text)
    if not numbers:
        return [Token("x", 0, start, end)]
    if not numbers[2]:
        return [_number(text, start, end, nth, today)]
    dash = start + numbers.end(1)
    last = _number(numbers[2], dash + 1, end, nth, today)
    return [_number(numbers[1], start, dash, None, today), Token("-", 0, dash, dash + 1), last]


def _number(text: str, start: int, end: int, nth: str | None, today: dt.date) -> Token:
    """Return a number as a year, where it has four figures, as an ordinal with its ending `nth`, or as itself.

    Four figures that are no likely year are `x`.
    """
    kind = "O" if nth else "C"
    if len(text) == 4:
        kind = "Y" if 1900 <= int(text) <= today.year + 5 and nth in (None, ".") else "x"
    return Token(kind, int(text), start, end)


def _date(text: str, *, led: bool, dot: bool) -> Figures | None:
    """Return a date in figures, None for other figures; `dot` tells that a dot follows them.

    Unless something before it tells that it is a date (`led`), what may be a version or an address is none.
    """
    if match := re.fullmatch(r"((?:19|20)\d\d)([-/.])(\d{1,2})\2(\d{1,2})", text):
        return (int(match[1]), int(match[3]), int(match[4])) if match[2] != "." or led else None
    # A month with its year.
    if match := re.fullmatch(r"((?:19|20)\d\d)-(0\d|1[0-2])|(\d{1,2})/((?:19|20)\d\d)", text):
        return int(match[1] or match[4]), int(match[2] or match[3]), None
    # Day and month, perhaps with the year.
    match = re.fullmatch(r"(\d{1,2})([./])(\d{1,2})(?:\2((?:19|20)?\d\d))?", text)
    if not match:
        return None
    first, mark, second, year = match.groups()
    is_sure = year and (len(year) == 4 or mark == "/")
    if not is_sure and not (led and (year or dot or mark == "/")):
        return None
    # With slashes the month stands first, as in America, unless it cannot be a month.
    day, month = (first, second) if mark == "." or int(first) > 12 else (second, first)
    whole_year = f"20{year}" if year and len(year) == 2 else year
    return int(whole_year) if whole_year else None, int(month), int(day)


# --- languages that separate none -----------------------------------------------------------------------------------


@cache
def _asian_piece() -> re.Pattern[str]:
    """Return the pattern of numbers with what they count, and of the longest known words.

    Groups of one letter are called by the kind of what they match. `known` are words that begin as a number does.
    """
    number = r"(?:(?<!\d)\d{1,3}(?!\d)|[〇一二两兩三四五六七八九十]+)"
    words = sorted(map(re.escape, lexicons()[-1]), key=len, reverse=True)
    numeral = [word for word in words if len(word) > 1 and word[0] in "一二三四五六七八九十"]
    return re.compile(
        rf"(?P<known>{'|'.join(numeral)})|(?P<Y>(?:19|20)\d\d|[一二][九〇零][〇零一二三四五六七八九]{{2}})[年년]"
        rf"|(?P<M>{number})[月월](?![間间])|(?P<O>第{number})|(?P<day>{number})[日号號일](?!\s?[前間间전])"
        rf"|(?P<C>{number})|(?P<word>{'|'.join(words)})|(?P<x>\S)"
    )


def _asian(question: str) -> list[Token]:
    """Return the tokens of Chinese, Japanese and Korean words: a number's kind is what it counts.

    A piece has no kind where a longer word goes on, and another one where the piece before it decides.
    """
    tokens: list[Token] = []
    for piece in _asian_piece().finditer(question):
        name = piece.lastgroup or "x"
        start, end = piece.span()
        led, follower = _led(tokens), question[end : end + 1]
        # The next character makes it part of a longer word.
        goes_on = "\u3040" <= follower <= "\ud7af" and follower not in _AFTER_HAN
        if name in ("known", "word"):
            kinds = lexicons()[-1][piece[0]]
        elif name == "x":
            kinds = _NO_KIND
        else:
            kinds = (("O" if name == "day" else name, _han(piece[name].removeprefix("第"))),)
        kind = kinds[0][0]
        # "주" (week) may be the first syllable of a longer Korean word.
        is_syllable = len(piece[0]) == 1 and kind == "w" and follower >= "가"
        if led == "E" and kind not in "xoj":
            kinds = (("E", 0),)
        elif goes_on and (is_syllable or (kind == "C" and led == "M")):
            kinds = _NO_KIND
        elif kind == "W" and led == "R" and piece[0].startswith(WEEK_STEMS):
            kinds = (("w", 0), *kinds)
        elif kind == "Y" or (kind in "MW" and not goes_on):
            tokens.append(Token("i", 0, start, start))
        tokens += [Token(kind, value, start, end) for kind, value in kinds]
    return tokens


def _han(text: str) -> int:
    """Return a number up to 99 in Chinese figures, a year digit by digit, or any number in Arabic figures."""
    tens, ten, ones = text.rpartition("十")
    # "十" alone is ten: no figure before it counts one, none behind it adds nothing.
    if ten:
        return _DIGITS_HAN.get(tens, 1) * 10 + _DIGITS_HAN.get(ones, 0)
    return int("".join(str(_DIGITS_HAN.get(digit, digit)) for digit in text))


# --- spans of days ---------------------------------------------------------------------------------------------------

_UNIT_DAYS = {"d": 1, "w": 7, "e": 7, "m": 30, "y": 365}
_SATURDAY = 5


def _days_ago(today: dt.date, days: int) -> Days:
    """Return the one day so many days before today, as a span; after today for a negative number."""
    return today - days * DAY, today - days * DAY


def _months(year: int, month: int, count: int = 1) -> Days:
    """Return `count` months from that one on; a `month` below 1 is of a year before: 0 is December."""
    # Months are numbered on from January of year 0.
    number = 12 * year + month - 1
    first, after = (dt.date(of_month // 12, of_month % 12 + 1, 1) for of_month in (number, number + count))
    return first, after - DAY


def _calendar(today: dt.date, unit: str, back: int) -> Days:
    """Return the week, weekend, month or year that lies `back` of them before this one.

    Weeks begin on Monday. Of weekends 0 is the latest that has begun, -1 the next.
    """
    if unit == "y":
        return _months(today.year - back, 1, 12)
    if unit == "m":
        return _months(today.year, today.month - back)
    if unit == "e" and back <= 0 and today.weekday() < _SATURDAY:
        # That of this week has not begun, so it is the next (-1), and the latest (0) is last week's.
        back += 1
    monday = today - (today.weekday() + 7 * back) * DAY
    sunday = monday + 6 * DAY
    return {"w": (monday, sunday), "e": (sunday - DAY, sunday)}[unit]


def _weekday(today: dt.date, weekday: int, back: int) -> Days:
    """Return the `weekday`, 0 for Monday: by `back` 1 the latest before today, 2 the one before that, -1 the next.

    0 is that of this week, whether past or to come.
    """
    days = today.weekday() - weekday
    # At least one day ago for the latest, at most seven; at least one day ahead for the next.
    if back > 0:
        days = (days - 1) % 7 + 1 + 7 * (back - 1)
    elif back < 0:
        days = days % 7 + 7 * back
    return _days_ago(today, days)


def _rolling(today: dt.date, count: float, unit: str) -> Days:
    """Return so many days, weeks, months or years up to today; from today for a negative number."""
    days = round(count * _UNIT_DAYS[unit])
    return min(today - days * DAY, today), max(today - days * DAY, today)


def _some(today: dt.date, unit: str) -> Days:
    """Return the last few days, weeks, months or years: four of them and three days."""
    return _rolling(today, 4 * _UNIT_DAYS[unit] + 3, "d")


def _ago(today: dt.date, count: float, unit: str) -> Days:
    """Return so many units ago; the coarser the unit, the wider the span around that day."""
    # A year and a half is 18 months.
    if unit == "y" and count % 1:
        unit, count = "m", count * 12
    slack = {"d": 0, "w": 3, "m": 7, "y": 45}[unit] * DAY
    day = today - round(count * _UNIT_DAYS[unit]) * DAY
    # Of whole months the same day of that month, or its last one.
    if unit == "m" and not count % 1:
        first, last = _calendar(today, "m", round(count))
        day = first.replace(day=min(today.day, last.day))
    return day - slack, day + slack


def _few(today: dt.date, unit: str) -> Days:
    """Return a few days, weeks, months or years ago: from five of them ago, of days ten, to two of them ago."""
    days = _UNIT_DAYS[unit]
    return today - (5 if days > 1 else 10) * days * DAY, today - 2 * days * DAY


def _dated(today: dt.date, year: int | None, month: int, day: int) -> Days:
    """Return a day with its year, or the latest such day that is not in the future."""
    if year:
        return _days_ago(dt.date(year, month, day), 0)
    # A leap day may lie up to eight years back.
    return _latest(today, [_calendar(dt.date(today.year - back, month, 1), "m", 0) for back in range(9)], day)


def _day_of_month(today: dt.date, day: int) -> Days:
    """Return the latest such day of a month that is not in the future."""
    return _latest(today, [_calendar(today, "m", back) for back in range(3)], day)


def _latest(today: dt.date, months: Sequence[Days], day: int) -> Days:
    """Return `day` of the first of the `months` in which it exists and has come. Raises StopIteration."""
    days = (first.replace(day=day) for first, last in months if 1 <= day <= last.day)
    return _days_ago(next(date for date in days if date <= today), 0)


# --- rules ---------------------------------------------------------------------------------------------------------


class _Parts(Struct, frozen=True):
    """What a rule matched in `tokens` on the day `today`; all rules take it as `p`.

    A token is one letter of what is matched: so a place in the `match` is the number of a token. `p["day"]` is the
    value of the part that a pattern calls `day`, 0 where it has none.
    """

    match: re.Match[str]
    tokens: list[Token]
    today: dt.date

    def __getitem__(self, part: str) -> int:
        return int(self.value(part))

    def value(self, part: str, other: float = 0) -> float:
        """Return the value of the first token of a part; `other` where that part does not stand there."""
        return self.tokens[self.match.start(part)].value if self.get(part) else other

    def get(self, part: str) -> str | None:
        """Return the letters of a part, one a token; None where it does not stand there."""
        return self.match.groupdict().get(part)

    @property
    def count(self) -> float:
        """Return how many units are named: .5 for "half a", 1.5 for "one and a half", 1 without a number."""
        if self.get("half"):
            return 0.5
        and_a_half = self.get("plus") or self.get("more")
        return self.value("count", 1) + (0.5 if and_a_half else 0.0)

    @property
    def back(self) -> int | None:
        """Return how many units back: 1 last, 0 this, -1 next, 2 before last; None where no word tells."""
        values = [int(token.value) for token in self.tokens[: self.match.end()] if token.kind in "RrsZ"]
        # German "vorletzte": a "before" in front of the "last".
        before_last = re.search("v[oj]*R", self.match[0])
        return 2 if values and before_last else next(iter(values), None)

    @property
    def year(self) -> int | None:
        """Return the year that is named, by its number or as "last year"; None where none is."""
        named = self.tokens[self.match.start("year") : self.match.end("year")] if self.get("year") else []
        years = (t.value if t.kind == "Y" else self.today.year - t.value for t in named if t.kind in "YRrs")
        return next(map(int, years), None)

    @property
    def month(self) -> Days:
        """Return the month that is named: of its year, last, this, next, or the latest that has begun."""
        month, back, today = self["month"], self.back, self.today
        year = self.year or today.year
        # "Next March": of this year where it is to come.
        if self.year is None and back is not None and back < 0:
            year += 1 if month <= today.month else 0
        # "Last March" is over; "March" alone may be this month. "This March" (0) is that of this year.
        elif self.year is None and back != 0:
            latest = _calendar(today, "m", 1)[0] if back else today
            year = latest.year if month <= latest.month else latest.year - 1
        return _calendar(dt.date(year, month, 1), "m", 0)

    @property
    def span(self) -> Days:
        """Return the unit that is named as last, this or next; several of it where it is a plural, but one weekend."""
        # A unit has the value 1 where its word says several.
        if self.value("unit") == 1 and self.match["unit"] != "e":
            return _some(self.today, self.match["unit"])
        return _calendar(self.today, self.match["unit"], self.back or 0)


def _units(p: _Parts) -> Days:
    """Return the last units up to today, as many as are named; the next from today on."""
    is_ahead = p.back is not None and p.back < 0
    return _rolling(p.today, -p.count if is_ahead else p.count, p.match["unit"])


def _day(p: _Parts) -> Days:
    """Return a day of a month, with its year where that is named."""
    return _dated(p.today, p.year, p["month"], p["day"])


def _in_figures(p: _Parts) -> Days:
    """Return a date in figures, which is the last token of the match, or a month of a year."""
    year, month, day = p.tokens[p.match.end() - 1].date
    # A month always has its year; year 0 is for the type alone.
    return _dated(p.today, year, month, day) if day else _calendar(dt.date(year or 0, month, 1), "m", 0)


def _days_of_month(p: _Parts) -> Days:
    """Return the days of "3 to 5 May".

    Each end is dated by itself, as the latest such day, and today may lie between them: the year of the last is that
    of both.
    """
    first, last = (_dated(p.today, p.year, p["month"], p[day])[0] for day in ("from", "to"))
    return first.replace(year=last.year), last


Rules = tuple[tuple[Callable[..., Days], str], ...]
"""What reads a match, and its patterns, with two spaces between them.

A pattern is a regular expression of kinds. `<day D>` calls a part of it `day`; words in capitals and `#` stand for what
`_MACROS` says; at a space articles may stand.
"""
_RULES: Rules = (
    # Counted from today.
    (lambda p: _days_ago(p.today, p["day"]), "<day D>(?: i* T)?"),
    (lambda p: _days_ago(p.today, p.back), "[Rr] T(?! j)  T r"),
    (
        lambda p: _ago(p.today, p.count, p.match["unit"]),
        "COUNT <unit [dwmy]>MORE [AN]  [av] COUNT <unit [dwmy]>MORE  <unit [dwmy]> A",
    ),
    (lambda p: _few(p.today, p.match["unit"]), "F <unit [dwmy]> [AN]  [av] F <unit [dwmy]>  N F <unit d>"),
    (_units, "[RrZ] <count [Cc]> <unit [dwmy]>(?! j)  <count [Cc]> [rZ] <unit [dwmy]>"),
    (lambda p: _some(p.today, p.match["unit"]), "[RrZ] F <unit [dwmy]>  F [rZ] <unit [dwmy]>"),
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
    (_in_figures, "P"),
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
    (lambda p: _months(p.year or 0, 1, 12), "[ij] <year (?:y )?Y(?: y)?>  <year Y>(?= [tu] Y)  f <year Y>(?= & Y)"),
)


def _since(p: _Parts, span: Days) -> Days:
    """Return the days from the first of `span` to today."""
    return span[0], max(p.today, span[0])


def _before(_: _Parts, span: Days) -> Days:
    """Return all days before the first of `span`."""
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
    """A time that some tokens name from the first of them on."""

    length: int
    """How many tokens it takes."""
    days: Days
    any_year: bool = False
    """Whether it is a day of a month whose year is not named."""
    joined: bool = False
    """Whether it goes from one span to another."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of kinds, compiled when a question first holds what may be a time."""
    for name, macro in _MACROS.items():
        pattern = pattern.replace(name, macro)
    # `<day D>` becomes a named group.
    pattern = re.sub(r"<(\w+) ([^<>]*)>", r"(?P<\1>\2)", pattern)
    # At each space articles and "of" may stand (kinds j and o), and the ending of a genitive (') behind all of it.
    return re.compile(f"{pattern.replace(' ', '[oj]*')}'?")


def _line(tokens: Sequence[Token]) -> str:
    """Return the kinds of `tokens`, which patterns are matched with."""
    return "".join(token.kind for token in tokens)


def _matches(rules: Rules, tokens: list[Token], today: dt.date) -> list[tuple[Callable[..., Days], _Parts]]:
    """Return the rules that match at the first of `tokens`, an "in" or an article before them."""
    line = _line(tokens)
    return [
        (read, _Parts(match, tokens, today))
        for read, patterns in rules
        for pattern in patterns.split("  ")
        if (match := _compiled(f"[ifoj]*(?:{pattern})").match(line))
    ]


def _read(tokens: list[Token], today: dt.date, *, ends: bool = True) -> _Reading | None:
    """Return the longest reading of what begins with the first of `tokens`, and a span that a "to" joins to it.

    With `ends` a "since" that follows is read too.
    """
    readings = []
    for read, p in _matches(_RULES, tokens, today):
        if days := _days(read, p):
            # The year of a date in figures stands in its token, which is the last of the match.
            any_year = not p.year and (read is _day or (read is _in_figures and not tokens[p.match.end() - 1].date[0]))
            readings.append(_Reading(p.match.end(), days, any_year, read is _days_of_month))
    for read, p in _matches(_LEADING, tokens, today):
        if inner := _read_in(tokens[p.match.end() :], today):
            # "Since March to May" is what is joined.
            days = inner.days if inner.joined and read is _since else _days(read, p, inner.days)
            if days:
                readings.append(_Reading(p.match.end() + inner.length, days))
    best = max(readings, key=lambda reading: reading.length, default=None)
    if best is None:
        return None
    best = _joined(best, tokens, today) or best
    for read, pattern in _FOLLOWING if ends else ():
        match = _compiled(pattern).match(_line(tokens), best.length)
        if match and (days := _days(read, _Parts(match, tokens, today), best.days)):
            best = _Reading(match.end(), days)
    return best


def _read_in(tokens: list[Token], today: dt.date, *, ends: bool = True) -> _Reading | None:
    """Read `tokens` as if "in" stood before them, where a weekday or a month alone is a time."""
    reading = _read([Token("i"), *tokens], today, ends=ends)
    return reading._replace(length=reading.length - 1) if reading else None


def _joined(left: _Reading, tokens: list[Token], today: dt.date) -> _Reading | None:
    """Return the span from `left` to one that follows behind "to" or "and"; None where none does.

    `tokens` begin with those of `left`.
    """
    line = _line(tokens)
    link = _compiled("[tup&] i*").match(line, left.length)
    right = _read_in(tokens[link.end() :], today, ends=False) if link else None
    if link is None or right is None:
        return None
    is_weekday = line[link.end() : link.end() + right.length] == "W"
    if is_weekday and right.days[0] - left.days[0] > 7 * DAY:
        # "Monday of last week to Wednesday" is that week's.
        right = _read_in(tokens[link.end() :], left.days[0] + 7 * DAY, ends=False) or right
    start: _Reading | None = left
    if left.days[0] > right.days[0]:
        # The years may not be named: what begins after its end began before it.
        start = _read_in(tokens[: left.length], right.days[1])
    # "And" joins what "from" begins, or days that follow one another.
    is_span = line[0] == "f" or "&" not in link[0] or right.days[0] - left.days[1] == DAY
    if start is None or not is_span or start.days[0] > right.days[1]:
        return None
    length = link.end() + right.length
    # Japanese and Korean have a "to" behind the end as well: it is of the span, and no "before".
    if line.startswith("N", length):
        length += 1
    return _Reading(length, (start.days[0], right.days[1]), joined=True)


def _days(read: Callable[..., Days], *parts: _Parts | Days) -> Days | None:
    """Return what a rule reads in `parts`; None for a day that does not exist, or a span that ends before it begins."""
    try:
        first, last = read(*parts)
    except (ValueError, KeyError, OverflowError, StopIteration):
        return None
    return (first, last) if first <= last else None
