"""Reranking: the same evidence ranked under many settings at once.

Scores and gate are those of ranking, for all values together; the order ends where the limit is reached. `rank` gives
the same answer, one setting at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.search.evidence import Evidence, KeywordSide, Postings, Rows
from memory_tui.search.formulas import Floats
from memory_tui.search.rank import Gate, likeness, pass_gate, varied, without_repeats
from memory_tui.search.score import (
    Candidates,
    Likeness,
    Rules,
    candidates_of,
    groups,
    leads,
    score,
    side_of,
)
from memory_tui.search.trace import Mode, Table
from memory_tui.settings import Scalar

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


class Standing(Struct, frozen=True):
    """Where a row would stand: its `place` among those over the gate (0: not over it), of which `limit` are recalled.

    With MMR a place is only known up to the limit; one beyond it is the limit plus one. `score` is -inf for a row that
    is no candidate.
    """

    place: int
    limit: int
    score: float

    @property
    def recalled(self) -> bool:
        """Return whether the row is recalled."""
        return 0 < self.place <= self.limit


def subset(evidence: Evidence, also: Sequence[int] = ()) -> tuple[Evidence, Rows]:
    """The evidence of the rows that any setting can make candidates, and of the rows `also`; and which rows those are.

    It ranks as the whole does, at a cost that does not grow with the index; only counts of the funnel differ.
    """
    rows = np.unique(np.append(evidence.pool, np.array(also, dtype=np.int64)))
    place = np.full(evidence.chunks, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))

    def narrowed(side: KeywordSide) -> KeywordSide:
        rows = place[side.postings.rows]
        return replace(side, postings=Postings(rows[rows >= 0], side.postings.bm25[rows >= 0]))

    keywords = evidence.keywords
    return replace(
        evidence,
        refs=evidence.refs.take(rows),
        pool=np.arange(len(rows)),
        cosine=None if evidence.cosine is None else evidence.cosine[rows],
        nearest=place[evidence.nearest],
        of_days=place[evidence.of_days],
        titled=place[evidence.titled],
        closest=replace(closest, cosine=closest.cosine[rows]) if (closest := evidence.closest) else None,
        openclaw=narrowed(evidence.openclaw),
        recommended=narrowed(evidence.recommended),
        keywords=replace(keywords, each=tuple(map(narrowed, keywords.each))) if keywords else None,
        lexical=evidence.lexical.moved(place),
        copies={int(place[row]): int(place[shown]) for row, shown in evidence.copies.items() if place[row] >= 0},
        of_chunks=evidence.indexed,
    ), rows


class Reranking:
    """Rankings of `evidence`; `rows` are told apart even where no setting makes them candidates."""

    def __init__(self, evidence: Evidence, rows: Sequence[int] = ()) -> None:
        self._small, self._rows = subset(evidence, rows)
        self._pools: dict[_Pool, tuple[Candidates, Likeness | None]] = {}

    def recalled(self, tried: Sequence[Values]) -> list[tuple[int, ...]]:
        """Return the rows that are recalled under each of `tried`, in their order."""
        ranked = {
            number: tuple(self._rows[rows[order[: rules.results]]].tolist())
            for number, rules, rows, order, _ in self._ranked(tried)
        }
        return [ranked[number] for number in range(len(tried))]

    def standings(self, row: int, tried: Sequence[Values]) -> list[Standing]:
        """Return where `row` stands under each of `tried`."""
        at = int(np.searchsorted(self._rows, row))
        ranked: dict[int, Standing] = {}
        for number, rules, rows, order, scores in self._ranked(tried, at):
            there = rows.tolist().index(at) if at in rows else -1
            place = order.index(there) + 1 if there in order else 0
            ranked[number] = Standing(place, rules.results, float(scores[there]) if there >= 0 else -math.inf)
        return [ranked[number] for number in range(len(tried))]

    def _ranked(self, tried: Sequence[Values], row: int = -1) -> Iterator[tuple[int, Rules, Rows, list[int], Floats]]:
        """Yield each ranking: number, rules, the rows of its candidates, those over the gate in order, all scores."""
        together: dict[_Pool, list[tuple[int, Rules]]] = defaultdict(list)
        for number, values in enumerate(tried):
            rules = Rules.of(self._small, values)
            together[rules.profile.name, rules.mode, rules.limit, rules.mmr].append((number, rules))
        for key, numbered in together.items():
            numbers, each = zip(*numbered, strict=True)
            if key not in self._pools:
                pool = candidates_of(self._small, side_of(self._small, each[0]), each[0])
                alike = likeness(self._small, each[0].profile, pool.table["row"]) if each[0].mmr else None
                self._pools[key] = pool, alike
            candidates, alike = self._pools[key]
            scored, rows = score(candidates, each), candidates.table["row"]
            gate = pass_gate(scored["score"], candidates.table, each)
            there = np.flatnonzero(rows == row).tolist()
            orders = _orders(candidates.table, scored, each, gate, alike)
            for number, rule, order, scores, passed in zip(
                numbers, each, orders, scored["score"], gate.passed, strict=True
            ):
                # Variety stops at the limit: a row that is over the gate and not among the chosen follows them.
                order += [at for at in there if rule.mmr and passed[at] and at not in order]
                yield number, rule, rows, order, scores


_Pool = tuple[str, Mode, int, bool]
"""What decides on the candidates and how their order is made: profile, mode, limit, variety."""


def _orders(
    table: Table, scored: Table, rules: Sequence[Rules], gate: Gate, alike: Likeness | None
) -> Iterator[list[int]]:
    """Yield the candidates over the gate in their order, by each of `rules`; with MMR as many as are recalled."""
    lead = leads(scored["part"], scored["score"], gate.passed)
    whole: list[int] = []
    for at, (rule, passed, rescued) in enumerate(zip(rules, gate.passed, gate.rescued, strict=True)):
        ordered = groups(table["level"], scored[at], lead[at])
        order: Iterable[int] = (item for rows, _ in ordered for item in rows.tolist())
        if alike is not None:
            order = (step.item for step in varied(ordered, alike, lead[at], rule))
        if not rule.profile.exact_paths:
            yield list(islice((item for item in order if passed[item]), rule.results if rule.mmr else None))
            continue
        # No knob of this profile changes a score, and so none the order.
        whole = whole or list(order)
        added = without_repeats(whole, table, passed, rescued)
        yield [item for item in whole if passed[item]] + [item for item in whole if added[item]]
