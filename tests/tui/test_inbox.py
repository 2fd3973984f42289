"""View 4: findings by cause, the change beside the row, one key for a group, one to take it back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widgets import Tab

from memory_tui.tui.inbox_facts import Group, groups, listed, until
from memory_tui.tui.views.inbox import InboxView
from memory_tui.tui.widgets.facts import Facts
from tests.support.tui import LARGE, SMALL, TINY, Window, make_app

GATE = "the garden gate was painted dark green by two men from the village with a brush each and a ladder"
SECRET = "hunter2-Tr0ub4dor"
NOTES = {
    "MEMORY.md": f"- The NAS password: {SECRET}\n- Renew the passport by 2026-01-05\n- see [it](memory/gone.md)\n",
    "memory/gate.md": f"- ssh user root, password: Zx81!blue-horse\n- {GATE}\n",
    "memory/garden.md": f"# Log\n- {GATE}\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Notes with two secrets, a repeat, a day that has passed, a path that is gone."""
    for path, text in NOTES.items():
        (tmp_path / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / path).write_text(text)
    return tmp_path / "notes"


@pytest.fixture
def inbox(workspace: Path) -> Iterator[Window]:
    """The inbox of these notes, looked through."""
    with Window(make_app(workspace)) as window:
        window.press("4").until(lambda: "Looking through" not in window.text)
        yield window


def view(window: Window) -> InboxView:
    found = window.app.view
    assert isinstance(found, InboxView)
    return found


def go(window: Window, text: str) -> Window:
    """Move the cursor to the row that holds `text`."""
    rows = window.app.query_one("#inbox-list", Facts)
    window.press("home")
    for _ in rows.facts:
        if rows.fact is not None and text in rows.fact.words:
            return window
        window.press("down")
    raise AssertionError(f"no row holds {text!r}:\n{window.text}")


def texts(workspace: Path) -> dict[str, str]:
    return {path: (workspace / path).read_text() for path in NOTES}


def shown(window: Window) -> list[Group]:
    return groups(view(window).open)


def test_one_cause_is_one_group_and_the_badge_counts_groups(inbox: Window) -> None:
    causes = shown(inbox)
    assert [(group.title, len(group.findings)) for group in causes[:1]] == [
        ("2 lines of 2 notes look like they hold a secret. Agents can recall them.", 2)
    ]
    assert inbox.app.query_one("#tab-inbox", Tab).label.plain == f"4 Inbox {len(causes)}"
    rows = list(listed(causes, (), {}, ()))
    assert sum(row.key.startswith("group:") for row in rows) == sum(len(group.findings) > 1 for group in causes)
    assert {row.key for row in rows} >= {group.findings[0].id for group in causes}


@pytest.mark.parametrize("size", [TINY, SMALL, LARGE])
def test_the_lines_and_the_change_stand_there_and_no_secret_does(inbox: Window, size: tuple[int, int]) -> None:
    inbox.resize(*size)
    go(inbox, "look like they hold a secret")
    assert "The NAS password" in inbox.text
    assert "d would put *** in the place of the secret" in " ".join(inbox.text.split())
    assert SECRET not in inbox.text


def test_one_key_makes_the_change_of_a_group_and_one_takes_all_of_it_back(inbox: Window, workspace: Path) -> None:
    before = texts(workspace)
    go(inbox, "look like they hold a secret").press("d")
    assert texts(workspace) == before, "the difference is shown first"
    assert SECRET not in inbox.text
    inbox.press("y")
    assert SECRET not in "".join(texts(workspace).values())
    assert "blue-horse" not in "".join(texts(workspace).values())
    inbox.until(lambda: "look like they hold a secret" not in inbox.text)
    inbox.press("u")
    assert texts(workspace) == before
    inbox.until(lambda: "look like they hold a secret" in inbox.text)


def test_a_change_that_is_not_agreed_to_is_not_made(inbox: Window, workspace: Path) -> None:
    before = texts(workspace)
    go(inbox, "a date that has passed").press("d", "n")
    assert texts(workspace) == before


def test_what_is_kept_or_put_off_is_counted_shown_on_demand_and_taken_back(inbox: Window, workspace: Path) -> None:
    before = texts(workspace)
    go(inbox, "look like they hold a secret").press("K")
    assert "2 kept or put off" in inbox.text
    assert "look like they hold a secret" not in inbox.text
    go(inbox, "a date that has passed").press("z", "enter")
    assert "3 kept or put off" in inbox.text
    go(inbox, "kept or put off").press("enter")
    assert "kept for good" in inbox.text
    inbox.press("u")
    assert "a date that has passed" in inbox.text
    inbox.press("u")
    assert "look like they hold a secret" in inbox.text
    assert texts(workspace) == before


def test_enter_offers_what_can_be_done_about_a_line(inbox: Window, workspace: Path) -> None:
    go(inbox, "said twice").press("enter")
    for offer in ("keep the other one", "keep this one", "never ask again", "ask again later", "read the note"):
        assert offer in inbox.text
    inbox.press("down", "enter", "y")
    assert "garden gate" not in (workspace / "memory/gate.md").read_text()
    inbox.press("u")
    assert "garden gate" in (workspace / "memory/gate.md").read_text()


def test_a_line_that_changed_meanwhile_is_not_touched(inbox: Window, workspace: Path) -> None:
    go(inbox, "a date that has passed")
    path = workspace / "MEMORY.md"
    path.write_text(NOTES["MEMORY.md"].replace("2026-01-05", "2027-01-05"))
    inbox.press("d")
    assert "2027-01-05" in path.read_text()
    assert any("changed since" in said for said in inbox.notices)
    inbox.press("i").until(lambda: "a date that has passed" not in inbox.text)


def test_nothing_is_changed_where_notes_are_only_read(workspace: Path) -> None:
    before = texts(workspace)
    with Window(make_app(workspace, read_only=True)) as window:
        window.press("4").until(lambda: "Looking through" not in window.text)
        go(window, "a date that has passed").press("d")
        assert len(window.app.screen_stack) == 1
        assert any("--read-only" in said for said in window.notices)
    assert texts(workspace) == before


def test_the_words_of_a_decision(workspace: Path) -> None:
    assert until(math.inf) == "kept for good"
    assert until(0.0).startswith("put off until ")
