"""Counterfactuals find the setting or the word that would change whether a chunk is recalled.

Components, scores and gate are those of ranking, for all values together; the order ends early, as a full one cannot.
`rank` gives the same answer, one setting at a time.

Values are walked outwards on the knob's own fine grid, nearest first: rivals move too, so nothing promises a single
turning point.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest

import numpy as np

from memory_tui.core import profiles, tokens
from memory_tui.core.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings
from memory_tui.explain import why_not
from memory_tui.explain.claims import NoSingleKnob, SearchedRange
from memory_tui.explain.verdicts import NotMatched
from memory_tui.explain.why_not import WhyNot
from memory_tui.search.evidence import Evidence, Flags, Rows
from memory_tui.search.formulas import Floats
from memory_tui.search.gate import pass_gate
from memory_tui.search.rank import can_rank, mmr_tokens, rank, varied
from memory_tui.search.score import (
    Components,
    Rules,
    Similarity,
    column,
    components,
    groups,
    keyword_hits,
    mode_of,
    score,
    side_of,
)
from memory_tui.search.trace import ChunkRef, Mode


@dataclass(frozen=True, slots=True)
class Field:
    """The candidates that one profile proposes with one limit, and the components of their scores."""

    mode: Mode
    parts: Components
    keyword: Flags
    similarity: Similarity


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a row would stand: its `place` among those over the gate (0: not over it), whether that is `recalled`.

    With MMR a place is only known up to the limit; one beyond it is the limit plus one. `score` is NaN for a row that
    is no candidate.
    """

    recalled: bool
    place: int
    limit: int
    score: float


class Reranking:
    """Rankings of `evidence`; `rows` are told apart even where no setting makes them candidates."""

    def __init__(self, evidence: Evidence, rows: Sequence[int] = ()) -> None:
        self._small, kept = why_not.subset(evidence, rows)
        self._own = {row: i for i, row in enumerate(kept.tolist())}
        self._rows = kept
        self._fields: dict[tuple[str, Mode, int], Field] = {}
        self._tokens: dict[tuple[str, int], frozenset[str]] = {}

    def standings(self, row: int, settings: Sequence[Settings]) -> list[Standing]:
        """Where `row` stands under each of `settings`."""
        found: list[Standing | None] = [None] * len(settings)
        for field, numbered in self._grouped(settings):
            rules = [rule for _, rule in numbered]
            for (at, _), standing in zip(numbered, self._in(field, rules, self._own[row]), strict=True):
                found[at] = standing
        return [standing for standing in found if standing is not None]

    def recalled(self, settings: Settings) -> tuple[int, ...]:
        """The rows that are recalled, in their order."""
        return self.recalled_each([settings])[0]

    def recalled_each(self, settings: Sequence[Settings]) -> list[tuple[int, ...]]:
        """The rows that are recalled under each of `settings`, in their order."""
        found: list[tuple[int, ...]] = [()] * len(settings)
        for field, numbered in self._grouped(settings):
            batch = _Batch(field, [rules for _, rules in numbered])
            for (at, rules), order in zip(numbered, batch.order(), strict=True):
                found[at] = tuple(self._rows[field.parts.rows[order[: rules.results]]].tolist())
        return found

    def passing(self, settings: Sequence[Settings]) -> list[frozenset[int]]:
        """The rows that pass the gate under each of `settings`, whatever the limit."""
        found: list[frozenset[int]] = [frozenset()] * len(settings)
        for field, numbered in self._grouped(settings):
            passed = _Batch(field, [rules for _, rules in numbered]).passed
            for (at, _), own in zip(numbered, passed, strict=True):
                found[at] = frozenset(self._rows[field.parts.rows[np.flatnonzero(own)]].tolist())
        return found

    def _grouped(self, settings: Sequence[Settings]) -> list[tuple[Field, list[tuple[int, Rules]]]]:
        groups: dict[tuple[str, Mode, int], list[tuple[int, Rules]]] = defaultdict(list)
        for at, one in enumerate(settings):
            mode = mode_of(self._small, one)
            rules = Rules.of(one, mode)
            groups[rules.profile.name, mode, rules.limit].append((at, rules))
        return [(self._field(key, numbered[0][1]), numbered) for key, numbered in groups.items()]

    def _field(self, key: tuple[str, Mode, int], rules: Rules) -> Field:
        if key not in self._fields:
            small, mode = self._small, key[1]
            parts = components(small, side_of(small, mode, rules), mode, rules)
            self._fields[key] = Field(
                mode,
                parts,
                keyword_hits(small, parts),
                Similarity(len(parts.rows), lambda i: self._words(rules, int(parts.rows[i]))),
            )
        return self._fields[key]

    def _words(self, rules: Rules, row: int) -> frozenset[str]:
        key = f"{rules.profile.snippet} {rules.profile.exact_paths}", row
        if key not in self._tokens:
            self._tokens[key] = mmr_tokens(rules.profile, self._small.texts[self._small.refs[row].rowid])
        return self._tokens[key]

    @staticmethod
    def _in(field: Field, rules: Sequence[Rules], own: int) -> list[Standing]:
        there = np.flatnonzero(field.parts.rows == own)
        if not len(there):
            return [Standing(False, 0, rule.results, float("nan")) for rule in rules]
        at = int(there[0])
        batch = _Batch(field, rules)
        places = batch.places(at)
        return [
            Standing(0 < place <= rule.results, place, rule.results, total)
            for place, rule, total in zip(places.tolist(), rules, batch.scores[:, at].tolist(), strict=True)
        ]


