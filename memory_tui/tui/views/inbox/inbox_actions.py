"""The part of the inbox that acts on a suggestion, or undoes what it did."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.action import refusal
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.inbox import inbox_proposal
from memory_tui.tui.views.inbox.inbox_proposal import BRING_BACK, MEANING, READ, VERBS, DecisionRecord, put_off
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

    def drop(self, chosen: Sequence[Suggestion]) -> None:
        """What was suggested is done."""

    def put_off(self, until: Mapping[Suggestion, float]) -> None:
        """Show suggestions where they belong when they are put off `until` then, 0 when they are not."""

    def examine(self) -> None:
        """Look through the notes."""


class InboxActions(Part):
    """What can be done about each suggestion, and the way back."""

    def __init__(self, view: View, inbox: ShownInbox) -> None:
        super().__init__(view)
        self._inbox = inbox
        self._decisions: list[tuple[DecisionRecord, Mapping[Suggestion, float]]] = []
        """What was decided here, with how all of it was put off before."""

    def chosen(self, rows: RowList, /) -> None:
        """Do what is proposed, or what the line of the proposal says."""
        one = self._inbox.queue.suggestion
        if rows.id == "suggestions" and one is not None:
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
        chosen, one = self._inbox.queue.chosen, self._inbox.queue.suggestion
        if action == READ and one is not None:
            self.view.read_note(one.place.path, (one.place.first, one.place.last))
            return
        reason = refusal(("writable", "suggestion"), self.view.context())
        lacking = [one for one in chosen if action not in (BRING_BACK, *one.actions)]
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
            self._plan(chosen, next(other for other in chosen[0].actions if other == action))

    @task("plan")
    async def _edit(self, one: Suggestion) -> None:
        """Let a person edit the entry, show the difference, and write it when that is wanted."""
        from memory_tui.tui.views.dialogs import LineDialog

        words = await self.home.jobs.run(partial(inbox_proposal.entry_of, one=one))

        def typed(new: str | None) -> None:
            if new and new != words:
                self._rewrite(one, new)

        said, name = f"{one_line(str(one.place))}: {one_line(one.reason)}", "Edit the line"
        if one.kind == "promotion":
            said = f"{one_line(str(one.place))}. Its marker stays; OpenClaw's counts in brackets may go."
            name = "Edit the promoted entry"
        self.view.app.push_screen(LineDialog(name, said, "Go on", value=words), typed)

    @task("plan")
    async def _rewrite(self, one: Suggestion, words: str) -> None:
        planned = await self.home.jobs.run(partial(inbox_proposal.rewritten, one=one, words=words))
        self._preview([one], planned, "Write")

    def _preview(self, chosen: Sequence[Suggestion], planned: Planned, verb: str) -> None:
        Preview(planned, verb).ask(self.view.app, lambda _yes: self._apply(chosen, planned.change))

    @task("plan")
    async def _plan(self, chosen: Sequence[Suggestion], action: Action) -> None:
        """Show what `action` would change, and do it when that is wanted."""
        planned = await self.home.jobs.run(partial(inbox_proposal.proposed, chosen=chosen, action=action))
        self._preview(chosen, planned, VERBS[action])

    @task("write", exclusive=False)
    async def _apply(self, chosen: Sequence[Suggestion], change: Change) -> None:
        done = await self.home.jobs.write(partial(inbox_proposal.applied, change=change))
        also = f" Others' changes of {', '.join(done.merged)} were kept too." if done.merged else ""
        self._inbox.drop(chosen)
        self.view.show_message(f"{done.change.title}: done.{also} {key_of('undo')} undoes it.")
        self.home.jobs.refresh()
        self._inbox.examine()

    @task("write", exclusive=False)
    async def _decide(self, chosen: Sequence[Suggestion], days: float) -> None:
        before = {one: self._inbox.hidden.get(one.id, 0.0) for one in chosen}
        decision = await self.home.jobs.write(partial(inbox_proposal.decided, chosen=chosen, days=days))
        self._decisions.append((decision, before))
        self._inbox.put_off(decision.until)
        state = put_off(next(iter(decision.until.values()))) if days else "asked again"
        self.view.show_message(
            f"{decision.words} {'is' if len(chosen) == 1 else 'are'} {state}. {key_of('undo')} undoes it."
        )

    def refused(self, error: MemoryTuiError) -> str:
        """Why; the notes are looked at as they are now."""
        self._inbox.examine()
        return super().refused(error)

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

    @task("write", exclusive=False)
    async def do_undo(self) -> None:
        """Take the last change or decision back."""
        nothing: tuple[None, Mapping[Suggestion, float]] = (None, {})
        last, before = self._decisions[-1] if self._decisions else nothing
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
        if isinstance(outcome, Planned):
            Preview(outcome, kind.capitalize()).ask(self.view.app, lambda _yes: self._step(kind))
        elif isinstance(outcome, DecisionRecord):
            self._decisions.pop()
            self._inbox.put_off(outcome.until)
            self.view.show_message(f"{outcome.words}: decision undone.")
        else:
            way = f"{key_of('redo')} redoes it" if kind == "undo" else f"{key_of('undo')} undoes it"
            self.view.show_message(f"{note_changes.done_words(outcome.change)}. {way}.")
            self.home.jobs.refresh()
            self._inbox.examine()

    # --- around --------------------------------------------------------------------------------------------------

    def do_source(self) -> None:
        """Read the note at the lines."""
        place = self.view.place_in_note()
        if place is not None:
            self.view.read_note(place[0], place[1:])
