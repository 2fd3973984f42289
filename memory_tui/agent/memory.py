"""What the tools need of an open memory; the engine has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memory_tui.events import Listener
    from memory_tui.index.readers import Cancel
    from memory_tui.launch import Plan
    from memory_tui.overview import Note
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Trace
    from memory_tui.settings import Settings
    from memory_tui.workspace.presence import RootState
    from memory_tui.workspace.sources import Document


class Memory(Protocol):
    """A workspace with its index. Any thread may call; what reads disk or index belongs on a worker thread."""

    @property
    def plan(self) -> Plan:
        """What was decided when it was opened."""

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""

    def now(self) -> float:
        """The time that ages are counted from, in epoch seconds."""

    def start(self) -> None:
        """Begin to work in the background: index what changed, then watch."""

    def close(self) -> None:
        """Stop everything within half a second."""

    def listen(self, listener: Listener) -> None:
        """Send events to `listener` from now on; it is called on the thread that made the news."""

    def roots(self) -> tuple[RootState, ...]:
        """The state of every root, at most a second old."""

    @property
    def written_elsewhere(self) -> bool:
        """Whether another process is writing the index now, or is about to as the one that keeps it."""

    def request_sync(self, reason: str = "manual", force: bool = False) -> None:
        """Bring the index up to date in the background."""

    def wait_idle(self, timeout: float) -> bool:
        """Wait until the index is as up to date as it was asked to be; False when `timeout` seconds were too few."""

    def gather(self, query: str, cancel: Cancel | None = None, source: str = "", *, by_words: bool = False) -> Evidence:
        """What the index knows about `query`; `by_words` without asking the provider.

        Raises QueryError, Cancelled, IndexUnavailable.
        """

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """`evidence` under `settings`: pure and quick."""

    def get(self, path: str, start: int = 1, lines: int | None = None) -> Note:
        """Some lines of a note: at most 120 and 12,000 characters. Raises PathRefused, Unreadable."""

    def read(self, path: str) -> Document:
        """A note as it is on disk. Raises PathRefused, Unreadable."""
