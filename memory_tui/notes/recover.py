"""Finish or take back a change that a crash cut off, and look after files that a writer had kept open."""

from __future__ import annotations

import os

from msgspec.structs import replace

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.notes import lease
from memory_tui.notes.changes import FileChange, ThreeWay
from memory_tui.notes.journal import Journal, JournalEntry, State
from memory_tui.notes.lease import WriterState
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
                settled.append(_settled(roots, journal, entry))
            elif entry.left:
                # Beside notes that were brought back lies what was never written.
                left = _late(roots, journal, entry, journal.change_of(entry).files) if entry.state == "done" else ()
                _clear(roots, entry, left)
                journal.put(replace(entry, left=left))
        except (OSError, EditRefused) as error:
            reason = error.message.rstrip(".") if isinstance(error, EditRefused) else error.strerror
            settled.append(replace(entry, reason=f"{WAITS}: {reason}"))
    return tuple(settled)


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


def _settled(roots: Roots, journal: Journal, entry: JournalEntry) -> JournalEntry:
    try:
        files = journal.change_of(entry).files
        left = _late(roots, journal, entry, files)
        state, reason = _finished(roots, journal, entry, files)
        _clear(roots, entry, left)
        if state == "refused":
            return journal.settle(entry, state, left=left, reason=reason)
        return journal.settle(entry, state, [_as_it_is(roots, file) for file in files], left=left, reason=reason)
    except EditRefused:
        raise
    except MemoryTuiError as error:
        return journal.settle(entry, "refused", reason=f"{HALF}: {error.message}")


def _finished(roots: Roots, journal: Journal, entry: JournalEntry, files: tuple[FileChange, ...]) -> tuple[State, str]:
    """Make what is missing where something was made, or when that cannot be, take back what was made."""
    is_there = [is_made(file, current(roots, file.path)) for file in files]
    if not any(is_there):
        return "refused", CUT_OFF
    try:
        for number, file in enumerate(files):
            if not is_there[number]:
                write(roots, file, tag(entry.id, number) + "f")
        return "done", FINISHED
    except (SameLinesChanged, MemoryTuiError) as stopped:
        if isinstance(stopped, SameLinesChanged):
            journal.draft(stopped.view, entry.title)
    try:
        for number, file in enumerate(files):
            if is_made(file, current(roots, file.path)):
                write(roots, replace(file, before=file.after, after=file.before), tag(entry.id, number) + "b")
        return "refused", TAKEN_BACK
    except SameLinesChanged:
        return "done", HALF


def _late(roots: Roots, journal: Journal, entry: JournalEntry, files: tuple[FileChange, ...]) -> tuple[str, ...]:
    """Merge what others wrote to replaced files, which still lie beside the notes, into the notes.

    Returns the names of those that a writer has open.
    """
    left: list[str] = []
    for number, file in enumerate(files):
        hidden = tag(entry.id, number)
        with parent(roots, file.path) as (folder, name):
            for beside in folder.names(hidden) if folder is not None else ():
                if folder is None or not beside.endswith((NEW, OLD)):
                    continue
                if (late := _closed(folder, beside)) is None:
                    left.append(beside)
                elif late not in (file.before, file.after):
                    _merge_late(roots, journal, entry, replace(file, after=late), folder.read(name), hidden + "l")
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


def _clear(roots: Roots, entry: JournalEntry, left: tuple[str, ...]) -> None:
    for number, file in enumerate(entry.files):
        with parent(roots, file.path) as (folder, _):
            for beside in folder.names(tag(entry.id, number)) if folder is not None else ():
                if folder is not None and beside not in left:
                    folder.remove(beside)


def _as_it_is(roots: Roots, file: FileChange) -> FileChange:
    """Return the change as it came out: what the note holds now, and what it would hold without the change."""
    now = current(roots, file.path)
    without = merge(file.after, file.before, now)
    plain = without.merged if without.merged is not None or file.before is None else file.before
    return replace(file, before=plain, after=now)


def _closed(folder: Folder, hidden: str) -> bytes | None:
    """Return the content of a hidden file when nobody has it open to write any more."""
    descriptor = folder.open(hidden, os.O_RDONLY)
    try:
        state = lease.quiet(descriptor, 0)
        text = None if state is WriterState.WRITER else contents(descriptor, hidden)
        if state is WriterState.HELD:
            lease.give_back(descriptor)
        return text
    finally:
        os.close(descriptor)
