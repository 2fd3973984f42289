"""Codex starts the server by its config.toml, calls hooks by its hooks.json.

Codex gives a server few variables of its environment: those that say where the user keeps files are named, so that the
server finds the index and the state that the app uses. A server that is `required` is waited for, instead of being left
out where it starts slowly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

EVENTS = ("SessionStart", "PreCompact")
"""What Codex has of Claude Code's events; the end of a session is none."""
FORWARDED = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def server_entry(name: str, program: str, words: Sequence[str]) -> str:
    """The table of config.toml that starts `program` with `words`."""
    return (
        f"# ~/.codex/config.toml\n[mcp_servers.{name}]\ncommand = {_toml(program)}\n"
        f"args = [{', '.join(_toml(word) for word in words)}]\n"
        f"env_vars = [{', '.join(_toml(variable) for variable in FORWARDED)}]\nrequired = true"
    )


def _toml(text: str) -> str:
    """A basic string of TOML: JSON's, except that it wants DEL escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
