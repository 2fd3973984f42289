"""An inbox entry names lines that need a decision. It says why, and what can be done."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memory_tui import state_db
from memory_tui.approval import decisions
from memory_tui.notes.changes import FENCE, HEADING, ITEM
from memory_tui.sentences import Notice

Action = Literal[
    "merge",
    "merge other",
    "delete",
    "mask",
    "none",
    "overtake",
    "demote",
    "trash note",
    "rename",
    "archive note",
    "restore",
    "convert",
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

    place: Passage
    finding: Notice
    digest: str
    kind: str = ""
    actions: tuple[Action, ...] = ()
    other: Passage | None = None
    new_name: str = ""
    change: int = 0
    """The journal's entry that it is about, 0 for none."""
    other_digest: str = ""
    """That of the lines of the twin."""
    family: str = ""
    """What of its kind it belongs to, by the cause."""
    occurrence: int = 0
    """How many findings of equal lines the note has before."""
    label: tuple[str, str] | None = None
    """What "this is none" learns: the label of a secret and the prefix of its value, else `secrets.finder.exactly`."""

    @property
    def reason(self) -> str:
        """Return the finding as a sentence."""
        return self.finding.message

    @property
    def seen(self) -> str:
        """Return the digest for which a decision holds; empty where that is about the note, whatever its lines say."""
        return "" if self.kind in ("over budget", "copied file") else self.digest

    @property
    def id(self) -> str:
        """Identify the finding: 12 hex digits, independent of its line number."""
        nth = (str(self.occurrence),) if self.occurrence else ()
        parts = (self.kind, self.place.path, self.seen, self.other.path if self.other else "", self.new_name, *nth)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


class Group(Struct, frozen=True):
    """What has one cause, a sentence: its findings, and what can be done about all of them as one change.

    The first of `actions` is the one proposed.
    """

    kind: str
    cause: Notice
    suggestions: tuple[Suggestion, ...]
    actions: tuple[Action, ...]

    @property
    def id(self) -> str:
        """Identify the group: 12 hex digits, those of its finding where it has one."""
        first = self.suggestions[0]
        name = f"{self.kind}\0{first.family}".encode("utf-8", "surrogateescape")
        return first.id if len(self.suggestions) == 1 else hashlib.sha256(name).hexdigest()[:12]

    @property
    def count(self) -> int:
        """Return how many places or entries it is about."""
        return sum(row.finding.fields.get("entries", 1) for row in self.suggestions)

    @property
    def proposal(self) -> Action:
        """Return the change that is proposed for all of it."""
        return self.actions[0]


