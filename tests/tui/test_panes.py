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
        await press(pilot, "shift+tab", ">")
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


def test_a_state_that_makes_no_sense_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_tui.tui.widgets.panes import SCOPE, SHARES

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for key, value in (("browse", 7), ("index", "wide"), ("search", 0.4), ("inbox", None)):
        SHARES.of(SCOPE).put(key, value)
    assert read_shares() == {"search": 0.4}
