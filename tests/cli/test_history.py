"""history, since, blame and restore: what became of the notes, by whom, and back again to the letter."""

import datetime as dt
import json
import os
import re
import time

import pytest

from memory_tui.config.places import journal_folder
from memory_tui.notes.journal import Author, Journal, Sight
from tests.support.transcripts import claude, claude_file
from tests.support.workspace import put_all, texts_of

DAY, MEMORY = "memory/2026-03-18.md", "MEMORY.md"


class Shell:
    def __init__(self, folder, command):
        self.folder, self._command, self.errors = folder, command, ""

    def run(self, *words, code=0):
        status, out, self.errors = self._command(*words, "--workspace", str(self.folder), "--provider", "none")
        assert status == code
        return self.errors if code else out

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))

    @property
    def journal(self):
        return Journal(journal_folder(self.folder))


@pytest.fixture
def shell(tmp_path, monkeypatch, command):
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    notes = {MEMORY: b"# Facts\r\n\r\n- tea\r\n", DAY: b"# day\n- one\n- two\n- three"}
    shell = Shell(put_all(tmp_path / "notes", notes), command)
    assert shell.run("history") == "No note was changed yet.\n"
    return shell


def test_what_others_did_stands_beside_what_was_done_here_with_its_difference(shell):
    (shell.folder / DAY).write_bytes(b"# day\n- one\n- three")
    shell.run("history")
    shell.run("remember", "a line", "--yes")
    (shell.folder / DAY).unlink()
    first, mine, gone = sorted(shell.json("history")["changes"], key=lambda row: row["at"])
    assert (first["kind"], first["by"], first["title"]) == ("others", "", f"somebody changed {DAY} (+0 -1)")
    assert (mine["kind"], mine["by"], mine["undoable"]) == ("capture", "memory-tui", True)
    assert gone["title"] == f"somebody removed {DAY} (+0 -3)"
    shell.journal.set_authors([(gone["id"], 0, Author("openclaw", "s1", "bytes"))])
    assert "openclaw removed" in shell.run("history", DAY)
    assert [row["id"] for row in shell.json("history", "--deleted")["changes"]] == [gone["id"]]
    assert [row["id"] for row in shell.json("history", "--by", "openclaw")["changes"]] == [gone["id"]]
    assert [row["id"] for row in shell.json("history", "--by", "somebody")["changes"]] == [first["id"]]
    assert "-- two" in shell.run("history", "--show", str(first["id"]))
    assert "no change 99" in shell.run("history", "--show", "99", code=2)


def test_an_agent_is_named_by_its_transcript(shell, monkeypatch):
    file, home = shell.folder / MEMORY, shell.folder.parent
    edit = {"file_path": str(file), "old_string": "tea", "new_string": "coffee"}
    claude_file(home, [])
    at = time.time()
    file.write_bytes(file.read_bytes().replace(b"tea", b"coffee"))
    claude_file(home, claude("c1", "Edit", edit, at, str(home)))
    (shell.folder / DAY).unlink()
    pipe = home / ".claude" / "projects" / "-project" / "pipe.jsonl"
    os.mkfifo(pipe)
    out = shell.run("history")
    assert str(pipe) in shell.errors
    assert f"claude-code changed {MEMORY} (+1 -1)" in out
    assert f"somebody removed {DAY}" in out
    assert "The author of 1 of 2 changes by others (50%) is unknown." in out
    (row,) = shell.json("history", "--by", "claude-code")["changes"]
    assert row["author"] == {"host": "claude-code", "session": "s1", "rule": "bytes"}
    assert "By claude-code (session s1, by its transcript)." in shell.run("history", "--show", str(row["id"]))


def test_many_notes_at_once_are_one_line_and_each_of_them_in_json(shell):
    for number in range(9):
        (shell.folder / f"memory/{number}.md").write_text(f"- {number}\n")
    out = shell.run("history")
    assert "somebody made 9 notes" in out
    assert out.splitlines()[1:] == ["The author of 9 changes is unknown."]
    shell.journal.set_authors([(edit.id, 0, Author("git", "", "git")) for edit in shell.journal.edits()])
    for number in range(9):
        (shell.folder / f"memory/{number}.md").rename(shell.folder / f"memory/moved-{number}.md")
    assert "moved 9 notes" in shell.run("history").splitlines()[0]
    assert len(shell.json("history")["changes"]) == 27
    assert "older change" in shell.run("history", "-n", "1")


