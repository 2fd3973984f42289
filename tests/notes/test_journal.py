"""The journal in the state database: how long it keeps changes, what breaks, what an earlier release left."""

import hashlib
import json
import random
import sqlite3
import subprocess
import sys
import time
import zlib

import pytest

from memory_tui.errors import EditRefused
from memory_tui.notes.changes import Conflict
from memory_tui.notes.journal import KEEP_DAYS, Journal, Typing, Unsaved, blob_hash, left
from tests.support.curate import curator, entries, journal_of, put

LOG = "memory/2026-03-20.md"


def texts(journal):
    with sqlite3.connect(journal.database) as connection:
        return {name for (name,) in connection.execute("SELECT hash FROM note_blob")}


def text_name(data):
    return hashlib.sha256(data).hexdigest()


def test_old_changes_are_forgotten_with_their_texts(folder):
    one = curator(folder)
    days = iter(range(10**6))
    one.journal.clock = lambda: next(days) * 86_400.0
    for number in range(10):
        one.apply(put(f"memory/{number}.md", None, b"note %d\n" % number))
    one.journal.clock = lambda: 30 * 86_400.0
    with one.journal.locked():
        one.journal.most_days = 20
        gone = one.journal.prune()
    entries = one.journal.entries()
    assert gone + len(entries) == 10
    assert 0 < len(entries) < 10
    assert all(entry.at >= 10 * 86_400 for entry in entries)
    assert len(texts(one.journal)) == len(entries)
    one.undo()
    assert one.read("memory/9.md") is None


def test_the_texts_of_all_changes_take_bounded_room_and_another_workspace_keeps_its_own(folder, tmp_path):
    one = curator(folder)
    other = Journal(tmp_path / "other", one.journal.database)
    other.record(put("memory/0.md", None, b"the other's"), "")
    for number in range(5):
        data = random.Random(number).randbytes(10_000).replace(b"\n", b"")
        one.apply(put(f"memory/{number}.md", None, data))
    with one.journal.locked():
        one.journal.most_bytes = 25_000
        assert one.journal.prune() == 3
    assert [entry.title for entry in one.stack("undo")] == ["edit memory/4.md", "edit memory/3.md"]
    assert len(texts(one.journal)) == 3
    one.journal.clear()
    assert one.journal.entries() == ()
    assert [entry.title for entry in other.entries()] == ["edit memory/0.md"]
    assert texts(other) == {blob_hash(b"the other's")}


def test_texts_that_no_entry_names_any_more_are_forgotten_and_a_draft_can_be_thrown_away(folder):
    one = curator(folder)
    (folder / "memory" / "a.md").write_bytes(b"theirs, but another text\n")
    draft = 0
    for number in range(5):
        with pytest.raises(Conflict) as caught:
            one.apply(put("memory/a.md", b"theirs\n", b"mine %d\n" % number), draft=draft)
        draft = caught.value.draft
    with one.journal.locked():
        one.journal.prune()
    [kept] = entries(one, state="draft")
    data = [one.journal.text(blob) for file in kept.files for blob in (file.before, file.after)]
    assert texts(one.journal) == {blob_hash(each) for each in data if each is not None}
    assert one.journal.text(kept.files[0].after) == b"mine 4\n"
    one.forget_draft(draft)
    assert entries(one, state="draft") == []
    with pytest.raises(EditRefused):
        one.forget_draft(draft)


def test_a_database_that_makes_no_sense_is_set_aside_and_notes_can_be_changed(folder, capsys):
    one = curator(folder)
    one.apply(put("memory/a.md", None, b"a\n"))
    one.journal.database.write_bytes(b"no database" * 500)
    one.apply(put("memory/b.md", None, b"b\n"))
    assert [entry.title for entry in entries(curator(folder))] == ["edit memory/b.md"]
    assert "state-broken-" in capsys.readouterr().err


