"""The tour: four steps over the app's own keys, each done when what it is about has happened."""

from collections.abc import Callable

from textual.content import Content
from textual.widgets import Static

from memory_tui.tui.session import Session
from memory_tui.tui.view import View
from memory_tui.tui.views.search import SearchView

QUESTION = "how is the omada vlan set up"


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
        """Look four times a second whether the step is done."""
        self.set_interval(0.25, self.follow)
        self.draw()

    def follow(self) -> None:
        """Go on where a step is done; in the views that no step is about the line is not there."""
        self.display = any(view.display and view.NAME in ("notes", "search") for view in self.screen.query(View))
        if STEPS[self.at][1](self):
            if self.at + 1 == len(STEPS):
                self.notify("That was the tour. ? says what each view is for.", markup=False)
                self.remove()
                return
            self.at += 1
            self.draw()

    def draw(self) -> None:
        """Show the step."""
        number, end = f" {self.at + 1} of {len(STEPS)} ", ("  Type :tour to stop", "$foreground-muted")
        self.update(Content.assemble((number, "bold reverse"), " ", STEPS[self.at][0], end))


def _asked(tour: Tour) -> bool:
    """Tell whether a question was asked and left for its passages."""
    return tour.search is not None and tour.search.answer is not None and not tour.search.box.has_focus


def _misses(tour: Tour) -> bool:
    """Tell whether the cursor came to a passage that is not sent."""
    # The list of a question without an answer begins with a miss: that one counts once its key is pressed.
    at = tour.search
    # The key arms the passage under the cursor: enter then tries its first remedy.
    return at is not None and (row := at.row) is not None and not row.sent and (row is at.armed or row.place != 1)


def _promoted_and_back(tour: Tour) -> bool:
    """Tell whether a promotion of this step was taken back."""
    made = tour.session.made[tour.since :]
    return any(back.undoes == entry.id for entry in made if entry.kind == "promote" for back in made)


STEPS: tuple[tuple[str, Callable[[Tour], bool]], ...] = (
    (f"Press /, ask {QUESTION}, enter.", _asked),
    ("Read why it is sent; ] shows one that is not.", _misses),
    ("] and enter try the first remedy; u takes it back.", lambda tour: bool(tour.search and tour.search.steps)),
    ("Press 1, open a day, p promotes an item; then u.", _promoted_and_back),
)
"""What to do, and when it is done."""
