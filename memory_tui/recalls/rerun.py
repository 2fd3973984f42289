"""Ask a logged question again: what was delivered then beside what would come now, in words and as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.errors import SettingError
from memory_tui.explain.trace_json import answer, plain
from memory_tui.formatting import one_line, plural
from memory_tui.openclaw.prompt import GET, SEARCH, citation
from memory_tui.recalls.recall_log import BY_LEVEL, IN_PART, LOG_RECALLS, NOTHING, Log, LoggedHit, RecallEntry, moment
from memory_tui.search.excerpts import Excerpt, excerpts
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import ChunkRef, Trace
from memory_tui.sentences import ordinal

_AGENT = "the agent"
"""The origin of settings that an agent gave with its question."""
_QUERY_CELLS = 60
_KNOBS = {"profile": "", "query.maxResults": "results ", "query.minScore": "minScore "}


class HitChange(Struct, frozen=True):
    """One hit then and now: its place (1-based, None where it is no hit) and its score; hits of QMD have none then.

    `lines` of its chunk went out; of one that was not delivered they are all that it has.
    """

    path: str
    start_line: int
    end_line: int
    place_then: int | None
    place_now: int | None
    score_then: float | None
    score_now: float | None
    lines: tuple[int, int]


class Rerun(Struct, frozen=True):
    """`entry` asked again over the index as it is, with the knobs of now and those that the agent gave.

    `changes` are in the order of now, then by place then; `since` says what is known to be different.
    """

    entry: RecallEntry
    evidence: Evidence
    settings: Settings
    now: Trace
    changes: tuple[HitChange, ...]
    since: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether the hits that were delivered would come again in the same order, and no others."""
        if not self.entry.hits or self.keeps_back:
            return not self.entry.hits and (self.keeps_back or not self.now.recalled)
        # What was kept back then, because snippets were bounded, has not moved.
        old = [change for change in self.changes if self.entry.ranked <= len(self.entry.hits) or change.place_then]
        return all(change.place_then == change.place_now for change in old)

    @property
    def keeps_back(self) -> bool:
        """Whether the agent would get none of the hits now, because nothing holds what was asked.

        An agent that got hits at that level had asked for the nearest.
        """
        asked_nearest = self.entry.level == NOTHING and bool(self.entry.hits)
        return level_of(self.now) == NOTHING and not asked_nearest


def level_of(trace: Trace) -> str:
    """Return the level that an agent is told with an answer, as it is logged; empty where it is told none."""
    level = trace.level if trace.recalled else None
    return "" if level is None else IN_PART if level.in_part else level.level


def with_trace(entry: RecallEntry, trace: Trace, delivered: Sequence[Excerpt], *, is_cut: bool = False) -> RecallEntry:
    """Return `entry` with what is to be logged of `trace`: what was searched, at which clock, by which knobs, the hits.

    The parts `delivered` went out, the last of them shortened where it `is_cut`.
    """
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
        hits=tuple(_logged(part, is_cut=is_cut and at == len(delivered)) for at, part in enumerate(delivered, 1)),
        level=level_of(trace),
    )


def _logged(part: Excerpt, *, is_cut: bool) -> LoggedHit:
    chunk, scores = part.hit.chunk, (part.hit.score, part.hit.vector, part.hit.text)
    place = getattr(part.hit.verdict, "place", 0)
    return LoggedHit(chunk.path, chunk.start_line, chunk.end_line, *scores, chunk.id, is_cut, place, *part.lines)


def settings_of(logged: Mapping[str, Scalar], settings: Settings) -> Settings:
    """Return `settings` with the knobs that were `logged`; those that are not accepted any more stay as they are."""
    for key in TUNE_KEYS:
        if key in logged:
            try:
                settings = settings.set(key, logged[key], "the recall log")
            except SettingError:
                continue
    return settings


