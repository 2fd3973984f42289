"""The view Search: what the agent gets for a question, why, what would change it, and by which ranking."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from msgspec import structs
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from memory_tui import plan
from memory_tui.backends.qmd import QmdAnswer, QmdHit
from memory_tui.cancel import Stop
from memory_tui.config import config_patch
from memory_tui.config.settings import PROFILES, TUNE_KEYS, Settings
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.events import Event, IndexChanged, SyncFinished
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Change, Rephrased, flips, rephrase, that_send
from memory_tui.explain.why_not import WhyNot, row_of
from memory_tui.formatting import one_line, plural, safe
from memory_tui.providers import registry
from memory_tui.search.excerpts import Excerpt
from memory_tui.search.rank import Reranking, Trace, can_rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import tuned
from memory_tui.sentences import ordinal, why_empty
from memory_tui.shared import ALL, OWN, MirrorFilling, Standing, workspace_of
from memory_tui.tui import hits, knobs, ranking, saved
from memory_tui.tui.any_line import AnyLine, Place
from memory_tui.tui.changes import ahead, in_time, is_writable, overtake, promote
from memory_tui.tui.compare import Compare
from memory_tui.tui.dialogs import Box, Choice, Line, Page
from memory_tui.tui.facts import MUTED, WARN
from memory_tui.tui.hits import Remedy, Row
from memory_tui.tui.keys import bindings, by_state, named
from memory_tui.tui.reader import NotePage, Reader
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import AskNotes, ReadNote, Session
from memory_tui.tui.view import View, if_answered
from memory_tui.tune import Case, Notebook, score

MISSES = 8
"""Passages that are not sent and listed at first."""
LONGEST = 2_000
"""Characters of a question."""
REST_SECONDS = 0.12
"""A cursor that rests so long has its remedies worked out; letters are asked then where a question leaves us."""
LATE_SECONDS = 0.15
"""An answer that takes longer is said to be waited for."""
TYPING_SECONDS = 0.6
"""Who types does not read yet: as long as this nothing is worked out, and no pane changes its shape."""
EARLIER = 100
MORE, OTHER = "more", "another one ..."
ASK = "Ask your notes, in your words"


@dataclass(repr=False)
class Request:
    """What is asked or ranked: how rows are drawn, and under which settings.

    Without a repr: Textual writes down what a worker is given, on the screen's thread, which takes it 40 ms.
    """

    query: str
    settings: Settings
    shape: tuple[int, int]
    """The cells of a row, and its lines."""
    misses: int
    """How many passages that are not sent are listed."""
    stop: Stop = field(default_factory=Stop)
    as_written: bool = False
    """Whether no word is read otherwise than it was typed."""
    standing: Standing | None = None
    """How the mirror stands that answers; None for this workspace."""
    place: Place | None = None
    """The line that a person asked about."""


@dataclass(repr=False)
class Answered(Message):
    """An answer of `engine`, ranked and drawn, or why there is none."""

    engine: Engine
    request: Request
    evidence: Evidence
    trace: Trace
    rows: list[Row]
    qmd: QmdAnswer | None
    replay: Reranking
    """Ranks the same evidence by other settings; it remembers what no knob changes."""
    effects: ranking.Effects = field(default_factory=dict)
    why: WhyNot | None = None
    """What became of the line that a person asked about."""
    measures: str = ""
    """What the ranking comes to on the saved questions that were asked already."""


class Query(Box):
    """The question; a subclass because a letter must lay out nothing and the value must not be a megabyte."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "submit", "To the passages"), *bindings("text.back")]

    def __init__(self) -> None:
        super().__init__(hint=ASK, id="query")
        self.earlier: list[str] = []
        """The questions that were asked, the newest last."""
        self.back = 0
        """How many questions back `up` went."""

    def validate_value(self, value: str) -> str:
        """Return what may be drawn of what was typed."""
        return safe(value[:LONGEST])

    async def _on_key(self, event: events.Key) -> None:
        """Take `up` for an earlier question and `down` for the passages; other keys type."""
        # A slash where a question begins is the key that asks, pressed again.
        if event.character == "/" and self.value in ("", self.selected_text):
            event.prevent_default()
            return
        if event.key == "up" and self.back < len(self.earlier):
            self.back += 1
            self.value = self.earlier[-self.back]
            self.cursor_position = len(self.value)
        elif event.key == "down":
            await self.action_submit()
        else:
            await super()._on_key(event)

    def remember(self) -> None:
        """Keep the question for `up`, once."""
        self.back, query = 0, self.value.strip()
        if query and self.earlier[-1:] != [query]:
            self.earlier = [*self.earlier[-EARLIER:], query]


class Hits(Rows):
    """The passages; the first click selects one, the next opens it."""

    BINDINGS: ClassVar[list[BindingType]] = by_state("list.open", "take", "Read", "Try", "Open")
    does = "Open"
    """What enter does with the row under the cursor."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Have the footer say what enter does there."""
        return action != "take" or parameters == (self.does,)

    async def action_take(self, does: str) -> None:
        """Try what would have the passage sent, else read it."""
        await self.screen.query_one(Remedies).action_choose() if does == "Try" else self.action_select()

    async def _on_click(self, event: events.Click) -> None:
        """Move the cursor to the row, or open the one that it is on already."""
        event.prevent_default()
        at = event.style.meta.get("option")
        if at is not None and at == self.highlighted:
            self.action_select()
        elif at is not None and not self.options[at].disabled:
            self.highlighted = at


class Remedies(Rows):
    """What would have a passage sent; enter tries it."""

    BINDINGS: ClassVar[list[BindingType]] = [*named("Try", "list.open", action="choose"), *bindings("text.back")]
    BINDINGS += named("", "note.copy")

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.known = asyncio.Event()
        """Set where there are some, or none at all."""

    def render_line(self, y: int) -> Strip:
        """Return a line; its cursor has a mark where the focus is here, apart from that of the passages."""
        return super().render_line(y) if self.has_focus else OptionList.render_line(self, y)

    async def action_choose(self) -> None:
        """Try the one under the cursor, once they are worked out."""
        await in_time(self.known.wait())
        self.action_select()


