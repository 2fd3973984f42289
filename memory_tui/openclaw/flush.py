"""The memory flush before compaction: when a session must write down what it knows.

The decision is OpenClaw's (2026.3.13, `memory-flush`): a session is flushed once in each compaction cycle, when its
tokens come near the context window, or when its transcript has grown past a size.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.model import Agent, Config
from memory_tui.config.places import agent_database, session_folder
from memory_tui.durable import read_regular
from memory_tui.openclaw import agent_sessions
from memory_tui.openclaw.agent_sessions import Usage, whole

SILENT = "NO_REPLY"
"""What the agent answers when there is nothing to store; hosts show nothing of it."""
DEFAULT_WINDOW = 200_000
NEAR_TOKENS = 8_192
"""So near the threshold a transcript is read, although the token count that is kept is fresh."""
_COMPACTION = "agents.defaults.compaction"
_Entries = dict[str, tuple[str, dict[str, Any]]]
"""Key and entry of each session that the host keeps, by session id; the last of several."""

_DETAILS = {
    "disabled": "memoryFlush.enabled is false",
    "heartbeat": "a heartbeat run is no conversation",
    "cli provider": "the provider is a command line program that manages its own context",
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
    prompt: str = ""
    system_prompt: str = ""


class Session(Struct, frozen=True):
    """What is known of a session; None where something is not.

    `total_tokens` is the count that the host keeps, `fresh` whether it is of the last turn; `prompt_tokens` and
    `output_tokens` are the last usage in the transcript, `next_tokens` an estimate of the coming message.
    `flushed_in` is the compaction count of the last flush, `flushed_at` its time in epoch seconds.
    """

    total_tokens: int | None = None
    fresh: bool = False
    prompt_tokens: int | None = None
    output_tokens: int = 0
    next_tokens: int = 0
    transcript_bytes: int | None = None
    compactions: int = 0
    flushed_in: int | None = None
    flushed_at: float | None = None


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


def threshold(window: int, rules: FlushRules) -> int:
    """Count the tokens from which on a session is flushed; not positive is never."""
    return window - rules.reserve_floor - rules.soft_threshold


def projected(session: Session) -> int | None:
    """Count the tokens of the coming turn; None when nobody knows them.

    That is the larger of the host's fresh count and the transcript's, plus answer and message.
    """
    fresh = session.total_tokens if session.fresh and session.total_tokens else 0
    snapshot = max(fresh, session.prompt_tokens or 0)
    return snapshot + session.output_tokens + session.next_tokens if snapshot > 0 else None


def decide(
    rules: FlushRules,
    session: Session,
    window: int,
    *,
    heartbeat: bool = False,
    cli_provider: bool = False,
    writable: bool = True,
) -> FlushDecision:
    """Decide whether this session should be flushed before its next turn: the first cause that fits."""
    limit, tokens, size = threshold(window, rules), projected(session), session.transcript_bytes or 0
    fits = {
        "disabled": not rules.enabled,
        "heartbeat": heartbeat,
        "cli provider": cli_provider,
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
    left = None if tokens is None or limit <= 0 else max(0, limit - tokens)
    return FlushDecision(cause in ("tokens", "transcript size"), cause, detail, tokens, limit, window, left)


# --- the turn ------------------------------------------------------------------------------------------------------

_DAY = "YYYY-MM-DD"
_HINTS = (
    f"Store durable memories only in memory/{_DAY}.md; create the folder when it is missing.",
    "Treat MEMORY.md, SOUL.md, TOOLS.md and AGENTS.md as read-only: do not edit, replace or overwrite them now.",
    f"When memory/{_DAY}.md exists, append to it and leave what it holds as it is.",
)
_ONE_FILE = f"Do not create variants of the name such as {_DAY}-HHMM.md."
_NOTHING = f"If there is nothing to store, reply with {SILENT}."


class Turn(Struct, frozen=True):
    """The turn to run: what the agent is asked and told, and the one file it may write."""

    prompt: str
    system_prompt: str
    file: str
    silent: str = SILENT


def turn(rules: FlushRules, day: str, now: str) -> Turn:
    """Return the turn for `day` (YYYY-MM-DD) at `now`, a time in words; own prompts get what they lack."""
    opening = "The session is near compaction: save what should outlive it to disk."
    usually = f"You may answer, but usually {SILENT} is right."
    prompt = rules.prompt or "\n".join(("Pre-compaction memory flush.", *_HINTS, _ONE_FILE, _NOTHING))
    prompt = _completed(prompt).replace(_DAY, day)
    if "Current time:" not in prompt:
        prompt = f"{prompt}\nCurrent time: {now}"
    return Turn(prompt, _completed(rules.system_prompt or "\n".join((opening, *_HINTS, usually))), f"memory/{day}.md")


def _completed(text: str) -> str:
    """Return a prompt with every hint that it does not hold word for word, and a way to say nothing."""
    for hint in _HINTS:
        if hint not in text:
            text = f"{text}\n\n{hint}"
    return text if SILENT in text else f"{text}\n\nIf no user-visible reply is needed, start with {SILENT}."


# --- what is known of sessions -------------------------------------------------------------------------------------


def rules_of(config: Config) -> FlushRules:
    """Return the flush settings of a configuration."""

    def value(key: str) -> Any:  # noqa: ANN401 - of the kind that its row says
        return config.value(f"{_COMPACTION}.{key}")

    return FlushRules(
        enabled=value("memoryFlush.enabled"),
        reserve_floor=value("reserveTokensFloor"),
        soft_threshold=value("memoryFlush.softThresholdTokens"),
        force_bytes=value("memoryFlush.forceFlushTranscriptBytes"),
        prompt=value("memoryFlush.prompt") or "",
        system_prompt=value("memoryFlush.systemPrompt") or "",
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
    if config.tree is None:
        return DEFAULT_WINDOW
    provider, _, name = model.partition("/")
    models = config.tree.get("models", "providers", provider, "models") if name else None
    sizes = [
        entry.get("contextWindow")
        for entry in (models.value if models is not None and isinstance(models.value, list) else [])
        if (key := entry.get("id")) is not None and key.value in (name, model)
    ]
    sizes.append(config.tree.get("agents", "defaults", "contextTokens"))
    return next((size for node in sizes if node is not None and (size := whole(node.value))), DEFAULT_WINDOW)


def session_of(path: Path, session: Session, limit: int) -> Session:
    """Return `session` with what its transcript tells; no more is read than needed. Raises Unreadable."""
    try:
        session = replace(session, transcript_bytes=path.stat().st_size)
    except OSError as error:
        raise agent_sessions.unreadable(path, error) from error
    if session.fresh and session.total_tokens and session.total_tokens + session.next_tokens < limit - NEAR_TOKENS:
        return session
    return _with_usage(session, agent_sessions.usage_in(reversed(agent_sessions.tail(path))))


def _with_usage(session: Session, usage: Usage | None) -> Session:
    return session if usage is None else replace(session, prompt_tokens=usage[0], output_tokens=usage[1])


def near(config: Config) -> tuple[Nearness, ...]:
    """Decide for every session of the agent that its host keeps, the one that changed last first. Raises Unreadable."""
    agent, rules, window = config.agent.id, rules_of(config), window_of(config)
    folder, entries = session_folder(agent), _entries(config.agent)
    sessions: list[Nearness] = []

    def add(name: str, key: str, path: Path, modified: float, session: Session) -> None:
        decision = decide(rules, session, window, writable=_writable(config, key))
        sessions.append(Nearness(name, path, modified, decision, session.flushed_at))

    for path in sorted(folder.glob("*.jsonl")):
        key, entry = entries.get(path.stem, ("", {}))
        session = session_of(path, _facts(entry), threshold(window, rules))
        add(path.stem, key, path, path.stat().st_mtime, session)
    for live in agent_sessions.live(agent):
        session = replace(_facts(live.entry, newer=True), transcript_bytes=live.size)
        add(live.id, live.key, agent_database(agent), live.at, _with_usage(session, live.usage))
    return tuple(sorted(sessions, key=lambda each: -each.modified))


def facts_of(agent: Agent, session: str, path: Path | None) -> Session:
    """Return what is kept of a session: by its host, or read from the transcript itself. Raises Unreadable."""
    facts = _facts(_entries(agent).get(session, ("", {}))[1])
    if facts.compactions or path is None:
        return facts
    return replace(facts, compactions=agent_sessions.compactions(path))


def _facts(entry: Mapping[str, Any], *, newer: bool = False) -> Session:
    """Return what the host keeps of a session, with `newer` in the database of 2026.9.

    That has the flush as a record, and counts tokens only where their count is marked; before, they count unless marked
    as stale. Without an entry nothing is known.
    """
    at, last = entry.get("memoryFlushAt"), entry.get("memoryFlush")
    fresh = entry.get("totalTokensFresh")
    done = last.get("compactionCount") if isinstance(last, dict) and last.get("kind") == "succeeded" else None
    return Session(
        total_tokens=whole(entry.get("totalTokens")),
        fresh=fresh is True and entry.get("totalTokensVersion") == 1 if newer else fresh is not False,
        compactions=whole(entry.get("compactionCount")) or 0,
        flushed_in=whole(entry.get("memoryFlushCompactionCount") if done is None else done),
        flushed_at=at / 1000 if isinstance(at, int | float) else None,
    )


def _entries(agent: Agent) -> _Entries:
    """Read the host's sessions.json; empty where there is none that can be read."""
    try:
        data = agent_sessions.record_of(read_regular(session_folder(agent.id) / "sessions.json"))
    except OSError:
        return {}
    return {
        entry["sessionId"]: (key, entry)
        for key, entry in data.items()
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
    }
