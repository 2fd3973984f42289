"""Counterfactuals: the settings, and the words of a question, that would change whether a chunk is recalled.

Values are walked outwards on the knob's own fine grid, nearest first: rivals move too, so nothing promises a single
turning point.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, islice

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import tokens
from memory_tui.cancel import Stop
from memory_tui.config.settings import BY_KEY, PROFILES, TUNE_KEYS, Knob, Scalar, Settings
from memory_tui.explain.why_not import WhyNot, lacking, row_of, sends
from memory_tui.search.rank import Reranking, Standing, Values, can_rank, rank
from memory_tui.search.retrieve import MAX_QUERY, Evidence
from memory_tui.search.score import Rules, side_of, tuned
from memory_tui.search.trace import ChunkRef
from memory_tui.sentences import Notice, notice

WEIGHT, TEXT = "query.hybrid.vectorWeight", "query.hybrid.textWeight"
"""The weights are one knob: they add up to 1, as the tune strip turns them."""
FLOOR, RESULTS = "query.minScore", "query.maxResults"
ORIGIN = "what would change it"
_BATCH = 16, 256
"""Values of a walk that are tried together, at first and at most: most walks are short."""
FINE_STEPS, COARSER = 400, 10
"""Of a wide knob so many fine steps are tried, then every so many."""
POINTS = 5
"""Values of a numeric knob that are tried together with those of another, both ends among them."""
_ROUNDS, _NEARED, SETS = 3, 6, 3
"""How often each knob of a set is brought nearer; how many sets are, and how many of those are given."""
WHOLE = ("query.hybrid.enabled", "profile")
"""Knobs that replace the whole way of ranking: they come last, however little a chunk needs."""

WithProfile = Callable[[str], Settings]
Ask = Callable[[str], Evidence]


class Turn(Struct, frozen=True, rename={"key": "knob", "was": "from", "value": "to"}):
    """One knob of a change, from `was` to `value`, the nearest that does while the other turns stay."""

    key: str
    was: Scalar
    value: Scalar


class Change(Struct, frozen=True):
    """Turns of one knob, or of several of which none may be left out, that turn the verdict on a chunk.

    `changes` are the settings to change, `settings` all of them after it; `place` is the chunk's then, None when it is
    lost. `presses` counts the steps of the knobs (a switch is one). `comes_in` and `drops_out` are the other chunks
    whose verdict turns.
    """

    turns: tuple[Turn, ...]
    changes: Values
    settings: Settings
    place: int | None
    presses: float
    comes_in: tuple[ChunkRef, ...]
    drops_out: tuple[ChunkRef, ...]

    @property
    def harm(self) -> int:
        """Return how many other hits move."""
        return len(self.comes_in) + len(self.drops_out)


class Flips(Struct, frozen=True):
    """What turns the verdict on `chunk`, least harm first.

    `sets` recall it by several changes: where no knob does alone, or with fewer steps or less harm than any. `no_pair`
    tells that no pair that was tried does. `without` is a knob that sends its passage without the line asked for.
    `rephrased` are questions that recall it; else `no_words` tells which were tried, None where there was none.
    """

    chunk: ChunkRef
    recalled: bool
    singles: tuple[Change, ...]
    sets: tuple[Change, ...] = ()
    no_pair: Notice | None = None
    without: Change | None = None
    rephrased: tuple[Rephrased, ...] = ()
    no_words: Notice | None = None

    @property
    def none(self) -> Notice | None:
        """Return that no knob alone turns the verdict, where none does."""
        return None if self.singles else notice("no_single_knob", recalled=self.recalled)


# --- the values of a knob -------------------------------------------------------------------------------------------


def turned(values: Values) -> dict[str, Scalar]:
    """Return the settings that change when knobs are turned to `values`; a weight takes its partner along."""
    return {**values, TEXT: round(1 - float(values[WEIGHT]), 6)} if WEIGHT in values else dict(values)


@cache
def grid(key: str) -> tuple[Scalar, ...]:
    """Return the values of a numeric knob that are tried, rising: FINE_STEPS fine steps, every COARSER-th, the last."""
    knob = BY_KEY[key]
    first, last = round(knob.low / knob.fine), round(knob.high / knob.fine)
    middle = min(last, first + FINE_STEPS - 1)
    # Once each, in order: the last may be among the fine ones.
    steps = dict.fromkeys((*range(first, middle + 1), *range(middle + COARSER, last, COARSER), last))
    return tuple(round(i * knob.fine, 6) if isinstance(knob.default, float) else int(i * knob.fine) for i in steps)


@lru_cache(100)
def outwards(key: str, value: Scalar) -> list[Scalar]:
    """Return every other value of a switch or a number, nearest to `value` first; of two as near the higher first."""
    if isinstance(value, bool):
        return [not value]
    # A distance of 0, which is false, leaves out the value itself. Rounding absorbs the error of decimal fractions.
    distance = {other: round(abs(float(other) - float(value)), 9) for other in grid(key)}
    return sorted(filter(distance.get, distance), key=lambda other: (distance[other], float(other) < float(value)))


def spread(key: str, now: Scalar, count: int) -> list[Scalar]:
    """Return `count` values of a knob over all of its grid, both ends among them; of a switch the other one."""
    if isinstance(now, bool):
        return [not now]
    values = grid(key)
    chosen = (values[round(at * (len(values) - 1) / (count - 1))] for at in range(count))
    return [value for value in dict.fromkeys(chosen) if value != now]


def points(settings: Settings) -> list[dict[str, Scalar]]:
    """Return the knobs that count, each at its switch or at some values of its grid, to be tried with one another."""
    ignored = settings.profile.ignores
    keys = [key for key in TUNE_KEYS if key != TEXT and key not in ignored and not BY_KEY[key].choices]
    return [{key: value} for key in keys for value in spread(key, settings.values[key].value, POINTS)]


def presses(knob: Knob, was: Scalar, value: Scalar) -> float:
    """Return how many steps of `knob` are between two of its values."""
    if isinstance(value, str) or isinstance(was, str):
        # Another profile changes most of what is on screen, so whatever one knob can do comes first.
        return math.inf
    return 1.0 if isinstance(value, bool) else abs(value - was) / knob.step


# --- the search -----------------------------------------------------------------------------------------------------


def flips(
    evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, stop: Stop | None = None
) -> Flips:
    """Return every single turn of a knob that recalls the chunk at `row`, or loses it when it is recalled; then sets.

    `with_profile` gives the settings under another profile. Raises Cancelled where `stop` is set.
    """
    search = _Search(evidence, settings, row, with_profile, stop or Stop())
    singles = [change for key in TUNE_KEYS if key != TEXT and (change := search.along(BY_KEY[key])) is not None]
    # Other hits that move first, then steps; a whole other ranking last.
    singles.sort(key=lambda change: (change.turns[0].key in WHOLE, change.harm, change.presses))
    result = Flips(evidence.refs[row], search.recalled, tuple(singles))
    if result.recalled:
        return result
    # A change of the whole ranking is not compared with sets, which leave it as it is.
    sets, no_pair = search.sets([change for change in singles if not BY_KEY[change.turns[0].key].choices])
    return replace(result, sets=sets, no_pair=no_pair)


def that_send(changes: Flips, evidence: Evidence, line: int) -> Flips:
    """Return those of `changes` after which an agent gets `line` of the chunk, and the first `without` it."""

    # A change that drops the chunk has no place, and nothing is sent after it.
    def is_true(change: Change, line: int | None = line) -> bool:
        """Return whether a change sends `line`, or any line of the chunk without one."""
        return not change.place or sends(rank(evidence, change.settings), changes.chunk.rowid, line)

    singles, sets = (tuple(filter(is_true, each)) for each in (changes.singles, changes.sets))
    without = next((each for each in changes.singles if each not in singles and is_true(each, None)), None)
    return replace(changes, singles=singles, sets=sets, without=without)


class _Search:
    """One chunk under one evidence, and what is recalled now."""

    def __init__(self, evidence: Evidence, settings: Settings, row: int, with_profile: WithProfile, stop: Stop) -> None:
        self.evidence, self.settings, self.row, self.with_profile = evidence, settings, row, with_profile
        self.stop = stop
        self.replay = Reranking(evidence)
        # The rows that are recalled under `settings`.
        (self.before,) = self.replay.recalled([tuned(settings)])
        self.recalled = row in self.before
        # The nearest value of a knob, by its key and the values of the other knobs that are turned with it. The last
        # round of a set asks again what the one before it did.
        self.nearest: dict[tuple[str, frozenset[tuple[str, Scalar]]], Scalar] = {}

    def along(self, knob: Knob) -> Change | None:
        """Return the change to the nearest value of `knob` that turns the verdict; None where none does."""
        was = self._was(knob.key)
        # An index is cut for some of the profiles; the others have evidence of their own.
        profiles = (name for name in PROFILES if name != was and can_rank(self.evidence, name))
        values = profiles if knob.choices else outwards(knob.key, was)
        # No other knob is turned.
        value = next(self._turning(knob.key, values, {}, recalled=not self.recalled), None)
        return self._change({knob.key: value}) if value is not None else None

    def sets(self, singles: Sequence[Change]) -> tuple[tuple[Change, ...], Notice | None]:
        """Return sets of turns that recall the chunk: those that beat each of `singles`, fewest steps first, then harm.

        Without one, that no pair does.
        """
        tried = points(self.settings)
        # Turns that recall the chunk alone need no second one.
        rest = [values for values, standing in zip(tried, self._standings(tried), strict=True) if not standing.recalled]
        pairs = [first | second for first, second in combinations(rest, 2) if first.keys() != second.keys()]
        recalling, no_pair = self._that_recall(pairs), None
        if not recalling and not singles:
            no_pair = notice("no_pair")
            # The gate and the limit as wide as they go, with one knob more.
            wide = {FLOOR: BY_KEY[FLOOR].low, RESULTS: int(BY_KEY[RESULTS].high)}
            recalling = self._that_recall([wide | values for values in rest if not wide.keys() & values.keys()])
        by_knobs: dict[frozenset[str], Values] = {}
        for values, _ in sorted(recalling, key=lambda recall: self._least(*recall)):
            by_knobs.setdefault(frozenset(values), values)
        # `_nearest` brings the first knob nearest at the cost of the others: so both orders are tried.
        sets = list(by_knobs.values())[:_NEARED]
        orders = [order for values in sets for order in (values, dict(reversed(list(values.items()))))]
        changes = map(self._change, filter(None, map(self._nearest, orders)))
        better = list({change.turns: change for change in changes}.values())
        for single in singles:
            better = [change for change in better if change.presses < single.presses or change.harm < single.harm]
        return tuple(sorted(better, key=lambda change: (change.presses, change.harm))[:SETS]), no_pair

    def _was(self, key: str) -> Scalar:
        """Return the value that a knob has now."""
        return self.settings.values[key].value

    def _with(self, values: Values) -> Settings:
        """Return the settings with `values`; another profile brings its own values for all other knobs."""
        if "profile" in values:
            return self.with_profile(str(values["profile"]))
        return self.settings.update(turned(values), ORIGIN)

    def _presses(self, values: Values) -> float:
        """Return how many steps all knobs are turned by `values`."""
        return sum(presses(BY_KEY[key], self._was(key), value) for key, value in values.items())

    def _standings(self, tried: Sequence[Values]) -> list[Standing]:
        """Return where the chunk stands under each of `tried`. Raises Cancelled."""
        self.stop.check()
        base = tuned(self.settings)
        each = [tuned(self._with(values)) if "profile" in values else {**base, **turned(values)} for values in tried]
        return self.replay.standings(self.row, each)

    def _that_recall(self, tried: Sequence[Values]) -> list[tuple[Values, Standing]]:
        """Return those of `tried` that recall the chunk, with where it stands."""
        standings = self._standings(tried)
        return [(each, standing) for each, standing in zip(tried, standings, strict=True) if standing.recalled]

    def _least(self, values: Values, standing: Standing) -> float:
        """Return how many steps `values` are away, fewer where the standing tells that nearer ones will do."""
        # A limit that reaches to its place does, and a floor that is no higher than its score.
        least = dict(values)
        if RESULTS in values:
            least[RESULTS] = max(int(self._was(RESULTS)), standing.place)
        if FLOOR in values:
            least[FLOOR] = max(float(values[FLOOR]), min(standing.score, float(self._was(FLOOR))))
        return self._presses(least)

    def _turning(self, key: str, values: Iterable[Scalar], others: Values, *, recalled: bool) -> Iterator[Scalar]:
        """Yield those of `values` of a knob, with `others` turned too, at which the chunk is `recalled`, or is not.

        They are tried in batches that grow, because most walks end soon.
        """
        tries, (size, most) = iter(values), _BATCH
        while batch := list(islice(tries, size)):
            standings = self._standings([{**others, key: value} for value in batch])
            yield from (value for value, at in zip(batch, standings, strict=True) if at.recalled == recalled)
            size = min(most, 2 * size)

    def _change(self, values: Values) -> Change:
        """Return what turning the knobs to `values` does to the chunk and to all other hits."""
        settings, refs, texts = self._with(values), self.evidence.refs, self.evidence.texts
        (after,) = self.replay.recalled([tuned(settings)])
        return Change(
            turns=tuple(Turn(key, self._was(key), value) for key, value in sorted(values.items())),
            changes=turned(values),
            settings=settings,
            place=after.index(self.row) + 1 if self.row in after else None,
            presses=self._presses(values),
            comes_in=tuple(refs[row].shown(texts) for row in after if row not in {*self.before, self.row}),
            drops_out=tuple(refs[row].shown(texts) for row in sorted({*self.before} - {*after, self.row})),
        )

    def _nearest(self, values: Values) -> Values | None:
        """Return `values` with each as near as it can be while the others stay; None where one may be left out."""
        for _ in range(_ROUNDS):
            before = values
            for key in values:
                others = {name: value for name, value in values.items() if name != key}
                # The others recall the chunk without this knob.
                if self._that_recall([others]):
                    return None
                if (state := (key, frozenset(others.items()))) not in self.nearest:
                    self.nearest[state] = next(self._turning(key, outwards(key, self._was(key)), others, recalled=True))
                values = {**values, key: self.nearest[state]}
            if values == before:
                return values
        return None


# --- other words of a question ---------------------------------------------------------------------------------------

TRIES, ENOUGH = 8, 3
"""Searches at most, and questions that suffice; with a remote provider each search embeds a question."""
LONGEST_RUN = 8
"""Characters of the longest run of Chinese, Japanese or Korean that is offered as a word."""


class Rephrased(Struct, frozen=True):
    """A question that recalls the chunk as number `place`: the old one with `word` added, or without `left_out`.

    The word stands on line `line` of the note, 0 for none.
    """

    query: str
    word: str
    left_out: tuple[str, ...]
    place: int
    line: int = 0


def rephrase(
    ask: Ask, evidence: Evidence, settings: Settings, text: str, chunk: ChunkRef, line: int | None, *, shorten: bool
) -> tuple[tuple[Rephrased, ...], Notice | None]:
    """Return questions that recall `chunk`, whose text is `text`, the shortest change first; else what was tried.

    Words of `line` are tried before others of the chunk; to `shorten`, the question without the words that the chunk
    lacks is tried, where all are needed. `ask` gathers evidence, on a worker thread. Raises QueryError, ProviderError
    and what else `ask` raises.
    """
    plan, asked = side_of(evidence, Rules.of(evidence, tuned(settings))).plan, evidence.question.query
    # Only where all words are needed can leaving some out help.
    lacks = tokens.as_asked(lacking(plan, text), asked) if shorten and " AND " in plan.fts_query else ()
    shorter = " ".join(tokens.WORD.sub(lambda word: "" if word[0] in lacks else word[0], asked).split())
    if not tokens.WORD.search(shorter) or shorter == asked:
        shorter = ""
    by_line = {number: _words(each) for number, each in enumerate(text.split("\n"), chunk.start_line)}
    words = _salient(text, evidence)
    # Words of the line come first, but leave half of the tries to other words.
    of_line = [word for word in words if line and word in by_line.get(line, ())][: TRIES // 2]
    # The empty word stands for the shorter question.
    tries = [*([""] if shorter else []), *dict.fromkeys(of_line + words)][:TRIES]
    results: list[Rephrased] = []
    for word in tries:
        query = f"{asked} {word}" if word else shorter
        after = rank(ask(query), settings)
        if sends(after, chunk.rowid, line):
            # The lines on which the word stands, that which was asked for before others; none for the empty word.
            places = [line] if line and word in of_line else [at for at, there in by_line.items() if word in there]
            place = [hit.chunk.rowid for hit in after.recalled].index(chunk.rowid) + 1
            results.append(Rephrased(query, word, () if word else lacks, place, next(iter(places), 0)))
        if len(results) == ENOUGH:
            break
    none = None if results or not tries else notice("no_rephrasing", words=tuple(filter(None, tries)), shorter=shorter)
    return tuple(results), none


def remedies(answer: WhyNot, with_profile: WithProfile, ask: Ask) -> Flips | None:
    """Return the settings and the words that would change what `answer` says, no words for what is recalled.

    None where no chunk speaks. Raises QueryError, ProviderError and what else `ask` raises.
    """
    evidence, settings, best, line = answer.trace.evidence, answer.trace.settings, answer.best, answer.place.line
    row = row_of(evidence, best.chunk.rowid) if best is not None else None
    if best is None or row is None:
        return None
    changes = flips(evidence, settings, row, with_profile)
    changes = that_send(changes, evidence, line) if line else changes
    if answer.recalled:
        return changes
    rephrased, no_words = rephrase(ask, evidence, settings, best.text, best.chunk, line, shorten=not best.proposed)
    return replace(changes, rephrased=rephrased, no_words=no_words)


def _salient(text: str, evidence: Evidence) -> list[str]:
    """Return the words of `text` that say most of it: frequent there, rare among other candidates, not asked yet."""
    counts, query = Counter(_words(text)), evidence.question.query
    others = Counter(word for other in evidence.texts.values() for word in set(_words(other)))
    useless = {*tokens.WORD.findall(query.lower()), *tokens.stop_words("en")}
    # Longer than MAX_QUERY no question may get.
    room = MAX_QUERY - len(query)
    usable = [word for word in counts if word not in useless and not word.isdigit() and len(word) < room]
    usable = [word for word in usable if len(word) > 2 or tokens.is_cjk(word)]
    return sorted(usable, key=lambda word: (others[word] / counts[word], -len(word), word))


def _words(text: str) -> list[str]:
    """Return the words of `text`; of Chinese, Japanese and Korean, which put no blanks between, short whole runs."""
    words = []
    for word in tokens.WORD.findall(text.lower()):
        words += tokens.CJK_RUN.sub(" ", word).split()
        words += [run for run in tokens.CJK_RUN.findall(word) if 1 < len(run) <= LONGEST_RUN]
    return words
