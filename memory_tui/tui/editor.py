"""The editor of a note: it saves only over the text that it opened, and what was typed survives. Or the user's own."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar

from msgspec import Struct
from textual import events, on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static, TextArea

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import minute, one_line, plural, safe
from memory_tui.notes.changes import changed_spans, editor_text
from memory_tui.notes.edit import AppliedChange, Curator, ExternalEdit
from memory_tui.notes.journal import Typing, Unsaved, left
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Confirm
from memory_tui.tui.keys import bindings
from memory_tui.tui.reader import MarkdownText, Part
from memory_tui.tui.view import View, if_answered
from memory_tui.workspace.chunking import chunks_of
from memory_tui.workspace.notes import is_daily

MOST = 1_000_000
"""Bytes of the largest note that is edited here."""
REST = 0.6
"""Seconds without a key after which what was typed is kept and measured."""
KEEP = 3.0
"""Seconds after which it is kept although the keys do not rest."""


class Opened(Struct, frozen=True):
    """A note as the editor begins with it: `before` are its bytes, None for a new note, and `text` decodes them.

    `typing` keeps what is typed; `left` is what was typed last time and not saved, None for nothing; `beginning` is
    the text proposed for a new note.
    """

    before: bytes | None
    text: str
    typing: Typing
    left: Unsaved | None
    beginning: str = ""


class EditArea(MarkdownText):
    """The text; letters are letters here, and what is pasted is safe to show."""

    def __init__(self) -> None:
        super().__init__(read_only=False, id="editor-text")

    async def _on_paste(self, event: events.Paste) -> None:
        """Show what is pasted as it may be drawn."""
        # Textual calls that of the text area next.
        event.text = visible(event.text)


class Editor(Screen[int]):
    """Edits a note of `view`; it is dismissed with the line of the cursor, or with None where nothing was saved."""

    # The text area would take escape for itself.
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("text.save"), Binding("escape", "back", "Back", priority=True)]

    def __init__(self, view: View, path: str, line: int, opened: Opened) -> None:
        super().__init__()
        self.view, self.path, self.line, self.opened = view, path, line, opened
        self.shown = visible(opened.text)
        """The text as it may be drawn, with stand-ins for control characters."""
        self.area = EditArea()
        self.turn = 0
        """Counts what is kept and dropped, so that a worker that is late undoes nothing newer."""
        self.kept = 0.0
        """When the typing was kept last, by the monotonic clock."""
        self.writing = False
        """Whether saving began less than REST ago."""
        self.timer: Timer | None = None

    @staticmethod
    def open(engine: Engine, path: str) -> Opened:
        """Return a note for the editor, with what was typed and not saved last time. Raises EditRefused and more."""
        curator = engine.notes.curator
        data = curator.read(path)
        if data is not None and len(data) > MOST:
            raise EditRefused(f"{path} has {len(data):,} bytes, too many to edit here.", "E opens it in your editor.")
        unsaved = next(iter(left(curator.journal, path)), None)
        typing = Typing(curator.journal, path, unsaved)
        # Typing that the note has by now is not left any more.
        if unsaved is not None and unsaved.text == visible(editor_text(data, path)):
            unsaved = None
        # What is left goes over the bytes it began with, so that what others wrote since is merged or shown.
        before = unsaved.before if unsaved is not None else data
        beginning = curator.plan.beginning(path) if before is None else ""
        return Opened(before, editor_text(before, path), typing, unsaved, beginning)

    def compose(self) -> ComposeResult:
        """Lay out the text, the line about how it stands, and the keys."""
        yield self.area
        yield Static(id="standing", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Show the text, with the cursor where a person came from; a log goes on at its end."""
        opened, area = self.opened, self.area
        text = opened.left.text if opened.left is not None else (opened.beginning or self.shown)
        area.load_text(text)
        self.set_focus(area)
        # What was left begins where it differs from the note.
        line = self.line if opened.left is None else os.path.commonprefix([self.shown, text]).count("\n") + 1  # noqa: RUF071 - letters are meant
        at_end = bool(opened.beginning) or (line <= 1 and is_daily(self.path))
        area.move_cursor(area.document.end if at_end else (min(line, area.document.line_count) - 1, 0))
        self.call_after_refresh(area.scroll_cursor_visible, True)
        if opened.left is not None:
            when = minute(opened.left.at)
            self.say(f"What you typed until {when} and did not save is back. ctrl+s saves it, escape can drop it.")
        elif self.shown != opened.text:
            self.say("Control characters show as stand-ins; lines that you leave alone keep theirs.")
        self.changed()
        self.measure(text)

    def say(self, text: str) -> None:
        """Show a sentence."""
        self.notify(text, markup=False, timeout=8)

    @property
    def is_unsaved(self) -> bool:
        """Return whether something was typed that is not in the note."""
        return self.area.text != (self.opened.beginning or self.shown)

    @on(TextArea.Changed)
    def changed(self) -> None:
        """Say whether the text is saved, and keep it when the keys rest."""
        self.area.border_title = Content(f"Edit {one_line(self.path)}{'  not saved yet' if self.is_unsaved else ''}")
        if self.timer is not None:
            self.timer.stop()
        self.timer = self.set_timer(REST, self.rested)
        if time.monotonic() - self.kept > KEEP:
            self.keep()

    def rested(self) -> None:
        """Keep what was typed, and say what saving it would mean."""
        self.timer = None
        self.keep()
        self.measure(self.area.text)

    def keep(self) -> None:
        """Have what was typed kept, in case that this is its end."""
        self.kept = time.monotonic()
        self.turn += 1
        if self.is_unsaved:
            self.store(partial(self.opened.typing.keep, self.turn, self.area.text, self.opened.before))
        else:
            self.store(partial(self.opened.typing.drop, self.turn))

    @work(thread=True, group="keep")
    def store(self, deed: Callable[[], None]) -> None:
        """Keep or forget what was typed, on a worker thread."""
        try:
            deed()
        except MemoryTuiError as error:
            self.view.refuse(error)

    def leaving(self) -> str:
        """Keep what was typed until now, because the app ends; return what became of it."""
        if not self.is_unsaved:
            return ""
        self.turn += 1
        try:
            self.opened.typing.keep(self.turn, self.area.text, self.opened.before)
        except MemoryTuiError as error:
            return one_line(error.message)
        return f"Your unsaved text of {one_line(self.path)} is kept. e on the note goes on with it."

    @work(thread=True, exclusive=True, group="measure")
    def measure(self, text: str) -> None:
        """Work out on a worker thread what saving `text` would mean."""
        if rows := self.view.attempt(lambda engine: after_saving(engine, self.path, self.opened.before, text)):
            lines = Content("\n").join(Content.styled(one_line(words), style) for words, style in rows)
            self.call_later(self.query_one("#standing", Static).update, lines)

    def action_save(self) -> None:
        """Write the note; what others wrote meanwhile stays, or the conflict is shown."""
        if self.writing:
            return
        if not self.is_unsaved and not self.opened.beginning:
            self.say("Nothing was changed.")
            self.dismiss(None)
            return
        text = restored(self.opened.text, self.area.text)
        if text and not text.endswith("\n"):
            # What an agent appends stands on a line of its own.
            text += "\n"
        self.writing = True
        # The note may be saved again where this time does not go through.
        self.set_timer(REST, partial(setattr, self, "writing", False))

        def write(curator: Curator) -> AppliedChange:
            """Write the text over what was opened, on a worker thread."""
            return curator.apply(curator.plan.edit(self.path, self.opened.before, text))

        # The editor closes in the same way where the note has this text already.
        changes.make(self.view, write, self.saved, self.saved)

    def saved(self, _done: AppliedChange | None = None) -> None:
        """Forget the typing, which is in the note now, and leave."""
        self.turn += 1
        self.store(partial(self.opened.typing.drop, self.turn))
        # With its text as the beginning nothing counts as unsaved, should the app end now.
        self.opened = Opened(None, "", self.opened.typing, None, self.area.text)
        self.dismiss(self.area.cursor_location[0] + 1)

    async def action_back(self) -> None:
        """Leave; what is not saved is asked about."""
        if not self.is_unsaved:
            self.dismiss(None)
            return

        def leave(_: bool) -> None:
            """Close the editor and forget what was typed."""
            self.turn += 1
            self.store(partial(self.opened.typing.drop, self.turn))
            self.dismiss(None)

        words = Content(f"Your text is not in {self.path} yet. escape goes back to it, and ctrl+s there saves it.")
        await self.app.push_screen(Confirm("Leave without saving?", words, "Throw it away"), if_answered(leave))


