"""The rule between panes is moved by keys and by mouse, and views remember where it was put."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.widgets.panes import FEWEST, STEP, Panes, read_shares
from tests.support.tui import drive, make_app, press, sample, settled


def _width(pilot: Pilot[int]) -> int:
    first = pilot.app.screen.query_one(Panes).children[0]
    return first.region.width


def test_keys_and_mouse_move_the_rule_and_the_view_remembers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = sample(tmp_path)
    left: list[int] = []

    async def steps(pilot: Pilot[int]) -> None:
        assert isinstance(pilot.app, MemoryApp)
        start = _width(pilot)
        await press(pilot, ">")
        assert _width(pilot) == start + STEP
        await press(pilot, "tab", ">")
        assert _width(pilot) == start, "the other pane gets wider by what this one loses"
        rule = Offset(start - 1, 10)
        await pilot._post_mouse_events([events.MouseDown], offset=rule, button=1)
        await pilot._post_mouse_events([events.MouseMove], offset=Offset(60, 10), button=1)
        await pilot._post_mouse_events([events.MouseUp], offset=Offset(60, 10), button=1)
        await settled(pilot)
        assert _width(pilot) == 60
        await pilot._post_mouse_events([events.MouseDown], offset=Offset(59, 10), button=1)
        await pilot._post_mouse_events([events.MouseMove], offset=Offset(2, 10), button=1)
        await pilot._post_mouse_events([events.MouseUp], offset=Offset(2, 10), button=1)
        await settled(pilot)
        assert _width(pilot) == FEWEST, "no pane goes away"
        await press(pilot, ">")
        left.append(_width(pilot))
        await press(pilot, "3")
        await settled(pilot)
        assert pilot.app.shares.keys() == {"browse"}, "each view has its own"
        await press(pilot, ">", "1")

    drive(make_app(workspace), steps)
    assert read_shares().keys() == {"browse", "index"}

    async def again(pilot: Pilot[int]) -> None:
        await settled(pilot)
        assert _width(pilot) == left[0]
        await pilot.resize_terminal(60, 20)
        await settled(pilot)
        await press(pilot, ">")
        assert _width(pilot) == 60, "panes above each other have the whole width"

    drive(make_app(workspace), again)


def test_the_rule_before_the_last_of_three_panes_moves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def drag(pilot: Pilot[int], at: int, to: int) -> None:
        for kind, x in ((events.MouseDown, at), (events.MouseMove, to), (events.MouseUp, to)):
            await pilot._post_mouse_events([kind], offset=Offset(x, 10), button=1)
        await settled(pilot)

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.resize_terminal(200, 50)
        await settled(pilot)
        files, reading, about = (child for child in pilot.app.screen.query_one(Panes).children if child.display)
        was = files.region.width
        for at in (about.region.x, about.region.x - 1):
            await drag(pilot, at, 140)
            assert (about.region.x, about.region.right) == (140, 200)
            assert (files.region.width, reading.region.right) == (was, 140)
        await drag(pilot, 140, 3)
        assert (files.region.width, reading.region.width) == (was, FEWEST), "no pane goes away"
        await drag(pilot, files.region.right, 120)
        assert files.region.width == was, "nor does it take from the last"
        await drag(pilot, about.region.x, 150)
        about.query("*").first().focus() if not about.can_focus else about.focus()
        await press(pilot, ">")
        assert about.region.width == 50 + STEP

    drive(make_app(sample(tmp_path)), steps)
    assert read_shares().keys() == {"browse", "browse, last"}


def test_a_state_that_makes_no_sense_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_tui.tui.widgets.panes import SCOPE, SHARES

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for key, value in (("browse", 7), ("index", "wide"), ("search", 0.4), ("inbox", None)):
        SHARES.of(SCOPE).put(key, value)
    assert read_shares() == {"search": 0.4}


def test_the_demo_leaves_no_place_of_a_divider_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = make_app(sample(tmp_path))
    app.suggestions = ("what was asked for the demo",)

    async def steps(pilot: Pilot[int]) -> None:
        start = _width(pilot)
        await press(pilot, ">")
        assert _width(pilot) == start + STEP

    drive(app, steps)
    assert read_shares() == {}


def test_a_click_on_a_divider_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def steps(pilot: Pilot[int]) -> None:
        start = _width(pilot)
        await pilot.click(offset=(start - 1, 10))
        await settled(pilot)
        assert _width(pilot) == start

    drive(make_app(sample(tmp_path)), steps)
    assert read_shares() == {}
