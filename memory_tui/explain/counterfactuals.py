"""Counterfactuals find the settings that would change whether a chunk is recalled.

Values are walked outwards on the knob's own fine grid, nearest first: rivals move too, so nothing promises a single
turning point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, combinations, islice, zip_longest

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import profiles
from memory_tui.core.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings
from memory_tui.explain.claims import NoPair, NoSingleKnob, SearchedRange
from memory_tui.explain.reranking import Reranking, Standing, kept_reranking
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import can_rank
from memory_tui.search.trace import ChunkRef

VECTOR, TEXT = "query.hybrid.vectorWeight", "query.hybrid.textWeight"
"""The weights are one knob: they add up to 1, as the tune strip turns them."""
ORIGIN = "what would change it"
_FIRST_BATCH, _BATCH = 16, 256
FINE_STEPS, COARSER = 400, 10
"""Of a wide knob so many fine steps are tried, then every so many."""
POINTS = 5
"""Values of a numeric knob that are tried together with those of another, both ends among them."""
_NEARED, SETS = 6, 3
"""How many sets of changes the search refines, and how many of those it gives."""
_ROUNDS = 3
FLOOR, RESULTS = "query.minScore", "query.maxResults"

WithProfile = Callable[[str], Settings]


class SavedEffect(Struct, frozen=True):
    """What settings do to the `asked` saved questions: those that recall more right lines, and those that lose one."""

    asked: int
    mended: tuple[str, ...]
    broken: tuple[str, ...]


Saved = Callable[[Settings], SavedEffect]
"""What settings do to saved questions, against those of now."""


class Flip(Struct, frozen=True):
    """A change of one knob that turns the verdict on a chunk, and what else it does.

    `changes` are the settings to change, `settings` all of them after it; `place` is the chunk's then, None when it
    is lost. `presses` counts how many steps of the knob it is away (a switch is one). `comes_in` and `drops_out` are
    the other chunks whose verdict turns. All values tried from the first to the last of `accepted` turn it as well, the
    next one does not; of a knob without numbers it is `value` alone.
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
    accepted: tuple[Scalar, Scalar]
    saved: SavedEffect | None = None

    @property
    def harm(self) -> tuple[int, int]:
        """Saved questions that break, and other hits that move."""
        return len(self.saved.broken) if self.saved else 0, len(self.comes_in) + len(self.drops_out)


class KnobTurn(Struct, frozen=True):
    """One knob of a set of changes, from `was` to `value`, the nearest that does while the others stay as in the set.

    So do all values tried from the first to the last of `accepted`; the next one does not.
    """

    key: str
    was: Scalar
    value: Scalar
    accepted: tuple[Scalar, Scalar]


class ChangeSet(Struct, frozen=True):
    """Turns of several knobs that together recall a chunk as number `place`, none of which may be left out.

    `changes` are the settings to change, `settings` all of them after it; `presses` adds up the steps. `comes_in` and
    `drops_out` are the other chunks whose verdict turns.
    """

    turns: tuple[KnobTurn, ...]
    changes: Mapping[str, Scalar]
    settings: Settings
    place: int
    presses: float
    comes_in: tuple[ChunkRef, ...]
    drops_out: tuple[ChunkRef, ...]
    saved: SavedEffect | None = None

    @property
    def harm(self) -> tuple[int, int]:
        """Saved questions that break, and other hits that move."""
        return len(self.saved.broken) if self.saved else 0, len(self.comes_in) + len(self.drops_out)


class NotAlone(Struct, frozen=True):
    """A knob that moves a chunk, but no value of which recalls it: at `value` it came nearest.

    There its `score` (None: never a candidate) `passes` the gate or does not, where minScore is `floor`; of the `limit`
    that are recalled it would be number `place`, None when that was not worked out because MMR stops at the limit.
    """

    key: str
    value: Scalar
    score: float | None
    passes: bool
    place: int | None
    limit: int
    floor: float


