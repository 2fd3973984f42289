"""Where OpenClaw and memory-tui keep their files, as the environment says."""

from __future__ import annotations

import os
from pathlib import Path

LEGACY_NAMES = ("clawdbot", "moldbot", "moltbot")
"""What OpenClaw was called before; folders and files of these names are still read."""


def _set(*names: str) -> str:
    """The first of these environment variables that says something."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def home() -> Path:
    """The home that `~` stands for: OPENCLAW_HOME, else the user's."""
    named = _set("OPENCLAW_HOME")
    return Path(named).expanduser() if named else Path.home()


def expand(text: str) -> Path:
    """`text` as a path; a leading `~` is the home, a relative path starts in the current folder."""
    text = text.strip().replace("\0", "")
    if text == "~" or text.startswith(("~/", "~\\")):
        return home() / text[2:]
    return Path(text)


def profile() -> str:
    """The OpenClaw profile of OPENCLAW_PROFILE; empty for the default one."""
    name = _set("OPENCLAW_PROFILE")
    return "" if name.lower() == "default" or "/" in name or "\0" in name else name


def state_folder() -> Path:
    """OpenClaw's state folder.

    OPENCLAW_STATE_DIR or its old name CLAWDBOT_STATE_DIR; else ~/.openclaw-<profile> where OPENCLAW_PROFILE names one
    that is there; else ~/.openclaw, unless only a folder of an older name exists.
    """
    if named := _set("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"):
        return expand(named)
    new = home() / ".openclaw"
    candidates = [home() / f".openclaw-{profile()}"] if profile() else []
    candidates += [new, *(home() / f".{name}" for name in LEGACY_NAMES)]
    return next((folder for folder in candidates if folder.is_dir()), new)


def openclaw_path() -> Path:
    """OpenClaw's configuration file, whether it exists or not: OPENCLAW_CONFIG_PATH, else in its state folder."""
    if named := _set("OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"):
        return expand(named)
    folder = state_folder()
    candidates = [folder / f"{name}.json" for name in ("openclaw", *LEGACY_NAMES)]
    return next((file for file in candidates if file.is_file()), candidates[0])


def own_path() -> Path:
    """Where memory-tui's own configuration lives, whether it exists or not."""
    import platformdirs

    return platformdirs.user_config_path("memory-tui", appauthor=False) / "config.json"


def default_workspace(*, newer: bool) -> Path:
    """The workspace of an agent that names none: the documented one, or where only another one exists, that.

    Up to 2026.7 it is ~/.openclaw/workspace, with -<profile> at its end; `newer` releases have it in the state folder,
    or where OPENCLAW_WORKSPACE_DIR says.
    """
    if named := _set("OPENCLAW_WORKSPACE_DIR"):
        return expand(named)
    suffix = f"-{profile()}" if profile() else ""
    candidates = [home() / ".openclaw" / f"workspace{suffix}", state_folder() / "workspace"]
    if newer:
        candidates.reverse()
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])
