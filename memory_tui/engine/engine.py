"""The engine is the one object a front end holds. It opens a workspace, keeps its index, and answers queries.

`index` writes, `search` reads; neither waits for the other. Nothing heavy is imported before something heavy is done.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from memory_tui import events, shared
from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.cancel import Stop, call_after
from memory_tui.config import config_file as configuration
from memory_tui.config import places
from memory_tui.config.settings import BACKEND, profile_named
from memory_tui.engine import status
from memory_tui.engine.index import Index
from memory_tui.engine.search import Backend, Search, notices_of, with_provider_notice
from memory_tui.engine.sending import Providers
from memory_tui.engine.status import Status
from memory_tui.errors import IndexUnavailable, MemoryTuiError, ProviderError
from memory_tui.events import Channel, Listener
from memory_tui.formatting import install_extra
from memory_tui.index.store import Store
from memory_tui.openclaw.trust import TrustReport, of_plan
from memory_tui.plan import Options, Plan
from memory_tui.providers.chain import Chain, ServingProvider
from memory_tui.sentences import Notice, other_vectors
from memory_tui.shared import OWN, Record, Scope, Standing, workspace_of
from memory_tui.workspace.roots import scan

if TYPE_CHECKING:
    from memory_tui.backends.lancedb import Memories
    from memory_tui.engine.notes import Inbox, Notes
    from memory_tui.shared.connection import Access
    from memory_tui.shared.mirror import Mirror
    from memory_tui.shared.publish import Publisher

_LOOK_SECONDS = 0.4
"""How long a command that only asked looks, after its answer, what became of the notes; the next look goes on."""
KEPT_SECONDS = 10.0
"""How often a mirror that is kept is brought up to date where no notice comes."""


class Engine:
    """A workspace with its index, in parts. Every method may be called from any thread; those that read the disk or
    the index take milliseconds to seconds and belong on a worker thread, `search.rank` and the properties do not.
    """

    def __init__(self, plan: Plan, listener: Listener | None = None, chain: Chain | None = None) -> None:
        self.plan = plan
        """What was decided when it was opened: settings, workspace, configuration."""
        self._events = Channel(listener)
        self._borrowed = chain is not None
        """Whether its providers are those of another engine, which closes them."""
        approvals = Approvals(plan.workspace)
        chain = chain or Chain(plans.settings(plan, approvals), self._provider_failed)
        self.index = Index(plan, chain, self._events)
        """Keeps the index up to date."""
        self.search = Search(plan, chain, self.index)
        """Searches, explains, and reads what is indexed."""
        self.backend = Backend(plan, approvals, self._events.emit)
        """Who answers: this index, or QMD."""
        self.providers = Providers(
            plan, chain, approvals, lambda: self.index.request_sync("provider"), self.index.reader
        )
        """Who makes vectors, approvals, and what would be sent."""
        # A search needs no notes: they are loaded when some changed.
        self.index.record = lambda *news: self.notes.recorder.see(*news) if self.notes.recorder else None
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
        from memory_tui.backends.lancedb import Memories

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
                # A mirror is searched by this program alone: QMD knows nothing of it.
                values = {**self.plan.backend_values, BACKEND: "builtin"}
                plan = replace(self.plan, index=path, backend_values=values, mirror=True)
                self._of_scopes[path] = Engine(plan, self._events.listener, self.providers.chain)
            return self._of_scopes[path], standing

    def mirrored(self) -> Standing | MemoryTuiError | None:
        """Return how the mirror of `scopes.told` stands, or the error for which that is unknown; None without a mirror.

        Waits as `of_scope` does.
        """
        try:
            return self.of_scope(self.scopes.told)[1]
        except MemoryTuiError as error:
            return error

    def of_note(self, path: str) -> tuple[Engine, Standing | None]:
        """Return who has the note that people see as `path`, and how its mirror stands; None for a note of one's own.

        What is amiss with the copy of the note itself is among the words of the standing. Waits and raises as
        `of_scope` does.
        """
        engine, standing = self.of_scope(self.scopes.holding(path))
        workspace = workspace_of(path)
        if standing and workspace not in standing.workspaces:
            # The scope was asked for it in vain: a scope of this workspace alone tells why, as that it may not be read.
            engine, standing = self.of_scope(workspace)
        row = engine.search.on_snapshot(lambda store: store.note(path)) if standing else None
        if standing and row and row.detail:
            standing = replace(standing, words=(*standing.words, row.detail))
        return engine, standing

    # --- opening and closing ---------------------------------------------------------------------------------------

    @classmethod
    def open(cls, options: Options, listener: Listener | None = None) -> Engine:
        """Find workspace, configuration and settings; opens no index yet. Raises MemoryTuiError."""
        return cls(plans.plan(options), listener)

    @contextmanager
    def by_profile(self, name: str, stop: Stop) -> Iterator[Engine]:
        """Yield the same memory under the rules of the profile `name`: this engine where it has the chunks of that,
        else one on the index beside its own, which is made or brought up to date first.

        Raises IndexUnavailable, Cancelled.
        """
        plan = self.plan
        index = plan.index_cut_by(profile_named(name).chunking)
        if index == plan.index:
            yield self
            return
        changes = (*plan.options.changes, ("profile", name))
        # Without a name, the index lies where every command with that profile looks for it.
        option = str(index) if plan.options.index else None
        with (
            Engine.open(replace(plan.options, index=option, changes=changes, once=False)) as by_profile,
            stop.around(by_profile.index.stop),
        ):
            by_profile.index.catch_up()
            yield by_profile

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
        self._publisher = shared.publisher_of(self.plan, index.reader, index.keeper.keeps, self._events.notice)
        if self._publisher is not None:
            index.after_sync = self._publisher.wake

    def close(self) -> None:
        """Stop everything within half a second; work that is under way is given up, and nothing of it is lost."""
        if self.index.unrecorded:
            # The recorder ends as soon as the writer closes, so this bounds the look that begins below.
            call_after(_LOOK_SECONDS, self.index.writer.closing.set)
            self.notes.record()
        # Asked to end first and waited for last, so that everything ends at the same time.
        self.index.stop()
        self._events.close()
        self.scopes.stop()
        if self._publisher is not None:
            self._publisher.close()
        self.index.readers.close()
        self.backend.close()
        # To look at the property would open them.
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
        about_vectors = other_vectors(self.plan.settings.word("profile"), who.answers)
        notices, _ = self.search.notices_and_origins()
        return with_provider_notice((*notices, *about_vectors), who)

    def status(self, deep: bool = False) -> Status:
        """Return the whole state, computed now; `deep` embeds one text with the provider."""
        probe = self.providers.probe() if deep else None

        def read(store: Store) -> Status:
            """Return the status by one state of the index."""
            # First, because the notices of the index come from this comparison.
            freshness = self.index.freshness(store, None)
            now = status.status(self.plan, store, freshness, self.index, self.providers.chain)
            notices = (*self.notices(now.who), *now.notices)
            return replace(now, notices=notices, trust=self.trust(), embedding_probe=probe)

        return self.backend.described(self.search.on_snapshot(read))

    def trust(self) -> TrustReport | None:
        """Return what OpenClaw's ledger says of each note that it covers; None where OpenClaw keeps no ledger."""
        if not os.path.lexists(places.state_database()):
            return None
        # Partly: a root that cannot be read raises nothing, its notes are not covered then.
        return of_plan(self.plan).report(note.path for note in scan(self.plan.roots, partly=True).notes)

    # --- events ----------------------------------------------------------------------------------------------------

    def _provider_failed(self, error: ProviderError) -> None:
        """Tell that the first choice failed, and have its fallback make the vectors anew."""
        if not self.index.writer.closing.is_set():
            self._events.emit(events.ProviderChanged(time.time(), self.plan.provider, False, error.message))
            if self.providers.chain.state().fallback is not None:
                # The index has to be made again with the vectors of the fallback.
                self.index.request_sync("provider")

    def _recover(self) -> None:
        """Settle changes of notes that were cut off, and tell of each."""
        for entry in self.notes.curator.recover():
            self._events.notice(f"{entry.title}: {entry.reason}.")


