"""A sync makes the index hold what is on disk.

What changed is done in place, file by file. When the index was made otherwise than is wanted now, another one is made
beside it, and the old one answers until the new one is whole.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import events
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError, ProviderError
from memory_tui.core.events import Listener
from memory_tui.index import embedding, index_write, rebuild
from memory_tui.index.embedding import HERE, EmbeddingMode
from memory_tui.index.freshness import PATIENT, recipe_for
from memory_tui.index.mass_deletion import MANY, Shrink
from memory_tui.index.note_state import Thresholds, difference
from memory_tui.index.schema import Recipe
from memory_tui.index.sync_run import Lost, SyncOptions, SyncRun
from memory_tui.workspace.roots import scan as scan_roots

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.index.batch_jobs import BatchTerms
    from memory_tui.index.store import Store
    from memory_tui.providers.base import Provider
    from memory_tui.workspace.roots import Roots
    from memory_tui.workspace.scan import Scan

__all__ = ["SyncReport", "sync"]

_PASSES = 3
"""How often a new index is brought up to date with what was saved meanwhile, before it is published."""


class SyncReport(Struct, frozen=True):
    """What one sync did, in files and chunks; `seconds` is wall time.

    `unchanged` files cost a stat, `touched` ones were read and found to hold the same text. `embedded` texts needed
    the provider, `reused` chunks found their vector in the cache. `error` is why the provider stopped, if it did;
    a `cancelled` sync has done a part of it. `changed` tells whether anything was written, `generation` is the one
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


def sync(
    store: Store,
    roots: Roots,
    provider: Provider | None,
    settings: Settings,
    scan: Scan,
    *,
    listener: Listener = events.ignore,
    cancel: Stop | None = None,
    force: bool = False,
    reason: str = "manual",
    outage: str = "",
    terms: BatchTerms | None = None,
    accept_shrink: bool = False,
    manner: EmbeddingMode = HERE,
    lost: Lost | None = None,
) -> SyncReport:
    """Bring `store` up to date with `scan`; make the index anew when `force` or when its recipe is not what is wanted.

    `outage` is why there is no provider although one was chosen: then the vectors that are there stay. With `terms`
    many texts that lack a vector are left to batch jobs, which somebody else submits and follows. `accept_shrink` says
    that a person agreed to forget notes that vanished. `manner` is how texts get to the provider, and whether those
    that look like secrets do. `lost` hears of daily notes that lost lines, before the index forgets these.

    A file that cannot be read is noted and the others go on; when the provider fails, chunks are stored without
    vectors, which a later sync makes. Raises IndexUnavailable.
    """
    try:
        recipe = recipe_for(roots, provider, settings, store.identity() if outage else None)
    except ProviderError as failure:
        provider, outage = None, failure.message
        recipe = recipe_for(roots, None, settings, store.identity())
    if force:
        embedding.clear_rejected(store)
    patience = Thresholds.of(settings) if reason in PATIENT and store.recipe() is not None and not force else None
    options = SyncOptions(
        roots, listener, cancel or Stop(), reason, patience, accept_shrink, terms, manner=manner, lost=lost
    )
    job = _Job(store, recipe, provider, options, force, outage)
    started, before, error = time.monotonic(), store.generation(), ""
    try:
        job.do(scan)
        embedding.tidy_withheld(store)
        embedding.tidy_rejected(store)
        index_write.tidy(store, keep_cache=settings.on("cache.enabled"))
    except Cancelled:
        job.cancelled = True
    except MemoryTuiError as failure:
        error = failure.message
        raise
    finally:
        report = job.report(time.monotonic() - started)
        listener(_finished(report, error))
    after = store.generation()
    return replace(report, changed=after != before, generation=after)


def _finished(report: SyncReport, error: str) -> events.SyncFinished:
    return events.SyncFinished(
        time.time(),
        report.reason,
        report.indexed,
        report.removed,
        len(report.failed),
        report.embedded,
        report.seconds,
        error or report.error or ("stopped" if report.cancelled else ""),
    )


