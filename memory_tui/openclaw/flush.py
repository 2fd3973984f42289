"""The memory flush before compaction: whether OpenClaw lets a session write down now what it knows.

The decision is OpenClaw's (2026.3.13, `memory-flush`): a session is flushed once in each compaction cycle, when its
tokens come near the context window, or when its transcript has grown past a size. OpenClaw, or its plugin, runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.config_file import Config
from memory_tui.config.places import agent_database, session_folder
from memory_tui.durable import read_regular
from memory_tui.openclaw import agent_sessions
from memory_tui.openclaw.agent_sessions import Usage, whole

DEFAULT_WINDOW = 200_000
NEAR_TOKENS = 8_192
"""So near the threshold a transcript is read as well: it may count more tokens than the host keeps."""
_COMPACTION = "agents.defaults.compaction"

_DETAILS = {
    "disabled": "memoryFlush.enabled is false",
    "read-only sandbox": "the sandbox may not write to the workspace",
    "already flushed": "it was flushed already since the last compaction",
    "tokens": "{tokens:,} tokens reach the threshold of {limit:,} (window {window:,})",
    "transcript size": "the transcript has {size:,} bytes, at least {least:,}",
    "window too small": "reserve and soft threshold together leave no room in the context window",
    "tokens unknown": "nobody knows how many tokens the session has",
    "below threshold": "the session is still small enough: {tokens:,} of {limit:,} tokens",
}
"""Why a session is flushed, or is not: a sentence for each cause."""


class FlushRules(Struct, frozen=True):
    """The settings of `agents.defaults.compaction`; tokens and bytes, 0 bytes never forces."""

    enabled: bool = True
    reserve_floor: int = 20_000
    soft_threshold: int = 4_000
    force_bytes: int = 2_097_152


class Session(Struct, frozen=True):
    """What is known of a session; None where something is not.

    `total_tokens` is the count that the host keeps, `fresh` whether it is of the last turn; `usage` is the last one in
    the transcript. `flushed_in` is the compaction count of the last flush, `flushed_at` its time in epoch seconds.
    """

    total_tokens: int | None = None
    fresh: bool = False
    usage: Usage | None = None
    transcript_bytes: int = 0
    compactions: int = 0
    flushed_in: int | None = None
    flushed_at: float | None = None

    @property
    def tokens(self) -> int | None:
        """Count the tokens of the session, with those of the last answer; None where nobody knows them.

        Of the host's fresh count and the transcript's the larger one is taken.
        """
        prompt, output = self.usage or (0, 0)
        host_count = self.total_tokens if self.fresh else None
        counted = max(prompt, host_count or 0)
        return counted + output if counted else None


class FlushDecision(Struct, frozen=True):
    """Whether to flush, and why (not): `tokens` counted, None when unknown; `left` tokens until then."""

    flush: bool
    cause: str
    detail: str
    tokens: int | None
    threshold: int
    window: int
    left: int | None


class Nearness(Struct, frozen=True):
    """How near a session's flush is: the decision now, and when it was flushed last (seconds, None for never)."""

    session: str
    transcript: Path
    modified: float
    decision: FlushDecision
    flushed_at: float | None

    @property
    def sentence(self) -> str:
        """Say whether to flush, and why (not)."""
        return f"{self.session}: {'flush now' if self.decision.flush else 'no flush'}: {self.decision.detail}."


def threshold(window: int, rules: FlushRules) -> int:
    """Return the count of tokens from which on a session is flushed; 0 and less mean that none ever is."""
    return window - rules.reserve_floor - rules.soft_threshold


def decide(rules: FlushRules, session: Session, window: int, *, writable: bool = True) -> FlushDecision:
    """Decide whether this session should be flushed before its next turn; the first cause that fits is told.

    `window` are the tokens of the model's context, `writable` tells whether the session may write to the workspace.
    """
    limit, tokens, size = threshold(window, rules), session.tokens, session.transcript_bytes
    fits = {
        "disabled": not rules.enabled,
        "read-only sandbox": not writable,
        "already flushed": session.flushed_in == session.compactions,
        "tokens": tokens is not None and 0 < limit <= tokens,
        "transcript size": 0 < rules.force_bytes <= size,
        "window too small": limit <= 0,
        "tokens unknown": tokens is None,
        "below threshold": True,
    }
    cause = next(name for name, fit in fits.items() if fit)
    detail = _DETAILS[cause].format(tokens=tokens, limit=limit, window=window, size=size, least=rules.force_bytes)
    left = max(0, limit - tokens) if tokens is not None and limit > 0 else None
    flush = cause in ("tokens", "transcript size")
    return FlushDecision(flush, cause, detail, tokens, threshold=limit, window=window, left=left)


