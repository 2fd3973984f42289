"""The intent of a question: how things are now, what is new, or a value of something.

Of lines that say the same the newest comes first where it asks for now. "router ip" asks for an address, and not for a
line about `ip route`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from memory_tui.search.question_dates import Time
from memory_tui.search.trace import Floats
from memory_tui.tokens import WORD, either, function_words, is_listed, segmented, spans, word_stems

ALIKE = 0.9
"""What the best line of a chunk holds of what the best of all holds, to say the same (now-images; .7 to .95 alike)."""
LOOKED_AT = 40
"""How many of the first candidates are compared by their values (now-images)."""
NEWEST = 10
"""How many of the newest that hold what is asked are candidates where it asks for now (now-images; 10 to 40 alike)."""

UNDATED = 0.5
"""How new a line without a day is: less than the newest that has one, which was written down later (planted pairs)."""

LATELY = dt.timedelta(days=30)
"""How far back a question goes that asks for what is new and nothing else."""
_NOW, _LATELY, _HAPPENS, _COMPARES = (re.compile(either(use), re.I) for use in ("now", "lately", "happens", "compares"))


def lately_in(question: str, today: dt.date) -> Time | None:
    """Return the last days where `question` asks for what is new, and for nothing else; None in all other cases.

    Who asks of a trip "recently" means one trip, and not the last.
    """
    words = _LATELY.search(question)
    if words is None:
        return None
    rest = _HAPPENS.sub(" ", f"{question[: words.start()]} {question[words.end() :]}".lower())
    if not all(map(is_listed, WORD.findall(rest))):
        return None
    return Time(today - LATELY, today, *words.span(), newest=True)


def asks(word: str) -> bool:
    """Return whether `word` of a question only asks, so that lines are not compared by it."""
    return any(pattern.fullmatch(word) for pattern in (_NOW, _COMPARES))


def words_for_now(question: str) -> str:
    """Return the words of `question` that ask how things are now."""
    words = _NOW.search(question)
    return words[0].strip() if words else ""


def newness(held: Floats, age_days: Floats) -> Floats:
    """Return how new each candidate is among those that say the same: the newest 1, the next a half, the third a third.

    They say the same whose best line has `held` about as much as the best of all. Others are 0, and all on one day.
    By equal steps an older one that says it in fewer words came first (now-images whole, and with two values each).
    """
    alike = held >= ALIKE * held.max(initial=0.0)
    days, rank = np.unique(np.floor(-age_days[alike]), return_inverse=True)
    result = np.zeros(len(held))
    dated = np.count_nonzero(~np.isnan(days))
    if dated and len(days) > 1:
        place = dated - rank
        result[alike] = np.where(np.isnan(age_days[alike]), UNDATED, 1.0 / np.maximum(place, 1))
    return result


MOST_BESIDE, SHARED = 4, 0.5
"""Words of a line beside those of the question, and what two lines share, to state one thing (now-images)."""


class Statement(NamedTuple):
    """The `words` of a line that states something, and its `value`: those that the question does not have."""

    words: Set[str]
    value: Set[str]


def _statement(line: str, question: Set[str]) -> Statement | None:
    """Return what `line` states, which holds all words of the `question` and a few others; None where it does not."""
    words = {" ".join(word_stems(word.strip("-*_`\"'.,:;()"))) for word in line.lower().split()} - {""}
    value = words - question - function_words()
    return Statement(words, value) if question <= words and 0 < len(value) <= MOST_BESIDE else None


def _differ(a: Statement, b: Statement) -> bool:
    """Return whether two lines state the same with different values: they share much, or both are figures."""
    if a.value <= b.value or b.value <= a.value:
        return False
    shared, figures = len(a.words & b.words) / len(a.words | b.words), re.compile(r"\d")
    return shared >= SHARED or all(figures.search(" ".join(each.value)) for each in (a, b))


def newer_values(lines: Sequence[str], ages: Sequence[float | None], words: Sequence[str]) -> list[int]:
    """Return for each of `lines` the newest that states the same with another value, a day newer or more; -1 for none.

    Words that only ask are no part of what is stated.
    """
    question = {stem for word in words if not asks(word) for stem in word_stems(word)}
    statements = [_statement(line, question) if question else None for line in lines]
    numbered = zip(ages, range(len(lines)), statements, strict=True)
    newest_first = sorted((age, at, each) for age, at, each in numbered if each is not None and age is not None)
    result = []
    for age, statement in zip(ages, statements, strict=True):
        newer = ((at, other) for days, at, other in newest_first if days + 1 <= (age or 0.0))
        result.append(next((at for at, other in newer if statement and _differ(statement, other)), -1))
    return result


# --- values ---------------------------------------------------------------------------------------------------------

_KINDS = (
    (r"ip|ips|ipv[46]", r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[\da-f]{1,4}(?:::?[\da-f]{1,4}){2,7}\b"),
    (r"mac", r"\b[\da-f]{2}(?:[:-][\da-f]{2}){5}\b"),
    (r"e-?mail|mail|correo|почта|メール|邮箱", r"[\w.+-]+@[\w-]+\.\w+"),
    (
        r"phone|telephone|telefon|telefonnummer|handynummer|teléfono|téléphone|телефон|電話番号|电话",
        r"\+?\d(?:[ ()/.-]?\d){5,}",
    ),
    (r"port", r":\d{2,5}\b|\b\d{2,5}\b"),
    (r"url|link|website", r"\w+://\S+|\bwww\.\S+"),
)
"""What a value is called, and what it looks like."""
_CALLED = [(re.compile(rf"\b(?:{called})\b", re.I), re.compile(form, re.I)) for called, form in _KINDS]


def value_asked(question: str) -> str:
    """Return the word of `question` that names the value it asks for; empty where none does."""
    words = next(filter(None, (called.search(question) for called, _ in _CALLED)), None)
    return words[0] if words else ""


def holds_value(texts: Sequence[str], value: str, words: Sequence[str]) -> Floats:
    """Return 1 for each of `texts` with a line that holds such a `value` and all other `words` of the question, else 0.

    The nearest heading above is of its line.
    """
    called, form = next(kind for kind in _CALLED if kind[0].fullmatch(value))
    others = [frozenset(word_stems(word)) for word in words if not called.fullmatch(word)]
    return np.array([float(bool(others) and _line_with(text, form, others)) for text in texts])


def _line_with(text: str, form: re.Pattern[str], others: Sequence[frozenset[str]]) -> bool:
    heading = ""
    for line in text.split("\n"):
        heading = line if line.startswith("#") else heading
        if form.search(line):
            held = {stem for _, _, stem in spans(segmented(f"{heading} {line}"))}
            if all(each & held for each in others):
                return True
    return False
