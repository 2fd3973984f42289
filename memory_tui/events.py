"""What the engine tells a listener; listeners are called on the thread that made the news, so they must be quick."""

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
    """A sync found `total` files to read; `reason` is start, watch, search, edit, manual or force."""

    reason: str
    total: int


@dataclass(frozen=True, slots=True)
class SyncProgress(Event):
    """`done` of `total` changed files are indexed; sent at most about ten times a second."""

    done: int
    total: int
    path: str


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


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The listener of those who do not listen."""
    del event
