"""The server before the inspector of MCP, as npm has it."""

import json
import sys

import pytest

from tests.support import mcp_tools


@pytest.mark.real_host
@pytest.mark.timeout(300)
def test_the_inspector_lists_and_calls(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Memory\n\n- The Omada controller runs on port 8043.\n")
    server = [sys.executable, "-m", "memory_tui", "mcp", "--workspace", str(notes), "--provider", "none"]
    server += ["--index", str(tmp_path / "index.sqlite")]

    def inspect(*words: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(mcp_tools.inspector(tmp_path, "--cli", *server, *words))
        return found

    tools = inspect("--method", "tools/list")["tools"]
    assert isinstance(tools, list)
    assert [tool["name"] for tool in tools] == ["memory_search", "memory_get"]
    answer = inspect("--method", "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=Omada controller")
    hits = answer["structuredContent"]["results"]  # type: ignore[index]
    assert hits[0]["path"] == "MEMORY.md"
