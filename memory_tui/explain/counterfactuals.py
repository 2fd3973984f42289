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

from memory_tui import profiles
from memory_tui.explain.reranking import Reranking, Standing
from memory_tui.notices import Notice, notice
from memory_tui.search.evidence import Evidence
from memory_tui.search.formulas import normalised_weights
from memory_tui.search.rank import can_rank
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings

WEIGHT, TEXT = "query.hybrid.vectorWeight", "query.hybrid.textWeight"
"""The weights are one knob: they add up to 1, as the tune strip turns them."""
FLOOR, RESULTS = "query.minScore", "query.maxResults"
ORIGIN = "what would change it"
_FIRST_BATCH, _BATCH = 16, 256
FINE_STEPS, COARSER = 400, 10
"""Of a wide knob so many fine steps are tried, then every so many."""
POINTS = 5
"""Values of a numeric knob that are tried together with those of another, both ends among them."""
_NEARED, SETS = 6, 3
"""How many sets of changes the search refines, and how many of those it gives."""
_ROUNDS = 3
WHOLE = ("query.hybrid.enabled", "profile")
"""Knobs that replace the whole way of ranking: they come last, however little a chunk needs."""
_COMBINED = tuple(key for key in TUNE_KEYS if key != TEXT and not BY_KEY[key].choices)

WithProfile = Callable[[str], Settings]
Points = tuple[tuple[str, Scalar], ...]


class SavedEffect(Struct, frozen=True):
    """What settings do to the `asked` saved questions: those that recall more right lines, and those that lose one."""

    asked: int
    mended: tuple[str, ...]
    broken: tuple[str, ...]


Saved = Callable[[Settings], SavedEffect]
"""What settings do to saved questions, against those of now."""


class Turn(Struct, frozen=True):
    """One knob of a change, from `was` to `value`, the nearest that does while the other turns stay.

    So do all values tried from the first to the last of `accepted`; the next one does not. Of a knob without numbers
    it is `value` alone.
    """

    key: str
    was: Scalar
    value: Scalar
    accepted: tuple[Scalar, Scalar]


class Change(Struct, frozen=True):
    """Turns of one knob, or of several of which none may be left out, that turn the verdict on a chunk.

    `changes` are the settings to change, `settings` all of them after it; `place` is the chunk's then, None when it is
    lost. `presses` counts the steps of the knobs (a switch is one). `comes_in` and `drops_out` are the other chunks
    whose verdict turns.
    """

    turns: tuple[Turn, ...]
    changes: Mapping[str, Scalar]
    settings: Settings
    place: int | None
    presses: float
    comes_in: tuple[ChunkRef, ...]
    drops_out: tuple[ChunkRef, ...]
    saved: SavedEffect | None = None

    @property
    def harm(self) -> tuple[int, int]:
        """Return how many saved questions break, and how many other hits move."""
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


class SearchedRange(Struct, frozen=True):
    """The values of one knob that were tried: from `low` to `high` by `step`, or `choices` by name."""

    key: str
    low: float
    high: float
    step: float
    choices: tuple[str, ...] = ()


class Flips(Struct, frozen=True):
    """What turns the verdict on `chunk`, least harm first, and which knobs do not alone.

    Knobs that have no effect on it, or only move it away, are in neither list. `searched` are the values of each knob
    that were tried. `sets` recall it by several changes: where no knob does alone, or with fewer steps or less harm
    than any. None of the pairs of `no_pair` recalls it.
    """

    chunk: ChunkRef
    recalled: bool
    singles: tuple[Change, ...]
    not_alone: tuple[NotAlone, ...]
    searched: tuple[SearchedRange, ...]
    sets: tuple[Change, ...] = ()
    no_pair: Notice | None = None

    @property
    def none(self) -> Notice | None:
        """Return that no knob alone turns the verdict, where none does."""
        return None if self.singles else notice("no_single_knob", recalled=self.recalled, ranges=self.searched)


def flips(
    evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, saved: Saved | None = None
) -> Flips:
    """Return every single turn of a knob that recalls the chunk at `row`, or loses it when it is recalled; then sets.

    `with_profile` gives the settings under another profile, `saved` what settings do to saved questions.
    """
    search = _Search(evidence, _with_weights_that_count(settings), row, with_profile, saved)
    singles: list[Change] = []
    alone: list[NotAlone] = []
    for key in TUNE_KEYS:
        outcome = search.along(BY_KEY[key]) if key != TEXT else None
        if isinstance(outcome, Change):
            singles.append(outcome)
        elif outcome is not None and not search.now.recalled:
            alone.append(outcome)
    # Saved questions that break first, then other hits that move, then steps; a whole other ranking last.
    singles.sort(key=lambda change: (change.turns[0].key in WHOLE, change.harm, change.presses))
    searched = [each for key in TUNE_KEYS if key != TEXT for each in _ranges_of(BY_KEY[key], evidence, settings)]
    result = Flips(evidence.refs[row], search.now.recalled, tuple(singles), tuple(alone), tuple(searched))
    if result.recalled:
        return result
    sets, no_pair = search.sets([change for change in singles if not BY_KEY[change.turns[0].key].choices])
    return replace(result, sets=sets, no_pair=no_pair)


