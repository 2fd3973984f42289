"""Batch jobs: which text waits for which job of a provider's batch service, so that none is paid twice.

A job is claimed with its texts in one transaction, then uploaded, submitted, polled, and forgotten when its results are
stored. The index remembers it by the hashes of its texts, without a text or a key, so that the next process goes on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.cancel import Stop
from memory_tui.core.events import BatchNews, Event
from memory_tui.index import index_write
from memory_tui.index.embedding import RECENT, rejections_count_from, sendable
from memory_tui.index.store import UNCLAIMED, Store
from memory_tui.locks import Holder, is_alive, process_start
from memory_tui.providers.base import Identity, Vectors
from memory_tui.providers.failures import PASSING, Cause, ProviderFailure

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.batch_format import JobStatus

KEPT_SECONDS = 7 * 86400.0
"""No provider keeps results for long; after this time a job of another model is forgotten."""

_SPACE = "provider = ? AND model = ? AND provider_key = ?"
Space = tuple[str, str, str]
"""Provider, model and key, as in Identity."""


class BatchTerms(Struct, frozen=True):
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
    def of_this_process(self) -> bool:
        """Whether this process may submit it: it claimed it, or the process that did is gone."""
        return self.holder.pid == os.getpid() or not is_alive(self.holder)


def claim(store: Store, identity: Identity, terms: BatchTerms) -> int:
    """Make jobs of the texts that lack a vector and wait for no job, if they are many enough; how many wait now."""
    lacking: dict[str, int] = dict(
        store.query(
            "SELECT hash, length(CAST(text AS BLOB)) FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
            f"AND hash NOT IN (SELECT hash FROM withheld) AND {UNCLAIMED} AND NOT {RECENT} "
            "GROUP BY hash ORDER BY min(id)",
            (*_of(identity), *_of(identity), rejections_count_from()),
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


def _groups(sizes: Mapping[str, int], terms: BatchTerms) -> Iterator[list[str]]:
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


MOST_FAILURES = 2
"""After so many in a row texts are sent directly."""
_DOWNLOADS = 3
_DIRECTLY = "are sent directly"


RunOnWriter = Callable[[Callable[..., Any]], Any]
"""Calls a function with the write connection, on the writer's thread, and returns what it returns."""


class JobResults(Struct):
    """What came of jobs: texts embedded, and texts that have to be sent directly."""

    embedded: int = 0
    left: int = 0


