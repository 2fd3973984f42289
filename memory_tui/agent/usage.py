"""What a transcript tells of its session without being read whole: the last token usage, its size, its compactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_tui.errors import Unreadable

BLOCK = 65_536
_PROMPT = (
    ("input", "cacheRead", "cacheWrite"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
)
_OUTPUT = ("output", "output_tokens")


@dataclass(frozen=True, slots=True)
class Usage:
    """The last usage that is not zero: tokens of the prompt, with what came from a cache, and of the answer."""

    prompt: int
    output: int


def last_usage(path: Path) -> Usage | None:
    """The last usage in a transcript, read from its end in blocks of 64 KiB; None where there is none.

    Knows the forms of OpenClaw and of Claude Code. Raises Unreadable.
    """
    try:
        for line in _backwards(path):
            if b"usage" in line and (found := _usage(line)) is not None:
                return found
    except OSError as error:
        raise _unreadable(path, error) from error
    return None


def size(path: Path) -> int:
    """The bytes of a transcript. Raises Unreadable."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def compactions(path: Path) -> int:
    """How often the session was compacted, by the entries that say so. Raises Unreadable."""
    count = 0
    try:
        with path.open("rb") as file:
            for line in file:
                if b"compact" in line and _is_compaction(line):
                    count += 1
    except OSError as error:
        raise _unreadable(path, error) from error
    return count


def _unreadable(path: Path, error: OSError) -> Unreadable:
    return Unreadable(f"The transcript {path} cannot be read: {error.strerror or error}.", "Check the path.")


def _backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file, the last one first."""
    with path.open("rb") as file:
        at = file.seek(0, 2)
        rest = b""
        while at:
            start = max(0, at - BLOCK)
            file.seek(start)
            lines = (file.read(at - start) + rest).split(b"\n")
            rest, at = lines[0], start
            yield from reversed(lines[1:])
        yield rest


def _record(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _usage(line: bytes) -> Usage | None:
    record = _record(line)
    message = record.get("message")
    held = message.get("usage") if isinstance(message, dict) else record.get("usage")
    if not isinstance(held, dict):
        return None
    prompt = max(sum(_whole(held.get(name)) for name in names) for names in _PROMPT)
    output = max(_whole(held.get(name)) for name in _OUTPUT)
    return Usage(prompt, output) if prompt or output else None


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def _is_compaction(line: bytes) -> bool:
    record = _record(line)
    return record.get("type") == "compaction" or record.get("subtype") == "compact_boundary"
