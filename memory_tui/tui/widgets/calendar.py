"""The calendar shows a sign a day. It stands for recalls, size or findings of the notes of that day."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from memory_tui.formatting import age_words, plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import fit, runs
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.widgets.memory_map import LAYERS, LEGENDS, MemoryMap, calendar_rows, weeks_in

if TYPE_CHECKING:
    from memory_tui.engine.status import FileRow

STYLES = {"muted": "$quiet", "lost": "$faint", "vector": "$vector", "day": "reverse bold", "": ""}
WAITING = "Reading the records of recalls ..."


class Calendar(Widget, can_focus=True):
    """The weeks up to today; the cursor stands on a day."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("calendar"))
    PLACES: ClassVar[tuple[str, ...]] = ("calendar",)

    class Opened(Message):
        """The notes of the day under the cursor are wanted."""

        def __init__(self, notes: Sequence[FileRow]) -> None:
            super().__init__()
            self.notes = notes

    class Moved(Message):
        """The cursor stands on another day, or what is known of its month is new."""

    class Uncounted(Message):
        """No day has any of what is counted."""

    class Empty(Message):
        """No note stands on the day under the cursor."""

    def __init__(self) -> None:
        super().__init__(id="calendar")
        self.found: MemoryMap | None = None
        self.counted: str = "recalled"
        self._next: str = ""
        self.day: dt.date | None = None
        self._place = -1
        """Where the cursor stands among the days that count most; -1 once it went elsewhere."""

    def show(self, found: MemoryMap, layer: str, following: str) -> None:
        """Show `layer` of what was found, and name the `following` one.

        The cursor begins at the newest day that counts, else the newest note.
        """
        self.found, self.counted, self._next = found, layer, following
        if self.day is None:
            past = [day for day in found.days if day <= found.today]
            counting = [day for day in past if found.value(layer, day)]
            self.day = max(counting or past, default=found.today)
        self.on_resize()
        self.border_subtitle = LAYERS[layer]
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Say how many weeks there is room for, and on which day most was counted."""
        if self.found is None:
            return
        title = f"{self.counted.capitalize()}, {weeks_in(self.size.width)[0]} weeks"
        most = self.found.most(self.counted)
        if most and (counted := _amount(self.found, self.counted, most[0])):
            title += f"   most: {_named(most[0])}, {counted}"
        self.border_title = title

    def render(self) -> Content:
        """Months, weekdays, the legend, and the day under the cursor in words."""
        if self.found is None:
            return Content.styled(f" {WAITING}", "$quiet")
        day = self.day or self.found.today
        rows = calendar_rows(self.found, self.counted, self._last, day, self.size.width)
        lines = [Content.assemble(*((text, STYLES[style]) for text, style in runs(row))) for row in rows]
        parts = [*LEGENDS[self.counted].split("   "), f"{key_of('show layer')}: {self._next}"]
        wide, narrow = (f"{' ' * indent}{(gap * ' ').join(parts)}" for indent, gap in ((6, 3), (1, 2)))
        legend = wide if cell_len(wide) <= self.size.width else narrow
        lines.append(Content.styled(fit(legend, self.size.width), "$quiet"))
        lines.append(Content.styled(fit(f" ▌ {self.words(day)}", self.size.width), "bold"))
        return Content("\n").join(lines)

    def words(self, day: dt.date) -> str:
        """A day in words: the text equal of its sign."""
        reply = self.found
        if reply is None:
            return ""
        notes = reply.days.get(day, ())
        if not notes:
            return f"{_named(day)}   no note"
        more = f" and {plural(len(notes) - 1, 'more note')}" if len(notes) > 1 else ""
        subject = one_line(notes[0].title, 40) or safe(notes[0].path.removeprefix("memory/"))
        seen: list[str] = ["recalled", *(["findings"] if reply.findings is not None else []), "written"]
        recalls, *others = [_amount(reply, layer, day) for layer in seen]
        counted = _amount(reply, self.counted, day) or recalls
        text = [_named(day), counted, subject + more, age_words((reply.today - day).days)]
        text += [words for words in (recalls, *others) if words != counted]
        # What has no room is left out whole; the day, its recalls and its subject stay.
        while len(text) > 3 and cell_len("   ".join(text)) > self.size.width - len(" ▌ "):
            text.pop()
        return "   ".join(text)

    # --- going about ---------------------------------------------------------------------------------------------

    @property
    def _last(self) -> dt.date:
        """The last day that is drawn."""
        today = self.found.today if self.found else dt.date.today()
        weeks = weeks_in(self.size.width)[0]
        if self.day is None or (today - self.day).days < 7 * (weeks - 1):
            return today
        return min(today, self.day + dt.timedelta(7 * weeks // 2))

    def _go(self, day: dt.date) -> None:
        self._place = -1
        if self.found is not None:
            self.day = min(day, self.found.today)
            self.refresh()
            self.post_message(self.Moved())

    def _towards(self, target: dt.date, unit: Callable[[dt.date], tuple[int, ...]]) -> None:
        """Go to the day with a note nearest to `target`, in another `unit` of time on that side; none: stay."""
        here, reply = self.day, self.found
        if here is None or reply is None:
            return
        beyond = [
            day
            for day in reply.days
            if day <= reply.today and (day < here) == (target < here) and unit(day) != unit(here)
        ]
        self._go(min(beyond, key=lambda day: (abs((day - target).days), day), default=here))

    def _by(self, days: int) -> None:
        if self.day is not None:
            target = self.day + dt.timedelta(days)
            self._towards(target, lambda day: tuple(day.isocalendar()[: 2 if abs(days) > 1 else 3]))

    def do_left(self) -> None:
        """A week before, on the nearest day with a note."""
        self._by(-7)

    def do_right(self) -> None:
        """A week after, on the nearest day with a note."""
        self._by(7)

    def do_down(self) -> None:
        """The next day with a note."""
        self._by(1)

    def do_up(self) -> None:
        """The day before with a note."""
        self._by(-1)

    def do_earlier(self) -> None:
        """The month before, on the nearest day with a note."""
        self._month(-1)

    def do_later(self) -> None:
        """The month after, on the nearest day with a note."""
        self._month(1)

    def do_most(self) -> None:
        """The day that counts most, then the next most."""
        self._to_most(self._place + 1)

    def do_before_most(self) -> None:
        """Back towards the day that counts most."""
        self._to_most(self._place - 1)

    def _to_most(self, place: int) -> None:
        most = self.found.most(self.counted) if self.found is not None else []
        if most:
            place = min(max(0, place), len(most) - 1)
            self._go(most[place])
            self._place = place
        else:
            self.post_message(self.Uncounted())

    def _month(self, direction: int) -> None:
        if self.day is not None:
            year, month = divmod(self.day.year * 12 + self.day.month - 1 + direction, 12)
            last = calendar.monthrange(year, month + 1)[1]
            self._towards(dt.date(year, month + 1, min(self.day.day, last)), lambda day: (day.year, day.month))

    def do_open(self) -> None:
        """Read the note of this day; one of several is chosen first."""
        notes = self.found.days.get(self.day or self.found.today, ()) if self.found else ()
        self.post_message(self.Opened(notes) if notes else self.Empty())

    def on_click(self, event: events.Click) -> None:
        """Go to the day under the mouse; the second click reads its note, the first says so where there is none."""
        at = event.get_content_offset(self)
        weeks, cell = weeks_in(self.size.width)
        if at is None or self.found is None or not 1 <= at.y <= 7 or not 6 <= at.x < 6 + weeks * cell:
            return
        last = self._last
        monday = last - dt.timedelta(last.weekday())
        day = monday - dt.timedelta(7 * (weeks - 1 - (at.x - 6) // cell)) + dt.timedelta(at.y - 1)
        day = min(day, self.found.today)
        opens = day == self.day or day not in self.found.days
        self._go(day)
        if opens:
            self.do_open()


def _named(day: dt.date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def _amount(found: MemoryMap, layer: str, day: dt.date) -> str:
    """How much `layer` counts on `day`, in words; empty where it says yes or no alone."""
    value = found.value(layer, day) or 0
    match layer:
        case "recalled":
            return plural(int(value), "recall")
        case "written":
            return f"{value / 1000:.1f} KB"
        case "findings":
            return plural(int(value), "finding")
        case _:
            return ""
