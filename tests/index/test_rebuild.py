"""An index that has to be made anew is made beside the old one, which answers until the new one is whole."""

import os

import pytest

from memory_tui import events
from memory_tui.errors import IndexUnavailable
from memory_tui.index.database import SIDES, rebuild_of
from memory_tui.index.store import Store
from memory_tui.search.corpus import Corpus
from tests.support.index import Counting, integrity, run_sql, text_of


@pytest.fixture
def memory(memory):
    for number in range(12):
        memory.write(f"memory/{number}.md", text_of(60, f"n{number}"))
    memory.sync()
    memory.settings = memory.settings.set("chunking.tokens", 60, "test").set("chunking.overlap", 10, "test")
    return memory


def leftovers(memory):
    return sorted(path.name for path in memory.store.path.parent.glob("*.next*"))


def test_the_old_index_answers_until_the_new_one_is_whole(memory):
    reader = Store.open(memory.store.path, read_only=True)
    corpus = Corpus.load(reader)
    old = {path: row.chunks for path, row in memory.store.indexed().items()}
    seen = []

    def look(event):
        if isinstance(event, events.SyncProgress) and event.rebuilding:
            seen.append({path: row.chunks for path, row in reader.indexed().items()})
            assert corpus.refresh(reader) is corpus

    assert memory.sync(listener=look).rebuilt
    assert seen
    assert all(rows == old for rows in seen)
    new = {path: row.chunks for path, row in reader.indexed().items()}
    assert all(new[path] > old[path] for path in old)
    followed, loaded = corpus.refresh(reader), Corpus.load(reader)
    assert (followed.generation, followed.refs.rowids.tolist()) == (loaded.generation, loaded.refs.rowids.tolist())
    assert followed.generation > corpus.generation
    assert reader.problems() == []
    assert integrity(memory.store) == []
    assert leftovers(memory) == []
    assert not memory.sync().changed
    reader.close()


def test_a_rebuild_that_was_stopped_resumes_and_what_was_saved_meanwhile_is_in_it(memory):
    def stop(event):
        if isinstance(event, events.FileIndexed):
            memory.cancel.set()

    assert memory.sync(listener=stop).cancelled
    assert leftovers(memory)
    assert memory.store.recipe().chunk_tokens == 400
    made = len(memory.provider.texts)
    memory.cancel.clear()
    memory.write("memory/0.md", "saved meanwhile")
    report = memory.sync()
    assert 0 < report.indexed < 12
    assert report.embedded < made + report.chunks
    assert memory.store.recipe().chunk_tokens == 60
    assert memory.store.words.match(["meanwhile"])[0].size == 1
    assert leftovers(memory) == []


@pytest.mark.parametrize("rubbish", ["empty", "zeros", "cut", "spoiled"])
def test_rubbish_in_the_place_of_the_new_index_is_no_obstacle(memory, rubbish):
    whole = memory.store.path.read_bytes()
    spoiled = whole[:100] + b"\xff" * 9000
    what = {"empty": b"", "zeros": bytes(9000), "cut": whole[:5000], "spoiled": spoiled}[rubbish]
    for side in SIDES:
        rebuild_of(memory.store.path).with_name(f"{memory.store.path.name}.next{side}").write_bytes(what)
    assert memory.sync().rebuilt
    assert leftovers(memory) == []
    assert memory.notices == []


def identity(path):
    """What of a file changes when somebody writes it or puts another in its place; reading it changes the rest."""
    status = path.lstat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


@pytest.mark.parametrize("foreign", ["text", "database", "folder", "link", "pipe"])
def test_what_is_not_ours_in_the_place_of_the_new_index_stays(memory, tmp_path, foreign):
    beside_it, target = rebuild_of(memory.store.path), tmp_path / "theirs"
    target.write_text("my shopping list\n" * 900)
    match foreign:
        case "text":
            beside_it.write_bytes(target.read_bytes())
        case "database":
            run_sql(beside_it, "CREATE TABLE recipes(name)")
        case "folder":
            beside_it.mkdir()
        case "link":
            beside_it.symlink_to(target)
        case "pipe":
            os.mkfifo(beside_it)
    before = identity(beside_it), target.read_bytes()
    with pytest.raises(IndexUnavailable, match=r"not an index of memory-tui|another program|a folder|a link or a pipe"):
        memory.sync()
    assert (identity(beside_it), target.read_bytes()) == before


def test_a_new_index_that_is_not_whole_is_never_published(memory, monkeypatch):
    monkeypatch.setattr(Store, "problems", lambda store: ["page 7 is never used"])
    before = memory.store.generation()
    with pytest.raises(IndexUnavailable, match="page 7"):
        memory.sync()
    assert memory.store.generation() == before
    assert leftovers(memory) == []


def test_while_the_provider_fails_the_old_index_stays_and_follows_the_disk(memory):
    memory.provider.broken = "offline"
    memory.write("memory/new.md", "a zebra")
    assert memory.sync().postponed == "offline"
    assert memory.store.recipe().chunk_tokens == 400
    assert memory.store.words.match(["zebra"])[0].size == 1
    memory.provider = Counting()
    assert memory.sync().rebuilt
    assert memory.store.recipe().chunk_tokens == 60
    assert memory.store.counts().embedded == memory.store.counts().chunks
