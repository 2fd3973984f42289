"""The why pane shows the arithmetic of a score. It shows what would change it, and the raw record."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content

from memory_tui import notices
from memory_tui.explain import wording
from memory_tui.sanitize import safe
from memory_tui.search.trace import Recalled
from memory_tui.tui.draw import Piece, fit_path, wrap
from memory_tui.tui.home import home_of
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.status_bars import KeyHints
from memory_tui.tui.widgets.why_rows import Keyed, Subject, rows_of

if TYPE_CHECKING:
    from memory_tui.explain.counterfactuals import Change

EMPTY = "How the hit under the cursor got its score, line by line."
DEPTHS = ("", "the full record", "the raw record")
FEW, HIGH = 10, 18
"""Lines below which everything is packed, and below which the sum gives way to what would change it."""
ABOVE = 3
"""Lines of the sum that stay in sight then: the gate, with the margin."""


class WhyPane(RowList):
    """Explains one subject; the cursor stands on changes that can be applied, everything else scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("why"))
    PLACES: ClassVar[tuple[str, ...]] = ("why", "list")

    def __init__(self) -> None:
        super().__init__(id="why")
        self.subject: Subject | None = None
        self.depth = 0
        self._rows: Sequence[Keyed] = ()
        self._stands = False
        """Whether the cursor stood on a change."""
        self._least = 0
        """Lines that it keeps while more is looked for, so that no scroll bar goes and comes again."""
        self._said = EMPTY
        self._previewed: Change | None = None
        """The change whose effects were said; enter sets it."""

    def show(self, subject: Subject | None, said: str = EMPTY) -> None:
        """Explain `subject`; without one `said` stands there."""
        before, top = self.subject.key if self.subject else "", self.scroll_offset.y
        self.subject, self._said = subject, said
        if subject is None or self._previewed not in subject.flips:
            self._disarm()
        same = subject is not None and subject.key == before
        self._least = len(self._rows) if same and subject is not None and subject.working else 0
        self.rows_changed(self.key if same else None)
        if not same or self._sum_first:
            self.scroll_to(y=top if same else 0, animate=False, immediate=True, force=True)

    @property
    def _sum_first(self) -> bool:
        """Whether the sum is what is looked for: of a hit. Of what is not recalled it is what would change that."""
        subject = self.subject
        return subject is not None and subject.candidate is not None and isinstance(subject.candidate.verdict, Recalled)

    def rows_changed(self, keep: Hashable = None) -> None:
        """The cursor stays on its change; without focus there is none."""
        self._stands = keep is not None and self.has_focus
        # Without a cursor there is none that moves.
        unmoved = () if self._stands or self.cursor >= 0 else (RowList.Moved,)
        with self.prevent(*unmoved):
            super().rows_changed(keep if self._stands else None)

    def first_row(self) -> int:
        """No row, unless the cursor stood on a change that is gone."""
        return super().first_row() if self._stands else -1

    def lay_out(self, width: int) -> None:
        """Write the rows for this width."""
        packed = self.size.height < FEW
        subject = self.subject
        if subject is None:
            self._rows = [([(self._said[start:end], "muted")], None) for start, end in wrap(self._said, width)]
            title = "Why"
        else:
            rows = rows_of(subject, self.depth, max(20, width), packed=packed)
            self._rows = rows + [([], None)] * (self._least - len(rows))
            title = self._title(subject, width, packed=packed)
        self.name_frame(Content(title))
        super().lay_out(width)

    def _title(self, subject: Subject, width: int, *, packed: bool) -> str:
        fate = (
            subject.answer.fate
            if subject.answer is not None
            else (subject.candidate.verdict if subject.candidate is not None else None)
        )
        verdict = wording.label(fate) if fate is not None else ""
        chunk = subject.candidate.chunk if subject.candidate is not None else None
        place = f"{fit_path(safe(chunk.path), 40)}:{chunk.start_line}-{chunk.end_line}" if chunk else ""
        title = "  ".join(filter(None, ("Why", verdict, DEPTHS[self.depth])))
        whole = "  ".join(filter(None, ("Why", place, verdict, DEPTHS[self.depth])))
        # The sum names its lines itself where there is room for all of it.
        return whole if packed or cell_len(whole) < width - 2 else title

    # --- depth and changes ---------------------------------------------------------------------------------------

    def do_deeper(self) -> None:
        """From the sum to the full record, from there to the raw JSON, and round again."""
        self.depth = (self.depth + 1) % len(DEPTHS)
        self._again()

    def shallower(self) -> bool:
        """One depth back; False at the sum."""
        if not self.depth:
            return False
        self.depth -= 1
        self._again()
        return True

    def _again(self) -> None:
        self._least = 0
        self.rows_changed()
        self.scroll_home(animate=False, immediate=True, force=True)

    def do_apply(self) -> None:
        """Turn the knob as the change under the cursor says, the first without a cursor.

        A knob is turned once it was said what that changes.
        """
        subject, home = self.subject, home_of(self)
        _, _, at = str(self.key or "").partition(" ")
        if subject is None or not subject.flips:
            changes = subject.changes if subject is not None else None
            searching = subject is not None and subject.working
            none = f"{notices.no_flip(recalled=changes.recalled)}." if changes is not None else "No change to set here."
            home.show_message("Still searching for changes." if searching else none)
            return
        number = int(at or 0)
        if number < len(subject.flips):
            reply = subject.flips[number]
            if self._previewed is not reply:
                self._arm(reply)
            elif home.tuning is not None:
                self._arm(None)
                home.turn(home.tuning.to(reply.settings))
                home.show_message(f"Set: {wording.turned(reply)}. {key_of('undo')} undoes it.")

    def _arm(self, found: Change | None) -> None:
        """Say what `found` changes, as long as enter sets it; None for no change."""
        self._previewed = found
        text = f"{wording.preview(found)} Press enter again to set it." if found is not None else ""
        for hints in self.screen.query(KeyHints):
            hints.show_message("")
            hints.stand(text)

    def watch_cursor(self) -> None:
        """On another change, enter says first what that does."""
        super().watch_cursor()
        self._disarm()

    def _disarm(self) -> None:
        if self._previewed is not None:
            self._arm(None)

    def do_open(self) -> None:
        """A second click on a change applies it."""
        self.do_apply()

    def opens_at_once(self, _row: int, /) -> bool:
        """The first click selects a change, the next applies it."""
        return True

    def do_top(self) -> None:
        """The first line."""
        self.scroll_home(animate=False)

    def do_bottom(self) -> None:
        """The last line."""
        self.scroll_end(animate=False)

    def _page(self, direction: int) -> None:
        self.scroll_relative(y=direction * max(1, self.size.height // 2), animate=False)

    def _by(self, direction: int) -> None:
        """To the next change when it is in sight, else a line on."""
        row = self.cursor + direction
        if self.cursor < 0 and direction < 0:
            row = -1
        while 0 <= row < self.count():
            if self.key_of(row) is not None and self.key_of(row) != self.key:
                top = self.scroll_offset.y
                if top <= row < top + self.size.height:
                    self.cursor = self._first_of(row)
                    return
                break
            row += direction
        self.scroll_relative(y=direction, animate=False)

    def _first_of(self, row: int) -> int:
        while row > 0 and self.key_of(row - 1) == self.key_of(row):
            row -= 1
        return row

    def on_resize(self) -> None:
        """Another size has other rows; the cursor stays on its change."""
        key = self.key
        self._measure()
        rows = range(self.count()) if key is not None else range(0)
        reply = next((row for row in rows if self.key_of(row) == key), -1)
        self.set_reactive(RowList.cursor, -1 if self._sum_first and reply >= self.size.height else reply)
        self.show_cursor()
        self._reveal()

    def stand(self) -> None:
        """Put the cursor on the nearest change, unless the sum would have to go for it."""
        first = next((row for row in range(self.count()) if self.key_of(row) is not None), -1)
        hides_sum = self._sum_first and first >= self.size.height
        if self.cursor < 0 <= first and not hides_sum:
            self.cursor = first
            self._reveal()

    def _reveal(self) -> None:
        """Where there is no room for the sum and the changes, show what is looked for."""
        if self._sum_first:
            self.scroll_home(animate=False, immediate=True, force=True)
        elif FEW <= self.size.height < HIGH and self.cursor >= 0:
            self.scroll_to(y=max(0, self.cursor - ABOVE), animate=False, immediate=True, force=True)
        elif self.size.height >= HIGH and self.cursor < self.size.height - ABOVE:
            self.scroll_home(animate=False, immediate=True, force=True)

    def on_focus(self) -> None:
        """The cursor stands on the nearest change, once the pane has the size that it has in focus."""
        home_of(self).key_queue.when_drawn(self.stand)

    def on_blur(self) -> None:
        """No cursor where nobody is, and nothing that enter sets."""
        self._disarm()
        self.set_reactive(RowList.cursor, -1)
        self.redraw()

    def redraw(self) -> None:
        """Draw the lines in sight that are other ones now; a turned knob changes few of them."""
        self._redraw_lines()

    # --- rows ----------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Lines of the pane."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """The change on this line; nothing to stand on elsewhere."""
        return self._rows[row][1]

    def draw(self, row: int, _line: int, _width: int, /) -> Iterable[Piece]:
        """One line."""
        return self._rows[row][0]
