"""A title says what a note is about, and neither its date nor its name again."""

from __future__ import annotations

import pytest

from memory_tui.workspace.titles import title_of

DAY = "memory/2026-11-18.md"


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("MEMORY.md", '---\ntitle: "Own title"\n---\n# Other\n', "Own title"),
        ("MEMORY.md", "<!-- a\n# not a heading\n-->\n# Real title\n", "Real title"),
        ("memory/a.md", "```sh\n# a comment\n```\n\n# After the program\n", "After the program"),
        ("memory/a.md", "- in a list\n  ~~~\n  # code\n  ~~~\n# Real\n", "Real"),
        ("memory/a.md", "---\nname: ferry-times\nmetadata:\n  type: reference\n---\nIt leaves at 7.\n", "ferry-times"),
        ("memory/a.md", "---\n\n# A rule is no front matter\n---\n", "A rule is no front matter"),
        ("memory/a.md", "\ufeff# **Harbour** [plan](b.md) ##\n", "Harbour plan"),
        ("memory/a.md", "**Harbour plan**\n\n- z\n", "Harbour plan"),
        ("memory/a.md", "# Note 2026-11-18\n\n## Pump\n", "Pump"),
        ("memory/a.md", "# Pump, 2026-11-18\n", "Pump, 2026-11-18"),
        ("memory/kiln.md", "# Kiln\n## State\n- [x] Hot *again*\n", "Hot again"),
        (DAY, "# 2026-11-18 (Wednesday) — Log\n\n## Session 1 — moved the pump\n", "Session 1 — moved the pump"),
        (DAY, "# Daily Log — November 18, 2026\n\n## Morning\n", "Morning"),
        (DAY, "# Mittwoch, 18. November 2026\n- Pumpe getauscht\n", "Pumpe getauscht"),
        (DAY, "# 2026年11月18日\n\n## 修了水泵\n", "修了水泵"),
        (DAY, "# 2026-11-18: the pump\n", "the pump"),
        (DAY, "# Pump moved (2026-11-18)\n", "Pump moved"),
        (DAY, "# 2026-11-18\n", ""),
        ("memory/2026-11-18-new-pump.md", "# Session: 2026-11-18 10:22:11 UTC\n- **Session Key**: a:b\n", "new pump"),
        ("memory/2026-11-18-1022.md", "# Session: 2026-11-18 10:22 UTC\n- **Source**: chat\n\nHello\n", "Hello"),
        ("memory/2026-W47-review.md", "# Week 47\n", "review"),
    ],
)
def test_a_title_is_the_first_words_that_tell(path: str, text: str, title: str) -> None:
    assert title_of(path, text) == title


def test_comments_that_never_close_hide_what_follows_and_are_read_once() -> None:
    assert title_of("memory/a.md", "# Open\n<!-- never closed\n" * 20_000) == "Open"
    assert title_of("memory/a.md", "<!--" * 20_000 + "\n# Hidden\n") == ""
