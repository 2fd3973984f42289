"""The history of notes: what became of them, by whom, whose each line is, and the way back; and who records it.

A restore brings back what notes held before: one note, all, or what others took out. It is shown like any other change.
The recorder looks at the notes on disk and writes into the journal what became of them, whoever did it.
"""

# ruff: noqa: PTH112, PTH116, PTH120
# Paths are strings, as in `workspace.roots`.

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.errors import EditRefused, MemoryTuiError, WorkspaceError
from memory_tui.formatting import minute, plural
from memory_tui.notes.authors import name_authors
from memory_tui.notes.changes import Busy, Change, FileChange, Lines, changed_spans, end_of
from memory_tui.notes.edit import Curator
from memory_tui.notes.journal import EDITOR, OTHERS, Edit, Journal, JournalEntry, RecordedNote, Sight
from memory_tui.notes.write import MOST_BYTES
from memory_tui.workspace.notes import is_daily, snapshot, without_markers
from memory_tui.workspace.roots import MEMORY, NoteMissing, Roots, destination, locate, missing, scan
from memory_tui.workspace.scan import NoteFile, settled_of

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
    return OWN if change.kind != OTHERS else (change.author and change.author.host) or SOMEBODY


def history(
    journal: Journal, path: str | None = None, *, until: int = 0, most: int = 500, joined: bool = True
) -> tuple[JournalEntry, ...]:
    """Return what became of all notes, or of one, newest first: of at most `most` edits before the number `until`.

    An `until` of 0 sets no bound. With `joined` edits of many notes at once by one author are one entry. Raises
    EditRefused.
    """
    edits = journal.edits(path, until=until, most=most)
    # Where there are older ones, those of this program before the oldest edit are left to the next call.
    since = edits[-1].id - 1 if len(edits) == most else 0
    changes = (entry for entry in journal.entries(since) if not until or entry.id < until)
    by_program = [entry for entry in changes if path in (None, *entry.paths)]
    return tuple(sorted([*by_program, *by_others(edits, joined=joined and path is None)], key=_newest))


def _newest(entry: JournalEntry) -> tuple[float, int]:
    """Return the key that sorts entries newest first: by time, for an older change may have been seen later."""
    return -entry.at, -entry.id


def by_others(edits: Iterable[Edit], *, joined: bool) -> list[JournalEntry]:
    """Return those of `edits` that others made as entries, newest first like `edits`.

    With `joined` what one author did to many notes at once is one entry, else each edit is.
    """
    bursts: list[list[Edit]] = []
    for edit in edits:
        # A burst holds edits of others only: one of this program begins none, and `who` names another author for it.
        last = bursts[-1][-1] if bursts else edit
        if bursts and joined and abs(last.at - edit.at) <= _BURST_SECONDS and who(last) == who(edit):
            bursts[-1].append(edit)
        elif edit.kind == OTHERS:
            bursts.append([edit])
    entries: list[JournalEntry] = []
    for burst in bursts:
        is_of_many = len({edit.path for edit in burst}) >= _FEWEST
        entries += [entry_of(burst)] if is_of_many else [entry_of([edit]) for edit in burst]
    return sorted(entries, key=_newest)


def entry_of(burst: Sequence[Edit]) -> JournalEntry:
    """Return what somebody else did as one entry of the journal; `burst` are the edits, newest first, at least one."""
    by_path: dict[str, RecordedNote] = {}
    for edit in burst:
        # From the text before its oldest edit to the one after its newest.
        after = by_path[edit.path].after if edit.path in by_path else edit.after
        by_path[edit.path] = RecordedNote(edit.path, edit.before, after)
    # A note that is again what it was is left out, unless all are.
    notes = [note for note in by_path.values() if note.before != note.after] or list(by_path.values())
    newest = burst[0]
    title = title_of(newest) if len(burst) == 1 else f"{who(newest)} {_deeds(notes)}"
    return JournalEntry(newest.id, newest.at, "done", OTHERS, title, tuple(notes), author=newest.author)


