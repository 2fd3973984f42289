"""The indexer keeps the index up to date in the background.

`engine-writer` owns the write connection and does every sync; watcher and clock only ask it for work. Of several
processes one keeps the index by itself (`keeper`), the others read, and one of them goes on when it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from os.path import normpath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui import locks
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import (
    Cancelled,
    IndexBusy,
    IndexDamaged,
    IndexRefused,
    IndexUnavailable,
    MemoryTuiError,
    WorkspaceError,
)
from memory_tui.engine.change_watch import (
    EngineClock,
    IndexChanges,
    Mark,
    RootWatch,
    Scanner,
    SessionWatch,
    WatchSwitch,
)
from memory_tui.engine.freshness_check import FreshnessCheck
from memory_tui.engine.open_index import IndexOpener
from memory_tui.engine.provider_setup import SyncProvider, who_answers
from memory_tui.index import batch_jobs
from memory_tui.index.batch_jobs import BatchJobs
from memory_tui.index.connections import Readers, Writer
from memory_tui.locks import Leadership
from memory_tui.notices import Notice, notice
from memory_tui.workspace import root_state
from memory_tui.workspace.roots import reachable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memory_tui.approval import Approvals
    from memory_tui.core.events import Event, SyncProgress
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.index.sync import SyncReport
    from memory_tui.index.sync_run import Lost
    from memory_tui.plan import Plan
    from memory_tui.providers.chain import Chain
    from memory_tui.search.trace import Unsearchable
    from memory_tui.workspace.scan import Scan

AUTOMATIC = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "roots"})
"""Reasons of syncs that only the keeper does."""
_NAMING = frozenset({"watch", "edit"})
"""Reasons of syncs that know what changed; all others scan in full."""
_SWEEP_SECONDS = 2.0
"""A search asks for a scan when the last comparison is older than this and nobody is watching."""
_YIELD_SECONDS = 10.0
"""A new index that is being made gives way to a save no more often than this."""
_GOODBYE_SECONDS = 0.4
_MINUTE = 60.0


class Indexer:
    """The index of one plan, kept as its files are; `emit` hears of everything that happens until `close`."""

    def __init__(self, plan: Plan, chain: Chain, approvals: Approvals, emit: Callable[[Event], None]) -> None:
        self.lost: Lost | None = None
        """Hears of daily notes that lost lines, before the index forgets these."""
        self.made_for_query = False
        """Whether the index was made for the question that is asked next."""
        self.freshness_check = FreshnessCheck(plan, chain)
        self.progress: SyncProgress | None = None
        """The last news of the sync that runs; None while none does."""
        self.last_sync: SyncReport | None = None
        """What the last sync did."""
        self._plan = plan
        self._chain = chain
        self._provider = SyncProvider(
            plan,
            chain,
            lambda: self.request_sync("provider"),
        )
        self._listener = emit
        self.opener = IndexOpener(plan, approvals, self._notice)
        self.readers = Readers(self.opener.vec0 if plan.once else None, self.opener.expected)
        """Connections that read; an index run never blocks them."""
        self.writer = Writer(self.opener.open, self.opener.close, self._report_failure)
        self._paused, self._yield = Stop(), Stop()
        self._stop = Stop(self.writer.closing, self._paused, self._yield)
        self._lock = threading.RLock()
        self.batches = BatchJobs(
            chain,
            self.writer.run,
            self._emit,
            lambda: self.request_sync("batch"),
            lambda: self._provider.manner(chain.provider()).withheld,
        )
        self.watcher = WatchSwitch(plan, lambda named: self.request_sync("watch", named=named), self._emit)
        self.root_watch = RootWatch(plan.roots, self.watcher, self._roots_changed, self.writer.closing)
        self.index_changes = IndexChanges(lambda: self.opener.path)
        self._sessions = SessionWatch(plan, self.opener.notices, self._notice)
        self._scanner = Scanner(plan.roots, self._sessions)
        self.leadership = Leadership(lambda: self.opener.path, self._emit)
        """Whether this process keeps the index, and what it does for the others then."""
        self._retry_later = False
        self._clock = EngineClock(self._tick, self.writer.closing)
        self._yielded = self._synced = 0.0
        self._sync_wanted = False
        self._condemned: tuple[int, int] | None = None

    @property
    def paused(self) -> bool:
        """Whether indexing is paused."""
        return self._paused.is_set()

    @property
    def watched_state(self) -> Mark | None:
        """What stands for the notes as they are: which index it is that holds all of them, and its generation.

        None while a save would not be noticed, or while one that was noticed is not indexed yet.
        """
        if not self.watcher.on or not self.writer.wait_idle(0):
            return None
        return self.index_changes.mark

    @property
    def speed(self) -> float | None:
        """Texts that the last sync embedded a second; None where it embedded too few to measure."""
        last = self.last_sync
        return last.embedded / last.seconds if last and last.embedded >= 100 and last.seconds > 0 else None

    def start(self, first: Callable[[], None] = lambda: None) -> None:
        """Begin to work in the background: `first`, then index what changed, then watch."""
        self.batches.resident = self.opener.resident = True
        self.writer.submit(lambda _store: first())
        if self._plan.settings.on("sync.onSessionStart"):
            self.freshness_check.await_sync(self._first_sync)
        else:
            self.writer.submit(self._check)
            self.writer.submit(lambda _store: self.batches.start())
        if self._plan.settings.on("sync.watch"):
            self.watcher.switch(True)
        self.root_watch.start()
        self._clock.start()

    def _first_sync(self) -> Future[None]:
        """Ask for the sync of a start; done when it is over, whatever came of it."""
        self.request_sync("start")
        return self.writer.submit(lambda _store: None)

    def stop(self) -> None:
        """Ask everything to end, without waiting for the writer."""
        self.leadership.end()
        self.writer.closing.set()
        self.batches.close()
        self._provider.stop()
        self.watcher.end()

    def close(self) -> None:
        """Wait for the writer, no longer than a part of a second."""
        # Whoever closes the index last has to be its writer, or its log stays behind.
        self._clock.join(_GOODBYE_SECONDS)
        self.index_changes.close()
        self.writer.close(_GOODBYE_SECONDS)
        self.root_watch.join(_GOODBYE_SECONDS)
        self.leadership.close()
        self.opener.leave()

    # --- the writer ------------------------------------------------------------------------------------------------

    def sync(self, force: bool = False, reason: str = "manual", accept_shrink: bool = False) -> SyncReport:
        """Bring the index up to date and wait for it; for batch jobs too, unless a search needs it.

        Raises MemoryTuiError, IndexBusy while another process writes.
        """
        self._check_paused()
        started = time.monotonic()
        report = self.writer.run(lambda store: self._sync(store, reason, force, accept_shrink))
        if reason == "search" or self.batches.resident:
            return report
        results = self.batches.join()
        report = replace(
            report,
            embedded=report.embedded + results.embedded,
            claimed=self.batches.waiting,
            seconds=time.monotonic() - started,
        )
        if not results.left:
            return report
        rest = self.writer.run(lambda store: self._sync(store, "batch", False, False))
        return replace(
            report,
            embedded=report.embedded + rest.embedded,
            error=rest.error,
            cancelled=rest.cancelled,
            generation=rest.generation,
            claimed=rest.claimed,
            seconds=time.monotonic() - started,
        )

    def request_sync(self, reason: str = "manual", force: bool = False, named: Collection[str] | None = None) -> None:
        """Bring the index up to date in the background; requests that wait already are not repeated.

        Nothing but the absolute paths `named` has changed; None for anything.
        """
        self._scanner.mark_changed(named)
        with self._lock:
            if self._sync_wanted and not force:
                return
            self._sync_wanted = True
            progress, now = self.progress, time.monotonic()
            # A sync goes on by itself with the provider that takes over, and must not be stopped for that.
            rebuilding = progress is not None and progress.rebuilding and reason != "provider"
            if rebuilding and now - self._yielded > _YIELD_SECONDS:
                self._yielded = now
                self._yield.set()
        self.writer.submit(lambda store: self._background(store, reason, force))

    def edited(self, paths: Collection[str]) -> None:
        """Notes at these stored paths were changed here; the watcher, where it is on, says what else was."""
        named = [normpath(self._plan.roots.workspace / path) for path in paths]
        self.request_sync("edit", named=named if self.watcher.on else None)

    def pause(self) -> None:
        """Stop indexing after the batch that is under way; what is done stays done. Searches go on."""
        from memory_tui.core.events import IndexingPaused

        if not self.paused:
            self._paused.set()
            self._emit(IndexingPaused(time.time(), True))

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        from memory_tui.core.events import IndexingPaused

        if self.paused:
            self._paused.clear()
            self._emit(IndexingPaused(time.time(), False))
            self.request_sync("resume")

    @property
    def written_elsewhere(self) -> bool:
        """Whether another process is writing the index now, or is about to because nothing is indexed yet."""
        who = locks.living(self.opener.path)
        return (who is not None and not who.is_this_process) or (
            self.leadership.refused and not self.index_changes.begun()
        )

    def catch_up(self) -> None:
        """For commands that ask once: index what changed first, where `sync.onSearch` allows or nothing is indexed.

        While another process is writing, or while nothing can be written, the answer is of what is indexed so far, and
        a notice says so. Raises MemoryTuiError where nothing is indexed.
        """
        self.made_for_query = not self.opener.path.exists()
        on_search = self._plan.settings.on("sync.onSearch")
        try:
            if self.made_for_query or not self._begun() or (on_search and not self._nothing_changed()):
                self.sync(reason="search")
        except IndexRefused:
            raise
        except IndexUnavailable as error:
            if not isinstance(error, IndexBusy) and not (self.opener.path.exists() and self.opener.path.stat().st_size):
                raise
            self.opener.notices.append(self._not_used(error))

    def _nothing_changed(self) -> bool:
        """Whether reading tells that a sync would change nothing, so that nobody has to open the index for writing."""
        try:
            if not self.opener.whole():
                return False
            self._sessions.follow()
            with self.readers.borrow(self.opener.path) as store:
                if store is None or store.recipe() is None or not self._provider.has_nothing_to_do(store):
                    return False
                found = self.freshness(store, reachable(self._plan.roots, store.known().settled))
                return not (found.stale or found.rebuild or found.shrink or found.moved or self.batches.waiting)
        except (IndexUnavailable, WorkspaceError):
            # The writer meets the same, mends it or says what to do.
            return False

    def _begun(self) -> bool:
        """Whether there is an index that can be read; only read, because to open one to write may cost seconds."""
        try:
            return self.index_changes.begun()
        except IndexUnavailable:
            return False

    @contextmanager
    def searching(self, store: Store) -> Iterator[tuple[Unsearchable, ...]]:
        """Around a search of `store`: what it cannot find, compared now where that is cheap.

        What has changed is left to the writer, after the search: so its answer and what it says are of one moment.
        """
        self._sessions.follow()
        stale = self.freshness_check.compare_if_cheap(store)
        due = self.freshness_check.age > _SWEEP_SECONDS and not self.watcher.on
        try:
            yield self.freshness_check.unsearchable
        finally:
            if (stale or due) and self._plan.settings.on("sync.onSearch") and not self._plan.once:
                self.freshness_check.postpone()
                self.request_sync("search")

    def index_missing(self) -> None:
        """Somebody asks, and there is no index: begin one, where `sync.onSearch` allows."""
        if self._plan.settings.on("sync.onSearch") and not self._plan.once:
            self.request_sync("search")

    def freshness(self, store: Store, seen: Scan) -> Freshness:
        """Compare disk and index, and remember what a search could not find, for the next answers."""
        self.batches.waiting = self._texts_waiting(store)
        found = self.freshness_check.compare(store, seen)
        self.root_watch.record_comparison(found.moved, self.freshness_check.devices)
        return found

    def _texts_waiting(self, store: Store) -> int:
        """How many texts wait for a job of the provider's batch service."""
        if not store.has_jobs():
            return 0
        return batch_jobs.waiting(store)

    def _not_used(self, error: IndexUnavailable) -> Notice:
        """Return that the index is not used because of `error`."""
        path, remedy = str(self.opener.path), error.next_step
        return notice("index_not_used", path=path, error=error.code, said=error.message, remedy=remedy)

    def report_unreadable(self, error: IndexUnavailable, met: tuple[int, int] | None = None) -> None:
        """Report once that a reader could not use the index.

        A resident engine also has its writer move the damaged file `met` (device, inode) aside and index anew.
        """
        report = self._not_used(error)
        if report not in self.opener.notices:
            self.opener.notices.append(report)
            self._notice(report.sentence)
        if self.batches.resident and isinstance(error, IndexDamaged) and met is not None and met != self._condemned:
            self._condemned = met
            self.writer.submit(self.opener.condemn(error, met)).add_done_callback(self._condemn_failed)
            self.request_sync("lost")

    def replace_damaged(self, error: IndexDamaged, met: tuple[int, int] | None) -> None:
        """Have the file `met`, in which a reader met damage, moved aside and made again, and wait.

        Raises MemoryTuiError.
        """
        self.writer.run(self.opener.condemn(error, met))
        self.sync(reason="search")
        mended = self._not_used(error)
        self.opener.notices[:] = [notice for notice in self.opener.notices if notice != mended]

    def _condemn_failed(self, outcome: Future[None]) -> None:
        """A damaged file that could not be moved aside, because another was writing it, is condemned when met again."""
        if outcome.cancelled() or outcome.exception() is not None:
            self._condemned = None

    def _check_paused(self) -> None:
        if self.paused:
            raise IndexUnavailable("Indexing is paused.", "Resume it first.")

    def check(self) -> None:
        """Compare the index with the checksum of its closing, unless that was done, and wait. Raises MemoryTuiError."""
        self.writer.run(self._check)

    def _check(self, store: Store) -> None:
        try:
            self.opener.check(store)
        except IndexDamaged:
            # Another index takes its place, which holds nothing yet.
            self.request_sync("lost")
            raise

    def _background(self, store: Store, reason: str, force: bool) -> None:
        """A sync that nobody waits for: of the keeper alone, and put off while another process is writing."""
        with self._lock:
            self._sync_wanted = False
        if reason in AUTOMATIC and (self.paused or not self.leadership.leads()):
            self._compare_only(store)
            return
        self._check_paused()
        try:
            self._sync(store, reason, force, False)
        except IndexBusy:
            self._retry_later = True
            raise

    def _report_others(self, store: Store) -> None:
        """Say that another process has written since: what a sync finds done already is news all the same."""
        from memory_tui.core.events import IndexChanged

        if self.index_changes.differs(store):
            self._emit(IndexChanged(time.time()))

    def _compare_again(self, store: Store) -> None:
        """Compare because another process writes; it takes its share of the time for as long as that does."""
        began = time.monotonic()
        self._compare_only(store)
        self.index_changes.cost = max(self.index_changes.cost, time.monotonic() - began)

    def _compare_only(self, store: Store) -> None:
        """Compare notes and index without writing, and report when the outcome is not what it was."""
        from memory_tui.core.events import NotesChanged

        before = self.freshness_check.last
        now = self.freshness(store, reachable(self._plan.roots, store.known().settled))
        if before is None or _differs(before, now):
            self._emit(NotesChanged(time.time()))

    def _sync(self, store: Store, reason: str, force: bool, accept_shrink: bool) -> SyncReport:
        from memory_tui.index import sync as syncing

        self._yield.clear()
        before = self.freshness_check.last
        if reason not in _NAMING:
            self._scanner.mark_changed(None)
        with self.freshness_check.comparing:
            try:
                seen = self._scanner.scan(store)
            except WorkspaceError:
                # What can be searched no more is to be known, although nothing is done about it.
                self._compare_only(store)
                raise
            fresh = self.freshness(store, seen)
        # At the latest before anything is written.
        if force or fresh.stale or fresh.rebuild or not self._provider.has_nothing_to_do(store):
            self._check(store)
        try:
            with locks.wait_for(store.path, self._stop):
                self._report_others(store)
                report = self._provider.run(
                    store,
                    self._stop,
                    lambda provider, outage, manner: syncing.sync(
                        store,
                        self._plan.roots,
                        provider,
                        self._plan.settings,
                        seen,
                        listener=self._emit,
                        cancel=self._stop,
                        force=force,
                        reason=reason,
                        outage=outage,
                        terms=self.batches.terms() if provider else None,
                        accept_shrink=accept_shrink,
                        manner=manner,
                        lost=self.lost,
                    ),
                )
                # Under the lock, so that nothing counts as known that another process writes next.
                self.index_changes.mark_known(store)
        finally:
            self.progress, self._synced = None, time.monotonic()
        self.last_sync = report
        self.batches.waiting = report.claimed
        if self.batches.terms() and not self._plan.once:
            self.batches.start()
        if report.cancelled and self._yield.is_set():
            self.request_sync("resume")
        if report.changed or fresh.stale:
            # What was seen before is let go first: of a hundred thousand notes there is no room for two lists.
            del seen, fresh
            fresh = self.freshness(store, self._scanner.rescan(store))
        self._scanner.rely_on_last(store, fresh)
        self._tell_outcome(store, before, None if report.changed else fresh)
        return report

    def _tell_outcome(self, store: Store, before: Freshness | None, fresh: Freshness | None) -> None:
        """Tell who makes vectors now; and of notes that differ otherwise than `before`, where nothing was written."""
        from memory_tui.core.events import NotesChanged, ProviderChanged

        if before is not None and fresh is not None and _differs(before, fresh):
            self._emit(NotesChanged(time.time()))
        who = who_answers(store, self._chain, self._plan.settings)
        self._emit(
            ProviderChanged(
                time.time(),
                who.answers or who.requested,
                who.fine or bool(who.answers),
                who.detail if who.fine else who.sentence,
            )
        )

    def _notice(self, text: str) -> None:
        from memory_tui.core.events import Noticed

        self._emit(Noticed(time.time(), text))

    def _report_failure(self, error: MemoryTuiError) -> None:
        if not isinstance(error, Cancelled):
            self._notice(f"{error.message} {error.next_step}".rstrip())

    def _emit(self, event: Event) -> None:
        from memory_tui.core.events import SyncProgress

        if isinstance(event, SyncProgress):
            self.progress = event
        if not self.writer.closing.is_set():
            self._listener(event)

    # --- by the clock ----------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Twice a second: see what became of roots and index, take over from a keeper that ended, sweep."""
        from memory_tui.core.events import IndexChanged

        self.root_watch.review()
        if self._sessions.follow() and not self.watcher.on:
            self.request_sync("search")
        try:
            if self.writer.wait_idle(0) and self.index_changes.changed():
                self._emit(IndexChanged(time.time()))
                if self.freshness_check.unsearchable:
                    # What waited may be indexed now, and answers must not go on to say that it waits.
                    self.writer.submit(self._compare_again)
            if reason := self._due():
                self.request_sync(reason)
        except IndexUnavailable as error:
            self.report_unreadable(error)
        except Cancelled:
            return

    def _roots_changed(self, rescan: bool) -> None:
        """Say what became of the roots; where one came back, the index is brought up to date."""
        from memory_tui.core.events import RootsChanged

        lost = root_state.lost(self.root_watch.states())
        text = " ".join(root.detail for root in lost) or "All folders of notes can be read."
        self._emit(RootsChanged(time.time(), text, bool(lost)))
        if rescan or not lost:
            self.request_sync("roots")
        elif not lost[0].readable:
            self.writer.submit(self._compare_only)

    def _due(self) -> str:
        """Why a sync is due, empty when none is."""
        minutes = self._plan.settings.whole("sync.intervalMinutes")
        if not self.opener.path.exists():
            return "lost" if self.opener.opened else ""
        if self.leadership.refused:
            return "takeover" if self.leadership.leads() else ""
        if self._retry_later and locks.living(self.opener.path) is None:
            self._retry_later = False
            return "takeover"
        if minutes and time.monotonic() - self._synced > _MINUTE * minutes:
            return "interval"
        return "sweep" if self._clock.sweep_due(self.watcher.wanted) else ""


def _differs(before: Freshness, now: Freshness) -> bool:
    return (now.fresh, now.stale, now.left_out) != (before.fresh, before.stale, before.left_out)
