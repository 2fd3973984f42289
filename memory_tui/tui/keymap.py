"""The keymap is made of the action table; it runs nothing. It gives bindings, hints, help and palette."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from textual.binding import Binding
from textual.events import Key

from memory_tui.tui.action import Action
from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.key_meanings import MEANINGS, PREFIXES, is_letter, is_sequence, key_of, shown
from memory_tui.tui.navigation import NUMBERED, OVERLAYS, NumberedView, OverlayView


def _titles(rows: Iterable[NumberedView | OverlayView]) -> dict[str, str]:
    return {row.key: row.title for row in rows}


def _group(name: str) -> list[OverlayView]:
    return [row for row in OVERLAYS if row.group == name]


PLACES: Mapping[str, str] = MappingProxyType(
    {
        "everywhere": "Everywhere",
        "list": "Every list",
        "notes": "With a note",
        **_titles(NUMBERED[:1]),
        "tree": "List of notes",
        "reader": "Reader",
        "reading": "Notes and reader",
        **_titles(NUMBERED[1:2]),
        "query": "Query box",
        "filter": "Filter box",
        "find": "Find box",
        "about": "About the note",
        "editor": "Editor",
        "finding": "Find in the editor",
        "repair": "Repair",
        **_titles(_group("notes")),
        "results": "Hits",
        "why": "Why",
        "whynot": "Why not a line",
        **_titles(_group("search")),
        "report": "Reports",
        **_titles(_group("report")),
        "tune": "Tune",
        **_titles(NUMBERED[2:3]),
        "attention": "Not indexed as on disk",
        "events": "Event log",
        **_titles(_group("index")),
        **_titles(NUMBERED[3:4]),
        "proposal": "Before and after",
        **_titles(NUMBERED[4:5]),
        "calendar": "Calendar",
        "candidates": "Candidates",
        **_titles(NUMBERED[5:]),
        "connection": "Connection of an agent",
    }
)
"""Where an action can belong, and that place's title."""


def find(name: str, where: Iterable[str]) -> Action:
    """The action called `name` in the first of the places `where` that has it; any place when none has."""
    same = [action for action in ACTIONS if action.id == name]
    for place in where:
        for action in same:
            if action.where == place:
                return action
    return same[0]


TYPING = frozenset({"query", "filter", "find", "editor", "finding"})
"""Places where letters are text."""


def keys_at(action: Action) -> list[str]:
    """The keys of an action; while somebody types, letters are text."""
    return [key for key in action.keys if action.where not in TYPING or not is_letter(key)]


def bindings(where: str) -> list[Binding]:
    """The bindings of a screen or pane; all go through the app, which says why when something cannot be done.

    The second letter of a prefix is no binding: the app waits for it.
    """
    reply = [
        Binding(
            key.replace(",", "comma"),
            f"app.do('{action.id}')",
            action.hint or action.help,
            show=False,
            priority=action.priority,
        )
        for action in ACTIONS
        if action.where == where
        for key in keys_at(action)
        if not is_sequence(key)
    ]
    if where == "everywhere":
        reply += [Binding(key, f"app.prefix('{key}')", words, show=False) for key, words in PREFIXES.items()]
    return reply


def after_prefix(prefix: str, where: Iterable[str]) -> dict[str, Action]:
    """Second letter -> action at the places `where`, nearest first."""
    reply: dict[str, Action] = {}
    for place in where:
        for action in ACTIONS:
            for key in action.keys:
                if action.where == place and is_sequence(key) and key[0] == prefix:
                    reply.setdefault(key[1], action)
    return reply


LAST = ("ask", "commands", "help", "leave", "back")
"""The key hints that come last, and stay when there is little room."""


def hints(where: Iterable[str]) -> list[tuple[str, Action]]:
    """The keys that are hinted at for these places with what they do, nearest first.

    While somebody types, letters are text: then only keys with names count, and esc stands in for q.
    """
    places = list(where)
    typing = bool(TYPING & set(places))
    reply = []
    taken: set[str] = set()
    for place in places:
        here = [action for action in ACTIONS if action.where == place]
        for action in here:
            letters = typing and place not in TYPING
            keys = [key for key in keys_at(action) if key not in taken and not (letters and is_letter(key))]
            if action.hint and keys and (typing or action.id != "back"):
                reply.append((shown(keys[0]), action))
        taken |= {key for action in here for key in action.keys}
    return sorted(reply, key=lambda pair: LAST.index(pair[1].id) if pair[1].id in LAST else -1)


def typed(event: Key) -> str:
    """What was pressed, as a message names it: the character, or the name of the key, as of one with alt."""
    return event.character if event.is_printable and event.character and "+" not in event.key else event.key


def why_nothing(key: str, where: Iterable[str]) -> str:
    """Why `key` does nothing here, as a sentence that names the place where it does something."""
    places = set(where)
    for action in ACTIONS:
        if key in action.keys and action.where not in places:
            way = f" ({key_of('next pane')})" if action.where == "reader" and "tree" in places else ""
            return f"{shown(key)} works in {PLACES[action.where]}{way}: {action.help}."
    return f"{key} does nothing here. {_help_key(typing=bool(TYPING & places))} shows the keys of this pane."


def _help_key(*, typing: bool) -> str:
    """The key of help; while somebody types, one that is no letter."""
    named = [key for key in MEANINGS["help"].keys if not is_letter(key)]
    return shown(named[0]) if typing and named else key_of("help")


ALIKE = 80
"""How alike a word has to be to one of a command, from 0 to 100: one wrong letter in five."""


def found_by(action: Action, wanted: Sequence[str]) -> float:
    """How well lower-case words name `action`: 1 where it holds all, less where some are alike, 0 where one is not."""
    from rapidfuzz import fuzz

    meaning = MEANINGS[action.meaning].words if action.meaning else ""
    rest = f"{action.help} {action.shown_keys} {action.hint} {meaning} {action.also}".lower()
    missing = [word for word in wanted if word not in rest]
    alike = all(max(fuzz.ratio(word, new) for new in rest.split()) >= ALIKE for word in missing)
    return 1.0 / (1 + len(missing)) if alike else 0.0
