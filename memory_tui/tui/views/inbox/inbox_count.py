"""The count of the inbox is made while the app is left alone, so that its tab has a number before anybody opens it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from memory_tui.core.errors import MemoryTuiError
from memory_tui.tui.home import home_of
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.core.cancel import Stop
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
        self._counted: tuple[Engine | None, int] | None = None
        """The engine and the state of its index that were looked through."""
        self._seconds = 0.0
        self._waiting = False

    def facts_came(self, facts: Facts) -> None:
        """Look through the notes in a while, if they are few and other ones than were counted."""
        if 0 < facts.status.chunks <= MOST_CHUNKS and self._counted != self._state(facts) and not self._waiting:
            self._wait(max(REST, SHARE * self._seconds))

    def refused(self, error: MemoryTuiError) -> str:
        """Nothing: the inbox says it to those who open it."""
        del error
        return ""

    def _state(self, facts: Facts) -> tuple[Engine | None, int]:
        return home_of(self.view).engine, facts.status.generation

    def _wait(self, seconds: float) -> None:
        self._waiting = True
        self.view.set_timer(seconds, self._rested)

    def _rested(self) -> None:
        self._waiting = False
        home, left = home_of(self.view), REST - self._untouched()
        if left > 0 or home.jobs.busy:
            self._wait(max(left, 1.0))
        elif home.current_mode != "inbox" and home.facts is not None:
            self._count(self._state(home.facts))

    @task("inbox count")
    async def _count(self, state: tuple[Engine | None, int]) -> None:
        home, begun = home_of(self.view), time.monotonic()
        found = await home.jobs.stoppable(_open)
        self._seconds = time.monotonic() - begun
        if not isinstance(found, MemoryTuiError) and home.facts is not None:
            self._counted, home.findings = state, found
            home.facts_signal.publish(home.facts)


def _open(engine: Engine, stop: Stop) -> int:
    """How many suggestions are neither kept nor put off. Raises Cancelled, EditRefused."""
    return len(engine.inbox.examine(stopped=stop.is_set))
