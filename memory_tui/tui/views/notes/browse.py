"""View 1 is the list of notes beside the note under the cursor."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.errors import MemoryTuiError
from memory_tui.recalls import recalled_lines
from memory_tui.sanitize import one_line
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_page import ABSENT, Page
from memory_tui.tui.state import Facts
from memory_tui.tui.views.notes.note_actions import NoteActions
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.query import FilterInput
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.status import FileRow
    from memory_tui.notes.changes import FileChange
    from memory_tui.search.trace import Trace


class BrowseView(View):
    """Files and reader; the reader follows the cursor of the list."""

    PLACE = "browse"
    MORE_PLACES = ("notes", "reading")
    AUTO_FOCUS = "#tree"
    SCROLLED = "#reader"
    SCROLL_LINES = 5

    def __init__(self) -> None:
        super().__init__()
        self.pane = NotePane(self, self.go_to)
        self.changes = Proposals(self, self._changed)
        self.actions = NoteActions(self, self.pane, self.changes, lambda: sorted(self.listed.marked_notes))
        self.parts = (self.pane, self.actions, self.changes)
        self._wanted: tuple[str, float] | None = None
        self._gone: tuple[str, Hashable] | None = None
        """The note that vanished while it was shown, and the row of the list where that left the cursor."""

    def compose_view(self) -> Iterable[Widget]:
        """The list with its filter, and the reader."""
        with self.panes():
            with Vertical(id="files"):
                yield FilterInput()
                yield FileTree()
            yield from self.pane.compose()

    def on_mount(self) -> None:
        """Say what is going on until the first note is there."""
        self.pane.reader.show_sentences(f"Opening the index of {self.home.workspace_name} ...")
        super().on_mount()

    def _changed(self) -> None:
        """What was marked is dealt with."""
        self.pane.reader.drop_selection()
        self.listed.marks.drop()

    @property
    def listed(self) -> FileTree:
        """The list of notes."""
        return self.query_one(FileTree)

    def on_screen_resume(self) -> None:
        """Recalls may have come meanwhile."""
        if self.home.engine is not None:
            self._count_recalls()

    @task("activity")
    async def _count_recalls(self) -> None:
        reply = await self.home.jobs.attempt(lambda engine: recalled_lines.activity(engine.plan.roots.workspace))
        if isinstance(reply, MemoryTuiError):
            self.show_message(sentence_of(reply))
        else:
            self.listed.recalled(reply)

    def facts_changed(self, facts: Facts, /) -> None:
        """List the files; read the note under the cursor again when it changed on disk."""
        self.listed.show(facts.rows, facts.today, facts.aging, facts.trust)
        self._count_recalls()
        self._look_for_gone({row.path for row in facts.rows})
        if not facts.rows and facts.lost_notes is not None:
            self.pane.reader.show_sentences(one_line(facts.lost_notes.detail), "It is indexed as soon as it is there.")
            self._wanted = None
        elif not facts.rows:
            self.pane.reader.show_sentences(
                f"There are no notes in {self.home.workspace_name}/ yet.",
                f"{key_of('remember')} writes the first line of today's log. MEMORY.md or memory/YYYY-MM-DD.md written "
                + ("elsewhere appears by itself." if facts.status.watching else f"elsewhere: {key_of('look again')}."),
            )
            self._wanted = None
        elif self.listed.file is not None:
            self._follow_cursor()
        elif (
            self._gone is not None and self.pane.reader.page is not None and self.pane.reader.page.path == self._gone[0]
        ):
            self.pane.show_nothing(
                f"There is no {self._gone[0]} any more.",
                f"Where that was done here, {key_of('undo')} undoes it; another program may have moved or deleted it.",
            )
            self._wanted = None

    def _look_for_gone(self, paths: Collection[str]) -> None:
        """Remember the note that is shown when it vanishes, and go to it when it is back, unless the cursor moved."""
        page = self.pane.reader.page
        if page is not None and page.path not in paths:
            self._gone = page.path, self.listed.key
        elif self._gone is not None and self._gone[0] in paths:
            path, row = self._gone
            self._gone = None
            if self.listed.key == row:
                self.listed.reveal(path)

    @on(RowList.Moved, "#tree")
    def _moved(self) -> None:
        self._follow_cursor()
        self.update_hints()

    @on(RowList.Chosen, "#tree")
    def _chosen(self) -> None:
        if self.listed.file is not None:
            self.pane.reader.focus()

    def _follow_cursor(self, line: int | None = None) -> None:
        """Ask for the note under the cursor, unless it is there or on its way already."""
        file = self.listed.file
        if file is None or self.home.engine is None:
            return
        target = (file.path, file.mtime)
        if target == self._wanted and not self._stale(file):
            page = self.pane.reader.page
            if line is not None and page is not None and page.path == file.path and page.whole:
                self.pane.reader.go_to_line(line)
            elif line is not None and file.state != ABSENT:
                self.pane.read(file.path, line=line)
            return
        self._wanted = target
        if file.state == ABSENT:
            self.pane.show_nothing(f"There is no {file.path} yet.", self._how_to_begin(file))
        else:
            self.pane.read(file.path, line=line)

    def _how_to_begin(self, file: FileRow) -> str:
        """What is said of a log that is not there."""
        facts, looked = self.home.facts, "An agent looks for it when a session starts."
        if facts is None or facts.unwritable:
            return looked
        line = f"; {key_of('remember')} adds a line to it" if file.day == facts.today else ""
        return f"{looked} {key_of('edit')} begins it{line}."

    @property
    def absent(self) -> str | None:
        """The path of the log under the cursor, where it is not there."""
        file = self.listed.file
        return file.path if file is not None and file.state == ABSENT else None

    def more_context(self) -> dict[str, bool]:
        """Whether a log that is not there is under the cursor, and whether notes are marked in the list."""
        return {"absent": self.absent is not None, "marked": self.focused is self.listed and bool(self.listed.marks)}

    def do_edit_here(self) -> None:
        """Edit the note on screen, or begin the log that is not there."""
        if self.absent is None:
            self.home.do_edit_here()
            return
        from memory_tui.tui.views.notes.edit import EditView

        self.app.push_screen(EditView(self.absent, 1))

    def _stale(self, file: FileRow) -> bool:
        """Whether the page was made before the note was indexed."""
        page = self.pane.reader.page
        return page is not None and page.path == file.path and page.whole and len(page.chunks) == 0 and file.chunks > 0

    def go_to(self, path: str, line: int | None = None) -> bool:
        """Any note in the list."""
        if not self.listed.reveal(path):
            return False
        self._follow_cursor(line or 1)
        return True

    def remembered(self, log: FileChange, text: str) -> None:
        """Show the line where it stands."""
        lines = (log.after or b"").decode("utf-8", "replace").split("\n")
        self.go_to(log.path, next((at for at in range(len(lines), 0, -1) if text.split("\n")[0] in lines[at - 1]), 1))

    def place_in_note(self) -> tuple[str, int, int] | None:
        """In the list the whole note; in the reader what is marked, cited or the chunk under the cursor."""
        reader = self.pane.reader
        if self.focused is not self.listed:
            return reader.citation
        file, page = self.listed.file, reader.page
        if file is None or page is None or page.path != file.path:
            return None
        return page.path, 1, len(page.lines)

    def back(self) -> bool:
        """From the find box, the filter and the reader to the list; then drop the filter."""
        tree, box = self.listed, self.query_one(FilterInput)
        if box.display and (self.focused is box or self.focused is tree):
            box.value = ""
            box.display = False
            tree.filter("")
            tree.focus()
            return True
        if self.focused is tree and tree.marks.drop():
            return True
        if self.focused is not tree:
            if not self.pane.leave_about() and not self.pane.leave_text():
                tree.focus()
            return True
        return False

    # --- actions -------------------------------------------------------------------------------------------------

    def do_filter(self) -> None:
        """Open the filter."""
        box = self.query_one(FilterInput)
        box.display = True
        box.focus()

    def do_today(self) -> None:
        """Go to today's note, or to the newest."""
        facts = self.home.facts
        if facts is None:
            return
        path = f"memory/{facts.today.isoformat()}.md"
        today = next((row.path for row in facts.rows if row.path == path), None) or next(
            (row.path for row in facts.rows if row.day == facts.today), None
        )
        newest = today or self.listed.newest
        if newest is None or not self.listed.reveal(newest):
            self.show_message("No note has a past or present day in its name.")
        elif today is None:
            self.show_message("There is no note for today; this is the newest.")

    def do_older(self) -> None:
        """Go to the day before."""
        self._beside(1, "This is the oldest day.")

    def do_newer(self) -> None:
        """Go to the day after."""
        self._beside(-1, "This is the newest day.")

    def _beside(self, direction: int, at_the_end: str) -> None:
        path = self.listed.beside(direction)
        if path is None or not self.listed.reveal(path):
            self.show_message(at_the_end)

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self.listed.filter(event.value):
            self.pane.reader.show_sentences(
                f'No file has "{event.value.strip()}" in its name.', "esc drops the filter."
            )
            self._wanted = None
        else:
            self._follow_cursor()

    def do_to_files(self) -> None:
        """From the filter to the list."""
        self.listed.focus()


