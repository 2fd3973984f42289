"""Annotations that OpenClaw 2026.9 passes over in silence are named with their line, and good ones are left alone."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.inbox.checks import InboxInputs, examine
from memory_tui.inbox.entries import DatedNote
from memory_tui.workspace.annotations import INVALID_PROJECT, flaws, read_annotations


@pytest.mark.parametrize(
    "line",
    [
        "- tea <!-- trigger: tea, oolong -->",
        "- tea <!-- trigger: tea --> <!-- importance: 10 -->   ",
        "- tea <!--IMPORTANCE : 1-->",
        "- site <!-- project: github.com/me/site; path:/home/me -->",
        "- a plain <!-- comment --> is none",
        "- triggered: nothing",
    ],
)
def test_a_good_annotation_is_no_flaw(line: str) -> None:
    assert flaws(f"# T\n{line}\n", "MEMORY.md") == []


@pytest.mark.parametrize(
    ("line", "path", "said"),
    [
        ("- tea <!-- trigger: tea", "MEMORY.md", "does not close on its line"),
        ("- tea <!-- trigger: tea --> and more", "MEMORY.md", "text follows it"),
        ("- tea <!-- trigger: ; , -->", "MEMORY.md", "names no phrase"),
        ("- tea <!-- importance: 11 -->", "MEMORY.md", "from 1 to 10"),
        ("- tea <!-- importance: 0 -->", "USER.md", "from 1 to 10"),
        ("- tea <!-- importance: high -->", "MEMORY.md", "from 1 to 10"),
        ("- tea <!-- importance: 5 -->", "memory/tea.md", "counts only in MEMORY.md"),
        ("- tea <!-- project: a", "memory/tea.md", "never closes, so OpenClaw never recalls"),
        ("- tea <!-- project: a;; b -->", "MEMORY.md", "a key is empty"),
        ("- tea <!-- project: a<b -->", "MEMORY.md", "a key is empty"),
        ("- tea <!-- project: a -->", "USER.md", "not read in USER.md"),
    ],
)
def test_an_annotation_without_effect_is_named_with_its_line(line: str, path: str, said: str) -> None:
    (found,) = flaws(f"# T\n\n{line}\n", path)
    assert found.line == 3
    assert said in found.reason


@given(st.text(alphabet="<!-> projecta;:/\n", max_size=60))
def test_an_entry_that_is_never_recalled_is_always_named(text: str) -> None:
    note = f"<!-- project: {text}"
    lost = read_annotations(note.split("\n"), "memory/x.md").project == INVALID_PROJECT
    assert bool([one for one in flaws(note, "memory/x.md") if "never recalls" in one.reason]) is lost


def test_the_inbox_lists_them_where_the_release_reads_annotations() -> None:
    note = DatedNote("MEMORY.md", "- tea <!-- importance: 12 -->\n", None)
    for annotated in (True, False):
        inputs = InboxInputs((note,), dt.date(2026, 11, 22), lambda _: True, annotated=annotated)
        found = [one for one in examine(inputs).suggestions if one.kind == "annotation"]
        assert [str(one.place) for one in found] == ["MEMORY.md:1"] * annotated
