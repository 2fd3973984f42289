"""Syncing: the index holds what is on disk, and costs what changed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.config.settings import OLDER_OPENCLAW, OWN_PROFILE
from memory_tui.index import index_write
from memory_tui.index.index_write import headings_above
from memory_tui.index.store import CHANGED, Store
from memory_tui.index.sync import compare
from memory_tui.workspace.roots import scan
from tests.support.index import Answering, Counting, Memory, integrity, text_of
from tests.support.workspace import needs_inodes, put, unprivileged_folder


def test_a_second_sync_writes_nothing_and_embeds_nothing(memory):
    for number in range(20):
        memory.write(f"memory/{number}.md", text_of(50, f"n{number}"))
    memory.write("memory/bad.md", b"\xff\xfe")
    memory.sync()
    watcher = Store.open(memory.store.path, read_only=True)
    log = memory.store.path.with_name(memory.store.path.name + "-wal")
    version, generation = watcher.value("PRAGMA data_version"), watcher.generation()
    total, size = memory.store.connection.total_changes(), log.stat().st_size
    calls = len(memory.provider.calls)

    report = memory.sync()
    assert not report.changed
    assert (report.indexed, report.touched, report.unchanged, report.embedded) == (0, 0, 21, 0)
    assert watcher.value("PRAGMA data_version") == version
    assert watcher.generation() == report.generation == generation
    assert (memory.store.connection.total_changes(), log.stat().st_size) == (total, size)
    assert len(memory.provider.calls) == calls
    watcher.close()


def test_a_touched_note_is_read_but_not_cut_again(memory):
    note = memory.write("memory/a.md", "one")
    memory.sync()
    [before] = memory.store.chunks_of("memory/a.md")
    os.utime(note, (1_000_000, 1_000_000))
    report = memory.sync()
    assert (report.indexed, report.touched, report.embedded) == (0, 1, 0)
    assert memory.store.file("memory/a.md").mtime_ns == 10**15
    assert memory.store.chunks_of("memory/a.md") == [before]
    assert not memory.sync().changed


def test_without_cache_vectors_go_with_their_text(memory):
    memory.settings = memory.settings.set("cache.enabled", False, "test")
    note = memory.write("memory/a.md", "one")
    memory.write("memory/b.md", "two")
    memory.sync()
    assert memory.store.counts().cached == 2
    note.unlink()
    memory.sync()
    assert memory.store.counts().cached == 1
    assert memory.store.counts().embedded == 1


def test_chunk_ids_are_the_documented_ones(memory):
    memory.write("MEMORY.md", "hello\nworld\n")
    memory.provider = Counting("text-embedding-3-small")
    memory.sync()
    [row] = memory.store.chunks_of("MEMORY.md")
    assert row.hash == "4a1e67f2fe1d1cc7b31d0ca2ec441da4778203a036a77da10344c85e24ff0f92"
    assert row.chunk_id == "92f845eee376d3ac1fb94ad64844921fd82d534c5efced2f74b4e4ab97742600"
    memory.provider = None
    memory.sync()
    assert memory.store.chunks_of("MEMORY.md")[0].model == "fts-only"


@pytest.mark.parametrize("change", ["tokens", "overlap", "scope", "model", "bytes"])
def test_another_recipe_rebuilds_once(memory, tmp_path, change):
    memory.write("MEMORY.md", text_of(200))
    memory.sync()
    assert not memory.sync().rebuilt
    if change in ("tokens", "overlap"):
        memory.settings = memory.settings.set(f"chunking.{change}", 60, "test")
    elif change == "scope":
        memory.extra = (str(tmp_path),)
    elif change == "model":
        memory.provider = Counting("another-model")
    else:

        class Short(Counting):
            max_input_bytes = 500

        memory.provider = Short()
    report = memory.sync()
    assert report.rebuilt
    assert report.indexed == len(memory.store.indexed())
    assert memory.store.recipe().identity == memory.provider.identity
    assert not memory.sync().changed
    assert integrity(memory.store) == []


def test_a_stopped_sync_keeps_whole_notes_and_says_so(memory):
    for number in range(30):
        memory.write(f"memory/{number:02}.md", text_of(60, f"n{number}"))
    memory.sync(listener=lambda event: memory.cancel.set() if isinstance(event, events.FileIndexed) else None)
    done = memory.store.indexed()
    assert 0 < len(done) < 30
    assert all(row.state == "ok" and row.chunks == len(memory.store.chunks_of(path)) for path, row in done.items())
    assert memory.sync().cancelled
    assert memory.events[-1].error == "stopped"
    memory.cancel.clear()
    assert memory.sync().indexed == 30 - len(done)


def test_a_huge_note_keeps_no_other_from_answering(memory):
    memory.write("MEMORY.md", "- one line of many\n" * 60_000)
    memory.write("memory/small.md", "- a line")
    memory.sync(listener=lambda event: memory.cancel.set() if isinstance(event, events.FileIndexed) else None)
    assert [*memory.store.indexed()] == ["memory/small.md"]
    memory.cancel.clear()
    assert memory.sync().indexed == 1


class Patience(Stop):
    """A stop that comes when it was asked so many times."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def check(self):
        self.times -= 1
        if self.times < 0:
            self.set()
        super().check()


