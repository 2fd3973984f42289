"""The view History: what became of the notes and by whom, day by day."""

import asyncio
import datetime as dt
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.engine.engine import Engine
from memory_tui.engine.notes import Past
from memory_tui.errors import EditRefused
from memory_tui.formatting import one_line, plural, safe
from memory_tui.notes import authors
from memory_tui.notes.history import exact, taken_back, who
from memory_tui.notes.journal import OTHERS, JournalEntry, RecordedNote
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Choice, Page, dialog_width
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.note_facts import difference
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import Session
from memory_tui.tui.view import View

FILTERS = ("all", "by agents", "removed", "by memory-tui")
"""What is listed, in the order of the key."""
FEWEST = 3
"""So many changes by one author are listed as one."""
PAGE = 500
"""So many edits are read at first; the last row reads more."""
_OLDER = "older"
_EMPTY = "\n\nA change by you, an agent or an editor is listed here with its lines; r brings the text back."


def fits(entry: JournalEntry, chosen: str) -> bool:
    """Return whether the filter `chosen`, one of FILTERS, lists a change."""
    is_removed = entry.kind == "trash" or any(file.after is None for file in entry.files)
    # Git itself is named where no single agent ran it.
    is_agents = entry.author is not None and entry.author.host not in ("", "git")
    return {"all": True, "removed": is_removed, "by agents": is_agents}.get(chosen, entry.kind != OTHERS)


class Run(JournalEntry, frozen=True):
    """Changes by somebody else as one, whose files are those before the first and after the last of `parts`."""

    parts: tuple[JournalEntry, ...] = ()


def run_of(parts: Sequence[JournalEntry]) -> Run:
    """Return changes by one author, newest first, as one."""
    files: dict[str, RecordedNote] = {}
    for part in parts:
        for file in part.files:
            # Parts come newest first: the first one tells how the file ended up, each older one how it was before.
            files[file.path] = RecordedNote(file.path, file.before, files.get(file.path, file).after)
    last, first = parts[0], parts[-1]
    what = first.paths[0] if len(files) == 1 else plural(len(files), "note")
    title = f"{who(last)} changed {what} {len(parts)} times since {dt.datetime.fromtimestamp(first.at):%H:%M}"
    # Where the changes cancelled each other, the last one stands for all.
    changed = tuple(file for file in files.values() if file.before != file.after) or last.files
    return Run(first.id, last.at, "done", OTHERS, title, changed, author=last.author, parts=tuple(parts))


