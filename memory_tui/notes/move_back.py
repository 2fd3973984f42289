"""Moving back takes entries that OpenClaw promoted out of MEMORY.md; their daily notes hold them again, or still."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import EditRefused
from memory_tui.core.formatting import plural
from memory_tui.notes.changes import Change, FileChange, Lines
from memory_tui.notes.planner import delete_lines
from memory_tui.notes.promote import Spot
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import shown_day

_EVIDENCE = re.compile(r"\s*\[score=[^\]]*?source=(?P<path>[^\]\s]+?\.md):(?P<first>\d+)-\d+\]")
_SOURCE = re.compile(r"\s*Source: (?P<path>\S+?\.md)#L(?P<first>\d+)(?:-L?\d+)?\s*$")
_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.MULTILINE)
_ENOUGH = 120
"""Characters of an entry that tell it from others."""


class PromotedEntry(Struct, frozen=True):
    """What a promoted entry says without marker, counts and annotations, and the note and line it came from."""

    words: str
    path: str
    line: int


def promoted_entry(lines: Sequence[str]) -> PromotedEntry:
    """Read the lines of a promoted entry, its marker included; the path is empty where it names none."""
    text = without_markers("\n".join(line for line in lines if not line.lstrip().startswith("<!--")))
    found = _EVIDENCE.search(text) or _SOURCE.search(text)
    words = _SOURCE.sub("", _EVIDENCE.sub("", text))
    path, line = (found["path"], int(found["first"])) if found else ("", 0)
    return PromotedEntry(_MARK.sub("", words).strip(), path, line)


def move_back(spots: Sequence[Spot], read: Callable[[str], bytes | None]) -> Change:
    """Delete the promoted entries of `spots`; what their daily notes lack goes back there. `read` gives a note.

    Raises EditRefused where an entry names no note that it came from.
    """
    notes: dict[str, tuple[bytes | None, Lines]] = {}
    said = []
    for spot in spots:
        entry = promoted_entry(spot.texts())
        if not entry.path.startswith("memory/") or ".." in entry.path:
            raise EditRefused(f"{spot} names no note that it came from.", "Delete it, or keep it.")
        if entry.path not in notes:
            data = read(entry.path)
            notes[entry.path] = data, Lines.of(data, entry.path)
        data, note = notes[entry.path]
        if _plain(entry.words)[:_ENOUGH] in _plain("\n".join(note.texts())):
            said.append(f"{entry.path} still says it, about line {entry.line}.")
            continue
        day = shown_day(entry.path)
        head = [f"# {day or entry.path}", ""] if not note.lines else []
        first, *rest = entry.words.split("\n")
        item = [f"- {first}", *(f"  {line.strip()}" for line in rest)]
        notes[entry.path] = data, note.insert(len(note.lines) + 1, [*head, *item])
    change = delete_lines(spots, kind="move back", title=_title(spots))
    back = [FileChange(path, data, note.data) for path, (data, note) in notes.items() if note.data != (data or b"")]
    # Notes get their lines before MEMORY.md loses them, so that nothing is lost in between.
    return replace(change, files=(*back, *change.files), notes=(*change.notes, *dict.fromkeys(said)))


def _title(spots: Sequence[Spot]) -> str:
    return f"Move {spots[0]} back" if len(spots) == 1 else f"Move {plural(len(spots), 'promoted entry')} back"


def _plain(text: str) -> str:
    return " ".join(_MARK.sub("", text).lower().split())
