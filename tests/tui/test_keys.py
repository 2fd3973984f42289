"""The key table: one meaning a key, the file of a person's own keys, the manual's page, the palette."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.binding import BindingsMap
from textual.keys import format_key

from memory_tui import manual
from memory_tui.errors import ConfigError
from memory_tui.tui import palette
from memory_tui.tui.keys import BY_ID, TABLE, bindings, read_keymap

IDS = st.sampled_from(sorted(BY_ID))
NAMES = st.sampled_from([*"abzXY07?", "f2", "ctrl+x", "slash", "comma", "space", "alt+down", "right_square_bracket"])


def names(key, chosen):
    return chosen.get(key.id, key.keys).split(",")


def test_a_key_has_one_meaning_and_there_are_few():
    every = [name for key in TABLE for name in names(key, {})]
    assert len(every) == len(set(every))
    assert len(TABLE) <= 45


@given(st.dictionaries(IDS, st.lists(NAMES, min_size=1, max_size=3, unique=True).map(",".join), max_size=6))
def test_a_key_file_loses_no_key_and_doubles_none(tmp_path_factory, chosen):
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.write_text("".join(f'"{id_}" = "{keys}"\n' for id_, keys in chosen.items()), "utf-8")
    every = [format_key(name) for key in TABLE for name in names(key, chosen)]
    if len(every) != len(set(every)):
        with pytest.raises(ConfigError, match="puts both"):
            read_keymap(path)
        return
    assert read_keymap(path) == chosen
    applied = BindingsMap(bindings(*BY_ID))
    assert not applied.apply_keymap(dict(chosen)).clashed_bindings
    assert {binding.id for _, binding in applied} == set(BY_ID), "no key is lost"


def test_a_faulty_key_file_is_refused(tmp_path):
    path = tmp_path / "keys.toml"
    for line, words in (
        ('"note.nothing" = "x"', "no key of the app"),
        ('"app.quit" = "ctr+x"', "which is no key"),
        ('"app.quit" = "bananas"', "which is no key"),
        ('"app.quit" = 7', "which is no key"),
        ('"app.quit" = "e"', "puts both app.quit and note.edit on e"),
        ("app.quit", "cannot be read"),
    ):
        path.write_text(line + "\n", "utf-8")
        with pytest.raises(ConfigError, match=words):
            read_keymap(path)
    assert read_keymap(tmp_path / "none.toml") == {}


def test_the_manual_lists_every_key_as_it_is():
    rows = re.findall(r"^\| (.*) \| (.*) \| `([a-z.]+)` \|$", manual.text("keys"), re.MULTILINE)
    table = [(" ".join(f"`{format_key(name)}`" for name in names(key, {})), key.words, key.id) for key in TABLE]
    assert rows == table


def test_the_palette_knows_what_people_call_a_command():
    titles = {
        "trash": "Delete lines or notes",
        "preview": "Read the notes",
        "openai": "Set up a provider",
        "settings": "Turn the ranking",
        "rename": "Rename this note",
        "chart": "Turn the ranking",
        "doctor": "Examine everything",
        "theme": "Change the colours",
        "merge": "Open the inbox",
        "repeats": "Open the inbox",
        "blame": "What changed in this note",
        "author": "What changed in this note",
        "who wrote": "What changed in this note",
        "otherwise": "Take back the last change",
        "session start": "What the agent never reads",
        "budget": "What the agent never reads",
        "never reads": "What the agent never reads",
    }
    listed = {words: [command.title for _, command in palette.matches(words)] for words in titles}
    assert {words: title for words, title in titles.items() if title not in listed[words]} == {}


def test_every_command_of_the_palette_can_be_done(reader):
    app = reader.app
    for number in "654321":
        reader.press(number)
    nodes = [app, *app.query("*")]
    names = [command.action.partition("(")[0].removeprefix("app.") for command in palette.TABLE]
    assert [name for name in names if not any(hasattr(node, f"action_{name}") for node in nodes)] == []


def test_a_command_is_done_in_its_view(reader):
    reader.press("1", "colon").type("doctor").press("enter")
    assert reader.app.view.id == "status"
    reader.until(lambda: "Doctor" in reader.text).press("escape")


@pytest.mark.parametrize("keys", [("enter",), ("enter", "enter"), ("enter", "enter", "enter")])
def test_what_is_typed_ahead_into_the_palette_does_one_command_while_others_work(reader, keys):
    reader.press("1").run(_started(reader.app))
    reader.burst("colon", *"doctor", *keys)
    reader.until(lambda: reader.app.view.id == "status" and "Doctor" in reader.text)
    assert len(reader.app.screen_stack) == 2
    reader.app.workers.cancel_group(reader.app, "endless")
    reader.settle().press("escape")


def test_a_palette_that_lists_nothing_takes_an_enter_and_closes(reader):
    reader.press("1").run(_started(reader.app))
    reader.burst("colon", *"zzzz", "enter", "escape")
    reader.until(lambda: reader.app.query("*") and len(reader.app.screen_stack) == 1)
    reader.app.workers.cancel_group(reader.app, "endless")


async def _started(app):
    app.run_worker(asyncio.Event().wait(), group="endless")


def test_a_row_of_the_palette_says_its_key_and_where_that_works(reader):
    reader.press("3", "colon").type("compare")
    reader.until(lambda: "Compare two rankings  c in Search" in reader.text)
    assert reader.lines[-1].strip() == "esc Back", "no key of the view behind stands below"
    reader.press("escape", "2", "colon").type("compare")
    reader.until(lambda: "Compare two rankings  c " in reader.text and "in Search" not in reader.text)
    reader.press("escape")


def test_the_theme_in_force_comes_first_and_says_so(reader):
    reader.press("colon").type("theme").press("enter")
    reader.until(lambda: f"{reader.app.theme}, in force" in reader.text)
    reader.press("escape")


def test_a_number_in_the_palette_goes_to_that_line(reader):
    reader.press("1", "colon").type("12").press("enter")
    assert reader.app.view.query_one("#notes-text").line == 12  # type: ignore[attr-defined]
