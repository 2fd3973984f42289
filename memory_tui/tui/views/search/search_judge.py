"""The part of the search view that judges: votes, saved questions, and how the knobs do on them."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.search.trace import Candidate, ChunkRef
from memory_tui.tui import desk as desks
from memory_tui.tui.desk import Desk
from memory_tui.tui.messages import Worked
from memory_tui.tui.screens.turning import Turning
from memory_tui.tui.session import Answer
from memory_tui.tui.tasks import Progress
from memory_tui.tui.widgets.results import Results
from memory_tui.tui.widgets.tune_strip import TuneStrip

if TYPE_CHECKING:
    from memory_tui.tune.evaluate import Case, Comparison
    from memory_tui.tune.labels import Notebook

    Change = Callable[[Notebook], Notebook]

SETTLES = 10
"""Questions after which what was gathered is settled: it stays for as long as it is measured, and looking through it
for garbage would stop the screen."""
NO_LABELS = "v judges a hit; then every turn is measured on the questions you judged"


class Judging(Turning):
    """Labels of the question on screen, and metrics of all saved questions under the knobs."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self._pending: deque[Change] = deque()
        self._measuring = False
        self._asking = False
        self._saying = ""

    # --- the notebook --------------------------------------------------------------------------------------------

    def read_notebook(self) -> None:
        """Read the saved questions of the workspace; they come when they are read."""
        if self.home.engine is not None:
            self.home.bridge.follow("notebook", desks.write(self.home.engine, self._pending))

    def change_notebook(self, change: Change, said: str) -> None:
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
        from memory_tui.tui.screens.vote import Vote

        hit = self.query_one(Results).hit
        shown, question = self._answer, self.question
        if hit is not None and shown is not None:
            # What stands in the list when the answer comes may be another hit, even of another question.
            self.app.push_screen(
                Vote(f"{hit.chunk.path}:{hit.chunk.start_line}-{hit.chunk.end_line}"),
                lambda grade: self._voted(grade, hit, shown, question),
            )

    def _voted(self, grade: int | None, hit: Candidate, shown: Answer, question: str) -> None:
        from memory_tui.tui.screens.vote import TAKEN_BACK, UNKNOWN

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
        from memory_tui.tui.screens.noise import NoiseView

        self.app.push_screen(NoiseView(self))

    def do_fading(self) -> None:
        """What age has taken and will take."""
        from memory_tui.tui.screens.fading import FadingView

        self.measure()
        self.app.push_screen(FadingView(self))

    def do_sweep(self) -> None:
        """Look for better knobs by the saved questions."""
        from memory_tui.tui.screens.sweep import SweepView

        self.app.push_screen(SweepView(self))

    def do_write(self) -> None:
        """Show what writing the knobs would change."""
        from memory_tui.tui.screens.write import WriteView

        self.app.push_screen(WriteView(self))

    def do_book(self) -> None:
        """List the saved questions."""
        from memory_tui.tui.screens.book import BookView

        # Another program may have written to it since.
        self._measuring = True
        self.read_notebook()
        self.app.push_screen(BookView(self))
