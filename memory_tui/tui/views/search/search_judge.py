"""The part of the search view that judges hits. It measures the knobs by saved queries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.signal import Signal
from textual.widgets import Button, Static

from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.formatting import plural
from memory_tui.sanitize import safe
from memory_tui.search.trace import Candidate, ChunkRef
from memory_tui.tui import judging
from memory_tui.tui.draw import fit_path
from memory_tui.tui.judging import Evaluation, JobProgress
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.tuning import Answer, Tuning
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.search.knobs import ShownAnswer
from memory_tui.tui.views.view import Dialog, Part, View
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.tune.evaluate import Case
    from memory_tui.tune.judgments import Notebook

    NotebookChange = Callable[[Notebook], Notebook]


NO_LABELS = f"Press {key_of('judge')} to judge a hit. Your judged queries then measure each knob you turn."


class Judge(Part):
    """Labels of the question on screen, and metrics of all saved questions under the knobs.

    `explain` explains the hit under the cursor anew, `ask` asks a question in the search view.
    """

    def __init__(
        self,
        view: View,
        shown: ShownAnswer,
        explain: Callable[[], None],
        ask: Callable[[str], None],
    ) -> None:
        super().__init__(view)
        self._shown, self._explain, self.ask = shown, explain, ask
        shown.grade = self._grade
        shown.cases = lambda: tuple(self.evaluation.cases.values())
        self.evaluation = Evaluation()
        self.changed: Signal[Evaluation] = Signal(view, "evaluation")
        self._pending: deque[NotebookChange] = deque()
        self._measuring = False
        self._asking = False

    # --- the notebook --------------------------------------------------------------------------------------------

    @task("notebook", exclusive=False)
    async def read_notebook(self, sentence: str = "") -> None:
        """Read the saved questions of the workspace, make pending changes, and say `sentence` when that is done."""
        notebook = await self.home.jobs.write(lambda engine: judging.edit_notebook(engine, self._pending))
        self.evaluation = self.evaluation.labelled(notebook)
        if sentence:
            self.view.show_message(sentence)
        self.view.query_one(HitList).judged(self._grade)
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

    def _grade(self, chunk: ChunkRef) -> int | None:
        """What labels of the question on screen make of a chunk."""
        return self.evaluation.grade(self._shown.question, chunk)

    # --- measuring -----------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Measure the knobs on the saved questions; those not asked yet are asked first."""
        tuning = self.home.tuning
        if self.home.engine is None or tuning is None or not self.evaluation.judged:
            return
        self._measuring = True
        if self._asking:
            # What is asked already is not asked again because a knob was turned meanwhile.
            return
        if self.evaluation.missing():
            self._asking = True
            self._collect(self.home.engine)
        else:
            self._compare(tuning)

    @task("cases")
    async def _collect(self, engine: Engine) -> None:
        """Ask the saved questions that were not asked yet, then measure."""
        try:
            async for part in self.home.jobs.parts(judging.collect(engine, self.evaluation.missing())):
                if isinstance(part, JobProgress):
                    self.evaluation = replace(self.evaluation, progress=part.words)
                    self.show_measures()
                else:
                    self._collected(part)
        finally:
            self._asking = False
            self.evaluation = replace(self.evaluation, progress="")
        self.measure()
        self.show_measures()

    def _collected(self, found: Mapping[str, Case]) -> None:
        self.evaluation = replace(self.evaluation, cases={**self.evaluation.cases, **found})
        if self.evaluation.notebook is not None:
            self.evaluation = self.evaluation.labelled(self.evaluation.notebook)

    @task("measure")
    async def _compare(self, tuning: Tuning) -> None:
        cases = tuple(self.evaluation.cases[query.text] for query in self.evaluation.judged)
        async for compared in self.home.jobs.parts(judging.measure(cases, tuning)):
            self.evaluation = replace(self.evaluation, compared=compared)
        self.show_measures()

    def tuned(self, *, keep: bool = True) -> None:
        """Measure the knobs as they are now."""
        del keep
        self.measure()

    def refused(self, error: MemoryTuiError) -> str:
        """Why, beside what is known."""
        self.show_measures()
        return super().refused(error)

    def show_measures(self) -> None:
        """Bring the line of metrics up to date, and whatever else shows them."""
        self.view.query_one(TuneStrip).measured(self._words(), known=bool(self.evaluation.judged))
        self.changed.publish(self.evaluation)

    def _words(self) -> list[str]:
        evaluation, question = self.evaluation, self._shown.question
        if evaluation.progress:
            return [f"{evaluation.progress} ..."]
        if evaluation.compared is None:
            count = len(evaluation.judged)
            return [f"{count} judged; {key_of('tune')} turns the knobs and measures them"] if count else [NO_LABELS]
        sums = judging.words(evaluation.compared)
        query = [change.text for change in evaluation.compared.changes]
        new = judging.words(evaluation.compared, question) if question in query and len(query) > 1 else []
        tuning = self.home.tuning
        sides = judging.sides([*sums, *new], tuning.baseline.name) if tuning is not None else ""
        parts = [f"{len(evaluation.compared.changes)} judged{sides}: {sums[0]}", *sums[1:]]
        return [*parts, *([f"this query: {new[0]}", *new[1:]] if new else [])]

    def events_came(self, events: Sequence[Event], /) -> None:
        """Notes changed, so what the index knows about the saved questions is out of date."""
        if any(isinstance(e, SyncFinished) and e.indexed + e.removed for e in events) and self.evaluation.cases:
            self.evaluation = replace(self.evaluation, cases={}, compared=None)
            self.read_notebook()

    # --- actions -------------------------------------------------------------------------------------------------

    def do_tune(self) -> None:
        """Go to the knobs, and measure them."""
        self.view.query_one(TuneStrip).focus()
        if self.evaluation.compared is None:
            self.measure()

    def do_vote(self) -> None:
        """Judge the marked hits, or the one under the cursor, for this question."""
        hits = self.view.query_one(HitList).chosen
        answer, question = self._shown.answer, self._shown.question
        if hits and answer is not None:
            chunk = hits[0].chunk
            where = f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"
            # What stands in the list when the answer comes may be another hit, even of another question.
            self.view.app.push_screen(
                Vote(where if len(hits) == 1 else f"{len(hits)} marked hits, the first {where}"),
                lambda grade: self._voted(grade, hits, answer, question),
            )

    def _voted(self, grade: int | None, hits: Sequence[Candidate], answer: Answer, question: str) -> None:
        if grade is None:
            return
        if grade == UNKNOWN:
            self.change_notebook(
                judging.keep(question, unanswerable=True),
                "Saved. The notes do not answer this query, so every hit is noise.",
            )
        elif grade == TAKEN_BACK:
            votes = [judging.vote(question, hit.chunk, None) for hit in hits]
            self._judge(votes, "Judgment removed." if len(hits) == 1 else f"{len(hits)} judgments removed.")
        else:
            texts = [answer.evidence.texts.get(hit.chunk.rowid, hit.snippet) for hit in hits]
            labels = [judging.marked(hit, answer.trace, text, grade) for hit, text in zip(hits, texts, strict=True)]
            word = {0: "wrong", 1: "helpful"}.get(grade, "right")
            votes = [judging.vote(question, hit.chunk, label) for hit, label in zip(hits, labels, strict=True)]
            where = f"line {labels[0].line} of {labels[0].path}" if len(hits) == 1 else f"{len(hits)} hits"
            self._judge(votes, f"Judged {word}: {where}.")

    def _judge(self, votes: Sequence[NotebookChange], sentence: str) -> None:
        """Make all `votes` as one change of the notebook, and take the marks away."""

        def change(notebook: Notebook) -> Notebook:
            for vote in votes:
                notebook = vote(notebook)
            return notebook

        self.change_notebook(change, sentence)
        self.view.query_one(HitList).marks.drop()

    def do_save(self) -> None:
        """Keep the question in the notebook."""
        seen = self.evaluation.query(self._shown.question)
        if seen is not None and seen.unanswerable:
            text = "Query saved, as one that the notes do not answer."
        elif seen is not None and seen.labels:
            text = f"Query saved, with {plural(len(seen.labels), 'judged hit')}."
        else:
            text = f"Query saved. Press {key_of('judge')} to mark the hits that answer it."
        self.change_notebook(judging.keep(self._shown.question), f"{text} {key_of('go queries')} lists saved queries.")


