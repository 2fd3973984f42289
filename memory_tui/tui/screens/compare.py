"""OpenClaw's own index against the notes on disk: the whole above, file by file below; it is only ever read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from memory_tui.tui.actions import bindings
from memory_tui.tui.messages import Done
from memory_tui.tui.paint import plural
from memory_tui.tui.screens.base import View
from memory_tui.tui.widgets.compared import ComparedFiles
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.state import Statements, home

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.index.compare import Comparison
    from memory_tui.index.their_record import TheirProblem


def _compare(engine: Engine) -> Comparison | TheirProblem:
    from memory_tui.index.compare import compare_configured

    return compare_configured(engine.plan.config, engine.settings, engine.plan.roots)


class CompareView(View):
    """Over the view below; esc goes back there."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("compare"))
    PLACE = "compare"
    AUTO_FOCUS = "#compared"

    def compose_view(self) -> Iterable[Widget]:
        """The whole above the files."""
        with Vertical(id="panes"):
            yield Statements("OpenClaw's own index, read only", id="theirs")
            yield ComparedFiles()

    def more_places(self) -> tuple[str, ...]:
        """A note can be under the cursor."""
        return ("notes",)

    def on_mount(self) -> None:
        """Begin to look."""
        super().on_mount()
        self.do_compare()

    def do_compare(self) -> None:
        """Look again."""
        self.query_one(Statements).say([("state", "Reading OpenClaw's index and the notes ...", "muted")])
        self.query_one(ComparedFiles).show((), "")
        self.home.bridge.work("compare", _compare)

    def do_agreeing(self) -> None:
        """Show or hide the files that agree."""
        files = self.query_one(ComparedFiles)
        files.turn()
        self.say("Every file is listed." if files.everything else "Only files that differ are listed.")

    def work_done(self, done: Done, /) -> None:
        """Show what was found."""
        if done.kind != "compare":
            return
        if done.error is not None:
            self.query_one(Statements).say([("state", f"{done.error.message} {done.error.next_step}", "bad")])
        else:
            self._show(done.value)  # type: ignore[arg-type]
        self.update_hints()

    def _show(self, value: Comparison | TheirProblem) -> None:
        from memory_tui.explain import compared

        whole, files = self.query_one(Statements), self.query_one(ComparedFiles)
        if value.state != "ok":
            whole.say(
                [
                    (label.lower().removeprefix("their "), home(words), "warn" if label == "State" else "")
                    for label, words in compared.refusal(value)
                ]
            )
            files.show((), "There is nothing to compare.")
            return
        whole.say(
            [
                *(
                    (label.lower().removeprefix("their "), home(words), "")
                    for label, words in compared.statements(value)
                ),
                *(
                    ("notice" if label == "Notice" else "differs", words, "warn")
                    for label, words in compared.objections(value)
                ),
            ]
        )
        files.show(value.files, f"OpenClaw's index has {plural(value.on_disk, 'note')} as they are on disk.")

    @on(RowList.Chosen)
    def _read(self, event: RowList.Chosen) -> None:
        place = self.place_in_note()
        if place is None or event.rows.id != "compared":
            self.say("No file that is on disk is under the cursor, so there is nothing to read.")
            return
        from memory_tui.tui.screens.reader import ReaderView

        self.app.push_screen(ReaderView(place[0], (place[1], place[2])))

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The first line of the note under the cursor, where it is on disk."""
        file = self.query_one(ComparedFiles).file
        known = {row.path for row in self.home.facts.rows} if self.home.facts else set()
        return (file.path, 1, 1) if file is not None and file.path in known else None

    def back(self) -> bool:
        """Back to the view below."""
        self.app.pop_screen()
        return True
