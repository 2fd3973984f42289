"""Marks: space marks a row, * its kind; one difference, one undo for all of them, in Notes, hits, map, annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.recalls import recalled_lines
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Preview
from memory_tui.tui.views.map_view import MapView
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.widgets.results import HitList
from tests.support.tui import NOW, ask, drive, enter, make_app, press, said, sample, settled, text_of

QUESTION = "How is the VLAN on the Omada router set up?"
OFTEN = "memory/2026-03-09.md"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return sample(tmp_path / "notes")


def files(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in sorted(workspace.rglob("*.md"))}


def copied(app: MemoryApp) -> list[str]:
    return app.clipboard.splitlines()


def test_marked_notes_are_archived_trashed_and_promoted_as_one(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        view = app.screen
        assert isinstance(view, BrowseView)
        tree = view.listed
        for path in ("memory/2026-03-19.md", "memory/network.md"):
            tree.reveal(path)
            await press(pilot, "space")
        assert tree.marks.those == {"memory/2026-03-19.md", "memory/network.md"}
        assert "2 marked" in text_of(app)
        tree.reveal("memory/network.md")
        await press(pilot, "h")
        assert "2 marked, 1 out of sight" in text_of(app), "a folded group keeps its marks, and says so"
        assert "■ 1 of " in text_of(app)
        await press(pilot, "y")
        lines = {path: data.count(b"\n") for path, data in before.items()}
        marked = ("memory/2026-03-19.md", "memory/network.md")
        assert copied(app) == [f"{path}#L1-L{lines[path]}" for path in marked], "of all that is marked, on a group too"
        await press(pilot, "Y", "enter")
        assert all(one in app.clipboard for one in (*copied(app)[:1], "memory/network.md#L1-L"))

        await press(pilot, "m")
        assert "memory/network.md stays: only daily logs of earlier days are archived." in text_of(app)
        await press(pilot, "enter")
        assert (workspace / "memory/archive/memory/2026-03-19.md").exists()
        assert not tree.marks.those, "what was marked is dealt with"
        await press(pilot, "u")
        assert files(workspace) == before

        tree.reveal("memory/2026-03-19.md")
        await press(pilot, "asterisk")
        group = set(map(str, tree.marks.those))
        assert len(group) > 1
        # What another program takes away is not marked any more; the rest is.
        gone = min(group)
        (workspace / gone).unlink()
        await press(pilot, "r")
        assert tree.marks.those == group - {gone}
        before = files(workspace)
        await press(pilot, "d")
        assert isinstance(app.screen, Preview)
        await press(pilot, "escape")
        assert files(workspace) == before
        assert tree.marks.those == group - {gone}, "leaving the preview keeps the marks"
        await press(pilot, "d", "enter")
        assert not any((workspace / path).exists() for path in group)
        await press(pilot, "u")
        assert files(workspace) == before, "one undo"

        tree.reveal("memory/2026-03-09.md")
        await press(pilot, "space")
        tree.reveal("memory/2026-03-02.md")
        await press(pilot, "space", "p")
        assert re.search(r"Promote \d+ lines of 2 notes to MEMORY\.md", text_of(app))
        await press(pilot, "enter")
        memory = (workspace / "MEMORY.md").read_text("utf-8")
        assert "(from memory/2026-03-09.md)" in memory
        assert "(from memory/2026-03-02.md)" in memory
        await press(pilot, "u")
        assert files(workspace) == before
        tree.reveal("memory/2026-03-09.md")
        await press(pilot, "space", "escape")
        assert not tree.marks.those

    drive(app, steps)


def test_marked_hits_are_copied_judged_and_promoted_as_one(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        view = app.screen
        assert isinstance(view, SearchView)
        hits = view.query_one(HitList)
        logs = [one.chunk for one in view.trace.recalled if one.chunk.path.startswith("memory/2026")]  # type: ignore[union-attr]
        assert len(logs) > 1
        for chunk in logs[:2]:
            hits.go(hits.row_of(chunk.id) or 0)
            await press(pilot, "space")
        assert "2 marked" in text_of(app)
        await press(pilot, "t", "l", "escape")
        assert hits.marks.those == {chunk.id for chunk in logs[:2]}, (
            "another ranking of the same chunks keeps the marks"
        )
        await press(pilot, "u", "y")
        assert copied(app) == [f"{one.path}#L{one.start_line}-L{one.end_line}" for one in hits_of(hits)]
        await press(pilot, "Y")
        await enter(pilot, "JSON")
        await press(pilot, "enter")
        assert '"places": [' in app.clipboard

        before = files(workspace)
        await press(pilot, "p")
        assert isinstance(app.screen, Preview), said(app)
        await press(pilot, "enter")
        memory = (workspace / "MEMORY.md").read_text("utf-8")
        assert all(f"(from {chunk.path})" in memory for chunk in logs[:2])
        await press(pilot, "u")
        assert files(workspace) == before, "undo in Search takes a change of notes back, not a knob"

        await press(pilot, "asterisk", "v", "n")
        assert said(app) == f"Judged wrong: {len(view.trace.recalled)} hits."  # type: ignore[union-attr]
        assert not hits.marks.those
        judged = view.judge.evaluation.notebook
        assert judged is not None
        assert len(judged.queries[-1].labels) == len(view.trace.recalled)  # type: ignore[union-attr]
        await press(pilot, "space")
        await ask(pilot, "which nuts make Theo ill")
        assert all(view.trace.query == "which nuts make Theo ill" for _ in hits.marks.those)  # type: ignore[union-attr]
        await press(pilot, "asterisk", "escape")
        assert not hits.marks.those

    drive(app, steps)


def hits_of(hits: HitList) -> Sequence[object]:
    return [one.chunk for one in hits.chosen]


def test_what_is_recalled_often_is_promoted_from_the_map(workspace: Path) -> None:
    marks = recalled_lines.marks_path(workspace)
    for day in range(4):
        recalled_lines.append(marks, [(OFTEN, 3, 4)], NOW - 86400 * day)
    recalled_lines.append(marks, [(OFTEN, 1, 1)], NOW)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await press(pilot, "5")
        view = app.screen
        assert isinstance(view, MapView)
        assert view.found is not None
        assert [note.path for note in view.found.often] == [OFTEN]
        await press(pilot, "p")
        assert "No log is chosen" in said(app)
        await press(pilot, "tab", "tab", "asterisk")
        assert "1 marked" in text_of(app)
        await press(pilot, "p", "enter")
        lines = (workspace / OFTEN).read_text("utf-8").split("\n")
        memory = (workspace / "MEMORY.md").read_text("utf-8")
        assert memory.count(f"(from {OFTEN})") == sum(line.startswith("- ") for line in lines[2:4])
        assert view.found.often == [], "it is not only in a daily log any more"
        await press(pilot, "u")
        await settled(pilot)
        assert files(workspace) == before
        assert [note.path for note in view.found.often] == [OFTEN]

    drive(app, steps)
