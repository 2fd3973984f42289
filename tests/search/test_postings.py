"""Postings in memory, with FTS5 as the referee: the same chunks with the same bm25, whatever was written meanwhile."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tui.core import profiles
from memory_tui.providers.wires.scripted import Scripted
from memory_tui.search import postings
from memory_tui.search.corpus import Corpus
from memory_tui.search.evidence import Postings
from memory_tui.search.formulas import MOST_CANDIDATES
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.keyword import Matcher
from memory_tui.search.postings import PostingLists
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import SearchContext, gather
from tests.support.stores import SqliteMade, cut_note, vectors_for

WORDS = ["a'b", "Ü", "rose", "roses", "garden", "gardens", "tomato", "snake_case", "咖啡店", "the", "of", "and", "oak"]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SqliteMade]:
    index = SqliteMade(tmp_path / "index.sqlite")
    yield index
    index.close()


def write(made: SqliteMade, name: str, text: str) -> None:
    files = [cut_note(f"memory/{name}.md", text)]
    made.add(files, vectors_for(files))


def text(rng: random.Random) -> str:
    lines = [" ".join(rng.choices(WORDS, range(1, len(WORDS) + 1), k=rng.randint(1, 9))) for _ in range(20)]
    return "\n".join(lines[: rng.randint(1, 20)])


@pytest.mark.parametrize("few", [-1, 3], ids=["always in memory", "FTS5 where it finds few"])
def test_whatever_is_written_fts5_says_the_same(made: SqliteMade, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(postings, "_FEW", few)
    rng = random.Random(5)
    with made.reader() as store:
        lists = PostingLists.of(store)
        for step in range(120):
            name = f"n{rng.randint(0, 25)}"
            if f"memory/{name}.md" in store.known() and rng.random() < 0.3:
                made.remove([f"memory/{name}.md"])
            elif rng.random() < 0.05:
                made.forget_log()
            else:
                # Now and then a note whose chunks repeat each other.
                write(made, name, "rose " * 400 if rng.random() < 0.1 else text(rng))
            with store.snapshot():
                lists = lists.refresh(store)
                for form in ("plain", "stemmed"):
                    for join in ("all", "any"):
                        words = rng.choices([*WORDS, "咖", "_", "absent", "*"], k=rng.randint(1, 5))
                        theirs = store.words.match(words, form, join)
                        ours = lists.match(store.words, words, form, join)
                        assert ours.rowids.tolist() == theirs.rowids.tolist(), (step, words, form, join)
                        assert ours.bm25.tolist() == theirs.bm25.tolist(), (step, words, form, join)
                        counted = lists.frequency(store.words, words, form)
                        assert counted == store.words.frequency(words, form)
                        assert counted == [len(store.words.match([word], form, "any").rowids) for word in words]


def test_a_reader_of_an_older_state_is_not_told_of_the_newer(made: SqliteMade) -> None:
    for number in range(6):
        write(made, f"n{number}", "rose garden " * (number + 1))
    with ExitStack() as stack:
        old, new = (stack.enter_context(made.reader()) for _ in range(2))
        stack.enter_context(old.snapshot())
        before = PostingLists.of(old)
        before.match(old.words, ["rose"], "plain", "any")
        made.remove(["memory/n1.md"])
        write(made, "n9", "rose")
        with new.snapshot():
            after = before.refresh(new)
            for word in ("rose", "garden"):
                found = after.match(new.words, [word], "plain", "any")
                assert [column.tolist() for column in found] == [
                    column.tolist() for column in new.words.match([word], "plain", "any")
                ]
        for word in ("rose", "garden"):
            found = before.match(old.words, [word], "plain", "any")
            assert [column.tolist() for column in found] == [
                column.tolist() for column in old.words.match([word], "plain", "any")
            ]


def test_a_save_reads_the_new_chunks_of_a_word_alone(made: SqliteMade, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(made, f"n{number}", "rose garden")
    with made.reader() as store:
        lists = PostingLists.of(store)
        lists.match(store.words, ["rose"], "stemmed", "any")
        read: list[int] = []
        real = store.words.occurrences
        monkeypatch.setattr(
            store.words, "occurrences", lambda *args: (read.append(len((found := real(*args)).rowids)), found)[1]
        )
        lists.match(store.words, ["rose"], "stemmed", "any")
        assert read == []
        write(made, "n20", "a rose")
        lists = lists.refresh(store)
        assert len(lists.match(store.words, ["rose"], "stemmed", "any").rowids) == 21
        assert read == [1]


def test_what_is_asked_again_is_read_again_only_after_a_save(made: SqliteMade, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["rose", "garden"]
    for number in range(3):
        write(made, f"n{number}", "rose garden")
    with made.reader() as store:
        lists = PostingLists.of(store)
        read: list[str] = []
        for name in ("match", "frequency"):
            real = getattr(store.words, name)
            monkeypatch.setattr(
                store.words, name, lambda *args, real=real, name=name: (read.append(name), real(*args))[1]
            )
        for chunks in (3, 4):
            for _ in range(2):
                assert len(lists.match(store.words, asked, "plain", "all").rowids) == chunks
                assert lists.frequency(store.words, asked, "plain") == [chunks, chunks]
            assert read == ["match", "frequency"]
            read.clear()
            write(made, "new", "a rose in the garden")
            lists = lists.refresh(store)


def test_the_words_asked_for_longest_ago_are_given_up(made: SqliteMade, monkeypatch: pytest.MonkeyPatch) -> None:
    write(made, "a", "rose garden oak")
    write(made, "b", "rose garden oak")
    monkeypatch.setattr(postings, "_MOST_POSTINGS", 4)
    with made.reader() as store:
        lists = PostingLists.of(store)
        for word in ("rose", "garden", "rose", "oak"):
            assert len(lists.match(store.words, [word], "plain", "any").rowids) == 2
        assert [expression for _, expression in lists._words.known] == ['"rose"', '"oak"']
        assert lists._words.postings == 4


def test_many_dead_chunks_are_given_up(made: SqliteMade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_DEAD_SPARE", 3)
    with made.reader() as store:
        lists = PostingLists.of(store)
        for number in range(12):
            write(made, "a", f"rose number {number}")
            lists = lists.refresh(store)
            assert len(lists.match(store.words, ["rose"], "plain", "any").rowids) == 1
            assert len(lists._chunks["plain"].rowids) <= 5


def test_a_search_answers_the_same_with_postings_in_memory(made: SqliteMade) -> None:
    rng = random.Random(7)
    for number in range(60):
        write(made, f"2026-0{number % 9 + 1}-{number % 27 + 1:02}-{number}", text(rng))
    with made.reader() as store:
        corpus = Corpus.load(store)
        lists = PostingLists.of(store)
        for query in ("rose garden", "the snake_case of tomato seeds", "咖啡", "oak oak roses", "nothing here"):
            for provider in (Scripted(), None):
                pair = [
                    gather(query, SearchContext(store, corpus, Dates.of(corpus), provider, lists=each), 1.79e9)
                    for each in (None, lists)
                ]
                for name in ("openclaw-2026.3", "recommended"):
                    one, other = (rank(evidence, profiles.compose(name, {}, {})) for evidence in pair)
                    assert one.recalled == other.recalled
                    assert list(one.lost) == list(other.lost)
                    assert (one.plan, one.funnel) == (other.plan, other.funnel)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, -1), min_size=0, max_size=3 * MOST_CANDIDATES))
def test_matches_beyond_the_pool_know_their_rank(values: list[int]) -> None:
    bm25 = np.array(values, np.float64)
    rows = np.arange(len(values), dtype=np.int64) * 3
    order = np.lexsort((rows, bm25))
    found = Postings.of(rows, bm25)
    assert found.rows[:MOST_CANDIDATES].tolist() == rows[order][:MOST_CANDIDATES].tolist()
    assert sorted(found.rows.tolist()) == rows.tolist()
    for rank_, row in enumerate(rows[order].tolist(), 1):
        assert found.rank_of(row) == (rank_, bm25[row // 3])
    assert found.rank_of(1) is None


def test_a_question_weighs_words_by_lucenes_idf_with_or_without_lists(made: SqliteMade) -> None:
    rng = random.Random(8)
    for at in range(40):
        write(made, f"n{at}", text(rng))
    with made.reader() as store, store.snapshot():
        corpus, lists = Corpus.load(store), PostingLists.of(store)
        common = 0
        for _ in range(60):
            question = " ".join(rng.choices([*WORDS, "absent"], k=rng.randint(1, 5)))
            sides = [
                Matcher(store.words, corpus, None, store.words.cut(), by_text=False, lists=own).recommended(
                    question, None
                )
                for own in (None, lists)
            ]
            assert sides[0].postings.rows.tolist() == sides[1].postings.rows.tolist(), question
            assert sides[0].postings.bm25.tolist() == sides[1].postings.bm25.tolist(), question
            plan = sides[0].plan
            common += bool(plan.counted)
            expected: dict[int, float] = {}
            for number, word in enumerate((*plan.words, *plan.counted)):
                holding, chunks = store.words.frequency([word], "stemmed")[0], store.words.size("stemmed")
                by_fts5 = max(math.log((chunks - holding + 0.5) / (holding + 0.5)), 1e-6)
                by_lucene = math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))
                found = store.words.match([word], "stemmed", "any")
                for rowid, bm25 in zip(found.rowids.tolist(), found.bm25.tolist(), strict=True):
                    row = int(corpus.rows_of([rowid])[0])
                    if row >= 0 and (row in expected or number < len(plan.words)):
                        expected[row] = expected.get(row, 0.0) + bm25 / by_fts5 * by_lucene
            assert dict(zip(sides[0].postings.rows.tolist(), sides[0].postings.bm25.tolist(), strict=True)) == (
                pytest.approx(expected)
            ), question
        assert common, "no question had a word of most chunks"
