"""A note as it is on disk: line numbers, where its chunks begin and end, and the cited lines."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import accumulate
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.selection import Selection
from textual.strip import Strip

from memory_tui.text.display import safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.page import Page
from memory_tui.tui.paint import Piece, fit_path, strip, wrap, wrapped
from memory_tui.tui.widgets.rowlist import RowList


class Reader(RowList):
    """One row per line of the note, wrapped; chunks are brackets between number and text."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("reader"))
    PLACES: ClassVar[tuple[str, ...]] = ("reader", "list")
    ALLOW_SELECT = True

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.page: Page | None = None
        self.cited: tuple[int, int] | None = None
        self._said: tuple[str, ...] = ()
        self._spans: dict[int, list[tuple[int, int]]] = {}

    # --- what is read --------------------------------------------------------------------------------------------

    def show(self, page: Page, cited: tuple[int, int] | None = None, *, keep: bool = False) -> None:
        """Show `page`, opened at the `cited` lines (1-based, inclusive); with `keep` at the line it was."""
        line = self.cursor
        self.page, self.cited = page, cited
        self.rows_changed(line if keep else cited[0] - 1 if cited else 0)
        self._retitle()
        if cited and not keep:
            self.scroll_to(y=max(0, self._tops[min(cited[0] - 1, self.count())] - 2), animate=False, immediate=True,
                           force=True)

    def watch_cursor(self) -> None:
        """The title follows the cursor."""
        super().watch_cursor()
        self._retitle()

    def _retitle(self) -> None:
        if self.page is None:
            self.border_title = "Reader"
            return
        name = fit_path(safe(self.page.path), 60)
        chunk, count = self.page.chunk_at(self.cursor + 1), len(self.page.chunks)
        where = f"chunk {chunk + 1} of {count}" if chunk >= 0 else "not in a chunk" if count else "not indexed yet"
        self.border_title = Content(f"{name}  {where}")

    def say(self, sentence: str, next_step: str = "") -> None:
        """Show no note but a sentence."""
        self.page, self.cited, self._said = None, None, ("", sentence, next_step)
        self.rows_changed()
        self._retitle()

    @property
    def place(self) -> tuple[str, int, int] | None:
        """What is under the cursor: the cited lines, else the chunk, else the line."""
        if self.page is None or self.cursor < 0:
            return None
        line = self.cursor + 1
        if self.cited and self.cited[0] <= line <= self.cited[1]:
            return self.page.path, *self.cited
        chunk = self.page.chunk_at(line)
        first, last = self.page.chunks[chunk] if chunk >= 0 else (line, line)
        return self.page.path, first, last

    def text_of(self, first: int, last: int) -> str:
        """The text of the lines `first` to `last`, safe to show."""
        return "\n".join(self.page.lines[first - 1:last]) if self.page else ""

    def do_next_chunk(self) -> None:
        """The first line of the next chunk."""
        self._chunk(1)

    def do_previous_chunk(self) -> None:
        """The first line of the chunk before."""
        self._chunk(-1)

    def _chunk(self, direction: int) -> None:
        if self.page is None:
            return
        starts = sorted({first for first, _ in self.page.chunks})
        line = self.cursor + 1
        ahead = [s for s in starts if s > line] if direction > 0 else [s for s in reversed(starts) if s < line]
        if ahead:
            self.cursor = ahead[0] - 1

    # --- rows ----------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Lines of the note."""
        return len(self.page.lines) if self.page else len(self._said)

    def key_of(self, row: int, /) -> Hashable:
        """The line; a sentence in place of a note has none."""
        return row if self.page else None

    def lay_out(self, width: int) -> None:
        """Wrap the lines of the note anew; most of them fit, and a note can have many."""
        self._spans.clear()
        if self.page is None:
            super().lay_out(width)
            return
        self._laid_out, room = width, width - self._gutter
        self._tops = [0, *accumulate(1 if len(text) <= room and text.isascii() else self._wrap(row, text, room)
                                     for row, text in enumerate(self.page.lines))]

    def _wrap(self, row: int, text: str, room: int) -> int:
        self._spans[row] = list(wrap(text, room))
        return len(self._spans[row])

    @property
    def _gutter(self) -> int:
        return len(str(len(self.page.lines))) + 5 if self.page else 2

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the sentence needs that stands in for a note."""
        return len(wrapped(self._said[row], width - 4))

    def _span(self, row: int, line: int) -> tuple[int, int]:
        return self._spans[row][line] if row in self._spans else (0, len(self.page.lines[row]) if self.page else 0)

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """A line of the sentence that stands in for a note."""
        return [(f"  {wrapped(self._said[row], width - 4)[line]}", "strong" if row == 1 else "muted")]

    def render_line(self, y: int) -> Strip:
        """Gutter and text apart, so that a mouse selection holds text only."""
        if self.inner_width != self._laid_out:
            self.lay_out(self.inner_width)
        at = y + self.scroll_offset.y
        row = self.row_at(at)
        if self.page is None or row >= self.count():
            return super().render_line(y)
        width, base, line = self.inner_width, self._base, at - self._tops[row]
        cited = bool(self.cited and self.cited[0] <= row + 1 <= self.cited[1])
        if cited:
            base += self.style_of("cited")
        if row == self.cursor:
            base += self.style_of("cursor" if self.has_focus else "blurred")
        last = line == self._tops[row + 1] - self._tops[row] - 1
        gutter = strip(self._signs(row, line, last=last, cited=cited), self._gutter, base, self.style_of)
        start, end = self._span(row, line)
        text = strip(self._pieces(row, start, end), width - self._gutter, base, self.style_of)
        return Strip.join([gutter, text.apply_offsets(start, row)])

    def _signs(self, row: int, line: int, *, last: bool, cited: bool) -> list[Piece]:
        """Line number, two columns of chunk brackets (chunks overlap), and the mark of cited lines."""
        if self.page is None:
            return []
        number = f"{row + 1:>{self._gutter - 5}} " if line == 0 else " " * (self._gutter - 4)
        columns = [" ", " "]
        for i in self.page.covering(row + 1):
            first, final = self.page.chunks[i]
            opens, closes = first == row + 1 and line == 0, final == row + 1 and last
            columns[i % 2] = "[" if opens and closes else "╭" if opens else "╰" if closes else "│"
        return [(number, "muted"), ("".join(columns), "rule"), ("▌" if cited else " ", "mark"), (" ", "")]

    def _pieces(self, row: int, start: int, end: int) -> list[Piece]:
        if self.page is None:
            return []
        text, kind = self.page.lines[row][start:end], self.page.kinds[row]
        name = {"head": "head", "code": "good", "quote": "muted"}.get(kind, "")
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is None:
            return [(text, name)]
        first, final = max(0, span[0] - start), len(text) if span[1] == -1 else max(0, span[1] - start)
        return [(text[:first], name), (text[first:final], "selected"), (text[final:], name)]

    # --- selection with the mouse --------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without line numbers and soft line ends."""
        return (selection.extract("\n".join(self.page.lines)), "\n") if self.page else None

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        del selection
        self.refresh()
