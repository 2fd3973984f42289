"""The app: its views, the engine under it, its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_tui.tui.app import VIEWS
from tests.support.tui import Window, make_app


@pytest.mark.parametrize(("number", "name"), enumerate(VIEWS, 1))
def test_a_number_opens_its_view(reader: Window, number: int, name: str) -> None:
    reader.press(str(number))
    assert reader.app.view.id == name
    assert reader.app.query_one("#tabs").active == f"tab-{name}"  # type: ignore[attr-defined]


def test_keys_typed_ahead_reach_the_view_that_they_open(screen: Window) -> None:
    screen.burst("slash", *"omada")
    assert screen.settle().app.screen.query_one("#query").value == "omada"  # type: ignore[attr-defined]
    screen.burst(*" vlan", "enter", "down", "3")
    assert screen.settle().app.view.id == "status"
    assert screen.app.query_one("#query").value == "omada vlan"  # type: ignore[attr-defined]


def test_the_tour_goes_on_by_what_a_person_does(workspace: Path) -> None:
    app = make_app(workspace)
    app.leads = True
    with Window(app) as window:
        assert "1 of 4" in window.text
        window.ask().until(lambda: "2 of 4" in window.text)
        window.press("right_square_bracket").until(lambda: "3 of 4" in window.text)
        window.press("enter").until(lambda: "4 of 4" in window.text)
        window.press("u", "home", "enter", "down", "p", "enter", "y")
        assert app.session.last_change, window.notices
        window.press("u", "y")
        window.until(lambda: "That was the tour" in window.text)
        window.press("colon").type("tour").press("enter")
        assert "That was the tour" not in window.text
