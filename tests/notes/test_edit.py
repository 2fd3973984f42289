"""Changes reach the disk in one step or not at all, others' changes stay, and every one can be taken back."""

import os
import stat
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_tui.errors import EditRefused, PathRefused
from memory_tui.notes import write
from memory_tui.notes.changes import Busy, Change, Conflict, FileChange, NothingToChange, ReadOnly
from tests.notes.test_changes import NOTE
from tests.support.curate import curator, entries, hidden, put, workspace
from tests.support.waiting import LONG
from tests.support.workspace import unprivileged_folder

PATHS = ("MEMORY.md", "memory/a.md", "memory/deep/b.md")
LOG = "memory/2026-01-12.md"
pytestmark = pytest.mark.usefixtures("quick_disk", "patient")


@pytest.fixture(autouse=True)
def _late_writers_are_waited_for(monkeypatch):
    monkeypatch.setattr(write, "LATE_SECONDS", LONG)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(PATHS), st.none() | NOTE), min_size=1, max_size=3, unique_by=lambda file: file[0]
        ),
        min_size=1,
        max_size=4,
    )
)
def test_undo_brings_back_every_byte_and_redo_makes_it_again(tmp_path_factory, steps):
    folder = workspace(tmp_path_factory.mktemp("undo") / "notes")
    one = curator(folder)

    def now():
        return {path: one.read(path) for path in PATHS}

    states = [now()]
    for step in steps:
        files = tuple(FileChange(path, one.read(path), new) for path, new in step)
        if any(file.before != file.after for file in files):
            one.apply(Change("edit", "a change", files))
            states.append(now())
    for state in reversed(states[:-1]):
        # A new start reads the same journal.
        curator(folder).undo()
        assert now() == state
    with pytest.raises(EditRefused, match="left to undo"):
        one.undo()
    for state in states[1:]:
        curator(folder).redo()
        assert now() == state
    assert hidden(folder) == []


def test_undo_refuses_a_note_that_changed_since_and_merges_when_asked(folder):
    one = curator(folder)
    note = folder / "MEMORY.md"
    before = note.read_bytes()
    one.apply(put("MEMORY.md", before, before.replace(b"- one", b"- two")))
    with note.open("ab") as file:
        file.write(b"\n## Later\n- theirs\n")
    with pytest.raises(Conflict, match="has changed since") as caught:
        one.undo()
    assert caught.value.view.merge.merged == before + b"\n## Later\n- theirs\n"
    assert b"- two" in note.read_bytes()
    one.undo(merging=True)
    assert note.read_bytes() == before + b"\n## Later\n- theirs\n"
    note.write_bytes(b"all new\n")
    with pytest.raises(Conflict, match="has changed since"):
        one.redo(merging=True)
    assert note.read_bytes() == b"all new\n"
    assert entries(one, state="draft") == []


def test_undo_after_others_changed_the_same_lines_and_twice_and_after_a_restart(folder):
    note = folder / "MEMORY.md"
    before = note.read_bytes()
    mine = before.replace(b"- one", b"- two")
    made = curator(folder).apply(put("MEMORY.md", before, mine)).entry
    theirs = mine.replace(b"- two", b"- theirs")
    note.write_bytes(theirs)
    for merging in (False, True):
        with pytest.raises(Conflict, match="has changed since") as caught:
            curator(folder).undo(made.id, merging=merging)
        assert note.read_bytes() == theirs
        view = caught.value.view
        assert (view.base, view.mine, view.other) == (mine, before, theirs)
    # Somebody chooses, in another process; that is what taking it back came to, so it is not taken back twice.
    curator(folder).resolve(caught.value, before + b"- theirs\n")
    assert note.read_bytes() == before + b"- theirs\n"
    with pytest.raises(EditRefused, match="left to undo"):
        curator(folder).undo()
    with pytest.raises(EditRefused):
        curator(folder).undo(made.id)
    assert note.read_bytes() == before + b"- theirs\n"
    curator(folder).redo(merging=True)
    assert note.read_bytes() == theirs
    assert entries(curator(folder), state="draft") == []


