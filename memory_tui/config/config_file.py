"""The configuration file: it is found and read, each key is checked, and what it says is told for one agent.

OpenClaw: `agents.defaults.memorySearch` (up to 2026.7) or `memory.search` (from 2026.8). Own: the same tree at the top
of `config.json` in the user's configuration folder. All are read as JSON5. A value knows its place in the file; one
that the file leaves out has its default in `settings.py`. Variables and secrets are looked up where OpenClaw looks:
process, .env file, env section.
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.config import settings
from memory_tui.config.json5 import Node, SourceText, parse_json5, read_json5, word_of
from memory_tui.config.places import ExtraPath, default_workspace, expand, openclaw_path, own_path, state_folder
from memory_tui.config.settings import BY_KEY, BY_PATH, OWN_KEYS, PROVIDERS, Key, Scalar, Value, check, retired
from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError, SettingError
from memory_tui.providers import registry
from memory_tui.providers.registry import Shared
from memory_tui.secrets import Discreet, Secret

# --- variables and secrets -------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_ONLY_A_NAME = re.compile(r"(?:\$|secretref-env:)([A-Z][A-Z0-9_]{0,127})|\$\{([A-Z][A-Z0-9_]{0,127})\}")
"""A secret that is nothing but the name of a variable: `$NAME`, `${NAME}` or `secretref-env:NAME`."""
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
)
_LONGEST_ENV_FILE = 1 << 20
"""Bytes of a .env file that are read."""
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
            """Return what a reference stands for; one without a value as it is, noted as missing."""
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
        # Without such a list every variable may be read.
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
                text = file.read(_LONGEST_ENV_FILE).decode("utf-8", "replace")
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


# --- what a file says for an agent -----------------------------------------------------------------------------------

MAIN = "main"
"""The agent of a configuration that lists none."""


class Position(Struct, frozen=True):
    """Where a value is written: file, whole key path, line and column from 1."""

    file: str
    path: str
    line: int
    column: int

    @classmethod
    def of(cls, node: Node, path: str) -> Position:
        """Return the place of `node`."""
        return cls(str(node.source.path), path, *node.source.at(node.start))

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} {self.path}"


class Problem(Struct, frozen=True):
    """Something in the file that could not be used as it is: what, where, and in `used` what counts instead."""

    key: str
    message: str
    place: Position
    used: str = ""

    @classmethod
    def at(cls, node: Node, path: str, message: str, used: str = "") -> Problem:
        """Return the problem with `node`, which stands at `path`."""
        return cls(path, message, Position.of(node, path), used)

    def __str__(self) -> str:
        where = f"{Path(self.place.file).name} line {self.place.line}, {self.place.path}"
        return f"{self.message} ({where}{'; ' if self.used else ''}{self.used}.)"


class ConfigValue(Discreet, frozen=True):
    """A documented value that a file holds, checked; `places` are several where lists are joined.

    `value` is what counts, None for a secret.
    """

    HIDDEN = ("node",)

    value: object
    places: tuple[Position, ...]
    node: Node


class Agent(Discreet, frozen=True):
    """One agent of OpenClaw: its normalised id, and the folder of its notes, which need not exist.

    `named` is the workspace as a configuration writes it, empty where it is the documented default; `node` is what the
    file has of it.
    """

    HIDDEN = ("node",)

    id: str
    workspace: Path
    default: bool
    named: str = ""
    place: Position | None = None
    node: Node | None = None

    def as_dict(self) -> dict[str, object]:
        """Return what a list of agents says of it."""
        folder = str(self.workspace)
        return {"id": self.id, "default": self.default, "workspace": folder, "named": self.named, "place": self.place}


def only_agent(named: str = "", workspace: Path | None = None) -> Agent:
    """Return the agent of a configuration that lists none."""
    return Agent(MAIN, workspace or default_workspace(newer=False), True, named)


def zone(name: object) -> dt.tzinfo | None:
    """Return the time zone called `name`; None where there is none."""
    if isinstance(name, str):
        # Late, because few name one, and it loads how Python was built.
        import zoneinfo

        with suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            return zoneinfo.ZoneInfo(name)
    return None


class Config(Discreet, frozen=True):
    """What a configuration file says for one agent; all empty when there is none.

    `entries` are the documented values it sets, by key. `layout` is where in the file memory search is configured;
    `tree` is the whole file, and `sections` are the objects of it that hold such values, by key path, the one that
    counts most last. `account` is the id in `models.providers` of a provider that has only a name there.
    """

    HIDDEN = ("entries", "tree", "sections")

    path: Path | None = None
    kind: Literal["openclaw", "own", "none"] = "none"
    layout: str = ""
    agent: Agent = field(default_factory=only_agent)
    agents: tuple[Agent, ...] = ()
    entries: Mapping[str, ConfigValue] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[Problem, ...] = ()
    environment: Environment = field(default_factory=Environment)
    tree: Node | None = None
    sections: tuple[tuple[str, Node], ...] = ()
    account: str = ""

    @property
    def values(self) -> dict[str, Value]:
        """Return the knobs that it sets."""
        return {
            key: Value(entry.value, str(entry.places[-1]))
            for key, entry in self.entries.items()
            if key in BY_KEY and isinstance(entry.value, Scalar)
        }

    @property
    def provider(self) -> str:
        """Return the embedding provider that is named; empty where none is."""
        return self.text("provider") if "provider" in self.entries else ""

    @property
    def model(self) -> str:
        """Return the embedding model that is named, without the account that may stand before it; empty for none."""
        return self.text("model").removeprefix(f"{self.account}/" if self.account else "")

    @property
    def time_zone(self) -> dt.tzinfo | None:
        """Return the user's time zone; None for that of this machine."""
        return zone(self.value("agents.defaults.userTimezone"))

    @property
    def extra_paths(self) -> tuple[str | ExtraPath, ...]:
        """Return notes and folders outside the usual places, as the file writes them."""
        paths = self.value("extraPaths")
        return tuple(paths) if isinstance(paths, tuple) else ()

    def value(self, key: str) -> object:
        """Return the documented value of `key`: from the file, else the default; None where there is neither."""
        entry = self.entries.get(key)
        return entry.value if entry else BY_PATH[key].default

    def text(self, key: str) -> str:
        """Return the documented text of `key`; empty where there is none."""
        return str(self.value(key) or "")

    def whole(self, key: str) -> int:
        """Return the documented number of `key`; 0 where there is none."""
        value = self.value(key)
        return value if isinstance(value, int) else 0

    def secret(self, key: str) -> FoundSecret | None:
        """Return the secret of `key`, looked up now; None when the file has none."""
        entry = self.entries.get(key)
        return self.environment.secret(entry.node) if entry else None

    def keys(self, key: str) -> tuple[Secret, ...]:
        """Return the secret of `key` as a tuple of one; an empty tuple where it has no value."""
        secret = self.secret(key)
        return (Secret(secret.value),) if secret is not None and secret.value else ()

    def headers(self, key: str = "remote.headers") -> Iterator[tuple[str, FoundSecret]]:
        """Yield name and value of each header of `key`."""
        if entry := self.entries.get(key):
            for name, node in entry.node.children():
                yield name, self.environment.secret(node)

    @property
    def store_path(self) -> Path:
        """Return OpenClaw's own index of this agent, up to 2026.6; memory-tui never writes it."""
        if named := self.text("store.path"):
            return expand(named.replace("{agentId}", self.agent.id))
        return state_folder() / "memory" / f"{self.agent.id}.sqlite"

    @property
    def disabled(self) -> str:
        """Return why memory search is off, as a sentence; empty where it is on."""
        entry = self.entries.get("enabled")
        if entry is None or entry.value is not False:
            return ""
        place = entry.places[-1]
        return f"Memory search is disabled by the configuration: enabled is false in line {place.line} of {place.file}."


