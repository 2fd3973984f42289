"""Lines of a note; a subclass of the text area, which styles no Markdown, numbers no parts and dims no region."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widgets import TextArea

from memory_tui.formatting import one_line, safe
from memory_tui.tui.keys import bindings

LONGEST_LINE = 5_000
"""Characters of one line that are shown; the rest is counted."""
_STYLED = 2_000
"""Characters of a line whose Markdown is styled."""
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_QUOTE = re.compile(r"\s{0,3}>|\s*<!--.*-->\s*$")
_BOX = re.compile(r"\s*[-*+] (\[[ xX]\])(?=\s)")
_INLINE = re.compile(
    r"(?P<code>`+[^`]+`+)|(?P<strong>\*\*(?=\S).+?\*\*)|(?P<link>\[\[[^\[\]]+\]\]|\[[^\[\]]*\]\([^()\s]+\)|https?://\S+)"
    r"|(?P<muted><!--.*?-->)"
)


Part = tuple[str, str]
"""Words and their style."""


class NotePage(Struct, frozen=True):
    """A note, or the part of a long one, as the reader shows it.

    `parts` are for the strip over it, the most pressing first; `rulers` stand above lines; `problem` is why there is no
    text; `whole` tells whether all of it is there; `owner` is the other workspace whose note it is.
    """

    path: str
    text: str = ""
    first: int = 1
    """The number of the first line of `text`."""
    parts: tuple[Part, ...] = ()
    unread: Container[int] = ()
    """The lines that an agent does not read."""
    rulers: Mapping[int, str] = {}
    """The words over a line, by its number."""
    problem: str = ""
    whole: bool = True
    owner: str = ""


def shown_line(line: str) -> str:
    """Return what is shown of one line: safe, and of a very long one the beginning."""
    more = len(line) - LONGEST_LINE
    return safe(line) if more <= 0 else f"{safe(line[:LONGEST_LINE])} … {more:,} more characters in this line"


class MarkdownText(TextArea):
    """A text area whose Markdown is styled, line by line: Textual's `Markdown` takes four seconds for 51 KB."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"text--{name}"
        for name in ("heading", "strong", "code", "link", "muted", "ruler", "unread", "struck", "decided")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(f"ctrl+{key}", f"edge({key == 'home'})", key.title(), show=False) for key in ("home", "end")
    ]
    # Without this each letter and each note lays out the whole screen.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)

    def validate_virtual_size(self, size: Size) -> Size:
        """Return the size of the text, at least that of the window: one that fits has no bar."""
        return Size(size.width, max(size.height, self.size.height))

    def watch_virtual_size(self, size: Size) -> None:
        """Tell the scrollbar, which a layout would do."""
        self.vertical_scrollbar.window_virtual_size = size.height

    def __init__(self, *, read_only: bool, id: str | None = None) -> None:
        super().__init__("", read_only=read_only, show_line_numbers=True, soft_wrap=True, compact=True, id=id)
        self.cursor_blink = self.match_cursor_bracket = False
        self.fences: list[int] = []
        """The rows, counted from 0, in which a block of code begins or ends."""

    @on(TextArea.Changed)
    def recolour(self) -> None:
        """Look where blocks of code are now: lines that were not typed in change too."""
        fences = [row for row in range(self.document.line_count) if _FENCE.match(self.document.get_line(row))]
        if fences != self.fences:
            self.fences = fences
            self.redraw()

    def redraw(self) -> None:
        """Draw all lines anew, because their styles are others."""
        self.notify_style_update()
        self.refresh()

    def styled(self, line: Text, name: str, start: int = 0, end: int | None = None) -> None:
        """Give a part of a line a style of the style sheet."""
        line.stylize(self.get_component_rich_style(f"text--{name}", partial=True), start, end)

    def get_line(self, line_index: int) -> Text:
        """Return a line with its Markdown styled."""
        line = super().get_line(line_index)
        # What makes an emoji of a sign takes a cell on some terminals and none on others, which moves the border.
        line.plain = line.plain.replace("\ufe0f", " ")
        # After an odd number of fences a block of code is open.
        if sum(row < line_index for row in self.fences) % 2 or line_index in self.fences:
            self.styled(line, "code")
        elif _HEADING.match(line.plain):
            self.styled(line, "heading")
        elif _QUOTE.match(line.plain):
            self.styled(line, "muted")
        else:
            for match in _INLINE.finditer(line.plain[:_STYLED]):
                self.styled(line, match.lastgroup or "", *match.span())
        return line

    def action_edge(self, top: bool) -> None:
        """Go to the beginning or the end of the text."""
        self.move_cursor(self.document.start if top else self.document.end)

    @property
    def cursor_row(self) -> int:
        """Return the row on the screen, counted from the top of the text, that the cursor is on."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll at once: the text area's own waits for a paint, so that each step of a list is painted twice."""
        at = Region(0, self.cursor_row, 1, 1)
        return self.scroll_to_region(at, animate=animate, force=True, center=center, immediate=True)


