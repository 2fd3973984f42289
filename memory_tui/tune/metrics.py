"""Metrics of an answer. They are recall, MRR, novelty nDCG and noise, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory_tui.search.trace import ChunkRef
from memory_tui.tune.judgments import WRONG, Query

DEPTHS = (1, 3, 6, 10, 20)
NAMES: tuple[str, ...] = (*(f"recall@{k}" for k in DEPTHS), "recall", "mrr@10", "ndcg@10", "noise", "wrong")
"""Every metric. `recall` counts all hits that are given, `noise` those of them that hold no right line, `wrong` those
marked wrong; of these two less is better."""
COSTS = frozenset({"noise", "wrong"})
_CUT = 10

Scores = Mapping[str, float]


def measure(query: Query, hits: Sequence[ChunkRef]) -> Scores:
    """The metrics of one answer.

    A hit is right when it holds a line of a grade above 0. nDCG counts novelty: a hit gains the grades of the lines
    that no hit before it held, and the ideal has one line a rank. Without a right line (unanswerable) all but noise
    and wrong are 1 for an empty answer and 0 for any other.
    """
    grades = {(label.path, label.line): label.grade for label in query.relevant}
    noise = float(sum((query.grade(hit) or WRONG) == WRONG for hit in hits))
    wrong = float(sum(query.grade(hit) == WRONG for hit in hits))
    if not grades:
        good = 0.0 if hits else 1.0
        return {**dict.fromkeys(NAMES, good), "noise": noise, "wrong": wrong}
    seen: set[tuple[str, int]] = set()
    covered, first, gain = [], 0, 0.0
    for place, hit in enumerate(hits, 1):
        held = {at for at in grades if at[0] == hit.path and hit.start_line <= at[1] <= hit.end_line}
        first = first or (place if held else 0)
        if place <= _CUT:
            gain += sum(grades[at] for at in held - seen) / math.log2(place + 1)
        seen |= held
        covered.append(len(seen) / len(grades))
    ideal = sum(
        grade / math.log2(place + 1) for place, grade in enumerate(sorted(grades.values(), reverse=True)[:_CUT], 1)
    )
    whole = covered[-1] if covered else 0.0
    return {
        **{f"recall@{k}": covered[min(k, len(covered)) - 1] if covered else 0.0 for k in DEPTHS},
        "recall": whole,
        "mrr@10": 1 / first if 0 < first <= _CUT else 0.0,
        "ndcg@10": min(1.0, gain / ideal),
        "noise": noise,
        "wrong": wrong,
    }


def mean(scores: Sequence[Scores]) -> Scores:
    """Each metric's mean over questions; empty without any."""
    return {name: sum(one[name] for one in scores) / len(scores) for name in NAMES} if scores else {}


@dataclass(frozen=True, slots=True)
class Gain:
    """A mean difference per question, and the 95 % interval of it by resampling the questions."""

    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves no doubt that there is a difference."""
        return self.low > 0 or self.high < 0


RESAMPLES = 2000


def gain(before: Sequence[float], after: Sequence[float], seed: int = 1) -> Gain:
    """How much better `after` is than `before`, question by question (paired bootstrap, percentiles)."""
    differences = np.array(after) - np.array(before)
    if not len(differences):
        return Gain(0.0, 0.0, 0.0)
    picks = np.random.default_rng(seed).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.percentile(differences[picks].mean(axis=1), [2.5, 97.5])
    return Gain(float(differences.mean()), float(low), float(high))
