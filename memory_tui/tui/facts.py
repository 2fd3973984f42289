"""Facts: sentences with a sign or a label in front, wrapped below themselves; as a list, and as a page over a view."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from textual import events, on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui.engine.engine import Engine
from memory_tui.formatting import safe
from memory_tui.tui.dialogs import Dialog
from memory_tui.tui.rows import Rows
from memory_tui.tui.view import View

MUTED, GOOD, WARN, BAD = "$foreground-muted", "$success", "$warning", "$error"
SIGNS = {GOOD: "●", WARN: "▲", BAD: "✗", MUTED: "○"}
"""A sign of each colour, so that nothing is said by colour alone."""
_LABEL, _ROOMY = 11, 40
"""Cells of a label, and of a list that has room for it."""


class Fact(NamedTuple):
    """A row: `key` is what it is about, as `note:PATH`, empty where enter does nothing; `does` says what it does.

    `mark` is the colour of its sign, empty for no sign; `label` stands in a column before its words, whose colour is
    `style`. It has at most `most` lines, 0 for any number.
    """

    words: str
    key: str = ""
    mark: str = ""
    label: str = ""
    indent: int = 0
    does: str = ""
    style: str = ""
    most: int = 0


def drawn(fact: Fact, width: int) -> Content:
    """Return the row in `width` cells, its further lines below its words."""
    sign = (f"{SIGNS[fact.mark]} ", fact.mark) if fact.mark else ""
    label = (f"{safe(fact.label):<{_LABEL}} ", MUTED) if fact.label and width >= _ROOMY else ""
    lead = Content.assemble(" " * (fact.indent + 1), sign, label)
    body = Content.assemble((safe(fact.words), fact.style), (f"  {fact.does}" if fact.does else "", MUTED))
    room = max(8, width - lead.cell_length)
    # Rows that say what enter does stand one below the other, so that a line that goes on must not begin like one.
    hang = 2 if fact.does and body.cell_length > room else 0
    lines = cut(body.wrap(room - hang) or [Content("")], fact.most, room)
    below = Content(" " * (lead.cell_length + hang))
    return Content("\n").join([lead + lines[0], *(below + line for line in lines[1:])])


def cut(lines: list[Content], most: int, width: int) -> list[Content]:
    """Return at most `most` lines, with a mark where they go on; all of them where that is 0."""
    if not 0 < most < len(lines):
        return lines
    return [*lines[: most - 1], (lines[most - 1].rstrip() + Content(" …")).truncate(width, ellipsis=True)]


def coloured(lines: Iterable[str]) -> Content:
    """Return the lines of a unified difference in colours; their + and - say the same without any."""
    rows = [Content.styled(safe(line), {"+": GOOD, "-": BAD, "@": MUTED}.get(line[:1], "")) for line in lines]
    return Content("\n").join(rows or [Content("The files say so already.")])


class Facts(Rows):
    """The rows, drawn for the width there is; they keep the cursor when they change."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.facts: tuple[Fact, ...] = ()

    def on_mount(self) -> None:
        """Have the last line follow the cursor."""
        self.watch(self, "highlighted", self.refresh_bindings, init=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter opens a row that leads somewhere."""
        leads = action != "select" or (self.fact is not None and bool(self.fact.key))
        return leads and super().check_action(action, parameters)

    def show(self, facts: Iterable[Fact]) -> None:
        """Show `facts`; those that are shown already are not drawn again."""
        rows = tuple(facts)
        if rows != self.facts:
            self.facts = rows
            self._draw()

    @property
    def fact(self) -> Fact | None:
        """Return the row under the cursor."""
        at = self.highlighted
        return self.facts[at] if at is not None and at < len(self.facts) else None

    @on(events.Resize)
    def _draw(self) -> None:
        """Fill the list with the facts, for its width; the cursor begins at the first that has a key."""
        width = self.scrollable_content_region.width
        if width > 0:
            rows, keys = [], set[str]()
            for fact in self.facts:
                # Two passages of one long line are about the same: the first has the id, which keeps the cursor.
                id_ = fact.key if fact.key and fact.key not in keys else None
                keys.add(fact.key)
                rows.append(Option(drawn(fact, width), id_, disabled=not fact.words))
            self.refill(rows, default=next((row for row, fact in enumerate(self.facts) if fact.key), 0))


Gather = Callable[[Engine], Iterator[Sequence[Fact]]]
"""Yields the rows as far as they are known, the last time all of them. Raises MemoryTuiError."""


class Listing(Dialog[None]):
    """The page of `gather` over `view`, which says what was refused."""

    FOCUS = "Facts"

    def __init__(self, title: str, view: View, gather: Gather, waiting: str = "Reading ...") -> None:
        super().__init__(title)
        self.view, self.gather, self.waiting = view, gather, waiting
        self.list = Facts()

    def body(self) -> ComposeResult:
        """Return the list."""
        yield self.list

    def on_mount(self) -> None:
        """Begin to gather."""
        self.query_one(".dialog").add_class("page")
        self.list.show([Fact(self.waiting, style=MUTED)])
        self.reload()

    @work(thread=True, exclusive=True, group="listing")
    def reload(self) -> None:
        """Gather the rows, for the first time or anew; what is shown stays until the first of them come."""
        worker = get_current_worker()

        def run(engine: Engine) -> bool:
            """Show what is gathered, each time that there is more; return True when all is there."""
            for facts in self.gather(engine):
                if worker.is_cancelled:
                    break
                self.call_later(self.list.show, tuple(facts))
            return True

        if not self.view.attempt(run) and not worker.is_cancelled:
            self.call_later(self.list.show, [Fact("Nothing could be read; the message says why.", style=MUTED)])

    @on(OptionList.OptionSelected)
    async def selected(self) -> None:
        """Act on a row."""
        if self.list.fact is not None and self.list.fact.key:
            await self.act(self.list.fact.key)

    async def act(self, _key: str) -> None:
        """Do what enter does on the row `key`."""

    def leave(self, message: Message) -> None:
        """Close every page, and send `message` to the app."""
        while len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        self.app.post_message(message)
