"""Follow the batch job of an index at a provider's batch service: one file of texts at a time, none paid twice.

Each sync does the next step, as the only writer of the index: it uploads a file, has a job made of it, looks at it, and
stores what it brought. The index remembers names and hashes, without a text or a key, so that the next process goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from memory_tui.events import BatchNews, Event
from memory_tui.index import index_write
from memory_tui.index.embedding import RECENT, SECONDS, EmbeddingMode, sendable
from memory_tui.index.store import OPEN_JOB, UNCLAIMED, Store
from memory_tui.providers.base import PASSING, Cause, Identity, ProviderFailure, Vectors
from memory_tui.providers.chain import Chain

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService

MOST_TEXTS, MOST_FAILURES = 5_000, 2
"""The most texts of a file, whose vectors stand in memory when they come; so many failures in a row have texts sent
directly.
"""
_LONGEST_PAUSE, _PATIENCE = 60.0, 1 / 20
Stage = Literal["submitted", "done", "failed"]


class Job(NamedTuple):
    """A job; `remote_id` is the provider's name of it, empty until it is submitted at `submitted_at` (seconds)."""

    id: int
    file_id: str
    remote_id: str
    submitted_at: float


def open_job(store: Store, identity: Identity) -> Job | None:
    """Return the job for vectors of `identity`."""
    rows = store.query(f"SELECT id, file_id, remote_id, submitted_at {OPEN_JOB}", identity.space)
    return Job(*rows[0]) if rows else None


