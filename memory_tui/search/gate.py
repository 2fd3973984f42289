"""The gate gives each candidate its verdict. It applies minScore, the relaxed floor and the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from memory_tui.core import jsstring
from memory_tui.core.tokens import as_asked, left_out
from memory_tui.search.evidence import Evidence, Flags, KeywordSide, Rows
from memory_tui.search.formulas import MOST_CANDIDATES, Floats
from memory_tui.search.score import Components, Rules, column
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


class Gate(Struct, frozen=True):
    """Which candidates pass under each rule: arrays of (rules, candidates), or of (rules, 1)."""

    passed: Flags
    floor: Floats
    relaxed: Flags
    """Whether the relaxed floor is in force, because no score reaches minScore."""
    keyword: Flags
    """Over candidates: those that the relaxed floor lets through; none where it is not in force."""
    rescued: Flags
    """Keyword hits that follow those over minScore, although they are below it (OpenClaw 2026.9)."""


def pass_gate(
    scores: Floats, parts: Components, rules: Sequence[Rules], mode: Mode, keyword: Callable[[], Flags]
) -> Gate:
    """OpenClaw's selection: scores of at least minScore, else the `keyword` hits over the relaxed floor."""
    if rules[0].profile.rescues:
        return _rescue(scores, parts, rules, mode, keyword)
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    hybrid = mode == "hybrid"
    relaxed = column([hybrid and rule.profile.relaxed_floor for rule in rules]) > 0
    relaxed &= ~passed.any(axis=1, keepdims=True)
    hits = keyword() if relaxed.any() else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    floor = np.where(relaxed, np.minimum(floor, column([rule.text_weight for rule in rules])), floor)
    return Gate(np.where(relaxed, hits & (scores >= floor), passed), floor, relaxed, hits, np.zeros_like(passed))


def _rescue(
    scores: Floats, parts: Components, rules: Sequence[Rules], mode: Mode, keyword: Callable[[], Flags]
) -> Gate:
    """The selection of 2026.9: those over minScore, then keyword hits without a vector score; without any of the
    former every keyword hit that is not below 0 (sections 7.4 and 7.8 of the profile's specification).
    """
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    relaxed = np.asarray(~passed.any(axis=1, keepdims=True))
    hits = keyword() if mode != "vectors only" else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    open_places = np.count_nonzero(passed, axis=1)[:, None] < np.maximum(MOST_CANDIDATES, column_of_results(rules))
    rescued = ~passed & hits & (parts.vector == 0.0) & ~relaxed & open_places & (mode == "hybrid")
    through = np.where(relaxed, hits & (scores >= 0.0), passed | rescued)
    return Gate(
        through, np.where(relaxed, 0.0, floor), relaxed, hits if relaxed.any() else np.zeros_like(hits), rescued
    )


def without_repeats(order: Sequence[int], ranges: Rows, strict: Flags, rescued: Flags) -> Flags:
    """`rescued` without those on the very lines of a `strict` hit or of one before it in `order` (section 7.8)."""
    seen, first = set(ranges[strict].tolist()), np.zeros_like(rescued)
    for item in order:
        if rescued[item] and ranges[item] not in seen:
            seen.add(int(ranges[item]))
            first[item] = True
    return first


def column_of_results(rules: Sequence[Rules]) -> Floats:
    """How many hits each of the rules recalls."""
    return column([rule.results for rule in rules])


class OrderedCandidates(Struct, frozen=True):
    """One rule's candidates in their final order, with what the gate made of them."""

    scores: Floats
    before_decay: Floats
    factors: Floats
    ages: Floats
    keyword: Flags
    passed: Flags
    floor: float
    relaxed: bool
    min_score: float
    limit: int
    mmr: Sequence[MmrPart | None]
    merit: Floats
    """What they would stand by without variety; of two the greater first."""
    rescued: Flags


class Decision:
    """Who passed: `recalled` places in order, the `floor` in force, and counts of those held back.

    `fresh` counts those that would score at least minScore, but for their age. `keeps_back` tells whether the level of
    the answer keeps its hits back; whoever knows the level sets it before asking for a verdict.
    """

    keeps_back = False

    def __init__(self, ordered: OrderedCandidates) -> None:
        self._ordered = ordered
        self.passed = passed = ordered.passed
        self._places = np.flatnonzero(passed)
        self.floor = ordered.floor
        self.recalled = tuple(int(i) for i in self._places[: ordered.limit])
        self.over_gate = len(self._places)
        # A vector-only hit faces minScore even while keyword hits face the relaxed floor.
        self._bars = np.where(ordered.keyword, ordered.floor, ordered.min_score)
        self._faded = ~passed & (ordered.factors < 1.0) & (ordered.before_decay >= self._bars)
        self.decayed = int(np.count_nonzero(self._faded))
        self.min_score = ordered.min_score
        self.fresh = int(np.count_nonzero(~passed & (ordered.before_decay >= ordered.min_score)))
        passing = ordered.merit[self._places]
        self._better = len(passing) - np.searchsorted(np.sort(passing), passing, side="right")
        self.displaced = int(np.count_nonzero(self._better[ordered.limit :] < ordered.limit)) if any(ordered.mmr) else 0

    def __len__(self) -> int:
        return len(self.passed)

    def verdict(self, i: int) -> Verdict:
        """What became of candidate `i`."""
        ordered = self._ordered
        if self.passed[i]:
            place = int(self._places.searchsorted(i)) + 1
            if place > ordered.limit:
                return self._cut(i, place)
            return Recalled(place, ordered.relaxed, bool(ordered.rescued[i]), self.keeps_back)
        bar = float(self._bars[i])
        margin = bar - float(ordered.scores[i])
        relaxed = bool(ordered.relaxed and ordered.keyword[i])
        if self._faded[i]:
            return LoweredByDecay(bar, margin, float(ordered.ages[i]), float(ordered.factors[i]), relaxed)
        return BelowMinScore(bar, margin, relaxed)

    def _cut(self, i: int, place: int) -> Verdict:
        part = self._ordered.mmr[i]
        if part is not None and part.twin is not None and self._better[place - 1] < self._ordered.limit:
            return DisplacedByMmr(part.twin, part.similarity, place, self._ordered.limit)
        return BeyondLimit(place, self._ordered.limit)


def empty_reason(
    evidence: Evidence, side: KeywordSide, mode: Mode, decided: Decision, best: float | None, fresh: int
) -> EmptyReason:
    """Why nothing was recalled, given the `best` score; an empty answer must never look like an empty memory.

    `fresh` candidates would reach minScore without age.
    """
    if not jsstring.trim(evidence.query):
        return BlankQuery()
    if evidence.chunks == 0:
        pending = sum(item.state == "pending" for item in evidence.unsearchable)
        unreadable = sum(
            item.state in ("failed", "changed while read", "missing root") for item in evidence.unsearchable
        )
        return EmptyIndex(evidence.files, pending, unreadable)
    if best is not None:
        return AllBelowGate(len(decided), best, decided.min_score, fresh)
    if mode == "nothing":
        return NoUsableWord(left_out(side.plan.dropped, evidence.query), evidence.pointless)
    missing = as_asked((word for word in side.plan.words if side.frequency.get(word, 1) == 0), evidence.query)
    return NothingMatched(missing, "AND" if side is evidence.openclaw else "OR", evidence.elsewhere)
