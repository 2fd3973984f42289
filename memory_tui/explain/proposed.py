"""What ranking would make of a chunk that no side proposed: the same formulas, on evidence that proposes it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from memory_tui.search.evidence import Evidence, Postings, Rows, Side
from memory_tui.search.fuse import Rules, mode_of
from memory_tui.search.fuse import side_of as side_under
from memory_tui.search.rank import rank
from memory_tui.search.scoring import MOST_CANDIDATES
from memory_tui.search.trace import Candidate, Trace
from memory_tui.settings import Settings


def side_of(evidence: Evidence, settings: Settings) -> Side:
    """The word side that counts under `settings`."""
    mode = mode_of(evidence, settings)
    return side_under(evidence, mode, Rules.of(settings, mode))


def row_of(evidence: Evidence, rowid: int) -> int | None:
    """Where a chunk stands in `evidence`, None when it is not there; rows are in the order of rowids."""
    at = bisect_left(range(evidence.chunks), rowid, key=lambda row: evidence.refs[row].rowid)
    return at if at < evidence.chunks and evidence.refs[at].rowid == rowid else None


def subset(evidence: Evidence, also: Iterable[int] = ()) -> tuple[Evidence, Rows]:
    """The evidence of the rows that any setting can make candidates, and of the rows `also`; and which rows those are.

    It ranks as the whole does, at a cost that does not grow with the index; only counts of the funnel differ.
    """
    matched = [side.postings.rows[:MOST_CANDIDATES] for side in _sides(evidence)]
    rows = np.unique(np.concatenate([evidence.nearest, *matched, np.array(list(also), dtype=np.int64)]))
    place = np.full(evidence.chunks, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))

    def kept(side: Side) -> Side:
        found = place[side.postings.rows]
        return replace(side, postings=Postings(found[found >= 0], side.postings.bm25[found >= 0]))

    keywords = evidence.keywords
    return replace(
        evidence,
        refs={i: evidence.refs[row] for i, row in enumerate(rows.tolist())},
        file_of=evidence.file_of[rows],
        cosine=None if evidence.cosine is None else evidence.cosine[rows],
        nearest=place[evidence.nearest],
        openclaw=kept(evidence.openclaw),
        recommended=kept(evidence.recommended),
        keywords=replace(keywords, each=tuple(kept(side) for side in keywords.each)) if keywords else None,
    ), rows


def _sides(evidence: Evidence) -> Iterator[Side]:
    yield evidence.openclaw
    yield evidence.recommended
    if evidence.keywords is not None:
        yield from evidence.keywords.each


def as_if_proposed(evidence: Evidence, trace: Trace, row: int, text: str) -> Candidate | None:
    """The candidate that `row` would be, had both sides proposed it as the last of their pools.

    `text` is the chunk's. None when nothing can be asked at all. Its rank and verdict are those of the supposition.
    """
    small, rows = subset(evidence, [row])
    at = int(np.searchsorted(rows, row))
    room = max(0, trace.candidate_limit - 1)
    nearest = np.append(small.nearest[:room], at) if small.cosine is not None else small.nearest
    side = side_of(small, trace.settings)
    bm25 = _bm25(small, side, at)
    if bm25 is not None or small.cosine is None:
        found = side.postings
        room = len(found.rows) if side.whole else room
        value = np.nan if bm25 is None else bm25
        side = replace(side, postings=Postings(np.append(found.rows[:room], at), np.append(found.bm25[:room], value)))
    supposed = replace(
        small,
        nearest=nearest,
        texts={**evidence.texts, small.refs[at].rowid: text},
        openclaw=side,
        recommended=side,
        keywords=None,
    )
    # Variety chooses among candidates and changes no number of them.
    plain = trace.settings.set("query.hybrid.mmr.enabled", False, "as if proposed")
    return find(rank(supposed, plain), supposed, at)


def _bm25(evidence: Evidence, side: Side, row: int) -> float | None:
    """The bm25 of a row, the best of them where keywords were looked for one by one; None when it did not match."""
    each = evidence.keywords.each if side.whole and evidence.keywords is not None else (side,)
    found = [float(one.postings.bm25[at]) for one in each for at in np.flatnonzero(one.postings.rows == row)[:1]]
    return min(found, default=None)


def find(trace: Trace, evidence: Evidence, row: int) -> Candidate | None:
    """The candidate of `trace`, which ranks `evidence`, that stands at `row`; only its own record is written out."""
    rowid = evidence.refs[row].rowid
    recalled = next((candidate for candidate in trace.recalled if candidate.chunk.rowid == rowid), None)
    return recalled or trace.lost.at_row(row)
