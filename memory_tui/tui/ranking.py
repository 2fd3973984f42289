"""The ranking: one line, and its knobs as a list; a list of our own because left and right turn the row under it."""

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
from memory_tui.tui.rows import Rows

LEAD, EFFECT = 26, 13
"""Cells of a knob: its name with its value, and what a step to one side does; a scale takes what is left."""
ELSEWHERE = "how passages score; c compares with rankings that cut notes otherwise"
"""What the knob of the ranking is for; a profile that finds words in passages of its own alone is no step of it."""

Effects = Mapping[tuple[str, int], str]
"""What a step of each knob does, by key and way."""


class Knobs(Rows):
    """The knobs that have an effect; left and right try a step, escape folds them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("knob", "text.back")
    BINDINGS += named("Write", "change.do") + named("", "list.open")

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
    # Six cells are gaps; a scale of so few tells nothing.
    room = width - LEAD - 2 * EFFECT - 6
    scale = f"  {knobs.slider(key, value, room)}" if room > 6 else ""
    lead = Content.assemble(f" {name} ", (f"{text:>{LEAD - len(name) - 1}}", "bold"), (scale, "$primary"))
    # Steps that are not worked out yet have no effect, and one that is not possible is never worked out.
    less, more = (f"{sign} {effects.get((key, way), 'end')}" * bool(effects) for sign, way in (("‹", -1), ("›", 1)))
    end = f" {less:<{EFFECT}} {more:<{EFFECT}}"
    return Content.assemble(fit(lead, width - len(end)), (end, MUTED))


def detail(key: str, settings: Settings, width: int, leads: str = "") -> Content:
    """Return what the knob under the cursor is, in two lines: its help and where its value is from.

    `leads` names the rankings to which a step of the ranking leads.
    """
    knob, value = BY_KEY[key], settings.values[key]
    ends = f", {knob.low:g} to {knob.high:g}" if knob.high > knob.low else ""
    origin = f" Value: {value.origin}. Setting: {key.rpartition('.')[2]}{ends}."
    last = Content.styled(origin, MUTED).truncate(width, ellipsis=True)
    help = knob.help.replace("chunk", "passage").replace("second stage", "second look")
    help = "how much words count, and how much meaning" if key == WEIGHT else help
    if key == knobs.PROFILE:
        help = f"{leads}: {ELSEWHERE}" if leads else ELSEWHERE
    elif key == knobs.HALF_LIFE and settings.profile.age == "add":
        help += f"; age is worth at most {knobs.figure(settings.number('recency.weight'))}"
    # The help is wrapped and not cut: a person turns the knob by it.
    return Content("\n").join([*(Content(" ") + row for row in Content(help).wrap(max(1, width - 1))), last])


def difference(patch: Patch) -> Content:
    """Return what writing a ranking does: the values in words, what has no place there, and the lines of the file."""
    pieces = [(f"Into {safe(str(patch.target))}:\n", "bold")]
    # Only the knobs that rank have words; the lines of the file show the others.
    turned = [change for change in patch.changes if change.key in knobs.NAMES]
    turns = [knobs.turn(change.key, change.after, change.before) for change in turned]
    pieces += [(f"  {turn}   at {safe(change.place)}\n", "") for turn, change in zip(turns, turned, strict=True)]
    pieces += [(f"  not written: {key}: {one_line(reason)}.\n", "$warning") for key, reason in patch.left]
    pieces += [(f"{one_line(note)}\n", MUTED) for note in patch.notes]
    return Content.assemble(*pieces, "\n", coloured(patch.diff().splitlines()))


def line(settings: Settings, configured: Settings, width: int, *, is_past: bool = False) -> Content:
    """Return the ranking in one line: three numbers where there is little room.

    Of one that is tried, or (`is_past`) held when a logged question was asked, it is what differs from `configured`.
    """
    keys = knobs.active(settings)
    is_tried = is_past or not knobs.same(settings, configured)
    name, items, tail = "Ranking", [*_numbers(settings, keys, width)], "t turn"
    if is_tried:
        name, tail = "Of then" if is_past else "Tried", "u takes back"
        changes = [(key, settings.values[key].value, configured.values[key].value) for key in keys]
        items = [knobs.turn(key, new, old, "now" if is_past else "was") for key, new, old in changes if new != old]
    head = Content.styled(f" {name:<9}", f"bold {WARN}" if is_tried else "bold")
    room = width - len(tail) - 2
    short = [NOW.sub("", item) for item in items]
    # The first changes and a count of the rest, ever fewer, because the longest that fits is taken.
    counted = (f"{'  '.join(short[:shown])} and {len(short) - shown} more" for shown in range(len(short) - 1, 0, -1))
    ways = "  ".join(items), "  ".join(short), *counted
    words = next((way for way in ways if head.cell_length + len(way) <= room), plural(len(items), "knob"))
    return Content.assemble(fit(head + words, room), " ", (tail, WARN if is_tried else MUTED))


def _numbers(settings: Settings, keys: Sequence[str], width: int) -> Iterator[str]:
    """Yield what four knobs are at; in a narrow line the lower limit gives way to the half-life, if that counts."""
    wide = width >= 100
    if WEIGHT in keys:
        yield f"words weigh {knobs.figure(1 - settings.number(WEIGHT))}"
    if knobs.FLOOR in keys and (wide or knobs.HALF_LIFE not in keys):
        yield f"too weak under {knobs.shown(knobs.FLOOR, settings.number(knobs.FLOOR))}"
    if knobs.HALF_LIFE in keys:
        yield f"half-life {settings.whole(knobs.HALF_LIFE)} d"
    yield f"{settings.whole(knobs.RESULTS)} results"