class Flips(Struct, frozen=True):
    """What turns the verdict on `chunk`, least harm first (see _by_harm), and which knobs do not alone.

    Knobs that have no effect on it, or only move it away, are in neither list. `searched` are the values of each knob
    that were tried. `sets` recall it by several changes: where no knob does alone, or with fewer steps or less harm
    than any. None of the pairs of `no_pair` recalls it.
    """

    chunk: ChunkRef
    recalled: bool
    found: tuple[Flip, ...]
    not_alone: tuple[NotAlone, ...]
    searched: tuple[SearchedRange, ...] = ()
    sets: tuple[ChangeSet, ...] = ()
    no_pair: NoPair | None = None

    @property
    def none(self) -> NoSingleKnob | None:
        """That no knob alone turns the verdict, where none does."""
        return None if self.found else NoSingleKnob(self.recalled, self.searched)


def flips(
    evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, saved: Saved | None = None
) -> Flips:
    """Every single turn of a knob that recalls the chunk at `row`, or loses it when it is recalled now; then sets.

    `with_profile` gives the settings under another profile, `saved` what settings do to saved questions. Pure
    arithmetic, for any thread.
    """
    return list(one_by_one(evidence, settings, row, with_profile, saved))[-1]


def one_by_one(
    evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, saved: Saved | None = None
) -> Iterator[Flips]:
    """What `flips` finds, told anew after each knob, for those who show it as it comes; the last is the whole."""
    with kept_reranking(evidence, row) as replay:
        yield from _one_by_one(_Search(evidence, settings, row, with_profile, saved, replay))


def _one_by_one(search: _Search) -> Iterator[Flips]:
    evidence, settings = search.evidence, search.settings
    found: list[Flip] = []
    alone: list[NotAlone] = []
    searched: list[SearchedRange] = []
    told = Flips(evidence.refs[search.row], search.now.recalled, (), ())
    for key in TUNE_KEYS:
        outcome = search.along(BY_KEY[key]) if key != TEXT else None
        searched += _ranges_of(BY_KEY[key], evidence, settings) if key != TEXT else []
        if isinstance(outcome, Flip):
            found.append(outcome)
        elif isinstance(outcome, NotAlone) and not search.now.recalled:
            alone.append(outcome)
        told = replace(told, found=tuple(sorted(found, key=_by_harm)), not_alone=tuple(alone), searched=tuple(searched))
        yield told
    if not told.recalled:
        sets, no_pair = search.sets([flip for flip in told.found if not BY_KEY[flip.key].choices])
        yield replace(told, sets=sets, no_pair=no_pair)


WHOLE = ("query.hybrid.enabled", "profile")
"""Knobs that replace the whole way of ranking: they come last, however little a chunk needs."""


def _by_harm(flip: Flip) -> tuple[bool, tuple[int, int], float]:
    """Saved questions that break first, then other hits that move, then steps; a whole other ranking last."""
    return flip.key in WHOLE, flip.harm, flip.presses


def _ranges_of(knob: Knob, evidence: Evidence, settings: Settings) -> list[SearchedRange]:
    """The values of `knob` that are tried: those of its slider, the other profiles."""
    if knob.choices:
        others = (name for name in profiles.PROFILES if name != settings.word(knob.key) and can_rank(evidence, name))
        return [SearchedRange(knob.key, 0, 0, 0, tuple(others))]
    if isinstance(knob.default, bool):
        return [SearchedRange(knob.key, 0, 1, 1)]
    turn = knob.low + (FINE_STEPS - 1) * knob.fine
    if turn >= knob.high:
        return [SearchedRange(knob.key, knob.low, knob.high, knob.fine)]
    return [
        SearchedRange(knob.key, knob.low, turn, knob.fine),
        SearchedRange(knob.key, turn, knob.high, COARSER * knob.fine),
    ]


def turned(knob: Knob, value: Scalar) -> dict[str, Scalar]:
    """What changes when `knob` is turned to `value`; a weight takes its partner along."""
    return {VECTOR: value, TEXT: round(1 - float(value), 6)} if knob.key == VECTOR else {knob.key: value}


