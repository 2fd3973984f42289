"""Random keys find no fault, no view without a way out, and nothing in the notes that undo does not take back."""

import random

import pytest

from memory_tui.tui.keys import TABLE
from tests.support.tui import LARGE, SMALL, TINY, Window, make_app, sample

NEVER = {"app.quit", "note.editor"}
"""These end the app, or start a program."""
EXTRA = ("tab", "shift+tab", "pagedown", "home", "end", "backspace", "x", "omada", "#", "9", "ctrl+a", "delete")
KEYS = [*(name for key in TABLE if key.id not in NEVER for name in key.keys.split(",")), *EXTRA, "escape", "enter"]


def texts(workspace):
    return {str(path.relative_to(workspace)): path.read_bytes() for path in sorted(workspace.rglob("*.md"))}


def take_all_back(curator):
    while stack := curator.stack("undo"):
        curator.undo(stack[0].id, merging=True)


@pytest.mark.parametrize(("seed", "size"), [(1, SMALL), (2, LARGE), (3, TINY)])
def test_random_keys(tmp_path, seed, size):
    workspace = sample(tmp_path / "notes")
    before = texts(workspace)
    dice, pressed = random.Random(seed), []
    with Window(make_app(workspace), size) as window:
        for _ in range(30):
            keys = dice.choices(KEYS, k=dice.choice((1, 1, 4)))
            pressed += keys
            for key in keys:
                window.burst(*(key if key == "omada" else (key,)))
            window.settle()
            assert window.app._exception is None, pressed
        for _ in range(8):
            # Out of whatever is open; an editor asks whether its text may go.
            window.press("escape")
            if len(window.app.screen_stack) > 1:
                window.press("y")
        assert len(window.app.screen_stack) == 1, f"no way out after {pressed}:\n{window.text}"
        assert window.press("1").app.view.id == "notes", pressed
        engine = window.app.session.engine
        assert engine is not None
        take_all_back(engine.notes.curator)
    assert texts(workspace) == before, pressed
