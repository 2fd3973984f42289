"""What an index answers: notes, chunks, words, vectors, changes; and how its one writer answers its jobs."""

import threading
import time
from concurrent.futures import Future

import pytest
from msgspec import structs
from msgspec.structs import astuple

from memory_tui.errors import Cancelled, IndexDamaged, IndexUnavailable, QueryError
from memory_tui.index import database
from memory_tui.index.connections import Writer
from memory_tui.index.store import Store
from memory_tui.providers.builtin import hash_vector
from tests.support.index import Memory, text_of
from tests.support.stores import Made, cut_note, vectors_for
from tests.support.waiting import LONG


@pytest.fixture
def made(tmp_path):
    index = Made(tmp_path / "index.sqlite")
    yield index
    index.close()


@pytest.fixture
def store(made):
    with made.reader() as reader:
        yield reader


def write(made, vectors=True, **texts):
    files = [cut_note(f"memory/{name}.md", text) for name, text in texts.items()]
    made.add(files, vectors_for(files) if vectors else {})


def pages(store):
    chunks: list[tuple[int, str]] = []
    while len(page := store.page(chunks[-1][0] if chunks else 0, 3)):
        assert len(page) <= 3
        chunks += zip(page.rowids.tolist(), page.chunk_ids, strict=True)
    return chunks


def ids(store, path):
    return [row.rowid for row in store.chunks_of(path)]


def test_a_note_is_read_with_all_that_makes_its_passages_in_the_order_that_breaks_ties(made, store):
    write(made, a="the garden", b="a rose", c="")
    text = "---\ndate: 2026-05-02\n---\n# Home\n\n## Router\n\nit was swapped\x00 \ud800\n"
    text += "".join(f"- line {number} of the router <!-- scope: home -->\n" for number in range(20))
    file = cut_note("memory/2026-05-02.md", text)
    made.add([file], vectors_for([file]))
    write(made, a="the new garden")
    assert list(store.firsts()) == ["memory/c.md", "memory/b.md", "memory/2026-05-02.md", "memory/a.md"]
    note = store.indexed()["memory/2026-05-02.md"]
    passages = store.passages(note)
    assert [passage.rowid for passage in passages] == ids(store, note.path)
    assert store.firsts()[note.path] == (passages[0].rowid, len(passages))
    for passage, chunk in zip(passages, file.chunks, strict=True):
        assert passage[1:8] == (*astuple(chunk)[:6], chunk.above)
        assert passage[8:11] == chunk.annotations
        assert passage.vector == hash_vector(chunk.text).tobytes()
        assert chunk.body.startswith(passage.above)
    assert "2026-05-02 May Saturday\nHome\nRouter" in {passage.above for passage in passages}


def test_a_note_that_holds_a_text_of_another_hash_is_not_published(made, store):
    write(made, a="the garden")
    with made.store.writing():
        made.store.query("UPDATE chunks SET text = 'the desert'")
    with pytest.raises(IndexDamaged):
        store.passages(store.indexed()["memory/a.md"])


def test_notes_of_two_workspaces_may_have_the_same_path(made, store):
    own = cut_note("MEMORY.md", "my garden")
    theirs = structs.replace(cut_note("MEMORY.md", "her rose"), workspace="anna/laptop")
    made.add([own], {})
    made.add([theirs], {})
    made.add([theirs], {})
    assert sorted(store.indexed()) == ["MEMORY.md", "anna/laptop:MEMORY.md"]
    assert store.file("MEMORY.md", "anna/laptop").workspace == "anna/laptop"
    assert store.firsts() == {"MEMORY.md": (1, 0)}


def test_a_snapshot_is_of_one_generation_whoever_writes(made, store):
    write(made, a="the garden", b="a rose")
    with store.snapshot():
        before = (store.generation(), pages(store), dict(store.indexed()), store.texts([1, 2]), store.uuid())
        found = store.words.match(["rose"]).rowids.tolist()
        write(made, a="a rose in the garden")
        made.remove(["memory/b.md"])
        with store.snapshot():
            again = (store.generation(), pages(store), dict(store.indexed()), store.texts([1, 2]), store.uuid())
        assert again == before
        with made.reader() as late, made.reader() as other:
            assert late.indexed() is other.indexed() is not store.indexed(), "one generation has one copy of its rows"
        assert store.words.match(["rose"]).rowids.tolist() == found
        assert store.words.frequency(["rose"]) == [1]
    assert store.generation() > before[0]
    assert store.texts([1, 2]) == {}
    assert store.words.match(["rose"]).rowids.tolist() == [3]


