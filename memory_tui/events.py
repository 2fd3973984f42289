"""Events tell a listener what the engine does; a listener runs on the engine's thread, so it returns at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from msgspec import Struct


class Event(Struct, frozen=True):
    """Something happened; `at` is in seconds since the epoch."""

    at: float


class SyncStarted(Event, frozen=True):
    """A sync found `total` files to read; `reason` is start, watch, search, edit, interval, sweep, manual or cli."""

    reason: str
    total: int


class SyncProgress(Event, frozen=True):
    """`done` of `total` changed files are indexed; sent at most about ten times a second.

    `rebuilding` tells that the whole index is made anew beside the old one.
    """

    done: int
    total: int
    path: str
    rebuilding: bool = False


class VectorsMade(Event, frozen=True):
    """Of `total` chunks that were findable by their words alone, the provider was asked for `done`.

    `rate` is in chunks a second, 0 before it says anything; `seconds_left` is None then.
    """

    done: int
    total: int
    rate: float = 0.0
    seconds_left: float | None = None

    @property
    def pace(self) -> str:
        """Return `7.0 a second, 59 s left`; empty for work that takes no while."""
        if self.seconds_left is None or self.seconds_left < 2:
            return ""
        rate = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.1f}"
        far = self.seconds_left >= 120
        return f"{rate} a second, {self.seconds_left / (60 if far else 1):,.0f} {'min' if far else 's'} left"


class FileIndexed(Event, frozen=True):
    """One file is searchable as it is on disk; `embedded` of its `chunks` needed the provider."""

    path: str
    chunks: int
    embedded: int


class FileRemoved(Event, frozen=True):
    """A file that is gone from disk is gone from the index."""

    path: str


class FileFailed(Event, frozen=True):
    """A file could not be indexed; what was indexed of it before stays searchable."""

    path: str
    reason: str


class SyncFinished(Event, frozen=True):
    """A sync ended; `error` is empty when it went through. `seconds` is wall time."""

    reason: str
    indexed: int
    removed: int
    failed: int
    embedded: int
    seconds: float
    error: str


class ShrinkHeld(Event, frozen=True):
    """So many notes vanished at once (`missing` of `total`) that they stay in the index until a person agrees."""

    missing: int
    total: int
    reason: str


class IndexingPaused(Event, frozen=True):
    """A person paused indexing (`on`), or let it go on."""

    on: bool


class RootsChanged(Event, frozen=True):
    """The folder of the notes, or another root, went away or came back: `text` says which, in a sentence."""

    text: str
    lost: bool


class IndexChanged(Event, frozen=True):
    """Another process wrote the index, or put another one in its place: what was read of it is old."""


class NotesChanged(Event, frozen=True):
    """Notes differ from the index otherwise than before, and nothing was written."""


class KeeperChanged(Event, frozen=True):
    """Who keeps the index up to date: process `pid`, which is this one where `here`."""

    pid: int
    here: bool


class WatchChanged(Event, frozen=True):
    """The watcher was switched on or off, or ended; `detail` says why."""

    on: bool
    detail: str


class ProviderChanged(Event, frozen=True):
    """The embedding provider's health changed."""

    name: str
    ok: bool
    detail: str


class BatchNews(Event, frozen=True):
    """A batch job of a provider: `done` of `total` texts have a vector; `detail` is a sentence about the rest."""

    job: str
    stage: Literal["submitted", "done", "failed"]
    done: int
    total: int
    detail: str = ""


class Noticed(Event, frozen=True):
    """A sentence for the event log that fits nothing above, for instance an index moved aside."""

    text: str


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Drop the event: for callers that need no listener."""
    del event


class Channel:
    """Carries the events of one engine to its `listener`, on the thread that made the news, until it is closed."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self._closed = False

    def emit(self, event: Event) -> None:
        """Tell of `event`."""
        if self.listener is not None and not self._closed:
            self.listener(event)

    def notice(self, text: str) -> None:
        """Tell a sentence."""
        self.emit(Noticed(time.time(), text))

    def close(self) -> None:
        """Tell nothing any more."""
        self._closed = True