def test_a_stop_is_heard_between_the_chunks_of_a_huge_note(memory):
    memory.write("MEMORY.md", text_of(3000))
    memory.cancel = Patience(60)
    assert memory.sync().cancelled
    assert memory.store.indexed() == {}
    assert memory.provider.texts == []


def test_a_stop_in_a_long_note_keeps_the_vectors_made_so_far(memory):
    memory.write("MEMORY.md", text_of(8000))

    class Stopping(Counting):
        def embed(self, texts, kind):
            if len(self.calls) == 2:
                memory.cancel.set()
            return super().embed(texts, kind)

    memory.provider = Stopping()
    assert memory.sync().cancelled
    assert memory.store.indexed() == {}
    made = memory.store.counts().cached
    assert made == len(memory.provider.texts) > 64
    memory.cancel.clear()
    memory.provider = Counting()
    report = memory.sync()
    assert report.embedded == report.chunks - made


@needs_inodes
def test_a_note_that_cannot_be_read_is_named_and_the_others_go_on(memory, monkeypatch):
    memory.write("memory/a.md", "one")
    bad = memory.write("memory/b.md", "two")
    memory.write("memory/c.md", "three")
    memory.sync()
    # Between the scan and the reading of it, the note becomes something else.
    seen = scan(memory.roots)
    bad.unlink()
    os.mkfifo(bad)
    memory.write("memory/c.md", "changed")
    seen = seen._replace(notes=tuple(f._replace(mtime_ns=f.mtime_ns + 1) for f in seen.notes))
    monkeypatch.setattr("tests.support.index.scan", lambda roots: seen)
    report = memory.sync()
    assert [path for path, _ in report.failed] == ["memory/b.md"]
    rows = [row.rowid for path in memory.store.indexed() for row in memory.store.chunks_of(path)]
    assert sorted(memory.store.texts(rows).values()) == ["changed", "one", "two"]
    row = memory.store.file("memory/b.md")
    assert row.state == "failed"
    assert "regular file" in row.detail
    assert memory.events[-1].failed == 1
    [failure] = memory.told(events.FileFailed)
    assert failure.reason == row.detail
    # The same failure again is neither news nor a write.
    again = memory.sync()
    assert len(again.failed) == 1
    assert not again.changed
    assert memory.told(events.FileFailed) == [failure]


def test_odd_text_is_indexed_with_a_remark(memory):
    memory.write("memory/a.md", b"caf\xe9 \x00 and more")
    memory.write("memory/b.md", "")
    memory.write("memory/c.md", " \n\t\n")
    memory.write("memory/d.md", "\U0001f600" * 900)
    assert memory.sync().failed == ()
    detail = memory.store.file("memory/a.md").detail
    assert "not UTF-8" in detail
    assert "NUL" in detail
    assert memory.store.file("memory/b.md").chunks == memory.store.file("memory/c.md").chunks == 0
    assert memory.store.words.match(["more"])[0].size == 1
    assert not memory.sync().changed
    assert integrity(memory.store) == []


def test_when_the_provider_fails_words_still_work_and_vectors_come_later(memory):
    memory.provider.broken = "the provider is offline"
    for number in range(3):
        memory.write(f"memory/{number}.md", f"note {number}")
    report = memory.sync()
    assert (report.indexed, report.embedded, report.error) == (3, 0, "the provider is offline")
    assert memory.events[-1].error == "the provider is offline"
    assert memory.store.words.match(["note"])[0].size == 3
    assert memory.store.counts().embedded == 0
    # A sync that fails again writes nothing.
    again = memory.sync()
    assert again.error
    assert not again.changed
    memory.provider.broken = ""
    report = memory.sync()
    assert (report.indexed, report.embedded, report.error) == (0, 3, "")
    assert memory.store.counts().embedded == 3
    assert not memory.store.vec0.ready or memory.store.value("SELECT count(*) FROM chunks_vec") == 3


