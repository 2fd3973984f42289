"""The real Claude Code and the real Codex, connected by the command alone: asked, answered, noted, disconnected."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import coding_agents
from tests.support.coding_agents import CodingAgent
from tests.support.workspace import put_all

pytestmark = pytest.mark.real_host
FACT = "The Omada controller runs on port 8043 in VLAN 20."
QUESTION = "RECALL: which port does the Omada controller use"


@pytest.fixture
def model():
    with coding_agents.scripted_model() as model:
        yield model


@pytest.fixture
def notes(tmp_path):
    facts = {"MEMORY.md": "# Memory\n\n- Tea, no coffee.\n", "memory/network.md": f"# Network\n\n- {FACT}\n"}
    return put_all(tmp_path / "notes", facts)


def agent(package, tmp_path, model, **more):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return CodingAgent([coding_agents.program(package)], home, project, model, more)


def memory_tui(host, *words):
    program, places = str(Path(sys.executable).with_name("memory-tui")), {"cwd": host.project, "env": host.environment}
    done = subprocess.run([program, *words, "--json"], check=False, capture_output=True, text=True, **places)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def session_note(notes):
    [path] = [path for path in (notes / "memory").iterdir() if path.name != "network.md"]
    return path.read_text()


def recalls(host, notes):
    """What the transcript tells of searches: the host, the question, whether a hit was quoted."""
    data: Any = memory_tui(host, "recall-log", "--sessions", "--workspace", str(notes))
    return [
        (session["host"], recall["entry"]["query"], bool(recall["quoted"]))
        for session in data["sessions"]
        for turn in session["turns"]
        for recall in turn["recalls"]
        if recall["entry"]["tool"] == "memory_search"
    ]


def named(host, notes):
    """Who changed each note, by the history."""
    data: Any = memory_tui(host, "history", "--workspace", str(notes))
    return {row["paths"][0]: f"{row['by']} {row['author']['rule']}" for row in data["changes"]}


def test_what_claude_code_writes_is_its_own(tmp_path, model, notes):
    host = claude_code(tmp_path, model)
    assert named(host, notes) == {}
    calls = [
        ("Write", {"file_path": str(notes / "memory" / "day.md"), "content": "- written\n"}),
        ("Read", {"file_path": str(notes / "MEMORY.md")}),
        ("Edit", {"file_path": str(notes / "MEMORY.md"), "old_string": "no coffee", "new_string": "and coffee"}),
        ("Bash", {"command": f"echo '- by the shell' >> {notes}/memory/network.md", "description": "add a line"}),
    ]
    host.run("-p", f"CALLS: {json.dumps(calls)}", "--permission-mode", "bypassPermissions")
    assert named(host, notes) == {
        "memory/day.md": "claude-code bytes",
        "MEMORY.md": "claude-code bytes",
        "memory/network.md": "claude-code command",
    }


def test_what_codex_writes_is_its_own(tmp_path, model, notes):
    host = codex(tmp_path, model)
    assert named(host, notes) == {}
    patch = f"*** Begin Patch\n*** Update File: {notes}/MEMORY.md\n@@\n-- Tea, no coffee.\n+- Coffee.\n*** End Patch"
    calls = [
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"}),
        ("exec_command", {"cmd": f"echo '- by the shell' >> {notes}/memory/network.md; exit 3"}),
    ]
    words = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    host.run("exec", *words, f"CALLS: {json.dumps(calls)}")
    assert named(host, notes) == {"MEMORY.md": "codex bytes", "memory/network.md": "codex command"}


def claude_code(tmp_path, model):
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    more = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", **quiet}
    host = agent("@anthropic-ai/claude-code", tmp_path, model, **more)
    (host.home / ".claude.json").write_text('{\n  "numStartups": 3\n}\n')
    return host


def codex(tmp_path, model):
    host = agent("@openai/codex", tmp_path, model, SCRIPTED_KEY="none")
    (host.home / ".codex").mkdir()
    (host.home / ".codex" / "config.toml").write_text(
        '# mine\nmodel = "scripted-1"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{model.url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
    )
    return host


def test_claude_code_asks_the_memory_and_leaves_a_note(tmp_path, model, notes):
    host = claude_code(tmp_path, model)
    made = memory_tui(host, "connect", "claude-code", "--yes", "--workspace", str(notes))
    assert made["proof"]["profile"] == "recommended"
    assert "memory: " in (listed := host.run("mcp", "list"))
    assert "Connected" in listed

    said = json.loads(host.run("-p", QUESTION, "--output-format", "json"))
    assert said["result"].startswith("ANSWER"), said["result"]
    assert FACT in said["result"]
    assert said["permission_denials"] == []
    asked = model.asked()
    assert len(asked) == 3, "search, get, answer: no search for tools comes first"
    names = [tool.get("name") for tool in asked[0]["tools"]]
    assert {"mcp__memory__memory_search", "mcp__memory__memory_get"} <= set(names)
    # Claude Code passes the server's rule on once it has connected; what the tool says of itself is there before.
    assert "Recall, before you answer" in json.dumps(asked[0]["tools"])
    assert json.dumps(asked[-1]).count("## Memory Recall") == 1, "the rule stands once"

    assert recalls(host, notes) == [("claude-code", "which port does the Omada controller use", True)]
    note = session_note(notes)
    assert note.startswith(f"---\nsession: {said['session_id']}\n")
    assert QUESTION in note
    assert FACT not in note, "what was recalled is not written down again"
    host.run("-p", "And thanks.", "--resume", said["session_id"])
    assert "user: And thanks." in session_note(notes)

    before = json.loads((host.home / ".claude.json").read_bytes())
    memory_tui(host, "disconnect", "claude-code", "--yes")
    del before["mcpServers"]
    assert json.loads((host.home / ".claude.json").read_bytes()) == before
    assert not (host.home / ".claude" / "settings.json").exists()


def test_codex_asks_the_memory_and_leaves_a_note(tmp_path, model, notes):
    host = codex(tmp_path, model)
    config = host.home / ".codex" / "config.toml"
    before = config.read_bytes()
    made = memory_tui(host, "connect", "codex", "--yes", "--workspace", str(notes))
    assert made["proof"]["profile"] == "recommended"

    trusting = ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json")
    events = [json.loads(line) for line in host.run(*trusting, QUESTION).splitlines() if line.startswith("{")]
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    calls = [item["tool"] for item in items if item["type"] == "mcp_tool_call" and item["status"] == "completed"]
    assert calls == ["memory_search", "memory_get"]
    [answer] = [item["text"] for item in items if item["type"] == "agent_message"]
    assert answer.startswith("ANSWER")
    assert FACT in answer
    assert json.dumps(model.asked()[0]).count("## Memory Recall") == 1, "the rule stands once"

    assert recalls(host, notes) == [("codex", QUESTION.removeprefix("RECALL: "), True)]
    note = session_note(notes)
    assert QUESTION in note
    assert FACT not in note
    assert "environment_context" not in note

    told = memory_tui(host, "disconnect", "codex", "--yes")
    assert {file["ending"] for file in told["files"]} == {"restored", "removed"}
    assert config.read_bytes() == before
    assert not (config.parent / "hooks.json").exists()


def test_codex_has_the_tools_each_time_it_starts(tmp_path, model, notes):
    """Codex drops a server that is slow to start, and goes on without one that is gone."""
    host = codex(tmp_path, model)
    memory_tui(host, "connect", "codex", "--yes", "--workspace", str(notes))
    starts = int(os.environ.get("MEMORY_TUI_CODEX_STARTS", "3"))
    for number in range(starts):
        assert "NO TOOLS" not in host.run("exec", "--skip-git-repo-check", f"{QUESTION} {number}")
    for name in ("config.toml", "hooks.json"):
        path = host.home / ".codex" / name
        path.write_text(path.read_text().replace(str(Path(sys.executable).with_name("memory-tui")), "/gone/memory-tui"))
    trusting = ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust")
    assert "NO TOOLS" in host.run(*trusting, QUESTION), "uninstalled, it keeps Codex from nothing"
