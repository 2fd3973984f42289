"""A decided change is merged with what others wrote meanwhile. Then it goes to note_bytes, or is tried again."""

from __future__ import annotations

import time
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import EditFailed, EditRefused
from memory_tui.notes import note_bytes
from memory_tui.notes.changes import FileChange, ReadOnly, ThreeWay, Unfinished
from memory_tui.notes.merge import Merge, common_head, merge
from memory_tui.notes.note_bytes import Folder, NoteChanged, parent
from memory_tui.workspace.roots import Roots

DEADLINE_SECONDS = 4.0
"""How long a change is tried again when the notes change under our hands, all of its attempts together."""


class WrittenNote(Struct, frozen=True):
    """What a note held before and holds after, others' additions included.

    `between` are texts that it held for a moment, while others' last lines were not in it yet; whoever read one of
    them may still put it back. `final` unless somebody keeps the replaced file open to write; then it stays beside
    the note under a hidden name.
    """

    path: str
    before: bytes | None
    after: bytes | None
    final: bool = True
    between: tuple[bytes, ...] = ()


RECENT_SECONDS = 2.0
"""A note that changed so lately may be about to be replaced by somebody who read it before it was written here."""
STAY_SECONDS = 0.04
"""How long such a note is looked after when it is written."""

_PATIENCE = 5
"""After so many of them it is exchanged without another comparison."""


class SameLinesChanged(Exception):
    """Somebody else changed the same lines; `view` shows all three texts."""

    def __init__(self, view: ThreeWay) -> None:
        super().__init__(view.path)
        self.view = view


def current(roots: Roots, path: str) -> bytes | None:
    """The bytes of the note `path` now, None when it is not there. Raises PathRefused, Unreadable."""
    with parent(roots, path) as (folder, name):
        return None if folder is None else folder.read(name)


def standing(roots: Roots, path: str) -> tuple[int, int]:
    """Mode and time (ns) of the note `path`, zeros when it is not there. Raises PathRefused."""
    with parent(roots, path) as (folder, name):
        status = folder.status(name) if folder is not None else None
    return (status.st_mode & 0o7777, status.st_mtime_ns) if status else (0, 0)


def planned(roots: Roots, change: FileChange, *, merging: bool = True, begins: bool = False) -> FileChange:
    """`change` against what is on disk now: as it is, or merged with it. Raises SameLinesChanged.

    With `begins` a note that somebody else began meanwhile with the same lines is added to.
    """
    theirs = current(roots, change.path)
    if theirs == change.before:
        return change
    if begins and change.before is None and change.after is not None and theirs is not None:
        # Two have begun the same note: what both began with is what both started from.
        change = replace(change, before=common_head(change.after, theirs))
    if theirs == change.after:
        return replace(change, before=theirs)
    if not merging:
        found = merge(change.before, change.after, theirs)
        raise SameLinesChanged(ThreeWay(change.path, change.before, change.after, theirs, found))
    return replace(change, before=theirs, after=_merged(change.path, change.before, change.after, theirs))