@pytest.mark.parametrize(
    "answer",
    [
        np.zeros((1, 7), np.float32),
        np.zeros((3, 256), np.float32),
        np.zeros((1, 256)),
        np.full((1, 256), np.nan, np.float32),
        np.full((1, 256), np.inf, np.float32),
    ],
    ids=["dims", "count", "type", "nan", "inf"],
)
def test_a_wrong_answer_of_the_provider_is_never_stored(memory, answer):
    memory.provider = Answering(answer)
    memory.write("MEMORY.md", "one")
    assert "scripted answered" in memory.sync().error
    assert memory.store.counts().cached == 0
    assert memory.store.counts().chunks == 1


HEADINGS = (
    "# One|text|## Two ##|text|```|# not a heading|```|### Three||## Four|text|# C#|  # Indented|    # code|"
    "#nothing|# |~~~ python|# no|```|# no|~~~|last"
)


def test_headings_above_a_line():
    above = headings_above(HEADINGS.replace("|", "\n"))
    trails = {line: " ".join(above[line]) for line in (1, 2, 3, 4, 7, 9, 11, 13, 22)}
    assert list(trails.values()) == [
        *("", "One", "One", "One Two", "One Two", "One Two Three", "One Four", "C#", "Indented")
    ]


def test_rows_of_a_cut_table_are_below_the_row_that_names_its_columns():
    above = headings_above("# Hosts\n\n| Device | Address |\n|---|---|\n| router | 10.0.0.1 |\n\nlast")
    assert above[5] == ("Hosts", "| Device | Address |")
    assert above[3] == above[7] == ("Hosts",)


def test_an_index_that_was_cut_by_another_rule_is_cut_anew(memory):
    memory.write("memory/a.md", "# Pump\n" + "It runs.\n" * 120 + "## Valve\n" + "It shuts.\n" * 120)

    def begins():
        memory.sync()
        return [row.start_line for row in memory.store.chunks_of("memory/a.md")]

    memory.settings = memory.settings.set("profile", OLDER_OPENCLAW, "test")
    assert 122 not in begins()
    memory.settings = memory.settings.set("profile", OWN_PROFILE, "test")
    assert 122 in begins()


@pytest.mark.parametrize(
    ("recorded", "tokens", "overlap"),
    [("2026.3.13/default", 400, 80), ("2026.3.13/chunk100-20", 100, 20), ("2026.2.26/default", 400, 80)],
)
def test_the_index_holds_the_rows_of_the_real_program(
    oracle_data, oracle_workspace, tmp_path, recorded, tokens, overlap
):
    def rows(name):
        with (oracle_data / recorded / name).open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    memory = Memory(oracle_workspace, tmp_path / "memory.sqlite")
    sizes = {"chunking.tokens": tokens, "chunking.overlap": overlap}
    memory.settings = memory.settings.update({"profile": OLDER_OPENCLAW, **sizes}, "test")
    memory.sync()
    store = memory.store
    mine = {
        row.chunk_id: (path, row.start_line, row.end_line, row.hash, row.model, store.texts([row.rowid])[row.rowid])
        for path in store.indexed()
        for row in store.chunks_of(path)
    }
    fields = ("path", "start_line", "end_line", "hash", "model", "text")
    theirs = {row["id"]: tuple(row[name] for name in fields) for row in rows("chunks.jsonl")}
    assert mine == theirs
    assert {(row.path, row.hash, row.size) for row in store.indexed().values()} == {
        (row["path"], row["hash"], row["size"]) for row in rows("files.jsonl")
    }
    store.close()


def fresh(memory):
    return compare(scan(memory.roots), memory.store.indexed(), memory.roots)


