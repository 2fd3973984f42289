"""The history lists changes of notes, newest first, with their differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.content import Content
from textual.widget import Widget

from memory_tui.notes.git import Commit
from memory_tui.sanitize import one_line
from memory_tui.tui import note_changes, note_info
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_info import Past
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.note_side import DiffList
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.notes.journal import JournalEntry


class Changes(RowList):
    """One change or commit a row: when, and what."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="changes")
        self.border_title = "Changes"
        self._past = Past()
        self.newest = False
        """Whether the cursor goes to the newest change when the list is read again."""

    def show(self, found: Past) -> None:
        """List `found`; the cursor stays on its change, or goes to the newest one."""
        key = None if self.newest else self.key
        self._past, self.newest = found, False
        self.rows_changed(key)

    @property
    def entry(self) -> JournalEntry | Commit | None:
        """What is under the cursor."""
        return self._past.entries[self.cursor] if 0 <= self.cursor < len(self._past.entries) else None

    def count(self) -> int:
        """Changes, or one row that says there are none."""
        return len(self._past.entries) or 1

    def key_of(self, row: int, /) -> Hashable:
        """The number of the change, or the commit's hash."""
        if not self._past.entries:
            return None
        entry = self._past.entries[row]
        return entry.hash if isinstance(entry, Commit) else entry.id

    def height_of(self, _row: int, _width: int, /) -> int:
        """When above what."""
        return 2 if self._past.entries else 1

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Time and state, then the title."""
        if not self._past.entries:
            return [(fit(" No changes with memory-tui yet.", width), "muted")]
        entry = self._past.entries[row]
        if line:
            return [(fit(f"   {one_line(entry.subject if isinstance(entry, Commit) else entry.title)}", width), "")]
        when = (f" {datetime.fromtimestamp(entry.at):%Y-%m-%d %H:%M} ", "strong")
        if isinstance(entry, Commit):
            return [when, (f" git {entry.hash[:8]} ", "mark"), (fit(one_line(entry.author, 20), 20), "muted")]
        state, style = self._state(entry)
        return [when, (f" {entry.kind}  ", "muted"), (state, style)]

    def _state(self, entry: JournalEntry) -> tuple[str, str]:
        if entry.state == "draft":
            return "not written, kept", "warn"
        if entry.kind == "lost":
            return "enter restores", "warn"
        if entry.id in self._past.undoable:
            return f"{key_of('undo')} undoes", "good"
        if entry.id in self._past.redoable:
            return f"undone, {key_of('redo')} redoes", "warn"
        return "", ""


def entry_path(entry: JournalEntry | Commit) -> str:
    """The first note of a change; a commit names none."""
    return "" if isinstance(entry, Commit) else next(iter(entry.paths), "")


class HistoryView(View):
    """Changes to the left, what each did to the right."""

    PLACE = "history"

    def __init__(self, below: View) -> None:
        super().__init__(below)
        page = next((part.reader.page for part in below.parts if isinstance(part, NotePane)), None)
        place = below.place_in_note()
        self._path = page.path if page is not None else place[0] if place is not None else None
        self._proposals = Proposals(self, self._made, self._gather)

    def compose_view(self) -> Iterable[Widget]:
        """List and difference."""
        with self.panes():
            yield Changes()
            yield DiffList(id="difference")

    def on_mount(self) -> None:
        """Look into the journal."""
        super().on_mount()
        self.query_one(Changes).border_subtitle = Content(one_line(self._path, 40) if self._path else "all notes")
        self._gather()

    @task("past")
    async def _gather(self) -> None:
        reply = await self.home.jobs.run(partial(note_info.past, path=self._path))
        changes = self.query_one(Changes)
        changes.show(reply)
        changes.border_title = "Changes, with git" if reply.repository else "Changes"
        if reply.trouble:
            self.show_message(reply.trouble)

    @on(RowList.Moved, "#changes")
    def _moved(self) -> None:
        entry = self.query_one(Changes).entry
        if entry is not None:
            self._show_difference(entry)
        self.update_hints()

    @task("difference")
    async def _show_difference(self, entry: JournalEntry | Commit) -> None:
        lines = await self.home.jobs.run(partial(note_info.difference, entry=entry, path=self._path))
        self.query_one("#difference", DiffList).show(lines)

    def do_undo(self) -> None:
        """Take the change under the cursor back."""
        self._step("undo")

    def do_redo(self) -> None:
        """Make it again."""
        self._step("redo")

    @on(RowList.Chosen, "#changes")
    def _restore_chosen(self) -> None:
        """Bring back the note as it was at the change under the cursor."""
        entry = self.query_one(Changes).entry
        if entry is not None:
            self._restore(entry, lost_lines=False)

    @task("plan")
    async def _restore(self, entry: JournalEntry | Commit, *, lost_lines: bool) -> None:
        """Show what restoring would do: to the letter, or `lost_lines` alone, beside what came since."""
        from memory_tui.tui.views.dialogs import Preview

        planned = await self.home.jobs.run(
            partial(note_changes.restoring, entry=entry, path=self._path or entry_path(entry), lost_lines=lost_lines)
        )

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._proposals.apply(planned.change)
            elif answer == "w":
                self._restore(entry, lost_lines=not lost_lines)

        options = {"w": "Restore as it was" if lost_lines else "Bring lost lines back"}
        self.app.push_screen(Preview(planned, "Restore", options), answered)

    def _made(self) -> None:
        self.query_one(Changes).newest = True
        self._gather()

    def _step(self, kind: str) -> None:
        entry = self.query_one(Changes).entry
        if entry is None or isinstance(entry, Commit):
            self.show_message(f"{key_of('undo')} undoes changes made with memory-tui only. Use git for a commit.")
        else:
            # Any change can be chosen here, so each is shown first.
            self._proposals.step(kind, entry.id, math.inf)
