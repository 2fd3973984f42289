"""Follow batch jobs: which text waits for which job of a provider's batch service, so that none is paid twice.

A job is claimed with its texts in one transaction, then uploaded, submitted, polled, and forgotten when its results are
stored. The index remembers it by the hashes of its texts, without a text or a key, so that the next process goes on.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.events import BatchNews, Event, Noticed
from memory_tui.index import index_write
from memory_tui.index.embedding import HERE, RECENT, EmbeddingMode, rejections_count_from, sendable
from memory_tui.index.store import UNCLAIMED, Store
from memory_tui.locks import Holder, is_alive, process_start
from memory_tui.providers.base import Identity, Vectors
from memory_tui.providers.chain import Chain
from memory_tui.providers.failures import PASSING, Cause, ProviderFailure

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService, JobStatus

MOST_LINES = 5_000
"""The most texts of a job, far below what a service takes: its vectors stand in memory when they come."""
MOST_BYTES = 4 << 20
"""The most UTF-8 bytes of texts in a job, about a million tokens: two of them fit into what OpenAI lets a new account
have in the queue (3,000,000), and a job that fails costs little.
"""
MOST_FAILURES = 2
"""After so many in a row texts are sent directly."""
_LONGEST_PAUSE, _PATIENCE, _JOIN_SECONDS = 60.0, 1 / 20, 0.2
_SPACE = "provider = ? AND model = ? AND provider_key = ?"
Space = tuple[str, str, str]
"""Provider, model and key, as in Identity."""
RunOnWriter = Callable[[Callable[..., Any]], Any]
"""Calls a function with the write connection, on the writer's thread, and returns what it returns."""


class BatchTerms(Struct, frozen=True):
    """When texts are handed over: at least `least`, none of `direct`, hashes of texts that no job could embed."""

    least: int
    direct: frozenset[str] = frozenset()


class Job(NamedTuple):
    """A job; `remote_id` is the provider's name of it, empty until it is submitted at `submitted_at` (seconds).

    `holder` is the process that claimed it.
    """

    id: int
    identity: Identity
    holder: Holder
    file_id: str
    remote_id: str
    submitted_at: float
    texts: int


class JobResults(Struct):
    """What came of jobs: texts embedded, and texts that have to be sent directly."""

    embedded: int = 0
    left: int = 0


# --- what the index remembers ----------------------------------------------------------------------------------------


def claim(store: Store, identity: Identity, terms: BatchTerms) -> int:
    """Make jobs of the texts that lack a vector and wait for no job, if they are many enough; return how many wait."""
    space = identity.space
    rows = store.query(
        "SELECT hash, length(CAST(text AS BLOB)) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
        f"AND hash NOT IN (SELECT hash FROM withheld) AND {UNCLAIMED} AND NOT {RECENT} GROUP BY hash ORDER BY min(id)",
        (*space, *space, rejections_count_from()),
    )
    lacking = [(digest, length) for digest, length in rows if digest not in terms.direct]
    if len(lacking) < terms.least:
        return waiting(store)
    with store.writing():
        job = lines = size = 0
        for digest, length in lacking:
            if not lines or lines >= MOST_LINES or size + length > MOST_BYTES:
                lines = size = 0
                job = store.value(
                    "INSERT INTO batch_jobs(provider, model, provider_key, dims, pid, started, claimed_at) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    (*space, identity.dims, os.getpid(), process_start(os.getpid()), time.time()),
                )
            store.query("INSERT INTO batch_texts(hash, job) VALUES (?, ?)", (digest, job))
            lines, size = lines + 1, size + length
    return waiting(store)


def jobs(store: Store, space: Space) -> list[Job]:
    """Return the jobs for vectors of `space`, oldest first."""
    rows = store.query(
        "SELECT id, provider, model, provider_key, dims, pid, started, claimed_at, file_id, remote_id, submitted_at, "
        f"(SELECT count(*) FROM batch_texts WHERE job = batch_jobs.id) FROM batch_jobs WHERE {_SPACE} ORDER BY id",
        space,
    )
    return [Job(row[0], Identity(*row[1:5]), Holder(*row[5:8]), *row[8:]) for row in rows]


