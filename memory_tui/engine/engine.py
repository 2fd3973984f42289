"""The engine is the one object a front end holds. It opens a workspace, keeps its index, and answers queries.

`indexer` writes, `queries` reads; neither waits for the other.

Nothing heavy is imported before something heavy is done.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.core.errors import EditRefused, ProviderError
from memory_tui.engine.backend import Backend
from memory_tui.engine.indexer import Indexer
from memory_tui.engine.provider_setup import Providers
from memory_tui.engine.queries import Queries, with_provider_notice
from memory_tui.notices import Notice, notice, other_vectors, without_effect
from memory_tui.plan import Options, Plan
from memory_tui.providers.chain import Chain
from memory_tui.workspace import root_state
from memory_tui.workspace.media import hindrance
from memory_tui.workspace.notes import Document, NoteLines, note_lines
from memory_tui.workspace.roots import note, reachable, scan, shown, why_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memory_tui.backends.memories import Memories
    from memory_tui.core.cancel import Stop
    from memory_tui.core.events import Event, Listener
    from memory_tui.engine.status import FileRow, FileVerdict, Status
    from memory_tui.engine.unrelated_memory import DelayedWork
    from memory_tui.inbox.checks import CheckProgress
    from memory_tui.inbox.entries import Decisions, Suggestion
    from memory_tui.index.note_state import LastText
    from memory_tui.index.store import Store
    from memory_tui.notes.budget import PromptBudget
    from memory_tui.notes.changes import Change
    from memory_tui.notes.curator import Curator
    from memory_tui.notes.restore import Version
    from memory_tui.openclaw.dreaming import Promotions
    from memory_tui.openclaw.trust import FileTrust, Ledger, Trust, TrustReport
    from memory_tui.providers.chain import ServingProvider
    from memory_tui.providers.options import DownloadProgress

__all__ = ["Engine", "open_memory"]

# A few megabytes of vectors are multiplied fastest by one thread; more would wait for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Notes:
    """The notes of one engine: read, listed, explained, changed; `plan` is the engine's as it is now."""

    def __init__(
        self, plan: Callable[[], Plan], indexer: Indexer, queries: Queries, backend: Backend | None = None
    ) -> None:
        self._plan = plan
        self._backend = backend
        self._indexer = indexer
        self._queries = queries

    @cached_property
    def curator(self) -> Curator:
        """What changes notes and takes changes back; after each one the index is brought up to date."""
        from memory_tui.notes import curator

        return curator.curator(self._plan(), self._indexer.edited)

    def read(self, path: str) -> Document:
        """A note as it is on disk, or a transcript line by line. Raises PathRefused, Unreadable."""
        return shown(self._plan().roots, path)

    def get(self, path: str, start: int = 1, lines: int | None = None) -> NoteLines:
        """Some lines of a note: at most 120, and the characters configured. Raises PathRefused, Unreadable."""
        from memory_tui.config.keys import MEMORY_GET

        theirs, plan = self._backend.document(path) if self._backend is not None else None, self._plan()
        most = plan.config.value(MEMORY_GET)
        return note_lines(theirs or note(plan.roots, path), start, lines, most if isinstance(most, int) else None)

    def files(self) -> tuple[FileRow, ...]:
        """Every note with its state, by path."""
        from memory_tui.engine import status

        seen = reachable(self._plan().roots)
        rows = self._queries.on_snapshot(
            lambda store: status.file_rows(store, seen, self._indexer.freshness(store, seen))
        )
        return status.with_kinds(rows, seen, self._plan().roots)

    def prompt(self, path: str = "", data: bytes | None = None) -> PromptBudget | None:
        """What OpenClaw 2026.9 puts into the prompt; with `data` as if the note `path` held that. None elsewhere."""
        from memory_tui.notes import budget

        curator = self.curator
        return budget.prompt_of(self._plan(), curator.trust, curator.plan.clock(), path, data)

    def promotions(self) -> Promotions:
        """What OpenClaw's dreaming counts of the passages of daily notes, what comes next first."""
        from memory_tui.config import places
        from memory_tui.openclaw.dreaming import promotions

        return promotions(self._plan().roots.workspace, places.state_database(), self.curator.plan.clock())

    def trust(self) -> TrustReport | None:
        """What OpenClaw's ledger says of each note that it covers; None where OpenClaw keeps no ledger."""
        curator = self.curator
        if curator.trust is None:
            return None
        return curator.trust.report((found.path for found in reachable(self._plan().roots).found), curator.plan.clock())

    def trust_of(self, path: str) -> FileTrust | None:
        """What the ledger says of one note; None where it does not cover it."""
        curator = self.curator
        return None if curator.trust is None else curator.trust.of(path, curator.plan.clock())

    def versions(self, path: str) -> list[Version]:
        """The texts that journal and git know of the note `path`, newest first. Raises EditRefused, PathRefused."""
        from memory_tui.notes.restore import versions

        curator = self.curator
        return versions(curator.journal, curator.git, path, curator.read(path))

    def restore(self, path: str, ref: str, *, lost_lines: bool = False) -> Change:
        """The change that gives a note the text of the version `ref`; with `lost_lines` the lines that it lacks alone.

        Raises EditRefused, PathRefused.
        """
        from memory_tui.notes import restore

        curator = self.curator
        return restore.to_version(curator, path, ref, lost_lines=lost_lines)

    def keep_lost(self, last: LastText, now: bytes | None) -> str:
        """Write down that a daily note lost lines; returns what a person should know, empty where nothing is lost."""
        from memory_tui.notes.restore import keep_lost

        if self._plan().read_only:
            return ""
        try:
            kept = keep_lost(self.curator.journal, last, now)
        except EditRefused as error:
            return f"{last.path} lost lines, and its last text could not be kept. {error.message}"
        return "" if kept is None else f"{kept.title}. The inbox offers to bring them back."

    def why_file(self, path: str) -> FileVerdict:
        """Why a path is, or is not, part of the memory."""
        from memory_tui.engine import status

        seen = scan(self._plan().roots)
        found = why_path(self._plan().roots, path, seen)
        return self._queries.on_snapshot(
            lambda store: status.file_verdict(found, store, self._indexer.freshness(store, seen))
        )


