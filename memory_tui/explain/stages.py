"""The full record of one candidate: its neighbours in every stage, and what parts it from the hit above, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory_tui import profiles
from memory_tui.explain.why import Digits, product_shown, words_off
from memory_tui.explain.wording import label, ordinal, sentence
from memory_tui.search.trace import Candidate, Trace

AROUND = 2
"""Neighbours that are named on each side."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: a title, and lines of text of which number `own` (from 0, or -1) is about the candidate itself."""

    title: str
    lines: tuple[str, ...]
    own: int = -1


@dataclass(frozen=True, slots=True)
class Gap:
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
    factor = candidate.age.factor
    return {
        "vector": candidate.vector.points * factor,
        "text": candidate.text.points * factor,
        "age": candidate.age.points,
        "day": candidate.date_points,
    }


def gaps(candidate: Candidate, other: Candidate) -> list[Gap]:
    """What parts `candidate` from `other`, the greatest first; the differences add up to that of the scores."""
    mine, theirs = parts(candidate), parts(other)
    found = [Gap(part, mine[part], theirs[part]) for part in mine if mine[part] or theirs[part]]
    return sorted(found, key=lambda gap: -abs(gap.difference))


def stages(candidate: Candidate, trace: Trace) -> Iterator[Stage]:
    """Every stage that the candidate went through, in order, with those next to it there."""
    order = [*trace.recalled, *trace.lost]
    at = next((i for i, one in enumerate(order) if one.chunk.rowid == candidate.chunk.rowid), None)
    yield _vector(candidate, trace)
    yield _text(candidate, trace)
    if at is not None:
        yield _around(
            "Final order", order, at, lambda one: f"{one.score:.3f}  {one.chunk.citation}  {label(one.verdict).lower()}"
        )
        if len(order) > 1:
            yield _parted(candidate, order[at - 1] if at else order[1], above=at > 0)
    if candidate.mmr is not None:
        yield _mmr(candidate, trace)
    yield Stage(
        "Gate",
        (
            f"{candidate.score:.4f} against {trace.floor:g}, {trace.settings.whole('query.maxResults')} hits at most",
            sentence(candidate.verdict),
        ),
    )


def _around(title: str, items: Sequence[Candidate], at: int, say: Callable[[Candidate], str]) -> Stage:
    first = max(0, at - AROUND)
    lines = tuple(f"{i + 1:>4}  {say(items[i])}" for i in range(first, min(len(items), at + AROUND + 1)))
    return Stage(title, lines, at - first)


def _vector(candidate: Candidate, trace: Trace) -> Stage:
    part, ranks = candidate.vector, trace.vector_ranks
    title = f"By meaning: {len(ranks)} of {trace.funnel.vector_matches:,} with a vector proposed"
    if part.cosine is None:
        return Stage(title, ("no cosine to go by",))
    if part.rank is None or part.rank > len(ranks):
        edge = f"; the last that was has {ranks[-1][1]:.3f}" if ranks else ""
        place = f"{ordinal(part.rank)} with " if part.rank else ""
        return Stage(title, (f"{place}cosine {part.cosine:.4f}, not proposed{edge}",))
    first = max(0, part.rank - 1 - AROUND)
    near = ranks[first : part.rank + AROUND]
    lines = tuple(f"{first + i:>4}  {score:.3f}  {ref.citation}" for i, (ref, score) in enumerate(near, 1))
    return Stage(title, lines, part.rank - 1 - first)


def _text(candidate: Candidate, trace: Trace) -> Stage:
    part, ranks = candidate.text, trace.keyword_ranks
    if trace.mode == "vectors only":
        return Stage("By words", (words_off(trace),))
    title = f"By words: {len(ranks)} of {trace.funnel.text_matches:,} matches proposed"
    query = (f"asked: {trace.plan.fts_query}",) if trace.plan.fts_query else ("no word to ask for",)
    at = next((i for i, (ref, _, _) in enumerate(ranks) if ref.rowid == candidate.chunk.rowid), None)
    if at is None:
        why = "not matched" if part.bm25 is None else f"bm25 {-part.bm25:.2f}, not proposed"
        return Stage(title, (*query, why))
    first = max(0, at - AROUND)
    near = ranks[first : at + AROUND + 1]
    lines = tuple(
        f"{first + i:>4}  {-bm25:.2f} -> {score:.3f}  {ref.citation}" for i, (ref, bm25, score) in enumerate(near, 1)
    )
    return Stage(title, (*query, *lines), at - first + len(query))


def _parted(candidate: Candidate, other: Candidate, *, above: bool) -> Stage:
    """Algolia's question: what separates this hit from the one above."""
    total = candidate.score - other.score
    lines = [f"{gap.part:<7}{gap.own:.3f} - {gap.other:.3f} = {gap.difference:+.3f}" for gap in gaps(candidate, other)]
    where = "above" if above else "below"
    return Stage(
        f"Against the one {where}, {other.chunk.citation}",
        (*lines, f"{'score':<7}{candidate.score:.3f} - {other.score:.3f} = {total:+.3f}"),
        len(lines),
    )


def _mmr(candidate: Candidate, trace: Trace) -> Stage:
    part = candidate.mmr
    if part is None or part.twin is None:
        return Stage("MMR", ("chosen first, so there was nothing to resemble",))
    balance = trace.settings.number("query.hybrid.mmr.lambda")
    value = balance * part.relevance - (1 - balance) * part.similarity
    return Stage(
        f"MMR: chosen {ordinal(part.place)}",
        (
            f"{balance:.2f} x relevance {part.relevance:.3f} - {1 - balance:.2f} x likeness {part.similarity:.3f} "
            f"= {value:.3f}",
            f"most like {part.twin.citation}",
        ),
    )


def in_a_line(candidate: Candidate, trace: Trace) -> str:
    """The whole arithmetic as one formula: `.40 x 0.854 + .60 x 0.818 = 0.832 + 0.020 age = 0.852 >= 0.35`."""
    age, digits = candidate.age, Digits.of(candidate, trace)
    sides = " + ".join(
        " x ".join(reversed(product_shown(part.score, part.weight, part.points, digits.points)))
        for part in (candidate.vector, candidate.text)
    )
    formula = f"{sides} = {candidate.hybrid:.{digits.total}f}"
    more = ""
    if profiles.get(trace.profile).age == "multiply" and age.factor != 1.0:
        more += f" x {age.factor:.{digits.total}f} age"
    if age.points >= 0.0005:
        more += f" + {age.points:.{digits.total}f} age"
    if candidate.date_points:
        more += f" + {candidate.date_points:.{digits.total}f} day"
    more += f" = {candidate.score:.3f}" if more else ""
    floor = getattr(candidate.verdict, "floor", trace.floor)
    place = getattr(candidate.verdict, "place", None)
    order = f"  {ordinal(place)} of {trace.settings.whole('query.maxResults')}" if place else ""
    return f"{formula}{more} {'>=' if candidate.score >= floor else '<'} {floor:g}{order}"
