"""Why a line never comes: how often each gate stopped it over many questions. It tells, too, what one change would do
about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui import profiles, tokens
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import ORIGIN, TEXT, points_of, turned
from memory_tui.explain.reranking import Reranking
from memory_tui.explain.why_not import WhyNot
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import BY_KEY, TUNE_KEYS, Scalar, Settings

Asker = Literal["saved", "logged", "own words"]
"""Where a question comes from: the saved ones, the log of what agents asked, the words of the note itself."""
_LONGEST = 12
"""Words of a question that is made of a line."""
_WORTH = 3
"""Fewest letters of a word by which a note is asked for."""


class PastQuestion(Struct, frozen=True):
    """One question, who asked it, and what it was kept to: memory, sessions, or empty for all."""

    text: str
    asker: Asker
    source: str = ""


class Reached(Struct, frozen=True):
    """Of `asked` questions of one asker `recalled` gave the line."""

    asker: Asker
    asked: int
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

    `changes` are the one that recalls it for most of them, and the one that moves least for each that it wins.
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
    lines = [each_line for each_line in text.split("\n") if each_line.strip()]
    heading = next((each_line for each_line in lines if each_line.startswith("#")), "")
    chosen = line if line.strip() else max(lines, key=len, default="")
    words = sorted(dict.fromkeys(word for word in _words(text) if len(word) >= _WORTH), key=lambda w: (-len(w), w))
    questions = [" ".join(_words(heading)[:_LONGEST]), " ".join(_words(chosen)[:_LONGEST]), " ".join(words[:3])]
    return [PastQuestion(question, "own words") for question in dict.fromkeys(questions) if question]


def _words(text: str) -> list[str]:
    return [match.group() for match in tokens.WORD.finditer(text)]


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


def _changes(
    lost: Sequence[tuple[PastQuestion, WhyNot]], settings: Settings
) -> tuple[OneChange, ...] | tuple[NoOneChange]:
    """The single setting that recalls the line for most of the questions, and the one that moves least for each."""
    ignored = profiles.get(settings.word("profile")).ignores
    knobs = [key for key in TUNE_KEYS if key != TEXT and key not in ignored and not BY_KEY[key].choices]
    points = [(key, value) for key in knobs for value in points_of(key, settings.values[key].value)]
    replays = [
        (question.text, answer.row or 0, Reranking(answer.evidence, [answer.row or 0])) for question, answer in lost
    ]
    tried = [_turned(settings, *point) for point in points]
    won = _won(replays, tried)
    if not any(won):
        return (NoOneChange(tuple(points), len(lost)),)
    moved = _moved(replays, settings, tried)
    useful = [at for at in range(len(points)) if won[at]]
    most = max(useful, key=lambda at: (len(won[at]), -moved[at]))
    gentlest = min(useful, key=lambda at: (moved[at] / len(won[at]), -len(won[at])))
    nearest = [_nearest(replays, settings, *points[at], len(won[at])) for at in dict.fromkeys((most, gentlest))]
    return tuple(dict.fromkeys(nearest))


Replays = Sequence[tuple[str, int, Reranking]]
"""Questions that lose the line, each with the row that holds it."""


def _nearest(replays: Replays, settings: Settings, key: str, value: Scalar, wins: int) -> OneChange:
    """The change of one knob to the nearest value that recalls the line for as many questions as `value` does."""
    was = settings.values[key].value
    nearer = _between(key, was, value)
    there = _won(replays, [_turned(settings, key, one) for one in nearer])
    value, won = next((one, own) for one, own in zip(nearer, there, strict=True) if len(own) >= wins)
    return OneChange(key, was, value, won, len(replays), _moved(replays, settings, [_turned(settings, key, value)])[0])


def _moved(replays: Replays, settings: Settings, tried: Sequence[Settings]) -> list[int]:
    """Return how many other hits come or go under each of `tried`, over all questions."""
    counts = [0] * len(tried)
    for _, row, replay in replays:
        first, *then = map(set, replay.recalled_each([settings, *tried]))
        for at, rows in enumerate(then):
            counts[at] += len((first ^ rows) - {row})
    return counts


def _won(replays: Replays, tried: Sequence[Settings]) -> list[tuple[str, ...]]:
    """Return the questions for which the line is recalled, under each of `tried`."""
    won: list[list[str]] = [[] for _ in tried]
    for text, row, replay in replays:
        for at, standing in enumerate(replay.standings(row, tried)):
            if standing.recalled:
                won[at].append(text)
    return [tuple(texts) for texts in won]


def _turned(settings: Settings, key: str, value: Scalar) -> Settings:
    return settings.update(turned(BY_KEY[key], value), ORIGIN)


def _between(key: str, was: Scalar, value: Scalar) -> list[Scalar]:
    """Return the values of a knob on the way to `value`, by its steps, nearest to that of now first."""
    knob = BY_KEY[key]
    if isinstance(value, bool | str) or isinstance(was, str):
        return [value]
    count = int(abs(float(value) - float(was)) / knob.step)
    sign = 1 if value > was else -1
    by_step = [float(was) + sign * knob.step * i for i in range(1, count + 1)]
    return [*(round(at, 6) if isinstance(knob.default, float) else round(at) for at in by_step), value]


def unreached(chunks: Iterable[ChunkRef], delivered: Mapping[str, set[int]]) -> tuple[UnreachedLines, ...]:
    """The lines of `chunks` that are not among those `delivered` of their note, in the order of notes and lines."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for ref in chunks:
        numbers[ref.path].update(range(ref.start_line, ref.end_line + 1))
    ranges = []
    for path in sorted(numbers):
        left = sorted(numbers[path] - delivered.get(path, set()))
        start = 0
        for at in range(1, len(left) + 1):
            if at == len(left) or left[at] != left[at - 1] + 1:
                ranges.append(UnreachedLines(path, left[start], left[at - 1]))
                start = at
    return tuple(ranges)