class Findings(Struct, frozen=True):
    """What an examination found: `groups`, the most pressing first, and what it kept `silent`, by the reason."""

    groups: tuple[Group, ...]
    silent: Mapping[str, tuple[Suggestion, ...]]

    @property
    def quiet(self) -> Mapping[str, int]:
        """Return how many findings were kept silent, by the reason."""
        return {reason: len(rows) for reason, rows in self.silent.items()}

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Return the findings of all groups."""
        return tuple(row for group in self.groups for row in group.suggestions)


def digest(lines: str) -> str:
    """Hash lines, to notice a change: 16 hex digits."""
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:16]


_LONGEST = 200
"""Lines of an item: nothing else runs while a pattern is looked for in it, and a note may have 30 MB in one."""
_SOURCE = re.compile(r"\(from [^()\s]+\.md\)\s*$")
_MARKS = re.compile(r"[*_`~#>\[\]]")


class DatedNote(Struct, frozen=True):
    """A note to check: its path, its text, the day in its name (None for a note without one).

    `replaced` counts the U+FFFD in the text that stand for bytes which are not UTF-8; `utf16` tells whether they look
    like UTF-16. `unexamined` tells whether the note goes on behind the text.
    """

    path: str
    text: str
    day: dt.date | None
    replaced: int = 0
    utf16: bool = False
    unexamined: bool = False


class NoteItem(Struct, frozen=True):
    """A list item, paragraph or fenced block on lines `first` to `last`."""

    note: DatedNote
    first: int
    last: int
    text: str
    fenced: bool = False


def lines_of(note: DatedNote) -> Iterator[tuple[int, str, int]]:
    """Yield number and text of each line, and the line with which the fence begins that it is in, 0 for none."""
    fence, start = "", 0
    for number, raw in enumerate(note.text.removeprefix("\ufeff").split("\n"), 1):
        text = raw.removesuffix("\r")
        mark = FENCE.match(text)
        opens = mark is not None and not fence
        if mark and opens:
            fence, start = mark[1], number
        yield number, text, start
        if mark and not opens and mark[1].startswith(fence):
            fence, start = "", 0


def note_items(note: DatedNote) -> Iterator[NoteItem]:
    """Yield the list items, paragraphs and fenced blocks of a note in order; a heading is none of them."""
    texts: list[str] = []
    first = fence = 0
    for number, text, start in lines_of(note):
        is_aside = not start and (not text.strip() or HEADING.match(text) is not None)
        if texts and (is_aside or start != fence or (not start and (ITEM.match(text) or len(texts) == _LONGEST))):
            yield _item(note, first, texts, fenced=fence > 0)
            texts = []
        fence = start
        if not is_aside:
            first = first if texts else number
            texts.append(text)
    if texts:
        yield _item(note, first, texts, fenced=fence > 0)


def plain(text: str) -> str:
    """Strip list mark, emphasis, source and line breaks from an item; lower case."""
    mark = ITEM.match(text)
    words = _SOURCE.sub("", _MARKS.sub("", text[mark.end() :] if mark else text))
    return " ".join(words.lower().split())


def _item(note: DatedNote, first: int, texts: Sequence[str], *, fenced: bool) -> NoteItem:
    text = "\n".join(texts).rstrip("\n")
    return NoteItem(note, first, first + text.count("\n"), text, fenced)


class Decisions:
    """The decisions of the workspace whose changes are kept in `folder`; several processes may decide at once.

    Everything may raise StateUnavailable; `notice` gets what a person should know.
    """

    def __init__(self, folder: Path, notice: state_db.Tell = state_db.warn) -> None:
        self._old = folder / "inbox.json"
        self._records = decisions(folder, self._read_old, notice)

    def _read_old(self) -> dict[str, Any]:
        """Return what 0.2 kept in a file of its own. Raises OSError, ValueError."""
        data = json.loads(self._old.read_bytes()) if self._old.exists() else {}
        return data if isinstance(data, dict) else {}

    def none(self, suggestion: Suggestion) -> None:
        """Dismiss a suggestion for good, because it is no secret and no command, and learn that.

        With a label its prefix tells none from now on; else, as with a key in the form of its maker, this value alone.
        """
        self._records.put(suggestion.id, list(suggestion.label) if suggestion.label else "keep")

    def hidden(self, suggestions: Sequence[Suggestion], now: float) -> dict[str, float]:
        """Return id -> end of snooze (epoch seconds, infinite if dismissed) of each suggestion hidden at `now`."""
        data = self._records.read()
        found = ((row.id, data[row.id]) for row in suggestions if row.id in data)
        return {id_: end for id_, at in found if now < (end := at if isinstance(at, int | float) else math.inf)}

    def decided(self) -> frozenset[str]:
        """Return the ids of all dismissed or snoozed suggestions, due again or not."""
        return frozenset(self._records.read())

    def keep(self, suggestion: Suggestion) -> None:
        """Dismiss a suggestion for good."""
        self._records.put(suggestion.id, "keep")

    def snooze(self, suggestion: Suggestion, until: float) -> None:
        """Hide a suggestion until `until` (epoch seconds)."""
        self._records.put(suggestion.id, until)

    def reopen(self, identifier: str) -> bool:
        """Undo a decision; returns False when there was none."""
        return self._records.remove(identifier)
