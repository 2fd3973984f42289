"""A change of notes before it is made: what it does line by line; the safe answer is the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from memory_tui.text.display import one_line
from memory_tui.tui.widgets.diff_list import DiffList

if TYPE_CHECKING:
    from memory_tui.curate.diff import DiffLine
    from memory_tui.curate.record import Change


@dataclass(frozen=True, slots=True)
class Planned:
    """A change that can be made: its diff, what it means for the budget, and what a person should know of it."""

    change: Change
    lines: Sequence[DiffLine]
    effect: Sequence[str] = ()


class Preview(ModalScreen[str]):
    """y makes the change ("yes"); n, esc, q and enter on the default button do not ("no"); an option is its key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('yes')", "Yes"),
        Binding("n,escape,q", "answer('no')", "No"),
        Binding("j,down", "scroll(1)", "Down"),
        Binding("k,up", "scroll(-1)", "Up"),
        Binding("ctrl+d,pagedown,space", "scroll(10)", "Page down"),
        Binding("ctrl+u,pageup", "scroll(-10)", "Page up"),
        Binding("left", "app.focus_previous", "Previous"),
        Binding("right", "app.focus_next", "Next"),
    ]

    def __init__(self, planned: Planned, verb: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._planned, self._verb, self._options = planned, verb, dict(options or {})

    def compose(self) -> ComposeResult:
        """Title, effect, diff, and the buttons."""
        with Vertical(id="preview") as box:
            box.border_title = Content(one_line(self._planned.change.title))
            said = [*self._planned.effect, *self._planned.change.notes]
            if said:
                yield Static("\n".join(map(one_line, said)), id="effect", markup=False)
            yield DiffList()
            with Horizontal():
                for key, label in self._options.items():
                    yield Button(f"{label} ({key})", id=f"option-{key}", compact=True)
                yield Button("Cancel (n)", id="no", compact=True)
                yield Button(f"{self._verb} (y)", id="yes", compact=True, variant="warning")

    def on_mount(self) -> None:
        """Show the change; enter does nothing to the notes."""
        self.query_one(DiffList).show(self._planned.lines)
        self.query_one("#no").focus()
        # What is behind was not drawn yet when another dialogue has just gone.
        self.call_after_refresh(self.refresh)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(str(event.button.id).removeprefix("option-"))

    def on_key(self, event: events.Key) -> None:
        """An option by its key."""
        if event.character in self._options:
            event.stop()
            self.dismiss(event.character)

    def action_answer(self, answer: str) -> None:
        """Answer by key."""
        self.dismiss(answer)

    def action_scroll(self, lines: int) -> None:
        """Scroll the diff."""
        self.query_one(DiffList).scroll_relative(y=lines, animate=False)
