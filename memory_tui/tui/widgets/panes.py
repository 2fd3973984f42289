"""Panes stand side by side; mouse, `<` or `>` move their dividers, whose places each view remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Horizontal
from textual.widget import Widget

from memory_tui import state_db
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
    reply = SHARES.of(SCOPE).read()
    return {key: float(value) for key, value in reply.items() if isinstance(value, int | float) and 0 < value < 1}


class Panes(Horizontal):
    """The panes of the view called `place`: the first and the last of three have a share of the width, another one the
    rest.
    """

    def __init__(self, *children: Widget, place: str) -> None:
        super().__init__(*children, id="panes")
        self.place = place
        self._dragged = ""
        """The share that the mouse changes, empty when it holds no divider."""

    def on_mount(self) -> None:
        """Stand as they were left."""
        self.follow(home_of(self).shares)

    def on_resize(self) -> None:
        """Keep the share of another width; panes above each other have none."""
        self.follow(home_of(self).shares)

    def follow(self, shares: Mapping[str, float]) -> None:
        """Give panes their share of `shares`, the width that the style sheet says without one."""
        named = {pane: name for name, pane in self._sized.items()}
        left, others = self.size.width, len(self._shown) - 1
        # The last pane first: what it leaves is for the others.
        for child in reversed(self.children):
            share = shares.get(named.get(child, ""))
            if share is None or not self._side_by_side:
                for rule in ("width", "max_width"):
                    child.styles.clear_rule(rule)
            else:
                cells = max(FEWEST, min(round(share * self.size.width), left - FEWEST * others))
                left, others = left - cells, others - 1
                child.styles.width, child.styles.max_width = cells, "100%"

    @property
    def _shown(self) -> list[Widget]:
        return [child for child in self.children if child.display]

    @property
    def _sized(self) -> dict[str, Widget]:
        """The panes that can be given a width, by the name of their share."""
        drawn = self._shown
        first = {self.place: drawn[0]} if len(drawn) > 1 else {}
        return first | ({f"{self.place}, last": drawn[-1]} if len(drawn) > 2 else {})

    @property
    def _side_by_side(self) -> bool:
        return self.styles.layout is not None and self.styles.layout.name == "horizontal" and self.size.width > 0

    def _widen(self, share: str, cells: int) -> None:
        """Give the pane of `share` so many cells; every other one keeps some."""
        home, sized = home_of(self), self._sized
        others = sum(pane.outer_size.width for name, pane in sized.items() if name != share)
        room = self.size.width - others - FEWEST * (len(self._shown) - len(sized))
        home.shares[share] = max(FEWEST, min(cells, room)) / self.size.width
        self.follow(home.shares)

    def _step(self, wider: int) -> None:
        focused, sized = self.screen.focused, self._sized
        if not sized or not self._side_by_side:
            home_of(self).show_message("The panes stand one above the other here, so none gets wider.")
            return
        above = focused.ancestors_with_self if focused is not None else []
        new = next((name for name, pane in sized.items() if pane in above), "")
        share = new or self.place
        self._widen(share, sized[share].outer_size.width + (wider if new else -wider) * STEP)
        home_of(self).keep_share(share)

    def do_narrower(self) -> None:
        """The pane in focus gets narrower."""
        self._step(-1)

    def do_wider(self) -> None:
        """The pane in focus gets wider."""
        self._step(1)

    def _rule_at(self, at: Offset) -> str:
        """The share that the divider at a place of the screen changes, empty where there is none."""
        if not self._side_by_side:
            return ""
        for name, pane in self._sized.items():
            if at.x - (pane.region.right if name == self.place else pane.region.x) in (-1, 0):
                return name
        return ""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the rule between two panes."""
        self._dragged = self._rule_at(event.screen_offset)
        if self._dragged:
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The rule follows the mouse that holds it."""
        if self._dragged:
            first = self._dragged == self.place
            self._widen(self._dragged, event.screen_x - self.region.x if first else self.region.right - event.screen_x)

    def on_mouse_up(self) -> None:
        """Let the rule go."""
        if self._dragged:
            self.release_mouse()
            home = home_of(self)
            # A click that moves nothing gives no pane a width.
            if self._dragged in home.shares:
                home.keep_share(self._dragged)
            self._dragged = ""
