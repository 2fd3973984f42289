"""Where hosts cut MEMORY.md: exact to the character at the limits, with multi-byte text and CRLF."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.config import load
from memory_tui.core.jsstring import WHITESPACE
from memory_tui.curate.budget import CLAUDE_CODE, HostLimit, effect, hosts, measure, shares

TEXT = st.text(st.sampled_from("ab \n\r日é😀"), max_size=80)


def units(text: str) -> list[str]:
    """The UTF-16 units of a text, as JavaScript indexes it."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(data), 2)]


def offset(text: str, line: int, column: int) -> int:
    """The character at a line and column."""
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def test_at_the_limit_all_is_read_and_one_more_is_cut():
    exact = b"x" * 20_000
    assert measure(exact, HostLimit("openclaw")).cut is None
    # White space at the end does not count.
    assert measure(exact + b" \r\n\n", HostLimit("openclaw")).cut is None
    cut = measure(exact + b"y", HostLimit("openclaw")).cut
    assert (cut.line, cut.column, cut.until_line, cut.until_column) == (1, 14_001, 1, 16_002)
    assert cut.lost == 20_001 - 14_000 - 4_000


def test_emoji_count_two_and_umlauts_one():
    assert measure(("é" * 10).encode(), HostLimit("openclaw", 10)).cut is None
    assert measure(("😀" * 5).encode(), HostLimit("openclaw", 10)).cut is None
    assert measure(("😀" * 5 + "x").encode(), HostLimit("openclaw", 10)).used == 11


def test_crlf_counts_two_and_lines_are_told():
    data = b"".join(b"line %02d\r\n" % n for n in range(10))
    cut = measure(data, HostLimit("openclaw", 50)).cut
    # The head has 35 characters: three lines of nine and eight more; the tail has ten, without the last line end.
    assert (cut.line, cut.column) == (4, 9)
    assert (cut.until_line, cut.until_column) == (9, 7)


@given(TEXT, st.integers(5, 60))
def test_what_is_kept_is_what_javascript_keeps(text, limit):
    found = measure(text.encode(), HostLimit("openclaw", limit))
    trimmed = text.rstrip(WHITESPACE)
    all_units = units(trimmed)
    assert found.used == len(all_units)
    assert (found.cut is not None) == (len(all_units) > limit)
    if found.cut is not None:
        head, tail = int(limit * 0.7), int(limit * 0.2)
        first = "".join(all_units[:head]).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        last = "".join(all_units[-tail:]).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        assert trimmed[: offset(text, found.cut.line, found.cut.column)] == first
        assert trimmed[offset(text, found.cut.until_line, found.cut.until_column) :] == last


@given(st.integers(1, 400), st.integers(1, 100_000))
def test_newer_releases_never_give_more_than_the_limit(limit, more):
    length = limit + more
    head, tail = shares(length, limit, "MEMORY.md", newer=True)
    assert 0 <= tail <= head <= limit or (head, tail) == (0, 0)
    assert head + tail < limit


def test_the_newer_shares_leave_room_for_the_marker():
    # 20,000 less the marker and two line ends, three to one.
    marker = (
        "\n[...truncated, read MEMORY.md for full content...]\n"
        "…(truncated MEMORY.md: kept 14904+4968 chars of 30000)…\n"
    )
    head, tail = shares(30_000, 20_000, "MEMORY.md", newer=True)
    room = 20_000 - len(marker) - 2
    assert (head, tail) == (int(room * 0.75), int(room * 0.25))


def test_claude_code_reads_200_lines():
    lines = [b"- %d\n" % n for n in range(201)]
    assert measure(b"".join(lines[:200]), CLAUDE_CODE).cut is None
    found = measure(b"".join(lines), CLAUDE_CODE)
    assert (found.unit, found.used, found.limit, found.cut.line, found.cut.column, found.cut.lost) == (
        "lines",
        201,
        200,
        201,
        1,
        1,
    )
    assert found.cut.lost_lines == 1


def test_claude_code_reads_25000_bytes_in_whole_lines():
    line = "é" * 49 + "\r\n"
    exact = (line * 250).encode()
    assert len(exact) == 25_000
    assert measure(exact, CLAUDE_CODE).unit == "lines"
    long = ("é" * 249 + "\r\n").encode() * 51
    found = measure(long, CLAUDE_CODE)
    assert (found.unit, found.used) == ("bytes", 500 * 51 - 2)
    assert (found.cut.line, found.cut.column, found.cut.lost) == (51, 1, 498 + 1)
    assert measure(long[:25_000], CLAUDE_CODE).cut is None


def test_a_single_long_line_is_cut_inside():
    found = measure(b"x" * 25_001, CLAUDE_CODE)
    assert (found.cut.line, found.cut.column, found.cut.lost) == (1, 25_001, 1)


@pytest.mark.parametrize("data", [None, b"", b"\n \n", b"\xff\xfe"])
def test_nothing_is_within_every_budget(data):
    for host in (HostLimit("openclaw"), CLAUDE_CODE):
        assert measure(data, host).cut is None


def test_the_configuration_names_the_limit():
    def found(text: str) -> HostLimit:
        return hosts(load.parse(text, Path("openclaw.json")))[0]

    assert found("{}") == HostLimit("openclaw", 20_000, False, "OpenClaw's default")
    named = found("{agents: {defaults: {bootstrapMaxChars: 12000, memorySearch: {}}}}")
    assert (named.limit, named.newer) == (12_000, False)
    assert "openclaw.json:1" in named.origin
    total = found("{agents: {defaults: {bootstrapTotalMaxChars: 9000}}, memory: {search: {}}}")
    assert (total.limit, total.newer) == (9_000, True)


def test_the_effect_of_a_change_is_a_sentence():
    host = HostLimit("openclaw", 100)
    assert effect(b"x" * 50, b"x" * 90, host) == "OpenClaw: 50 to 90 of 100 characters."
    assert effect(b"x" * 50, b"x\n" * 60, host) == (
        "OpenClaw: 50 to 119 of 100 characters; it cuts from line 36, 29 characters are not read."
    )
    assert "lines" in effect(b"x", b"x\n" * 300, CLAUDE_CODE)
