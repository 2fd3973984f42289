"""The record of recalled lines: places and times alone, private, bounded, and safe among writers."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_tui.cli import main
from memory_tui.recalls import recalled_lines
from tests.support.waiting import LONG
from tests.support.workspace import needs_inodes

SPANS = st.lists(
    st.tuples(
        st.sampled_from(["MEMORY.md", "memory/é 日.md", "memory/\udcff.md", ""]), st.integers(1, 30), st.integers(0, 5)
    ).map(lambda s: (s[0], s[1], s[1] + s[2])),
    max_size=6,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "marks" / "w.jsonl"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SPANS, max_size=4))
def test_what_is_written_is_read_again(tmp_path_factory, answers):
    place = tmp_path_factory.mktemp("marks") / "w.jsonl"
    for at, spans in enumerate(answers):
        recalled_lines.append(place, spans, at)
    found = recalled_lines.read(place)
    wanted: dict[str, set[int]] = {}
    last = {}
    for at, spans in enumerate(answers):
        for path, first, end in spans:
            path = path.replace("\udcff", "\ufffd")
            wanted.setdefault(path, set()).update(range(first, end + 1))
            last[path] = at
    assert (found.lines, found.last, found.unread) == (wanted, last, 0)


def test_nothing_is_written_for_an_answer_without_hits(place):
    recalled_lines.append(place, [], 1.0)
    assert not place.exists()
    assert recalled_lines.read(place) == recalled_lines.Marks()


@needs_inodes
def test_only_its_owner_may_read_it(place):
    recalled_lines.append(place, [("MEMORY.md", 1, 2)], 1.0)
    place.chmod(0o644)
    recalled_lines.append(place, [("MEMORY.md", 3, 3)], 2.0)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_it_stays_small_and_keeps_what_is_new(place):
    for at in range(300):
        recalled_lines.append(place, [("memory/a.md", at + 1, at + 1)], at, most_bytes=4000)
    found = recalled_lines.read(place)
    assert place.stat().st_size <= 4000
    assert max(found.lines["memory/a.md"]) == 300
    assert found.unread == 0
    assert len(found.lines["memory/a.md"]) > 20


def test_damaged_lines_are_counted_and_cost_nothing(place):
    recalled_lines.append(place, [("MEMORY.md", 1, 2)], 1.0)
    damaged = [
        b'{"at": 1, "notes": {"a": [[1, 1000000000000]]}}',
        b'{"at": 1, "notes": {"a": [[0, 1]]}}',
        b"[]",
        b"5",
        b'{"at": NaN, "notes": {"a": [[1, 1]]}}',
        b'{"at": 1}',
        b'{"at": 1, "notes": {"a": [[true, 2]]}}',
        b'{"at": 1, "notes": [1]}',
        b'{"at": null, "notes": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"at": 1, "notes": {"a": [[1, "2"]]}}',
        b'{"at": 1, "notes": {"a": 3}}',
        b'{"at": 1, "no',
    ]
    with place.open("ab") as file:
        file.write(b"\n".join(damaged))
    recalled_lines.append(place, [("MEMORY.md", 4, 4)], 2.0)
    found = recalled_lines.read(place)
    assert found.lines == {"MEMORY.md": {1, 2, 4}}
    assert found.unread == len(damaged)


WRITER = """
import sys
from pathlib import Path
from memory_tui.recalls import recalled_lines as marks
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    marks.append(Path(sys.argv[1]), [("MEMORY.md", number, number)], number)
"""


def test_several_processes_write_at_once(place):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(place), str(start), str(start + 50)])
        for start in (1, 51, 101)
    ]
    assert [writer.wait(4 * LONG) for writer in writers] == [0, 0, 0]
    found = recalled_lines.read(place)
    assert found.lines["MEMORY.md"] == set(range(1, 151))
    assert found.unread == 0


def test_one_command_deletes_it(tmp_path, capsys):
    workspace = tmp_path / "notes"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("# Facts\n")
    recalled_lines.append(recalled_lines.marks_path(workspace), [("MEMORY.md", 1, 1)], 1.0)
    assert main.main(["recall-log", "--clear", "--workspace", str(workspace)]) == 0
    assert capsys.readouterr().out == "The marks of your own recalls are deleted.\nThere is no recall log.\n"
    assert not recalled_lines.marks_path(workspace).exists()
