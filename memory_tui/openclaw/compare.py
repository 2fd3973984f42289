"""What OpenClaw's own index holds of the notes on disk, file by file: missing, stale, extra, cut otherwise, and so on.

Nothing is read here but notes, through `read_document`; the same three arguments give the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from memory_tui.config import Config, state_folder
from memory_tui.index import schema, theirs
from memory_tui.index.compare_files import Difference, FileComparison, files
from memory_tui.index.their_record import Era, TheirCounts, TheirIdentity, TheirIndex, TheirProblem
from memory_tui.settings import Settings
from memory_tui.workspace.document import Document
from memory_tui.workspace.extra import ExtraPath
from memory_tui.workspace.roots import Roots, scan
from memory_tui.workspace.sources import read
from memory_tui.workspace.walk import Found, Scan

DIFFERENCES: tuple[Difference, ...] = get_args(Difference)

_LACKING = {"missing", "stale", "other model", "without vector"}


@dataclass(frozen=True, slots=True)
class Wanted:
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


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A part of the identity (`code` as OpenClaw names it) that is not what the configuration asks for."""

    code: Literal["metadata_missing", "model", "provider", "sources", "scope", "chunking"]
    theirs: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Their index against the disk: the whole, and `files` by path; `summary` counts files by difference."""

    state: Literal["ok"]
    path: str
    era: Era
    identity: TheirIdentity | None
    mismatches: tuple[Mismatch, ...]
    consequence: str
    counts: TheirCounts
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
    return theirs.find((theirs.agent_database(state_folder(), config.agent.id), config.store_path))


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
) -> Comparison | TheirProblem:
    """The index of the configuration's agent, or the one at `path`, against the notes on disk and what is configured.

    Raises WorkspaceError.
    """
    return compare_workspace(roots, path or database(config), wanted(config, settings, roots))


def compare_workspace(roots: Roots, path: Path, wishes: Wanted | None = None) -> Comparison | TheirProblem:
    """Their index at `path` against the notes on disk now, or why it cannot be read. Raises WorkspaceError."""
    their = theirs.open_index(path)
    return their if isinstance(their, TheirProblem) else compare(scan(roots), read, their, wishes)


def compare(
    seen: Scan,
    read_document: Callable[[Found], Document],
    their: TheirIndex,
    wishes: Wanted | None = None,
) -> Comparison:
    """`their` index against the notes of the scan `seen`, and against what the configuration asks for."""
    compared = files(seen, read_document, their)
    mismatches = tuple(_mismatches(their, wishes or Wanted()))
    return Comparison(
        "ok",
        their.path,
        their.era,
        their.identity,
        mismatches,
        _CONSEQUENCES[their.era] if mismatches else "",
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


_CONSEQUENCES: Mapping[Era, str] = {
    "own file": "OpenClaw indexes everything again at its next sync.",
    "agent database": "OpenClaw pauses its searches until openclaw memory status --index has been run.",
}


def _mismatches(their: TheirIndex, wishes: Wanted) -> Iterable[Mismatch]:
    identity = their.identity
    if identity is None:
        yield Mismatch("metadata_missing", "none", schema.RECIPE)
        return
    if wishes.model and wishes.model != identity.model:
        yield Mismatch("model", identity.model, wishes.model)
    if wishes.provider and wishes.provider != identity.provider:
        yield Mismatch("provider", identity.provider, wishes.provider)
    if wishes.sources and set(wishes.sources) != set(identity.sources):
        yield Mismatch("sources", ", ".join(identity.sources), ", ".join(sorted(wishes.sources)))
    if wishes.extra_paths is not None and identity.scope_hash != (
        scope := schema.scope_hash(wishes.extra_paths, wishes.patterns)
    ):
        yield Mismatch("scope", identity.scope_hash, scope)
    # From 2026.8 on the sizes are fixed, whatever the configuration says.
    if their.era == "own file":
        sizes = wishes.chunk_tokens, wishes.chunk_overlap
        if None not in sizes and sizes != (identity.chunk_tokens, identity.chunk_overlap):
            yield Mismatch("chunking", f"{identity.chunk_tokens}/{identity.chunk_overlap}", f"{sizes[0]}/{sizes[1]}")


def _remarks(their: TheirIndex, compared: Sequence[FileComparison]) -> Iterable[str]:
    """What stands against the whole, in sentences."""
    identity, counts = their.identity, their.counts
    if identity is None:
        yield "Without a record of how it was made its chunks and vectors cannot be judged."
    elif identity.chunking_version is not None:
        yield (
            f"Its chunks are counted, not compared: they are cut by OpenClaw's chunking version "
            f"{identity.chunking_version}, and memory-tui cuts like 2026.3."
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
