"""What is known of one note besides its text, gathered on a worker thread: recalls, budget, links to and from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.errors import MemoryTuiError
from memory_tui.text.display import one_line
from memory_tui.tui.aging import Aging
from memory_tui.tui.paint import plural

if TYPE_CHECKING:
    from memory_tui.agent.recall_log import Entry
    from memory_tui.engine import Engine
    from memory_tui.overview import FileRow
    from memory_tui.tui.page import Page

Target = tuple[str, int]
"""A note and a line in it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One statement: `label` and `words`; those about a link lead to `target`. `head` rows begin a section."""

    label: str
    words: str
    style: str = ""
    target: Target | None = None
    head: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """What the reader marks and the pane beside it tells; `rules` stand above rows (from 0), `unread` is dimmed."""

    path: str
    rows: tuple[Row, ...] = ()
    recalled: Collection[int] = ()
    unread: range = range(0)
    rules: Mapping[int, str] = field(default_factory=dict)
    links: Mapping[int, tuple[Target, ...]] = field(default_factory=dict)


def of_file(file: FileRow, aging: Aging, lines: int, state: str) -> list[Row]:
    """What the list tells of a note, in words."""
    return [
        Row("state", f"{state}: {file.detail}" if file.detail and file.detail != state else state,
            "good" if state == "fresh" else "bad" if state == "failed" else "warn"),
        Row("size", f"{plural(file.size, 'byte')}, {plural(lines, 'line')}"),
        Row("index", plural(file.chunks, "chunk")),
        Row("age", _age(file, aging)),
        *([Row("day", f"{file.day:%A, %d %B %Y}")] if file.day else []),
        *([Row("from", one_line(file.source))] if file.source != "memory" else []),
    ]


def _age(file: FileRow, aging: Aging) -> str:
    days, factor = aging.days(file), aging.factor(file)
    if days is None:
        return "evergreen, does not fade"
    words = plural(int(days), "day")
    if factor is None:
        return f"{words}; decay is off"
    what = "score" if aging.rule == "multiply" else "bonus for being recent"
    return f"{words}: {what} × {factor:.3f}, half after {aging.half_life:g} d"


def gather(engine: Engine, page: Page) -> About:
    """What is known of the note on `page`; reads the disk, so for worker threads only."""
    rows, recalled = _recalls(engine, page)
    return About(page.path, tuple(rows), recalled)


def _recalls(engine: Engine, page: Page) -> tuple[list[Row], frozenset[int]]:
    """How often agents were given lines of the note, and which; as the lines were counted then."""
    from memory_tui.agent import recall_log

    place = recall_log.place(engine.workspace)
    try:
        entries = _logged(str(place), place.stat().st_mtime_ns)
    except MemoryTuiError as error:
        return [Row("recalled", error.message, "bad")], frozenset()
    except OSError:
        words = "nothing yet" if engine.settings.on("recall.log") else "not logged (recall.log is off)"
        return [Row("recalled", words)], frozenset()
    found = [(entry, hit) for entry in entries for hit in entry.hits if hit.path == page.path]
    lines = frozenset(line for _, hit in found for line in range(hit.start_line, hit.end_line + 1))
    if not found:
        return [Row("recalled", "never, as far as the log goes back")], lines
    times = len({entry.id for entry, _ in found})
    last = max(entry.at for entry, _ in found)
    by = ", ".join(sorted({one_line(entry.client, 20) or "an agent" for entry, _ in found}))
    return [Row("recalled", f"{plural(times, 'time')}, last {datetime.fromtimestamp(last):%Y-%m-%d %H:%M}, by {by}")], \
        lines


@lru_cache(maxsize=2)
def _logged(place: str, _changed_ns: int) -> tuple[Entry, ...]:
    """The recall log, read again only when it has changed."""
    from memory_tui.agent import recall_log

    return recall_log.read(Path(place)).entries
