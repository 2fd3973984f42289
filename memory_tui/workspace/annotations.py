"""Annotations are comments in a note that OpenClaw 2026.9 reads.

Triggers, importance and project are taken out of the text before it is cut into chunks, and steer recall instead
(release 2026.9.6, recall metadata of chunking version 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_tui import jsstring

INVALID_PROJECT = "!invalid-project-annotation"
"""The stored project of a chunk whose project marker cannot be read; OpenClaw never recalls such a chunk."""
CURATED = ("MEMORY.md", "memory.md", "USER.md")
"""Files at the top of the workspace of which triggers and importance count."""
MOST_IMPORTANT = 10

_BLANK = r"[^\S\r\n\u2028\u2029]*"
# Compiled when a note with a comment is read first: a search that is a process of its own reads none.
_MARKER = rf"(?i)<!--{_BLANK}(?:trigger|importance|project){_BLANK}:[^\r\n\u2028\u2029]*?-->"
_LINE_ENDS = r"(?<![ \t])[ \t]+(?=[\r\n\u2028\u2029]|\Z)"
_IMPORTANCE = rf"(?i)<!--{_BLANK}importance{_BLANK}:(.*?)-->"
_TRIGGER = rf"(?i)<!--{_BLANK}trigger{_BLANK}:(.*?)-->"
_PROJECT = r"(?i)<!--\s*project\s*:"
_OPENING = r"(?i)<!--\s*(trigger|importance|project)\s*:"


class Annotations(NamedTuple):
    """What the comments of a chunk say: importance 1 to 10 (0: none), triggers and project keys joined by `"; "`."""

    importance: int = 0
    triggers: str = ""
    project: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the project keys one by one."""
        return tuple(self.project.split("; ")) if self.project else ()


NOTHING_SAID = Annotations()


def without_markers(text: str) -> str:
    """Return `text` without the markers that close on their own line.

    Where there was one, blanks at the end of every line go as well; lines keep their numbers.
    """
    if "<!--" not in text:
        return text
    without, count = re.subn(_MARKER, "", text)
    return re.sub(_LINE_ENDS, "", without) if count else text


def read_annotations(lines: Sequence[str], path: str) -> Annotations:
    """Return what the raw `lines` of an entry, or of a chunk, of the note `path` say."""
    if not any("<!--" in line for line in lines):
        return NOTHING_SAID
    project = "" if path == "USER.md" else _project("\n".join(lines))
    if path not in CURATED:
        return Annotations(project=project)
    # A comment with text behind it counts for nothing.
    closed = [line for line in lines if line.rstrip(jsstring.WHITESPACE).endswith("-->")]
    written = (jsstring.trim(value) for line in closed for value in re.findall(_IMPORTANCE, line))
    numbers = [int(value) for value in written if re.fullmatch("[0-9]{1,9}", value)]
    importance = max((number for number in numbers if 1 <= number <= MOST_IMPORTANT), default=0)
    triggers = (trigger for line in closed for trigger in re.findall(_TRIGGER, line))
    return Annotations(importance, _joined(_phrases(triggers)), project)


def _phrases(triggers: Iterable[str]) -> list[str]:
    """Return the phrases of triggers, which are parted by commas and semicolons."""
    phrases = (jsstring.trim(phrase) for trigger in triggers for phrase in re.split("[,;]", trigger))
    return list(filter(None, phrases))


def _joined(parts: Iterable[str]) -> str:
    """Return each part once, as annotations are stored."""
    return "; ".join(dict.fromkeys(parts))


def _project(text: str) -> str:
    """Return the project keys of every marker in `text`, or INVALID_PROJECT where one of them cannot be read."""
    keys: list[str] = []
    for marker in re.finditer(_PROJECT, text):
        if _project_flaw(text, marker.end()):
            return INVALID_PROJECT
        keys += map(project_key, _keys(text[marker.end() : text.index("-->", marker.end())]))
    return _joined(keys)


def _keys(text: str) -> list[str]:
    """Return the keys that a project marker names, which semicolons part."""
    return list(map(jsstring.trim, text.split(";")))


def _project_flaw(text: str, start: int) -> str:
    """Return why a project whose keys begin at `start` loses its entry; empty where it counts."""
    end = text.find("-->", start)
    if end < 0:
        return f"it never closes, {_DROPPED}"
    if any(not key or re.search(r"[\r\n<>]", key) for key in _keys(text[start:end])):
        return f"a key is empty, or holds a line break, < or >, {_DROPPED}"
    return ""


