"""A change that is cut off is finished or taken back; beside a program that never rests no line is lost.

Every line that either side of a race writes has a number: at the end each is there exactly once, or was lost.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from memory_tui import durable
from memory_tui.notes import edit as curators
from memory_tui.notes import journal, write
from memory_tui.notes.changes import Busy, Change, FileChange
from memory_tui.notes.edit import Curator
from tests.support.curate import curator, entries, hidden, put, workspace
from tests.support.faults import Losing, PowerCut, count, on
from tests.support.waiting import LONG
from tests.support.workspace import put_all, texts_of

BEFORE = {"MEMORY.md": b"# Memory\n\n- one\n- two\n", "memory/day.md": b"# day\r\n- a\r\n- b"}
BEFORE["memory/old.md"] = b"old\n"
CHANGES = {
    "two notes": {"MEMORY.md": b"# Memory\n\n- one\n- two\n- a (from day)\n", "memory/day.md": b"# day\r\n- b"},
    "edits": {"MEMORY.md": b"# Memories\n\n- one\n- 2\n", "memory/day.md": b"# day\r\n- A\r\n- b"},
}


def notes_of(tmp_path):
    return put_all(tmp_path / "notes", BEFORE)


def after(change):
    return {path: data for path, data in {**BEFORE, **change}.items() if data is not None}


def make(notes, name):
    one = curator(notes)
    files = (FileChange(path, one.read(path), data) for path, data in sorted(CHANGES[name].items()))
    one.apply(Change("promote", "a change", tuple(files)))


def cut_off(notes, name, call):
    """Make a change that ends behind its first `call` to the disk, or before it is noted: as after a kill."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(notes, Path(place) / "notes")
        calls = count(lambda: make(Path(place) / "notes", name))
    # The last call lets the lock go, and the one before flushes names; in between the journal learns that it is made.
    at = len(calls) - 2 if call == "last" else calls.index(call) + 1
    with on(Losing(at)), pytest.raises(PowerCut):
        make(notes, name)


