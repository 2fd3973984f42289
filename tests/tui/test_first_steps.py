"""Five first steps: each waits for its own key, none covers what it speaks of."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.widgets.first_steps import STEPS, FirstSteps
from memory_tui.tui.widgets.status_bars import KeyHints, StepsPane
from tests.support.tui import SMALL, ask, drive, make_app, matches_screen, press, said, sample, settled, text_of


def test_every_step_waits_for_its_deeds() -> None:
    steps: FirstSteps | None = FirstSteps()
    for step in STEPS:
        assert steps is not None
        assert steps.step is step
        assert steps.after("redraw") == steps
        for deed in sorted(step.deeds):
            assert steps is not None
            steps = steps.after(deed)
    assert steps is None


def test_the_steps_lead_through_the_app_and_end(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))
    app.do_first_steps()

    async def steps(pilot: Pilot[int]) -> None:
        assert isinstance(pilot.app, MemoryApp)
        for size in ((60, 20), (200, 50), (120, 36), SMALL):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            matches_screen(app, "first_steps")
        pane = app.screen.query_one(StepsPane)
        assert pane.region.bottom == app.screen.query_one(KeyHints).region.y, "above the keys, over no pane"
        await ask(pilot, "router")
        assert "Step 2 of 5" in text_of(app)
        await press(pilot, "w")
        assert "Step 3 of 5" in text_of(app)
        await press(pilot, "t", "l")
        assert "Step 4 of 5" in text_of(app)
        await press(pilot, "1", "4")
        assert "Step 4 of 5" in text_of(app), "a later step does not count before its turn"
        await press(pilot, "1", "u", "g", "t")
        await press(pilot, "p", "escape")
        assert app.first_steps == FirstSteps(3), "a refused undo and a preview that was left are no deeds"
        await press(pilot, "p", "enter")
        assert app.first_steps == FirstSteps(3, frozenset({"promote"}))
        await press(pilot, "u")
        assert "Step 5 of 5" in text_of(app)
        await press(pilot, "escape")
        assert app.first_steps is None, "esc with nothing to go back to ends them"
        assert "Step" not in text_of(app)
        app.first_steps = FirstSteps(len(STEPS) - 1)
        await press(pilot, "4")
        assert app.first_steps is None
        assert "last of the first steps" in said(app)

    drive(app, steps)
