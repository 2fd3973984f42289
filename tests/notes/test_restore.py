"""What notes lost to others is noticed, and comes back beside what is there now."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import doctor
from memory_tui.engine.engine import Engine
from memory_tui.events import Noticed
from memory_tui.inbox import Suggestion, checks
from memory_tui.notes import history
from memory_tui.notes.history import is_loss, lost_lines
from memory_tui.notes.journal import Journal, Sight
from memory_tui.plan import Options
from tests.support.curate import git
from tests.support.workspace import put_all

DAY = "memory/2026-03-18.md"
TEXT = (
    "# 2026-03-18\n\n- 09:00 new firmware on the router\n- 10:00 the boiler was serviced\n- 11:00 lunch at the lake\n"
)
OTHER = "# 2026-03-18\n\n- 12:00 written by a session that knew nothing of them\n"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return put_all(tmp_path / "notes", {"MEMORY.md": "# Facts\n\n- tea\n", DAY: TEXT})


def opened(notes: Path, profile: str = "openclaw-2026.3", *, read_only: bool = False) -> Engine:
    changes = (("sync.watch", "false"), ("profile", profile))
    options = Options(workspace=str(notes), provider="none", changes=changes, read_only=read_only)
    return Engine.open(options)


def lost(engine: Engine) -> list[Suggestion]:
    return [one for one in engine.inbox.examine().suggestions if one.kind == "lost"]


@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.9"])
def test_an_overwritten_note_gets_its_lines_back_beside_the_new_ones(notes, profile):
    with opened(notes, profile) as engine:
        engine.index.sync()
        (notes / DAY).write_text(OTHER)
        engine.index.sync()
        (one,) = lost(engine)
        assert (str(one.place), one.actions[0]) == (f"{DAY}:3", "restore"), "where the first of them stood"
        assert "lost 3 lines of text to somebody" in one.reason
        made = engine.notes.curator.apply(checks.changes([one], "restore", engine.notes.curator))
        assert lost_lines(TEXT, (notes / DAY).read_text()) == lost_lines(OTHER, (notes / DAY).read_text()) == {}
        assert lost(engine) == []
        engine.notes.curator.undo(made.entry.id)
        assert (notes / DAY).read_text() == OTHER


def test_what_was_changed_here_or_moved_or_is_no_daily_note_is_not_lost(notes):
    with opened(notes) as engine:
        (notes / "memory/topic.md").write_text("- one\n- two\n")
        engine.index.sync()
        curator = engine.notes.curator
        curator.apply(curator.plan.delete_lines([curator.plan.spot(DAY, 4)], kind="trash"))
        engine.index.sync()
        (notes / DAY).write_text((notes / DAY).read_text() + "- 13:00 the agent goes on\n")
        (notes / "memory/topic.md").write_text("- one\n")
        engine.index.sync()
        assert lost(engine) == []
        (notes / DAY).rename(notes / "memory/2026-03-18-lake.md")
        engine.index.sync()
        assert lost(engine) == []


def test_nothing_is_kept_where_nothing_may_be_written(notes):
    for _ in range(2):
        with opened(notes, read_only=True) as engine:
            engine.index.sync()
            assert lost(engine) == []
            assert not engine.notes.curator.journal.folder.exists()
        (notes / DAY).write_text(OTHER)


def test_annotations_do_not_count_as_lost_lines(notes):
    (notes / DAY).write_text(f"{TEXT}- 12:00 the plan <!-- project: house -->\n")
    with opened(notes, "openclaw-2026.9") as engine:
        engine.index.sync()
        (notes / DAY).write_text((notes / DAY).read_text() + "- 13:00 more\n")
        engine.index.sync()
        assert lost(engine) == []


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("- a\n- b\n", "- a\n- b\n- c\n", False),
        ("- a\n- b\n- c\n- d\n", "- a\n- B!\n- c\n- d\n", False),
        ("- a\n- b\n", "- a\n", True),
        ("- a\n- b\n- c\n", "- x\n- y\n- z\n- w\n", True),
        ("- a <!-- importance: 3 -->\n- b\n", "- a\n\n- b\n", False),
        ("", "", False),
    ],
)
def test_a_loss_is_fewer_lines_or_mostly_other_ones(before, after, lost, tmp_path):
    journal = Journal(tmp_path / "journal", tmp_path / "state.sqlite")
    with journal.locked():
        journal.observe([Sight(DAY, before.encode(), 1.0)], 1)
        journal.observe([Sight(DAY, after.encode(), 2.0)])
    assert any(is_loss(journal, edit) for edit in journal.edits()) is lost


_LINES = st.lists(st.sampled_from(["a", "b", "c", "- d", ""]), max_size=6)


@given(_LINES, _LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_together_no_line_of_either_text_is_missing(old, new, end, closed):
    before, now = (end.join(lines) + end * closed for lines in (old, new))
    found = history.together(before.encode(), now.encode()).decode()
    assert lost_lines(before, found) == lost_lines(now, found) == {}


def test_a_note_that_somebody_removes_is_a_loss_and_one_renamed_or_gone_by_git_is_none(notes, printed):
    topics = {f"memory/topic-{number}.md": f"# topic {number}\n- fact {number}\n" for number in range(3)}
    put_all(notes, topics | {"memory/branch.md": "- of a branch\n"})
    for words in ("init", "add MEMORY.md", "commit -m one", "checkout -b two", "add memory/branch.md", "commit -m two"):
        git(notes, *words.split())
    with opened(notes) as engine:
        said: list[str] = []
        engine.listen(lambda event: said.append(event.text) if isinstance(event, Noticed) else None)
        engine.index.sync()
        (notes / "memory/topic-0.md").rename(notes / "memory/renamed.md")
        git(notes, "checkout", "-")
        engine.index.sync()
        assert not (notes / "memory/branch.md").exists()
        assert (lost(engine), said) == ([], [])
        (notes / "MEMORY.md").unlink()
        (notes / "memory/topic-1.md").unlink()
        engine.index.sync()
        assert {one.place.path for one in lost(engine)} == {"MEMORY.md", "memory/topic-1.md"}
        [group] = [group for group in engine.inbox.examine().groups if group.kind == "lost"]
        assert group.proposal == "restore"
        assert len(said) == 1
        assert said[0].startswith("MEMORY.md and 1 other note lost lines to ")
        [result] = doctor.examine(engine, [check for check in doctor.CHECKS if check.key == "curated"])
        [removed] = engine.notes.curator.journal.edits("MEMORY.md")
        assert f"memory-tui restore MEMORY.md --before {removed.id}" in result.fix
    where = ["--workspace", str(notes), "--provider", "none"]
    printed("inbox", "--id", group.id, "--do", "restore", "--yes", *where)
    assert (notes / "MEMORY.md").read_text() == "# Facts\n\n- tea\n"
    assert (notes / "memory/topic-1.md").read_text() == topics["memory/topic-1.md"]
