"""The app: opens the engine beside the first frame, holds the views, hears what the engine does."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.keys import key_to_character
from textual.message_pump import MessagePump
from textual.notifications import Notification, Notify
from textual.widgets import ContentSwitcher, Input, Tabs
from textual.worker import get_current_worker

from memory_tui import events, tui
from memory_tui.errors import MemoryTuiError, StateUnavailable
from memory_tui.formatting import one_line
from memory_tui.tui import themes
from memory_tui.tui.first_line import FirstLine
from memory_tui.tui.keys import Hints, bindings
from memory_tui.tui.session import AskNotes, OpenEngine, OpenView, ReadNote, Reopen, Session
from memory_tui.tui.view import View, if_answered

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.notes import FileRow
    from memory_tui.engine.status import Status

MOST_COUNTED = 1 << 19
"""Bytes of notes whose inbox is counted unasked: two seconds of CPU. Of more it is counted when it is opened."""
FACTS_SECONDS = 0.2
"""Events come in bursts; the state is read once for all of them."""


class MemoryApp(App[int]):
    """The screen over an engine that `opener` opens on a worker thread, so that the first frame waits for nothing."""

    CSS_PATH = "app.tcss"
    TITLE = "memory-tui"
    COMMANDS: ClassVar[set[Any]] = {lambda: tui.palette.Commands}
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - declared without ClassVar
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    BINDINGS += [Binding("ctrl+z", "suspend_process", "Into the background", show=False)]

    def __init__(
        self,
        opener: OpenEngine,
        *,
        query: str = "",
        suggestions: Sequence[str] = (),
        keymap: Mapping[str, str] | None = None,
        doubt: str = "",
        demo: bool = False,
    ) -> None:
        self.set_reactive(MemoryApp.theme, themes.first())
        super().__init__()
        self.session = Session(opener, tuple(suggestions))
        self.first_line = FirstLine(id="top")
        self.first_query = query
        self.error: MemoryTuiError | None = None
        """Why the engine could not be opened."""
        self.doubt = doubt
        """Why something of a person's own, such as keys.toml, is not used."""
        self.demo = demo
        self.configured: object = None
        """The plan by the configuration on disk when that was last read, or why it could not be."""
        self.configuration_seconds = 5.0
        """How often it is read, which takes a millisecond."""
        self.last_words = ""
        """What became of unsaved text when the app ended."""
        self.will_read_facts = False
        """Whether the state is about to be read."""
        self.unseen: int | None = None
        """How many changes others made since a person looked at History; None before they were counted."""
        self.last_notice: Notification | None = None
        self.count_seconds = 2.0
        """How long after the first state the inbox is looked through, for its count in the first line."""
        if keymap:
            self.set_keymap(keymap)

    def compose(self) -> ComposeResult:
        """Lay out the first line, the views, of which one is made at first, and the line of keys."""
        yield self.first_line
        # The first view is made with the rest, so that all is laid out and painted once.
        first = "search" if self.first_query else "notes"
        self.switcher = ContentSwitcher(id="views", initial=first)
        with self.switcher:
            yield self.make_view(first)
        yield Hints()

    async def on_mount(self) -> None:
        """Say what is waited for, then open the engine."""
        self.view.state_changed()
        await self.open_view(self.view.NAME)
        self.theme_changed_signal.subscribe(self, lambda theme: self.keep_theme(theme.name))
        if self.doubt:
            # Status goes on saying it when the toast is gone.
            self.happened(events.Noticed(time.time(), self.doubt))
        if self.demo:
            await self.action_tour()
        self.set_interval(self.configuration_seconds, self.look_at_configuration)
        self.call_after_refresh(self.open_engine)

    # --- the engine ------------------------------------------------------------------------------------------------

    @work(thread=True, group="open")
    def open_engine(self) -> None:
        """Open the engine, show what is known, and let it begin."""
        try:
            engine = self.session.opener(self.hear)
            # An engine that starts after the end of the app would write into the folder of a demo, which is gone.
            if not get_current_worker().is_cancelled:
                self.call_later(self.opened, engine)
                engine.start()
        except MemoryTuiError as error:
            self.call_later(self.refused, error)

    def hear(self, event: events.Event) -> None:
        """Hand on what the engine did, on its thread."""
        self.call_later(self.happened, event)

    @on(Reopen)
    @work(thread=True, exclusive=True, group="open")
    def reopen(self, message: Reopen) -> None:
        """Put another engine in the place of this one; where it cannot be opened this one stays."""
        session = self.session
        try:
            engine = (message.opener or session.opener)(self.hear)
        except MemoryTuiError as error:
            self.say(f"{error.message} {error.next_step}")
            return
        if session.engine is not None:
            session.engine.close()
        session.opener = message.opener or session.opener
        self.call_later(self.opened, engine)
        engine.start()

    async def opened(self, engine: Engine) -> None:
        """Give the engine to the views; where it replaces another one, the views are made anew."""
        session = self.session
        is_reopened = session.engine is not None
        session.engine = engine
        if is_reopened:
            name = self.view.NAME
            # The views go; each keeps what was typed in it, and says so.
            kept = filter(None, [view.leaving() for view in self.query(View)])
            session.status, session.files, session.tried = None, (), []
            self.first_query, self.switcher.current = "", None
            await self.switcher.remove_children()
            await self.open_view(name)
            for text in kept:
                self.say(text)
        self.read_facts()
        for view in self.query(View) if self.is_running else ():
            view.state_changed()
        if self.first_query:
            self.post_message(AskNotes(self.first_query))

    def refused(self, error: MemoryTuiError) -> None:
        """End where there is nothing to show; the caller says why."""
        self.error = error
        self.exit(error.exit_status)

    def happened(self, event: events.Event) -> None:
        """Take note of what the engine did, and read the state once for a burst of it."""
        session = self.session
        session.news.append(event)
        match event:
            case events.SyncStarted() if event.total:
                session.progress = f"indexing {event.total:,}"
            case events.SyncProgress():
                session.progress = f"indexing {event.done:,} of {event.total:,}"
            case events.VectorsMade():
                session.progress = f"vectors {event.done:,} of {event.total:,}"
            case events.SyncFinished():
                session.progress = ""
                if event.error:
                    self.say(event.error)
                if (event.indexed or event.removed) and self.unseen is not None and self.view.NAME != "history":
                    self.tell_news()
            case events.ProviderChanged() if not event.ok:
                self.say(event.detail)
            case events.RootsChanged() | events.Noticed():
                self.say(event.text)
        for view in self.query(View) if self.is_running else ():
            view.events_arrived((event,))
        self.first_line.show_lamp(self.session, self.size.width)
        if not self.will_read_facts and not isinstance(event, events.SyncProgress | events.VectorsMade):
            self.will_read_facts = True
            self.set_timer(FACTS_SECONDS, self.read_facts)

    @work(thread=True, exclusive=True, group="configuration")
    def look_at_configuration(self) -> None:
        """Say once where the configuration on disk became another one than that in force."""
        from memory_tui.plan import renewed

        engine, before = self.session.engine, self.configured
        if engine is None:
            return
        try:
            self.configured = renewed(engine.plan)
        except MemoryTuiError as error:
            # What is wrong with it is said when it is taken up.
            self.configured = error.message
        # Nothing is said again, nor of a configuration that is back to what is in force.
        if self.configured not in (before, engine.plan):
            words = "The configuration changed on disk. : “Read the configuration again” puts it in force."
            # Status goes on saying it when the toast is gone.
            self.call_later(self.happened, events.Noticed(time.time(), words))

    def say(self, text: str) -> None:
        """Show a sentence from the engine."""
        self.notify(one_line(text), severity="warning", markup=False, timeout=12)

    def on_notify(self, event: Notify) -> None:
        """Drop a toast whose words still stand on the screen, as a key that is held down sends."""
        new, last = event.notification, self.last_notice
        # Textual keeps an empty line for each toast that went; a holder not mounted yet is still to be filled.
        for holder in self.query("ToastHolder:empty"):
            holder.display = not holder.is_mounted
        if last is not None and last.message == new.message and not last.has_expired:
            event.prevent_default()
        else:
            self.last_notice = new

    @work(thread=True, exclusive=True, group="facts")
    def read_facts(self) -> None:
        """Read status and files on a worker thread."""
        engine, worker = self.session.engine, get_current_worker()
        # Before the reading: it may miss an event that comes from now on, which has to set off another one.
        self.will_read_facts = False
        if engine is None:
            return
        try:
            status, files = engine.status(), engine.notes.files()
            # A newer reading may be over before an older one.
            if not worker.is_cancelled:
                self.call_later(self.show_facts, status, files)
        except MemoryTuiError as error:
            # A rebuild under the screen: the last state stays, and this event has it read again.
            self.call_later(self.happened, events.IndexChanged(0.0))
            self.notify(one_line(error.message), severity="warning", markup=False)

    def show_facts(self, status: Status, files: tuple[FileRow, ...]) -> None:
        """Let every view show the state."""
        is_first = self.session.status is None
        self.session.status, self.session.files = status, files
        self.first_line.show_lamp(self.session, self.size.width)
        # While the app ends, the widgets of a view are gone before the view.
        for view in self.query(View) if self.is_running else ():
            view.state_changed()
        if is_first and not gc.isenabled():
            # Off since `run`. What there is by now lives as long as the app: frozen, no collection walks it again,
            # which would be 30 % of a list step.
            gc.collect()
            gc.freeze()
            gc.enable()
        if is_first:
            self.set_timer(self.count_seconds, self.count_inbox)
            self.set_timer(self.count_seconds, self.tell_news)

    @work(thread=True, exclusive=True, group="news")
    def tell_news(self) -> None:
        """Say what others changed since a person last looked, and list this memory on this machine from now on."""
        from memory_tui.engine import machine

        if (engine := self.session.engine) is None:
            return
        try:
            words, count = engine.notes.news(), len(engine.notes.curator.journal.unviewed())
            if not self.demo:
                machine.remember(engine.plan.workspace)
        except MemoryTuiError as error:
            # Neither told again nor shown as a count.
            words, count = error.message, -1
        if words and not self.unseen:
            self.notify(f"{one_line(words)} 5 History lists it.", markup=False, timeout=12)
        self.unseen = count
        self.call_later(self.first_line.show_count, "history", count if count > 0 else None)
        self.call_later(self.first_line.show_lamp, self.session, self.size.width)

    def on_resize(self, event: Resize) -> None:
        """Say more or less in the first line."""
        self.first_line.show_lamp(self.session, event.size.width)

    # --- views -----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """Return the view in front."""
        return self.query_one(f"#{self.switcher.current}", View)

    def make_view(self, name: str) -> View:
        """Return a new view; its module is imported when it is first asked for."""
        view: View = import_module(f"memory_tui.tui.views.{name}").VIEW(self.session)
        return view

    async def ready_view(self, name: str) -> None:
        """Make a view unless it is there; one that is not shown only counts what it has."""
        if not self.switcher.query(f"#{name}"):
            view = self.make_view(name)
            await self.switcher.add_content(view, id=name)
            view.state_changed()

    async def count_inbox(self) -> None:
        """Count what the inbox has, unless it is large, or the app ends and has no views any more."""
        size = sum(row.size for row in self.session.files if row.source == "memory")
        if size <= MOST_COUNTED and self.query("#views"):
            await self.ready_view("inbox")

    async def open_view(self, name: str) -> None:
        """Show a view; it has the focus when this returns."""
        await self.ready_view(name)
        if name == "history":
            # None, where nothing was counted yet, stays.
            self.unseen = self.unseen and 0
            self.first_line.show_count(name, None)
        is_here = self.switcher.current == name
        if not is_here:
            # They stand for the view before.
            self.clear_notifications()
        self.switcher.current = name
        with self.prevent(Tabs.TabActivated):
            self.query_one(Tabs).active = f"tab-{name}"
        if self.view.drawn_at != self.size:
            self.view.drawn_at = self.size
            self.call_after_refresh(self.view.tell_size)
        # Not `focus()`, which waits for its turn: keys typed ahead would go to the view before.
        # Who comes back to a text goes on reading; the same key again leads to its list.
        if focus := self.view.query(self.view.FOCUS):
            self.screen.set_focus(focus.first() if is_here else focus.last())

    action_view = open_view

    @on(Tabs.TabActivated)
    async def open_tab(self, event: Tabs.TabActivated) -> None:
        """Go where the mouse points; what Tabs says of its first tab comes late, when a key may have gone elsewhere."""
        if event.tab.id and event.tab.id == event.tabs.active and event.tab.id != f"tab-{self.view.id}":
            await self.open_view(event.tab.id.removeprefix("tab-"))

    @on(OpenView)
    async def open_named_view(self, message: OpenView) -> None:
        """Go to a view that another one names."""
        await self.open_view(message.name)

    @on(ReadNote)
    async def read_note(self, message: ReadNote) -> None:
        """Show a line of a note; the message says which view asked for it."""
        message.origin = self.view.NAME
        await self.open_view("notes")
        self.view.post_message(message)

    @on(AskNotes)
    async def ask_notes(self, message: AskNotes) -> None:
        """Ask a question in the search view."""
        await self.open_view("search")
        self.view.post_message(message)

    # --- keys ------------------------------------------------------------------------------------------------------

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Do what a key means before the next one is looked at, and return whether it meant something here.

        Textual looks twice: with `priority` before the focus gets the key, then without, when it has travelled up from
        the focus into the queue of the app, behind what was typed ahead. So all is done at the first look.
        """
        # A sentence about the key before stands over what this one is about.
        if priority and self.last_notice is not None and self.last_notice.severity != "warning":
            self.clear_notifications()
            self.last_notice = None
        if await super()._check_bindings(key, priority):
            return True
        focus = self.focused
        if not priority:
            return False
        # What takes a letter is a box of text. Of its keys only its own are done here; the others it may take itself.
        if focus is not None and focus.check_consume_key("a", "a"):
            if key not in focus._bindings.key_to_bindings or focus.check_consume_key(key, key_to_character(key)):
                return False
            await self.wait_for(focus)
        elif focus is not None and key not in focus._bindings.key_to_bindings:
            # Arrows and the like, which move the cursor of a list, need not wait for what it comes to.
            await self.view.catch_up()
        if not await super()._check_bindings(key):
            return False
        # A list tells its view that a row was chosen, which opens the dialog that the next keys are for.
        for node in focus.ancestors_with_self[:-1] if focus is not None else ():
            await self.wait_for(node)
        return True

    async def wait_for(self, node: MessagePump) -> None:
        """Wait until `node` has handled what was sent to it."""
        done = asyncio.Event()
        if node.call_later(done.set):
            await tui.changes.in_time(done.wait())

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Offer other scopes only where there is a shared index."""
        return action != "scope" or (self.session.engine is not None and self.session.engine.scopes.configured)

    async def action_ask(self) -> None:
        """Go to the query box."""
        await self.open_view("search")
        self.screen.set_focus(self.query_one("#query"))

    def action_index(self) -> None:
        """Bring the index up to date."""
        if self.session.engine is not None:
            self.session.engine.index.request_sync()
            self.notify("The index is brought up to date.", markup=False)

    async def action_undo(self) -> None:
        """Take back what was tried in the view, else the last change of notes."""
        if not self.view.undo():
            await tui.changes.take_back(self.view, then=self.view.show_change)

    async def action_help(self) -> None:
        """Say what each view is for."""
        await self.push_screen(tui.help.Help(self._keymap, tui.dialogs.dialog_width(self.size.width)))

    async def action_keys(self) -> None:
        """List the keys that work where the focus is."""
        await self.push_screen(tui.dialogs.Page("Keys", tui.help.every(self.screen.active_bindings.values())))

    def action_help_quit(self) -> None:
        """Say how to quit, where a person tries the shell's key."""
        self.notify(f"{self._keymap.get('app.quit', 'q')} quits.", markup=False)

    async def action_tour(self) -> None:
        """Begin the tour, or end it."""
        if tour := self.query("#tour"):
            await tour.remove()
        else:
            await self.screen.mount(tui.tour.Tour(self.session), before=self.query_one(Hints))

    def action_rebuild(self) -> None:
        """Make the index anew, after a yes."""
        words = "Every note is cut and embedded again; a provider gets all of them once more."

        def deed(engine: Engine) -> str:
            """Index every note anew, on a worker thread; return the sentence that says so."""
            return f"{engine.index.sync(force=True).indexed:,} notes are indexed anew."

        self.view.post_message(View.Asks("Rebuild the index", Content(words), "Rebuild it", deed))

    async def on_chosen(self, message: tui.palette.Chosen) -> None:
        """Open the view of a command, and do it where the focus is, or around it."""
        command = message.command
        # Where its key is about what is in front, it needs no other view.
        if command.view and not (command.target.startswith("note.") and command.works(self.screen)):
            await self.open_view(command.view)
        name = command.action.partition("(")[0].removeprefix("app.")
        # Innermost first.
        able = [node for node in (self.focused or self.view).ancestors_with_self if hasattr(node, f"action_{name}")]
        await self.run_action(command.action, able[0] if able else self)

    async def action_quit(self) -> None:
        """End at once; of a demo that was changed, or has unsaved text, after a yes, as its folder goes with it."""
        loses = self.demo and (self.session.made or any(view.leaving() for view in self.query(View)))
        if loses and not isinstance(self.screen, tui.dialogs.Dialog):
            words = Content("Quitting deletes the demo's folder, with what you changed and typed in its notes.")
            await self.push_screen(tui.dialogs.Confirm("Demo", words, "Quit"), if_answered(lambda _: self.leave(0)))
        else:
            self.leave(0)

    # A name of its own for the key that is a letter in a box of text, where Textual's ctrl+q goes on.
    action_end = action_quit

    async def action_palette(self) -> None:
        """Open the palette; what is typed ahead goes into its box."""
        await self.push_screen(tui.palette.Palette())
        self.screen.set_focus(self.screen.query_one(Input))

    def search_themes(self) -> None:
        """Offer the themes."""
        self.push_screen(tui.palette.Palette(providers=[tui.palette.Themes], placeholder="Search for themes…"))

    def leave(self, code: int) -> None:
        """End with exit `code`, whatever is on the screen; what was typed and not saved is kept."""
        # The folder of a demo goes, with all that is kept.
        self.last_words = " ".join(filter(None, [view.leaving() for view in self.query(View)])) * (not self.demo)
        # Workers end now, not when the screen is gone: they take time from the screen's thread, which has to end.
        self.workers.cancel_all()
        if self.session.engine is not None:
            self.session.engine.index.stop()
        self.exit(code)

    @work(thread=True, group="theme")
    def keep_theme(self, name: str) -> None:
        """Start with this theme from now on."""
        try:
            themes.keep(name)
        except StateUnavailable as error:
            self.say(f"{error.message} {error.next_step}")

    def on_unmount(self) -> None:
        """Close the engine before the worker threads are waited for."""
        if self.session.engine is not None:
            self.session.engine.close()
