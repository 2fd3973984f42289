"""The plane shows chunks as points by their vectors, with the hits of a question lit up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from memory_tui.core.sanitize import safe
from memory_tui.tui.draw import Piece, fit, fit_path, is_wide, runs, strip
from memory_tui.tui.keymap import bindings

if TYPE_CHECKING:
    from memory_tui.explain.landscape import Landscape

POINT, HIT, FOCUS, QUESTION = "•", "●", "◉", "✱"
MANY = 200
"""Points from which braille is drawn, eight points a cell."""
COLOURS = ("$vector", "$words", "$good", "$bad", "$body", "$quiet", "$key", "$mark")
"""Of groups, in their order; themes with one colour for vector and key, or words and mark, repeat the last two."""
_DOTS = np.array(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)))
"""The bits of the dots of a braille cell, row by row."""
TOLD = 5
"""Lines of words below the points."""
NEIGHBOURS = 3
SIMILAR = "   most similar: "
LONG_PATH, SHORT_PATH = 28, 17
"""Cells from which there is room for long paths of what is similar; cells of such paths, and of others."""
WAITING = "Placing the chunks by their vectors ..."


class Plane(Widget, can_focus=True):
    """Points; the cursor stands on one of them."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("plane"))
    PLACES: ClassVar[tuple[str, ...]] = ("plane",)

    class Opened(Message):
        """The chunk under the cursor is wanted: path, first and last line."""

        def __init__(self, place: tuple[str, int, int]) -> None:
            super().__init__()
            self.place = place

    def __init__(self) -> None:
        super().__init__(id="plane")
        self.found: Landscape | None = None
        self.hits: Mapping[int, int] = {}
        """Place of each hit of the question, by rowid."""
        self.at = 0
        self._said = WAITING
        self._cells: dict[tuple[int, int], int] = {}
        self._laid_out: tuple[int, int, Style] | None = None
        """Width, height and style that the rows are drawn for."""
        self._grid: dict[tuple[int, int], Piece] = {}
        self._strips: dict[int, Strip] = {}
        self._words: list[Piece] = []
        self._styles: dict[str, Style] = {}

    def show(self, found: Landscape | None, hits: Mapping[int, int], said: str = WAITING) -> None:
        """Show the points of `found`, or a sentence; the cursor begins at the first hit."""
        first = self.found is None
        self.found, self.hits, self._said = found, hits, said
        self._laid_out = None
        if found is not None:
            self.at = min(self.at, len(found.rowids) - 1)
            if first and hits:
                self.at = min(range(len(found.rowids)), key=lambda at: hits.get(int(found.rowids[at]), len(hits) + 1))
            groups = len(found.names)
            self.border_title = f"Plane of {len(found.rowids):,} chunks, {groups} groups"
            self.border_subtitle = f"{HIT} recalled  {POINT} other  {QUESTION} question  {FOCUS} in focus"
        self.refresh()

    # --- drawing -------------------------------------------------------------------------------------------------

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        width, height = self.size.width - 1, self._height - 1
        return round((x + 1) / 2 * width), round((1 - y) / 2 * height)

    @property
    def _height(self) -> int:
        return max(3, self.size.height - TOLD)

    def render(self) -> Content:
        """The sentence that stands here while there are no points."""
        return Content.styled(f" {self._said}", "$quiet")

    def notify_style_update(self) -> None:
        """Styles may have changed with the theme."""
        self._forget()
        super().notify_style_update()

    def _forget(self) -> None:
        self._styles.clear()
        self._strips.clear()
        self._laid_out = None

    def _style_of(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = VisualStyle.parse(name, self.app.theme_variables).rich_style
        return self._styles[name]

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines to draw. Rows of the picture are kept: a step of the cursor draws two of them anew."""
        found = self.found
        if found is not None:
            known = (self.size.width, self._height, self.rich_style)
            if known != self._laid_out:
                self._forget()
                self._laid_out = known
                self._grid = self._lit(found)
            self._words = self.words(found)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """A row of points, or one of the lines about the one under the cursor."""
        found, width = self.found, self.size.width
        if found is None or width < 10:
            return super().render_line(y)
        base = self.rich_style
        if y >= self._height:
            told = self._words[y - self._height : y - self._height + 1]
            return strip([(fit(text, width), style) for text, style in told], width, base, self._style_of)
        column, row = self._cell(*found.points[self.at].tolist())
        if y == row:
            cells = [*self._row(y)]
            cells[column] = (FOCUS, "bold reverse")
            return strip(runs(cells), width, base, self._style_of)
        if y not in self._strips:
            self._strips[y] = strip(runs(self._row(y)), width, base, self._style_of)
        return self._strips[y]

    def _row(self, y: int) -> list[Piece]:
        return [self._grid.get((x, y), (" ", "")) for x in range(self.size.width)]

    def _points(self, found: Landscape) -> dict[tuple[int, int], Piece]:
        """The sign and colour of each cell with points."""
        width, height = self.size.width, self._height
        across, down = (found.points[:, 0] + 1) / 2 * (width - 1), (1 - found.points[:, 1]) / 2 * (height - 1)
        keys = np.rint(down).astype(np.int64) * width + np.rint(across).astype(np.int64)
        dots = np.zeros(width * height, np.int64)
        np.bitwise_or.at(dots, keys, _DOTS[np.rint(down * 4).astype(int) % 4, np.rint(across * 2).astype(int) % 2])
        cells, first = np.unique(keys, return_index=True)
        many = len(keys) > MANY
        drawn = {}
        for key, at in zip(cells.tolist(), first.tolist(), strict=True):
            sign = chr(0x2800 + int(dots[key])) if many else POINT
            drawn[key % width, key // width] = (sign, COLOURS[int(found.groups[at]) % len(COLOURS)])
        self._cells = {(key % width, key // width): at for key, at in zip(cells.tolist(), first.tolist(), strict=True)}
        return drawn

    def _lit(self, found: Landscape) -> dict[tuple[int, int], Piece]:
        """The sign and style of each cell: points, the names of their groups, the question and its hits."""
        grid = self._points(found)
        if found.asked is not None:
            grid[self._cell(*found.asked)] = (QUESTION, "bold $match")
        self._name_groups(found, grid)
        for at in np.flatnonzero(np.isin(found.rowids, list(self.hits))).tolist():
            grid[self._cell(*found.points[at].tolist())] = (HIT, "bold $good")
        return grid

    def _name_groups(self, found: Landscape, grid: dict[tuple[int, int], Piece]) -> None:
        """Write the name of each group over its middle, where no point is."""
        for group, name in enumerate(found.names):
            own = found.points[found.groups == group] if name else found.points[:0]
            if not len(own):
                continue
            x, y = self._cell(float(own[:, 0].mean()), float(own[:, 1].max()))
            signs = [part for sign in name for part in ((sign, "") if is_wide(sign) else (sign,))]
            start = max(0, min(x - len(signs) // 2, self.size.width - len(signs)))
            for row in (y - 1, y + 1, y - 2, y + 2):
                cells = [(start + at, row) for at in range(len(signs))]
                if 0 <= row < self._height and not any(cell in grid for cell in cells):
                    grid.update({cell: (sign, "italic $quiet") for cell, sign in zip(cells, signs, strict=True)})
                    break

    def words(self, found: Landscape) -> list[Piece]:
        """The chunk under the cursor, its group and as many of its nearest as fit: the text equal of the picture."""
        place = self._place(found, self.at)
        hit = self.hits.get(int(found.rowids[self.at]))
        group = found.names[int(found.groups[self.at])]
        nearest = found.nearest(self.at, NEIGHBOURS)
        # Folder and lines are left out before one of the nearest is.
        for room, lines in ((LONG_PATH, True), (SHORT_PATH, True), (SHORT_PATH, False)):
            near = [f"{self._place(found, at, room, lines=lines)} {cosine:.2f}" for at, cosine in nearest]
            if cell_len(SIMILAR + "   ".join(near)) <= self.size.width:
                break
        while len(near) > 1 and cell_len(SIMILAR + "   ".join(near)) > self.size.width:
            near.pop()
        recalled = f"   recalled, place {hit}" if hit else "   not recalled" if self.hits else ""
        return [
            ("─" * self.size.width, "$rule"),
            (f" {FOCUS} {place}{recalled}", "bold"),
            (f"   group: {group or 'no common words'}", ""),
            (SIMILAR + "   ".join(near), ""),
            (f"   Two axes show {found.share:.0%} of how chunks differ; the rest is not seen here.", "$quiet"),
        ]

    def _place(self, found: Landscape, at: int, room: int = LONG_PATH, *, lines: bool = True) -> str:
        path, first, last = found.places[at]
        return fit_path(safe(path), room) + (f":{first}-{last}" if lines else "")

    # --- going about ---------------------------------------------------------------------------------------------

    def _towards(self, across: int, down: int) -> None:
        """The nearest point in a direction; what lies aside counts as twice as far."""
        found = self.found
        if found is None:
            return
        away = found.points - found.points[self.at]
        ahead = away[:, 0] * across - away[:, 1] * down
        aside = np.abs(away[:, 0] * down) + np.abs(away[:, 1] * across)
        usable = (ahead > 0) & (ahead >= aside / 2)
        if usable.any():
            self._go(found, int(np.argmin(np.where(usable, ahead + 2 * aside, np.inf))))

    def _go(self, found: Landscape, at: int) -> None:
        """Put the cursor on a point, and draw the rows that it leaves and enters, and what is said of it."""
        rows = {self._cell(*found.points[one].tolist())[1] for one in (self.at, at)}
        self.at = at
        self.refresh(*(Region(0, y, self.size.width, 1) for y in (*rows, *range(self._height, self.size.height))))

    def do_left(self) -> None:
        """The nearest chunk to the left."""
        self._towards(-1, 0)

    def do_right(self) -> None:
        """The nearest chunk to the right."""
        self._towards(1, 0)

    def do_down(self) -> None:
        """The nearest chunk below."""
        self._towards(0, 1)

    def do_up(self) -> None:
        """The nearest chunk above."""
        self._towards(0, -1)

    def do_open(self) -> None:
        """Read the note at this chunk."""
        if self.found is not None:
            self.post_message(self.Opened(self.found.places[self.at]))

    def _under(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        near = [(abs(x - offset.x) + 2 * abs(y - offset.y), at) for (x, y), at in self._cells.items()]
        distance, at = min(near, default=(99, 0))
        return at if distance <= 2 else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The point under the mouse is in focus."""
        at = self._under(event)
        if self.found is not None and at is not None and at != self.at:
            self._go(self.found, at)

    def on_click(self, event: events.Click) -> None:
        """Read the note at the point under the mouse."""
        at = self._under(event)
        if at is not None:
            self.at = at
            self.do_open()
