"""Every documented value with where it came from, what it means and what it does here; secrets stay unseen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_tui import profiles
from memory_tui.config.documented import FILE, OWN, SEARCH, Key
from memory_tui.config.extra import ExtraPath
from memory_tui.config.record import Config, Place
from memory_tui.settings import BY_KEY, Settings

_CREDENTIALS = re.compile(
    r"(?<=//)[^/@\s]+@|(?<=[?&])([\w-]*(?:key|token|secret|password|sig)[\w-]*=)[^&#\s]+", re.IGNORECASE
)
TAKES_EFFECT = "takes effect"


@dataclass(frozen=True, slots=True)
class Row:
    """One documented key: the value that counts and what may be seen of it, as JSON-ready data.

    `origin` is in words, `places` where the file has it. `effect` is "takes effect" or why the value changes nothing.
    """

    key: str
    value: object
    default: object
    written: bool
    origin: str
    places: tuple[Place, ...]
    meaning: str
    takes_effect: bool
    effect: str


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent for a list; `named` is its workspace as the file writes it, empty where that is the usual one."""

    id: str
    default: bool
    workspace: str
    named: str
    place: Place | None


def agent_rows(config: Config) -> Iterator[AgentRow]:
    """The agents of the configuration, in its order."""
    for agent in config.agents:
        yield AgentRow(agent.id, agent.default, str(agent.workspace), agent.named, agent.place)


def rows(config: Config, settings: Settings, providers: Sequence[str]) -> Iterator[Row]:
    """Every documented value; `settings` are those in force, `providers` the names that memory-tui has."""
    own = OWN if config.kind != "openclaw" else [key for key in OWN if key.kind == "knob"]
    for key in (*SEARCH, *FILE, *own):
        effect = _effect(key, config, settings, providers)
        entry = config.entries.get(key.path)
        yield Row(
            key=key.path,
            value=_value(key, config, settings),
            default=key.default,
            written=entry is not None,
            origin=_origin(key, config, settings),
            places=entry.places if entry else (),
            meaning=key.meaning,
            takes_effect=not effect,
            effect=effect or TAKES_EFFECT,
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
        return {name: str(found) for name, found in config.headers(key.path)}
    if key.kind == "any":
        # What a plug-in is told may hold secrets that nobody here knows of.
        return "set"
    if key.kind == "text":
        # As it is written: what stands behind a variable may be a secret.
        return _CREDENTIALS.sub(lambda found: f"{found[1] or ''}***", str(entry.node.value))
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
        known = config.provider in ("", "auto", *providers)
        return "" if known else f"none: memory-tui has no provider {config.provider!r} and searches by words alone"
    if key.kind != "knob":
        return key.effect
    profile = settings.word("profile")
    if why := profiles.get(profile).ignores.get(key.path):
        return f"none under profile {profile}: {why}"
    value = settings.values[key.path]
    if entry is not None and entry.value != value.value and key.path in BY_KEY and key.path != "profile":
        return f"none: {entry.places[-1]} says {entry.value}, but {value.origin} says {value.value}"
    return ""
