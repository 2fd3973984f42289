"""The part of the search view that judges hits, tunes knobs, keeps saved queries."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Static

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.events import Event, SyncFinished
from memory_tui.core.sanitize import one_line, safe
from memory_tui.core.settings import Scalar
from memory_tui.search.trace import Candidate, ChunkRef, Trace
from memory_tui.tui import judging as desks
from memory_tui.tui.draw import Piece, fit, fit_path, plural
from memory_tui.tui.judging import Desk, Progress
from memory_tui.tui.keymap import bindings
from memory_tui.tui.tuning import OPENED, Answer, Tuning, brought, changes, summary
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.results import Results
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.workers import Worked

if TYPE_CHECKING:
    from memory_tui.tune.evaluate import Case, Change, Comparison
    from memory_tui.tune.judgments import Notebook, Query

    NotebookChange = Callable[[Notebook], Notebook]


class Turning(View):
    """Knobs, undo and baselines; subclasses keep the answer and list it."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer | None:
        """What was found, and how it ranks."""
        return self._answer

    @property
    def trace(self) -> Trace | None:
        """The ranking on screen."""
        return self._answer.trace if self._answer else None

    def relist(self, *, keep: bool) -> None:
        """List the answer anew; with `keep` the cursor stays on its chunk."""
        raise NotImplementedError

    def explain(self) -> None:
        """Explain the hit under the cursor."""
        raise NotImplementedError

    def ask_again(self, question: str) -> None:
        """Put `question` into the box and ask it."""
        raise NotImplementedError

    def tuned(self, *, keep: bool = True) -> None:
        """Rank the same evidence under the knobs as they are now."""
        tuning, engine = self.home.tuning, self.home.engine
        if tuning is not None and engine is not None and self._answer is not None:
            self._answer = Answer.of(engine.queries.rank, self._answer.evidence, tuning, self._answer)
            self.relist(keep=keep)
        else:
            self.show_knobs()
            self.update_hints()

    def show_knobs(self) -> None:
        """Bring the strip up to date."""
        tuning = self.home.tuning
        if tuning is None:
            return
        verdict = ""
        if tuning.compared and self._answer is not None:
            verdict = summary(changes(self._answer.trace, self._answer.baseline))
        self.query_one(TuneStrip).show(tuning, verdict)

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

    def _turn(self, step: str) -> None:
        if self.home.tuning is not None:
            found: Tuning = getattr(self.home.tuning, step)()
            self.home.turn(found)

    def do_undo(self) -> None:
        """Undo the last step: a knob, a change that was applied, the date or the baseline."""
        self.take_back()

    def do_redo(self) -> None:
        """Redo it."""
        before = self.home.tuning
        if before is not None and before.future:
            self._turn("redo")
            self.say(f"Made again: {brought(before.stand, before.future[0])}.")

    def do_reset_all(self) -> None:
        """All knobs as the app was opened."""
        self._turn("reset_all")

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
            self.say(f"Baseline {base.name} is set: {base.title}. Further turns are compared with it; u takes it back.")

        value = tuning.difference() or tuning.written or OPENED
        title = f"Baseline {tuning.next_letter}: a name for the knobs as they are now"
        self.app.push_screen(Prompt(title, "a name", value), take)

    def do_tune(self) -> None:
        """Go to the knobs."""
        self.query_one(TuneStrip).focus()


SETTLES = 10
"""Questions after which what was gathered is settled: it stays for as long as it is measured, and looking through it
for garbage would stop the screen."""
NO_LABELS = "v judges a hit; then every turn is measured on the questions you judged"


