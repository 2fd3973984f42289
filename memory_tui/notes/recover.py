"""Settle a change that did not come to its end: it counts as made when every note has it, else it is taken back.

So it is after an error of the disk, and at the next start after a crash. Files that a writer had kept open are looked
after here, too.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from msgspec.structs import replace

from memory_tui.errors import EditFailed, EditRefused, MemoryTuiError
from memory_tui.notes import write as writing
from memory_tui.notes.changes import FileChange, ThreeWay
from memory_tui.notes.journal import Journal, JournalEntry
from memory_tui.notes.merge import merge
from memory_tui.notes.write import NEW, OLD, Folder, SameLinesChanged, contents, current, parent, tag, write
from memory_tui.workspace.roots import Roots

CUT_OFF = "cut off before a note was written"
FINISHED = "cut off and finished at the next start"
TAKEN_BACK = "cut off and taken back at the next start"
WAITS = "cut off, and not settled yet"
HALF = "cut off, and other changes since then leave it half done"


def recover(roots: Roots, journal: Journal) -> tuple[JournalEntry, ...]:
    """Settle every change that was cut off. Only while the journal is locked.

    Returns what was settled, each with its reason; what the disk does not allow to be settled stays an intent.
    """
    settled = []
    for entry in journal.entries():
        try:
            if entry.state == "intent":
                settled.append(settle(roots, journal, entry))
            elif entry.left:
                # Beside notes that were brought back lies what was never written.
                left = _late(roots, journal, entry) if entry.state == "done" else ()
                journal.put(replace(entry, left=clear(roots, entry, left)))
        except (OSError, EditRefused) as error:
            reason = error.message.rstrip(".") if isinstance(error, EditRefused) else error.strerror
            settled.append(replace(entry, reason=f"{WAITS}: {reason}"))
    return tuple(settled)


def settle(roots: Roots, journal: Journal, entry: JournalEntry, reason: str = "") -> JournalEntry:
    """Bring the notes of an intent to one of its ends; `reason` is why it may be taken back.

    Raises EditRefused, OSError.
    """
    try:
        files = journal.change_of(entry).files
        left = _late(roots, journal, entry)
        ends = [is_made(file, current(roots, file.path)) for file in files]
        if not any(ends):
            end = replace(entry, state="refused", reason=reason or CUT_OFF)
        elif all(ends):
            end = replace(entry, state="done", reason="" if reason else FINISHED)
        else:
            end = _taken_back(roots, entry, [file if made else None for file, made in zip(files, ends, strict=True)])
            end = replace(end, reason=reason) if reason and end.state == "refused" else end
        end = replace(end, left=clear(roots, entry, left))
        return journal.settle(end, [_as_it_is(roots, file) for file in files] if end.state == "done" else None)
    except EditRefused:
        raise
    except MemoryTuiError as error:
        return journal.settle(replace(entry, state="refused", reason=f"{HALF}: {error.message}"))


def is_made(change: FileChange, now: bytes | None) -> bool:
    """Return whether a note that holds `now` has had `change` made to it, whatever others did before or after."""
    before, after = change.before, change.after
    if now in (before, after):
        return now == after
    if before is None:
        return now is not None and after is not None and now.startswith(after)
    if after is not None and now is not None and after.startswith(before):
        # Lines that were only added are there or not; a merge would add them a second time.
        return now.startswith(before) and after[len(before) :].strip(b"\r\n") in now[len(before) :]
    there = merge(before, after, now).merged
    return there == now if there is not None else merge(after, before, now).merged is not None


def clear(roots: Roots, entry: JournalEntry, left: Collection[str] = ()) -> tuple[str, ...]:
    """Remove the hidden files of a change but those that a writer has open, and flush its folders; returns those.

    Only then may the journal say that it is done. Raises EditFailed.
    """
    for number, file in enumerate(entry.files):
        with parent(roots, file.path) as (folder, _):
            try:
                for name in folder.names(tag(entry.id, number)) if folder is not None else ():
                    if folder is not None and name not in left:
                        folder.remove(name)
                if folder is not None:
                    folder.sync()
            except OSError as error:
                raise EditFailed(
                    f"The folder of {file.path} cannot be written: {error.strerror}.", "Check the disk."
                ) from None
    return tuple(left)


def _taken_back(roots: Roots, entry: JournalEntry, files: list[FileChange | None]) -> JournalEntry:
    """Take back those `files` that are made, by their numbers, each one where others have not changed it since."""
    end = replace(entry, state="refused", reason=TAKEN_BACK)
    for number, file in reversed(list(enumerate(files))):
        if file is not None:
            try:
                write(roots, file.reverse(), tag(entry.id, number) + "b")
            except SameLinesChanged:
                end = replace(entry, state="done", reason=HALF)
    return end


def _late(roots: Roots, journal: Journal, entry: JournalEntry) -> tuple[str, ...]:
    """Merge what others wrote to replaced files, which still lie beside the notes, into the notes.

    Returns the names of those that a writer has open.
    """
    left: list[str] = []
    for number, file in enumerate(journal.change_of(entry).files):
        hidden = tag(entry.id, number)
        with parent(roots, file.path) as (folder, name):
            for beside in folder.names(hidden) if folder is not None else ():
                if folder is None or not beside.endswith((NEW, OLD)):
                    continue
                text, closed = _closed(folder, beside)
                if not closed:
                    left.append(beside)
                elif text not in (file.before, file.after):
                    late = replace(file, after=text)
                    _merge_late(roots, journal, entry, late, folder.read(name), hidden + "l")
    return tuple(left)


def _merge_late(
    roots: Roots, journal: Journal, entry: JournalEntry, late: FileChange, now: bytes | None, hidden: str
) -> None:
    both = merge(late.before, now, late.after)
    if now is None:
        # The note was on its way out when somebody wrote to it: it comes back.
        write(roots, replace(late, before=None), hidden)
    elif both.merged is None:
        journal.draft(ThreeWay(late.path, late.before, late.after, now, both), f"Late lines of: {entry.title}")
    elif both.merged != now:
        write(roots, FileChange(late.path, now, both.merged), hidden)


def _as_it_is(roots: Roots, file: FileChange) -> FileChange:
    """Return the change as it came out: what the note holds now, and what it would hold without the change."""
    now = current(roots, file.path)
    without = merge(file.after, file.before, now).merged
    return replace(file, before=without if without is not None else file.before, after=now)


def _closed(folder: Folder, hidden: str) -> tuple[bytes, bool]:
    """Return the content of a hidden file, and whether nobody has it open to write any more."""
    descriptor = folder.open(hidden)
    try:
        closed = writing.quiet(descriptor, 0) is not False
        return contents(descriptor, hidden), closed
    finally:
        os.close(descriptor)
