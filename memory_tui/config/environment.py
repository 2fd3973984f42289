"""Environment variables: where files lie by them, and what a configuration refers to by `${NAME}` or as a secret.

Variables name the folders of configuration, state and workspace. Values are looked up in the places where OpenClaw
looks: process, .env file, env section.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cached_property
from pathlib import Path

import platformdirs
from msgspec import Struct

from memory_tui.config.json5 import Node, word_of
from memory_tui.durable import open_regular
from memory_tui.secrets import Discreet

# --- where files lie -----------------------------------------------------------------------------------------------

LEGACY_NAMES = ("clawdbot", "moldbot", "moltbot")
"""What OpenClaw was called before; folders and files of these names are still read."""


def _variable(*names: str) -> str:
    """Return the text of the first of these environment variables that is not blank; empty where none is."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def home() -> Path:
    """Return the home that `~` stands for: OPENCLAW_HOME, else the user's."""
    named = _variable("OPENCLAW_HOME")
    return Path(named).expanduser() if named else Path.home()


def expand(text: str) -> Path:
    """Return `text` as a path; a leading `~` is the home, a relative path starts in the current folder."""
    text = text.strip().replace("\0", "")
    if text == "~" or text.startswith(("~/", "~\\")):
        # Of "~" alone nothing is left, and that is the home itself.
        return home() / text[2:]
    return Path(text)


def profile() -> str:
    """Return the OpenClaw profile of OPENCLAW_PROFILE; empty for the default one."""
    name = _variable("OPENCLAW_PROFILE")
    return "" if name.lower() == "default" or "/" in name or "\0" in name else name


def state_folder() -> Path:
    """Return OpenClaw's state folder.

    OPENCLAW_STATE_DIR or its old name CLAWDBOT_STATE_DIR; else ~/.openclaw-<profile> where OPENCLAW_PROFILE names one
    that is there; else ~/.openclaw, unless only a folder of an older name exists.
    """
    if named := _variable("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"):
        return expand(named)
    new = home() / ".openclaw"
    candidates = [home() / f".openclaw-{profile()}"] if profile() else []
    candidates += [new, *(home() / f".{name}" for name in LEGACY_NAMES)]
    return next((folder for folder in candidates if folder.is_dir()), new)


def state_database() -> Path:
    """Return the database in which OpenClaw from 2026.8 on keeps the state of plug-ins, be it there or not."""
    return state_folder() / "state" / "openclaw.sqlite"


def session_folder(agent: str) -> Path:
    """Return where OpenClaw keeps the transcripts of `agent` that are files."""
    return state_folder() / "agents" / agent / "sessions"


def agent_database(agent: str) -> Path:
    """Return the database in which OpenClaw from 2026.9 on keeps the sessions of `agent`, be it there or not."""
    return state_folder() / "agents" / agent / "agent" / "openclaw-agent.sqlite"


def session_copies(agent: str) -> Path:
    """Return where memory-tui keeps the transcripts that it copied out of the database of `agent`."""
    key = hashlib.sha256(os.fsencode(os.path.realpath(agent_database(agent)))).hexdigest()[:16]
    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "sessions" / key


def private_name(folder: Path, agent: str = "", more: bytes = b"") -> str:
    """Return the name of what is kept for `folder` alone, among others of its kind; two names of one folder share it.

    `agent` and `more` tell apart what one folder has several of.
    """
    real = os.path.realpath(folder)
    # No path has a NUL, so that it separates the two.
    marker = b"\0" + agent.encode() if agent else b""
    key = hashlib.sha256(os.fsencode(real) + marker + more).hexdigest()[:16]
    return f"{Path(real).name[:40] or 'root'}{f'-{agent}' if agent else ''}-{key}"


def journal_folder(workspace: Path) -> Path:
    """Return the folder that names the journal of `workspace`; two names of one workspace share it."""
    return platformdirs.user_state_path("memory-tui", appauthor=False) / "journal" / private_name(workspace)


def openclaw_path() -> Path:
    """Return OpenClaw's configuration file, be it there or not: OPENCLAW_CONFIG_PATH, else in its state folder."""
    if named := _variable("OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"):
        return expand(named)
    candidates = [state_folder() / f"{name}.json" for name in ("openclaw", *LEGACY_NAMES)]
    return next((file for file in candidates if file.is_file()), candidates[0])


def own_path() -> Path:
    """Return where memory-tui's own configuration lives, whether it exists or not."""
    return platformdirs.user_config_path("memory-tui", appauthor=False) / "config.json"


def default_workspace(*, newer: bool) -> Path:
    """Return the workspace of an agent that names none: the documented one; the other one where that alone exists.

    Up to 2026.7 it is ~/.openclaw/workspace, with -<profile> at its end; `newer` releases have it in the state folder,
    or where OPENCLAW_WORKSPACE_DIR says.
    """
    if named := _variable("OPENCLAW_WORKSPACE_DIR"):
        return expand(named)
    suffix = f"-{profile()}" if profile() else ""
    candidates = [home() / ".openclaw" / f"workspace{suffix}", state_folder() / "workspace"]
    if newer:
        candidates.reverse()
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


