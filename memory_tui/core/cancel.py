"""A cancel stops a search from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memory_tui.core.errors import Cancelled


class Cancel:
    """Lets whoever waits for a search give it up from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._asked = False

    def cancel(self) -> None:
        """Stop the search; it raises Cancelled."""
        with self._lock:
            self._asked = True
            if self._stop is not None:
                self._stop()

    @contextmanager
    def around(self, stop: Callable[[], None]) -> Iterator[None]:
        """While inside, `cancel` calls `stop`. Raises Cancelled when it was called before."""
        with self._lock:
            if self._asked:
                raise Cancelled
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None
