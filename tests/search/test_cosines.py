"""Products of vectors, and the rows of what was found."""

import numpy as np

from memory_tui.search.corpus import products


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
