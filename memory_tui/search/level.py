"""The level of an answer tells whether the notes hold what was asked, whatever the best hit scores.

Something is always nearest, so a score that is relative to the best hit says nothing of a question that no note
answers. What does: how much of the question's words stands together in one window, in these words or in like ones, how
near that window is in meaning, and how rare the rarest word is that the notes hold: of a foreign question they hold
those that everybody uses. How rare a word is in the language is told by the vocabulary of the table, also where no
meaning is compared. Their weighted sum is compared with what unrelated questions reach in the same notes, because a
language, a style and a length of notes each move it; no hit, no score, no knob of the ranking changes it. What
unrelated questions reach above the usual is followed in part: it moves more than what a person asks in vain reaches.

`tests/bench/README.md` says how the weights were picked, and how well they hold on notes that they were not picked on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from memory_tui import profiles, tokens
from memory_tui.formatting import plural, signed
from memory_tui.settings import Settings

Level = Literal["found", "nearby only", "nothing holds these words"]
Kind = Literal["words", "words alone", "pairs", "pairs alone"]
"""What evidence is made of: words or pairs of characters, alone where meaning was not compared."""


class AnswerSignals(Struct, frozen=True):
    """The best that any of the first candidates has, whichever that is.

    `coverage` is the share of the question's words that a chunk holds, weighed by idf; `line` and `window` are bm25
    over the summed idf of the question. `closeness` is the share that a window holds, weighed by how rare words are in
    the language, where a word that it does not hold counts as much as its nearest word is like it. `cosine` is that of
    a window with the whole question, None where meaning was not compared. `rarest` is how rare the rarest word is that
    any chunk holds, from 0 to 1.
    """

    coverage: float
    line: float
    window: float
    closeness: float
    cosine: float | None
    rarest: float = 0.0
    pairs: bool = False
    """Whether the words are pairs of Chinese, Japanese or Korean characters."""

    @property
    def kind(self) -> Kind:
        """Return what the evidence is made of: only such of the same kind can be compared."""
        if self.cosine is None:
            return "pairs alone" if self.pairs else "words alone"
        return "pairs" if self.pairs else "words"

    @property
    def steepness(self) -> float:
        """Return how much a point adds to the logarithm of the odds."""
        return _STEEPNESS_PAIRS if self.pairs else 1.0

    @property
    def evidence(self) -> float:
        """Return the weighted sum that is compared with that of unrelated questions."""
        words = _WINDOW * self.window + _RAREST * self.rarest
        if self.kind == "words alone":
            return words + _WORDS_ALONE * self.closeness
        cosine = _USUAL_COSINE if self.cosine is None else self.cosine
        return words + _CLOSENESS * self.closeness + _MEANING * self.closeness * cosine


WEIGHTS = _WINDOW, _CLOSENESS, _MEANING, _RAREST, _WORDS_ALONE = 3.0, 9.0, 12.0, 7.5, 5.5
_USUAL_COSINE = 0.125
"""The cosine that the sum takes where no meaning was compared: that of an unrelated question."""
_NEAR_COSINE = 0.24
"""The cosine from which a window is near in meaning: some nineteen of twenty questions that are answered reach it."""
_APART: Mapping[Kind, float] = MappingProxyType({"words": 8.8, "words alone": 6.5, "pairs": 1.85, "pairs alone": 1.85})
"""Points above the usual unrelated questions at which an answer is as likely as not; rare evidence needs fewer."""
_STEEPNESS_PAIRS = 1.6
"""How much each point of pairs of characters counts: they meet too rarely for as many points as words."""
_FOLLOWED = 0.6
"""The part of what unrelated questions reach above the usual that an answer has to reach more, too."""
_TOUCHED = 0.2
"""The share of unrelated questions that notes about everything may answer: those that reach most are left out."""


class UnrelatedEvidence(Struct, frozen=True):
    """What unrelated questions reach in some notes: the mean of their evidence.

    It was measured with so many `questions`, at a `generation` of the index, when that had so many `chunks`; 0
    questions are the usual values.
    """

    mean: float
    questions: int = 0
    generation: int = 0
    chunks: int = 0

    @classmethod
    def of(cls, evidence: Sequence[float], generation: int, chunks: int) -> UnrelatedEvidence:
        """Return the mean of the `evidence` of one question or more, without the highest fifth."""
        lower = sorted(evidence)[: math.ceil((1 - _TOUCHED) * len(evidence))]
        return cls(sum(lower) / len(lower), len(evidence), generation, chunks)


ByKind = Mapping[Kind, UnrelatedEvidence]
USUAL: ByKind = MappingProxyType(
    {
        "words": UnrelatedEvidence(5.9),
        "words alone": UnrelatedEvidence(2.4),
        "pairs": UnrelatedEvidence(0.9),
        "pairs alone": UnrelatedEvidence(0.9),
    }
)
"""What unrelated questions usually reach: the means over the workspaces of the sets."""


_BY: Mapping[Kind, str] = MappingProxyType(
    {
        "words": "by words and meaning",
        "words alone": "by words alone",
        "pairs": "by pairs of characters and meaning",
        "pairs alone": "by pairs of characters alone",
    }
)


class LevelBasis(Struct, frozen=True):
    """What the levels of answers of some notes are compared with: what was `measured` there, else the usual values.

    A `profile` that tells no levels compares nothing.
    """

    profile: str
    measured: ByKind

    @property
    def sentence(self) -> str:
        """Return the basis in words, with its numbers."""
        if not profiles.get(self.profile).second_stage:
            return f"none under {self.profile}"
        if not self.measured:
            usual = f"usual values: unrelated questions reach {USUAL['words'].mean:.2f} points by words and meaning"
            return f"{usual}; memory-tui eval measures yours"
        first = next(iter(self.measured.values()))
        reached = ", ".join(f"{result.mean:.2f} points {_BY[kind]}" for kind, result in self.measured.items())
        questions = f"{plural(first.questions, 'unrelated question')}, asked over {plural(first.chunks, 'chunk')}"
        return f"{questions}, {'reaches' if first.questions == 1 else 'reach'} {reached}"

    def as_dict(self) -> dict[str, object]:
        """Return the same as data."""
        return {"sentence": self.sentence, "measured": self.measured}


_PHRASES: Mapping[Level, str] = MappingProxyType(
    {
        "found": "Found",
        "nearby only": "Nearby only, which may not answer it",
        "nothing holds these words": "Probably nothing answers it",
    }
)


def is_cjk(query: str) -> bool:
    """Return whether a query is mostly of Chinese, Japanese or Korean characters."""
    return 2 * sum(map(len, tokens.cjk_runs(query))) > sum(map(str.isalnum, query))


class AnswerLevel(Struct, frozen=True):
    """How an answer is to be taken: its `level`, by `likelihood` against two bounds, and what that was made of.

    From `doubt_below` on it is found; under `nothing_below` nothing, unless a window is as near in meaning as those of
    answered questions, or holds a word where meaning was not compared, or a note is of the days that the question
    names. In all other cases there are only notes nearby.
    The likelihood is the logistic of how many points the evidence is above that of `unrelated` questions, less
    `apart`, where each point counts `signals.steepness`.
    """

    level: Level
    likelihood: float
    signals: AnswerSignals
    doubt_below: float
    nothing_below: float
    unrelated: UnrelatedEvidence

    @property
    def above(self) -> float:
        """Return how many points the evidence is above that of unrelated questions."""
        return self.signals.evidence - self.unrelated.mean

    @property
    def apart(self) -> float:
        """Return how many points above unrelated questions an answer is as likely as not."""
        return points_apart(self.signals.kind, self.unrelated)

    @property
    def keeps_back(self) -> bool:
        """Return whether an agent gets none of the nearest hits, unless it asks for them."""
        return self.level == "nothing holds these words"

    @property
    def sentence(self) -> str:
        """Return the level in words, with the numbers that made it."""
        signals = self.signals
        near = "" if signals.cosine is None else f", and the nearest has cosine {signals.cosine:.2f}"
        window = f"the best window holds {signals.closeness:.0%} of what was asked, in these words or in like ones"
        return f"{_PHRASES[self.level]}: {window}{near}."

    @property
    def explanation(self) -> str:
        """Return the sum behind the likelihood, as figures that add up."""
        result, than = self.signals, self.unrelated
        if result.kind == "words alone":
            terms = f"{_WORDS_ALONE:g} x words {result.closeness:.3f}"
        else:
            cosine = _USUAL_COSINE if result.cosine is None else result.cosine
            terms = (
                f"{_CLOSENESS:g} x words or like ones {result.closeness:.3f} + "
                f"{_MEANING:g} x {result.closeness:.3f} x cosine {cosine:.3f}"
            )
        sample = f"{than.questions} asked here, over {plural(than.chunks, 'chunk')}"
        measured = sample if than.questions else "usual; memory-tui eval measures yours"
        usual, rest = USUAL[result.kind].mean, round(1 - _FOLLOWED, 2)
        because = (
            f" = {_APART[result.kind]:g} - {rest:g} x ({than.mean:.2f} - {usual:g} as usual)" if than.questions else ""
        )
        return (
            f"evidence {result.evidence:.2f} = {_WINDOW:g} x window words {result.window:.3f} + {terms} + "
            f"{_RAREST:g} x rarest word held {result.rarest:.3f}; unrelated questions reach {than.mean:.2f} "
            f"({measured}): {signed(self.above, 2)} points, as likely as not at {signed(self.apart, 2)}{because}; "
            f"likelihood {self.likelihood:.2f}, found from {self.doubt_below:g}"
        )


def points_apart(kind: Kind, unrelated: UnrelatedEvidence) -> float:
    """Return how many points above `unrelated` questions an answer of a `kind` is as likely as not."""
    return _APART[kind] - (1 - _FOLLOWED) * (unrelated.mean - USUAL[kind].mean)


def likelihood(signals: AnswerSignals, unrelated: UnrelatedEvidence) -> float:
    """Return how likely it is that the notes answer, from 0 to 1."""
    missing = points_apart(signals.kind, unrelated) - (signals.evidence - unrelated.mean)
    return 1.0 / (1.0 + math.exp(min(700.0, signals.steepness * missing)))


def level_of(
    signals: AnswerSignals, settings: Settings, unrelated: ByKind, *, of_its_days: bool = False
) -> AnswerLevel:
    """The level of an answer by its `signals`, beside what `unrelated` questions of its kind reach, else usually do.

    `of_its_days` tells that a note is of the days which the question names: these words stand in no note.
    """
    than = unrelated.get(signals.kind) or USUAL[signals.kind]
    doubt_below, nothing_below = (settings.number(f"answer.{name}Below") for name in ("doubt", "nothing"))
    value = likelihood(signals, than)
    level: Level = "found" if value >= doubt_below else "nearby only"
    # A question by a date shares no word with the line that answers it; of a question in signs that no word list cuts,
    # an answer holds one pair of many.
    near = signals.coverage > 0 if signals.cosine is None else signals.cosine >= _NEAR_COSINE
    if value < min(nothing_below, doubt_below) and not near and not of_its_days:
        level = "nothing holds these words"
    return AnswerLevel(level, value, signals, doubt_below, nothing_below, than)