def _deeds(notes: Iterable[RecordedNote]) -> str:
    """Say what was done to how many notes ("changed 2 notes, moved 1 note"); what is gone here and new there moved."""
    gone = Counter(note.before for note in notes if note.after is None)
    counts = Counter[str]()
    for note in notes:
        if note.after is None:
            counts["removed"] += 1
        elif note.before is None and gone[note.after] > 0:
            # It was counted as removed, or will be.
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
    verb = "removed" if edit.after is None else "changed"
    return f"{who(edit)} {verb if edit.before is not None else 'made'} {edit.path} (+{edit.plus} -{edit.minus})"


def news(edits: Sequence[Edit]) -> str:
    """Return what others did as a part of a sentence: "3 changes by codex, 1 note removed"; empty for nothing."""
    notes = entry_of(edits).files if edits else ()
    new_texts = {note.after for note in notes if note.before is None}
    # What is gone here and new there was moved.
    deleted = sum(note.after is None and note.before not in new_texts for note in notes)
    authors = Counter(who(edit) for edit in edits if edit.after is not None)
    of = f" of {edits[0].path}" if len({edit.path for edit in edits}) == 1 else ""
    parts = [f"{plural(count, 'change')}{of} by {name}" for name, count in authors.most_common()]
    parts += [f"{plural(deleted, 'note')} removed"] if deleted else []
    return ", ".join(parts)


# --- lines -----------------------------------------------------------------------------------------------------------


def blame(journal: Journal, path: str, data: bytes, edits: Sequence[Edit] | None = None) -> list[Edit | None]:
    """Return the change that each line of a note that holds `data` came with; None where the record has none.

    A line that this program brought back came as it did at first. `edits` are the changes up to then, newest first.
    """
    texts = Lines.of(data, path).texts()
    edits = _edits_of(journal, path) if edits is None else edits
    lines: list[Edit | None] = [None] * len(texts)
    version = _Version(texts, list(range(len(texts))))
    # The text of `version`: the next older change has to be one that ended in it.
    blob = journal.blob_of(data)
    if blob is None and edits:
        # What it holds was not seen yet; lines that were there before came as they did.
        blob = edits[0].after
        version = _older(version, journal.text(blob), None, lines)
    for edit in edits:
        if blob is not None and edit.after == blob:
            blob = edit.before
            version = _older(version, journal.text(blob), edit, lines)
    # A line that a restore, undo or redo brought came at first with an older change.
    for index, edit in enumerate(edits):
        if edit.kind in _WAYS_BACK:
            brought = (number for number, origin in enumerate(lines) if origin == edit and texts[number].strip())
            _keep_first(journal, path, edits[index + 1 :], {texts[number]: number for number in brought}, lines)
    return lines


def _edits_of(journal: Journal, path: str, until: int = 0) -> Sequence[Edit]:
    """Return the newest changes of a note before the number `until`; a note that was renamed has those of before, too.

    The rename is a change like any other then: from the text below the old name to that below the new one.
    """
    edits = journal.edits(path, until=until, most=_MOST_STEPS)
    if edits and edits[-1].kind == "rename" and edits[-1].before is None:
        *later, move = edits
        # The same change let the note go at its old path (`after` is None). Where the record has forgotten that row,
        # the rename stands for itself, and there is no more to follow.
        old = next((edit for edit in journal.edits(since=move.id - 1, until=move.id + 1) if edit.after is None), move)
        return (*later, replace(move, before=old.before), *_edits_of(journal, old.path, until=move.id))
    return edits


