"""View 2 is the search. A person asks, sees the hits and why, and turns the knobs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.content import Content
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.events import BackendChanged, Event, IndexChanged, SyncFinished
from memory_tui.explain.wording import answered_by
from memory_tui.notices import foreign_vectors
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.state import Facts
from memory_tui.tui.tuning import Answer
from memory_tui.tui.views.search.knobs import Knobs, Reading, ShownAnswer
from memory_tui.tui.views.search.search_explain import Explainer
from memory_tui.tui.views.search.search_judge import HitActions, Judge
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.query import ASKED_BEFORE, TO_BEGIN, WORDS, Cut, FunnelLine, QueryBox, cuts, lost_at
from memory_tui.tui.widgets.results import HitList, legend
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.workers import stop, task

if TYPE_CHECKING:
    from memory_tui.search.trace import Trace
    from memory_tui.workspace.roots import RootState

INVITATION = "Type a query; the hits appear while you type."
HOW = "The agent's hits come first. Below a line are the chunks it does not get, each with the reason."


def _changes_answers(event: Event) -> bool:
    """Whether a question may be answered otherwise after `event`."""
    return isinstance(event, IndexChanged | BackendChanged) or (
        isinstance(event, SyncFinished) and event.indexed + event.removed + event.embedded > 0
    )


class SearchView(View):
    """Query box, hits, arithmetic, knobs and funnel."""

    PLACE = "search"
    MORE_PLACES = ("search", "notes")
    AUTO_FOCUS = "#query"
    SCROLLED = "#why"

    def __init__(self, query: str = "") -> None:
        super().__init__()
        self.shown = ShownAnswer()
        self.knobs = Knobs(self, self.shown, lambda keep: self.relist(keep=keep))
        self.explainer = Explainer(self, self.shown)
        self.judge = Judge(self, self.shown, self.explainer.explain, self.ask_again)
        self.reading = Reading(self, self.shown, self._ask)
        actions = HitActions(self, self.shown)
        self.changes = actions.changes
        self.parts = (self.reading, self.knobs, self.judge, self.explainer, actions, self.changes)
        self._first = query
        self._open = False
        self._cut: Cut | None = None
        self._gone: RootState | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The panes, top to bottom."""
        yield QueryBox()
        with self.panes():
            yield HitList()
            yield WhyPane()
        yield from self.knobs.compose()
        yield FunnelLine()

    def on_mount(self) -> None:
        """Say how to begin, and ask the question that came from the command line."""
        super().on_mount()
        self._show_nothing()
        self._invite()
        if self.home.engine is not None:
            self.engine_opened()

    @property
    def trace(self) -> Trace | None:
        """The ranking on screen."""
        return self.shown.trace

    @property
    def question(self) -> str:
        """The question whose answer is on screen."""
        return self.shown.question

    def engine_opened(self) -> None:
        """Knobs are known now; what was typed meanwhile is asked."""
        if self._open or self.home.engine is None:
            return
        self._open = True
        self.judge.read_notebook()
        self.knobs.show()
        self._invite()
        box = self.query_one(QueryBox)
        if self._first and not box.input.value:
            box.input.value = self._first
            self.query_one(HitList).focus()
        if box.input.value:
            self._ask(box.input.value)

    def _invite(self) -> None:
        facts, results = self.home.facts, self.query_one(HitList)
        if self.home.engine is None:
            results.show_sentences("Opening the index ...", "You can type your query already.")
        elif facts is not None and not facts.rows and facts.lost_notes is not None:
            results.show_sentences(one_line(facts.lost_notes.detail), "It is indexed as soon as it is there.")
        elif facts is not None and not facts.rows:
            results.show_sentences(
                f"There are no notes in {self.home.workspace_name}/ yet, so nothing can be found.",
                *TO_BEGIN,
            )
        else:
            results.show_sentences(INVITATION, HOW, ASKED_BEFORE, *self._suggestions())

    def _suggestions(self) -> list[str]:
        query = self.home.suggestions
        return ["", "For instance:", *(f"  {one_line(question)}" for question in query)] if query else []

    # --- asking --------------------------------------------------------------------------------------------------

    @on(QueryBox.Asked)
    def _asked_for(self, event: QueryBox.Asked) -> None:
        self._ask(event.query_text)

    def _ask(self, query: str) -> None:
        if self.home.engine is None:
            return
        if not query.strip():
            stop(self, "search")
            self.shown.asked = ""
            self._invite()
            self._show_nothing()
            return
        self.query_one(QueryBox).outcome("asking ...")
        self._search(query)

    @task("search")
    async def _search(self, query: str) -> None:
        """Show what is found; a newer question takes the place of an older one, which is stopped."""
        as_written = query == self.shown.as_written
        both = await self.home.jobs.stoppable(
            lambda engine, stop: (
                engine.backend.ask(query, stop=stop),
                engine.search.gather(query, stop, as_written=as_written),
            )
        )
        engine, tuning = self.home.engine, self.home.tuning
        if engine is None or tuning is None:
            return
        if isinstance(both, MemoryTuiError):
            self.query_one(HitList).show_sentences(one_line(both.message), one_line(both.next_step))
            self._show_nothing()
            return
        self.shown.qmd, reply = both
        same = reply.query == self.shown.asked
        self._cut = self._cut if same else None
        self.shown.asked = reply.query
        self.shown.answer = Answer.of(engine.search.rank, reply, tuning)
        self.reading.answered()
        self.relist(keep=same)

    def relist(self, *, keep: bool) -> None:
        """List the answer; with `keep` the cursor stays on its chunk."""
        tuning = self.home.tuning
        if self.shown.answer is None or tuning is None:
            return
        results = self.query_one(HitList)
        results.show(
            self.shown.answer, self.shown.grade, compare=tuning.compared, keep=keep, cut=self._cut, qmd=self.shown.qmd
        )
        text = self._listed()
        self._entitle(text)
        self._show_outcome(text)
        self.judge.show_measures()
        self.explainer.explain()

    def _listed(self) -> str:
        """What is listed: the answer, or what a stage dropped."""
        return self._recalled() if self._cut is None else f"{WORDS[self._cut]}: {self._lost_there():,}; esc shows all"

    def _entitle(self, said: str) -> None:
        """Say in the frame of the hits what is listed, and how many are marked."""
        results, tuning = self.query_one(HitList), self.home.tuning
        if tuning is not None and tuning.compared:
            below = Content(f"change against {tuning.baseline.name} ({tuning.baseline.title})")
        else:
            below = legend()
        results.name_frame(Content(results.marks.beside(said)), below)

    def _lost_there(self) -> int:
        if self.shown.answer is None or self._cut is None:
            return 0
        trace = self.shown.answer.trace
        counts = {"pool": trace.funnel.chunks - trace.funnel.candidates, "disk": len(trace.unsearchable)}
        return counts[self._cut] if self._cut in counts else len(lost_at(trace, self._cut))

    def _recalled(self) -> str:
        trace = self.shown.trace
        if trace is None:
            return ""
        if self.shown.qmd is not None:
            return f"QMD recalled {len(self.shown.qmd.hits)}; the built-in index {len(trace.recalled)}"
        mode = "" if trace.mode == "hybrid" else f", {trace.mode}"
        if any(notice.code == "meaning_alone" for notice in trace.notices):
            mode = f", not by words: {trace.plan.unmatched}"
        elif trace.level is not None and trace.level.level != "found":
            mode += f", {trace.level.sentence[0].lower()}{trace.level.sentence[1:-1]}"
        mode += "".join(
            f", {foreign_vectors(row.fields['provider'])}" for row in trace.notices if row.kind == "other_vectors"
        )
        days = self.shown.answer.days if self.shown.answer is not None else 0
        when = f" on {dt.datetime.fromtimestamp(trace.now, dt.UTC):%Y-%m-%d}" if days else ""
        facts = self.home.facts
        lost = facts.lost_notes if facts is not None else None
        rest = f", from the index alone: notes {lost.state}" if lost is not None else ""
        read = f", u takes back: {self.reading.clause}" if self.reading.clause else ""
        return f"{trace.count}{when}{read}{mode}{rest}"

    def _show_nothing(self) -> None:
        """There is no answer: the list says why, the other panes are empty."""
        self.shown.answer = None
        self.query_one(HitList).name_frame(Content("Hits"), Content(""))
        self._show_outcome("")
        self.explainer.explain()

    def _answered_by(self) -> tuple[str, str]:
        """What this question was answered by, why not by both where there is room for it, and how surely if not so."""
        if self.shown.trace is None or self.shown.qmd is not None:
            return "QMD" if self.shown.qmd is not None else "", ""
        by, reason = answered_by(self.shown.trace)
        level = self.shown.trace.level
        if level is not None and level.level != "found" and self.shown.trace.recalled:
            return by, level.level.upper()
        return f"{by}: {reason}" if reason and self.has_class("-wide") else by, ""

    def _show_outcome(self, said: str) -> None:
        # What it was answered by stands beside it already.
        self.query_one(QueryBox).outcome(said if self._cut is not None else said.partition(",")[0])
        self.query_one(QueryBox).answered_by(*self._answered_by())
        self.knobs.show()
        self.query_one(FunnelLine).show(self.shown.trace, self._cut)

    @on(events.Resize)
    def _room_changed(self) -> None:
        """There may be room now for why it was not answered by both, or none any more."""
        # Textual says how wide the view is only after this.
        self.call_after_refresh(lambda: self.query_one(QueryBox).answered_by(*self._answered_by()))

    def backend_changed(self) -> None:
        """Another backend answers: ask again."""
        query = self.query_one(QueryBox).input.value
        if query.strip():
            self._ask(query)

    def ask_again(self, question: str) -> None:
        """Put `question` into the box and ask it."""
        box = self.query_one(QueryBox)
        box.input.value = question
        box.ask_now()
        box.input.remember()
        self.query_one(HitList).focus()

    def events_came(self, events: Sequence[Event]) -> None:
        """Notes changed: ask again, so that the list is about the notes as they are."""
        query = self.query_one(QueryBox).input.value
        if query.strip() and any(map(_changes_answers, events)):
            self._ask(query)

    def facts_changed(self, facts: Facts, /) -> None:
        """Whether there are notes at all decides what an empty list says; whether they are gone, what any list says."""
        lost, self._gone = self._gone, facts.lost_notes
        if self.shown.answer is not None and lost != self._gone:
            self.relist(keep=True)
        if self.shown.answer is None and not self.query_one(QueryBox).input.value.strip():
            self._invite()

    # --- stages --------------------------------------------------------------------------------------------------

    @on(FunnelLine.Chosen)
    def _stage_chosen(self, event: FunnelLine.Chosen) -> None:
        self._list_cut(None if event.cut == self._cut else event.cut)

    def _list_cut(self, cut: Cut | None) -> None:
        if self.shown.answer is None:
            return
        if cut is not None and cut not in cuts(self.shown.answer.trace):
            self.show_message("This stage dropped no chunk.")
            return
        self._cut = cut
        self.relist(keep=True)

    def _stage(self, direction: int) -> None:
        if self.shown.answer is None:
            self.show_message(INVITATION)
            return
        reply: list[Cut | None] = [None, *cuts(self.shown.answer.trace)]
        if len(reply) == 1:
            self.show_message("No chunk was dropped: every chunk is recalled.")
            return
        at = reply.index(self._cut) if self._cut in reply else 0
        self._list_cut(reply[(at + direction) % len(reply)])

    def do_next_stage(self) -> None:
        """List what was lost at the next stage."""
        self._stage(1)

    def do_previous_stage(self) -> None:
        """List what was lost at the stage before."""
        self._stage(-1)

    # --- moving about --------------------------------------------------------------------------------------------

    def do_to_results(self) -> None:
        """Ask at once if the typing has not rested yet, and go to the hits."""
        box = self.query_one(QueryBox)
        box.ask_now()
        box.input.remember()
        self.home.was_recalled(self.shown.trace)
        self.query_one(HitList).focus()
        if box.input.value.strip() and self.home.engine is not None:
            self.home.step_done("asked")

    @on(RowList.Chosen, "#results")
    def _open_reader(self) -> None:
        hit, others = self.query_one(HitList).hit, self.query_one(HitList).qmd_hit
        if others is not None and others.path.startswith("qmd/"):
            self.show_message("This file is outside the workspace. Choose another hit.")
        elif others is not None:
            self.read_note(others.path, (others.start_line, others.end_line))
        if hit is not None:
            self.read_note(hit.chunk.path, (hit.chunk.start_line, hit.chunk.end_line), self.shown.trace)

    def back(self) -> bool:
        """A depth of the why pane back, then from the other panes to the hits, if there are any."""
        results = self.query_one(HitList)
        if self.focused is self.query_one(WhyPane) and self.query_one(WhyPane).shallower():
            return True
        if self.focused is results and results.marks.drop():
            return True
        if self.focused is results and self._cut is not None:
            self._list_cut(None)
            return True
        if self.focused is results or (self.shown.answer is None and self.focused is self.query_one(QueryBox).input):
            return False
        results.focus()
        return True

    # --- where the user is ---------------------------------------------------------------------------------------

    def more_context(self) -> dict[str, bool]:
        """Whether there is an answer."""
        return {"answer": self.shown.answer is not None}

    def do_undo(self) -> None:
        """Undo the last step: a change of notes, what was read, a knob."""
        (self.changes if self.changes.is_last else self.reading).do_undo()

    def do_redo(self) -> None:
        """Redo it."""
        (self.changes if self.changes.is_last else self.reading).do_redo()

    @on(RowList.Marked, "#results")
    def _say_marks(self) -> None:
        if self.shown.answer is not None:
            self._entitle(self._listed())

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The chunk of the hit under the cursor."""
        hit, others = self.query_one(HitList).hit, self.query_one(HitList).qmd_hit
        if others is not None and not others.path.startswith("qmd/"):
            return (others.path, others.start_line, others.end_line)
        return (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line) if hit else None

    def line_in_note(self) -> int:
        """The first cited line."""
        place = self.place_in_note()
        return place[1] if place else 1

    def text_in_note(self) -> str:
        """The text of the hit's chunk."""
        hit, others = self.query_one(HitList).hit, self.query_one(HitList).qmd_hit
        if others is not None:
            return safe(others.snippet, keep_newlines=True)
        if hit is None or self.shown.answer is None:
            return ""
        return safe(self.shown.answer.evidence.texts.get(hit.chunk.rowid, hit.snippet), keep_newlines=True)
