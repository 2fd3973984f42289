"""The notes by day: today, yesterday, this week, the months, and what never fades; each with its state in the index."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from memory_tui.text.display import safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import Piece, fit, fit_path, plural
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.overview import FileRow

SIGNS = {"fresh": ("✓", "good"), "new": ("+", "warn"), "changed": ("~", "warn"), "deleted": ("-", "warn"),
         "rebuild": ("~", "warn"), "failed": ("!", "bad")}
"""The glyph and style of each state; the word stands beside it."""


def state_word(row: FileRow) -> str:
    """The state in one word: what is pending says how."""
    return row.detail if row.state == "pending" and row.detail in SIGNS else row.state


@dataclass(frozen=True, slots=True)
class Group:
    """Files that belong together; `key` survives a refresh."""

    key: str
    title: str
    files: tuple[FileRow, ...]


def groups(rows: Sequence[FileRow], today: date) -> list[Group]:
    """The files in groups: days first, newest first, then evergreen notes and those from elsewhere."""
    found: dict[tuple[int, str, str], list[FileRow]] = {}
    for row in rows:
        found.setdefault(_group_of(row, today), []).append(row)
    ordered = sorted(found.items(), key=lambda item: (item[0][0], _descending(item[0][1])))
    return [Group(key, title, tuple(sorted(files, key=_order))) for (_, key, title), files in ordered]


def _group_of(row: FileRow, today: date) -> tuple[int, str, str]:
    if row.path.startswith("../") or row.path.startswith("/"):
        return 5, "elsewhere", "Extra paths"
    if row.day is None:
        return 4, "evergreen", "Evergreen"
    if row.day > today:
        return 0, "later", "Later"
    if row.day == today:
        return 1, "today", "Today"
    if row.day == today - timedelta(days=1):
        return 2, "yesterday", "Yesterday"
    if row.day > today - timedelta(days=7):
        return 3, "9999-week", "Last seven days"
    return 3, row.day.strftime("%Y-%m"), row.day.strftime("%B %Y")


def _descending(key: str) -> tuple[int, ...]:
    return tuple(-ord(character) for character in key)


def _order(row: FileRow) -> tuple[int, str]:
    return (-row.day.toordinal() if row.day else 0, row.path)


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

    def show(self, rows: Sequence[FileRow], today: date) -> None:
        """List `rows` as of `today`; folds and cursor stay."""
        if self._shown == (rows, today):
            return
        first = self._shown is None
        self._shown = (rows, today)
        self._groups = groups(rows, today)
        newest = next((g.key for g in self._groups if g.key[:2] in ("19", "20")), "")
        for group in self._groups:
            self._open.setdefault(group.key, group.key in ("later", "today", "yesterday", "9999-week", "evergreen",
                                                           newest) or len(self._groups) <= 3)
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
        self.border_subtitle = f"{sum(len(g.files) for g in self._groups):,} notes" if self._groups else ""
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

    def beside(self, path: str | None, direction: int) -> str | None:
        """The path of the dated note a day older (+1) or newer (-1) than `path`; of the newest without one."""
        dated = sorted((f for g in self._groups for f in g.files if f.day is not None), key=_order)
        at = next((i for i, file in enumerate(dated) if file.path == path), None)
        step = 0 if at is None else at + direction
        return dated[step].path if 0 <= step < len(dated) else None

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
        return next((row for row in reversed(self._rows[:self.cursor + 1]) if isinstance(row, Group)), None)

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
            return [(fit(f" {sign} {item.title}", width - len(count) - 1), "head"), (count, "muted"), (" ", "")]
        state = state_word(item)
        glyph, style = SIGNS.get(state, ("~", "warn"))
        word = plural(item.chunks, "chunk") if state == "fresh" else state
        name = safe(item.path.removeprefix("memory/"))
        if item.day is not None and cell_len(name) + len(word) + 10 <= width:
            name += f" {item.day:%a}"
        room = width - len(word) - 7
        return [(f"   {glyph} ", style), (fit(fit_path(name, room), room), ""),
                (f" {word} ", "muted" if item.state == "fresh" else style)]


def _first_file(found: Sequence[Group]) -> str | None:
    return next((group.files[0].path for group in found if group.files), None)