_DROPPED = "so OpenClaw never recalls the entry"


def project_key(written: str) -> str:
    """Return the key of a project as it is compared: a path as it stands, else with its host in lower case."""
    if (key := jsstring.trim(written)).startswith("path:"):
        return key
    host, slash, rest = key.partition("/")
    return host.lower() + slash + rest


def origin_class(path: str, ledger: Mapping[str, str]) -> str:
    """Return who a memory file is from: system, what the `ledger` has of it, else agent or untrusted by its path."""
    if path in ("DREAMS.md", "dreams.md") or path.startswith(("memory/dreaming/", "memory/.dreams/")):
        return "system"
    if path in ledger:
        return ledger[path]
    if path in CURATED or (path.startswith("memory/") and path.endswith(".md")):
        return "agent"
    return "agent" if re.fullmatch(r"users/[^/]+/USER\.md", path) else "untrusted"


class Flaw(NamedTuple):
    """An annotation that does not do what it was written for: its line (from 1), and why."""

    line: int
    reason: str


def flaws(text: str, path: str) -> list[Flaw]:
    """Find the annotations in the note `path` that OpenClaw 2026.9 passes over in silence."""
    if "<!--" not in text:
        return []
    result, line_start = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        for marker in re.finditer(_OPENING, line):
            name = marker[1].lower()
            if name == "project" and path == "USER.md":
                reason = "it is not read in USER.md"
            elif name == "project":
                # A project marker may close on another line, so it is looked for in the whole text.
                reason = _project_flaw(text, line_start + marker.end())
            else:
                reason = _flaw(name, line, marker.end(), path)
            if reason:
                result.append(Flaw(number, f"{name}: {reason}"))
        line_start += len(line) + 1
    return result


def _flaw(name: str, line: str, start: int, path: str) -> str:
    """Return why a trigger or an importance whose value begins at `start` has no effect; empty where it has one."""
    end = line.find("-->", start)
    if end < 0:
        return "it does not close on its line, so it has no effect and stays in the text"
    if path not in CURATED:
        return "it counts only in MEMORY.md and USER.md"
    if not line.rstrip(jsstring.WHITESPACE).endswith("-->"):
        return "text follows it on its line, so it has no effect"
    value = jsstring.trim(line[start:end])
    if name == "trigger":
        return "" if _phrases([value]) else "it names no phrase"
    fits = re.fullmatch("[0-9]{1,9}", value) and 1 <= int(value) <= MOST_IMPORTANT
    return "" if fits else f"it is a whole number from 1 to {MOST_IMPORTANT}"


# --- overtaken lines -------------------------------------------------------------------------------------------------


_LEAD = r"^\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?(?:\*\*)?"
_STRUCK = re.compile(rf"{_LEAD}~~(?:(?!~~).)+~~[\s.。|*]*$")
_MARK = re.compile(
    rf"{_LEAD}[(（\[]\s*(?:[^\W\d]{{1,4}}\s)?(?:superseded?|überholt|veraltet|obsoleto|obsolet|已作废|已过时|廃止|устарело)"
    r"(?P<day>[\s:,]*\d{4}-\d\d-\d\d)?[^)）\]]{0,60}[)）\]]\s*",
    re.IGNORECASE,
)


def is_overtaken(line: str) -> bool:
    """Tell whether a line says itself that another one overtook it, or that it is done."""
    return _MARK.match(line) is not None or _STRUCK.match(line) is not None


def overtaken_in(text: str, first: int = 1) -> list[int]:
    """Return the numbers of the overtaken lines in a text whose first line has the number `first`."""
    return [number for number, line in enumerate(text.split("\n"), first) if is_overtaken(line)]


def is_marked(line: str) -> bool:
    """Tell whether a line begins with a mark such as "(superseded 2026-03-08)"."""
    return _MARK.match(line) is not None


def without_mark(line: str) -> str:
    """Return a line without the mark, and without what strikes it through."""
    return _MARK.sub("", line, count=1).replace("~~", "")


def marked(line: str, day: str) -> str:
    """Return a line with the mark of `day` in front of its words."""
    lead = re.match(r"\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?", line)
    start = lead.end() if lead else 0
    return f"{line[:start]}(superseded {day}) {line[start:]}"
