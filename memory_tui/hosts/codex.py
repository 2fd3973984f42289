"""Codex: what connects it, and the memory that it keeps by itself.

Its memory is a folder that it writes by itself, of what earlier sessions came to. It rewrites all of it: what a person
adds or corrects is a note of its own in extensions/ad_hoc/notes, which Codex reads when it next makes its memory
(source: the instructions in Codex 0.169.0).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path

from memory_tui.hosts.claude_code import hooks, named_folder
from memory_tui.hosts.wiring import SERVER, FileEdit, HostChange, Wiring, require

_FORWARDED = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables by which the server finds the index and the state that the app uses."""
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that Codex gives every server; it gives others only where they are named."""
VARIABLES = (*_PASSED_ON, *_FORWARDED)
_MOST_SLUG = 80


def edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    """Return the changes of files that connect Codex. Raises ConfigError where Codex is not installed."""
    home = memory().parent
    require(wiring, "Codex", "codex", home)
    folder = home if wiring.scope == "user" else wiring.project / ".codex"
    program, *words = wiring.server()
    # It is not `required`: without it Codex still starts.
    entry = {"command": program, "args": words, "env_vars": list(_FORWARDED)}
    table = HostChange("table", ("mcp_servers", SERVER), entry)
    return FileEdit(folder / "config.toml", (table,)), FileEdit(folder / "hooks.json", hooks(wiring, "codex"))


def memory() -> Path:
    """Return where Codex keeps its memory, whether it is there or not: below CODEX_HOME, else ~/.codex."""
    return (named_folder("CODEX_HOME") or Path.home() / ".codex") / "memories"


def is_memory(workspace: Path) -> bool:
    """Return whether a workspace is Codex's memory."""
    return workspace.name == "memories" and os.path.realpath(workspace) == os.path.realpath(memory())


def note_path(text: str, at: dt.datetime) -> str:
    """Return the stored path of a note that adds `text` to Codex's memory: Codex takes no other form of name."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    slug = "-".join(re.findall(r"[a-z0-9]+", first.casefold()))[:_MOST_SLUG].strip("-") or "note"
    return f"extensions/ad_hoc/notes/{at:%Y-%m-%dT%H-%M-%S}-{slug}.md"
