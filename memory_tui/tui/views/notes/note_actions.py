"""Note actions change notes from any view with a reader, for the marked notes too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from memory_tui.tui import note_changes
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.navigation import make
from memory_tui.tui.note_changes import Carry
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.workers import task

Places = Sequence[tuple[tuple[str, int, int], str]]
"""Path, first and last line of each place, with its text."""

ARCHIVE_DAYS = 90
"""Logs older than this are offered for the archive."""


class NoteActions(Part):
    """What changes the note of a pane, or the notes that are `marked` in the list; `changes` shows and makes it."""

    def __init__(
        self, view: View, pane: NotePane, changes: Proposals, marked: Callable[[], Sequence[str]] = lambda: ()
    ) -> None:
        super().__init__(view)
        self._pane, self._changes, self._marked = pane, changes, marked

    # --- lines ---------------------------------------------------------------------------------------------------

    def _lines(self) -> tuple[str, int, int | None, Sequence[str]] | None:
        """The marked lines, or the item under the cursor, of all lines as they are shown; None where there are none."""
        page = self._pane.reader.page
        if page is None or self.view.focused is not self._pane.reader:
            self.view.show_message("Select lines first. Press tab to go to the reader.")
            return None
        # The reader shows an empty line after the last line end, which the note does not have.
        end = max(1, len(page.lines) - ("".join(page.lines[-1:]) == ""))
        if self._pane.reader.selecting:
            first, last = self._pane.reader.selected_lines
            return page.path, min(first, end), min(last, end), page.lines[:end]
        return page.path, min(self._pane.reader.cursor + 1, end), None, page.lines[:end]

    @property
    def _notes(self) -> Sequence[str]:
        """The notes that are marked, where the list is in focus; else none."""
        return () if self.view.focused is self._pane.reader else self._marked()

    def do_line(self) -> None:
        """Ask which line is meant, and say why it is, or is not, recalled for the question on screen."""
        from memory_tui.tui.views.search.line_question import LineQuestion

        question, place = self.home.question, self.view.place_in_note()
        if not question:
            self.view.show_message(
                f"No question was asked yet. Press {key_of('ask')} and ask; {key_of('why line')} then says why a line "
                "is not recalled."
            )
            return

        def then(path: str, line: int | None) -> None:
            self.view.app.push_screen(make("search.why_not_view:WhyNotView", question, path, line))

        LineQuestion(self.view, then).ask((place[0], self.view.line_in_note()) if place is not None else None)

    def do_cite(self) -> None:
        """Copy the citation of the place, or those of the notes that are marked in the list."""
        self._take(lambda places: self.home.cite_places([place for place, _ in places]))

    def do_copy(self) -> None:
        """Copy the place, or the notes that are marked in the list, as text, citation, Markdown, JSON, command."""
        self._take(self.home.copy_places)

    def _take(self, then: Callable[[Places], None]) -> None:
        place = self.view.place_in_note()
        if marked := self._notes:
            self._take_whole(marked, then)
        elif place is not None:
            then([(place, self.view.text_in_note())])

    @task("copy")
    async def _take_whole(self, paths: Sequence[str], then: Callable[[Places], None]) -> None:
        then(await self.home.jobs.run(partial(note_changes.whole, paths=paths)))

    def do_promote(self) -> None:
        """Copy lines, or the notes that are marked in the list, to the curated note."""
        page = self._pane.reader.page
        if self.view.focused is not self._pane.reader and page is not None:
            paths = self._notes or (page.path,)
            self._changes.propose(lambda curator: curator.plan.promote_all([(path, 1, 0) for path in paths]))
            return
        lines = self._lines()
        if lines is not None:
            self._carry(Carry("promote", *lines))

    def do_move(self) -> None:
        """Move lines to a topic note, rename the note, or archive the logs that are marked in the list."""
        page = self._pane.reader.page
        if marked := frozenset(self._notes):
            self._changes.propose(lambda curator: curator.plan.archive(0, marked))
            return
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
                    self._changes.apply(planned.change)
                case "h":
                    self._choose_heading(carry)
                case "m":
                    self._carry(carry.moved())
                case _:
                    pass

        from memory_tui.tui.views.dialogs import Preview

        options = {"h": "Heading", "m": "Copy" if carry.move else "Move"}
        self.view.app.push_screen(Preview(planned, "Move" if carry.move else "Copy", options), answered)

    @task("plan")
    async def _choose_heading(self, carry: Carry) -> None:
        from memory_tui.tui.views.dialogs import Picker

        titles = await self.home.jobs.run(partial(note_changes.headings, carry=carry))

        def chosen(title: str | None) -> None:
            self._carry(replace(carry, to=title or carry.to))

        query = "Below which heading?" if titles else "There is no heading yet: esc puts it at the end"
        self.view.app.push_screen(Picker(query, titles, new="a new heading"), chosen)

    def do_trash(self) -> None:
        """Move the note, or lines of it, or the notes that are marked in the list, to the trash."""
        page = self._pane.reader.page
        if marked := self._notes:
            self._changes.propose(lambda curator: curator.plan.trash(*marked))
            return
        if page is None:
            return
        path = page.path
        if self.view.focused is not self._pane.reader:
            self._changes.propose(lambda curator: curator.plan.trash(path))
            return
        lines = self._lines()
        if lines is not None:
            self._changes.propose(
                lambda curator: curator.plan.delete_lines([note_changes.spot_of(curator.plan, *lines)], kind="trash")
            )

    # --- notes ---------------------------------------------------------------------------------------------------

    def _rename(self, path: str) -> None:
        from memory_tui.tui.views.dialogs import LineDialog

        def named(new: str | None) -> None:
            if new and new != path:
                self._changes.propose(lambda curator: curator.plan.rename(path, new))

        self.view.app.push_screen(
            LineDialog("Rename the note", "Its new path, below the folder of the notes.", "Rename", value=path), named
        )

    def do_new_note(self) -> None:
        """Begin a topic note."""
        from memory_tui.tui.views.dialogs import LineDialog

        def titled(title: str | None) -> None:
            if title:
                self._changes.propose(lambda curator: curator.plan.new_note(title))

        self.view.app.push_screen(
            LineDialog("New topic note", "What is it about? The title names the file.", "Go on"), titled
        )

    def do_archive(self) -> None:
        """Put old daily logs into the archive."""
        self._changes.propose(lambda curator: curator.plan.archive(ARCHIVE_DAYS))
