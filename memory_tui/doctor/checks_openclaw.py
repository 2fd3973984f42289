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
from memory_tui.core import profiles
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
    command = _written(config, "entries", release.PLUGIN, "config", "command") or "memory-tui"
    if shutil.which(str(command)) is None:
        return failed(f"The plug-in starts {command}, which is not there: the agent's recalls fail.", _CONNECT)
    if changed := _changed(folder):
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
    core = ("entries", "memory-core")
    if _written(config, *core, "enabled") is False:
        return ok("memory-core is disabled, so nothing dreams.")
    if _written(config, *core, "config", "dreaming", "enabled") is False:
        return ok("Dreaming is switched off.")
    if (release.installed() or release.by_files(config)).profile != profiles.NEWEST:
        return skipped("OpenClaw up to 2026.7 does not dream by itself.")
    return warning(
        "memory-core goes on dreaming at night and may write MEMORY.md. It counts the recalls of its own tool alone, "
        "so what the agent recalls through memory-tui counts for no promotion.",
        "Set plugins.entries.memory-core.enabled to false to stop it, and promote lines yourself: memory-tui promote.",
    )


def _written(config: Config, *keys: str) -> object:
    """The value below `plugins`; None where there is none."""
    node = config.tree.get("plugins", *keys) if config.tree is not None else None
    return node.value if node is not None else None


def _loaded(config: Config) -> list[Path]:
    """The folders of plug-ins that the file names."""
    node = config.tree.get("plugins", "load", "paths") if config.tree is not None else None
    listed = node.value if node is not None and isinstance(node.value, list) else []
    return [expand(item.value) for item in listed if isinstance(item.value, str)]


def _is_plugin(folder: Path) -> bool:
    try:
        with (folder / _MANIFEST).open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("id") == release.PLUGIN


def _changed(folder: Path) -> list[str]:
    """The files of the plug-in that are not as this version ships them."""
    packaged = openclaw.plugin_folder()
    shipped = sorted(file for file in packaged.rglob("*") if file.is_file())
    return [str(file.relative_to(packaged)) for file in shipped if not _same(file, folder / file.relative_to(packaged))]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


CHECKS: tuple[Check, ...] = (
    Check("openclaw-slot", "settings", "OpenClaw's agent recalls through memory-tui", _slot),
    Check("openclaw-dreaming", "settings", "Dreaming counts what the agent recalls", _dreaming),
)
