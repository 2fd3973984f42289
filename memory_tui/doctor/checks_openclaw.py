"""Checks of OpenClaw's agent. They say whether memory-tui is its memory, what that needs, and what still dreams beside
it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.config import release
from memory_tui.config.places import expand
from memory_tui.doctor.check import Check, CheckOutcome, failed, ok, skipped, warning
from memory_tui.hosts import openclaw

if TYPE_CHECKING:
    from memory_tui.config.model import Config
    from memory_tui.engine.engine import Engine

_CONNECT = "Run memory-tui connect openclaw."
_MANIFEST = "openclaw.plugin.json"
_MOST_BYTES = 1 << 20


def _no_agent(config: Config) -> CheckOutcome | None:
    if config.kind != "openclaw":
        return skipped("The configuration is not OpenClaw's.")
    if not release.is_agents_memory(config):
        return skipped(f"OpenClaw's agent asks {config.value(release.SLOT)}, not memory-tui.")
    return None


def _slot(engine: Engine) -> CheckOutcome:
    config = engine.plan.config
    if (outcome := _no_agent(config)) is not None:
        return outcome
    folder = next((path for path in _loaded(config) if _is_plugin(path)), None)
    if folder is None:
        return failed(
            f"{release.SLOT} is memory-tui, but no folder in plugins.load.paths holds the plug-in: OpenClaw may "
            "not start.",
            f"{_CONNECT} Or go back: openclaw config set {release.SLOT} memory-core",
        )
    command = openclaw.written(config, "entries", release.PLUGIN, "config", "command") or "memory-tui"
    if shutil.which(str(command)) is None:
        return failed(f"The plug-in starts {command}, which is not there: the agent's recalls fail.", _CONNECT)
    if changed := openclaw.outdated(folder):
        return warning(f"The plug-in in {folder} is of another version: {', '.join(changed)}.", _CONNECT)
    agent, here = engine.plan.with_profile("auto").word("profile"), engine.plan.settings.word("profile")
    if agent != here:
        return warning(
            f"The agent recalls by profile {agent}; what you see here is ranked by {here}.",
            "Leave --profile out to see what the agent gets.",
        )
    return ok(f"memory-tui is the agent's memory; the agent and this program rank by profile {agent}.")


def _dreaming(engine: Engine) -> CheckOutcome:
    config = engine.plan.config
    if (outcome := _no_agent(config)) is not None:
        return outcome
    if reason := openclaw.dreamless(config):
        return ok(reason)
    return warning(
        openclaw.DREAMING,
        "Set plugins.entries.memory-core.enabled to false to stop it, and promote lines yourself: memory-tui promote.",
    )


def _loaded(config: Config) -> list[Path]:
    """Return the folders of plug-ins that the file names."""
    node = config.tree.get("plugins", "load", "paths") if config.tree is not None else None
    listed = node.value if node is not None and isinstance(node.value, list) else []
    return [expand(item.value) for item in listed if isinstance(item.value, str)]


def _is_plugin(folder: Path) -> bool:
    try:
        with (folder / _MANIFEST).open("rb") as file:
            manifest = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("id") == release.PLUGIN


CHECKS: tuple[Check, ...] = (
    Check("openclaw-slot", "settings", "OpenClaw's agent recalls through memory-tui", _slot),
    Check("openclaw-dreaming", "settings", "Dreaming counts what the agent recalls", _dreaming),
)
