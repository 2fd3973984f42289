"""What is found by rounded vectors is what whole ones give, to the last bit; without the former the latter are used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.providers.wires.scripted import Scripted
from memory_tui.search import retrieve
from memory_tui.search.corpus import Block, Corpus, Files, cosines, distinct, mean_of, products
from memory_tui.search.formulas import MOST_CANDIDATES
from memory_tui.search.meaning import rounded
from memory_tui.search.meaning.cosines import Cosines, ReadOnce
from memory_tui.search.meaning.rounded import Rounded
from memory_tui.search.retrieve import Asked, SearchContext

KINDS = ("random", "near the mean", "nearly equal", "equal", "few axes", "far apart in length", "alike but one")


def vectors_of(kind: str, some: np.random.Generator, rows: int, dims: int) -> np.ndarray:
    found = some.standard_normal((rows, dims))
    if kind == "near the mean":
        found = found * 0.05 + 1.0
    elif kind == "nearly equal":
        found = found[:1] + found * 1e-7
    elif kind == "equal":
        found = found[some.integers(0, min(3, rows), rows)]
    elif kind == "few axes":
        found = np.eye(dims)[some.integers(0, dims, rows)]
    elif kind == "alike but one":
        found = np.where(np.arange(dims) == 0, some.standard_normal((rows, 1)) * 1e-3, found[:1])
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-30)
    if kind == "far apart in length":
        found *= 10.0 ** some.integers(-6, 2, (rows, 1))
    return found.astype(np.float32)


def corpus_of(vectors: np.ndarray, some: np.random.Generator, damaged: bool) -> Corpus:
    """A corpus of `vectors` of which some are missing, of length 0, no numbers, or in dead rows."""
    rows, dims = vectors.shape
    block = Block.empty(dims, rows)
    embedded, zero = some.random(rows) < 0.9, some.random(rows) < 0.05
    vectors[zero | ~embedded] = 0
    if damaged:
        vectors[some.integers(0, rows, 3), some.integers(0, dims, 3)] = [np.nan, np.inf, 1e30]
    block.matrix[:rows] = vectors
    block.used = rows
    block.rowids[:rows] = np.arange(rows)
    slots = np.flatnonzero(some.random(rows) < 0.9) if some.random() < 0.5 else np.arange(rows)
    files, identity = Files((), (), np.empty(0, np.int64), {}), replace(Scripted().identity, dims=dims)
    return Corpus(1, "u", identity, files, block, slots, np.array([embedded, embedded & ~zero])[:, slots])


def found(corpus: Corpus, query: np.ndarray, kept: np.ndarray | None, by_words: np.ndarray) -> tuple[Cosines, list]:
    context = SearchContext(None, corpus, None, None)  # type: ignore[arg-type]
    once = ReadOnce(object(), corpus)  # type: ignore[arg-type]
    cosine, _ = retrieve._cosine(context, Asked("q", corpus.identity, query), kept, by_words.tolist(), once)
    cosine, nearest = retrieve._nearest(query, cosine, by_words, once, MOST_CANDIDATES)
    once.over()
    return cosine, nearest.tolist()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(
    st.sampled_from(KINDS),
    st.integers(1, 2_000),
    st.sampled_from([4, 8, 32, 100, 256, 384]),
    st.sampled_from(["one", "a row", "any", "tiny"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 999),
)
def test_the_rounded_vectors_lose_nothing(
    kind: str, rows: int, dims: int, asked: str, damaged: bool, one_source: bool, seed: int
) -> None:
    some = np.random.default_rng(seed)
    vectors = vectors_of(kind, some, rows, dims)
    query = some.standard_normal(dims).astype(np.float32)
    if asked == "a row":
        query = vectors[some.integers(0, rows)].copy()
    elif asked == "one":
        query = np.eye(dims, dtype=np.float32)[0]
    query /= max(float(np.linalg.norm(query)), 1e-30)
    query *= np.float32(1e-3 if asked == "tiny" else 1)
    corpus = corpus_of(vectors, some, damaged)
    kept = some.random(len(corpus)) < 0.5 if one_source else None
    by_words = (
        np.sort(some.choice(len(corpus), min(len(corpus), 40), replace=False)) if len(corpus) else np.empty(0, int)
    )
    whole, nearest = found(corpus, query, kept, by_words)
    block = corpus._block
    block.rounded = Rounded.of(
        block.matrix[: block.used], mean_of(np.nan_to_num(block.matrix, posinf=0)), len(block.rowids)
    )
    few, same = found(corpus, query, kept, by_words)
    assert same == nearest
    every = np.arange(len(corpus))
    for at in (by_words, np.array(nearest, np.int64), every[::-1]):
        assert np.array_equal(few[at], whole[at], equal_nan=True)
    assert np.array_equal(few.every(), whole.every(), equal_nan=True)
    if len(corpus):
        one = int(some.integers(0, len(corpus)))
        assert np.array_equal(few[one], whole[one], equal_nan=True)
    low, high = corpus.bounds(query) or (None, None)
    if low is not None:
        exact = cosines(corpus, query).astype(np.float64)
        finite = np.isfinite(exact)
        assert (exact[finite] >= low[finite] - 4e-6).all()
        assert (exact[finite] <= high[finite] + 4e-6).all()
        most = corpus.most(every, query)
        assert (exact[finite] <= most[finite] + 4e-6).all()
        assert (most[finite] <= high[finite] + 4e-6).all()


def ten_thousand() -> tuple[Corpus, np.ndarray]:
    some = np.random.default_rng(7)
    vectors = vectors_of("random", some, 10_000, 64)
    corpus = corpus_of(vectors, some, False)
    query = some.standard_normal(64).astype(np.float32)
    return corpus, query / np.linalg.norm(query)


@pytest.mark.parametrize("share", [1, 2])
def test_few_whole_vectors_are_read(monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    corpus, query = ten_thousand()
    kept = np.arange(len(corpus)) % share == 0
    whole, nearest = found(corpus, query, kept, np.empty(0, np.int64))
    corpus._block.add_rounded()
    read: list[int] = []
    vectors = Corpus.vectors
    monkeypatch.setattr(Corpus, "vectors", lambda own, rows: read.extend(rows) or vectors(own, rows))
    few, same = found(corpus, query, kept, np.empty(0, np.int64))
    assert same == nearest
    assert len(read) == len(set(read)) < 1_000
    far = np.setdiff1d(np.arange(len(corpus)), read)[:5]
    assert np.array_equal(few[far], whole[far], equal_nan=True)
    assert read[-5:] == far.tolist()


def test_a_product_outside_its_bounds_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, query = ten_thousand()
    _, nearest = found(corpus, query, None, np.empty(0, np.int64))
    corpus._block.add_rounded()
    multiplied = rounded.dot
    assert multiplied is not None
    for wrong in (lambda a, b: -np.asarray(multiplied(a, b)), lambda a, b: np.full(len(a), 3.0)):
        monkeypatch.setattr(rounded, "dot", wrong)
        assert found(corpus, query, None, np.empty(0, np.int64))[1] == nearest


def test_without_the_library_whole_vectors_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, query = ten_thousand()
    _, nearest = found(corpus, query, None, np.empty(0, np.int64))
    corpus._block.add_rounded()
    assert corpus.bounds(query) is not None
    monkeypatch.setattr(rounded, "dot", None)
    assert corpus.bounds(query) is None
    assert not rounded.serve(10_000, 64)
    assert found(corpus, query, None, np.empty(0, np.int64))[1] == nearest


@given(st.lists(st.integers(0, 50), max_size=30), st.sampled_from([1, 100]))
def test_each_row_comes_once_in_order(rows: list[int], times: int) -> None:
    assert distinct(np.array(rows * times, np.int64)).tolist() == sorted(set(rows))


def test_a_product_is_the_same_to_the_digit_wherever_its_row_stands() -> None:
    generator = np.random.default_rng(7)
    for dims in (8, 256, 384):
        rows = generator.standard_normal((23, dims)).astype(np.float32)
        vector = generator.standard_normal(dims).astype(np.float32)
        whole = products(rows, vector)
        for first in range(9):
            for last in range(first, 24):
                assert (products(rows[first:last].copy(), vector) == whole[first:last]).all()
