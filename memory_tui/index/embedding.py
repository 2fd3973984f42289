"""Embedding of chunks decides which texts or media files go to the provider. It knows which the provider rejected, and
which are withheld as secrets.

The index remembers rejected texts by the provider's identity and the hash of the text, with the reason. They are asked
for again when the text or the provider is another one, when somebody says so, and after a day. Words still find them.

The index remembers withheld texts by hash and kind of secret: it tells why a chunk has no vector, and looks at none of
them twice. They stay findable by their words.

A batch job of a provider's batch service is one file of texts at a time, none paid twice. Each sync does the next step,
as the only writer of the index: it uploads a file, has a job made of it, looks at it, and stores what it brought. The
index remembers names and hashes, without a text or a key, so that the next process goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from memory_tui.cancel import Stop
from memory_tui.errors import IndexUnavailable, MemoryTuiError, ProviderError
from memory_tui.events import BatchNews, Event
from memory_tui.index import index_write
from memory_tui.index.database import Rows
from memory_tui.index.store import OPEN_JOB, UNCLAIMED, Store, is_unit
from memory_tui.providers import OF_THE_TEXT, PASSING, Cause, Identity, MediaText, Provider, ProviderFailure, Vectors
from memory_tui.providers.chain import Chain
from memory_tui.secrets import finder as secret_finder
from memory_tui.secrets import instructions
from memory_tui.secrets.finder import NOTHING_KNOWN, Known
from memory_tui.workspace import roots
from memory_tui.workspace.notes import MediaDocument, path_in
from memory_tui.workspace.roots import Roots

if TYPE_CHECKING:
    from memory_tui.providers.http import BatchService

SECONDS = 86_400.0
"""How long a refusal counts: who refuses a text today may have another model tomorrow."""
_CLEARED = "cleared"
"""Where the index keeps what stands for what a person had cleared when it looked for secrets."""
_SPACE = "provider = ? AND model = ? AND provider_key = ?"
_AMONG = "hash IN (SELECT value FROM json_each(?))"


def remember_rejected(store: Store, identity: Identity, digest: str, reason: str) -> None:
    """Remember that the text with this hash was refused now."""
    row = (*identity.space, digest, reason, time.time())
    with store.writing():
        store.query("INSERT OR REPLACE INTO refused VALUES(?, ?, ?, ?, ?, ?)", row)


def known_rejected(store: Store, identity: Identity, hashes: Sequence[str]) -> set[str]:
    """Return which of `hashes` are not to be asked for again now."""
    sql = f"SELECT hash FROM refused WHERE {_SPACE} AND at > ? AND {_AMONG}"
    return {row[0] for row in store.query(sql, (*identity.space, time.time() - SECONDS, json.dumps(list(hashes))))}


def clear_rejected(store: Store) -> None:
    """Forget all refusals, so that every text is asked for again. Mostly nothing to do."""
    _forget(store, "refused", "true")


def tidy(store: Store) -> None:
    """Forget what is remembered of texts that no note has any more, or that have a vector now. Mostly nothing to do."""
    for table in ("withheld", "windows"):
        _forget(store, table, "hash NOT IN (SELECT hash FROM chunks)")
    _forget(
        store,
        "refused",
        "hash NOT IN (SELECT hash FROM chunks) OR (provider, model, provider_key, hash) IN "
        "(SELECT provider, model, provider_key, hash FROM embedding_cache)",
    )


def _forget(store: Store, table: str, condition: str) -> None:
    """Delete the rows of `table` that meet an SQL `condition`.

    Where there are none nothing is begun, because each transaction is a new generation of the index.
    """
    if store.value(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {condition})"):
        with store.writing():
            store.query(f"DELETE FROM {table} WHERE {condition}")


TeamVectors = Callable[[Identity, Sequence[str]], Mapping[str, bytes]]
"""Returns vectors as float32 bytes by the hash of their text. May raise MemoryTuiError."""


class EmbeddingMode(Struct, frozen=True):
    """How texts get to a provider: how many `texts` a call has, and what is not sent.

    With `later` notes are findable by their words before the provider is asked. What looks like a secret is `withheld`.
    What an index of `siblings` has a vector of is not asked for: they hold the same notes, cut by other rules. With
    `windows` the parts of each chunk get vectors too.
    """

    texts: int = 64
    later: bool = False
    withheld: bool = False
    siblings: tuple[Path, ...] = ()
    cleared: frozenset[tuple[str, str]] = frozenset()
    """What a person took for no secret and no command."""
    windows: bool = False
    team: TeamVectors | None = None
    """Who may have vectors of these texts already; not asked for what looks like a secret."""


HERE = EmbeddingMode()
"""A provider that takes no time."""
SLOW = EmbeddingMode(16, later=True)
"""A model on this machine: a call takes seconds, and after each one it is told how far the work is."""
SERVER = EmbeddingMode(256, later=True)
"""One that text is sent to; of what it gets at once it makes requests as large as it takes."""


def shared_hashes(siblings: Sequence[Path], identity: Identity, hashes: Set[str]) -> set[str]:
    """Return which of `hashes` need no provider, because `siblings` hold their vectors; none if one is unreadable."""
    try:
        return {row[0] for row in _of_siblings(siblings, "hash", identity, list(hashes))}
    except IndexUnavailable:
        # The run that embeds them reads it again, and says why it cannot.
        return set()


def _of_siblings(siblings: Sequence[Path], columns: str, identity: Identity, hashes: Sequence[str]) -> Rows:
    """Return the `columns` of what `siblings` hold of those `hashes`, in the space of `identity`.

    An identity of 0 dimensions takes vectors of any length. Raises IndexUnavailable.
    """
    sql = f"SELECT {columns} FROM embedding_cache WHERE {_SPACE} AND ? IN (dims, 0) AND {_AMONG}"
    rows: Rows = []
    for sibling in siblings:
        if hashes and sibling.exists():
            with closing(Store.open(sibling, read_only=True)) as store:
                rows += store.query(sql, (*identity.space, identity.dims, json.dumps(list(hashes))))
    return rows


def held_back(text: str, known: Known = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return why a text is not sent before somebody agrees: what secrets, and what commands to a reader, it holds."""
    return (*secret_finder.kinds(text, known), *instructions.kinds(text, known.cleared))


