"""OpenClaw takes a plugin for its memory slot, which starts one server for each workspace.

The plugin's folder is copied out of the package, so that OpenClaw still starts when the Python environment is gone.
"""

from __future__ import annotations

from pathlib import Path

from memory_tui import plan
from memory_tui.config import places
from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.core.errors import ConfigError
from memory_tui.hosts.file_changes import FileEdit, HostChange
from memory_tui.hosts.wiring import Host, ServerStart, Wiring
from memory_tui.run_options import Options

PLUGIN = "memory-tui"
"""The plugin's id, which the slot names."""


def plugin_folder() -> Path:
    """The plugin's files in this package."""
    return Path(__file__).parent / "openclaw_plugin"


def installed_folder() -> Path:
    """Where the copy lies that OpenClaw loads."""
    import platformdirs

    return platformdirs.user_data_path("memory-tui", appauthor=False) / "openclaw_plugin"


def arguments(profile: str) -> tuple[str, ...]:
    """The arguments with which the plugin starts the server of the default agent. Raises ConfigError."""
    path = places.openclaw_path()
    if not path.is_file():
        raise ConfigError(f"OpenClaw is not set up here: there is no {path}.", "Run openclaw onboard first.")
    found = plan.plan(Options(config=str(path), changes=(("profile", profile),)))
    return ("--workspace", str(found.workspace.absolute()), "--profile", profile)


def _edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    folder, packaged = installed_folder(), plugin_folder()
    copies = tuple(
        FileEdit(folder / file.relative_to(packaged), (HostChange("copy", (), file.read_text("utf-8")),))
        for file in sorted(packaged.rglob("*"))
        if file.is_file()
    )
    command: dict[str, object] = {"command": wiring.program[0], "profile": wiring.profile}
    if wiring.program[1:]:
        command["args"] = list(wiring.program[1:])
    if wiring.log:
        command["logRecalls"] = True
    changes = [
        HostChange("item", ("plugins", "load", "paths"), str(folder)),
        HostChange("member", ("plugins", "entries", PLUGIN), {"enabled": True, "config": command}),
        HostChange("member", ("plugins", "slots", "memory"), PLUGIN),
    ]
    if _allows_some_alone():
        changes.append(HostChange("item", ("plugins", "allow"), PLUGIN))
    # The files first: OpenClaw does not start with a slot that nothing fills.
    return (*copies, FileEdit(places.openclaw_path(), tuple(changes)))


def _allows_some_alone() -> bool:
    """Whether `plugins.allow` lists the plugins that may run; without a list each one may."""
    path = places.openclaw_path()
    try:
        listed = parse_json5(SourceText(path, path.read_text("utf-8-sig"))).get("plugins", "allow")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Check its permissions and that it is UTF-8.") from error
    return listed is not None and bool(listed.value)


def _start(wiring: Wiring) -> ServerStart:
    return ServerStart(wiring.server())


HOST = Host(
    "openclaw", "OpenClaw", ("user",), _edits, _start, "Restart the gateway: openclaw gateway restart.", ("openclaw",)
)
