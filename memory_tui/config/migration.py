"""A migration is what OpenClaw 2026.9's doctor changes in an older configuration; shown only.

2026.9 rejects a file with a key that it does not know, and every key below is one since 2026.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from memory_tui.config.json5 import Node
from memory_tui.config.keys import RETIRED
from memory_tui.config.model import Position

SECTION = "memory.search"
"""Where 2026.9 has what was `memorySearch` before."""

_OLD_NAME = "memorySearch"
_MOVED = MappingProxyType({"maxResults": "query.maxResults"})
"""Keys that moved inside the section."""


@dataclass(frozen=True, slots=True)
class Migration:
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
    found = [*_sections(tree), *_qmd(tree)]
    return tuple(sorted(found, key=lambda step: (step.place.line, step.place.column)))


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
        own = entry.get("memory", "search")
        if own is not None:
            yield from _inside(own, f"{here}.{SECTION}", f"{here}.{SECTION}", None)
        if (section := entry.get(_OLD_NAME)) is not None:
            yield from _moved(section, f"{here}.{_OLD_NAME}", f"{here}.{SECTION}", own)


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
