"""The part of the search view that judges hits, tunes knobs, keeps saved queries."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.signal import Signal
from textual.widget import Widget
from textual.widgets import Button, Static

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.events import Event, SyncFinished
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.core.settings import Scalar
from memory_tui.search.trace import Candidate, ChunkRef, Trace
from memory_tui.tui import judging as desks
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.judging import Desk, JobProgress
from memory_tui.tui.keymap import bindings
from memory_tui.tui.tuning import OPENED, Answer, Tuning, changes, summary
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.tune.evaluate import Case, QueryChange
    from memory_tui.tune.judgments import Notebook, Query

    NotebookChange = Callable[[Notebook], Notebook]


class ShownAnswer:
    """What the search view shows: the answer, and the question that was asked last."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.asked = ""

    @property
    def question(self) -> str:
        """The question whose answer is on screen."""
        return self.asked if self.answer is not None else ""

    @property
    def trace(self) -> Trace | None:
        """The ranking on screen."""
        return self.answer.trace if self.answer is not None else None


class Knobs(Part):
    """Turns knobs and sets baselines; `relist` shows the answer that is ranked anew."""

    def __init__(self, view: View, shown: ShownAnswer, relist: Callable[[bool], None]) -> None:
        super().__init__(view)
        self._shown, self._relist = shown, relist

    def compose(self) -> Iterable[Widget]:
        """The strip."""
        yield TuneStrip(self)

    def tuned(self, *, keep: bool = True) -> None:
        """Rank the same evidence under the knobs as they are now."""
        tuning, engine, shown = self.home.tuning, self.home.engine, self._shown
        if tuning is not None and engine is not None and shown.answer is not None:
            shown.answer = Answer.of(engine.queries.rank, shown.answer.evidence, tuning, shown.answer)
            self._relist(keep)
        else:
            self.show()
            self.update_hints()

    def show(self) -> None:
        """Bring the strip up to date."""
        tuning, answer = self.home.tuning, self._shown.answer
        if tuning is None:
            return
        verdict = ""
        if tuning.compared and answer is not None:
            verdict = summary(changes(answer.trace, answer.baseline))
        self.view.query_one(TuneStrip).show(tuning, verdict)

    def context(self) -> dict[str, bool]:
        """Whether knobs were turned or written."""
        tuning = self.home.tuning
        return {"tuned": bool(tuning and tuning.tuned), "written": bool(tuning and tuning.writes)}

    def turn_knob(self, key: str, value: Scalar) -> None:
        """Turn the knob `key` to `value`; a profile sets every knob that was not chosen."""
        tuning, engine = self.home.tuning, self.home.engine
        if tuning is None or engine is None:
            return
        if key == "profile":
            self.home.turn(tuning.to(engine.plan.with_profile(str(value))))
        else:
            self.home.turn(tuning.set(key, value))

    def reset_knob(self, key: str) -> None:
        """Turn the knob `key` back to how the app was opened; with the profile, all of them."""
        tuning = self.home.tuning
        if tuning is not None:
            self.home.turn(tuning.reset_all() if key == "profile" else tuning.reset(key))

    def say(self, sentence: str) -> None:
        """Say why a knob does not turn."""
        self.view.say(sentence)

    def do_reset_all(self) -> None:
        """All knobs as the app was opened."""
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.reset_all())

    def do_base(self) -> None:
        """Compare with the knobs as they are now from here on, under a name."""
        tuning = self.home.tuning
        if tuning is None:
            return
        from memory_tui.tui.views.dialogs import Prompt

        def take(name: str | None) -> None:
            if name is None or self.home.tuning is None:
                return
            self.home.turn(self.home.tuning.rebase(name))
            base = self.home.tuning.baseline
            self.view.say(
                f"Baseline {base.name} is set: {base.title}. The list now compares each turn with it; u undoes it."
            )

        value = tuning.difference() or tuning.written or OPENED
        title = f"Baseline {tuning.next_letter}: a name for the knobs as they are now"
        self.view.app.push_screen(Prompt(title, "a name", value), take)


SETTLES = 10
"""Questions after which what was gathered is settled: it stays for as long as it is measured, and looking through it
for garbage would stop the screen."""
NO_LABELS = "Press v to judge a hit; each turn is then measured on your judged questions"


