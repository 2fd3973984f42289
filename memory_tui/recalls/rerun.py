"""A rerun asks a logged recall again: the answer then beside the answer now."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory_tui.core.errors import SettingError
from memory_tui.core.settings import TUNE_KEYS, Settings
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Candidate, Trace


@dataclass(frozen=True, slots=True)
class HitChange:
    """One hit then and now: its place (1-based, None where it is no hit) and its score."""

    path: str
    start_line: int
    end_line: int
    place_then: int | None
    place_now: int | None
    score_then: float | None
    score_now: float | None


@dataclass(frozen=True, slots=True)
class Rerun:
    """`entry` asked again over the index as it is now, with the knobs of then; `changes` by place now, then by place.

    `index_changed` tells that notes were indexed in between, so that the answer may differ for that alone.
    """

    entry: RecallEntry
    evidence: Evidence
    trace: Trace
    settings: Settings
    changes: tuple[HitChange, ...]
    index_changed: bool

    @property
    def same(self) -> bool:
        """Whether the same hits come in the same order."""
        return all(change.place_then == change.place_now for change in self.changes)


def with_trace(entry: RecallEntry, trace: Trace) -> RecallEntry:
    """`entry` with what is to be logged of `trace`: what was searched, by which knobs, and the hits."""
    hits = tuple(
        LoggedHit(hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line, hit.score, hit.vector.score, hit.text.score)
        for hit in trace.recalled
    )
    return dataclasses.replace(
        entry,
        settings={key: trace.settings.values[key].value for key in TUNE_KEYS},
        provider=trace.provider,
        model=trace.model,
        mode=trace.mode,
        generation=trace.generation,
        hits=hits,
    )


def settings_of(entry: RecallEntry, settings: Settings) -> Settings:
    """`settings` with the knobs that held when `entry` was logged; those that are not accepted any more stay."""
    for key in TUNE_KEYS:
        if key in entry.settings:
            try:
                settings = settings.set(key, entry.settings[key], "the recall log")
            except SettingError:
                continue
    return settings


def replay(entry: RecallEntry, settings: Settings, gather: Callable[..., Evidence]) -> Rerun:
    """Ask again what `entry` asked by `gather`, which takes the query and a source, over the index as it is now.

    Knobs that were not logged are those of `settings`. Raises QueryError, IndexUnavailable; ValueError for what was no
    search.
    """
    from memory_tui.search.rank import rank

    if entry.tool != SEARCH:
        raise ValueError(entry.tool)
    settings = settings_of(entry, settings)
    source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
    evidence = gather(entry.query, source=source)
    trace = rank(evidence, settings)
    return Rerun(
        entry, evidence, trace, settings, _changes(entry.hits, trace.recalled), trace.generation != entry.generation
    )


def _changes(then: tuple[LoggedHit, ...], now: tuple[Candidate, ...]) -> tuple[HitChange, ...]:
    old = {(hit.path, hit.start_line, hit.end_line): (place, hit.score) for place, hit in enumerate(then, 1)}
    new = {
        (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line): (place, hit.score)
        for place, hit in enumerate(now, 1)
    }
    none: tuple[None, None] = (None, None)
    made = [(key, old.get(key, none), new.get(key, none)) for key in dict.fromkeys((*new, *old))]
    return tuple(HitChange(*key, before[0], after[0], before[1], after[1]) for key, before, after in made)


def record(found: Rerun) -> Mapping[str, Any]:
    """A replay as JSON-ready data."""
    from memory_tui.explain.trace_json import answer, plain

    return {
        "entry": plain(found.entry),
        "same": found.same,
        "indexChanged": found.index_changed,
        "changes": plain(found.changes),
        "now": answer(found.trace),
    }
