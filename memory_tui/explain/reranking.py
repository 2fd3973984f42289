"""Reranking: the same evidence ranked under many settings at once.

Components, scores and gate are those of ranking, for all values together; the order ends early, as a full one cannot.
`rank` gives the same answer, one setting at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from msgspec import Struct

from memory_tui.core.profiles import Profile
from memory_tui.core.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.explain import why_not
from memory_tui.search.evidence import Evidence, Rows
from memory_tui.search.formulas import Floats, mmr
from memory_tui.search.gate import pass_gate, without_repeats
from memory_tui.search.rank import likeness
from memory_tui.search.score import (
    Candidates,
    Likeness,
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
from memory_tui.search.trace import Mode

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


def tuned(settings: Settings) -> Values:
    """The values that `settings` give to the knobs that rank."""
    return {key: settings.values[key].value for key in TUNE_KEYS}


class _Likeness:
    """How alike rows are, each compared once with all others, whichever of them are candidates together."""

    def __init__(self, count: int, similarity: Likeness) -> None:
        self._similarity = similarity
        self._alike = np.empty((count, count))
        self._nearest = np.full(count, np.nan)

    def _compare(self, rows: Rows) -> None:
        for i in set(rows[np.isnan(self._nearest[rows])].tolist()):
            own = self._alike[i] = self._similarity.row(i)
            self._nearest[i] = max(own[:i].max(initial=0.0), own[i + 1 :].max(initial=0.0))

    def of(self, rows: Rows, others: Rows) -> Floats:
        """The similarity of `rows` to `others`, whose shapes numpy matches."""
        self._compare(rows)
        return np.asarray(self._alike[rows, others])

    def nearest(self, rows: Rows) -> Floats:
        """The similarity of each of `rows` to the row that is most like it."""
        self._compare(rows)
        return np.asarray(self._nearest[rows])


class Field:
    """The candidates that one profile proposes with one limit, and the components of their scores."""

    def __init__(self, mode: Mode, parts: Candidates, likeness: _Likeness) -> None:
        self.mode, self.parts, self._likeness = mode, parts, likeness
        self._varied: list[int] | None = None
        self._totals: dict[tuple[object, ...], tuple[Floats, Rows]] = {}

    @cached_property
    def ranges(self) -> Rows:
        """A number for the lines of each candidate."""
        return ranges(self.parts.table)

    def totals(self, rules: Sequence[Rules]) -> tuple[Floats, Rows]:
        """The scores under each of `rules` and the part of the question that is answered: (rules, candidates).

        Each is worked out once, whatever gates are tried.
        """
        keys = [scoring(rule, dated=self.parts.dated) for rule in rules]
        new = {key: rule for key, rule in zip(keys, rules, strict=True) if key not in self._totals}
        if new:
            scores = score(self.parts, list(new.values()))
            self._totals.update(zip(new, zip(scores["score"], scores["part"], strict=True), strict=True))
        return np.stack([self._totals[key][0] for key in keys]), np.stack([self._totals[key][1] for key in keys])

    def alike(self, which: Rows, others: Rows) -> Floats:
        """The similarity of each of the candidates `which` to `others`, a row of candidates for each."""
        return self._likeness.of(self.parts.table["row"][which][:, None], self.parts.table["row"][others])

    def nearest(self, which: Rows) -> Floats:
        """At least the similarity of each of the candidates `which` to the one that is most like it."""
        return self._likeness.nearest(self.parts.table["row"][which])

    def varied(self, rules: Rules) -> list[int]:
        """The candidates in their order under a profile with groups, none of whose knobs changes a score."""
        if self._varied is None:
            self._varied, scores = [], score(self.parts, [rules])
            for own in groups(self.parts.table, scores["merit"][0], scores["score"][0]):
                if rules.mmr:
                    values = scores["merit" if self.parts.table["level"][own[0]] else "score"][0, own]
                    likeness = self.alike(own, np.broadcast_to(own, (len(own), len(own))))
                    steps = mmr(values, likeness.__getitem__, rules.mmr_lambda)
                    self._varied += own[[step.item for step in steps]].tolist()
                else:
                    self._varied += own.tolist()
        return self._varied


def scoring(rules: Rules, *, dated: bool) -> tuple[object, ...]:
    """What of `rules` can change a score of one profile with one limit; `dated` where the question names a time."""
    second = rules.second_weight > 0
    return (
        rules.vector_weight,
        rules.text_weight,
        rules.half_life if rules.decay else None,
        rules.recency if rules.decay else None,
        rules.date_boost if dated else None,
        rules.second_weight,
        rules.neighbour if second else None,
    )


class Standing(Struct, frozen=True):
    """Where a row would stand: its `place` among those over the gate (0: not over it), whether that is `recalled`.

    With MMR a place is only known up to the limit; one beyond it is the limit plus one. `score` is NaN for a row that
    is no candidate.
    """

    recalled: bool
    place: int
    limit: int
    score: float


class Reranking:
    """Rankings of `evidence`; `rows` are told apart even where no setting makes them candidates."""

    def __init__(self, evidence: Evidence, rows: Sequence[int] = ()) -> None:
        self.rows = tuple(rows)
        self._small, kept = why_not.subset(evidence, rows)
        self._own = {row: i for i, row in enumerate(kept.tolist())}
        self._rows = kept
        self._fields: dict[tuple[str, Mode, int], Field] = {}
        self._likeness: dict[tuple[str, bool], _Likeness] = {}
        self._known: dict[tuple[object, ...], Standing] = {}

    @property
    def standings_known(self) -> int:
        """How many standings it remembers."""
        return len(self._known)

    def standings(self, row: int, settings: Sequence[Settings]) -> list[Standing]:
        """Where `row` stands under each of `settings`."""
        return self._standings(row, [tuned(one) for one in settings])

    def turns(self, row: int, settings: Settings, changes: Sequence[Values]) -> list[Standing]:
        """Where `row` stands under `settings` with each of `changes`."""
        base = tuned(settings)
        return self._standings(row, [{**base, **change} for change in changes])

    def _standings(self, row: int, tried: Sequence[Values]) -> list[Standing]:
        found: list[Standing | None] = [None] * len(tried)
        for field, numbered in self._grouped(tried):
            keys = [(row, id(field), *self._counted(rules)) for _, rules in numbered]
            # Walks of several knobs come by the same settings again and again.
            new = [rules for key, (_, rules) in zip(keys, numbered, strict=True) if key not in self._known]
            if new:
                fresh = iter(self._in(field, new, self._own[row]))
                self._known.update((key, next(fresh)) for key in keys if key not in self._known)
            for key, (places, _) in zip(keys, numbered, strict=True):
                for at in places:
                    found[at] = self._known[key]
        return [standing for standing in found if standing is not None]

    def recalled(self, settings: Settings) -> tuple[int, ...]:
        """The rows that are recalled, in their order."""
        return self.recalled_each([settings])[0]

    def recalled_each(self, settings: Sequence[Settings]) -> list[tuple[int, ...]]:
        """The rows that are recalled under each of `settings`, in their order."""
        found: list[tuple[int, ...]] = [()] * len(settings)
        for field, numbered in self._grouped([tuned(one) for one in settings]):
            batch = _Batch(field, [rules for _, rules in numbered])
            for (places, rules), order in zip(numbered, batch.order(), strict=True):
                rows = tuple(self._rows[field.parts.table["row"][order[: rules.results]]].tolist())
                for at in places:
                    found[at] = rows
        return found

    def _grouped(self, tried: Sequence[Values]) -> list[tuple[Field, list[tuple[list[int], Rules]]]]:
        """What is tried by what it proposes; values that differ in nothing that counts stand together."""
        groups: dict[tuple[str, Mode, int], dict[tuple[object, ...], tuple[list[int], Rules]]] = defaultdict(dict)
        modes: dict[tuple[Scalar, bool], Mode] = {}
        for at, values in enumerate(tried):
            sides = values["profile"], bool(values["query.hybrid.enabled"])
            if sides not in modes:
                modes[sides] = mode_by(self._small, str(sides[0]), hybrid=sides[1])
            rules = Rules.by(values, modes[sides], self._small.known)
            own = groups[rules.profile.name, modes[sides], rules.limit]
            own.setdefault(self._counted(rules), ([], rules))[0].append(at)
        return [(self._field(key, next(iter(own.values()))[1]), list(own.values())) for key, own in groups.items()]

    def _counted(self, rules: Rules) -> tuple[object, ...]:
        """What of `rules` can change a ranking of this evidence."""
        return (
            rules.results,
            rules.min_score,
            rules.mmr_lambda if rules.mmr else None,
            *scoring(rules, dated=bool(self._small.of_named_time)),
        )

    def _field(self, key: tuple[str, Mode, int], rules: Rules) -> Field:
        if key not in self._fields:
            small, mode = self._small, key[1]
            parts = candidates_of(small, side_of(small, mode, rules), mode, rules)
            self._fields[key] = Field(mode, parts, self._alike(rules.profile))
        return self._fields[key]

    def _alike(self, profile: Profile) -> _Likeness:
        """How alike the texts are by the words that `profile` compares."""
        key = profile.snippet, profile.exact_paths
        if key not in self._likeness:
            count = len(self._rows)
            self._likeness[key] = _Likeness(count, likeness(self._small, profile, np.arange(count)))
        return self._likeness[key]

    @staticmethod
    def _in(field: Field, rules: Sequence[Rules], own: int) -> list[Standing]:
        there = np.flatnonzero(field.parts.table["row"] == own)
        if not len(there):
            return [Standing(False, 0, rule.results, float("nan")) for rule in rules]
        at = int(there[0])
        batch = _Batch(field, rules)
        places = batch.places(at)
        return [
            Standing(0 < place <= rule.results, place, rule.results, total)
            for place, rule, total in zip(places.tolist(), rules, batch.scores[:, at].tolist(), strict=True)
        ]


_MOST_STANDINGS = 50_000
"""Standings beyond which a reranking is made anew, at 200 bytes each."""


@contextmanager
def kept_reranking(evidence: Evidence, row: int) -> Iterator[Reranking]:
    """A reranking of `evidence` that tells `row` apart, with what the one before worked out where that was for `row`.

    The next knob asks for most of it again. Who comes while another thread has it gets one of its own.
    """
    known: Reranking | None = evidence.reusable.pop(_KEPT, None)
    found = known if known is not None and known.rows == (row,) else Reranking(evidence, [row])
    try:
        yield found
    finally:
        if found.standings_known <= _MOST_STANDINGS:
            evidence.reusable[_KEPT] = found


_KEPT = "reranking"


class _Batch:
    """The candidates of a field under several rules: arrays of (rules, candidates)."""

    def __init__(self, field: Field, rules: Sequence[Rules]) -> None:
        self.field = field
        self.results = np.array([rule.results for rule in rules])
        self.diverse = np.array([rule.mmr and len(field.parts.table["row"]) > 1 for rule in rules], dtype=np.bool_)
        self.balance = column([rule.mmr_lambda for rule in rules])
        self.rules = rules
        self.scores, part = field.totals(rules)
        gate = pass_gate(self.scores, field.parts.table, rules, field.mode)
        self.passed, self.rescued = gate.passed, gate.rescued
        self.lead = leads(part, self.scores, self.passed)

    def places(self, at: int) -> Rows:
        """The place of candidate `at` among those over the gate, by each of the rules; 0 when it is not over it."""
        if self.rules[0].profile.exact_paths:
            return np.array([order.index(at) + 1 if at in order else 0 for order in self.order()])
        scores = self.scores + self.lead
        own = scores[:, at : at + 1]
        before = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) < at))
        places: Rows = 1 + np.count_nonzero(before & self.passed, axis=1)
        if self.diverse.any():
            chosen = self.chosen(at)
            for i in np.flatnonzero(self.diverse & self.passed[:, at]).tolist():
                places[i] = chosen[i].index(at) + 1 if at in chosen[i] else self.results[i] + 1
        return np.where(self.passed[:, at], places, 0)

    def order(self) -> list[list[int]]:
        """Those over the gate in their order, by each of the rules; with MMR only as many as are recalled."""
        if self.rules[0].profile.exact_paths:
            return self._grouped()
        found = self.chosen(-1) if self.diverse.any() else []
        by_score = np.argsort(np.where(self.passed, -self.scores - self.lead, np.inf), axis=1, kind="stable")
        counts = np.count_nonzero(self.passed, axis=1).tolist()
        return [
            found[i] if diverse else by_score[i, : counts[i]].tolist()
            for i, diverse in enumerate(self.diverse.tolist())
        ]

    def _grouped(self) -> list[list[int]]:
        """Those over the gate under a profile with groups and rescued hits."""
        order, found = self.field.varied(self.rules[0]), []
        for passed, last in zip(self.passed, self.rescued, strict=True):
            strict = passed & ~last
            added = without_repeats(order, self.field.ranges, strict, last)
            found.append([i for i in order if strict[i]] + [i for i in order if added[i]])
        return found

    def chosen(self, at: int) -> list[list[int]]:
        """Those over the gate in the order of MMR, by each of the rules, until `at` or the limit is reached."""
        found: list[list[int]] = [[] for _ in self.rules]
        wanted = self.diverse & (self.passed[:, at] if at >= 0 else True)
        active = np.flatnonzero(wanted & self.passed.any(axis=1))
        most = np.minimum(self.results, np.count_nonzero(self.passed, axis=1))
        scores: Floats = self.scores[active]
        balance: Floats = self.balance[active]
        low, spread = scores.min(axis=1, keepdims=True), np.ptp(scores, axis=1, keepdims=True)
        relevance = np.where(spread > 0, (scores - low) / np.where(spread > 0, spread, 1.0), 1.0)
        worth: Floats = balance * relevance + self.lead[active]
        least = self._least(active, worth, most[active], at)
        if at >= 0:
            # Where it is worth too little whatever it resembles, others fill the places.
            near_enough = worth[:, at] >= least
            active, scores, balance = active[near_enough], scores[near_enough], balance[near_enough]
            worth, least = worth[near_enough], least[near_enough]
        columns = np.flatnonzero((worth >= least[:, None]).any(axis=0))
        # Among equals the first is taken: in this order it is the one with the higher score.
        items: Rows = columns[np.argsort(-scores[:, columns], axis=1, kind="stable")]
        worth = np.take_along_axis(worth, items, axis=1)
        near: Floats = np.zeros(worth.shape)
        while len(active):
            each = np.arange(len(active))
            first = np.argmax(worth - (1.0 - balance) * near, axis=1)
            picks = items[each, first]
            worth[each, first] = -np.inf
            going = []
            for k, (i, pick) in enumerate(zip(active.tolist(), picks.tolist(), strict=True)):
                if self.passed[i, pick]:
                    found[i].append(pick)
                if pick != at and len(found[i]) < most[i]:
                    going.append(k)
            if len(going) < len(active):
                active, items, picks = active[going], items[going], picks[going]
                balance, worth, near = balance[going], worth[going], near[going]
            if going:
                np.maximum(near, self.field.alike(picks, items), out=near)
        return found

    def _least(self, active: Rows, worth: Floats, most: Rows, at: int) -> Floats:
        """What a candidate must be worth by its relevance to be chosen before enough others are, or before `at` is.

        As long as one is not chosen, what is chosen instead is worth no less than that one is beside its nearest. One
        of the `most` relevant ones that pass the gate is always left until so many are chosen.
        """
        passing = np.where(self.passed[active], worth, -np.inf)
        ranks = worth.shape[1] - most
        edges = np.take_along_axis(np.partition(passing, np.unique(ranks), axis=1), ranks[:, None], axis=1)
        among = passing >= edges
        nearest, first = np.zeros(worth.shape[1]), np.flatnonzero(among.any(axis=0))
        nearest[first] = self.field.nearest(first)
        share = 1.0 - self.balance[active]
        least: Floats = (edges - share * np.where(among, nearest, 0.0).max(axis=1, keepdims=True))[:, 0]
        if at >= 0:
            own = self.field.nearest(np.array([at]))
            least = np.maximum(least, worth[:, at] - share[:, 0] * own)
        return least
