"""The chunks in memory follow the index, and score alike by every way."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_tui.errors import ProviderError
from memory_tui.index import index_write
from memory_tui.index.abilities import UNUSED
from memory_tui.index.embedding import Embedder, EmbeddingMode
from memory_tui.index.store import Store
from memory_tui.providers.base import Identity
from memory_tui.providers.builtin import hash_vector
from memory_tui.search.corpus import Corpus, cosines, cosines_of_nearest
from tests.support.index import Counting, Memory, text_of
from tests.support.waiting import LONG

WORDS = ["garden", "rose", "bread", "sourdough", "router", "咖啡", "!!!", ""]


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    yield memory
    memory.store.close()


def state(corpus):
    """Everything a corpus tells, by chunk; the order of files is not part of it."""
    return [
        (
            int(corpus.rowids[row]),
            corpus.refs[row].id,
            corpus.refs[row].path,
            corpus.files.sources[corpus.file_of[row]],
            float(corpus.files.mtimes_ns[corpus.file_of[row]]),
            corpus.refs[row].start_line,
            corpus.refs[row].end_line,
            bool(corpus.embedded[row]),
            bool(corpus.has_vector[row]),
            corpus.matrix[row].tobytes(),
        )
        for row in range(len(corpus))
    ]


def by_chunk(store, match):
    rowids, bm25 = match
    ids = {row.rowid: row.chunk_id for path in store.known() for row in store.chunks_of(path)}
    return sorted((ids[rowid], round(score, 9)) for rowid, score in zip(rowids.tolist(), bm25.tolist(), strict=True))


note = st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 80))
step = st.one_of(
    note,
    st.tuples(st.just("delete"), st.sampled_from("abcd")),
    st.tuples(st.just("touch"), st.sampled_from("abcd")),
    st.sampled_from([("force",), ("offline",), ("online",), ("look",)]),
)


@settings(max_examples=20, deadline=None)
@example([("offline",), ("a", ["garden"], 0), ("look",), ("online",)])
@given(st.lists(step, max_size=12))
def test_a_corpus_that_followed_equals_one_that_was_loaded(steps):
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        memory = Memory(top / "notes", top / "memory.sqlite")
        memory.sync()
        corpus = Corpus.load(memory.store)
        seen = [(corpus, state(corpus))]
        for number, (what, *rest) in enumerate(steps):
            if what == "look":
                corpus = corpus.refresh(memory.store)
                seen.append((corpus, state(corpus)))
                continue
            if what in ("offline", "online"):
                memory.provider.broken = "offline" if what == "offline" else ""
            elif what == "delete":
                (memory.folder / f"memory/{rest[0]}.md").unlink(missing_ok=True)
            elif what == "touch":
                path = memory.folder / f"memory/{rest[0]}.md"
                if path.exists():
                    os.utime(path, (number, number))
            elif what != "force":
                path = memory.write(f"memory/{what}.md", " ".join(rest[0]) + "\n" + text_of(rest[1], what))
                os.utime(path, (1000 + number, 1000 + number))
            memory.sync(force=what == "force")

        corpus = corpus.refresh(memory.store)
        loaded = Corpus.load(memory.store)
        assert corpus.generation == loaded.generation
        assert state(corpus) == state(loaded)
        # What others still hold has not changed under them.
        for old, before in seen:
            assert state(old) == before
        # An index that was edited all along answers like one made in one go.
        fresh = Memory(memory.folder, top / "fresh.sqlite")
        memory.provider.broken = ""
        memory.sync()
        fresh.sync()
        for query in (["garden", "rose"], ["line"], ["咖啡", "bread"]):
            for form in ("plain", "stemmed"):
                old_answer, new_answer = (
                    by_chunk(s, s.words.match(query, form, "any")) for s in (memory.store, fresh.store)
                )
                assert old_answer == new_answer
        memory.store.close()
        fresh.store.close()


def test_nothing_changed_is_the_same_corpus(memory):
    memory.write("MEMORY.md", "one")
    memory.sync()
    corpus = Corpus.load(memory.store)
    assert corpus.refresh(memory.store) is corpus


def test_readers_of_an_old_corpus_see_it_unchanged_while_it_grows(memory):
    for number in range(50):
        memory.write(f"memory/{number:02}.md", f"note {number} about rose number {number}")
    memory.sync()
    corpus = newest = Corpus.load(memory.store)
    query = hash_vector("rose")
    expected = cosines(corpus, query)
    wrong = 0
    stop, read = threading.Event(), threading.Semaphore(0)

    def reading() -> None:
        nonlocal wrong
        while not stop.is_set():
            wrong += not np.array_equal(cosines(corpus, query), expected)
            read.release()
            time.sleep(0)

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for number in range(15):
            memory.write(f"memory/{45 + number}.md", f"rose {number} changed")
            memory.sync()
            newest = newest.refresh(memory.store)
            # Once more than while it grew: the reader that was in the middle of it is done.
            while read.acquire(blocking=False):
                pass
            assert read.acquire(timeout=LONG)
    finally:
        stop.set()
        thread.join(LONG)
    assert wrong == 0
    assert state(newest) == state(Corpus.load(memory.store))


def test_vectors_that_come_late_are_put_in_place(memory):
    memory.write("memory/a.md", "one")
    memory.sync()
    memory.provider.broken = "offline"
    memory.write("memory/b.md", "two")
    memory.write("memory/c.md", "!!!")
    memory.sync()
    without = Corpus.load(memory.store)
    assert without.embedded.sum() == 1
    (memory.folder / "memory/a.md").unlink()
    memory.provider.broken = ""
    memory.sync()
    after = without.refresh(memory.store)
    assert state(after) == state(Corpus.load(memory.store))
    assert after.embedded.tolist() == [True, True]
    assert cosines(without, hash_vector("two")).tolist() == [0, 0, 0]


def test_two_heirs_of_one_corpus_do_not_disturb_each_other(memory):
    memory.write("memory/a.md", "one")
    memory.sync()
    parent = Corpus.load(memory.store)
    memory.write("memory/b.md", "two")
    memory.sync()
    first = parent.refresh(memory.store)
    before = state(first)
    memory.write("memory/c.md", "three")
    memory.sync()
    second = parent.refresh(memory.store)
    assert state(first) == before
    assert state(second) == state(first.refresh(memory.store)) == state(Corpus.load(memory.store))


def test_another_process_is_followed(memory):
    memory.write("memory/a.md", "one")
    memory.sync()
    reader = Store.open(memory.store.path, read_only=True)
    corpus = Corpus.load(reader)
    memory.write("memory/b.md", "two")
    memory.sync()
    corpus = corpus.refresh(reader)
    assert sorted(corpus.refs[row].path for row in range(len(corpus))) == ["memory/a.md", "memory/b.md"]
    reader.close()


def test_an_index_made_anew_is_noticed(memory, tmp_path):
    memory.write("memory/a.md", "one")
    memory.sync()
    corpus = Corpus.load(memory.store)
    other = Memory(tmp_path / "notes", tmp_path / "other.sqlite")
    other.write("memory/b.md", "two")
    other.sync()
    assert state(corpus.refresh(other.store)) == state(Corpus.load(other.store))
    other.store.close()


def test_rows_are_found_by_rowid(memory):
    for number in range(5):
        memory.write(f"memory/{number}.md", f"note {number}")
    memory.sync()
    corpus = Corpus.load(memory.store)
    memory.write("memory/2.md", "changed")
    memory.sync()
    newer = corpus.refresh(memory.store)
    gone = set(corpus.rowids.tolist()) - set(newer.rowids.tolist())
    assert newer.rows_of(list(gone)).tolist() == [-1]
    assert newer.rows_of(newer.rowids).tolist() == list(range(5))
    assert newer.rows_of([0, 10**9]).tolist() == [-1, -1]
    assert Corpus.load(memory.store).rows_of([]).tolist() == []


def test_an_empty_index_is_a_corpus_of_nothing(memory):
    memory.sync()
    corpus = Corpus.load(memory.store)
    assert len(corpus) == 0
    assert corpus.rows_of([1]).tolist() == [-1]
    assert cosines(corpus, hash_vector("rose")).shape == (0,)
    memory.write("MEMORY.md", "rose")
    memory.sync()
    corpus = corpus.refresh(memory.store)
    assert cosines(corpus, hash_vector("rose")).tolist() == pytest.approx([1])


# --- cosines -------------------------------------------------------------------------------------------------------


@pytest.fixture
def roses(memory):
    generator = np.random.default_rng(7)
    for number in range(300):
        words = " ".join(generator.choice([f"word{i}" for i in range(40)], 12))
        memory.write(f"memory/{number}.md", words)
    memory.write("memory/zero.md", "!!!")
    memory.sync()
    return memory


def test_cosines_are_those_of_the_definition(roses):
    corpus = Corpus.load(roses.store)
    query = hash_vector("word1 word2 word3")
    scores = cosines(corpus, query)
    assert scores.dtype == np.float32
    for row in range(0, len(corpus), 37):
        text = roses.store.texts([corpus.rowids[row]])[int(corpus.rowids[row])]
        assert scores[row] == pytest.approx(float(hash_vector(text) @ query), abs=1e-6)


@pytest.mark.parametrize("vectors", [True, False])
def test_vec0_and_memory_give_the_same_ids_and_scores(roses, vectors):
    if not roses.store.vec0.ready:
        pytest.skip("sqlite-vec does not work here")
    exact = cosines(Corpus.load(roses.store), hash_vector("word1 word2 word3"))
    corpus = Corpus.load(roses.store, vectors=vectors)
    zero = [row for row in range(len(corpus)) if corpus.refs[row].path == "memory/zero.md"]
    far = int(np.argmin(exact))
    near, _ = cosines_of_nearest(roses.store, corpus, hash_vector("word1 word2 word3"), 24, also=[far, *zero])
    known = ~np.isneginf(near)
    assert known.sum() == 26
    assert np.abs(near - exact)[known].max() <= 1e-6
    assert near[zero] == [0]
    best = np.flatnonzero(exact >= np.sort(exact)[-24])
    assert set(best) <= set(np.flatnonzero(known)) or len(best) > 24


def test_vec0_after_edits_holds_what_the_corpus_holds(roses):
    if not roses.store.vec0.ready:
        pytest.skip("sqlite-vec does not work here")
    for number in range(0, 300, 3):
        (roses.folder / f"memory/{number}.md").unlink()
    for number in range(1, 300, 3):
        roses.write(f"memory/{number}.md", f"word1 and more {number}")
    roses.sync()
    corpus = Corpus.load(roses.store)
    every, _ = cosines_of_nearest(roses.store, corpus, hash_vector("word1"), 4096 * 10)
    assert np.isneginf(every).sum() == 1
    known = ~np.isneginf(every)
    assert np.abs(every - cosines(corpus, hash_vector("word1")))[known].max() <= 1e-6


def test_without_vec0_the_answers_are_the_same(roses, tmp_path):
    other = Memory(roses.folder, tmp_path / "other.sqlite", vec0=UNUSED)
    other.sync()
    mine, theirs = Corpus.load(roses.store), Corpus.load(other.store)
    query = hash_vector("word1 word2")

    def scores(corpus):
        return {corpus.refs[row].id: score for row, score in enumerate(cosines(corpus, query).tolist())}

    assert scores(mine) == pytest.approx(scores(theirs), abs=1e-6)
    other.store.close()


def test_more_neighbours_than_vec0_finds_at_once(roses, monkeypatch):
    if not roses.store.vec0.ready:
        pytest.skip("sqlite-vec does not work here")
    monkeypatch.setattr("memory_tui.index.store.MAX_NEIGHBOURS", 20)
    corpus, query = Corpus.load(roses.store), hash_vector("word1 word2")
    many, _ = cosines_of_nearest(roses.store, corpus, query, 60)
    assert np.abs(many - cosines(corpus, query)).max() <= 1e-6


def test_a_change_of_model_is_followed(roses):
    corpus = Corpus.load(roses.store)
    roses.provider = Counting("another-model")
    roses.sync()
    newer = corpus.refresh(roses.store)
    assert newer.identity == roses.provider.identity
    assert state(newer) == state(Corpus.load(roses.store))


def test_the_cache_forgets_the_least_recently_used_of_texts_that_are_gone(memory):
    memory.write("memory/kept.md", "first\n")
    memory.write("memory/other.md", "second\n")
    memory.sync()
    size = memory.store.counts()
    assert (size.cached, size.cached_bytes) == (2, 2 * 4 * memory.store.identity().dims)
    memory.write("memory/other.md", "third\n")
    memory.sync()
    memory.write("memory/kept.md", "fourth\n")
    memory.sync()
    index_write.prune(memory.store, 1)
    reused = {}
    for text in ("first\n", "second\n"):
        memory.write("memory/kept.md", text)
        reused[text] = memory.sync().reused
    assert reused == {"first\n": 1, "second\n": 0}


def test_the_cache_keeps_as_many_vectors_of_texts_that_are_gone_as_it_may(memory):
    for number in range(16):
        memory.write("memory/changes.md", f"version {number}")
        memory.sync()
        index_write.prune(memory.store, 9)
    unused = "SELECT count(*) FROM embedding_cache WHERE id NOT IN (SELECT embedding_id FROM chunks)"
    assert memory.store.value(unused) == 9


def test_a_provider_that_fails_is_not_asked_for_what_still_waits(tmp_path):
    asked, all_sent, called_back = [], threading.Event(), threading.Event()

    def embed(texts, _purpose):
        asked.append(texts)
        assert (all_sent if len(asked) == 1 else called_back).wait(LONG)
        raise ProviderError("It is gone.", "Start it.")

    def pieces():
        yield from ({f"{number:064}": f"text {number}"} for number in range(40))
        all_sent.set()

    store = Store.open(tmp_path / "memory.sqlite")
    embedder = Embedder(
        store, Identity("fake", "m", "k", 2), SimpleNamespace(embed=embed), lambda: None, EmbeddingMode(1, later=True)
    )
    for _ in embedder.stream(pieces()):
        if not embedder.working:
            called_back.set()
    assert embedder.error == "It is gone."
    assert len(asked) <= 3, "the one that failed, and those that were under way on two threads"
    store.close()
