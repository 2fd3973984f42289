"""The part of the inbox that acts on a suggestion, or undoes what it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui.action import refusal
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.inbox import inbox_proposal
from memory_tui.tui.views.inbox.inbox_proposal import BRING_BACK, MEANING, READ, VERBS, DecisionRecord, put_off
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.inbox.entries import Suggestion
    from memory_tui.tui.note_changes import Planned
    from memory_tui.tui.views.inbox.inbox_proposal import Suggestions


class ShownInbox(Protocol):
    """The inbox, as far as its actions know it."""

    queue: Suggestions

    @property
    def hidden(self) -> dict[str, float]:
        """Until when (epoch seconds) suggestions are kept or put off, by id."""

    def drop(self, chosen: Sequence[Suggestion]) -> None:
        """What was suggested is done."""

    def put_off(self, until: Mapping[Suggestion, float]) -> None:
        """Show suggestions where they belong when they are put off `until` then, 0 when they are not."""

    def changed(self) -> None:
        """Look through the notes after a change of them."""

    def returned(self) -> None:
        """Look through them, and stand on what a step back brought back."""


class InboxActions(Part):
    """What can be done about each suggestion, and the way back."""

    def __init__(self, view: View, inbox: ShownInbox) -> None:
        super().__init__(view)
        self._inbox = inbox
        self._proposals = Proposals(view, inbox.changed, inbox.returned, inbox_proposal.masked, inbox_proposal.applied)
        self._decisions: list[tuple[DecisionRecord, Mapping[Suggestion, float]]] = []
        """What was decided here, with how all of it was put off before."""

    def chosen(self, rows: RowList, /) -> None:
        """Do what is proposed, or what the line of the proposal says."""
        row = self._inbox.queue.suggestion
        if rows.id == "suggestions" and row is not None:
            first = self._inbox.queue.chosen[0]
            self._act(BRING_BACK if first.id in self._inbox.hidden else inbox_proposal.entered(first))
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
        """Do `action` about the marked suggestions, else the one under the cursor, or say why not."""
        chosen, row = self._inbox.queue.chosen, self._inbox.queue.suggestion
        if action == READ and row is not None:
            self.view.read_note(row.place.path, (row.place.first, row.place.last))
            return
        reason = refusal(("writable", "suggestion"), self.view.context())
        lacking = [row for row in chosen if action not in (BRING_BACK, *row.actions)]
        if not chosen or reason:
            self.view.show_message(reason)
        elif lacking:
            self.view.show_message(f"{one_line(str(lacking[0].place))} is marked, and cannot be treated so.")
        elif action == BRING_BACK:
            self._decide(chosen, 0.0)
        elif action == "keep":
            self._decide(chosen, math.inf)
        elif action == "snooze":
            self.do_snooze()
        elif action == "edit":
            self._edit(chosen[0])
        else:
            offered = next(other for other in chosen[0].actions if other == action)
            plan = partial(inbox_proposal.proposed, chosen=chosen, action=offered)
            self._preview(chosen, plan, VERBS[offered])

    @task("plan")
    async def _edit(self, one: Suggestion) -> None:
        """Let a person edit the entry, show the difference, and write it when that is wanted."""
        from memory_tui.tui.views.dialogs import LineDialog

        words = await self.home.jobs.run(partial(inbox_proposal.entry_of, one=one))

        def typed(new: str | None) -> None:
            if new and new != words:
                self._preview([one], partial(inbox_proposal.rewritten, one=one, words=new), "Write")

        text, name = f"{one_line(str(one.place))}: {one_line(one.reason)}", "Edit the line"
        if one.kind == "promotion":
            text = f"{one_line(str(one.place))}. Its marker stays; OpenClaw's counts in brackets may go."
            name = "Edit the promoted entry"
        self.view.app.push_screen(LineDialog(name, text, "Go on", value=words), typed)

    def _preview(self, chosen: Sequence[Suggestion], plan: Callable[[Engine], Planned], verb: str) -> None:
        self._proposals.preview(plan, verb, lambda _done: self._inbox.drop(chosen))

    @task("write", exclusive=False)
    async def _decide(self, chosen: Sequence[Suggestion], days: float) -> None:
        before = {row: self._inbox.hidden.get(row.id, 0.0) for row in chosen}
        decision = await self.home.jobs.write(partial(inbox_proposal.decided, chosen=chosen, days=days))
        self._decisions.append((decision, before))
        self._inbox.put_off(decision.until)
        state = put_off(next(iter(decision.until.values()))) if days else "asked again"
        self.view.show_message(
            f"{decision.words} {'is' if len(chosen) == 1 else 'are'} {state}. {key_of('undo')} undoes it."
        )

    def _offered(self, meaning: str) -> str:
        """The action of that meaning which is offered for the first chosen one, empty without one."""
        chosen = self._inbox.queue.chosen
        return next((action for action in chosen[0].actions if MEANING[action] == meaning), "") if chosen else ""

    def do_edit_entry(self) -> None:
        """Edit the promoted entry or the contradicted line; else the note at it."""
        if action := self._offered("edit"):
            self._act(action)
        else:
            self.home.do_edit_here()

    def do_trash(self) -> None:
        """Move the lines, or the note, to the trash."""
        self._act(self._offered("remove"))

    def do_move(self) -> None:
        """Merge, move, rename or archive, whichever is offered."""
        self._act(self._offered("move"))

    def do_move_other(self) -> None:
        """Merge the other way round."""
        self._act(self._offered("move other"))

    def do_keep(self) -> None:
        """Keep it for good."""
        self._act("keep")

    def do_snooze(self) -> None:
        """Ask for how long, and put it off."""
        from memory_tui.tui.views.dialogs import Snooze

        chosen = self._inbox.queue.chosen

        if chosen:
            what = str(chosen[0].place) if len(chosen) == 1 else plural(len(chosen), "suggestion")
            Snooze(what).ask(self.view.app, lambda days: self._decide(chosen, float(days)))

    # --- the way back --------------------------------------------------------------------------------------------

    def do_undo(self) -> None:
        """Take the last change or decision back."""
        if self._decisions:
            self._undo_decision(*self._decisions[-1])
        else:
            self._proposals.do_undo()

    @task("write", exclusive=False)
    async def _undo_decision(self, last: DecisionRecord, before: Mapping[Suggestion, float]) -> None:
        undone = await self.home.jobs.write(partial(inbox_proposal.undecided, last=last, before=before))
        if undone is None:
            self._proposals.do_undo()
            return
        self._decisions.pop()
        self._inbox.put_off(undone.until)
        self.view.show_message(f"{undone.words}: decision undone.")

    def do_redo(self) -> None:
        """Make the last change that was taken back again."""
        self._proposals.do_redo()

    # --- around --------------------------------------------------------------------------------------------------

    def do_source(self) -> None:
        """Read the note at the lines."""
        place = self.view.place_in_note()
        if place is not None:
            self.view.read_note(place[0], place[1:])
