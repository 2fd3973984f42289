"""A note as the things it says: list items and paragraphs, each with its lines and its words without decoration."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_tui.curate.lines import FENCE, HEADING, ITEM

_TIME = re.compile(r"^\W{0,3}\d{1,2}:\d{2}(?::\d{2})?\W{0,4}\s*")
_SOURCE = re.compile(r"\s*\(from [^()\s]+\.md\)\s*$")
_MARKS = re.compile(r"[*_`~#>\[\]]+")


@dataclass(frozen=True, slots=True)
class Note:
    """A note that is looked at: its path and text, the day it is of (None for lasting notes)."""

    path: str
    text: str
    day: dt.date | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a note says, on lines `first` to `last`; `plain` is what of it can be compared."""

    note: Note
    first: int
    last: int
    text: str
    plain: str
    fenced: bool = False


def entries(note: Note) -> Iterator[Entry]:
    """The list items, paragraphs and fenced blocks of a note, in order; headings are none."""
    texts = [line.removesuffix("\r") for line in note.text.removeprefix("\ufeff").split("\n")]
    start, fence = 0, ""
    for number, text in enumerate(texts, 1):
        mark = FENCE.match(text)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
                yield _entry(note, texts, start, number, fenced=True)
                start, fence = 0, ""
        elif mark:
            if start:
                yield _entry(note, texts, start, number - 1)
            start, fence = number, mark[1]
        elif not text.strip() or HEADING.match(text):
            if start:
                yield _entry(note, texts, start, number - 1)
            start = 0
        elif start and ITEM.match(text):
            yield _entry(note, texts, start, number - 1)
            start = number
        elif not start:
            start = number
    if start:
        last = max(number for number, text in enumerate(texts, 1) if text.strip())
        yield _entry(note, texts, start, last, fenced=bool(fence))


def plain(text: str) -> str:
    """The words of an entry: no list mark, time of day, emphasis, source or line breaks, in lower case."""
    said = ITEM.sub("", text, count=1)
    said = _SOURCE.sub("", _TIME.sub("", _MARKS.sub("", said).strip()))
    return " ".join(said.lower().split())


def _entry(note: Note, texts: Sequence[str], first: int, last: int, *, fenced: bool = False) -> Entry:
    text = "\n".join(texts[first - 1 : last])
    return Entry(note, first, last, text, plain(text), fenced)
