"""An event loop on a daemon thread: who waits for a call can be let go at once, and the call itself is cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from memory_tui.errors import Cancelled

T = TypeVar("T")
_GOODBYE_SECONDS = 0.2


class _Daemons(concurrent.futures.ThreadPoolExecutor):
    """Runs each job on a daemon thread, because a look-up of a host name that hangs must not delay the end of the app.

    asyncio accepts no other executor than a ThreadPoolExecutor, whose own threads are waited for at the end.
    """

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            # From here on it cannot be cancelled, so its end is nobody's error.
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except (OSError, UnicodeError, ValueError) as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=work, name="embed-lookup", daemon=True).start()
        return future


async def _nothing() -> None:
    pass


class Background:
    """Runs coroutines for other threads; `at_end` is awaited last. The thread starts at the first `run`."""

    def __init__(self, at_end: Callable[[], Awaitable[None]] = _nothing) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the coroutine that `make` makes. Raises Cancelled as soon as `close` is called."""
        with self._lock:
            if self._closed:
                raise Cancelled
            future = asyncio.run_coroutine_threadsafe(make(), self._started())
        with contextlib.suppress(concurrent.futures.CancelledError):
            return future.result()
        raise Cancelled

    def close(self) -> None:
        """Cancel everything that runs; returns within 0.2 s, whatever it waits for."""
        with self._lock:
            self._closed = True
            loop, stop, thread = self._loop, self._stop, self._thread
        if loop is None or stop is None or thread is None:
            return
        with contextlib.suppress(RuntimeError):  # The loop has ended, which is what is wanted.
            loop.call_soon_threadsafe(stop.set)
        thread.join(_GOODBYE_SECONDS)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(_Daemons())
            self._stop = asyncio.Event()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop, self._stop), name="embed-http", daemon=True
            )
            self._thread.start()
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._until(stop))
            loop.run_until_complete(loop.shutdown_asyncgens())  # A body that was being read when it was cancelled.
        finally:
            loop.close()

    async def _until(self, stop: asyncio.Event) -> None:
        await stop.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._at_end()
