"""Note actions change notes from any view with a reader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.note_changes import Carry, Make
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.notes.note_pane import NoteView
from memory_tui.tui.views.view import T

if TYPE_CHECKING:
    from memory_tui.curate.changes import Change
    from memory_tui.curate.curator import AppliedChange
    from memory_tui.engine.engine import Engine

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


class CuratingView(NoteView):
    """A view whose notes can be changed."""

    # --- showing and making a change -----------------------------------------------------------------------------

    def propose(self, make: Make) -> None:
        """Plan what `make` asks for, show it, and make it when it is wanted."""
        self.run("plan", note_changes.plan_of(make), self._show)

    def _show(self, planned: Planned) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self.apply(planned.change)

        self.app.push_screen(Preview(planned, _VERBS.get(planned.change.kind, "Do it")), answered)

    def apply(self, change: Change, then: Callable[[AppliedChange], None] | None = None) -> None:
        """Make `change`; what it did is said."""
        self._write(note_changes.applied(change), then or self._made)

    def _write(self, work: Callable[[Engine], T], then: Callable[[T], None]) -> None:
        """Do `work`, which newer work does not replace."""
        self.home.bridge.writes += 1
        self.run(f"write {self.home.bridge.writes}", work, then, self._refused)

    def _refused(self, error: MemoryTuiError) -> None:
        from memory_tui.curate.changes import Conflict

        if not isinstance(error, Conflict):
            self.say(f"{error.message} {error.next_step}".strip())
            return
        from memory_tui.tui.views.notes.resolve import Resolve

        conflict = error

        def resolved(data: bytes | None) -> None:
            if data is not None:
                self._write(partial(note_changes.resolved, conflict=conflict, data=data), self._made)

        kept = f"What you wanted is kept as draft {conflict.draft}." if conflict.draft else ""
        self.app.push_screen(Resolve(conflict.views[0], kept), resolved)

    def _made(self, done: AppliedChange) -> None:
        self.say(f"{one_line(done.change.title)}: done. {also(done)}u takes it back.")
        self.reader.drop_selection()
        self.home.bridge.look()

    # --- lines ---------------------------------------------------------------------------------------------------

    def _lines(self) -> tuple[str, int, int | None] | None:
        """The marked lines, or the item under the cursor; None where no line is under the cursor."""
        page = self.reader.page
        if page is None or self.focused is not self.reader:
            self.say("Go to the lines first: tab leads to the reader.")
            return None
        if self.reader.selecting:
            return page.path, *self.reader.selected_lines
        return page.path, self.reader.cursor + 1, None

    def do_promote(self) -> None:
        """Copy lines to the curated note."""
        lines = self._lines()
        if lines is not None:
            self._carry(Carry("promote", *lines))

    def do_move(self) -> None:
        """Move lines to a topic note, or rename the note."""
        page = self.reader.page
        if self.focused is not self.reader and page is not None:
            self._rename(page.path)
            return
        lines = self._lines()
        if lines is None:
            return
        from memory_tui.tui.views.dialogs import Picker

        def chosen(target: str | None) -> None:
            if target:
                self._carry(Carry("demote", *lines, target=target, move=True))

        rows = self.home.facts.rows if self.home.facts else ()
        names = [row.path for row in rows if row.path != lines[0] and row.source == "memory"]
        self.app.push_screen(Picker("Move to which note?", names, new="a new note"), chosen)

    def _carry(self, carry: Carry) -> None:
        self.run("plan", partial(note_changes.carried, carry=carry), partial(self._show_carried, carry))

    def _show_carried(self, carry: Carry, planned: Planned) -> None:
        def answered(answer: str | None) -> None:
            match answer:
                case "yes":
                    self.apply(planned.change)
                case "h":
                    self.run("plan", partial(note_changes.headings, carry=carry), partial(self._choose_heading, carry))
                case "m":
                    self._carry(carry.moved())
                case _:
                    pass

        options = {"h": "Heading", "m": "Copy" if carry.move else "Move"}
        verb = "Move" if carry.move else "Copy"
        self.app.push_screen(Preview(planned, verb, options), answered)

    def _choose_heading(self, carry: Carry, titles: list[str]) -> None:
        from dataclasses import replace

        from memory_tui.tui.views.dialogs import Picker

        def chosen(title: str | None) -> None:
            self._carry(replace(carry, to=title or carry.to))

        asked = "Below which heading?" if titles else "There is no heading yet: esc puts it at the end"
        self.app.push_screen(Picker(asked, titles, new="a new heading"), chosen)

    def do_trash(self) -> None:
        """Move the note, or lines of it, to the trash."""
        page = self.reader.page
        if page is None:
            return
        path = page.path
        if self.focused is not self.reader:
            self.propose(lambda curator: curator.plan.trash(path))
            return
        lines = self._lines()
        if lines is not None:
            self.propose(lambda curator: curator.plan.trash_lines(curator.plan.spot(*lines)))

    # --- notes ---------------------------------------------------------------------------------------------------

    def _rename(self, path: str) -> None:
        from memory_tui.tui.views.dialogs import Ask

        def named(new: str | None) -> None:
            if new and new != path:
                self.propose(lambda curator: curator.plan.rename(path, new))

        self.app.push_screen(
            Ask("Rename the note", "Its new path, below the folder of the notes.", "Rename", value=path), named
        )

    def do_new_note(self) -> None:
        """Begin a topic note."""
        from memory_tui.tui.views.dialogs import Ask

        def titled(title: str | None) -> None:
            if title:
                self.propose(lambda curator: curator.plan.new_note(title))

        self.app.push_screen(Ask("New topic note", "What is it about? The title names the file.", "Go on"), titled)

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

    def _journal(self, kind: str) -> None:
        """At once for a change of this session; an older one is shown first."""
        since = self.home.started

        def work(engine: Engine) -> AppliedChange | Planned:
            if note_changes.begun_since(engine, kind, since):
                return note_changes.step(engine, kind)
            return note_changes.stepped(engine, kind)

        def then(outcome: AppliedChange | Planned) -> None:
            if isinstance(outcome, Planned):
                self.app.push_screen(Preview(outcome, kind.capitalize()), answered)
            else:
                self._stepped(kind, outcome)

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._write(partial(note_changes.step, kind=kind), partial(self._stepped, kind))

        self._write(work, then)

    def _stepped(self, kind: str, done: AppliedChange) -> None:
        way = "ctrl+r makes it again" if kind == "undo" else "u takes it back"
        self.say(f"{one_line(done.change.title)}. {also(done)}{way}.")
        self.home.bridge.look()

    def do_history(self) -> None:
        """What was changed in this note."""
        from memory_tui.tui.views.notes.history import HistoryView

        page = self.reader.page
        self.app.push_screen(HistoryView(page.path if page else None))

    def do_edit_here(self) -> None:
        """Edit the note on screen."""
        from memory_tui.tui.views.notes.edit import EditView

        page = self.reader.page
        if page is not None:
            self.app.push_screen(EditView(page.path, self.line_in_note()))
