"""The batch runner submits batch jobs, polls them, stores their vectors.

It never occupies the writer for longer than a piece of results takes. Whoever closes leaves the jobs where they run;
the index remembers them, and the next engine goes on. After two failures in a row texts are sent directly.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from memory_tui.core.errors import Cancelled, MemoryTuiError
from memory_tui.core.events import BatchNews, Event, Noticed
from memory_tui.providers.failures import PASSING, ProviderFailure, State

if TYPE_CHECKING:
    from memory_tui.index.batch_jobs import Job, Terms
    from memory_tui.index.embedding import Manner
    from memory_tui.index.sync import SyncReport
    from memory_tui.providers.batch import BatchService, Look
    from memory_tui.providers.chain import Chain
    from memory_tui.providers.protocol import Provider

MOST_FAILURES = 2
_DOWNLOADS = 3
_LOOK_SECONDS = 0.2
_DIRECTLY = "are sent directly"


class Ask(Protocol):
    """Calls a function with the write connection, on the writer's thread, and returns what it returns."""

    def __call__(self, run: Callable[..., Any], /) -> Any: ...  # noqa: ANN401


@dataclass(slots=True)
class Tally:
    """What came of jobs since the last `join`: texts embedded, and texts that have to be sent directly."""

    embedded: int = 0
    left: int = 0


def followed(report: SyncReport, rest: SyncReport) -> SyncReport:
    """`report` of a sync whose jobs left something to be sent directly, which the sync of `rest` did."""
    return replace(
        report,
        embedded=report.embedded + rest.embedded,
        error=rest.error,
        cancelled=rest.cancelled,
        generation=rest.generation,
        claimed=rest.claimed,
    )


