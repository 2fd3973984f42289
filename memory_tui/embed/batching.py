"""Which texts go together in a request, how many requests go at once, and where a text is cut when it is too long."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

_FAILURES_TO_SEQUENTIAL = 2
_SUCCESSES_TO_CONCURRENT = 32
_SHORTEST = 32
_SPACE = re.compile(r"\s")


def groups(texts: Sequence[str], at: Sequence[int], most_bytes: int, most_items: int) -> list[list[int]]:
    """The positions `at` in runs of at most `most_bytes` of UTF-8 and `most_items` texts; a longer text goes alone."""
    found: list[list[int]] = []
    size = 0
    for position in at:
        length = len(texts[position].encode("utf-8", "replace"))
        if not found or size + length > most_bytes or len(found[-1]) >= most_items:
            found.append([])
            size = 0
        found[-1].append(position)
        size += length
    return found


def halves(text: str) -> tuple[str, str] | None:
    """`text` in two, at the white space nearest to its middle; None when it is too short to be cut."""
    if len(text) < 2 * _SHORTEST:
        return None
    middle = len(text) // 2
    spaces = [found.start() for found in _SPACE.finditer(text, middle // 2, middle + middle // 2)]
    cut = min(spaces, key=lambda at: abs(at - middle), default=middle)
    return text[:cut], text[cut:]


class Width:
    """How many requests may run at once: `most`, or one after two failures, until things went well for a while."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self._successes = 0
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until one more request may run, whichever call it belongs to. For one event loop."""
        while self._running >= self.now:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            free = self.now - self._running
            while self._waiting and free > 0:
                turn = self._waiting.popleft()
                if not turn.done():  # Who was cancelled meanwhile leaves the turn to the next.
                    turn.set_result(None)
                    free -= 1

    @property
    def now(self) -> int:
        """Requests that may run at once."""
        return 1 if self._failures >= _FAILURES_TO_SEQUENTIAL else self._most

    def failed(self) -> None:
        """An attempt failed for a reason that has to do with load or network."""
        self._failures += 1
        self._successes = 0

    def worked(self) -> None:
        """An attempt was answered."""
        self._successes += 1
        if self._successes >= _SUCCESSES_TO_CONCURRENT:
            self._failures = 0