def joined(entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
    """Yield changes, several by the same other program as one.

    They follow each other directly, and are of one note on one day, or of any notes within one minute.
    """
    runs: list[list[JournalEntry]] = []
    for entry in entries:
        last = runs[-1][-1] if runs else entry
        # If `entry` is by another program, so is one by the same author: `who` tells memory-tui from all others.
        near = day_of(last) == day_of(entry) and (last.paths == entry.paths or last.at // 60 == entry.at // 60)
        if runs and near and entry.kind == OTHERS and who(last) == who(entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    for run in runs:
        yield from [run_of(run)] if len(run) >= FEWEST else run


def listed(known: Past, chosen: str, opened: Container[str]) -> Iterator[JournalEntry]:
    """Yield the changes that a filter lets through, runs as one, and below those whose key is `opened` their parts."""
    for entry in joined(each for each in known.entries if fits(each, chosen)):
        yield entry
        if isinstance(entry, Run) and key_of(entry) in opened:
            yield from entry.parts


def day_of(entry: JournalEntry) -> dt.date:
    """Return the day of a change."""
    return dt.datetime.fromtimestamp(entry.at).date()


def key_of(entry: JournalEntry) -> str:
    """Return the id of an entry's row in the list, by which the cursor finds it again after the list was filled anew.

    A run has the number of its oldest change, so that its row keeps the id when newer changes join it.
    """
    return f"{'run' if isinstance(entry, Run) else entry.state} {entry.id}"


def by(entry: JournalEntry, made: Sequence[JournalEntry]) -> str:
    """Return who made a change: you, where it is among those `made` on this screen."""
    return "you" if any(each.id == entry.id for each in made) else who(entry)


def rows(
    known: Past, entries: Sequence[JournalEntry], width: int, made: Sequence[JournalEntry] = ()
) -> Iterator[Option]:
    """Yield the days, and below each its changes: when, what, and what became of it; those `made` here are "you"."""
    # The changes that are listed below their run, which are indented; equal entries are still two, so by identity.
    inside = {id(part) for run in entries if isinstance(run, Run) for part in run.parts}
    for day, changed in groupby(entries, day_of):
        yield Option(Content.styled(f" {day:%A} {day.day} {day:%B %Y}", "bold"), disabled=True)
        for entry in changed:
            time = f" {'  ' * (id(entry) in inside)}{dt.datetime.fromtimestamp(entry.at):%H:%M} "
            if entry.state == "draft":
                what, style = f"not written, kept: {entry.title}", "$warning"
            elif entry.kind == OTHERS:
                what = entry.title + ", enter lists them" * isinstance(entry, Run)
                style = "$warning" if any(file.after is None for file in entry.files) else "$accent"
            else:
                what = f"{by(entry, made)}: {entry.title}"
                # What was taken back is struck through.
                style = "$foreground-muted strike" if entry.id in known.redoable else ""
            # Wrapped and not cut, because neighbours may differ only at their ends.
            lines = Content.styled(one_line(what), style).wrap(max(20, width - len(time)))
            below = Content("\n" + " " * len(time)).join(lines)
            yield Option(Content.assemble((time, "$foreground-muted"), below), id=key_of(entry))
    others = [entry for entry in entries if entry.kind == OTHERS and id(entry) not in inside]
    if share := authors.unknown_share((entry.author, len(entry.files)) for entry in others):
        yield Option(Content.styled(f" {share}", "$foreground-muted"), disabled=True)
    if known.more:
        yield Option(Content.styled(" Older changes", "$foreground-muted"), id=_OLDER)


def what_changed(engine: Engine, entry: JournalEntry, width: int = 0, made: Sequence[JournalEntry] = ()) -> Content:
    """Return what a change did, in colours; for worker threads. Raises EditRefused where a text is gone."""
    reason = f"{entry.reason[:1].upper()}{entry.reason[1:]}.\n" if entry.reason else ""
    author = authors.sentence(entry.author) if entry.kind == OTHERS else f"By {by(entry, made)}."
    about = (safe(f"{reason}{author}\n", keep_newlines=True), "$foreground-muted")
    change = difference(engine.notes.curator.journal.change_of(entry), width)
    return Content.assemble((f"{one_line(entry.title)}\n", "bold"), about, change)


_MOST_OFFERED = 20


def versions(entry: JournalEntry, path: str) -> list[tuple[str, str]]:
    """Return the notes whose exact text of before can be brought back, each with words; an empty name is all notes."""
    if entry.state == "draft":
        return [(entry.paths[0], f"{entry.paths[0]} as you typed it, which was not written")]
    # In the history of one note only that is offered.
    files = [file for file in entry.files if file.path == path] or entry.files[:_MOST_OFFERED]
    were = ("exactly as it was", "goes, for it was not there")
    single = [(file.path, f"{file.path} {were[file.before is None]} before this") for file in files]
    return [("", f"all {len(entry.paths):,} notes exactly as before this"), *single] if len(entry.paths) > 1 else single


def steps(entry: JournalEntry, known: Past) -> Iterator[tuple[str, str]]:
    """Yield how a change alone can be undone or made again: which step, and its words."""
    if entry.id in known.redoable:
        yield "redo", "make this change again"
    elif entry.kind == OTHERS or entry.id in known.undoable:
        yield "back" if entry.kind == OTHERS else "undo", "take back this change alone; what came since stays"


class ChangePage(Page):
    """What a change did; the key that restores goes on from here."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("history")

    async def action_restore(self) -> None:
        """Close the page, and choose a text."""
        await self.dismiss()
        await self.app.query_one(HistoryView).action_restore()


class HistoryView(View):
    """Lists changes; beside the list is what the one under the cursor did."""

    NAME = "history"
    FOCUS = "#history-list"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("history"), *named("Filter", "notes.filter")]
    BINDINGS += named("All notes", "text.back")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.past = Past()
        """The record as it was read last."""
        self.path = ""
        """The note whose changes alone are listed; empty for all notes."""
        self.chosen, self.most = FILTERS[0], PAGE
        """The filter, and how many edits are read."""
        self.entries: list[JournalEntry] = []
        """What is listed, a row each."""
        self.opened: set[str] = set()
        """The runs whose changes are listed."""

    def compose(self) -> ComposeResult:
        """Lay out the list of changes, and beside it what one did."""
        with Horizontal(classes="panes"):
            yield Rows(id="history-list")
            with VerticalScroll(id="history-right", can_focus=True):
                yield Static(id="history-text", markup=False)

    def on_mount(self) -> None:
        """Show what the change under the cursor did."""
        self.watch(self.query_one(Rows), "highlighted", self.cursor_moved, init=False)

    def on_resize(self) -> None:
        """Fold rows and text anew."""
        if self.entries:
            self.call_after_refresh(self.show_rows)

    def on_show(self) -> None:
        """Read the journal when the view comes to the front; all of a note that is asked about."""
        if self.session.history_of not in ("", self.path):
            self.chosen = FILTERS[0]
        self.gather(came=True)

    def on_hide(self) -> None:
        """Show all notes when a person comes back by the key of this view."""
        self.session.history_of = ""

    def state_changed(self) -> None:
        """Read the journal when notes changed."""
        if self.display:
            self.gather()

    @work(thread=True, exclusive=True, group="past")
    def gather(self, *, came: bool = False) -> None:
        """Read the record and show it; then find out who made what is new, note that a person looked, and reread."""
        path, most = self.session.history_of, self.most

        def read(engine: Engine) -> Past:
            """Return the record, or what is wrong with it."""
            try:
                return engine.notes.past(path, most)
            except EditRefused as error:
                return Past(problem=f"{error.message} {error.next_step}")

        if (known := self.attempt(read)) is not None:
            self.call_later(self.gathered, known, path, came)
        if known is not None and (known.entries or not known.problem):
            # Called for what it writes down; the record is read again with the authors.
            self.attempt(lambda engine: engine.notes.viewed())
            self.call_later(self.gathered, self.attempt(read) or known, path, came)

    def gathered(self, past: Past, path: str, came: bool) -> None:
        """List the changes, unless they are those on the screen already; who `came` begins at new ones."""
        if past == self.past and path == self.path and self.past.entries:
            return
        # The newest change is another one: the cursor goes to the first row.
        if came and [each.id for each in past.entries[:1]] != [each.id for each in self.past.entries[:1]]:
            self.query_one(Rows).highlighted = None
        self.past, self.path = past, path
        self.show_rows()

    def show_rows(self) -> None:
        """List what the filter lets through."""
        shown = self.query_one(Rows)
        self.entries = list(listed(self.past, self.chosen, self.opened))
        shown.refill(rows(self.past, self.entries, shown.scrollable_content_region.width or 40, self.session.made))
        title = f"Changes of {one_line(self.path)} alone, esc shows all" if self.path else "What changed"
        shown.border_title = Content(title if self.chosen == FILTERS[0] else f"{title}, {self.chosen}")
        if not shown.option_count:
            self.query_one("#history-right").border_title = ""
            words = ("This note did not change yet; esc lists all." if self.path else "No note changed yet.") + _EMPTY
            if self.chosen != FILTERS[0]:
                words = f'No change passes the filter "{self.chosen}". f takes the next filter.'
            self.query_one("#history-text", Static).update(safe(self.past.problem or words, keep_newlines=True))

    @property
    def entry(self) -> JournalEntry | None:
        """Return what is under the cursor."""
        option = self.query_one(Rows).highlighted_option
        return next((entry for entry in self.entries if option is not None and key_of(entry) == option.id), None)

    def cursor_moved(self) -> None:
        """Work out what the change under the cursor did."""
        if self.entry is not None:
            self.compare(self.entry)

    @work(thread=True, exclusive=True, group="compare")
    def compare(self, entry: JournalEntry) -> None:
        """Compare the texts on a worker thread."""
        width = self.query_one("#history-right").scrollable_content_region.width
        if text := self.attempt(partial(what_changed, entry=entry, width=width, made=self.session.made)):
            self.call_later(self.compared, key_of(entry), text)

    def compared(self, key: str, text: Content) -> None:
        """Show what the change did."""
        if self.entry is not None and key_of(self.entry) == key:
            pane, rows = self.query_one("#history-right"), text.plain.count("\n") + 1
            pane.border_title = "What this changed" + ", enter shows all of it" * (rows > pane.size.height)
            self.query_one("#history-text", Static).update(text)
            pane.scroll_home(animate=False)

    @on(OptionList.OptionSelected)
    async def open_difference(self, event: OptionList.OptionSelected) -> None:
        """Show what the change did over the whole screen; of a run list its changes; the last row lists older ones."""
        if isinstance(self.entry, Run):
            self.opened ^= {key_of(self.entry)}
            self.show_rows()
        elif event.option_id == _OLDER:
            self.most *= 4
            self.gather()
        elif self.entry is not None:
            await changes.ahead(self, self.open_page(self.entry))

    async def open_page(self, entry: JournalEntry) -> None:
        """Show what a change did, wrapped for the page."""
        shown = partial(what_changed, entry=entry, width=dialog_width(self.app.size.width), made=self.session.made)
        if (text := await asyncio.to_thread(self.attempt, shown)) is not None:
            await self.app.push_screen(ChangePage("What this changed", text))

    async def action_restore(self) -> None:
        """Choose a text that a note had, and bring it back."""
        if (entry := self.entry) is None:
            self.notify("No change is under the cursor.", markup=False)
            return
        options = [(id_, one_line(words)) for id_, words in (*versions(entry, self.path), *steps(entry, self.past))]

        async def chosen(answer: str | None) -> None:
            """Propose what was chosen: a step, or the exact text of a note; None where the dialog was closed."""
            if answer in ("undo", "redo"):
                # Told apart for mypy, to which `answer` is any text.
                kind: Literal["undo", "redo"] = "redo" if answer == "redo" else "undo"
                await changes.take_back(self, kind, entry.id, lambda _: self.gather())
            elif answer == "back":
                await changes.propose(self, lambda curator: taken_back(curator, entry), then=lambda _: self.gather())
            elif answer is not None:
                # The name of a note; empty for all of the change.
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
