"""For how long a suggestion is put off."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from memory_tui.tui.paint import fit_path

CHOICES: tuple[tuple[str, int], ...] = (("1", 1), ("7", 7), ("3", 30))
"""Keys and days."""


class Snooze(ModalScreen[int | None]):
    """A strip of choices; esc puts nothing off."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"put_off({days})", f"{days} days") for key, days in CHOICES),
        Binding("escape,q", "leave", "Leave"),
        Binding("down,j", "app.focus_next", "Next"),
        Binding("up,k", "app.focus_previous", "Previous"),
    ]

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose(self) -> ComposeResult:
        """What is put off, and a button for each choice."""
        with Vertical(id="snooze") as frame:
            frame.border_title = Content("Ask again in ...")
            yield Static(Content(fit_path(self._place, 44)))
            with Vertical(id="choices"):
                for key, days in CHOICES:
                    words = f" {days} day{'' if days == 1 else 's'}"
                    yield Button(Content.assemble((f" {key} ", "bold $primary"), words), id=f"days{days}", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click is its key."""
        event.stop()
        self.dismiss(int(str(event.button.id).removeprefix("days")))

    def action_put_off(self, days: int) -> None:
        """Choose by key."""
        self.dismiss(days)

    def action_leave(self) -> None:
        """Never mind."""
        self.dismiss(None)
