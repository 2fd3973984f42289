"""The view History: what became of the notes and by whom, day by day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import ClassVar, Literal

from msgspec import Struct
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.notes import authors
from memory_tui.notes.history import OTHERS, exact, history, taken_back
from memory_tui.notes.journal import JournalEntry
from memory_tui.sanitize import one_line, safe
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Choice, Page
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.note_facts import difference
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import Session
from memory_tui.tui.view import View

FILTERS = ("all", "by agents", "removed", "mine")
"""What is listed, in the order of the key."""
PAGE = 500
"""So many edits are read at first; the last row reads more."""
_OLDER = "older"


class Past(Struct, frozen=True):
    """Changes, newest first; which of them can be taken back or made again; `problem` is why there are none.

    With `more` there are older ones.
    """

    entries: tuple[JournalEntry, ...] = ()
    more: bool = False
    undoable: frozenset[int] = frozenset()
    redoable: frozenset[int] = frozenset()
    problem: str = ""


def past(engine: Engine, path: str, most: int = PAGE) -> Past:
    """Return what is known of the note `path`, or of all without one; for worker threads. Raises MemoryTuiError."""
    curator = engine.notes.curator
    listed = history(curator.journal, path or None, most=most)
    entries = [entry for entry in listed if entry.state in ("done", "draft")]
    return Past(
        tuple(sorted(entries, key=lambda entry: -entry.at)),
        len(curator.journal.edits(path or None, most=most)) == most,
        frozenset(entry.id for entry in curator.stack("undo")),
        frozenset(entry.id for entry in curator.stack("redo")),
    )


def fits(entry: JournalEntry, chosen: str) -> bool:
    """Return whether a filter lists a change."""
    if chosen == "all":
        return True
    if chosen == "removed":
        return any(file.after is None for file in entry.files)
    by_agent = entry.author is not None and entry.author.host not in ("", "git")
    return by_agent if chosen == "by agents" else entry.kind != OTHERS


def key_of(entry: JournalEntry) -> str:
    """Return the id of a row."""
    return f"{entry.state} {entry.id}"


def rows(known: Past, width: int, chosen: str = "all") -> Iterator[Option]:
    """Yield the days, and below each its changes: when, what, and what became of it."""
    listed = [entry for entry in known.entries if fits(entry, chosen)]
    for day, entries in groupby(listed, lambda entry: dt.datetime.fromtimestamp(entry.at).date()):
        yield Option(Content.styled(f"{day:%A} {day.day} {day:%B %Y}", "bold"), disabled=True)
        for entry in entries:
            time = f"{dt.datetime.fromtimestamp(entry.at):%H:%M} "
            if entry.state == "draft":
                what, style = f"not written, kept: {entry.title}", "$warning"
            elif entry.kind == OTHERS:
                gone = any(file.after is None for file in entry.files)
                what, style = entry.title, "$warning" if gone else "$accent"
            else:
                what, style = entry.title, "$foreground-muted strike" if entry.id in known.redoable else ""
            row = Content.assemble((time, "$foreground-muted"), (one_line(what), style)).truncate(width, ellipsis=True)
            yield Option(row, id=key_of(entry))
    others = [entry for entry in listed if entry.kind == OTHERS]
    if share := authors.unknown_share((entry.author, len(entry.files)) for entry in others):
        yield Option(Content.styled(share, "$foreground-muted"), disabled=True)
    if known.more:
        yield Option(Content.styled("Older changes", "$foreground-muted"), id=_OLDER)


def what_changed(engine: Engine, entry: JournalEntry) -> Content:
    """Return what a change did, in colours; for worker threads. Raises EditRefused where a text is gone."""
    reason = f"{entry.reason[0].upper()}{entry.reason[1:]}.\n" if entry.reason else ""
    reason += f"{authors.sentence(entry.author)}\n" if entry.kind == OTHERS else ""
    head = Content.assemble(
        (f"{one_line(entry.title)}\n", "bold"), (safe(reason, keep_newlines=True), "$foreground-muted")
    )
    return Content("").join([head, difference(engine.notes.curator.journal.change_of(entry))])


_MOST_OFFERED = 20


def versions(entry: JournalEntry, path: str) -> list[tuple[str, str]]:
    """Return the notes whose exact text of before can be brought back, empty for all, with words; the first first."""
    names = (path,) if path in entry.paths else entry.paths[:_MOST_OFFERED]
    many = [("", f"all {len(entry.paths):,} notes exactly as they were before this")] * (len(entry.paths) > 1)
    return [*many, *((f"{name}", f"{name} exactly as it was before this") for name in names)]


def steps(entry: JournalEntry, known: Past) -> Iterator[tuple[str, str]]:
    """Yield how a change alone can be undone or made again: which step, and its words."""
    if entry.id in known.redoable:
        yield "redo", "this change is made again"
    elif entry.kind == OTHERS or entry.id in known.undoable:
        yield "back" if entry.kind == OTHERS else "undo", "this change alone is taken back; what came since stays"


class HistoryView(View):
    """Lists changes; beside the list is what the one under the cursor did."""

    NAME = "history"
    FOCUS = "#history-list"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("history", "text.back"), *named("Filter", "notes.filter")]

    @dataclass
    class Gathered(Message):
        """The journal was read."""

        past: Past
        path: str

    @dataclass
    class Compared(Message):
        """What a change did was worked out."""

        key: str
        text: Content

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.past = Past()
        self.path = ""
        self.chosen, self.most = FILTERS[0], PAGE

    def compose(self) -> ComposeResult:
        with Horizontal(classes="panes"):
            yield Rows(id="history-list")
            with VerticalScroll(id="history-right", can_focus=True):
                yield Static(id="history-text", markup=False)

    def on_mount(self) -> None:
        """Show what the change under the cursor did."""
        self.watch(self.query_one(Rows), "highlighted", self.cursor_moved, init=False)

    def on_show(self) -> None:
        """Read the journal when the view comes to the front; all of a note that is asked about."""
        if self.session.history_of not in ("", self.path):
            self.chosen = FILTERS[0]
        self.gather()

    def state_changed(self) -> None:
        """Read the journal when notes changed."""
        if self.display:
            self.gather()

    @work(thread=True, exclusive=True, group="past")
    def gather(self) -> None:
        """Read the record; then who made what is new, and that a person looked."""
        path, most = self.session.history_of, self.most

        def read(engine: Engine) -> Past:
            try:
                return past(engine, path, most)
            except EditRefused as error:
                return Past(problem=f"{error.message} {error.next_step}")

        known = self.attempt(read)
        if known is not None:
            self.post_message(self.Gathered(known, path))
        if known is not None and (known.entries or not known.problem):
            self.attempt(lambda engine: engine.notes.viewed())
            self.post_message(self.Gathered(self.attempt(read) or known, path))

    @on(Gathered)
    def gathered(self, message: Gathered) -> None:
        """List the changes."""
        if message.past == self.past and message.path == self.path and self.past.entries:
            return
        self.past, self.path = message.past, message.path
        self.show_rows()

    def show_rows(self) -> None:
        """List what the filter lets through."""
        listed = self.query_one(Rows)
        listed.refill(rows(self.past, listed.scrollable_content_region.width or 40, self.chosen))
        if listed.highlighted_option is not None and listed.highlighted_option.disabled:
            listed.action_cursor_down()
        title = f"What changed in {one_line(self.path)}" if self.path else "What changed"
        listed.border_title = Content(title if self.chosen == FILTERS[0] else f"{title}, {self.chosen}")
        listed.border_subtitle = "esc all notes" if self.path else None
        if not listed.option_count:
            first = "This note did not change yet; esc lists all." if self.path else "No note changed yet."
            words = f"{first}\n\nEach change of a note is kept here, whoever makes it."
            words = (
                words if self.chosen == FILTERS[0] else f'No change passes the filter "{self.chosen}". f lists others.'
            )
            self.query_one("#history-text", Static).update(safe(self.past.problem or words, keep_newlines=True))

    @property
    def entry(self) -> JournalEntry | None:
        """Return what is under the cursor."""
        option = self.query_one(Rows).highlighted_option
        return next((entry for entry in self.past.entries if option is not None and key_of(entry) == option.id), None)

    def cursor_moved(self) -> None:
        """Work out what the change under the cursor did."""
        if self.entry is not None:
            self.compare(self.entry)

    @work(thread=True, exclusive=True, group="compare")
    def compare(self, entry: JournalEntry) -> None:
        """Compare the texts on a worker thread."""
        text = self.attempt(partial(what_changed, entry=entry))
        if text is not None:
            self.post_message(self.Compared(key_of(entry), text))

    @on(Compared)
    def compared(self, message: Compared) -> None:
        """Show what the change did."""
        if self.entry is not None and key_of(self.entry) == message.key:
            self.query_one("#history-text", Static).update(message.text)
            self.query_one("#history-right").scroll_home(animate=False)

    @on(OptionList.OptionSelected)
    async def open_difference(self, event: OptionList.OptionSelected) -> None:
        """Show what the change did over the whole screen; the last row lists older ones."""
        event.stop()
        if event.option_id == _OLDER:
            self.most *= 4
            self.gather()
            return
        shown = self.query_one("#history-text", Static).visual
        await self.app.push_screen(Page("What this changed", shown if isinstance(shown, Content) else Content("")))

    async def action_restore(self) -> None:
        """Choose a text that a note had, and bring it back."""
        entry = self.entry
        if entry is None:
            self.notify("No change is under the cursor.", markup=False)
            return
        options = [(id_, one_line(words)) for id_, words in (*versions(entry, self.path), *steps(entry, self.past))]

        async def chosen(answer: str | None) -> None:
            if answer in ("undo", "redo"):
                again: Literal["undo", "redo"] = "redo" if answer == "redo" else "undo"
                await changes.take_back(self, again, entry.id, lambda _: self.gather())
            elif answer == "back":
                await changes.propose(self, lambda curator: taken_back(curator, entry), then=lambda _: self.gather())
            elif answer is not None:
                await changes.propose(self, lambda curator: exact(curator, entry, answer), then=lambda _: self.gather())

        await self.app.push_screen(Choice("Restore", options, "The change is shown before it is made."), chosen)

    def action_filter(self) -> None:
        """List what the next filter lets through."""
        self.chosen = FILTERS[(FILTERS.index(self.chosen) + 1) % len(FILTERS)]
        self.show_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way back only where there is one."""
        return bool(self.path) if action == "back" else super().check_action(action, parameters)

    def action_back(self) -> None:
        """Show the changes of all notes."""
        self.session.history_of = ""
        self.gather()


VIEW = HistoryView
