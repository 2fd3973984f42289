"""An index file: where it lies, what happens to a bad one, and what it answers."""

from __future__ import annotations

import os
import stat
import threading
import time

import apsw
import numpy as np
import pytest

from memory_tui.core.errors import Cancelled, IndexDamaged, IndexRefused, IndexUnavailable, QueryError
from memory_tui.index import abilities, index_file, schema
from memory_tui.index.store import Store
from memory_tui.notices import Notice
from tests.support.index import Memory, text_of
from tests.support.waiting import LONG
from tests.support.workspace import needs_inodes, unprivileged_folder


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "index" / "memory.sqlite")
    yield memory
    memory.store.close()


# --- the file ------------------------------------------------------------------------------------------------------


def test_an_error_of_a_statement_is_no_damage_of_the_file(memory):
    with pytest.raises(IndexUnavailable, match="too complex") as refused:
        memory.store.query("SELECT 'a' LIKE ?", ("%" * 60_000,))
    assert not isinstance(refused.value, IndexDamaged)
    assert "doctor" in refused.value.next_step
    assert "elete" not in refused.value.next_step


def test_an_index_is_private_to_its_user(tmp_path):
    path = tmp_path / "cache" / "memory.sqlite"
    store = Store.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with store.writing():
        assert stat.S_IMODE(path.with_name("memory.sqlite-wal").stat().st_mode) == 0o600
    store.close()


def test_a_lax_index_file_is_made_private(tmp_path):
    path = tmp_path / "memory.sqlite"
    Store.open(path).close()
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_pages_and_journal_are_as_measured(tmp_path):
    store = Store.open(tmp_path / "memory.sqlite")
    assert store.value("PRAGMA page_size") == 16384
    assert store.value("PRAGMA journal_mode") == "wal"
    assert store.value("PRAGMA application_id") == schema.APPLICATION_ID
    store.close()


CONTENTS = {
    "text": b"just some text, longer than a page header of SQLite " * 50,
    "short": b"x",
    "zeros": bytes(20000),
    "magic": b"SQLite format 3\0" + b"\xff" * 9000,
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_is_no_index_stays(tmp_path, content):
    path = tmp_path / "memory.sqlite"
    path.write_bytes(CONTENTS[content])
    with pytest.raises(IndexRefused, match=r"is not an index of memory-tui|of another program") as error:
        Store.open(path)
    assert error.value.next_step
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("memory.sqlite", CONTENTS[content])]


@pytest.mark.parametrize("content", ["text", "zeros"])
def test_what_is_left_of_an_index_is_moved_aside(tmp_path, content):
    path = tmp_path / "memory.sqlite"
    path.write_bytes(CONTENTS[content])
    notices: list[Notice] = []
    store = Store.open(path, notices=notices, expected=lambda: True)
    assert store.generation() == 0
    [aside] = [p for p in tmp_path.iterdir() if "damaged" in p.name and not p.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == CONTENTS[content]
    assert "is not a database" in notices[0].message
    assert str(aside) in notices[0].message
    store.close()


def test_a_damaged_index_is_moved_aside(tmp_path):
    path = tmp_path / "memory.sqlite"
    Store.open(path).close()
    data = bytearray(path.read_bytes())
    data[100:2000] = b"\xa5" * 1900
    path.write_bytes(data)
    notices: list[Notice] = []
    Store.open(path, notices=notices).close()
    assert "is damaged" in notices[0].message
    assert any(p.read_bytes() == bytes(data) for p in tmp_path.iterdir() if "damaged" in p.name)


def test_two_bad_files_in_one_second_are_both_kept(tmp_path):
    path = tmp_path / "memory.sqlite"
    for number in range(3):
        path.write_bytes(b"bad %d" % number * 300)
        Store.open(path, expected=lambda: True).close()
    kept = {p.read_bytes()[:5] for p in tmp_path.iterdir() if "damaged" in p.name}
    assert kept == {b"bad 0", b"bad 1", b"bad 2"}


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE recipes(name)",
        "CREATE TABLE recipes(name); DROP TABLE recipes",
        "PRAGMA application_id = 7; CREATE TABLE chunks(id)",
    ],
)
@pytest.mark.parametrize("how", ["itself", "link"])
def test_a_database_of_another_program_stays(tmp_path, script, how):
    path = tmp_path / "memory.sqlite"
    other = apsw.Connection(str(path))
    other.execute(script)
    other.close()
    before, named = path.read_bytes(), path
    if how == "link":
        named = tmp_path / "link.sqlite"
        named.symlink_to(path)
    with pytest.raises(IndexRefused, match="database of another program"):
        Store.open(named, expected=lambda: True)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({path.name, named.name})


