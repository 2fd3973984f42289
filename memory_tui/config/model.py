"""A configuration as frozen values, each with the place it comes from; secrets are looked up where they are named.

Which release of OpenClaw is meant is told by its installed program, else by what its files look like. The knobs and
their defaults stand in `settings.py`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct, field

from memory_tui.config.json5 import Node, read_json5, word_of
from memory_tui.config.keys import BACKEND, BY_PATH, FILE, OWN_KEYS, PROVIDERS, QMD, SEARCH, Key, retired
from memory_tui.config.places import ExtraPath, agent_database, default_workspace, expand, state_folder
from memory_tui.config.settings import (
    BY_KEY,
    NEWEST_OPENCLAW,
    OLDER_OPENCLAW,
    OWN_PROFILE,
    Scalar,
    Settings,
    Value,
    profile_named,
)
from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError
from memory_tui.providers import registry
from memory_tui.providers.options import Secret, Shared
from memory_tui.secrets import Discreet

_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_SHORT = re.compile(
    r"(?:\$\{(?P<a>NAME)\}|\$(?P<b>NAME)|secretref-env:(?P<c>NAME))".replace("NAME", "[A-Z][A-Z0-9_]{0,127}")
)
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
)
_MAX_BYTES = 1 << 20
_NEVER = "which memory-tui never asks; put the key into the provider's variable, such as OPENAI_API_KEY"


class FoundSecret(Discreet, frozen=True):
    """Whether a secret is there, from where in words, and if not, why not."""

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
            if match[1]:
                return match[0][1:]
            value = self.lookup(match[2])
            if value is None:
                missing.append(match[2])
            return value[0] if value else match[0]

        return _REFERENCE.sub(replace, text) if "${" in text else text, tuple(missing)

    def secret(self, node: Node) -> FoundSecret:
        """Return the secret that `node` is or refers to; never raises, the reason is in the answer."""
        if isinstance(node.value, str):
            text = node.value.strip()
            if short := _SHORT.fullmatch(text):
                return self._variable(str(short[short.lastgroup or 0]))
            plain, missing = self.substitute(text)
            if missing:
                return FoundSecret("", f"the variable {missing[0]} is not set")
            return FoundSecret("the file itself", "" if plain else "the text is empty", plain)
        source, name = word_of(node.get("source")), word_of(node.get("id"))
        if not source or not name:
            return FoundSecret("", "it is neither text nor a reference with source and id")
        return self._reference(source, word_of(node.get("provider")), name)

    def _reference(self, source: str, alias: str, name: str) -> FoundSecret:
        if source != "env":
            return FoundSecret("", f"it is of source {source!r}, {_NEVER}")
        section = self.tree.get("secrets") if self.tree else None
        alias = alias or word_of(section.get("defaults", source) if section else None) or "default"
        allowed = section.get("providers", alias, "allowlist") if section else None
        if allowed is not None and name not in (plain if isinstance(plain := allowed.plain(), list) else []):
            return FoundSecret("", f"{name} is not in secrets.providers.{alias}.allowlist")
        return self._variable(name)

    def _variable(self, name: str) -> FoundSecret:
        value, source = self.lookup(name) or ("", "")
        return FoundSecret(source, "" if value else f"the variable {name} is not set", value)

    @cached_property
    def _env_file(self) -> dict[str, str]:
        try:
            with open_regular(state_folder() / ".env") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
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
    """Something in the file that could not be used as it is: what, where, and what counts instead."""

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
    try:
        return ZoneInfo(name) if isinstance(name, str) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
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
        """Return the embedding model that is named; empty where none is."""
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
        """Return the secret of `key`, where it has a value."""
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
    own_id = registry.ACCOUNTS.get(name, "")
    if not own_id or config.kind != "openclaw":
        return Shared()
    at, login = f"models.providers.{own_id}", config.account if name == config.provider and config.account else own_id
    return Shared(
        config.text(f"{at}.baseUrl"),
        tuple(Secret(secret.value) for secret in _logins(config, login) if secret.value),
        config.keys(f"{at}.apiKey"),
        {header: secret.value for header, secret in config.headers(f"{at}.headers") if secret.value},
    )


def _logins(config: Config, own_id: str) -> Iterator[FoundSecret]:
    """Yield the API keys of a provider's auth profiles, in the order of `auth.order`, else in that of the file.

    Of the logins in `auth-profiles.json` those of type `api_key` are read, as for embeddings in OpenClaw; a login by
    OAuth embeds nothing there either. From 2026.8 on logins can be in OpenClaw's own database, which is not opened.
    Those of the main agent serve the others too.
    """
    order = config.tree.get("auth", "order", own_id) if config.tree else None
    first = [str(node.value) for node in order.value] if order is not None and isinstance(order.value, list) else []
    named = os.environ.get("OPENCLAW_AGENT_DIR", "").strip()
    agents = dict.fromkeys((config.agent.id, MAIN))
    for folder in [expand(named)] if named else [state_folder() / "agents" / agent / "agent" for agent in agents]:
        try:
            tree = read_json5(folder / "auth-profiles.json", 4 << 20)
        except (OSError, ConfigError):
            # Most people have none, and one that cannot be read is as good as none for looking a key up.
            continue
        section = tree.get("profiles")
        logins = dict(section.children() if section is not None else ())
        for name in dict.fromkeys([*filter(logins.__contains__, first), *logins]):
            key = logins[name].get("key") or logins[name].get("keyRef")
            sort = word_of(logins[name].get("type")), word_of(logins[name].get("provider"))
            if key is not None and sort == ("api_key", own_id):
                yield config.environment.secret(key)


# --- what a person sees of it --------------------------------------------------------------------------------------

_CREDENTIALS = re.compile(
    r"(?<=//)[^/@\s]+@|(?<=[?&])([\w-]*(?:key|token|secret|password|sig)[\w-]*=)[^&#\s]+", re.IGNORECASE
)


class KeyRow(Struct, frozen=True):
    """One documented key: the value that counts and what may be seen of it, as JSON-ready data.

    `origin` is in words, `places` where the file has it. `effect` is "takes effect" or why the value changes nothing.
    `retired` is what OpenClaw 2026.9 always does in the place of a key that it took away, empty for the others.
    """

    key: str
    value: object
    default: object
    written: bool
    origin: str
    places: tuple[Position, ...]
    meaning: str
    takes_effect: bool
    effect: str
    retired: str = ""


def rows(config: Config, settings: Settings) -> Iterator[KeyRow]:
    """Yield every documented value; `settings` are those in force."""
    for key in (*SEARCH, *FILE, *(key for key in OWN_KEYS if config.kind != "openclaw" or key.kind == "knob")):
        effect, entry = _effect(key, config, settings), config.entries.get(key.path)
        places = entry.places if entry else ()
        in_force = settings.values.get(key.path)
        yield KeyRow(
            key=key.path,
            value=in_force.value if in_force else _visible(key, config),
            default=key.default,
            written=entry is not None,
            origin=in_force.origin if in_force else " and ".join(map(str, places)) or "default",
            places=places,
            meaning=key.meaning,
            takes_effect=not effect,
            effect=effect or "takes effect",
            retired=retired(key.path) if key not in FILE else "",
        )


def _visible(key: Key, config: Config) -> object:
    """Return what may be seen of the value of a key that is no knob."""
    entry = config.entries.get(key.path)
    if key.path == "store.path":
        return str(config.store_path)
    if entry is None:
        return key.default
    if key.kind == "secret":
        return str(config.secret(key.path))
    if key.kind == "headers":
        return {name: str(secret) for name, secret in config.headers(key.path)}
    if key.kind == "any":
        # What a plug-in is told may hold secrets that nobody here knows of.
        return "set"
    if key.kind == "text":
        # As it is written: what stands behind a variable may be a secret.
        return _CREDENTIALS.sub(lambda secret: f"{secret[1] or ''}***", str(entry.node.value))
    if isinstance(entry.value, tuple):
        return tuple(
            {"path": item.path, "pattern": item.pattern} if isinstance(item, ExtraPath) else item
            for item in entry.value
        )
    return entry.value


def _effect(key: Key, config: Config, settings: Settings) -> str:
    """Return why the value changes nothing here; empty where it takes effect."""
    if key.path == "provider" and config.provider not in ("", *PROVIDERS):
        instead = "words alone are searched, unless fallback names another"
        return f"none: memory-tui does not ask {config.provider!r}; {instead}"
    if key.kind != "knob":
        idle = key.path.startswith(QMD) and config.value(BACKEND) != "qmd"
        return key.effect or ("none while memory.backend is builtin; --backend qmd asks QMD" if idle else "")
    profile, value = settings.word("profile"), settings.values[key.path]
    if why := profile_named(profile).ignores.get(key.path):
        return f"none under profile {profile}: {why}"
    entry = config.entries.get(key.path)
    if entry is not None and entry.value != value.value and key.path != "profile":
        return f"none: {entry.places[-1]} says {entry.value}, but {value.origin} says {value.value}"
    return ""


# --- which release of OpenClaw is meant -------------------------------------------------------------------------------

_VERSION = re.compile(r"(\d{4})\.(\d{1,2})(?:\.(\d{1,3}))?")
SLOT, PLUGIN = "plugins.slots.memory", "memory-tui"
LANCEDB_PLUGIN = "memory-lancedb"
"""What the slot says where OpenClaw's agent keeps its memories in LanceDB."""
AGENT_PROFILE = f"plugins.entries.{PLUGIN}.config.profile"
"""Where OpenClaw's file says by which profile its agent recalls, once memory-tui is the agent's memory."""
WRITER = "meta.lastTouchedVersion"