def after_saving(engine: Engine, path: str, before: bytes | None, text: str) -> list[Part]:
    """Return what saving `text` means for passages, prompt and trust, as sentences with a style."""
    curator, settings = engine.notes.curator, engine.plan.settings
    data = text.encode("utf-8", "replace")
    sizes = settings.whole("chunking.tokens"), settings.whole("chunking.overlap")
    passages = chunks_of(text, path, settings.profile.chunking, sizes)
    rows: list[Part] = [(f"After saving: {plural(len(passages), 'passage')}.", "")]
    if path == curator.plan.memory():
        rows += [(row.sentence, "$error" if row.cut else "") for row in curator.plan.budget(data)]
    if curator.plan.trust is not None:
        effects = curator.plan.trust.effects([(path, before, data)])
        rows += [(effect, "$warning") for effect in effects if "changes nothing" not in effect]
    return rows


def visible(text: str) -> str:
    """Return `text` safe to show line by line; a tab stays one, because an editor draws it as space."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line if line.isprintable() else "\t".join(map(safe, line.split("\t"))) for line in lines)


def restored(text: str, typed: str) -> str:
    """Return `typed` with the lines of `text` that were left alone as they are in the note, stand-ins and all."""
    old, seen, new = text.split("\n"), visible(text).split("\n"), typed.split("\n")
    if old == seen:
        return typed
    lines: list[str] = []
    copied = 0
    # Lines `first` to `last` of the note became `start` to `end` of what was typed; those between are the note's.
    for first, last, start, end in changed_spans(seen, new):
        lines += old[copied:first] + new[start:end]
        copied = last
    return "\n".join(lines + old[copied:])


# --- the user's editor ----------------------------------------------------------------------------------------------

_COLON = {"hx": (), "helix": (), "micro": ()} | dict.fromkeys(("zed", "zeditor", "subl", "sublime_text"), ("--wait",))
"""The arguments of editors that take PATH:LINE: some have to be told to wait."""
_GOTO = {"code", "code-insiders", "codium", "vscodium", "cursor"}
"""VS Code and its kin."""
_AT_ONCE = {"open", "xdg-open"}
"""These come back before anything is edited."""


def command(path: str, line: int, environment: Mapping[str, str]) -> list[str]:
    """Return the arguments that open `path` at `line` in $VISUAL, else $EDITOR, else vi, until it is closed."""
    choice = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    try:
        words = shlex.split(choice) or ["vi"]
    except ValueError:
        # A quotation mark without its partner; the words are what is left to try.
        words = choice.split()
    name = PurePath(words[0]).name.removesuffix(".exe")
    if name in _GOTO:
        return [*words, "--wait", "--goto", f"{path}:{line}"]
    if name in _COLON:
        return [*words, *_COLON[name], f"{path}:{line}"]
    return [*words, path] if name in {"notepad", *_AT_ONCE} else [*words, f"+{line}", path]


def run_editor(words: Sequence[str]) -> str:
    """Run an editor until it ends; return what went wrong as a sentence, or nothing."""
    try:
        # Descriptor 2 is kept off the screen, and an editor may draw there.
        process = subprocess.Popen(words, stderr=sys.__stderr__)
    except OSError as error:
        return f"The editor {words[0]} could not be started: {error.strerror or error}. Set $EDITOR."
    # ctrl+c is for the editor; set after its start, because it would inherit this.
    handler_before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = process.wait()
    finally:
        signal.signal(signal.SIGINT, handler_before)
    return f"The editor {words[0]} ended with status {status}." if status else ""


def edit_outside(view: View, path: str, line: int, then: Callable[[], object]) -> None:
    """Give the terminal to the user's editor, then keep what it made of the note in the journal."""
    if (begun := view.attempt(lambda engine: engine.notes.curator.begin_external_edit(path))) is None:
        return
    words = command(begun.absolute, line, os.environ)
    try:
        with view.app.suspend():
            problem = run_editor(words)
    except SuspendNotSupported:
        view.notify("Here is no terminal for your own editor. e edits the note in this window.", markup=False)
        return
    if problem:
        view.notify(one_line(problem), severity="error", markup=False)
    view.run_worker(lambda: _keep_outside(view, begun, PurePath(words[0]).name, then), thread=True, group="write")


def _keep_outside(view: View, begun: ExternalEdit, name: str, then: Callable[[], object]) -> None:
    """Put what the editor `name` made of the note into the journal, and say so; for worker threads."""

    def finish(engine: Engine) -> None:
        """Record what the program saved, or say why there is nothing to record."""
        if change := engine.notes.curator.finish_external_edit(begun, name):
            view.call_later(changes.finish, view, change, lambda _: then())
        elif name in _AT_ONCE:
            view.notify(f"{name} does not wait for its window: what it saves is not in the journal.", markup=False)
        else:
            view.notify(f"{one_line(begun.path)} is as it was.", markup=False)

    view.attempt(finish)
