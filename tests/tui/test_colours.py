"""Contrast: every role can be read on every ground, in every theme that says what its colours are."""

from __future__ import annotations

import os
import re
import termios
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.command import CommandList
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.events import Key
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES, Theme

from memory_tui.tui import app as app_module
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.colours import (
    GROUNDS,
    READABLE,
    SHAPES,
    TEXTS,
    THEMES,
    UNDER_ROLES,
    VISIBLE,
    LateAnswer,
    ask_ground,
    contrast,
    first_theme,
    keep_theme,
    kept_theme,
    pushed,
    roles,
    theme_of,
)
from memory_tui.tui.widgets.rowlist import RowList
from tests.support.tui import SMALL, drive, make_app, press, said, sample, settled, text_of, until
from tests.support.waiting import LONG

KNOWN = {name: theme for name, theme in {**BUILTIN_THEMES, **THEMES}.items() if not theme.ansi}


def variables(theme: Theme) -> dict[str, str]:
    return roles(theme, theme.to_color_system().generate())


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast(Color(0, 0, 0), Color(255, 255, 255)) == pytest.approx(21)
    assert contrast(Color.parse("#767676"), Color(255, 255, 255)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("name", KNOWN)
def test_every_role_can_be_read_on_every_ground(name: str) -> None:
    found = {key: Color.parse(value) for key, value in variables(KNOWN[name]).items()}
    for ground in UNDER_ROLES:
        for role in TEXTS:
            assert contrast(found[role], found[ground]) >= READABLE, (role, ground)
        for role in SHAPES:
            assert contrast(found[role], found[ground]) >= VISIBLE, (role, ground)
    for ground in GROUNDS:
        assert contrast(found["body"], found[ground]) >= READABLE, ground


ROW = re.compile(r"^\.row--([a-z0-9]+) \{ ([^}]*)\}", re.MULTILINE)
SIGNS_AND_BARS = {"rule", "vector", "text", "added", "lost"}
"""Styles of rows that carry no words one must read."""


def test_every_style_of_a_row_is_a_role_whose_contrast_is_computed() -> None:
    """Marks, signs, bars and words of all rows: what is drawn in another colour would escape the test above."""
    css = (Path(app_module.__file__).parent / "app.tcss").read_text("utf-8")
    styles = {name: dict(part.split(": ") for part in body.strip(" ;").split("; ")) for name, body in ROW.findall(css)}
    assert {"mark", "muted", "match", "cursor"} <= styles.keys()
    for name, found in styles.items():
        colour = found.get("color", "$body").removeprefix("$")
        assert colour in TEXTS or (colour in SHAPES and name in SIGNS_AND_BARS), name
        ground = found.get("background", "$background").removeprefix("$")
        assert ground in UNDER_ROLES or (ground in GROUNDS and colour == "body"), name
    for path in sorted(Path(app_module.__file__).parent.rglob("*.py")):
        for colour in re.findall(r"""["'](?:bold |reverse )*\$([a-z-]+)["' ]""", path.read_text("utf-8")):
            assert colour in {*TEXTS, *SHAPES, *GROUNDS}, (path.name, colour)


@pytest.mark.parametrize("name", KNOWN)
def test_a_selected_row_differs_from_its_neighbours(name: str) -> None:
    found = {key: Color.parse(value) for key, value in variables(KNOWN[name]).items()}
    assert found["selection"] != found["background"] != found["selection-blurred"]
    assert found["vector"] != found["words"]


def test_a_colour_that_is_readable_stays_as_it_is() -> None:
    colour = Color.parse("#6cb6ff")
    assert pushed(colour, [Color.parse("#12151b")], READABLE, dark=True) == colour


def test_the_app_takes_the_roles_of_its_theme() -> None:
    app = MemoryApp(lambda _listener: (_ for _ in ()).throw(AssertionError))
    for name in KNOWN:
        app.theme = name
        known = variables(app.current_theme)
        assert known.items() <= app.get_css_variables().items()


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({}, "memory-dark"),
        ({"COLORFGBG": "0;15"}, "memory-light"),
        ({"COLORFGBG": "15;0"}, "memory-dark"),
        ({"COLORFGBG": "0;15", "TEXTUAL_THEME": "nord"}, "nord"),
        ({"COLORFGBG": "0;15", "NO_COLOR": "1"}, "ansi-dark"),
    ],
)
def test_the_first_theme_follows_the_terminal(
    environment: dict[str, str], theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert first_theme() == theme


ANSWERS = [
    ("\x1b]11;rgb:fbfb/fbfb/f9f9\x1b\\", "memory-light"),
    ("\x1b]11;rgb:1212/1515/1b1b\x07", "memory-dark"),
    ("\x1b]11;rgba:ff/ff/f0/ff\x07", "memory-light"),
]


@pytest.mark.parametrize(("answer", "theme"), [*ANSWERS, ("", ""), ("\x1b]11;?\x07", ""), ("\x1b[?62;c", "")])
def test_the_ground_that_a_terminal_names_chooses_the_theme(answer: str, theme: str) -> None:
    assert theme_of(answer) == theme


def test_a_chosen_theme_is_stronger_than_the_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    light = ANSWERS[0][0]
    assert first_theme(light) == "memory-light"
    monkeypatch.setenv("COLORFGBG", "15;0")
    assert first_theme(light) == "memory-light", "the answer is newer than the variable"
    monkeypatch.setenv("TEXTUAL_THEME", "nord")
    assert first_theme(light) == "nord"
    monkeypatch.setenv("NO_COLOR", "1")
    assert first_theme(light) == "ansi-dark"


def test_a_theme_that_was_chosen_is_there_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_theme() == ""

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "z", "t", *"memory-l", "enter")
        await until(lambda: said(pilot.app) == "memory-light; the next start has it too.")
        assert pilot.app.theme == "memory-light"

    drive(make_app(sample(tmp_path / "notes")), steps)
    dark = ANSWERS[1][0]
    assert first_theme(dark) == "memory-light", "it is stronger than the ground"
    monkeypatch.setenv("NO_COLOR", "1")
    assert first_theme(dark) == "ansi-dark", "and weaker than what the environment says"
    keep_theme("gone")
    assert kept_theme() == "", "a name that is no theme any more is not taken"