class HitActions(Part):
    """Copies the lines of the marked hits, or of the one under the cursor: to MEMORY.md, to the clipboard."""

    def __init__(self, view: View, shown: ShownAnswer) -> None:
        super().__init__(view)
        self._shown = shown
        self.changes = Proposals(view, self._drop_marks)

    def _drop_marks(self) -> None:
        self.view.query_one(HitList).marks.drop()

    def context(self) -> dict[str, bool]:
        """A change of notes that was made from here is a step that can be undone."""
        return {"undo": True, "redo": True} if self.changes.is_last else {}

    def do_cite(self) -> None:
        """Copy the citations."""
        self.home.cite_places([place for place, _ in self._places()])

    def do_copy(self) -> None:
        """Copy as."""
        self.home.copy_places(self._places())

    def _places(self) -> list[tuple[tuple[str, int, int], str]]:
        """Path, first and last line of each hit that is meant, with its text."""
        chosen, answer = self.view.query_one(HitList).chosen, self._shown.answer
        place = self.view.place_in_note()
        if place is not None and (not chosen or answer is None):
            # What QMD found is no chunk of the index.
            return [(place, self.view.text_in_note())]
        texts = answer.evidence.texts if answer is not None else {}
        return [
            (
                (row.chunk.path, row.chunk.start_line, row.chunk.end_line),
                safe(texts.get(row.chunk.rowid, row.snippet), keep_newlines=True),
            )
            for row in chosen
        ]

    def do_promote(self) -> None:
        """Show what MEMORY.md would get, and copy it there when that is wanted."""
        rows = {row.path: row for row in self.home.facts.rows} if self.home.facts is not None else {}
        chunks = [item.chunk for item in self.view.query_one(HitList).chosen]
        stale = next((item.path for item in chunks if item.path in rows and rows[item.path].state != "fresh"), "")
        if stale:
            self.view.show_message(f"{safe(stale)} changed since it was indexed. {key_of('look again')} indexes it.")
        elif chunks:
            places = [(item.path, item.start_line, item.end_line) for item in chunks]
            self.changes.propose(lambda curator: curator.plan.promote_all(places))


