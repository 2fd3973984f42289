"""Batch jobs in the index: which text waits for which job, so that none is paid twice.

A job is claimed with its texts in one transaction, then submitted, and forgotten when its results are stored. Its ids
are the hashes of the texts; neither a text nor a key is kept.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memory_tui.core.locks import Holder, is_alive, process_start
from memory_tui.index import index_write
from memory_tui.index.embedding import RECENT, sendable, since
from memory_tui.index.store import UNCLAIMED, Store
from memory_tui.providers.protocol import Identity, Vectors

KEPT_SECONDS = 7 * 86400.0
"""No provider keeps results for long; after this time a job of another model is forgotten."""

_SPACE = "provider = ? AND model = ? AND provider_key = ?"
Space = tuple[str, str, str]
"""Provider, model and key, as in Identity."""


@dataclass(frozen=True, slots=True)
class Terms:
    """When texts are handed over: at least `least`, in jobs of `most_lines` and `most_bytes`, none of `direct`.

    `direct` are hashes of texts that no job could embed.
    """

    least: int
    most_lines: int
    most_bytes: int
    direct: frozenset[str] = frozenset()


class Job(NamedTuple):
    """A job; `remote_id` is the provider's name of it, empty until it is submitted at `submitted_at` (seconds)."""

    id: int
    identity: Identity
    holder: Holder
    file_id: str
    remote_id: str
    submitted_at: float
    texts: int

    @property
    def ours(self) -> bool:
        """Whether this process may submit it: it claimed it, or the process that did is gone."""
        return self.holder.pid == os.getpid() or not is_alive(self.holder)


def claim(store: Store, identity: Identity, terms: Terms) -> int:
    """Make jobs of the texts that lack a vector and wait for no job, if they are many enough; how many wait now."""
    lacking: dict[str, int] = dict(
        store.query(
            "SELECT hash, length(CAST(text AS BLOB)) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
            f"AND hash NOT IN (SELECT hash FROM withheld) AND {UNCLAIMED} AND NOT {RECENT} "
            "GROUP BY hash ORDER BY min(id)",
            (*_of(identity), *_of(identity), since()),
        )
    )
    wanted = {digest: size for digest, size in lacking.items() if digest not in terms.direct}
    if len(wanted) >= terms.least:
        _make(store, identity, list(_groups(wanted, terms)))
    return waiting(store)


def _make(store: Store, identity: Identity, groups: Sequence[Sequence[str]]) -> None:
    now, pid = time.time(), os.getpid()
    with store.writing():
        _forget_old(store, identity, now - KEPT_SECONDS)
        for group in groups:
            job = store.value(
                "INSERT INTO batch_jobs(provider, model, provider_key, dims, pid, started, claimed_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (*_of(identity), identity.dims, pid, process_start(pid), now),
            )
            store.many("INSERT INTO batch_texts(hash, job) VALUES (?, ?)", [(digest, job) for digest in group])


def jobs(store: Store, space: Space) -> list[Job]:
    """The jobs for vectors of `space`, oldest first."""
    rows = store.query(
        "SELECT id, provider, model, provider_key, dims, pid, started, claimed_at, file_id, remote_id, submitted_at, "
        f"(SELECT count(*) FROM batch_texts WHERE job = batch_jobs.id) FROM batch_jobs WHERE {_SPACE} ORDER BY id",
        space,
    )
    return [Job(row[0], Identity(*row[1:5]), Holder(*row[5:8]), *row[8:]) for row in rows]


def texts(store: Store, job: Job, *, withheld: bool = False) -> list[tuple[str, str]]:
    """Hash and text of what a job has to embed; texts that no note holds any more, and blank ones, are let go.

    So are, where that is wished now, those that look like a secret: they may have been claimed before it was.
    """
    # The order of the tables is given, because chunks cannot be looked up by hash, and the other way takes minutes.
    rows = store.query(
        "SELECT c.hash, c.text, min(c.id) FROM chunks c CROSS JOIN batch_texts t ON t.hash = c.hash AND t.job = ? "
        "WHERE c.embedding_id IS NULL AND c.occurrence = 0 GROUP BY c.hash ORDER BY min(c.id)",
        (job.id,),
    )
    held = {digest: text for digest, text, _ in rows if text.strip()}
    kept = set(sendable(store, held, list(held)) if withheld else held)
    claimed = store.query("SELECT hash FROM batch_texts WHERE job = ?", (job.id,))
    if len(kept) < len(claimed):
        release(store, job, [digest for (digest,) in claimed if digest not in kept])
    return [(digest, text) for digest, text in held.items() if digest in kept]


