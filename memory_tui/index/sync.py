"""A sync makes the index hold what is on disk.

What changed is done in place, file by file: a file's rows are replaced in one transaction, and vectors are kept as soon
as they are made. Whoever is killed leaves an index of whole files, and the next sync goes on from there. When the index
was made otherwise than is wanted now, another one is made beside it; the old one answers until the new one is whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.config.settings import Settings
from memory_tui.durable import unmoved
from memory_tui.errors import Cancelled, MemoryTuiError, ProviderError, Unreadable
from memory_tui.events import Listener
from memory_tui.formatting import plural
from memory_tui.index import embedding, index_write
from memory_tui.index.database import KEYWORDS_ONLY, Recipe, Rows, rebuild_of, scope_hash
from memory_tui.index.embedding import BATCH, HERE, BatchJobs, Embedder, EmbeddingMode
from memory_tui.index.index_write import NewFile, cut, remarks
from memory_tui.index.store import CHANGED, DEVICES, IndexedNote, Store
from memory_tui.providers import Identity, Provider
from memory_tui.workspace import roots, transcripts
from memory_tui.workspace.chunking import MAX_INPUT_BYTES, sealed, windows
from memory_tui.workspace.notes import ChangedWhileRead
from memory_tui.workspace.roots import FOLDER, MEMORY, WORKSPACE, Roots, devices_of, missing
from memory_tui.workspace.scan import LeftOut, NoteFile, Scan

PATIENT = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "resume"})
"""Reasons of syncs that nobody asked for by name."""
MANY = 5
"""Fewer notes that vanish at once are believed, because a person deletes a few at a time; not so a root with all."""


# --- one note -------------------------------------------------------------------------------------------------------


def waits(file: NoteFile, row: IndexedNote | None, settings: Settings) -> str:
    """Return what a changed transcript waits for, in words; empty when it is due, or is not a transcript.

    It is due with at least as many bytes or lines more as set (OpenClaw 2026.3.13), with any where that is 0; one that
    shrank, or was never indexed, counts whole.
    """
    changed = row is None or (row.state == "ok" and row.hash and row.size != file.size)
    if file.source != transcripts.SOURCE or not changed:
        return ""
    least_bytes = settings.whole("sync.sessions.deltaBytes")
    least_lines = settings.whole("sync.sessions.deltaMessages")
    # What was indexed before counts no more; of a file that shrank, or is new, all counts.
    start = row.size if row and file.size >= row.size else 0
    size = file.size - start
    if size >= max(1, least_bytes):
        return ""
    lines = 0
    if least_lines > 0:
        # The sync that reads it tells why it cannot be read.
        with suppress(OSError):
            lines = transcripts.newlines(file, start)
    if lines >= max(1, least_lines):
        return ""
    return (
        f"{'grew by' if row else 'new, with'} {size:,} bytes and {plural(lines, 'line')}; "
        f"it is indexed by itself after {least_bytes:,} bytes or {least_lines:,} lines, or now by memory-tui index"
    )


State = Literal["pending", "failed", "changed while read", "missing root", "excluded"]


class FileState(Struct, frozen=True):
    """A note that is not searchable as it is on disk, and why.

    pending: the next sync indexes or forgets it (`detail` says new, changed, deleted, rebuild, ...). failed: it could
    not be read or cut. changed while read: somebody was writing it each time. missing root: its folder has vanished,
    and what was indexed of it stays. excluded: it is no note, by a rule. One that is `patient` has not grown enough to
    be indexed by itself.
    """

    path: str
    state: State
    detail: str
    patient: bool = False


def difference(file: NoteFile, row: IndexedNote | None) -> str:
    """Return how a note on disk differs from its row by size and time; unsure when only its text can tell."""
    if row is None:
        return "new"
    if row.state != "ok":
        return "failed"
    if not row.hash:
        return "rebuild"
    if file.mtime_ns != row.mtime_ns or file.size != row.size:
        return "changed"
    indexed_ns = round(row.indexed_at * 1e9)
    # `ctime_ns` tells that the file, or only its times, changed after it was read.
    if not unmoved(file.mtime_ns, indexed_ns) or file.ctime_ns > indexed_ns:
        return "unsure"
    return ""


def state_of(note: NoteFile, row: IndexedNote | None, settings: Settings | None = None) -> FileState | None:
    """Return how a note differs from its row; None when at most its times do. By `settings` transcripts may wait."""
    differs = difference(note, row)
    if row is not None and differs == "unsure":
        try:
            differs = "" if roots.read(note).hash == row.hash else "changed"
        except Unreadable:
            differs = "changed"
    if row is not None and differs == "failed":
        return FileState(note.path, "changed while read" if row.state == CHANGED else "failed", row.detail)
    if not differs:
        return None
    patience = waits(note, row, settings) if settings else ""
    return FileState(note.path, "pending", patience or differs, bool(patience))


# --- all notes ------------------------------------------------------------------------------------------------------


class Shrink(Struct, frozen=True):
    """`missing` of `known` notes vanished at once: why that is doubted, and a few of their paths."""

    missing: int
    known: int
    reason: str
    examples: tuple[str, ...] = ()


class Freshness(Struct, frozen=True):
    """How many of `total` notes on disk are `fresh`, those that are not by path, and what is no note.

    `rebuild` says what the index was made with that is otherwise now; then no note is fresh. `shrink` is what a
    person has to agree to before it is forgotten. `moved` are the stored paths of roots on another device than before,
    where notes are missing.
    """

    total: int
    fresh: int
    stale: Mapping[str, FileState]
    left_out: tuple[LeftOut, ...]
    rebuild: tuple[str, ...] = ()
    shrink: Shrink | None = None
    moved: Set[str] = frozenset()

    def of(self, *states: str) -> tuple[FileState, ...]:
        """Return the notes in one of `states`."""
        return tuple(note for note in self.stale.values() if note.state in states)

    @property
    def pending(self) -> tuple[FileState, ...]:
        """Notes that the next sync will index or forget."""
        return self.of("pending")

    def differs(self, other: Freshness) -> bool:
        """Return whether what a person sees of it is otherwise."""
        return (self.fresh, self.stale, self.left_out) != (other.fresh, other.stale, other.left_out)

    def as_dict(self) -> dict[str, Any]:
        """Return what `status --json` prints: numbers, and a path with its reason for each note that is not fresh."""

        def listed(*states: State) -> list[dict[str, str]]:
            """Return path and reason of each note in one of `states`."""
            return [{"path": note.path, "detail": note.detail} for note in self.of(*states)]

        return {
            "total": self.total,
            "fresh": self.fresh,
            "pending": listed("pending"),
            "failed": listed("failed"),
            "leftOut": [{"path": left.path, "detail": left.reason} for left in self.left_out],
            "unsettled": listed("changed while read"),
            "missing": listed("missing root"),
            "rebuild": list(self.rebuild),
            "shrink": self.shrink,
        }


def compare(
    scan: Scan,
    rows: Mapping[str, IndexedNote],
    roots: Roots,
    settings: Settings | None = None,
    *,
    rebuild: tuple[str, ...] = (),
    devices: Mapping[str, int] = MappingProxyType({}),
) -> Freshness:
    """Return the freshness of every note of `scan`, given the `rows` of the index by path.

    With `settings` a changed transcript says what it waits for; `rebuild` is what `differences` says of the
    index's recipe; `devices` is for `sort_out`.
    """
    states = (state_of(note, rows.get(note.path), settings) for note in scan.notes)
    stale = {state.path: state for state in states if state is not None}
    if rebuild:
        stale = {note.path: stale.get(note.path) or FileState(note.path, "pending", "rebuild") for note in scan.notes}
    fresh = scan.total - len(stale)
    gone = sort_out(scan, rows, roots, devices)
    stale |= {row.path: FileState(row.path, "pending", "deleted") for row in gone.deleted}
    stale |= {state.path: state for state in gone.retained}
    return Freshness(scan.total, fresh, stale, scan.left_out, rebuild=rebuild, shrink=gone.shrink, moved=gone.moved)


def recipe_of(
    roots: Roots, settings: Settings, identity: Identity | None, max_input_bytes: int = MAX_INPUT_BYTES
) -> Recipe:
    """Return what an index of `roots` is made with, whose vectors are in the space `identity`; None for no vectors."""
    identity = identity or KEYWORDS_ONLY
    return Recipe(
        model=identity.model,
        provider=identity.provider,
        provider_key=identity.key,
        vector_dims=identity.dims,
        sources=tuple(sorted(roots.sources)),
        scope_hash=scope_hash(roots.extra, roots.patterns, roots.media),
        chunk_tokens=settings.whole("chunking.tokens"),
        chunk_overlap=settings.whole("chunking.overlap"),
        chunk_bytes=min(max_input_bytes, MAX_INPUT_BYTES),
        fts_tokenizer=settings.word("store.fts.tokenizer"),
        chunking=settings.profile.chunking,
    )


# --- notes that vanished -------------------------------------------------------------------------------------------


class VanishedNotes(Struct):
    """What `sort_out` returns: rows that are `deleted`, notes that are `retained`, and what a person is asked first.

    `moved` are the stored paths of roots on another device than before, where notes are missing.
    """

    deleted: list[IndexedNote] = field(default_factory=list)
    retained: list[FileState] = field(default_factory=list)
    shrink: Shrink | None = None
    moved: set[str] = field(default_factory=set)


def sort_out(
    scan: Scan, rows: Mapping[str, IndexedNote], roots: Roots, devices: Mapping[str, int], accepted: bool = False
) -> VanishedNotes:
    """Sort the `rows` whose notes `scan` lacks; `accepted` says that a person agreed to forget them.

    `devices` holds the device (`st_dev`) of each root by stored path. A root that is on another one now, or was when it
    was scanned, was mounted or unmounted: notes that are missing there are retained.
    """
    vanished = VanishedNotes()
    gone = [rows[path] for path in missing(roots, scan, rows.keys())]
    if not gone:
        return vanished
    doubts = _unreachable(scan, roots, accepted)
    # The devices at the scan and now: a disk that was mounted only meanwhile tells nothing of its notes either. A root
    # whose device nobody remembers counts as one that stayed.
    looks = scan.devices, devices_of(roots)
    moved = {path for look in looks for path, device in look.items() if device != devices.get(path, device)}
    moved = set() if accepted else moved - doubts.keys()
    why = "is on another device than before: was something mounted or unmounted?"
    doubts |= {path: FileState(path, "missing root", f"{path} {why}") for path in moved}
    for row in gone:
        folder = next((path for path in _upwards(row.path) if path in doubts), None)
        if folder is None:
            vanished.deleted.append(row)
            continue
        vanished.retained.append(replace(doubts[folder], path=row.path))
        if folder in moved:
            vanished.moved.add(folder)
    if not accepted:
        _doubt(vanished, rows, roots, {item.path for item in scan.left_out if item.rule == "missing root"})
    return vanished


def in_scope(roots: Roots, path: str) -> bool:
    """Return whether a note at the stored `path` would be read, as the roots are now."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.SOURCE in roots.sources
    places = (FOLDER, *(roots.stored(extra) for extra in roots.extra))
    inside = path in roots.root_notes or any(place in _upwards(path) for place in places)
    return inside and MEMORY in roots.sources and not any(map(roots.excludes, _upwards(path)))


