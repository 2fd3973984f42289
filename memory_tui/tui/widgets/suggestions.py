"""The queue of the inbox: suggestions by kind, the most pressing first, and before and after beside it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.text.display import one_line, safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import Piece, fit, fit_path, wrapped
from memory_tui.tui.proposal import SIGNS, put_off
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from memory_tui.curate.suggestion import Suggestion

_ROOMY = 70
"""Cells from which on place and reason fit on one line."""
_PLACE = 34


class Suggestions(RowList):
    """A line for each kind, then its suggestions; sentences where there are none."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="suggestions")
        self._rows: Sequence[Piece | Suggestion] = ()
        self.hidden: Mapping[str, float] = {}

    def show(self, found: Sequence[Suggestion], hidden: Mapping[str, float], sentences: Sequence[Piece]) -> None:
        """List `found`, of which those in `hidden` are put off, then `sentences` with their styles.

        The cursor stays on its suggestion; where that is gone it goes to the next.
        """
        keep = self._next({one.id for one in found})
        self.hidden = hidden
        self._rows = [*self._grouped(found), *sentences]
        self.rows_changed(keep)

    def _next(self, known: set[str]) -> Hashable:
        """The suggestion under the cursor, or the nearest after, else before it, that is still there."""
        at = max(0, self.cursor)
        order = [*self._rows[at:], *reversed(self._rows[:at])]
        return next((one.id for one in order if not isinstance(one, tuple) and one.id in known), None)

    def _grouped(self, found: Sequence[Suggestion]) -> Iterable[Piece | Suggestion]:
        from memory_tui.curate.suggestion import TITLES

        by_kind: dict[str, list[Suggestion]] = {}
        for one in found:
            by_kind.setdefault("" if one.id in self.hidden else one.kind, []).append(one)
        for kind, title in TITLES.items():
            if group := by_kind.get(kind):
                sign, style = SIGNS[kind]
                yield f" {sign} {title}: {len(group):,}", style
                yield from group
        if rest := by_kind.get(""):
            yield f" z kept or put off: {len(rest):,}", "muted"
            yield from rest

    @property
    def suggestion(self) -> Suggestion | None:
        """What is under the cursor."""
        row = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else ("", "")
        return None if isinstance(row, tuple) else row

    def count(self) -> int:
        """Heads, suggestions and sentences."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """The id of a suggestion."""
        one = self._rows[row]
        return None if isinstance(one, tuple) else one.id

    def height_of(self, row: int, width: int, /) -> int:
        """Two lines for a suggestion where the list is narrow."""
        one = self._rows[row]
        return len(wrapped(one[0], width - 2)) if isinstance(one, tuple) else 1 if width >= _ROOMY else 2

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """The place, and the reason beside or below it."""
        one = self._rows[row]
        if isinstance(one, tuple):
            return [(("" if line == 0 else " ") + wrapped(one[0], width - 2)[line], one[1])]
        sign, style = SIGNS[one.kind]
        reason = put_off(self.hidden[one.id]) if one.id in self.hidden else one.reason
        if line:
            return [(fit(f"     {one_line(reason)}", width), "muted")]
        roomy = width >= _ROOMY
        place = fit_path(safe(str(one.place)), (_PLACE if roomy else width - 4) - 1)
        lead = [(f"   {sign} ", style), (fit(place, _PLACE) if roomy else place, "")]
        return [*lead, (fit(one_line(reason), width - _PLACE - 5), "muted")] if roomy else lead


class Proposal(Rows):
    """Before and after of the suggestion under the cursor; enter on a line does what it says."""

    PLACES: ClassVar[tuple[str, ...]] = ("proposal", "list")
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("proposal"))

    def __init__(self) -> None:
        super().__init__(id="proposal")
        self.border_title = "Before and after"

    def opens_at_once(self, _row: int, /) -> bool:
        """Lines that do something are clicked twice, once to see where the cursor is."""
        return True