@pytest.mark.parametrize("exchanges", [True, False], ids=["names exchanged", "names moved"])
def test_cut_off_anywhere_it_is_whole_or_nothing(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(durable, "_exchange_call", lambda: None)
    notes = notes_of(tmp_path / "whole")
    calls = count(lambda: make(notes, "edits"))
    for at in range(len(calls)):
        notes = notes_of(tmp_path / str(at))
        with on(Losing(at)), pytest.raises(PowerCut):
            make(notes, "edits")
        curator(notes).recover()
        assert texts_of(notes) in (BEFORE, after(CHANGES["edits"])), at
        assert hidden(notes) == []


@pytest.mark.parametrize("is_made", [False, True])
def test_lines_that_came_before_the_next_start_stay(tmp_path, is_made):
    change, notes = CHANGES["edits"], notes_of(tmp_path)
    cut_off(notes, "edits", "last" if is_made else "exchange")
    with (notes / "MEMORY.md").open("ab") as file:
        file.write(b"- theirs\n")
    replaced = notes / f".memory-tui-1-0{write.NEW}"
    if not is_made:
        # Somebody was on the way into the file that was replaced.
        assert replaced.read_bytes() == BEFORE["MEMORY.md"]
        with replaced.open("ab") as file:
            file.write(b"- late\n")
    one = curator(notes)
    assert [entry.reason for entry in one.recover()] == [journal.FINISHED if is_made else journal.TAKEN_BACK]
    late = b"" if is_made else b"- late\n"
    assert one.read("MEMORY.md").replace(late, b"") == (change if is_made else BEFORE)["MEMORY.md"] + b"- theirs\n"
    assert late in one.read("MEMORY.md")
    assert one.read("memory/day.md") == (change if is_made else BEFORE)["memory/day.md"]
    if is_made:
        one.undo()
        assert texts_of(notes) == {**BEFORE, "MEMORY.md": BEFORE["MEMORY.md"] + b"- theirs\n"}


def test_a_note_that_others_changed_where_a_change_was_cut_off_keeps_its_part(tmp_path):
    notes = notes_of(tmp_path)
    cut_off(notes, "two notes", "exchange")
    theirs = BEFORE["MEMORY.md"] + b"- theirs\n- a (from day)\n"
    (notes / "MEMORY.md").write_bytes(theirs)
    one = curator(notes)
    assert [entry.reason for entry in one.recover()] == [journal.HALF]
    assert texts_of(notes) == {**BEFORE, "MEMORY.md": theirs}


def test_a_change_on_its_way_is_not_settled_by_another_process(tmp_path, monkeypatch):
    """Without the journal's lock a second start would take the first note back and call the change refused."""
    notes, real, seen = notes_of(tmp_path), write.write, []
    monkeypatch.setattr(journal.Journal, "locked", partialmethod(journal.Journal.locked, seconds=0.0))

    def and_another(*args):
        written = real(*args)
        with pytest.raises(Busy):
            curator(notes).recover()
        with pytest.raises(Busy):
            curator(notes).apply(put("memory/new.md", None, b"new\n"))
        seen.append(texts_of(notes))
        return written

    monkeypatch.setattr(curators, "write", and_another)
    one = curator(notes)
    files = tuple(FileChange(path, BEFORE[path], data) for path, data in CHANGES["edits"].items())
    one.apply(Change("edit", "two notes", files))
    assert len(seen) == 2
    assert texts_of(notes) == after(CHANGES["edits"])
    assert [entry.state for entry in one.journal.entries()] == ["done"]


def test_the_next_change_settles_what_was_cut_off_first(tmp_path):
    notes = notes_of(tmp_path)
    cut_off(notes, "edits", "exchange")
    curator(notes).apply(put("memory/new.md", None, b"new\n"))
    assert texts_of(notes) == {**BEFORE, "memory/new.md": b"new\n"}
    assert hidden(notes) == []


@pytest.mark.parametrize(
    ("before", "mine", "now", "made"),
    [
        (b"a\n", b"b\n", b"a\n", False),
        (b"a\n", b"b\n", b"b\n", True),
        (b"a\n", b"a\nx\n", b"a\ny\n", False),
        (b"a\n", b"a\nx\n", b"a\nx\ny\n", True),
        (b"a\n", b"a\nx\n", b"a\ny\nx\n", True),
        (b"a\nb\nc\n", b"A\nb\nc\n", b"A\nb\nC\n", True),
        (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", False),
        (b"a\n", b"b\n", b"b\ny\n", True),
        (b"a\n", None, None, True),
        (b"a\n", None, b"a\ny\n", False),
        (None, b"a\n", None, False),
        (None, b"a\n", b"a\n", True),
        (None, b"a\n", b"a\ny\n", True),
    ],
)
def test_it_is_known_whether_a_change_was_made(before, mine, now, made):
    assert journal.is_made(FileChange("x.md", before, mine), now) == made


pytestmark = pytest.mark.usefixtures("patient")
LOG = "memory/2026-01-12.md"
CLOCK = 1_768_226_700.0
"""A time on the day of LOG."""

WAYS = ("appends", "replaces", "halves")
"""Programs that look before they write."""

_WRITER = """
import os, select, sys
path, way, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])


def rests(seconds):
    # The end of standard input is the end of the work.
    return bool(select.select([0], [], [], seconds)[0])


def appends(line, number):
    with open(path, "ab", buffering=0) as file:
        file.write(line)


def replaces(line, number):
    # A careful program: it replaces the file that it has open, and looks whether that is still the note.
    while True:
        try:
            with open(path, "r+b", buffering=0) as held:
                if os.fstat(held.fileno()).st_ino != os.stat(path).st_ino:
                    continue
                text = held.read()
                with open(path + "~", "wb") as new:
                    new.write(text.replace(b"## Agent\\n", b"## Agent\\n" + line, 1))
                os.replace(path + "~", path)
                return
        except FileNotFoundError:
            continue


def halves(line, number):
    middle = len(line) // 2
    with open(path, "ab", buffering=0) as file:
        file.write(line[:middle])
        if number % 2:
            rests(pause / 4)
            file.write(line[middle:])
            return
    rests(pause / 4)
    with open(path, "ab", buffering=0) as file:
        file.write(line[middle:])


number = 0
while True:
    globals()[way](b"- agent %d %s\\n" % (number, way.encode()), number)
    number += 1
    if rests(pause):
        break
print(number)
"""


class Writer:
    """A process that writes numbered lines to `note` in one of WAYS, `pause` seconds apart, from `with` to its end."""

    def __init__(self, note: Path, way: str, pause: float) -> None:
        self._note, self._way, self._pause = note, way, pause
        self.count = 0
        """How many lines it wrote, known at the end."""

    def __enter__(self) -> Writer:
        words = [sys.executable, "-c", _WRITER, str(self._note), self._way, str(self._pause)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wrote()
        return self

    def __exit__(self, *exc: object) -> None:
        said, _ = self._process.communicate(timeout=LONG)
        assert self._process.returncode == 0
        self.count = int(said)

    def wrote(self) -> None:
        """Wait until the note holds a line of the writer that it does not hold now."""
        seen = self._lines()
        until = time.monotonic() + LONG
        while self._lines() == seen:
            assert time.monotonic() < until, "the writer wrote nothing"
            assert self._process.poll() is None, "the writer ended"
            time.sleep(0.0005)

    def _lines(self) -> int:
        return self._note.read_bytes().count(f" {self._way}\n".encode())

    def missing(self, folder: Path) -> list[str]:
        """Lines that are not there exactly once."""
        found = lines_of(folder)
        wanted = [f"- agent {number} {self._way}" for number in range(self.count)]
        wrong = [f"{line}: {found[line]} times" for line in wanted if found[line] != 1]
        return wrong + [line for line in found if line.startswith("- agent") and line not in set(wanted)]


def lines_of(folder: Path) -> Counter[str]:
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))]
    return Counter(line for text in texts for line in text.split("\n"))


