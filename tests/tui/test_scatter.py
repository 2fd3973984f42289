"""The scatter shows every chunk by score and age, and its line turns minScore."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.search.scatter_view import ScatterView
from memory_tui.tui.widgets.query import QueryBox
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.scatter import Scatter
from tests.support.tui import LARGE, SMALL, ask, drive, make_app, matches_screen, press, sample, settled, text_of


def test_the_picture_follows_the_knob_and_the_knob_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, MemoryApp)
        await press(pilot, "/", "/")
        assert not app.screen.query_one(QueryBox).input.value, "a slash into the empty box is no text"
        await ask(pilot, "How is the VLAN on the Omada router set up?")
        await press(pilot, "z", "p")
        for size in ((60, 20), SMALL, (200, 50), LARGE):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            matches_screen(app, "scatter")
        assert isinstance(app.screen, ScatterView)
        picture = app.screen.query_one(Scatter)
        assert picture.trace is not None
        assert len(picture.seen) == len(picture.trace.recalled) + len(picture.trace.lost)
        assert "changes the ranking" in text_of(app), "it is said before the key"

        await press(pilot, "L")
        assert picture.trace.floor == pytest.approx(0.01)
        at = Offset(30, picture._row(picture.trace.floor)) + picture.content_region.offset
        goal = Offset(30, picture._row(0.6)) + picture.content_region.offset
        await pilot._post_mouse_events([events.MouseDown], offset=at, button=1)
        await pilot._post_mouse_events([events.MouseMove], offset=goal, button=1)
        await pilot._post_mouse_events([events.MouseUp], offset=goal, button=1)
        await settled(pilot)
        floor = picture.trace.floor
        assert floor == pytest.approx(0.6, abs=0.05), "the line was dragged"
        assert all(hit.score >= floor for hit in picture.trace.recalled)
        await press(pilot, "u")
        assert picture.trace.floor < floor

        picture.at = len(picture.seen) - 1
        within = picture._row(picture.trace.recalled[1].score)
        at = Offset(12, picture._row(picture.trace.recalled[-1].score)) + picture.content_region.offset
        goal = Offset(12, within) + picture.content_region.offset
        for kind, place in ((events.MouseDown, at), (events.MouseMove, goal), (events.MouseUp, goal)):
            await pilot._post_mouse_events([kind], offset=place, button=1)
        await settled(pilot)
        left = picture.trace.recalled
        assert picture.trace.settings.whole("query.maxResults") == len(left) < 6, "the limit was dragged"
        assert all(picture._row(hit.score) <= within for hit in left)
        await press(pilot, "u")

        first = picture.hit
        await press(pilot, "j")
        assert first is not None
        assert picture.hit is not None
        assert picture.hit.score <= first.score
        await press(pilot, "enter")
        page = app.screen.query_one(Reader).page
        assert page is not None
        assert page.path == picture.hit.chunk.path

    drive(make_app(sample(tmp_path / "notes")), steps)
