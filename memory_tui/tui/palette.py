"""The command palette: every action of the table that means something here, found by its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from memory_tui.tui.actions import ACTIONS, Action
from memory_tui.tui.screens.base import View

if TYPE_CHECKING:
    from memory_tui.tui.app import MemoryApp


class Actions(Provider):
    """Actions of the view in front; those that cannot be done now say why instead of what."""

    def _offered(self) -> Iterator[tuple[Action, str]]:
        view = self.screen
        if not isinstance(view, View):
            return
        context, places = view.context(), view.places()
        for action in ACTIONS:
            if action.palette and action.where in places:
                yield action, action.refuse(context)

    def _title(self, action: Action) -> str:
        keys = f"  ({action.shown_keys})" if action.keys else ""
        return action.help[:1].upper() + action.help[1:] + keys

    def _run(self, action: Action) -> Callable[[], None]:
        app = cast("MemoryApp", self.app)

        def run() -> None:
            app.call_later(app.action_do, action.id)

        return run

    async def discover(self) -> Hits:
        """Everything, in the table's order."""
        for action, refusal in self._offered():
            yield DiscoveryHit(self._title(action), self._run(action), help=refusal or None)

    async def search(self, query: str) -> Hits:
        """What matches `query`."""
        matcher = self.matcher(query)
        for action, refusal in self._offered():
            title = self._title(action)
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), self._run(action), help=refusal or None)
