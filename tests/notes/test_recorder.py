"""Whoever changes a note: each version that is seen is kept, and every note comes back to the letter."""

import ast
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.notes import history as recorders
from memory_tui.notes.authors import name_authors
from memory_tui.notes.history import Recorder, blame
from memory_tui.notes.journal import Journal
from memory_tui.plan import Options
from memory_tui.workspace.scan import MAX_BYTES
from tests.support.curate import curator, git, put, workspace
from tests.support.paths import ROOT
from tests.support.waiting import LONG, until


class Memory:
    """A folder of notes, its recorder, and what it said; its ticks come by hand."""

    def __init__(self, folder, extra=()):
        self.folder, self.said = folder, list[str]()
        self.one = curator(folder, *extra)
        self.journal: Journal = self.one.journal
        self.recorder = Recorder(self.one.roots, self.journal, Stop(), self.said.append)

    def write(self, path, text):
        note = self.folder / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.unlink() if text is None else note.write_bytes(text)
        self.recorder.see([str(note)])
        self.recorder.tell_losses()

    def texts(self, path):
        """The text of a note after each change of it, oldest first."""
        return [self.journal.text(edit.after) for edit in self.journal.edits(path)[::-1]]

    def before(self):
        """What every note that was ever changed was at first."""
        return {edit.path: self.journal.text(edit.before) for edit in self.journal.edits()}

    def on_disk(self):
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*.md")}


@pytest.fixture
def memory(tmp_path):
    folder, noise = workspace(tmp_path / "notes"), random.Random(7)
    for number in range(30):
        text = b"# day %d\r\n- %s\n" % (number, noise.randbytes(40))
        (folder / f"memory/2026-03-{number + 1:02}.md").write_bytes(text)
    made = Memory(folder)
    made.recorder.see()
    assert made.journal.edits() == ()
    return made


def test_every_version_is_kept_whoever_wrote_it_and_our_own_ones_once(memory):
    memory.write("memory/a.md", b"- a\n")
    memory.write("memory/a.md", b"- a\n- \xff b\r\n")
    memory.one.apply(put("memory/a.md", b"- a\n- \xff b\r\n", b"- mine\n"))
    memory.recorder.see([str(memory.folder / "memory/a.md")])
    memory.write("memory/a.md", None)
    memory.recorder.see([])
    memory.write("memory/a.md", b"- back\n")
    assert memory.texts("memory/a.md") == [b"- a\n", b"- a\n- \xff b\r\n", b"- mine\n", None, b"- back\n"]
    kinds = [edit.kind for edit in memory.journal.edits("memory/a.md")]
    assert kinds == ["others", "others", "edit", "others", "others"]
    memory.recorder.see()
    assert len(memory.journal.edits()) == 5


def test_a_rename_leaves_each_line_with_the_change_that_it_came_with(memory):
    memory.write("memory/a.md", b"- one\n")
    memory.write("memory/a.md", b"- one\n- [tea](../MEMORY.md)\n")
    for old, new in (("memory/a.md", "memory/c.md"), ("memory/c.md", "memory/deep/d.md")):
        memory.one.apply(memory.one.plan.rename(old, new))
    path = "memory/deep/d.md"
    assert memory.one.read(path) == b"- one\n- [tea](../../MEMORY.md)\n"
    first, _ = memory.journal.edits("memory/a.md")[:0:-1]
    assert blame(memory.journal, path, memory.one.read(path))[0].id == first.id
    memory.write(path, b"- one\n- [tea](../../MEMORY.md)\n- two\n")
    kinds = [edit.kind for edit in blame(memory.journal, path, memory.one.read(path))]
    assert kinds == ["others", "rename", "others"]


def test_a_note_that_is_written_anew_was_never_deleted(memory):
    memory.write("memory/2026-03-01.md", None)
    assert memory.journal.edits() == ()
    memory.write("memory/2026-03-01.md", b"- anew\n")
    memory.recorder.see([])
    assert memory.texts("memory/2026-03-01.md") == [b"- anew\n"]


def test_an_overwrite_is_said_and_the_text_before_is_there(memory):
    was = (memory.folder / "memory/2026-03-02.md").read_bytes()
    memory.write("memory/2026-03-02.md", b"- a session that knew nothing of it\n")
    assert memory.before() == {"memory/2026-03-02.md": was}
    assert memory.said == ["memory/2026-03-02.md lost lines to somebody. The inbox can undo it."]