class BatchMachine:
    """Takes jobs through their states, on a thread of its own: claimed, uploaded, submitted, ended, forgotten.

    The writer is needed for no longer than a piece of results takes. `withheld` tells whether texts that look like a
    secret are not sent; `waiting` hears how many texts wait for a job. A job that fails, or takes too long, leaves its
    texts to be sent directly.
    """

    def __init__(
        self,
        on_writer: RunOnWriter,
        emit: Callable[[Event], None],
        stop: Stop,
        withheld: Callable[[], bool],
        waiting: Callable[[int], None],
    ) -> None:
        self.failures = 0
        """How many jobs failed in a row."""
        self.direct: set[str] = set()
        """Hashes of texts that no job could embed."""
        self.results = JobResults()
        self._on_writer, self._emit, self._stop = on_writer, emit, stop
        self._withheld, self._waiting = withheld, waiting
        self._ignored: set[int] = set()
        self._downloads: dict[int, int] = {}
        self._reported: dict[int, tuple[str, int, str]] = {}

    def round(self, service: BatchService) -> bool:
        """Submit what may be submitted and look at what runs, once; whether something is left to do later."""
        running = [job for job in self._open(service) if job.remote_id]
        for job in [job for job in self._open(service) if not job.remote_id]:
            if self.failures >= MOST_FAILURES:
                self._drop(job)
            elif len(running) < service.jobs.concurrency and self._submit(service, job):
                running.append(job)
        for job in [job for job in self._open(service) if job.remote_id]:
            self._poll(service, job)
        return bool(self._open(service))

    def take_results(self) -> JobResults:
        """What came of jobs since the last time."""
        results, self.results = self.results, JobResults()
        return results

    def _open(self, service: BatchService) -> list[Job]:
        self._stop.check()
        found: list[Job] = self._on_writer(lambda store: jobs(store, service.space))
        self._waiting(sum(job.texts for job in found))
        return [job for job in found if (job.remote_id or job.of_this_process) and job.id not in self._ignored]

    def pause(self, service: BatchService) -> float:
        """Seconds until the next round."""
        from memory_tui.providers.batch import pause

        newest = max((job.submitted_at for job in self._open(service)), default=0.0)
        waited = service.settings.clock.now() - newest if newest else 0.0
        return pause(service.jobs.poll_seconds, waited)

    # --- submitting ------------------------------------------------------------------------------------------------

    def _submit(self, service: BatchService, job: Job) -> bool:
        """Send a job off; whether it runs now."""
        withheld = self._withheld()
        wanted: list[tuple[str, str]] = self._on_writer(lambda store: texts(store, job, withheld=withheld))
        if not wanted:
            self._drop(job)
            return False
        try:
            file_id = job.file_id
            remote_id = service.find(file_id) if file_id else ""
            if not remote_id:
                if not file_id:
                    file_id = service.upload(wanted)
                    self._on_writer(lambda store: uploaded(store, job, file_id))
                remote_id = service.create(file_id)
        except ProviderFailure as failure:
            self._not_submitted(job, failure)
            return False
        self._on_writer(lambda store: submitted(store, job, remote_id, service.settings.clock.now()))
        self._news(job._replace(remote_id=remote_id), "submitted", 0, f"to the batch service of {service.label}")
        return True

    def _not_submitted(self, job: Job, failure: ProviderFailure) -> None:
        """Count a failure. What may have been made is looked for in the next round; otherwise texts go directly."""
        from memory_tui.providers.batch import UNSURE

        unsupported = failure.state is Cause.UNKNOWN_MODEL and not job.file_id
        self.failures += MOST_FAILURES if unsupported else 1
        self._news(job, "failed", 0, failure.message)
        if job.file_id and failure.state not in UNSURE:
            # An earlier process sent the file, which may be gone by now.
            self._on_writer(lambda store: uploaded(store, job, ""))
        elif failure.state not in UNSURE or self.failures >= MOST_FAILURES:
            self._drop(job)

    # --- polling ---------------------------------------------------------------------------------------------------

    def _poll(self, service: BatchService, job: Job) -> None:
        try:
            status = service.status(job.remote_id)
            if status.phase == "running" and self._overdue(service, job):
                status = self._cancelled(service, job)
        except ProviderFailure as failure:
            self._poll_failed(job, failure)
            return
        if status.phase == "running":
            self._news(job, "running", status.done, "", status.total)
        else:
            self._end(service, job, status)

    def _overdue(self, service: BatchService, job: Job) -> bool:
        return service.settings.clock.now() - job.submitted_at > service.jobs.timeout_seconds

    def _cancelled(self, service: BatchService, job: Job) -> JobStatus:
        """The job after it was told to end: it may have results."""
        why = f"it was not done after {service.jobs.timeout_seconds / 60:g} minutes"
        try:
            service.cancel(job.remote_id)
        except ProviderFailure as failure:
            why = f"{why}, and could not be ended: {failure.message}"
        status = service.status(job.remote_id)
        return status if status.phase != "running" else replace(status, phase="cancelled", why=why)

    def _poll_failed(self, job: Job, failure: ProviderFailure) -> None:
        if failure.state is Cause.UNKNOWN_MODEL:
            self.failures += 1
            self._news(job, "failed", 0, f"{failure.message} Its texts {_DIRECTLY}.")
            self._drop(job)
        elif failure.state in PASSING:
            self._news(job, "running", 0, failure.message)
        else:
            self._ignored.add(job.id)
            self._news(job, "failed", 0, f"{failure.message} {failure.next_step} The job goes on and is remembered.")

    def _end(self, service: BatchService, job: Job, status: JobStatus) -> None:
        """Store what a job that has ended brought; what it did not is sent directly."""
        got, errors, why = 0, list[str](), status.why
        try:
            for piece in service.fetch(status, job.identity.dims):
                got += self._on_writer(lambda store, vectors=piece.vectors: keep(store, job, vectors))
                errors += list(piece.errors.values())[:1]
        except ProviderFailure as failure:
            if self._fetch_later(job, failure):
                return
            why = failure.message
        self.results.embedded += got
        left = self._drop(job)
        if left is None:
            return
        well = status.phase == "completed" and got > 0
        self.failures = 0 if well else self.failures + 1
        kept = service.discard((job.file_id, *status.files))
        rest = f"{left:,} texts came back without a vector and {_DIRECTLY}" if left else ""
        why = why or next(iter(errors), "" if well else f"the job ended as {status.phase}")
        self._news(job, "done" if well else "failed", got, "; ".join(filter(None, (rest, why, kept))))

    def _fetch_later(self, job: Job, failure: ProviderFailure) -> bool:
        """Whether results that could not be fetched may be fetched in a later round, or by a later engine."""
        tries = self._downloads[job.id] = self._downloads.get(job.id, 0) + 1
        if failure.state is Cause.BROKEN:
            self._ignored.add(job.id)
        elif failure.state not in PASSING or tries >= _DOWNLOADS:
            return False
        self._news(job, "running", 0, f"{failure.message} {failure.next_step}")
        return True

    def _drop(self, job: Job) -> int | None:
        """Forget a job; how many texts still waited for it, or None when another process has finished it.

        They are sent directly from now on.
        """
        left: list[str] | None = self._on_writer(lambda store: forget(store, job))
        if left is None:
            return None
        self.direct.update(left)
        self.results.left += len(left)
        return len(left)

    def _news(self, job: Job, stage: Any, done: int, detail: str, total: int = 0) -> None:  # noqa: ANN401
        """Report what happened, once."""
        news = (stage, done, detail)
        if self._reported.get(job.id) != news:
            self._reported[job.id] = news
            self._emit(BatchNews(time.time(), job.remote_id, stage, done, total or job.texts, detail))
