"""The tour: four steps over the app's own keys, each done when what it is about has happened."""

from collections.abc import Callable
from typing import NamedTuple

from textual.content import Content
from textual.widgets import Static

from memory_tui.tui.session import Session
from memory_tui.tui.view import View
from memory_tui.tui.views.search import SearchView

QUESTION = "how is the omada vlan set up"
SECONDS = 0.25
"""How often a step is looked at."""


class Tour(Static):
    """A line over the keys; a subclass because it follows what the app does."""

    def __init__(self, session: Session) -> None:
        super().__init__(id="tour", markup=False)
        self.session, self.at = session, 0
        self.since = len(session.made)
        """How many changes were made before."""

    @property
    def search(self) -> SearchView | None:
        """Return the search view; None before it is opened."""
        return self.screen.query_one_optional(SearchView)

    def on_mount(self) -> None:
        """Follow the app from now on."""
        self.set_interval(SECONDS, self.follow)
        self.draw()

    def follow(self) -> None:
        """Go on where a step is done."""
        if STEPS[self.at].done(self):
            if self.at + 1 == len(STEPS):
                self.notify("That was the tour. ? says what each view is for.", markup=False)
                self.remove()
                return
            self.at += 1
            self.draw()

    def draw(self) -> None:
        """Show the step."""
        number, end = f" {self.at + 1} of {len(STEPS)} ", ("  : tour ends it", "$foreground-muted")
        self.update(Content.assemble((number, "bold reverse"), " ", STEPS[self.at].words, end))


class Step(NamedTuple):
    """What to do, and when it is done."""

    words: str
    done: Callable[[Tour], bool]


def _asked(tour: Tour) -> bool:
    """Tell whether a question was asked and left for its passages."""
    return tour.search is not None and tour.search.answer is not None and not tour.search.box.has_focus


def _misses(tour: Tour) -> bool:
    """Tell whether the cursor came to a passage that is not sent."""
    # The list of a question without an answer begins with a miss: that one counts once its key is pressed.
    at = tour.search
    # The key arms the passage under the cursor: enter then tries its first remedy.
    return at is not None and (row := at.row) is not None and not row.sent and (row is at.armed or row.place != 1)


def _tried(tour: Tour) -> bool:
    """Tell whether something was tried, so that there is a step to take back."""
    # Who goes on to another view is not held here.
    return tour.search is None or bool(tour.search.steps) or not tour.search.display


def _promoted_and_back(tour: Tour) -> bool:
    """Tell whether a promotion of this step was taken back, or a person went to another view."""
    made = tour.session.made[tour.since :]
    promoted = {entry.id for entry in made if entry.kind == "promote"}
    in_front = {view.NAME for view in tour.screen.query(View) if view.display}
    return not in_front <= {"search", "notes"} or any(entry.undoes in promoted for entry in made)


STEPS = (
    Step(f"Press /, ask: {QUESTION}, then enter.", _asked),
    Step("Read why it is sent, then press ] for one that is not.", _misses),
    Step("] then enter tries the first remedy; u takes it back.", _tried),
    Step("Press 1, open a day, p on an item promotes it; then u.", _promoted_and_back),
)
