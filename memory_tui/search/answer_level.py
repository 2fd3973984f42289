"""The level of an answer tells whether the notes hold what was asked, whatever the best hit scores.

Something is always nearest, so a score that is relative to the best hit says nothing of a question that no note
answers. What does: how much of the question's words a chunk holds, how much of them stands in one line or window, and
how near a window is in meaning. Their logistic was fitted on LoCoMo (Maharana et al. 2024), answerable questions
against those of other people's notes; no hit, no score, no knob of the ranking changes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from memory_tui.core.settings import Settings

Level = Literal["found", "nearby only", "nothing holds these words"]


@dataclass(frozen=True, slots=True)
class AnswerSignals:
    """The best that any of the first candidates has, whichever that is.

    `coverage` is the share of the question's words that a chunk holds, weighed by idf; `line` and `window` are bm25
    over the summed idf of the question; `cosine` is that of a window, None where meaning was not compared.
    """

    coverage: float
    line: float
    window: float
    cosine: float | None


_COVERAGE, _LINE, _WINDOW, _COSINE, _BIAS = 5.39, 3.43, 2.44, 7.07, -9.84
_USUAL_COSINE = 0.5
"""Between the cosines of questions that are answered and of those that are not."""


@dataclass(frozen=True, slots=True)
class AnswerLevel:
    """How an answer is to be taken: its `level`, by `likelihood` against two bounds, and what that was made of.

    From `doubt_below` on it is found; under `nothing_below` nothing, unless a window is as near in meaning as those of
    answered questions. In all other cases there are only notes nearby.
    """

    level: Level
    likelihood: float
    signals: AnswerSignals
    doubt_below: float
    nothing_below: float

    @property
    def sentence(self) -> str:
        """The level in words, with the numbers that made it."""
        found = self.signals
        held = f"the best chunk holds {found.coverage:.0%} of what was asked, by the weight of its words"
        near = "" if found.cosine is None else f", and the nearest window has cosine {found.cosine:.2f}"
        if self.level == "found":
            return f"Found: {held}{near}."
        if self.level == "nearby only":
            return f"Nearby only, which may not answer it: {held}{near}."
        return f"Nothing holds these words: {held}{near}."


def likelihood(signals: AnswerSignals) -> float:
    """How likely it is that the notes answer, from 0 to 1."""
    cosine = _USUAL_COSINE if signals.cosine is None else signals.cosine
    value = _COVERAGE * signals.coverage + _LINE * signals.line + _WINDOW * signals.window + _COSINE * cosine + _BIAS
    return 1.0 / (1.0 + math.exp(-value))


def level_of(signals: AnswerSignals, settings: Settings) -> AnswerLevel:
    """The level of an answer by its `signals`."""
    doubt_below, nothing_below = (settings.number(f"answer.{name}Below") for name in ("doubt", "nothing"))
    value = likelihood(signals)
    level: Level = "found" if value >= doubt_below else "nearby only"
    # A question by a date, or in signs that no word list cuts, shares no word with the line that answers it.
    near = signals.cosine is not None and signals.cosine >= _USUAL_COSINE
    if value < min(nothing_below, doubt_below) and not near:
        level = "nothing holds these words"
    return AnswerLevel(level, value, signals, doubt_below, nothing_below)
