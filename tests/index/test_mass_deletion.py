"""Notes that vanish all at once are not forgotten before a person agrees."""

import pytest

from memory_tui import events
from memory_tui.errors import Unreadable
from memory_tui.index import index_write
from memory_tui.index.store import DEVICES
from memory_tui.index.sync import compare
from memory_tui.workspace import roots
from memory_tui.workspace.roots import scan
from tests.support.index import Memory


@pytest.fixture
def memory(memory):
    for number in range(10):
        memory.write(f"memory/{number}.md", f"note {number}")
    memory.write("MEMORY.md", "facts")
    memory.sync()
    return memory


def test_more_than_half_asks_first(memory):
    for number in range(6):
        (memory.folder / f"memory/{number}.md").unlink()
    report = memory.sync()
    assert report.removed == 0
    assert (report.shrink.missing, report.shrink.known) == (6, 11)
    assert len(memory.store.indexed()) == 11
    [event] = memory.told(events.ShrinkHeld)
    assert event.reason == "6 of 11 notes vanished at once"
    now = compare(scan(memory.roots), memory.store.indexed(), roots=memory.roots)
    assert now.shrink == report.shrink
    assert {state.detail for state in now.pending} == {"deleted? 6 of 11 notes vanished at once"}
    assert memory.sync(accept=True).removed == 6
    assert memory.sync().shrink is None


def test_a_new_index_that_lacks_more_than_half_of_what_is_on_disk_is_not_published(memory, monkeypatch):
    before = {path: row.chunks for path, row in memory.store.indexed().items()}
    uuid, real = memory.store.uuid(), roots.read

    def failing(note):
        if note.path.startswith("memory/") and note.path != "memory/0.md":
            raise Unreadable(f"{note.path} cannot be read: Input/output error.")
        return real(note)

    monkeypatch.setattr(roots, "read", failing)
    report = memory.sync(force=True)
    assert (report.shrink.missing, report.shrink.known) == (9, 11)
    assert report.postponed == "The new index would lack 9 of 11 notes that are on disk"
    assert report.shrink.examples
    assert memory.store.uuid() == uuid
    assert {path: row.chunks for path, row in memory.store.indexed().items()} == before
    assert memory.sync(force=True, accept=True).shrink is None
    assert memory.store.uuid() != uuid
    monkeypatch.undo()
    assert memory.sync().shrink is None
    assert {path: row.chunks for path, row in memory.store.indexed().items()} == before


def test_a_few_deletions_are_believed(memory):
    for number in range(5):
        (memory.folder / f"memory/{number}.md").unlink()
    assert memory.sync().removed == 5


def test_a_root_on_another_device_is_not_believed_even_if_few_vanish(memory):
    index_write.remember(memory.store, DEVICES, '{"memory": 1}')
    (memory.folder / "memory/1.md").unlink()
    assert memory.sync().removed == 0
    assert memory.sync().removed == 0, "the new device is not remembered while a note is held"
    now = compare(scan(memory.roots), memory.store.indexed(), roots=memory.roots, devices={"memory": 1})
    [state] = now.of("missing root")
    assert "mounted or unmounted" in state.detail
    assert memory.sync(accept=True).removed == 1


def test_a_rebuild_waits_for_notes_that_are_held(memory):
    (memory.folder / "memory").rename(memory.folder.parent / "hidden")
    memory.settings = memory.settings.set("chunking.tokens", 50, "test")
    report = memory.sync()
    assert not report.rebuilt
    assert report.postponed == "10 indexed notes are out of reach"
    assert memory.store.words.match(["note"])[0].size == 10
    assert memory.sync(accept=True).rebuilt
    assert len(memory.store.indexed()) == 1


def test_an_extra_path_taken_out_of_the_configuration_needs_no_answer(tmp_path):
    extra = tmp_path / "elsewhere"
    extra.mkdir()
    for number in range(10):
        (extra / f"{number}.md").write_text(f"note {number}")
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite", extra=(str(extra),))
    memory.write("MEMORY.md", "facts")
    memory.sync()
    memory.extra = ()
    report = memory.sync()
    assert (report.removed, report.rebuilt) == (10, True)
    assert set(memory.store.indexed()) == {"MEMORY.md"}
    memory.store.close()


def test_the_command_says_what_it_holds_back_and_takes_the_answer(memory, command):
    index = memory.store.path
    memory.store.close()
    for number in range(8):
        (memory.folder / f"memory/{number}.md").unlink()
    words = ["index", "--workspace", str(memory.folder), "--index", str(index), "--provider", "scripted"]
    code, _, err = command(*words)
    assert (code, "8 of 11 notes vanished at once" in err) == (0, True)
    code, out, err = command(*words, "--accept-shrink")
    assert (code, "8 removed" in out, "vanished" in err) == (0, True, False)
