"""A question before something that takes long or is hard to take back; the safe answer is the default."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class Confirm(ModalScreen[bool]):
    """y does it; n, esc, q and enter on the default button do not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,h", "app.focus_previous", "Previous"),
        Binding("right,l", "app.focus_next", "Next"),
    ]

    def __init__(self, title: str, text: str, verb: str) -> None:
        super().__init__()
        self._title, self._text, self._verb = title, text, verb

    def compose(self) -> ComposeResult:
        """The question, and two buttons."""
        with Vertical(id="dialogue") as box:
            box.border_title = self._title
            yield Static(self._text, markup=False)
            with Horizontal():
                yield Button("Cancel (n)", id="no", compact=True)
                yield Button(f"{self._verb} (y)", id="yes", compact=True, variant="warning")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Answer by key."""
        self.dismiss(yes)
