"""The sample workspace that ships in the package: ten months of one household's notes, ending today.

The templates name days by their age (`memory/day-049.md`) and hold dates as `{date}`, `{date-7}`, `{long+3}`;
a dated note counts from its own day, every other text from today. So the copy is always about the last ten months,
and line numbers never change.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from memory_tui.core import atomic
from memory_tui.errors import WorkspaceError

__all__ = ["SUGGESTED", "Label", "LabelledQuery", "labelled_queries", "materialize"]

SUGGESTED: tuple[str, ...] = (
    "How is the VLAN on the Omada router set up?",
    "Who was our dentist before Dr. Hallett?",
    "Why did we drop Pi-hole?",
    "What was the cause of ERR_GATEWAY_502 the first time?",
    "麻婆豆腐要放什么酱？",
)
"""Labelled queries for somebody who sees the sample for the first time.

No note holds all the words of any of them, so keyword search that joins words with AND stays empty, while each is
answered by notes that hold some.
"""

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TEMPLATE_DAY = re.compile(r"day-(\d{3})")
_PLACEHOLDER = re.compile(r"\{(date|weekday|long|month|zh)([+-]\d+)?\}")


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


# Names are spelled out here because strftime follows the locale, and the copy must not depend on the machine.
_FORMS: Mapping[str, Callable[[dt.date], str]] = {
    "date": dt.date.isoformat,
    "weekday": lambda day: _WEEKDAYS[day.weekday()],
    "long": lambda day: f"{_MONTHS[day.month - 1]} {_ordinal(day.day)}",
    "month": lambda day: _MONTHS[day.month - 1],
    "zh": lambda day: f"{day.month}月{day.day}日",
}


@dataclass(frozen=True, slots=True)
class Label:
    """A line that answers a query: `grade` 2 is the answer, 1 helps; `answer` is a fragment of that line."""

    path: str
    line: int
    grade: int
    answer: str


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A question with its relevant lines (none: the notes do not know); `note` says what makes it hard."""

    id: str
    query: str
    category: str
    relevant: tuple[Label, ...]
    note: str


def materialize(target: Path, today: dt.date) -> Path:
    """Write the sample workspace as it stands on `today` into `target`, and return `target`.

    The same day gives the same bytes and mtimes in every time zone and locale. A note's mtime is 18:00 UTC of its
    day, an undated file's that of the last day it speaks of; today's may therefore lie some hours ahead.
    Raises WorkspaceError when `target` is a file, is not empty, or cannot be written.
    """
    try:
        atomic.make_folder(target, 0o777)
        if any(target.iterdir()):
            raise WorkspaceError(
                f"{target} is not empty; the sample workspace is only copied into an empty folder.",
                "Name a folder that does not exist yet.",
            )
        for template, text in _templates(files(__name__) / "workspace"):
            _write(target, template, text, today)
    except FileExistsError:
        raise WorkspaceError(
            f"{target} is a file, so the sample workspace cannot be copied into it.",
            "Name a folder that does not exist yet.",
        ) from None
    except OSError as error:
        raise WorkspaceError(
            f"The sample workspace cannot be written to {target}: {error.strerror or error}.",
            "Name a folder you may write to.",
        ) from error
    return target


def labelled_queries(today: dt.date) -> list[LabelledQuery]:
    """The questions that come with the sample as it stands on `today`, each with the lines that answer it."""
    text = _fill((files(__name__) / "queries.jsonl").read_text(encoding="utf-8"), today)
    return [_query(json.loads(line)) for line in text.splitlines()]


def _query(fields: dict[str, Any]) -> LabelledQuery:
    return LabelledQuery(**fields | {"relevant": tuple(Label(**label) for label in fields["relevant"])})


def _templates(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Relative posix path and text of each template below `folder`, in the order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def _write(target: Path, template: str, text: str, today: dt.date) -> None:
    named = _TEMPLATE_DAY.search(template)
    own_day = today - dt.timedelta(days=int(named[1])) if named else today
    edited = own_day if named else today - dt.timedelta(days=_youngest_mention(text))
    note = target / _TEMPLATE_DAY.sub(own_day.isoformat(), template)
    atomic.make_folder(note.parent, 0o777)
    atomic.create_file(note, _fill(text, own_day).encode("utf-8"), None)
    evening = int(dt.datetime.combine(edited, dt.time(18), dt.UTC).timestamp())
    os.utime(note, (evening, evening))


def _fill(text: str, day: dt.date) -> str:
    """`text` with its placeholders counted from `day`; other braces stay."""
    return _PLACEHOLDER.sub(lambda hole: _FORMS[hole[1]](day + dt.timedelta(days=int(hole[2] or 0))), text)


def _youngest_mention(text: str) -> int:
    """Age in days of the latest past day that an undated template speaks of."""
    offsets = [int(hole[2] or 0) for hole in _PLACEHOLDER.finditer(text)]
    return min(-offset for offset in offsets if offset <= 0)
