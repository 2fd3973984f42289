"""From a path and a line, as somebody typed them, to the chunks that hold it, or to why no chunk does."""

from __future__ import annotations

import re

from memory_tui.errors import PathRefused, Unreadable
from memory_tui.explain.fates import (
    ChangedSinceIndexed,
    Excluded,
    FileGate,
    InNoChunk,
    NoSuchFile,
    OutsideRoots,
    UnreadableFile,
)
from memory_tui.explain.whynot import Place
from memory_tui.index.freshness import FileState, compare
from memory_tui.index.store import Store
from memory_tui.search.trace import ChunkRef
from memory_tui.workspace import sources
from memory_tui.workspace.roots import Found, PathVerdict, Roots, Scan, scan, why_path

_LINE = re.compile(r"(?P<path>.+?)(?::(?P<line>\d+)(?:-\d+)?|#L(?P<cited>\d+)(?:-L?\d+)?)\Z", re.DOTALL)


def parse(typed: str) -> tuple[str, int | None]:
    """`path:12`, `path:12-24`, or a citation `path#L12-L24`, as path and first line; a bare path has no line."""
    found = _LINE.match(typed)
    return (found["path"], int(found["line"] or found["cited"])) if found else (typed, None)


def look(roots: Roots, store: Store, path: str, line: int | None) -> Place:
    """Everything that disk and index know of a line; costs a stat for a note that is indexed as it is."""
    found, gate = _found(roots, store, path)
    stored = found.path if isinstance(found, Found) else found
    row = store.file(stored)
    if isinstance(found, Found):
        states = compare(Scan((found,), ()), {stored: row} if row else {}).stale
        gate = _state_gate(states[stored]) if states else None
    chunks = (
        tuple(
            ChunkRef(c.rowid, c.chunk_id, stored, row.source, c.start_line, c.end_line)
            for c in store.chunks_of(stored)
            if c.occurrence == 0
        )
        if row
        else ()
    )
    held = tuple(c for c in chunks if line is None or c.start_line <= line <= c.end_line)
    stale = isinstance(gate, ChangedSinceIndexed)
    text = _lines(roots, found) if isinstance(found, Found) and (stale or not held) else []
    if stale and line is not None:
        held = _holding(store, chunks, text[line - 1] if 1 <= line <= len(text) else "", held)
    if not held and gate is None:
        gate = InNoChunk(line, len(text))
    remark = _remark(gate) if held else ""
    # A line that stands in the indexed text as it stands on disk was not lost to the change.
    return Place(stored, line, held, store.texts([c.rowid for c in held]), None if stale and held else gate, remark)


def _found(roots: Roots, store: Store, path: str) -> tuple[Found | str, FileGate | None]:
    """The note on disk, or the stored path it would have with the rule that keeps it out."""
    try:
        note = sources.located(roots, path)
    except PathRefused:
        note = None
    if note is not None and store.file(note.path) is not None:
        return note, None
    # A second name of a note, or one that only a listing of the folders can explain.
    seen = scan(roots)
    verdict = why_path(roots, path, seen)
    if not verdict.included:
        return verdict.path, _rule_gate(verdict)
    return next(note for note in seen.found if note.path == verdict.path), None


def _rule_gate(verdict: PathVerdict) -> FileGate:
    if verdict.rule == "outside":
        return OutsideRoots(verdict.detail)
    if verdict.rule == "missing":
        return NoSuchFile(verdict.detail)
    if verdict.rule == "unreadable" or verdict.rule == "too big":
        return UnreadableFile(verdict.rule, verdict.detail)  # type: ignore[arg-type]
    return Excluded(verdict.rule, verdict.detail)


def _state_gate(state: FileState) -> FileGate:
    return UnreadableFile("failed", state.detail) if state.state == "failed" else ChangedSinceIndexed(state.detail)


def _lines(roots: Roots, found: Found) -> list[str]:
    try:
        text = sources.shown(roots, found.path).text
    except Unreadable:
        # Then what the index says of the file is all there is to say.
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _holding(
    store: Store, chunks: tuple[ChunkRef, ...], wanted: str, by_number: tuple[ChunkRef, ...]
) -> tuple[ChunkRef, ...]:
    """The chunks of an older text that hold the line `wanted` of the new one; of a blank line those of its number."""
    if not wanted.strip():
        return by_number
    texts = store.texts([c.rowid for c in chunks])
    return tuple(c for c in chunks if wanted in texts[c.rowid].split("\n"))


def _remark(gate: FileGate | None) -> str:
    if isinstance(gate, ChangedSinceIndexed):
        return "The note has changed since; this is about the text that is indexed."
    return "The note is not on disk as it was indexed; this is about the text that is indexed." if gate else ""
