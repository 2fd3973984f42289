"""Where the lines of a page begin and end on a screen of some width."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from memory_tui.tui.page import Page
from memory_tui.tui.paint import chop, wrap

WRAPPED = 150_000
"""Cells up to which lines are broken at spaces; in a longer note at the edge, which needs no look at the text."""


class Layout:
    """The rows of a page when each has `room` cells; `extra` rows are drawn above some lines (row to how many)."""

    def __init__(self, page: Page, room: int, extra: Mapping[int, int]) -> None:
        self.page, self.room = page, max(8, room)
        self._exact = sum(page.widths) <= WRAPPED
        self._spans: dict[int, list[tuple[int, int]]] = {}
        heights = self._wrapped() if self._exact else self._estimated()
        for row, more in extra.items():
            if row < len(heights):
                heights[row] += more
        self.tops: list[int] = [0, *accumulate(heights)]

    def _wrapped(self) -> list[int]:
        return [1 if width <= self.room else len(self.spans(row)) for row, width in enumerate(self.page.widths)]

    def _estimated(self) -> list[int]:
        # A wide character that does not fit leaves the last cell empty, hence one cell less where there are any.
        room, lines = self.room, self.page.lines
        return [
            1 if width <= room else -(-width // (room if len(lines[row]) == width else room - 1))
            for row, width in enumerate(self.page.widths)
        ]

    def spans(self, row: int) -> list[tuple[int, int]]:
        """Where the parts of the line `row` begin and end, one a row of the screen."""
        text = self.page.lines[row]
        if self.page.widths[row] <= self.room:
            return [(0, len(text))]
        if row not in self._spans:
            self._spans[row] = list(wrap(text, self.room) if self._exact else chop(text, self.room))
        return self._spans[row]

    def span(self, row: int, part: int) -> tuple[int, int]:
        """Part `part` of the line `row`; empty below its last."""
        spans = self.spans(row)
        end = len(self.page.lines[row])
        return spans[part] if part < len(spans) else (end, end)

    def row_at(self, line: int) -> int:
        """The row of the page that covers `line` of the whole layout."""
        return bisect_right(self.tops, line) - 1
