"""Recovery finishes or forgets a change that a crash cut off."""

from __future__ import annotations

import os

from msgspec.structs import replace

from memory_tui.core.errors import EditRefused, MemoryTuiError
from memory_tui.notes import lease, note_bytes
from memory_tui.notes.changes import FileChange, ThreeWay
from memory_tui.notes.journal import Journal, JournalEntry
from memory_tui.notes.lease import WriterState
from memory_tui.notes.merge import merge
from memory_tui.notes.note_bytes import Folder, contents, parent
from memory_tui.notes.note_write import SameLinesChanged, current, write
from memory_tui.workspace.roots import Roots

CUT_OFF = "cut off before a note was written"
FINISHED = "cut off and finished at the next start"
TAKEN_BACK = "cut off and taken back at the next start"
CUT_OUT = "cut off while it was written, and taken back at the next start"
WAITS = "cut off, and not settled yet"
HALF = "cut off, and other changes since then leave it half done"
_SURELY = 16
"""So many bytes of a line that was cut off tell it from a line of somebody else."""


def recover(roots: Roots, journal: Journal) -> tuple[JournalEntry, ...]:
    """Settle every change that was cut off, and look after files that a writer had kept open. While locked.

    Returns what was settled, each with its reason; what the disk does not allow to be settled stays an intent.
    """
    settled = []
    for entry in journal.entries():
        try:
            if entry.state == "intent":
                settled.append(_settled(roots, journal, entry))
            elif entry.left:
                _late(roots, journal, entry)
        except (OSError, EditRefused) as error:
            reason = error.message.rstrip(".") if isinstance(error, EditRefused) else error.strerror
            settled.append(replace(entry, reason=f"{WAITS}: {reason}"))
    return tuple(settled)


def is_made(change: FileChange, now: bytes | None) -> bool:
    """Whether a note that holds `now` has had `change` made to it, whatever others did before or after."""
    if now in (change.before, change.after):
        return now == change.after
    before, after = change.before, change.after
    if before is None:
        return now is not None and after is not None and now.startswith(after)
    if after is not None and now is not None and after.startswith(before):
        # Lines that were only added are there or not; a merge would add them a second time.
        return now.startswith(before) and after[len(before) :].strip(b"\r\n") in now[len(before) :]
    there = merge(before, after, now)
    if there.merged is not None:
        return there.merged == now
    return merge(after, before, now).merged is not None


def _settled(roots: Roots, journal: Journal, entry: JournalEntry) -> JournalEntry:
    try:
        change = journal.change_of(entry)
        files = [_with_late(roots, file, note_bytes.tag(entry.id, n)) for n, file in enumerate(change.files)]
        torn = [_without_part(roots, file) for file in files]
        made = [is_made(file, current(roots, file.path)) for file in files]
        if not any(made):
            state, reason = "refused", CUT_OUT if any(torn) else CUT_OFF
        else:
            state, reason = _finish(roots, journal, entry, files, made)
        for number, file in enumerate(files):
            _clear(roots, file.path, note_bytes.tag(entry.id, number))
        if state == "refused":
            return journal.settle(entry, "refused", reason=reason)
        return journal.settle(entry, "done", [_as_it_is(roots, file) for file in files], reason=reason)
    except EditRefused:
        raise
    except MemoryTuiError as error:
        return journal.settle(entry, "refused", reason=f"{HALF}: {error.message}")


def _finish(
    roots: Roots, journal: Journal, entry: JournalEntry, files: list[FileChange], made: list[bool]
) -> tuple[str, str]:
    """Make what is missing, or when that cannot be, take back what was made."""
    try:
        for number, (file, done) in enumerate(zip(files, made, strict=True)):
            if not done:
                write(roots, file, note_bytes.tag(entry.id, number) + "f")
        return "done", FINISHED
    except (SameLinesChanged, MemoryTuiError) as stopped:
        if isinstance(stopped, SameLinesChanged):
            journal.draft(stopped.view, entry.title)
    try:
        for number, file in enumerate(files):
            if is_made(file, current(roots, file.path)):
                back = replace(file, before=file.after, after=file.before)
                write(roots, back, note_bytes.tag(entry.id, number) + "b")
        return "refused", TAKEN_BACK
    except SameLinesChanged:
        return "done", HALF


