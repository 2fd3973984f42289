"""What all views have in common: the session, errors that are said, and what they hear from the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events, on, work
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from memory_tui import tui
from memory_tui.errors import Cancelled, MemoryTuiError, PathRefused, WorkspaceError
from memory_tui.formatting import one_line
from memory_tui.tui.keys import bindings

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.events import Event
    from memory_tui.notes.edit import AppliedChange
    from memory_tui.tui.session import Session

T = TypeVar("T")


def if_answered(then: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Return the callback of a dialog, which calls `then` with the answer.

    It does nothing for None (the dialog was closed), False (a no) or an empty answer.
    """
    return lambda answer: then(answer) if answer else None


class View(Vertical):
    """A view; the app makes it when it is first opened, and keeps it."""

    NAME: ClassVar[str]
    """Its id, and that of its key: `app.NAME`."""
    FOCUS: ClassVar[str]
    """Selects what has the focus when it is opened: the last that is there."""
    BINDINGS = bindings("notes.add")

    @dataclass
    class Asks(Message):
        """Have a person agree to `text` before something is done."""

        title: str
        text: Content
        verb: str
        """What a yes does, such as "Write it"."""
        deed: Callable[[Engine], str]
        """Runs on a worker thread after a yes, and returns what became of it, in a sentence."""
        then: Callable[[], object] = str
        """Is called on the screen's thread when that is done; `str`, the default, does nothing."""

    def __init__(self, session: Session) -> None:
        super().__init__(id=self.NAME)
        self.session = session
        self.drawn_at = Size()
        """The window for which it was drawn last."""

    def state_changed(self) -> None:
        """Draw anew what depends on the session's engine, status or files; called when it is mounted too."""

    async def catch_up(self) -> None:
        """Show first what the cursor came to; called before a key that may be about it."""

    def events_arrived(self, events: Sequence[Event]) -> None:
        """Take note of what the engine did."""

    def tell_size(self) -> None:
        """Send every widget its size: Textual told them of no change of the window while the view was hidden."""
        for widget in self.walk_children(Widget, with_self=True):
            widget.post_message(events.Resize(widget.size, widget.virtual_size))

    def show_change(self, done: AppliedChange) -> None:
        """Show what a change of notes did."""

    def notes_changed(self) -> None:
        """Take note of a change that another view made, or that was taken back."""

    def undo(self) -> bool:
        """Take back what was tried in this view; return False where nothing was, for the app to take back a change."""
        return False

    def leaving(self) -> str:
        """Keep what was typed and not saved, because the app ends; return what became of it, in a sentence."""
        return ""

    def attempt(self, call: Callable[[Engine], T]) -> T | None:
        """Return the result of `call`, which gets the engine; for worker threads.

        Return None before the engine is open, where the call was cancelled, and where it was refused, which is said.
        """
        engine = self.session.engine
        try:
            return call(engine) if engine is not None else None
        except Cancelled:
            pass
        except MemoryTuiError as error:
            self.refuse(error)
        return None

    @work(thread=True, group="deed")
    def perform(self, deed: Callable[[Engine], str], then: Callable[[], object] = str) -> None:
        """Do `deed` on a worker thread, and say the sentence that it returns, if any.

        `then` is called afterwards on the screen's thread, unless the deed was refused; `str` does nothing.
        """
        if words := self.attempt(deed):
            self.notify(one_line(words), markup=False)
        if words is not None:
            self.call_later(lambda: then())  # noqa: PLW0108 - Textual looks at a signature, which `str` has none of

    @on(Asks)
    async def confirm(self, message: Asks) -> None:
        """Ask a person, and do what was agreed to."""
        dialog = tui.dialogs.Confirm(message.title, message.text, message.verb)
        await self.app.push_screen(dialog, if_answered(lambda _: self.perform(message.deed, message.then)))

    async def action_add(self) -> None:
        """Add a line to today's log."""
        line = tui.dialogs.Line("Add to today's log", "What is worth remembering?", "", "Enter writes it to the end.")
        await self.ask_text(line, lambda text: tui.changes.make(self, lambda c: c.remember(text), self.show_change))

    async def ask_text(self, dialog: tui.dialogs.Line, then: Callable[[str], object]) -> None:
        """Ask for a line of text where notes may be written, and call `then` with it."""
        if tui.changes.is_writable(self):
            await self.app.push_screen(dialog, if_answered(then))

    def is_own(self, owner: str) -> bool:
        """Return whether `owner` is empty, as for notes of this workspace; else say that the note is only read here."""
        if owner:
            self.notify(f"This is a note of {one_line(owner)}, which is read-only here.", markup=False)
        return not owner

    def reason(self, error: MemoryTuiError) -> str:
        """Return why something is refused, and what to do next: of a note, that their folder is gone where it is."""
        is_of_notes, engine = isinstance(error, WorkspaceError | PathRefused), self.session.engine
        if is_of_notes and engine is not None and not engine.plan.workspace.is_dir():
            return "The folder of the notes is gone; 3 says why."
        return f"{error.message} {error.next_step}"

    def refuse(self, error: MemoryTuiError) -> None:
        """Say why something was not done, and what to do next; from any thread."""
        self.notify(one_line(self.reason(error)), severity="error", markup=False, timeout=12)
