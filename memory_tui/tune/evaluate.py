"""An evaluation asks saved queries once, then measures them under any settings, or searches for better ones.

The search finds settings on one half of the judgments, then tests them on the other. More hits find more of anything,
so a gain only counts as far as it is greater than what the same change gains when the questions are judged by each
other's labels.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np
from msgspec import Struct

from memory_tui.config.settings import BY_KEY, TUNE_KEYS, Scalar, Settings
from memory_tui.errors import LabelError
from memory_tui.explain.counterfactuals import TEXT, Ask, spread, turned
from memory_tui.search.rank import Reranking, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import tuned
from memory_tui.search.trace import ChunkRef
from memory_tui.tune.judgments import WRONG, Notebook, Query

_SAME = 1e-9


class Case(Struct, frozen=True, dict=True):
    """A labelled question and what the index knows about it."""

    query: Query
    evidence: Evidence

    @cached_property
    def replay(self) -> Reranking:
        """Return its rankings, which have much in common."""
        return Reranking(self.evidence)

    def hits(self, settings: Settings) -> tuple[ChunkRef, ...]:
        """Return what is recalled under `settings`, in order."""
        (rows,) = self.replay.recalled([tuned(settings)])
        return tuple(self.evidence.refs[row] for row in rows)


def level_counts(cases: Sequence[Case], settings: Settings) -> dict[str, int] | None:
    """Return how often levels mislead: of the `answerable` queries so many are `doubted`, of others `trusted`.

    None under a profile that tells no level. No knob of the ranking changes them.
    """
    if not settings.profile.second_stage:
        return None
    levels = [(case.query, level.level) for case in cases if (level := rank(case.evidence, settings).level)]
    answerable = [level == "found" for query, level in levels if query.relevant]
    unanswerable = [level == "found" for query, level in levels if query.unanswerable]
    counts = {"doubted": answerable.count(False), "answerable": len(answerable)}
    return {**counts, "trusted": unanswerable.count(True), "unanswerable": len(unanswerable)}


class Measured(Struct, frozen=True):
    """One question's answer: its metrics and what was recalled."""

    query: Query
    scores: Scores
    hits: tuple[ChunkRef, ...]


Card = Mapping[str, Measured]
"""All questions measured under one set of settings: the answers by question."""


def collect(ask: Ask, notebook: Notebook, progress: Callable[[int, int], None]) -> tuple[Case, ...]:
    """Ask every question of `notebook` that can be measured; on a worker thread. Raises LabelError without any."""
    queries = notebook.judged
    if not queries:
        raise LabelError("No query has a label.", "Mark hits as right or wrong first, or name a file of labels.")
    cases = []
    for done, query in enumerate(queries, 1):
        cases.append(Case(query, ask(query.text)))
        progress(done, len(queries))
    return tuple(cases)


def score(cases: Sequence[Case], settings: Settings) -> Card:
    """Return the metrics of `cases` under `settings`; about a millisecond a question."""
    answers = [(case.query, case.hits(settings)) for case in cases]
    return {query.text: Measured(query, measure(query, hits), hits) for query, hits in answers}


def missed(means: Scores, floors: Mapping[str, float]) -> dict[str, float]:
    """Return those of `floors` that their metrics miss (of noise and wrong: the ceilings that they exceed)."""
    # How far each is better than its floor; of noise and wrong less is better.
    over = {name: floor - means[name] if name in COSTS else means[name] - floor for name, floor in floors.items()}
    return {name: floor for name, floor in floors.items() if over[name] < -_SAME}


DEPTHS = (1, 3, 6, 10, 20)
NAMES: tuple[str, ...] = (*(f"recall@{k}" for k in DEPTHS), "recall", "mrr@10", "ndcg@10", "noise", "wrong")
"""Every metric. `recall` counts all hits that are given, `noise` those of them that hold no right line, `wrong` those
marked wrong, all where the notes do not know; of these two less is better."""
COSTS = frozenset({"noise", "wrong"})
_CUT = 10

Scores = Mapping[str, float]


