"""The index of one plan is kept as its files are, in the background.

`engine-writer` owns the write connection and does every sync; watcher, clock and searches only ask it for work. Of
several processes one keeps the index by itself (`keeper`), the others read, and one of them goes on when it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from memory_tui import errors, events, locks
from memory_tui.approval import cleared
from memory_tui.cancel import Stop
from memory_tui.config.settings import Settings
from memory_tui.events import Channel
from memory_tui.index import embedding, index_write
from memory_tui.index.connections import IndexOpener, Readers, Writer, condemn
from memory_tui.index.database import Recipe, differences
from memory_tui.index.embedding import HERE, SERVER, SLOW, BatchJobs, EmbeddingMode
from memory_tui.index.store import Store
from memory_tui.index.sync import FileState, Freshness, SyncReport, SyncRun, compare, recipe_of, sync
from memory_tui.index.watch import RootWatch, Watcher
from memory_tui.locks import Keeper
from memory_tui.openclaw import agent_sessions
from memory_tui.plan import Plan
from memory_tui.providers import Identity, Provider, registry
from memory_tui.providers.chain import NONE, Chain, ChainMember, who
from memory_tui.sentences import Notice, notice
from memory_tui.shared import team_vectors
from memory_tui.workspace.roots import scan
from memory_tui.workspace.scan import Scan

AUTOMATIC = frozenset({"start", "watch", "search", "interval", "batch", "sweep", "lost", "takeover", "roots"})
"""Reasons of syncs that only the keeper does."""
_TICKED = frozenset({"watch", "edit", "search", "interval", "batch", "provider"})
"""Reasons of syncs before which the watcher, if it is on, has seen what changed."""
TICK_SECONDS = 0.5
SWEEP_SECONDS = 60.0
"""How often a watcher is backed up by a scan: events get lost, and mounts come and go."""
_ASKED_SECONDS = 2.0
"""A search asks for a scan when the last comparison is older than this and nobody is watching."""
_CHEAP_SECONDS = 0.015
"""A comparison that takes no longer is worth its time before every search."""
_YOUNG_SECONDS = 0.25
"""A comparison is not repeated before this has passed."""
_LOOK_SECONDS = 2.0
"""How often a process looks at what another one writes."""
_GOODBYE_SECONDS = 0.4
_MINUTE = 60.0

Mark = tuple[str, int]
"""Which index it is (its uuid), and its generation; of no index ("", 0)."""


class Index:
    """The index of one plan; `channel` hears of everything that happens, each on its own thread."""

    def __init__(self, plan: Plan, chain: Chain, channel: Channel) -> None:
        self.after_sync: Callable[[], None] = lambda: None
        """Is called when a sync has ended."""
        self.record: Callable[[Collection[str] | None, int | None], None] = lambda *_: None
        """Records which notes changed on disk, None where that has to be looked at, with the fingerprint of a scan."""
        self.unrecorded = False
        """Whether a sync for a search left that to the end: an answer does not wait for it."""
        self.fresh_for_query = False
        """Whether the index was made for the question that is asked next."""
        self.compared: Freshness | None = None
        """What the last comparison of disk and index came to."""
        self.unsearchable: tuple[FileState, ...] = ()
        """What a search could not find at the last comparison, and why."""
        self._plan, self._chain = plan, chain
        self._emit, self._notice = channel.emit, channel.notice
        self._provider = SyncProvider(plan, chain)
        self.opener = IndexOpener(plan, self._notice)
        self.readers = Readers(self.opener.expected)
        """Connections that read; an index run never blocks them."""
        self.writer = Writer(self.opener.open, self.opener.close, self._report_failure)
        self._paused = Stop()
        self._stop = Stop(self.writer.closing, self._paused)
        self.batches = BatchJobs(chain, self._emit)
        self.watcher = Watcher(
            plan.roots,
            quiet=plan.settings.whole("sync.watchDebounceMs") / 1000,
            changed=lambda: self.request_sync("watch"),
            emit=self._emit,
            seen=lambda changed: self.record(changed, None),
        )
        self.root_watch = RootWatch(plan.roots, self.watcher, self._roots_changed, self.writer.closing)
        self.keeper = Keeper(lambda: self.opener.path, self._emit)
        """Whether this process keeps the index."""
        self._clock = threading.Thread(target=self._run_clock, name="engine-clock", daemon=True)
        self._lock = threading.RLock()
        self._request: Future[None] | None = None
        """The sync that waits to begin; where it is done all the same, the index could not be opened for it."""
        self._retry_later = False
        """Whether a sync was put off because another process was writing."""
        # When a sync last ended, and was last asked for, as `time.monotonic` tells it.
        self._synced = self._requested = 0.0
        self._swept = time.monotonic()
        self._comparing = threading.Lock()
        """Taken while disk and index are compared: a search takes what a sync finds instead of scanning too."""
        # When disk and index were last compared, by the monotonic clock, and how many seconds that took.
        self._compared_at = self._compare_cost = 0.0
        self._mark: Mark | None = None
        """The state of the index that listeners know of, None before it was first read."""
        self._look_at = 0.0
        """From when on another process's change is looked for while that one writes."""
        self._sessions = threading.Lock()
        self._copies = agent_sessions.copies_of(plan) if plan.roots.sessions else None

    @property
    def paused(self) -> bool:
        """Return whether indexing is paused."""
        return self._paused.is_set()

    @property
    def written_elsewhere(self) -> bool:
        """Return whether another process is writing the index now, or is about to because nothing is indexed yet."""
        who = locks.living(self.opener.path)
        return (who is not None and not who.here) or (self.keeper.refused and self._lacks(changes=False))

    # --- opening and closing ---------------------------------------------------------------------------------------

    def start(self, first: Callable[[], None] = lambda: None) -> None:
        """Begin to work in the background: `first`, then index what changed, then watch."""
        settings = self._plan.settings
        # From now on this process stays: what a reader cannot use, its writer mends in the background.
        self.opener.resident = True
        self.writer.submit(lambda _: first())
        if settings.on("sync.onSessionStart"):
            self.request_sync("start")
        if settings.on("sync.watch"):
            self.watcher.switch(True)
        self.root_watch.start()
        self._clock.start()

    def stop(self) -> None:
        """Ask everything to end, without waiting for the writer."""
        self.writer.closing.set()
        self.watcher.end()

    def close(self) -> None:
        """Wait for the writer, no longer than a part of a second."""
        # Whoever closes the index last has to be its writer, or its log stays behind.
        if self._clock.is_alive():
            self._clock.join(_GOODBYE_SECONDS)
        self.readers.close()
        self.writer.close(_GOODBYE_SECONDS)
        self.root_watch.join(_GOODBYE_SECONDS)
        self.keeper.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def reader(self) -> Iterator[Store]:
        """Yield a read-only connection, to nothing while there is no index. Raises Cancelled, IndexUnavailable."""
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.readers.borrow(self.opener.path))
            except errors.IndexOutdated:
                # It is made anew, with the vectors that it has.
                self.sync(reason="search")
                store = stack.enter_context(self.readers.borrow(self.opener.path))
            with self._lock:
                # The mark of the first read stays: what another process writes from then on has to be told as a change,
                # for what was shown after the first read is old, even where a later read was of the new state.
                self._mark = self._mark or mark_of(store)
            yield store

    # --- syncs -----------------------------------------------------------------------------------------------------

    def sync(self, force: bool = False, reason: str = "manual", accept_shrink: bool = False) -> SyncReport:
        """Bring the index up to date and wait for it; for batch jobs too, unless a search needs it.

        Raises MemoryTuiError, IndexBusy while another process writes.
        """
        if self._paused.is_set():
            raise errors.IndexUnavailable("Indexing is paused.", "Resume it first.")
        started = time.monotonic()
        report = self.writer.run(lambda store: self._sync(store, reason, force, accept_shrink))
        if reason == "search" or self.opener.resident:
            return report
        while self.batches.due is not None and self.batches.wait():
            last = self.writer.run(lambda store: self._sync(store, "batch", force=False, accept_shrink=False))
            # Vectors add up; how it ended is as the last round ended.
            report.embedded += last.embedded
            report.claimed, report.error = last.claimed, last.error
            report.cancelled, report.generation = last.cancelled, last.generation
        report.seconds = time.monotonic() - started
        return report

    def request_sync(self, reason: str = "manual") -> None:
        """Bring the index up to date in the background; requests that wait already are not repeated."""
        with self._lock:
            if self._request is None or self._request.done():
                self._requested = time.monotonic()
                self._request = self.writer.submit(lambda store: self._background(store, reason))

    def pause(self) -> None:
        """Stop indexing after the batch that is under way; what is done stays done. Searches go on."""
        if not self.paused:
            self._paused.set()
            self._emit(events.IndexingPaused(time.time(), True))

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        if self.paused:
            self._paused.clear()
            self._emit(events.IndexingPaused(time.time(), False))
            self.request_sync("resume")

    def catch_up(self) -> None:
        """Index what changed first, for commands that ask once, where `sync.onSearch` allows or nothing is indexed.

        While another process is writing, or while nothing can be written, the answer is of what is indexed so far, and
        a notice says so. Raises MemoryTuiError where nothing is indexed.
        """
        path = self.opener.path
        self.fresh_for_query = not path.exists()
        try:
            if self.fresh_for_query or self._lacks(changes=self._plan.settings.on("sync.onSearch")):
                self.sync(reason="search")
        except errors.IndexUnavailable as error:
            # A file of no bytes was made, and nothing was ever written into it.
            has_answer = isinstance(error, errors.IndexBusy) or (path.exists() and path.stat().st_size)
            if isinstance(error, errors.IndexRefused) or not has_answer:
                raise
            self.opener.notices.append(self._not_used(error))

    def _lacks(self, *, changes: bool) -> bool:
        """Return whether there is no index yet or, with `changes`, whether a sync would have something to do.

        The index is opened to read alone, because opening it to write may cost seconds.
        """
        try:
            # An index that was not closed, or a rebuild that was cut off, the writer settles.
            if changes and not self.opener.whole():
                return True
            if changes:
                self._follow_sessions()
            with self.readers.borrow(self.opener.path) as store:
                if store.recipe() is None:
                    return True
                if not changes:
                    return False
                now = self.freshness(store, None)
                drift = now.stale or now.rebuild or now.shrink or now.moved or self.batches.waiting
                return bool(drift) or not self._provider.has_nothing_to_do(store)
        except (errors.IndexUnavailable, errors.WorkspaceError):
            # The writer meets the same, mends it or says what to do.
            return True

    def _background(self, store: Store, reason: str) -> None:
        """Do a sync that nobody waits for: of the keeper alone, put off while another process is writing."""
        with self._lock:
            self._request = None
        if self.paused or (reason in AUTOMATIC and not self.keeper.keeps()):
            self._compare_only(store)
            return
        try:
            self._sync(store, reason, force=False, accept_shrink=False)
        except errors.IndexBusy:
            self._retry_later = True
            raise

    def _sync(self, store: Store, reason: str, force: bool, accept_shrink: bool) -> SyncReport:
        """Run the one loop: scan, compare, bring up to date, compare again, tell. A copied index has nothing to do."""
        if self._is_copied(store):
            return SyncReport(reason)
        plan, before = self._plan, self.compared
        self._follow_sessions()
        disk, fresh = self._disk(store)
        somebody_waits = reason == "search" and not self.opener.resident
        if somebody_waits:
            self.unrecorded = True
        elif reason not in _TICKED or not self.watcher.on:
            # Before the sync, so that whoever hears of it finds the changes in the record.
            large = any(left.rule == "too big" for left in disk.left_out)
            # The index, and the lists and the count of `disk`, tell whether a note changed since the last look; but no
            # times of notes that are too large to be listed, so with such notes (None) every note is looked at.
            self.record(None, None if large else hash((mark_of(store), *disk[:3])))
        self.batches.idle = plan.options.once or somebody_waits
        run = SyncRun(store, plan.roots, plan.settings, disk, reason=reason, stop=self._stop, listener=self._emit)
        run = replace(run, batches=self.batches, force=force, accept_shrink=accept_shrink)
        try:
            with locks.wait_for(store.path, self._stop):
                if self._mark not in (None, mark_of(store)):
                    # What a sync finds done already by another process is news all the same.
                    self._emit(events.IndexChanged(time.time()))
                report = self._provider.run(run)
                # Under the lock, so that nothing counts as known that another process writes next.
                self._mark = mark_of(store)
        finally:
            self._synced = time.monotonic()
            self.after_sync()
        if report.changed or fresh.stale:
            # The first list is let go: of a hundred thousand notes there is no room for two.
            del disk, fresh, run
            fresh = self.freshness(store, scan(plan.roots, store.settled()))
        if not report.changed and before is not None and before.differs(fresh):
            self._emit(events.NotesChanged(time.time()))
        serving = who(self._chain, store.identity(), hybrid=plan.settings.on("query.hybrid.enabled"))
        fine = serving.fine or bool(serving.answers)
        detail = serving.detail if serving.fine else serving.sentence
        self._emit(events.ProviderChanged(time.time(), serving.answers or serving.requested, fine, detail))
        return report

    def _disk(self, store: Store) -> tuple[Scan, Freshness]:
        """Return the notes on disk, and how they compare with `store`. Raises WorkspaceError."""
        with self._comparing:
            began = time.monotonic()
            try:
                disk = scan(self._plan.roots, store.settled())
            except errors.WorkspaceError:
                # What can be searched no more is to be known, although nothing is done about it.
                self._compare_only(store)
                raise
            self._compare_cost = time.monotonic() - began
            return disk, self.freshness(store, disk)

    def _is_copied(self, store: Store) -> bool:
        """Return whether the index is a copy of a shared one, which has no folder to be compared or synced with.

        The plan says so too: an empty index that took the place of a damaged mirror does not say it yet.
        """
        return self._plan.mirror or not store.has_folder

    # --- comparing -------------------------------------------------------------------------------------------------

    @contextmanager
    def searching(self, store: Store) -> Iterator[tuple[FileState, ...]]:
        """Yield what a search of `store` cannot find, compared now where that is cheap.

        What has changed is left to the writer, after the search: so its answer and what it says are of one moment.
        """
        if self._is_copied(store):
            yield ()
            return
        self._follow_sessions()
        stale = self._compare_if_cheap(store)
        # A comparison that is not cheap is left to the writer, too, and not asked for with every search.
        due = time.monotonic() - self._compared_at > _ASKED_SECONDS and not self.watcher.on
        try:
            yield self.unsearchable
        finally:
            if stale or due:
                self._compared_at = time.monotonic()
                self.wish_search_sync()

    def missing(self) -> errors.IndexUnavailable:
        """Return why there is no index: what kept the last sync from opening it, else that the first is to come."""
        request = self._request
        # Only a request that is done is asked for its error, so this waits for nothing.
        error = request.exception() if request is not None and request.done() else None
        if isinstance(error, errors.IndexUnavailable) and not isinstance(error, errors.IndexBusy):
            return errors.IndexUnavailable(error.message, error.next_step)
        return errors.IndexUnavailable("Nothing is indexed yet.", "Wait for the first index, or run memory-tui index.")

    def wish_search_sync(self) -> None:
        """Have an old or missing index made because somebody asks, where `sync.onSearch` allows."""
        if self._plan.settings.on("sync.onSearch") and not self._plan.options.once:
            self.request_sync("search")

    def _compare_if_cheap(self, store: Store) -> bool:
        """Compare before a search where that is cheap and was not just done.

        Returns whether notes wait to be indexed; False where nothing was compared.
        """
        if self._compare_cost > _CHEAP_SECONDS:
            return False
        with self._comparing:
            # A sync that compared meanwhile may have found that it is not cheap.
            if time.monotonic() - self._compared_at < _YOUNG_SECONDS or self._compare_cost > _CHEAP_SECONDS:
                return False
            began = time.monotonic()
            now = self.freshness(store, None)
            self._compare_cost = time.monotonic() - began
            return bool(now.pending)

    def freshness(self, store: Store, disk: Scan | None) -> Freshness:
        """Return how `disk` (None: as it is now) and index differ, and remember what a search could not find."""
        if self._is_copied(store):
            return Freshness(0, 0, {}, ())
        has = store.recipe()
        roots = self._plan.roots
        rows = store.indexed()
        self.batches.waiting = len(store.waiting(has.identity)) if has else 0
        rebuild = differences(has, self._wish(has.identity)) if has else ()
        # What the index has settled is counted and not listed, which spares most of a scan.
        seen = disk or scan(roots, None if rebuild else store.settled(), partly=True)
        if rebuild and seen.quiet:
            # A rebuild needs the list of all notes, also of those that are as they were.
            seen = scan(roots, partly=True)
        devices = store.devices()
        now = compare(seen, rows, roots, self._plan.settings, rebuild=rebuild, devices=devices)
        waiting = (state for state in now.stale.values() if state.detail != "rebuild")
        self.unsearchable = (*waiting, *(FileState(item.path, "excluded", item.detail) for item in now.left_out))
        self.compared, self._compared_at = now, time.monotonic()
        self.root_watch.comparison = now.moved, devices
        return now

    def _wish(self, has: Identity) -> Recipe:
        """Return the recipe of the next sync; nobody is asked for it.

        `has` is the space of the vectors in the index: it stays where only an answer of the provider tells the space.
        """
        roots, settings = self._plan.roots, self._plan.settings
        if self._chain.name == NONE:
            return recipe_of(roots, settings, None)
        maker = self._chain.provider()
        if maker is None:
            # What is there should stay, also what another process replaced, until the first choice has answered.
            return recipe_of(roots, settings, has)
        # An index of words alone (no dims) has no space that could complete what the provider knows of its own without
        # being asked, which is None where it knows nothing.
        space = maker.expected(has) if has.dims else maker.make(approved=False).known
        return recipe_of(roots, settings, space or has, maker.max_input_bytes)

    def _compare_only(self, store: Store) -> None:
        """Compare notes and index without writing, and report when the outcome is not what it was."""
        before = self.compared
        now = self.freshness(store, None)
        if before is None or before.differs(now):
            self._emit(events.NotesChanged(time.time()))

    def notices(self) -> list[Notice]:
        """Return what a person has to decide, or should know, about index and disk."""
        now, notices = self.compared, list(self.opener.notices)
        for root in self.root_watch.lost():
            fields = {"path": root.absolute, "state": root.state, "detail": root.detail, "remedy": root.next_step}
            notices.append(notice("root_lost", **fields))
        if now is not None and (shrink := now.shrink) is not None:
            notices.append(notice("notes_vanished", missing=shrink.missing, known=shrink.known, reason=shrink.reason))
        if now is not None and now.rebuild:
            # None: of the provider alone, whatever vectors the index has.
            failed = who(self._chain, None).standing == "failed"
            notices.append(notice("rebuild_waits", reasons=now.rebuild, failed=failed))
        if self.batches.waiting:
            notices.append(notice("batch_waits", texts=self.batches.waiting))
        return notices

    def _follow_sessions(self) -> bool:
        """Bring the copies of the agent's sessions up to date; return whether any copy changed.

        Nobody asks for copies where sessions are no notes (`_copies` is None). Why they could not be brought up to date
        is a notice as long as that is so, and is told once.
        """
        copies, notices = self._copies, self.opener.notices
        if copies is None:
            return False
        with self._sessions:
            before = copies.problem
            changed = copies.refresh()
            if copies.problem != before:
                # The problem is another one, or is over: then there is none.
                notices[:] = [notice for notice in notices if notice != before]
                if copies.problem:
                    notices.append(copies.problem)
                    self._notice(copies.problem.sentence)
        return changed

    # --- a damaged index -------------------------------------------------------------------------------------------

    def _not_used(self, error: errors.IndexUnavailable) -> Notice:
        """Return that the index is not used because of `error`."""
        path, remedy = str(self.opener.path), error.next_step
        return notice("index_not_used", path=path, error=error.code, said=error.message, remedy=remedy)

    def report_unreadable(self, error: errors.IndexUnavailable, met: tuple[int, int] | None = None) -> None:
        """Report once that a reader could not use the index.

        A resident engine also has its writer move the damaged file `met` (device, inode; None: no file was opened)
        aside and index anew.
        """
        report = self._not_used(error)
        if report not in self.opener.notices:
            self.opener.notices.append(report)
            self._notice(report.sentence)
        if self.opener.resident and isinstance(error, errors.IndexDamaged) and met is not None:
            self.writer.submit(condemn(error, met))
            self.request_sync("lost")

    def replace_damaged(self, error: errors.IndexDamaged, met: tuple[int, int] | None) -> None:
        """Have the file `met`, in which a reader met damage, moved aside and made again, and wait.

        Raises MemoryTuiError.
        """
        self.writer.run(condemn(error, met))
        self.sync(reason="search")
        mended = self._not_used(error)
        self.opener.notices[:] = [notice for notice in self.opener.notices if notice != mended]

    # --- events and the clock --------------------------------------------------------------------------------------

    def _report_failure(self, error: errors.MemoryTuiError) -> None:
        """Tell why a job of the writer failed, unless it was stopped."""
        if not isinstance(error, errors.Cancelled):
            self._notice(f"{error.message} {error.next_step}".rstrip())

    def _run_clock(self) -> None:
        """See twice a second what became of roots, provider and index, take over from a keeper that ended, sweep."""
        while not self.writer.closing.wait(TICK_SECONDS):
            self.root_watch.review()
            if self._follow_sessions() and not self.watcher.on:
                self.request_sync("search")
            if self._provider.due():
                self.request_sync("provider")
            if self.batches.due is not None and time.monotonic() >= self.batches.due:
                # Asked for once: in a process that is paused or does not keep the index no sync would set it anew.
                self.batches.due = None
                self.request_sync("batch")
            try:
                # While the writer works, a change may be its own.
                if self.writer.wait_idle(0) and self._changed_elsewhere():
                    self._emit(events.IndexChanged(time.time()))
                    if self.unsearchable:
                        # What waited may be indexed now, and answers must not go on to say that it waits.
                        self.writer.submit(self._compare_only)
                if reason := self._due():
                    self.request_sync(reason)
            except errors.IndexUnavailable as error:
                self.report_unreadable(error)
            except errors.Cancelled:
                return

    def _changed_elsewhere(self) -> bool:
        """Return whether another process changed the index, once for each change. Raises IndexUnavailable."""
        now = time.monotonic()
        # A process that writes changes it with every batch, which is not worth an event each time.
        if now < self._look_at and locks.living(self.opener.path) is not None:
            return False
        try:
            with self.readers.borrow(self.opener.path) as store:
                mark = mark_of(store)
        except errors.IndexOutdated:
            # Who opens it to write brings it up to date, and tells what changes then.
            return False
        if mark == self._mark:
            return False
        self._mark, self._look_at = mark, now + _LOOK_SECONDS
        return True

    def _roots_changed(self, rescan: bool) -> None:
        """Say what became of the roots; with `rescan`, as one came back or was replaced, bring the index up to date."""
        away = self.root_watch.lost()
        text = " ".join(root.detail for root in away) or "All folders of notes can be read."
        self._emit(events.RootsChanged(time.time(), text, bool(away)))
        if rescan or not away:
            self.request_sync("roots")
        # Those that cannot be read come first: a sync would refuse them, so that the comparison alone tells of it.
        elif not away[0].readable:
            self.writer.submit(self._compare_only)

    def _due(self) -> str:
        """Return why a sync is due, empty when none is."""
        now = time.monotonic()
        # A request that is done and still kept could not open the index: it is made again after a minute, so that the
        # reason is told once a minute and not twice a second.
        failed = self._request is not None and self._request.done() and now - self._requested < SWEEP_SECONDS
        if failed or not (self.opener.opened or self.opener.path.exists()):
            return ""
        if self.opener.lost:
            # Also where another process has made an empty index in its place, which only the keeper fills.
            return "lost"
        if self.keeper.refused:
            return "takeover" if self.keeper.keeps() else ""
        if self._retry_later and locks.living(self.opener.path) is None:
            self._retry_later = False
            return "takeover"
        minutes = self._plan.settings.whole("sync.intervalMinutes")
        if minutes and now - self._synced > _MINUTE * minutes:
            return "interval"
        if not self.watcher.active or now - self._swept < SWEEP_SECONDS:
            return ""
        self._swept = now
        return "sweep"


