"""The status of a workspace. It covers index, files and provider, and says why a file is in or out."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import locks
from memory_tui.formatting import plural
from memory_tui.hosts import claude_memory
from memory_tui.index import abilities, disk_usage
from memory_tui.index.abilities import Vec0, Vec0Use
from memory_tui.notices import Notice, notice
from memory_tui.search.level import LevelBasis
from memory_tui.workspace.notes import is_heading, shown_day, title_of

if TYPE_CHECKING:
    from memory_tui.index.disk_usage import FileSize
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.rows import Rejected, Withheld
    from memory_tui.index.store import Counts, Store
    from memory_tui.locks import Role
    from memory_tui.plan import Plan
    from memory_tui.providers.chain import MemberState, ServingProvider
    from memory_tui.search.level import ByKind
    from memory_tui.workspace.roots import PathVerdict, Roots, RootState
    from memory_tui.workspace.scan import Scan

if TYPE_CHECKING:
    from memory_tui.openclaw.trust import TrustReport


class FileRow(Struct, frozen=True):
    """One note for a list: `state` is fresh or one of `index.freshness.State`, `detail` why, `mtime` epoch seconds."""

    path: str
    source: str
    state: str
    detail: str
    chunks: int
    size: int
    mtime: float
    day: dt.date | None
    kind: str = ""
    """The type of a fact in Claude Code's memory; empty for other notes."""
    title: str = ""
    """Its first heading, else its first words, as they are indexed; not yet safe to show."""


class VectorSearch(Struct, frozen=True):
    """What compares vectors: `engine` by name and version, or `load_error`; `dims` is None without vectors.

    `extension_path` is the build of sqlite-vec that a configuration names, None where none is.
    """

    enabled: bool
    available: bool
    engine: str
    load_error: str | None
    dims: int | None
    extension_path: str | None = None


class WordSearch(Struct, frozen=True):
    """What matches words: `engine` by name and version, with its `tokenizer`, or `error`."""

    enabled: bool
    available: bool
    tokenizer: str | None
    engine: str
    error: str | None


class VectorCache(Struct, frozen=True):
    """Vectors that are kept for texts which come back: how many, their size, how often one was used.

    Of texts that are gone, at most `max_entries` vectors are kept.
    """

    enabled: bool
    entries: int
    bytes: int
    max_entries: int
    hits: int


class SourceCounts(Struct, frozen=True):
    """How many notes of one source are indexed, and their chunks."""

    source: str
    files: int
    chunks: int


class Status(Struct, frozen=True):
    """Everything about a workspace's index at one moment; field names follow OpenClaw's status JSON."""

    backend: str
    agent_id: str
    agents: tuple[str, ...]
    """Every agent of the configuration."""
    workspace_dir: str
    db_path: str
    db_bytes: int
    files: int
    chunks: int
    embedded: int
    generation: int
    provider: str
    requested_provider: str
    provider_origin: str
    provider_state: str
    model: str
    profile: str
    profile_origin: str
    config_path: str
    sources: tuple[str, ...]
    extra_paths: tuple[str, ...]
    source_counts: tuple[SourceCounts, ...]
    cache: VectorCache
    fts: WordSearch
    vector: VectorSearch
    fallback: dict[str, Any] | None
    watching: bool
    watch_detail: str
    read_only: bool
    freshness: Freshness
    embedding_probe: dict[str, Any] | None
    who: ServingProvider
    """Who answers questions by meaning, and why it is not who was asked for."""
    levels: LevelBasis
    """What the levels of answers are compared with."""
    notices: tuple[Notice, ...]
    keeper: WriterProcess | None = None
    """The process that keeps the index up to date by itself."""
    writer: WriterProcess | None = None
    """The process that writes the index now."""
    paused: bool = False
    storage: tuple[FileSize, ...] = ()
    """Every file of the index, what is being made beside it and what was moved aside included."""
    withheld: tuple[Withheld, ...] = ()
    """Chunks that are not sent to the provider, because they look like secrets."""
    refused: tuple[Rejected, ...] = ()
    """Chunks that the provider made no vector of, and why."""
    links: tuple[MemberState, ...] = ()
    """Every provider that was looked at, with its last error and how long its last call took."""
    roots: tuple[RootState, ...] = ()
    """The workspace, and every other place where notes are read: whether they can be."""
    in_part: tuple[PartlyIndexed, ...] = ()
    """Notes that are indexed as they are on disk, of which some words match no question."""
    trust: TrustReport | None = None
    """What OpenClaw's ledger says of the notes; None where OpenClaw keeps none."""
    backend_state: str = "builtin"
    """Who answers, in words."""
    custom: dict[str, Any] | None = None
    """What the documented status tells of QMD; None where nobody asks it."""


class PartlyIndexed(Struct, frozen=True):
    """A note with something in it that could not be indexed, and what."""

    path: str
    detail: str


class EmbeddingState(Struct, frozen=True):
    """Who makes the vectors: every provider that was looked at, who answers, and chunks found in the cache so far."""

    links: tuple[MemberState, ...]
    who: ServingProvider
    cache_hits: int


