"""The entry that makes an MCP client start the server."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

CLIENTS = ("claude-code", "codex", "openclaw")
SERVER = "memory"


def command() -> tuple[str, ...]:
    """How this program is started, by its whole path: agents often start programs without the user's PATH."""
    here = Path(sys.argv[0])
    if here.name == "memory-tui" and here.is_file():
        return (str(here.absolute()),)
    found = shutil.which("memory-tui", path=str(Path(sys.executable).parent)) or shutil.which("memory-tui")
    return (found,) if found else (sys.executable, "-m", "memory_tui")


def entry(client: str, arguments: Sequence[str]) -> str:
    """What to write for `client`, to start the server with `arguments`."""
    program, *first = command()
    words = [*first, "mcp", *arguments]
    match client:
        case "codex":
            return (
                f"# ~/.codex/config.toml\n[mcp_servers.{SERVER}]\ncommand = {_toml(program)}\n"
                f"args = [{', '.join(_toml(word) for word in words)}]"
            )
        case "openclaw":
            nested = {"mcp": {"servers": {SERVER: {"command": program, "args": words}}}}
            return f"// openclaw.json, beside what is there\n{json.dumps(nested, ensure_ascii=False, indent=2)}"
        case _:
            shared = {"mcpServers": {SERVER: {"type": "stdio", "command": program, "args": words}}}
            return (
                f"# {shlex.join(['claude', 'mcp', 'add', SERVER, '--', program, *words])}\n"
                f"# or in .mcp.json of a project, without these two lines:\n"
                f"{json.dumps(shared, ensure_ascii=False, indent=2)}"
            )


def _toml(text: str) -> str:
    """A basic string of TOML: JSON's, except that it wants DEL escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
