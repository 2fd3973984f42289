"""Environment variables say where files lie. They name the folders of configuration, state and workspace."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from memory_tui.config.json5 import Node
from memory_tui.durable import open_regular
from memory_tui.secrets.discreet import Discreet

LEGACY_NAMES = ("clawdbot", "moldbot", "moltbot")
"""What OpenClaw was called before; folders and files of these names are still read."""


def _set(*names: str) -> str:
    """The first of these environment variables that says something."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def home() -> Path:
    """The home that `~` stands for: OPENCLAW_HOME, else the user's."""
    named = _set("OPENCLAW_HOME")
    return Path(named).expanduser() if named else Path.home()


def expand(text: str) -> Path:
    """`text` as a path; a leading `~` is the home, a relative path starts in the current folder."""
    text = text.strip().replace("\0", "")
    if text == "~" or text.startswith(("~/", "~\\")):
        return home() / text[2:]
    return Path(text)


def profile() -> str:
    """The OpenClaw profile of OPENCLAW_PROFILE; empty for the default one."""
    name = _set("OPENCLAW_PROFILE")
    return "" if name.lower() == "default" or "/" in name or "\0" in name else name


def state_folder() -> Path:
    """OpenClaw's state folder.

    OPENCLAW_STATE_DIR or its old name CLAWDBOT_STATE_DIR; else ~/.openclaw-<profile> where OPENCLAW_PROFILE names one
    that is there; else ~/.openclaw, unless only a folder of an older name exists.
    """
    if named := _set("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"):
        return expand(named)
    new = home() / ".openclaw"
    candidates = [home() / f".openclaw-{profile()}"] if profile() else []
    candidates += [new, *(home() / f".{name}" for name in LEGACY_NAMES)]
    return next((folder for folder in candidates if folder.is_dir()), new)


def state_database() -> Path:
    """The database in which OpenClaw from 2026.8 on keeps the state of plug-ins, whether it exists or not."""
    return state_folder() / "state" / "openclaw.sqlite"


def session_folder(agent: str) -> Path:
    """Where OpenClaw keeps the transcripts of `agent` that are files."""
    return state_folder() / "agents" / agent / "sessions"


def agent_database(agent: str) -> Path:
    """The database in which OpenClaw from 2026.9 on keeps the sessions of `agent`, whether it exists or not."""
    return state_folder() / "agents" / agent / "agent" / "openclaw-agent.sqlite"


def session_copies(agent: str) -> Path:
    """Where memory-tui keeps the transcripts that it copied out of the database of `agent`."""
    import hashlib

    import platformdirs

    key = hashlib.sha256(os.fsencode(os.path.realpath(agent_database(agent)))).hexdigest()[:16]
    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "sessions" / key


def private_name(folder: Path, agent: str = "", more: bytes = b"") -> str:
    """The name of what is kept for `folder` alone, among others of its kind; two names of one folder share it.

    `agent` and `more` tell apart what one folder has several of.
    """
    import hashlib

    real = os.path.realpath(folder)
    marker = b"\0" + agent.encode() if agent else b""
    key = hashlib.sha256(os.fsencode(real) + marker + more).hexdigest()[:16]
    return f"{Path(real).name[:40] or 'root'}{f'-{agent}' if agent else ''}-{key}"


def openclaw_path() -> Path:
    """OpenClaw's configuration file, whether it exists or not: OPENCLAW_CONFIG_PATH, else in its state folder."""
    if named := _set("OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"):
        return expand(named)
    folder = state_folder()
    candidates = [folder / f"{name}.json" for name in ("openclaw", *LEGACY_NAMES)]
    return next((file for file in candidates if file.is_file()), candidates[0])


def own_path() -> Path:
    """Where memory-tui's own configuration lives, whether it exists or not."""
    import platformdirs

    return platformdirs.user_config_path("memory-tui", appauthor=False) / "config.json"


def default_workspace(*, newer: bool) -> Path:
    """The workspace of an agent that names none: the documented one, or where only another one exists, that.

    Up to 2026.7 it is ~/.openclaw/workspace, with -<profile> at its end; `newer` releases have it in the state folder,
    or where OPENCLAW_WORKSPACE_DIR says.
    """
    if named := _set("OPENCLAW_WORKSPACE_DIR"):
        return expand(named)
    suffix = f"-{profile()}" if profile() else ""
    candidates = [home() / ".openclaw" / f"workspace{suffix}", state_folder() / "workspace"]
    if newer:
        candidates.reverse()
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
)
_MAX_ENV_BYTES = 1 << 20


class Environment(Discreet, frozen=True, dict=True):
    """Looks variables up in OpenClaw's order; the first place that has one counts, an empty value is none.

    The .env file of the state folder is only read when the process itself does not have the variable. A variable of
    the login shell, which OpenClaw can import too, is not known here: nothing is run to read a configuration.
    """

    HIDDEN = ("tree",)

    tree: Node | None = None

    def lookup(self, name: str) -> tuple[str, str] | None:
        """The value of `name` and where it is from, in words; None when nothing says it."""
        if value := os.environ.get(name):
            return value, f"the environment variable {name}"
        if value := self._env_file.get(name):
            return value, f"{name} in {self._env_path}"
        if value := self._section.get(name):
            return value, f"{name} in the env section"
        return None

    def substitute(self, text: str) -> tuple[str, tuple[str, ...]]:
        """`text` with each `${NAME}` replaced, and the names that have no value; `$${NAME}` stands for itself."""
        missing: list[str] = []

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            value = self.lookup(match[2])
            if value is None:
                missing.append(match[2])
            return value[0] if value else match[0]

        return _REFERENCE.sub(replace, text) if "${" in text else text, tuple(missing)

    @property
    def _env_path(self) -> Path:
        return state_folder() / ".env"

    @cached_property
    def _env_file(self) -> dict[str, str]:
        try:
            with open_regular(self._env_path) as file:
                text = file.read(_MAX_ENV_BYTES).decode("utf-8", "replace")
        except OSError:
            # Most people have none, and one that may not be read is as good as none for looking a variable up.
            return {}
        return {
            m[1]: m[2] or re.sub(r"\\(.)", r"\1", m[3] or "") or (m[4] or "").strip()
            for m in _ASSIGNMENT.finditer(text)
        }

    @cached_property
    def _section(self) -> dict[str, str]:
        section = self.tree.get("env") if self.tree else None
        nested = section.get("vars") if section else None
        named = [*(section.children() if section else ()), *(nested.children() if nested else ())]
        return {key: node.value for key, node in named if isinstance(node.value, str) and node.value.strip()}


class ExtraPath(Struct, frozen=True):
    """A path and the pattern that chooses among the notes below it; without one all of them are read."""

    path: str
    pattern: str = ""