def measure(query: Query, hits: Sequence[ChunkRef]) -> Scores:
    """Return the metrics of one answer.

    A hit is right when it holds a line of a grade above 0. nDCG counts novelty: a hit gains the grades of the lines
    that no hit before it held, and the ideal has one line a rank. Without a right line (unanswerable) all but noise
    and wrong are 1 for an empty answer and 0 for any other.
    """
    grades = {(label.path, label.line): label.grade for label in query.relevant}
    noise = float(sum((query.grade(hit) or WRONG) == WRONG for hit in hits))
    wrong = noise if query.unanswerable else float(sum(query.grade(hit) == WRONG for hit in hits))
    if not grades:
        return {**dict.fromkeys(NAMES, 0.0 if hits else 1.0), "noise": noise, "wrong": wrong}
    seen: set[tuple[str, int]] = set()
    # The share of right lines that the first hits hold, by how many hits; 0 for no hit.
    recall_by_depth, first_right, gain = [0.0], 0, 0.0
    for place, hit in enumerate(hits, 1):
        held = {(path, line) for path, line in grades if path == hit.path and hit.start_line <= line <= hit.end_line}
        if held and not first_right:
            first_right = place
        if place <= _CUT:
            gain += sum(grades[line] for line in held - seen) / math.log2(place + 1)
        seen |= held
        recall_by_depth.append(len(seen) / len(grades))
    best = sorted(grades.values(), reverse=True)[:_CUT]
    ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(best, 1))
    return {
        **{f"recall@{depth}": recall_by_depth[min(depth, len(hits))] for depth in DEPTHS},
        "recall": recall_by_depth[-1],
        "mrr@10": 1 / first_right if 0 < first_right <= _CUT else 0.0,
        "ndcg@10": min(1.0, gain / ideal),
        "noise": noise,
        "wrong": wrong,
    }


def mean(scores: Sequence[Scores]) -> Scores:
    """Return each metric's mean over questions; empty without any."""
    return {name: sum(of_query[name] for of_query in scores) / len(scores) for name in NAMES} if scores else {}


def means(card: Card) -> Scores:
    """Return the mean of each metric over all answers of a scorecard."""
    return mean([row.scores for row in card.values()])


class Gain(Struct, frozen=True):
    """A mean difference per question, and the 95 % interval of it by resampling the questions."""

    mean: float
    low: float
    high: float


RESAMPLES = 2000


def gain(before: Sequence[float], after: Sequence[float], seed: int = 1) -> Gain:
    """Return how much better `after` is than `before`, question by question (paired bootstrap, percentiles)."""
    differences = np.array(after) - np.array(before)
    # RESAMPLES times as many questions as there are, drawn with repeats.
    picks = np.random.default_rng(seed).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.percentile(differences[picks].mean(axis=1), [2.5, 97.5])
    return Gain(float(differences.mean()), float(low), float(high))


# --- a search of the knobs -------------------------------------------------------------------------------------------

METRIC = "ndcg@10"
"""What a search is to raise."""
FEWEST = 20
"""Fewest judged queries; with fewer the search claims nothing."""
ORIGIN = "tuned on labels"
_LEFT_ALONE = {"profile", TEXT, "query.maxResults", "query.hybrid.enabled"}
"""A choice of the user's (profile, budget), or turned by another knob."""
_ROUNDS = 4
"""How often all knobs are turned one after the other."""
_SHUFFLES = 5
"""Other questions by whose labels a question is judged, to tell chance from gain."""
_POINTS = 21
"""Values of a knob that are tried in each round."""

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