def test_since_tells_each_change_of_others_once(shell):
    assert shell.run("since") == "Nobody else changed a note since you last looked.\n"
    (shell.folder / DAY).write_bytes(b"# day\n")
    (shell.folder / MEMORY).unlink()
    shell.run("remember", "mine", "--yes")
    out = shell.run("since")
    assert "\nSince you last looked: 1 change by somebody, 1 note removed.\nThe next since starts from now;" in out
    assert "mine" not in out
    assert shell.json("since") == []
    for _ in range(2):
        assert {path for row in shell.json("since", "1h") for path in row["paths"]} == {DAY, MEMORY}
    assert "The record begins at " in shell.run("since", "1h")
    assert "Nobody else changed a note since " in shell.run("since", "2100-01-01")
    # A minute may begin between the two.
    seconds, minutes = (re.sub(r"\d\d:\d\d", "", shell.run("since", span)) for span in ("3600s", "60m"))
    assert seconds == minutes
    assert "since takes a time, not 'soon'" in shell.run("since", "soon", code=2)


def test_no_difference_shows_a_secret_and_what_brings_one_back_says_so(shell):
    note, secret = shell.folder / MEMORY, "hunter2hunter2X9"
    note.write_text(f"- wifi password: {secret}\n- tea\n")
    shell.run("history")
    note.write_text("- wifi password: ***\n- tea\n")
    masked = shell.json("history")["changes"][0]["id"]
    restore = ["restore", MEMORY, "--before", str(masked)]
    printed = [
        shown := shell.run("history", "--show", str(masked)),
        shell.run("history", "--show", str(masked), "--json"),
        preview := shell.run(*restore, "--dry-run"),
        shell.run("restore", "--all", "--before", str(masked), "--dry-run", "--json"),
        shell.run(*restore, "--yes"),
        shell.run("undo", "--dry-run"),
    ]
    assert not any(secret in text for text in printed)
    assert secret in note.read_text()
    assert "-- wifi password: [secret]\n+- wifi password: ***" in shown
    assert "-- wifi password: ***\n+- wifi password: [earlier secret]" in preview
    assert "This brings back 1 secret in the place of masks." in preview


def test_a_name_that_no_note_has_is_refused_with_what_it_could_mean(shell):
    for number in (1, 2):
        (shell.folder / f"memory/{number}").mkdir()
        (shell.folder / f"memory/{number}/same.md").write_bytes(b"- same\n")
    (shell.folder / "memory/boiler.md").write_bytes(b"- warm\n")
    (shell.folder / "memory/gone.md").write_bytes(b"- a\n")
    shell.run("history")
    (shell.folder / "memory/gone.md").unlink()
    for command in ("history", "blame", "restore"):
        assert "There is no note nope.md." in shell.run(command, "nope.md", code=2)
        assert "Did you mean memory/boiler.md?" in shell.run(command, "boilr.md", code=2)
        assert "Did you mean memory/1/same.md or memory/2/same.md?" in shell.run(command, "same", code=2)
    assert "memory/gone.md" in shell.run("history", "gone")
    assert "before: somebody removed" in shell.run("restore", "gone.md")
    assert "- warm" in shell.run("blame", "boiler")
    assert "made memory/boiler.md" in shell.run("history", str(shell.folder / "memory/boiler.md"))


def test_who_changed_nothing_is_refused_and_the_newest_comes_first(shell):
    at = time.time()
    with shell.journal.locked():
        shell.journal.observe([Sight("memory/new.md", b"- a\n", at + 9), Sight("memory/old.md", b"- a\n", at + 3)])
    rows = shell.json("history")["changes"]
    assert [row["paths"] for row in rows if row["at"] > at] == [["memory/new.md"], ["memory/old.md"]]
    assert "Those who did: somebody." in shell.run("history", "--by", "nobody", code=2)
    assert shell.json("history", "--by", "codex")["changes"] == []
    assert shell.run("history", "--by", "codex") == "No change fits.\n"
    assert len(shell.json("history", "--by", "somebody")["changes"]) == len(rows)
    assert "Nobody knows who made it." in shell.run("history", "--show", str(rows[0]["id"]))


def test_a_line_that_was_brought_back_came_as_it_did_at_first(shell):
    note = shell.folder / DAY
    for text in (b"# day\n- one\n", b"# day\n- one\n- two\n", b"# day\n", b"# day\n- three\n"):
        note.write_bytes(text)
        shell.run("history")
    came, lost = (row["id"] for row in shell.json("history", DAY)["changes"][2:0:-1])
    restore = ["restore", DAY, "--before", str(lost)]
    for steps in (restore, ["undo"], restore):
        shell.run(*steps, "--yes")
        rows = {row["text"]: (row["id"], row["by"]) for row in shell.json("blame", DAY) if row["text"]}
        assert "memory-tui" not in {by for _, by in rows.values()}, steps
    assert rows["- two"][0] == came
    assert rows["- one"][0] < came