def _keep_first(
    journal: Journal, path: str, edits: Sequence[Edit], places: dict[str, int], lines: list[Edit | None]
) -> None:
    """Put into `lines` the change that each line which was brought back came with at first.

    `edits` are the changes before it was brought back, newest first; `places` has text -> index in `lines` of each such
    line. What is settled is taken out of it.
    """
    for index, edit in enumerate(edits):
        data = journal.text(edit.before) if places else None
        texts = Lines.of(data).texts()
        # Of the newest older text that held a line, its origin is that of the line.
        again = places.keys() & set(texts)
        origins = blame(journal, path, data or b"", edits[index + 1 :]) if again else []
        for line in again:
            lines[places.pop(line)] = origins[texts.index(line)]


class _Version(NamedTuple):
    """An older text of a note by lines, and the place where each stands in the newest; -1 for one that is gone."""

    lines: list[str]
    places: list[int]


def _older(version: _Version, data: bytes | None, edit: Edit | None, origins: list[Edit | None]) -> _Version:
    """Return the version before `version`, which holds `data`, with the places of its lines in the newest text.

    Lines that only `version` has came with `edit`: that is put into `origins`, at their places in the newest text.
    """
    old, now = Lines.of(data).texts(), version.lines
    places = [-1] * len(old)
    same_from = 0
    # The empty span at the end is for the lines behind the last change.
    for start, end, now_start, now_end in [*changed_spans(old, now), (len(old), len(old), len(now), len(now))]:
        # What stands between two changes is the same in both versions.
        places[same_from:start] = version.places[now_start - (start - same_from) : now_start]
        for place in version.places[now_start:now_end]:
            if place >= 0:
                origins[place] = edit
        same_from = end
    return _Version(old, places)


# --- restore ---------------------------------------------------------------------------------------------------------


def versions(journal: Journal, path: str, now: bytes | None) -> list[Edit]:
    """List the changes before which the note `path` had another text than `now`, newest first, each text once.

    Raises EditRefused.
    """
    by_text: dict[int | None, Edit] = {}
    for edit in journal.edits(path):
        by_text.setdefault(edit.before, edit)
    now_blob = journal.blob_of(now)
    return [edit for blob, edit in by_text.items() if blob not in (None, now_blob)]


def together(before: bytes, now: bytes) -> bytes:
    """Return the lines of `now`, with those of `before` that it lacks where they stood. Raises EditRefused."""
    old, new = Lines.of(before), Lines.of(now)
    lines: list[str] = []
    # How many lines of `new` are in `lines` already.
    taken_to = 0
    for start, end, new_start, _ in changed_spans(old.texts(), new.texts()):
        lines += [*new.lines[taken_to:new_start], *old.lines[start:end]]
        taken_to = new_start
    lines += new.lines[taken_to:]
    # What was the last line of either may stand in the middle now.
    ended = [line if end_of(line) else line + new.end for line in lines[:-1]]
    return Lines(new.bom, (*ended, *lines[-1:])).data


def restore_before(curator: Curator, path: str | None = None, *, change: int = 0, at: float = 0.0) -> Change:
    """Return what brings one note, or all, back to what they were before a change, or at a time (epoch seconds).

    A note of which the record does not know that stays. Raises EditRefused where nothing would change, PathRefused.
    """
    when = f"before change {change}" if change else f"on {minute(at)}"
    step = "memory-tui history lists the changes."
    journal = curator.journal
    with journal.kept():
        start = journal.numbers().start or time.time()
        # Of one note the last change up to then says it all, and a record may have 100,000 others.
        older = journal.edits(path, until=change, before=at, most=-1 if path is None else 1)
        # Edits come newest first: `then` gets the newest text of each note up to then, `first` that before its oldest.
        then = {edit.path: edit.after for edit in reversed(older)}
        first = {} if path in then else {edit.path: edit.before for edit in journal.edits(path)}
        if path is not None and not (then or first):
            raise EditRefused(f"The record has no change of {path}.", step)
        is_recorded = change > 0 or at >= start
        then = first | then if is_recorded else then
        # Notes that have changes, of which none tells what they were so early.
        unknown = len(first.keys() - then.keys())
        files = [FileChange(name, curator.read(name), journal.text(blob)) for name, blob in then.items()]
        files = [file for file in files if file.before != file.after]
    # Of notes without a change nothing is known from before the record.
    if not files and (unknown or (path is None and not is_recorded)):
        what = f"The record of {path or 'the notes'} begins at {minute(start)}; --before {minute(at)} is older."
        raise EditRefused(what, step)
    if not files:
        raise EditRefused(f"{path or 'Every note'} is as it was {when}.", step)
    what = path if path is not None else plural(len(files), "note")
    were = "they were" if len(files) > 1 else "it was"
    rest = f"The record does not reach back so far for {plural(unknown, 'other note')}, which stay as they are."
    notes = (rest,) if unknown else ()
    return curator.plan.with_trust(Change("restore", f"Restore {what} as {were} {when}", tuple(files), notes))


