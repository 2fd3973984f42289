"""The release of OpenClaw that is in use: by its installed program, else by what its files look like.

A migration is what the doctor of 2026.9 changes in an older configuration; it is shown only. 2026.9 rejects a file with
a key that it does not know, and every key below is one since 2026.8.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from memory_tui import profiles
from memory_tui.config.json5 import Node
from memory_tui.config.keys import RETIRED
from memory_tui.config.model import Config, Position
from memory_tui.config.places import state_folder

_VERSION = re.compile(r"(\d{4})\.(\d{1,2})(?:\.(\d{1,3}))?")
_NEWER_LAYOUT = "memory.search"
SLOT, PLUGIN = "plugins.slots.memory", "memory-tui"
LANCEDB_PLUGIN = "memory-lancedb"
"""What the slot says where OpenClaw's agent keeps its memories in LanceDB."""
AGENT_PROFILE = f"plugins.entries.{PLUGIN}.config.profile"
"""Where OpenClaw's file says by which profile its agent recalls, once memory-tui is the agent's memory."""
WRITER = "meta.lastTouchedVersion"
_MOST_BYTES = 1 << 20


class Release(Struct, frozen=True):
    """The profile of a release, and what it was concluded from, as a clause."""

    profile: str
    reason: str


def meant(name: str, config: Config) -> Release:
    """The profile called `name`; `auto` is what the agent gets.

    Where memory-tui is the agent's memory, that is the profile that OpenClaw's file names for it; else that of the
    OpenClaw in use, and the newest one for an installation that shows no sign of its age.
    """
    if name != "auto":
        return Release(name, "")
    if config.kind != "openclaw":
        return Release(profiles.OWN, "")
    if is_agents_memory(config):
        return Release(str(config.value(AGENT_PROFILE)), f"memory-tui is the agent's memory ({SLOT})")
    return installed() or by_files(config)


def is_agents_memory(config: Config) -> bool:
    """Whether `config` is OpenClaw's and gives the agent's memory slot to memory-tui."""
    return config.kind == "openclaw" and config.value(SLOT) == PLUGIN


def installed() -> Release | None:
    """The release whose program is on the search path; None where there is none, or it does not say its version."""
    program = shutil.which("openclaw")
    if program is None:
        return None
    real = Path(program).resolve()
    for folder in real.parents[:4]:
        manifest = folder / "package.json"
        try:
            with manifest.open("rb") as file:
                match = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError):
            continue
        if isinstance(match, dict) and match.get("name") == "openclaw" and isinstance(match.get("version"), str):
            version = match["version"]
            profile = profile_of(version)
            return Release(profile, f"OpenClaw {version} is installed") if profile else None
    return None


def profile_of(version: str) -> str:
    """The profile that is nearest to `version`; empty where it is no version of OpenClaw."""
    manifest_fields = _VERSION.match(version)
    if manifest_fields is None:
        return ""
    release = tuple(int(part or 0) for part in manifest_fields.groups())
    if release >= (2026, 8, 0):
        return profiles.NEWEST
    return profiles.OPENCLAW if release >= (2026, 3, 7) else "openclaw-2026.2"


def by_files(config: Config) -> Release:
    """The release that wrote what is there: its database, its older index, its section of the configuration."""
    state = state_folder()
    if (state / "agents" / config.agent.id / "agent" / "openclaw-agent.sqlite").is_file():
        return Release(profiles.NEWEST, "the agent has a database of 2026.8 or later")
    if config.layout == _NEWER_LAYOUT:
        return Release(profiles.NEWEST, "the configuration has memory.search, as from 2026.8 on")
    wrote = str(config.value(WRITER) or "")
    if profile := profile_of(wrote):
        return Release(profile, f"OpenClaw {wrote} wrote the configuration last")
    if config.sections:
        return Release(profiles.OPENCLAW, f"the configuration has {config.sections[-1][0]}, as up to 2026.7")
    if config.store_path.is_file():
        return Release(profiles.OPENCLAW, "the agent has an index of its own, as up to 2026.7")
    return Release(profiles.NEWEST, "nothing shows an older release")


