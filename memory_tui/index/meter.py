"""How fast a sync goes and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

_SETTLED_SECONDS = 0.5
"""Before that a rate says nothing."""


class Meter:
    """Counts files and bytes of a sync; `total_bytes` are those that are to be read."""

    def __init__(self, total: int, total_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._started = clock()
        self._total_bytes = total_bytes
        self._bytes = 0

    def add(self, size: int) -> None:
        """One more file of `size` bytes is done."""
        self.done += 1
        self._bytes += size

    @property
    def rate(self) -> float:
        """Files a second so far, 0 before there are any."""
        elapsed = self._clock() - self._started
        return self.done / elapsed if elapsed > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate so far, by bytes; None before that can be told."""
        elapsed = self._clock() - self._started
        if self.done >= self.total:
            return 0.0
        if elapsed < _SETTLED_SECONDS or not self._bytes:
            return None
        return elapsed * max(0, self._total_bytes - self._bytes) / self._bytes
