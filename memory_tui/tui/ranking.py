"""The ranking: one line, and its knobs as a list; a list of our own because left and right turn the row under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets.option_list import Option

from memory_tui.config.config_patch import Patch
from memory_tui.config.settings import BY_KEY, Settings
from memory_tui.explain.counterfactuals import WEIGHT
from memory_tui.formatting import one_line, plural, safe
from memory_tui.tui import knobs
from memory_tui.tui.facts import MUTED, WARN, coloured
from memory_tui.tui.hits import NOW, fit
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.knobs import figure
from memory_tui.tui.rows import Rows

LEAD, EFFECT = 26, 13
"""Cells of a knob: its name with its value, and what a step to one side does; a scale takes what is left."""
ELSEWHERE = "which rules rank these passages; c compares with rules for other passages, too"
"""What the knob of the ranking is for; a profile that finds words in passages of its own alone is no step of it."""

Effects = Mapping[tuple[str, int], str]
"""What a step of each knob does, by key and way."""


class Knobs(Rows):
    """The knobs that have an effect; left and right try a step, escape folds them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("knob", "text.back"),
        *named("Write", "change.do"),
        *named("", "list.open"),
    ]

    @dataclass
    class Stepped(Message):
        """A knob is to be turned one step left (-1) or right (+1)."""

        key: str
        way: int

    @property
    def key(self) -> str:
        """Return the knob under the cursor."""
        option = self.highlighted_option
        return option.id or "" if option is not None else ""

    def show(self, settings: Settings, effects: Effects) -> None:
        """Show the knobs of a ranking, each with what its steps do."""
        width = self.scrollable_content_region.width
        self.refill(Option(row(key, settings, effects, width), id=key) for key in knobs.active(settings))

    def action_step(self, way: int) -> None:
        """Turn the knob under the cursor."""
        if self.key:
            self.post_message(self.Stepped(self.key, way))


def row(key: str, settings: Settings, effects: Effects, width: int) -> Content:
    """Return a knob in a line: its name, its value, its scale, and what a step to either side does."""
    value = settings.values[key].value
    name, text = knobs.NAMES[key], knobs.shown(key, value)
    room = width - LEAD - 2 * EFFECT - 6
    scale = f"  {knobs.slider(key, value, room)}" if room > 6 else ""
    lead = Content.assemble(f" {name} ", (f"{text:>{LEAD - len(name) - 1}}", "bold"), (scale, "$primary"))
    sides = [f"{arrow} {effects[key, way]}" if (key, way) in effects else "" for arrow, way in (("‹", -1), ("›", 1))]
    end = f" {sides[0]:<{EFFECT}} {sides[1]:<{EFFECT}}"
    return Content.assemble(fit(lead, width - len(end)), (end, MUTED))


def detail(key: str, settings: Settings, width: int) -> Content:
    """Return what the knob under the cursor is, in two lines: its help and where its value is from."""
    knob, value = BY_KEY[key], settings.values[key]
    ends = f"{knob.low:g} to {knob.high:g}" if knob.high > knob.low else ""
    words = ", ".join(filter(None, (key.rpartition(".")[2], ends, value.origin)))
    head = Content.styled(f" {words}", MUTED).truncate(width, ellipsis=True)
    words = knob.help.replace("chunk", "passage").replace("second stage", "second look")
    words = ELSEWHERE if key == knobs.PROFILE else words
    # Behind `t` stands what a person needs to turn it, so it is not cut.
    return Content("\n").join([*(Content(" ") + row for row in Content(words).wrap(max(1, width - 1))), head])


def difference(patch: Patch) -> Content:
    """Return what writing a ranking does: the values in words, what has no place there, and the lines of the file."""
    pieces = [(f"Into {safe(str(patch.target))}:\n", "bold")]
    turned = [each for each in patch.changes if each.key in knobs.NAMES]
    pieces += [(f"  {knobs.turn(c.key, c.after, c.before)}   at {safe(c.place)}\n", "") for c in turned]
    pieces += [(f"  not written: {key}: {one_line(reason)}.\n", "$warning") for key, reason in patch.left]
    pieces += [(f"{one_line(note)}\n", MUTED) for note in patch.notes]
    return Content.assemble(*pieces, "\n", coloured(patch.diff().splitlines()))


def line(settings: Settings, opened: Settings, width: int, *, then: bool = False) -> Content:
    """Return the ranking in one line: three numbers where there is little room.

    Of one that is tried, or (`then`) that of a question of then, it is what differs from `opened`.
    """
    keys = knobs.active(settings)
    if tried := then or not knobs.same(settings, opened):
        values = ((key, settings.values[key].value, opened.values[key].value) for key in keys)
        items = [knobs.turn(key, value, was, "now" if then else "was") for key, value, was in values if value != was]
    else:
        items = [*_numbers(settings, keys, width)]
    name = "Of then" if then else "Tried" if tried else "Ranking"
    head = Content.styled(f" {name:<9}", f"bold {WARN * tried}".strip())
    tail = "u takes back" if tried else "t turn"
    room = width - len(tail) - 2
    short = [NOW.sub("", item) for item in items]
    some = (f"{'  '.join(short[:at])} and {len(short) - at} more" for at in range(len(short) - 1, 0, -1))
    ways = "  ".join(items), "  ".join(short), *some
    words = next((way for way in ways if head.cell_length + len(way) <= room), plural(len(items), "knob"))
    return Content.assemble(fit(head + words, room), " ", (tail, WARN if tried else MUTED))


def _numbers(settings: Settings, keys: Sequence[str], width: int) -> Iterator[str]:
    """Yield the knobs of a ranking as far as a line of `width` cells has room for them."""
    wide = width >= 100
    if WEIGHT in keys:
        yield f"words weigh {figure(1 - settings.number(WEIGHT))}"
    if knobs.FLOOR in keys and (wide or knobs.HALF_LIFE not in keys):
        floor = settings.number(knobs.FLOOR)
        yield f"too weak under {figure(floor) if floor else '0'}"
    if knobs.HALF_LIFE in keys:
        yield f"half-life {settings.whole(knobs.HALF_LIFE)} d"
    yield f"{settings.whole(knobs.RESULTS)} results"