def test_what_was_taken_back_by_hand_counts_as_taken_back(folder):
    one = curator(folder)
    before = one.read("MEMORY.md")
    one.apply(put("memory/a.md", None, b"a\n"))
    one.apply(put("MEMORY.md", before, b"# Other\n"))
    (folder / "MEMORY.md").write_bytes(before)
    one.undo()
    assert [entry.title for entry in one.stack("undo")] == ["edit memory/a.md"]
    one.redo()
    assert one.read("MEMORY.md") == b"# Other\n"
    assert entries(one, state="draft") == []


def test_a_new_change_ends_what_can_be_made_again(folder):
    one = curator(folder)
    for text in (b"1\n", b"2\n"):
        one.apply(put("MEMORY.md", one.read("MEMORY.md"), text))
    one.undo()
    assert [entry.title for entry in one.stack("redo")] == ["edit MEMORY.md"]
    one.apply(put("MEMORY.md", b"1\n", b"3\n"))
    assert one.stack("redo") == ()
    assert [entry.kind for entry in entries(one, "MEMORY.md")] == ["edit", "undo", "edit", "edit"]
    assert entries(one, "memory/other.md") == []
    # An older one can be taken back alone.
    first = one.apply(put("memory/a.md", None, b"a\n")).entry
    one.apply(put("memory/b.md", None, b"b\n"))
    one.undo(first.id)
    assert (one.read("memory/a.md"), one.read("memory/b.md")) == (None, b"b\n")
    with pytest.raises(EditRefused):
        one.undo(first.id)


def test_the_trash_gives_back_note_mode_and_time(folder):
    one = curator(folder)
    note = folder / "memory" / "a.md"
    note.write_bytes(b"keep\n")
    note.chmod(0o640)
    os.utime(note, ns=(10**18, 10**18))
    one.apply(one.plan.trash("memory/a.md"))
    assert not note.exists()
    one.undo()
    assert note.read_bytes() == b"keep\n"
    assert (stat.S_IMODE(note.stat().st_mode), note.stat().st_mtime_ns) == (0o640, 10**18)
    assert one.stack("undo") == ()


def test_what_others_changed_meanwhile_is_kept_and_a_change_is_made_whole_or_not_at_all(folder):
    one = curator(folder)
    note = folder / "MEMORY.md"
    before = note.read_bytes()
    with pytest.raises(NothingToChange):
        one.apply(put("MEMORY.md", before, before))
    note.write_bytes(before.replace(b"# Memory", b"# Memories"))
    done = one.apply(put("MEMORY.md", before, before.replace(b"- one", b"- two")))
    assert note.read_bytes() == before.replace(b"# Memory", b"# Memories").replace(b"- one", b"- two")
    assert done.merged == ("MEMORY.md",)
    one.undo()
    now = note.read_bytes()
    assert now == before.replace(b"# Memory", b"# Memories")
    (folder / "memory" / "a.md").write_bytes(b"theirs\n")
    files = FileChange("MEMORY.md", now, now + b"- new\n"), FileChange("memory/a.md", b"other\n", b"mine\n")
    with pytest.raises(Conflict):
        one.apply(Change("promote", "two notes", files))
    assert note.read_bytes() == now
    assert one.stack("undo") == ()