def test_a_journal_of_an_earlier_release_is_taken_over_once(folder):
    old = folder.parent / "journal"
    (old / "texts").mkdir(parents=True)
    before, after = (folder / "MEMORY.md").read_bytes(), b"# Other\n"
    for data in (before, after):
        (old / "texts" / f"{text_name(data)}.z").write_bytes(zlib.compress(data, 1))
    file = {"path": "MEMORY.md", "before": text_name(before), "after": text_name(after), "mode": 0o640, "mtime_ns": 5}
    at = time.time() - 5
    key = "sk-ant-api03-" + "a1B2" * 23 + "AA"
    entry = {"id": 1, "at": at, "state": "intent", "kind": "edit", "title": f"an edit {key}", "files": [file]}
    trust = {**entry, "id": 3, "state": "done", "kind": "trust"}
    lines = [entry, {**entry, "state": "done", "trust": ["MEMORY.md"]}, {"id": 2, "at": at, "kind": "edit"}, trust]
    cut = json.dumps({**entry, "id": 3})[:-9]
    (old / "journal.jsonl").write_text("\n".join([*map(json.dumps, lines), cut]))
    (old / "unsaved").mkdir()
    typed = {"path": LOG, "at": time.time(), "text": "typed", "before": None}
    (old / "unsaved" / "abc-12.json").write_text(json.dumps(typed))
    (folder / "MEMORY.md").write_bytes(after)
    was = sorted((path, path.read_bytes()) for path in old.rglob("*") if path.is_file())
    one = curator(folder)
    [kept] = one.stack("undo")
    assert (kept.id, kept.at, kept.files[0].mode) == (1, at, 0o640)
    assert key not in kept.title
    assert [text.text for text in left(one.journal, LOG)] == ["typed"]
    one.undo()
    assert one.read("MEMORY.md") == before
    assert [entry.id for entry in curator(folder).journal.entries()] == [1, 3, 4]
    assert [(path, data) for path, data in was if path.read_bytes() != data] == []


@pytest.fixture
def journal(tmp_path):
    return journal_of(tmp_path)


def test_what_was_kept_last_is_there_with_the_bytes_it_was_begun_on(journal):
    typing = Typing(journal, LOG)
    typing.keep(1, "one", b"\xff old\r\n")
    typing.keep(2, "two \ud800 林", b"\xff old\r\n")
    Typing(journal, "memory/other.md").keep(1, "other", None)
    (text,) = left(journal, LOG)
    assert (text.path, text.text, text.before) == (LOG, "two \ud800 林", b"\xff old\r\n")
    assert {text.path for text in left(journal)} == {LOG, "memory/other.md"}


def test_a_slow_writing_does_not_bring_back_what_was_saved(journal):
    typing = Typing(journal, LOG)
    typing.keep(1, "one", b"")
    typing.drop(3)
    typing.keep(2, "late", b"")
    assert left(journal) == ()


def test_saving_forgets_what_the_editor_began_with_and_nothing_else(journal):
    Typing(journal, LOG).keep(1, "from a crash", b"")
    began = Unsaved(LOG, 0.0, b"", "from a crash", left(journal, LOG)[0].key)
    Typing(journal, "memory/other.md").keep(1, "other", None)
    typing = Typing(journal, LOG, began)
    typing.keep(1, "more", b"")
    typing.drop(2)
    assert [text.path for text in left(journal)] == ["memory/other.md"]


TYPING = """
import sys
from pathlib import Path
from memory_tui.notes.journal import Journal, Typing
Typing(Journal(Path(sys.argv[1]), Path(sys.argv[2])), sys.argv[3]).keep(1, "typed", b"")
print(flush=True)
sys.stdin.read()
"""


def test_what_another_process_types_is_left_by_it_only_once_it_is_gone(journal):
    command = [sys.executable, "-c", TYPING, str(journal.folder), str(journal.database), LOG]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"\n"
        assert left(journal) == ()
        mine = Typing(journal, LOG)
        mine.keep(1, "mine", b"")
        mine.drop(2)
        other.kill()
        other.wait()
    (typed,) = left(journal, LOG)
    assert typed.text == "typed"
    Typing(journal, LOG, typed).keep(1, "typed more", b"")
    assert [text.text for text in left(journal, LOG)] == ["typed more"], "a kill leaves one text, the newest"


def test_old_texts_are_not_offered_and_a_disk_that_takes_nothing_is_said(journal, monkeypatch):
    Typing(journal, LOG).keep(1, "text", b"")
    later = time.time() + (KEEP_DAYS + 1) * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert left(journal) == ()
    monkeypatch.undo()
    assert left(journal) == ()
    journal.database.unlink()
    journal.database.mkdir()
    with pytest.raises(EditRefused, match="not protected against a crash"):
        Typing(journal, LOG).keep(1, "text", b"")
