"""The views that have a number, each made when it is first shown."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen

VIEWS = ("browse", "search", "index", "inbox")
"""Their modes, in the order of their numbers."""


def make(mode: str, query: str = "") -> Screen[Any]:
    """The view of `mode`, the search with `query` in its box; its module is imported only now."""
    match mode:
        case "search":
            from memory_tui.tui.screens.search import SearchView

            return SearchView(query)
        case "index":
            from memory_tui.tui.screens.index import IndexView

            return IndexView()
        case "inbox":
            from memory_tui.tui.screens.inbox import InboxView

            return InboxView()
        case _:
            from memory_tui.tui.screens.browse import BrowseView

            return BrowseView()