def replay(entry: RecallEntry, settings: Settings, gather: Callable[..., Evidence]) -> Rerun:
    """Ask again what `entry` asked, over the index as it is; `gather` takes the query, `source` and `by_words`.

    Raises QueryError, IndexUnavailable; ValueError for what was no search.
    """
    if entry.tool != SEARCH:
        raise ValueError(entry.tool)
    source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
    evidence = gather(entry.query, source=source, by_words=entry.by_words)
    settings = settings_of(entry.requested, settings)
    now = rank(evidence, settings)
    return Rerun(entry, evidence, settings, now, _changes(entry, now), tuple(_since(entry, now)))


def _key(value: LoggedHit | ChunkRef) -> tuple[str, int, int]:
    return value.path, value.start_line, value.end_line


def _changes(entry: RecallEntry, now: Trace) -> tuple[HitChange, ...]:
    """Return the hits of then and now, with their place and score in either; None where a hit was not."""
    old: dict[tuple[str, int, int], tuple[int, float | None]] = {}
    new = {_key(hit.chunk): (place, hit.score) for place, hit in enumerate(now.recalled, 1)}
    lines = {_key(hit.chunk): (hit.chunk.start_line, hit.last_line) for hit in now.recalled}
    for place, hit in enumerate(entry.hits, 1):
        of_qmd = entry.backend == "qmd"
        # Of several passages of one chunk the first is that of its hit; one from behind the limit was no hit.
        if _key(hit) not in old and (of_qmd or hit.rank <= (entry.ranked or hit.rank)):
            old[_key(hit)] = (place, None) if of_qmd else (hit.rank or place, hit.score)
            lines[_key(hit)] = hit.lines
    none = (None, None)
    rows = ((key, old.get(key, none), new.get(key, none)) for key in dict.fromkeys((*new, *old)))
    return tuple(HitChange(*key, then[0], later[0], then[1], later[1], lines[key]) for key, then, later in rows)


def _since(entry: RecallEntry, now: Trace) -> Iterator[str]:
    """Yield what the log shows to be different now."""
    if entry.backend == "qmd":
        yield "QMD answered then, the index answers now"
    elif entry.provider and (entry.provider, entry.model) != (now.provider, now.model):
        yield f"vectors of {entry.provider} {entry.model} then, of {now.provider} {now.model} now"
    elif entry.mode and entry.mode != now.mode:
        yield f"{entry.mode} then, {now.mode} now"
    if entry.index not in ("", now.uuid):
        yield "the index was made anew"
    elif entry.index and entry.generation not in (0, now.generation):
        yield "notes were indexed"
    for key, value in entry.settings.items():
        if key in now.settings.values and now.settings.values[key].value != value:
            yield f"{key} was {value}, is {now.settings.values[key].value}"


# --- words -----------------------------------------------------------------------------------------------------------


def replied(entry: RecallEntry) -> str:
    """Return how well a recall was answered, where that is known, its best score and what came back."""
    return ", ".join(filter(None, (entry.reply.removeprefix("no level"), entry.best, entry.got)))


def listing(entries: Iterable[RecallEntry], log: Log, place: object) -> Iterator[str]:
    """Yield a line for each of `entries`, the newest last, and where they are kept."""
    for entry in entries:
        what = f"read {entry.query}" if entry.tool == GET else entry.query
        yield (
            f"{entry.id}  {moment(entry.at)}  {one_line(what, _QUERY_CELLS)}  {one_line(replied(entry), _QUERY_CELLS)}"
            f"  {entry.ms:.0f} ms  {one_line(entry.client)}"
        ).rstrip()
    if not log.entries:
        yield f"No recall is logged. {LOG_RECALLS}"
    else:
        yield f"{plural(len(log.entries), 'recall')} in {place}"
        yield from [f"{plural(sum(log.replies.values()), 'question')}: {log.tally}."] if log.tally else []
    if log.unread:
        yield f"{plural(log.unread, 'line')} of it could not be read."