def test_blame_names_the_change_that_each_line_came_with(shell):
    (shell.folder / DAY).write_bytes(b"# day\n- one\n- inserted\n- two\n- three")
    shell.run("history")
    (shell.folder / DAY).write_bytes(b"- above\n# day\n- one\n- inserted\n- 2\n- three")
    rows = shell.json("blame", DAY)
    first, second = (row["id"] for row in shell.json("history", DAY)["changes"][::-1])
    assert [row["id"] for row in rows] == [second, 0, 0, first, second, 0]
    assert [row["text"] for row in rows][4:] == ["- 2", "- three"]
    assert rows[1]["by"] == "before the record"
    [line] = shell.json("blame", f"{DAY}:4")
    assert (line["line"], line["by"]) == (4, "somebody")
    assert "has 6 lines" in shell.run("blame", f"{DAY}:9", code=2)
    assert "There is no note" in shell.run("blame", "memory/none.md", code=2)


def test_a_note_comes_back_as_it_was_before_a_time_or_a_change_and_it_can_be_undone(shell):
    was, begun = texts_of(shell.folder), dt.datetime.fromtimestamp(shell.journal.numbers().start + 0.002).isoformat()
    (shell.folder / DAY).write_bytes(b"")
    [change] = shell.json("history")["changes"]
    assert f"{change['id']}  " in shell.run("restore", DAY)
    assert "+- two" in shell.run("restore", DAY, "--before", str(change["id"]), "--dry-run")
    assert (shell.folder / DAY).read_bytes() == b""
    shell.run("restore", DAY, "--before", str(change["id"]), "--yes")
    assert texts_of(shell.folder) == was
    shell.run("undo", "--yes")
    assert (shell.folder / DAY).read_bytes() == b""
    shell.run("restore", DAY, "--before", begun, "--yes")
    assert texts_of(shell.folder) == was
    assert "is as it was on" in shell.run("restore", DAY, "--before", begun, "--yes", code=2)
    assert "takes a time or a change" in shell.run("restore", DAY, "--before", "soon", code=2)


def test_every_note_comes_back_at_once(shell):
    for number in range(20):
        (shell.folder / f"memory/{number}.md").write_bytes(b"- %d\r\n" % number)
    shell.run("history")
    was = texts_of(shell.folder)
    shell.run("remember", "mine", "--yes")
    [mine] = [row["id"] for row in shell.json("history")["changes"] if row["kind"] == "capture"]
    for number in range(3, 20):
        (shell.folder / f"memory/{number}.md").unlink()
    (shell.folder / "memory/3.md").write_bytes(b"overwritten")
    (shell.folder / DAY).rename(shell.folder / "memory/away.md")
    assert "Restore 20 notes as" in shell.run("restore", "--all", "--before", str(mine), "--dry-run")
    shell.run("restore", "--all", "--before", str(mine), "--yes")
    assert texts_of(shell.folder) == was
    shell.run("undo", "--yes")
    assert (shell.folder / "memory/3.md").read_bytes() == b"overwritten"
    assert "Which note" in shell.run("restore", code=2)
    assert "needs a time" in shell.run("restore", "--all", code=2)


def test_nothing_is_brought_back_from_before_the_record(shell):
    assert "The record of the notes begins at " in shell.run("restore", "--all", "--before", "1w", "--yes", code=2)
    (shell.folder / DAY).write_bytes(b"")
    (shell.folder / "memory/new.md").write_bytes(b"- new\n")
    shell.run("history")
    was = texts_of(shell.folder)
    assert f"The record of {DAY} begins at " in shell.run("restore", DAY, "--before", "1000h", "--yes", code=2)
    assert "The record of the notes begins at " in shell.run("restore", "--all", "--before", "1w", "--yes", code=2)
    assert texts_of(shell.folder) == was


def test_notes_that_the_record_does_not_know_of_then_stay_and_are_counted(shell):
    begun = shell.journal.numbers().start
    with shell.journal.locked():
        past = Sight(MEMORY, b"# Facts\r\n", begun - 7200)
        shell.journal.observe([past])
        shell.journal.observe([Sight(MEMORY, (shell.folder / MEMORY).read_bytes(), begun - 1800)])
    (shell.folder / DAY).write_bytes(b"")
    out = shell.run("restore", "--all", "--before", "1h", "--yes")
    assert "Restore 1 note as it was on" in out
    assert "does not reach back so far for 1 other note" in out
    assert texts_of(shell.folder) == {MEMORY: b"# Facts\r\n", DAY: b""}


def test_what_is_forgotten_moves_the_start_of_the_record(shell):
    begun = shell.journal.numbers().start
    (shell.folder / DAY).write_bytes(b"- a\n")
    shell.run("history")
    journal = shell.journal
    for days, is_kept in ((1, True), (-1, False)):
        journal.most_days = days
        assert journal.prune() == 0
        assert (journal.numbers().start == begun) == is_kept
    assert shell.journal.numbers().start > begun