class Judge(Part):
    """Labels of the question on screen, and metrics of all saved questions under the knobs.

    `explain` explains the hit under the cursor anew, `ask` asks a question in the search view.
    """

    def __init__(self, view: View, shown: ShownAnswer, explain: Callable[[], None], ask: Callable[[str], None]) -> None:
        super().__init__(view)
        self._shown, self._explain, self.ask = shown, explain, ask
        self.desk = Desk()
        self.changed: Signal[Desk] = Signal(view, "desk")
        self._pending: deque[NotebookChange] = deque()
        self._measuring = False
        self._asking = False

    # --- the notebook --------------------------------------------------------------------------------------------

    @task("notebook", exclusive=False)
    async def read_notebook(self, sentence: str = "") -> None:
        """Read the saved questions of the workspace, make pending changes, and say `sentence` when that is done."""
        notebook = await self.home.jobs.write(lambda engine: desks.edit_notebook(engine, self._pending))
        self.desk = self.desk.labelled(notebook)
        if sentence:
            self.view.say(sentence)
        self.view.query_one(HitList).marked(self.grade)
        self._explain()
        self.show_measures()
        if sentence or self._measuring:
            self.measure()

    def read_again(self) -> None:
        """Read the saved questions, which another program may have changed, and measure them."""
        self._measuring = True
        self.read_notebook()

    def change_notebook(self, change: NotebookChange, sentence: str) -> None:
        """Make `change` on disk, and say `sentence` when it is there."""
        self._pending.append(change)
        self.read_notebook(sentence)

    def grade(self, chunk: ChunkRef) -> int | None:
        """What labels of the question on screen make of a chunk."""
        return self.desk.grade(self._shown.question, chunk)

    # --- measuring -----------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Measure the knobs on the saved questions; those not asked yet are asked first."""
        tuning = self.home.tuning
        if self.home.engine is None or tuning is None or not self.desk.judged:
            return
        self._measuring = True
        if self._asking:
            # What is asked already is not asked again because a knob was turned meanwhile.
            return
        if self.desk.missing():
            self._asking = True
            self._collect(self.home.engine)
        else:
            self._compare(tuning)

    @task("cases")
    async def _collect(self, engine: Engine) -> None:
        """Ask the saved questions that were not asked yet, then measure."""
        try:
            async for part in self.home.jobs.parts(desks.collect(engine, self.desk.missing())):
                if isinstance(part, JobProgress):
                    self.desk = replace(self.desk, progress=part.words)
                    if part.done % SETTLES == 0:
                        gc.freeze()
                    self.show_measures()
                else:
                    self._collected(part)
        finally:
            self._asking = False
            self.desk = replace(self.desk, progress="")
        self.measure()
        self.show_measures()

    def _collected(self, found: Mapping[str, Case]) -> None:
        self.desk = replace(self.desk, cases={**self.desk.cases, **found})
        gc.freeze()
        if self.desk.notebook is not None:
            self.desk = self.desk.labelled(self.desk.notebook)

    @task("measure")
    async def _compare(self, tuning: Tuning) -> None:
        cases = tuple(self.desk.cases[query.text] for query in self.desk.judged)
        async for compared in self.home.jobs.parts(desks.measure(cases, tuning)):
            self.desk = replace(self.desk, compared=compared)
        self.show_measures()

    def tuned(self, *, keep: bool = True) -> None:
        """Measure the knobs as they are now."""
        del keep
        self.measure()

    def refused(self, error: MemoryTuiError) -> None:
        """Say why, and show what is known."""
        super().refused(error)
        self.show_measures()

    def show_measures(self) -> None:
        """Bring the line of metrics up to date, and whatever else shows them."""
        self.view.query_one(TuneStrip).measured(self._words(), known=bool(self.desk.judged))
        self.changed.publish(self.desk)

    def _words(self) -> list[str]:
        desk, question = self.desk, self._shown.question
        if desk.progress:
            return [f"{desk.progress} ..."]
        if desk.compared is None:
            count = len(desk.judged)
            return [f"{count} labelled; t turns the knobs and measures them"] if count else [NO_LABELS]
        sums = desks.words(desk.compared)
        asked = [change.text for change in desk.compared.changes]
        own = desks.words(desk.compared, question) if question in asked and len(asked) > 1 else []
        parts = [f"{len(desk.compared.changes)} labelled: {sums[0]}", *sums[1:]]
        return [*parts, *([f"this question: {own[0]}", *own[1:]] if own else [])]

    def events_came(self, events: Sequence[Event], /) -> None:
        """Notes changed, so what the index knows about the saved questions is out of date."""
        if any(isinstance(e, SyncFinished) and e.indexed + e.removed for e in events) and self.desk.cases:
            self.desk = replace(self.desk, cases={}, compared=None)
            self.read_notebook()

    # --- actions -------------------------------------------------------------------------------------------------

    def do_tune(self) -> None:
        """Go to the knobs, and measure them."""
        self.view.query_one(TuneStrip).focus()
        if self.desk.compared is None:
            self.measure()

    def do_vote(self) -> None:
        """Judge the hit under the cursor for this question."""
        hit = self.view.query_one(HitList).hit
        answer, question = self._shown.answer, self._shown.question
        if hit is not None and answer is not None:
            # What stands in the list when the answer comes may be another hit, even of another question.
            self.view.app.push_screen(
                Vote(f"{hit.chunk.path}:{hit.chunk.start_line}-{hit.chunk.end_line}"),
                lambda grade: self._voted(grade, hit, answer, question),
            )

    def _voted(self, grade: int | None, hit: Candidate, answer: Answer, question: str) -> None:
        if grade is None:
            return
        if grade == UNKNOWN:
            self.change_notebook(
                desks.keep(question, unanswerable=True),
                "Saved. The notes do not answer this question, so every hit is noise.",
            )
        elif grade == TAKEN_BACK:
            self.change_notebook(desks.vote(question, hit.chunk, None), "Mark removed.")
        else:
            text = answer.evidence.texts.get(hit.chunk.rowid, hit.snippet)
            label = desks.marked(hit, answer.trace, text, grade)
            word = {0: "wrong", 1: "helpful"}.get(grade, "right")
            self.change_notebook(
                desks.vote(question, hit.chunk, label), f"Marked {word}: line {label.line} of {label.path}."
            )

    def do_save(self) -> None:
        """Keep the question in the notebook."""
        self.change_notebook(
            desks.keep(self._shown.question),
            "Query saved. Press v to mark the hits that answer it, B to list saved queries.",
        )


