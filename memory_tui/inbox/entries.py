"""An inbox entry: which lines, why, what can be done."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memory_tui.curate.changes import FENCE, HEADING, ITEM

Kind = Literal[
    "secret",
    "bad date",
    "exact duplicate",
    "near duplicate",
    "paraphrase",
    "stale date",
    "dead path",
    "over budget",
    "junk",
    "never recalled",
]
Action = Literal["merge", "delete", "demote", "trash note", "rename", "archive note", "keep", "snooze"]

TITLES: Mapping[Kind, str] = MappingProxyType(
    {
        "secret": "looks like a secret",
        "bad date": "a date that cannot be",
        "exact duplicate": "said twice",
        "near duplicate": "said twice in nearly the same words",
        "paraphrase": "perhaps the same in other words",
        "stale date": "a date that has passed",
        "dead path": "names a file that is not there",
        "over budget": "beyond what a session reads",
        "junk": "looks like output of a tool",
        "never recalled": "never recalled so far",
    }
)
"""What a person is told of each kind, the most pressing first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Lines `first` to `last` (from 1) of a note, and what stands there, safe to keep: secrets in it are masked."""

    path: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was found at `place`; `other` is the twin that would stay, None where there is none.

    `digest` is that of the lines as they were seen, so that nothing is changed that was not looked at. The first of
    `actions` is the one proposed.
    """

    kind: Kind
    place: Place
    reason: str
    actions: tuple[Action, ...]
    digest: str
    other: Place | None = None
    new_name: str = ""

    @property
    def id(self) -> str:
        """The same as long as the same is found in the same note, wherever in it."""
        parts = (self.kind, self.place.path, self.digest, self.other.path if self.other else "", self.new_name)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def digest(lines: str) -> str:
    """What tells whether lines are still what they were."""
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:16]


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