@pytest.mark.parametrize("side", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("what", ["pipe", "folder", "link"])
def test_what_is_no_file_in_the_place_of_an_index_is_refused(tmp_path, side, what):
    part = tmp_path / f"memory.sqlite{side}"
    target = tmp_path / "theirs"
    target.write_text("my shopping list")
    if what == "pipe":
        os.mkfifo(part)
    elif what == "folder":
        part.mkdir()
    else:
        part.symlink_to(target)
    for read_only in (False, True):
        with pytest.raises(IndexUnavailable):
            Store.open(tmp_path / "memory.sqlite", read_only=read_only)
    assert target.read_text() == "my shopping list"


@pytest.mark.parametrize("name", ["loop", "a\0b", "x" * 300])
def test_a_name_that_leads_nowhere_is_refused(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for read_only in (False, True):
        with pytest.raises(IndexUnavailable) as error:
            Store.open(tmp_path / name, read_only=read_only)
        assert error.value.message
        assert error.value.next_step


def test_one_bit_of_the_header_does_not_make_an_index_a_stranger(tmp_path):
    path = tmp_path / "memory.sqlite"
    Store.open(path).close()
    whole = path.read_bytes()
    for at in range(100):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        Store.open(path).close()


def test_an_index_of_a_newer_version_is_moved_aside(tmp_path):
    path = tmp_path / "memory.sqlite"
    store = Store.open(path)
    store.query("PRAGMA user_version = 99")
    store.close()
    notices: list[Notice] = []
    Store.open(path, notices=notices).close()
    assert "schema version 99" in notices[0].message


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE meta(key, value); CREATE TABLE files(path); CREATE TABLE chunks(id); "
        "CREATE TABLE embedding_cache(hash)",
        "CREATE TABLE memory_index_meta(key, value)",
    ],
)
def test_the_index_of_openclaw_is_refused_and_left_alone(tmp_path, script):
    path = tmp_path / "main.sqlite"
    other = apsw.Connection(str(path))
    other.execute(script)
    other.close()
    before = path.read_bytes()
    with pytest.raises(IndexUnavailable, match="OpenClaw's own index"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["main.sqlite"]


def test_a_note_or_a_folder_cannot_be_the_index(tmp_path):
    note = tmp_path / "MEMORY.md"
    note.write_text("keep me")
    for path in (note, tmp_path):
        with pytest.raises(IndexUnavailable, match="cannot be the index"):
            Store.open(path)
    assert note.read_text() == "keep me"


def test_a_folder_that_cannot_be_written_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "file").write_text("in the way")
    wanted = tmp_path / "file" / "memory.sqlite"
    notices: list[Notice] = []
    store = Store.open(wanted, notices=notices)
    assert tmp_path / "temporary" in store.path.parents
    assert str(wanted) in notices[0].message
    assert str(store.path) in notices[0].message
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    store.close()
    # The next session finds the same file.
    assert index_file.choose_path(wanted, []) == store.path


def test_a_temporary_folder_that_others_can_enter_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trap = tmp_path / f"memory-tui-{os.getuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    (tmp_path / "file").write_text("in the way")
    path = index_file.choose_path(tmp_path / "file" / "memory.sqlite", [])
    assert trap not in path.parents
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    # The next command finds the same folder, and none is forgotten when the text of the notes is to go.
    assert index_file.choose_path(tmp_path / "file" / "memory.sqlite", []) == path
    assert index_file.find(tmp_path / "file" / "memory.sqlite") == path
    assert index_file.displaced(tmp_path / "file" / "memory.sqlite") == [path]
    other = index_file.choose_path(tmp_path / "file" / "other.sqlite", [])
    assert other.parent == path.parent


def test_without_any_folder_to_write_the_reason_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    monkeypatch.setattr(index_file, "_MEMORY", (tmp_path / "nowhere",))
    with pytest.raises(IndexUnavailable, match="No index can be written"):
        Store.open(tmp_path / "file" / "memory.sqlite")