def _doubt(vanished: VanishedNotes, rows: Mapping[str, IndexedNote], roots: Roots, absent: set[str]) -> None:
    """Move notes from `deleted` to `retained` where too many vanished at once, and note the `shrink` to agree to.

    Too many are more than half of the notes that should be there, or the notes of a root in `absent`, which is gone.
    """
    lost = [row for row in vanished.deleted if in_scope(roots, row.path)]
    few = len(lost) < MANY
    if few and not absent:
        return
    expected = sum(in_scope(roots, path) for path in rows)
    if few or 2 * len(lost) <= expected:
        lost = [row for row in lost if not absent.isdisjoint(_upwards(row.path))]
    if not lost:
        return
    reason = f"{len(lost):,} of {expected:,} notes vanished at once"
    vanished.shrink = Shrink(len(lost), expected, reason, tuple(sorted(row.path for row in lost)[:MANY]))
    doubtful = {row.id for row in lost}
    vanished.deleted = [row for row in vanished.deleted if row.id not in doubtful]
    vanished.retained += [FileState(row.path, "pending", f"deleted? {reason}") for row in lost]


def _unreachable(scan: Scan, roots: Roots, accepted: bool) -> dict[str, FileState]:
    """Return the places whose notes can come back, each with why; what a person `accepted` to forget is left out.

    A missing root inside the workspace is none of them, because it was mostly deleted. A link in place of a folder
    whose notes were read is nobody's wish to forget them.
    """
    folders = {FOLDER, *map(roots.stored, roots.extra)}
    doubts = {}
    for item in scan.left_out:
        unreadable = item.rule == "unreadable"
        link = item.rule == "symlink" and item.path in folders
        away = item.rule == "missing root" and (item.path == WORKSPACE or _outside(item.path))
        if unreadable or (not accepted and (link or away)):
            state: State = "failed" if unreadable else "missing root"
            doubts[item.path] = FileState(item.path, state, f"{item.path}: {item.detail}")
    return doubts


