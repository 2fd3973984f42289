"""Where one asks: the answer follows while typing."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from memory_tui.text.display import safe
from memory_tui.tui.actions import bindings

REST = 0.12
"""Seconds without a key press after which the question is asked."""


class Box(Input):
    """A text box of one line without frame, whose cursor does not blink."""

    def __init__(self, *, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False, highlighter=None)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """What is pasted may hold control characters; they are shown, not obeyed."""
        return safe(value)


class FilterInput(Box):
    """Part of a file name; hidden until it is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("filter"))
    PLACES: ClassVar[tuple[str, ...]] = ("filter",)

    def __init__(self) -> None:
        super().__init__(placeholder="part of a file name", id="filter")
        self.display = False


class FindInput(Box):
    """What is looked for in a note; hidden until it is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("find"))
    PLACES: ClassVar[tuple[str, ...]] = ("find",)

    def __init__(self) -> None:
        super().__init__(placeholder="text to look for in this note", id="find")
        self.display = False


class QueryInput(Box):
    """The question; up brings back earlier ones, enter and down lead to the hits."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("query"))
    PLACES: ClassVar[tuple[str, ...]] = ("query",)

    def __init__(self, *, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self.earlier: list[str] = []
        self._back = 0

    def do_earlier(self) -> None:
        """Put the question before this one into the box."""
        if self._back < len(self.earlier):
            self._back += 1
            self.value = self.earlier[-self._back]
            self.cursor_position = len(self.value)

    def remember(self) -> None:
        """Keep the question, once, for later."""
        self._back = 0
        asked = self.value.strip()
        if asked and self.earlier[-1:] != [asked]:
            self.earlier.append(asked)


class QueryBox(Horizontal):
    """The box with a prompt to the left and the outcome to the right."""

    class Asked(Message):
        """The question rested for a moment, or enter was pressed."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query_text = query

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._outcome = ""
        self._answered = ""

    def compose(self) -> ComposeResult:
        """Prompt, box, what this question was answered by, outcome."""
        yield Static(" / ", id="prompt", markup=False)
        yield QueryInput(placeholder="ask as the agent would: words, a question, a day", id="query")
        yield Static("", id="answered", markup=False)
        yield Static("", id="outcome", markup=False)

    @property
    def input(self) -> QueryInput:
        """The text box itself."""
        return self.query_one(QueryInput)

    def outcome(self, text: str) -> None:
        """Say in a few words what came out; the box gives way only when there is something new to say."""
        if text != self._outcome:
            self._outcome = text
            self.query_one("#outcome", Static).update(Content(f"{text} "))

    def answered_by(self, text: str) -> None:
        """Say what this question was answered by, which can be less than what searches go by."""
        if text != self._answered:
            self._answered = text
            self.query_one("#answered", Static).update(Content(f" {text} " if text else ""))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Ask when the typing rests."""
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(REST, self._ask)

    def _ask(self) -> None:
        self._timer = None
        self.post_message(self.Asked(self.input.value))

    def ask_now(self) -> None:
        """Do not wait for the typing to rest."""
        if self._timer is not None:
            self._timer.stop()
            self._ask()

    @property
    def resting(self) -> bool:
        """Whether what is in the box has been asked."""
        return self._timer is None
