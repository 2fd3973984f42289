"""The chunks in memory follow the index, and score alike by every way."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_tui.index import index_write
from memory_tui.search.corpus import Corpus
from tests.support.index import Memory, text_of

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
            int(corpus.rowids[row]), corpus.refs[row].id, corpus.refs[row].path,
            corpus.files.sources[corpus.file_of[row]], float(corpus.files.mtimes_ns[corpus.file_of[row]]),
            corpus.refs[row].start_line, corpus.refs[row].end_line, bool(corpus.embedded[row]),
            bool(corpus.has_vector[row]), corpus.matrix[row].tobytes(),
        )
        for row in range(len(corpus))
    ]  # fmt: skip


def by_chunk(store, match):
    rowids, bm25 = match
    ids = {row.rowid: row.chunk_id for path in store.indexed() for row in store.chunks_of(path)}
    return sorted((ids[rowid], round(score, 9)) for rowid, score in zip(rowids.tolist(), bm25.tolist(), strict=True))


note = st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 80))
step = st.one_of(
    note,
    st.tuples(st.just("delete"), st.sampled_from("abcd")),
    st.tuples(st.just("touch"), st.sampled_from("abcd")),
    st.sampled_from([("force",), ("offline",), ("online",), ("look",)]),
)


@settings(max_examples=10, deadline=None)
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


def test_a_provider_that_fails_is_not_asked_for_what_still_waits(memory):
    for number in range(5):
        memory.write(f"memory/{number}.md", f"text {number}")
    memory.provider.broken = "It is gone."
    asked, real = [], memory.provider.embed
    memory.provider.embed = lambda texts, kind: asked.append(texts) or real(texts, kind)
    assert memory.sync().error == "It is gone."
    assert len(asked) == 1
