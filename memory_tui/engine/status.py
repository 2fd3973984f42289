"""The status of a workspace: of its index, its files and its providers."""

from __future__ import annotations

import os
from typing import Any

import apsw
from msgspec import Struct

from memory_tui import locks
from memory_tui.engine.index import Index, cache_hits
from memory_tui.index import database
from memory_tui.index.store import Rejected, Store, Withheld
from memory_tui.index.sync import Freshness
from memory_tui.locks import Holder
from memory_tui.openclaw.trust import TrustReport
from memory_tui.plan import Plan
from memory_tui.providers.chain import Chain, MemberState, ServingProvider, who
from memory_tui.sentences import Notice, notice
from memory_tui.workspace.roots import RootState


class VectorSearch(Struct, frozen=True):
    """What compares vectors: `engine` by name and version, or `load_error`; `dims` is None without vectors."""

    enabled: bool
    available: bool
    engine: str
    load_error: str | None
    dims: int | None


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
    who: ServingProvider
    """Who answers questions by meaning, and why it is not who was asked for."""
    notices: tuple[Notice, ...]
    keeper: Holder | None = None
    """The process that keeps the index up to date by itself."""
    writer: Holder | None = None
    """The process that writes the index now."""
    paused: bool = False
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
    embedding_probe: dict[str, Any] | None = None
    """The outcome of a deep check."""
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


def status(plan: Plan, store: Store, freshness: Freshness, index: Index, chain: Chain) -> Status:
    """Return the state of index and providers; its notices tell what has no vector."""
    counts, identity, vec0 = store.counts(), store.identity(), database.vec0()
    serving = who(chain, identity, hybrid=plan.settings.on("query.hybrid.enabled"))
    profile = plan.settings.values["profile"]
    rejected = tuple(store.rejected())
    # The sources of the plan first; the index may have others from before.
    sources = dict.fromkeys((*plan.roots.sources, *counts.by_source))
    caches = plan.settings.on("cache.enabled")
    most_kept = plan.config.whole("cache.maxEntries")
    engine, problem = (f"sqlite-vec {vec0.detail}", None) if vec0.ready else ("numpy, exact", vec0.detail)
    vector = VectorSearch(True, vec0.ready, engine, problem, identity.dims if identity else None)
    reasons = tuple(sorted({row.reason for row in rejected}))
    return Status(
        backend="builtin",
        agent_id=plan.agent.id,
        agents=tuple(agent.id for agent in plan.config.agents),
        workspace_dir=str(plan.roots.workspace),
        db_path=os.fspath(store.path),
        db_bytes=database.on_disk(store.path),
        files=counts.files,
        chunks=counts.chunks,
        embedded=counts.embedded,
        generation=store.generation(),
        provider=identity.provider if identity else "none",
        requested_provider=plan.provider,
        provider_origin=plan.provider_origin,
        provider_state=serving.sentence,
        model=identity.model if identity else "",
        profile=str(profile.value),
        profile_origin=profile.origin,
        config_path=str(plan.config.path or ""),
        sources=plan.roots.sources,
        extra_paths=plan.roots.extra,
        source_counts=tuple(SourceCounts(name, *counts.by_source.get(name, (0, 0))) for name in sources),
        cache=VectorCache(caches, counts.cached, counts.cached_bytes, most_kept, cache_hits(store)),
        fts=WordSearch(True, True, store.words.cut(), f"fts5 of SQLite {apsw.sqlite_lib_version()}", None),
        vector=vector,
        fallback=serving.instead,
        who=serving,
        watching=index.watcher.on,
        watch_detail=index.watcher.detail,
        read_only=plan.options.read_only,
        freshness=freshness,
        in_part=tuple(PartlyIndexed(*row) for row in store.remarked() if row[0] not in freshness.stale),
        paused=index.paused,
        notices=(notice("vectors_refused", chunks=len(rejected), reasons=reasons),) if rejected else (),
        keeper=locks.living(store.path, "keeper"),
        writer=locks.living(store.path),
        withheld=tuple(store.withheld()),
        refused=rejected,
        links=chain.members(),
        roots=index.root_watch.states(),
    )
