"""The app: its views, the engine under it, its end."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from textual.widgets import Input

from memory_tui.config.places import openclaw_path
from memory_tui.events import IndexChanged
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Choice, Line
from memory_tui.tui.first_line import VIEWS
from memory_tui.tui.reader import Reader
from memory_tui.tui.rows import Rows
from memory_tui.tui.views.notes import NotesView
from tests.support.tui import LARGE, NOW, SHORTEST, SMALL, TINY, Window, make_app
from tests.support.waiting import LONG


def test_the_first_frame_waits_for_no_engine_nor_another_module_that_it_does_not_show():
    code = "import sys, memory_tui.cli.main, memory_tui.tui.run, memory_tui.tui.views.notes; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"numpy", "httpx", "markdown_it", "tomllib"}
    late |= {f"memory_tui.{name}" for name in ("plan", "workspace", "notes", "hosts", "index.store", "engine")}
    late |= {f"memory_tui.tui.{name}" for name in ("changes", "dialogs", "editor", "note_facts", "palette")}
    assert late & {*done.stdout.split()} == set()


def test_a_demo_asks_before_it_goes_with_unsaved_text(workspace):
    app = make_app(workspace)
    app.demo = True
    with Window(app, SMALL) as window:
        window.press("e").type("Heron").press("ctrl+q")
        assert "Quitting deletes the demo's folder" in window.text
        assert "Heron" in window.press("n").text
        window.press("ctrl+q", "y").until(lambda: app.return_code == 0)


def test_a_number_opens_its_view(reader):
    for number, name in enumerate(VIEWS, 1):
        reader.press(str(number))
        assert reader.app.view.id == name
        assert reader.app.query_one("#tabs").active == f"tab-{name}"


def test_keys_typed_ahead_reach_the_view_and_the_dialog_that_they_open(screen):
    screen.burst("slash", *"omada")
    assert screen.settle().app.screen.query_one("#query").value == "omada"  # type: ignore[attr-defined]
    screen.burst(*" vlan", "enter", "down", "3")
    assert screen.settle().app.view.id == "status"
    assert screen.app.query_one("#query").value == "omada vlan"  # type: ignore[attr-defined]
    screen.ask()
    for view, key in (("1", "n"), ("1", ":"), ("2", "W"), ("3", ":")):
        name = screen.press(view).app.view.id
        screen.burst(key, *"40dq")
        assert screen.settle().app.screen.query_one(Input).value == "40dq", key
        assert screen.press("escape").app.view.id == name
    (Path.home() / ".claude.json").write_text("{}")
    below = screen.press("6", "down").app.view.query_one(Rows)
    at = below.highlighted
    screen.burst("enter", "down", "up", "down")
    assert screen.settle().app.screen.query_one(Rows).highlighted == 1
    assert isinstance(screen.app.screen, Choice)
    assert below.highlighted == at
    screen.press("escape").burst(*":trash", "enter")
    assert "Move to the trash?" in screen.settle().text, "what was typed is done, not what was listed before"
    screen.press("n")


def test_a_question_that_comes_late_takes_no_key_that_is_meant_for_another_window(screen, monkeypatch):
    may_ask, show = threading.Event(), changes.difference

    def slow(change, width):
        may_ask.wait(LONG)
        return show(change, width)

    monkeypatch.setattr(changes, "difference", slow)
    monkeypatch.setattr(changes, "PATIENCE", 0.05)
    screen.press("1", "home").burst("x")
    screen.until(lambda: screen.notices and "a question comes by itself" in screen.notices[-1]).burst("a")
    screen.until(lambda: isinstance(screen.app.screen, Line))
    may_ask.set()
    screen.burst(*"yes, by the library")
    screen.until(lambda: screen.app.screen.query_one(Input).value == "yes, by the library")
    screen.burst("escape")
    screen.until(lambda: "Move to the trash?" in screen.text).press("n")


def go_to(window, words):
    """Open a log in Notes, with the cursor on the line that begins with `words`."""
    window.press("1", "f").type("2026-03-06").press("enter", "enter")
    reader = window.app.query_one("#notes-text", Reader)
    at = next(at for at, line in enumerate(reader.seen) if line.startswith(words))
    steps = at + 1 - reader.line
    return window.press(*["down" if steps > 0 else "up"] * abs(steps))


def test_what_is_no_fact_is_refused_before_a_heading_is_chosen(screen):
    go_to(screen, "#")
    for why in ("heading alone", "blank", "heading alone"):
        assert why in screen.press("p").notices[-1]
        assert len(screen.app.screen_stack) == 1
        screen.press("down")
        assert screen.app.last_notice is None, "a toast about a key goes with the next one"


def test_all_of_a_step_of_the_tour_fits(workspace):
    app = make_app(workspace)
    app.demo = True
    with Window(app, SMALL) as window:
        window.ask().until(lambda: "2 of 4" in window.text)
        step = "2 of 4  Read why it is sent; ] shows one that is not.  Type :tour to stop"
        assert any(step in line for line in window.lines)
        assert "".join(step.split()) in "".join(window.resize(*TINY).text.split())


def test_the_tour_counts_no_step_that_was_not_done_and_leaves_other_views_alone(workspace):
    app = make_app(workspace)
    app.demo = True
    with Window(app) as window:
        window.ask("aardvark").until(lambda: "2 of 4" in window.text)
        assert not app.view.row.sent, "nothing answers: the list begins with a miss"  # type: ignore[attr-defined]
        window.press("3").until(lambda: " of 4" not in window.text)
        window.press("1", "enter").until(lambda: "2 of 4" in window.text)
        window.press("2", "right_square_bracket").until(lambda: "3 of 4" in window.text)
        window.press("3").until(lambda: " of 4" not in window.text)
        window.press("1", "enter").until(lambda: "3 of 4" in window.text)


def test_the_tour_goes_on_by_what_a_person_does(workspace):
    app = make_app(workspace)
    app.demo = True
    with Window(app) as window:
        assert "1 of 4" in window.text
        window.ask().until(lambda: "2 of 4" in window.text)
        window.press("right_square_bracket").until(lambda: "3 of 4" in window.text)
        window.press("enter").until(lambda: "4 of 4" in window.text)
        window.press("u", "1", "a").type("the gate was oiled").press("enter", "u")
        assert app.session.made[-1].undoes
        go_to(window, "- Ben asked").press("p", "enter", "y")
        assert app.session.last_change, window.notices
        assert "4 of 4" in window.text, "another change than a promotion ends no step"
        window.press("u", "y")
        window.until(lambda: not app.query("#tour"))
        assert any("That was the tour" in words for words in window.notices)


def test_history_begins_at_the_newest_change_each_time(screen):
    for words in ("the gate was oiled", "the roof was tarred", "the hedge was cut"):
        screen.press("1", "a").type(words).press("enter", "5")
        rows = screen.app.query_one("#history-list", Rows)
        screen.until(lambda words=words: words in screen.text)
        assert rows.highlighted == next(at for at, row in enumerate(rows.options) if not row.disabled)
        screen.press("end").settle()


def test_a_sentence_that_stands_is_said_once_and_what_was_taken_back_is_said_no_more(workspace):
    with Window(make_app(workspace), toasts=True) as window:
        window.ask().press("right_square_bracket", "enter").until(lambda: "You try " in window.text)
        window.press("u").until(lambda: "You took back " in window.lines[-3])
        window.press("right_square_bracket", "enter").until(lambda: "You try " in window.text)
        window.app.notify("The disk is full.", severity="error")
        for words in ("one", "two", "two"):
            window.app.notify(f"Say {words}.")
        window.until(lambda: "Say two." in window.text).settle()
        assert "You try " in window.text
        assert "The disk is full." in window.text
        assert "Say one." in window.text
        assert window.text.count("Say two.") == 1
        assert "The disk is full." not in window.press("3").settle().text, "it stood for the view before"


def test_a_dialog_is_as_wide_as_the_window_and_its_keys_stand_in_the_last_line(reader):
    reader.ask().resize(*SMALL).press("m")
    assert "esc Back" in reader.lines[-1]
    assert "Quit" not in reader.text, "no key of the view looks as if it worked"
    assert reader.app.screen.query_one(".dialog").region.width == SMALL[0], "no word beside it is cut"
    reader.press("up")
    assert reader.app.screen.query_one(Rows).highlighted == 0
    reader.press("end", "down", "escape").resize(*LARGE)


def test_the_key_that_ends_programs_says_which_one_does_here(reader):
    assert reader.press("ctrl+c").notices[-1] == "q quits."


def test_news_that_come_while_the_app_ends_reach_no_view_without_parts(workspace, monkeypatch):
    late = []

    def tell(view):
        assert not view.query("#notes-index")
        late.append(view.app.show_facts(view.session.status, view.session.files))

    monkeypatch.setattr(NotesView, "on_unmount", tell, raising=False)
    with Window(make_app(workspace)):
        pass
    assert late == [None]


def test_a_box_of_text_offers_no_key_that_is_a_letter_there(screen):
    screen.press("slash")
    assert "Command" not in screen.lines[-1]
    assert "Quit" not in screen.lines[-1]
    screen.type("q:")
    assert "q:" in screen.text
    screen.press("enter")
    assert "Command" in screen.lines[-1]
    assert "Quit" in screen.lines[-1]
    screen.press("colon").type("quit").press("enter")
    assert screen.app.return_code == 0


def test_what_happens_while_the_state_is_read_has_it_read_once_more(reader, monkeypatch):
    app, reads = reader.app, []
    status, event = app.session.engine.status, IndexChanged(NOW)

    def read():
        state = status()
        if not reads:
            app.hear(event)
            while event not in app.session.news:
                time.sleep(SHORTEST)
        reads.append(state)
        return state

    monkeypatch.setattr(app.session.engine, "status", read)
    app.hear(IndexChanged(NOW - 1))
    reader.settle()
    assert len(reads) == 2


def test_a_configuration_that_comes_meanwhile_is_told_once_and_taken_up(workspace):
    app = make_app(workspace)
    app.configuration_seconds = 0.05
    with Window(app) as window:
        before = window.app.session.engine
        openclaw_path().parent.mkdir(parents=True)
        openclaw_path().write_text(f"{{agents: {{defaults: {{workspace: {json.dumps(str(workspace))}}}}}}}")
        window.until(lambda: any(said.startswith("The configuration changed on disk.") for said in window.notices))
        window.press("3").until(lambda: "The configuration changed on" in window.text)
        window.press("colon").type("read the configuration").press("enter")
        window.until(lambda: window.app.session.engine is not before).settle()
        assert window.app.session.engine.plan.config.path == openclaw_path()
        openclaw_path().write_text("{")
        window.until(lambda: sum("configuration changed" in said for said in window.notices) == 2)
        window.press("colon").type("read the configuration").press("enter")
        window.until(lambda: str(openclaw_path()) in window.notices[-1])


def test_escape_closes_the_list_of_keys(reader):
    reader.press("1", "question_mark", "question_mark")
    assert "y  Copy" in reader.text
    assert "Cursor" not in reader.text
    reader.press("escape")
    assert "y  Copy" not in reader.text
