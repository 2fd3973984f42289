"""Recalled lines say which lines were recalled. They say when, and how an answer cites them.

Only places and times are kept, in a file of JSON lines (recall_log.py): no question, no text of a note, so there is
nothing in it to mask. Lines are named as they were counted then.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from memory_tui import jsstring
from memory_tui.recalls import recall_log

MOST_BYTES = 256 << 10
"""Some 2,000 answers."""
_LONGEST = 100_000
"""Lines of the longest place that is believed; a chunk has far fewer."""

Span = tuple[str, int, int]
"""The stored path of a note, first and last line (from 1)."""


class Marks(Struct, frozen=True):
    """The lines that were recalled, note by note, when each note last was, and how many lines could not be read."""

    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    unread: int = 0


def marks_path(workspace: Path) -> Path:
    """Where the record of a workspace is; two names of one folder share it."""
    return recall_log.log_path(workspace, "marks")


def clear(workspace: Path) -> tuple[bool, bool]:
    """Delete the record of a workspace and its recall log; whether there was each. Raises IndexUnavailable."""
    # The log last: whoever is told that something failed still has it.
    return recall_log.clear_log(marks_path(workspace)), recall_log.clear_log(recall_log.recall_log_path(workspace))


def append(path: Path, spans: Iterable[Span], at: float, most_bytes: int = MOST_BYTES) -> None:
    """Write down what one answer gave, at `at` (epoch seconds). Raises OSError, IndexUnavailable."""
    notes = {
        jsstring.well_formed(note): [[first, last] for _, first, last in group]
        for note, group in groupby(sorted(set(spans)), itemgetter(0))
    }
    if notes:
        line = json.dumps({"at": at, "notes": notes}, separators=(",", ":")).encode() + b"\n"
        recall_log.append_line(path, line, most_bytes)


def read(path: Path) -> Marks:
    """The record at `path`, empty where there is none. Raises IndexUnavailable when it cannot be read."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    last: defaultdict[str, float] = defaultdict(float)
    records, unread = answers(path)
    for at, notes in records:
        for note, spans in notes.items():
            last[note] = max(last[note], at)
            for span in spans:
                lines[note].update(span)
    return Marks({note: frozenset(records) for note, records in lines.items()}, dict(last), unread)


def answers(path: Path) -> tuple[list[tuple[float, dict[str, list[range]]]], int]:
    """Time and places of each answer in the record, oldest first, and how many lines of it could not be read.

    Raises IndexUnavailable when the record cannot be read.
    """
    records, unread = [], 0
    for line in recall_log.log_lines(path):
        try:
            records.append(_parsed(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            unread += 1
    return records, unread


def _parsed(line: bytes) -> tuple[float, dict[str, list[range]]]:
    """Time and places of one answer. Raises one of many errors when it is no such line."""
    item = json.loads(line)
    at = float(item["at"])
    notes = {str(note): [_span(first, last) for first, last in spans] for note, spans in item["notes"].items()}
    if not math.isfinite(at):
        raise ValueError
    return at, notes


def _span(first: int, last: int) -> range:
    if type(first) is not int or type(last) is not int or not 1 <= first <= last < first + _LONGEST:
        raise ValueError
    return range(first, last + 1)


Mode = Literal["auto", "on", "off"]
MODES: tuple[Mode, ...] = ("auto", "on", "off")
Chat = Literal["direct", "group", "channel"]


def mode_of(value: object) -> Mode:
    """A configured value as a mode; anything else is auto."""
    return next((mode for mode in MODES if mode == value), "auto")


def chat(session_key: str) -> Chat:
    """What kind of chat a session key such as `agent:main:telegram:group:123` speaks of; direct when it does not."""
    head, _, rest = session_key.strip().partition(":")
    agent, _, name = rest.partition(":")
    if head.lower() != "agent" or not agent or not name:
        return "direct"
    tokens = name.lower().split(":")
    return "channel" if "channel" in tokens else "group" if "group" in tokens else "direct"


def included(mode: Mode, session_key: str = "") -> bool:
    """Whether hits carry a citation: always, never, or in direct chats only."""
    return mode == "on" or (mode == "auto" and chat(session_key) == "direct")


def citation(path: str, start: int, end: int) -> str:
    """`path#L3-L9`, or `path#L3` for one line."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"


WEEK = 7


class Activity(Struct, frozen=True):
    """On which days, and how often, each note was recalled; `since` is the first day that the records know of.

    `lines` are the lines (first and last, as they were counted then) that recalls gave of it, with how many did.
    """

    days: Mapping[str, Mapping[dt.date, int]] = field(default_factory=dict)
    since: dt.date | None = None
    lines: Mapping[str, Mapping[tuple[int, int], int]] = field(default_factory=dict)

    def count(self, path: str, after: dt.date | None = None) -> int:
        """How often a note was recalled, on the days after `after` where that is given."""
        days = self.days.get(path, {})
        return sum(times for day, times in days.items() if after is None or day > after)

    def weeks(self, path: str, today: dt.date, count: int) -> list[int]:
        """Recalls of a note in each of the last `count` weeks, the week that ends `today` last."""
        counts = [0] * count
        for day, times in self.days.get(path, {}).items():
            back = (today - day).days // WEEK
            if 0 <= back < count:
                counts[count - 1 - back] += times
        return counts

    def last(self, path: str) -> dt.date | None:
        """The day on which a note was recalled last; None where it never was."""
        return max(self.days.get(path, {}), default=None)


def activity(workspace: Path) -> Activity:
    """What a person's questions and agents recalled in `workspace`; empty where nothing was recorded.

    Raises IndexUnavailable when a record cannot be read.
    """
    here, _ = answers(marks_path(workspace))
    log = recall_log.read(recall_log.recall_log_path(workspace))
    recalled = [
        (at, {(path, span.start, span.stop - 1) for path, spans in notes.items() for span in spans})
        for at, notes in here
    ]
    recalled += [(entry.at, {(hit.path, *hit.lines) for hit in entry.hits}) for entry in log.entries]
    days: defaultdict[str, Counter[dt.date]] = defaultdict(Counter)
    lines: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for at, places in recalled:
        for path in {path for path, _, _ in places}:
            days[path][dt.datetime.fromtimestamp(at).date()] += 1
        for path, first, last in places:
            lines[path][first, last] += 1
    since = min((day for counts in days.values() for day in counts), default=None)
    spans = {path: dict(counts) for path, counts in lines.items()}
    return Activity({path: dict(counts) for path, counts in days.items()}, since, spans)