@cache
def grid(key: str) -> tuple[Scalar, ...]:
    """The values of a numeric knob that are tried, rising: FINE_STEPS fine steps, every COARSER-th, the last."""
    knob = BY_KEY[key]
    first, last = round(knob.low / knob.fine), round(knob.high / knob.fine)
    by_one = min(last, first + FINE_STEPS - 1)
    numbers = [*range(first, by_one + 1), *range(by_one + COARSER, last, COARSER)] if by_one < last else []
    numbers = [*numbers, last] if numbers else list(range(first, last + 1))
    return tuple(round(i * knob.fine, 6) if isinstance(knob.default, float) else int(i * knob.fine) for i in numbers)


def outwards(knob: Knob, value: Scalar) -> Iterator[Scalar]:
    """Every other value of `knob`, nearest to `value` first: of its grid up and down in turn, up before down."""
    if knob.choices:
        yield from (name for name in profiles.PROFILES if name != value)
    elif isinstance(knob.default, bool):
        yield not value
    else:
        for one in chain.from_iterable(zip_longest(beyond(knob, value, up=True), beyond(knob, value, up=False))):
            if one is not None:
                yield one


def beyond(knob: Knob, value: Scalar, *, up: bool) -> list[Scalar]:
    """The values of a numeric knob above `value`, or below it, nearest first."""
    # A thousandth of a millionth of a step absorbs the error of decimal fractions.
    at, hair = float(value), knob.fine * 1e-9
    if up:
        return [one for one in grid(knob.key) if float(one) > at + hair]
    return [one for one in reversed(grid(knob.key)) if float(one) < at - hair]


