"""The tour: four steps over the app's own keys, each done when what it is about has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from textual.content import Content
from textual.widgets import Static

from memory_tui.tui.session import Session
from memory_tui.tui.views.search import SearchView

QUESTION = "how is the omada vlan set up"
SECONDS = 0.25
"""How often a step is looked at."""


class Step(NamedTuple):
    """What to do, and when it is done."""

    words: str
    done: Callable[[Tour], bool]


class Tour(Static):
    """Two lines over the keys; a subclass because it follows what the app does."""

    def __init__(self, session: Session) -> None:
        super().__init__(id="tour", markup=False)
        self.session, self.at = session, 0
        self.changed = False

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
        if self.at < len(STEPS) and STEPS[self.at].done(self):
            self.at += 1
            self.draw()

    def draw(self) -> None:
        """Show the step."""
        words = STEPS[self.at].words if self.at < len(STEPS) else "That was the tour. ? says what each view is for."
        number = f" {self.at + 1} of {len(STEPS)} " if self.at < len(STEPS) else " Done "
        self.update(
            Content.assemble((number, "bold reverse"), " ", words, ("  : tour ends this", "$foreground-muted")),
            layout=False,
        )


def _asked(tour: Tour) -> bool:
    return tour.search is not None and tour.search.answer is not None and not tour.search.box.has_focus


def _misses(tour: Tour) -> bool:
    return tour.search is not None and bool(tour.search.query("#why.-miss"))


def _tried(tour: Tour) -> bool:
    return tour.search is not None and bool(tour.search.steps)


def _changed_and_back(tour: Tour) -> bool:
    before, tour.changed = tour.changed, tour.session.last_change != 0
    return before and not tour.changed


STEPS = (
    Step(f"Press / and ask, for instance: {QUESTION}. Then enter.", _asked),
    Step("The right side says why a passage is sent: words, meaning, age. Press ] for one that is not.", _misses),
    Step("Under it stands what would have it sent. Press enter to try the first, and u to take it back.", _tried),
    Step(
        "On a daily log press enter, then down; p promotes that line after showing how; u takes it back.",
        _changed_and_back,
    ),
)
