"""Reranking: the same evidence ranked under many settings at once.

Components, scores and gate are those of ranking, for all values together; the order ends early, as a full one cannot.
`rank` gives the same answer, one setting at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memory_tui.core.settings import Settings
from memory_tui.explain import why_not
from memory_tui.search.evidence import Evidence, Flags, Rows
from memory_tui.search.formulas import Floats
from memory_tui.search.gate import pass_gate
from memory_tui.search.rank import mmr_tokens, varied
from memory_tui.search.score import (
    Components,
    Rules,
    Similarity,
    column,
    components,
    groups,
    keyword_hits,
    mode_of,
    score,
    side_of,
)
from memory_tui.search.trace import Mode


@dataclass(frozen=True, slots=True)
class Field:
    """The candidates that one profile proposes with one limit, and the components of their scores."""

    mode: Mode
    parts: Components
    keyword: Flags
    similarity: Similarity


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
        self._small, kept = why_not.subset(evidence, rows)
        self._own = {row: i for i, row in enumerate(kept.tolist())}
        self._rows = kept
        self._fields: dict[tuple[str, Mode, int], Field] = {}
        self._tokens: dict[tuple[str, int], frozenset[str]] = {}

    def standings(self, row: int, settings: Sequence[Settings]) -> list[Standing]:
        """Where `row` stands under each of `settings`."""
        found: list[Standing | None] = [None] * len(settings)
        for field, numbered in self._grouped(settings):
            rules = [rule for _, rule in numbered]
            for (places, _), standing in zip(numbered, self._in(field, rules, self._own[row]), strict=True):
                for at in places:
                    found[at] = standing
        return [standing for standing in found if standing is not None]

    def recalled(self, settings: Settings) -> tuple[int, ...]:
        """The rows that are recalled, in their order."""
        return self.recalled_each([settings])[0]

    def recalled_each(self, settings: Sequence[Settings]) -> list[tuple[int, ...]]:
        """The rows that are recalled under each of `settings`, in their order."""
        found: list[tuple[int, ...]] = [()] * len(settings)
        for field, numbered in self._grouped(settings):
            batch = _Batch(field, [rules for _, rules in numbered])
            for (places, rules), order in zip(numbered, batch.order(), strict=True):
                rows = tuple(self._rows[field.parts.rows[order[: rules.results]]].tolist())
                for at in places:
                    found[at] = rows
        return found

    def passing(self, settings: Sequence[Settings]) -> list[frozenset[int]]:
        """The rows that pass the gate under each of `settings`, whatever the limit."""
        found: list[frozenset[int]] = [frozenset()] * len(settings)
        for field, numbered in self._grouped(settings):
            passed = _Batch(field, [rules for _, rules in numbered]).passed
            for (places, _), own in zip(numbered, passed, strict=True):
                rows = frozenset(self._rows[field.parts.rows[np.flatnonzero(own)]].tolist())
                for at in places:
                    found[at] = rows
        return found

    def _grouped(self, settings: Sequence[Settings]) -> list[tuple[Field, list[tuple[list[int], Rules]]]]:
        """Settings by what they propose; those that differ in nothing that counts stand together."""
        groups: dict[tuple[str, Mode, int], dict[tuple[object, ...], tuple[list[int], Rules]]] = defaultdict(dict)
        for at, one in enumerate(settings):
            mode = mode_of(self._small, one)
            rules = Rules.of(one, mode)
            own = groups[rules.profile.name, mode, rules.limit]
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
            self._fields[key] = Field(
                mode,
                parts,
                keyword_hits(small, parts),
                Similarity(len(parts.rows), lambda i: self._words(rules, int(parts.rows[i]))),
            )
        return self._fields[key]

    def _words(self, rules: Rules, row: int) -> frozenset[str]:
        key = f"{rules.profile.snippet} {rules.profile.exact_paths}", row
        if key not in self._tokens:
            self._tokens[key] = mmr_tokens(rules.profile, self._small.texts[self._small.refs[row].rowid])
        return self._tokens[key]

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
        """Those over the gate under a profile with groups and rescued hits, none of whose knobs changes a score."""
        merit, total = self.made.merit[0], self.scores[0]
        order: list[int] = []
        for own in groups(self.field.parts, merit, total):
            steps = varied(self.field.parts, self.made, own, self.field.similarity, self.rules[0])
            order += own[[step.item for step in steps]].tolist() if self.rules[0].mmr else own.tolist()
        return [
            [i for i in order if passed[i] and not last[i]] + [i for i in order if last[i]]
            for passed, last in zip(self.passed, self.rescued, strict=True)
        ]

    @cached_property
    def _relevance(self) -> Floats:
        low, high = self.scores.min(axis=1, keepdims=True), self.scores.max(axis=1, keepdims=True)
        spread = high - low
        return np.where(spread > 0, (self.scores - low) / np.where(spread > 0, spread, 1.0), 1.0)

    def chosen(self, at: int) -> list[list[int]]:
        """Those over the gate in the order of MMR, by each of the rules, until `at` or the limit is reached."""
        count, width = self.scores.shape
        found: list[list[int]] = [[] for _ in range(count)]
        wanted = self.diverse & (self.passed[:, at] if at >= 0 else True)
        active = np.flatnonzero(wanted & self.passed.any(axis=1))
        most = np.minimum(self.results, np.count_nonzero(self.passed, axis=1))
        left, similarity = np.ones((count, width), dtype=np.bool_), np.zeros((count, width))
        while len(active):
            balance = self.balance[active]
            value = balance * self._relevance[active] - (1.0 - balance) * similarity[active]
            value = np.where(left[active], value, -np.inf)
            tied = value == value.max(axis=1, keepdims=True)
            picks = np.argmax(np.where(tied, self.scores[active], -np.inf), axis=1)
            left[active, picks] = False
            similarity[active] = np.maximum(similarity[active], self.field.similarity.rows(picks))
            going = []
            for i, pick in zip(active.tolist(), picks.tolist(), strict=True):
                if self.passed[i, pick]:
                    found[i].append(pick)
                if pick != at and len(found[i]) < most[i]:
                    going.append(i)
            active = np.array(going, dtype=np.int64)
        return found