def exact(curator: Curator, entry: JournalEntry, path: str = "") -> Change:
    """Return what gives all notes of a change, or one of them, their texts of before; of a draft what was typed.

    Raises EditRefused.
    """
    old = [file for file in curator.journal.change_of(entry).files if path in ("", file.path)]
    if entry.state == "draft":
        # Its first note is what was typed, its second what others had written by then.
        return curator.plan.with_trust(Change("edit", entry.title, (replace(old[0], before=curator.read(path)),)))
    now = [(file, curator.read(file.path)) for file in old]
    files = tuple(FileChange(file.path, data, file.before) for file, data in now if data != file.before)
    if not files:
        raise EditRefused(f"{path or 'Every note'} has the text of before.", "Nothing was changed.")
    # Named by its time: the title of a change that was taken back would stand in that of its restore, and so on.
    what = f"{path} as it was" if path else f"{plural(len(files), 'note')} as they were"
    return curator.plan.with_trust(Change("restore", f"Restore {what} before {minute(entry.at)}", files))


def taken_back(curator: Curator, entry: JournalEntry) -> Change:
    """Return what takes back what somebody else did; what came since stays where it does not touch."""
    files = tuple(file.reverse() for file in curator.journal.change_of(entry).files)
    return curator.plan.with_trust(Change("restore", f"Take back: {entry.title}", files))


def bring_back(curator: Curator, losses: Sequence[tuple[str, int]]) -> Change:
    """Return what puts lost lines back into notes; each loss is a note's path and the number of the change.

    Raises EditRefused, PathRefused, Unreadable.
    """
    files: dict[str, FileChange] = {}
    for path, number in losses:
        # Both bounds are excluded, which leaves the change `number`.
        edit = next(iter(curator.journal.edits(path, since=number - 1, until=number + 1)), None)
        before = curator.journal.text(edit.before) if edit is not None else None
        if before is None:
            raise EditRefused(f"The record has no text of {path} before change {number}.", "Run the checks again.")
        if path not in files:
            files[path] = FileChange(path, now := curator.read(path), now)
        after = files[path].after
        files[path] = replace(files[path], after=before if after is None else together(before, after))
    if not (changed := tuple(file for file in files.values() if file.before != file.after)):
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
    lines: Mapping[int, str]
    """By the number that each had."""
    is_gone: bool
    by: str


def lost_lines(before: str, after: str) -> dict[int, str]:
    """Return the lines of `before` that `after` lacks, by number; blank ones and annotations do not count."""
    remaining = Counter(_said(after).values())
    lost = {}
    for number, line in _said(before).items():
        if remaining[line]:
            remaining[line] -= 1
        else:
            lost[number] = line
    return lost


def _said(text: str) -> dict[int, str]:
    """Return the lines of a text that say something, without annotations and blanks at their ends, by number."""
    return {at: line.strip() for at, line in enumerate(without_markers(text).split("\n"), 1) if line.strip()}


