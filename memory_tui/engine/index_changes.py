"""Index changes by another process are noticed within half a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.core import locks
from memory_tui.index.connections import Readers

if TYPE_CHECKING:
    from memory_tui.index.store import Store

Mark = tuple[str, int]
"""Which index it is (its uuid), and its generation; of no index ("", 0)."""

_SHARE = 4
"""While another process writes, what follows from a change may take this part of the time."""


class IndexChanges:
    """What is known of the index at `path`, and whether that is still so."""

    def __init__(self, path: Callable[[], Path]) -> None:
        self._path = path
        self._readers = Readers()
        self._lock = threading.Lock()
        self._known: Mark | None = None
        self.cost = 0.0
        """How many seconds it last took to find out everything about it."""
        self._due = 0.0

    def begin(self, store: Store | None) -> None:
        """Before the first read: whatever becomes of `store` (None: there is no index) from now on is a change.

        Later reads are no reason to count it as known: what an earlier one read would stay as it was.
        """
        with self._lock:
            if self._known is None:
                self._known = _mark(store)

    def mark_known(self, store: Store) -> None:
        """This process wrote what `store` holds, and told so itself: that is no change by another one."""
        self._known = _mark(store)

    def differs(self, store: Store) -> bool:
        """Whether another process wrote `store` since anything was known of it."""
        return self._known is not None and self._known != _mark(store)

    def changed(self) -> bool:
        """Whether the index is not what it was known to be; True once for each change. One query.

        Raises IndexUnavailable.
        """
        now = time.monotonic()
        if now < self._due and locks.living(self._path()) is not None:
            return False
        with self._readers.borrow(self._path()) as store:
            mark = _mark(store)
        if mark == self._known:
            return False
        self._known, self._due = mark, now + _SHARE * self.cost
        return True

    def begun(self) -> bool:
        """Whether anybody has begun to index. Raises IndexUnavailable."""
        with self._readers.borrow(self._path()) as store:
            return store is not None and store.recipe() is not None

    def close(self) -> None:
        """Let the index go."""
        self._readers.close()


def _mark(store: Store | None) -> Mark:
    if store is None or store.identified is None:
        return "", 0
    return str(store.meta("uuid") or ""), store.generation()
