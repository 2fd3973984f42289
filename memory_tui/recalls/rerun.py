"""Ask a logged question again: what was delivered then beside what would come now, in words and as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from memory_tui.config.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.errors import SettingError
from memory_tui.formatting import one_line, plural
from memory_tui.openclaw.prompt import SEARCH, citation
from memory_tui.recalls.recall_log import BY_LEVEL, IN_PART, NOTHING, LoggedHit, RecallEntry, moment
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import ChunkRef, Trace
from memory_tui.sentences import ordinal

_QUERY_CELLS = 60
# Knobs that `replayed` names, each with the word before its value; the name of a profile says enough.
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
        """Return whether the hits that were delivered would come again in the same order, and no others."""
        if not self.entry.hits:
            # No hit then, no hit now.
            return self.keeps_back or not self.now.recalled
        if self.keeps_back:
            return False
        # What did not go out then, because snippets were bounded, is not held against the hits of now.
        all_went_out = self.entry.ranked <= len(self.entry.hits)
        compared = [change for change in self.changes if all_went_out or change.place_then]
        return all(change.place_then == change.place_now for change in compared)

    @property
    def keeps_back(self) -> bool:
        """Return whether the agent would get none of the hits now, because nothing holds what was asked.

        An agent that got hits at that level had asked for the nearest.
        """
        asked_nearest = self.entry.level == NOTHING and bool(self.entry.hits)
        return level_of(self.now) == NOTHING and not asked_nearest


def level_of(trace: Trace) -> str:
    """Return the level that an agent is told with an answer, as it is logged; empty where it is told none."""
    if trace.level is None or not trace.recalled:
        return ""
    return IN_PART if trace.level.in_part else trace.level.level


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
    # An empty source stands for both, as does the corpus "all".
    source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
    evidence = gather(entry.query, source=source, by_words=entry.by_words)
    settings = settings_of(entry.requested, settings)
    now = rank(evidence, settings)
    return Rerun(entry, evidence, settings, now, _changes(entry, now), tuple(_since(entry, now)))


def _key(value: LoggedHit | ChunkRef) -> tuple[str, int, int]:
    """Return what tells a chunk from others in the log and in the index of now: its path and its lines."""
    return value.path, value.start_line, value.end_line


def _changes(entry: RecallEntry, now: Trace) -> tuple[HitChange, ...]:
    """Return the hits of then and now, with their place and score in either; both are None where it was no hit."""
    new = {_key(hit.chunk): (place, hit.score) for place, hit in enumerate(now.recalled, 1)}
    lines = {_key(hit.chunk): (hit.chunk.start_line, hit.last_line) for hit in now.recalled}
    old: dict[tuple[str, int, int], tuple[int, float | None]] = {}
    of_qmd = entry.backend == "qmd"
    for place, hit in enumerate(entry.hits, 1):
        # `ranked` counts the hits within the limit: a place behind that is none of a recalled hit.
        was_beyond_limit = not of_qmd and 0 < entry.ranked < hit.rank
        # Of several passages of one chunk the first is that of its hit.
        if _key(hit) not in old and not was_beyond_limit:
            old[_key(hit)] = (place, None) if of_qmd else (hit.rank or place, hit.score)
            lines[_key(hit)] = hit.lines
    changes = []
    for key in dict.fromkeys((*new, *old)):
        place_then, score_then = old.get(key, (None, None))
        place_now, score_now = new.get(key, (None, None))
        changes.append(HitChange(*key, place_then, place_now, score_then, score_now, lines[key]))
    return tuple(changes)


def _since(entry: RecallEntry, now: Trace) -> Iterator[str]:
    """Yield what the log shows to be different now, in short phrases.

    An entry of an older log, or of QMD, lacks some of these facts: an empty one, or a 0, is compared with nothing.
    """
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


def delivered(entry: RecallEntry, path: str, line: int | None) -> tuple[int | None, str]:
    """Return the place (from 1) of the first hit with which `line` of a note went out, and a sentence of that.

    Without a `line` any line of the note counts. The place is None where no such hit went out; where others lines of
    the same chunk did, the sentence names these.
    """
    sentence = ""
    for place, hit in enumerate(entry.hits, 1):
        if hit.path != path:
            continue
        first, last = hit.lines
        if line is None or first <= line <= last:
            return place, f"By the log it was delivered as the {ordinal(place)} hit."
        if hit.start_line <= line <= hit.end_line and not sentence:
            delivered = f"the agent got {citation(path, first, last)} of its chunk, as the {ordinal(place)} hit"
            sentence = f"By the log line {line} was not delivered: {delivered}."
    return None, sentence or "By the log it was not delivered."


def replayed(again: Rerun) -> Iterator[str]:
    """Yield what an agent got, and what it would get now."""
    entry = again.entry
    yield f"{entry.id}  {moment(entry.at)}  {one_line(entry.client)}".rstrip()
    yield f"Asked: {one_line(entry.query)}"
    knobs = [f"{name}{entry.settings[key]}".removesuffix(".0") for key, name in _KNOBS.items() if key in entry.settings]
    how = [f"Knobs: {', '.join(knobs)}"] if knobs else []
    if entry.mode or not entry.backend:
        how.append(entry.mode or "no search")
    if how:
        yield one_line("; ".join(how))
    if entry.outcome:
        yield f"Outcome: {one_line(entry.outcome)}"
    if entry.level or level_of(again.now):
        yield f"Level of the answer: {_levels(entry, again.now)}."
    if entry.ranked > len(entry.hits):
        bound = f" fit in {entry.most_characters:,} characters" if entry.most_characters else " were delivered"
        yield f"{len(entry.hits)} of {plural(entry.ranked, 'hit')}{bound}."
    yield _answers_now(again)
    if again.since:
        yield f"Since then: {one_line('; '.join(again.since))}."
    yield from map(_line, again.changes)


def _levels(entry: RecallEntry, now: Trace) -> str:
    """Return the level that the agent was told, and the one that it would be told now, in words."""
    level = level_of(now)
    old_words = BY_LEVEL.get(entry.level, entry.level)
    new_words = BY_LEVEL.get(level, level)
    # The log does not keep what an answer in part lacked, so that is none of what changed.
    best = f": the best line has {now.level.in_part}" if level and now.level and now.level.in_part else ""
    if old_words == new_words:
        return f"{old_words} then and now{best}"
    return f"{old_words or 'none logged'} then, {new_words or 'none told'} now{best}"


def _answers_now(again: Rerun) -> str:
    """Say how the answer of now differs from what was delivered."""
    delivered = [change for change in again.changes if change.place_then is not None]
    still_count = sum(change.place_now is not None for change in delivered)
    new_count = len(again.changes) - len(delivered)
    if again.keeps_back:
        return f"An agent would get no hit now{'' if delivered else ' either'}: {NOTHING}. Below are the nearest."
    if again.same:
        return "The same would come now, in the same order."
    if not delivered:
        return f"{plural(new_count, 'hit')} would come now, where none was delivered."
    if still_count == len(delivered) and not new_count:
        return "The same hits would come now, in another order."
    more = plural(new_count, "other") if new_count else "no others"
    return f"Of {plural(len(delivered), 'delivered hit')} {still_count:,} would come now, and {more}."


def _line(change: HitChange) -> str:
    """Return a hit as a line: where it stands, its place and score then and now, once where they are the same."""
    where = one_line(citation(change.path, *change.lines))
    then = at_place(change.place_then, change.score_then) or "not delivered"
    now = at_place(change.place_now, change.score_now) or "not recalled"
    return f"  {where}  then and now {now}" if then == now else f"  {where}  then {then}, now {now}"


def at_place(place: int | None, score: float | None) -> str:
    """Return the place of a hit with its score in words; empty where it has no place.

    A place without a score is one in QMD's ranking.
    """
    if not place:
        return ""
    return f"{ordinal(place)} of QMD" if score is None else f"{ordinal(place)} with {score:.3f}"
