"""Annotating plans the comments of an entry of MEMORY.md or USER.md that steer its recall.

Triggers, importance and project stand at the end of the entry's first line, where OpenClaw 2026.9 reads them. What is
written is read again by its rules first, so that no annotation is written that would have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.notes.changes import Change, FileChange, Lines, bare, end_of
from memory_tui.notes.planner import Planner
from memory_tui.workspace.annotations import Annotations, read_annotations, without_markers
from memory_tui.workspace.chunking_2026_9 import BY_ENTRIES, blocks


class AnnotatedEntry(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of a curated note that OpenClaw keeps as one memory, and what they are given.

    `words` is its first line without list mark and annotations.
    """

    first: int
    last: int
    words: str
    said: Annotations


def entries(data: bytes | None, path: str) -> list[AnnotatedEntry]:
    """List the entries of the curated note `path` that holds `data`; none of any other note."""
    if path not in BY_ENTRIES:
        return []
    raw = Lines.of(data, path).texts()
    clean = without_markers("\n".join(raw)).split("\n")
    return [
        AnnotatedEntry(
            block.first,
            _last(raw, block.first, block.last),
            clean[block.first - 1][2:].strip(),
            read_annotations(raw[block.first - 1 : block.last], path),
        )
        for block in blocks(clean, by_entries=True)
        if block.entry and block.first <= len(raw)
    ]


def annotate(planner: Planner, path: str, data: bytes | None, targets: Mapping[int, Annotations]) -> Change:
    """The change that gives the entries that begin in the lines of `targets` these annotations.

    `data` is what the note `path` holds. Raises EditRefused where a line begins no entry, or an annotation would have
    no effect.
    """
    note = Lines.of(data, path)
    by_line = {entry.first: entry for entry in entries(data, path)}
    lines, count = list(note.lines), 0
    for first, wish in targets.items():
        entry = by_line.get(first)
        if entry is None:
            raise EditRefused(
                f"{path}:{first} begins no entry.", "Entries are lines of MEMORY.md or USER.md with “- ”."
            )
        if wish == entry.said:
            continue
        count += 1
        at = slice(first - 1, entry.last)
        lines[at] = _written(path, lines[at], entry.said, wish)
    if not count:
        raise EditRefused("The entries have these annotations already.", "Nothing was changed.")
    file = FileChange(path, data, Lines(note.bom, tuple(lines)).data)
    return planner.with_trust(Change("annotate", f"Annotate {plural(count, 'entry')} of {path}", (file,)))


def described(wish: Annotations) -> str:
    """Annotations in words."""
    parts = [f"importance {wish.importance}"] if wish.importance else []
    parts += [f"triggers {wish.triggers}"] if wish.triggers else []
    return ", ".join([*parts, *([f"project {wish.project}"] if wish.project else [])]) or "no annotations"


def _last(raw: Sequence[str], first: int, last: int) -> int:
    """The last line of an entry that is not blank."""
    return max(number for number in range(first, min(last, len(raw)) + 1) if number == first or raw[number - 1].strip())


def _written(path: str, lines: Sequence[str], was: Annotations, wish: Annotations) -> list[str]:
    """Return the `lines` of an entry, with their ends, with other annotations. Raises EditRefused."""
    texts = [bare(line) for line in lines]
    values = {"trigger": wish.triggers.replace("; ", ", "), "importance": wish.importance, "project": wish.project}
    before = was.triggers, was.importance, was.project
    after = wish.triggers, wish.importance, wish.project
    for (kind, value), old, new in zip(values.items(), before, after, strict=True):
        if old == new:
            continue
        marker = re.compile(rf"[ \t]*<!--[ \t]*{kind}[ \t]*:[^\n]*?-->", re.IGNORECASE)
        texts = [_taken_out(marker, text) for text in texts]
        if value:
            texts[0] = f"{texts[0].rstrip()} <!-- {kind}: {value} -->"
    if (effective := read_annotations(texts, path)) != wish:
        raise EditRefused(
            f"OpenClaw would read {described(effective)} there, not {described(wish)}.",
            "Mend the comments of this entry by hand, or choose other words.",
        )
    return [text + end_of(line) for text, line in zip(texts, lines, strict=True)]


def _taken_out(marker: re.Pattern[str], text: str) -> str:
    left = marker.sub("", text)
    return text if left == text else left.rstrip()
