"""The knob search finds settings on one half of the judgments, then tests them on the other.

More hits find more of anything, so a gain only counts as far as it is greater than what the same change gains when the
questions are judged by each other's labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui import profiles
from memory_tui.explain.counterfactuals import TEXT, WEIGHT, turned
from memory_tui.explain.reranking import tuned
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings
from memory_tui.tune import evaluate
from memory_tui.tune.evaluate import Case, Gain, Scores
from memory_tui.tune.judgments import Query

FEWEST = 20
"""Fewest judged queries; with fewer the search claims nothing."""
ORIGIN = "tuned on labels"
_LEFT_ALONE = {"profile", TEXT, "query.maxResults", "query.hybrid.enabled"}
"""A choice of the user's (profile, budget), or turned by another knob."""
_ROUNDS = 4
_SHUFFLES = 5
_LOGARITHMIC = 100
_STARTS = (0.15, 0.4, 0.65, 0.9)
"""Vector weights at which the search starts, so that no local best traps it."""

PRESETS: tuple[Mapping[str, Scalar], ...] = (
    {WEIGHT: 0.2, TEXT: 0.8},
    {WEIGHT: 0.6, TEXT: 0.4},
    {WEIGHT: 0.4, TEXT: 0.6, "secondStage.weight": 0.3},
    {WEIGHT: 0.4, TEXT: 0.6, "secondStage.weight": 0.8},
    {WEIGHT: 0.6, TEXT: 0.4, "secondStage.weight": 0.8},
)
"""Whole sets of knobs to choose from, where few judgments must not turn single knobs: for identifiers and exact words,
for questions in other words than the notes, for short notes, for long ones, for long ones in other words."""

Progress = Callable[[str], None]
Reason = Literal["few labels", "nothing better", "within chance"]


class Point(Struct, frozen=True):
    """One setting of minScore and results, with what it recalls and the noise that it costs, on the held-out half."""

    min_score: float
    results: int
    recall: float
    noise: float


class Better(Struct, frozen=True):
    """Settings that are better on held-out queries.

    `changes` are the knobs to turn; `held_out` is the gain there beyond chance, `before` and `after` the means.
    """

    changes: Mapping[str, Scalar]
    settings: Settings
    metric: str
    training: Gain
    held_out: Gain
    before: Scores
    after: Scores
    front: tuple[Point, ...]


class NoEvidence(Struct, frozen=True):
    """Why nothing is recommended: of `needed` labelled questions there are `have`, or the gain may be chance.

    `changes` and `held_out` are those of the best that was found, if anything was. A gain under `missed` on held-out
    questions would be found in fewer than four of five such measurements; 0 where nothing was measured.
    """

    reason: Reason
    have: int
    needed: int
    changes: Mapping[str, Scalar]
    held_out: Gain | None
    front: tuple[Point, ...]
    missed: float = 0.0


Outcome = Better | NoEvidence


def tune(
    cases: Sequence[Case],
    settings: Settings,
    metric: str = "ndcg@10",
    seed: int = 1,
    progress: Progress = lambda _: None,
    *,
    presets: bool = False,
) -> Outcome:
    """Better settings than `settings` for the labelled `cases`, or that there is no evidence for any.

    `metric` is what to raise; `seed` decides which half is held out. With `presets` only whole ones are chosen from.
    Seconds of arithmetic: for a worker thread.
    """
    answerable = sum(bool(case.query.relevant) for case in cases)
    if answerable < FEWEST:
        return NoEvidence("few labels", answerable, FEWEST, {}, None, ())
    training, held_out = split(cases, seed)
    search = _Search(training, settings, metric, progress)
    best = search.preset() if presets else search.run()
    front = pareto(held_out, best)
    changes = difference(settings, best)
    if not changes:
        return NoEvidence("nothing better", answerable, FEWEST, {}, None, front)
    gained = beyond_chance(held_out, settings, best, metric, seed)
    if gained.low <= 0:
        return NoEvidence("within chance", answerable, FEWEST, changes, gained, front, detectable(gained))
    before, after = (evaluate.mean(_scores(held_out, each_settings)) for each_settings in (settings, best))
    return Better(
        changes, best, metric, beyond_chance(training, settings, best, metric, seed), gained, before, after, front
    )


