"""What happens by the clock: a thread that ticks twice a second, and a stop that has several reasons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_TICK_SECONDS = 0.5
SWEEP_SECONDS = 60.0
"""How often a watcher is backed up by a look at every file: events get lost, and mounts come and go."""


class Clock:
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