# --- the accounts that everything shares ---------------------------------------------------------------------------


def shared(config: Config, name: str) -> Shared:
    """Return what `config` says of the provider called `name`; all empty where it is not OpenClaw's file."""
    account = registry.ACCOUNTS.get(name, "")
    if not account or config.kind != "openclaw":
        return Shared()
    section = f"models.providers.{account}"
    # The logins of a provider that has only a name of its own in the file are kept by that name.
    login_account = config.account if config.account and name == config.provider else account
    logins = tuple(Secret(secret.value) for secret in _logins(config, login_account) if secret.value)
    headers = {header: secret.value for header, secret in config.headers(f"{section}.headers") if secret.value}
    return Shared(config.text(f"{section}.baseUrl"), logins, config.keys(f"{section}.apiKey"), headers)


def _logins(config: Config, account: str) -> Iterator[FoundSecret]:
    """Yield the API keys of an account's auth profiles, in the order of `auth.order`, else in that of the file.

    Of the logins in `auth-profiles.json` those of type `api_key` are read, as for embeddings in OpenClaw; a login by
    OAuth embeds nothing there either. From 2026.8 on logins can be in OpenClaw's own database, which is not opened.
    Those of the main agent serve the others too.
    """
    order = config.tree.get("auth", "order", account) if config.tree else None
    preferred = [str(node.value) for node in order.items()] if order else []
    folders = [state_folder() / "agents" / agent / "agent" for agent in dict.fromkeys((config.agent.id, MAIN))]
    if named := os.environ.get("OPENCLAW_AGENT_DIR", "").strip():
        folders = [expand(named)]
    for folder in folders:
        try:
            tree = read_json5(folder / "auth-profiles.json", 4 << 20)
        except (OSError, ConfigError):
            # Most people have none, and one that cannot be read is as good as none for looking a key up.
            continue
        profiles = tree.get("profiles")
        logins = dict(profiles.children()) if profiles else {}
        for name in dict.fromkeys([*preferred, *logins]):
            if (login := logins.get(name)) is None or word_of(login.get("provider")) != account:
                continue
            key = login.get("key") or login.get("keyRef")
            if key and word_of(login.get("type")) == "api_key":
                yield config.environment.secret(key)


