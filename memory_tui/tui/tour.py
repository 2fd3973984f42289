"""The tour: four steps over the app's own keys, each done when what it is about has happened."""

from collections.abc import Callable
from typing import NamedTuple

from textual.content import Content
from textual.widgets import Static

from memory_tui.tui.session import Session
from memory_tui.tui.views.search import SearchView

QUESTION = "how is the omada vlan set up"
SECONDS = 0.25
"""How often a step is looked at."""


class Tour(Static):
    """Two lines over the keys; a subclass because it follows what the app does."""

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
        number = Content.styled(f" {self.at + 1} of {len(STEPS)} ", "bold reverse")
        end = Content.styled("  : tour ends this", "$foreground-muted")
        self.update(Content.assemble(number, " ", STEPS[self.at].words, end), layout=False)


class Step(NamedTuple):
    """What to do, and when it is done."""

    words: str
    done: Callable[[Tour], bool]


def _asked(tour: Tour) -> bool:
    return tour.search is not None and tour.search.answer is not None and not tour.search.box.has_focus


def _misses(tour: Tour) -> bool:
    return tour.search is not None and bool(tour.search.query("#why.-miss"))


def _tried(tour: Tour) -> bool:
    return tour.search is not None and bool(tour.search.steps)


def _promoted_and_back(tour: Tour) -> bool:
    made = tour.session.made[tour.since :]
    promoted = {entry.id for entry in made if entry.kind == "promote"}
    return any(entry.undoes in promoted for entry in made)


STEPS = (
    Step(f"Press / and ask, for instance: {QUESTION}. Then enter.", _asked),
    Step("A pane, or enter, says why a passage is sent. Press ] for one that is not sent.", _misses),
    Step("Under it stands what would have it sent: enter tries that, u takes it back.", _tried),
    Step("1, enter on a daily log, down to an item: p promotes it, u takes it back.", _promoted_and_back),
)