def _outside(path: str) -> bool:
    """Return whether a stored path leads out of the workspace: upwards, to the disk's root, or to another drive."""
    # Behind the letter of a drive stands a colon.
    return path.startswith(("../", "/")) or ":" in path[:3]


def _upwards(path: str) -> Iterator[str]:
    """Return `path` and each folder above it, the workspace last where it is below that."""
    yield from roots.upwards(path)
    if not _outside(path):
        yield WORKSPACE


_PASSES = 3
"""How often a new index is brought up to date with what was saved meanwhile, before it is published."""
_LARGE_BYTES = 1 << 20
"""A note from so many bytes on is indexed last, and after the others are written, so that these answer meanwhile."""
_PROGRESS_SECONDS = 0.1
_SETTLED_SECONDS = 0.5
"""Before that a rate says nothing."""


class SyncRun(Struct, frozen=True):
    """What a sync needs: the index, the notes that `scan` lists, who makes vectors, why it runs, whom it tells.

    `outage` is why there is no provider although one was chosen: then the vectors that are there stay. Many texts that
    lack a vector are left to the job of `batches`. `accept_shrink` says that a person agreed to forget notes that
    vanished, `force` that the index is made anew. `manner` is how texts get to the provider.
    """

    store: Store
    roots: Roots
    settings: Settings
    scan: Scan
    batches: BatchJobs | None = None
    reason: str = "manual"
    force: bool = False
    accept_shrink: bool = False
    stop: Stop = field(default_factory=Stop)
    listener: Listener = events.ignore
    provider: Provider | None = None
    outage: str = ""
    manner: EmbeddingMode = HERE


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
    started, before = time.monotonic(), store.generation()
    # While a provider is out of order its vectors stay.
    identity = store.identity() if run.outage else None
    most_bytes = MAX_INPUT_BYTES
    try:
        if run.provider:
            identity = run.provider.identity
            most_bytes = run.provider.max_input_bytes
    except ProviderError as failure:
        run = replace(run, provider=None, outage=failure.message)
        identity = store.identity()
    recipe = recipe_of(run.roots, run.settings, identity, most_bytes)
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
        report.error = failure.message
        raise
    finally:
        report.seconds = time.monotonic() - started
        report.error = report.error or run.outage
        counts = report.indexed, report.removed, len(report.failed), report.embedded
        error = report.error or ("stopped" if report.cancelled else "")
        run.listener(events.SyncFinished(time.time(), report.reason, *counts, report.seconds, error))
    report.generation = store.generation()
    report.changed = report.generation != before
    return report