def _with_weights_that_count(settings: Settings) -> Settings:
    """Return `settings` with the weights as they count, so that a step away from them is a step: 0 and 0 do not."""
    vector, text = (float(settings.values[key].value) for key in (WEIGHT, TEXT))
    if abs(vector + text - 1.0) < 1e-6:
        return settings
    counts = dict(zip((WEIGHT, TEXT), normalised_weights(vector, text), strict=True))
    return settings.update(counts, settings.values[WEIGHT].origin)


def _ranges_of(knob: Knob, evidence: Evidence, settings: Settings) -> list[SearchedRange]:
    """Return the values of `knob` that are tried: those of its slider, the other profiles."""
    if knob.choices:
        others = (name for name in profiles.PROFILES if name != settings.word(knob.key) and can_rank(evidence, name))
        return [SearchedRange(knob.key, 0, 0, 0, tuple(others))]
    if isinstance(knob.default, bool):
        return [SearchedRange(knob.key, 0, 1, 1)]
    middle = knob.low + (FINE_STEPS - 1) * knob.fine
    if middle >= knob.high:
        return [SearchedRange(knob.key, knob.low, knob.high, knob.fine)]
    return [
        SearchedRange(knob.key, knob.low, middle, knob.fine),
        SearchedRange(knob.key, middle, knob.high, COARSER * knob.fine),
    ]


# --- the values of a knob -------------------------------------------------------------------------------------------


def turned(knob: Knob, value: Scalar) -> dict[str, Scalar]:
    """Return what changes when `knob` is turned to `value`; a weight takes its partner along."""
    return {WEIGHT: value, TEXT: round(1 - float(value), 6)} if knob.key == WEIGHT else {knob.key: value}


@cache
def grid(key: str) -> tuple[Scalar, ...]:
    """Return the values of a numeric knob that are tried, rising: FINE_STEPS fine steps, every COARSER-th, the last."""
    knob = BY_KEY[key]
    first, last = round(knob.low / knob.fine), round(knob.high / knob.fine)
    by_one = min(last, first + FINE_STEPS - 1)
    steps = [*range(first, by_one + 1), *range(by_one + COARSER, last, COARSER)]
    steps += [last] if by_one < last else []
    return tuple(round(i * knob.fine, 6) if isinstance(knob.default, float) else int(i * knob.fine) for i in steps)


def outwards(knob: Knob, value: Scalar) -> Iterator[Scalar]:
    """Yield every other value of `knob`, nearest to `value` first: of its grid up and down in turn, up before down."""
    if knob.choices:
        yield from (name for name in profiles.PROFILES if name != value)
    elif isinstance(knob.default, bool):
        yield not value
    else:
        pairs = zip_longest(beyond(knob, value, up=True), beyond(knob, value, up=False))
        yield from (each for each in chain.from_iterable(pairs) if each is not None)


def beyond(knob: Knob, value: Scalar, *, up: bool) -> list[Scalar]:
    """Return the values of a numeric knob above `value`, or below it, nearest first."""
    # A thousandth of a millionth of a step absorbs the error of decimal fractions.
    at, hair = float(value), knob.fine * 1e-9
    if up:
        return [each for each in grid(knob.key) if float(each) > at + hair]
    return [each for each in reversed(grid(knob.key)) if float(each) < at - hair]


def points_of(key: str, now: Scalar) -> list[Scalar]:
    """Return the values of a knob that are tried together with those of others: its switch, or some of its grid."""
    if isinstance(now, bool):
        return [not now]
    values = grid(key)
    spread = [values[round(at * (len(values) - 1) / (POINTS - 1))] for at in range(POINTS)]
    return [value for value in dict.fromkeys(spread) if value != now]


def presses(knob: Knob, was: Scalar, value: Scalar) -> float:
    """Return how many steps of `knob` are between two of its values."""
    if isinstance(value, str) or isinstance(was, str):
        # Another profile changes most of what is on screen, so whatever one knob can do comes first.
        return math.inf
    return 1.0 if isinstance(value, bool) else abs(value - was) / knob.step


