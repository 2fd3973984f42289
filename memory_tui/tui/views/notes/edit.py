"""The editor of a note saves only over the text it opened; drafts survive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import Draft
from memory_tui.tui.views.dialogs import Confirm
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.edit_area import EditArea
from memory_tui.tui.widgets.query import FindText
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.curator import AppliedChange
    from memory_tui.notes.journal import Typing


MOST = 1_000_000
"""Bytes of the largest note that is edited here; larger ones are for the user's own editor."""

REST = 0.6
"""Seconds without a key press after which what was typed is kept."""

KEEP = 3.0
"""Seconds after which it is kept although the keys do not rest."""


class EditView(View):
    """The editor of one note, over the view below."""

    PLACE = "editor"
    AUTO_FOCUS = "#text"

    def __init__(self, path: str, line: int) -> None:
        super().__init__()
        self._path, self._line = path, line
        self._area = EditArea()
        self._before: bytes | None = None
        self._draft: Draft | None = None
        self._beginning = ""
        self._timer: Timer | None = None
        self._typing: Typing | None = None
        self._turn = 0
        self._kept = 0.0
        self._writing = False
        self._others = note_changes.OutsideChange()
        self._kept_as = 0
        """The draft of the journal that holds the text of this editor, 0 for none."""

    def compose_view(self) -> Iterable[Widget]:
        """Compose the text, and how much of it a prompt takes."""
        # What they show at first is given here: a view that is left at once has no children any more when it mounts.
        yield FindText()
        yield self._area
        yield Static("", id="standing", markup=False)

    def on_mount(self) -> None:
        """Read the note."""
        super().on_mount()
        self._changed()
        self.home.key_queue.hold(self)
        self._open()

    @task("open")
    async def _open(self) -> None:
        """Read the note; keys wait for it."""
        try:
            reply = await self.home.jobs.attempt(partial(note_changes.opened, path=self._path, most=MOST))
        finally:
            self.home.key_queue.let_go(self)
        if isinstance(reply, MemoryTuiError):
            self._not_opened(reply)
        else:
            self._opened(reply)

    def _opened(self, found: note_changes.Opened) -> None:
        self._before, drawn, self._typing = found.before, found.shown, found.typing
        self._draft, self._beginning = Draft(drawn), found.beginning
        area = self._area
        text = found.left.text if found.left is not None else found.beginning or self._draft.text
        lines = text.count("\n") + 1
        area.load_text(text)
        area.recolour()
        area.read_only = False
        at_end = bool(found.beginning) or note_changes.goes_on_at_end(self._path, self._line)
        area.move_cursor(area.document.end if at_end else (min(self._line, lines) - 1, 0), center=True)
        if found.left is not None:
            self.show_message(
                f"What you typed here until {datetime.fromtimestamp(found.left.at):%Y-%m-%d %H:%M} and did not "
                f"save is back. {key_of('save')} saves it, esc can throw it away."
            )
        elif found.before is None:
            self.show_message(f"There is no {one_line(self._path)} yet: {key_of('save')} begins it, esc leaves it.")
        elif self._draft.changed_characters:
            self.show_message("Control characters show as stand-ins; lines that you leave alone keep theirs.")
        self._measure(text)

    def _not_opened(self, error: MemoryTuiError) -> None:
        below = self.app.screen_stack[-2]
        self.app.pop_screen()
        if isinstance(below, View):
            below.show_message(sentence_of(error))

    @property
    def unsaved(self) -> bool:
        """Whether something was typed that is not in the note."""
        return self._draft is not None and self._area.text != (self._beginning or self._draft.text)

    @on(TextArea.Changed)
    def _changed(self) -> None:
        state = "  not saved yet" if self.unsaved else ""
        self._area.border_title = Content(f"Edit {one_line(self._path)}{state}")

    def events_came(self, events: Sequence[Event]) -> None:
        """Files were indexed: this one may have been written by another program."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            self._look_outside()

    @task("outside")
    async def _look_outside(self) -> None:
        """Say which lines another program wrote meanwhile."""
        if self._draft is None or self._writing:
            return
        reply = await self.home.jobs.run(
            partial(note_changes.outside, path=self._path, before=self._before, text=self._area.text)
        )
        self._others = reply
        self._area.mark_outside(reply.rows)
        self._area.border_subtitle = Content(f"{reply.words}; ctrl+s keeps both" if reply.words else "")

    @on(TextArea.Changed)
    def _rest(self) -> None:
        """Keep what was typed when the typing rests."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(REST, self._rested)
        if time.monotonic() - self._kept > KEEP:
            self._keep()

    def _keep(self) -> None:
        """Have what was typed kept, in case that this is its end."""
        if self._typing is None:
            return
        if not self.unsaved:
            self._forget()
            return
        self._kept = time.monotonic()
        self._turn += 1
        self._store(self._typing, self._turn, self._area.text, self._before)

    @task("keep")
    async def _store(self, typing: Typing, turn: int, text: str, before: bytes | None) -> None:
        await self.home.jobs.write(lambda _engine: typing.keep(turn, text, before))

    def leaving(self) -> str:
        """Keep what was typed until now, before the app ends; returns why that failed."""
        if self._typing is None or not self.unsaved:
            return ""
        self._turn += 1
        try:
            self._typing.keep(self._turn, self._area.text, self._before)
        except MemoryTuiError as error:
            return one_line(error.message)
        return f"Your unsaved text of {one_line(self._path)} is kept. Press {key_of('edit')} on the note to continue."

    def _forget(self) -> None:
        """What was typed is in the note, or nobody wants it."""
        if self._typing is not None:
            self._turn += 1
            typing, turn = self._typing, self._turn
            self.home.jobs.report(lambda: typing.drop(turn))

    def _rested(self) -> None:
        self._timer = None
        self._keep()
        if self._others.rows:
            # The rows that are marked may have moved.
            self._look_outside()
        if self._draft is not None:
            self._measure(self._draft.restored(self._area.text))

    @task("prompt")
    async def _measure(self, text: str) -> None:
        """Say how much of the text goes into the prompt, where each file is cut, and what saving does to trust."""
        work = partial(note_changes.standing, path=self._path, before=self._before, text=text)
        line = await self.home.jobs.run(work)
        lines = [(f" {one_line(words)}\n", f"${style}" if style else "$quiet") for words, style in line]
        standing = self.query_one("#standing", Static)
        standing.display = bool(line)
        standing.update(Content.assemble(*lines).rstrip())

    @property
    def resting(self) -> bool:
        """Whether nothing waits for the typing to rest."""
        return self._timer is None

    def do_find_text(self) -> None:
        """Open the find box, with the word that is selected."""
        box = self.query_one(FindText)
        chosen = self._area.selected_text
        if chosen and "\n" not in chosen:
            box.value = chosen
        box.display = True
        box.focus()
        box.action_select_all()
        if box.value:
            self._find()

    @on(Input.Changed, "#find-text")
    def _find(self) -> None:
        """Mark what is found, and go to the first place from the cursor on."""
        if text := self._area.find(self.query_one(FindText).value):
            self.show_message(text)

    def do_next_match(self) -> None:
        """The next place."""
        self.show_message(self._area.to_match(1))

    def do_previous_match(self) -> None:
        """The place before."""
        self.show_message(self._area.to_match(-1))

    def do_save(self) -> None:
        """Write the note."""
        if self._draft is None or self._writing:
            return
        if not self.unsaved and not self._beginning:
            self._leave("Nothing was changed.")
            return
        text = self._draft.restored(self._area.text)
        self._write(partial(note_changes.saved, path=self._path, before=self._before, text=text, draft=self._kept_as))

    def _forget_draft(self, draft: int) -> None:
        """Do without the draft of the journal, whether or not this editor is still there."""
        engine = self.home.engine
        if engine is not None:
            self.home.jobs.report(lambda: note_changes.forgotten(engine, draft))

    def _write(self, work: Callable[[Engine], AppliedChange]) -> None:
        self._writing = True
        self._wait_for(work)

    @task("write", exclusive=False)
    async def _wait_for(self, work: Callable[[Engine], AppliedChange]) -> None:
        done = await self.home.jobs.attempt(work, write=True)
        self._writing = False
        if isinstance(done, MemoryTuiError):
            self._not_written(done)
            return
        self._forget()
        self._draft = None
        also = " The note also has what others wrote meanwhile." if done.merged else ""
        self._leave(f"{one_line(done.change.title)}: saved.{also} {key_of('undo')} undoes it.")

    def _not_written(self, error: MemoryTuiError) -> None:
        from memory_tui.notes.changes import Conflict

        if not isinstance(error, Conflict):
            self.show_message(sentence_of(error))
            return
        from memory_tui.tui.views.notes.resolve import Resolve

        self._kept_as = error.draft
        conflict = error

        def resolved(data: bytes | None) -> None:
            if data is None:
                self.show_message("Nothing was written; your text is still here, and kept as a draft.")
            else:
                self._write(partial(note_changes.resolved, conflict=conflict, data=data))

        self.app.push_screen(Resolve(conflict.views[0], f"Your text is kept as draft {error.draft}."), resolved)

    def _leave(self, sentence: str) -> None:
        line = self._area.cursor_location[0] + 1
        self.app.pop_screen()
        self.home.jobs.refresh()
        self.home.edited(self._path, line, sentence)

    def back(self) -> bool:
        """From the question to the text, then out; what is not saved is asked about."""
        if self._writing:
            self.show_message("The note is being written.")
            return True
        if self.focused is not self._area:
            self._area.focus()
            self._area.find("")
            self.query_one(FindText).display = False
            return True
        if not self.unsaved:
            self.app.pop_screen()
            return True

        def answered(_yes: bool) -> None:
            self._forget()
            if self._kept_as:
                self._forget_draft(self._kept_as)
            self.app.pop_screen()

        Confirm(
            "Leave without saving?",
            f"Your text is not in {one_line(self._path)} yet. {key_of('back')} goes back to it; "
            f"{key_of('save')} there saves it.",
            "Throw it away",
        ).ask(self.app, answered)
        return True
