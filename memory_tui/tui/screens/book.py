"""The saved questions with their scores, before and after; enter asks one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from memory_tui.text.display import one_line
from memory_tui.tui import desk as desks
from memory_tui.tui.actions import bindings
from memory_tui.tui.messages import Worked
from memory_tui.tui.paint import Piece, fit, plural
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Line, Rows, text

if TYPE_CHECKING:
    from memory_tui.tui.screens.judging import Judging
    from memory_tui.tune.evaluate import Change
    from memory_tui.tune.labels import Query

WIDE, NARROW, FROM = 13, 7, 100
"""Cells of a metric, before and after or after alone, and the width from which there is room for both."""
MARKS = 11
"""Cells of what is marked."""


def _cell(before: float, after: float, column: int) -> str:
    """`0.81 > 0.84`, or where there is little room `0.84 ▲`."""
    if abs(after - before) < 1e-9:
        return f"{after:.2f}"
    return f"{before:.2f} > {after:.2f}" if column == WIDE else f"{after:.2f} {'▲' if after > before else '▼'}"


class BookView(View):
    """A row a question: labels, metrics under the baseline and now, and whether it broke."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("book"))
    PLACE = "book"
    AUTO_FOCUS = "#book"

    def __init__(self, search: Judging) -> None:
        super().__init__()
        self._search = search

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="book")

    def on_mount(self) -> None:
        """What is known already."""
        super().on_mount()
        self._show()

    def worked(self, event: Worked) -> None:
        """The search view keeps the desk; look at it when it has heard the same news."""
        if event.kind in ("notebook", "cases", "measure"):
            self.call_later(self._show)

    def _show(self) -> None:
        desk = self._search.desk
        queries = desk.notebook.queries if desk.notebook is not None else ()
        said = desk.progress and f"{desk.progress} ..."
        if desk.compared is not None:
            said = f"mean: {'  '.join(desks.words(desk.compared))}"
        self.query_one(Rows).show(self._lines, f"Saved questions  {len(queries):,}", said)
        self.update_hints()

    def _lines(self, width: int) -> list[Line]:
        desk = self._search.desk
        queries = desk.notebook.queries if desk.notebook is not None else ()
        if not queries:
            return [
                *text("", width),
                *text("No question is saved yet.", width, "strong"),
                *text("Ask something, then ctrl+s saves it; v marks which hits answer it.", width, "muted"),
            ]
        changes = {change.text: change for change in desk.compared.changes} if desk.compared else {}
        column = WIDE if width >= FROM else NARROW
        head: list[Piece] = [(" " * MARKS, ""), *((fit(short, column), "muted") for short in desks.SHORT.values())]
        return [(head, None), *(self._row(query, changes.get(query.text), width, column) for query in queries)]

    def _row(self, query: Query, change: Change | None, width: int, column: int) -> Line:
        marks = "no answer" if query.unanswerable else plural(len(query.labels), "mark") if query.labels else "-"
        pieces: list[Piece] = [(f" {fit(marks, MARKS - 1)}", "muted")]
        for name in desks.SHORT:
            before, after = (change.before[name], change.after[name]) if change else (0.0, 0.0)
            style = "" if after == before else "good" if (after > before) != (name == "noise") else "bad"
            pieces.append((fit(_cell(before, after, column) if change else "", column), style))
        state = "broke " if change and change.broke else "mended " if change and change.mended else ""
        pieces.append((state, "bad" if state == "broke " else "good"))
        room = width - MARKS - column * len(desks.SHORT) - len(state) - 1
        return [*pieces, (fit(one_line(query.text), room), "")], query.text

    @property
    def chosen(self) -> str:
        """The question under the cursor."""
        key = self.query_one(Rows).key
        return key if isinstance(key, str) else ""

    @on(RowList.Chosen)
    def _run(self) -> None:
        if self.chosen:
            question = self.chosen
            self.app.pop_screen()
            self._search.ask_again(question)

    def do_open(self) -> None:
        """Ask the question under the cursor."""
        self._run()

    def do_forget(self) -> None:
        """Save the question under the cursor no longer, after asking."""
        from memory_tui.tui.screens.confirm import Confirm

        question = self.chosen
        query = self._search.desk.query(question)
        if query is None:
            self.say("No question is under the cursor.")
            return

        def answer(yes: bool | None) -> None:
            if yes:
                self._search.change_notebook(desks.forget(question), "The question is not saved any more.")

        count = plural(len(query.labels), "mark")
        self.app.push_screen(
            Confirm("Forget this question?", f"{one_line(question, 200)}\n\nIts {count} are lost.", "Forget"), answer
        )

    def back(self) -> bool:
        """Back to the search."""
        self.app.pop_screen()
        return True
