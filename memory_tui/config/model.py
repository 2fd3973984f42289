"""What reading a configuration gives: values with their places, agents, and problems; all of it plain and frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from memory_tui.config.environment import Environment
from memory_tui.config.extra import ExtraPath
from memory_tui.config.places import default_workspace
from memory_tui.config.secrets import FoundSecret, Secrets
from memory_tui.config.tree import Node
from memory_tui.settings import Value

MAIN = "main"
"""The agent of a configuration that lists none."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written: file, whole key path, line and column from 1."""

    file: str
    path: str
    line: int
    column: int

    @classmethod
    def of(cls, node: Node, path: str) -> Place:
        """The place of `node`."""
        line, column = node.source.at(node.start)
        return cls(str(node.source.path), path, line, column)

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} {self.path}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the file that could not be used as it is: what, where, and what counts instead."""

    key: str
    message: str
    place: Place
    used: str = ""

    def __str__(self) -> str:
        where = f"{Path(self.place.file).name} line {self.place.line}, {self.place.path}"
        return f"{self.message} ({where}{'; ' if self.used else ''}{self.used}.)"


@dataclass(frozen=True, slots=True)
class Entry:
    """A documented value that a file holds, checked; `places` are several where lists are joined.

    `value` is what counts, None for a secret.
    """

    value: object
    places: tuple[Place, ...]
    node: Node = field(repr=False)


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent of OpenClaw: its normalised id, and the folder of its notes, which need not exist.

    `named` is the workspace as a configuration writes it, empty where it is the documented default.
    """

    id: str
    workspace: Path
    default: bool
    named: str = ""
    place: Place | None = None


def only_agent(named: str = "", workspace: Path | None = None) -> Agent:
    """The agent of a configuration that lists none."""
    return Agent(MAIN, workspace or default_workspace(newer=False), True, named)


@dataclass(frozen=True, slots=True)
class Config:
    """What a configuration file says for one agent; all empty when there is none.

    `values` are the knobs it sets, `entries` every documented value it sets, by key. `layout` is where in the file
    memory search is configured; `tree` is the whole file, and `sections` are the objects of it that hold such values,
    by key path, the one that counts most last.
    """

    path: Path | None = None
    kind: Literal["openclaw", "own", "none"] = "none"
    layout: str = ""
    agent: Agent = field(default_factory=only_agent)
    agents: tuple[Agent, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    found: tuple[Problem, ...] = ()
    secrets: Secrets | None = None
    environment: Environment = field(default_factory=Environment)
    tree: Node | None = field(default=None, repr=False)
    sections: tuple[tuple[str, Node], ...] = field(default=(), repr=False)

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
        return str(self.value("model") or "")

    @property
    def extra_paths(self) -> tuple[str | ExtraPath, ...]:
        """Notes and folders outside the usual places, as the file writes them."""
        found = self.value("extraPaths")
        return tuple(found) if isinstance(found, tuple) else ()

    def value(self, key: str) -> object:
        """The documented value of `key`: from the file, else the default; None where there is neither."""
        from memory_tui.config.documented import BY_PATH

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
