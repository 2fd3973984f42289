"""JavaScript's string rules: what lengths, cuts, trimming and hashes come out as there."""

import sys
import unicodedata

from memory_tui import jsstring


def test_trim_knows_the_byte_order_mark_but_not_next_line():
    assert jsstring.trim("\ufeff\u3000\u2028 a b \n\u00a0") == "a b"
    assert jsstring.trim("\x85\x1ca\x1f") == "\x85\x1ca\x1f"


def test_white_space_is_what_ecmascript_lists():
    spaces = {chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) == "Zs"}
    assert set(jsstring.WHITESPACE) == spaces | set("\t\n\v\f\r\u2028\u2029\ufeff")