def texts(store: Store, job: Job, manner: EmbeddingMode = HERE) -> list[tuple[str, str]]:
    """Return hash and text of what a job has to embed; let go of texts that no note has any more, and of blank ones.

    So are, where that is wished now, those that look like a secret: they may have been claimed before it was.
    """
    # The order of the tables is given, because chunks cannot be looked up by hash, and the other way takes minutes.
    rows = store.query(
        "SELECT c.hash, c.text, min(c.id) FROM chunks c CROSS JOIN batch_texts t ON t.hash = c.hash AND t.job = ? "
        "WHERE c.embedding_id IS NULL AND c.occurrence = 0 GROUP BY c.hash ORDER BY min(c.id)",
        (job.id,),
    )
    filled = {digest: text for digest, text, _ in rows if text.strip()}
    send = sendable(store, filled, list(filled), manner.cleared) if manner.withheld else list(filled)
    with store.writing():
        store.query(
            "DELETE FROM batch_texts WHERE job = ? AND hash NOT IN (SELECT value FROM json_each(?))",
            (job.id, json.dumps(send)),
        )
    return [(digest, filled[digest]) for digest in send]


def remember(store: Store, job: Job, file_id: str, remote_id: str = "", at: float = 0.0) -> None:
    """Remember what the job's file and the job are called at the provider, and since when."""
    with store.writing():
        store.query(
            "UPDATE batch_jobs SET file_id = ?, remote_id = ?, submitted_at = ? WHERE id = ?",
            (file_id, remote_id, at, job.id),
        )


