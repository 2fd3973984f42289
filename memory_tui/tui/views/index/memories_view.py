"""The memories view lists long-term memories in LanceDB, and searches them with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on

from memory_tui.backends.lancedb import MemoryEntry, TableMissing
from memory_tui.backends.memories import CATEGORIES
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui import note_changes
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.backends.memories import EntryHit, Memories
    from memory_tui.engine.engine import Engine

PAGE = 200
"""Entries that are read at once."""
_NUMBERS = 23
"""Cells of day, importance and score."""
_CATEGORY = 11


class ShownMemories(Struct, frozen=True):
    """What a worker read: a page, or hits and misses of a query."""

    place: str
    writable: bool
    total: int
    entries: tuple[MemoryEntry, ...] = ()
    hits: tuple[EntryHit, ...] = ()
    misses: tuple[EntryHit, ...] = ()

    def find(self, key: object) -> MemoryEntry | None:
        """The entry with the id `key`, wherever it stands."""
        every = [*self.entries, *(row.entry for row in (*self.hits, *self.misses))]
        return next((row for row in every if row.id == key), None)


class MemoriesView(View):
    """The entries of one table; u undoes the last change."""

    PLACE = "memories"

    def __init__(self, below: View) -> None:
        super().__init__(below)
        self._query, self._letters, self._category = "", "", ""
        self._limit, self._open = PAGE, ""
        self.listing = Listing(
            self,
            title="Long-term memories",
            waiting="loading LanceDB ...",
            gather=self._gather,
            lines=self._lines,
        )
        self.parts = (self.listing,)

    # --- what is shown -----------------------------------------------------------------------------------------------

    def _gather(self, engine: Engine) -> ShownMemories:
        """Read what is asked for now; on a worker thread."""
        memories = engine.memories
        place = memories.location.label
        try:
            entries = memories.table().entries()
        except TableMissing:
            return ShownMemories(place, True, 0)
        drawn = partial(ShownMemories, place, memories.writable, len(entries))
        if self._query:
            reply = memories.search(self._query, category=self._category)
            return drawn(hits=reply.hits, misses=reply.misses)
        fitting = [row for row in entries if self._category in ("", row.category)]
        return drawn(tuple(sorted(fitting, key=lambda row: row.created_at, reverse=True)[: self._limit]))

    def _summary(self, found: ShownMemories) -> str:
        words = [plural(found.total, "entry"), *((self._category,) if self._category else ())]
        return ", ".join([*words, *(() if found.writable else ("only read",))])

    def _lines(self, found: ShownMemories, width: int) -> list[Line]:
        lines = list(text(f"{self._summary(found)}: {one_line(found.place, 200)}", width, "muted"))
        if not found.total:
            lines += text("There are no memories here yet.", width, "strong")
            return [*lines, *text('memory-tui ltm store "TEXT" stores the first one.', width, "muted")]
        if self._query:
            return [*lines, *self._answer(found, width)]
        chosen = [row for row in found.entries if self._letters.casefold() in row.text.casefold()]
        for row in chosen:
            lines += self._entry(row, width)
        if not chosen:
            lines += text(f"No entry holds “{one_line(self._letters, 40)}”; esc shows all.", width, "muted")
        if len(found.entries) == self._limit:
            lines.append(([(" older entries: enter reads them", "muted")], "older"))
        return lines

    def _answer(self, found: ShownMemories, width: int) -> Iterator[Line]:
        yield from text(f"for: {one_line(self._query, 200)}", width, "strong")
        for hit in found.hits:
            yield from self._entry(hit.entry, width, f"{hit.score:.3f}")
            if hit.entry.id == self._open:
                yield from text(f"distance {hit.distance:.4f}; score 1/(1 + distance)", width, "muted", 3)
        if not found.hits:
            yield from text("No entry is near enough.", width, "strong")
        if found.misses:
            yield from text("Not in the answer:", width, "muted")
        for miss in found.misses:
            yield from self._entry(miss.entry, width, f"{miss.score:.3f}")
            yield from text(miss.why_not, width, "warn", 3)

    def _entry(self, one: MemoryEntry, width: int, score: str = "") -> Iterator[Line]:
        numbers = f" {one.day} {one.importance:>4.1f} {score}"
        pieces: list[Piece] = [(fit(numbers, _NUMBERS), "muted"), (fit(one.category, _CATEGORY), "mark")]
        yield [*pieces, (fit(one_line(one.text), max(10, width - _NUMBERS - _CATEGORY - 1)), "")], one.id
        if one.id == self._open:
            for line in safe(one.text, keep_newlines=True).split("\n"):
                yield from text(line, width, "", 3)
            yield from text(one.id, width, "muted", 3)

    @property
    def entry(self) -> MemoryEntry | None:
        """The entry under the cursor; where there is none, that is said."""
        reply = self.listing.found
        row = reply.find(self.listing.rows.key) if reply is not None else None
        if row is None:
            self.show_message("No entry is under the cursor.")
        return row

    # --- looking -----------------------------------------------------------------------------------------------------

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Show the whole text under the cursor, or less of it again; read older entries."""
        if self.listing.rows.key == "older":
            self._limit += PAGE
            self.listing.do_again()
        elif (row := self.entry) is not None:
            self._open = "" if self._open == row.id else row.id
            self.listing.show()

    def do_search_entries(self) -> None:
        """Ask for a query, and rank the entries by it."""
        from memory_tui.tui.views.dialogs import Prompt

        def take(query: str) -> None:
            self._query = query.strip()
            self.listing.do_again()

        Prompt("Search the memories", "what they should say", self._query).ask(self.app, take)

    def do_filter(self) -> None:
        """Ask for letters, and list only entries that hold them."""
        from memory_tui.tui.views.dialogs import Prompt

        def take(letters: str) -> None:
            self._letters = letters
            self.listing.show()

        Prompt("Show which entries?", "letters that they hold", self._letters).ask(self.app, take)

    def do_next_category(self) -> None:
        """List the next category alone."""
        self._turn_category(1)

    def do_previous_category(self) -> None:
        """List the category before alone."""
        self._turn_category(-1)

    def _turn_category(self, step: int) -> None:
        names = ("", *CATEGORIES)
        self._category = names[(names.index(self._category) + step) % len(names)]
        self.show_message(f"Category: {self._category or 'all'}.")
        self.listing.do_again()

    def back(self) -> bool:
        """All entries again, else back to the view below."""
        if not (self._query or self._letters or self._category):
            return super().back()
        self._query, self._letters, self._category = "", "", ""
        self.listing.do_again()
        return True

    # --- changing ----------------------------------------------------------------------------------------------------

    def do_forget(self) -> None:
        """Delete the entry under the cursor."""
        row = self.entry
        if row is not None:
            self._agreed(lambda memories: memories.forget([row.id]), f"Forgotten; {key_of('undo')} undoes it.")

    def do_undo(self) -> None:
        """Undo the last change of entries."""
        self._agreed(lambda memories: memories.undo(), "Undone.")

    def _agreed(self, work: Callable[[Memories], object], said: str) -> None:
        """Do `work`, once a person has agreed that memory-tui writes this table."""
        reply = self.listing.found
        if reply is None:
            return
        if reply.writable:
            self._write(work, said)
            return
        from memory_tui.tui.views.dialogs import Confirm

        question = f"memory-tui has only read {one_line(reply.place, 200)} so far. Each change can be undone."
        Confirm("Write these memories?", question, "Agree").ask(
            self.app, lambda _yes: self._write(work, said, approve=True)
        )

    @task("write", exclusive=False)
    async def _write(self, work: Callable[[Memories], object], said: str, approve: bool = False) -> None:
        def run(engine: Engine) -> None:
            if approve:
                engine.memories.approve("screen")
            work(engine.memories)

        await self.home.jobs.write(run)
        self.show_message(said)
        self.listing.do_again()

    @task("plan")
    async def do_promote(self) -> None:
        """Show the line of MEMORY.md that this entry would be, write it, then ask whether to forget the entry."""
        from memory_tui.notes.promote import Spot
        from memory_tui.tui.views.dialogs import Preview

        row = self.entry
        if row is None:
            return
        spot = Spot(f"LanceDB {row.id[:8]}", f"- {' '.join(row.text.split())}\n".encode("utf-8", "replace"), 1, 1)
        planned = await self.home.jobs.run(lambda engine: note_changes.planned(engine.notes.curator.plan.promote(spot)))

        Preview(planned, "Promote").ask(
            self.app, lambda _yes: self._promoted(row, partial(note_changes.applied, change=planned.change))
        )

    @task("write", exclusive=False)
    async def _promoted(self, one: MemoryEntry, apply: Callable[[Engine], object]) -> None:
        from memory_tui.tui.views.dialogs import Confirm

        await self.home.jobs.write(apply)
        self.home.jobs.refresh()

        def answered(yes: bool | None) -> None:
            if yes:
                self._agreed(
                    lambda memories: memories.forget([one.id]),
                    f"Promoted and forgotten; {key_of('undo')} brings it back.",
                )
            else:
                self.show_message("Promoted; the entry stays.")

        question = f"It is in MEMORY.md now:\n\n{one_line(one.text, 200)}"
        self.app.push_screen(Confirm("Forget the entry, too?", question, "Forget"), answered)
