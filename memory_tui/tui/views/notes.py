"""The view Notes: the list, the note, and beside them what index and provider do."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from memory_tui import tui
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.formatting import minute, one_line, plural, safe
from memory_tui.tui.first_line import freshness
from memory_tui.tui.keys import TABLE, bindings, named
from memory_tui.tui.reader import NotePage, Reader
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import AskNotes, OpenView, ReadNote, Session
from memory_tui.tui.view import View, if_answered

if TYPE_CHECKING:
    from memory_tui.notes.edit import AppliedChange

REST = 0.08
"""Seconds for which the cursor rests before its note is read."""
SINGLE = 70
"""Cells under which the list and the note are not side by side."""
ARCHIVE_DAYS = 90
"""Daily logs older than this are archived."""
_OF_NOTES = frozenset(key.action.partition("(")[0] for key in TABLE if key.id.startswith(("note.", "notes.rename")))
"""The actions that need a note."""


class NotesView(View):
    """Lists the notes and shows the one under the cursor."""

    NAME = "notes"
    FOCUS = "#notes-list, .-reading #notes-text"
    BINDINGS: ClassVar[list[BindingType]] = bindings("note", "notes", "text.back")
    BINDINGS += named("", "search.miss", "search.line") + named("Move", "note.promote", action="promote('Move')")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.filter = Input(id="notes-filter", placeholder="Title, path, day, never, often, unused", compact=True)
        self.rows = Rows(id="notes-list")
        self.reader = Reader(id="notes-text")
        self.path = ""
        """The note that is shown, or on its way."""
        self.goal = 0
        """The line to go to when the engine is open."""
        self.page = NotePage("")
        self.marked: set[str] = set()
        """The notes that a change is about together."""
        self.unsaved: frozenset[str] = frozenset()
        """The notes with text that an editor left behind."""
        self.listed: object = None
        """What the list was filled from, to see whether it has to be filled anew."""
        self.stamp: object = None
        """The row of the note in front as it was when it was read; where that is another one, it is read again."""
        self.timer: Timer | None = None
        """Runs from a move of the cursor until it rests."""
        self.shown = asyncio.Event()
        """Is set when the note that was opened last is shown."""
        self.editor: tui.editor.Editor | None = None
        self.words = ""
        """What was looked for in the text last."""
        self.origin = ""
        """The view that asked for the line that is read; empty where a person chose the note here."""
        self.opener = 0, "", 1
        """The change that opened the note in front, and the note and line that were there before."""
        self.greeted = False
        """Whether the engine was seen open, after which unsaved text and recalls are read once."""
        self.is_filling = False
        """Whether the list is being filled, so that its cursor reads nothing."""
        self.use: Callable[[str, dt.date | None], str] = lambda *_: ""
        """What says of a note of a day how agents use it."""

    def compose(self) -> ComposeResult:
        """Lay out list, index and provider at the left, and the note at the right."""
        with Horizontal():
            with Vertical(id="notes-left"):
                yield self.filter
                yield self.rows
                yield Static(id="notes-index", markup=False)
                yield Static(id="notes-provider", markup=False)
            with Vertical(id="notes-right"):
                yield Static(id="notes-about", markup=False)
                yield self.reader
                yield Static(id="notes-begin", markup=False)

    def on_mount(self) -> None:
        """Name the panes, and read what the cursor comes to."""
        self.query_one("#notes-index").border_title = "Index"
        self.query_one("#notes-provider").border_title = "Provider"
        self.filter.cursor_blink = False
        # Before the paint, where the list's own message comes after it.
        self.watch(self.rows, "highlighted", self.cursor_moved, init=False)

    @property
    def is_reading(self) -> bool:
        """Return whether the text has the focus, so that lines are meant and not notes."""
        return self.app.focused is self.reader

    # --- the list ---------------------------------------------------------------------------------------------------

    def state_changed(self) -> None:
        """List the notes anew where they changed, and read the one that is shown again where it did."""
        session = self.session
        self.query_one("#notes-index", Static).update(index_pane(session), layout=False)
        self.query_one("#notes-provider", Static).update(provider_pane(session), layout=False)
        if session.engine is None or session.status is None:
            return
        if not self.greeted:
            self.greeted = True
            self.offer_unsaved()
            self.count_recalls()
        # The class says that there are no notes: it is toggled where that is not so any more, or became so.
        if self.has_class("-empty") == bool(session.files):
            self.toggle_class("-empty")
            self.refresh_bindings()
        if not session.files:
            self.query_one("#notes-begin", Static).update(tui.note_facts.first_steps(session.engine.plan))
        self.marked &= {row.path for row in session.files}
        self.list_notes()
        row = next((row for row in session.files if row.path == self.path), None)
        if self.path and row != self.stamp:
            self.stamp = row
            self.read(self.path, self.goal)
            self.goal = 0

    @work(thread=True, group="unsaved")
    def offer_unsaved(self) -> None:
        """Say which notes have text that was typed and not saved when the app ended."""
        if paths := self.attempt(tui.note_facts.unsaved):
            self.unsaved = paths
            self.call_later(self.on_resize)
            words = f"Unsaved text is kept for {one_line(', '.join(sorted(paths)))}. e on the note goes on with it."
            self.notify(words, markup=False, timeout=12)

    @work(thread=True, group="recalls")
    def count_recalls(self) -> None:
        """Find out how agents use each note, and say it in the list."""
        if use := self.attempt(tui.note_facts.recall_uses):
            self.use = use
            self.call_later(self.on_resize)

    def events_arrived(self, events: Sequence[Event]) -> None:
        """Read the note again after a sync: links and passages may be others."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            # No row equals this, so that the next state has the note read.
            self.stamp = ()

    def on_resize(self) -> None:
        """Show one pane at a time where there is no room for two, and cut rows and strip anew."""
        self.set_class(self.size.width < SINGLE, "-single")
        self.call_after_refresh(self.list_notes)
        self.call_after_refresh(self.show_about)

    def list_notes(self) -> None:
        """Fill the list, unless it shows these rows already; the cursor stays on its note."""
        engine, rows = self.session.engine, self.rows
        if engine is None:
            return
        letters = self.filter.value
        every = tui.note_facts.ordered(self.session.files)
        every = [replace(row, kind="unsaved text") if row.path in self.unsaved else row for row in every]
        files = [row for row in every if tui.note_facts.matches(row, letters, self.use(row.path, row.day))]
        width = rows.scrollable_content_region.width or 30
        # All that a row shows; how agents use a note only lets it through the filter.
        key = [(row.path, row.state, row.detail, row.title, row.kind) for row in files], width, frozenset(self.marked)
        if key == self.listed:
            return
        self.listed = key
        draw = partial(tui.note_facts.list_row, today=tui.note_facts.today_of(engine.plan), width=width)
        # The cursor is put elsewhere without reading: a note that vanished stays in front, and says so.
        self.is_filling = True
        rows.refill(Option(draw(row, marked=row.path in self.marked), id=row.path) for row in files)
        if self.path and (at := rows.position(self.path)) is not None:
            rows.highlighted = at
        self.is_filling = False
        count = f"{len(files)} of {len(self.session.files)}" if letters else f"{len(files)}"
        rows.border_title = f"Notes {count}" + f", {len(self.marked)} marked" * bool(self.marked)
        if letters or not self.path:
            self.cursor_moved()

    def cursor_moved(self) -> None:
        """Read the note under the cursor when it rests."""
        if self.is_filling:
            return
        if self.timer is not None:
            self.timer.stop()
        self.timer = self.set_timer(REST, self.follow)

    def follow(self) -> None:
        """Read the note under the cursor, unless it is there."""
        self.timer = None
        option = self.rows.highlighted_option
        if option is not None and option.id and option.id != self.path:
            self.open_note(option.id)

    async def catch_up(self) -> None:
        """Show the note under the cursor before a key is about it, where it comes right behind an arrow."""
        if self.timer is not None:
            self.follow()
        if self.page.path != self.path:
            await tui.changes.in_time(self.shown.wait())

    def open_note(self, path: str, line: int = 1) -> None:
        """Show a note."""
        self.path = path
        self.shown.clear()
        self.refresh_bindings()
        self.stamp = next((row for row in self.session.files if row.path == path), None)
        if (at := self.rows.position(path)) is not None:
            self.rows.highlighted = at
        else:
            # The filter hides it, or it is not listed yet.
            self.filter.value = ""
        self.read(path, line)

    @on(OptionList.OptionSelected, "#notes-list")
    def chosen(self) -> None:
        """Go to the text of the note under the cursor."""
        self.origin = ""
        self.follow()
        self.screen.set_focus(self.reader)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Keep whether the text or the list is in front."""
        self.set_class(event.widget is self.reader, "-reading")

    @on(ReadNote)
    def reads(self, message: ReadNote) -> None:
        """Show a line of a note that another view names."""
        message.stop()
        message.path = message.path or self.path
        if message.origin != self.NAME:
            self.origin = message.origin
        if self.session.engine is None:
            self.path, self.goal = message.path, message.line
        else:
            self.open_note(message.path, message.line)
        self.screen.set_focus(self.reader)

    # --- the note ---------------------------------------------------------------------------------------------------

    @work(thread=True, exclusive=True, group="read")
    def read(self, path: str, line: int) -> None:
        """Read a note on a worker thread; with `line` 0 the cursor stays where it is."""
        engine = self.session.engine
        row = next((row for row in self.session.files if row.path == path), None)
        if engine is None:
            return
        try:
            page = tui.note_facts.page(engine, path, line or self.reader.line, row)
        except MemoryTuiError as error:
            page = NotePage(path, problem=self.reason(error))
        self.call_later(self.loaded, page, line)

    def loaded(self, page: NotePage, line: int) -> None:
        """Show the note that was read; one that is read again keeps its place."""
        before, reader = self.page, self.reader
        if page.path != self.path:
            return
        self.page = page
        self.shown.set()
        self.query_one("#notes-right").border_title = Content(one_line(page.path))
        self.show_about()
        if page.path != before.path or line:
            self.show_text(line or 1)
        elif any(getattr(page, name) != getattr(before, name) for name in ("text", "first", "unread")):
            # The line stays at the height on the screen that it has.
            above = reader.cursor_row - reader.scroll_offset.y
            self.show_text(tui.note_facts.line_after(before, page, reader.line))
            reader.scroll_to(y=reader.cursor_row - above, animate=False, immediate=True)

    def show_text(self, line: int) -> None:
        """Show the text of the note with the cursor on `line`."""
        self.reader.show(self.page, line)
        self.trace(self.page.path)

    @work(thread=True, exclusive=True, group="trace")
    def trace(self, path: str) -> None:
        """Find out on a worker thread when and by whom each line came."""
        engine = self.session.engine
        try:
            origins = engine.notes.origins(path) if engine is not None else {}
        except MemoryTuiError:
            # History says what is wrong with the record.
            return
        self.call_later(self.traced, path, origins)

    def traced(self, path: str, origins: dict[int, str]) -> None:
        """Say it of the line under the cursor."""
        if path == self.reader.page.path:
            self.reader.origins = origins
            self.show_about()

    @on(TextArea.SelectionChanged, "#notes-text")
    def line_changed(self) -> None:
        """Say in the strip where the line under the cursor came from."""
        if self.reader.origins:
            self.show_about()

    def show_about(self) -> None:
        """Show the strip over the text."""
        about, page = self.query_one("#notes-about", Static), self.page
        words = Content.styled(one_line(page.problem), "$error") if page.problem else None
        use = next((self.use(row.path, row.day) for row in self.session.files if row.path == page.path), "")
        origin = self.reader.origins.get(self.reader.line, "")
        kept = "unsaved text, e goes on with it" if page.path in self.unsaved else ""
        parts = [part for part in (*page.parts, (kept, "$warning"), (use, ""), (origin, "$accent")) if part[0]]
        # What the host does not read comes first, then who wrote the line, then the note.
        parts.sort(key=lambda part: ("$error", "$warning", "$accent", "").index(part[1]))
        about.update(words or tui.note_facts.strip(parts, about.size.width or 80), layout=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way back only where there is one, and what is about a note where there are notes."""
        if action == "back":
            return self.is_reading or self.filter.display
        # The curated note is where a promotion goes, so p is not for it, nor for no note; of its text p moves lines.
        is_curated = {path.lower() for path in ([self.path] if self.is_reading else self.meant)} <= {"memory.md"}
        is_wrong = is_curated != bool(parameters) or (is_curated and not self.is_reading)
        if (self.has_class("-empty") and action in _OF_NOTES) or (action == "promote" and is_wrong):
            return False
        return super().check_action(action, parameters)

    # --- what keys do -------------------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Go from the text to the view that asked for it, else to the list; from the filter to all notes."""
        if self.is_reading and self.origin:
            self.post_message(OpenView(self.origin))
            self.origin = ""
        # A note of another workspace is not in the list, so the one under its cursor is shown again.
        if self.page.owner:
            self.follow()
        box = self.filter
        if box.display and self.app.focused is not self.reader:
            box.value, box.display = "", False
        self.screen.set_focus(self.rows)

    def action_miss(self) -> None:
        """Go on to the next passage of the answer that is not sent."""
        # As its command in the palette does, which goes to the search view first.
        command = next(command for command in tui.palette.TABLE if command.target == "search.miss")
        self.post_message(tui.palette.Chosen(command))

    def action_line(self) -> None:
        """Ask why the line under the cursor comes, or does not, for the last question."""
        if self.is_there():
            self.post_message(AskNotes(path=self.path, line=self.reader.line))

    async def action_filter(self) -> None:
        """Ask for words: of the text where that has the focus, else of a note's title, path or day."""
        if self.is_reading:
            await self.app.push_screen(tui.dialogs.Line("Find in this note", value=self.words), self.find)
            return
        box = self.filter
        box.display = True
        self.screen.set_focus(box)

    def find(self, words: str | None) -> None:
        """Go to the next line that has the words; behind the last one comes the first."""
        reader = self.reader
        if not words:
            return
        self.words = words
        seen = enumerate(map(str.casefold, reader.seen), self.page.first)
        if numbers := [number for number, text in seen if words.casefold() in text]:
            reader.go(next((number for number in numbers if number > reader.line), numbers[0]))
        else:
            self.notify(f'"{one_line(words)}" is not in this note.', markup=False)

    @on(Input.Changed, "#notes-filter")
    def filtered(self) -> None:
        """List the notes that have the words."""
        self.list_notes()

    @on(Input.Submitted, "#notes-filter")
    def filter_done(self) -> None:
        """Go to the notes that are left."""
        self.screen.set_focus(self.rows)

    def action_copy(self, text: bool) -> None:
        """Copy the note with its citation, or the citation alone."""
        first = self.reader.top
        self.reader.copy([(first, max(first, first + len(self.reader.seen) - 1))], text=text)

    def action_mark(self) -> None:
        """Mark the note under the cursor, or take its mark away, and go on."""
        option = self.rows.highlighted_option
        if option is not None and option.id:
            self.marked ^= {option.id}
            self.list_notes()
            self.rows.action_cursor_down()

    @property
    def meant(self) -> list[str]:
        """Return the marked notes, else the one that is shown."""
        return sorted(self.marked) or ([self.path] if self.path else [])

    def is_there(self, why: str = "") -> bool:
        """Return whether a note of this workspace is shown with its text; else say so.

        With `why`, a sentence about what forbids the deed, it says that and returns False.
        """
        if not self.is_own(self.page.owner):
            return False
        if why or not self.path or self.page.path != self.path or self.page.problem:
            self.notify(why or "There is no note here. n begins one.", markup=False)
            return False
        return True

    async def action_edit(self) -> None:
        """Open the editor at this line."""
        if self.is_there() and tui.changes.is_writable(self):
            await tui.changes.ahead(self, self.edit(self.path, self.reader.line))

    async def edit(self, path: str, line: int) -> None:
        """Open the editor for a note, which need not be there yet."""
        if opened := await asyncio.to_thread(self.attempt, partial(tui.editor.Editor.open, path=path)):
            self.editor = tui.editor.Editor(self, path, line, opened)
            await self.app.push_screen(self.editor, self.edited)

    def edited(self, line: int | None) -> None:
        """Show the note at `line`, the editor's last; None where nothing was saved. Its typing is kept no more."""
        self.unsaved -= {self.editor.path} if self.editor is not None else set()
        self.editor = None
        self.on_resize()
        if line:
            self.read(self.path, line)

    def action_editor(self) -> None:
        """Open the note in the editor that the environment names."""
        if self.path and self.is_own(self.page.owner) and tui.changes.is_writable(self):
            tui.editor.edit_outside(self, self.path, self.reader.line, lambda: self.read(self.path, 0))

    async def action_rendered(self) -> None:
        """Show the note as it would be printed."""
        # A note of another workspace may be read, too, to which `is_there` would say no.
        if not self.page.owner and not self.is_there():
            return
        if len(self.page.text) > tui.note_facts.MOST_RENDERED or not self.page.whole:
            self.notify("This note is too long to be rendered: more than 20 KB.", markup=False)
        else:
            await self.app.push_screen(tui.dialogs.Page(one_line(self.path), safe(self.page.text, keep_newlines=True)))

    async def action_links(self) -> None:
        """Choose where to go among the links of the note and those to it."""
        if self.is_there():
            await tui.changes.ahead(self, self._links(self.path))

    async def _links(self, path: str) -> None:
        """Let a person choose a link of the note or to it, and go there; both are read on a worker thread."""
        reply = await asyncio.to_thread(self.attempt, lambda engine: engine.notes.curator.plan.links.about(path))
        rows = tui.note_facts.link_rows(reply) if reply is not None else []
        if not rows:
            self.notify("Nothing links here, and nothing is linked from here.", markup=False)
            return

        def go(place: str) -> None:
            """Read the line at `PATH:LINE`."""
            target, _, line = place.rpartition(":")
            self.post_message(ReadNote(target, int(line)))

        await self.app.push_screen(tui.dialogs.Choice(f"Links of {one_line(path)}", rows), if_answered(go))

    def action_history(self) -> None:
        """Go to what changed in this note."""
        if self.is_own(self.page.owner):
            self.session.history_of = self.path
            self.post_message(OpenView("history"))

    async def action_unread(self) -> None:
        """Go to the first line of the curated note that the agent never reads."""
        page = await asyncio.to_thread(self.attempt, lambda e: tui.note_facts.page(e, e.notes.curator.plan.memory()))
        # The rulers stand where the agent stops reading and where it reads on, so the first is where it stops.
        if page is not None and page.rulers:
            self.post_message(ReadNote(page.path, min(page.rulers)))
        elif page is not None:
            self.notify(f"The agent reads all of {page.path} at the start of a session.", markup=False)

    async def action_calendar(self) -> None:
        """Choose a day on which something was written."""
        if self.session.engine is not None:
            # Of a day with several notes the first is opened.
            by_day = {row.day: row.path for row in reversed(self.session.files) if row.day is not None}
            calendar = tui.dialogs.Calendar(by_day, tui.note_facts.today_of(self.session.engine.plan))
            await self.app.push_screen(calendar, if_answered(lambda path: self.post_message(ReadNote(path))))

    # --- changes ------------------------------------------------------------------------------------------------------

    def show_change(self, done: AppliedChange) -> None:
        """Read the note again, or the one that a change made or renamed; where that is taken back, the one before."""
        change, undoes = done.change, done.entry.undoes
        # A text of None is a note that is not there: without one before, the change made it; after it, it is gone.
        new = next((file.path for file in change.files if file.before is None and file.after is not None), "")
        is_gone = any(file.path == self.path and file.after is None for file in change.files)
        opener = done.entry.id, self.path, self.reader.line
        self.marked.clear()
        if is_gone:
            # What comes in its place under the cursor is read when the list is filled anew.
            self.path = ""
        opened_by, path_before, line_before = self.opener
        if undoes and undoes == opened_by:
            self.open_note(path_before, line_before)
        elif change.kind == "capture":
            self.opener = opener
            # The line that was added is the last one of its log.
            log = change.files[0]
            self.open_note(new or log.path, (log.after or b"").count(b"\n"))
        elif new and (is_gone or change.kind in ("new", "undo")):
            self.opener = opener
            self.open_note(new)
        elif not is_gone:
            self.read(self.path, 0)

    @property
    def too_long(self) -> str:
        """Return why lines of this note cannot be changed here; empty where they can."""
        return "" if self.page.whole else "Only a part of this long note is shown. E opens all of it in your editor."

    async def action_promote(self, _word: str = "") -> None:
        """Copy or move lines, or copy the marked notes, to the curated note."""
        if not self.is_there(self.too_long if self.is_reading else ""):
            return
        if self.is_reading:
            await tui.changes.promote(self, self.reader, self.show_change)
        else:
            # From line 1 to 0, which stands for the last one.
            await self._propose(lambda curator: curator.plan.promote_all([(path, 1, 0) for path in self.meant]))

    async def action_move(self) -> None:
        """Move lines of the curated note, as `p` does in its text."""
        self.screen.set_focus(self.reader)
        await self.action_promote()

    async def action_overtake(self) -> None:
        """Write what holds now in the place of the line under the cursor, which stays with a mark."""
        if self.is_there(self.too_long if self.is_reading else "Open the note first: o is about one line of it."):
            await tui.changes.overtake(self, self.reader, self.show_change)

    async def action_delete(self) -> None:
        """Move lines, or the marked notes, to the trash."""
        if self.is_reading and self.is_there(self.too_long):
            spots = tui.changes.spots_of(self.reader)
            await self._propose(lambda curator: curator.plan.delete_lines(spots(curator), kind="trash"))
        elif not self.is_reading and self.meant and self.is_own(self.page.owner):
            await self._propose(lambda curator: curator.plan.trash(*self.meant))

    async def action_archive(self) -> None:
        """Move old daily logs to the archive."""
        await self._propose(lambda curator: curator.plan.archive(ARCHIVE_DAYS))

    async def action_new(self) -> None:
        """Begin a note about a subject."""
        line = tui.dialogs.Line("New note", "What is it about? The title names the file.")
        await self.ask_text(line, lambda title: self._propose(lambda c: c.plan.new_note(title)))

    async def action_rename(self) -> None:
        """Give the note another path; links to it follow."""
        if self.is_there():
            path, words = self.path, "Links follow, and the name with .md; the name without .md stays."
            line = tui.dialogs.Line("Rename the note", value=path, explanation=words)
            await self.ask_text(line, lambda new: new != path and self._propose(lambda c: c.plan.rename(path, new)))

    async def _propose(self, plan: tui.changes.Plan) -> None:
        """Show a change, and make it where that is agreed to; then show the note that it leaves in front."""
        await tui.changes.propose(self, plan, then=self.show_change)

    def leaving(self) -> str:
        """Keep what is typed in the editor."""
        return self.editor.leaving() if self.editor is not None else ""


