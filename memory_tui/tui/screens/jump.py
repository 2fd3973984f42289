"""A letter on every pane; the one pressed takes the focus there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual import events
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

LETTERS = "asdfghjkl"


class Jump(ModalScreen[Widget | None]):
    """Lies over the view while it waits for a letter; every other key, and a click, takes it away."""

    def __init__(self, panes: Sequence[Widget]) -> None:
        super().__init__()
        self._panes = dict(zip(LETTERS, panes, strict=False))

    def compose(self) -> Iterator[Static]:
        """A letter in the upper left corner of each pane."""
        for letter, pane in self._panes.items():
            mark = Static(f" {letter} ", classes="letter", markup=False)
            mark.styles.offset = (pane.region.x + 1, pane.region.y)
            yield mark

    def on_key(self, event: events.Key) -> None:
        """Go where the letter stands."""
        event.stop()
        self.dismiss(self._panes.get(event.key))

    def on_click(self) -> None:
        """Never mind."""
        self.dismiss(None)
