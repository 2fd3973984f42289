"""A suggestion of the inbox in words: why, what can be done by which key, and what that changes, line by line."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from memory_tui.text.display import one_line, safe
from memory_tui.tui.paint import Piece, fit_path, wrap
from memory_tui.tui.widgets.diff_list import MARKS
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.curate.suggestion import Action, Kind, Place, Suggestion
    from memory_tui.tui.screens.preview import Planned

SIGNS: Mapping[Kind, tuple[str, str]] = MappingProxyType(
    {
        "secret": ("!", "bad"),
        "bad date": ("?", "warn"),
        "exact duplicate": ("=", "warn"),
        "near duplicate": ("≈", "warn"),
        "paraphrase": ("~", "muted"),
        "stale date": ("†", "warn"),
        "dead path": ("∅", "warn"),
        "over budget": ("↓", "warn"),
        "junk": ("#", "warn"),
        "never recalled": ("○", "muted"),
    }
)
"""The sign of each kind and its style; the words of the kind always stand with it."""

KEYS: Mapping[Action, str] = MappingProxyType(
    {
        "delete": "d",
        "trash note": "d",
        "merge": "m",
        "demote": "m",
        "rename": "m",
        "archive note": "m",
        "keep": "x",
        "snooze": "s",
    }
)
"""The key of each action."""

VERBS: Mapping[Action, str] = MappingProxyType(
    {
        "delete": "Move to trash",
        "trash note": "Move to trash",
        "merge": "Merge",
        "demote": "Move",
        "rename": "Rename",
        "archive note": "Archive",
    }
)
"""What the button says that makes the change."""

AGAIN = "again"
"""What can be done about a suggestion that was kept or put off."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A suggestion with what is known of its proposal: the change, or why there is none; `until` where it is put off.

    `refused` is why nothing can be done now, empty where it can.
    """

    suggestion: Suggestion
    planned: Planned | None = None
    problem: str = ""
    until: float = 0.0
    refused: str = ""


def changes_notes(action: Action) -> bool:
    """Whether an action makes a change that can be shown."""
    return action in VERBS


def words(one: Suggestion, action: Action) -> str:
    """What `action` does about `one`."""
    lines = "this line" if one.place.first == one.place.last else "these lines"
    return {
        "delete": f"move {lines} to the trash",
        "trash note": "move the note to the trash",
        "merge": f"keep {one.other}, and delete {lines}",
        "demote": f"move {lines} to a topic note",
        "rename": f"call it {one.new_name}",
        "archive note": "move the note to the archive",
        "keep": "keep it as it is, and never ask again",
        "snooze": "ask again later",
    }[action]


def put_off(until: float) -> str:
    """`kept for good`, or `until 27 March 2026`."""
    if math.isinf(until):
        return "kept for good"
    return f"put off until {datetime.fromtimestamp(until, UTC).astimezone():%Y-%m-%d %H:%M}"


def title(shown: Shown | None) -> str:
    """What the frame says: the kind in words."""
    from memory_tui.curate.suggestion import TITLES

    return "Before and after" if shown is None else f"Before and after: {TITLES[shown.suggestion.kind]}"


def written(shown: Shown, width: int) -> Sequence[Line]:
    """Reason, places with what stands there, what is proposed, what that changes, and what else can be done."""
    one = shown.suggestion
    return [
        *text(one_line(one.reason), width),
        *(text(f"It is {put_off(shown.until)}.", width, "muted") if shown.until else ()),
        *_texts(shown, width),
        *_proposed(shown, width),
        *_difference(shown, width),
        *_others(shown, width),
    ]


def _shows_difference(shown: Shown) -> bool:
    return not shown.until and changes_notes(shown.suggestion.actions[0])


def _texts(shown: Shown, width: int) -> Iterator[Line]:
    """The places, each with what stands there, unless the difference shows it or both say the same."""
    one = shown.suggestion
    if one.other is None:
        yield from _place(one.place, width, "", said=not _shows_difference(shown))
    else:
        yield from _place(one.place, width, "this", said=one.kind != "exact duplicate")
        yield from _place(one.other, width, "that", said=one.kind != "exact duplicate")


def _place(place: Place, width: int, which: str, *, said: bool) -> Iterator[Line]:
    label = f" {which} " if which else " "
    key: Hashable = ("place", place.path, place.first, place.last)
    yield [(label, "muted"), (fit_path(safe(str(place)), width - len(label) - 1), "link")], key
    for line in safe(place.text, keep_newlines=True).split("\n") if said else ():
        if line.strip():
            yield from text(line, width, "", 3)


def _proposed(shown: Shown, width: int) -> Iterator[Line]:
    """What enter does, or why nothing can be done."""
    if shown.refused:
        yield from text(shown.refused, width, "warn")
    elif shown.until:
        yield from _action("enter", "bring it back into the queue", AGAIN, width)
    else:
        first = shown.suggestion.actions[0]
        yield from _action("enter", words(shown.suggestion, first), first, width)


def _others(shown: Shown, width: int) -> Iterator[Line]:
    if not shown.refused and not shown.until:
        yield [], None
        for action in shown.suggestion.actions[1:]:
            yield from _action(KEYS[action], words(shown.suggestion, action), action, width)


def _action(key: str, sentence: str, action: str, width: int) -> Iterator[Line]:
    said = one_line(sentence)
    style = "strong" if key == "enter" else ""
    for number, (start, end) in enumerate(wrap(said, width - 8)):
        lead = f" {key if number == 0 else '':<6}"
        yield [(lead, "mark"), (said[start:end], style)], (action,) if number == 0 else None


def _difference(shown: Shown, width: int) -> Iterator[Line]:
    if not _shows_difference(shown):
        return
    if shown.problem:
        yield from text(shown.problem, width, "warn")
    elif shown.planned is None:
        yield from text("Working it out ...", width, "muted")
    else:
        yield from diff_lines(shown.planned, width, shown.suggestion.place.path)
        for said in shown.planned.effect:
            yield from text(said, width, "warn")


def diff_lines(planned: Planned, width: int, path: str) -> Iterator[Line]:
    """The difference with - and + in front, wrapped; a note is named unless it is only the one at `path`."""
    for line in planned.lines:
        if line.kind == "file" and planned.change.paths == (path,):
            continue
        mark, style = MARKS[line.kind]
        end = f"  <{line.end}>" if line.end and line.kind != "same" else ""
        lead = f" {mark} " if mark else " "
        for number, (start, stop) in enumerate(wrap(said := safe(line.text) + end, width - len(lead) - 1)):
            pieces: list[Piece] = [(lead if number == 0 else " " * len(lead), style), (said[start:stop], style)]
            yield pieces, None
