"""Which release of OpenClaw is meant, and so which profile: told by its program, else by what its files look like."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from msgspec import Struct

from memory_tui.config.config_file import Config
from memory_tui.config.places import agent_database
from memory_tui.config.settings import NEWEST_OPENCLAW, OLDER_OPENCLAW, OWN_PROFILE

_MAX_BYTES = 1 << 20
_VERSION = re.compile(r"(\d{4})\.(\d{1,2})(?:\.(\d{1,3}))?")
SLOT, PLUGIN = "plugins.slots.memory", "memory-tui"
LANCEDB_PLUGIN = "memory-lancedb"
"""What the slot says where OpenClaw's agent keeps its memories in LanceDB."""
AGENT_PROFILE = f"plugins.entries.{PLUGIN}.config.profile"
"""Where OpenClaw's file says by which profile its agent recalls, once memory-tui is the agent's memory."""
WRITER = "meta.lastTouchedVersion"


class Release(Struct, frozen=True):
    """The profile of a release, and what it was concluded from, as a clause."""

    profile: str
    reason: str


def release_meant(name: str, config: Config) -> Release:
    """Return the profile called `name`; `auto` is what the agent gets.

    Where memory-tui is the agent's memory, that is the profile that OpenClaw's file names for it; else that of the
    OpenClaw in use, and the newest one for an installation that shows no sign of its age.
    """
    if name != "auto":
        return Release(name, "")
    if config.kind != "openclaw":
        return Release(OWN_PROFILE, "")
    if is_agents_memory(config):
        return Release(config.text(AGENT_PROFILE), f"memory-tui is the agent's memory ({SLOT})")
    return installed_release() or release_by_files(config)


def is_agents_memory(config: Config) -> bool:
    """Tell whether `config` is OpenClaw's and gives the agent's memory slot to memory-tui."""
    return config.kind == "openclaw" and config.value(SLOT) == PLUGIN


def installed_release() -> Release | None:
    """Return the release whose program is on the search path; None where there is none, or it tells no version."""
    program = shutil.which("openclaw")
    # The program is a link into its package, whose package.json lies a few folders above.
    for folder in Path(program).resolve().parents[:4] if program else ():
        try:
            with (folder / "package.json").open("rb") as file:
                manifest = json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict) and manifest.get("name") == "openclaw":
            version = str(manifest.get("version"))
            profile = profile_of(version)
            return Release(profile, f"OpenClaw {version} is installed") if profile else None
    return None


def profile_of(version: str) -> str:
    """Return the profile that is nearest to `version`; empty where it is no version of OpenClaw."""
    match = _VERSION.match(version)
    if match is None:
        return ""
    # Year, month and patch; a version without a patch counts as 0.
    numbers = tuple(int(part or 0) for part in match.groups())
    if numbers >= (2026, 8, 0):
        return NEWEST_OPENCLAW
    return OLDER_OPENCLAW if numbers >= (2026, 3, 7) else "openclaw-2026.2"


def release_by_files(config: Config) -> Release:
    """Return the release that the files of `config`'s agent show: by its database, its configuration, its index.

    The newest one where nothing shows a release.
    """
    if agent_database(config.agent.id).is_file():
        return Release(NEWEST_OPENCLAW, "the agent has a database of 2026.8 or later")
    if config.layout == "memory.search":
        return Release(NEWEST_OPENCLAW, "the configuration has memory.search, as from 2026.8 on")
    version = config.text(WRITER)
    if profile := profile_of(version):
        return Release(profile, f"OpenClaw {version} wrote the configuration last")
    if config.sections:
        return Release(OLDER_OPENCLAW, f"the configuration has {config.sections[-1][0]}, as up to 2026.7")
    if config.store_path.is_file():
        return Release(OLDER_OPENCLAW, "the agent has an index of its own, as up to 2026.7")
    return Release(NEWEST_OPENCLAW, "nothing shows an older release")
