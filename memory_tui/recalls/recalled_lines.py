"""Recalled lines say which lines were recalled. They say when, and how an answer cites them.

Only places and times are kept, in a file of JSON lines (recall_log.py): no question, no text of a note, so there is
nothing in it to mask. Lines are named as they were counted then.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

from msgspec import Struct, field

from memory_tui import jsstring
from memory_tui.formatting import plural
from memory_tui.recalls import recall_log

if TYPE_CHECKING:
    from memory_tui.recalls.recall_log import Log, RecallEntry, Reply
    from memory_tui.recalls.rerun import (
        AnswersNow,
        Cause,
        HitChange,
        LevelNow,
        NotRebuilt,
        Obstacle,
        Rebuilt,
        RecallClaim,
        Rerun,
    )

MOST_BYTES = 256 << 10
"""Some 2,000 answers."""
_LONGEST = 100_000
"""Lines of the longest place that is believed; a chunk has far fewer."""

Span = tuple[str, int, int]
"""The stored path of a note, first and last line (from 1)."""


class Marks(Struct, frozen=True):
    """The lines that were recalled, note by note, when each note last was, and how many lines could not be read."""

    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    unread: int = 0


def marks_path(workspace: Path) -> Path:
    """Where the record of a workspace is; two names of one folder share it."""
    return recall_log.log_path(workspace, "marks")


def clear(workspace: Path) -> tuple[bool, bool]:
    """Delete the record of a workspace and its recall log; whether there was each. Raises IndexUnavailable."""
    from memory_tui.recalls.recall_log import recall_log_path

    # The log last: whoever is told that something failed still has it.
    return recall_log.clear_log(marks_path(workspace)), recall_log.clear_log(recall_log_path(workspace))


def append(path: Path, spans: Iterable[Span], at: float, most_bytes: int = MOST_BYTES) -> None:
    """Write down what one answer gave, at `at` (epoch seconds). Raises OSError, IndexUnavailable."""
    notes = {
        jsstring.well_formed(note): [[first, last] for _, first, last in group]
        for note, group in groupby(sorted(set(spans)), itemgetter(0))
    }
    if notes:
        line = json.dumps({"at": at, "notes": notes}, separators=(",", ":")).encode() + b"\n"
        recall_log.append_line(path, line, most_bytes)


def read(path: Path) -> Marks:
    """The record at `path`, empty where there is none. Raises IndexUnavailable when it cannot be read."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    last: defaultdict[str, float] = defaultdict(float)
    records, unread = answers(path)
    for at, notes in records:
        for note, spans in notes.items():
            last[note] = max(last[note], at)
            for span in spans:
                lines[note].update(span)
    return Marks({note: frozenset(records) for note, records in lines.items()}, dict(last), unread)


