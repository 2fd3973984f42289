"""JSON5: what is accepted, where it stands, and where it stops being JSON5."""

import json
from pathlib import Path

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.errors import ConfigError

PATH = Path("openclaw.json")

VALID = [
    "{$a_1: .5, 'b': +1e3, \"c\": -0x1F, d: [1,], e: 5., f: -Infinity, g: '\\x41\\u0042\\\nC\\'', h: null, i: true}",
    "// first\n{/* a */ a /* b */ : /* c */ 1 /* d\n\n */, // e\n}",
    "{}",
    "[{},[],[{}]]",
    "'\\\\u12'",
    "'say \"so\"'",
    "'\\q\\/\\v'",
    "\ufeff{a:1}",
    "\t\f\u00a0 {\u2028}",
    "'\\\r\nx'",
    "{\\u0061b: 1, ünï: 2, 'with space': 3, \"\": 4}",
    "\v{a:1}",
    "{a:1,a:2}",
    '"\\ud83d\\ude00"',
]


def tree(text):
    return parse_json5(SourceText(PATH, text))


@pytest.mark.parametrize("text", VALID)
def test_the_tree_holds_what_the_reader_says(text):
    assert tree(text).plain() == pyjson5.decode(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_any_json_is_read_as_json(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert tree(text).plain() == json.loads(text)


@given(VALUES)
def test_every_value_knows_its_characters(value):
    text = f"// a comment\n{json.dumps(value, indent=2)} // and one more"

    def check(node):
        written = text[node.start : node.end]
        assert tree(written).plain() == node.plain()
        line, column = node.source.at(node.start)
        assert text.split("\n")[line - 1][column - 1 :].startswith(written.split("\n")[0])
        for child in node.value if isinstance(node.value, list) else [child for _, child in node.children()]:
            check(child)

    check(tree(text))


@given(st.text(alphabet="{}[]:,'\"\\/*\n ax1.+-eu0", max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text):
    place = (1, 1)
    try:
        tree(text)
    except ConfigError as error:
        place = (error.line, error.column)
    assert (1, 1) <= place <= (text.count("\n") + 1, len(text) + 1)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,\n  b: [1,2\n  "c": 3}', 3, 3), ("", 1, 1), ("{\n a b}", 2, 4), ("{a:012}", 1, 5), ("[1,,2]", 1, 4),
        ("[1] // ok\n/* x", 2, 2), ("'abc", 1, 1), ('"a\\u12"', 1, 4), ("tru", 1, 1), ("{a:undefined}", 1, 4),
        ("[" * 300, 1, 201), ("{a:1;}", 1, 5),
    ],
)  # fmt: skip
def test_an_error_tells_where_it_is_near(text, line, column):
    with pytest.raises(ConfigError) as caught:
        tree(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"near line {line}, column {column}" in caught.value.message


@pytest.mark.parametrize("text", ["1" * 5000, "-1e400", '"\\ud83d x"'], ids=["digits", "exponent", "half a pair"])
def test_what_no_number_or_text_holds_is_refused(text):
    with pytest.raises(ConfigError, match="near line 1"):
        tree(text)