def detectable(gain: Gain) -> float:
    """Return the least true gain that four of five measurements as wide as `gain` would tell from none.

    1.96 + 0.84 standard errors: the quantiles of the normal distribution for 95 % in the middle and for 80 %.
    """
    return (1.96 + 0.84) * (gain.high - gain.low) / (2 * 1.96)


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
        others = [cases[(i + step) % count].query for step in range(1, count)]
        strangers = [query for query in (_foreign(other, case.query) for other in others) if query.labels][:_SHUFFLES]
        chance = sum(
            evaluate.measure(query, new[i])[metric] - evaluate.measure(query, old[i])[metric] for query in strangers
        ) / max(1, len(strangers))
        real = evaluate.measure(case.query, old[i])[metric]
        baseline.append(real + (min(0.0, chance) if metric in evaluate.COSTS else max(0.0, chance)))
        reached.append(evaluate.measure(case.query, new[i])[metric])
    return evaluate.gain(baseline, reached, seed)


def _foreign(other: Query, query: Query) -> Query:
    """Return the right lines of another question, without those that answer this one too."""
    mine = {(label.path, label.line) for label in query.relevant}
    return Query(query.text, tuple(label for label in other.relevant if (label.path, label.line) not in mine))


def pareto(cases: Sequence[Case], settings: Settings) -> tuple[Point, ...]:
    """What minScore and results can trade: the settings of both that no other beats in recall and noise at once."""
    tries = [(floor / 20, results) for floor in range(21) for results in (1, 2, 3, 4, 6, 8, 10, 15, 20)]
    chosen = [
        settings.update({"query.minScore": floor, "query.maxResults": results}, ORIGIN) for floor, results in tries
    ]
    table = _table(cases, chosen)
    points = [
        Point(floor, results, scores["recall"], scores["noise"])
        for (floor, results), scores in zip(tries, table, strict=True)
    ]
    points.sort(key=lambda point: (point.noise, -point.recall, point.results, -point.min_score))
    front: list[Point] = []
    for point in points:
        if not front or point.recall > front[-1].recall + 1e-9:
            front.append(point)
    return tuple(front)


def _scores(cases: Sequence[Case], settings: Settings) -> list[Scores]:
    return [evaluate.measure(case.query, case.hits(settings)) for case in cases]


def _table(cases: Sequence[Case], chosen: Sequence[Settings]) -> list[Scores]:
    """Return the means over `cases` under each of `chosen`."""
    rows: list[list[Scores]] = [[] for _ in chosen]
    tried = [tuned(settings) for settings in chosen]
    for case in cases:
        scores_by_hits: dict[tuple[int, ...], Scores] = {}
        for at, hits in enumerate(case.replay.recalled(tried)):
            if hits not in scores_by_hits:
                scores_by_hits[hits] = evaluate.measure(case.query, [case.evidence.refs[row] for row in hits])
            rows[at].append(scores_by_hits[hits])
    return [evaluate.mean(row) for row in rows]


