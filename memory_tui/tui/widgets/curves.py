"""Curves are plotted in braille. They have thresholds, an axis, and words that say the same."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from textual.content import Content
from textual.widget import Widget

from memory_tui.tui.draw import fit, runs

Point = tuple[float, float]
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of a braille dot by row and column of its cell."""
LEFT = 6
"""Cells of the scale at the left."""
MOST = 4
"""Curves in one picture; more cannot be told apart."""
LEAST_ROWS = 5
"""Rows of a plot, before words are left out for them."""
STYLES = ("$vector", "$words", "$added", "$mark")


class Curve(Struct, frozen=True):
    """A curve through `points`, whose x is a share of the axis; `sign` is a letter that is written on it."""

    points: Sequence[Point]
    sign: str = ""


class Picture(Struct, frozen=True):
    """Some curves over one axis.

    `ticks` are shares of the axis with their words, `level` a height with its words, `here` a share and a height that
    are marked with words. `words` say what the picture shows.
    """

    curves: Sequence[Curve]
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    words: Sequence[str]
    level: tuple[float, str] | None = None
    here: tuple[float, float, str] | None = None


Cells = dict[tuple[int, int], tuple[str, str]]


def dotted(points: Sequence[Point], width: int, height: int, low: float, high: float) -> dict[tuple[int, int], int]:
    """The braille dots of a curve as bits, by column and row of cells."""
    across, down = width * 2 - 1, height * 4 - 1
    span = (high - low) or 1.0
    at = [(round(x * across), round((1 - (min(max(y, low), high) - low) / span) * down)) for x, y in points]
    found: dict[tuple[int, int], int] = {}
    for (x, y), (to_x, to_y) in zip(at, at[1:] or at, strict=False):
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(steps + 1):
            dot_x, dot_y = round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps)
            cell = dot_x // 2, dot_y // 4
            found[cell] = found.get(cell, 0) | _DOTS[dot_y % 4][dot_x % 2]
    return found


class Curves(Widget):
    """One picture; empty until there is one."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.picture: Picture | None = None
        self._stale = False

    def show(self, picture: Picture | None, title: str, *, stale: bool = False) -> None:
        """Show `picture`, faint where it is `stale`; nothing without one."""
        self.border_title = title
        if (picture, stale) != (self.picture, self._stale):
            self.picture, self._stale = picture, stale
            self.refresh()

    def render(self) -> Content:
        """Scale, curves, axis, words."""
        picture, width = self.picture, self.size.width
        if picture is None:
            return Content("")
        # A list below says the rest where the picture would get too low.
        shown = picture.words[: max(1, self.size.height - LEAST_ROWS - 1)]
        words = [Content(fit(f" {line}", width)) for line in shown]
        height = self.size.height - len(words) - 1
        if height < 2 or width < LEFT + 12:
            return Content("\n").join(words)
        cells = self._cells(picture, width - LEFT, height)
        rows = []
        for y in range(height):
            value = picture.high - (picture.high - picture.low) * y / (height - 1)
            mark = f"{value:5.2f} " if y in (0, height - 1) else " " * LEFT
            row = [cells.get((x, y), (" ", "")) for x in range(width - LEFT)]
            rows.append(Content.assemble((f"{mark[:-1]}┤", "$quiet"), *runs(row)))
        return Content("\n").join([*rows, Content.styled(_axis(picture, width), "$quiet"), *words])

    def _cells(self, picture: Picture, width: int, height: int) -> Cells:
        span = (picture.high - picture.low) or 1.0

        def row(value: float) -> int:
            return min(height - 1, max(0, round((picture.high - value) / span * (height - 1))))

        cells: Cells = {}
        if picture.level is not None:
            y, label = row(picture.level[0]), f" {picture.level[1]} "
            cells |= {(x, y): ("╌", "$bad") for x in range(width)}
            begin = max(0, width - len(label) - 2)
            cells |= {(begin + at, y): (sign, "$bad") for at, sign in enumerate(label[:width])}
        for number, curve in enumerate(picture.curves[:MOST]):
            style = "$faint" if self._stale else STYLES[number]
            dots = dotted(curve.points, width, height, picture.low, picture.high)
            cells |= {cell: (chr(0x2800 + bits), style) for cell, bits in dots.items()}
        for number, curve in enumerate(picture.curves[:MOST]):
            style = "$faint" if self._stale else STYLES[number]
            if curve.sign and curve.points:
                x, value = curve.points[min(len(curve.points) - 1, (number + 1) * len(curve.points) // 12)]
                cells[min(width - 1, round(x * (width - 1))), row(value)] = (curve.sign, f"bold {style}")
        if picture.here is not None:
            share, value, label = picture.here
            x, y = round(share * (width - 1)), row(value)
            cells[x, y] = ("◉", "bold reverse")
            begin = x + 2 if x + 3 + len(label) < width else max(0, x - 2 - len(label))
            below = y + 1 if y + 1 < height else y - 1
            cells |= {(begin + at, below): (sign, "bold") for at, sign in enumerate(label[: width - begin])}
        return cells


def _axis(picture: Picture, width: int) -> str:
    """The words of the ticks where they stand; one that has no room is left out."""
    line, end = [" "] * width, LEFT
    for share, words in picture.ticks:
        x = LEFT + round(share * (width - LEFT - 1))
        x = min(x, width - len(words))
        if x >= end:
            line[x : x + len(words)] = words
            end = x + len(words) + 2
    return "".join(line)