TAKEN_BACK, UNKNOWN = -1, -2
"""Answers beside grades: no mark any more, and the notes do not answer this question at all."""

CHOICES: tuple[tuple[str, str, int], ...] = (
    ("y", "answers it", 2),
    ("1", "helps a little", 1),
    ("n", "wrong", 0),
    ("-", "take back", TAKEN_BACK),
    ("x", "the notes do not know", UNKNOWN),
)


class Vote(Dialog[int | None]):
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

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """The choices, and the way out."""
        choices = ((key, words[:1].upper() + words[1:]) for key, words, _ in CHOICES)
        return ("enter", "Chosen"), *choices, ("esc", "Leave")

    def compose(self) -> ComposeResult:
        """What is judged, and a button for each choice."""
        with Vertical(id="vote") as frame:
            frame.border_title = Content("Is this hit right for the query?")
            yield Static(Content(fit_path(safe(self._place), 70)), id="voted")
            with Vertical(id="choices"):
                yield from self._buttons()

    def _buttons(self) -> Iterable[Button]:
        for key, words, grade in CHOICES:
            yield Button(Content.assemble((f" {key} ", "bold $key"), f" {words}"), id=f"grade{grade + 2}", compact=True)

    def on_descendant_focus(self) -> None:
        """Say what enter does: it presses the button in focus, at first that of the hits that answer."""
        for _, words, grade in CHOICES:
            if self.focused is not None and self.focused.id == f"grade{grade + 2}":
                self.query_one("#vote").border_subtitle = f"enter: {words}"

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