class BatchJobs:
    """The batch job of one engine. What no job could embed, and what is left after two failures, is sent directly."""

    def __init__(self, chain: Chain, emit: Callable[[Event], None]) -> None:
        self.waiting = 0
        """Texts that wait for the job, as last seen."""
        self.due: float | None = None
        """When the next sync should look at the job, by the monotonic clock; None where none should."""
        self.pause = 0.0
        """Seconds until then."""
        self.idle = False
        """Whether somebody waits for an answer, so that nothing is sent or looked at."""
        self.embedded = 0
        """Texts whose vectors the last step brought."""
        self._chain, self._emit = chain, emit
        self._failures = 0
        self._direct: set[str] = set()
        self._reported: tuple[object, ...] = ()

    def wait(self) -> bool:
        """Wait until the job is due; tell whether it is waited for. Raises Cancelled when the chain is closed."""
        service = self._chain.batches()
        if service is None or self.due is None or not service.jobs.wait:
            return False
        service.wait(self.pause)
        return True

    def step(self, store: Store, identity: Identity, mode: EmbeddingMode) -> bool:
        """Do the next step of the job; return whether many texts wait for the next one. Raises Cancelled."""
        service, self.due, self.embedded, again = self._chain.batches(), None, 0, False
        if service is None or service.space != identity.space:
            return False
        if not self.idle:
            try:
                self._advance(store, service, identity, mode)
                again = True
            except ProviderFailure as failure:
                again = self._failed(store, service, identity, failure)
        job, texts = open_job(store, identity), self._texts(store, service, identity, mode)
        self.waiting = len(store.waiting(identity)) + len(texts)
        if again and self.waiting:
            age = service.settings.clock.now() - job.submitted_at if job and job.remote_id else 0.0
            self.pause = max(service.jobs.poll_seconds, min(age * _PATIENCE, _LONGEST_PAUSE))
            self.due = time.monotonic() + self.pause
        return bool(texts)

    def _texts(self, store: Store, service: BatchService, identity: Identity, mode: EmbeddingMode) -> dict[str, str]:
        """Return the texts of the next file by hash: they lack a vector, wait for no job, and are many enough. What
        looks like a secret is left out where that is wished.
        """
        if self._failures >= MOST_FAILURES:
            return {}
        rows = store.query(
            "SELECT hash, text FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
            f"AND hash NOT IN (SELECT hash FROM withheld) AND {UNCLAIMED} AND NOT {RECENT} "
            "GROUP BY hash ORDER BY min(id)",
            (*identity.space, *identity.space, time.time() - SECONDS),
        )
        texts: dict[str, str] = dict(
            [row for row in rows if row[1].strip() and row[0] not in self._direct][:MOST_TEXTS]
        )
        send = sendable(store, texts, list(texts), mode.cleared) if mode.withheld else list(texts)
        return {digest: texts[digest] for digest in send} if len(send) >= service.jobs.least else {}

    def _advance(self, store: Store, service: BatchService, identity: Identity, mode: EmbeddingMode) -> None:
        """Look at the job that runs; where none does, have one made. Raises ProviderFailure, Cancelled."""
        job, remote_id = open_job(store, identity), ""
        if job is not None and job.remote_id:
            if not self._has_ended(store, service, identity, job):
                return
            job = None
        elif job is not None:
            # What an earlier process sent may have become a job.
            remote_id = service.find(job.file_id)
        if job is None:
            if not (texts := self._texts(store, service, identity, mode)):
                return
            job = _begin(store, identity, service.upload(list(texts.items())), texts)
        remote_id, now = remote_id or service.create(job.file_id), service.settings.clock.now()
        with store.writing():
            store.query("UPDATE batch_jobs SET remote_id = ?, submitted_at = ? WHERE id = ?", (remote_id, now, job.id))
        self._news(remote_id, "submitted", 0, len(store.waiting(identity)), f"to the batch service of {service.label}")

    def _has_ended(self, store: Store, service: BatchService, identity: Identity, job: Job) -> bool:
        """Look at a job; give up one that is late, and store what one brought that has ended, which is told."""
        status, sent = service.status(job.remote_id), store.waiting(identity)
        vectors, errors, why = dict[str, Vectors](), dict[str, str](), status.why
        if status.phase != "running":
            # Others than were sent are not believed.
            brought, errors = service.fetch(status, identity.dims)
            vectors = {digest: vector for digest, vector in brought.items() if digest in sent}
        elif not _is_late(service, job):
            return False
        else:
            service.cancel(job.remote_id)
            why = f"it was not done after {service.jobs.timeout_seconds / 60:g} minutes"
        ids = index_write.add_embeddings(store, identity, vectors) if vectors else {}
        rows = store.query("SELECT id, hash FROM chunks WHERE embedding_id IS NULL AND occurrence = 0")
        index_write.attach(store, {row: ids[digest] for row, digest in rows if digest in ids})
        self._drop(store, job)
        self._direct |= sent - vectors.keys()
        self.embedded, left = len(vectors), len(sent) - len(vectors)
        well = status.phase == "completed" and bool(vectors)
        self._failures = 0 if well else self._failures + 1
        stay = service.discard((job.file_id, *status.files))
        rest = f"{left:,} texts came back without a vector and are sent directly" if left else ""
        why = why or next(iter(errors.values()), "" if well else f"the job ended as {status.phase}")
        words = "; ".join(filter(None, (rest, why, stay)))
        self._news(job.remote_id, "done" if well else "failed", len(vectors), len(sent), words)
        return True

    def _failed(self, store: Store, service: BatchService, identity: Identity, failure: ProviderFailure) -> bool:
        """Tell a failure, and give up where that is right; return whether the next sync should try again."""
        job, passes, detail = open_job(store, identity), failure.state in PASSING, failure.message
        runs = job is not None and bool(job.remote_id)
        lost = failure.state is Cause.UNKNOWN_MODEL or (job is not None and passes and _is_late(service, job))
        if runs and not lost:
            if not passes:
                detail = f"{detail} {failure.next_step} The job goes on and is remembered."
                self._news("", "failed", 0, self.waiting, detail)
            return passes
        # A server without batch service is asked once.
        self._failures = self._failures + 1 if passes or runs else MOST_FAILURES
        if job is not None and (runs or self._failures >= MOST_FAILURES):
            self._direct |= store.waiting(identity)
            self._drop(store, job)
            service.discard([job.file_id])
        self._news("", "failed", 0, self.waiting, detail)
        return True

    def _drop(self, store: Store, job: Job) -> None:
        with store.writing():
            store.query("DELETE FROM batch_texts WHERE job = ?", (job.id,))
            store.query("DELETE FROM batch_jobs WHERE id = ?", (job.id,))

    def _news(self, job: str, stage: Stage, done: int, total: int, detail: str) -> None:
        """Report what happened, once."""
        news = (job, stage, done, total, detail)
        if self._reported != news:
            self._reported = news
            self._emit(BatchNews(time.time(), *news))


def _begin(store: Store, identity: Identity, file_id: str, hashes: Iterable[str]) -> Job:
    """Remember a file that was uploaded, with its texts. What an earlier version never uploaded waits for nothing."""
    with store.writing():
        store.query("DELETE FROM batch_texts WHERE job IN (SELECT id FROM batch_jobs WHERE file_id = '')")
        store.query("DELETE FROM batch_jobs WHERE file_id = ''")
        job = store.value(
            "INSERT INTO batch_jobs(provider, model, provider_key, dims, pid, started, claimed_at, file_id) "
            "VALUES (?, ?, ?, ?, 0, '', ?, ?) RETURNING id",
            (*identity.space, identity.dims, time.time(), file_id),
        )
        store.many("INSERT INTO batch_texts(hash, job) VALUES (?, ?)", [(digest, job) for digest in hashes])
    return Job(job, file_id, "", 0.0)


def _is_late(service: BatchService, job: Job) -> bool:
    return service.settings.clock.now() - job.submitted_at > service.jobs.timeout_seconds
