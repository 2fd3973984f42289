"""Options are what a configuration says of QMD. They say how it is run, what it searches, and who may ask it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_tui.config.keys import QMD
from memory_tui.config.places import expand, state_folder
from memory_tui.plan import Choices

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", re.IGNORECASE)
_INTERVAL, _EMBED_INTERVAL = 300.0, 3600.0
_STARTUP_DELAY = 120.0
_EVERY_NOTE = "**/*.md"
_DIRECT: Mapping[str, Any] = {
    "default": "deny",
    "rules": ({"action": "allow", "match": {"chatType": "direct"}},),
}
"""The documented scope where none is configured."""


class WantedCollection(Struct, frozen=True):
    """A collection that QMD should have: its name, an absolute folder, the pattern of its files."""

    name: str
    path: str
    pattern: str
    source: str = "memory"


class QmdOptions(Struct, frozen=True):
    """Everything that decides how QMD is asked. Times are in seconds; `named_by` says who named the program."""

    agent: str
    workspace: str
    command: str
    named_by: str
    mode: str
    default_memory: bool
    paths: tuple[Mapping[str, Any], ...]
    sessions: bool
    export_folder: str
    retention_days: int
    interval: float
    debounce: float
    on_boot: bool
    boot_delay: float
    wait_for_boot: bool
    embed_interval: float
    command_seconds: float
    update_seconds: float
    embed_seconds: float
    search_seconds: float
    max_results: int
    max_snippet: int
    max_injected: int
    scope: Mapping[str, Any]
    server: bool

    @classmethod
    def of(cls, choices: Choices) -> QmdOptions:
        """The options of what was chosen."""

        def value(name: str) -> Any:  # noqa: ANN401 - values of any kind
            return choices.backend_value(QMD + name)

        def number(name: str, default: float = 0.0) -> float:
            found = value(name)
            return float(found) if isinstance(found, int | float) else default

        paths, scope = value("paths"), value("scope")
        startup = str(value("update.startup") or "")
        delay = number("update.startupDelayMs", 1000 * _STARTUP_DELAY if startup == "delayed" else 0.0) / 1000
        return cls(
            agent=choices.agent.id,
            workspace=os.path.realpath(choices.workspace),
            command=str(value("command") or "qmd"),
            named_by=_named_by(choices),
            mode=str(value("searchMode")),
            default_memory=bool(value("includeDefaultMemory")),
            paths=tuple(item for item in paths if isinstance(item, Mapping)) if isinstance(paths, Sequence) else (),
            sessions=bool(value("sessions.enabled")),
            export_folder=str(value("sessions.exportDir") or ""),
            retention_days=int(number("sessions.retentionDays")),
            interval=duration(value("update.interval"), _INTERVAL),
            debounce=number("update.debounceMs") / 1000,
            on_boot=bool(value("update.onBoot")) and startup != "off",
            boot_delay=delay,
            wait_for_boot=bool(value("update.waitForBootSync")),
            embed_interval=duration(value("update.embedInterval"), _EMBED_INTERVAL),
            command_seconds=number("update.commandTimeoutMs") / 1000,
            update_seconds=number("update.updateTimeoutMs") / 1000,
            embed_seconds=number("update.embedTimeoutMs") / 1000,
            search_seconds=number("limits.timeoutMs") / 1000,
            max_results=int(number("limits.maxResults")),
            max_snippet=int(number("limits.maxSnippetChars")),
            max_injected=int(number("limits.maxInjectedChars")),
            scope=scope if isinstance(scope, Mapping) else _DIRECT,
            server=bool(value("server")),
        )

    @property
    def needs_vectors(self) -> bool:
        """Whether the mode compares vectors."""
        return self.mode != "search"

    def collections(self, exported: Path) -> tuple[WantedCollection, ...]:
        """The collections that QMD should have; transcripts are `exported` to a folder."""
        found: list[tuple[str, str, str, str]] = []
        if self.default_memory:
            found += [
                ("memory-root", self.workspace, "MEMORY.md", "memory"),
                ("memory-alt", self.workspace, "memory.md", "memory"),
                ("memory-dir", os.path.join(self.workspace, "memory"), _EVERY_NOTE, "memory"),  # noqa: PTH118
            ]
        for number, item in enumerate(self.paths, 1):
            if isinstance(item.get("path"), str) and item["path"].strip():
                folder = os.path.join(self.workspace, expand(item["path"]))  # noqa: PTH118
                name, pattern = str(item.get("name") or f"custom-{number}"), str(item.get("pattern") or _EVERY_NOTE)
                found.append((name, os.path.normpath(folder), pattern, "memory"))
        if self.sessions:
            found.append(("sessions", str(exported), _EVERY_NOTE, "sessions"))
        taken: set[str] = set()
        wanted = []
        for name, path, pattern, source in found:
            name = _unused(f"{name}-{self.agent}", taken)
            wanted.append(WantedCollection(name, path, pattern, source))
        return tuple(wanted)


def _named_by(choices: Choices) -> str:
    """Which file names the program, or asks for QMD; empty where the person at the terminal did."""
    named = choices.config.entries.get(f"{QMD}command")
    if named is not None and f"{QMD}command" not in choices.backend_values:
        return str(named.places[-1])
    return "" if choices.backend_origin in ("--backend", "default") else choices.backend_origin


def _unused(name: str, taken: set[str]) -> str:
    """`name` as QMD takes it, with a number where another collection has it."""
    name = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found


def duration(text: object, default: float) -> float:
    """Seconds of `5m`, `30s`, `1h`; a bare number is minutes, and what is no duration is `default`."""
    found = _DURATION.fullmatch(str(text).strip())
    return float(found[1]) * _UNITS[(found[2] or "m").lower()] if found else default


def openclaw_folder(agent: str) -> Path:
    """OpenClaw's own folder of QMD, which is never written."""
    return state_folder() / "agents" / agent / "qmd"


def allowed(scope: Mapping[str, Any], session_key: str) -> bool:
    """Whether the chat of `session_key` may ask QMD; a person without a session may.

    The first rule that fits decides.
    """
    key = session_key.strip().lower()
    if not key:
        return True
    bare = re.sub(r"^agent:[^:]*:", "", key)
    channel, kind = _chat(bare)
    rules = scope.get("rules")
    for rule in rules if isinstance(rules, Sequence) else ():
        match = rule.get("match") or {} if isinstance(rule, Mapping) else {}
        if isinstance(match, Mapping) and _fits(match, key, bare, channel, kind):
            return bool(rule.get("action") == "allow")
    return str(scope.get("default") or "allow") == "allow"


def _fits(match: Mapping[str, Any], key: str, bare: str, channel: str, kind: str) -> bool:
    prefix, raw = str(match.get("keyPrefix") or "").lower(), str(match.get("rawKeyPrefix") or "").lower()
    return (
        str(match.get("channel") or channel).lower() == channel
        and str(match.get("chatType") or kind).lower().replace("dm", "direct") == kind
        and (key if prefix.startswith("agent:") else bare).startswith(prefix)
        and key.startswith(raw)
    )


def _chat(bare: str) -> tuple[str, str]:
    """Channel and kind of chat of a session key; both empty for a subagent's."""
    if bare.startswith("subagent:"):
        return "", ""
    parts = bare.split(":")
    second = parts[1] if len(parts) > 1 else ""
    if second in ("group", "channel"):
        return parts[0], second
    if second in ("direct", "dm"):
        return parts[0], "direct"
    kind = next((name for name in ("group", "channel") if f":{name}:" in f":{bare}:"), "direct")
    return parts[0] if len(parts) > 1 else "", kind
