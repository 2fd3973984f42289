"""One note after the other: what OpenClaw's own index holds of it, against its text on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_tui.errors import Unreadable
from memory_tui.index.cutting import on_lines_of_file
from memory_tui.index.their_record import Key, TheirChunk, TheirFile, TheirIdentity, TheirIndex
from memory_tui.workspace.chunks import MAX_INPUT_BYTES, cap_bytes, chunk_id, chunk_text
from memory_tui.workspace.document import Document
from memory_tui.workspace.walk import Found, LeftOut, Scan

Difference = Literal["missing", "stale", "extra", "other model", "other chunking", "without vector"]

_LOCAL_BYTES = 2048
"""The longest input of the providers local and gemini (but for its embedding-2), in UTF-8 bytes."""
_NOTES = "memory"
_Lines = tuple[int, int, str]
"""First line, last line and hash of a chunk."""


@dataclass(frozen=True, slots=True)
class FileComparison:
    """One file of the disk or of their index; no `differences` means the same, if it was `compared` at all.

    `expected` is how many chunks memory-tui cuts it into at their sizes, None when that was not tried; `detail` holds
    a sentence for each difference.
    """

    path: str
    source: str
    differences: tuple[Difference, ...]
    detail: str
    compared: bool
    chunks: int
    expected: int | None
    embedded: int
    models: tuple[str, ...]


def files(seen: Scan, read_document: Callable[[Found], Document], their: TheirIndex) -> list[FileComparison]:
    """Every file of the scan `seen` or of `their` index, by path; what cannot be read is not compared."""
    compared = [*_of_disk(seen, read_document, their), *_of_theirs_alone(seen, their)]
    return sorted(compared, key=lambda file: (file.path, file.source))


def _of_disk(seen: Scan, read_document: Callable[[Found], Document], their: TheirIndex) -> Iterable[FileComparison]:
    for found in seen.found:
        key = found.source, found.path
        row, chunks = their.files.get(key), their.chunks.get(key, ())
        if found.source != _NOTES and their.era != "own file":
            yield _file(key, chunks, {}, note="OpenClaw keeps what was said in its own database from 2026.7 on.")
            continue
        if row is None:
            yield _file(key, chunks, {"missing": _missing(found.path, chunks, their)})
            continue
        try:
            document = read_document(found)
        except Unreadable as error:
            yield _file(key, chunks, {}, note=f"It cannot be compared: {error.message}")
            continue
        yield _note(document, key, row, chunks, their)


def _of_theirs_alone(seen: Scan, their: TheirIndex) -> Iterable[FileComparison]:
    on_disk = {(found.source, found.path) for found in seen.found}
    left_out = {left.path: left for left in seen.left_out}
    for key in their.files.keys() | their.chunks.keys():
        source, path = key
        chunks = their.chunks.get(key, ())
        if key in on_disk:
            continue
        if source != _NOTES:
            yield _file(key, chunks, {}, note="A transcript, which is not among the sources here, or gone.")
        else:
            left = next((left_out[above] for above in _upwards(path) if above in left_out), None)
            if left is not None and left.rule == "unreadable":
                yield _file(key, chunks, {}, note=f"It cannot be compared: {left.path}: {left.detail}")
            else:
                yield _file(key, chunks, {"extra": _extra(path, left)})


def _note(
    document: Document,
    key: Key,
    row: TheirFile,
    chunks: Sequence[TheirChunk],
    their: TheirIndex,
) -> FileComparison:
    told: dict[Difference, str] = {}
    identity = their.identity
    if not row.hash:
        told["stale"] = "OpenClaw has marked it to be indexed again."
    elif row.hash != document.hash:
        told["stale"] = f"OpenClaw has indexed another text of it: {row.size:,} bytes, on disk are {document.size:,}."
    if identity is not None and (strange := {chunk.model for chunk in chunks} - {identity.model}):
        told["other model"] = f"Chunks of the model {', '.join(sorted(strange))} are not searched any more."
    expected = None
    if "stale" not in told and identity is not None and identity.chunking_version is None:
        try:
            expected = _cut(document, key[0], identity)
        except Unreadable as error:
            return _file(key, chunks, told, note=f"Its chunks cannot be compared: {error.message}")
        if expected is not None and (detail := _cut_otherwise(expected, chunks, identity.model)):
            told["other chunking"] = detail
    if detail := _without_vector(chunks, identity):
        told["without vector"] = detail
    return _file(key, chunks, told, expected=None if expected is None else len(expected))


def _file(
    key: Key,
    chunks: Sequence[TheirChunk],
    told: Mapping[Difference, str],
    *,
    expected: int | None = None,
    note: str = "",
) -> FileComparison:
    sentences = [*told.values(), note] if note else told.values()
    return FileComparison(
        path=key[1],
        source=key[0],
        differences=tuple(told),
        detail=" ".join(sentences),
        compared=not note,
        chunks=len(chunks),
        expected=expected,
        embedded=sum(chunk.embedded for chunk in chunks),
        models=tuple(sorted({chunk.model for chunk in chunks})),
    )


def _missing(path: str, chunks: Sequence[TheirChunk], their: TheirIndex) -> str:
    if chunks:
        return f"OpenClaw's index has {len(chunks)} chunks of it, but no row for the file."
    if path == "memory.md" and their.era == "agent database":
        return "OpenClaw's index lacks it: memory.md in small letters is not read from 2026.4.23 on."
    return "OpenClaw's index lacks it."


def _extra(path: str, left: LeftOut | None) -> str:
    if left is not None:
        return f"It is in OpenClaw's index, but not a note here ({left.rule}): {left.detail}"
    if path == "USER.md":
        return "It is in OpenClaw's index; OpenClaw reads USER.md from 2026.8 on, memory-tui does not."
    return "It is in OpenClaw's index, but not among the notes on disk."


def _cut(document: Document, source: str, identity: TheirIdentity) -> dict[_Lines, str] | None:
    """The id of each chunk, by lines and hash, that OpenClaw 2026.3 would make; None without their sizes."""
    if identity.chunk_tokens is None or identity.chunk_overlap is None:
        return None
    pieces = cap_bytes(chunk_text(document.text, identity.chunk_tokens, identity.chunk_overlap), input_bytes(identity))
    return {
        (piece.start_line, piece.end_line, piece.hash): chunk_id(source, document.path, piece, identity.model)
        for piece in on_lines_of_file(document, pieces)
    }


def input_bytes(identity: TheirIdentity) -> int:
    """The longest chunk in UTF-8 bytes that OpenClaw 2026.3 hands to the provider of `identity`."""
    small = identity.provider == "local" or (
        identity.provider == "gemini" and not identity.model.endswith("gemini-embedding-2-preview")
    )
    return _LOCAL_BYTES if small else MAX_INPUT_BYTES


def _cut_otherwise(expected: Mapping[_Lines, str], chunks: Sequence[TheirChunk], model: str) -> str:
    """How the chunks of an unchanged note differ from those expected, or nothing."""
    found = {(chunk.start_line, chunk.end_line, chunk.hash): chunk for chunk in chunks}
    lacking, strange = expected.keys() - found.keys(), found.keys() - expected.keys()
    if lacking or strange:
        return (
            f"Its text is cut otherwise: {len(chunks)} chunks instead of {len(expected)}, "
            f"{len(expected) - len(lacking)} of them alike."
        )
    # The model is a part of the id, and another model has been told already.
    others = sum(chunk.chunk_id != expected[lines] for lines, chunk in found.items() if chunk.model == model)
    return f"The ids of {others} chunks are not the documented ones." if others else ""


def _without_vector(chunks: Sequence[TheirChunk], identity: TheirIdentity | None) -> str:
    if identity is None or not identity.embeds:
        return ""
    bare = sum(not chunk.embedded for chunk in chunks)
    unlisted = sum(chunk.embedded and chunk.in_vec0 is False for chunk in chunks)
    told = [f"{bare} of {len(chunks)} chunks have no vector, so only their words can be found."] if bare else []
    if unlisted:
        told.append(f"{unlisted} of {len(chunks)} chunks are not in the vec0 table, which sqlite-vec searches.")
    return " ".join(told)


def _upwards(path: str) -> Iterable[str]:
    """`path`, then each folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