def test_what_is_interrupted_raises_and_then_answers_again(made, store):
    write(made, **{f"n{number}": f"rose number {number} in the garden " * 60 for number in range(30)})
    expected = store.words.match(["rose", "garden"]).rowids.tolist()
    store.interrupt()
    assert store.words.match(["rose", "garden"]).rowids.tolist() == expected, "nothing ran"
    done = threading.Event()

    def interrupting():
        while not done.is_set():
            store.interrupt()

    def asking():
        while True:
            found = store.words.match(["rose", "garden"]).rowids.tolist()
            assert found == expected, "an answer is whole or none"

    thread = threading.Thread(target=interrupting)
    thread.start()
    try:
        with pytest.raises(Cancelled):
            asking()
    finally:
        done.set()
        thread.join(LONG)
    assert store.words.match(["rose", "garden"]).rowids.tolist() == expected


def test_repeats_of_a_chunk(made, store):
    write(made, a="a" * 480)
    every = store.chunks_of("memory/a.md")
    repeats = [row for row in every if row.occurrence]
    assert repeats
    assert not any(row.embedded for row in repeats)
    assert [row[0] for row in pages(store)] == [row.rowid for row in every if not row.occurrence]
    assert store.counts().chunks == len(every) - len(repeats)
    plain = store.words.match([store.texts([repeats[0].rowid])[repeats[0].rowid]])
    assert repeats[0].rowid in plain.rowids
    stemmed = store.words.places("a" * 160)
    assert len(stemmed)
    assert not {row.rowid for row in repeats} & set(stemmed.tolist())
    first = next(row for row in every if row.chunk_id == repeats[0].chunk_id and not row.occurrence)
    originals = store.words.originals([row.rowid for row in every])
    assert originals[repeats[0].rowid] == first.rowid
    assert first.rowid not in originals
    assert repeats[0].rowid in store.words.containing("AAAA")
    assert not store.vectors([repeats[0].rowid]).any()


def test_chunks_that_a_provider_refused_or_never_got(made, store):
    write(made, vectors=False, a="poison", b="a secret", c="neither", d="poison")
    made.reject("poison", "too long for me")
    made.withhold("a secret", "a password")
    refused = [(one.rowid, one.path, one.start_line, one.reason) for one in store.rejected()]
    assert refused == [(1, "memory/a.md", 1, "too long for me"), (4, "memory/d.md", 1, "too long for me")]
    assert [str(one) for one in store.withheld()] == ["withheld: looks like a secret (a password)"]
    made.attach({row.hash: hash_vector("poison") for row in store.chunks_of("memory/a.md")})
    assert store.rejected() == []


TEXTS = {"a": "The snake_case runs well", "b": "snake and case, RUNNING", "c": "我们喝咖啡", "d": "nothing of it"}


@pytest.mark.parametrize(
    ("word", "form", "notes"),
    [
        ("snake_case", "plain", "a"),  # Several tokens have to follow each other.
        ("snake", "plain", "ab"),
        ("run", "plain", ""),
        ("run", "stemmed", "ab"),
        ("_", "plain", ""),
        ("AND", "plain", "b"),  # An operator of FTS5 is a word.
        ('"', "plain", ""),
        ("*", "plain", ""),
        ("a NEAR(", "plain", ""),
        ("^snake*", "plain", "ab"),
        ("咖啡", "stemmed", "c"),
        ("啡", "stemmed", "c"),
        ("喝", "stemmed", "c"),  # A lone character is the beginning of a token.
        ("咖啡", "plain", ""),
    ],
)
def test_words_match_by_their_tokens(made, store, word, form, notes):
    write(made, **TEXTS)
    rowids = store.words.match([word]).rowids if form == "plain" else store.words.places(word)
    hits = set(rowids.tolist())
    assert "".join(path[7] for path in store.indexed() if hits & set(ids(store, path))) == notes


