"""The status of a workspace: index, files, provider, why a file is in or out."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from memory_tui.index import database, disk_usage, embedding, locks
from memory_tui.index.database import OFF, Vec0, ability
from memory_tui.index.disk_usage import FileSize
from memory_tui.index.embedding import Refused, Withheld
from memory_tui.index.freshness import Freshness
from memory_tui.index.index_write import VEC0_FROM
from memory_tui.index.locks import Role
from memory_tui.index.mass_deletion import Shrink
from memory_tui.index.store import Store
from memory_tui.plan import Plan
from memory_tui.providers.chain_member import LinkState
from memory_tui.providers.serving import Who
from memory_tui.search.trace import Notice
from memory_tui.workspace.notes import Document, shown_day
from memory_tui.workspace.root_state import RootState
from memory_tui.workspace.roots import PathVerdict
from memory_tui.workspace.scan import LeftOut, Scan

GET_LINES = 120
GET_CHARACTERS = 12_000
"""The most that one `get` returns (OpenClaw's bound of memory_get)."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One note for a list: `state` is fresh or one of `index.freshness.State`, `detail` why, `mtime` epoch seconds."""

    path: str
    source: str
    state: str
    detail: str
    chunks: int
    size: int
    mtime: float
    day: dt.date | None


@dataclass(frozen=True, slots=True)
class Item:
    """A path with what is to be said of it."""

    path: str
    detail: str


@dataclass(frozen=True, slots=True)
class Fresh:
    """Freshness, computed now from disk against index: `total` notes on disk, and by name all that are not fresh.

    `unsettled` notes were being written each time they were read; of `missing` ones the folder has vanished, and what
    was indexed of them stays. `rebuild` says in words what the index was made with that is otherwise now, and `shrink`
    what a person has to agree to (a sync with `accept_shrink`) before it is forgotten.
    """

    total: int
    fresh: int
    pending: tuple[Item, ...]
    failed: tuple[Item, ...]
    left_out: tuple[Item, ...]
    unsettled: tuple[Item, ...] = ()
    missing: tuple[Item, ...] = ()
    rebuild: tuple[str, ...] = ()
    shrink: Shrink | None = None


@dataclass(frozen=True, slots=True)
class Status:
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
    source_counts: tuple[dict[str, Any], ...]
    cache: dict[str, Any]
    fts: dict[str, Any]
    vector: dict[str, Any]
    fallback: dict[str, Any] | None
    watching: bool
    watch_detail: str
    read_only: bool
    freshness: Fresh
    embedding_probe: dict[str, Any] | None
    who: Who
    """Who answers questions by meaning, and why it is not who was asked for."""
    notices: tuple[Notice, ...]
    keeper: Writing | None = None
    """The process that keeps the index up to date by itself."""
    writer: Writing | None = None
    """The process that writes the index now."""
    paused: bool = False
    storage: tuple[FileSize, ...] = ()
    """Every file of the index, what is being made beside it and what was moved aside included."""
    withheld: tuple[Withheld, ...] = ()
    """Chunks that are not sent to the provider, because they look like secrets."""
    refused: tuple[Refused, ...] = ()
    """Chunks that the provider made no vector of, and why."""
    links: tuple[LinkState, ...] = ()
    """Every provider that was looked at, with its last error and how long its last call took."""
    roots: tuple[RootState, ...] = ()
    """The workspace, and every other place where notes are read: whether they can be."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """Who makes the vectors: every provider that was looked at, who answers, and chunks found in the cache so far."""

    links: tuple[LinkState, ...]
    who: Who
    cache_hits: int


@dataclass(frozen=True, slots=True)
class Writing:
    """A process that may write the index: `since` is in epoch seconds, `ours` tells whether it is this one."""

    pid: int
    since: float
    ours: bool


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """Whether a path is part of the memory, by which rule, and what the index has of it."""

    path: str
    included: bool
    rule: str
    detail: str
    index: str


@dataclass(frozen=True, slots=True)
class Note:
    """Lines of a note; `next_from` is where to go on when the bound was reached, None at the end.

    `cut_line` is a line that is longer than the bound and not shown whole, None when there is none.
    """

    path: str
    start: int
    lines: int
    total_lines: int
    text: str
    next_from: int | None
    cut_line: int | None = None


def note(document: Document, start: int, lines: int | None) -> Note:
    """`lines` lines of `document` from `start` (1-based): at most 120 lines and 12,000 characters."""
    every = document.text.split("\n")
    if every[-1] == "":
        every.pop()
    wanted = every[start - 1 : start - 1 + min(lines or GET_LINES, GET_LINES)]
    taken: list[str] = []
    room = GET_CHARACTERS
    for line in wanted:
        if taken and len(line) + 1 > room:
            break
        taken.append(line[:GET_CHARACTERS])
        room -= len(line) + 1
    after = start + len(taken)
    asked_end = start - 1 + lines if lines else len(every)
    more = after <= min(asked_end, len(every)) and bool(taken)
    return Note(
        document.path,
        start,
        len(taken),
        len(every),
        "\n".join(taken) + ("\n" if taken else ""),
        after if more else None,
        start if taken and len(wanted[0]) > GET_CHARACTERS else None,
    )


def fresh(scan: Scan, freshness: Freshness) -> Fresh:
    """Freshness in the form that is shown."""
    return Fresh(
        total=scan.total,
        fresh=freshness.fresh,
        pending=tuple(Item(f.path, f.detail) for f in freshness.pending),
        failed=tuple(Item(f.path, f.detail) for f in freshness.failed),
        left_out=tuple(_item(left) for left in freshness.left_out),
        unsettled=tuple(Item(f.path, f.detail) for f in freshness.of("changed while read")),
        missing=tuple(Item(f.path, f.detail) for f in freshness.of("missing root")),
        rebuild=freshness.rebuild,
        shrink=freshness.shrink,
    )


def _item(left: LeftOut) -> Item:
    return Item(left.path, f"{left.rule}: {left.detail}")


def file_rows(store: Store, scan: Scan, freshness: Freshness) -> tuple[FileRow, ...]:
    """Every note on disk and every note that only the index still has, by path."""
    known, kept_back = store.known(), _kept_back(store)
    stale = {item.path: item for item in freshness.stale.values()}
    rows = []
    for found in scan.found:
        row, differs = known.get(found.path), stale.pop(found.path, None)
        rows.append(
            FileRow(
                found.path,
                found.source,
                differs.state if differs else "fresh",
                differs.detail if differs else "; ".join(filter(None, (row and row.detail, kept_back.get(found.path)))),
                row.chunks if row else 0,
                found.size,
                found.mtime_ns / 1e9,
                shown_day(found.path),
            )
        )
    for path, differs in stale.items():
        row = known.get(path)
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
            )
        )
    return tuple(sorted(rows, key=lambda row: row.path))


def _kept_back(store: Store) -> dict[str, str]:
    """What is to be said, by path, of chunks that are not sent to the provider, and of those it refused."""
    found: dict[str, list[Withheld | Refused]] = {}
    kept: list[Withheld | Refused] = [*embedding.withheld_in(store), *embedding.rejected_in(store)]
    for chunk in kept:
        found.setdefault(chunk.path, []).append(chunk)
    return {
        path: f"lines {', '.join(f'{c.start_line}-{c.end_line}' for c in chunks[:3])}"
        f"{' and more' if len(chunks) > 3 else ''} {chunks[0]}"
        for path, chunks in found.items()
    }


def file_verdict(path: PathVerdict, store: Store, freshness: Freshness) -> FileVerdict:
    """What is to be said of `path`: the rule, and the state of its index."""
    row = store.file(path.path)
    differs = freshness.stale.get(path.path)
    if not path.included:
        index = "" if row is None else "The index still has it; the next sync forgets it."
    elif differs is not None and differs.state == "missing root":
        index = f"The index keeps it although it is not there: {differs.detail}"
    elif differs is not None and differs.state != "pending":
        index = f"It could not be indexed: {differs.detail}"
    elif differs is not None and differs.patient:
        index = f"Not searchable as it is on disk, and not being indexed: {differs.detail}."
    elif differs is not None:
        index = f"Not searchable as it is on disk: {differs.detail}; the next sync indexes it."
    else:
        chunks = row.chunks if row else 0
        index = f"Indexed as it is on disk, in {chunks} chunk{'' if chunks == 1 else 's'}"
        index = "; ".join(filter(None, (index, _kept_back(store).get(path.path)))) + "."
    return FileVerdict(path.path, path.included, path.rule, path.detail, index)


def writing(index: Path, role: Role) -> Writing | None:
    """Who has the `role` now."""
    who = locks.living(index, role)
    return Writing(who.pid, who.since, who.ours) if who else None


def status(
    plan: Plan,
    store: Store,
    scan: Scan,
    freshness: Freshness,
    *,
    watching: tuple[bool, str],
    probe: dict[str, Any] | None,
    notices: Sequence[Notice],
    supplied: Supplied,
    paused: bool = False,
    roots: tuple[RootState, ...] = (),
) -> Status:
    """The whole state; `probe` is the outcome of a deep check."""
    counts = store.counts()
    identity = store.identity()
    settings = plan.settings
    vec0 = ability() if settings.on("store.vector.enabled") else OFF
    refused = tuple(embedding.rejected_in(store))
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
        profile=settings.word("profile"),
        profile_origin=settings.values["profile"].origin,
        config_path=str(plan.config.path or ""),
        sources=plan.roots.sources,
        extra_paths=plan.roots.extra,
        source_counts=tuple(
            {
                "source": name,
                "files": counts.by_source.get(name, (0, 0))[0],
                "chunks": counts.by_source.get(name, (0, 0))[1],
            }
            for name in dict.fromkeys((*plan.roots.sources, *counts.by_source))
        ),
        cache={
            "enabled": settings.on("cache.enabled"),
            "entries": counts.cached,
            "maxEntries": plan.config.value("cache.maxEntries"),
            "hits": supplied.cache_hits,
        },
        fts=_full_text(store),
        vector={
            "enabled": settings.on("store.vector.enabled"),
            "available": vec0.ready,
            "engine": _compared_by(store, vec0),
            "loadError": None if vec0.ready else vec0.detail,
            "dims": identity.dims if identity else None,
        },
        fallback=supplied.who.instead,
        who=supplied.who,
        watching=watching[0],
        watch_detail=watching[1],
        read_only=plan.read_only,
        freshness=fresh(scan, freshness),
        embedding_probe=probe,
        paused=paused,
        notices=(*notices, *_lost(plan, vec0), *_refused(refused)),
        keeper=writing(store.path, "keeper"),
        writer=writing(store.path, "lock"),
        storage=disk_usage.files(store.path),
        withheld=tuple(embedding.withheld_in(store)),
        refused=refused,
        links=supplied.links,
        roots=roots,
    )


def _refused(chunks: Sequence[Refused]) -> list[Notice]:
    """How many chunks have no vector because the provider refused them, and why."""
    if not chunks:
        return []
    reasons = "; ".join(sorted({chunk.reason for chunk in chunks})[:3])
    some = "1 chunk has" if len(chunks) == 1 else f"{len(chunks):,} chunks have"
    return [
        Notice(
            "refused",
            f"{some} no vector, because the provider refused the text ({reasons}); words still find it.",
            "It is asked again when the text or the provider changes, after a day, when you "
            "try the provider again in its view, or by memory-tui index --force.",
        )
    ]


def _compared_by(store: Store, vec0: Vec0) -> str:
    """Who finds the nearest vectors for a command that asks once; the app always compares all of them in memory."""
    if not vec0.ready:
        return "numpy, exact"
    mirrored = store.vec0_dims() > 0 or store.recipe() is None
    return (
        f"sqlite-vec {vec0.detail}"
        if mirrored
        else (f"numpy, exact; sqlite-vec {vec0.detail} from {VEC0_FROM:,} chunks")
    )


def _full_text(store: Store) -> dict[str, Any]:
    tokenizer, reason = store.full_text(), database.fts5()
    return {
        "enabled": True,
        "available": bool(tokenizer),
        "tokenizer": tokenizer or None,
        "engine": f"fts5 of SQLite {apsw.sqlite_lib_version()}" if tokenizer else "letters of the text",
        "error": reason or (None if tokenizer else "the index was made without it"),
    }


def _lost(plan: Plan, vec0: Vec0) -> list[Notice]:
    """What full-text search and vectors have to do without, and what is done instead."""
    lost, settings = [], plan.settings
    if reason := database.fts5():
        lost.append(
            Notice(
                "full_text",
                f"There is no full-text search ({reason}): vectors answer alone, or without "
                "any, a chunk is found when its text holds the letters of a word.",
            )
        )
    elif settings.word("store.fts.tokenizer") == "trigram" and (reason := database.trigram()):
        lost.append(Notice("trigram", f"Trigrams are not possible ({reason}): unicode61 cuts the words."))
    if settings.on("store.vector.enabled") and not vec0.ready:
        lost.append(
            Notice(
                "vec0", f"sqlite-vec is not used ({vec0.detail}): numpy compares the vectors, with the same answers."
            )
        )
    lost += [
        Notice("switch", f"{database.SWITCH} names {name!r}, which is none of {', '.join(database.NAMES)}.")
        for name in database.unknown()
    ]
    return lost
