"""Which process keeps an index up to date by itself: one does, the others read, and one goes on when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from memory_tui.events import Event, KeeperChanged
from memory_tui.index import lock


class Keeping:
    """The part of one engine in that; `path` is where the index is, `tell` hears who keeps it when that changes."""

    def __init__(self, path: Callable[[], Path], tell: Callable[[Event], None]) -> None:
        self._path = path
        self._tell = tell
        self._guard = threading.Lock()
        self._held: lock.WriterLock | None = None
        self._closed = False
        self.refused = False
        """Whether another process keeps the index, as last seen."""

    def ours(self) -> bool:
        """Whether this engine keeps the index; it begins to when nobody else does. Raises IndexUnavailable."""
        with self._guard:
            if self._held is not None and self._held.lost:
                # Its file was deleted, so another process may have made one and keep the index, too.
                self._held.release()
                self._held = None
            if self._held is None and not self._closed:
                self._held = lock.WriterLock.acquire(self._path(), "keeper")
                self._note(self._held is not None)
            return self._held is not None

    def close(self) -> None:
        """Leave it to others."""
        with self._guard:
            held, self._held, self._closed = self._held, None, True
        if held is not None:
            held.release()

    def _note(self, ours: bool) -> None:
        """Tell of a change; that nobody else was there from the beginning is no news."""
        if self.refused != (not ours):
            self.refused = not ours
            who = lock.holder(self._path(), "keeper")
            self._tell(KeeperChanged(time.time(), who.pid if who else 0, ours))