def sendable(
    store: Store, texts: Mapping[str, str], digests: Sequence[str], cleared: frozenset[tuple[str, str]]
) -> list[str]:
    """Return those of `digests` whose text in `texts` may be sent; the others are remembered as withheld.

    What a person `cleared` is no reason to withhold a text, nor what the notes tell to be an id.
    """
    # The second of the pair is a hash: what was cleared is not written down again.
    mark = secret_finder.exactly(repr(sorted(cleared)))[1] if cleared else ""
    if mark != (store.meta(_CLEARED) or ""):
        # A person cleared other things since: what was withheld may be sendable now.
        _forget(store, "withheld", "true")
        index_write.remember(store, _CLEARED, mark)
    rows = store.query(f"SELECT hash FROM withheld WHERE {_AMONG}", (json.dumps(list(digests)),))
    withheld = {digest for (digest,) in rows}
    fresh = [digest for digest in digests if digest not in withheld]
    # Which values are ids only all chunks tell, and to read them takes long: done where a text is doubtful.
    known = Known(cleared=cleared)
    doubtful = {digest for digest in fresh if held_back(texts[digest], known)}
    if doubtful:
        known = secret_finder.known_of((row[0] for row in store.query("SELECT text FROM chunks")), cleared)
    secrets = {digest: "; ".join(kinds) for digest in doubtful if (kinds := held_back(texts[digest], known))}
    if secrets:
        with store.writing():
            store.many("INSERT OR REPLACE INTO withheld VALUES(?, ?)", list(secrets.items()))
    return [digest for digest in fresh if digest not in secrets]


BATCH = 64
"""Rows a transaction writes (more when one file has more)."""


