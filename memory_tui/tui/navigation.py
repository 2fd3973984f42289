"""Navigation is a row for each view, numbered or over another one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui.tui.key_meanings import key_of

if TYPE_CHECKING:
    from textual.screen import Screen


class NumberedView(Struct, frozen=True):
    """A view with a tab and a mode of its own; `target` is its class, imported when it is first shown."""

    key: str
    number: int
    label: str
    target: str

    @property
    def title(self) -> str:
        """Its name with the key that goes there."""
        return f"{self.label} ({self.keys})"

    @property
    def keys(self) -> str:
        """The key that goes there."""
        return key_of(f"view {self.number}")


NUMBERED: Sequence[NumberedView] = (
    NumberedView("browse", 1, "Notes", "notes.browse:BrowseView"),
    NumberedView("search", 2, "Search", "search.search_view:SearchView"),
    NumberedView("index", 3, "Index", "index.index_view:IndexView"),
    NumberedView("inbox", 4, "Inbox", "inbox.inbox_view:InboxView"),
    NumberedView("map", 5, "Map", "map_view:MapView"),
    NumberedView("agents", 6, "Agents", "agents_view:AgentsView"),
)
"""In the order of their numbers."""

MODES = tuple(view.key for view in NUMBERED)


class Opener(Struct, frozen=True):
    """What opens an overlay: `place` is where its keys work, `meaning` empty where only the palette has it.

    `hint` is its word in the key hints, `help` what it does where the overlay's own words do not say it.
    """

    place: str
    meaning: str = ""
    hint: str = ""
    help: str = ""


class OverlayView(Struct, frozen=True):
    """A view over another one: `target` is its class, which is given the view below.

    `group` is the place whose keys it is listed with, `needs` names what has to hold (see `action`),
    `renew` what the key r does in it, with its hint.
    """

    key: str
    title: str
    target: str
    group: str
    help: str
    openers: tuple[Opener, ...]
    needs: tuple[str, ...] = ("engine",)
    renew: tuple[str, str] = ("", "")
    also: str = ""
    """Other words that the palette and the help find it by."""


EVERYWHERE = Opener("everywhere")

OVERLAYS: Sequence[OverlayView] = (
    OverlayView(
        "history",
        "History",
        "notes.history:HistoryView",
        "notes",
        "changes of this note; undo, redo and restore",
        (Opener("reading", "go history"), Opener("inbox", "go history")),
        needs=(),
    ),
    OverlayView(
        "trust",
        "Trust",
        "notes.trust_view:TrustView",
        "notes",
        "which notes OpenClaw 2026.9 trusts, and what keeps it so; enter repairs one",
        (Opener("everywhere", "go trust"),),
        renew=("read OpenClaw's ledger again", "Again"),
    ),
    OverlayView(
        "saved_queries",
        "Saved queries",
        "search.saved_queries:SavedQueriesView",
        "search",
        "the saved queries with their scores; enter asks one",
        (Opener("search", "go queries"),),
        also="eval evaluate ndcg recall",
    ),
    OverlayView(
        "side_by_side",
        "Side by side",
        "search.compare_profiles:SideBySideView",
        "search",
        "two profiles side by side on this query",
        (Opener("search", "compare"),),
        needs=("answer",),
    ),
    OverlayView(
        "knob_search",
        "Better knobs",
        "search.lab:KnobSearchView",
        "report",
        "search for better knobs with the saved queries, or report no evidence",
        (Opener("search", "show better"),),
        also="tune optimize",
    ),
    OverlayView(
        "write",
        "Writing the configuration",
        "search.write_config:WriteView",
        "report",
        "write the knobs into the configuration (shows it first), or undo that",
        (Opener("tune", "save", "Save"),),
        needs=("writable", "writing"),
    ),
    OverlayView(
        "doctor",
        "Doctor",
        "index.listings:DoctorView",
        "index",
        "examine machine, notes, index, provider and settings",
        (Opener("everywhere", "go doctor"), Opener("index", "go doctor", "Doctor")),
        renew=("examine everything again", "Again"),
    ),
    OverlayView(
        "providers",
        "Providers",
        "index.providers_view:ProvidersView",
        "index",
        "embedding providers: status, data sent, test",
        (Opener("everywhere", "go providers"), Opener("index", "go providers", "Providers")),
        renew=("test the provider under the cursor with one real call (asks where it sends)", "Test"),
    ),
    OverlayView(
        "storage",
        "The index file",
        "index.listings:StorageView",
        "index",
        "tables, files and writers of the index, and what a rebuild costs",
        (Opener("everywhere", "go tables"), Opener("index", "go tables", "Tables")),
        renew=("measure again", "Again"),
    ),
    OverlayView(
        "sessions",
        "Sessions",
        "index.listings:SessionsView",
        "index",
        "how close each session is to its memory flush",
        (Opener("everywhere", "go flush"), Opener("index", "go flush", "Flush")),
        renew=("read the sessions again", "Again"),
    ),
    OverlayView(
        "recalls",
        "Recalls",
        "index.recalls_view:RecallsView",
        "index",
        "the log of what agents asked; enter asks again with the knobs used then",
        (Opener("everywhere", "go recalls"), Opener("agents", "go recalls", "Asked")),
        renew=("read the log again", "Refresh"),
    ),
    OverlayView(
        "memories",
        "Long-term memories",
        "index.memories_view:MemoriesView",
        "index",
        "long-term memories in LanceDB: list, search, forget, promote",
        (Opener("everywhere", "go memories"),),
        renew=("read the table again", "Again"),
    ),
    OverlayView(
        "compare",
        "OpenClaw's index",
        "index.openclaw_index:CompareView",
        "index",
        "compare OpenClaw's own index with the notes on disk; it is only read",
        (EVERYWHERE, Opener("index", "compare", "Compare", "compare OpenClaw's own index with the notes on disk")),
    ),
)


def overlay(key: str) -> OverlayView | None:
    """The overlay called `key`, None where there is none."""
    return next((row for row in OVERLAYS if row.key == key), None)


def make(target: str, *arguments: object) -> Screen[Any]:
    """The view of a row's `target`; its module is imported only now."""
    module, _, name = target.partition(":")
    done: Screen[Any] = getattr(import_module(f"memory_tui.tui.views.{module}"), name)(*arguments)
    return done
