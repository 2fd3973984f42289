"""The history of notes is a reading of the record: what became of them, by whom, and whose each line is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from memory_tui.formatting import plural
from memory_tui.notes.changes import Lines
from memory_tui.notes.journal import Edit, Journal, JournalEntry, RecordedNote
from memory_tui.notes.merge import changed_spans

OTHERS = "others"
"""The kind of an entry about what somebody else did."""
OWN = "memory-tui"
"""Who made the changes that this program made."""
_BURST_SECONDS, _FEWEST = 2.0, 3
"""Changes of so many notes by one author that follow each other so closely are listed as one."""
_WAYS_BACK = ("restore", "undo", "redo")
"""The kinds of changes that bring lines back."""
_MOST_STEPS = 500
"""So many changes of a note are gone back for whom its lines are from."""


def who(edit: Edit) -> str:
    """Return who made a change, in words."""
    if edit.kind:
        return OWN
    return edit.author.host if edit.author is not None and edit.author.host else "somebody"


def history(
    journal: Journal, path: str | None = None, *, until: int = 0, most: int = 500, joined: bool = True
) -> tuple[JournalEntry, ...]:
    """Return what became of all notes, or of one, newest first: at most so many edits before the number `until`.

    With `joined` edits of many notes at once by one author are one entry. Raises EditRefused.
    """
    edits = journal.edits(path, until=until, most=most)
    oldest = edits[-1].id - 1 if len(edits) == most else 0
    own = [entry for entry in journal.entries(oldest) if path in (None, *entry.paths) and not 0 < until <= entry.id]
    edits = tuple(edit for edit in edits if not edit.kind)
    others = joined_edits(edits) if joined and path is None else [entry_of([edit]) for edit in edits]
    return tuple(sorted([*own, *others], key=newest))


def newest(entry: JournalEntry) -> tuple[float, int]:
    """Return by what entries are ordered: the newest first, though it may have been seen before an older one."""
    return -entry.at, -entry.id


def joined_edits(edits: Iterable[Edit]) -> list[JournalEntry]:
    """Return what others did, newest first: what became of many notes at once by one author is one entry."""
    return [
        entry_of(part)
        for burst in bursts(edits)
        for part in ([burst] if len({edit.path for edit in burst}) >= _FEWEST else ([edit] for edit in burst))
    ]


def bursts(edits: Iterable[Edit]) -> list[list[Edit]]:
    """Return changes by one author that follow each other closely together."""
    parts: list[list[Edit]] = []
    for edit in edits:
        last = parts[-1][-1] if parts else None
        if last is not None and abs(last.at - edit.at) <= _BURST_SECONDS and who(last) == who(edit):
            parts[-1].append(edit)
        else:
            parts.append([edit])
    return parts


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
    if edit.kind:
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
    for a, b, c, d in [*changed_spans(old, now), (len(old), len(old), len(now), len(now))]:
        moved[at:a] = places[c - (a - at) : c]
        for place in places[c:d]:
            if place >= 0:
                lines[place] = edit
        at = b
    return old, moved
