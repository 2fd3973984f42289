"""The inbox on screen: what it shows, that every action is shown first, and that every one is taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from memory_tui.inbox.checks import CHECKS, InboxCheck
from memory_tui.inbox.entries import Passage, Suggestion
from memory_tui.notices import notice
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Preview, Snooze
from memory_tui.tui.views.inbox import inbox_view as queue_module
from memory_tui.tui.views.inbox.inbox_proposal import HINTS, MEANING, READ, VERBS, Shown, Suggestions, entered, written
from memory_tui.tui.views.inbox.inbox_view import InboxView
from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.widgets.rowlist import Rows
from memory_tui.tui.widgets.status_bars import KeyHints
from tests.support.tui import (
    LARGE,
    LONG,
    SMALL,
    drive,
    enter,
    lines_of,
    make_app,
    matches_screen,
    press,
    said,
    settled,
    strike,
    text_of,
    until,
)

SECRET = "hunter2hunter2X9"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nplainlookingword\n-----END PRIVATE KEY-----"
MEMORY = f"""# Home

## Network
- The guest network is on VLAN 20, behind the Omada router
- wifi password: {SECRET}
- the plan of the flat is in [the plan](memory/flat-plan.md)

## Dates
- renew the domain by 2026-03-01 at the latest
- the boiler is serviced each October by Mr. Hallett of the works
"""
LOG = """# 2026-03-19

- 10:00 The guest network is on VLAN 20, behind the Omada router
- the boiler is serviced each October, by Mr Hallett of the works
- the new evaluation arrived
"""
JUNK = """# Build

```
Traceback (most recent call last)
  File "build.py", line 3, in <module>
```
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(queue_module, "SHARE", 0.0)
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    for name, text in (
        ("MEMORY.md", MEMORY),
        ("memory/2026-03-19.md", LOG),
        ("memory/2026-02-30.md", "# Never\n"),
        ("memory/build.md", JUNK),
    ):
        (folder / name).write_text(text, "utf-8")
    return folder


