"""Beside a program that never stops writing every change is made at once, and no line of either side is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.notes import journal, write
from memory_tui.notes.journal import left
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.notes.resolve import Resolve
from memory_tui.tui.widgets.edit_area import EditArea
from tests.harness.race import CLOCK, LOG, WAYS, Desk, Writer, lines_of
from tests.support.curate import curator, hidden, workspace
from tests.support.tui import TODAY, drive, make_app, said, sample, strike, until
from tests.support.waiting import LONG

DAY = f"memory/{TODAY}.md"
ACTS = ("save", "promote", "merge", "archive", "remember", "undo", "redo")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = workspace(tmp_path / "notes")
    Desk.prepare(folder)
    return folder


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is how long a program waits for another one that gets no turn on a busy machine."""
    for place, name in ((write, "WAIT_SECONDS"), (write, "DEADLINE_SECONDS"), (journal, "_LOCK_SECONDS")):
        monkeypatch.setattr(place, name, LONG)


def race(folder: Path, act: str, way: str, pause: float, times: int) -> None:
    with Writer(folder / LOG, way, pause) as writer:
        desk = Desk(folder, writer.wrote)
        for _ in range(times):
            getattr(desk, act)()
    assert writer.missing(folder) == []
    assert desk.wrong() == []
    assert hidden(folder) == []
    assert desk.curator.drafts() == ()


PACES = [
    pytest.param(0.005, 8, id="usual"),
    *(pytest.param(1 / rate, 12, marks=pytest.mark.soak, id=f"{rate} a second") for rate in (5, 20)),
]


@pytest.mark.parametrize(("pause", "times"), PACES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", ACTS)
def test_every_change_beside_a_writer(folder: Path, act: str, way: str, pause: float, times: int) -> None:
    race(folder, act, way, pause, times)


@pytest.mark.parametrize("agents", ["- agent\n", ""])
def test_a_log_that_moves_takes_along_what_was_added_since(folder: Path, agents: str) -> None:
    one, old = curator(folder, clock=lambda: CLOCK), folder / "memory/2024-03-01.md"
    old.write_text("# old\n- a\n", "utf-8")
    change = one.plan.archive(365)
    old.write_text(f"# old\n- a\n{agents}", "utf-8")
    one.apply(change)
    assert not old.exists()
    new = folder / "memory/archive/memory/2024-03-01.md"
    assert new.read_text("utf-8") == f"# old\n- a\n{agents}"
    new.write_text(f"# old\n- a\n{agents}- and more\n", "utf-8")
    one.undo(merging=True)
    assert not new.exists()
    assert old.read_text("utf-8") == f"# old\n- a\n{agents}- and more\n"


def test_a_note_that_two_begin_with_the_same_heading_holds_what_both_wrote(folder: Path) -> None:
    one, path = curator(folder), "memory/2026-01-13.md"
    change = one.plan.edit(path, None, "# 2026-01-13\n\n- mine\n")
    (folder / path).write_text("# 2026-01-13\n\n- theirs\n", "utf-8")
    one.apply(change)
    assert (folder / path).read_text("utf-8") == "# 2026-01-13\n\n- theirs\n- mine\n"
    one.undo()
    assert (folder / path).read_text("utf-8") == "# 2026-01-13\n\n- theirs\n"


# --- on screen -----------------------------------------------------------------------------------------------------


def save_on_screen(tmp_path: Path, way: str, pause: float, times: int) -> None:
    """Open the editor, type, and press ctrl+s once, `times` over, beside a writer of the same note."""
    folder = sample(tmp_path / "notes")
    note = folder / DAY
    lines = "".join(f"- user {number}.\n" for number in range(times))
    note.write_text(f"# 2026-03-20\n\n## Agent\n\n## Mine\n{lines}", "utf-8")
    app = make_app(folder)

    async def steps(pilot: Pilot[int]) -> None:
        loop = asyncio.get_running_loop()
        for number in range(times):
            view = app.screen
            assert isinstance(view, BrowseView), said(app)
            view.go_to(DAY)
            await until(lambda view=view: view.pane.reader.page is not None and view.pane.reader.page.path == DAY)
            await strike(pilot, "i")
            await until(lambda: isinstance(app.screen, EditView) and not app.screen.query_one(EditArea).read_only)
            area = app.screen.query_one(EditArea)
            row = area.text.split("\n").index(f"- user {number}.")
            area.insert(" Saved.", (row, len(f"- user {number}.")))
            await loop.run_in_executor(None, writer.wrote)
            await strike(pilot, "ctrl+s")
            await until(lambda: isinstance(app.screen, BrowseView | Resolve))
            assert isinstance(app.screen, BrowseView), "one key press was not enough"
        assert app.engine is not None
        assert app.engine.notes.curator.drafts() == ()
        journal_of_drafts = app.engine.notes.curator.journal
        await until(lambda: left(journal_of_drafts) == ())

    with Writer(note, way, pause) as writer:
        drive(app, steps)
    found = lines_of(folder)
    assert writer.missing(folder) == []
    assert [found[f"- user {number}. Saved."] for number in range(times)] == [1] * times
    assert [found[f"- user {number}."] for number in range(times)] == [0] * times
    assert hidden(folder) == []


@pytest.mark.parametrize(
    ("pause", "times"),
    [pytest.param(0.02, 3), *(pytest.param(pause, 10, marks=pytest.mark.soak) for pause in (0.2, 0.05))],
)
@pytest.mark.parametrize("way", WAYS)
def test_one_key_press_saves_beside_a_writer(tmp_path: Path, way: str, pause: float, times: int) -> None:
    save_on_screen(tmp_path, way, pause, times)
