"""View 1: the notes by day to the left, the note under the cursor to the right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.errors import MemoryTuiError
from memory_tui.tui.actions import bindings
from memory_tui.tui.facts import Facts
from memory_tui.tui.page import Page
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.query_box import FilterInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.rowlist import RowList


class BrowseView(View):
    """Files and reader; the reader follows the cursor of the list."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("browse"))
    PLACE = "browse"
    AUTO_FOCUS = "#tree"

    def __init__(self) -> None:
        super().__init__()
        self._request = 0
        self._wanted: tuple[str, float] | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The list with its filter, and the reader."""
        with Horizontal(id="panes"):
            with Vertical(id="files"):
                yield FilterInput()
                yield FileTree()
            yield Reader(id="reader")

    def on_mount(self) -> None:
        """Say what is going on until the first note is there."""
        self.query_one(Reader).say(f"Opening the index of {self.home.workspace_name} ...")
        super().on_mount()

    def facts_changed(self, facts: Facts, /) -> None:
        """List the files; read the note under the cursor again when it changed on disk."""
        tree = self.query_one(FileTree)
        tree.show(facts.rows, facts.today)
        if not facts.rows:
            self.query_one(Reader).say(
                f"There are no notes in {self.home.workspace_name}/ yet.",
                "Write MEMORY.md or memory/YYYY-MM-DD.md there; it appears here by itself."
                if facts.watching else "Write MEMORY.md or memory/YYYY-MM-DD.md there, then press r.")
            self._wanted = None
        elif tree.file is not None:
            self._read(keep=True)

    @on(RowList.Moved, "#tree")
    def _moved(self) -> None:
        self._read()
        self.update_hints()

    @on(RowList.Moved, "#reader")
    def _reader_moved(self) -> None:
        self.update_hints()

    @on(RowList.Chosen, "#tree")
    def _chosen(self) -> None:
        if self.query_one(FileTree).file is not None:
            self.query_one(Reader).focus()

    def _read(self, *, keep: bool = False) -> None:
        """Ask for the note under the cursor, unless it is there or on its way already."""
        file = self.query_one(FileTree).file
        if file is None or self.home.engine is None:
            return
        wanted = (file.path, file.mtime)
        if wanted != self._wanted or (keep and self._stale(file.path, file.chunks)):
            self._wanted = wanted
            self._request = self.home.bridge.read(file.path)

    def _stale(self, path: str, chunks: int) -> bool:
        page = self.query_one(Reader).page
        return page is not None and page.path == path and len(page.chunks) == 0 and chunks > 0

    def page_came(self, number: int, page: Page | None, error: MemoryTuiError | None) -> None:
        """Show the note that was asked for."""
        if number != self._request:
            return
        reader = self.query_one(Reader)
        if page is None:
            reader.say(error.message if error else "", error.next_step if error else "")
            return
        same = reader.page is not None and reader.page.path == page.path
        reader.show(page, keep=same)
        if page.notice:
            self.say(f"{page.path}: {page.notice}.")
        self.update_hints()

    def place_in_note(self) -> tuple[str, int, int] | None:
        """In the list the whole note; in the reader the chunk under the cursor."""
        reader = self.query_one(Reader)
        if self.focused is not reader:
            file = self.query_one(FileTree).file
            page = reader.page
            if file is None or page is None or page.path != file.path:
                return None
            return page.path, 1, len(page.lines)
        return reader.place

    def line_in_note(self) -> int:
        """The line under the reader's cursor."""
        return max(0, self.query_one(Reader).cursor) + 1

    def text_in_note(self) -> str:
        """The text of the place."""
        place = self.place_in_note()
        return self.query_one(Reader).text_of(place[1], place[2]) if place else ""

    def back(self) -> bool:
        """From the filter and the reader to the list; then drop the filter."""
        tree, box = self.query_one(FileTree), self.query_one(FilterInput)
        if box.display and (self.focused is box or self.focused is tree):
            box.value = ""
            box.display = False
            tree.filter("")
            tree.focus()
            return True
        if self.focused is not tree:
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
        tree = self.query_one(FileTree)
        today = next((row.path for row in facts.rows if row.day == facts.today), None) if facts else None
        newest = today or tree.beside(None, 0)
        if newest is None or not tree.reveal(newest):
            self.say("No note has a day in its name.")
        elif today is None:
            self.say("There is no note for today; this is the newest.")

    def do_older(self) -> None:
        """Go to the day before."""
        self._beside(1, "This is the oldest day.")

    def do_newer(self) -> None:
        """Go to the day after."""
        self._beside(-1, "This is the newest day.")

    def _beside(self, direction: int, at_the_end: str) -> None:
        tree = self.query_one(FileTree)
        path = tree.beside(tree.file.path if tree.file and tree.file.day else None, direction)
        if path is None or not tree.reveal(path):
            self.say(at_the_end)

    def do_scroll_down(self) -> None:
        """Scroll the reader."""
        self.query_one(Reader).scroll_relative(y=5, animate=False)

    def do_scroll_up(self) -> None:
        """Scroll the reader back."""
        self.query_one(Reader).scroll_relative(y=-5, animate=False)

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self.query_one(FileTree).filter(event.value):
            self.query_one(Reader).say(f'No file has "{event.value.strip()}" in its name.', "esc drops the filter.")
            self._wanted = None
        else:
            self._read()

    def do_to_files(self) -> None:
        """From the filter to the list."""
        self.query_one(FileTree).focus()
