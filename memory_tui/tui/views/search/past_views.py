"""The view of past questions lists lines that none reached."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import on

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.past_questions import Unreached
    from memory_tui.explain.why_never import UnreachedLines, WhyNever

MONTH = 30
"""Days of questions that are looked at."""


class UnreachedView(View):
    """Lines that nothing delivered in a month; enter reads them, `w` says below why they never come."""

    PLACE = "unreached"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="Lines that no question reached",
            waiting="Reading the log of recalls ...",
            gather=_unreached,
            lines=self._lines,
            summary=lambda found: f"{len(found.lines):,} places in {MONTH} days",
        )
        self.parts = (self.listing,)
        self._told: WhyNever | None = None

    def _lines(self, found: Unreached, width: int) -> list[Line]:
        from memory_tui.render import past_text

        written = [*text(past_text.reach(found), width, "strong"), *text("", width)]
        for one in found.lines:
            written.append(([(f" {one_line(past_text.lines_place(one))}", "")], one))
            if self._told is not None and (self._told.path, self._told.line) == (one.path, one.first):
                said = list(past_text.never(self._told))[1:]
                written += [line for words in said for line in text(one_line(words), width, "muted", 3)]
        return written

    @property
    def lines(self) -> UnreachedLines | None:
        """The lines under the cursor."""
        from memory_tui.explain.why_never import UnreachedLines

        key = self.listing.rows.key
        return key if isinstance(key, UnreachedLines) else None

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines under the cursor."""
        lines = self.lines
        return (lines.path, lines.first, lines.last) if lines is not None else None

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Read the lines in their note."""
        place = self.place_in_note()
        if place is None:
            self.show_message("No line is under the cursor.")
        else:
            self.read_note(place[0], place[1:])

    @task("never")
    async def do_why(self) -> None:
        """Say below the line which gates stop it over the questions of the month, and what one change would do."""
        lines = self.lines
        if lines is None:
            self.show_message("No line is under the cursor.")
            return
        self.show_message("Asking the questions of the month again ...")
        found = await self.home.jobs.attempt(lambda engine: _never(engine, lines))
        if isinstance(found, MemoryTuiError):
            self.show_message(sentence_of(found))
        else:
            self._told = found
            self.listing.show()


def _unreached(engine: Engine) -> Unreached:
    from memory_tui.engine import past_questions

    return past_questions.unreached(engine, past_questions.past_questions(engine, time.time(), MONTH))


def _never(engine: Engine, lines: UnreachedLines) -> WhyNever:
    from memory_tui.engine import past_questions

    asked = past_questions.past_questions(engine, time.time(), MONTH)
    return past_questions.never_of(engine, asked, lines.path, lines.first)
