"""Decay over time tells which hits age will drop. It gives the day and the gate.

Every day that is looked at is ranked as a whole: rivals fade too, so nothing can be solved for one hit alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from memory_tui.core.settings import Settings
from memory_tui.explain.reranking import Reranking
from memory_tui.search.evidence import Evidence, later
from memory_tui.search.rank import rank
from memory_tui.search.trace import Candidate, ChunkRef, Trace, Verdict

DECAY = "query.hybrid.temporalDecay.enabled"
HORIZON = 90
"""Days ahead that are looked at."""
_STRIDE = 10
"""Days between two looks; where something is lost in between, each of them is looked at."""


class Fading(Struct, frozen=True):
    """A hit, number `place` today, that is lost `days` from now, then for `verdict`; 0 days: it is lost already.

    Of one that is lost already `place` is the one it would have if nothing aged.
    """

    query: str
    chunk: ChunkRef
    place: int
    days: int
    age_days: float | None
    verdict: Verdict


def fading(evidence: Evidence, settings: Settings, horizon: int = HORIZON) -> Iterator[Fading]:
    """Hits that age took or will take within `horizon` days, those lost already first; none while decay is off.

    Pure arithmetic, about half a millisecond a day that is looked at; for a worker thread.
    """
    if not settings.on(DECAY):
        return
    today = rank(evidence, settings)
    yield from _lost_already(evidence, settings, today)
    left = {candidate.chunk.rowid: candidate for candidate in today.recalled}
    before = 0
    for day in range(_STRIDE, horizon + _STRIDE, _STRIDE):
        if not left:
            return
        gone = not left.keys() <= _recalled(evidence, settings, day)
        for inner in range(before + 1, day + 1) if gone else ():
            if left.keys() <= _recalled(evidence, settings, inner):
                continue
            for candidate, verdict in _gone(rank(later(evidence, inner), settings), left):
                del left[candidate.chunk.rowid]
                yield Fading(evidence.query, candidate.chunk, _place(candidate), inner, _age(candidate), verdict)
        before = day


class Ahead(Struct, frozen=True):
    """The score of a hit of today on the days ahead: (day, score), and the day it is no longer recalled, if any."""

    chunk: ChunkRef
    place: int
    scores: tuple[tuple[int, float], ...]
    leaves: int | None


def ahead(evidence: Evidence, settings: Settings, horizon: int, stride: int) -> list[Ahead]:
    """How the scores of today's hits go within `horizon` days, looked at every `stride` days; for a worker thread."""
    scores: dict[int, list[tuple[int, float]]] = {}
    leaves: dict[int, int] = {}
    today = rank(evidence, settings)
    for day in range(0, horizon + 1, stride):
        trace = rank(later(evidence, day), settings) if day else today
        recalled = {candidate.chunk.rowid for candidate in trace.recalled}
        for candidate in (*trace.recalled, *trace.lost):
            scores.setdefault(candidate.chunk.rowid, []).append((day, candidate.score))
        for candidate in today.recalled:
            if candidate.chunk.rowid not in recalled:
                leaves.setdefault(candidate.chunk.rowid, day)
    return [
        Ahead(one.chunk, _place(one), tuple(scores[one.chunk.rowid]), leaves.get(one.chunk.rowid))
        for one in today.recalled
    ]


def _recalled(evidence: Evidence, settings: Settings, day: int) -> set[int]:
    """Who is recalled on a day (rowids), without a record of why."""
    return {evidence.refs[row].rowid for row in Reranking(later(evidence, day)).recalled(settings)}


def _lost_already(evidence: Evidence, settings: Settings, today: Trace) -> Iterator[Fading]:
    ageless = rank(evidence, settings.set(DECAY, False, "if nothing aged"))
    now = {candidate.chunk.rowid for candidate in today.recalled}
    lost = {candidate.chunk.rowid: candidate for candidate in today.lost}
    for candidate in ageless.recalled:
        rowid = candidate.chunk.rowid
        if rowid not in now and rowid in lost:
            yield Fading(evidence.query, candidate.chunk, _place(candidate), 0, _age(lost[rowid]), lost[rowid].verdict)


def _gone(trace: Trace, wanted: dict[int, Candidate]) -> list[tuple[Candidate, Verdict]]:
    """Those of `wanted` that `trace` does not recall, with why not."""
    return [
        (wanted[candidate.chunk.rowid], candidate.verdict)
        for candidate in trace.lost
        if candidate.chunk.rowid in wanted
    ]


def _place(candidate: Candidate) -> int:
    return getattr(candidate.verdict, "place", 0)


def _age(candidate: Candidate) -> float | None:
    return candidate.age.age_days