class WriterProcess(Struct, frozen=True):
    """A process that may write the index: `since` is in epoch seconds, `ours` tells whether it is this one."""

    pid: int
    since: float
    ours: bool


class FileVerdict(Struct, frozen=True):
    """Whether a path is part of the memory, by which rule, and what the index has of it."""

    path: str
    included: bool
    rule: str
    detail: str
    index: str


def file_rows(store: Store, scan: Scan, freshness: Freshness) -> tuple[FileRow, ...]:
    """Return every note on disk and every note that only the index still has, by path."""
    from memory_tui.index.note_rows import openings

    rows_of, without_vector = store.known(), _withheld_or_rejected(store)
    titles = {path: _title(text) for path, text in openings(store).items()}
    stale = {item.path: item for item in freshness.stale.values()}
    rows = []
    for note in scan.notes:
        row, differs = rows_of.get(note.path), stale.pop(note.path, None)
        rows.append(
            FileRow(
                note.path,
                note.source,
                differs.state if differs else "fresh",
                differs.detail
                if differs
                else "; ".join(filter(None, (row and row.detail, without_vector.get(note.path)))),
                row.chunks if row else 0,
                note.size,
                note.mtime_ns / 1e9,
                shown_day(note.path),
                title=titles.get(note.path, ""),
            )
        )
    for path, differs in stale.items():
        row = rows_of.get(path)
        rows.append(
            FileRow(
                path,
                row.source if row else "memory",
                differs.state,
                differs.detail,
                row.chunks if row else 0,
                row.size if row else 0,
                row.mtime_ns / 1e9 if row else 0.0,
                shown_day(path),
                title=titles.get(path, ""),
            )
        )
    return tuple(sorted(rows, key=lambda row: row.path))


def with_kinds(rows: Sequence[FileRow], scan: Scan, roots: Roots) -> tuple[FileRow, ...]:
    """Return `rows` with the type of each fact in Claude Code's memory, which stands in its front matter."""
    facts = claude_memory.facts(roots, {note.path: note.absolute for note in scan.notes})
    return tuple(replace(row, kind=facts[row.path].type if row.path in facts else "") for row in rows)


@lru_cache(maxsize=20_000)
def _title(text: str) -> str:
    """The title of a note that begins with `text`: its first heading that is more than a date, else its first words."""
    lines = text.split("\n")
    return title_of(lines) or next((line.strip() for line in lines if line.strip() and not is_heading(line)), "")


def _withheld_or_rejected(store: Store) -> dict[str, str]:
    """Return why chunks have no vector, by path: withheld from the provider, or rejected by it."""
    chunks_of: dict[str, list[Withheld | Rejected]] = {}
    without: list[Withheld | Rejected] = [*store.withheld(), *store.rejected()]
    for chunk in without:
        chunks_of.setdefault(chunk.path, []).append(chunk)
    return {
        path: f"lines {', '.join(f'{c.start_line}-{c.end_line}' for c in chunks[:3])}"
        f"{' and more' if len(chunks) > 3 else ''} {chunks[0]}"
        for path, chunks in chunks_of.items()
    }


def file_verdict(path: PathVerdict, store: Store, freshness: Freshness) -> FileVerdict:
    """Return what is to be said of `path`: the rule, and the state of its index."""
    row = store.file(path.path)
    differs = freshness.stale.get(path.path)
    if not path.included:
        index = "" if row is None else "The index still has it; the next sync removes it."
    elif differs is not None and differs.state == "missing root":
        index = f"The index keeps it although the file is missing: {differs.detail}"
    elif differs is not None and differs.state != "pending":
        index = f"It could not be indexed: {differs.detail}"
    elif differs is not None and differs.patient:
        index = f"Not searchable as it is on disk, and not being indexed: {differs.detail}."
    elif differs is not None:
        index = f"Not searchable as it is on disk: {differs.detail}; the next sync indexes it."
    else:
        chunks = row.chunks if row else 0
        index = f"Indexed as it is on disk, in {plural(chunks, 'chunk')}"
        index = "; ".join(filter(None, (index, _withheld_or_rejected(store).get(path.path)))) + "."
    return FileVerdict(path.path, path.included, path.rule, path.detail, index)


def writer_process(index: Path, role: Role) -> WriterProcess | None:
    """Return who has the `role` now."""
    who = locks.living(index, role)
    return WriterProcess(who.pid, who.since, who.is_this_process) if who else None


