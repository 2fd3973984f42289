"""View 5 is the map of the memory. It shows days and recalls."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.cells import cell_len
from textual import on
from textual.containers import Horizontal
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import age_words, plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import Part, View, sentence_of
from memory_tui.tui.widgets.calendar import Calendar
from memory_tui.tui.widgets.memory_map import FORGOTTEN_DAYS, LAYERS, OFTEN, MemoryMap, gathered
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileRow
    from memory_tui.tui.state import Facts

NO_RECALL = f"No recall is recorded yet: ask with {key_of('ask')}, or memory-tui connect HOST has an agent ask."
NOT_RECORDED = "Recalls are not recorded here: recall.marks is off."
LEAST_TITLE = 8


class CandidateActions(Part):
    """Archives or promotes logs of the lists, those that are marked or the one under the cursor: one difference."""

    def __init__(self, view: MapView, changes: Proposals) -> None:
        super().__init__(view)
        self._map, self._changes = view, changes

    def do_move(self) -> None:
        """Show what the archive would get, and move it when that is wanted."""
        chosen = frozenset(self._map.chosen_logs(self._map.forgotten))
        if chosen:
            self._changes.propose(lambda curator: curator.plan.archive(FORGOTTEN_DAYS, chosen))

    def do_promote(self) -> None:
        """Show what MEMORY.md would get, and copy it when that is wanted."""
        reply, chosen = self._map.found, self._map.chosen_logs(self._map.often)
        if reply is not None and chosen:
            places = [place for path in chosen for place in reply.recalled_often(path)]
            self._changes.propose(lambda curator: curator.plan.promote_all(places))


class MapView(View):
    """The calendar, with the notes of a month where there is room, above two lists of candidates."""

    PLACE = "map"
    MORE_PLACES = ("candidates",)
    AUTO_FOCUS = "#calendar"

    def __init__(self) -> None:
        super().__init__()
        changes = Proposals(self, self._drop_marks)
        self.parts = (CandidateActions(self, changes), changes)
        self.forgotten = Rows(id="forgotten", places=("candidates", "list"), marks=True)
        self.often = Rows(id="often", places=("candidates", "list"), marks=True)
        self.month = Rows(id="month")
        self.found: MemoryMap | None = None
        self._layer = "recalled"

    def compose_view(self) -> Iterable[Widget]:
        """Compose the calendar and the lists."""
        with Horizontal(id="days"):
            yield Calendar()
            yield self.month
        with self.panes():
            yield self.forgotten
            yield self.often

    def on_mount(self) -> None:
        """Count what is known."""
        super().on_mount()
        self._list()
        self.recount()

    def update_hints(self) -> None:
        """What is done with rows is hinted at in the lists, and elsewhere only while rows are marked."""
        listed = self.focused in (self.forgotten, self.often) or self.forgotten.marks or self.often.marks
        self.unhinted = frozenset() if listed else frozenset(self.MORE_PLACES)
        super().update_hints()

    def on_screen_resume(self) -> None:
        """Recalls may have come meanwhile."""
        self.recount()

    def facts_changed(self, facts: Facts, /) -> None:
        """Notes may be other ones now."""
        if self.found is None or self.found.notes is not facts.rows:
            self.recount()

    def recount(self) -> None:
        """Count again."""
        facts = self.home.facts
        if facts is not None and self.home.engine is not None and self.is_current:
            self._gather(facts.rows, facts)

    @task("map")
    async def _gather(self, rows: Sequence[FileRow], facts: Facts) -> None:
        reply = await self.home.jobs.attempt(gathered(rows, facts.today))
        if isinstance(reply, MemoryTuiError):
            self.show_message(sentence_of(reply))
            return
        if self.found is not None:
            reply = replace(reply, findings=self.found.findings)
        self.found = reply
        self._show_layer()
        self._list()

    # --- layers and pictures -------------------------------------------------------------------------------------

    @property
    def _next_layer(self) -> str:
        """What the calendar counts next."""
        order = list(LAYERS)
        return order[(order.index(self._layer) + 1) % len(order)]

    def _show_layer(self) -> None:
        if self.found is not None:
            self.query_one(Calendar).show(self.found, self._layer, self._next_layer)

    def do_layer(self) -> None:
        """Count the next thing in the calendar."""
        self._layer = self._next_layer
        if self.found is None:
            return
        if self._layer == "findings" and self.found.findings is None:
            self._examine()
        self._show_layer()

    @task("findings")
    async def _examine(self) -> None:
        self.show_message("Looking through the notes for findings ...")
        reply = await self.home.jobs.attempt(_findings)
        if isinstance(reply, MemoryTuiError):
            self.show_message(sentence_of(reply))
        elif self.found is not None:
            self.found = replace(self.found, findings=reply)
            self._show_layer()
            self.show_message(f"{plural(sum(reply.values()), 'finding')}; {key_of('view 4')} opens the inbox.")

    # --- candidates ----------------------------------------------------------------------------------------------

    def _list(self) -> None:
        forgotten, often = (self.found.forgotten, self.found.often) if self.found else ([], [])
        for rows, notes in ((self.forgotten, forgotten), (self.often, often)):
            rows.marks.keep([note.path for note in notes])
        self.forgotten.show(
            partial(self._forgotten_lines, forgotten),
            self.forgotten.marks.beside(f"{self.found.unrecalled}: {len(forgotten)}" if self.found else ""),
            f"{key_of('mark')} marks, {key_of('move')} archives",
        )
        self.often.show(
            partial(self._often_lines, often),
            self.often.marks.beside(f"Recalled often, only in a log: {len(often)}"),
            f"{key_of('mark')} marks, {key_of('promote')} promotes",
        )
        self.update_hints()

    @on(RowList.Marked, "#forgotten, #often")
    def _say_marks(self) -> None:
        self._list()

    def _drop_marks(self) -> bool:
        """Take the marks of both lists away; whether there were any."""
        dropped = [rows.marks.drop() for rows in (self.forgotten, self.often)]
        return any(dropped)

    def _forgotten_lines(self, notes: Sequence[FileRow], width: int) -> list[Line]:
        reply = self.found
        if reply is None:
            return text("Reading the records of recalls ...", width, "muted")
        if not notes:
            return text(
                f"Every daily log older than {FORGOTTEN_DAYS} days was recalled since, or there is none.", width
            )
        if reply.activity.since is None:
            engine = self.home.engine
            records = engine is not None and engine.plan.settings.on("recall.marks")
            lead = text(NO_RECALL if records else NOT_RECORDED, width, "muted")
        else:
            lead = text(f"Recalls are recorded since {reply.activity.since}.", width, "muted")
        return [
            *lead,
            *(
                (
                    [
                        *_named(note, width - 18),
                        (f" {age_words((reply.today - note.day).days if note.day else None):>11}", "muted"),
                    ],
                    note.path,
                )
                for note in notes
            ),
        ]

    def _often_lines(self, notes: Sequence[FileRow], width: int) -> list[Line]:
        reply = self.found
        if reply is None:
            return []
        if not notes:
            words = (
                f"No daily log that MEMORY.md has nothing of was recalled {OFTEN} times. What is recalled often "
                f"belongs there: {key_of('promote')} promotes it."
            )
            return text(words, width, "muted")
        return [
            (
                [
                    *_named(note, width - 18),
                    (f" {plural(reply.activity.count(note.path), 'recall'):>11}", "muted"),
                ],
                note.path,
            )
            for note in notes
        ]

    def chosen_logs(self, rows: Rows) -> list[str]:
        """The logs that are marked in `rows`, else the one under the cursor there; says so where there is none."""
        key = rows.key if self.focused is rows else None
        chosen = sorted(map(str, rows.marks.those)) or [key for key in (key,) if isinstance(key, str)]
        if not chosen:
            title = str(rows.border_title).partition(":")[0]
            self.show_message(f"No log is chosen: {key_of('mark')} marks one of “{title}”, {key_of('mark all')} all.")
        return chosen

    @on(Calendar.Moved)
    def _list_month(self) -> None:
        """List the notes of the month under the cursor, and go to the first one of its day."""
        reply, day = self.found, self.query_one(Calendar).day
        if reply is None or day is None:
            return
        days = sorted(each for each in reply.days if (each.year, each.month) == (day.year, day.month))
        notes = [(each, note) for each in days for note in reply.days[each]]
        self.month.show(partial(self._month_lines, notes, day), f"{day:%B %Y}: {plural(len(notes), 'note')}")
        at = next((row for row, (each, _note) in enumerate(notes) if each == day), None)
        if at is not None:
            self.month.cursor = at

    def _month_lines(self, notes: Sequence[tuple[dt.date, FileRow]], day: dt.date, width: int) -> list[Line]:
        reply = self.found
        if reply is None or not notes:
            return text("No note has this month in its name.", width, "muted")
        return [
            (
                [
                    (f" {each:%a} {each.day:>2}  ", "strong" if each == day else "muted"),
                    (fit(one_line(note.title) or safe(note.path), width - 29), "strong" if each == day else ""),
                    (f" {plural(reply.activity.count(note.path), 'recall'):>10} {note.size / 1000:>5.1f} KB", "muted"),
                ],
                note.path,
            )
            for each, note in notes
        ]

    @on(RowList.Chosen, "#forgotten, #often, #month")
    def _read_candidate(self, event: RowList.Chosen) -> None:
        if isinstance(event.rows.key, str):
            self.read_note(event.rows.key, (1, 1))

    @on(Calendar.Opened)
    def _read_day(self, event: Calendar.Opened) -> None:
        from memory_tui.tui.views.dialogs import Picker

        def chosen(path: str | None) -> None:
            if path:
                self.read_note(path, (1, 1))

        paths = [note.path for note in event.notes]
        if len(paths) == 1:
            chosen(paths[0])
        else:
            self.app.push_screen(Picker("Read which note of this day?", paths), chosen)

    @on(Calendar.Empty)
    def _no_note(self) -> None:
        self.show_message(
            f"No note has this day in its name. {key_of('one before')} and {key_of('one after')} go by months."
        )

    @on(Calendar.Uncounted)
    def _none_counted(self) -> None:
        self.show_message(f"No day has any: {LAYERS[self._layer]}. {key_of('show layer')} counts something else.")

    def back(self) -> bool:
        """Drop the marks first."""
        return self._drop_marks() or super().back()


def _named(note: FileRow, room: int) -> list[Piece]:
    """The name of a log, then its title as far as there is room for it."""
    name = fit_path(safe(note.path.removeprefix("memory/")), room)
    title = one_line(note.title)
    left = room - cell_len(name) - 2
    if not title or left < LEAST_TITLE:
        return [(f" {fit(name, room)}", "")]
    return [(f" {name}  ", ""), (fit(title, left), "muted")]


def _findings(engine: Engine) -> Counter[str]:
    """How many open findings each note has."""
    return Counter(row.place.path for row in engine.notes.examine())
