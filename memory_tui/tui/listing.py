"""A page over the view: facts that a worker gathers; enter on one may act, escape closes it and ends the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import OptionList
from textual.worker import get_current_worker

from memory_tui.engine.engine import Engine
from memory_tui.tui.dialogs import Dialog
from memory_tui.tui.keys import bindings
from memory_tui.tui.view import View
from memory_tui.tui.widgets.facts import MUTED, Fact, Facts

Gather = Callable[[Engine], Iterator[Sequence[Fact]]]
"""Yields the rows as far as they are known, the last time all of them. Raises MemoryTuiError."""


class Listing(Dialog[None]):
    """The page of `gather` over `view`, which says what was refused."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text.back")
    FOCUS = "Facts"

    @dataclass
    class Gathered(Message):
        """More is known."""

        facts: Sequence[Fact]

    def __init__(self, title: str, view: View, gather: Gather, waiting: str = "Reading ...") -> None:
        super().__init__(title)
        self.view, self.gather, self.waiting = view, gather, waiting

    def body(self) -> ComposeResult:
        """Return the list."""
        yield Facts()

    def on_mount(self) -> None:
        """Begin to gather."""
        super().on_mount()
        self.query_one(".dialog").add_class("page")
        self.query_one(Facts).show([Fact(self.waiting, style=MUTED)])
        self.reload()

    @work(thread=True, exclusive=True, group="listing")
    def reload(self) -> None:
        """Gather the rows, once more where that was done before; what was shown stays until then."""
        worker = get_current_worker()

        def run(engine: Engine) -> bool:
            for facts in self.gather(engine):
                if worker.is_cancelled:
                    break
                self.post_message(self.Gathered(tuple(facts)))
            return True

        if not self.view.attempt(run) and not worker.is_cancelled:
            self.post_message(self.Gathered((Fact("Nothing could be read; the message says why.", style=MUTED),)))

    @on(Gathered)
    def gathered(self, message: Gathered) -> None:
        """Show the rows."""
        self.query_one(Facts).show(message.facts)

    @on(OptionList.OptionSelected)
    async def selected(self, event: OptionList.OptionSelected) -> None:
        """Act on a row."""
        event.stop()
        fact = self.query_one(Facts).fact
        if fact is not None and fact.key:
            await self.act(fact.key)

    async def act(self, key: str) -> None:
        """Do what enter does on the row `key`."""
        del key

    def leave(self, message: Message) -> None:
        """Close every page, and send `message` to the app."""
        while len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        self.app.post_message(message)
