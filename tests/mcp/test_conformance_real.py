"""The server before the conformance suite and the inspector of MCP, as npm has them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support import mcp_tools
from tests.support.http_bridge import bridged

APPLICABLE = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
)
NOT_APPLICABLE = {
    "not offered: announced in no capability, and answered with method not found": (
        *("logging-set-level", "completion-complete", "tools-call-with-logging"),
        *("resources-subscribe", "resources-unsubscribe"),
    ),
    "a server asks its client only where it has a use for that": (
        *("tools-call-sampling", "tools-call-elicitation"),
        *("elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
    ),
    "needs a tool, resource or prompt of the suite's own by name": (
        *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource"),
        *("tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12"),
        *("resources-read-text", "resources-read-binary", "resources-templates-read", "prompts-get-simple"),
        *("prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
    ),
    "of the HTTP transport, which the server does not speak": ("server-sse-polling", "dns-rebinding-protection"),
}
"""Reason -> scenarios that say nothing about this server."""
CONFORMANCE, INSPECTOR = "@modelcontextprotocol/conformance", "@modelcontextprotocol/inspector"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Memory\n\n- The Omada controller runs on port 8043.\n")
    words = ["mcp", "--workspace", str(notes), "--provider", "none", "--index", str(tmp_path / "index.sqlite")]
    return [sys.executable, "-m", "memory_tui", *words]


@pytest.mark.real_host
@pytest.mark.timeout(300)
def test_the_applicable_scenarios_pass(command: list[str], tmp_path: Path) -> None:
    listed = re.findall(r"^  - ([\w-]+) \[", mcp_tools.run(CONFORMANCE, tmp_path, "list", "--server"), re.MULTILINE)
    assert sorted(listed) == sorted([*APPLICABLE, *(name for names in NOT_APPLICABLE.values() for name in names)])
    with bridged(command) as address:
        for scenario in APPLICABLE:
            said = mcp_tools.run(CONFORMANCE, tmp_path, "server", "--url", address, "--scenario", scenario)
            assert re.search(r"Passed: (\d+)/\1, 0 failed", said), said


@pytest.mark.real_host
@pytest.mark.timeout(300)
def test_the_inspector_lists_and_calls(command: list[str], tmp_path: Path) -> None:
    def inspect(*words: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(mcp_tools.run(INSPECTOR, tmp_path, "--cli", *command, *words))
        return found

    tools = inspect("--method", "tools/list")["tools"]
    assert isinstance(tools, list)
    assert [tool["name"] for tool in tools] == ["memory_search", "memory_get"]
    answer = inspect("--method", "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=Omada controller")
    hits = answer["structuredContent"]["results"]  # type: ignore[index]
    assert hits[0]["path"] == "MEMORY.md"
    [note] = inspect("--method", "resources/list")["resources"]  # type: ignore[misc]
    assert note["uri"] == "memory:MEMORY.md"
