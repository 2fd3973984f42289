"""View 4 is the inbox: every step is shown first or undone by a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from textual import on
from textual.timer import Timer
from textual.widget import Widget

from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui.draw import Piece
from memory_tui.tui.judging import REST, JobProgress
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import Planned
from memory_tui.tui.views.inbox import inbox_proposal
from memory_tui.tui.views.inbox.inbox_actions import InboxActions
from memory_tui.tui.views.inbox.inbox_proposal import (
    HINTS,
    MEANING,
    Findings,
    Shown,
    Suggestions,
    changes_notes,
    title,
    written,
)
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows
from memory_tui.tui.workers import stop, task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.inbox.entries import Suggestion

SHARE = 10.0
"""Looking again by itself waits this many times as long as the last look took: the machine has other things to do."""

SOON = 0.1
"""Seconds that it waits at least, because changes come in groups."""


class InboxView(View):
    """Suggestions to the left; to the right why, both texts, and the difference that the proposed action makes."""

    PLACE = "inbox"
    MORE_PLACES = ("inbox", "notes")
    AUTO_FOCUS = "#suggestions"
    SCROLLED = "#proposal"

    def __init__(self) -> None:
        super().__init__()
        self.queue = Suggestions()
        # A line that does something is clicked twice, once to see where the cursor is.
        self.proposal = Rows(id="proposal", places=("proposal", "list"), opens=True)
        """Before and after of the suggestion under the cursor; enter on a line does what it says."""
        self.actions = InboxActions(self, self)
        self.parts = (self.actions,)
        self._found = Findings()
        self._known = False
        """Whether there is a result."""
        self._stale = True
        """Whether the notes may have changed since."""
        self._progress = ""
        self._problem = ""
        self._timer: Timer | None = None
        self.kind: str | None = None
        self.all = False
        self._resting = False
        self._shown: Shown | None = None
        self._planned: dict[str, Planned | str] = {}
        self._changed = False
        """Whether notes were changed from here since they were last looked through."""
        self._decided: dict[str, float] = {}
        """What was decided since the last look began: until when, by id."""
        self._before: set[str] | None = None
        """What was found before a step back, of which somebody looks for what came back."""

    def compose_view(self) -> Iterable[Widget]:
        """Queue and proposal."""
        with self.panes():
            yield self.queue
            yield self.proposal

    # --- looking -------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Look through the notes."""
        super().on_mount()
        self.show()

    def on_screen_resume(self) -> None:
        """In front again: look again if notes may have changed."""
        if self._stale and not self._progress:
            self.examine()

    def on_screen_suspend(self) -> None:
        """Somewhere else nobody waits for it; a dialog or a note over the view is not somewhere else."""
        if self.home.current_mode != "inbox" and self.stop():
            self._stale = True

    def engine_opened(self) -> None:
        """Begin."""
        if self.home.current_mode == "inbox":
            self.examine()

    def events_came(self, events: Sequence[Event]) -> None:
        """Files were indexed: what was found may be other things now."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            self._stale = True
            self._again_soon()

    def _again_soon(self) -> None:
        """Look again in a while, if somebody looks and nothing is under way."""
        if self._known and not self._progress and self._timer is None and self.home.current_mode == "inbox":
            self._timer = self.set_timer(max(SOON, SHARE * self._found.seconds), self._again)

    def _again(self) -> None:
        self._timer = None
        if self._stale and not self._progress and self.home.current_mode == "inbox":
            self.examine()

    def returned(self) -> None:
        """Look through the notes after a step back or forward, and stand on what that brought back."""
        self._before = {row.id for row in self._found.found}
        self.changed()

    def changed(self) -> None:
        """Look through the notes after a change of them."""
        self._changed = True
        self.examine()

    def examine(self) -> None:
        """Look through the notes; what was found stays until then."""
        engine = self.home.engine
        if engine is not None:
            self._stale, self._problem, self._progress = False, "", "looking"
            self._decided.clear()
            self._examine(engine)
        self.show()

    @task("inbox")
    async def _examine(self, engine: Engine) -> None:
        try:
            async for part in self.home.jobs.parts(inbox_proposal.examination(engine, changed=self._changed)):
                if isinstance(part, JobProgress):
                    self._progress = part.words
                    self._entitle()
                elif isinstance(part, Findings):
                    self._found, self._known, self._changed = part, True, False
                    # What was decided meanwhile, the look may not have read.
                    self._hide(self._decided)
                    self._planned.clear()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            self._problem = sentence_of(error)
        self._progress = ""
        self.show()
        before, self._before = self._before, None
        if before is not None:
            self.queue.stand_on(row.id for row in self._found.found if row.id not in before)
        if self._stale:
            self._again_soon()

    def refused(self, error: MemoryTuiError) -> str:
        """Why; the notes are looked at as they are now."""
        self.examine()
        return super().refused(error)

    def stop(self) -> bool:
        """Nobody waits for what is looked for; False when nothing is."""
        looking = bool(self._progress)
        stop(self, "inbox")
        self._progress = ""
        return looking

    @property
    def resting(self) -> bool:
        """Whether nothing is being looked for or worked out."""
        return not self._progress and self._timer is None and not self._resting

    # --- showing -------------------------------------------------------------------------------------------------

    @property
    def hidden(self) -> dict[str, float]:
        """Until when (epoch seconds) suggestions are kept or put off, by id."""
        return dict(self._found.hidden)

    @property
    def open(self) -> list[Suggestion]:
        """What is neither kept nor put off."""
        return self._found.open

    def show(self) -> None:
        """Bring both panes up to date."""
        hidden = self.hidden
        listed = [
            row for row in self._found.found if (self.all or row.id not in hidden) and self.kind in (None, row.kind)
        ]
        self.queue.show(listed, hidden, self._sentences(listed))
        self._entitle()
        self._propose()
        if self._known:
            self.home.findings = len(self.open)
        self.show_top()
        self.update_hints()

    def _entitle(self) -> None:
        from memory_tui.inbox.checks import BY_KIND

        count = len(self.open)
        words = f"Inbox: {count:,} open" if self._known else "Inbox"
        if self.kind is not None:
            some = sum(row.kind == self.kind for row in self.open)
            words = f"Inbox: {some:,} of {count:,}, {BY_KIND[self.kind].title}"
        text = "esc shows all kinds" if self.kind is not None else ""
        if self._found.hidden and not self.all:
            text = text or f"{len(self._found.hidden):,} kept or put off: ze"
        rows = self.queue
        rows.border_title, rows.border_subtitle = (
            rows.marks.beside(words),
            f"{self._progress} ...  esc stops" if self._progress else text,
        )

    def _sentences(self, listed: Sequence[Suggestion]) -> list[Piece]:
        """What stands where no suggestion does."""
        from memory_tui.inbox.checks import BY_KIND

        if self._problem:
            return [("", ""), (f" {one_line(self._problem)}", "bad")]
        if listed:
            return []
        if self.home.engine is None:
            return [(" The index is still being opened.", "muted")]
        if not self._known:
            return [
                (
                    " Looking through the notes ..."
                    if self._progress
                    else f" Stopped; {key_of('look again')} looks again.",
                    "muted",
                )
            ]
        if self.kind is not None:
            return [(" Nothing more of this kind. esc shows all kinds.", "good")]
        return [
            (f" Nothing needs attention. {key_of('show all')} shows what was decided.", "good"),
            ("", ""),
            (" Looked for:", "muted"),
            *((f"   {check.title}", "muted") for check in BY_KIND.values()),
        ]

    def drop(self, chosen: Sequence[Suggestion]) -> None:
        """What was suggested is done."""
        done = {row.id for row in chosen}
        self._found = replace(self._found, found=tuple(row for row in self._found.found if row.id not in done))

    def put_off(self, until: Mapping[Suggestion, float]) -> None:
        """Show suggestions where they belong when they are put off `until` then, 0 when they are not."""
        ends = {row.id: end for row, end in until.items()}
        self._decided.update(ends)
        self.queue.marks.drop()
        self._hide(ends)
        self.show()
        self.queue.stand_on(row.id for row, end in until.items() if not end)

    def _hide(self, until: Mapping[str, float]) -> None:
        """Have suggestions put off `until` then by id, 0 for not at all."""
        hidden = {**self._found.hidden, **until}
        self._found = replace(self._found, hidden={row: end for row, end in hidden.items() if end})

    def _marking(self) -> RowList:
        """The queue, from the proposal too."""
        return self.queue

    @on(RowList.Marked, "#suggestions")
    def _say_marks(self) -> None:
        self._entitle()

    @on(RowList.Moved, "#suggestions")
    def _moved(self) -> None:
        self._propose()
        self.update_hints()

    def _propose(self) -> None:
        """Show what is under the cursor, and work out what its action would change when the cursor rests."""
        row, engine = self.queue.suggestion, self.home.engine
        before = self._shown
        if row is None or engine is None:
            self._shown, self._resting = None, False
            stop(self, "proposal")
            self._write()
            return
        seen = self._planned.get(row.id)
        self._shown = Shown(
            row,
            seen if isinstance(seen, Planned) else None,
            seen if isinstance(seen, str) else "",
            self.hidden.get(row.id, 0.0),
            self.context().unwritable,
        )
        if seen is None and changes_notes(row.actions[0]):
            if before is not None and before.suggestion.id == row.id and self._resting:
                return
            self._resting = True
            self._work_out(row)
        elif self._resting:
            self._resting = False
            stop(self, "proposal")
        if before != self._shown:
            self._write()
            if before is None or before.suggestion.id != row.id:
                self.proposal.scroll_home(animate=False)

    @task("proposal")
    async def _work_out(self, one: Suggestion) -> None:
        """When the cursor rests, find what the action under it would change."""
        await self.home.jobs.rest(REST)
        reply = await self.home.jobs.attempt(partial(inbox_proposal.proposed, chosen=[one], action=one.actions[0]))
        self._resting = False
        self._planned[one.id] = sentence_of(reply) if isinstance(reply, MemoryTuiError) else reply
        self._propose()

    def _write(self) -> None:
        drawn = self._shown

        def lines(width: int) -> Sequence[Line]:
            return [] if drawn is None else written(drawn, width)

        self.proposal.show(lines, title(drawn))

    # --- where the user is ---------------------------------------------------------------------------------------

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines that are suggested about."""
        row = self.queue.suggestion
        return (row.place.path, row.place.first, row.place.last) if row is not None else None

    def line_in_note(self) -> int:
        """Their first."""
        row = self.queue.suggestion
        return row.place.first if row is not None else 1

    def text_in_note(self) -> str:
        """What stands there, secrets masked."""
        row = self.queue.suggestion
        return row.place.text if row is not None else ""

    def more_context(self) -> dict[str, Any]:
        """What can be done about the suggestion."""
        row = self.queue.suggestion
        actions = self.queue.chosen[0].actions if row is not None else ()
        meanings = {MEANING[action] for action in actions}
        moving = next((HINTS[action] for action in actions if action in HINTS), "")
        return {
            "suggestion": row is not None,
            "deletes": "remove" in meanings,
            "moves": "move" in meanings,
            "twin": "move other" in meanings,
            "hints": {"move": moving} if moving else {},
        }

    # --- choosing and moving ----------------------------------------------------------------------------------

    def do_filter(self) -> None:
        """Choose one kind."""
        from memory_tui.inbox.checks import BY_KIND
        from memory_tui.tui.views.dialogs import Picker

        counts = {kind: sum(row.kind == kind for row in self.open) for kind in BY_KIND}
        names = {f"{BY_KIND[kind].title}: {count:,}  ({kind})": kind for kind, count in counts.items() if count}

        def chosen(name: str) -> None:
            self.kind = names[name]
            self.show()

        if names:
            Picker("Show which kind?", list(names)).ask(self.app, chosen)
        else:
            self.show_message("There are no kinds to choose from.")

    def do_decided(self) -> None:
        """Show or hide what was kept or put off."""
        self.all = not self.all
        count = plural(len(self.hidden), "suggestion")
        self.show_message(
            f"{count} that {'was' if len(self.hidden) == 1 else 'were'} kept or put off "
            f"{'shown' if self.all else 'hidden'}."
        )
        self.show()

    def do_sync(self) -> None:
        """Index changed files, and look again."""
        if self.home.engine is not None:
            self.home.engine.index.request_sync()
            self.examine()

    def back(self) -> bool:
        """Stop looking, else show all kinds, else leave the proposal for the queue."""
        if self.stop():
            self.show()
            self.show_message(f"Stopped; {key_of('look again')} looks again.")
        elif self.queue.marks.drop():
            pass
        elif self.kind is not None:
            self.kind = None
            self.show()
        elif self.focused is self.proposal:
            self.queue.focus()
        else:
            return False
        return True
