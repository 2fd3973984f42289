"""The entries that make an agent start the server: each can be read by its client, and starts what it says."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_tui.cli import main
from memory_tui.config.load import parse
from memory_tui.hosts import claude_code, connection

AWKWARD = "no\"tes 'x' ü\x7f"


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        assert main.main(["mcp", *arguments]) == 0
        return capsys.readouterr().out

    return run


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith(("#", "//")))


def test_every_client_gets_an_entry_with_the_options_of_this_command_line(printed: Callable[..., str]) -> None:
    given = ("--workspace", "notes", "--agent", "work", "--set", "query.maxResults=9", "--log-recalls", "--read-only")
    words = [
        "mcp",
        "--workspace",
        str(Path("notes").absolute()),
        "--agent",
        "work",
        "--set",
        "query.maxResults=9",
        "--read-only",
        "--log-recalls",
    ]
    codex = tomllib.loads(printed(*given, "--print-config", "codex"))["mcp_servers"]["memory"]
    claude = json.loads(without_comments(printed(*given, "--print-config")))["mcpServers"]["memory"]
    claw = json.loads(without_comments(printed(*given, "--print-config", "openclaw")))["mcp"]["servers"]["memory"]
    for entry in (codex, claude, claw):
        assert "mcp" in entry["args"][:3]
        assert entry["args"][-len(words) + 1 :] == words[1:]
        assert Path(entry["command"]).is_absolute()
    assert claude["type"] == "stdio"
    assert set(codex["env_vars"]) == {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
    assert {"--no-prompts", "--no-resources"} & set(claude["args"]) == set()
    assert {"--no-prompts", "--no-resources"} <= set(claw["args"]) & set(codex["args"])


def test_the_workspace_that_was_found_is_named(
    printed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "MEMORY.md").write_text("x\n")
    monkeypatch.chdir(tmp_path)
    assert tomllib.loads(printed("--print-config", "codex"))["mcp_servers"]["memory"]["args"][-5:] == [
        "mcp",
        "--no-prompts",
        "--no-resources",
        "--workspace",
        str(tmp_path),
    ]


def test_extra_notes_and_those_of_claude_code_are_in_the_entry(
    printed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project, extra = tmp_path / "project", tmp_path / "more"
    for folder in (project, extra):
        folder.mkdir()
    (project / "MEMORY.md").write_text("x\n")
    memory = claude_code.auto_memory(project)
    memory.mkdir(parents=True)
    monkeypatch.chdir(project)
    text = printed("--extra", "../more", "--claude-code", "--print-config", "codex")
    words = tomllib.loads(text)["mcp_servers"]["memory"]["args"]
    assert words[words.index("mcp") + 1 :] == [
        "--no-prompts",
        "--no-resources",
        *("--workspace", str(project)),
        *("--extra", str(project / "../more"), "--extra", str(memory)),
    ]


def test_without_a_workspace_there_is_nothing_to_print(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["mcp", "--print-config"]) == 2
    assert "There is no workspace here" in capsys.readouterr().err


def test_the_first_line_for_claude_code_is_its_own_command(printed: Callable[..., str]) -> None:
    line = printed("--workspace", "notes", "--print-config", "claude-code").split("\n")[0].removeprefix("# ")
    assert shlex.split(line)[:5] == ["claude", "mcp", "add", "memory", "--"]


@pytest.mark.parametrize("client", connection.CLIENTS)
def test_odd_characters_survive_every_format(client: str) -> None:
    text = connection.entry(client, ["--workspace", AWKWARD])
    read = tomllib.loads(text)["mcp_servers"]["memory"] if client == "codex" else None
    if read is None:
        found = json.loads(without_comments(text))
        read = found["mcp"]["servers"]["memory"] if client == "openclaw" else found["mcpServers"]["memory"]
    assert read["args"][-2:] == ["--workspace", AWKWARD]


def test_openclaw_reads_its_entry_with_the_comment(printed: Callable[..., str]) -> None:
    assert parse(printed("--workspace", "notes", "--print-config", "openclaw"), Path("openclaw.json")) is not None


def test_what_is_printed_starts_the_server(tmp_path: Path, printed: Callable[..., str]) -> None:
    (tmp_path / "MEMORY.md").write_text("x\n")
    entry = tomllib.loads(
        printed("--workspace", str(tmp_path), "--index", str(tmp_path / "i"), "--print-config", "codex")
    )["mcp_servers"]["memory"]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    process = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(ping)
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        process.stdin.close()
    assert process.returncode == 0


def test_an_unknown_client_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["mcp", "--print-config", "emacs"]) == 2
    assert "claude-code, codex, openclaw" in capsys.readouterr().err
