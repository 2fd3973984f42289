"""The note pane shows notes, finds text in them, follows links back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.core.errors import MemoryTuiError
from memory_tui.tui import note_info
from memory_tui.tui.keymap import bindings
from memory_tui.tui.note_page import MOST, Match, Page, find_in
from memory_tui.tui.state import Facts
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.file_tree import state_word
from memory_tui.tui.widgets.note_side import AboutPane
from memory_tui.tui.widgets.query import FindInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

BROAD = 116
"""Columns from which on there is room beside the reader."""


class NoteView(View):
    """A view that shows a note; subclasses say which, in `go_to`."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("reading"))
    MORE_PLACES = ("notes", "reading")

    def __init__(self) -> None:
        super().__init__()
        self._request = 0
        self._asked_for = ""
        self._cited: tuple[int, int] | None = None
        self._line: int | None = None
        self.told: note_info.About | None = None
        self._trail: list[tuple[str, int]] = []

    def compose_reader(self) -> Iterable[Widget]:
        """The reader with its find box."""
        with Vertical(id="reading"):
            yield FindInput()
            yield Reader(id="reader")
        yield AboutPane()

    @property
    def reader(self) -> Reader:
        """The reader."""
        return self.query_one(Reader)

    def more_context(self) -> dict[str, bool]:
        """What was found, and whether there is a way back."""
        return {"found": bool(self.reader.matches), "trail": bool(self._trail)}

    # --- showing a note ------------------------------------------------------------------------------------------

    def read(self, path: str, *, line: int | None = None, cited: tuple[int, int] | None = None) -> None:
        """Ask for the note `path`, to be shown at `line` or at its `cited` lines.

        Without either it stays where it is, or goes where it was on its way to.
        """
        if path != self._asked_for or line is not None or cited is not None:
            self._line, self._cited = line, cited
        self._asked_for = path
        self._request = self.home.jobs.read(path)

    def page_came(self, number: int, page: Page | None, error: MemoryTuiError | None) -> None:
        """Show the note that was asked for; the head of a long one comes first."""
        if number != self._request:
            return
        reader = self.reader
        if page is None:
            self.told = None
            self.query_one(AboutPane).show([])
            reader.say(error.message if error else "", error.next_step if error else "")
            self.update_hints()
            return
        if self._wait_for(page):
            return
        same = reader.page is not None and reader.page.path == page.path
        line = reader.cursor + 1 if same and self._line is None and self._cited is None else self._line
        reader.show(page, self._cited, line=line)
        if page.whole:
            self._line = self._cited = None
        if page.notice:
            self.say(f"{page.path}: {page.notice}.")
        self._find_again()
        self.page_shown(page)
        self.update_hints()

    def _wait_for(self, page: Page) -> bool:
        """Whether the line to go to is not in the head of a long note."""
        line = self._line or (self._cited[1] if self._cited else 0)
        return not page.whole and line > len(page.lines)

    def page_shown(self, page: Page) -> None:
        """Tell what is known of the note in the reader, first without a look at other files."""
        self.query_one(AboutPane).show(self._own_facts(page))
        if page.whole:
            here = self.home.recalled.lines(page.path)
            self.run("about", partial(note_info.gather, page=page, here=here), self._about_came, self._nothing_known)

    def facts_changed(self, _facts: Facts, /) -> None:
        """State, age and size of the note that is shown may be other ones now."""
        page = self.reader.page
        if page is not None:
            told = self.told.rows if self.told is not None and self.told.path == page.path else ()
            self.query_one(AboutPane).show([*self._own_facts(page), *told])

    def on_screen_resume(self) -> None:
        """Questions may have been asked meanwhile."""
        super().on_screen_resume()
        page = self.reader.page
        if page is not None and page.whole and self.home.engine is not None:
            self.page_shown(page)

    def _own_facts(self, page: Page) -> list[note_info.Statement]:
        facts = self.home.facts
        file = next((row for row in facts.rows if row.path == page.path), None) if facts else None
        return note_info.of_file(file, facts.aging, len(page.lines), state_word(file)) if facts and file else []

    def _nothing_known(self, error: MemoryTuiError) -> None:
        page = self.reader.page
        if page is not None:
            self.query_one(AboutPane).show([*self._own_facts(page), note_info.Statement("more", error.message, "bad")])

    def _about_came(self, told: note_info.About) -> None:
        page = self.reader.page
        if page is not None and page.path == told.path:
            self.told = told
            self.reader.annotate(recalled=told.recalled, unread=told.unread, rules=told.rules)
            self.query_one(AboutPane).show([*self._own_facts(page), *told.rows])

    def on_resize(self, event: events.Resize) -> None:
        """Where the screen is broad, what is known of the note stands beside it."""
        self.set_class(event.size.width >= BROAD, "-broad")

    def do_about(self) -> None:
        """Go to what is known of the note; on a narrow screen it takes the reader's place."""
        self.add_class("-asked")
        self.home.typed_ahead.when_drawn(self.query_one(AboutPane).focus)

    def leave_about(self) -> bool:
        """Back from what is known of the note to the note."""
        if self.focused is not self.query_one(AboutPane):
            return False
        self.remove_class("-asked")
        self.reader.focus()
        return True

    @on(RowList.Chosen, "#about")
    def _link_chosen(self) -> None:
        target = self.query_one(AboutPane).target
        if target is not None:
            self.remove_class("-asked")
            self.follow(*target)

    @on(RowList.Chosen, "#reader")
    def _line_chosen(self) -> None:
        leads = self.told.links.get(self.reader.cursor + 1, ()) if self.told else ()
        if not leads:
            self.say("There is no link in this line.")
        elif len(set(leads)) == 1:
            self.follow(*leads[0])
        else:
            self._choose_link(dict(leads))

    def _choose_link(self, leads: dict[str, int]) -> None:
        from memory_tui.tui.views.dialogs import Picker

        def go(path: str | None) -> None:
            if path is not None:
                self.follow(path, leads[path])

        self.app.push_screen(Picker("Follow which link?", list(leads)), go)

    @on(RowList.Moved, "#reader")
    def _reader_moved(self) -> None:
        self.update_hints()

    # --- looking for text ----------------------------------------------------------------------------------------

    def do_find(self) -> None:
        """Open the find box."""
        box = self.query_one(FindInput)
        box.display = True
        box.focus()

    @on(Input.Changed, "#find")
    def _find_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._find_again()

    def _find_again(self) -> None:
        text, page = self.query_one(FindInput).value, self.reader.page
        if not text or page is None:
            self.reader.found(())
            self.update_hints()
            return

        def find(_engine: Engine) -> list[Match]:
            return find_in(page.lines, text)

        self.run("find", find, self._found)

    def _found(self, matches: list[Match]) -> None:
        """Mark what was found."""
        self.reader.found(matches)
        if self.focused is self.query_one(FindInput):
            places = "1 place" if len(matches) == 1 else f"{len(matches):,} places"
            most = "The first " if len(matches) == MOST else ""
            self.say(
                f"{most}{places} in this note."
                if matches
                else f'"{self.query_one(FindInput).value}" is not in this note.'
            )

    def do_to_text(self) -> None:
        """From the find box to the text."""
        self.reader.focus()

    def do_next_match(self) -> None:
        """The next match."""
        self._match(1)

    def do_previous_match(self) -> None:
        """The match before."""
        self._match(-1)

    def _match(self, direction: int) -> None:
        at = self.reader.to_match(direction)
        if at:
            self.say(f"Match {at} of {len(self.reader.matches):,}.")

    def leave_text(self) -> bool:
        """Drop marked lines, then what was found; False when there was neither."""
        box = self.query_one(FindInput)
        if self.reader.drop_selection():
            return True
        if not box.display:
            return False
        box.value = ""
        box.display = False
        self.reader.focus()
        return True

    # --- along links ---------------------------------------------------------------------------------------------

    def go_to(self, path: str, line: int | None = None) -> bool:
        """Show the note `path` at `line`; False when it cannot be shown here."""
        raise NotImplementedError

    def follow(self, path: str, line: int | None = None) -> None:
        """Go to a note and remember the way back."""
        here = self.reader.page
        at = (here.path, self.reader.cursor + 1) if here is not None else None
        if self.go_to(path, line):
            if at is not None:
                self._trail.append(at)
            self.reader.focus()
        else:
            self.say(f"{path} is not among the notes.")
        self.update_hints()

    def do_return(self) -> None:
        """Back to where a link was followed."""
        if self._trail:
            path, line = self._trail.pop()
            self.go_to(path, line)

    def do_pick(self) -> None:
        """Open a note by a few letters."""
        from memory_tui.tui.views.dialogs import Picker

        def go(path: str | None) -> None:
            if path is not None:
                self.follow(path)

        rows = self.home.facts.rows if self.home.facts else ()
        self.app.push_screen(Picker("Open a note", [row.path for row in rows]), go)

    # --- where the user is ---------------------------------------------------------------------------------------

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The marked lines, the cited ones, or the chunk under the cursor."""
        return self.reader.place

    def line_in_note(self) -> int:
        """The line under the cursor."""
        return max(0, self.reader.cursor) + 1

    def text_in_note(self) -> str:
        """The text of the place."""
        place = self.place_in_note()
        return self.reader.text_of(place[1], place[2]) if place else ""

    @property
    def note_title(self) -> Content:
        """The name of the note that is shown."""
        return Content(self.reader.page.path if self.reader.page else "")
