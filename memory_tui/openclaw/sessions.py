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
from memory_tui.core.errors import MemoryTuiError, StateUnavailable
from memory_tui.durable import read_regular
from memory_tui.openclaw import agent_sessions, flush

TABLE = state_db.Table("flush_marks", most=1000)
_COMPACTION = "agents.defaults.compaction"


class SessionFacts(Struct, frozen=True):
    """What is kept of a session between two turns; `at` is the time of the last flush in seconds."""

    tokens: int | None = None
    fresh: bool = False
    compactions: int = 0
    flushed_in: int | None = None
    at: float | None = None


class Nearness(Struct, frozen=True):
    """How near a session's flush is: the decision now, and when it was flushed last (seconds, None for never)."""

    session: str
    transcript: Path
    modified: float
    decision: flush.FlushDecision
    flushed_at: float | None


def folder(agent: Agent) -> Path:
    """Where the host keeps the transcripts of `agent`."""
    return session_folder(agent.id)


def rules_of(config: Config) -> flush.FlushRules:
    """The flush settings of a configuration; what is missing or cannot be used counts as documented."""

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


def writable(config: Config, session: str = "") -> bool:
    """Whether the agent may write to its workspace in `session`: in a sandbox only where that may (workspaceAccess rw).

    Of a session without a known key the main one is taken, which `non-main` leaves outside.
    """
    return _writable_under(config, _keys(_sessions_of_host(folder(config.agent))).get(session, ""))


def _writable_under(config: Config, key: str) -> bool:
    mode = config.value("agents.defaults.sandbox.mode")
    inside = mode == "all" or (mode == "non-main" and key not in ("", _main(config.agent)))
    return not inside or config.value("agents.defaults.sandbox.workspaceAccess") == "rw"


def _main(agent: Agent) -> str:
    return f"agent:{agent.id}:main"


