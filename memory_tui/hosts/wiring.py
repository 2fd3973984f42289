"""What a host starts: the command line of the server, and the options that it is read back as."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.settings import OWN_PROFILE

if TYPE_CHECKING:
    # The server knows these names before it plans anything.
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


class ServerStart(Struct, frozen=True):
    """A server as its host starts it: the command line, the variables that it gets (None: all)."""

    words: tuple[str, ...]
    variables: tuple[str, ...] | None = None


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

    def server(self) -> tuple[str, ...]:
        """Return the command line of the server."""
        return (*self.program, "mcp", *((LOG,) if self.log else ()), *self.arguments)


def command() -> tuple[str, ...]:
    """Return how this program is started, by its whole path: agents often start programs without the user's PATH."""
    here = Path(sys.argv[0])
    if here.name == "memory-tui" and here.is_file():
        return (str(here.absolute()),)
    program = shutil.which("memory-tui", path=str(Path(sys.executable).parent)) or shutil.which("memory-tui")
    return (program,) if program else (sys.executable, "-m", "memory_tui")


_PATHS = ("workspace", "config", "index", "qmd_home")
_SINGLE = (*_PATHS, "agent", "provider", "backend", "memories")


def words_of(options: Options) -> list[str]:
    """Return the arguments, with whole paths, for a program that runs in any folder."""
    pairs = [(name, getattr(options, name)) for name in _SINGLE]
    pairs += [("profile", value) if key == "profile" else ("set", f"{key}={value}") for key, value in options.changes]
    pairs += [("active_project", project) for project in options.projects]
    words: list[str] = []
    for name, value in [*pairs, *(("extra", path) for path in options.extra)]:
        option, text = f"--{name.replace('_', '-')}", _whole(value) if value and name in (*_PATHS, "extra") else value
        if text:
            # A word of its own that begins with a hyphen would be taken for the next option.
            words += [f"{option}={text}"] if text.startswith("-") else [option, text]
    return words


def options_of(words: Sequence[str]) -> Options:
    """Return the options that a server with the command line `words` takes; other words are passed over."""
    from memory_tui.plan import Options

    single: dict[str, str] = {}
    several: dict[str, list[str]] = {"active_project": [], "extra": []}
    changes: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word, joined, value = rest.pop(0).removeprefix("--").partition("=")
        name = word.replace("-", "_")
        if name not in (*_SINGLE, *several, "profile", "set") or not (joined or rest):
            continue
        value = value if joined else rest.pop(0)
        if name in several:
            several[name].append(value)
        elif name in _SINGLE:
            single[name] = value
        else:
            key, _, text = value.partition("=")
            changes.append(("profile", value) if name == "profile" else (key, text))
    options = Options(changes=tuple(changes), projects=tuple(several["active_project"]), extra=tuple(several["extra"]))
    return replace(options, **single)


def of_agent(options: Options, workspace: Path) -> Options:
    """Return `options` for an agent's server: the memory of `workspace`, by our own profile where none was chosen."""
    changes = options.changes
    if not any(key == "profile" for key, _ in changes):
        changes = (*changes, ("profile", OWN_PROFILE))
    return replace(options, workspace=str(workspace), changes=changes)


def _whole(path: str) -> str:
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 - an unknown user is no error