class SearchView(View):
    """Asks as a person types, and explains the passage under the cursor.

    Its modes are classes that the style sheet reads. Of the pane `why`: `-turning` shows the knobs, `-sum` the whole
    sum, `-miss` the remedies. Of the view, on a small screen: `-single` shows the list alone, `-open` the pane alone.
    """

    NAME = "search"
    FOCUS = "#search-list"
    BINDINGS: ClassVar[list[BindingType]] = named("Read", "list.open") + named("Copy", "note.copy")
    BINDINGS += bindings("note.cite") + by_state("search.sum", "sum", "Sum", "Close", "")
    BINDINGS += named("Why not", "search.miss") + named("Turn", "search.turn")
    BINDINGS += bindings("search.compare", "search.judge", "search.line", "search.saved")
    BINDINGS += by_state("text.back", "back", "Back", "") + named("", "note.promote", "note.overtake")
    BINDINGS += [Binding("d", "do", "Write the ranking", show=False, id="change.do")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.box = Query()
        self.hits = Hits(id="search-list")
        self.why = Vertical(id="why")
        """The pane beside the list, which explains the passage under the cursor."""
        self.remedy_list = Remedies("remedies")
        self.reader = Reader(id="passage")
        self.knobs = ranking.Knobs(id="knobs")
        self.request: Request | None = None
        """The last one; what comes of any other is dropped."""
        self.answer: Answered | None = None
        self.misses = MISSES
        """How many passages that are not sent are listed."""
        self.scope = ""
        """Whose notes of a shared index are asked; empty for those of this workspace."""
        self.as_written = ""
        """The question of which no word is read otherwise than it was typed."""
        self.steps: list[tuple[str, Callable[[], object] | None]] = []
        """What takes back each thing that was done, after its name, the last one last; None is a change of notes."""
        self.turned = "", 0
        """The knob that was turned last, and how many `steps` there were by then."""
        self.remedies: list[Remedy] = []
        self.solved: Row | None = None
        """The passage of which all remedies are known; None while they are looked for."""
        self.solution: tuple[list[Remedy], str] = [], ""
        """The remedies that are known by now, and the sentence below them."""
        self.filling = False
        """Whether the list is being filled, so that its cursor explains nothing."""
        self.has_learned = False
        """Whether the saved questions were read."""
        self.armed: Row | None = None
        """The passage of which enter tries a remedy."""
        self.timer: Timer | None = None
        self.looking = Stop()
        """Ends the look for remedies."""
        self.waiting: Timer | None = None
        """Asks what was typed when the keys rest, then says that an answer is waited for."""
        self.notebook = Notebook()
        self.cases: dict[str, Case] = {}
        """What the index knows of the saved questions that were asked already."""
        self.passage: tuple[NotePage, int] | None = None
        """What the pane of the passage shows, and the line of its cursor."""
        self.wanted = 0
        """The passage that the cursor is to stand on; 0 for any."""
        self.past_query = ""
        """The logged question that is asked with the knobs of then, until another question is asked."""
        self.past_settings: Settings | None = None
        """The knobs of then."""
        self.place: Place | None = None
        """The line that a person asked about, with this question."""
        self.is_going = False
        """Whether the cursor is to go to the passage that holds this line."""

    def compose(self) -> ComposeResult:
        """Lay out the box, the level, the list and the pane beside it, and the ranking."""
        yield self.box
        yield Static(id="level", markup=False)
        with Horizontal(id="panes"):
            yield self.hits
            with self.why:
                yield Static(id="verdict", markup=False)
                yield Static(id="sums", markup=False)
                with VerticalScroll(id="whole"):
                    yield Static(id="steps", markup=False)
                yield Static(id="remedies-title", markup=False)
                yield self.remedy_list
                yield Static(id="reads", markup=False)
                yield self.reader
                yield self.knobs
                yield Static(id="knob", markup=False)
        yield Static(id="ranking", markup=False)

    def on_mount(self) -> None:
        """Draw what stands under the cursor in the paint of the cursor: a message would come after it."""
        self.watch(self.hits, "highlighted", self.moved, init=False)
        self.watch(self.knobs, "highlighted", self.draw_knob, init=False)
        self.watch(self.remedy_list, "has_focus", self.entitle_remedies)
        self.invite()

    def write(self, selector: str, content: Content | str) -> None:
        """Write a line of fixed height, which lays out nothing; what stands there already is not painted again."""
        line = self.query_one(selector, Static)
        if line.content != content:
            line.update(content, layout=False)

    def entitle(self, pane: Widget, title: str) -> None:
        """Name a pane; Textual paints all of it for the same name, too."""
        if str(pane.border_title or "") != title:
            pane.border_title = Content(title)

    # --- asking ----------------------------------------------------------------------------------------------------

    @on(Input.Changed, "#query")
    def typed(self) -> None:
        """Ask what stands in the box; at rest, where a provider elsewhere, QMD or a shared index answers."""
        self.misses = MISSES
        # A question that a person types is not about the line; one that is put here, or is to be typed for it, is.
        if self.box.has_focus and not self.is_going:
            self.place = None
        self.wait_no_more()
        # Another question ends the knobs of then.
        if self.uses_past_settings and self.box.value != self.past_query:
            self.action_own_ranking()
        if self.scope or self._asks_elsewhere(self.session.engine):
            self.waiting = self.set_timer(REST_SECONDS, self.ask)
        else:
            self.ask()

    def _asks_elsewhere(self, engine: Engine | None) -> bool:
        """Return whether a question leaves this process, for a provider or QMD."""
        return engine is not None and (engine.backend.is_qmd or registry.sends(engine.plan.provider))

    @on(Input.Submitted, "#query")
    def entered(self) -> None:
        """Go to the passages."""
        self.box.remember()
        self.hits.action_first()
        self.action_back()
        # While a question is typed no answer goes to the line that is meant; the one that this brings does.
        if self.is_going:
            self.rerank()

    def ask(self) -> None:
        """Ask what stands in the box; a question before it is stopped."""
        self.end_request()
        self.wait_no_more()
        query, settings = self.box.value.strip(), self.session.settings
        if settings is None:
            return
        if not query:
            self.answer = None
            self.invite()
            return
        self.waiting = self.set_timer(LATE_SECONDS, self.tell_waiting)
        self.gather(self.new_request(query, settings), self.scope)

    def end_request(self) -> None:
        """Stop the last request, and drop what still comes of it."""
        if self.request is not None:
            self.request.stop.set()
        self.request = None

    def wait_no_more(self) -> None:
        """Stop the timer that would ask what was typed, or say that an answer is waited for."""
        if self.waiting is not None:
            self.waiting.stop()

    def tell_waiting(self) -> None:
        """Say whose answer is waited for, and what keeps the index busy."""
        who = one_line(self.scope) or ("the provider" if self._asks_elsewhere(self.session.engine) else "your notes")
        self.write("#level", Content.styled(f" Asking {who} ... {one_line(self.session.progress)}", MUTED))

    def new_request(self, query: str, settings: Settings) -> Request:
        """Return the request that is answered from now on, for the shape that the list has."""
        self.request = Request(query, settings, self.shape, self.misses, place=self.place)
        self.request.as_written = query == self.as_written
        return self.request

    @property
    def shape(self) -> tuple[int, int]:
        """Return the cells of a row, and its lines."""
        return self.hits.scrollable_content_region.width, 2 if self.size.width >= 100 else 1

    @work(thread=True, exclusive=True, group="ask")
    def gather(self, request: Request, scope: str) -> None:
        """Ask the notes of a scope, and rank."""
        here = self.session.engine
        if here is None:
            return
        try:
            engine, request.standing = self.answering(here, request, scope)
            qmd = engine.backend.ask(request.query, stop=request.stop)
            evidence = engine.search.gather(request.query, request.stop, as_written=request.as_written)
            self.post_message(self.ranked(engine, request, evidence, qmd, Reranking(evidence)))
        except Cancelled:
            return
        except MemoryTuiError as error:
            self.call_later(self.unanswered, request, error)

    def answering(self, here: Engine, request: Request, scope: str) -> tuple[Engine, Standing | None]:
        """Return the engine that answers for a scope, and how its mirror stands, once that is filled.

        Raises MemoryTuiError.
        """
        while True:
            try:
                return here.of_scope(scope, request.stop)
            except (MirrorFilling, Cancelled) as error:
                # Of a request that was stopped the wait below ends at once.
                filling = MirrorFilling(error.message, "Its answer comes by itself; u ends that and goes back.")
                self.call_later(self.unanswered, request, filling)
                if request.stop.wait(REST_SECONDS):
                    raise

    @work(thread=True, exclusive=True, group="rank")
    def rank(self, request: Request, answer: Answered) -> None:
        """Rank the same evidence anew."""
        engine, request.standing = answer.engine, answer.request.standing
        result = self.attempt(lambda _: self.ranked(engine, request, answer.evidence, answer.qmd, answer.replay))
        if result is not None:
            self.post_message(result)

    def ranked(
        self, engine: Engine, request: Request, evidence: Evidence, qmd: QmdAnswer | None, replay: Reranking
    ) -> Answered:
        """Return an answer with its rows drawn; for worker threads. Raises Cancelled where a newer request is made."""
        request.stop.check()
        trace = engine.search.rank(evidence, request.settings)
        request.stop.check()
        why = None
        if (place := request.place) is not None:
            why = self.attempt(lambda _: engine.search.why(evidence, place.path, place.line, request.settings))
        asked = why.best if why is not None else None
        # A passage that no search proposed is not listed where a gate stopped its file before any search.
        if why is not None and asked is not None and not asked.proposed and why.place.gate is not None:
            asked = None
        rows = hits.rows(evidence, trace, request.misses, self.notebook.find(evidence.question.query), asked)
        if asked is not None:
            # What a ranking worked out goes with the evidence, and with it where a passage of it begins.
            evidence = structs.replace(evidence, texts={asked.chunk.rowid: asked.text, **evidence.texts})
        # A list that is not laid out yet has no width.
        if request.shape[0]:
            for row in rows:
                row.drawn(*request.shape)
        result = Answered(engine, request, evidence, trace, rows, qmd, replay, why=why)
        if self.why.has_class("-turning"):
            # The knobs are shown, with what a step of each does.
            request.stop.check()
            result.effects = effects_of_steps(engine, result)
            result.measures = saved.summary(score([*self.cases.values()], request.settings), evidence.question.query)
        return result

    @on(Answered)
    async def show(self, answer: Answered) -> None:
        """Show an answer, unless something newer is under way."""
        if answer.request is not self.request:
            return
        self.wait_no_more()
        # The row under the cursor is looked up in the answer, so this comes before the answer is another one.
        row_before, before = self.row, self.answer
        self.answer = answer
        gone = row_before.name if row_before is not None and self.row is None else ""
        # Another question: the cursor begins anew, and `draw` ends the filling.
        if before is None or before.trace.evidence.question.query != answer.trace.evidence.question.query:
            self.filling = True
            with self.prevent(OptionList.OptionHighlighted):
                self.hits.highlighted = None
        if self.is_going and not self.box.has_focus:
            await self.arrive(answer)
        self.draw()
        # In the title: a message at each step of a knob takes more time than the step.
        if gone and before is not None and answer.replay is before.replay:
            self.entitle(self.hits, f"{self.hits.border_title}; left: {gone}")

    def unanswered(self, request: Request, error: MemoryTuiError) -> None:
        """Say why there is no answer."""
        if request is self.request:
            self.wait_no_more()
            self.answer = None
            self.say(error.message, error.next_step)

    def invite(self) -> None:
        """Say how to begin, with questions to choose from."""
        examples = [Option(Content(f"   {one_line(query)}"), id=f"?{query}") for query in self.session.suggestions]
        if self.session.engine is None:
            self.say("Opening the index ...", "You can type your question already.")
        elif self.session.status is not None and not self.session.files:
            self.say("There are no notes yet, so none can answer.", "1, then a writes the first line of today's log.")
        else:
            lead = "For instance:" if examples else ""
            self.say("/ asks your notes; the passages appear while you type.", lead, examples)

    def say(self, text: str, then: str, options: Sequence[Option] = ()) -> None:
        """Show sentences in the place of passages."""
        width = max(20, self.shape[0] - 2)
        lines = [*Content.styled(one_line(text), "bold").wrap(width), *Content(one_line(then)).wrap(width)]
        rows = [Option(Content.assemble(" ", line), disabled=True) for line in lines if line.plain]
        self.filling = True
        # The sentences cannot be chosen, so the cursor begins at the first option behind them.
        self.hits.refill([*rows, *options], default=len(rows))
        self.hits.highlighted = len(rows) if options else None
        self.filling = False
        self.entitle(self.hits, "Ask")
        self.write("#level", "")
        self.clear_why()
        self.draw_ranking()

    # --- the list --------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw level, list, why and ranking of the answer."""
        if (answer := self.answer) is None:
            self.invite()
            return
        self.write("#level", self.level(answer))
        if answer.trace.empty is not None and answer.qmd is None:
            self.say(*why_empty(answer.trace.empty, answer.trace.rules.profile.name))
            self.write("#level", self.level(answer))
            return
        with self.app.batch_update():
            self.filling = True
            if self.why.has_class("-turning"):
                # What a turn moves stands at the top: the first, and the line below what is sent.
                if self.row is None:
                    self.hits.highlighted = None
                self.call_after_refresh(self.hits.scroll_home, animate=False)
            if self.shape[0] > 0:
                self.hits.refill(self.options(answer))
            if self.wanted and (position := self.hits.position(str(self.wanted))) is not None:
                self.hits.highlighted = position
                self.wanted = 0
            self.filling = False
            self.entitle(self.hits, "What QMD gives your agent" if answer.qmd else hits.heading(answer.trace))
            self.moved()
            self.draw_ranking()

    def level(self, answer: Answered) -> Content:
        """Return how well the notes answer and by which ranking, after the state of a shared index."""
        if answer.qmd is not None:
            return hits.qmd_level(answer.qmd, answer.trace).truncate(self.size.width, ellipsis=True)
        name = f"ranking: {answer.request.settings.profile.title}"
        name += ", of then" if self.uses_past_settings else ", tried" * bool(self.session.tried)
        standing = answer.request.standing
        mirror = Content.styled(f" {standing.sentence}", WARN if standing.trouble else "") if standing else Content()
        line = hits.level_line(answer.trace, max(1, self.size.width - mirror.cell_length), name, self.steps)
        return (mirror + line).truncate(self.size.width, ellipsis=True)

    def options(self, answer: Answered) -> list[Option]:
        """Return the rows of the list: what is sent, the line below it, misses, and how many more there are."""
        trace = answer.trace
        width, lines = self.shape
        if answer.qmd is not None:
            qmd_options = [Option(hits.qmd_row(hit, width, lines), id=f"q{hit.rank}") for hit in answer.qmd.hits]
            return qmd_options or [Option(Content(" QMD gives nothing."), disabled=True)]
        options = []
        first_miss = wording.sent_of(trace) + 1
        for row in answer.rows:
            if row.place == first_miss:
                label = Content.styled(f"── {hits.divider(trace)}", MUTED)
                options.append(Option(label.truncate(width), disabled=True))
            options.append(Option(row.drawn(width, lines), id=str(row.hit.chunk.rowid)))
        # Misses beyond those that the request lists are one row.
        # They all are in `lost`.
        if (more := len(trace.lost) - answer.request.misses) > 0:
            row_of_more = Option(Content.styled(f"     {more:,} more, weaker   W any line", MUTED), id=MORE)
            # The passage that was asked about comes after those that are not listed.
            ends_with_asked = len(answer.rows) > len(trace.recalled) + answer.request.misses
            options.insert(len(options) - 1 if ends_with_asked else len(options), row_of_more)
        return options

    @property
    def row(self) -> Row | None:
        """Return the passage under the cursor."""
        option, rows = self.hits.highlighted_option, self.answer.rows if self.answer is not None else ()
        return next((row for row in rows if option is not None and str(row.hit.chunk.rowid) == option.id), None)

    @property
    def line_asked(self) -> tuple[int, int]:
        """Return the id of a passage and the line of it that a person asked about; zeros where nobody did."""
        why = self.answer.why if self.answer is not None else None
        return (why.best.chunk.rowid, why.place.line or 0) if why is not None and why.best is not None else (0, 0)

    def line_of(self, row: Row) -> int:
        """Return the line of a passage that a person asked about, else the one that decided."""
        rowid, line = self.line_asked
        return (line or row.line) if row.hit.chunk.rowid == rowid else row.line

    @property
    def qmd_hit(self) -> QmdHit | None:
        """Return the hit of QMD under the cursor."""
        option, qmd = self.hits.highlighted_option, self.answer.qmd if self.answer is not None else None
        if option is None or qmd is None:
            return None
        return next((hit for hit in qmd.hits if f"q{hit.rank}" == option.id), None)

    # --- why -------------------------------------------------------------------------------------------------------

    def clear_why(self) -> None:
        """Empty the pane."""
        self.entitle(self.why, "Why")
        for name in ("#verdict", "#sums", "#steps", "#remedies-title", "#reads"):
            self.write(name, "")
        self.why.remove_class("-miss")
        self.show_passage("", 1, 1, "")

    def show_passage(self, text: str, first: int, line: int, path: str, excerpt: Excerpt | None = None) -> None:
        """Show a passage of the note `path`, unless it is shown already; the cursor is on `line`, `first` is its first.

        What the agent does not read of it, by its `excerpt`, is dim; without one nothing is.
        """
        numbers = range(first, first + text.count("\n") + 1)
        unread = {number for number in numbers if excerpt is not None and excerpt.leaves_out(number)}
        passage = NotePage(path, text.rstrip("\r\n"), first, unread=unread), line
        if passage != self.passage:
            self.passage = passage
            self.reader.show(*passage, decided=True)

    def moved(self) -> None:
        """Explain the passage under the cursor."""
        if self.filling:
            return
        # The look for remedies of the passage before ends.
        self.looking.set()
        if self.timer is not None:
            self.timer.stop()
        row, answer, qmd = self.row, self.answer, self.qmd_hit
        if row is not self.armed:
            self.armed = None
        self.hits.does = "Try" if self.armed is not None else "Read" if row or qmd else "Open"
        self.refresh_bindings()
        if answer is not None and row is not None:
            self.explain(answer, row)
            return
        self.clear_why()
        if answer is not None and answer.qmd is not None and qmd is not None:
            self.write("#verdict", f"QMD's {ordinal(qmd.rank)} by {answer.qmd.mode}, of {one_line(qmd.collection)}.")
            self.show_passage(qmd.snippet, qmd.start_line, qmd.start_line, qmd.path)
        elif answer is not None and (option := self.hits.highlighted_option) and option.id == MORE:
            more = plural(len(answer.trace.lost) - answer.request.misses, "weaker passage")
            self.write("#verdict", f"enter lists {more}. W asks about any line.")

    def explain(self, answer: Answered, row: Row) -> None:
        """Show why a passage comes or not, and its text; what would have it sent is worked out a moment later."""
        chunk, trace = row.hit.chunk, answer.trace
        text = answer.evidence.texts.get(chunk.rowid, row.hit.snippet)
        shows_sum = self.why.has_class("-sum")
        place = ordinal(row.place) if row.place else "no candidate"
        title = "Why it is not sent" if trace.keeps_back else f"{'Why it is' if row.sent else 'Why not:'} {place}"
        remark = "   tab, then ↓ scrolls" * shows_sum
        if self.why.has_class("-turning"):
            # The list shows its top, where a turn moves most: the passage of these numbers may be out of sight.
            title, remark = f"{place}, {row.name}", "   ‹ › say what a step lets in and out"
        remark *= self.why.size.width - len(remark) - 4 >= min(20, len(title))
        self.entitle(self.why, one_line(title, self.why.size.width - len(remark) - 4) + remark)
        spoken = wording.asked_words(trace, text)
        verdict = hits.verdict(row, trace, spoken)
        if answer.why is not None and chunk.rowid == self.line_asked[0]:
            verdict = f"{answer.why.unsent} {verdict}".lstrip()
        self.write("#verdict", hits.within(verdict, *self.query_one("#verdict").size))
        room = self.why.scrollable_content_region.width
        if shows_sum:
            self.query_one("#steps", Static).update(hits.long_sum(row, trace, spoken, text, self.why.size.width - 3))
        elif self.size.width >= 100:
            self.write("#sums", hits.sums(row, trace, spoken, room))
        else:
            self.write("#sums", hits.sums_in_a_line(row, room))
        self.write("#reads", hits.reads(row, self.line_of(row), room))
        self.show_passage(text, chunk.start_line, self.line_of(row), chunk.path, row.passage)
        # Who types does not read yet, so no pane changes its shape until the keys rest.
        is_typing = self.box.has_focus
        if not is_typing:
            self.show_miss(row)
        self.timer = self.set_timer(TYPING_SECONDS if is_typing else REST_SECONDS, self.rested)

    def show_miss(self, row: Row) -> None:
        """Show the place of the remedies below a passage that is not sent: those that are known, or that they come."""
        self.why.set_class(not row.sent, "-miss")
        if row is self.solved:
            self.show_remedies(*self.solution)
        elif not row.sent:
            self.show_remedies([], "looking for what would have it sent ...")

    def rested(self) -> None:
        """Work out what would have the passage sent on which the cursor rests."""
        answer, row = self.answer, self.row
        if answer is None or row is None or self.why.has_class("-turning"):
            return
        self.show_miss(row)
        # Ends with the request, too.
        self.looking = Stop(answer.request.stop)
        if not row.sent and row is not self.solved:
            self.remedy(answer, row, self.looking)

    @work(thread=True, exclusive=True, group="why")
    def remedy(self, answer: Answered, row: Row, stop: Stop) -> None:
        """Find the settings, then the words of a question, that have a passage sent."""
        evidence, settings = answer.evidence, answer.request.settings
        number = row_of(evidence, row.hit.chunk.rowid)
        if number is None:
            return
        result = self.attempt(lambda engine: flips(evidence, settings, number, engine.plan.with_profile, stop))
        if result is None:
            return
        line = self.line_of(row)
        # Only what sends the line that is meant, and not merely its passage.
        result = that_send(result, evidence, line)
        # Of an answer that is kept back the nearest are recalled, but not sent, and flips are what loses them.
        changes = [change for change in (*result.singles, *result.sets) if change.place]
        names = {listed.hit.chunk.rowid: (listed.place, listed.name) for listed in answer.rows}
        cut = f"its passage is sent, but without line {line}."
        without = f"With {hits.turns(result.without)} {cut}" if result.without else ""
        show = partial(self.solve, row.hit.chunk.rowid, answer.trace, without)
        is_local = not self._asks_elsewhere(answer.engine)
        # Questions are tried after the knobs, and only where asking costs nothing.
        self.call_later(show, hits.remedies(changes, (), names), is_last=not is_local)
        if is_local:
            questions = self.attempt(lambda _: self.rephrased(answer, row, stop))
            if not stop.is_set():
                self.call_later(show, hits.remedies(changes, questions or (), names), is_last=True)

    def rephrased(self, answer: Answered, row: Row, stop: Stop) -> Sequence[Rephrased]:
        """Return questions that have a passage sent; each is really asked, so only where that costs nothing."""
        evidence, settings, chunk = answer.evidence, answer.request.settings, row.hit.chunk
        ask = partial(answer.engine.search.gather, cancel=stop)
        text = evidence.texts.get(chunk.rowid, row.hit.snippet)
        questions, _ = rephrase(ask, evidence, settings, text, chunk, self.line_of(row), shorten=True)
        # An answer is kept back because no note answers the question; a word added from the passage would make it
        # another question.
        return [question for question in questions if not (question.word and answer.trace.keeps_back)]

    def solve(self, rowid: int, trace: Trace, without: str, remedies: list[Remedy], *, is_last: bool) -> None:
        """Show the remedies of a passage, if it is still under the cursor; after the last call nothing is looked for.

        `without` is a sentence about a change that sends the passage without the line that was asked about.
        """
        row, answer = self.row, self.answer
        if answer is None or row is None or trace is not answer.trace or row.hit.chunk.rowid != rowid:
            return
        none = f"No knob (t){' or added word' * (not trace.keeps_back)} alone would have it sent."
        none = "" if remedies else none if is_last else "looking for a word to add ..."
        self.solved = row if is_last else None
        self.solution = remedies, f"{without} {none}".strip()
        self.show_remedies(*self.solution)

    def show_remedies(self, remedies: list[Remedy], otherwise: str) -> None:
        """List remedies, and below them or in their place the sentence `otherwise`, if there is one."""
        self.remedies, rows = remedies, self.remedy_list
        width = rows.scrollable_content_region.width
        # `known` lets the key go on that tries the first one.
        rows.known.clear()
        # Where the pane has just been shown they are drawn a moment later.
        if width and (remedies or self.solved is self.row):
            rows.known.set()
        self.entitle_remedies()
        options = [Option(remedy.drawn(width), id=remedy.text) for remedy in remedies if width]
        if otherwise:
            options.append(Option(Content.styled(f" {otherwise}", MUTED), disabled=True))
        rows.refill(options)
        # Nothing is to be tried: enter reads.
        if self.armed is not None and self.solved is self.row and not remedies:
            self.hits.does = "Read"
            self.refresh_bindings()

    def entitle_remedies(self) -> None:
        """Say over the remedies which keys try one, from where the focus is.

        `]` arms the passage; then enter tries its first remedy.
        """
        is_here = self.remedy_list.has_focus
        more = "; tab ↓ more" * (len(self.remedies) > 1 and not is_here)
        keys = f"enter tries it{more}" if is_here or self.armed is not None else "] then enter tries it"
        row, keeps_back = self.row, self.answer is not None and self.answer.trace.keeps_back
        # Of an answer that is kept back a line is meant where a person asked about it.
        is_meant = row and (not keeps_back or row.hit.chunk.rowid == self.line_asked[0])
        what = f"Line {self.line_of(row)}" if row and is_meant else "This passage"
        heading = f"{what} would be sent with:   " if self.remedies else f"{what} is not sent"
        self.write("#remedies-title", Content.assemble((heading, "bold"), (keys if self.remedies else "", MUTED)))

    @on(OptionList.OptionSelected, "#remedies")
    def try_remedy(self, event: OptionList.OptionSelected) -> None:
        """Try a ranking, or another question."""
        remedy, row = self.remedies[event.option_index], self.row
        if isinstance(remedy.remedy, Change):
            self.try_settings(remedy.remedy.settings, hits.NOW.sub("", remedy.text))
        elif row is not None:
            # The cursor goes along to this line, in the answer to the other question and back.
            place = Place(row.hit.chunk.path, self.line_of(row), "")
            self.steps.append((remedy.text, partial(self.put, self.box.value, place)))
            self.put(remedy.remedy.query, place)
            self.notify(f"You try {remedy.text}. u takes it back.", markup=False)
        self.action_back()

    def put(self, query: str, place: Place | None = None) -> None:
        """Put a question into the box, which asks it; the cursor goes to the passage that holds the line `place`."""
        self.place, self.is_going = place, place is not None
        self.box.value = query
        self.box.cursor_position = len(query)

    # --- the scope -----------------------------------------------------------------------------------------------

    @work(exclusive=True, group="plan")
    async def action_scope(self) -> None:
        """Offer this workspace, all, those that are known without asking a server, and a line to type another."""
        names = await asyncio.to_thread(self.attempt, lambda engine: engine.scopes.known)

        async def chosen(scope: str | None) -> None:
            """Search the scope that was chosen, or ask for its name; None where the dialog was closed."""
            if scope == OTHER:
                await self.app.push_screen(Line("Search whose notes?", "OWNER/NAME, group:ROLE"), self.search_in)
            else:
                self.search_in(scope)

        options = [(name, one_line(name)) for name in (OWN, ALL, *(names or ()), OTHER)]
        await self.app.push_screen(Choice("Search whose notes?", options), chosen)

    def search_in(self, scope: str | None) -> None:
        """Search a scope from now on; taking it back searches the one before."""
        if scope and scope != (self.scope or OWN):
            self.steps.append((f"searching {one_line(scope)}", partial(self.ask_scope, self.scope)))
            self.ask_scope("" if scope == OWN else scope)

    def ask_scope(self, scope: str) -> None:
        """Ask the question of a scope; the mirror of the one before is filled no further."""
        self.attempt(lambda engine: engine.scopes.stop())
        self.scope, self.answer = scope, None
        self.box.placeholder = f"Ask the notes of {one_line(scope)}" if scope else ASK
        self.ask()

    @property
    def owner(self) -> str:
        """Return the other workspace of which the passage under the cursor is; empty for this one."""
        standing = self.answer.request.standing if self.answer is not None else None
        name = workspace_of(self.row.hit.chunk.path) if self.row is not None else ""
        return name if standing is not None and name in standing.workspaces else ""

    def on_unmount(self) -> None:
        """Wait for no mirror any more."""
        self.end_request()

    # --- the ranking -----------------------------------------------------------------------------------------------

    def try_settings(self, settings: Settings, words: str = "", knob: str = "") -> None:
        """Rank by other settings until they are taken back; steps of one knob in a row are taken back as one."""
        # The knob that was turned last, and nothing since: the new ranking takes the place of that one.
        if knob and self.turned == (knob, len(self.steps)):
            self.session.tried.pop()
            self.steps.pop()
            self.turned = "", 0
        in_force = self.session.settings
        # Of a knob that is back where it was nothing is to be taken back.
        if in_force is None or not knobs.same(settings, in_force):
            self.session.tried.append(settings)
            self.steps.append((words or f"the turn of “{knobs.NAMES[knob]}”", self.untry))
            self.turned = knob, len(self.steps)
        self.rerank()
        if words:
            self.notify(f"You try {words}. u takes it back.", markup=False)

    def untry(self) -> None:
        """Take back the last ranking that was tried, if there is one."""
        del self.session.tried[-1:]
        self.rerank()

    @property
    def uses_past_settings(self) -> bool:
        """Return whether the knobs of then are in force, or what was turned from there."""
        return self.past_settings in self.session.tried

    def action_own_ranking(self) -> None:
        """Rank by one's own settings again, whatever was tried."""
        self.session.tried.clear()
        # Bound methods compare equal, so every ranking that was tried goes.
        self.steps = [step for step in self.steps if step[1] != self.untry]
        self.rerank()
        self.notify("Ranked by your own settings again.", markup=False)

    def rerank(self) -> None:
        """Rank the answer on screen by the settings in force; a question that is under way is asked by them."""
        answer, settings, query = self.answer, self.session.settings, self.box.value.strip()
        # At once: what is said of a key must not stand over the ranking before it.
        self.draw_ranking()
        if query and (answer is None or answer.trace.evidence.question.query != query):
            self.ask()
        elif query and settings is not None and answer is not None:
            self.end_request()
            self.rank(self.new_request(answer.trace.evidence.question.query, settings), answer)

    def draw_ranking(self) -> None:
        """Draw the ranking as a line, and its knobs where they are unfolded."""
        settings, engine = self.session.settings, self.session.engine
        if settings is None or engine is None:
            return
        line = ranking.line(settings, engine.plan.settings, self.size.width, is_past=self.uses_past_settings)
        self.write("#ranking", line)
        if self.why.has_class("-turning"):
            self.knobs.show(settings, self.answer.effects if self.answer is not None else {})
            self.draw_knob()

    def draw_knob(self) -> None:
        """Say what the knob under the cursor is, what the ranking does, and what it measures."""
        settings, answer, width = self.session.settings, self.answer, self.knobs.size.width
        engine, key = self.session.engine, self.knobs.key
        if settings is None or engine is None or not key:
            return
        ways = [(sign, stepped(engine, settings, answer, key, way)) for sign, way in (("‹", -1), ("›", 1))]
        leads = ", ".join(f"{sign} {after.profile.title}" for sign, after in ways if after is not None)
        rows = [ranking.detail(key, settings, width, leads)]
        sentences = [wording.pipeline(answer.trace), answer.measures] if answer is not None else []
        if self.cases:
            # A small screen has room for one of the two: the measures of saved questions.
            sentences.reverse()
        for sentence in sentences:
            rows += [Content(" ") + row for row in Content.styled(sentence, MUTED).wrap(max(1, width - 1))]
        self.write("#knob", Content("\n").join(rows))

    @on(ranking.Knobs.Stepped)
    def step(self, message: ranking.Knobs.Stepped) -> None:
        """Turn a knob one step."""
        engine, settings = self.session.engine, self.session.settings
        if engine is None or settings is None:
            return
        after = stepped(engine, settings, self.answer, message.key, message.way)
        if after is not None:
            self.try_settings(after, knob=message.key)
        elif message.key == knobs.PROFILE:
            self.notify("No other ranking goes by these passages. c compares with others.", markup=False)

    # --- what the app tells ----------------------------------------------------------------------------------------

    def state_changed(self) -> None:
        """Ask what was typed while the engine was not open yet, or nothing was indexed; read the saved ones once."""
        if self.answer is None or self.answer.trace.empty is not None:
            # With an empty box this shows how to begin.
            self.ask()
        if self.session.engine is not None and not self.has_learned:
            self.has_learned = True
            self.learn()

    def events_arrived(self, events: Sequence[Event]) -> None:
        """Ask again where another answer may come."""
        for event in events:
            has_changed = isinstance(event, SyncFinished) and event.indexed + event.removed + event.embedded > 0
            if self.answer is not None and (has_changed or isinstance(event, IndexChanged)):
                self.ask()
                return

    @on(AskNotes)
    def asked(self, message: AskNotes) -> None:
        """Ask what another view wants to know."""
        message.stop()
        if message.path:
            self.ask_line(Place(message.path, message.line, ""))
        if message.query:
            if self.uses_past_settings:
                self.action_own_ranking()
            self.put(message.query)
            self.action_back()
        in_force, logged = self.session.settings, message.settings
        if in_force is not None and logged is not None and not knobs.same(in_force, logged):
            self.past_query, self.past_settings = message.query, logged
            self.try_settings(logged, "the knobs of then")

    def undo(self) -> bool:
        """Take back the last thing that was tried, and return True; False where the app has to take back a change.

        With nothing tried it turns how the words of the question are read: as written, and back.
        """
        self.turned = "", 0
        if self.steps:
            words, take_back = self.steps.pop()
            # A change of notes, which only the app takes back.
            if take_back is None:
                return False
            take_back()
            self.notify(f"You took back {words}.", markup=False)
            return True
        answer = self.answer
        if answer is None or not (answer.trace.side.plan.readings or answer.request.as_written):
            return False
        self.as_written = "" if answer.request.as_written else answer.trace.evidence.question.query
        self.ask()
        how = "searched as it is written. u reads it as before" if self.as_written else "read as before"
        self.notify(f"Every word is {how}.", markup=False)
        return True

    def on_resize(self) -> None:
        """Draw rows for another width."""
        self.set_class(self.size.width < 70, "-single")
        self.call_after_refresh(self.draw)

    # --- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of passages are there with passages."""
        # The word that holds for each key of two or three words; `by_state` made a binding for each.
        hints = {"back": "Back", "sum": ""} if isinstance(self.screen.focused, Reader) else {"back": "", "sum": "Sum"}
        if self.why.has_class("-sum"):
            hints["sum"] = "Close"
        if action in hints and parameters and parameters != (hints[action],):
            return False
        if action in {"copy", "sum", "miss", "judge", "promote", "overtake"}:
            return self.answer is not None and not self.knobs.has_focus
        return super().check_action(action, parameters)

    @on(OptionList.OptionSelected, "#search-list")
    def chosen(self, event: OptionList.OptionSelected) -> None:
        """Read the deciding line; of an example ask it; of `more` list them."""
        id_ = event.option.id or ""
        if id_.startswith("?"):
            self.put(id_.removeprefix("?"))
        elif id_ == MORE and self.answer is not None:
            self.misses = len(self.answer.trace.lost)
            self.rerank()
        elif self.has_class("-single") and not self.has_class("-open"):
            self.open_pane()
            self.screen.set_focus(self.query_one("#remedies" if self.why.has_class("-miss") else "#passage"))
        else:
            self.action_select()

    def open_pane(self) -> None:
        """Show the pane over the list where there is room for one of them; what is in it can be drawn only then."""
        if self.has_class("-single"):
            self.add_class("-open")
            self.call_after_refresh(self.moved)

    def close_pane(self) -> None:
        """Show the list again, which was not drawn behind the pane."""
        if self.has_class("-open"):
            self.remove_class("-open")
            self.call_after_refresh(self.draw)

    def action_select(self) -> None:
        """Read the deciding line in its note; who comes back finds the passages."""
        self.close_pane()
        if (qmd := self.qmd_hit) is not None and qmd.path.startswith("qmd/"):
            self.notify("This file is outside the workspace, so Notes does not show it.", markup=False)
        elif qmd is not None:
            self.post_message(ReadNote(qmd.path, qmd.start_line))
        elif (row := self.row) is not None:
            self.post_message(ReadNote(row.hit.chunk.path, self.line_of(row)))

    def action_back(self, _hint: str = "") -> None:
        """Go back to the passages."""
        self.close_pane()
        self.armed = None
        self.why.remove_class("-turning", "-sum")
        self.moved()
        self.call_after_refresh(self.hits.scroll_to_highlight)
        self.screen.set_focus(self.hits)

    def action_copy(self, text: bool) -> None:
        """Copy the deciding line with its citation, and say how another one is copied."""
        self.reader.action_copy(text, "tab goes to the lines around it: y copies another, space marks more.")

    def unfold(self, name: str, focus: str) -> bool:
        """Show what has the class `name` in the place of other panes, with the focus on `focus`, and return True.

        Where it is shown already it is folded.
        """
        if self.why.has_class(name):
            self.action_back()
            return False
        self.why.remove_class("-turning", "-sum").add_class(name)
        self.open_pane()
        self.screen.set_focus(self.query_one(focus))
        return True

    def action_sum(self, _hint: str = "") -> None:
        """Show the whole sum in the place of the three, or the three again; the list is walked on beside it."""
        if self.unfold("-sum", "#whole" if self.has_class("-single") else "#search-list"):
            self.moved()

    def action_miss(self) -> None:
        """Go to what would have a passage sent: the one under the cursor, then the next one, else the first."""
        if self.answer is None:
            return
        misses = [row for row in self.answer.rows if not row.sent]
        # From the passage under the cursor; to the next one where its remedies are in reach already.
        number = misses.index(self.row) if self.row in misses else 0
        if self.row in misses and (self.armed is not None or self.remedy_list.has_focus):
            number += 1
        if number >= len(misses):
            self.notify("No passage more is listed." if misses else "Nothing is left out.", markup=False)
            return
        # The remedies stand where the knobs or the long sum may be unfolded.
        self.why.remove_class("-turning", "-sum")
        self.armed = misses[number]
        self.hits.highlighted = self.hits.position(str(self.armed.hit.chunk.rowid))
        self.open_pane()
        self.screen.set_focus(self.remedy_list if self.has_class("-single") else self.hits)
        # A cursor that stood there already told nobody.
        self.moved()

    async def action_promote(self) -> None:
        """Copy or move the marked lines, else the deciding one, to MEMORY.md."""
        if self.row is not None and self.is_own(self.owner):
            await promote(self, self.reader, lambda _: self.steps.append(("", None)))

    async def action_overtake(self) -> None:
        """Write what holds now in the place of the deciding line, which stays with a mark."""
        if self.row is not None and self.is_own(self.owner):
            await overtake(self, self.reader, lambda _: self.steps.append(("", None)))

    async def action_compare(self) -> None:
        """Compare the ranking in force with another one."""
        if (answer := self.answer) is not None and answer.request.standing is not None:
            self.notify("Rankings are compared on this workspace's own index. u searches it again.", markup=False)
        elif answer is not None:
            await self.app.push_screen(Compare(self, answer.evidence, answer.request.settings))

    async def action_saved(self) -> None:
        """Show the saved questions."""
        question = self.answer.trace.evidence.question.query if self.answer is not None else ""

        def chosen(query: str | None) -> None:
            """Ask the question that was chosen, if any, by the judgments as they are now."""
            self.learn()
            if query:
                self.put(query)
                self.action_back()

        await self.app.push_screen(saved.SavedQuestions(self, question, self.cases, self.try_settings), chosen)

    async def action_judge(self) -> None:
        """Say whether a passage is right or wrong for the question."""
        row, answer = self.row, self.answer
        if row is None or answer is None or not self.is_own(self.owner):
            return
        query, chunk = answer.trace.evidence.question.query, row.hit.chunk
        text, line = answer.evidence.texts.get(chunk.rowid, row.hit.snippet), self.line_of(row)
        # The grade, 0 here, is set by the choice; line 0 lets the judgment take the line that decided.
        label = saved.label_of(row, answer.trace, text, 0, line if line != row.line else 0)

        def change(choice: str) -> saved.NotebookChange:
            """Return what a choice, a grade or a word of `saved`, does to the notebook."""
            if choice == saved.UNKNOWN:
                return saved.kept(query, unanswerable=True)
            mark = None if choice == saved.TAKE_BACK else structs.replace(label, grade=int(choice))
            return saved.judged(query, chunk, mark)

        def chosen(choice: str) -> None:
            """Judge the passage; the step that is remembered puts the question back as it was."""
            before = self.notebook.find(query)
            words = f"“{dict(saved.CHOICES)[choice].strip()}” of {row.name}, for “{one_line(query)}”"
            self.steps.append((words, lambda: self.learn(saved.as_before(query, before))))
            self.learn(change(choice))
            if before is None and choice != saved.TAKE_BACK:
                self.notify("Kept with your saved questions: S measures rankings by them.", markup=False)

        dialog = Choice("Is this right for your question?", saved.CHOICES, f"{row.name}, line {label.line}")
        await self.app.push_screen(dialog, if_answered(chosen))

    @work(thread=True, group="notebook")
    def learn(self, *changes: saved.NotebookChange) -> None:
        """Read the saved questions, changed, and mark the passages by them."""
        notebook = self.attempt(lambda engine: saved.edited(engine, *changes))
        if notebook is not None:
            self.call_later(self.learned, notebook)

    def learned(self, notebook: Notebook) -> None:
        """Mark the passages by the saved questions, and measure rankings on those that are judged."""
        has_changed = notebook != self.notebook
        self.notebook = notebook
        judged = {query.text: query for query in notebook.judged}
        query = judged.get(self.answer.trace.evidence.question.query) if self.answer is not None else None
        if self.answer is not None and query is not None:
            self.cases[query.text] = Case(query, self.answer.evidence)
        # What is not judged any more is not measured.
        for text in self.cases.keys() - judged.keys():
            del self.cases[text]
        # While knobs are turned, the measures below them are of the questions that are known now.
        if has_changed or self.why.has_class("-turning"):
            self.rerank()

    async def action_line(self) -> None:
        """Ask why any line comes or does not."""
        engine = self.answer.engine if self.answer is not None else self.session.engine
        if engine is not None:
            await self.app.push_screen(AnyLine(self, engine), if_answered(self.ask_line))

    def ask_line(self, place: Place) -> None:
        """Go to the passage that holds a line, once there is an answer."""
        self.place, self.is_going = place, True
        if self.answer is None:
            self.screen.set_focus(self.box)
            where = f"{safe(place.path)}:{place.line}"
            self.notify(f"Type a question, then enter: it says why {where} comes or does not.", markup=False)
        self.rerank()

    async def arrive(self, answer: Answered) -> None:
        """Go to the passage that was asked about, or say why there is none."""
        self.is_going = False
        row = next((row for row in answer.rows if row.hit.chunk.rowid == self.line_asked[0]), None)
        if not answer.trace.empty and row is not None:
            # Who asks why it does not come tries with the next key what would have it sent.
            self.wanted, self.armed = row.hit.chunk.rowid, None if row.sent else row
            self.screen.set_focus(self.hits)
        elif (why := answer.why) is not None:
            text = Content(f"{one_line(why.fate.message)}\n{one_line(why.place.remark)}".rstrip())
            await self.app.push_screen(Page(f"{safe(why.place.path)}:{why.place.line}", text))

    async def action_do(self) -> None:
        """Write the ranking that is tried into the configuration, shown first."""
        if not self.session.tried:
            self.notify("This ranking is the configured one. t turns it; then d writes it.", markup=False)
        elif is_writable(self):
            await ahead(self, self.propose_write(self.session.tried[-1]))

    async def propose_write(self, settings: Settings) -> None:
        """Show what would be written, and write it where that is agreed to."""
        patch = await asyncio.to_thread(self.attempt, lambda engine: config_write(engine, settings))
        if patch is not None and not patch.files:
            self.notify("The configuration has these values already.", markup=False)
        elif patch is not None:
            text = ranking.difference(patch)
            asks = View.Asks("Write this ranking", text, "Write it", lambda engine: self.write_config(engine, patch))
            await self.confirm(asks)

    def write_config(self, engine: Engine, patch: config_patch.Patch) -> str:
        """Write a ranking, on a worker thread; return what was done, in a sentence. Raises ConfigError."""
        files = patch.write()
        engine.reread()

        def undo(engine: Engine) -> str:
            """Write the files as they were; return the sentence that says so."""
            for file in reversed(files):
                config_patch.undo(file)
            engine.reread()
            return f"{one_line(patch.target.name)} is as it was before."

        self.steps.append(("what was written", lambda: self.perform(undo)))
        return f"Written to {one_line(patch.target.name)}, with a backup. u takes it back."

    def action_turn(self) -> None:
        """Unfold the knobs over the text, or fold them."""
        if self.unfold("-turning", "#knobs"):
            self.call_after_refresh(self.draw_ranking)
            self.rerank()


def config_write(engine: Engine, settings: Settings) -> config_patch.Patch:
    """Return what makes the knobs of `settings` hold from now on, by the configuration as it is on disk now.

    Raises ConfigError.
    """
    choices = plan.choose(engine.plan.options)
    # As the file has them; what is no knob of a ranking stays so.
    written = structs.replace(choices, settings=settings).as_written()
    changed = Settings({**written.values, **{key: settings.values[key] for key in TUNE_KEYS}})
    return config_patch.patch(choices.config, changed, written)


def effects_of_steps(engine: Engine, answer: Answered) -> ranking.Effects:
    """Return what a step of each knob lets in and out; nothing of an answer that is kept back."""
    if answer.trace.keeps_back:
        return {}
    settings = answer.request.settings
    ways = [(key, way) for key in knobs.active(settings) for way in (-1, 1)]
    possible = {way: after for way in ways if (after := stepped(engine, settings, answer, *way)) is not None}
    # The ranking in force comes first, then one for each possible step, in its order.
    before, *others = answer.replay.recalled([tuned(ranked) for ranked in (settings, *possible.values())])
    return {step: knobs.moved(before, rowids) for step, rowids in zip(possible, others, strict=True)}


def stepped(engine: Engine, settings: Settings, answer: Answered | None, key: str, way: int) -> Settings | None:
    """Return the ranking after one step of a knob, left (-1) or right (+1); None at the end of its scale.

    Profiles that cannot rank the evidence of the `answer` are passed over; None is for no answer yet.
    """
    usable = [name for name in PROFILES if answer is None or can_rank(answer.evidence, name)]
    value = knobs.stepped(settings, key, way, usable)
    if value == settings.values[key].value:
        return None
    return engine.plan.with_profile(str(value)) if key == knobs.PROFILE else knobs.with_value(settings, key, value)


VIEW = SearchView
