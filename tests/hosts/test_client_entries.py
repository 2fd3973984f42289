"""The entry by which any client of MCP starts the server: its options are in it, and it starts what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_tui.cli import main
from memory_tui.hosts import claude_code

AWKWARD = "no\"tes 'x' ü\x7f"
Printed = Callable[..., dict[str, Any]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def run(*arguments: str) -> dict[str, Any]:
        assert main.main(["mcp", *arguments, "--print-config"]) == 0
        entry: dict[str, Any] = json.loads(capsys.readouterr().out)["mcpServers"]["memory"]
        assert entry["type"] == "stdio"
        assert Path(entry["command"]).is_absolute()
        return entry

    return run


def test_the_options_of_the_command_line_are_in_the_entry(printed: Printed) -> None:
    words = ("--workspace", AWKWARD, "--agent", "work", "--set", "query.maxResults=9", "--log-recalls", "--read-only")
    expected = ["mcp", "--workspace", str(Path(AWKWARD).absolute()), *words[2:6], "--read-only", "--log-recalls"]
    assert printed(*words)["args"][-len(expected) :] == expected


def test_the_workspace_extra_notes_and_those_of_claude_code_are_named(
    printed: Printed, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project, extra = tmp_path / "project", tmp_path / "more"
    for folder in (project, extra):
        folder.mkdir()
    monkeypatch.chdir(project)
    assert main.main(["mcp", "--print-config"]) == 2
    assert "There is no workspace here" in capsys.readouterr().err
    (project / "MEMORY.md").write_text("x\n")
    assert printed()["args"][-3:] == ["mcp", "--workspace", str(project)]
    memory = claude_code.auto_memory(project)
    memory.mkdir(parents=True)
    words = printed("--extra", "../more", "--claude-code")["args"]
    assert words[words.index("mcp") + 1 :] == [
        *("--workspace", str(project)),
        *("--extra", str(project / "../more"), "--extra", str(memory)),
    ]


def test_what_is_printed_starts_the_server(tmp_path: Path, printed: Printed) -> None:
    (tmp_path / "MEMORY.md").write_text("x\n")
    entry = printed("--workspace", str(tmp_path), "--index", str(tmp_path / "i"))
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run([entry["command"], *entry["args"]], input=ping, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
