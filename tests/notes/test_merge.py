"""A merge keeps what both changed, byte for byte, or says that the changes touch."""

import random
import sys
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.notes import changes as merging
from memory_tui.notes.changes import Change, FileChange, changed_spans, diff_lines, merge

LINE = st.binary(max_size=4).map(lambda data: data.replace(b"\n", b""))
TEXT = st.tuples(st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r\n"])), max_size=8), LINE).map(
    lambda parts: b"".join(line + end for line, end in parts[0]) + parts[1]
)
DAY = b"# day\n- one\n"


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        (b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\nE\n"),
        (b"a\nb\nc\nd\ne\n", b"b\nc\nd\ne\n", b"a\nb\nc\nx\nd\ne\n", b"b\nc\nx\nd\ne\n"),
        (b"a\nb\nc\nd\n", b"a\nB\nc\nd\n", b"a\nb2\nc\nd\n", None),
        (b"a\nb\nc\nd\n", b"a\nB\nc\nd\n", b"a\nb\nC\nd\n", None),
        # Lines added at the end stay whatever the other did to the last ones.
        (DAY, DAY + b"- mine\n", DAY + b"- theirs\n", DAY + b"- theirs\n- mine\n"),
        (DAY, b"# day\n- ONE\n", DAY + b"- theirs\n", b"# day\n- ONE\n- theirs\n"),
        (DAY, DAY + b"- mine\n", b"# day\n- ONE\n", b"# day\n- ONE\n- mine\n"),
        # A missing last line end is merged by itself.
        (b"a\nb", b"A\nb", b"a\nb\nc\n", b"A\nb\nc\n"),
        (b"a\r\nb", b"a\r\nb\r\nmine", b"A\r\nb", b"A\r\nb\r\nmine"),
        # A note that is gone merges only with one that was left alone.
        (b"a\n", None, b"b\n", None),
        (b"a\n", b"b\n", None, None),
        (None, b"a\n", b"b\n", None),
        (None, b"a\n", b"a\n", b"a\n"),
    ],
)
def test_changes_of_different_lines_are_both_kept_and_those_of_the_same_touch(base, mine, theirs, merged):
    both = merge(base, mine, theirs)
    assert both.merged == merged
    assert bool(both.conflicts) == (merged is None)
    assert merge(b"a\n", None, b"a\n").conflicts == ()


@given(TEXT, TEXT)
def test_one_change_alone_is_that_change(base, other):
    assert merge(base, other, base).merged == other
    assert merge(base, base, other).merged == other
    assert merge(base, other, other).merged == other


@given(TEXT, TEXT, TEXT)
def test_no_line_that_anybody_added_is_lost(base, mine, theirs):
    found = merge(base, mine, theirs)
    assert b"".join(line for h in found.hunks for line in h.mine).rstrip(b"\r\n") == mine.rstrip(b"\r\n")
    assert b"".join(line for h in found.hunks for line in h.other).rstrip(b"\r\n") == theirs.rstrip(b"\r\n")
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


@given(TEXT, TEXT, TEXT)
def test_large_merges_keep_every_line_as_small_ones_do(base, mine, theirs):
    with mock.patch.object(merging, "_SMALL", 0):
        test_no_line_that_anybody_added_is_lost.hypothesis.inner_test(base, mine, theirs)
        test_one_change_alone_is_that_change.hypothesis.inner_test(base, mine)


def steps(work):
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


def equal(size):
    mine, theirs = [b"same\n"] * size, [b"same\n"] * size
    mine[10] = mine[-10] = b"mine\n"
    theirs[size // 2 :: size // 8] = [b"theirs\n"] * len(theirs[size // 2 :: size // 8])
    return [b"same\n"] * size, mine, theirs


def few_words(size):
    rng = random.Random(size)
    base, mine, theirs = ([b"%d\n" % rng.randrange(9) for _ in range(size)] for _ in range(3))
    return base, mine, theirs


def numbers(size):
    return [b"%d\n" % number for number in range(size)]


SHAPES = {
    "equal": equal,
    "every second": lambda n: (numbers(n), [b"mine " * (at % 2) + b"%d\n" % at for at in range(n)], numbers(n + 1)),
    "few words": few_words,
    "rewritten": lambda n: ([b"a\n"] * n, [b"b\n"] * n, [b"c\n", b"d\n"] * (n // 2)),
    "turned": lambda n: (numbers(n), numbers(n)[::-1], numbers(n)[n // 2 :] + numbers(n)[: n // 2]),
}


@pytest.mark.parametrize("texts", SHAPES.values(), ids=SHAPES)
def test_twice_the_lines_are_twice_the_work(texts):
    """Counted, not timed: a merge and the difference that is shown of it. Squares would be four times the work."""

    def work(size):
        base, mine, theirs = (b"".join(lines) for lines in texts(size))
        change = Change("edit", "one", (FileChange("a.md", base, mine),))
        return steps(lambda: (merge(base, mine, theirs), diff_lines(change)))

    # The first one fills what is kept of words that may label a secret.
    _, one, other = work(1_200), work(600), work(1_200)
    assert other < 2.6 * one, (one, other)
