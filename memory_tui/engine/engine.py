"""The engine is the one object a front end holds. It opens a workspace, keeps its index, and answers queries.

`index` writes, `search` reads; neither waits for the other. Nothing heavy is imported before something heavy is done.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from memory_tui import events, shared
from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.cancel import Stop
from memory_tui.config.keys import BACKEND
from memory_tui.engine import status
from memory_tui.engine.backend import Backend
from memory_tui.engine.index import Index
from memory_tui.engine.providers import Providers
from memory_tui.engine.scopes import Scopes
from memory_tui.engine.search import Search, notices_of, with_provider_notice
from memory_tui.engine.status import Status
from memory_tui.errors import MemoryTuiError, ProviderError
from memory_tui.events import Channel, Listener
from memory_tui.index.store import Store
from memory_tui.notices import Notice, other_vectors
from memory_tui.plan import Options, Plan
from memory_tui.providers.chain import Chain, ServingProvider
from memory_tui.shared.scope import OWN, workspace_of
from memory_tui.shared.states import Standing

if TYPE_CHECKING:
    from memory_tui.backends.memories import Memories
    from memory_tui.engine.notes import Inbox, Notes
    from memory_tui.shared.publisher import Publisher

__all__ = ["Engine", "open_memory"]

# A few megabytes of vectors are multiplied fastest by one thread; more would wait for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_LOOK_SECONDS = 0.4
"""How long a command that only asked looks, after its answer, what became of the notes; the next look goes on."""


class Engine:
    """A workspace with its index, in parts. Every method may be called from any thread; those that read the disk or
    the index take milliseconds to seconds and belong on a worker thread, `search.rank` and the properties do not.
    """

    def __init__(self, plan: Plan, listener: Listener | None = None, chain: Chain | None = None) -> None:
        self.plan = plan
        """What was decided when it was opened: settings, workspace, configuration."""
        self._events = Channel(listener or events.ignore)
        approvals, self._borrowed = Approvals(plan.workspace), chain is not None
        """Whether its providers are those of another engine, which closes them."""
        chain = chain or Chain(plans.settings(plan, approvals), self._provider_failed)
        self.index = Index(plan, chain, self._events)
        """Keeps the index up to date."""
        self.search = Search(plan, chain, self.index)
        """Searches, explains, and reads what is indexed."""
        self.backend = Backend(plan, approvals, self._events.emit)
        """Who answers: this index, or QMD."""
        self.providers = Providers(
            plan,
            chain,
            approvals,
            lambda: self.index.request_sync("provider"),
            self.index.reader_or_empty,
        )
        """Who makes vectors, approvals, and what would be sent."""
        self.index.seen = self._record
        self._publisher: Publisher | None = None
        self._of_scopes: dict[Path, Engine] = {}
        self._lock = threading.Lock()

    # A search needs neither of these, and they would double what it loads.
    @cached_property
    def notes(self) -> Notes:
        """Return what reads, lists, explains and changes notes."""
        from memory_tui.engine.notes import Notes

        return Notes(self.plan, self.index, self.search, self.backend, self._events.notice)

    @cached_property
    def inbox(self) -> Inbox:
        """Return what names the notes that need a decision."""
        from memory_tui.engine.notes import Inbox

        return Inbox(self.notes, self._events.notice)

    @cached_property
    def memories(self) -> Memories:
        """Return the long-term memories in LanceDB, opened when first used, on a worker thread."""
        from memory_tui.backends.memories import Memories

        return Memories(self.plan, self.providers.approvals, self.providers.chain)

    @cached_property
    def scopes(self) -> Scopes:
        """Return what is asked of a shared index."""
        return Scopes(self.plan, self.index)

    def of_scope(self, scope: str, patience: Stop | None = None) -> tuple[Engine, Standing | None]:
        """Return who answers for `scope`, and how its mirror stands; this workspace is answered by its own index.

        Waits for the shared index no longer than shared.askTimeoutMs or `patience`. Raises MemoryTuiError.
        """
        if scope in ("", OWN):
            return self, None
        path, standing = self.scopes.mirror(scope, patience)
        with self._lock:
            if path not in self._of_scopes:
                values = {**self.plan.backend_values, BACKEND: "builtin"}
                plan = replace(self.plan, index=path, backend_values=values, mirror=True)
                self._of_scopes[path] = Engine(plan, self._events.listener, self.providers.chain)
            return self._of_scopes[path], standing

    def mirrored(self) -> Standing | MemoryTuiError | None:
        """Return how the mirror stands of which the status tells, or why that is not known; None where there is none.

        Waits as `of_scope` does.
        """
        try:
            return self.of_scope(self.scopes.told)[1]
        except MemoryTuiError as error:
            return error

    def of_note(self, path: str) -> tuple[Engine, Standing | None]:
        """Return who has the note that people see as `path`, with what is odd about one of somebody else.

        Waits and raises as `of_scope` does.
        """
        engine, standing = self.of_scope(self.scopes.holding(path))
        if standing is not None and (name := workspace_of(path)) not in standing.workspaces:
            # Asked for by itself it says why.
            engine, standing = self.of_scope(name)
        if standing and (row := engine.search.on_snapshot(lambda store: store.note(path))) and row.detail:
            standing = replace(standing, words=(*standing.words, row.detail))
        return engine, standing

    # --- opening and closing ---------------------------------------------------------------------------------------

    @classmethod
    def open(cls, options: Options, listener: Listener | None = None) -> Engine:
        """Find workspace, configuration and settings; opens no index yet. Raises MemoryTuiError."""
        return cls(plans.plan(options), listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def listen(self, listener: Listener) -> None:
        """Send events to `listener` from now on; it is called on the thread that made the news."""
        self._events.listener = listener

    def start(self) -> None:
        """Begin to work in the background: settle changes that were cut off, index what changed, then watch."""
        self.index.start(self._recover)
        index = self.index
        if self.scopes.kept:
            threading.Thread(target=self.scopes.keep, args=(index.writer.closing,), name="mirrors", daemon=True).start()
        notice = self._events.notice
        self._publisher = shared.publisher_of(self.plan, index.reader_or_empty, index.leadership.leads, notice)
        if self._publisher is not None:
            index.after_sync = self._publisher.wake

    def close(self) -> None:
        """Stop everything within half a second; work that is under way is given up, and nothing of it is lost."""
        if self.index.unseen:
            until = time.monotonic() + _LOOK_SECONDS
            self.notes.record(None, lambda: time.monotonic() > until)
        self.index.stop()
        self._events.close()
        self.scopes.stop()
        if self._publisher is not None:
            self._publisher.close()
        self.index.readers.close()
        self.backend.close()
        if "memories" in self.__dict__:
            self.memories.close()
        for engine in self._of_scopes.values():
            engine.close()
        if not self._borrowed:
            self.providers.chain.close()
        self.index.close()

    def reread(self) -> None:
        """Take up what the configuration on disk says now; the settings in force stay. Raises ConfigError."""
        self.plan = self.notes.plan = plans.renewed(self.plan)
        self.search.plan_notices = notices_of(self.plan)

    # --- its state -------------------------------------------------------------------------------------------------

    def notices(self, who: ServingProvider | None = None) -> tuple[Notice, ...]:
        """Return what a person should know about configuration, index and provider before trusting an answer.

        `who` answers, where that is known already.
        """
        who = who or self.providers.who()
        vectors = other_vectors(self.plan.settings.word("profile"), who.answers)
        return with_provider_notice((*self.search.around()[0], *vectors), who)

    def status(self, deep: bool = False) -> Status:
        """Return the whole state, computed now; `deep` embeds one text with the provider."""
        probe = self.providers.probe() if deep else None

        def read(store: Store) -> Status:
            # First, because notices tell of it.
            freshness = self.index.freshness(store, None)
            now = status.status(self.plan, store, freshness, self.index, self.providers.chain)
            notices = (*self.notices(now.who), *now.notices)
            return replace(now, notices=notices, trust=self.notes.trust(), embedding_probe=probe)

        return self.backend.described(self.search.on_snapshot(read))

    # --- events ----------------------------------------------------------------------------------------------------

    def _record(self, changed: Collection[str] | None) -> None:
        self.notes.record(changed, self.index.writer.closing.is_set)

    def _provider_failed(self, error: ProviderError) -> None:
        if not self.index.writer.closing.is_set():
            self._events.emit(events.ProviderChanged(time.time(), self.plan.provider, False, error.message))
            if self.providers.chain.state().fallback is not None:
                # The index has to be made again with the vectors of the other one.
                self.index.request_sync("provider")

    def _recover(self) -> None:
        for entry in self.notes.curator.recover():
            self._events.notice(f"{entry.title}: {entry.reason}.")


def open_memory(
    workspace: str | os.PathLike[str] | None = None,
    *,
    listener: Listener | None = None,
    provider: str = "",
    config: str | None = None,
    index: str | None = None,
    agent: str = "",
    read_only: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Engine:
    """Open the notes in `workspace`, index what changed where `sync.onSearch` allows, and return the open engine.

    Without `workspace` it is the current folder or that of the configuration, as for the command line; `settings` are
    keys and values as `--set` takes them. Close the engine, or use it in a `with` statement. Raises MemoryTuiError.
    """
    engine = Engine.open(
        Options(
            workspace=None if workspace is None else os.fspath(workspace),
            config=config,
            index=index,
            provider=provider,
            read_only=read_only,
            changes=tuple(settings.items()),
            agent=agent,
        ),
        listener,
    )
    try:
        engine.index.catch_up()
    except BaseException:
        engine.close()
        raise
    return engine
