"""The noise floor: what nonsense scores, on the same axis as the results, and whether minScore can keep it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memory_tui import profiles
from memory_tui.explain.doubts import AboveRight, BelowNoise, Doubt, Inseparable, KeywordHitsShut, RelativeScores
from memory_tui.explain.probes import Probe, Probes
from memory_tui.search.fuse import Rules
from memory_tui.search.rank import rank
from memory_tui.search.scoring import Floats
from memory_tui.search.trace import Candidate
from memory_tui.settings import Settings

STEP = 0.01
"""Steps of minScore that are looked at."""
_APART = 0.5
"""How much larger a share of what is right than of nonsense has to pass, for minScore to be worth its losses."""
_LET_THROUGH = 0.05
_ORIGIN = "noise floor"


@dataclass(frozen=True, slots=True)
class Trade:
    """At a minScore: the share of nonsense questions with a hit over it, and of related ones with their right chunk."""

    min_score: float
    nonsense: float
    related: float

    @property
    def apart(self) -> float:
        """How far the two are apart: 1 keeps out all nonsense and loses nothing (Youden's J)."""
        return self.related - self.nonsense


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Scores of nonsense and of what is right under one set of knobs, and what minScore does about them.

    `nonsense` has the best score of each unrelated question, `related` that of each right chunk (0: not even a
    candidate), both rising; `cosines` the best cosine of each unrelated question. `suggested` is None where no minScore
    is worth its losses. `labelled` tells whether labels say what is right; else lines out of the notes were asked.
    """

    nonsense: tuple[float, ...]
    related: tuple[float, ...]
    cosines: tuple[float, ...]
    labelled: bool
    now: Trade
    suggested: Trade | None
    curve: tuple[Trade, ...]
    doubts: tuple[Doubt, ...]

    def percentile(self, share: float) -> float:
        """The score below which the best hits of `share` of the nonsense questions are."""
        return float(np.quantile(self.nonsense, share)) if self.nonsense else 0.0


def measure(probes: Probes, settings: Settings) -> NoiseFloor:
    """The noise floor under `settings`; milliseconds, for any thread, so that it moves with the knobs."""
    opened = settings.update({"query.minScore": 0.0, "query.hybrid.mmr.enabled": False}, _ORIGIN)
    nonsense = np.sort([_best(probe, opened) for probe in probes.nonsense])
    related = np.sort([_best(probe, opened) for probe in probes.related])
    cosines = sorted(_cosine(probe) for probe in probes.nonsense)

    def trade(floor: float) -> Trade:
        return Trade(floor, _share(nonsense, floor), _share(related, floor))

    curve = tuple(trade(round(i * STEP, 6)) for i in range(round(1 / STEP) + 1))
    now, best = trade(settings.number("query.minScore")), _best_trade(curve, labelled=probes.labelled)
    worth = best if best.apart >= _APART else None
    return NoiseFloor(
        tuple(nonsense.tolist()),
        tuple(related.tolist()),
        tuple(cosines),
        probes.labelled,
        now,
        worth,
        curve,
        tuple(_doubts(settings, now, best, nonsense, related)),
    )


def _share(rising: Floats, floor: float) -> float:
    """The share of the scores that reach `floor`."""
    return (len(rising) - int(np.searchsorted(rising, floor))) / len(rising) if len(rising) else 0.0


def _best(probe: Probe, opened: Settings) -> float:
    """The best score of a right chunk, of any chunk where none is right; 0 without one."""
    trace = rank(probe.evidence, opened)
    if not probe.right:
        return trace.recalled[0].score if trace.recalled else 0.0
    hits: Iterator[Candidate] = (c for part in (trace.recalled, trace.lost) for c in part)
    return next((c.score for c in hits if c.chunk.rowid in probe.right), 0.0)


def _cosine(probe: Probe) -> float:
    evidence = probe.evidence
    return float(evidence.cosine[evidence.nearest[0]]) if evidence.cosine is not None and len(evidence.nearest) else 0.0


def _best_trade(curve: Sequence[Trade], *, labelled: bool) -> Trade:
    """The minScore that tells best apart; of many that do equally, the middle one.

    Without labels the lowest that keeps out 95 % of nonsense, for questions score less than lines out of the notes.
    """
    if not labelled:
        return next((trade for trade in curve if trade.nonsense <= _LET_THROUGH), curve[-1])
    top = max(trade.apart for trade in curve)
    best = [trade for trade in curve if trade.apart >= top - 1e-9]
    return best[len(best) // 2]


def _doubts(settings: Settings, now: Trade, best: Trade, nonsense: Floats, related: Floats) -> Iterator[Doubt]:
    profile = profiles.get(settings.word("profile"))
    rules = Rules.of(settings, "hybrid")
    shut = rules.text_weight < rules.min_score or (
        # r/(1+r) comes near to 1 and never reaches it.
        rules.text_weight == rules.min_score and profile.text_score == "saturated"
    )
    if shut and rules.text_weight and profile.missing_side == "zero" and settings.on("query.hybrid.enabled"):
        yield KeywordHitsShut(rules.text_weight, rules.min_score, profile.relaxed_floor)
    if profile.vector_score == "share":
        yield RelativeScores(profile.name)
    elif len(nonsense) and now.nonsense > 0.5:
        yield BelowNoise(now.min_score, float(np.median(nonsense)), now.nonsense)
    if len(related) and now.related < 0.5:
        yield AboveRight(now.min_score, float(np.median(related)), now.related)
    if best.apart < _APART and profile.vector_score != "share":
        yield Inseparable(best.nonsense, best.related)
