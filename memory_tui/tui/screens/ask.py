"""One line from the user: a title, a path, a thought to remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from memory_tui.tui.widgets.query_box import Box

Remark = Callable[[str], str]
"""What is to be said of what is typed, while it is typed."""


def looks_secret(text: str) -> str:
    """A word of warning where `text` looks as if it held a password or key."""
    from memory_tui.text.secrets import find as secrets_in

    found = secrets_in(text)
    return f"This looks like a secret ({found[0].kind}); notes are read by agents." if found else ""


class Ask(ModalScreen[str]):
    """Enter hands over what was typed; esc hands over nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "Close")]

    def __init__(self, title: str, explained: str, verb: str, *, value: str = "", remark: Remark | None = None) -> None:
        super().__init__()
        self._title, self._explained, self._verb, self._value = title, explained, verb, value
        self._remark = remark

    def compose(self) -> ComposeResult:
        """What for, the box, and the buttons."""
        with Vertical(id="dialogue") as box:
            box.border_title = self._title
            yield Static(self._explained, markup=False)
            yield Box(placeholder="", id="line")
            yield Static("", id="remark", markup=False)
            with Horizontal():
                yield Button("Cancel (esc)", id="no", compact=True)
                yield Button(f"{self._verb} (enter)", id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        """Begin to type."""
        box = self.query_one(Box)
        box.value = self._value
        box.cursor_position = len(self._value)
        box.focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.query_one("#remark", Static).update(self._remark(event.value) if self._remark else "")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(self.query_one(Box).value.strip() if event.button.id == "yes" else "")
