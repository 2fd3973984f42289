"""Logged recalls, and one that was asked again, as lines for a person."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from pathlib import Path

from memory_tui.agent.citations import citation
from memory_tui.agent.prompt import GET
from memory_tui.agent.recall_log import MASK, Entry, Log
from memory_tui.agent.replay import Change, Replay
from memory_tui.explain.wording import ordinal, plural
from memory_tui.text.display import one_line

_QUERY_CELLS = 60


def listing(entries: Iterable[Entry], log: Log, place: Path) -> Iterator[str]:
    """A line for each of `entries`, the newest last, and where they are kept."""
    for entry in entries:
        got = plural(len(entry.hits), "hit") if entry.hits else entry.outcome
        what = f"read {entry.query}" if entry.tool == GET else entry.query
        yield (
            f"{entry.id}  {moment(entry.at)}  {one_line(what, _QUERY_CELLS)}  {one_line(got, _QUERY_CELLS)}"
            f"  {entry.ms:.0f} ms  {one_line(entry.client)}"
        ).rstrip()
    if not log.entries:
        yield "No recall is logged. Start the server with memory-tui mcp --log-recalls to have them written down."
    else:
        yield f"{plural(len(log.entries), 'recall')} in {place}"
    if log.unread:
        yield f"{plural(log.unread, 'line')} of it could not be read."


def replayed(found: Replay) -> Iterator[str]:
    """What an agent got, and what it would get now."""
    entry = found.entry
    yield f"{entry.id}  {moment(entry.at)}  {one_line(entry.client)}".rstrip()
    yield f"Asked: {one_line(entry.query)}"
    yield (
        f"Knobs: {entry.settings.get('profile', '?')}, results {entry.settings.get('query.maxResults', '?')}, "
        f"minScore {entry.settings.get('query.minScore', '?')}; {one_line(entry.mode or 'no search')}"
    )
    if entry.outcome:
        yield f"Outcome: {one_line(entry.outcome)}"
    yield "The same would come now, in the same order." if found.same else "Now other hits would come."
    if MASK in entry.query:
        yield "A secret in the question is masked, so what was asked now is not quite what was asked then."
    if found.index_changed:
        yield "The index has changed since."
    yield from map(_line, found.changes)


def taken_up(entry: Entry) -> str:
    """What an agent got, said where its question is asked again."""
    who = one_line(entry.client, 24) if entry.client else "The agent"
    masked = " A secret in it is masked." if MASK in entry.query else ""
    return f"{who} got {plural(len(entry.hits), 'hit')} then.{masked}"


def _line(change: Change) -> str:
    where = one_line(citation(change.path, change.start_line, change.end_line))
    then = f"{ordinal(change.place_then)} with {change.score_then:.3f}" if change.place_then else "not recalled"
    now = f"{ordinal(change.place_now)} with {change.score_now:.3f}" if change.place_now else "not recalled"
    return f"  {where}  then {then}, now {now}"


def moment(at: float) -> str:
    """A time in UTC, to the second."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "at no time"
