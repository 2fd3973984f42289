"""View 4 is the inbox: every step is shown first or undone by a key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.events import Event, SyncFinished
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.action import may_decide
from memory_tui.tui.draw import Piece, plural
from memory_tui.tui.judging import Progress
from memory_tui.tui.keymap import bindings
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.inbox import inbox_proposal
from memory_tui.tui.views.inbox.inbox_proposal import (
    AGAIN,
    KEYS,
    VERBS,
    Decision,
    Looked,
    Proposal,
    Shown,
    Suggestions,
    changes_notes,
    put_off,
    title,
    written,
)
from memory_tui.tui.views.view import T, View
from memory_tui.tui.widgets.rowlist import Line, RowList

if TYPE_CHECKING:
    from memory_tui.curate.curator import Done
    from memory_tui.engine.engine import Engine
    from memory_tui.inbox.entries import Action, Kind, Suggestion
    from memory_tui.tui.workers import Worked

SHARE = 10.0
"""Looking again by itself waits this many times as long as the last look took: the machine has other things to do."""

SOON = 0.1
"""Seconds that it waits at least, because changes come in groups."""


class QueueView(View):
    """Suggestions to the left; to the right why, both texts, and the difference that the proposed action makes."""

    PLACE = "inbox"
    AUTO_FOCUS = "#suggestions"

    def __init__(self) -> None:
        super().__init__()
        self._looked = Looked()
        self._known = False
        """Whether there is a result."""
        self._stale = True
        """Whether the notes may have changed since."""
        self._request = 0
        self._progress = ""
        self._problem = ""
        self._timer: Timer | None = None
        self.kind: Kind | None = None
        self.all = False
        self._resting = 0
        self._shown: Shown | None = None
        self._planned: dict[str, Planned | str] = {}

    def compose_view(self) -> Iterable[Widget]:
        """Queue and proposal."""
        with Horizontal(id="panes"):
            yield Suggestions()
            yield Proposal()

    # --- looking -------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Look through the notes."""
        super().on_mount()
        self.show()

    def on_screen_resume(self) -> None:
        """In front again: look again if notes may have changed."""
        super().on_screen_resume()
        if self._stale and not self._progress:
            self.look()

    def on_screen_suspend(self) -> None:
        """Somewhere else nobody waits for it; a dialogue or a note over the view is not somewhere else."""
        if self.home.current_mode != "inbox" and self.stop():
            self._stale = True

    def engine_opened(self) -> None:
        """Begin."""
        if self.home.current_mode == "inbox":
            self.look()

    def events_came(self, events: Sequence[Event]) -> None:
        """Files were indexed: what was found may be other things now."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            self._stale = True
            self._again_soon()

    def _again_soon(self) -> None:
        """Look again in a while, if somebody looks and nothing is under way."""
        if self._known and not self._progress and self._timer is None and self.home.current_mode == "inbox":
            self._timer = self.set_timer(max(SOON, SHARE * self._looked.seconds), self._again)

    def _again(self) -> None:
        self._timer = None
        if self._stale and not self._progress and self.home.current_mode == "inbox":
            self.look()

    def look(self) -> None:
        """Look, or look again; what was found stays until then."""
        engine = self.home.engine
        if engine is not None:
            self._stale, self._problem, self._progress = False, "", "looking"
            self._request = self.home.bridge.follow("inbox", inbox_proposal.look(engine))
        self.show()

    def stop(self) -> bool:
        """Nobody waits for what is looked for; False when nothing is."""
        looking = bool(self._progress)
        if self._progress:
            self.home.bridge.drop("inbox")
            self._progress = ""
        return looking

    @property
    def resting(self) -> bool:
        """Whether nothing is being looked for or worked out."""
        return not self._progress and self._timer is None and not self._resting

    def worked(self, event: Worked) -> None:
        """How far it is, what was found, or what the action under the cursor would change."""
        if event.kind == "proposal" and event.number == self._resting:
            self._resting = 0
            self._planned_came(event.value, event.error)
        if event.kind != "inbox" or event.number != self._request:
            return
        if isinstance(event.value, Progress):
            self._progress = event.value.words
            self._entitle()
            return
        self._progress = ""
        if event.error is not None:
            self._problem = f"{event.error.message} {event.error.next_step}".strip()
        elif isinstance(event.value, Looked):
            self._looked, self._known = event.value, True
            self._planned.clear()
        self.show()
        if self._stale:
            self._again_soon()

    # --- showing -------------------------------------------------------------------------------------------------

    @property
    def hidden(self) -> dict[str, float]:
        """Until when (epoch seconds) suggestions are kept or put off, by id."""
        return dict(self._looked.hidden or {})

    @property
    def open(self) -> list[Suggestion]:
        """What is neither kept nor put off."""
        hidden = self.hidden
        return [one for one in self._looked.found if one.id not in hidden]

    def show(self) -> None:
        """Bring both panes up to date."""
        hidden = self.hidden
        listed = [
            one for one in self._looked.found if (self.all or one.id not in hidden) and self.kind in (None, one.kind)
        ]
        self.query_one(Suggestions).show(listed, hidden, self._sentences(listed))
        self._entitle()
        self._propose()
        self.update_hints()

    def _entitle(self) -> None:
        from memory_tui.inbox.entries import TITLES

        count = len(self.open)
        words = f"Inbox: {count:,} to look at" if self._known else "Inbox"
        if self.kind is not None:
            some = sum(one.kind == self.kind for one in self.open)
            words = f"Inbox: {some:,} of {count:,}, {TITLES[self.kind]}"
        said = "esc shows all kinds" if self.kind is not None else ""
        if self._looked.hidden and not self.all:
            said = said or f"{len(self._looked.hidden):,} kept or put off: z"
        rows = self.query_one(Suggestions)
        rows.border_title, rows.border_subtitle = words, f"{self._progress} ...  esc stops" if self._progress else said

    def _sentences(self, listed: Sequence[Suggestion]) -> list[Piece]:
        """What stands where no suggestion does."""
        from memory_tui.inbox.entries import TITLES

        if self._problem:
            return [("", ""), (f" {one_line(self._problem)}", "bad")]
        if listed:
            return []
        if self.home.engine is None:
            return [(" The index is still being opened.", "muted")]
        if not self._known:
            return [(" Looking through the notes ..." if self._progress else " Stopped; r looks again.", "muted")]
        if self.kind is not None:
            return [(" Nothing more of this kind. esc shows all kinds.", "good")]
        return [
            (" Nothing needs to be looked at.", "good"),
            ("", ""),
            (" Looked for:", "muted"),
            *((f"   {title}", "muted") for title in TITLES.values()),
        ]

    def drop(self, one: Suggestion) -> None:
        """What was suggested is done."""
        self._looked = replace(self._looked, found=tuple(other for other in self._looked.found if other.id != one.id))

    def put_off(self, one: Suggestion, until: float) -> None:
        """Show a suggestion where it belongs when it is put off `until` then, 0 when it is not."""
        hidden = self.hidden
        hidden.pop(one.id, None)
        if until:
            hidden[one.id] = until
        self._looked = replace(self._looked, hidden=hidden)
        self.show()

    @on(RowList.Moved, "#suggestions")
    def _moved(self) -> None:
        self._propose()
        self.update_hints()

    @property
    def suggestion(self) -> Suggestion | None:
        """What is under the cursor."""
        return self.query_one(Suggestions).suggestion

    def _propose(self) -> None:
        """Show what is under the cursor, and work out what its action would change when the cursor rests."""
        one, engine = self.suggestion, self.home.engine
        before = self._shown
        if one is None or engine is None:
            self._shown, self._resting = None, 0
            self.home.bridge.drop("proposal")
            self._write()
            return
        known = self._planned.get(one.id)
        self._shown = Shown(
            one,
            known if isinstance(known, Planned) else None,
            known if isinstance(known, str) else "",
            self.hidden.get(one.id, 0.0),
            self.context().unwritable,
        )
        if known is None and changes_notes(one.actions[0]):
            if before is not None and before.suggestion.id == one.id and self._resting:
                return
            self._resting = self.home.bridge.follow("proposal", inbox_proposal.rested(engine, one, one.actions[0]))
        else:
            self._resting = 0
        if before != self._shown:
            self._write()
            if before is None or before.suggestion.id != one.id:
                self.query_one(Proposal).scroll_home(animate=False)

    def _planned_came(self, value: object, error: MemoryTuiError | None) -> None:
        one = self._shown.suggestion if self._shown is not None else None
        if one is not None:
            self._planned[one.id] = (
                value
                if isinstance(value, Planned)
                else (f"{error.message} {error.next_step}" if error is not None else "")
            )
            self._propose()

    def _write(self) -> None:
        shown = self._shown

        def lines(width: int) -> Sequence[Line]:
            return [] if shown is None else written(shown, width)

        self.query_one(Proposal).show(lines, title(shown))

    # --- where the user is ---------------------------------------------------------------------------------------

    def more_places(self) -> tuple[str, ...]:
        """The keys of the inbox count before those of notes."""
        return ("inbox", "notes")

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines that are suggested about."""
        one = self.suggestion
        return (one.place.path, one.place.first, one.place.last) if one is not None else None

    def line_in_note(self) -> int:
        """Their first."""
        one = self.suggestion
        return one.place.first if one is not None else 1

    def text_in_note(self) -> str:
        """What stands there, secrets masked."""
        one = self.suggestion
        return one.place.text if one is not None else ""

    def more_context(self) -> dict[str, bool]:
        """What can be done about the suggestion."""
        one = self.suggestion
        keys = {KEYS[action] for action in one.actions} if one is not None else set()
        return {"suggestion": one is not None, "deletes": "d" in keys, "moves": "m" in keys}


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
            partial(inbox_proposal.proposed, one=one, action=action),
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
        from memory_tui.tui.views.dialogs import Snooze

        one = self.suggestion

        def answered(days: int | None) -> None:
            if days and one is not None:
                self._decide(one, float(days))

        if one is not None:
            self.app.push_screen(Snooze(str(one.place)), answered)

    def _preview(self, one: Suggestion, action: Action, planned: Planned) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._do(partial(inbox_proposal.applied, change=planned.change), partial(self._made, one))

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

        self._do(partial(inbox_proposal.decided, one=one, days=days), then)

    # --- the way back --------------------------------------------------------------------------------------------

    def do_undo(self) -> None:
        """Take the last change or decision back."""
        last, before = self._decisions[-1] if self._decisions else (None, 0.0)
        self._do(
            partial(inbox_proposal.taken_back, since=self.home.started, last=last, before=before),
            partial(self._stepped, "undo"),
        )

    def do_redo(self) -> None:
        """Make the last change that was taken back again."""
        self._do(partial(inbox_proposal.stepped, kind="redo", since=self.home.started), partial(self._stepped, "redo"))

    def _stepped(self, kind: str, outcome: Done | Planned | Decision) -> None:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._do(partial(note_changes.step, kind=kind), partial(self._stepped, kind))

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
        from memory_tui.tui.views.notes.browse import ReaderView

        self.app.push_screen(ReaderView(path, (first, last)))

    def do_filter(self) -> None:
        """Choose one kind."""
        from memory_tui.inbox.entries import TITLES
        from memory_tui.tui.views.dialogs import Picker

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
            self.home.engine.indexer.request_sync()
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
