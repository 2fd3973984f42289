"""The sessions of an agent as its host records them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import state_db
from memory_tui.config.json5 import Node
from memory_tui.config.model import Agent, Config
from memory_tui.config.places import agent_database, session_folder
from memory_tui.durable import read_regular
from memory_tui.errors import MemoryTuiError, StateUnavailable
from memory_tui.openclaw import agent_sessions, flush

TABLE = state_db.Table("flush_marks", most=1000)
_COMPACTION = "agents.defaults.compaction"
_Entries = dict[str, tuple[str, dict[str, Any]]]
"""Key and entry of each session that the host keeps, by session id; the last of several."""


class Nearness(Struct, frozen=True):
    """How near a session's flush is: the decision now, and when it was flushed last (seconds, None for never)."""

    session: str
    transcript: Path
    modified: float
    decision: flush.FlushDecision
    flushed_at: float | None


def rules_of(config: Config) -> flush.FlushRules:
    """Return the flush settings of a configuration; what is missing or cannot be used counts as documented."""

    def number(key: str, default: int) -> int:
        value = flush.whole(config.value(f"{_COMPACTION}.{key}"))
        return default if value is None else value

    return flush.FlushRules(
        enabled=config.value(f"{_COMPACTION}.memoryFlush.enabled") is not False,
        reserve_floor=number("reserveTokensFloor", flush.DEFAULT_RESERVE),
        soft_threshold=number("memoryFlush.softThresholdTokens", flush.DEFAULT_SOFT),
        force_bytes=number("memoryFlush.forceFlushTranscriptBytes", flush.DEFAULT_FORCE_BYTES),
        prompt=str(config.value(f"{_COMPACTION}.memoryFlush.prompt") or ""),
        system_prompt=str(config.value(f"{_COMPACTION}.memoryFlush.systemPrompt") or ""),
    )


def writable(config: Config, session: str) -> bool:
    """Tell whether the agent may write to its workspace in `session`: in a sandbox only where workspaceAccess is rw.

    Of a session without a known key the main one is taken, which `non-main` leaves outside.
    """
    return _writable(config, _entries(config.agent).get(session, ("", {}))[0])


def _writable(config: Config, key: str) -> bool:
    mode = config.value("agents.defaults.sandbox.mode")
    inside = mode == "all" or (mode == "non-main" and key not in ("", f"agent:{config.agent.id}:main"))
    return not inside or config.value("agents.defaults.sandbox.workspaceAccess") == "rw"


def window_of(config: Config, model: str = "") -> int:
    """Return the context window in tokens: of `model` where that is configured, else contextTokens, else 200,000."""
    tree = config.tree
    provider, _, name = model.partition("/")
    models = tree.get("models", "providers", provider, "models") if tree and name else None
    for entry in models.value if models is not None and isinstance(models.value, list) else []:
        key = entry.get("id")
        if key is not None and key.value in (name, model) and (size := _positive(entry.get("contextWindow"))):
            return size
    return _positive(tree.get("agents", "defaults", "contextTokens") if tree else None) or flush.DEFAULT_WINDOW


def _positive(node: Node | None) -> int:
    value = node.value if node is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def session_of(transcript: Path, session: flush.Session, limit: int) -> flush.Session:
    """Return `session` with what its `transcript` tells; no more is read than needed. Raises Unreadable."""
    try:
        session = replace(session, transcript_bytes=transcript.stat().st_size)
    except OSError as error:
        raise flush.unreadable(transcript, error) from error
    return _with_usage(session, flush.last_usage(transcript)) if flush.reads_transcript(session, limit) else session


def _with_usage(session: flush.Session, last: flush.Usage | None) -> flush.Session:
    return session if last is None else replace(session, prompt_tokens=last[0], output_tokens=last[1])