class _Job:
    """A sync: a run over the index as it is, and where it has to be made anew, one over another index beside it."""

    def __init__(
        self,
        store: Store,
        recipe: Recipe,
        provider: Provider | None,
        options: SyncOptions,
        force: bool,
        outage: str,
    ) -> None:
        self.cancelled = False
        self._store = store
        self._recipe = recipe
        self._provider = provider
        self._options = options
        self._force = force
        self._outage = outage
        self._live: SyncRun | None = None
        self._anew: SyncRun | None = None
        self._postponed = ""
        self._shrink: Shrink | None = None
        self._claimed = 0

    def do(self, scan: Scan) -> None:
        """Do it. Raises Cancelled and IndexUnavailable, with everything that is finished written."""
        store, recipe = self._store, self._recipe
        has = store.recipe()
        if has is None:
            index_write.reset(store, recipe)
            has = recipe
        anew = has != recipe or (bool(store.known()) and self._force) or rebuild.waits(store, recipe)
        same_space = self._provider is not None and has.identity == recipe.identity
        self._live = SyncRun(store, has, self._provider if same_space else None, self._options)
        self._live.all_of(scan)
        if not anew:
            rebuild.discard(store.path)
        elif self._live.gone.retained:
            held = len(self._live.gone.retained)
            self._postponed = f"{held:,} indexed note{'s are' if held > 1 else ' is'} out of reach"
        elif self._outage and has.identity.dims:
            self._postponed = self._outage
        else:
            self._make_anew(scan)

    def _make_anew(self, scan: Scan) -> None:
        options = replace(self._options, patience=None, rebuilding=True)
        other = rebuild.begin(self._store, self._recipe, options.stop)
        try:
            self._anew = SyncRun(other, self._recipe, self._provider, options)
            scan = scan_roots(options.roots) if scan.quiet else scan
            for _ in range(_PASSES):
                options.stop.check()
                self._anew.all_of(scan)
                scan = scan_roots(options.roots)
                known = other.known()
                if not any(difference(note, known.get(note.path)) for note in scan.found):
                    break
            if (shrunk := self._shrunk(other, scan)) is not None:
                self._postponed = shrunk.reason
                self._shrink = shrunk
            elif self._provider is not None and not self._anew.embedder.working:
                self._postponed = self._anew.embedder.error
            elif not rebuild.publish(self._store, other, options.stop):
                raise Cancelled
            elif options.terms:
                self._vectors_of(self._anew)
        finally:
            other.close()

    def _shrunk(self, other: Store, scan: Scan) -> Shrink | None:
        """What a person has to agree to: of the notes on disk that had text more than half have none in `other`."""
        here, new = {note.path for note in scan.found}, other.known()
        had = [path for path, row in self._store.known().items() if row.chunks and path in here]
        lost = sorted(path for path in had if (row := new.get(path)) is None or not row.chunks)
        if self._options.accepted or len(lost) < MANY or 2 * len(lost) <= len(had):
            return None
        reason = f"The new index would lack {len(lost):,} of {len(had):,} notes that are on disk"
        return Shrink(len(lost), len(had), reason, tuple(lost[:MANY]))

    def _vectors_of(self, anew: SyncRun) -> None:
        """Leave the texts of the index that was published to jobs, or embed them where they are few."""
        rest = SyncRun(self._store, self._recipe, self._provider, self._options)
        rest.give_vectors()
        anew.embedder.embedded += rest.embedder.embedded
        anew.embedder.error = rest.embedder.error
        self._claimed = rest.tally.claimed

    def report(self, seconds: float) -> SyncReport:
        """What was done; of an index that was made anew, what went into that."""
        live, anew = self._live, self._anew
        run = anew or live
        if run is None or live is None:
            return SyncReport(self._options.reason, cancelled=self.cancelled, error=self._outage, seconds=seconds)
        tally = run.tally
        return SyncReport(
            reason=self._options.reason,
            found=tally.found,
            indexed=tally.indexed,
            touched=tally.touched,
            unchanged=tally.unchanged,
            removed=live.tally.removed,
            failed=tuple(dict.fromkeys(tally.failed)),
            chunks=tally.chunks,
            embedded=run.embedder.embedded,
            reused=tally.reused,
            rebuilt=anew is not None,
            cancelled=self.cancelled,
            error=self._outage or run.embedder.error,
            seconds=seconds,
            waiting=live.tally.waiting,
            shrink=live.gone.shrink or self._shrink,
            postponed=self._postponed,
            claimed=self._claimed or live.tally.claimed,
            shared=run.embedder.shared,
            unshared=run.embedder.unshared,
        )
