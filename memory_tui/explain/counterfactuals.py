"""Who would be recalled under many settings at once: the arithmetic of ranking over a whole row of values.

Components, scores and gate are those of ranking, for all values together; the order ends early, as a full one cannot.
`rank` gives the same answer, one setting at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memory_tui.explain import proposed
from memory_tui.search.evidence import Evidence, Flags, Rows
from memory_tui.search.fuse import Components, Rules, column, components, keyword_hits, mode_of, score, side_of
from memory_tui.search.gate import pass_gate
from memory_tui.search.rank import mmr_tokens
from memory_tui.search.scoring import Floats
from memory_tui.search.similarity import Similarity
from memory_tui.search.trace import Mode
from memory_tui.settings import Settings


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


class Replay:
    """Rankings of `evidence`; `rows` are told apart even where no setting makes them candidates."""

    def __init__(self, evidence: Evidence, rows: Sequence[int] = ()) -> None:
        self._small, kept = proposed.subset(evidence, rows)
        self._own = {row: i for i, row in enumerate(kept.tolist())}
        self._rows = kept
        self._fields: dict[tuple[str, Mode, int], Field] = {}
        self._tokens: dict[tuple[str, int], frozenset[str]] = {}

    def standings(self, row: int, settings: Sequence[Settings]) -> list[Standing]:
        """Where `row` stands under each of `settings`."""
        found: list[Standing | None] = [None] * len(settings)
        for field, numbered in self._grouped(settings):
            rules = [rule for _, rule in numbered]
            for (at, _), standing in zip(numbered, self._in(field, rules, self._own[row]), strict=True):
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
            for (at, rules), order in zip(numbered, batch.order(), strict=True):
                found[at] = tuple(self._rows[field.parts.rows[order[: rules.results]]].tolist())
        return found

    def _grouped(self, settings: Sequence[Settings]) -> list[tuple[Field, list[tuple[int, Rules]]]]:
        groups: dict[tuple[str, Mode, int], list[tuple[int, Rules]]] = defaultdict(list)
        for at, one in enumerate(settings):
            mode = mode_of(self._small, one)
            rules = Rules.of(one, mode)
            groups[rules.profile.name, mode, rules.limit].append((at, rules))
        return [(self._field(key, numbered[0][1]), numbered) for key, numbered in groups.items()]

    def _field(self, key: tuple[str, Mode, int], rules: Rules) -> Field:
        if key not in self._fields:
            small, mode = self._small, key[1]
            parts = components(small, side_of(small, mode, rules), mode, rules)
            self._fields[key] = Field(
                mode,
                parts,
                keyword_hits(small, parts),
                Similarity(lambda: [self._words(rules, row) for row in parts.rows.tolist()]),
            )
        return self._fields[key]

    def _words(self, rules: Rules, row: int) -> frozenset[str]:
        key = rules.profile.snippet, row
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
        self.scores = score(field.parts, rules).total
        self.passed = pass_gate(self.scores, rules, field.mode, lambda: field.keyword).passed

    def places(self, at: int) -> Rows:
        """The place of candidate `at` among those over the gate, by each of the rules; 0 when it is not over it."""
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
        found = self.chosen(-1) if self.diverse.any() else []
        by_score = np.argsort(np.where(self.passed, -self.scores, np.inf), axis=1, kind="stable")
        counts = np.count_nonzero(self.passed, axis=1).tolist()
        return [
            found[i] if diverse else by_score[i, : counts[i]].tolist()
            for i, diverse in enumerate(self.diverse.tolist())
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
