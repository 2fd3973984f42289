"""From a tree to a Config: the layers of one agent, every documented value checked, everything else reported."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memory_tui.config.agents import Roster, roster
from memory_tui.config.checks import checked
from memory_tui.config.documented import BY_PATH, FILE, NEWER_PROVIDERS, OWN, PROVIDERS, SEARCH, Key
from memory_tui.config.environment import Environment
from memory_tui.config.include import joined
from memory_tui.config.places import expand, own_path
from memory_tui.config.record import Agent, Config, Entry, Place, Problem, only_agent
from memory_tui.config.secrets import Secrets
from memory_tui.config.tree import Node
from memory_tui.errors import SettingError
from memory_tui.settings import BY_KEY, Value

OLDER, NEWER = "agents.defaults.memorySearch", "memory.search"
_STRICT = ("memory", "agents.defaults.compaction.memoryFlush")
"""Sections of the file that are about memory alone, where a key that is not documented is a mistake."""
_IGNORED = "nothing of it is used"
_ALONE = "memory-tui answers by the built-in rules"


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration that was read, before it is known for which agent."""

    tree: Node = field(repr=False)
    path: Path
    theirs: bool
    roster: Roster
    environment: Environment
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, root: Node, path: Path) -> Document:
        """Find out whose configuration `root` is, and its agents. Raises ConfigError for a broken included file."""
        tree, problems = joined(root)
        environment = Environment(tree)
        theirs = path.name == "openclaw.json" or any(
            tree.get(*keys) is not None for keys in (("agents",), ("memory", "search"))
        )
        if theirs:
            return cls(tree, path, True, roster(tree, environment), environment, problems)
        return cls(tree, path, False, Roster((only_agent(),)), environment, problems)

    def config(self, agent: Agent) -> Config:
        """What it says for `agent`."""
        layers = _Layers(self.environment)
        layout = self._openclaw(layers, agent) if self.theirs else ""
        if not self.theirs:
            layers.add(self.tree, "", (*SEARCH, *OWN))
            if named := layers.entries.get("workspace"):
                agent = only_agent(str(named.value), expand(str(named.value)))
        layers.relations()
        if self.theirs:
            self._around(layers, agent)
        problems = (*self.problems, *self.roster.problems, *layers.problems)
        found = sorted(problems, key=lambda p: (p.place.file != str(self.path), p.place.line, p.place.column))
        values = {
            key: Value(entry.value, str(entry.places[-1]))  # type: ignore[arg-type]
            for key, entry in layers.entries.items()
            if key in BY_KEY
        }
        return Config(
            path=self.path,
            kind="openclaw" if self.theirs else "own",
            layout=layout,
            agent=agent,
            agents=self.roster.agents if self.theirs else (agent,),
            values=values,
            entries=layers.entries,
            found=tuple(found),
            secrets=Secrets(self.tree, self.environment),
            environment=self.environment,
            tree=self.tree,
            sections=tuple(layers.sections),
        )

    def _openclaw(self, layers: _Layers, agent: Agent) -> str:
        layers.add(self.tree, "", FILE, strict=_STRICT, others=("memory.search",))
        general = {path: self.tree.get(*path.split(".")) for path in (NEWER, OLDER)}
        layout = NEWER if general[NEWER] is not None else OLDER
        if layout == NEWER and (stray := general[OLDER]) is not None:
            layers.say(OLDER, f"{OLDER} and {NEWER} are both there.", Place.of(stray, OLDER), f"only {NEWER} is used")
        if (section := general[layout]) is not None:
            layers.add(section, layout, SEARCH)
        if entry := self.roster.entry(agent):
            for name in ("mode", "workspaceAccess"):
                if (node := entry.node.get("sandbox", name)) is not None:
                    key = BY_PATH[f"agents.defaults.sandbox.{name}"]
                    layers.take(key, node, Place.of(node, f"{entry.path}.sandbox.{name}"))
            for keys in (("memory", "search"), ("memorySearch",)):
                if (section := entry.node.get(*keys)) is not None:
                    layers.add(section, f"{entry.path}.{'.'.join(keys)}", SEARCH)
                    break
        return layout

    def _around(self, layers: _Layers, agent: Agent) -> None:
        """Report what else of the file decides whether, and how, the agent searches its memory."""
        if (stray := self.tree.get("memorySearch")) is not None:
            layers.say(
                "memorySearch",
                f"memorySearch at the top of the file is an older place; OpenClaw moves it to {NEWER} by doctor --fix.",
                Place.of(stray, "memorySearch"),
                _IGNORED,
            )
        for path in ("plugins.enabled", "plugins.entries.memory-core.enabled"):
            node = self.tree.get(*path.split("."))
            if node is not None and node.value is False:
                layers.say(
                    path,
                    "OpenClaw's agent has no memory plug-in, so it searches nothing.",
                    Place.of(node, path),
                    _ALONE,
                )
        for path, denied in self._denied(agent):
            if {item.value for item in denied} & {"memory_search", "group:memory", "*"}:
                layers.say(
                    path,
                    "OpenClaw's agent may not use memory_search.",
                    Place.of(denied[0], path),
                    _ALONE,
                )
        named = layers.entries.get("provider")
        known = (*PROVIDERS, *NEWER_PROVIDERS, "")
        if named is None or named.value in known or self.tree.get("models", "providers", str(named.value)) is None:
            return
        layers.say(
            named.places[-1].path,
            f"provider names models.providers.{named.value}, which memory-tui does not ask by that name.",
            named.places[-1],
            "an OpenAI-compatible one is asked as provider openai with remote.baseUrl",
        )

    def _denied(self, agent: Agent) -> Iterator[tuple[str, list[Node]]]:
        """The tools that are denied to everybody, and to the agent, with the key path."""
        entry = self.roster.entry(agent)
        for path, node in (
            ("tools.deny", self.tree.get("tools", "deny")),
            (f"{entry.path}.tools.deny" if entry else "", entry.node.get("tools", "deny") if entry else None),
        ):
            if node is not None and isinstance(node.value, list):
                yield path, node.value


