"""What would change the answer for a chunk: of each knob the smallest turn that recalls it, or that loses it.

Values are walked outwards on the knob's own fine grid, nearest first: rivals move too, so nothing promises a single
turning point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from memory_tui import profiles
from memory_tui.explain.replay import Replay, Standing
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings

VECTOR, TEXT = "query.hybrid.vectorWeight", "query.hybrid.textWeight"
"""The weights are one knob: they add up to 1, as the tune strip turns them."""
ORIGIN = "what would change it"
_BATCH = 256

WithProfile = Callable[[str], Settings]


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of one knob that turns the verdict on a chunk, and what else it does.

    `changes` are the settings to change, `settings` all of them after it; `place` is the chunk's then, None when it
    is lost. `presses` counts how many steps of the knob it is away (a switch is one). `comes_in` and `drops_out` are
    the other chunks whose verdict turns.
    """

    key: str
    was: Scalar
    value: Scalar
    changes: Mapping[str, Scalar]
    settings: Settings
    place: int | None
    presses: float
    comes_in: tuple[ChunkRef, ...]
    drops_out: tuple[ChunkRef, ...]


@dataclass(frozen=True, slots=True)
class NotAlone:
    """A knob that moves a chunk, but no value of which recalls it: at `value` it came nearest.

    There its `score` (None: never a candidate) `passes` the gate or does not; of the `limit` that are recalled it would
    be number `place`, None when that was not worked out because MMR stops at the limit.
    """

    key: str
    value: Scalar
    score: float | None
    passes: bool
    place: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Flips:
    """What turns the verdict on `chunk`, nearest first, and which knobs do not alone.

    Knobs that have no effect on it are in neither list.
    """

    chunk: ChunkRef
    recalled: bool
    found: tuple[Flip, ...]
    not_alone: tuple[NotAlone, ...]


def flips(evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile) -> Flips:
    """Every single turn of a knob that recalls the chunk at `row`, or loses it when it is recalled now.

    `with_profile` gives the settings under another profile. Pure arithmetic, for any thread.
    """
    return list(one_by_one(evidence, settings, row, with_profile))[-1]


def one_by_one(evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile) -> Iterator[Flips]:
    """What `flips` finds, told anew after each knob, for those who show it as it comes; the last is the whole."""
    search = _Search(evidence, settings, row, with_profile)
    found: list[Flip] = []
    alone: list[NotAlone] = []
    for key in TUNE_KEYS:
        outcome = search.along(BY_KEY[key]) if key != TEXT else None
        if isinstance(outcome, Flip):
            found.append(outcome)
        elif isinstance(outcome, NotAlone) and not search.now.recalled:
            alone.append(outcome)
        yield Flips(
            evidence.refs[row], search.now.recalled, tuple(sorted(found, key=lambda flip: flip.presses)), tuple(alone)
        )


def turned(knob: Knob, value: Scalar) -> dict[str, Scalar]:
    """What changes when `knob` is turned to `value`; a weight takes its partner along."""
    return {VECTOR: value, TEXT: round(1 - float(value), 6)} if knob.key == VECTOR else {knob.key: value}


def outwards(knob: Knob, value: Scalar) -> Iterator[Scalar]:
    """Every other value of `knob`, nearest to `value` first: by fine steps up and down in turn, up before down."""
    if knob.choices:
        yield from (name for name in profiles.PROFILES if name != value)
    elif isinstance(knob.default, bool):
        yield not value
    else:
        at, last, first = float(value) / knob.fine, knob.high / knob.fine, knob.low / knob.fine
        # A thousandth of a millionth of a step absorbs the error of decimal fractions.
        up = range(math.floor(at + 1e-9) + 1, math.floor(last + 1e-9) + 1)
        down = range(min(math.ceil(at - 1e-9) - 1, up.stop - 1), math.ceil(first - 1e-9) - 1, -1)
        for i in chain.from_iterable(zip_longest(up, down)):
            if i is not None:
                yield round(i * knob.fine, 6) if isinstance(knob.default, float) else int(i * knob.fine)


class _Search:
    """One chunk under one evidence, and where it stands now."""

    def __init__(self, evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile) -> None:
        self.evidence, self.settings, self.row, self.with_profile = evidence, settings, row, with_profile
        self.replay = Replay(evidence, [row])
        self.now = self.replay.standings(row, [settings])[0]
        self.before = set(self.replay.recalled(settings))

    def along(self, knob: Knob) -> Flip | NotAlone | None:
        """The nearest value of `knob` that turns the verdict; else the best there is, None when nothing moves."""
        best: tuple[tuple[float, ...], Scalar, Standing] | None = None
        moved = False
        values = outwards(knob, self.settings.values[knob.key].value)
        while batch := list(islice(values, _BATCH)):
            standings = self.replay.standings(self.row, [self._with(knob, value) for value in batch])
            for value, standing in zip(batch, standings, strict=True):
                if standing.recalled != self.now.recalled:
                    return self._flip(knob, value, standing)
                moved = moved or self._moved(standing)
                merit = _merit(standing)
                if best is None or merit > best[0]:
                    best = merit, value, standing
        if best is None or not moved:
            return None
        _, value, standing = best
        place = None if self._with(knob, value).on("query.hybrid.mmr.enabled") else standing.place or None
        score = None if math.isnan(standing.score) else standing.score
        return NotAlone(knob.key, value, score, standing.place > 0, place, standing.limit)

    def _with(self, knob: Knob, value: Scalar) -> Settings:
        if knob.choices:
            return self.with_profile(str(value))
        return self.settings.update(turned(knob, value), ORIGIN)

    def _moved(self, standing: Standing) -> bool:
        same = standing.score == self.now.score or (math.isnan(standing.score) and math.isnan(self.now.score))
        return not same or standing.place != self.now.place

    def _flip(self, knob: Knob, value: Scalar, standing: Standing) -> Flip:
        settings = self._with(knob, value)
        after = self.replay.recalled(settings)
        refs = self.evidence.refs
        return Flip(
            knob.key,
            self.settings.values[knob.key].value,
            value,
            {"profile": value} if knob.choices else turned(knob, value),
            settings,
            standing.place if standing.recalled else None,
            self._presses(knob, value),
            tuple(refs[row] for row in after if row not in self.before and row != self.row),
            tuple(refs[row] for row in sorted(self.before - set(after)) if row != self.row),
        )

    def _presses(self, knob: Knob, value: Scalar) -> float:
        was = self.settings.values[knob.key].value
        if isinstance(value, str) or isinstance(was, str):
            # Another profile changes most of what is on screen, so whatever one knob can do comes first.
            return math.inf
        return 1.0 if isinstance(value, bool) else abs(value - was) / knob.step


def _merit(standing: Standing) -> tuple[float, ...]:
    """How near a standing is to being recalled: over the gate by place over the limit, below it by score."""
    if standing.place:
        return 1.0, standing.limit - standing.place
    return 0.0, -math.inf if math.isnan(standing.score) else standing.score


def side_effects(flip: Flip, grade: Callable[[ChunkRef], int | None]) -> tuple[int, int]:
    """Of the chunks that come in, how many are marked right and how many wrong, by `grade` (None: not marked)."""
    grades: Sequence[int | None] = [grade(ref) for ref in flip.comes_in]
    return sum(g is not None and g > 0 for g in grades), sum(g == 0 for g in grades)
