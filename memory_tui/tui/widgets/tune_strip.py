"""The tune strip shows the knobs of the ranking; every turn ranks again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget

from memory_tui.errors import SettingError
from memory_tui.sanitize import one_line
from memory_tui.settings import TUNE_KEYS, Scalar
from memory_tui.tui.draw import fit, wrap
from memory_tui.tui.home import home_of
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.tuning import Dial, Tuning, describe, dials, slider, weighing
from memory_tui.tui.widgets.rowlist import name_frame

VALUE_LINES = 2
"""Lines of values in a low strip in focus."""
PACKED_SLIDER = 21
"""Cells of the scale of the knob under the cursor, after a blank."""


class Span(Struct, frozen=True):
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
    return not (tight or dial.ignored or dial.knob.second)


def _part(dial: Dial, typed: str, *, here: bool) -> Content:
    value = typed or dial.shown
    style = "reverse" if here else "$faint" if dial.ignored else "bold $mark" if dial.changed else ""
    counts = f"→{dial.counts}" if dial.counts and not typed else ""
    return Content.styled(f"{dial.knob.short} {value}{'*' if dial.changed else ''}{counts}".strip(), style)


def explained(dial: Dial, width: int, verdict: str = "") -> list[Content]:
    """The knob under the cursor on its scale, what turning it did, and what it does.

    They are as many lines as a strip in focus has for that, whatever there is to say.
    """
    scale = slider(dial, PACKED_SLIDER) if dial.slides and not dial.ignored else ""
    lead = f" {scale} " if scale else " "
    words = f"{verdict}; {describe(dial)}" if verdict else describe(dial)
    _, end = next(wrap(words, width - cell_len(lead)))
    reply = [Content.assemble((lead, "$vector"), (words[:end].rstrip(), "$quiet"))]
    rest, most = words[end:].lstrip(), _help_lines(width)
    for start, stop in wrap(rest, width - 1) if rest else ():
        # What is too long for the lines of the strip is cut in the last of them.
        line = (rest[start:] if len(reply) == most - 1 else rest[start:stop]).strip()
        if len(reply) < most:
            reply.append(Content.styled(f" {line}", "$quiet").truncate(width, ellipsis=True))
    return [*reply, *[Content("")] * (most - len(reply))]


def _help_lines(width: int) -> int:
    return 1 if width >= ONE_LINE_HELP else 2 if width >= TWO_LINE_HELP else 3


ONE_LINE_HELP = 150
"""Cells from which what a knob does fits one line beside its scale."""
TWO_LINE_HELP = 78
"""Cells from which it fits two."""

BASE = 24
"""Characters of what a baseline is."""

CELL = 29
LABEL, VALUE, SLIDER = 11, 7, 9
"""Cells of a knob's name, its value with the mark of a changed one, and its scale."""


class KnobTurner(Protocol):
    """Who turns the knobs; the strip shows them as they are then before any of these returns.

    A step starts from what the strip shows, so a turn that were only announced would be lost under the next one.
    """

    def turn_knob(self, key: str, value: Scalar) -> None:
        """Turn the knob `key` to `value`."""

    def reset_knob(self, key: str) -> None:
        """Turn the knob `key` back to how the app was opened."""


