"""Where files lie: environment variables name the folders of configuration, state and workspace."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs
from msgspec import Struct

LEGACY_NAMES = ("clawdbot", "moldbot", "moltbot")
"""What OpenClaw was called before; folders and files of these names are still read."""


def _variable(*names: str) -> str:
    """Return the text of the first of these environment variables that is not blank; empty where none is."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def home() -> Path:
    """Return the home that `~` stands for: OPENCLAW_HOME, else the user's."""
    named = _variable("OPENCLAW_HOME")
    return Path(named).expanduser() if named else Path.home()


def expand(text: str) -> Path:
    """Return `text` as a path; a leading `~` is the home, a relative path starts in the current folder."""
    text = text.strip().replace("\0", "")
    if text == "~" or text.startswith(("~/", "~\\")):
        # Of "~" alone nothing is left, and the home joined with nothing is the home.
        return home() / text[2:]
    return Path(text)


def profile() -> str:
    """Return the OpenClaw profile of OPENCLAW_PROFILE; empty for the default one."""
    name = _variable("OPENCLAW_PROFILE")
    return "" if name.lower() == "default" or "/" in name or "\0" in name else name


def state_folder() -> Path:
    """Return OpenClaw's state folder.

    OPENCLAW_STATE_DIR or its old name CLAWDBOT_STATE_DIR; else ~/.openclaw-<profile> where OPENCLAW_PROFILE names one
    that is there; else ~/.openclaw, unless only a folder of an older name exists.
    """
    if named := _variable("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"):
        return expand(named)
    new = home() / ".openclaw"
    candidates = [home() / f".openclaw-{profile()}"] if profile() else []
    candidates += [new, *(home() / f".{name}" for name in LEGACY_NAMES)]
    return next((folder for folder in candidates if folder.is_dir()), new)


def state_database() -> Path:
    """Return the database in which OpenClaw from 2026.8 on keeps the state of plug-ins, be it there or not."""
    return state_folder() / "state" / "openclaw.sqlite"


def session_folder(agent: str) -> Path:
    """Return where OpenClaw keeps the transcripts of `agent` that are files."""
    return state_folder() / "agents" / agent / "sessions"


def agent_database(agent: str) -> Path:
    """Return the database in which OpenClaw from 2026.9 on keeps the sessions of `agent`, be it there or not."""
    return state_folder() / "agents" / agent / "agent" / "openclaw-agent.sqlite"


def session_copies(agent: str) -> Path:
    """Return where memory-tui keeps the transcripts that it copied out of the database of `agent`."""
    key = hashlib.sha256(os.fsencode(os.path.realpath(agent_database(agent)))).hexdigest()[:16]
    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "sessions" / key


def private_name(folder: Path, agent: str = "", more: bytes = b"") -> str:
    """Return the name of what is kept for `folder` alone, among others of its kind; two names of one folder share it.

    `agent` and `more` tell apart what one folder has several of.
    """
    real = os.path.realpath(folder)
    # No path has a NUL, so that it separates the two.
    marker = b"\0" + agent.encode() if agent else b""
    key = hashlib.sha256(os.fsencode(real) + marker + more).hexdigest()[:16]
    return f"{Path(real).name[:40] or 'root'}{f'-{agent}' if agent else ''}-{key}"


def journal_folder(workspace: Path) -> Path:
    """Return the folder that names the journal of `workspace`; two names of one workspace share it."""
    return platformdirs.user_state_path("memory-tui", appauthor=False) / "journal" / private_name(workspace)


def openclaw_path() -> Path:
    """Return OpenClaw's configuration file, be it there or not: OPENCLAW_CONFIG_PATH, else in its state folder."""
    if named := _variable("OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"):
        return expand(named)
    candidates = [state_folder() / f"{name}.json" for name in ("openclaw", *LEGACY_NAMES)]
    return next((file for file in candidates if file.is_file()), candidates[0])


def own_path() -> Path:
    """Return where memory-tui's own configuration lives, whether it exists or not."""
    return platformdirs.user_config_path("memory-tui", appauthor=False) / "config.json"


def default_workspace(*, newer: bool) -> Path:
    """Return the workspace of an agent that names none: the documented one; the other one where that alone exists.

    Up to 2026.7 it is ~/.openclaw/workspace, with -<profile> at its end; `newer` releases have it in the state folder,
    or where OPENCLAW_WORKSPACE_DIR says.
    """
    if named := _variable("OPENCLAW_WORKSPACE_DIR"):
        return expand(named)
    suffix = f"-{profile()}" if profile() else ""
    candidates = [home() / ".openclaw" / f"workspace{suffix}", state_folder() / "workspace"]
    if newer:
        candidates.reverse()
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


class ExtraPath(Struct, frozen=True):
    """A path and the pattern that chooses among the notes below it; without one all of them are read."""

    path: str
    pattern: str = ""
