"""What holds whatever happens to the notes, the settings, the provider and the vectors."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_tui.index import index_write
from memory_tui.index.database import differences
from memory_tui.index.sync import compare, recipe_of
from memory_tui.search.corpus import Corpus, cosines
from memory_tui.workspace.roots import scan
from tests.support.index import Counting, Memory, integrity, text_of

NAMES = ("MEMORY.md", "memory/a.md", "memory/b.md", "memory/deep/c.md", "memory/2026-01-02.md")
TEXTS = ("", "one", "two", "one\ntwo", text_of(30, "x"), text_of(120, "y"), "# H\n\nbody", "\ufeffbom", "a\x00b", "雪")

name = st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), name, st.sampled_from(TEXTS)),
        st.tuples(st.just("append"), name, st.sampled_from(TEXTS)),
        st.tuples(st.just("delete"), name),
        st.tuples(st.just("rename"), name, name),
        st.tuples(st.just("touch"), name),
        st.tuples(st.just("same size, same times"), name),
        st.tuples(st.just("bytes"), name, st.binary(max_size=40)),
        st.tuples(st.just("chunking"), st.sampled_from([30, 400])),
        st.tuples(st.just("model"), st.sampled_from(["", "another"])),
        st.tuples(st.just("outage"), st.booleans()),
        st.tuples(st.just("force")),
        st.tuples(st.just("stop"), st.integers(0, 3)),
        st.tuples(st.just("sync")),
    ),
    max_size=12,
)


def act(memory, step):
    match step:
        case ("write", path, text):
            memory.write(path, text)
        case ("append", path, text):
            note = memory.folder / path
            memory.write(path, (note.read_bytes() if note.exists() else b"") + text.encode())
        case ("bytes", path, data):
            memory.write(path, data)
        case ("delete", path):
            (memory.folder / path).unlink(missing_ok=True)
        case ("rename", old, new) if (memory.folder / old).exists():
            (memory.folder / new).parent.mkdir(parents=True, exist_ok=True)
            (memory.folder / old).rename(memory.folder / new)
        case ("touch", path) if (memory.folder / path).exists():
            os.utime(memory.folder / path)
        case ("same size, same times", path) if (memory.folder / path).exists():
            note = memory.folder / path
            before = note.stat()
            note.write_bytes(note.read_bytes()[::-1])
            os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
        case ("chunking", tokens):
            overlap = tokens // 5
            memory.settings = memory.settings.update({"chunking.tokens": tokens, "chunking.overlap": overlap}, "test")
        case ("model", model):
            broken = memory.provider.broken
            memory.provider = Counting(model)
            memory.provider.broken = broken
        case ("outage", on):
            memory.provider.broken = "offline" if on else ""
        case ("force",):
            synced(memory, force=True)
        case ("stop", after):
            left = iter(range(after))
            memory.sync(listener=lambda event: next(left, None) is None and memory.cancel.set())
            memory.cancel.clear()
        case ("sync",):
            synced(memory)
        case _:
            pass


def notes(memory):
    found = scan(memory.roots).notes
    return {note.path: hashlib.sha256(Path(note.absolute).read_bytes()).hexdigest() for note in found}


def synced(memory, force=False):
    """A sync reads notes and changes none (I1), and a second one finds nothing to do (I3)."""
    before = notes(memory)
    memory.sync(force=force)
    assert notes(memory) == before
    asked, generation = len(memory.provider.texts), memory.store.generation()
    again = memory.sync()
    if not memory.provider.broken:
        assert (len(memory.provider.texts), memory.store.generation()) == (asked, generation), again


def freshness(memory):
    maker = memory.provider
    wanted = recipe_of(memory.roots, memory.settings, maker.identity, maker.max_input_bytes)
    rebuild = differences(memory.store.recipe() or wanted, wanted)
    return compare(scan(memory.roots), memory.store.indexed(), roots=memory.roots, rebuild=rebuild)


def never_fresh_and_different(memory, seen):
    """No note counts as fresh whose text is not the indexed one (I5); `seen` is of the last whole sync."""
    stale = freshness(memory).stale
    for path, digest in notes(memory).items():
        if path not in stale:
            assert seen.get(path) == digest, path


def consistent(memory):
    """Rows fit each other; what is embedded has a vector in the one space of the index, and that of its text (I4)."""
    assert memory.store.problems() == []
    assert integrity(memory.store) == []
    assert memory.notices == []
    # The look that passes over what is as it was sees what the whole one does.
    fast, full, rows = scan(memory.roots, memory.store.settled()), scan(memory.roots), memory.store.indexed()
    assert compare(fast, rows, memory.roots) == compare(full, rows, memory.roots)
    corpus = Corpus.load(memory.store)
    texts = memory.store.texts(corpus.refs.rowids)
    if corpus.identity is None:
        return
    maker = Counting(corpus.identity.model if corpus.identity.model == "another" else "")
    assert maker.identity == corpus.identity
    rows = np.flatnonzero(corpus.embedded)
    made = maker.embed([texts[int(corpus.refs.rowids[row])] for row in rows], "document") if len(rows) else None
    for at, row in enumerate(rows):
        np.testing.assert_allclose(corpus.matrix[int(row)], made[at], atol=1e-6)


def as_made_from_nothing(memory, place):
    """An index that lived through everything holds what one made now holds (I13: deleting it loses only time)."""
    other = Memory(memory.folder, place / "other.sqlite")
    other.settings, other.provider = memory.settings, memory.provider
    other.sync()
    assert contents(memory.store) == contents(other.store)
    query = memory.provider.embed(["one"], "query")[0]
    ours, theirs = (
        sorted(cosines(store, Corpus.load(store), query, 9, ())[0].round(5).tolist())
        for store in (memory.store, other.store)
    )
    assert ours == theirs
    other.store.close()


def contents(store):
    return {
        path: [
            (row.chunk_id, row.start_line, row.end_line, row.hash, row.embedded or row.occurrence > 0)
            for row in store.chunks_of(path)
        ]
        for path in store.indexed()
    }


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_whatever_happens_the_index_tells_the_truth(every):
    lives_through(every)


@pytest.mark.soak
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_whatever_happens_for_long_the_index_tells_the_truth(every):
    lives_through(every)


def lives_through(every):
    place = Path(tempfile.mkdtemp(prefix="memory-tui-invariants-"))
    try:
        memory = Memory(place / "notes", place / "i" / "memory.sqlite")
        memory.write("MEMORY.md", "one")
        for step in every:
            indexed = {path: row.hash for path, row in memory.store.indexed().items() if row.state == "ok"}
            act(memory, step)
            consistent(memory)
            if step[0] in ("write", "append", "bytes", "delete", "rename", "touch", "same size, same times"):
                # Only of text that is UTF-8 the stored hash is that of the bytes.
                never_fresh_and_different(
                    memory,
                    {
                        path: digest
                        for path, digest in notes(memory).items()
                        if indexed.get(path) == digest or not _utf8(memory.folder / path)
                    },
                )
        memory.provider.broken = ""
        synced(memory)
        assert freshness(memory).stale == {}
        as_made_from_nothing(memory, place)
        memory.store.close()
    finally:
        shutil.rmtree(place)


def _utf8(path):
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    return True


WORDS = ["garden", "rose", "bread", "sourdough", "router", "咖啡", "!!!", ""]


def state(corpus):
    """Everything a corpus tells, by chunk; the order of files is not part of it."""
    return [
        (
            int(corpus.refs.rowids[row]), corpus.refs[row].id, corpus.refs[row].path,
            corpus.files.sources[corpus.refs.file_of[row]], float(corpus.files.mtimes_ns[corpus.refs.file_of[row]]),
            corpus.refs[row].start_line, corpus.refs[row].end_line, bool(corpus.embedded[row]),
            bool(corpus.has_vector[row]), corpus.matrix[row].tobytes(),
        )
        for row in range(len(corpus))
    ]  # fmt: skip


def by_chunk(store, word):
    """The matches of `word` in the one form, and its places in the other."""
    rowids, bm25 = store.words.match([word])
    ids = {row.rowid: row.chunk_id for path in store.indexed() for row in store.chunks_of(path)}
    matches = ((ids[rowid], round(score, 9)) for rowid, score in zip(rowids.tolist(), bm25.tolist(), strict=True))
    return sorted(matches), sorted(ids[rowid] for rowid in store.words.places(word).tolist())


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
        for word in ("garden", "rose", "line", "咖啡", "bread"):
            old, new = (by_chunk(s, word) for s in (memory.store, fresh.store))
            assert old == new
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
