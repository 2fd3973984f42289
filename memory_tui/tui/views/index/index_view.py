"""View 3 is the index. It shows the status, every note that is not fresh, and what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event
from memory_tui.formatting import plural
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.state import Facts
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.index_lists import Attention, EventLog, Statements, paced, statements
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.providers import Forecast


class IndexView(View):
    """State, attention and events."""

    PLACE = "index"
    AUTO_FOCUS = "#state"

    def compose_view(self) -> Iterable[Widget]:
        """State above what needs attention, events beside or below."""
        with self.panes():
            with Vertical(id="state-column"):
                yield Statements("State", id="state")
                yield Attention()
            yield EventLog()

    def on_mount(self) -> None:
        """Show what happened before the view was opened."""
        super().on_mount()
        self.query_one(EventLog).add(list(self.home.news))

    def on_screen_resume(self) -> None:
        """Questions were asked meanwhile: providers were called."""
        self.home.jobs.refresh()

    def facts_changed(self, facts: Facts, /) -> None:
        """Everything follows the facts."""
        self.query_one(Statements).show([*statements(facts), *paced(facts, self.home.pace, self.home.progress)])
        self.query_one(Attention).show(facts)

    def events_came(self, events: Sequence[Event]) -> None:
        """Append to the log, and show how fast files are indexed."""
        if self.home.facts is not None and self.home.progress is not None:
            self.facts_changed(self.home.facts)
        self.query_one(EventLog).add(events)

    @on(RowList.Chosen, "#attention")
    def _read(self) -> None:
        path, facts = self.query_one(Attention).key, self.home.facts
        if facts is not None and isinstance(path, str) and path in {row.path for row in facts.rows}:
            self.read_note(path, (1, 1))
        else:
            self.show_message("This row is no note that can be read.")

    def do_pause(self) -> None:
        """Hold the log still, or let it run."""
        self.show_message(self.query_one(EventLog).hold())

    def do_hold(self) -> None:
        """Pause indexing, or let it go on; on the row of the watcher, switch that."""
        engine = self.home.engine
        if engine is None:
            return
        state = self.query_one(Statements)
        if self.focused is state and state.label == "watcher":
            self.do_watch()
            return

        def turn() -> str:
            if engine.index.paused:
                engine.index.resume()
                return "Indexing resumed."
            engine.index.pause()
            return f"Indexing is paused. Searches still work. Press {key_of('pause')} to resume."

        self.home.jobs.report(turn)

    def do_accept(self) -> None:
        """Forget the notes that vanished, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        facts, engine = self.home.facts, self.home.engine
        if facts is None or engine is None:
            return

        def accept() -> str:
            report = engine.index.sync(reason="accept", accept_shrink=True)
            return f"{plural(report.removed, 'note')} forgotten."

        what = f"{facts.shrink.partition(':')[0]}. If a disk is not mounted, mount it instead: they are found again."
        Confirm("Forget the notes that vanished?", what, "Forget").ask(
            self.app, lambda _yes: self.home.jobs.report(accept)
        )

    def more_context(self) -> dict[str, bool]:
        """Whether notes that vanished are kept."""
        return {"shrink": self.home.facts is not None and bool(self.home.facts.shrink)}

    def do_watch(self) -> None:
        """Switch the watcher."""
        engine = self.home.engine
        if engine is None:
            return
        on = not engine.index.watcher.on

        def switch() -> str:
            engine.index.watcher.switch(on)
            return (
                "The watcher is on: it indexes files when they are saved."
                if on
                else f"The watcher is off: {key_of('look again')} looks for changed files."
            )

        self.home.jobs.report(switch)

    @task("estimate")
    async def do_reindex(self) -> None:
        """Find out what indexing everything anew costs, then ask; nothing is indexed before the answer."""
        from memory_tui.tui.views.dialogs import Confirm

        cost = await self.home.jobs.attempt(lambda engine: engine.providers.forecast())
        text = f" The cost is unknown: {cost.message}" if isinstance(cost, MemoryTuiError) else _cost_of(cost)
        files = self.home.facts.status.freshness.total if self.home.facts else 0
        self.app.push_screen(
            Confirm(
                "Index everything anew",
                f"{plural(files, 'note')} will be read and cut into chunks again. Vectors "
                f"of text that did not change are reused.{text} Searches go on with the old index meanwhile. No "
                "note is changed.",
                "Reindex",
            ),
            self._reindex,
        )

    def _reindex(self, yes: bool | None) -> None:
        if yes and self.home.engine is not None:
            self.home.engine.index.request_sync("force", force=True)
            self.show_message("Rebuilding the index of every note.")


def _cost_of(costs: Forecast | None) -> str:
    if costs is None or not costs.send:
        return " Nothing is to embed."
    price = ", price unknown" if costs.usd is None else f", about {costs.usd:.4f} US dollars" if costs.usd else ""
    return f" {plural(costs.send, 'text')} to embed{price}."
