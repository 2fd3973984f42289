"""The note pane shows a note. It finds text in it and follows links back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError
from memory_tui.tui import note_info
from memory_tui.tui.note_page import MOST, Match, Page, find_in, head_of, line_after, make_page
from memory_tui.tui.state import Facts
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.file_tree import state_word
from memory_tui.tui.widgets.note_side import AboutPane
from memory_tui.tui.widgets.query import FindInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import PostPart, stop, task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.search.trace import ChunkRef, Trace


Go = Callable[[str, int | None], bool]
"""Shows the note of a path at a line; False where it cannot be shown here."""


class NotePane(Part):
    """The reader of a view with its find box, and what is known of the note beside it; `go_to` shows another note."""

    def __init__(self, view: View, go_to: Go, page_shown: Callable[[Page], None] = lambda _page: None) -> None:
        super().__init__(view)
        self._go_to, self._page_shown = go_to, page_shown
        self.reader = Reader(id="reader")
        self.about = AboutPane()
        """What is known of the note."""
        self._path = ""
        self._cited: tuple[int, int] | None = None
        self._line: int | None = None
        self._known: note_info.About | None = None
        self._generation = 0
        """The state of the index by which links to the note were looked for."""
        self._trail: list[tuple[str, int]] = []
        self._hit: tuple[Trace, str, tuple[int, int]] | None = None

    def compose(self) -> Iterable[Widget]:
        """The reader with its find box."""
        with Vertical(id="reading"):
            yield FindInput()
            yield self.reader
        yield self.about

    def context(self) -> dict[str, bool]:
        """What was found, and whether there is a way back."""
        return {
            "found": bool(self.reader.matches),
            "trail": bool(self._trail),
            "hit": self._hit is not None and self.shows(self._hit[1]) and self.reader.cited == self._hit[2],
            "foldable": self.reader.foldable,
        }

    def shows(self, path: str) -> bool:
        """Whether the note `path` is in the reader."""
        return self.reader.page is not None and self.reader.page.path == path

    def answers(self, asked: Trace, path: str, lines: tuple[int, int]) -> None:
        """The `lines` of a note are read as a hit of what was `asked`."""
        self._hit = asked, path, lines
        self.reader.answers(asked)

    # --- showing a note ------------------------------------------------------------------------------------------

    def read(self, path: str, *, line: int | None = None, cited: tuple[int, int] | None = None) -> None:
        """Ask for the note `path`, to be shown at `line` or at its `cited` lines.

        Without either it stays where it is, or goes where it was on its way to.
        """
        if path != self._path or line is not None or cited is not None:
            self._line, self._cited = line, cited
        self._path = path
        self._read(path)

    @task("page")
    async def _read(self, path: str) -> None:
        """Show the note; the head of a long one comes first."""
        engine = self.home.engine
        if engine is None:
            return
        try:
            async for page in self.home.jobs.parts(_pages(engine, path)):
                if page is not None and not self._wait_for(page):
                    self._show(page)
        except Cancelled:
            raise
        except MemoryTuiError as error:
            self.show_nothing(error.message, error.next_step)

    def show_nothing(self, sentence: str, next_step: str) -> None:
        """A sentence in place of the note, which nothing that is on its way replaces."""
        stop(self, "page")
        self._known = None
        self.about.show([])
        self.reader.show_sentences(sentence, next_step)
        self.view.update_hints()

    def _show(self, page: Page) -> None:
        reader = self.reader
        same = reader.page is not None and reader.page.path == page.path
        line = self._line
        if reader.page is not None and same and line is None and self._cited is None:
            line = line_after(reader.page.lines, page.lines, reader.cursor + 1) if page.whole else reader.cursor + 1
        if not same and self.view.focused is not self.view.query_one(FindInput):
            # What was looked for was looked for in the note before.
            self._close_find()
        reader.show(page, self._cited, line=line)
        if page.whole:
            self._line = self._cited = None
        if page.notice:
            self.view.show_message(f"{page.path}: {page.notice}.")
        self._find_again()
        self._describe(page)
        self._page_shown(page)
        self.view.update_hints()

    def _wait_for(self, page: Page) -> bool:
        """Whether the line to go to, or the one under the cursor, is not in the head of a long note."""
        line = self._line or (self._cited[1] if self._cited else 0)
        if not line and self.reader.page is not None and self.reader.page.path == page.path:
            line = self.reader.cursor + 1
        return not page.whole and line > len(page.lines)

    def _describe(self, page: Page) -> None:
        """Tell what is known of the note in the reader, first without a look at other files."""
        self.about.show(self._own_facts(page))
        if page.whole:
            self._gather_about(page)

    @task("about")
    async def _gather_about(self, page: Page) -> None:
        here = self.home.recalled.lines(page.path)
        self._generation = self.home.facts.status.generation if self.home.facts is not None else 0
        reply = await self.home.jobs.attempt(partial(note_info.gather, page=page, here=here))
        if isinstance(reply, MemoryTuiError):
            self.about.show([*self._own_facts(page), note_info.Statement("more", reply.message, "bad")])
            return
        self._known = reply
        self.reader.annotate(recalled=reply.recalled, unread=reply.unread, rules=reply.rules)
        self.about.show([*self._own_facts(page), *reply.rows])

    def facts_changed(self, facts: Facts, /) -> None:
        """State, age and size of the note that is shown may be other ones now, and the links of notes to it."""
        page = self.reader.page
        if page is not None:
            seen = self._known.rows if self._known is not None and self._known.path == page.path else ()
            self.about.show([*self._own_facts(page), *seen])
            if page.whole and facts.status.generation != self._generation:
                self._gather_about(page)

    def resumed(self) -> None:
        """Questions may have been asked meanwhile."""
        page = self.reader.page
        if page is not None and page.whole and self.home.engine is not None:
            self._describe(page)

    def _own_facts(self, page: Page) -> list[note_info.Statement]:
        facts = self.home.facts
        file = next((row for row in facts.rows if row.path == page.path), None) if facts else None
        # After the end of the last line nothing is a line.
        lines = len(page.lines) - (not page.lines[-1]) if page.lines else 0
        return note_info.of_file(file, facts.aging, lines, state_word(file)) if facts and file else []

    def do_about(self) -> None:
        """Go to what is known of the note; on a narrow screen it takes the reader's place."""
        self.view.add_class("-asked")
        self.home.key_queue.when_drawn(self.about.focus)

    def leave_about(self) -> bool:
        """Back from what is known of the note to the note."""
        if self.view.focused is not self.about:
            return False
        self.view.remove_class("-asked")
        self.reader.focus()
        return True

    def chosen(self, rows: RowList, /) -> None:
        """Follow the link under the cursor, or unfold what begins there."""
        if rows is self.about and self.about.target is not None:
            self.view.remove_class("-asked")
            self.follow(*self.about.target)
        elif rows is self.about:
            self.view.show_message("This row leads nowhere. Rows with an arrow lead to a note.")
        elif rows is self.reader and not self.reader.toggle_fold():
            self._follow_line()

    def _follow_line(self) -> None:
        leads = self._known.links.get(self.reader.cursor + 1, ()) if self._known else ()
        if not leads:
            self.view.show_message("There is no link in this line.")
        elif len(set(leads)) == 1:
            self.follow(*leads[0])
        else:
            self._choose_link(dict(leads))

    def _choose_link(self, leads: dict[str, int]) -> None:
        from memory_tui.tui.views.dialogs import Picker

        Picker("Follow which link?", list(leads)).ask(self.view.app, lambda path: self.follow(path, leads[path]))

    def moved(self, rows: RowList, /) -> None:
        """Another line is under the cursor."""
        if rows is self.reader:
            self.view.update_hints()

    # --- looking for text ----------------------------------------------------------------------------------------

    def do_find(self) -> None:
        """Open the find box."""
        box = self.view.query_one(FindInput)
        box.display = True
        box.focus()

    def typed(self, box: Input, /) -> None:
        """Find what stands in the find box."""
        if box.id == "find":
            self._find_again()

    def _find_again(self) -> None:
        text, page = self.view.query_one(FindInput).value, self.reader.page
        if not text or page is None:
            self.reader.found(())
            self.view.update_hints()
            return

        self._find(page, text)

    @task("find")
    async def _find(self, page: Page, text: str) -> None:
        self._found(await self.home.jobs.run(lambda _engine: find_in(page.lines, text)))

    def _found(self, matches: list[Match]) -> None:
        """Mark what was found."""
        self.reader.found(matches)
        if self.view.focused is self.view.query_one(FindInput):
            places = "1 place" if len(matches) == 1 else f"{len(matches):,} places"
            most = "The first " if len(matches) == MOST else ""
            self.view.show_message(
                f"{most}{places} in this note."
                if matches
                else f'"{self.view.query_one(FindInput).value}" is not in this note.'
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
            self.view.show_message(f"Match {at} of {len(self.reader.matches):,}.")

    def leave_text(self) -> bool:
        """Drop marked lines, then what was found; False when there was neither."""
        box = self.view.query_one(FindInput)
        if self.reader.drop_selection():
            return True
        if not box.display:
            return False
        self._close_find()
        self.reader.focus()
        return True

    def _close_find(self) -> None:
        box = self.view.query_one(FindInput)
        box.value = ""
        box.display = False

    # --- along links ---------------------------------------------------------------------------------------------

    def follow(self, path: str, line: int | None = None) -> None:
        """Go to a note and remember the way back."""
        here = self.reader.page
        at = (here.path, self.reader.cursor + 1) if here is not None else None
        if self._go_to(path, line):
            if at is not None:
                self._trail.append(at)
            self.reader.focus()
        else:
            self.view.show_message(f"{path} is not among the notes.")
        self.view.update_hints()

    def do_return(self) -> None:
        """Back to where a link was followed."""
        if self._trail:
            path, line = self._trail.pop()
            self._go_to(path, line)

    def do_pick(self) -> None:
        """Open a note by a few letters."""
        from memory_tui.tui.views.dialogs import Picker

        rows = self.home.facts.rows if self.home.facts else ()
        Picker("Open a note", [row.path for row in rows]).ask(self.view.app, self.follow)

    # --- where the user is ---------------------------------------------------------------------------------------

    def edited(self, path: str, line: int) -> None:
        """Show a note that was edited on screen as it is now."""
        self.read(path, line=line)

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The marked lines, the cited ones, or the chunk under the cursor."""
        return self.reader.citation

    def line_in_note(self) -> int:
        """The line under the cursor."""
        return max(0, self.reader.cursor) + 1

    def text_in_note(self) -> str:
        """The text of the place."""
        place = self.place_in_note()
        return self.reader.text_of(place[1], place[2]) if place else ""


def _pages(engine: Engine, path: str) -> Callable[[PostPart], Page]:
    """Reads a note; tells the head of a long one, and returns all of it. Raises MemoryTuiError."""

    def run(post: PostPart) -> Page:
        document = engine.notes.read(path)
        post(head_of(document))
        return make_page(document, _chunks(engine, path))

    return run


def _chunks(engine: Engine, path: str) -> Sequence[ChunkRef]:
    """The chunks of a note; none while there is no index to ask, because the note can be read all the same."""
    try:
        return engine.search.chunks_of(path)
    except IndexUnavailable:
        return ()
