"""Markdown as it is typed: which parts of one line are marks, headings, code or links. Nothing is hidden or moved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from memory_tui.tui.paint import Piece

Mark = tuple[int, int, str]
"""First and last character of a part (the last not included), and its style."""

_HEAD = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_QUOTE = re.compile(r"\s{0,3}>")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_TABLE = re.compile(r"\s*\|.*\|\s*$")
_BEGIN = re.compile(r"\s*(?P<mark>[-*+]|\d{1,9}[.)])\s(?:(?P<box>\[[ xX]\])(?=\s))?")
_INLINE = re.compile(
    r"(?P<code>`+)(?P<in_code>.+?)(?P=code)(?!`)"
    r"|(?P<wiki>\[\[[^\[\]]+\]\])"
    r"|!?\[(?P<label>[^\[\]]*)\]\((?P<target>[^()\s]+)(?:\s[^()]*)?\)"
    r"|(?P<url>https?://[^\s<>)\]]+)"
    r"|(?P<strong>\*\*(?=\S).+?(?<=\S)\*\*|__(?=\S).+?(?<=\S)__)"
    r"|(?P<emphasis>(?<![\w*])\*(?=[^\s*]).+?(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\s_]).+?(?<=[^\s_])_(?!\w))"
    r"|(?P<comment><!--.*?-->)"
    r"|(?P<tag>(?<![\w#&])#[^\W\d_][\w/-]*)"
)
_STYLES = {
    "code": "code",
    "wiki": "link",
    "label": "link",
    "url": "link",
    "strong": "strong",
    "emphasis": "emphasis",
    "comment": "muted",
    "tag": "mark",
}

LOOKED_AT = 2000
"""Characters of a line that are looked at; the rest of a longer one is drawn plain."""


@lru_cache(maxsize=4096)
def marks(line: str, in_code: bool = False) -> tuple[Mark, ...]:
    """The parts of `line` that are drawn in a style, in order and apart from each other."""
    if in_code:
        return ((0, len(line), "code"),)
    if _HEAD.match(line):
        return ((0, len(line), "head"),)
    if _QUOTE.match(line):
        return ((0, len(line), "muted"),)
    if _RULE.match(line):
        return ((0, len(line), "rule"),)
    return tuple(_parts(line[:LOOKED_AT]))


def _parts(line: str) -> Iterator[Mark]:
    at = 0
    if begin := _BEGIN.match(line):
        yield *begin.span("mark"), "mark"
        if begin["box"]:
            yield *begin.span("box"), "good" if begin["box"] != "[ ]" else "warn"
        at = begin.end()
    table = bool(_TABLE.match(line))
    for found in _INLINE.finditer(line, at):
        if table:
            yield from _bars(line, at, found.start())
        kind = next(name for name in _STYLES if found[name] is not None)
        yield *found.span(), _STYLES[kind]
        at = found.end()
    if table:
        yield from _bars(line, at, len(line))


def _bars(line: str, start: int, end: int) -> Iterator[Mark]:
    for at in range(start, end):
        if line[at] == "|":
            yield at, at + 1, "rule"


def overlaid(text: str, first: int, layers: Sequence[Sequence[Mark]]) -> Iterator[Piece]:
    """`text`, which begins at character `first` of its line, as pieces; where marks meet, those of later layers win."""
    last = first + len(text)
    cuts = {first, last}
    kept = [[mark for mark in layer if mark[0] < last and mark[1] > first] for layer in layers]
    for layer in kept:
        for start, end, _ in layer:
            cuts |= {max(start, first), min(end, last)}
    at = sorted(cuts)
    for start, end in pairwise(at):
        name = next((name for layer in reversed(kept) for begin, finish, name in layer if begin <= start < finish), "")
        yield text[start - first : end - first], name
