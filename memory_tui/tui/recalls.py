"""What agents asked, from the recall log: one of the questions is asked here again, with the knobs of then."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from memory_tui.explain.wording import plural
from memory_tui.text.display import one_line

if TYPE_CHECKING:
    from memory_tui.agent.recall_log import Entry, Log
    from memory_tui.tui.messages import Worked
    from memory_tui.tui.screens.turning import Turning

KIND = "recalls"
NONE = "No question of an agent is logged. memory-tui mcp --log-recalls writes them down."


def look(view: Turning) -> None:
    """Read the log of this workspace in the background; `offer` gets what it holds."""
    from memory_tui.agent import recall_log

    engine = view.home.engine
    if engine is not None:
        view.home.bridge.follow(KIND, lambda _: recall_log.read(recall_log.place(engine.workspace)))


def offer(view: Turning, event: Worked) -> None:
    """List the questions, the newest first, and ask the one that is taken."""
    from memory_tui.tui.screens.picker import Picker

    if event.error is not None:
        view.say(f"{event.error.message} {event.error.next_step}".strip())
        return
    entries = _named(cast("Log", event.value))
    if not entries:
        view.say(NONE)
        return

    def take(name: str | None) -> None:
        if name is not None:
            _ask(view, entries[name])

    view.app.push_screen(Picker("What agents asked", list(entries)), take)


def _named(log: Log) -> dict[str, Entry]:
    from memory_tui.agent.prompt import SEARCH
    from memory_tui.agent.recall_lines import moment

    return {f"{moment(entry.at)}  {entry.id}  {plural(len(entry.hits), 'hit')}  {one_line(entry.query)}": entry
            for entry in reversed(log.entries) if entry.tool == SEARCH}


def _ask(view: Turning, entry: Entry) -> None:
    from memory_tui.agent.replay import settings_of

    tuning = view.home.tuning
    if tuning is None:
        return
    view.home.turn(tuning.to(settings_of(entry, tuning.settings)))
    view.ask_again(entry.query)
    by = f"{one_line(entry.client)} " if entry.client else "The agent "
    view.say(f"{by}got {plural(len(entry.hits), 'hit')} then. The knobs stand as then; u takes them back.")
