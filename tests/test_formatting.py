"""Counts, scores and names of fields are written in one way."""

import pytest

from memory_tui.formatting import camel, plural, signed


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "file", "0 files"), (1, "file", "1 file"), (2, "file", "2 files"), (12_345, "file", "12,345 files"),
        (1, "query", "1 query"), (12, "query", "12 queries"), (3, "day", "3 days"),
    ],
)  # fmt: skip
def test_a_count_agrees_with_its_noun(count, noun, text):
    assert plural(count, noun) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0214, "+0.021"), (-0.5, "-0.500"), (0.0, "0.000"), (-0.0004, "0.000"), (0.0004, "0.000")]
)
def test_a_gain_has_its_sign_and_nothing_has_none(value, text):
    assert signed(value) == text


@pytest.mark.parametrize(("name", "text"), [("start_line", "startLine"), ("path", "path"), ("a_b_c", "aBC")])
def test_a_field_is_named_in_camel_case(name, text):
    assert camel(name) == text
