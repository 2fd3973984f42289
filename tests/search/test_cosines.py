"""Products of vectors, and the rows of what was found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.search.corpus import distinct, products


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
        many = np.concatenate([rows] * 200)
        assert (products(many, vector) == np.concatenate([whole] * 200)).all()
