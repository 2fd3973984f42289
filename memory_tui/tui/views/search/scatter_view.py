"""The scatter view shows score against age for the question on screen; its lines turn knobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.core.settings import BY_KEY
from memory_tui.tui.tuning import stepped
from memory_tui.tui.views.view import KnobHistory, View
from memory_tui.tui.widgets.scatter import FLOOR, Scatter

if TYPE_CHECKING:
    from memory_tui.tui.views.search.search_view import SearchView


class ScatterView(View):
    """The picture alone."""

    PLACE = "scatter_view"
    MORE_PLACES = ("scatter", "notes")

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self.search = below
        self.parts = (KnobHistory(self),)

    @property
    def picture(self) -> Scatter:
        """The points."""
        return self.query_one(Scatter)

    def compose_view(self) -> Iterable[Widget]:
        """The picture."""
        yield Scatter()

    def on_mount(self) -> None:
        """Show the answer of the search view."""
        super().on_mount()
        self._show()

    def tuned(self, *, keep: bool = True) -> None:
        """Follow the answer once the search view has ranked it."""
        super().tuned(keep=keep)
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        if self.search.shown.trace is not None:
            self.picture.show(self.search.shown.trace)
        self.update_hints()

    def _set(self, key: str, value: float) -> None:
        tuning, knob = self.home.tuning, BY_KEY[key]
        if tuning is not None:
            self.home.turn(tuning.set(key, type(knob.default)(min(max(value, knob.low), knob.high))))

    def _step(self, direction: int) -> None:
        tuning = self.home.tuning
        if tuning is not None:
            now = tuning.settings.values[FLOOR].value
            self._set(FLOOR, float(stepped(BY_KEY[FLOOR], now, direction, fine=True)))

    def do_less(self) -> None:
        """A lower minScore."""
        self._step(-1)

    def do_more(self) -> None:
        """A higher minScore."""
        self._step(1)

    @on(Scatter.Dragged)
    def _dragged(self, event: Scatter.Dragged) -> None:
        self._set(event.key, event.value)

    @on(Scatter.Opened)
    def _read(self) -> None:
        hit = self.picture.hit
        if hit is not None:
            self.read_note(hit.chunk.path, (hit.chunk.start_line, hit.chunk.end_line), self.picture.trace)

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The chunk under the cursor."""
        hit = self.picture.hit if self.is_mounted else None
        return (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line) if hit is not None else None