@pytest.mark.parametrize("typed", ["", "w", "wj"])
def test_a_terminal_is_asked_and_what_is_typed_meanwhile_is_kept(typed: str) -> None:
    ours, theirs = os.openpty()
    try:
        answer = ANSWERS[0][0]
        asked: list[bytes] = []

        def terminal() -> None:
            asked.append(os.read(ours, 100))
            os.write(ours, f"{typed[:1]}{answer}{typed[1:]}".encode())

        before = termios.tcgetattr(theirs)
        thread = threading.Thread(target=terminal)
        thread.start()
        found, kept = ask_ground(os.ttyname(theirs), 20)
        thread.join()
        assert asked == [b"\x1b]11;?\x1b\\"]
        assert theme_of(found) == "memory-light"
        assert kept == typed
        assert termios.tcgetattr(theirs) == before, "the line is as it was"
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        begin = time.monotonic()
        assert ask_ground(os.ttyname(theirs), 0.05) == ("", "")
        assert time.monotonic() - begin < LONG
    finally:
        os.close(ours)
        os.close(theirs)
    (tmp_path / "file").write_bytes(b"")
    assert ask_ground(str(tmp_path / "file")) == ask_ground(str(tmp_path / "none")) == ("", "")
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize(("answer", "theme"), ANSWERS[:2])
def test_a_late_answer_is_no_typing(answer: str, theme: str) -> None:
    """As Textual hands on a sequence that it does not know: letter by letter."""
    late = LateAnswer()
    letters = answer.replace("\x1b]", "^]").replace("\x1b", "") if "\\" in answer else answer.removeprefix("\x1b")
    said = [late.take(Key(letter, letter)) for letter in letters]
    assert "".join(part or "" for part in said[:-1]) == ""
    assert theme_of(next(part for part in said if part)) == theme
    assert late.release() == []


