"""What the bridge tells the app; each is posted once, from a worker or from an engine thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from memory_tui.errors import MemoryTuiError

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.search.evidence import Evidence
    from memory_tui.tui.facts import Facts
    from memory_tui.tui.page import Page


@dataclass
class EngineOpened(Message):
    """The index is open; the first sync has been started."""

    engine: Engine


@dataclass
class EngineRefused(Message):
    """The index could not be opened."""

    error: MemoryTuiError


@dataclass
class FactsArrived(Message):
    """What the truth bar, the file tree and the index view show."""

    number: int
    facts: Facts | None
    error: MemoryTuiError | None = None


@dataclass
class EventsArrived(Message):
    """Engine events wait in the bridge."""


@dataclass
class Gathered(Message):
    """What request `number` found out, or why it could not."""

    number: int
    evidence: Evidence | None
    error: MemoryTuiError | None


@dataclass
class PageRead(Message):
    """The note of request `number`, ready to show, or why it cannot be."""

    number: int
    page: Page | None
    error: MemoryTuiError | None


@dataclass
class Done(Message):
    """What work of `kind` under `number` returned, or why it could not be done."""

    kind: str
    number: int
    value: object
    error: MemoryTuiError | None = None


@dataclass
class Worked(Message):
    """News of request `number` of some `kind`: `value` on the way, its result when `done`, or why there is none."""

    kind: str
    number: int
    value: object
    done: bool
    error: MemoryTuiError | None = None


@dataclass
class Told(Message):
    """A sentence for the message line."""

    text: str
