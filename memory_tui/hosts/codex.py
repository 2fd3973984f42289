"""Codex is a host with a memory of its own. It starts the server by its config.toml, and calls hooks by its hooks.json.

Codex gives a server few variables of its environment: those that say where the user keeps files are named, so that the
server finds the index and the state that the app uses. It is not `required`: without it Codex still starts.

Its memory is a folder that Codex writes by itself, of what earlier sessions came to. MEMORY.md groups tasks,
memory_summary.md begins each session, raw_memories.md and rollout_summaries/ are what both are made of. Codex rewrites
all of it: what a person adds or corrects is a note of its own in extensions/ad_hoc/notes, which Codex reads when it
next makes its memory (source: the instructions in Codex 0.169.0).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from pathlib import Path

from memory_tui.hosts.file_changes import FileEdit, HostChange
from memory_tui.hosts.wiring import SERVER, Host, ServerStart, Wiring, hook_entries, require

EVENTS = ("SessionStart", "PreCompact", "SessionEnd")
"""Events of Codex, which are called and described as those of Claude Code."""
FORWARDED = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that Codex gives every server."""


def home() -> Path:
    """Codex's own folder: CODEX_HOME, else ~/.codex."""
    named = os.environ.get("CODEX_HOME", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".codex"


def _server(words: Sequence[str]) -> dict[str, object]:
    program, *arguments = words
    return {"command": program, "args": arguments, "env_vars": list(FORWARDED)}


def _edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    require("Codex", "codex", home())
    folder = home() if wiring.scope == "user" else wiring.project / ".codex"
    table = HostChange("table", ("mcp_servers", SERVER), _server(_words(wiring)))
    hooks = hook_entries(wiring.program, EVENTS, "codex", wiring.arguments)
    return (
        FileEdit(folder / "config.toml", (table,)),
        FileEdit(
            folder / "hooks.json", tuple(HostChange("item", ("hooks", event), hook) for event, hook in hooks.items())
        ),
    )


def _words(wiring: Wiring) -> tuple[str, ...]:
    return wiring.server("--no-prompts", "--no-resources")


def _start(wiring: Wiring) -> ServerStart:
    return ServerStart(_words(wiring), (*_PASSED_ON, *FORWARDED))


HOST = Host(
    "codex",
    "Codex",
    ("user", "project"),
    _edits,
    _start,
    "Start Codex again; it asks once about new hooks.",
    ("codex",),
)


NOTES = "extensions/ad_hoc/notes"
_MOST_SLUG = 80


def folder() -> Path:
    """Where Codex keeps its memory, whether it is there or not."""
    return home() / "memories"


def is_memory(workspace: Path) -> bool:
    """Whether a workspace is Codex's memory."""
    return os.path.realpath(workspace) == os.path.realpath(folder())


def note_path(text: str, at: dt.datetime) -> str:
    """The stored path of a note that adds `text`: Codex takes no other form of name."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    slug = "-".join(re.findall(r"[a-z0-9]+", first.casefold()))[:_MOST_SLUG].strip("-") or "note"
    return f"{NOTES}/{at:%Y-%m-%dT%H-%M-%S}-{slug}.md"
