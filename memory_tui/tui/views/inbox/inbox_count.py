"""The count of the inbox is made while the app is left alone, so that its tab has a number before anybody opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from memory_tui.errors import MemoryTuiError
from memory_tui.tui.home import home_of
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.tui.state import Facts

MOST_CHUNKS = 5_000
"""To look through more takes seconds of CPU, which only somebody who opens the inbox asks for."""
REST = 4.0
"""Seconds without a key after which nobody is disturbed."""
SHARE = 200.0
"""A look's time as often passes until the next one, so that it takes a two-hundredth of a core."""


class InboxCount:
    """Counts the open suggestions of a small memory for its tab; only the app's own thread comes here.

    `view` is the node that waits, and `untouched` tells the seconds since the last key.
    """

    def __init__(self, view: DOMNode, untouched: Callable[[], float]) -> None:
        self.view = view
        self._untouched = untouched
        self._counted: tuple[Engine, int] | None = None
        """The engine and the state of its index that were looked through."""
        self._seconds = 0.0
        self._waiting = False

    def facts_came(self, facts: Facts) -> None:
        """Look through the notes in a while, if they are few and other ones than were counted."""
        state = home_of(self.view).engine, facts.status.generation
        if 0 < facts.status.chunks <= MOST_CHUNKS and self._counted != state and not self._waiting:
            self._wait(max(REST, SHARE * self._seconds))

    def refused(self, error: MemoryTuiError) -> str:
        """Nothing: the inbox says it to those who open it."""
        del error
        return ""

    def _wait(self, seconds: float) -> None:
        self._waiting = True
        self.view.set_timer(seconds, self._rested)

    def _rested(self) -> None:
        self._waiting = False
        home, left = home_of(self.view), REST - self._untouched()
        if left > 0 or home.jobs.busy:
            self._wait(max(left, 1.0))
        elif home.current_mode != "inbox" and home.facts is not None and home.engine is not None:
            self._count((home.engine, home.facts.status.generation))

    @task("inbox count")
    async def _count(self, state: tuple[Engine, int]) -> None:
        from memory_tui.tui.views.inbox.inbox_proposal import Findings, examination

        home = home_of(self.view)
        async for part in home.jobs.parts(examination(state[0])):
            # Meanwhile another agent's memory may have been opened.
            if isinstance(part, Findings) and home.engine is state[0] and home.facts is not None:
                self._counted, self._seconds = state, part.seconds
                home.findings = len(part.open)
                home.facts_signal.publish(home.facts)
