"""The queue of the inbox: it looks through the notes, lists what it found, and shows before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.text.display import one_line
from memory_tui.tui import inboxing
from memory_tui.tui.inboxing import Looked
from memory_tui.tui.paint import Piece
from memory_tui.tui.proposal import KEYS, Shown, changes_notes, title, written
from memory_tui.tui.screens.base import View
from memory_tui.tui.screens.preview import Planned
from memory_tui.tui.tasks import Progress
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Line
from memory_tui.tui.widgets.suggestions import Proposal, Suggestions

if TYPE_CHECKING:
    from memory_tui.curate.suggestion import Kind, Suggestion
    from memory_tui.tui.messages import Worked

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
            self._request = self.home.bridge.follow("inbox", inboxing.look(engine))
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
        from memory_tui.curate.suggestion import TITLES

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
        from memory_tui.curate.suggestion import TITLES

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
            self._resting = self.home.bridge.follow("proposal", inboxing.rested(engine, one, one.actions[0]))
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