def _bring_up_to_date(run: SyncRun, recipe: Recipe, report: SyncReport) -> None:
    """Do what changed in place; where the index has to be made anew, make another one beside it."""
    store = run.store
    current = store.recipe()
    patient = current is not None and run.reason in PATIENT and not run.force
    if current is None:
        index_write.reset(store, recipe)
        current = recipe
    begun = rebuild_of(store.path).exists()
    forced = run.force and bool(store.indexed())
    is_due = current != recipe or forced or (begun and index_write.rebuild_waits(store, recipe))
    # Vectors of another space have no place in this index.
    live_run = run if current.identity == recipe.identity else replace(run, provider=None)
    live = _Pass(live_run, store, current, report, patience=run.settings if patient else None)
    live.bring_up_to_date(run.scan)
    if not is_due:
        if begun:
            index_write.discard_rebuild(store.path)
    elif out_of_reach := len(live.vanished.retained):
        report.postponed = f"{out_of_reach:,} indexed note{'s are' if out_of_reach > 1 else ' is'} out of reach"
    elif run.outage and current.identity.dims:
        report.postponed = run.outage
    else:
        _make_anew(run, recipe, report)


def _make_anew(run: SyncRun, recipe: Recipe, report: SyncReport) -> None:
    """Make an index beside the one that answers, and publish it; the report tells what goes into it."""
    with closing(index_write.begin_rebuild(run.store, recipe, run.stop)) as beside:
        # What the pass over the old index counted goes into no new one.
        report.indexed = report.touched = report.chunks = report.embedded = report.reused = report.shared = 0
        report.failed, report.rebuilt = (), True
        rebuild = _Pass(run, beside, recipe, report)
        # Notes that are as they were are counted and not listed; a new index needs all of them.
        scan = roots.scan(run.roots) if run.scan.quiet else run.scan
        for _ in range(_PASSES):
            run.stop.check()
            rebuild.bring_up_to_date(scan)
            # Once more where notes were saved while the pass ran.
            scan = roots.scan(run.roots)
            rows = beside.indexed()
            if not any(difference(note, rows.get(note.path)) for note in scan.notes):
                break
        if (shrunk := _shrunk(run, beside, scan)) is not None:
            report.postponed, report.shrink = shrunk.reason, report.shrink or shrunk
        elif run.provider is not None and rebuild.embedder.provider is None:
            report.postponed = rebuild.embedder.error
        elif not index_write.publish_rebuild(run.store, beside, run.stop):
            raise Cancelled
        elif run.batches:
            # Leave the texts of the index that was published to jobs, or embed them where they are few.
            published = _Pass(run, run.store, recipe, report)
            published.give_vectors()
            report.embedded += published.embedder.embedded
            report.error = published.embedder.error


