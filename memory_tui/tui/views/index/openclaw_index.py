"""OpenClaw's own index beside the notes on disk; it is only read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path, wrapped
from memory_tui.tui.keymap import bindings
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.index_lists import Statements, home
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.openclaw.compare import FileComparison, HostProblem, IndexComparison

SIGNS: Mapping[str, tuple[str, str, str]] = {
    "missing": ("○", "missing", "bad"),
    "stale": ("~", "stale", "warn"),
    "extra": ("-", "extra", "warn"),
    "other model": ("!", "model", "bad"),
    "other chunking": ("±", "chunks", "warn"),
    "without vector": ("?", "no vector", "warn"),
    "not compared": ("×", "unknown", "muted"),
    "": ("✓", "same", "good"),
}
"""Glyph, word and style of each difference."""
MEANINGS: Mapping[str, str] = {
    "missing": "on disk, but not in their index",
    "stale": "their index has another text of it",
    "extra": "in their index, and no note on disk",
    "other model": "some chunks are of another embedding model",
    "other chunking": "cut into other chunks than configured",
    "without vector": "some chunks have no vector",
    "not compared": "could not be compared; the line says why",
    "": "the same on both sides",
}
_STATE = 10


def difference_of(file: FileComparison) -> str:
    """The difference that comes first, empty for none."""
    return "not compared" if not file.compared and not file.differences else next(iter(file.differences), "")


class ComparedFiles(RowList):
    """Every file that differs, and with `everything` the others too; each with its chunks there and here."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("compare"))
    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="compared")
        self.border_title = "Files"
        self.everything = False
        self._all: Sequence[FileComparison] = ()
        self._rows: Sequence[FileComparison] = ()
        self._longest = 0
        self._empty = ""

    def show(self, files: Sequence[FileComparison], empty: str) -> None:
        """List `files`; `empty` is said when none of them is to be seen."""
        key = self.key
        self._all, self._empty = files, empty
        self._rows = [file for file in files if self.everything or difference_of(file)]
        self._longest = max((cell_len(safe(file.path)) for file in self._rows), default=0)
        hidden = len(files) - len(self._rows)
        self.border_subtitle = plural(len(self._rows), "file") + (f", {hidden:,} that agree hidden" if hidden else "")
        self.rows_changed(key)

    def turn(self) -> None:
        """Show or hide the files that agree."""
        self.everything = not self.everything
        self.show(self._all, self._empty)

    @property
    def file(self) -> FileComparison | None:
        """The file under the cursor."""
        return self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None

    def do_open(self) -> None:
        """Tell that enter was pressed, on a file or where there is none."""
        self.post_message(self.Chosen(self))

    def count(self) -> int:
        """Rows, or one that says why there are none."""
        return len(self._rows) or 1

    def key_of(self, row: int, /) -> Hashable:
        """Source and path."""
        return (self._rows[row].source, self._rows[row].path) if self._rows else None

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        return len(self._words(row, width)) if self._rows else len(wrapped(self._empty, width - 3))

    def _room(self, width: int) -> int:
        return min(self._longest, (width - _STATE - 6) // 2)

    def _words(self, row: int, width: int) -> list[str]:
        file = self._rows[row]
        here = "" if file.expected is None else f" there, {file.expected:,} here"
        counts = f"{plural(file.chunks, 'chunk')}{here}."
        return wrapped(one_line(f"{file.detail} {counts}".strip()), width - self._room(width) - _STATE - 6)

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Difference, path and what there is to say."""
        if not self._rows:
            return [
                ("   " if line else " ✓ " if self._all else "   ", "good"),
                (wrapped(self._empty, width - 3)[line], ""),
            ]
        file = self._rows[row]
        glyph, word, style = SIGNS[difference_of(file)]
        room, words = self._room(width), self._words(row, width)[line]
        if line:
            return [(" " * (room + _STATE + 5), ""), (words, "muted")]
        return [
            (f" {glyph} ", style),
            (fit(word, _STATE), style),
            (fit(fit_path(safe(file.path), room), room), ""),
            (f"  {words}", "muted"),
        ]


def _compare(engine: Engine) -> IndexComparison | HostProblem:
    from memory_tui.openclaw.compare import compare_configured

    return compare_configured(engine.plan.config, engine.plan.settings, engine.plan.roots)


class CompareView(View):
    """Over the view below; esc goes back there."""

    PLACE = "compare"
    MORE_PLACES = ("notes",)
    AUTO_FOCUS = "#compared"

    def compose_view(self) -> Iterable[Widget]:
        """The whole above the files."""
        with Vertical(id="panes"):
            yield Statements("OpenClaw's own index, read only", id="theirs")
            yield ComparedFiles()

    def on_mount(self) -> None:
        """Begin to look."""
        super().on_mount()
        self.do_compare()

    @task("compare")
    async def do_compare(self) -> None:
        """Compare, once more where that was done before."""
        self.query_one(Statements).show([("state", "Reading OpenClaw's index and the notes ...", "muted")])
        self.query_one(ComparedFiles).show((), "")
        reply = await self.home.jobs.attempt(_compare)
        if isinstance(reply, MemoryTuiError):
            self.query_one(Statements).show([("state", sentence_of(reply), "bad")])
        else:
            self._show(reply)

    def do_agreeing(self) -> None:
        """Show or hide the files that agree."""
        files = self.query_one(ComparedFiles)
        files.turn()
        self.show_message("Every file is listed." if files.everything else "Only files that differ are listed.")

    def _show(self, value: IndexComparison | HostProblem) -> None:
        from memory_tui.render import host_text

        whole, files = self.query_one(Statements), self.query_one(ComparedFiles)
        if value.state != "ok":
            whole.show(
                [
                    (label.lower().removeprefix("their "), home(words), "warn" if label == "State" else "")
                    for label, words in host_text.refusal(value)
                ]
            )
            files.show((), "There is nothing to compare.")
            return
        whole.show(
            [
                *(
                    (label.lower().removeprefix("their "), home(words), "")
                    for label, words in host_text.statements(value)
                ),
                *(
                    ("notice" if label == "Notice" else "differs", words, "warn")
                    for label, words in host_text.objections(value)
                ),
            ]
        )
        files.show(value.files, f"OpenClaw's index has {plural(value.on_disk, 'note')} as they are on disk.")

    @on(RowList.Chosen)
    def _read(self, event: RowList.Chosen) -> None:
        place = self.place_in_note()
        if place is None or event.rows.id != "compared":
            self.show_message("The file under the cursor is not on disk. Choose another one.")
            return
        self.read_note(place[0], place[1:])

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The first line of the note under the cursor, where it is on disk."""
        file = self.query_one(ComparedFiles).file
        seen = {row.path for row in self.home.facts.rows} if self.home.facts else set()
        return (file.path, 1, 1) if file is not None and file.path in seen else None
