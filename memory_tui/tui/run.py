"""Runs the app on a terminal: what signals, a closed window and noisy libraries do to it, and how it ends."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from memory_tui.cancel import call_after, exit_status, report_signal, signals_heard
from memory_tui.config import places
from memory_tui.errors import ConfigError
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.keys import read_keymap
from memory_tui.tui.session import opener_of

if TYPE_CHECKING:
    from memory_tui.plan import Options

QUIT_SECONDS = 0.4
"""In how many seconds a key that quits ends the app, whatever does not hear of it: nothing is lost by that."""
HANG_SECONDS = 3.0
"""In how many seconds an app ends by itself after a signal; then the terminal is restored behind its back."""
LOOK_SECONDS = 1.0
"""How often the app looks whether its terminal is still there."""
MOST_NOISE = 64 << 10
"""Bytes of what libraries wrote to stderr that are said when the screen is gone."""
CLOSED = getattr(signal, "SIGHUP", signal.SIGTERM)
"""The signal of a window that was closed."""


def run(options: Callable[[], Options], query: str = "", suggestions: Sequence[str] = (), *, demo: bool = False) -> int:
    """Show the app on a workspace, with the tour where it is the `demo`. Raises what opening it raises."""
    keymap, doubt = dict[str, str](), ""
    try:
        keymap |= read_keymap(places.own_path().with_name("keys.toml"))
    except ConfigError as error:
        doubt = f"{error.message} {error.next_step}"
    if demo:
        from memory_tui.demo import leftovers

        doubt = "\n".join(filter(None, (doubt, *leftovers())))
        sys.stderr.write(doubt and f"{doubt}\n")
    app = TerminalApp(opener_of(options), query=query, suggestions=suggestions, keymap=keymap, doubt=doubt, demo=demo)
    # A full collection walks every widget that is made for the first frame; the app switches it on again.
    gc.disable()
    with signals_heard(app.handle_signal), screen_alone() as app.give_back:

        async def show() -> None:
            """Run the app until it ends, of itself or with its terminal."""
            try:
                await app.run_async()
            except OSError:
                if has_terminal():
                    raise
            if not app.number and not has_terminal():
                # Textual's reader of keys failed before the signal came.
                app.number = CLOSED
            # The terminal is the shell's again; asyncio would wait for every thread.
            app.is_over = True
            call_after(QUIT_SECONDS, app.abandon)

        asyncio.run(show())
    gc.enable()
    app.say_goodbye()
    if app.error is not None and not app.number:
        raise app.error
    return app.code


class TerminalApp(MemoryApp):
    """Ends for a signal and with its window, and gives the terminal back whatever happens."""

    number = 0
    """The signal that ends the app; 0 while none does."""
    loop: asyncio.AbstractEventLoop | None = None
    stopped = False
    """Whether Textual heard that the process is stopped."""
    is_over = False
    """Whether the terminal is the shell's again."""
    has_said = False
    give_back: Callable[[], None] = staticmethod(lambda: None)
    """Lets stderr be the terminal again."""

    @property
    def code(self) -> int:
        """Return the exit code."""
        return exit_status(self.number) if self.number else self.return_value or self.return_code or 0

    async def on_mount(self) -> None:
        """Listen from now on; what came before is done now."""
        self.loop = asyncio.get_running_loop()
        if self.number:
            self.leave(self.code)
        self.set_interval(LOOK_SECONDS, self.look)
        if hasattr(signal, "SIGCONT"):
            self._handle_stops()

    def handle_signal(self, number: int, _: FrameType | None = None) -> None:
        """End because of signal `number`; a second one does not wait."""
        if self.number:
            self.abandon()
        self.number = number
        call_after(HANG_SECONDS, self.abandon)
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.leave, exit_status(number))

    def leave(self, code: int) -> None:
        """End, and soon: what is written into index and journal is whole at any moment."""
        super().leave(code)
        call_after(QUIT_SECONDS, self.abandon)

    def abandon(self) -> None:
        """Restore the terminal and end the process, whatever still runs."""
        # First the way out: a terminal that takes nothing would hold up all that follows.
        call_after(LOOK_SECONDS, self.end)
        if self._driver is not None and not self.is_over:
            self._driver.stop_application_mode()
            self._driver.close()
        self.give_back()
        self.say_goodbye()
        self.end()

    def end(self) -> None:
        """Remove what was made for this run alone, which exit functions do, and end the process."""
        # One that hangs does not keep it.
        call_after(HANG_SECONDS, lambda: os._exit(self.code))
        atexit._run_exitfuncs()
        os._exit(self.code)

    def look(self) -> None:
        """End where the window is closed and nobody sent the signal that says so."""
        if not self.number and not has_terminal():
            self.handle_signal(CLOSED)

    def on_exit_app(self) -> None:
        """Leave by the usual way, which keeps what was typed and not saved, when the page in a browser was closed.

        Then Textual ends the app without `leave`: `_exit` is its flag that `exit` was called.
        """
        if not self._exit:
            self.leave(0)

    def say_goodbye(self) -> None:
        """Say once what became of unsaved text, and which signal ended the app."""
        if self.has_said:
            return
        self.has_said = True
        if self.number:
            report_signal(self.number, self.last_words)
        elif self.last_words:
            with suppress(OSError, ValueError):
                sys.stderr.write(f"{self.last_words}\n")

    def _handle_stops(self) -> None:
        """Set the terminal up again after a SIGSTOP, which nobody hears, and draw everything after any stop.

        Textual takes the raw modes for those of the shell then, and believes that its picture still stands.
        """
        stop, go = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)

        def stopping(number: int, frame: FrameType | None) -> None:
            """Remember that the program was stopped, before the handler of Textual gives the terminal back."""
            self.stopped = True
            if callable(stop):
                stop(number, frame)

        def going(number: int, frame: FrameType | None) -> None:
            """Take the terminal again, and draw anew."""
            # After a SIGSTOP, of which nobody heard: Textual sets up again only what was taken down.
            if not self.stopped and self._driver is not None:
                self._driver.suspend_application_mode()
            self.stopped = False
            if callable(go):
                go(number, frame)
            self.call_later(self.refresh, layout=True)

        signal.signal(signal.SIGTSTP, stopping)
        signal.signal(signal.SIGCONT, going)