def files(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*.md")}


def queue(app: MemoryApp) -> list[str]:
    """The kinds in the queue, in order."""
    view = app.screen
    assert isinstance(view, InboxView)
    return [one.kind for one in view.open]


async def to(pilot: Pilot[int], kind: str) -> None:
    """Open the inbox, and put the cursor on the first suggestion of `kind`."""
    app = pilot.app
    assert isinstance(app, MemoryApp)
    if not isinstance(app.screen, InboxView):
        await press(pilot, "4")
    view = app.screen
    assert isinstance(view, InboxView)
    one = next(one for one in view.open if one.kind == kind)
    rows = view.query_one(Suggestions)
    row = rows.row_of(one.id)
    assert row is not None
    rows.cursor = row
    await settled(pilot)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_what_it_shows(size: tuple[int, int], app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        matches_screen(app, "inbox")
        await to(pilot, "exact duplicate")
        matches_screen(app, "inbox_twice")
        await to(pilot, "dead path")
        await press(pilot, "x", "z", "e", "G")
        matches_screen(app, "inbox_decided")
        await press(pilot, "g", "g", "s")
        matches_screen(app, "inbox_later")
        await press(pilot, "escape", "enter")
        matches_screen(app, "inbox_preview")

    drive(app, steps, size)


def test_the_hint_names_what_m_does_about_the_suggestion_under_the_cursor(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        hinted = set()
        for kind in dict.fromkeys(queue(app)):
            await to(pilot, kind)
            actions = view.queue.chosen[0].actions
            moved = next((action for action in actions if MEANING[action] == "move"), None)
            if moved is not None:
                assert f" m {HINTS[moved]} " in text_of(app).splitlines()[-1], kind
                hinted.add(HINTS[moved])
        assert {"Merge", "Rename"} <= hinted

    drive(app, steps, LARGE)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_an_empty_inbox_says_what_was_looked_for(size: tuple[int, int], tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Home\n- tea\n")
    app = make_app(folder)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        matches_screen(app, "inbox_empty")
        await press(pilot, "enter")
        assert said(app) == "There is no suggestion under the cursor."
        await press(pilot, "f")
        assert said(app) == "There are no kinds to choose from."

    drive(app, steps, size)


@pytest.mark.parametrize(
    ("kind", "key"),
    [("secret", "enter"), ("bad date", "m"), ("exact duplicate", "enter"), ("dead path", "d")],
)
def test_a_change_is_shown_first_then_made_then_taken_back(
    kind: str, key: str, app: MemoryApp, workspace: Path
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to(pilot, kind)
        shown = queue(app)
        await press(pilot, key)
        assert isinstance(app.screen, Preview)
        await press(pilot, "escape")
        assert files(workspace) == before, "leaving the preview did something"
        await press(pilot, key, "y")
        changed = files(workspace)
        assert changed != before
        assert said(app).endswith("u undoes it.")
        assert queue(app).count(kind) == shown.count(kind) - 1
        await press(pilot, "u")
        assert files(workspace) == before
        assert queue(app) == shown
        await press(pilot, "ctrl+r")
        assert files(workspace) == changed

    drive(app, steps)


def test_a_secret_is_on_no_screen(app: MemoryApp, workspace: Path) -> None:
    (workspace / "memory/keys.md").write_text(f"# Keys\n\n{KEY}\n\ntea\n")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        assert queue(app)[:2] == ["secret", "secret"]
        seen = [text_of(app)]
        for row in range(2):
            await press(pilot, "enter")
            assert "change the password or key as well" in " ".join(text_of(app).replace("│", " ").split())
            seen.append(text_of(app))
            await press(pilot, "n" if row == 0 else "y", "j")
            seen.append(text_of(app))
        assert any("- wifi password: ***" in text for text in seen)
        for part in (SECRET, *KEY.split("\n")[1:3]):
            assert not any(part in text for text in seen), part
        assert KEY.split("\n")[2] not in (workspace / "memory/keys.md").read_text(), "a key is all of its lines"
        assert "\ntea\n" in (workspace / "memory/keys.md").read_text()

    drive(app, steps)


def test_what_is_kept_is_gone_until_it_is_taken_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to(pilot, "stale date")
        await press(pilot, "x")
        assert "stale date" not in queue(app)
        assert "kept for good. u undoes it." in said(app)
        await press(pilot, "r")
        assert "stale date" not in queue(app)
        assert "1 kept or put off: z" in text_of(app)
        await press(pilot, "u")
        assert "stale date" in queue(app)
        await to(pilot, "dead path")
        await press(pilot, "enter")
        assert isinstance(app.screen, ReaderView), "nothing is proposed of a dead path: it is read"
        await press(pilot, "escape")
        assert "dead path" in queue(app)
        assert files(workspace) == before

    drive(app, steps)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_enter_decides_nothing_by_itself(check: InboxCheck) -> None:
    one = Suggestion(check.kind, Passage("MEMORY.md", 1, 1, "x"), notice("not_trusted", state="x"), check.actions, "")
    assert entered(one) in (*VERBS, "edit", READ), "a preview, a dialog or the note"
    rows = [key for _, key in written(Shown(one), 60) if key is not None]
    assert {entered(one), *check.actions} == {key[0] for key in rows if isinstance(key, tuple) and key[0] != "place"}


@pytest.mark.parametrize(("key", "day"), [("1", "2026-03-21"), ("7", "2026-03-27"), ("3", "2026-04-19")])
def test_it_asks_again_on_a_later_day(key: str, day: str, app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "junk")
        await press(pilot, "s")
        assert isinstance(app.screen, Snooze)
        await press(pilot, "escape")
        assert "junk" in queue(app)
        await press(pilot, "s", key)
        assert "junk" not in queue(app)
        assert f"put off until {day}" in said(app)
        await press(pilot, "z", "e", "G")
        assert f"put off until {day}" in text_of(app)
        await press(pilot, "enter")
        assert "junk" in queue(app)
        await press(pilot, "u")
        assert "junk" not in queue(app), "undo of the way back puts it off again"
        await press(pilot, "u")
        assert "junk" in queue(app)
        found = app.screen.query_one(Suggestions).suggestion
        assert found is not None
        assert found.kind == "junk", "the cursor stands on what came back"

    drive(app, steps)


def test_decisions_and_changes_are_taken_back_in_their_order(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to(pilot, "junk")
        await press(pilot, "x")
        await to(pilot, "stale date")
        await press(pilot, "enter", "y")
        assert files(workspace) != before
        await press(pilot, "u")
        assert files(workspace) == before
        assert "junk" not in queue(app)
        await press(pilot, "u")
        assert "junk" in queue(app)
        await press(pilot, "u")
        assert "Nothing is left to undo." in said(app)

    drive(app, steps)


def test_one_kind_alone(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4", "f")
        await enter(pilot, "twice")
        await press(pilot, "enter")
        assert "Inbox: 1 of 6, said twice" in text_of(app)
        assert "password" not in "\n".join(lines_of(app))
        await press(pilot, "x")
        assert "Nothing more of this kind. esc shows all kinds." in text_of(app)
        await press(pilot, "escape")
        assert "Inbox: 5 open" in text_of(app)

    drive(app, steps)


def test_the_note_opens_at_the_lines(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "exact duplicate")
        await press(pilot, "g", "s")
        assert isinstance(app.screen, ReaderView)
        place = app.screen.place_in_note()
        assert place is not None
        assert place[0] == "memory/2026-03-19.md"
        await press(pilot, "escape", "tab", "j", "enter")
        assert isinstance(app.screen, ReaderView)
        place = app.screen.place_in_note()
        assert place is not None
        assert place[0] == "MEMORY.md"
        await press(pilot, "escape", "escape")
        assert isinstance(app.focused, Suggestions)

    drive(app, steps)


def test_the_mouse_does_it_all(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "stale date")
        proposal = app.screen.query_one("#proposal", Rows)
        row = next(row for row in range(proposal.count()) if proposal.key_of(row) == ("keep",))
        for _ in range(2):
            await pilot.click(proposal, offset=(12, row + 1))
            await settled(pilot)
        assert "stale date" not in queue(app)
        await to(pilot, "junk")
        rows = app.screen.query_one(Suggestions)
        one = rows.suggestion
        assert one is not None
        await pilot.click(rows, offset=(8, rows._tops[rows.cursor] + 1 - rows.scroll_offset.y), times=2)
        await settled(pilot)
        assert isinstance(app.screen, Preview)
        await pilot.click("#yes")
        await settled(pilot)
        assert one.id not in {other.id for other in app.screen.open}  # type: ignore[attr-defined]
        app.screen.query_one(KeyHints)._unsay()
        await settled(pilot)
        hints = text_of(app).splitlines()[-1]
        await pilot.click("KeyHints", offset=(hints.index("Undo"), 0))
        await settled(pilot)
        assert one.id in {other.id for other in app.screen.open}  # type: ignore[attr-defined]

    drive(app, steps)


def test_read_only_changes_nothing_and_says_why(workspace: Path) -> None:
    make_index = make_app(workspace)

    async def first(pilot: Pilot[int]) -> None:
        await press(pilot, "4")

    drive(make_index, first)
    app = make_app(workspace, read_only=True)

    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to(pilot, "stale date")
        shown = queue(app)
        for key in ("enter", "d", "s", "x", "u", "ctrl+r"):
            await press(pilot, key)
            assert said(app) == "Opened with --read-only: nothing is written but the index.", key
        rows = app.screen.query_one(Suggestions)
        await pilot.click(rows, offset=(8, rows._tops[rows.cursor] + 1 - rows.scroll_offset.y), times=2)
        await settled(pilot)
        assert said(app) == "Opened with --read-only: nothing is written but the index."
        assert (files(workspace), queue(app)) == (before, shown)

    drive(app, steps)


def test_what_changed_meanwhile_is_not_touched(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "stale date")
        await press(pilot, "enter")
        other = (workspace / "MEMORY.md").read_text().replace("by 2026-03-01 at", "by 2026-02-01 at")
        (workspace / "MEMORY.md").write_text(other)
        await press(pilot, "y")
        assert (workspace / "MEMORY.md").read_text() == other
        assert "Nothing was written." in said(app)
        assert "2026-02-01" in text_of(app), "it was looked at again"
        assert app.engine is not None
        assert app.engine.notes.curator.drafts() == ()

    drive(app, steps)


def test_files_that_change_are_looked_at_again(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "junk")
        (workspace / "memory/more.md").write_text("- it expires on 2026-01-01 and is not renewed\n")
        assert app.engine is not None
        app.engine.index.request_sync()
        await until(lambda: queue(app).count("stale date") == 2)
        rows = app.screen.query_one(Suggestions)
        assert rows.suggestion is not None
        assert rows.suggestion.kind == "junk", "the cursor stays on its suggestion"

    drive(app, steps)


def test_leaving_the_view_stops_looking_and_esc_does_too(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_tui.inbox import checks

    entered, go_on, ended = threading.Event(), threading.Event(), []
    dates = checks.BY_KIND["bad date"]

    def slow(run: checks.Examination, check: checks.InboxCheck) -> Iterator[Suggestion]:
        entered.set()
        assert go_on.wait(LONG)
        yield from dates.find(run, check)
        ended.append("first")

    def second(run: checks.Examination, check: checks.InboxCheck) -> Iterator[Suggestion]:
        ended.append("second")
        return iter(())

    monkeypatch.setattr(checks, "CHECKS", (replace(dates, find=slow), replace(dates, find=second)))

    async def steps(pilot: Pilot[int]) -> None:
        for leave in ("1", "escape"):
            entered.clear()
            go_on.clear()
            await strike(pilot, "4")
            inbox_view = app.screen
            assert isinstance(inbox_view, InboxView)
            await until(entered.is_set)
            await until(lambda: "Looking through the notes" in text_of(app) and "esc stops" in text_of(app))
            await strike(pilot, leave)
            assert inbox_view.resting, "somebody still waits for it"
            go_on.set()
            await settled(pilot)
            assert ended == ["first"], "it went on"
            ended.clear()
        assert "Stopped; r looks again." in text_of(app)
        await press(pilot, "r")
        assert ended == ["first", "second"]

    drive(app, steps)


def test_undoing_a_change_stands_on_what_it_brought_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        await until(lambda: view.resting and len(view.open) > 2)
        await press(pilot, "j")
        taken = view.queue.suggestion
        assert taken is not None
        await press(pilot, "d" if "delete" in taken.actions else "m", "enter")
        await until(lambda: view.resting and taken.id not in {one.id for one in view.open})
        await press(pilot, "G", "u")
        if isinstance(app.screen, Preview):
            await press(pilot, "enter")
        await until(lambda: view.resting and taken.id in {one.id for one in view.open})
        assert view.queue.suggestion is not None
        assert view.queue.suggestion.id == taken.id

    drive(app, steps)


def test_a_look_after_a_change_waits_until_the_index_followed(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found by the index would be missing until the next look, and the number with it."""
    from memory_tui.inbox import checks

    dates, go_on, asked = checks.BY_KIND["bad date"], threading.Event(), threading.Event()
    looks: list[bool] = []

    def recorded(run: checks.Examination, check: checks.InboxCheck) -> Iterator[Suggestion]:
        assert app.engine is not None
        looks.append(app.engine.index.writer.wait_idle(0))
        yield from dates.find(run, check)

    monkeypatch.setattr(checks, "CHECKS", (*CHECKS, replace(dates, find=recorded)))

    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "junk")
        assert app.engine is not None
        writer, view = app.engine.index.writer, app.screen
        assert isinstance(view, InboxView)
        idle = writer.wait_idle

        def waited(timeout: float) -> bool:
            if timeout:
                asked.set()
            return idle(timeout)

        monkeypatch.setattr(writer, "wait_idle", waited)
        looks.clear()
        await press(pilot, "enter")
        writer.submit(lambda _store: go_on.wait(LONG))
        await strike(pilot, "y")
        await until(lambda: looks or asked.is_set())
        go_on.set()
        await settled(pilot)
        assert looks
        assert all(looks)
        assert app.badges["inbox"] == f"{len(view.open)}"

    drive(app, steps)


def test_what_is_decided_during_a_look_stays_decided(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()

    async def steps(pilot: Pilot[int]) -> None:
        await to(pilot, "junk")
        assert app.engine is not None
        view, decisions = app.screen, app.engine.notes.decisions
        assert isinstance(view, InboxView)
        count, hidden = len(view.open), decisions.hidden

        def late(*given: object) -> dict[str, float]:
            found = hidden(*given)  # type: ignore[arg-type]
            entered.set()
            assert go_on.wait(LONG)
            return found

        for key, left in (("x", count - 1), ("u", count)):
            entered.clear()
            go_on.clear()
            monkeypatch.setattr(decisions, "hidden", late)
            view.examine()
            await until(entered.is_set)
            await strike(pilot, key)
            await until(lambda left=left: len(view.open) == left)
            go_on.set()
            await settled(pilot)
            assert len(view.open) == left
            assert app.badges["inbox"] == f"{left}"

    drive(app, steps)
