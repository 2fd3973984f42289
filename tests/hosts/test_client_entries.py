"""What hosts start: the entry for any client of MCP, the words of a server, the plugin of OpenClaw."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli.main import parse
from memory_tui.config.openclaw_release import PLUGIN
from memory_tui.config.settings import PROFILES
from memory_tui.hosts import claude_code
from memory_tui.hosts.wiring import options_of, words_of
from memory_tui.mcp.wire import listed_tools
from memory_tui.plan import Options
from tests.support.paths import ROOT
from tests.support.waiting import LONG

AWKWARD = "no\"tes 'x' ü\x7f"


@pytest.fixture
def entry_of(printed):
    def run(*arguments):
        entry: dict[str, Any] = json.loads(printed("mcp", *arguments, "--print-config"))["mcpServers"]["memory"]
        assert entry["type"] == "stdio"
        assert Path(entry["command"]).is_absolute()
        return entry

    return run


def test_the_options_of_the_command_line_are_in_the_entry(entry_of):
    words = ("--workspace", AWKWARD, "--agent", "work", "--set", "query.maxResults=9", "--log-recalls", "--read-only")
    expected = ["mcp", "--workspace", str(Path(AWKWARD).absolute()), *words[2:6], "--read-only", "--log-recalls"]
    assert entry_of(*words)["args"][-len(expected) :] == expected


def test_the_workspace_extra_notes_and_those_of_claude_code_are_named(entry_of, printed, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project, extra = tmp_path / "project", tmp_path / "more"
    for folder in (project, extra):
        folder.mkdir()
    monkeypatch.chdir(project)
    assert "COMMAND --workspace PATH" in printed("mcp", "--print-config", code=2)
    (project / "MEMORY.md").write_text("x\n")
    assert entry_of()["args"][-3:] == ["mcp", "--workspace", str(project)]
    memory = claude_code.auto_memory(project)
    memory.mkdir(parents=True)
    words = entry_of("--extra", "../more", "--claude-code")["args"]
    named = [*("--workspace", str(project)), *("--extra", str(project / "../more"), "--extra", str(memory))]
    assert words[words.index("mcp") + 1 :] == named


def test_what_is_printed_starts_the_server(tmp_path, entry_of):
    (tmp_path / "MEMORY.md").write_text("x\n")
    entry = entry_of("--workspace", str(tmp_path), "--index", str(tmp_path / "i"))
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run([entry["command"], *entry["args"]], input=ping, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0~"), min_size=1, max_size=12)
PATHS = TEXT.map(lambda name: str(Path("/") / name.replace("/", "_")))
CHANGES = st.one_of(
    st.tuples(st.just("profile"), TEXT),
    st.tuples(st.sampled_from(["query.minScore", "a.b"]), st.text(max_size=8).filter(lambda text: "\0" not in text)),
)


@given(
    options=st.builds(
        Options,
        workspace=st.none() | PATHS,
        config=st.none() | PATHS,
        index=st.none() | PATHS,
        agent=st.sampled_from(["", "-x", "--agent=-x"]) | TEXT,
        provider=st.just("") | TEXT,
        changes=st.lists(CHANGES, max_size=3).map(tuple),
        projects=st.lists(TEXT, max_size=2).map(tuple),
        extra=st.lists(PATHS, max_size=2).map(tuple),
    )
)
def test_words_are_read_back_as_the_options_that_they_are_of(options):
    words = words_of(options)
    assert options_of(words) == options
    assert options_of(["/bin/memory-tui", "mcp", "--no-prompts", "--log-recalls", *words]) == options
    assert parse(["mcp", *words]).agent == options.agent


FOLDER = ROOT / "memory_tui" / "hosts" / "openclaw_plugin"


def test_its_javascript_does_what_its_own_tests_ask():
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here to run the plugin's own tests")
    env = {**os.environ, "PLUGIN": str(FOLDER)}
    words = [node, "--test", str(ROOT / "tests" / "hosts" / "openclaw_plugin" / "plugin.test.mjs")]
    run = subprocess.run(words, check=False, env=env, capture_output=True, text=True, timeout=2 * LONG)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_its_manifest_agrees_with_the_program():
    manifest = json.loads((FOLDER / "openclaw.plugin.json").read_text())
    package = json.loads((FOLDER / "package.json").read_text())
    assert manifest["id"] == package["name"] == PLUGIN
    assert manifest["configSchema"]["properties"]["profile"]["enum"] == list(PROFILES)
    assert not package.keys() & {"dependencies", "scripts"}


def test_its_tools_say_and_take_what_those_of_the_server_do():
    source = re.sub(r'" \+\s+"', "", (FOLDER / "tools.js").read_text())
    for tool in list(listed_tools().values())[:3]:  # those of the notes
        assert f'"{tool["description"]}"' in source
        for key in tool["inputSchema"]["properties"]:
            assert f"{key}: {{" in source
