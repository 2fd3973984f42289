"""The part of the inbox that acts on a suggestion, undoes what it did."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.action import refusal
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.inbox import inbox_proposal
from memory_tui.tui.views.inbox.inbox_proposal import BRING_BACK, KEYS, VERBS, DecisionRecord, put_off
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.curate.changes import Change
    from memory_tui.curate.curator import AppliedChange
    from memory_tui.inbox.entries import Action, Suggestion
    from memory_tui.tui.views.inbox.inbox_proposal import Suggestions


class ShownInbox(Protocol):
    """The inbox, as far as its actions know it."""

    queue: Suggestions

    @property
    def hidden(self) -> dict[str, float]:
        """Until when (epoch seconds) suggestions are kept or put off, by id."""

    def drop(self, one: Suggestion) -> None:
        """What was suggested is done."""

    def put_off(self, one: Suggestion, until: float) -> None:
        """Show a suggestion where it belongs when it is put off `until` then, 0 when it is not."""

    def examine(self) -> None:
        """Look through the notes."""


class InboxActions(Part):
    """What can be done about each suggestion, and the way back."""

    def __init__(self, view: View, inbox: ShownInbox) -> None:
        super().__init__(view)
        self._inbox = inbox
        self._decisions: list[tuple[DecisionRecord, float]] = []
        """What was decided here, with the time until which each was put off before."""

    def chosen(self, rows: RowList, /) -> None:
        """Do what is proposed, or what the line of the proposal says."""
        one = self._inbox.queue.suggestion
        if rows.id == "suggestions" and one is not None:
            self._act(BRING_BACK if one.id in self._inbox.hidden else one.actions[0])
        elif rows.id == "proposal":
            self._do_line(rows.key)

    def _do_line(self, key: Hashable) -> None:
        match key:
            case ("place", str(path), int(first), int(last)):
                self.view.read_note(path, (first, last))
            case (str(action),):
                self._act(action)
            case _:
                pass

    def _act(self, action: str) -> None:
        """Do `action` about the suggestion under the cursor, or say why not."""
        one = self._inbox.queue.suggestion
        reason = refusal(("writable", "suggestion"), self.view.context())
        if one is None or reason:
            self.view.show_message(reason)
        elif action == BRING_BACK:
            self._decide(one, 0.0)
        elif action == "keep":
            self._decide(one, math.inf)
        elif action == "snooze":
            self.do_snooze()
        else:
            self._plan(one, next(other for other in one.actions if other == action))

    @task("plan")
    async def _plan(self, one: Suggestion, action: Action) -> None:
        """Show what `action` would change, and do it when that is wanted."""
        planned = await self.home.jobs.run(partial(inbox_proposal.proposed, one=one, action=action))

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._apply(one, planned.change)

        self.view.app.push_screen(Preview(planned, VERBS[action]), answered)

    @task("write", exclusive=False)
    async def _apply(self, one: Suggestion, change: Change) -> None:
        done = await self.home.jobs.write(partial(inbox_proposal.applied, change=change))
        also = f" Others' changes of {', '.join(done.merged)} were kept too." if done.merged else ""
        self._inbox.drop(one)
        self.view.show_message(f"{done.change.title}: done.{also} u undoes it.")
        self.home.jobs.refresh()
        self._inbox.examine()

    @task("write", exclusive=False)
    async def _decide(self, one: Suggestion, days: float) -> None:
        before = self._inbox.hidden.get(one.id, 0.0)
        decision = await self.home.jobs.write(partial(inbox_proposal.decided, one=one, days=days))
        self._decisions.append((decision, before))
        self._inbox.put_off(decision.suggestion, decision.until)
        state = put_off(decision.until) if decision.until else "asked again"
        self.view.show_message(f"{one_line(str(one.place))} is {state}. u undoes it.")

    def refused(self, error: MemoryTuiError) -> str:
        """Why; the notes are looked at as they are now."""
        self._inbox.examine()
        return super().refused(error)

    def _by_key(self, key: str) -> None:
        one = self._inbox.queue.suggestion
        if one is not None:
            self._act(next((action for action in one.actions if KEYS[action] == key), ""))

    def do_trash(self) -> None:
        """Move the lines, or the note, to the trash."""
        self._by_key("d")

    def do_move(self) -> None:
        """Merge, move, rename or archive, whichever is offered."""
        self._by_key("m")

    def do_keep(self) -> None:
        """Keep it for good."""
        self._act("keep")

    def do_snooze(self) -> None:
        """Ask for how long, and put it off."""
        from memory_tui.tui.views.dialogs import Snooze

        one = self._inbox.queue.suggestion

        def answered(days: int | None) -> None:
            if days and one is not None:
                self._decide(one, float(days))

        if one is not None:
            self.view.app.push_screen(Snooze(str(one.place)), answered)

    # --- the way back --------------------------------------------------------------------------------------------

    @task("write", exclusive=False)
    async def do_undo(self) -> None:
        """Take the last change or decision back."""
        last, before = self._decisions[-1] if self._decisions else (None, 0.0)
        work = partial(inbox_proposal.taken_back, since=self.home.started, last=last, before=before)
        self._stepped("undo", await self.home.jobs.write(work))

    @task("write", exclusive=False)
    async def do_redo(self) -> None:
        """Make the last change that was taken back again."""
        work = partial(inbox_proposal.stepped, kind="redo", since=self.home.started)
        self._stepped("redo", await self.home.jobs.write(work))

    @task("write", exclusive=False)
    async def _step(self, kind: str) -> None:
        self._stepped(kind, await self.home.jobs.write(partial(note_changes.step, kind=kind)))

    def _stepped(self, kind: str, outcome: AppliedChange | Planned | DecisionRecord) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._step(kind)

        if isinstance(outcome, Planned):
            self.view.app.push_screen(Preview(outcome, kind.capitalize()), answered)
        elif isinstance(outcome, DecisionRecord):
            self._decisions.pop()
            self._inbox.put_off(outcome.suggestion, outcome.until)
            self.view.show_message(f"{one_line(str(outcome.suggestion.place))}: decision undone.")
        else:
            way = "ctrl+r redoes it" if kind == "undo" else "u undoes it"
            self.view.show_message(f"{one_line(outcome.change.title)}. {way}.")
            self.home.jobs.refresh()
            self._inbox.examine()

    # --- around --------------------------------------------------------------------------------------------------

    def do_source(self) -> None:
        """Read the note at the lines."""
        place = self.view.place_in_note()
        if place is not None:
            self.view.read_note(place[0], place[1:])
