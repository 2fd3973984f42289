"""Surroundings of the sample workspace are what other programs left beside it, so that the inbox holds every kind.

OpenClaw's ledger does not trust one note any more. Claude Code keeps three facts, and its index points to two.
Agents asked for weeks. A note lost a line.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw

from memory_tui.core import atomic
from memory_tui.core.errors import MemoryTuiError
from memory_tui.demo.demo import named

DISTRUSTED = "memory/errands.md"
LOSING = "memory/day-003.md"
LOST = "- Wei's train gets in at 18:40 on Friday; Theo wants to wait on the platform.\n"
"""The last line of that note until another program wrote it anew."""
_STATE = "openclaw"
_FACTS = "claude-memory"


def surround(folder: Path, workspace: Path, today: dt.date) -> Path:
    """Write what stands around the sample in `workspace` into `folder`; returns the folder of Claude Code's facts.

    Where the state folder cannot be written, there are no questions of agents, and no lost line. Raises OSError.
    """
    facts = folder / _FACTS
    atomic.make_folder(facts, 0o777)
    templates = files(__name__.rpartition(".")[0]) / "claude"
    for entry in sorted(templates.iterdir(), key=lambda entry: entry.name):
        atomic.create_file(facts / entry.name, entry.read_bytes())
    atomic.make_folder(workspace / ".claude", 0o777)
    settings = json.dumps({"autoMemoryDirectory": str(facts)}).encode()
    atomic.create_file(workspace / ".claude" / "settings.json", settings)
    _distrust(state_folder(folder), workspace, today)
    with suppress(OSError, MemoryTuiError):
        _ask(workspace, today)
        _lose(workspace, today)
    return facts


def state_folder(folder: Path) -> Path:
    """Where OpenClaw keeps its state for the sample below `folder`."""
    return folder / _STATE


def _noon(day: dt.date) -> float:
    return dt.datetime.combine(day, dt.time(12)).timestamp()


def _distrust(state: Path, workspace: Path, today: dt.date) -> None:
    """OpenClaw's ledger, in which one note is the agent's no more."""
    from memory_tui.openclaw import trust

    database = state / "state" / "openclaw.sqlite"
    atomic.make_folder(database.parent)
    key = trust.workspace_key(workspace)
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute(
            f"CREATE TABLE {trust.TABLE} (plugin_id TEXT NOT NULL, namespace TEXT NOT NULL, entry_key TEXT NOT NULL, "
            "value_json TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, "
            "PRIMARY KEY (plugin_id, namespace, entry_key)) STRICT"
        )
        connection.pragma("user_version", trust.NEWEST_SCHEMA)
        digest = hashlib.sha256(os.fsencode(DISTRUSTED)).hexdigest()
        value = {
            "version": 1,
            "workspaceKey": key,
            "relativePath": DISTRUSTED,
            "fileHash": trust.text_hash((workspace / DISTRUSTED).read_bytes()),
            "originClass": "untrusted",
            "observedAt": int(_noon(today - dt.timedelta(days=2)) * 1000),
        }
        connection.execute(
            f"INSERT INTO {trust.TABLE} VALUES (?, ?, ?, ?, 1, NULL)",
            (trust.PLUGIN, trust.NAMESPACE, f"{key}:{digest}", json.dumps(value, separators=(",", ":"))),
        )


def _ask(workspace: Path, today: dt.date) -> None:
    """The log of what agents asked, with the places that they got."""
    from memory_tui.openclaw.prompt import SEARCH
    from memory_tui.recalls import recall_log

    place = recall_log.recall_log_path(workspace)
    asked = (files(__name__.rpartition(".")[0]) / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    for number, fields in enumerate(map(json.loads, asked)):
        at = _noon(today - dt.timedelta(days=fields["age"])) + number * 60
        hits = tuple(_hit(hit, today) for hit in fields["hits"])
        entry = recall_log.RecallEntry(
            SEARCH,
            fields["query"],
            at,
            fields["client"],
            mode="hybrid",
            hits=hits,
            ms=fields["ms"],
            now=at,
            ranked=len(hits),
        )
        recall_log.append_recall(place, entry)


def _hit(fields: Mapping[str, Any], today: dt.date) -> Any:  # noqa: ANN401 - the class is imported on use
    from memory_tui.recalls.recall_log import LoggedHit

    return LoggedHit(**{**fields, "path": named(fields["path"], today)})


def _lose(workspace: Path, today: dt.date) -> None:
    """A note that lacks a line, as the journal keeps it when the index saw the line before."""
    from memory_tui.curate.journal import Journal, journal_folder
    from memory_tui.curate.restore import keep_lost
    from memory_tui.source.last_text import LastText

    path = named(LOSING, today)
    now = (workspace / path).read_bytes()
    at = _noon(today - dt.timedelta(days=1))
    keep_lost(Journal(journal_folder(workspace)), LastText(path, now.decode() + LOST, at, exact=True), now)
