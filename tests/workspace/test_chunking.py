"""Chunks come out as OpenClaw 2026.3.13 cuts them: against recorded rows, published vectors and a plain reading."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import jsstring
from memory_tui.errors import Cancelled, Unreadable
from memory_tui.workspace.chunking import MAX_INPUT_BYTES, cap_bytes, chunk_id, chunk_sections, chunk_text

CHARACTERS = st.sampled_from("ab \n\n\r中🚀é\ufeff\u3000\x85") | st.characters(exclude_categories=["Cs"])
WHOLE_TEXT = st.text(CHARACTERS, max_size=400)
LINES = st.sampled_from(["", "x", "🚀" * 20, "中" * 33, "a🚀" * 25, "y" * 70, "word " * 9, " " * 40, "\ufeff"])
LONG_LINES = st.lists(LINES, min_size=5, max_size=60).map("\n".join)


def plain_chunks(text: str, tokens: int, overlap: int) -> list[tuple[int, int, str]]:
    """The documented procedure, line by line, on strings of UTF-16 units."""

    def split_units(line: str) -> str:
        data = line.encode("utf-16-le")
        return "".join(chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2))

    size, carried = max(32, tokens * 4), max(0, overlap * 4)
    chunks: list[tuple[int, int, str]] = []
    current: list[tuple[str, int]] = []
    total = 0

    def flush() -> None:
        if current:
            joined = "\n".join(segment for segment, _ in current)
            whole = joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            chunks.append((current[0][1], current[-1][1], whole))

    for number, line in enumerate(split_units(text).split("\n"), 1):
        for segment in [line[at : at + size] for at in range(0, len(line), size)] or [""]:
            if total + len(segment) + 1 > size and current:
                flush()
                kept: list[tuple[str, int]] = []
                reached = 0
                for entry in reversed(current if carried else []):
                    kept.insert(0, entry)
                    reached += len(entry[0]) + 1
                    if reached >= carried:
                        break
                current, total = kept, reached
            current.append((segment, number))
            total += len(segment) + 1
    flush()
    return [chunk for chunk in chunks if chunk[2].strip(jsstring.WHITESPACE)]


@given(WHOLE_TEXT | LONG_LINES, st.integers(1, 30), st.integers(0, 20))
def test_chunks_are_those_of_the_line_by_line_procedure(text, tokens, overlap):
    chunks = chunk_text(text, tokens, overlap)
    assert [chunk[:3] for chunk in chunks] == plain_chunks(text, tokens, overlap)
    assert all(chunk.hash == hashlib.sha256(chunk.text.encode()).hexdigest() for chunk in chunks)


PART = "A line of some words about the pump.\n" * 30
"""More than the least of a passage."""
SECTIONS = st.lists(
    st.sampled_from(
        ["# A\n", "## B at 12:30\n", "### C\n", "#### D\n", "- e\n", PART, "```\n# no\n```\n", "|f|g|\n|-|-|\n|h|i|\n"]
    ),
    max_size=12,
).map("".join)


@given(SECTIONS | WHOLE_TEXT, st.integers(1, 400), st.integers(0, 80))
def test_passages_hold_every_line_in_order(text, tokens, overlap):
    chunks = chunk_sections(text, "memory/a.md", tokens, overlap)
    lines = jsstring.well_formed(text).split("\n")
    held = {line for chunk in chunks for line in range(chunk.start_line, chunk.end_line + 1)}
    assert {at for at, line in enumerate(lines, 1) if line.strip(jsstring.WHITESPACE)} <= held
    assert [chunk.start_line for chunk in chunks] == sorted(chunk.start_line for chunk in chunks)


def begins(text: str, path: str = "memory/a.md") -> list[int]:
    return [chunk.start_line for chunk in chunk_sections(text, path)]


def test_passages_end_at_headings_once_they_are_long_enough():
    assert begins(f"# A\n{PART}## B\n{PART}") == [1, 32]
    assert begins(f"# A\n{PART}#### B\nshort\n") == [1]
    assert begins(f"# A\nshort\n## B\n{PART}") == [1]
    assert begins(f"# A\n{PART}```\n## in code\n```\n") == [1]
    assert begins(f"# A\n{PART}## Nothing below\n\n") == [1]
    assert begins(f"# A\n{PART}## Chat at 22:42\nshort\n") == [1], "who goes on talking goes on with the thought"
    assert begins(f"# A\n{PART[:400]}\n## B\nshort\n", "MEMORY.md") == [1, 13]


def test_a_section_of_some_length_is_not_joined_with_one_that_would_be_cut():
    section = "".join(f"- line {number:03} of it\n" for number in range(40))
    assert begins(f"## A\n{section}## B\n{section}{section}") == [1, 42]
    few = section[: len(section) // 2]
    assert begins(f"## A\n{few}## B\n{section}") == [1], "both fit"


@pytest.mark.parametrize("run", ["```\n" + "x = 1\n" * 40 + "```\n", "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 40])
def test_no_passage_begins_inside_a_fence_or_a_table(run):
    text = "".join(f"{PART[:740]}\n{run}\n" for _ in range(5))
    lines = text.split("\n")
    inside = {at for at, line in enumerate(lines, 1) if line in ("x = 1", "| 1 | 2 |", "|---|---|")}
    assert len(begins(text)) > 2
    assert not inside & set(begins(text))


def test_lone_surrogates_in_the_input_can_be_stored():
    (chunk,) = chunk_text("x\ud800y")
    assert chunk.text == "x\ufffdy"
    assert chunk.hash == jsstring.sha256_hex("x\ud800y")


@given(WHOLE_TEXT | LONG_LINES, st.integers(4, 40))
def test_capped_pieces_fit_and_lose_nothing(text, limit):
    for chunk in chunk_text(text, 14, 4):
        pieces = cap_bytes([chunk], limit)
        assert "".join(piece.text for piece in pieces) == chunk.text
        for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
            assert len(piece.text.encode()) <= limit
            assert (piece.start_line, piece.end_line) == (chunk.start_line, chunk.end_line)
            assert piece.hash == jsstring.sha256_hex(piece.text)
            # A piece ends only where the next character would not fit.
            assert following is None or len((piece.text + following.text[0]).encode()) > limit


def test_a_character_longer_than_the_limit_is_a_piece_of_its_own():
    assert [chunk.text for chunk in cap_bytes(chunk_text("a🚀中b"), 2)] == ["a", "🚀", "中", "b"]


def test_no_provider_gets_more_than_eight_thousand_bytes():
    chunks = chunk_text("中" * 1600 + "\n" + "文" * 1600)
    assert max(len(chunk.text.encode()) for chunk in chunks) > 8192
    capped = cap_bytes(chunks, 32_000)
    assert max(len(chunk.text.encode()) for chunk in capped) <= MAX_INPUT_BYTES
    assert len(capped) == len(chunks) + 1


def test_chunk_ids_take_any_path():
    (chunk,) = chunk_text("note")
    assert len(chunk_id("memory", "memory/bad\udcff.md", chunk, "m")) == 64


def test_one_line_of_two_megabytes_is_cut():
    """Cost that grows with the square of the length would take minutes here."""
    count = 400_000
    assert len(cap_bytes(chunk_text("x🚀" * count), 2048)) > count // 800


@pytest.mark.parametrize("cut", [lambda text, **how: chunk_sections(text, "a.md", **how), chunk_text])
def test_each_chunk_may_be_the_last(cut):
    looks = []

    def check():
        looks.append(0)
        if len(looks) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        cut("some words in a line\n" * 5_000, check=check)


def test_repeats_that_would_fill_the_memory_are_refused():
    evil = ("x" * 1600 + "\n" * 320) * 600
    with pytest.raises(Unreadable, match="repeated"):
        chunk_text(evil)
    assert chunk_text(evil[: 2 * 1920])