def near(config: Config) -> tuple[Nearness, ...]:
    """Return every live session of the agent, in files or in its database, the last used first. Raises Unreadable."""
    agent, rules, window = config.agent.id, rules_of(config), window_of(config)
    folder, entries, marks = session_folder(agent), _entries(config.agent), FlushMarks(agent)
    sessions: list[Nearness] = []

    def add(name: str, key: str, path: Path, modified: float, session: flush.Session) -> None:
        decision = flush.decide(rules, session, window, writable=_writable(config, key))
        sessions.append(Nearness(name, path, modified, decision, session.flushed_at))

    for path in sorted(folder.glob("*.jsonl")):
        key, entry = entries.get(path.stem, ("", {}))
        session = session_of(path, marks.merged(path.stem, _facts(entry)), flush.threshold(window, rules))
        add(path.stem, key, path, path.stat().st_mtime, session)
    for live in agent_sessions.live(agent):
        session = replace(marks.merged(live.id, _facts(live.entry, newer=True)), transcript_bytes=live.size)
        add(live.id, live.key, agent_database(agent), live.at, _with_usage(session, live.usage))
    return tuple(sorted(sessions, key=lambda each: -each.modified))


def facts_of(agent: Agent, session: str, transcript: Path | None) -> flush.Session:
    """Return what is kept of a session: by its host, by us, or read from the transcript itself. Raises Unreadable."""
    merged = FlushMarks(agent.id).merged(session, _facts(_entries(agent).get(session, ("", {}))[1]))
    if merged.compactions or transcript is None:
        return merged
    return replace(merged, compactions=flush.compactions(transcript))


def _facts(entry: Mapping[str, Any], *, newer: bool = False) -> flush.Session:
    """Return what the host keeps of a session, with `newer` in the database of 2026.9.

    That has the flush as a record, and counts tokens only where their count is marked; before, they count unless marked
    as stale. Without an entry nothing is known.
    """
    at, last = entry.get("memoryFlushAt"), entry.get("memoryFlush")
    fresh = entry.get("totalTokensFresh")
    done = last.get("compactionCount") if isinstance(last, dict) and last.get("kind") == "succeeded" else None
    return flush.Session(
        total_tokens=flush.whole(entry.get("totalTokens")),
        fresh=fresh is True and entry.get("totalTokensVersion") == 1 if newer else fresh is not False,
        compactions=flush.whole(entry.get("compactionCount")) or 0,
        flushed_in=flush.whole(entry.get("memoryFlushCompactionCount") if done is None else done),
        flushed_at=at / 1000 if isinstance(at, int | float) else None,
    )


def _entries(agent: Agent) -> _Entries:
    """Read the host's sessions.json; empty where there is none that can be read."""
    try:
        data = json.loads(read_regular(session_folder(agent.id) / "sessions.json"))
    except (OSError, ValueError):
        return {}
    entries = data.items() if isinstance(data, dict) else ()
    return {
        entry["sessionId"]: (key, entry)
        for key, entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
    }


class FlushMarks:
    """Which sessions of an agent were flushed, for hosts that keep no such thing; in the state database."""

    def __init__(self, agent: str) -> None:
        self._old = state_db.default_path().with_name(f"flush-{agent}.json")
        self._records = TABLE.of(agent, self._read_old)

    def _read_old(self) -> dict[str, dict[str, Any]]:
        """Read what earlier releases kept in a file, the oldest first. Raises OSError, ValueError."""
        try:
            data = json.loads(self._old.read_bytes())
        except FileNotFoundError:
            return {}
        marks = {key: mark for key, mark in data.items() if isinstance(mark, dict)} if isinstance(data, dict) else {}
        return dict(sorted(marks.items(), key=lambda item: item[1].get("at", 0)))

    @cached_property
    def _marks(self) -> dict[str, Any]:
        return self._records.read()

    def merged(self, name: str, session: flush.Session) -> flush.Session:
        """Return `session` with our mark of it; the later flush of the two counts. Raises StateUnavailable."""
        mark = self._marks.get(name)
        if not isinstance(mark, dict) or (session.flushed_at or 0) > mark.get("at", 0):
            return session
        return replace(session, flushed_in=flush.whole(mark.get("compactions")), flushed_at=mark.get("at"))

    def done(self, session: str, compactions: int) -> None:
        """Remember that a session was flushed in this compaction cycle. Raises MemoryTuiError."""
        try:
            self._records.put(session, {"compactions": compactions, "at": time.time()})
        except StateUnavailable as error:
            raise MemoryTuiError(error.message, "The session may be flushed twice.") from error
