"""Claude Code calls hooks at the start of a session, before compaction, at its end.

Its auto-memory is a MEMORY.md with topic files beside it, in a folder of the project below `~/.claude/projects`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_tui.core.errors import QueryError
from memory_tui.hosts.file_changes import FileEdit, HostChange
from memory_tui.hosts.wiring import SERVER, Host, ServerStart, Wiring

EVENTS = ("SessionStart", "PreCompact", "SessionEnd")
COMMAND = "memory-tui hook claude-code"


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook; `why` is its source, trigger or reason, empty where it says none."""

    name: str
    session: str
    transcript: Path | None
    folder: Path
    why: str


def event(text: str) -> HookCall:
    """The event in what a hook reads from its standard input. Raises QueryError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"The hook's input is not JSON: {error}.", f"Claude Code calls {COMMAND} itself.") from error
    if not isinstance(data, dict) or data.get("hook_event_name") not in EVENTS:
        raise QueryError(
            "The hook's input names no event that is answered here.",
            f"Register it for {', '.join(EVENTS)}: {COMMAND} --settings shows how.",
        )
    transcript = _text(data, "transcript_path")
    return HookCall(
        str(data["hook_event_name"]),
        _text(data, "session_id") or "unknown",
        Path(transcript).expanduser() if transcript else None,
        Path(_text(data, "cwd") or "."),
        _text(data, "source") or _text(data, "trigger") or _text(data, "reason"),
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) and "\0" not in value else ""


def context(text: str) -> dict[str, object]:
    """The answer that puts `text` before the model when a session starts."""
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def kept_in_summary(file: str, written: bool) -> str:
    """What Claude Code puts into the prompt of its summariser before a compaction; hooks cannot run a turn."""
    state = f"{file} holds what was written down today." if written else f"{file} does not exist yet."
    return (
        "Keep in the summary, word for word, what should outlive this conversation: decisions, their reasons, names, "
        f"dates, numbers, preferences, open tasks. {state} List what is not written there yet under the heading "
        "'To remember', so that it can be written down next."
    )


def reminder(file: str, written: bool) -> dict[str, object]:
    """The answer before a compaction for a host that shows a message: what the user should have written down."""
    state = f"{file} was written today." if written else f"{file} does not exist yet."
    return {
        "systemMessage": f"The conversation is about to be compacted. {state} What should outlive it belongs "
        "there: ask for it now, or run memory-tui remember."
    }


def home() -> Path:
    """Claude Code's own folder: CLAUDE_CONFIG_DIR, else ~/.claude."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".claude"


def auto_memory(project: Path) -> Path:
    """Where Claude Code keeps what it remembers of the project that a folder is in, whether it is there or not.

    It is one folder for a repository; `autoMemoryDirectory` moves it.
    """
    folder = Path(os.path.realpath(project))
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    for settings in (root / ".claude" / "settings.local.json", home() / "settings.json"):
        if moved := _moved(settings):
            return moved
    return home() / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(root)) / "memory"


def _moved(settings: Path) -> Path | None:
    """The folder that `autoMemoryDirectory` of a settings file names; None where there is none."""
    try:
        data = json.loads(settings.read_bytes())
    except (OSError, ValueError, RecursionError):
        # Claude Code itself passes over settings that it cannot read.
        return None
    named = data.get("autoMemoryDirectory") if isinstance(data, dict) else None
    return Path(named).expanduser() if isinstance(named, str) and named.strip() and "\0" not in named else None


def is_auto_memory(path: Path) -> bool:
    """Whether a note is one of Claude Code's own, so that its limits hold for it."""
    folder = Path(os.path.realpath(path)).parent
    if folder.name == "memory" and folder.parent.parent == Path(os.path.realpath(home() / "projects")):
        return True
    moved = _moved(home() / "settings.json")
    return moved is not None and folder == Path(os.path.realpath(moved))


def workspace(project: Path) -> Path:
    """The notes of a project: its own where it has any, else those that Claude Code keeps."""
    own = any((project / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory"))
    return project if own else auto_memory(project)


# --- its row -------------------------------------------------------------------------------------------------------

_TOOLS = ("memory_search", "memory_get")


def _edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    program, *arguments = wiring.server()
    server = HostChange("member", ("mcpServers", SERVER), {"type": "stdio", "command": program, "args": arguments})
    # Both tools only read, so that an agent need not ask each time.
    changes = [HostChange("item", ("permissions", "allow"), f"mcp__{SERVER}__{tool}") for tool in _TOOLS]
    hooks = wiring.hooks("claude-code", EVENTS)
    changes += [HostChange("item", ("hooks", event), hook) for event, hook in hooks.items()]
    if wiring.scope == "user":
        return (FileEdit(_user_file(), (server,)), FileEdit(home() / "settings.json", tuple(changes)))
    changes.append(HostChange("item", ("enabledMcpjsonServers",), SERVER))
    # What holds on one machine alone, such as a whole path, has no place in the file that a team shares.
    local = wiring.project / ".claude" / "settings.local.json"
    return (FileEdit(wiring.project / ".mcp.json", (server,)), FileEdit(local, tuple(changes)))


def _user_file() -> Path:
    """Where Claude Code keeps the servers of a user."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    return (Path(named).expanduser() if named else Path.home()) / ".claude.json"


def _start(wiring: Wiring) -> ServerStart:
    return ServerStart(wiring.server())


HOST = Host(
    "claude-code",
    "Claude Code",
    ("user", "project"),
    _edits,
    _start,
    "Start Claude Code again; in a project it asks once whether you trust the folder.",
)
