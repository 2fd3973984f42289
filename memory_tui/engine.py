"""The one object a front end holds: open a workspace, keep its index, ask, and be told what happens.

Threads: `engine-writer` owns the write connection and does every sync; a search borrows a read-only one; the watcher
only asks the writer for work. Nothing heavy is imported before something heavy is done.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from memory_tui import launch, providing
from memory_tui.embed.chain import Chain
from memory_tui.errors import IndexUnavailable, MemoryTuiError, ProviderError
from memory_tui.events import Event, Listener, Noticed, ProviderChanged, WatchChanged, ignore
from memory_tui.index.readers import Cancel, Readers
from memory_tui.index.writer import Writer
from memory_tui.launch import Options, Plan
from memory_tui.search.trace import ChunkRef, Notice, Trace, Unsearchable
from memory_tui.settings import Settings
from memory_tui.workspace.roots import Scan, scan, why_path
from memory_tui.workspace.sources import Document, note, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memory_tui.explain.whynot import WhyNot
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.index.sync import SyncReport
    from memory_tui.index.vectors import Corpus
    from memory_tui.index.watch import Watcher
    from memory_tui.overview import FileRow, FileVerdict, Note, Status
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.gather import Dates

__all__ = ["Cancel", "Engine", "Options"]

# A few megabytes of vectors are multiplied fastest by one thread; more would wait for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_SWEEP_SECONDS = 2.0
"""A search looks for changed files when the last look is older than this and nobody is watching."""
_GOODBYE_SECONDS = 0.4


class Engine:
    """A workspace with its index. Every method may be called from any thread; those that read the disk or the index
    take milliseconds to seconds and belong on a worker thread, `rank` and the properties do not.
    """

    def __init__(self, plan: Plan, listener: Listener = ignore) -> None:
        self.plan = plan
        self._listener = listener
        self._writer = Writer(self._open_store, self._report_failure)
        self._readers = Readers(plan.once and plan.settings.on("store.vector.enabled"))
        self._lock = threading.RLock()
        self._index = plan.index
        self._index_notices: list[str] = []
        self._corpus: Corpus | None = None
        self._dates: Dates | None = None
        self._withheld = providing.withheld(plan)
        self._chain = Chain(providing.settings(plan), self._provider_failed)
        self._watcher: Watcher | None = None
        self._watch_detail = "off"
        self._unsearchable: tuple[Unsearchable, ...] = ()
        self._swept = 0.0
        self._sync_wanted = False

    # --- opening and closing ---------------------------------------------------------------------------------------

    @classmethod
    def open(cls, options: Options, listener: Listener = ignore) -> Engine:
        """Find workspace, configuration and settings; opens no index yet. Raises MemoryTuiError."""
        return cls(launch.plan(options), listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def listen(self, listener: Listener) -> None:
        """Send events to `listener` from now on; it is called on the thread that made the news."""
        self._listener = listener

    def start(self) -> None:
        """Begin to work in the background: index what changed, then watch."""
        if self.settings.on("sync.onSessionStart"):
            self.request_sync("start")
        if self.settings.on("sync.watch"):
            self.set_watching(True)

    def close(self) -> None:
        """Stop everything within half a second; work that is under way is given up, and nothing of it is lost."""
        self._writer.closing.set()
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        self._readers.close()
        self._chain.close()
        self._writer.close(_GOODBYE_SECONDS)

    def _provider_failed(self, error: ProviderError) -> None:
        self._tell(ProviderChanged(time.time(), self.plan.provider, False, error.message))

    @property
    def settings(self) -> Settings:
        """The settings the engine was opened with."""
        return self.plan.settings

    @property
    def profile(self) -> str:
        """The name of the profile in force when the engine was opened."""
        return self.settings.word("profile")

    @property
    def workspace(self) -> Path:
        """The folder that holds the notes."""
        return self.plan.roots.workspace

    @property
    def read_only(self) -> bool:
        """Whether notes must not be edited."""
        return self.plan.read_only

    @property
    def watching(self) -> bool:
        """Whether saved files are noticed by themselves."""
        return self._watcher is not None and self._watcher.alive

    def now(self) -> float:
        """The time that ages are counted from, in epoch seconds."""
        return time.time() if self.plan.now is None else self.plan.now

    def with_profile(self, name: str) -> Settings:
        """The settings under another profile, keeping what was explicitly chosen."""
        return self.plan.with_profile(name)

    def notices(self) -> tuple[Notice, ...]:
        """What a person should know about configuration, index and provider before trusting an answer."""
        found = [Notice("config", problem) for problem in self.plan.config.problems]
        found += [Notice("index", text) for text in self._index_notices]
        if (error := self._withheld or self._chain.error) is not None:
            found.append(Notice("provider", f"Meaning-based recall is off: {error.message}", error.next_step))
        return tuple(found)

    # --- the writer ------------------------------------------------------------------------------------------------

    def sync(self, force: bool = False, reason: str = "manual") -> SyncReport:
        """Bring the index up to date and wait for it. Raises MemoryTuiError."""
        report: SyncReport = self._writer.submit(lambda store: self._sync(store, reason, force)).result()
        return report

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

    def _report_failure(self, error: MemoryTuiError) -> None:
        self._tell(Noticed(time.time(), f"{error.message} {error.next_step}".rstrip()))

    def _open_store(self) -> Store:
        from memory_tui.index.store import Store

        said = len(self._index_notices)
        store = Store.open(self.plan.index, use_vec0=self.settings.on("store.vector.enabled"),
                           notices=self._index_notices)
        self._index = store.path
        for text in self._index_notices[said:]:
            self._tell(Noticed(time.time(), text))
        return store

    def _tell(self, event: Event) -> None:
        if not self._writer.closing.is_set():
            self._listener(event)

    def _sync(self, store: Store, reason: str, force: bool) -> SyncReport:
        from memory_tui.index import lock
        from memory_tui.index import sync as syncing

        with self._lock:
            self._sync_wanted = False
        provider = self._chain.provider()
        seen = scan(self.plan.roots)
        self._note_freshness(store, seen)
        with lock.wait_for(store.path, self._writer.closing):
            report = syncing.sync(store, self.plan.roots, provider, self.settings, seen, self._tell,
                                  self._writer.closing, force, reason, str(self._chain.error or ""))
        self._note_freshness(store, scan(self.plan.roots) if report.changed else seen)
        health = providing.health(self._withheld, self._chain)
        self._tell(ProviderChanged(time.time(), self.plan.provider, health.ok, health.detail))
        return report

    def _note_freshness(self, store: Store, seen: Scan) -> Freshness:
        """Compare disk and index, and remember what a search could not find, for the next answers."""
        from memory_tui.index.freshness import compare

        freshness = compare(seen, store.known(), self.settings)
        self._unsearchable = tuple(
            [Unsearchable(f.path, f.state, f.detail) for f in freshness.stale.values()]
            + [Unsearchable(left.path, "excluded", left.detail) for left in freshness.left_out])
        self._swept = time.monotonic()
        return freshness

    # --- watching --------------------------------------------------------------------------------------------------

    def set_watching(self, on: bool) -> None:
        """Switch the watcher on or off."""
        from memory_tui.index.watch import Watcher

        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        if on and not self._writer.closing.is_set():
            self._watcher = Watcher(
                self.plan.roots, self.settings.whole("sync.watchDebounceMs") / 1000,
                lambda: self.request_sync("watch"), self._watch_news)
            self._watcher.start()
        self._watch_news("on" if on else "switched off")

    def _watch_news(self, detail: str) -> None:
        self._watch_detail = detail
        self._tell(WatchChanged(time.time(), self.watching, detail))

    # --- asking ----------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """For commands that ask once: index what changed first, where `sync.onSearch` allows or nothing is indexed."""
        if self.settings.on("sync.onSearch") or self._writer.submit(lambda store: store.recipe() is None).result():
            self.sync(reason="search")

    def gather(self, query: str, cancel: Cancel | None = None, source: str = "") -> Evidence:
        """What the index knows about `query`. Raises QueryError, Cancelled, IndexUnavailable."""
        from memory_tui.search.gather import Sources, gather

        self._sweep()
        with self._reader() as store, (cancel or Cancel()).around(store.interrupt):
            corpus, dates = self._current(store)
            provider = self._chain.provider() if corpus.identity else None
            sources = Sources(store, corpus, dates, provider, unsearchable=self._unsearchable, notices=self.notices())
            return gather(query, sources, self.now(), source)

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """`evidence` under `settings`: pure and quick, for any thread."""
        from memory_tui.search.rank import rank

        return rank(evidence, settings)

    def search(self, query: str, settings: Settings | None = None) -> Trace:
        """Ask and rank at once."""
        return self.rank(self.gather(query), settings or self.settings)

    def why(self, evidence: Evidence, path: str, line: int | None = None, settings: Settings | None = None) -> WhyNot:
        """Why a line of a note (1-based; None: any of them) was, or was not, recalled. Raises IndexUnavailable."""
        from memory_tui.explain import place, whynot

        with self._reader() as store:
            return whynot.why(evidence, settings or self.settings, place.look(self.plan.roots, store, path, line))

    @contextmanager
    def _reader(self) -> Iterator[Store]:
        with self._readers.borrow(self._index) as store:
            if store is None:
                raise IndexUnavailable("Nothing is indexed yet.", "Wait for the first index, or run memory-tui index.")
            yield store

    def _sweep(self) -> None:
        """Look for changed files in the background, when nobody is watching and the last look is a while ago."""
        due = time.monotonic() - self._swept > _SWEEP_SECONDS
        if due and not self.watching and self.settings.on("sync.onSearch"):
            self._swept = time.monotonic()
            self.request_sync("search")

    def _current(self, store: Store) -> tuple[Corpus, Dates]:
        """The chunks in memory, brought up to the index's generation."""
        from memory_tui.index.vectors import Corpus
        from memory_tui.search.gather import Dates

        with self._lock:
            first = Corpus.load_once if self.plan.once else Corpus.load
            corpus = self._corpus.refresh(store) if self._corpus is not None else first(store)
            if corpus is not self._corpus or self._dates is None:
                self._corpus, self._dates = corpus, Dates.of(corpus)
            return corpus, self._dates

    # --- looking around --------------------------------------------------------------------------------------------

    def status(self, deep: bool = False) -> Status:
        """The whole state, computed now; `deep` embeds one text with the provider."""
        return self._writer.submit(lambda store: self._status(store, deep)).result()

    def _status(self, store: Store, deep: bool) -> Status:
        from memory_tui import overview

        seen = scan(self.plan.roots)
        return overview.status(
            self.plan, store, seen, self._note_freshness(store, seen),
            health=providing.health(self._withheld, self._chain), watching=(self.watching, self._watch_detail),
            probe=self._chain.probe() if deep else None, notices=self.notices())

    def files(self) -> tuple[FileRow, ...]:
        """Every note with its state, by path."""
        from memory_tui import overview

        def rows(store: Store) -> tuple[FileRow, ...]:
            seen = scan(self.plan.roots)
            return overview.file_rows(store, seen, self._note_freshness(store, seen))

        return self._writer.submit(rows).result()

    def read(self, path: str) -> Document:
        """A note as it is on disk, or a transcript line by line. Raises PathRefused, Unreadable."""
        return shown(self.plan.roots, path)

    def chunks_of(self, path: str) -> tuple[ChunkRef, ...]:
        """The chunks of a note as they are indexed, in order."""
        with self._readers.borrow(self._index) as store:
            rows = store.chunks_of(path) if store is not None else []
        return tuple(ChunkRef(row.rowid, row.chunk_id, path, row.source, row.start_line, row.end_line)
                     for row in rows if row.occurrence == 0)

    def why_file(self, path: str) -> FileVerdict:
        """Why a path is, or is not, part of the memory."""
        from memory_tui import overview

        seen = scan(self.plan.roots)
        found = why_path(self.plan.roots, path, seen)
        return self._writer.submit(
            lambda store: overview.file_verdict(found, store, self._note_freshness(store, seen))).result()

    def get(self, path: str, start: int = 1, lines: int | None = None) -> Note:
        """Some lines of a note: at most 120 and 12,000 characters. Raises PathRefused, Unreadable."""
        from memory_tui import overview

        return overview.note(note(self.plan.roots, path), start, lines)
