"""The state database: nothing is lost between processes, under faults, or when it is broken; and nothing blocks."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_tui.errors import StateUnavailable
from memory_tui.inbox import Decisions, Passage, Suggestion
from memory_tui.sentences import notice
from memory_tui.state_db import Table
from tests.support.faults import fill
from tests.support.waiting import LONG
from tests.support.workspace import needs_inodes

TABLE = Table("things")
SCOPES = ("a", "b\udcff")
"""The second is of a folder whose name is no UTF-8."""
NOW = 1_795_000_000.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "state.sqlite"


def records(path, scope="here", table=TABLE, **more):
    return table.of(scope, path=path, **more)


KEYS = st.text(max_size=3)
VALUES = st.recursive(st.booleans() | st.integers(-(2**40), 2**40) | st.text(), st.lists, max_leaves=3)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(SCOPES), KEYS, st.none() | VALUES), max_size=8))
def test_it_holds_what_a_dictionary_would_hold(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("state") / "state.sqlite"
    wanted: dict[str, dict[str, object]] = {scope: {} for scope in SCOPES}
    for scope, key, value in steps:
        before = wanted[scope].pop(key, None)
        if value is None:
            assert records(path, scope).remove(key) == (before is not None)
        else:
            wanted[scope][key] = value
            records(path, scope).put(key, value)
    for scope, held in wanted.items():
        assert list(records(path, scope).read().items()) == list(held.items())


def test_reading_makes_no_file(path):
    assert records(path).read() == {}
    assert records(path, old=lambda: {"a": 1}).read() == {"a": 1}
    assert not path.parent.exists()


@needs_inodes
def test_only_its_owner_may_read_it(path):
    records(path).put("a", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_oldest_go_where_a_table_has_a_bound(path):
    small = Table("small", most=3)
    for number in range(6):
        records(path, table=small).put(str(number), number)
    records(path, table=small).put("3", "again")
    records(path, "other", small).put("x", 1)
    assert records(path, table=small).read() == {"4": 4, "5": 5, "3": "again"}


def test_an_old_file_is_taken_over_once_and_left_alone(path, tmp_path):
    old = tmp_path / "old.json"
    old.write_text('{"a": 1, "b": 2}')
    reads = []

    def read():
        reads.append(1)
        return json.loads(old.read_bytes())

    here = records(path, old=read)
    assert here.read() == {"a": 1, "b": 2}
    assert here.remove("a")
    here.put("c", 3)
    assert here.read() == {"b": 2, "c": 3}
    assert old.read_text() == '{"a": 1, "b": 2}'
    assert len(reads) == 2
    assert records(path, "there", old=read).read() == {"a": 1, "b": 2}


def test_an_old_file_that_is_broken_is_said_and_stops_nothing(path):
    said: list[str] = []

    def broken():
        return json.loads("{")

    here = records(path, old=broken, tell=said.append)
    assert here.read() == {}
    here.put("a", 1)
    assert here.read() == {"a": 1}
    assert said
    assert all("left alone" in text for text in said)


def test_decisions_of_an_earlier_release_count(tmp_path):
    said = notice("said_twice", twin="MEMORY.md:2")
    one = Suggestion(Passage("MEMORY.md", 1, 1, "x"), said, "one", "said twice", ("delete",))
    (tmp_path / "inbox.json").write_text(json.dumps({one.id: "keep", "two": NOW}))
    decisions = Decisions(tmp_path)
    assert decisions.hidden([one], NOW)
    assert decisions.reopen(one.id)
    assert not decisions.reopen(one.id)
    assert not decisions.hidden([one], NOW)
    assert Decisions(tmp_path).decided() == {"two"}
    assert json.loads((tmp_path / "inbox.json").read_text())[one.id] == "keep"


DAMAGE = {
    "text": lambda data: b"this is no database at all, and long enough to be looked at",
    "first page": lambda data: data[:100] + os.urandom(len(data) - 100),
    "cut": lambda data: data[: len(data) // 2],
    "header": lambda data: b"\0" * 100 + data[100:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_database_is_set_aside_with_a_notice_and_a_new_one_begun(path, damage):
    for number in range(200):
        records(path).put(str(number), "x" * 50)
    broken = DAMAGE[damage](path.read_bytes())
    path.write_bytes(broken)
    said: list[str] = []
    here = records(path, tell=said.append)
    here.put("a", 1)
    assert here.read()["a"] == 1
    aside = list(path.parent.glob("state-broken-*.sqlite"))
    assert [one.read_bytes() for one in aside] == [broken]
    assert len(said) == 1
    assert aside[0].name in said[0]


@needs_inodes
def test_a_place_that_cannot_be_written_is_said(path):
    path.mkdir(parents=True)
    with pytest.raises(StateUnavailable, match="cannot be used"):
        records(path).put("a", 1)
    with pytest.raises(StateUnavailable):
        records(path).read()
    assert path.is_dir()


@needs_inodes
def test_a_full_disk_costs_nothing_that_was_there(disk):
    path = disk / "state" / "state.sqlite"
    records(path).put("a", "first")
    fill(disk, 1)
    refused = 0
    for number in range(50):
        try:
            records(path).put(str(number), "x" * 5000)
        except StateUnavailable:
            refused += 1
    assert refused
    (disk / "ballast").unlink()
    assert records(path).read()["a"] == "first"
    records(path).put("after", 1)


def test_a_change_that_fails_in_the_middle_changes_nothing(path):
    records(path).put("a", 1)

    def fail(_):
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        records(path).change("a", fail)
    assert records(path).read() == {"a": 1}
    records(path).put("b", 2)


COUNTER = """
import sys
from pathlib import Path
from memory_tui.state_db import Table
here = Table("things").of("here", path=Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    here.change("count", lambda before: (before or 0) + 1)
    here.put(f"{sys.argv[3]} {number}", number)
    print(number, flush=True)
"""


def process(path, times, name):
    command = [sys.executable, "-c", COUNTER, str(path), str(times), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_at_once_lose_nothing_of_each_other(path):
    running = [process(path, 40, name) for name in "abc"]
    assert [one.communicate(timeout=2 * LONG) and one.returncode for one in running] == [0, 0, 0]
    held = records(path).read()
    assert held.pop("count") == 120
    assert held == {f"{name} {number}": number for name in "abc" for number in range(40)}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system kills otherwise")
def test_a_killed_process_loses_nothing_it_had_finished(path):
    for attempt in range(2):
        killed = process(path, 100_000, f"k{attempt}")
        last = -1
        while last < 3 + attempt:
            last = int(killed.stdout.readline())
        killed.kill()
        killed.communicate(timeout=LONG)
        began = time.monotonic()
        held = records(path).read()
        assert all(held[f"k{attempt} {number}"] == number for number in range(last + 1))
        records(path).put("after", attempt)
        assert time.monotonic() - began < LONG
    written = [key for key in records(path).read() if key.startswith("k")]
    assert records(path).read()["count"] in range(len(written), len(written) + 5)


def test_two_processes_that_find_it_broken_set_it_aside_once(path):
    path.parent.mkdir()
    path.write_bytes(b"no database" * 500)
    running = [process(path, 20, name) for name in "ab"]
    assert [one.communicate(timeout=2 * LONG) and one.returncode for one in running] == [0, 0]
    held = records(path).read()
    # Whoever came second may have begun on the broken one; what went into the new one is whole.
    assert {key for key in held if key != "count"} == {f"{name} {number}" for name in "ab" for number in range(20)}
    assert len(list(path.parent.glob("state-broken-*.sqlite"))) == 1
