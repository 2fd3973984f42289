"""Freshness names every note that is not searchable as it is on disk."""

import os

import pytest

from memory_tui.index import index_write
from memory_tui.index.store import CHANGED
from memory_tui.index.sync import compare
from memory_tui.workspace.roots import scan
from tests.support.index import Memory
from tests.support.workspace import needs_inodes, unprivileged_folder


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    yield memory
    memory.store.close()


def fresh(memory):
    return compare(scan(memory.roots), memory.store.indexed(), memory.roots)


def test_each_kind_of_difference_is_named(memory):
    for name in ("same", "changed", "deleted", "failed"):
        memory.write(f"memory/{name}.md", name)
    memory.write("memory/picture.png", "no note")
    memory.sync()
    assert fresh(memory).stale == {}
    assert fresh(memory).fresh == 4
    memory.write("memory/changed.md", "has changed")
    memory.write("memory/new.md", "new")
    (memory.folder / "memory/deleted.md").unlink()
    index_write.fail_file(memory.store, "memory/failed.md", "memory", "the disk is on fire")

    now = fresh(memory)
    assert now.fresh == 1
    assert {state.path: state.detail for state in now.pending} == {
        "memory/changed.md": "changed",
        "memory/new.md": "new",
        "memory/deleted.md": "deleted",
    }
    assert [(state.path, state.detail) for state in now.of("failed")] == [("memory/failed.md", "the disk is on fire")]
    assert [left.path for left in now.left_out] == ["memory/picture.png"]

    memory.sync()
    assert fresh(memory).stale == {}


def test_a_note_that_never_rests_has_a_state_of_its_own(memory):
    memory.write("MEMORY.md", "one")
    memory.sync()
    index_write.fail_file(memory.store, "MEMORY.md", "memory", "somebody is writing it", CHANGED)
    [state] = fresh(memory).of("changed while read")
    assert state.detail == "somebody is writing it"
    memory.sync()
    assert fresh(memory).fresh == 1


@needs_inodes
def test_a_folder_that_may_not_be_listed_hides_notes_but_deletes_none():
    with unprivileged_folder() as top:
        memory = Memory(top / "notes", top / "index" / "memory.sqlite")
        memory.write("memory/private/a.md", "one")
        memory.write("memory/b.md", "two")
        memory.sync()
        folder = memory.folder / "memory/private"
        folder.chmod(0)
        try:
            assert memory.sync().removed == 0
            now = fresh(memory)
            assert now.fresh == 1
            [state] = now.of("failed")
            assert state.path == "memory/private/a.md"
            assert "cannot be listed" in state.detail
        finally:
            folder.chmod(0o700)
        assert memory.sync().removed == 0
        assert fresh(memory).fresh == 2
        memory.store.close()


@needs_inodes
def test_a_folder_that_becomes_a_link_while_it_is_looked_at_is_not_followed(memory, tmp_path, monkeypatch):
    memory.write("memory/deep/a.md", "one")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.md").write_text("not for you")
    real = os.open

    def swapped(path, *arguments, **named):
        if str(path).endswith("deep") and not (memory.folder / "memory/deep").is_symlink():
            (memory.folder / "memory/deep").rename(tmp_path / "was")
            (memory.folder / "memory/deep").symlink_to(tmp_path / "secret")
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", swapped)
    seen = scan(memory.roots)
    assert seen.notes == ()
    assert [(left.path, left.rule) for left in seen.left_out] == [("memory/deep", "unreadable")]
    monkeypatch.undo()
    assert [(left.path, left.rule) for left in scan(memory.roots).left_out] == [("memory/deep", "symlink")]
