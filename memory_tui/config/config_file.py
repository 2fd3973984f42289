"""What a configuration file says for one agent, each value with its place in the file; no defaults of settings.

Those stand in `settings.py`, and `load.py` finds and reads the file.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct, field

from memory_tui.config.config_keys import BY_PATH
from memory_tui.config.environment import Environment, FoundSecret
from memory_tui.config.json5 import Node, read_json5, word_of
from memory_tui.config.places import ExtraPath, default_workspace, expand, state_folder
from memory_tui.config.settings import BY_KEY, Scalar, Value
from memory_tui.errors import ConfigError
from memory_tui.providers import registry
from memory_tui.providers.options import Shared
from memory_tui.secrets import Discreet, Secret

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