class _Search:
    """Knob after knob, each to its best value with the others held, until a round changes nothing."""

    def __init__(self, cases: Sequence[Case], settings: Settings, metric: str, progress: Progress) -> None:
        self._cases, self._base, self._metric, self._progress = cases, settings, metric, progress
        self._part = ""
        self._values_by_key: dict[tuple[Scalar, ...], float] = {}
        ignored = profiles.get(settings.word("profile")).ignores
        self._knobs = [BY_KEY[key] for key in TUNE_KEYS if key not in _LEFT_ALONE and key not in ignored]

    def run(self) -> Settings:
        """Return the best settings on these questions, with as few knobs turned as it takes."""
        starts = [self._base, *(self._base.update(turned({WEIGHT: weight}), ORIGIN) for weight in _STARTS)]
        summits = []
        for number, start in enumerate(starts, 1):
            self._part = f"search {number} of {len(starts)}"
            summits.append(self._climb(start))
        best = max(summits, key=self._value)
        return self._plainest(best) if self._value(best) > self._value(self._base) + 1e-9 else self._base

    def preset(self) -> Settings:
        """Return the best of the present settings and the whole presets; the present ones where none is better."""
        self._progress("presets")
        ignored = profiles.get(self._base.word("profile")).ignores
        counted = ({key: value for key, value in preset.items() if key not in ignored} for preset in PRESETS)
        chosen = [self._base, *(self._base.update(preset, ORIGIN) for preset in counted)]
        reached = self._values(chosen)
        return self._base if reached[0] >= max(reached) - 1e-9 else chosen[reached.index(max(reached))]

    def _value(self, settings: Settings) -> float:
        return self._values([settings])[0]

    def _values(self, chosen: Sequence[Settings]) -> list[float]:
        keys = [tuple(one.values[key].value for key in TUNE_KEYS) for one in chosen]
        # The searches from several starts meet, and a last round turns again what nothing has changed.
        new = {key: one for key, one in zip(keys, chosen, strict=True) if key not in self._values_by_key}
        sign = -1 if self._metric in evaluate.COSTS else 1
        for key, scores in zip(new, _table(self._cases, list(new.values())), strict=True):
            self._values_by_key[key] = sign * scores[self._metric]
        return [self._values_by_key[key] for key in keys]

    def _climb(self, settings: Settings) -> Settings:
        for _ in range(_ROUNDS):
            before, settings = settings, self._round(settings, coarse)
            if settings is before:
                break
        return self._round(settings, fine)

    def _round(self, settings: Settings, grid: Callable[[Knob, Scalar], list[Scalar]]) -> Settings:
        for knob in self._knobs:
            settings = self._best(knob, settings, grid(knob, settings.values[knob.key].value))
        return settings

    def _best(self, knob: Knob, settings: Settings, values: Sequence[Scalar]) -> Settings:
        """Return the best of `values`, the present one where none is better."""
        self._progress(f"{self._part}: {knob.label}")
        chosen = [settings, *(settings.update(turned({knob.key: value}), ORIGIN) for value in values)]
        reached = self._values(chosen)
        top = max(reached)
        return settings if reached[0] >= top - 1e-9 else chosen[reached.index(top)]

    def _plainest(self, settings: Settings) -> Settings:
        """Return `settings` with every knob back where it was that does not earn its change."""
        value = self._value(settings)
        for key in difference(self._base, settings):
            if key != TEXT:
                back = settings.update({k: self._base.values[k].value for k in turned({key: 0})}, ORIGIN)
                if self._value(back) >= value - 1e-9:
                    settings = back
        return settings


def coarse(knob: Knob, value: Scalar) -> list[Scalar]:
    """Return the values of `knob` by its steps, by factors where its range is wide; nearest to `value` first."""
    if isinstance(knob.default, bool):
        return [not value]
    if knob.low > 0 and knob.high / knob.low > _LOGARITHMIC:
        grid = [knob.low * (knob.high / knob.low) ** (i / 20) for i in range(21)]
    else:
        grid = [knob.low + i * knob.step for i in range(round((knob.high - knob.low) / knob.step) + 1)]
    return _near(knob, value, grid)


def fine(knob: Knob, value: Scalar) -> list[Scalar]:
    """Return the values within a step of `value`, by fine steps."""
    if isinstance(knob.default, bool):
        return []
    reach = round(knob.step / knob.fine)
    return _near(knob, value, [float(value) + i * knob.fine for i in range(-reach, reach + 1)])


def _near(knob: Knob, value: Scalar, grid: Sequence[float]) -> list[Scalar]:
    rounded = [round(round(at / knob.fine) * knob.fine, 6) for at in grid]
    values: list[Scalar] = [
        at if isinstance(knob.default, float) else int(at)
        for at in dict.fromkeys(rounded)
        if knob.low <= at <= knob.high and at != value
    ]
    return sorted(values, key=lambda at: abs(float(at) - float(value)))
