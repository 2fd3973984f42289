"""The note of a hit, opened at the cited lines; esc leads back to the hits."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal
from textual.widget import Widget

from memory_tui.tui.screens.note import NoteView


class ReaderView(NoteView):
    """One note over the view below."""

    PLACE = "reader"
    AUTO_FOCUS = "#reader"

    def __init__(self, path: str, cited: tuple[int, int]) -> None:
        super().__init__()
        self._first = (path, cited)

    def compose_view(self) -> Iterable[Widget]:
        """The reader alone."""
        with Horizontal(id="panes"):
            yield from self.compose_reader()

    def on_mount(self) -> None:
        """Ask for the note."""
        super().on_mount()
        path, cited = self._first
        self.read(path, cited=cited)

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
