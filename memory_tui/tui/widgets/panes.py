"""Panes stand side by side; mouse, `<` or `>` move their divider, whose place each view remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Horizontal
from textual.widget import Widget

from memory_tui.core import state_db
from memory_tui.tui.home import home_of

if TYPE_CHECKING:
    from textual.geometry import Offset

STEP = 4
"""Cells that a key moves the rule by."""
FEWEST = 18
"""Cells that a pane keeps."""
SHARES = state_db.Table("pane_shares")
SCOPE = "screen"


def read_shares() -> dict[str, float]:
    """The part of the width that the first pane of each view was given; for worker threads. May raise a state error."""
    found = SHARES.of(SCOPE).read()
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float) and 0 < value < 1}


class Panes(Horizontal):
    """The panes of the view called `place`: the first has a share of the width, another one the rest."""

    def __init__(self, *children: Widget, place: str) -> None:
        super().__init__(*children, id="panes")
        self.place = place
        self._dragging = False

    def on_mount(self) -> None:
        """Stand as they were left."""
        self.follow(home_of(self).shares)

    def on_resize(self) -> None:
        """Keep the share of another width; panes above each other have none."""
        self.follow(home_of(self).shares)

    def follow(self, shares: Mapping[str, float]) -> None:
        """Give the first pane its share of `shares`, the width that the style sheet says without one."""
        first, share = self._first, shares.get(self.place)
        if first is None:
            return
        if share is None or not self._side_by_side:
            for rule in ("width", "max_width"):
                first.styles.clear_rule(rule)
        else:
            first.styles.width = self._kept(round(share * self.size.width))
            first.styles.max_width = "100%"

    @property
    def _first(self) -> Widget | None:
        return next((child for child in self.children if child.display), None)

    @property
    def _side_by_side(self) -> bool:
        return self.styles.layout is not None and self.styles.layout.name == "horizontal" and self.size.width > 0

    def _kept(self, cells: int) -> int:
        """As many cells as leave every pane some."""
        return max(FEWEST, min(cells, self.size.width - FEWEST))

    def _move(self, cells: int) -> None:
        """Put the rule `cells` from the left edge."""
        home = home_of(self)
        home.shares[self.place] = self._kept(cells) / self.size.width
        self.follow(home.shares)

    def _step(self, wider: int) -> None:
        first, focused = self._first, self.screen.focused
        if first is None or len([child for child in self.children if child.display]) < 2 or not self._side_by_side:
            home_of(self).show_message("The panes stand one above the other here, so none gets wider.")
            return
        in_first = focused is not None and first in focused.ancestors_with_self
        self._move(first.size.width + first.gutter.width + (wider if in_first else -wider) * STEP)
        home_of(self).keep_share(self.place)

    def do_narrower(self) -> None:
        """The pane in focus gets narrower."""
        self._step(-1)

    def do_wider(self) -> None:
        """The pane in focus gets wider."""
        self._step(1)

    def _on_rule(self, at: Offset) -> bool:
        first = self._first
        return first is not None and self._side_by_side and at.x - first.region.right in (-1, 0)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the rule between the panes."""
        if self._on_rule(event.screen_offset):
            self._dragging = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The rule follows the mouse that holds it."""
        if self._dragging:
            self._move(event.screen_x - self.region.x)

    def on_mouse_up(self) -> None:
        """Let the rule go."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()
            home_of(self).keep_share(self.place)
