"""A question is answered by the index, or by QMD where that was chosen; then the index is its fallback.

Searches read the index over connections of their own; an index run never blocks them.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable, locks
from memory_tui.approval import Approvals, cleared
from memory_tui.backends import qmd
from memory_tui.backends.qmd import QmdAnswer, QmdClient, QmdFailure, QmdRemark
from memory_tui.cancel import Stop
from memory_tui.config.settings import QMD as QMD_KEYS
from memory_tui.config.settings import Settings
from memory_tui.engine.index import Index
from memory_tui.engine.status import Status
from memory_tui.errors import IndexBusy, IndexDamaged, IndexUnavailable, QueryError
from memory_tui.events import Event, Noticed
from memory_tui.explain import why_not
from memory_tui.explain.why_not import WhyNot
from memory_tui.formatting import plural
from memory_tui.index.store import Store
from memory_tui.openclaw import trust
from memory_tui.plan import Plan
from memory_tui.providers import Identity, chain, registry
from memory_tui.providers.chain import Chain, ServingProvider
from memory_tui.search import retrieve
from memory_tui.search.corpus import Corpus, exact_cosines, vectors_of
from memory_tui.search.rank import Trace, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import ChunkRef, refs_of
from memory_tui.secrets import finder as secret_finder
from memory_tui.secrets.finder import Known
from memory_tui.sentences import Notice, notice, without_effect
from memory_tui.workspace.notes import Document

Outcome = TypeVar("Outcome")
Ask = Callable[[Identity | None], retrieve.Question]
"""Makes of a query the question for an index whose vectors are in that space; None: it has no vectors."""

_TRIES = 3
"""How often a query is gathered again because the index was made anew meanwhile."""


def with_provider_notice(notices: tuple[Notice, ...], who: ServingProvider) -> tuple[Notice, ...]:
    """Return `notices` and why `who` is not who was asked for, unless the question met and told the same failure."""
    if who.fine:
        return notices
    added = notice("answered_otherwise", who=who)
    is_there = any(told.code == added.code and told.message.startswith(added.message) for told in notices)
    return notices if is_there else (*notices, added)


def notices_of(plan: Plan) -> tuple[Notice, ...]:
    """Return what the configuration of `plan` has to say before an answer is trusted."""
    notices = [
        notice("config_problem", said=str(problem), key=problem.key, file=problem.place.file, line=problem.place.line)
        for problem in plan.config.problems
    ]
    if plan.config.value("multimodal.enabled") is True and plan.roots.media is None:
        notices.append(notice("media_not_read", model=registry.MEDIA[0]))
    return (*notices, *without_effect(plan.chosen, plan.settings))


class Search:
    """Searches of one plan's `index`, from any number of threads."""

    def __init__(self, plan: Plan, chain: Chain, index: Index) -> None:
        self._plan, self._chain, self.index = plan, chain, index
        # Kept, because a plan works them out anew at each look, and every question needs them.
        self._zone, self._projects = plan.config.time_zone, plan.projects
        self._reads_time = plan.settings.on("questionTime.enabled")
        self._spells = plan.settings.on("spelling.enabled")
        self.plan_notices = notices_of(plan)
        """What the configuration has to say, as it is now."""
        # The releases that have a ledger are those with exact paths.
        self._trust = trust.of_plan(plan) if plan.profile.exact_paths else None
        self._lock = threading.RLock()
        self._latest: Corpus | None = None

    def notices_and_origins(self) -> tuple[tuple[Notice, ...], Mapping[str, str]]:
        """Return what every answer has to say as well, and who notes are from by OpenClaw's ledger, by path."""
        notices = (*self.plan_notices, *self.index.notices())
        if self._trust is None:
            return notices, {}
        ledger = self._trust.ledger()
        if ledger.problem:
            notices = (*notices, notice("trust_unread", detail=ledger.problem, step=ledger.next_step))
        return notices, ledger.classes

    @contextmanager
    def reader(self) -> Iterator[Store]:
        """Yield a read-only connection of one's own. Raises IndexUnavailable while nothing is indexed, Cancelled."""
        # The file that was read, so that only this one counts as damaged and not what took its place meanwhile.
        met = durable.file_at(self.index.opener.path)
        try:
            with self.index.reader() as store:
                if store.absent:
                    missing = self.index.missing()
                    self.index.wish_search_sync()
                    raise missing
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
            with self.index.reader() as store, store.snapshot():
                return run(store)
        except IndexUnavailable as error:
            self.index.report_unreadable(error, durable.file_at(self.index.opener.path))
        with closing(Store.nothing(self.index.opener.path)) as nothing:
            return run(nothing)

    @contextmanager
    def state(self, store: Store, *, once: bool = False) -> Iterator[Corpus]:
        """Yield one state of the index, with its chunks in memory; everything that is read inside is of that state.

        With `once` the caller ranks one question: vectors are not loaded where the store itself finds the nearest.
        """
        with ExitStack() as stack:
            # Under the lock: of two threads the one that comes later must not have the older state.
            with self._lock:
                stack.enter_context(store.snapshot())
                latest = self._latest
                # A corpus without vectors serves another single question, and nobody who ranks more.
                if latest is not None and (once or latest.is_whole):
                    corpus = latest.refresh(store)
                else:
                    corpus = Corpus.opened(store, once=once)
                self._latest = corpus
            yield corpus

    # --- questions -------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        settings: Settings | None = None,
        cancel: Stop | None = None,
        source: str = "",
        *,
        by_words: bool = False,
    ) -> Trace:
        """Gather what these `settings` rank, and nothing else, and rank it. Raises like `gather`."""
        settings = settings or self._plan.settings
        return rank(self.gather(query, cancel, source, by_words=by_words, settings=settings), settings)

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """Return `evidence` under `settings`: pure and quick, for any thread."""
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
        settings: Settings | None = None,
    ) -> Evidence:
        """Return what the index knows about `query`, all of it in one state; `by_words` without asking the provider.

        With `as_written` no word is corrected and none is read as a time. Where `settings` alone rank it, what they do
        not rank is left out. Ages are counted from `now` (epoch seconds; None: the clock of the engine). A damaged
        index is made again first, where nobody does that in the background.
        Raises QueryError, Cancelled, IndexUnavailable.
        """
        ask = partial(self._question, query, by_words=by_words, as_written=as_written)
        now = self._plan.clock() if now is None else now
        try:
            return self._gathered(ask, now, cancel, source, settings)
        except IndexDamaged as error:
            if self.index.opener.resident:
                raise
            self.index.replace_damaged(error, durable.file_at(self.index.opener.path))
        return self._gathered(ask, now, cancel, source, settings)

    def _gathered(self, ask: Ask, now: float, cancel: Stop | None, source: str, settings: Settings | None) -> Evidence:
        """Return what the index knows, in one state. `ask` makes the question for the space of its vectors.

        The provider is asked before the state is held, because a slow one would keep the log from being folded.
        """
        with (
            self.reader() as store,
            self.index.searching(store) as unsearchable,
            cancel.around(store.interrupt) if cancel else nullcontext(),
        ):
            notices, origins = self.notices_and_origins()
            latest = self._latest
            question = ask(store.identity() if latest is None else latest.identity)
            with self.state(store, once=self._plan.options.once and settings is not None and not source) as corpus:
                if corpus.identity != question.identity:
                    # It was made anew with another model since.
                    question = ask(corpus.identity)
                first = self.index.fresh_for_query
                self.index.fresh_for_query = False
                question = question if settings is None else question.ranked_by(settings)
                evidence = retrieve.gather(store, corpus, question, now, source)
                # After the question, because it may be the one that the provider failed at.
                who = chain.who(self._chain, corpus.identity)
                return replace(
                    evidence,
                    unsearchable=unsearchable,
                    first=first,
                    who=who,
                    notices=with_provider_notice((*notices, *evidence.notices), who),
                    lexical=replace(evidence.lexical, active=self._projects, origins=origins),
                )

    def warm(self, cancel: Stop) -> None:
        """Do ahead of the first question what only that has to do; without an index, or with a damaged one, nothing.

        Nothing is indexed for it, no model is loaded and no provider asked: the own vectors are a table.
        Raises Cancelled.
        """
        with suppress(IndexUnavailable, QueryError), self.index.reader() as store:
            if store.absent:
                return
            with cancel.around(store.interrupt), self.state(store) as corpus:
                # As it is written: to correct a word that no note holds, every word of the index would be read. By
                # words where a model would have to be loaded or a server asked for a vector.
                by_words = self._plan.provider != "builtin"
                question = self._question("memory", corpus.identity, by_words=by_words, as_written=True)
                rank(retrieve.gather(store, corpus, question, self._plan.clock()), self._plan.settings)

    def _question(
        self, query: str, identity: Identity | None, *, by_words: bool, as_written: bool
    ) -> retrieve.Question:
        """Return the question as it is asked of an index with vectors in the space `identity`. Raises QueryError."""
        provider = self._chain.provider(identity) if identity and not by_words else None
        # Empty where the query may be sent whatever it holds.
        host = provider.host if provider and provider.host and not provider.takes_secrets else ""
        withheld = self._withheld(query, host) if host and self._plan.settings.on("remote.withholdSecrets") else None
        question = retrieve.embed(query, identity, None if withheld else provider)
        return replace(
            question,
            notices=(withheld,) if withheld else question.notices,
            reads_time=not as_written and self._reads_time,
            spells=not as_written and self._spells,
            in_parts=not as_written,
            zone=self._zone,
        )

    def _withheld(self, query: str, host: str) -> Notice | None:
        """Return why `query` is not sent to `host`: it looks like it holds a secret; None when it may be sent."""
        # Every pattern wants a digit, or quotes after a label; testing for those spares most queries the scanner.
        if not any(sign.isdigit() or sign in "\"'`" for sign in query):
            return None
        kinds = secret_finder.kinds(query, Known(cleared=cleared(self._plan.workspace)))
        return notice("question_withheld", kinds=tuple(kinds), host=host) if kinds else None

    def why(self, evidence: Evidence, path: str, line: int | None = None, settings: Settings | None = None) -> WhyNot:
        """Return why a line of a note (1-based; None: any of them) was, or was not, recalled.

        Where the index was made anew since, the question is asked again: the rows of `evidence` are of no use then.
        Raises IndexUnavailable, Cancelled.
        """
        settings = settings or self._plan.settings
        for _ in range(_TRIES):
            with self.reader() as store, store.snapshot():
                if store.uuid() == evidence.uuid:
                    return why_not.of_line(evidence, settings, self._plan.roots, store, path, line)
            # Asked as before: evidence without cosines was gathered by words.
            by_words = evidence.cosine is None
            evidence = self.gather(evidence.question.query, None, evidence.source, by_words=by_words, now=evidence.now)
        raise IndexBusy("The index is rebuilt again and again.", "Ask again when the rebuild has finished.")

    # --- looking into the index ------------------------------------------------------------------------------------

    def chunks_of(self, path: str) -> tuple[ChunkRef, ...]:
        """Return the chunks of a note as they are indexed, in order."""
        with self.index.reader() as store:
            return refs_of(path, store.chunks_of(path))

    def holding(self, phrases: Sequence[str]) -> frozenset[str] | None:
        """Return the stored paths of notes in which the words of any of `phrases` follow each other; None: unknown."""
        try:
            with self.index.reader() as store:
                return None if store.absent else store.paths_holding(phrases)
        except (IndexUnavailable, QueryError):
            return None

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the index file, in words; reads all of it. Empty when it is whole or not there."""
        return self.on_snapshot(lambda store: tuple(store.problems()))

    def remeasured(self) -> tuple[str, float] | None:
        """Embed one chunk again; return its path, and the cosine of its stored and its new vector, 1 for the same.

        None where no vectors are stored, or they are not of the provider in use. Raises IndexUnavailable,
        ProviderError.
        """
        with self.reader() as store, self.state(store) as corpus:
            provider = self._chain.provider(corpus.identity) if corpus.identity is not None else None
            if not len(corpus) or provider is None or corpus.identity != provider.identity:
                return None
            # From the middle; any chunk would do.
            ref = corpus.refs[len(corpus) // 2]
            text = store.texts([ref.rowid])[ref.rowid]
            stored = vectors_of(store, corpus, corpus.rows_of([ref.rowid]))
        if not stored.any():
            # All zeros: nothing is stored. The text may have been withheld, so it must not be sent now.
            return None
        return ref.path, exact_cosines(stored, provider.embed([text], "document")[0]).item()


# --- QMD in the place of the index -----------------------------------------------------------------------------------

# A failure of QMD is kept for every process, so that it costs one search of one process. QMD is then left alone for
# half a minute, and longer after each failure.

QMD, BUILTIN = "qmd", "builtin"
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
_MOST_QUERY = 50_000
"""Characters of the longest question that QMD gets, as of the built-in index."""


class BackendFallback(Struct, frozen=True):
    """Why the built-in index answers in the place of QMD, since when, and when QMD is tried again (epoch seconds).

    `of` is the command and mode that failed; what was set otherwise since is tried at once.
    """

    reason: str
    next_step: str
    since: float
    retry_at: float
    pause: float
    of: str = ""

    @property
    def sentence(self) -> str:
        """Return that the built-in index answered, why, and what mends it, as one line."""
        return f"The built-in index answered: {self.reason} {self.next_step}".strip()

    def as_dict(self) -> dict[str, Any]:
        """Return the documented shape, with what this product adds."""
        why = {"reason": self.reason, "nextStep": self.next_step}
        return {"from": QMD, "to": BUILTIN, **why, "since": self.since, "retryAt": self.retry_at or None}


class Backend:
    """Who answers the questions of one engine, QMD or the index; every method may be called from any thread."""

    def __init__(self, plan: Plan, approvals: Approvals, emit: Callable[[Event], None]) -> None:
        self._plan, self._approvals, self._emit = plan, approvals, emit
        self.is_qmd = plan.backend == QMD
        """Whether QMD was chosen, whoever answers now."""
        self._stop = Stop()

    @cached_property
    def client(self) -> QmdClient:
        """Return QMD, as configured."""
        return QmdClient(self._plan, self._approvals)

    def refusal(self, session_key: str) -> QmdAnswer | None:
        """Return the answer without hits for a chat that `memory.qmd.scope` denies, whoever would answer; else None."""
        key = f"{QMD_KEYS}scope"
        rule = qmd.denial(self._plan.backend_value(key), session_key) if self.is_qmd else ""
        if not rule:
            return None
        # A scope that was set on the command line stands in no file; else the last place is the one that counts.
        entry = None if key in self._plan.backend_values else self._plan.config.entries.get(key)
        place = entry.places[-1] if entry is not None else key
        sentence = f"{rule} of {place} denies this chat the notes. Ask in a chat that it allows."
        return QmdAnswer(self.client.options.mode, empty=QmdRemark("out-of-scope", sentence))

    def ask(self, query: str, most: int | None = None, source: str = "", stop: Stop | None = None) -> QmdAnswer | None:
        """Return QMD's answer; None where the built-in index has to answer. Raises Cancelled.

        That is where QMD was not chosen, has failed, or cannot answer such a question, as one about transcripts.
        """
        if not self.is_qmd or source == "sessions" or not query.strip() or len(query) > _MOST_QUERY:
            return None
        before = self.fallback()
        if before is not None and time.time() < before.retry_at:
            return None
        # Ends with the caller's `stop`, and when the engine is closed.
        both = Stop(self._stop, *filter(None, [stop]))
        try:
            self._bring_up_to_date(both)
            limit = self._plan.settings.whole("query.maxResults") if most is None else most
            answer = self.client.ask(query, limit, both)
        except QmdFailure as failure:
            self._failed(failure, before)
            return None
        if before is not None:
            self.recovered()
        return answer

    def _bring_up_to_date(self, stop: Stop) -> None:
        """Have QMD read the files that changed, unless that was done just now, or is left to a person.

        Raises QmdFailure, Cancelled.
        """
        client = self.client
        # An interval of 0 leaves updates to a person.
        never = client.options.values["update.interval"] in ("0", 0)
        young = time.time() - client.updated < client.options.seconds("update.debounceMs")
        if young or never or not client.place.owned or locks.living(client.lock) is not None:
            return
        if not client.updated or client.coverage().behind:
            # The vectors may take minutes, which a question does not wait for.
            qmd.update(client, stop, vectors=False)

    def document(self, path: str) -> Document | None:
        """Return a file outside the workspace that QMD's hits call `qmd/collection/path`; None for every other path.

        Raises PathRefused, Unreadable.
        """
        return self.client.document(path) if self.is_qmd and path.startswith("qmd/") else None

    # --- failures ---

    def fallback(self) -> BackendFallback | None:
        """Return why the built-in index answers in the place of QMD, as any process found; None where QMD does."""
        try:
            failed = msgspec.convert(self.client.place.remembered("fallback"), BackendFallback)
        except msgspec.ValidationError:
            # Nothing is remembered, so QMD has not failed.
            return None
        return failed if failed.of == self._of else None

    @property
    def _of(self) -> str:
        """Return what a failure is of: the mode and command that were asked."""
        return f"{self.client.options.mode} {self.client.options.values['command']}"

    def _failed(self, failure: QmdFailure, before: BackendFallback | None) -> None:
        """Remember for every process that QMD failed, as it did `before` perhaps, and tell a reason that is new."""
        now = time.time()
        pause = min(_LONGEST_PAUSE, before.pause * 2) if before else _FIRST_PAUSE
        since = before.since if before else now
        failed = BackendFallback(failure.message, failure.next_step, since, now + pause, pause, self._of)
        self.client.place.remember("fallback", msgspec.to_builtins(failed))
        if before is None or before.reason != failed.reason:
            again = dt.datetime.fromtimestamp(failed.retry_at)
            text = f"QMD failed: {failure.message} The built-in index answers until {again:%H:%M:%S}."
            self._emit(Noticed(now, text))

    def recovered(self) -> None:
        """Ask QMD again from now on, in every process: it is well, or was mended."""
        self.client.place.remember("fallback", None)

    # --- state ---

    def described(self, status: Status) -> Status:
        """Return `status` with who answers now; looks at QMD's index and the files, starts no search."""
        if not self.is_qmd:
            chosen = self._plan.backend_origin != "default"
            return replace(status, backend_state=f"{BUILTIN} (chosen)" if chosen else BUILTIN)
        failed = self.fallback()
        custom: dict[str, float | None] = {"collections": 0, "lastUpdateAt": None}
        sentence = QMD
        try:
            ready = self.client.ready(self._stop)
            custom = {"collections": len(ready.collections), "lastUpdateAt": self.client.updated or None}
            if behind := ready.coverage.behind:
                sentence = f"{QMD}, behind ({plural(behind, 'file')} changed)"
        except QmdFailure as failure:
            # Met by this look alone and remembered by nobody: no time is set for another try.
            failed = failed or BackendFallback(failure.message, failure.next_step, time.time(), retry_at=0.0, pause=0.0)
        if failed is None:
            return replace(status, backend=QMD, backend_state=sentence, custom={QMD: custom})
        when = f", again at {dt.datetime.fromtimestamp(failed.retry_at):%H:%M}" if failed.retry_at else ""
        return replace(
            status,
            backend=BUILTIN,
            backend_state=f"{BUILTIN} because: {failed.reason.rstrip('.')}{when}",
            fallback=failed.as_dict(),
            custom={QMD: custom, "fallback": {"disabled": True, "reason": failed.reason}},
        )

    def close(self) -> None:
        """End QMD's processes."""
        self._stop.set()
