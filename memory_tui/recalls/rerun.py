"""A rerun asks a logged recall again: the answer then beside the answer now.

The answer then is what the log says was delivered. It is rebuilt over the index as it is, at the logged clock, with the
logged knobs; where that does not give what was delivered, it cannot be rebuilt, and the rerun says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import SettingError
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recalls.recall_log import NOTHING, LoggedHit, RecallEntry, is_partial
from memory_tui.secrets.finder import MASK
from memory_tui.settings import TUNE_KEYS, Scalar, Settings

if TYPE_CHECKING:
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Candidate, Trace

Cause = Literal["length", "notes", "index", "not logged", "backend", "clock", "knobs"]
"""What moved a hit: the bound on delivered characters, edits of notes, another index or model, notes, index or settings
where the log does not say which these were, the index in the place of QMD, age, or settings."""
_AGENT = "the agent"
"""The origin of settings that an agent gave with its question."""
_ROUNDING = 1e-9
_QMD = "qmd"


class HitChange(Struct, frozen=True):
    """One hit then and now: its place (1-based, None where it is no hit), its score, and the causes of the change.

    A hit of QMD had no score that could be compared.
    """

    path: str
    start_line: int
    end_line: int
    place_then: int | None
    place_now: int | None
    score_then: float | None
    score_now: float | None
    causes: tuple[Cause, ...] = ()


Obstacle = Literal[
    "of QMD",
    "partial",
    "not logged",
    "other vectors",
    "other mode",
    "refused knob",
    "new index",
    "newer notes",
    "no clock",
    "arithmetic",
]
"""What keeps the answer then from being made again."""


class Rebuilt(Struct, frozen=True):
    """The logged clock and knobs give the hits that were logged, in number and score."""


class NotRebuilt(Struct, frozen=True):
    """The answer then cannot be made again, for an `obstacle`: what was `then`, and what is `now` in its place."""

    obstacle: Obstacle
    then: str = ""
    now: str = ""


class DeliveredFewer(Struct, frozen=True):
    """Of `ranked` hits `delivered` went out, because of `most_characters` for snippets (0: no such bound).

    In the room that others left, `beyond` came from behind the limit; all of them went out in so many `pieces`.
    """

    delivered: int
    ranked: int
    most_characters: int
    beyond: int = 0
    pieces: int = 0


class AnswersNow(Struct, frozen=True):
    """The answer now has the `same` hits in the same order, as far as they were delivered, or not.

    Of the `then` hits that the log has of the answer then, `kept` are in the ranking now, beside `others`, with
    `causes` for each that has another place. Hits are `kept_back` now where nothing holds what was asked. It is the
    answer of the index; `after_qmd` tells that QMD gave the one then.
    """

    same: bool
    then: int
    kept: int
    others: int
    causes: tuple[Cause, ...] = ()
    after_qmd: bool = False
    kept_back: bool = False


class LevelNow(Struct, frozen=True):
    """The level of the answer `then`, as it was logged, and `now`; empty where none was told or logged."""

    then: str
    now: str


class DeliveredAs(Struct, frozen=True):
    """By the log the line at `path` went out with the hit at `place`, `cut` short or whole; None: it did not.

    The chunk of that hit ranked as number `rank`; 0 where the log does not say so.
    """

    path: str
    line: int | None
    place: int | None
    cut: bool = False
    rank: int = 0


class GotThen(Struct, frozen=True):
    """Who asked got so many `hits`; of the question a secret is `masked`."""

    client: str
    hits: int
    masked: bool


RecallClaim = Rebuilt | NotRebuilt | DeliveredFewer | LevelNow | AnswersNow | DeliveredAs | GotThen | HitChange
"""Everything that is said of a logged recall."""


class Rerun(Struct, frozen=True):
    """`entry` asked again over the index as it is.

    `evidence`, `trace` and `settings` are those of then as far as the index can give them: the logged clock, the logged
    knobs. They are what was delivered where it was `remade`. `now` is the answer that the agent would get at this
    moment. `changes` are in the order of now, then by place then.
    """

    entry: RecallEntry
    evidence: Evidence
    trace: Trace
    settings: Settings
    now: Trace
    changes: tuple[HitChange, ...]
    index_changed: bool
    remade: Rebuilt | NotRebuilt

    @property
    def same(self) -> bool:
        """Whether the same hits would come in the same order, as far as they were delivered."""
        if bool(self.entry.hits) != bool(self.now.recalled and not self.keeps_back):
            return False
        # What age moved, settings may have moved back; what was only kept back then has not moved.
        return all(change.place_then == change.place_now or set(change.causes) <= {"length"} for change in self.changes)

    @property
    def keeps_back(self) -> bool:
        """Whether the agent would get none of the hits now, because nothing holds what was asked.

        An agent that got hits at that level had asked for the nearest.
        """
        asked_nearest = self.entry.level == NOTHING and bool(self.entry.hits)
        return level_told(self.now) == NOTHING and not asked_nearest

    @property
    def claims(self) -> tuple[RecallClaim, ...]:
        """Everything that is said of the whole answer, and of each hit."""
        entry = self.entry
        came = {hit.rank or place for place, hit in enumerate(entry.hits, 1)}
        within = sum(place <= entry.ranked for place in came)
        fewer = DeliveredFewer(within, entry.ranked, entry.most_characters, len(came) - within, len(entry.hits))
        bounded = (fewer,) if entry.ranked > fewer.delivered else ()
        level = LevelNow(entry.level, level_told(self.now))
        levels = (level,) if level.then or level.now else ()
        return (*levels, *bounded, self.remade, self._answers_now(), *self.changes)

    def _answers_now(self) -> AnswersNow:
        """What became of the hits of then."""
        old = [change for change in self.changes if change.place_then is not None]
        moved = [set(change.causes) for change in self.changes if change.place_then != change.place_now]
        causes = tuple(cause for cause in get_args(Cause) if moved and all(cause in each for each in moved))
        still, others = sum(change.place_now is not None for change in old), len(self.changes) - len(old)
        of_qmd = self.entry.backend == _QMD
        return AnswersNow(self.same, len(old), still, others, causes, of_qmd, self.keeps_back)


def level_told(trace: Trace) -> str:
    """The level that an agent is told with an answer; empty where it is told none."""
    return trace.level.level if trace.level is not None and trace.recalled else ""


def with_trace(
    entry: RecallEntry, trace: Trace, delivered: Sequence[tuple[Candidate, int, int]], *, is_cut: bool = False
) -> RecallEntry:
    """`entry` with what is to be logged of `trace`: what was searched, at which clock, by which knobs, and the hits.

    The candidates `delivered` went out, each with its first and last line, the last of them shortened where it
    `is_cut`.
    """
    hits = tuple(
        LoggedHit(
            hit.chunk.path,
            hit.chunk.start_line,
            hit.chunk.end_line,
            hit.score,
            hit.vector,
            hit.text,
            hit.chunk.id,
            is_cut and count == len(delivered),
            getattr(hit.verdict, "place", 0),
            first,
            last,
        )
        for count, (hit, first, last) in enumerate(delivered, 1)
    )
    values = trace.settings.values
    return replace(
        entry,
        settings={key: values[key].value for key in TUNE_KEYS},
        requested={key: values[key].value for key in TUNE_KEYS if values[key].origin == _AGENT},
        provider=trace.provider,
        model=trace.model,
        mode=trace.mode,
        generation=trace.generation,
        index=trace.uuid,
        now=trace.now,
        ranked=len(trace.recalled),
        hits=hits,
        level=level_told(trace),
    )


def settings_of(entry: RecallEntry, settings: Settings) -> Settings:
    """`settings` with the knobs that held when `entry` was logged; those that are not accepted any more stay."""
    return _with(settings, entry.settings)


def _with(settings: Settings, logged: Mapping[str, Scalar]) -> Settings:
    for key in TUNE_KEYS:
        if key in logged:
            try:
                settings = settings.set(key, logged[key], "the recall log")
            except SettingError:
                continue
    return settings


def clock_of(entry: RecallEntry) -> float:
    """The moment that ages were counted from (epoch seconds); older logs have only that of the question."""
    return entry.now or entry.at


def replay(entry: RecallEntry, settings: Settings, gather: Callable[..., Evidence]) -> Rerun:
    """Ask again what `entry` asked, over the index as it is now: as it was then, at the clock of now, as now.

    `gather` takes the query, a source, `by_words`, and the clock as `now`. Knobs that were not logged are those of
    `settings`. Raises QueryError, IndexUnavailable; ValueError for what was no search.
    """
    from memory_tui.search.rank import rank

    if entry.tool != SEARCH:
        raise ValueError(entry.tool)
    logged = settings_of(entry, settings)
    source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
    then = gather(entry.query, source=source, by_words=entry.by_words, now=clock_of(entry))
    later = gather(entry.query, source=source, by_words=entry.by_words)
    rebuilt, aged, now = rank(then, logged), rank(later, logged), rank(later, _with(settings, entry.requested))
    remade = _why_not(entry, rebuilt, logged)
    return Rerun(
        entry,
        then,
        rebuilt,
        logged,
        now,
        _changes(entry, rebuilt, aged, now, is_rebuilt=isinstance(remade, Rebuilt)),
        entry.backend != _QMD and (_another_index(entry, rebuilt) or entry.generation not in (0, rebuilt.generation)),
        remade,
    )


def _is_rebuilt(entry: RecallEntry, trace: Trace) -> bool:
    """Whether `trace` recalls what was delivered: the same chunks with the same scores, of as many hits."""
    if len(trace.recalled) != (entry.ranked or len(entry.hits)):
        return False
    if entry.ranked and not entry.hits and (_another_index(entry, trace) or entry.generation != trace.generation):
        # No hit that was logged tells whether these were the hits then.
        return False
    return all(_is_at(hit, hit.rank or place, trace) for place, hit in enumerate(entry.hits, 1))


def _is_at(hit: LoggedHit, place: int, trace: Trace) -> bool:
    """Whether `hit` stands at `place` of the ranking, with the score that was logged; behind the limit too."""
    if place <= len(trace.recalled):
        now: Candidate | None = trace.recalled[place - 1]
    else:
        now = next((miss for miss in trace.lost if getattr(miss.verdict, "place", 0) == place), None)
    return (
        now is not None
        and (hit.path, hit.start_line, hit.end_line) == (now.chunk.path, now.chunk.start_line, now.chunk.end_line)
        and hit.chunk in ("", now.chunk.id)
        and abs(hit.score - now.score) <= _ROUNDING
    )


def _another_index(entry: RecallEntry, trace: Trace) -> bool:
    """Whether the vectors, or the rows, are those of another index than the logged one; what is not logged is not."""
    logged = entry.provider, entry.model, entry.mode, entry.index
    return any(
        was and was != now
        for was, now in zip(logged, (trace.provider, trace.model, trace.mode, trace.uuid), strict=True)
    )


def _is_whole(entry: RecallEntry) -> bool:
    """Whether the log says what was searched, and by which knobs; logs of older releases, and failures, do not."""
    return bool(entry.provider and entry.mode and entry.generation and entry.settings)


def _why_not(entry: RecallEntry, trace: Trace, settings: Settings) -> Rebuilt | NotRebuilt:
    """Why the answer then cannot be rebuilt, where it cannot."""
    if entry.backend == _QMD:
        return NotRebuilt("of QMD")
    if _is_rebuilt(entry, trace):
        return Rebuilt()
    if is_partial(entry.query):
        return NotRebuilt("partial")
    if not _is_whole(entry):
        return NotRebuilt("not logged")
    if (entry.provider, entry.model) != (trace.provider, trace.model):
        return NotRebuilt("other vectors", f"{entry.provider} {entry.model}", f"{trace.provider} {trace.model}")
    if entry.mode != trace.mode:
        return NotRebuilt("other mode", entry.mode, trace.mode)
    if refused := [key for key, value in entry.settings.items() if settings.values[key].value != value]:
        key = refused[0]
        return NotRebuilt("refused knob", f"{key} {entry.settings[key]}", f"{key} {settings.values[key].value}")
    if _another_index(entry, trace):
        return NotRebuilt("new index", entry.index, trace.uuid)
    if trace.generation != entry.generation:
        return NotRebuilt("newer notes", str(entry.generation), str(trace.generation))
    return NotRebuilt("arithmetic" if entry.now else "no clock")


def _changes(entry: RecallEntry, rebuilt: Trace, aged: Trace, now: Trace, *, is_rebuilt: bool) -> tuple[HitChange, ...]:
    """Each hit of then or now, with the steps from then to now at which its place changed."""
    of_qmd = entry.backend == _QMD
    # Of several passages of one chunk the first is that of its hit; one from behind the limit was no hit.
    old: dict[tuple[str, int, int], tuple[int, float | None]] = {}
    for place, hit in enumerate(entry.hits, 1):
        if of_qmd or hit.rank <= (entry.ranked or hit.rank):
            then = (place, None) if of_qmd else (hit.rank or place, hit.score)
            old.setdefault((hit.path, hit.start_line, hit.end_line), then)
    steps = [_places(trace.recalled) for trace in (rebuilt, aged, now)]
    before = _first_cause(entry, rebuilt)
    # What was kept back then has no place in the log: nobody knows whether it was ranked.
    unknown = entry.ranked > len(old) and not of_qmd
    not_delivered: Cause = "length" if is_rebuilt else "not logged" if unknown else before
    none: tuple[None, None] = (None, None)
    changes = []
    for key in dict.fromkeys((*steps[-1], *old)):
        first, last = old.get(key, none), steps[-1].get(key, none)
        places = [first[0], *(step.get(key, none)[0] for step in steps)]
        came_now_alone = places[0] is None and places[1] is not None
        causes = tuple(_causes(places, not_delivered if came_now_alone else before))
        changes.append(HitChange(*key, first[0], last[0], first[1], last[1], causes))
    return tuple(changes)


def _first_cause(entry: RecallEntry, rebuilt: Trace) -> Cause:
    """What moves a hit between what was delivered and what the index gives now at the logged clock and knobs."""
    if entry.backend == _QMD:
        return "backend"
    if _another_index(entry, rebuilt):
        return "index"
    return "notes" if _is_whole(entry) else "not logged"


def _causes(places: Sequence[int | None], before: Cause) -> Iterator[Cause]:
    """The steps at which the place of a hit changed."""
    for cause, was, became in zip((before, "clock", "knobs"), places, places[1:], strict=False):
        if was != became:
            yield cause


def _places(hits: Sequence[Candidate]) -> dict[tuple[str, int, int], tuple[int, float]]:
    return {
        (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line): (place, hit.score)
        for place, hit in enumerate(hits, 1)
    }


def as_delivered(rerun_of: Rerun, answer: WhyNot) -> WhyNot:
    """`answer`, made of the evidence of `found`, with what the log says was delivered of the line.

    Where the answer then was rebuilt, a line that was ranked and did not go out is told so, and one that went out is
    recalled, wherever its chunk ranked; where it was not, the line is said to have been delivered or not as it was
    logged, and the rest is about the index as it is.
    """
    from memory_tui.notices import notice
    from memory_tui.search.trace import Recalled

    entry, fate = rerun_of.entry, answer.fate
    place = delivered_line(entry, answer.place.path, answer.place.line).place
    if isinstance(rerun_of.remade, Rebuilt) and isinstance(fate, Recalled) and place is None:
        delivered, most = len(entry.hits), entry.most_characters
        fate = notice("not_delivered", place=fate.place, delivered=delivered, most_characters=most)
        return replace(answer, fate=fate)
    if isinstance(rerun_of.remade, Rebuilt) and not isinstance(fate, Recalled) and place is not None:
        return replace(answer, fate=Recalled(place), without=None)
    return answer


def delivered_line(entry: RecallEntry, path: str, line: int | None) -> DeliveredAs:
    """With which of the delivered hits `line` of a note (None: any line) went out first, by the log."""
    for place, hit in enumerate(entry.hits, 1):
        first, last = hit.lines
        if hit.path == path and (line is None or first <= line <= last):
            return DeliveredAs(path, line, place, hit.cut, hit.rank)
    return DeliveredAs(path, line, None)


def got_then(entry: RecallEntry) -> GotThen:
    """What who asked `entry` got."""
    return GotThen(entry.client, len(entry.hits), MASK in entry.query)