# --- finding and reading -------------------------------------------------------------------------------------------

MAX_BYTES = 16 << 20
"""A larger file is not taken for a configuration."""


def load(explicit: str | None, workspace: Path | None, agent: str = "") -> Config:
    """Return the configuration for `workspace` and `agent`; an empty one where no file says anything.

    The file is the `explicit` one; else OpenClaw's, when an agent is named or the workspace is that of one of its
    agents; else our own. Where no agent is named, the agent is the one whose workspace it is, else the default one.
    Raises ConfigError when the file that applies cannot be read or understood, and SettingError for an agent that
    nobody knows.
    """
    if explicit is not None:
        return _read(Path(explicit).expanduser()).config(workspace, agent)
    if openclaw_path().is_file():
        reading = _read(openclaw_path())
        if agent or workspace is None or reading.agent_of(workspace):
            return reading.config(workspace, agent)
    if own_path().is_file():
        return _read(own_path()).config(workspace, agent)
    if _normalised(agent) != MAIN:
        raise SettingError(f"There is no agent {agent!r}: no configuration lists agents.", f"Choose {MAIN}.")
    return Config(agents=(only_agent(),))


def own(config: Config) -> Config:
    """Return memory-tui's own configuration: `config` where it is that, else the one beside OpenClaw's file.

    Raises ConfigError.
    """
    if config.kind == "openclaw" and own_path().is_file():
        config = load(str(own_path()), None)
    return config if config.kind == "own" else Config()


def _read(path: Path) -> _Reading:
    """Return a reading of the file at `path`. Raises ConfigError."""
    try:
        return _Reading(read_json5(path, MAX_BYTES))
    except OSError as error:
        message = f"The configuration {path} cannot be read: {error.strerror}."
        raise ConfigError(message, "Check the path given with --config.") from error


# --- includes ------------------------------------------------------------------------------------------------------

INCLUDE = "$include"
MAX_FILES_DEEP = 10
MAX_INCLUDED_BYTES = 2 << 20


def _resolved(node: Node, chain: tuple[Path, ...], problems: list[Problem]) -> Node:
    """Return `node` with every include put in; `chain` are the files that lead to it.

    A file that may not be included, or is missing, is a problem: the rest counts without it. Included values know their
    own file. Raises ConfigError when an included file is not JSON5.
    """
    if isinstance(node.value, list):
        return replace(node, value=[_resolved(item, chain, problems) for item in node.value])
    if not isinstance(node.value, dict):
        return node
    members = {key: _resolved(child, chain, problems) for key, child in node.value.items() if key != INCLUDE}
    rest = replace(node, value=members)
    include = node.value.get(INCLUDE)
    if include is None:
        return rest
    included: Node | None = None
    for name in include.items() if isinstance(include.value, list) else [include]:
        try:
            content = _included(name, chain, problems)
        except ValueError as error:
            label = repr(name.value) if isinstance(name.value, str) else "This"
            message = f"{label} is not included: {error}."
            problems.append(Problem.at(name, INCLUDE, message, "the rest counts without it"))
            continue
        included = _merged(included, content) if included else content
    # Members beside the include cannot be added to what is no object.
    if included is None or (members and not isinstance(included.value, dict)):
        return rest
    return _merged(included, rest) if members else included


def _included(name: Node, chain: tuple[Path, ...], problems: list[Problem]) -> Node:
    """Return what the file called `name` holds. Raises ValueError with the reason, ConfigError."""
    if not isinstance(name.value, str) or "\0" in name.value:
        raise ValueError("it is not the name of a file")
    path = Path(os.path.normpath(chain[-1].parent / name.value))
    if path in chain:
        raise ValueError("it includes itself")
    if len(chain) > MAX_FILES_DEEP:
        raise ValueError(f"includes are more than {MAX_FILES_DEEP} deep")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(chain[0].parent)):
        raise ValueError("it is outside the folder of the configuration")
    try:
        return _resolved(read_json5(path, MAX_INCLUDED_BYTES), (*chain, path), problems)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}" if path.is_file() else "there is no such file"
        raise ValueError(reason) from None