class _Layers:
    """Values from the general to the particular; each layer counts before those that were added before it."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.entries: dict[str, Entry] = {}
        self.problems: list[Problem] = []
        self.sections: list[tuple[str, Node]] = []

    def say(self, key: str, message: str, place: Place, used: str = "") -> None:
        self.problems.append(Problem(key, message, place, used))

    def add(
        self,
        section: Node,
        path: str,
        keys: tuple[Key, ...],
        *,
        strict: tuple[str, ...] = ("",),
        others: tuple[str, ...] = (),
    ) -> None:
        """Take the values of `keys` below `section`; elsewhere below one of `strict` nothing may be, but `others`."""
        table = {key.path: key for key in keys}
        if not isinstance(section.value, dict):
            self.say(path, f"{path} holds settings, so it is an object.", Place.of(section, path), _IGNORED)
            return
        if keys is not FILE:
            self.sections.append((path, section))
        for below, node, repeated in _walk(section, table):
            whole = f"{path}.{below}" if path else below
            if repeated:
                self.say(whole, f"{whole} is there more than once.", Place.of(node, whole), "the last one is used")
            elif below in table:
                self.take(table[below], node, Place.of(node, whole))
            elif not _inside(below, strict) or below in others:
                continue
            elif any(key.startswith(f"{below}.") for key in table):
                self.say(whole, f"{whole} holds settings, so it is an object.", Place.of(node, whole), _IGNORED)
            else:
                self.say(whole, _unknown(below, table), Place.of(node, whole), "it is ignored")

    def take(self, key: Key, node: Node, place: Place) -> None:
        """Take the value of `key` that stands at `node`, or report why it cannot be used."""
        try:
            value = checked(key, node, self.environment)
        except SettingError as error:
            self.say(place.path, error.message, place, self._instead(key))
            return
        places: tuple[Place, ...] = (place,)
        before = self.entries.get(key.path)
        joins = key.kind == "paths" and before is not None
        if joins and before is not None and isinstance(before.value, tuple) and isinstance(value, tuple):
            value = tuple(dict.fromkeys([*before.value, *value]))
            places = (*before.places, place)
        self.entries[key.path] = Entry(value, places, node)

    def _instead(self, key: Key) -> str:
        before = self.entries.get(key.path)
        if before is not None:
            return f"{'that' if before.value is None else before.value} of line {before.places[-1].line} is used"
        return "nothing is used" if key.default in (None, ()) else f"the default {key.default} is used"

    def relations(self) -> None:
        """Report what is wrong with values together, or true of one that a reader of answers must know."""
        for name in ("provider", "fallback"):
            self._about(
                name,
                lambda v: v not in (*PROVIDERS, *NEWER_PROVIDERS, ""),
                f"{name} is not one that memory-tui or OpenClaw is known to have.",
                "only words are searched" if name == "provider" else "nothing is used",
            )
        self._about(
            "fallback",
            lambda v: v in NEWER_PROVIDERS,
            "fallback names a provider that OpenClaw has and memory-tui has not.",
            "nobody takes over when the provider fails, and words alone are searched",
        )
        sessions = self.entries.get("experimental.sessionMemory")
        if sessions is None or sessions.value is not True:
            self._about(
                "sources",
                lambda v: isinstance(v, tuple) and "sessions" in v,
                "sources names sessions, which experimental.sessionMemory has to allow.",
                "transcripts are not searched",
            )
        self._about(
            "plugins.slots.memory",
            lambda v: v == "none",
            "OpenClaw's agent has no memory plug-in, so it searches nothing.",
            "memory-tui answers by the built-in rules",
        )
        self._about(
            "plugins.slots.memory",
            lambda v: v not in ("", "none", "memory-core", "memory-tui"),
            "OpenClaw's agent asks another memory plug-in.",
            "memory-tui answers by the built-in rules, so that answers can differ",
        )
        self._about("enabled", lambda v: v is False, "Memory search is disabled: the agent recalls nothing.")
        self._about(
            "memory.backend",
            lambda v: v == "qmd",
            "OpenClaw asks QMD.",
            "memory-tui answers by the built-in rules, so that answers can differ",
        )
        weights = [self.entries.get(f"query.hybrid.{side}Weight") for side in ("vector", "text")]
        if all(weight is not None and weight.value == 0 for weight in weights):
            self._about("query.hybrid.textWeight", lambda _: True, "Both weights are 0.", "0.7 and 0.3 are used")
        tokens = self.entries.get("chunking.tokens")
        size = int(str(tokens.value)) if tokens else int(BY_KEY["chunking.tokens"].default)
        self._about(
            "chunking.overlap",
            lambda v: isinstance(v, int) and v >= size,
            f"chunking.overlap is not less than chunking.tokens, {size}.",
            f"{size - 1} is used",
        )

    def _about(self, key: str, wrong: Callable[[object], bool], message: str, used: str = "") -> None:
        entry = self.entries.get(key)
        if entry is not None and wrong(entry.value):
            self.say(entry.places[-1].path, message, entry.places[-1], used)


def _inside(path: str, sections: tuple[str, ...]) -> bool:
    return any(not section or path == section or path.startswith(f"{section}.") for section in sections)


def _walk(section: Node, table: Mapping[str, Key]) -> Iterator[tuple[str, Node, bool]]:
    """Path and node of every documented value, and of everything that stands where none can be.

    One that is there more than once comes a second time, before its value, with True.
    """
    branches = {key[:i] for key in table for i, letter in enumerate(key) if letter == "."}
    waiting = [("", section)]
    while waiting:
        prefix, parent = waiting.pop()
        for name, node in parent.children():
            path = f"{prefix}{name}"
            if name in parent.repeated:
                yield path, node, True
            if path in branches and isinstance(node.value, dict):
                waiting.append((f"{path}.", node))
            else:
                yield path, node, False


def _unknown(path: str, table: Mapping[str, Key]) -> str:
    if any(path == key.path for key in OWN):
        return f"{path} is a setting of memory-tui, not of OpenClaw; its place is {own_path()}."
    near = difflib.get_close_matches(path, list(table), n=1, cutoff=0.75)
    return f"{path} is not a documented setting{f'; did you mean {near[0]}?' if near else '.'}"