class Inbox:
    """The inbox of one engine: what in its notes should be looked at; `plan` is the engine's as it is now.

    `notice` gets what a person should know.
    """

    def __init__(
        self,
        plan: Callable[[], Plan],
        now: Callable[[], float],
        notes: Notes,
        queries: Queries,
        notice: Callable[[str], None],
    ) -> None:
        self._notice = notice
        self._plan = plan
        self._now = now
        self._notes = notes
        self._queries = queries

    @cached_property
    def decisions(self) -> Decisions:
        """What was decided about suggestions without changing a note."""
        from memory_tui.inbox.entries import Decisions

        return Decisions(self._notes.curator.journal.folder, self._notice)

    def examine(
        self,
        progress: CheckProgress = lambda *_: None,
        stopped: Callable[[], bool] = lambda: False,
        *,
        every: bool = False,
    ) -> tuple[Suggestion, ...]:
        """What should be looked at; seconds on a large memory. With `every` what was kept or put off, too.

        `progress` hears how far it is. Raises Cancelled when `stopped` says so, EditRefused.
        """
        from memory_tui.engine import inbox_inputs
        from memory_tui.inbox.checks import examine

        found = examine(
            inbox_inputs.view(
                self._plan(),
                self._now(),
                inbox_inputs.chunks_of(self._queries),
                self._notes.trust(),
                self._notes.curator,
            ),
            progress,
            stopped,
        )
        return found if every else self.decisions.open(found, self._now())


