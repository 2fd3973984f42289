"""What every view shows parts of: the engine, its last known state, and the ranking that is being tried."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from textual.message import Message

from memory_tui.config.config_patch import ConfigWrite
from memory_tui.engine.engine import Engine
from memory_tui.engine.status import FileRow, Status
from memory_tui.events import Event, Listener
from memory_tui.plan import Options
from memory_tui.settings import Settings

OpenEngine = Callable[[Listener], Engine]
"""Opens the engine on a worker thread. Raises MemoryTuiError."""


@dataclass
class Session:
    """The state of the app, in one place; only the screen's thread changes it."""

    opener: OpenEngine
    suggestions: tuple[str, ...] = ()
    """Questions for an empty query box."""
    engine: Engine | None = None
    status: Status | None = None
    """As it was last read; None before the first time."""
    files: tuple[FileRow, ...] = ()
    progress: str = ""
    """How far a sync is; empty while none runs."""
    news: deque[Event] = field(default_factory=lambda: deque(maxlen=500))
    """What happened, oldest first."""
    tried: list[Settings] = field(default_factory=list)
    """Rankings that were tried on the screen, the one in force last; none where it is that of the plan."""
    config_writes: list[tuple[Sequence[ConfigWrite], OpenEngine]] = field(default_factory=list)
    """What this app wrote into configurations and may take back, the newest last, and what opened the engine before."""

    last_change: int = 0
    """The journal's number of the last change that was made on this screen; 0 for none, or where it was taken back."""
    history_of: str = ""
    """The note whose changes the history lists; empty for all."""

    @property
    def settings(self) -> Settings | None:
        """Return the knobs in force on the screen; None before the engine is open."""
        if self.tried:
            return self.tried[-1]
        return self.engine.plan.settings if self.engine is not None else None

    @property
    def read_only(self) -> bool:
        """Return whether nothing may be changed."""
        return self.engine is None or self.engine.plan.read_only

    @property
    def workspace(self) -> Path | None:
        """Return the folder of the notes; None before the engine is open."""
        return self.engine.plan.workspace if self.engine is not None else None


# --- what a view asks of the app ----------------------------------------------------------------------------------


@dataclass
class ReadNote(Message):
    """Show the note `path`, empty for the one that is shown, with the cursor on `line` (1-based)."""

    path: str
    line: int = 1


@dataclass
class AskNotes(Message):
    """Ask `query` in the search view; an empty one only goes there."""

    query: str = ""


@dataclass
class OpenView(Message):
    """Go to the view `name`."""

    name: str


@dataclass
class Badge(Message):
    """Write `count` beside the name of the view `name`; 0 writes nothing."""

    name: str
    count: int


def opener_of(options: Options) -> OpenEngine:
    """Return what opens the engine of `options`."""
    return lambda listener: Engine.open(options, listener)


@dataclass
class Reopen(Message):
    """Open the workspace anew, because the configuration changed, or another one by `opener`."""

    opener: OpenEngine | None = None
