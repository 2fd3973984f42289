"""View 6: which agents use this memory, what they get, and the files that connecting one changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.hosts import connection
from memory_tui.hosts import connection as proofs
from memory_tui.hosts.wiring import ServerStart, options_of
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.agents_view import AgentsView, ConnectionView
from tests.support import hosts
from tests.support.tui import drive, lines_of, make_app, press, said, sample, settled, text_of, until

SETTINGS = '{\n  // mine\n  "model": "x"\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with Claude Code and Codex, in a project; no server is started, and each answers after 12 ms."""
    folder = tmp_path / "home"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text(SETTINGS)
    for name in ("STATE", "CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    hosts.install(tmp_path / "programs", monkeypatch)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")

    def prove(start: ServerStart, question: str) -> proofs.Proof:
        assert start.words
        return proofs.Proof("memory-tui", "1", 310.0, 12.0, "recommended", "builtin", question, 3, "MEMORY.md:1")

    monkeypatch.setattr(proofs, "prove", prove)
    return folder


@pytest.fixture
def app(tmp_path: Path, home: Path) -> MemoryApp:
    assert home.is_dir()
    return make_app(sample(tmp_path / "notes"))


async def chose(pilot: Pilot[int], *keys: str) -> ConnectionView:
    """Choose in the list what is to be connected, and see the difference."""
    await press(pilot, *keys)
    await until(lambda: isinstance(pilot.app.screen, ConnectionView) and pilot.app.screen.listing.found is not None)
    view = pilot.app.screen
    assert isinstance(view, ConnectionView)
    return view


async def connect_claude(pilot: Pilot[int]) -> None:
    await press(pilot, "6", "down")
    await chose(pilot, "enter", "enter")
    await press(pilot, "enter")
    await until(lambda: "answer in 12 ms" in text_of(pilot.app))


def test_an_agent_is_connected_and_disconnected_after_its_difference(
    tmp_path: Path, app: MemoryApp, home: Path
) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "6")
        assert isinstance(app.screen, AgentsView)
        text = text_of(app)
        assert text.count("not connected; enter connects it") == 3
        assert "No agent has asked yet. Press enter on an agent to connect it" in text
        await press(pilot, "down")
        view = await chose(pilot, "enter", "enter")
        assert '+  "permissions": {' in text_of(app)
        assert not connection.every(), "nothing is written before enter"
        await press(pilot, "escape")
        assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
        await chose(pilot, "enter", "enter")
        await press(pilot, "enter")
        assert view is not app.screen
        await until(lambda: "answer in 12 ms" in text_of(app))
        [made] = connection.every()
        served = options_of(made.start.words)
        assert (served.workspace, dict(served.changes)["profile"]) == (str(tmp_path / "notes"), "recommended")
        assert "--log-recalls" in made.start.words
        written = (home / ".claude" / "settings.json").read_text()
        assert "// mine" in written
        assert "--log-recalls" not in written, "the hooks do not know the switch"
        text = text_of(app)
        assert "✓ Claude Code connected" in text
        assert "1 of 3 connected" in text
        assert "recommended, as on this screen" in text
        assert "last query      none is logged." in text
        await press(pilot, "d")
        await until(lambda: isinstance(app.screen, ConnectionView) and app.screen.listing.found is not None)
        assert "Disconnect Claude Code" in text_of(app)
        await press(pilot, "enter")
        await until(lambda: not connection.every())
        await settled(pilot)
        assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
        await press(pilot, "d")
        assert said(app) == "This agent is not connected. Press enter to connect it."

    drive(app, steps)


