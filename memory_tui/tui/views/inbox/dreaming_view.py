"""The dreaming view lists what OpenClaw promotes next, with the gate that holds the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from memory_tui.core.formatting import number, plural
from memory_tui.core.sanitize import one_line
from memory_tui.core.secret_finder import masked
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, RowList, text

if TYPE_CHECKING:
    from memory_tui.openclaw.promotion import Promotable, Promotions

_NONE = (
    "OpenClaw counts no passage of a daily note yet. It does when its agent recalls one with memory_search (2026.8 on)."
)


class DreamingView(View):
    """What the next deep sleep promotes, then what is held and by which gate; enter reads the passage."""

    PLACE = "dreaming"
    MORE_PLACES = ()
    AUTO_FOCUS = "#listing"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing: Listing[Promotions] = Listing(
            self,
            title="Dreaming",
            waiting="Reading what OpenClaw counts ...",
            gather=lambda engine: engine.notes.promotions(),
            lines=_lines,
            summary=lambda found: f"{len(found.next)} next, {len(found.passages) - len(found.next)} held",
        )
        self.parts = (self.listing,)

    @on(RowList.Chosen)
    def _read(self) -> None:
        key = self.listing.rows.key
        if isinstance(key, tuple):
            self.read_note(key[1], (key[2], key[3]))


def _lines(found: Promotions, width: int) -> list[Line]:
    if found.problem:
        return text(one_line(f"{found.problem} {found.next_step}"), width, "bad")
    if not found.passages:
        return text(_NONE, width, "muted")
    head = f"The next deep sleep promotes {plural(len(found.next), 'passage')} into MEMORY.md."
    written = text(head, width, "head")
    for one in found.next:
        written += _passage(one, width, "good", "promoted next")
    held = [one for one in found.passages if one.held]
    written += [([], None), *text(f"Held: {len(held):,}", width, "head")] if held else []
    for one in held:
        written += _passage(one, width, "warn", one.held)
    return written


def _passage(one: Promotable, width: int, style: str, said: str) -> list[Line]:
    """The passage, its gate and the parts of its score."""
    first, *rest = text(one_line(masked(one.text)), width)
    key = (one.key, one.path, max(1, one.first), max(1, one.last))
    parts = ", ".join(f"{name} {number(share)}" for name, share in one.parts.items())
    return [
        (first[0], key),
        *rest,
        *text(f"{said[0].upper()}{said[1:]}.", width, style, 3),
        *text(f"{one_line(one.evidence)}.", width, "muted", 3),
        *text(f"Shares from 0 to 1: {parts}.", width, "muted", 3),
    ]