def _shrunk(run: SyncRun, beside: Store, scan: Scan) -> Shrink | None:
    """Return what a person has to agree to: more than half of the notes with text have none in the new index.

    None where it is not so many, or where that was agreed to.
    """
    on_disk = {note.path for note in scan.notes}
    before = {path for path, row in run.store.indexed().items() if row.chunks and path in on_disk}
    after = {path for path, row in beside.indexed().items() if row.chunks}
    lost = sorted(before - after)
    if run.accept_shrink or len(lost) < MANY or 2 * len(lost) <= len(before):
        return None
    reason = f"The new index would lack {len(lost):,} of {len(before):,} notes that are on disk"
    return Shrink(len(lost), len(before), reason, tuple(lost[:MANY]))


class _Pass:
    """One pass of a sync over one index, `store`, whose chunks are made after `recipe`; it counts in `report`.

    By the settings `patience` transcripts wait until they have grown enough; without any none waits.
    """

    def __init__(
        self, run: SyncRun, store: Store, recipe: Recipe, report: SyncReport, patience: Settings | None = None
    ) -> None:
        self.vanished = VanishedNotes()
        self.embedder = Embedder(store, recipe.identity, run.provider, run.stop, run.manner, run.roots)
        self._run, self._store, self._recipe, self._report = run, store, recipe, report
        self._tell, self._patience = run.listener, patience
        self._rebuilding = store is not run.store
        self._new: list[NewFile] = []
        """Notes that were cut, and wait to be written."""
        self._touching: list[IndexedNote] = []
        """Rows of notes whose text is as it was, with their new times, which wait too."""
        self._total = self._done = 0
        self._reported = 0.0
        """When progress was last told, by the monotonic clock."""

    def bring_up_to_date(self, scan: Scan) -> None:
        """Make the index hold the notes of `scan`. Raises Cancelled between files and batches, whole files written."""
        store, report, patience = self._store, self._report, self._patience
        rows = store.indexed()
        index_write.prepare_tables(store, self._recipe)
        differing = [note for note in scan.notes if difference(note, rows.get(note.path))]
        due = [note for note in differing if patience is None or not waits(note, rows.get(note.path), patience)]
        report.found = scan.total
        report.unchanged = scan.total - len(differing)
        if not self._rebuilding:
            report.waiting = len(differing) - len(due)
        self._total, self._done = len(due), 0
        self._tell(events.SyncStarted(time.time(), report.reason, len(due)))
        try:
            self._forget(scan)
            # Before a large note what waits is written, so that it is found meanwhile.
            for note in sorted(due, key=lambda note: note.size > _LARGE_BYTES):
                self._run.stop.check()
                if note.size > _LARGE_BYTES:
                    self._flush()
                self._look_at(note, rows.get(note.path))
                unwritten = len(self._touching) + sum(1 + len(file.chunks) for file in self._new)
                if unwritten >= max(BATCH, self._run.manner.texts):
                    self._flush()
            self._flush()
            self.give_vectors()
        finally:
            report.embedded += self.embedder.embedded
            report.shared += self.embedder.shared
            report.error, report.unshared = self.embedder.error, self.embedder.unshared
            # A rebuild passes several times, and each pass adds what it made.
            self.embedder.embedded = self.embedder.shared = 0
        # The rows that were replaced left empty places in vec0.
        if due:
            index_write.prepare_tables(store, self._recipe)

    # --- files -----------------------------------------------------------------------------------------------------

    def _forget(self, scan: Scan) -> None:
        """Remove the notes that are gone; those whose folder may only be away are kept, and told of."""
        store, run, report = self._store, self._run, self._report
        remembered, devices = store.devices(), devices_of(run.roots)
        self.vanished = sort_out(scan, store.indexed(), run.roots, remembered, run.accept_shrink)
        if (shrink := self.vanished.shrink) is not None:
            if not self._rebuilding:
                report.shrink = shrink
            self._tell(events.ShrinkHeld(time.time(), shrink.missing, shrink.known, shrink.reason))
        for first in range(0, len(self.vanished.deleted), BATCH):
            run.stop.check()
            batch = self.vanished.deleted[first : first + BATCH]
            index_write.remove_files(store, batch)
            if not self._rebuilding:
                report.removed += len(batch)
            for row in batch:
                self._tell(events.FileRemoved(time.time(), row.path))
        # Devices that changed during the scan, or whose notes are missing, must not be remembered as the right ones.
        if devices == scan.devices and devices != remembered and not self.vanished.retained:
            index_write.remember(store, DEVICES, json.dumps(devices, sort_keys=True))

    def _look_at(self, note: NoteFile, row: IndexedNote | None) -> None:
        """Read a note that may have changed: cut it where its text did, else write down its times."""
        started = time.time()
        try:
            document = roots.read(note)
            if row and row.hash == document.hash:
                new = row._replace(mtime_ns=document.mtime_ns, size=document.size, state="ok", detail=remarks(document))
                # A file that changed after it was read would be read over and over if that were not written down.
                if new == row and note.ctime_ns <= round(row.indexed_at * 1e9):
                    self._report.unchanged += 1
                else:
                    self._report.touched += 1
                    self._touching.append(new._replace(indexed_at=started))
                self._progress(row.path)
                return
            self._new.append(cut(document, note.source, self._recipe, started, self._run.stop.check))
        except Unreadable as error:
            state = CHANGED if isinstance(error, ChangedWhileRead) else "failed"
            self._report.failed = tuple(dict.fromkeys((*self._report.failed, (note.path, error.message))))
            if row is None or (row.state, row.detail) != (state, error.message):
                index_write.fail_file(self._store, note.path, note.source, error.message, state)
                self._tell(events.FileFailed(time.time(), note.path, error.message))
            self._progress(note.path)

    def _flush(self) -> None:
        """Write what waits: of new notes the vectors first where they take no time, then all rows at once."""
        if self._touching:
            index_write.touch_files(self._store, self._touching)
        new, self._new = self._new, []
        self._touching = []
        texts = {chunk.hash: chunk.text for file in new for chunk in file.chunks}
        # Where vectors take time, or are left to a batch job, only those are taken that exist already.
        ids, fresh = self.embedder.ids(texts, ask=self._run.batches is None and not self._run.manner.later)
        if new:
            index_write.replace_files(self._store, new, self._recipe.identity.model, ids)
        for file in new:
            hashes = [chunk.hash for chunk in file.chunks if not chunk.occurrence]
            embedded = sum(digest in fresh for digest in hashes)
            self._report.indexed += 1
            self._report.chunks += len(hashes)
            self._report.reused += sum(digest in ids for digest in hashes) - embedded
            self._tell(events.FileIndexed(time.time(), file.path, len(hashes), embedded))
            self._progress(file.path)

    def _progress(self, path: str) -> None:
        """Count a file as done, and tell of it, unless that was done a moment ago."""
        self._done += 1
        now = time.monotonic()
        if now - self._reported >= _PROGRESS_SECONDS or self._done >= self._total:
            self._reported = now
            self._tell(events.SyncProgress(time.time(), self._done, self._total, path, self._rebuilding))

    # --- vectors ---------------------------------------------------------------------------------------------------

    def give_vectors(self) -> None:
        """Make the missing vectors, or leave them to a batch job."""
        run, store = self._run, self._store
        read = store.without_vector
        left_to_job = False
        # A batch service takes texts alone.
        if run.batches and run.roots.media is None and self.embedder.provider:
            if self._rebuilding:
                return
            read = partial(read, unclaimed=self._recipe.identity)
            for rows in self._pages(read, run.manner.texts):
                # Called for what it notes: which texts look like secrets. The job asks for the others.
                texts = {digest: text for _, digest, text in rows}
                self.embedder.lacking(texts, self.embedder.cached(texts))
            left_to_job = run.batches.step(store, self._recipe.identity, run.manner)
            self.embedder.embedded += run.batches.embedded
            self._report.claimed = run.batches.waiting
        if not left_to_job and store.lacking():
            self._make(self._pages(read, run.manner.texts), self._attach, store.lacking)
        # A batch service is there to save money: the windows, as much text again, would cost more than it saves.
        if run.manner.windows and run.batches is None and store.lacking_windows():
            # A quarter of the chunks, because each has several windows.
            pages = self._pages(store.without_windows, max(1, run.manner.texts // 4))
            self._make(pages, self._attach_windows, store.lacking_windows)

    def _make(self, pages: Iterator[Rows], attach: Callable[[Rows], None], lacking: Callable[[int], int]) -> None:
        """Have `attach` make the vectors of each of `pages`, and tell how far that is.

        `lacking` counts the chunks behind a rowid that still need one.
        """
        began, done = time.monotonic(), 0
        for rows in pages:
            self._run.stop.check()
            attach(rows)
            done += len(rows)
            last_rowid = rows[-1][0]
            waiting = lacking(last_rowid)
            elapsed = time.monotonic() - began
            rate = done / elapsed if elapsed > _SETTLED_SECONDS else 0.0
            self._tell(events.VectorsMade(time.time(), done, done + waiting, rate, waiting / rate if rate else None))

    def _attach(self, rows: Rows) -> None:
        """Make the vectors of chunks; `rows` have rowid, hash and text of each."""
        ids, _ = self.embedder.ids({digest: text for _, digest, text in rows})
        if embeddings := {rowid: ids[digest] for rowid, digest, _ in rows if digest in ids}:
            index_write.attach(self._store, embeddings)

    def _attach_windows(self, rows: Rows) -> None:
        """Make the vectors of the windows of chunks; `rows` have rowid, hash and text of each.

        No window says more than its chunk, which was sent already.
        """
        windows_of = {}
        for _, digest, text in rows:
            # A window is sealed with a hash as a chunk is, because vectors are kept by it. A media file has no windows:
            # its text is a label, of which its hash is not.
            is_text = sealed(1, 1, text).hash == digest
            windows_of[digest] = [sealed(1, 1, window) for window in windows(text)] if is_text else []
        texts = {window.hash: window.text for pieces in windows_of.values() for window in pieces}
        window_vectors, _ = self.embedder.ids(texts)
        # Where the provider failed meanwhile, the windows wait; what it refuses has the vector of its chunk.
        if self.embedder.provider:
            embeddings = {}
            for digest, vector in self._store.cached(self._recipe.identity, list(windows_of)).items():
                vectors = [window_vectors.get(window.hash, vector) for window in windows_of[digest]]
                # Without windows the vector of the chunk stands for one, so that nobody looks for them again.
                embeddings[digest] = vectors or [vector]
            index_write.attach_windows(self._store, embeddings)

    def _pages(self, read: Callable[[int, int], Rows], count: int) -> Iterator[Rows]:
        """Yield what `read` gives behind a rowid, `count` rows at a time, for as long as a vector can be made."""
        last_rowid = 0
        while self.embedder.provider and (rows := read(last_rowid, count)):
            last_rowid = rows[-1][0]
            yield rows