def delivered(entry: RecallEntry, path: str, line: int | None) -> tuple[int | None, str]:
    """Return with which of the delivered hits `line` of a note (None: any line) went out first, None for with none, and
    that as a sentence, which names the lines that went out of its chunk.
    """
    said = ""
    for place, hit in enumerate(entry.hits, 1):
        if hit.path == path and (line is None or hit.lines[0] <= line <= hit.lines[1]):
            return place, f"By the log it was delivered as the {ordinal(place)} hit."
        if hit.path == path and hit.start_line <= (line or 0) <= hit.end_line and not said:
            sent = f"the agent got {citation(path, *hit.lines)} of its chunk, as the {ordinal(place)} hit"
            said = f"By the log line {line} was not delivered: {sent}."
    return None, said or "By the log it was not delivered."


def replayed(again: Rerun) -> Iterator[str]:
    """Yield what an agent got, and what it would get now."""
    entry, level = again.entry, level_of(again.now)
    yield f"{entry.id}  {moment(entry.at)}  {one_line(entry.client)}".rstrip()
    yield f"Asked: {one_line(entry.query)}"
    knobs = [f"{name}{entry.settings[key]}".removesuffix(".0") for key, name in _KNOBS.items() if key in entry.settings]
    way = one_line(entry.mode or ("" if entry.backend else "no search"))
    if knobs or way:
        yield "; ".join(filter(None, (f"Knobs: {one_line(', '.join(knobs))}" if knobs else "", way)))
    if entry.outcome:
        yield f"Outcome: {one_line(entry.outcome)}"
    if entry.level or level:
        part = again.now.level.in_part if again.now.level is not None and level else ""
        then, now = BY_LEVEL.get(entry.level, entry.level), BY_LEVEL.get(level, level)
        # The log does not keep in which part, so that is none of what changed.
        both = "then and now" if then == now else f"then, {now or 'none told'}{f' ({part})' * bool(part)} now"
        yield f"Level of the answer: {then or 'none logged'} {both}."
    if entry.ranked > len(entry.hits):
        bound = f" fit in {entry.most_characters:,} characters" if entry.most_characters else " were delivered"
        yield f"{len(entry.hits)} of {plural(entry.ranked, 'hit')}{bound}."
    yield _answers_now(again)
    if again.since:
        yield f"Since then: {one_line('; '.join(again.since))}."
    yield from map(_line, again.changes)


def _answers_now(again: Rerun) -> str:
    """Say how the answer of now differs from what was delivered."""
    old = [change for change in again.changes if change.place_then is not None]
    still, others = sum(change.place_now is not None for change in old), len(again.changes) - len(old)
    if again.keeps_back:
        return f"An agent would get no hit now{'' if old else ' either'}: {NOTHING}. Below are the nearest."
    if again.same:
        return "The same would come now, in the same order."
    if not old:
        return f"{plural(others, 'hit')} would come now, where none was delivered."
    if still == len(old) and not others:
        return "The same hits would come now, in another order."
    more = plural(others, "other") if others else "no others"
    return f"Of {plural(len(old), 'delivered hit')} {still:,} would come now, and {more}."


def _line(change: HitChange) -> str:
    where = one_line(citation(change.path, *change.lines))
    then = at_place(change.place_then, change.score_then) or "not delivered"
    now = at_place(change.place_now, change.score_now) or "not recalled"
    return f"  {where}  then and now {now}" if then == now else f"  {where}  then {then}, now {now}"


def at_place(place: int | None, score: float | None) -> str:
    """Return the place of a hit with its score; empty for none."""
    if not place:
        return ""
    return f"{ordinal(place)} of QMD" if score is None else f"{ordinal(place)} with {score:.3f}"


def record(again: Rerun) -> Mapping[str, Any]:
    """Return a replay as JSON-ready data."""
    return {
        "entry": plain(again.entry),
        "same": again.same,
        "since": list(again.since),
        "changes": plain(again.changes),
        "now": answer(again.now, excerpts(again.now, again.evidence, again.settings.whole("query.maxCharacters"))),
    }
