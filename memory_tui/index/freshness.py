"""Freshness compares the index with the files on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui.core import profiles
from memory_tui.core.settings import Settings
from memory_tui.index import abilities, schema
from memory_tui.index.mass_deletion import Devices, Shrink, sort_out
from memory_tui.index.note_state import FileState, State, Thresholds, difference, state_of
from memory_tui.index.rows import IndexedNote
from memory_tui.index.schema import Recipe
from memory_tui.workspace.chunking import MAX_INPUT_BYTES
from memory_tui.workspace.roots import Roots
from memory_tui.workspace.scan import LeftOut, Scan

if TYPE_CHECKING:
    from memory_tui.providers.base import Identity, Provider

PATIENT = frozenset({"start", "watch", "search", "interval", "sweep", "lost", "takeover", "resume"})
"""Reasons of syncs that nobody asked for by name."""


class Freshness(Struct, frozen=True, dict=True):
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
    moved: frozenset[str] = frozenset()

    def of(self, *states: State) -> tuple[FileState, ...]:
        """The notes in one of `states`."""
        return tuple(note for note in self.stale.values() if note.state in states)

    @cached_property
    def pending(self) -> tuple[FileState, ...]:
        """Notes that the next sync will index or forget."""
        return self.of("pending")

    @cached_property
    def failed(self) -> tuple[FileState, ...]:
        """Notes that could not be indexed."""
        return self.of("failed")

    @cached_property
    def unsettled(self) -> tuple[FileState, ...]:
        """Notes that were being written each time they were read."""
        return self.of("changed while read")

    @cached_property
    def missing(self) -> tuple[FileState, ...]:
        """Notes whose folder has vanished; what was indexed of them stays."""
        return self.of("missing root")

    def as_dict(self) -> dict[str, Any]:
        """As `status --json` prints it: the numbers, and a path with its reason for each note that is not fresh."""

        def listed(notes: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
            return [{"path": path, "detail": detail} for path, detail in notes]

        return {
            "total": self.total,
            "fresh": self.fresh,
            "pending": listed((note.path, note.detail) for note in self.pending),
            "failed": listed((note.path, note.detail) for note in self.failed),
            "leftOut": listed((left.path, left.reason) for left in self.left_out),
            "unsettled": listed((note.path, note.detail) for note in self.unsettled),
            "missing": listed((note.path, note.detail) for note in self.missing),
            "rebuild": list(self.rebuild),
            "shrink": self.shrink,
        }


def compare(
    scan: Scan,
    known: Mapping[str, IndexedNote],
    settings: Settings | None = None,
    *,
    rebuild: tuple[str, ...] = (),
    roots: Roots | None = None,
    devices: Devices | None = None,
) -> Freshness:
    """The freshness of every note of `scan`, given the rows of the index by path.

    With `settings` a changed transcript says what it waits for; `rebuild` is what `schema.differences` says of the
    index's recipe; `roots` and `devices` are for `shrink.sort_out`.
    """
    thresholds = Thresholds.of(settings) if settings else None
    stale: dict[str, FileState] = {}
    for note in scan.found:
        row = known.get(note.path)
        if differs := difference(note, row):
            state = state_of(note, row, differs, thresholds)
            if state is not None:
                stale[note.path] = state
    if rebuild:
        stale = {note.path: stale.get(note.path) or FileState(note.path, "pending", "rebuild") for note in scan.found}
    fresh = scan.total - len(stale)
    gone = sort_out(scan, known, roots, devices)
    stale.update((row.path, FileState(row.path, "pending", "deleted")) for row in gone.deleted)
    stale.update((note.path, FileState(*note)) for note in gone.retained)
    return Freshness(scan.total, fresh, stale, scan.left_out, rebuild, gone.shrink, frozenset(gone.moved))


def recipe_for(
    roots: Roots,
    provider: Provider | None,
    settings: Settings,
    kept: Identity | None = None,
) -> Recipe:
    """What an index of `roots` is made with under these settings; `kept` is the space of vectors during an outage.

    Raises ProviderError when the provider has to be asked and does not answer.
    """
    identity = kept or (provider.identity if provider else schema.keywords_only())
    return recipe_of(roots, settings, identity, provider.max_input_bytes if provider else MAX_INPUT_BYTES)


def recipe_of(roots: Roots, settings: Settings, identity: Identity, max_input_bytes: int) -> Recipe:
    """What an index of `roots` is made with, when a provider of that kind makes its vectors."""
    return Recipe(
        identity=identity,
        sources=roots.sources,
        scope_hash=schema.scope_hash(roots.extra, roots.patterns, roots.media),
        chunk_tokens=settings.whole("chunking.tokens"),
        chunk_overlap=settings.whole("chunking.overlap"),
        chunk_bytes=min(max_input_bytes, MAX_INPUT_BYTES),
        fts_tokenizer=abilities.tokenizer(settings.word("store.fts.tokenizer")),
        chunking=profiles.get(settings.word("profile")).chunking,
    )
