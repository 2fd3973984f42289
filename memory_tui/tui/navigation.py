"""Navigation: the numbered views, another agent of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

if TYPE_CHECKING:
    from memory_tui.core.events import Event
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Options
    from memory_tui.tui.app import MemoryApp

VIEWS = ("browse", "search", "index", "inbox")
"""Their modes, in the order of their numbers."""


def make(mode: str, query: str = "") -> Screen[Any]:
    """The view of `mode`, the search with `query` in its box; its module is imported only now."""
    match mode:
        case "search":
            from memory_tui.tui.views.search.search_view import SearchView

            return SearchView(query)
        case "index":
            from memory_tui.tui.views.index.index_view import IndexView

            return IndexView()
        case "inbox":
            from memory_tui.tui.views.inbox.inbox_view import InboxView

            return InboxView()
        case _:
            from memory_tui.tui.views.notes.browse import BrowseView

            return BrowseView()


_BETWEEN = "between"


def choose(app: MemoryApp) -> None:
    """Ask for an agent, and go there when its workspace can be opened."""
    from memory_tui.core.sanitize import one_line
    from memory_tui.tui.views.dialogs import Picker

    engine = app.engine
    if engine is None:
        return
    if any(getattr(view, "unsaved", False) for view in app.views):
        app.tell("There is text that is not saved yet: save it or drop it, then go to another agent.")
        return
    ids = {
        f"{agent.id}  {one_line(str(agent.workspace))}": agent.id
        for agent in engine.plan.config.agents
        if agent.id != engine.plan.agent.id
    }

    def look(name: str | None) -> None:
        if name is not None:
            app.bridge.work("agent", lambda engine: _checked(engine, ids[name]))

    app.push_screen(Picker(f"Agents; this is {engine.plan.agent.id}", list(ids)), look)


def _checked(engine: Engine, agent: str) -> Options:
    """The options that open `agent`. Raises what opening it would raise."""
    from memory_tui import plan

    options = plan.of_agent(engine.plan.asked, agent)
    plan.plan(options).require_enabled()
    return options


async def go(app: MemoryApp, options: Options) -> None:
    """Close everything of this agent and open the one of `options`."""

    def opener(listener: Callable[[Event], None]) -> Engine:
        from memory_tui.engine.engine import Engine

        return Engine.open(options, listener)

    app.add_mode(_BETWEEN, Screen)
    await app.switch_mode(_BETWEEN)
    for mode in VIEWS:
        await app.remove_mode(mode)
    app.forget(options.agent)
    app.add_modes(VIEWS)
    app.bridge.reopen(opener)
    await app.switch_mode(app.DEFAULT_MODE)
    await app.remove_mode(_BETWEEN)