def is_loss(journal: Journal, edit: Edit) -> bool:
    """Return whether another program removed a note, or took lines out of a daily one, or most of many out of another.

    Notes that git removed are no loss, because git has them. Raises EditRefused.
    """
    if edit.kind != OTHERS or not edit.minus or edit.author == EDITOR:
        return False
    if edit.after is None:
        return edit.author is None or edit.author.host != "git"
    if not is_daily(edit.path) and edit.minus < _MANY_LINES:
        return False
    before, after = text_of(journal, edit.before), text_of(journal, edit.after)
    lost = len(lost_lines(before, after))
    lines = len(_said(before))
    if is_daily(edit.path):
        # A line that was reworded is gone, too, so it takes fewer lines than before, or most of them gone.
        return lost > 0 and (len(_said(after)) < lines or 2 * lost > lines)
    return lines >= _MANY_LINES and lost > _OVERWRITTEN * lines


def text_of(journal: Journal, blob: int | None) -> str:
    """Return a text of the record as lines are counted in it. Raises EditRefused."""
    return (journal.text(blob) or b"").decode("utf-8", "surrogateescape")


def lost_notes(
    journal: Journal, read: Callable[[str], bytes | None], texts: Sequence[tuple[str, str]]
) -> list[LostNote]:
    """List each loss of which lines are still lacking, oldest first.

    `read` gives a note as it is, `texts` has path and text of all. Lines that stand in another note now were moved, and
    are not lost. Raises EditRefused.
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
            lines = lost_lines(before, (now or b"").decode("utf-8", "replace"))
            newer = [line for note in losses if note.path == edit.path for line in note.lines.values()]
            elsewhere = [text for path, text in texts if path != edit.path]
            # It is a loss unless one other note, or the newer losses of this note, hold all of its lines.
            if all(lost_lines("\n".join(lines.values()), text) for text in ("\n".join(newer), *elsewhere)):
                losses.append(LostNote(edit.path, edit.id, edit.at, lines, is_gone=now is None, by=who(edit)))
    return losses[::-1]


# --- the recorder ----------------------------------------------------------------------------------------------------

# The watcher names what changed at each of its ticks; a look at all notes finds what changed while nobody watched. A
# note that is gone counts as deleted at the second look: whoever writes a file anew takes it away for a moment. Of a
# note whose root or device is away nothing is known.

_BATCH, _BATCH_BYTES = 100, 16 * 1024 * 1024
"""So many notes, or bytes of them, are written down in one transaction."""
_PATIENCE_SECONDS = 1.0
"""How long a change of this program is waited for; then the notes are looked at again at the next tick."""
_AGAIN_SECONDS = 0.2
_SLACK_NS = 2_000_000_000
"""Clocks of files are coarser than the clock."""


class Recorder:
    """Records what becomes of the notes below `roots`; `tell` hears what a person should know. Nothing is raised.

    Every method may be called from any thread; one look waits for another. It ends between some notes when `stop` says
    so; the next look goes on.
    """

    def __init__(self, roots: Roots, journal: Journal, stop: Stop, tell: Callable[[str], None]) -> None:
        self._roots, self._journal, self._stop, self._tell = roots, journal, stop, tell
        self._lock = threading.Lock()
        self._waiting: set[str] = set()
        """Notes to be looked at again, by stored path."""
        self._gone: set[str] = set()
        """Notes that were missing when last looked at; at the second look in a row they count as deleted."""
        self._mark: tuple[object, ...] | None = None
        """What the last complete look was of; None where it left something to see."""
        self._trouble = ""
        self._untold = deque[Edit]()
        """Recorded edits that took lines away, of which nobody was told yet."""
        self._telling, self._teller = threading.Lock(), threading.Thread()
        """One thread at a time tells of losses; the one that was started last for it, at first one that never ran."""

    def see(self, changed: Collection[str] | None = None, fingerprint: int | None = None) -> None:
        """Record the notes at the absolute paths `changed`, and those that wait since the last look.

        With None all notes are looked at, and those that are gone once more a moment later. No note has changed since
        a look at all with the same `fingerprint`, which may be None.
        """
        if changed is None:
            with self._lock, self._journal.kept():
                self._look(fingerprint)
                if self._gone and not self._stop.is_set():
                    time.sleep(_AGAIN_SECONDS)
                    # No scan lists them: each is looked up by its path.
                    self._record(self._waiting, {})
            if self._untold:
                self.tell_losses()
            return
        if self._untold and not self._teller.is_alive():
            # Who did it may take seconds to find out; the next version is recorded meanwhile.
            self._teller = threading.Thread(target=self.tell_losses, name="losses", daemon=True)
            self._teller.start()
        if not changed and not self._waiting:
            return
        with self._lock, self._journal.kept():
            # Where a folder changed, it is not known which notes did.
            if any(self._holds_notes(path) for path in changed if not path.endswith(".md")):
                self._look(None)
            else:
                notes = {self._roots.stored(path) for path in changed if path.endswith(".md")}
                self._record(notes | self._waiting, {})

    def tell_losses(self) -> None:
        """Say which recorded notes lost lines, or are gone, and by whom.

        Not those whose text stands at another path, nor what git did.
        """
        with self._telling, self._journal.kept():
            edits = [self._untold.popleft() for _ in range(len(self._untold))]
            try:
                if not (losses := {edit.id for edit in edits if is_loss(self._journal, edit)}):
                    return
                name_authors(self._journal, self._roots, time.time())
                texts = {head.blob for head in self._journal.heads().values()}
                # Oldest first, now with their authors.
                named = [edit for edit in self._journal.edits(since=min(losses) - 1) if edit.id in losses][::-1]
                unmoved = [edit for edit in named if edit.after is not None or edit.before not in texts]
                # Asked again, because what git or an editor did is known by the author alone.
                if losing := [edit for edit in unmoved if is_loss(self._journal, edit)]:
                    first = losing[0]
                    what = f"{first.path} {'lost lines to' if first.after else 'was removed by'}"
                    if others := len({edit.path for edit in losing}) - 1:
                        what = f"{first.path} and {plural(others, 'other note')} lost lines to"
                    self._tell(f"{what} {who(first)}. The inbox can undo it.")
            except EditRefused as error:
                self._fail(error)

    # --- only while locked -------------------------------------------------------------------------------------------

    def _look(self, fingerprint: int | None) -> None:
        """Record what changed since the last look; nothing where the scan has the `fingerprint` of that one."""
        start = time.time_ns()
        try:
            # A record that was emptied begins at another time.
            known = self._journal.numbers()
            mark = fingerprint, known.start
            if mark == self._mark and None not in mark and not self._waiting:
                # No note changed: only the time of this look is written down.
                self._record((), {}, began=start)
                return
            heads = self._journal.heads()
            # Fields 1 to 3 of a head are size, mtime_ns and ctime_ns.
            seen = scan(self._roots, settled_of((path, *head[1:4]) for path, head in heads.items()))
            listed = {note.path: note for note in seen.notes if note.source == MEMORY}
            left_out = {left.path for left in seen.left_out}
            gone = {*missing(self._roots, seen, heads.keys() - left_out)} | (heads.keys() & left_out)
        except WorkspaceError:
            # Of notes that cannot be reached nothing is known.
            return
        except EditRefused as error:
            self._fail(error)
            return
        # What is too large to be indexed is recorded all the same.
        paths = gone | {left.path for left in seen.left_out if left.rule == "too big"}
        for path, note in listed.items():
            if (heads.get(path) or ())[1:4] != (note.size, note.mtime_ns, note.ctime_ns):
                paths.add(path)
        # A note that was never seen, and did not change since all were, was read by nobody before.
        fresh = start if known.began is None else min(known.began, start) - _SLACK_NS
        self._mark = mark
        self._record(paths | self._waiting, listed, fresh, began=start)

    def _record(
        self, paths: Iterable[str], listed: Mapping[str, NoteFile], fresh: int | None = None, began: int | None = None
    ) -> None:
        """Record the notes `paths`, all of them when `began` says since when they are looked at.

        `listed` are those that a scan has just seen. One that was never seen before is new unless it is older than
        `fresh` (ns).
        """
        left, batch = deque(sorted(paths)), list[Sight]()
        self._waiting = set()
        # Even without a note to record, a look at all of them writes down when it began.
        is_over = not left and began is None
        try:
            # What the watcher saw is written down to the end.
            while not is_over and (began is None or not self._stop.is_set()):
                with self._journal.locked(_PATIENCE_SECONDS):
                    size = 0
                    while left and len(batch) < _BATCH and size < _BATCH_BYTES:
                        path = left.popleft()
                        if sight := self._sight(path, listed.get(path), fresh):
                            batch.append(sight)
                            size += len(sight.data or b"")
                    is_over = not left
                    edits = self._journal.observe(batch, began if is_over else None)
                    if is_over and began is not None:
                        self._journal.tidy()
                # It is written down, so that nothing of it waits if the next batch fails.
                batch = []
                self._untold.extend(edit for edit in edits if edit.minus)
            if self._trouble:
                self._trouble = ""
                self._tell("What becomes of the notes is recorded again.")
        except EditRefused as error:
            self._fail(error)
        self._waiting |= {*left, *(sight.path for sight in batch)}

    def _fail(self, error: EditRefused) -> None:
        """Tell once why nothing is recorded; a journal that is only busy is waited for."""
        if not isinstance(error, Busy) and error.message != self._trouble:
            self._trouble = error.message
            self._tell(f"What becomes of the notes is not recorded now. {error.message} {error.next_step}")

    # --- one note ----------------------------------------------------------------------------------------------------

    def _holds_notes(self, path: str) -> bool:
        """Return whether `path` is a folder, or was one with notes in it when they were last seen."""
        if os.path.isdir(path):
            return True
        try:
            return bool(self._journal.heads(self._roots.stored(path)))
        except EditRefused as error:
            self._fail(error)
            return False

    def _sight(self, path: str, note: NoteFile | None, fresh: int | None) -> Sight | None:
        """Return what is at a stored path; None where that cannot be known, or is to be seen again first.

        `note` is the file there, None where no scan has just listed it.
        """
        try:
            try:
                note = note or locate(self._roots, path)
            except NoteMissing:
                return self._missing(path)
            data, status = snapshot(note, MOST_BYTES)
            self._gone.discard(path)
        except (MemoryTuiError, OSError):
            # The list of files says what cannot be read.
            self._mark = None
            return None
        # A time that is still to come is that of a clock which was set back since.
        at = min(time.time(), status.st_ctime_ns / 1e9)
        now = len(data), status.st_mtime_ns, status.st_ctime_ns, status.st_dev
        return Sight(path, data, at, *now, fresh=fresh is None or status.st_ctime_ns >= fresh)

    def _missing(self, path: str) -> Sight | None:
        """Return that a note is gone, when it is missing twice in a row on the disk that it was on; else None."""
        root, absolute, _ = destination(self._roots, path)
        # The nearest folder above that is still there tells on which device the note would be.
        folder = os.path.dirname(absolute)
        while not os.path.isdir(folder) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
        status = os.stat(folder)
        head = self._journal.heads(path).get(path)
        # A device of 0 is one that is not known.
        if head is None or not os.path.isdir(root) or head.device not in (0, status.st_dev):
            self._gone.discard(path)
            return None
        if path not in self._gone:
            self._gone.add(path)
            self._waiting.add(path)
            return None
        self._gone.discard(path)
        return Sight(path, None, min(time.time(), status.st_ctime_ns / 1e9))
