"""A sync makes the index hold what is on disk.

What changed is done in place, file by file: a file's rows are replaced in one transaction, and vectors are kept as soon
as they are made. Whoever is killed leaves an index of whole files, and the next sync goes on from there. When the index
was made otherwise than is wanted now, another one is made beside it; the old one answers until the new one is whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled, MemoryTuiError, ProviderError, Unreadable
from memory_tui.events import Listener
from memory_tui.index import batch_jobs, embedding, index_write, rebuild, schema
from memory_tui.index.batch_jobs import BatchTerms
from memory_tui.index.database import Rows
from memory_tui.index.embedding import BATCH, HERE, Embedder, EmbeddingMode
from memory_tui.index.freshness import (
    DEVICES,
    MANY,
    PATIENT,
    Shrink,
    Thresholds,
    VanishedNotes,
    devices_from,
    devices_of,
    difference,
    recipe_for,
    sort_out,
    touched,
    waits,
)
from memory_tui.index.index_write import LastText, NewFile, cut, is_daily, last_text, remarks, shrank
from memory_tui.index.schema import Recipe
from memory_tui.index.store import CHANGED, IndexedNote, Store
from memory_tui.providers.base import Identity, Provider
from memory_tui.settings import Settings
from memory_tui.workspace import roots
from memory_tui.workspace.notes import ChangedWhileRead
from memory_tui.workspace.roots import Roots
from memory_tui.workspace.scan import NoteFile, Scan

Lost = Callable[[LastText, bytes | None], None]
"""Gets the text that the index holds of a daily note, and what the note holds now, None where it is gone."""
_PASSES = 3
"""How often a new index is brought up to date with what was saved meanwhile, before it is published."""
_PROGRESS_SECONDS = 0.1
_SETTLED_SECONDS = 0.5
"""Before that a rate says nothing."""


class SyncRun(Struct, frozen=True):
    """What a sync needs: the index, the notes that `scan` lists, who makes vectors, why it runs, whom it tells.

    `outage` is why there is no provider although one was chosen: then the vectors that are there stay. With `terms`
    many texts that lack a vector are left to batch jobs, which somebody else submits and follows. `accept_shrink` says
    that a person agreed to forget notes that vanished, `force` that the index is made anew. `manner` is how texts get
    to the provider. `lost` hears of daily notes that lost lines, before the index forgets these.
    """

    store: Store
    roots: Roots
    settings: Settings
    scan: Scan
    provider: Provider | None = None
    outage: str = ""
    manner: EmbeddingMode = HERE
    terms: BatchTerms | None = None
    reason: str = "manual"
    force: bool = False
    accept_shrink: bool = False
    stop: Stop = field(default_factory=Stop)
    listener: Listener = events.ignore
    lost: Lost | None = None


class SyncReport(Struct):
    """What one sync did, in files and chunks; `seconds` is wall time.

    `unchanged` files cost a stat, `touched` ones were read and hold the same text. `embedded` texts needed the
    provider, `reused` chunks have their vector from the cache. `error` is why the provider stopped, if it did; a
    `cancelled` sync has done a part of it. `changed` tells whether anything was written, `generation` is the one
    after it. `waiting` transcripts changed, but have not grown enough to be indexed by themselves. `shrink` is what a
    person has to agree to before it is forgotten, `postponed` why the index was not made anew although it should be.
    `claimed` texts wait for the provider's batch service. `shared` texts had a vector in the index of the same notes
    that is cut by the rules of another release; `unshared` is why that could not be read.
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
    shrink: Shrink | None = None
    postponed: str = ""
    shared: int = 0
    unshared: str = ""


