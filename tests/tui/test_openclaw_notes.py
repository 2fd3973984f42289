"""What OpenClaw 2026.9 writes into notes, on screen: folds, annotations, promotions, lines that were lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Preview
from memory_tui.tui.views.inbox.inbox_proposal import Suggestions
from memory_tui.tui.views.inbox.inbox_view import InboxView
from memory_tui.tui.views.notes.history import HistoryView
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.reader import Reader
from tests.support.tui import LARGE, SMALL, drive, enter, make_app, matches_screen, press, said, settled, text_of

TINY = (60, 20)
SIZES = pytest.mark.parametrize("size", [TINY, SMALL, LARGE], ids=["60x20", "80x24", "120x36"])
MEMORY = """# Long-term memory

## House
- the router is an Omada ER7212PC <!-- trigger: router, wlan --> <!-- importance: 8 -->
- the router password rotates on Mondays <!-- project: github.com/me/house -->

## Promoted From Short-Term Memory (2026-03-18)
<!-- openclaw-memory-promotion:k1 -->
- the guest network is on VLAN 20 [score=0.812 signals=4 recalls=3 avg=0.640 source=memory/2026-03-17.md:3-3]
<!-- openclaw-memory-promotion:k2 -->
- the printer sits in the hall [score=0.790 signals=4 recalls=3 avg=0.610 source=memory/2026-03-17.md:4-4]

## Rules
- tea before coffee
"""
DAY = """# 2026-03-17

- the guest network is on VLAN 20
- the printer sits in the hall
## Light Sleep
<!-- openclaw:dreaming:light:start -->
- a candidate
<!-- openclaw:dreaming:light:end -->
- the end of the day
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(MEMORY)
    (folder / "memory/2026-03-17.md").write_text(DAY)
    return folder


@pytest.fixture
def app(workspace: Path) -> MemoryApp:
    return make_app(workspace, provider="none", changes=(("profile", "openclaw-2026.9"),))


async def read(pilot: Pilot[int], path: str) -> Reader:
    """Read a note in the list of notes."""
    tree = pilot.app.screen.query_one(FileTree)
    assert tree.reveal(path)
    await press(pilot, "j", "k")
    tree.reveal(path)
    await press(pilot, "enter")
    reader = pilot.app.screen.query_one(Reader)
    reader.focus()
    await settled(pilot)
    return reader


