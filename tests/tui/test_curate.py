"""Changing notes on screen: shown first, written only over what was read, taken back by a key."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, Static

from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.note_changes import left_over
from memory_tui.tui.views.dialogs import Confirm, Preview
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.notes.history import Changes, HistoryView
from memory_tui.tui.views.notes.resolve import Resolve
from memory_tui.tui.widgets.edit_area import EditArea
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.query import Box
from memory_tui.tui.widgets.reader import Reader
from tests.support.tui import (
    LARGE,
    SMALL,
    TODAY,
    ask,
    drive,
    enter,
    lines_of,
    make_app,
    matches_screen,
    press,
    said,
    settled,
    text_of,
    until,
)

LOG = "memory/2026-03-20.md"
LINE = "Backup at 03:15 went through"


def files(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


async def to_line(pilot: Pilot[int], path: str, text: str) -> None:
    """Put the reader's cursor on the line of `path` that holds `text`."""
    app = pilot.app
    assert isinstance(app, MemoryApp)
    view = app.screen
    assert isinstance(view, BrowseView)
    view.go_to(path)
    await settled(pilot)
    view.pane.reader.focus()
    assert view.pane.reader.page is not None
    row = next(row for row, line in enumerate(view.pane.reader.page.lines) if text in line)
    view.pane.reader.go_to_line(row + 1)
    await settled(pilot)


async def remember(pilot: Pilot[int], text: str) -> None:
    await press(pilot, "a")
    await enter(pilot, text)
    await press(pilot, "enter")


async def to_editor(pilot: Pilot[int], path: str, text: str) -> EditArea:
    await to_line(pilot, path, text)
    await press(pilot, "e")
    assert isinstance(pilot.app.screen, EditView)
    return pilot.app.screen.query_one(EditArea)


