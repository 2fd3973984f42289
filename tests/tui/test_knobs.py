"""Every knob by key, mouse and typing, at both sizes; those without effect say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from memory_tui.settings import TUNE_KEYS
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.tuning import dials
from memory_tui.tui.widgets.tune_strip import TuneStrip
from tests.support.tui import LARGE, SMALL, ask, drive, make_app, press, said, sample, settled, text_of

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
OPENCLAW = [
    ("profile", "openclaw-2026.3"),
    ("query.hybrid.temporalDecay.enabled", "true"),
    ("query.hybrid.mmr.enabled", "true"),
]


@pytest.fixture
def app(tmp_path: Path) -> MemoryApp:
    return make_app(sample(tmp_path / "notes"), changes=OPENCLAW)


def value_of(app: MemoryApp, key: str) -> object:
    assert app.tuning is not None
    return app.tuning.days if key == "date" else app.tuning.settings.values[key].value


async def to_knob(pilot: Pilot[int], key: str) -> TuneStrip:
    strip = pilot.app.screen.query_one(TuneStrip)
    strip.focus()
    await settled(pilot)
    while strip.dial is not None and strip.dial.knob.key != key:
        await press(pilot, "j")
    return strip


@SIZES
def test_every_knob_turns_by_key_and_turns_back(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        for key in (*TUNE_KEYS, "date"):
            if key in ("recency.weight", "dateBoost", "secondStage.weight", "secondStage.neighbour"):
                continue
            before = value_of(app, key)
            await to_knob(pilot, key)
            await press(pilot, "h" if before is True else "l")
            assert value_of(app, key) != before, key
            await press(pilot, "u")
            assert value_of(app, key) == before, key

    drive(app, steps, size)


@SIZES
def test_every_knob_is_shown_and_those_without_effect_say_why(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        assert app.tuning is not None
        for dial in dials(app.tuning.settings, app.tuning.opened):
            await to_knob(pilot, dial.knob.key)
            assert dial.knob.label in text_of(app) or dial.shown in text_of(app)
            if dial.ignored:
                await press(pilot, "l")
                assert said(app) == f"{dial.knob.label} has no effect: {dial.ignored}."

    drive(app, steps, size)


def test_the_scale_is_dragged_where_the_screen_is_low(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        strip = await to_knob(pilot, "query.minScore")
        line = next(y for y, text in enumerate(text_of(app).splitlines()) if "●" in text)
        await pilot.mouse_down(strip, offset=(1, line - strip.region.y))
        await settled(pilot)
        assert value_of(app, "query.minScore") == 0
        await pilot.hover(strip, offset=(21, line - strip.region.y))
        await settled(pilot)
        assert value_of(app, "query.minScore") == 1
        await pilot.mouse_up(strip, offset=(21, line - strip.region.y))

    drive(app, steps, SMALL)


def test_a_click_on_a_value_chooses_its_knob_where_the_screen_is_low(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        strip = await to_knob(pilot, "query.minScore")
        row = text_of(app).splitlines()[strip.region.y]
        await pilot.click(strip, offset=(row.index("top "), 0))
        await settled(pilot)
        assert strip.dial is not None
        assert strip.dial.knob.key == "query.maxResults"
        before = value_of(app, "query.hybrid.temporalDecay.enabled")
        for _ in range(2):
            row = text_of(app).splitlines()[strip.region.y]
            await pilot.click(strip, offset=(row.index("decay "), 0))
            await settled(pilot)
        assert value_of(app, "query.hybrid.temporalDecay.enabled") != before

    drive(app, steps, SMALL)


@SIZES
def test_the_wheel_turns_the_knob_under_the_mouse(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        strip = await to_knob(pilot, "query.minScore")
        lines = text_of(app).splitlines()
        word = "top 6" if size == SMALL else "results  "
        y = next(i for i in range(strip.region.y, strip.region.bottom) if word in lines[i])
        offset = (lines[y].index(word) + 1, y)
        await pilot._post_mouse_events([MouseScrollUp], offset=offset)
        await settled(pilot)
        assert value_of(app, "query.maxResults") == 7
        word = "hybrid on" if size == SMALL else "hybrid  "
        lines = text_of(app).splitlines()
        y = next((i for i in range(strip.region.y, strip.region.bottom) if word in lines[i]), -1)
        assert y >= 0, text_of(app)
        offset = (lines[y].index(word) + 1, y)
        await pilot._post_mouse_events([MouseScrollDown], offset=offset)
        await settled(pilot)
        assert value_of(app, "query.hybrid.enabled") is True, "the wheel passes over a switch that is not in focus"
        await pilot._post_mouse_events([MouseScrollDown], offset=offset)
        await settled(pilot)
        assert value_of(app, "query.hybrid.enabled") is False

    drive(app, steps, size)


def test_a_switch_does_not_flutter_while_the_mouse_is_held(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada vlan")
        strip = app.screen.query_one(TuneStrip)
        lines = text_of(app).splitlines()
        y = next(i for i in range(strip.region.y, strip.region.bottom) if " mmr  " in lines[i])
        x = lines[y].index(" mmr  ") + 20
        await pilot.mouse_down(offset=(x, y))
        await settled(pilot)
        after = value_of(app, "query.hybrid.mmr.enabled")
        assert after is False
        for step in range(1, 4):
            await pilot.hover(offset=(x + step, y))
            await settled(pilot)
            assert value_of(app, "query.hybrid.mmr.enabled") is after
        await pilot.mouse_up(offset=(x + 3, y))

    drive(app, steps, LARGE)