def test_a_text_that_touches_theirs_is_not_written_but_kept_as_a_draft(folder):
    one = curator(folder)
    before = one.read("MEMORY.md")
    (folder / "MEMORY.md").write_bytes(before.replace(b"- one", b"- theirs"))
    with pytest.raises(Conflict) as caught:
        one.apply(put("MEMORY.md", before, before.replace(b"- one", b"- mine")))
    assert one.read("MEMORY.md") == before.replace(b"- one", b"- theirs")
    draft = entries(one, state="draft")[0]
    assert draft.id == caught.value.draft
    mine, theirs = one.journal.change_of(draft).files
    assert (mine.before, mine.after) == (before, before.replace(b"- one", b"- mine"))
    assert theirs.after == before.replace(b"- one", b"- theirs")


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
@pytest.mark.parametrize(
    ("mine", "added", "merged"),
    [
        (b"# Memory\n\n## Home\n- mine\n", b"- late\n", b"# Memory\n\n## Home\n- mine\n- late\n"),
        (b"# Memory\n\n## Home\n- mine\n", None, None),
        (None, b"- late\n", None),
    ],
    ids=["beside", "same lines", "removed"],
)
def test_a_writer_between_the_exchange_and_the_last_look_loses_nothing(folder, monkeypatch, mine, added, merged):
    """Somebody found the old file before the exchange and writes to it afterwards."""
    one = curator(folder)
    note = folder / "MEMORY.md"
    before = note.read_bytes()
    theirs = before + added if added else b"# Memory\n\n## Home\n- theirs\n"
    quiet, names = write.quiet, []

    def write_late(descriptor, seconds):
        replaced = [path for path in folder.glob(".memory-tui-*") if path.read_bytes() == before]
        if replaced and not names:
            names.append(replaced[0].name)
            replaced[0].write_bytes(theirs)
        return quiet(descriptor, seconds)

    monkeypatch.setattr(write, "quiet", write_late)
    if merged is not None:
        one.apply(put("MEMORY.md", before, mine))
        assert note.read_bytes() == merged
        one.undo()
    else:
        with pytest.raises(Conflict) as caught:
            one.apply(put("MEMORY.md", before, mine))
        view = caught.value.view
        assert (view.base, view.mine, view.other) == (before, mine, theirs)
        assert one.journal.change_of(entries(one, state="draft")[0]).files[0].after == mine
    assert names
    assert note.read_bytes() == theirs
    assert hidden(folder) == []
    assert one.stack("undo") == ()


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_writer_who_keeps_the_old_file_open_is_heard_by_the_next_start(folder, monkeypatch):
    """The replaced file stays beside the note until its writer closes it; then its lines come into the note."""
    monkeypatch.setattr(write, "LATE_SECONDS", 0.05)
    one, note = curator(folder), folder / "MEMORY.md"
    before, last = note.read_bytes(), write._last_content
    late = []

    def open_late(place, descriptor, old):
        late.append((folder / old).open("ab", buffering=0))
        return last(place, descriptor, old)

    monkeypatch.setattr(write, "_last_content", open_late)
    # The lease lets nobody open the file before it is given back.
    monkeypatch.setattr(write, "quiet", lambda descriptor, seconds: False)
    monkeypatch.setattr(write, "_leases_work", lambda *_: False)
    entry = one.apply(put("MEMORY.md", before, before.replace(b"- one", b"- two"))).entry
    monkeypatch.undo()
    assert entry.left == tuple(hidden(folder))
    assert len(entry.left) == 1
    late[0].write(b"- late\n")
    curator(folder).recover()
    assert note.read_bytes() == before.replace(b"- one", b"- two"), "it is open still"
    late[0].close()
    curator(folder).recover()
    assert note.read_bytes() == before.replace(b"- one", b"- two") + b"- late\n"
    assert hidden(folder) == []
    assert not one.journal.unsettled()


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_note_that_somebody_keeps_open_to_write_is_left_alone(folder, monkeypatch):
    monkeypatch.setattr(write, "WAIT_SECONDS", 0.05)
    one = curator(folder)
    before = one.read("MEMORY.md")
    for mine in (b"# New\n", before + b"- mine\n", None):
        with (folder / "MEMORY.md").open("ab"), pytest.raises(Busy):
            one.apply(put("MEMORY.md", before, mine))
        assert one.read("MEMORY.md") == before
        assert hidden(folder) == []


