"""How long a test waits for a fact: far more than a busy machine needs, far less than a hang takes."""

import time
from collections.abc import Callable

LONG = 60.0
"""Seconds. The speed itself is measured by the scripts in `tests/bench`."""


def until(fact: Callable[[], object], what: str = "it did not come to pass") -> None:
    """Wait for a fact that nothing announces."""
    end = time.monotonic() + LONG
    while not fact():
        assert time.monotonic() < end, what
        time.sleep(0.02)
