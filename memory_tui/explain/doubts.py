"""Why minScore cannot do what it is for: a closed union, with evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeywordHitsShut:
    """A hit by words alone scores `most` at best, below minScore; with `relaxed` it passes when nothing else does."""

    most: float
    min_score: float
    relaxed: bool


@dataclass(frozen=True, slots=True)
class BelowNoise:
    """minScore lets a `share` of nonsense through: the best hit of the median nonsense question scores `median`."""

    min_score: float
    median: float
    share: float


@dataclass(frozen=True, slots=True)
class AboveRight:
    """minScore shuts out what is right: only a `share` of related questions recall it; the median scores `median`."""

    min_score: float
    median: float
    share: float


@dataclass(frozen=True, slots=True)
class RelativeScores:
    """Under `profile` scores are shares of each question's best hit, so that of nonsense scores as high as any."""

    profile: str


@dataclass(frozen=True, slots=True)
class Inseparable:
    """No minScore keeps nonsense out and the right in: the best still has `nonsense` and `related` of them."""

    nonsense: float
    related: float


Doubt = KeywordHitsShut | BelowNoise | AboveRight | RelativeScores | Inseparable
