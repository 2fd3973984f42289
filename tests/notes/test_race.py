"""Beside a program that never stops writing every change is made at once, and no line of either side is lost."""

import pytest

from memory_tui.notes import journal, write
from tests.harness.race import CLOCK, LOG, WAYS, Desk, Writer
from tests.support.curate import curator, hidden, workspace
from tests.support.waiting import LONG

ACTS = ("save", "promote", "remember", "undo", "redo")


@pytest.fixture
def folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    Desk.prepare(folder)
    return folder


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nor is how long a program waits for another one that gets no turn on a busy machine."""
    for place, name in ((write, "WAIT_SECONDS"), (write, "DEADLINE_SECONDS"), (journal, "_LOCK_SECONDS")):
        monkeypatch.setattr(place, name, LONG)


def race(folder, act, way, pause, times):
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
def test_every_change_beside_a_writer(folder, act, way, pause, times):
    race(folder, act, way, pause, times)


@pytest.mark.parametrize("agents", ["- agent\n", ""])
def test_a_log_that_moves_takes_along_what_was_added_since(folder, agents):
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


def test_a_note_that_two_begin_with_the_same_heading_holds_what_both_wrote(folder):
    one, path = curator(folder), "memory/2026-01-13.md"
    change = one.plan.edit(path, None, "# 2026-01-13\n\n- mine\n")
    (folder / path).write_text("# 2026-01-13\n\n- theirs\n", "utf-8")
    one.apply(change)
    assert (folder / path).read_text("utf-8") == "# 2026-01-13\n\n- theirs\n- mine\n"
    one.undo()
    assert (folder / path).read_text("utf-8") == "# 2026-01-13\n\n- theirs\n"
