"""What is shown is safe to look at, and counts, scores and names of fields are written in one way."""

import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from memory_tui.formatting import camel, json_safe, one_line, plural, safe, signed

NASTY = (
    "\x00\x07\x08\t\n\r\x1b\x7f\x85\x9b\x9d\xad\u061c\u200b\u200d\u200e\u2028\u202e\u2066\u2069\ufeff\ud800\U000e0041"
)
ANY_TEXT = st.text(st.characters() | st.sampled_from(NASTY))
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def harmful(character):
    code = ord(character)
    return code < 0x20 or 0x7F <= code <= 0x9F or character in BIDI or 0xD800 <= code <= 0xDFFF


@given(ANY_TEXT)
@example(NASTY)
def test_nothing_harmful_is_left(text):
    assert not [c for c in safe(text) if harmful(c)]
    assert not [c for c in safe(text, keep_newlines=True) if harmful(c) and c != "\n"]
    assert not [c for c in one_line(text) if harmful(c)]
    safe(text).encode()


@given(ANY_TEXT)
@example(NASTY)
@example("\r\r\n\n\r")
def test_safe_text_stays_as_it_is(text):
    once = safe(text)
    assert safe(once) == once
    lines = safe(text, keep_newlines=True)
    assert safe(lines, keep_newlines=True) == lines


@given(ANY_TEXT)
@example("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\r\nh\ri\nj")
def test_lines_are_those_of_the_note_however_they_are_split(text):
    shown = safe(text, keep_newlines=True)
    assert shown.count("\n") == text.count("\n")
    assert "".join(shown.splitlines()) == shown.replace("\n", "")
    assert all(line.endswith("\n") for line in shown.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize(
    "text",
    [
        "", "plain words", "[x] [a](b) [/b] [@click=app.quit]go[/]", "\\[x]", "中文 日本語 한국어", "café cafe\u0301",
        "👩\u200d💻 ❤ 👍 🇨🇦",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "نمی\u200cخواهم", "a\u00a0b",
        "葛\U000e0100城",
    ],
)  # fmt: skip
def test_shown_as_typed(text):
    assert safe(text) == text
    assert safe(text, keep_newlines=True) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x9b31m\x9d0;t\x9c", "<9B>31m<9D>0;t<9C>"),
        ("a\x7fb\x08", "a␡b␈"),
        ("abc\u202etxt.exe", "abc<RLO>txt.exe"),
        ("\u2066x\u2069", "<LRI>x<PDI>"),
        ("ad\u200bmin", "ad<ZWSP>min"),
        ("\ufeff# Title", "<BOM># Title"),
        ("half \ud83d", "half \ufffd"),
        ("a\U000e0041", "a<U+E0041>"),
        ("soft\u00adhyphen", "soft-hyphen"),
        ("a\tb", "a    b"),
        ("a\r\nb\rc\u2028d", "a␍␊b␍c␤d"),
    ],
)
def test_what_acts_gets_a_form(text, shown):
    assert safe(text) == shown


def test_kept_lines_end_in_line_feeds_only():
    assert safe("a\r\nb\rc\nd\x0be\u2029f", keep_newlines=True) == "a\nb␍c\nd␋e␤f"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("hello", 5, "hello"), ("hello", 4, "hel…"), ("hello", 1, "…"), ("hello", 0, ""), ("", 0, ""),
        ("中文", 4, "中文"), ("中文", 3, "中…"), ("中文字", 4, "中…"), ("e\u0301e\u0301e", 3, "e\u0301e\u0301e"),
        ("a bc", 3, "a…"), ("\x1b[1m", 3, "␛[…"),
        ("a⚠\ufe0fbc", 3, "a⚠…"), ("a⚠\ufe0fb", 3, "a⚠b"), ("⌚\ufe0fb", 3, "⌚b"),
        ("  a\n\n b\t\tc\u3000d ", 9, "a b c d"),
    ],
)  # fmt: skip
def test_one_line_is_cut_to_terminal_cells(text, width, shown):
    assert one_line(text, width) == shown


@given(ANY_TEXT, st.integers(0, 30))
def test_one_line_never_exceeds_its_width(text, width):
    def cells(character):
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            return 0
        return 2 if unicodedata.east_asian_width(character) in "WF" else 1

    assert sum(map(cells, one_line(text, width))) <= width


@given(ANY_TEXT)
@example(NASTY + "\U000e0041\U000e007f\u200b\u3164\ufe0f\ufe01\U000e0100\U000e0101\u2060\U0001d173")
def test_json_keeps_every_character_and_shows_none_that_hides(text):
    shown = json_safe(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert json.loads(shown) == {text: [text]}
    assert bare(safe(shown, keep_newlines=True)) == bare(shown)
    shown.encode()


@pytest.mark.parametrize("hidden", ["\ufe00\ufe01\ufe02", "\U000e0100\U000e01ef", "\u3164", "\u034f", "\U000e00a1"])
def test_what_hides_bytes_between_letters_is_made_visible(hidden):
    assert "<U+" in safe(f"a{hidden}b")
    assert json_safe(hidden).count("\\u") >= 1


def bare(text):
    return re.sub("[\ufe0f\U0001f3fb-\U0001f3ff]", "", text)


@pytest.mark.parametrize(
    "text", ["⚠\ufe0f", "❤\ufe0f", "1\ufe0f\u20e3", "👍🏽", "👩🏽\u200d💻", "⌚\ufe0f", "🏳\ufe0f\u200d🌈"]
)
def test_an_emoji_has_the_cells_that_every_terminal_gives_it(text):
    # tmux 3.3 gives a selector none and a tone of the skin two; rich widens by the one, and joins the other.
    assert safe(text) == bare(text)
    assert cell_len(safe(text)) == (2 if text[0] in "👍👩⌚" else 1)


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
