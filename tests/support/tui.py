"""What the screen's tests share: the sample workspace on a fixed day, and waiting for facts instead of time."""

from __future__ import annotations

import asyncio
import datetime as dt
import difflib
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from textual import events
from textual._context import visible_screen_stack
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.keys import _character_to_key, key_to_character
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.inbox import inbox_count
from memory_tui.tui.views.search import search_explain
from memory_tui.tui.widgets import status_bars
from memory_tui.tui.widgets.query import QueryBox
from memory_tui.tui.widgets.status_bars import TruthBar
from tests.support.paths import TESTS
from tests.support.waiting import LONG

TODAY = dt.date(2026, 3, 20)
NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC).timestamp()
SMALL, LARGE = (80, 24), (120, 36)
SCREENS = TESTS / "tui" / "screens"

# A sentence stays until a test has read it, however busy the machine is.
status_bars.SECONDS = 3600.0
# A number beside a tab comes when its test asks for it, not when another test takes long.
inbox_count.MOST_CHUNKS = 0
# Nobody's cursor moves while a test waits for what would change a verdict.
search_explain.REST = 0.05

_PARSED: dict[tuple[object, ...], list[RuleSet]] = {}
_parse_rules = Stylesheet._parse_rules


def _parsed_once(self: Stylesheet, css: str, *args: object, **named: object) -> list[RuleSet]:
    """The rules of `css`, which each app of the tests would parse anew."""
    key = (css, args, *sorted(named.items()), *sorted(self._variables.items()))
    if key not in _PARSED:
        _PARSED[key] = _parse_rules(self, css, *args, **named)  # type: ignore[arg-type]
    return _PARSED[key]


# A seventh of what an app's start costs.
Stylesheet._parse_rules = _parsed_once  # type: ignore[method-assign]

Steps = Callable[[Pilot[int]], Awaitable[None]]


def sample(folder: Path) -> Path:
    """The sample workspace as it stands on TODAY."""
    return demo.materialize(folder, TODAY)


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
    """The app over a real engine: scripted vectors, fixed clock, no watcher unless asked for."""
    options = Options(
        workspace=str(workspace),
        index=str(workspace.parent / "index.sqlite"),
        provider=provider,
        now=NOW,
        read_only=read_only,
        changes=(("sync.watch", str(watch).lower()), *changes),
    )
    return MemoryApp(
        lambda listener: Engine.open(options, listener), name=workspace.name, query=query, suggestions=suggestions
    )


SHORTEST = 0.003
"""Seconds between two questions whether the app rests."""


def is_waiting(node: MessagePump) -> bool:
    """Whether `node` has handled every message and waits for the next; while a handler awaits something it does not."""
    queue = node._message_queue
    return queue.empty() and not node._next_callbacks and any(not one.done() for one in queue.ready_event._waiters)


_TODO = ("_dirty_widgets", "_callbacks", "_layout_required", "_scroll_required", "_recompose_required")


def undone(screen: Screen[object]) -> list[str]:
    """What of `screen` is still to be laid out, drawn or called after that."""
    return [name for name in _TODO if getattr(screen, name)]


def seen_through(app: MemoryApp) -> list[Screen[object]]:
    """The screens that show behind the current one; Textual lays out nothing that an opaque screen covers."""
    return [] if app.screen.styles.background.a == 1 else list(app._background_screens)


def undrawn(app: MemoryApp) -> str:
    """What message is not handled or what change not on the screen; empty when there is none."""
    if not app.key_queue.resting:
        return "a key"
    if busy := [node for node in [app, *app._registry] if not is_waiting(node)]:
        return f"messages of {busy[0]}"
    for screen in (app.screen, *seen_through(app)):
        if left := undone(screen):
            return f"the picture of {screen}: {', '.join(left)}"
    return "a resize" if app._resize_event is not None else ""


def unsettled(app: MemoryApp) -> str:
    """What is on its way: the first index, a job, a question that is not asked yet, something to draw; or nothing."""
    if app.facts is None or app.engine is None:
        return "the index is being opened"
    if app.progress is not None or not app.engine.index.writer.wait_idle(0):
        return f"the writer is at work: {app.progress}"
    if app.jobs.busy:
        return "a job, or news that were not fetched"
    restless: list[object] = [view for view in app.views if not getattr(view, "resting", True)]
    restless += [box for box in app._registry if isinstance(box, QueryBox) and not box.resting]
    return f"what {restless[0]} waits for" if restless else undrawn(app)


async def rest(pilot: Pilot[int], unrest: Callable[[MemoryApp], str]) -> None:
    """Wait until `unrest` has nothing to say, or the app was left.

    Nothing has to be said three times in a row, because what a thread posts is in a queue only a moment later.
    """
    app = pilot.app
    assert isinstance(app, MemoryApp)
    quiet, last, until = 0, "", time.monotonic() + LONG
    pause = SHORTEST
    while time.monotonic() < until:
        await asyncio.sleep(pause)
        last = "" if app._exit else unrest(app)
        quiet = 0 if last else quiet + 1
        # What takes long is asked for less often: asking takes time from the thread that does it.
        pause = min(1.5 * pause, 4 * SHORTEST) if last else SHORTEST
        if quiet == 3:
            return
    raise AssertionError(f"the app did not come to rest: {last}")