def keep(store: Store, job: Job, vectors: Mapping[str, Vectors]) -> int:
    """Store results by hash and give them to the chunks that wait for them; return how many `job` was asked for.

    Others are not believed: they would stand for texts that nobody sent.
    """
    rows = store.query(
        "SELECT hash FROM batch_texts WHERE job = ? AND hash IN (SELECT value FROM json_each(?))",
        (job.id, json.dumps(list(vectors))),
    )
    hashes = [digest for (digest,) in rows]
    if not hashes:
        return 0
    ids = index_write.add_embeddings(store, job.identity, {digest: vectors[digest] for digest in hashes})
    recipe = store.recipe()
    if recipe is not None and recipe.identity == job.identity:
        lacking = store.query(
            "SELECT id, hash FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
            "AND hash IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        if lacking:
            index_write.attach(store, {row: ids[digest] for row, digest in lacking})
    with store.writing():
        store.many("DELETE FROM batch_texts WHERE hash = ? AND job = ?", [(digest, job.id) for digest in hashes])
    return len(hashes)


def forget(store: Store, job: Job) -> list[str] | None:
    """Forget a job; return the hashes of the texts that still waited for it, None when it was forgotten before."""
    with store.writing():
        left = [digest for (digest,) in store.query("DELETE FROM batch_texts WHERE job = ? RETURNING hash", (job.id,))]
        rows = store.query("DELETE FROM batch_jobs WHERE id = ? RETURNING id", (job.id,))
    return left if rows else None


def waiting(store: Store) -> int:
    """Return how many texts wait for a job that makes vectors for this index."""
    identity = store.identity()
    return sum(job.texts for job in jobs(store, identity.space)) if identity else 0


def sent(store: Store, space: Space) -> set[str]:
    """Return the hashes of texts that the provider has, in jobs that are not over."""
    rows = store.query(
        f"SELECT hash FROM batch_texts WHERE job IN (SELECT id FROM batch_jobs WHERE remote_id <> '' AND {_SPACE})",
        space,
    )
    return {digest for (digest,) in rows}


# --- from notes to vectors -------------------------------------------------------------------------------------------


class BatchJobs:
    """The batch jobs of one engine, followed beside its syncs: claimed, uploaded, submitted, ended, forgotten.

    A job that fails, or takes too long, leaves its texts to be sent directly; `send_rest` asks for the sync that does.
    `manner` tells whether texts that look like a secret are not sent. Whoever closes leaves the jobs where they run.
    """

    def __init__(
        self,
        chain: Chain,
        on_writer: RunOnWriter,
        emit: Callable[[Event], None],
        send_rest: Callable[[], None],
        manner: Callable[[], EmbeddingMode],
    ) -> None:
        self.resident = False
        """Whether the engine stays, so that jobs are followed whatever `remote.batch.wait` says."""
        self.waiting = 0
        """Texts that wait for a job, as last seen."""
        self._chain, self._on_writer, self._emit = chain, on_writer, emit
        self._send_rest, self._manner = send_rest, manner
        self._failures = 0
        self._direct: set[str] = set()
        self._results = JobResults()
        self._reported: dict[int, tuple[str, int, str]] = {}
        self._stop = Stop()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._requested = False

    def terms(self) -> BatchTerms | None:
        """Return when a sync leaves texts to jobs; None where it never does."""
        service = self._chain.batches()
        if service is None:
            return None
        least = service.jobs.least if self._failures < MOST_FAILURES else sys.maxsize
        return BatchTerms(least, frozenset(self._direct))

    def start(self) -> None:
        """Follow the jobs there are, in the background, unless that is done already."""
        service = self._chain.batches()
        with self._lock:
            self._requested = True
            if service is None or self._stop.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, args=(service,), name="engine-batch", daemon=True)
            self._thread.start()

    def join(self) -> JobResults:
        """Wait until nothing is followed any more, or `close` is called; return what came of it since the last time."""
        while (thread := self._thread) is not None and not self._stop.is_set():
            thread.join(_JOIN_SECONDS)
        results, self._results = self._results, JobResults()
        return results

    def close(self) -> None:
        """Begin nothing more; calls under way end when the chain is closed."""
        self._stop.set()

    def _run(self, service: BatchService) -> None:
        try:
            while self._take_request():
                while self._round(service) and (self.resident or service.jobs.wait):
                    # A twentieth of the newest job's age.
                    newest = max((job.submitted_at for job in self._open(service)), default=0.0)
                    age = service.settings.clock.now() - newest if newest else 0.0
                    service.wait(max(service.jobs.poll_seconds, min(age * _PATIENCE, _LONGEST_PAUSE)))
                if self.resident and self._results.left:
                    self._results.left = 0
                    self._send_rest()
        except Cancelled:
            return
        except MemoryTuiError as error:
            self._emit(Noticed(time.time(), f"{error.message} {error.next_step}".rstrip()))
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _take_request(self) -> bool:
        """Tell whether somebody asked for jobs to be followed meanwhile; if not, the thread counts as gone."""
        with self._lock:
            requested, self._requested = self._requested, False
            if not requested:
                self._thread = None
        return requested

    def _round(self, service: BatchService) -> bool:
        """Submit what may be submitted and look at what runs, once; tell whether something is left to do later."""
        every = self._open(service)
        running = sum(bool(job.remote_id) for job in every)
        for job in every:
            if not job.remote_id and self._failures >= MOST_FAILURES:
                self._drop(job)
            elif not job.remote_id and running < service.jobs.concurrency:
                running += self._submit(service, job)
        for job in self._open(service):
            if job.remote_id:
                self._poll(service, job)
        return bool(self._open(service))

    def _open(self, service: BatchService) -> list[Job]:
        """Return the jobs to follow: what runs, and what this process claimed, or one that is gone."""
        self._stop.check()
        every: list[Job] = self._on_writer(lambda store: jobs(store, service.space))
        self.waiting = sum(job.texts for job in every)
        return [job for job in every if job.remote_id or job.holder.pid == os.getpid() or not is_alive(job.holder)]

    def _submit(self, service: BatchService, job: Job) -> bool:
        """Send a job off; tell whether it runs now. A failure that may pass is met again in the next round."""
        manner, file_id = self._manner(), job.file_id
        batch: list[tuple[str, str]] = self._on_writer(lambda store: texts(store, job, manner))
        if not batch:
            self._drop(job)
            return False
        try:
            # What an earlier attempt sent may have become a job.
            remote_id = service.find(file_id) if file_id else ""
            if not file_id:
                file_id = service.upload(batch)
                self._on_writer(lambda store: remember(store, job, file_id))
            remote_id = remote_id or service.create(file_id)
        except ProviderFailure as failure:
            self._news(job, "failed", 0, failure.message)
            # A server without batch service is asked once.
            self._failures += MOST_FAILURES if failure.state is Cause.UNKNOWN_MODEL else 1
            if failure.state not in PASSING:
                self._drop(job)
            return False
        self._on_writer(lambda store: remember(store, job, file_id, remote_id, service.settings.clock.now()))
        self._news(job._replace(remote_id=remote_id), "submitted", 0, f"to the batch service of {service.label}")
        return True

    def _poll(self, service: BatchService, job: Job) -> None:
        """Look at a job, and give up one that is gone, or late. Raises Cancelled where that is refused: the next
        engine goes on.
        """
        late, why = service.settings.clock.now() - job.submitted_at > service.jobs.timeout_seconds, ""
        try:
            status = service.status(job.remote_id)
            if status.phase == "running" and late:
                why = f"it was not done after {service.jobs.timeout_seconds / 60:g} minutes"
                service.cancel(job.remote_id)
                status = service.status(job.remote_id)
            if status.phase == "running" and not why:
                self._news(job, "running", status.done, "", status.total)
            else:
                self._end(service, job, status, why or status.why)
        except ProviderFailure as failure:
            if failure.state is Cause.UNKNOWN_MODEL or (failure.state in PASSING and late):
                self._failures += 1
                self._news(job, "failed", 0, f"{failure.message} Its texts are sent directly.")
                self._drop(job)
            elif failure.state in PASSING:
                self._news(job, "running", 0, failure.message)
            else:
                detail = f"{failure.message} {failure.next_step} The job goes on and is remembered."
                self._news(job, "failed", 0, detail)
                raise Cancelled from failure

    def _end(self, service: BatchService, job: Job, status: JobStatus, why: str) -> None:
        """Store what a job that has ended brought; what it did not is sent directly."""
        vectors, errors = service.fetch(status, job.identity.dims)
        count = self._on_writer(lambda store: keep(store, job, vectors))
        self._results.embedded += count
        left = self._drop(job)
        if left is None:
            return
        well = status.phase == "completed" and count > 0
        self._failures = 0 if well else self._failures + 1
        stay = service.discard((job.file_id, *status.files))
        rest = f"{left:,} texts came back without a vector and are sent directly" if left else ""
        why = why or next(iter(errors.values()), "" if well else f"the job ended as {status.phase}")
        self._news(job, "done" if well else "failed", count, "; ".join(filter(None, (rest, why, stay))))

    def _drop(self, job: Job) -> int | None:
        """Forget a job, so that its texts are sent directly; return how many, None when another process finished it."""
        left: list[str] | None = self._on_writer(lambda store: forget(store, job))
        if left is None:
            return None
        self._direct.update(left)
        self._results.left += len(left)
        return len(left)

    def _news(
        self, job: Job, stage: Literal["submitted", "running", "done", "failed"], done: int, detail: str, total: int = 0
    ) -> None:
        """Report what happened, once."""
        news = (stage, done, detail)
        if self._reported.get(job.id) != news:
            self._reported[job.id] = news
            self._emit(BatchNews(time.time(), job.remote_id, stage, done, total or job.texts, detail))