class Embedder:
    """Finds or makes vectors in the space of `identity`, until `stop`, which raises Cancelled.

    A provider that fails is not asked again, but for a call that is under way; `error` says why. A text that it does
    not take is passed over, and remembered. Media files are read below `roots`.
    """

    def __init__(
        self, store: Store, identity: Identity, provider: Provider | None, stop: Stop, mode: EmbeddingMode, roots: Roots
    ) -> None:
        self.embedded = 0
        """Texts that the provider made vectors of."""
        self.shared = 0
        """Texts whose vectors were taken from a sibling."""
        self.unshared = ""
        """Why a sibling could not be read."""
        self.error = ""
        self.provider = provider
        """Who makes vectors; None without one, and once it has failed."""
        self._store, self._identity, self._stop, self._mode, self._roots = store, identity, stop, mode, roots
        if provider is not None and not mode.withheld:
            _forget(store, "withheld", "true")

    def cached(self, texts: Mapping[str, str]) -> dict[str, int]:
        """Return the embedding ids of those `texts` that have a vector: here, in a sibling, or in a shared index.

        A text that may hold a secret is not asked for in the shared one.
        """
        dims = self._identity.dims
        if not dims:
            return {}
        cached = self._store.cached(self._identity, list(texts))
        lacking = [digest for digest in texts if digest not in cached]
        if not lacking or self.unshared:
            return cached
        try:
            rows = _of_siblings(self._mode.siblings, "hash, embedding", self._identity, lacking)
            if (team := self._mode.team) is not None:
                known = Known(cleared=self._mode.cleared)
                open_to_all = [digest for digest in lacking if not secret_finder.kinds(texts[digest], known)]
                rows += team(self._identity, open_to_all).items()
        except MemoryTuiError as error:
            self.unshared = f"No vectors were taken from other indexes of these notes: {error.message}"
            return cached
        # A vector of another length or direction would spoil the index, whoever sent it.
        vectors = {digest: np.frombuffer(data, np.float32) for digest, data in rows if is_unit(data, dims)}
        self.shared += len(vectors)
        return cached | index_write.add_embeddings(self._store, self._identity, vectors)

    def ids(self, texts: Mapping[str, str], *, ask: bool = True) -> tuple[dict[str, int], Set[str]]:
        """Return the embedding ids of `texts` by hash, and which of them the provider made now.

        Some are missing when they are withheld, when it must not be asked, and when it fails.
        """
        cached = self.cached(texts)
        fresh: dict[str, int] = {}
        lacking = iter(self.lacking(texts, cached) if ask else ())
        while self.provider and (batch := list(islice(lacking, self._mode.texts))):
            self._stop.check()
            fresh |= self._embed(batch, texts)
        return cached | fresh, fresh.keys()

    def lacking(self, texts: Mapping[str, str], cached: Mapping[str, int]) -> list[str]:
        """Return the hashes of those `texts` whose vector the provider may be asked for.

        Texts that it refused are left out, and so are those withheld from it, which the index remembers.
        """
        lacking = [digest for digest in texts if digest not in cached]
        if not self.provider or not lacking:
            return []
        rejected = known_rejected(self._store, self._identity, lacking)
        lacking = [digest for digest in lacking if digest not in rejected]
        return sendable(self._store, texts, lacking, self._mode.cleared) if self._mode.withheld else lacking

    def _embed(self, batch: Sequence[str], texts: Mapping[str, str]) -> dict[str, int]:
        """Ask for the vectors of `batch`, texts or labels of media files, store them, and return their ids by hash.

        Of a call that fails those are stored that were finished before.
        """
        assert self.provider is not None
        inputs = [texts[digest] for digest in batch]
        if self._roots.media is not None:
            inputs = [self._media_or_text(text, digest) for text, digest in zip(inputs, batch, strict=True)]
        try:
            return self._store_vectors(batch, self.provider.embed(inputs, "document"))
        except ProviderError as failure:
            self.error = failure.message
            ids: dict[str, int] = {}
            # Vectors by their place in the batch.
            done = failure.done if isinstance(failure, ProviderFailure) else {}
            with suppress(ProviderError):
                if places := sorted(done):
                    vectors = np.stack([np.asarray(done[place], np.float32) for place in places])
                    ids = self._store_vectors([batch[place] for place in places], vectors)
            if not isinstance(failure, ProviderFailure) or failure.state not in OF_THE_TEXT:
                self.provider = None
            elif len(batch) == 1 and not ids:
                remember_rejected(self._store, self._identity, batch[0], failure.message)
            else:
                # It was refused as a whole, or in part: asked for one by one, the texts that are to blame show.
                for digest in batch:
                    if digest not in ids and self.provider is not None:
                        ids |= self._embed([digest], texts)
            return ids

    def _media_or_text(self, text: str, digest: str) -> str:
        """Return a text as it is, or the media file that it labels, which is read when it is sent.

        The file has to be the one that `digest` is the hash of.
        """
        path = path_in(text, digest)
        if not path:
            return text

        def load() -> tuple[str, bytes]:
            """Return kind and bytes of the media file. Raises ProviderFailure where it is gone or another one."""
            try:
                read = roots.read(roots.located(self._roots, path))
            except MemoryTuiError as error:
                raise ProviderFailure(Cause.NO_VECTOR, error.message) from None
            if not isinstance(read, MediaDocument) or read.hash != digest:
                raise ProviderFailure(Cause.NO_VECTOR, f"{path} has changed since it was indexed.")
            return read.mime, read.data

        media = self._roots.media
        return MediaText(text, media.most_bytes if media else 0, load)

    def _store_vectors(self, digests: Sequence[str], vectors: Vectors) -> dict[str, int]:
        """Store the vectors; return their ids by hash. Raises ProviderError for an answer that must not be stored."""
        name, dims = self._identity.provider, self._identity.dims
        if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.shape != (len(digests), dims):
            message = f"{name} answered with vectors of another shape than {len(digests)} x {dims}."
            raise ProviderError(message, "Check the model's name and dimensions.")
        if not np.isfinite(vectors).all():
            raise ProviderError(f"{name} answered with vectors that hold no numbers.", "Check the model.")
        self.embedded += len(digests)
        return index_write.add_embeddings(self._store, self._identity, dict(zip(digests, vectors, strict=True)))


