"""Restore: what notes held before comes back by the record, one note, all, or what others took out of them.

It is shown like any other change.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import minute, plural
from memory_tui.notes.changes import Change, FileChange, Lines, end_of
from memory_tui.notes.edit import Curator
from memory_tui.notes.history import who
from memory_tui.notes.journal import EDITOR, Edit, Journal, JournalEntry
from memory_tui.notes.merge import changed_spans
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import is_daily

_MOST_LOSSES = 5000
"""So many changes are looked through for lines that others took out."""
_MANY_LINES, _OVERWRITTEN = 10, 0.8
"""What is no log is overwritten where more than this share of so many lines goes."""


def versions(journal: Journal, path: str, now: bytes | None) -> list[Edit]:
    """List the changes before which the note `path` had another text than `now`, newest first, each text once.

    Raises EditRefused.
    """
    texts: dict[int | None, Edit] = {}
    for edit in journal.edits(path):
        texts.setdefault(edit.before, edit)
    return [edit for blob, edit in texts.items() if blob not in (None, journal.blob_of(now))]


def together(before: bytes, now: bytes) -> bytes:
    """Return the lines of `now`, with those of `before` that it lacks where they stood. Raises EditRefused."""
    old, new = Lines.of(before), Lines.of(now)
    out: list[str] = []
    at = 0
    for a, b, c, d in changed_spans(old.texts(), new.texts()):
        out += [*new.lines[at:c], *old.lines[a:b], *new.lines[c:d]]
        at = d
    out += new.lines[at:]
    ended = [line if end_of(line) else line + new.end for line in out[:-1]] + out[-1:]
    return Lines(new.bom, tuple(ended)).data


def before(curator: Curator, path: str | None = None, *, change: int = 0, at: float = 0.0) -> Change:
    """The change that brings one note, or all, back to what they were before a change, or at a time (epoch seconds).

    A note of which the record does not know that stays. Raises EditRefused where nothing would change, PathRefused.
    """
    when = f"before change {change}" if change else f"on {minute(at)}"
    step = "memory-tui history lists the changes."
    by_path: dict[str, list[Edit]] = {}
    files, unknown = [], 0
    with curator.journal.kept():
        start = curator.journal.start() or time.time()
        for edit in reversed(curator.journal.edits(path)):
            by_path.setdefault(edit.path, []).append(edit)
        if path is not None and not by_path:
            raise EditRefused(f"The record has no change of {path}.", step)
        for name, edits in by_path.items():
            older = [edit for edit in edits if (edit.id < change if change else edit.at < at)]
            if not older and not change and at < start:
                unknown += 1
                continue
            now, then = curator.read(name), curator.journal.text(older[-1].after if older else edits[0].before)
            if now != then:
                files.append(FileChange(name, now, then))
    if unknown and not files:
        what = f"The record of {path or 'the notes'} begins at {minute(start)}; --before {minute(at)} is older."
        raise EditRefused(what, step)
    if not files:
        raise EditRefused(f"{path or 'Every note'} is as it was {when}.", step)
    what = path if path is not None else plural(len(files), "note")
    were = "they were" if len(files) > 1 else "it was"
    rest = f"The record does not reach back so far for {plural(unknown, 'other note')}, which stay as they are."
    change_of = Change("restore", f"Restore {what} as {were} {when}", tuple(files), (rest,) * bool(unknown))
    return curator.plan.with_trust(change_of)


def exact(curator: Curator, entry: JournalEntry, path: str = "") -> Change:
    """The change that gives all notes of a change, or one of them, their texts of before. Raises EditRefused."""
    old = [file for file in curator.journal.change_of(entry).files if path in ("", file.path)]
    now = [(file, curator.read(file.path)) for file in old]
    files = tuple(FileChange(file.path, data, file.before) for file, data in now if data != file.before)
    if not files:
        raise EditRefused(f"{path or 'Every note'} has the text of before.", "Nothing was changed.")
    title = f"Restore {path} as it was before" if path else "Take back to the letter"
    return curator.plan.with_trust(Change("restore", f"{title}: {entry.title}", files))


def taken_back(curator: Curator, entry: JournalEntry) -> Change:
    """The change that takes back what somebody else did; what came since stays where it does not touch."""
    change = curator.journal.change_of(entry)
    files = tuple(file.reverse() for file in change.files)
    return curator.plan.with_trust(Change("restore", f"Take back: {entry.title}", files))


def bring_back(curator: Curator, losses: Sequence[tuple[str, int]]) -> Change:
    """The change that puts what changes took out of notes back into them; each loss has its path and its number.

    Raises EditRefused, PathRefused, Unreadable.
    """
    files: dict[str, FileChange] = {}
    for path, number in losses:
        edit = next(iter(curator.journal.edits(path, since=number - 1, until=number + 1)), None)
        before = curator.journal.text(edit.before) if edit is not None else None
        if before is None:
            raise EditRefused(f"The record has no text of {path} before change {number}.", "Run the checks again.")
        file = files.get(path) or FileChange(path, now := curator.read(path), now)
        after = before if file.after is None else together(before, file.after)
        files[path] = replace(file, after=after)
    changed = tuple(file for file in files.values() if file.before != file.after)
    if not changed:
        raise EditRefused("The notes hold every line of then.", "Nothing was changed.")
    what = changed[0].path if len(changed) == 1 else plural(len(changed), "note")
    return curator.plan.with_trust(Change("restore", f"Bring back what {what} lost", changed))


# --- what others took out ---------------------------------------------------------------------------------------------


class LostNote(Struct, frozen=True):
    """Lines that a note lost and still lacks; `change` is the journal's entry about it, `at` when it was found.

    `is_gone` tells that the note is not there at all.
    """

    path: str
    change: int
    at: float
    lines: tuple[str, ...]
    is_gone: bool
    by: str


def lost_lines(before: str, after: str) -> list[str]:
    """List the lines of `before` that `after` lacks; blanks at their ends, blank lines and annotations do not count."""
    left = Counter(_said(after))
    lost = []
    for line in _said(before):
        if left[line]:
            left[line] -= 1
        else:
            lost.append(line)
    return lost


def _said(text: str) -> list[str]:
    return [line.strip() for line in without_markers(text).split("\n") if line.strip()]


def is_loss(journal: Journal, edit: Edit) -> bool:
    """Return whether another program removed a note, or took lines out of a daily one, or most of many out of another.

    What git removes it has. Raises EditRefused.
    """
    if edit.kind or not edit.minus or edit.author == EDITOR:
        return False
    if edit.after is None:
        return edit.author is None or edit.author.host != "git"
    if not is_daily(edit.path) and edit.minus < _MANY_LINES:
        return False
    before, after = text_of(journal, edit.before), text_of(journal, edit.after)
    lost, old, new = len(lost_lines(before, after)), len(_said(before)), len(_said(after))
    if is_daily(edit.path):
        return lost > 0 and (new < old or 2 * lost > old)
    return old >= _MANY_LINES and lost > _OVERWRITTEN * old


def text_of(journal: Journal, blob: int | None) -> str:
    """Return a text of the record as lines are counted in it. Raises EditRefused."""
    return (journal.text(blob) or b"").decode("utf-8", "surrogateescape")


def lost_notes(
    journal: Journal, read: Callable[[str], bytes | None], texts: Sequence[tuple[str, str]]
) -> list[LostNote]:
    """List each loss of which lines are still lacking. `read` gives a note as it is, `texts` has path and text of all.

    Lines that stand in another note now were moved, and are not lost. Raises EditRefused.
    """
    losses: list[LostNote] = []
    with journal.kept():
        for edit in journal.edits(most=_MOST_LOSSES):
            try:
                if not is_loss(journal, edit):
                    continue
                now = read(edit.path)
                before = text_of(journal, edit.before)
            except MemoryTuiError:
                # What the journal let go, or what became a link, cannot be restored; the list of changes says so.
                continue
            lines = lost_lines(before, "" if now is None else now.decode("utf-8", "replace"))
            newer = [line for note in losses if note.path == edit.path for line in note.lines]
            elsewhere = [text for other, text in texts if other != edit.path]
            if all(lost_lines("\n".join(lines), text) for text in ("\n".join(newer), *elsewhere)):
                losses.append(LostNote(edit.path, edit.id, edit.at, tuple(lines), now is None, who(edit)))
    return losses[::-1]
