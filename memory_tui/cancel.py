"""One way to stop a job: whoever wants it stopped sets a stop, and the job asks it. Signals end the whole program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

from memory_tui.errors import Cancelled


class Stop:
    """A wish that a job ends, set from any thread, also from a signal handler; set too while one of `others` is."""

    def __init__(self, *others: Stop) -> None:
        self._others = others
        self._event = threading.Event()
        # Reentrant, because a signal can interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._calls: list[Callable[[], object]] = []

    def set(self) -> None:
        """Wish that the job ends. Before this returns, every `interrupt` that is `around` something now was called."""
        with self._lock:
            self._event.set()
            for call in tuple(self._calls):
                call()

    def clear(self) -> None:
        """Take the wish back; not that of the others."""
        self._event.clear()

    def is_set(self) -> bool:
        """Return whether the end is wished, here or by one of the others."""
        return self._event.is_set() or any(other.is_set() for other in self._others)

    def check(self) -> None:
        """Raise Cancelled when the end is wished."""
        if self.is_set():
            raise Cancelled

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the wish, at most `seconds` (None: for ever); return whether it came."""
        if not self._others:
            return self._event.wait(seconds)
        # Set by whichever stop comes first, this one or another. Where one came before, `around` raises Cancelled.
        woken = threading.Event()
        with suppress(Cancelled), self.around(woken.set):
            woken.wait(seconds)
        return self.is_set()

    @contextmanager
    def around(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let the wish call `interrupt` while inside, on the thread that wishes.

        Raises Cancelled where the wish came before.
        """
        with ExitStack() as stack:
            for other in self._others:
                stack.enter_context(other.around(interrupt))
            with self._lock:
                self._calls.append(interrupt)
            try:
                self.check()
                yield
            finally:
                # Under the lock, so that a call does not reach into what comes after.
                with self._lock:
                    self._calls.remove(interrupt)


ENDING_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
"""Every signal that asks a program to end and can be heard."""

Handler = Callable[[int, FrameType | None], None]


class Stopped(BaseException):
    """A signal ends the command; `more` says what becomes of the work.

    No handler of errors catches it, so every `with` and `finally` on the way runs.
    """

    def __init__(self, number: int, more: str = "") -> None:
        super().__init__(number)
        self.number, self.more = number, more


def exit_status(number: int) -> int:
    """Return what a program returns that signal `number` ended, as shells report it: 128 and the number."""
    return 128 + number


def report_signal(number: int, more: str = "") -> None:
    """Write one line about the end by signal `number` to stderr; `more` says what becomes of the work."""
    what = "ctrl+c" if number == signal.SIGINT else signal.Signals(number).name
    # Standard error may be closed, when nobody reads it any more.
    with suppress(OSError, ValueError):
        sys.stderr.write(f"memory-tui: stopped by {what}.{f' {more}' if more else ''}\n")
        sys.stderr.flush()


def call_after(seconds: float, do: Callable[[], None]) -> None:
    """Call `do` in a thread of its own when the process is still there after `seconds`; nobody waits for that."""
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


@contextmanager
def signals_heard(handler: Handler, *, foreground: bool = True) -> Iterator[None]:
    """Have `handler` called for each signal that ends the program; on another thread than the main one nothing changes.

    SIGHUP stays switched off where that was done from outside, as `nohup` does. So does every signal where the program
    may run in the background of a script (not `foreground`), because shells switch off ctrl+c for such programs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for number in ENDING_SIGNALS:
        was = signal.getsignal(number)
        if was is not signal.SIG_IGN or (foreground and number != getattr(signal, "SIGHUP", 0)):
            before[number] = was
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Raise Stopped where a signal comes; a second one ends the process at once, however its cleaning up hangs."""
    seen: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        """Raise Stopped at the first signal, end the process at the second."""
        del frame
        if seen:
            # As the first signal would have ended it.
            os._exit(exit_status(seen[0]))
        seen.append(number)
        raise Stopped(number)

    with signals_heard(handler, foreground=False):
        yield
