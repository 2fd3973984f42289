"""What the engine tells of its index, and how it is told to keep it: for the screens that show and steer that."""

import datetime as dt
import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from memory_tui import events
from memory_tui.engine.engine import Engine
from memory_tui.errors import IndexUnavailable
from memory_tui.explain.wording import explain
from memory_tui.index import connections, database, index_write
from memory_tui.index.database import rebuild_of
from memory_tui.index.store import Store
from tests.support.index import run_sql
from tests.support.waiting import LONG
from tests.support.workspace import options_in, options_of, put_all, synced


@pytest.fixture
def workspace(tmp_path):
    texts = {f"memory/{number}.md": f"note {number} about gardens\n" * 30 for number in range(12)}
    return put_all(tmp_path / "notes", texts)


@pytest.fixture
def options(workspace, tmp_path):
    return options_of(workspace, tmp_path / "i" / "index.sqlite", ("sync.watchDebounceMs", "50"), provider="scripted")


@pytest.fixture
def engine(options, heard):
    with Engine.open(options, heard) as opened:
        yield opened


def with_changes(options, *changes):
    return options_of(options.workspace, options.index, *options.changes, *changes, provider=options.provider)


class Gate:
    """Holds the writer inside a sync until it is opened."""

    def __init__(self, engine, monkeypatch):
        self.reached, self.open = threading.Event(), threading.Event()
        real = index_write.replace_files

        def held(*arguments):
            self.reached.set()
            assert self.open.wait(LONG)
            real(*arguments)

        monkeypatch.setattr(index_write, "replace_files", held)
        engine.index.request_sync()
        assert self.reached.wait(LONG)


def test_a_status_before_there_is_an_index_makes_none(engine, options):
    status = engine.status()
    assert (status.chunks, status.db_bytes, status.freshness.total) == (0, 0, 12)
    assert {item.detail for item in status.freshness.pending} == {"new"}
    assert len(engine.notes.files()) == 12
    assert not Path(options.index or "").exists()


def test_freshness_knows_how_the_index_was_made(engine, options):
    engine.index.sync()
    engine.close()
    with Engine.open(with_changes(options, ("chunking.tokens", "50"), ("chunking.overlap", "10"))) as other:
        fresh = other.status().freshness
        assert fresh.fresh == 0
        assert fresh.rebuild == ("chunk tokens: 400 is now 50", "overlap: 80 is now 10")
        assert any(notice.code == "rebuild" for notice in other.status().notices)
        assert other.index.sync().rebuilt
        assert other.status().freshness.rebuild == ()
        assert other.status().freshness.fresh == 12


def test_indexing_is_paused_and_goes_on(engine, heard, monkeypatch):
    gate = Gate(engine, monkeypatch)
    engine.index.pause()
    gate.open.set()
    assert engine.index.writer.wait_idle(LONG)
    assert engine.status().paused
    with pytest.raises(IndexUnavailable, match="paused"):
        engine.index.sync()
    engine.index.resume()
    heard.wait_for(lambda e: isinstance(e, events.IndexingPaused) and not e.on)
    assert engine.index.writer.wait_idle(LONG)
    assert engine.status().freshness.fresh == 12


