"""The curator is the way to change a note: preview, journal, write, undo.

Whose bytes they are cannot be told: an agent may have written to the note while the program had it. So the change
says what the note was before and what it was after, and names those changes of the journal that were made meanwhile.

Making a change waits for the disk, for the journal and at worst a second or two for another program, so it belongs on
a worker thread. Planning reads one or two notes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.config.places import journal_folder
from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import one_line
from memory_tui.notes import budget
from memory_tui.notes import journal as journals
from memory_tui.notes.changes import Change, Conflict, FileChange, NothingToChange, ReadOnly, ThreeWay, Unfinished
from memory_tui.notes.journal import Journal, JournalEntry
from memory_tui.notes.links import LinkIndex
from memory_tui.notes.planner import Planner
from memory_tui.notes.write import SameLinesChanged, current, deadline, planned, standing, tag, write
from memory_tui.openclaw import trust as trusted
from memory_tui.openclaw.dreaming import require_whole
from memory_tui.plan import Plan
from memory_tui.workspace.roots import destination


class ExternalEdit(Struct, frozen=True):
    """A note as another program gets it: its stored and absolute path, and its bytes `before`.

    `was` are mode and time (ns) of its file; `last` is the number of the journal's newest change, 0 for none.
    """

    path: str
    absolute: str
    before: bytes | None
    was: tuple[int, int]
    last: int


class AppliedChange(Struct, frozen=True):
    """A change that was made. `change` is as it came out; `merged` names notes where others' changes were kept too."""

    entry: JournalEntry
    change: Change
    merged: tuple[str, ...] = ()


Changed = Callable[[tuple[str, ...]], object]
"""Is called with the paths of the notes that a change was made to; `len` takes them and does nothing."""


