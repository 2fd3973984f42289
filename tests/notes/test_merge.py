"""A merge keeps what both changed, byte for byte, or says that the changes touch."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from difflib import SequenceMatcher
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.notes import diff
from memory_tui.notes import merge as merging
from memory_tui.notes.changes import Change, FileChange
from memory_tui.notes.merge import changed_spans, common_head, matching, merge

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


def plain(one: list[int], other: list[int]) -> list[tuple[int, int, int]]:
    """The runs as difflib finds them in the middle of two texts, without bounds."""
    most = min(len(one), len(other))
    head = next((at for at in range(most) if one[at] != other[at]), most)
    tail = next((at for at in range(most - head) if one[-1 - at] != other[-1 - at]), most - head)
    middle = SequenceMatcher(None, one[head : len(one) - tail], other[head : len(other) - tail], autojunk=False)
    runs = [(head + a, head + b, count) for a, b, count in middle.get_matching_blocks()]
    return [run for run in [(0, 0, head), *runs, (len(one) - tail, len(other) - tail, tail)] if run[2]]


NUMBERS = st.lists(st.integers(0, 5), max_size=40)


@given(NUMBERS, NUMBERS)
def test_small_texts_are_matched_as_difflib_does(one, other):
    def pairs(runs: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
        return [(a + at, b + at) for a, b, count in runs for at in range(count)]

    assert pairs(matching(one, other)) == pairs(plain(one, other))


@given(TEXT, TEXT, TEXT)
def test_large_merges_keep_every_line_as_small_ones_do(base, mine, theirs):
    with mock.patch.object(merging, "_SMALL", 0):
        test_no_line_that_anybody_added_is_lost.hypothesis.inner_test(base, mine, theirs)  # type: ignore[attr-defined]
        test_one_change_alone_is_that_change.hypothesis.inner_test(base, mine)  # type: ignore[attr-defined]


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python `work` runs."""
    count = 0

    def line(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return line

    was = sys.gettrace()
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(was)
    return count


def equal(size: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    mine, theirs = [b"same\n"] * size, [b"same\n"] * size
    mine[10] = mine[-10] = b"mine\n"
    theirs[size // 2 :: size // 8] = [b"theirs\n"] * len(theirs[size // 2 :: size // 8])
    return [b"same\n"] * size, mine, theirs


def every_second(size: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    base = [b"%d\n" % number for number in range(size)]
    return base, [line if at % 2 else b"mine " + line for at, line in enumerate(base)], [*base, b"theirs\n"]


def few_words(size: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    rng = random.Random(size)
    base, mine, theirs = ([b"%d\n" % rng.randrange(9) for _ in range(size)] for _ in range(3))
    return base, mine, theirs


def rewritten(size: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    return [b"a\n"] * size, [b"b\n"] * size, [b"c\n", b"d\n"] * (size // 2)


def turned(size: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    base = [b"%d\n" % number for number in range(size)]
    return base, base[::-1], base[size // 2 :] + base[: size // 2]


@pytest.mark.parametrize("texts", [equal, every_second, few_words, rewritten, turned])
def test_twice_the_lines_are_twice_the_work(texts):
    """Counted, not timed: a merge and the difference that is shown of it. Squares would be four times the work."""

    def work(size: int) -> int:
        base, mine, theirs = (b"".join(lines) for lines in texts(size))
        change = Change("edit", "one", (FileChange("a.md", base, mine),))
        return steps(lambda: (merge(base, mine, theirs), diff.lines(change)))

    one, other = work(600), work(1_200)
    assert other < 2.6 * one, (one, other)


def test_what_both_began_with():
    assert common_head(b"# day\n\n- a\n", b"# day\n\n- b\n") == b"# day\n\n"
    assert common_head(b"# a\n", b"# b\n") is None
    assert common_head(b"# a", b"# a\n- b\n") is None
