"""Why any line comes, or does not: it is named by words that stand in it, by its note, or as PATH:LINE."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.explain.why_not import named
from memory_tui.formatting import one_line, safe
from memory_tui.tui.dialogs import Box, Dialog, Options
from memory_tui.tui.facts import MUTED
from memory_tui.tui.hits import fit
from memory_tui.tui.rows import Rows
from memory_tui.tui.view import View
from memory_tui.workspace.roots import why_path

MOST_LINES, FEWEST_LETTERS = 100, 2


@dataclass(frozen=True)
class Place:
    """A line of a note, and its words."""

    path: str
    line: int
    words: str


def lines_holding(engine: Engine, typed: str) -> list[Place]:
    """Return the line that is named as PATH:LINE, else the lines that hold all words of `typed`, in any case.

    The index says in which notes to look for whole words; where it cannot tell, every note is read.
    """
    indexed = engine.search.on_snapshot(lambda store: frozenset(note.shown for note in store.indexed().values()))
    if re.fullmatch(r"\S+:\d+", typed.strip()):
        # A name without its folders is enough where one note alone has it.
        name, _, number = typed.strip().rpartition(":")
        if why_path(engine.plan.roots, name).rule == "outside":
            return []
        named_so = [path for path in indexed if f"/{path}".endswith(f"/{name}")]
        # Where there is no such line, `typed` is searched for as words below.
        with suppress(MemoryTuiError):
            with engine.search.reader() as store:
                path, line = named(engine.plan.roots, store, f"{named_so[0] if len(named_so) == 1 else name}:{number}")
            return [Place(path, line or 1, engine.notes.read(path).text.split("\n")[(line or 1) - 1])]
    words = re.findall(r"\w+", typed.casefold())
    # The index knows whole words alone, and the last one may be only begun. None: it cannot tell.
    holding = [engine.search.holding([word]) for word in words[:-1]]
    places: list[Place] = []
    for path in sorted(indexed.intersection(*(notes for notes in holding if notes is not None))) if words else ():
        # A note may be gone since it was indexed, which the status says.
        with suppress(MemoryTuiError):
            lines = enumerate(engine.notes.read(path).text.split("\n"), 1)
            # A word of the note's name need not stand in the line, too.
            inside = [word for word in words if word not in path.casefold()]
            matching = ((n, line) for n, line in lines if all(word in line.casefold() for word in inside))
            places += [Place(path, number, line) for number, line in matching if line.strip()]
        if len(places) >= MOST_LINES:
            break
    return places[:MOST_LINES]


class AnyLine(Dialog[Place]):
    """Asks which line is meant; answers with it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("down", "lines", "Lines")]
    FOCUS = "Input"

    def __init__(self, view: View, engine: Engine) -> None:
        super().__init__("Why does this line not come?")
        self.view, self.engine = view, engine
        self.places: Sequence[Place] = ()

    def body(self) -> ComposeResult:
        """Return the box and the lines that are meant."""
        yield Box(hint="words of the line, of its note's name, or PATH:LINE")
        yield Options(id="lines")

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Look for lines."""
        if len(event.value.strip()) >= FEWEST_LETTERS:
            self.look(event.value)

    @work(thread=True, exclusive=True, group="lines")
    def look(self, typed: str) -> None:
        """Look for lines on a worker thread."""
        places = self.view.attempt(lambda _: lines_holding(self.engine, typed))
        file = self.view.attempt(lambda _: why_path(self.engine.plan.roots, typed.strip().rpartition(":")[0]))
        why = f"{file.path} is there, but not read as memory. {file.detail}" if file and file.rule == "outside" else ""
        if places is not None and not get_current_worker().is_cancelled:
            self.call_later(self.show, places, why or "No indexed line holds all these words.")

    def show(self, places: Sequence[Place], none: str) -> None:
        """List the lines, or say why there are `none`."""
        self.places, rows = places, self.query_one("#lines", Rows)
        width = max(20, rows.scrollable_content_region.width)
        options = []
        for number, place in enumerate(self.places):
            name = f" {safe(place.path.removeprefix('memory/'))}:{place.line}  "
            options.append(Option(fit(Content.assemble((name, MUTED), one_line(place.words)), width), id=str(number)))
        rows.refill(options or [Option(Content("\n ").join(Content(f" {safe(none)}").wrap(width - 1)), disabled=True)])

    def action_lines(self) -> None:
        """Go to the second line: the first is the one that enter takes from the box."""
        self.set_focus(rows := self.query_one("#lines", Rows))
        rows.action_cursor_down()

    @on(Input.Submitted)
    async def submit(self, event: Input.Submitted) -> None:
        """Answer with the first line for what stands in the box; the list may still be that of fewer letters."""
        if places := await asyncio.to_thread(self.view.attempt, lambda _: lines_holding(self.engine, event.value)):
            self.dismiss(places[0])

    @on(OptionList.OptionSelected)
    def select(self, event: OptionList.OptionSelected) -> None:
        """Answer with the line."""
        self.dismiss(self.places[event.option_index])
