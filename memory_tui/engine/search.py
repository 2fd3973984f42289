"""Searches read the index over connections of their own; an index run never blocks them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import profiles, state_db
from memory_tui.cancel import Stop
from memory_tui.engine.providers import embeds_here, provider_notice, who_answers, withheld_query
from memory_tui.errors import IndexBusy, IndexDamaged, IndexUnavailable, QueryError, StateUnavailable
from memory_tui.index import disk_usage, integrity
from memory_tui.index.rows import TableSize
from memory_tui.index.store import Store
from memory_tui.notices import Notice
from memory_tui.search.corpus import Corpus, vectors_of
from memory_tui.search.formulas import cosine
from memory_tui.search.level import USUAL, WEIGHTS, ByKind, Kind, UnrelatedEvidence
from memory_tui.search.trace import ChunkRef, Trace
from memory_tui.workspace.roots import MEMORY, document

if TYPE_CHECKING:
    from memory_tui.engine.index import Index
    from memory_tui.explain.absent_words import UnindexedTexts
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.inbox.checks import Chunks
    from memory_tui.plan import Plan
    from memory_tui.providers.base import Identity
    from memory_tui.providers.chain import Chain, ServingProvider
    from memory_tui.search.corpus import Corpus
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.retrieve import Asking, SearchContext
    from memory_tui.settings import Settings

Outcome = TypeVar("Outcome")

_TRIES = 3
"""How often a query is gathered again because the index was made anew meanwhile."""
_BETWEEN_SECONDS = 0.02
"""Between two questions that nobody waits for."""


def with_provider_notice(notices: Sequence[Notice], who: ServingProvider) -> tuple[Notice, ...]:
    """Return `notices` with that of `who`, which is not repeated where the question met the same failure."""
    notice = provider_notice(who)
    if notice is None or any(n.code == notice.code and n.message.startswith(notice.message) for n in notices):
        return tuple(notices)
    return (*notices, notice)


class Search:
    """Searches of one plan's `index`, from any number of threads.

    `notices` are what every answer has to say as well, `origins` who notes are from by OpenClaw's ledger.
    """

    def __init__(
        self,
        plan: Plan,
        chain: Chain,
        index: Index,
        notices: Callable[[], tuple[Notice, ...]],
        origins: Callable[[], Mapping[str, str]],
    ) -> None:
        self._plan = plan
        self._chain = chain
        self.index = index
        self._notices = notices
        self._origins = origins
        self._lock = threading.RLock()
        self._latest: Corpus | None = None

    @cached_property
    def unrelated(self) -> UnrelatedRecords:
        """Return what unrelated queries reach in this workspace, for the levels of answers."""

        # Nothing is written for a sample: its folder is new each time, and nobody would read the record.
        writes = not (self._plan.read_only or self._plan.options.sample)
        return UnrelatedRecords(self._plan.roots.workspace, writes=writes)

    def measure_unrelated(self, cancel: Stop) -> bool:
        """Measure what unrelated questions reach where that is due; whether it was.

        It is due once notes are indexed, and again when there are half as many chunks more or fewer. No question leaves
        the machine: a remote provider is asked for them by a person alone. Raises Cancelled, IndexUnavailable,
        QueryError.
        """
        with self.index.reader() as store:
            if store is None:
                return False
            identity, uuid, chunks = store.identity(), store.uuid(), store.counts().chunks
        settings = self._plan.settings
        if (identity is not None and not embeds_here(identity)) or not self.unrelated.is_due(uuid, chunks, settings):
            return False

        def ask(question: str) -> Evidence:
            # What people wait for goes first.
            cancel.wait(_BETWEEN_SECONDS)
            cancel.check()
            return self.gather(question, cancel)

        self.unrelated.measure(ask, settings)
        return True

    @cached_property
    def _waiting(self) -> UnindexedTexts:
        from memory_tui.explain.absent_words import UnindexedTexts

        return UnindexedTexts(lambda path: document(self._plan.roots, path).text)

    @contextmanager
    def reader(self) -> Iterator[Store]:
        """A read-only connection of one's own. Raises IndexUnavailable while nothing is indexed, Cancelled."""
        met = self.index.opener.file
        try:
            with self.index.reader() as store:
                if store is None:
                    self.index.wish_search_sync()
                    raise IndexUnavailable(
                        "Nothing is indexed yet.", "Wait for the first index, or run memory-tui index."
                    )
                met = store.identified
                yield store
        except IndexDamaged as error:
            self.index.report_unreadable(error, met)
            raise

    def on_snapshot(self, run: Callable[[Store], Outcome]) -> Outcome:
        """Return what `run` makes of one state of the index; of nothing where there is no index that can be read.

        Raises Cancelled.
        """
        try:
            with self.index.reader_or_empty() as store, store.snapshot():
                return run(store)
        except IndexUnavailable as error:
            self.index.report_unreadable(error, self.index.opener.file)
        with closing(Store.nothing(self.index.opener.path)) as nothing:
            return run(nothing)

    def search(self, query: str, settings: Settings | None = None) -> Trace:
        """Gather and rank at once. Raises QueryError, Cancelled, IndexUnavailable."""
        return self.ranked(query, settings or self._plan.settings)[0]

    def ranked(
        self, query: str, settings: Settings, cancel: Stop | None = None, source: str = "", *, by_words: bool = False
    ) -> tuple[Trace, Evidence]:
        """Return the ranking of `query` under `settings` and what it is made of, for who asks under no others.

        Raises like `gather`.
        """

        evidence = self._gather(query, cancel, source, by_words=by_words, settings=settings)
        return self.rank(evidence, settings), evidence

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """Return `evidence` under `settings`: pure and quick, for any thread."""
        from memory_tui.search.rank import rank

        return rank(evidence, settings)

    def gather(
        self,
        query: str,
        cancel: Stop | None = None,
        source: str = "",
        *,
        by_words: bool = False,
        as_written: bool = False,
        now: float | None = None,
    ) -> Evidence:
        """Return what the index knows about `query`, all of it in one state; `by_words` without asking the provider.

        With `as_written` no word is corrected and none is read as a time.
        Ages are counted from `now` (epoch seconds; None: the clock of the engine). A damaged index is made again first,
        where nobody does that in the background.
        Raises QueryError, Cancelled, IndexUnavailable.
        """
        return self._gather(query, cancel, source, by_words=by_words, as_written=as_written, now=now)

    def _gather(
        self,
        query: str,
        cancel: Stop | None,
        source: str,
        *,
        by_words: bool,
        as_written: bool = False,
        now: float | None = None,
        settings: Settings | None = None,
    ) -> Evidence:
        """Gather from a new index where this one is damaged and nobody makes it in the background."""
        at = self._plan.clock() if now is None else now
        once = partial(
            self._gather_once,
            query,
            at,
            cancel or Stop(),
            source,
            by_words=by_words,
            as_written=as_written,
            settings=settings,
        )
        try:
            return once()
        except IndexDamaged as error:
            if self.index.opener.resident:
                raise
            self.index.replace_damaged(error, self.index.opener.file)
        return once()

    def _gather_once(
        self,
        query: str,
        now: float,
        cancel: Stop,
        source: str,
        *,
        by_words: bool,
        as_written: bool,
        settings: Settings | None,
    ) -> Evidence:
        """The evidence of one reader, in one state; where `settings` alone rank it, what they do not rank is left out.

        The provider is asked before the state is held, because a slow one would keep the log from being folded in.
        """
        from memory_tui.explain.absent_words import words_elsewhere
        from memory_tui.search.retrieve import gather, ranked_by

        with self.reader() as store, self.index.searching(store) as unsearchable, cancel.around(store.interrupt):
            notices, origins = self._notices(), self._origins()
            embedded = self.embedded(query, store.identity(), by_words=by_words)
            with self.state(store) as corpus:
                if corpus.identity != embedded.identity:
                    # It was made anew with another model just now.
                    embedded = self.embedded(query, corpus.identity, by_words=by_words)
                context = replace(
                    self._context(store, corpus, as_written=as_written),
                    unsearchable=unsearchable,
                    notices=notices,
                    first=self.index.fresh_for_query,
                    origins=origins,
                )
                self.index.fresh_for_query = False
                if settings is not None:
                    context = ranked_by(context, settings)
                evidence = gather(query, context, now, source, embedded)
                # After the question, because it may be the one that the provider failed at.
                who = who_answers(store, self._chain, self._plan.settings)
                elsewhere = words_elsewhere(evidence, store, self._waiting)
                return replace(
                    evidence,
                    who=who,
                    elsewhere=elsewhere,
                    notices=with_provider_notice(evidence.notices, who),
                    unrelated=self.unrelated.of(corpus.uuid),
                )

    def warm(self, cancel: Stop) -> None:
        """Do ahead of the first question what only that has to do; without an index, or with a damaged one, nothing.

        Nothing is indexed for it, no model is loaded and no provider asked: the own vectors are a table.
        Raises Cancelled.
        """
        from memory_tui.search.retrieve import gather

        with suppress(IndexUnavailable, QueryError), self.index.reader() as store:
            if store is None:
                return
            with cancel.around(store.interrupt), self.state(store) as corpus:
                embedded = self.embedded("memory", corpus.identity, by_words=self._plan.provider != "builtin")
                # Where no note holds the word, every word of the index would be read to correct it.
                context = self._context(store, corpus, as_written=True)
                self.rank(gather("memory", context, self._plan.clock(), "", embedded), self._plan.settings)

    def _context(self, store: Store, corpus: Corpus, *, as_written: bool = False) -> SearchContext:
        """Return what any query is searched in; with `as_written` no word of it is read, corrected or parted."""
        from memory_tui.search.retrieve import SearchContext

        settings = self._plan.settings
        return SearchContext(
            store,
            corpus,
            None,
            projects=self._plan.projects,
            reads_time=not as_written and settings.on("questionTime.enabled"),
            spells=not as_written and settings.on("spelling.enabled"),
            in_parts=not as_written,
            zone=self._plan.config.time_zone,
        )

    def embedded(self, query: str, identity: Identity | None, *, by_words: bool) -> Asking:
        """Return the question as it is asked of an index with vectors in the space `identity`. Raises QueryError."""
        from memory_tui.search.retrieve import embed

        provider = self._chain.of_space(identity) if identity and not by_words else None
        if provider is not None and (kept_back := withheld_query(provider, query, self._plan.settings)):
            return replace(embed(query, identity, None), notices=(kept_back,))
        return embed(query, identity, provider)

    def why(self, evidence: Evidence, path: str, line: int | None = None, settings: Settings | None = None) -> WhyNot:
        """Return why a line of a note (1-based; None: any of them) was, or was not, recalled.

        Where the index was made anew since, the question is asked again: the rows of `evidence` are of no use then.
        Raises IndexUnavailable, Cancelled.
        """
        from memory_tui.explain import why_not

        settings = settings or self._plan.settings
        for _ in range(_TRIES):
            with self.reader() as store, store.snapshot():
                if store.uuid() == evidence.uuid:
                    return why_not.of_line(evidence, settings, self._plan.roots, store, path, line)
            by_words = evidence.cosine is None
            evidence = self.gather(evidence.query, None, evidence.source, by_words=by_words, now=evidence.now)
        raise IndexBusy("The index is rebuilt again and again.", "Ask again when the rebuild has finished.")

    def chunks_of(self, path: str) -> tuple[ChunkRef, ...]:
        """Return the chunks of a note as they are indexed, in order."""
        with self.index.reader() as store:
            rows = store.chunks_of(path) if store is not None else []
        return tuple(
            ChunkRef(row.rowid, row.chunk_id, path, row.source, row.start_line, row.end_line)
            for row in rows
            if row.occurrence == 0
        )

    def holding(self, phrases: Sequence[str]) -> frozenset[str] | None:
        """The stored paths of the notes in which the words of any of `phrases` follow each other; None: not known."""
        try:
            with self.index.reader() as store:
                return store.paths_holding(phrases) if store is not None else None
        except (IndexUnavailable, QueryError):
            return None

    @contextmanager
    def state(self, store: Store) -> Iterator[Corpus]:
        """One state of the index for everything that is read inside, with its chunks in memory."""
        with ExitStack() as stack:
            # Under the lock: of two threads the one that comes later must not have the older state.
            with self._lock:
                stack.enter_context(store.snapshot())
                last = self._latest
                current = last.refresh(store) if last else self._loaded(store)
                self._latest = current
            yield current

    def _loaded(self, store: Store) -> Corpus:
        from memory_tui.search.corpus import Corpus

        return Corpus.opened(store, once=self._plan.once)

    # --- looking into the index ------------------------------------------------------------------------------------

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the index file, in words; reads all of it. Empty when it is whole or not there."""
        return self.on_snapshot(lambda store: tuple(integrity.problems(store)))

    def tables(self) -> tuple[TableSize, ...]:
        """Return rows and bytes of each kind of table; reads the whole index file, so it can take a second."""
        return self.on_snapshot(disk_usage.tables)

    def sample(self) -> tuple[ChunkRef, str] | None:
        """A chunk from the middle of the index with its text; None when there is none. Raises IndexUnavailable."""
        with self.reader() as store, self.state(store) as state:
            return _sample(store, state)

    def remeasured(self) -> tuple[str, float] | None:
        """Return the path of that chunk, and how like its stored vector it is when it is embedded anew, as a cosine.

        None without vectors. Raises IndexUnavailable, ProviderError.
        """
        with self.reader() as store, self.state(store) as corpus:
            sample = _sample(store, corpus)
            provider = self._chain.of_space(corpus.identity) if corpus.identity is not None else None
            if sample is None or provider is None or corpus.identity != provider.identity:
                return None
            stored = vectors_of(store, corpus, corpus.rows_of([sample[0].rowid]))
        if not stored.any():
            # It may have been withheld, so it must not be sent now.
            return None
        return sample[0].path, float(cosine(stored, provider.embed([sample[1]], "document")[0])[0])

    def chunks(self) -> Chunks | None:
        """Return the chunks of notes with their vectors, to be compared with each other; None while there are none."""
        # A search needs none of the checks.
        from memory_tui.inbox.checks import Chunks

        with self.index.reader() as store:
            if store is None:
                return None
            with self.state(store) as corpus:
                if corpus.identity is None:
                    return None
                notes = [row for row in range(len(corpus)) if corpus.files.sources[corpus.file_of[row]] == MEMORY]
                vectors = vectors_of(store, corpus, np.array(notes, np.int64))
        places = [(corpus.path(row), int(corpus.start_lines[row]), int(corpus.end_lines[row])) for row in notes]

        def texts(rows: Sequence[int]) -> list[str]:
            rowids = [int(corpus.rowids[notes[row]]) for row in rows]
            with self.reader() as store, store.snapshot():
                by_row = store.texts(rowids) if store.uuid() == corpus.uuid else {}
            return [by_row.get(rowid, "") for rowid in rowids]

        return Chunks(places, texts, corpus.file_of[notes], vectors)


def _sample(store: Store, corpus: Corpus) -> tuple[ChunkRef, str] | None:
    """Return a chunk from the middle of `corpus` with its text; None when there is none."""
    if not len(corpus):
        return None
    row = len(corpus) // 2
    rowid = int(corpus.rowids[row])
    ref = ChunkRef(
        rowid,
        corpus.chunk_id(row),
        corpus.path(row),
        corpus.files.sources[corpus.file_of[row]],
        int(corpus.start_lines[row]),
        int(corpus.end_lines[row]),
    )
    return ref, store.texts([rowid])[rowid]


_UNRELATED = state_db.Table("unrelated_evidence")
_GROWN = 1.5
"""By how much the chunks grow or shrink before it is measured again; less hardly moves it."""


class UnrelatedRecords:
    """What unrelated questions reach in one workspace, for the levels of answers; for any number of threads.

    It is kept in the state database for each kind of evidence, with the index, the generation and the number of
    chunks that it was measured at. It serves until the index is made anew or measured again.
    """

    def __init__(self, workspace: Path, *, writes: bool = True, path: Path | None = None) -> None:
        self._path = path or state_db.default_path()
        self._records = _UNRELATED.of(os.path.realpath(workspace), path=self._path)
        self._writes = writes
        self._read: tuple[int, Mapping[str, Any]] = (-1, {})
        self._here: dict[tuple[str, Kind], UnrelatedEvidence] = {}

    def of(self, uuid: str) -> ByKind:
        """Return what was measured in the index `uuid`."""
        kinds: tuple[Kind, ...] = tuple(USUAL)
        records = self._stored()
        measured_here = {kind: self._here.get((uuid, kind)) or _measured(records, kind, uuid) for kind in kinds}
        return {kind: measured for kind, measured in measured_here.items() if measured is not None}

    def is_due(self, uuid: str, chunks: int, settings: Settings) -> bool:
        """Return whether an index of so many `chunks` should be measured: it never was, or its size is another by half.

        Never under a profile that tells no levels.
        """
        if not profiles.get(settings.word("profile")).second_stage:
            return False
        measured = [kind.chunks for kind in self.of(uuid).values()]
        return chunks > 0 and not any(chunks <= _GROWN * then and then <= _GROWN * chunks for then in measured)

    def _stored(self) -> Mapping[str, Any]:
        """Return the records of this workspace by kind; none where they cannot be read."""
        try:
            changed = self._path.stat().st_mtime_ns
            if self._read[0] != changed:
                self._read = changed, self._records.read()
        except (OSError, StateUnavailable):
            return {}
        return self._read[1]

    def measure(self, ask: Callable[[str], Evidence], settings: Settings) -> None:
        """Ask the unrelated questions, and keep what they reach. Raises what `ask` raises."""
        from memory_tui.explain.noise import ask_unrelated

        self.keep(tuple(ask_unrelated(ask)), settings)

    def keep(self, evidence: Sequence[Evidence], settings: Settings) -> None:
        """Keep what the unrelated questions reach; nothing where no second stage looked into chunks."""
        from memory_tui.explain.noise import unrelated_evidence

        for kind, measured in unrelated_evidence(evidence, settings).items():
            uuid = evidence[0].uuid
            self._here[uuid, kind] = measured
            if self._writes:
                # Without it, other processes go by the usual values, which each level says.
                with suppress(StateUnavailable):
                    self._records.put(kind, {**to_builtins(measured), "kind": kind, "uuid": uuid, "weights": WEIGHTS})


def _measured(records: Mapping[str, Any], kind: Kind, uuid: str) -> UnrelatedEvidence | None:
    """Return what `records` say of a kind of evidence in the index `uuid`; None where they do not."""
    record = records.get(kind)
    # Sums of other weights, or of another kind of evidence, say nothing of these.
    expected = {"kind": kind, "uuid": uuid, "weights": list(WEIGHTS)}
    if not isinstance(record, dict) or not expected.items() <= record.items():
        return None
    try:
        mean, *counts = (record[name] for name in ("mean", "questions", "generation", "chunks"))
        return UnrelatedEvidence(float(mean), *map(int, counts))
    except (KeyError, TypeError, ValueError):
        return None