def _keys(of_host: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """The session keys of the host's entries by session id; the first of several."""
    return {session: key for key, entry in reversed([*of_host.items()]) if (session := _id(entry))}


def _id(entry: Mapping[str, Any]) -> str:
    """The id of the host's entry of a session; empty where it has none."""
    session = entry.get("sessionId")
    return session if isinstance(session, str) else ""


def window_of(config: Config, model: str = "") -> int:
    """The context window in tokens: of `model` where the configuration knows it, else contextTokens, else 200,000."""
    tree = config.tree
    provider, _, name = model.partition("/")
    models = tree.get("models", "providers", provider, "models") if tree and name else None
    for one in models.value if models is not None and isinstance(models.value, list) else []:
        found = one.get("id")
        if found is not None and found.value in (name, model) and (size := _positive(one.get("contextWindow"))):
            return size
    return _positive(tree.get("agents", "defaults", "contextTokens") if tree else None) or flush.DEFAULT_WINDOW


def _positive(node: Node | None) -> int:
    value = node.value if node is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def known_of(facts: SessionFacts, next_tokens: int = 0) -> flush.Session:
    """A session as `facts` describe it, without its transcript."""
    return flush.Session(
        total_tokens=facts.tokens,
        fresh=facts.fresh,
        next_tokens=next_tokens,
        compactions=facts.compactions,
        flushed_in=facts.flushed_in,
    )


def session_of(transcript: Path, facts: SessionFacts, limit: int, next_tokens: int = 0) -> flush.Session:
    """A session as `facts` and its `transcript` describe it; no more is read than needed. Raises Unreadable."""
    session = replace(known_of(facts, next_tokens), transcript_bytes=flush.size(transcript))
    if not flush.reads_transcript(session, limit):
        return session
    return _with_usage(session, flush.last_usage(transcript))


def _with_usage(session: flush.Session, last: flush.Usage | None) -> flush.Session:
    return session if last is None else replace(session, prompt_tokens=last.prompt, output_tokens=last.output)


def near(config: Config) -> tuple[Nearness, ...]:
    """Every live session of the agent, in files or in its database, the last one used first. Raises Unreadable."""
    place, rules, window = folder(config.agent), rules_of(config), window_of(config)
    entries, marks = _sessions_of_host(place), FlushMarks(config.agent.id)
    of_host, keys = _by_id(entries), _keys(entries)
    found = []
    for path in sorted(place.glob("*.jsonl")) if place.is_dir() else []:
        facts = marks.merged(path.stem, of_host.get(path.stem))
        run = flush.AgentRun(writable=_writable_under(config, keys.get(path.stem, "")))
        decision = flush.decide(rules, session_of(path, facts, flush.threshold(window, rules)), run, window)
        found.append(Nearness(path.stem, path, path.stat().st_mtime, decision, facts.at))
    for kept in agent_sessions.live(config.agent.id):
        facts = marks.merged(kept.id, _facts(kept.entry, newer=True))
        session = _with_usage(replace(known_of(facts), transcript_bytes=kept.size), kept.usage)
        decision = flush.decide(rules, session, flush.AgentRun(writable=_writable_under(config, kept.key)), window)
        found.append(Nearness(kept.id, agent_database(config.agent.id), kept.at, decision, facts.at))
    return tuple(sorted(found, key=lambda one: -one.modified))


def facts_of(agent: Agent, session: str, transcript: Path | None) -> SessionFacts:
    """What is kept of a session: by its host, by us, or read from the transcript itself. Raises Unreadable."""
    merged = FlushMarks(agent.id).merged(session, _by_id(_sessions_of_host(folder(agent))).get(session))
    if merged.compactions or transcript is None:
        return merged
    return SessionFacts(merged.tokens, merged.fresh, flush.compactions(transcript), merged.flushed_in, merged.at)


def _by_id(of_host: Mapping[str, dict[str, Any]]) -> dict[str, SessionFacts]:
    """What the host keeps of each session, by session id; the last of several."""
    return {session: _facts(entry) for entry in of_host.values() if (session := _id(entry))}


def _facts(entry: Mapping[str, Any], *, newer: bool = False) -> SessionFacts:
    """What the host keeps of a session, with `newer` in the database of 2026.9: that has the flush as a record, and
    counts tokens only where their count is marked; before, they count unless marked as stale.
    """
    at, last = entry.get("memoryFlushAt"), entry.get("memoryFlush")
    fresh = entry.get("totalTokensFresh")
    done = last.get("compactionCount") if isinstance(last, dict) and last.get("kind") == "succeeded" else None
    return SessionFacts(
        tokens=flush.whole(entry.get("totalTokens")),
        fresh=fresh is True and entry.get("totalTokensVersion") == 1 if newer else fresh is not False,
        compactions=flush.whole(entry.get("compactionCount")) or 0,
        flushed_in=flush.whole(entry.get("memoryFlushCompactionCount") if done is None else done),
        at=at / 1000 if isinstance(at, int | float) else None,
    )


def _sessions_of_host(place: Path) -> dict[str, dict[str, Any]]:
    """The entries of the host's sessions.json by session key; empty where there is none that can be read."""
    try:
        data = json.loads(read_regular(place / "sessions.json"))
    except (OSError, ValueError):
        return {}
    return {key: one for key, one in data.items() if isinstance(one, dict)} if isinstance(data, dict) else {}


class FlushMarks:
    """Which sessions of an agent were flushed, for hosts that keep no such thing; in the state database."""

    def __init__(self, agent: str) -> None:
        self._old = state_db.default_path().with_name(f"flush-{agent}.json")
        self._records = TABLE.of(agent, self._read_old)

    def _read_old(self) -> dict[str, dict[str, Any]]:
        """What earlier releases kept in a file, the oldest first. Raises OSError, ValueError."""
        try:
            data = json.loads(self._old.read_bytes())
        except FileNotFoundError:
            return {}
        marks = {key: one for key, one in data.items() if isinstance(one, dict)} if isinstance(data, dict) else {}
        return dict(sorted(marks.items(), key=lambda item: item[1].get("at", 0)))

    @cached_property
    def _known(self) -> dict[str, Any]:
        return self._records.read()

    def merged(self, session: str, of_host: SessionFacts | None) -> SessionFacts:
        """What is known of a session; the later flush of the two counts. Raises StateUnavailable."""
        facts, ours = of_host or SessionFacts(), self._known.get(session)
        if not isinstance(ours, dict) or (facts.at or 0) > ours.get("at", 0):
            return facts
        count = flush.whole(ours.get("compactions"))
        return SessionFacts(facts.tokens, facts.fresh, facts.compactions, count, ours.get("at"))

    def done(self, session: str, compactions: int) -> None:
        """Remember that a session was flushed in this compaction cycle. Raises MemoryTuiError."""
        try:
            self._records.put(session, {"compactions": compactions, "at": time.time()})
        except StateUnavailable as error:
            raise MemoryTuiError(error.message, "The session may be flushed twice.") from error
