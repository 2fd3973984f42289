"""A list of ready-made lines: reports, tables and pickers write them, the cursor stands on those about something."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import ClassVar

from textual.content import Content

from memory_tui.tui.paint import Piece, wrap
from memory_tui.tui.widgets.rowlist import RowList

Line = tuple[list[Piece], Hashable]
"""A line and what it is about; the cursor skips lines about nothing (None)."""

Write = Callable[[int], Sequence[Line]]
"""Writes the lines for a width in cells."""


def text(words: str, width: int, style: str = "", indent: int = 1) -> list[Line]:
    """`words` as lines about nothing, wrapped and set in."""
    room = max(8, width - indent - 1)
    return [([(" " * indent, ""), (words[start:end], style)], None) for start, end in wrap(words, room)]


class Rows(RowList):
    """Lines that `write` makes for the present width."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._write: Write = lambda _width: ()
        self._lines: Sequence[Line] = ()

    def show(self, write: Write, title: str, subtitle: str = "") -> None:
        """Show what `write` makes; the cursor stays on what it is about."""
        key, self._write = self.key, write
        self.name_frame(Content(title), Content(subtitle))
        self.rows_changed(key)

    def lay_out(self, width: int) -> None:
        """Write the lines for this width."""
        self._lines = self._write(width)
        super().lay_out(width)

    def count(self) -> int:
        """Lines."""
        return len(self._lines)

    def key_of(self, row: int, /) -> Hashable:
        """What the line is about."""
        return self._lines[row][1]

    def draw(self, row: int, _line: int, _width: int, /) -> Iterable[Piece]:
        """One line."""
        return self._lines[row][0]
