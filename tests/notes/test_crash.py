"""A change that is cut off at any point is finished or taken back by the next start, never half done."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory_tui.notes import curator as curators
from memory_tui.notes import journal, write
from memory_tui.notes.changes import Busy, Change, FileChange
from tests.support.curate import curator, hidden, put, workspace
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

EDITOR = """
import json, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.support.curate import curator
from memory_tui import durable
from memory_tui.notes import curator as curators, journal, write
from memory_tui.notes.changes import Change, FileChange

seen = 0
os.fsync = lambda descriptor: None

def die_at(name, real):
    def wrapped(*args, **options):
        global seen
        seen += name == point
        here = name == point and seen == int(count)
        if here and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **options)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

for owner, names in ((journal.Journal, ("begin", "settle", "_write")), (write, ("_write_new", "_last")),
                     (write.Folder, ("exchange", "rename", "link", "remove", "clear")), (curators, ("write",))):
    for name in names:
        setattr(owner, name, die_at(name, getattr(owner, name)))
def make(notes, wanted, how):
    if how == "plain":
        durable._exchange_call = lambda: None
    one = curator(Path(notes))
    files = [FileChange(path, one.read(path), None if data is None else data.encode())
             for path, data in sorted(wanted.items())]
    one.apply(Change("promote", "a change", tuple(files)))

# Each change is made in a fork, because to start Python takes longer than the change.
for line in sys.stdin:
    notes, wanted, at, how = json.loads(line)
    child = os.fork()
    if child == 0:
        point, when, count = at.split(":")
        make(notes, wanted, how)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

BEFORE = {
    "MEMORY.md": b"# Memory\n\n- one\n- two\n",
    "memory/day.md": b"# day\r\n- a\r\n- b",
    "memory/old.md": b"old\n",
}
CHANGES = {
    "two notes": {"MEMORY.md": b"# Memory\n\n- one\n- two\n- a (from day)\n", "memory/day.md": b"# day\r\n- b"},
    "edits": {"MEMORY.md": b"# Memories\n\n- one\n- 2\n", "memory/day.md": b"# day\r\n- A\r\n- b"},
    "new and gone": {"memory/archive/old.md": b"old\n", "memory/old.md": None},
}
POINTS = [
    f"{name}:{when}:{count}"
    for name, counts in (
        ("begin", (1,)),
        ("write", (1, 2)),
        ("_write_new", (1, 2)),
        ("exchange", (1, 2)),
        ("rename", (1, 2, 3)),
        ("link", (1, 2)),
        ("_last", (1, 2)),
        ("settle", (1,)),
        ("clear", (1, 2, 3, 4)),
        ("_write", (1, 2)),
    )
    for when in ("before", "after")
    for count in counts
]


