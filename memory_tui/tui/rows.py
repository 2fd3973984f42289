"""A list: Textual's option list, whose cursor shows without colour and whose refilling keeps the row under it."""

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option, OptionDoesNotExist

from memory_tui.tui.keys import bindings


def short_path(path: str, width: int = 24) -> str:
    """Return a path; one of more than `width` letters without its folders, because its end tells notes apart.

    The owner before a colon stays: `OWNER/NAME:…/note.md`.
    """
    # Without a colon `find` returns -1, and nothing stays before the mark.
    folders, slash, name = path.rpartition("/")
    return f"{folders[: folders.find(':') + 1]}…/{name}" if slash and len(path) > width else path


class Rows(OptionList):
    """Rows of `Content`, never of markup; ids keep the cursor when they are refilled.

    Textual drops `reverse` from the style of the highlighted row, so without colours its cursor would not show.
    """

    # Its scrollbar has its place at all times: without this each refilling lays out the whole screen.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def __init__(self, *options: Option, id: str | None = None) -> None:
        super().__init__(*options, id=id, markup=False)

    def action_cursor_up(self) -> None:
        """Go up; at the top it stays, where Textual goes on at the end."""
        if any(not option.disabled for option in self.options[: self.highlighted]):
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """Go down, and stay at the end."""
        first_below = 0 if self.highlighted is None else self.highlighted + 1
        if any(not option.disabled for option in self.options[first_below:]):
            super().action_cursor_down()

    def refill(self, options: Iterable[Option], default: int = 0) -> None:
        """Show other options, with the cursor on the id it was on, else on number `default`."""
        before, goal = self.highlighted_option, default if self.highlighted is None else self.highlighted
        rows = list(options)
        # Textual forgets the cursor with the old rows; nobody is to hear of a cursor that comes back.
        with self.prevent(OptionList.OptionHighlighted):
            self.set_options(rows)
        position = self.position(before.id) if before is not None and before.id else None
        if position is None:
            # The nearest row at or above the old place; a disabled row holds no cursor.
            able = [number for number, row in enumerate(rows) if not row.disabled]
            position = max((number for number in able if number <= goal), default=able[0] if able else None)
        if rows:
            self.highlighted = position

    def position(self, id_: str) -> int | None:
        """Return where the row of an id stands; None where there is none."""
        try:
            return self.get_option_index(id_)
        except OptionDoesNotExist:
            return None

    def render_line(self, y: int) -> Strip:
        """Return a line of the list; under the cursor a mark stands in its first cell, reversed without colours."""
        strip = super().render_line(y)
        # Textual writes the number of a row into the style of its cells, for the mouse.
        style = next((segment.style for segment in strip if segment.style), Style.null())
        if self.highlighted is None or style.meta.get("option") != self.highlighted:
            return strip
        if strip.text[:1] == " ":
            first, rest = strip.divide([1, strip.cell_length])
            strip = Strip.join([Strip([Segment("▌", segment.style) for segment in first]), rest])
        return strip.apply_style(Style(reverse=True)) if self.app.no_color else strip
