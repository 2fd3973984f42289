"""The recall log keeps what agents asked of a memory, if its owner wants that; a logged question can be asked again.

A file of JSON lines in the user's state folder (0600 in 0700), one for each workspace, never in the workspace. Secrets
in questions are masked; the text of notes is not kept, only places and scores. Beyond 2 MiB the older half is dropped.
Several processes write: each under the lock of the file, a whole line at a time.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import platformdirs
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import durable, jsstring, locks
from memory_tui.config.places import private_name
from memory_tui.config.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.errors import IndexBusy, IndexUnavailable, SettingError
from memory_tui.formatting import one_line, plural
from memory_tui.openclaw.prompt import GET, RECALL, SEARCH, citation
from memory_tui.search.rank import Trace, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import ChunkRef
from memory_tui.secrets.finder import MASK, masked, redact
from memory_tui.sentences import ordinal


def log_path(workspace: Path, kind: str) -> Path:
    """Return where the file of a workspace is, in the folder `kind`; two names of one workspace share it."""
    folder = platformdirs.user_state_path("memory-tui", appauthor=False) / kind
    return folder / f"{private_name(workspace)}.jsonl"


def clear_log(path: Path) -> bool:
    """Delete the file; False when there was none. Raises IndexUnavailable."""
    if not path.exists():
        return False
    with _locked(path):
        try:
            durable.remove_file(path)
        except OSError as error:
            raise IndexUnavailable(f"{path} cannot be deleted: {error.strerror}.", _CHECK) from None
    return True


def _locked(path: Path) -> locks.WriterLock:
    """Return the lock of the file; a line takes less than a millisecond. Raises IndexUnavailable after five seconds."""
    try:
        return locks.wait_for(path)
    except IndexBusy:
        raise IndexUnavailable(f"Another process keeps {path} locked.", "See which memory-tui still runs.") from None


_CHECK = "Check the file and its folder."
MOST_BYTES = 2 << 20
MOST_QUERY = 10_000
"""Characters of a question that are kept; a longer one ends with an ellipsis."""
_LINES_READ = re.compile(r"lines \d+ to \d+")
"""The outcome of a memory_get that read something."""
NONE_NEAR = "No memory was near enough."
"""The outcome of a memory_recall that found nothing."""

Reply = Literal["found", "found in part", "perhaps not answered", "not answered", "failed", "no level"]
"""How well a question was answered, in the words that people read: by the level of its answer, not at all, or unknown.

There is no level in a log of an older release, of an answer of QMD or of the long-term memories, and under a profile
that tells none.
"""
REPLIES: tuple[Reply, ...] = get_args(Reply)
IN_PART = "found in part"
"""The level of an answer that is found, and whose best lines lack words that weigh much."""
NOTHING = "nothing holds these words"
"""The level at which an agent gets no hit, unless it asks for the nearest."""
LOG_RECALLS = "Run memory-tui connect AGENT --log-recalls, or start memory-tui mcp --log-recalls, to have them logged."
BY_LEVEL: Mapping[str, Reply] = dict(zip(("found", IN_PART, "nearby only", NOTHING), REPLIES, strict=False))


class LoggedHit(Struct, frozen=True):
    """One hit as an agent got it: where it stood, its scores, and the id of its chunk, which changes with its text.

    Of the lines of its chunk `first_line` to `last_line` went out (0: by an older log, all). `cut` tells that only the
    beginning of its snippet was delivered. `rank` is its place in the ranking, QMD's where that answered, 0 where the
    log says nothing of it. A long-term memory has its id for a path.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    vector_score: float
    text_score: float
    chunk: str = ""
    cut: bool = False
    rank: int = 0
    first_line: int = 0
    last_line: int = 0

    @property
    def lines(self) -> tuple[int, int]:
        """Return the first and the last line that went out."""
        return (self.first_line, self.last_line) if self.first_line else (self.start_line, self.end_line)


def hit_of(hit: Mapping[str, Any]) -> LoggedHit:
    """Return a hit as an answer tells it, or the lines that memory_get read, in the form of the log.

    What a host keeps may hold anything: what is missing or of another kind becomes an empty path, line 1, score 0.
    """
    path = hit.get("path")
    first = max(1, _whole(hit.get("startLine", hit.get("from")), 1))
    last = _whole(hit.get("endLine"), first + _whole(hit.get("lines"), 1) - 1)
    score = hit.get("score")
    # What each side gave to the score is not told.
    score = float(score) if isinstance(score, int | float) else 0.0
    return LoggedHit(path if isinstance(path, str) else "", first, max(first, last), score, 0.0, 0.0)


def _whole(value: object, otherwise: int) -> int:
    """Return `value` where it is a whole number, else `otherwise`."""
    return value if isinstance(value, int) else otherwise


