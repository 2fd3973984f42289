"""Dialogs about notes: the days on which something was written, and a note as it would be printed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Markdown, Static

from memory_tui.engine.status import FileRow
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui.dialogs import Dialog

WEEKS = 53
"""Weeks that the calendar goes back at least; earlier notes are in the list."""


class Rendered(Dialog[None]):
    """Shows a note with Textual's Markdown, whose links do nothing here."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter,v", "back", "Close", show=False)]
    FOCUS = "#text"

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self.text = text

    def body(self) -> ComposeResult:
        """Return the text."""
        with VerticalScroll(id="text", can_focus=True):
            yield Markdown(self.text, open_links=False)


class Calendar(Dialog[str]):
    """Shows the weeks, the newest first; enter answers with the path of the first note of a day."""

    FOCUS = "DataTable"

    def __init__(self, files: Sequence[FileRow], today: dt.date) -> None:
        super().__init__("Written days")
        self.by_day: dict[dt.date, list[FileRow]] = {}
        for row in files:
            if row.day is not None:
                self.by_day.setdefault(row.day, []).append(row)
        self.today = today
        last = max([*self.by_day, today])
        self.monday = last - dt.timedelta(last.weekday())
        """Of the newest week."""

    def body(self) -> ComposeResult:
        """Return the weeks, and the day under the cursor in words."""
        grid: DataTable[Content] = DataTable(cursor_type="cell", zebra_stripes=False, show_row_labels=True)
        for name in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"):
            grid.add_column(name, width=5)
        first = min([*self.by_day, self.today])
        weeks = min(WEEKS, (self.monday - first).days // 7 + 2)
        for week in range(weeks):
            days = [self.monday + dt.timedelta(day - 7 * week) for day in range(7)]
            # Beside the newest week that ends in a month: the weeks go back.
            above = days[6] + dt.timedelta(7)
            month = f"{days[6]:%b %Y}" if not week or above.month != days[6].month else ""
            grid.add_row(*map(self.cell, days), label=month)
        yield grid
        yield Static(id="question", markup=False)

    def on_mount(self) -> None:
        """Begin at the newest day with a note."""
        super().on_mount()
        newest = max((day for day in self.by_day if day <= self.today), default=self.today)
        at = Coordinate((self.monday - newest + dt.timedelta(6)).days // 7, newest.weekday())
        self.query_one(DataTable).move_cursor(row=at.row, column=at.column)

    def cell(self, day: dt.date) -> Content:
        """Return a day with a mark where something was written."""
        count = len(self.by_day.get(day, ()))
        mark = "■" if count else " "
        style = "bold reverse" if day == self.today else "" if count else "$foreground-muted"
        return Content.assemble((f"{day.day:>2}", style), (f" {mark}", "$success"))

    def day_at(self, at: Coordinate) -> dt.date:
        """Return the day of a cell."""
        return self.monday + dt.timedelta(at.column - 7 * at.row)

    @on(DataTable.CellHighlighted)
    def moved(self, event: DataTable.CellHighlighted) -> None:
        """Say what was written on the day under the cursor."""
        day = self.day_at(event.coordinate)
        notes = self.by_day.get(day, [])
        more = f" and {plural(len(notes) - 1, 'more note')}" if len(notes) > 1 else ""
        subject = one_line(notes[0].title or notes[0].path, 60) if notes else "nothing"
        self.query_one("#question", Static).update(f"{day:%a} {day.day} {day:%B %Y}: {subject}{more}")

    @on(DataTable.CellSelected)
    def choose(self, event: DataTable.CellSelected) -> None:
        """Answer with the note of the day."""
        notes = self.by_day.get(self.day_at(event.coordinate), [])
        if notes:
            self.dismiss(notes[0].path)
