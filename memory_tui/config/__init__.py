"""Configuration files: which one applies, what it says for which agent, and where it says so. Nothing is written here.

OpenClaw: `agents.defaults.memorySearch` (up to 2026.7) or `memory.search` (from 2026.8). Own: the same tree at the top
of `config.json` in the user's configuration folder. All are read as JSON5. The modules in reading order: places, tree,
include, environment, secrets, record, agents, documented, checks, reading, providers, listing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.config.places import openclaw_path, own_path, state_folder
from memory_tui.config.record import Agent, Config, Entry, Place, Problem, only_agent
from memory_tui.errors import ConfigError, SettingError

if TYPE_CHECKING:
    from memory_tui.config.reading import Document

__all__ = ["Agent", "Config", "Entry", "Place", "Problem", "load", "openclaw_path", "own_path", "parse", "state_folder"]

MAX_BYTES = 16 << 20
"""A larger file is not taken for a configuration."""


def load(explicit: str | None, workspace: Path | None, agent: str = "") -> Config:
    """The configuration for `workspace` and `agent`.

    `explicit`; else OpenClaw's when it speaks of that agent, or of that workspace; else our own. Without an agent it is
    the one whose workspace it is, else the default one. Raises ConfigError when the file that applies cannot be read
    or understood, and SettingError for an agent that nobody knows.
    """
    if explicit is not None:
        document = _read(Path(explicit).expanduser())
        return document.config(_choose(document, workspace, agent))
    theirs = openclaw_path()
    if theirs.is_file():
        document = _read(theirs)
        if agent or workspace is None or _agents_of(document, workspace):
            return document.config(_choose(document, workspace, agent))
    if own_path().is_file():
        document = _read(own_path())
        return document.config(_choose(document, workspace, agent))
    if agent and agent.strip().lower() != only_agent().id:
        raise _unknown(agent, (only_agent(),), "No configuration lists agents")
    return Config(agents=(only_agent(),))


def parse(text: str, path: Path, agent: str = "") -> Config:
    """The configuration in `text`, as if read from `path`. Raises ConfigError with line and column, SettingError."""
    document = _document(text, path)
    return document.config(_choose(document, None, agent))


def _choose(document: Document, workspace: Path | None, agent: str) -> Agent:
    if not agent:
        fitting = _agents_of(document, workspace) if workspace else []
        return fitting[0] if fitting else document.roster.default
    found = document.roster.find(agent)
    if found is None:
        raise _unknown(agent, document.roster.agents, f"{document.path} has no such agent")
    return found


def _agents_of(document: Document, workspace: Path) -> list[Agent]:
    """The agents whose notes are in `workspace`, the default one first."""
    fitting = [agent for agent in document.roster.agents if _same(workspace, agent.workspace)]
    return sorted(fitting, key=lambda agent: not agent.default)


def _unknown(agent: str, known: tuple[Agent, ...], why: str) -> SettingError:
    return SettingError(f"There is no agent {agent!r}: {why}.", f"Choose one of {', '.join(a.id for a in known)}.")


def _same(a: Path, b: Path) -> bool:
    return os.path.realpath(a) == os.path.realpath(b)


def _read(path: Path) -> Document:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"The configuration {path} cannot be read: {error.strerror}.", "Check the path given with --config."
        ) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(
            f"{path} is larger than {MAX_BYTES >> 20} MB, which no configuration is.",
            "Check the path given with --config.",
        )
    return _document(raw.decode("utf-8", "replace"), path)


def _document(text: str, path: Path) -> Document:
    from memory_tui.config.reading import Document
    from memory_tui.config.tree import Source
    from memory_tui.config.tree import parse as tree_of

    tree = tree_of(Source(path, text))
    if not isinstance(tree.value, dict):
        raise ConfigError(
            f"{path} holds no settings: its top level is not an object.", "Put it in { }.", tree.line, tree.column
        )
    return Document.of(tree, path)