class Curator:
    """Changes of notes, with their `journal`. Every method may be called from any thread.

    `plan` makes the changes that `apply` writes, unless the notes are `read_only`; `changed` is called after each
    change with its paths.
    """

    def __init__(self, plan: Planner, journal: Journal, *, read_only: bool = False, changed: Changed = len) -> None:
        self.plan, self.roots = plan, plan.roots
        self.journal, self.read_only, self._changed = journal, read_only, changed

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a note now, None when it is not there. Raises PathRefused, Unreadable."""
        return current(self.roots, path)

    # --- making ------------------------------------------------------------------------------------------------------

    def apply(self, change: Change, *, merging: bool = True, draft: int = 0) -> AppliedChange:
        """Make `change`. What others changed meanwhile is kept by a merge where it does not touch.

        `draft` is the one that an earlier attempt left: it goes when the change is made, and holds the newer text when
        it is not. Raises Conflict, its text kept as a draft, when it touches or with `merging` off; ReadOnly, Busy,
        NothingToChange, EditRefused, PathRefused, Unreadable. Then every note is as others left it.
        """
        if self.read_only:
            raise ReadOnly("memory-tui was started with --read-only.", "Start without --read-only to change notes.")
        with self.journal.locked():
            self._settle()
            until = deadline()
            for attempt in count():
                try:
                    files = planned(self.roots, change.files, merging=merging)
                except SameLinesChanged as news:
                    raise self._conflict(change, news.view, draft) from None
                # An undo is written down even where somebody took the change back by hand.
                if not files and attempt == 0 and not change.of:
                    self._forget(draft)
                    raise NothingToChange("The notes already have this change.", "Nothing was written.")
                for file in files if change.kind not in ("undo", "redo", "restore") else ():
                    require_whole(file.path, file.before, file.after)
                try:
                    entry, result = self._written(change, files, until)
                    break
                except SameLinesChanged as news:
                    # Somebody changed the same lines during the writing. Planning again tells whether they still clash.
                    if time.monotonic() > until:
                        raise self._conflict(change, news.view, draft) from None
            self._forget(draft)
        self._changed(change.paths)
        # A file that came out otherwise than it was wished has what others wrote, too.
        wishes = {file.path: (file.before, file.after) for file in change.files}
        merged = tuple(file.path for file in result if wishes[file.path] != (file.before, file.after))
        return AppliedChange(entry, replace(change, files=result), merged)

    def resolve(self, conflict: Conflict, data: bytes) -> AppliedChange:
        """Make the whole change of `conflict`, with `data` for the note that both changed. Raises like `apply`."""
        view = conflict.view
        # Where others removed the note, empty `data` leave it removed.
        after = None if view.other is None and not data else data
        files = tuple(
            replace(file, before=view.other, after=after) if file.path == view.path else file
            for file in conflict.change.files
        )
        return self.apply(replace(conflict.change, files=files), draft=conflict.draft)

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
        return self.apply(self.preview("undo", number), merging=merging)

    def redo(self, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Make change `number`, or the last one that was taken back, again. Raises like `undo`."""
        return self.apply(self.preview("redo", number), merging=merging)

    def preview(self, kind: str, number: int | None = None) -> Change:
        """Return what "undo" or "redo" would do. Raises EditRefused."""
        entries = self.journal.entries()
        stack = _stack(entries, kind)
        # `last` is what is taken back: the change itself, its undo, or the redo after that.
        for entry, last in stack:
            if number in (None, entry.id):
                files = tuple(file.reverse() for file in reversed(self.journal.change_of(last).files))
                change = Change(kind, f"{kind.capitalize()}: {entry.title}", files, of=entry.id)
                return self.plan.with_trust(change)
        step = "Run memory-tui history to list the changes."
        if stack:
            verb = "undone" if kind == "undo" else "redone"
            step = f"These can be {verb}: {', '.join(str(entry.id) for entry, _ in stack[:8])}."
        raise EditRefused(f"Nothing is left to {kind}." if number is None else _why_not(entries, number, kind), step)

    def begin_external_edit(self, path: str) -> ExternalEdit:
        """Return the note as it is before another program gets it. Raises PathRefused, Unreadable, EditRefused."""
        _root, absolute, stored = destination(self.roots, path)
        # Before the note is read, so that a change which is made in between counts as made meanwhile.
        last = max((edit.id for edit in self.journal.edits(most=1)), default=0)
        before = current(self.roots, stored)
        return ExternalEdit(stored, absolute, before=before, was=standing(self.roots, stored), last=last)

    def finish_external_edit(self, edit: ExternalEdit, program: str) -> AppliedChange | None:
        """Keep what became of a note while `program` had it as one change; None when it is as it was.

        Where the journal has changes of the note from meanwhile, this one begins where the last of them ended, so that
        each takes back its own. Raises Busy, PathRefused, Unreadable, EditRefused: then the note is as the program left
        it, without an entry.
        """
        reason = "what the note held when the editor opened and when it closed, whoever wrote it"
        with self.journal.locked():
            self._settle()
            before = edit.before
            after = current(self.roots, edit.path)
            later = self.journal.entries(edit.last)
            meanwhile = [entry for entry in later if entry.state == "done" and edit.path in entry.paths]
            if meanwhile:
                before = self.journal.text(next(file.after for file in meanwhile[-1].files if file.path == edit.path))
                numbers = ", ".join(str(entry.id) for entry in meanwhile)
                reason += f"; it begins where change {numbers} of this journal ended, which was made meanwhile"
            if after == before:
                return None
            verb = "Remove" if after is None else "Edit"
            verb = verb if before is not None else "Make"
            title = f"{verb} {edit.path} in the outside editor {one_line(program, 40)}"
            change = Change("edit", title, (FileChange(edit.path, before, after, *edit.was),))
            entry = self.journal.record(change, reason, edit.last)
        self._changed((edit.path,))
        return AppliedChange(entry, change)

    def recover(self) -> tuple[JournalEntry, ...]:
        """Settle what an earlier process left half done; each entry has its reason. Raises EditRefused."""
        if self.read_only or not self.journal.unsettled():
            return ()
        with self.journal.locked():
            settled = journals.recover(self.roots, self.journal)
        self._changed(tuple(path for entry in settled for path in entry.paths))
        return settled

    # --- looking -----------------------------------------------------------------------------------------------------

    def stack(self, kind: str) -> tuple[JournalEntry, ...]:
        """Return the changes that can be taken back ("undo") or made again ("redo"), the next one first."""
        return tuple(entry for entry, _ in _stack(self.journal.entries(), kind))

    def forget_draft(self, number: int) -> None:
        """Throw a draft away. Raises EditRefused when there is none of that number."""
        with self.journal.locked():
            if not self._forget(number):
                raise EditRefused(f"There is no draft {number}.", "memory-tui history lists the drafts.")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _written(
        self, change: Change, files: tuple[FileChange, ...], until: float
    ) -> tuple[JournalEntry, tuple[FileChange, ...]]:
        """Write `files`, which `change` was planned to; return the entry and the files as they came out.

        Raises SameLinesChanged; then nothing of it is left.
        """
        # What somebody took back by hand counts as taken back, with the texts that it takes to make it again.
        # Mode and time are those of before, so that an undo can give them back.
        recorded = tuple(
            FileChange(file.path, file.before, file.after, *standing(self.roots, file.path))
            for file in files or change.files
        )
        entry = self.journal.begin(replace(change, files=recorded))
        result = []
        # The hidden names of replaced files that a writer still has open.
        left: list[str] = []
        try:
            for number, file in enumerate(files):
                made, open_still = write(self.roots, file, tag(entry.id, number), until)
                result.append(replace(recorded[number], before=made.before, after=made.after))
                left += open_still
            done = replace(entry, state="done", left=journals.clear(self.roots, entry, left))
            # Without a result the journal keeps the texts that it has of the beginning.
            return self.journal.settle(done, result or None), tuple(result) or recorded
        except (SameLinesChanged, MemoryTuiError) as error:
            is_theirs = isinstance(error, SameLinesChanged)
            reason = "another program changed the same lines" if is_theirs else str(error)
            try:
                end = journals.settle(self.roots, self.journal, entry, reason)
            except (MemoryTuiError, OSError) as problem:
                what = f"{reason} It may be made in part, and that could not be settled: {problem}"
                raise Unfinished(what, "The next start or change settles it.") from None
            # Only where every note has the change after all is it made in spite of the error.
            if end.state != "done" or end.reason:
                raise
            return end, self.journal.change_of(end).files

    def _conflict(self, change: Change, view: ThreeWay, draft: int) -> Conflict:
        """Return the error of a change that touches what others did; its text is kept, in the place of `draft`."""
        what = "is there already" if view.base is None else "has changed"
        what = what if view.other is not None else "was removed"
        if change.of:
            # The journal has this text already.
            step = "Change the note by hand; the journal shows the old text."
            if view.merge.merged is not None:
                step = "Your change and theirs are in different lines. Use --merge to keep both."
            return Conflict(f"{view.path} {what} since. Nothing was written.", step, view, change=change)
        number = self.journal.draft(view, change.title, draft).id
        message = f"{view.path} {what} since it was read, and the changes touch. Nothing was written."
        step = f"Your text is kept as draft {number} of the journal; look at both and make the change again."
        return Conflict(message, step, view, number, change=change)

    def _forget(self, draft: int) -> bool:
        """Throw a draft away; False where there is none of that number, and for 0. Only while locked."""
        # Entries come in the order of their numbers, so the first after `draft - 1` is the draft, if there is one.
        for entry in self.journal.entries(since=draft - 1)[:1] if draft else ():
            if entry.id == draft and entry.state == "draft":
                self.journal.put(replace(entry, state="refused", reason="the draft was thrown away"))
                return True
        return False

    def _settle(self) -> None:
        """Settle what was cut off, and forget old changes. Only while locked."""
        journals.recover(self.roots, self.journal)
        self.journal.tidy()


