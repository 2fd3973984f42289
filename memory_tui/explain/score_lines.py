"""Lines of arithmetic show as many digits as it takes to redo them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.search.trace import Candidate

Operation = Literal["+", "x", "=", ""]


class ScoreLine(Struct, frozen=True):
    """One step: `value` is added, multiplied, or the running result; None on lines that only inform."""

    label: str
    detail: str
    operation: Operation = ""
    value: float | None = None
    digits: int = 3

    @property
    def shown(self) -> str:
        """The operation and the value, with as many digits as redoing the sum takes; empty on lines without."""
        if self.value is None:
            return ""
        if self.operation == "+" and self.value < 0:
            return f"- {-self.value:.{self.digits}f}"
        return f"{self.operation or ' '} {self.value:.{self.digits}f}"


def fewest(least: int, fits: Callable[[int], bool]) -> int:
    """The fewest decimals, from `least` on, with which it `fits`."""
    return next((digits for digits in range(least, 10) if fits(digits)), 10)


def rounded(value: float, digits: int) -> float:
    """`value` as it is printed with so many decimals."""
    return float(f"{value:.{digits}f}")


def same(redone: float, shown: float, digits: int) -> bool:
    """Whether what a reader gets is what is shown, once it is rounded."""
    return abs(redone - rounded(shown, digits)) <= 0.5001 * 10.0**-digits


def product_shown(score: float, weight: float, points: float, digits: int) -> tuple[str, str]:
    """`score` and `weight` with the decimals that it takes to get at `points` (of so many `digits`) by multiplying."""
    least = fewest(2, lambda n: abs(rounded(weight, n) - weight) < 1e-4)
    ways = sorted(((n, m) for n in range(3, 10) for m in range(least, 10)), key=lambda way: (sum(way), way[1]))
    n, m = next(((n, m) for n, m in ways if same(rounded(score, n) * rounded(weight, m), points, digits)), (10, 10))
    return f"{score:.{n}f}", f"{weight:.{m}f}"


def made_of(values: Sequence[float], least: int, fits: Callable[[Sequence[float]], bool]) -> list[str]:
    """`values` with the fewest decimals with which what they come to `fits`; tiny ones as powers of ten."""
    most = 9 if max(values) >= 0.01 else 6
    plain = [digits for digits in range(least, most + 1) if max(values) >= 10.0 ** (1 - digits)]
    ways = [f".{digits}f" for digits in plain] + [f".{digits}e" for digits in range(2, 15)]
    shown: list[str] = []
    for way in ways:
        shown = [format(value, way) for value in values]
        if fits([float(text) for text in shown]):
            break
    return shown


def divided(name: str, value: float, best: float, score: str, least: int) -> list[str]:
    """`value` over the `best` one, both with the digits that it takes to get at `score`."""
    digits = len(score.partition(".")[2])
    own, other = made_of((value, best), least, lambda shown: _quotient(shown, float(score), digits))
    return [f"{name} {own}", f"/ best {other} = {score}"]


def lifted(cosine: float, floor: float, score: str) -> list[str]:
    """`cosine` as if one of 0 were `floor`, with the digits that it takes to get at `score`."""
    digits = len(score.partition(".")[2])
    (own,) = made_of((cosine,), 3, lambda shown: same(floor + (1 - floor) * shown[0], float(score), digits))
    return [f"{floor:g} + {1 - floor:g} x cosine {own} = {score}"]


def _quotient(shown: Sequence[float], score: float, digits: int) -> bool:
    return shown[1] > 0 and same(shown[0] / shown[1], score, digits)


def second_lines(candidate: Candidate, digits: int) -> list[ScoreLine]:
    """What the second stage found inside the chunk, and what both stages count; nothing where none ran."""
    part = candidate.second
    share = ScoreLine("base", "share of the first stage", "x", candidate.first_share, digits)
    if part is None:
        beside = "share beside what is added, so that scores end at 1"
        return [] if candidate.first_share == 1.0 else [replace(share, detail=beside)]
    if not part.measures:
        nothing = "not among the first candidates, so the second stage adds nothing"
        return [share, ScoreLine("rerank", nothing, "+", 0.0, digits)]
    score, weight = product_shown(part.score, part.weight, part.points, digits)
    places = len(score.partition(".")[2])
    shown = _added([one.points for one in part.measures], float(score), places)
    how = " with the highest score, so it comes before others" if part.leads else ""
    lines = [ScoreLine("", f"answers the part{how}: {part.asked}")] if part.asked else []
    for one, points in zip(part.measures, shown, strict=True):
        title = _TITLE.get(one.name, one.name)
        if not one.points:
            lines.append(ScoreLine("", f"{title}: nothing"))
            continue
        ratio, own = product_shown(one.share, one.weight, float(points), len(points.partition(".")[2]))
        detail = "  ".join(
            [*divided(f"{title}: {_UNIT[one.name]}", one.value, one.best, ratio, 3), f"x {own} = {points}"]
        )
        lines.append(ScoreLine("", detail))
    first, last = part.window
    where = f"line {part.line}" + (f", lines {first}-{last}" if last > first else "")
    # The sum comes before what it is made of, because a pane of few lines ends there.
    return [
        share,
        ScoreLine("rerank", f"{' + '.join(shown)} = {score}, best at {where}  x {weight}", "+", part.points, digits),
        *lines,
    ]


_TITLE = {"line words": "line words, left-out ones half"}
"""Measures that count more than their name says."""
_UNIT = {
    "line words": "bm25",
    "window meaning": "cosine",
    "letters": "bm25",
    "like words": "share",
}
"""What each measure of the second stage is measured in."""


def _added(values: Sequence[float], total: float, least: int) -> list[str]:
    """`values` with the fewest decimals with which they add up to `total`, which has `least` of them."""
    digits = fewest(least, lambda n: same(sum(rounded(value, n) for value in values), total, least))
    return [f"{value:.{digits}f}" for value in values]


def neighbour_lines(candidate: Candidate, digits: int) -> list[ScoreLine]:
    """What a chunk loses beside a better one of the same note."""
    part = candidate.second
    if part is None or part.beside is None:
        return []
    return [ScoreLine("next to", f"{part.beside.citation}, which scores higher", "+", -part.lost, digits)]
