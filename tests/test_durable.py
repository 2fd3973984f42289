"""Every write under every fault of the disk: whole or not at all, said truly, and healed by the next start."""

import datetime as dt
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_tui import durable, recall_log, tune
from memory_tui.approval import Approvals
from memory_tui.config import config_patch
from memory_tui.errors import EditRefused, IndexUnavailable, MemoryTuiError
from memory_tui.locks import WriterLock, holder
from memory_tui.notes import journal
from memory_tui.notes.changes import Change, FileChange, Unfinished
from memory_tui.notes.edit import Curator
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recall_log import RecallEntry
from memory_tui.tune import Label, Query
from tests.support.curate import curator, hidden, journal_of, put
from tests.support.faults import ERRORS, Counting, Failing, Losing, PowerCut, count, on
from tests.support.workspace import put_all, texts_of

fcntl = pytest.importorskip("fcntl", reason="the faults are those of POSIX")
NOW = dt.datetime(2026, 1, 20, 12, 30, tzinfo=dt.UTC).timestamp()
NOTES = {
    "MEMORY.md": b"# Memory\n\n## Home\n- one\n- two\n",
    "memory/2026-01-19.md": b"# 2026-01-19\n\n- a vlan is 7\n- b\n",
    "memory/2026-01-20.md": b"# 2026-01-20\n\n- 09:00 morning\n",
    "memory/old.md": b"# old\n\n- gone soon\n",
}


def notes_of(folder):
    return put_all(folder / "notes", NOTES)


@pytest.fixture(autouse=True)
def _nobody_is_late(monkeypatch):
    """Waiting for the rest of a line, or for a late program, is no part of these tests."""
    monkeypatch.setattr("memory_tui.notes.write.HALF_SECONDS", 0.0)


def at_work(notes):
    return curator(notes, clock=lambda: NOW)


def _edit(one):
    old = NOTES["MEMORY.md"]
    return one.apply(put("MEMORY.md", one.read("MEMORY.md"), old.replace(b"- one", b"- 1").replace(b"Home", b"House")))


def _gone_and_new(one):
    old = NOTES["memory/old.md"]
    files = (FileChange("memory/archive/old.md", None, old), FileChange("memory/old.md", old, None))
    return one.apply(Change("archive", "archive a note", files))


Step = Callable[[Curator], object]
CHANGES: dict[str, tuple[Step | None, Step]] = {
    "append": (None, lambda one: one.remember("the vlan of the printer is forty two")),
    "a new log": (None, lambda one: one.apply(put("memory/2026-01-21.md", None, b"# 2026-01-21\n\n- new\n"))),
    "edit": (None, _edit),
    "two notes": (
        None,
        lambda one: one.apply(one.plan.promote(one.plan.spot("memory/2026-01-19.md", 3, None), move=True)),
    ),
    "a new note and one that goes": (None, _gone_and_new),
    "trash": (None, lambda one: one.apply(put("memory/old.md", NOTES["memory/old.md"], None, "trash"))),
    "undo": (_edit, lambda one: one.undo()),
    "redo": (lambda one: (_edit(one), one.undo()), lambda one: one.redo()),
}
STEPS = [pytest.param(5, id="some"), pytest.param(1, id="each", marks=pytest.mark.soak)]
"""In a usual run every fifth call of a change fails; `pytest -m soak` takes each."""


class Stage:
    """A workspace with journal before a change, copied afresh for each fault."""

    def __init__(self, folder, name):
        self.folder, self.number = folder, 0
        first, self.change = CHANGES[name]
        notes_of(folder / "first")
        if first is not None:
            first(at_work(folder / "first" / "notes"))
        self.old = texts_of(folder / "first" / "notes")
        fresh = self.fresh()
        self.calls = count(lambda: self.change(at_work(fresh)))
        self.new = texts_of(fresh)
        assert self.new != self.old

    def fresh(self):
        self.number += 1
        shutil.copytree(self.folder / "first", self.folder / str(self.number), symlinks=True)
        return self.folder / str(self.number) / "notes"


def healed(stage, notes, *allowed):
    """The next start settles it, the journal agrees with the notes, and the change can be made once."""
    one = at_work(notes)
    before = len(at_work(stage.folder / "first" / "notes").stack("undo"))
    one.recover()
    now = texts_of(notes)
    assert now in allowed
    assert hidden(notes) == []
    assert {entry.state for entry in one.journal.entries()} <= {"done", "refused"}
    for entry in one.journal.entries():
        one.journal.change_of(entry)
    if now == stage.old:
        assert len(one.stack("undo")) == before
        stage.change(one)
    assert texts_of(notes) == stage.new
    assert hidden(notes) == []
    undone = at_work(notes)
    if stage.change is CHANGES["undo"][1]:
        undone.redo()
    else:
        undone.undo()
    assert texts_of(notes) == stage.old
    assert [path.name for path in notes.parent.rglob("*.part")] == []