def _merged(below: Node, above: Node) -> Node:
    """Return both as one: objects key by key, lists one after the other, and of other values the one `above`."""
    if isinstance(below.value, dict) and isinstance(above.value, dict):
        members = dict(below.value)
        for key, node in above.value.items():
            members[key] = _merged(members[key], node) if key in members else node
        return replace(above, value=members)
    if isinstance(below.value, list) and isinstance(above.value, list):
        return replace(above, value=[*below.value, *above.value])
    return above


# --- agents --------------------------------------------------------------------------------------------------------


def _normalised(name: str) -> str:
    """Return an agent's id as OpenClaw writes it into paths and keys; `main` for a blank one."""
    lower = name.strip().lower()
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", lower):
        return lower
    return re.sub(r"[^a-z0-9_-]+", "-", lower).strip("-")[:64] or MAIN


def _agents(tree: Node, environment: Environment, problems: list[Problem]) -> tuple[Agent, ...]:
    """Return the agents of OpenClaw's configuration `tree`; one called main where it lists none.

    The default one is the first that says so, else the first.
    """
    listed: dict[str, tuple[str, Node]] = {}
    for path, node, name in _listed(tree, problems):
        if name in listed:
            used = f"only the one of line {listed[name][1].line} is used"
            problems.append(Problem.at(node, path, f"The agent {name!r} is there twice.", used))
        else:
            listed[name] = path, node
    # What the file has of each agent's `default`: only true makes it the default one.
    flags = {name: flag for name, (_, node) in listed.items() if (flag := node.get("default"))}
    flagged = [name for name, flag in flags.items() if flag.value is True]
    default_name = next(iter([*flagged, *listed]), MAIN)
    for name in flagged[1:]:
        used = f"{default_name!r} of line {listed[default_name][1].line} is used"
        message = f"{name!r} is a second default agent."
        problems.append(Problem.at(flags[name], f"{listed[name][0]}.default", message, used))
    newer = tree.get("agents", "entries") is not None or tree.get("memory", "search") is not None
    # Its problems go into a list that nobody reads, because the check of every documented key tells of this value, too.
    shared = _workspace(tree.get("agents", "defaults"), "agents.defaults", environment, [])
    if not listed:
        return (only_agent(shared, _usual_folder(MAIN, shared, default=True, alone=True, newer=newer)),)
    alone = len(listed) == 1
    agents = []
    for name, (path, node) in listed.items():
        default = name == default_name
        named = _workspace(node, path, environment, problems)
        folder = expand(named) if named else _usual_folder(name, shared, default=default, alone=alone, newer=newer)
        if default or alone:
            # For these two agents.defaults.workspace is the folder itself, as if the agent named it.
            named = named or shared
        agents.append(Agent(name, folder, default, named, Position.of(node, path), node))
    return tuple(agents)


def _usual_folder(name: str, shared: str, *, default: bool, alone: bool, newer: bool) -> Path:
    """Return the folder of the agent `name`, for which the file names none of its own.

    `shared` is agents.defaults.workspace, empty for none. `alone` tells that the file lists no other agent, `default`
    that this is the default one, `newer` that the file is of 2026.8 or later.
    """
    if alone or (default and not newer):
        return expand(shared) if shared else default_workspace(newer=newer)
    # From 2026.8 on each agent of a fleet has a folder below the shared one; before, and without one, beside it.
    if not (newer and shared):
        return state_folder() / f"workspace-{name}"
    below = expand(shared) / name
    # The default agent of a fleet may still be where it was when it was alone.
    return expand(shared) if default and not below.is_dir() else below


def _listed(tree: Node, problems: list[Problem]) -> Iterator[tuple[str, Node, str]]:
    """Yield path, node and id of each agent, from `agents.entries`, else from `agents.list`.

    An agent without an id counts as main, and is a problem; what is no object is left out.
    """
    entries, items = tree.get("agents", "entries"), tree.get("agents", "list")
    if entries is not None and isinstance(entries.value, dict):
        rows = [(f"agents.entries.{name}", node, name) for name, node in entries.children()]
    elif items is not None and isinstance(items.value, list):
        rows = [(f"agents.list[{i}]", node, word_of(node.get("id"))) for i, node in enumerate(items.value)]
    else:
        rows = []
        sections = {"agents.entries": entries, "agents.list": items}
        problems += [Problem.at(node, path, f"{path} lists no agents.") for path, node in sections.items() if node]
    for path, node, name in rows:
        if not name.strip() or not isinstance(node.value, dict):
            problems.append(Problem.at(node, path, f"{path} is no agent with an id."))
        if isinstance(node.value, dict):
            yield path, node, _normalised(name)