class Release(Struct, frozen=True):
    """The profile of a release, and what it was concluded from, as a clause."""

    profile: str
    reason: str


def release_meant(name: str, config: Config) -> Release:
    """Return the profile called `name`; `auto` is what the agent gets.

    Where memory-tui is the agent's memory, that is the profile that OpenClaw's file names for it; else that of the
    OpenClaw in use, and the newest one for an installation that shows no sign of its age.
    """
    if name != "auto":
        return Release(name, "")
    if config.kind != "openclaw":
        return Release(OWN_PROFILE, "")
    if is_agents_memory(config):
        return Release(config.text(AGENT_PROFILE), f"memory-tui is the agent's memory ({SLOT})")
    return installed_release() or release_by_files(config)


def is_agents_memory(config: Config) -> bool:
    """Tell whether `config` is OpenClaw's and gives the agent's memory slot to memory-tui."""
    return config.kind == "openclaw" and config.value(SLOT) == PLUGIN


def installed_release() -> Release | None:
    """Return the release whose program is on the search path; None where there is none, or it tells no version."""
    program = shutil.which("openclaw")
    for folder in Path(program).resolve().parents[:4] if program else ():
        try:
            with (folder / "package.json").open("rb") as file:
                manifest = json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict) and manifest.get("name") == "openclaw":
            version = str(manifest.get("version"))
            profile = profile_of(version)
            return Release(profile, f"OpenClaw {version} is installed") if profile else None
    return None


