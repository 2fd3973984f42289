"""Reranking: the same evidence ranked under many settings at once.

Scores and gate are those of ranking, for all values together; the order ends where the limit is reached. `rank` gives
the same answer, one setting at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.search.evidence import Evidence, Flags, KeywordSide, Postings, Rows
from memory_tui.search.formulas import Floats, mmr
from memory_tui.search.rank import Gate, likeness, pass_gate, without_repeats
from memory_tui.search.score import (
    Candidates,
    Rules,
    candidates_of,
    column,
    groups,
    leads,
    mode_by,
    ranges,
    score,
    side_of,
)
from memory_tui.search.trace import Mode, Table
from memory_tui.settings import TUNE_KEYS, Scalar, Settings

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


def tuned(settings: Settings) -> dict[str, Scalar]:
    """Return the values that `settings` give to the knobs that rank."""
    return {key: settings.values[key].value for key in TUNE_KEYS}


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
        self._pools: dict[tuple[str, Mode, int], Candidates] = {}
        self._alike: dict[tuple[str, Mode, int], Floats] = {}

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
        together: dict[tuple[str, Mode, int], list[tuple[int, Rules]]] = defaultdict(list)
        for number, values in enumerate(tried):
            mode = mode_by(self._small, str(values["profile"]), hybrid=bool(values["query.hybrid.enabled"]))
            rules = Rules.by(values, mode, self._small.known_share, model=self._small.closest is not None)
            together[rules.profile.name, mode, rules.limit].append((number, rules))
        for key, numbered in together.items():
            numbers, each = zip(*numbered, strict=True)
            if key not in self._pools:
                self._pools[key] = candidates_of(self._small, side_of(self._small, key[1], each[0]), key[1], each[0])
            candidates = self._pools[key]
            scored, rows = score(candidates, each), candidates.table["row"]
            gate = pass_gate(scored["score"], candidates.table, each, key[1])
            if any(rule.mmr for rule in each) and key not in self._alike:
                alike = likeness(self._small, each[0].profile, rows)
                self._alike[key] = np.array([alike.row(i) for i in range(len(rows))])
            if each[0].profile.exact_paths:
                orders = _in_groups(candidates.table, scored, each[0], gate, self._alike.get(key))
            else:
                orders = _by_score(scored, each, gate.passed, self._alike.get(key))
            there = np.flatnonzero(rows == row)
            for number, rule, order, scores, passed in zip(
                numbers, each, orders, scored["score"], gate.passed, strict=True
            ):
                # Variety stops at the limit: a row that is over the gate and not among the chosen follows them.
                order += [at for at in there.tolist() if rule.mmr and passed[at] and at not in order]
                yield number, rule, rows, order, scores


def _by_score(scored: Table, rules: Sequence[Rules], passed: Flags, alike: Floats | None) -> list[list[int]]:
    """Return the candidates over the gate in their order, by each of `rules`; with MMR as many as are recalled."""
    scores = scored["score"]
    lead = leads(scored["part"], scores, passed)
    by_score = np.argsort(np.where(passed, -scores - lead, np.inf), axis=1, kind="stable")
    counts = np.count_nonzero(passed, axis=1)
    orders = [order[:count].tolist() for order, count in zip(by_score, counts.tolist(), strict=True)]
    varied = np.array([i for i, rule in enumerate(rules) if rule.mmr and counts[i]], dtype=np.int64)
    if alike is None or not len(varied):
        return orders
    scores, lead, passed = scores[varied], lead[varied], passed[varied]
    most = np.minimum([rules[i].results for i in varied], counts[varied])
    balance = column([rules[i].mmr_lambda for i in varied])
    low, spread = scores.min(axis=1, keepdims=True), np.ptp(scores, axis=1, keepdims=True)
    relevance = np.where(spread > 0, (scores - low) / np.where(spread > 0, spread, 1.0), 1.0)
    # Among equals the first is taken: in this order it is the one with the higher score.
    items = np.argsort(-scores, axis=1, kind="stable")
    worth = np.take_along_axis(balance * relevance + lead, items, axis=1)
    near: Floats = np.zeros(worth.shape)
    chosen: list[list[int]] = [[] for _ in varied]
    active = np.arange(len(varied))
    while len(active):
        first = np.argmax(worth[active] - (1.0 - balance[active]) * near[active], axis=1)
        picks = items[active, first]
        worth[active, first] = -np.inf
        near[active] = np.maximum(near[active], alike[picks[:, None], items[active]])
        for i, pick in zip(active.tolist(), picks.tolist(), strict=True):
            chosen[i] += [pick] if passed[i, pick] else []
        active = np.array([i for i in active.tolist() if len(chosen[i]) < most[i]], dtype=np.int64)
    for i, order in zip(varied.tolist(), chosen, strict=True):
        orders[i] = order
    return orders


def _in_groups(table: Table, scored: Table, rules: Rules, gate: Gate, alike: Floats | None) -> list[list[int]]:
    """Return the order under a profile with groups and rescued hits, none of whose knobs changes a score."""
    order: list[int] = []
    for group in groups(table, scored["merit"][0], scored["score"][0]):
        if alike is not None:
            values = scored["merit" if table["level"][group[0]] else "score"][0, group]
            steps = mmr(values, alike[np.ix_(group, group)].__getitem__, rules.mmr_lambda)
            order += group[[step.item for step in steps]].tolist()
        else:
            order += group.tolist()
    orders, lines = [], ranges(table)
    for passed, rescued in zip(gate.passed, gate.rescued, strict=True):
        strict = passed & ~rescued
        added = without_repeats(order, lines, strict, rescued)
        orders.append([i for i in order if strict[i]] + [i for i in order if added[i]])
    return orders