def test_a_frequency_counts_chunks(made, store):
    write(made, **TEXTS)
    assert store.words.frequency(["喝", "咖", "run", "zebra", 'a"b', "snake"]) == [1, 1, 2, 0, 0, 2]
    write(made, e="a snake again")
    assert store.words.frequency(["snake"]) == [3]
    with pytest.raises(QueryError, match="NUL"):
        store.words.match(["ro\0se"])


def test_a_chunk_is_found_by_its_day_and_the_headings_above_it(made, store):
    made.add([cut_note("memory/2026-03-14.md", f"# Garden\n\n## Roses\n\n{text_of(120)}")], {})
    last = store.chunks_of("memory/2026-03-14.md")[-1]
    assert last.start_line > 10
    for word in ("garden", "roses", "Saturday"):
        assert last.rowid in store.words.places(word)
    assert last.rowid not in store.words.match(["garden"]).rowids


def test_nearest_does_not_choose_between_equals(made, store):
    if not store.vec0.ready:
        pytest.skip(f"sqlite-vec does not work here: {store.vec0.detail}")
    write(made, a="rose", b="rose garden", c="rose garden", d="zebra")
    one, two, three = (store.nearest(hash_vector("rose"), count) for count in (1, 2, 3))
    assert one.tolist() == [1]
    assert two is None
    assert sorted(three.tolist()) == [1, 2, 3]


@pytest.mark.parametrize(("library", "why"), [(None, "not installed"), ("/nowhere/vec0", "load: ")])
def test_without_vec0_everything_works_and_the_reason_is_kept(tmp_path, monkeypatch, library, why):
    monkeypatch.setattr(database, "_library", lambda: library)
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    assert not memory.store.vec0.ready
    assert why in memory.store.vec0.detail
    memory.write("MEMORY.md", "hello")
    assert memory.sync().embedded == 1
    assert memory.store.vec0_dims() == 0
    memory.store.close()


def writer(path, on_failure=lambda error: None):
    return Writer(lambda damage: Store.open(path), lambda store: store.close(), on_failure)


def refuse(_store):
    raise IndexUnavailable("The disk is full.", "Make room.")


def test_a_job_that_comes_while_the_writer_is_closed_is_answered(tmp_path):
    for pause in (0, 0.001, 0.01):
        one, jobs, begun = writer(tmp_path / "i.sqlite"), list[Future[int]](), threading.Event()

        def submit(one=one, jobs=jobs, begun=begun):
            while not one.closing.is_set():
                jobs.append(one.submit(lambda store: store.generation()))
                begun.set()
            jobs.append(one.submit(lambda store: store.generation()))

        thread = threading.Thread(target=submit)
        thread.start()
        assert begun.wait(LONG)
        time.sleep(pause)
        one.close(LONG)
        thread.join(LONG)
        assert all(isinstance(job.exception(LONG), Cancelled | None) for job in jobs)
        with pytest.raises(Cancelled):
            jobs[-1].result(LONG)


def test_who_closes_the_writer_waits_for_no_long_statement(tmp_path):
    one, begun = writer(tmp_path / "i.sqlite"), threading.Event()
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    job = one.submit(lambda store: (begun.set(), store.query(counting)))
    assert begun.wait(LONG)
    one.close(0.4)
    with pytest.raises(Cancelled):
        job.result(LONG)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_waits_for_a_thread_that_ended_without_an_answer_is_told(tmp_path, monkeypatch):
    def used_up(_self, _error):
        raise MemoryError

    one = writer(tmp_path / "i.sqlite")
    with monkeypatch.context() as patched:
        patched.setattr(Future, "set_exception", used_up)
        with pytest.raises(IndexUnavailable, match="its thread has ended"):
            one.run(refuse)
    assert one.run(lambda store: store.value("SELECT 7")) == 7, "another thread goes on"
    one.close(LONG)