def answers(path: Path) -> tuple[list[tuple[float, dict[str, list[range]]]], int]:
    """Time and places of each answer in the record, oldest first, and how many lines of it could not be read.

    Raises IndexUnavailable when the record cannot be read.
    """
    records, unread = [], 0
    for line in recall_log.log_lines(path):
        try:
            records.append(_parsed(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            unread += 1
    return records, unread


def _parsed(line: bytes) -> tuple[float, dict[str, list[range]]]:
    """Time and places of one answer. Raises one of many errors when it is no such line."""
    item = json.loads(line)
    at = float(item["at"])
    notes = {str(note): [_span(first, last) for first, last in spans] for note, spans in item["notes"].items()}
    if not math.isfinite(at):
        raise ValueError
    return at, notes


def _span(first: int, last: int) -> range:
    if type(first) is not int or type(last) is not int or not 1 <= first <= last < first + _LONGEST:
        raise ValueError
    return range(first, last + 1)


Mode = Literal["auto", "on", "off"]
MODES: tuple[Mode, ...] = ("auto", "on", "off")
Chat = Literal["direct", "group", "channel"]


def mode_of(value: object) -> Mode:
    """A configured value as a mode; anything else is auto."""
    return next((mode for mode in MODES if mode == value), "auto")


def chat(session_key: str) -> Chat:
    """What kind of chat a session key such as `agent:main:telegram:group:123` speaks of; direct when it does not."""
    head, _, rest = session_key.strip().partition(":")
    agent, _, name = rest.partition(":")
    if head.lower() != "agent" or not agent or not name:
        return "direct"
    tokens = name.lower().split(":")
    return "channel" if "channel" in tokens else "group" if "group" in tokens else "direct"


def included(mode: Mode, session_key: str = "") -> bool:
    """Whether hits carry a citation: always, never, or in direct chats only."""
    return mode == "on" or (mode == "auto" and chat(session_key) == "direct")


def citation(path: str, start: int, end: int) -> str:
    """`path#L3-L9`, or `path#L3` for one line."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"


_QUERY_CELLS = 60
_COUNTED: Mapping[Reply, str] = {"no answer": "without an answer", "no level": "without a level"}
"""How many there were of a reply, where that is not said by its own word."""


def tally(log: Log) -> str:
    """How many questions were answered how well, such as `22 questions: 20 found, 2 nothing`; empty for none."""
    replies = log.replies
    if not replies:
        return ""
    counts = (f"{times:,} {_COUNTED.get(reply, reply)}" for reply, times in replies.items())
    return f"{plural(sum(replies.values()), 'question')}: {', '.join(counts)}"


def replied(entry: RecallEntry) -> str:
    """How well a recall was answered, where that is known, its best score and what came back; empty for nothing."""
    level = "" if entry.reply in ("", "no answer", "no level") else entry.reply
    best = f"best {entry.best:.2f}" if entry.best is not None and entry.reply else ""
    came = "" if (level, entry.got) == ("nothing", "no hit") else entry.got
    return ", ".join(filter(None, (level, best, came)))


def listing(entries: Iterable[RecallEntry], log: Log, place: Path) -> Iterator[str]:
    """A line for each of `entries`, the newest last, and where they are kept."""
    from memory_tui.openclaw.prompt import GET
    from memory_tui.recalls.recall_log import LOG_RECALLS
    from memory_tui.sanitize import one_line

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
        yield from [f"{counts}." for counts in [tally(log)] if counts]
    if log.unread:
        yield f"{plural(log.unread, 'line')} of it could not be read."


def replayed(rerun_of: Rerun) -> Iterator[str]:
    """What an agent got, and what it would get now."""
    from memory_tui.recalls.rerun import AnswersNow, HitChange
    from memory_tui.sanitize import one_line

    entry = rerun_of.entry
    yield f"{entry.id}  {moment(entry.at)}  {one_line(entry.client)}".rstrip()
    yield f"Asked: {one_line(entry.query)}"
    yield from _searched(entry)
    if entry.outcome:
        yield f"Outcome: {one_line(entry.outcome)}"
    shared: tuple[Cause, ...] = ()
    for each in rerun_of.claims:
        if isinstance(each, AnswersNow):
            shared = each.causes
        # What moved every hit is said once, above them.
        yield _line(each, shared) if isinstance(each, HitChange) else claim(each)


_KNOBS = {"profile": "", "query.maxResults": "results ", "query.minScore": "minScore "}


def _searched(entry: RecallEntry) -> Iterator[str]:
    """By which knobs and in which way it was searched, as far as the log says."""
    from memory_tui.sanitize import one_line

    logged = entry.settings
    knobs = [f"{words}{str(logged[key]).removesuffix('.0')}" for key, words in _KNOBS.items() if key in logged]
    way = one_line(entry.mode or ("" if entry.backend else "no search"))
    if knobs or way:
        yield "; ".join(filter(None, (f"Knobs: {one_line(', '.join(knobs))}" if knobs else "", way)))


def claim(fact: RecallClaim) -> str:
    """What is said of a logged recall, as a sentence; of one hit as a line."""
    from memory_tui.notices import ordinal
    from memory_tui.recalls import rerun
    from memory_tui.sanitize import one_line

    match fact:
        case rerun.Rebuilt():
            return "The answer then is rebuilt exactly: the logged clock and knobs give the hits that were logged."
        case rerun.NotRebuilt():
            return f"The answer then cannot be rebuilt: {obstacle(fact)}. What was delivered is what the log says."
        case rerun.DeliveredFewer():
            bound = f" fit in {fact.most_characters:,} characters" if fact.most_characters else " were delivered"
            if fact.pieces == fact.delivered:
                return f"{fact.delivered} of {plural(fact.ranked, 'hit')}{bound}."
            more = f", and {fact.beyond} from behind the limit" if fact.beyond else ""
            went = plural(fact.pieces, "hit")
            return f"{went}{bound}, from {fact.delivered} of the {plural(fact.ranked, 'chunk')} that ranked{more}."
        case rerun.LevelNow():
            return _levels(fact)
        case rerun.AnswersNow():
            return _answers_now(fact)
        case rerun.DeliveredAs(place=None):
            return "By the log it was not delivered."
        case rerun.DeliveredAs():
            ranked = f"; its chunk ranked {ordinal(fact.rank)}" if fact.rank not in (0, fact.place) else ""
            return (
                f"By the log it was delivered as the {ordinal(fact.place or 0)} hit{', shortened' * fact.cut}{ranked}."
            )
        case rerun.GotThen():
            who = one_line(fact.client, 24) if fact.client else "The agent"
            return f"{who} got {plural(fact.hits, 'hit')} then.{' A secret in it is masked.' * fact.masked}"
        case rerun.HitChange():
            return _line(fact)
        case _ as never:
            assert_never(never)


def _levels(level: LevelNow) -> str:
    if level.then == level.now:
        return f"Level of the answer: {level.now}, then as now."
    return f"Level of the answer: {level.then or 'none logged'} then, {level.now or 'none told'} now."


def _answers_now(answers: AnswersNow) -> str:
    now = "of the index now" if answers.after_qmd else "now"
    if answers.kept_back:
        nobody = f"An agent would get no hit {now}{' either' * (not answers.then)}: nothing holds these words."
        return f"{nobody} Below are the nearest, which it gets only where it asks for them."
    if answers.same:
        return f"The same would come {now}, in the same order."
    causes = f" ({_because(answers.causes)})" if answers.causes else ""
    if answers.kept == answers.then and not answers.others:
        return f"The same hits would come {now}, in another order{causes}."
    if not answers.then:
        return f"{plural(answers.others, 'hit')} would come {now}, where none was delivered{causes}."
    others = f"{answers.others:,} other{'s' * (answers.others != 1)}" if answers.others else "no others"
    return f"Of {plural(answers.then, 'delivered hit')} {answers.kept:,} would come {now}, and {others}{causes}."


def obstacle(rebuilt: Rebuilt | NotRebuilt) -> str:
    """Why the answer then cannot be rebuilt, as a clause; empty where it is."""
    from memory_tui.recalls import rerun

    if isinstance(rebuilt, rerun.Rebuilt):
        return ""
    clauses: dict[Obstacle, str] = {
        "of QMD": "QMD gave it, and its index of then is gone; what follows is the index's answer now",
        "partial": "the log keeps the question without its secrets, and not all of a long one",
        "not logged": "the log does not say by which knobs it was ranked, or what was searched",
        "other vectors": f"the index has vectors of {rebuilt.now}, not of {rebuilt.then}",
        "other mode": f"this search goes by {rebuilt.now}, the logged one by {rebuilt.then}",
        "refused knob": f"{rebuilt.then} is not accepted any more",
        "new index": "the index was made anew since, from notes that may have changed",
        "newer notes": "notes were indexed since",
        "no clock": "the log is of an older release and lacks the clock",
        "arithmetic": "the arithmetic differs",
    }
    return clauses[rebuilt.obstacle]


def _line(change: HitChange, shared: tuple[Cause, ...] = ()) -> str:
    """The places of a hit and what moved it to another one, without the causes that the others have, too."""
    from memory_tui.sanitize import one_line

    where = one_line(citation(change.path, change.start_line, change.end_line))
    then = at_place(change.place_then, change.score_then) or "not delivered"
    now = at_place(change.place_now, change.score_now) or "not recalled"
    causes_alone = tuple(cause for cause in change.causes if cause not in shared)
    causes = f" ({_because(causes_alone)})" if causes_alone and change.place_then != change.place_now else ""
    return f"  {where}  then and now {now}{causes}" if then == now else f"  {where}  then {then}, now {now}{causes}"


def _because(causes: tuple[Cause, ...]) -> str:
    return ", ".join(_CAUSES[cause] for cause in causes)


def at_place(place: int | None, score: float | None) -> str:
    """The place of a hit with its score; empty for none."""
    from memory_tui.notices import ordinal

    if not place:
        return ""
    return f"{ordinal(place)} of QMD" if score is None else f"{ordinal(place)} with {score:.3f}"


def record(rerun_of: Rerun) -> Mapping[str, Any]:
    """A replay as JSON-ready data."""
    from memory_tui.explain.trace_json import answer, plain, tagged
    from memory_tui.recalls.rerun import Rebuilt

    return {
        "entry": plain(rerun_of.entry),
        "same": rerun_of.same,
        "rebuilt": isinstance(rerun_of.remade, Rebuilt),
        "impossible": obstacle(rerun_of.remade) or None,
        "indexChanged": rerun_of.index_changed,
        "changes": plain(rerun_of.changes),
        "claims": [{**tagged(each), "sentence": claim(each)} for each in rerun_of.claims],
        "now": answer(rerun_of.now),
    }


_CAUSES: Mapping[Cause, str] = {
    "length": "kept back then",
    "notes": "notes changed",
    "index": "another index",
    "not logged": "why is not logged",
    "backend": "the index, not QMD",
    "clock": "age",
    "knobs": "settings",
}
"""What moved a hit, in words."""


def moment(at: float) -> str:
    """A time in UTC, to the second."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "at no time"


WEEK = 7


class Activity(Struct, frozen=True):
    """On which days, and how often, each note was recalled; `since` is the first day that the records know of.

    `lines` are the lines (first and last, as they were counted then) that recalls gave of it, with how many did.
    """

    days: Mapping[str, Mapping[dt.date, int]] = field(default_factory=dict)
    since: dt.date | None = None
    lines: Mapping[str, Mapping[tuple[int, int], int]] = field(default_factory=dict)

    def count(self, path: str, after: dt.date | None = None) -> int:
        """How often a note was recalled, on the days after `after` where that is given."""
        days = self.days.get(path, {})
        return sum(times for day, times in days.items() if after is None or day > after)

    def weeks(self, path: str, today: dt.date, count: int) -> list[int]:
        """Recalls of a note in each of the last `count` weeks, the week that ends `today` last."""
        counts = [0] * count
        for day, times in self.days.get(path, {}).items():
            back = (today - day).days // WEEK
            if 0 <= back < count:
                counts[count - 1 - back] += times
        return counts

    def last(self, path: str) -> dt.date | None:
        """The day on which a note was recalled last; None where it never was."""
        return max(self.days.get(path, {}), default=None)


def activity(workspace: Path) -> Activity:
    """What a person's questions and agents recalled in `workspace`; empty where nothing was recorded.

    Raises IndexUnavailable when a record cannot be read.
    """
    here, _ = answers(marks_path(workspace))
    from memory_tui.recalls import recall_log

    log = recall_log.read(recall_log.recall_log_path(workspace))
    recalled = [
        (at, {(path, span.start, span.stop - 1) for path, spans in notes.items() for span in spans})
        for at, notes in here
    ]
    recalled += [(entry.at, {(hit.path, *hit.lines) for hit in entry.hits}) for entry in log.entries]
    days: defaultdict[str, Counter[dt.date]] = defaultdict(Counter)
    lines: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for at, places in recalled:
        for path in {path for path, _, _ in places}:
            days[path][dt.datetime.fromtimestamp(at).date()] += 1
        for path, first, last in places:
            lines[path][first, last] += 1
    since = min((day for counts in days.values() for day in counts), default=None)
    spans = {path: dict(counts) for path, counts in lines.items()}
    return Activity({path: dict(counts) for path, counts in days.items()}, since, spans)
