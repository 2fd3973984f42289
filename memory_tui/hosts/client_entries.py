"""The entry that makes an MCP client start the server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from memory_tui.hosts import claude_code, codex
from memory_tui.hosts.wiring import SERVER, command

CLIENTS = ("claude-code", "codex", "openclaw")


def hooks(events: Sequence[str], host: str, arguments: Sequence[str]) -> dict[str, object]:
    """What makes a host call the hook `host` at `events`; the files of Claude Code and of Codex have one shape."""
    call = {"type": "command", "command": shlex.join((*command(), "hook", host, *arguments))}
    return {"hooks": {event: [{"hooks": [call]}] for event in events}}


def entry(client: str, arguments: Sequence[str]) -> str:
    """What to write for `client`, to start the server with `arguments`."""
    program, *first = command()
    words = [*first, "mcp", *arguments]
    # OpenClaw makes four more tools of prompts and resources, Codex three of resources.
    fewer = [*first, "mcp", "--no-prompts", "--no-resources", *arguments]
    match client:
        case "codex":
            return f"# ~/.codex/config.toml\n{codex.server_entry((program, *fewer))}"
        case "openclaw":
            nested = {"mcp": {"servers": {SERVER: {"command": program, "args": fewer}}}}
            return f"// openclaw.json, beside what is there\n{json.dumps(nested, ensure_ascii=False, indent=2)}"
        case _:
            shared = {"mcpServers": {SERVER: claude_code.server_entry((program, *words))}}
            return (
                f"# {shlex.join(['claude', 'mcp', 'add', SERVER, '--', program, *words])}\n"
                f"# or in .mcp.json of a project, without these two lines:\n"
                f"{json.dumps(shared, ensure_ascii=False, indent=2)}"
            )
