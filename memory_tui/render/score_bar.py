"""The bar of a score shows what its parts give. They are vector, text, what is added, and what age takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memory_tui.search.trace import Candidate, Trace

DECAY = "query.hybrid.temporalDecay.enabled"

VECTOR, TEXT, ADDED, LOST = "█", "▒", "+", "·"
"""The parts of a score's bar; they differ in shape so that they can be told apart without colour."""


def bar(parts: Sequence[tuple[str, float]], scale: float, width: int) -> str:
    """A bar of `width` cells in which each (glyph, amount) has its share of `scale`; ends are rounded, not lengths."""
    drawn, total = "", 0.0
    for glyph, amount in parts:
        total += max(0.0, amount) if math.isfinite(amount) else 0.0
        end = min(width, round(total / scale * width)) if scale > 0 else 0
        drawn += glyph * (end - len(drawn))
    return drawn.ljust(width)


def perfect(trace: Trace) -> float:
    """The score of a perfect hit, which fills a bar: 1, or both weights where a release lets them add up to more."""
    sides = sum(part.weight for part in (trace.recalled[0].vector, trace.recalled[0].text)) if trace.recalled else 1.0
    return max(1.0, sides)


def score_bar(candidate: Candidate, scale: float, width: int) -> list[tuple[str, str]]:
    """What the score is made of: vector, text and added points, and as dots what age took away.

    Of the second stage, what words and letters give is text, and what meaning gives is vector.
    """
    factor = candidate.age.factor * candidate.first_share
    second = {"words": 0.0, "meaning": 0.0}
    if candidate.second is not None:
        for one in candidate.second.measures:
            second["meaning" if "meaning" in one.name else "words"] += one.points * candidate.second.weight
    lost = candidate.second.lost if candidate.second else 0.0
    parts = (
        (VECTOR, candidate.vector.points * factor + second["meaning"]),
        (TEXT, candidate.text.points * factor + second["words"] - lost),
        (ADDED, candidate.age.points + candidate.date_points),
        (LOST, candidate.hybrid * (1 - candidate.age.factor) + lost),
    )
    drawn = bar(parts, scale, width)
    names = {VECTOR: "vector", TEXT: "text", ADDED: "added", LOST: "lost", " ": ""}
    pieces: list[tuple[str, str]] = []
    for glyph, name in names.items():
        if count := drawn.count(glyph):
            pieces.append((glyph * count, name))
    return pieces