def uploaded(store: Store, job: Job, file_id: str) -> None:
    """Remember what the job's file is called at the provider."""
    with store.writing():
        store.query("UPDATE batch_jobs SET file_id = ? WHERE id = ?", (file_id, job.id))


def submitted(store: Store, job: Job, remote_id: str, at: float) -> None:
    """Remember what the job is called at the provider, and since when."""
    with store.writing():
        store.query("UPDATE batch_jobs SET remote_id = ?, submitted_at = ? WHERE id = ?", (remote_id, at, job.id))


def keep(store: Store, job: Job, vectors: Mapping[str, Vectors]) -> int:
    """Store results by hash and give them to the chunks that wait for them; how many of them `job` was asked for.

    Others are not believed: they would stand for texts that nobody sent.
    """
    rows = store.query(
        "SELECT hash FROM batch_texts WHERE job = ? AND hash IN (SELECT value FROM json_each(?))",
        (job.id, json.dumps(list(vectors))),
    )
    hashes = [row[0] for row in rows]
    if hashes:
        stacked = np.stack([vectors[digest] for digest in hashes])
        ids = index_write.add_embeddings(store, job.identity, hashes, stacked)
        _attach(store, job, ids)
        release(store, job, hashes)
    return len(hashes)


def _attach(store: Store, job: Job, ids: Mapping[str, int]) -> None:
    recipe = store.recipe()
    if recipe is None or recipe.identity != job.identity:
        return
    rows = store.query(
        "SELECT id, hash FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
        "AND hash IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    if rows:
        index_write.attach(store, {row: ids[digest] for row, digest in rows})


def release(store: Store, job: Job, hashes: Iterable[str]) -> None:
    """Let texts wait for `job` no longer."""
    with store.writing():
        store.many("DELETE FROM batch_texts WHERE hash = ? AND job = ?", [(digest, job.id) for digest in hashes])


def forget(store: Store, job: Job) -> list[str] | None:
    """Forget a job; the hashes of the texts that still waited for it, or None when it was forgotten before."""
    with store.writing():
        left = [row[0] for row in store.query("DELETE FROM batch_texts WHERE job = ? RETURNING hash", (job.id,))]
        known = store.query("DELETE FROM batch_jobs WHERE id = ? RETURNING id", (job.id,))
    return left if known else None


def waiting(store: Store) -> int:
    """How many texts wait for a job that makes vectors for this index."""
    identity = store.identity()
    return sum(job.texts for job in jobs(store, _of(identity))) if identity else 0


def sent(store: Store, space: Space) -> set[str]:
    """The hashes of texts that the provider has, in jobs that are not over."""
    return {
        row[0]
        for row in store.query(
            f"SELECT hash FROM batch_texts WHERE job IN (SELECT id FROM batch_jobs WHERE remote_id <> '' AND {_SPACE})",
            space,
        )
    }


def _forget_old(store: Store, identity: Identity, before: float) -> None:
    old = store.query(
        f"DELETE FROM batch_jobs WHERE NOT ({_SPACE}) AND claimed_at < ? RETURNING id", (*_of(identity), before)
    )
    store.many("DELETE FROM batch_texts WHERE job = ?", old)


def _groups(sizes: Mapping[str, int], terms: Terms) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for digest, length in sizes.items():
        if group and (len(group) >= terms.most_lines or size + length > terms.most_bytes):
            yield group
            group, size = [], 0
        group.append(digest)
        size += length
    if group:
        yield group


def _of(identity: Identity) -> Space:
    return identity.provider, identity.model, identity.key
