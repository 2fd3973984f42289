"""The plane shows chunks as points by their vectors, with the hits of a question lit up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from memory_tui.core.sanitize import safe
from memory_tui.tui.draw import fit, fit_path, is_wide, runs
from memory_tui.tui.keymap import bindings

if TYPE_CHECKING:
    from memory_tui.explain.landscape import Landscape

POINT, HIT, FOCUS, QUESTION = "•", "●", "◉", "✱"
MANY = 200
"""Points from which braille is drawn, eight points a cell."""
COLOURS = ("$vector", "$words", "$good", "$mark", "$key", "$bad", "$body", "$quiet")
"""Of groups, in their order."""
_DOTS = np.array(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)))
"""The bits of the dots of a braille cell, row by row."""
TOLD = 5
"""Lines of words below the points."""
NEIGHBOURS = 3
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
        self._drawn: tuple[tuple[int, int, int], dict[tuple[int, int], tuple[str, str]]] | None = None

    def show(self, found: Landscape | None, hits: Mapping[int, int], said: str = WAITING) -> None:
        """Show the points of `found`, or a sentence; the cursor begins at the first hit."""
        first = self.found is None
        self.found, self.hits, self._said = found, hits, said
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
        """The points with the names of their groups, then the one under the cursor in words."""
        found = self.found
        if found is None or self.size.width < 10:
            return Content.styled(f" {self._said}", "$quiet")
        grid = self._grid(found)
        lines = []
        for y in range(self._height):
            row = [grid.get((x, y), (" ", "")) for x in range(self.size.width)]
            lines.append(Content.assemble(*runs(row)))
        lines += [Content.styled(fit(line, self.size.width), style) for line, style in self.words(found)]
        return Content("\n").join(lines)

    def _points(self, found: Landscape) -> dict[tuple[int, int], tuple[str, str]]:
        """The sign and colour of each cell with points; worked out once for a size."""
        width, height = self.size.width, self._height
        if self._drawn is not None and self._drawn[0] == (id(found), width, height):
            return dict(self._drawn[1])
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
        self._drawn = ((id(found), width, height), drawn)
        return dict(drawn)

    def _grid(self, found: Landscape) -> dict[tuple[int, int], tuple[str, str]]:
        grid = self._points(found)
        if found.asked is not None:
            grid[self._cell(*found.asked)] = (QUESTION, "bold $match")
        self._name_groups(found, grid)
        for at in np.flatnonzero(np.isin(found.rowids, list(self.hits))).tolist():
            grid[self._cell(*found.points[at].tolist())] = (HIT, "bold $good")
        grid[self._cell(*found.points[self.at].tolist())] = (FOCUS, "bold reverse")
        return grid

    def _name_groups(self, found: Landscape, grid: dict[tuple[int, int], tuple[str, str]]) -> None:
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

    def words(self, found: Landscape) -> list[tuple[str, str]]:
        """The chunk under the cursor, its group and its nearest in words: the text equal of the picture."""
        place = self._place(found, self.at)
        hit = self.hits.get(int(found.rowids[self.at]))
        group = found.names[int(found.groups[self.at])]
        near = "   ".join(f"{self._place(found, at)} {cosine:.2f}" for at, cosine in found.nearest(self.at, NEIGHBOURS))
        recalled = f"   recalled, place {hit}" if hit else "   not recalled" if self.hits else ""
        return [
            ("─" * self.size.width, "$rule"),
            (f" {FOCUS} {place}{recalled}", "bold"),
            (f"   group: {group or 'no common words'}", ""),
            (f"   most similar: {near}", ""),
            (f"   This plane keeps {found.share:.0%} of the spread of the vectors.", "$quiet"),
        ]

    def _place(self, found: Landscape, at: int) -> str:
        path, first, last = found.places[at]
        return f"{fit_path(safe(path), 28)}:{first}-{last}"

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
            self.at = int(np.argmin(np.where(usable, ahead + 2 * aside, np.inf)))
        self.refresh()

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
        if at is not None and at != self.at:
            self.at = at
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Read the note at the point under the mouse."""
        at = self._under(event)
        if at is not None:
            self.at = at
            self.do_open()
