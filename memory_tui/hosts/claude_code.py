"""Claude Code: what connects it, the hooks that it calls around a session, and the memory that it keeps by itself.

Its auto-memory is a MEMORY.md with topic files beside it, in a folder of the project below `~/.claude/projects`.
Since 2.1 it has a file for each fact, with MEMORY.md as the index of them. The front matter has `name` (a slug that
`[[name]]` links to), `description` and `metadata.type`. A line of the index points to a file:
`- [Title](file.md) — hook`. A link to a fact that is not written yet is no fault there.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import Struct, field

from memory_tui.durable import read_regular
from memory_tui.errors import QueryError
from memory_tui.hosts.wiring import SERVER, FileEdit, HostChange, Wiring, require
from memory_tui.openclaw.agent_sessions import record_of
from memory_tui.workspace.notes import front_matter
from memory_tui.workspace.roots import Roots

Event = Literal["SessionStart", "PreCompact", "SessionEnd"]
EVENTS: tuple[str, ...] = get_args(Event)
_LONGEST_KEY = 200
"""Characters of a project's path that the name of its folder has: a longer name is cut, and ends in a hash."""
_SHORTEST_FOLDER = 3
"""Characters that the path of a moved memory has at least: Claude Code takes no shorter one."""


# --- the hooks around a session --------------------------------------------------------------------------------------


class HookCall(Struct, frozen=True):
    """One call of a hook, as the host writes it; `why` is its source, trigger or reason, empty where it says none."""

    name: Event = field(name="hook_event_name")
    session: str = field(default="unknown", name="session_id")
    transcript_path: str | None = None
    cwd: str = "."
    source: str | None = None
    trigger: str | None = None
    reason: str | None = None

    @property
    def transcript(self) -> Path | None:
        """Return where the transcript lies."""
        return Path(self.transcript_path).expanduser() if self.transcript_path else None

    @property
    def why(self) -> str:
        """Say why it was called: each event has another one of these members."""
        return self.source or self.trigger or self.reason or ""


def event(text: str) -> HookCall:
    """Return the event in what a hook reads from its standard input. Raises QueryError."""
    try:
        return msgspec.json.decode(text, type=HookCall)
    except (msgspec.MsgspecError, RecursionError) as error:
        step = "memory-tui hook claude-code is called by the host itself: memory-tui connect registers it."
        raise QueryError(f"The hook's input is no event that is answered here: {error}.", step) from error


def context(text: str) -> dict[str, object]:
    """Return the answer that puts `text` before the model when a session starts."""
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def kept_in_summary(file: str, written: bool) -> str:
    """Return what Claude Code puts into the prompt of its summariser before a compaction.

    `file` is the log of today, `written` whether it exists. An agent cannot be asked to write: hooks run no turn.
    """
    state = f"{file} holds what was written down today." if written else f"{file} does not exist yet."
    return (
        "Keep in the summary, word for word, what should outlive this conversation: decisions, their reasons, names, "
        f"dates, numbers, preferences, open tasks. {state} List what is not written there yet under the heading "
        "'To remember', so that it can be written down next."
    )


def reminder(file: str, written: bool) -> dict[str, object]:
    """Return the answer before a compaction for a host that only shows a message to its user.

    `file` is the log of today, `written` whether it exists.
    """
    state = f"{file} was written today." if written else f"{file} does not exist yet."
    return {
        "systemMessage": f"The conversation is about to be compacted. {state} What should outlive it belongs "
        "there: ask for it now, or run memory-tui remember."
    }


def hooks(wiring: Wiring, host: str) -> tuple[HostChange, ...]:
    """Return the entries that call the hook of `host` at each event; Claude Code's and Codex's have one shape.

    Where the program was uninstalled the call does nothing, instead of failing in each session.
    """
    words = shlex.join((*wiring.program, "hook", host, *wiring.arguments))
    # A shell runs `words` unless the program is gone: the test succeeds then, and with it the hook.
    call = {"type": "command", "command": f"test ! -x {shlex.quote(wiring.program[0])} || {words}"}
    return tuple(HostChange("item", ("hooks", event), {"hooks": [call]}) for event in EVENTS)


# --- the memory that it keeps -----------------------------------------------------------------------------------------