class Desk:
    """Somebody who changes the notes of `folder` through a curator; `mine` is how often each own line must be there.

    Each change is planned on what the notes held before the writer wrote once more, so that every one is a race.
    Steps are made as the screen makes them: beside what others wrote.
    """

    def __init__(self, folder: Path, writer: Callable[[], None], own: int = 30) -> None:
        self.folder, self._wrote = folder, writer
        self.curator: Curator = curator(folder, clock=lambda: CLOCK)
        self.mine: Counter[str] = Counter(f"- user {number}." for number in range(own))
        self._turn, self._undoable = 0, False

    @staticmethod
    def prepare(folder: Path, own: int = 30) -> None:
        """The log as it is before anybody writes: room for the writer, then the lines of the user."""
        lines = "".join(f"- user {number}.\n" for number in range(own))
        (folder / LOG).write_text(f"# 2026-01-12\n\n## Agent\n\n## Mine\n{lines}", "utf-8")

    def save(self) -> None:
        """Change one line in an editor and save."""
        before = self.curator.read(LOG)
        old = self._line()
        new = f"- user {self._turn}, saved."
        self._wrote()
        text = before.decode("utf-8").replace(f"{old}\n", f"{new}\n", 1)
        self.curator.apply(self.curator.plan.edit(LOG, before, text))
        self._became(Counter({new: 1}), Counter({old: 1}))

    def promote(self) -> None:
        line, move = self._line(), bool(self._turn % 2)
        change = self.curator.plan.promote(self._spot(LOG, line), to="Home", move=move)
        self._wrote()
        self.curator.apply(change)
        self._became(Counter({f"{line} (from {LOG})": 1}), Counter({line: 1} if move else {}))

    def remember(self) -> None:
        self._wrote()
        self._turn += 1
        done = self.curator.remember(f"user {self._turn}, captured.")
        at = f"{self.curator.plan.now():%H:%M}"
        assert done.change.kind == "capture"
        self._became(Counter({f"- {at} user {self._turn}, captured.": 1}), Counter())

    def undo(self) -> None:
        """Take the last change back, a save where there is none."""
        if not self._undoable:
            self.save()
        before, after = self._sides
        self._wrote()
        self.curator.undo(self.curator.stack("undo")[0].id, merging=True)
        self.mine.subtract(after)
        self.mine.update(before)
        self._undoable = False

    def redo(self) -> None:
        self.undo()
        before, after = self._sides
        self._wrote()
        self.curator.redo(self.curator.stack("redo")[0].id, merging=True)
        self.mine.subtract(before)
        self.mine.update(after)

    def wrong(self) -> list[str]:
        """Own lines that are not there as often as they must be, and hidden files that were left."""
        found = lines_of(self.folder)
        names = {line for line in found if "user" in line} | set(self.mine)
        wrong = [
            f"{line}: {found[line]} times, not {self.mine[line]}" for line in names if found[line] != self.mine[line]
        ]
        return wrong + [path.name for path in self.folder.rglob(".memory-tui-*")]

    def _became(self, after: Counter[str], before: Counter[str]) -> None:
        self.mine.update(after)
        self.mine.subtract(before)
        self._sides = (before, after)
        self._undoable = True

    def _line(self) -> str:
        self._turn += 1
        text = (self.folder / LOG).read_text("utf-8").split("\n")
        mine = [line for line in text if line.startswith("- user") and "[[" not in line and self.mine[line] == 1]
        return mine[self._turn % len(mine)]

    def _spot(self, path: str, line: str) -> Any:
        """`line` of the note `path`, which the writer may move between two looks."""
        while True:
            data = self.curator.read(path)
            spot = self.curator.plan.spot(path, data.decode().split("\n").index(line) + 1)
            if spot.texts() == [line]:
                return spot


ACTS = ("save", "promote", "remember", "undo", "redo")


@pytest.fixture
def folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    Desk.prepare(folder)
    return folder


PACES = [
    pytest.param(0.005, 8, id="usual"),
    *(pytest.param(1 / rate, 12, marks=pytest.mark.soak, id=f"{rate} a second") for rate in (5, 20)),
]


@pytest.mark.parametrize(("pause", "times"), PACES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", ACTS)
def test_every_change_beside_a_writer(folder, act, way, pause, times):
    with Writer(folder / LOG, way, pause) as writer:
        desk = Desk(folder, writer.wrote)
        for _ in range(times):
            getattr(desk, act)()
    assert writer.missing(folder) == []
    assert desk.wrong() == []
    assert hidden(folder) == []
    assert entries(desk.curator, state="draft") == []


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
