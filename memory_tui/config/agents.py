"""OpenClaw's agents, as its configuration names them. Each has a name and a folder; one is the default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from memory_tui.config.json5 import Node
from memory_tui.config.model import MAIN, Agent, Position, Problem, only_agent
from memory_tui.config.places import Environment, default_workspace, expand, state_folder


class AgentEntry(Struct, frozen=True):
    """An agent as the file has it: `path` is the key path of `node`."""

    id: str
    node: Node
    path: str
    default: bool


class AgentList(Struct, frozen=True):
    """Every agent of a file, the default one first in rank, not in order; `written` has the same ids."""

    agents: tuple[Agent, ...]
    written: tuple[AgentEntry, ...] = ()
    problems: tuple[Problem, ...] = field(default=())

    @property
    def default(self) -> Agent:
        """The agent that is meant when nobody names one."""
        return next(agent for agent in self.agents if agent.default)

    def find(self, name: str) -> Agent | None:
        """The agent called `name`, however it is spelled."""
        return next((agent for agent in self.agents if agent.id == normalise(name)), None)

    def entry(self, agent: Agent) -> AgentEntry | None:
        """What the file has of `agent`; None for the agent of a file that lists none."""
        return next((entry for entry in self.written if entry.id == agent.id), None)


def normalise(name: str) -> str:
    """An agent's id as OpenClaw writes it into paths and keys; `main` for a blank one."""
    lower = name.strip().lower()
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", lower):
        return lower
    return re.sub(r"[^a-z0-9_-]+", "-", lower).strip("-")[:64] or MAIN


def agent_list(tree: Node, environment: Environment) -> AgentList:
    """The agents of OpenClaw's configuration `tree`; one called main where it lists none."""
    problems: list[Problem] = []
    seen: dict[str, AgentEntry] = {}
    for entry in _written(tree, problems):
        if entry.id in seen:
            problems.append(
                Problem(
                    entry.path,
                    f"The agent {entry.id!r} is there twice.",
                    Position.of(entry.node, entry.path),
                    f"only the one of line {seen[entry.id].node.line} is used",
                )
            )
        else:
            seen[entry.id] = entry
    entries = tuple(seen.values())
    chosen = _default(entries, problems)
    newer = tree.get("agents", "entries") is not None or tree.get("memory", "search") is not None
    # What is wrong with this one is found where every documented key is checked.
    shared = _workspace(tree.get("agents", "defaults"), "agents.defaults", environment, [])
    folders = _Folders(shared, newer, len(entries) <= 1)
    if not entries:
        return AgentList((only_agent(shared, folders.of(MAIN, "", default=True)),), (), tuple(problems))
    agents = []
    for entry in entries:
        default = entry.id == chosen
        workspace = _workspace(entry.node, entry.path, environment, problems)
        named = workspace or (shared if default or folders.alone else "")
        agents.append(
            Agent(
                entry.id,
                folders.of(entry.id, workspace, default=default),
                default,
                named,
                Position.of(entry.node, entry.path),
            )
        )
    return AgentList(tuple(agents), entries, tuple(problems))


class _Folders(Struct, frozen=True):
    """Where the notes of an agent are: `shared` is agents.defaults.workspace, `newer` the rules from 2026.8."""

    shared: str
    newer: bool
    alone: bool

    def of(self, name: str, workspace: str, *, default: bool) -> Path:
        if workspace:
            return expand(workspace)
        if self.alone or (default and not self.newer):
            return expand(self.shared) if self.shared else default_workspace(newer=self.newer)
        if not (self.newer and self.shared):
            return state_folder() / f"workspace-{name}"
        below = expand(self.shared) / name
        # The default agent of a fleet may still be where it was when it was alone.
        return expand(self.shared) if default and not below.is_dir() else below


def _written(tree: Node, problems: list[Problem]) -> Iterator[AgentEntry]:
    """Each agent in the order of the file, from `agents.entries`, else from `agents.list`."""
    entries, listed = tree.get("agents", "entries"), tree.get("agents", "list")
    if entries is not None and isinstance(entries.value, dict):
        rows = [(f"agents.entries.{name}", node, name) for name, node in entries.children()]
    elif listed is not None and isinstance(listed.value, list):
        rows = [
            (f"agents.list[{i}]", node, _id(node, f"agents.list[{i}]", problems)) for i, node in enumerate(listed.value)
        ]
    else:
        for path, node in (("agents.entries", entries), ("agents.list", listed)):
            if node is not None:
                problems.append(Problem(path, f"{path} does not list agents.", Position.of(node, path), "main is used"))
        return
    for path, node, name in rows:
        if not isinstance(node.value, dict):
            problems.append(Problem(path, f"{path} is not an agent.", Position.of(node, path), "it is left out"))
            continue
        flag = node.get("default")
        yield AgentEntry(normalise(name), node, path, flag is not None and flag.value is True)


def _id(node: Node, path: str, problems: list[Problem]) -> str:
    named = node.get("id")
    if named is not None and isinstance(named.value, str) and named.value.strip():
        return named.value
    if isinstance(node.value, dict):
        problems.append(
            Problem(
                f"{path}.id",
                f"{path} has no id that is text.",
                Position.of(named or node, f"{path}.id"),
                f"{MAIN!r} is used",
            )
        )
    return MAIN


def _default(entries: tuple[AgentEntry, ...], problems: list[Problem]) -> str:
    """The id of the default agent: the first that says so, else the first."""
    flagged = [entry for entry in entries if entry.default]
    for entry in flagged[1:]:
        path = f"{entry.path}.default"
        problems.append(
            Problem(
                path,
                f"{entry.id!r} is a second default agent.",
                Position.of(entry.node.get("default") or entry.node, path),
                f"{flagged[0].id!r} of line {flagged[0].node.line} is used",
            )
        )
    return (flagged or list(entries))[0].id if entries else MAIN


def _workspace(node: Node | None, path: str, environment: Environment, problems: list[Problem]) -> str:
    """The workspace that `node` names, with its variables replaced; empty for none and for one that is unusable."""
    written = node.get("workspace") if node else None
    if written is None:
        return ""
    place = Position.of(written, f"{path}.workspace")
    if not isinstance(written.value, str):
        problems.append(Problem(place.path, f"{place.path} is not a path.", place, "the usual folder is used"))
        return ""
    text, missing = environment.substitute(written.value.strip())
    if missing:
        problems.append(
            Problem(place.path, f"The variable {missing[0]} is not set.", place, "the usual folder is used")
        )
    return "" if missing else text
