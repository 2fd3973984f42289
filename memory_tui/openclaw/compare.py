"""A comparison of OpenClaw's own index with the notes on disk, file by file.

Nothing is read here but notes, through `read_document`; the same three arguments give the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.model import Config
from memory_tui.config.places import ExtraPath, state_folder
from memory_tui.core.errors import Unreadable
from memory_tui.core.formatting import plural
from memory_tui.core.settings import Settings
from memory_tui.index import schema
from memory_tui.index.note_rows import on_lines_of_file
from memory_tui.openclaw import host_index
from memory_tui.openclaw.host_index import (
    NEWEST_CHUNKING,
    NEWEST_PROVENANCE,
    Era,
    HostChunk,
    HostCounts,
    HostFile,
    HostIdentity,
    HostIndex,
    HostProblem,
    Key,
)
from memory_tui.workspace.annotations import NOTHING_SAID, Annotations
from memory_tui.workspace.chunking import MAX_INPUT_BYTES, cap_bytes, chunk_id, chunk_text
from memory_tui.workspace.chunking_2026_9 import chunk_note
from memory_tui.workspace.media import MediaRules, asked
from memory_tui.workspace.notes import Document
from memory_tui.workspace.roots import REPAIRED, ROOT_NOTES_2026_9, Roots, read, scan
from memory_tui.workspace.scan import Found, LeftOut, Scan

Difference = Literal[
    "missing", "stale", "extra", "other model", "other chunking", "other annotations", "without vector"
]

Standing = Literal["current", "stale", "paused"]
"""OpenClaw answers from it, makes it again by itself, or answers nothing until a person runs its command."""

_FIXED_SIZES = 400, 80
_LOCAL_BYTES = 2048
"""The longest input of the providers local and gemini (but for its embedding-2), in UTF-8 bytes."""
_NOTES = "memory"
_Lines = tuple[int, int, str]
"""First line, last line and hash of a chunk."""


class _Expected(NamedTuple):
    """A chunk as OpenClaw would make it; `said` is None for releases that read no annotations."""

    chunk_id: str
    said: Annotations | None


class FileComparison(Struct, frozen=True):
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
    differing: tuple[ChunkComparison, ...] = ()


class ChunkComparison(Struct, frozen=True):
    """A chunk of an unchanged note that only one side has, or that both have otherwise; lines count from 1."""

    start_line: int
    end_line: int
    hash: str
    difference: Literal["only expected", "only theirs", "other id", "other annotations"]
    detail: str


def files(seen: Scan, read_document: Callable[[Found], Document], their: HostIndex) -> list[FileComparison]:
    """Every file of the scan `seen` or of `their` index, by path; what cannot be read is not compared."""
    compared = [*_of_disk(seen, read_document, their), *_of_theirs_alone(seen, their)]
    return sorted(compared, key=lambda file: (file.path, file.source))


def _of_disk(seen: Scan, read_document: Callable[[Found], Document], their: HostIndex) -> Iterable[FileComparison]:
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


def _of_theirs_alone(seen: Scan, their: HostIndex) -> Iterable[FileComparison]:
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
    row: HostFile,
    chunks: Sequence[HostChunk],
    their: HostIndex,
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
    differing: tuple[ChunkComparison, ...] = ()
    if "stale" not in told and identity is not None and identity.chunking_version in (None, NEWEST_CHUNKING):
        try:
            expected = _cut(document, key[0], identity)
        except Unreadable as error:
            return _file(key, chunks, told, note=f"Its chunks cannot be compared: {error.message}")
        if expected is not None and (detail := _cut_otherwise(expected, chunks, identity.model)):
            told["other chunking"] = detail
        if expected is not None:
            differing = tuple(_chunk_by_chunk(expected, chunks, identity.model))
    if detail := _said_otherwise(differing):
        told["other annotations"] = detail
    if detail := _without_vector(chunks, identity):
        told["without vector"] = detail
    found = _file(key, chunks, told, expected=None if expected is None else len(expected))
    return replace(found, differing=differing)


def _file(
    key: Key,
    chunks: Sequence[HostChunk],
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


def _missing(path: str, chunks: Sequence[HostChunk], their: HostIndex) -> str:
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


def _cut(document: Document, source: str, identity: HostIdentity) -> dict[_Lines, _Expected] | None:
    """Each chunk, by lines and hash, that the OpenClaw of `identity` would make; None without their sizes."""
    if identity.chunking_version == NEWEST_CHUNKING:
        noted = chunk_note(document.text, document.path, limit=input_bytes(identity), plain=source != _NOTES)
        lines = on_lines_of_file(document, [one.chunk for one in noted])
        return {
            (piece.start_line, piece.end_line, piece.hash): _Expected(
                chunk_id(source, document.path, piece, identity.model), one.annotations
            )
            for piece, one in zip(lines, noted, strict=True)
        }
    if identity.chunk_tokens is None or identity.chunk_overlap is None:
        return None
    pieces = cap_bytes(chunk_text(document.text, identity.chunk_tokens, identity.chunk_overlap), input_bytes(identity))
    return {
        (piece.start_line, piece.end_line, piece.hash): _Expected(
            chunk_id(source, document.path, piece, identity.model), None
        )
        for piece in on_lines_of_file(document, pieces)
    }


def input_bytes(identity: HostIdentity) -> int:
    """The longest chunk in UTF-8 bytes that OpenClaw hands to the provider of `identity`."""
    small = identity.provider == "local" or (
        identity.provider == "gemini"
        and identity.chunking_version is None
        and not identity.model.endswith("gemini-embedding-2-preview")
    )
    return _LOCAL_BYTES if small else MAX_INPUT_BYTES


def _chunk_by_chunk(
    expected: Mapping[_Lines, _Expected], chunks: Sequence[HostChunk], model: str
) -> Iterable[ChunkComparison]:
    """Every chunk that differs, by its lines."""
    found = {(chunk.start_line, chunk.end_line, chunk.hash): chunk for chunk in chunks}
    for lines in sorted(expected.keys() | found.keys()):
        wanted, theirs = expected.get(lines), found.get(lines)
        if theirs is None:
            yield ChunkComparison(*lines, "only expected", "OpenClaw's index lacks it.")
        elif wanted is None:
            yield ChunkComparison(*lines, "only theirs", "These lines are not cut like this.")
        elif theirs.model == model and theirs.chunk_id != wanted.chunk_id:
            yield ChunkComparison(*lines, "other id", f"Its id is {theirs.chunk_id[:12]}, not {wanted.chunk_id[:12]}.")
        elif None not in (theirs.said, wanted.said) and theirs.said != wanted.said:
            detail = f"OpenClaw read {_words(theirs.said)}; the note says {_words(wanted.said)}."
            yield ChunkComparison(*lines, "other annotations", detail)


def _words(said: Annotations | None) -> str:
    if said is None or said == NOTHING_SAID:
        return "nothing"
    parts = (
        f"importance {said.importance}" if said.importance else "",
        f"triggers {said.triggers!r}" if said.triggers else "",
        f"project {said.project!r}" if said.project else "",
    )
    return ", ".join(filter(None, parts))


def _said_otherwise(differing: Sequence[ChunkComparison]) -> str:
    said = [one for one in differing if one.difference == "other annotations"]
    if not said:
        return ""
    return (
        f"{plural(len(said), 'chunk')} with other annotations, the first in line {said[0].start_line}: {said[0].detail}"
    )


def _cut_otherwise(expected: Mapping[_Lines, _Expected], chunks: Sequence[HostChunk], model: str) -> str:
    """How the chunks of an unchanged note differ from those expected, or nothing."""
    found = {(chunk.start_line, chunk.end_line, chunk.hash): chunk for chunk in chunks}
    lacking, strange = expected.keys() - found.keys(), found.keys() - expected.keys()
    if lacking or strange:
        return (
            f"Its text is cut otherwise: {len(chunks)} chunks instead of {len(expected)}, "
            f"{len(expected) - len(lacking)} of them alike."
        )
    # The model is a part of the id, and another model has been told already.
    others = sum(chunk.chunk_id != expected[lines].chunk_id for lines, chunk in found.items() if chunk.model == model)
    return f"The ids of {others} chunks are not the documented ones." if others else ""


def _without_vector(chunks: Sequence[HostChunk], identity: HostIdentity | None) -> str:
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


DIFFERENCES: tuple[Difference, ...] = get_args(Difference)

_LACKING = {"missing", "stale", "other model", "without vector"}


class Wanted(Struct, frozen=True):
    """What OpenClaw's configuration asks of an index now; empty or None where it leaves that to OpenClaw.

    `extra_paths` are absolute.
    """

    provider: str = ""
    model: str = ""
    sources: tuple[str, ...] = ()
    chunk_tokens: int | None = None
    chunk_overlap: int | None = None
    extra_paths: tuple[str, ...] | None = None
    patterns: tuple[ExtraPath, ...] = ()
    media: MediaRules | None = None
    fts_tokenizer: str = ""
    agent: str = "main"


class Mismatch(Struct, frozen=True):
    """A part of the identity (`code` as OpenClaw names it) that is not what the configuration asks for."""

    code: Literal[
        "metadata_missing",
        "provenance",
        "chunking_version",
        "model",
        "provider",
        "sources",
        "scope",
        "chunking",
        "fts_tokenizer",
        "vector_dims",
    ]
    theirs: str
    wanted: str


class IndexComparison(Struct, frozen=True):
    """Their index against the disk: the whole, and `files` by path; `summary` counts files by difference."""

    state: Literal["ok"]
    path: str
    era: Era
    identity: HostIdentity | None
    mismatches: tuple[Mismatch, ...]
    consequence: str
    standing: Standing
    counts: HostCounts
    revision: int | None
    user_version: int
    on_disk: int
    summary: Mapping[str, int]
    remarks: tuple[str, ...]
    files: tuple[FileComparison, ...]

    def lacks(self, path: str) -> str | None:
        """Why their index cannot recall the note stored as `path` as it is on disk; None when it can."""
        file = next((file for file in self.files if file.path == path), None)
        if file is None:
            return f"Neither the disk nor OpenClaw's index has {path}."
        empty = bool(file.expected) and not file.chunks
        return file.detail if empty or not _LACKING.isdisjoint(file.differences) else None


def database(config: Config) -> Path:
    """Where OpenClaw keeps the index of the agent of `config`, in whichever layout it is there."""
    return host_index.find((host_index.agent_database(state_folder(), config.agent.id), config.store_path))


def wanted(config: Config, settings: Settings, roots: Roots) -> Wanted:
    """What `config` asks of OpenClaw's index; nothing, when it is not OpenClaw's."""
    if config.kind != "openclaw":
        return Wanted()
    return Wanted(
        provider="" if config.provider == "auto" else config.provider,
        model=config.model,
        sources=_sources(config),
        chunk_tokens=settings.whole("chunking.tokens"),
        chunk_overlap=settings.whole("chunking.overlap"),
        extra_paths=roots.extra,
        patterns=roots.patterns,
        media=asked(config),
        fts_tokenizer=settings.word("store.fts.tokenizer"),
        agent=config.agent.id,
    )


def _sources(config: Config) -> tuple[str, ...]:
    """The sources that count; none where they follow from other settings of newer versions."""
    listed = config.value("sources")
    if "sources" not in config.entries or not isinstance(listed, tuple | list):
        return ()
    allowed = config.value("experimental.sessionMemory")
    return tuple(str(source) for source in listed if source != "sessions" or allowed) or ("memory",)


def compare_configured(
    config: Config,
    settings: Settings,
    roots: Roots,
    path: Path | None = None,
) -> IndexComparison | HostProblem:
    """The index of the configuration's agent, or the one at `path`, against the notes on disk and what is configured.

    Raises WorkspaceError.
    """
    return compare_workspace(roots, path or database(config), wanted(config, settings, roots))


def compare_workspace(roots: Roots, path: Path, wishes: Wanted | None = None) -> IndexComparison | HostProblem:
    """Their index at `path` against the notes on disk now, or why it cannot be read. Raises WorkspaceError."""
    their = host_index.open_index(path)
    return their if isinstance(their, HostProblem) else compare(scan(_roots_of(roots, their)), read, their, wishes)


def _roots_of(roots: Roots, their: HostIndex) -> Roots:
    """`roots` as the release reads them that wrote `their` index."""
    if their.identity is None or their.identity.chunking_version is None:
        return roots
    return replace(roots, root_notes=ROOT_NOTES_2026_9, never=REPAIRED)


def compare(
    seen: Scan,
    read_document: Callable[[Found], Document],
    their: HostIndex,
    wishes: Wanted | None = None,
) -> IndexComparison:
    """`their` index against the notes of the scan `seen`, and against what the configuration asks for."""
    compared = files(seen, read_document, their)
    wishes = wishes or Wanted()
    mismatches = tuple(_mismatches(their, wishes))
    standing = _standing(their, mismatches)
    return IndexComparison(
        "ok",
        their.path,
        their.era,
        their.identity,
        mismatches,
        _consequence(their.era, standing, wishes.agent),
        standing,
        their.counts,
        their.revision,
        their.user_version,
        len(seen.found),
        _summary(compared),
        (*their.remarks, *_remarks(their, compared)),
        tuple(compared),
    )


def _summary(compared: Sequence[FileComparison]) -> dict[str, int]:
    found = Counter(difference for file in compared for difference in file.differences)
    return {
        "same": sum(file.compared and not file.differences for file in compared),
        **{str(difference): found[difference] for difference in DIFFERENCES},
        "not compared": sum(not file.compared for file in compared),
    }


_OWN_MATTER = {"metadata_missing", "provenance", "chunking_version"}
"""Parts of the identity that OpenClaw mends by itself."""


def _standing(their: HostIndex, mismatches: Sequence[Mismatch]) -> Standing:
    """What OpenClaw does with an index of this identity: the first part that differs decides."""
    if not mismatches:
        return "current"
    return "stale" if their.era == "own file" or mismatches[0].code in _OWN_MATTER else "paused"


def _consequence(era: Era, standing: Standing, agent: str) -> str:
    match standing:
        case "current":
            return ""
        case "paused":
            return (
                "OpenClaw pauses its searches: they return nothing until you run "
                f"openclaw memory status --index --agent {agent}."
            )
        case "stale":
            when = "sync" if era == "own file" else "search"
            return f"OpenClaw indexes everything again at its next {when}."


def _mismatches(their: HostIndex, wishes: Wanted) -> Iterable[Mismatch]:
    identity = their.identity
    if identity is None:
        yield Mismatch("metadata_missing", "none", schema.RECIPE)
        return
    if their.era == "agent database":
        for code, version, newest in (
            ("provenance", identity.provenance_version, NEWEST_PROVENANCE),
            ("chunking_version", identity.chunking_version, NEWEST_CHUNKING),
        ):
            if version != newest and identity.chunking_version is not None:
                yield Mismatch(code, str(version), str(newest))  # type: ignore[arg-type]
    if wishes.model and wishes.model != identity.model:
        yield Mismatch("model", identity.model, wishes.model)
    if wishes.provider and wishes.provider != identity.provider:
        yield Mismatch("provider", identity.provider, wishes.provider)
    if wishes.sources and set(wishes.sources) != set(identity.sources):
        yield Mismatch("sources", ", ".join(identity.sources), ", ".join(sorted(wishes.sources)))
    if wishes.extra_paths is not None and identity.scope_hash != (
        scope := schema.scope_hash(wishes.extra_paths, wishes.patterns, wishes.media)
    ):
        yield Mismatch("scope", identity.scope_hash, scope)
    # From 2026.8 on the sizes are fixed, whatever the configuration says.
    if their.era == "agent database":
        yield from _mismatches_2026_9(their, identity, wishes)
    else:
        sizes = wishes.chunk_tokens, wishes.chunk_overlap
        if None not in sizes and sizes != (identity.chunk_tokens, identity.chunk_overlap):
            yield Mismatch("chunking", f"{identity.chunk_tokens}/{identity.chunk_overlap}", f"{sizes[0]}/{sizes[1]}")


def _mismatches_2026_9(their: HostIndex, identity: HostIdentity, wishes: Wanted) -> Iterable[Mismatch]:
    sizes = identity.chunk_tokens, identity.chunk_overlap
    if sizes != _FIXED_SIZES:
        yield Mismatch("chunking", f"{sizes[0]}/{sizes[1]}", f"{_FIXED_SIZES[0]}/{_FIXED_SIZES[1]}")
    if wishes.fts_tokenizer and identity.fts_tokenizer and wishes.fts_tokenizer != identity.fts_tokenizer:
        yield Mismatch("fts_tokenizer", identity.fts_tokenizer, wishes.fts_tokenizer)
    dims = their.counts.vector_dims
    if identity.embeds and dims is not None and identity.vector_dims not in (None, dims):
        yield Mismatch("vector_dims", str(identity.vector_dims), str(dims))


def _remarks(their: HostIndex, compared: Sequence[FileComparison]) -> Iterable[str]:
    """What stands against the whole, in sentences."""
    identity, counts = their.identity, their.counts
    if identity is None:
        yield "Without a record of how it was made its chunks and vectors cannot be judged."
    elif identity.chunking_version not in (None, NEWEST_CHUNKING):
        yield (
            f"Its chunks are counted, not compared: they are cut by OpenClaw's chunking version "
            f"{identity.chunking_version}, and memory-tui cuts by version {NEWEST_CHUNKING}."
        )
    elif identity.fts_tokenizer and any("other chunking" in file.differences for file in compared):
        yield (
            "It was written by OpenClaw 2026.4.15 or later, which cuts Chinese, Japanese and Korean into smaller "
            "chunks than memory-tui does."
        )
    if counts.keyword_rows is None:
        yield "It has no full-text table, so OpenClaw finds nothing in it by words."
    elif counts.keyword_rows < counts.chunks:
        yield f"Only {counts.keyword_rows:,} of {counts.chunks:,} chunks are in its full-text table."
    if identity is not None and identity.embeds and counts.vectors is None:
        yield "It has no vec0 table, so OpenClaw compares vectors one by one."
    if counts.vectors is not None and counts.vectors > counts.chunks:
        yield f"Its vec0 table has {counts.vectors - counts.chunks:,} rows more than there are chunks."
    dims = {identity.vector_dims if identity else None, counts.vector_dims} - {None}
    if len(dims) > 1:
        yield f"Its record says {identity and identity.vector_dims} dimensions, its vec0 table {counts.vector_dims}."
