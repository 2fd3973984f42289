"""View 4 is the inbox: what needs a decision, by cause; the change shows before one key makes it for a whole group."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.timer import Timer
from textual.widgets import OptionList, Static
from textual.worker import get_current_worker

from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.inbox import checks
from memory_tui.inbox.entries import Action, Suggestion
from memory_tui.notes.changes import Change
from memory_tui.notes.curator import AppliedChange
from memory_tui.sanitize import one_line
from memory_tui.tui import changes, dialogs
from memory_tui.tui.dialogs import Choice
from memory_tui.tui.inbox_facts import CHANGES, QUIET, decided, explained, groups, listed, proposal
from memory_tui.tui.keys import bindings
from memory_tui.tui.session import Badge, ReadNote, Session
from memory_tui.tui.view import View
from memory_tui.tui.widgets.facts import MUTED, Fact, Facts

_REST_SECONDS, _AGAIN_SECONDS = 0.12, 0.5
_SHARE = 10.0
"""Looking again by itself waits this many times as long as the last look took: the machine has other things to do."""
_DAY_SECONDS = 86_400.0
_LATER = (("1", "until tomorrow"), ("7", "for a week"), ("30", "for a month"), ("365", "for a year"))
_Decision = Mapping[str, float]
"""Until when (epoch seconds) findings were put off before they were decided about, 0 for not at all, by id."""


class InboxView(View):
    """The groups on the left or above, why and what would change beside or below them."""

    NAME = "inbox"
    FOCUS = "#inbox-list"
    BINDINGS: ClassVar[list[BindingType]] = bindings("change", "note.edit")

    @dataclass
    class Examined(Message):
        """The notes were looked through."""

        findings: tuple[Suggestion, ...]
        hidden: Mapping[str, float]
        seconds: float

    @dataclass
    class Planned(Message):
        """What the change of a row is, or why there is none."""

        key: str
        change: Change | str

    @dataclass
    class Line(Message):
        """The line of a finding, as it is in its note."""

        item: Suggestion
        text: str

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.findings: tuple[Suggestion, ...] | None = None
        self.hidden: dict[str, float] = {}
        self.unfolded: set[str] = set()
        self.planned: dict[str, Change | str] = {}
        self.steps: list[_Decision | None] = []
        """What was done here, the last step last; None for a change of notes, which the app takes back."""
        self.seconds = 0.0
        """How long the last look took."""
        self.due: Timer | None = None

    def compose(self) -> ComposeResult:
        with Container(classes="panes"):
            yield Facts(id="inbox-list")
            with VerticalScroll(id="inbox-why"):
                yield Static(id="inbox-text", markup=False)

    def on_mount(self) -> None:
        """Follow the cursor before its paint."""
        self.query_one("#inbox-why").border_title = "Before and after"
        self.watch(self.query_one("#inbox-list", Facts), "highlighted", self.moved, init=False)
        self.draw()

    # --- looking ---------------------------------------------------------------------------------------------------

    def state_changed(self) -> None:
        """Look through the notes once the engine is open."""
        if self.findings is None:
            self.examine()

    def events_arrived(self, events: Sequence[Event]) -> None:
        """Look again when the index has followed a change of the notes."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            if self.due is not None:
                self.due.stop()
            self.due = self.set_timer(max(_AGAIN_SECONDS, _SHARE * self.seconds), self.examine)

    @work(thread=True, exclusive=True, group="inbox")
    def examine(self) -> None:
        """Look through the notes on a worker thread; what was found stays until then."""
        worker = get_current_worker()

        def look(engine: Engine) -> InboxView.Examined:
            begun = time.monotonic()
            findings = engine.inbox.examine(stopped=lambda: worker.is_cancelled, every=True).suggestions
            return self.Examined(
                findings, engine.inbox.decisions.hidden(findings, engine.plan.clock()), time.monotonic() - begun
            )

        found = self.attempt(look)
        if found is not None and not worker.is_cancelled:
            self.post_message(found)

    @on(Examined)
    def examined(self, message: Examined) -> None:
        """Show what was found."""
        self.findings, self.hidden, self.seconds = message.findings, dict(message.hidden), message.seconds
        self.planned.clear()
        self.draw()

    # --- showing ---------------------------------------------------------------------------------------------------

    @property
    def open(self) -> list[Suggestion]:
        """Return what is neither kept nor put off."""
        return [item for item in self.findings or () if item.id not in self.hidden]

    def draw(self) -> None:
        """Show the groups, and count them in the first line."""
        rows, shown = self.query_one("#inbox-list", Facts), groups(self.open)
        rows.border_title = "Inbox"
        if self.findings is None:
            rows.show([Fact("Looking through the notes ...", style=MUTED)])
            return
        quiet = [item for item in self.findings if item.id in self.hidden]
        rows.show(listed(shown, self.unfolded, self.hidden, quiet))
        self.post_message(Badge(self.NAME, len(shown)))
        self.explain()

    @property
    def chosen(self) -> tuple[Suggestion, ...]:
        """Return the findings of the row under the cursor: one, or those of its group."""
        fact = self.query_one("#inbox-list", Facts).fact
        key = fact.key.removeprefix("more:") if fact is not None else ""
        for group in groups(self.open):
            if group.key == key:
                return group.findings
        return tuple(item for item in self.findings or () if item.id == key)

    def moved(self) -> None:
        """Explain the row, and work out its change when the cursor rests."""
        self.explain()

    def explain(self) -> None:
        """Show why the row is listed and what would change."""
        chosen, text = self.chosen, self.query_one("#inbox-text", Static)
        if not chosen:
            text.update("")
            return
        key = "".join(item.id for item in chosen)
        change = self.planned.get(key)
        text.update(explained(chosen, change, is_quiet=chosen[0].id in self.hidden))
        self.query_one("#inbox-why").scroll_home(animate=False)
        if change is None and proposal(chosen) in CHANGES:
            self.work_out(key, chosen)

    @work(thread=True, exclusive=True, group="proposal")
    def work_out(self, key: str, chosen: Sequence[Suggestion]) -> None:
        """Find out what the change would be, once the cursor rests."""
        worker, engine = get_current_worker(), self.session.engine
        if engine is None or engine.index.writer.closing.wait(_REST_SECONDS) or worker.is_cancelled:
            return
        try:
            outcome: Change | str = checks.changes(chosen, proposal(chosen), engine.notes.curator)
        except MemoryTuiError as error:
            outcome = f"{error.message} {error.next_step}"
        self.post_message(self.Planned(key, outcome))

    @on(Planned)
    def show_change(self, message: Planned) -> None:
        """Show the change of the row."""
        self.planned[message.key] = message.change
        self.explain()

    # --- acting ----------------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected, "#inbox-list")
    async def selected(self, event: OptionList.OptionSelected) -> None:
        """Open a group, or offer what can be done about a line."""
        event.stop()
        key, chosen = event.option.id or "", self.chosen
        if key == QUIET or key.startswith(("group:", "more:")):
            self.unfolded ^= {key.removeprefix("more:")}
            self.draw()
        elif chosen:
            await self.offer(chosen[0])

    async def offer(self, item: Suggestion) -> None:
        """Let a person choose what is done about a line."""
        offers: list[tuple[str, str]] = [("read", "read the note there")]
        if item.id in self.hidden:
            offers.insert(0, ("open", "ask about it again"))
        else:
            words = {
                **CHANGES,
                "keep": "keep it as it is, never ask again",
                "snooze": "ask again later",
                "edit": "edit the line",
                "none": "it is no secret, nor what follows this label so",
            }
            offers = [*((action, words[action]) for action in item.actions), *offers]

        async def answered(action: str | None) -> None:
            match action:
                case "read":
                    self.post_message(ReadNote(item.place.path, item.place.first))
                case "open":
                    self.decide((item,), 0.0)
                case "keep":
                    self.decide((item,), math.inf)
                case "none":
                    self.perform(lambda engine: self.clear(engine, item), lambda: self.hide({item.id: math.inf}))
                case "snooze":
                    await self.action_later()
                case "edit":
                    self.read_line(item)
                case str():
                    await self.propose((item,), next(other for other in item.actions if other == action))

        await self.app.push_screen(Choice(one_line(str(item.place)), offers, one_line(item.reason)), answered)

    async def action_do(self) -> None:
        """Show the proposed change of the row or the group, and make it where that is agreed to."""
        chosen = self.chosen
        if not chosen:
            self.notify("Nothing is under the cursor.", markup=False)
        elif proposal(chosen) not in CHANGES:
            self.notify("Nothing is proposed here; enter shows what can be done, K keeps it.", markup=False)
        else:
            await self.propose(chosen, proposal(chosen))

    async def propose(self, chosen: Sequence[Suggestion], action: Action) -> None:
        """Show a change, and make it where that is agreed to."""
        await changes.propose(self, lambda curator: checks.changes(chosen, action, curator), then=self.changed)

    def changed(self, done: AppliedChange) -> None:
        """Remember that a change of notes was the last step."""
        del done
        self.steps.append(None)
        self.seconds = 0.0

    @work(thread=True, exclusive=True, group="plan")
    def read_line(self, item: Suggestion) -> None:
        """Read the line as it is, which a finding only has shortened and masked."""

        def read(engine: Engine) -> str:
            return engine.notes.curator.plan.spot(item.place.path, item.place.first, item.place.last).texts()[-1]

        text = self.attempt(read)
        if text is not None:
            self.post_message(self.Line(item, text))

    @on(Line)
    async def edit(self, message: Line) -> None:
        """Let a person write the line anew, then show the difference."""
        item = message.item

        async def typed(words: str | None) -> None:
            if words:
                await changes.propose(self, lambda curator: checks.rewritten(item, words, curator), then=self.changed)

        box = dialogs.Line(one_line(str(item.place)), value=message.text, explanation=one_line(item.reason))
        await self.app.push_screen(box, typed)

    def action_edit(self) -> None:
        """Read the note at the line, where it can be edited."""
        if chosen := self.chosen:
            self.post_message(ReadNote(chosen[0].place.path, chosen[0].place.first))

    def action_keep(self) -> None:
        """Keep the row or the group as it is; what was decided is asked about again."""
        if chosen := self.chosen:
            self.decide(chosen, 0.0 if chosen[0].id in self.hidden else math.inf)

    async def action_later(self) -> None:
        """Put the row or the group off."""
        chosen, engine = self.chosen, self.session.engine
        if chosen and engine is not None:
            now = engine.plan.clock()

            def answered(days: str | None) -> None:
                if days:
                    self.decide(chosen, now + float(days) * _DAY_SECONDS)

            await self.app.push_screen(Choice("Ask again", _LATER), answered)

    def decide(self, chosen: Sequence[Suggestion], end: float) -> None:
        """Leave findings alone until `end`, for good where it is infinite, open again where it is 0."""
        before = {item.id: self.hidden.get(item.id, 0.0) for item in chosen}
        ends = {item.id: end for item in chosen}

        def then() -> None:
            self.steps.append(before)
            self.hide(ends)

        self.perform(lambda engine: self.put(engine, ends) or decided(len(chosen), end), then)

    def put(self, engine: Engine, ends: _Decision) -> str:
        """Write down until when findings are left alone. Raises EditRefused."""
        decisions = engine.inbox.decisions
        for item in self.findings or ():
            end = ends.get(item.id)
            if end == 0:
                decisions.reopen(item.id)
            elif end is not None and math.isinf(end):
                decisions.keep(item)
            elif end is not None:
                decisions.snooze(item, end)
        return ""

    def clear(self, engine: Engine, item: Suggestion) -> str:
        """Write down that a finding is no secret. Raises EditRefused."""
        engine.inbox.decisions.none(item)
        return decided(1, math.inf)

    def hide(self, ends: _Decision) -> None:
        """Show findings where they belong with their new ends."""
        self.hidden = {id_: end for id_, end in {**self.hidden, **ends}.items() if end}
        self.draw()

    def undo(self) -> bool:
        """Take the last decision back; a change of notes is the app's to take back."""
        last = self.steps.pop() if self.steps else None
        if last is None:
            return False
        self.perform(lambda engine: self.put(engine, last) or "Decided about again.", lambda: self.hide(last))
        return True


VIEW = InboxView
