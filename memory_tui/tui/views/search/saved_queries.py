"""The saved queries with their judgments, measured under the knobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui import judging
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.judging import Evaluation
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.search.search_judge import Judge
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text

if TYPE_CHECKING:
    from memory_tui.tune.evaluate import QueryChange
    from memory_tui.tune.judgments import Query

WIDE, NARROW, FROM = 13, 7, 100
"""Cells of a metric, before and after or after alone, and the width from which there is room for both."""
MARKS = 11
"""Cells of what is marked."""


def _cell(before: float, after: float, column: int) -> str:
    """`0.81 > 0.84`, or where there is little room `0.84 ▲`."""
    if abs(after - before) < 1e-9:
        return f"{after:.2f}"
    return f"{before:.2f} > {after:.2f}" if column == WIDE else f"{after:.2f} {'▲' if after > before else '▼'}"


class SavedQueriesView(View):
    """A row a question: labels, metrics under the baseline and now, and whether it broke."""

    PLACE = "saved_queries"
    MORE_PLACES = ("notes",)

    def __init__(self, below: View) -> None:
        super().__init__(below)
        self._judge = next(part for part in below.parts if isinstance(part, Judge))

    def compose_view(self) -> Iterable[Widget]:
        """The list alone."""
        yield Rows(id="book")

    def on_mount(self) -> None:
        """What is known already; another program may have written to it since."""
        super().on_mount()
        self._judge.changed.subscribe(self, self._show)
        self._judge.read_again()
        self._show(self._judge.evaluation)

    def _show(self, evaluation: Evaluation) -> None:
        queries = evaluation.notebook.queries if evaluation.notebook is not None else ()
        words = evaluation.progress and f"{evaluation.progress} ..."
        if evaluation.compared is not None:
            parts, tuning = judging.words(evaluation.compared), self.home.tuning
            sides = judging.sides(parts, tuning.baseline.name) if tuning is not None else ""
            words = f"mean{sides}: {'  '.join(parts)}"
        self.query_one(Rows).show(self._lines, f"Saved queries  {len(queries):,}", words, held=1 if queries else 0)
        self.update_hints()

    def _lines(self, width: int) -> list[Line]:
        evaluation = self._judge.evaluation
        queries = evaluation.notebook.queries if evaluation.notebook is not None else ()
        if not queries:
            return [
                *text("", width),
                *text("No saved queries yet.", width, "strong"),
                *text(
                    f"Ask something and press {key_of('save')} to save it; {key_of('judge')} "
                    "marks the hits that answer it.",
                    width,
                    "muted",
                ),
            ]
        changes = {change.text: change for change in evaluation.compared.changes} if evaluation.compared else {}
        column = WIDE if width >= FROM else NARROW
        names = [f" {fit('judged', MARKS - 1)}", *(fit(short, column) for short in judging.SHORT.values()), "query"]
        head: list[Piece] = [(name, "muted") for name in names]
        return [(head, None), *(self._row(query, changes.get(query.text), width, column) for query in queries)]

    def _row(self, query: Query, change: QueryChange | None, width: int, column: int) -> Line:
        marks = "no answer" if query.unanswerable else plural(len(query.labels), "mark") if query.labels else "-"
        pieces: list[Piece] = [(f" {fit(marks, MARKS - 1)}", "muted")]
        for name in judging.SHORT:
            before, after = (change.before[name], change.after[name]) if change else (0.0, 0.0)
            style = "" if after == before else "good" if (after > before) != (name == "noise") else "bad"
            pieces.append((fit(_cell(before, after, column) if change else "", column), style))
        state = "broke " if change and change.gain < 0 else "mended " if change and change.gain > 0 else ""
        pieces.append((state, "bad" if state == "broke " else "good"))
        room = width - MARKS - column * len(judging.SHORT) - len(state) - 1
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
            self._judge.ask(question)

    def do_open(self) -> None:
        """Ask the question under the cursor."""
        self._run()

    def do_forget(self) -> None:
        """Save the question under the cursor no longer, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        question = self.chosen
        query = self._judge.evaluation.query(question)
        if query is None:
            self.show_message("No query is under the cursor.")
            return

        count = plural(len(query.labels), "mark")
        Confirm(
            "Delete this saved query?", f"{one_line(question, 200)}\n\nThis also deletes its {count}.", "Forget"
        ).ask(self.app, lambda _yes: self._judge.change_notebook(judging.forget(question), "Saved query deleted."))
