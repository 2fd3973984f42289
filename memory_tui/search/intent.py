"""The intent of a question: how things are now, what is new, or a value of something.

Of lines that say the same the newest comes first where it asks for now. "router ip" asks for an address, and not for a
line about `ip route`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

import numpy as np

from memory_tui.search.question_dates import Time
from memory_tui.search.trace import Floats
from memory_tui.tokens import WORD, either, function_words, is_listed, segmented, stems, word_stems

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


def newer_values(lines: Sequence[str], ages: Sequence[float | None], words: Sequence[str]) -> list[int]:
    """Return for each of `lines` the newest that states the same with another value; -1 for none.

    Both hold all `words` of the question that do not only ask, and few others, of which each has some of its own.
    """
    matter = {stem for word in words if not asks(word) for stem in word_stems(word)}
    of = [{" ".join(word_stems(word.strip("-*_`\"'.,:;()"))) for word in line.lower().split()} - {""} for line in lines]
    beside = [every - matter - function_words() for every in of]
    states = [bool(matter) and matter <= every and 0 < len(beside[at]) <= MOST_BESIDE for at, every in enumerate(of)]
    newest_first = sorted((age, at) for at, age in enumerate(ages) if age is not None and states[at])

    def newer_than(at: int) -> int:
        for age, other in newest_first:
            if age + 1 > (ages[at] or 0.0):
                return -1
            if beside[at] - beside[other] and beside[other] - beside[at]:
                alike = len(of[at] & of[other]) >= SHARED * len(of[at] | of[other])
                if alike or all(re.search(r"\d", " ".join(beside[each])) for each in (at, other)):
                    return other
        return -1

    return [newer_than(at) if states[at] else -1 for at in range(len(lines))]


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
            held = {stem for stem, _, _ in stems(segmented(f"{heading} {line}"))}
            if all(each & held for each in others):
                return True
    return False
