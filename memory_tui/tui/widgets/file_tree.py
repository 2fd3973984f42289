"""The file tree lists notes in groups, each with its state, age, size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from memory_tui.core.sanitize import safe
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_page import ABSENT, Group, beside, groups
from memory_tui.tui.state import Aging, age_word, effect_word, size_word
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.engine.status import FileRow

SIGNS = {
    "fresh": ("✓", "good"),
    "new": ("+", "warn"),
    "changed": ("~", "warn"),
    "deleted": ("-", "warn"),
    "rebuild": ("~", "warn"),
    "failed": ("!", "bad"),
    "missing root": ("?", "bad"),
    "gone": ("?", "bad"),
    "unreadable": ("?", "bad"),
    "another device": ("?", "bad"),
    "watcher stalled": ("!", "bad"),
    ABSENT: ("○", "muted"),
}
"""The glyph and style of each state; the word stands beside it."""


def state_word(row: FileRow) -> str:
    """The state in one word: what is pending says how."""
    return row.detail if row.state == "pending" and row.detail in SIGNS else row.state


class FileTree(RowList):
    """Groups that fold, and the files in them."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("tree"))
    PLACES: ClassVar[tuple[str, ...]] = ("tree", "list")

    def __init__(self) -> None:
        super().__init__(id="tree")
        self.border_title = "Notes"
        self._groups: list[Group] = []
        self._open: dict[str, bool] = {}
        self._filter = ""
        self._rows: list[Group | FileRow] = []
        self._shown: tuple[Sequence[FileRow], date] | None = None
        self._aging: Aging | None = None

    def show(self, rows: Sequence[FileRow], today: date, aging: Aging) -> None:
        """List `rows` as of `today`; folds and cursor stay."""
        self._aging = aging
        if self._shown == (rows, today):
            return
        first = self._shown is None
        self._shown = (rows, today)
        self._groups = groups(rows, today)
        newest = next((g.key for g in self._groups if g.key[:2] in ("19", "20")), "")
        for group in self._groups:
            self._open.setdefault(
                group.key,
                group.key in ("start", "today", "yesterday", "9999-week", "evergreen", newest)
                or len(self._groups) <= 4,
            )
        self._relist(self.key if not first else _first_file(self._groups))

    def filter(self, text: str) -> int:
        """Show only files whose path holds `text`; returns how many there are."""
        self._filter = text.strip().casefold()
        self._relist(self.key)
        return sum(not isinstance(row, Group) for row in self._rows)

    def _relist(self, keep: Hashable) -> None:
        self._rows = []
        for group in self._groups:
            files = tuple(file for file in group.files if self._filter in file.path.casefold())
            if files or not self._filter:
                self._rows.append(replace(group, files=files))
                if self._open[group.key] or self._filter:
                    self._rows.extend(files)
        self.border_subtitle = f"{len(self._shown[0]):,} notes" if self._shown and self._groups else ""
        # While files are filtered the first one is at hand, not its group.
        first = next((row.path for row in self._rows if not isinstance(row, Group)), None)
        kept = any(self.key_of(i) == keep for i in range(len(self._rows)))
        self.rows_changed(keep if kept or not self._filter else first)

    @property
    def file(self) -> FileRow | None:
        """The file under the cursor."""
        row = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None
        return None if row is None or isinstance(row, Group) else row

    def reveal(self, path: str) -> bool:
        """Put the cursor on `path`, unfolding its group; False when it is not listed."""
        for group in self._groups:
            if any(file.path == path for file in group.files):
                self._open[group.key] = True
                self._relist(path)
                return self.key == path
        return False

    @property
    def newest(self) -> str | None:
        """The path of the newest dated note that is not of the future."""
        found = beside(self._shown[0], None, self._shown[1], 1) if self._shown else None
        return found.path if found else None

    def beside(self, direction: int) -> str | None:
        """The path of the dated note one older (+1) or newer (-1) than the one under the cursor."""
        if self._shown is None:
            return None
        found = beside(self._shown[0], self.file, self._shown[1], direction)
        return found.path if found else None

    # --- keys ----------------------------------------------------------------------------------------------------

    def do_open(self) -> None:
        """Read the file, or fold and unfold the group."""
        row = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None
        if isinstance(row, Group):
            self._fold(row, not self._open[row.key])
        else:
            super().do_open()

    def do_fold(self) -> None:
        """Fold the group under the cursor, or the one around it."""
        group = self._group()
        if group is not None:
            self._fold(group, False)

    def do_unfold(self) -> None:
        """Unfold the group under the cursor."""
        group = self._group()
        if group is not None:
            self._fold(group, True)

    def _group(self) -> Group | None:
        return next((row for row in reversed(self._rows[: self.cursor + 1]) if isinstance(row, Group)), None)

    def _fold(self, group: Group, is_open: bool) -> None:
        self._open[group.key] = is_open
        self._relist(group.key if not is_open else self.key)

    def opens_at_once(self, row: int, /) -> bool:
        """A click folds a group."""
        return isinstance(self._rows[row], Group)

    # --- rows ----------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Groups and the files of those unfolded."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """The path, or the group's key."""
        item = self._rows[row]
        return item.key if isinstance(item, Group) else item.path

    def draw(self, row: int, _line: int, width: int, /) -> Iterable[Piece]:
        """A group with its count, or a file with its state."""
        item = self._rows[row]
        if isinstance(item, Group):
            sign = "▾" if self._open[item.key] or self._filter else "▸"
            count = str(len(item.files))
            return [(fit(f"{sign} {item.title}", width - len(count) - 1), "head"), (count, "muted"), (" ", "")]
        state = state_word(item)
        glyph, style = SIGNS.get(state, ("~", "warn"))
        right = list(self._columns(item, width)) if state == "fresh" else [(f" {state} ", style)]
        room = width - 4 - sum(len(text) for text, _ in right)
        name = safe(item.path.removeprefix("memory/"))
        if item.day is not None and cell_len(name) > room:
            name = name.removesuffix(".md")
        if item.day is not None and cell_len(name) + 4 <= room:
            name += f" {item.day:%a}"
        return [(f"  {glyph} ", style), (fit(fit_path(name, room), room), "muted" if state == ABSENT else ""), *right]

    def _columns(self, file: FileRow, width: int) -> Iterator[Piece]:
        """Age, what it makes of the score, size and chunks, as far as there is room."""
        if self._aging is not None:
            yield f"{age_word(self._aging.days(file)):>5}", "muted"
            yield f"{effect_word(self._aging, self._aging.factor(file)):>5}" if self._aging.on else "", "lost"
        if width >= 36:
            yield f"{size_word(file.size):>5}", "muted"
        yield f" {f'{size_word(file.chunks)}c':>3} ", "muted"


def _first_file(found: Sequence[Group]) -> str | None:
    return next((group.files[0].path for group in found if group.files), None)
