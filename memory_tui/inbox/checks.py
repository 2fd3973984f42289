"""Inbox checks find lines that may be outdated or never were memories."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_tui.core.formatting import plural
from memory_tui.inbox.entries import Entry

_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY = r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)"
_BETWEEN = r"[\s:*_(]*(?:(?:on|the|by|at|in|for|is|to|until|till|again|due|\w{3,6}day),?[\s:*_(]*){0,3}"
_AHEAD = re.compile(
    rf"\b(?P<end>by|until|till|before){_BETWEEN}(?P<day>{_DAY})"
    r"|\b(?:due|deadline|expires?|expiring|expiry|valid|ends?|scheduled|planned|renew(?:s|al|als)?|starts?)"
    rf"{_BETWEEN}(?P<planned>{_DAY})"
    rf"|(?:截止|到期|有效期|期限|计划|計劃)[^。；\n\d]{{0,6}}(?P<before>{_DAY})"
    rf"|(?P<after>{_DAY})[^。；\n\d]{{0,6}}(?:截止|到期|之前|过期|まで|까지)",
    re.IGNORECASE,
)
"""A word that looks ahead, right beside a date."""
_PAST = re.compile(
    r"^\W*$|\b(?:was|were|had|been|did|led|ran|went|got|kept|took|held|paid|used|\w{2,}ed)\b", re.IGNORECASE
)
_TO_COME = re.compile(r"\b(?:be|must|should|shall|will|needs?|may|can|(?<!used )to)\b", re.IGNORECASE)
"""What stands before "until 2026-01-01" tells what was where it is nothing ("Until ...: it was") or a past tense."""
_RELATIVE = re.compile(
    r"\b(?:tomorrow|tonight|yesterday|next (?:week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|this (?:week|month)|currently|right now|these days)\b|明天|下周|下个?月|目前|最近|明日|来週",
    re.IGNORECASE,
)
_LINK = re.compile(r"\]\(<?([^)>\s#]+\.md)[^)]*\)|\[\[([^\]|#]+)[^\]]*\]\]")
_PATH = re.compile(r"`((?:~|/[\w.@-]+)/[\w.@/+-]*[\w+-])`")
_OUTPUT = (
    (re.compile(r"\x1b\[[0-9;]*m"), "it holds colour codes of a terminal"),
    (
        re.compile(
            r"Traceback \(most recent call last\)|^\s+at [\w$.<>]+ ?\(.+:\d+:\d+\)|^\s+File \"[^\"]+\", line \d+",
            re.MULTILINE,
        ),
        "it is the trace of an error",
    ),
    (
        re.compile(
            r"^(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[^\n]*(?:INFO|WARN|ERROR|DEBUG)[^\n]*\n?){3,}", re.MULTILINE
        ),
        "it is a log of a program",
    ),
    (re.compile(r"[A-Za-z0-9+/]{200,}={0,2}"), "it holds encoded data"),
    (re.compile(r"^\s*[\[{](?:\"[^\"]*\"|[^\"]){300,}[\]}]\s*$", re.DOTALL), "it is data, not words"),
    (
        re.compile(r"(?:^(?:\$|>>>|\S+@\S+[#$]) \S[^\n]*\n(?:[^\n]+\n?){6,})", re.MULTILINE),
        "it is a session of a shell",
    ),
)


def passed(entry: Entry, today: dt.date) -> str:
    """Why what an entry of a lasting note says about time is over, as a sentence; empty where it is not."""
    if entry.note.day is not None or entry.fenced:
        return ""
    days = [day for year, month, number in _DATE.findall(entry.text) if (day := _day(year, month, number))]
    ahead = _ahead(entry.text) if days and max(days) < today else None
    if ahead is not None:
        ago = (today - ahead).days
        return f"It speaks of {ahead} as still to come, {plural(ago, 'day')} ago."
    relative = _RELATIVE.search(entry.text) if not days else None
    return f"“{relative[0]}” in a note without a date means another day each time it is read." if relative else ""


def _ahead(text: str) -> dt.date | None:
    """The last day that `text` speaks of as one to come; None where it tells what was, or names none."""
    days = []
    for found in _AHEAD.finditer(text):
        clause = re.split(r"[.;!?(\n]", text[: found.start()])[-1]
        if found["end"] and _PAST.search(clause) and not _TO_COME.search(clause):
            continue
        named = found["day"] or found["planned"] or found["before"] or found["after"]
        if (day := _day(*named.split("-"))) is not None:
            days.append(day)
    return max(days, default=None)


def dead(entry: Entry, exists: Callable[[str], bool]) -> str:
    """Which path an entry names that is not there; empty where all are. `exists` tells of paths from the workspace.

    A path of this machine counts only where the folder above its parent is there: notes also speak of other machines.
    """
    for link, title in _LINK.findall(entry.text):
        target = str(link or f"{title.strip()}.md")
        if "://" in target:
            continue
        beside = os.path.normpath(f"{os.path.dirname(entry.note.path)}/{target}")  # noqa: PTH120 - a stored path
        names: set[str] = {target, beside, f"memory/{target}", f"memory/{target.lower().replace(' ', '-')}"}
        if not any(exists(name) for name in names):
            return target
    for found in _PATH.findall(entry.text):
        path = Path(found).expanduser()
        if len(path.parts) > 3 and path.parent.parent.is_dir() and not os.path.lexists(path):
            return str(found)
    return ""


def output(entry: Entry) -> str:
    """Why an entry looks like the output of a tool, in words; empty where it does not."""
    return next((reason for pattern, reason in _OUTPUT if pattern.search(entry.text)), "")


def impossible(path: str, today: dt.date) -> tuple[str, str]:
    """What is wrong with the date in a note's name, and a name without that fault; both empty where nothing is."""
    found = re.search(r"(?:^|/)(\d{4})-(\d{2})-(\d{2})([^/]*)\.md$", path)
    if not found:
        return "", ""
    day = _day(found[1], found[2], found[3])
    folder, _, name = path.rpartition("/")
    better = f"{folder}/undated-{name}".lstrip("/")
    # OpenClaw's calendar takes years below 100 for others, so that no age comes of them.
    if day is None or day.year < 100:
        return "There is no such day, so that the note never ages.", better
    if day > today + dt.timedelta(days=1):
        return f"The day is {(day - today).days} days ahead, so that the note counts as new until then.", better
    return "", ""


def _day(year: str, month: str, number: str) -> dt.date | None:
    try:
        return dt.date(int(year), int(month), int(number))
    except ValueError:
        return None


def everything(entry: Entry, today: dt.date, exists: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Kind and reason of everything doubtful about an entry."""
    if reason := output(entry):
        yield "junk", f"It looks like output of a tool: {reason}."
        return
    if reason := passed(entry, today):
        yield "stale date", reason
    if path := dead(entry, exists):
        yield "dead path", f"{path} is not there."
