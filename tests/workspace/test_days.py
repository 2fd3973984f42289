"""The path of a note, or its front matter, says which day, week or month it stands for."""

from __future__ import annotations

import datetime as dt
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.workspace.days import NoteDate, date_of, note_date, shown_day, span


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory/2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("../notes/memory/2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("memory\\2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("memory/2031-12-31.md", NoteDate(date(2031, 12, 31), "name")),
        ("memory/2028-02-29.md", NoteDate(date(2028, 2, 29), "name")),
        ("memory/2026-02-30.md", NoteDate(None, "mtime")),
        ("memory/2026-13-40.md", NoteDate(None, "mtime")),
        ("memory/0026-01-02.md", NoteDate(None, "mtime")),
        ("memory/0000-01-02.md", NoteDate(None, "mtime")),
        ("memory/2026-01-02-slug.md", NoteDate(None, "evergreen")),
        ("memory/sub/2026-01-02.md", NoteDate(None, "evergreen")),
        ("memory/٢٠٢٦-01-02.md", NoteDate(None, "evergreen")),
        ("memory/2026-01-02.md\n", NoteDate(None, "evergreen")),
        ("./memory/people.md", NoteDate(None, "evergreen")),
        ("MEMORY.md", NoteDate(None, "evergreen")),
        ("memory.md", NoteDate(None, "evergreen")),
        ("docs/MEMORY.md", NoteDate(None, "mtime")),
        ("../notes/2026-01-02.md", NoteDate(None, "mtime")),
    ],
)
def test_the_date_that_ages_a_note(path, expected):
    assert note_date(path) == expected


@pytest.mark.parametrize(
    ("path", "dated"),
    [
        ("memory/2026-01-02.md", "2026-01-02"),
        ("memory/2026-01-02-router-swap.md", "2026-01-02"),
        ("../journal/2026-01-02 evening.md", "2026-01-02"),
        ("memory/x-2026-01-02.md", "2026-01-02"),
        ("memory/x_20260102.md", "2026-01-02"),
        ("zettel/202601021405 Pump.md", "2026-01-02"),
        ("memory/2026/01/02.md", "2026-01-02"),
        ("memory/2026-01/02-pump.md", "2026-01-02"),
        ("memory/2026-01-02/notes.md", "2026-01-02"),
        ("memory/backup-2026-02-08/2026-01-02.md", "2026-01-02"),
        ("memory/2026-01/notes-06.md", "2026-01"),
        ("memory/2026/01.md", "2026-01"),
        ("memory/weekly/2026-W05-review.md", "2026-W05"),
        ("memory/2026/KW5.md", "2026-W05"),
        ("memory/2026-W60.md", ""),
        ("memory/2026-02-30.md", ""),
        ("memory/0026-01-02.md", ""),
        ("memory/2026-01-021.md", ""),
        ("memory/CVE-2026-1234.md", ""),
        ("memory/build-12026-01-02.md", ""),
        ("memory/2026.md", ""),
        ("MEMORY.md", ""),
        ("sessions/2026-01-02.jsonl", ""),
    ],
)
def test_the_date_in_a_path(path: str, dated: str) -> None:
    assert date_of(path) == dated
    assert shown_day(path) == (date.fromisoformat(dated) if len(dated) == 10 else None)


def test_the_front_matter_dates_a_note_whose_path_names_no_day() -> None:
    text = "---\ntitle: Pump\ndate: 2026-03-07T10:00\n---\n# Pump\n"
    assert date_of("pump.md", text) == "2026-03-07"
    assert date_of("2026-03/pump.md", text) == "2026-03-07", "a day says more than its month"
    assert date_of("2026-03-01.md", text) == "2026-03-01"
    assert date_of("pump.md", "# Pump\ndate: 2026-03-07\n") == "", "a line of the text is no front matter"


@given(st.dates(date(1900, 1, 1), date(2199, 12, 31)))
def test_a_date_spans_its_days(day: dt.date) -> None:
    week, month = f"{day:%G}-W{day:%V}", f"{day:%Y-%m}"
    assert span(day.isoformat()) == (day, day)
    for written in (week, month):
        assert date_of(f"notes/{written}.md") == written
        first, last = span(written)
        assert first <= day <= last
        assert (last - first).days == (6 if written == week else last.day - 1)
