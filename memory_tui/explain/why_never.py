"""Why a line never comes: how often each gate stopped it over many questions. It tells, too, what one change would do
about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui import tokens
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import points, turned
from memory_tui.explain.reranking import Reranking, tuned
from memory_tui.explain.why_not import WhyNot
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import Scalar, Settings

Asker = Literal["saved", "logged", "own words"]
"""Where a question comes from: the saved ones, the log of what agents asked, the words of the note itself."""
_LONGEST = 12
"""Words of a question that is made of a line."""
_POINTS = 11
"""Values of each knob that are tried."""
_WORTH = 3
"""Fewest letters of a word by which a note is asked for."""


class PastQuestion(Struct, frozen=True):
    """One question, who asked it, and what it was kept to: memory, sessions, or empty for all."""

    text: str
    asker: Asker
    source: str = ""


class Reached(Struct, frozen=True, rename={"questions": "asked"}):
    """Of so many `questions` of one asker `recalled` gave the line."""

    asker: Asker
    questions: int
    recalled: int


class StoppedTimes(Struct, frozen=True):
    """`gate` is what stopped the line for each of `questions`."""

    gate: str
    questions: tuple[str, ...]


class OneChange(Struct, frozen=True):
    """With one setting at `value` the line is recalled for `questions`, of `lost` that lose it; `moved` other hits
    come or go.
    """

    key: str
    was: Scalar
    value: Scalar
    questions: tuple[str, ...]
    lost: int
    moved: int


class NoOneChange(Struct, frozen=True):
    """None of `points`, each a knob at a value, recalls the line for any of the `lost` questions that lose it."""

    points: tuple[tuple[str, Scalar], ...]
    lost: int


NeverClaim = Reached | StoppedTimes | OneChange | NoOneChange


class WhyNever(Struct, frozen=True):
    """What became of a line over many questions: `answers` are the verdicts, in the order of the questions.

    `changes` is the one setting that recalls it for most of them.
    """

    path: str
    line: int | None
    reached: tuple[Reached, ...]
    stopped: tuple[StoppedTimes, ...]
    changes: tuple[OneChange | NoOneChange, ...]
    answers: tuple[tuple[PastQuestion, WhyNot], ...]

    @property
    def claims(self) -> tuple[NeverClaim, ...]:
        """Return everything that is said."""
        return (*self.reached, *self.stopped, *self.changes)


class UnreachedLines(Struct, frozen=True):
    """Lines `first` to `last` of a note, which no answer of the last days delivered."""

    path: str
    first: int
    last: int


def own_questions(text: str, line: str = "") -> list[PastQuestion]:
    """Questions out of the words of a chunk: its heading, `line` (its longest without one), its longest words."""
    lines = text.split("\n")
    heading = next((each for each in lines if each.startswith("#")), "")
    words = {word for word in tokens.WORD.findall(text) if len(word) >= _WORTH}
    chosen = [tokens.WORD.findall(each)[:_LONGEST] for each in (heading, line.strip() or max(lines, key=len))]
    chosen.append(sorted(words, key=lambda word: (-len(word), word))[:3])
    questions = dict.fromkeys(" ".join(each) for each in chosen)
    return [PastQuestion(question, "own words") for question in questions if question]


def why_never(
    path: str, line: int | None, answers: Sequence[tuple[PastQuestion, WhyNot]], settings: Settings
) -> WhyNever:
    """Return what became of a line over all `answers`, each the verdict on it for one question under `settings`."""
    outcomes: dict[Asker, list[bool]] = defaultdict(list)
    stopped: dict[str, list[str]] = defaultdict(list)
    for question, answer in answers:
        outcomes[question.asker].append(answer.recalled)
        if not answer.recalled:
            stopped[wording.gate(answer.fate)].append(question.text)
    lost = [(question, answer) for question, answer in answers if not answer.recalled and answer.row is not None]
    return WhyNever(
        path,
        line,
        tuple(Reached(asker, len(won), sum(won)) for asker, won in outcomes.items()),
        tuple(
            StoppedTimes(gate, tuple(texts))
            for gate, texts in sorted(stopped.items(), key=lambda item: (-len(item[1]), item[0]))
        ),
        _changes(lost, settings) if lost else (),
        tuple(answers),
    )


def _changes(lost: Sequence[tuple[PastQuestion, WhyNot]], settings: Settings) -> tuple[OneChange | NoOneChange]:
    """Return the single setting that recalls the line for most of the questions, with the fewest other hits moved."""
    tried = [(key, value) for key, value in points(settings, _POINTS)]
    each = [tuned(settings), *(tuned(settings) | turned({key: value}) for key, value in tried)]
    won: list[list[str]] = [[] for _ in tried]
    moved = [0] * len(tried)
    for question, answer in lost:
        row = answer.row or 0
        before, *after = map(set, Reranking(answer.evidence, [row]).recalled(each))
        for at, hits in enumerate(after):
            won[at] += [question.text] if row in hits else []
            moved[at] += len((before ^ hits) - {row})
    best = max(range(len(tried)), key=lambda at: (len(won[at]), -moved[at]))
    if not won[best]:
        return (NoOneChange(tuple(tried), len(lost)),)
    key, value = tried[best]
    return (OneChange(key, settings.values[key].value, value, tuple(won[best]), len(lost), moved[best]),)


def unreached(chunks: Iterable[ChunkRef], delivered: Mapping[str, set[int]]) -> tuple[UnreachedLines, ...]:
    """The lines of `chunks` that are not among those `delivered` of their note, in the order of notes and lines."""
    ranges: list[UnreachedLines] = []
    places = {(ref.path, line) for ref in chunks for line in range(ref.start_line, ref.end_line + 1)}
    for path, line in sorted(places):
        if line in delivered.get(path, ()):
            continue
        if ranges and (ranges[-1].path, ranges[-1].last) == (path, line - 1):
            ranges[-1] = UnreachedLines(path, ranges[-1].first, line)
        else:
            ranges.append(UnreachedLines(path, line, line))
    return tuple(ranges)
