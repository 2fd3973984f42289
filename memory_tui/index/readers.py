"""Read-only connections for searches: one for each search that runs, kept for the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.errors import Cancelled, IndexBusy, IndexEmpty

if TYPE_CHECKING:
    from memory_tui.index.store import Store


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


class Readers:
    """Borrowed connections to an index; `expected` tells whether what lies in its place unreadable is, or was, ours."""

    def __init__(self, use_vec0: bool = False, expected: Callable[[], bool] = lambda: False) -> None:
        self._use_vec0 = use_vec0
        self._expected = expected
        self._lock = threading.Lock()
        self._idle: list[Store] = []
        self._busy: list[Store] = []
        self._closed = threading.Event()

    @contextmanager
    def borrow(self, path: Path) -> Iterator[Store | None]:
        """A connection of one's own; None while there is no index. Raises Cancelled after `close`."""
        store = self._kept(path) or self._opened(path)
        if store is None:
            yield None
            return
        with self._lock:
            self._busy.append(store)
        try:
            yield store
        finally:
            with self._lock:
                self._busy.remove(store)
                changed = store.changed
                if self._closed.is_set() or store.moved or store.frozen:
                    store.close()
                else:
                    self._idle.append(store)
        if changed:
            raise IndexBusy("The index was written while it was read without locks.", "Ask again in a moment.")

    def _opened(self, path: Path) -> Store | None:
        if not path.exists() or not path.stat().st_size:
            return None
        from memory_tui.index.store import Store

        try:
            return Store.open(path, read_only=True, use_vec0=self._use_vec0, expected=self._expected)
        except IndexEmpty:
            return None

    def _kept(self, path: Path) -> Store | None:
        """A connection that nobody uses, to the file that is at `path` now."""
        with self._lock:
            if self._closed.is_set():
                raise Cancelled
            while self._idle:
                store = self._idle.pop()
                if store.path == path and not store.moved:
                    return store
                store.close()
        return None

    def close(self) -> None:
        """Stop the searches that run, and close what nobody uses."""
        with self._lock:
            self._closed.set()
            for store in self._idle:
                store.close()
            self._idle.clear()
            for store in self._busy:
                store.interrupt()