def moved_on(roots: Roots, files: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """`files` with what others wrote meanwhile to a note that moves taken along to its new path."""
    found = {file.path: file for file in files}
    for gone_path, new_path in _movements(files).items():
        gone, new = found[gone_path], found[new_path]
        theirs = current(roots, gone_path)
        if theirs is None or theirs == gone.before:
            continue
        taken = merge(gone.before, new.after, theirs).merged
        if taken is not None:
            found[gone_path], found[new_path] = replace(gone, before=theirs), replace(new, after=taken)
    return tuple(found[file.path] for file in files)


def stay(roots: Roots, done: WrittenNote, hidden: str, until: float) -> WrittenNote:
    """`done` when nobody put a text in its place that they had read before; else made again to that text.

    Where that touches nothing is raised: then others changed the note after it was written, as anybody may.
    """
    while time.monotonic() < until:
        now = current(roots, done.path)
        olds = [old for old in (done.before, *done.between) if _overwritten(old, done.after, now)]
        if not olds:
            break
        try:
            again = write(roots, FileChange(done.path, olds[0], done.after), hidden + "s", until)
        except SameLinesChanged:
            break
        before, after = _pair(done.before, done.after or b"", again.after)
        done = replace(again, before=before, after=after, between=done.between + again.between)
        time.sleep(STAY_SECONDS)
    return done


def _overwritten(old: bytes | None, new: bytes | None, now: bytes | None) -> bool:
    """Whether `now` holds nothing of what made `new` of `old`, as if somebody had never seen it."""
    if old is None or new is None or now is None or now == new:
        return False
    before, after, there = (Counter(text.split(b"\n")) for text in (old, new, now))
    changed = [line for line in before | after if before[line] != after[line]]
    return bool(changed) and all(there[line] == before[line] for line in changed)


def deadline() -> float:
    """When a change that begins now is given up, as `time.monotonic` tells it."""
    return time.monotonic() + DEADLINE_SECONDS


def _movements(files: tuple[FileChange, ...]) -> dict[str, str]:
    """The new path of each note that goes while one of the same name comes, or while one comes and one goes."""
    new = [file.path for file in files if file.before is None and file.after is not None]
    gone = [file.path for file in files if file.before is not None and file.after is None]
    if len(new) == len(gone) == 1:
        return {gone[0]: new[0]}
    by_name = {path.rpartition("/")[2]: path for path in new}
    return {path: by_name[name] for path in gone if (name := path.rpartition("/")[2]) in by_name}


def write(roots: Roots, change: FileChange, hidden: str, until: float = 0.0) -> WrittenNote:
    """Make `change` on disk. Raises SameLinesChanged, Busy, ReadOnly, EditRefused; then the note is as others left it.

    It is tried again until `until` (as `time.monotonic` tells it; 0: DEADLINE_SECONDS from now).
    """
    until = until or deadline()
    with parent(roots, change.path, make=change.after is not None) as (folder, name):
        if folder is None:
            raise EditRefused(f"The folder of {change.path} is gone.", "Look at the list of files.")
        try:
            return _rounds(folder, name, change, hidden, until)
        except note_bytes.TornWrite as torn:
            raise Unfinished(
                f"{_refused(torn, change.path).message} A part of the text stands in {change.path} and could not be "
                f"taken out again: {torn.stays.strerror}.",
                "The next start or change removes it.",
            ) from None
        except OSError as error:
            raise _refused(error, change.path) from None


def _rounds(
    folder: Folder, name: str, change: FileChange, hidden: str, until: float, *, late: bool = False
) -> WrittenNote:
    """Until the change is made. What is written `late` is older than what others add, and goes in front of it."""
    now = change
    number = 0
    while number <= _PATIENCE + 1 or time.monotonic() < until:
        number += 1
        try:
            if (
                not late
                and now.before is not None
                and now.after is not None
                and _only_adds(folder, name, now.before, now.after)
            ):
                return WrittenNote(
                    change.path, *note_bytes.append(folder, name, now.before, now.after[len(now.before) :])
                )
            now, found = _once(folder, name, hidden, now, insist=number > _PATIENCE, late=late)
        except NoteChanged as news:
            now = replace(now, before=news.theirs, after=_merged(change.path, now.before, now.after, news.theirs, late))
            if now.after == now.before:
                return WrittenNote(change.path, now.before, now.after)
            continue
        if found.displaced == now.before:
            return WrittenNote(change.path, now.before, now.after, found.final)
        return _joined(folder, name, now, hidden, found, until, late=late)
    raise EditRefused(f"{change.path} changes too fast to be edited.", "Try again when nothing writes to it.")


def _joined(
    folder: Folder, name: str, done: FileChange, hidden: str, found: note_bytes.SwapResult, until: float, *, late: bool
) -> WrittenNote:
    """What others wrote between the comparison and the exchange, and what was written here, in one text."""
    both = merge(done.before, done.after, found.displaced, mine_first=late or _half(done.before, found.displaced))
    if late and (parts := _parts(done.before, done.after, found.displaced)) is not None:
        both = Merge((), parts)
    # The file that was replaced stays under its hidden name until the next one is in place.
    again = hidden + "+"
    if both.merged is None:
        _give_back(folder, name, replace(done, before=done.after, after=found.displaced), again, until)
        raise SameLinesChanged(ThreeWay(done.path, done.before, done.after, found.displaced, both))
    if both.merged == done.after:
        return WrittenNote(done.path, found.displaced, done.after, found.final)
    last = _rounds(folder, name, replace(done, before=done.after, after=both.merged), again, until, late=True)
    pair = _pair(found.displaced, both.merged, last.after)
    return WrittenNote(done.path, *pair, found.final and last.final, (done.after or b"", *last.between))


def _pair(before: bytes | None, after: bytes, now: bytes | None) -> tuple[bytes | None, bytes | None]:
    """What a note that holds `now` held before and holds after a change, where others added to `after` meanwhile.

    Taking the change back must not take back what others wrote.
    """
    without = merge(after, before, now).merged
    return (before, after) if without is None else (without, now)


def _give_back(folder: Folder, name: str, change: FileChange, hidden: str, until: float) -> None:
    """Put what others wrote back in the place of mine."""
    try:
        _rounds(folder, name, change, hidden, until)
    except SameLinesChanged as news:
        theirs = news.view.theirs
        if change.before is None and change.after and theirs:
            # The note was away for a moment, and somebody has begun a new one: theirs goes behind.
            end = b"" if change.after.endswith(b"\n") else b"\n"
            _rounds(folder, name, replace(change, before=theirs, after=change.after + end + theirs), hidden, until)
        elif change.before is not None and theirs is not None:
            # They went on in what was written here. Lines twice are better than lines lost.
            _rounds(folder, name, replace(change, before=theirs, after=news.view.merge.united), hidden, until)


def _once(
    folder: Folder, name: str, hidden: str, change: FileChange, *, insist: bool, late: bool
) -> tuple[FileChange, note_bytes.SwapResult]:
    """One attempt: the change as it came to be, and the file it displaced. Raises NoteChanged, SameLinesChanged.

    With `insist` a note that is written all the time is exchanged as it is, because what was displaced is merged in.
    """
    note_bytes.clear(folder, hidden)
    if change.after is None:
        return change, note_bytes.remove(folder, name, hidden, change.before or b"")
    note_bytes.write_beside(folder, hidden, change.after, folder.status(name), change.mode, change.mtime_ns)
    if change.before is None:
        note_bytes.create(folder, name, hidden)
        return change, note_bytes.SwapResult(None)
    note_bytes.copy_attributes(folder, name, hidden)
    made = change

    def remake(theirs: bytes, stays: bool) -> bool:
        nonlocal made
        if not stays:
            return insist
        after = _merged(change.path, change.before, change.after, theirs, late)
        if after is None or after == theirs:
            return False
        made = replace(change, before=theirs, after=after)
        note_bytes.write_beside(folder, hidden, after, folder.status(name))
        note_bytes.copy_attributes(folder, name, hidden)
        return True

    found = note_bytes.replace(folder, name, hidden, change.before, remake)
    return made, found


def _only_adds(folder: Folder, name: str, before: bytes, after: bytes) -> bool:
    """Whether `after` is `before` and more lines, in a file without a second name that a write would change too."""
    if not after.startswith(before) or (before and not before.endswith(b"\n")):
        return False
    status = folder.status(name)
    return status is not None and status.st_nlink == 1


def _merged(
    path: str, base: bytes | None, mine: bytes | None, theirs: bytes | None, late: bool = False
) -> bytes | None:
    if late and (parts := _parts(base, mine, theirs)) is not None:
        return parts
    found = merge(base, mine, theirs, mine_first=late or _half(base, theirs))
    # A note that both agree to remove is merged, and None like one that cannot be.
    if found.merged is None and (mine is not None or theirs is not None):
        raise SameLinesChanged(ThreeWay(path, base, mine, theirs, found))
    return found.merged


def _parts(base: bytes | None, mine: bytes | None, theirs: bytes | None) -> bytes | None:
    """What one program added first to the old file and then to the new one, as it was: it may be parts of one line."""
    if base is None or mine is None or theirs is None or not (mine.startswith(base) and theirs.startswith(base)):
        return None
    return mine + theirs[len(base) :]


def _half(base: bytes | None, theirs: bytes | None) -> bool:
    """Whether somebody seems to be in the middle of a line at the end, so that nothing may come behind it."""
    return bool(theirs) and not (theirs or b"").endswith(b"\n") and (base or b"\n").endswith(b"\n")


def _refused(error: OSError, path: str) -> EditRefused:
    import errno

    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(f"{path} cannot be written: {error.strerror}.", "Check its file system and its permissions.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EditFailed(f"The disk that holds {path} is full.", "The note is as it was: make room and try again.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
        return EditRefused(f"{path} was replaced by a link or a folder.", "Only regular files are changed.")
    return EditFailed(f"{path} cannot be written: {error.strerror or error}.", "Check the disk.")
