"""A quote shows lines of a note. It marks the matched words, the nearest sentence and the line that was asked about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len

from memory_tui.core.errors import ProviderError
from memory_tui.core.sanitize import safe
from memory_tui.explain.matched_words import MatchedWords, Span, nearest_sentence
from memory_tui.tui.draw import Piece, marked, wrap

if TYPE_CHECKING:
    from memory_tui.explain.shares import Shares

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


def heat_rows(text: str, first: int, width: int, found: Shares) -> Iterator[list[Piece]]:
    """`text` with what each word gives to the cosine and to bm25: as shades, and as bars below, for who sees none.

    Under "w/o" stands what the cosine loses without a sentence.
    """
    for number, line in enumerate(safe(text, keep_newlines=True).split("\n")[:MOST], first):
        label = f"{number:>{_MARGIN - 1}} "
        heat = LineHeat(line, number, found)
        for begin, end in wrap(line, width - _MARGIN):
            yield [(label, "muted"), *_shaded(line, begin, end, heat.shades)]
            label = " " * _MARGIN
            for name, bars in heat.bars(begin, end):
                yield [(f"{name:>{_MARGIN - 1}} ", "muted"), bars]


class LineHeat:
    """What each word of a line gives to the cosine, as `shades`, and to both sides, as bars below a part of it."""

    def __init__(self, line: str, number: int, found: Shares) -> None:
        from memory_tui.render.share_text import bm25_heat, cosine_heat

        self._line = line
        cosine = "w/o" if found.without else "cos"
        self._sides = ((cosine, cosine_heat(line, number, found), "vector"), ("bm25", bm25_heat(line, found), "text"))
        shown = self._sides[0][1] if found.tokens or found.without else self._sides[1][1]
        self.shades = [(a, b, _SHADES[sign]) for a, b, sign in shown]

    def bars(self, begin: int, end: int) -> Iterator[tuple[str, Piece]]:
        """The side and its bars, of each that has any below the characters from `begin` to `end`."""
        for name, spans, style in self._sides:
            if own := [(a, b, sign) for a, b, sign in spans if a < end and b > begin]:
                yield name, (_bars(self._line, begin, end, own), style)


_MARGIN = 6
_SHADES = dict(zip("▁▂▃▄▅▆▇█", ("", "heat1", "heat1", "heat1", "heat2", "heat2", "heat3", "heat3"), strict=True))
"""The shade for each sign of heat."""


def _shaded(line: str, begin: int, end: int, shades: list[tuple[int, int, str]]) -> Iterator[Piece]:
    at = begin
    for a, b, style in shades:
        if a < end and b > begin:
            yield line[at : max(a, begin)], ""
            yield line[max(a, begin) : min(b, end)], style
            at = min(b, end)
    yield line[at:end], ""


def _bars(line: str, begin: int, end: int, spans: list[tuple[int, int, str]]) -> str:
    """The signs of `spans` in the cells that their words have above."""
    found, at = "", begin
    for a, b, sign in spans:
        a, b = max(a, begin, at), min(b, end)
        if a < b:
            found += " " * cell_len(line[at:a]) + sign * cell_len(line[a:b])
            at = b
    return found


def nearest(query: str, text: str) -> Span | None:
    """The sentence of `text` that is nearest to `query`; None where the table of the built-in model cannot be read."""
    try:
        return nearest_sentence(query, text)
    except ProviderError:
        return None