def curator(plan: Plan, changed: Changed = len) -> Curator:
    """Return what changes the notes of `plan`; `changed` is called after each change with its paths."""
    journal = Journal(journal_folder(plan.roots.workspace))
    journal.most_days = plan.settings.whole("history.days")
    journal.most_bytes = plan.settings.whole("history.megabytes") * 1024 * 1024
    hosts = budget.hosts(plan.config, plan.roots.workspace)
    trust = trusted.of_plan(plan) if os.path.lexists(places.state_database()) else None
    links = LinkIndex(plan.roots)
    planner = Planner(plan.roots, plan.clock, links, hosts=hosts, trust=trust, zone=plan.config.time_zone)
    return Curator(planner, journal, read_only=plan.options.read_only, changed=changed)


# --- undo and redo ---------------------------------------------------------------------------------------------------


def _stack(entries: tuple[JournalEntry, ...], kind: str) -> list[tuple[JournalEntry, JournalEntry]]:
    """Return what can be undone or redone, the next one first, each with the newest change that made or undid it.

    Both are the same entry for a change that was never undone. After a new change nothing can be redone.
    """
    undo, redo = dict[int, tuple[JournalEntry, JournalEntry]](), dict[int, tuple[JournalEntry, JournalEntry]]()
    for entry in entries:
        if entry.state != "done" or entry.kind == "trust":
            # Changes of trust wrote OpenClaw's ledger, which is only read now.
            continue
        if entry.undoes in undo:
            original, _ = undo.pop(entry.undoes)
            redo[original.id] = original, entry
        elif entry.redoes in redo:
            original, _ = redo.pop(entry.redoes)
            undo[original.id] = original, entry
        elif not entry.undoes and not entry.redoes:
            undo[entry.id] = entry, entry
            redo.clear()
    return list(reversed(undo.values() if kind == "undo" else redo.values()))


def _why_not(entries: tuple[JournalEntry, ...], number: int, kind: str) -> str:
    """Return why change `number` is not among those that can be undone or redone, as a sentence."""
    entry = next((entry for entry in entries if entry.id == number), None)
    if entry is None:
        return f"There is no change {number}."
    if entry.undoes or entry.redoes:
        what = f"an undo of change {entry.undoes}" if entry.undoes else f"a redo of change {entry.redoes}"
        return f"Change {number} is {what}: name that one."
    if entry.state != "done" or entry.kind == "trust":
        return f"Change {number} wrote no note."
    return f"Change {number} is {'undone already' if kind == 'undo' else 'not undone, or others came after it'}."
