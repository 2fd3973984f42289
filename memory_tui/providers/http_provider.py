"""A provider behind HTTP: batches, attempts, and what is learned from refusals, for every wire format alike."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import tenacity

from memory_tui.embed.answers import Malformed
from memory_tui.embed.background import Background
from memory_tui.embed.batching import Width, groups, halves
from memory_tui.embed.careful import Careful, in_rows
from memory_tui.embed.failure import OF_THE_TEXT, PASSING, RETRIED, ProviderFailure, State
from memory_tui.embed.http import Http
from memory_tui.embed.options import ProviderSettings
from memory_tui.embed.provider import Identity, Vectors
from memory_tui.embed.units import NoDirection, unit_vectors
from memory_tui.embed.wire import Kind, Wire, host_of
from memory_tui.text.js import well_formed

_LONGEST_OBEYED = {"document": 60.0, "query": 8.0}
"""Seconds of Retry-After that are waited for within a call; after longer ones the call fails and names the time."""
_PROBE = "memory"


class Remote(Careful):
    """One remote provider. `embed` and `identity` block on the network, so both belong on a worker thread."""

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self._wire = wire
        self._settings, self._batches, self._clock = settings, settings.batches, settings.clock
        self._dims = wire.dims
        self._most_items = wire.most_items
        self._proven = False
        """Whether it ever made a good vector: then one that points nowhere is about its text."""
        super().__init__(settings.clock.now, f"ready, {host_of(wire.base_url)}, not asked yet")
        self._http = Http(wire.label, wire.base_url, wire.headers, wire.auth)
        self._background = Background(self._http.close)
        self._width = Width(max(1, min(settings.batches.concurrency, wire.concurrency)))
        self._probing = threading.Lock()

    @property
    def identity(self) -> Identity:
        """The space of the vectors. Their length comes from what is known of the model, else from one call of `embed`
        when it is first asked for: that blocks, and raises ProviderFailure or Cancelled.
        """
        with self._probing:
            if self._dims is None:
                self.embed([_PROBE], "document")
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
        self.check()
        done: dict[int, Vectors] = {}
        sent = [well_formed(text) for text in texts]
        started = time.perf_counter()
        failure = self._background.run(lambda: self._all(sent, kind, done))
        if failure is not None:
            failure.done = done
            self.failed(failure, started)
            raise failure
        width = "" if self._width.now > 1 or self._batches.concurrency == 1 else ", one request at a time"
        self.worked(f"{self._http.host}{width}", started)
        return in_rows(done, len(texts), self._dims or 0)

    def close(self) -> None:
        """Give up every call that is under way, at once."""
        self._background.close()

    async def _all(self, texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> ProviderFailure | None:
        """Fill `done` with the vectors of `texts` by position; the first failure, when there is one."""
        wanted = [at for at, text in enumerate(texts) if text.strip()]
        waiting = deque(groups(texts, wanted, self._batches.most_bytes, self._most_items))
        failures: list[ProviderFailure] = []

        async def work(number: int) -> None:
            while waiting and number < self._width.now and all(one.state in OF_THE_TEXT for one in failures):
                group = waiting.popleft()
                # A question does not queue behind notes.
                async with self._width.slot() if kind == "document" else nullcontext():
                    try:
                        await self._fill(group, texts, kind, done)
                    except ProviderFailure as failure:
                        failures.append(failure)

        await asyncio.gather(*map(work, range(min(self._width.now, len(waiting)))))
        # What is wrong with the provider matters more than what is wrong with a text.
        return min(failures, key=lambda one: one.state in OF_THE_TEXT, default=None)

    async def _fill(self, at: Sequence[int], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> None:
        """Put the vectors of the texts `at` into `done`; they are halved for as long as they are refused together, or
        break the connection.
        """
        refused = None
        if len(at) <= self._most_items:
            try:
                done.update(zip(at, await self._persistent([texts[one] for one in at], kind), strict=True))
                return
            except ProviderFailure as failure:
                if failure.state not in OF_THE_TEXT and not (failure.broke_off and len(at) > 1):
                    raise
                refused = failure
        middle = (len(at) + 1) // 2
        if refused is not None and len(at) == 1:
            done[at[0]] = await self._in_parts(texts[at[0]], kind, refused)
            return
        if refused is not None and refused.state is State.TOO_LARGE:
            self._most_items = min(self._most_items, middle)
        await self._fill_both((at[:middle], at[middle:]), texts, kind, done)

    async def _fill_both(
        self, both: Sequence[Sequence[int]], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]
    ) -> None:
        """Like `_fill`, of two halves: a text in one that gets no vector costs the other one nothing."""
        refused = None
        for half in both:
            try:
                await self._fill(half, texts, kind, done)
            except ProviderFailure as failure:
                if failure.state not in OF_THE_TEXT:
                    raise
                refused = failure
        if refused is not None:
            raise refused

    async def _in_parts(self, text: str, kind: Kind, refused: ProviderFailure) -> Vectors:
        """The unit vector of a text that is refused as a whole: the mean of its parts by their length."""
        parts = [part for part in halves(text) or () if part.strip()]
        if not parts:
            raise refused
        found: dict[int, Vectors] = {}
        for at in range(len(parts)):
            await self._fill([at], parts, kind, found)
        mean = np.array([len(part) for part in parts], np.float32) @ np.stack([found[at] for at in range(len(parts))])
        return np.asarray(mean / (np.linalg.norm(mean) or 1), np.float32)

    async def _persistent(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One request, asked again after a failure that may pass."""
        batches, clock = self._batches, self._clock

        def wait(state: tenacity.RetryCallState) -> float:
            usual = batches.first_wait * 2 ** (state.attempt_number - 1) * (1 + 0.2 * clock.jitter())
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.retry_after if isinstance(failure, ProviderFailure) else None
            return float(max(min(usual, batches.longest_wait), asked or 0))

        def again(error: BaseException) -> bool:
            return (
                isinstance(error, ProviderFailure)
                and error.state in RETRIED
                and (error.retry_after or 0) <= _LONGEST_OBEYED[kind]
            )

        attempts = tenacity.AsyncRetrying(
            sleep=clock.sleep,
            stop=tenacity.stop_after_attempt(batches.attempts),
            wait=wait,
            retry=tenacity.retry_if_exception(again),
            reraise=True,
        )
        vectors: Vectors = await attempts(self._once, texts, kind)
        return vectors

    async def _once(self, texts: Sequence[str], kind: Kind) -> Vectors:
        wire, limits = self._wire, self._batches
        seconds = (
            limits.query_seconds or wire.query_seconds
            if kind == "query"
            else limits.batch_seconds or wire.batch_seconds
        )
        path, body = wire.request(texts, kind)
        try:
            answer = await self._http.post(path, body, seconds)
            vectors = self._checked(answer, len(texts))
        except ProviderFailure as failure:
            if wire.older is not None and failure.state is State.UNKNOWN_MODEL and "model" not in failure.message:
                self._wire, self._most_items = wire.older, wire.older.most_items
                if len(texts) <= self._most_items:
                    return await self._once(texts, kind)
                failure = ProviderFailure(State.TOO_LARGE, failure.message)
            if failure.state in PASSING:
                self._width.failed()
            raise failure
        self._width.worked()
        return vectors

    def _checked(self, answer: object, count: int) -> Vectors:
        state = State.MALFORMED
        try:
            vectors = unit_vectors(self._wire.rows(answer), count, self._dims)
        except NoDirection as error:
            self._proven = self._proven or not error.every
            why = str(error)
            if self._proven:
                state, why = State.NO_VECTOR, f"{why} for a text"
        except Malformed as error:
            why = str(error)
        else:
            self._dims, self._proven = vectors.shape[1], True
            return vectors
        raise ProviderFailure(state, f"{self._wire.label} ({self._http.host}) answered with {why}.")
