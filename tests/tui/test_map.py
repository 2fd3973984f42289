"""View 5 shows the memory by days and by meaning, and archives what nobody recalls as one step."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.recalls.recalled_lines import Activity
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Preview
from memory_tui.tui.views.map_view import MapView
from memory_tui.tui.widgets.calendar import Calendar
from memory_tui.tui.widgets.memory_map import LAYERS, MemoryMap
from memory_tui.tui.widgets.reader import Reader
from tests.support.tui import (
    SMALL,
    ask,
    drive,
    make_app,
    press,
    said,
    sample,
    settled,
    text_of,
    until,
)

QUESTION = "How is the VLAN on the Omada router set up?"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return sample(tmp_path / "notes")


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (None, "No recall recorded"),
        (dt.date(2026, 3, 20), "Never recalled in 1 day"),
        (dt.date(2026, 1, 27), "Never recalled in 52 days"),
        (dt.date(2025, 3, 20), "Never recalled in 90 days"),
    ],
)
def test_never_reaches_as_far_back_as_the_records(since: dt.date | None, said: str) -> None:
    assert MemoryMap(dt.date(2026, 3, 20), (), Activity({}, since)).unrecalled == said


def test_the_legend_of_the_calendar_ends_with_the_next_layer_in_80_columns(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "5")
        calendar = pilot.app.screen.query_one(Calendar)
        await until(lambda: calendar.found is not None)
        for _ in LAYERS:
            assert any(f"zl: {calendar._next}" in line for line in text_of(pilot.app).splitlines())
            await press(pilot, "z", "l")

    drive(make_app(workspace), steps, SMALL)


def test_the_calendar_counts_recalls_opens_days_and_archives(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, MemoryApp)
        await ask(pilot, QUESTION)
        await press(pilot, "5")
        view = app.screen
        assert isinstance(view, MapView)
        calendar = view.query_one(Calendar)
        assert calendar.found is not None
        days = sorted(calendar.found.days)
        assert "1 recall " in text_of(app), "it begins where something is, not at the newest note"
        newest = calendar.day
        assert newest is not None
        await press(pilot, "h", "[", "k", "k", "l", "]", "j")
        assert calendar.day in days, "no step lands on a day without a note"
        while calendar.day != dt.date(2026, 3, 2):
            before = calendar.day
            await press(pilot, "k" if calendar.day > dt.date(2026, 3, 2) else "j")
            assert abs(days.index(calendar.day) - days.index(before)) == 1
        assert "1 recall " in text_of(app), "what was recalled a moment ago counts"
        assert "zl: written" in text_of(app), "the layer that comes next has a name"
        await press(pilot, "z", "l")
        assert calendar.counted == "written"
        await press(pilot, "z", "l", "z", "l")
        assert "1 finding;" in said(app)
        found = calendar.found.days[calendar.day][0].path
        await press(pilot, "enter")
        assert app.screen.query_one(Reader).page.path == found  # type: ignore[union-attr]
        await press(pilot, "escape")
        calendar.day = days[0] - dt.timedelta(1)
        await press(pilot, "enter")
        assert "No note has this day" in said(app)
        calendar.day = days[-1]
        view.show_message("")
        await pilot.click(calendar, offset=(7, 2))
        await settled(pilot)
        assert calendar.day not in days
        assert "No note has this day" in said(app), "a click says where it lands"

        await press(pilot, "tab", "m")
        assert isinstance(app.screen, Preview), said(app) + "the log under the cursor is meant without a mark"
        await press(pilot, "escape", "asterisk")
        old = sorted(map(str, view.forgotten.marks.those))
        assert len(old) > 1
        await press(pilot, "space")
        assert len(view.forgotten.marks.those) == len(old) - 1
        assert f"{len(old) - 1} marked" in text_of(app)
        await press(pilot, "asterisk", "m")
        assert "archive/memory" in text_of(app), "the difference comes first"
        await press(pilot, "enter")
        assert "u undoes it" in said(app)
        assert all((workspace / "memory/archive" / path).exists() for path in old)
        await press(pilot, "u")
        assert all((workspace / path).exists() for path in old), "one undo for all of them"

    drive(make_app(workspace), steps)


def test_the_calendar_names_the_day_with_the_most_and_goes_there(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, MemoryApp)
        await press(pilot, "5", "z", "l")
        calendar = app.screen.query_one(Calendar)
        await until(lambda: calendar.found is not None)
        while calendar.counted != "written":
            await press(pilot, "z", "l")
        found = calendar.found
        assert found is not None
        sizes = {day: sum(note.size for note in notes) for day, notes in found.days.items() if day <= found.today}
        ranked = sorted(sizes, key=lambda day: (-sizes[day], -day.toordinal()))
        most = f"{ranked[0]:%a} {ranked[0].day} {ranked[0]:%b %Y}"
        assert f"most: {most}, {sizes[ranked[0]] / 1000:.1f} KB" in text_of(app)
        await press(pilot, "n")
        assert calendar.day == ranked[0]
        assert f"▌ {most}   {sizes[ranked[0]] / 1000:.1f} KB" in text_of(app)
        await press(pilot, "n")
        assert calendar.day == ranked[1]
        await press(pilot, "N", "N")
        assert calendar.day == ranked[0]
        await press(pilot, "n", "j", "n")
        assert calendar.day == ranked[0], "after another step it begins anew"

    drive(make_app(workspace), steps, SMALL)
