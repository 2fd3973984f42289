"""What a change of notes would do to the answer of a query, before it is made."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_tui.core.settings import Settings
from memory_tui.curate.changes import Change
from memory_tui.providers.provider_protocol import Provider
from memory_tui.search.corpus import Corpus
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import SearchContext, gather
from memory_tui.search.trace import Candidate, Trace
from memory_tui.source.protocol import Trial


class Move(Struct, frozen=True):
    """A hit before and after; None and place 0 where it is not recalled. Places count from 1."""

    before: Candidate | None
    after: Candidate | None
    place_before: int
    place_after: int


class Effect(Struct, frozen=True):
    """Both answers, and every hit of either: those of the answer after first, then those that are gone.

    `without_vector` new texts were judged by their words alone, because no provider was asked for their vectors.
    """

    before: Trace
    after: Trace
    moves: tuple[Move, ...]
    without_vector: int


def preview(
    trial: Trial,
    change: Change,
    queries: Sequence[str],
    settings: Settings,
    now: float,
    *,
    asking: Provider | None,
    writing: Provider | None,
    projects: frozenset[str] = frozenset(),
    zone: dt.tzinfo | None = None,
) -> list[Effect]:
    """The answer to each of `queries` as it is and as it would be after `change`: as long as searches on a cold index.

    `asking` embeds the queries, `writing` the new texts; either may be None. `projects` are those that the agent works
    on, and days begin in `zone`. Raises IndexUnavailable, Unreadable, ProviderError, QueryError, Cancelled.
    """

    def answers() -> list[Trace]:
        corpus = Corpus.load(trial.source)
        context = SearchContext(
            trial.source,
            corpus,
            Dates.of(corpus),
            asking,
            projects=projects,
            zone=zone,
            reads_time=settings.on("questionTime.enabled"),
            spells=settings.on("spelling.enabled"),
        )
        return [rank(gather(query, context, now), settings) for query in queries]

    before = answers()
    missing = trial.put({file.path: file.after for file in change.files}, writing)
    return [Effect(old, new, _moves(old, new), missing) for old, new in zip(before, answers(), strict=True)]


def _moves(before: Trace, after: Trace) -> tuple[Move, ...]:
    """Hits of both answers in pairs: the same chunk, else chunks of one note that stand in about the same lines."""
    old = dict(enumerate(before.recalled, 1))
    pairs: list[Move] = []
    for place, hit in enumerate(after.recalled, 1):
        was = _partner(hit, old, after)
        pairs.append(Move(old.pop(was) if was else None, hit, was, place))
    return (*pairs, *(Move(hit, None, place, 0) for place, hit in old.items()))


def _partner(hit: Candidate, old: Mapping[int, Candidate], after: Trace) -> int:
    """The place of what `hit` was before, 0 when it was not recalled."""
    same = next((place for place, was in old.items() if was.chunk.id == hit.chunk.id), 0)
    if same:
        return same
    kept = {each.chunk.id for each in after.recalled}
    near: dict[int, list[int]] = defaultdict(list)
    for place, was in old.items():
        overlaps = was.chunk.start_line <= hit.chunk.end_line and hit.chunk.start_line <= was.chunk.end_line
        if was.chunk.path == hit.chunk.path and overlaps and was.chunk.id not in kept:
            near[abs(was.chunk.start_line - hit.chunk.start_line)].append(place)
    return near[min(near)][0] if near else 0
