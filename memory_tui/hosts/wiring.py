"""Which files of an agent program change so that it starts memory-tui: one row a host."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from memory_tui.core.errors import SettingError

if TYPE_CHECKING:
    from memory_tui.hosts.file_changes import FileEdit

Scope = Literal["user", "project"]
SERVER = "memory"
"""The name of the server in the files of a host."""
PROFILE = "memory-tui/profile"
"""Member of `_meta`: a question asks by it for the profile that ranks its answer, which tells it there."""
PROOF_CLIENT = "memory-tui connect"
"""Who asks a server to see that it answers; its question is none of an agent."""
LOG = "--log-recalls"
"""Switch of the server that writes down what agents ask."""
HOSTS: Mapping[str, str] = {
    "openclaw": "memory_tui.hosts.openclaw:HOST",
    "claude-code": "memory_tui.hosts.claude_code:HOST",
    "codex": "memory_tui.hosts.codex:HOST",
}
"""Each host's row, imported on use."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a host is to start: `program` with what comes before a command, `arguments` that choose the memory.

    `project` is the folder that a project's files lie in; `profile` ranks the answers; `log` writes down what is asked.
    """

    scope: Scope
    project: Path
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    profile: str
    log: bool = False

    def server(self, *switches: str) -> tuple[str, ...]:
        """The command line of the server."""
        return (*self.program, "mcp", *switches, *((LOG,) if self.log else ()), *self.arguments)

    def hooks(self, host: str, events: Sequence[str]) -> dict[str, dict[str, object]]:
        """For each event the entry that calls the hook `host`; Claude Code's and Codex's have one shape."""
        call = {"type": "command", "command": shlex.join((*self.program, "hook", host, *self.arguments))}
        return {event: {"hooks": [call]} for event in events}


@dataclass(frozen=True, slots=True)
class ServerStart:
    """A server as its host starts it: the command line, the variables that it gets (None: all)."""

    words: tuple[str, ...]
    variables: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A row: `edits` plans the files of a connection, `start` says what the host then starts."""

    name: str
    title: str
    scopes: tuple[Scope, ...]
    edits: Callable[[Wiring], tuple[FileEdit, ...]]
    start: Callable[[Wiring], ServerStart]
    after: str
    """What a person does so that the host reads its files again, as a sentence."""
    clients: tuple[str, ...]
    """How the names begin by which the host introduces itself to a server."""


def host(name: str) -> Host:
    """The row of the host `name`. Raises SettingError."""
    if name not in HOSTS:
        raise SettingError(f"There is no host {name!r}.", f"Choose one of {', '.join(HOSTS)}.")
    module, _, row = HOSTS[name].partition(":")
    return cast("Host", getattr(import_module(module), row))


def command() -> tuple[str, ...]:
    """How this program is started, by its whole path: agents often start programs without the user's PATH."""
    here = Path(sys.argv[0])
    if here.name == "memory-tui" and here.is_file():
        return (str(here.absolute()),)
    found = shutil.which("memory-tui", path=str(Path(sys.executable).parent)) or shutil.which("memory-tui")
    return (found,) if found else (sys.executable, "-m", "memory_tui")
