"""Contrast: every role can be read on every ground, in every theme that says what its colours are."""

from __future__ import annotations

import pytest
from textual.color import Color
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