def _workspace(node: Node | None, path: str, environment: Environment, problems: list[Problem]) -> str:
    """Return the workspace that `node` names, variables replaced; empty for none and for one that is unusable."""
    written = node.get("workspace") if node else None
    if written is None:
        return ""
    path = f"{path}.workspace"
    message = f"{path} is not a path."
    if isinstance(written.value, str):
        text, missing = environment.substitute(written.value.strip())
        if not missing:
            return text
        message = f"The variable {missing[0]} is not set."
    problems.append(Problem.at(written, path, message, "the usual folder is used"))
    return ""


# --- values --------------------------------------------------------------------------------------------------------

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb)?", re.IGNORECASE)
_UNITS = ("b", "kb", "mb", "gb", "tb")
_LONGEST = 40
"""Longer text is cut in messages."""
_PLAIN: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "switch": ("true or false", lambda value: isinstance(value, bool)),
    "text": ("text", lambda value: isinstance(value, str)),
    "path": ("text", lambda value: isinstance(value, str)),
    "zone": ("a time zone such as Europe/Berlin", lambda value: zone(value) is not None),
}
"""What a value of a kind is, in words, and the test of it."""


def checked(key: Key, node: Node, environment: Environment) -> object:
    """Return the value of `node` for `key`; None for a secret, which stays in the file. Raises SettingError."""
    value = _substituted(key, node, environment)
    match key.kind:
        case "knob":
            # Its error shows the value, of an object or a list only what it is.
            return check(BY_KEY[key.path], _excerpt(node) if isinstance(value, dict | list) else value)
        case "any":
            return node.plain()
        case "secret" if isinstance(value, str | dict):
            return None
        case "secret":
            raise SettingError(f"{key.path} is text or a secret reference.", "")
        case "headers":
            _require_headers(key, node)
            return None
        case "choices":
            return _choices(key, node)
        case "paths":
            return _paths(key, node, environment)
        case "whole":
            fitting: object = _number(key, value)
            expected = f"a whole number from {key.low:g} to {key.high:g}".removesuffix(" to inf")
        case "size":
            fitting = _number(key, value)
            expected = "a number of bytes or a size such as 2mb"
        # The last branch has the kinds of _PLAIN.
        case "choice":
            fitting = value if value in key.choices else None
            expected = f"one of {', '.join(key.choices)}"
        case kind:
            expected, fits = _PLAIN[kind]
            fitting = value if fits(value) else None
    if fitting is None:
        raise SettingError(f"{key.path} is {expected}, not {_excerpt(node)}.", "")
    return fitting


def _require_headers(key: Key, node: Node) -> None:
    """Raise SettingError where `node` is no object of texts and references to secrets."""
    if not isinstance(node.value, dict) or not all(isinstance(item.value, str | dict) for _, item in node.children()):
        raise SettingError(f"{key.path} is an object of texts.", "")


def typed(key: Key, text: str) -> object:
    """Return the value of `key` that `text` of a command line stands for. Raises SettingError."""
    source = SourceText(Path("--set"), text)
    node = Node(text, source, 0, len(text))
    try:
        return checked(key, parse_json5(source) if key.kind in ("switch", "whole", "any") else node, Environment())
    except ConfigError:
        # What is no JSON is text, which the check of its kind refuses by name.
        return checked(key, node, Environment())


def _substituted(key: Key, node: Node, environment: Environment) -> object:
    """Return the value of `node`, of a text with its variables replaced. Raises SettingError for one that is not set.

    A secret stays as it is written: its variable is looked up when it is needed.
    """
    value = node.value
    if not isinstance(value, str) or key.kind == "secret":
        return value
    text, missing = environment.substitute(value)
    if missing:
        raise SettingError(f"{key.path} names the variable {missing[0]}, which is not set.", "")
    return text


def _excerpt(node: Node) -> str:
    """Return what `node` is, in the few words that a message has for it."""
    value = node.value
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")
    return json.dumps(value)


def _number(key: Key, value: object) -> int | None:
    """Return `value` as a whole number; None where it is none or out of range. A size may have a unit."""
    if key.kind == "size" and isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        amount, unit = match.groups(default="b")
        value = math.floor(float(amount) * 1024 ** _UNITS.index(unit.lower()))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    # A size loses its fraction; any other number has to be whole.
    fits = key.low <= value <= key.high and (key.kind == "size" or value == int(value))
    return int(value) if fits else None