def _changes(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {k: v for key, value in values.items() for k, v in turned(BY_KEY[key], value).items()}


# --- the search -----------------------------------------------------------------------------------------------------


class _Search:
    """One chunk under one evidence, and where it stands now."""

    def __init__(
        self, evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, saved: Saved | None
    ) -> None:
        self.evidence, self.settings, self.row, self.with_profile = evidence, settings, row, with_profile
        self.replay = Reranking(evidence, [row])
        self.now = self.replay.standings(row, [settings])[0]
        self.before = set(self.replay.recalled(settings))
        self._saved = saved

    def along(self, knob: Knob) -> Change | NotAlone | None:
        """Return the nearest value of `knob` that turns the verdict; else the best one, None when nothing moves."""
        best: tuple[tuple[float, ...], Scalar, Standing] | None = None
        moved = False
        values: Iterator[Scalar] = outwards(knob, self._was(knob.key))
        if knob.choices:
            # An index is cut for some of the profiles; the others have evidence of their own.
            values = (name for name in values if can_rank(self.evidence, str(name)))
        for value, standing in self._standings(self.settings, knob, values):
            if standing.recalled != self.now.recalled:
                return self._with_ranges(self._change({knob.key: value}))
            moved = moved or _numbers(standing) != _numbers(self.now)
            if best is None or _merit(standing) > best[0]:
                best = _merit(standing), value, standing
        if best is None or not moved or best[0] < _merit(self.now):
            return None
        _, value, standing = best
        settings = self._with(self.settings, {knob.key: value})
        place = None if settings.on("query.hybrid.mmr.enabled") else standing.place
        score = None if math.isnan(standing.score) else standing.score
        return NotAlone(
            knob.key, value, score, standing.place > 0, place or None, standing.limit, settings.number(FLOOR)
        )

    def _was(self, key: str) -> Scalar:
        return self.settings.values[key].value

    def _with(self, settings: Settings, values: Mapping[str, Scalar]) -> Settings:
        if "profile" in values:
            return self.with_profile(str(values["profile"]))
        return settings.update(_changes(values), ORIGIN)

    def _standings(self, settings: Settings, knob: Knob, values: Iterator[Scalar]) -> Iterator[tuple[Scalar, Standing]]:
        """Yield where the chunk stands at each of `values`, in larger and larger batches: most walks are short."""
        size = _FIRST_BATCH
        while batch := list(islice(values, size)):
            if knob.choices:
                standings = self.replay.standings(self.row, [self.with_profile(str(value)) for value in batch])
            else:
                standings = self.replay.turns(self.row, settings, [turned(knob, value) for value in batch])
            yield from zip(batch, standings, strict=True)
            size = min(_BATCH, 2 * size)

    def _change(self, values: Mapping[str, Scalar]) -> Change:
        """Return what turning these knobs does, before it is known how far each may go."""
        settings = self._with(self.settings, values)
        standing = self.replay.standings(self.row, [settings])[0]
        after, refs = self.replay.recalled(settings), self.evidence.refs
        return Change(
            tuple(Turn(key, self._was(key), value, (value, value)) for key, value in sorted(values.items())),
            _changes(values),
            settings,
            standing.place if standing.recalled else None,
            sum(presses(BY_KEY[key], self._was(key), value) for key, value in values.items()),
            tuple(refs[row] for row in after if row not in self.before and row != self.row),
            tuple(refs[row] for row in sorted(self.before - set(after)) if row != self.row),
            self._saved(settings) if self._saved else None,
        )

    def _with_ranges(self, change: Change) -> Change:
        """Return `change` with how far each of its knobs may go."""
        turns = (
            replace(turn, accepted=self._accepted(change.settings, BY_KEY[turn.key], turn.value))
            for turn in change.turns
        )
        return replace(change, turns=tuple(turns))

    def _accepted(self, settings: Settings, knob: Knob, value: Scalar) -> tuple[Scalar, Scalar]:
        """Return how far from `value` on, away from the value of now, the verdict stays turned; lowest first."""
        was = self._was(knob.key)
        if isinstance(value, bool | str) or isinstance(was, str):
            return value, value
        last: Scalar = value
        up = value > was
        for each, standing in self._standings(settings, knob, iter(beyond(knob, value, up=up))):
            if standing.recalled == self.now.recalled:
                break
            last = each
        return (value, last) if up else (last, value)

    # --- several at once -----------------------------------------------------------------------------------------

    def sets(self, singles: Sequence[Change]) -> tuple[tuple[Change, ...], Notice | None]:
        """Return sets of turns that recall the chunk: those that beat each of `singles`, fewest steps first, then harm.

        Without one, which pairs were tried.
        """
        ignored = profiles.get(self.settings.word("profile")).ignores
        keys = [key for key in _COMBINED if key not in ignored]
        points = [(key, value) for key in keys for value in points_of(key, self._was(key))]
        alone = self._recalled_by([(point,) for point in points])
        rest = [point for point in points if (point,) not in alone]
        standings = self._recalled_by([pair for pair in combinations(rest, 2) if pair[0][0] != pair[1][0]])
        no_pair = None if standings or singles else notice("no_pair", points=tuple(rest))
        if not standings and not singles:
            open_wide = ((FLOOR, BY_KEY[FLOOR].low), (RESULTS, int(BY_KEY[RESULTS].high)))
            standings = self._recalled_by([(*open_wide, point) for point in rest if point[0] not in (FLOOR, RESULTS)])
        neared = [dict(each) for each in dict.fromkeys(tuple(sorted(each.items())) for each in self._neared(standings))]
        better = [
            each
            for each in map(self._change, neared)
            if all(each.presses < single.presses or each.harm < single.harm for single in singles)
        ]
        by_steps = sorted(better, key=lambda each: (each.presses, each.harm))
        chosen = [*by_steps[:1], *sorted(better, key=lambda each: (each.harm, each.presses))[:1], *by_steps]
        smallest = list({each.turns: each for each in chosen}.values())[:SETS]
        return tuple(map(self._with_ranges, smallest)), no_pair

    def _recalled_by(self, tries: Sequence[Points]) -> dict[Points, Standing]:
        """Return those of `tries` that recall the chunk, with where it stands."""
        standings = self.replay.turns(self.row, self.settings, [_changes(dict(each)) for each in tries])
        return {each: standing for each, standing in zip(tries, standings, strict=True) if standing.recalled}

    def _neared(self, standings: Mapping[Points, Standing]) -> Iterator[dict[str, Scalar]]:
        """Yield the sets that seem smallest, one of the same knobs, each value as near to that of now as it can be."""
        smallest: dict[tuple[str, ...], tuple[float, Points]] = {}
        for tried, standing in standings.items():
            keys = tuple(key for key, _ in tried)
            steps = sum(self._least(key, value, standing) for key, value in tried)
            smallest[keys] = min(smallest.get(keys, (math.inf, tried)), (steps, tried), key=lambda each: each[0])
        for _, tried in sorted(smallest.values(), key=lambda each: each[0])[:_NEARED]:
            each = [self._nearest(dict(order)) for order in (tried, tried[::-1])]
            yield from (values for values in each if values is not None)

    def _least(self, key: str, value: Scalar, standing: Standing) -> float:
        """Return how many steps `value` is away, fewer where the standing tells that a nearer one will do."""
        was = self._was(key)
        least: Scalar = value
        if key == FLOOR and float(value) <= standing.score <= float(was):
            least = standing.score
        if key == RESULTS:
            least = max(int(was), standing.place)
        return presses(BY_KEY[key], was, least)

    def _nearest(self, values: dict[str, Scalar]) -> dict[str, Scalar] | None:
        """Return `values` with each as near as it can be while the others stay; None where one may be left out."""
        for _ in range(_ROUNDS):
            before = dict(values)
            for key in values:
                others = self._with(self.settings, {each: value for each, value in values.items() if each != key})
                if self.replay.standings(self.row, [others])[0].recalled:
                    return None
                walk = self._standings(others, BY_KEY[key], outwards(BY_KEY[key], self._was(key)))
                values[key] = next((value for value, standing in walk if standing.recalled), values[key])
            if values == before:
                return values
        return None


def _numbers(standing: Standing) -> tuple[float, int]:
    """Return what of a standing tells whether it moved."""
    return -1.0 if math.isnan(standing.score) else standing.score, standing.place


def _merit(standing: Standing) -> tuple[float, ...]:
    """Return how near a standing is to being recalled: over the gate by place over the limit, below it by score."""
    if standing.place:
        return 1.0, standing.limit - standing.place
    return 0.0, -math.inf if math.isnan(standing.score) else standing.score


def side_effects(change: Change, grade: Callable[[ChunkRef], int | None]) -> tuple[int, int]:
    """Return how many chunks that come in are marked right and how many wrong, by `grade` (None: not marked)."""
    grades: Sequence[int | None] = [grade(ref) for ref in change.comes_in]
    return sum(g is not None and g > 0 for g in grades), sum(g == 0 for g in grades)
