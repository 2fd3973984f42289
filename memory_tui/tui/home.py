"""Home is the protocol by which views know the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections import deque

    from textual.message_pump import MessagePump
    from textual.signal import Signal

    from memory_tui.engine.engine import Engine
    from memory_tui.events import Event
    from memory_tui.search.trace import Trace
    from memory_tui.tui.key_queue import KeyQueue
    from memory_tui.tui.note_info import Marking
    from memory_tui.tui.state import Facts, Pace
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tui.widgets.first_steps import FirstSteps
    from memory_tui.tui.widgets.status_bars import IndexingProgress
    from memory_tui.tui.workers import WorkerJobs


class Home(Protocol):
    """The state that every view shows, and what a view may ask of the app; nothing of it is a view."""

    jobs: WorkerJobs
    """Starts work on worker threads."""
    engine: Engine | None
    """None until the index is open."""
    tuning: Tuning | None
    """Where the knobs are; known when the engine is open."""
    facts: Facts | None
    progress: IndexingProgress | None
    facts_signal: Signal[Facts]
    events_signal: Signal[Sequence[Event]]
    news: deque[Event]
    """The newest events of the engine."""
    recalled: Marking
    """The lines that questions of this session recalled."""
    key_queue: KeyQueue
    workspace_name: str
    suggestions: tuple[str, ...]
    first_steps: FirstSteps | None
    """Where somebody new stands; None where nobody is led."""
    findings: int
    """Open suggestions of the inbox."""
    failing_agents: int
    """Connected agents whose server did not answer, or whose files lost the connection, when they were last asked."""
    pace: Pace
    """How fast files are indexed and questions are answered."""
    shares: dict[str, float]
    """The part of the width that panes were given, by the view's place for the first pane of a view."""
    typed: dict[tuple[str, str], str]
    """What was typed into a dialog of one line and not handed over, by its title and what stood there at first."""
    started: float
    """When the app was opened, in epoch seconds."""

    @property
    def current_mode(self) -> str:
        """The numbered view in front, or behind what lies over it."""

    @property
    def badges(self) -> Mapping[str, str]:
        """What stands beside a tab, by the key of its view: findings of the inbox, files behind, agents that fail."""

    @property
    def question(self) -> str:
        """The question that some view shows an answer to, empty without one."""

    @property
    def can_suspend(self) -> bool:
        """Whether the terminal can be handed to another program."""

    def turn(self, tuning: Tuning | None) -> None:
        """Turn the knobs to `tuning`; every view that shows an answer follows."""

    def keep_share(self, place: str) -> None:
        """Write down the part of the width that a pane was given, by the name of its share."""

    def show_message(self, sentence: str) -> None:
        """Show a sentence in the message line of the view in front."""

    def cite_places(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Copy the citations of `places`: path, first and last line."""

    def copy_places(self, places: Sequence[tuple[tuple[str, int, int], str]]) -> None:
        """Ask how to copy `places` with their texts, and do it."""

    def step_done(self, deed: str) -> None:
        """A person did something that one of the first steps may wait for."""

    def ask_for(self, question: str, sentence: str = "") -> None:
        """Ask `question` in the search view, and say `sentence` there."""

    def do_edit_here(self) -> None:
        """Edit the note under the cursor of the view in front."""

    def edited(self, path: str, line: int, sentence: str) -> None:
        """Show the note `path` as it is now in the view in front, and say `sentence` there."""

    def was_recalled(self, trace: Trace | None) -> None:
        """Remember which lines an answer gave, for the reader to mark."""


def home_of(node: MessagePump) -> Home:
    """The app of a view or widget, as far as it may know it."""
    return cast("Home", node.app)