class ExtraPath(Struct, frozen=True):
    """A path and the pattern that chooses among the notes below it; without one all of them are read."""

    path: str
    pattern: str = ""


# --- variables and secrets -----------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_ONLY_A_NAME = re.compile(r"(?:\$|secretref-env:)([A-Z][A-Z0-9_]{0,127})|\$\{([A-Z][A-Z0-9_]{0,127})\}")
"""A secret that is nothing but the name of a variable: `$NAME`, `${NAME}` or `secretref-env:NAME`."""
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
)
_MAX_BYTES = 1 << 20
_NEVER = "which memory-tui never asks; put the key into the provider's variable, such as OPENAI_API_KEY"


class FoundSecret(Discreet, frozen=True):
    """A secret's `value`, and its `source` in words; without a value, `problem` says why there is none."""

    HIDDEN = ("value",)

    source: str
    problem: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"set, from {self.source}" if self.value else f"not set: {self.problem}"


class Environment(Discreet, frozen=True, dict=True):
    """Looks variables and secrets up in OpenClaw's order; the first place that has one counts, an empty value is none.

    The .env file of the state folder is only read when the process itself does not have the variable. A variable of
    the login shell, which OpenClaw can import too, is not known here: nothing is run to read a configuration.
    """

    HIDDEN = ("tree",)

    tree: Node | None = None

    def lookup(self, name: str) -> tuple[str, str] | None:
        """Return the value of `name` and where it is from, in words; None when nothing says it."""
        if value := os.environ.get(name):
            return value, f"the environment variable {name}"
        if value := self._env_file.get(name):
            return value, f"{name} in {state_folder() / '.env'}"
        if value := self._section.get(name):
            return value, f"{name} in the env section"
        return None

    def substitute(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return `text` with each `${NAME}` replaced, and the names without a value; `$${NAME}` stands for itself."""
        missing: list[str] = []

        def replace(match: re.Match[str]) -> str:
            escape, name = match.groups()
            if escape:
                # `$${NAME}` is the text `${NAME}`.
                return f"${{{name}}}"
            if (variable := self.lookup(name)) is None:
                missing.append(name)
                return match[0]
            value, _ = variable
            return value

        return _REFERENCE.sub(replace, text), tuple(missing)

    def secret(self, node: Node) -> FoundSecret:
        """Return the secret that `node` is or refers to; where there is none, the answer says why.

        A node is the text itself, a text that names a variable, or an object with the source and the id of a secret.
        """
        if isinstance(node.value, str):
            text = node.value.strip()
            if name := _ONLY_A_NAME.fullmatch(text):
                return self._variable(name[1] or name[2])
            plain, missing = self.substitute(text)
            if missing:
                return FoundSecret("", f"the variable {missing[0]} is not set")
            return FoundSecret("the file itself", "" if plain else "the text is empty", plain)
        source = word_of(node.get("source"))
        variable = word_of(node.get("id"))
        if not source or not variable:
            return FoundSecret("", "it is neither text nor a reference with source and id")
        if source != "env":
            return FoundSecret("", f"it is of source {source!r}, {_NEVER}")
        return self._referenced(variable, word_of(node.get("provider")))

    def _referenced(self, variable: str, provider: str) -> FoundSecret:
        """Return the secret in `variable`, unless the file has a list of what `provider` may read that lacks it."""
        section = self.tree.get("secrets") if self.tree else None
        if section is None:
            return self._variable(variable)
        provider = provider or word_of(section.get("defaults", "env")) or "default"
        allowed = section.get("providers", provider, "allowlist")
        names = allowed.plain() if allowed else [variable]
        if not isinstance(names, list) or variable not in names:
            return FoundSecret("", f"{variable} is not in secrets.providers.{provider}.allowlist")
        return self._variable(variable)

    def _variable(self, name: str) -> FoundSecret:
        """Return the secret that is the value of the variable `name`."""
        value, source = self.lookup(name) or ("", "")
        return FoundSecret(source, "" if value else f"the variable {name} is not set", value)

    @cached_property
    def _env_file(self) -> dict[str, str]:
        """Return the variables of the .env file, by name."""
        try:
            with open_regular(state_folder() / ".env") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            # Most people have none, and one that may not be read is as good as none for looking a variable up.
            return {}
        variables = {}
        for name, in_quotes, in_double_quotes, bare in _ASSIGNMENT.findall(text):
            unescaped = re.sub(r"\\(.)", r"\1", in_double_quotes)
            variables[name] = in_quotes or unescaped or bare.strip()
        return variables

    @cached_property
    def _section(self) -> dict[str, str]:
        """Return the variables of the file's `env` and `env.vars`, by name; the latter count more."""
        sections = [self.tree.get("env"), self.tree.get("env", "vars")] if self.tree else []
        members = [member for section in sections if section for member in section.children()]
        return {key: node.value for key, node in members if isinstance(node.value, str) and node.value.strip()}
