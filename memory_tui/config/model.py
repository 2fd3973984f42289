"""A configuration as frozen values, each with the place it comes from."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field

from memory_tui import profiles
from memory_tui.config.json5 import Node
from memory_tui.config.keys import BACKEND, FILE, OWN_KEYS, QMD, SEARCH, Key, retired
from memory_tui.config.places import Environment, ExtraPath, default_workspace
from memory_tui.config.secret_refs import FoundSecret, Secrets
from memory_tui.secrets.discreet import Discreet
from memory_tui.settings import BY_KEY, Settings, Value

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
        """The place of `node`."""
        line, column = node.source.at(node.start)
        return cls(str(node.source.path), path, line, column)

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} {self.path}"


class Problem(Struct, frozen=True):
    """Something in the file that could not be used as it is: what, where, and what counts instead."""

    key: str
    message: str
    place: Position
    used: str = ""

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


class Agent(Struct, frozen=True):
    """One agent of OpenClaw: its normalised id, and the folder of its notes, which need not exist.

    `named` is the workspace as a configuration writes it, empty where it is the documented default.
    """

    id: str
    workspace: Path
    default: bool
    named: str = ""
    place: Position | None = None


def only_agent(named: str = "", workspace: Path | None = None) -> Agent:
    """The agent of a configuration that lists none."""
    return Agent(MAIN, workspace or default_workspace(newer=False), True, named)


class Config(Discreet, frozen=True):
    """What a configuration file says for one agent; all empty when there is none.

    `values` are the knobs it sets, `entries` every documented value it sets, by key. `layout` is where in the file
    memory search is configured; `tree` is the whole file, and `sections` are the objects of it that hold such values,
    by key path, the one that counts most last. `account` is the id in `models.providers` of a provider that has only
    a name there.
    """

    HIDDEN = ("entries", "tree", "sections")

    path: Path | None = None
    kind: Literal["openclaw", "own", "none"] = "none"
    layout: str = ""
    agent: Agent = field(default_factory=only_agent)
    agents: tuple[Agent, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    entries: Mapping[str, ConfigValue] = field(default_factory=lambda: MappingProxyType({}))
    found: tuple[Problem, ...] = ()
    secrets: Secrets | None = None
    environment: Environment = field(default_factory=Environment)
    tree: Node | None = None
    sections: tuple[tuple[str, Node], ...] = ()
    account: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each value that could not be used, with the place and the value used instead."""
        return tuple(map(str, self.found))

    @property
    def workspace(self) -> str:
        """The agent's workspace as the file writes it; empty where it names none."""
        return self.agent.named

    @property
    def provider(self) -> str:
        """The embedding provider asked for; empty where none is."""
        return str(self.value("provider") or "") if "provider" in self.entries else ""

    @property
    def model(self) -> str:
        """The embedding model asked for; empty where none is."""
        return str(self.value("model") or "").removeprefix(f"{self.account}/" if self.account else "")

    @property
    def time_zone(self) -> dt.tzinfo | None:
        """The user's time zone; None for that of this machine."""
        named = self.value("agents.defaults.userTimezone")
        if not isinstance(named, str):
            return None
        from zoneinfo import ZoneInfo

        return ZoneInfo(named)

    @property
    def extra_paths(self) -> tuple[str | ExtraPath, ...]:
        """Notes and folders outside the usual places, as the file writes them."""
        paths = self.value("extraPaths")
        return tuple(paths) if isinstance(paths, tuple) else ()

    def value(self, key: str) -> object:
        """The documented value of `key`: from the file, else the default; None where there is neither."""
        from memory_tui.config.keys import BY_PATH

        entry = self.entries.get(key)
        return entry.value if entry else BY_PATH[key].default

    def secret(self, key: str) -> FoundSecret | None:
        """The secret of `key`, looked up now; None when the file has none."""
        entry = self.entries.get(key)
        return self.secrets.read(entry.node) if entry and self.secrets else None

    def headers(self, key: str = "remote.headers") -> Iterator[tuple[str, FoundSecret]]:
        """Name and value of each header of `key`."""
        entry = self.entries.get(key)
        if entry and self.secrets:
            for name, node in entry.node.children():
                yield name, self.secrets.read(node)

    @property
    def store_path(self) -> Path:
        """OpenClaw's own index of this agent, up to 2026.6; memory-tui never writes it."""
        from memory_tui.config.places import expand, state_folder

        named = self.value("store.path")
        if not isinstance(named, str):
            return state_folder() / "memory" / f"{self.agent.id}.sqlite"
        return expand(named.replace("{agentId}", self.agent.id))

    @property
    def disabled(self) -> str:
        """Why memory search is off, as a sentence; empty where it is on."""
        entry = self.entries.get("enabled")
        if entry is None or entry.value is not False:
            return ""
        place = entry.places[-1]
        return f"Memory search is disabled by the configuration: enabled is false in line {place.line} of {place.file}."


