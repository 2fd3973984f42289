"""The answers of QMD beside those of the built-in index, row by row, with the reason where one lacks a hit.

`gq` asks both every saved query, and measures both where lines are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.render import qmd_text
from memory_tui.tui.draw import Piece, fit, fit_path, wrapped
from memory_tui.tui.judging import JobProgress
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.search.line_question import LineQuestion
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.engine.compare_qmd import QmdComparison, SavedComparison, SavedRow, SharedRow
    from memory_tui.engine.engine import Engine
    from memory_tui.tui.views.search.search_view import SearchView

_RANKS = 15
_NEVER = 1 << 30
"""A rank below every rank."""


class CompareQmdView(View):
    """One question, both answers; QMD is asked here whoever was chosen to answer."""

    PLACE = "compare_qmd"
    MORE_PLACES = ("notes",)
    AUTO_FOCUS = "#sides"

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self.line = LineQuestion(self, self._ask_line)
        self._question = below.question
        self._found: QmdComparison | None = None
        self._saved: SavedComparison | None = None
        self._over_saved = False
        self._asked: tuple[str, str, str] | None = None
        """A line that was asked about, with why each has it or lacks it."""
        self._problem = self._progress = ""

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

        if self._over_saved:
            self._ask_saved()
            return
        question = self._question
        found = await self.home.jobs.stoppable(lambda engine, stop: compare(engine, question, stop))
        if isinstance(found, MemoryTuiError):
            self._found, self._problem = None, sentence_of(found)
        else:
            self._found, self._problem = found, ""
        self._show()

    @task("compare")
    async def _ask_saved(self) -> None:
        """Ask both every saved query, and say how far they are."""
        engine, stop = self.home.engine, Stop()
        if engine is None:
            return
        self._progress, self._problem = "asking both ...", ""
        self._show()
        try:
            async for part in self.home.jobs.parts(_over_saved(engine, stop)):
                if isinstance(part, JobProgress):
                    self._progress = part.words
                else:
                    self._saved, self._progress = part, ""
                self._show()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            self._problem, self._progress = sentence_of(error), ""
            self._show()
        finally:
            stop.set()

    @task("line")
    async def _ask_line(self, path: str, line: int | None) -> None:
        """Why a line is or is not in either answer."""
        from memory_tui.engine.compare_qmd import why_both

        question = self._question
        found = await self.home.jobs.stoppable(lambda engine, stop: why_both(engine, question, path, line, stop))
        if isinstance(found, MemoryTuiError):
            self.show_message(sentence_of(found))
            return
        self._asked = (f"{path}:{line}" if line else path, *found)
        self._show()

    def _show(self) -> None:
        rows = self.query_one(Rows)
        if self._over_saved:
            rows.show(self._saved_lines, "builtin | QMD, saved queries", self._progress)
        else:
            found = self._found
            counts = "asking both ..." if found is None and not self._problem else ""
            if found is not None:
                both = sum(row.builtin is not None and row.qmd is not None for row in found.rows)
                ours, theirs = len(found.builtin) - both, len(found.qmd_hits) - both
                counts = f"both recall {both}, only builtin {ours}, only QMD {theirs}"
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
        if self._asked is not None:
            place, ours, theirs = self._asked
            lines += text(f"{one_line(place)}: builtin: {ours}", width, "warn")
            lines += text(f"QMD: {theirs}", width, "warn", 2)
        lines.append((head, None))
        for number, row in enumerate(found.rows):
            lines += _row(number, row, width)
        if not found.rows:
            lines += text("Neither found anything.", width, "strong")
        if found.qmd is not None:
            for claim in found.qmd.remarks:
                lines += text(one_line(claim.sentence), width, "warn")
        return lines

    def _saved_lines(self, width: int) -> list[Line]:
        """A line a saved query with the rank of its first right hit in both, above them the measures of both."""
        found = self._saved
        if found is None:
            return list(text(self._problem, width, "bad") if self._problem else ())
        lines: list[Line] = []
        if not found.queries:
            lines += text("No saved queries yet.", width, "strong")
            return [
                *lines,
                *text(
                    f"Ask something and press {key_of('save')}; {key_of('judge')} marks the hits that answer it.",
                    width,
                    "muted",
                ),
            ]
        for words in qmd_text.measures(found.builtin, found.qmd, found.labelled):
            lines.append(([(fit(words, width), "muted")], None))
        if found.failure:
            left = found.queries - len(found.rows)
            said = f"QMD gave no answer, and {plural(left, 'query')} had none: {found.failure} {found.next_step}"
            lines += text(one_line(said), width, "warn")
        head = "rank of the first right hit; (hits) where no line is marked"
        lines.append(([(" builtin    QMD ", "head"), (fit(head, width - _RANKS), "muted")], None))
        for row in found.rows:
            place = fit(one_line(row.query), width - _RANKS - 1)
            cells = f"{_cell(row, row.builtin, row.builtin_hits):>8}{_cell(row, row.qmd, row.qmd_hits):>6} "
            better = row.labelled and (row.builtin or _NEVER) != (row.qmd or _NEVER)
            lines.append(([(cells, "strong" if better else ""), (place, "")], row.query))
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
        """Read the note at the cited lines; in the list of saved queries, ask both the one under the cursor."""
        if self._over_saved:
            key = self.query_one(Rows).key
            if isinstance(key, str):
                self._question, self._found, self._asked, self._over_saved = key, None, None, False
                self._show()
                self.do_again()
            return
        place = self.place_in_note()
        if place is None:
            self.show_message("This file is outside the workspace. Choose another row.")
            return
        self.read_note(place[0], (place[1], place[2]))

    def do_saved(self) -> None:
        """Both over every saved query, or one query again."""
        self._over_saved = not self._over_saved
        self._show()
        if (self._saved if self._over_saved else self._found) is None:
            self.do_again()

    def do_line(self) -> None:
        """Ask for a line, and say why either has it or lacks it."""
        self.line.ask()

    def back(self) -> bool:
        """From the saved queries to one query, else back to the view below."""
        if not self._over_saved:
            return super().back()
        self.do_saved()
        return True

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines under the cursor, where they are in the workspace."""
        row = None if self._over_saved else self.row
        if row is None or row.hit.path.startswith("qmd/"):
            return None
        return (row.hit.path, row.hit.start_line, row.hit.end_line)

    def line_in_note(self) -> int:
        """Their first line."""
        place = self.place_in_note()
        return place[1] if place else 1

    def text_in_note(self) -> str:
        """Their text."""
        row = self.row
        return safe(row.hit.snippet, keep_newlines=True) if row is not None else ""


