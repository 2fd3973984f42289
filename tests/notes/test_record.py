"""The record keeps every version of a note as what differs from the one before, and forgets by size, age and author."""

import random
import sqlite3
import stat
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.errors import EditRefused
from memory_tui.notes.journal import Sight, counted, zstd
from tests.support.curate import curator, journal_of, put, workspace

DAY, OTHER = "memory/2026-03-20.md", "memory/other.md"


@pytest.fixture
def record(tmp_path):
    record = journal_of(tmp_path)
    record.observe([Sight(DAY, b"# day\n", 1.0, fresh=False)], began=1)
    return record


def seen(record, *texts, path=DAY, start=10.0):
    """Let somebody change a note; returns the changes, oldest first."""
    for number, text in enumerate(texts):
        record.observe([Sight(path, text, start + number)])
    return list(record.edits(path))[::-1]


def texts(record, path=DAY):
    return [(record.text(edit.before), record.text(edit.after)) for edit in record.edits(path)[::-1]]


def test_each_version_comes_back_to_the_letter_and_the_first_sight_of_a_note_is_no_change(record):
    words = random.Random(4)
    versions: list[bytes | None] = [b"# day\n"]
    for number in range(120):
        line = b"- %d %s\r\n" % (number, words.randbytes(9).hex().encode())
        versions.append(None if number == 30 else (versions[-1] or b"") + line)
    seen(record, *versions[1:])
    assert texts(record) == list(pairwise(versions))
    assert record.edits(OTHER) == ()
    assert stat.S_IMODE(record.database.stat().st_mode) == 0o600


def test_a_version_costs_what_changed_and_one_that_was_there_before_costs_nothing(record):
    words, names = random.Random(1), ["rain", "boiler", "plan", "tea", "lake", "router", "winter"]
    text = "\n".join(" ".join(words.choices(names, k=9)) for _ in range(99))

    def kept():
        with sqlite3.connect(record.database) as connection:
            return connection.execute("SELECT sum(length(data)) FROM note_blob").fetchone()[0]

    seen(record, text.encode())
    first = kept()
    for number in range(12):
        text += f"\n- line {number} of the day"
        seen(record, text.encode())
    assert kept() - first < 12 * 60
    both = kept()
    seen(record, b"# day\n", text.encode(), None, text.encode())
    assert kept() == both


def test_a_text_that_an_earlier_release_packed_comes_back(record):
    versions = [b"# day\n", b"# day\n- a line\n", b"# day\n- a line\n- more\n"]
    seen(record, *versions[1:])
    packed = zstd.compress(versions[2], zstd_dict=zstd.ZstdDict(versions[1], is_raw=True).as_prefix)[4:]
    with sqlite3.connect(record.database) as connection:
        last = "(SELECT max(id) FROM note_blob)"
        connection.execute(f"UPDATE note_blob SET data = ? WHERE id = {last}", (packed,))
    assert texts(record) == list(pairwise(versions))
    with sqlite3.connect(record.database) as connection:
        connection.execute(f"UPDATE note_blob SET data = ?, hash = hash + 1 WHERE id = {last}", (b"\x93\x01rubbish",))
    with pytest.raises(EditRefused, match="damaged"):
        texts(record)


def test_a_log_that_grows_for_long_is_not_kept_whole_again(record):
    log = random.Random(2).randbytes(12_000).hex().encode()
    versions = [log + b"- a line of the day\n" * number for number in range(300)]
    record.observe([Sight(DAY, data, 10.0) for data in versions])
    with sqlite3.connect(record.database) as connection:
        assert connection.execute("SELECT count(*) FROM note_blob WHERE length(data) > 100").fetchone() == (1,)
    assert record.text(record.edits()[0].after) == versions[-1]


def test_changes_are_numbered_with_those_of_this_program_and_listed_in_pages(tmp_path):
    folder = workspace(tmp_path / "notes")
    one = curator(folder)
    one.journal.observe([Sight("MEMORY.md", one.read("MEMORY.md"), 1.0, fresh=False)], began=1)
    one.apply(put(DAY, None, b"- mine\n"))
    (folder / DAY).write_bytes(b"- mine\n- theirs\n")
    one.apply(put(DAY, b"- mine\n- theirs\n", b"- mine\n- theirs\n- mine again\n"))
    rows = one.journal.edits()
    found = [(row.id, row.kind, row.plus, row.minus) for row in rows]
    assert found == [(3, "edit", 1, 0), (2, "others", 1, 0), (1, "edit", 1, 0)]
    assert [row.id for row in one.journal.edits(most=2)] == [3, 2]
    assert [row.id for row in one.journal.edits(until=2)] == [1]
    assert [row.id for row in one.journal.edits(DAY, since=2)] == [3]
    assert one.journal.observe([Sight(DAY, (folder / DAY).read_bytes(), 9.0)]) == ()
    assert [row.id for row in one.journal.without_author()] == [2]
    one.undo()
    assert (folder / DAY).read_bytes() == b"- mine\n- theirs\n"


def test_the_oldest_make_way_and_each_note_as_it_is_stays(record):
    noise = [random.Random(number).randbytes(10_000) for number in range(6)]
    seen(record, *noise)
    record.most_days = 3650 * 30
    record.most_bytes = 25_000
    record.prune()
    assert texts(record) == [(noise[3], noise[4]), (noise[4], noise[5])]
    record.most_days = 3650 * 30
    record.most_bytes = 0
    record.prune()
    assert texts(record) == [(noise[4], noise[5])]
    record.clock = lambda: 4000 * 86_400.0
    record.most_days = 1
    record.prune()
    assert record.edits() == ()
    assert seen(record, b"- next\n")[-1].before is not None
    assert texts(record) == [(noise[5], b"- next\n")]


_TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n"]), max_size=8).map(b"".join)


@given(_TEXTS, _TEXTS, st.sampled_from([b"", b"a", b"b"]))
def test_lines_that_came_and_went_are_counted(before, after, end):
    plus, minus = counted(before + end, after + end)
    old, new = (before + end).splitlines(keepends=True), (after + end).splitlines(keepends=True)
    assert plus == sum(max(0, new.count(line) - old.count(line)) for line in set(new))
    assert minus == sum(max(0, old.count(line) - new.count(line)) for line in set(old))
