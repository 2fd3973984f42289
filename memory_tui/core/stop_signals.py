"""The signals that end the program, with the sentence for each."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
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
    """What a program returns that signal `number` ended, as shells report it: 128 and the number."""
    return 128 + number


def sentence(number: int, more: str = "") -> str:
    """One line about the end by signal `number`; `more` says what that means."""
    what = "ctrl+c" if number == signal.SIGINT else signal.Signals(number).name
    return f"memory-tui: stopped by {what}.{more and ' '}{more}"


def report(number: int, more: str = "") -> None:
    """Write that line to stderr, where somebody may still read it."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{sentence(number, more)}\n")
        sys.stderr.flush()


def after(seconds: float, do: Callable[[], None]) -> None:
    """Call `do` in a thread of its own when the process is still there after `seconds`; nobody waits for that."""
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


@contextmanager
def heard(handler: Handler, *, foreground: bool = True) -> Iterator[None]:
    """Have `handler` called for each signal that ends the program, in the main thread; others keep what they have.

    A SIGHUP that was switched off from outside, as `nohup` does, stays so; of a program that may run in the
    background of a script (not `foreground`) every signal does, as shells switch off ctrl+c for these.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for number in ENDING:
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
def raised() -> Iterator[None]:
    """Raise Stopped where a signal comes; a second one ends the process at once, however its cleaning up hangs."""
    seen: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        if seen:
            os._exit(exit_status(seen[0]))
        seen.append(number)
        raise Stopped(number)

    with heard(handler, foreground=False):
        yield
