"""Browsing and reading: what a session starts with, where hosts cut, links both ways, looking for text, long notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from memory_tui.recalls import recall_log, recalled_lines
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.help import Help
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.note_side import AboutPane
from memory_tui.tui.widgets.reader import Reader
from tests.support.tui import LARGE, SMALL, ask, drive, enter, make_app, press, said, settled, text_of, until


def reader_of(app: MemoryApp) -> Reader:
    return app.screen.query_one(Reader)


def shown_path(app: MemoryApp) -> str:
    page = reader_of(app).page
    return page.path if page else ""


def about(app: MemoryApp) -> str:
    return "\n".join(f"{row.label} {row.words}" for row in app.screen.query_one(AboutPane)._rows)


def test_the_app_opens_with_what_an_agent_reads_first(workspace: Path) -> None:
    (workspace / "memory" / "2031-01-01.md").write_text("# the future\n", "utf-8")
    (workspace / "memory" / "2026-03-19.md").unlink()
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        assert shown_path(app) == "MEMORY.md"
        await press(pilot, "j")
        assert shown_path(app) == "memory/2026-03-20.md"
        await press(pilot, "j")
        assert "There is no memory/2026-03-19.md yet." in text_of(app)
        await press(pilot, "E")
        assert said(app).endswith("There is no note under the cursor.") or "terminal" in said(app)
        await press(pilot, "g", "t")
        assert shown_path(app) == "memory/2026-03-20.md"
        await press(pilot, "right_square_bracket")
        assert shown_path(app) == "memory/2031-01-01.md"

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_a_line_shows_where_the_host_stops_reading(workspace: Path, size: tuple[int, int]) -> None:
    note = workspace / "MEMORY.md"
    note.write_text("# Memory\n" + "".join(f"- number {i:03} {'x' * 80}\n" for i in range(250)), "utf-8")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        reader = reader_of(app)
        # 70 % of 20,000 characters: 9 for the heading, 94 for each line; the line that is cut is read in part.
        first = (14_000 - 9) // 94 + 2
        assert reader.unread.start == first
        assert set(reader.rules) >= {reader.unread.start, reader.unread.stop}
        await press(pilot, "tab")
        reader.go_to_line(first - 2)
        await settled(pilot)
        lines = text_of(app).splitlines()
        at = next(i for i, line in enumerate(lines) if "OpenClaw stops here" in line)
        assert f"number {first - 2:03}" in "".join(lines[at - 4 : at])
        assert f"number {first - 1:03}" in "".join(lines[at + 1 : at + 3])
        assert "Claude Code stops here: 51 lines unread" in reader.rules.values()

    drive(app, steps, size)


def test_links_are_followed_and_lead_back(workspace: Path) -> None:
    (workspace / "memory" / "links.md").write_text(
        "# Links\n\nsee [[network]] and memory/house.md#L5\nonly [[network#Line]] here\n[[nowhere]]\n", "utf-8"
    )
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        view = app.screen
        assert isinstance(view, BrowseView)
        view.go_to("memory/links.md")
        await settled(pilot)
        assert "→ network.md" in about(app)
        assert "→ house.md:5" in about(app)
        assert "× nowhere no such note" in about(app)
        await press(pilot, "tab")
        reader_of(app).go_to_line(4)
        await press(pilot, "enter")
        assert shown_path(app) == "memory/network.md"
        assert "← links.md:3" in about(app)
        await press(pilot, "-")
        assert (shown_path(app), reader_of(app).cursor) == ("memory/links.md", 3)
        await press(pilot, "up", "enter")
        await enter(pilot, "house")
        await press(pilot, "enter")
        assert (shown_path(app), reader_of(app).cursor) == ("memory/house.md", 4)
        await press(pilot, "-", "g", "g", "enter")
        assert said(app) == "There is no link in this line."
        await press(pilot, "g", "i")
        pane = app.screen.query_one(AboutPane)
        pane.go(next(row for row in range(pane.count()) if pane._rows[row].label == "→"))
        await press(pilot, "enter")
        assert shown_path(app) == "memory/network.md"
        assert isinstance(app.focused, Reader)

    drive(app, steps)


def test_a_narrow_screen_shows_what_is_known_in_place_of_the_note(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        assert not app.screen.query_one(AboutPane).display
        await press(pilot, "g", "i")
        assert isinstance(app.focused, AboutPane)
        assert "evergreen, never fades" in text_of(app)
        await press(pilot, "escape")
        assert isinstance(app.focused, Reader)
        assert not app.screen.query_one(AboutPane).display

    drive(app, steps, SMALL)


def test_lines_that_an_agent_was_given_are_marked(workspace: Path) -> None:
    hits = (LoggedHit("MEMORY.md", 7, 9, 0.8, 0.5, 0.3),)
    recall_log.append_recall(
        recall_log.recall_log_path(workspace), RecallEntry("memory_search", "who is Ben", 1.0, "claude", hits=hits)
    )
    app = make_app(workspace)

    async def steps(_pilot: Pilot[int]) -> None:
        assert "recalled 1 time, last 1970-01-01 00:00, by claude" in about(app)
        marked = [line for line in text_of(app).splitlines() if "•" in line]
        assert len(marked) == 3
        assert "Ben Calloway" in marked[0]

    drive(app, steps)


def test_lines_that_a_question_recalled_here_are_marked(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        assert "here " not in about(app)
        await ask(pilot, "omada router vlan")
        await press(pilot, "1")
        view = app.screen
        assert isinstance(view, BrowseView)
        view.go_to("memory/network.md")
        await settled(pilot)
        assert "recalled by your questions, last 2026-03-20 12:00" in about(app)
        assert "•" in text_of(app)

    drive(app, steps)
    # Another start knows them as well, and says what it could not read.
    with recalled_lines.marks_path(workspace).open("ab") as file:
        file.write(b"torn\n")
    again = make_app(workspace)

    async def look(pilot: Pilot[int]) -> None:
        view = again.screen
        assert isinstance(view, BrowseView)
        view.go_to("memory/network.md")
        await settled(pilot)
        assert "recalled by your questions, last 2026-03-20 12:00" in about(again)
        assert "1 line of the record of your recalls could not be read" in about(again)
        assert "•" in text_of(again)

    drive(again, look)


def test_marks_last_until_the_app_is_closed_where_they_are_not_wanted_or_cannot_be_kept(workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, MemoryApp)
        await ask(pilot, "omada router vlan")
        if app.engine is not None and app.engine.plan.settings.on("recall.marks"):
            assert "last until the app is closed" in said(app)
        await press(pilot, "1")
        view = app.screen
        assert isinstance(view, BrowseView)
        view.go_to("memory/network.md")
        await settled(pilot)
        assert "recalled since the app started" in about(app)
        assert "•" in text_of(app)

    drive(make_app(workspace, changes=[("recall.marks", "false")]), steps)
    place = recalled_lines.marks_path(workspace)
    assert not place.parent.exists()
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    place.parent.write_text("a file where the folder should be")
    drive(make_app(workspace), steps)


def test_what_is_known_of_a_note_follows_the_index(workspace: Path) -> None:
    (workspace / "memory" / "empty.md").write_text("", "utf-8")
    app = make_app(workspace, changes=[("sync.onSearch", "false")])

    async def steps(pilot: Pilot[int]) -> None:
        view = app.screen
        assert isinstance(view, BrowseView)
        view.go_to("memory/empty.md")
        await settled(pilot)
        assert "memory/empty.md  empty" in text_of(app)
        assert about(app).startswith("state fresh")
        (workspace / "memory" / "empty.md").write_text("# no longer\n", "utf-8")
        app.jobs.refresh()
        await settled(pilot)
        assert about(app).startswith("state changed")
        await press(pilot, "r")
        assert about(app).startswith("state fresh")
        assert "12 bytes, 1 line\n" in about(app)
        assert "chunk 1 of 1" in text_of(app)

    drive(app, steps)


def test_text_is_looked_for_in_the_note(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "tab", "n")
        assert said(app) == "No search text yet. Press f in the reader to find text."
        await press(pilot, "f")
        await enter(pilot, "vlan")
        assert said(app) == "3 places in this note."
        await press(pilot, "enter")
        page = reader_of(app).page
        assert page is not None
        seen = []
        for _ in range(3):
            seen.append(reader_of(app).cursor)
            assert "vlan" in page.lines[seen[-1]].lower()
            await press(pilot, "n")
        assert reader_of(app).cursor == seen[0]
        await press(pilot, "N")
        assert reader_of(app).cursor == max(seen)
        await press(pilot, "f")
        await enter(pilot, "zzz")
        assert said(app) == '"vlanzzz" is not in this note.'
        await press(pilot, "escape")
        assert not reader_of(app).matches
        assert isinstance(app.focused, Reader)

    drive(app, steps)


def test_the_find_box_goes_with_its_note(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "tab", "f")
        await enter(pilot, "vlan")
        await press(pilot, "enter")
        box = app.screen.query_one("#find", Input)
        page = reader_of(app).page
        assert page is not None
        assert box.display
        before = page.path
        await press(pilot, "g", "t")
        await until(lambda: reader_of(app).page is not None and reader_of(app).page.path != before)  # type: ignore[union-attr]
        assert not box.display
        assert not box.value
        assert not reader_of(app).matches

    drive(app, steps)


def test_one_click_unfolds_a_group(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        rows = text_of(app).splitlines()
        at = next(y for y, line in enumerate(rows) if "▸" in line)
        left = rows[at].index("▸")
        await pilot.click(offset=(left + 2, at))
        await settled(pilot)
        assert text_of(app).splitlines()[at][left] == "▾"

    drive(app, steps)


def test_a_note_is_opened_by_a_few_letters(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "o")
        await enter(pilot, "depl")
        await press(pilot, "enter")
        assert shown_path(app) == "memory/work/deploy-runbook.md"
        assert isinstance(app.focused, Reader)
        await press(pilot, "minus")
        assert shown_path(app) == "MEMORY.md"
        await press(pilot, "o")
        await pilot.click("#choices", offset=(5, 2), times=2)
        await settled(pilot)
        assert shown_path(app) not in ("", "MEMORY.md")

    drive(app, steps)


def test_chunks_are_walked(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "tab", "}")
        page = reader_of(app).page
        assert page is not None
        assert reader_of(app).cursor + 1 == page.chunks[1][0]
        await press(pilot, "}", "{", "{")
        assert reader_of(app).cursor == 0

    drive(app, steps)


def test_marked_lines_are_what_is_cited(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "tab", "j", "j", "V", "j", "j", "y")
        assert app.clipboard == "MEMORY.md#L3-L5"
        await press(pilot, "escape", "y")
        assert app.clipboard != "MEMORY.md#L3-L5"

    drive(app, steps)


def test_enlarging_the_terminal_brings_the_beginning_back(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "G")
        tree = app.screen.query_one(FileTree)
        assert tree.scroll_offset.y > 0
        await pilot.resize_terminal(120, 60)
        await settled(pilot)
        assert tree.scroll_offset.y == 0
        assert "Read at session start" in text_of(app)

    drive(app, steps, SMALL)


def test_help_says_that_there_is_more_below(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "?")
        assert isinstance(app.screen, Help)
        assert "lines below" in text_of(app)
        for _ in range(30):
            await press(pilot, "ctrl+d")
        assert "lines below" not in text_of(app)
        assert "esc closes" in text_of(app)

    drive(app, steps, SMALL)


def test_the_palette_finds_the_themes_by_their_name(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "colon", *"theme")
        await until(lambda: "Choose a theme" in text_of(app))

    drive(app, steps)


def test_a_long_note_opens_with_its_head_and_goes_to_any_line(workspace: Path) -> None:
    lines = [
        f"line {i} of a long note, with 外婆 and **words** to wrap at the edge of the screen" for i in range(20_000)
    ]
    (workspace / "memory" / "long.md").write_text("\n".join(lines) + "\n", "utf-8")
    app = make_app(workspace, provider="none")

    async def steps(pilot: Pilot[int]) -> None:
        seen = []
        real = Reader.show

        def show(self: Reader, page: object, *args: object, **more: object) -> None:
            seen.append(page.whole)  # type: ignore[attr-defined]
            real(self, page, *args, **more)  # type: ignore[arg-type]

        Reader.show = show  # type: ignore[method-assign, assignment]
        try:
            view = app.screen
            assert isinstance(view, BrowseView)
            view.go_to("memory/long.md")
            await settled(pilot)
        finally:
            Reader.show = real  # type: ignore[method-assign]
        assert seen == [False, True]
        view.go_to("memory/long.md", 19_000)
        await settled(pilot)
        assert "line 18999 of a long note" in text_of(app)
        await press(pilot, "tab", "G")
        assert "line 19999 of a long note" in text_of(app)

    drive(app, steps)


def test_without_colour_the_marks_of_the_reader_are_still_told_apart(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        for keys in (["tab", "f"], ["enter", "V", "j"], ["p"], ["n", "i"], ["escape", "g", "h"]):
            await press(pilot, *keys)
            if keys == ["tab", "f"]:
                await enter(pilot, "vlan")
            strips = app.screen._compositor.render_strips()
            assert all(
                colour is None or colour.is_default
                for strip in strips
                for segment in strip
                if segment.style is not None
                for colour in (segment.style.color, segment.style.bgcolor)
            )
        await press(pilot, "escape", "escape")
        styles = {
            (segment.style.reverse, segment.style.bold)
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and "VLAN" in segment.text
        }
        assert (True, True) in styles

    drive(app, steps)