class Engine:
    """A workspace with its index, in parts. Every method may be called from any thread; those that read the disk or
    the index take milliseconds to seconds and belong on a worker thread, `queries.rank` and the properties do not.
    """

    def __init__(self, plan: Plan, listener: Listener | None = None) -> None:
        self.plan = plan
        """What was decided when it was opened: settings, workspace, configuration."""
        self._listener = listener
        approvals = Approvals(plan.workspace)
        chain = Chain(replace(plans.settings(plan, approvals), on_progress=self._model_fetched), self._provider_failed)
        self.indexer = Indexer(plan, chain, approvals, self._emit)
        """Keeps the index up to date."""
        self.queries = Queries(plan, chain, self.indexer, self.now, self._notices, self._origins)
        """Searches, explains, and reads what is indexed."""
        self.backend = Backend(plan, approvals, self._emit)
        """Who answers: this index, or QMD."""
        self.providers = Providers(
            plan,
            chain,
            approvals,
            lambda: self.indexer.request_sync("provider"),
            self.queries.reader_or_empty,
            lambda: self.indexer.speed,
        )
        """Who makes vectors, approvals, and what would be sent."""
        self.notes = Notes(lambda: self.plan, self.indexer, self.queries, self.backend)
        """Reads, lists, explains and changes notes."""
        self.indexer.lost = self._keep_lost
        self.inbox = Inbox(
            lambda: self.plan,
            self.now,
            self.notes,
            self.queries,
            self._notice,
        )
        """What in the notes should be looked at."""

    @cached_property
    def memories(self) -> Memories:
        """Long-term memories in LanceDB, beside the notes; opened when first used, on a worker thread."""
        from memory_tui.backends.memories import Memories

        return Memories(self.plan, self.providers.approvals, self.providers.chain)

    @cached_property
    def _upkeep(self) -> DelayedWork:
        from memory_tui.engine.unrelated_memory import DelayedWork

        def work(cancel: Stop) -> None:
            from memory_tui.core.events import LevelsMeasured

            self.indexer.check()
            if self.queries.measure_unrelated(cancel):
                self._emit(LevelsMeasured(time.time()))

        return DelayedWork(work, self.indexer.writer.closing)

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
        self._listener = listener

    def start(self) -> None:
        """Begin to work in the background: settle changes that were cut off, index what changed, then watch."""
        self.indexer.start(self._recover)
        self.backend.start()

    def close(self) -> None:
        """Stop everything within half a second; work that is under way is given up, and nothing of it is lost."""
        self.indexer.stop()
        self.indexer.readers.close()
        self.backend.close()
        if "memories" in self.__dict__:
            self.memories.close()
        self.providers.chain.close()
        self.indexer.close()

    def now(self) -> float:
        """The time that ages are counted from, in epoch seconds."""
        return time.time() if self.plan.now is None else self.plan.now

    def reread(self) -> None:
        """Take up what the configuration on disk says now; the settings in force stay. Raises ConfigError."""
        self.plan = plans.renewed(self.plan)

    # --- its state -------------------------------------------------------------------------------------------------

    def notices(self) -> tuple[Notice, ...]:
        """What a person should know about configuration, index and provider before trusting an answer."""
        return self._told(self.providers.who())

    def status(self, deep: bool = False) -> Status:
        """The whole state, computed now; `deep` embeds one text with the provider."""
        from memory_tui.engine import status

        probe = self.providers.probe() if deep else None
        indexer = self.indexer

        def read(store: Store) -> Status:
            began = time.monotonic()
            seen = reachable(self.plan.roots, store.known().settled)
            freshness, supplied = indexer.freshness(store, seen), self.providers.supplied(store)
            found = status.status(
                self.plan,
                store,
                freshness,
                roots=indexer.root_watch.states(),
                watching=(indexer.watcher.on, indexer.watcher.detail),
                probe=probe,
                notices=self._told(supplied.who),
                supplied=supplied,
                paused=indexer.paused,
                vec0_use=indexer.opener.vec0(),
                unrelated=self.queries.unrelated.of(store.uuid()),
            )
            found = replace(found, in_part=status.in_part(store, freshness))
            indexer.index_changes.cost = time.monotonic() - began
            return found

        return self.backend.described(replace(self.queries.on_snapshot(read), trust=self.notes.trust()))

    def _told(self, who: ServingProvider) -> tuple[Notice, ...]:
        """What a person should know, with whose vectors rank."""
        vectors = other_vectors(self.plan.settings.word("profile"), who.answers)
        return with_provider_notice((*self._notices(), *vectors), who)

    def _notices(self) -> tuple[Notice, ...]:
        """The same as `notices`, but for who answers."""
        found: list[Notice] = [
            notice("config_problem", said=str(one), key=one.key, file=one.place.file, line=one.place.line)
            for one in self.plan.config.found
        ]
        if reason := hindrance(self.plan.config, self.plan.provider):
            found.append(notice("media_not_read", reason=reason))
        found += without_effect(self.plan.chosen, self.plan.settings)
        found += self.indexer.opener.notices
        lost = root_state.lost(self.indexer.root_watch.states())
        found += [
            notice(
                "root_lost", path=root.absolute, state=root.state, detail=root.detail, remedy=root_state.next_step(root)
            )
            for root in lost
        ]
        found += self.indexer.freshness_check.notices()
        if waiting := self.indexer.batches.waiting:
            found.append(notice("batch_waits", texts=waiting))
        ledger = self._ledger()
        if ledger is not None and ledger.problem:
            found.append(notice("trust_unread", detail=ledger.problem, step=ledger.next_step))
        return tuple(found)

    @cached_property
    def _trust(self) -> Trust:
        from memory_tui.openclaw import trust

        return trust.of_plan(self.plan)

    def _ledger(self) -> Ledger | None:
        """OpenClaw's ledger, where the profile is of a release that has one."""
        return self._trust.last_ledger(self.now()) if self.plan.has_ledger else None

    def _origins(self) -> Mapping[str, str]:
        """Who notes are from by the ledger, by path."""
        ledger = self._ledger()
        return {} if ledger is None else ledger.classes

    # --- events ----------------------------------------------------------------------------------------------------

    def _model_fetched(self, progress: DownloadProgress) -> None:
        from memory_tui.core.events import ModelFetching

        self._emit(ModelFetching(time.time(), progress.name, progress.done, progress.total))

    def _emit(self, event: Event) -> None:
        from memory_tui.core.events import SyncFinished

        if isinstance(event, SyncFinished) and event.indexed + event.removed:
            self.backend.notes_changed()
        if isinstance(event, SyncFinished) and self.indexer.batches.resident:
            self._upkeep.request()
        if self._listener is not None:
            self._listener(event)

    def _notice(self, text: str) -> None:
        from memory_tui.core.events import Noticed

        self._emit(Noticed(time.time(), text))

    def _keep_lost(self, last: LastText, now: bytes | None) -> None:
        if text := self.notes.keep_lost(last, now):
            self._notice(text)

    def _provider_failed(self, error: ProviderError) -> None:
        from memory_tui.core.events import ProviderChanged

        if not self.indexer.writer.closing.is_set():
            self._emit(ProviderChanged(time.time(), self.plan.provider, False, error.message))
            if self.providers.chain.fallback is not None:
                # The index has to be made again with the vectors of the other one.
                self.indexer.request_sync("provider")

    def _recover(self) -> None:
        from memory_tui.notes.journal import Journal, journal_folder

        # Mostly nothing is to be done, and a curator has many modules.
        if not Journal(journal_folder(self.plan.roots.workspace)).has_unsettled():
            return
        for entry in self.notes.curator.recover():
            self._notice(f"{entry.title}: {entry.reason}.")


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
        engine.indexer.catch_up()
    except BaseException:
        engine.close()
        raise
    return engine
