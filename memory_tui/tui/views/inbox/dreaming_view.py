"""The dreaming view lists what OpenClaw promotes. It shows what comes next, what a gate holds, and what each night
promoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from memory_tui.core.formatting import number, plural
from memory_tui.core.sanitize import one_line
from memory_tui.core.secret_finder import masked
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, RowList, text

if TYPE_CHECKING:
    from memory_tui.openclaw.dreaming import Promotable, Promotions

_NONE = (
    "OpenClaw counts no passage of a daily note yet. It does when its agent recalls one with memory_search (2026.8 on)."
)


class DreamingView(View):
    """What comes next, what is held by which gate, what was promoted by night; enter reads the passage."""

    PLACE = "dreaming"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing: Listing[Promotions] = Listing(
            self,
            title="Dreaming",
            waiting="Reading what OpenClaw counts ...",
            gather=lambda engine: engine.notes.promotions(),
            lines=_lines,
            summary=_summary,
        )
        self.parts = (self.listing,)

    @on(RowList.Chosen)
    def _read(self) -> None:
        key = self.listing.rows.key
        if isinstance(key, tuple):
            self.read_note(key[1], (key[2], key[3]))


def _summary(found: Promotions) -> str:
    promoted = sum(map(len, found.nights.values()))
    held = len(found.passages) - len(found.next) - promoted
    return f"{len(found.next)} next, {held} held" + (f", {promoted} promoted" if promoted else "")


def _lines(found: Promotions, width: int) -> list[Line]:
    if found.problem:
        return text(one_line(f"{found.problem} {found.next_step}"), width, "bad")
    if not found.passages:
        return text(_NONE, width, "muted")
    head = f"The next deep sleep promotes {plural(len(found.next), 'passage')} into MEMORY.md."
    written = text(head, width, "head")
    for one in found.next:
        written += _passage(one, width, "good", "promoted next")
    held = [one for one in found.passages if one.held and not one.night]
    written += [([], None), *text(f"Held: {len(held):,}", width, "head")] if held else []
    for one in held:
        written += _passage(one, width, "warn", one.held)
    for night, own in found.nights.items():
        written += [([], None), *text(f"Promoted on {night}: {len(own):,}", width, "head")]
        for one in own:
            written += _passage(one, width, "muted", one.held)
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
