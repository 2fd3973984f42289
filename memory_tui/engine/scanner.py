"""The scanner decides when the notes are scanned: in full, or only what the watcher named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from memory_tui.core.cancel import Stop
from memory_tui.workspace.incremental import FullScan

if TYPE_CHECKING:
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.workspace.roots import Roots
    from memory_tui.workspace.scan import Scan

_MOST = 200
"""More paths than this are not scanned one by one."""


class Scanner:
    """The scans of the syncs of one engine; any thread may call `mark_changed`, the writer scans.

    A scan is incremental only after one that is reliable: after a sync that failed, was stopped or left anything
    undone, the next scan is full.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._everything = True
        self._last: FullScan | None = None
        self._reliable: FullScan | None = None
        self._incremental = False
        self._paths: set[str] = set()

    def mark_changed(self, paths: Collection[str] | None) -> None:
        """Have the next scan read these absolute paths; everything for None."""
        with self._lock:
            if paths is None or len(self._named) + len(paths) > _MOST:
                self._everything = True
                self._named.clear()
            elif not self._everything:
                self._named.update(paths)

    def scan(self, store: Store) -> Scan:
        """The scan of a sync that begins. Raises WorkspaceError."""
        with self._lock:
            everything, self._everything = self._everything, False
            self._paths, self._named = self._named, set()
        before, self._reliable = self._reliable, None
        return self._scan(store, None if everything else before)

    def rescan(self, store: Store) -> Scan:
        """The same scan after what it found was indexed. Raises WorkspaceError.

        A full scan is full the second time: what it found, and what was not indexed of that, is nowhere written down.
        """
        return self._scan(store, self._last if self._incremental else None)

    def rely_on_last(self, store: Store, freshness: Freshness) -> None:
        """Base the next scan on the last one, if by `freshness` every note of it is indexed, and nothing else is."""
        last, self._last = self._last, None
        whole = not (freshness.pending or freshness.of("missing root") or freshness.rebuild or freshness.shrink)
        if last is not None and whole and last.scan.total == len(store.known()):
            self._reliable = last

    def _scan(self, store: Store, before: FullScan | None) -> Scan:
        known, self._last = store.known(), None
        incremental = before and before.updated(self._roots, self._paths, known.unsettled, known.settled)
        self._incremental = incremental is not None
        self._last = incremental or FullScan.of(self._roots, known.settled)
        return self._last.scan


_TICK_SECONDS = 0.5
SWEEP_SECONDS = 60.0
"""How often a watcher is backed up by a full scan: events get lost, and mounts come and go."""


class EngineClock:
    """Calls `tick` twice a second on a thread of its own, until `stop` is set."""

    def __init__(self, tick: Callable[[], None], stop: Stop) -> None:
        self._tick = tick
        self._stop = stop
        self._swept = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="engine-clock", daemon=True)

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the end, after `stop` was set."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def sweep_due(self, watching: bool) -> bool:
        """Whether it is time to scan for what the watcher missed; True once each time."""
        now = time.monotonic()
        if not watching or now - self._swept < SWEEP_SECONDS:
            return False
        self._swept = now
        return True

    def _run(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            self._tick()
