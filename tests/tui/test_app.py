"""The app: its views, the engine under it, its end."""

import subprocess
import sys

import pytest
from textual.widgets import Input

from memory_tui.tui.app import VIEWS
from tests.support.tui import Window, make_app


def test_the_first_frame_waits_for_no_engine():
    modules = "memory_tui.cli.main, memory_tui.cli.screen, memory_tui.tui.run, memory_tui.tui.views.notes"
    heavy = {"numpy", "httpx", "markdown_it", "memory_tui.engine.engine", "memory_tui.index.store"}
    code = f"import sys, {modules}\nprint(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("number", "name"), enumerate(VIEWS, 1))
def test_a_number_opens_its_view(reader, number, name):
    reader.press(str(number))
    assert reader.app.view.id == name
    assert reader.app.query_one("#tabs").active == f"tab-{name}"  # type: ignore[attr-defined]


def test_keys_typed_ahead_reach_the_view_that_they_open(screen):
    screen.burst("slash", *"omada")
    assert screen.settle().app.screen.query_one("#query").value == "omada"  # type: ignore[attr-defined]
    screen.burst(*" vlan", "enter", "down", "3")
    assert screen.settle().app.view.id == "status"
    assert screen.app.query_one("#query").value == "omada vlan"  # type: ignore[attr-defined]


def test_keys_typed_ahead_go_into_the_dialog_that_opens(screen):
    screen.press("1").burst("n", *"omada")
    assert screen.settle().app.screen.query_one(Input).value == "omada"
    screen.press("escape")


def test_the_tour_goes_on_by_what_a_person_does(workspace):
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
