"""Trigger recall by its documented arithmetic: phrases, the line, and why an entry is not injected."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli import main
from memory_tui.openclaw.prompt import LINE, MOST, MOST_UNITS, CuratedEntry, phrase_score, triggered
from memory_tui.workspace.annotations import Annotations


@pytest.mark.parametrize(
    ("message", "phrase", "score"),
    [
        ("Which tea?", "tea", 0.85),
        ("Which TEA?", "Tea", 0.85),
        ("teapot", "tea", 0.0),
        ("plan the trip to Rome", "trip planning", 0.8 * 1 / 2 + 0.2 * 1 / 2),
        ("plan the trip to Rome", "trip rome", 0.8 + 0.2),
        ("plan the trip to Rome", "trip rome hotel flight", 0.8 * 2 / 4 + 0.2),
        ("x", "", 0.0),
        ("a b", "a", 0.0),
    ],
)
def test_a_phrase_fits_by_its_words(message, phrase, score):
    assert phrase_score(message, phrase) == pytest.approx(score)


def entry(triggers="tea", text="- tea", **more):
    project = str(more.pop("project", ""))
    return CuratedEntry("MEMORY.md", 1, 1, text, Annotations(0, triggers, project), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "match", "outcome"),
    [
        (entry(), 0.68, "injected"),
        (entry(search=0.5), 0.78, "injected"),
        (entry(search=7.0), 0.88, "injected"),
        (entry("tea oolong kettle"), 0.8 * (0.8 / 3 + 0.1), "below the line"),
        (entry(trusted=False), 0.68, "untrusted"),
        (entry(project="site"), 0.68, "other project"),
        (entry(project="site; other"), 0.68, "other project"),
        (entry(text="x" * 1801), 0.68, "no room"),
        (entry("coffee; tea"), 0.68, "injected"),
    ],
)
def test_what_becomes_of_an_entry(one, match, outcome):
    (found,) = triggered("Which tea?", [one], active=("other",))
    assert (found.match, found.outcome) == (pytest.approx(match), outcome)


def test_an_active_project_lets_its_entry_in():
    assert triggered("tea", [entry(project="site")], active=("site",))[0].outcome == "injected"
    assert triggered("coffee", [entry()])[0].outcome == "no phrase fits"
    assert triggered("tea", [entry(triggers="")]) == []


def test_what_fits_no_phrase_stands_last_whatever_search_says():
    found = triggered("tea", [entry("coffee", search=1.0), entry("tea oolong kettle pot")])
    assert [one.outcome for one in found] == ["below the line", "no phrase fits"]
    assert all(str(LINE) in one.reason for one in found[:1])


@given(st.lists(st.tuples(st.floats(-1, 2), st.integers(0, 900), st.booleans()), max_size=8))
def test_never_more_than_three_nor_too_long_nor_untrusted(rows):
    entries = [entry(text="x" * size, search=search, trusted=trusted) for search, size, trusted in rows]
    chosen = [one for one in triggered("tea", entries) if one.outcome == "injected"]
    assert len(chosen) <= MOST
    assert sum(len(one.entry.text) for one in chosen) <= MOST_UNITS
    assert all(one.entry.trusted and one.match >= LINE for one in chosen)


def test_the_command_decides_it_from_the_index(tmp_path, capsys):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text(
        "# Facts\n- oolong in the morning <!-- trigger: tea -->\n- Rome in May <!-- trigger: trip planning hotel -->\n"
    )
    shared = ["--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"), "--provider", "none"]
    newest = [*shared, "--profile", "openclaw-2026.9"]
    assert main.main([*newest, "--json", "openclaw", "inject", "Which tea on the trip?"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["entry"]["start_line"], one["outcome"]) for one in found] == [(2, "injected"), (3, "below the line")]
    assert main.main([*newest, "openclaw", "inject", "Which tea on the trip?"]) == 0
    assert "1 injected; the line is 0.65." in capsys.readouterr().out
    assert main.main([*shared, "--profile", "openclaw-2026.3", "openclaw", "inject", "tea"]) == 2