def sync(run: SyncRun) -> SyncReport:
    """Bring the index up to date with what is on disk; make it anew on `force` or when its recipe is another.

    A file that cannot be read is noted and the others go on; when the provider fails, chunks are stored without
    vectors, which a later sync makes. Raises IndexUnavailable.
    """
    store, report = run.store, SyncReport(run.reason)
    started, before, error = time.monotonic(), store.generation(), ""
    try:
        recipe = recipe_for(run.roots, run.provider, run.settings, store.identity() if run.outage else None)
    except ProviderError as failure:
        run = replace(run, provider=None, outage=failure.message)
        recipe = recipe_for(run.roots, None, run.settings, store.identity())
    if run.force:
        embedding.clear_rejected(store)
    try:
        _bring_up_to_date(run, recipe, report)
        embedding.tidy(store)
        if not run.settings.on("cache.enabled"):
            index_write.prune(store, 0)
    except Cancelled:
        report.cancelled = True
    except MemoryTuiError as failure:
        error = failure.message
        raise
    finally:
        report.seconds, report.error = time.monotonic() - started, run.outage or report.error
        run.listener(
            events.SyncFinished(
                time.time(),
                report.reason,
                report.indexed,
                report.removed,
                len(report.failed),
                report.embedded,
                report.seconds,
                error or report.error or ("stopped" if report.cancelled else ""),
            )
        )
    report.generation = store.generation()
    report.changed = report.generation != before
    return report


def _bring_up_to_date(run: SyncRun, recipe: Recipe, report: SyncReport) -> None:
    """Do what changed in place; where the index has to be made anew, make another one beside it."""
    store, has = run.store, run.store.recipe()
    patient = has is not None and run.reason in PATIENT and not run.force
    if has is None:
        index_write.reset(store, recipe)
        has = recipe
    anew = has != recipe or (bool(store.indexed()) and run.force) or rebuild.waits(store, recipe)
    same_space = run.provider is not None and has.identity == recipe.identity
    patience = Thresholds.of(run.settings) if patient else None
    live = _Pass(run, store, has, run.provider if same_space else None, report, patience)
    live.all_of(run.scan)
    if not anew:
        rebuild.discard(store.path)
    elif out_of_reach := len(live.vanished.retained):
        report.postponed = f"{out_of_reach:,} indexed note{'s are' if out_of_reach > 1 else ' is'} out of reach"
    elif run.outage and has.identity.dims:
        report.postponed = run.outage
    else:
        _make_anew(run, recipe, report)


def _make_anew(run: SyncRun, recipe: Recipe, report: SyncReport) -> None:
    """Make an index beside the one that answers, and publish it; the report tells what goes into it."""
    with closing(rebuild.begin(run.store, recipe, run.stop)) as beside:
        report.indexed = report.touched = report.chunks = report.embedded = report.reused = report.shared = 0
        report.failed, report.rebuilt = (), True
        other = _Pass(run, beside, recipe, run.provider, report)
        scan = roots.scan(run.roots) if run.scan.quiet else run.scan
        for _ in range(_PASSES):
            run.stop.check()
            other.all_of(scan)
            scan = roots.scan(run.roots)
            rows = beside.indexed()
            if not any(difference(note, rows.get(note.path)) for note in scan.notes):
                break
        if (shrunk := _shrunk(run, beside, scan)) is not None:
            report.postponed, report.shrink = shrunk.reason, report.shrink or shrunk
        elif run.provider is not None and not other.embedder.working:
            report.postponed = other.embedder.error
        elif not rebuild.publish(run.store, beside, run.stop):
            raise Cancelled
        elif run.terms:
            # Leave the texts of the index that was published to jobs, or embed them where they are few.
            last = _Pass(run, run.store, recipe, run.provider, report)
            last.give_vectors()
            report.embedded, report.error = report.embedded + last.embedder.embedded, last.embedder.error


def _shrunk(run: SyncRun, beside: Store, scan: Scan) -> Shrink | None:
    """Return what a person has to agree to: more than half of the notes with text have none in the new index."""
    here, new = {note.path for note in scan.notes}, beside.indexed()
    had = [path for path, row in run.store.indexed().items() if row.chunks and path in here]
    lost = sorted(path for path in had if (row := new.get(path)) is None or not row.chunks)
    if run.accept_shrink or len(lost) < MANY or 2 * len(lost) <= len(had):
        return None
    reason = f"The new index would lack {len(lost):,} of {len(had):,} notes that are on disk"
    return Shrink(len(lost), len(had), reason, tuple(lost[:MANY]))


