"""What happened, newest last: files indexed and failed, syncs, the watcher, the provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from memory_tui import events
from memory_tui.text.display import one_line
from memory_tui.tui.paint import Piece, fit, plural, wrapped
from memory_tui.tui.widgets.rowlist import RowList

MARGIN = 19
"""Cells of time and kind before the words of an event."""

QUIET = frozenset({"sweep", "interval", "search"})
"""Syncs that come by themselves again and again; those that change nothing are not worth a line."""

KEPT = 2000
"""Events that are remembered."""

_BATCH = {"submitted": "muted", "running": "muted", "done": "good", "failed": "bad"}


def words(event: events.Event) -> tuple[str, str, str] | None:
    """An event as (what, about what, style); None for those the truth bar shows."""
    match event:
        case events.SyncStarted() if event.total:
            return "sync", f"started ({event.reason}): {plural(event.total, 'file')} to read", "muted"
        case events.FileIndexed():
            fresh = f"{event.embedded:,} new" if event.embedded else "none new"
            return "indexed", f"{event.path}  {plural(event.chunks, 'chunk')}, {fresh}", "good"
        case events.FileRemoved():
            return "removed", event.path, "warn"
        case events.FileFailed():
            return "failed", f"{event.path}  {event.reason}", "bad"
        case events.SyncFinished():
            return _finished(event)
        case events.WatchChanged():
            word = "on" if event.on else "off"
            return "watcher", word if event.detail == word else f"{word}: {event.detail}", "" if event.on else "warn"
        case events.ProviderChanged():
            state = "ok" if event.ok else "failed"
            return "provider", f"{event.name} {state}  {event.detail}", "" if event.ok else "bad"
        case events.VectorsMade():
            rest = "" if event.done == event.total else "; the rest is found by its words"
            return "vectors", f"asked for {event.done:,} of {plural(event.total, 'chunk')}{rest}", "muted"
        case events.BatchNews():
            done = f"{event.done:,} of {plural(event.total, 'text')}"
            return "batch", f"{event.stage}: {done}{event.detail and '  '}{event.detail}", _BATCH[event.stage]
        case events.IndexingPaused():
            return "indexing", "paused" if event.on else "goes on", "warn" if event.on else ""
        case events.KeeperChanged():
            return (
                "keeper",
                "this app keeps the index up to date"
                if event.ours
                else f"process {event.pid} keeps the index up to date; this app reads",
                "",
            )
        case events.RootsChanged():
            return "folders", event.text, "bad" if event.lost else ""
        case events.ShrinkHeld():
            held = f"{event.missing:,} of {event.known:,} notes ({event.reason})"
            return "vanished", f"{held}: kept until you agree", "bad"
        case events.Noticed():
            return "notice", event.text, "warn"
        case _:
            return None


def _finished(event: events.SyncFinished) -> tuple[str, str, str] | None:
    if event.error:
        return "sync", f"stopped: {event.error}", "bad"
    counts = [(event.indexed, "indexed"), (event.removed, "removed"), (event.failed, "failed")]
    parts = [f"{n:,} {word}" for n, word in counts if n]
    if event.embedded:
        parts.append(f"{plural(event.embedded, 'text')} embedded")
    if not parts and event.reason in QUIET:
        return None
    said = ", ".join(parts) or "nothing changed"
    return "sync", f"finished ({event.reason}): {said}", "muted"


class EventLog(RowList):
    """The log; it follows the newest event unless it is held still or the cursor is elsewhere."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="events")
        self._lines: list[tuple[str, str, str, str]] = []
        self.paused = False
        self._waiting: list[events.Event] = []
        self._provider: tuple[str, str, str] | None = None
        self._vectors: int | None = None
        self._title()

    def add(self, news: Sequence[events.Event]) -> None:
        """Append `news`; while held still they wait."""
        if self.paused:
            self._waiting.extend(news)
            self._title()
            return
        follows = self.cursor in (-1, len(self._lines) - 1)
        for event in news:
            said = words(event)
            if isinstance(event, events.ProviderChanged):
                # Told after every sync; only news is worth a line.
                said, self._provider = (None if said == self._provider else said), said
            if said is not None:
                at = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
                self._write(event, (at, said[0], one_line(said[1]), said[2]))
        dropped = max(0, len(self._lines) - KEPT)
        del self._lines[:dropped]
        if self._vectors is not None:
            self._vectors = self._vectors - dropped if self._vectors >= dropped else None
        self.rows_changed(len(self._lines) - 1 if follows else max(0, self.cursor - dropped))

    def _write(self, event: events.Event, line: tuple[str, str, str, str]) -> None:
        """A line more; how far the vectors of one sync are is one line, which goes on counting."""
        if isinstance(event, events.VectorsMade) and self._vectors is not None:
            self._lines[self._vectors] = line
        else:
            self._lines.append(line)
        if isinstance(event, events.VectorsMade) and self._vectors is None:
            self._vectors = len(self._lines) - 1
        elif isinstance(event, events.SyncFinished):
            self._vectors = None

    def hold(self) -> str:
        """Hold the log still, or let it run; says which."""
        self.paused = not self.paused
        waiting, self._waiting = self._waiting, []
        if not self.paused:
            self.add(waiting)
        self._title()
        return "The event log is held still; p lets it run." if self.paused else "The event log runs."

    def _title(self) -> None:
        self.border_title = f"Events (held, {len(self._waiting)} waiting)" if self.paused else "Events"

    def count(self) -> int:
        """Lines so far."""
        return len(self._lines)

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        about = self._lines[row][2]
        return 1 if len(about) <= width - MARGIN and about.isascii() else len(wrapped(about, width - MARGIN))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Time, what, about what."""
        at, what, about, style = self._lines[row]
        head: list[Piece] = [(f" {at} ", "muted"), (fit(what, 9), style)]
        return [*(head if line == 0 else [(" " * MARGIN, "")]), (wrapped(about, width - MARGIN)[line], "")]
