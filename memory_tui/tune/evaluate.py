"""An evaluation asks saved queries once, then measures them under any settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from memory_tui.errors import LabelError
from memory_tui.search.rank import Reranking, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import tuned
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import Settings
from memory_tui.tune.judgments import WRONG, Notebook, Query

Ask = Callable[[str], Evidence]
Progress = Callable[[int, int], None]
_SAME = 1e-9


class Case(Struct, frozen=True):
    """A labelled question and what the index knows about it."""

    query: Query
    evidence: Evidence
    replay: Reranking

    @classmethod
    def of(cls, query: Query, evidence: Evidence) -> Case:
        """Return a question with what can be ranked of it."""
        return cls(query, evidence, Reranking(evidence))

    def hits(self, settings: Settings) -> tuple[ChunkRef, ...]:
        """Return what is recalled under `settings`, in order."""
        (rows,) = self.replay.recalled([tuned(settings)])
        return tuple(self.evidence.refs[row] for row in rows)


class LevelCounts(Struct, frozen=True):
    """How often levels mislead: of the `answerable` queries so many are `doubted`, of the `unanswerable` `trusted`."""

    doubted: int
    answerable: int
    trusted: int
    unanswerable: int


def level_counts(cases: Sequence[Case], settings: Settings) -> LevelCounts | None:
    """Return how often levels mislead; None under a profile that tells none. No knob of the ranking changes them."""
    if not settings.profile.second_stage:
        return None
    levels = [(case.query, rank(case.evidence, settings).level) for case in cases]
    trusted = [(query, level is not None and level.level == "found") for query, level in levels]
    answerable = [trust for query, trust in trusted if query.relevant]
    others = [trust for query, trust in trusted if query.unanswerable]
    return LevelCounts(answerable.count(False), len(answerable), others.count(True), len(others))


class Measured(Struct, frozen=True):
    """One question's answer: its metrics and what was recalled."""

    query: Query
    scores: Scores
    hits: tuple[ChunkRef, ...]


class Scorecard(Struct, frozen=True):
    """All questions measured under one set of settings, and the means."""

    rows: tuple[Measured, ...]
    mean: Scores


def collect(ask: Ask, notebook: Notebook, progress: Progress = lambda _done, _total: None) -> tuple[Case, ...]:
    """Ask every question of `notebook` that can be measured; on a worker thread. Raises LabelError without any."""
    queries = notebook.judged
    if not queries:
        raise LabelError("No query has a label.", "Mark hits as right or wrong first, or name a file of labels.")
    cases = []
    for done, query in enumerate(queries, 1):
        cases.append(Case.of(query, ask(query.text)))
        progress(done, len(queries))
    return tuple(cases)


def score(cases: Sequence[Case], settings: Settings) -> Scorecard:
    """Return the metrics of `cases` under `settings`; about a millisecond a question."""
    hits = [case.hits(settings) for case in cases]
    rows = [Measured(case.query, measure(case.query, each), each) for case, each in zip(cases, hits, strict=True)]
    return Scorecard(tuple(rows), mean([row.scores for row in rows]))


def by_question(card: Scorecard) -> dict[str, Scores]:
    """Return the metrics of a scorecard by question."""
    return {row.query.text: row.scores for row in card.rows}


def missed(means: Scores, floors: Mapping[str, float]) -> dict[str, float]:
    """Return those of `floors` that their metrics miss (of noise and wrong: the ceilings that they exceed)."""
    signs = {name: -1 if name in COSTS else 1 for name in floors}
    return {name: floor for name, floor in floors.items() if signs[name] * (means[name] - floor) < -_SAME}


DEPTHS = (1, 3, 6, 10, 20)
NAMES: tuple[str, ...] = (*(f"recall@{k}" for k in DEPTHS), "recall", "mrr@10", "ndcg@10", "noise", "wrong")
"""Every metric. `recall` counts all hits that are given, `noise` those of them that hold no right line, `wrong` those
marked wrong; of these two less is better."""
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
    wrong = float(sum(query.grade(hit) == WRONG for hit in hits))
    if not grades:
        return {**dict.fromkeys(NAMES, 0.0 if hits else 1.0), "noise": noise, "wrong": wrong}
    seen: set[tuple[str, int]] = set()
    covered, first, gain = [], 0, 0.0
    for place, hit in enumerate(hits, 1):
        hit_lines = {at for at in grades if at[0] == hit.path and hit.start_line <= at[1] <= hit.end_line}
        first = first or (place if hit_lines else 0)
        if place <= _CUT:
            gain += sum(grades[at] for at in hit_lines - seen) / math.log2(place + 1)
        seen |= hit_lines
        covered.append(len(seen) / len(grades))
    best = sorted(grades.values(), reverse=True)[:_CUT]
    ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(best, 1))
    return {
        **{f"recall@{k}": covered[min(k, len(covered)) - 1] if covered else 0.0 for k in DEPTHS},
        "recall": covered[-1] if covered else 0.0,
        "mrr@10": 1 / first if 0 < first <= _CUT else 0.0,
        "ndcg@10": min(1.0, gain / ideal),
        "noise": noise,
        "wrong": wrong,
    }


def mean(scores: Sequence[Scores]) -> Scores:
    """Return each metric's mean over questions; empty without any."""
    return {name: sum(each_score[name] for each_score in scores) / len(scores) for name in NAMES} if scores else {}


class Gain(Struct, frozen=True):
    """A mean difference per question, and the 95 % interval of it by resampling the questions."""

    mean: float
    low: float
    high: float


RESAMPLES = 2000


def gain(before: Sequence[float], after: Sequence[float], seed: int = 1) -> Gain:
    """Return how much better `after` is than `before`, question by question (paired bootstrap, percentiles)."""
    differences = np.array(after) - np.array(before)
    if not len(differences):
        return Gain(0.0, 0.0, 0.0)
    picks = np.random.default_rng(seed).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.percentile(differences[picks].mean(axis=1), [2.5, 97.5])
    return Gain(float(differences.mean()), float(low), float(high))
