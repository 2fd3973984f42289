"""Who is recalled: minScore, the relaxed floor, the limit, and a verdict for everybody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_tui.search.evidence import Evidence, Flags, Side
from memory_tui.search.scoring import Floats
from memory_tui.search.trace import (
    AllBelowGate,
    BelowMinScore,
    BeyondLimit,
    BlankQuery,
    DisplacedByMmr,
    EmptyIndex,
    EmptyReason,
    LoweredByDecay,
    MmrPart,
    Mode,
    NothingMatched,
    NoUsableWord,
    Recalled,
    Verdict,
)
from memory_tui.text import js
from memory_tui.text.words import as_asked


@dataclass(frozen=True, slots=True)
class Question:
    """The candidates' numbers in their final order, and their gates; `relaxed` is None without a second floor."""

    scores: Floats
    before_decay: Floats
    factors: Floats
    ages: Floats
    keyword: Flags
    min_score: float
    limit: int
    mmr: Sequence[MmrPart | None]
    relaxed: float | None


class Decision:
    """Who passed: `recalled` places in order, the `floor` in force, and counts of those held back."""

    def __init__(self, question: Question, passed: Flags, floor: float, relaxed: bool) -> None:
        self._question = question
        self._passed = passed
        self._relaxed = relaxed
        self._places = np.flatnonzero(passed)
        self.floor = floor
        self.recalled = tuple(int(i) for i in self._places[: question.limit])
        self.over_gate = len(self._places)
        # A vector-only hit faces minScore even while keyword hits face the relaxed floor.
        self._bars = np.where(question.keyword, floor, question.min_score)
        self._faded = ~passed & (question.factors < 1.0) & (question.before_decay >= self._bars)
        self.decayed = int(np.count_nonzero(self._faded))
        passing = question.scores[self._places]
        self._better = len(passing) - np.searchsorted(np.sort(passing), passing, side="right")
        self.displaced = (
            int(np.count_nonzero(self._better[question.limit :] < question.limit)) if any(question.mmr) else 0
        )

    def __len__(self) -> int:
        return len(self._passed)

    def verdict(self, i: int) -> Verdict:
        """What became of candidate `i`."""
        question = self._question
        if self._passed[i]:
            place = int(np.searchsorted(self._places, i)) + 1
            return Recalled(place, self._relaxed) if place <= question.limit else self._cut(i, place)
        bar = float(self._bars[i])
        margin = bar - float(question.scores[i])
        if self._faded[i]:
            return LoweredByDecay(bar, margin, float(question.ages[i]), float(question.factors[i]))
        return BelowMinScore(bar, margin)

    def _cut(self, i: int, place: int) -> Verdict:
        part = self._question.mmr[i]
        if part is not None and part.twin is not None and self._better[place - 1] < self._question.limit:
            return DisplacedByMmr(part.twin, part.similarity, place, self._question.limit)
        return BeyondLimit(place, self._question.limit)


def decide(question: Question) -> Decision:
    """OpenClaw's selection: scores of at least minScore, else keyword hits over the relaxed floor; then the limit."""
    passed = question.scores >= question.min_score
    if question.relaxed is None or passed.any() or not question.keyword.any():
        return Decision(question, passed, question.min_score, relaxed=False)
    return Decision(question, question.keyword & (question.scores >= question.relaxed), question.relaxed, relaxed=True)


def empty_reason(evidence: Evidence, side: Side, mode: Mode, decided: Decision, best: float | None) -> EmptyReason:
    """Why nothing was recalled, given the `best` score; an empty answer must never look like an empty memory."""
    if not js.trim(evidence.query):
        return BlankQuery()
    if evidence.chunks == 0:
        pending = sum(item.state == "pending" for item in evidence.unsearchable)
        return EmptyIndex(evidence.files, pending)
    if best is not None:
        return AllBelowGate(len(decided), best, decided.floor, decided.decayed)
    if mode == "nothing":
        return NoUsableWord(side.plan.dropped, evidence.pointless)
    missing = as_asked((word for word in side.plan.words if side.frequency.get(word, 1) == 0), evidence.query)
    return NothingMatched(missing, "AND" if side is evidence.openclaw else "OR")
