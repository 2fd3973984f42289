"""The parts of a Markdown text. They are its front matter, its headings, and its prose, neither code nor a comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

_FRONT = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?=\s*\w[\w .-]*:)(?P<fields>(?:(?:\w[\w .-]*:[^\n]*|[ \t][^\n]*|[-#][^\n]*|)\r?\n)*?)"
    r"(?:---|\.\.\.)[ \t]*\r?$",
    re.MULTILINE,
)
_ASIDE = re.compile(
    r"^[ \t]*(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n[\s\S]*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*\r?$|\Z)|\Z)"
    r"|<!--[\s\S]*?(?:-->|\Z))|<!--[^\n]{0,500}?-->",
    re.MULTILINE,
)
_HEADING = re.compile(r"^\ufeff? {0,3}(?P<signs>#{1,6})[ \t]+(?P<title>[^\n]*)", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)+", re.MULTILINE)
_CLOSING = re.compile(r"(?:^|[ \t]+)#+\s*$")
_FIELD = re.compile(r"(?P<indent>[ \t]*)(?P<key>[\w-]+):[ \t]*(?P<value>[^\n]*?)[ \t\r]*$", re.MULTILINE)


class Heading(NamedTuple):
    """A heading on `line` (from 1); `level` is 1 to 6."""

    line: int
    level: int
    title: str


def front_matter(text: str) -> Mapping[str, str]:
    """Return the fields of the front matter of a note; those below `metadata` count where none has their name."""
    fields: dict[str, str] = {}
    inner: dict[str, str] = {}
    above = ""
    front = _FRONT.match(text)
    for field in _FIELD.finditer(front["fields"]) if front else ():
        if not field["indent"]:
            above = field["key"]
        elif above != "metadata":
            continue
        (inner if field["indent"] else fields).setdefault(field["key"], field["value"].strip("\"'"))
    return {**inner, **fields}


def prose(text: str) -> str:
    """Return `text` with blanks for its front matter, fenced code and comments; what is left keeps its place."""
    front = _FRONT.match(text)
    start = front.end() if front else 0
    return _blank(text[:start]) + _ASIDE.sub(lambda aside: _blank(aside[0]), text[start:])


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def headings(text: str) -> list[Heading]:
    """Return the headings of a note in order."""
    rows: list[Heading] = []
    line, seen, text = 1, 0, prose(text)
    for match in _HEADING.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        rows.append(Heading(line, len(match["signs"]), _CLOSING.sub("", match["title"]).strip()))
    return rows


def together(text: str) -> list[tuple[int, int]]:
    """Return the first and last line of each run that is read as a whole: a fence, a comment, a table."""
    spans = sorted(match.span() for match in chain(_ASIDE.finditer(text), _TABLE.finditer(text)))
    return [(text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1) for start, end in spans]


def heading_on(line: str) -> str | None:
    """Return the words of the heading that a line is; None for any other line."""
    match = _HEADING.match(line)
    return _CLOSING.sub("", match["title"]).strip() if match else None
