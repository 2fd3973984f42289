"""keys.toml: every meaning can have other keys, faults are named, and a bad file changes nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memory_tui.tui
from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.key_meanings import ALWAYS, MEANINGS, WHILE_TYPING, is_letter, keys_given, load_keys
from memory_tui.tui.keymap import TYPING


@pytest.mark.parametrize(
    ("given_keys", "said"),
    [
        ({"undoo": "U"}, ['There is no meaning called "undoo". Did you mean "undo"?']),
        ({"xyzzy": "U"}, ["memory-tui help keys"]),
        ({"undo": "r"}, ['"look again"', '"undo"', "r would mean both"]),
        ({"undo": "g"}, ["waits for a second letter"]),
        ({"undo": "ctrl+i"}, ["terminals take it for tab"]),
        ({"undo": "alt+x"}, ["is no key"]),
        ({"undo": 7}, ["takes a key or a list of keys"]),
        ({"undo": []}, ["takes a key or a list of keys"]),
        ({"undo": ["U", None]}, ["takes a key or a list of keys"]),
        ({"do": "o"}, ["keeps enter"]),
        ({"quit": "Q"}, ["needs a key that is no letter"]),
        ({"go today": "gh"}, ['"go history"', '"go today"']),
    ],
)
def test_a_fault_is_named_in_a_sentence(given_keys: dict[str, object], said: list[str]) -> None:
    _, faults = keys_given(given_keys)
    assert all(part in " ".join(faults) for part in said), faults


def test_keys_can_be_swapped_and_added() -> None:
    found, faults = keys_given({"undo": "r", "look again": ["u", "f5"], "do": ["enter", "O"], "go today": "gT"})
    assert faults == []
    assert found == {"undo": ("r",), "look again": ("u", "f5"), "do": ("enter", "O"), "go today": ("gT",)}


@pytest.mark.parametrize("content", [b"undo = ", b"\xff\xfe", b'undo = "r"', b'nothing = "x"', b"[undo]\na = 1"])
def test_a_bad_file_changes_no_key_and_says_so(tmp_path: Path, content: bytes) -> None:
    before, file = dict(MEANINGS), tmp_path / "keys.toml"
    file.write_bytes(content)
    said = load_keys(file)
    assert "keys.toml is not used, so every key is as usual." in said
    assert dict(MEANINGS) == before
    assert file.read_bytes() == content


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert load_keys(tmp_path / "keys.toml") == ""


def test_a_folder_in_place_of_the_file_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in load_keys(tmp_path)


KEYS = st.sampled_from(["u", "r", "U", "gx", "zz", "f5", "ctrl+x", "enter", "escape", "tab", "é", ",", "g", "ctrl+c"])


@given(st.dictionaries(st.sampled_from([*MEANINGS, "nothing"]), st.lists(KEYS, max_size=3), max_size=6))
def test_what_is_taken_leaves_every_meaning_its_own_key(given_keys: dict[str, object]) -> None:
    found, faults = keys_given(given_keys)
    if not faults:
        keys = [key for name, meaning in MEANINGS.items() for key in found.get(name, meaning.keys)]
        assert len(keys) == len(set(keys))
        assert all(found.get(name, MEANINGS[name].keys) for name in MEANINGS)
        assert all(key in found.get(name, MEANINGS[name].keys) for name, key in ALWAYS.items())


def test_what_is_wanted_while_typing_has_a_key_there() -> None:
    typed = {action.meaning for action in ACTIONS if action.where in TYPING or action.priority} - set(ALWAYS)
    assert typed == set(WHILE_TYPING)
    assert all(any(not is_letter(key) for key in MEANINGS[name].keys) for name in typed)


PROGRAM = """
import asyncio, sys
from pathlib import Path
from memory_tui.tui.key_meanings import load_keys
assert load_keys(Path(sys.argv[1])) == ""
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.help import written
from memory_tui.tui.widgets.first_steps import STEPS
from memory_tui.tui.widgets.status_bars import KeyHints, TabLine

async def main():
    app = MemoryApp(lambda listener: None)
    app.jobs.open = lambda: None
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("comma")
        assert app.current_mode == "index", app.current_mode
        tabs = app.screen.query_one(TabLine).render().plain
        assert "f7 Search" in tabs and ", Index" in tabs, tabs
        hints = app.screen.query_one(KeyHints).render().plain
        assert " gD Doctor" in hints, hints
        await pilot.press("2")
        assert app.current_mode == "index", "the old key still goes there"
        await pilot.press("g", "D")
        message = app.screen.query_one(KeyHints).message
        assert "index is still being opened" in message and "esc takes it back" in message, message
        await pilot.press("escape")
        await pilot.press("r")
        assert "r does nothing here. ? shows" in app.screen.query_one(KeyHints).message
        await pilot.press("f7")
        assert app.current_mode == "search", app.current_mode
        lines = "\\n".join(line.plain for line in written(["everywhere"], 80))
        assert "Z" in lines and "gD" in lines, lines
        assert "U undoes it." in STEPS[2].how
asyncio.run(main())
"""


def test_views_hints_help_and_sentences_follow_the_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(
        '"view 2" = "f7"\n"view 3" = ","\n"look again" = "Z"\n"go doctor" = "gD"\nundo = "U"\n', encoding="utf-8"
    )
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], check=False, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr[-2000:]


_KEY = r"(?:ctrl\+[a-z]|[gz][a-z]|[b-zB-HJ-Z/?:+@*\[\]])"
_DOES = (
    "undoes|redoes|saves|shows|opens|marks|judges|asks|quits|explains|finds|enlarges|lists|looks|brings|archives"
    "|begins|commits|withdraws|turns?|moves?|switches|there|resumes"
)
_SPELT = re.compile(rf"(?<![\w'.+:#-]){_KEY} (?:{_DOES})\b|[Pp]ress {_KEY}(?![\w'])|\({_KEY}\)")


def test_no_sentence_spells_a_key() -> None:
    """A sentence takes its key from the table by meaning; y and n of a question are no keys of the table."""
    spelt = []
    for path in sorted(Path(memory_tui.tui.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                spelt += [
                    (path.name, node.lineno, hit[0])
                    for hit in _SPELT.finditer(node.value)
                    if hit[0] not in ("(y)", "(n)", "go there", "(m)", "(t)", "(b)")
                ]
    assert spelt == []