class _Search:
    """One chunk under one evidence, and where it stands now."""

    def __init__(
        self,
        evidence: Evidence,
        settings: Settings,
        row: int,
        with_profile: WithProfile,
        saved: Saved | None,
        replay: Reranking,
    ) -> None:
        self.evidence, self.settings, self.row, self.with_profile = evidence, settings, row, with_profile
        self.replay = replay
        self.now = self.replay.standings(row, [settings])[0]
        self.before = set(self.replay.recalled(settings))
        self._saved = saved

    def along(self, knob: Knob) -> Flip | NotAlone | None:
        """The nearest value of `knob` that turns the verdict; else the best there is, None when nothing moves."""
        best: tuple[tuple[float, ...], Scalar, Standing] | None = None
        moved = False
        values: Iterator[Scalar] = outwards(knob, self.settings.values[knob.key].value)
        if knob.choices:
            # An index is cut for some of the profiles; the others have evidence of their own.
            values = (name for name in values if can_rank(self.evidence, str(name)))
        for value, standing in self._standings(self.settings, knob, values):
            if standing.recalled != self.now.recalled:
                return self._flip(knob, value, standing)
            moved = moved or self._moved(standing)
            merit = _merit(standing)
            if best is None or merit > best[0]:
                best = merit, value, standing
        if best is None or not moved or best[0] < _merit(self.now):
            return None
        _, value, standing = best
        settings = self._with(self.settings, knob, value)
        place = None if settings.on("query.hybrid.mmr.enabled") else standing.place
        score = None if math.isnan(standing.score) else standing.score
        floor = settings.number("query.minScore")
        return NotAlone(knob.key, value, score, standing.place > 0, place or None, standing.limit, floor)

    def _standings(self, settings: Settings, knob: Knob, values: Iterator[Scalar]) -> Iterator[tuple[Scalar, Standing]]:
        """Where the chunk stands at each of `values`, in larger and larger batches: most walks are short."""
        size = _FIRST_BATCH
        while batch := list(islice(values, size)):
            if knob.choices:
                found = self.replay.standings(self.row, [self.with_profile(str(value)) for value in batch])
            else:
                found = self.replay.turns(self.row, settings, [turned(knob, value) for value in batch])
            yield from zip(batch, found, strict=True)
            size = min(_BATCH, 2 * size)

    def _with(self, settings: Settings, knob: Knob, value: Scalar) -> Settings:
        return self.with_profile(str(value)) if knob.choices else settings.update(turned(knob, value), ORIGIN)

    def _moved(self, standing: Standing) -> bool:
        same = standing.score == self.now.score or (math.isnan(standing.score) and math.isnan(self.now.score))
        return not same or standing.place != self.now.place

    def _flip(self, knob: Knob, value: Scalar, standing: Standing) -> Flip:
        settings = self._with(self.settings, knob, value)
        was = self.settings.values[knob.key].value
        return Flip(
            knob.key,
            was,
            value,
            {"profile": value} if knob.choices else turned(knob, value),
            settings,
            standing.place if standing.recalled else None,
            presses(knob, was, value),
            *self._others(self.replay.recalled(settings)),
            self._accepted(self.settings, knob, value),
            self._saved(settings) if self._saved else None,
        )

    def _others(self, after: Sequence[int]) -> tuple[tuple[ChunkRef, ...], tuple[ChunkRef, ...]]:
        """The other chunks that come in, and that drop out, where `after` are recalled."""
        refs = self.evidence.refs
        return (
            tuple(refs[row] for row in after if row not in self.before and row != self.row),
            tuple(refs[row] for row in sorted(self.before - set(after)) if row != self.row),
        )

    def _accepted(self, settings: Settings, knob: Knob, value: Scalar) -> tuple[Scalar, Scalar]:
        """From `value` on, away from the value of now, how far the verdict stays turned; lowest first."""
        was = self.settings.values[knob.key].value
        if isinstance(value, bool | str) or isinstance(was, str):
            return value, value
        last: Scalar = value
        up = value > was
        for one, standing in self._standings(settings, knob, iter(beyond(knob, value, up=up))):
            if standing.recalled == self.now.recalled:
                break
            last = one
        return (value, last) if up else (last, value)

    # --- several at once -----------------------------------------------------------------------------------------

    def sets(self, singles: Sequence[Flip]) -> tuple[tuple[ChangeSet, ...], NoPair | None]:
        """Sets of changes that recall the chunk: those that beat each of `singles`, fewest steps first, then harm.

        Without one, which pairs were tried.
        """
        ignored = profiles.get(self.settings.word("profile")).ignores
        keys = [key for key in _COMBINED if key not in ignored]
        points = [(key, value) for key in keys for value in points_of(key, self.settings.values[key].value)]
        alone = self._recalled_by([(point,) for point in points])
        rest = [point for point in points if (point,) not in alone]
        found = self._recalled_by([pair for pair in combinations(rest, 2) if pair[0][0] != pair[1][0]])
        no_pair = None if found or singles else NoPair(tuple(rest))
        if not found and not singles:
            open_wide = ((FLOOR, BY_KEY[FLOOR].low), (RESULTS, int(BY_KEY[RESULTS].high)))
            found = self._recalled_by([(*open_wide, one) for one in rest if one[0] not in (FLOOR, RESULTS)])
        neared = [dict(one) for one in dict.fromkeys(tuple(sorted(one.items())) for one in self._neared(found))]
        better = [one for one in map(self._set, neared) if all(_beats(one, flip) for flip in singles)]
        by_steps = sorted(better, key=lambda one: (one.presses, one.harm))
        chosen = [*by_steps[:1], *sorted(better, key=lambda one: (one.harm, one.presses))[:1], *by_steps]
        kept = list({one.turns: one for one in chosen}.values())[:SETS]
        return tuple(self._told(one) for one in kept), no_pair

    def _recalled_by(self, tries: Sequence[Points]) -> dict[Points, Standing]:
        """Of `tries` those that recall the chunk, with where it stands."""
        changes = [_changes(dict(one)) for one in tries]
        standings = self.replay.turns(self.row, self.settings, changes)
        return {one: standing for one, standing in zip(tries, standings, strict=True) if standing.recalled}

    def _turned(self, values: Mapping[str, Scalar]) -> Settings:
        return self.settings.update(_changes(values), ORIGIN)

    def _neared(self, found: Mapping[Points, Standing]) -> Iterator[dict[str, Scalar]]:
        """The sets that seem smallest, one of the same knobs, each value as near to that of now as it can be."""
        smallest: dict[tuple[str, ...], tuple[float, Points]] = {}
        for tried, standing in found.items():
            keys = tuple(key for key, _ in tried)
            steps = sum(self._least(key, value, standing) for key, value in tried)
            smallest[keys] = min(smallest.get(keys, (math.inf, tried)), (steps, tried), key=lambda one: one[0])
        for _, tried in sorted(smallest.values(), key=lambda one: one[0])[:_NEARED]:
            each = [self._nearest(dict(order)) for order in (tried, tried[::-1])]
            yield from (one for one in each if one is not None)

    def _least(self, key: str, value: Scalar, standing: Standing) -> float:
        """How many steps `value` is away, fewer where the standing tells that a nearer one will do."""
        was = self.settings.values[key].value
        least: Scalar = value
        if key == FLOOR and float(value) <= standing.score <= float(was):
            least = standing.score
        if key == RESULTS:
            least = max(int(was), standing.place)
        return presses(BY_KEY[key], was, least)

    def _nearest(self, values: dict[str, Scalar]) -> dict[str, Scalar] | None:
        """`values` with each as near as it can be while the others stay; None where one may be left out."""
        for _ in range(_ROUNDS):
            before = dict(values)
            for key in values:
                others = self._turned({one: value for one, value in values.items() if one != key})
                knob, was = BY_KEY[key], self.settings.values[key].value
                if self.replay.standings(self.row, [others])[0].recalled:
                    return None
                walk = self._standings(others, knob, outwards(knob, was))
                values[key] = next((value for value, standing in walk if standing.recalled), values[key])
            if values == before:
                return values
        return None

    def _set(self, values: Mapping[str, Scalar]) -> ChangeSet:
        """The set of `values`, before it is known how far each goes."""
        settings = self._turned(values)
        was = {key: self.settings.values[key].value for key in values}
        return ChangeSet(
            tuple(KnobTurn(key, was[key], value, (value, value)) for key, value in sorted(values.items())),
            {key: value.value for key, value in settings.values.items() if value.origin == ORIGIN},
            settings,
            self.replay.standings(self.row, [settings])[0].place,
            sum(presses(BY_KEY[key], was[key], value) for key, value in values.items()),
            *self._others(self.replay.recalled(settings)),
            self._saved(settings) if self._saved else None,
        )

    def _told(self, found: ChangeSet) -> ChangeSet:
        """`found` with how far each of its knobs goes."""
        turns = tuple(
            replace(turn, accepted=self._accepted(found.settings, BY_KEY[turn.key], turn.value)) for turn in found.turns
        )
        return replace(found, turns=turns)


