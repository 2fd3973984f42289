"""OpenClaw: what connects it.

It takes a plugin for its memory slot, which starts one server for each workspace; the plugin's folder is copied out of
the package, so that OpenClaw still starts when the Python environment is gone.
"""

from __future__ import annotations

from pathlib import Path

import platformdirs

from memory_tui.config import places
from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.config.openclaw_release import PLUGIN, installed_release, release_by_files
from memory_tui.config.settings import NEWEST_OPENCLAW
from memory_tui.durable import read_regular
from memory_tui.errors import ConfigError
from memory_tui.hosts.wiring import SAMPLE, FileEdit, HostChange, Wiring
from memory_tui.plan import Options, Plan, plan

_DREAMING = (
    "memory-core goes on dreaming at night and may write MEMORY.md. It counts the recalls of its own tool alone, "
    "so what the agent recalls through memory-tui counts for no promotion. plugins.entries.memory-core.enabled false "
    "stops it."
)


def plugin_folder() -> Path:
    """Return the folder of the plugin's files in this package."""
    return Path(__file__).parent / "openclaw_plugin"


def installed_folder() -> Path:
    """Return where the copy lies that OpenClaw loads."""
    return platformdirs.user_data_path("memory-tui", appauthor=False) / "openclaw_plugin"


def _plugin_files(folder: Path) -> dict[Path, Path]:
    """Return the packaged files of the plugin, each with the path of its copy in `folder`."""
    packaged = plugin_folder()
    files = sorted(file for file in packaged.rglob("*") if file.is_file())
    return {file: folder / file.relative_to(packaged) for file in files}


def outdated_plugin(folder: Path) -> list[str]:
    """Return the files of the plugin in `folder` that are not as this version ships them."""
    copies = _plugin_files(folder).items()
    outdated = [copy for file, copy in copies if not copy.is_file() or copy.read_bytes() != file.read_bytes()]
    return [str(copy.relative_to(folder)) for copy in outdated]


def arguments(profile: str) -> tuple[str, ...]:
    """Return the words with which the plugin starts the server of the default agent. Raises ConfigError."""
    return ("--workspace", str(_plan(("profile", profile)).workspace.absolute()), "--profile", profile)


def _plan(*changes: tuple[str, str]) -> Plan:
    """Return the plan of OpenClaw's default agent with `changes`. Raises ConfigError where there is none."""
    path = places.openclaw_path()
    if not path.is_file():
        if SAMPLE in str(path):
            step = "memory-tui on your own notes connects yours (6)."
            raise ConfigError("The demo has no OpenClaw: it reads nothing of yours.", step)
        raise ConfigError(f"OpenClaw is not set up here: there is no {path}.", "Run openclaw onboard first.")
    return plan(Options(config=str(path), changes=changes))


def edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    """Return the files of a connection. Raises ConfigError where OpenClaw is not set up."""
    path, folder = places.openclaw_path(), installed_folder()
    files = _plugin_files(folder).items()
    copies = [FileEdit(copy, (HostChange("copy", (), file.read_text("utf-8")),)) for file, copy in files]
    # `command` is the program alone; `args` are the words between it and `mcp`, which the plugin adds with its options.
    program, *args = wiring.program
    settings = {"command": program, "profile": wiring.profile, "args": args, "logRecalls": wiring.log}
    config = {name: value for name, value in settings.items() if value}
    changes = [
        HostChange("item", ("plugins", "load", "paths"), str(folder)),
        HostChange("member", ("plugins", "entries", PLUGIN), {"enabled": True, "config": config}),
        HostChange("member", ("plugins", "slots", "memory"), PLUGIN),
    ]
    try:
        allowed = parse_json5(SourceText(path, read_regular(path).decode("utf-8-sig"))).get("plugins", "allow")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Check its permissions and that it is UTF-8.") from error
    # Without a list of plugins that may run, each one may.
    if allowed is not None and allowed.value:
        changes.append(HostChange("item", ("plugins", "allow"), PLUGIN))
    # The files first: OpenClaw does not start with a slot that nothing fills.
    return (*copies, FileEdit(path, tuple(changes)))


def dreams(chosen: Plan) -> bool:
    """Return whether OpenClaw's plugin memory-core dreams beside this memory: releases before 2026.8 have no dreams."""
    core = ("entries", "memory-core")
    # Each counts as on where the file does not say false.
    switches = (plugin_value(chosen, *core, "enabled"), plugin_value(chosen, *core, "config", "dreaming", "enabled"))
    return False not in switches and (installed_release() or release_by_files(chosen.config)).profile == NEWEST_OPENCLAW


def plugin_value(chosen: Plan, *keys: str) -> object:
    """Return the value below `plugins`; None where there is none."""
    node = chosen.config.tree.get("plugins", *keys) if chosen.config.tree is not None else None
    return node.value if node is not None else None


def loss() -> str:
    """Return what OpenClaw does without while it is connected, as sentences; empty for nothing."""
    return _DREAMING if dreams(_plan()) else ""
