"""Opening, indexing, quitting, and terminals with less to offer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, WorkspaceError
from memory_tui.events import Event, SyncFinished, SyncStarted
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.colours import DARK, first_theme
from memory_tui.tui.views.index.index_view import IndexView
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.index_lists import Statements
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.workers import warm
from tests.support.tui import (
    LARGE,
    LONG,
    SMALL,
    as_the_app_runs,
    ask,
    drive,
    hurry,
    make_app,
    press,
    said,
    sample,
    settled,
    strike,
    text_of,
    truth,
    until,
)


def many_notes(workspace: Path, count: int) -> Path:
    (workspace / "memory").mkdir(parents=True)
    for i in range(count):
        text = "\n".join(f"- item {n} of note {i}: " + "words and more words " * 8 for n in range(60))
        (workspace / "memory" / f"note-{i:04}.md").write_text(text, "utf-8")
    return workspace


def test_the_first_frame_waits_for_nothing(tmp_path: Path) -> None:
    release, warmed = threading.Event(), []

    def opener(listener: Callable[[Event], None]) -> Engine:
        assert release.wait(LONG)
        engine = Engine.open(
            Options(
                workspace=str(sample(tmp_path / "notes")),
                index=str(tmp_path / "i.sqlite"),
                provider="scripted",
                changes=(("sync.watch", "false"),),
            ),
            listener,
        )
        warm = engine.search.warm

        def noted(stop: Stop) -> None:
            warmed.append(threading.current_thread())
            warm(stop)

        engine.search.warm = noted  # type: ignore[method-assign]
        return engine

    app = MemoryApp(opener, name="notes")

    async def run() -> None:
        as_the_app_runs()
        async with app.run_test(size=LARGE) as pilot:
            await until(lambda: "OPENING" in text_of(app).splitlines()[0])
            await until(lambda: "Opening the index of notes" in text_of(app))
            hurry(pilot, "slash", *"vlan")
            await until(lambda: "vlan" in text_of(app))
            assert isinstance(app.screen, SearchView)
            assert "You can type your query already." in text_of(app)
            assert said(app) == ""
            # The hits are not there yet: this and what follows waits, and can be taken back.
            hurry(pilot, "enter", "j", "3")
            await until(lambda: said(app).startswith("The index is still being opened. Then: go to the hits."))
            hurry(pilot, "escape")
            await until(lambda: said(app).startswith("Taken back"))
            # Letters go where they would go with the index open, not to the list that is in front until then.
            hurry(pilot, "tab", "1", "o", *"runbook", "enter")
            await until(lambda: "Then: open a note" in said(app))
            hurry(pilot, "3")
            release.set()
            await settled(pilot)
            assert isinstance(app.screen, IndexView)
            notes = next(view for view in app.views if isinstance(view, BrowseView))
            assert notes.query_one(Reader).page is not None
            assert "Deploy" in str(notes.query_one(Reader).page)[:300]
            search = next(view for view in app.views if isinstance(view, SearchView))
            assert search.trace is not None
            assert search.trace.query == "vlan"
            assert len(warmed) == 1, "the first question was prepared, once"
            assert warmed[0] is not threading.current_thread(), "not where the screen waits for it"

    asyncio.run(run())


def test_the_preparation_for_a_first_question_ends_with_the_app(tmp_path: Path) -> None:
    stop = Stop()
    stop.set()
    with Engine.open(Options(workspace=str(sample(tmp_path / "notes")), index=str(tmp_path / "i.sqlite"))) as engine:
        engine.search.warm(Stop())
        with pytest.raises(Cancelled):
            warm(engine, stop)
        engine.index.sync()
        with pytest.raises(Cancelled):
            engine.search.warm(stop)


def test_a_workspace_that_cannot_be_opened_ends_the_app_with_the_reason(tmp_path: Path) -> None:
    app = make_app(tmp_path / "nowhere")
    assert app.run(headless=True) == WorkspaceError.exit_status
    assert isinstance(app.error, WorkspaceError)


def hold_the_first_sync(app: MemoryApp, wait: Callable[[], object]) -> list[threading.Thread]:
    """Let the first sync of `app` do `wait` when it has said how many notes it reads; its thread is told by then."""
    hear, writer = app.jobs.hear, []

    def held(event: Event) -> None:
        hear(event)
        if isinstance(event, SyncStarted) and event.total and not writer:
            writer.append(threading.current_thread())
            wait()

    app.jobs.hear = held  # type: ignore[method-assign]
    return writer


def test_quitting_during_a_sync_is_quick(tmp_path: Path) -> None:
    app = make_app(many_notes(tmp_path / "notes", 400))

    def until_it_is_left() -> None:
        engine = app.jobs._engine
        assert engine is not None
        engine.index.writer.closing.wait(LONG)

    writer = hold_the_first_sync(app, until_it_is_left)

    async def run() -> None:
        as_the_app_runs()
        async with app.run_test(size=LARGE) as pilot:
            await until(lambda: app.progress)
            await strike(pilot, "ctrl+q")

    asyncio.run(run())
    assert app.return_code == 0
    assert app.progress is not None, "the sync was over before the app was left"
    assert app.engine is not None
    writer[0].join(LONG)
    assert writer[0].name == "engine-writer"
    assert not writer[0].is_alive()
    done = app.engine.index.last_sync
    assert done is None or done.cancelled, "it went on when nobody was there any more"


def test_progress_is_in_the_first_line(tmp_path: Path) -> None:
    app = make_app(many_notes(tmp_path / "notes", 60))
    seen = threading.Event()
    hold_the_first_sync(app, lambda: seen.wait(LONG))

    def first() -> str:
        return truth(app).split("  ")[0].strip()

    async def run() -> None:
        as_the_app_runs()
        async with app.run_test(size=LARGE) as pilot:
            await until(lambda: first().startswith("INDEXING") and first().endswith("/60"))
            seen.set()
            await settled(pilot)
            assert truth(app).startswith("HYBRID")

    asyncio.run(run())


def test_q_goes_back_before_it_quits(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "router")
        await press(pilot, "enter", "q", "plus", "q", "t", "q")
        assert isinstance(app.focused, HitList)
        assert app.is_running
        await press(pilot, "q")
        assert app.is_running
        assert app.current_mode == "browse"
        await strike(pilot, "q")

    drive(app, steps)
    assert app.return_code == 0


def test_pending_files_make_the_screen_stale(tmp_path: Path) -> None:
    workspace = sample(tmp_path / "notes")
    app = make_app(workspace, changes=[("sync.onSearch", "false")])

    async def steps(pilot: Pilot[int]) -> None:
        (workspace / "MEMORY.md").write_text("# changed\n", "utf-8")
        (workspace / "memory" / "fresh.md").write_text("# new\n", "utf-8")
        app.jobs.refresh()
        await settled(pilot)
        assert truth(app).startswith("STALE  2 files changed, r indexes")
        assert "~ MEMORY.md" in text_of(app)
        assert "changed" in text_of(app)
        await press(pilot, "3")
        assert "+ new" in text_of(app)
        await press(pilot, "r")
        assert truth(app).startswith("HYBRID")
        assert "Every note is indexed as it is on disk." in text_of(app)

    drive(app, steps)


def test_reindexing_asks_and_the_safe_answer_is_the_default(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "R", "enter")
        assert not any(isinstance(event, SyncStarted) and event.reason == "force" for event in app.news)
        await press(pilot, "R", "y")
        assert any(
            isinstance(event, SyncStarted) and event.reason == "force" and event.total == 29 for event in app.news
        )

    drive(app, steps)


def test_the_watcher_is_switched_and_says_so(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        assert "not watching" in text_of(app).splitlines()[0]
        await press(pilot, "3", *"jjjjjjj")
        statements = app.screen.query_one(Statements)
        assert statements.label == "watcher"
        await press(pilot, "P")
        await until(lambda: app.facts and app.facts.status.watching)
        await settled(pilot)
        assert "  watching" in text_of(app).splitlines()[0]
        await press(pilot, "P")
        assert "not watching" in text_of(app).splitlines()[0]
        assert "watcher  off" in text_of(app)

    drive(app, steps, (160, 36))


def test_a_paused_log_shows_news_after_resume(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "tab", "tab", "P", "R", "y")
        assert "(force)" not in text_of(app)
        assert "waiting)" in text_of(app)
        await press(pilot, "P")
        assert "(force)" in text_of(app)

    drive(app, steps)


def test_brackets_step_through_days_and_stop_at_the_oldest(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        tree = app.screen.query_one(FileTree)
        assert tree.key == "MEMORY.md"
        await press(pilot, "left_square_bracket")
        assert tree.key == "memory/2026-03-20.md"
        await press(pilot, "left_square_bracket")
        assert tree.key == "memory/2026-03-19.md"
        await press(pilot, *["left_square_bracket"] * 40)
        assert said(app) == "This is the oldest day."
        assert tree.key == "memory/2025-05-27.md"
        await press(pilot, "right_square_bracket")
        assert tree.key == "memory/2025-07-15.md"
        await press(pilot, "g", "t")
        assert tree.key == "memory/2026-03-20.md"
        page = app.screen.query_one(Reader).page
        assert page is not None
        assert page.path == "memory/2026-03-20.md"

    drive(app, steps)


def test_a_mouse_selection_holds_text_without_gutter(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "t")
        reader = app.screen.query_one(Reader)
        lines = text_of(app).splitlines()
        y = next(i for i, line in enumerate(lines) if "## Morning" in line)
        x = lines[y].index("##")
        await pilot.mouse_down(offset=(x, y))
        await pilot.hover(offset=(x + 8, y))
        await pilot.mouse_up(offset=(x + 8, y))
        await settled(pilot)
        assert app.screen.get_selected_text() == "## Morning"[: len(app.screen.get_selected_text() or "")]
        assert len(app.screen.get_selected_text() or "") >= 8
        assert reader.page is not None

    drive(app, steps, LARGE)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_without_colour_nothing_is_coloured_and_the_cursor_is_seen(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        for keys in ([], ["2"], ["3"], ["question_mark"]):
            await press(pilot, *keys)
            colours = {
                colour
                for strip in app.screen._compositor.render_strips()
                for segment in strip
                if segment.style is not None
                for colour in (segment.style.color, segment.style.bgcolor)
            }
            assert all(colour is None or colour.is_default for colour in colours)
        await press(pilot, "escape")
        await ask(pilot, "router vlan")
        await press(pilot, "j")
        strips = app.screen._compositor.render_strips()
        reversed_lines = [
            i
            for i, strip in enumerate(strips)
            for segment in strip
            if segment.style is not None and segment.style.reverse and len(segment.text.strip()) > 3
        ]
        assert reversed_lines
        await press(pilot, "t")
        strips = app.screen._compositor.render_strips()
        assert any(
            segment.style is not None and segment.style.reverse and "vec" in segment.text
            for strip in strips
            for segment in strip
        )

    drive(app, steps, size)


def test_which_theme_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_theme() == DARK.name
    monkeypatch.setenv("TEXTUAL_THEME", "no-such-theme, nord")
    assert first_theme() == "nord"
    monkeypatch.setenv("NO_COLOR", "")
    assert first_theme() == "ansi-dark"


def test_every_theme_can_draw_every_style(tmp_path: Path) -> None:
    workspace = tmp_path / "notes"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("# one\n\nnote about a router\n", "utf-8")
    app = make_app(workspace, query="router")

    async def steps(pilot: Pilot[int]) -> None:
        for theme in sorted([*BUILTIN_THEMES, "memory-dark", "memory-light"]):
            app.theme = theme
            await press(pilot, "escape", "t")
            assert "Recalled 1 of 1" in text_of(app), theme

    drive(app, steps, LARGE)


def test_the_first_view_imports_neither_the_engine_nor_the_other_views() -> None:
    code = (
        "import sys; import memory_tui.tui.app, memory_tui.tui.views.notes.browse; "
        "heavy = {'memory_tui.engine.engine', 'memory_tui.tui.views.search.search_view', "
        "'textual.widgets._markdown'} & set(sys.modules); print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_sweep_that_finds_nothing_new_gathers_no_facts(tmp_path: Path) -> None:
    workspace = sample(tmp_path / "notes")
    app = make_app(workspace)

    async def sweep(pilot: Pilot[int]) -> None:
        assert app.engine is not None
        before = len([event for event in app.news if isinstance(event, SyncFinished)])
        app.engine.index.request_sync("sweep")
        await until(lambda: len([event for event in app.news if isinstance(event, SyncFinished)]) > before)
        await settled(pilot)

    async def steps(pilot: Pilot[int]) -> None:
        await sweep(pilot)
        facts = app.facts
        await sweep(pilot)
        assert facts is not None
        assert app.facts is not None
        assert app.facts.rows is facts.rows
        (workspace / "memory" / "fresh.md").write_text("# new\n", "utf-8")
        await sweep(pilot)
        await until(lambda: any(row.path == "memory/fresh.md" for row in app.facts.rows))

    drive(app, steps)
