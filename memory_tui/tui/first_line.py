"""The first line of the screen: the names of the views, and at its right end a lamp for provider and index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static, Tab, Tabs

from memory_tui.formatting import one_line
from memory_tui.tui.keys import TABLE

if TYPE_CHECKING:
    from memory_tui.engine.status import Status
    from memory_tui.tui.session import Session

VIEWS = {key.id.removeprefix("app."): key.words for key in TABLE if key.action.startswith("view(")}
"""The title of each view, by the module below `views` that holds it, in the order of their numbers."""
LAMP = 34
"""Cells of the lamp."""


class FirstLine(Horizontal):
    """The names of the views, each with its count, and the lamp."""

    def compose(self) -> ComposeResult:
        """Lay out the names of the views and the lamp."""
        titles = enumerate(VIEWS.items(), 1)
        yield Tabs(*(Tab(f"{number} {title}", id=f"tab-{name}") for number, (name, title) in titles), id="tabs")
        yield Static(id="lamp", markup=False)

    def on_mount(self) -> None:
        """Leave the names to the mouse and to the keys of the views."""
        self.query_one(Tabs).can_focus = False

    def show_lamp(self, session: Session, window_width: int) -> None:
        """Say who answers and how fresh the index is."""
        # A resize may come before this line has its lamp, and an event when it is gone: then there is none to draw.
        for box in self.query("#lamp").results(Static):
            content = lamp(session, narrow=window_width < 100)
            # Each name has a blank on both sides. Of less than 16 cells beside them only a warning is worth the room.
            names = sum(len(tab.label_text) + 2 for tab in self.query(Tab))
            box.display = window_width - names > 15 or content.plain.startswith("▲")
            box.update(content, layout=False)

    def show_count(self, view: str, count: int | Literal["…"] | None) -> None:
        """Write a count beside the name of a view; None writes nothing, and `…` that it is counted anew."""
        tab = self.query_one(f"#tab-{view}", Tab)
        label = f"{list(VIEWS).index(view) + 1} {VIEWS[view]}" + (f" ({count})" if count is not None else "")
        # The same words would lay out the whole screen, too.
        if tab.label_text != label:
            tab.label = label


def freshness(status: Status) -> tuple[bool, str]:
    """Return whether the index needs nothing from a person, and its state; a folder that is gone comes first."""
    if any(root.state != "there" for root in status.roots):
        return False, "NOTES GONE"
    if status.paused:
        return False, "paused"
    behind = status.freshness.total - status.freshness.fresh
    return not behind, f"{behind:,} behind" if behind else "up to date"


def answers(status: Status) -> tuple[bool, str]:
    """Return whether the provider that was asked for answers, and what a search goes by."""
    return status.who.fine, "words + meaning" if status.who.mode == "hybrid" else "words only"


def lamp(session: Session, *, narrow: bool = False) -> Content:
    """Return who answers, and how fresh the index is; of a `narrow` window the worse of the two."""
    if session.status is None:
        return Content.styled("opening", "$foreground-muted")
    is_answered, searched_by = answers(session.status)
    is_current, state = freshness(session.status)
    answer_light = ("● ", "$success") if is_answered else ("▲ ", "$warning")
    # A narrow window has room for one of both: the index, unless all is well with it and who answers tells more.
    if narrow and is_current and not session.progress and not (is_answered and session.read_only):
        return Content.assemble(answer_light, searched_by)
    if session.progress:
        is_current, state = True, session.progress
    elif is_current and session.read_only:
        state = "read-only"
    # `indexing 3 of 90` becomes `indexing 3`.
    state = one_line(state.partition(" of ")[0] if narrow else state)
    # Four cells are the light with its gap, and the gap between both.
    if narrow or len(searched_by) + len(state) > LAMP - 4:
        return Content.assemble(("● ", "$success") if is_current else ("▲ ", "$warning"), state)
    return Content.assemble(answer_light, searched_by, "  ", (state, "" if is_current else "$warning"))
