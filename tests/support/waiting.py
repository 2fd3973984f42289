"""How long a test waits for a fact: far more than a busy machine needs, far less than a hang takes."""

import threading
import time
from collections.abc import Callable
from typing import Any

LONG = 60.0
"""Seconds. The speed itself is measured by the scripts in `tests/bench`."""


def until(fact: Callable[[], Any], what: str = "it did not come to pass") -> Any:
    """Wait for a fact that nothing announces; returns it."""
    end = time.monotonic() + LONG
    while not (value := fact()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return value


class Heard:
    """The events that an engine tells; a test waits for one of them."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._news = threading.Condition()

    def __call__(self, event: Any) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def wait_for(self, wanted: Callable[[Any], object]) -> Any:
        """The first event that is `wanted`, now or soon."""
        with self._news:
            assert self._news.wait_for(lambda: any(map(wanted, self.events)), LONG), self.events
            return next(filter(wanted, self.events))
