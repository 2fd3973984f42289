"""Loading finds the configuration that applies to a workspace. It reads the file and checks every key.

OpenClaw: `agents.defaults.memorySearch` (up to 2026.7) or `memory.search` (from 2026.8). Own: the same tree at the top
of `config.json` in the user's configuration folder. All are read as JSON5.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.config.agents import AgentList, agent_list
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.config.keys import (
    BY_PATH,
    COMPATIBLE_APIS,
    FILE,
    NOT_ASKED,
    OF_AGENT,
    OWN_KEYS,
    PROVIDERS,
    SEARCH,
    Key,
    retired,
)
from memory_tui.config.model import Agent, Config, ConfigValue, Position, Problem, only_agent
from memory_tui.config.places import Environment, ExtraPath, expand, openclaw_path, own_path
from memory_tui.config.secret_refs import Secrets
from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError, SettingError
from memory_tui.providers import registry
from memory_tui.secrets.discreet import Discreet
from memory_tui.settings import BY_KEY, Value, check

MAX_BYTES = 16 << 20
"""A larger file is not taken for a configuration."""


def load(explicit: str | None, workspace: Path | None, agent: str = "") -> Config:
    """The configuration for `workspace` and `agent`.

    `explicit`; else OpenClaw's when it speaks of that agent, or of that workspace; else our own. Without an agent it is
    the one whose workspace it is, else the default one. Raises ConfigError when the file that applies cannot be read
    or understood, and SettingError for an agent that nobody knows.
    """
    if explicit is not None:
        document = _read(Path(explicit).expanduser())
        return document.config(_choose(document, workspace, agent))
    openclaw = openclaw_path()
    if openclaw.is_file():
        document = _read(openclaw)
        if agent or workspace is None or _agents_of(document, workspace):
            return document.config(_choose(document, workspace, agent))
    if own_path().is_file():
        document = _read(own_path())
        return document.config(_choose(document, workspace, agent))
    if agent and agent.strip().lower() != only_agent().id:
        raise _unknown_agent(agent, (only_agent(),), "No configuration lists agents")
    return Config(agents=(only_agent(),))


def parse(text: str, path: Path, agent: str = "") -> Config:
    """The configuration in `text`, as if read from `path`. Raises ConfigError with line and column, SettingError."""
    document = _document(text, path)
    return document.config(_choose(document, None, agent))


def _choose(document: ConfigFile, workspace: Path | None, agent: str) -> Agent:
    if not agent:
        fitting = _agents_of(document, workspace) if workspace else []
        return fitting[0] if fitting else document.agent_list.default
    match = document.agent_list.find(agent)
    if match is None:
        raise _unknown_agent(agent, document.agent_list.agents, f"{document.path} has no such agent")
    return match


def _agents_of(document: ConfigFile, workspace: Path) -> list[Agent]:
    """The agents whose notes are in `workspace`, the default one first."""
    fitting = [agent for agent in document.agent_list.agents if _same(workspace, agent.workspace)]
    return sorted(fitting, key=lambda agent: not agent.default)


def _unknown_agent(agent: str, agents: tuple[Agent, ...], why: str) -> SettingError:
    return SettingError(f"There is no agent {agent!r}: {why}.", f"Choose one of {', '.join(a.id for a in agents)}.")


def _same(a: Path, b: Path) -> bool:
    return os.path.realpath(a) == os.path.realpath(b)


def _read(path: Path) -> ConfigFile:
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"The configuration {path} cannot be read: {error.strerror}.", "Check the path given with --config."
        ) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(
            f"{path} is larger than {MAX_BYTES >> 20} MB, which no configuration is.",
            "Check the path given with --config.",
        )
    return _document(raw.decode("utf-8", "replace"), path)


def _document(text: str, path: Path) -> ConfigFile:
    from memory_tui.config.json5 import parse_json5 as tree_of

    tree = tree_of(SourceText(path, text))
    if not isinstance(tree.value, dict):
        raise ConfigError(
            f"{path} holds no settings: its top level is not an object.", "Put it in { }.", tree.line, tree.column
        )
    return ConfigFile.of(tree, path)


KEY = "$include"
MAX_FILES_DEEP = 10
MAX_INCLUDED_BYTES = 2 << 20


def joined(root: Node) -> tuple[Node, tuple[Problem, ...]]:
    """`root` with every include put in; included values know their own file.

    Raises ConfigError when an included file is not JSON5. A file that may not be included, or is missing, is a
    problem: the rest counts without it. Only files in or below the folder of the configuration may be.
    """
    if KEY not in root.source.text:
        return root, ()
    joiner = _Joiner(root.source.path.parent)
    return joiner.resolve(root, (root.source.path,)), tuple(joiner.problems)


def merged(below: Node, above: Node) -> Node:
    """Both as one: objects key by key, lists one after the other, and of anything else `above`."""
    if isinstance(below.value, dict) and isinstance(above.value, dict):
        members = dict(below.value)
        for key, node in above.value.items():
            members[key] = merged(members[key], node) if key in members else node
        return Node(members, above.source, above.start, above.end, above.repeated)
    if isinstance(below.value, list) and isinstance(above.value, list):
        return Node([*below.value, *above.value], above.source, above.start, above.end)
    return above


class _Joiner(Struct, frozen=True):
    folder: Path
    problems: list[Problem] = field(default_factory=list)

    def resolve(self, node: Node, chain: tuple[Path, ...]) -> Node:
        """`node` with its includes; `chain` are the files that lead to it."""
        if isinstance(node.value, list):
            items = [self.resolve(item, chain) for item in node.value]
            return Node(items, node.source, node.start, node.end)
        if not isinstance(node.value, dict):
            return node
        members = {key: self.resolve(child, chain) for key, child in node.value.items() if key != KEY}
        rest = Node(members, node.source, node.start, node.end, node.repeated)
        include = node.value.get(KEY)
        if include is None:
            return rest
        whole: Node | None = None
        for name in include.value if isinstance(include.value, list) else [include]:
            part = self._load(name, chain)
            whole = part if whole is None or part is None else merged(whole, part)
        if whole is None or (members and not isinstance(whole.value, dict)):
            return rest
        return merged(whole, rest) if members else whole

    def _load(self, name: Node, chain: tuple[Path, ...]) -> Node | None:
        path = Path(os.path.normpath(chain[-1].parent / str(name.value)))
        reason = self._refused(name, path, chain)
        if not reason:
            try:
                with open_regular(path) as file:
                    raw = file.read(MAX_INCLUDED_BYTES + 1)
                if len(raw) <= MAX_INCLUDED_BYTES:
                    return self.resolve(parse_json5(SourceText(path, raw.decode("utf-8", "replace"))), (*chain, path))
                reason = "it is larger than two megabytes"
            except OSError as error:
                reason = f"it cannot be read: {error.strerror}"
        label = repr(name.value) if isinstance(name.value, str) else "This"
        self.problems.append(
            Problem(KEY, f"{label} is not included: {reason}.", Position.of(name, KEY), "the rest counts without it")
        )
        return None

    def _refused(self, name: Node, path: Path, chain: tuple[Path, ...]) -> str:
        """Why `path` may not be included; empty where it may."""
        if not isinstance(name.value, str) or "\0" in name.value:
            return "it is not the name of a file"
        if path in chain:
            return "it includes itself"
        if len(chain) > MAX_FILES_DEEP:
            return f"includes are more than {MAX_FILES_DEEP} deep"
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder)):
            return "it is outside the folder of the configuration"
        return "" if path.is_file() else "there is no such file"


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb)?", re.IGNORECASE)
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4}
_LONGEST = 40
"""Longer text is cut in messages."""


def checked(key: Key, node: Node, environment: Environment) -> object:
    """The value of `node` for `key`; None for a secret, which stays in the file. Raises SettingError."""
    value = _substituted(key, node, environment)
    match key.kind:
        case "knob":
            return check(BY_KEY[key.path], value if not isinstance(value, dict | list) else _excerpt(node))
        case "switch":
            return _typed(key, isinstance(value, bool), value, "true or false", node)
        case "whole":
            return _number(key, value, node)
        case "choice":
            return _typed(key, value in key.choices, value, f"one of {', '.join(key.choices)}", node)
        case "choices":
            return _choices(key, node)
        case "text" | "path":
            return _typed(key, isinstance(value, str), value, "text", node)
        case "paths":
            return _paths(key, node, environment)
        case "size":
            return _size(key, value, node)
        case "zone":
            return _typed(key, _zone(value) is not None, value, "a time zone such as Europe/Berlin", node)
        case "secret":
            _typed(key, isinstance(value, str | dict), value, "text or a secret reference", node, secret=True)
        case "headers":
            fine = isinstance(value, dict) and all(isinstance(each.value, str | dict) for _, each in node.children())
            _typed(key, fine, value, "an object of texts", node, secret=True)
    return node.plain() if key.kind == "any" else None


def typed(key: Key, text: str) -> object:
    """The value of `key` that `text` of a command line stands for. Raises SettingError."""
    source = SourceText(Path("--set"), text)
    node = Node(text, source, 0, len(text))
    if key.kind in ("switch", "whole", "any"):
        try:
            node = parse_json5(source)
        except ConfigError:
            # What is no JSON is text, which the check of its kind refuses by name.
            return checked(key, node, Environment())
    return checked(key, node, Environment())


def _substituted(key: Key, node: Node, environment: Environment) -> object:
    value = node.value
    if not isinstance(value, str) or key.kind == "secret":
        return value
    text, missing = environment.substitute(value)
    if missing:
        raise SettingError(f"{key.path} names the variable {missing[0]}, which is not set.", "")
    return text


def _typed(key: Key, fits: bool, value: object, expected: str, node: Node, *, secret: bool = False) -> object:
    if not fits:
        raise SettingError(f"{key.path} is {expected}" + ("." if secret else f", not {_excerpt(node)}."), "")
    return value


def _excerpt(node: Node) -> str:
    value = node.value
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"{value:g}"


def _number(key: Key, value: object, node: Node) -> float:
    kind = "whole number" if key.kind == "whole" else "number"
    span = f"from {key.low:g}" + (f" to {key.high:g}" if math.isfinite(key.high) else "")
    expected = f"a {kind} {span}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{key.path} is {expected}, not {_excerpt(node)}.", "")
    if not key.low <= value <= key.high or (key.kind == "whole" and value != int(value)):
        raise SettingError(f"{key.path} is {expected}, not {value:g}.", "")
    return int(value) if key.kind == "whole" else float(value)


def _zone(value: object) -> dt.tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(value) if isinstance(value, str) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _choices(key: Key, node: Node) -> tuple[str, ...]:
    if not isinstance(node.value, list):
        raise SettingError(f"{key.path} is a list of {' and '.join(key.choices)}, not {_excerpt(node)}.", "")
    items = tuple(dict.fromkeys(str(item.value) for item in node.value))
    if not {*items} <= {*key.choices}:
        raise SettingError(f"{key.path} may only hold {', '.join(key.choices)}.", "")
    return items or (key.default if isinstance(key.default, tuple) else ())


def _paths(key: Key, node: Node, environment: Environment) -> tuple[str | ExtraPath, ...]:
    if not isinstance(node.value, list):
        raise SettingError(f"{key.path} is a list of paths, not {_excerpt(node)}.", "")
    paths: list[str | ExtraPath] = []
    for item in node.value:
        inner, pattern = item.get("path") or item, item.get("pattern")
        if not isinstance(inner.value, str) or not (pattern is None or isinstance(pattern.value, str)):
            raise SettingError(f"{key.path} is a list of paths, and {_excerpt(item)} is none.", "")
        if path := str(_substituted(key, inner, environment)).strip():
            paths.append(ExtraPath(path, str(pattern.value)) if pattern is not None and pattern.value else path)
    return tuple(dict.fromkeys(paths))


def _size(key: Key, value: object, node: Node) -> int:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(float(match[1]) * 1024 ** _UNITS[(match[2] or "b").lower()])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise SettingError(f"{key.path} is a number of bytes or a size such as 2mb, not {_excerpt(node)}.", "")
    return int(value)


OLDER, NEWER = "agents.defaults.memorySearch", "memory.search"
_STRICT = ("memory", "agents.defaults.compaction.memoryFlush")
"""Sections of the file that are about memory alone, where a key that is not documented is a mistake."""
_IGNORED = "nothing of it is used"
_REJECTED = "OpenClaw 2026.9 rejects the file until openclaw doctor --fix removes it"
_ALONE = "memory-tui answers by the built-in rules"


class ConfigFile(Discreet, frozen=True):
    """A configuration that was read, before it is known for which agent."""

    HIDDEN = ("tree",)
    tree: Node
    path: Path
    of_openclaw: bool
    agent_list: AgentList
    environment: Environment
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, root: Node, path: Path) -> ConfigFile:
        """Find out whose configuration `root` is, and its agents. Raises ConfigError for a broken included file."""
        tree, problems = joined(root)
        environment = Environment(tree)
        of_openclaw = path.name == "openclaw.json" or (tree.get("agents") or tree.get("memory", "search")) is not None
        if of_openclaw:
            return cls(tree, path, True, agent_list(tree, environment), environment, problems)
        return cls(tree, path, False, AgentList((only_agent(),)), environment, problems)

    def config(self, agent: Agent) -> Config:
        """What it says for `agent`."""
        layers = _Layers(self.environment)
        layout = self._openclaw(layers, agent) if self.of_openclaw else ""
        if not self.of_openclaw:
            layers.add(self.tree, "", (*SEARCH, *OWN_KEYS))
            if named := layers.entries.get("workspace"):
                agent = only_agent(str(named.value), expand(str(named.value)))
        layers.relations()
        if self.of_openclaw:
            self._around(layers, agent)
        problems = (*self.problems, *self.agent_list.problems, *layers.problems)
        ordered = sorted(problems, key=lambda p: (p.place.file != str(self.path), p.place.line, p.place.column))
        values = {
            key: Value(entry.value, str(entry.places[-1]))  # type: ignore[arg-type]
            for key, entry in layers.entries.items()
            if key in BY_KEY
        }
        return Config(
            path=self.path,
            kind="openclaw" if self.of_openclaw else "own",
            layout=layout,
            agent=agent,
            agents=self.agent_list.agents if self.of_openclaw else (agent,),
            values=values,
            entries=layers.entries,
            found=tuple(ordered),
            secrets=Secrets(self.tree, self.environment),
            environment=self.environment,
            tree=self.tree,
            sections=tuple(layers.sections),
            account=layers.account,
        )

    def _openclaw(self, layers: _Layers, agent: Agent) -> str:
        layers.add(self.tree, "", FILE, strict=_STRICT, others=("memory.search",))
        general = {path: self.tree.get(*path.split(".")) for path in (NEWER, OLDER)}
        layout = NEWER if general[NEWER] is not None else OLDER
        if layout == NEWER and (stray := general[OLDER]) is not None:
            layers.report(
                OLDER, f"{OLDER} and {NEWER} are both there.", Position.of(stray, OLDER), f"only {NEWER} is used"
            )
        if (section := general[layout]) is not None:
            layers.add(section, layout, SEARCH, newer=layout == NEWER)
        if entry := self.agent_list.entry(agent):
            for name in OF_AGENT:
                if (node := entry.node.get(*name.split("."))) is not None:
                    layers.take(BY_PATH[f"agents.defaults.{name}"], node, Position.of(node, f"{entry.path}.{name}"))
            for keys in (("memory", "search"), ("memorySearch",)):
                if (section := entry.node.get(*keys)) is not None:
                    layers.add(section, f"{entry.path}.{'.'.join(keys)}", SEARCH, newer=len(keys) > 1)
                    break
        self._custom_provider(layers)
        return layout

    def _custom_provider(self, layers: _Layers) -> None:
        """Let a provider that has only a name in `models.providers` count as the one whose wire it speaks."""
        named = layers.entries.get("provider")
        if named is None or named.value in (*PROVIDERS, *NOT_ASKED):
            return
        provider = self.tree.get("models", "providers", str(named.value))
        api, address = (provider.get("api"), provider.get("baseUrl")) if provider is not None else (None, None)
        wire = str(api.value) if api is not None else COMPATIBLE_APIS[0] if address is not None else ""
        name = "openai-compatible" if wire in COMPATIBLE_APIS else wire
        if provider is None or name not in registry.ACCOUNTS:
            return
        layers.entries["provider"], layers.account = replace(named, value=name), str(named.value)
        for part in ("baseUrl", "apiKey", "headers"):
            # Nothing of another account of that wire goes to this one's address.
            key = BY_PATH[f"models.providers.{registry.ACCOUNTS[name]}.{part}"]
            layers.entries.pop(key.path, None)
            if (node := provider.get(part)) is not None:
                layers.take(key, node, Position.of(node, f"models.providers.{named.value}.{part}"))

    def _around(self, layers: _Layers, agent: Agent) -> None:
        """Report what else of the file decides whether, and how, the agent searches its memory."""
        if (stray := self.tree.get("memorySearch")) is not None:
            layers.report(
                "memorySearch",
                f"memorySearch at the top of the file is an older place; OpenClaw moves it to {NEWER} by doctor --fix.",
                Position.of(stray, "memorySearch"),
                _IGNORED,
            )
        for path in ("plugins.enabled", "plugins.entries.memory-core.enabled"):
            node = self.tree.get(*path.split("."))
            if node is not None and node.value is False:
                layers.report(
                    path,
                    "OpenClaw's agent has no memory plug-in, so it searches nothing.",
                    Position.of(node, path),
                    _ALONE,
                )
        for path, denied in self._denied(agent):
            if {item.value for item in denied} & {"memory_search", "group:memory", "*"}:
                layers.report(
                    path,
                    "OpenClaw's agent may not use memory_search.",
                    Position.of(denied[0], path),
                    _ALONE,
                )

    def _denied(self, agent: Agent) -> Iterator[tuple[str, list[Node]]]:
        """The tools that are denied to everybody, and to the agent, with the key path."""
        entry = self.agent_list.entry(agent)
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
        self.entries: dict[str, ConfigValue] = {}
        self.problems: list[Problem] = []
        self.sections: list[tuple[str, Node]] = []
        self.account = ""

    def report(self, key: str, message: str, place: Position, used: str = "") -> None:
        self.problems.append(Problem(key, message, place, used))

    def add(
        self,
        section: Node,
        path: str,
        keys: tuple[Key, ...],
        *,
        strict: tuple[str, ...] = ("",),
        others: tuple[str, ...] = (),
        newer: bool = False,
    ) -> None:
        """Take the values of `keys` below `section`; elsewhere below one of `strict` nothing may be, but `others`.

        A `newer` section is one that only OpenClaw from 2026.8 on reads, which took some of the keys away.
        """
        table = {key.path: key for key in keys}
        if not isinstance(section.value, dict):
            self.report(path, f"{path} holds settings, so it is an object.", Position.of(section, path), _IGNORED)
            return
        if keys is not FILE:
            self.sections.append((path, section))
        for below, node, repeated in _walk(section, table):
            whole = f"{path}.{below}" if path else below
            if repeated:
                self.report(
                    whole, f"{whole} is there more than once.", Position.of(node, whole), "the last one is used"
                )
            elif newer and (fixed := retired(below)):
                self.report(whole, f"{whole} is retired: {fixed}.", Position.of(node, whole), _REJECTED)
                if below in table:
                    self.take(table[below], node, Position.of(node, whole))
            elif below in table:
                self.take(table[below], node, Position.of(node, whole))
            elif not _inside(below, strict) or below in others:
                continue
            elif any(key.startswith(f"{below}.") for key in table):
                self.report(whole, f"{whole} holds settings, so it is an object.", Position.of(node, whole), _IGNORED)
            else:
                self.report(whole, _unknown(below, table), Position.of(node, whole), "it is ignored")

    def take(self, key: Key, node: Node, place: Position) -> None:
        """Take the value of `key` that stands at `node`, or report why it cannot be used."""
        try:
            value = checked(key, node, self.environment)
        except SettingError as error:
            self.report(place.path, error.message, place, self._instead(key))
            return
        places: tuple[Position, ...] = (place,)
        before = self.entries.get(key.path)
        joins = key.kind == "paths" and before is not None
        if joins and before is not None and isinstance(before.value, tuple) and isinstance(value, tuple):
            value = tuple(dict.fromkeys([*before.value, *value]))
            places = (*before.places, place)
        self.entries[key.path] = ConfigValue(value, places, node)

    def _instead(self, key: Key) -> str:
        before = self.entries.get(key.path)
        if before is not None:
            return f"{'that' if before.value is None else before.value} of line {before.places[-1].line} is used"
        return "nothing is used" if key.default in (None, ()) else f"the default {key.default} is used"

    def relations(self) -> None:
        """Report what is wrong with values together, or true of one that a reader of answers must know."""
        for name, instead in (
            ("provider", "words alone are searched, unless fallback names another"),
            ("fallback", "nobody takes over when the provider fails, and words alone are searched"),
        ):
            self._about(
                name,
                lambda v: v not in (*PROVIDERS, ""),
                f"{name} names a provider that memory-tui does not ask.",
                instead,
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
            self.report(entry.places[-1].path, message, entry.places[-1], used)


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
    import difflib

    if any(path == key.path for key in OWN_KEYS):
        return f"{path} is a setting of memory-tui, not of OpenClaw; its place is {own_path()}."
    near = difflib.get_close_matches(path, list(table), n=1, cutoff=0.75)
    return f"{path} is not a documented setting{f'; did you mean {near[0]}?' if near else '.'}"
