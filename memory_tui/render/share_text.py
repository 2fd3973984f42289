"""Shares in words. They say what each word gives to bm25, and each word or line of a chunk to its cosine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, assert_never

from memory_tui.core import tokens
from memory_tui.core.formatting import signed
from memory_tui.core.sanitize import one_line
from memory_tui.explain import trace_json
from memory_tui.explain.shares import BoostShare, CosineShare, ShareClaim, Shares, WithoutSentence, WordShare
from memory_tui.search.rank import matches

_SHOWN = 6
"""Words and lines of a cosine that are shown; `--json` has all."""
_HEAT = " ▁▂▃▄▅▆▇█"
_WORD = re.compile(r"\S+")
"""A word as the cosine is split: what stands between blanks."""


def share(said: ShareClaim) -> str:
    """What one part gives, with the numbers that make it."""
    match said:
        case WordShare():
            return (
                f"{said.word}  {said.points:.3f} = idf {said.idf:.4f} ({said.holding:,} of {said.chunks:,} chunks) "
                f"x tf {said.tf:.4f} ({said.times}x in {said.length} tokens, mean {said.mean_length:.2f})"
            )
        case BoostShare():
            parts = ((said.asked, "asked"), (said.held, "share of its words"), (said.path, "in path"))
            return f"{said.word}  {said.points:.4f} = {' + '.join(f'{own:.4f} {name}' for own, name in parts if own)}"
        case CosineShare(line=0):
            return f"{said.word}  {signed(said.points, 4)}{f' ({said.times}x)' if said.times > 1 else ''}"
        case CosineShare():
            return f"line {said.line}  {signed(said.points, 4)}"
        case WithoutSentence():
            return f'without line {said.pieces[0][0]} "{one_line(said.text, 40)}"  {signed(-said.points, 4)}'
        case _ as never:
            assert_never(never)


def share_lines(found: Shares) -> Iterator[str]:
    """Both sides of a chunk, part by part, the greatest first; lines with their heat."""
    if found.words:
        yield f"bm25 by word, {sum(one.points for one in found.words):.3f} together:"
        yield from (f"    {share(one)}" for one in found.words)
    if found.boosts:
        yield f"Boost by word, {sum(one.points for one in found.boosts):.4f} together, without that of the length:"
        yield from (f"    {share(one)}" for one in found.boosts)
    if found.tokens:
        yield f"Cosine by word, {sum(one.points for one in found.tokens):.4f} together:"
        yield f"    {'   '.join(share(one) for one in found.tokens[:_SHOWN])}{_more(len(found.tokens))}"
    if found.lines:
        yield "Cosine by line:"
        top = max(one.points for one in found.lines)
        yield from (f"    {heat(one.points, top)} {share(one)}" for one in found.lines[:_SHOWN])
    if found.without:
        yield "Cosine with one sentence left out at a time:"
        top = max(one.points for one in found.without)
        yield from (f"    {heat(one.points, top)} {share(one)}" for one in found.without[:_SHOWN])


def _more(count: int) -> str:
    return f"   and {count - _SHOWN:,} more words" if count > _SHOWN else ""


def heat(points: float, top: float) -> str:
    """One sign for how much a part gives, against the greatest."""
    return _HEAT[0] if top <= 0 or points <= 0 else _HEAT[max(1, round(points / top * (len(_HEAT) - 1)))]


Heat = tuple[int, int, str]
"""A span of a line, and the sign of how much its word gives, against the word that gives most."""


def cosine_heat(line: str, number: int, found: Shares) -> list[Heat]:
    """Where words of `line` stand that raise the cosine by a fifth of the greatest or more, each place by its part.

    Where a cosine does not fall into words it is the sentences of line `number` without which it is lower.
    """
    if found.without:
        most = found.without[0].points
        each_piece = ((one.points, piece) for one in found.without for piece in one.pieces if piece[0] == number)
        said = sorted((first, min(last, len(line)), heat(points, most)) for points, (_, first, last) in each_piece)
        return [one for one in said if one[2] not in _HEAT[:2]]
    each = {one.word: one.points / one.times for one in found.tokens}
    top = max(each.values(), default=0.0)
    signs = ((word.start(), word.end(), heat(each.get(word[0].lower(), 0.0), top)) for word in _WORD.finditer(line))
    return [one for one in signs if one[2] not in _HEAT[:2]]


def bm25_heat(line: str, found: Shares) -> list[Heat]:
    """Where the words of the question stand in `line`, by what they give to bm25."""
    points = {one.word: one.points for one in found.words}
    top = max(points.values(), default=0.0)
    ends = {word.start(): word.end() for word in tokens.WORD.finditer(line)}
    return [(at, ends.get(at, at + len(word)), heat(points[word], top)) for at, word in matches(line, points)]


def share_data(found: Shares) -> dict[str, Any]:
    """The same as JSON-ready data, all of it."""
    return {
        "words": trace_json.plain(found.words),
        "boostByWord": trace_json.plain(found.boosts),
        "cosineByWord": [{"word": one.word, "times": one.times, "points": one.points} for one in found.tokens],
        "cosineByLine": [{"line": one.line, "points": one.points} for one in found.lines],
        "cosineWithoutSentence": trace_json.plain(found.without),
    }