def test_the_first_line_says_what_the_agent_gets_and_where_the_screen_differs(
    tmp_path: Path, app: MemoryApp, home: Path
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        await until(lambda: "profile recommended, as Claude Code gets" in lines_of(app)[0])

    drive(app, steps, (200, 50))
    other = make_app(tmp_path / "notes", changes=[("profile", "openclaw-2026.3")])

    async def differing(pilot: Pilot[int]) -> None:
        assert "profile openclaw-2026.3; Claude Code gets profile recommended" in lines_of(other)[0]
        await press(pilot, "6")
        await until(lambda: "this screen differs in profile" in text_of(other))

    drive(other, differing, (200, 50))
    assert home.is_dir()


def test_knobs_that_are_turned_and_not_written_count_too(app: MemoryApp, home: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        await until(lambda: "profile recommended, as Claude Code gets" in lines_of(app)[0])
        assert app.tuning is not None
        app.turn(app.tuning.set("query.minScore", 0.9))
        await until(lambda: "Claude Code gets other results: minScore differ" in lines_of(app)[0])
        assert "recommended; this screen differs in minScore" in text_of(app)
        app.turn(app.tuning.undo())
        await until(lambda: "as Claude Code gets" in lines_of(app)[0])
        assert "recommended, as on this screen" in text_of(app)

    drive(app, steps, (200, 50))
    assert home.is_dir()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 36)])
def test_a_narrow_first_line_says_it_too(size: tuple[int, int], app: MemoryApp, home: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        await until(lambda: app.facts is not None and bool(app.facts.agents))
        assert app.tuning is not None
        app.turn(app.tuning.set("query.minScore", 0.9))
        await until(lambda: "agent differs" in lines_of(app)[0])
        await press(pilot, "1")
        assert "agent differs" in lines_of(app)[0]

    drive(app, steps, size)
    assert home.is_dir()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 36)])
def test_an_agent_whose_server_fails_stands_beside_the_tab(
    size: tuple[int, int], app: MemoryApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = "6A1" if size[0] == 60 else "6 Agents 1"

    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        assert tab not in lines_of(app)[0]
        answering = proofs.prove

        def fail(start: ServerStart, question: str) -> proofs.Proof:
            raise MemoryTuiError("The server ended before it answered.", "Connect it again.")

        monkeypatch.setattr(proofs, "prove", fail)
        await press(pilot, "r")
        await until(lambda: tab in lines_of(app)[0])
        assert "The server ended before it answered." in " ".join(text_of(app).split())
        await press(pilot, "1")
        assert tab in lines_of(app)[0], "in every view"
        monkeypatch.setattr(proofs, "prove", answering)
        await press(pilot, "6", "r")
        await until(lambda: tab not in lines_of(app)[0])

    drive(app, steps, size)
    assert home.is_dir()


def test_a_row_names_the_last_query_the_last_error_and_a_server_that_fails(
    tmp_path: Path, app: MemoryApp, home: Path
) -> None:
    options = Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "agent.sqlite"), provider="scripted")
    host = ServedMemory(lambda: Engine.open(options), ServerOptions(log=True))
    host.search({"query": "omada router"}, "", "claude-code 2.1", Stop())
    host.search({"query": "which \x1b[31mprinter", "corpus": "sessions"}, "", "codex-mcp-client 0.1", Stop())
    host.search({"query": "asked by the proof"}, "", "memory-tui connect 1", Stop())
    host.close()

    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        text = text_of(app)
        assert "omada router (" in text
        assert "The transcripts of sessions are not part of this memory." in text, "codex, though it is not connected"
        assert "␛[31mprinter" in text
        assert "asked by the proof" not in text
        (home / ".claude" / "settings.json").write_text(SETTINGS)
        await press(pilot, "r")
        await until(lambda: "✗ Claude Code no longer connected" in text_of(app))

    drive(app, steps)


def test_openclaw_that_is_not_set_up_says_so(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "6", "enter", "enter")
        await until(lambda: "OpenClaw is not set up here" in text_of(app))
        await press(pilot, "enter")
        assert said(app) == "The difference is not known yet."

    drive(app, steps)


def test_claude_codes_file_keeps_what_others_wrote(app: MemoryApp, home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"other": {"command": "y"}}}')

    async def steps(pilot: Pilot[int]) -> None:
        await connect_claude(pilot)
        servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
        assert set(servers) == {"other", "memory"}

    drive(app, steps, (60, 20))