def test_the_next_version_is_kept_while_it_is_found_out_who_lost_lines(memory, monkeypatch):
    asked, answer = threading.Event(), threading.Event()
    monkeypatch.setattr(recorders, "name_authors", lambda *_: (asked.set(), answer.wait(LONG)))
    note = memory.folder / "memory/2026-03-02.md"
    for text in (b"- other\n", b"- next\n", b"- last\n"):
        note.write_bytes(text)
        memory.recorder.see([str(note)])
    assert asked.wait(LONG)
    assert memory.texts("memory/2026-03-02.md")[-1] == b"- last\n"
    assert memory.said == []
    answer.set()
    until(lambda: memory.said)


def test_a_renamed_folder_keeps_its_notes_under_both_names(memory):
    was = {path: data for path, data in memory.on_disk().items() if path.startswith("memory/")}
    (memory.folder / "memory/log").mkdir()
    for path in was:
        (memory.folder / path).rename(memory.folder / "memory/log" / Path(path).name)
    memory.recorder.see()
    (memory.folder / "memory/log").rename(memory.folder / "memory/days")
    memory.recorder.see([str(memory.folder / "memory/log"), str(memory.folder / "memory/days")])
    memory.recorder.see([])
    after = {edit.path: memory.journal.text(edit.after) for edit in memory.journal.edits()[::-1]}
    assert {path: data for path, data in after.items() if data is not None} == {
        path.replace("memory/", "memory/days/"): data for path, data in was.items()
    }
    assert {edit.before for edit in memory.journal.edits()} >= {edit.after for edit in memory.journal.edits()}


def test_a_checkout_is_one_change_of_each_note_and_a_sync_client_that_writes_all_again_none(tmp_path):
    folder = workspace(tmp_path / "notes")
    git(folder, "init", "-b", "one")
    for branch in ("one", "two"):
        for number in range(400):
            (folder / f"memory/{number}.md").write_text(f"# note {number}\n- {branch}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", branch)
    memory = Memory(folder)
    memory.recorder.see()
    was = memory.on_disk()
    git(folder, "checkout", "-q", "--detach", "HEAD~1")
    memory.recorder.see([str(path) for path in folder.rglob("*.md")])
    memory.recorder.see([])
    edits = memory.journal.edits()
    assert len(edits) == 400
    assert {(edit.plus, edit.minus) for edit in edits} == {(1, 1)}
    assert memory.on_disk() | memory.before() == was
    name_authors(memory.journal, memory.one.roots, time.time())
    assert {edit.author.host for edit in memory.journal.edits() if edit.author is not None} == {"git"}
    words = git(folder, "reflog", "-1", "--date=unix", "--format=%gd")
    moved = int(words.strip().removeprefix("HEAD@{").removesuffix("}"))
    # On a loaded machine a checkout takes longer than git's line is believed to reach back.
    assert [edit for edit in memory.journal.without_author() if edit.at >= moved - 1] == []
    for path, data in memory.on_disk().items():
        other = folder / f"{path}.tmp"
        other.write_bytes(data)
        other.replace(folder / path)
    memory.recorder.see([str(path) for path in folder.rglob("*.md")])
    memory.recorder.see()
    assert len(memory.journal.edits()) == 400


@pytest.mark.parametrize("seed", range(5))
def test_what_changed_while_nobody_watched_is_recorded_and_nothing_else(memory, seed):
    dice, before = random.Random(seed), memory.on_disk()
    chosen = [memory.folder / path for path in dice.sample(sorted(before), 8)]
    for path in chosen[: dice.randrange(9)]:
        deed = dice.choice(["delete", "change", "move", "grow"])
        path.write_bytes(b"changed\n") if deed == "change" else None
        path.unlink() if deed == "delete" else None
        path.rename(path.with_name(f"moved-{path.name}")) if deed == "move" else None
        os.truncate(path, MAX_BYTES + 1) if deed == "grow" else None
    memory.recorder.see()
    after = memory.on_disk()
    assert {edit.path for edit in memory.journal.edits()} == {path for path, _ in before.items() ^ after.items()}
    heads = memory.journal.heads()
    assert {path: memory.journal.text(head.blob) for path, head in heads.items()} == after


