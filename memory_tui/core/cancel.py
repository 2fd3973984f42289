"""One way to stop a job. Whoever wants it stopped sets a stop, and the job asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from memory_tui.core.errors import Cancelled


class Stop:
    """A wish that a job ends, set from any thread, also from a signal handler; set too while one of `others` is."""

    def __init__(self, *others: Stop) -> None:
        self._others = others
        self._event = threading.Event()
        # Reentrant, because a signal can interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._calls: list[Callable[[], object]] = []

    def set(self) -> None:
        """Wish it. What is `around` a call now is called before this returns."""
        with self._lock:
            self._event.set()
            for call in tuple(self._calls):
                call()

    def clear(self) -> None:
        """Take the wish back; not that of the others."""
        self._event.clear()

    def is_set(self) -> bool:
        """Whether it is wished."""
        return self._event.is_set() or any(other.is_set() for other in self._others)

    def check(self) -> None:
        """Raises Cancelled when it is wished."""
        if self.is_set():
            raise Cancelled

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the wish, at most `seconds`; whether it came."""
        if not self._others:
            return self._event.wait(seconds)
        woken = threading.Event()
        with self._calling(woken.set):
            if not self.is_set():
                woken.wait(seconds)
        return self.is_set()

    @contextmanager
    def around(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """While inside, the wish calls `interrupt`, on the thread that has it. Raises Cancelled when it came before."""
        with self._calling(interrupt):
            self.check()
            yield

    @contextmanager
    def _calling(self, call: Callable[[], object]) -> Iterator[None]:
        with ExitStack() as stack:
            for other in self._others:
                stack.enter_context(other._calling(call))
            with self._lock:
                self._calls.append(call)
            try:
                yield
            finally:
                # Under the lock, so that a call does not reach into what comes after.
                with self._lock:
                    self._calls.remove(call)
