"""Make the index hold what is on disk: read what changed, cut it, embed what was never embedded, forget what is gone.

A file's rows are replaced in one transaction, and vectors are kept as soon as they are made. Whoever is killed leaves
an index of whole files, and the next sync goes on from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from memory_tui import events
from memory_tui.embed.provider import Identity, Provider
from memory_tui.errors import Cancelled, MemoryTuiError, ProviderError, Unreadable
from memory_tui.events import Listener
from memory_tui.index import abilities, jobs, schema, writes
from memory_tui.index.cutting import cut, remarks
from memory_tui.index.deltas import PATIENT, Thresholds, waits
from memory_tui.index.freshness import difference, gone
from memory_tui.index.jobs import Terms
from memory_tui.index.schema import Recipe
from memory_tui.index.store import FileRow, Store
from memory_tui.index.writes import NewFile
from memory_tui.settings import Settings
from memory_tui.workspace import sources
from memory_tui.workspace.chunks import MAX_INPUT_BYTES
from memory_tui.workspace.document import Document
from memory_tui.workspace.roots import Found, Roots, Scan

BATCH = 64
"""Rows a transaction writes (more when one file has more), and texts a provider gets at once."""

_PROGRESS_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did, in files and chunks; `seconds` is wall time.

    `unchanged` files cost a stat, `touched` ones were read and found to hold the same text. `embedded` texts needed
    the provider, `reused` chunks found their vector in the cache. `error` is why the provider stopped, if it did;
    a `cancelled` sync has done a part of it. `changed` tells whether anything was written, `generation` is the one
    after it. `waiting` transcripts changed, but have not grown enough to be indexed by themselves. `claimed` texts wait
    for the provider's batch service.
    """

    reason: str
    found: int = 0
    indexed: int = 0
    touched: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    rebuilt: bool = False
    cancelled: bool = False
    error: str = ""
    seconds: float = 0.0
    changed: bool = False
    generation: int = 0
    waiting: int = 0
    claimed: int = 0


def recipe_for(
    roots: Roots, provider: Provider | None, settings: Settings, kept: Identity | None = None,
) -> Recipe:
    """What an index of `roots` is made with under these settings; `kept` is the space of vectors during an outage.

    Raises ProviderError when the provider has to be asked and does not answer.
    """
    identity = kept or (provider.identity if provider else schema.keywords_only())
    return Recipe(
        identity=identity, sources=roots.sources, scope_hash=schema.scope_hash(roots.extra, roots.patterns),
        chunk_tokens=settings.whole("chunking.tokens"), chunk_overlap=settings.whole("chunking.overlap"),
        chunk_bytes=min(provider.max_input_bytes, MAX_INPUT_BYTES) if provider else MAX_INPUT_BYTES,
        fts_tokenizer=abilities.tokenizer(settings.word("store.fts.tokenizer")))


def sync(
    store: Store, roots: Roots, provider: Provider | None, settings: Settings, scan: Scan,
    listener: Listener = events.ignore, cancel: threading.Event | None = None, force: bool = False,
    reason: str = "manual", outage: str = "", terms: Terms | None = None,
) -> SyncReport:
    """Bring `store` up to date with `scan`. Everything is read and cut again when `force` or the recipe changed.

    `outage` is why there is no provider although one was chosen: then the vectors that are there stay. With `terms`
    many texts that lack a vector are left to batch jobs, which somebody else submits and follows.

    A file that cannot be read is noted and the others go on; when the provider fails, chunks are stored without
    vectors, which a later sync makes. Raises IndexUnavailable.
    """
    started = time.monotonic()
    before = store.generation()
    try:
        recipe = recipe_for(roots, provider, settings, store.identity() if outage else None)
    except ProviderError as failure:
        provider, outage = None, failure.message
        recipe = recipe_for(roots, None, settings, store.identity())
    run = _Sync(
        store, recipe, provider, listener, cancel or threading.Event(), reason, Thresholds.of(settings), terms)
    run.error = outage
    error = ""
    try:
        run.all_of(scan, force)
        writes.tidy(store, keep_cache=settings.on("cache.enabled"))
    except Cancelled:
        run.cancelled = True
    except MemoryTuiError as failure:
        error = failure.message
        raise
    finally:
        report = run.report(time.monotonic() - started)
        listener(events.SyncFinished(
            time.time(), reason, report.indexed, report.removed, len(report.failed), report.embedded, report.seconds,
            error or report.error or ("stopped" if report.cancelled else "")))
    after = store.generation()
    return replace(report, changed=after != before, generation=after)


