"""The manual's table of versions is what the tests install and run."""

from __future__ import annotations

import re

from memory_tui import manual
from tests.support import coding_agents, mcp_tools, real_openclaw


def test_the_table_names_what_is_run() -> None:
    found = re.search(r"<!-- versions -->\n(.*)\n<!-- /versions -->", manual.text("agents"), re.DOTALL)
    assert found is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()[2:]]
    run = {
        ("OpenClaw", real_openclaw.NEWEST),
        ("OpenClaw", real_openclaw.OLDEST),
        ("Claude Code", coding_agents.VERSIONS["@anthropic-ai/claude-code"]),
        ("Codex", coding_agents.VERSIONS["@openai/codex"]),
        ("MCP inspector", mcp_tools.VERSIONS["@modelcontextprotocol/inspector"]),
    }
    assert {(program, version) for program, version, _ in rows} == run