@needs_inodes
def test_an_index_in_a_closed_folder_can_be_read_but_not_written(monkeypatch):
    with unprivileged_folder() as top:
        folder, temporary = top / "closed", top / "temporary"
        folder.mkdir()
        temporary.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        path = folder / "memory.sqlite"
        Store.open(path).close()
        folder.chmod(0o500)
        try:
            reader = Store.open(path, read_only=True)
            assert reader.generation() == 0
            reader.close()
            notices: list[Notice] = []
            writer = Store.open(path, notices=notices)
            assert temporary in writer.path.parents
            assert "may not be written" in notices[0].message
            writer.close()
        finally:
            folder.chmod(0o700)


# --- read-only -----------------------------------------------------------------------------------------------------


def test_reading_needs_an_index(tmp_path):
    with pytest.raises(IndexUnavailable, match="There is no index"):
        Store.open(tmp_path / "memory.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_file_is_not_moved_by_a_reader(tmp_path):
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"nonsense" * 500)
    with pytest.raises(IndexDamaged, match="is not a database"):
        Store.open(path, read_only=True, expected=lambda: True)
    with pytest.raises(IndexRefused, match="is not an index of memory-tui"):
        Store.open(path, read_only=True)
    assert [p.name for p in tmp_path.iterdir()] == ["memory.sqlite"]


def test_a_reader_cannot_write(memory):
    memory.write("MEMORY.md", "hello")
    memory.sync()
    reader = Store.open(memory.store.path, read_only=True)
    with pytest.raises(IndexUnavailable), reader.writing():
        pass
    assert reader.counts().files == 1
    reader.close()


def test_a_reader_sees_the_old_generation_while_the_next_one_is_written(memory):
    memory.write("MEMORY.md", "hello")
    memory.sync()
    reader = Store.open(memory.store.path, read_only=True)
    before = reader.generation()
    with memory.store.writing() as generation:
        assert generation == before + 1
        assert reader.generation() == before
    assert reader.generation() == before + 1
    reader.close()


def test_what_an_index_says_of_itself_is_read_once_in_a_snapshot_and_anew_behind_it(memory):
    reader, asked = Store.open(memory.store.path), []
    reader.connection.exec_trace = lambda _, sql, __: asked.append(sql) is None
    with reader.snapshot():
        before = reader.meta("x"), reader.uuid(), reader.generation(), reader.words.cut()
        with memory.store.writing():
            memory.store.query("INSERT INTO meta VALUES ('x', 1)")
        assert (reader.meta("x"), reader.uuid(), reader.generation(), reader.words.cut()) == before
    assert sum("FROM meta" in sql for sql in asked) == 1
    assert reader.meta("x") == 1
    reader.close()


