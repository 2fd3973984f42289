"""The annotations view lists the entries of a curated note with what they are given; hits move while keys turn it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Vertical
from textual.widget import Widget

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import number, plural
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.judging import REST
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import CuratedNote
from memory_tui.tui.views.dialogs import Confirm, LineDialog
from memory_tui.tui.views.notes.edit import mark, summary
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import stop, task
from memory_tui.workspace.annotations import MOST_IMPORTANT, Annotations, annotations_of

if TYPE_CHECKING:
    from memory_tui.curate.annotate import AnnotatedEntry
    from memory_tui.curate.what_if import Effect

NOTES = ("MEMORY.md", "USER.md")
QUERIES = 12
"""Queries at most of which the answers are watched: the one on screen, then saved ones."""
ROOMY = 100
"""Cells from which on triggers and project have columns; below they are chips under the entry."""
_TRIGGERS, _PROJECT = 30, 20
"""Cells of a column."""


class Entries(RowList):
    """An entry a row: importance, triggers and project as columns, or as chips below it; what is new stands out."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="entries")
        self._entries: Sequence[AnnotatedEntry] = ()
        self._wanted: Mapping[int, Annotations] = {}
        self._said = "Reading the note ..."

    def show(self, entries: Sequence[AnnotatedEntry], wanted: Mapping[int, Annotations], said: str) -> None:
        """List `entries` with the annotations that are `wanted`; `said` stands where there are none."""
        key = self.key
        self._entries, self._wanted, self._said = entries, wanted, said
        self.rows_changed(key)

    @property
    def entry(self) -> AnnotatedEntry | None:
        """What is under the cursor."""
        return self._entries[self.cursor] if 0 <= self.cursor < len(self._entries) else None

    def staged(self, entry: AnnotatedEntry) -> Annotations:
        """The annotations of an entry as they will be."""
        return self._wanted.get(entry.first, entry.said)

    def count(self) -> int:
        """Entries, or one sentence."""
        return len(self._entries) or 1

    def key_of(self, row: int, /) -> Hashable:
        """The entry's first line."""
        return self._entries[row].first if self._entries else None

    def kind_of(self, _row: int, /) -> Hashable:
        """Entries are marked together."""
        return "entry" if self._entries else None

    @property
    def chosen(self) -> list[AnnotatedEntry]:
        """The entries that are marked, else the one under the cursor."""
        marked = [entry for entry in self._entries if entry.first in self.marks]
        return marked or [entry for entry in (self.entry,) if entry is not None]

    def _chips(self, entry: AnnotatedEntry) -> list[str]:
        said = self.staged(entry)
        return [chip for chip in (said.triggers, said.project) if chip]

    def height_of(self, row: int, width: int, /) -> int:
        """A second line where there are chips and no room for columns."""
        return 2 if self._entries and width < ROOMY and self._chips(self._entries[row]) else 1

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Importance, columns and the entry; below it the chips where there is little room."""
        if not self._entries:
            return [(fit(f" {self._said}", width), "muted")]
        entry = self._entries[row]
        if line:
            chips = [one_line(chip) for chip in self._chips(entry)]
            pieces: list[Piece] = [(" " * 7, "")]
            for chip in chips:
                pieces += [(f" {fit(chip, min(len(chip), max(8, width // 2 - 6)))} ", "chip"), (" ", "")]
            return pieces
        said, changed = self.staged(entry), entry.first in self._wanted
        lead: list[Piece] = [
            ("■" if entry.first in self.marks else " ", "mark"),
            ("* " if changed else "  ", "warn"),
            (f"{said.importance or '·':>2}  ", "strong" if said.importance else "muted"),
        ]
        if width >= ROOMY:
            lead += [
                (fit(one_line(said.triggers) or "·", _TRIGGERS - 1), "chip" if said.triggers else "muted"),
                (" ", ""),
                (fit(one_line(said.project) or "·", _PROJECT - 1), "chip" if said.project else "muted"),
                (" ", ""),
            ]
        room = width - sum(len(words) for words, _ in lead)
        return [*lead, (fit(one_line(entry.words), room), "warn" if changed else "")]


class AnnotationsView(View):
    """Entries above, what their annotations move below."""

    PLACE = "annotations"
    AUTO_FOCUS = "#entries"
    SCROLLED = "#moved"

    def __init__(self, below: View) -> None:
        super().__init__(below)
        page = next((part.reader.page for part in below.parts if isinstance(part, NotePane)), None)
        self._path = page.path if page is not None and page.path in NOTES else NOTES[0]
        self._note: CuratedNote | None = None
        self._wanted: dict[int, Annotations] = {}
        self._steps: list[dict[int, Annotations]] = []
        self._effects: Sequence[tuple[str, Effect]] | str = ""
        self._resting = False
        self._proposals = Proposals(self, self._read, self._read)

    def compose_view(self) -> Iterable[Widget]:
        """List and effect."""
        with Vertical(id="annotating"):
            yield Entries()
            yield Rows(id="moved")

    def on_mount(self) -> None:
        """Read the note."""
        super().on_mount()
        self._show()
        self._read()

    @property
    def resting(self) -> bool:
        """Whether nothing is being worked out."""
        return not self._resting

    @property
    def _entries(self) -> Entries:
        return self.query_one(Entries)

    @property
    def unsaved(self) -> bool:
        """Whether annotations are staged and not written."""
        return bool(self._wanted)

    @task("page")
    async def _read(self) -> None:
        """Read the entries as they are on disk; what was staged goes."""
        self._note = await self.home.jobs.run(partial(note_changes.curated_note, path=self._path))
        self._wanted, self._effects = {}, ""
        self._steps.clear()
        # Entries are known by their lines, and these may be other ones now.
        self._entries.marks.drop()
        self._show()

    def _show(self) -> None:
        note = self._note
        said = "Reading the note ..." if note is None else f"{self._path} has no entries: lines that begin with “- ”."
        entries = self._entries
        entries.show(note.entries if note is not None else (), self._wanted, said)
        count = f"  {plural(len(note.entries), 'entry')}" if note is not None else ""
        entries.border_title = entries.marks.beside(f"Annotations of {self._path}{count}")
        staged = f"{plural(len(self._wanted), 'entry')} changed, {key_of('save')} saves" if self._wanted else ""
        entries.border_subtitle = staged or "h l importance, enter triggers, # project"
        self.query_one("#moved", Rows).show(self._lines, "What it moves")
        self.update_hints()

    def _lines(self, width: int) -> Sequence[Line]:
        note = self._note
        if note is not None and note.problem:
            return text(note.problem, width, "warn")
        if isinstance(self._effects, str):
            none = "Turn an annotation: this shows which hits of your query and of saved queries it moves."
            return text(self._effects or none, width, "muted")
        if not self._effects:
            return text(
                f"No query is asked or saved. Press {key_of('ask')} to ask, {key_of('save')} there to save it.",
                width,
                "muted",
            )
        lines: list[Line] = []
        for query, effect in self._effects:
            lines.append(([(f" {one_line(query)}: ", "strong"), (summary(effect), "muted")], ("query", query)))
            for at, move in enumerate(effect.moves):
                word, style = mark(move)
                hit = move.after or move.before
                if word == "=" or hit is None:
                    continue
                scores = " → ".join(number(each.score) if each else "-" for each in (move.before, move.after))
                where = f"{one_line(hit.chunk.path)}:{hit.chunk.start_line}-{hit.chunk.end_line}"
                pieces: list[Piece] = [(f"   {word:>4} ", style), (f"{scores}  ", ""), (where, "muted")]
                lines.append((pieces, ("move", query, at)))
        return lines

    # --- turning -------------------------------------------------------------------------------------------------

    def _turn(self, turned: Callable[[Annotations], Annotations]) -> None:
        """Stage what `turned` makes of the annotations of the marked entries, or of the one under the cursor."""
        chosen = self._entries.chosen
        if not chosen:
            self.show_message("There is no entry under the cursor.")
            return
        wanted = dict(self._wanted)
        for entry in chosen:
            said = turned(self._entries.staged(entry))
            wanted.pop(entry.first, None)
            if said != entry.said:
                wanted[entry.first] = said
        if wanted != self._wanted:
            self._steps.append(dict(self._wanted))
            self._wanted = wanted
            self._watch()

    def _watch(self) -> None:
        """Show what is staged, and work out what it moves when keys rest."""
        self._show()
        note = self._note
        if note is None or note.problem or not self._wanted:
            stop(self, "effect")
            self._resting, self._effects = False, ""
            self._show()
            return
        self._resting = True
        self._work_out(note, dict(self._wanted))

    @task("effect")
    async def _work_out(self, note: CuratedNote, wanted: dict[int, Annotations]) -> None:
        await self.home.jobs.rest(REST)
        work = partial(
            note_changes.annotation_effects, note=note, wanted=wanted, question=self.home.question, most=QUERIES
        )
        found = await self.home.jobs.attempt(work)
        self._resting = False
        self._effects = sentence_of(found) if isinstance(found, MemoryTuiError) else found
        self._show()

    def do_less(self) -> None:
        """One step less important; below 1 there is none."""
        self._importance(-1)

    def do_more(self) -> None:
        """One step more important."""
        self._importance(1)

    def _importance(self, step: int) -> None:
        self._turn(lambda said: said._replace(importance=min(MOST_IMPORTANT, max(0, said.importance + step))))

    def do_triggers(self) -> None:
        """Type the phrases that bring the entry up."""
        entry = self._entries.entry
        explained = "Phrases apart by commas. A message that holds one puts the entry before the agent."
        if entry is not None:
            value = self._entries.staged(entry).triggers.replace("; ", ", ")
            self._type(
                "Triggers",
                explained,
                value,
                lambda said, typed: said._replace(triggers=annotations_of(0, typed, "").triggers),
            )

    def do_project(self) -> None:
        """Type the project of the entry."""
        entry = self._entries.entry
        if entry is None:
            return
        if self._path == "USER.md":
            self.show_message("OpenClaw reads no project in USER.md.")
            return
        explained = (
            "Keys apart by semicolons, such as github.com/me/house. Only while it is active the entry is recalled."
        )
        value = self._entries.staged(entry).project
        self._type(
            "Project",
            explained,
            value,
            lambda said, typed: said._replace(project=annotations_of(0, "", typed).project),
        )

    def _type(self, title: str, explained: str, value: str, turned: Callable[[Annotations, str], Annotations]) -> None:
        LineDialog(title, explained, "Set", value=value).ask(
            self.app, lambda words: self._turn(lambda said: turned(said, words))
        )

    def do_other(self) -> None:
        """The entries of the other note."""
        if self._wanted:
            self.show_message("Save what you changed first: ctrl+s, or take it back: u.")
            return
        self._path = NOTES[1 - NOTES.index(self._path)]
        self._note = None
        self._read()

    # --- writing -------------------------------------------------------------------------------------------------

    def do_save(self) -> None:
        """Show the difference, and write it when that is wanted."""
        note = self._note
        if note is None or not self._wanted:
            self.show_message("No annotation was changed.")
            return
        self._proposals.preview(partial(note_changes.annotating, note=note, wanted=dict(self._wanted)), "Write")

    def do_undo(self) -> None:
        """Take back the last step here; where there is none, the last change of notes."""
        if self._steps:
            self._wanted = self._steps.pop()
            self._watch()
        else:
            self._proposals.step("undo")

    @on(RowList.Marked, "#entries")
    def _say_marks(self) -> None:
        self._show()

    @on(RowList.Chosen, "#entries")
    def _chosen(self) -> None:
        self.do_triggers()

    def back(self) -> bool:
        """Drop the marks, then leave; what is staged is asked about."""
        if self._entries.marks.drop():
            return True
        if not self._wanted:
            return False
        Confirm(
            "Leave without saving?",
            f"Your annotations are not in {self._path} yet. Press {key_of('save')} to save them.",
            "Throw them away",
        ).ask(self.app, lambda _yes: self.app.pop_screen())
        return True