# --- other scopes ----------------------------------------------------------------------------------------------------


class Scopes:
    """What a workspace of this `plan` and `index` asks of a shared index, of which nothing is imported before that."""

    def __init__(self, plan: Plan, index: Index) -> None:
        self._plan, self._index = plan, index
        self._mirrors: dict[Path, Mirror] = {}
        self._lock = threading.Lock()

    @property
    def configured(self) -> bool:
        """Return whether there is a shared index."""
        return bool(self._value("shared.url"))

    def _value(self, key: str) -> object:
        """Return a setting of memory-tui's own configuration; its default where nothing sets it."""
        return configuration.own(self._plan.config).value(key)

    @property
    def kept(self) -> str:
        """Return the scope that is mirrored all the time; empty for none."""
        return str(self._value("shared.mirror.scope") or "") if self.configured else ""

    @property
    def told(self) -> str:
        """Return the scope of which the status tells: the kept one, else the one asked last. Raises MemoryTuiError."""
        newest_first = [] if self.kept or not self.configured else self._records()
        return newest_first[0].scope if newest_first else self.kept

    @property
    def known(self) -> list[str]:
        """Return the other workspaces that mirrors on this machine hold; waits for no server. Raises MemoryTuiError."""
        return sorted({name for record in self._records() for name in record.workspaces} - {self._access().name})

    def _records(self) -> list[Record]:
        """Return what is known of the mirrors on this machine, the newest first."""
        access = self._access()
        from memory_tui.shared.mirror import complete, folder

        return [*complete(folder(access)).values()]

    def stop(self) -> None:
        """End all fetching that goes on behind."""
        with self._lock:
            for mirror in self._mirrors.values():
                mirror.stop.set()

    def mirror(self, scope: str, patience: Stop | None = None) -> tuple[Path, Standing]:
        """Return the index that answers for `scope`, and how it stands.

        Waits for the shared index no longer than shared.askTimeoutMs or `patience`. Raises MemoryTuiError.
        """
        access = self._access()
        mirror = self._mirror(access, scope)
        return mirror.path, mirror.within(access.timeout_ms / 1000, patience or Stop())

    def keep(self, stop: Stop) -> None:
        """Bring the mirror that is kept up to date at each notice, and now and then, until `stop`.

        Whoever asks is told of a failure.
        """
        while not stop.is_set():
            try:
                self.mirror(self.kept)
                from memory_tui.shared.mirror import await_news

                await_news(self._access(), KEPT_SECONDS, stop)
            except MemoryTuiError:
                stop.wait(KEPT_SECONDS)

    def fill(self, scope: str) -> Standing:
        """Bring the mirror of `scope` up to date, however long that takes. Raises MemoryTuiError."""
        mirror = self._mirror(self._access(), scope)
        mirror.refresh()
        return mirror.within(0, Stop())

    def holding(self, shown: str) -> str:
        """Return the scope to ask for the note `owner/name:path`; empty for a note of one's own. Raises MemoryTuiError.

        Of the mirrors that hold the workspace it is the newest; without any, the workspace is its own scope.
        """
        name = workspace_of(shown)
        # A folder of this workspace may be called like that, too.
        if not name or not self.configured or (self._plan.roots.workspace / shown).exists():
            return ""
        return next((record.scope for record in self._records() if name in record.workspaces), name)

    def _access(self) -> Access:
        """Return where the shared index is, and as whom it is asked. Raises MemoryTuiError."""
        try:
            from memory_tui.shared.connection import access
        except ModuleNotFoundError:
            raise MemoryTuiError("A shared index needs the extra postgres.", f"{install_extra('postgres')}.") from None
        return access(self._plan)

    def _mirror(self, access: Access, text: str) -> Mirror:
        """Return the mirror of the scope that a person wrote as `text`; two threads get the same.

        Its notes have to be cut and embedded as those of this workspace, so that both can be searched alike. Raises
        MemoryTuiError.
        """
        from memory_tui.shared.mirror import Mirror

        plan = self._plan
        with self._index.reader() as store:
            recipe = store.recipe()
        if recipe is None:
            message = "Nothing is indexed here yet, so nobody knows how notes are cut."
            raise IndexUnavailable(message, f"{plan.index_command}.")
        most_chunks = configuration.own(plan.config).whole("shared.mirror.maxChunks")
        mirror = Mirror(access, Scope.of(text, access.name), recipe, most_chunks)
        with self._lock:
            return self._mirrors.setdefault(mirror.path, mirror)


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
    folder = None if workspace is None else os.fspath(workspace)
    options = Options(folder, config=config, index=index, provider=provider, agent=agent, read_only=read_only)
    engine = Engine.open(replace(options, changes=tuple(settings.items())), listener)
    try:
        engine.index.catch_up()
    except BaseException:
        engine.close()
        raise
    return engine
