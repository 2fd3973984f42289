"""What the tests of the screen share: an app over the sample workspace on a fixed day, driven by keys."""

from __future__ import annotations

import asyncio
import datetime as dt
import difflib
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from msgspec.structs import replace
from rich.segment import Segment
from textual import events
from textual._context import active_app, visible_screen_stack
from textual.keys import _character_to_key, key_to_character
from textual.message import Message
from textual.message_pump import MessagePump
from textual.notifications import Notify
from textual.pilot import Pilot

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.events import Event, Listener, SyncFinished
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.facts import Facts
from tests.support.paths import TESTS
from tests.support.waiting import LONG

TODAY = dt.date(2026, 3, 20)
NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC).timestamp()
TINY, SMALL, LARGE = (60, 20), (80, 24), (120, 36)
SCREENS = TESTS / "tui" / "screens"
QUESTION = "how is the omada vlan set up"


def sample(folder: Path, *, more: bool = False) -> Path:
    """Return the sample workspace as it stands on TODAY, with `more` notes where asked."""
    return demo.materialize(folder, TODAY, more=more)


def make_app(
    workspace: Path,
    *,
    query: str = "",
    provider: str = "scripted",
    watch: bool = False,
    read_only: bool = False,
    changes: Sequence[tuple[str, str]] = (),
    suggestions: Sequence[str] = (),
) -> MemoryApp:
    """Return the app over a real engine: scripted vectors, fixed clock, no watcher unless it is to `watch`."""
    places = {"workspace": str(workspace), "index": str(workspace.parent / "index.sqlite")}
    changes = (("sync.watch", str(watch).lower()), *changes)
    options = Options(**places, provider=provider, now=NOW, read_only=read_only, changes=changes)
    app = MemoryApp(lambda hear: Engine.open(options, at_noon(hear)), query=query, suggestions=suggestions)
    # The count would come into the first line whenever a slow test takes longer; each test has a home of its own.
    app.count_seconds = app.configuration_seconds = 10 * LONG
    return app


def at_noon(hear: Listener, now: float = NOW) -> Listener:
    """Return `hear` for events of the fixed clock that took no time: pictures show when and how long."""

    def listener(event: Event) -> None:
        event = replace(event, at=now)
        hear(replace(event, seconds=0.1) if isinstance(event, SyncFinished) else event)

    return listener


SHORTEST = 0.003
"""Seconds between two looks at whether the app rests."""
SOON = 1.0
"""A timer of at most so many seconds is waited for: what is drawn when the cursor rests. A notification stays."""
_TODO = ("_dirty_widgets", "_callbacks", "_layout_required", "_scroll_required", "_recompose_required")


def _is_waiting(node: MessagePump) -> bool:
    """Return whether `node` has handled every message; while a handler of it awaits something it has not."""
    queue = node._message_queue
    return queue.empty() and not node._next_callbacks and any(not each.done() for each in queue.ready_event._waiters)


def undrawn(app: MemoryApp) -> str:
    """Return what message is not handled or what change not on the screen; empty where there is none."""
    if busy := [node for node in [app, *app._registry] if not _is_waiting(node)]:
        return f"messages of {busy[0]}"
    # Textual lays out nothing behind the screen in front.
    if left := [name for name in _TODO if getattr(app.screen, name)]:
        return f"the picture of {app.screen}: {', '.join(left)}"
    # Its keys are mounted in a task of their own; behind a dialog they would never be drawn.
    if not all(footer.children for footer in app.screen.query("Footer")):
        return "the keys in the footer"
    return "a resize" if app._resize_event is not None else ""


def unsettled(app: MemoryApp) -> str:
    """Return what is on its way: the first index, a worker, a timer, something to draw; or nothing."""
    engine = app.session.engine
    if engine is None or app.session.status is None:
        return "the index is being opened"
    if app.session.progress or app.will_read_facts or not engine.index.writer.wait_idle(0):
        return f"the writer is at work: {app.session.progress}"
    if workers := [worker for worker in app.workers if worker.is_running and not worker.is_cancelled]:
        return f"{workers[0]}"
    timers = [
        timer
        for node in [app, *app._registry]
        for timer in node._timers
        if timer._repeat is not None and timer._interval <= SOON and timer._task and not timer._task.done()
    ]
    return f"{timers[0]}" if timers else undrawn(app)


async def rest(pilot: Pilot[int], unrest: Callable[[MemoryApp], str] = unsettled) -> None:
    """Wait until `unrest` has nothing to say three times in a row, or the app was left.

    What a thread posts is in a queue only a moment later.
    """
    app = pilot.app
    assert isinstance(app, MemoryApp)
    quiet, last, end = 0, "", time.monotonic() + LONG
    pause = SHORTEST
    while time.monotonic() < end:
        await asyncio.sleep(pause)
        last = "" if app._exit or app._exception else unrest(app)
        quiet = 0 if last else quiet + 1
        pause = min(1.5 * pause, 4 * SHORTEST) if last else SHORTEST
        if quiet == 3:
            return
    raise AssertionError(f"the app did not come to rest: {last}")