class RecallEntry(Struct, frozen=True):
    """One recall as it was delivered. `at` is in epoch seconds, `ms` how long it took.

    `settings` are the knobs that ranking read, `requested` those of them that the agent gave; ages were counted from
    `now` (epoch seconds, 0: not logged). `index` names the index, `generation` its state. `hits` were delivered, of
    `ranked` that were recalled (0: not logged), because snippets may have `most_characters` in all (0: any).
    `by_words` tells that there was no time to ask for meaning. `backend` is qmd where QMD answered, builtin where the
    index stood in for it, empty where QMD was not chosen. `level` is that of the answer
    (`level_of`), empty where none was told or logged.

    `id` is given by `append`; `outcome` says why nothing came back, and is empty where something did. For memory_get
    `query` is the path, and lines `first_line` to `last_line` were delivered.
    """

    tool: str
    query: str
    at: float
    client: str = ""
    agent: str = ""
    corpus: str = ""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    provider: str = ""
    model: str = ""
    mode: str = ""
    generation: int = 0
    hits: tuple[LoggedHit, ...] = ()
    outcome: str = ""
    ms: float = 0.0
    id: str = ""
    requested: Mapping[str, Scalar] = field(default_factory=dict)
    now: float = 0.0
    index: str = ""
    ranked: int = 0
    most_characters: int = 0
    by_words: bool = False
    backend: str = ""
    first_line: int = 0
    last_line: int = 0
    level: str = ""

    @property
    def program(self) -> str:
        """Return the client with its version, as words."""
        return re.sub(r" (?=v?\d\S*$)", ", version ", self.client)

    @property
    def delivered(self) -> frozenset[str]:
        """Return the paths of the notes of which the agent was given text."""
        if self.tool == GET:
            return frozenset([self.query] if _LINES_READ.fullmatch(self.outcome) else ())
        return frozenset(hit.path for hit in self.hits if self.tool == SEARCH)

    @property
    def subject(self) -> Literal["notes", "memories", ""]:
        """Return what was asked: the notes, the long-term memories, or nothing, because lines of a note were read."""
        if self.tool == SEARCH:
            return "notes"
        return "memories" if self.tool == RECALL else ""

    @property
    def reply(self) -> Reply | Literal[""]:
        """Return how well a question was answered; empty where lines of a note were read."""
        if self.tool == GET:
            return ""
        if self.level in BY_LEVEL:
            return BY_LEVEL[self.level]
        if self.hits:
            return "no level"
        # The index logs a mode with each search; QMD and the long-term memories log none, and are told by other fields.
        was_searched = bool(self.mode or self.backend or self.outcome == NONE_NEAR)
        # Hits were ranked, but none went out: the answer came too late.
        was_late = self.ranked > 0 and self.outcome != ""
        return "not answered" if was_searched and not was_late else "failed"

    @property
    def best(self) -> str:
        """Return the highest score that was delivered, in words.

        Empty without a hit, and at a level that doubts the answer, which a high score would seem to deny.
        """
        if not self.hits or self.reply not in ("found", IN_PART, "no level"):
            return ""
        return f"best score {max(hit.score for hit in self.hits):.2f}"

    @property
    def got(self) -> str:
        """Return what came back, in a few words; empty where the log says nothing of it."""
        if not self.hits:
            return self.outcome
        if self.tool != SEARCH:
            return plural(len(self.hits), "memory")
        of_backend = {"qmd": " of QMD", "builtin": " in QMD's place"}.get(self.backend, "")
        return f"{plural(len(self.hits), 'hit')}{of_backend}"


_FEWEST, _FEWEST_SECONDS = 20, 14 * 86_400.0
"""Fewer recalls, or over less time, do not tell which notes nobody needs."""


class Log(Struct, frozen=True):
    """What a log holds, the oldest first, and how many lines of it could not be understood."""

    entries: tuple[RecallEntry, ...]
    unread: int

    def find(self, name: str) -> RecallEntry | None:
        """Return the entry whose id starts with `name`, the newest where several do; `last` is the newest search."""
        if name == "last":
            fitting = [entry for entry in self.entries if entry.tool == SEARCH]
        else:
            fitting = [entry for entry in self.entries if name and entry.id.startswith(name.lower())]
        return fitting[-1] if fitting else None

    @property
    def since(self) -> float:
        """Return the time of the first recall, in epoch seconds, once the log tells which notes nobody needs; else 0.

        It does not while it has too few recalls, or recalls of too few days.
        """
        if len(self.entries) < _FEWEST:
            return 0.0
        first, last = self.entries[0].at, self.entries[-1].at
        return first if last - first >= _FEWEST_SECONDS else 0.0

    @property
    def delivered(self) -> Counter[str]:
        """Return how often each note was given to an agent, of those that were."""
        return Counter(path for entry in self.entries for path in entry.delivered)

    @property
    def replies(self) -> Mapping[Reply, int]:
        """Return how many questions were answered how well, of what occurs, the best first."""
        counted = Counter(entry.reply for entry in self.entries)
        return {reply: counted[reply] for reply in REPLIES if counted[reply]}

    @property
    def tally(self) -> str:
        """Return how many questions were answered how well, such as `20 found, 2 not answered`; empty for none."""
        words: Mapping[str, str] = {"no level": "under a ranking that tells no level", IN_PART: "in part"}
        return ", ".join(f"{times:,} {words.get(reply, reply)}" for reply, times in self.replies.items())


