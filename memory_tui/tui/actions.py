"""Every key once: bindings, key hints, help, palette and the manual's key table are made from these tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from textual.binding import Binding

from memory_tui.tui import keys_browse, keys_everywhere, keys_inbox, keys_index, keys_notes, keys_search
from memory_tui.tui.action import Action, Context, Refusal, shown

__all__ = ["ACTIONS", "Action", "Context", "Refusal", "bindings", "find", "hints", "key_table_markdown", "why_nothing"]

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "everywhere": "Everywhere",
        "list": "Every list",
        "notes": "With a note",
        "browse": "Browse (1)",
        "tree": "Files",
        "reader": "Reader",
        "reading": "Browse and reader",
        "search": "Search (2)",
        "query": "Query box",
        "filter": "Filter box",
        "find": "Find box",
        "about": "About the note",
        "editor": "Editor",
        "watched": "Watched question",
        "history": "History",
        "results": "Hits",
        "why": "Why",
        "whynot": "Why not a line",
        "book": "Saved questions",
        "sides": "Side by side",
        "report": "Reports",
        "noise": "Noise floor",
        "fading": "Fading",
        "sweep": "Better knobs",
        "write": "Writing the configuration",
        "tune": "Tune",
        "index": "Index (3)",
        "doctor": "Doctor",
        "supply": "Providers",
        "storage": "The index file",
        "sessions": "Sessions",
        "recalls": "Recalls",
        "compare": "OpenClaw's index",
        "inbox": "Inbox (4)",
        "proposal": "Before and after",
    }
)
"""Where an action can belong, and that place's title."""

ACTIONS: tuple[Action, ...] = (
    *keys_everywhere.ACTIONS,
    *keys_browse.ACTIONS,
    *keys_notes.ACTIONS,
    *keys_search.ACTIONS,
    *keys_index.ACTIONS,
    *keys_inbox.ACTIONS,
)


def find(name: str, where: Iterable[str]) -> Action:
    """The action called `name` in the first of the places `where` that has it; any place when none has."""
    same = [action for action in ACTIONS if action.id == name]
    for place in where:
        for action in same:
            if action.where == place:
                return action
    return same[0]


def bindings(where: str) -> list[Binding]:
    """The bindings of a screen or pane; all go through the app, which says why when something cannot be done."""
    return [
        Binding(key, f"app.do('{action.id}')", action.hint or action.help, show=False, priority=action.priority)
        for action in ACTIONS
        if action.where == where
        for key in action.keys
    ]


TYPING = frozenset({"query", "filter", "find", "editor", "watched"})
"""Places where letters are text."""

LAST = ("commands", "help", "leave", "back")
"""The key hints that come last, and stay when there is little room."""


def hints(where: Iterable[str]) -> list[tuple[str, Action]]:
    """The keys that are hinted at for these places with what they do, nearest first.

    While somebody types, letters are text: then only keys with names count, and esc stands in for q.
    """
    places = list(where)
    typing = bool(TYPING & set(places))
    found = []
    taken: set[str] = set()
    for place in places:
        here = [action for action in ACTIONS if action.where == place]
        for action in here:
            keys = [key for key in action.keys if (len(key) > 1 or not typing) and key not in taken]
            if action.hint and keys and (typing or action.id != "back"):
                found.append((shown(keys[0]), action))
        taken |= {key for action in here for key in action.keys}
    return sorted(found, key=lambda pair: LAST.index(pair[1].id) if pair[1].id in LAST else -1)


def why_nothing(key: str, where: Iterable[str]) -> str:
    """Why `key` does nothing here, as a sentence that names the place where it does something."""
    places = set(where)
    for action in ACTIONS:
        if key in action.keys and action.where not in places:
            return f"{shown(key)} works in {PLACES[action.where]}: {action.help}."
    return f"{key} does nothing here. {'f1' if TYPING & places else '?'} shows the keys of this pane."


def key_table_markdown() -> str:
    """The manual's key table: one row per action, grouped by place."""
    lines = ["| Where | Keys | What they do |", "|---|---|---|"]
    for place, title in PLACES.items():
        for action in ACTIONS:
            if action.where == place and action.keys:
                keys = " ".join(f"`{shown(key)}`" for key in action.keys)
                lines.append(f"| {title} | {keys} | {action.help} |")
                title = ""
    return "\n".join(lines)
