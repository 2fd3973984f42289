"""The answers of QMD beside those of the built-in index, row by row, with the reason where one lacks a hit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path, wrapped
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.compare_qmd import QmdComparison, SharedRow
    from memory_tui.tui.views.search.search_view import SearchView

_RANKS = 15


class CompareQmdView(View):
    """One question, both answers; QMD is asked here whoever was chosen to answer."""

    PLACE = "compare_qmd"
    MORE_PLACES = ("notes",)
    AUTO_FOCUS = "#sides"

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self._question = below.question
        self._found: QmdComparison | None = None
        self._problem = ""

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="sides")

    def on_mount(self) -> None:
        """Begin to ask."""
        super().on_mount()
        self._show()
        self.do_again()

    @task("compare")
    async def do_again(self) -> None:
        """Ask both, once more where that was done before."""
        from memory_tui.engine.compare_qmd import compare

        question = self._question
        found = await self.home.jobs.stoppable(lambda engine, stop: compare(engine, question, stop))
        if isinstance(found, MemoryTuiError):
            self._found, self._problem = None, sentence_of(found)
        else:
            self._found, self._problem = found, ""
        self._show()

    def _show(self) -> None:
        rows = self.query_one(Rows)
        found = self._found
        counts = "asking both ..." if found is None and not self._problem else ""
        if found is not None:
            both, ours = (
                sum(bool(row.builtin) and bool(row.qmd) == twice for row in found.rows) for twice in (True, False)
            )
            counts = f"both recall {both}, only builtin {ours}, only QMD {len(found.rows) - both - ours}"
        rows.show(self._lines, "builtin | QMD", counts)
        self.update_hints()

    # --- rows ----------------------------------------------------------------------------------------------------

    def _lines(self, width: int) -> list[Line]:
        asked = text(f"for: {one_line(self._question, 200)}", width, "muted")
        found = self._found
        if found is None:
            return [*asked, *(text(self._problem, width, "bad") if self._problem else ())]
        head: list[Piece] = [(" builtin    QMD ", "head"), ("place", "muted")]
        lines: list[Line] = [*asked]
        if found.failure:
            lines += text(f"QMD gave no answer: {one_line(f'{found.failure} {found.next_step}')}", width, "warn")
        lines.append((head, None))
        for number, row in enumerate(found.rows):
            lines += _row(number, row, width)
        if not found.rows:
            lines += text("Neither found anything.", width, "strong")
        if found.qmd is not None:
            for claim in found.qmd.remarks:
                lines += text(one_line(claim.sentence), width, "warn")
        return lines

    @property
    def row(self) -> SharedRow | None:
        """What is under the cursor."""
        key = self.query_one(Rows).key
        rows = self._found.rows if self._found is not None else ()
        return rows[key] if isinstance(key, int) and key < len(rows) else None

    # --- actions -------------------------------------------------------------------------------------------------

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.update_hints()

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Read the note at the cited lines."""
        place = self.place_in_note()
        if place is None:
            self.show_message("This file is outside the workspace. Choose another row.")
            return
        self.read_note(place[0], (place[1], place[2]))

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines under the cursor, where they are in the workspace."""
        row = self.row
        if row is None or row.path.startswith("qmd/"):
            return None
        return (row.path, row.start_line, row.end_line)

    def line_in_note(self) -> int:
        """Their first line."""
        place = self.place_in_note()
        return place[1] if place else 1

    def text_in_note(self) -> str:
        """Their text."""
        row = self.row
        return safe(row.snippet, keep_newlines=True) if row is not None else ""


def _row(number: int, row: SharedRow, width: int) -> Iterable[Line]:
    """Both ranks and the place; below it the reason of the side that lacks it."""
    ours = f"{row.builtin or '-':>8}"
    theirs = f"{row.qmd or '-':>6} "
    hit = row
    lines = f":{hit.start_line}-{hit.end_line}"
    room = min(width - _RANKS - 1, 36)
    place = fit(fit_path(safe(hit.path), room - len(lines)) + lines, room)
    rest = width - _RANKS - room - 2
    snippet = fit(f"  {one_line(hit.snippet[:300])}", rest) if rest > 8 else ""
    yield [(f"{ours}{theirs}", "strong"), (place, ""), (snippet, "muted")], number
    for side, why in (("builtin", row.why_not_builtin), ("QMD", row.why_not_qmd)):
        for at, line in enumerate(wrapped(one_line(f"not {side}: {why}"), width - _RANKS - 1) if why else ()):
            yield [(" " * (_RANKS + (at > 0)), ""), (line, "warn")], None
