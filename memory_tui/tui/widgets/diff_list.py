"""What a change does to the notes, line by line, as a list that scrolls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from memory_tui.text.display import safe
from memory_tui.tui.paint import Piece, wrapped
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.curate.diff import DiffLine

MARKS = {"same": (" ", ""), "gone": ("-", "bad"), "new": ("+", "good"), "hunk": ("", "rule"), "file": ("", "head")}


class DiffList(RowList):
    """A unified diff with the numbers of both sides; + and - tell without colour."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self, *, id: str = "diff") -> None:
        super().__init__(id=id)
        self._lines: Sequence[DiffLine] = ()
        self._digits = 1

    def show(self, lines: Sequence[DiffLine]) -> None:
        """Show `lines` from their beginning."""
        self._lines = lines
        self._digits = len(str(max((max(line.old, line.new) for line in lines), default=0)))
        self.rows_changed()
        self.scroll_home(animate=False)

    def count(self) -> int:
        """Lines of the diff."""
        return len(self._lines)

    def key_of(self, _row: int, /) -> Hashable:
        """Lines are looked at, not chosen."""
        return None

    def _parts(self, row: int, width: int) -> list[str]:
        line = self._lines[row]
        end = f"  <{line.end}>" if line.end and line.kind != "same" else ""
        return wrapped(safe(line.text) + end, width - self._margin(row))

    def _margin(self, row: int) -> int:
        return 1 if self._lines[row].kind in ("file", "hunk") else 2 * self._digits + 5

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the text needs."""
        return len(self._parts(row, width))

    def draw(self, row: int, part: int, width: int, /) -> Iterable[Piece]:
        """Numbers before and after, mark and text."""
        line = self._lines[row]
        mark, style = MARKS[line.kind]
        text = self._parts(row, width)[part]
        if line.kind in ("file", "hunk"):
            return [(f" {text}", style)]
        numbers = [str(number or "") if part == 0 else "" for number in (line.old, line.new)]
        return [(f" {numbers[0]:>{self._digits}} {numbers[1]:>{self._digits}} ", "muted"), (f"{mark} {text}", style)]
