"""A list says of a hit what matters: whose note, under which heading, which words answer, how old."""

import datetime as dt

import pytest

from memory_tui.explain.hit_text import body_of, date_name
from memory_tui.explain.wording import MatchedWords
from memory_tui.formatting import age_words
from memory_tui.search.trace import QueryPlan
from memory_tui.workspace.notes import title_of

NOW = dt.datetime(2026, 3, 20, 12).timestamp()
NOTE = """# 2026-03-06 (Friday)

## Morning
- Coffee, no sugar.

## VLANs on the Omada router ##
- [x] Created under Settings.
- The guest VLAN is 30.
| a | b |
|---|---|
"""


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, "never fades"), (-2.0, "in 2 days"), (0.4, "today"), (1.0, "1 day"), (50.9, "50 days"),
        (300.0, "10 months"), (1500.0, "4 years"),
    ],
)  # fmt: skip
def test_ages_are_words(days, words):
    assert age_words(days) == words


def test_a_day_has_its_year_only_where_it_is_far():
    assert date_name("2026-03-06", NOW) == "6 Mar"
    assert date_name("2025-03-06", NOW) == "6 Mar 2025"
    assert (date_name("2026-W10", NOW), date_name("2025-W01", NOW)) == ("week 10", "week 01 2025")
    assert date_name("2026-02", NOW) == "February"


def test_the_title_is_the_nearest_heading_and_the_text_begins_where_it_answers():
    lines, words = NOTE.split("\n"), MatchedWords(QueryPlan(("guest",), (), ""), "recommended")
    title = title_of("memory/2026-03-06.md", NOTE, 7)
    assert title == "VLANs on the Omada router"
    assert title_of("memory/2026-03-06.md", NOTE, 0) == "", "a date is no title"
    assert body_of(lines, words, 7, title) == "The guest VLAN is 30. a | b"
    assert body_of(lines, words, 6, title).startswith("Created under Settings.")
    items = ["- [x] Restore drill", "", "## Biscuit", "- Vet: Southville Vets.", "- Food is in the hall"]
    assert body_of(items, words, 0) == "Restore drill / Biscuit: Vet: Southville Vets. Food is in the hall"
    assert (
        body_of(["**Backups.** Do them in 2026. Then > rest"], words, 0) == "**Backups.** Do them in 2026. Then > rest"
    )
    assert body_of(["It is read", "to the end", "- once"], words, 0) == "It is read to the end / once"
    long = ["word " * 60 + "guest " + "more " * 20]
    assert body_of(long, words, 0).startswith("… ")
    assert "guest" in body_of(long, words, 0)[:40], "what matched is in sight"
