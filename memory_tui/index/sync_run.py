"""One run over an index: read what changed, cut it, embed what was never embedded, forget what is gone.

A file's rows are replaced in one transaction, and vectors are kept as soon as they are made. Whoever is killed leaves
an index of whole files, and the next run goes on from there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from memory_tui import events
from memory_tui.embed.provider import Identity, Provider
from memory_tui.errors import Cancelled, Unreadable
from memory_tui.events import Listener
from memory_tui.index import abilities, jobs, shrink, writes
from memory_tui.index.cutting import cut, remarks
from memory_tui.index.database import Rows
from memory_tui.index.deltas import Thresholds, waits
from memory_tui.index.embedding import BATCH, Embedder
from memory_tui.index.freshness import difference, touched
from memory_tui.index.jobs import Terms
from memory_tui.index.known import CHANGED, FileRow
from memory_tui.index.meter import Meter
from memory_tui.index.schema import Recipe
from memory_tui.index.shrink import Gone
from memory_tui.index.store import Store
from memory_tui.index.withheld import HERE, Manner
from memory_tui.index.writes import NewFile
from memory_tui.workspace import sources
from memory_tui.workspace.document import ChangedWhileRead, Document
from memory_tui.workspace.roots import Found, Roots, Scan

T = TypeVar("T")
_PROGRESS_SECONDS = 0.1
_END = object()


class Stop(Protocol):
    """Tells a run that it should give up."""

    def is_set(self) -> bool:
        """Whether it should."""
        ...


@dataclass(frozen=True, slots=True)
class Orders:
    """What a run is told: whom to tell, when to stop, why it runs, and what it may take for granted.

    `patience` lets transcripts wait until they have grown; `accepted` says that a person agreed to forget notes that
    vanished; `terms` that many texts are left to batch jobs; `rebuilding` that the index is made anew beside the old
    one; `manner` is how texts get to the provider.
    """

    roots: Roots
    listener: Listener
    stop: Stop
    reason: str
    patience: Thresholds | None = None
    accepted: bool = False
    terms: Terms | None = None
    rebuilding: bool = False
    manner: Manner = HERE


@dataclass
class Tally:
    """What a run has done so far, in files and chunks."""

    found: int = 0
    unchanged: int = 0
    touched: int = 0
    waiting: int = 0
    indexed: int = 0
    removed: int = 0
    chunks: int = 0
    reused: int = 0
    claimed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


class Run:
    """One run of `provider` over `store`, whose chunks are made after `recipe`."""

    def __init__(self, store: Store, recipe: Recipe, provider: Provider | None, orders: Orders) -> None:
        self.tally = Tally()
        self.gone = Gone()
        self._store = store
        self._recipe = recipe
        self._orders = orders
        self._tell = orders.listener
        self.embedder = Embedder(store, recipe.identity, provider, self.check, orders.manner)
        self._waiting: list[NewFile] = []
        self._waiting_rows = 0
        self._touching: list[FileRow] = []
        self._meter = Meter(0, 0)
        self._told = 0.0
        self._after = 0

    def all_of(self, scan: Scan) -> None:
        """The whole run. Raises Cancelled between files and batches, with whole files written."""
        store, tally = self._store, self.tally
        writes.prepare_vec0(store, self._recipe.identity.dims)
        writes.prepare_full_text(store, abilities.tokenizer(self._recipe.fts_tokenizer))
        known = store.known()
        patience = self._orders.patience
        differing = [note for note in scan.found if difference(note, known.get(note.path))]
        todo = (
            differing
            if patience is None
            else [note for note in differing if not waits(note, known.get(note.path), patience)]
        )
        tally.found = scan.total
        tally.waiting, tally.unchanged = len(differing) - len(todo), tally.found - len(differing)
        self._meter = Meter(len(todo), sum(note.size for note in todo))
        self._tell(events.SyncStarted(time.time(), self._orders.reason, len(todo)))
        self._forget(scan)
        self.give_vectors(self._read(todo, known))
        if todo:
            writes.prepare_vec0(store, self._recipe.identity.dims)

    def _read(self, todo: Sequence[Found], known: Mapping[str, FileRow]) -> Iterator[None]:
        """Make the notes of `todo` findable, at least by their words; pauses after each write."""
        for note in todo:
            self.check()
            self._look_at(note, known.get(note.path))
            if self._waiting_rows + len(self._touching) >= max(BATCH, self._orders.manner.texts):
                self._flush()
                yield
        self._flush()

    def check(self) -> None:
        """Raises Cancelled when the work is to be given up."""
        if self._orders.stop.is_set():
            raise Cancelled

    def _forget(self, scan: Scan) -> None:
        store, orders = self._store, self._orders
        before = shrink.from_text(store.meta(shrink.KEY))
        self.gone = shrink.sort_out(scan, store.known(), orders.roots, before, orders.accepted)
        if (held := self.gone.shrink) is not None:
            self._tell(events.ShrinkHeld(time.time(), held.missing, held.known, held.reason))
        for batch in _batches(self.gone.deleted, lambda row: row.chunks):
            self.check()
            writes.remove_files(store, batch)
            self.tally.removed += len(batch)
            for row in batch:
                self._tell(events.FileRemoved(time.time(), row.path))
        now = shrink.devices(orders.roots)
        if now != before and not self.gone.held:
            writes.remember(store, shrink.KEY, shrink.to_text(now))

    def _look_at(self, note: Found, row: FileRow | None) -> None:
        started = time.time()
        try:
            read = sources.read(note)
            if row and row.hash == read.hash:
                self._same(row, read, started, touched(note, row))
                return
            new = cut(read, note.source, self._recipe, started)
        except Unreadable as error:
            self._fail(note, row, error)
            return
        self._waiting.append(new)
        self._waiting_rows += 1 + len(new.chunks)

    def _same(self, row: FileRow, read: Document, started: float, again: bool) -> None:
        """The text is as it was; `again` tells that it would be read over and over if that were not written down."""
        stored = row._replace(mtime_ns=read.mtime_ns, size=read.size, state="ok", detail=remarks(read))
        if stored == row and not again:
            self.tally.unchanged += 1
        else:
            self.tally.touched += 1
            self._touching.append(stored._replace(indexed_at=started))
        self._progress(row.path, read.size)

    def _fail(self, note: Found, row: FileRow | None, error: Unreadable) -> None:
        state = CHANGED if isinstance(error, ChangedWhileRead) else "failed"
        self.tally.failed.append((note.path, error.message))
        if row is None or (row.state, row.detail) != (state, error.message):
            writes.fail_file(self._store, note.path, note.source, error.message, state)
            self._tell(events.FileFailed(time.time(), note.path, error.message))
        self._progress(note.path, note.size)

    def _flush(self) -> None:
        """Write what waits; of new text the vectors first, in batches, then all rows at once."""
        touching, self._touching = self._touching, []
        if touching:
            writes.touch_files(self._store, touching)
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if not waiting:
            return
        texts = {chunk.hash: chunk.text for new in waiting for chunk in new.chunks}
        ids, asked = self.embedder.ids(texts, ask=self._orders.terms is None and not self._orders.manner.later)
        for some in _batches(waiting, lambda new: len(new.chunks)):
            writes.replace_files(self._store, some, self._recipe.identity.model, ids)
        for new in waiting:
            first = [chunk for chunk in new.chunks if not chunk.occurrence]
            needed = sum(chunk.hash in asked for chunk in first)
            self.tally.indexed += 1
            self.tally.chunks += len(first)
            self.tally.reused += sum(chunk.hash in ids for chunk in first) - needed
            self._tell(events.FileIndexed(time.time(), new.path, len(first), needed))
            self._progress(new.path, new.size)

    def give_vectors(self, reading: Iterator[None] | None = None) -> None:
        """Make the missing vectors, or leave them to batch jobs; a slow provider works while notes are read."""
        space, terms = None, self._orders.terms
        if terms or not self._orders.manner.later:
            for _ in reading or ():
                self.check()
        if terms and self.embedder.working:
            if self._orders.rebuilding:
                return
            space = self._recipe.identity
            for rows in self._without_vector(space):
                self.embedder.ids({digest: text for _, digest, text in rows}, ask=False)
            self.tally.claimed = jobs.claim(self._store, space, terms)
        done, asked = 0, deque[Rows]()

        def texts() -> Iterator[dict[str, str]]:
            for rows in self._without_vector(space, reading):
                asked.append(rows)
                yield {digest: text for _, digest, text in rows}

        for ids in self.embedder.stream(texts()):
            rows = asked.popleft()
            found = {rowid: ids[digest] for rowid, digest, _ in rows if digest in ids}
            if found:
                writes.attach(self._store, found)
            done += len(rows)
            left = sum(map(len, asked)) + self._store.lacking(self._after)
            self._tell(events.VectorsMade(time.time(), done, done + left))

    def _without_vector(self, space: Identity | None, reading: Iterator[None] | None = None) -> Iterator[Rows]:
        """The chunks that lack a vector, in pieces, for as long as one can be made; more come while `reading`."""
        self._after, most, more = 0, max(BATCH, self._orders.manner.texts), True
        while more:
            # When the notes are read, what was written last is still to be looked at.
            more = next(reading, _END) is not _END if reading else False
            while self.embedder.working and (rows := self._store.without_vector(self._after, most, space)):
                self._after = rows[-1][0]
                yield rows

    def _progress(self, path: str, size: int) -> None:
        meter = self._meter
        meter.add(size)
        now = time.monotonic()
        if now - self._told >= _PROGRESS_SECONDS or meter.done == meter.total:
            self._told = now
            self._tell(
                events.SyncProgress(
                    time.time(),
                    meter.done,
                    meter.total,
                    path,
                    self.tally.chunks,
                    meter.rate,
                    meter.seconds_left,
                    self._orders.rebuilding,
                )
            )


def _batches(files: Iterable[T], chunks: Callable[[T], int]) -> Iterator[list[T]]:
    """`files` in lists of about BATCH rows; `chunks` counts those of one."""
    batch: list[T] = []
    size = 0
    for file in files:
        batch.append(file)
        size += chunks(file) + 1
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
