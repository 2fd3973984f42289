"""What agents asked: one view from any other, also by a row of Agents; a question is asked with the knobs of then."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.plan import Options
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import NOTHING, LoggedHit, RecallEntry
from memory_tui.tui.views.index.recalls_view import RecallsView
from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.search.search_view import SearchView
from tests.support.tui import LARGE, NOW, ask, drive, make_app, press, said, settled, text_of, until


def asked_by_an_agent(workspace: Path, *, in_vain: bool = False) -> None:
    """Two questions over the tools, logged, and one that got nothing."""
    options = Options(workspace=str(workspace), index=str(workspace.parent / "agent.sqlite"), provider="scripted")
    host = ServedMemory(lambda: Engine.open(options), ServerOptions(log=True))
    host.search({"query": "omada router", "maxResults": 2}, "", "agent \x1b[31m1", Stop())
    host.search({"query": "printer"}, "", "agent 1", Stop())
    host.get({"path": "MEMORY.md"}, "agent 1")
    if in_vain:
        host.search({"query": "aardvark", "minScore": 1}, "", "agent 1", Stop())
    host.close()


@pytest.mark.parametrize("keys", [("2", "g", "r"), ("6", "G", "enter")], ids=["search", "row of agents"])
def test_a_logged_question_is_asked_with_its_knobs_and_undone(keys: tuple[str, ...], workspace: Path) -> None:
    asked_by_an_agent(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "2")
        await ask(pilot, "vlan")
        await press(pilot, *keys)
        await until(lambda: "omada router" in text_of(app))
        assert isinstance(app.screen, RecallsView)
        listed = text_of(app)
        assert listed.index("printer") < listed.index("omada router")
        await press(pilot, "g", "g", "j", "j", "enter")
        await until(lambda: isinstance(app.screen, SearchView) and app.screen.question == "omada router")
        await settled(pilot)
        view = app.screen
        assert isinstance(view, SearchView)
        assert view.trace is not None
        assert view.trace.settings.whole("query.maxResults") == 2
        assert len(view.trace.recalled) == 2
        assert "agent ␛[31m1 got 2 hits then. The knobs are as they were then; u undoes it." in said(app)
        assert view.trace.lost
        assert "Recalled 2 of " in text_of(app), "what lost stands there too, each with its reason"
        await press(pilot, "u")
        await settled(pilot)
        assert view.trace.settings.whole("query.maxResults") == 6
        await press(pilot, "q")
        if keys[0] == "6":
            assert isinstance(app.screen, RecallsView), "back where the question was chosen"
            await press(pilot, "c")
            opened = text_of(app)
            await press(pilot, "q")
            assert text_of(app) != opened, "what is open below a row closes first"
            assert isinstance(app.screen, RecallsView)
            await press(pilot, "q", "q")
        assert app.current_mode == "browse"

    drive(make_app(workspace), steps, LARGE)


def test_only_recalls_that_hold_what_was_typed_are_shown(workspace: Path) -> None:
    asked_by_an_agent(workspace, in_vain=True)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "g", "r")
        await until(lambda: "omada router" in text_of(app))
        await press(pilot, "f", *"OMADA", "enter")
        assert "omada router" in text_of(app)
        assert "printer" not in text_of(app)
        assert "1 of 4 recalls with" in text_of(app)
        await press(pilot, "escape")
        assert "printer" in text_of(app)
        assert isinstance(app.screen, RecallsView)
        assert "3 questions: 2 found, 1 nothing; 1 read of notes. zu shows the poor one." in text_of(app)
        await press(pilot, "f", *"nothing", "enter")
        assert "aardvark" in text_of(app)
        assert "printer" not in text_of(app), "the row of the other says “found”"
        await press(pilot, "escape")
        await press(pilot, "f", *"zzz", "enter")
        assert "esc shows all" in text_of(app)
        await press(pilot, "enter")
        assert said(app) == "Nothing is under the cursor."
        await press(pilot, "escape", "escape")
        assert not isinstance(app.screen, RecallsView)

    drive(make_app(workspace), steps, LARGE)


def logged(workspace: Path, *levels: str) -> None:
    """A question for each level, by two agents, and one of an older release."""
    place = recall_log.recall_log_path(workspace)
    hit = LoggedHit("MEMORY.md", 1, 2, 0.81, 0.4, 0.3)
    for number, level in enumerate((*levels, "")):
        hits = () if level == NOTHING else (hit, replace(hit, score=0.42))
        client = f"agent {number % 2}"
        made = RecallEntry(SEARCH, f"question {number}", NOW + number, client, mode="hybrid", hits=hits, ranked=2)
        recall_log.append_recall(place, replace(made, level=level))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 36)], ids=str)
def test_rows_say_how_well_it_was_answered_and_the_poor_ones_stand_alone(
    size: tuple[int, int], workspace: Path
) -> None:
    logged(workspace, "found", "nearby only", NOTHING, "found", "nearby only")

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "g", "r")
        await until(lambda: "question 0" in text_of(app))
        told = " ".join(text_of(app).replace("│", " ").split())
        assert "6 questions: 2 found, 2 nearby only, 1 nothing, 1 without a level. zu shows the poor ones." in told
        rows = {line.split("question ")[1][0]: line for line in text_of(app).splitlines() if "question " in line}
        nearby = "~ nearby" if size[0] == 60 else "~ nearby only"
        assert "✗ nothing" in rows["2"]
        assert "? no level 0.81" in rows["5"], "an answer of which nobody knows is not called found"
        assert nearby in rows["1"]
        assert "✓ found 0.81" in rows["0"]
        await press(pilot, "z", "u")
        assert [number for number in "012345" if f"question {number}" in text_of(app)] == ["1", "2", "4"]
        assert "zu shows all." in " ".join(text_of(app).replace("│", " ").split())
        await press(pilot, "escape")
        assert "question 5" in text_of(app)
        assert isinstance(app.screen, RecallsView)
        await press(pilot, "f", *"poor", "enter")
        assert [number for number in "012345" if f"question {number}" in text_of(app)] == ["1", "2", "4"]

    drive(make_app(workspace), steps, size)


@pytest.mark.parametrize("words", ["poor", "no answer", "nothing found", "unanswered"])
def test_the_palette_finds_what_was_answered_poorly(words: str, workspace: Path) -> None:
    logged(workspace, "found", "nearby only")

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "3", "colon", *words)
        await until(lambda: "What agents asked that was answered poorly" in text_of(app))
        await press(pilot, "enter")
        await until(lambda: isinstance(app.screen, RecallsView) and "question 1" in text_of(app))
        assert "question 0" not in text_of(app)

    drive(make_app(workspace), steps, LARGE)


def test_where_no_question_was_answered_poorly_that_is_said(workspace: Path) -> None:
    logged(workspace, "found")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "z", "u")
        await until(lambda: "as far as the log tells" in text_of(pilot.app))
        await press(pilot, "z", "u")
        assert "question 0" in text_of(pilot.app)

    drive(make_app(workspace), steps, LARGE)


def test_knobs_that_were_not_logged_are_not_said_to_be_those_of_then(workspace: Path) -> None:
    logged(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "g", "r")
        await until(lambda: "question 0" in text_of(app))
        await press(pilot, "c")
        await until(lambda: "Level of the answer" in text_of(app))
        await press(pilot, "enter")
        await until(lambda: "The log does not have the knobs of then." in said(app))

    drive(make_app(workspace), steps, LARGE)


def test_a_question_comes_in_front_of_what_lies_over_the_search(workspace: Path) -> None:
    asked_by_an_agent(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        await press(pilot, "2")
        await ask(pilot, "vlan")
        await press(pilot, "enter")
        assert isinstance(app.screen, ReaderView)
        app.push_screen(RecallsView())
        await until(lambda: "printer" in text_of(app))
        await press(pilot, "g", "g", "j", "enter")
        await until(lambda: isinstance(app.screen, SearchView) and app.screen.question == "printer")

        await press(pilot, "enter", "i", "x")
        assert isinstance(app.screen, EditView)
        app.push_screen(RecallsView())
        await until(lambda: "printer" in text_of(app))
        await press(pilot, "g", "g", "j", "j", "enter")
        await until(lambda: "not saved yet" in said(app))
        assert isinstance(app.screen, EditView), "what was typed is not thrown away for a question"

    drive(make_app(workspace), steps, LARGE)


def test_without_a_log_the_view_says_how_to_have_one(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2")
        await ask(pilot, "vlan")
        await press(pilot, "g", "r")
        await until(lambda: "--log-recalls" in text_of(pilot.app))
        assert "No recall is logged." in text_of(pilot.app)

    drive(make_app(workspace), steps, LARGE)
