"""A merge keeps what both changed, byte for byte, or says that the changes touch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_tui.curate.merge import changed_spans, merge

LINE = st.binary(max_size=4).map(lambda data: data.replace(b"\n", b""))
TEXT = st.tuples(st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r\n"])), max_size=8), LINE).map(
    lambda parts: b"".join(line + end for line, end in parts[0]) + parts[1]
)


def test_changes_of_different_lines_are_both_kept():
    base = b"a\nb\nc\nd\ne\n"
    assert merge(base, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n").merged == b"A\nb\nc\nd\nE\n"
    assert merge(base, b"b\nc\nd\ne\n", b"a\nb\nc\nx\nd\ne\n").merged == b"b\nc\nx\nd\ne\n"


def test_changes_of_the_same_or_of_neighbouring_lines_touch():
    base = b"a\nb\nc\nd\n"
    found = merge(base, b"a\nB\nc\nd\n", b"a\nb2\nc\nd\n")
    assert found.merged is None
    assert [(h.base, h.mine, h.theirs) for h in found.conflicts] == [((b"b\n",), (b"B\n",), (b"b2\n",))]
    assert merge(base, b"a\nB\nc\nd\n", b"a\nb\nC\nd\n").merged is None


def test_lines_added_at_the_end_stay_whatever_the_other_did_to_the_last_ones():
    base = b"# day\n- one\n"
    assert merge(base, base + b"- mine\n", base + b"- theirs\n").merged == base + b"- theirs\n- mine\n"
    assert merge(base, b"# day\n- ONE\n", base + b"- theirs\n").merged == b"# day\n- ONE\n- theirs\n"
    assert merge(base, base + b"- mine\n", b"# day\n- ONE\n").merged == b"# day\n- ONE\n- mine\n"
    assert merge(base, b"# day\n", base + b"- theirs\n").merged == b"# day\n- theirs\n"


def test_a_missing_last_line_end_is_merged_by_itself():
    assert merge(b"a\nb", b"A\nb", b"a\nb\nc\n").merged == b"A\nb\nc\n"
    assert merge(b"a\r\nb", b"a\r\nb\r\nmine", b"A\r\nb").merged == b"A\r\nb\r\nmine"


def test_a_note_that_is_gone_merges_only_with_one_that_was_left_alone():
    assert merge(b"a\n", None, b"a\n").merged is None
    assert not merge(b"a\n", None, b"a\n").conflicts
    assert merge(b"a\n", None, b"b\n").conflicts
    assert merge(b"a\n", b"b\n", None).conflicts
    assert merge(None, b"a\n", b"b\n").conflicts
    assert merge(None, b"a\n", b"a\n").merged == b"a\n"


@given(TEXT, TEXT)
def test_one_change_alone_is_that_change(base, other):
    assert merge(base, other, base).merged == other
    assert merge(base, base, other).merged == other
    assert merge(base, other, other).merged == other


@given(TEXT, TEXT, TEXT)
def test_no_line_that_anybody_added_is_lost(base, mine, theirs):
    found = merge(base, mine, theirs)
    assert b"".join(line for h in found.hunks for line in h.mine).rstrip(b"\r\n") == mine.rstrip(b"\r\n")
    assert b"".join(line for h in found.hunks for line in h.theirs).rstrip(b"\r\n") == theirs.rstrip(b"\r\n")
    if found.merged is not None:
        kept = set(found.merged.replace(b"\r", b"").split(b"\n"))
        old = set(base.replace(b"\r", b"").split(b"\n"))
        for text in (mine, theirs):
            assert set(text.replace(b"\r", b"").split(b"\n")) - old <= kept


@given(TEXT, st.lists(LINE, max_size=3), TEXT)
def test_what_an_agent_appends_never_conflicts(base, added, mine):
    base = base if not base or base.endswith(b"\n") else base + b"\n"
    tail = b"".join(line + b"\n" for line in added)
    merged = merge(base, mine, base + tail).merged
    assert merged is not None
    if tail:
        assert tail.rstrip(b"\r\n") in merged


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_spans_turn_one_sequence_into_the_other(before, after):
    out, at = [], 0
    for a, b, c, d in changed_spans(before, after):
        out += before[at:a] + after[c:d]
        at = b
    assert out + before[at:] == after