_CREDENTIALS = re.compile(
    r"(?<=//)[^/@\s]+@|(?<=[?&])([\w-]*(?:key|token|secret|password|sig)[\w-]*=)[^&#\s]+", re.IGNORECASE
)
TAKES_EFFECT = "takes effect"


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


class AgentRow(Struct, frozen=True):
    """One agent for a list; `named` is its workspace as the file writes it, empty where that is the usual one."""

    id: str
    default: bool
    workspace: str
    named: str
    place: Position | None


def agent_rows(config: Config) -> Iterator[AgentRow]:
    """The agents of the configuration, in its order."""
    for agent in config.agents:
        yield AgentRow(agent.id, agent.default, str(agent.workspace), agent.named, agent.place)


def rows(config: Config, settings: Settings, providers: Sequence[str]) -> Iterator[KeyRow]:
    """Every documented value; `settings` are those in force, `providers` the names that memory-tui has."""
    own_keys = OWN_KEYS if config.kind != "openclaw" else [key for key in OWN_KEYS if key.kind == "knob"]
    for key in (*SEARCH, *FILE, *own_keys):
        effect = _effect(key, config, settings, providers)
        entry = config.entries.get(key.path)
        yield KeyRow(
            key=key.path,
            value=_value(key, config, settings),
            default=key.default,
            written=entry is not None,
            origin=_origin(key, config, settings),
            places=entry.places if entry else (),
            meaning=key.meaning,
            takes_effect=not effect,
            effect=effect or TAKES_EFFECT,
            retired=retired(key.path) if key not in FILE else "",
        )


def _value(key: Key, config: Config, settings: Settings) -> object:
    entry = config.entries.get(key.path)
    if key.kind == "knob":
        return settings.values[key.path].value
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
    if key.kind == "paths" and isinstance(entry.value, tuple):
        return tuple(
            {"path": item.path, "pattern": item.pattern} if isinstance(item, ExtraPath) else item
            for item in entry.value
        )
    return entry.value


def _origin(key: Key, config: Config, settings: Settings) -> str:
    if key.kind == "knob":
        return settings.values[key.path].origin
    entry = config.entries.get(key.path)
    return " and ".join(map(str, entry.places)) if entry else "default"


def _effect(key: Key, config: Config, settings: Settings, providers: Sequence[str]) -> str:
    """Why the value changes nothing here; empty where it takes effect."""
    entry = config.entries.get(key.path)
    if key.path == "provider":
        supported = config.provider in ("", "auto", *providers)
        instead = "words alone are searched, unless fallback names another"
        return "" if supported else f"none: memory-tui does not ask {config.provider!r}; {instead}"
    if key.kind != "knob":
        idle = key.path.startswith(QMD) and config.value(BACKEND) != "qmd"
        return key.effect or ("none while memory.backend is builtin; --backend qmd asks QMD" if idle else "")
    profile = settings.word("profile")
    if why := profiles.get(profile).ignores.get(key.path):
        return f"none under profile {profile}: {why}"
    value = settings.values[key.path]
    if entry is not None and entry.value != value.value and key.path in BY_KEY and key.path != "profile":
        return f"none: {entry.places[-1]} says {entry.value}, but {value.origin} says {value.value}"
    return ""
