"""One list of everything the inbox checks find, most pressing first.

Nothing here changes a note: an action becomes a Change, which is shown and made like any other, and taken back by undo.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_tui.core.errors import Cancelled, EditRefused
from memory_tui.curate.changes import Lines, sections
from memory_tui.curate.planner import ARCHIVE
from memory_tui.inbox.checks import CHECKS, Examination, InboxInputs
from memory_tui.inbox.entries import Action, Passage, Suggestion, digest

if TYPE_CHECKING:
    from memory_tui.curate.changes import Change
    from memory_tui.curate.planner import Planner
    from memory_tui.curate.promote import Spot

Tell = Callable[[str, int, int], None]
"""Gets the kind of the check that runs, how many checks are done, and how many there are."""


def examine(
    inputs: InboxInputs, tell: Tell = lambda *_: None, stopped: Callable[[], bool] = lambda: False
) -> tuple[Suggestion, ...]:
    """Run every check; returns the suggestions, the most pressing first. Raises Cancelled when `stopped` says so."""
    run = Examination(inputs, stopped)
    every: dict[str, Suggestion] = {}
    for done, check in enumerate(CHECKS):
        if stopped():
            raise Cancelled
        tell(check.kind, done, len(CHECKS))
        found: dict[str, Suggestion] = {}
        for one in check.find(run, check):
            found.setdefault(one.id, one)
        every |= dict(sorted(found.items(), key=lambda item: (item[1].place.path, item[1].place.first)))
    tell("", len(CHECKS), len(CHECKS))
    return tuple(every.values())


def change(suggestion: Suggestion, action: Action, planner: Planner) -> Change:
    """What `action` does to the notes. Raises EditRefused where the lines changed since, or nothing would."""
    place = suggestion.place
    if action in ("trash note", "rename", "archive note"):
        if action == "trash note":
            return planner.trash(place.path)
        new = suggestion.new_name if action == "rename" else f"{ARCHIVE}/{posixpath.basename(place.path)}"
        return planner.rename(place.path, new)
    spot = _spot(planner, place)
    if digest("\n".join(spot.texts())) != suggestion.digest:
        raise EditRefused(f"{place} changed since the inbox examined it.", "Run the checks again.")
    if action == "merge" and suggestion.other is not None:
        return planner.merge_duplicates(_spot(planner, suggestion.other), [spot])
    if action == "demote":
        return planner.demote(spot, _topic(spot))
    if action == "delete":
        return planner.trash_lines(spot)
    raise EditRefused(f"{action.capitalize()} changes no note.", "Choose another action.")


def _spot(planner: Planner, place: Passage) -> Spot:
    return planner.spot(place.path, place.first, place.last)


def _topic(spot: Spot) -> str:
    """The title of the topic note that lines go to: that of the heading they stand under."""
    texts = Lines.of(spot.data, spot.path).texts()
    above = [section for section in sections(texts) if section.line < spot.first and section.title]
    return above[-1].title if above else "More"