def test_the_app_takes_a_late_answer_and_keys_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(tmp_path)
    app.typed_early = "5"

    async def steps(pilot: Pilot[int]) -> None:
        await settled(pilot)
        assert app.current_mode == "map", "what was typed before the app had the terminal"
        for letter in "^]11;rgb:fbfb/fbfb/f9f9\\4":
            app.post_message(Key(letter, letter))
        await settled(pilot)
        assert app.theme == "memory-light"
        assert app.current_mode == "inbox"
        await press(pilot, "1")
        assert app.current_mode == "browse"

    drive(app, steps)


@given(st.text(st.sampled_from("]^1;rgb:f/x2"), max_size=8))
def test_what_is_typed_is_let_go_in_its_order(typed: str) -> None:
    late, out = LateAnswer(), ""
    for letter in typed:
        if late.take(Key(letter, letter)) is None:
            out += "".join(key.character or "" for key in late.release())
    out += "".join(key.character or "" for key in late.release())
    assert out == typed


def test_the_parts_of_a_widget_have_the_styles_that_textual_would_give_them_now(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Home\n- tea\n")
    app = make_app(tmp_path / "notes")
    seen: list[dict[str, object]] = []

    def styles() -> dict[str, object]:
        # A view that is not shown is styled when it is.
        return {
            f"{node.css_path_nodes} {name}": node._component_styles[name].get_rules()
            for node in app.screen.walk_children()
            for name in node._get_component_classes()
        }

    async def steps(pilot: Pilot[int]) -> None:
        async def compare() -> None:
            await settled(pilot)
            found = styles()
            for node in app.screen.walk_children():
                Stylesheet._process_component_classes(app.stylesheet, node)
            assert found == styles()
            seen.append(found)

        await compare()
        await press(pilot, "2", "slash")
        await compare()
        for theme in ("memory-light", "ansi-dark", "memory-dark"):
            app.theme = theme
            await compare()
        await pilot.resize_terminal(60, 20)
        await compare()
        app.theme = "memory-light"
        await press(pilot, "escape", "1")
        await compare()

    drive(app, steps, SMALL)
    assert any("row--cursor" in name for name in seen[0])
    assert seen[1] != seen[2] != seen[3] != seen[4]


def test_a_view_is_styled_as_it_is_made_and_its_parts_as_they_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Home\n- tea\n")
    anew: list[type[DOMNode]] = []
    update = MemoryApp.update_styles

    def updated(app: MemoryApp, node: DOMNode, animate: bool = True) -> None:
        anew.append(type(node))
        update(app, node, animate)

    monkeypatch.setattr(MemoryApp, "update_styles", updated)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert type(app.screen) not in anew
        tree = app.screen.query_one("#tree", RowList)
        assert {"row--cursor"} <= tree._component_styles.keys() < tree._get_component_classes()
        # It was in the colours of then.
        await press(pilot, "3")
        await settled(pilot)
        app.theme = "memory-light"
        anew.clear()
        await press(pilot, "1")
        await settled(pilot)
        assert type(app.screen) in anew

    drive(make_app(tmp_path / "notes"), steps, SMALL)


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_dialog_keeps_what_is_behind_it_in_sight(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, MemoryApp)
        before = text_of(app).splitlines()
        for key in ("a", "o", "?"):
            await press(pilot, key)
            await settled(pilot)
            behind = text_of(app).splitlines()
            assert behind != before
            # The last line hints at the keys of the dialog.
            assert [line[:6] for line in behind[:-1]] == [line[:6] for line in before[:-1]], key
            await press(pilot, "escape")
            await settled(pilot)

    drive(make_app(sample(tmp_path)), steps)


def test_without_colour_the_palette_shows_which_row_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.press("ctrl+p")
        await until(lambda: len(pilot.app.screen.query(CommandList)) and rows().option_count > 2)
        await pilot.press("down")
        await until(lambda: rows().highlighted == 1)
        strips = [
            [(bool(piece.style.bold), bool(piece.style.underline)) for piece in strip if piece.text.strip()]
            for strip in rows().render_lines(rows().size.region)
        ]
        first, chosen = (pieces for pieces in strips[:3] if pieces)
        assert set(first) == {(False, False)}
        assert set(chosen) == {(True, True)}

    def rows() -> CommandList:
        return app.screen.query_one(CommandList)

    app = make_app(sample(tmp_path))
    drive(app, steps)