SECTION = "memory.search"
"""Where 2026.9 has what was `memorySearch` before."""

_OLD_NAME = "memorySearch"
_MOVED = MappingProxyType({"maxResults": "query.maxResults"})
"""Keys that moved inside the section."""


class Migration(Struct, frozen=True):
    """One step of the doctor: the whole `key` as the file has it, where its value goes (empty: nowhere), and why."""

    key: str
    to: str
    reason: str
    place: Position

    @property
    def sentence(self) -> str:
        """The step in words."""
        done = f"{self.key} moves to {self.to}" if self.to else f"{self.key} is removed"
        return f"{done}: {self.reason}."


def migrations(tree: Node) -> tuple[Migration, ...]:
    """What the doctor would change in the configuration `tree`, in the order of the file."""
    steps = [*_sections(tree), *_qmd(tree)]
    return tuple(sorted(steps, key=lambda step: (step.place.line, step.place.column)))


def _sections(tree: Node) -> Iterator[Migration]:
    general = tree.get("memory", "search")
    if general is not None:
        yield from _inside(general, SECTION, SECTION, None)
    for path in (_OLD_NAME, f"agents.defaults.{_OLD_NAME}"):
        if (section := tree.get(*path.split("."))) is not None:
            yield from _moved(section, path, SECTION, general)
    entries = tree.get("agents", "entries")
    for name, entry in entries.children() if entries is not None else ():
        here = f"agents.entries.{name}"
        own_section = entry.get("memory", "search")
        if own_section is not None:
            yield from _inside(own_section, f"{here}.{SECTION}", f"{here}.{SECTION}", None)
        if (section := entry.get(_OLD_NAME)) is not None:
            yield from _moved(section, f"{here}.{_OLD_NAME}", f"{here}.{SECTION}", own_section)


def _moved(section: Node, path: str, to: str, there: Node | None) -> Iterator[Migration]:
    reason = "2026.9 has memory search there"
    if there is not None:
        reason += ", and a value that is there already counts"
    yield Migration(path, to, reason, Position.of(section, path))
    yield from _inside(section, path, to, there)


def _inside(section: Node, path: str, to: str, there: Node | None) -> Iterator[Migration]:
    """The steps of one section's own keys; `there` is what the place that it moves to holds already."""
    for name in RETIRED:
        if (node := section.get(*name.split("."))) is not None:
            whole = f"{path}.{name}"
            yield Migration(whole, "", f"2026.9 has no setting for it, {RETIRED[name]}", Position.of(node, whole))
    for name, new in _MOVED.items():
        if (node := section.get(name)) is None:
            continue
        whole, parts = f"{path}.{name}", new.split(".")
        taken = section.get(*parts) is not None or (there is not None and there.get(*parts) is not None)
        target, reason = ("", f"{new} is there and counts") if taken else (f"{to}.{new}", "2026.9 has it there")
        yield Migration(whole, target, reason, Position.of(node, whole))
    provider = section.get("provider")
    if provider is not None and provider.value == "auto":
        whole = f"{path}.provider"
        yield Migration(whole, f"{to}.provider", "auto becomes openai", Position.of(provider, whole))


def _qmd(tree: Node) -> Iterator[Migration]:
    for name in ("backend", "qmd"):
        if (node := tree.get("memory", name)) is not None:
            whole = f"memory.{name}"
            yield Migration(whole, "", "2026.9 has no QMD backend", Position.of(node, whole))
    paths = tree.get("memory", "qmd", "paths")
    if paths is not None and paths.value:
        yield Migration(
            "memory.qmd.paths",
            f"{SECTION}.extraPaths",
            "paths outside the workspace stay searched",
            Position.of(paths, "memory.qmd.paths"),
        )
    sessions = tree.get("memory", "qmd", "sessions", "enabled")
    if sessions is not None and sessions.value is True:
        whole = "memory.qmd.sessions.enabled"
        yield Migration(
            whole,
            f"{SECTION}.experimental.sessionMemory and {SECTION}.sources",
            "transcripts stay searched",
            Position.of(sessions, whole),
        )
