"""The number beside the inbox, for somebody who has not opened it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.inbox import inbox_count
from tests.support.tui import drive, make_app, press, settled, text_of, until


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryApp:
    monkeypatch.setattr(inbox_count, "MOST_CHUNKS", 5_000)
    monkeypatch.setattr(inbox_count, "REST", 0.01)
    monkeypatch.setattr(inbox_count, "SHARE", 0.0)
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Home\n\n- The key hangs in the shed.\n- Renew the domain by 2026-03-01.\n")
    (folder / "memory" / "2026-02-30.md").write_text("# Never\n\n- The boiler man came.\n")
    return make_app(folder)


def test_it_is_there_before_the_inbox_was_opened_and_follows_what_is_written(app: MemoryApp, tmp_path: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await until(lambda: app.badges.get("inbox"))
        before = int(app.badges["inbox"])
        assert app.current_mode != "inbox"
        (tmp_path / "notes" / "memory" / "2026-02-31.md").write_text("# Never\n\n- The window was mended.\n")
        await press(pilot, "r")
        await settled(pilot)
        await until(lambda: int(app.badges["inbox"]) > before)
        await press(pilot, "4")
        await settled(pilot)
        assert app.badges["inbox"] == f"{app.findings}"
        assert f"{app.findings} open" in text_of(app)

    drive(app, steps)


def test_a_large_memory_is_looked_through_by_who_opens_the_inbox_alone(
    app: MemoryApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_count, "MOST_CHUNKS", 1)

    async def steps(pilot: Pilot[int]) -> None:
        await settled(pilot)
        assert app.facts is not None
        assert app.facts.status.chunks > 1
        app.inbox_count.facts_came(app.facts)
        assert not app.inbox_count._waiting, "nothing is looked for later on either"
        assert "inbox" not in app.badges
        await press(pilot, "4")
        await settled(pilot)
        assert app.badges["inbox"]

    drive(app, steps)


def test_it_waits_until_nobody_uses_the_app(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_count, "REST", 3600.0)

    async def steps(pilot: Pilot[int]) -> None:
        app.last_input = time.monotonic()
        app.inbox_count._rested()
        await settled(pilot)
        assert "inbox" not in app.badges
        monkeypatch.setattr(inbox_count, "REST", 0.01)
        app.inbox_count._rested()
        await until(lambda: app.badges.get("inbox"))

    drive(app, steps)
