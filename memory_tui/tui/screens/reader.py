"""The note of a hit, opened at the cited lines; esc leads back to the hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.containers import Horizontal
from textual.widget import Widget

from memory_tui.tui.page import Page
from memory_tui.tui.screens.curating import CuratingView


class ReaderView(CuratingView):
    """One note over the view below."""

    PLACE = "reader"
    AUTO_FOCUS = "#reader"

    def __init__(self, path: str, cited: tuple[int, int], words: Sequence[str] = ()) -> None:
        super().__init__()
        self._first = (path, cited)
        self._words = tuple(word.lower() for word in words)
        """Of a transcript, the cited message that holds most of them is gone to: a chunk is many messages."""

    def compose_view(self) -> Iterable[Widget]:
        """The reader alone."""
        with Horizontal(id="panes"):
            yield from self.compose_reader()

    def on_mount(self) -> None:
        """Ask for the note."""
        super().on_mount()
        path, cited = self._first
        self.read(path, cited=cited)

    def page_shown(self, page: Page) -> None:
        """Of a transcript, go to the message that was meant."""
        super().page_shown(page)
        path, (first, last) = self._first
        if page.whole and self._words and page.path == path and path.startswith("sessions/"):
            said = [str(line).lower() for line in page.lines[first - 1 : last]]
            held = [sum(word in line for word in self._words) for line in said]
            self._words = ()
            if any(held):
                self.reader.cursor = first - 1 + held.index(max(held))

    def go_to(self, path: str, line: int | None = None) -> bool:
        """Any note can be shown here."""
        known = {row.path for row in self.home.facts.rows} if self.home.facts else set()
        if path not in known:
            return False
        self.read(path, line=line or 1)
        return True

    def back(self) -> bool:
        """Drop what was marked and found, then back to the view below."""
        if not self.leave_about() and not self.leave_text():
            self.app.pop_screen()
        return True
