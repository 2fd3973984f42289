"""Dreaming is what OpenClaw 2026.9 writes into notes at night, between markers that it looks for again.

Whoever breaks a marker makes OpenClaw write its block a second time, or lose what stands around it. So an edit that
leaves half of a pair, or changes a marker, is not made.
"""

from __future__ import annotations

import re

from msgspec import Struct

from memory_tui.errors import EditRefused

_PAIR = re.compile(r"<!--\s*openclaw:dreaming:(diary|deep|light|rem):(start|end)\s*-->")
_PROMOTION = re.compile(r"<!--\s*openclaw-memory-promotion:([^\n]*?)\s*-->")
TITLES = {"diary": "dream diary", "deep": "deep sleep", "light": "light sleep", "rem": "REM sleep"}


class DreamBlock(Struct, frozen=True):
    """What OpenClaw wrote on lines `first` to `last` (from 1), markers included; `kind` is promotion or a phase."""

    kind: str
    first: int
    last: int
    key: str = ""


def dream_blocks(text: str) -> list[DreamBlock]:
    """Return what OpenClaw's dreaming wrote into a note, in its order; a marker without its other half is left out."""
    blocks: list[DreamBlock] = []
    begun: dict[str, int] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for kind, side in _PAIR.findall(line):
            if side == "start":
                begun[kind] = number
            elif kind in begun:
                blocks.append(DreamBlock(kind, begun.pop(kind), number))
        if promotion := _PROMOTION.search(line):
            # The entry that it promotes stands on the next line: `number` counts from 1, so it is that line's index.
            has_entry = number < len(lines) and lines[number].startswith("- ")
            blocks.append(DreamBlock("promotion", number, number + 1 if has_entry else number, promotion[1]))
    return sorted(blocks, key=lambda block: (block.first, block.last))


def broken(before: str, after: str) -> str:
    """Say how a change from `before` to `after` breaks a block that was whole; empty where it breaks none.

    A block may go as a whole, and one that was broken before may stay so. Markers that stay keep every byte.
    """
    if "openclaw" not in before:
        return ""
    old, new = _sides(before), _sides(after)
    for kind, title in TITLES.items():
        if not _whole(old[kind]):
            # Broken before: there is nothing to keep.
            continue
        if not _whole(new[kind]):
            return f"it breaks the markers of OpenClaw's {title} block"
        # A block that moved within the note, or came back, has its old markers or those that OpenClaw writes.
        known = {marker for _, marker in old[kind]}
        known |= {f"<!-- openclaw:dreaming:{kind}:{side} -->" for side in ("start", "end")}
        if any(marker not in known for _, marker in new[kind]):
            return f"it changes a marker of OpenClaw's {title} block"
    return _promotion_broken(before.split("\n"), after.split("\n"), dream_blocks(before))


def _promotion_broken(before: list[str], after: list[str], blocks: list[DreamBlock]) -> str:
    """Say how promoted entries lose their markers, or markers their entries; empty where they do not.

    `before` and `after` are the lines of the note, `blocks` what dreaming wrote into it before.
    """
    lines_before, lines_after = set(before), set(after)
    # Each line with the one below it; below the last one stands nothing.
    line_below = dict(zip(after, [*after[1:], ""], strict=True))
    has_new_marker = any("openclaw-memory-promotion" in line for line in lines_after - lines_before)
    for block in blocks:
        # A marker on a line alone has no entry.
        if block.kind != "promotion" or block.last == block.first:
            continue
        marker, entry = before[block.first - 1], before[block.last - 1]
        if marker not in lines_after:
            # Marker and entry may go together; one of them may not.
            if entry in lines_after:
                return f"it takes the promotion marker {block.key} from its entry"
            if has_new_marker:
                return f"it changes the promotion marker {block.key}"
        elif line_below[marker] != entry:
            below = line_below[marker]
            is_other_entry = below.startswith("- ") and below in lines_before
            if is_other_entry or entry in lines_after:
                return f"it puts another entry below the promotion marker {block.key}"
    return ""


def require_whole(path: str, before: bytes | None, after: bytes | None) -> None:
    """Raise EditRefused where writing `after` for `before` breaks a block of `path`."""
    if before is None or after is None:
        return
    if reason := broken(before.decode("utf-8", "replace"), after.decode("utf-8", "replace")):
        step = "Leave the markers as they are, or take the whole block away."
        raise EditRefused(f"{path} was not written: {reason}.", step)


def _sides(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return side (start or end) and text of each marker, by the kind of its block, in their order."""
    sides: dict[str, list[tuple[str, str]]] = {kind: [] for kind in TITLES}
    for marker in _PAIR.finditer(text):
        sides[marker[1]].append((marker[2], marker[0]))
    return sides


def _whole(markers: list[tuple[str, str]]) -> bool:
    """Tell whether every start is followed by its end; so it is where there are none."""
    return [side for side, _ in markers] == ["start", "end"] * (len(markers) // 2)
