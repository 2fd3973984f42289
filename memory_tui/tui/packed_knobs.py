"""The knobs as a line or two of values, for a strip where the screen is low, and which of them is where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from memory_tui.tui.knobs import SHORT, Dial, describe, slider

SLIDER = 21
"""Cells of the scale of the knob under the cursor, after a blank."""
_SECOND = (
    "query.hybrid.enabled",
    "query.hybrid.mmr.lambda",
    "query.hybrid.candidateMultiplier",
    "recency.weight",
    "dateBoost",
    "date",
)
"""Knobs that a strip of one line leaves out while they are as the app was opened."""


@dataclass(frozen=True, slots=True)
class Span:
    """Knob number `at` stands in cells `start` to `end` of line `y`."""

    at: int
    y: int
    start: int
    end: int


def placed(
    dials: Sequence[Dial], cursor: int, typed: str, width: int, *, tight: bool = False
) -> tuple[list[Content], list[Span]]:
    """Values side by side, as many lines as they take; `cursor` is -1 while the strip is not in focus.

    Then, where it is `tight`, only the profile and what was turned are shown.
    """
    lines, spans, line, used = [], [], Content(" " if cursor >= 0 else " t "), 1 if cursor >= 0 else 3
    begin = used
    for at, dial in enumerate(dials):
        if cursor < 0 and not _worth_showing(dial, tight=tight):
            continue
        part = _part(dial, typed if at == cursor else "", here=at == cursor)
        length = cell_len(part.plain)
        if cursor >= 0 and used > begin and used + 2 + length > width:
            lines.append(line)
            line, used = Content(" "), 1
        gap = 2 if used > begin else 0
        spans.append(Span(at, len(lines), used + gap, used + gap + length))
        line = Content.assemble(line, " " * gap, part)
        used += gap + length
    return [*lines, line], spans


def _worth_showing(dial: Dial, *, tight: bool) -> bool:
    """Whether a strip of one line has room for a knob that is not in focus."""
    if dial.changed or dial.knob.key == "profile":
        return not dial.ignored
    return not (tight or dial.ignored or dial.knob.key in _SECOND)


def _part(dial: Dial, typed: str, *, here: bool) -> Content:
    value = f"{typed}_" if typed else dial.shown
    style = "reverse" if here else "$faint" if dial.ignored else "bold $text-accent" if dial.changed else ""
    counts = f"→{dial.counts}" if dial.counts and not typed else ""
    return Content.styled(f"{SHORT[dial.knob.key]} {value}{'*' if dial.changed else ''}{counts}".strip(), style)


def explained(dial: Dial, width: int) -> Content:
    """The knob under the cursor on its scale, and what it does."""
    scale = slider(dial, SLIDER) if dial.slides and not dial.ignored else ""
    return Content.assemble((f" {scale}" if scale else "", "$primary"), (f" {describe(dial)}", "$quiet")).truncate(
        width, ellipsis=True
    )
