"""The memory flush before compaction: when a session must write down what it knows.

The decision is OpenClaw's (2026.3.13, `memory-flush`): a session is flushed once in each compaction cycle, when its
tokens come near the context window, or when its transcript has grown past a size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_tui.durable import open_regular
from memory_tui.errors import Unreadable

SILENT = "NO_REPLY"
"""What the agent answers when there is nothing to store; hosts show nothing of it."""
DEFAULT_WINDOW = 200_000
DEFAULT_RESERVE = 20_000
DEFAULT_SOFT = 4_000
DEFAULT_FORCE_BYTES = 2_097_152
NEAR_TOKENS = 8_192
"""So near the threshold a transcript is read, although the token count that is kept is fresh."""

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
    reserve_floor: int = DEFAULT_RESERVE
    soft_threshold: int = DEFAULT_SOFT
    force_bytes: int = DEFAULT_FORCE_BYTES
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


def reads_transcript(session: Session, limit: int) -> bool:
    """Tell whether the end of the transcript has to be read to know the tokens."""
    if not session.fresh or not session.total_tokens:
        return True
    return session.total_tokens + session.next_tokens >= limit - NEAR_TOKENS


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


BLOCK = 65_536
_PROMPT = (
    ("input", "cacheRead", "cacheWrite"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
)
_OUTPUT = ("output", "output_tokens")


Usage = tuple[int, int]
"""Tokens of the prompt, with what came from a cache, and of the answer."""


def last_usage(path: Path) -> Usage | None:
    """Return the last usage in a transcript that is not zero, read from its end in blocks of 64 KiB.

    Knows the forms of OpenClaw and of Claude Code. Raises Unreadable.
    """
    try:
        return usage_in(_backwards(path))
    except OSError as error:
        raise unreadable(path, error) from error


def usage_in(lines: Iterable[bytes]) -> Usage | None:
    """Return the first usage in `lines` of a transcript; None where there is none."""
    return next((usage for line in lines if b"usage" in line and (usage := _usage(line)) is not None), None)


def compactions(path: Path) -> int:
    """Count how often the session was compacted, by the entries that say so. Raises Unreadable."""
    try:
        with open_regular(path) as file:
            return sum(b"compact" in line and _is_compaction(line) for line in file)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> Unreadable:
    """Name the transcript at `path` that `error` keeps from being read."""
    return Unreadable(f"The transcript {path} cannot be read: {error.strerror or error}.", "Check the path.")


def _backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, the last one first."""
    with open_regular(path) as file:
        at = file.seek(0, 2)
        rest = b""
        while at:
            start = max(0, at - BLOCK)
            file.seek(start)
            lines = (file.read(at - start) + rest).split(b"\n")
            rest, at = lines[0], start
            yield from reversed(lines[1:])
        yield rest


def record_of(line: str | bytes) -> dict[str, Any]:
    """Return the record on a line of a transcript; empty where there is none that can be read."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _usage(line: bytes) -> Usage | None:
    record = record_of(line)
    message = record.get("message")
    counts = message.get("usage") if isinstance(message, dict) else record.get("usage")
    if not isinstance(counts, dict):
        return None
    prompt = max(sum(whole(counts.get(name)) or 0 for name in names) for names in _PROMPT)
    output = max(whole(counts.get(name)) or 0 for name in _OUTPUT)
    return (prompt, output) if prompt or output else None


def whole(value: object) -> int | None:
    """Return a number of JSON from 0 up without its fraction; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        return None
    return int(value)


def _is_compaction(line: bytes) -> bool:
    record = record_of(line)
    return record.get("type") == "compaction" or record.get("subtype") == "compact_boundary"
