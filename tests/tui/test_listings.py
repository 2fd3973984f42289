"""The views over the index: doctor, providers, the index file, sessions, recalls; and what the index view does."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.doctor import CHECKS, Check, CheckOutcome
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry
from memory_tui.tui.views.index.recalls_view import RecallsView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.widgets.index_lists import EventLog
from tests.support.tui import LARGE, NOW, SMALL, drive, make_app, matches_screen, press, said, sample, text_of, until

BOTH = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample in the user's home, so that paths on screen have the same length everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return sample(tmp_path / "notes")


@BOTH
def test_the_doctor_shows_the_worst_first(
    size: tuple[int, int], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = (
        Check("a", "machine", "SQLite works", lambda _: CheckOutcome("ok", "SQLite 9.9.9, through apsw.")),
        Check(
            "b",
            "notes",
            "Dates in names are real",
            lambda _: CheckOutcome("warning", "Dated in the future: memory/2099-01-01.md.", "Rename it."),
        ),
        Check(
            "c",
            "provider",
            "The provider is usable",
            lambda _: CheckOutcome(
                "failed", "openai answered 401: the key \x1b[31mis not accepted.", "Set another OPENAI_API_KEY."
            ),
        ),
        Check("d", "settings", "Trigrams work", lambda _: CheckOutcome("skipped", "Nobody asks for trigrams.")),
    )
    monkeypatch.setattr("memory_tui.doctor.CHECKS", checks)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "d")
        await until(lambda: "Nobody asks" in text_of(app))
        matches_screen(app, "doctor")
        await press(pilot, "escape")
        assert "Notes" in text_of(app)

    drive(app, steps, size)


def test_the_real_checks_come_one_by_one(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "d")
        await until(
            lambda: (
                sum(map(int, re.findall(r"(\d+) (?:ok|skipped|warning|failed|no answer)", text_of(app)))) == len(CHECKS)
            )
        )
        assert "\x1b" not in text_of(app)

    drive(app, steps, LARGE)


@BOTH
def test_providers_and_one_real_call(size: tuple[int, int], workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "p")
        await press(pilot, "r")
        await until(lambda: "similarity to" in text_of(app))
        shown = re.sub(r"in \d+ ms", "in N ms", text_of(app))
        assert "scripted: in use" in shown
        assert "256 dimensions in N ms, norm 1.0000" in shown
        assert "on this machine" in shown
        await press(pilot, "enter")
        assert "No provider needs your approval" in said(app)

    drive(app, steps, size)


def test_a_provider_elsewhere_waits_for_a_word_and_can_lose_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    app = make_app(workspace, provider="auto")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "p")
        await until(lambda: "openai" in text_of(app))
        assert "sk-test" not in text_of(app)
        await press(pilot, "enter")
        assert "Send the notes to openai?" in text_of(app)
        await press(pilot, "n")
        await press(pilot, "d")
        assert "no approval to withdraw" in said(app)

    drive(app, steps, LARGE)


@BOTH
def test_the_index_file(size: tuple[int, int], workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "b")
        await until(lambda: "chunks" in text_of(app) and "MB" in text_of(app))
        await press(pilot, "G")

    drive(app, steps, size)


@BOTH
def test_sessions_show_how_near_their_flush_is(size: tuple[int, int], workspace: Path) -> None:
    folder = workspace.parent / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    for name, tokens in (("near", 150_000), ("full", 190_000)):
        message = {"type": "message", "message": {"role": "assistant", "usage": {"input": tokens, "output": 10}}}
        (folder / f"{name}.jsonl").write_text(json.dumps(message) + "\n")
        os.utime(folder / f"{name}.jsonl", (NOW - 60, NOW - (60 if name == "near" else 120)))
    (folder / "unknown.jsonl").write_text("{}\n")
    os.utime(folder / "unknown.jsonl", (NOW - 600, NOW - 600))
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "f")
        await until(lambda: "Flush now" in text_of(app))
        matches_screen(app, "sessions")

    drive(app, steps, size)


@BOTH
def test_what_an_agent_asked_can_be_asked_again(size: tuple[int, int], workspace: Path) -> None:
    place = recall_log.recall_log_path(workspace)
    recall_log.append_recall(place, RecallEntry("memory_get", "MEMORY.md", NOW - 200))
    recall_log.append_recall(
        place,
        RecallEntry(
            "memory_search",
            "omada vlan",
            NOW - 100,
            client="claude",
            settings={"profile": "openclaw-2026.3"},
            mode="hybrid",
            hits=(LoggedHit("memory/gone.md", 1, 2, 0.5, 0.4, 0.1),),
        ),
    )
    recall_log.append_recall(
        place, RecallEntry("memory_search", "xylophone \x1b[31m", NOW - 50, outcome="Nothing matched.")
    )
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "r")
        await until(lambda: "omada vlan" in text_of(app))
        matches_screen(app, "recalls")
        await press(pilot, "j", "c")
        await until(lambda: "Level of the answer" in text_of(app))
        await press(pilot, "pagedown")
        await until(lambda: "then 1st with" in text_of(app))
        assert "memory/gone.md" in text_of(app)
        for key in ("c", "enter"):
            await press(pilot, "G", key)
            assert "there is no query to ask" in said(app)
            assert isinstance(app.view, RecallsView), "a note that was read is no question to be asked again"
        await press(pilot, "g", "g", "enter")
        await until(lambda: isinstance(app.view, SearchView) and app.view.question.startswith("xylophone"))

    drive(app, steps, size)


def test_indexing_can_be_held_and_what_that_means_is_said(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "P")
        await until(lambda: "saved files wait" in text_of(app))
        await press(pilot, "P")
        await until(lambda: "saved files wait" not in text_of(app))
        log = app.screen.query_one(EventLog)
        await until(lambda: [line[1] for line in log._lines].count("indexing") == 2)
        await press(pilot, "enter")
        assert "none to forget" in said(app)

    drive(app, steps, LARGE)
