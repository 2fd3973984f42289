"""The text of a note while it is edited: Markdown in the reader's colours, what was found, what others changed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_changes import visible
from memory_tui.tui.note_page import MOST, Match, find_in, marks

_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_STYLES = (
    "head",
    "code",
    "link",
    "strong",
    "emphasis",
    "mark",
    "muted",
    "rule",
    "good",
    "warn",
    "chip",
    "found",
    "outside",
)


class EditArea(TextArea):
    """The text; letters are letters here."""

    # The text area would take esc for itself.
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("editor"),
        Binding("escape", "app.do('back')", "Back", show=False, priority=True),
        Binding("ctrl+home", "to_start", "Start of the text", show=False),
        Binding("ctrl+end", "to_end", "End of the text", show=False),
    ]
    PLACES: ClassVar[tuple[str, ...]] = ("editor",)
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"row--{name}" for name in _STYLES}

    def __init__(self) -> None:
        super().__init__(id="text", soft_wrap=True, show_line_numbers=True, tab_behavior="indent", read_only=True)
        self.cursor_blink = False
        self._fences: list[int] = []
        self._wanted = ""
        self._matches: Sequence[Match] = ()
        self._found: Mapping[int, Sequence[Match]] = {}
        self._outside: frozenset[int] = frozenset()

    def get_line(self, line_index: int) -> Text:
        """The line as it is drawn: Markdown in the colours of the reader, dates, what was found, others' changes."""
        line = super().get_line(line_index)
        before = bisect_right(self._fences, line_index)
        in_code = before % 2 == 1 or (before > 0 and self._fences[before - 1] == line_index)
        layers = [
            [] if in_code else [(*date.span(), "mark") for date in _DATE.finditer(line.plain)],
            marks(line.plain, in_code),
            [(0, len(line), "outside")] if line_index in self._outside else [],
            [(first, last, "found") for _, first, last in self._found.get(line_index, ())],
        ]
        for first, last, name in chain.from_iterable(layers):
            line.stylize(self.get_component_rich_style(f"row--{name}", partial=True), first, last)
        return line

    @on(TextArea.Changed)
    def recolour(self) -> None:
        """Look where blocks of code and what was found are now: lines that were not typed in change too."""
        lines = map(self.document.get_line, range(self.document.line_count))
        fences = [row for row, line in enumerate(lines) if _FENCE.match(line)]
        if fences != self._fences:
            self._fences = fences
            self._drawn_otherwise()
        if self._wanted:
            self._look()

    def find(self, text: str) -> str:
        """Mark where `text` is, and go to the first place from the cursor on; returns what a person should know."""
        self._wanted = text
        self._look()
        if not self._matches:
            return self._not_found if text else ""
        return self._to(bisect_left(self._matches, (*min(self.selection), 0)))

    def _look(self) -> None:
        self._matches = find_in(self.document.lines, self._wanted)
        self._found = {row: list(reply) for row, reply in groupby(self._matches, itemgetter(0))}
        self._drawn_otherwise()

    def to_match(self, direction: int) -> str:
        """Go to the next place, or with -1 to the one before; behind the last one comes the first."""
        if not self._matches:
            return self._not_found if self._wanted else "Nothing is found yet: type what to find."
        here = bisect_left(self._matches, (*min(self.selection), 0))
        at_place = here < len(self._matches) and self._matches[here][:2] == min(self.selection)
        return self._to(here + (at_place if direction > 0 else -1))

    @property
    def _not_found(self) -> str:
        return f'"{self._wanted}" is not in this note.'

    def _to(self, at: int) -> str:
        at %= len(self._matches)
        row, first, last = self._matches[at]
        self.selection = Selection((row, first), (row, last))
        self.scroll_cursor_visible(center=True)
        most = "the first " if len(self._matches) == MOST else ""
        return f"Place {at + 1:,} of {most}{len(self._matches):,}."

    def mark_outside(self, rows: frozenset[int]) -> None:
        """Mark the rows that another program changed."""
        if rows != self._outside:
            self._outside = rows
            self._drawn_otherwise()

    def _drawn_otherwise(self) -> None:
        self.notify_style_update()
        self.refresh()

    def action_to_start(self) -> None:
        """The start of the text."""
        self.move_cursor((0, 0))

    def action_to_end(self) -> None:
        """The end of the text."""
        self.move_cursor(self.document.end)

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted may hold control characters; they are shown, not obeyed. Then it is pasted."""
        event.text = visible(event.text)