def recall_log_path(workspace: Path) -> Path:
    """Return where the log of a workspace is; two names of one folder share it."""
    return log_path(workspace, "recalls")


def append_recall(path: Path, entry: RecallEntry) -> RecallEntry:
    """Write `entry` down, with an id and without secrets; returns it as it was written.

    Raises OSError, and IndexUnavailable when another process holds the log for five seconds.
    """
    stored = replace(entry, id=secrets.token_hex(4), query=shortened(entry.query), outcome=shortened(entry.outcome))
    durable.make_folder(path.parent)
    with _locked(path):
        # Who waits for an answer does not wait for the disk as well: the power may take the last lines of a log.
        durable.append_line(path, json.dumps(msgspec.to_builtins(stored)).encode() + b"\n", flush=False)
        if path.stat().st_size > MOST_BYTES:
            data = path.read_bytes()
            # What stands before the first line feed of the newer half is the rest of a line, and goes too.
            _, _, newer_half = data[-(len(data) // 2) :].partition(b"\n")
            durable.replace_file(path, newer_half)
    return stored


def read(path: Path) -> Log:
    """Return the log at `path`; empty where there is none. Raises IndexUnavailable when it cannot be read."""
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except FileNotFoundError:
        return Log((), 0)
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be read: {error.strerror}.", _CHECK) from None


@lru_cache(maxsize=2)
def _read(path: Path, _mtime_ns: int, _size: int) -> Log:
    """Return what a log holds; time and size are but keys of the cache, by which a file that changed is read again."""
    entries, unread = [], 0
    for line in filter(bytes.strip, path.read_bytes().split(b"\n")):
        try:
            entries.append(msgspec.convert(json.loads(line), RecallEntry))
        except (ValueError, RecursionError):
            unread += 1
    return Log(tuple(entries), unread)


def moment(at: float) -> str:
    """Return a time in UTC, to the second."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "at no time"


def shortened(text: str) -> str:
    """Return `text` without secrets, looked for before it is cut, so that none is cut in two."""
    text = masked(redact(jsstring.well_formed(text)))
    return text if len(text) <= MOST_QUERY else text[:MOST_QUERY] + "…"


def is_partial(query: str) -> bool:
    """Return whether the log keeps less of `query` than was asked: secrets were masked, or a long text was cut."""
    return MASK in query or query.endswith("…")


# --- a question asked again: what was delivered then beside what would come now --------------------------------------

_QUERY_CELLS = 60
# Knobs that `replayed` names, each with the word before its value; the name of a profile says enough.
_KNOBS = {"profile": "{}", "query.maxResults": "{} results", "query.minScore": "too weak under {}"}
_MODES = {"hybrid": "words + meaning", "": "no search"}
"""What a search used, words only where it has no row."""


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

    `changes` are the hits of now in their order, and behind them those of then that are none now, in theirs. `since`
    says what is known to be different.
    """

    entry: RecallEntry
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
    now = rank(evidence, settings_of(entry.requested, settings))
    return Rerun(entry, now, _changes(entry, now), tuple(_since(entry, now)))


def _key(value: LoggedHit | ChunkRef) -> tuple[str, int, int]:
    """Return what tells a chunk from others in the log and in the index of now: its path and its lines."""
    return value.path, value.start_line, value.end_line


def _changes(entry: RecallEntry, now: Trace) -> tuple[HitChange, ...]:
    """Return the hits of then and now, with their place and score in either; both are None where it was no hit."""
    # Place and score by chunk, now and then; and the lines to name: those that went out, else all of the chunk.
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
    asked, mode = now.evidence, now.rules.mode
    if entry.backend == "qmd":
        yield "QMD answered then, the index answers now"
    elif entry.provider and (entry.provider, entry.model) != (asked.provider, asked.model):
        yield f"vectors of {entry.provider} {entry.model} then, of {asked.provider} {asked.model} now"
    elif entry.mode and entry.mode != mode:
        yield f"{_MODES.get(entry.mode, 'words only')} then, {_MODES.get(mode, 'words only')} now"
    if entry.index not in ("", asked.uuid):
        yield "the index was made anew"
    elif entry.index and entry.generation not in (0, asked.generation):
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
    yield f"{moment(entry.at)}  {one_line(entry.program or entry.agent) or 'agent'}, entry {entry.id} of the log"
    yield f"Asked: {one_line(entry.query)}"
    shown = entry.settings
    # A whole number is told without the ".0" of its type.
    knobs = [words.format(shown[key]).removesuffix(".0") for key, words in _KNOBS.items() if key in shown]
    if how := [*knobs, *([_MODES.get(entry.mode, "words only")] if entry.mode or not entry.backend else [])]:
        yield one_line(f"Ranking: {', '.join(how)}")
    if entry.outcome:
        yield f"Outcome: {one_line(entry.outcome)}"
    if entry.level or level_of(again.now):
        yield f"Answer: {_levels(entry, again.now)}."
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
    best = f": {now.level.in_part}" if level and now.level and now.level.in_part else ""
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