async def settled(pilot: Pilot[int]) -> None:
    """Wait until the app shows everything it is going to show."""
    await rest(pilot, unsettled)


def as_the_app_runs() -> None:
    """Start tasks at once, as `App.run` does where Python can (3.12), and `App.run_test` does not."""
    if sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


def drive(app: MemoryApp, steps: Steps, size: tuple[int, int] = LARGE) -> None:
    """Run `app` without a terminal, wait for its first index, then do `steps`."""

    async def run() -> None:
        as_the_app_runs()
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            await steps(pilot)

    asyncio.run(run())


async def until(fact: Callable[[], object]) -> None:
    """Wait until `fact` holds."""
    end = time.monotonic() + LONG
    while not fact():
        assert time.monotonic() < end, "it did not come to pass"
        await asyncio.sleep(0.002)


def _strike(pilot: Pilot[int], key: str) -> None:
    name = _character_to_key(key) if len(key) == 1 else key
    pilot.app.post_message(events.Key(name, key if len(key) == 1 else key_to_character(key)))


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press `keys`, each after what the one before set off has come to rest."""
    for key in keys:
        _strike(pilot, key)
        await settled(pilot)


async def strike(pilot: Pilot[int], *keys: str) -> None:
    """Press `keys`, each when the one before has reached its pane and is drawn; nobody waits for what threads do."""
    for key in keys:
        _strike(pilot, key)
        await rest(pilot, undrawn)


def hurry(pilot: Pilot[int], *keys: str) -> None:
    """Press `keys` at once, and wait for nothing."""
    for key in keys:
        _strike(pilot, key)


async def burst(pilot: Pilot[int], *keys: str) -> None:
    """Press `keys` at once, as a terminal hands over what was typed while the app was busy."""
    hurry(pilot, *keys)
    await settled(pilot)


async def enter(pilot: Pilot[int], text: str) -> None:
    """Type `text` without waiting for each letter."""
    for letter in text:
        pilot.app.post_message(events.Key(_character_to_key(letter), letter))
    await settled(pilot)


async def ask(pilot: Pilot[int], question: str) -> None:
    """Ask `question` and go to the hits."""
    await press(pilot, "slash")
    app = pilot.app
    assert isinstance(app, MemoryApp)
    box = app.screen.query_one(QueryBox)
    box.input.value = question
    await settled(pilot)
    await press(pilot, "enter")


def lines_of(app: MemoryApp) -> list[str]:
    """The screen as text, line by line, with what is behind a dialog, as Textual draws it."""
    visible_screen_stack.set(app._background_screens)
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def text_of(app: MemoryApp) -> str:
    """The screen as one text."""
    return "\n".join(line.rstrip() for line in lines_of(app)) + "\n"


def truth(app: MemoryApp) -> str:
    """What stands in the first line beside the tabs."""
    return lines_of(app)[0][app.screen.query_one(TruthBar).region.x :].strip()


def said(app: MemoryApp) -> str:
    """What the message line says."""
    from memory_tui.tui.widgets.status_bars import KeyHints

    return app.screen.query_one(KeyHints).message


_VARYING = (
    (re.compile(r"\b\d\d:\d\d:\d\d?"), "hh:mm:ss"),
    (re.compile(r"SQLite \d[\d.]*"), "SQLite N"),
    (re.compile(r"sqlite-vec v\d[\d.]*"), "sqlite-vec vN"),
    (re.compile(r"\(\d+\.\d MB\)"), "(N MB)"),
)


def without_accidents(text: str) -> str:
    """`text` with what differs between runs and machines (times, versions, sizes) blotted out, same width."""
    for pattern, stand_in in _VARYING:
        text = pattern.sub(lambda match, word=stand_in: word.ljust(len(match[0]))[: len(match[0])], text)
    return text


def matches_screen(app: MemoryApp, name: str) -> None:
    """The screen equals tests/screens/NAME_WxH.txt; MEMORY_TUI_UPDATE_SCREENS=1 writes it instead."""
    size = app.size
    file = SCREENS / f"{name}_{size.width}x{size.height}.txt"
    shown = without_accidents(text_of(app))
    if os.environ.get("MEMORY_TUI_UPDATE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, "utf-8")
        return
    if not file.exists():
        pytest.fail(f"{file.name} does not exist; MEMORY_TUI_UPDATE_SCREENS=1 writes it")
    known = file.read_text("utf-8")
    if shown != known:
        difference = difflib.unified_diff(known.split("\n"), shown.split("\n"), file.name, "this run", lineterm="", n=1)
        pytest.fail("\n".join(difference), pytrace=False)


async def matches_screens(pilot: Pilot[int], name: str, *larger: tuple[int, int]) -> None:
    """The screen equals its text as it is, and at each of the sizes that the terminal is then given.

    The texts are the same whether the app starts at a size or is given it, which halves the starts.
    """
    app = pilot.app
    assert isinstance(app, MemoryApp)
    matches_screen(app, name)
    # What shows behind a dialog is drawn only after it; such a screen is compared at the size that it started at.
    assert not (larger and seen_through(app))
    for size in larger:
        await pilot.resize_terminal(*size)
        await settled(pilot)
        assert app.size == size
        matches_screen(app, name)


def fixed_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage times are shown as 1 ms."""
    from memory_tui.tui.widgets import query

    monkeypatch.setattr(query, "milliseconds", lambda _value: "1.0")
