"""Lines that go take the headings along that would be left with nothing below, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.notes import planner, promote
from memory_tui.notes.changes import Lines
from memory_tui.notes.promote import Spot, without
from tests.support.curate import curator, workspace

HEADINGS = {"T": "# T", "A": "## A", "B": "## B", "C": "### C", "D": "#### D"}
NOTE = st.lists(st.sampled_from([*HEADINGS.values(), "- a", "b", "", "```", "#in code"]), max_size=14)


def visible(texts: Iterable[str]) -> Counter[str]:
    return Counter(text for text in texts if text.strip())


def left(text: str, *gone: int, kept: tuple[int, ...] = ()) -> str:
    return without(Lines.of(text.encode()), gone, kept)[0].data.decode()


@pytest.mark.parametrize(
    ("text", "gone", "wanted"),
    [
        ("# T\n\n## A\n- a\n\n## B\n- b\n", (4,), "# T\n\n## B\n- b\n"),
        ("# T\n\n## A\n\n- a\n\n## B\n- b\n", (5,), "# T\n\n## B\n- b\n"),
        ("# T\n\n- t\n\n## A\n- a\n", (6,), "# T\n\n- t\n"),
        ("# T\n\n- t\n\n## A\n- a", (6,), "# T\n\n- t"),
        ("# T\r\n\r\n- t\r\n\r\n## A\r\n- a\r\n", (6,), "# T\r\n\r\n- t\r\n"),
        ("# T\n## A\n- a\n- b\n", (3,), "# T\n## A\n- b\n"),
        ("# T\n## A\n### C\n- a\n## B\n- b\n", (4,), "# T\n## B\n- b\n"),
        ("# T\n## A\n- own\n### C\n- a\n", (5,), "# T\n## A\n- own\n"),
        ("# T\n## A\n- own\n### C\n- a\n", (3,), "# T\n## A\n### C\n- a\n"),
    ],
    ids=["between", "airy", "last", "no line end", "CRLF", "more below", "both levels", "text above", "text below"],
)
def test_a_heading_goes_with_the_last_line_below_it(text, gone, wanted):
    assert left(text, *gone) == wanted


@pytest.mark.parametrize(
    ("text", "gone", "wanted"),
    [
        ("# T\n- a\n", (2,), "# T\n"),
        ("## Only\n- a\n", (2,), "## Only\n"),
        ("## T\n- a\n### B\n- b\n", (2, 4), "## T\n"),
        ("# T\n## Later\n\n## A\n- a\n", (5,), "# T\n## Later\n"),
        ("# T\n## A\n- a\n### Later\n## B\n- b\n", (3,), "# T\n## A\n### Later\n## B\n- b\n"),
        ("# T\n## A\n```\n# code\n```\n- a\n", (6,), "# T\n## A\n```\n# code\n```\n"),
    ],
    ids=["title", "the only one", "above all", "empty before", "an empty one below", "code"],
)
def test_titles_and_what_was_empty_before_stay(text, gone, wanted):
    assert left(text, *gone) == wanted


def test_a_heading_that_is_kept_stays():
    assert left("# T\n## A\n- a\n", 3, kept=(2,)) == "# T\n## A\n"


@given(NOTE, st.data())
def test_only_headings_without_anything_below_go(texts, data):
    note = Lines.of("".join(f"{text}\n" for text in texts).encode())
    gone = set(data.draw(st.lists(st.integers(1, len(texts)), max_size=6))) if texts else set()
    after, notes = without(note, gone)
    titles = [note.removeprefix("Nothing is left below the heading ").partition(",")[0] for note in notes]
    rest = iter(texts)
    assert all(line in rest for line in after.texts()), "a line moved"
    lost = visible(texts) - visible(after.texts())
    assert lost == visible(texts[number - 1] for number in gone) + Counter(HEADINGS[title] for title in titles)
    if not gone:
        assert after == note


def test_a_merge_in_the_inbox_shows_that_the_heading_goes_and_undo_brings_it_back(tmp_path):
    folder = workspace(tmp_path / "notes")
    log = folder / "memory" / "2026-01-12.md"
    data = b"# 2026-01-12\r\n\r\n## Bins\r\n- The bins go out on Friday\r\n\r\n## Work\r\n- met Ben"
    log.write_bytes(data)
    (folder / "MEMORY.md").write_bytes(b"# Memory\n\n## Home\n- The bins go out on Friday\n")
    one = curator(folder)
    change = one.plan.merge_duplicates(one.plan.spot("MEMORY.md", 4), [one.plan.spot("memory/2026-01-12.md", 4)])
    assert change.notes == ("Nothing is left below the heading Bins, so it goes too.",)
    one.apply(change)
    assert log.read_bytes() == b"# 2026-01-12\r\n\r\n## Work\r\n- met Ben"
    one.undo()
    assert log.read_bytes() == data


def test_a_merge_within_one_note_keeps_the_heading_of_what_stays():
    data = b"# T\n\n## A\n- x\n\n## B\n- x\n"
    change = planner.delete_lines([Spot("a.md", data, 4, 4)], keep=Spot("a.md", data, 7, 7))
    assert change.files[0].after == b"# T\n\n## B\n- x\n"
    chunk = planner.delete_lines([Spot("a.md", data, 4, 4)], keep=Spot("a.md", data, 3, 3))
    assert chunk.files[0].after == b"# T\n\n## A\n\n## B\n- x\n"


def test_a_copy_leaves_the_heading():
    data = b"# T\n\n## A\n- the router is an Omada\n"
    change = promote.promote(Spot("memory/a.md", data, 4, 4), "MEMORY.md", b"# M\n", move=False)
    assert [file.path for file in change.files] == ["MEMORY.md"]
    moved = promote.promote(Spot("memory/a.md", data, 4, 4), "MEMORY.md", b"# M\n", move=True)
    assert moved.files[1].after == b"# T\n"
