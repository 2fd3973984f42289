"""Dreaming is what OpenClaw 2026.9 writes into notes at night, between markers that it looks for again.

Whoever breaks a marker makes OpenClaw write its block a second time, or lose what stands around it. So an edit that
leaves half of a pair, or changes a marker, is not made.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from memory_tui.core.errors import EditRefused

_PAIR = re.compile(r"<!--\s*openclaw:dreaming:(diary|deep|light|rem):(start|end)\s*-->")
_PROMOTION = re.compile(r"<!--\s*openclaw-memory-promotion:([^\n]*?)\s*-->")
_TITLES = {"diary": "dream diary", "deep": "deep sleep", "light": "light sleep", "rem": "REM sleep"}


@dataclass(frozen=True, slots=True)
class DreamBlock:
    """What OpenClaw wrote on lines `first` to `last` (from 1), markers included; `kind` is promotion or a phase."""

    kind: str
    first: int
    last: int
    key: str = ""


def dream_blocks(text: str) -> list[DreamBlock]:
    """List what OpenClaw's dreaming wrote into a note, in its order; a half pair is none."""
    found: list[DreamBlock] = []
    begun: dict[str, int] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for kind, side in _PAIR.findall(line):
            if side == "start":
                begun[kind] = number
            elif kind in begun:
                found.append(DreamBlock(kind, begun.pop(kind), number))
        if promoted := _PROMOTION.search(line):
            entry = number < len(lines) and lines[number].startswith("- ")
            found.append(DreamBlock("promotion", number, number + entry, promoted[1]))
    return sorted(found, key=lambda block: (block.first, block.last))


def broken(before: str, after: str) -> str:
    """Say how a change from `before` to `after` breaks a block that was whole; empty where it breaks none.

    A block may go as a whole, and one that was broken before may stay so. A promoted entry may go without its marker.
    """
    if "openclaw" not in before:
        return ""
    old, new = _sides(before), _sides(after)
    for kind, title in _TITLES.items():
        if _whole(old[kind]) and not _whole(new[kind]):
            return f"it breaks the markers of OpenClaw's {title} block"
    lines, kept = before.split("\n"), Counter(after.split("\n"))
    for block in dream_blocks(before):
        if block.kind != "promotion" or block.last == block.first:
            continue
        marker, entry = lines[block.first - 1], lines[block.last - 1]
        if not kept[marker] and kept[entry]:
            return f"it takes the promotion marker {block.key} from its entry"
    return ""


def require_whole(path: str, before: bytes | None, after: bytes | None) -> None:
    """Raises EditRefused where writing `after` for `before` breaks a block of `path`."""
    if before is None or after is None:
        return
    if reason := broken(before.decode("utf-8", "replace"), after.decode("utf-8", "replace")):
        raise EditRefused(
            f"{path} was not written: {reason}.",
            "Leave the markers as they are, or take the whole block away.",
        )


def _sides(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in _TITLES}
    for kind, side in _PAIR.findall(text):
        found[kind].append(side)
    return found


def _whole(sides: list[str]) -> bool:
    """Whether every start is followed by its end."""
    return Counter(sides)["start"] == Counter(sides)["end"] and all(
        side == ("start", "end")[number % 2] for number, side in enumerate(sides)
    )
