"""Claude Code calls our hooks around a session. It does so at the start, before compaction, and at the end.

Its auto-memory is a MEMORY.md with topic files beside it, in a folder of the project below `~/.claude/projects`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_tui.durable import read_regular
from memory_tui.errors import QueryError
from memory_tui.hosts.file_changes import FileEdit, HostChange
from memory_tui.hosts.wiring import SERVER, Host, ServerStart, Wiring, hook_entries, require

EVENTS = ("SessionStart", "PreCompact", "SessionEnd")
COMMAND = "memory-tui hook claude-code"
_LONGEST_KEY = 200
_SHORTEST_FOLDER = 3


class HookCall(Struct, frozen=True):
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
            f"Register it for {', '.join(EVENTS)}: memory-tui connect does that.",
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

    It is one folder for a repository with all its worktrees. `autoMemoryDirectory` moves it: the first of the settings
    that names a folder counts, also where that is none (source: Claude Code 2.1.330, which reads those of a project
    once the project is trusted).
    """
    folder = Path(os.path.realpath(project))
    root = _repository(folder)
    for settings in (*_managed(), *_of_project(folder, root), home() / "settings.json"):
        if (named := _named(settings)) is not None:
            if moved := _whole(named):
                return moved
            break
    return home() / "projects" / _key(str(root)) / "memory"


def _repository(folder: Path) -> Path:
    """The root of the repository that `folder` is in, of a worktree that of the main one; `folder` outside any."""
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    try:
        word, _, named = _text_of(root / ".git").partition(" ")
        git_dir = root / named
        if word != "gitdir:" or not named:
            return root
        common = Path(os.path.realpath(git_dir / _text_of(git_dir / "commondir")))
        back = Path(os.path.realpath(git_dir / _text_of(git_dir / "gitdir")))
    except (OSError, ValueError):
        # A folder .git, or that of a submodule, which is a repository of its own.
        return root
    # The repository has to know the worktree: else any folder could name another project's memory as its own.
    if Path(os.path.realpath(git_dir)).parent != common / "worktrees" or back != root / ".git":
        return root
    return common.parent if common.name == ".git" else common


def _text_of(path: Path) -> str:
    return read_regular(path).decode("utf-8").strip()


def _key(root: str) -> str:
    """The name of a project's folder. A long one is cut off, and ends in a number made of all of it."""
    name = re.sub(r"[^A-Za-z0-9]", "-", root)
    if len(name) <= _LONGEST_KEY:
        return name
    number = 0
    for unit in memoryview(root.encode("utf-16-le", "surrogatepass")).cast("H"):
        number = (number * 31 + unit) & 0xFFFFFFFF
    number = abs(number - (number >> 31 << 32))
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:_LONGEST_KEY]}-{digits or '0'}"


def _managed() -> list[Path]:
    """The settings of the machine, the one that counts first."""
    system = {"darwin": "/Library/Application Support/ClaudeCode", "win32": "C:\\Program Files\\ClaudeCode"}
    folder = Path(system.get(sys.platform, "/etc/claude-code"))
    return [*sorted((folder / "managed-settings.d").glob("[!.]*.json"), reverse=True), folder / "managed-settings.json"]


def _of_project(folder: Path, root: Path) -> list[Path]:
    """A person's own settings of a repository, then of the folder; then those that the folder shares."""
    local = [place / ".claude" / "settings.local.json" for place in dict.fromkeys((root, folder))]
    return [*local, folder / ".claude" / "settings.json"]


def _named(settings: Path) -> str | None:
    """What `autoMemoryDirectory` of a settings file is; None where it names nothing."""
    try:
        data = json.loads(read_regular(settings))
    except (OSError, ValueError, RecursionError):
        # Claude Code itself passes over settings that it cannot read.
        return None
    named = data.get("autoMemoryDirectory") if isinstance(data, dict) else None
    return named if isinstance(named, str) else None


def _whole(named: str) -> Path | None:
    """The folder that a setting names; None where Claude Code takes it for none: it has to be whole, or below ~/."""
    if "\0" in named:
        return None
    if named.startswith("~/"):
        inside = os.path.normpath(named[2:] or ".")
        return None if Path(inside).parts[:1] in ((), ("..",)) else Path.home() / inside
    path = Path(os.path.normpath(named))
    return path if path.is_absolute() and len(str(path)) >= _SHORTEST_FOLDER else None


def is_auto_memory(path: Path) -> bool:
    """Whether a note is one of Claude Code's own, so that its limits hold for it.

    Where a project's settings moved the memory, it is known as that of the folder that the program runs in.
    """
    folder = Path(os.path.realpath(path)).parent
    if folder.name == "memory" and folder.parent.parent == Path(os.path.realpath(home() / "projects")):
        return True
    moved = _whole(_named(home() / "settings.json") or "")
    if moved is not None and folder == Path(os.path.realpath(moved)):
        return True
    try:
        here = Path.cwd()
    except OSError:
        return False
    return folder == Path(os.path.realpath(auto_memory(here)))


def workspace(project: Path) -> Path:
    """The notes of a project: its own where it has any, else those that Claude Code keeps."""
    has_notes = any((project / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory"))
    return project if has_notes else auto_memory(project)


# --- its row -------------------------------------------------------------------------------------------------------

_TOOLS = ("memory_search", "memory_get")


def server_entry(words: Sequence[str]) -> dict[str, object]:
    """The member of mcpServers that starts a server with `words`.

    With `alwaysLoad` Claude Code waits for the server before the first turn, up to 5 s, instead of going on without its
    tools where the machine is busy, and puts both tools before the model.
    """
    program, *arguments = words
    return {"type": "stdio", "command": program, "args": arguments, "alwaysLoad": True}


def _edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    require("Claude Code", "claude", _user_file())
    server = HostChange("member", ("mcpServers", SERVER), server_entry(wiring.server()))
    # Both tools only read, so that an agent need not ask each time.
    changes = [HostChange("item", ("permissions", "allow"), f"mcp__{SERVER}__{tool}") for tool in _TOOLS]
    hooks = hook_entries(wiring.program, EVENTS, "claude-code", wiring.arguments)
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
    ("claude",),
)