class ReaderView(View):
    """One note over the view below."""

    PLACE = "reader"
    MORE_PLACES = ("notes", "reading")
    AUTO_FOCUS = "#reader"

    def __init__(self, path: str, cited: tuple[int, int], asked: Trace | None = None) -> None:
        super().__init__()
        self.pane = NotePane(self, self.go_to, self._page_shown)
        changes = Proposals(self, self.pane.reader.drop_selection)
        self.parts = (self.pane, NoteActions(self, self.pane, changes), changes)
        self._first = (path, cited)
        if asked is not None:
            self.pane.answers(asked, path, cited)
        self._words = tuple(word.lower() for word in asked.plan.words) if asked is not None else ()
        """Of a transcript, the cited message that holds most of them is gone to: a chunk is many messages."""

    def compose_view(self) -> Iterable[Widget]:
        """The reader alone."""
        with self.panes():
            yield from self.pane.compose()

    def on_mount(self) -> None:
        """Ask for the note."""
        super().on_mount()
        path, cited = self._first
        self.pane.read(path, cited=cited)

    def _page_shown(self, page: Page) -> None:
        """Of a transcript, go to the message that was meant."""
        path, (first, last) = self._first
        if page.whole and self._words and page.path == path and path.startswith("sessions/"):
            text = [str(line).lower() for line in page.lines[first - 1 : last]]
            rest = [sum(word in line for word in self._words) for line in text]
            self._words = ()
            if any(rest):
                self.pane.reader.cursor = first - 1 + rest.index(max(rest))

    def go_to(self, path: str, line: int | None = None) -> bool:
        """Any note can be shown here."""
        seen = {row.path for row in self.home.facts.rows} if self.home.facts else set()
        if path not in seen:
            return False
        self.pane.read(path, line=line or 1)
        return True

    def back(self) -> bool:
        """Drop what was marked and found, then back to the view below."""
        if not self.pane.leave_about() and not self.pane.leave_text():
            self.app.pop_screen()
        return True
