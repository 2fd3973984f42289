"""The file tree lists notes in groups. A row has title, age and recalls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from rich.cells import cell_len
from textual import on
from textual.binding import BindingType

from memory_tui.formatting import age_words, plural, short_age
from memory_tui.recalls.recalled_lines import Activity
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_page import ABSENT, Group, beside, groups
from memory_tui.tui.state import Aging
from memory_tui.tui.widgets.memory_map import sparkline
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.engine.status import FileRow

ROOMY, BROAD = 44, 50
"""Cells from which an age is written out, and from which recalls are drawn."""
DAY, LEAST, YEAR, WEEKS = 10, 8, 330, 8
NARROW, SHORT_DAY = 24, 6
"""Cells of a day and of the shortest title; days after which a day is told with its year; weeks that are drawn."""

SIGNS = {
    "fresh": ("✓", "good"),
    "new": ("+", "warn"),
    "changed": ("~", "warn"),
    "deleted": ("-", "warn"),
    "rebuild": ("~", "warn"),
    "failed": ("!", "bad"),
    "in part": ("?", "warn"),
    "missing root": ("?", "bad"),
    "gone": ("?", "bad"),
    "unreadable": ("?", "bad"),
    "another device": ("?", "bad"),
    "watcher stalled": ("!", "bad"),
    ABSENT: ("○", "muted"),
}
"""The glyph and style of each state; the word stands beside it."""


_VERBS = (("promote", "promote"), ("move", "archive"), ("remove", "trash"))
"""What can be done about marked notes: meaning and word."""

TRUST: Mapping[str, tuple[str, str]] = {
    "agent": ("a", "muted"),
    "edited": ("e", "warn"),
    "untrusted": ("u", "bad"),
    "unrecorded": ("·", "muted"),
    "ignored": ("l", "warn"),
    "unknown": ("?", "warn"),
}
"""The letter and style of each state in OpenClaw's ledger; the note's facts say it in words."""


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
        self._trust: Mapping[str, str] = {}
        self._aging: Aging | None = None
        self._activity, self._most = Activity(), 0

    def show(self, rows: Sequence[FileRow], today: date, aging: Aging, trust: Mapping[str, str]) -> None:
        """List `rows` as of `today` with their state in OpenClaw's ledger by path; folds and cursor stay."""
        self._aging = aging
        if self._shown == (rows, today) and self._trust == trust:
            return
        self._trust = trust
        first = self._shown is None
        self._shown = (rows, today)
        self.marks.keep(row.path for row in rows)
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
        self._say_marks()
        # While files are filtered the first one is at hand, not its group.
        first = next((row.path for row in self._rows if not isinstance(row, Group)), None)
        rest = any(self.key_of(i) == keep for i in range(len(self._rows)))
        self.rows_changed(keep if rest or not self._filter else first)

    @property
    def marked_notes(self) -> set[str]:
        """The paths of the notes that are marked, folded and filtered ones too."""
        return {key for key in self.marks.those if isinstance(key, str)}

    @on(RowList.Marked)
    def _say_marks(self) -> None:
        """How many notes are marked with what can be done about them, or how many there are."""
        count = plural(len(self._shown[0]), "note") if self._shown and self._groups else ""
        verbs = "  ".join(f"{key_of(name)} {verb}" for name, verb in _VERBS)
        self.border_title = self.marks.beside("Notes")
        self.border_subtitle = verbs if self.marks else count

    def kind_of(self, row: int, /) -> Hashable:
        """The group; a note that is not there cannot be marked."""
        item = self._rows[row]
        if isinstance(item, Group):
            return item.key
        group = next((hit for hit in reversed(self._rows[:row]) if isinstance(hit, Group)), None)
        return group.key if group is not None and item.state != ABSENT else None

    def alike(self, kind: Hashable) -> set[Hashable]:
        """The notes of a group, folded or not."""
        reply = next((row for row in self._rows if isinstance(row, Group) and row.key == kind), None)
        return {file.path for file in reply.files if file.state != ABSENT} if reply is not None else set()

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
        reply = beside(self._shown[0], None, self._shown[1], 1) if self._shown else None
        return reply.path if reply else None

    def beside(self, direction: int) -> str | None:
        """The path of the dated note one older (+1) or newer (-1) than the one under the cursor."""
        if self._shown is None:
            return None
        reply = beside(self._shown[0], self.file, self._shown[1], direction)
        return reply.path if reply else None

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

    def _only_folds(self, row: int, /) -> bool:
        """A group does."""
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
            count = plural(sum(file.state != ABSENT for file in item.files), "note")
            marked = sum(file.path in self.marks for file in item.files)
            most = f"■ {marked} of " if marked else ""
            room = width - len(most) - len(count) - 1
            return [(fit(f"{sign} {item.title}", room), "head"), (most, "mark"), (count, "muted"), (" ", "")]
        state = state_word(item)
        glyph, style = (" ", "") if state == "fresh" else SIGNS.get(state, ("~", "warn"))
        right = list(self._columns(item, width)) if state == "fresh" else [(f" {state} ", style)]
        room = width - 4 - sum(cell_len(text) for text, _ in right)
        mark = "■" if item.path in self.marks else " "
        return [
            (mark, "mark"),
            (f" {glyph} ", style),
            *self._named(item, room, "muted" if state == ABSENT else ""),
            *right,
        ]

    def _named(self, file: FileRow, room: int, style: str) -> Iterator[Piece]:
        """The day or the file name, then the title as far as there is room."""
        name = safe(file.path.removeprefix("memory/"))
        narrow = room < NARROW
        if 0 < len(file.dated) < len("2026-03-07"):
            name = file.dated
        elif file.day is not None:
            weekday = "" if narrow else f"{file.day:%a} "
            name = f"{weekday}{file.day.day:>2} {file.day:%b}" + (
                "" if self._shown is None or (self._shown[1] - file.day).days < YEAR else f" {file.day.year}"
            )
        title = one_line(file.title)
        title = "" if title == name else title
        if not title or room < cell_len(name) + LEAST:
            yield fit(fit_path(name, room), room), style
            return
        name = fit(name, max(SHORT_DAY if narrow else DAY, cell_len(name)))
        yield name, style
        yield fit(f"  {title}", room - cell_len(name)), "muted"

    def _columns(self, file: FileRow, width: int) -> Iterator[Piece]:
        """The age in words, and the recalls of the last weeks where there are any and room for them."""
        if self._aging is None:
            return
        if self._trust:
            letter, style = TRUST.get(self._trust.get(file.path, ""), (" ", ""))
            yield f" {letter}", style
        days = self._aging.days(file)
        if width < ROOMY:
            yield f" {short_age(days):>6} ", "muted"
            return
        yield f"  {age_words(days):<11}", "muted"
        if width >= BROAD and self._shown is not None and self._most:
            counts = self._activity.weeks(file.path, self._shown[1], WEEKS)
            yield f" {sparkline(counts, self._most)} ", "vector"

    def recalled(self, activity: Activity) -> None:
        """Draw how often notes were recalled in the last weeks."""
        if self._shown is None or activity == self._activity:
            return
        self._activity, (rows, today) = activity, self._shown
        self._most = max((max(activity.weeks(row.path, today, WEEKS)) for row in rows), default=0)
        self.refresh()


def _first_file(found: Sequence[Group]) -> str | None:
    return next((group.files[0].path for group in found if group.files), None)
