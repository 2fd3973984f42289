"""A quote shows lines of a note. It marks the matched words, the nearest sentence and the line that was asked about."""

from __future__ import annotations

from collections.abc import Iterator

from memory_tui.core.errors import ProviderError
from memory_tui.core.sanitize import safe
from memory_tui.explain.matched_words import MatchedWords, Span, nearest_sentence
from memory_tui.tui.draw import Piece, marked, wrap

MOST = 40
"""Lines that are quoted."""
AROUND = 12
"""Lines that are quoted before a line that was asked about."""
SIDES = {"asked": ("▌ ", "mark"), "nearest": ("┃ ", "vector"), "": ("│ ", "rule")}
"""The sign before a line: it was asked about, its sentence is the nearest to the query by meaning, or neither."""


def quote_rows(
    text: str, first: int, width: int, words: MatchedWords, query: str, asked: int | None = None
) -> Iterator[list[Piece]]:
    """`text`, whose lines begin with number `first` in the note, in rows of `width` cells, around line `asked`."""
    shown = safe(text, keep_newlines=True)
    lines = shown.split("\n")
    near = nearest(query, shown)
    start = 0 if asked is None else max(0, asked - first - AROUND)
    at = sum(len(line) + 1 for line in lines[:start])
    for number, line in enumerate(lines[start : start + MOST], first + start):
        spans = words.spans(line)
        for begin, end in wrap(line, width - 2):
            is_near = near is not None and at + begin < near[1] and at + end > near[0]
            side = SIDES["asked" if number == asked else "nearest" if is_near else ""]
            own = [(max(begin, a) - begin, min(end, b) - begin) for a, b in spans if a < end and b > begin]
            yield [side, *marked(line[begin:end], own, "strong" if number == asked else "")]
        at += len(line) + 1
    if near is not None and asked is None:
        yield [("┃ the sentence nearest to the query, by meaning", "muted")]


def nearest(query: str, text: str) -> Span | None:
    """The sentence of `text` that is nearest to `query`; None where the table of the built-in model cannot be read."""
    try:
        return nearest_sentence(query, text)
    except ProviderError:
        return None