def _choices(key: Key, node: Node) -> tuple[str, ...]:
    """Return a list of choices, each once; the default for an empty list. Raises SettingError for any other value."""
    if not isinstance(node.value, list):
        raise SettingError(f"{key.path} is a list of {' and '.join(key.choices)}, not {_excerpt(node)}.", "")
    items = tuple(dict.fromkeys(str(item.value) for item in node.value))
    if not {*items} <= {*key.choices}:
        raise SettingError(f"{key.path} may only hold {', '.join(key.choices)}.", "")
    return items or (key.default if isinstance(key.default, tuple) else ())


def _paths(key: Key, node: Node, environment: Environment) -> tuple[str | ExtraPath, ...]:
    """Return a list of paths, each once; blank ones are left out. Raises SettingError for any other value."""
    if not isinstance(node.value, list):
        raise SettingError(f"{key.path} is a list of paths, not {_excerpt(node)}.", "")
    paths: list[str | ExtraPath] = []
    for item in node.value:
        # An item is the path itself, or an object with path and pattern.
        inner = item.get("path") or item
        pattern = item.get("pattern")
        if not isinstance(inner.value, str) or (pattern and not isinstance(pattern.value, str)):
            raise SettingError(f"{key.path} is a list of paths, and {_excerpt(item)} is none.", "")
        if path := str(_substituted(key, inner, environment)).strip():
            paths.append(ExtraPath(path, str(pattern.value)) if pattern and pattern.value else path)
    return tuple(dict.fromkeys(paths))


# --- one agent's configuration -------------------------------------------------------------------------------------

OLDER, NEWER = "agents.defaults.memorySearch", "memory.search"
_STRICT = ("memory", "agents.defaults.compaction.memoryFlush")
"""Sections of the file that are about memory alone, where a key that is not documented is a mistake."""
_IGNORED = "nothing of it is used"
_REJECTED = "OpenClaw 2026.9 rejects the file until openclaw doctor --fix removes it"
_ALONE = "memory-tui answers by the built-in rules"
_NO_MEMORY = "OpenClaw's agent has no memory plug-in, so it searches nothing."


