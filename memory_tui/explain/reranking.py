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

from memory_tui.core.profiles import Profile
from memory_tui.core.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.explain import why_not
from memory_tui.records import dataclass
from memory_tui.search.evidence import Evidence, Flags, Rows
from memory_tui.search.formulas import Floats, mmr
from memory_tui.search.gate import pass_gate
from memory_tui.search.rank import mmr_tokens
from memory_tui.search.score import (
    Components,
    Rules,
    Scores,
    Similarity,
    column,
    components,
    groups,
    keyword_hits,
    mode_by,
    score,
    side_of,
)
from memory_tui.search.trace import Mode

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


def tuned(settings: Settings) -> Values:
    """The values that `settings` give to the knobs that rank."""
    return {key: settings.values[key].value for key in TUNE_KEYS}


class Field:
    """The candidates that one profile proposes with one limit, and the components of their scores.

    `similarity` compares any rows of the evidence.
    """

    def __init__(self, mode: Mode, evidence: Evidence, parts: Components, similarity: Similarity) -> None:
        self.mode, self.parts, self.similarity = mode, parts, similarity
        self._evidence = evidence
        self._varied: list[int] | None = None
        count = len(parts.rows)
        self._alike, self._compared = np.zeros((count, 0)), np.zeros(count, dtype=np.bool_)

    @cached_property
    def keyword(self) -> Flags:
        """Which candidates the relaxed floor takes for keyword hits; few rankings ask."""
        return keyword_hits(self._evidence, self.parts)

    def alike(self, which: Rows, others: Rows) -> Floats:
        """The similarity of each of the candidates `which` to `others`, a row of candidates for each."""
        if not self._alike.size:
            self._alike = np.empty((len(self._compared), len(self._compared)))
        for i in which[~self._compared[which]].tolist():
            self._alike[i] = self._row(i)
            self._compared[i] = True
        return np.asarray(self._alike[which[:, None], others])

    def _row(self, i: int) -> Floats:
        return self.similarity.row(int(self.parts.rows[i]))[self.parts.rows]

    def varied(self, scores: Scores, rules: Rules) -> list[int]:
        """The candidates in their order under a profile with groups, none of whose knobs changes a score."""
        if self._varied is None:
            self._varied = []
            for own in groups(self.parts, scores.merit[0], scores.total[0]):
                if rules.mmr:
                    values = (scores.merit if self.parts.level[own[0]] else scores.total)[0, own]
                    likeness = [self._row(i)[own] for i in own.tolist()]
                    steps = mmr(values, likeness.__getitem__, rules.mmr_lambda)
                    self._varied += own[[step.item for step in steps]].tolist()
                else:
                    self._varied += own.tolist()
        return self._varied


@dataclass(frozen=True, slots=True)
class Standing:
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
        self._similar: dict[tuple[str, bool], Similarity] = {}
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
                rows = tuple(self._rows[field.parts.rows[order[: rules.results]]].tolist())
                for at in places:
                    found[at] = rows
        return found

    def passing(self, settings: Sequence[Settings]) -> list[frozenset[int]]:
        """The rows that pass the gate under each of `settings`, whatever the limit."""
        found: list[frozenset[int]] = [frozenset()] * len(settings)
        for field, numbered in self._grouped([tuned(one) for one in settings]):
            passed = _Batch(field, [rules for _, rules in numbered]).passed
            for (places, _), own in zip(numbered, passed, strict=True):
                rows = frozenset(self._rows[field.parts.rows[np.flatnonzero(own)]].tolist())
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
            rules.vector_weight,
            rules.text_weight,
            *((rules.half_life, rules.recency) if rules.decay else ()),
            *((rules.mmr_lambda,) if rules.mmr else ("no mmr",)),
            rules.date_boost if self._small.of_named_time else 0.0,
            *((rules.second_weight, rules.neighbour) if rules.second_weight else ()),
        )

    def _field(self, key: tuple[str, Mode, int], rules: Rules) -> Field:
        if key not in self._fields:
            small, mode = self._small, key[1]
            parts = components(small, side_of(small, mode, rules), mode, rules)
            self._fields[key] = Field(mode, small, parts, self._similarity(rules.profile))
        return self._fields[key]

    def _similarity(self, profile: Profile) -> Similarity:
        """How alike the texts are by the words that `profile` compares."""
        key = profile.snippet, profile.exact_paths
        if key not in self._similar:
            refs, texts = self._small.refs, self._small.texts
            self._similar[key] = Similarity(
                len(self._rows), lambda i: mmr_tokens(profile, texts.get(refs[i].rowid, ""))
            )
        return self._similar[key]

    @staticmethod
    def _in(field: Field, rules: Sequence[Rules], own: int) -> list[Standing]:
        there = np.flatnonzero(field.parts.rows == own)
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
    known: Reranking | None = evidence.kept.pop(_KEPT, None)
    found = known if known is not None and known.rows == (row,) else Reranking(evidence, [row])
    try:
        yield found
    finally:
        if found.standings_known <= _MOST_STANDINGS:
            evidence.kept[_KEPT] = found


_KEPT = "reranking"


class _Batch:
    """The candidates of a field under several rules: arrays of (rules, candidates)."""

    def __init__(self, field: Field, rules: Sequence[Rules]) -> None:
        self.field = field
        self.results = np.array([rule.results for rule in rules])
        self.diverse = np.array([rule.mmr and len(field.parts.rows) > 1 for rule in rules], dtype=np.bool_)
        self.balance = column([rule.mmr_lambda for rule in rules])
        self.rules = rules
        self.made = score(field.parts, rules)
        self.scores = self.made.total
        gate = pass_gate(self.scores, field.parts, rules, field.mode, lambda: field.keyword)
        self.passed, self.rescued = gate.passed, gate.rescued

    def places(self, at: int) -> Rows:
        """The place of candidate `at` among those over the gate, by each of the rules; 0 when it is not over it."""
        if self.rules[0].profile.exact_paths:
            return np.array([order.index(at) + 1 if at in order else 0 for order in self.order()])
        scores, own = self.scores, self.scores[:, at : at + 1]
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
        by_score = np.argsort(np.where(self.passed, -self.scores, np.inf), axis=1, kind="stable")
        counts = np.count_nonzero(self.passed, axis=1).tolist()
        return [
            found[i] if diverse else by_score[i, : counts[i]].tolist()
            for i, diverse in enumerate(self.diverse.tolist())
        ]

    def _grouped(self) -> list[list[int]]:
        """Those over the gate under a profile with groups and rescued hits."""
        order = self.field.varied(self.made, self.rules[0])
        return [
            [i for i in order if passed[i] and not last[i]] + [i for i in order if last[i]]
            for passed, last in zip(self.passed, self.rescued, strict=True)
        ]

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
        # Among equals the first is taken: in this order it is the one with the higher score.
        items: Rows = np.argsort(-scores, axis=1, kind="stable")
        worth: Floats = balance * np.take_along_axis(relevance, items, axis=1)
        near: Floats = np.zeros(scores.shape)
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
