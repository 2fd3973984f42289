"""The panes beside a note. They show its state, recalls and links, and the lines of a change."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.sanitize import safe
from memory_tui.tui.draw import Piece, wrapped
from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_info import Statement, Target
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.notes.diff import DiffLine

LABEL = 10


def _is_sign(row: Statement) -> bool:
    """Whether the row is about a link, which a sign tells."""
    return len(row.label) == 1


class AboutPane(RowList):
    """Statements, and links that enter follows."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("about"))
    PLACES: ClassVar[tuple[str, ...]] = ("about", "list")

    def __init__(self) -> None:
        super().__init__(id="about")
        self.border_title = "About"
        self._rows: Sequence[Statement] = ()

    def show(self, rows: Sequence[Statement]) -> None:
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


MARKS = {"same": (" ", ""), "gone": ("-", "bad"), "new": ("+", "good"), "hunk": ("", "rule"), "file": ("", "head")}


_HUNK = re.compile(r"@@ -(\d+)")


def shown_text(line: DiffLine) -> str:
    """The text of a line of a difference; where a part begins, the number of its first line."""
    reply = _HUNK.match(line.text) if line.kind == "hunk" else None
    return f"╌╌ line {max(1, int(reply[1]))}" if reply is not None else safe(line.text)


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
        return wrapped(shown_text(line) + end, width - self._margin(row))

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
