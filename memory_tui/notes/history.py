"""The history of notes is a reading of the record: what became of them, by whom, whose each line is, and the way back.

A restore brings back what notes held before: one note, all, or what others took out. It is shown like any other change.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import minute, plural
from memory_tui.notes.changes import Change, FileChange, Lines, end_of
from memory_tui.notes.edit import Curator
from memory_tui.notes.journal import EDITOR, OTHERS, Edit, Journal, JournalEntry, RecordedNote
from memory_tui.notes.merge import changed_spans
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import is_daily

OWN = "memory-tui"
"""Who made the changes that this program made."""
SOMEBODY = "somebody"
_BURST_SECONDS, _FEWEST = 2.0, 3
"""Changes of so many notes by one author that follow each other so closely are listed as one."""
_WAYS_BACK = ("restore", "undo", "redo")
"""The kinds of changes that bring lines back."""
_MOST_STEPS = 500
"""So many changes of a note are gone back for whom its lines are from."""
_MOST_LOSSES = 5000
"""So many changes are looked through for lines that others took out."""
_MANY_LINES, _OVERWRITTEN = 10, 0.8
"""What is no log is overwritten where more than this share of so many lines goes."""


def who(change: Edit | JournalEntry) -> str:
    """Return who made a change, in words."""
    if change.kind != OTHERS:
        return OWN
    return (change.author and change.author.host) or SOMEBODY


def history(
    journal: Journal, path: str | None = None, *, until: int = 0, most: int = 500, joined: bool = True
) -> tuple[JournalEntry, ...]:
    """Return what became of all notes, or of one, newest first: at most so many edits before the number `until`.

    With `joined` edits of many notes at once by one author are one entry. Raises EditRefused.
    """
    edits = journal.edits(path, until=until, most=most)
    oldest = edits[-1].id - 1 if len(edits) == most else 0
    own = [entry for entry in journal.entries(oldest) if path in (None, *entry.paths) and not 0 < until <= entry.id]
    return tuple(sorted([*own, *by_others(edits, joined=joined and path is None)], key=_newest))


def _newest(entry: JournalEntry) -> tuple[float, int]:
    """Return by what entries are ordered: the newest first, though it may have been seen before an older one."""
    return -entry.at, -entry.id


def by_others(edits: Iterable[Edit], *, joined: bool) -> list[JournalEntry]:
    """Return what others did, newest first; `joined`, what became of many notes at once by one author is one entry."""
    bursts: list[list[Edit]] = []
    for edit in edits:
        last = bursts[-1][-1] if bursts else edit
        if bursts and joined and abs(last.at - edit.at) <= _BURST_SECONDS and who(last) == who(edit):
            bursts[-1].append(edit)
        elif edit.kind == OTHERS:
            bursts.append([edit])
    parts = (
        [burst] if len({edit.path for edit in burst}) >= _FEWEST else [[edit] for edit in burst] for burst in bursts
    )
    return sorted((entry_of(part) for burst in parts for part in burst), key=_newest)


def entry_of(burst: Sequence[Edit]) -> JournalEntry:
    """Return what somebody else did, newest first, as an entry of the journal."""
    notes: dict[str, RecordedNote] = {}
    for edit in burst:
        after = notes[edit.path].after if edit.path in notes else edit.after
        notes[edit.path] = RecordedNote(edit.path, edit.before, after)
    # What came and went meanwhile is in the texts between.
    notes = {path: note for path, note in notes.items() if note.before != note.after} or notes
    first, author = burst[0], burst[0].author
    title = title_of(first) if len(burst) == 1 else f"{who(first)} {_deeds(notes.values())}"
    return JournalEntry(first.id, first.at, "done", OTHERS, title, tuple(notes.values()), author=author)


def _deeds(notes: Iterable[RecordedNote]) -> str:
    """Say what was done to how many notes; what was removed here and made there was moved."""
    gone = Counter(note.before for note in notes if note.after is None)
    counts = Counter[str]()
    for note in notes:
        if note.after is None:
            counts["removed"] += 1
        elif note.before is None and gone[note.after] > 0:
            gone[note.after] -= 1
            counts["moved"] += 1
            counts["removed"] -= 1
        else:
            counts["made" if note.before is None else "changed"] += 1
    return ", ".join(f"{verb} {plural(count, 'note')}" for verb, count in counts.items() if count)


def title_of(edit: Edit) -> str:
    """Return what a change did to its note, in words: those of this program, or who did it and how."""
    if edit.kind != OTHERS:
        return edit.title
    verb = "made" if edit.before is None else "removed" if edit.after is None else "changed"
    return f"{who(edit)} {verb} {edit.path} (+{edit.plus} -{edit.minus})"


def news(edits: Sequence[Edit]) -> str:
    """Return what others did, as a sentence goes on; empty for nothing."""
    entries = entry_of(edits).files if edits else ()
    back = {note.after for note in entries if note.before is None}
    deleted = sum(note.after is None and note.before not in back for note in entries)
    authors = Counter(who(edit) for edit in edits if edit.after is not None)
    parts = [f"{plural(count, 'change')} by {name}" for name, count in authors.most_common()]
    return ", ".join([*parts, *([f"{plural(deleted, 'note')} deleted"] if deleted else [])])


# --- lines -----------------------------------------------------------------------------------------------------------


def blame(journal: Journal, path: str, data: bytes, edits: Sequence[Edit] | None = None) -> list[Edit | None]:
    """Return the change that each line of a note that holds `data` came with; None where the record has none.

    A line that this program brought back came as it did at first. `edits` are the changes up to then, newest first.
    """
    texts = now = Lines.of(data, path).texts()
    edits = journal.edits(path, most=_MOST_STEPS) if edits is None else edits
    lines: list[Edit | None] = [None] * len(now)
    places, text = list(range(len(now))), journal.blob_of(data)
    if text is None and edits:
        # What it holds was not seen yet; lines that were there before came as they did.
        text = edits[0].after
        now, places = _back(now, places, journal.text(text), None, lines)
    for edit in edits:
        if text is not None and edit.after == text:
            text = edit.before
            now, places = _back(now, places, journal.text(text), edit, lines)
    for at, edit in enumerate(edits):
        if edit.kind in _WAYS_BACK:
            back = {texts[number]: number for number, by in enumerate(lines) if by == edit and texts[number].strip()}
            _keep_first(journal, path, edits[at + 1 :], back, lines)
    return lines


def _keep_first(
    journal: Journal, path: str, edits: Sequence[Edit], back: dict[str, int], lines: list[Edit | None]
) -> None:
    """Note in `lines` for each line of `back`, its text -> its place, the change that it first came with."""
    for at, lost in enumerate(edits):
        older = (back and journal.text(lost.before)) or b""
        texts = Lines.of(older).texts()
        if again := back.keys() & {*texts}:
            first = blame(journal, path, older, edits[at + 1 :])
            for line in again:
                lines[back.pop(line)] = first[texts.index(line)]


def _back(
    now: list[str], places: list[int], older: bytes | None, edit: Edit | None, lines: list[Edit | None]
) -> tuple[list[str], list[int]]:
    """Go one version back: note in `lines` what came with `edit`; returns the older lines and where each stands now."""
    old = Lines.of(older).texts()
    moved, at = [-1] * len(old), 0
    for start, end, now_start, now_end in [*changed_spans(old, now), (len(old), len(old), len(now), len(now))]:
        # What stands between two changes is the same in both versions.
        moved[at:start] = places[now_start - (start - at) : now_start]
        for place in places[now_start:now_end]:
            if place >= 0:
                lines[place] = edit
        at = end
    return old, moved


# --- restore ---------------------------------------------------------------------------------------------------------


def versions(journal: Journal, path: str, now: bytes | None) -> list[Edit]:
    """List the changes before which the note `path` had another text than `now`, newest first, each text once.

    Raises EditRefused.
    """
    texts: dict[int | None, Edit] = {}
    for edit in journal.edits(path):
        texts.setdefault(edit.before, edit)
    none = None, journal.blob_of(now)
    return [edit for blob, edit in texts.items() if blob not in none]


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


def restore_before(curator: Curator, path: str | None = None, *, change: int = 0, at: float = 0.0) -> Change:
    """The change that brings one note, or all, back to what they were before a change, or at a time (epoch seconds).

    A note of which the record does not know that stays. Raises EditRefused where nothing would change, PathRefused.
    """
    when = f"before change {change}" if change else f"on {minute(at)}"
    step = "memory-tui history lists the changes."
    journal = curator.journal
    with journal.kept():
        start = journal.numbers().start or time.time()
        # Of one note the last change up to then says it all, and a record may have 100,000 others.
        older = journal.edits(path, until=change, before=at, most=-1 if path is None else 1)
        then = {edit.path: edit.after for edit in reversed(older)}
        first = {} if path in then else {edit.path: edit.before for edit in journal.edits(path)}
        if path is not None and not (then or first):
            raise EditRefused(f"The record has no change of {path}.", step)
        unknown = 0
        if change or at >= start:
            then = first | then
        else:
            unknown = len(first.keys() - then.keys())
        texts = ((name, curator.read(name), journal.text(blob)) for name, blob in then.items())
        files = [FileChange(*each) for each in texts if each[1] != each[2]]
    # Of notes without a change nothing is known from before the record.
    if not files and (unknown or (path is None and not change and at < start)):
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
    files = tuple(file.reverse() for file in curator.journal.change_of(entry).files)
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
    if edit.kind != OTHERS or not edit.minus or edit.author == EDITOR:
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