def is_served() -> bool:
    """Return whether the app is drawn in a browser, over pipes to the server."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def has_terminal() -> bool:
    """Return whether keys can still be read from the terminal, or from the server of a browser's tab."""
    if not is_served():
        return os.isatty(0)
    # Asked for no events, it tells only that the server closed its end.
    poll = select.poll()
    poll.register(0, 0)
    return not poll.poll(0)


@contextmanager
def screen_alone() -> Iterator[Callable[[], None]]:
    """Keep what libraries write to stderr off the screen, which is drawn there too, and say it afterwards.

    Gives what lets stderr be the terminal again before that.
    """
    if (real := sys.__stderr__) is None or os.name != "posix" or real.fileno() != 2:
        yield lambda: None
        return
    real.flush()
    screen = os.fdopen(os.dup(2), "w", encoding=real.encoding)
    with tempfile.TemporaryFile() as noise:

        def give_back() -> None:
            """Make descriptor 2 the terminal again, once."""
            # Of a window that was closed nobody reads the rest.
            with suppress(OSError, ValueError):
                os.dup2(screen.fileno(), 2)
                screen.close()

        os.dup2(noise.fileno(), 2)
        vars(sys)["__stderr__"] = screen
        try:
            yield give_back
        finally:
            with suppress(OSError):
                real.flush()
            give_back()
            vars(sys)["__stderr__"] = real
            # Descriptor 2 moved the position of the file that it shares, so that is how much was written.
            noise.seek(max(0, noise.tell() - MOST_NOISE))
            with suppress(OSError):
                os.write(2, noise.read())
