"""What a search reads of an index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_tui.core.errors import Cancelled, QueryError
from memory_tui.index.rows import ChunkPage, CosineRank, NoteColumns
from memory_tui.index.store import Store
from memory_tui.providers.builtin import hash_vector
from tests.support.stores import Made, cut_note, vectors_for
from tests.support.waiting import LONG


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    index = Made(tmp_path / "index.sqlite")
    yield index
    index.close()


@pytest.fixture
def store(made: Made) -> Iterator[Store]:
    with made.reader() as source:
        yield source


def write(made: Made, vectors: bool = True, **texts: str) -> None:
    files = [cut_note(f"memory/{name}.md", text) for name, text in texts.items()]
    made.add(files, vectors_for(files) if vectors else {})


def pages(store: Store, count: int = 3, *, vectors: bool = True) -> list[tuple[Any, ...]]:
    """Every chunk of the store as tuples, read in small pages."""
    found: list[tuple[Any, ...]] = []
    while len(page := store.page(found[-1][0] if found else 0, count, vectors=vectors)):
        assert len(page) <= count
        found += rows(page)
    return found


def rows(page: ChunkPage) -> list[tuple[Any, ...]]:
    return [
        (int(rowid), int(note), *map(int, lines), chunk, bool(embedded), bool(has), vector.tobytes())
        for rowid, note, lines, chunk, embedded, has, vector in zip(
            page.rowids,
            page.notes,
            page.lines.T,
            page.chunk_ids,
            page.embedded,
            page.has_vector,
            page.vectors,
            strict=True,
        )
    ]


def ids(store: Store, path: str) -> list[int]:
    return [row.rowid for row in store.chunks_of(path)]


# --- one store -----------------------------------------------------------------------------------------------------


def test_an_empty_store_answers(store: Store) -> None:
    assert dict(store.known()) == {}
    assert store.notes() == NoteColumns()
    assert pages(store) == []
    assert store.texts([1]) == {}
    assert store.chunks_of("memory/a.md") == []
    assert store.file("memory/a.md") is None
    assert store.words.match(["rose"], "plain", "all").rowids.tolist() == []
    assert store.words.frequency(["rose"], "stemmed") == [0]
    assert store.words.containing("rose").tolist() == []
    assert store.standings(hash_vector("rose"), [1]) == {}
    assert (store.rejected(), store.withheld()) == ([], [])


def test_a_snapshot_is_of_one_generation_whoever_writes(made: Made, store: Store) -> None:
    write(made, a="the garden", b="a rose")
    with store.snapshot():
        before = (store.generation(), pages(store), dict(store.known()), store.texts([1, 2]))
        found = store.words.match(["rose"], "plain", "any").rowids.tolist()
        write(made, a="a rose in the garden")
        made.remove(["memory/b.md"])
        with store.snapshot():
            assert (store.generation(), pages(store), dict(store.known()), store.texts([1, 2])) == before
        assert store.words.match(["rose"], "plain", "any").rowids.tolist() == found
        assert store.words.frequency(["rose"], "plain") == [1]
    assert store.generation() > before[0]
    assert store.texts([1, 2]) == {}
    assert store.words.match(["rose"], "plain", "any").rowids.tolist() == [3]


def test_a_rowid_is_never_used_again(made: Made, store: Store) -> None:
    seen: set[int] = set()
    for number in range(4):
        write(made, a=f"text number {number}")
        now = {row[0] for row in pages(store)}
        assert not now & seen
        assert min(now) > max(seen, default=0)
        seen |= now
        made.remove(["memory/a.md"])


def test_what_changed_is_told_until_it_is_forgotten_or_too_much(made: Made, store: Store) -> None:
    write(made, a="one", b="two")
    at = store.generation()
    nothing = store.delta(at, 10)
    assert nothing is not None
    assert (nothing.generation, len(nothing.chunks), list(nothing.notes), list(nothing.gone)) == (at, 0, [], [])
    write(made, a="three", c="four")
    delta = store.delta(at, 10)
    assert delta is not None
    assert sorted(note.path for note in delta.notes) == ["memory/a.md", "memory/c.md"]
    assert [row[0] for row in rows(delta.chunks)] == [*ids(store, "memory/a.md"), *ids(store, "memory/c.md")]
    assert list(delta.gone) == [1]
    assert store.delta(at, 2) is None
    assert store.delta(store.generation() + 1, 10) is None
    made.forget_log()
    assert store.delta(at, 10) is None
    assert store.delta(store.generation(), 10) is not None


def test_a_vector_that_comes_late_is_a_change_of_its_chunk(made: Made, store: Store) -> None:
    write(made, vectors=False, a="the garden")
    at, [[*before]] = store.generation(), pages(store)
    assert before[5:7] == [False, False]
    made.attach({row.hash: hash_vector("the garden") for row in store.chunks_of("memory/a.md")})
    delta = store.delta(at, 10)
    assert delta is not None
    assert rows(delta.chunks) == pages(store)
    assert rows(delta.chunks)[0][5:] == (True, True, hash_vector("the garden").tobytes())


def test_a_text_without_a_token_has_a_vector_that_points_nowhere(made: Made, store: Store) -> None:
    write(made, a="!!!", b="rose")
    assert [row[5:7] for row in pages(store)] == [(True, False), (True, True)]
    assert store.vectors([1, 2, 99]).any(axis=1).tolist() == [False, True, False]
    near = store.nearest(hash_vector("rose"), 2)
    assert near is not None
    assert near.tolist() == [2]
    assert store.standings(hash_vector("rose"), [1]) == {1: CosineRank(0, 2, 2)}


def test_repeats_of_a_chunk(made: Made, store: Store) -> None:
    write(made, a="a" * 480)
    every = store.chunks_of("memory/a.md")
    repeats = [row for row in every if row.occurrence]
    assert repeats
    assert [row[0] for row in pages(store)] == [row.rowid for row in every if not row.occurrence]
    plain = store.words.match([store.texts([repeats[0].rowid])[repeats[0].rowid]], "plain", "all")
    assert repeats[0].rowid in plain.rowids
    stemmed = store.words.match(["a" * 160], "stemmed", "any")
    assert len(stemmed.rowids)
    assert not {row.rowid for row in repeats} & set(stemmed.rowids.tolist())
    first = next(row for row in every if row.chunk_id == repeats[0].chunk_id and not row.occurrence)
    assert store.words.originals([row.rowid for row in every])[repeats[0].rowid] == first.rowid
    assert first.rowid not in store.words.originals([row.rowid for row in every])
    assert repeats[0].rowid in store.words.containing("AAAA")
    assert store.standings(hash_vector("a"), [repeats[0].rowid]) == {}
    assert not store.vectors([repeats[0].rowid]).any()


def test_words_match_by_their_tokens(made: Made, store: Store) -> None:
    write(made, a="The snake_case runs well", b="snake and case, RUNNING", c="我们喝咖啡", d="nothing of it")

    def found(word: str, form: Any, join: Any = "any") -> list[str]:
        hits = set(store.words.match([word], form, join).rowids.tolist())
        return [path for path in store.known() if hits & set(ids(store, path))]

    assert found("snake_case", "plain") == ["memory/a.md"], "several tokens have to follow each other"
    assert found("snake", "plain") == ["memory/a.md", "memory/b.md"]
    assert found("run", "plain") == []
    assert found("run", "stemmed") == ["memory/a.md", "memory/b.md"]
    assert found("_", "plain") == [], "no token, no match"
    assert found("AND", "plain") == ["memory/b.md"], "an operator of FTS5 is a word"
    assert found('"', "plain") == found("*", "plain") == []
    assert found("咖啡", "stemmed") == found("啡", "stemmed") == ["memory/c.md"]
    assert found("喝", "stemmed", "any") == ["memory/c.md"]
    assert found("喝", "stemmed", "all") == [], "a lone character is the beginning of a token only among alternatives"
    assert store.words.frequency(["喝", "咖", "run", "zebra"], "stemmed") == [1, 1, 2, 0]


def test_no_words_match_nothing_and_a_nul_is_refused(made: Made, store: Store) -> None:
    write(made, a="rose")
    assert store.words.match([], "plain", "all").rowids.tolist() == []
    with pytest.raises(QueryError):
        store.words.match(["ro\0se"], "plain", "all")
    assert store.words.frequency(["ro\0se"], "plain") == [0]


def test_matches_come_in_the_order_of_their_rowids(made: Made, store: Store) -> None:
    write(made, a="same words", b="same words", c="same same words", d="other text here", e="more text there")
    found = store.words.match(["same"], "plain", "all")
    assert found.rowids.tolist() == [1, 2, 3]
    assert (found.bm25 < 0).all()
    assert found.bm25[0] == found.bm25[1] > found.bm25[2]
    twice = store.words.match(["same", "same"], "plain", "all")
    assert twice.bm25.tolist() == pytest.approx((found.bm25 * 2).tolist(), abs=1e-9)


def test_nearest_does_not_choose_between_equals(made: Made, store: Store) -> None:
    write(made, a="rose", b="rose garden", c="rose garden", d="zebra")
    one, two, three = (store.nearest(hash_vector("rose"), count) for count in (1, 2, 3))
    assert one is not None
    assert one.tolist() == [1]
    assert two is None
    assert three is not None
    assert sorted(three.tolist()) == [1, 2, 3]


def test_a_standing_is_the_place_among_all_cosines(made: Made, store: Store) -> None:
    write(made, a="rose", b="rose garden", c="rose garden", d="zebra", e="garden garden rose")
    write(made, vectors=False, f="no vector yet")
    names = {ids(store, path)[0]: path[7:8] for path in store.known()}
    found = {names[rowid]: place for rowid, place in store.standings(hash_vector("rose"), [*names, 999]).items()}
    assert {name: place.rank for name, place in found.items()} == {"a": 1, "b": 2, "c": 3, "e": 4, "d": 5}
    assert {place.of for place in found.values()} == {5}


def test_chunks_that_a_provider_refused_or_never_got(made: Made, store: Store) -> None:
    write(made, vectors=False, a="poison", b="a secret", c="neither", d="poison")
    made.reject("poison", "too long for me")
    made.withhold("a secret", "a password")
    assert [(one.rowid, one.path, one.start_line, one.reason) for one in store.rejected()] == [
        (1, "memory/a.md", 1, "too long for me"),
        (4, "memory/d.md", 1, "too long for me"),
    ]
    assert [str(one) for one in store.withheld()] == ["withheld: looks like a secret (a password)"]
    made.attach({row.hash: hash_vector("poison") for row in store.chunks_of("memory/a.md")})
    assert store.rejected() == []


def test_what_is_interrupted_raises_and_then_answers_again(made: Made, store: Store) -> None:
    write(made, **{f"n{number}": f"rose number {number} in the garden " * 60 for number in range(30)})
    expected = store.words.match(["rose", "garden"], "stemmed", "any").rowids.tolist()
    store.interrupt()
    assert store.words.match(["rose", "garden"], "stemmed", "any").rowids.tolist() == expected, "nothing ran"
    done = threading.Event()

    def interrupting() -> None:
        while not done.is_set():
            store.interrupt()

    def asking() -> None:
        while True:
            found = store.words.match(["rose", "garden"], "stemmed", "any").rowids.tolist()
            assert found == expected, "an answer is whole or none"

    thread = threading.Thread(target=interrupting)
    thread.start()
    try:
        with pytest.raises(Cancelled):
            asking()
    finally:
        done.set()
        thread.join(LONG)
    assert store.words.match(["rose", "garden"], "stemmed", "any").rowids.tolist() == expected
