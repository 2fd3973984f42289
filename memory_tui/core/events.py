"""Events tell a listener what the engine does; a listener runs on the engine's thread, so it returns at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened; `at` is in seconds since the epoch."""

    at: float


@dataclass(frozen=True, slots=True)
class SyncStarted(Event):
    """A sync found `total` files to read; `reason` is start, watch, search, edit, interval, sweep, manual or cli."""

    reason: str
    total: int


@dataclass(frozen=True, slots=True)
class SyncProgress(Event):
    """`done` of `total` changed files are indexed; sent at most about ten times a second.

    `chunks` are those written so far, `rate` is in files a second, `seconds_left` is an estimate by the bytes that are
    still to be read, None before there is one. `rebuilding` tells that the whole index is made anew beside the old one.
    """

    done: int
    total: int
    path: str
    chunks: int = 0
    rate: float = 0.0
    seconds_left: float | None = None
    rebuilding: bool = False


@dataclass(frozen=True, slots=True)
class VectorsMade(Event):
    """Of `total` chunks that were findable by their words alone, the provider was asked for `done`.

    `rate` is in chunks a second, 0 before it says anything; `seconds_left` is None then.
    """

    done: int
    total: int
    rate: float = 0.0
    seconds_left: float | None = None

    @property
    def pace(self) -> str:
        """`7.0 a second, 59 s left`; empty for work that takes no while."""
        if self.seconds_left is None or self.seconds_left < 2:
            return ""
        rate = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.1f}"
        far = self.seconds_left >= 120
        return f"{rate} a second, {self.seconds_left / (60 if far else 1):,.0f} {'min' if far else 's'} left"


@dataclass(frozen=True, slots=True)
class ModelFetching(Event):
    """A local model is downloaded: `done` of `total` bytes are there (0 when unknown)."""

    name: str
    done: int
    total: int

    @property
    def progress(self) -> str:
        """`12 of 330 MB`, or `12 MB` where nobody knows how many there will be."""
        return f"{self.done / 1e6:,.0f}{f' of {self.total / 1e6:,.0f}' if self.total else ''} MB"


@dataclass(frozen=True, slots=True)
class FileIndexed(Event):
    """One file is searchable as it is on disk; `embedded` of its `chunks` needed the provider."""

    path: str
    chunks: int
    embedded: int


@dataclass(frozen=True, slots=True)
class FileRemoved(Event):
    """A file that is gone from disk is gone from the index."""

    path: str


@dataclass(frozen=True, slots=True)
class FileFailed(Event):
    """A file could not be indexed; what was indexed of it before stays searchable."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SyncFinished(Event):
    """A sync ended; `error` is empty when it went through. `seconds` is wall time."""

    reason: str
    indexed: int
    removed: int
    failed: int
    embedded: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class ShrinkHeld(Event):
    """So many notes vanished at once (`missing` of `known`) that they stay in the index until a person agrees."""

    missing: int
    known: int
    reason: str


@dataclass(frozen=True, slots=True)
class IndexingPaused(Event):
    """A person paused indexing (`on`), or let it go on."""

    on: bool


@dataclass(frozen=True, slots=True)
class RootsChanged(Event):
    """The folder of the notes, or another root, went away or came back: `text` says which, in a sentence."""

    text: str
    lost: bool


@dataclass(frozen=True, slots=True)
class IndexChanged(Event):
    """Another process wrote the index, or put another one in its place: what was read of it is old."""


@dataclass(frozen=True, slots=True)
class NotesChanged(Event):
    """Notes differ from the index otherwise than before, and nothing was written."""


@dataclass(frozen=True, slots=True)
class LeaderChanged(Event):
    """Who keeps the index up to date: process `pid`, which is this one where `ours`."""

    pid: int
    ours: bool


@dataclass(frozen=True, slots=True)
class WatchChanged(Event):
    """The watcher was switched on or off, or ended; `detail` says why."""

    on: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ProviderChanged(Event):
    """The embedding provider's health changed."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class BatchNews(Event):
    """A batch job of a provider: `done` of `total` texts have a vector; `detail` is a sentence about the rest."""

    job: str
    stage: Literal["submitted", "running", "done", "failed"]
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Noticed(Event):
    """A sentence for the event log that fits nothing above, for instance an index moved aside."""

    text: str


@dataclass(frozen=True, slots=True)
class BackendChanged(Event):
    """QMD answers again, or from other texts: what was asked before may be answered otherwise; `text` says why."""

    text: str


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Drop the event: for callers that need no listener."""
    del event