class Judging(Turning):
    """Labels of the question on screen, and metrics of all saved questions under the knobs."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self._pending: deque[NotebookChange] = deque()
        self._measuring = False
        self._asking = False
        self._saying = ""

    # --- the notebook --------------------------------------------------------------------------------------------

    def read_notebook(self) -> None:
        """Read the saved questions of the workspace; they come when they are read."""
        if self.home.engine is not None:
            self.home.bridge.follow("notebook", desks.write(self.home.engine, self._pending))

    def change_notebook(self, change: NotebookChange, said: str) -> None:
        """Make `change` on disk, and say `said` when it is there."""
        self._pending.append(change)
        self._saying = said
        self.read_notebook()

    def worked(self, event: Worked) -> None:
        """The notebook was read, questions were asked, knobs were measured."""
        match event.kind:
            case "notebook" if event.done:
                self._notebook_came(event)
            case "cases":
                self._cases_came(event)
            case "measure" if event.done and event.error is None:
                self.desk = replace(self.desk, compared=cast("Comparison", event.value))
                self.show_measures()
            case _:
                pass
        super().worked(event)

    def _notebook_came(self, event: Worked) -> None:
        said, self._saying = self._saying, ""
        if event.error is not None:
            self.tell_error(event.error)
            return
        self.desk = self.desk.labelled(cast("Notebook", event.value))
        if said:
            self.say(said)
        self.query_one(Results).marked(self.grade)
        self.explain()
        self.show_measures()
        if said or self._measuring:
            self.measure()

    def tell_error(self, error: MemoryTuiError) -> None:
        """Say what went wrong in the background."""
        self.say(f"{error.message} {error.next_step}".strip())

    def grade(self, chunk: ChunkRef) -> int | None:
        """What labels of the question on screen make of a chunk."""
        return self.desk.grade(self.question, chunk)

    # --- measuring -----------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Measure the knobs on the saved questions; those not asked yet are asked first."""
        engine, tuning = self.home.engine, self.home.tuning
        if engine is None or tuning is None or not self.desk.judged:
            return
        self._measuring = True
        missing = self.desk.missing()
        if self._asking:
            # What is asked already is not asked again because a knob was turned meanwhile.
            return
        if missing:
            self._asking = True
            self.home.bridge.follow("cases", desks.collect(engine, missing))
        else:
            cases = tuple(self.desk.cases[query.text] for query in self.desk.judged)
            self.home.bridge.follow("measure", desks.measure(cases, tuning))

    def _cases_came(self, event: Worked) -> None:
        self._asking = not event.done
        if event.error is not None:
            self.desk = replace(self.desk, progress="")
            self.tell_error(event.error)
        elif isinstance(event.value, Progress):
            self.desk = replace(self.desk, progress=event.value.words)
            if event.value.done % SETTLES == 0:
                gc.freeze()
        elif event.done:
            found = cast("dict[str, Case]", event.value)
            self.desk = replace(self.desk, cases={**self.desk.cases, **found}, progress="")
            gc.freeze()
            if self.desk.notebook is not None:
                self.desk = self.desk.labelled(self.desk.notebook)
            self.measure()
        self.show_measures()

    def tuned(self, *, keep: bool = True) -> None:
        """Rank anew, and measure."""
        super().tuned(keep=keep)
        self.measure()

    def show_measures(self) -> None:
        """Bring the line of metrics up to date."""
        desk = self.desk
        if desk.progress:
            parts = [f"{desk.progress} ..."]
        elif desk.compared is not None:
            sums = desks.words(desk.compared)
            asked = [change.text for change in desk.compared.changes]
            own = desks.words(desk.compared, self.question) if self.question in asked and len(asked) > 1 else []
            parts = [f"{len(desk.compared.changes)} labelled: {sums[0]}", *sums[1:]]
            parts += [f"this question: {own[0]}", *own[1:]] if own else []
        else:
            count = len(desk.judged)
            parts = [f"{count} labelled; t turns the knobs and measures them"] if count else [NO_LABELS]
        self.query_one(TuneStrip).measured(parts, known=bool(desk.judged))

    def events_came(self, events: Sequence[Event], /) -> None:
        """Notes changed, so what the index knows about the saved questions is out of date."""
        if any(isinstance(e, SyncFinished) and e.indexed + e.removed for e in events) and self.desk.cases:
            self.desk = replace(self.desk, cases={}, compared=None)
            self.read_notebook()

    # --- actions -------------------------------------------------------------------------------------------------

    def do_tune(self) -> None:
        """Go to the knobs, and measure them."""
        super().do_tune()
        if self.desk.compared is None:
            self.measure()

    def do_vote(self) -> None:
        """Judge the hit under the cursor for this question."""

        hit = self.query_one(Results).hit
        shown, question = self._answer, self.question
        if hit is not None and shown is not None:
            # What stands in the list when the answer comes may be another hit, even of another question.
            self.app.push_screen(
                Vote(f"{hit.chunk.path}:{hit.chunk.start_line}-{hit.chunk.end_line}"),
                lambda grade: self._voted(grade, hit, shown, question),
            )

    def _voted(self, grade: int | None, hit: Candidate, shown: Answer, question: str) -> None:

        if grade is None:
            return
        if grade == UNKNOWN:
            self.change_notebook(
                desks.keep(question, unanswerable=True),
                "Saved: the notes do not answer this question, so every hit is noise.",
            )
        elif grade == TAKEN_BACK:
            self.change_notebook(desks.vote(question, hit.chunk, None), "The mark is taken back.")
        else:
            text = shown.evidence.texts.get(hit.chunk.rowid, hit.snippet)
            label = desks.marked(hit, shown.trace, text, grade)
            word = {0: "wrong", 1: "helpful"}.get(grade, "right")
            self.change_notebook(
                desks.vote(question, hit.chunk, label), f"Marked {word}: line {label.line} of {label.path}."
            )

    def do_save(self) -> None:
        """Keep the question in the notebook."""
        self.change_notebook(
            desks.keep(self.question), "The question is saved; v marks which hits answer it, B lists what is saved."
        )

    def do_noise(self) -> None:
        """What unrelated questions score, and whether minScore can keep them out."""
        from memory_tui.tui.views.search.lab import NoiseView

        self.app.push_screen(NoiseView(self))

    def do_fading(self) -> None:
        """What age has taken and will take."""
        from memory_tui.tui.views.search.lab import FadingView

        self.measure()
        self.app.push_screen(FadingView(self))

    def do_sweep(self) -> None:
        """Look for better knobs by the saved questions."""
        from memory_tui.tui.views.search.lab import SweepView

        self.app.push_screen(SweepView(self))

    def do_write(self) -> None:
        """Show what writing the knobs would change."""
        from memory_tui.tui.views.search.write_config import WriteView

        self.app.push_screen(WriteView(self))

    def do_book(self) -> None:
        """List the saved questions."""

        # Another program may have written to it since.
        self._measuring = True
        self.read_notebook()
        self.app.push_screen(BookView(self))


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
        from memory_tui.tui.views.dialogs import Confirm

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