@pytest.mark.parametrize(
    "path",
    [
        "../out.md", "/etc/x.md", "memory/../../out.md", "other.md", "memory/x.txt", "~/x.md", "memory/link.md",
        "memory/away/x.md", "memory/\0.md", "",
    ],
)  # fmt: skip
def test_nothing_outside_the_roots_is_written(folder, tmp_path, path):
    (tmp_path / "away").mkdir()
    (tmp_path / "target.md").write_bytes(b"out\n")
    (folder / "memory" / "link.md").symlink_to(tmp_path / "target.md")
    (folder / "memory" / "away").symlink_to(tmp_path / "away")
    before = sorted(tmp_path.rglob("*.md"))
    with pytest.raises(PathRefused):
        curator(folder).apply(put(path, None, b"x\n"))
    assert sorted(tmp_path.rglob("*.md")) == before
    assert (tmp_path / "target.md").read_bytes() == b"out\n"


def test_read_only_says_why(folder):
    one = curator(folder, read_only=True)
    with pytest.raises(ReadOnly, match="--read-only"):
        one.apply(put("MEMORY.md", one.read("MEMORY.md"), b"x\n"))
    (folder / "MEMORY.md").chmod(0o444)
    with pytest.raises(ReadOnly, match="mode 444"):
        curator(folder).apply(put("MEMORY.md", one.read("MEMORY.md"), b"x\n"))
    assert b"- one" in (folder / "MEMORY.md").read_bytes()
    assert one.journal.entries() == ()


@pytest.mark.parametrize(
    ("closed", "mode", "said"), [("MEMORY.md", 0o464, "read-only for you"), (".", 0o555, "cannot be written")]
)
def test_what_its_owner_may_not_write_is_refused_and_stays(closed, mode, said):
    with unprivileged_folder() as top:
        folder = workspace(top / "notes")
        one, before = curator(folder), (folder / "MEMORY.md").read_bytes()
        (folder / closed).chmod(mode)
        with pytest.raises(ReadOnly, match=said):
            one.apply(put("MEMORY.md", before, b"x\n"))
        assert (folder / "MEMORY.md").read_bytes() == before
        assert entries(one) == []


def test_a_line_that_another_program_is_writing_is_waited_for(folder, monkeypatch):
    note, rest, left = folder / LOG, time.sleep, [b"lf\n"]
    note.write_bytes(b"- early\n- ha")

    def finish(seconds):
        if left:
            with note.open("ab") as file:
                file.write(left.pop())
        rest(seconds)

    monkeypatch.setattr(write, "HALF_SECONDS", LONG)
    monkeypatch.setattr(write.time, "sleep", finish)
    curator(folder).apply(put(LOG, note.read_bytes(), b"- early\n- ha\n- mine\n"))
    assert left == []
    assert note.read_bytes() == b"- early\n- half\n- mine\n"


def test_nothing_comes_behind_half_a_line_of_another_program(folder):
    note = folder / LOG
    note.write_bytes(b"- early\n- ha")
    curator(folder).apply(put(LOG, b"- early\n", b"- early\n- mine\n"))
    assert note.read_bytes() == b"- early\n- mine\n- ha"


def test_mode_attributes_and_a_second_name_stay(folder):
    one, note = curator(folder), folder / "MEMORY.md"
    before = note.read_bytes()
    note.chmod(0o640)
    os.link(note, folder / "backup")
    try:
        os.setxattr(note, "user.tag", b"blue")
        tagged = True
    except (OSError, AttributeError):
        tagged = False
    one.apply(put("MEMORY.md", before, before + b"- new\n"))
    assert stat.S_IMODE(note.stat().st_mode) == 0o640
    assert (folder / "backup").read_bytes() == before
    assert not tagged or os.getxattr(note, "user.tag") == b"blue"
    for path in [one.journal.folder, one.journal.database, *one.journal.folder.rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_without_exchange_and_leases_it_works_as_well(folder, monkeypatch):
    monkeypatch.setattr("memory_tui.durable._exchange_call", lambda: None)
    monkeypatch.setattr(write, "_lease", lambda descriptor: None)
    one = curator(folder)
    before = one.read("MEMORY.md")
    one.apply(put("MEMORY.md", before, b"# Other\n"))
    one.apply(put("MEMORY.md", b"# Other\n", None))
    one.undo()
    one.undo()
    assert one.read("MEMORY.md") == before
    assert hidden(folder) == []
