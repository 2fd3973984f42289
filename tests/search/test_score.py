"""The formulas, one by one, with the numbers of the documented behaviour."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.search import score
from memory_tui.search.corpus import exact_cosines, products
from memory_tui.search.rank import Likeness, mmr


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ((0.7, 0.3), (0.7, 0.3)),
        ((2.0, 1.0), (0.5, 0.5)),
        ((0.0, 0.0), (0.7, 0.3)),
        ((1.0, 0.0), (1.0, 0.0)),
        ((-1.0, 0.5), (0.0, 1.0)),
        ((0.2, 0.2), (0.5, 0.5)),
    ],
)
def test_weights_are_clamped_and_divided_by_their_sum(given_, expected):
    assert score.normalised_weights(*given_) == pytest.approx(expected)


def jaccard(a, b):
    return len(a & b) / len(a | b) if a or b else 1.0


def reference_mmr(scores, tokens, lam):
    """The published greedy loop, written as plainly as possible."""
    low, high = min(scores), max(scores)
    relevance = [(s - low) / (high - low) if high > low else 1.0 for s in scores]
    chosen: list[int] = []
    while len(chosen) < len(scores):
        best, best_value = -1, -math.inf
        for i in range(len(scores)):
            if i in chosen:
                continue
            similar = max((jaccard(tokens[i], tokens[j]) for j in chosen), default=0.0)
            value = lam * relevance[i] - (1 - lam) * similar
            if value > best_value or (value == best_value and scores[i] > scores[best]):
                best, best_value = i, value
        chosen.append(best)
    return chosen


@given(
    st.lists(st.tuples(st.integers(0, 20), st.frozensets(st.sampled_from("abcdef"))), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
def test_mmr_equals_the_plain_greedy_loop(items, lam):
    scores = [score / 20 for score, _ in items]
    tokens = [words for _, words in items]
    fast = list(mmr(scores, Likeness(tokens).row, lam))
    assert sorted(c.item for c in fast) == list(range(len(items)))
    plain = reference_mmr(scores, tokens, lam)
    # Sums of floats in another order can turn a tie; then both orders must be worth the same at the first difference.
    for place, (a, b) in enumerate(zip([c.item for c in fast], plain, strict=True)):
        if a != b:
            before = plain[:place]
            worth = [
                lam * fast[[c.item for c in fast].index(i)].relevance
                - (1 - lam) * max((jaccard(tokens[i], tokens[j]) for j in before), default=0.0)
                for i in (a, b)
            ]
            assert worth[0] == pytest.approx(worth[1], abs=1e-9)
            break


@given(st.integers(0, 40), st.sampled_from([1, 2, 7, 32, 256]), st.integers(0, 99))
def test_a_cosine_is_summed_in_the_order_of_its_numbers(rows, dims, seed):
    """Number by number in single precision, as sqlite-vec does, however many vectors are compared."""
    some = np.random.default_rng(seed)
    vectors, query = some.standard_normal((rows, dims), dtype=np.float32), some.standard_normal(dims, dtype=np.float32)

    def total(numbers):
        return float(np.add.accumulate(numbers, dtype=np.float32)[-1])

    for found, own in zip(exact_cosines(vectors, query).tolist(), vectors, strict=True):
        lengths = math.sqrt(total(own * own)) * math.sqrt(total(query * query))
        assert found == 1.0 - float(np.float32(1.0 - total(own * query) / lengths))


def test_a_product_is_the_same_to_the_digit_wherever_its_row_stands():
    generator = np.random.default_rng(7)
    for dims in (8, 256, 384):
        rows = generator.standard_normal((23, dims)).astype(np.float32)
        vector = generator.standard_normal(dims).astype(np.float32)
        whole = products(rows, vector)
        for first in range(9):
            for last in range(first, 24):
                assert (products(rows[first:last].copy(), vector) == whole[first:last]).all()
        many = np.concatenate([rows] * 200)
        assert (products(many, vector) == np.concatenate([whole] * 200)).all()
