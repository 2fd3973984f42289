"""Dialogs: a text to read or agree to, a line to type, a choice, the days that were written, a note as printed."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input, OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.tui.keys import Hints, bindings, named
from memory_tui.tui.rows import Rows

Answer = TypeVar("Answer")


def dialog_width(width: int) -> int:
    """Return the cells of a line of a dialog: of the window's, less its border and the scrollbar."""
    return min(120, width) - 5


class Dialog(ModalScreen[Answer], Generic[Answer]):
    """A box over the view with a title and its keys; escape closes it without an answer.

    Await `self.app.push_screen(dialog, callback)` in what a key does, so that what is typed ahead goes into it.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("text.back")
    FOCUS: ClassVar[str]

    def __init__(self, title: str, explanation: str = "") -> None:
        super().__init__()
        self.heading, self.explanation = title, explanation

    def compose(self) -> ComposeResult:
        """Lay out the box: heading, explanation, what `body` yields; and the line of keys."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(self.heading)
            if self.explanation:
                yield Static(Content(self.explanation))
            yield from self.body()
        # In the last line, where they take the place of those of the view.
        yield Hints()

    def body(self) -> ComposeResult:
        """Return what stands in the box."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Focus at once, not when its turn comes: keys typed ahead would be lost."""
        self.set_focus(self.query_one(self.FOCUS))

    def action_back(self) -> None:
        """Close it without an answer."""
        self.dismiss(None)


class Paper(Dialog[Answer], Generic[Answer]):
    """Shows a text to read, or a note with Textual's Markdown, whose links do nothing here."""

    FOCUS = "#text"

    def __init__(self, title: str, text: Content | str) -> None:
        super().__init__(title)
        self.text = text

    def body(self) -> ComposeResult:
        """Return the text; a string is Markdown."""
        with VerticalScroll(id="text", can_focus=True):
            if isinstance(self.text, Content):
                yield Static(self.text)
                return
            # The first frame waits for no parser of Markdown, 20 ms, which few ask for.
            from textual.widgets import Markdown

            yield Markdown(self.text, open_links=False)


class Page(Paper[None]):
    """Shows a text, which any key that is done with it closes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter,v", "back", "Close", show=False)]


class Confirm(Paper[bool]):
    """Shows `text`, for instance a difference, and asks whether `deed` is to be done; only `y` does it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "agree", "Yes"), Binding("n", "back", "No", show=False)]

    def __init__(self, title: str, text: Content, deed: str = "Make this change") -> None:
        super().__init__(title, text)
        self.deed, self.lines = deed, text.plain.count("\n") + 1

    def body(self) -> ComposeResult:
        """Return the text, and the question under it."""
        yield from super().body()
        # As much of the height as the style sheet gives the text.
        more = "   ↑ ↓ shows all of it" * (self.lines > 0.7 * self.app.size.height)
        yield Static(Content.assemble((f"{self.deed}? ", "bold"), "y yes   n no", more), id="question")

    def action_agree(self) -> None:
        """Answer yes."""
        self.dismiss(True)


class Box(Input):
    """A line to type in; a subclass because its cursor's blinking takes CPU all day, and the footer names enter."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "submit", "OK")]

    def __init__(self, value: str = "", hint: str = "", id: str | None = None) -> None:
        super().__init__(value, hint, compact=True, id=id)
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        """Make one line of what is pasted."""
        # Textual's own, which is called next, takes the first line alone.
        event.text = " ".join(event.text.split())


class Line(Dialog[str]):
    """Asks for a line of text; an empty one answers None, as escape does."""

    FOCUS = "Input"

    def __init__(self, title: str, hint: str = "", value: str = "", explanation: str = "") -> None:
        super().__init__(title, explanation)
        self.hint, self.value = hint, value

    def body(self) -> ComposeResult:
        """Return the line."""
        yield Box(self.value, self.hint)

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        """Answer with the line."""
        self.dismiss(event.value.strip() or None)


class Options(Rows):
    """The rows of a dialog, of which one is the answer."""

    BINDINGS: ClassVar[list[BindingType]] = named("Choose", "list.open")


class Choice(Dialog[str]):
    """Asks for one of `options`, each an id and its text; enter takes the one under the cursor."""

    FOCUS = "Rows"

    def __init__(self, title: str, options: Sequence[tuple[str, Content | str]], explanation: str = "") -> None:
        super().__init__(title, explanation)
        self.options = options

    def body(self) -> ComposeResult:
        """Return the list."""
        # The ids of `options` may come twice, which those of rows must not: a row is known by its place.
        yield Options(*(Option(Content.assemble(" ", text)) for _, text in self.options))

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Answer with the id."""
        self.dismiss(self.options[event.option_index][0])


class Calendar(Dialog[str]):
    """Shows the weeks of a year, the newest first; enter answers with the first note of a day."""

    FOCUS = "DataTable"

    def __init__(self, by_day: Mapping[dt.date, str], today: dt.date) -> None:
        super().__init__("Written days")
        self.by_day = by_day
        last = max([*by_day, today])
        monday = last - dt.timedelta(last.weekday())
        self.weeks = [[monday + dt.timedelta(day - 7 * week) for day in range(7)] for week in range(53)]
        """The seven days of each week from Monday on, the newest week first."""

    def body(self) -> ComposeResult:
        """Return the weeks, each with the month of its end."""
        grid: DataTable[Content] = DataTable(cursor_type="cell", show_row_labels=True)
        grid.add_columns(*(f"{day:%a}" for day in self.weeks[0]))
        for days in self.weeks:
            # A square marks a day on which something was written.
            marks = [(" ■" if day in self.by_day else "  ", "$success") for day in days]
            cells = [Content.assemble(f"{day.day:>2}", mark) for day, mark in zip(days, marks, strict=True)]
            # Labelled by its Sunday.
            grid.add_row(*cells, label=f"{days[6]:%b %Y}")
        yield grid

    def on_mount(self) -> None:
        """Begin at the newest day with a note."""
        newest = max(self.by_day, default=self.weeks[0][0])
        row = next((number for number, days in enumerate(self.weeks) if newest in days), 0)
        self.query_one(DataTable).move_cursor(row=row, column=newest.weekday())

    @on(DataTable.CellSelected)
    def choose(self, event: DataTable.CellSelected) -> None:
        """Answer with the note of the day."""
        if path := self.by_day.get(self.weeks[event.coordinate.row][event.coordinate.column]):
            self.dismiss(path)
