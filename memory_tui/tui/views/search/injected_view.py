"""What OpenClaw puts before its agent for a message, entry by entry with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.openclaw.trigger_recall import LINE
from memory_tui.tui.draw import fit
from memory_tui.tui.views.dialogs import LineDialog
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.openclaw.trigger_recall import Triggered

MESSAGE = "message"
"""The key of the row of the message; those of entries are their places in the list."""


class InjectedView(View):
    """The message first, then the entries with triggers, the best match first."""

    PLACE = "injected"
    MORE_PLACES = ("notes",)

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self._message = below.question if below is not None else ""
        self._found: list[Triggered] | None = None
        self._problem = ""

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="entries")

    def on_mount(self) -> None:
        """Begin with the question on screen, or ask for a message."""
        super().on_mount()
        self._show()
        if self._message:
            self.do_again()
        else:
            self._type()

    def _type(self) -> None:
        def typed(message: str | None) -> None:
            if message:
                self._message = message
                self.do_again()

        explained = "What would OpenClaw put before its agent for this message? Nothing is sent."
        self.app.push_screen(LineDialog("A message to the agent", explained, "Show", value=self._message), typed)

    @task("injected")
    async def do_again(self) -> None:
        """Work out what is injected, once more where that was done before."""
        from memory_tui.engine.openclaw_answer import injected

        message = self._message
        found = await self.home.jobs.attempt(lambda engine: injected(engine, message))
        if isinstance(found, MemoryTuiError):
            self._found, self._problem = None, sentence_of(found)
        else:
            self._found, self._problem = found, ""
        self._show()

    def _show(self) -> None:
        counts = ""
        if self._found is not None:
            inside = sum(one.outcome == "injected" for one in self._found)
            counts = f"{inside} injected of {plural(len(self._found), 'entry')} with triggers"
        self.query_one(Rows).show(self._lines, "Injected for a message", counts)
        self.update_hints()

    # --- rows ----------------------------------------------------------------------------------------------------

    def _lines(self, width: int) -> list[Line]:
        message = one_line(self._message, 300)
        first, *rest = text(message or "No message. enter types one.", width, "strong")
        lines: list[Line] = [(first[0], MESSAGE), *rest]
        if self._problem:
            return [*lines, *text(one_line(self._problem), width, "bad")]
        if self._found is None:
            return lines
        if not self._found:
            lines += text("No entry of MEMORY.md or USER.md has a trigger: <!-- trigger: words --> makes one.", width)
        above = True
        for number, one in enumerate(self._found):
            if above and one.match < LINE:
                above = False
                lines += text(f"── below the line of {LINE} ──", width, "muted")
            lines += _entry(number, one, width)
        return lines

    @property
    def entry(self) -> Triggered | None:
        """What is under the cursor."""
        key = self.query_one(Rows).key
        return self._found[key] if self._found is not None and isinstance(key, int) else None

    # --- actions -------------------------------------------------------------------------------------------------

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.update_hints()

    @on(RowList.Chosen)
    def do_open(self) -> None:
        """Type a message, or read the entry in its note."""
        place = self.place_in_note()
        if place is None:
            self._type()
        else:
            self.read_note(place[0], (place[1], place[2]))

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines of the entry under the cursor."""
        one = self.entry
        return (one.entry.path, one.entry.start_line, one.entry.end_line) if one is not None else None

    def line_in_note(self) -> int:
        """Its first line."""
        one = self.entry
        return one.entry.start_line if one is not None else 1

    def text_in_note(self) -> str:
        """Its text."""
        one = self.entry
        return safe(one.entry.text, keep_newlines=True) if one is not None else ""


def _entry(number: int, one: Triggered, width: int) -> Iterable[Line]:
    """The match with its place and text; below it the sum, and why it is not injected."""
    entry, inside = one.entry, one.outcome == "injected"
    place = f"{safe(entry.path)}:{entry.start_line}"
    shown = fit(f"  {one_line(entry.text[:300])}", max(0, width - 8 - len(place)))
    yield [(f" {one.match:.3f}  ", "good" if inside else "muted"), (place, "strong"), (shown, "")], number
    terms = f"0.8 x {one.phrase_score:.3f} for {one_line(one.phrase)} + 0.2 x {entry.search:.3f} for the search"
    yield from text(f"        {terms}", width, "muted")
    if not inside:
        yield from text(f"        not injected: {one_line(one.reason)}", width, "warn")
