"""Recalls of a person and of agents are counted by note and day."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from memory_tui.recalls import recall_log, recalled_lines
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry

NOON = dt.datetime(2026, 3, 20, 12).timestamp()
DAY = 86_400


def test_both_records_count_by_note_and_day(tmp_path: Path) -> None:
    assert recalled_lines.activity(tmp_path) == recalled_lines.Activity(), "nothing was recorded"
    marks = recalled_lines.marks_path(tmp_path)
    recalled_lines.append(marks, [("a.md", 1, 2), ("a.md", 8, 9), ("b.md", 1, 1)], NOON - 8 * DAY)
    recalled_lines.append(marks, [("a.md", 1, 2)], NOON)
    with marks.open("ab") as file:
        file.write(b'{"at": 1, "notes"\n')
    hit = LoggedHit("a.md", 1, 2, 1.0, 1.0, 1.0)
    recall_log.append_recall(
        recall_log.recall_log_path(tmp_path), RecallEntry("memory_search", "who", NOON, hits=(hit, hit))
    )
    found = recalled_lines.activity(tmp_path)
    today = dt.date(2026, 3, 20)
    assert found.since == dt.date(2026, 3, 12)
    assert (found.count("a.md"), found.count("b.md"), found.count("c.md")) == (3, 1, 0)
    assert found.count("a.md", after=dt.date(2026, 3, 12)) == 2
    assert found.weeks("a.md", today, 3) == [0, 1, 2]
    assert found.last("a.md") == today
    assert found.last("c.md") is None
