"""The scatter shows each chunk by its score against its age, with the lines that decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from memory_tui.core import profiles
from memory_tui.core.formatting import age_words, number
from memory_tui.core.sanitize import safe
from memory_tui.explain import wording
from memory_tui.render.hit_text import DECAY, age_of, perfect
from memory_tui.search.formulas import left_by_age
from memory_tui.search.trace import BeyondLimit, Candidate, Recalled
from memory_tui.tui.draw import fit, fit_path, runs
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings

if TYPE_CHECKING:
    from memory_tui.search.trace import Trace

RECALLED, LOST, FOCUS = "●", "○", "◉"
COLOURS = {"Recalled": "$good", "BeyondLimit": "$words", "DisplacedByMmr": "$mark"}
"""By verdict; what minScore or age stopped is red."""
FLOOR, LIMIT = "query.minScore", "query.maxResults"
MOST = 400
"""Chunks that are drawn, the best first."""
LEFT, TOLD = 7, 3
"""Cells of the scale at the left, lines of words below."""
TICKS = ((0, "today"), (7, "a week"), (30, "a month"), (90, "3 months"), (365, "a year"), (1095, "3 years"))
NEVER = 13
"""Cells of the column of what never fades."""


class Scatter(Widget, can_focus=True):
    """Points of one answer; the cursor stands on one of them."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("scatter"))
    PLACES: ClassVar[tuple[str, ...]] = ("scatter",)

    class Opened(Message):
        """The chunk under the cursor is wanted."""

    class Dragged(Message):
        """A line was dragged: the knob `key` is to have `value`."""

        def __init__(self, key: str, value: float) -> None:
            super().__init__()
            self.key, self.value = key, value

    def __init__(self) -> None:
        super().__init__(id="scatter")
        self.trace: Trace | None = None
        self.seen: Sequence[Candidate] = ()
        self.at = 0
        self._dragged = ""
        """The knob whose line the mouse holds, empty without one."""
        self._top = self._oldest = 1.0
        """The score at the upper edge, and the age in days at the right one."""

    def show(self, trace: Trace) -> None:
        """Show the chunks of `trace`; the cursor stays on its chunk."""
        chunk = self.seen[self.at].chunk.id if self.seen else ""
        self.trace = trace
        self.seen = [*trace.recalled, *trace.lost[: max(0, MOST - len(trace.recalled))]]
        self.at = next((at for at, one in enumerate(self.seen) if one.chunk.id == chunk), 0)
        self._top = max([perfect(trace), *(one.score for one in self.seen)])
        self._oldest = max([1.0, *(age_of(one, trace.now) or 0.0 for one in self.seen)])
        self.border_title = f"Score against age, {len(self.seen):,} of {len(trace.recalled) + len(trace.lost):,} chunks"
        self.border_subtitle = (
            f"{RECALLED} recalled  {LOST} not  {FOCUS} in focus   {key_of('less fine')} "
            f"{key_of('more fine')} move minScore: changes the ranking"
        )
        self.refresh()

    @property
    def hit(self) -> Candidate | None:
        """The chunk under the cursor."""
        return self.seen[self.at] if self.at < len(self.seen) else None

    # --- where things stand --------------------------------------------------------------------------------------

    @property
    def _height(self) -> int:
        return max(4, self.size.height - TOLD - 1)

    def _row(self, score: float) -> int:
        return round((1 - min(max(score, 0.0) / self._top, 1.0)) * (self._height - 1))

    def _column(self, days: float | None) -> int:
        """The age on a scale that is wider for the young; what never fades stands apart at the right."""
        if days is None:
            return self.size.width - NEVER // 2 - 1
        share = math.log1p(max(0.0, days)) / math.log1p(self._oldest)
        return LEFT + round(min(1.0, share) * self._right)

    @property
    def _right(self) -> int:
        """Cells of the scale of ages."""
        return self.size.width - NEVER - LEFT - 2

    def _age(self, one: Candidate) -> float | None:
        return age_of(one, self.trace.now) if self.trace is not None else None

    # --- drawing -------------------------------------------------------------------------------------------------

    def render(self) -> Content:
        """Lines and points, the scale of ages, and the chunk under the cursor in words."""
        trace = self.trace
        if trace is None or self.size.width < LEFT + NEVER + 10:
            return Content.styled(" Nothing is ranked yet.", "$quiet")
        grid: dict[tuple[int, int], tuple[str, str]] = {}
        self._draw_lines(trace, grid)
        for one in reversed(self.seen):
            sign = RECALLED if isinstance(one.verdict, Recalled) else LOST
            place = self._column(self._age(one)), self._row(one.score)
            grid[place] = (sign, COLOURS.get(type(one.verdict).__name__, "$bad"))
        # Above the points: a line whose name cannot be read tells nothing.
        grid |= self._names(trace)
        if self.hit is not None:
            grid[self._column(self._age(self.hit)), self._row(self.hit.score)] = (FOCUS, "bold reverse")
        rows = []
        for y in range(self._height):
            mark = f"{self._top * (1 - y / (self._height - 1)):5.2f} " if y % 4 == 0 else " " * 6
            cells = [grid.get((x, y), (" ", "")) for x in range(LEFT, self.size.width)]
            rows.append(Content.assemble((f"{mark}│", "$quiet"), *runs(cells)))
        return Content("\n").join([*rows, *(Content.styled(line, style) for line, style in self._words())])

    def _draw_lines(self, trace: Trace, grid: dict[tuple[int, int], tuple[str, str]]) -> None:
        """The curve by which scores fall with age, minScore, and the score of the last that is recalled."""
        half = trace.settings.number("query.hybrid.temporalDecay.halfLifeDays")
        best = max((one.hybrid for one in self.seen), default=0.0)
        if trace.settings.on(DECAY):
            multiplies = profiles.get(trace.profile).age == "multiply"
            ageless = max((one.score - one.age.points for one in self.seen), default=0.0)
            added = trace.settings.number("recency.weight") * next((one.share for one in self.seen), 1.0)
            right = self._right
            for x in range(LEFT, LEFT + right + 1):
                days = math.expm1((x - LEFT) / right * math.log1p(self._oldest))
                share = left_by_age(days, half)
                score = best * share if multiplies else ageless + added * share
                grid[x, self._row(score)] = ("·", "$added")
            self._label(grid, "decay", LEFT + right // 8, self._row(best * 0.5 if multiplies else ageless) + 1)
        for _, score, _, style in self._limits(trace):
            grid |= {(x, self._row(score)): ("╌", style) for x in range(LEFT, self.size.width)}

    def _limits(self, trace: Trace) -> list[tuple[str, float, str, str]]:
        """The lines across: the knob of each, its score, its name and its colour."""
        found = [(FLOOR, trace.floor, f" minScore {trace.floor:.2f} ", "$bad")]
        if trace.recalled and any(isinstance(one.verdict, BeyondLimit) for one in self.seen):
            least = trace.recalled[-1].score
            found.insert(0, (LIMIT, least, f" limit {trace.settings.whole(LIMIT)}: {least:.2f} ", "$words"))
        return found

    def _names(self, trace: Trace) -> dict[tuple[int, int], tuple[str, str]]:
        """The names of the lines across, left of what never fades."""
        end = self.size.width - NEVER - 2
        return {
            (end - len(name) + at, self._row(score)): (sign, style)
            for _, score, name, style in self._limits(trace)
            for at, sign in enumerate(name)
        }

    def _label(self, grid: dict[tuple[int, int], tuple[str, str]], words: str, x: int, y: int) -> None:
        for at, sign in enumerate(words):
            grid[x + at, y] = (sign, "italic $quiet")

    def _words(self) -> list[tuple[str, str]]:
        """The scale of ages, and the chunk under the cursor: the text equal of the picture."""
        scale = [" "] * self.size.width
        end = 0
        for days, name in TICKS:
            x = self._column(days)
            if x >= end and x + len(name) < self.size.width - NEVER and days <= self._oldest:
                scale[x : x + len(name)] = name
                end = x + len(name) + 2
        scale[self.size.width - NEVER + 1 :] = f"{'never fades':<{NEVER - 1}}"
        hit = self.hit
        if hit is None:
            return [("".join(scale), "$quiet")]
        chunk = hit.chunk
        place = f"{fit_path(safe(chunk.path), 40)}:{chunk.start_line}-{chunk.end_line}"
        told = f" {FOCUS} {place}   score {number(hit.score)}   {age_words(self._age(hit))}"
        return [
            ("".join(scale), "$quiet"),
            (fit(told, self.size.width), "bold"),
            (fit(f"   {wording.sentence(hit.verdict)}", self.size.width), ""),
        ]

    # --- going about ---------------------------------------------------------------------------------------------

    def _go(self, at: int) -> None:
        if self.seen:
            self.at = min(max(at, 0), len(self.seen) - 1)
            self.refresh()

    def do_down(self) -> None:
        """The chunk with the next lower score."""
        self._go(self.at + 1)

    def do_up(self) -> None:
        """The chunk with the next higher score."""
        self._go(self.at - 1)

    def do_open(self) -> None:
        """Read the chunk under the cursor."""
        self.post_message(self.Opened())

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of a line across, or put the cursor on the nearest point."""
        at = event.get_content_offset(self)
        if at is None or self.trace is None:
            return
        near = [
            (abs(self._column(self._age(one)) - at.x) + 2 * abs(self._row(one.score) - at.y), index)
            for index, one in enumerate(self.seen)
        ]
        distance, index = min(near, default=(99, 0))
        if distance <= 2:
            self._go(index)
        else:
            lines = ((abs(self._row(score) - at.y), key) for key, score, _, _ in self._limits(self.trace))
            away, key = min(lines)
            if away <= 1:
                self._dragged = key
                self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The line follows the mouse that holds it."""
        at = event.get_content_offset(self)
        if not self._dragged or at is None:
            return
        score = (1 - at.y / (self._height - 1)) * self._top
        if self._dragged == LIMIT:
            kept = [one for one in self.seen if isinstance(one.verdict, Recalled | BeyondLimit)]
            score = max(1, sum(self._row(one.score) <= at.y for one in kept))
        self.post_message(self.Dragged(self._dragged, round(score, 2)))

    def on_mouse_up(self) -> None:
        """Let the line go."""
        if self._dragged:
            self._dragged = ""
            self.release_mouse()
