"""What every view shows parts of: the engine, its last known state, the ranking that is tried."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from textual.message import Message

from memory_tui.events import Event, Listener

if TYPE_CHECKING:
    from memory_tui.config.config_patch import ConfigWrite
    from memory_tui.config.settings import Settings
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.notes import FileRow
    from memory_tui.engine.status import Status
    from memory_tui.notes.journal import JournalEntry
    from memory_tui.plan import Options

OpenEngine: TypeAlias = "Callable[[Listener], Engine]"
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

    made: list[JournalEntry] = field(default_factory=list)
    """The changes of notes that were made on this screen, and what took them back, the last one last."""
    typed: dict[tuple[str, str], str] = field(default_factory=dict)
    """What was typed to set up a provider, by its kind and the line of the form."""
    history_of: str = ""
    """The note whose changes the history lists; empty for all."""
    decisions: int | None = None
    """How many wait in the inbox; None before it was looked at."""
    to_asked: bool = False
    """Whether the agents' view goes to what was asked when it is opened."""

    @property
    def last_change(self) -> int:
        """Return the journal's number of the last change on this screen; 0 for none, or where it was taken back."""
        last = self.made[-1] if self.made else None
        # A redo has a number of its own; what is taken back after it is the change that it made again.
        return 0 if last is None or last.undoes else last.redoes or last.id

    @property
    def settings(self) -> Settings | None:
        """Return the knobs in force on the screen; None before the engine is open."""
        configured = self.engine.plan.settings if self.engine is not None else None
        return self.tried[-1] if self.tried else configured

    @property
    def read_only(self) -> bool:
        """Return whether nothing may be changed."""
        return self.engine is None or self.engine.plan.options.read_only


# --- what a view asks of the app ----------------------------------------------------------------------------------


@dataclass
class ReadNote(Message):
    """Show the note `path`, empty for the one that is shown, with the cursor on `line` (1-based)."""

    path: str
    line: int = 1
    origin: str = ""
    """The view that asks for it, which escape goes back to; the app fills it in."""


@dataclass
class AskNotes(Message):
    """Ask `query` in the search view; an empty one only goes there.

    `settings` are the knobs that held when a logged question was asked; None is for those in force. With a `path` the
    view explains why `line` of that note comes, or does not, for this question, or the last one where it is empty.
    """

    query: str = ""
    settings: Settings | None = None
    path: str = ""
    line: int = 0


@dataclass
class OpenView(Message):
    """Go to the view `name`."""

    name: str


def opener_of(options: Callable[[], Options]) -> OpenEngine:
    """Return what opens the engine of `options`."""

    def opener(listener: Listener) -> Engine:
        """Open the engine with the options as they are now."""
        # The first frame waits for no engine, which brings numpy.
        from memory_tui.engine.engine import Engine

        return Engine.open(options(), listener)

    return opener


@dataclass
class Reopen(Message):
    """Open the workspace anew, because the configuration changed, or another one by `opener`."""

    opener: OpenEngine | None = None
