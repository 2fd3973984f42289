"""A provider over HTTP. It groups requests, retries them behind a breaker, and cuts long texts."""

from __future__ import annotations

import datetime as dt
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np

from memory_tui.core.cancel import Stop
from memory_tui.core.jsstring import well_formed
from memory_tui.providers.answer_vectors import Malformed, NoDirection, unit_vectors
from memory_tui.providers.failures import OF_THE_TEXT, PASSING, RETRIED, Cause, ProviderFailure
from memory_tui.providers.http_client import Http
from memory_tui.providers.provider_options import Kind, ProviderSettings, Wire, host_of
from memory_tui.providers.provider_protocol import Health, Identity, MediaText, Vectors

_FAILURES_TO_SEQUENTIAL = 2
_SUCCESSES_TO_CONCURRENT = 32
_SHORTEST = 32
_SMALL_BYTES = 8_000
"""A request that every provider takes, and can answer in time on a slow machine."""
_MAYBE_TOO_LARGE = frozenset({Cause.RATE_LIMIT, Cause.SERVER, Cause.TIMEOUT})
_SPACE = re.compile(r"\s")


def groups(texts: Sequence[str], at: Sequence[int], most_bytes: int, most_items: int) -> list[list[int]]:
    """The positions `at` in runs of at most `most_bytes` of UTF-8 and `most_items` texts; a longer text goes alone."""
    found: list[list[int]] = []
    size = 0
    for position in at:
        text = texts[position]
        length = len(text.encode("utf-8", "replace"))
        if isinstance(text, MediaText):
            length += -(-text.most // 3) * 4
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


class _Helper(threading.Thread):
    """Does some work beside its caller, who gets what it raises. The end of the app does not wait for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="embed-helper", daemon=True)
        self._work = work
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._error = error

    def result(self) -> None:
        """Wait for the end. Raises what the work raised."""
        self.join()
        if self._error is not None:
            raise self._error


def at_once(work: Callable[[int], None], count: int) -> None:
    """Do `work` of the numbers below `count`, the first one on this thread. Raises what one of them raised."""
    helpers = [_Helper(partial(work, number)) for number in range(1, count)]
    for helper in helpers:
        helper.start()
    if count:
        work(0)
    for helper in helpers:
        helper.result()


class Width:
    """How many requests may run at once: `most`, or one after two failures, until things went well for a while."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self._successes = 0
        self._running = 0
        self._free = threading.Condition()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until one more request may run, whichever call it belongs to."""
        with self._free:
            self._free.wait_for(lambda: self._running < self.now)
            self._running += 1
        try:
            yield
        finally:
            with self._free:
                self._running -= 1
                self._free.notify(max(0, self.now - self._running))

    @property
    def now(self) -> int:
        """Requests that may run at once."""
        return 1 if self._failures >= _FAILURES_TO_SEQUENTIAL else self._most

    def failed(self) -> None:
        """An attempt failed for a reason that has to do with load or network."""
        with self._free:
            self._failures += 1
            self._successes = 0

    def worked(self) -> None:
        """An attempt was answered."""
        with self._free:
            self._successes += 1
            if self._successes >= _SUCCESSES_TO_CONCURRENT:
                self._failures = 0


_FIRST_SECONDS, _LONGEST_SECONDS, _LASTING_SECONDS = 30.0, 600.0, 300.0
_MOST_DOUBLINGS = 5


class Breaker:
    """Open from a failed call until `next_try` (epoch seconds, None while closed). Safe for any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failure: ProviderFailure | None = None
        self._row = 0
        self.opened_at = 0.0
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
            self._failure, self.opened_at = failure, self._now()
            self.next_try = failure.next_try = self.opened_at + max(usual, failure.retry_after or 0)

    def leave(self, failure: ProviderFailure, until: float, since: float) -> None:
        """Open it until `until`: an earlier process met `failure` at `since`."""
        with self._lock:
            self._failure, self.next_try, self.opened_at = failure, until, since
            self._row = max(1, self._row)

    def worked(self) -> None:
        """Close it."""
        with self._lock:
            self._failure, self._row, self.next_try = None, 0, None


class GuardedProvider:
    """A provider that is left alone for a while after a failure. Safe for any thread."""

    def __init__(self, now: Callable[[], float], detail: str) -> None:
        self.breaker = Breaker(now)
        self._health = Health(True, detail)

    def health(self) -> Health:
        """The state after the last call."""
        return self._health

    def worked(self, detail: str, started: float) -> None:
        """A call that began at `started` (`time.perf_counter`) was answered."""
        self.breaker.worked()
        self._health = Health(True, detail, (time.perf_counter() - started) * 1000)

    def failed(self, failure: ProviderFailure, started: float | None = None) -> None:
        """A call failed; one that failed for its text says nothing about the provider."""
        self.breaker.failed(failure)
        if failure.state not in OF_THE_TEXT:
            took = 0.0 if started is None else (time.perf_counter() - started) * 1000
            self._health = Health(False, failure.message, took)


def in_rows(done: Mapping[int, Vectors], count: int, dims: int) -> Vectors:
    """The vectors of `done` by position, float32 (count, dims); zeros where there is none."""
    vectors = np.zeros((count, dims), np.float32)
    for at, row in done.items():
        vectors[at] = row
    return vectors


_LONGEST_OBEYED = {"document": 60.0, "query": 8.0}
"""Seconds of Retry-After that are waited for within a call; after longer ones the call fails and names the time."""
_PROBE = "memory"


class Remote(GuardedProvider):
    """One remote provider. `embed` and `identity` block on the network, so both belong on a worker thread."""

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self._wire = wire
        self._settings, self._batches, self._clock = settings, settings.batches, settings.clock
        self._dims = wire.dims
        self._most_items = wire.most_items
        self._most_bytes = settings.batches.most_bytes or wire.most_bytes
        self._proven = False
        """Whether it ever made a good vector: then one that points nowhere is about its text."""
        super().__init__(settings.clock.now, f"ready, {host_of(wire.base_url)}, not asked yet")
        self._stop = Stop()
        self._http = Http(wire.label, wire.base_url, self._stop, wire.headers, wire.auth)
        self._width = Width(max(1, min(settings.batches.concurrency, wire.concurrency)))
        self._probing, self._checking = threading.Lock(), threading.Lock()

    @property
    def identity(self) -> Identity:
        """The space of the vectors. Their length comes from what is known of the model, else from one call of `embed`
        when it is first asked for: that blocks, and raises ProviderFailure or Cancelled.
        """
        with self._probing:
            if self._dims is None:
                self.embed([_PROBE], self._batches.probe)
            assert self._dims is not None
            return Identity(self._wire.name, self._wire.model, self._wire.key, self._dims)

    @property
    def identity_known(self) -> bool:
        """Whether `identity` answers without a call."""
        return self._dims is not None

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is surely within the model's limit."""
        return self._wire.max_input_bytes

    @property
    def host(self) -> str:
        """Where the text goes."""
        return self._http.host

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Float32 array (len(texts), dims) of unit vectors; blank texts are not sent and have zeros.

        A text over the model's limit is embedded in parts, whose mean it gets. Raises ProviderFailure, with the
        vectors that were made before it, and Cancelled once `close` is called.
        """
        self._stop.check()
        self.breaker.check()
        done: dict[int, Vectors] = {}
        sent = [text if isinstance(text, MediaText) else well_formed(text) for text in texts]
        started = time.perf_counter()
        failure = self._all(sent, kind, done)
        if failure is not None:
            failure.done = done
            self.failed(failure, started)
            raise failure
        width = "" if self._width.now > 1 or self._batches.concurrency == 1 else ", one request at a time"
        self.worked(f"{self._http.host}{width}", started)
        return in_rows(done, len(texts), self._dims or 0)

    def close(self) -> None:
        """Give up every call that is under way, at once."""
        self._stop.set()
        self._http.close()

    def _all(self, texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> ProviderFailure | None:
        """Fill `done` with the vectors of `texts` by position; the first failure, when there is one."""
        wanted = [at for at, text in enumerate(texts) if text.strip()]
        waiting = deque(groups(texts, wanted, self._most_bytes, self._most_items))
        failures: list[ProviderFailure] = []

        def work(number: int) -> None:
            while number < self._width.now and all(one.state in OF_THE_TEXT for one in failures):
                try:
                    group = waiting.popleft()
                except IndexError:
                    return
                # A question does not queue behind notes.
                with self._width.slot() if kind == "document" else nullcontext():
                    self._stop.check()
                    try:
                        self._fill(group, texts, kind, done)
                    except ProviderFailure as failure:
                        failures.append(failure)

        at_once(work, min(self._width.now, len(waiting)))
        # What is wrong with the provider matters more than what is wrong with a text.
        return min(failures, key=lambda one: one.state in OF_THE_TEXT, default=None)

    def _fill(self, at: Sequence[int], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> None:
        """Put the vectors of the texts `at` into `done`; they are halved for as long as they are refused together, or
        break the connection.
        """
        refused = None
        if len(at) <= self._most_items:
            try:
                done.update(zip(at, self._persistent([texts[one] for one in at], kind), strict=True))
                return
            except ProviderFailure as failure:
                if smaller := self._smaller(at, texts, kind, failure):
                    for part in smaller:
                        self._fill(part, texts, kind, done)
                    return
                if failure.state not in OF_THE_TEXT and not (failure.broke_off and len(at) > 1):
                    raise
                refused = failure
        middle = (len(at) + 1) // 2
        if refused is not None and len(at) == 1:
            done[at[0]] = self._in_parts(texts[at[0]], kind, refused)
            return
        if refused is not None and refused.state is Cause.TOO_LARGE:
            self._most_items = min(self._most_items, middle)
        self._fill_both((at[:middle], at[middle:]), texts, kind, done)

    def _smaller(
        self, at: Sequence[int], texts: Sequence[str], kind: Kind, failure: ProviderFailure
    ) -> list[list[int]]:
        """The texts `at` in small requests, where one so large may be why a provider does not answer for now.

        From then on all requests are small. Empty where there is nothing to be won by it.
        """
        if failure.state not in _MAYBE_TOO_LARGE or (failure.retry_after or 0) > _LONGEST_OBEYED[kind]:
            return []
        parts = groups(texts, at, _SMALL_BYTES, self._most_items)
        if len(parts) > 1:
            self._most_bytes = min(self._most_bytes, _SMALL_BYTES)
        return parts if len(parts) > 1 else []

    def _fill_both(
        self, both: Sequence[Sequence[int]], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]
    ) -> None:
        """Like `_fill`, of two halves: a text in one that gets no vector costs the other one nothing."""
        refused = None
        for half in both:
            try:
                self._fill(half, texts, kind, done)
            except ProviderFailure as failure:
                if failure.state not in OF_THE_TEXT:
                    raise
                refused = failure
        if refused is not None:
            raise refused

    def _in_parts(self, text: str, kind: Kind, refused: ProviderFailure) -> Vectors:
        """The unit vector of a text that is refused as a whole: the mean of its parts by their length."""
        parts = [] if isinstance(text, MediaText) else [part for part in halves(text) or () if part.strip()]
        if not parts:
            raise refused
        found: dict[int, Vectors] = {}
        for at in range(len(parts)):
            self._fill([at], parts, kind, found)
        mean = np.array([len(part) for part in parts], np.float32) @ np.stack([found[at] for at in range(len(parts))])
        return np.asarray(mean / (np.linalg.norm(mean) or 1), np.float32)

    def _persistent(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One request, asked again after a failure that may pass; of a question all attempts share its time limit."""
        batches, clock, attempt = self._batches, self._clock, 1
        seconds = batches.batch_seconds or self._wire.batch_seconds
        ends = math.inf
        if kind == "query":
            seconds = batches.query_seconds or self._wire.query_seconds
            ends = time.monotonic() + seconds
        while True:
            try:
                return self._once(texts, kind, seconds)
            except ProviderFailure as failure:
                asked = failure.retry_after or 0
                usual = batches.first_wait * 2 ** (attempt - 1) * (1 + 0.2 * clock.jitter())
                wait = max(min(usual, batches.longest_wait), asked)
                if (
                    time.monotonic() + wait >= ends
                    or attempt >= batches.attempts
                    or failure.state not in RETRIED
                    or asked > _LONGEST_OBEYED[kind]
                ):
                    raise
            clock.pause(self._stop)(wait)
            seconds = min(seconds, ends - time.monotonic())
            attempt += 1

    def _once(self, texts: Sequence[str], kind: Kind, seconds: float) -> Vectors:
        wire = self._wire
        path, body = wire.request(texts, kind)
        try:
            answer = self._http.post(path, body, seconds)
            vectors = self._checked(answer, len(texts))
        except ProviderFailure as failure:
            if wire.older is not None and failure.state is Cause.UNKNOWN_MODEL and "model" not in failure.message:
                self._wire, self._most_items = wire.older, wire.older.most_items
                if len(texts) <= self._most_items:
                    return self._once(texts, kind, seconds)
                failure = ProviderFailure(Cause.TOO_LARGE, failure.message)
            if failure.state in PASSING:
                self._width.failed()
            raise failure
        self._width.worked()
        return vectors

    def _checked(self, answer: object, count: int) -> Vectors:
        state = Cause.MALFORMED
        try:
            with self._checking:
                vectors = unit_vectors(self._wire.rows(answer), count, self._dims)
                self._dims, self._proven = vectors.shape[1], True
        except NoDirection as error:
            self._proven = self._proven or not error.every
            why = str(error)
            if self._proven:
                state, why = Cause.NO_VECTOR, f"{why} for a text"
        except Malformed as error:
            why = str(error)
        else:
            return vectors
        raise ProviderFailure(state, f"{self._wire.label} ({self._http.host}) answered with {why}.")
