"""A listing is what a worker thread gathered, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.widget import Widget

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui.views.view import Part, View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


F = TypeVar("F")


class Listing(Part, Generic[F]):
    """A list of what `gather` finds on a worker thread, written by `lines`; `summary` stands in the frame.

    `arrived` is called with what is found first. Without `gather` the view itself fills `found`.
    """

    def __init__(
        self,
        view: View,
        *,
        title: str,
        waiting: str,
        gather: Callable[[Engine], F] | None,
        lines: Callable[[F, int], list[Line]],
        summary: Callable[[F], str] = lambda _found: "",
        arrived: Callable[[F], None] = lambda _found: None,
    ) -> None:
        super().__init__(view)
        self._title, self._waiting = title, waiting
        self._gather, self._lines, self._summary, self._arrived = gather, lines, summary, arrived
        self._problem = ""
        self.rows = Rows(id="listing")
        self.found: F | None = None

    def compose(self) -> Iterable[Widget]:
        """The list alone."""
        yield self.rows

    def mounted(self) -> None:
        """Begin."""
        self.do_again()

    @task("listing")
    async def do_again(self) -> None:
        """Gather, once more where that was done before; what was there stays until then."""
        self.show()
        if self._gather is None:
            return
        found = await self.home.jobs.attempt(self._gather)
        if isinstance(found, MemoryTuiError):
            self._problem = sentence_of(found)
            self.show()
        else:
            first, self._problem, self.found = self.found is None, "", found
            self.show()
            if first:
                self._arrived(found)

    def show(self) -> None:
        """Draw what is known by now."""
        self.rows.show(self._write, self._title, "" if self.found is None else self._summary(self.found))
        self.view.update_hints()

    def _write(self, width: int) -> list[Line]:
        if self._problem:
            return [*text("", width), *text(one_line(self._problem), width, "bad")]
        return text(self._waiting, width, "muted") if self.found is None else self._lines(self.found, width)