class _Reading:
    """Reads the values of one file, the general ones first: a later value counts instead of an earlier one.

    Its attributes are called as the fields of the Config that is made of them.
    """

    def __init__(self, root: Node) -> None:
        """Find out whose configuration `root` is, and its agents. Raises ConfigError for a broken included file."""
        self.path = root.source.path
        if not isinstance(root.value, dict):
            what = f"{self.path} holds no settings: its top level is not an object."
            raise ConfigError(what, "Put it in { }.", *root.source.at(root.start))
        self.problems: list[Problem] = []
        # Most files include nothing, and are not gone through for it.
        self.tree = tree = _resolved(root, (self.path,), self.problems) if INCLUDE in root.source.text else root
        self.environment = Environment(tree)
        self.kind: Literal["openclaw", "own"] = "own"
        self.agents: tuple[Agent, ...] = (only_agent(),)
        if self.path.name == "openclaw.json" or (tree.get("agents") or tree.get("memory", "search")) is not None:
            self.kind, self.agents = "openclaw", _agents(tree, self.environment, self.problems)
        self.entries: dict[str, ConfigValue] = {}
        self.sections: list[tuple[str, Node]] = []
        self.layout = self.account = ""

    def agent_of(self, workspace: Path) -> Agent | None:
        """Return the agent whose notes are in `workspace`, of several the default one; None for no such agent."""
        real = os.path.realpath(workspace)
        fitting = [agent for agent in self.agents if os.path.realpath(agent.workspace) == real]
        return min(fitting, key=lambda agent: not agent.default, default=None)

    def _agent_named(self, name: str) -> Agent:
        """Return the agent called `name`. Raises SettingError."""
        for agent in self.agents:
            if agent.id == _normalised(name):
                return agent
        ids = ", ".join(agent.id for agent in self.agents)
        raise SettingError(f"There is no agent {name!r}: {self.path} has no such agent.", f"Choose one of {ids}.")

    def config(self, workspace: Path | None, name: str) -> Config:
        """Return what the file says for the agent called `name`, else for that of `workspace`, else the default one."""
        if name:
            agent = self._agent_named(name)
        else:
            of_workspace = self.agent_of(workspace) if workspace else None
            agent = of_workspace or next(agent for agent in self.agents if agent.default)
        if self.kind == "openclaw":
            self._openclaw(agent)
            self._around(agent)
        else:
            self._add(self.tree, "", (*settings.SEARCH_KEYS, *OWN_KEYS))
            if named := self.entries.get("workspace"):
                agent = only_agent(str(named.value), expand(str(named.value)))
                self.agents = (agent,)
        self._together()
        # In the order of the lines; problems of included files come last (False sorts first).
        self.problems.sort(key=lambda p: (p.place.file != str(self.path), p.place.line, p.place.column))
        # Each attribute of a reading is a field of Config; these two are lists as long as values are added.
        lists = {"problems": tuple(self.problems), "sections": tuple(self.sections)}
        return Config(agent=agent, **(vars(self) | lists))

    def _report(self, node: Node, path: str, message: str, used: str = "") -> None:
        """Note a problem with `node`, which stands at `path`; `used` says what counts instead."""
        self.problems.append(Problem.at(node, path, message, used))

    def _openclaw(self, agent: Agent) -> None:
        """Take up what OpenClaw's file says: general settings, those of either layout, then those of the agent."""
        self._add(self.tree, "", settings.FILE_KEYS, strict=_STRICT)
        newer = self.tree.get(*NEWER.split("."))
        older = self.tree.get(*OLDER.split("."))
        if newer and older:
            self._report(older, OLDER, f"{OLDER} and {NEWER} are both there.", f"only {NEWER} is used")
        self.layout = NEWER if newer else OLDER
        if section := newer or older:
            self._add(section, self.layout, settings.SEARCH_KEYS, newer=newer is not None)
        if agent.node is not None and agent.place is not None:
            # What the agent has of its own stands in its entry, and counts before what all agents have.
            node, path = agent.node, agent.place.path
            for name in settings.OF_AGENT:
                self._take(BY_PATH[f"{settings.DEFAULTS}{name}"], node.get(*name.split(".")), f"{path}.{name}")
            # Where an agent has its own settings of memory search: from 2026.8 on, and before.
            for name in (NEWER, "memorySearch"):
                if (section := node.get(*name.split("."))) is not None:
                    self._add(section, f"{path}.{name}", settings.SEARCH_KEYS, newer=name == NEWER)
                    break
        self._custom_provider()

    def _custom_provider(self) -> None:
        """Let a provider that `models.providers` defines count as the known one whose protocol (`api`) it speaks.

        Its address, key and headers then stand for those of the known one. An `api` that nobody here knows is left. A
        server with an address and no `api` is taken to embed as OpenAI does.
        """
        entry = self.entries.get("provider")
        if entry is None or entry.value in (*PROVIDERS, *settings.NOT_ASKED):
            return
        account = str(entry.value)
        provider = self.tree.get("models", "providers", account)
        if provider is None:
            return
        api = provider.get("api")
        wire = str(api.value) if api else ""
        if not api and provider.get("baseUrl"):
            # Each of these names means that.
            wire = settings.COMPATIBLE_APIS[0]
        name = "openai-compatible" if wire in settings.COMPATIBLE_APIS else wire
        if name not in registry.ACCOUNTS:
            return
        self.entries["provider"] = replace(entry, value=name)
        self.account = account
        for member in ("baseUrl", "apiKey", "headers"):
            # The setting has the path of the known provider, and the value of this one. What the known one has there
            # goes, so that no key or header of it reaches the address of this one.
            key = BY_PATH[f"models.providers.{registry.ACCOUNTS[name]}.{member}"]
            self.entries.pop(key.path, None)
            self._take(key, provider.get(member), f"models.providers.{account}.{member}")

    def _around(self, agent: Agent) -> None:
        """Report what else of the file decides whether, and how, the agent searches its memory."""
        if old_section := self.tree.get("memorySearch"):
            step = f"OpenClaw moves it to {NEWER} by doctor --fix."
            message = f"memorySearch at the top of the file is an older place; {step}"
            self._report(old_section, "memorySearch", message, _IGNORED)
        for path in ("plugins.enabled", "plugins.entries.memory-core.enabled"):
            node = self.tree.get(*path.split("."))
            if node and node.value is False:
                self._report(node, path, _NO_MEMORY, _ALONE)
        prefix_of_agent = f"{agent.place.path}." if agent.place else ""
        for prefix, tree in (("", self.tree), (prefix_of_agent, agent.node)):
            denied = tree.get("tools", "deny") if tree else None
            items = denied.items() if denied else []
            if any(item.value in ("memory_search", "group:memory", "*") for item in items):
                self._report(items[0], f"{prefix}tools.deny", "OpenClaw's agent may not use memory_search.", _ALONE)

    def _together(self) -> None:
        """Report values that do not go together, and those by which answers differ from what a person may expect."""
        values = {key: entry.value for key, entry in self.entries.items()}

        def warn(key: str, wrong: bool, message: str, used: str = "") -> None:
            """Report `message` at the value of `key`, if it is `wrong` and the file has that value."""
            if wrong and key in self.entries:
                # Of a list that was joined, the place that was read last.
                place = self.entries[key].places[-1]
                self.problems.append(Problem(place.path, message, place, used))

        for key, used in (
            ("provider", "words alone are searched, unless fallback names another"),
            ("fallback", "nobody takes over when the provider fails, and words alone are searched"),
        ):
            unknown = values.get(key) not in (*PROVIDERS, "")
            warn(key, unknown, f"{key} names a provider that memory-tui does not ask.", used)
        sources = values.get("sources")
        allowed = values.get("experimental.sessionMemory") is True
        useless = isinstance(sources, tuple) and "sessions" in sources and not allowed
        not_allowed = "sources names sessions, which experimental.sessionMemory has to allow."
        warn("sources", useless, not_allowed, "transcripts are not searched")
        slot = values.get("plugins.slots.memory")
        foreign = slot not in ("", "none", "memory-core", "memory-tui")
        warn("plugins.slots.memory", slot == "none", _NO_MEMORY, _ALONE)
        warn("plugins.slots.memory", foreign, "OpenClaw's agent asks another memory plug-in.", _ALONE)
        warn("enabled", values.get("enabled") is False, "Memory search is disabled: the agent recalls nothing.")
        weights = [values.get(f"query.hybrid.{side}Weight") for side in ("vector", "text")]
        warn("query.hybrid.textWeight", weights == [0, 0], "Both weights are 0.", "0.7 and 0.3 are used")
        tokens = values.get("chunking.tokens", 400)
        overlap = values.get("chunking.overlap", 0)
        if isinstance(tokens, int) and isinstance(overlap, int) and overlap >= tokens:
            message = f"chunking.overlap is not less than chunking.tokens, {tokens}."
            warn("chunking.overlap", True, message, f"{tokens - 1} is used")

    def _add(
        self, section: Node, path: str, rows: tuple[Key, ...], *, strict: tuple[str, ...] = ("",), newer: bool = False
    ) -> None:
        """Take the values of `rows` below `section`, which stands at `path`, and report keys that are not documented.

        Only what stands below one of the names `strict` is reported as not documented; below "" stands every key. A
        `newer` section is one that OpenClaw reads from 2026.8 on: keys that this release took away are reported, too.
        """
        table = {key.path: key for key in rows}
        if not isinstance(section.value, dict):
            self._report(section, path, f"{path} holds settings, so it is an object.", _IGNORED)
            return
        if rows is not settings.FILE_KEYS:
            self.sections.append((path, section))
        for below, node in _walk(section, table):
            whole = f"{path}.{below}" if path else below
            if newer and (replacement := retired(below)):
                self._report(node, whole, f"{whole} is retired: {replacement}.", _REJECTED)
            elif below not in table and any(name == "" or f"{below}.".startswith(f"{name}.") for name in strict):
                self._not_documented(node, whole, below, table)
            if below in table:
                self._take(table[below], node, whole)

    def _not_documented(self, node: Node, whole: str, below: str, table: Mapping[str, Key]) -> None:
        """Report the key `below`, at the path `whole` of the file, which is none of `table`."""
        if whole == NEWER:
            # Its values are taken by themselves.
            return
        if any(key.startswith(f"{below}.") for key in table):
            self._report(node, whole, f"{whole} holds settings, so it is an object.", _IGNORED)
            return
        near = difflib.get_close_matches(below, list(table), n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else "."
        message = f"{below} is not a documented setting{hint}"
        if any(below == key.path for key in OWN_KEYS):
            message = f"{below} is a setting of memory-tui, not of OpenClaw; its place is {own_path()}."
        self._report(node, whole, message, "it is ignored")

    def _take(self, key: Key, node: Node | None, path: str) -> None:
        """Take the value of `key` that stands at `node`, or report why it cannot be used."""
        if node is None:
            return
        before = self.entries.get(key.path)
        places: tuple[Position, ...] = (Position.of(node, path),)
        try:
            value = checked(key, node, self.environment)
        except SettingError as error:
            used = "nothing is used" if key.default in (None, ()) else f"the default {key.default} is used"
            if before is not None:
                # A secret, whose value is None here, is not shown.
                what = "that" if before.value is None else before.value
                used = f"{what} of line {before.places[-1].line} is used"
            self._report(node, path, error.message, used)
            return
        if key.kind == "paths" and before and isinstance(before.value, tuple) and isinstance(value, tuple):
            # The paths of an agent are added to the general ones, instead of replacing them.
            value = tuple(dict.fromkeys([*before.value, *value]))
            places = (*before.places, *places)
        self.entries[key.path] = ConfigValue(value, places, node)


def _walk(section: Node, table: Mapping[str, Key], prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield path and node of each value of `section`, below `prefix`.

    Where `table` has keys below an object, its members are yielded; any other object is yielded as a whole.
    """
    for name, node in section.children():
        path = f"{prefix}{name}"
        if isinstance(node.value, dict) and any(key.startswith(f"{path}.") for key in table):
            yield from _walk(node, table, f"{path}.")
        else:
            yield path, node