def test_each_kind_of_difference_is_named(memory):
    for name in ("same", "changed", "deleted", "failed"):
        memory.write(f"memory/{name}.md", name)
    memory.write("memory/picture.png", "no note")
    memory.sync()
    assert fresh(memory).stale == {}
    assert fresh(memory).fresh == 4
    memory.write("memory/changed.md", "has changed")
    memory.write("memory/new.md", "new")
    (memory.folder / "memory/deleted.md").unlink()
    index_write.fail_file(memory.store, "memory/failed.md", "memory", "the disk is on fire")

    now = fresh(memory)
    assert now.fresh == 1
    assert {state.path: state.detail for state in now.pending} == {
        "memory/changed.md": "changed",
        "memory/new.md": "new",
        "memory/deleted.md": "deleted",
    }
    assert [(state.path, state.detail) for state in now.of("failed")] == [("memory/failed.md", "the disk is on fire")]
    assert [left.path for left in now.left_out] == ["memory/picture.png"]

    memory.sync()
    assert fresh(memory).stale == {}


def test_a_note_that_never_rests_has_a_state_of_its_own(memory):
    memory.write("MEMORY.md", "one")
    memory.sync()
    index_write.fail_file(memory.store, "MEMORY.md", "memory", "somebody is writing it", CHANGED)
    [state] = fresh(memory).of("changed while read")
    assert state.detail == "somebody is writing it"
    memory.sync()
    assert fresh(memory).fresh == 1


@needs_inodes
def test_a_folder_that_may_not_be_listed_hides_notes_but_deletes_none():
    with unprivileged_folder() as top:
        memory = Memory(top / "notes", top / "index" / "memory.sqlite")
        memory.write("memory/private/a.md", "one")
        memory.write("memory/b.md", "two")
        memory.sync()
        folder = memory.folder / "memory/private"
        folder.chmod(0)
        try:
            assert memory.sync().removed == 0
            now = fresh(memory)
            assert now.fresh == 1
            [state] = now.of("failed")
            assert state.path == "memory/private/a.md"
            assert "cannot be listed" in state.detail
        finally:
            folder.chmod(0o700)
        assert memory.sync().removed == 0
        assert fresh(memory).fresh == 2
        memory.store.close()


@needs_inodes
def test_a_folder_that_becomes_a_link_while_it_is_looked_at_is_not_followed(memory, tmp_path, monkeypatch):
    memory.write("memory/deep/a.md", "one")
    put(tmp_path, "secret/a.md", text="not for you")
    real = os.open

    def swapped(path, *arguments, **named):
        if str(path).endswith("deep") and not (memory.folder / "memory/deep").is_symlink():
            (memory.folder / "memory/deep").rename(tmp_path / "was")
            (memory.folder / "memory/deep").symlink_to(tmp_path / "secret")
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", swapped)
    seen = scan(memory.roots)
    assert seen.notes == ()
    assert [(left.path, left.rule) for left in seen.left_out] == [("memory/deep", "unreadable")]
    monkeypatch.undo()
    assert [(left.path, left.rule) for left in scan(memory.roots).left_out] == [("memory/deep", "symlink")]


MEGABYTES = 300
RUN = """
import sys
from memory_tui.cli.main import main
code = main(sys.argv[1:])
# Not getrusage: that starts with the peak of the process that started this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"\\npeak {int(peak) // 1024}", file=sys.stderr)
sys.exit(code)
"""


def asked(folder, *words):
    """What the command answers, and the most memory it held, in megabytes."""
    places = ["--workspace", str(folder), "--index", str(folder.parent / "i.sqlite")]
    words = [sys.executable, "-c", RUN, *places, *words, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), int(done.stderr.rsplit("peak ", 1)[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory from /proc")
@pytest.mark.parametrize("files", [500, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(3_600)])])
def test_many_notes_are_indexed_in_bounded_memory_and_then_left_alone(tmp_path, files):
    folder = tmp_path / "notes"
    for number in range(files):
        text = f"# Note {number}\n\nabout gardens, coffee and number {number}\n"
        put(folder, f"memory/{number // 200:03}/note-{number}.md", text=text)
    first, peak = asked(folder, "index")
    assert (first["found"], first["indexed"], first["embedded"], first["failed"]) == (files, files, files, [])
    assert 20 < peak <= MEGABYTES
    again, _ = asked(folder, "index")
    assert (again["unchanged"], again["indexed"], again["embedded"], again["changed"]) == (files, 0, 0, False)
    assert again["generation"] == first["generation"]
    last = files - 1
    answer, _ = asked(folder, "search", f"number {last}")
    assert answer["results"][0]["path"] == f"memory/{last // 200:03}/note-{last}.md"