class Window:
    """Runs `app` in a window of `size` without a terminal; a plain test presses keys and reads what is shown.

    Toasts are drawn only where `toasts` are looked at: they come and go by the clock.
    """

    def __init__(
        self, app: MemoryApp, size: tuple[int, int] = LARGE, *, wait: bool = True, toasts: bool = False
    ) -> None:
        self.app = app
        self._runner = asyncio.Runner()
        self.notices: list[str] = []
        """Every sentence that was said, oldest first."""
        self._running = app.run_test(size=size, message_hook=self._hear, notifications=toasts)
        self.pilot: Pilot[int] = self.run(self._running.__aenter__())
        if wait:
            self.settle()

    def run(self, steps: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Any:
        """Return what `steps` give, done on the screen's thread."""

        async def task() -> Any:
            return await steps

        return self._runner.run(task())

    def __enter__(self) -> Window:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.run(self._running.__aexit__(None, None, None))
        finally:
            self._runner.close()

    def settle(self) -> Window:
        """Wait until the app shows everything that it is going to show."""
        self.run(rest(self.pilot))
        return self

    def until(self, fact: Callable[[], object]) -> Window:
        """Wait until `fact` holds, which need not be the end."""

        async def wait() -> None:
            end = time.monotonic() + LONG
            while not fact():
                assert time.monotonic() < end, f"it did not come to pass:\n{self.text}"
                await asyncio.sleep(SHORTEST)

        self.run(wait())
        return self

    def press(self, *keys: str) -> Window:
        """Press `keys`, each after what the last one set off is done."""
        for key in keys:
            self.burst(key)
            self.settle()
        return self

    def type(self, text: str) -> Window:
        """Type `text` in one go, as a terminal hands over what was typed while the app was busy."""
        self.burst(*text)
        return self.settle()

    def burst(self, *keys: str) -> None:
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else key_to_character(key)))

    def ask(self, question: str = QUESTION) -> Window:
        """Ask `question`, and go to the hits."""
        return self.press("slash").type(question).press("enter")

    def resize(self, width: int, height: int) -> Window:
        self.run(self.pilot.resize_terminal(width, height))
        return self.settle()

    @property
    def lines(self) -> list[str]:
        """Return the screen line by line, with what is behind a dialog."""

        return ["".join(part.text for part in strip) for strip in self.strips]

    @property
    def strips(self) -> list[list[Segment]]:
        """Return the screen with its styles, line by line."""
        return [list(strip) for strip in self._in_app(self.app.screen._compositor.render_strips)]

    @property
    def picture(self) -> str:
        return self._in_app(self.app.export_screenshot)

    def _in_app(self, draw: Callable[[], Any]) -> Any:
        def drawn() -> Any:
            active_app.set(self.app)
            visible_screen_stack.set(self.app._background_screens)
            return draw()

        return copy_context().run(drawn)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines) + "\n"

    def _hear(self, message: Message) -> None:
        if isinstance(message, Notify):
            self.notices.append(str(message.notification.message))

    def matches(self, name: str, *sizes: tuple[int, int]) -> None:
        """Hold the screen, as it is or at each of `sizes`, against screens/NAME_WxH.txt.

        MEMORY_TUI_UPDATE_SCREENS=1 writes the files instead.
        """
        for size in sizes or (tuple(self.app.size),):
            if size != tuple(self.app.size):
                self.resize(*size)
            _hold(SCREENS / f"{name}_{size[0]}x{size[1]}.txt", without_accidents(self.text))


_VARYING = (
    (re.compile(r"\b\d\d:\d\d:\d\d?"), "hh:mm:ss"),
    (re.compile(r"SQLite \d[\d.]*"), "SQLite N"),
    (re.compile(r"sqlite-vec v\d[\d.]*"), "sqlite-vec vN"),
    (re.compile(r"\b\d+\.\d MB"), "N MB"),
    (re.compile(r"synced \d\d:\d\d"), "synced hh:mm"),
)


def without_accidents(text: str) -> str:
    """Return `text` with what differs between runs and machines blotted out, as wide as before."""
    for pattern, blot in _VARYING:
        text = pattern.sub(lambda match, word=blot: word.ljust(len(match[0]))[: len(match[0])], text)
    return text


def _hold(file: Path, screen: str) -> None:
    if os.environ.get("MEMORY_TUI_UPDATE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen, "utf-8")
    known = file.read_text("utf-8") if file.exists() else ""
    if screen != known:
        rows = difflib.unified_diff(known.split("\n"), screen.split("\n"), file.name, "this run", lineterm="", n=1)
        pytest.fail("\n".join(["MEMORY_TUI_UPDATE_SCREENS=1 writes it:", *rows]), pytrace=False)


def after(*keys: str) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Return what `snap_compare` of pytest-textual-snapshot runs before its picture: `keys`, and rests but in words."""

    async def steps(pilot: Pilot[int]) -> None:
        await rest(pilot)
        for key in keys:
            await pilot.press(key)
            if len(key) > 1 and key != "space":
                await rest(pilot)

    return steps


def go(window: Window, text: str) -> Window:
    """Move the cursor of the list in front to the row that holds `text`, in one go."""
    rows = window.app.screen.query(Facts).first()
    window.press("home")
    places = [at for at, fact in enumerate(rows.facts) if fact.words and text in f"{fact.words} {fact.does}"]
    assert places, f"no row holds {text!r}:\n{window.text}"
    window.burst(*("down" for row in rows.options[(rows.highlighted or 0) + 1 : places[0] + 1] if not row.disabled))
    return window.settle()
