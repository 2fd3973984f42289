"""Changes that add: a line to today's log, a new topic note, the text of an editor. Pure: bytes in, a Change out."""

from __future__ import annotations

import datetime as dt
import re

from memory_tui.curate.lines import HEADING, ITEM, Lines, edited
from memory_tui.curate.record import Change, FileChange
from memory_tui.errors import EditRefused
from memory_tui.text.secrets import masked

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_WEEKDAY = re.compile("|".join(_WEEKDAYS))
_TIMED = re.compile(
    r"(?P<mark>[-*+])(?P<gap>\s+)(?P<open>\*\*|\[|\()?\d{1,2}:\d{2}(?P<close>\*\*|\]|\))?"
    r"(?P<sep>:?\s*[-–—]\s+|:\s+|\s+)"
)
_MOST = 20_000
"""Characters of the longest text that is captured."""


def log_path(day: dt.date) -> str:
    """The stored path of a day's log."""
    return f"memory/{day.isoformat()}.md"


def capture(text: str, now: dt.datetime, log: bytes | None, model: bytes | None = None) -> Change:
    """Append `- HH:MM text` to today's `log`, in its style; a new log begins with a heading like that of `model`.

    `log` is None when there is none yet; `model` is an earlier log. Raises EditRefused for no text or too much.
    """
    said = _said(text)
    path = log_path(now.date())
    old = Lines.of(log, path)
    texts = old.texts()
    style = texts if any(ITEM.match(line) for line in texts) else Lines.of(model).texts()
    entry = _entry(said, now, style)
    if log is None or not "".join(texts).strip():
        new = Lines(old.bom, ()).insert(1, [_heading(now.date(), Lines.of(model).texts()), "", *entry])
        if model is not None and Lines.of(model).end == "\r\n":
            new = Lines(new.bom, tuple(line.replace("\n", "\r\n") for line in new.lines))
    else:
        new = old.insert(len(old.lines) + 1, [*_gap(texts), *entry])
    # A secret is looked for before the line is cut, because half of it would not be known for one.
    title = f"Remember in {path}: {masked(said.splitlines()[0])[:60]}"
    return Change("capture", title, (FileChange(path, log, new.data),))


def beginning(day: dt.date, model: bytes | None) -> str:
    """What the log of a day begins with: a heading like that of the earlier log `model`, and room below it."""
    return f"{_heading(day, Lines.of(model).texts())}\n\n"


def new_note(path: str, title: str, body: str = "") -> Change:
    """A new topic note with a heading, and `body` below it."""
    text = f"# {title.strip()}\n\n" + (body.strip("\r\n") + "\n" if body.strip() else "")
    return Change("new", f"New note {path}", (FileChange(path, None, text.encode("utf-8", "replace")),))


def edit(path: str, before: bytes | None, text: str) -> Change:
    """The change from a note to what somebody made of its text in an editor (`lines.shown`)."""
    return Change("edit", f"Edit {path}", (FileChange(path, before, edited(before, text, path)),))


def topic_path(title: str) -> str:
    """A stored path for a topic of this title: letters and digits of any script, joined by hyphens."""
    name = "-".join(re.findall(r"\w+", title.casefold()))[:60].strip("-")
    if not name:
        raise EditRefused("A topic needs a name with letters or digits.", "For instance: network.")
    return f"memory/{name}.md"


def _said(text: str) -> str:
    said = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip("\n")
    said = said.strip().replace("\0", "")
    if not said:
        raise EditRefused("There is nothing to remember.", 'For instance: memory-tui remember "Bins go out on Friday".')
    if len(said) > _MOST:
        raise EditRefused(
            f"The text has {len(said):,} characters; at most {_MOST:,} are captured.", "Make a note of its own of it."
        )
    return said


def _entry(said: str, now: dt.datetime, style: list[str]) -> list[str]:
    """The lines of an entry, in the way the last entry with a time is written."""
    timed = next((found for line in reversed(style) if (found := _TIMED.match(line))), None)
    first, *rest = said.split("\n")
    time = f"{now:%H:%M}"
    if timed:
        mark = timed["mark"] + timed["gap"]
        lead = f"{mark}{timed['open'] or ''}{time}{timed['close'] or ''}{timed['sep']}"
    else:
        found = next((item for line in reversed(style) if (item := ITEM.match(line)) and item[2] in "-*+"), None)
        mark = f"{found[2] if found else '-'} "
        lead = f"{mark}{time} "
    return [lead + first, *(" " * len(mark) + line if line else "" for line in rest)]


def _gap(texts: list[str]) -> list[str]:
    """A blank line in front of an entry that does not follow another one."""
    last = texts[-1]
    if not last.strip():
        return []
    above = next((line for line in reversed(texts) if ITEM.match(line) or not line.startswith((" ", "\t"))), "")
    return [] if ITEM.match(above) and not HEADING.match(last) else [""]


def _heading(day: dt.date, model: list[str]) -> str:
    """The heading of a new log: that of an earlier one with its date, and its weekday, changed."""
    first = next((line for line in model if line.strip()), "")
    if HEADING.match(first) and _ISO.search(first):
        return _WEEKDAY.sub(_WEEKDAYS[day.weekday()], _ISO.sub(day.isoformat(), first))
    return f"# {day.isoformat()}"
