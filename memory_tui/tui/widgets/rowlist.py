"""A list of rows of any height, drawn when they are seen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import ceil
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from memory_tui.tui.draw import Piece, strip, wrap
from memory_tui.tui.keymap import bindings

MOST_MADE = 200
"""Lines that a list keeps as they are drawn: those of two screens."""


class RowList(ScrollView, can_focus=True):
    """A scrolling list; subclasses say how many rows there are and draw one line of one row at a time."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("list"))
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row--cursor",
        "row--blurred",
        "row--muted",
        "row--strong",
        "row--good",
        "row--warn",
        "row--bad",
        "row--rule",
        "row--vector",
        "row--heat1",
        "row--heat2",
        "row--heat3",
        "row--text",
        "row--added",
        "row--lost",
        "row--head",
        "row--mark",
        "row--cited",
        "row--selected",
        "row--code",
        "row--link",
        "row--emphasis",
        "row--found",
        "row--match",
        "row--chip",
    }

    cursor: reactive[int] = reactive(-1, init=False, repaint=False)

    class Moved(Message):
        """The cursor is on another row, by key, mouse or because rows changed."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            """The list whose cursor moved."""
            return self.rows

    class Chosen(Moved):
        """Enter was pressed on a row, or the row under the cursor was clicked."""

    class Marked(Moved):
        """Rows were marked, or marks were taken away."""

    class Nothing(Message):
        """A key found nothing to act on: `sentence` says what is missing."""

        def __init__(self, sentence: str = "Nothing is under the cursor.") -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.marks = RowMarks(self)
        self.held = 0
        """First lines that stay in sight however far the list is scrolled: its headings."""
        self._tops: list[int] = [0]
        self._laid_out = 0
        self._styles: dict[str, Style] = {}
        self._base = Style()
        self._drawn: dict[int, Strip] = {}
        """The lines in sight as they were drawn last."""
        self._ready: dict[int, Strip] = {}
        """Those that are other ones now, until they are drawn."""
        self._made: dict[tuple[object, ...], Strip] = {}
        """Lines by what they say, because a key changes few of them."""

    # --- what subclasses say -------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def height_of(self, _row: int, _width: int, /) -> int:
        """How many lines a row takes."""
        return 1

    def key_of(self, row: int, /) -> Hashable:
        """What `row` is about, so that the cursor finds it again; None when the cursor skips it."""
        return row

    def kind_of(self, _row: int, /) -> Hashable:
        """What rows that are marked together with `row` have in common; None where it cannot be marked."""
        return None

    def alike(self, kind: Hashable) -> set[Hashable]:
        """What the rows of `kind` are about."""
        return {self.key_of(row) for row in range(self.count()) if self.kind_of(row) == kind}

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Line `line` of `row` as pieces of safe text."""
        raise NotImplementedError

    # --- rows ----------------------------------------------------------------------------------------------------

    @property
    def inner_width(self) -> int:
        """Cells that a row can use."""
        return self.scrollable_content_region.width

    def rows_changed(self, keep: Hashable = None) -> None:
        """Rows are other ones now; the cursor goes to the row about `keep`, else to the first it may stand on."""
        self._measure()
        reply = None if keep is None else self.row_of(keep)
        if reply is None:
            reply = self.first_row()
        moved = reply != self.cursor
        self.set_reactive(RowList.cursor, reply)
        self.show_cursor()
        self.redraw()
        if moved or keep is None:
            self.post_message(self.Moved(self))

    def first_row(self) -> int:
        """The first row on which the cursor may stand; -1 where there is none."""
        return next((row for row in range(self.count()) if self.key_of(row) is not None), -1)

    def redraw(self) -> None:
        """Draw the rows, which are other ones now."""
        self.refresh()

    def _redraw_lines(self) -> None:
        """Draw the lines in sight that are other ones now; only for a key, when nothing covers or uncovers the list."""
        if not self.is_mounted or self.inner_width != self._laid_out:
            self.refresh()
            return
        self._base = self.rich_style
        lines = {y: self._strip_at(y) for y in range(self.size.height)}
        ready = {y: strip for y, strip in lines.items() if self._drawn.get(y) != strip}
        if ready:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in ready))
            self._ready = ready

    def _set_dirty(self, *regions: Region) -> None:
        # The frame around them says nothing about rows.
        if not regions or any(0 <= region.y < self.size.height for region in regions):
            self._ready = {}
        super()._set_dirty(*regions)

    def row_of(self, key: Hashable) -> int | None:
        """The row about `key`."""
        return next((row for row in range(self.count()) if self.key_of(row) == key), None)

    def name_frame(self, title: Content, subtitle: Content | None = None) -> None:
        """Set the titles of the frame, and redraw their lines only when they are other ones."""
        name_frame(self, title, subtitle)

    def _measure(self) -> None:
        self.lay_out(self.inner_width)
        size = Size(self.inner_width, self._tops[-1])
        if self.styles.auto_dimensions or not self.container_size:
            self.virtual_size = size
        elif size != self.virtual_size:
            # How far it scrolls moves no other widget: the screen is not laid out again, unless a scroll bar comes.
            self.set_reactive(RowList.virtual_size, size)
            self._rescale()

    def _rescale(self) -> None:
        """Fit the scroll bar to the list, and redraw the ends of its thumb instead of all its lines."""
        had = self.show_vertical_scrollbar
        self._refresh_scrollbars()
        if not (had and self.show_vertical_scrollbar) or self.show_horizontal_scrollbar:
            self._scroll_update(self.virtual_size)
            return
        bar = self.vertical_scrollbar
        before = thumb(bar)
        bar.set_reactive(ScrollBar.window_virtual_size, self.virtual_size.height)
        ends = zip(before, thumb(bar), strict=True)
        moved = [Region(0, min(end) // 8, 1, max(end) // 8 - min(end) // 8 + 1) for end in ends if end[0] != end[1]]
        if moved:
            bar.refresh(*moved)
        self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def lay_out(self, width: int) -> None:
        """Find out at which line each row begins when rows are `width` cells wide."""
        self._laid_out = width
        self._tops = [0, *accumulate(self.height_of(row, width) for row in range(self.count()))]

    @contextmanager
    def _cursor_kept(self) -> Iterator[None]:
        """Leave the cursor on what it is about, although other lines are written for another width."""
        key = self.key
        yield
        if self.key != key:
            row = None if key is None else self.row_of(key)
            self.set_reactive(RowList.cursor, self.first_row() if row is None else row)
            self.post_message(self.Moved(self))

    def on_resize(self) -> None:
        """Rows follow the width; where there is more room, more of them come into sight."""
        with self._cursor_kept():
            self._measure()
        if self.scroll_offset.y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True, immediate=True)
        self.show_cursor()

    @property
    def key(self) -> Hashable:
        """What the row under the cursor is about; None without a row."""
        return self.key_of(self.cursor) if 0 <= self.cursor < self.count() else None

    # --- cursor --------------------------------------------------------------------------------------------------

    def watch_cursor(self) -> None:
        """Keep the row under the cursor in sight."""
        self.show_cursor()
        self._redraw_lines()
        self.post_message(self.Moved(self))

    def show_cursor(self) -> None:
        """Scroll as little as needed to see the row under the cursor."""
        self._show_row(self.cursor)

    def _lines_between(self, one: int, other: int) -> int:
        """Lines from one row to another, both counted."""
        return self._tops[max(one, other) + 1] - self._tops[max(0, min(one, other))]

    def _show_row(self, row: int) -> None:
        """Scroll as little as needed to see `row`."""
        if 0 <= row < len(self._tops) - 1:
            top, bottom = self._tops[row], self._tops[row + 1]
            top = max(0, top - self.held)
            self.scroll_to_region(
                Region(0, top, self.inner_width, bottom - top), animate=False, force=True, immediate=True
            )

    def go(self, row: int, direction: int = 1) -> None:
        """Move the cursor to `row`, or to the next one in `direction` on which it may stand."""
        count = self.count()
        row = min(max(row, 0), count - 1)
        for step in (direction, -direction):
            at = row
            while 0 <= at < count:
                if self.key_of(at) is not None:
                    self.cursor = at
                    return
                at += step

    def do_down(self) -> None:
        """Next row."""
        self._by(1)

    def do_up(self) -> None:
        """Previous row."""
        self._by(-1)

    def _by(self, direction: int) -> None:
        row = self.cursor + direction
        while 0 <= row < self.count():
            if self.key_of(row) is not None:
                self.cursor = row
                return
            row += direction
        # Rows at the ends on which the cursor cannot stand come into sight all the same.
        self.scroll_relative(y=direction, animate=False)

    def do_top(self) -> None:
        """First row."""
        self.go(0)
        self.scroll_home(animate=False)

    def do_bottom(self) -> None:
        """Last row."""
        self.go(self.count() - 1, -1)

    def do_page_down(self) -> None:
        """Half a page down."""
        self._page(1)

    def do_page_up(self) -> None:
        """Half a page up."""
        self._page(-1)

    def _page(self, direction: int) -> None:
        if self.cursor < 0:
            self.scroll_relative(y=direction * max(1, self.size.height // 2), animate=False)
            return
        line = self._tops[self.cursor] + direction * max(1, self.size.height // 2)
        self.go(self.row_at(max(0, line)), direction)

    def row_at(self, line: int) -> int:
        """The row that covers `line` of the whole list; the count when the list ends above it."""
        return bisect_right(self._tops, line) - 1

    def on_click(self, event: events.Click) -> None:
        """Select what is clicked; a click on what is selected opens it."""
        offset = event.get_content_offset(self)
        row = self.row_at(self._line_at(offset.y)) if offset else self.count()
        if row >= self.count() or self.key_of(row) is None:
            return
        opened = self._only_folds(row) or (row == self.cursor and (event.chain > 1 or self.opens_at_once(row)))
        self.cursor = row
        if opened:
            self.do_open()

    def _line_at(self, y: int) -> int:
        """Which line of the whole list stands in line `y` of what is in sight."""
        return y if y < self.held else y + self.scroll_offset.y

    def _only_folds(self, _row: int, /) -> bool:
        """Whether a row only folds what is below it, so that one click does that wherever the cursor is."""
        return False

    def opens_at_once(self, _row: int, /) -> bool:
        """Whether one click on a row is enough when the cursor is there already."""
        return False

    def do_open(self) -> None:
        """Tell that the row under the cursor was chosen, or that there is none."""
        self.post_message(self.Chosen(self) if self.key is not None else self.Nothing())

    # --- drawing -------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Styles may have changed with the theme."""
        self._styles.clear()
        self._made.clear()
        super().notify_style_update()

    def style_of(self, name: str) -> Style:
        """The style called `name`, without the widget's own."""
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"row--{name}", partial=True)
        return self._styles[name]

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines to draw; what they have in common is worked out once."""
        if self.inner_width != self._laid_out:
            # The first frame at a new size is drawn before the resize is told.
            with self._cursor_kept():
                self.lay_out(self.inner_width)
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One line of the list as it is scrolled now."""
        drawn = self._drawn[y] = self._ready.pop(y) if y in self._ready else self._strip_at(y)
        return drawn

    def _strip_at(self, y: int) -> Strip:
        """Line `y` of what is in sight, drawn anew."""
        width, base = self._laid_out, self._base
        line = self._line_at(y)
        row = self.row_at(line)
        if row >= self.count():
            return Strip.blank(width, base)
        if row == self.cursor:
            base += self.style_of("cursor" if self.has_focus else "blurred")
        pieces = tuple(self.draw(row, line - self._tops[row], width))
        if (says := (pieces, width, base)) not in self._made:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            self._made[says] = strip(pieces, width, base, self.style_of)
        return self._made[says]


def thumb(bar: ScrollBar) -> tuple[int, int]:
    """Where the thumb of a vertical scroll bar begins and ends, in eighths of a line."""
    lines, most, seen = bar.size.height, bar.window_virtual_size, bar.window_size
    if not (lines and 0 < seen < most):
        return 0, 8 * lines
    length = max(1, seen * lines / most)
    start = int((lines - length) * bar.position / (most - seen) * 8)
    return start, start + ceil(length * 8)


def name_frame(widget: Widget, title: Content, subtitle: Content | None = None) -> None:
    """Set the titles of a frame, and redraw its first and last line only when they are other ones."""
    before = widget._border_title, widget._border_subtitle
    # Setting the public attributes would redraw all of the widget.
    widget._border_title = title.split()[0]
    if subtitle is not None:
        widget._border_subtitle = subtitle.split()[0]
    (x, y), size = widget.content_offset, widget.outer_size
    lines = Region(-x, -y, size.width, 1), Region(-x, size.height - 1 - y, size.width, 1)
    after = widget._border_title, widget._border_subtitle
    changed = [line for line, was, now in zip(lines, before, after, strict=True) if was != now]
    if changed and size:
        widget.refresh(*changed)


class RowMarks:
    """What the marked rows of `rows` are about: a mark stays with its row wherever that goes, and goes with it."""

    def __init__(self, rows: RowList) -> None:
        self._rows = rows
        self.those: frozenset[Hashable] = frozenset()

    def __contains__(self, key: Hashable) -> bool:
        return key in self.those

    def __bool__(self) -> bool:
        return bool(self.those)

    @property
    def word(self) -> str:
        """`3 marked`, and how many of them are not listed now; empty without any."""
        if not self.those:
            return ""
        listed = {self._rows.key_of(row) for row in range(self._rows.count())}
        unseen = len(self.those - listed)
        return f"{len(self.those):,} marked" + (f", {unseen:,} out of sight" if unseen else "")

    def beside(self, title: str) -> str:
        """`title` of a pane, with how many of its rows are marked."""
        return f"{title}, {self.word}" if self.those else title

    def set(self, those: Iterable[Hashable]) -> None:
        """Mark what `those` rows are about, and nothing else."""
        before, self.those = self.those, frozenset(those)
        if self.those != before:
            self._rows.redraw()
            self._rows.post_message(self._rows.Marked(self._rows))

    def keep(self, known: Iterable[Hashable]) -> None:
        """Take the marks of what is not `known` any more away."""
        self.set(self.those.intersection(known))

    def drop(self) -> bool:
        """Take every mark away; whether there were any."""
        had = bool(self.those)
        self.set(())
        return had

    def row(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go on; a row that heads its kind marks that."""
        kind, key = self._kind(), self._rows.key
        if kind is not None and key not in self._rows.alike(kind):
            self.kind()
        elif kind is not None:
            self.set(self.those ^ {key})
            self._rows.do_down()

    def kind(self) -> None:
        """Mark every row of the kind under the cursor; where all are marked, none."""
        if (kind := self._kind()) is not None:
            same = self._rows.alike(kind)
            self.set(self.those - same if same <= self.those else self.those | same)

    def _kind(self) -> Hashable:
        rows = self._rows
        kind = rows.kind_of(rows.cursor) if 0 <= rows.cursor < rows.count() else None
        if kind is None:
            rows.post_message(rows.Nothing("This row cannot be marked."))
        return kind


Line = tuple[list[Piece], Hashable]
"""A line and what it is about; the cursor skips lines about nothing (None)."""

Write = Callable[[int], Sequence[Line]]
"""Writes the lines for a width in cells."""


def text(words: str, width: int, style: str = "", indent: int = 1) -> list[Line]:
    """`words` as lines about nothing, wrapped and set in."""
    room = max(8, width - indent - 1)
    return [([(" " * indent, ""), (words[start:end], style)], None) for start, end in wrap(words, room)]


class Rows(RowList):
    """Lines that `write` makes for the present width; `places` are where it stands, in terms of the action table.

    Where `opens` is set, one click on the line under the cursor is enough; where `marks` is, lines can be marked, and
    leave two cells for it.
    """

    def __init__(
        self, *, id: str, places: tuple[str, ...] = ("list",), opens: bool = False, marks: bool = False
    ) -> None:
        super().__init__(id=id)
        self.PLACES, self._opens, self._markable = places, opens, marks
        self._write: Write = lambda _width: ()
        self._lines: Sequence[Line] = ()

    def show(self, write: Write, title: str, subtitle: str = "", *, held: int = 0) -> None:
        """Show what `write` makes, whose first `held` lines do not scroll; the cursor stays on what it is about."""
        key, self._write, self.held = self.key, write, held
        self.name_frame(Content(title), Content(subtitle))
        self.rows_changed(key)

    def lay_out(self, width: int) -> None:
        """Write the lines for this width."""
        self._lines = self._write(width)
        super().lay_out(width)

    def count(self) -> int:
        """Lines."""
        return len(self._lines)

    def key_of(self, row: int, /) -> Hashable:
        """What the line is about."""
        return self._lines[row][1]

    def kind_of(self, row: int, /) -> Hashable:
        """Every line that is about something can be marked, where lines can be."""
        return "line" if self._markable and self.key_of(row) is not None else None

    def draw(self, row: int, _line: int, _width: int, /) -> Iterable[Piece]:
        """One line, after its mark."""
        pieces, key = self._lines[row]
        if not self._markable or key is None:
            return pieces
        return [(" ■", "mark") if key in self.marks else (" □", "muted"), *pieces]

    def opens_at_once(self, _row: int, /) -> bool:
        """Whether one click is enough."""
        return self._opens