def _over_saved(engine: Engine, stop: Stop) -> Callable[[PostPart], SavedComparison]:
    """Both over the saved queries, as work for a worker."""

    def run(post: PostPart) -> SavedComparison:
        from memory_tui.engine.compare_qmd import compare_saved

        return compare_saved(engine, stop, lambda done, total: post(JobProgress("asking both", done, total)))

    return run


def _cell(row: SavedRow, rank: int, hits: int) -> str:
    """The rank of the first right hit; without labels how many hits there are."""
    return (str(rank) if rank else "-") if row.labelled else f"({hits})"


def _row(number: int, row: SharedRow, width: int) -> Iterable[Line]:
    """Both ranks and the place; below it the reason of the side that lacks it."""
    ours = f"{row.builtin.rank:>8}" if row.builtin is not None else f"{'-':>8}"
    theirs = f"{row.qmd.rank:>6} " if row.qmd is not None else f"{'-':>6} "
    hit = row.hit
    lines = f":{hit.start_line}-{hit.end_line}"
    room = min(width - _RANKS - 1, 36)
    place = fit(fit_path(safe(hit.path), room - len(lines)) + lines, room)
    rest = width - _RANKS - room - 2
    snippet = fit(f"  {one_line(hit.snippet[:300])}", rest) if rest > 8 else ""
    yield [(f"{ours}{theirs}", "strong"), (place, ""), (snippet, "muted")], number
    for side, why in (("builtin", row.why_not_builtin), ("QMD", row.why_not_qmd)):
        for at, line in enumerate(wrapped(one_line(f"not {side}: {why}"), width - _RANKS - 1) if why else ()):
            yield [(" " * (_RANKS + (at > 0)), ""), (line, "warn")], None
