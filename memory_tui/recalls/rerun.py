"""A rerun asks a logged recall again: the answer then beside the answer now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memory_tui.core.errors import SettingError
from memory_tui.core.settings import TUNE_KEYS, Settings
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry

if TYPE_CHECKING:
    from memory_tui.core.cancel import Cancel
    from memory_tui.core.events import Listener
    from memory_tui.engine.status import Note
    from memory_tui.plan import Plan
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Candidate, Trace
    from memory_tui.workspace.notes import Document
    from memory_tui.workspace.root_state import RootState


@dataclass(frozen=True, slots=True)
class Change:
    """One hit then and now: its place (1-based, None where it is no hit) and its score."""

    path: str
    start_line: int
    end_line: int
    place_then: int | None
    place_now: int | None
    score_then: float | None
    score_now: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """`entry` asked again over the index as it is now, with the knobs of then; `changes` by place now, then by place.

    `index_changed` tells that notes were indexed in between, so that the answer may differ for that alone.
    """

    entry: RecallEntry
    evidence: Evidence
    trace: Trace
    settings: Settings
    changes: tuple[Change, ...]
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


def replay(memory: Memory, entry: RecallEntry) -> Replay:
    """Ask again what `entry` asked. Raises QueryError, IndexUnavailable; ValueError for what was no search."""
    if entry.tool != SEARCH:
        raise ValueError(entry.tool)
    settings = settings_of(entry, memory.settings)
    source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
    evidence = memory.gather(entry.query, source=source)
    trace = memory.rank(evidence, settings)
    return Replay(
        entry, evidence, trace, settings, _changes(entry.hits, trace.recalled), trace.generation != entry.generation
    )


def _changes(then: tuple[LoggedHit, ...], now: tuple[Candidate, ...]) -> tuple[Change, ...]:
    old = {(hit.path, hit.start_line, hit.end_line): (place, hit.score) for place, hit in enumerate(then, 1)}
    new = {
        (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line): (place, hit.score)
        for place, hit in enumerate(now, 1)
    }
    none: tuple[None, None] = (None, None)
    made = [(key, old.get(key, none), new.get(key, none)) for key in dict.fromkeys((*new, *old))]
    return tuple(Change(*key, before[0], after[0], before[1], after[1]) for key, before, after in made)


def record(found: Replay) -> Mapping[str, Any]:
    """A replay as JSON-ready data."""
    from memory_tui.explain.trace_json import answer, plain

    return {
        "entry": plain(found.entry),
        "same": found.same,
        "indexChanged": found.index_changed,
        "changes": plain(found.changes),
        "now": answer(found.trace),
    }


class Memory(Protocol):
    """A workspace with its index. Any thread may call; what reads disk or index belongs on a worker thread."""

    @property
    def plan(self) -> Plan:
        """What was decided when it was opened."""

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""

    def now(self) -> float:
        """The time that ages are counted from, in epoch seconds."""

    def start(self) -> None:
        """Begin to work in the background: index what changed, then watch."""

    def close(self) -> None:
        """Stop everything within half a second."""

    def listen(self, listener: Listener) -> None:
        """Send events to `listener` from now on; it is called on the thread that made the news."""

    def roots(self) -> tuple[RootState, ...]:
        """The state of every root, at most a second old."""

    @property
    def written_elsewhere(self) -> bool:
        """Whether another process is writing the index now, or is about to as the one that keeps it."""

    def request_sync(self, reason: str = "manual", force: bool = False) -> None:
        """Bring the index up to date in the background."""

    def wait_idle(self, timeout: float) -> bool:
        """Wait until the index is as up to date as it was asked to be; False when `timeout` seconds were too few."""

    def gather(self, query: str, cancel: Cancel | None = None, source: str = "", *, by_words: bool = False) -> Evidence:
        """What the index knows about `query`; `by_words` without asking the provider.

        Raises QueryError, Cancelled, IndexUnavailable.
        """

    def rank(self, evidence: Evidence, settings: Settings) -> Trace:
        """`evidence` under `settings`: pure and quick."""

    def get(self, path: str, start: int = 1, lines: int | None = None) -> Note:
        """Some lines of a note: at most 120 and 12,000 characters. Raises PathRefused, Unreadable."""

    def read(self, path: str) -> Document:
        """A note as it is on disk. Raises PathRefused, Unreadable."""
