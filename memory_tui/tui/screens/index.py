"""View 3: the truth bar in full, every note that is not searchable as it is, and what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from memory_tui.events import Event
from memory_tui.tui.actions import bindings
from memory_tui.tui.facts import Facts
from memory_tui.tui.paint import plural
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.event_log import EventLog
from memory_tui.tui.widgets.state import Attention, State


class IndexView(View):
    """State, attention and events."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("index"))
    PLACE = "index"
    AUTO_FOCUS = "#state"

    def compose_view(self) -> Iterable[Widget]:
        """State above what needs attention, events beside or below."""
        with Horizontal(id="panes"):
            with Vertical(id="state-column"):
                yield State()
                yield Attention()
            yield EventLog()

    def on_mount(self) -> None:
        """Show what happened before the view was opened."""
        super().on_mount()
        self.query_one(EventLog).add(list(self.home.news))

    def more_places(self) -> tuple[str, ...]:
        """No note is under the cursor here."""
        return ()

    def facts_changed(self, facts: Facts, /) -> None:
        """Everything follows the facts."""
        self.query_one(State).show(facts)
        self.query_one(Attention).show(facts)

    def events_came(self, events: Sequence[Event]) -> None:
        """Append to the log."""
        self.query_one(EventLog).add(events)

    def do_pause(self) -> None:
        """Hold the log still, or let it run."""
        self.say(self.query_one(EventLog).hold())

    def do_watch(self) -> None:
        """Switch the watcher."""
        engine = self.home.engine
        if engine is None:
            return
        on = not engine.watching

        def switch() -> str:
            engine.set_watching(on)
            return "The watcher is on: saved files are indexed by themselves." if on else \
                "The watcher is off: r looks for changed files."

        self.home.bridge.tell(switch)

    def do_reindex(self) -> None:
        """Ask, then index everything anew."""
        from memory_tui.tui.screens.confirm import Confirm

        files = self.home.facts.on_disk if self.home.facts else 0
        self.app.push_screen(
            Confirm("Index everything anew", f"{plural(files, 'note')} will be read and cut into chunks again. Vectors "
                    "of text that did not change are reused. No note is changed.", "Reindex"), self._reindex)

    def _reindex(self, yes: bool | None) -> None:
        if yes and self.home.engine is not None:
            self.home.engine.request_sync("force", force=True)
            self.say("Everything is being indexed anew.")