def test_notes_whose_root_is_away_were_not_deleted(tmp_path):
    folder, extra = workspace(tmp_path / "notes"), tmp_path / "vault"
    extra.mkdir()
    (extra / "x.md").write_text("x\n")
    memory = Memory(folder, (str(extra),))
    memory.recorder.see()
    extra.rename(tmp_path / "away")
    memory.recorder.see()
    memory.recorder.see()
    (tmp_path / "away").rename(extra)
    (extra / "y.md").write_text("y\n")
    memory.recorder.see()
    assert [edit.path for edit in memory.journal.edits()] == ["../vault/y.md"]
    shutil.rmtree(folder)
    memory.recorder.see()
    assert len(memory.journal.edits()) == 1


def test_a_disk_that_takes_nothing_is_said_once_and_the_notes_are_recorded_afterwards(memory):
    aside = memory.journal.database.rename(memory.journal.database.with_name("aside"))
    memory.journal.database.mkdir()
    for text in (b"- one\n", b"- two\n"):
        memory.write("memory/a.md", text)
    assert len(memory.said) == 1
    assert "is not recorded now" in memory.said[0]
    assert (memory.folder / "memory/a.md").read_bytes() == b"- two\n"
    memory.journal.database.rmdir()
    aside.rename(memory.journal.database)
    memory.recorder.see([])
    assert memory.texts("memory/a.md") == [b"- two\n"]
    assert memory.said[1:] == ["What becomes of the notes is recorded again."]


def test_a_clock_that_jumps_back_leaves_the_order_and_no_change_of_tomorrow(memory, monkeypatch):
    memory.write("memory/a.md", b"- 1\n")
    past = time.time() - 86_400
    monkeypatch.setattr(recorders.time, "time", lambda: past)
    memory.write("memory/a.md", b"- 2\n")
    monkeypatch.undo()
    memory.write("memory/a.md", b"- 3\n")
    assert memory.texts("memory/a.md") == [b"- 1\n", b"- 2\n", b"- 3\n"]
    last, jumped, _ = memory.journal.edits("memory/a.md")
    assert jumped.at == past
    assert last.at <= time.time()