class _Batch:
    """The candidates of a field under several rules: arrays of (rules, candidates)."""

    def __init__(self, field: Field, rules: Sequence[Rules]) -> None:
        self.field = field
        self.results = np.array([rule.results for rule in rules])
        self.diverse = np.array([rule.mmr and len(field.parts.rows) > 1 for rule in rules], dtype=np.bool_)
        self.balance = column([rule.mmr_lambda for rule in rules])
        self.rules = rules
        self.made = score(field.parts, rules)
        self.scores = self.made.total
        gate = pass_gate(self.scores, field.parts, rules, field.mode, lambda: field.keyword)
        self.passed, self.rescued = gate.passed, gate.rescued

    def places(self, at: int) -> Rows:
        """The place of candidate `at` among those over the gate, by each of the rules; 0 when it is not over it."""
        if self.rules[0].profile.exact_paths:
            return np.array([order.index(at) + 1 if at in order else 0 for order in self.order()])
        scores, own = self.scores, self.scores[:, at : at + 1]
        before = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) < at))
        places: Rows = 1 + np.count_nonzero(before & self.passed, axis=1)
        if self.diverse.any():
            chosen = self.chosen(at)
            for i in np.flatnonzero(self.diverse & self.passed[:, at]).tolist():
                places[i] = chosen[i].index(at) + 1 if at in chosen[i] else self.results[i] + 1
        return np.where(self.passed[:, at], places, 0)

    def order(self) -> list[list[int]]:
        """Those over the gate in their order, by each of the rules; with MMR only as many as are recalled."""
        if self.rules[0].profile.exact_paths:
            return self._grouped()
        found = self.chosen(-1) if self.diverse.any() else []
        by_score = np.argsort(np.where(self.passed, -self.scores, np.inf), axis=1, kind="stable")
        counts = np.count_nonzero(self.passed, axis=1).tolist()
        return [
            found[i] if diverse else by_score[i, : counts[i]].tolist()
            for i, diverse in enumerate(self.diverse.tolist())
        ]

    def _grouped(self) -> list[list[int]]:
        """Those over the gate under a profile with groups and rescued hits, none of whose knobs changes a score."""
        merit, total = self.made.merit[0], self.scores[0]
        order: list[int] = []
        for own in groups(self.field.parts, merit, total):
            steps = varied(self.field.parts, self.made, own, self.field.similarity, self.rules[0])
            order += own[[step.item for step in steps]].tolist() if self.rules[0].mmr else own.tolist()
        return [
            [i for i in order if passed[i] and not last[i]] + [i for i in order if last[i]]
            for passed, last in zip(self.passed, self.rescued, strict=True)
        ]

    @cached_property
    def _relevance(self) -> Floats:
        low, high = self.scores.min(axis=1, keepdims=True), self.scores.max(axis=1, keepdims=True)
        spread = high - low
        return np.where(spread > 0, (self.scores - low) / np.where(spread > 0, spread, 1.0), 1.0)

    def chosen(self, at: int) -> list[list[int]]:
        """Those over the gate in the order of MMR, by each of the rules, until `at` or the limit is reached."""
        count, width = self.scores.shape
        found: list[list[int]] = [[] for _ in range(count)]
        wanted = self.diverse & (self.passed[:, at] if at >= 0 else True)
        active = np.flatnonzero(wanted & self.passed.any(axis=1))
        most = np.minimum(self.results, np.count_nonzero(self.passed, axis=1))
        left, similarity = np.ones((count, width), dtype=np.bool_), np.zeros((count, width))
        while len(active):
            balance = self.balance[active]
            value = balance * self._relevance[active] - (1.0 - balance) * similarity[active]
            value = np.where(left[active], value, -np.inf)
            tied = value == value.max(axis=1, keepdims=True)
            picks = np.argmax(np.where(tied, self.scores[active], -np.inf), axis=1)
            left[active, picks] = False
            similarity[active] = np.maximum(similarity[active], self.field.similarity.rows(picks))
            going = []
            for i, pick in zip(active.tolist(), picks.tolist(), strict=True):
                if self.passed[i, pick]:
                    found[i].append(pick)
                if pick != at and len(found[i]) < most[i]:
                    going.append(i)
            active = np.array(going, dtype=np.int64)
        return found


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

    Knobs that have no effect on it are in neither list. `searched` are the values of each knob that were tried.
    """

    chunk: ChunkRef
    recalled: bool
    found: tuple[Flip, ...]
    not_alone: tuple[NotAlone, ...]
    searched: tuple[SearchedRange, ...] = ()

    @property
    def none(self) -> NoSingleKnob | None:
        """That no knob alone turns the verdict, where none does."""
        return None if self.found else NoSingleKnob(self.recalled, self.searched)


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
    searched: list[SearchedRange] = []
    for key in TUNE_KEYS:
        outcome = search.along(BY_KEY[key]) if key != TEXT else None
        searched += [_range_of(BY_KEY[key], evidence, settings)] if key != TEXT else []
        if isinstance(outcome, Flip):
            found.append(outcome)
        elif isinstance(outcome, NotAlone) and not search.now.recalled:
            alone.append(outcome)
        yield Flips(
            evidence.refs[row],
            search.now.recalled,
            tuple(sorted(found, key=lambda flip: flip.presses)),
            tuple(alone),
            tuple(searched),
        )


def _range_of(knob: Knob, evidence: Evidence, settings: Settings) -> SearchedRange:
    """The values of `knob` that are tried: those of its slider, the other profiles."""
    if knob.choices:
        others = (name for name in profiles.PROFILES if name != settings.word(knob.key) and can_rank(evidence, name))
        return SearchedRange(knob.key, 0, 0, 0, tuple(others))
    if isinstance(knob.default, bool):
        return SearchedRange(knob.key, 0, 1, 1)
    return SearchedRange(knob.key, knob.low, knob.high, knob.fine)


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
        self.replay = Reranking(evidence, [row])
        self.now = self.replay.standings(row, [settings])[0]
        self.before = set(self.replay.recalled(settings))

    def along(self, knob: Knob) -> Flip | NotAlone | None:
        """The nearest value of `knob` that turns the verdict; else the best there is, None when nothing moves."""
        best: tuple[tuple[float, ...], Scalar, Standing] | None = None
        moved = False
        values = outwards(knob, self.settings.values[knob.key].value)
        if knob.choices:
            # An index is cut for some of the profiles; the others have evidence of their own.
            values = (name for name in values if can_rank(self.evidence, str(name)))
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


TRIES = 8
"""Searches at most; with a remote provider each of them embeds a question."""
WANTED = 3
LONGEST_RUN = 8
"""Characters of the longest run of Chinese, Japanese or Korean that is offered as a word."""
_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Rephrased:
    """A question that recalls the chunk as number `place`: the old one with `word` added, or without `left_out`."""

    query: str
    word: str
    left_out: tuple[str, ...]
    place: int


def rephrase(
    ask: Callable[[str], Evidence],
    evidence: Evidence,
    settings: Settings,
    text: str,
    rowid: int,
    absent: tuple[str, ...] = (),
) -> tuple[Rephrased, ...]:
    """Questions that recall the chunk `rowid`, of which `text` is the text; the shortest change first.

    `ask` gathers evidence, on a worker thread. `absent` are the words that a search for all words failed on.
    Raises QueryError, ProviderError and what else `ask` raises.
    """
    shorter = _without(evidence.query, absent)
    tries = ["", *salient(text, evidence)] if shorter else salient(text, evidence)
    found: list[Rephrased] = []
    for word in tries[:TRIES]:
        query = f"{evidence.query} {word}" if word else shorter
        trace = rank(ask(query), settings)
        place = next((i for i, c in enumerate(trace.recalled, 1) if c.chunk.rowid == rowid), None)
        if place is not None:
            found.append(Rephrased(query, word, () if word else absent, place))
        if len(found) == WANTED:
            break
    return tuple(found)


def of_answer(ask: Callable[[str], Evidence], answer: WhyNot) -> tuple[Rephrased, ...]:
    """Questions that recall the chunk that speaks in `answer`; none for one that is recalled already."""
    best = answer.best
    if best is None or best.recalled:
        return ()
    gate = getattr(best.fate, "text", best.fate)
    absent = gate.absent if isinstance(gate, NotMatched) and gate.join == "AND" else ()
    return rephrase(ask, answer.evidence, answer.trace.settings, best.text, best.chunk.rowid, absent)


def salient(text: str, evidence: Evidence) -> list[str]:
    """The words of `text` that say most about it: frequent there, rare among the other candidates, not asked yet."""
    asked = set(tokens.WORD.findall(evidence.query.lower()))
    counts = Counter(word for word in _words(text) if word not in asked)
    others = Counter(word for other in evidence.texts.values() for word in set(_words(other)))
    stops = tokens.stop_words(_LANGUAGE)
    usable = [
        word for word in counts if word not in stops and (len(word) > 2 or tokens.is_cjk(word)) and not word.isdigit()
    ]
    return sorted(usable, key=lambda word: (others[word] / counts[word], -len(word), word))


def _words(text: str) -> list[str]:
    """The words of `text`; of Chinese, Japanese and Korean, which put no blanks between words, short whole runs."""
    found = []
    for word in tokens.WORD.findall(text.lower()):
        found += tokens.CJK_RUN.sub(" ", word).split()
        found += [run for run in tokens.CJK_RUN.findall(word) if 1 < len(run) <= LONGEST_RUN]
    return found


def _without(query: str, absent: tuple[str, ...]) -> str:
    """`query` without the words `absent`; empty when nothing is left, or nothing was taken away."""
    gone = set(absent)
    kept = tokens.WORD.sub(lambda found: "" if found.group() in gone else found.group(), query)
    kept = " ".join(kept.split())
    return kept if tokens.WORD.search(kept) and kept != query else ""
