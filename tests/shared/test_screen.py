"""The screen asks a scope of a shared index: two homes, one server, what is shown of somebody else, what is refused."""

import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input, OptionList, Static

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.shared import mirror
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.notes import NotesView
from memory_tui.tui.views.search import SearchView
from tests.support.shared_index import ROSES
from tests.support.tui import LARGE, NOW, SMALL, Window, at_noon, make_app, sample
from tests.support.waiting import LONG

THEIRS = "anna/laptop:memory/2026-03-10.md"
REFUSED = "This is a note of anna/laptop, which is read-only here."


@pytest.fixture
def hasty(desk):
    """Bob's machine, where nobody waits long for the shared index."""
    path = Path(desk.options.config)
    path.write_text(json.dumps({"shared": json.loads(path.read_text())["shared"] | {"askTimeoutMs": 200}}))
    return desk


def window_over(home, size=LARGE):
    options: Options = replace(home.options, now=NOW, changes=(("sync.watch", "false"),))
    app = MemoryApp(lambda hear: Engine.open(options, at_noon(hear)))
    app.count_seconds = 10 * LONG
    return Window(app, size)


@pytest.fixture
def window(desk):
    with window_over(desk) as window:
        yield window


def command(window, words):
    return window.press("colon").type(words).press("enter")


def offered(window):
    return [str(option.prompt).strip() for option in window.app.screen.query_one(OptionList).options]


def ask(window, scope, question="who is Gertrude of the roses"):
    command(window, "search another scope")
    assert scope in offered(window), window.text
    at = offered(window).index(scope)
    window.press(*["down"] * at, "enter")
    return window.ask(question) if question else window


def level(window):
    return str(window.app.query_one("#level", Static).content)


def view(window):
    return window.app.query_one(SearchView)


def paths(window):
    return [row.hit.chunk.path for row in view(window).answer.rows]


def test_hits_of_somebody_else_stand_in_frames_and_are_read_and_not_changed(window, laptop):
    ask(window, "all").matches("search_scope", LARGE)
    assert level(window).startswith(" Shared index, all: live.")
    assert "$warning" not in str(window.app.query_one("#level", Static).content.spans)
    assert "MEMORY.md" in paths(window)
    window.press("s")
    assert "anna/laptop" in window.text
    window.press("escape", *"pom")
    assert window.notices.count(REFUSED) == 3
    window.press("enter").matches("note_scope", LARGE)
    page = window.app.query_one(NotesView).page
    assert (page.path, page.text, page.owner) == (THEIRS, ROSES, "anna/laptop")
    for key in "eEpoxRh":
        count = window.notices.count(REFUSED)
        window.press(key)
        assert (key, window.notices.count(REFUSED)) == (key, count + 1)
        assert len(window.app.screen_stack) == 1
    window.press("v")
    assert "Gertrude" in window.text
    window.press("escape", "escape")
    assert window.app.view.NAME == "search"
    window.press("c")
    assert window.notices[-1].startswith("Rankings are compared on this workspace's own index.")
    assert (laptop.notes / "memory" / "2026-03-10.md").read_text() == ROSES


def test_u_and_the_command_go_back_to_this_workspace(window):
    ask(window, "all")
    assert THEIRS in paths(window)
    window.press("u")
    assert THEIRS not in paths(window)
    assert "Shared index" not in window.text
    command(window, "search another scope")
    assert offered(window) == ["this", "all", "anna/laptop", "another one ..."]
    window.press("down", "down", "enter")
    assert set(paths(window)) == {THEIRS, "anna/laptop:MEMORY.md"}
    ask(window, "this", "")
    assert THEIRS not in paths(window)


def test_any_line_of_somebody_else_is_explained(window):
    ask(window, "all").press("W").type("omada anna")
    assert "anna/laptop:MEMORY.md:3  The router of anna is an Omada." in window.text
    window.press("escape", "W").type("anna/laptop:MEMORY.md:3")
    window.press("enter")
    row = view(window).row
    assert (row.hit.chunk.path, window.text.count("anna/laptop:MEMORY")) == ("anna/laptop:MEMORY.md", 2)


def test_a_scope_that_is_typed_wrong_is_told_with_what_to_write(window):
    ask(window, "another one ...", "")
    window.type("bob").press("enter").ask()
    assert "names no scope of a shared index" in window.text
    window.press("u")
    assert view(window).answer is not None


def test_a_store_that_is_gone_is_told_above_the_answer_of_its_mirror(window, server):
    ask(window, "all")
    with server.stopped():
        window.ask("which router has anna")
        assert level(window).startswith(" Shared index, all: store unreachable since ")
        assert "$warning" in str(window.app.query_one("#level", Static).content.spans)
        window.press("3").until(lambda: "shared Shared index, all: store unreachable" in " ".join(window.text.split()))
        window.press("2")
        assert "anna/laptop:MEMORY.md" in paths(window)
        window.resize(*SMALL)
        assert all(len(line) == SMALL[0] for line in window.lines)


@contextmanager
def blocked(server, team, window):
    """Bob asks for all, which nobody can read for a while."""
    with server.connected(team) as other, other.transaction():
        other.execute("lock table memory_tui.chunk in access exclusive mode")
        command(window, "search another scope")
        window.press("down", "enter", "slash").burst(*"roses")
        window.until(lambda: "is being filled for the first time" in window.text)
        yield


def test_a_mirror_that_is_being_filled_holds_up_no_key_and_answers_by_itself(server, team, hasty):
    with window_over(hasty) as window:
        with blocked(server, team, window):
            window.burst("s", "enter", "1", "2")
            window.until(lambda: "rosess" in window.text and window.app.focused is view(window).hits)
        window.until(lambda: view(window).answer is not None)
        assert "Shared index, all: live." in window.settle().text


def test_u_ends_the_filling_of_a_mirror(server, team, hasty):
    with window_over(hasty) as window:
        with blocked(server, team, window):
            window.burst("enter", "u")
            window.until(lambda: view(window).answer is not None)
            assert paths(window)[0] == "MEMORY.md"
        window.settle()
        for thread in threading.enumerate():
            if thread.name == "mirror":
                thread.join(LONG)
        assert mirror.complete(mirror.folder(hasty.access)) == {}


def test_an_app_ends_at_once_while_a_mirror_is_filled(server, team, hasty):
    window = window_over(hasty)
    with blocked(server, team, window):
        began = time.monotonic()
        window.close()
        assert time.monotonic() - began < 1


def test_without_a_shared_index_nothing_of_it_is_offered(tmp_path):
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.press("colon")
        assert "Search another scope" not in window.text
        window.type("scope")
        assert "Search another scope" not in window.text
        window.press("escape")
        assert not isinstance(window.app.focused, Input)
