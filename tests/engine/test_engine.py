"""The engine that front ends hold: fresh answers, honest empty ones, background work, and a quick end."""

import datetime as dt
import random
import threading

import pytest

from memory_tui import events
from memory_tui.engine.engine import Engine
from memory_tui.errors import PathRefused
from memory_tui.explain import trace_json
from memory_tui.index import index_write
from memory_tui.plan import Options
from tests.support.waiting import LONG
from tests.support.workspace import FACTS, options_in, put_all, synced


@pytest.fixture
def workspace(tmp_path):
    return put_all(tmp_path / "notes", FACTS)


@pytest.fixture
def engine(workspace, tmp_path, heard):
    options = options_in(tmp_path, "sync.watchDebounceMs=50", provider="scripted", now=1_795_000_000.0)
    with Engine.open(options, heard) as opened:
        yield opened


def recalled(engine, query):
    return [hit.chunk.path for hit in engine.search.search(query).recalled]


def test_a_saved_file_is_searchable_without_being_asked(engine, workspace, heard):
    engine.start()
    heard.wait_for(lambda e: isinstance(e, events.WatchChanged) and e.on)
    heard.wait_for(lambda e: isinstance(e, events.SyncFinished))
    engine.index.writer.wait_idle(LONG)
    (workspace / "memory" / "new.md").write_text("quokka sighted near the harbour\n")
    heard.wait_for(lambda e: isinstance(e, events.FileIndexed) and e.path == "memory/new.md")
    assert engine.index.writer.wait_idle(LONG)
    assert recalled(engine, "quokka")[0] == "memory/new.md"
    assert engine.index.watcher.on
    engine.index.watcher.switch(False)
    assert not engine.index.watcher.on


def test_files_have_states_days_and_chunks(engine, workspace):
    engine.index.sync()
    (workspace / "memory" / "late.md").write_text("not yet indexed")
    rows = {row.path: row for row in engine.notes.files()}
    assert rows["memory/2026-11-18.md"].day == dt.date(2026, 11, 18)
    assert (rows["MEMORY.md"].state, rows["MEMORY.md"].chunks) == ("fresh", 1)
    assert (rows["memory/late.md"].state, rows["memory/late.md"].detail) == ("pending", "new")
    assert [ref.citation for ref in engine.search.chunks_of("MEMORY.md")] == ["MEMORY.md#L1-L3"]
    assert engine.notes.read("MEMORY.md").text == "# Facts\n- Router: Omada ER605\n"
    with pytest.raises(PathRefused):
        engine.notes.read("../elsewhere.md")


def test_searches_go_on_while_files_are_indexed(engine, workspace, monkeypatch):
    real, writing, answered = index_write.replace_files, threading.Semaphore(0), threading.Semaphore(0)

    def held(*arguments):
        real(*arguments)
        writing.release()
        assert answered.acquire(timeout=LONG)

    engine.index.sync()
    for i in range(100):
        (workspace / "memory" / f"note-{i}.md").write_text(f"note {i} about gardens and coffee\n" * 20)
    monkeypatch.setattr(index_write, "replace_files", held)
    engine.index.request_sync()
    for _ in range(3):
        assert writing.acquire(timeout=LONG)
        assert recalled(engine, "omada")[0] == "MEMORY.md"
        assert not engine.index.writer.wait_idle(0)
        answered.release()
    answered.release(100)
    while not engine.index.writer.wait_idle(0):
        assert recalled(engine, "omada")[0] == "MEMORY.md"
    assert engine.search.search("gardens").funnel["chunks"] > 100


def test_closing_in_the_middle_of_a_sync_gives_it_up_and_loses_nothing(workspace, tmp_path, heard):
    for i in range(300):
        (workspace / "memory" / f"note-{i}.md").write_text(f"note {i} about gardens and coffee\n" * 40)
    options = Options(workspace=str(workspace), index=str(tmp_path / "index.sqlite"), provider="scripted")
    engine = Engine.open(options, heard)
    engine.start()
    heard.wait_for(lambda e: isinstance(e, events.FileIndexed))
    engine.close()
    with Engine.open(options) as again:
        report = again.index.sync()
        assert report.found == 302
        assert report.indexed < 302, "what was indexed before is not indexed again"
        assert again.status().freshness.fresh == 302


QUERIES = ("garden roses", "oak", "who planted the tomato beside the garden", "zebra")
PROFILES = ("recommended", "openclaw-2026.3")


@pytest.fixture
def gardens(tmp_path):
    some = random.Random(4)
    for number in range(150):
        words = " ".join(some.choices(["rose", "roses", "oak", "garden", "tomato", "planted", f"word{number}"], k=40))
        put_all(tmp_path / "notes", {f"memory/{number}.md": f"# Note {number}\n{words}\n"})
    with synced(options_in(tmp_path, "sync.onSearch=false", provider="builtin", now=1_795_000_000.0)) as opened:
        yield opened


def record(trace):
    found = trace_json.trace(trace)
    del found["timings"]
    return found


@pytest.mark.parametrize("mmr", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_answer_is_that_of_all_texts(gardens, profile, mmr):
    settings = gardens.plan.with_profile(profile).set("query.hybrid.mmr.enabled", mmr, "test")
    for query in QUERIES:
        trace = gardens.search.search(query, settings)
        assert record(trace) == record(gardens.search.rank(gardens.search.gather(query), settings))
        assert len(trace.evidence.texts) >= len(trace.lost)


def test_a_closed_engine_still_tells_who_lost(gardens):
    trace = gardens.search.search("garden roses", gardens.plan.settings)
    gardens.close()
    assert [one.chunk.path for one in trace.lost]
