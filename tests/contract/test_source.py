"""What a search needs of a store, over SQLite's index and over a plain store in memory: the same answers to 1e-6."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.core import profiles
from memory_tui.core.errors import Cancelled, IndexDamaged, QueryError
from memory_tui.explain import trace_json, why_not
from memory_tui.explain import verdicts as verdict_types
from memory_tui.providers.scripted import Scripted, hash_vector
from memory_tui.search.corpus import Corpus, cosines, cosines_of_nearest
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import SearchContext, gather
from memory_tui.search.trace import ChunkRef
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import ChunkPage, CosineRank, NoteColumns
from tests.support.stores import RECIPE, Made, MemoryMade, SqliteMade, cut_note, vectors_for, without_full_text
from tests.support.waiting import LONG

NOW = 1_795_000_000.0
TRIGRAM = replace(RECIPE, fts_tokenizer="trigram")
PROFILES = ("openclaw-2026.3", "recommended")


def made_in(kind: str, folder: Path, recipe=RECIPE) -> Made:
    return SqliteMade(folder / "index.sqlite", recipe) if kind == "sqlite" else MemoryMade(recipe)


@pytest.fixture(params=["sqlite", "memory"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(kind: str, tmp_path: Path) -> Iterator[Made]:
    index = made_in(kind, tmp_path)
    yield index
    index.close()


@pytest.fixture
def store(made: Made) -> Iterator[ChunkSource]:
    with made.reader() as source:
        yield source


def write(made: Made, vectors: bool = True, **texts: str) -> None:
    files = [cut_note(f"memory/{name}.md", text) for name, text in texts.items()]
    made.add(files, vectors_for(files) if vectors else {})


def pages(store: ChunkSource, count: int = 3, *, vectors: bool = True) -> list[tuple[Any, ...]]:
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


def ids(store: ChunkSource, path: str) -> list[int]:
    return [row.rowid for row in store.chunks_of(path)]


# --- one store -----------------------------------------------------------------------------------------------------


def test_an_empty_store_answers(store: ChunkSource) -> None:
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


def test_a_snapshot_is_of_one_generation_whoever_writes(made: Made, store: ChunkSource) -> None:
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


def test_a_rowid_is_never_used_again(made: Made, store: ChunkSource) -> None:
    seen: set[int] = set()
    for number in range(4):
        write(made, a=f"text number {number}")
        now = {row[0] for row in pages(store)}
        assert not now & seen
        assert min(now) > max(seen, default=0)
        seen |= now
        made.remove(["memory/a.md"])


def test_what_changed_is_told_until_it_is_forgotten_or_too_much(made: Made, store: ChunkSource) -> None:
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


def test_a_vector_that_comes_late_is_a_change_of_its_chunk(made: Made, store: ChunkSource) -> None:
    write(made, vectors=False, a="the garden")
    at, [[*before]] = store.generation(), pages(store)
    assert before[5:7] == [False, False]
    made.attach({row.hash: hash_vector("the garden") for row in store.chunks_of("memory/a.md")})
    delta = store.delta(at, 10)
    assert delta is not None
    assert rows(delta.chunks) == pages(store)
    assert rows(delta.chunks)[0][5:] == (True, True, hash_vector("the garden").tobytes())


def test_a_text_without_a_token_has_a_vector_that_points_nowhere(made: Made, store: ChunkSource) -> None:
    write(made, a="!!!", b="rose")
    assert [row[5:7] for row in pages(store)] == [(True, False), (True, True)]
    assert store.vectors([1, 2, 99]).any(axis=1).tolist() == [False, True, False]
    near = store.nearest(hash_vector("rose"), 2)
    assert near is not None
    assert near.tolist() == [2]
    assert store.standings(hash_vector("rose"), [1]) == {1: CosineRank(0, 2, 2)}


def test_without_vectors_a_page_has_none(made: Made, store: ChunkSource) -> None:
    write(made, a="rose", b="!!!")
    page = store.page(0, 10, vectors=False)
    assert page.vectors.shape == (2, 0)
    assert page.embedded.tolist() == [True, True]
    assert page.has_vector[0], "a store need not know of the other one that its vector is all zeros"


def test_repeats_of_a_chunk(made: Made, store: ChunkSource) -> None:
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


def test_words_match_by_their_tokens(made: Made, store: ChunkSource) -> None:
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


def test_no_words_match_nothing_and_a_nul_is_refused(made: Made, store: ChunkSource) -> None:
    write(made, a="rose")
    assert store.words.match([], "plain", "all").rowids.tolist() == []
    with pytest.raises(QueryError):
        store.words.match(["ro\0se"], "plain", "all")
    assert store.words.frequency(["ro\0se"], "plain") == [0]


def test_matches_come_in_the_order_of_their_rowids(made: Made, store: ChunkSource) -> None:
    write(made, a="same words", b="same words", c="same same words", d="other text here", e="more text there")
    found = store.words.match(["same"], "plain", "all")
    assert found.rowids.tolist() == [1, 2, 3]
    assert (found.bm25 < 0).all()
    assert found.bm25[0] == found.bm25[1] > found.bm25[2]
    twice = store.words.match(["same", "same"], "plain", "all")
    assert twice.bm25.tolist() == pytest.approx((found.bm25 * 2).tolist(), abs=1e-9)


def test_nearest_does_not_choose_between_equals(made: Made, store: ChunkSource) -> None:
    write(made, a="rose", b="rose garden", c="rose garden", d="zebra")
    one, two, three = (store.nearest(hash_vector("rose"), count) for count in (1, 2, 3))
    assert one is not None
    assert one.tolist() == [1]
    assert two is None
    assert three is not None
    assert sorted(three.tolist()) == [1, 2, 3]


def test_a_standing_is_the_place_among_all_cosines(made: Made, store: ChunkSource) -> None:
    write(made, a="rose", b="rose garden", c="rose garden", d="zebra", e="garden garden rose")
    write(made, vectors=False, f="no vector yet")
    names = {ids(store, path)[0]: path[7:8] for path in store.known()}
    found = {names[rowid]: place for rowid, place in store.standings(hash_vector("rose"), [*names, 999]).items()}
    assert {name: place.rank for name, place in found.items()} == {"a": 1, "b": 2, "c": 3, "e": 4, "d": 5}
    assert {place.of for place in found.values()} == {5}


def test_chunks_that_a_provider_refused_or_never_got(made: Made, store: ChunkSource) -> None:
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


def test_what_is_interrupted_raises_and_then_answers_again(made: Made, store: ChunkSource) -> None:
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


def test_another_store_has_another_name(kind: str, tmp_path: Path) -> None:
    names = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        index = made_in(kind, folder)
        with index.reader() as source:
            names.add(source.uuid())
            assert source.identity() == RECIPE.identity
        index.close()
    assert len(names) == 2


def test_damage_is_an_error_that_names_what_makes_no_sense(store: ChunkSource) -> None:
    error = store.damaged("a row makes no sense")
    assert isinstance(error, IndexDamaged)
    assert "a row makes no sense" in error.message
    assert error.next_step


# --- two stores that were written alike ------------------------------------------------------------------------------

WORDS = ["garden", "rose", "roses", "snake_case", "don't", "Ünïcode", "router-7", "咖啡", "喝", "にわ", "½", "_", "!!!"]
words = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
odd = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=60)
lines = st.lists(st.one_of(words, odd, st.sampled_from(["# Heading", "", "x" * 400])), max_size=8)
text = lines.map("\n".join)
name = st.sampled_from(["memory/a.md", "memory/2026-03-14.md", "MEMORY.md", "memory/ü.md"])
step = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(name, text), min_size=1, max_size=3, unique_by=lambda n: n[0])),
    st.tuples(st.just("offline"), st.lists(st.tuples(name, text), min_size=1, max_size=2, unique_by=lambda n: n[0])),
    st.tuples(st.just("remove"), name),
    st.tuples(st.just("touch"), name),
    st.tuples(st.just("online"), st.none()),
    st.tuples(st.just("forget"), st.none()),
    st.tuples(st.just("look"), st.none()),
)


def taken(made: Made, store: ChunkSource, what: str, value: Any, at: int, recipe: Any) -> None:
    """One step, which does nothing where there is nothing to do it to."""
    if what in ("add", "offline"):
        files = [cut_note(path, note, 1_790_000_000 + at, recipe) for path, note in value]
        made.add(files, vectors_for(files) if what == "add" else {})
    elif what == "remove" and value in store.known():
        made.remove([value])
    elif what == "touch" and value in store.known():
        made.touch(value, 1_700_000_000 + at)
    elif what == "online":
        lacking = [row for path in store.known() for row in store.chunks_of(path) if not row.embedded]
        texts = store.texts([row.rowid for row in lacking])
        made.attach({row.hash: hash_vector(texts[row.rowid]) for row in lacking})
    elif what == "forget":
        made.forget_log()


def close_to(one: Any, other: Any, at: str = "") -> None:
    """Equal, numbers to 1e-6, whatever the nesting."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys(), at
        for key in one:
            if key not in ("timings", "generation", "uuid"):
                close_to(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        assert len(one) == len(other), at
        for number, pair in enumerate(zip(one, other, strict=True)):
            close_to(*pair, f"{at}[{number}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-6, nan_ok=True), at
    else:
        assert one == other, at


def everything(store: ChunkSource, queries: Sequence[str]) -> dict[str, Any]:
    """All that a store answers."""
    rows = [(row.id, row.path, row.source, row.mtime_ns, row.chunks) for row in store.known().values()]
    assert sorted(zip(*store.notes(), strict=True)) == sorted(rows)
    chunks = [row for path in sorted(store.known()) for row in store.chunks_of(path)]
    rowids = [row.rowid for row in chunks]
    of_note = {note.id: path for path, note in store.known().items()}
    asked = [word for query in queries for word in query.split()]
    found: dict[str, Any] = {
        # The ids of notes are a store's own.
        "notes": {path: tuple(note)[1:] for path, note in store.known().items()},
        "chunks": [tuple(row) for row in chunks],
        "pages": [(rowid, of_note[note], *rest) for rowid, note, *rest in pages(store)],
        "texts": store.texts([*rowids, 10**9]),
        "vectors": store.vectors(rowids).tolist(),
        "originals": store.words.originals(rowids),
        "frequency": [store.words.frequency(asked, form) for form in ("plain", "stemmed")],
        "sizes": [store.words.size("plain"), store.words.size("stemmed")],
        "containing": [store.words.containing(word).tolist() for word in asked],
    }
    for query in queries:
        for form in ("plain", "stemmed"):
            for join in ("all", "any"):
                match = store.words.match(query.split(), form, join)  # type: ignore[arg-type]
                found[f"{query} {form} {join}"] = [match.rowids.tolist(), match.bm25.tolist()]
        vector = hash_vector(query)
        if vector.any():
            near = [store.nearest(vector, count) for count in (1, 3)]
            found[f"nearest {query}"] = [None if one is None else sorted(one.tolist()) for one in near]
            found[f"standings {query}"] = store.standings(vector, rowids)
    return found


def answers(store: ChunkSource, corpus: Corpus, query: str, provider: Scripted | None) -> list[Any]:
    """A whole search, under each profile, as the record that screens and agents get."""
    evidence = gather(query, SearchContext(store, corpus, Dates.of(corpus), provider), NOW)
    return [trace_json.answer(rank(evidence, profiles.compose(name, {}, {}))) for name in PROFILES]


def corpus_rows(corpus: Corpus) -> list[Any]:
    return [
        (
            int(corpus.rowids[row]),
            corpus.chunk_id(row),
            corpus.path(row),
            float(corpus.files.mtimes[corpus.file_of[row]]),
            int(corpus.start_lines[row]),
            int(corpus.end_lines[row]),
            bool(corpus.embedded[row]),
            bool(corpus.has_vector[row]),
            corpus.vectors([row])[0].tolist(),
        )
        for row in range(len(corpus))
    ]


def alike(steps: Sequence[tuple[str, Any]], queries: Sequence[str], recipe: Any) -> None:
    """Take `steps` in both stores, and hold everything that they answer side by side."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        both = [made_in(kind, Path(folder), recipe) for kind in ("sqlite", "memory")]
        for made in both:
            stack.callback(made.close)
        stores = [stack.enter_context(made.reader()) for made in both]
        corpora = [Corpus.load(store) for store in stores]
        for at, (what, value) in enumerate(steps):
            if what == "look":
                corpora = [corpus.refresh(store) for corpus, store in zip(corpora, stores, strict=True)]
            for made, store in zip(both, stores, strict=True):
                taken(made, store, what, value, at, recipe)
        one, other = stores
        with one.snapshot(), other.snapshot():
            close_to(everything(one, queries), everything(other, queries))
            followed = [corpus.refresh(store) for corpus, store in zip(corpora, stores, strict=True)]
            for corpus, store in zip(followed, stores, strict=True):
                assert corpus_rows(corpus) == corpus_rows(Corpus.load(store))
            close_to(*map(corpus_rows, followed))
            for query in queries:
                for provider in (Scripted(), None):
                    pair = [
                        answers(store, corpus, query, provider) for store, corpus in zip(stores, followed, strict=True)
                    ]
                    close_to(*pair, query)


BOTH = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@BOTH
@example([("add", [("memory/a.md", "rose garden\n" * 40), ("MEMORY.md", "rose")])], ["rose garden"])
@example([("add", [("memory/a.md", "x" * 400)]), ("remove", "memory/a.md")], ["x"])
@given(st.lists(step, max_size=8), st.lists(words.filter(str.strip), min_size=1, max_size=2))
def test_both_stores_answer_alike(steps: list[tuple[str, Any]], queries: list[str]) -> None:
    alike(steps, queries, RECIPE)


@settings(BOTH, max_examples=10)
@given(st.lists(step, max_size=4), st.lists(words.filter(str.strip), min_size=1, max_size=2))
def test_both_stores_answer_alike_by_trigrams(steps: list[tuple[str, Any]], queries: list[str]) -> None:
    alike(steps, queries, TRIGRAM)


def test_without_full_text_both_stores_find_the_letters_of_a_word() -> None:
    recipe = without_full_text()
    steps = [("add", [("memory/a.md", "The roses\nand 咖啡 in the garden"), ("MEMORY.md", "100% of it")])]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        found = []
        for kind in ("sqlite", "memory"):
            made = made_in(kind, Path(folder), recipe)
            stack.callback(made.close)
            store = stack.enter_context(made.reader())
            taken(made, store, *steps[0], 0, recipe)
            assert store.words.cut() == ""
            corpus = Corpus.load(store)
            found.append([answers(store, corpus, query, None) for query in ("rose", "咖啡 garden", "100%")])
        assert any(answer[0]["results"] for answer in found[0])
        close_to(*found)


def test_a_corpus_without_vectors_scores_the_nearest_like_one_with_all(kind: str, tmp_path: Path) -> None:
    made = made_in(kind, tmp_path)
    names = {f"n{number}": " ".join(WORDS[number % 3 : number % 5 + 2]) + f" word{number}" for number in range(40)}
    write(made, **names)
    with made.reader() as store:
        query = hash_vector("garden rose word7")
        whole, light = Corpus.load(store), Corpus.load(store, vectors=False)
        exact = cosines(whole, query)
        if store.finds_nearest():
            some, _ = cosines_of_nearest(store, light, query, 5, also=[17])
            known = ~np.isneginf(some)
            assert known[17]
            assert np.abs(some - exact)[known].max() <= 1e-6
            assert set(np.argsort(-exact, kind="stable")[:3]) <= set(np.flatnonzero(known))
    made.close()


def test_a_chunk_outside_the_pool_is_explained_alike_without_vectors_in_memory(kind: str, tmp_path: Path) -> None:
    """A store that finds the nearest gives a search no other cosine; why-not asks it for the exact place."""
    made = made_in(kind, tmp_path)
    write(
        made, **{f"n{number:03}": f"rose number {number} " + f"word{number} " * (number % 7) for number in range(260)}
    )
    chosen = profiles.compose("openclaw-2026.3", {}, {})
    with made.reader() as store:
        verdicts = []
        for vectors in (True, False):
            corpus = Corpus.load(store, vectors=vectors)
            context = SearchContext(store, corpus, Dates.of(corpus), Scripted())
            evidence = gather("rose number", context, NOW)
            far = int(np.argmin(cosines(Corpus.load(store), hash_vector("rose number"))))
            ref = next(
                ChunkRef(row.rowid, row.chunk_id, path, row.source, row.start_line, row.end_line)
                for path in store.known()
                for row in store.chunks_of(path)
                if row.rowid == corpus.rowids[far]
            )
            known = store.standings(evidence.vector, [ref.rowid]) if evidence.vector is not None else {}
            place = why_not.ExplainedLine(ref.path, None, (ref,), store.texts([ref.rowid]), standings=known)
            verdicts.append(why_not.why(evidence, chosen, place).fate)
        whole, light = verdicts
        assert isinstance(whole, verdict_types.OutsideVectorPool)
        assert isinstance(light, verdict_types.OutsideVectorPool)
        assert (light.of, light.pool, light.text) == (whole.of, whole.pool, whole.text)
        assert light.cosine == pytest.approx(whole.cosine, abs=1e-6)
        assert light.edge == pytest.approx(whole.edge, abs=1e-6)
        assert light.rank == whole.rank
    made.close()
