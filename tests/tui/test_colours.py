"""Contrast: every role can be read on every ground, in every theme that says what its colours are."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES, Theme

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.colours import (
    GROUNDS,
    READABLE,
    SHAPES,
    TEXTS,
    THEMES,
    UNDER_ROLES,
    VISIBLE,
    contrast,
    first_theme,
    pushed,
    roles,
)
from tests.support.tui import SMALL, drive, make_app, press, settled

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


def test_the_parts_of_a_widget_have_the_styles_that_textual_would_give_them_now(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Home\n- tea\n")
    app = make_app(tmp_path / "notes")
    seen: list[dict[str, object]] = []

    def styles() -> dict[str, object]:
        # A view that is not shown is styled when it is.
        return {
            f"{node.css_path_nodes} {name}": one.get_rules()
            for node in app.screen.walk_children()
            for name, one in node._component_styles.items()
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
