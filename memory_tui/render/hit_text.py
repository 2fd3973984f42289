"""Hit text is what a list says of a hit. It has the name of its note, its title, the words that matter, and its age."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain.matched_words import MatchedWords, Span
from memory_tui.search.trace import Candidate, ChunkRef
from memory_tui.workspace.notes import heading_of, is_heading, shown_day, title_of

LOOKED_AT = 4_000
"""Characters of a chunk that a row is made from."""
LONGEST = 900
"""Characters of a row's text."""
LEAD = 24
"""Characters that stay before the first matched word, so that it is read with what it belongs to."""

_FRAME = re.compile(r"[\s|:+-]*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?|\s*>\s?")


@dataclass(frozen=True, slots=True)
class HitText:
    """A hit in words, safe to show on one line; `marks` are where words of the query stand in `title` and `body`."""

    name: str
    title: str
    body: str
    title_marks: Sequence[Span]
    body_marks: Sequence[Span]


def hit_text(candidate: Candidate, text: str, words: MatchedWords, now: float) -> HitText:
    """What a list says of `candidate`, whose chunk holds `text`, at `now` (epoch seconds)."""
    lines = text[:LOOKED_AT].split("\n")
    line = candidate.second.line - candidate.chunk.start_line if candidate.second is not None else -1
    at = _first_line(lines, words, line)
    title = one_line(title_of(lines, at))
    body = body_of(lines, words, at, title)
    return HitText(note_name(candidate.chunk, now), title, body, words.spans(title), words.spans(body))


def _first_line(lines: Sequence[str], words: MatchedWords, best: int) -> int:
    """The 0-based line to begin with: the `best` one, else the first that holds a matched word, else the first."""
    if 0 <= best < len(lines) and lines[best].strip():
        return best
    return next((at for at, one in enumerate(lines) if words.spans(one)), 0)


def note_name(chunk: ChunkRef, now: float) -> str:
    """A short name of the note: the day of a daily log, else its file; with the line where the chunk begins."""
    day = shown_day(chunk.path)
    if day is None:
        return f"{safe(chunk.path.removeprefix('memory/'))}:{chunk.start_line}"
    return day_name(day, now) + (f":{chunk.start_line}" if chunk.start_line > 1 else "")


def day_name(day: dt.date, now: float) -> str:
    """`9 Nov`, with its year where that is not within the last eleven months."""
    near = -31 < (dt.datetime.fromtimestamp(now).date() - day).days < 330
    return f"{day.day} {day:%b}" if near else f"{day.day} {day:%b %Y}"


def body_of(lines: Sequence[str], words: MatchedWords, at: int, title: str = "") -> str:
    """The text from 0-based line `at` on without list signs and headings, beginning near a matched word."""
    body = one_line(" ".join(filter(None, (_plain(one, title) for one in lines[at:]))))[:LONGEST]
    if not body:
        body = one_line(" ".join(filter(None, (_plain(one, title) for one in lines))))[:LONGEST]
    first = next(iter(words.spans(body)), (0, 0))[0]
    if first > 2 * LEAD:
        start = body.find(" ", first - LEAD) + 1
        body = f"… {body[start:]}" if 0 < start <= first else body
    return body


def _plain(line: str, title: str) -> str:
    """A line as a sentence, without list sign and frame of a table; nothing of a heading that is the title or a day."""
    if is_heading(line):
        words = one_line(heading_of(line))
        return f"{words}:" if words and words != title else ""
    if not _FRAME.fullmatch(line):
        return _ITEM.sub("", line, count=1).strip().strip("|").strip()
    return ""


def age_of(candidate: Candidate, now: float) -> float | None:
    """The age as the score counts it; while it does not count, the age of the day in the note's name."""
    if candidate.age.basis == "off" and (day := shown_day(candidate.chunk.path)) is not None:
        return float((dt.datetime.fromtimestamp(now).date() - day).days)
    return candidate.age.age_days
