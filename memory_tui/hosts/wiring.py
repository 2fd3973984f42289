"""What a host starts once it is connected, by which options, and the changes of its files that have it do so."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import ConfigError
from memory_tui.plan import Options

Scope = Literal["user", "project"]
SERVER = "memory"
"""The name of the server in the files of a host."""
PROFILE = "memory-tui/profile"
"""Member of `_meta`: a question asks by it for the profile that ranks its answer, which tells it there."""
PROOF_CLIENT = "memory-tui connect"
"""Who asks a server to see that it answers; its question is none of an agent."""
SAMPLE = "memory-tui-demo-"
"""How the name of a demo's folder begins."""
SAMPLE_GOES = "These notes are the demo's copy, which goes when it ends: its agent would get nothing then."
LOG = "--log-recalls"
"""Switch of the server that writes down what agents ask."""


class ServerStart(Struct, frozen=True):
    """A server as its host starts it: the command line, the variables that it gets (None: all)."""

    words: tuple[str, ...]
    variables: tuple[str, ...] | None = None


class Wiring(Struct, frozen=True):
    """What a host is to start: `program` with what comes before a command, `arguments` that choose the memory.

    `project` is the folder that a project's files lie in; `profile` ranks the answers; `log` writes down what is asked.
    A `preview` is for a look alone, so that the host need not be installed.
    """

    scope: Scope
    project: Path
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    profile: str
    log: bool = False
    preview: bool = False

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
_SEVERAL = ("active_project", "extra")


def words_of(options: Options) -> list[str]:
    """Return `options` as words of a command line, with whole paths, for a program that runs in any folder.

    Options that have no value are left out.
    """
    pairs = [(name, getattr(options, name)) for name in _SINGLE]
    pairs += [("profile", value) if key == "profile" else ("set", f"{key}={value}") for key, value in options.changes]
    pairs += [("active_project", project) for project in options.projects]
    pairs += [("extra", path) for path in options.extra]
    words: list[str] = []
    for name, value in pairs:
        option = f"--{name.replace('_', '-')}"
        if value and name in (*_PATHS, "extra"):
            value = str(Path(os.path.expanduser(value)).absolute())  # noqa: PTH111 - an unknown user is no error
        if value:
            # A word of its own that begins with a hyphen would be taken for the next option.
            words += [f"{option}={value}"] if value.startswith("-") else [option, value]
    return words


def options_of(words: Sequence[str]) -> Options:
    """Return the options that a server with the command line `words` takes; other words are passed over."""
    pairs: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        # The sign is "=" in "--option=value"; it is empty where the value is the next word.
        word, sign, value = rest.pop(0).removeprefix("--").partition("=")
        name = word.replace("-", "_")
        if name in (*_SINGLE, *_SEVERAL, "profile", "set") and (sign or rest):
            pairs.append((name, value if sign else rest.pop(0)))
    # A profile is a knob with an option of its own.
    knobs = [f"profile={value}" if name == "profile" else value for name, value in pairs if name in ("profile", "set")]
    changes = tuple((key, value) for key, _, value in (knob.partition("=") for knob in knobs))
    # In the order of _SEVERAL.
    projects, extra = (tuple(value for name, value in pairs if name == option) for option in _SEVERAL)
    single = {name: value for name, value in pairs if name in _SINGLE}
    return replace(Options(changes=changes, projects=projects, extra=extra), **single)


class HostChange(Struct, frozen=True):
    """One change of a file: `keys` lead to what gets the `value`, which is by `kind`:

    a member of an object, a list that gets an item, a table of TOML; a copy is a whole file, and has no keys.
    Once the change is applied, `old` is the text that stood in its place (None: nothing did), and `there` counts how
    many of its keys, from the first on, were in the file before.
    """

    kind: Literal["member", "item", "table", "copy"]
    keys: tuple[str, ...]
    value: object
    old: str | None = None
    there: int = 0


class FileEdit(Struct, frozen=True):
    """The changes of one file."""

    path: Path
    changes: tuple[HostChange, ...]


def require(wiring: Wiring, title: str, program: str, place: Path) -> None:
    """Raise ConfigError where an agent program is not on this machine: neither `program`, nor what it keeps at `place`.

    A preview requires nothing.
    """
    if not wiring.preview and shutil.which(program) is None and not place.exists():
        absent = f"{title} is not installed here: there is no {program} on the PATH and no {place}."
        words = shlex.join([title.lower().replace(" ", "-"), "--dry-run", *wiring.arguments])
        # At the end, where the command can be copied.
        shows = f"This shows what connecting would write: memory-tui connect {words}"
        raise ConfigError(absent, f"Install {title} and start it once. {shows}")
