"""Rule 11: what a start imports is recorded, so that merging modules cannot put a heavy import beside a light one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import LONG

HEAVY = ("apsw", "httpcore", "lancedb", "numpy", "pyarrow", "pydantic", "textual", "tokenizers")
RECORDED = {
    "--version": [],
    "a hook": [],
    "get": [],
    "search": ["apsw", "numpy"],
    "the MCP handshake": [],
    "the first frame": ["textual"],
}
"""Start -> the heavy modules that it has imported when it answers. A line that shrinks is recorded anew."""

LOADED = f"import sys\nHEAVY = {HEAVY!r}\ndef loaded():\n    return [name for name in HEAVY if name in sys.modules]\n"
COMMAND = (
    LOADED
    + """
import contextlib, io, json
from memory_tui.cli.main import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
    main(sys.argv[1:])
print(json.dumps(loaded()))
"""
)
SERVE = (
    LOADED
    + """
import atexit, json, os
from memory_tui.mcp import host
host.ServedMemory.warm = lambda self: None
def told():
    sys.stderr.write(json.dumps(loaded()))
    sys.stderr.flush()
def leave(code, leave=os._exit):
    told()
    leave(code)
# A server leaves by one of both, as its threads end in time or not.
atexit.register(told)
os._exit = leave
from memory_tui.cli.main import main
raise SystemExit(main(["mcp", *sys.argv[1:]]))
"""
)
"""Standard input ends after the greeting and nothing warms up, so that the end sees what the greeting loaded."""
FRAME = (
    LOADED
    + """
import asyncio, json, threading
from textual.app import App
from memory_tui.tui.app import MemoryApp

def opened(listener):
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Options
    return Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted"), listener)

imported, seen, display = [], [], App._display

class OfTheScreen:
    def find_spec(self, name, path=None, target=None):
        # Workers open the index meanwhile; what they import keeps no frame waiting.
        if name in HEAVY and threading.current_thread() is threading.main_thread():
            imported.append(name)

def shown(self, screen, renderable):
    if not seen and screen.is_mounted:
        seen.append(sorted({*before, *imported}))
    return display(self, screen, renderable)

App._display = shown
before = loaded()
sys.meta_path.insert(0, OfTheScreen())
async def first():
    async with MemoryApp(opened, name="notes").run_test(size=(100, 30)):
        pass
asyncio.run(first())
print(json.dumps(seen[0]))
"""
)


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    return ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite")]


def last_line(code: str, *words: str, sent: str = "") -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *words], input=sent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, list)
    return found


def test_version() -> None:
    assert last_line(COMMAND, "--version") == RECORDED["--version"]


def test_a_hook(tmp_path: Path) -> None:
    happened = {"hook_event_name": "PreCompact", "cwd": str(tmp_path), "session_id": "s", "transcript_path": ""}
    assert last_line(COMMAND, "hook", "claude-code", sent=json.dumps(happened)) == RECORDED["a hook"]


def test_search(arguments: list[str]) -> None:
    assert last_line(COMMAND, *arguments, "search", "router") == RECORDED["search"]


def test_get(arguments: list[str]) -> None:
    assert last_line(COMMAND, *arguments, "get", "MEMORY.md") == RECORDED["get"]


def test_the_handshake(arguments: list[str]) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
    greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}
    done = subprocess.run(
        [sys.executable, "-c", SERVE, *arguments],
        input=json.dumps(greeting) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "memory-tui"
    assert json.loads(done.stderr.splitlines()[-1]) == RECORDED["the MCP handshake"]


def test_the_first_frame(arguments: list[str]) -> None:
    assert last_line(FRAME, arguments[1], arguments[3]) == RECORDED["the first frame"]
