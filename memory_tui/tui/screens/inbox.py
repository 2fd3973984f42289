"""View 4: one queue of what in the notes should be looked at; every step is shown first or taken back by a key."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType

from memory_tui.errors import MemoryTuiError
from memory_tui.text.display import one_line
from memory_tui.tui import inboxing, planning
from memory_tui.tui.action import may_decide
from memory_tui.tui.actions import bindings
from memory_tui.tui.inboxing import Decision
from memory_tui.tui.paint import plural
from memory_tui.tui.proposal import AGAIN, KEYS, VERBS, put_off
from memory_tui.tui.screens.base import T
from memory_tui.tui.screens.preview import Planned, Preview
from memory_tui.tui.screens.queue import QueueView
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.suggestions import Proposal, Suggestions

if TYPE_CHECKING:
    from memory_tui.curate.curator import Done
    from memory_tui.curate.suggestion import Action, Suggestion
    from memory_tui.engine import Engine


class InboxView(QueueView):
    """The queue with what can be done about each suggestion."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("inbox"))

    def __init__(self) -> None:
        super().__init__()
        self._decisions: list[tuple[Decision, float]] = []
        """What was decided here, with the time until which each was put off before."""

    # --- acting --------------------------------------------------------------------------------------------------

    @on(RowList.Chosen, "#suggestions")
    def _chosen(self) -> None:
        one = self.suggestion
        if one is not None:
            self._act(AGAIN if one.id in self.hidden else one.actions[0])

    @on(RowList.Chosen, "#proposal")
    def _line_chosen(self) -> None:
        key = self.query_one(Proposal).key
        match key:
            case ("place", str(path), int(first), int(last)):
                self._read(path, first, last)
            case (str(action),):
                self._act(action)
            case _:
                pass

    def _act(self, action: str) -> None:
        """Do `action` about the suggestion under the cursor, or say why not."""
        one = self.suggestion
        reason = may_decide(self.context())
        if one is None or reason:
            self.say(reason)
        elif action == AGAIN:
            self._decide(one, 0.0)
        elif action == "keep":
            self._decide(one, math.inf)
        elif action == "snooze":
            self.do_snooze()
        else:
            self._plan(one, next(other for other in one.actions if other == action))

    def _plan(self, one: Suggestion, action: Action) -> None:
        self.run(
            "plan",
            partial(inboxing.proposed, one=one, action=action),
            partial(self._preview, one, action),
            self._refused,
        )

    def _by_key(self, key: str) -> None:
        one = self.suggestion
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
        from memory_tui.tui.screens.snooze import Snooze

        one = self.suggestion

        def answered(days: int | None) -> None:
            if days and one is not None:
                self._decide(one, float(days))

        if one is not None:
            self.app.push_screen(Snooze(str(one.place)), answered)

    def _preview(self, one: Suggestion, action: Action, planned: Planned) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._do(partial(inboxing.applied, change=planned.change), partial(self._made, one))

        self.app.push_screen(Preview(planned, VERBS[action]), answered)

    def _do(self, work: Callable[[Engine], T], then: Callable[[T], None]) -> None:
        """Do `work`, which newer work does not replace; where it is refused, the notes are looked at again."""
        self.home.bridge.writes += 1
        self.run(f"write {self.home.bridge.writes}", work, then, self._refused)

    def _refused(self, error: MemoryTuiError) -> None:
        self.say(f"{error.message} {error.next_step}".strip())
        self.look()

    def _made(self, one: Suggestion, done: Done) -> None:
        also = f" Others' changes of {', '.join(done.merged)} were kept too." if done.merged else ""
        self.drop(one)
        self.say(f"{done.change.title}: done.{also} u takes it back.")
        self.home.bridge.look()
        self.look()

    def _decide(self, one: Suggestion, days: float) -> None:
        before = self.hidden.get(one.id, 0.0)

        def then(decision: Decision) -> None:
            self._decisions.append((decision, before))
            self.put_off(decision.suggestion, decision.until)
            self.say(
                f"{one_line(str(one.place))} is {put_off(decision.until) if decision.until else 'asked again'}. "
                "u takes it back."
            )

        self._do(partial(inboxing.decided, one=one, days=days), then)

    # --- the way back --------------------------------------------------------------------------------------------

    def do_undo(self) -> None:
        """Take the last change or decision back."""
        last, before = self._decisions[-1] if self._decisions else (None, 0.0)
        self._do(
            partial(inboxing.taken_back, since=self.home.started, last=last, before=before),
            partial(self._stepped, "undo"),
        )

    def do_redo(self) -> None:
        """Make the last change that was taken back again."""
        self._do(partial(inboxing.stepped, kind="redo", since=self.home.started), partial(self._stepped, "redo"))

    def _stepped(self, kind: str, outcome: Done | Planned | Decision) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._do(partial(planning.step, kind=kind), partial(self._stepped, kind))

        if isinstance(outcome, Planned):
            self.app.push_screen(Preview(outcome, kind.capitalize()), answered)
        elif isinstance(outcome, Decision):
            self._decisions.pop()
            self.put_off(outcome.suggestion, outcome.until)
            self.say(f"{one_line(str(outcome.suggestion.place))}: the decision is taken back.")
        else:
            self.say(
                f"{one_line(outcome.change.title)}. {'ctrl+r makes it again' if kind == 'undo' else 'u takes it back'}."
            )
            self.home.bridge.look()
            self.look()

    # --- around --------------------------------------------------------------------------------------------------

    def do_place(self) -> None:
        """Read the note at the lines."""
        place = self.place_in_note()
        if place is not None:
            self._read(*place)

    def _read(self, path: str, first: int, last: int) -> None:
        from memory_tui.tui.screens.reader import ReaderView

        self.app.push_screen(ReaderView(path, (first, last)))

    def do_filter(self) -> None:
        """Choose one kind."""
        from memory_tui.curate.suggestion import TITLES
        from memory_tui.tui.screens.picker import Picker

        counts = {kind: sum(one.kind == kind for one in self.open) for kind in TITLES}
        names = {f"{TITLES[kind]}: {count:,}": kind for kind, count in counts.items() if count}

        def chosen(name: str | None) -> None:
            if name is not None:
                self.kind = names[name]
                self.show()

        if names:
            self.app.push_screen(Picker("Show which kind?", list(names)), chosen)
        else:
            self.say("There is nothing to choose from.")

    def do_decided(self) -> None:
        """Show or hide what was kept or put off."""
        self.all = not self.all
        count = plural(len(self.hidden), "suggestion")
        self.say(
            f"{count} that {'was' if len(self.hidden) == 1 else 'were'} kept or put off "
            f"{'shown' if self.all else 'hidden'}."
        )
        self.show()

    def do_sync(self) -> None:
        """Index changed files, and look again."""
        if self.home.engine is not None:
            self.home.engine.request_sync()
            self.look()

    def do_scroll_down(self) -> None:
        """Scroll before and after."""
        self.query_one(Proposal).scroll_relative(y=3, animate=False)

    def do_scroll_up(self) -> None:
        """Scroll it back."""
        self.query_one(Proposal).scroll_relative(y=-3, animate=False)

    def back(self) -> bool:
        """Stop looking, else show all kinds, else leave the proposal for the queue."""
        if self.stop():
            self.show()
            self.say("Stopped; r looks again.")
        elif self.kind is not None:
            self.kind = None
            self.show()
        elif self.focused is self.query_one(Proposal):
            self.query_one(Suggestions).focus()
        else:
            return False
        return True
