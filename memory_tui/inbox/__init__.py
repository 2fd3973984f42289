"""The inbox: lines of notes that need a decision. An entry names them, says why, and what each decision changes."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memory_tui import state_db
from memory_tui.approval import decisions
from memory_tui.notes.changes import FENCE, HEADING, ITEM
from memory_tui.sentences import Notice

_OfLines = Literal["merge", "merge other", "delete", "mask", "overtake", "demote"]
_OfNotes = Literal["trash note", "rename", "archive note", "restore", "convert"]
Action = Literal[_OfLines, _OfNotes, "none", "keep", "snooze"]
"""What can be done about a suggestion; the last three change no note."""


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
        twin = self.other.path if self.other else ""
        parts = [self.kind, self.place.path, self.seen, twin, self.new_name]
        return _identifier(parts + [str(self.occurrence)] * bool(self.occurrence))


def _identifier(parts: Sequence[str]) -> str:
    """Return 12 hex digits that are the same for the same `parts`, of which none holds a NUL."""
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
        return first.id if len(self.suggestions) == 1 else _identifier([self.kind, first.family])

    @property
    def count(self) -> int:
        """Return how many places it is about; a finding that tells of `entries` counts as so many."""
        return sum(suggestion.finding.fields.get("entries", 1) for suggestion in self.suggestions)

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
        return {reason: len(suggestions) for reason, suggestions in self.silent.items()}

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Return the findings of all groups."""
        return tuple(suggestion for group in self.groups for suggestion in group.suggestions)


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
    """Yield number and text of each line, and the number of the line that opens the fence it is in, 0 for none."""
    fence, opening = "", 0
    for number, raw in enumerate(note.text.removeprefix("\ufeff").split("\n"), 1):
        text = raw.removesuffix("\r")
        mark = FENCE.match(text)
        # A fence is closed by as many of its signs, or by more.
        is_closing = mark is not None and fence != "" and mark[1].startswith(fence)
        if mark and not fence:
            fence, opening = mark[1], number
        yield number, text, opening
        # The line that closes a fence is still in it.
        if is_closing:
            fence, opening = "", 0


def items_of(note: DatedNote) -> Iterator[NoteItem]:
    """Yield the list items, paragraphs and fenced blocks of a note in order; a heading is none of them."""
    texts: list[str] = []
    # The line that the item begins with, and the one that opened the fence around the line before, 0 for no fence.
    first = last_opening = 0
    # A blank line closes the last item, too.
    for number, text, opening in chain(lines_of(note), [(0, "", 0)]):
        is_aside = not opening and (not text.strip() or HEADING.match(text) is not None)
        begins = not opening and (ITEM.match(text) is not None or len(texts) == _LONGEST)
        if texts and (is_aside or begins or opening != last_opening):
            body = "\n".join(texts).rstrip("\n")
            yield NoteItem(note, first, first + body.count("\n"), body, fenced=last_opening > 0)
            texts = []
        last_opening = opening
        if not is_aside:
            first = first if texts else number
            texts.append(text)


def plain(text: str) -> str:
    """Strip list mark, emphasis, source and line breaks from an item; lower case."""
    mark = ITEM.match(text)
    words = _SOURCE.sub("", _MARKS.sub("", text[mark.end() :] if mark else text))
    return " ".join(words.lower().split())


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
        records = self._records.read()
        decided = {suggestion.id: records[suggestion.id] for suggestion in suggestions if suggestion.id in records}
        # A decision is a time, or what says that it holds for good.
        ends = {name: end if isinstance(end, int | float) else math.inf for name, end in decided.items()}
        return {name: end for name, end in ends.items() if now < end}

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
