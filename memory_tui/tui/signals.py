"""A signal that ends the app restores the terminal first."""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from memory_tui.cancel import call_after, exit_status, report_signal, signals_heard

if TYPE_CHECKING:
    import asyncio


class SignalledApp(Protocol):
    """The app, as far as signals know it."""

    signals: Signals | None

    def leave(self, code: int) -> None:
        """End with exit `code`, whatever is on screen."""

    def woken(self) -> None:
        """Set the terminal up again, and draw everything."""

    def draw_anew(self) -> None:
        """Draw everything."""

    def close_engine(self) -> None:
        """Close the engine, within half a second."""


PATIENCE = 3.0
"""Seconds in which the app ends by itself after a signal; then the terminal is restored behind its back."""

RESET = (
    "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    "\x1b[?1004l\x1b[<u\x1b[0m\x1b[?1049l\x1b[?25h"
)
"""Switches off every mode that the app switches on: paste, mouse, focus, keyboard, alternate screen, no cursor."""


class Signals:
    """Ends `app` when a signal asks for it, and wakes it after it was stopped; all in the main thread."""

    def __init__(self, app: SignalledApp) -> None:
        self._app = app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._modes = _modes()
        self._asleep = False
        self.number = 0
        """The signal that ends the app; 0 while none does."""

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """The app runs in `loop`, and its terminal is set up: from now on being stopped and woken is handled too."""
        self._loop = loop
        if not hasattr(signal, "SIGTSTP") or threading.current_thread() is not threading.main_thread():
            return
        stopping, waking = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)

        def stop(number: int, frame: FrameType | None) -> None:
            self._asleep = True
            if callable(stopping):
                stopping(number, frame)

        def wake(number: int, frame: FrameType | None) -> None:
            asleep, self._asleep = self._asleep, False
            if asleep and callable(waking):
                waking(number, frame)
                # What was drawn before is gone, whatever the driver believes to stand on the screen.
                loop.call_soon_threadsafe(self._app.draw_anew)
            elif not asleep:
                # SIGSTOP cannot be heard: the terminal was not given back, and the shell has used it since.
                loop.call_soon_threadsafe(self._app.woken)

        signal.signal(signal.SIGTSTP, stop)
        signal.signal(signal.SIGCONT, wake)

    def hear(self, number: int, frame: FrameType | None = None) -> None:
        """End the app because of signal `number`; a second signal does not wait for it."""
        del frame
        if self.number:
            self._at_once()
        self.number = number
        call_after(PATIENCE, self._give_up)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._app.leave, exit_status(number))

    def _give_up(self) -> None:
        self._app.close_engine()
        self._at_once()

    def _at_once(self) -> None:
        """Restore the terminal without the app, which hangs, and end the process."""
        _give_back()
        with suppress(OSError):
            os.write(sys.__stderr__.fileno(), RESET.encode("ascii"))  # type: ignore[union-attr]
        _restore(self._modes)
        report_signal(self.number)
        os._exit(exit_status(self.number))


CLOSED = getattr(signal, "SIGHUP", signal.SIGTERM)
"""The signal of a terminal that was closed."""


def is_served() -> bool:
    """Whether the app is drawn in a browser, by way of pipes to the server."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def has_terminal() -> bool:
    """Whether keys can still be read from the terminal, or from the server of a browser's tab."""
    try:
        if is_served():
            waiting = select.poll()
            waiting.register(sys.__stdin__.fileno(), 0)  # type: ignore[union-attr]
            return not waiting.poll(0)
        return os.isatty(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return False


def _modes() -> list[Any] | None:
    """How the terminal takes keys now; None where there is none."""
    try:
        import termios

        return termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (ImportError, OSError, ValueError, AttributeError):
        return None
    except termios.error:
        return None


def _restore(modes: list[Any] | None) -> None:
    if modes is None:
        return
    import termios

    with suppress(termios.error, OSError, ValueError):
        termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, modes)  # type: ignore[union-attr]


_MOST_SAID = 64 << 10
_screen: list[int] = []
"""The descriptor that the screen is drawn on, while standard error is kept from it."""


def _give_back() -> None:
    """Let descriptor 2 be the terminal again."""
    with suppress(OSError):
        for descriptor in _screen:
            os.dup2(descriptor, 2)


@contextmanager
def screen_alone() -> Iterator[None]:
    """Keep what libraries write to standard error off the screen, which is drawn there too; say it afterwards."""
    new = sys.__stderr__
    if new is None or os.name != "posix" or new.fileno() != 2:
        yield
        return
    new.flush()
    with tempfile.TemporaryFile() as text:
        screen = os.fdopen(os.dup(2), "w", encoding=new.encoding, errors="replace")
        _screen.append(screen.fileno())
        os.dup2(text.fileno(), 2)
        sys.__stderr__ = screen  # type: ignore[misc]
        try:
            yield
        finally:
            new.flush()
            # Of a terminal that was closed nobody reads the rest.
            with suppress(OSError):
                screen.flush()
            _give_back()
            _screen.clear()
            with suppress(OSError):
                screen.close()
            sys.__stderr__ = new  # type: ignore[misc]
            text.seek(max(0, text.tell() - _MOST_SAID))
            with suppress(OSError):
                new.write(text.read().decode("utf-8", "replace"))
                new.flush()


@contextmanager
def heard(app: SignalledApp) -> Iterator[Signals]:
    """While the app runs, signals end it properly."""
    signals = Signals(app)
    app.signals = signals
    with signals_heard(signals.hear):
        yield signals
