"""An inbox entry names lines that need a decision. It says why, and what can be done."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memory_tui import state_db
from memory_tui.errors import EditFailed, StateUnavailable
from memory_tui.notes.changes import FENCE, HEADING, ITEM
from memory_tui.notices import Notice

Action = Literal[
    "merge",
    "merge other",
    "delete",
    "demote",
    "trash note",
    "rename",
    "archive note",
    "restore",
    "move back",
    "convert",
    "edit",
    "keep",
    "snooze",
]


class Passage(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of a note, and what stands there, safe to keep: secrets in it are masked."""

    path: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


class Suggestion(Struct, frozen=True):
    """A finding at `place`; `other` is the twin that would stay, None where there is none.

    `digest` is that of the lines as they were seen, so that nothing is changed that was not looked at. The first of
    `actions` is the one proposed.
    """

    kind: str
    place: Passage
    finding: Notice
    actions: tuple[Action, ...]
    digest: str
    other: Passage | None = None
    new_name: str = ""
    change: int = 0
    """The journal's entry that it is about, 0 for none."""
    other_digest: str = ""
    """That of the lines of the twin."""

    @property
    def reason(self) -> str:
        """Return the finding as a sentence."""
        return self.finding.message

    @property
    def group(self) -> str:
        """Return what of its kind it belongs to, for a heading; empty where a kind is one group."""
        night = self.finding.fields.get("night")
        return f"on {night}" if night else ""

    @property
    def id(self) -> str:
        """Identify the finding: 12 hex digits, independent of its line number."""
        parts = (self.kind, self.place.path, self.digest, self.other.path if self.other else "", self.new_name)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def digest(lines: str) -> str:
    """Hash lines, to notice a change: 16 hex digits."""
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:16]


_FIRST_MARK = re.compile(rf"(?<!\s){ITEM.pattern}")
"""A list mark with the blanks before it. From the middle of those no search begins: many would take minutes."""
_TIME = re.compile(r"^\W{0,3}\d{1,2}:\d{2}(?::\d{2})?\W{0,4}\s*")
_SOURCE = re.compile(r"(?<!\s)\s*\(from [^()\s]+\.md\)\s*$")
_MARKS = re.compile(r"[*_`~#>\[\]]+")


class DatedNote(Struct, frozen=True):
    """A note to check: its path, its text, the day in its name (None for a note without one).

    `replaced` counts the U+FFFD in the text that stand for bytes which are not UTF-8; `utf16` tells whether they look
    like UTF-16.
    """

    path: str
    text: str
    day: dt.date | None
    replaced: int = 0
    utf16: bool = False


class NoteItem(Struct, frozen=True):
    """A list item, paragraph or fenced block on lines `first` to `last`; `plain` is its text for comparing."""

    note: DatedNote
    first: int
    last: int
    text: str
    plain: str
    fenced: bool = False


def note_items(note: DatedNote) -> Iterator[NoteItem]:
    """Yield the list items, paragraphs and fenced blocks of a note in order; a heading is none of them."""
    texts = [line.removesuffix("\r") for line in note.text.removeprefix("\ufeff").split("\n")]
    start, fence = 0, ""
    for number, text in enumerate(texts, 1):
        mark = FENCE.match(text)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
                yield _item(note, texts, start, number, fenced=True)
                start, fence = 0, ""
        elif mark:
            if start:
                yield _item(note, texts, start, number - 1)
            start, fence = number, mark[1]
        elif not text.strip() or HEADING.match(text):
            if start:
                yield _item(note, texts, start, number - 1)
            start = 0
        elif start and ITEM.match(text):
            yield _item(note, texts, start, number - 1)
            start = number
        elif not start:
            start = number
    if start:
        last = max(number for number, text in enumerate(texts, 1) if text.strip())
        yield _item(note, texts, start, last, fenced=bool(fence))


def plain(text: str) -> str:
    """Strip list mark, time of day, emphasis, source and line breaks from an item; lower case."""
    words = _FIRST_MARK.sub("", text, count=1)
    words = _SOURCE.sub("", _TIME.sub("", _MARKS.sub("", words).strip()))
    return " ".join(words.lower().split())


def _item(note: DatedNote, texts: Sequence[str], first: int, last: int, *, fenced: bool = False) -> NoteItem:
    text = "\n".join(texts[first - 1 : last])
    return NoteItem(note, first, last, text, plain(text), fenced)


TABLE = state_db.Table("inbox_decisions")
_FOREVER = "keep"


class Decisions:
    """The decisions of the workspace whose changes are kept in `folder`; several processes may decide at once.

    Everything may raise EditRefused; `notice` gets what a person should know.
    """

    def __init__(self, folder: Path, notice: state_db.Tell = state_db.warn) -> None:
        self._old = folder / "inbox.json"
        self._records = TABLE.of(str(folder), self._read_old, tell=notice)

    def _read_old(self) -> dict[str, Any]:
        """Return what earlier releases kept in a file of its own. Raises OSError, ValueError."""
        try:
            data = json.loads(self._old.read_bytes())
        except FileNotFoundError:
            return {}
        return data if isinstance(data, dict) else {}

    def open(self, suggestions: Sequence[Suggestion], now: float) -> tuple[Suggestion, ...]:
        """Return the suggestions that are neither dismissed nor snoozed at `now` (epoch seconds)."""
        data = self._read()
        return tuple(suggestion for suggestion in suggestions if not _hidden(data.get(suggestion.id), now))

    def hidden(self, suggestions: Sequence[Suggestion], now: float) -> dict[str, float]:
        """Return id -> end of snooze (epoch seconds, infinite if dismissed) of each suggestion hidden at `now`."""
        data = self._read()
        return {
            suggestion.id: math.inf if data[suggestion.id] == _FOREVER else data[suggestion.id]
            for suggestion in suggestions
            if _hidden(data.get(suggestion.id), now)
        }

    def decided(self) -> frozenset[str]:
        """Return the ids of all dismissed or snoozed suggestions, due again or not."""
        return frozenset(self._read())

    def keep(self, suggestion: Suggestion) -> None:
        """Dismiss a suggestion for good."""
        self._set(suggestion.id, _FOREVER)

    def snooze(self, suggestion: Suggestion, until: float) -> None:
        """Hide a suggestion until `until` (epoch seconds)."""
        self._set(suggestion.id, until)

    def reopen(self, identifier: str) -> bool:
        """Undo a decision; returns False when there was none."""
        return self._set(identifier, None)

    def _read(self) -> dict[str, Any]:
        try:
            return self._records.read()
        except StateUnavailable as error:
            raise EditFailed(error.message, error.next_step) from error

    def _set(self, identifier: str, value: str | float | None) -> bool:
        try:
            return self._records.change(identifier, lambda _: value) is not None
        except StateUnavailable as error:
            raise EditFailed(error.message, error.next_step) from error


def _hidden(decision: object, now: float) -> bool:
    return decision == _FOREVER or (isinstance(decision, int | float) and now < decision)