Points = tuple[tuple[str, Scalar], ...]
_COMBINED = tuple(key for key in TUNE_KEYS if key != TEXT and not BY_KEY[key].choices)


def _changes(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {k: v for key, value in values.items() for k, v in turned(BY_KEY[key], value).items()}


def points_of(key: str, now: Scalar) -> list[Scalar]:
    """The values of a knob that are tried together with those of others: its switch, or some spread over its grid."""
    if isinstance(now, bool):
        return [not now]
    values = grid(key)
    spread = [values[round(at * (len(values) - 1) / (POINTS - 1))] for at in range(POINTS)]
    return [value for value in dict.fromkeys(spread) if value != now]


def presses(knob: Knob, was: Scalar, value: Scalar) -> float:
    """How many steps of `knob` are between two of its values."""
    if isinstance(value, str) or isinstance(was, str):
        # Another profile changes most of what is on screen, so whatever one knob can do comes first.
        return math.inf
    return 1.0 if isinstance(value, bool) else abs(value - was) / knob.step


def _beats(found: ChangeSet, single: Flip) -> bool:
    """Whether a set is worth telling beside a single change."""
    return found.presses < single.presses or found.harm < single.harm


def _merit(standing: Standing) -> tuple[float, ...]:
    """How near a standing is to being recalled: over the gate by place over the limit, below it by score."""
    if standing.place:
        return 1.0, standing.limit - standing.place
    return 0.0, -math.inf if math.isnan(standing.score) else standing.score


def side_effects(flip: Flip | ChangeSet, grade: Callable[[ChunkRef], int | None]) -> tuple[int, int]:
    """Of the chunks that come in, how many are marked right and how many wrong, by `grade` (None: not marked)."""
    grades: Sequence[int | None] = [grade(ref) for ref in flip.comes_in]
    return sum(g is not None and g > 0 for g in grades), sum(g == 0 for g in grades)