@dataclass
class _Sync:
    """One run, and what it has done so far."""

    store: Store
    recipe: Recipe
    provider: Provider | None
    listener: Listener
    cancel: threading.Event
    reason: str
    thresholds: Thresholds
    terms: Terms | None = None
    found: int = 0
    unchanged: int = 0
    waiting: int = 0
    indexed: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    done: int = 0
    total: int = 0
    rebuilt: bool = False
    cancelled: bool = False
    error: str = ""
    claimed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    touched: int = 0
    _waiting: list[NewFile] = field(default_factory=list)
    _waiting_rows: int = 0
    _touching: list[FileRow] = field(default_factory=list)
    _told: float = 0.0

    def all_of(self, scan: Scan, force: bool) -> None:
        """The whole run. Raises Cancelled between files and batches, with whole files written."""
        store = self.store
        if force or store.recipe() != self.recipe:
            self.rebuilt = True
            writes.reset(store, self.recipe)
        writes.prepare_vec0(store, self.recipe.identity.dims)
        writes.prepare_full_text(store, self.recipe.fts_tokenizer)
        known = store.known()
        differing = [note for note in scan.found if difference(note, known.get(note.path))]
        todo = differing if self.rebuilt or self.reason not in PATIENT else [
            note for note in differing if not waits(note, known.get(note.path), self.thresholds)]
        self.found, self.total = len(scan.found), len(todo)
        self.waiting, self.unchanged = len(differing) - len(todo), self.found - len(differing)
        self.listener(events.SyncStarted(time.time(), self.reason, self.total))
        self._remove(gone(scan, known)[0])
        for note in todo:
            self._check()
            self._look_at(note, known.get(note.path))
            if self._waiting_rows + len(self._touching) >= BATCH:
                self._flush()
        self._flush()
        self._give_vectors()

    def report(self, seconds: float) -> SyncReport:
        """What was done."""
        return SyncReport(
            reason=self.reason, found=self.found, indexed=self.indexed, touched=self.touched,
            unchanged=self.unchanged, removed=self.removed, failed=tuple(self.failed), chunks=self.chunks,
            embedded=self.embedded, reused=self.reused, rebuilt=self.rebuilt, cancelled=self.cancelled,
            error=self.error, seconds=seconds, waiting=self.waiting, claimed=self.claimed)

    def _check(self) -> None:
        if self.cancel.is_set():
            raise Cancelled

    def _remove(self, rows: Sequence[FileRow]) -> None:
        for batch in _batches(rows):
            self._check()
            writes.remove_files(self.store, batch)
            self.removed += len(batch)
            for row in batch:
                self.listener(events.FileRemoved(time.time(), row.path))

    def _look_at(self, note: Found, row: FileRow | None) -> None:
        started = time.time()
        try:
            read = sources.read(note)
            if row and row.hash == read.hash:
                self._same(row, read, started)
                return
            new = cut(read, note.source, self.recipe, started)
        except Unreadable as error:
            self._fail(note, row, error.message)
            return
        self._waiting.append(new)
        self._waiting_rows += 1 + len(new.chunks)

    def _same(self, row: FileRow, read: Document, started: float) -> None:
        stored = row._replace(mtime_ns=read.mtime_ns, size=read.size, state="ok", detail=remarks(read))
        if stored == row:
            self.unchanged += 1
        else:
            self.touched += 1
            self._touching.append(stored._replace(indexed_at=started))
        self._progress(row.path)

    def _fail(self, note: Found, row: FileRow | None, message: str) -> None:
        self.failed.append((note.path, message))
        if row is None or (row.state, row.detail) != ("failed", message):
            writes.fail_file(self.store, note.path, note.source, message)
            self.listener(events.FileFailed(time.time(), note.path, message))
        self._progress(note.path)

    def _flush(self) -> None:
        """Write what waits; of new text the vectors first, in batches, then all rows at once."""
        touching, self._touching = self._touching, []
        if touching:
            writes.touch_files(self.store, touching)
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if not waiting:
            return
        texts = {chunk.hash: chunk.text for new in waiting for chunk in new.chunks}
        embeddings, asked = self._embeddings(texts, ask=self.terms is None)
        writes.replace_files(self.store, waiting, self.recipe.identity.model, embeddings)
        for new in waiting:
            first = [chunk for chunk in new.chunks if not chunk.occurrence]
            needed = sum(chunk.hash in asked for chunk in first)
            self.indexed += 1
            self.chunks += len(first)
            self.reused += sum(chunk.hash in embeddings for chunk in first) - needed
            self.listener(events.FileIndexed(time.time(), new.path, len(first), needed))
            self._progress(new.path)

    def _give_vectors(self) -> None:
        """Make the vectors that an earlier sync could not make, or leave them to batch jobs."""
        after, space = 0, None
        if self.provider and self.terms:
            space = self.recipe.identity
            self.claimed = jobs.claim(self.store, space, self.terms)
        while self.provider and (rows := self.store.without_vector(after, BATCH, space)):
            after = rows[-1][0]
            embeddings, _ = self._embeddings({digest: text for _, digest, text in rows})
            found = {rowid: embeddings[digest] for rowid, digest, _ in rows if digest in embeddings}
            if found:
                writes.attach(self.store, found)

    def _embeddings(self, texts: dict[str, str], *, ask: bool = True) -> tuple[dict[str, int], frozenset[str]]:
        """Embedding ids of `texts` by hash, and which of them the provider was asked for.

        Some are missing when it must not be asked, and when it fails; then it is not asked again in this run.
        """
        if self.provider is None:
            return {}, frozenset()
        identity = self.recipe.identity
        known = self.store.cached(identity, list(texts))
        missing = [digest for digest in texts if ask and digest not in known]
        asked: set[str] = set()
        for batch in _chunked(missing, BATCH):
            self._check()
            try:
                vectors = self.provider.embed([texts[digest] for digest in batch], "document")
                _check_vectors(vectors, len(batch), identity)
            except ProviderError as error:
                self.error, self.provider = error.message, None
                break
            known |= writes.add_embeddings(self.store, identity, batch, vectors)
            asked.update(batch)
        self.embedded += len(asked)
        return known, frozenset(asked)

    def _progress(self, path: str) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._told >= _PROGRESS_SECONDS or self.done == self.total:
            self._told = now
            self.listener(events.SyncProgress(time.time(), self.done, self.total, path))


def _check_vectors(vectors: object, count: int, identity: Identity) -> None:
    """Raises ProviderError for an answer that must not be stored."""
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.shape != (count, identity.dims):
        raise ProviderError(
            f"{identity.provider} answered with vectors of another shape than {count} x {identity.dims}.",
            "Check the model's name and dimensions.")
    if not np.isfinite(vectors).all():
        raise ProviderError(f"{identity.provider} answered with vectors that hold no numbers.", "Check the model.")


def _batches(rows: Iterable[FileRow]) -> Iterator[list[FileRow]]:
    """`rows` in lists of about BATCH chunks."""
    batch: list[FileRow] = []
    for row in rows:
        batch.append(row)
        if sum(kept.chunks + 1 for kept in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _chunked(items: Iterable[str], size: int) -> Iterator[list[str]]:
    waiting = iter(items)
    while part := list(islice(waiting, size)):
        yield part
