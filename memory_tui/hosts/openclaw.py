"""OpenClaw takes a plugin for its memory slot, which starts one server for each workspace.

The plugin's folder is copied out of the package, so that OpenClaw still starts when the Python environment is gone.
"""

from __future__ import annotations

from pathlib import Path

from memory_tui import plan, profiles
from memory_tui.config import places, release
from memory_tui.config.json5 import SourceText, parse_json5
from memory_tui.config.model import Config
from memory_tui.durable import read_regular
from memory_tui.errors import ConfigError
from memory_tui.hosts.file_changes import FileEdit, HostChange
from memory_tui.hosts.wiring import Host, ServerStart, Wiring
from memory_tui.plan import Options

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
    return ("--workspace", str(_plan(("profile", profile)).workspace.absolute()), "--profile", profile)


def _plan(*changes: tuple[str, str]) -> plan.Plan:
    path = places.openclaw_path()
    if not path.is_file():
        raise ConfigError(f"OpenClaw is not set up here: there is no {path}.", "Run openclaw onboard first.")
    return plan.plan(Options(config=str(path), changes=changes))


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
        listed = parse_json5(SourceText(path, read_regular(path).decode("utf-8-sig"))).get("plugins", "allow")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Check its permissions and that it is UTF-8.") from error
    return listed is not None and bool(listed.value)


def _start(wiring: Wiring) -> ServerStart:
    return ServerStart(wiring.server())


def outdated(folder: Path) -> list[str]:
    """The files of the plug-in in `folder` that are not as this version ships them."""
    packaged = plugin_folder()
    shipped = sorted(file for file in packaged.rglob("*") if file.is_file())
    return [str(file.relative_to(packaged)) for file in shipped if not _same(file, folder / file.relative_to(packaged))]


def _same(left: Path, right: Path) -> bool:
    try:
        return left.read_bytes() == right.read_bytes()
    except OSError:
        return False


DREAMING = (
    "memory-core goes on dreaming at night and may write MEMORY.md. It counts the recalls of its own tool alone, "
    "so what the agent recalls through memory-tui counts for no promotion."
)


def dreamless(config: Config) -> str:
    """Why nothing dreams beside this memory; empty where memory-core does."""
    core = ("entries", "memory-core")
    if written(config, *core, "enabled") is False:
        return "memory-core is disabled, so nothing dreams."
    if written(config, *core, "config", "dreaming", "enabled") is False:
        return "Dreaming is switched off."
    if (release.installed() or release.by_files(config)).profile != profiles.NEWEST:
        return "OpenClaw up to 2026.7 does not dream by itself."
    return ""


def written(config: Config, *keys: str) -> object:
    """The value below `plugins`; None where there is none."""
    node = config.tree.get("plugins", *keys) if config.tree is not None else None
    return node.value if node is not None else None


def _loss() -> str:
    return "" if dreamless(_plan().config) else DREAMING


HOST = Host(
    "openclaw",
    "OpenClaw",
    ("user",),
    _edits,
    _start,
    "Restart the gateway: openclaw gateway restart.",
    ("openclaw",),
    _loss,
)
