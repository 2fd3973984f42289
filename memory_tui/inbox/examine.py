"""One list of everything the inbox checks find, most pressing first.

Nothing here changes a note: an action becomes a Change, which is shown and made like any other, and taken back by undo.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_tui.core import secret_finder
from memory_tui.core.errors import Cancelled, EditRefused
from memory_tui.curate.changes import Lines, sections
from memory_tui.curate.planner import ARCHIVE
from memory_tui.inbox import checks
from memory_tui.inbox.entries import TITLES, Action, Entry, Kind, Note, Place, Suggestion, digest, entries

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memory_tui.curate.changes import Change
    from memory_tui.curate.planner import Planner
    from memory_tui.curate.promote import Spot

_EXCERPT = 300
_MOST_PARAPHRASES = 50
_OLD_DAYS = 60
"""A log is not missed by recalls before it is this old."""
_KEEP: tuple[Action, ...] = ("keep", "snooze")
_ACTIONS: Mapping[Kind, tuple[Action, ...]] = {
    "secret": ("delete", *_KEEP),
    "bad date": ("rename", *_KEEP),
    "exact duplicate": ("merge", *_KEEP),
    "near duplicate": ("merge", *_KEEP),
    "paraphrase": ("keep", "merge", "snooze"),
    "stale date": ("delete", *_KEEP),
    "dead path": ("keep", "delete", "snooze"),
    "over budget": ("demote", *_KEEP),
    "junk": ("delete", *_KEEP),
    "never recalled": ("archive note", "trash note", *_KEEP),
}


@dataclass(frozen=True, slots=True)
class Chunks:
    """The indexed chunks of the notes: where each is, its file's number, and its unit vector or zeros.

    `texts` gives the texts of some rows.
    """

    places: Sequence[tuple[str, int, int]]
    texts: Callable[[Sequence[int]], Sequence[str]]
    files: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class View:
    """What the inbox looks at. `over` are the first and the last line of a note that a session does not read.

    `recalled` are the paths that recalls returned, None where too few were logged to tell.
    """

    notes: Sequence[Note]
    today: dt.date
    exists: Callable[[str], bool]
    chunks: Chunks | None = None
    over: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recalled: frozenset[str] | None = None


Tell = Callable[[str, int, int], None]
"""Told what is being looked for, how many steps are done, and how many there are."""


def examine(
    view: View, tell: Tell = lambda *_: None, stopped: Callable[[], bool] = lambda: False
) -> tuple[Suggestion, ...]:
    """Everything that should be looked at, the most pressing first. Raises Cancelled when `stopped` says so."""
    found = [entry for note in view.notes for entry in entries(note)]
    steps: tuple[tuple[str, Callable[[], Iterator[Suggestion]]], ...] = (
        ("names", lambda: _names(view)),
        ("secrets", lambda: _secrets(view, stopped)),
        ("repeats", lambda: _repeats(found)),
        ("near repeats", lambda: _near(found, stopped)),
        ("doubtful lines", lambda: _doubtful(view, found)),
        ("budget", lambda: _over(view, found)),
        ("other words", lambda: _paraphrases(view, stopped)),
        ("recalls", lambda: _unused(view)),
    )
    every: dict[str, Suggestion] = {}
    for done, (title, step) in enumerate(steps):
        if stopped():
            raise Cancelled
        tell(title, done, len(steps))
        for one in step():
            every.setdefault(one.id, one)
    tell("", len(steps), len(steps))
    order = list(TITLES)
    return tuple(sorted(every.values(), key=lambda one: (order.index(one.kind), one.place.path, one.place.first)))


def change(suggestion: Suggestion, action: Action, planner: Planner) -> Change:
    """What `action` does to the notes. Raises EditRefused where they are not what was looked at, or nothing changes."""
    place = suggestion.place
    if action in ("trash note", "rename", "archive note"):
        if action == "trash note":
            return planner.trash(place.path)
        new = suggestion.new_name if action == "rename" else f"{ARCHIVE}/{posixpath.basename(place.path)}"
        return planner.rename(place.path, new)
    spot = _spot(planner, place)
    if digest("\n".join(spot.texts())) != suggestion.digest:
        raise EditRefused(f"{place} is not what was looked at any more.", "Look for suggestions again.")
    if action == "merge" and suggestion.other is not None:
        return planner.merge_duplicates(_spot(planner, suggestion.other), [spot])
    if action == "demote":
        return planner.demote(spot, _topic(spot))
    if action == "delete":
        return planner.trash_lines(spot)
    raise EditRefused(f"{action.capitalize()} changes no note.", "Choose another action.")


def _spot(planner: Planner, place: Place) -> Spot:
    return planner.spot(place.path, place.first, place.last)


def _topic(spot: Spot) -> str:
    """The title of the topic note that lines go to: that of the heading they stand under."""
    texts = Lines.of(spot.data, spot.path).texts()
    above = [section for section in sections(texts) if section.line < spot.first and section.title]
    return above[-1].title if above else "More"


# --- the kinds -----------------------------------------------------------------------------------------------------


def _suggestion(kind: Kind, entry: Entry, reason: str, other: Entry | None = None) -> Suggestion:
    return Suggestion(
        kind, _place(entry), reason, _ACTIONS[kind], digest(entry.text), None if other is None else _place(other)
    )


def _place(entry: Entry) -> Place:
    return Place(entry.note.path, entry.first, entry.last, masked(entry.text))


def masked(text: str) -> str:
    """The beginning of `text` with everything that looks like a secret left out."""
    text = secret_finder.masked(text)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"


def _names(view: View) -> Iterator[Suggestion]:
    for note in view.notes:
        reason, better = checks.impossible(note.path, view.today)
        if reason:
            yield Suggestion("bad date", Place(note.path, 1, 1, ""), reason, _ACTIONS["bad date"], "", None, better)


def _secrets(view: View, stopped: Callable[[], bool]) -> Iterator[Suggestion]:
    for note in view.notes:
        if stopped():
            raise Cancelled
        lines = note.text.split("\n")
        for found in secret_finder.find(note.text):
            last = found.line + note.text.count("\n", found.start, found.end)
            held = "\n".join(line.removesuffix("\r") for line in lines[found.line - 1 : last])
            yield Suggestion(
                "secret",
                Place(note.path, found.line, last, masked(held)),
                f"It looks like a secret: {found.kind}. Agents can recall it, and providers may get it.",
                _ACTIONS["secret"],
                digest(held),
            )


def _repeats(found: Sequence[Entry]) -> Iterator[Suggestion]:
    from memory_tui.inbox.duplicates import same

    for keep, drop in same(found):
        yield _suggestion("exact duplicate", drop, f"{_place(keep)} says the same.", keep)


def _near(found: Sequence[Entry], stopped: Callable[[], bool]) -> Iterator[Suggestion]:
    from memory_tui.inbox.duplicates import nearly_same

    for keep, drop in nearly_same(found, stopped):
        yield _suggestion("near duplicate", drop, f"{_place(keep)} says nearly the same.", keep)


def _doubtful(view: View, found: Sequence[Entry]) -> Iterator[Suggestion]:
    kinds: dict[str, Kind] = {kind: kind for kind in TITLES}
    for entry in found:
        for kind, reason in checks.everything(entry, view.today, view.exists):
            yield _suggestion(kinds[kind], entry, reason)


def _over(view: View, found: Sequence[Entry]) -> Iterator[Suggestion]:
    for entry in found:
        first, last = view.over.get(entry.note.path, (0, 0))
        if first and entry.last >= first and (entry.first <= last or not last):
            until = f"to line {last}" if last else "on"
            yield _suggestion("over budget", entry, f"No session reads {entry.note.path} from line {first} {until}.")


def _paraphrases(view: View, stopped: Callable[[], bool]) -> Iterator[Suggestion]:
    from rapidfuzz import fuzz

    from memory_tui.inbox.duplicates import NEAR, close

    chunks = view.chunks
    if chunks is None:
        return
    for one, other, cosine in close(chunks.vectors, chunks.files, stopped=stopped)[:_MOST_PARAPHRASES]:
        said, again = chunks.texts((one, other))
        if not (said and again):
            # The index changed since: what is there now is looked at next time.
            continue
        if fuzz.ratio(said, again) < NEAR:
            first, second = Place(*chunks.places[one], masked(said)), Place(*chunks.places[other], masked(again))
            yield Suggestion(
                "paraphrase",
                second,
                f"{first} is close in meaning (cosine {cosine:.2f}).",
                _ACTIONS["paraphrase"],
                digest(again),
                first,
            )


def _unused(view: View) -> Iterator[Suggestion]:
    if view.recalled is None:
        return
    for note in view.notes:
        age = (view.today - note.day).days if note.day else 0
        if age > _OLD_DAYS and note.path not in view.recalled and not note.path.startswith(f"{ARCHIVE}/"):
            yield Suggestion(
                "never recalled",
                Place(note.path, 1, 1, masked(note.text)),
                f"It is {age} days old, and no recall that was logged returned it.",
                _ACTIONS["never recalled"],
                "",
            )
