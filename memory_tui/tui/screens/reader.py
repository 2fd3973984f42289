"""The note of a hit, opened at the cited lines; esc leads back to the hits."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.tui.page import Page
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.reader import Reader


class ReaderView(View):
    """One note over the view below."""

    PLACE = "reader"
    AUTO_FOCUS = "#reader"

    def __init__(self, path: str, cited: tuple[int, int]) -> None:
        super().__init__()
        self._path, self._cited = path, cited
        self._request = 0

    def compose_view(self) -> Iterable[Widget]:
        """The reader alone."""
        yield Reader(id="reader")

    def on_mount(self) -> None:
        """Ask for the note."""
        super().on_mount()
        self._request = self.home.bridge.read(self._path)

    def page_came(self, number: int, page: Page | None, error: MemoryTuiError | None) -> None:
        """Show the note at the cited lines."""
        if number != self._request:
            return
        reader = self.query_one(Reader)
        if page is None:
            reader.say(error.message if error else "", error.next_step if error else "")
        else:
            reader.show(page, self._cited)
        self.update_hints()

    def on_row_list_moved(self) -> None:
        """Another line is under the cursor."""
        self.update_hints()

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The cited lines while the cursor is in them, else the chunk under it."""
        return self.query_one(Reader).place

    def line_in_note(self) -> int:
        """The line under the cursor."""
        return max(0, self.query_one(Reader).cursor) + 1

    def text_in_note(self) -> str:
        """The text of the place."""
        place = self.place_in_note()
        return self.query_one(Reader).text_of(place[1], place[2]) if place else ""

    def back(self) -> bool:
        """Back to the view below."""
        self.app.pop_screen()
        return True
