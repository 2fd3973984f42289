"""OpenClaw's side on the screen: its agents, its own index compared, the transcripts of its sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.index.openclaw_index import ComparedFiles, CompareView
from memory_tui.tui.views.notes.browse import ReaderView
from tests.support.host_index import content, own_file
from tests.support.tui import (
    LARGE,
    NOW,
    SMALL,
    ask,
    drive,
    fixed_times,
    matches_screen,
    press,
    said,
    sample,
    settled,
    text_of,
)

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the sample as notes of the default agent, a second agent, and one without a folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    fixed_times(monkeypatch)
    sample(tmp_path / "notes")
    coder = tmp_path / ".openclaw/workspace-coder"
    coder.mkdir(parents=True)
    (coder / "MEMORY.md").write_text("# Coder\n\nThe build runs on the quokka host.\n")
    (tmp_path / ".openclaw/openclaw.json").write_text(
        json.dumps(
            {
                "agents": {
                    "defaults": {"memorySearch": {"sync": {"watch": False}}},
                    "list": [{"id": "main", "workspace": str(tmp_path / "notes")}, {"id": "coder"}, {"id": "lost"}],
                }
            }
        )
    )
    return tmp_path


def opened(home: Path, *changes: tuple[str, str]) -> MemoryApp:
    options = Options(
        workspace=str(home / "notes"), index=str(home / "index.sqlite"), provider="scripted", now=NOW, changes=changes
    )
    return MemoryApp(lambda listener: Engine.open(options, listener), name="notes")


def database(home: Path) -> Path:
    """Their index of the sample: one note missing, one stale, one of another model, one too many."""
    what = content(home / "notes")
    paths = sorted(what.files)
    missing, stale, strange = (next(p for p in paths if name in p) for name in ("network", "MEMORY", "projects"))
    del what.files[missing]
    what.chunks = [row for row in what.chunks if row.path != missing]
    what.files[stale] = "0" * 64, 12
    what.chunks_of(strange)[0].model = "older-model"
    what.files["memory/gone.md"] = "1" * 64, 3
    return own_file(home / ".openclaw/memory/main.sqlite", what)


@SIZES
def test_their_index_file_by_file(house: Path, size: tuple[int, int]) -> None:
    db = database(house)
    before = db.read_bytes(), db.stat().st_mtime_ns

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "c")
        matches_screen(app, "compare")
        listed = app.screen.query_one(ComparedFiles)
        few = listed.count()
        await press(pilot, "z", "e")
        assert listed.count() > few
        assert "same" in text_of(app)

    app = opened(house)
    drive(app, steps, size)
    assert (db.read_bytes(), db.stat().st_mtime_ns) == before
    assert sorted(path.name for path in db.parent.iterdir()) == [db.name]


@SIZES
def test_an_index_that_cannot_be_read_is_explained(house: Path, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "c")
        matches_screen(app, "compare_unknown")
        await press(pilot, "enter")
        assert "is not on disk" in said(app)

    db = house / ".openclaw/memory/main.sqlite"
    db.parent.mkdir(parents=True)
    import apsw

    connection = apsw.Connection(str(db))
    connection.execute("CREATE TABLE thoughts(text); CREATE TABLE moods(word)")
    connection.close()
    app = opened(house)
    drive(app, steps, size)


def test_a_note_that_differs_is_read_and_esc_leads_back(house: Path) -> None:
    database(house)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3", "c")
        await press(pilot, *"jjjjj")
        for _ in range(8):
            file = app.screen.query_one(ComparedFiles).file
            assert file is not None
            if "network" in file.path:
                break
            await press(pilot, "k")
        await press(pilot, "enter")
        assert isinstance(app.screen, ReaderView)
        await press(pilot, "escape")
        assert isinstance(app.screen, CompareView)
        await press(pilot, "c")
        assert "network" in text_of(app)
        await press(pilot, "escape", "2")
        await pilot.app.run_action("do('compare')")
        await settled(pilot)
        assert isinstance(app.screen, CompareView)

    app = opened(house)
    drive(app, steps)


def test_another_agent_is_chosen_and_everything_is_its_own(house: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert "agent main" in text_of(app)
        await ask(pilot, "quokka host")
        assert "MEMORY.md#L1" not in text_of(app)
        await press(pilot, "escape", "@", *"coder", "enter")
        assert app.engine is not None
        assert app.engine.plan.agent.id == "coder"
        assert "agent coder" in text_of(app)
        assert "network.md" not in text_of(app)
        await ask(pilot, "quokka host")
        assert "quokka" in text_of(app)
        assert "recalled" in text_of(app)
        await press(pilot, "escape", "3")
        assert "of main, coder, lost" in text_of(app)
        await press(pilot, "@", *"main", "enter")
        assert app.engine.plan.agent.id == "main"
        assert "network.md" in text_of(app)

    app = opened(house)
    drive(app, steps)


def test_an_agent_whose_folder_is_not_there_is_refused_and_nothing_changes(house: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "@", *"lost", "enter")
        assert "workspace of agent lost is not there" in said(app)
        assert app.engine is not None
        assert app.engine.plan.agent.id == "main"
        await ask(pilot, "router")
        assert "recalled" in text_of(app)

    app = opened(house)
    drive(app, steps)


def test_text_that_is_not_saved_is_not_left_behind(house: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        app.views[0].unsaved = True  # type: ignore[attr-defined]
        await press(pilot, "@")
        assert "not saved yet" in said(app)

    app = opened(house)
    drive(app, steps)


def test_without_other_agents_the_key_says_so(house: Path) -> None:
    (house / ".openclaw/openclaw.json").unlink()

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "@")
        assert "no other agent" in said(app)

    app = opened(house)
    drive(app, steps)


def test_a_transcript_is_found_and_read_at_the_message(house: Path) -> None:
    config = house / ".openclaw/openclaw.json"
    tree = json.loads(config.read_text())
    tree["agents"]["defaults"]["memorySearch"] |= {
        "sources": ["memory", "sessions"],
        "experimental": {"sessionMemory": True},
        "query": {"minScore": 0},
        "chunking": {"tokens": 20, "overlap": 0},
    }
    config.write_text(json.dumps(tree))
    sessions = house / ".openclaw/agents/main/sessions"
    sessions.mkdir(parents=True)
    lines: list[object] = [{"type": "session"}]
    lines += [
        {"type": "message", "message": {"role": "user", "content": f"Small talk number {i} about the weather"}}
        for i in range(60)
    ]
    lines.insert(
        41,
        {
            "type": "message",
            "message": {
                "role": "user",
                "content": [{"type": "text", "text": "The zeppelin key is sk-abcdefghijklmnopqrstuvwxyz"}],
            },
        },
    )
    (sessions / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "zeppelin")
        assert "sessions/talk.jsonl" in text_of(app)
        await press(pilot, "enter")
        screen = text_of(app)
        assert isinstance(app.screen, ReaderView)
        assert "zeppelin key" in screen
        assert "klmnopqrst" not in screen
        assert app.screen.pane.reader.cursor == 41, "the message is on line 42 of the file"
        await press(pilot, "e")
        assert "talk.jsonl is not a note" in said(app)

    app = opened(house)
    drive(app, steps)