def under(stage, fault, at):
    notes = stage.fresh()
    one = at_work(notes)
    with on(Failing(fault, at)) as disk:
        try:
            stage.change(one)
            error = None
        except MemoryTuiError as refused:
            error = refused
    now = texts_of(notes)
    if error is None:
        assert now == stage.new
    elif isinstance(error, Unfinished):
        assert "next start" in error.next_step
    else:
        assert now == stage.old, error
    assert error is None or disk.happened
    if fault == "short":
        assert error is None, error
    healed(stage, notes, *((stage.old, stage.new) if isinstance(error, Unfinished) else (now,)))
    shutil.rmtree(notes.parent)


@pytest.mark.parametrize("every", STEPS)
@pytest.mark.parametrize("fault", ERRORS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_notes_under_a_fault(tmp_path, name, fault, every):
    stage = Stage(tmp_path, name)
    first = (list(CHANGES).index(name) + ERRORS.index(fault)) % every
    for at in range(first, len(stage.calls), every):
        under(stage, fault, at)


def _config(folder):
    return folder / "config" / "openclaw.json"


def _read_config(folder):
    return config_patch.read(_config(folder))


def _write_config(folder):
    return config_patch.write(_config(folder), _read_config(folder), b'{"b": 2}')


def _approvals(folder):
    return Approvals(folder, folder / "consent")


def _approve(folder):
    _approvals(folder).approve("openai", "api.openai.com", "--yes")


def _hosts(folder):
    return [made.host for made in _approvals(folder).every()]


def _log_of(folder):
    return folder / "log" / "one.jsonl"


def _log(folder, query):
    recall_log.append_recall(_log_of(folder), RecallEntry(SEARCH, query, 1.0))


def _logged(folder):
    return [entry.query for entry in recall_log.read(_log_of(folder)).entries]


def _labels(folder):
    return folder / "labels" / "notes.jsonl"


def _label(folder, text="which vlan?"):
    query = Query(text, (Label("MEMORY.md", 1, 2),))
    return tune.edit(_labels(folder), _no_note, [lambda book: book.put(query)])


def _no_note(path):
    raise EditRefused(f"{path} is not there.")


def _typing(folder):
    return journal.Typing(journal_of(folder), "MEMORY.md")


def _type(folder):
    _typing(folder).keep(1, "first", b"old")


def _typed(folder):
    return [one.text for one in journal.left(journal_of(folder))]


Write = Callable[[Path], object]
WRITES: dict[str, tuple[Write | None, Write, Callable[[Path], object]]] = {
    "an agreement": (None, _approve, _hosts),
    "an agreement taken back": (_approve, lambda at: _approvals(at).revoke(), _hosts),
    "a label": (lambda at: _label(at, "first?"), _label, lambda at: tune.load(_labels(at))),
    "a configuration": (None, _write_config, _read_config),
    "a configuration changed": (lambda at: config_patch.write(_config(at), None, b"{}"), _write_config, _read_config),
    "a configuration taken back": (_write_config, lambda _: config_patch.undo(config_patch.last()), _read_config),
    "a line of a log": (lambda at: _log(at, "1"), lambda at: _log(at, "2"), _logged),
    "a log deleted": (lambda at: _log(at, "1"), lambda at: recall_log.clear_log(_log_of(at)), _logged),
    "what is typed": (_type, lambda at: _typing(at).keep(1, "second", b"old"), _typed),
    "what was typed dropped": (_type, lambda at: _typing(at).drop(1), _typed),
}


@pytest.mark.parametrize("fault", ERRORS)
@pytest.mark.parametrize("name", WRITES)
def test_any_other_write_under_a_fault_of_each_call(tmp_path, monkeypatch, name, fault):
    first, write, read = WRITES[name]

    def prepared(name):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setattr(config_patch, "backups", lambda: folder / "backups")
        if first is not None:
            first(folder)
        return folder

    at_first = prepared("first")
    old = read(at_first)
    calls = count(lambda: write(at_first))
    new = read(at_first)
    assert new != old
    for at in range(len(calls)):
        here = prepared(str(at))
        with on(Failing(fault, at)) as disk:
            try:
                write(here)
                error = None
            except (MemoryTuiError, OSError) as refused:
                error = refused
        assert error is None or disk.happened
        if fault == "short":
            assert error is None
        if fault == "gone":
            # Nothing can be taken back on a disk that is gone.
            assert read(here) in (old, new)
        elif error is not None and "as it was before, but" in str(error):
            assert read(here) == new
        elif error is not None and calls[at] == "fsync":
            # A folder that cannot be flushed holds the new file.
            assert read(here) in (old, new)
        else:
            assert read(here) == (new if error is None else old), (at, calls[at], error)
        for path in here.rglob("*.lock"):
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if read(here) == old:
            write(here)
        assert read(here) == new
        if fault != "gone" and calls[at] != "unlink":
            assert list(here.rglob("*.part")) == []


def cut_at(stage, at, *, names):
    notes = stage.fresh()
    disk = Losing(at)
    with on(disk):
        try:
            stage.change(at_work(notes))
            whole = True
        except PowerCut:
            whole = False
    disk.lose(names=names)
    healed(stage, notes, *([stage.new] if whole else [stage.old, stage.new]))
    shutil.rmtree(notes.parent)


@pytest.mark.skipif(sys.platform != "linux", reason="what was not flushed is found through /proc")
@pytest.mark.parametrize("every", STEPS)
@pytest.mark.parametrize("names", [False, True], ids=["contents lost", "names lost too"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_outlives_the_power(tmp_path, name, names, every):
    stage = Stage(tmp_path, name)
    cut_at(stage, None, names=names)
    for at in range(int(names) % every, len(stage.calls), every):
        cut_at(stage, at, names=names)


def test_a_command_under_a_fault_says_it_and_the_next_one_heals(tmp_path, command):
    notes = notes_of(tmp_path)
    old = texts_of(notes)

    def under(disk, *words):
        with on(disk):
            where = ["--workspace", str(notes), "--provider", "none", "--now", "2026-01-20T12:30:00Z"]
            code, out, err = command(*words, *where)
        return code, out + err

    remember = ("remember", "the vlan of the printer is forty two", "--yes")
    for disk in (Counting(), Counting()):
        # The first makes the journal.
        assert under(disk, *remember)[0] == under(Counting(), "undo", "--yes")[0] == 0
    for at in range(0, len(disk.made), 3):
        fault = ("full half-way", "broken", "gone")[at // 3 % 3]
        code, said = under(Failing(fault, at), *remember)
        assert code in (0, 1), said
        assert "Traceback" not in said
        assert code == 0 or "next start" in said or texts_of(notes) == old, (fault, at, said)
        assert under(Counting(), "history")[0] == 0
        assert hidden(notes) == []
        if texts_of(notes) != old:
            assert under(Counting(), "undo", "--yes")[0] == 0
        assert texts_of(notes) == old
    with pytest.raises(PowerCut):
        under(Losing(len(disk.made) - 2), *remember)
    code, said = under(Failing("gone", 0), "history")
    assert (code, "(cut off)" in said) == (0, True)
    code, said = under(Failing("gone", 0), *remember)
    assert (code, "Input/output error" in said) == (1, True)
    assert "cut off and finished at the next start" in under(Counting(), "history")[1]


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path, monkeypatch):
    part = tmp_path / ".file.part"
    part.write_bytes(b"left")
    durable.replace_file(tmp_path / "file", b"new")
    monkeypatch.setattr(durable, "_WAIT_SECONDS", 0.05)
    with part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="Another process is writing it"):
            durable.replace_file(tmp_path / "file", b"newer")
        assert part.exists()
    durable.replace_file(tmp_path / "file", b"newest")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"newest"


def test_a_folder_or_a_link_in_the_place_of_a_file_is_not_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        durable.replace_file(tmp_path / "folder", b"new")
    with pytest.raises(IsADirectoryError):
        durable.remove_file(tmp_path / "folder")
    assert (tmp_path / "folder").is_dir(), "it keeps its name"
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("secret")
    durable.replace_file(tmp_path / "link", b"new")
    with pytest.raises(FileExistsError):
        durable.create_file(tmp_path / "link", b"other")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()


def test_a_lock_whose_holder_cannot_be_written_is_let_go(tmp_path):
    for fault in ERRORS:
        calls = count(lambda: WriterLock.acquire(tmp_path / "one").release())
        for at in range(len(calls)):
            with on(Failing(fault, at)):
                try:
                    held = WriterLock.acquire(tmp_path / "two")
                except IndexUnavailable:
                    held = None
                if held is not None:
                    held.release()
            with WriterLock.acquire(tmp_path / "two"):
                assert holder(tmp_path / "two").here