def home() -> Path:
    """Return Claude Code's own folder: CLAUDE_CONFIG_DIR, else ~/.claude."""
    return named_folder("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"


def named_folder(variable: str) -> Path | None:
    """Return the folder that a variable of the environment names."""
    named = os.environ.get(variable, "").strip()
    return Path(named).expanduser() if named else None


def auto_memory(project: Path) -> Path:
    """Return where Claude Code keeps what it remembers of the project that a folder is in, whether it is there or not.

    It is one folder for a repository with all its worktrees. `autoMemoryDirectory` moves it: the first of the settings
    that names one counts, and where that is no folder the usual one (source: Claude Code 2.1.330, which reads those of
    a project once the project is trusted).
    """
    folder = Path(os.path.realpath(project))
    root = _repository(folder)
    # The one that counts most first: a person's own settings of the repository, those of the folder, then what the
    # folder shares.
    local = [place / ".claude" / "settings.local.json" for place in (root, folder)]
    files = (*_managed(), *local, folder / ".claude" / "settings.json", home() / "settings.json")
    named = next((named for named in map(_named_memory, files) if named is not None), "")
    return _memory_folder(named) or home() / "projects" / _key(str(root)) / "memory"


def _repository(folder: Path) -> Path:
    """Return the root of the repository that `folder` is in; `folder` where it is in none.

    Of a worktree that is the root of the main worktree, or the repository itself where it is bare.
    """
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    try:
        # A worktree has a file .git, "gitdir: PATH": in that folder git keeps what is the worktree's alone.
        word, _, path = _text_of(root / ".git").partition(" ")
        if word != "gitdir:" or not path:
            return root
        git_dir = root / path
        # Two files there lead on: to the .git of the main worktree, and back to the file .git of this one.
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
    """Return the one line of a file of git."""
    return read_regular(path).decode("utf-8").strip()


def _key(root: str) -> str:
    """Return the name of a project's folder. A long one is cut off, and ends in a number made of all of it: a hash of
    JavaScript in 32 bits with a sign, without that sign, in base 36.
    """
    name = re.sub(r"[^A-Za-z0-9]", "-", root)
    if len(name) <= _LONGEST_KEY:
        return name
    number = 0
    # JavaScript counts in UTF-16 units; a half of a pair that stands alone counts, too.
    for unit in memoryview(root.encode("utf-16-le", "surrogatepass")).cast("H"):
        number = (number * 31 + unit) & 0xFFFFFFFF
    # The number without its sign: from 2**31 on the 32 bits stand for a negative one.
    number = min(number, (1 << 32) - number)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:_LONGEST_KEY]}-{digits or '0'}"


def _managed() -> list[Path]:
    """Return the settings of the machine, the one that counts first."""
    system = {"darwin": "/Library/Application Support/ClaudeCode", "win32": "C:\\Program Files\\ClaudeCode"}
    folder = Path(system.get(sys.platform, "/etc/claude-code"))
    # Of the files in the folder the last by name counts most.
    return [*sorted((folder / "managed-settings.d").glob("[!.]*.json"), reverse=True), folder / "managed-settings.json"]


def _named_memory(settings: Path) -> str | None:
    """Return what `autoMemoryDirectory` of a settings file is; None where it names nothing."""
    try:
        named = record_of(read_regular(settings)).get("autoMemoryDirectory")
    except OSError:
        # Claude Code itself passes over settings that it cannot read.
        return None
    return named if isinstance(named, str) else None


def _memory_folder(named: str) -> Path | None:
    """Return the folder that a setting names; None where Claude Code would not take it.

    It wants a whole path, or one below the home as `~/folder`.
    """
    if "\0" in named:
        return None
    if named.startswith("~/"):
        inside = os.path.normpath(named.removeprefix("~/"))
        is_below = inside != "." and Path(inside).parts[0] != ".."
        return Path.home() / inside if is_below else None
    path = Path(os.path.normpath(named))
    return path if path.is_absolute() and len(str(path)) >= _SHORTEST_FOLDER else None


def is_auto_memory(path: Path) -> bool:
    """Return whether a note is one of Claude Code's own, so that its limits hold for it.

    Where a project's settings moved the memory, it is known as that of the folder that the program runs in.
    """
    folder = Path(os.path.realpath(path)).parent
    # The usual place: projects/KEY/memory.
    if folder.name == "memory" and folder.parent.parent == Path(os.path.realpath(home() / "projects")):
        return True
    moved = _memory_folder(_named_memory(home() / "settings.json") or "")
    if moved is not None and folder == Path(os.path.realpath(moved)):
        return True
    try:
        here = Path.cwd()
    except OSError:
        return False
    return folder == Path(os.path.realpath(auto_memory(here)))