# --- batch jobs ------------------------------------------------------------------------------------------------------

MOST_TEXTS, MOST_FAILURES = 5_000, 2
"""The most texts of a file, whose vectors stand in memory when they come; so many failures in a row have texts sent
directly.
"""
_LONGEST_PAUSE, _PAUSE_SHARE = 60.0, 1 / 20
"""Seconds between two looks at a job: a share of its age, and at most so many."""
Stage = Literal["submitted", "done", "failed"]


class Job(NamedTuple):
    """A job; `remote_id` is the provider's name of it, empty until it is submitted at `submitted_at` (seconds)."""

    id: int
    file_id: str
    remote_id: str
    submitted_at: float


def open_job(store: Store, identity: Identity) -> Job | None:
    """Return the job for vectors of `identity`, uploaded or submitted; None without one."""
    rows = store.query(f"SELECT id, file_id, remote_id, submitted_at {OPEN_JOB}", identity.space)
    return Job(*rows[0]) if rows else None


class BatchJobs:
    """The batch job of one engine. What no job could embed, and what is left after two failures, is sent directly."""

    def __init__(self, chain: Chain, emit: Callable[[Event], None]) -> None:
        self.waiting = 0
        """Texts that wait for the job, as last seen."""
        self.due: float | None = None
        """When the next sync should look at the job, by the monotonic clock; None where none should."""
        self.pause = 0.0
        """Seconds until then."""
        self.idle = False
        """Whether somebody waits for an answer, so that nothing is sent or looked at."""
        self.embedded = 0
        """Texts whose vectors the last step brought."""
        self._chain, self._emit = chain, emit
        self._failures = 0
        """Jobs in a row that failed."""
        self._direct: set[str] = set()
        """Hashes of texts for which a job brought no vector: they are sent directly."""
        self._reported: tuple[object, ...] = ()
        """The last news, so that none is told twice."""

    def wait(self) -> bool:
        """Sleep for `pause`, until the job is due; return False at once where none is, or jobs are not waited for.

        Raises Cancelled when the chain is closed.
        """
        service = self._chain.batches()
        if service is None or self.due is None or not service.jobs.wait:
            return False
        service.wait(self.pause)
        return True

    def step(self, store: Store, identity: Identity, mode: EmbeddingMode) -> bool:
        """Do the next step of the job; return whether there are texts enough for another one. Raises Cancelled."""
        service = self._chain.batches()
        self.due, self.embedded = None, 0
        if service is None or service.space != identity.space:
            return False
        goes_on = not self.idle
        if goes_on:
            try:
                self._advance(store, service, identity, mode)
            except ProviderFailure as failure:
                goes_on = self._failed(store, service, identity, failure)
        job = open_job(store, identity)
        texts = self._texts(store, service, identity, mode)
        self.waiting = len(store.waiting(identity)) + len(texts)
        if goes_on and self.waiting:
            # The older a job is, the less often it is looked at.
            age = service.settings.clock.now() - job.submitted_at if job and job.remote_id else 0.0
            self.pause = max(service.jobs.poll_seconds, min(age * _PAUSE_SHARE, _LONGEST_PAUSE))
            self.due = time.monotonic() + self.pause
        return bool(texts)

    def _texts(self, store: Store, service: BatchService, identity: Identity, mode: EmbeddingMode) -> dict[str, str]:
        """Return the texts of the next file by hash: they lack a vector, and wait for no job.

        Empty where they are too few for a job, or jobs failed too often. What looks like a secret is left out where the
        mode withholds it.
        """
        if self._failures >= MOST_FAILURES:
            return {}
        rows = store.query(
            "SELECT hash, text FROM chunks WHERE embedding_id IS NULL AND occurrence = 0 "
            f"AND hash NOT IN (SELECT hash FROM withheld) AND {UNCLAIMED} GROUP BY hash ORDER BY min(id)",
            identity.space,
        )
        passed_over = self._direct | known_rejected(store, identity, [digest for digest, _ in rows])
        fitting = [(digest, text) for digest, text in rows if text.strip() and digest not in passed_over]
        texts: dict[str, str] = dict(fitting[:MOST_TEXTS])
        if mode.withheld:
            texts = {digest: texts[digest] for digest in sendable(store, texts, list(texts), mode.cleared)}
        return texts if len(texts) >= service.jobs.least else {}

    def _advance(self, store: Store, service: BatchService, identity: Identity, mode: EmbeddingMode) -> None:
        """Look at the job that runs; where none does, have one made. Raises ProviderFailure, Cancelled."""
        job = open_job(store, identity)
        if job is not None and job.remote_id:
            if not self._has_ended(store, service, identity, job):
                return
            job = None
        # A file without a job: an earlier process may have had one made, and died before it wrote down its name.
        remote_id = service.find(job.file_id) if job is not None else ""
        if job is None:
            texts = self._texts(store, service, identity, mode)
            if not texts:
                return
            job = _begin(store, identity, service.upload(list(texts.items())), texts)
        remote_id = remote_id or service.create(job.file_id)
        now = service.settings.clock.now()
        with store.writing():
            store.query("UPDATE batch_jobs SET remote_id = ?, submitted_at = ? WHERE id = ?", (remote_id, now, job.id))
        self._news(remote_id, "submitted", 0, len(store.waiting(identity)), f"to the batch service of {service.label}")

    def _has_ended(self, store: Store, service: BatchService, identity: Identity, job: Job) -> bool:
        """Look at a job; return whether it has ended. What it brought is stored, and a late one is given up."""
        status = service.status(job.remote_id)
        sent = store.waiting(identity)
        vectors: dict[str, Vectors] = {}
        why = status.why
        if status.phase == "running" and not _is_late(service, job):
            return False
        if status.phase == "running":
            service.cancel(job.remote_id)
            why = f"it was not done after {service.jobs.timeout_seconds / 60:g} minutes"
        else:
            brought, errors = service.fetch(status, identity.dims)
            why = why or next(iter(errors.values()), "")
            # Vectors of texts that were not sent are not believed.
            vectors = {digest: vector for digest, vector in brought.items() if digest in sent}
        ids = index_write.add_embeddings(store, identity, vectors)
        rows = store.query("SELECT id, hash FROM chunks WHERE embedding_id IS NULL AND occurrence = 0")
        index_write.attach(store, {rowid: ids[digest] for rowid, digest in rows if digest in ids})
        self._drop(store, job)
        lacking = sent - vectors.keys()
        self._direct |= lacking
        self.embedded = len(vectors)
        succeeded = status.phase == "completed" and bool(vectors)
        self._failures = 0 if succeeded else self._failures + 1
        if not succeeded:
            why = why or f"the job ended as {status.phase}"
        rest = f"{len(lacking):,} texts came back without a vector and are sent directly" if lacking else ""
        remains = service.discard((job.file_id, *status.files))
        detail = "; ".join(filter(None, (rest, why, remains)))
        self._news(job.remote_id, "done" if succeeded else "failed", len(vectors), len(sent), detail)
        return True

    def _failed(self, store: Store, service: BatchService, identity: Identity, failure: ProviderFailure) -> bool:
        """Tell a failure, and give up where that is right; return whether the next sync should try again."""
        job = open_job(store, identity)
        passes = failure.state in PASSING
        # A job that is submitted goes on, unless the provider knows it no more or it is late.
        runs = job is not None and bool(job.remote_id)
        lost = failure.state is Cause.UNKNOWN_MODEL or (job is not None and passes and _is_late(service, job))
        if runs and not lost:
            if not passes:
                detail = f"{failure.message} {failure.next_step} The job goes on and is remembered."
                self._news("", "failed", 0, self.waiting, detail)
            return passes
        # With no job and an error that does not pass, the server has no batch service: it is asked once.
        self._failures = self._failures + 1 if passes or runs else MOST_FAILURES
        if job is not None and (runs or self._failures >= MOST_FAILURES):
            self._direct |= store.waiting(identity)
            self._drop(store, job)
            service.discard([job.file_id])
        self._news("", "failed", 0, self.waiting, failure.message)
        return True

    def _drop(self, store: Store, job: Job) -> None:
        """Forget a job, and that texts wait for it."""
        with store.writing():
            store.query("DELETE FROM batch_texts WHERE job = ?", (job.id,))
            store.query("DELETE FROM batch_jobs WHERE id = ?", (job.id,))

    def _news(self, job: str, stage: Stage, done: int, total: int, detail: str) -> None:
        """Report what happened, once."""
        news = (job, stage, done, total, detail)
        if self._reported != news:
            self._reported = news
            self._emit(BatchNews(time.time(), *news))


def _begin(store: Store, identity: Identity, file_id: str, hashes: Iterable[str]) -> Job:
    """Remember a file that was uploaded, with its texts, and return its job, which is not submitted yet.

    Jobs without a file are of an earlier version that never uploaded them: their texts wait for nothing.
    """
    with store.writing():
        store.query("DELETE FROM batch_texts WHERE job IN (SELECT id FROM batch_jobs WHERE file_id = '')")
        store.query("DELETE FROM batch_jobs WHERE file_id = ''")
        # Process and start are columns that an earlier version read.
        job = store.value(
            "INSERT INTO batch_jobs(provider, model, provider_key, dims, pid, started, claimed_at, file_id) "
            "VALUES (?, ?, ?, ?, 0, '', ?, ?) RETURNING id",
            (*identity.space, identity.dims, time.time(), file_id),
        )
        store.many("INSERT INTO batch_texts(hash, job) VALUES (?, ?)", [(digest, job) for digest in hashes])
    return Job(job, file_id, "", 0.0)


def _is_late(service: BatchService, job: Job) -> bool:
    """Return whether a job takes longer than is waited for."""
    return service.settings.clock.now() - job.submitted_at > service.jobs.timeout_seconds
