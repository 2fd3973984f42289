"""Navigation is a row for each view, numbered or over another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class NumberedView:
    """A view with a number and a mode of its own; `target` is its class, imported when it is first shown."""

    key: str
    title: str
    target: str


NUMBERED: Sequence[NumberedView] = (
    NumberedView("browse", "Browse (1)", "notes.browse:BrowseView"),
    NumberedView("search", "Search (2)", "search.search_view:SearchView"),
    NumberedView("index", "Index (3)", "index.index_view:IndexView"),
    NumberedView("inbox", "Inbox (4)", "inbox.inbox_view:InboxView"),
)
"""In the order of their numbers."""

MODES = tuple(view.key for view in NUMBERED)


@dataclass(frozen=True, slots=True)
class Opener:
    """A key that opens an overlay: `place` is where it works, `key` empty where only the palette has it.

    `hint` is its word in the key hints, `help` what it does where the overlay's own words do not say it.
    """

    place: str
    key: str = ""
    hint: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class OverlayView:
    """A view over another one: `target` is its class, which is given the view below.

    `group` is the place whose keys it is listed with, `needs` names what has to hold (see actions),
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


EVERYWHERE = Opener("everywhere")

OVERLAYS: Sequence[OverlayView] = (
    OverlayView(
        "history",
        "History",
        "notes.history:HistoryView",
        "notes",
        "changes of this note; undo and redo",
        (Opener("reading", "H"),),
        needs=(),
    ),
    OverlayView(
        "book",
        "Saved questions",
        "search.saved_queries:SavedQueriesView",
        "search",
        "the saved questions with their scores; enter asks one",
        (Opener("search", "B"),),
    ),
    OverlayView(
        "sides",
        "Side by side",
        "search.compare_profiles:SideBySideView",
        "search",
        "two profiles side by side on this question",
        (Opener("search", "c"),),
        needs=("answer",),
    ),
    OverlayView(
        "noise",
        "Noise floor",
        "search.lab:NoiseView",
        "report",
        "the noise floor: what unrelated questions score, and what minScore does",
        (Opener("search", "N"),),
    ),
    OverlayView(
        "fading",
        "Fading",
        "search.lab:FadingView",
        "report",
        "hits that age dropped, and hits that will fade soon",
        (Opener("search", "F"),),
        needs=("answer",),
    ),
    OverlayView(
        "sweep",
        "Better knobs",
        "search.lab:KnobSearchView",
        "report",
        "look for better knobs by the saved questions, or say: no evidence",
        (Opener("search", "S"),),
    ),
    OverlayView(
        "write",
        "Writing the configuration",
        "search.write_config:WriteView",
        "report",
        "write the knobs into the configuration (shows it first), or undo that",
        (Opener("search", "W"),),
        needs=("writable", "writing"),
    ),
    OverlayView(
        "doctor",
        "Doctor",
        "index.doctor_view:DoctorView",
        "index",
        "examine machine, notes, index, provider and settings",
        (EVERYWHERE, Opener("index", "D", "Doctor")),
        renew=("examine everything again", "Again"),
    ),
    OverlayView(
        "supply",
        "Providers",
        "index.providers_view:ProvidersView",
        "index",
        "embedding providers: status, data sent, test",
        (EVERYWHERE, Opener("index", "v", "Providers")),
        renew=("ask a provider that failed again, and look again", "Again"),
    ),
    OverlayView(
        "storage",
        "The index file",
        "index.storage_view:StorageView",
        "index",
        "tables, files and writers of the index, and what a rebuild costs",
        (EVERYWHERE, Opener("index", "t", "Tables")),
        renew=("measure again", "Again"),
    ),
    OverlayView(
        "sessions",
        "Sessions",
        "index.sessions_view:SessionsView",
        "index",
        "how close each session is to its memory flush",
        (EVERYWHERE, Opener("index", "F", "Flush")),
        renew=("read the sessions again", "Again"),
    ),
    OverlayView(
        "recalls",
        "Recalls",
        "index.recalls_view:RecallsView",
        "index",
        "what agents asked; enter asks again with the knobs of that time",
        (EVERYWHERE, Opener("index", "A", "Recalls"), Opener("search", "A")),
        renew=("read the log again", "Refresh"),
    ),
    OverlayView(
        "compare",
        "OpenClaw's index",
        "index.openclaw_index:CompareView",
        "index",
        "compare OpenClaw's own index with the notes on disk; it is only read",
        (EVERYWHERE, Opener("index", "c", "Compare", "compare OpenClaw's own index with the notes on disk")),
    ),
)


def overlay(key: str) -> OverlayView | None:
    """The overlay called `key`, None where there is none."""
    return next((row for row in OVERLAYS if row.key == key), None)


def make(target: str, *arguments: object) -> Screen[Any]:
    """The view of a row's `target`; its module is imported only now."""
    module, _, name = target.partition(":")
    made: Screen[Any] = getattr(import_module(f"memory_tui.tui.views.{module}"), name)(*arguments)
    return made
