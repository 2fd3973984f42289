"""The batch runner follows batch jobs beside the syncs of an engine.

Whoever closes leaves the jobs where they run; the index remembers them, and the next engine goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError

if TYPE_CHECKING:
    from memory_tui.core.events import Event
    from memory_tui.index.batch_jobs import BatchMachine, BatchTerms, JobResults, RunOnWriter
    from memory_tui.index.embedding import EmbeddingMode
    from memory_tui.index.sync import SyncReport
    from memory_tui.providers.base import Provider
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.chain import Chain

_JOIN_SECONDS = 0.2


def combined(report: SyncReport, rest: SyncReport) -> SyncReport:
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
    """The batch jobs of one engine. `send_rest` asks for a sync, which sends directly what jobs could not embed;
    `manner_of` tells how texts get to a provider.
    """

    def __init__(
        self,
        chain: Chain,
        on_writer: RunOnWriter,
        emit: Callable[[Event], None],
        send_rest: Callable[[], None],
        manner_of: Callable[[Provider | None], EmbeddingMode],
    ) -> None:
        self.resident = False
        """Whether the engine stays, so that jobs are followed whatever `remote.batch.wait` says."""
        self.waiting = 0
        """Texts that wait for a job, as last seen."""
        self._chain, self._on_writer, self._emit, self._send_rest, self._manner_of = (
            chain,
            on_writer,
            emit,
            send_rest,
            manner_of,
        )
        self._stop = Stop()
        self._machine: BatchMachine | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wanted = False

    def terms(self) -> BatchTerms | None:
        """When a sync leaves texts to jobs; None where it never does."""
        service = self._chain.batches()
        if service is None:
            return None
        # Late, because the HTTP client takes a quarter of the start of a search.
        from memory_tui.index.batch_jobs import MOST_FAILURES, BatchTerms
        from memory_tui.providers import batch

        machine = self._jobs()
        least = service.jobs.least if machine.failures < MOST_FAILURES else sys.maxsize
        return BatchTerms(least, batch.MOST_LINES, batch.MOST_BYTES, frozenset(machine.direct))

    def start(self) -> None:
        """Follow the jobs there are, in the background, unless that is done already."""
        service = self._chain.batches()
        with self._lock:
            self._wanted = True
            if service is None or self._stop.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, args=(service,), name="engine-batch", daemon=True)
            self._thread.start()

    def join(self) -> JobResults:
        """Wait until nothing is followed any more, or `close` is called; what came of it since the last time."""
        while (thread := self._thread) is not None and not self._stop.is_set():
            thread.join(_JOIN_SECONDS)
        return self._jobs().take_results()

    def close(self) -> None:
        """Begin nothing more; calls under way end when the chain is closed."""
        self._stop.set()

    def _jobs(self) -> BatchMachine:
        # Made when it is first needed: it loads the index, which the start of an engine does without.
        from memory_tui.index.batch_jobs import BatchMachine

        with self._lock:
            if self._machine is None:
                self._machine = BatchMachine(self._on_writer, self._emit, self._stop, self._withheld, self._count)
            return self._machine

    def _withheld(self) -> bool:
        return self._manner_of(self._chain.provider()).withheld

    def _count(self, waiting: int) -> None:
        self.waiting = waiting

    def _run(self, service: BatchService) -> None:
        jobs = self._jobs()
        try:
            while self._take_request():
                while jobs.round(service) and (self.resident or service.jobs.wait):
                    service.wait(jobs.pause(service))
                if self.resident and jobs.results.left:
                    jobs.results.left = 0
                    self._send_rest()
        except Cancelled:
            return
        except MemoryTuiError as error:
            from memory_tui.core.events import Noticed

            self._emit(Noticed(time.time(), f"{error.message} {error.next_step}".rstrip()))
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _take_request(self) -> bool:
        """Whether somebody asked for jobs to be followed since the last time; if not, the thread counts as gone."""
        with self._lock:
            wanted, self._wanted = self._wanted, False
            if not wanted:
                self._thread = None
        return wanted
