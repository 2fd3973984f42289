"""JavaScript's string rules: what lengths, cuts, trimming and hashes come out as there."""

import hashlib
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from memory_tui import jsstring

ANY_TEXT = st.text(st.characters() | st.sampled_from("a \n🚀中\ud800\udfff"))
WHOLE_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("a \n🚀中"))


def units(text):
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@given(ANY_TEXT)
def test_only_characters_above_ffff_count_twice(text):
    assert jsstring.has_astral(text) == any(ord(c) > 0xFFFF for c in text)
    assert jsstring.utf16_len(text) == len(text) + sum(ord(c) > 0xFFFF for c in text)


@given(ANY_TEXT, st.integers(1, 9))
def test_slices_have_the_asked_size_and_lose_no_unit(text, size):
    slices = jsstring.utf16_slices(text, size)
    assert all(len(units(piece)) == size for piece in slices[:-1])
    assert all(1 <= len(units(piece)) <= size for piece in slices[-1:])
    assert [unit for piece in slices for unit in units(piece)] == units(text)


@given(WHOLE_TEXT, st.integers(0, 12))
def test_the_head_never_ends_in_half_a_character(text, count):
    head = jsstring.utf16_head(text, count)
    assert text.startswith(head)
    assert jsstring.utf16_len(head) <= count
    if head != text:
        following = text[len(head)]
        assert jsstring.utf16_len(head) + jsstring.utf16_len(following) > count


def test_trim_knows_the_byte_order_mark_but_not_next_line():
    assert jsstring.trim("\ufeff\u3000\u2028 a b \n\u00a0") == "a b"
    assert jsstring.trim("\x85\x1ca\x1f") == "\x85\x1ca\x1f"


def test_white_space_is_what_ecmascript_lists():
    spaces = {chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) == "Zs"}
    assert set(jsstring.WHITESPACE) == spaces | set("\t\n\v\f\r\u2028\u2029\ufeff")


@given(ANY_TEXT)
def test_well_formed_text_can_be_encoded_and_keeps_its_lengths(text):
    fixed = jsstring.well_formed(text)
    fixed.encode()
    assert jsstring.utf16_len(fixed) == jsstring.utf16_len(text)
    assert jsstring.well_formed(fixed) == fixed
    assert jsstring.sha256_hex(text) == hashlib.sha256(fixed.encode()).hexdigest()


def test_two_halves_that_meet_are_one_character():
    assert jsstring.well_formed("\ud83d\ude80").encode() == "🚀".encode()
    assert jsstring.well_formed("a\ud83d").encode() == "a\ufffd".encode()
