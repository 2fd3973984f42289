"""The scanner decides when the notes are scanned: in full, or only what the watcher named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from memory_tui.workspace.incremental import Picture

if TYPE_CHECKING:
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.workspace.roots import Roots
    from memory_tui.workspace.scan import Scan

_MOST = 200
"""More paths than this are not looked at one by one."""


class Scanner:
    """The looks of the syncs of one engine; any thread may `name` what changed, the writer looks.

    Only a picture that was kept lets the next look be a small one: of a sync that failed, was stopped or left anything
    undone there is none, and everything is looked at again.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._everything = True
        self._picture: Picture | None = None
        self._kept: Picture | None = None
        self._near = False
        self._paths: set[str] = set()

    def name(self, paths: Collection[str] | None) -> None:
        """Have the next look go to these absolute paths; to everything for None."""
        with self._lock:
            if paths is None or len(self._named) + len(paths) > _MOST:
                self._everything = True
                self._named.clear()
            elif not self._everything:
                self._named.update(paths)

    def first(self, store: Store) -> Scan:
        """The look of a sync that begins. Raises WorkspaceError."""
        with self._lock:
            everything, self._everything = self._everything, False
            self._paths, self._named = self._named, set()
        before, self._kept = self._kept, None
        return self._look(store, None if everything else before)

    def again(self, store: Store) -> Scan:
        """The same look after what it found was indexed. Raises WorkspaceError.

        A look at everything is one again: what it found, and what was not indexed of that, is nowhere written down.
        """
        return self._look(store, self._picture if self._near else None)

    def keep(self, store: Store, freshness: Freshness) -> None:
        """Rely on the last look, if by `freshness` every note of it is indexed, and nothing else is."""
        picture, self._picture = self._picture, None
        whole = not (freshness.pending or freshness.of("missing root") or freshness.rebuild or freshness.shrink)
        if picture is not None and whole and picture.scan.total == len(store.known()):
            self._kept = picture

    def _look(self, store: Store, before: Picture | None) -> Scan:
        known, self._picture = store.known(), None
        near = before and before.again(self._roots, self._paths, known.unsettled, known.settled)
        self._near = near is not None
        self._picture = near or Picture.taken(self._roots, known.settled)
        return self._picture.scan


_TICK_SECONDS = 0.5
SWEEP_SECONDS = 60.0
"""How often a watcher is backed up by a look at every file: events get lost, and mounts come and go."""


class EngineClock:
    """Calls `tick` twice a second on a thread of its own, until `stop` is set."""

    def __init__(self, tick: Callable[[], None], stop: threading.Event) -> None:
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
        """Whether it is time to look whether the watcher has missed anything; True once each time."""
        now = time.monotonic()
        if not watching or now - self._swept < SWEEP_SECONDS:
            return False
        self._swept = now
        return True

    def _run(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            self._tick()


class Stops:
    """Set while any of several events is."""

    def __init__(self, *events: threading.Event) -> None:
        self._events = events

    def is_set(self) -> bool:
        """Whether any of them is."""
        return any(event.is_set() for event in self._events)

    def wait(self, timeout: float) -> bool:
        """Wait for the first of them for `timeout` seconds; the others are looked at before and after."""
        return self.is_set() or self._events[0].wait(timeout) or self.is_set()
