"""Decide how often and how long a failed request is repeated: within a call, and between calls.

How long a provider asks to be left alone itself stands in its answer, which `diagnose` reads.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from msgspec import Struct

from memory_tui.cancel import Stop
from memory_tui.providers.base import Cause, Kind, ProviderFailure

RETRIED = frozenset({Cause.RATE_LIMIT, Cause.SERVER, Cause.NETWORK})
"""Worth another attempt within the same call."""
PASSING = RETRIED | {Cause.TIMEOUT, Cause.MALFORMED}
"""Likely to be over after a while, without anybody doing anything."""
ATTEMPTS = 3
"""How often a request is sent within a call, the first time included."""
LONGEST_OBEYED = {"document": 60.0, "query": 8.0}
"""Seconds of Retry-After that are waited for within a call; after longer ones the call fails and names the time."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_FIRST_PAUSE, _LONGEST_PAUSE, _LASTING_PAUSE = 30.0, 600.0, 300.0
_MOST_DOUBLINGS = 5


class RetryClock(Struct, frozen=True):
    """Where time comes from: `now` in epoch seconds, `jitter` from 0 to 1, and the `sleep` before a retry, which ends
    with a stop.
    """

    now: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    sleep: Callable[[Stop, float], object] = Stop.wait

    def pause(self, stop: Stop, seconds: float) -> None:
        """Let `seconds` pass. Raises Cancelled once `stop` is set."""
        self.sleep(stop, seconds)
        stop.check()


def wait_within(failure: ProviderFailure, kind: Kind, attempt: int, clock: RetryClock) -> float | None:
    """Return the seconds until a request is sent again within its call; None where it is not sent again.

    `attempt` is the number of the attempt that failed, from 1 on.
    """
    wait = failure.retry_after or 0
    if failure.state not in RETRIED or wait > LONGEST_OBEYED[kind]:
        return None
    # Doubled with each attempt, with up to a fifth more so that many clients do not come back at the same moment.
    return max(min(_FIRST_WAIT * 2.0 ** (attempt - 1) * (1 + 0.2 * clock.jitter()), _LONGEST_WAIT), wait)


def pause_after(failure: ProviderFailure, earlier: int) -> float:
    """Return how many seconds a provider is left alone after `failure`, which `earlier` failures in a row went before.

    A failure that passes by itself doubles the pause each time; one that a person has to mend has always the same.
    """
    doubled = min(_FIRST_PAUSE * 2 ** min(earlier, _MOST_DOUBLINGS), _LONGEST_PAUSE)
    return max(doubled if failure.state in PASSING else _LASTING_PAUSE, failure.retry_after or 0)