def _without_part(roots: Roots, file: FileChange) -> bool:
    """Take the first part of added lines out, where the note has it and not the rest; whether it had."""
    with parent(roots, file.path) as (folder, name):
        now = folder.read(name) if folder is not None else None
        if folder is None or now is None or is_made(file, now):
            return False
        found = part_of(file, now)
        if found is not None:
            note_bytes.take_out(folder, name, *found)
        return found is not None


def part_of(change: FileChange, now: bytes) -> tuple[int, bytes] | None:
    """Where `now` holds a first part of the lines that `change` adds, and which; None when it surely holds none.

    At the end of what was there before a part of any length counts. Behind lines of others it must be long enough that
    it is surely ours, and begin a line.
    """
    before, after = change.before, change.after
    if before is None or after is None or not after.startswith(before) or not now.startswith(before):
        return None
    added, tail = after[len(before) :], now[len(before) :]
    if tail and added.startswith(tail):
        return len(before), tail
    low, high, at = _SURELY - 1, len(added), -1
    while high - low > 1:
        middle = (low + high) // 2
        found = _at_line_start(tail, added[:middle])
        low, high, at = (middle, high, found) if found >= 0 else (low, middle, at)
    return (len(before) + at, added[:low]) if at >= 0 else None


def _at_line_start(text: bytes, part: bytes) -> int:
    if text.startswith(part):
        return 0
    return text.find(b"\n" + part) + 1 or -1


def _with_late(roots: Roots, file: FileChange, hidden: str) -> FileChange:
    """Merge what others wrote to a replaced file, which still lies beside the note, into the note."""
    with parent(roots, file.path) as (folder, name):
        if folder is None:
            return file
        now = folder.read(name)
        for late in _replaced(folder, hidden, file):
            both = merge(file.before, now, late)
            if both.merged is not None and both.merged != now:
                now = write(roots, FileChange(file.path, now, both.merged), hidden + "l").after
            elif both.merged is None and now is None:
                # The note was on its way out when somebody wrote to it: it comes back.
                now = write(roots, FileChange(file.path, None, late), hidden + "l").after
    return file


def _replaced(folder: Folder, hidden: str, file: FileChange) -> list[bytes]:
    """The texts of whole hidden files that are neither the text before nor the text after."""
    names = [name for name in folder.names(hidden) if name.endswith((note_bytes.NEW, note_bytes.OLD))]
    texts = [folder.read(name) for name in names]
    return [text for text in texts if text is not None and text not in (file.before, file.after)]


def _clear(roots: Roots, path: str, hidden: str) -> None:
    with parent(roots, path) as (folder, _):
        if folder is not None:
            note_bytes.clear(folder, hidden)


def _as_it_is(roots: Roots, file: FileChange) -> FileChange:
    """The change as it came out: what the note holds now, and what it would hold without the change."""
    now = current(roots, file.path)
    without = merge(file.after, file.before, now)
    plain = without.merged if without.merged is not None or file.before is None else file.before
    return replace(file, before=plain, after=now)


def _late(roots: Roots, journal: Journal, entry: JournalEntry) -> None:
    """Merge what a writer added to a file it had kept open, when it has closed it."""
    left = []
    for file in entry.files:
        for hidden in entry.left:
            with parent(roots, file.path) as (folder, _):
                if folder is None or folder.status(hidden) is None:
                    continue
                if (late := _closed(folder, hidden)) is None:
                    left.append(hidden)
                    continue
                _merge_late(roots, journal, entry, FileChange(file.path, journal.text(file.before), late), hidden)
                folder.remove(hidden)
    if tuple(left) != entry.left:
        journal.put(replace(entry, left=tuple(left)))


def _merge_late(roots: Roots, journal: Journal, entry: JournalEntry, late: FileChange, hidden: str) -> None:
    if late.before == late.after:
        return
    now = current(roots, late.path)
    both = merge(late.before, now, late.after)
    if both.merged is None:
        journal.draft(ThreeWay(late.path, late.before, late.after, now, both), f"Late lines of: {entry.title}")
    elif both.merged != now:
        write(roots, FileChange(late.path, now, both.merged), hidden + "l")


def _closed(folder: Folder, hidden: str) -> bytes | None:
    """The content of a hidden file when nobody has it open to write any more."""
    descriptor = folder.open(hidden, os.O_RDONLY)
    try:
        found = lease.quiet(descriptor, 0)
        if found is WriterState.WRITER:
            return None
        text = contents(descriptor, hidden)
        if found is WriterState.HELD:
            lease.give_back(descriptor)
        return text
    finally:
        os.close(descriptor)
