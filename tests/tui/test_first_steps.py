"""Five first steps: each waits for its own key, none covers what it speaks of."""

from __future__ import annotations

import re
from pathlib import Path

from textual.pilot import Pilot

from memory_tui import manual
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.key_meanings import is_sequence
from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.widgets.first_steps import STEPS, FirstSteps
from memory_tui.tui.widgets.status_bars import KeyHints, StepsPane
from tests.support.tui import (
    SMALL,
    ask,
    drive,
    enter,
    make_app,
    matches_screen,
    press,
    said,
    sample,
    settled,
    text_of,
    until,
)


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
        app.show_message("A sentence of so many words that it needs two lines. " * 2)
        await settled(pilot)
        hints = app.screen.query_one(KeyHints).region
        assert hints.height == 2
        assert pane.region.bottom == hints.y, "a sentence of two lines is seen whole"
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


def test_the_ten_tasks_take_the_keys_that_the_manual_says(tmp_path: Path) -> None:
    table = re.search(r"<!-- tasks -->\n(.*)\n<!-- /tasks -->", manual.text("keys"), re.DOTALL)
    assert table is not None
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()[2:]]
    tasks = {task: (keys.replace("`", "").split(), int(presses)) for task, keys, presses in rows}
    assert len(tasks) == 10
    for keys, presses in tasks.values():
        counted = [key for key in keys if key.islower() or not key.isalpha() or len(key) == 1]
        assert sum(2 if is_sequence(key) else 1 for key in counted if key != "minScore") == presses, keys
    app = make_app(sample(tmp_path / "notes"))
    today = tmp_path / "notes" / "memory" / "2026-03-20.md"
    typed = {"QUESTION": "router", "WORDS": "router", "TEXT": "the ladder is at Gareth's", "minScore": "minscore"}

    async def do(pilot: Pilot[int], task: str) -> None:
        for key in tasks[task][0]:
            if key in typed:
                await enter(pilot, typed[key])
            elif key == "ROW":
                await press(pilot, "down", "down", "down")
            else:
                await press(pilot, *(key if is_sequence(key) else [NAMES.get(key, key)]))

    async def steps(pilot: Pilot[int]) -> None:
        before = today.read_text("utf-8")
        await do(pilot, "write a line into the log")
        assert "Gareth's" in today.read_text("utf-8").removeprefix(before)
        await do(pilot, "undo it")
        await until(lambda: today.read_text("utf-8") == before)
        await do(pilot, "promote a line of today's log")
        assert "(from memory/2026-03-20.md)" in (tmp_path / "notes" / "MEMORY.md").read_text("utf-8")
        await press(pilot, "escape")
        await do(pilot, "why a chunk is not recalled")
        assert "NOT RECALLED" in text_of(app)
        await press(pilot, "escape", "escape", "1")
        await do(pilot, "find a note by words")
        assert isinstance(app.screen, ReaderView)
        await press(pilot, "escape", "1")
        await do(pilot, "set minScore")
        assert app.tuning is not None
        assert app.tuning.settings.number("query.minScore") > 0
        await press(pilot, "escape", "1")
        await do(pilot, "copy a hit as text, Markdown, JSON or command")
        await until(lambda: "to the clipboard" in said(app))

    drive(app, steps)


NAMES = {"/": "slash", ":": "colon", "]": "right_square_bracket"}


def test_a_question_given_at_the_start_counts(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"), query="router")
    app.do_first_steps()

    async def steps(_pilot: Pilot[int]) -> None:
        assert app.first_steps == FirstSteps(1)
        assert "Step 2 of 5" in text_of(app)

    drive(app, steps, SMALL)
