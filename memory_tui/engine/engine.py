"""The engine is the one object a front end holds: it opens a workspace, keeps its index, answers queries.

`indexer` writes, `queries` reads; neither waits for the other.

Nothing heavy is imported before something heavy is done.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Self

from memory_tui import plan as plans
from memory_tui.approval import Consents
from memory_tui.core.cancel import Cancel
from memory_tui.core.errors import ProviderError
from memory_tui.core.events import Event, Listener, Noticed, ProviderChanged, SyncProgress, ignore
from memory_tui.core.settings import Settings
from memory_tui.engine.indexer import Upkeep
from memory_tui.engine.provider_setup import Embedding
from memory_tui.engine.queries import Asking, said_once
from memory_tui.plan import Options, Plan
from memory_tui.providers.chain import Chain
from memory_tui.search.trace import ChunkRef, Notice, Trace
from memory_tui.workspace import root_state
from memory_tui.workspace.notes import Document
from memory_tui.workspace.root_state import RootState
from memory_tui.workspace.roots import note, reachable, scan, shown, why_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memory_tui.curate.changes import Change
    from memory_tui.curate.curator import Curator
    from memory_tui.curate.what_if import Effect
    from memory_tui.engine.costs import Estimate
    from memory_tui.engine.status import FileRow, FileVerdict, Note, Status
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.inbox.decisions import Decisions
    from memory_tui.inbox.entries import Suggestion
    from memory_tui.inbox.examine import Tell
    from memory_tui.index.store import Store
    from memory_tui.index.sync import SyncReport
    from memory_tui.providers.serving import Who
    from memory_tui.search.evidence import Evidence
    from memory_tui.source.rows import TableSize

__all__ = ["Engine"]

# A few megabytes of vectors are multiplied fastest by one thread; more would wait for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Engine:
    """A workspace with its index. Every method may be called from any thread; those that read the disk or the index
    take milliseconds to seconds and belong on a worker thread, `rank` and the properties do not.
    """

    def __init__(self, plan: Plan, listener: Listener = ignore) -> None:
        self.plan = plan
        self._listener = listener
        self._consents = Consents(plan.workspace)
        self._chain = Chain(plans.settings(plan, self._consents), self._provider_failed)
        self._upkeep = Upkeep(plan, self._chain, self._consents, self._tell)
        self._asking = Asking(plan, self._chain, self._upkeep, self._notices)
        self.embedding = Embedding(
            plan, self._chain, self._consents, lambda: self._upkeep.request_sync("provider"), self._asking.looking
        )
        """Providers, agreements, and what would be sent."""

    # --- opening and closing ---------------------------------------------------------------------------------------

    @classmethod
    def open(cls, options: Options, listener: Listener = ignore) -> Engine:
        """Find workspace, configuration and settings; opens no index yet. Raises MemoryTuiError."""
        return cls(plans.plan(options), listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def listen(self, listener: Listener) -> None:
        """Send events to `listener` from now on; it is called on the thread that made the news."""
        self._listener = listener

    def start(self) -> None:
        """Begin to work in the background: settle changes that were cut off, index what changed, then watch."""
        self._upkeep.later(self._recover)
        self._upkeep.start()

    def close(self) -> None:
        """Stop everything within half a second; work that is under way is given up, and nothing of it is lost."""
        self._upkeep.stop()
        self._asking.close()
        self._chain.close()
        self._upkeep.close()

    def _tell(self, event: Event) -> None:
        self._listener(event)

    def _provider_failed(self, error: ProviderError) -> None:
        if not self._upkeep.closing:
            self._tell(ProviderChanged(time.time(), self.plan.provider, False, error.message))
            if self._chain.fallback is not None:
                # The index has to be made again with the vectors of the other one.
                self._upkeep.request_sync("provider")

    # --- what it was opened with -----------------------------------------------------------------------------------

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

    def now(self) -> float:
        """The time that ages are counted from, in epoch seconds."""
        return time.time() if self.plan.now is None else self.plan.now

    def with_profile(self, name: str) -> Settings:
        """The settings under another profile, keeping what was explicitly chosen."""
        return self.plan.with_profile(name)

    def reread(self) -> None:
        """Take up what the configuration on disk says now; the settings in force stay. Raises ConfigError."""
        self.plan = plans.renewed(self.plan)

    def who(self) -> Who:
        """Who answers questions by meaning now, and why it is not who was asked for; asks nobody."""
        return self.embedding.who()

    def notices(self) -> tuple[Notice, ...]:
        """What a person should know about configuration, index and provider before trusting an answer."""
        return said_once(self._notices(), self.who())

    def _notices(self) -> tuple[Notice, ...]:
        """The same, but for who answers."""
        found = [Notice("config", problem) for problem in self.plan.config.problems]
        found += [Notice("index", text) for text in self._upkeep.notices]
        found += [Notice("root", root.detail, root_state.next_step(root)) for root in root_state.lost(self.roots())]
        found += self._upkeep.outlook.doubts()
        if waiting := self._upkeep.batches.waiting:
            found.append(
                Notice(
                    "batch",
                    f"{waiting:,} texts wait for the provider's batch service; until it is done, words alone find "
                    "them.",
                    "The app, or memory-tui index, fetches what is done.",
                )
            )
        return tuple(found)

    # --- keeping the index -----------------------------------------------------------------------------------------

    def roots(self) -> tuple[RootState, ...]:
        """The state of every root, at most a second old."""
        return self._upkeep.guarding.states()

    @property
    def watching(self) -> bool:
        """Whether saved files are noticed by themselves."""
        return self._upkeep.watcher.on

    def set_watching(self, on: bool) -> None:
        """Switch the watcher on or off."""
        self._upkeep.watcher.switch(on)

    def sync(self, force: bool = False, reason: str = "manual") -> SyncReport:
        """Bring the index up to date and wait for it. Raises MemoryTuiError."""
        return self._upkeep.sync(force, reason)

    def request_sync(self, reason: str = "manual", force: bool = False) -> None:
        """Bring the index up to date in the background; requests that wait already are not repeated."""
        self._upkeep.request_sync(reason, force)

    def pause(self) -> None:
        """Stop indexing after the batch that is under way; what is done stays done, and searches go on."""
        self._upkeep.pause()

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        self._upkeep.resume()

    @property
    def paused(self) -> bool:
        """Whether indexing is paused."""
        return self._upkeep.paused

    @property
    def progress(self) -> SyncProgress | None:
        """The last news of the sync that runs, with its rate and time left; None while none does."""
        return self._upkeep.progress

    @property
    def last_sync(self) -> SyncReport | None:
        """What the last sync of this engine did; None before the first."""
        return self._upkeep.last

    def accept_shrink(self) -> SyncReport:
        """Forget the notes of `Status.freshness.shrink` and of roots that vanished, and sync. Raises MemoryTuiError."""
        return self._upkeep.sync(reason="accept", accept_shrink=True)

    def tables(self) -> tuple[TableSize, ...]:
        """Rows and bytes of each kind of table; reads the whole index file, so it can take a second."""
        from memory_tui.index import disk_usage

        return self._asking.look(disk_usage.tables)

    def estimate(self) -> Estimate:
        """What making the whole index anew would cost, in files, texts, seconds and dollars; asks nobody."""
        return self.embedding.estimate(self._upkeep.speed)

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the index file, in words; reads all of it. Empty when it is whole or not there."""
        from memory_tui.index import integrity

        return self._asking.look(lambda store: tuple(integrity.problems(store)))

    def catch_up(self) -> None:
        """For commands that ask once: index what changed first, where `sync.onSearch` allows or nothing is indexed."""
        self._upkeep.catch_up()

    @property
    def written_elsewhere(self) -> bool:
        """Whether another process is writing the index now, or is about to as the one that keeps it."""
        return self._upkeep.written_elsewhere

    def wait_idle(self, timeout: float) -> bool:
        """Wait until the writer has nothing to do; False when `timeout` seconds were not enough."""
        return self._upkeep.wait_idle(timeout)

    # --- changing notes --------------------------------------------------------------------------------------------

    @cached_property
    def curator(self) -> Curator:
        """What changes notes and takes changes back; after each one the index is brought up to date."""
        from memory_tui.curate import curator

        return curator.curator(self.plan, self._upkeep.edited)

    def preview(self, change: Change, query: str, settings: Settings | None = None) -> Effect:
        """What a change would do to the answer of `query`, before it is made; new texts are sent to nobody.

        Raises IndexUnavailable, ProviderError, QueryError.
        """
        return self._asking.preview(change, query, self.now(), settings or self.settings)

    def inbox(
        self, tell: Tell = lambda *_: None, stopped: Callable[[], bool] = lambda: False, *, every: bool = False
    ) -> tuple[Suggestion, ...]:
        """What in the notes should be looked at; seconds on a large memory. With `every` what was kept or put off, too.

        `tell` hears of progress. Raises Cancelled when `stopped` says so, EditRefused.
        """
        from memory_tui.engine import inbox_inputs
        from memory_tui.inbox.examine import examine

        found = examine(inbox_inputs.view(self.plan, self.now(), self._asking.chunks()), tell, stopped)
        return found if every else self.decisions.open(found, self.now())

    @cached_property
    def decisions(self) -> Decisions:
        """What was decided about suggestions without changing a note."""
        from memory_tui.inbox.decisions import Decisions

        return Decisions(self.curator.journal.folder)

    def _recover(self) -> None:
        for entry in self.curator.recover():
            self._tell(Noticed(time.time(), f"{entry.title}: {entry.reason}."))

    # --- asking ----------------------------------------------------------------------------------------------------

    def gather(self, query: str, cancel: Cancel | None = None, source: str = "", *, by_words: bool = False) -> Evidence:
        """What the index knows about `query`; `by_words` without asking the provider.

        Raises QueryError, Cancelled, IndexUnavailable.
        """
        return self._asking.gather(query, self.now(), cancel or Cancel(), source, by_words=by_words)

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """`evidence` under `settings`: pure and quick, for any thread."""
        from memory_tui.search.rank import rank

        return rank(evidence, settings)

    def search(self, query: str, settings: Settings | None = None) -> Trace:
        """Ask and rank at once."""
        return self.rank(self.gather(query), settings or self.settings)

    def why(self, evidence: Evidence, path: str, line: int | None = None, settings: Settings | None = None) -> WhyNot:
        """Why a line of a note (1-based; None: any of them) was, or was not, recalled. Raises IndexUnavailable."""
        return self._asking.why(evidence, path, line, settings or self.settings)

    def sample(self) -> tuple[ChunkRef, str] | None:
        """A chunk from the middle of the index with its text; None when there is none. Raises IndexUnavailable."""
        return self._asking.sample()

    def remeasured(self) -> tuple[str, float] | None:
        """The path of that chunk, and how like its stored vector it is when it is embedded anew; None without vectors.

        Raises IndexUnavailable, ProviderError.
        """
        found, cosine = self.sample(), self._asking.remeasured()
        return (found[0].path, cosine) if found is not None and cosine is not None else None

    # --- looking around --------------------------------------------------------------------------------------------

    def status(self, deep: bool = False) -> Status:
        """The whole state, computed now; `deep` embeds one text with the provider."""
        from memory_tui.engine import status

        probe = self._chain.probe() if deep else None

        def look(store: Store) -> Status:
            began = time.monotonic()
            self._upkeep.following.shown(store)
            seen = reachable(self.plan.roots, store.settled())
            freshness, supplied = self._upkeep.freshness(store, seen), self.embedding.supplied(store)
            found = status.status(
                self.plan,
                store,
                seen,
                freshness,
                roots=self.roots(),
                watching=(self.watching, self._upkeep.watcher.detail),
                probe=probe,
                notices=said_once(self._notices(), supplied.who),
                supplied=supplied,
                paused=self._upkeep.paused,
            )
            self._upkeep.following.cost = time.monotonic() - began
            return found

        return self._asking.look(look)

    def files(self) -> tuple[FileRow, ...]:
        """Every note with its state, by path."""
        from memory_tui.engine import status

        seen = reachable(self.plan.roots)
        return self._asking.look(lambda store: status.file_rows(store, seen, self._upkeep.freshness(store, seen)))

    def read(self, path: str) -> Document:
        """A note as it is on disk, or a transcript line by line. Raises PathRefused, Unreadable."""
        return shown(self.plan.roots, path)

    def chunks_of(self, path: str) -> tuple[ChunkRef, ...]:
        """The chunks of a note as they are indexed, in order."""
        return self._asking.chunks_of(path)

    def why_file(self, path: str) -> FileVerdict:
        """Why a path is, or is not, part of the memory."""
        from memory_tui.engine import status

        seen = scan(self.plan.roots)
        found = why_path(self.plan.roots, path, seen)
        return self._asking.look(lambda store: status.file_verdict(found, store, self._upkeep.freshness(store, seen)))

    def get(self, path: str, start: int = 1, lines: int | None = None) -> Note:
        """Some lines of a note: at most 120 and 12,000 characters. Raises PathRefused, Unreadable."""
        from memory_tui.engine import status

        return status.note(note(self.plan.roots, path), start, lines)
