"""One list of everything the inbox checks find, most pressing first.

Nothing here changes a note: an action becomes a Change, which is shown and made like any other, and taken back by undo.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory_tui.core.errors import Cancelled, EditRefused
from memory_tui.core.formatting import plural
from memory_tui.curate.changes import Change, FileChange, Lines, end_of, sections, to_utf8
from memory_tui.curate.move_back import move_back
from memory_tui.curate.planner import ARCHIVE, delete_lines
from memory_tui.curate.restore import bring_back
from memory_tui.inbox.checks import CHECKS, Examination, InboxInputs
from memory_tui.inbox.entries import Action, Passage, Suggestion, digest

if TYPE_CHECKING:
    from memory_tui.curate.curator import Curator
    from memory_tui.curate.planner import Planner
    from memory_tui.curate.promote import Spot

CheckProgress = Callable[[str, int, int], None]
"""Gets the kind of the check that runs, how many checks are done, and how many there are."""


def examine(
    inputs: InboxInputs, progress: CheckProgress = lambda *_: None, stopped: Callable[[], bool] = lambda: False
) -> tuple[Suggestion, ...]:
    """Run every check; returns the suggestions, the most pressing first. Raises Cancelled when `stopped` says so."""
    run = Examination(inputs, stopped)
    every: dict[str, Suggestion] = {}
    for done, check in enumerate(CHECKS):
        if stopped():
            raise Cancelled
        progress(check.kind, done, len(CHECKS))
        found: dict[str, Suggestion] = {}
        for one in check.find(run, check):
            found.setdefault(one.id, one)
        every |= dict(sorted(found.items(), key=lambda item: (item[1].place.path, item[1].place.first)))
    progress("", len(CHECKS), len(CHECKS))
    return tuple(every.values())


def changes(suggestions: Sequence[Suggestion], action: Action, curator: Curator) -> Change:
    """What `action` does to the notes about all of `suggestions`, as one change. Raises EditRefused like `change`."""
    if len(suggestions) == 1:
        return change(suggestions[0], action, curator)
    spots = [_seen(curator.plan, one) for one in suggestions if action in ("delete", "move back")]
    if action == "move back":
        return curator.plan.with_trust(move_back(spots, curator.read))
    if action != "delete":
        raise EditRefused(f"{action.capitalize()} is for one suggestion at a time.", "Take the marks away first.")
    files = plural(len({spot.path for spot in spots}), "note")
    title = f"Move {plural(len(spots), 'passage')} of {files} to the trash"
    return curator.plan.with_trust(delete_lines(spots, kind="trash", title=title))


def rewritten(suggestion: Suggestion, text: str, curator: Curator) -> Change:
    """The change that puts `text` in the place of the last line of a suggestion. Raises EditRefused."""
    spot = _seen(curator.plan, suggestion)
    note = spot.lines()
    line = note.lines[spot.last - 1]
    if not text.strip() or "\n" in text or text == spot.texts()[-1]:
        raise EditRefused("The line is as it was.", "Nothing was changed.")
    lines = (*note.lines[: spot.last - 1], text + end_of(line), *note.lines[spot.last :])
    made = Change(
        "edit", f"Edit {spot.path}:{spot.last}", (FileChange(spot.path, spot.data, Lines(note.bom, lines).data),)
    )
    return curator.plan.with_trust(made)


def change(suggestion: Suggestion, action: Action, curator: Curator) -> Change:
    """What `action` does to the notes. Raises EditRefused where the lines changed since, or nothing would."""
    place, planner = suggestion.place, curator.plan
    if action == "restore":
        return bring_back(curator, place.path, suggestion.change)
    if action in ("trash note", "rename", "archive note"):
        if action == "trash note":
            return planner.trash(place.path)
        new = suggestion.new_name if action == "rename" else f"{ARCHIVE}/{posixpath.basename(place.path)}"
        return planner.rename(place.path, new)
    if action == "convert":
        return planner.with_trust(to_utf8(place.path, curator.read(place.path)))
    spot = _seen(planner, suggestion)
    if action == "move back":
        return planner.with_trust(move_back([spot], curator.read))
    if action in ("merge", "merge other") and suggestion.other is not None:
        other = _seen_at(planner, suggestion.other, suggestion.other_digest)
        kept, gone = (other, spot) if action == "merge" else (spot, other)
        return planner.merge_duplicates(kept, [gone])
    if action == "demote":
        return planner.demote(spot, _topic(spot))
    if action == "delete":
        return planner.trash_lines(spot)
    raise EditRefused(f"{action.capitalize()} changes no note.", "Choose another action.")


def _seen(planner: Planner, suggestion: Suggestion) -> Spot:
    return _seen_at(planner, suggestion.place, suggestion.digest)


def _seen_at(planner: Planner, place: Passage, seen: str) -> Spot:
    """The lines at `place`. Raises EditRefused where they are not those that were looked at, by their digest `seen`."""
    spot = _spot(planner, place)
    if digest("\n".join(spot.texts())) != seen:
        raise EditRefused(f"{place} changed since the inbox examined it.", "Run the checks again.")
    return spot


def _spot(planner: Planner, place: Passage) -> Spot:
    return planner.spot(place.path, place.first, place.last)


def _topic(spot: Spot) -> str:
    """The title of the topic note that lines go to: that of the heading they stand under."""
    texts = Lines.of(spot.data, spot.path).texts()
    above = [section for section in sections(texts) if section.line < spot.first and section.title]
    return above[-1].title if above else "More"