def profile_of(version: str) -> str:
    """Return the profile that is nearest to `version`; empty where it is no version of OpenClaw."""
    match = _VERSION.match(version)
    if match is None:
        return ""
    numbers = tuple(int(part or 0) for part in match.groups())
    if numbers >= (2026, 8, 0):
        return NEWEST_OPENCLAW
    return OLDER_OPENCLAW if numbers >= (2026, 3, 7) else "openclaw-2026.2"


def release_by_files(config: Config) -> Release:
    """Return the release that wrote what is there: its database, its older index, its section of the configuration."""
    if agent_database(config.agent.id).is_file():
        return Release(NEWEST_OPENCLAW, "the agent has a database of 2026.8 or later")
    if config.layout == "memory.search":
        return Release(NEWEST_OPENCLAW, "the configuration has memory.search, as from 2026.8 on")
    wrote = config.text(WRITER)
    if profile := profile_of(wrote):
        return Release(profile, f"OpenClaw {wrote} wrote the configuration last")
    if config.sections:
        return Release(OLDER_OPENCLAW, f"the configuration has {config.sections[-1][0]}, as up to 2026.7")
    if config.store_path.is_file():
        return Release(OLDER_OPENCLAW, "the agent has an index of its own, as up to 2026.7")
    return Release(NEWEST_OPENCLAW, "nothing shows an older release")
