"""Which lines questions of a person recalled, so that the reader's marks outlive the app.

Only places and times are kept, in a file of JSON lines (log_file.py): no question, no text of a note, so there is
nothing in it to mask. Lines are named as they were counted then.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from memory_tui.agent import log_file
from memory_tui.text import js

MOST_BYTES = 256 << 10
"""Some 2,000 answers."""
_LONGEST = 100_000
"""Lines of the longest place that is believed; a chunk has far fewer."""

Span = tuple[str, int, int]
"""The stored path of a note, first and last line (from 1)."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The lines that were recalled, note by note, when each note last was, and how many lines could not be read."""

    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    unread: int = 0


def place(workspace: Path) -> Path:
    """Where the record of a workspace is; two names of one folder share it."""
    return log_file.place(workspace, "marks")


def append(path: Path, spans: Iterable[Span], at: float, most_bytes: int = MOST_BYTES) -> None:
    """Write down what one answer gave, at `at` (epoch seconds). Raises OSError, IndexUnavailable."""
    notes = {
        js.well_formed(note): [[first, last] for _, first, last in group]
        for note, group in groupby(sorted(set(spans)), itemgetter(0))
    }
    if notes:
        line = json.dumps({"at": at, "notes": notes}, separators=(",", ":")).encode() + b"\n"
        log_file.append(path, line, most_bytes)


def read(path: Path) -> Marks:
    """The record at `path`, empty where there is none. Raises IndexUnavailable when it cannot be read."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    last: defaultdict[str, float] = defaultdict(float)
    unread = 0
    for line in log_file.lines(path):
        try:
            at, notes = _parsed(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            unread += 1
            continue
        for note, spans in notes.items():
            last[note] = max(last[note], at)
            for span in spans:
                lines[note].update(span)
    return Marks({note: frozenset(found) for note, found in lines.items()}, dict(last), unread)


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
