"""Beside the reader: state, size and age of the note, how often it was recalled, and its links both ways."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

from textual.binding import BindingType

from memory_tui.tui.about import Row, Target
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import Piece, wrapped
from memory_tui.tui.widgets.rowlist import RowList

LABEL = 10


def _is_sign(row: Row) -> bool:
    """Whether the row is about a link, which a sign tells."""
    return len(row.label) == 1


class AboutPane(RowList):
    """Statements, and links that enter follows."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("about"))
    PLACES: ClassVar[tuple[str, ...]] = ("about", "list")

    def __init__(self) -> None:
        super().__init__(id="about")
        self.border_title = "About"
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Tell `rows`; the cursor stays where it was."""
        if rows != self._rows:
            self._rows = rows
            self.rows_changed(self.cursor)

    @property
    def target(self) -> Target | None:
        """Where the link under the cursor leads."""
        return self._rows[self.cursor].target if 0 <= self.cursor < len(self._rows) else None

    def count(self) -> int:
        """Statements and links."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """Its place; titles are skipped."""
        return None if self._rows[row].head else row

    def opens_at_once(self, row: int, /) -> bool:
        """A click follows a link."""
        return self._rows[row].target is not None

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        return len(self._lines(row, width)) + (1 if self._rows[row].head and row else 0)

    def _lines(self, row: int, width: int) -> list[str]:
        item = self._rows[row]
        return wrapped(item.words, width - (3 if _is_sign(item) or item.head else LABEL))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Label and words."""
        item = self._rows[row]
        if item.head:
            at = line - (1 if row else 0)
            return [(self._lines(row, width)[at] if at >= 0 else "", "head")]
        margin = 2 if _is_sign(item) else LABEL - 1
        label = item.label if line == 0 else ""
        return [(f"{label:<{margin}}", "muted"), (self._lines(row, width)[line], item.style)]
