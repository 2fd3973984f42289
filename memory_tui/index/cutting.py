"""A note cut into the rows that the index keeps of it."""

from __future__ import annotations

from memory_tui.index.headings import Headings
from memory_tui.index.schema import Recipe
from memory_tui.index.writes import NewChunk, NewFile
from memory_tui.text.words import indexed_form
from memory_tui.workspace.chunks import Chunk, cap_bytes, chunk_id, chunk_text
from memory_tui.workspace.document import Document
from memory_tui.workspace.transcripts import Transcript


def cut(read: Document, source: str, recipe: Recipe, started: float) -> NewFile:
    """The rows of `read`, whose reading began at `started`; those of a transcript with lines of its file.

    Raises Unreadable for absurdly long lines.
    """
    pieces = cap_bytes(chunk_text(read.text, recipe.chunk_tokens, recipe.chunk_overlap), recipe.chunk_bytes)
    headings = Headings("" if isinstance(read, Transcript) else read.text)
    pieces = on_lines_of_file(read, pieces)
    seen: dict[str, int] = {}
    chunks = []
    for piece in pieces:
        identifier = chunk_id(source, read.path, piece, recipe.identity.model)
        occurrence = seen[identifier] = seen.get(identifier, -1) + 1
        body = "" if occurrence else indexed_form(read.path, headings.above(piece.start_line), piece.text)
        chunks.append(NewChunk(identifier, occurrence, piece.start_line, piece.end_line, piece.hash, piece.text, body))
    return NewFile(read.path, source, read.hash, read.mtime_ns, read.size, remarks(read), started, chunks)


def on_lines_of_file(read: Document, pieces: list[Chunk]) -> list[Chunk]:
    """`pieces` of the text of `read` with the lines of its file, which for a transcript are others."""
    if not isinstance(read, Transcript):
        return pieces
    return [
        piece._replace(start_line=read.lines[piece.start_line - 1], end_line=read.lines[piece.end_line - 1])
        for piece in pieces
    ]


def remarks(read: Document) -> str:
    """What a person should know about a note that was indexed all the same."""
    remarks = []
    if read.replaced:
        remarks.append(f"{read.replaced:,} byte sequences are not UTF-8 and were replaced")
    if isinstance(read, Transcript) and read.skipped:
        remarks.append(
            "1 line is not JSON and was skipped"
            if read.skipped == 1
            else f"{read.skipped:,} lines are not JSON and were skipped"
        )
    if read.nul:
        remarks.append("it holds NUL characters")
    return "; ".join(remarks)