def index_pane(session: Session) -> Content:
    """Return two lines about the index: a folder that is gone or its freshness and last sync, then the watcher."""
    if (status := session.status) is None:
        return Content.styled("The index is being opened.", "$foreground-muted")
    gone = [root for root in status.roots if root.state != "there"]
    is_current, state = freshness(status)
    last_sync = next((event for event in reversed(session.news) if isinstance(event, SyncFinished)), None)
    if gone:
        state = f"{gone[0].state.upper()}: {one_line(gone[0].absolute)}"
    elif session.progress:
        is_current, state = True, one_line(session.progress)
    elif last_sync is not None:
        changed = last_sync.indexed + last_sync.removed + last_sync.embedded
        # A minute ends with its time, HH:MM.
        state += f", {'synced' if changed else 'checked'} {minute(last_sync.at)[-5:]}"
    notes = f"{plural(status.freshness.total, 'note')}, {'watcher on' if status.watching else 'no watcher, i indexes'}"
    return Content.assemble((state, "" if is_current else "$warning"), "\n", (notes, "$foreground-muted"))


def provider_pane(session: Session) -> Content:
    """Return up to three lines about the provider: who answers, instead of whom and why, when it is asked again."""
    if session.status is None:
        return Content("")
    who = session.status.who
    name = f"{who.answers or who.requested} {who.model or who.requested_model}".strip()
    if who.fine:
        return Content.assemble(one_line(name), "\n", (one_line(who.detail or who.sentence), "$foreground-muted"))
    # Nothing compares meaning now, though a person did not switch that off.
    if who.mode != "hybrid" and who.standing != "off":
        name = "words only"
    instead = f" instead of {who.fallback.source}" if who.fallback is not None else ""
    # A minute ends with its time, HH:MM.
    again = f"asked again {minute(who.retry_at)[-5:]}" if who.retry_at else who.next_step
    lines = ((f"{name}{instead}", "$warning"), (who.reason, ""), (again, "$foreground-muted"))
    return Content("\n").join(Content.styled(one_line(words), style) for words, style in lines)


VIEW = NotesView
