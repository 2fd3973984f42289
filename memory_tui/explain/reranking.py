"""Reranking: the same evidence ranked under many settings at once.

Scores and gate are those of ranking, for all values together; the order ends where the limit is reached. `rank` gives
the same answer, one setting at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from memory_tui.explain import why_not
from memory_tui.search.evidence import Evidence, Flags, Rows
from memory_tui.search.formulas import Floats, mmr
from memory_tui.search.rank import likeness, pass_gate, without_repeats
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
from memory_tui.search.trace import Mode
from memory_tui.settings import TUNE_KEYS, Scalar, Settings

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


def tuned(settings: Settings) -> Values:
    """Return the values that `settings` give to the knobs that rank."""
    return {key: settings.values[key].value for key in TUNE_KEYS}


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
        self._small, self._rows = why_not.subset(evidence, rows)
        self._fields: dict[tuple[str, Mode, int], _Field] = {}

    def standings(self, row: int, settings: Sequence[Settings]) -> list[Standing]:
        """Return where `row` stands under each of `settings`."""
        return self._standings(row, [tuned(setting) for setting in settings])

    def turns(self, row: int, settings: Settings, changes: Sequence[Values]) -> list[Standing]:
        """Return where `row` stands under `settings` with each of `changes`."""
        base = tuned(settings)
        return self._standings(row, [{**base, **change} for change in changes])

    def recalled(self, settings: Settings) -> tuple[int, ...]:
        """Return the rows that are recalled, in their order."""
        return self.recalled_each([settings])[0]

    def recalled_each(self, settings: Sequence[Settings]) -> list[tuple[int, ...]]:
        """Return the rows that are recalled under each of `settings`, in their order."""
        rows_by_setting: list[tuple[int, ...]] = [()] * len(settings)
        for places, field, rules in self._grouped([tuned(setting) for setting in settings]):
            rows = self._rows[field.candidates.table["row"]]
            for at, rule, order in zip(places, rules, field.orders(rules), strict=True):
                rows_by_setting[at] = tuple(rows[order[: rule.results]].tolist())
        return rows_by_setting

    def _standings(self, row: int, tried: Sequence[Values]) -> list[Standing]:
        places_by_rule: list[Standing] = [Standing(False, 0, 0, float("nan"))] * len(tried)
        at_row = int(np.searchsorted(self._rows, row))
        for places, field, rules in self._grouped(tried):
            for at, standing in zip(places, field.standings(at_row, rules), strict=True):
                places_by_rule[at] = standing
        return places_by_rule

    def _grouped(self, tried: Sequence[Values]) -> Iterator[tuple[list[int], _Field, list[Rules]]]:
        """Yield what is tried by what it proposes: which of them, their candidates, their rules."""
        together: dict[tuple[str, Mode, int], list[tuple[int, Rules]]] = defaultdict(list)
        for at, values in enumerate(tried):
            mode = mode_by(self._small, str(values["profile"]), hybrid=bool(values["query.hybrid.enabled"]))
            rules = Rules.by(values, mode, self._small.known_share)
            together[rules.profile.name, mode, rules.limit].append((at, rules))
        for key, numbered in together.items():
            places, each = [at for at, _ in numbered], [rules for _, rules in numbered]
            if key not in self._fields:
                side = side_of(self._small, key[1], each[0])
                candidates = candidates_of(self._small, side, key[1], each[0])
                self._fields[key] = _Field(self._small, candidates, key[1])
            yield places, self._fields[key], each


class _Field:
    """The candidates that one profile proposes with one limit."""

    def __init__(self, evidence: Evidence, candidates: Candidates, mode: Mode) -> None:
        self.candidates, self._evidence, self._mode = candidates, evidence, mode
        self._scored: dict[tuple[object, ...], tuple[Floats, Rows]] = {}
        self._alike: Floats | None = None

    def standings(self, row: int, rules: Sequence[Rules]) -> list[Standing]:
        """Return where `row` stands under each of `rules`."""
        there = np.flatnonzero(self.candidates.table["row"] == row)
        if not len(there):
            return [Standing(False, 0, rule.results, float("nan")) for rule in rules]
        at, result = int(there[0]), []
        scores, _ = self._scores(rules)
        for rule, total, order in zip(rules, scores[:, at].tolist(), self.orders(rules, at), strict=True):
            place = order.index(at) + 1 if at in order else 0
            result.append(Standing(0 < place <= rule.results, place, rule.results, total))
        return result

    def orders(self, rules: Sequence[Rules], at: int = -1) -> list[list[int]]:
        """Return the candidates over the gate in their order, by each of `rules`; with MMR as many as are recalled.

        There candidate `at` follows them, where it is over the gate and not among them.
        """
        scores, part = self._scores(rules)
        gate = pass_gate(scores, self.candidates.table, rules, self._mode)
        if rules[0].profile.exact_paths:
            return self._in_groups(rules[0], gate.passed, gate.rescued)
        lead = leads(part, scores, gate.passed)
        by_score = np.argsort(np.where(gate.passed, -scores - lead, np.inf), axis=1, kind="stable")
        counts = np.count_nonzero(gate.passed, axis=1).tolist()
        result = [order[:count].tolist() for order, count in zip(by_score, counts, strict=True)]
        diverse = [i for i, rule in enumerate(rules) if rule.mmr and counts[i] and scores.shape[1] > 1]
        if diverse:
            chosen = self._varied([rules[i] for i in diverse], scores[diverse], lead[diverse], gate.passed[diverse])
            for i, order in zip(diverse, chosen, strict=True):
                result[i] = [*order, at] if at >= 0 and gate.passed[i, at] and at not in order else order
        return result

    def _scores(self, rules: Sequence[Rules]) -> tuple[Floats, Rows]:
        """Return scores and the part of the question that is answered: (rules, candidates); each worked out once."""
        keys = [_scoring(rule) for rule in rules]
        new = {key: rule for key, rule in zip(keys, rules, strict=True) if key not in self._scored}
        if new:
            scores = score(self.candidates, list(new.values()))
            self._scored.update(zip(new, zip(scores["score"], scores["part"], strict=True), strict=True))
        return np.stack([self._scored[key][0] for key in keys]), np.stack([self._scored[key][1] for key in keys])

    def _likeness(self, rules: Rules) -> Floats:
        """Return how alike the candidates are: (candidates, candidates)."""
        if self._alike is None:
            rows = self.candidates.table["row"]
            alike = likeness(self._evidence, rules.profile, rows)
            self._alike = np.stack([alike.row(i) for i in range(len(rows))])
        return self._alike

    def _in_groups(self, rules: Rules, passed: Flags, rescued: Flags) -> list[list[int]]:
        """Return the order under a profile with groups and rescued hits, none of whose knobs changes a score."""
        table, scores = self.candidates.table, score(self.candidates, [rules])
        order: list[int] = []
        for group in groups(table, scores["merit"][0], scores["score"][0]):
            if rules.mmr:
                values = scores["merit" if table["level"][group[0]] else "score"][0, group]
                alike = self._likeness(rules)[np.ix_(group, group)]
                order += group[[step.item for step in mmr(values, alike.__getitem__, rules.mmr_lambda)]].tolist()
            else:
                order += group.tolist()
        result, lines = [], ranges(table)
        for through, last in zip(passed, rescued, strict=True):
            strict = through & ~last
            added = without_repeats(order, lines, strict, last)
            result.append([i for i in order if strict[i]] + [i for i in order if added[i]])
        return result

    def _varied(self, rules: Sequence[Rules], scores: Floats, lead: Floats, passed: Flags) -> list[list[int]]:
        """Return those over the gate in the order of MMR, by each of `rules`, until the limit is reached."""
        picked: list[list[int]] = [[] for _ in rules]
        alike = self._likeness(rules[0])
        most = np.minimum([rule.results for rule in rules], np.count_nonzero(passed, axis=1))
        balance = column([rule.mmr_lambda for rule in rules])
        low, spread = scores.min(axis=1, keepdims=True), np.ptp(scores, axis=1, keepdims=True)
        relevance = np.where(spread > 0, (scores - low) / np.where(spread > 0, spread, 1.0), 1.0)
        # Among equals the first is taken: in this order it is the one with the higher score.
        items = np.argsort(-scores, axis=1, kind="stable")
        worth = np.take_along_axis(balance * relevance + lead, items, axis=1)
        near: Floats = np.zeros(worth.shape)
        active = np.arange(len(rules))
        while len(active):
            first = np.argmax(worth[active] - (1.0 - balance[active]) * near[active], axis=1)
            picks = items[active, first]
            worth[active, first] = -np.inf
            near[active] = np.maximum(near[active], alike[picks[:, None], items[active]])
            for i, pick in zip(active.tolist(), picks.tolist(), strict=True):
                if passed[i, pick]:
                    picked[i].append(pick)
            active = np.array([i for i in active.tolist() if len(picked[i]) < most[i]], dtype=np.int64)
        return picked


def _scoring(rules: Rules) -> tuple[object, ...]:
    """Return what of `rules` can change a score of one profile with one limit."""
    age = (rules.half_life, rules.recency) if rules.decay else None
    return rules.vector_weight, rules.text_weight, age, rules.date_boost, rules.second_weight, rules.neighbour