@SIZES
def test_what_dreaming_wrote_is_folded(size: tuple[int, int], app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        reader = await read(pilot, "MEMORY.md")
        await press(pilot, "g", "g", *["j"] * 6)
        matches_screen(app, "folded")
        assert "▸ 2 entries promoted" in text_of(app)
        await press(pilot, "j")
        assert reader.cursor == 11, "what is folded is passed over"
        await press(pilot, "k", "enter", "j", "j")
        assert reader.cursor == 8
        await press(pilot, "h")
        assert reader.cursor == 6
        assert "▸ 2 entries promoted" in text_of(app)
        await press(pilot, "l")
        assert "▸" not in "".join(line for line in text_of(app).split("\n") if "promoted" in line)

    drive(app, steps, size)


def test_a_line_that_is_gone_to_comes_out_of_its_fold(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        reader = await read(pilot, "memory/2026-03-17.md")
        assert "OpenClaw's light sleep, 3 lines" in text_of(app)
        await press(pilot, "f")
        await enter(pilot, "candidate")
        assert reader.cursor == 6
        assert "- a candidate" in text_of(app)

    drive(app, steps, LARGE)


def test_a_note_without_dreams_says_that_nothing_is_folded(workspace: Path, app: MemoryApp) -> None:
    (workspace / "MEMORY.md").write_text("# Home\n- tea\n")

    async def steps(pilot: Pilot[int]) -> None:
        await read(pilot, "MEMORY.md")
        await press(pilot, "h")
        assert "Nothing in this note can be folded" in said(app)

    drive(app, steps, SMALL)


@SIZES
def test_promotions_are_decided_together_and_undone_as_one(
    size: tuple[int, int], workspace: Path, app: MemoryApp
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        queue = view.query_one(Suggestions)
        first = next(one for one in view.open if one.kind == "promotion")
        queue.cursor = queue.row_of(first.id) or 0
        await press(pilot, "space")
        matches_screen(app, "promotions")
        await press(pilot, "*", "x")
        assert [one for one in view.open if one.kind == "promotion"] == []
        assert "2 suggestions are kept for good. u undoes it." in said(app)
        await press(pilot, "u")
        assert sum(one.kind == "promotion" for one in view.open) == 2
        queue.cursor = queue.row_of(first.id) or 0
        await press(pilot, "*", "m")
        assert isinstance(app.screen, Preview)
        await press(pilot, "enter")
        assert "openclaw-memory-promotion" not in (workspace / "MEMORY.md").read_text()
        assert (workspace / "memory/2026-03-17.md").read_text() == DAY
        await press(pilot, "u")
        assert (workspace / "MEMORY.md").read_text() == MEMORY

    drive(app, steps, size)


def test_promotions_stand_by_night_and_a_night_is_marked_together(workspace: Path, app: MemoryApp) -> None:
    older = MEMORY.replace("## Rules", MEMORY[MEMORY.index("## Promoted") : MEMORY.index("## Rules")] + "## Rules")
    older = (
        older.replace("03-18)", "03-15)", 1).replace("promotion:k1", "promotion:k3", 1).replace("ion:k2", "ion:k4", 1)
    )
    older = older.replace("the guest network is", "the cellar network is", 1).replace("sits in", "sat in", 1)
    (workspace / "MEMORY.md").write_text(older)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        queue = view.query_one(Suggestions)
        heads = [row[0].strip() for row in queue._rows if isinstance(row, tuple) and "promoted" in row[0]]
        assert heads == ["○ promoted by OpenClaw on 2026-03-18: 2", "○ promoted by OpenClaw on 2026-03-15: 2"]
        last = next(one for one in view.open if one.kind == "promotion" and one.group == "on 2026-03-15")
        queue.cursor = queue.row_of(last.id) or 0
        await press(pilot, "*", "m", "enter")
        text = (workspace / "MEMORY.md").read_text()
        assert "promotion:k1" in text
        assert "promotion:k2" in text
        assert "promotion:k3" not in text
        assert "promotion:k4" not in text
        await press(pilot, "u")
        assert (workspace / "MEMORY.md").read_text() == older

    drive(app, steps, LARGE)


def test_a_promoted_entry_is_edited_in_its_line(workspace: Path, app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        queue = view.query_one(Suggestions)
        first = next(one for one in view.open if one.kind == "promotion")
        queue.cursor = queue.row_of(first.id) or 0
        await press(pilot, "i")
        await enter(pilot, " indeed")
        await press(pilot, "enter", "enter")
        assert ":3-3] indeed\n<!--" in (workspace / "MEMORY.md").read_text()
        await press(pilot, "u")
        assert (workspace / "MEMORY.md").read_text() == MEMORY

    drive(app, steps, LARGE)


@SIZES
def test_lost_lines_are_brought_back_from_the_inbox(size: tuple[int, int], workspace: Path, app: MemoryApp) -> None:
    note = workspace / "memory/2026-03-17.md"

    async def steps(pilot: Pilot[int]) -> None:
        note.write_text("# 2026-03-17\n\n- 12:00 overwritten\n")
        await press(pilot, "r", "4")
        view = app.screen
        assert isinstance(view, InboxView)
        assert view.open[0].kind == "lost"
        queue = view.query_one(Suggestions)
        queue.cursor = queue.row_of(view.open[0].id) or 0
        await settled(pilot)
        await press(pilot, "enter")
        assert isinstance(app.screen, Preview)
        await press(pilot, "enter")
        assert "- a candidate" in note.read_text()
        assert "- 12:00 overwritten" in note.read_text()
        await press(pilot, "u")
        assert note.read_text() == "# 2026-03-17\n\n- 12:00 overwritten\n"
        await press(pilot, "g", "h")
        assert isinstance(app.screen, HistoryView)

    drive(app, steps, size)


def test_the_history_restores_a_text_to_the_letter_or_its_lost_lines(workspace: Path, app: MemoryApp) -> None:
    note = workspace / "memory/2026-03-17.md"

    async def steps(pilot: Pilot[int]) -> None:
        note.write_text("# 2026-03-17\n\n- 12:00 overwritten\n")
        await press(pilot, "r")
        await read(pilot, "memory/2026-03-17.md")
        await press(pilot, "g", "h")
        assert "enter restores" in text_of(app)
        await press(pilot, "enter")
        assert "Bring lost lines back" in text_of(app)
        await press(pilot, "enter")
        assert note.read_text() == DAY
        await press(pilot, "u", "enter")
        assert note.read_text() == "# 2026-03-17\n\n- 12:00 overwritten\n"
        await press(pilot, "g", "h", "enter", "w", "enter")
        assert "overwritten" in note.read_text()
        assert {*DAY.splitlines()} <= {*note.read_text().splitlines()}

    drive(app, steps, LARGE)
