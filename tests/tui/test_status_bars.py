"""The first line claims nothing that nobody knows: facts that fail, an index that is gone, folders that are listed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import watchfiles
from msgspec.structs import replace
from textual.pilot import Pilot

from memory_tui.engine.engine import Engine
from memory_tui.errors import IndexUnavailable
from memory_tui.events import FileIndexed
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.widgets.status_bars import TruthBar
from tests.support.tui import as_the_app_runs, make_app, settled, text_of, until


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    for number in range(3):
        (folder / "memory" / f"{number}.md").write_text(f"note {number} about gardens\n")
    return folder


def first_line(app: MemoryApp) -> str:
    return text_of(app).split("\n")[0]


def drive(app: MemoryApp, steps: Callable[[Pilot[int]], Awaitable[None]]) -> None:
    async def run() -> None:
        as_the_app_runs()
        async with app.run_test(size=(200, 30)) as pilot:
            await settled(pilot)
            await steps(pilot)

    asyncio.run(run())


def test_facts_that_cannot_be_gathered_are_as_last_known_until_they_can(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(workspace, watch=True)

    def fails(_engine: Engine, _deep: bool = False) -> None:
        raise IndexUnavailable("The index does not answer.", "Wait.")

    async def steps(_pilot: Pilot[int]) -> None:
        assert "as last known" not in first_line(app)
        real = Engine.status
        monkeypatch.setattr(Engine, "status", fails)
        app.jobs.refresh()
        await until(lambda: "as last known: The index does not answer." in first_line(app))
        app.switch_mode("index")
        await until(lambda: "Not indexed as on disk" in text_of(app))
        assert "Every note is indexed" not in text_of(app)
        monkeypatch.setattr(Engine, "status", real)
        await until(lambda: "as last known" not in first_line(app))
        await until(lambda: "Every note is indexed as it is on disk." in text_of(app))

    drive(app, steps)


def test_a_note_that_is_found_in_part_is_listed_as_such(workspace: Path) -> None:
    (workspace / "memory" / "bakery.md").write_bytes("Die Bäckerei schließt um eins.\n".encode("cp1252"))
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        app.switch_mode("index")
        await settled(pilot)
        assert "Every note is indexed" not in text_of(app)
        assert "? in part  memory/bakery.md  2 byte sequences are not UTF-8, so words with them" in text_of(app)
        (workspace / "memory" / "bakery.md").write_text("Die Bäckerei schließt um eins.\n")
        assert app.engine is not None
        app.engine.index.sync()
        await settled(pilot)
        assert "Every note is indexed as it is on disk." in text_of(app)

    drive(app, steps)


def test_an_empty_note_counts_as_one_everywhere(workspace: Path) -> None:
    (workspace / "memory" / "empty.md").write_text("")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        app.switch_mode("index")
        await settled(pilot)
        count = len(list(workspace.rglob("*.md")))
        said = " ".join(text_of(app).replace("│", " ").split())
        assert f"{count} notes on disk: {count} fresh, 0 pending, 0 failed, 0 left out, 1 of the fresh empty" in said
        assert f"in {count} notes" in said
        assert app.facts is not None
        news = (FileIndexed(0.0, "memory/0.md", 1, 0),)
        assert app.facts.after(news).status.files == app.facts.status.files, "also before it is gathered again"

    drive(app, steps)


def test_a_deleted_index_folder_is_made_again(workspace: Path, tmp_path: Path) -> None:
    app = make_app(workspace, watch=True, query="gardens")
    index = tmp_path / "index.sqlite"

    async def steps(_pilot: Pilot[int]) -> None:
        await until(lambda: "Recalled 3 of 3" in text_of(app))
        assert app.facts is not None
        inode = index.stat().st_ino
        moved = tmp_path / "elsewhere"
        moved.mkdir()
        for part in tmp_path.glob("index.sqlite*"):
            shutil.move(part, moved / part.name)
        await until(lambda: index.exists() and index.stat().st_ino != inode)
        await until(lambda: "3 chunks" in first_line(app) and "HYBRID" in first_line(app))
        await until(lambda: "Recalled 3 of 3" in text_of(app))

    drive(app, steps)


def test_a_watcher_that_lists_folders_is_not_said_to_be_on(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_handles(*_paths: str, **_options: object) -> None:
        raise OSError(28, "No space left on device (inotify)")

    monkeypatch.setattr(watchfiles, "watch", no_handles)
    app = make_app(workspace, watch=True)

    async def steps(_pilot: Pilot[int]) -> None:
        await until(lambda: "watching by polling" in first_line(app))
        assert "inotify" in first_line(app)
        assert "watching  " not in first_line(app)
        (workspace / "memory" / "new.md").write_text("found by listing\n")
        await until(lambda: "4 chunks" in first_line(app))

    drive(app, steps)


def test_while_nothing_is_indexed_the_first_line_is_not_green(workspace: Path) -> None:
    app = make_app(workspace, changes=[("sync.onSessionStart", "false")])

    async def steps(pilot: Pilot[int]) -> None:
        assert " STALE " in first_line(app)
        assert app.facts is not None
        watching = replace(app.facts, status=replace(app.facts.status, watching=True))
        app.screen.query_one(TruthBar).show(watching, None)
        assert "NOTHING INDEXED" in first_line(app)
        assert "3 behind" in first_line(app)
        await pilot.press("r")
        await until(lambda: " HYBRID " in first_line(app))

    drive(app, steps)
