"""Contradictions are two lines that give one subject two values.

Rules, and no model: a line counts only where it names a subject and a short value of a known sort. A pair is of two
lasting notes, of a lasting note and the newest log that speaks of the subject, or of the last two logs where no lasting
note does. What is measured day by day is left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from memory_tui.errors import Cancelled
from memory_tui.inbox.entries import NoteItem
from memory_tui.notes.changes import ITEM
from memory_tui.workspace.annotations import without_markers

_SUBJECT = r"[^\W\d_][\w .'&/+-]{0,40}?"
_CODE = r"`[\w.-]+`|[A-Za-z]\w*(?:[._]\w+)+"
_SIGNS = (":", "：", "=", "→", " is ", " are ", " from ")
"""One of these is in a line that any of the next three takes."""
_KEY_SIGNS, _KEYS_END = (":", "：", "="), 64
_KEY = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])?\s*([^:：=\n]{1,50}?)\s*[:：=]")
_PAIR = re.compile(rf"(?P<subject>{_CODE}|{_SUBJECT})\s*(?::\s|：|=\s|→)\s*(?P<value>\S.*)")
_MOVED = re.compile(
    rf"(?P<subject>{_CODE}|{_SUBJECT}):?\s+(?:(?:has|have|was|were|is|are)\s+)?"
    r"(?:moved|moves|changed|changes|switched|switches|renamed|raised|lowered)\s+from\s+(?P<before>\S.*?)\s+to\s+(?P<value>\S.*)",
    re.IGNORECASE,
)
_IS = re.compile(
    rf"(?:the|our|my)\s+(?P<subject>{_SUBJECT})\s+(?:is|are)(?:\s+now)?(?:\s+(?:on|in|at|called))?\s+(?P<value>\S.*)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:decision|decided|agreed|update|changed|new)\s*:\s+", re.IGNORECASE)
"""What may stand before a fact and is no subject."""
_ARTICLE = re.compile(r"^(?:the|our|my|new|current)\s+", re.IGNORECASE)
_NO_SUBJECT = re.compile(
    r"action|address|age|answer|author|birthday|born|cause|check|contact|cost|date|day|dinner|done|email|"
    r"example|fix|hours|id|idea|kind|lesson|link|location|lunch|mood|name|next|note|notes|number|open|"
    r"order|phone|place|price|problem|question|reason|reminder|result|rule|size|source|state|status|step|"
    r"summary|tags|time|todo|topic|total|type|undo|url|version|warning|weather"
)
"""Words that say another thing under each heading, or each day."""
_PRONOUN = re.compile(
    r"all|each|everything|he|her|here|his|how|i|it|its|nobody|nothing|one|she|that|their|there|these|they|"
    r"this|those|we|what|when|where|which|who|you"
)
_END = re.compile(
    r"[;,。；，]\s?|\.(?:\s|$)|\s(?:\(|—|–|since\b|as of\b|from (?:today|now)\b|because\b|but\b|and then\b)"
)
_SINCE = re.compile(r"[`\"'”]?\s(?:\(|since\b|as of\b|from (?:today|now)\b)")
_UNSURE = re.compile(
    r"[?？!！]|\b(?:maybe|perhaps|might|may|could|would|should|plan|plans|planned|candidate|if|until|till|was|were|"
    r"tried|test|trial|used to|formerly|no longer|not|or)\b",
    re.IGNORECASE,
)
_DAY = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_CAPITAL = r"[A-ZÀ-Þ\u0410-\u042f]"
_MOST_WORDS, _LONGEST = 4, 300
"""Words of a subject or a value, and characters of a line."""
_OFTEN = 256
"""Items between two checks for a stop."""
_MEASURED = frozenset({"number", "time", "day", "word"})
"""Sorts of which each log has its own."""
_RECENT_DAYS = 90
"""A log older than this is history: nobody knows which of the two was written first."""
_SPEAKS = 4
"""Lines from which on a subject is who speaks, or a heading of every day."""
_SORTS = (
    ("day", re.compile(r"\d{4}-\d{2}-\d{2}")),
    ("time", re.compile(r"\d{1,2}:\d{2}")),
    ("number", re.compile(r"\d+")),
    ("address", re.compile(r"(?=\S*[\d/@])[\w-]+(?:[.:@/][\w-]+)+/?|/\S+")),
    (
        "name",
        re.compile(rf"{_CAPITAL}[\w.'’-]*(?: (?:{_CAPITAL}[\w.'’-]*|\d[\w-]*))*|[\u3400-\u9fff\u3040-\u30ff]{{1,8}}"),
    ),
    ("word", re.compile(r"[a-z][\w-]*")),
)


class Fact(NamedTuple):
    """The item says that `subject` is `value`, which is of this sort; `before` is the value that it had.

    `whole` tells that the item says nothing else.
    """

    item: NoteItem
    subject: str
    value: str
    sort: str
    before: str
    whole: bool


class Contradiction(NamedTuple):
    """`older` says another value of the subject than `newer`; the day of `newer` is None where both are lasting."""

    older: Fact
    newer: Fact
    day: dt.date | None


def fact(item: NoteItem) -> Fact | None:
    """Return what an item says of a subject; None where it says nothing that can be compared."""
    text = item.text
    if text[0].isspace() or text[0] == "|" or not any(sign in text for sign in _SIGNS):
        return None
    if item.fenced or item.last > item.first or len(text) > _LONGEST:
        return None
    mark = ITEM.match(text)
    text = " ".join(without_markers(text)[mark.end() if mark else 0 :].replace("**", "").split())
    text = _LABEL.sub("", text, count=1) if _LABEL.match(text) else text
    match = _MOVED.fullmatch(text) or _PAIR.fullmatch(text) or _IS.fullmatch(text)
    if match is None:
        return None
    before = _head(match.groupdict().get("before") or "")
    subject, value = _subject(match["subject"]), _head(match["value"])
    # `was` is no doubt where the line tells what it was changed to.
    doubted = _UNSURE.search(value if before else text[: match.start("value")] + match["value"][: len(value) + 2])
    sort = next((name for name, pattern in _SORTS if pattern.fullmatch(value)), "")
    if not subject or not sort or doubted or (sort == "word" and not (before or match.re is _IS)):
        return None
    rest = match["value"].strip(" `\"'“”.").removeprefix(value)
    return Fact(item, subject, value, sort, before, not rest or bool(_SINCE.match(rest)))


def _subject(text: str) -> str:
    """Return the subject as it is compared; empty for what is none."""
    is_code = "`" in text or "_" in text
    subject = _ARTICLE.sub("", text.strip(" `").lower())
    words = re.findall(r"\w+", subject)
    usable = 0 < len(words) <= _MOST_WORDS and not any(map(_PRONOUN.fullmatch, words))
    return subject if usable and (is_code or not _NO_SUBJECT.fullmatch(subject)) else ""


def _head(text: str) -> str:
    """Return the value itself, without what is said about it; empty where it is long."""
    # The dot of a title ends nothing: "Dr. Hallett" is one value.
    guarded = re.sub(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\. ", "\\1\0", text)
    head = _END.split(guarded, maxsplit=1)[0].replace("\0", ". ").strip(" `\"'“”.")
    return head if len(head.split()) <= _MOST_WORDS else ""


def pairs(
    items: Sequence[NoteItem], today: dt.date, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Contradiction]:
    """Yield the pairs of items that contradict each other, of each subject the newest.

    Raises Cancelled when `stopped` says so.
    """
    keys: Counter[str] = Counter()
    by_subject: dict[str, list[Fact]] = defaultdict(list)
    for at, item in enumerate(items):
        if at % _OFTEN == 0 and stopped():
            raise Cancelled
        if (reply := fact(item)) is not None:
            by_subject[reply.subject].append(reply)
        if any(sign in item.text[:_KEYS_END] for sign in _KEY_SIGNS) and (prefix := _KEY.match(item.text)):
            keys[prefix[1].replace("**", "")] += 1
    lines: Counter[str] = Counter()
    for key, count in keys.items():
        lines[_subject(key)] += count
    for subject, facts in by_subject.items():
        lasting = [row for row in facts if row.item.note.day is None]
        if " " not in subject and lines[subject] - len(lasting) >= _SPEAKS:
            continue
        yield from _lasting(lasting)
        logs = [(day, row) for row in facts if (day := row.item.note.day) and 0 <= (today - day).days <= _RECENT_DAYS]
        if not logs:
            continue
        # The last line of the newest day.
        day, newest = max(logs, key=lambda log: (log[0], log[1].item.first))
        # Where no lasting note speaks of it, the log before is what an agent recalls.
        before = max((log for log in logs if log[0] < day), key=lambda log: (log[0], log[1].item.first), default=None)
        older = lasting
        if not lasting and before is not None and newest.sort not in _MEASURED and newest.whole and before[1].whole:
            older = [before[1]]
        yield from (
            Contradiction(row, newest, day) for row in older if _differ(row, newest) and not _knows(row, newest, day)
        )


def _lasting(facts: Sequence[Fact]) -> Iterator[Contradiction]:
    """Yield pairs of two notes; lines of one note stand under headings that make them of different things."""
    for earlier, other in combinations(facts, 2):
        notes = earlier.item.note.path, other.item.note.path
        # Two topic notes have properties of the same name.
        if notes[0] != notes[1] and any("/" not in path for path in notes) and _differ(earlier, other):
            yield Contradiction(earlier, other, None)


def _differ(earlier: Fact, other: Fact) -> bool:
    """Return whether both values are of one sort, and neither is a part of the other."""
    if earlier.sort != other.sort:
        return other.before != "" and earlier.value == other.before
    if other.before and earlier.value not in (other.before, other.value):
        return False
    if earlier.sort in ("name", "word"):
        words, other_words = (
            set(re.findall(r"\w+", value.lower())) - {"dr", "mr", "mrs", "ms"} for value in (earlier.value, other.value)
        )
        return not words & other_words
    return earlier.value != other.value


def _knows(earlier: Fact, newer: Fact, day: dt.date) -> bool:
    """Return whether a lasting item was written with the newer one in mind: it names the value, or a day as late."""
    days = _DAY.findall(earlier.item.text)
    return newer.value.lower() in earlier.item.text.lower() or any(date >= day.isoformat() for date in days)
