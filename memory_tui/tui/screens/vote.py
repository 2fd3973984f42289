"""What may follow `v`: right, helps, wrong, taken back, or that the notes do not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from memory_tui.text.display import safe
from memory_tui.tui.paint import fit_path

TAKEN_BACK, UNKNOWN = -1, -2
"""Answers beside grades: no mark any more, and the notes do not answer this question at all."""

CHOICES: tuple[tuple[str, str, int], ...] = (
    ("y", "answers (2)", 2),
    ("1", "helps", 1),
    ("n", "wrong (0)", 0),
    ("-", "take back", TAKEN_BACK),
    ("x", "the notes do not know", UNKNOWN),
)


class Vote(ModalScreen[int | None]):
    """A strip of choices; esc leaves things as they are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,2", "vote(2)", "Answers"),
        Binding("1", "vote(1)", "Helps"),
        Binding("n,0", "vote(0)", "Wrong"),
        Binding("minus", f"vote({TAKEN_BACK})", "Take back"),
        Binding("x", f"vote({UNKNOWN})", "Unknown"),
        Binding("escape,q", "leave", "Leave"),
    ]

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose(self) -> ComposeResult:
        """What is judged, and a button for each choice."""
        with Vertical(id="vote") as frame:
            frame.border_title = Content("Is this hit right for the question?")
            yield Static(Content(fit_path(safe(self._place), 70)), id="voted")
            with Vertical(id="choices"):
                yield from self._buttons()

    def _buttons(self) -> Iterable[Button]:
        for key, words, grade in CHOICES:
            yield Button(
                Content.assemble((f" {key} ", "bold $primary"), f" {words}"), id=f"grade{grade + 2}", compact=True
            )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click is its key."""
        event.stop()
        self.dismiss(int(str(event.button.id).removeprefix("grade")) - 2)

    def action_vote(self, grade: int) -> None:
        """Judge by key."""
        self.dismiss(grade)

    def action_leave(self) -> None:
        """Never mind."""
        self.dismiss(None)