def workspace(project: Path) -> Path:
    """Return the notes of a project: its own where it has any, else those that Claude Code keeps."""
    has_notes = any((project / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory"))
    return project if has_notes else auto_memory(project)


# --- its connection ------------------------------------------------------------------------------------------------

_TOOLS = ("memory_search", "memory_get")


def edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    """Return the changes of files that connect Claude Code. Raises ConfigError where it is not installed."""
    user_file = (named_folder("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"
    require(wiring, "Claude Code", "claude", user_file)
    program, *words = wiring.server()
    # With `alwaysLoad` Claude Code waits for the server before the first turn, up to 5 s, instead of going on without
    # its tools where the machine is busy, and puts both tools before the model.
    entry = {"type": "stdio", "command": program, "args": words, "alwaysLoad": True}
    server = HostChange("member", ("mcpServers", SERVER), entry)
    # Both tools only read, so that an agent need not ask each time.
    allowed = tuple(HostChange("item", ("permissions", "allow"), f"mcp__{SERVER}__{tool}") for tool in _TOOLS)
    changes = (*allowed, *hooks(wiring, "claude-code"))
    if wiring.scope == "user":
        return FileEdit(user_file, (server,)), FileEdit(home() / "settings.json", changes)
    enabled = HostChange("item", ("enabledMcpjsonServers",), SERVER)
    # What holds on one machine alone, such as a whole path, has no place in the file that a team shares.
    local = wiring.project / ".claude" / "settings.local.json"
    return FileEdit(wiring.project / ".mcp.json", (server,)), FileEdit(local, (*changes, enabled))


# --- its facts -----------------------------------------------------------------------------------------------------

INDEX = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
MOST_HEAD = 4000
"""How much of a file may be its front matter."""
_POINTER = re.compile(r"\]\(<?(?:\./)?([^)>\s#]+\.md)>?\)")


class ClaudeFact(Struct, frozen=True):
    """The front matter of a fact: its slug, one line about it, its type (empty where it names none of TYPES)."""

    name: str
    description: str
    type: str


def fact_of(text: str) -> ClaudeFact | None:
    """Return the fact that a file holds; None where it has no front matter with a name."""
    fields = front_matter(text[:MOST_HEAD])
    if not fields.get("name"):
        return None
    kind = fields.get("type", "")
    return ClaudeFact(fields["name"], fields.get("description", ""), kind if kind in TYPES else "")


def folders(roots: Roots) -> dict[str, str]:
    """Return the folders of `roots` that Claude Code keeps its memory in, by the prefix of their stored paths.

    The stored paths of the notes in a folder begin with that prefix: "folder/", or "" for the workspace itself.
    """
    project_memory = os.path.realpath(auto_memory(roots.workspace))
    folders = {}
    for folder in dict.fromkeys((str(roots.workspace), *roots.extra)):
        if os.path.realpath(folder) == project_memory or is_auto_memory(Path(folder) / INDEX):
            stored = roots.stored(folder)
            folders["" if stored == "." else f"{stored}/"] = folder
    return folders


def facts(roots: Roots, absolute: Mapping[str, str]) -> dict[str, ClaudeFact]:
    """Return the facts among the notes in the `folders` of `roots`, by stored path.

    `absolute` are the notes to look at: stored path and absolute one. A note that cannot be read is left out.
    """
    facts = {}
    prefixes = folders(roots)
    for path, location in absolute.items():
        if not in_folders(path, prefixes):
            continue
        try:
            with Path(location).open("rb") as file:
                head = file.read(MOST_HEAD)
        except OSError:
            # The list of files says that it cannot be read.
            continue
        if (fact := fact_of(head.decode("utf-8", "replace"))) is not None:
            facts[path] = fact
    return facts


def in_folders(path: str, prefixes: Iterable[str]) -> bool:
    """Tell whether the note at the stored `path` stands directly in a folder of `prefixes`, which `folders` returns.

    A note in a folder below it does not count.
    """
    folder = path.rpartition("/")[0]
    return f"{folder}/" in prefixes if folder else "" in prefixes


def unlisted(notes: Mapping[str, str], prefixes: Iterable[str]) -> dict[str, str]:
    """Return the facts that no line of their folder's MEMORY.md points to, by path, each with the line that would.

    `notes` are the texts of all notes by stored path, `prefixes` the folders as `folders` returns them.
    """
    pointers = {}
    for prefix in prefixes:
        listed = {os.path.normpath(file) for file in _POINTER.findall(notes.get(f"{prefix}{INDEX}", ""))}
        for path, text in notes.items():
            name = path.removeprefix(prefix)
            if not path.startswith(prefix) or "/" in name or name == INDEX or name in listed:
                continue
            if (fact := fact_of(text)) is not None:
                title = fact.name.replace("-", " ")
                pointers[path] = f"- [{title[:1].upper()}{title[1:]}]({name}) — {fact.description}"
    return pointers
