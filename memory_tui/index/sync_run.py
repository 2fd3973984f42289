"""One run of a sync over an index. It stops on request and measures its speed.

A file's rows are replaced in one transaction, and vectors are kept as soon as they are made. Whoever is killed leaves
an index of whole files, and the next run goes on from there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from memory_tui.core import events
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Unreadable
from memory_tui.core.events import Listener
from memory_tui.index import abilities, batch_jobs, index_write, mass_deletion
from memory_tui.index.batch_jobs import BatchTerms
from memory_tui.index.database import Rows
from memory_tui.index.embedding import BATCH, HERE, Embedder, EmbeddingMode
from memory_tui.index.mass_deletion import VanishedNotes
from memory_tui.index.note_state import LastText, Thresholds, difference, is_daily, last_text, shrank, touched, waits
from memory_tui.index.rows import CHANGED, IndexedNote
from memory_tui.workspace import roots
from memory_tui.workspace.notes import ChangedWhileRead, Document

if TYPE_CHECKING:
    from memory_tui.index.index_write import NewFile
    from memory_tui.index.schema import Recipe
    from memory_tui.index.store import Store
    from memory_tui.providers.base import Identity, Provider
    from memory_tui.workspace.roots import Roots
    from memory_tui.workspace.scan import Found, Scan

_SETTLED_SECONDS = 0.5
"""Before that a rate says nothing."""


class Meter:
    """Counts files and bytes of a sync; `total_bytes` are those that are to be read."""

    def __init__(self, total: int, total_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._started = clock()
        self._total_bytes = total_bytes
        self._bytes = 0

    def add(self, size: int) -> None:
        """One more file of `size` bytes is done."""
        self.done += 1
        self._bytes += size

    @property
    def rate(self) -> float:
        """Files a second so far, 0 before there are any."""
        elapsed = self._clock() - self._started
        return self.done / elapsed if elapsed > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate so far, by bytes; None before that can be told."""
        elapsed = self._clock() - self._started
        if self.done >= self.total:
            return 0.0
        if elapsed < _SETTLED_SECONDS or not self._bytes:
            return None
        return elapsed * max(0, self._total_bytes - self._bytes) / self._bytes


T = TypeVar("T")
Lost = Callable[[LastText, bytes | None], None]
"""Gets the text that the index holds of a daily note, and what the note holds now, None where it is gone."""
_PROGRESS_SECONDS = 0.1
_END = object()


class SyncOptions(Struct, frozen=True):
    """What a run is told: whom to tell, when to stop, why it runs, and what it may take for granted.

    `patience` lets transcripts wait until they have grown; `accepted` says that a person agreed to forget notes that
    vanished; `terms` that many texts are left to batch jobs; `rebuilding` that the index is made anew beside the old
    one; `manner` is how texts get to the provider. `lost` hears of daily notes that lost lines, before the
    index forgets these.
    """

    roots: Roots
    listener: Listener
    stop: Stop
    reason: str
    patience: Thresholds | None = None
    accepted: bool = False
    terms: BatchTerms | None = None
    rebuilding: bool = False
    manner: EmbeddingMode = HERE
    lost: Lost | None = None


class SyncCounts(Struct):
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


