"""When not to ask: after a failed call a provider is left alone for a while, longer each time."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable

from memory_tui.embed.failure import OF_THE_TEXT, PASSING, ProviderFailure

_FIRST_SECONDS, _LONGEST_SECONDS, _LASTING_SECONDS = 30.0, 600.0, 300.0
_MOST_DOUBLINGS = 5


class Breaker:
    """Open from a failed call until `next_try` (epoch seconds, None while closed). Safe for any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failure: ProviderFailure | None = None
        self._row = 0
        self.next_try: float | None = None

    def check(self) -> None:
        """Raises the failure that opened it, with the time of the next try, while that is not reached."""
        with self._lock:
            failure, until = self._failure, self.next_try
        if failure is None or until is None or self._now() >= until:
            return
        at = dt.datetime.fromtimestamp(until).astimezone().strftime("%H:%M:%S")
        again = ProviderFailure(
            failure.state, f"{failure.message} It is asked again at {at}.", failure.next_step, failure.retry_after
        )
        again.next_try = until
        raise again

    def failed(self, failure: ProviderFailure) -> None:
        """Open it, unless the failure was about the text. Sets `next_try` of `failure` as well."""
        if failure.state in OF_THE_TEXT:
            return
        with self._lock:
            usual = _LASTING_SECONDS
            if failure.state in PASSING:
                usual = min(_FIRST_SECONDS * 2 ** min(self._row, _MOST_DOUBLINGS), _LONGEST_SECONDS)
            self._row += 1
            self._failure = failure
            self.next_try = failure.next_try = self._now() + max(usual, failure.retry_after or 0)

    def worked(self) -> None:
        """Close it."""
        with self._lock:
            self._failure, self._row, self.next_try = None, 0, None
