"""What agents asked, in the search view: one question is taken and asked again, with the knobs of then."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from tui_support import LARGE, ask, drive, make_app, press, said, sample, settled, text_of, until

from memory_tui.agent import recall_log
from memory_tui.agent.host import Host, Wishes
from memory_tui.engine import Engine, Options
from memory_tui.index.readers import Cancel
from memory_tui.tui.recalls import NONE
from memory_tui.tui.screens.picker import Picker
from memory_tui.tui.screens.search import SearchView


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return sample(tmp_path / "notes")


def asked_by_an_agent(workspace: Path) -> None:
    """Two questions over the tools, logged."""
    options = Options(workspace=str(workspace), index=str(workspace.parent / "agent.sqlite"), provider="scripted")
    host = Host(lambda: Engine.open(options), Wishes(log=True))
    host.search({"query": "omada router", "maxResults": 2}, "", "agent \x1b[31m1", Cancel())
    host.search({"query": "printer"}, "", "agent 1", Cancel())
    host.get({"path": "MEMORY.md"}, "agent 1")
    host.close()


def test_a_logged_question_is_asked_with_its_knobs_and_undone(workspace: Path) -> None:
    asked_by_an_agent(workspace)
    logged = recall_log.read(recall_log.place(workspace)).find("last")
    assert logged is not None

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "2")
        await ask(pilot, "vlan")
        await press(pilot, "A")
        await until(lambda: isinstance(app.screen, Picker))
        listed = text_of(app)
        assert listed.index("printer") < listed.index("omada router")
        assert "MEMORY.md" not in listed
        await press(pilot, "o", "m", "a", "d", "a", "enter")
        await settled(pilot)
        view = app.screen
        assert isinstance(view, SearchView)
        assert view.question == "omada router"
        assert view.trace is not None
        assert view.trace.settings.whole("query.maxResults") == 2
        assert len(view.trace.recalled) == 2
        assert "2 hits then" in said(app)
        await press(pilot, "u")
        await settled(pilot)
        assert view.trace.settings.whole("query.maxResults") == 6

    drive(make_app(workspace), steps, LARGE)


def test_without_a_log_the_key_says_how_to_have_one(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2")
        await ask(pilot, "vlan")
        await press(pilot, "A")
        await until(lambda: "--log-recalls" in said(pilot.app))
        assert said(pilot.app) == NONE

    drive(make_app(workspace), steps, LARGE)