class _Pass:
    """One pass of a sync over one index, whose chunks are made after `recipe`; it counts in `report`."""

    def __init__(
        self,
        run: SyncRun,
        store: Store,
        recipe: Recipe,
        provider: Provider | None,
        report: SyncReport,
        patience: Thresholds | None = None,
    ) -> None:
        self.vanished = VanishedNotes()
        self.embedder = Embedder(store, recipe.identity, provider, run.stop.check, run.manner, run.roots)
        self._run, self._store, self._recipe, self._report = run, store, recipe, report
        self._tell, self._rebuilding, self._patience = run.listener, store is not run.store, patience
        self._new: list[NewFile] = []
        self._touching: list[IndexedNote] = []
        self._total = self._done = self._bytes = self._total_bytes = 0
        self._began = self._reported = 0.0

    def all_of(self, scan: Scan) -> None:
        """Do all of it. Raises Cancelled between files and batches, with whole files written."""
        store, report, rows = self._store, self._report, self._store.indexed()
        index_write.prepare_vec0(store, self._recipe.identity.dims)
        index_write.prepare_full_text(store, schema.tokenizer(self._recipe.fts_tokenizer))
        differing = [note for note in scan.notes if difference(note, rows.get(note.path))]
        patience = self._patience
        todo = [note for note in differing if patience is None or not waits(note, rows.get(note.path), patience)]
        report.found, report.unchanged = scan.total, scan.total - len(differing)
        if not self._rebuilding:
            report.waiting = len(differing) - len(todo)
        self._total, self._total_bytes = len(todo), sum(note.size for note in todo)
        self._done, self._bytes, self._began = 0, 0, time.monotonic()
        self._tell(events.SyncStarted(time.time(), report.reason, len(todo)))
        try:
            self._forget(scan)
            for note in todo:
                self._run.stop.check()
                self._look_at(note, rows.get(note.path))
                waiting = len(self._touching) + sum(1 + len(file.chunks) for file in self._new)
                if waiting >= max(BATCH, self._run.manner.texts):
                    self._flush()
            self._flush()
            self.give_vectors()
        finally:
            report.embedded += self.embedder.embedded
            report.shared += self.embedder.shared
            report.error, report.unshared = self.embedder.error, self.embedder.unshared
            self.embedder.embedded = self.embedder.shared = 0
        if todo:
            index_write.prepare_vec0(store, self._recipe.identity.dims)

    # --- files -----------------------------------------------------------------------------------------------------

    def _forget(self, scan: Scan) -> None:
        store, run, report = self._store, self._run, self._report
        before, now = devices_from(store.meta(DEVICES)), devices_of(run.roots)
        self.vanished = sort_out(scan, store.indexed(), run.roots, before, run.accept_shrink)
        if (shrink := self.vanished.shrink) is not None:
            report.shrink = report.shrink if self._rebuilding else shrink
            self._tell(events.ShrinkHeld(time.time(), shrink.missing, shrink.known, shrink.reason))
        for first in range(0, len(self.vanished.deleted), BATCH):
            run.stop.check()
            batch = self.vanished.deleted[first : first + BATCH]
            # What a person agreed to forget is not lost.
            for row in () if run.accept_shrink else batch:
                self._hand_over(row, None)
            index_write.remove_files(store, batch)
            report.removed += 0 if self._rebuilding else len(batch)
            for row in batch:
                self._tell(events.FileRemoved(time.time(), row.path))
        if now != before and not self.vanished.retained:
            index_write.remember(store, DEVICES, json.dumps(now, sort_keys=True))

    def _look_at(self, note: NoteFile, row: IndexedNote | None) -> None:
        started = time.time()
        try:
            document = roots.read(note)
            if row and row.hash == document.hash:
                now = row._replace(mtime_ns=document.mtime_ns, size=document.size, state="ok", detail=remarks(document))
                # A file that changed after it was read would be read over and over if that were not written down.
                if now == row and not touched(note, row):
                    self._report.unchanged += 1
                else:
                    self._report.touched += 1
                    self._touching.append(now._replace(indexed_at=started))
                self._progress(row.path, document.size)
                return
            self._hand_over(row, document.text)
            self._new.append(cut(document, note.source, self._recipe, started))
        except Unreadable as error:
            state = CHANGED if isinstance(error, ChangedWhileRead) else "failed"
            self._report.failed = tuple(dict.fromkeys((*self._report.failed, (note.path, error.message))))
            if row is None or (row.state, row.detail) != (state, error.message):
                index_write.fail_file(self._store, note.path, note.source, error.message, state)
                self._tell(events.FileFailed(time.time(), note.path, error.message))
            self._progress(note.path, note.size)

    def _hand_over(self, row: IndexedNote | None, now: str | None) -> None:
        """Hand over what the index holds of a daily note that lost lines, before it holds that no more."""
        lost = self._run.lost
        if lost is None or row is None or row.source != roots.MEMORY or not is_daily(row.path):
            return
        last = last_text(self._store, row.path)
        if last is not None and (now is None or shrank(last.text, now)):
            lost(last, None if now is None else now.encode("utf-8", "surrogateescape"))

    def _flush(self) -> None:
        """Write what waits: of new notes the vectors first where they take no time, then all rows at once."""
        (touching, self._touching), (new, self._new) = (self._touching, []), (self._new, [])
        if touching:
            index_write.touch_files(self._store, touching)
        texts = {chunk.hash: chunk.text for file in new for chunk in file.chunks}
        ids, fresh = self.embedder.ids(texts, ask=self._run.terms is None and not self._run.manner.later)
        if new:
            index_write.replace_files(self._store, new, self._recipe.identity.model, ids)
        for file in new:
            first = [chunk.hash for chunk in file.chunks if not chunk.occurrence]
            needed = sum(digest in fresh for digest in first)
            self._report.indexed += 1
            self._report.chunks += len(first)
            self._report.reused += sum(digest in ids for digest in first) - needed
            self._tell(events.FileIndexed(time.time(), file.path, len(first), needed))
            self._progress(file.path, file.size)

    def _progress(self, path: str, size: int) -> None:
        self._done += 1
        self._bytes += size
        now = time.monotonic()
        if now - self._reported < _PROGRESS_SECONDS and self._done < self._total:
            return
        self._reported, elapsed = now, now - self._began
        left: float | None = 0.0 if self._done >= self._total else None
        if left is None and elapsed >= _SETTLED_SECONDS and self._bytes:
            left = elapsed * max(0, self._total_bytes - self._bytes) / self._bytes
        rate, chunks = self._done / elapsed if elapsed > 0 else 0.0, self._report.chunks
        self._tell(
            events.SyncProgress(time.time(), self._done, self._total, path, chunks, rate, left, self._rebuilding)
        )

    # --- vectors ---------------------------------------------------------------------------------------------------

    def give_vectors(self) -> None:
        """Make the missing vectors, or leave them to batch jobs."""
        run, space = self._run, None
        # A batch service takes texts alone.
        if run.terms and run.roots.media is None and self.embedder.working:
            if self._rebuilding:
                return
            space = self._recipe.identity
            for texts in map(_texts, self._without_vector(space)):
                # What looks like a secret is noted, although somebody else asks for the others.
                self.embedder.lacking(texts, self.embedder.cached(texts))
            self._report.claimed = batch_jobs.claim(self._store, space, run.terms)
        done, began = 0, time.monotonic()
        for rows in self._without_vector(space):
            run.stop.check()
            ids, _ = self.embedder.ids(_texts(rows))
            ready = {rowid: ids[digest] for rowid, digest, _ in rows if digest in ids}
            if ready:
                index_write.attach(self._store, ready)
            done += len(rows)
            left, elapsed = self._store.lacking(rows[-1][0]), time.monotonic() - began
            rate = done / elapsed if elapsed > _SETTLED_SECONDS else 0.0
            self._tell(events.VectorsMade(time.time(), done, done + left, rate, left / rate if rate else None))

    def _without_vector(self, space: Identity | None) -> Iterator[Rows]:
        """Read the chunks that lack a vector, in pieces, for as long as one can be made."""
        after = 0
        while self.embedder.working and (rows := self._store.without_vector(after, self._run.manner.texts, space)):
            after = rows[-1][0]
            yield rows


def _texts(rows: Rows) -> dict[str, str]:
    return {digest: text for _, digest, text in rows}