@pytest.fixture(scope="module")
def cut_off():
    """Makes a change in a child process that kills itself at a point; returns how it ended."""
    command = [sys.executable, "-c", EDITOR, str(ROOT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(notes: Path, change: dict[str, bytes | None], point: str, how: str = "exchange") -> int:
            wanted = {path: None if data is None else data.decode() for path, data in change.items()}
            process.stdin.write(json.dumps([str(notes), wanted, point, how]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run


def notes_of(tmp_path: Path) -> Path:
    notes = workspace(tmp_path / "notes")
    for path, data in BEFORE.items():
        (notes / path).write_bytes(data)
    return notes


def texts(notes: Path) -> dict[str, bytes]:
    return {str(path.relative_to(notes)): path.read_bytes() for path in notes.rglob("*.md")}


def after(change: dict[str, bytes | None]) -> dict[str, bytes]:
    return {path: data for path, data in {**BEFORE, **change}.items() if data is not None}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere(cut_off, tmp_path, name, point):
    change, notes = CHANGES[name], notes_of(tmp_path)
    killed = cut_off(notes, change, point) == -signal.SIGKILL
    one = curator(notes)
    settled = one.recover()
    assert texts(notes) in (BEFORE, after(change))
    assert hidden(notes) == []
    assert all(entry.state in ("done", "refused") for entry in one.journal.entries())
    assert not killed or len(settled) <= 1
    made = texts(notes) != BEFORE
    assert len(one.undoable()) == made
    if made:
        one.undo()
        assert texts(notes) == BEFORE


@pytest.mark.parametrize(
    "point", ["rename:after:2", "link:after:1", "link:before:1", "_last:before:1", "write:after:1"]
)
def test_killed_where_names_cannot_be_exchanged(cut_off, tmp_path, point):
    change, notes = CHANGES["edits"], notes_of(tmp_path)
    assert cut_off(notes, change, point, "plain") == -signal.SIGKILL
    curator(notes).recover()
    assert texts(notes) in (BEFORE, after(change))
    assert hidden(notes) == []


@pytest.mark.parametrize("point", ["exchange:after:1", "_last:after:1", "write:after:1", "settle:before:1"])
def test_lines_that_came_before_the_next_start_stay(cut_off, tmp_path, point):
    change, notes = CHANGES["edits"], notes_of(tmp_path)
    assert cut_off(notes, change, point) == -signal.SIGKILL
    with (notes / "MEMORY.md").open("ab") as file:
        file.write(b"- theirs\n")
    replaced = notes / f".memory-tui-1-0{write.NEW}"
    if point != "settle:before:1":
        # Somebody was on the way into the file that was replaced.
        assert replaced.read_bytes() == BEFORE["MEMORY.md"]
        with replaced.open("ab") as file:
            file.write(b"- late\n")
    one = curator(notes)
    is_made = point == "settle:before:1"
    assert [entry.reason for entry in one.recover()] == [journal.FINISHED if is_made else journal.TAKEN_BACK]
    late = b"" if is_made else b"- late\n"
    assert one.read("MEMORY.md").replace(late, b"") == (change if is_made else BEFORE)["MEMORY.md"] + b"- theirs\n"
    assert late in one.read("MEMORY.md")
    assert one.read("memory/day.md") == (change if is_made else BEFORE)["memory/day.md"]
    if is_made:
        one.undo()
        assert texts(notes) == {**BEFORE, "MEMORY.md": BEFORE["MEMORY.md"] + b"- theirs\n"}


def test_a_note_that_others_changed_where_a_change_was_cut_off_keeps_its_part(cut_off, tmp_path):
    notes = notes_of(tmp_path)
    assert cut_off(notes, CHANGES["two notes"], "write:after:1") == -signal.SIGKILL
    theirs = BEFORE["MEMORY.md"] + b"- theirs\n- a (from day)\n"
    (notes / "MEMORY.md").write_bytes(theirs)
    one = curator(notes)
    assert [entry.reason for entry in one.recover()] == [journal.HALF]
    assert texts(notes) == {**BEFORE, "MEMORY.md": theirs}


def test_a_change_on_its_way_is_not_settled_by_another_process(tmp_path, monkeypatch):
    """Without the journal's lock a second start would take the first note back and call the change refused."""
    notes, real, seen = notes_of(tmp_path), write.write, []
    monkeypatch.setattr(journal, "_LOCK_SECONDS", 0.0)

    def and_another(*args):
        written = real(*args)
        with pytest.raises(Busy):
            curator(notes).recover()
        with pytest.raises(Busy):
            curator(notes).apply(put("memory/new.md", None, b"new\n"))
        seen.append(texts(notes))
        return written

    monkeypatch.setattr(curators, "write", and_another)
    one = curator(notes)
    files = tuple(FileChange(path, BEFORE[path], data) for path, data in CHANGES["edits"].items())
    one.apply(Change("edit", "two notes", files))
    assert len(seen) == 2
    assert texts(notes) == after(CHANGES["edits"])
    assert [entry.state for entry in one.journal.entries()] == ["done"]


def test_the_next_change_settles_what_was_cut_off_first(cut_off, tmp_path):
    notes = notes_of(tmp_path)
    assert cut_off(notes, CHANGES["edits"], "exchange:after:1") == -signal.SIGKILL
    one = curator(notes)
    one.apply(put("memory/new.md", None, b"new\n"))
    assert texts(notes) == {**BEFORE, "memory/new.md": b"new\n"}
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