def test_a_note_too_large_to_be_indexed_costs_one_line_and_comes_back(memory):
    line = random.Random(3).randbytes(500).replace(b"\n", b"") + b"\n"
    text = line * (MAX_BYTES // len(line) + 1000)
    memory.write("memory/large.md", text)
    memory.write("memory/large.md", text + b"- one more\n")
    memory.recorder.see()
    last, first = memory.journal.edits("memory/large.md")
    assert (last.plus, last.minus, first.minus) == (1, 0, 0)
    assert memory.texts("memory/large.md") == [text, text + b"- one more\n"]
    memory.one.apply(put("memory/large.md", text + b"- one more\n", b"- small\n"))
    memory.one.undo()
    assert (memory.folder / "memory/large.md").read_bytes() == text + b"- one more\n"


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.notes.test_recorder import Memory, version
noise, start = random.Random(5), 0
for _ in range(int(sys.argv[3])):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        memory = Memory(Path(sys.argv[2]))
        for number in range(start, 10**6):
            memory.write(f"memory/{number % 5}.md", version(number))
            os.write(writing, b"%d\\n" % number)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        first = told.readline()
        time.sleep(noise.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        start = max(map(int, (first + told.read()).split(b"\\n")[:-1])) + 1
print(start)
"""


def version(number):
    return b"- line\n" * (number % 40) + b"- version %d\n" % number


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_nothing_that_was_told_as_kept_is_lost_by_a_kill(tmp_path):
    memory = Memory(workspace(tmp_path / "notes"))
    memory.recorder.see()
    words = [sys.executable, "-c", KILLED, str(ROOT), str(memory.folder), "30"]
    told = int(subprocess.run(words, check=True, capture_output=True).stdout)
    texts = {text for number in range(5) for text in memory.texts(f"memory/{number}.md")}
    assert told >= 30
    # A kill may come before a version was recorded, and the next one takes its number again.
    assert {number for number in range(told) if version(number) not in texts} == set()


def opened(folder, **settings):
    changes = tuple((name.replace("_", "."), value) for name, value in settings.items())
    return Engine.open(Options(workspace=str(folder), provider="none", changes=changes))


@pytest.fixture
def watched(folder):
    with opened(folder) as engine:
        engine.start()
        assert engine.index.watcher.armed.wait(LONG)
        yield folder, engine.notes.curator.journal


def test_the_watcher_keeps_each_version_of_two_appenders(watched):
    folder, journal = watched
    texts = {"memory/a.md": b"", "memory/b.md": b""}
    for number in range(6):
        for path in texts:
            texts[path] += b"- %d\n" % number
            (folder / path).write_bytes(texts[path])

        def seen():
            return [journal.text(next(iter(journal.edits(p))).after) for p in texts if journal.edits(p)]

        until(lambda: seen() == [*texts.values()])
    assert [len(journal.edits(path)) for path in texts] == [6, 6]


AGENT = """
import fcntl, pathlib, random, sys, time
folder, me, until = pathlib.Path(sys.argv[1]), int(sys.argv[2]), time.time() + float(sys.argv[3])
noise = random.Random(me)
while time.time() < until:
    note = folder / f"memory/{noise.randrange(9)}.md"
    with open(folder.parent / f"{note.stem}.lock", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = note.read_bytes() if note.exists() else b""
        lines = text.splitlines(keepends=True) + [b"- %d of %d\\n" % (noise.randrange(10**9), me)]
        del lines[: noise.choice([0, 0, 0, 0, 0, 0, 1, len(lines) // 2])]
        is_gone = len(lines) > 60
        note.unlink() if is_gone else note.write_bytes(b"".join(lines))
        lock.write(repr(None if is_gone else b"".join(lines)).encode() + b"\\n")
        # The next version comes so much later at the earliest: also a busy machine has seen this one by then.
        time.sleep(3 if is_gone else 1.5)
    time.sleep(noise.uniform(0, 0.4))
"""


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_three_agents_for_1290_seconds_and_every_version_is_there(watched):
    folder, journal = watched
    words = [sys.executable, "-c", AGENT, str(folder)]
    agents = [subprocess.Popen([*words, str(me), "1290"]) for me in range(3)]
    assert [agent.wait() for agent in agents] == [0, 0, 0]
    for written in folder.parent.glob("*.lock"):
        path = f"memory/{written.stem}.md"
        versions = [ast.literal_eval(line) for line in written.read_text().splitlines()]
        until(lambda path=path, last=versions[-1]: journal.text(journal.edits(path)[0].after) == last)
        assert [journal.text(edit.after) for edit in journal.edits(path)[::-1]] == versions


def test_the_watcher_sees_folders_and_root_notes_go_and_come(watched):
    folder, journal = watched
    (folder / "memory/sub").mkdir()
    (folder / "memory/sub/x.md").write_text("x\n")
    until(lambda: journal.edits("memory/sub/x.md"))
    shutil.rmtree(folder / "memory/sub")
    (folder / "MEMORY.md").unlink()

    def last():
        return [journal.edits(path)[:1] and journal.edits(path)[0].after for path in ("memory/sub/x.md", "MEMORY.md")]

    until(lambda: last() == [None, None])


def test_switched_off_nothing_is_kept_and_what_others_did_is_forgotten(folder):
    with opened(folder, sync_watch="false") as engine:
        for text in ("- one\n", "- one\n", "- two\n", "- six\n"):
            (folder / "memory/a.md").write_text(text)
            engine.index.sync()
    assert len(engine.notes.curator.journal.edits()) == 2
    (folder / "memory/a.md").write_text("- three\n")
    with opened(folder, sync_watch="false", history_enabled="false") as engine:
        engine.index.sync()
        assert engine.notes.curator.journal.edits() == ()


def test_a_command_that_only_asks_records_after_its_answer(folder):
    for text in ("- one\n", "- two\n"):
        (folder / "memory/a.md").write_text(text)
        with opened(folder, sync_watch="false") as engine:
            engine.index.catch_up()
            count = len(engine.notes.curator.journal.edits())
    assert (count, len(engine.notes.curator.journal.edits())) == (0, 1)