class BatchRunner:
    """The batch jobs of one engine. `again` asks for a sync, which sends directly what jobs could not embed; `manner`
    tells how texts get to a provider.
    """

    def __init__(
        self,
        chain: Chain,
        ask: Ask,
        tell: Callable[[Event], None],
        again: Callable[[], None],
        manner: Callable[[Provider | None], Manner],
    ) -> None:
        self.resident = False
        """Whether the engine stays, so that jobs are followed whatever `remote.batch.wait` says."""
        self.waiting = 0
        """Texts that wait for a job, as last seen."""
        self._chain, self._ask, self._tell, self._again, self._manner = chain, ask, tell, again, manner
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wanted = False
        self._closing = threading.Event()
        self._failures = 0
        self._direct: set[str] = set()
        self._unseen: set[int] = set()
        self._downloads: dict[int, int] = {}
        self._said: dict[int, tuple[str, int, str]] = {}
        self._tally = Tally()

    def terms(self) -> Terms | None:
        """When a sync leaves texts to jobs; None where it never does."""
        from memory_tui.index.batch_jobs import Terms
        from memory_tui.providers import batch

        service = self._chain.batches()
        if service is None:
            return None
        least = service.jobs.least if self._failures < MOST_FAILURES else sys.maxsize
        return Terms(least, batch.MOST_LINES, batch.MOST_BYTES, frozenset(self._direct))

    def start(self) -> None:
        """Follow the jobs there are, in the background, unless that is done already."""
        service = self._chain.batches()
        with self._lock:
            self._wanted = True
            if service is None or self._closing.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, args=(service,), name="engine-batch", daemon=True)
            self._thread.start()

    def join(self) -> Tally:
        """Wait until nothing is followed any more, or `close` is called; what came of it."""
        while (thread := self._thread) is not None and not self._closing.is_set():
            thread.join(_LOOK_SECONDS)
        tally, self._tally = self._tally, Tally()
        return tally

    def close(self) -> None:
        """Begin nothing more; calls under way end when the chain is closed."""
        self._closing.set()

    # --- the thread ------------------------------------------------------------------------------------------------

    def _work(self, service: BatchService) -> None:
        try:
            while self._taken():
                while self._round(service) and (self.resident or service.jobs.wait):
                    service.wait(self._pause(service))
                if self.resident and self._tally.left:
                    self._tally.left = 0
                    self._again()
        except Cancelled:
            return
        except MemoryTuiError as error:
            self._tell(Noticed(time.time(), f"{error.message} {error.next_step}".rstrip()))
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _taken(self) -> bool:
        """Whether somebody asked for jobs to be followed since the last time; if not, the thread counts as gone."""
        with self._lock:
            wanted, self._wanted = self._wanted, False
            if not wanted:
                self._thread = None
        return wanted

    def _round(self, service: BatchService) -> bool:
        """Submit what may be submitted and look at what runs, once; whether something is left to do later."""
        running = [job for job in self._open(service) if job.remote_id]
        for job in [job for job in self._open(service) if not job.remote_id]:
            if self._failures >= MOST_FAILURES:
                self._drop(job)
            elif len(running) < service.jobs.concurrency and self._submit(service, job):
                running.append(job)
        for job in [job for job in self._open(service) if job.remote_id]:
            self._look(service, job)
        return bool(self._open(service))

    def _open(self, service: BatchService) -> list[Job]:
        from memory_tui.index import batch_jobs

        if self._closing.is_set():
            raise Cancelled
        found: list[Job] = self._ask(lambda store: batch_jobs.jobs(store, service.space))
        self.waiting = sum(job.texts for job in found)
        return [job for job in found if (job.remote_id or job.ours) and job.id not in self._unseen]

    def _pause(self, service: BatchService) -> float:
        from memory_tui.providers.batch import pause

        newest = max((job.submitted_at for job in self._open(service)), default=0.0)
        waited = service.settings.clock.now() - newest if newest else 0.0
        return pause(service.jobs.poll_seconds, waited)

    # --- submitting ------------------------------------------------------------------------------------------------

    def _submit(self, service: BatchService, job: Job) -> bool:
        """Send a job off; whether it runs now."""
        from memory_tui.index import batch_jobs

        withheld = self._manner(self._chain.provider()).withheld
        texts: list[tuple[str, str]] = self._ask(lambda store: batch_jobs.texts(store, job, withheld=withheld))
        if not texts:
            self._drop(job)
            return False
        try:
            file_id = job.file_id
            remote_id = service.find(file_id) if file_id else ""
            if not remote_id:
                if not file_id:
                    file_id = service.upload(texts)
                    self._ask(lambda store: batch_jobs.uploaded(store, job, file_id))
                remote_id = service.create(file_id)
        except ProviderFailure as failure:
            self._not_submitted(job, failure)
            return False
        self._ask(lambda store: batch_jobs.submitted(store, job, remote_id, service.settings.clock.now()))
        self._news(job._replace(remote_id=remote_id), "submitted", 0, f"to the batch service of {service.label}")
        return True

    def _not_submitted(self, job: Job, failure: ProviderFailure) -> None:
        """Count a failure. What may have been made is looked for in the next round; otherwise texts go directly."""
        from memory_tui.index import batch_jobs
        from memory_tui.providers.batch import UNSURE

        unsupported = failure.state is State.UNKNOWN_MODEL and not job.file_id
        self._failures += MOST_FAILURES if unsupported else 1
        self._news(job, "failed", 0, failure.message)
        if job.file_id and failure.state not in UNSURE:
            # An earlier process sent the file, which may be gone by now.
            self._ask(lambda store: batch_jobs.uploaded(store, job, ""))
        elif failure.state not in UNSURE or self._failures >= MOST_FAILURES:
            self._drop(job)

    # --- looking ---------------------------------------------------------------------------------------------------

    def _look(self, service: BatchService, job: Job) -> None:
        try:
            look = service.look(job.remote_id)
            if look.phase == "running" and self._late(service, job):
                look = self._given_up(service, job)
        except ProviderFailure as failure:
            self._not_seen(job, failure)
            return
        if look.phase == "running":
            self._news(job, "running", look.done, "", look.total)
        else:
            self._end(service, job, look)

    def _late(self, service: BatchService, job: Job) -> bool:
        return service.settings.clock.now() - job.submitted_at > service.jobs.timeout_seconds

    def _given_up(self, service: BatchService, job: Job) -> Look:
        """The job after it was told to end: it may have results."""
        late = f"it was not done after {service.jobs.timeout_seconds / 60:g} minutes"
        try:
            service.cancel(job.remote_id)
        except ProviderFailure as failure:
            late = f"{late}, and could not be ended: {failure.message}"
        look = service.look(job.remote_id)
        return look if look.phase != "running" else replace(look, phase="cancelled", why=late)

    def _not_seen(self, job: Job, failure: ProviderFailure) -> None:
        if failure.state is State.UNKNOWN_MODEL:
            self._failures += 1
            self._news(job, "failed", 0, f"{failure.message} Its texts {_DIRECTLY}.")
            self._drop(job)
        elif failure.state in PASSING:
            self._news(job, "running", 0, failure.message)
        else:
            self._unseen.add(job.id)
            self._news(job, "failed", 0, f"{failure.message} {failure.next_step} The job goes on and is remembered.")

    def _end(self, service: BatchService, job: Job, look: Look) -> None:
        """Store what a job that has ended brought; what it did not is sent directly."""
        from memory_tui.index import batch_jobs

        got, told, why = 0, list[str](), look.why
        try:
            for piece in service.fetch(look, job.identity.dims):
                got += self._ask(lambda store, vectors=piece.vectors: batch_jobs.keep(store, job, vectors))
                told += list(piece.errors.values())[:1]
        except ProviderFailure as failure:
            if self._later(job, failure):
                return
            why = failure.message
        self._tally.embedded += got
        left = self._drop(job)
        if left is None:
            return
        well = look.phase == "completed" and got > 0
        self._failures = 0 if well else self._failures + 1
        kept = service.discard((job.file_id, *look.files))
        rest = f"{left:,} texts came back without a vector and {_DIRECTLY}" if left else ""
        why = why or next(iter(told), "" if well else f"the job ended as {look.phase}")
        self._news(job, "done" if well else "failed", got, "; ".join(filter(None, (rest, why, kept))))

    def _later(self, job: Job, failure: ProviderFailure) -> bool:
        """Whether results that could not be fetched may be fetched in a later round, or by a later engine."""
        tries = self._downloads[job.id] = self._downloads.get(job.id, 0) + 1
        if failure.state is State.BROKEN:
            self._unseen.add(job.id)
        elif failure.state not in PASSING or tries >= _DOWNLOADS:
            return False
        self._news(job, "running", 0, f"{failure.message} {failure.next_step}")
        return True

    def _drop(self, job: Job) -> int | None:
        """Forget a job; how many texts still waited for it, or None when another process has finished it.

        They are sent directly from now on.
        """
        from memory_tui.index import batch_jobs

        left: list[str] | None = self._ask(lambda store: batch_jobs.forget(store, job))
        if left is None:
            return None
        self._direct.update(left)
        self._tally.left += len(left)
        return len(left)

    def _news(self, job: Job, stage: Any, done: int, detail: str, total: int = 0) -> None:  # noqa: ANN401
        """Tell what happened, unless it is what was told last."""
        said = (stage, done, detail)
        if self._said.get(job.id) != said:
            self._said[job.id] = said
            self._tell(BatchNews(time.time(), job.remote_id, stage, done, total or job.texts, detail))