def rules_of(config: Config) -> FlushRules:
    """Return the flush settings of a configuration."""

    def value(key: str) -> Any:  # noqa: ANN401 - of the kind that its row says
        """Return the value of a key below the section of compaction."""
        return config.value(f"{_COMPACTION}.{key}")

    return FlushRules(
        enabled=value("memoryFlush.enabled"),
        reserve_floor=value("reserveTokensFloor"),
        soft_threshold=value("memoryFlush.softThresholdTokens"),
        force_bytes=value("memoryFlush.forceFlushTranscriptBytes"),
    )


def writable(config: Config, key: str) -> bool:
    """Tell whether the agent may write to its workspace in the session `key`: in a sandbox where the access is rw.

    A session without a known key is taken for the main one, which `non-main` leaves outside.
    """
    mode = config.value("agents.defaults.sandbox.mode")
    # Whether the session runs in a sandbox.
    inside = mode == "all" or (mode == "non-main" and key not in ("", f"agent:{config.agent.id}:main"))
    return not inside or config.value("agents.defaults.sandbox.workspaceAccess") == "rw"


def window_of(config: Config) -> int:
    """Return the context window in tokens: contextTokens, else 200,000."""
    node = config.tree.get("agents", "defaults", "contextTokens") if config.tree is not None else None
    return DEFAULT_WINDOW if node is None else whole(node.value) or DEFAULT_WINDOW


def near(config: Config) -> tuple[Nearness, ...]:
    """Decide for every session of the agent that its host keeps, the one that changed last first. Raises Unreadable."""
    agent, rules, window = config.agent.id, rules_of(config), window_of(config)
    entries = _entries(agent)
    sessions: list[Nearness] = []

    def add(session_id: str, key: str, path: Path, modified: float, session: Session) -> None:
        """Add the decision about a session, whose transcript at `path` was `modified` then (epoch seconds)."""
        decision = decide(rules, session, window, writable=writable(config, key))
        sessions.append(Nearness(session_id, path, modified, decision, session.flushed_at))

    for path in sorted(session_folder(agent).glob("*.jsonl")):
        key, entry = entries.get(path.stem, ("", {}))
        try:
            status = path.stat()
        except OSError as error:
            raise agent_sessions.unreadable(path, error) from error
        session = replace(_facts(entry), transcript_bytes=status.st_size)
        # A transcript takes time to read: only where the count is unknown, as if the window were full, or near.
        if (session.tokens or window) >= threshold(window, rules) - NEAR_TOKENS:
            session = replace(session, usage=agent_sessions.usage_in(reversed(agent_sessions.tail(path))))
        add(path.stem, key, path, status.st_mtime, session)
    for live in agent_sessions.live(agent):
        session = replace(_facts(live.entry, newer=True), transcript_bytes=live.size, usage=live.usage)
        add(live.id, live.key, agent_database(agent), live.at, session)
    return tuple(sorted(sessions, key=lambda nearness: -nearness.modified))


def _facts(entry: Mapping[str, Any], *, newer: bool = False) -> Session:
    """Return what the host keeps of a session in its `entry`; `newer` tells that this is of the database of 2026.9.

    The count of tokens is fresh there only where it is marked as fresh and counted in the way of `totalTokensVersion`
    1; in older files it is, unless it is marked as stale. Of an empty entry nothing is known.
    """
    flushed_at = entry.get("memoryFlushAt")
    flushed_in = entry.get("memoryFlushCompactionCount")
    # 2026.9 writes the compaction count of a flush that succeeded into `memoryFlush`, older releases beside it.
    flush = entry.get("memoryFlush")
    if isinstance(flush, dict) and flush.get("kind") == "succeeded":
        flushed_in = flush.get("compactionCount", flushed_in)
    mark = entry.get("totalTokensFresh")
    is_marked = mark is True and entry.get("totalTokensVersion") == 1
    return Session(
        total_tokens=whole(entry.get("totalTokens")),
        fresh=is_marked if newer else mark is not False,
        compactions=whole(entry.get("compactionCount")) or 0,
        flushed_in=whole(flushed_in),
        flushed_at=flushed_at / 1000 if isinstance(flushed_at, int | float) else None,
    )


def _entries(agent: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return key and entry of each session in the host's sessions.json, by session id; none where it is unreadable."""
    try:
        data = agent_sessions.record_of(read_regular(session_folder(agent) / "sessions.json"))
    except OSError:
        return {}
    return {
        entry["sessionId"]: (key, entry)
        for key, entry in data.items()
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
    }
