"""Keeping the index up to date: the writer and its syncs, the watcher, and what was last seen of disk against index.

`engine-writer` owns the write connection and does every sync; the watcher only asks it for work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from memory_tui.engine.batches import Batches
from memory_tui.engine.supply import Supply
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, Noticed, ProviderChanged, WatchChanged
from memory_tui.index.writer import Writer
from memory_tui.search.trace import Unsearchable
from memory_tui.workspace.roots import Scan, scan

if TYPE_CHECKING:
    from memory_tui.consent import Consents
    from memory_tui.embed.chain import Chain
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.index.sync import SyncReport
    from memory_tui.index.watch import Watcher
    from memory_tui.launch import Plan

Outcome = TypeVar("Outcome")

_SWEEP_SECONDS = 2.0
"""A search looks for changed files when the last look is older than this and nobody is watching."""
_GOODBYE_SECONDS = 0.4
_OF_THE_FIRST = ("reason", "found", "indexed", "touched", "unchanged", "removed", "failed", "chunks", "reused",
                 "rebuilt", "changed", "claimed")
"""What a report tells of its first run where a second one only made missing vectors."""


class Upkeep:
    """The index of one plan, kept as its files are; `tell` hears of everything that happens until `close`."""

    def __init__(self, plan: Plan, chain: Chain, consents: Consents,
                 tell: Callable[[Event], None]) -> None:
        self.path = plan.index
        """Where the index is; another folder than planned when that one cannot be written."""
        self.notices: list[str] = []
        self.unsearchable: tuple[Unsearchable, ...] = ()
        """What a search could not find at the last look, and why."""
        self.watch_detail = "off"
        self._plan = plan
        self._chain = chain
        self._supply = Supply(plan, chain, consents, lambda: self.request_sync("provider"),
                              lambda text: self._tell(Noticed(time.time(), text)))
        self._listener = tell
        self._writer = Writer(self._open_store, self._report_failure)
        self._lock = threading.RLock()
        self.batches = Batches(chain, self.ask, self._tell, lambda: self.request_sync("batch"))
        self._watcher: Watcher | None = None
        self._swept = 0.0
        self._sync_wanted = False

    @property
    def closing(self) -> bool:
        """Whether `close` was called."""
        return self._writer.closing.is_set()

    @property
    def watching(self) -> bool:
        """Whether saved files are noticed by themselves."""
        return self._watcher is not None and self._watcher.alive

    def start(self) -> None:
        """Begin to work in the background: index what changed, then watch."""
        self.batches.resident = True
        if self._plan.settings.on("sync.onSessionStart"):
            self.request_sync("start")
        if self._plan.settings.on("sync.watch"):
            self.set_watching(True)

    def stop(self) -> None:
        """Ask everything to end, without waiting for the writer."""
        self._writer.closing.set()
        self.batches.close()
        self._supply.stop()
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    def close(self) -> None:
        """Wait for the writer, no longer than a part of a second."""
        self._writer.close(_GOODBYE_SECONDS)

    # --- the writer ------------------------------------------------------------------------------------------------

    def ask(self, run: Callable[[Store], Outcome]) -> Outcome:
        """What `run` makes of the write connection, on the writer's thread. Raises what it raises."""
        return self._writer.submit(run).result()

    def later(self, run: Callable[[], object]) -> None:
        """Do something else on the writer's thread when it has time; a MemoryTuiError is told as news."""
        self._writer.submit(lambda _store: run())

    def sync(self, force: bool = False, reason: str = "manual") -> SyncReport:
        """Bring the index up to date and wait for it; for batch jobs too, unless a search needs it. Raises
        MemoryTuiError.
        """
        started = time.monotonic()
        report = self.ask(lambda store: self._sync(store, reason, force))
        if reason == "search" or self.batches.resident:
            return report
        tally = self.batches.join()
        report = replace(report, embedded=report.embedded + tally.embedded, claimed=self.batches.waiting,
                         seconds=time.monotonic() - started)
        if not tally.left:
            return report
        rest = self.ask(lambda store: self._sync(store, "batch", False))
        return replace(rest, **{name: getattr(report, name) for name in _OF_THE_FIRST},
                       embedded=report.embedded + rest.embedded, seconds=time.monotonic() - started)

    def request_sync(self, reason: str = "manual", force: bool = False) -> None:
        """Bring the index up to date in the background; requests that wait already are not repeated."""
        with self._lock:
            if self._sync_wanted and not force:
                return
            self._sync_wanted = True
        self._writer.submit(lambda store: self._sync(store, reason, force))

    def wait_idle(self, timeout: float) -> bool:
        """Wait until the writer has nothing to do; False when `timeout` seconds were not enough."""
        return self._writer.wait_idle(timeout)

    def catch_up(self) -> None:
        """For commands that ask once: index what changed first, where `sync.onSearch` allows or nothing is indexed."""
        if self._plan.settings.on("sync.onSearch") or self.ask(lambda store: store.recipe() is None):
            self.sync(reason="search")

    def sweep(self) -> None:
        """Look for changed files in the background, when nobody is watching and the last look is a while ago."""
        due = time.monotonic() - self._swept > _SWEEP_SECONDS
        if due and not self.watching and self._plan.settings.on("sync.onSearch"):
            self._swept = time.monotonic()
            self.request_sync("search")

    def freshness(self, store: Store, seen: Scan) -> Freshness:
        """Compare disk and index, and remember what a search could not find, for the next answers."""
        from memory_tui.index import jobs
        from memory_tui.index.freshness import compare

        self.batches.waiting = jobs.waiting(store)
        freshness = compare(seen, store.known(), self._plan.settings)
        self.unsearchable = tuple(
            [Unsearchable(f.path, f.state, f.detail) for f in freshness.stale.values()]
            + [Unsearchable(left.path, "excluded", left.detail) for left in freshness.left_out])
        self._swept = time.monotonic()
        return freshness

    def _sync(self, store: Store, reason: str, force: bool) -> SyncReport:
        from memory_tui.index import lock
        from memory_tui.index import sync as syncing

        with self._lock:
            self._sync_wanted = False
        seen = scan(self._plan.roots)
        self.freshness(store, seen)
        with lock.wait_for(store.path, self._writer.closing):
            while True:
                provider, terms = self._supply.provider(store), self.batches.terms()
                report = syncing.sync(store, self._plan.roots, provider, self._plan.settings, seen, self._tell,
                                      self._writer.closing, force, reason, str(self._chain.error or ""), terms)
                if not report.error or self.closing or not self._supply.moved_from(provider):
                    break
            self._supply.settle(store)
        if terms and not self._plan.once:
            self.batches.start()
        self.freshness(store, scan(self._plan.roots) if report.changed else seen)
        health = self._chain.health()
        self._tell(ProviderChanged(time.time(), self._plan.provider, health.ok, health.detail))
        return report

    def _open_store(self) -> Store:
        from memory_tui.index.store import Store

        said = len(self.notices)
        store = Store.open(self._plan.index, use_vec0=self._plan.settings.on("store.vector.enabled"),
                           notices=self.notices)
        self.path = store.path
        for text in self.notices[said:]:
            self._tell(Noticed(time.time(), text))
        return store

    def _report_failure(self, error: MemoryTuiError) -> None:
        self._tell(Noticed(time.time(), f"{error.message} {error.next_step}".rstrip()))

    def _tell(self, event: Event) -> None:
        if not self.closing:
            self._listener(event)

    # --- watching --------------------------------------------------------------------------------------------------

    def set_watching(self, on: bool) -> None:
        """Switch the watcher on or off."""
        from memory_tui.index.watch import Watcher

        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        if on and not self.closing:
            self._watcher = Watcher(
                self._plan.roots, self._plan.settings.whole("sync.watchDebounceMs") / 1000,
                lambda: self.request_sync("watch"), self._watch_news)
            self._watcher.start()
        self._watch_news("on" if on else "switched off")

    def _watch_news(self, detail: str) -> None:
        self.watch_detail = detail
        self._tell(WatchChanged(time.time(), self.watching, detail))
