"""A line of a note, found by path or number. It has its file and its chunk, and says whether it is indexed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from memory_tui.core.errors import PathRefused, Unreadable
from memory_tui.explain.verdicts import (
    ChangedSinceIndexed,
    Excluded,
    FileGate,
    InNoChunk,
    NoSuchFile,
    OutsideRoots,
    UnreadableFile,
)
from memory_tui.providers.provider_protocol import Vectors
from memory_tui.search.trace import ChunkRef
from memory_tui.source.note_state import FileState, difference, state_of
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import CosineRank
from memory_tui.workspace import roots as workspace_roots
from memory_tui.workspace.roots import PathVerdict, Roots, scan, why_path
from memory_tui.workspace.scan import Found


class ExplainedLine(Struct, frozen=True):
    """A line of a note, and what disk and index know of it.

    `chunks` hold the line (all of the note without one), with their `texts` by rowid. `gate` stopped the file before
    anything was asked; with chunks of an older text there can be both. `remark` is a sentence about such a difference.
    """

    path: str
    line: int | None
    chunks: tuple[ChunkRef, ...]
    texts: Mapping[int, str]
    gate: FileGate | None = None
    remark: str = ""
    standings: Mapping[int, CosineRank] = field(default_factory=dict)
    """The exact place of chunks by cosine, by rowid, where the evidence lacks it."""


def locate(
    roots: Roots, store: ChunkSource, path: str, line: int | None, vector: Vectors | None = None
) -> ExplainedLine:
    """Everything that disk and index know of a line; costs a stat for a note that is indexed as it is.

    With `vector`, which an evidence has that lacks cosines, the store is asked for the exact place of the chunks.
    """
    found, gate = _found(roots, store, path)
    stored = found.path if isinstance(found, Found) else found
    row = store.file(stored)
    if isinstance(found, Found):
        state = state_of(found, row, difference(found, row), None)
        gate = _state_gate(state) if state else None
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
    rowids = [c.rowid for c in held]
    standings = store.standings(vector, rowids) if vector is not None and rowids else {}
    return ExplainedLine(stored, line, held, store.texts(rowids), None if stale and held else gate, remark, standings)


def _found(roots: Roots, store: ChunkSource, path: str) -> tuple[Found | str, FileGate | None]:
    """The note on disk, or the stored path it would have with the rule that keeps it out."""
    try:
        note = workspace_roots.located(roots, path)
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
    match verdict.rule:
        case "outside":
            return OutsideRoots(verdict.detail)
        case "missing":
            return NoSuchFile(verdict.detail)
        case "unreadable" | "too big" as rule:
            return UnreadableFile(rule, verdict.detail)
        case rule:
            return Excluded(rule, verdict.detail)


def _state_gate(state: FileState) -> FileGate:
    return UnreadableFile("failed", state.detail) if state.state == "failed" else ChangedSinceIndexed(state.detail)


def _lines(roots: Roots, found: Found) -> list[str]:
    try:
        text = workspace_roots.shown(roots, found.path).text
    except Unreadable:
        # Then what the index says of the file is all there is to say.
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _holding(
    store: ChunkSource, chunks: tuple[ChunkRef, ...], wanted: str, by_number: tuple[ChunkRef, ...]
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