class TuneStrip(Widget, can_focus=True):
    """A grid of knobs with sliders; a line of values where the screen is low."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("tune"))
    PLACES: ClassVar[tuple[str, ...]] = ("tune",)

    class Selected(Message):
        """Another knob is under the cursor, or the strip got or lost the focus."""

    def __init__(self, knobs: KnobTurner) -> None:
        super().__init__(id="tune")
        self._knobs = knobs
        self.border_title = self._title = Content("Tune")
        self._drawn: list[Content] = []
        self._dials: list[Dial] = []
        self._at = 1
        self._typed: str | None = None
        self._clicked = -1
        """The knob that was clicked last, while the strip is in focus."""
        """The digits typed so far; None while none are."""
        self._verdict = ""
        self._base = ""
        self._written = ""
        self._measured: tuple[str, ...] = ()
        self._known = False

    def show(self, tuning: Tuning, verdict: str) -> None:
        """Show the knobs, and in `verdict` how the hits differ from the baseline."""
        drawn, base = dials(tuning.settings, tuning.opened, tuning.days), tuning.baseline
        seen = (drawn, verdict, f"{base.name} ({one_line(base.title, BASE)})", tuning.written)
        if seen == (self._dials, self._verdict, self._base, self._written):
            return
        self._dials, self._verdict, self._base, self._written = seen
        text = f"against {self._base}: {verdict}" if verdict else one_line(tuning.written)
        self._title = Content("  ".join(filter(None, ("Tune", weighing(drawn), text))))
        self._describe()
        self._redraw()

    def measured(self, parts: Sequence[str], *, known: bool) -> None:
        """Show how the knobs do on saved questions, `parts` from the left as far as they fit.

        Where the screen is low that takes a line only when such questions are `known`.
        """
        if (tuple(parts), known) != (self._measured, self._known):
            self._measured, grown = tuple(parts), known != self._known
            self._known = known
            if grown:
                self.refresh(layout=True)
            else:
                self._redraw()

    def _redraw(self) -> None:
        """Draw the lines that are other ones now."""
        before, now = self._drawn, self._lines()
        if len(before) != len(now) or not self.size:
            self.refresh()
        elif changed := [y for y, line in enumerate(now) if not line.is_same(before[y])]:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _measures(self, width: int) -> Content:
        rest = list(self._measured)
        while len(rest) > 1 and cell_len("  ".join(rest)) > width - 2:
            rest.pop()
        style = "$quiet" if not self._known else "$mark" if any(" > " in part for part in rest) else ""
        return Content.styled(f" {'  '.join(rest)}", style).truncate(width, ellipsis=True)

    @property
    def dial(self) -> Dial | None:
        """The knob under the cursor."""
        return self._dials[self._at] if self._dials else None

    def _describe(self, *, focused: bool | None = None) -> None:
        """Name the knob under the cursor; `focused` is given where Textual has not noted the focus yet."""
        here = self.has_focus if focused is None else focused
        subtitle = Content("") if self.dial is None or not here else Content(describe(self.dial))
        name_frame(self, self._title, subtitle)

    # --- keys ----------------------------------------------------------------------------------------------------

    def do_next_knob(self) -> None:
        """Next knob."""
        self._select(self._at + 1)

    def do_previous_knob(self) -> None:
        """Previous knob."""
        self._select(self._at - 1)

    def select(self, key: str) -> None:
        """Put the cursor on the knob `key`."""
        self._select(next((at for at, dial in enumerate(self._dials) if dial.knob.key == key), self._at))

    def _select(self, at: int) -> None:
        self._typed = None
        self._at = at % max(1, len(self._dials))
        self._describe()
        self._redraw()
        self.post_message(self.Selected())

    def do_less(self) -> None:
        """A step less."""
        self._step(-1)

    def do_more(self) -> None:
        """A step more."""
        self._step(1)

    def do_less_fine(self) -> None:
        """A fine step less."""
        self._step(-1, fine=True)

    def do_more_fine(self) -> None:
        """A fine step more."""
        self._step(1, fine=True)

    def _step(self, direction: int, *, fine: bool = False) -> None:
        if self.dial is not None:
            self._turn(self.dial, self.dial.moved(direction, fine=fine))

    def _turn(self, dial: Dial, value: Scalar) -> None:
        self._typed = None
        if dial.ignored:
            home_of(self).show_message(f"{describe(dial)}.")
        elif value == dial.value:
            end = "on or off" if isinstance(value, bool) else f"{dial.knob.low:g} to {dial.knob.top:g}"
            home_of(self).show_message(f"{dial.knob.label} is {dial.shown} already; it goes {end}.")
        else:
            self._knobs.turn_knob(dial.knob.key, value)
            return
        self._redraw()

    def do_type_value(self) -> None:
        """Begin to type a value for this knob."""
        if self.dial is not None and not self.dial.slides:
            home_of(self).show_message(
                f"{self.dial.knob.label} takes no number; {key_of('less')} and {key_of('more')} turn it."
            )
        elif self.dial is not None:
            self._typed = ""
            self._redraw()
            knob = self.dial.knob
            home_of(self).show_message(
                f"Type {knob.label}, {knob.low:g} to {knob.top:g}: digits, then enter sets it; esc leaves it."
            )

    @property
    def _entry(self) -> str:
        """What is typed, with a mark where the next digit goes; empty while nothing is."""
        return "" if self._typed is None else f"{self._typed}_"

    def do_reset(self) -> None:
        """This knob as the app was opened."""
        if self.dial is None:
            return
        if self.dial.changed:
            self._knobs.reset_knob(self.dial.knob.key)
        else:
            since = "it was written" if "written" in self.dial.origin else "the app was opened"
            home_of(self).show_message(f"{self.dial.knob.label} is as {since}.")

    def on_key(self, event: events.Key) -> None:
        """While a value is typed, digits are its own, enter takes it, escape drops it."""
        character = event.character or ""
        if self._typed is None:
            return
        if character.isascii() and (character.isdigit() or (character and character in "-.")):
            self._typed += character
        elif event.key == "backspace":
            self._typed = self._typed[:-1]
        elif event.key == "escape":
            self._typed = None
        elif event.key == "enter":
            self._take()
        else:
            return
        event.stop()
        event.prevent_default()
        self._redraw()

    def _take(self) -> None:
        typed, self._typed = self._typed, None
        if self.dial is None or not typed:
            return
        try:
            self._turn(self.dial, self.dial.typed(typed))
        except SettingError as error:
            home_of(self).show_message(error.message)

    def on_focus(self) -> None:
        """The knob under the cursor is explained while the strip is in focus."""
        self._describe(focused=True)
        self.refresh(layout=True)
        self.post_message(self.Selected())

    def on_blur(self) -> None:
        """A value that was not taken is dropped."""
        self._typed = None
        self._clicked = -1
        self._describe(focused=False)
        self.refresh(layout=True)
        self.post_message(self.Selected())

    # --- mouse ---------------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Choose a knob; on its slider, take hold of it."""
        reply = self._knob_at(event)
        if reply is None:
            return
        # The first click on a choice only chooses the knob: a look at it takes no other profile.
        again, self._clicked = reply[0] == self._clicked, reply[0]
        self._select(reply[0])
        if reply[1] is not None and (again or not self._dials[reply[0]].knob.choices):
            self.capture_mouse()
            self._slide(reply[1])

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the slider."""
        if self.app.mouse_captured is self and self.dial is not None and self.dial.slides:
            x = event.get_content_offset_capture(self).x
            if self._packed:
                self._slide((x - 1) / (PACKED_SLIDER - 1))
            else:
                self._slide((x - self._at // self._rows() * CELL - LABEL - VALUE - 1) / (SLIDER - 1))

    def on_mouse_up(self) -> None:
        """Let go of the slider."""
        self.release_mouse()

    def _slide(self, share: float) -> None:
        if self.dial is None:
            return
        if not self.dial.slides:
            self._step(-1 if self.dial.value is True else 1)
        elif (value := self.dial.at_share(share)) != self.dial.value or self.dial.ignored:
            self._turn(self.dial, value)

    def _knob_at(self, event: events.MouseEvent) -> tuple[int, float | None] | None:
        """The knob under the mouse, and where on its slider."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        if self._packed:
            return self._packed_at(offset.x, offset.y)
        column, x = divmod(offset.x, CELL)
        at = column * self._rows() + offset.y
        if offset.y >= self._rows() or at >= len(self._dials):
            return None
        left = LABEL + VALUE + 1
        return at, (x - left) / (SLIDER - 1) if left <= x < left + SLIDER or not self._dials[at].slides else None

    def _packed_at(self, x: int, y: int) -> tuple[int, float | None] | None:
        """In the strip of few lines: a value, or the scale of the knob under the cursor below the values."""
        cursor = self._at if self.has_focus else -1
        lines, spans = self._placed(cursor)
        if self.has_focus and y == len(lines) and 1 <= x <= PACKED_SLIDER:
            return self._at, (x - 1) / (PACKED_SLIDER - 1)
        reply = next((span for span in spans if span.y == y and span.start <= x < span.end), None)
        if reply is None:
            return None
        # A second click on a value turns it: a switch flips, a choice goes on.
        again = reply.at == self._at and self.has_focus and not self._dials[reply.at].slides
        return reply.at, (1.0 if again else None)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel turns the knob under the mouse."""
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel turns the knob under the mouse."""
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        reply = self._knob_at(event)
        if reply is None:
            return
        # Who scrolls past a switch or a choice does not mean to turn it, unless it is the one in focus.
        chosen = self.has_focus and reply[0] == self._at
        self._select(reply[0])
        if chosen or self._dials[reply[0]].slides:
            self._step(direction)

    # --- drawing -------------------------------------------------------------------------------------------------

    @property
    def _packed(self) -> bool:
        return self.styles.border_top[0] == ""

    def _columns(self) -> int:
        return max(1, (self.content_size.width + 1) // CELL)

    def _rows(self) -> int:
        return -(-(len(TUNE_KEYS) + 1) // self._columns())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One to five lines where the screen is low, else as many as the grid has rows, and one for the metrics."""
        del container, viewport
        if self._packed:
            return (VALUE_LINES + _help_lines(width) if self.has_focus else 1) + self._known
        return -(-(len(TUNE_KEYS) + 1) // max(1, (width + 1) // CELL)) + 1

    def render(self) -> Content:
        """The strip at its size."""
        self._drawn = self._lines()
        return Content("\n").join(self._drawn)

    def _lines(self) -> list[Content]:
        """Knobs, then what is measured."""
        if not self._dials:
            return [Content("")]
        if self._packed:
            return [*self._values(), *([self._measures(self.size.width)] if self._known else [])]
        rows, columns = self._rows(), self._columns()
        grid = [Content("").join([self._cell(column * rows + y) for column in range(columns)]) for y in range(rows)]
        return [*grid, self._measures(self.content_size.width)]

    def _cell(self, at: int) -> Content:
        if at >= len(self._dials):
            return Content(" " * CELL)
        dial = self._dials[at]
        here = self.has_focus and at == self._at
        cursor = "bold reverse" if self.app.no_color else "bold $body on $selection"
        label = cursor if here else "$quiet"
        value = self._entry if here and self._entry else dial.shown
        strong = "$faint" if dial.ignored else "bold $mark" if dial.changed else ""
        if dial.knob.choices:
            tail = fit(value + ("*" if dial.changed else ""), VALUE + SLIDER + 1)
            return Content.assemble((fit(f" {dial.knob.label}", LABEL), label), (tail, strong), " ")
        scale = "no effect" if dial.ignored else slider(dial, SLIDER) if dial.slides else " " * SLIDER
        marked = fit(value, VALUE - 1, "right") + ("*" if dial.changed else " ")
        return Content.assemble(
            (fit(f" {dial.knob.label}", LABEL), label),
            (marked, strong),
            " ",
            (scale, "$faint" if dial.ignored else "$vector"),
            " ",
        )

    def _placed(self, cursor: int) -> tuple[list[Content], list[Span]]:
        """The lines of values that are shown: those with the knob under the cursor, where there are more."""
        lines, spans = placed(self._dials, cursor, self._entry, self.content_size.width - 1, tight=bool(self._verdict))
        here = next((span.y for span in spans if span.at == cursor), 0)
        top = max(0, here - VALUE_LINES + 1)
        return lines[top : top + VALUE_LINES], [replace(span, y=span.y - top) for span in spans]

    @property
    def _against(self) -> str:
        return f"vs {self._base}: {self._verdict}"

    def _said(self, dial: Dial) -> str:
        """What became of the hits, where the knob was turned; a knob that was not says what it does."""
        return self._against if self._verdict and dial.changed else ""

    def _values(self) -> list[Content]:
        cursor = self._at if self.has_focus else -1
        lines, _ = self._placed(cursor)
        width = self.content_size.width
        if self.has_focus:
            return [*lines, *(explained(self.dial, width, self._said(self.dial)) if self.dial else [Content("")])]
        if self._written:
            tail = Content.styled("  as written", "$mark")
            return [Content.assemble(lines[0].truncate(width - tail.cell_length, ellipsis=True), tail)]
        verdict = Content.styled(f"  {self._against}" if self._verdict else "", "$mark")
        return [Content.assemble(lines[0], verdict).truncate(width, ellipsis=True)]
