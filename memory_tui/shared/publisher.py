"""Publishes an index in the background: after each sync, and once a minute, by which others know that it lives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled, IndexEmpty, MemoryTuiError
from memory_tui.index.store import Store
from memory_tui.plan import Plan
from memory_tui.shared.connection import access
from memory_tui.shared.publish import consent, publish

BEAT_SECONDS, RETRY_SECONDS = 60.0, 5.0
GOODBYE_SECONDS = 1.0
_BETWEEN_SECONDS = 1.0
"""The least time between two runs: each tells everybody who listens to look."""


class Publisher:
    """Publishes what `reader` opens while `leads` says that this process keeps the index; `tell` hears each failure."""

    def __init__(
        self,
        plan: Plan,
        reader: Callable[[], AbstractContextManager[Store]],
        leads: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self._plan, self._reader, self._leads, self._tell = plan, reader, leads, tell
        self._stop, self._due, self._failure = Stop(), threading.Event(), ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._due.set()
        self._thread.start()

    def wake(self) -> None:
        """Publish soon."""
        self._due.set()

    def close(self) -> None:
        """End after the note that is under way, or leave it: a database that does not answer is not waited for."""
        self._stop.set()
        self._ended.set()
        self._due.set()
        self._thread.join(GOODBYE_SECONDS)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._due.wait(RETRY_SECONDS if self._failure else BEAT_SECONDS)
            self._due.clear()
            if not self._ended.is_set() and self._leads():
                self._publish()
            self._ended.wait(_BETWEEN_SECONDS)

    def _publish(self) -> None:
        try:
            there = access(self._plan)
            with self._reader() as store:
                publish(store, there, consent(self._plan, there), self._stop)
            failure = ""
        except (Cancelled, IndexEmpty):
            return
        except MemoryTuiError as error:
            failure = f"{error.message} {error.next_step}"
        if failure and failure != self._failure:
            self._tell(failure)
        self._failure = failure
