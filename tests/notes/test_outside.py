"""What an outside editor makes of a note is one change of the journal, taken back byte for byte like any other."""

import contextlib
import os
import shlex
import sys

import pytest

from memory_tui.errors import EditRefused, PathRefused
from memory_tui.notes.changes import Conflict
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.editor import command, run_editor
from tests.support.curate import agent, curator, entries, put
from tests.support.tui import Window, make_app, sample
from tests.support.waiting import LONG

PATH = "memory/day.md"
pytestmark = pytest.mark.usefixtures("quick_disk")
ODD = b"\xef\xbb\xbf# Day\r\n- caf\xe9 \xff\r\n\r\n- last, without an end"


def an_editor(monkeypatch, program):
    """Let $VISUAL be a process of its own that does `program` with the note `path`."""
    words = [sys.executable, "-c", f"import os, sys; path = sys.argv[-1]; {program}"]
    monkeypatch.setenv("VISUAL", shlex.join(words))


def lend_and_edit(one, path=PATH):
    """What the screen does, without a screen."""
    edit = one.begin_external_edit(path)
    assert run_editor(command(edit.absolute, 1, os.environ)) == ""
    return one.finish_external_edit(edit, "vim")


def test_a_real_editor_is_one_change_and_survives_a_restart(folder, monkeypatch):
    note = folder / PATH
    note.write_bytes(ODD)
    an_editor(
        monkeypatch,
        "data = open(path, 'rb').read(); open(path, 'wb').write(data.replace(b'caf', b'CAF'));"
        "open(path, 'ab').write(b' now'); os.rename(path, path + '~');"
        "open(path, 'wb').write(open(path + '~', 'rb').read()); os.remove(path + '~')",
    )
    told = []
    assert lend_and_edit(curator(folder, changed=told.append)) is not None
    assert told == [(PATH,)]
    after = ODD.replace(b"caf", b"CAF") + b" now"
    assert note.read_bytes() == after
    again = curator(folder)
    (entry,) = entries(again, PATH)
    assert (entry.kind, entry.title) == ("edit", f"Edit {PATH} in the outside editor vim")
    assert "whoever wrote it" in entry.reason
    assert [(file.before, file.after) for file in again.journal.change_of(entry).files] == [(ODD, after)]


@pytest.mark.parametrize(
    ("before", "program", "title"),
    [
        (ODD, "data = open(path, 'rb').read(); open(path, 'wb').write(data)", None),
        (None, "open(path, 'wb').write(b'new\\r\\n')", "Make memory/day.md in the outside editor vim"),
        (ODD, "os.remove(path)", "Remove memory/day.md in the outside editor vim"),
    ],
    ids=["left alone", "made", "removed"],
)
def test_a_note_comes_back_as_it_was(folder, monkeypatch, before, program, title):
    note, one = folder / PATH, curator(folder)
    if before is not None:
        note.write_bytes(before)
        note.chmod(0o604)
        os.utime(note, ns=(10**18, 10**18))
    an_editor(monkeypatch, program)
    done = lend_and_edit(one)
    assert (done and done.entry.title) == title
    if done is None:
        assert one.journal.entries() == ()
        return
    one.undo()
    assert one.read(PATH) == before
    if before is not None:
        status = note.stat()
        assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o604, 10**18)


def test_what_an_agent_wrote_meanwhile_is_part_of_the_change_and_what_it_wrote_since_is_not(folder, monkeypatch):
    note = folder / PATH
    note.write_bytes(b"- a\n- b\n")
    one = curator(folder)
    edit = one.begin_external_edit(PATH)
    agent(note, 20).communicate(timeout=LONG)
    an_editor(monkeypatch, "data = open(path, 'rb').read(); open(path, 'wb').write(data.replace(b'- a', b'- A', 1))")
    assert run_editor(command(edit.absolute, 1, os.environ)) == ""
    (file,) = one.finish_external_edit(edit, "vim").change.files
    assert (file.before, file.after) == (b"- a\n- b\n", note.read_bytes())
    assert (file.after or b"").count(b"agent") == 20
    with note.open("ab") as late:
        late.write(b"- later\n")
    with pytest.raises(Conflict, match="has changed since"):
        one.undo()
    one.undo(merging=True)
    assert note.read_bytes() == b"- a\n- b\n- later\n"


def test_a_change_of_the_journal_made_meanwhile_keeps_its_own_undo(folder):
    note = folder / PATH
    note.write_bytes(b"- a\n")
    one = curator(folder)
    edit = one.begin_external_edit(PATH)
    other = curator(folder).apply(put(PATH, b"- a\n", b"- a\n- other\n"))
    assert one.finish_external_edit(edit, "vim") is None, "that alone is not the editor's"
    note.write_bytes(b"- a\n- other\n- mine\n")
    done = one.finish_external_edit(edit, "vim")
    assert f"it begins where change {other.entry.id} of this journal ended" in done.entry.reason
    for state in (b"- a\n- other\n", b"- a\n"):
        one.undo()
        assert note.read_bytes() == state


def test_without_a_journal_the_note_is_as_the_editor_left_it_and_what_is_no_note_is_not_lent(folder, tmp_path):
    note = folder / PATH
    note.write_bytes(b"- a\n")
    one = curator(folder)
    edit = one.begin_external_edit(PATH)
    note.write_bytes(b"- b\n")
    one.journal.folder.write_bytes(b"a file where the folder of the journal should be")
    with pytest.raises(EditRefused, match="The journal cannot be used"):
        one.finish_external_edit(edit, "vim")
    assert note.read_bytes() == b"- b\n"
    (folder / "memory" / "link.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(PathRefused):
        one.begin_external_edit("memory/link.md")


def test_an_edit_in_the_editor_is_undone_on_screen(tmp_path, monkeypatch):
    # As if the terminal could be handed over.
    monkeypatch.setattr(MemoryApp, "suspend", lambda _: contextlib.nullcontext())
    workspace = sample(tmp_path / "notes")
    note = workspace / "MEMORY.md"
    before = note.read_bytes()
    with Window(make_app(workspace)) as window:
        monkeypatch.setenv("VISUAL", "no-such-editor --wait 'unclosed")
        window.press("E")
        assert window.notices[0].startswith("The editor no-such-editor could not be started: No such file")
        assert window.notices[-1] == "MEMORY.md is as it was."
        an_editor(monkeypatch, "open(path, 'ab').write(b'- written elsewhere\\n')")
        window.press("E")
        assert window.notices[-1] == "MEMORY.md is changed. u takes it back."
        window.press("h")
        assert "written elsewhere" in window.text
        window.press("u")
        assert note.read_bytes() == before
