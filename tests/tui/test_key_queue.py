"""Keys that come faster than the screen: each one counts, in its order, in the pane that the one before led to."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from memory_tui.notes.changes import ThreeWay
from memory_tui.notes.merge import merge
from memory_tui.tui import note_changes
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import NameList, Picker, Prompt
from memory_tui.tui.views.index.index_view import IndexView
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.notes.resolve import Resolve
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.widgets.edit_area import EditArea
from memory_tui.tui.widgets.query import QueryBox
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.tune_strip import TuneStrip
from tests.support.tui import (
    LARGE,
    SMALL,
    ask,
    burst,
    drive,
    enter,
    make_app,
    press,
    said,
    sample,
    settled,
    strike,
    text_of,
    until,
)
from tests.support.waiting import LONG

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
QUESTION = "omada vlan"
MIN_SCORE = "query.minScore"


@pytest.fixture
def app(tmp_path: Path) -> MemoryApp:
    return make_app(sample(tmp_path / "notes"), changes=[(MIN_SCORE, "0.1")])


def knob(app: MemoryApp, key: str = MIN_SCORE) -> float:
    assert app.tuning is not None
    return app.tuning.settings.number(key)


def box(app: MemoryApp) -> Input:
    return next(view for view in app.views if isinstance(view, SearchView)).query_one(QueryBox).input


async def to_min_score(pilot: Pilot[int]) -> TuneStrip:
    strip = pilot.app.screen.query_one(TuneStrip)
    strip.focus()
    await settled(pilot)
    while strip.dial is not None and strip.dial.knob.key != MIN_SCORE:
        await press(pilot, "j")
    return strip


@SIZES
def test_every_key_of_a_burst_turns_the_knob(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        strip = await to_min_score(pilot)
        assert strip.dial is not None
        step, start = strip.dial.knob.step, knob(app)
        await burst(pilot, *["l"] * 8)
        assert knob(app) == pytest.approx(start + 8 * step)
        await burst(pilot, *["h"] * 3, *["l"] * 2, *["h"] * 4)
        assert knob(app) == pytest.approx(start + 3 * step)
        await burst(pilot, *["u"] * 17)
        assert knob(app) == pytest.approx(start)

    drive(app, steps, size)


def test_every_turn_of_the_wheel_counts(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        strip = await to_min_score(pilot)
        assert strip.dial is not None
        step, start = strip.dial.knob.step, knob(app)
        row = next(y for y in range(strip.content_size.height) if "minScore" in strip._cell(y).plain)
        place = (strip.content_region.x + 3, strip.content_region.y + row)
        for _ in range(8):
            app.post_message(events.MouseScrollUp(strip, *place, 0, 0, 0, False, False, False, *place))
        await settled(pilot)
        assert knob(app) == pytest.approx(start + 8 * step)

    drive(app, steps)


def test_keys_keep_their_order_across_panes(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        strip = await to_min_score(pilot)
        assert strip.dial is not None
        step, start = strip.dial.knob.step, knob(app)
        # Two steps, one taken back, a typed value on the next knob, back to this one, one more step, and to the index.
        await burst(pilot, "l", "l", "u", "j", "k", "l", "escape", "3")
        assert knob(app) == pytest.approx(start + 2 * step)
        assert isinstance(app.screen, IndexView)

    drive(app, steps)


def test_what_is_typed_after_enter_is_no_part_of_the_question(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await burst(pilot, "slash", *QUESTION, "enter", "j", "w", "3")
        assert isinstance(app.screen, IndexView)
        assert box(app).value == QUESTION
        await burst(pilot, "slash", "x", "enter", "q", "1")
        assert box(app).value == "x"
        assert isinstance(app.screen, BrowseView)

    drive(app, steps)


def test_the_key_that_asks_selects_the_question_before(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await burst(pilot, "slash", "slash")
        assert box(app).value == QUESTION
        assert box(app).selected_text == QUESTION
        await burst(pilot, "end", "s")
        assert box(app).value == f"{QUESTION}s", "a key that moves keeps it"
        await burst(pilot, "enter", "slash", "n", "a", "s")
        assert box(app).value == "nas", "letters are another question"

    drive(app, steps)


def test_keys_that_wait_for_a_slow_engine_are_not_lost(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.engine is not None
        gather = app.engine.search.gather

        def slow(*given: object, **named: object) -> object:
            assert gate.wait(LONG)
            return gather(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(app.engine.search, "gather", slow)
        start = knob(app)
        await strike(pilot, "slash", "s", "enter", "t", "j", "j", *["l"] * 8, "escape", "3")
        assert isinstance(app.screen, IndexView)
        assert knob(app) == pytest.approx(start + 0.4)
        assert box(app).value == "s"
        gate.set()
        await settled(pilot)
        assert knob(app) == pytest.approx(start + 0.4)

    drive(app, steps)


def test_after_an_error_keys_are_not_typed_into_the_question(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await burst(pilot, "slash")
        box(app).value = "word " * 12_000
        await burst(pilot, "enter", "r", "3")
        assert isinstance(app.screen, IndexView)
        assert box(app).value == "word " * 12_000
        await burst(pilot, "2")
        assert "has 60,000 characters" in text_of(app)
        await burst(pilot, "q")
        assert isinstance(app.screen, BrowseView)

    drive(app, steps, SMALL)


def test_a_paste_stays_between_the_keys_around_it(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        app.post_message(events.Key("slash", "/"))
        app.post_message(events.Paste("omada"))
        await burst(pilot, "space", "v", "l", "a", "n", "enter", "j")
        assert box(app).value == QUESTION
        assert isinstance(app.screen.focused, HitList)

    drive(app, steps)


# --- lists to choose from ------------------------------------------------------------------------------------------


def test_enter_opens_the_note_that_the_list_shows(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        for letters in ("", "netwrk", "projects"):
            await press(pilot, "o", *letters)
            assert isinstance(app.screen, Picker)
            choices = app.screen.query_one(NameList)
            shown = choices.names[choices.cursor]
            await press(pilot, "escape")
            await burst(pilot, "o", *letters, "enter")
            assert isinstance(app.screen, BrowseView)
            page = app.screen.pane.reader.page
            assert page is not None
            assert page.path == shown

    drive(app, steps)


def test_enter_asks_about_the_line_that_the_list_shows(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        for keys in ([], ["down", "down", "up"]):
            await press(pilot, "W", *keys)
            assert isinstance(app.screen, Prompt)
            proposals = app.screen.query_one(OptionList)
            assert proposals.highlighted is not None
            shown = str(proposals.get_option_at_index(proposals.highlighted).prompt)
            await press(pilot, "escape")
            await burst(pilot, "W", *keys, "enter")
            assert isinstance(app.screen, WhyNotView)
            line = f":{app.screen._line}" if app.screen._line else ""
            assert f"{app.screen._path}{line}" == shown
            assert app.screen._path in text_of(app)
            await press(pilot, "escape")
        # A place that is no note is offered as it is typed.
        await burst(pilot, "W", *"memory/nope.md:3", "enter")
        assert "NOT RECALLED (no such file)" in text_of(app)

    drive(app, steps)


def test_keys_after_a_dialog_that_a_key_closes_reach_the_view(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await burst(pilot, "o", "x", "escape", "question_mark", "escape", "3", "1", "slash", *QUESTION, "enter", "3")
        assert isinstance(app.screen, IndexView)
        assert box(app).value == QUESTION

    drive(app, steps)


def test_a_judgement_is_of_the_hit_that_was_asked_about(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        results = app.screen.query_one(HitList)
        hit = results.hit
        assert hit is not None
        await press(pilot, "v")
        # Meanwhile the list changes below the dialog, as it does when notes change.
        results.go(results.cursor + 2)
        assert results.hit is not hit
        await press(pilot, "y")
        await until(lambda: "Judged" in said(app))
        assert hit.chunk.path in said(app)
        view = app.screen
        assert isinstance(view, SearchView)
        assert [(label.path, hit.chunk.start_line <= label.line <= hit.chunk.end_line) for label in labels(view)] == [
            (hit.chunk.path, True)
        ]

    drive(app, steps)


def labels(view: SearchView) -> tuple[object, ...]:
    notebook = view.judge.evaluation.notebook
    assert notebook is not None
    return notebook.queries[0].labels


def test_what_is_typed_before_the_note_is_read_lands_in_the_editor(
    app: MemoryApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    real = note_changes.opened

    def slow(*arguments: object, **more: object) -> object:
        assert gate.wait(LONG)
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("memory_tui.tui.key_queue.HELD_SECONDS", LONG)
    monkeypatch.setattr(note_changes, "opened", slow)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "1")
        for key in "ixyz":
            app.post_message(events.Key(key, key))
        await until(lambda: isinstance(app.screen, EditView))
        gate.set()
        await until(lambda: any("xyz" in area.text for area in app.screen.query(EditArea)))

    drive(app, steps)


def test_a_note_that_is_not_read_yet_can_be_left(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = note_changes.opened

    def slow(*arguments: object, **more: object) -> object:
        assert gate.wait(LONG)
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(note_changes, "opened", slow)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "1")
        app.post_message(events.Key("i", "i"))
        await until(lambda: isinstance(app.screen, EditView))
        app.post_message(events.Key("escape", None))
        await until(lambda: not isinstance(app.screen, EditView))
        gate.set()

    drive(app, steps)


def test_a_dialog_that_is_answered_twice_closes_nothing_else(app: MemoryApp) -> None:
    answers: list[str] = []

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        behind, picker = app.screen, Picker("Which?", ["one", "two"])
        picker.ask(app, answers.append)
        await settled(pilot)
        # Two clicks that came before the first one was done.
        picker.dismiss("one")
        picker.dismiss("two")
        await settled(pilot)
        assert app.screen is behind
        assert answers == ["one"]

    drive(app, steps)


def test_the_palette_takes_two_clicks_at_once(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    do, done = app.action_do, list[str]()

    async def noted(name: str) -> None:
        done.append(name)
        await do(name)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, ":")
        palette = app.screen
        await enter(pilot, "keys and signs")
        commands = palette.query_one(OptionList)
        monkeypatch.setattr(app, "action_do", noted)
        await until(lambda: commands.option_count)
        for _ in range(2):
            commands.post_message(OptionList.OptionSelected(commands, commands.get_option_at_index(0), 0))
        await settled(pilot)
        assert palette not in app.screen_stack
        assert done == ["help"], "the command is done once"

    drive(app, steps)


def test_a_key_before_a_dialog_is_shown_does_nothing(app: MemoryApp) -> None:
    base, mine, theirs = b"- one\n", b"- one\n- mine\n", b"- one\n- theirs\n"
    view = ThreeWay("MEMORY.md", base, mine, theirs, merge(base, mine, theirs))

    async def steps(pilot: Pilot[int]) -> None:
        behind, resolve = app.screen, Resolve(view, "")
        app.push_screen(resolve)
        assert not resolve.is_mounted
        for action in ("move('down')", "choose('theirs')", "save", "dismiss(None)"):
            await app.run_action(action, resolve)
        await settled(pilot)
        assert app.screen is resolve
        await press(pilot, "escape")
        assert app.screen is behind

    drive(app, steps)
