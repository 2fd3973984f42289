"""The reader shows a note as it is on disk. It has line numbers, chunks and recalled lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from textual.binding import BindingType
from textual.content import Content
from textual.selection import Selection
from textual.strip import Strip

from memory_tui.formatting import plural
from memory_tui.sanitize import safe
from memory_tui.tui.draw import Piece, fit, fit_path, strip, wrapped
from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_page import Layout, Mark, Match, Page, marks, overlaid
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.explain.words import MatchedWords
    from memory_tui.openclaw.dreaming import Fold
    from memory_tui.search.trace import Trace


def _folds(page: Page) -> Sequence[Fold]:
    """What dreaming wrote into the note on `page`; of a head alone nothing, because its blocks may go on."""
    if not page.whole or not any("openclaw" in line for line in page.lines):
        return ()
    from memory_tui.openclaw.dreaming import folds

    return folds("\n".join(page.lines))


"""The shades of a row, and what each of its lines is: the number of a part of the text, or a side with its bars."""


class Reader(RowList):
    """One row per line of the note, wrapped; chunks are brackets between number and text."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("reader"))
    PLACES: ClassVar[tuple[str, ...]] = ("reader", "list")
    ALLOW_SELECT = True
    """What the words of the cited lines give, while that is shown, in shades and bars."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.page: Page | None = None
        self.cited: tuple[int, int] | None = None
        self.matches: Sequence[Match] = ()
        self.recalled: Collection[int] = ()
        self.unread: range = range(0)
        self.rules: Mapping[int, str] = {}
        self._said: tuple[str, ...] = ()
        self._layout: Layout | None = None
        self._anchor: int | None = None
        self._words: MatchedWords | None = None
        self._folds: Sequence[Fold] = ()
        self._unfolded: set[int] = set()
        """First lines (from 1) of what a person unfolded."""

    # --- what is read --------------------------------------------------------------------------------------------

    def show(self, page: Page, cited: tuple[int, int] | None = None, *, line: int | None = None) -> None:
        """Show `page`, opened at the `cited` lines (1-based, inclusive), or with the cursor on `line`."""
        same = self.page is not None and self.page.path == page.path
        self.page, self.cited, self._anchor = page, cited, None
        self._folds = _folds(page)
        self._unfolded = self._unfolded if same else set()
        self.matches, self.recalled, self.unread, self.rules = (), (), range(0), {}
        at = line if line is not None else cited[0] if cited else 1
        self._reveal(min(at, len(page.lines)) - 1)
        self.rows_changed(min(at, len(page.lines)) - 1)
        self._retitle()
        if cited and line is None:
            self._lift(cited[0] - 1)

    def answers(self, asked: Trace) -> None:
        """The note is read as an answer to what was `asked`: mark the words that matched."""
        from memory_tui.explain.words import MatchedWords

        self._words = MatchedWords.of(asked)

    def _watch_shares(self) -> None:
        """Bars need room below their lines."""
        self._measure()
        self.show_cursor()
        self.redraw()

    def _lift(self, row: int) -> None:
        """Scroll so that `row` is near the upper end."""
        self.scroll_to(y=max(0, self._tops[min(row, self.count())] - 2), animate=False, immediate=True, force=True)

    def go_to_line(self, line: int) -> None:
        """Put the cursor on 1-based `line`, with what follows in sight."""
        self.cursor = min(max(line, 1), self.count()) - 1
        self._lift(self.cursor)

    def watch_cursor(self) -> None:
        """The title follows the cursor; a line that is folded away comes into sight."""
        if self._reveal(self.cursor):
            self._measure()
        super().watch_cursor()
        self._retitle()

    def _retitle(self) -> None:
        if self.page is None:
            self.name_frame(Content("Reader"), Content(""))
            return
        name = fit_path(safe(self.page.path), 60)
        chunk, count = self.page.chunk_at(self.cursor + 1), len(self.page.chunks)
        where = f"chunk {chunk + 1} of {count}" if chunk >= 0 else "not in a chunk" if count else "not indexed yet"
        if self.page.whole and not self.page.size:
            where = "empty"
        if not self.page.whole:
            where = "reading the rest ..."
        self.name_frame(Content(f"{name}  {where}"))

    # --- what dreaming wrote is folded ---------------------------------------------------------------------------

    @property
    def foldable(self) -> bool:
        """Whether something in the note can be folded."""
        return bool(self._folds)

    def _folded(self) -> list[Fold]:
        """What is folded now."""
        return [fold for fold in self._folds if fold.first not in self._unfolded]

    def _fold_at(self, row: int) -> Fold | None:
        """What can be folded around `row`."""
        return next((fold for fold in self._folds if fold.first <= row + 1 <= fold.last), None)

    def _is_hidden(self, row: int) -> bool:
        fold = self._fold_at(row) if self._folds else None
        return fold is not None and fold.first != row + 1 and fold.first not in self._unfolded

    def _reveal(self, row: int) -> bool:
        """Unfold what hides `row`; False where nothing does."""
        fold = self._fold_at(row) if self._is_hidden(row) else None
        if fold is not None:
            self._unfolded.add(fold.first)
        return fold is not None

    def toggle_fold(self) -> bool:
        """Fold or unfold what begins in the line under the cursor; False where nothing does."""
        fold = self._fold_at(self.cursor)
        if fold is None or fold.first != self.cursor + 1:
            return False
        self._set_folded(fold, folded=fold.first in self._unfolded)
        return True

    def do_fold(self) -> None:
        """Fold what the cursor is in."""
        self._fold(folded=True)

    def do_unfold(self) -> None:
        """Unfold what begins under the cursor."""
        self._fold(folded=False)

    def _fold(self, *, folded: bool) -> None:
        fold = self._fold_at(self.cursor)
        if fold is not None:
            self._set_folded(fold, folded=folded)

    def _set_folded(self, fold: Fold, *, folded: bool) -> None:
        if folded:
            self._unfolded.discard(fold.first)
        else:
            self._unfolded.add(fold.first)
        self.rows_changed(fold.first - 1 if folded else self.cursor)

    def show_sentences(self, sentence: str, next_step: str = "") -> None:
        """Show no note but a sentence."""
        self.page, self.cited, self._said = None, None, ("", sentence, next_step)
        self._folds = ()
        self.rows_changed()
        self._retitle()

    def annotate(self, *, recalled: Collection[int], unread: range, rules: Mapping[int, str]) -> None:
        """Mark 1-based lines as `recalled`, dim rows that no agent is given, and put `rules` above rows (from 0)."""
        if (recalled, unread, rules) != (self.recalled, self.unread, self.rules):
            self.recalled, self.unread, self.rules = recalled, unread, rules
            self._measure()
            self.show_cursor()
            self.redraw()

    @property
    def citation(self) -> tuple[str, int, int] | None:
        """What is under the cursor: selected lines, else the cited ones, else the chunk, else the line."""
        if self.page is None or self.cursor < 0:
            return None
        line = self.cursor + 1
        if self._anchor is not None:
            return self.page.path, *self.selected_lines
        if self.cited and self.cited[0] <= line <= self.cited[1]:
            return self.page.path, *self.cited
        chunk = self.page.chunk_at(line)
        first, last = self.page.chunks[chunk] if chunk >= 0 else (line, line)
        return self.page.path, first, last

    @property
    def selected_lines(self) -> tuple[int, int]:
        """The first and last line (1-based) that were marked with the keyboard; the line under the cursor without."""
        other = self.cursor if self._anchor is None else self._anchor
        return min(other, self.cursor) + 1, max(other, self.cursor) + 1

    @property
    def selecting(self) -> bool:
        """Whether lines are being marked."""
        return self._anchor is not None

    def do_select(self) -> None:
        """Begin to mark lines, or stop."""
        self._anchor = self.cursor if self._anchor is None else None
        self.redraw()
        self.post_message(self.Moved(self))

    def drop_selection(self) -> bool:
        """Mark no lines any more; False when none were."""
        if self._anchor is None:
            return False
        self.do_select()
        return True

    def text_of(self, first: int, last: int) -> str:
        """The text of the lines `first` to `last`, safe to show."""
        return "\n".join(self.page.lines[first - 1 : last]) if self.page else ""

    # --- going about ---------------------------------------------------------------------------------------------

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

    def found(self, matches: Sequence[Match]) -> None:
        """Mark `matches`, in order, and go to the first at or below the cursor."""
        self.matches = matches
        if matches:
            at = bisect_left(matches, (max(0, self.cursor), 0, 0))
            self.cursor = matches[at % len(matches)][0]
        self.redraw()

    def to_match(self, direction: int) -> int:
        """Go to the next (+1) or the one before (-1), round the ends; returns which it is, from 1, 0 without any."""
        rows = sorted({row for row, _, _ in self.matches})
        if not rows:
            return 0
        at = bisect_right(rows, self.cursor) if direction > 0 else bisect_left(rows, self.cursor) - 1
        self.cursor = rows[at % len(rows)]
        return bisect_left(self.matches, (self.cursor, 0, 0)) + 1

    # --- rows ----------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Lines of the note."""
        return len(self.page.lines) if self.page else len(self._said)

    def key_of(self, row: int, /) -> Hashable:
        """The line; one that is folded away, or a sentence in place of a note, has none."""
        return row if self.page and not self._is_hidden(row) else None

    def row_of(self, key: Hashable) -> int | None:
        """A line is its own key, and a note can have many."""
        return key if isinstance(key, int) and self.page is not None and 0 <= key < self.count() else None

    def lay_out(self, width: int) -> None:
        """Find out anew where the lines of the note begin."""
        self._layout = None
        if self.page is None:
            super().lay_out(width)
            return
        self._laid_out = width
        folded = [range(fold.first - 1, fold.last) for fold in self._folded()]
        above = dict.fromkeys(self.rules, 1)
        self._layout = Layout(self.page, width - self._gutter, above, folded)
        self._tops = self._layout.tops

    @property
    def _gutter(self) -> int:
        return len(str(len(self.page.lines))) + 6 if self.page else 2

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the sentence needs that stands in for a note."""
        return len(wrapped(self._said[row], width - 4))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """A line of the sentence that stands in for a note."""
        return [(f"  {wrapped(self._said[row], width - 4)[line]}", "strong" if row == 1 else "muted")]

    def _strip_at(self, y: int) -> Strip:
        """Gutter and text apart, so that a mouse selection holds text only."""
        at = y + self.scroll_offset.y
        row = self.row_at(at)
        if self.page is None or self._layout is None or row >= self.count():
            return super()._strip_at(y)
        width, line = self._laid_out, at - self._tops[row]
        if row in self.rules:
            if line == 0:
                return strip(
                    [(fit(f"── {self.rules[row]} {'─' * width}", width), "warn")], width, self._base, self.style_of
                )
            line -= 1
        base = self._base_of(row)
        last = at == self._tops[row + 1] - 1
        start, end = self._layout.span(row, line)
        gutter = strip(self._signs(row, line, last=last), self._gutter, base, self.style_of)
        fold = self._fold_at(row) if self._folds else None
        pieces = self._pieces(self.page, row, start, end)
        if fold is not None and fold.first not in self._unfolded:
            title = fit(f"▸ {fold.title}, {plural(fold.last - fold.first + 1, 'line')}", width - self._gutter)
            pieces = [(title, "emphasis")]
        text = strip(pieces, width - self._gutter, base, self.style_of)
        return Strip.join([gutter, text.apply_offsets(start, row)])

    def _base_of(self, row: int) -> Style:
        base = self._base
        if self._is_cited(row) or (self._anchor is not None and self._is_marked(row)):
            base += self.style_of("cited")
        if row == self.cursor:
            base += self.style_of("cursor" if self.has_focus else "blurred")
        return base

    def _is_cited(self, row: int) -> bool:
        return bool(self.cited and self.cited[0] <= row + 1 <= self.cited[1])

    def _is_marked(self, row: int) -> bool:
        first, last = self.selected_lines
        return first <= row + 1 <= last

    def _signs(self, row: int, line: int, *, last: bool) -> list[Piece]:
        """Line number, two columns of chunk brackets (chunks overlap), recalled, and the mark of cited lines."""
        if self.page is None:
            return []
        number = f"{row + 1:>{self._gutter - 6}} " if line == 0 else " " * (self._gutter - 5)
        columns = [" ", " "]
        for i in self.page.covering(row + 1):
            first, final = self.page.chunks[i]
            opens, closes = first == row + 1 and line == 0, final == row + 1 and last
            columns[i % 2] = "[" if opens and closes else "╭" if opens else "╰" if closes else "│"
        marked = self._anchor is not None and self._is_marked(row)
        mark = "▐" if marked else "▌" if self._is_cited(row) else " "
        recalled = "•" if line == 0 and row + 1 in self.recalled else " "
        return [(number, "muted"), ("".join(columns), "rule"), (recalled, "good"), (f"{mark} ", "mark")]

    def _pieces(self, page: Page, row: int, start: int, end: int) -> Iterable[Piece]:
        text = page.lines[row]
        layers: list[Sequence[Mark]] = [marks(text, page.in_code(row))]
        if row in self.unread:
            layers = [((0, len(text), "lost"),)]
        if self._words and self._is_cited(row):
            layers.append([(begin, finish, "match") for begin, finish in self._words.spans(text)])
        if self.matches:
            first, last = bisect_left(self.matches, (row, 0, 0)), bisect_left(self.matches, (row + 1, 0, 0))
            layers.append([(begin, finish, "found") for _, begin, finish in self.matches[first:last]])
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is not None:
            layers.append([(span[0], len(text) if span[1] == -1 else span[1], "selected")])
        return overlaid(text[start:end], start, layers)

    # --- selection with the mouse --------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without line numbers and soft line ends."""
        return (selection.extract("\n".join(self.page.lines)), "\n") if self.page else None

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        del selection
        self.redraw()
