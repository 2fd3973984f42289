"""Note actions change notes from any view with a reader."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import Carry, Make
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_tui.curate.changes import Change, Conflict
    from memory_tui.curate.curator import AppliedChange

ARCHIVE_DAYS = 90
"""Logs older than this are offered for the archive."""

_VERBS = {
    "promote": "Promote",
    "demote": "Move",
    "trash": "Move to trash",
    "archive": "Archive",
    "rename": "Rename",
    "undo": "Undo",
    "redo": "Redo",
    "new": "Create",
}


def also(done: AppliedChange) -> str:
    """The sentence that tells of others' changes which are in the notes too, empty without any."""
    return f"Others' changes of {one_line(', '.join(done.merged))} were kept too. " if done.merged else ""


class NoteActions(Part):
    """What changes the note of a pane."""

    def __init__(self, view: View, pane: NotePane) -> None:
        super().__init__(view)
        self._pane = pane

    # --- showing and making a change -----------------------------------------------------------------------------

    @task("plan")
    async def propose(self, make: Make) -> None:
        """Plan what `make` asks for, show it, and make it when it is wanted."""
        planned = await self.home.jobs.run(note_changes.plan_of(make))

        Preview(planned, _VERBS.get(planned.change.kind, "Do it")).ask(
            self.view.app, lambda _yes: self.apply(planned.change)
        )

    @task("write", exclusive=False)
    async def apply(self, change: Change) -> None:
        """Make `change`; what it did is said."""
        self._made(await self.home.jobs.write(note_changes.applied(change)))

    def refused(self, error: MemoryTuiError) -> str:
        """Why; where others changed the same lines, a person chooses."""
        from memory_tui.curate.changes import Conflict

        if not isinstance(error, Conflict):
            return super().refused(error)
        from memory_tui.tui.views.notes.resolve import Resolve

        conflict = error

        kept = f"Your change is kept as draft {conflict.draft}." if conflict.draft else ""
        Resolve(conflict.views[0], kept).ask(self.view.app, lambda data: self._resolve(conflict, data))
        return ""

    @task("write", exclusive=False)
    async def _resolve(self, conflict: Conflict, data: bytes) -> None:
        self._made(await self.home.jobs.write(partial(note_changes.resolved, conflict=conflict, data=data)))

    def _made(self, done: AppliedChange) -> None:
        self.view.show_message(f"{one_line(done.change.title)}: done. {also(done)}{key_of('undo')} undoes it.")
        self._pane.reader.drop_selection()
        self.home.jobs.refresh()

    # --- lines ---------------------------------------------------------------------------------------------------

    def _lines(self) -> tuple[str, int, int | None, Sequence[str]] | None:
        """The marked lines, or the item under the cursor, of all lines as they are shown; None where there are none."""
        page = self._pane.reader.page
        if page is None or self.view.focused is not self._pane.reader:
            self.view.show_message("Select lines first. Press tab to go to the reader.")
            return None
        if self._pane.reader.selecting:
            return page.path, *self._pane.reader.selected_lines, page.lines
        return page.path, self._pane.reader.cursor + 1, None, page.lines

    def do_promote(self) -> None:
        """Copy lines to the curated note."""
        lines = self._lines()
        if lines is not None:
            self._carry(Carry("promote", *lines))

    def do_move(self) -> None:
        """Move lines to a topic note, or rename the note."""
        page = self._pane.reader.page
        if self.view.focused is not self._pane.reader and page is not None:
            self._rename(page.path)
            return
        lines = self._lines()
        if lines is None:
            return
        from memory_tui.tui.views.dialogs import Picker

        rows = self.home.facts.rows if self.home.facts else ()
        names = [row.path for row in rows if row.path != lines[0] and row.source == "memory"]
        Picker("Move to which note?", names, new="a new note").ask(
            self.view.app, lambda target: self._carry(Carry("demote", *lines, target=target, move=True))
        )

    @task("plan")
    async def _carry(self, carry: Carry) -> None:
        """Show what carrying lines would do, and do it, or another way of it, when that is wanted."""
        planned = await self.home.jobs.run(partial(note_changes.carried, carry=carry))

        def answered(answer: str | None) -> None:
            match answer:
                case "yes":
                    self.apply(planned.change)
                case "h":
                    self._choose_heading(carry)
                case "m":
                    self._carry(carry.moved())
                case _:
                    pass

        options = {"h": "Heading", "m": "Copy" if carry.move else "Move"}
        self.view.app.push_screen(Preview(planned, "Move" if carry.move else "Copy", options), answered)

    @task("plan")
    async def _choose_heading(self, carry: Carry) -> None:
        from memory_tui.tui.views.dialogs import Picker

        titles = await self.home.jobs.run(partial(note_changes.headings, carry=carry))

        def chosen(title: str | None) -> None:
            self._carry(replace(carry, to=title or carry.to))

        asked = "Below which heading?" if titles else "There is no heading yet: esc puts it at the end"
        self.view.app.push_screen(Picker(asked, titles, new="a new heading"), chosen)

    def do_trash(self) -> None:
        """Move the note, or lines of it, to the trash."""
        page = self._pane.reader.page
        if page is None:
            return
        path = page.path
        if self.view.focused is not self._pane.reader:
            self.propose(lambda curator: curator.plan.trash(path))
            return
        lines = self._lines()
        if lines is not None:
            self.propose(lambda curator: curator.plan.trash_lines(note_changes.spot_of(curator.plan, *lines)))

    # --- notes ---------------------------------------------------------------------------------------------------

    def _rename(self, path: str) -> None:
        from memory_tui.tui.views.dialogs import LineDialog

        def named(new: str | None) -> None:
            if new and new != path:
                self.propose(lambda curator: curator.plan.rename(path, new))

        self.view.app.push_screen(
            LineDialog("Rename the note", "Its new path, below the folder of the notes.", "Rename", value=path), named
        )

    def do_new_note(self) -> None:
        """Begin a topic note."""
        from memory_tui.tui.views.dialogs import LineDialog

        def titled(title: str | None) -> None:
            if title:
                self.propose(lambda curator: curator.plan.new_note(title))

        self.view.app.push_screen(
            LineDialog("New topic note", "What is it about? The title names the file.", "Go on"), titled
        )

    def do_archive(self) -> None:
        """Put old daily logs into the archive."""
        self.propose(lambda curator: curator.plan.archive(ARCHIVE_DAYS))

    # --- the journal ---------------------------------------------------------------------------------------------

    def do_undo(self) -> None:
        """Take the last change back."""
        self._journal("undo")

    def do_redo(self) -> None:
        """Make it again."""
        self._journal("redo")

    @task("write", exclusive=False)
    async def _journal(self, kind: str) -> None:
        """At once for a change of this session; an older one, or one with an effect on trust, is shown first."""
        since = self.home.started

        outcome = await self.home.jobs.write(partial(note_changes.step_or_plan, kind=kind, since=since))
        if isinstance(outcome, Planned):
            Preview(outcome, kind.capitalize()).ask(self.view.app, lambda _yes: self._step(kind))
        else:
            self._stepped(kind, outcome)

    @task("write", exclusive=False)
    async def _step(self, kind: str) -> None:
        self._stepped(kind, await self.home.jobs.write(partial(note_changes.step, kind=kind)))

    def _stepped(self, kind: str, done: AppliedChange) -> None:
        way = f"{key_of('redo')} redoes it" if kind == "undo" else f"{key_of('undo')} undoes it"
        self.view.show_message(f"{one_line(done.change.title)}. {also(done)}{way}.")
        self.home.jobs.refresh()

    def do_edit_here(self) -> None:
        """Edit the note on screen."""
        from memory_tui.tui.views.notes.edit import EditView

        page = self._pane.reader.page
        if page is not None:
            self.view.app.push_screen(EditView(page.path, self.view.line_in_note()))
