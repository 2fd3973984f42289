"""Where am I, what can I press: tabs, keys of two letters, the palette and the help found by words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.command import CommandList

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.navigation import NUMBERED
from memory_tui.tui.views.dialogs import Confirm
from memory_tui.tui.views.help import Help
from memory_tui.tui.views.inbox.inbox_view import InboxView
from memory_tui.tui.views.index.listings import DoctorView
from memory_tui.tui.views.notes.browse import BrowseView, ReaderView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets import status_bars
from memory_tui.tui.widgets.query import QueryInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.status_bars import KeyHints, TabLine, WhichKey
from memory_tui.tui.widgets.tune_strip import TuneStrip
from tests.support.tui import Pilot, ask, drive, lines_of, make_app, press, said, sample, settled, text_of, until


@pytest.fixture
def app(tmp_path: Path) -> MemoryApp:
    return make_app(sample(tmp_path / "notes"))


def tabs(app: MemoryApp) -> str:
    return lines_of(app)[0][: app.screen.query_one(TabLine).region.right]


def test_a_click_on_a_tab_is_its_number(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert tabs(app).split() == [part for row in NUMBERED for part in (str(row.number), row.label)]
        for row in reversed(NUMBERED):
            await pilot.click(TabLine, offset=(tabs(app).index(row.label), 0))
            await settled(pilot)
            assert app.current_mode == row.key
            await press(pilot, str(row.number))
            assert app.current_mode == row.key

    drive(app, steps)


def test_below_80_columns_a_tab_is_a_letter(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert tabs(app).split() == [f"{row.number}{row.label[0]}" for row in NUMBERED]
        await pilot.click(TabLine, offset=(tabs(app).index("4I"), 0))
        await settled(pilot)
        assert isinstance(app.screen, InboxView)

    drive(app, steps, (60, 20))


def test_a_tab_leaves_what_lies_over_its_view_but_no_unsaved_text(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "router")
        await press(pilot, "1", "tab", "w")
        assert isinstance(app.screen, WhyNotView)
        await press(pilot, "2", "1", "g", "t")
        assert isinstance(app.screen, BrowseView)
        await press(pilot, "e", "x")
        assert isinstance(app.screen, EditView)
        await pilot.click(TabLine, offset=(tabs(app).index("Search"), 0))
        await press(pilot, "slash", *"omada", "enter", "1")
        assert isinstance(app.screen, EditView)
        assert app.screen.unsaved

    drive(app, steps)


def test_tabs_count_files_behind_and_findings(tmp_path: Path) -> None:
    workspace = sample(tmp_path / "notes")
    app = make_app(workspace, changes=[("sync.onSearch", "false")])

    async def steps(pilot: Pilot[int]) -> None:
        (workspace / "memory" / "new.md").write_text("# new\n", "utf-8")
        app.jobs.refresh()
        await settled(pilot)
        assert "3 Index 1 " in tabs(app)
        assert "4 Inbox  " in f"{tabs(app)} ", "nobody looked yet"
        await press(pilot, "4")
        view = app.screen
        assert isinstance(view, InboxView)
        assert view.open
        assert f"4 Inbox {len(view.open)} " in tabs(app)
        await press(pilot, "x")
        assert f"4 Inbox {len(view.open)} " in f"{tabs(app)} " or not view.open

    drive(app, steps)


def test_enter_reads_a_note_that_waits_to_be_indexed(tmp_path: Path) -> None:
    workspace = sample(tmp_path / "notes")
    app = make_app(workspace, changes=[("sync.onSearch", "false")])

    async def steps(pilot: Pilot[int]) -> None:
        (workspace / "memory" / "new.md").write_text("# a note that waits\n", "utf-8")
        app.jobs.refresh()
        await press(pilot, "3", "tab", "enter")
        assert isinstance(app.screen, ReaderView)
        assert "a note that waits" in text_of(app)

    drive(app, steps)


def test_a_prefix_waits_for_its_second_letter(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "d")
        assert isinstance(app.screen, DoctorView)
        await press(pilot, "escape", "g", "escape")
        assert not said(app)
        await press(pilot, "g", "4")
        assert said(app) == "g4 does nothing here. ? shows the keys of this pane."
        assert app.current_mode == "browse"
        await press(pilot, "z", "s")
        assert said(app).startswith("zs works in Search (2): ")

    drive(app, steps)


def test_what_may_follow_a_prefix_is_listed_after_a_moment(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_bars, "WAIT_SECONDS", 0.01)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g")
        popup = app.screen.query_one(WhichKey)
        await until(lambda: popup.display)
        await settled(pilot)
        assert "go to ..." in text_of(app)
        lines = text_of(app).splitlines()
        at = next(y for y, line in enumerate(lines) if "d  doctor" in line)
        await pilot.click(offset=(popup.region.x + 4, at))
        await until(lambda: isinstance(app.screen, DoctorView))
        assert not popup.display, "a click takes the letter of its line"
        assert "today's note" not in text_of(app)

    drive(app, steps)


def test_the_list_of_a_finished_prefix_does_not_come_after_it(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_bars, "WAIT_SECONDS", 0.01)

    async def steps(pilot: Pilot[int]) -> None:
        popup = app.screen.query_one(WhichKey)
        ran_out: list[Callable[[], object]] = []
        monkeypatch.setattr(popup, "call_next", ran_out.append)
        for second in ("g", "escape", "4"):
            ran_out.clear()
            await press(pilot, "g")
            await until(lambda: ran_out)
            await press(pilot, second)
            ran_out[0]()
            assert not popup.display, "the time was up just before the second letter came"

    drive(app, steps)


def test_a_prefix_is_given_up_where_something_else_comes_to_the_front(
    app: MemoryApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_bars, "WAIT_SECONDS", 0.01)

    async def steps(pilot: Pilot[int]) -> None:
        popup = app.screen.query_one(WhichKey)
        for there in (lambda: app.switch_mode("index"), lambda: app.push_screen(Confirm("Title", "A question.", "Do"))):
            await press(pilot, "g")
            await until(lambda: popup.display)
            await there()
            await settled(pilot)
            assert not popup.display
            await press(pilot, "n" if isinstance(app.screen, Confirm) else "1")
            await press(pilot, "j")
            assert not said(app), "no letter is taken for the second one"
            assert not popup.display

    drive(app, steps)


def test_the_palette_names_what_cannot_be_done_now_and_says_why_behind_it(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        for typed in ("", "panes"):
            await press(pilot, "colon", *typed)
            commands = app.screen.query_one(CommandList)

            def found(commands: CommandList = commands) -> list[str]:
                prompts = [str(option.prompt) for option in commands.options]
                return [prompt for prompt in prompts if "Back to all panes" in prompt]

            await until(found)
            # One line, which begins with the command's name.
            assert found() == ["Back to all panes  (_)  Not now. No pane is enlarged; + enlarges this one."]
            await press(pilot, "escape")

    drive(app, steps)


DIALOGS = {
    "o": " enter Take  down Next  up Previous  esc Close",
    "a": " enter Keep  esc Cancel",
    "colon": " enter Do it  down Next  esc Close",
    "?": " f Find  j Down  k Up  esc Close",
    "ctrl+o": " a s d Go there  esc Stay",
    "3 R": " y Reindex  n Cancel",
    "2 W": " enter Take  tab Complete  down Choose  esc Leave",
    "2 v": " enter Chosen  y Answers it  1 Helps a little  n Wrong  - Take back  x The notes do not know  esc Leave",
    "2 p": " enter Promote  j Down  k Up  esc Cancel",
}
"""What leads to a dialog -> the keys that the last line names under it."""


def test_the_last_line_names_the_keys_of_the_dialog_in_front(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "What can Theo not eat?")
        for keys, hints in DIALOGS.items():
            await press(pilot, *(keys if keys[0] in "23" else f"1 {keys}").split())
            assert not isinstance(app.screen, View), keys
            assert lines_of(app)[-1].rstrip() == hints, keys
            await press(pilot, "escape")
            assert isinstance(app.screen, View), keys
            app.screen.query_one(KeyHints).show_message("")
            await settled(pilot)
            assert ": Cmd  ? Help  q " in lines_of(app)[-1], keys

    drive(app, steps)


def test_a_number_in_the_palette_is_a_line_of_the_note_on_screen(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        reader = app.screen.query_one(Reader)
        await press(pilot, "colon", *"3")
        await until(lambda: "Go to line 3 of MEMORY.md" in text_of(app))
        await until(lambda: app.screen.query_one(CommandList).highlighted is not None)
        await press(pilot, "enter")
        await until(lambda: reader.has_focus and reader.cursor == 2)

    drive(app, steps)


def test_a_prefix_is_a_letter_in_a_text_box(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "slash", *"gtz")
        assert app.screen.query_one(QueryInput).value == "gtz"

    drive(app, steps)


def test_the_palette_finds_by_words(app: MemoryApp) -> None:
    titles = {
        "quit": "Quit at once",
        "theme": "Choose a theme",
        "asked log": "The log of what agents asked",
        "minscore": "Turn minScore",
    }

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "router")
        for words, title in titles.items():
            await press(pilot, "colon", *words)
            await until(lambda title=title: title in text_of(app))
            if title != "Turn minScore":
                await press(pilot, "escape")
        await press(pilot, "enter", "enter")
        strip = app.screen.query_one(TuneStrip)
        assert strip.has_focus
        assert strip.dial is not None
        assert strip.dial.knob.key == "query.minScore"

    drive(app, steps)


def test_help_is_short_and_finds_keys_of_every_view(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "?")
        assert "draw the screen again" not in text_of(app)
        await press(pilot, "f", *"saved quer")
        assert "gq" in text_of(app)
        assert "[Search (2)]" in text_of(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, Help)
        assert "gq" not in text_of(app)
        await press(pilot, "escape")
        assert not isinstance(app.screen, Help)

    drive(app, steps)
