"""Saved questions: what a person said of passages, how well a ranking does by it, and the search for a better one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui import tune
from memory_tui.config.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled
from memory_tui.explain.counterfactuals import TEXT
from memory_tui.explain.wording import MatchedWords
from memory_tui.formatting import one_line, plural
from memory_tui.search.rank import Trace
from memory_tui.search.trace import ChunkRef
from memory_tui.tui import knobs
from memory_tui.tui.dialogs import Confirm, Dialog, Page
from memory_tui.tui.facts import MUTED
from memory_tui.tui.hits import Row, fit
from memory_tui.tui.keys import named
from memory_tui.tui.rows import Rows
from memory_tui.tui.view import View, if_answered
from memory_tui.tune import FEWEST, METRIC, Better, Card, Case, Label, Measured, Notebook, Outcome, Query

ANSWER = 120
"""Characters of a judged line that are kept, so that it is found again when it moved."""
LEGEND = "▲ ▼ more, fewer of its useful lines are sent than by the configured ranking"
TAKE_BACK, UNKNOWN, NEW = "take back", "unknown", "new"
CHOICES: tuple[tuple[str, str], ...] = (
    ("2", "✓ It answers the question"),
    ("1", "~ It helps a little"),
    ("0", "✗ It is wrong here"),
    (TAKE_BACK, "  Take my mark back"),
    (UNKNOWN, "  My notes do not know this: every passage is wrong"),
)

NotebookChange = Callable[[Notebook], Notebook]


# --- what a person says ---------------------------------------------------------------------------------------------


def edited(engine: Engine, *changes: NotebookChange) -> Notebook:
    """Return the saved questions of the workspace after `changes`, which are written. Raises LabelError."""
    path = tune.notebook_path(engine.plan.roots.workspace, engine.plan.own_named)
    if not changes:
        # Whoever only reads makes no folder and no lock.
        return tune.settled(tune.load(path), engine.notes.read)
    return tune.edit(path, engine.notes.read, changes)


def label_of(row: Row, trace: Trace, text: str, grade: int, line: int = 0) -> Label:
    """Return the judgment of `line` of a passage, 0 for the one that decided; if blank, of that with most words."""
    chunk, lines = row.hit.chunk, text.split("\n")
    words = MatchedWords(trace.side.plan, trace.rules.profile.name)
    usable = [number for number, written in enumerate(lines) if written.strip()] or [0]

    def matches(number: int) -> int:
        """Return how many words of the question stand in a line, given by its index."""
        return sum(count > 0 for count in words.counts(lines[number]).values())

    # From the first line of the passage; a line that is blank or outside of it gives way.
    best = (line or row.hit.line) - chunk.start_line
    if best not in usable:
        best = max(usable, key=matches)
    return Label(chunk.path, min(chunk.end_line, chunk.start_line + best), grade, lines[best].strip()[:ANSWER])


def judged(question: str, chunk: ChunkRef, label: Label | None) -> NotebookChange:
    """Return what puts `label` in the place of what was said of a passage; without one it is taken back."""

    def change(notebook: Notebook) -> Notebook:
        """Return the notebook with the judgment of this passage set, or without one."""
        query = notebook.find(question) or Query(question.strip())
        for old in query.labels:
            if old.path == chunk.path and chunk.start_line <= old.line <= chunk.end_line:
                query = query.unmark(old.path, old.line)
        return notebook.put(query.mark(label) if label is not None else query)

    return change


def kept(question: str, *, unanswerable: bool = False) -> NotebookChange:
    """Return what saves a question, as one that the notes do not answer where that is so."""

    def change(notebook: Notebook) -> Notebook:
        """Return the notebook with the question in it."""
        query = notebook.find(question) or Query(question.strip())
        return notebook.put(replace(query, unanswerable=True) if unanswerable else query)

    return change


def as_before(question: str, query: Query | None) -> NotebookChange:
    """Return what brings a question back as it was."""
    return lambda notebook: notebook.put(query) if query is not None else notebook.without(question)


# --- how well a ranking does ----------------------------------------------------------------------------------------


def counts(measured: Sequence[Measured], digits: int) -> list[str]:
    """Return what a question gets on average: passages useful, wrong and not judged, and useful lines not sent."""
    means, sent = tune.mean([row.scores for row in measured]), fmean(len(row.hits) for row in measured)
    missed = fmean((1 - row.scores["recall"]) * len(row.query.relevant) for row in measured)
    # `noise` counts all that is sent and not useful; what of it is not judged wrong is not judged. No -0 is shown.
    numbers = abs(sent - means["noise"]), means["wrong"], abs(means["noise"] - means["wrong"]), missed
    names = "useful", "wrong", "not judged", "missed"
    return [f"{number:.{digits}f} {name}" for number, name in zip(numbers, names, strict=True)]


def result(query: Query, measured: Measured | None) -> str:
    """Return what a ranking sends for a question: `2 useful, 1 wrong, 3 not judged of 6 sent, 1 missed`."""
    if measured is None:
        return "" if query.judged else "not judged"
    # In whole numbers only a count of none begins with 0.
    *parts, missed = ["" if count.startswith("0") else count for count in counts([measured], 0)]
    sent = f"{', '.join(filter(None, parts))} of {len(measured.hits)} sent" if measured.hits else "nothing sent"
    return f"{sent}, {missed}" if missed else sent


def summary(measured: Card, question: str) -> str:
    """Return the means of the questions that can be measured; `question` is the one on screen."""
    if not measured:
        return "m marks a passage right or wrong, to measure rankings."
    scope, digits = plural(len(measured), "saved question"), 0
    if len(measured) > 1:
        scope, digits = f"{scope}, each", 1
    elif question in measured:
        scope = "This question"
    order = knobs.figure(tune.mean([row.scores for row in measured.values()])[METRIC])
    return f"{scope}: {', '.join(counts([*measured.values()], digits))}; order {order} of 1."


def outcome_text(outcome: Outcome) -> Content:
    """Return what the search for better knobs found; no gain that chance would explain is claimed."""
    if not isinstance(outcome, Better):
        chance = "the best one tried gains no more than chance would" if outcome.changes else "none gains anything"
        return Content(f"No better setting found: on the half of the questions kept to check it, {chance}.")
    before, after = outcome.before, outcome.after
    # The weight of words is told with that of meaning.
    lines = [f"{knobs.NAMES[key]} {knobs.shown(key, value)}" for key, value in outcome.changes.items() if key != TEXT]
    effects = (
        ("useful lines that are sent", f"{before['recall']:.0%}", f"{after['recall']:.0%}"),
        ("their order, nDCG, 1 is best", knobs.figure(before[METRIC]), knobs.figure(after[METRIC])),
        ("wrong, sent a question", f"{before['wrong']:.1f}", f"{after['wrong']:.1f}"),
    )
    gain, low, high = map(knobs.figure, (outcome.held_out.mean, outcome.held_out.low, outcome.held_out.high))
    rows = [*(Content.styled(line, "bold") for line in lines), Content("")]
    rows += [Content(f"{name:<29}{old:>6} -> {new}") for name, old, new in effects]
    rows.append(Content(f"Beyond chance order gains {gain}, 95 % from {low} to {high}."))
    rows.append(Content.styled("Measured on the half of your questions that the search did not see.", MUTED))
    return Content("\n").join(rows)


@dataclass
class Sheet(Message):
    """The saved questions, with what is measured of them so far."""

    notebook: Notebook
    scores: Card
    """What the ranking in force does with each question that is judged."""
    before: Card
    """What the configured ranking does with them."""
    progress: str = ""
    """How far the questions are asked; empty once all are."""


class SavedQuestions(Dialog[str]):
    """The saved questions: enter asks one, `x` forgets it, `d` looks for better knobs; answers with a question."""

    BINDINGS: ClassVar[list[BindingType]] = [*named("Forget", "note.delete"), *named("Find better knobs", "change.do")]
    FOCUS = "#questions"

    def __init__(self, view: View, question: str, cases: dict[str, Case], use: Callable[[Settings, str], None]) -> None:
        super().__init__("Saved questions")
        self.view, self.question, self.cases, self.use = view, question, cases, use
        self.sheet, self.is_enough = Sheet(Notebook(), {}, {}), False
        """What is shown, and whether so much is marked that a search for better knobs would claim something."""

    def body(self) -> ComposeResult:
        """Return the list, and what the ranking in force comes to."""
        yield Static(id="measures", markup=False)
        yield Rows(id="questions")

    def on_mount(self) -> None:
        """Read and measure."""
        self.update()

    @work(thread=True, exclusive=True, group="saved")
    def update(self, *changes: NotebookChange) -> None:
        """Apply `changes` to the saved questions, read them, ask those that were not asked yet, and measure."""
        worker, settings = get_current_worker(), self.view.session.settings
        notebook = self.view.attempt(lambda engine: edited(engine, *changes))
        if notebook is None or settings is None:
            return
        for done, query in enumerate(notebook.judged):
            if query.text not in self.cases:
                self.post_message(Sheet(notebook, {}, {}, f"asking {done + 1} of {len(notebook.judged)} ..."))
                evidence = self.view.attempt(lambda engine: engine.search.gather(query.text))  # noqa: B023 - at once
                if evidence is None or worker.is_cancelled:
                    return
                self.cases[query.text] = Case(query, evidence)
            # The evidence stays, but marks may be new.
            self.cases[query.text] = replace(self.cases[query.text], query=query)
        cases = [self.cases[query.text] for query in notebook.judged]
        configured = self.view.attempt(lambda engine: engine.plan.settings) or settings
        sheet = Sheet(notebook, tune.score(cases, settings), tune.score(cases, configured))
        if not worker.is_cancelled:
            self.post_message(sheet)

    @on(Sheet)
    def show(self, sheet: Sheet) -> None:
        """List the questions."""
        self.sheet, rows = sheet, self.query_one("#questions", Rows)
        width = max(20, rows.scrollable_content_region.width)
        options = []
        if self.question and sheet.notebook.find(self.question) is None:
            save = Content.assemble(" Save “", (one_line(self.question), "bold"), "”")
            options.append(Option(fit(save, width), id=NEW))
        options += [Option(self.drawn(query, width), id=f"={query.text}") for query in sheet.notebook.queries]
        rows.refill(options or [Option(Content(" None yet. Ask something; m marks what is right."), disabled=True)])
        # Questions have signs of what changed only where the ranking does other than the configured one.
        legend = f"\n{LEGEND}" * (sheet.scores != sheet.before)
        self.query_one("#measures", Static).update(sheet.progress or summary(sheet.scores, self.question) + legend)
        self.is_enough = sum(bool(query.relevant) for query in sheet.notebook.queries) >= FEWEST
        few = "" if self.is_enough else f"; d finds better knobs once {FEWEST} have a useful passage"
        self.query_one(".dialog").border_subtitle = plural(len(sheet.notebook.queries), "question") + few
        self.refresh_bindings()

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Offer the search for better knobs where it would claim something."""
        return action != "do" or self.is_enough

    def drawn(self, query: Query, width: int) -> Content:
        """Return a question in a line, with what the ranking sends for it, and whether that is more than before."""
        now, before = self.sheet.scores.get(query.text), self.sheet.before.get(query.text)
        gain = now.scores["recall"] - before.scores["recall"] if now and before else 0.0
        sign = (" ", "")
        if abs(gain) > 1e-9:
            sign = ("▲", "$success") if gain > 0 else ("▼", "$error")
        end = f" {result(query, now)} "
        return Content.assemble(" ", fit(Content(one_line(query.text)), width - len(end) - 2), (end, MUTED), sign)

    def chosen(self) -> str:
        """Return the question under the cursor; empty where there is none."""
        option = self.query_one("#questions", Rows).highlighted_option
        id_ = option.id or "" if option is not None else ""
        return id_.removeprefix("=") if id_.startswith("=") else ""

    @on(OptionList.OptionSelected)
    def select(self, event: OptionList.OptionSelected) -> None:
        """Ask it, or save the one on screen."""
        if event.option.id == NEW:
            self.update(kept(self.question))
        else:
            self.dismiss(self.chosen())

    async def action_delete(self) -> None:
        """Forget a question with its marks, after asking."""
        query = self.sheet.notebook.find(self.chosen())
        if query is None:
            self.notify("No saved question is under the cursor.", markup=False)
            return
        text = Content(f"{one_line(query.text)}\n\nIts {plural(len(query.labels), 'mark')} go with it.")
        forget = if_answered(lambda _: self.update(lambda notebook: notebook.without(query.text)))
        await self.app.push_screen(Confirm("Forget this question?", text, "Forget it"), forget)

    def action_do(self) -> None:
        """Look for better knobs."""
        self.query_one("#measures", Static).update("Looking for better knobs ...  esc stops")
        self.search()

    @work(thread=True, exclusive=True, group="saved")
    def search(self) -> None:
        """Search on one half of the questions; the other half tests what is found."""
        worker, settings = get_current_worker(), self.view.session.settings
        cases = [self.cases[query.text] for query in self.sheet.notebook.judged if query.text in self.cases]

        def tell(words: str) -> None:
            """Show how far the search is; raise Cancelled where a person stopped it."""
            # Ends the search from within; `attempt` says nothing of it.
            if worker.is_cancelled:
                raise Cancelled
            self.app.call_from_thread(self.query_one("#measures", Static).update, f"{words} ...  esc stops")

        if settings is not None:
            outcome = self.view.attempt(lambda _: tune.better_settings(cases, settings, progress=tell))
            if outcome is not None:
                self.call_later(self.found, outcome)

    async def found(self, outcome: Outcome) -> None:
        """Show what was found with its effect, before it is tried."""
        self.show(self.sheet)
        text = outcome_text(outcome)
        if not isinstance(outcome, Better):
            await self.app.push_screen(Page("Better knobs", text))
            return

        def agreed(yes: bool | None) -> None:
            """Use the settings that were found, where a person says so."""
            if yes:
                self.dismiss(None)
                self.use(outcome.settings, "the knobs that were found")

        await self.app.push_screen(Confirm("Better knobs by your marks", text, "Try them"), agreed)
