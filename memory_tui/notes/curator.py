"""The curator is the way to change a note: preview, journal, write, undo.

Whose bytes they are cannot be told: an agent may have written to the note while the program had it. So the change
says what the note was before and what it was after, and names those changes of the journal that were made meanwhile.

Making a change waits for the disk, for the journal and at worst a second or two for another program, so it belongs on
a worker thread. Planning reads one or two notes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import time
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.notes import budget, recover
from memory_tui.notes.budget import HostLimit
from memory_tui.notes.changes import Change, Conflict, FileChange, NothingToChange, ReadOnly, ThreeWay, Unfinished
from memory_tui.notes.git import History
from memory_tui.notes.journal import LOST, Journal, JournalEntry, journal_folder
from memory_tui.notes.links import LinkIndex
from memory_tui.notes.planner import Planner
from memory_tui.notes.write import (
    SameLinesChanged,
    WrittenNote,
    current,
    deadline,
    moved_on,
    parent,
    planned,
    refuse_unwritable,
    standing,
    tag,
    write,
)
from memory_tui.openclaw import trust as trusted
from memory_tui.openclaw.dreaming import require_whole
from memory_tui.openclaw.trust import Trust
from memory_tui.plan import Plan
from memory_tui.sanitize import one_line
from memory_tui.workspace.roots import Roots, destination

_PRUNE_SECONDS = 86_400.0
_READ_ONLY = "memory-tui was started with --read-only."
_REPAIRED = "the class in OpenClaw's ledger became agent after the whole text was shown; the note stayed as it is"


class ExternalEdit(Struct, frozen=True):
    """A note as another program gets it: stored and absolute path, bytes (None: not there), mode and time (ns).

    `last` is the number of the journal's newest change, 0 for none.
    """

    path: str
    absolute: str
    before: bytes | None
    was: tuple[int, int]
    last: int


class AppliedChange(Struct, frozen=True):
    """A change that was made. `change` is as it came out; `merged` names notes where others' changes were kept too.

    `untold` is why OpenClaw's ledger could not follow it, empty where nothing was wrong.
    """

    entry: JournalEntry
    change: Change
    merged: tuple[str, ...] = ()
    untold: str = ""


class Curator:
    """Changes of the notes below `roots`, with their journal. Every method may be called from any thread.

    `plan` makes the changes that `apply` writes, by the time of `clock` and for `hosts`. `read_only` is why nothing may
    be written, empty when it may; `changed` is called after each change with its paths.
    """

    def __init__(
        self,
        roots: Roots,
        *,
        read_only: str = "",
        journal: Journal | None = None,
        changed: Callable[[tuple[str, ...]], None] | None = None,
        clock: Callable[[], float] = time.time,
        hosts: tuple[HostLimit, ...] = (),
        trust: Trust | None = None,
        zone: dt.tzinfo | None = None,
    ) -> None:
        self.roots = roots
        self.trust = trust
        """OpenClaw's ledger of these notes, None where it keeps none."""
        self.read_only = read_only
        self.links = LinkIndex(roots)
        self.plan = Planner(roots, clock, hosts, self.links, trust, zone)
        self.git = History(roots.workspace)
        self.journal = journal or Journal(journal_folder(roots.workspace))
        self._changed = changed
        self._pruned = 0.0

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a note now, None when it is not there. Raises PathRefused, Unreadable."""
        return current(self.roots, path)

    # --- making ------------------------------------------------------------------------------------------------------

    def apply(self, change: Change, *, merging: bool = True, draft: int = 0) -> AppliedChange:
        """Make `change`. What others changed meanwhile is kept by a merge where it does not touch.

        `draft` is the one that an earlier attempt left: it goes when the change is made, and holds the newer text when
        it is not. Raises Conflict, with the text kept as a draft, when it touches or with `merging` off; ReadOnly,
        Busy, NothingToChange, EditRefused, PathRefused, Unreadable. Then every note is as others left it.
        """
        return self._make(change, merging=merging, draft=draft)

    def resolve(self, conflict: Conflict, data: bytes) -> AppliedChange:
        """Make the whole change of `conflict`, with `data` for the note that both changed. Raises like `apply`."""
        view = conflict.views[0]
        # Where others removed the note, nothing is what they left of it.
        chosen = data if data or view.theirs is not None else None
        files = tuple(
            replace(file, before=view.theirs, after=chosen) if file.path == view.path else file
            for file in conflict.change.files
        )
        change = replace(conflict.change, files=files)
        return self._make(change, merging=True, undoes=conflict.undoes, redoes=conflict.redoes, draft=conflict.draft)

    def remember(self, text: str) -> AppliedChange:
        """Append `text` with the time to today's log, whatever others write to it. Raises like `apply`."""
        try:
            return self.apply(self.plan.remember(text))
        except Conflict as error:
            # Somebody has begun today's log in another way, or has gone on in its last line.
            return self.apply(self.plan.remember(text), draft=error.draft)

    def undo(self, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Take back change `number`, or the last one that is not taken back yet.

        Raises Conflict when a note has changed since; with `merging` only when the same lines have.
        """
        return self.step("undo", number, merging=merging)

    def redo(self, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Make change `number`, or the last one that was taken back, again. Raises like `undo`."""
        return self.step("redo", number, merging=merging)

    def step(self, kind: str, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Do what `undo` or `redo` does, as `kind` says."""
        target, change = self._step(kind, number)
        undoes, redoes = (target.id, 0) if kind == "undo" else (0, target.id)
        if not target.ledger:
            return self._make(change, merging=merging, undoes=undoes, redoes=redoes)
        was, becomes = target.ledger if kind == "redo" else target.ledger[::-1]
        ledger = self._ledger()
        with self.journal.locked():
            entry = self.journal.begin(change, [(0, 0)], undoes=undoes, redoes=redoes)
            return AppliedChange(self._exchanged(ledger, entry, was, becomes), change)

    def planned_step(self, kind: str, number: int | None = None) -> Change:
        """Return what "undo" or "redo" would do, for a preview. Raises EditRefused."""
        return self._step(kind, number)[1]

    def repair(self, path: str, seen: bytes) -> JournalEntry:
        """Write the class agent into OpenClaw's ledger for `path`, whose whole text a person has `seen`.

        Raises EditRefused when the file has another text now, has no row, or the ledger cannot be written.
        """
        ledger = self._ledger()
        change = Change("trust", f"Trust {path} again", (FileChange(path, seen, seen),))
        with self.journal.locked():
            was, becomes = ledger.repaired_row(path, seen)
            entry = self.journal.begin(change, [(0, 0)])
            entry = self.journal.put(replace(entry, ledger=(was, becomes), reason=_REPAIRED))
            return self._exchanged(ledger, entry, was, becomes, seen)

    def begin_external_edit(self, path: str) -> ExternalEdit:
        """Return the note as it is before another program gets it. Raises PathRefused, Unreadable, EditRefused."""
        _root, absolute, stored = destination(self.roots, path)
        # Before the note is read, so that a change which is made in between counts as made meanwhile.
        entries = self.journal.entries()
        last = entries[-1].id if entries else 0
        return ExternalEdit(stored, absolute, current(self.roots, stored), standing(self.roots, stored), last)

    def finish_external_edit(self, edit: ExternalEdit, program: str) -> AppliedChange | None:
        """Keep what became of a note while `program` had it as one change; None when it is as it was.

        Where the journal has changes of the note from meanwhile, this one begins where the last of them ended, so that
        each takes back its own. Raises Busy, PathRefused, Unreadable, EditRefused: then the note is as the program left
        it, without an entry.
        """
        with self.journal.locked():
            self._settle()
            after, before, others = current(self.roots, edit.path), edit.before, []
            for entry in self.journal.entries():
                for file in entry.files:
                    if entry.id > edit.last and entry.state == "done" and file.path == edit.path:
                        before = self.journal.text(file.after)
                        others.append(str(entry.id))
            if after == before:
                return None
            change = Change("edit", _title(edit.path, before, after, program), (FileChange(edit.path, before, after),))
            entry = self.journal.record(change, [edit.was], _reason(others))
            entry, untold = self._followed(entry, change.files, self._movable(change.files))
        self._tell((edit.path,))
        return AppliedChange(entry, change, (), untold)

    def recover(self) -> tuple[JournalEntry, ...]:
        """Settle what an earlier process left half done; each entry has its reason. Raises EditRefused."""
        if self.read_only or not self.journal.has_unsettled():
            return ()
        with self.journal.locked():
            settled = recover.recover(self.roots, self.journal)
        self._tell(tuple(path for entry in settled for path in entry.paths))
        return settled

    # --- looking -----------------------------------------------------------------------------------------------------

    def history(self, path: str | None = None) -> tuple[JournalEntry, ...]:
        """Return the changes that were made, newest first; with `path` only those of one note."""
        return tuple(
            entry
            for entry in reversed(self.journal.entries())
            if entry.state == "done" and (path is None or path in entry.paths)
        )

    def undoable(self) -> tuple[JournalEntry, ...]:
        """Return the changes that can be taken back, the next one first."""
        return _stacks(self.journal.entries())["undo"]

    def redoable(self) -> tuple[JournalEntry, ...]:
        """Return the changes that can be made again, the next one first."""
        return _stacks(self.journal.entries())["redo"]

    def drafts(self) -> tuple[JournalEntry, ...]:
        """Return texts that could not be written, newest first; a draft's first file is mine, its second theirs."""
        return tuple(entry for entry in reversed(self.journal.entries()) if entry.state == "draft")

    def forget_draft(self, number: int) -> None:
        """Throw a draft away. Raises EditRefused when there is none of that number."""
        with self.journal.locked():
            if not self._forget(number):
                raise EditRefused(f"There is no draft {number}.", "The journal lists the drafts.")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _step(self, kind: str, number: int | None) -> tuple[JournalEntry, Change]:
        """Return the change to "undo" or "redo", and what doing so would change."""
        entries = self.journal.entries()
        target = _chosen(_stacks(entries)[kind], number, entries, kind)
        last = [
            entry
            for entry in entries
            if entry.state == "done"
            and (entry.undoes == target.id if kind == "redo" else target.id in (entry.id, entry.redoes))
        ][-1]
        record = self.journal.change_of(last)
        files = tuple(replace(file, before=file.after, after=file.before) for file in reversed(record.files))
        change = Change(kind, f"{kind.capitalize()}: {target.title}", files, last.ledger_notes(kind))
        return target, change if last.ledger else self.plan.with_trust(change)

    def _make(
        self, change: Change, *, merging: bool, undoes: int = 0, redoes: int = 0, draft: int = 0
    ) -> AppliedChange:
        if self.read_only:
            raise ReadOnly(self.read_only, "Start without --read-only to change notes.")
        with self.journal.locked():
            self._settle()
            until, first = deadline(), True
            while True:
                try:
                    files = self._planned(change, merging=merging)
                except SameLinesChanged as news:
                    raise self._conflict(change, news.view, draft, undoes, redoes) from None
                if not files and first and not undoes and not redoes:
                    raise NothingToChange("The notes already have this change.", "Nothing was written.")
                first = False
                movable = self._movable(files)
                try:
                    entry, result = self._attempt(change, files, until, undoes, redoes)
                    break
                except SameLinesChanged as news:
                    # It came to touch while it was written; whether it does still shows when it is planned again.
                    if time.monotonic() > until:
                        raise self._conflict(change, news.view, draft, undoes, redoes) from None
            entry, untold = self._followed(entry, result, movable)
            self._forget(draft)
        self._tell(change.paths)
        planned_files = {file.path: (file.before, file.after) for file in change.files}
        merged = tuple(file.path for file in result if planned_files[file.path] != (file.before, file.after))
        return AppliedChange(entry, replace(change, files=result), merged, untold)

    def _planned(self, change: Change, *, merging: bool) -> tuple[FileChange, ...]:
        """Return the notes that differ, as they are now with the change in them. Raises SameLinesChanged, ReadOnly."""
        begins = change.kind in ("capture", "edit")
        files = moved_on(self.roots, change.files) if merging else change.files
        files = tuple(planned(self.roots, file, merging=merging, begins=begins) for file in files)
        files = tuple(file for file in files if file.before != file.after)
        for file in files:
            if change.kind not in ("undo", "redo", "restore"):
                require_whole(file.path, file.before, file.after)
            refuse_unwritable(self.roots, file.path)
        return files

    def _attempt(
        self, change: Change, files: tuple[FileChange, ...], until: float, undoes: int, redoes: int
    ) -> tuple[JournalEntry, tuple[FileChange, ...]]:
        """Write `files`, which `change` was planned to. Raises SameLinesChanged; then nothing of it is left."""
        # What somebody took back by hand counts as taken back, with the texts that it takes to make it again.
        noted = files or change.files
        was = [standing(self.roots, file.path) for file in noted]
        entry = self.journal.begin(replace(change, files=noted), was, undoes=undoes, redoes=redoes)
        written: list[WrittenNote] = []
        try:
            for number, file in enumerate(files):
                written.append(write(self.roots, file, tag(entry.id, number), until))
        except SameLinesChanged:
            self._take_back(entry, written, "another program changed the same lines")
            raise
        except MemoryTuiError as error:
            self._stopped(entry, files[len(written)], written, error)
            raise
        result = tuple(
            replace(file, before=note.before, after=note.after) for file, note in zip(files, written, strict=True)
        )
        try:
            return self.journal.settle(
                entry, "done", result or noted, left=self._clear(entry, written)
            ), result or noted
        except EditRefused as error:
            self._tell(change.paths)
            raise Unfinished(
                f"The change is made, but the journal could not record its end: {error.message}",
                "The next start or change records it; then undo works.",
            ) from None

    def _stopped(
        self, entry: JournalEntry, file: FileChange, written: list[WrittenNote], error: MemoryTuiError
    ) -> None:
        """Bring all notes back after `file` could not be written; else raise Unfinished, and the intent stays."""
        try:
            is_made = recover.is_made(file, current(self.roots, file.path))
        except MemoryTuiError:
            is_made = True
        if is_made and file.before != file.after:
            raise Unfinished(
                f"{error.message} It may hold the change already.",
                "The next start or change checks it.",
            ) from None
        self._take_back(entry, written, error.message)

    def _take_back(self, entry: JournalEntry, written: list[WrittenNote], reason: str) -> None:
        """Bring back the notes that were written before another one could not be."""
        half = ""
        for number, file in reversed(list(enumerate(written))):
            try:
                write(self.roots, FileChange(file.path, file.after, file.before), tag(entry.id, number) + "b")
            except SameLinesChanged as news:
                half = f"; {file.path} keeps its part, because it has changed again"
                self.journal.draft(news.view, entry.title)
            except MemoryTuiError as error:
                raise Unfinished(
                    f"{reason} {file.path} was changed before, and could not be changed back: {error.message}",
                    "The next start or change finishes or undoes the whole change.",
                ) from None
        self.journal.settle(entry, "refused", left=self._clear(entry, written), reason=reason + half)

    def _clear(self, entry: JournalEntry, written: list[WrittenNote]) -> tuple[str, ...]:
        """Remove hidden files; returns those that a writer still has open."""
        left: list[str] = []
        for number, file in enumerate(entry.files):
            with parent(self.roots, file.path) as (folder, _):
                if folder is None:
                    continue
                hidden = tag(entry.id, number)
                if number >= len(written) or written[number].final:
                    with contextlib.suppress(OSError):
                        # What cannot be removed is looked at again by the next start.
                        folder.clear(hidden)
                        # Else they may come back when the power goes, and nobody would look for them.
                        folder.sync()
                left += folder.names(hidden)
        return tuple(left)

    def _conflict(self, change: Change, view: ThreeWay, draft: int, undoes: int, redoes: int) -> Conflict:
        what = "was removed" if view.theirs is None else "is there already" if view.base is None else "has changed"
        if change.kind in ("undo", "redo"):
            # The journal has this text already.
            step = (
                "Your change and theirs are in different lines. Use --merge to keep both."
                if view.merged is not None
                else "Change the note by hand; the journal shows the old text."
            )
            message = f"{view.path} {what} since. Nothing was written."
            return Conflict(message, step, (view,), change=change, undoes=undoes, redoes=redoes)
        number = self.journal.draft(view, change.title, draft).id
        return Conflict(
            f"{view.path} {what} since it was read, and the changes touch. Nothing was written.",
            f"Your text is kept as draft {number} of the journal; look at both and make the change again.",
            (view,),
            number,
            change=change,
        )

    def _forget(self, draft: int) -> bool:
        """Do without a draft, where there is one of that number. Only while locked."""
        entry = next((entry for entry in self.drafts() if entry.id == draft), None) if draft else None
        if entry is not None:
            self.journal.forget(entry)
        return entry is not None

    def _settle(self) -> None:
        """Settle what was cut off, and forget old changes, at most once a day. Only while locked."""
        recover.recover(self.roots, self.journal)
        if time.monotonic() - self._pruned > _PRUNE_SECONDS or not self._pruned:
            self._pruned = time.monotonic()
            self.journal.prune()

    def _tell(self, paths: tuple[str, ...]) -> None:
        if self._changed is not None and paths:
            self._changed(paths)

    # --- OpenClaw's ledger -------------------------------------------------------------------------------------------

    def _ledger(self) -> Trust:
        if self.read_only:
            raise ReadOnly(self.read_only, "Start without --read-only to change the ledger.")
        if self.trust is None:
            raise EditRefused("OpenClaw keeps no ledger of these notes.", "Nothing was changed.")
        return self.trust

    def _exchanged(
        self, ledger: Trust, entry: JournalEntry, was: str, becomes: str, seen: bytes | None = None
    ) -> JournalEntry:
        try:
            ledger.exchange(entry.files[0].path, was, becomes, seen)
        except EditRefused as error:
            self.journal.settle(entry, "refused", reason=error.message)
            raise
        return self.journal.settle(entry, "done", reason=entry.reason)

    def _movable(self, files: tuple[FileChange, ...]) -> frozenset[str]:
        """Return the notes whose hash in OpenClaw's ledger moves along with this change."""
        if self.trust is None:
            return frozenset()
        return self.trust.movable([(file.path, file.before, file.after) for file in files], self.plan.clock())

    def _followed(
        self, entry: JournalEntry, changed: tuple[FileChange, ...], movable: frozenset[str]
    ) -> tuple[JournalEntry, str]:
        """Move the hashes of `movable` notes along; the entry with their paths, or why the ledger is as it was."""
        files = [(file.path, file.before, file.after) for file in changed if file.path in movable]
        if self.trust is None or not files:
            return entry, ""
        try:
            self.trust.follow(files)
            return self.journal.put(replace(entry, trust=tuple(path for path, _, _ in files))), ""
        except EditRefused as error:
            return entry, f"{error.message} {error.next_step}"


def _title(path: str, before: bytes | None, after: bytes | None, program: str) -> str:
    name = one_line(program, 40)
    if before is None:
        return f"New note {path}, made in the outside editor {name}"
    if after is None:
        return f"{path} was removed while the outside editor {name} had it open"
    return f"Edit {path} in the outside editor {name}"


def _reason(others: list[str]) -> str:
    """Return what a person should know of an edit in another program, for the journal."""
    what = "what the note held when the editor opened and when it closed, whoever wrote it"
    if not others:
        return what
    numbers = ", ".join(dict.fromkeys(others))
    return f"{what}; it begins where change {numbers} of this journal ended, which was made meanwhile"


def _chosen(
    stack: tuple[JournalEntry, ...], number: int | None, entries: Sequence[JournalEntry], kind: str
) -> JournalEntry:
    """Return change `number` of the `stack` of what can be undone or redone, its first without one.

    Raises EditRefused.
    """
    entry = next((entry for entry in stack if number in (None, entry.id)), None)
    if entry is not None:
        return entry
    verb = "undone" if kind == "undo" else "redone"
    there = f"These can be {verb}: {', '.join(str(entry.id) for entry in stack[:8])}." if stack else ""
    if not any(entry.state == "done" for entry in entries):
        raise EditRefused(
            f"Nothing is left to {kind}." if number is None else f"There is no change {number}.",
            "No note was changed yet.",
        )
    if number is None:
        raise EditRefused(f"Nothing is left to {kind}.", "Run memory-tui journal to list the changes.")
    if number not in {entry.id for entry in entries}:
        raise EditRefused(
            f"There is no change {number}; the journal has {entries[0].id} to {entries[-1].id}.",
            there or "Run memory-tui journal to list them.",
        )
    raise EditRefused(f"Change {number} cannot be {verb} now.", there or "Run memory-tui journal to see its state.")


def _stacks(entries: tuple[JournalEntry, ...]) -> dict[str, tuple[JournalEntry, ...]]:
    """Return what can be undone and what can be redone, the next one first; a new change ends what can be redone."""
    by_id = {entry.id: entry for entry in entries}
    undo: list[JournalEntry] = []
    redo: list[JournalEntry] = []
    for entry in entries:
        if entry.state != "done" or entry.kind == LOST:
            continue
        target = by_id.get(entry.undoes or entry.redoes)
        if entry.undoes and target in undo:
            undo.remove(target)
            redo.append(target)
        elif entry.redoes and target in redo:
            redo.remove(target)
            undo.append(target)
        elif not entry.undoes and not entry.redoes:
            undo.append(entry)
            redo.clear()
    return {"undo": tuple(undo[::-1]), "redo": tuple(redo[::-1])}


def curator(plan: Plan, changed: Callable[[tuple[str, ...]], None] | None = None) -> Curator:
    """Return what changes the notes of `plan`; `changed` is called after each change with its paths."""
    now = plan.now
    return Curator(
        plan.roots,
        read_only=_READ_ONLY if plan.read_only else "",
        changed=changed,
        clock=time.time if now is None else lambda: now,
        hosts=budget.hosts(plan.config, plan.roots.workspace),
        # OpenClaw's ledger of the notes; none where OpenClaw keeps no state.
        trust=trusted.of_plan(plan) if os.path.lexists(places.state_database()) else None,
        zone=plan.config.time_zone,
    )
