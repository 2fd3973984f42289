"""Choosing one of many by a few letters of its name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from memory_tui.text.display import safe
from memory_tui.tui.finding import closest
from memory_tui.tui.paint import Piece, fit_path, plural
from memory_tui.tui.widgets.query_box import Box
from memory_tui.tui.widgets.rowlist import RowList


class Choices(RowList):
    """The names that fit what was typed, best first."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="choices")
        self.names: Sequence[str] = ()
        self._new = ""

    def show(self, names: Sequence[str], new: str = "") -> None:
        """List `names`; the last is a `new` one where there is a word for it."""
        self.names, self._new = names, new
        self.rows_changed()

    def count(self) -> int:
        """Names."""
        return len(self.names)

    def key_of(self, row: int, /) -> Hashable:
        """The name."""
        return self.names[row]

    def opens_at_once(self, _row: int, /) -> bool:
        """A click on the name under the cursor takes it."""
        return True

    def draw(self, row: int, _line: int, width: int, /) -> Iterable[Piece]:
        """The name, its end in sight."""
        new = f"  ({self._new})" if self._new and row == len(self.names) - 1 else ""
        return [(f" {fit_path(safe(self.names[row]), width - 1 - len(new))}", ""), (new, "muted")]


class Picker(ModalScreen[str | None]):
    """Letters narrow the list, arrows move in it, enter takes a name, esc none.

    Where there is a word for what is `new`, what was typed can be taken as it is.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("enter", "take", "Take", priority=True),
        Binding("down,ctrl+n", "move('down')", "Down"),
        Binding("up,ctrl+p", "move('up')", "Up", priority=True),
        Binding("pagedown,ctrl+d", "move('page_down')", "Page down", priority=True),
        Binding("pageup,ctrl+u", "move('page_up')", "Page up", priority=True),
    ]

    def __init__(self, title: str, names: Sequence[str], *, new: str = "") -> None:
        super().__init__()
        self._title, self._names, self._new = title, names, new
        self._narrowed = ""
        self._folded = [name.removeprefix("memory/") for name in names]

    def compose(self) -> ComposeResult:
        """Letters above the list."""
        with Vertical(id="picker") as box:
            box.border_title = self._title
            yield Box(placeholder="a few letters of its name", id="letters")
            yield Choices()

    def on_mount(self) -> None:
        """All names, until something is typed."""
        self._narrow("")
        # What is behind was not drawn yet when another dialogue has just gone.
        self.call_after_refresh(self.refresh)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def _narrow(self, letters: str) -> None:
        self._narrowed = letters
        typed = letters.strip()
        found = [self._names[at] for at in closest(self._folded, typed)]
        offered = [typed] if self._new and typed and typed not in found else []
        self.query_one(Choices).show([*found, *offered], self._new if offered else "")
        self.query_one("#picker", Vertical).border_subtitle = f"{plural(len(found), 'name')}, enter takes one"

    def action_move(self, way: str) -> None:
        """Move in the list while typing."""
        getattr(self.query_one(Choices), f"do_{way}")()

    def action_take(self) -> None:
        """Close with the name under the cursor; who types quickly means what stands in the box by now."""
        letters = self.query_one(Box).value
        if letters != self._narrowed:
            self._narrow(letters)
        choices = self.query_one(Choices)
        self.dismiss(choices.names[choices.cursor] if 0 <= choices.cursor < len(choices.names) else None)

    @on(RowList.Chosen)
    def _clicked(self) -> None:
        self.action_take()
