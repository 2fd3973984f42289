"""The stages that a candidate went through, each with its neighbours there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from memory_tui.core.formatting import signed
from memory_tui.explain.score_lines import fewest, rounded, same
from memory_tui.explain.why import floor_of, is_named, words_off
from memory_tui.explain.wording import against, label, number, ordinal, sentence
from memory_tui.search.trace import Candidate, Trace

AROUND = 2
"""Neighbours that are named on each side."""


class FunnelStage(Struct, frozen=True):
    """One stage: a title, and lines of text of which number `own` (from 0, or -1) is about the candidate itself."""

    title: str
    lines: tuple[str, ...]
    own: int = -1


class Gap(Struct, frozen=True):
    """One part of two scores: what it gave this candidate, what it gave the other, and the difference."""

    part: str
    own: float
    other: float

    @property
    def difference(self) -> float:
        """This minus the other."""
        return self.own - self.other


def parts(candidate: Candidate) -> dict[str, float]:
    """What each part gave to the score in the end; they add up to it."""
    if is_named(candidate):
        return {"vector": 0.0, "text": 0.0, "path": candidate.score, "age": 0.0, "day": 0.0}
    factor = candidate.age.factor * math.prod(one.value for one in candidate.factors)
    return {
        "vector": candidate.vector.points * factor * candidate.first_share,
        "text": candidate.text.points * factor * candidate.first_share,
        "second": candidate.second.points if candidate.second else 0.0,
        "next to": -candidate.second.lost if candidate.second else 0.0,
        "path": 0.0,
        "age": candidate.age.points,
        "day": candidate.date_points,
    }


def gaps(candidate: Candidate, other: Candidate) -> list[Gap]:
    """What parts `candidate` from `other`, the greatest first; the differences add up to that of the scores."""
    mine, theirs = parts(candidate), parts(other)
    # A note that the question names has fewer parts than others.
    every = (Gap(part, mine.get(part, 0.0), theirs.get(part, 0.0)) for part in dict.fromkeys((*mine, *theirs)))
    found = [gap for gap in every if gap.own or gap.other]
    return sorted(found, key=lambda gap: -abs(gap.difference))


def stages(candidate: Candidate, trace: Trace) -> Iterator[FunnelStage]:
    """Every stage that the candidate went through, in order, with those next to it there."""
    order = [*trace.recalled, *trace.lost]
    at = next((i for i, one in enumerate(order) if one.chunk.rowid == candidate.chunk.rowid), None)
    yield _vector_stage(candidate, trace)
    yield _text_stage(candidate, trace)
    if at is not None:
        yield _around(
            "Final order", order, at, lambda one: f"{one.score:.3f}  {one.chunk.citation}  {label(one.verdict).lower()}"
        )
        if len(order) > 1:
            yield _parted(candidate, order[at - 1] if at else order[1], above=at > 0)
    if candidate.mmr is not None:
        yield _mmr_stage(candidate, trace)
    floor = floor_of(candidate, trace)
    yield FunnelStage(
        "Gate",
        (
            f"{against(candidate.score, floor)} against {number(floor)}, "
            f"{trace.settings.whole('query.maxResults')} hits at most",
            sentence(candidate.verdict),
        ),
    )


def _around(title: str, items: Sequence[Candidate], at: int, say: Callable[[Candidate], str]) -> FunnelStage:
    first = max(0, at - AROUND)
    lines = tuple(f"{i + 1:>4}  {say(items[i])}" for i in range(first, min(len(items), at + AROUND + 1)))
    return FunnelStage(title, lines, at - first)


def _vector_stage(candidate: Candidate, trace: Trace) -> FunnelStage:
    part, ranks = candidate.vector, trace.vector_ranks
    title = f"By meaning: {len(ranks)} of {trace.funnel.vector_matches:,} with a vector proposed"
    if part.cosine is None:
        return FunnelStage(title, ("no cosine to go by",))
    if part.rank is None or part.rank > len(ranks):
        edge = f"; the last that was has {ranks[-1][1]:.3f}" if ranks else ""
        place = f"{ordinal(part.rank)} with " if part.rank else ""
        return FunnelStage(title, (f"{place}cosine {part.cosine:.4f}, not proposed{edge}",))
    first = max(0, part.rank - 1 - AROUND)
    near = ranks[first : part.rank + AROUND]
    lines = tuple(f"{first + i:>4}  {score:.3f}  {ref.citation}" for i, (ref, score) in enumerate(near, 1))
    return FunnelStage(title, lines, part.rank - 1 - first)


def _text_stage(candidate: Candidate, trace: Trace) -> FunnelStage:
    part, ranks = candidate.text, trace.keyword_ranks
    if trace.mode == "vectors only":
        return FunnelStage("By words", (words_off(trace),))
    title = f"By words: {len(ranks)} of {trace.funnel.text_matches:,} matches proposed"
    query = (f"asked: {trace.plan.fts_query}",) if trace.plan.fts_query else ("no word to ask for",)
    at = next((i for i, (ref, _, _) in enumerate(ranks) if ref.rowid == candidate.chunk.rowid), None)
    if at is None:
        why = "not matched" if part.bm25 is None else f"bm25 {-part.bm25:.2f}, not proposed"
        return FunnelStage(title, (*query, why))
    first = max(0, at - AROUND)
    near = ranks[first : at + AROUND + 1]
    lines = tuple(
        f"{first + i:>4}  {f'{-bm25:.2f}' if bm25 == bm25 else 'path'} -> {score:.3f}  {ref.citation}"
        for i, (ref, bm25, score) in enumerate(near, 1)
    )
    return FunnelStage(title, (*query, *lines), at - first + len(query))


def _parted(candidate: Candidate, other: Candidate, *, above: bool) -> FunnelStage:
    """Algolia's question: what separates this hit from the one above."""
    lines = [f"{gap.part:<7}{_subtracted(gap.own, gap.other)}" for gap in gaps(candidate, other)]
    where = "above" if above else "below"
    return FunnelStage(
        f"Against the one {where}, {other.chunk.citation}",
        (*lines, f"{'score':<7}{_subtracted(candidate.score, other.score)}"),
        len(lines),
    )


def _subtracted(own: float, other: float) -> str:
    """`0.832 - 0.811 = +0.021`, with as many decimals as it takes for the difference to be that of what is shown."""
    digits = fewest(3, lambda n: same(rounded(own, n) - rounded(other, n), own - other, n - 1))
    shown = rounded(own, digits) - rounded(other, digits)
    return f"{own:.{digits}f} - {other:.{digits}f} = {signed(shown, digits)}"


def _mmr_stage(candidate: Candidate, trace: Trace) -> FunnelStage:
    part = candidate.mmr
    if part is None or part.twin is None:
        return FunnelStage("MMR", ("chosen first, so there was nothing to resemble",))
    leads = candidate.second is not None and candidate.second.leads
    balance = trace.settings.number("query.hybrid.mmr.lambda")
    value = balance * part.relevance - (1 - balance) * part.similarity
    digits = fewest(
        3,
        lambda n: same(balance * rounded(part.relevance, n) - (1 - balance) * rounded(part.similarity, n), value, 3),
    )
    return FunnelStage(
        f"MMR: chosen {ordinal(part.place)}",
        (
            f"{number(balance)} x relevance {part.relevance:.{digits}f} - {number(1 - balance)} x likeness "
            f"{part.similarity:.{digits}f} = {value:.3f}",
            f"most like {part.twin.citation}",
            *(("it has the highest score of its part of the question, so it comes before others",) if leads else ()),
        ),
    )