def mark_of(store: Store) -> Mark:
    """Return which index `store` is, and its generation."""
    if store.identified is None:
        return "", 0
    return str(store.meta("uuid") or ""), store.generation()


# --- who makes vectors -----------------------------------------------------------------------------------------------

_HITS = "cache_hits"


class SyncProvider:
    """The chain of one plan as its syncs use it."""

    def __init__(self, plan: Plan, chain: Chain) -> None:
        self._plan, self._chain = plan, chain
        self._siblings = plan.siblings
        self._windows = compares_windows(plan.settings)
        self._most_cached = plan.config.whole("cache.maxEntries")
        self._restored = 0
        self._next_try: float | None = None

    def run(self, run: SyncRun) -> SyncReport:
        """Do the sync with the provider in use, and again with the one that takes over when it fails.

        Where only an answer of the provider tells its space, a new index gets words alone first, to be searched soon.
        """
        store, chain = run.store, self._chain
        if store.recipe() is None and (maker := chain.provider()) and maker.make(approved=False).known is None:
            sync(replace(run, batches=None))
        while True:
            # A person had the provider asked again, so also for the texts that it rejected.
            if self._restored != chain.restored:
                self._restored = chain.restored
                embedding.clear_rejected(store)
            # None where a person chose none, or where none can be used: then the chain has an error.
            provider = chain.proven(store.identity())
            batches = run.batches if provider and provider.batches() else None
            outage = "" if provider else str(chain.state().error or "")
            report = sync(replace(run, provider=provider, batches=batches, outage=outage, manner=self.manner(provider)))
            another_took_over = provider is not None and chain.provider() not in (provider, None)
            if not report.error or run.stop.is_set() or not another_took_over:
                break
        if report.reused:
            index_write.remember(store, _HITS, str(cache_hits(store) + report.reused))
        if report.changed:
            index_write.prune(store, self._most_cached)
        self._next_try = chain.state().next_try
        return report

    def has_nothing_to_do(self, store: Store) -> bool:
        """Return whether a sync of `store` would ask nobody for vectors and write nothing down about who makes them."""
        identity = store.identity()
        chain_state = self._chain.state()
        if chain_state.error or chain_state.fallback or not self._plan.settings.on("cache.enabled"):
            return False
        if identity is None:
            # Words alone were indexed, and no chunk waits for a vector.
            return True
        windows = registry.is_model(identity.provider) and self._windows
        return not store.lacking() and not (windows and store.lacking_windows())

    def manner(self, provider: Provider | None) -> EmbeddingMode:
        """Return how texts get to `provider`: at once where it takes no time (HERE), else later and in batches."""
        if not isinstance(provider, ChainMember):
            # There is nobody that texts could get to.
            return replace(HERE, siblings=self._siblings)
        usual = SLOW if provider.slow else HERE
        is_server = bool(provider.host)
        withheld = is_server and self._plan.settings.on("remote.withholdSecrets") and not provider.takes_secrets
        return replace(
            SERVER if is_server else usual,
            siblings=self._siblings,
            withheld=withheld,
            cleared=cleared(self._plan.workspace) if withheld else frozenset(),
            windows=provider.is_model and self._windows,
            team=team_vectors(self._plan) if provider.is_model else None,
        )

    def due(self) -> bool:
        """Tell once whether a provider that failed may be asked again.

        That is at its time, or before it when the time was changed by another process that it answered.
        """
        if self._next_try is None:
            return False
        next_try = self._chain.state().next_try
        if next_try == self._next_try and self._chain.settings.clock.now() < next_try:
            return False
        self._next_try = None
        return True


def compares_windows(settings: Settings) -> bool:
    """Return whether the windows of chunks get vectors, as far as the profile decides it."""
    # A score by the share of the best cosine is our own profile's; releases of OpenClaw compare whole chunks.
    return settings.profile.vector_score == "share"


def cache_hits(store: Store) -> int:
    """Return how many chunks of `store` found their vector in its cache so far, instead of asking the provider."""
    return int(store.meta(_HITS) or 0)