KEEP = """
import sys
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
engine = Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted"))
engine.start()
assert engine.index.writer.wait_idle(60)
print("keeping", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def keeper(workspace, tmp_path):
    words = [sys.executable, "-c", KEEP, str(workspace), str(tmp_path / "i" / "index.sqlite")]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "keeping\n"
    yield child
    child.kill()
    child.communicate()


def named(pid):
    return lambda event: isinstance(event, events.KeeperChanged) and event.pid == pid


def test_a_second_app_reads_and_takes_over_when_the_first_ends(engine, heard, workspace, keeper):
    engine.start()
    heard.wait_for(named(keeper.pid))
    assert engine.index.writer.wait_idle(LONG)
    status = engine.status()
    assert (status.keeper.pid, status.keeper.here) == (keeper.pid, False)
    assert status.freshness.fresh == 12
    assert not [event for event in heard.events if isinstance(event, events.SyncStarted)]
    keeper.kill()
    keeper.wait()
    (workspace / "memory" / "new.md").write_text("a zebra")
    heard.wait_for(named(os.getpid()))
    heard.wait_for(lambda e: isinstance(e, events.FileIndexed) and e.path == "memory/new.md")
    assert engine.index.writer.wait_idle(LONG)
    status = engine.status()
    assert status.keeper.here


def test_a_search_names_at_once_what_has_changed_and_waits_for_nothing(engine, workspace, monkeypatch):
    monkeypatch.setattr("memory_tui.engine.index._YOUNG_SECONDS", 0.0)
    engine.index.sync()
    (workspace / "memory" / "1.md").write_text("a zebra\n")
    (workspace / "memory" / "2.md").unlink()
    (workspace / "memory" / "photo.png").write_bytes(b"x")
    trace = engine.search.search("gardens")
    told = {item.path: (item.state, item.detail) for item in trace.evidence.unsearchable}
    assert told["memory/1.md"] == ("pending", "changed")
    assert told["memory/2.md"] == ("pending", "deleted")
    assert told["memory/photo.png"][0] == "excluded"
    # It was also asked for in the background.
    assert engine.index.writer.wait_idle(LONG)
    assert engine.search.search("zebra").recalled[0].chunk.path == "memory/1.md"


def test_the_first_question_begins_the_first_index(engine):
    with pytest.raises(IndexUnavailable, match="Nothing is indexed yet"):
        engine.search.search("gardens")
    assert engine.index.writer.wait_idle(LONG)
    assert engine.search.search("gardens").recalled


@pytest.mark.parametrize(
    ("reason", "changes"),
    [("interval", (("sync.watch", "off"), ("sync.onSearch", "off"), ("sync.intervalMinutes", "1"))), ("sweep", ())],
)
def test_the_clock_finds_what_no_watcher_announced(options, heard, workspace, monkeypatch, reason, changes):
    monkeypatch.setattr("memory_tui.engine.index._MINUTE", 0.01)
    monkeypatch.setattr("memory_tui.engine.index.SWEEP_SECONDS", 0.1)
    monkeypatch.setattr("memory_tui.index.watch.Watcher._announce", lambda watcher: None)
    with Engine.open(with_changes(options, *changes), heard) as engine:
        engine.start()
        assert engine.index.writer.wait_idle(LONG)
        (workspace / "memory" / "late.md").write_text("a zebra")
        heard.wait_for(lambda e: isinstance(e, events.FileIndexed) and e.path == "memory/late.md")
        assert any(isinstance(e, events.SyncStarted) and e.reason == reason for e in heard.events)


def test_with_every_trigger_off_nothing_is_indexed_by_itself(options, heard):
    off = tuple((key, "off") for key in ("sync.watch", "sync.onSearch", "sync.onSessionStart"))
    with synced(with_changes(options, *off), heard) as engine:
        (engine.plan.roots.workspace / "memory" / "late.md").write_text("a zebra")
        engine.start()
        engine.search.search("zebra")
        assert engine.index.writer.wait_idle(LONG)
        assert [item.path for item in engine.status().freshness.pending] == ["memory/late.md"]


def test_what_is_saved_while_indexing_is_paused_is_not_fresh(engine, heard, workspace):
    engine.start()
    heard.wait_for(lambda event: isinstance(event, events.SyncFinished))
    assert engine.index.writer.wait_idle(LONG)
    engine.index.pause()
    (workspace / "memory" / "1.md").write_text("saved meanwhile")
    heard.wait_for(lambda event: isinstance(event, events.NotesChanged))
    assert [item.path for item in engine.status().freshness.pending] == ["memory/1.md"]
    engine.index.resume()
    heard.wait_for(lambda event: isinstance(event, events.FileIndexed) and event.path == "memory/1.md")


def test_what_another_program_saved_is_not_fresh_while_the_watcher_waits_for_it_to_rest(options, heard, workspace):
    with Engine.open(with_changes(options, ("sync.watchDebounceMs", "300")), heard) as engine:
        engine.start()
        heard.wait_for(lambda event: isinstance(event, events.SyncFinished) and event.reason == "watch")
        heard.events.clear()
        (workspace / "memory" / "1.md").write_text("saved by another program")
        read = heard.wait_for(lambda event: isinstance(event, events.SyncStarted))
        before = heard.events[: heard.events.index(read)]
        assert any(isinstance(event, events.NotesChanged) for event in before)


def test_a_reader_is_told_what_another_process_indexed(engine, options, heard, workspace, keeper):
    engine.start()
    heard.wait_for(named(keeper.pid))
    assert engine.status().chunks == 12
    (workspace / "memory" / "new.md").write_text("a zebra")
    heard.wait_for(lambda event: isinstance(event, events.IndexChanged) and engine.status().chunks == 13)
    assert engine.search.search("zebra").recalled[0].chunk.path == "memory/new.md"
    # An index that was deleted is another one, too, whoever makes it again.
    count = len(heard.events)
    Path(options.index or "").unlink()
    heard.wait_for(lambda event: isinstance(event, events.IndexChanged) and len(heard.events) > count)
    heard.wait_for(lambda event: isinstance(event, events.IndexChanged) and engine.status().chunks == 13)


def test_the_keeper_fills_an_empty_index_that_another_process_made(options, heard):
    index = Path(options.index or "")
    with Engine.open(with_changes(options, ("sync.watch", "off")), heard) as engine:
        engine.start()
        heard.wait_for(lambda event: isinstance(event, events.SyncFinished))
        assert engine.index.writer.wait_idle(LONG)
        other = index.with_name("other")
        Store.open(other).close()
        count = len(heard.events)
        for side in ("-wal", "-shm"):
            index.with_name(index.name + side).unlink(missing_ok=True)
        other.replace(index)
        heard.wait_for(lambda _: any(isinstance(event, events.FileIndexed) for event in heard.events[count:]))
        assert engine.index.writer.wait_idle(LONG)
        assert engine.status().chunks == 12


def test_a_save_is_indexed_although_the_index_could_not_be_opened_before(engine, options, heard, workspace):
    index = Path(options.index or "")
    index.parent.mkdir()
    index.write_text("another program's")
    engine.start()
    heard.wait_for(lambda event: isinstance(event, events.Noticed) and "is not an index" in event.text)
    assert engine.index.writer.wait_idle(LONG)
    index.unlink()
    (workspace / "memory" / "new.md").write_text("a zebra")
    heard.wait_for(lambda event: isinstance(event, events.FileIndexed) and event.path == "memory/new.md")


def test_an_answer_is_known_to_be_old_although_the_status_was_read_since(engine, options, heard, workspace):
    with synced(options) as writer:
        engine.start()
        # On a loaded machine it would index the notes before the other one does.
        engine.index.watcher.switch(False)
        assert engine.search.gather("gardens").texts
        assert engine.index.writer.wait_idle(LONG)
        for number in range(3):
            (workspace / "memory" / f"new{number}.md").write_text("a zebra")
            count = len([event for event in heard.events if isinstance(event, events.IndexChanged)])
            writer.index.sync()
            # Whoever reads the status knows of the change; whoever asked before does not.
            assert engine.status().chunks == 13 + number
            heard.wait_for(lambda _: sum(isinstance(e, events.IndexChanged) for e in heard.events) > count)  # noqa: B023


def caught_up(options):
    """Whether a command that asks once found something to write."""
    heard: list[events.Event] = []
    with Engine.open(replace(options, once=True), heard.append) as engine:
        engine.index.catch_up()
    return any(isinstance(event, events.SyncFinished) for event in heard)


def test_a_command_writes_nothing_where_nothing_changed(options, tmp_path):
    assert caught_up(options)
    folder = tmp_path / "i"
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}
    assert not caught_up(options)
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in before} == before


def test_a_command_writes_nothing_beside_an_app_that_has_done_it(options, keeper, heard):
    with Engine.open(options, heard) as engine:
        engine.index.sync()
    assert not caught_up(options)


def damaged(_workspace, index):
    data = bytearray(index.read_bytes())
    data[-100] ^= 1
    index.write_bytes(data)


def without_a_vector(_workspace, index):
    with closing(apsw.Connection(str(index))) as connection:
        database.load_vec0(connection)
        connection.execute("UPDATE chunks SET embedding_id = NULL WHERE occurrence = 0; DELETE FROM chunks_vec")
    connections.mark_path(index).unlink()
    connections.mark_closed(index)


HAPPENS = {
    "edited": lambda memory, _: (memory / "3.md").write_text("something else\n"),
    "added": lambda memory, _: (memory / "new.md").write_text("something new\n"),
    "removed": lambda memory, _: (memory / "3.md").unlink(),
    "killed": lambda _, index: connections.mark_path(index).unlink(),
    "damaged": damaged,
    "half made": lambda _, index: rebuild_of(index).write_bytes(b""),
    "without a vector": without_a_vector,
}


@pytest.mark.parametrize("happens", HAPPENS)
def test_a_command_catches_up_where_anything_is_to_do(options, workspace, tmp_path, happens):
    assert caught_up(options)
    HAPPENS[happens](workspace / "memory", tmp_path / "i" / "index.sqlite")
    assert caught_up(options)
    assert not caught_up(options)


def test_an_index_of_an_older_version_is_made_anew_by_who_reads_it(options):
    """Its vectors may have cost money: it is not moved aside, and none is asked for again."""
    index = Path(options.index or "")
    with Engine.open(options) as first:
        first.index.sync()
    run_sql(index, "DROP TABLE annotations; PRAGMA user_version = 5")
    heard: list[events.Event] = []
    with Engine.open(with_changes(options, ("sync.onSearch", "false")), heard.append) as later:
        assert later.search.search("gardens").recalled
        [finished] = [event for event in heard if isinstance(event, events.SyncFinished)]
        assert (finished.indexed > 0, finished.embedded) == (True, 0)
        assert not [notice for notice in later.notices() if notice.code == "index"]
    assert not list(index.parent.glob("*.damaged-*"))


def test_a_question_without_an_index_run_does_not_open_the_index_to_write(options):
    with Engine.open(options) as first:
        first.index.sync()
    with Engine.open(with_changes(options, ("sync.onSearch", "false"))) as later:
        later.index.catch_up()
        assert later.search.search("gardens").recalled
        assert not later.index.opener.opened


def test_a_sweep_that_writes_nothing_tells_of_what_differs_otherwise(engine, heard):
    engine.index.sync()
    engine.index.sync(reason="sweep")
    heard.events.clear()
    engine.index.sync(reason="sweep")
    assert not any(isinstance(event, events.NotesChanged) for event in heard.events)
    (engine.plan.roots.workspace / "memory" / "left.md").symlink_to(engine.plan.roots.workspace / "memory" / "0.md")
    engine.index.sync(reason="sweep")
    assert any(isinstance(event, events.NotesChanged) for event in heard.events)


NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC)
INVALID = ("memory/2026-13-40.md", "memory/2026-02-30.md", "memory/0026-01-01.md", "memory/topics/2026-02-31.md")
FUTURE = "memory/2199-01-01.md"
TODAY = "memory/2026-03-20.md"
SLUG, NESTED = "memory/2026-01-02-slug.md", "memory/topics/deep/2026-01-02.md"


@pytest.fixture
def notes(tmp_path):
    for path in (*INVALID, FUTURE, TODAY, SLUG, NESTED, "MEMORY.md"):
        folder = put_all(tmp_path / "notes", {path: f"# Note\n\n- the router of {path} is an Omada\n"})
        os.utime(folder / path, (NOW.timestamp(), NOW.timestamp()))
    return folder


def opened(notes, tmp_path, profile):
    changes = (f"profile={profile}", "query.hybrid.temporalDecay.enabled=true", "query.maxResults=50")
    return synced(options_in(tmp_path, *changes, provider="scripted", now=NOW.timestamp()))


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_impossible_dates_are_evergreen_and_future_ones_get_no_boost(tmp_path, notes, profile):
    with opened(notes, tmp_path, profile) as engine:
        trace = engine.search.search("omada router")
        found = {one.chunk.path: one for one in [*trace.recalled, *trace.lost]}
    assert len(found) == 9
    assert found["MEMORY.md"].age_basis == "evergreen"
    for path in INVALID:
        # The original takes the time of the file where the name has the shape of a daily log and is no day.
        daily = path.count("/") == 1 and profile != "recommended"
        assert found[path].age_basis == ("mtime" if daily else "evergreen"), path
    ahead, today = found[FUTURE], found[TODAY]
    assert ahead.age_days < -60_000
    assert ahead.age_factor == pytest.approx(1.0)
    assert ahead.age_points <= today.age_points + 1e-3
    if profile == "recommended":
        # OpenClaw reads an age from `memory/YYYY-MM-DD.md` alone; ours from a name that begins with the day.
        assert found[SLUG].age_basis == found[NESTED].age_basis == "name"
        assert found[SLUG].age_days == found[NESTED].age_days
        assert found[SLUG].age_points < today.age_points


def test_an_age_is_never_shown_below_nothing(tmp_path, notes):
    with opened(notes, tmp_path, "recommended") as engine:
        trace = engine.search.search("omada router")
        one = next(one for one in [*trace.recalled, *trace.lost] if one.chunk.path == FUTURE)
        detail = next(line.detail for line in explain(one, trace) if line.label == "recency")
    assert detail.startswith("1.000 x 0.02/1.02  dated 63,1")
    assert " d ahead, so not aged" in detail
