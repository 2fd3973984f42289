"""The parts of a Markdown text. They are its front matter, its headings, and its prose, neither code nor a comment."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

_FRONT = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?=\s*\w[\w .-]*:)(?P<fields>(?:(?:\w[\w .-]*:[^\n]*|[ \t][^\n]*|[-#][^\n]*|)\r?\n)*?)"
    r"(?:---|\.\.\.)[ \t]*\r?$",
    re.MULTILINE,
)
# A pattern that begins with a line end is looked for twenty times as quickly as one with "^": nothing else runs
# meanwhile, and a note may have 30 MB. So a line end stands before the text that these go over.
_ASIDE = re.compile(
    r"\n[ \t]*(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n(?![ \t]*(?P=fence)[`~]*[ \t]*\r?$)[^\n]*)*+(?:\n[^\n]*)?"
    r"|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?)|<!--[^\n]{0,500}?-->",
    re.MULTILINE,
)
_HEADING = re.compile(r"\n\ufeff? {0,3}(?P<signs>#{1,6})[ \t]+(?P<title>[^\n]*)")
_TABLE = re.compile(r"\n[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)+")
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
    return _blank(text[:start]) + _ASIDE.sub(lambda aside: _blank(aside[0]), f"\n{text[start:]}")[1:]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]+", lambda line: " " * len(line[0]), text)


def _lines(text: str) -> tuple[str, list[int]]:
    """Return `text` with a line end before each line, and where those are."""
    return (text := f"\n{text}"), [match.start() for match in re.finditer("\n", text)]


def headings(text: str) -> list[Heading]:
    """Return the headings of a note in order."""
    text, ends = _lines(prose(text))
    return [
        Heading(bisect(ends, match.start()), len(match["signs"]), _CLOSING.sub("", match["title"]).strip())
        for match in _HEADING.finditer(text)
    ]


def together(text: str) -> list[tuple[int, int]]:
    """Return the first and last line of each run that is read as a whole: a fence, a comment, a table."""
    text, ends = _lines(text)
    spans = sorted(match.span() for match in chain(_ASIDE.finditer(text), _TABLE.finditer(text)))
    return [(bisect(ends, start), bisect(ends, end - 1)) for start, end in spans]


def heading_on(line: str) -> str | None:
    """Return the words of the heading that a line is; None for any other line."""
    match = _HEADING.match(f"\n{line}")
    return _CLOSING.sub("", match["title"]).strip() if match else None
