"""OpenClaw's ledger on the screen: a column beside the notes, the approval, and the repair of one note."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Preview
from memory_tui.tui.views.notes.trust_view import RepairView, TrustView
from memory_tui.tui.widgets.file_tree import FileTree
from tests.support.ledger import HostLedger
from tests.support.tui import LARGE, NOW, drive, enter, lines_of, press, said, text_of


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    """Notes of which one is the agent's, one was edited since, one is untrusted."""
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    workspace = tmp_path / ".openclaw" / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (tmp_path / ".openclaw/openclaw.json").write_text(json.dumps({"memory": {"search": {"provider": "none"}}}))
    found = HostLedger.make(tmp_path / ".openclaw", workspace)
    for name in ("MEMORY.md", "USER.md", "memory/2026-03-19.md"):
        found.agent_writes(name, b"- first line\n", NOW - 86_400)
    (workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    found.agent_writes("MEMORY.md", b"- seen\n- the last line of all\n", NOW - 3600)
    (workspace / "USER.md").write_bytes(b"- edited by another program\n")
    return found


def opened(read_only: bool = False) -> MemoryApp:
    options = Options(now=NOW, read_only=read_only, changes=(("sync.watch", "false"),))
    return MemoryApp(lambda listener: Engine.open(options, listener), name="workspace")


def row_of(app: MemoryApp, name: str) -> str:
    return next(line for line in lines_of(app) if name in line)


def test_the_list_of_notes_has_a_column_of_trust(ledger: HostLedger) -> None:
    app = opened()

    async def steps(pilot: Pilot[int]) -> None:
        width = app.screen.query_one(FileTree).size.width
        for name, letter in (("  MEMORY.md ", "u"), ("  USER.md ", "e"), ("  Thu 19 Mar ", "a")):
            assert f" {letter} " in row_of(app, name)[:width], name

    drive(app, steps, LARGE)


def test_the_view_approves_and_withdraws(ledger: HostLedger) -> None:
    app = opened()

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "l")
        assert isinstance(app.screen, TrustView)
        seen = text_of(app)
        assert seen.index("MEMORY.md: untrusted since") < seen.index("USER.md: agent, edited since")
        assert "The ledger is only read" in seen
        await press(pilot, "enter", "y")
        assert app.engine is not None
        assert app.engine.notes.curator.trust is not None
        assert app.engine.notes.curator.trust.approved
        assert "Edits made here update the ledger" in text_of(app)
        await press(pilot, "d")
        assert not app.engine.notes.curator.trust.approved

    drive(app, steps, LARGE)


def test_a_note_is_repaired_by_its_name_with_its_text_on_screen_and_undone(ledger: HostLedger) -> None:
    app = opened()

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "l", "j", "enter")
        assert isinstance(app.screen, RepairView)
        assert "the last line of all" in text_of(app)
        await press(pilot, "enter")
        await enter(pilot, "yes")
        await press(pilot, "enter")
        assert "Nothing was changed" in said(app)
        assert (ledger.row("MEMORY.md") or {})["originClass"] == "untrusted"
        await press(pilot, "enter")
        await enter(pilot, "MEMORY.md")
        await press(pilot, "enter")
        assert (ledger.row("MEMORY.md") or {})["originClass"] == "agent"
        assert isinstance(app.screen, TrustView)
        assert "MEMORY.md: agent" in text_of(app)
        await press(pilot, "escape", "u")
        assert isinstance(app.screen, Preview)
        assert "MEMORY.md becomes untrusted in OpenClaw's ledger again" in text_of(app)
        assert (ledger.row("MEMORY.md") or {})["originClass"] == "agent"
        await press(pilot, "y")
        assert (ledger.row("MEMORY.md") or {})["originClass"] == "untrusted"

    drive(app, steps, LARGE)


def test_an_undo_says_what_it_does_to_trust_before_it_writes(ledger: HostLedger) -> None:
    """A change of this session is undone at once only where OpenClaw's ledger has nothing to say of it.

    Where the ledger cannot be written meanwhile, the message says so.
    """
    note, app = ledger.workspace / "memory/2026-03-19.md", opened()
    free = ledger.workspace / "memory/dreaming/free.md"

    async def steps(pilot: Pilot[int]) -> None:
        engine = app.engine
        assert engine is not None
        assert engine.notes.curator.trust is not None
        engine.notes.curator.trust.approve("test")
        for path, text in ((note, "- a second line\n"), (free, "- of no ledger\n")):
            curator = engine.notes.curator
            name = path.relative_to(ledger.workspace).as_posix()
            curator.apply(curator.plan.edit(name, path.read_bytes(), text))
        before = note.read_bytes()
        await press(pilot, "u")
        assert not isinstance(app.screen, Preview)
        assert free.read_bytes() == b"- free\n"
        await press(pilot, "u")
        assert isinstance(app.screen, Preview)
        assert "Trust:" in text_of(app)
        assert note.read_bytes() == before
        ledger.run("PRAGMA user_version = 19")
        await press(pilot, "y")
        assert note.read_bytes() == b"- first line\n"
        assert "of another OpenClaw" in said(app)

    free.parent.mkdir()
    free.write_bytes(b"- free\n")
    drive(app, steps, LARGE)


def test_nothing_is_written_where_notes_are_read_only(ledger: HostLedger) -> None:
    app = opened(read_only=True)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "l", "j", "enter", "enter")
        assert isinstance(app.screen, RepairView)
        assert "--read-only" in said(app)

    drive(app, steps, LARGE)
    assert (ledger.row("MEMORY.md") or {})["originClass"] == "untrusted"


def test_without_a_ledger_the_view_says_so(ledger: HostLedger) -> None:
    ledger.database.unlink()
    app = opened()

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "l")
        assert "OpenClaw keeps no ledger of these notes." in text_of(app)
        await press(pilot, "enter", "escape")

    drive(app, steps, LARGE)


def test_the_editor_says_what_of_the_text_goes_into_the_prompt_while_it_is_typed(ledger: HostLedger) -> None:
    (ledger.workspace / "USER.md").write_text("a line of mine\n" * 300)
    app = opened()

    async def steps(pilot: Pilot[int]) -> None:
        tree = app.screen.query_one(FileTree)
        assert tree.reveal("USER.md")
        await press(pilot, "j", "k")
        tree.reveal("USER.md")
        await press(pilot, "enter", "i")
        await enter(pilot, "x")
        said = str(app.screen.query_one("#standing", Static).render())
        assert "USER.md: 4,000 of 4,500 characters, limit 4,000; lines 1" in said
        assert "All files of the prompt: " in said
        assert "Trust: USER.md is agent, edited since" in said
        await press(pilot, "escape", "y")

    drive(app, steps, LARGE)
