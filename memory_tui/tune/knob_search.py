"""The knob search finds settings on one half of the judgments, then tests them on the other.

More hits find more of anything, so a gain only counts as far as it is greater than what the same change gains when the
questions are judged by each other's labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui.explain.counterfactuals import TEXT, spread, turned
from memory_tui.search.score import tuned
from memory_tui.settings import BY_KEY, TUNE_KEYS, Scalar, Settings
from memory_tui.tune import evaluate
from memory_tui.tune.evaluate import Case, Gain, Scores
from memory_tui.tune.judgments import Query

METRIC = "ndcg@10"
"""What a search is to raise."""
FEWEST = 20
"""Fewest judged queries; with fewer the search claims nothing."""
ORIGIN = "tuned on labels"
_LEFT_ALONE = {"profile", TEXT, "query.maxResults", "query.hybrid.enabled"}
"""A choice of the user's (profile, budget), or turned by another knob."""
_ROUNDS = 4
_SHUFFLES = 5
_POINTS = 21
"""Values of a knob that are tried in each round."""

Progress = Callable[[str], None]
Reason = Literal["few labels", "nothing better", "within chance"]


class Better(Struct, frozen=True):
    """Settings that are better on held-out queries.

    `changes` are the knobs to turn; `held_out` is the gain there beyond chance, `before` and `after` the means.
    """

    changes: Mapping[str, Scalar]
    settings: Settings
    held_out: Gain
    before: Scores
    after: Scores


class NoEvidence(Struct, frozen=True):
    """Why nothing is recommended: of FEWEST labelled questions there are `have`, or the gain may be chance.

    `changes` and `held_out` are those of the best that was found, if anything was.
    """

    reason: Reason
    have: int
    changes: Mapping[str, Scalar] = {}
    held_out: Gain | None = None


Outcome = Better | NoEvidence


def tune(cases: Sequence[Case], settings: Settings, seed: int = 1, progress: Progress = lambda _: None) -> Outcome:
    """Return better settings than `settings` for the labelled `cases`, or that there is no evidence for any.

    `seed` decides which half is held out. Seconds of arithmetic: for a worker thread.
    """
    answerable = sum(bool(case.query.relevant) for case in cases)
    if answerable < FEWEST:
        return NoEvidence("few labels", answerable)
    training, held_out = split(cases, seed)
    best = _Search(training, settings, progress).run()
    changes = difference(settings, best)
    if not changes:
        return NoEvidence("nothing better", answerable)
    gained = beyond_chance(held_out, settings, best, METRIC, seed)
    if gained.low <= 0:
        return NoEvidence("within chance", answerable, changes, gained)
    return Better(changes, best, gained, *_table(held_out, [settings, best]))


def split(cases: Sequence[Case], seed: int) -> tuple[list[Case], list[Case]]:
    """Return two halves; where a question belongs depends on its text, so that a new label moves few of the others."""
    ordered = sorted(cases, key=lambda case: hashlib.sha256(f"{seed}:{case.query.text}".encode()).digest())
    return ordered[0::2], ordered[1::2]


def difference(before: Settings, after: Settings) -> dict[str, Scalar]:
    """Return the knobs whose values differ, with those of `after`."""
    return {key: after.values[key].value for key in TUNE_KEYS if after.values[key].value != before.values[key].value}


def beyond_chance(cases: Sequence[Case], before: Settings, after: Settings, metric: str, seed: int) -> Gain:
    """Return the gain per question less what it gains by the labels of other questions, which only chance can help.

    What others lose by it, as they do where fewer hits come, is no gain.
    """
    count = len(cases)
    old, new = ([case.hits(each_settings) for case in cases] for each_settings in (before, after))
    baseline, reached = [], []
    for i, case in enumerate(cases):

        def gained(query: Query, i: int = i) -> tuple[float, float]:
            return evaluate.measure(query, old[i])[metric], evaluate.measure(query, new[i])[metric]

        others = (_foreign(cases[(i + step) % count].query, case.query) for step in range(1, count))
        strangers = [gained(query) for query in others if query.labels][:_SHUFFLES]
        chance = sum(after - before for before, after in strangers) / max(1, len(strangers))
        real, then = gained(case.query)
        baseline.append(real + max(0.0, chance))
        reached.append(then)
    return evaluate.gain(baseline, reached, seed)


def _foreign(other: Query, query: Query) -> Query:
    """Return the right lines of another question, without those that answer this one too."""
    mine = {(label.path, label.line) for label in query.relevant}
    return Query(query.text, tuple(label for label in other.relevant if (label.path, label.line) not in mine))


def _table(cases: Sequence[Case], chosen: Sequence[Settings]) -> list[Scores]:
    """Return the means over `cases` under each of `chosen`."""
    rows: list[list[Scores]] = [[] for _ in chosen]
    tried = [tuned(settings) for settings in chosen]
    for case in cases:
        hits, refs = case.replay.recalled(tried), case.evidence.refs
        scores_of = {each: evaluate.measure(case.query, [refs[row] for row in each]) for each in set(hits)}
        for row, each in zip(rows, hits, strict=True):
            row.append(scores_of[each])
    return [evaluate.mean(row) for row in rows]


class _Search:
    """Knob after knob, each to its best value with the others held, until a round changes nothing."""

    def __init__(self, cases: Sequence[Case], settings: Settings, progress: Progress) -> None:
        self._cases, self._base, self._progress = cases, settings, progress
        self._values: dict[tuple[Scalar, ...], float] = {}
        self._knobs = [BY_KEY[key] for key in TUNE_KEYS if key not in {*_LEFT_ALONE, *settings.profile.ignores}]

    def run(self) -> Settings:
        """Return the best settings on these questions, with as few knobs turned as it takes."""
        best = self._base
        for _ in range(_ROUNDS):
            before = best
            for knob in self._knobs:
                self._progress(f"searching {knob.label}")
                now = best.values[knob.key].value
                far = {value: abs(float(value) - float(now)) for value in spread(knob.key, now, _POINTS)}
                tries = (best.update(turned({knob.key: value}), ORIGIN) for value in sorted(far, key=far.__getitem__))
                best = self._best([best, *tries])
            if best is before:
                break
        for key in difference(self._base, best):
            if key != TEXT:
                # A knob goes back where it was that does not earn its change.
                back = {name: self._base.values[name].value for name in turned({key: 0})}
                best = self._best([best.update(back, ORIGIN), best])
        return best

    def _best(self, chosen: Sequence[Settings]) -> Settings:
        """Return the best of `chosen`; the first where none is better."""
        keys = [tuple(tuned(settings).values()) for settings in chosen]
        # The last round turns again what nothing has changed.
        new = {key: settings for key, settings in zip(keys, chosen, strict=True) if key not in self._values}
        for key, scores in zip(new, _table(self._cases, list(new.values())), strict=True):
            self._values[key] = scores[METRIC]
        reached = [self._values[key] for key in keys]
        return chosen[0] if reached[0] >= max(reached) - 1e-9 else chosen[reached.index(max(reached))]
