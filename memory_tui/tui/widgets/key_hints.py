"""The last line: the keys of the pane in focus, or for three seconds why a key did nothing."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from memory_tui.text.display import one_line
from memory_tui.tui.actions import LAST, Action, Context, hints

SECONDS = 3.0


class KeyHints(Widget):
    """Clickable key hints; an action that cannot be done now is dim. `say` covers them for a moment."""

    def __init__(self) -> None:
        super().__init__()
        self._actions: list[tuple[str, Action]] = []
        self._situation = Context()
        self._said = ""
        self._timer: Timer | None = None

    def show(self, places: Sequence[str], context: Context) -> None:
        """Hint at the keys of `places`, nearest first."""
        actions = hints(places)
        if (actions, context) != (self._actions, self._situation):
            self._actions, self._situation = actions, context
            self.refresh()

    def say(self, sentence: str) -> None:
        """Show `sentence` for three seconds."""
        self._said = one_line(sentence)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SECONDS, self._unsay)
        self.refresh()

    def _unsay(self) -> None:
        self._said = ""
        self.refresh()

    @property
    def said(self) -> str:
        """The sentence shown now, if any."""
        return self._said

    def render(self) -> Content:
        """The sentence, or as many hints as fit."""
        if self._said:
            return Content.styled(f" {self._said} ", "bold $text on $warning-muted").truncate(
                self.size.width, ellipsis=True
            )
        parts: list[Content] = []
        for key, action in self._kept():
            off = bool(action.refuse(self._situation))
            parts.append(
                Content.assemble(
                    (f" {key}", "$faint" if off else "bold $primary"), " ", (f"{action.hint} ", "$faint" if off else "")
                )
            )
        return Content("").join(parts)

    def _kept(self) -> list[tuple[str, Action]]:
        """The hints that fit; those before the last ones give way first, from the right."""
        kept = list(self._actions)
        while sum(map(_width, kept)) > self.size.width:
            near = [i for i, (_, action) in enumerate(kept) if action.id not in LAST]
            if not near:
                break
            del kept[near[-1]]
        return kept

    async def on_click(self, event: events.Click) -> None:
        """Do what the hint under the mouse says."""
        left = 0
        for hint in self._kept():
            left += _width(hint)
            if event.x < left:
                await self.app.run_action(f"do('{hint[1].id}')")
                return


def _width(hint: tuple[str, Action]) -> int:
    key, action = hint
    return len(key) + len(action.hint) + 3
