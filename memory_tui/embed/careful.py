"""What every provider has that can fail: when not to ask it, its health after the last call, and rows for vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from memory_tui.embed.breaker import Breaker
from memory_tui.embed.failure import OF_THE_TEXT, ProviderFailure
from memory_tui.embed.provider import Health, Vectors


class Careful:
    """A provider that is left alone for a while after a failure. Safe for any thread."""

    def __init__(self, now: Callable[[], float], detail: str) -> None:
        self._breaker = Breaker(now)
        self._health = Health(True, detail)

    @property
    def next_try(self) -> float | None:
        """Epoch second before which it is not asked, None when it may be asked."""
        return self._breaker.next_try

    def health(self) -> Health:
        """The state after the last call."""
        return self._health

    def reset(self) -> None:
        """Ask again although the time of the next try has not come."""
        self._breaker.worked()

    def check(self) -> None:
        """Raises ProviderFailure while it is not to be asked."""
        self._breaker.check()

    def worked(self, detail: str, started: float) -> None:
        """A call that began at `started` (`time.perf_counter`) was answered."""
        self._breaker.worked()
        self._health = Health(True, detail, (time.perf_counter() - started) * 1000)

    def failed(self, failure: ProviderFailure, started: float | None = None) -> None:
        """A call failed; one that failed for its text says nothing about the provider."""
        self._breaker.failed(failure)
        if failure.state not in OF_THE_TEXT:
            took = 0.0 if started is None else (time.perf_counter() - started) * 1000
            self._health = Health(False, failure.message, took)


def in_rows(done: Mapping[int, Vectors], count: int, dims: int) -> Vectors:
    """The vectors of `done` by position, float32 (count, dims); zeros where there is none."""
    vectors = np.zeros((count, dims), np.float32)
    for at, row in done.items():
        vectors[at] = row
    return vectors