def test_a_transaction_that_fails_leaves_nothing(memory):
    before = memory.store.generation()

    def write() -> None:
        with memory.store.writing():
            memory.store.query("INSERT INTO meta VALUES ('x', 1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert memory.store.meta("x") is None
    assert memory.store.generation() == before


def test_a_statement_can_be_stopped_from_another_thread(memory):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    outcome: list[BaseException] = []

    def ask() -> None:
        try:
            memory.store.query(endless)
        except Cancelled as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    deadline = time.monotonic() + LONG
    while thread.is_alive() and time.monotonic() < deadline:
        memory.store.interrupt()
        thread.join(0.01)
    assert [type(error) for error in outcome] == [Cancelled]
    assert memory.store.generation() == 0


# --- sqlite-vec ----------------------------------------------------------------------------------------------------


def test_vec0_is_tried_before_it_is_trusted(memory):
    if not memory.store.vec0.ready:
        pytest.skip(f"sqlite-vec does not work here: {memory.store.vec0.detail}")
    assert memory.store.vec0.detail.startswith("v")


@pytest.mark.parametrize(("library", "why"), [(None, "not installed"), ("/nowhere/vec0", "load: ")])
def test_without_vec0_everything_works_and_the_reason_is_kept(tmp_path, monkeypatch, library, why):
    monkeypatch.setattr(abilities, "_library", lambda: library)
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    assert not memory.store.vec0.ready
    assert why in memory.store.vec0.detail
    memory.write("MEMORY.md", "hello")
    assert memory.sync().embedded == 1
    assert memory.store.vec0_dims() == 0
    memory.store.close()


# --- full-text search ----------------------------------------------------------------------------------------------


@pytest.fixture
def library(memory):
    memory.write("memory/2026-03-14.md", "# Garden\n\nThe roses were running wild. 我们喝咖啡\n")
    memory.write("memory/2026-03-15.md", "# Kitchen\n\nRoses in a vase, roses on the table.\n")
    memory.write("memory/other.md", "# Bread\n\nA sourdough starter.\n")
    memory.sync()
    return memory


def paths(memory, rowids):
    known = {row.rowid: file for file in memory.store.known() for row in memory.store.chunks_of(file)}
    return [known[rowid] for rowid in rowids.tolist()]


def test_matches_come_by_rowid_with_their_bm25(library):
    rowids, bm25 = library.store.words.match(["roses"], "plain", "all")
    assert paths(library, rowids) == ["memory/2026-03-14.md", "memory/2026-03-15.md"]
    assert (np.diff(bm25) < 0).all()
    assert (bm25 < 0).all()


def test_equal_matches_come_by_rowid(memory):
    for number in range(5):
        memory.write(f"memory/{number}.md", "same words here")
    memory.write("memory/other.md", "something else")
    memory.sync()
    rowids, bm25 = memory.store.words.match(["same"], "plain", "all")
    assert len(set(bm25.tolist())) == 1
    assert rowids.tolist() == sorted(rowids.tolist())


def test_words_are_stemmed_and_know_day_heading_and_bigrams(library):
    def found(query):
        return paths(library, library.store.words.match([query], "stemmed", "any").rowids)

    assert found("runs") == ["memory/2026-03-14.md"]
    assert found("Saturday") == ["memory/2026-03-14.md"]
    assert found("咖啡") == ["memory/2026-03-14.md"]
    assert library.store.words.match(["runs"], "plain", "all")[0].size == 0
    assert library.store.words.match(["咖啡"], "plain", "all")[0].size == 0


def test_a_chunk_is_found_by_the_headings_above_it(memory):
    memory.write("MEMORY.md", f"# Garden\n\n## Roses\n\n{text_of(120)}")
    memory.sync()
    last = memory.store.chunks_of("MEMORY.md")[-1]
    assert last.start_line > 10
    assert last.rowid in memory.store.words.match(["garden", "roses"], "stemmed", "all")[0]
    assert last.rowid not in memory.store.words.match(["garden"], "plain", "all")[0]


def test_document_frequency_counts_chunks(library):
    assert library.store.words.frequency(["roses", "starter", "nothing"], "plain") == [2, 1, 0]
    assert library.store.words.frequency(["rose", "咖", "咖啡", 'a"b'], "stemmed") == [2, 1, 1, 0]
    library.write("memory/third.md", "roses again")
    library.sync()
    assert library.store.words.frequency(["roses"], "plain") == [3]


def test_a_word_is_a_word_whatever_it_contains(library):
    for word in ('"', "AND", "a NEAR(", "nocolumn: x", "^roses*"):
        assert set(library.store.words.match([word], "plain", "all").rowids) <= set(range(10))
    with pytest.raises(QueryError, match="NUL"):
        library.store.words.match(["a\0"], "plain", "all")


def test_texts_and_chunks(library):
    [row] = library.store.chunks_of("memory/other.md")
    assert library.store.texts([row.rowid, 999]) == {row.rowid: "# Bread\n\nA sourdough starter.\n"}
    assert (row.start_line, row.end_line, row.embedded) == (1, 4, True)
    assert library.store.chunks_of("memory/none.md") == []


def test_repeats_have_words_only_in_the_table_of_openclaw(memory):
    memory.write("MEMORY.md", "a" * 4800)
    memory.sync()
    rows = memory.store.chunks_of("MEMORY.md")
    assert [row.occurrence for row in rows] == [0, 0, 1]
    first, repeat = rows[1], rows[2]
    assert first.chunk_id == repeat.chunk_id
    assert memory.store.counts().chunks == 2
    assert memory.store.file("MEMORY.md").chunks == 2
    assert repeat.rowid in memory.store.words.match(["a" * 1600], "plain", "all")[0]
    assert repeat.rowid not in memory.store.words.match(["a" * 1600], "stemmed", "all")[0]
    assert memory.store.words.originals([first.rowid, repeat.rowid]) == {repeat.rowid: first.rowid}
    assert not repeat.embedded


def test_status_counts(library):
    counts = library.store.counts()
    assert (counts.files, counts.chunks, counts.embedded, counts.cached, counts.failed) == (3, 3, 3, 3, 0)
    assert counts.by_source == {"memory": (3, 3)}
    assert counts.bytes > 0
