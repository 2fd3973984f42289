"""The level of an answer tells whether the notes hold what was asked, whatever the best hit scores.

Something is always nearest, so a score that is relative to the best hit says nothing of a question that no note
answers. What does: how much of the question's words stands together in one window, in these words or in like ones, and
how near that window is in meaning. Their weighted sum is compared with what unrelated questions reach in the same
notes, because a language, a style and a length of notes each move it; no hit, no score, no knob of the ranking changes
it. The weights were fitted on MemoryBank (English), answerable questions against those of FriendsQA.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from memory_tui.core.settings import Settings
from memory_tui.records import dataclass

Level = Literal["found", "nearby only", "nothing holds these words"]


@dataclass(frozen=True, slots=True)
class AnswerSignals:
    """The best that any of the first candidates has, whichever that is.

    `coverage` is the share of the question's words that a chunk holds, weighed by idf; `line` and `window` are bm25
    over the summed idf of the question. `closeness` is the share that a window holds, weighed by how rare words are in
    the language, where a word that it does not hold counts as much as its nearest word is like it. `cosine` is that of
    a window with the whole question, None where meaning was not compared.
    """

    coverage: float
    line: float
    window: float
    closeness: float
    cosine: float | None
    pairs: bool = False
    """Whether the words are pairs of Chinese, Japanese or Korean characters."""

    @property
    def apart(self) -> float:
        """Deviations above unrelated questions at which an answer is as likely as not."""
        return _APART_PAIRS if self.pairs else _APART

    @property
    def evidence(self) -> float:
        """The weighted sum that is compared with that of unrelated questions."""
        cosine = _USUAL_COSINE if self.cosine is None else self.cosine
        return _WINDOW * self.window + _CLOSENESS * self.closeness + _MEANING * self.closeness * cosine


_WINDOW, _CLOSENESS, _MEANING = 2.37, 6.42, 11.18
_USUAL_COSINE = 0.5
"""Between the cosines of questions that are answered and of those that are not."""
_APART, _APART_PAIRS = 3.8, 2.6
"""Unrelated questions hardly reach half of it; pairs of characters meet too rarely for as much."""
_LEAST_DEVIATION = 0.6
"""Unrelated questions that all reach the same say little of how far others spread."""


@dataclass(frozen=True, slots=True)
class UnrelatedEvidence:
    """What unrelated questions reach in some notes: the mean and the deviation of their evidence.

    It was measured with so many `questions` at a `generation` of the index; 0 questions are the usual values.
    """

    mean: float
    deviation: float
    questions: int = 0
    generation: int = 0

    @classmethod
    def of(cls, evidence: Sequence[float], generation: int) -> UnrelatedEvidence:
        """What was reached by some questions, at least one."""
        mean = sum(evidence) / len(evidence)
        spread = math.sqrt(sum((one - mean) ** 2 for one in evidence) / len(evidence))
        return cls(mean, max(_LEAST_DEVIATION, spread), len(evidence), generation)


_USUAL, _USUAL_CJK = UnrelatedEvidence(4.3, 1.2), UnrelatedEvidence(0.75, 0.7)
"""The mean over the workspaces of the sets; of Chinese, where words are pairs of characters that rarely meet."""


def usual(question: str) -> UnrelatedEvidence:
    """What unrelated questions in the script of `question` usually reach."""
    return _USUAL_CJK if is_cjk(question) else _USUAL


def is_cjk(question: str) -> bool:
    """Whether a question is mostly of Chinese, Japanese or Korean characters."""
    # Answers are named where no word is cut: SQLite stays out of their imports.
    from memory_tui.core import tokens

    return 2 * sum(map(len, tokens.CJK_RUN.findall(question))) > sum(map(str.isalnum, question))


@dataclass(frozen=True, slots=True)
class AnswerLevel:
    """How an answer is to be taken: its `level`, by `likelihood` against two bounds, and what that was made of.

    From `doubt_below` on it is found; under `nothing_below` nothing, unless a window is as near in meaning as those of
    answered questions, or holds a word where meaning was not compared. In all other cases there are only notes nearby.
    The likelihood is the logistic of how many deviations the evidence is above that of `unrelated` questions, less 3.8
    (2.6 for pairs of characters).
    """

    level: Level
    likelihood: float
    signals: AnswerSignals
    doubt_below: float
    nothing_below: float
    unrelated: UnrelatedEvidence

    @property
    def above(self) -> float:
        """How many deviations the evidence is above that of unrelated questions."""
        return (self.signals.evidence - self.unrelated.mean) / self.unrelated.deviation

    @property
    def sentence(self) -> str:
        """The level in words, with the numbers that made it."""
        found = self.signals
        held = f"the best window holds {found.closeness:.0%} of what was asked, in these words or in like ones"
        near = "" if found.cosine is None else f", and the nearest has cosine {found.cosine:.2f}"
        if self.level == "found":
            return f"Found: {held}{near}."
        if self.level == "nearby only":
            return f"Nearby only, which may not answer it: {held}{near}."
        return f"Nothing holds these words: {held}{near}."

    @property
    def explanation(self) -> str:
        """The sum behind the likelihood, as figures that add up."""
        found, than = self.signals, self.unrelated
        cosine = _USUAL_COSINE if found.cosine is None else found.cosine
        measured = f"{than.questions} asked here" if than.questions else "usual; memory-tui noise measures yours"
        return (
            f"evidence {found.evidence:.2f} = {_WINDOW:g} x window words {found.window:.3f} + {_CLOSENESS:g} x words "
            f"or like ones {found.closeness:.3f} + {_MEANING:g} x {found.closeness:.3f} x cosine {cosine:.3f}; "
            f"unrelated questions reach {than.mean:.2f} (deviation {than.deviation:.2f}, {measured}): "
            f"{self.above:+.1f} deviations, likelihood {self.likelihood:.2f}, found from {self.doubt_below:g}"
        )


def likelihood(signals: AnswerSignals, unrelated: UnrelatedEvidence) -> float:
    """How likely it is that the notes answer, from 0 to 1."""
    above = (signals.evidence - unrelated.mean) / unrelated.deviation
    return 1.0 / (1.0 + math.exp(min(700.0, signals.apart - above)))


def level_of(signals: AnswerSignals, settings: Settings, unrelated: UnrelatedEvidence) -> AnswerLevel:
    """The level of an answer by its `signals`, beside what `unrelated` questions reach."""
    doubt_below, nothing_below = (settings.number(f"answer.{name}Below") for name in ("doubt", "nothing"))
    value = likelihood(signals, unrelated)
    level: Level = "found" if value >= doubt_below else "nearby only"
    # A question by a date shares no word with the line that answers it; of a question in signs that no word list cuts,
    # an answer holds one pair of many.
    near = signals.coverage > 0 if signals.cosine is None else signals.cosine >= _USUAL_COSINE
    if value < min(nothing_below, doubt_below) and not near:
        level = "nothing holds these words"
    return AnswerLevel(level, value, signals, doubt_below, nothing_below, unrelated)