TAKEN_BACK, UNKNOWN = -1, -2
"""Answers beside grades: no mark any more, and the notes do not answer this question at all."""

CHOICES: tuple[tuple[str, str, int], ...] = (
    ("y", "answers (2)", 2),
    ("1", "helps", 1),
    ("n", "wrong (0)", 0),
    ("-", "take back", TAKEN_BACK),
    ("x", "the notes do not know", UNKNOWN),
)


class Vote(ModalScreen[int | None]):
    """A strip of choices; esc leaves things as they are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,2", "vote(2)", "Answers"),
        Binding("1", "vote(1)", "Helps"),
        Binding("n,0", "vote(0)", "Wrong"),
        Binding("minus", f"vote({TAKEN_BACK})", "Take back"),
        Binding("x", f"vote({UNKNOWN})", "Unknown"),
        Binding("escape,q", "leave", "Leave"),
    ]

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose(self) -> ComposeResult:
        """What is judged, and a button for each choice."""
        with Vertical(id="vote") as frame:
            frame.border_title = Content("Is this hit right for the question?")
            yield Static(Content(fit_path(safe(self._place), 70)), id="voted")
            with Vertical(id="choices"):
                yield from self._buttons()

    def _buttons(self) -> Iterable[Button]:
        for key, words, grade in CHOICES:
            yield Button(
                Content.assemble((f" {key} ", "bold $primary"), f" {words}"), id=f"grade{grade + 2}", compact=True
            )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click is its key."""
        event.stop()
        self.dismiss(int(str(event.button.id).removeprefix("grade")) - 2)

    def action_vote(self, grade: int) -> None:
        """Judge by key."""
        self.dismiss(grade)

    def action_leave(self) -> None:
        """Never mind."""
        self.dismiss(None)


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
        self._show(self._judge.desk)

    def _show(self, desk: Desk) -> None:
        queries = desk.notebook.queries if desk.notebook is not None else ()
        said = desk.progress and f"{desk.progress} ..."
        if desk.compared is not None:
            said = f"mean: {'  '.join(desks.words(desk.compared))}"
        self.query_one(Rows).show(self._lines, f"Saved questions  {len(queries):,}", said)
        self.update_hints()

    def _lines(self, width: int) -> list[Line]:
        desk = self._judge.desk
        queries = desk.notebook.queries if desk.notebook is not None else ()
        if not queries:
            return [
                *text("", width),
                *text("No saved queries yet.", width, "strong"),
                *text("Ask something and press ctrl+s to save it; v marks the hits that answer it.", width, "muted"),
            ]
        changes = {change.text: change for change in desk.compared.changes} if desk.compared else {}
        column = WIDE if width >= FROM else NARROW
        head: list[Piece] = [(" " * MARKS, ""), *((fit(short, column), "muted") for short in desks.SHORT.values())]
        return [(head, None), *(self._row(query, changes.get(query.text), width, column) for query in queries)]

    def _row(self, query: Query, change: QueryChange | None, width: int, column: int) -> Line:
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
            self._judge.ask(question)

    def do_open(self) -> None:
        """Ask the question under the cursor."""
        self._run()

    def do_forget(self) -> None:
        """Save the question under the cursor no longer, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        question = self.chosen
        query = self._judge.desk.query(question)
        if query is None:
            self.say("No question is under the cursor.")
            return

        def answer(yes: bool | None) -> None:
            if yes:
                self._judge.change_notebook(desks.forget(question), "Saved query deleted.")

        count = plural(len(query.labels), "mark")
        self.app.push_screen(
            Confirm(
                "Delete this saved query?", f"{one_line(question, 200)}\n\nThis also deletes its {count}.", "Forget"
            ),
            answer,
        )