def tune(
    cases: Sequence[Case], settings: Settings, seed: int = 1, progress: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Return better settings than `settings` for the labelled `cases`, or that there is no evidence for any.

    `seed` decides which half is held out. Seconds of arithmetic: for a worker thread.
    """
    answerable = sum(bool(case.query.relevant) for case in cases)
    if answerable < FEWEST:
        return NoEvidence("few labels", answerable)
    # Where a question belongs depends on its text, so that a new label moves few of the others.
    ordered = sorted(cases, key=lambda case: hashlib.sha256(f"{seed}:{case.query.text}".encode()).digest())
    training, held_out = ordered[0::2], ordered[1::2]
    best = _search(training, settings, progress)
    changes = difference(settings, best)
    if not changes:
        return NoEvidence("nothing better", answerable)
    gained = beyond_chance(held_out, settings, best, METRIC, seed)
    if gained.low <= 0:
        return NoEvidence("within chance", answerable, changes, gained)
    return Better(changes, best, gained, *_table(held_out, [settings, best]))


def difference(before: Settings, after: Settings) -> dict[str, Scalar]:
    """Return the knobs whose values differ, with those of `after`."""
    return {key: after.values[key].value for key in TUNE_KEYS if after.values[key].value != before.values[key].value}


def beyond_chance(cases: Sequence[Case], before: Settings, after: Settings, metric: str, seed: int) -> Gain:
    """Return the gain per question less what it gains by the labels of other questions, which only chance can help.

    What others lose by it, as they do where fewer hits come, is no gain.
    """
    baseline, reached = [], []
    for number, case in enumerate(cases):
        old, new = case.hits(before), case.hits(after)
        # From the next case on, round to the one before.
        others = (_foreign(other.query, case.query) for other in [*cases[number + 1 :], *cases[:number]])
        strangers = list(islice((query for query in others if query.labels), _SHUFFLES))
        gains = [measure(query, new)[metric] - measure(query, old)[metric] for query in strangers]
        chance = sum(gains) / max(1, len(gains))
        baseline.append(measure(case.query, old)[metric] + max(0.0, chance))
        reached.append(measure(case.query, new)[metric])
    return gain(baseline, reached, seed)


def _foreign(other: Query, query: Query) -> Query:
    """Return the right lines of another question, without those that answer this one too."""
    mine = {(label.path, label.line) for label in query.relevant}
    return Query(query.text, tuple(label for label in other.relevant if (label.path, label.line) not in mine))


def _table(cases: Sequence[Case], chosen: Sequence[Settings]) -> list[Scores]:
    """Return the means over `cases` under each of `chosen`."""
    tried = [tuned(settings) for settings in chosen]
    by_case = []
    for case in cases:
        answers, refs = case.replay.recalled(tried), case.evidence.refs
        scores_of = {rows: measure(case.query, [refs[row] for row in rows]) for rows in set(answers)}
        by_case.append([scores_of[rows] for rows in answers])
    return [mean(of_settings) for of_settings in zip(*by_case, strict=True)]


def _search(cases: Sequence[Case], base: Settings, progress: Callable[[str], None]) -> Settings:
    """Return the best settings on `cases`: knob after knob is turned to its best value, until a round changes nothing.

    Knobs that earn nothing are turned back to their values in `base` at the end.
    """
    reached: dict[tuple[Scalar, ...], float] = {}
    knobs = [BY_KEY[key] for key in TUNE_KEYS if key not in {*_LEFT_ALONE, *base.profile.ignores}]

    def best_of(chosen: Sequence[Settings]) -> Settings:
        """Return the best of `chosen`; the first where none is better."""
        keys = [tuple(tuned(settings).values()) for settings in chosen]
        # Settings that were tried before are not measured again.
        new = {key: settings for key, settings in zip(keys, chosen, strict=True) if key not in reached}
        for key, scores in zip(new, _table(cases, list(new.values())), strict=True):
            reached[key] = scores[METRIC]
        values = [reached[key] for key in keys]
        is_better = max(values) > values[0] + _SAME
        return chosen[values.index(max(values))] if is_better else chosen[0]

    best = base
    for _ in range(_ROUNDS):
        before = best
        for knob in knobs:
            progress(f"searching {knob.label}")
            now = best.values[knob.key].value
            nearest_first = sorted(spread(knob.key, now, _POINTS), key=lambda value: abs(float(value) - float(now)))
            best = best_of([best, *(best.update(turned({knob.key: value}), ORIGIN) for value in nearest_first)])
        if best is before:
            break
    for key in difference(base, best):
        if key != TEXT:
            # The old value, which is first of the two, is taken back unless the new one is better.
            back = {name: base.values[name].value for name in turned({key: 0})}
            best = best_of([best.update(back, ORIGIN), best])
    return best