class SyncRun:
    """One run of `provider` over `store`, whose chunks are made after `recipe`."""

    def __init__(self, store: Store, recipe: Recipe, provider: Provider | None, options: SyncOptions) -> None:
        self.tally = SyncCounts()
        self.gone = VanishedNotes()
        self._store = store
        self._recipe = recipe
        self._options = options
        self._tell = options.listener
        self.embedder = Embedder(store, recipe.identity, provider, options.stop.check, options.manner, options.roots)
        self._waiting: list[NewFile] = []
        self._waiting_rows = 0
        self._touching: list[IndexedNote] = []
        self._meter = Meter(0, 0)
        self._told = 0.0
        self._after = 0

    def all_of(self, scan: Scan) -> None:
        """The whole run. Raises Cancelled between files and batches, with whole files written."""
        store, tally = self._store, self.tally
        index_write.prepare_vec0(store, self._recipe.identity.dims)
        index_write.prepare_full_text(store, abilities.tokenizer(self._recipe.fts_tokenizer))
        known = store.known()
        patience = self._options.patience
        differing = [note for note in scan.found if difference(note, known.get(note.path))]
        todo = (
            differing
            if patience is None
            else [note for note in differing if not waits(note, known.get(note.path), patience)]
        )
        tally.found = scan.total
        tally.waiting, tally.unchanged = len(differing) - len(todo), tally.found - len(differing)
        self._meter = Meter(len(todo), sum(note.size for note in todo))
        self._tell(events.SyncStarted(time.time(), self._options.reason, len(todo)))
        self._forget(scan)
        self.give_vectors(self._read(todo, known))
        if todo:
            index_write.prepare_vec0(store, self._recipe.identity.dims)

    def _read(self, todo: Sequence[Found], known: Mapping[str, IndexedNote]) -> Iterator[None]:
        """Make the notes of `todo` findable, at least by their words; pauses after each write."""
        for note in todo:
            self._options.stop.check()
            self._look_at(note, known.get(note.path))
            if self._waiting_rows + len(self._touching) >= max(BATCH, self._options.manner.texts):
                self._flush()
                yield
        self._flush()

    def _forget(self, scan: Scan) -> None:
        store, options = self._store, self._options
        before = mass_deletion.from_text(store.meta(mass_deletion.KEY))
        self.gone = mass_deletion.sort_out(scan, store.known(), options.roots, before, options.accepted)
        if (held := self.gone.shrink) is not None:
            self._tell(events.ShrinkHeld(time.time(), held.missing, held.known, held.reason))
        for batch in _batches(self.gone.deleted, lambda row: row.chunks):
            self._options.stop.check()
            # What a person agreed to forget is not lost.
            for row in () if options.accepted else batch:
                self._hand_over(row, None)
            index_write.remove_files(store, batch)
            self.tally.removed += len(batch)
            for row in batch:
                self._tell(events.FileRemoved(time.time(), row.path))
        now = mass_deletion.devices(options.roots)
        if now != before and not self.gone.retained:
            index_write.remember(store, mass_deletion.KEY, mass_deletion.to_text(now))

    def _look_at(self, note: Found, row: IndexedNote | None) -> None:
        # Late, because a sync that finds no change reads nothing.
        from memory_tui.index.note_rows import cut

        started = time.time()
        try:
            read = roots.read(note)
            if row and row.hash == read.hash:
                self._same(row, read, started, touched(note, row))
                return
            self._hand_over(row, read.text)
            new = cut(read, note.source, self._recipe, started)
        except Unreadable as error:
            self._fail(note, row, error)
            return
        self._waiting.append(new)
        self._waiting_rows += 1 + len(new.chunks)

    def _hand_over(self, row: IndexedNote | None, now: str | None) -> None:
        """Hand over what the index holds of a daily note that lost lines, before it holds that no more."""
        if self._options.lost is None or row is None or row.source != roots.MEMORY or not is_daily(row.path):
            return
        last = last_text(self._store, row.path)
        if last is not None and (now is None or shrank(last.text, now)):
            self._options.lost(last, None if now is None else now.encode("utf-8", "surrogateescape"))

    def _same(self, row: IndexedNote, read: Document, started: float, again: bool) -> None:
        """The text is as it was; `again` tells that it would be read over and over if that were not written down."""
        from memory_tui.index.note_rows import remarks

        stored = row._replace(mtime_ns=read.mtime_ns, size=read.size, state="ok", detail=remarks(read))
        if stored == row and not again:
            self.tally.unchanged += 1
        else:
            self.tally.touched += 1
            self._touching.append(stored._replace(indexed_at=started))
        self._progress(row.path, read.size)

    def _fail(self, note: Found, row: IndexedNote | None, error: Unreadable) -> None:
        state = CHANGED if isinstance(error, ChangedWhileRead) else "failed"
        self.tally.failed.append((note.path, error.message))
        if row is None or (row.state, row.detail) != (state, error.message):
            index_write.fail_file(self._store, note.path, note.source, error.message, state)
            self._tell(events.FileFailed(time.time(), note.path, error.message))
        self._progress(note.path, note.size)

    def _flush(self) -> None:
        """Write what waits; of new text the vectors first, in batches, then all rows at once."""
        touching, self._touching = self._touching, []
        if touching:
            index_write.touch_files(self._store, touching)
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if not waiting:
            return
        texts = {chunk.hash: chunk.text for new in waiting for chunk in new.chunks}
        ids, asked = self.embedder.ids(texts, ask=self._options.terms is None and not self._options.manner.later)
        for some in _batches(waiting, lambda new: len(new.chunks)):
            index_write.replace_files(self._store, some, self._recipe.identity.model, ids)
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
        # A batch service takes texts alone.
        space, terms = None, self._options.terms if self._options.roots.media is None else None
        if terms or not self._options.manner.later:
            for _ in reading or ():
                self._options.stop.check()
        if terms and self.embedder.working:
            if self._options.rebuilding:
                return
            space = self._recipe.identity
            for rows in self._without_vector(space):
                self.embedder.note_withheld({digest: text for _, digest, text in rows})
            self.tally.claimed = batch_jobs.claim(self._store, space, terms)
        done, asked, began = 0, deque[Rows](), time.monotonic()

        def texts() -> Iterator[dict[str, str]]:
            for rows in self._without_vector(space, reading):
                asked.append(rows)
                yield {digest: text for _, digest, text in rows}

        for ids in self.embedder.stream(texts()):
            rows = asked.popleft()
            found = {rowid: ids[digest] for rowid, digest, _ in rows if digest in ids}
            if found:
                index_write.attach(self._store, found)
            done += len(rows)
            left = sum(map(len, asked)) + self._store.lacking(self._after)
            rate = done / elapsed if (elapsed := time.monotonic() - began) > _SETTLED_SECONDS else 0.0
            self._tell(events.VectorsMade(time.time(), done, done + left, rate, left / rate if rate else None))

    def _without_vector(self, space: Identity | None, reading: Iterator[None] | None = None) -> Iterator[Rows]:
        """The chunks that lack a vector, in pieces, for as long as one can be made; more come while `reading`."""
        manner = self._options.manner
        self._after, most, more = 0, manner.texts if manner.later else max(BATCH, manner.texts), True
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
                    self._options.rebuilding,
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
