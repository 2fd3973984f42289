"""Which files of an agent program change so that it starts memory-tui: one row a host."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.errors import ConfigError, SettingError

if TYPE_CHECKING:
    from memory_tui.hosts.file_changes import FileEdit
    from memory_tui.plan import Options

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


class Wiring(Struct, frozen=True):
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


def hook_entries(
    program: Sequence[str], events: Sequence[str], host: str, arguments: Sequence[str]
) -> dict[str, dict[str, object]]:
    """For each event the entry that calls the hook `host`; Claude Code's and Codex's have one shape.

    Where the program was uninstalled the call does nothing, instead of failing in each session.
    """
    words = shlex.join((*program, "hook", host, *arguments))
    call = {"type": "command", "command": f"test ! -x {shlex.quote(program[0])} || {words}"}
    return {event: {"hooks": [call]} for event in events}


def require(title: str, program: str, place: Path) -> None:
    """Raises ConfigError where an agent program is not on this machine: neither `program`, nor what it keeps."""
    if shutil.which(program) is None and not place.exists():
        raise ConfigError(
            f"{title} is not set up here: there is no {program} on the PATH and no {place}.",
            f"Install {title} and start it once.",
        )


class ServerStart(Struct, frozen=True):
    """A server as its host starts it: the command line, the variables that it gets (None: all)."""

    words: tuple[str, ...]
    variables: tuple[str, ...] | None = None


class Host(Struct, frozen=True):
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
    loss: Callable[[], str] = str
    """What the host does without while it is connected, as sentences; empty for nothing."""


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
    program = shutil.which("memory-tui", path=str(Path(sys.executable).parent)) or shutil.which("memory-tui")
    return (program,) if program else (sys.executable, "-m", "memory_tui")


_PATHS = ("workspace", "config", "index", "qmd-home")
_TEXTS = ("agent", "provider", "backend", "memories")
_NAMES = (*_PATHS, *_TEXTS, "profile", "set", "active-project", "extra")


def words_of(options: Options) -> list[str]:
    """The arguments, with whole paths, for a program that runs in any folder."""
    words: list[str] = []
    for name in (*_PATHS, *_TEXTS):
        if value := getattr(options, name.replace("-", "_")):
            words += _option(name, _whole(value) if name in _PATHS else value)
    for key, value in options.changes:
        words += _option("profile", value) if key == "profile" else _option("set", f"{key}={value}")
    for project in options.projects:
        words += _option("active-project", project)
    for path in options.extra:
        words += ["--extra", _whole(path)]
    return words


def _option(name: str, value: str) -> list[str]:
    # A word of its own that begins with a hyphen would be taken for the next option.
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]


def options_of(words: Sequence[str]) -> Options:
    """The options that a server with the command line `words` takes; words that choose no memory are passed over."""
    from memory_tui.plan import Options

    named: dict[str, list[str]] = {name: [] for name in _NAMES}
    changes: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        name, joined, value = rest.pop(0).removeprefix("--").partition("=")
        if name not in named or not (joined or rest):
            continue
        value = value if joined else rest.pop(0)
        named[name].append(value)
        if name in ("profile", "set"):
            key, _, text = value.partition("=")
            changes.append(("profile", value) if name == "profile" else (key, text))
    last = {name: values[-1] for name, values in named.items() if values}
    return Options(
        workspace=last.get("workspace"),
        config=last.get("config"),
        index=last.get("index"),
        agent=last.get("agent", ""),
        provider=last.get("provider", ""),
        backend=last.get("backend", ""),
        qmd_home=last.get("qmd-home"),
        memories=last.get("memories", ""),
        changes=tuple(changes),
        projects=tuple(named["active-project"]),
        extra=tuple(named["extra"]),
    )


def of_agent(options: Options, workspace: Path) -> Options:
    """`options` for an agent's server: the memory of `workspace`, ranked by our own profile where none was chosen."""
    changes = options.changes
    if not any(key == "profile" for key, _ in changes):
        changes = (*changes, ("profile", profiles.OWN))
    return replace(options, workspace=str(workspace), changes=changes)


def _whole(path: str) -> str:
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 - an unknown user is no error
