"""The transcript of a session: JSON lines of OpenClaw, Claude Code or Codex."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memory_tui.durable import open_regular
from memory_tui.errors import Unreadable

ROLES = ("user", "assistant")
BLOCK = 65_536
_BLOCKS = ("text", "input_text", "output_text")
_PROMPT = (
    ("input", "cacheRead", "cacheWrite"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
)
_OUTPUT = ("output", "output_tokens")
Usage = tuple[int, int]
"""Tokens of the prompt, with what came from a cache, and of the answer."""


def unreadable(path: Path, error: OSError) -> Unreadable:
    """Name the transcript at `path` that `error` keeps from being read."""
    return Unreadable(f"The transcript {path} cannot be read: {error.strerror or error}.", "Check the path.")


def record_of(line: str | bytes) -> dict[str, Any]:
    """Return the record on a line of a transcript; empty where there is none that can be read."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def texts(content: object) -> list[str]:
    """Return the texts of a message's content, which is one or a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") in _BLOCKS and isinstance(block.get("text"), str)
    ]


def last_usage(path: Path) -> Usage | None:
    """Return the last usage in a transcript that is not zero, read from its end in blocks. Raises Unreadable."""
    try:
        return usage_in(_backwards(path))
    except OSError as error:
        raise unreadable(path, error) from error


def usage_in(lines: Iterable[bytes]) -> Usage | None:
    """Return the first usage in `lines` that is not zero, in the form of OpenClaw or of Claude Code."""
    for line in lines:
        record = record_of(line) if b"usage" in line else {}
        message = record.get("message")
        counts = message.get("usage") if isinstance(message, dict) else record.get("usage")
        if isinstance(counts, dict):
            prompt = max(sum(whole(counts.get(name)) or 0 for name in names) for names in _PROMPT)
            output = max(whole(counts.get(name)) or 0 for name in _OUTPUT)
            if prompt or output:
                return prompt, output
    return None


def compactions(path: Path) -> int:
    """Count how often the session was compacted, by the entries that say so. Raises Unreadable."""
    try:
        with open_regular(path) as file:
            records = [record_of(line) for line in file if b"compact" in line]
    except OSError as error:
        raise unreadable(path, error) from error
    return sum(item.get("type") == "compaction" or item.get("subtype") == "compact_boundary" for item in records)


def whole(value: object) -> int | None:
    """Return a number of JSON from 0 up without its fraction; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        return None
    return int(value)


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