def test_a_promoted_line_is_in_the_curated_note_and_is_found(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to_line(pilot, LOG, LINE)
        await press(pilot, "p")
        assert isinstance(app.screen, Preview)
        shown = text_of(app)
        assert "of 20,000 characters." in shown
        assert f"+ - {LINE}" in shown
        await press(pilot, "escape")
        assert files(workspace) == before, "leaving the preview did something"
        await press(pilot, "p", "enter")
        memory = (workspace / "MEMORY.md").read_text("utf-8")
        assert f"- {LINE}: 1.2 GB new, 4 minutes, no lock left behind. (from {LOG})\n" in memory
        assert (workspace / LOG).read_bytes() == before[LOG]
        assert said(app).endswith("u undoes it.")
        await press(pilot, "escape")
        await ask(pilot, f"{LINE} 1.2 GB (from {LOG})")
        assert app.screen.trace is not None  # type: ignore[attr-defined]
        assert "MEMORY.md" in {hit.chunk.path for hit in app.screen.trace.recalled}  # type: ignore[attr-defined]
        await press(pilot, "1", "u")
        assert files(workspace) == before
        await press(pilot, "ctrl+r")
        assert (workspace / "MEMORY.md").read_text("utf-8") == memory
        await press(pilot, "G", "p")
        assert isinstance(app.screen, Preview), "the empty line that ends a note on screen stands for its last line"

    drive(app, steps)


@pytest.mark.parametrize("keys", [("p",), ("p", "m"), ("m",), ("d",)])
def test_the_lines_that_were_meant_are_found_below_what_an_agent_wrote_above(
    app: MemoryApp, workspace: Path, keys: tuple[str, ...]
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        log = workspace / LOG
        title, _, rest = log.read_text("utf-8").partition("\n")
        log.write_text("\n".join([title, *(f"- an agent wrote line {number}" for number in range(7)), rest]), "utf-8")
        await press(pilot, keys[0])
        if keys == ("m",):
            await enter(pilot, "MEMORY.md")
            await press(pilot, "enter")
        assert isinstance(app.screen, Preview)
        await press(pilot, *keys[1:])
        assert isinstance(app.screen, Preview)
        shown = text_of(app)
        assert LINE in shown
        assert not re.search(r"[-+] *- an agent wrote", shown)
        await press(pilot, "y")
        left = log.read_text("utf-8")
        assert left.count("an agent wrote") == 7
        assert (LINE in left) == (keys == ("p",))

    drive(app, steps)


@pytest.mark.parametrize("key", ["p", "d"])
def test_lines_that_an_agent_has_rewritten_are_left_alone(app: MemoryApp, workspace: Path, key: str) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        log = workspace / LOG
        log.write_text(log.read_text("utf-8").replace(LINE, "Backup failed"), "utf-8")
        before = files(workspace)
        await press(pilot, key)
        assert not isinstance(app.screen, Preview)
        assert said(app) == f"These lines of {LOG} changed after you saw them. Nothing was changed. Look at them again."
        assert files(workspace) == before

    drive(app, steps)


def test_the_cursor_stays_on_its_line_when_an_agent_writes_above(workspace: Path) -> None:
    app = make_app(workspace, watch=True)

    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        reader = app.screen.query_one(Reader)
        log = workspace / LOG
        log.write_text("- an agent wrote this\n" * 5 + log.read_text("utf-8"), "utf-8")
        await until(lambda: reader.page is not None and "an agent wrote this" in reader.page.lines[0])
        assert reader.page is not None
        assert LINE in reader.page.lines[reader.cursor]

    drive(app, steps)


def test_lines_are_moved_under_another_heading(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, "passport photograph")
        await press(pilot, "V", "j", "p", "m")
        assert isinstance(app.screen, Preview)
        await press(pilot, "h")
        await enter(pilot, "famil")
        await press(pilot, "enter")
        assert "MEMORY.md, Family" in text_of(app)
        await press(pilot, "y")
        memory = (workspace / "MEMORY.md").read_text("utf-8")
        assert memory.index("## Family") < memory.index("card for the thank-you letters") < memory.index("## Health")
        assert "passport photograph" not in (workspace / LOG).read_text("utf-8")

    drive(app, steps, SMALL)


def test_lines_go_to_a_new_topic_note(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, "MEMORY.md", "Biscuit: grey rescue cat")
        await press(pilot, "m")
        await enter(pilot, "Pets at home")
        await press(pilot, "enter")
        assert isinstance(app.screen, Preview)
        await press(pilot, "y")
        assert "Biscuit: grey rescue cat" in (workspace / "memory" / "pets-at-home.md").read_text("utf-8")
        assert "Biscuit: grey rescue cat" not in (workspace / "MEMORY.md").read_text("utf-8")
        assert app.screen.query_one(FileTree).reveal("memory/pets-at-home.md")

    drive(app, steps)


def test_a_note_is_renamed_and_trashed_and_comes_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        assert app.screen.query_one(FileTree).reveal("memory/house.md")
        await settled(pilot)
        await press(pilot, "m")
        assert isinstance(app.focused, Input)
        app.focused.value = "memory/home.md"
        await press(pilot, "enter", "y")
        assert (workspace / "memory" / "home.md").read_bytes() == before["memory/house.md"]
        assert not (workspace / "memory" / "house.md").exists()
        assert app.screen.query_one(FileTree).reveal("memory/home.md")
        await settled(pilot)
        await press(pilot, "d", "y")
        assert not (workspace / "memory" / "home.md").exists()
        await press(pilot, "u", "u")
        assert files(workspace) == before

    drive(app, steps)


def test_a_note_in_the_trash_is_not_shown_any_more_and_is_shown_again_when_it_is_back(
    app: MemoryApp, workspace: Path
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        view = app.screen
        assert isinstance(view, BrowseView)
        dated = sorted(path.name for path in (workspace / "memory").glob("2026-*.md"))
        for path in (f"memory/{dated[0]}", "memory/house.md", f"memory/{dated[-3]}"):
            assert view.listed.reveal(path)
            await settled(pilot)
            assert view.pane.reader.page is not None
            assert view.pane.reader.page.path == path
            await press(pilot, "d", "y")
            await until(lambda path=path: view.pane.reader.page is None or view.pane.reader.page.path != path)
            at = view.listed.file
            shown = at.path if at is not None else None
            await until(lambda shown=shown: (view.pane.reader.page.path if view.pane.reader.page else None) == shown)
            if at is None:
                assert f"There is no {path} any more." in view.pane.reader._said
            await press(pilot, "u")
            await until(lambda path=path: view.pane.reader.page is not None and view.pane.reader.page.path == path)
            assert view.listed.file is not None
            assert view.listed.file.path == path

    drive(app, steps)


def test_a_heading_is_not_promoted(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, "# 2026-03-20")
        await press(pilot, "p")
        assert isinstance(app.screen, BrowseView)
        assert said(app).startswith("A heading alone cannot be promoted.")

    drive(app, steps)


def test_without_a_heading_the_choice_of_one_says_so(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        await press(pilot, "p")
        assert "to MEMORY.md" in text_of(app)
        assert "MEMORY.md, MEMORY.md" not in text_of(app)
        await press(pilot, "h")
        assert "There is no heading yet: esc puts it at the end" in text_of(app)

    (workspace / "MEMORY.md").write_text("", "utf-8")
    drive(app, steps)


def test_the_editor_of_a_log_begins_at_its_end(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, "# 2026-03-20")
        assert area.cursor_location == area.document.end
        await press(pilot, "escape", "escape")
        area = await to_editor(pilot, LOG, LINE)
        assert LINE in area.document.get_line(area.cursor_location[0]), "a line that one came from stays"

    drive(app, steps, LARGE)


def test_the_editor_says_what_another_program_wrote_as_it_comes(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, LINE)
        note = workspace / LOG
        lines = note.read_text().split("\n")
        note.write_text("\n".join([*lines[:3], "- an agent was here", *lines[3:]]))
        assert app.engine is not None
        app.engine.index.request_sync()
        await until(lambda: "another program wrote line 4; ctrl+s keeps both" in str(area.border_subtitle))
        assert underlined(area) == {2}, "the line above the new one is marked"
        area.insert("first\n", (0, 0))
        await until(lambda: underlined(area) == {3})
        area.delete((0, 0), (1, 0))
        area.insert("mine\n", area.document.end)
        await press(pilot, "ctrl+s")
        await until(lambda: "- an agent was here" in note.read_text() and "mine" in note.read_text())

    drive(app, steps, LARGE)


def underlined(area: EditArea) -> set[int]:
    """The rows that are drawn as changed by others."""
    lines = map(area.get_line, range(area.document.line_count))
    style = area.get_component_rich_style("row--outside", partial=True)
    return {row for row, line in enumerate(lines) if any(span.style == style for span in line.spans)}


def test_the_editor_colours_markdown_and_finds_text(app: MemoryApp) -> None:
    def coloured(area: EditArea, row: int) -> dict[str, str]:
        line, names = area.get_line(row), ("head", "code", "link", "mark", "found")
        styles = {area.get_component_rich_style(f"row--{name}", partial=True): name for name in names}
        return {line.plain[span.start : span.end]: styles[span.style] for span in line.spans}  # type: ignore[index]

    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, LINE)
        area.load_text("# Head\n- on 2026-03-20 `rm`, https://a.b\n```\n# no head\n```\nRouter, router\n")
        await settled(pilot)
        assert coloured(area, 0) == {"# Head": "head"}
        assert coloured(area, 1) == {"-": "mark", "2026-03-20": "mark", "`rm`": "code", "https://a.b": "link"}
        assert coloured(area, 3) == {"# no head": "code"}
        area.delete((2, 0), (3, 0))
        await settled(pilot)
        assert coloured(area, 2) == {"# no head": "head"}
        await press(pilot, "ctrl+z")
        assert coloured(area, 3) == {"# no head": "code"}
        await press(pilot, "ctrl+y", "ctrl+z", "ctrl+home", "ctrl+f", *"router")
        assert (said(app), area.selection.start) == ("Place 1 of 2.", (5, 0))
        assert coloured(area, 5) == {"Router": "found", "router": "found"}
        for key, place in (("enter", (5, 8)), ("ctrl+f", (5, 0)), ("up", (5, 8)), ("up", (5, 0)), ("down", (5, 8))):
            await press(pilot, key)
            assert area.selection.start == place, key
        # A click leads from the box to the text, where what is found moves with what is typed.
        area.insert("Router\n", (0, 0))
        await settled(pilot)
        assert coloured(area, 6) == {"Router": "found", "router": "found"}
        await press(pilot, "down")
        assert said(app).endswith(" of 3.")
        area.delete((0, 0), (1, 0))
        await settled(pilot)
        await press(pilot, "down", "up")
        area.move_cursor((5, 8))
        await press(pilot, "up", "down")
        assert area.selection.start == (5, 8)
        await press(pilot, "escape", "X")
        assert area.document.get_line(5) == "Router, X"
        assert coloured(area, 5) == {}
        await press(pilot, "ctrl+f", "z", "z")
        assert said(app) == '"zz" is not in this note.'

    drive(app, steps, LARGE)


def test_in_the_editor_keys_lead_to_the_ends_of_the_text(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        await press(pilot, "i")
        assert isinstance(app.screen, EditView)
        area = app.screen.query_one(EditArea)
        await press(pilot, "ctrl+end")
        assert area.cursor_location == area.document.end
        await press(pilot, "ctrl+home")
        assert area.cursor_location == (0, 0)

    drive(app, steps)


def test_a_thought_is_appended_to_todays_log(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await remember(pilot, "the ladder is at Gareth's")
        assert (workspace / LOG).read_text("utf-8").rstrip().endswith("the ladder is at Gareth's")
        assert said(app) == f"Kept in {LOG}. u in Notes undoes it."
        await press(pilot, "a")
        await enter(pilot, "password: Tr0ub4dor&3x")
        assert "looks like a secret" in text_of(app)
        await press(pilot, "escape")
        assert "Tr0ub4dor" not in (workspace / LOG).read_text("utf-8")

    drive(app, steps)


def test_an_edit_is_written_and_shown(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, LINE)
        assert area.cursor_location == (3, 0)
        await press(pilot, "end")
        await enter(pilot, " Twice!")
        assert "not saved yet" in text_of(app)
        await press(pilot, "ctrl+s")
        assert "no lock left behind. Twice!\n" in (workspace / LOG).read_text("utf-8")
        reader = app.screen.query_one(Reader)
        assert reader.page is not None
        assert reader.page.lines[3].endswith("Twice!")
        assert reader.cursor == 3

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_a_log_that_is_not_there_is_begun(workspace: Path, size: tuple[int, int]) -> None:
    log = workspace / "memory" / f"{TODAY}.md"
    log.unlink()
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        assert isinstance(app.screen, BrowseView)
        assert app.screen.listed.reveal(f"memory/{TODAY}.md")
        await settled(pilot)
        matches_screen(app, "log_absent")
        await press(pilot, "y")
        assert said(app) == "No log of this day yet. Press e to begin it."
        await press(pilot, "i", "escape")
        assert isinstance(app.screen, BrowseView), "nothing was typed, so nothing is asked"
        assert not log.exists()
        await press(pilot, "i")
        assert "ctrl+s begins it" in said(app)
        area = app.screen.query_one(EditArea)
        assert area.text == f"# {TODAY}\n\n"
        assert area.cursor_location == (2, 0)
        await enter(pilot, "- A first line.")
        await press(pilot, "escape", "n", "ctrl+s")
        assert log.read_text("utf-8") == f"# {TODAY}\n\n- A first line.\n"
        await until(lambda: "A first line." in text_of(app))
        await press(pilot, "u")
        await until(lambda: not log.exists())
        await until(lambda: "e begins it" in text_of(app))

    drive(app, steps, size)


def test_a_secret_stands_in_no_title_but_in_the_note(app: MemoryApp, workspace: Path) -> None:
    secret = "Tr0ub4dor" + "&3xYz"

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "a")
        await enter(pilot, f"password: {secret}")
        await press(pilot, "enter")
        await until(lambda: secret in (workspace / LOG).read_text("utf-8"))
        await settled(pilot)
        assert secret not in said(app)
        await press(pilot, "g", "t", "g", "h")
        await until(lambda: app.screen.query_one(Changes).entry is not None)
        shown = [
            line[: line.find("Difference")] if "Difference" in line else line for line in text_of(app).splitlines()
        ]
        title = next(line for line in shown if "Remember in" in line)
        assert "password: ***" in title
        assert app.engine is not None
        assert secret not in app.engine.notes.curator.history(LOG)[0].title

    drive(app, steps)


def test_a_log_that_is_not_there_is_not_begun_read_only(workspace: Path) -> None:
    (workspace / "memory" / f"{TODAY}.md").unlink()
    app = make_app(workspace, read_only=True)

    async def steps(pilot: Pilot[int]) -> None:
        assert isinstance(app.screen, BrowseView)
        assert app.screen.listed.reveal(f"memory/{TODAY}.md")
        await settled(pilot)
        assert "i begins it" not in text_of(app)
        await press(pilot, "i")
        assert "--read-only" in said(app)

    drive(app, steps)


def test_what_is_not_saved_is_asked_about(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await to_editor(pilot, LOG, LINE)
        await press(pilot, *"draft", "escape")
        assert isinstance(app.screen, Confirm)
        await press(pilot, "n")
        assert isinstance(app.screen, EditView)
        await press(pilot, "ctrl+q")
        assert isinstance(app.screen, Confirm)
        await press(pilot, "enter")
        assert app.is_running
        assert app.screen.query_one(EditArea).text.splitlines()[3].startswith("draft- Backup")
        await press(pilot, "escape", "y")
        assert isinstance(app.screen, BrowseView)
        assert files(workspace) == before

    drive(app, steps)


def test_what_was_typed_comes_back_after_a_crash(app: MemoryApp, workspace: Path) -> None:
    async def crashing(pilot: Pilot[int]) -> None:
        await to_editor(pilot, LOG, LINE)
        await press(pilot, *"typed")
        view = app.screen
        assert isinstance(view, EditView)
        assert view.resting
        # The app ends here without being asked, like one that is killed.

    drive(app, crashing)
    note = workspace / LOG
    note.write_text(note.read_text("utf-8") + "- appended by the agent\n", "utf-8")
    later = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, LINE)
        assert area.text.splitlines()[3].startswith("typed- Backup")
        assert "is back" in said(later)
        await press(pilot, "ctrl+s")
        assert isinstance(later.screen, BrowseView)
        assert "The note also has what others wrote meanwhile." in said(later)
        text = note.read_text("utf-8")
        assert "typed- Backup" in text
        assert text.endswith("- appended by the agent\n")
        await to_editor(pilot, LOG, LINE)
        assert "is back" not in said(later)

    drive(later, steps)


def test_what_was_thrown_away_does_not_come_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_editor(pilot, LOG, LINE)
        await press(pilot, *"typed")
        view = app.screen
        assert isinstance(view, EditView)
        assert view.resting
        await press(pilot, "escape", "y")
        area = await to_editor(pilot, LOG, LINE)
        assert "typed" not in area.text
        assert app.engine is not None
        assert left_over(app.engine) == ""

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_two_writers_of_one_line_see_both_texts(workspace: Path, size: tuple[int, int]) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await to_editor(pilot, LOG, LINE)
        await press(pilot, "end")
        await enter(pilot, " MINE")
        note = workspace / LOG
        note.write_text(note.read_text("utf-8").replace("no lock left behind.", "THEIRS"), "utf-8")
        theirs = note.read_bytes()
        await press(pilot, "ctrl+s")
        assert isinstance(app.screen, Resolve)
        shown = text_of(app)
        for words in ("MINE", "THEIRS", "base", "mine", "theirs", "as draft"):
            assert words in shown, words
        assert note.read_bytes() == theirs
        await press(pilot, "escape")
        assert isinstance(app.screen, EditView)
        assert "MINE" in app.screen.query_one(EditArea).text
        await press(pilot, "ctrl+s", "b", "ctrl+s")
        assert isinstance(app.screen, BrowseView)
        lines = note.read_text("utf-8").splitlines()
        assert lines[3].endswith("THEIRS")
        assert "MINE" in lines[4]

    drive(app, steps, size)


def test_changes_that_do_not_touch_are_both_kept(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_editor(pilot, LOG, LINE)
        await press(pilot, "end")
        await enter(pilot, " MINE")
        note = workspace / LOG
        note.write_text(note.read_text("utf-8") + "- appended by the agent\n", "utf-8")
        await press(pilot, "ctrl+s")
        assert isinstance(app.screen, BrowseView), "nothing touches, so nothing is asked"
        assert " MINE\n" in note.read_text("utf-8")
        assert note.read_text("utf-8").endswith("- appended by the agent\n")
        assert "The note also has what others wrote meanwhile. u undoes it." in said(app)
        note.write_text(note.read_text("utf-8") + "- and more\n", "utf-8")
        await press(pilot, "u")
        assert "Others' changes" in said(app)
        assert " MINE\n" not in note.read_text("utf-8")
        assert note.read_text("utf-8").endswith("- appended by the agent\n- and more\n")

    drive(app, steps)


def test_one_session_of_the_editor_leaves_one_draft_and_none_when_it_is_saved(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert app.engine is not None
        drafts = app.engine.notes.curator.drafts
        note = workspace / LOG
        await to_editor(pilot, LOG, LINE)
        await press(pilot, "end")
        for number in range(3):
            await enter(pilot, f" MINE{number}")
            text = re.sub(r"no lock left behind.*", f"THEIRS {number}", note.read_text("utf-8"))
            note.write_text(re.sub(r"THEIRS .*", f"THEIRS {number}", text), "utf-8")
            await press(pilot, "ctrl+s")
            assert isinstance(app.screen, Resolve)
            (draft,) = drafts()
            mine = app.engine.notes.curator.journal.change_of(draft).files[0].after
            assert mine is not None
            assert f" MINE{number}\n" in mine.decode()
            await press(pilot, "escape")
        # They go on in the same lines while somebody chooses.
        await press(pilot, "ctrl+s", "b")
        note.write_text(note.read_text("utf-8").replace("THEIRS 2", "THEIRS 3"), "utf-8")
        await press(pilot, "ctrl+s")
        assert isinstance(app.screen, Resolve)
        assert len(drafts()) == 1
        await press(pilot, "b", "ctrl+s")
        assert isinstance(app.screen, BrowseView)
        assert "MINE2" in note.read_text("utf-8")
        assert "THEIRS 3" in note.read_text("utf-8")
        assert drafts() == ()

    drive(app, steps)


def test_a_draft_goes_with_the_text_that_is_thrown_away(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert app.engine is not None
        await to_editor(pilot, LOG, LINE)
        await press(pilot, "end", *"MINE")
        note = workspace / LOG
        note.write_text(note.read_text("utf-8").replace("no lock left behind.", "THEIRS"), "utf-8")
        await press(pilot, "ctrl+s", "escape")
        assert len(app.engine.notes.curator.drafts()) == 1
        await press(pilot, "escape", "y")
        assert app.engine.notes.curator.drafts() == ()

    drive(app, steps)


def test_what_is_chosen_for_one_note_is_made_with_the_others(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        await press(pilot, "p", "m")
        assert isinstance(app.screen, Preview)
        note = workspace / LOG
        note.write_text(note.read_text("utf-8").replace("no lock left behind.", "no lock at all."), "utf-8")
        await press(pilot, "y")
        assert isinstance(app.screen, Resolve)
        await press(pilot, "m", "ctrl+s")
        assert LINE not in note.read_text("utf-8")
        assert f"- {LINE}" in (workspace / "MEMORY.md").read_text("utf-8"), "the line was lost"
        await press(pilot, "u")
        assert "no lock at all." in note.read_text("utf-8")
        assert LINE not in (workspace / "MEMORY.md").read_text("utf-8")

    drive(app, steps)


def test_hostile_lines_are_shown_safely_and_keep_their_bytes(tmp_path: Path) -> None:
    workspace = tmp_path / "notes"
    workspace.mkdir()
    lines = [b"# top", b"clipboard \x1b]52;c;aGVsbG8=\x07", b"\ttab \xe2\x80\xae turned", b"latin \xe9", b"end\r"]
    (workspace / "MEMORY.md").write_bytes(b"\n".join(lines) + b"\n")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await to_editor(pilot, "MEMORY.md", "# top")
        assert all(character.isprintable() for line in lines_of(app) for character in line)
        await press(pilot, "end")
        await enter(pilot, " edited")
        await press(pilot, "ctrl+s")
        assert (workspace / "MEMORY.md").read_bytes() == b"\n".join([b"# top edited", *lines[1:]]) + b"\n"

    drive(app, steps)


def test_what_is_pasted_is_shown_and_not_obeyed(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        area = await to_editor(pilot, LOG, LINE)
        app.post_message(events.Paste("one\x1b]52;c;aGk=\x07\r\n\ttwo\u202e"))
        await settled(pilot)
        assert all(character.isprintable() for line in lines_of(app) for character in line)
        first, second = area.text.split("\n")[3:5]
        assert first == "one\u241b]52;c;aGk=\u2407"
        assert second.startswith(f"\ttwo<RLO>- {LINE}")

    drive(app, steps)


def test_a_line_that_is_not_handed_over_stands_there_the_next_time(app: MemoryApp, workspace: Path) -> None:
    def typed() -> str:
        return app.screen.query_one(Box).value

    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await press(pilot, "a")
        await enter(pilot, "half a thought")
        await press(pilot, "escape")
        assert said(app) == "“Remember this” keeps what you typed for the next time."
        await press(pilot, "a")
        assert typed() == "half a thought"
        await press(pilot, "escape", "a", "enter")
        assert files(workspace) != before
        await press(pilot, "a")
        assert typed() == "", "it was handed over"

    drive(app, steps)


def test_adding_a_line_says_under_which_heading_it_will_stand(workspace: Path, app: MemoryApp) -> None:
    today = workspace / "memory" / "2026-03-20.md"
    today.write_text("# 2026-03-20\n\n## Morning\n- tea\n\n## Evening plans\n- chess\n", "utf-8")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "a")
        await until(lambda: "Evening plans" in str(app.screen.query_one("#remark", Static).content))
        said = " ".join(str(app.screen.query_one("#remark", Static).content).split())
        assert said.startswith("It goes to the end of memory/2026-03-20.md, under “Evening plans”.")
        await press(pilot, "escape")
        today.unlink()
        await press(pilot, "a")
        await until(
            lambda: "makes the note memory/2026-03-20.md." in str(app.screen.query_one("#remark", Static).content)
        )

    drive(app, steps)


def test_the_history_shows_each_change_and_the_way_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await remember(pilot, "first thought")
        await to_line(pilot, LOG, LINE)
        await press(pilot, "p", "y", "escape")
        await press(pilot, "g", "t", "g", "h")
        assert isinstance(app.screen, HistoryView)
        assert app.screen.query_one(Changes).count() == 1
        assert "first thought" in text_of(app)
        await press(pilot, "u")
        assert isinstance(app.screen, Preview)
        await press(pilot, "y")
        assert (workspace / LOG).read_bytes() == before[LOG]
        assert "undone, ctrl+r redoes" in text_of(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, BrowseView)

    drive(app, steps)


def test_a_change_of_an_earlier_session_is_shown_before_it_is_taken_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await press(pilot, "u")
        assert said(app).startswith("Nothing is left to undo.")
        await remember(pilot, "a thought")
        app.started = float("inf")
        after = files(workspace)
        await press(pilot, "u")
        assert isinstance(app.screen, Preview), said(app)
        await press(pilot, "n")
        assert files(workspace) == after
        await press(pilot, "u", "y")
        assert files(workspace) == before

    drive(app, steps)


def test_the_history_knows_the_commits_and_commits_when_asked(workspace: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words],
            cwd=workspace,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    git("init", "-q")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    git("add", ".")
    git("commit", "-q", "-m", "All notes")
    note = workspace / LOG
    note.write_text(note.read_text("utf-8") + "- a line more\n", "utf-8")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "t", "g", "h")
        shown = text_of(app)
        assert "All notes" in shown
        assert "Backup at 03:15" in shown, "the difference of the commit"
        await press(pilot, "u")
        assert said(app).startswith("u undoes changes made with memory-tui only")

    drive(app, steps)


def test_read_only_refuses_every_key_that_writes(workspace: Path) -> None:
    app = make_app(workspace, read_only=True)
    keys = {
        key
        for action in ACTIONS
        if action.id in ("own_editor", "edit_here", "promote", "move", "trash", "new_note", "undo", "redo", "remember")
        for key in action.keys
    }

    async def steps(pilot: Pilot[int]) -> None:
        before = files(workspace)
        await press(pilot, "tab")
        for key in sorted(keys):
            app.screen._said = ""  # type: ignore[attr-defined]
            await press(pilot, key)
            assert said(app) == "Opened with --read-only: nothing is written but the index.", key
            assert isinstance(app.screen, BrowseView)
        assert files(workspace) == before

    drive(app, steps)
    assert len(keys) == 10


def test_a_workspace_that_may_not_be_written_says_so(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_tui.tui import state

    monkeypatch.setattr(state.os, "access", lambda _path, _mode: False)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "tab", "p")
        assert said(app) == "You may not write to the folder of the notes."

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_the_screens(workspace: Path, size: tuple[int, int]) -> None:
    app = make_app(workspace)

    async def matches(name: str) -> None:
        # What is behind a dialog is drawn a frame after it.
        await until(lambda: "HYBRID" in text_of(app))
        matches_screen(app, name)

    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        await press(pilot, "p")
        await matches("promote")
        await press(pilot, "n", "a")
        await matches("remember")
        await press(pilot, "escape")
        await to_editor(pilot, LOG, LINE)
        await enter(pilot, "my own ")
        await matches("edit")
        note = workspace / LOG
        note.write_text(note.read_text("utf-8").replace("- Backup", "- The other backup") + "- more\n", "utf-8")
        await press(pilot, "ctrl+s")
        await matches("resolve")

    drive(app, steps, size)


def test_links_to_the_note_follow_a_promotion_and_its_undo(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await to_line(pilot, LOG, LINE)
        await settled(pilot)

        def linked() -> bool:
            return "← MEMORY.md:" in text_of(app)

        assert not linked()
        await press(pilot, "p", "enter")
        await until(linked)
        await press(pilot, "u", "enter")
        await until(lambda: not linked())

    drive(app, steps, LARGE)


def test_a_line_that_was_added_is_shown_where_it_stands(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await remember(pilot, "Plumber comes on Friday at ten")
        view = app.screen
        assert isinstance(view, BrowseView)
        await until(lambda: view.pane.reader.page is not None and "Plumber comes" in text_of(app))
        page, reader = view.pane.reader.page, view.pane.reader
        assert page is not None
        assert page.path == f"memory/{TODAY}.md"
        assert "Plumber comes on Friday at ten" in page.lines[reader.cursor]

    drive(app, steps)