def status(
    plan: Plan,
    store: Store,
    freshness: Freshness,
    *,
    watching: tuple[bool, str],
    probe: dict[str, Any] | None,
    notices: Sequence[Notice],
    supplied: EmbeddingState,
    vec0_use: Vec0Use,
    unrelated: ByKind,
    paused: bool = False,
    roots: tuple[RootState, ...] = (),
) -> Status:
    """Return the whole state; `probe` is the outcome of a deep check, `unrelated` what unrelated questions reach."""
    counts, identity, vec0 = store.counts(), store.identity(), abilities.vec0(vec0_use)
    return Status(
        backend="builtin",
        agent_id=plan.agent.id,
        agents=tuple(agent.id for agent in plan.config.agents),
        workspace_dir=str(plan.roots.workspace),
        db_path=os.fspath(store.path),
        db_bytes=disk_usage.on_disk(store.path),
        files=counts.files,
        chunks=counts.chunks,
        embedded=counts.embedded,
        generation=store.generation(),
        provider=identity.provider if identity else "none",
        requested_provider=plan.provider,
        provider_origin=plan.provider_origin,
        provider_state=supplied.who.sentence,
        model=identity.model if identity else "",
        profile=plan.settings.word("profile"),
        profile_origin=plan.settings.values["profile"].origin,
        config_path=str(plan.config.path or ""),
        sources=plan.roots.sources,
        extra_paths=plan.roots.extra,
        source_counts=_by_source(plan.roots.sources, counts.by_source),
        cache=_cache(plan, counts, supplied.cache_hits),
        fts=_full_text(store),
        vector=_vectors(plan, store, vec0),
        fallback=supplied.who.instead,
        who=supplied.who,
        watching=watching[0],
        watch_detail=watching[1],
        read_only=plan.read_only,
        freshness=freshness,
        in_part=tuple(PartlyIndexed(*row) for row in store.remarked() if row[0] not in freshness.stale),
        embedding_probe=probe,
        paused=paused,
        notices=(*notices, *_lost(plan, vec0), *_refused(tuple(store.rejected()))),
        keeper=writer_process(store.path, "keeper"),
        writer=writer_process(store.path, "lock"),
        storage=disk_usage.files(store.path, plan.sibling),
        withheld=tuple(store.withheld()),
        refused=tuple(store.rejected()),
        links=supplied.links,
        roots=roots,
        levels=LevelBasis(plan.settings.word("profile"), unrelated),
    )


def _refused(chunks: Sequence[Rejected]) -> list[Notice]:
    """Return how many chunks have no vector because the provider refused them, and why."""
    return (
        [notice("vectors_refused", chunks=len(chunks), reasons=tuple(sorted({chunk.reason for chunk in chunks})))]
        if chunks
        else []
    )


def _by_source(sources: Sequence[str], counts: Mapping[str, tuple[int, int]]) -> tuple[SourceCounts, ...]:
    return tuple(SourceCounts(name, *counts.get(name, (0, 0))) for name in dict.fromkeys((*sources, *counts)))


def _cache(plan: Plan, counts: Counts, hits: int) -> VectorCache:
    most = plan.config.value("cache.maxEntries")
    assert isinstance(most, int)
    return VectorCache(plan.settings.on("cache.enabled"), counts.cached, counts.cached_bytes, most, hits)


def _vectors(plan: Plan, store: Store, vec0: Vec0) -> VectorSearch:
    identity = store.identity()
    return VectorSearch(
        enabled=plan.settings.on("store.vector.enabled"),
        available=vec0.ready,
        engine=_compared_by(store, vec0),
        load_error=None if vec0.ready else vec0.detail,
        dims=identity.dims if identity else None,
        extension_path=vec0.use.library or None,
    )


def _compared_by(store: Store, vec0: Vec0) -> str:
    """Return who finds the nearest vectors for a command; the app and the server compare all of them in memory."""
    if not vec0.ready:
        return "numpy, exact"
    mirrored = store.vec0_dims() > 0 or store.identity() is None
    return (
        f"sqlite-vec {vec0.detail}" if mirrored else f"numpy, exact; sqlite-vec {vec0.detail} once the index is written"
    )


def _full_text(store: Store) -> WordSearch:
    tokenizer, reason = store.words.cut(), store.words.missing()
    return WordSearch(
        enabled=True,
        available=bool(tokenizer),
        tokenizer=tokenizer or None,
        engine=f"fts5 of SQLite {apsw.sqlite_lib_version()}" if tokenizer else "letters of the text",
        error=reason or (None if tokenizer else "the index was made without it"),
    )


def _lost(plan: Plan, vec0: Vec0) -> list[Notice]:
    """Return what full-text search and vectors have to do without, and what is done instead."""
    lost, settings = list[Notice](), plan.settings
    if reason := abilities.fts5():
        lost.append(notice("no_full_text", reason=reason, by_text=None))
    elif settings.word("store.fts.tokenizer") == "trigram" and (reason := abilities.trigram()):
        lost.append(notice("no_trigrams", reason=reason))
    if settings.on("store.vector.enabled") and not vec0.ready:
        lost.append(notice("numpy_compares", reason=vec0.detail))
    elif vec0.use.refused:
        lost.append(notice("extension_not_run", reason=vec0.use.refused))
    return [
        *lost,
        *(
            notice("unknown_switch", name=name, switch=abilities.SWITCH, known=abilities.NAMES)
            for name in abilities.unknown()
        ),
    ]