class Reader(MarkdownText):
    """Shows a note, or a part of it, to read; what is copied names its note and lines."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("note.copy", "note.cite", "note.mark", "list.down", "list.up")
    BINDINGS += [Binding(key, f"edge({key == 'home'})", key.title(), show=False) for key in ("home", "end")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(read_only=True, id=id)
        self.page = NotePage("")
        self.numbers: list[int] = []
        """The line of the note in each row; 0 for a ruler."""
        self.marked: set[int] = set()
        """The lines of the note that a person marked."""
        self.overtaken: set[int] = set()
        """The rows that newer lines overtook."""
        self.decided = 0
        """The line that made the note a hit; 0 where that is not shown."""
        self.origins: Mapping[int, str] = {}
        """When and by whom a line of the note came, in words."""

    def show(self, page: NotePage, line: int, *, decided: bool = False) -> None:
        """Show a note with the cursor on `line`, which with `decided` is the one that made the note a hit."""
        # What reads annotations comes with the first text: the first frame has none.
        from memory_tui.workspace.notes import is_overtaken

        self.page = page
        self.marked, self.origins = set(), {}
        self.decided = line if decided and page.path else 0
        rows, self.numbers = list[str](), []
        # Behind the last line end is no line.
        lines = page.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        for number, words in enumerate(map(shown_line, lines), page.first):
            if number in page.rulers:
                rows.append(f"── {safe(page.rulers[number])} ──")
                self.numbers.append(0)
            rows.append(words)
            self.numbers.append(number if page.path else 0)
        self.overtaken = {row for row, words in enumerate(rows) if is_overtaken(words)}
        self.set_reactive(TextArea.line_number_start, page.first)
        self.load_text("\n".join(rows))
        self.go(line)

    def go(self, line: int) -> None:
        """Put the cursor on a line of the note, with what is above it in sight."""
        row = next((row for row, number in enumerate(self.numbers) if number >= line), len(self.numbers) - 1)
        self.move_cursor((max(0, row), 0))
        # One line above is enough where a line decided, as what follows is worth more, and in a pane of few lines.
        above = 1 if self.decided or self.size.height < 12 else self.size.height // 3
        self.scroll_to(y=self.cursor_row - above, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor in sight when lines wrap anew, which Textual does after this."""
        self.call_next(partial(self.go, self.line) if self.decided else self.scroll_cursor_visible)

    @property
    def line(self) -> int:
        """Return the line of the note under the cursor."""
        row, _ = self.cursor_location
        return next(filter(None, self.numbers[row:]), 1)

    @property
    def chosen(self) -> list[tuple[int, int]]:
        """Return the marked lines as runs from first to last, else the selected ones, else that of the cursor."""
        (first_row, _), (last_row, _) = sorted(self.selection)
        selected = [number for number in self.numbers[first_row : last_row + 1] if number]
        return runs(self.marked or selected) or [(self.line, self.line)]

    def get_cursor_down_location(self) -> tuple[int, int]:
        """Return where the cursor goes: to the next line of the note, which is what is copied, not to its next row."""
        return min(self.cursor_location[0] + 1, self.document.line_count - 1), 0

    def get_cursor_up_location(self) -> tuple[int, int]:
        """Return where the cursor goes: to the line of the note before this one."""
        return max(self.cursor_location[0] - 1, 0), 0

    @property
    def top(self) -> int:
        """Return the first line that is shown."""
        return next(filter(None, self.numbers), 1)

    @property
    def seen(self) -> list[str]:
        """Return the lines of the note as they are shown."""
        return [text for number, text in zip(self.numbers, self.document.lines, strict=False) if number]

    def text_of(self, first: int, last: int) -> str:
        """Return lines of the note as they are shown."""
        rows = zip(self.numbers, self.document.lines, strict=False)
        return "\n".join(text for number, text in rows if number and first <= number <= last)

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn, every character at its place."""
        line = super().get_line(line_index)
        number = self.numbers[line_index] if line_index < len(self.numbers) else 0
        if box := _BOX.match(line.plain):
            # Three cells for the three of `[ ]`, so that no column moves.
            start = box.start(1)
            sign = " ☐ " if box[1] == "[ ]" else " ☑ "
            line.plain = f"{line.plain[:start]}{sign}{line.plain[start + 3 :]}"
        if not number:
            self.styled(line, "ruler")
        if number in self.page.unread:
            self.styled(line, "unread")
        if line_index in self.overtaken:
            self.styled(line, "struck")
        if number and number == self.decided:
            self.styled(line, "decided")
        return line

    def render_line(self, y: int) -> Strip:
        """Return a row with the line's number in the note, and one of the gutter's marks."""
        strip = super().render_line(y)
        y_of_text = y + self.scroll_offset.y
        gutter, *rest = strip
        # Below the text, and where Textual drew no numbers, there is no gutter to write into.
        if y_of_text >= self.wrapped_document.height or gutter.cell_length != self.gutter_width:
            return strip
        row, _ = self.wrapped_document.offset_to_location(Offset(0, y_of_text))
        # Only the first of the rows into which a line is wrapped has its number.
        is_first_of_row = y_of_text == self.wrapped_document.location_to_offset((row, 0)).y
        number = self.numbers[row] if row < len(self.numbers) else 0
        mark = "┃" if number and number == self.decided else "░" if number in self.page.unread else " "
        mark = "●" if number in self.marked else mark
        label = str(number) if number and is_first_of_row else ""
        style = (gutter.style or Style()) + Style(bold=mark in "┃●")
        return Strip([Segment(f"{label:>{self.gutter_width - 2}}{mark} ", style), *rest])

    def action_mark(self) -> None:
        """Mark the line, or take its mark away, and go on."""
        self.marked ^= {self.line}
        self.redraw()
        self.move_cursor(self.get_cursor_down_location())

    def action_copy(self, text: bool | None = None, hint: str = "") -> None:
        """Copy the chosen lines with their citation, or the citation alone; without `text` what is selected.

        The `hint` is a further sentence, below the one that says what was copied.
        """
        if text is None:
            super().action_copy()
            return
        self.copy(self.chosen, text=text, hint=hint)

    def copy(self, places: Sequence[tuple[int, int]], *, text: bool, hint: str = "") -> None:
        """Copy lines of the note with their citations, or the citations alone."""
        from memory_tui.openclaw.prompt import citation

        cited = [citation(self.page.path, *place) for place in places]
        texts = [self.text_of(*place) for place in places]
        if text and not "".join(texts).strip():
            self.notify("This line is empty, so nothing is copied.", markup=False)
            return
        whole = [f"{lines}\n\n{cite}" for lines, cite in zip(texts, cited, strict=True)]
        copied = "\n".join(whole if text else cited)
        self.app.copy_to_clipboard(copied)
        # It repeats what fits two lines beside the sentence: some terminals keep their clipboard to themselves.
        width = self.app.size.width
        words = one_line(copied) if len(copied) <= 2 * width - 60 else one_line(", ".join(cited), width)
        what = "text and citation" if text else "the citation alone"
        self.notify(f"Sent {what} to the clipboard, if this terminal has one: {words}\n{hint}".rstrip(), markup=False)


def runs(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers of lines as runs from first to last, in order."""
    # Along a run, number and position both grow by one, so their difference names the run.
    numbered = enumerate(sorted(lines))
    groups = [[line for _, line in group] for _, group in groupby(numbered, lambda pair: pair[1] - pair[0])]
    return [(group[0], group[-1]) for group in groups]
